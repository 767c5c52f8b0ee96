/* rounds.c -- does a node go round in a cycle with asynchronous nodes?
 *
 * A node in a cycle uses up the runs of a pass, and settle makes it wait (7.7). Where a run of the cycle is
 * suspended, the pass ends there: the node itself is suspended, or it waits for a suspended node upstream. So
 * these runs are counted from pass to pass (gate.rounds). A node that is busy because the program gives it work
 * must not be slowed down for that; only a run counts whose causes lead back to the node's own last result:
 *
 *     causes of the run --> the nodes that wrote them --> causes of their last runs --> ... --> the node
 *
 * Only what has changed is followed. Effects do not declare what they write; which node changed a place last
 * is written down as soon as a run has been suspended for the first time (scheduler.authors). */
#include "scheduler/runner/runner.h"

#include "scheduler/graph/writers.h"

/* The nodes that a search has entered are in scheduler.upstream_walk, marked NODE_VISITED. Without memory the
 * search does not go beyond a node. */
static void enter(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    if (n->flags & (NODE_VISITED | NODE_REMOVED)) return;
    if (vec_push(s->env, &s->upstream_walk, id)) n->flags |= NODE_VISITED;
}

/* Enters the nodes that write the place, and the one that changed it last. */
static void enter_writers(scheduler *s, place_id at) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, &s->graph, at);
    while (writers_next(&walk, &w)) enter(s, w.node & ~WRITER_ENVELOPE);
    node_id author = invalidation_author(s, at);
    if (author) enter(s, author);
}

static void end_search(scheduler *s) {
    for (uint32_t i = 0; i < s->upstream_walk.count; i++) {
        assert(node_of(s, s->upstream_walk.items[i])->flags & NODE_VISITED);
        node_of(s, s->upstream_walk.items[i])->flags &= ~(uint32_t)NODE_VISITED;
    }
    vec_clear(&s->upstream_walk);
}

/* ---- rounds */

/* Enters what caused the node's last run; what has changed since then as well, as its place may have changed
 * twice. */
static void enter_causes(scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    uint64_t since = causes_last_since(n);
    assert(since <= n->ran_rev && n->ran_rev <= s->r->rev);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (causes_changed_at(s, reads[i].key) > since) enter_writers(s, reads[i].key & KEY_PLACE);
}

static bool leads_back(scheduler *s, node_id id, const place_vec *causes) {
    bool found = false;
    assert(!s->upstream_walk.count);
    for (uint32_t i = 0; i < causes->count; i++) enter_writers(s, causes->items[i]);
    for (uint32_t i = 0; i < s->upstream_walk.count && !found; i++) {
        found = s->upstream_walk.items[i] == id;
        enter_causes(s, node_of(s, s->upstream_walk.items[i]));
    }
    end_search(s);
    return found;
}

/* Most graphs have no cycle: then nothing is followed. */
void runner_note_round(scheduler *s, node_id id, const place_vec *causes) {
    const graph *g = &s->graph;
    const node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    if (!(g->back_edges.count || g->back_lost || s->author_capacity) || !c) return;
    if (c->gate.round_rev == n->ran_rev) return;
    c->gate.round_rev = n->ran_rev;
    if (leads_back(s, id, causes)) gates_went_round(s, id);
}

/* ---- upstream */

/* Enters the writers of what the node reads; what a suspended run has read is not registered yet. */
static void enter_upstream(scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) enter_writers(s, reads[i].key & KEY_PLACE);
    if (!(n->flags & NODE_SUSPENDED)) return;
    const hd_tx *tx = cold_of(s, n)->run->tx;
    assert(tx != s->tx && (tx->flags & TX_EPOCH));
    for (uint32_t i = 0; i < tx->reads.count; i++) enter_writers(s, tx->reads.items[i] & KEY_PLACE);
}

node_id runner_find_upstream(scheduler *s, node_id id, runner_is_fn is) {
    node_id found = 0;
    assert(!s->upstream_walk.count);
    enter(s, id);
    for (uint32_t i = 0; i < s->upstream_walk.count && !found; i++) {
        const node *n = node_of(s, s->upstream_walk.items[i]);
        if (is(s, n)) found = s->upstream_walk.items[i];
        else enter_upstream(s, n);
    }
    end_search(s);
    return found;
}

static bool is_invalid(const scheduler *s, const node *n) { return node_is_invalid(&s->graph, n); }

bool runner_is_settled(scheduler *s, node_id id) {
    if (!node_is_live(&s->graph, node_of(s, id))) return !is_invalid(s, node_of(s, id));
    return !runner_find_upstream(s, id, is_invalid);
}

bool runner_reads_unsettled(scheduler *s, node_id id) {
    return runner_find_upstream(s, id, gates_is_unsettled) != 0;
}
