/* check.c -- what must hold between passes, looked at node by node; for debug builds.
 *
 *   I1   a clean node has seen what it reads: none of it has changed since its last run
 *   I2   standing demand shows in liveness: effects, materialisers, provisional and requested nodes
 *   I5   a run's own changes are older than the end of that run, so I1 holds for them as well
 *   I6   no node ran more often in a pass than there are sweeps; an invalid live node that is not eligible
 *        waits for something that will make it eligible
 *   I9   all edges go upward, or are known to close a cycle (graph_check)
 *
 * Lists and counters of the scheduler agree with the flags of the nodes; those of events and of the outbox
 * are checked by events_check. The loops are plain: O(nodes + reads), but for graph_check,
 * which looks at each reader list once for each of its readers. */
#include "scheduler/settle/settle.h"

#ifndef NDEBUG

/* How many nodes are in a state that scheduler has a list or a counter for. */
typedef struct census {
    uint32_t effects, computations, materialisers;
    uint32_t suspended, provisional, requested, backed, timers, unpromoted, awaiting;
} census;

/* ---- one node */

/* Reads by shape are left out: not every change says whether it was one of shape. */
static bool has_seen_everything(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        if (reads[i].key & KEY_SHAPE) continue;
        if (place_at(&s->r->places, reads[i].key & KEY_PLACE)->rev > n->ran_rev) return false;
    }
    return true;
}

/* I1 does not hold for a node with a change group, which is not told of that group's commits, and for a
 * suspended run, which is not over. */
static bool must_have_seen(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (node_is_invalid(&s->graph, n) || (n->flags & (NODE_RUNNING | NODE_SUSPENDED))) return false;
    return !c || !c->group;
}

static void check_flags(const scheduler *s, node_id id, const node *n) {
    const uint32_t standing = NODE_EFFECT | NODE_MATERIALISER | NODE_PROVISIONAL | NODE_DEMANDED;
    assert(!(n->flags & standing) || node_is_live(&s->graph, n)); /* I2 */
    assert(!(n->flags & NODE_PROMOTED) || (n->flags & NODE_MATERIALISER));
    assert(!(n->flags & NODE_RUNNING) || (n->flags & NODE_SUSPENDED));
    assert(!(n->flags & NODE_EPHEMERAL) || (n->flags & NODE_EFFECT));
    assert(!(n->flags & NODE_TIMED) || (n->flags & NODE_EFFECT));
    assert(!(n->flags & NODE_STARVED) || s->starved);
    assert(!(n->flags & NODE_ROOT_OUT) || (n->output && !(n->flags & NODE_EFFECT)));
    assert(!(n->flags & NODE_TOLD_WHY) || (n->flags & NODE_CAUSED));
    assert(!(n->flags & NODE_CAUSED) == !(id < s->caused_capacity && s->caused[id]));
    assert(!(n->flags & NODE_VISITED));
    assert(n->fn && s->sides[id].generation);
    assert((n->flags & NODE_NEVER_RAN) || n->ran_rev <= s->r->rev);
    (void)standing, (void)id;
}

/* What a node waits for is in its cold record, and the record is in the list of that. */
static void check_waits(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    const uint32_t needs = NODE_GATED | NODE_SUSPENDED | NODE_BLOCKED;
    assert(c || !(n->flags & needs));
    (void)needs;
    if (!c) return;
    assert(&s->graph.nodes[c->node] == n);
    assert(!c->missing == !list_linked(&c->awaiting));
    assert(!c->missing || (n->flags & NODE_WAITING));
    assert(!(n->flags & NODE_SUSPENDED) == !c->run);
    assert(!c->run || c->run->node == c->node);
    assert(!(n->flags & NODE_BLOCKED) == !c->blocked_by);
    assert(!c->blocked_by == !list_linked(&c->blocked));
}

static void check_gate(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (!c || !binheap_linked(&c->gate.timer)) return;
    assert(!node_is_eligible(&s->graph, n));
    assert(c->gate.timer.key == gates_eligible_at(s, n));
}

/* I6, P8: a node that is skipped is not forgotten. */
static bool waits_for_something(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (n->flags & (NODE_WAITING | NODE_SUSPENDED | NODE_BLOCKED | NODE_STARVED)) return true;
    return c && binheap_linked(&c->gate.timer);
}

static void check_skipped(const scheduler *s, const node *n, census *all) {
    if (!node_is_invalid(&s->graph, n) || !node_is_live(&s->graph, n)) return;
    if (node_is_eligible(&s->graph, n) || waits_for_something(s, n)) return;
    assert((n->flags & NODE_MATERIALISER) && !(n->flags & NODE_PROMOTED));
    all->unpromoted++;
}

