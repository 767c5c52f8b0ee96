/* upstream.c -- is everything that a run reads up to date?
 *
 * Nodes run in the order of their positions, so the writers of what a run is known to read have run
 * before it. Seven kinds of node upstream can be out of date all the same:
 *
 *   suspended     its run has begun, and its result is still to come: the reader is blocked until then
 *   waiting       its run met a document that is still loading (late.c): the reader waits for the same document
 *   refused       the store did not take its result, which is withdrawn, and its retry is delayed: the reader waits
 *                 as long, for the first ten retries in a row
 *   in no hurry   an invalid materialiser waits until a pass has no other work: it is promoted, and the sweep goes back
 *                 to it (4.3, rule 2)
 *   led           another process computes its result, which is on its way (lead.c): the reader waits as long
 *   behind        it became invalid below the cursor, because an effect wrote what it reads: the sweep
 *                 passes over the reader, and the next sweep runs both
 *   discovered    the run reads its output for the first time: it was not demanded, or stands above. The
 *                 read fails with HD_PENDING, the run is set aside, and runs again after that node
 *
 * A run that went on would see a mixture: some inputs from before a change, some from after it. Cycles are
 * the exception: along an edge that points down no node waits. So a node waits for nodes below it, and the
 * lowest node waits for none.
 *
 * The search goes from the reads to their writers, to what those read, and so on, down to the lowest
 * position at which a live node is out of date. Nodes upstream of which all is up to date are remembered
 * until something may have changed that (`upstream_epoch`), so that a sweep looks at each edge once, however
 * many nodes run in it. */
#include "scheduler/runner/runner.h"

#include "base/env.h"
#include "scheduler/graph/writers.h"

typedef struct search {
    scheduler *s;
    node_id reader;
    uint32_t floor; /* no live node below this position is out of date */
    node_id found;  /* the first that is out of date; 0: none */
} search;

/* ---- the search */

/* Positions move when edges come; the lowest suspended one is looked for again then. */
static uint32_t lowest_suspended(scheduler *s) {
    if (!s->suspended) return UINT32_MAX;
    if (s->upstream_moves == s->graph.repaired_nodes) return s->suspended_low;
    assert(!list_empty(&s->suspensions) || !list_empty(&s->resumed));
    s->upstream_moves = s->graph.repaired_nodes;
    s->suspended_low = UINT32_MAX;
    list *lists[] = { &s->suspensions, &s->resumed };
    for (int i = 0; i < 2; i++)
        LIST_FOR (at, lists[i]) {
            const hd_run *run = LIST_ENTRY(at, hd_run, link);
            node_id id = registry_get(s, (hd_node){ run->node, run->generation });
            if (id && node_of(s, id)->pos < s->suspended_low)
                s->suspended_low = node_of(s, id)->pos;
        }
    return s->suspended_low;
}

/* The lowest position of a materialiser that waits for idle priority, and is invalid or was. */
static uint32_t lowest_waiting(scheduler *s) {
    if (!s->waiting.count) return UINT32_MAX;
    if (s->waiting_moves == s->graph.repaired_nodes) return s->waiting_low;
    s->waiting_moves = s->graph.repaired_nodes;
    s->waiting_low = UINT32_MAX;
    for (uint32_t i = 0; i < s->waiting.count; i++) {
        const node *n = &s->graph.nodes[s->waiting.items[i]];
        if (!(n->flags & NODE_REMOVED) && n->pos < s->waiting_low) s->waiting_low = n->pos;
    }
    return s->waiting_low;
}

static uint32_t lower(uint32_t a, uint32_t b) { return a < b ? a : b; }

static search search_for(scheduler *s, node_id id) {
    uint32_t runnable = graph_lowest_runnable(&s->graph);
    assert(!s->upstream_walk.count);
    uint32_t floor = lower(runnable, lower(lowest_suspended(s), lowest_waiting(s)));
    bool anywhere = s->refused_until || s->led.count || s->awaiting_count;
    return (search){ s, id, anywhere ? 0 : floor, 0 };
}

static bool is_outdated(const scheduler *s, const node *n) {
    const graph *g = &s->graph;
    if (n->flags & (NODE_SUSPENDED | NODE_WAITING)) return true;
    return node_is_invalid(g, n) &&
           (node_is_eligible(g, n) || gates_is_refused(s, n) || gates_is_led(s, n));
}

/* Whether nothing upstream of the node is known to be out of date, without a search. */
static bool is_checked(const search *q, node_id id, const node *n) {
    if (!(n->flags & NODE_DORMANT) && n->pos < q->floor) return true;
    return id < q->s->checked_capacity && q->s->checked[id] == q->s->upstream_epoch;
}

