/* order_search.c -- along the edges; and the repair of one that points down. */
#include "scheduler/graph/order.h"

#include "base/env.h"

/* ---- neighbours */

bool successors_next(successor_walk *w, node_id *out) {
    for (;;) {
        reader r;
        if (w->open && readers_next(&w->readers, &r)) {
            if (r.node == w->id) continue;
            *out = r.node;
            return true;
        }
        uint32_t output = graph_output(w->g, w->id, w->output++);
        if (!output) return false;
        w->readers = readers_of(w->g, output & ~WRITER_ENVELOPE);
        w->open = true;
    }
}

bool predecessors_next(predecessor_walk *w, node_id *out) {
    const node *n = graph_node(w->g, w->id);
    const edge *reads = node_reads_const(n);
    for (;;) {
        writer x;
        if (w->open && writers_next(&w->writers, &x)) {
            node_id id = x.node & ~WRITER_ENVELOPE;
            if (id == w->id) continue;
            *out = id;
            return true;
        }
        while (w->read < n->read_count && reads[w->read].slot == EDGE_UNLINKED) w->read++;
        if (w->read == n->read_count) return false;
        writers_begin(&w->writers, w->g, reads[w->read++].key & KEY_PLACE);
        w->open = true;
    }
}

/* ---- searches */

/* Notes `id` as found if it is new and the search may go there from `pos`. False: no memory. */
static bool found(graph *g, const order_search *s, mark_vec *into, uint32_t flag, node_id id) {
    node *n = graph_node(g, id);
    if (n->flags & flag) return true;
    if (n->pos < s->low || n->pos > s->high) return true;
    if (into->count >= s->limit || !vec_push(g->env, into, mark_of(g, id))) return false;
    n->flags |= flag;
    return true;
}

order_result order_forward(graph *g, const order_search *s, node_id from, node_id target) {
    if (!found(g, s, &g->forward, NODE_FORWARD, from)) return ORDER_NOMEM;
    for (uint32_t i = 0; i < g->forward.count; i++) {
        node_id x = (node_id)g->forward.items[i], y;
        uint32_t pos = graph_node(g, x)->pos;
        successor_walk w = successors_of(g, x);
        while (successors_next(&w, &y)) {
            g->edge_visits++;
            if (!s->down && graph_node(g, y)->pos < pos) continue;
            if (y == target) return ORDER_CYCLE;
            if (!found(g, s, &g->forward, NODE_FORWARD, y)) return ORDER_NOMEM;
        }
        if (!s->kin) continue;
        for (y = graph_first_child(g, x); y; y = graph_next_child(g, y)) {
            if (graph_node(g, y)->pos < pos) continue;
            if (y == target) return ORDER_CYCLE;
            if (!found(g, s, &g->forward, NODE_FORWARD, y)) return ORDER_NOMEM;
        }
    }
    return ORDER_DONE;
}

order_result order_backward(graph *g, const order_search *s, node_id from) {
    if (!found(g, s, &g->backward, NODE_BACKWARD, from)) return ORDER_NOMEM;
    for (uint32_t i = 0; i < g->backward.count; i++) {
        node_id x = (node_id)g->backward.items[i], y;
        uint32_t pos = graph_node(g, x)->pos;
        predecessor_walk w = predecessors_of(g, x);
        while (predecessors_next(&w, &y)) {
            g->edge_visits++;
            if (!s->down && graph_node(g, y)->pos > pos) continue;
            if (!found(g, s, &g->backward, NODE_BACKWARD, y)) return ORDER_NOMEM;
        }
        y = s->kin ? graph_parent(g, x) : 0;
        if (y && graph_node(g, y)->pos < pos && !found(g, s, &g->backward, NODE_BACKWARD, y))
            return ORDER_NOMEM;
    }
    return ORDER_DONE;
}

static void unmark(graph *g, mark_vec *into, uint32_t flag) {
    for (uint32_t i = 0; i < into->count; i++)
        graph_node(g, (node_id)into->items[i])->flags &= ~flag;
    vec_clear(into);
}

