/* settle_check.c -- what must hold between passes, looked at node by node; for debug builds.
 *
 *   I1   a clean node has seen what it reads: none of it has changed since its last run
 *   I2   only who is live, or was, has run or is about to; standing demand shows in liveness
 *   I5   a run's own changes are older than the end of that run, so I1 holds for them as well
 *   I6   nobody ran more often in a pass than there are sweeps
 *   I9   all edges go upward, or are known to close a cycle (graph_check)
 *
 * The loops are plain: O(nodes + reads). */
#include "scheduler/settle.h"

#ifndef NDEBUG

/* Reads by shape are left out: that a change was none of shape is not written down everywhere. */
static bool has_seen_everything(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        if (reads[i].key & KEY_SHAPE) continue;
        if (place_at(&s->r->places, reads[i].key & KEY_PLACE)->rev > n->ran_rev) return false;
    }
    return true;
}

/* A commit of its change group does not concern a node, and a suspended run is not over. */
static bool must_have_seen(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (node_is_invalid(&s->graph, n) || (n->flags & (NODE_RUNNING | NODE_SUSPENDED))) return false;
    return !c || !c->group;
}

static void check_demand(const scheduler *s, const node *n) {
    bool standing = n->flags & (NODE_EFFECT | NODE_MATERIALISER | NODE_PROVISIONAL | NODE_DEMANDED);
    assert(!standing || node_is_live(&s->graph, n));
    assert(!(n->flags & NODE_PROMOTED) || (n->flags & NODE_MATERIALISER));
    assert(!(n->flags & NODE_RUNNING) || (n->flags & NODE_SUSPENDED));
}

static void check_gates(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (!c) return;
    assert(s->graph.nodes[c->node].cold == n->cold);
    /* Who waits for a time has a timer, or it would wait for ever. */
    if (binheap_linked(&c->gate.timer)) assert(!node_is_eligible(&s->graph, n));
}

void settle_check(const scheduler *s) {
    graph_check(&s->graph);
    if (s->events) lanes_check(s->events);
    for (uint32_t i = 0; i < s->repeats.count; i++)
        assert(s->repeats.items[i].count < ITERATIONS_MAX); /* I6 */
    for (node_id id = 1; id < s->graph.node_count; id++) {
        const node *n = &s->graph.nodes[id];
        if (n->flags & NODE_REMOVED) continue;
        check_demand(s, n);
        check_gates(s, n);
        if (must_have_seen(s, n)) assert(has_seen_everything(s, n));
    }
}

#else

void settle_check(const scheduler *s) { (void)s; }

#endif