/* A materialiser that is out of date runs now. The sweep goes back to it; if a gate holds it, nothing waits for it. */
static void promote(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    if (!(n->flags & NODE_MATERIALISER) || (n->flags & NODE_PROMOTED)) return;
    if (!node_is_invalid(&s->graph, n) || SABOTAGED(s, LEAVE_OUT_PROMOTION)) return;
    n->flags |= NODE_PROMOTED;
    gates_apply(s, id, s->clock_ns ? s->clock_ns : env_now_ns(s->env));
    if (node_is_eligible(&s->graph, n) && n->pos < s->cursor) s->cursor = n->pos;
}

/* Looks at a writer of what a node at position `below` reads; of a materialiser: that may write there. */
static void visit(search *q, writer w, uint32_t below) {
    node_id id = w.node & ~WRITER_ENVELOPE;
    node *n = node_of(q->s, id);
    assert(!q->found && !(n->flags & NODE_REMOVED));
    if (id == q->reader || n->pos >= below || (n->flags & NODE_VISITED)) return;
    promote(q->s, id);
    if (is_outdated(q->s, n)) q->found = id;
    if (q->found || is_checked(q, id, n)) return;
    /* Without memory the search does not go beyond this node, and the run may see a mixture. */
    if (vec_push(q->s->env, &q->s->upstream_walk, id)) n->flags |= NODE_VISITED;
}

static void visit_writers(search *q, place_id at, uint32_t below) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, &q->s->graph, at);
    while (!q->found && writers_next(&walk, &w)) visit(q, w, below);
}

static void visit_reads(search *q, node_id id) {
    const node *n = node_of(q->s, id);
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count && !q->found; i++)
        visit_writers(q, reads[i].key & KEY_PLACE, n->pos);
}

/* Makes room in `checked` for all nodes. False: no memory, so nothing is remembered. */
static bool room_for_checked(scheduler *s) {
    uint32_t old = s->checked_capacity, capacity = s->graph.node_capacity;
    if (old >= s->graph.node_count) return true;
    uint64_t *checked =
        env_resize(s->env, s->checked, old * sizeof *checked, capacity * sizeof *checked);
    if (!checked) return false;
    memset(checked + old, 0, (capacity - old) * sizeof *checked);
    s->checked = checked;
    s->checked_capacity = capacity;
    assert(capacity >= s->graph.node_count);
    return true;
}

/* Follows what the first visits have found, and forgets the marks. Returns the node that is out of date;
 * 0: none. */
static node_id search_on(search *q) {
    scheduler *s = q->s;
    for (uint32_t i = 0; i < s->upstream_walk.count && !q->found; i++)
        visit_reads(q, s->upstream_walk.items[i]);
    bool remember = !q->found && s->upstream_walk.count && room_for_checked(s);
    for (uint32_t i = 0; i < s->upstream_walk.count; i++) {
        node_id id = s->upstream_walk.items[i];
        assert(node_of(s, id)->flags & NODE_VISITED);
        node_of(s, id)->flags &= ~(uint32_t)NODE_VISITED;
        if (remember) s->checked[id] = s->upstream_epoch;
    }
    vec_clear(&s->upstream_walk);
    return q->found;
}

static node_id search_reads(scheduler *s, node_id id) {
    search q = search_for(s, id);
    visit_reads(&q, id);
    return search_on(&q);
}

/* ---- nodes that wait for a suspended run */

static void block(scheduler *s, node_id id, hd_run *run) {
    cold *c = registry_cold(s, id);
    assert(run && list_linked(&run->link));
    if (!c) {
        gates_starve(s, id);
        return;
    }
    assert(!(node_of(s, id)->flags & NODE_BLOCKED) && !list_linked(&c->blocked));
    c->blocked_by = run;
    list_push_back(&run->blocked, &c->blocked);
    node_of(s, id)->flags |= NODE_BLOCKED;
    if (causes_of_next(s, id, &s->told) == HD_OK) runner_note_round(s, id, &s->told);
    gates_apply(s, id, s->clock_ns ? s->clock_ns : env_now_ns(s->env));
}

void runner_unblock(scheduler *s, hd_run *run) {
    while (!list_empty(&run->blocked)) {
        cold *c = LIST_ENTRY(list_pop_front(&run->blocked), cold, blocked);
        assert(c->blocked_by == run && (node_of(s, c->node)->flags & NODE_BLOCKED));
        c->blocked_by = NULL;
        node_of(s, c->node)->flags &= ~(uint32_t)NODE_BLOCKED;
        gates_apply(s, c->node, env_now_ns(s->env));
    }
}

