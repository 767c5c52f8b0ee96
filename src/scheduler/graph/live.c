/* live.c -- demand is granted.
 *
 *     live(N)  <=>  N has a standing demand, or a live node has a linked read that overlaps one of N's
 *                   outputs                                                     (spec 5.1)
 *
 * live_refs counts exactly that: one for each standing demand, and one for each pair of a linked read
 * of another live node and an output of N that are related. The first reference makes a node live,
 * and a live node gives references to its writers; so demand runs upstream along a stack, visiting
 * each node that becomes live once. A dormant invalid node that becomes live is linked first: its
 * reads were out of the index, and they are what it demands.
 *
 * The way back is in live_settle.c: there a count alone does not tell, because of cycles. */
#include "scheduler/graph/live.h"

void live_wake(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(n->live_refs > 0);
    if (node_is_live(g, n)) return;
    bit_set(g->live, n->pos);
    n->flags &= ~(uint32_t)NODE_DORMANT;
    graph_raise(g, n->pos);
    assert(g->work_count < g->order_capacity);
    g->work[g->work_count++] = id;
}

void live_read_added_slow(graph *g, node_id id, place_id p, bool live) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, g, p);
    while (writers_next(&walk, &w)) {
        node_id writer_id = w.node & ~WRITER_ENVELOPE;
        g->edge_visits++;
        if (writer_id == id) continue;
        order_edge(g, writer_id, id);
        if (!live || w.node & WRITER_ENVELOPE) continue;
        graph_node(g, writer_id)->live_refs++;
        live_wake(g, writer_id);
    }
}

void live_read_gone(graph *g, node_id id, place_id p, bool live) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, g, p);
    while (writers_next(&walk, &w)) {
        node_id writer_id = w.node & ~WRITER_ENVELOPE;
        g->edge_visits++;
        if (writer_id == id) continue;
        order_edge_gone(g, writer_id, id);
        if (!live || w.node & WRITER_ENVELOPE) continue;
        assert(graph_node(g, writer_id)->live_refs > 0);
        graph_node(g, writer_id)->live_refs--;
        live_note_withdrawn(g, writer_id);
    }
}

void live_drain_slow(graph *g) {
    while (g->work_count) {
        node_id id = g->work[--g->work_count];
        node *n = graph_node(g, id);
        g->demand_visits++;
        if (!(n->flags & NODE_LINKED) && readers_enter(g, id)) {
            assert(node_is_invalid(g, n) || n->flags & NODE_RUNNING);
            n->flags |= NODE_OWED;
            continue;
        }
        for (uint32_t i = 0; i < n->read_count; i++)
            live_read_added(g, id, node_reads(n)[i].key & KEY_PLACE, true);
    }
}

/* The entry of a node that was removed has lost its flag. If its record is used again, the new node may be
 * in the list twice. */
void live_tidy_withdrawn(graph *g) {
    uint32_t kept = 0;
    if (!g->withdrawn_left) return;
    for (uint32_t i = 0; i < g->withdrawn_count; i++) {
        node *n = graph_node(g, g->withdrawn[i]);
        if (!(n->flags & NODE_WITHDRAWN)) continue;
        n->flags &= ~(uint32_t)NODE_WITHDRAWN;
        g->withdrawn[kept++] = g->withdrawn[i];
    }
    for (uint32_t i = 0; i < kept; i++) graph_node(g, g->withdrawn[i])->flags |= NODE_WITHDRAWN;
    g->withdrawn_count = kept;
    g->withdrawn_left = false;
}

void live_note_withdrawn(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (n->flags & NODE_WITHDRAWN || !node_is_live(g, n)) return;
    if (g->withdrawn_count == g->order_capacity) live_tidy_withdrawn(g);
    n->flags |= NODE_WITHDRAWN;
    assert(g->withdrawn_count < g->order_capacity);
    g->withdrawn[g->withdrawn_count++] = id;
}

void live_forget(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (!(n->flags & NODE_WITHDRAWN)) return;
    n->flags &= ~(uint32_t)NODE_WITHDRAWN;
    g->withdrawn_left =
        true; /* its entry stays until live_tidy_withdrawn: no search for each node */
}

/* ---- for others */

void graph_demand(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (!n->live_refs++ && !n->read_count && !(n->flags & (NODE_LINKED | NODE_OWED))) {
        live_wake_alone(g, n);
        return;
    }
    live_wake(g, id);
    live_drain(g);
}

void graph_withdraw(graph *g, node_id id) {
    assert(graph_node(g, id)->live_refs > 0);
    graph_node(g, id)->live_refs--;
    live_note_withdrawn(g, id);
}
