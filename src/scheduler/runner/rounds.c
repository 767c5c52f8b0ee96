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

typedef struct trail {
    scheduler *s;
    node_id from;
    bool found;
} trail;

/* Without memory the search does not go beyond this node. */
static void enter(trail *t, node_id id) {
    node *n = node_of(t->s, id);
    if (n->flags & (NODE_VISITED | NODE_REMOVED)) return;
    if (vec_push(t->s->env, &t->s->upstream_walk, id)) n->flags |= NODE_VISITED;
}

/* Enters the nodes that write the place, and the one that changed it last. */
static void enter_writers(trail *t, place_id at) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, &t->s->graph, at);
    while (writers_next(&walk, &w)) enter(t, w.node & ~WRITER_ENVELOPE);
    node_id author = invalidation_author(t->s, at);
    if (author) enter(t, author);
}

/* Calls `look` for the nodes that were entered, and for those that it enters, until something is found. */
static bool follow(trail *t, void (*look)(trail *t, node_id id)) {
    scheduler *s = t->s;
    for (uint32_t i = 0; i < s->upstream_walk.count && !t->found; i++)
        look(t, s->upstream_walk.items[i]);
    for (uint32_t i = 0; i < s->upstream_walk.count; i++)
        node_of(s, s->upstream_walk.items[i])->flags &= ~(uint32_t)NODE_VISITED;
    vec_clear(&s->upstream_walk);
    return t->found;
}

/* What caused the node's last run; what has changed since then as well, as its place may have changed twice. */
static void look_at_causes(trail *t, node_id id) {
    const node *n = node_of(t->s, id);
    const edge *reads = node_reads_const(n);
    uint64_t since = causes_last_since(n);
    t->found = id == t->from;
    for (uint32_t i = 0; i < n->read_count && !t->found; i++)
        if (causes_changed_at(t->s, reads[i].key) > since)
            enter_writers(t, reads[i].key & KEY_PLACE);
}

static bool leads_back(scheduler *s, node_id id, const place_vec *causes) {
    trail t = { s, id, false };
    assert(!s->upstream_walk.count);
    for (uint32_t i = 0; i < causes->count; i++) enter_writers(&t, causes->items[i]);
    return follow(&t, look_at_causes);
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

/* Enters the writers of what the node reads; what a suspended run has read is not registered yet. */
static void enter_upstream(trail *t, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) enter_writers(t, reads[i].key & KEY_PLACE);
    if (!(n->flags & NODE_SUSPENDED)) return;
    const hd_tx *tx = cold_of(t->s, n)->run->tx;
    for (uint32_t i = 0; i < tx->reads.count; i++) enter_writers(t, tx->reads.items[i] & KEY_PLACE);
}

static void look_upstream(trail *t, node_id id) {
    const node *n = node_of(t->s, id);
    t->found = node_is_invalid(&t->s->graph, n);
    if (!t->found) enter_upstream(t, n);
}

bool runner_is_settled(scheduler *s, node_id id) {
    trail t = { s, id, false };
    assert(!s->upstream_walk.count);
    if (!node_is_live(&s->graph, node_of(s, id)))
        return !node_is_invalid(&s->graph, node_of(s, id));
    enter(&t, id);
    return !follow(&t, look_upstream);
}

static void look_for_unsettled(trail *t, node_id id) {
    const node *n = node_of(t->s, id);
    t->found = gates_is_unsettled(t->s, n);
    if (!t->found) enter_upstream(t, n);
}

bool runner_reads_unsettled(scheduler *s, node_id id) {
    trail t = { s, id, false };
    assert(!s->upstream_walk.count);
    enter(&t, id);
    return follow(&t, look_for_unsettled);
}