void order_search_end(graph *g) {
    unmark(g, &g->forward, NODE_FORWARD);
    unmark(g, &g->backward, NODE_BACKWARD);
}

/* ---- repair */

/* Places the nodes that reach the writer first, then those that the reader reaches; each group keeps its
 * order. */
static order_result place_both(graph *g) {
    uint32_t before = g->backward.count, after = g->forward.count;
    vec_clear(&g->sequence);
    if (!vec_room(g->env, &g->sequence, before + after)) return ORDER_NOMEM;
    sort_marks(g->backward.items, before);
    sort_marks(g->forward.items, after);
    memcpy(g->sequence.items, g->backward.items, before * sizeof(uint64_t));
    memcpy(g->sequence.items + before, g->forward.items, after * sizeof(uint64_t));
    g->sequence.count = before + after;
    return order_place(g) ? ORDER_DONE : ORDER_NOMEM;
}

order_result order_try(graph *g, node_id from, node_id to, bool kin) {
    order_search s = { .low = graph_node(g, to)->pos,
                       .high = graph_node(g, from)->pos,
                       .limit = UINT32_MAX,
                       .kin = kin };
    assert(s.low < s.high && !g->forward.count && !g->backward.count);
    order_result result = order_forward(g, &s, to, from);
    if (result == ORDER_DONE) result = order_backward(g, &s, from);
    if (result == ORDER_DONE) result = place_both(g);
    order_search_end(g);
    assert(result != ORDER_DONE || graph_node(g, from)->pos < graph_node(g, to)->pos);
    return result;
}

static void repair(graph *g, node_id from, node_id to) {
    if (graph_node(g, from)->pos < graph_node(g, to)->pos || back_edge_known(g, from, to)) return;
    g->repairs++;
    if (g->kin.count && order_try(g, from, to, true) == ORDER_DONE) return;
    switch (order_try(g, from, to, false)) {
    case ORDER_DONE: break;
    case ORDER_CYCLE:
        if (edge_exists(g, from, to)) order_break_cycle(g, from, to);
        break;
    case ORDER_NOMEM: /* out of order until graph_settle has tried again */
        order_note(g, graph_node(g, to)->pos, graph_node(g, from)->pos);
        back_edge_add(g, from, to);
        break;
    }
}

/* ---- what waits */

void order_defer(graph *g, node_id from, node_id to) {
    if (back_edge_known(g, from, to)) return;
    if (!vec_push(g->env, &g->pending, ((back_edge){ from, to }))) {
        g->back_lost = true; /* order_retry finds it */
        order_note(g, 0, UINT32_MAX);
        return;
    }
    graph_node(g, from)->flags |= NODE_BACK;
    graph_node(g, to)->flags |= NODE_BACK;
}

/* The positions that the waiting edges from the ith on span. */
static void span(const graph *g, uint32_t i, uint32_t *low, uint32_t *high) {
    *low = UINT32_MAX;
    *high = 0;
    for (; i < g->pending.count; i++) {
        uint32_t from = graph_node(g, g->pending.items[i].writer)->pos;
        uint32_t to = graph_node(g, g->pending.items[i].reader)->pos;
        if (from < to) continue;
        if (to < *low) *low = to;
        if (from > *high) *high = from;
    }
}

static uint64_t effort(const graph *g) { return g->edge_visits + g->repaired_nodes; }

void order_settle(graph *g) {
    uint32_t low, high;
    uint64_t limit = effort(g) + 4 * (uint64_t)g->order_count + 1024;
    for (uint32_t i = 0; i < g->pending.count; i++) {
        if (effort(g) > limit) { /* as much as sorting would have cost */
            span(g, i, &low, &high);
            if (low < high && order_sort(g, low, high)) break;
            limit = UINT64_MAX;
        }
        repair(g, g->pending.items[i].writer, g->pending.items[i].reader);
    }
    vec_clear(&g->pending);
}

void order_kin(graph *g, node_id parent, node_id child) {
    if (graph_node(g, parent)->pos > graph_node(g, child)->pos)
        (void)order_try(g, parent, child, true);
}
