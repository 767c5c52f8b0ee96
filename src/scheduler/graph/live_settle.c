/* live_settle.c -- demand is taken back, once for a whole batch of withdrawals.
 *
 * First by counting: a node without references goes dormant, and its writers lose those it gave.
 * In a graph without cycles that is all. A node of a cycle, though, may be left with references that all
 * come from nodes which it keeps live itself. So for nodes that lost a reference, kept some and
 * may lie on a cycle, the region upstream of them is derived anew:
 *
 *     take back all references given by the region
 *     a node that still has one is demanded from outside: it gives its references again, and so on
 *     the rest is dormant
 *
 * Every group of nodes that lost its last outside support contains a node that lost a reference and
 * lies on a cycle: the way by which support came in ends there. And every cycle lies among the
 * positions spanned by its back edges. So a graph of which nothing near is cyclic pays for counting
 * only, however many readers a hub has. */
#include "scheduler/graph/live.h"

#define SPANS_MAX 64 /* back edges looked at for each node; beyond, all may be cyclic */

/* What a walk over the references that a live node gives does with each. */
typedef void (*reference_fn)(graph *g, node_id writer);

static void each_reference(graph *g, node_id id, reference_fn fn) {
    const node *n = graph_node(g, id);
    if (!(n->flags & NODE_LINKED)) return; /* owed: it gave none */
    g->demand_visits++;
    for (uint32_t i = 0; i < n->read_count; i++) {
        writer_walk walk;
        writer w;
        writers_begin(&walk, g, node_reads_const(n)[i].key & KEY_PLACE);
        while (writers_next(&walk, &w)) {
            g->edge_visits++;
            if (w.node != id && !(w.node & WRITER_ENVELOPE)) fn(g, w.node);
        }
    }
}

/* The node has no references left, and those that it gave are taken back already. */
static void go_dormant(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(n->live_refs == 0);
    bit_clear(g->live, n->pos);
    n->flags = (n->flags & ~(uint32_t)NODE_OWED) | NODE_DORMANT;
    if (node_is_invalid(g, n)) graph_unlink(g, id);
}

/* ---- by counting */

static void take_back(graph *g, node_id writer_id) {
    node *w = graph_node(g, writer_id);
    assert(w->live_refs > 0 && node_is_live(g, w));
    if (--w->live_refs == 0) g->work[g->work_count++] = writer_id;
    else live_note_withdrawn(g, writer_id);
}

static void settle_counts(graph *g) {
    for (uint32_t i = 0; i < g->withdrawn_count; i++)
        if (graph_node(g, g->withdrawn[i])->live_refs == 0)
            g->work[g->work_count++] = g->withdrawn[i];
    while (g->work_count) {
        node_id id = g->work[--g->work_count];
        each_reference(g, id, take_back);
        go_dormant(g, id);
    }
}

/* ---- by deriving anew */

static bool may_be_cyclic(const graph *g, uint32_t pos) {
    if (SABOTAGED(g, LEAVE_OUT_WITHDRAWAL)) return false;
    if (g->back_lost || g->back_edges.count > SPANS_MAX) return true;
    for (uint32_t i = 0; i < g->back_edges.count; i++) {
        back_edge b = g->back_edges.items[i];
        uint32_t from = graph_node(g, b.reader)->pos, to = graph_node(g, b.writer)->pos;
        if (from <= pos && pos <= to) return true;
    }
    return false;
}

/* From here on `withdrawn` holds the region, each node once (NODE_REGION). */
static void into_region(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (n->flags & NODE_REGION) return;
    assert(node_is_live(g, n) && g->withdrawn_count < g->order_capacity);
    n->flags |= NODE_REGION;
    g->withdrawn[g->withdrawn_count++] = id;
}

static void choose_suspects(graph *g) {
    uint32_t count = g->withdrawn_count;
    g->withdrawn_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        node_id id = g->withdrawn[i];
        node *n = graph_node(g, id);
        n->flags &= ~(uint32_t)NODE_WITHDRAWN;
        if (node_is_live(g, n) && may_be_cyclic(g, n->pos)) into_region(g, id);
    }
}

static void suspend(graph *g, node_id writer_id) {
    assert(graph_node(g, writer_id)->live_refs > 0);
    graph_node(g, writer_id)->live_refs--;
    into_region(g, writer_id);
}

static void rescue(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (!(n->flags & NODE_REGION)) return;
    n->flags &= ~(uint32_t)NODE_REGION;
    g->work[g->work_count++] = id;
}

static void give_again(graph *g, node_id writer_id) {
    graph_node(g, writer_id)->live_refs++;
    rescue(g, writer_id);
}

static void settle_region(graph *g) {
    for (uint32_t i = 0; i < g->withdrawn_count; i++) each_reference(g, g->withdrawn[i], suspend);
    for (uint32_t i = 0; i < g->withdrawn_count; i++)
        if (graph_node(g, g->withdrawn[i])->live_refs > 0) rescue(g, g->withdrawn[i]);
    while (g->work_count) each_reference(g, g->work[--g->work_count], give_again);

    uint32_t count = g->withdrawn_count;
    g->withdrawn_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        node *n = graph_node(g, g->withdrawn[i]);
        if (!(n->flags & NODE_REGION)) continue;
        n->flags &= ~(uint32_t)NODE_REGION;
        go_dormant(g, g->withdrawn[i]);
    }
}

void graph_settle_slow(graph *g) {
    assert(!g->work_count);
    order_settle(g); /* first: which nodes are cyclic is asked next */
    live_tidy_withdrawn(g);
    settle_counts(g);
    choose_suspects(g);
    settle_region(g);
    order_retry(g);
}