static void count_node(const scheduler *s, const node *n, census *all) {
    const cold *c = cold_of(s, n);
    bool effect = n->flags & NODE_EFFECT;
    all->effects += effect;
    all->computations += !effect;
    all->materialisers += (n->flags & NODE_MATERIALISER) != 0;
    all->suspended += (n->flags & NODE_SUSPENDED) != 0;
    all->provisional += (n->flags & NODE_PROVISIONAL) != 0;
    all->requested += (n->flags & (NODE_DEMANDED | NODE_EPHEMERAL)) != 0;
    all->backed += c && c->gate.backed;
    all->awaiting += c && c->missing;
    all->timers += c && binheap_linked(&c->gate.timer);
}

/* ---- all of them */

/* Lists may hold nodes that are gone, and a node twice whose id is used again: they are never shorter than
 * the number of nodes that have to be in them. */
static void check_census(const scheduler *s, const census *all) {
    assert(all->effects == s->effects && all->computations == s->computations);
    assert(all->materialisers == s->materialisers);
    assert(all->suspended == s->suspended && all->awaiting == s->awaiting_count);
    assert(all->provisional <= s->provisional.count && all->requested <= s->requested.count);
    assert(all->backed <= s->backed.count);
    assert(all->timers == binheap_count(&s->timers));
    assert(all->unpromoted <= s->waiting.count);
    binheap_check(&s->timers);
    (void)all;
}

/* Records of nodes and cold records are in use, or in their list of free ones. */
static void check_records(const scheduler *s, uint32_t nodes) {
    uint32_t unused = 0, cold_unused = 0, cold_used = 0, named = 0;
    for (node_id id = s->free_nodes; id; id = s->graph.nodes[id].cold) {
        assert(id < s->graph.node_count && s->graph.nodes[id].flags == NODE_REMOVED);
        unused++;
    }
    for (uint32_t i = s->colds_free; i; i = s->colds.items[i]->next_free) {
        assert(i < s->colds.count && !s->colds.items[i]->node);
        cold_unused++;
    }
    for (uint32_t i = 1; i < s->colds.count; i++) {
        node_id of = s->colds.items[i]->node;
        assert(!of || (of < s->graph.node_count && s->graph.nodes[of].cold == i));
        cold_used += of != 0;
    }
    for (node_id id = 1; id < s->graph.node_count; id++) {
        assert(!node_own_name(s, id) || !(s->graph.nodes[id].flags & NODE_REMOVED));
        named += node_own_name(s, id) != NULL;
    }
    assert(!s->graph.node_count || nodes + unused + 1 == s->graph.node_count);
    assert(cold_unused + cold_used + 1 == s->colds.count);
    assert(table_count(&s->names) <= named); /* children of a node that is gone are not found */
    (void)nodes, (void)unused, (void)cold_unused, (void)cold_used, (void)named;
}

/* Suspended runs, and the nodes that wait for their end. Runs of nodes that are gone are in the lists, too. */
static uint32_t check_runs(const scheduler *s, const list *runs) {
    uint32_t of_nodes = 0;
    LIST_FOR (at, runs) {
        const hd_run *run = LIST_ENTRY(at, hd_run, link);
        node_id id = registry_get(s, (hd_node){ run->node, run->generation });
        assert(run->s == s && run->tx && run->tx->owner == run);
        assert(!id || cold_of(s, node_of(s, id))->run == run);
        LIST_FOR (waits, &run->blocked) {
            const cold *c = LIST_ENTRY(waits, cold, blocked);
            assert(c->blocked_by == run && (node_of(s, c->node)->flags & NODE_BLOCKED));
            (void)c;
        }
        of_nodes += id != 0;
    }
    return of_nodes;
}

static void check_nodes(const scheduler *s) {
    census all = { 0 };
    for (node_id id = 1; id < s->graph.node_count; id++) {
        const node *n = &s->graph.nodes[id];
        if (n->flags & NODE_REMOVED) continue;
        check_flags(s, id, n);
        check_waits(s, n);
        check_gate(s, n);
        check_skipped(s, n, &all);
        count_node(s, n, &all);
        if (must_have_seen(s, n)) assert(has_seen_everything(s, n));
    }
    check_census(s, &all);
    check_records(s, all.effects + all.computations);
    assert(check_runs(s, &s->suspensions) + check_runs(s, &s->resumed) == all.suspended);
}

static void check_pass(const scheduler *s) {
    assert(!s->iteration && !s->running && !s->concluding && !s->cancelled && !s->rechecking);
    assert(!s->upstream_walk.count && !s->rt->in_run);
}

void settle_check(const scheduler *s) {
    uint32_t nodes = s->graph.node_count;
    check_pass(s);
    if (nodes >= CHECKED_NODES && s->pass % (nodes / (CHECKED_NODES / 32))) return;
    if (nodes < CHECKED_NODES) graph_check(&s->graph);
    events_check(s);
    check_nodes(s);
}

#endif
