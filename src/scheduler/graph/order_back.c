/* order_back.c -- the edges that stay outside the order, and when they are tried again.
 *
 * A back edge W -> R is held down by a path from R to W. When an edge among the positions in between
 * goes away, the path may be gone; so edges that go away note their positions, and graph_settle tries
 * all back edges that overlap them once. Turning one upward frees no other, so one round is enough. */
#include "scheduler/graph/order.h"

#include "base/env.h"

static uint32_t pair_hash(node_id from, node_id to) {
    uint64_t h = ((uint64_t)from << 32 | to) * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(h >> 32);
}

static uint32_t index_of(const graph *g, node_id from, node_id to) {
    table_probe p = table_find(&g->back_index, pair_hash(from, to));
    while (table_next(&g->back_index, &p)) {
        const back_edge *b = &g->back_edges.items[p.index];
        if (b->writer == from && b->reader == to) return p.index;
    }
    return UINT32_MAX;
}

bool back_edge_known(const graph *g, node_id from, node_id to) {
    return g->back_edges.count && index_of(g, from, to) != UINT32_MAX;
}

void back_edge_add(graph *g, node_id from, node_id to) {
    assert(from != to);
    if (back_edge_known(g, from, to)) return;
    if (!vec_room(g->env, &g->back_edges, 1) ||
        table_insert(&g->back_index, pair_hash(from, to), g->back_edges.count)) {
        g->back_lost = true;
        order_note(g, 0, UINT32_MAX);
        return;
    }
    g->back_edges.items[g->back_edges.count++] = (back_edge){ from, to };
    graph_node(g, from)->flags |= NODE_BACK;
    graph_node(g, to)->flags |= NODE_BACK;
}

static void drop_at(graph *g, uint32_t i) {
    back_edge b = g->back_edges.items[i];
    assert(i < g->back_edges.count);
    table_remove(&g->back_index, pair_hash(b.writer, b.reader), i);
    uint32_t last = g->back_edges.count - 1;
    if (i != last) {
        back_edge moved = g->back_edges.items[last];
        table_move(&g->back_index, pair_hash(moved.writer, moved.reader), last, i);
    }
    vec_swap_remove(&g->back_edges, i);
}

void back_edge_drop(graph *g, node_id from, node_id to) {
    uint32_t i = g->back_edges.count ? index_of(g, from, to) : UINT32_MAX;
    if (i != UINT32_MAX) drop_at(g, i);
}

void back_edges_forget(graph *g, node_id id) {
    if (!(graph_node(g, id)->flags & NODE_BACK)) return;
    for (uint32_t i = g->back_edges.count; i-- > 0;) {
        back_edge b = g->back_edges.items[i];
        if (b.writer == id || b.reader == id) drop_at(g, i);
    }
}

/* ---- trying again */

bool edge_exists(graph *g, node_id from, node_id to) {
    predecessor_walk w = predecessors_of(g, to);
    node_id x;
    while (predecessors_next(&w, &x)) {
        g->edge_visits++;
        if (x == from) return true;
    }
    return false;
}

/* There was no memory to keep some back edge: looks at all edges for those that point down. */
static void find_lost(graph *g) {
    g->back_lost = false;
    order_note(g, 0, UINT32_MAX);
    for (uint32_t pos = 0; pos < g->order_count; pos++) {
        if (!g->node_at[pos]) continue;
        predecessor_walk w = predecessors_of(g, g->node_at[pos]);
        node_id x;
        while (predecessors_next(&w, &x))
            if (graph_node(g, x)->pos > pos) back_edge_add(g, x, g->node_at[pos]);
    }
}

/* Whether the back edge has to stay one. */
static bool still_down(graph *g, back_edge b, bool *nomem) {
    uint32_t from = graph_node(g, b.reader)->pos, to = graph_node(g, b.writer)->pos;
    if (from > to) return false;
    if (to < g->retry_low || from > g->retry_high) return true;
    if (!edge_exists(g, b.writer, b.reader)) return false;
    order_result result = order_try(g, b.writer, b.reader, false);
    if (result == ORDER_NOMEM) *nomem = true;
    return result != ORDER_DONE;
}

void order_retry(graph *g) {
    bool nomem = false;
    if (g->back_lost) find_lost(g);
    if (!g->retry_high) return;
    for (uint32_t i = 0; i < g->back_edges.count;) {
        if (still_down(g, g->back_edges.items[i], &nomem)) i++;
        else drop_at(g, i);
    }
    if (nomem || g->back_lost) return; /* what was noted stays, for the next time */
    g->retry_low = UINT32_MAX;
    g->retry_high = 0;
}