void runner_unblock_all(scheduler *s) {
    assert(s->unblock && !s->running);
    s->unblock = false;
    LIST_FOR (at, &s->suspensions) runner_unblock(s, LIST_ENTRY(at, hd_run, link));
    LIST_FOR (at, &s->resumed) runner_unblock(s, LIST_ENTRY(at, hd_run, link));
}

/* ---- before a run */

bool runner_wait_upstream(scheduler *s, node_id id) {
    node_id first = search_reads(s, id);
    if (!first) return false;
    const node *n = node_of(s, first);
    assert(first != id && is_outdated(s, n));
    if (n->flags & NODE_SUSPENDED) block(s, id, cold_of(s, n)->run);
    else if (n->flags & NODE_WAITING) runner_wait_for(s, id, cold_of(s, n)->missing);
    else if (gates_is_refused(s, n)) gates_wait_with(s, id, cold_of(s, n));
    else if (gates_is_led(s, n) && !gates_await_lead(s, id, cold_of(s, n)->gate.lead_at))
        gates_starve(s, id);
    return true;
}

/* ---- during a run */

static bool is_registered(const node *n, uint32_t key) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (((reads[i].key ^ key) & KEY_PLACE) == 0) return true;
    return false;
}

/* The node in whose run the transaction reads; 0: it is not a node's. */
static node_id reader_of(const scheduler *s, const hd_tx *tx) {
    if (tx == s->tx) return s->running;
    const hd_run *run = tx->flags & TX_EPOCH ? tx->owner : NULL;
    assert(!run || run->tx == tx);
    return run ? registry_get(s, (hd_node){ run->node, run->generation }) : 0;
}

/* Most new reads: the document has one writer, which is live, clean and stands below the reader, where the
 * sweep has run all that is runnable. */
static bool is_in_order(const scheduler *s, const node *n, place_id doc) {
    const place *p = place_at(&s->r->places, doc);
    if (s->suspended | s->behind | s->led.count | s->awaiting_count) return false;
    if (s->refused_until || !s->iteration) return false;
    if (s->graph.materialisers_invalid) return false;
    if (p->doc.flags & DOC_MULTI_WRITER) return false;
    const node *w = node_of(s, p->doc.writer);
    return w->pos < n->pos && !(w->flags & NODE_DORMANT) && !node_is_invalid(&s->graph, w);
}

/* Most reads that fail: the document is the output of one node, and that is out of date itself. */
static bool is_output_outdated(const scheduler *s, node_id id, place_id doc) {
    const place *p = place_at(&s->r->places, doc);
    if ((p->doc.flags & DOC_MULTI_WRITER) || p->doc.writer == id) return false;
    const node *w = node_of(s, p->doc.writer);
    return (w->flags & (NODE_ROOT_OUT | NODE_MATERIALISER)) == NODE_ROOT_OUT && is_outdated(s, w);
}

static bool is_upstream_outdated(scheduler *s, node_id id, place_id at) {
    place_id doc = place_at(&s->r->places, at)->root;
    if (is_in_order(s, node_of(s, id), doc)) return false;
    if (is_output_outdated(s, id, doc)) return true;
    if (!s->iteration)
        s->upstream_epoch++; /* a suspended run reads, and the program may have written */
    search q = search_for(s, id);
    visit_writers(&q, at, UINT32_MAX);
    return search_on(&q) != 0;
}

/* A read that the node has registered already does not fail: each attempt gets further than the last. */
bool runner_check_read(void *ctx, const hd_tx *tx, uint32_t key) {
    scheduler *s = ctx;
    node_id id = reader_of(s, tx);
    return id && is_upstream_outdated(s, id, key & KEY_PLACE) &&
           !is_registered(node_of(s, id), key);
}

/* ---- after a run */

bool runner_was_early(scheduler *s, node_id id) {
    assert(!s->running && !(node_of(s, id)->flags & NODE_REMOVED)); /* the body has returned */
    bool all = !s->suspended && !s->awaiting_count && !s->refused_until && !s->led.count &&
               !s->graph.materialisers_invalid;
    if (all && graph_lowest_runnable(&s->graph) >= node_of(s, id)->pos) return false;
    s->upstream_epoch++;
    return search_reads(s, id) != 0;
}

/* The epoch changes in any case: a dormant node may have become invalid, which no runnable position shows. */
void runner_note_behind(scheduler *s) {
    s->upstream_epoch++;
    if (s->iteration && graph_lowest_runnable(&s->graph) < s->cursor) s->behind = true;
}
