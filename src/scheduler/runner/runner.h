/* runner.h -- one run: one transaction.
 *
 *     clean -> body -> read delta -> commit -> (verdict, later)
 *
 * The node is set clean before the body runs, so that a change which arrives during the run leaves it
 * invalid. The run's own writes do not mark it: they are told apart by their origin, not by time (P5).
 * Spec 7.3. */
#ifndef SCHEDULER_RUNNER_H
#define SCHEDULER_RUNNER_H

#include "base/env.h"
#include "scheduler/gates/gates.h"
#include "scheduler/invalidation.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/registry.h"
#include "value/pool.h"

hd_status runner_init(scheduler *s);
void runner_fini(scheduler *s);

/* ---- async runs (async.c) */

/* Suspends the running node: its transaction stays open in *out. */
hd_status runner_suspend(scheduler *s, hd_tx *tx, hd_run **out);
/* Ends a suspended run; `run` is gone afterwards. */
void runner_resume(hd_run *run, hd_status status);
/* Nothing can go on with the run until runner_unpark, which ends all such runs: their nodes run again. */
void runner_park(hd_run *run);
/* The same for the run on the stack, whose body has been interrupted. HD_USAGE: there is none; HD_NOMEM. */
hd_status runner_park_running(scheduler *s);
void runner_unpark(scheduler *s);
/* The body of a suspended run has returned. If it did not return HD_PENDING, and the run is not parked, the run ends
 * with what it returned. */
void runner_left_suspended(scheduler *s, node_id id, hd_status status);
/* Ends the runs that were resumed from inside a body. */
void runner_end_resumed(scheduler *s);
void runner_drop_suspended(scheduler *s);

/* ---- waiting (late.c) */

/* There was no memory for the node's run: it is invalid and runs in the next pump; this pump returns
 * HD_NOMEM. */
void runner_postpone(scheduler *s, node_id id);
/* The node is invalid, and waits until the document has arrived. `missing` 0: it runs again at once. */
void runner_wait_for(scheduler *s, node_id id, place_id missing);
/* Where documents arrive late (authority.late): asks for the documents that the node writes. True: they are
 * loaded. False: the node waits for the first one that is missing. */
bool runner_load_ahead(scheduler *s, node_id id);

/* ---- what stands before a run (upstream.c) */

/* True: a node upstream has to run, or to end its suspended run, before this one. In the second case the
 * node is blocked, and so not eligible, until that run ends. If the node upstream waits for a document, this one
 * waits for the same. Called while a run is suspended, nodes wait for documents or are led, or scheduler.behind or
 * .refused_until is set; otherwise all that is upstream has run. */
bool runner_wait_upstream(scheduler *s, node_id id);
/* Unblocks the nodes that wait for this suspended run; and those that wait for any. Nodes that still have to
 * wait are blocked again when the sweep comes to them. */
void runner_unblock(scheduler *s, hd_run *run);
void runner_unblock_all(scheduler *s);
/* Observer of the store: a transaction reads what its node has not read before. True: a node that writes
 * that is out of date, and the read fails with HD_PENDING. */
bool runner_check_read(void *ctx, const hd_tx *tx, uint32_t key);
/* Called after the body, when its reads are registered. True: a node upstream is out of date, and the run
 * does not count. */
bool runner_was_early(scheduler *s, node_id id);
/* A commit, or a change of the order, during the sweep: nodes below the cursor may be runnable now. */
void runner_note_behind(scheduler *s);

/* ---- results of another process (lead.c) */

/* True: the node waits for the process that derives for its space. Called where runner_wait_upstream was false. */
bool runner_wait_for_lead(scheduler *s, node_id id);

/* ---- cycles with asynchronous nodes (rounds.c) */

/* A run with these causes is being suspended, or has to wait for a suspended one: counts a round if the causes
 * lead back to the node itself. Follows what has changed since the last runs of the nodes on the way. */
void runner_note_round(scheduler *s, node_id id, const place_vec *causes);
/* Whether the node is clean, and so is everything upstream of it, effects included that wrote what it reads.
 * Of a dormant node: whether it is clean. O(reads upstream). */
bool runner_is_settled(scheduler *s, node_id id);
/* Whether a node upstream of this one, or the node itself, does not settle. O(reads upstream). */
bool runner_reads_unsettled(scheduler *s, node_id id);
/* The node itself or one upstream of it, the nearest, of which `is` is true; 0: none. O(reads upstream). */
typedef bool (*runner_is_fn)(const scheduler *s, const node *n);
node_id runner_find_upstream(scheduler *s, node_id id, runner_is_fn is);

/* ---- the end of a run (runner.c) */

/* Ends a run that took the long way. Returns its outcome; the node may be gone. */
hd_status runner_finish(scheduler *s, node_id id, hd_tx *tx, hd_status status);
/* Removes the node if it was cancelled during its run, by its body or by a listener. True: it is gone. */
bool runner_remove_cancelled(scheduler *s, node_id id);

/* The present run of the node, or with 0 the present handling, as a number that no other one has. */
uint64_t runner_body(const scheduler *s, node_id id);
/* The run or handling failed with `status`, without hd_tx_fail. If that is the status of the call that failed its
 * transaction, or else of the last call that failed in it, that call's message becomes the message of the failure. */
void runner_take_message(scheduler *s, node_id id, const hd_tx *tx, hd_status status);

/* ---- plain runs
 *
 * A plain run reads what the node's last run read, and writes nothing but the node's output. A large graph
 * spends its time here; all other runs take the long way in runner.c. */

void runner_run_unusual(scheduler *s, node_id id, uint32_t pos);
/* Ends a run that began as a plain one and turned out not to be. */
void runner_end_unusual(scheduler *s, node_id id, hd_tx *tx, hd_status status);
/* Writes an output that is not a number in the value word itself, or that concerns more than its readers
 * (runner_is_plain_output). */
hd_status runner_write_output(scheduler *s, node_id id, place_id at, hd_value v);
/* The body has returned: adds the time since `began` to the node's. */
void runner_record_time(scheduler *s, node_id id, uint64_t began);

enum { NODE_UNUSUAL = NODE_GATED | NODE_EPHEMERAL | NODE_MATERIALISER };

/* Prepares the transaction that the body is given. It is empty: wipe() and plain runs leave it so. */
static inline void runner_prepare(scheduler *s, const node *n, hd_tx *tx) {
    assert(!tx->writes.count && !tx->failed && !tx->missing && !tx->lineage && !tx->causes.count);
    tx->flags = TX_OPEN | TX_RUN;
    tx->class = n->flags & NODE_EFFECT ? HD_COMMIT_SOURCE : HD_COMMIT_DERIVED;
    tx->front.out = n->flags & NODE_ROOT_OUT ? n->output : HD_NO_OUTPUT_;
    tx->front.out_value = value_absent();
    if (n->read_count <= 1) s->inline_read = n->reads.one; /* the record may move meanwhile */
    tx_expect(tx, n->read_count <= 1 ? &s->inline_read : n->reads.many, n->read_count);
}

/* The rarer part of runner_completed: the node's first run here, a run that persistence wants to know of
 * (NODE_NOTED), or one of a node with a record of causes. */
void runner_completed_first(scheduler *s, node *n);

/* The third and then one run in so many of an effect is timed, unless it is slow: see gates_times_next. */
#define TIMED_EVERY 64
/* Called when node.runs has reached a multiple of TIMED_EVERY, or has overflowed. */
void runner_counted(scheduler *s, node *n);

/* The run stands: changes after this revision cause the next one. */
static inline void runner_completed(scheduler *s, node *n) {
    uint64_t now = s->r->rev, since = now - n->ran_rev;
    assert(n->ran_rev <= now && !(n->flags & NODE_REMOVED));
    n->prev_back = since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
    n->ran_rev = now;
    if (RARELY((++n->runs & (TIMED_EVERY - 1)) == 0)) runner_counted(s, n);
    if (RARELY(n->flags & (NODE_NEVER_RAN | NODE_RESUMED | NODE_NOTED | NODE_CAUSED)))
        runner_completed_first(s, n);
    s->runs[n->flags & NODE_EFFECT]++; /* the lowest bit */
}

/* Whether a change of the output concerns only nodes that read the whole document by value: no reads by
 * shape, no reads of parts, no listeners. */
static inline bool runner_is_plain_output(const replica *r, const place *p) {
    return (p->doc.flags & (DOC_OVERLAY | DOC_HAS_SHAPE)) == DOC_OVERLAY &&
           !(p->first_child | r->listeners.count);
}

/* What overlay_write does, for a plain output whose new value differs: show it, then mark the readers.
 * Takes the value; the one before is the caller's now. */
static inline hd_value runner_show_output(scheduler *s, node_id id, place_id at, hd_value v) {
    replica *r = s->r;
    place *p = place_at(&r->places, at);
    assert(runner_is_plain_output(r, p));
    hd_value before = place_show(p, v, ++r->rev);
    r->stats.changes++;
    if (USUALLY(p->watch)) invalidation_mark_all(s, at, p->watch, id, before);
    return before;
}

static inline hd_status runner_write_in_place(scheduler *s, node_id id, place_id at, hd_value v) {
    const place *p = place_at(&s->r->places, at);
    if (v.bits == p->value.bits && (p->doc.flags & DOC_KNOWN)) return HD_OK;
    if (RARELY(!value_is_immediate_number(v) || !value_is_immediate_number(p->value) ||
               !runner_is_plain_output(s->r, p)))
        return runner_write_output(s, id, at, v);
    (void)runner_show_output(s, id, at, v); /* numbers hold no memory */
    return HD_OK;
}

/* A row is a sequence of plain runs. In it, rt->in_run stays set from the first run to the last. */
static inline void runner_begin_row(scheduler *s) {
    s->rt->in_run = true;
    s->r->group = 0; /* of what plain runs write */
}
static inline void runner_end_row(scheduler *s) {
    s->rt->in_run = false;
    s->running = 0;
}

/* True: the run turned out not to be plain. */
static inline bool runner_run_plain(scheduler *s, node *n, node_id id, uint32_t pos, bool timed) {
    hd_tx *tx = s->tx;
    bit_clear_set(s->graph.invalid, pos);
    runner_prepare(s, n, tx);
    const edge *end = tx->front.end;
    s->running = id;
    uint64_t began = timed ? env_now_ns(s->env) : 0;
    hd_status status = n->fn(tx, n->ctx);
    if (timed) runner_record_time(s, id, began);
    n = &s->graph.nodes[id]; /* it may have moved */
    bool plain =
        USUALLY(status == HD_OK && tx->front.next == end && tx->flags == (TX_OPEN | TX_RUN) &&
                (n->flags & (NODE_LINKED | NODE_TOLD_WHY)) == NODE_LINKED);
    if (plain && tx_has_output(tx)) {
        assert(tx->front.out == n->output);
        status = runner_write_in_place(s, id, n->output, tx->front.out_value);
    }
    if (RARELY(!plain || status)) {
        if (!timed) s->clock_ns = 0;
        runner_end_unusual(s, id, tx, status);
        return true;
    }
    runner_completed(s, &s->graph.nodes[id]);
    if (RARELY(tx->pool && tx->pool->count)) hd_pool_clear(tx->pool);
    return false;
}

/* Runs the node at `pos`, which is runnable; it may be gone afterwards. True: the clock may have been
 * read. */
static inline bool runner_run_node(scheduler *s, node_id id, uint32_t pos) {
    assert(s->graph.node_at[pos] == id && s->graph.nodes[id].pos == pos);
    assert(graph_runnable(&s->graph, pos >> 6) >> (pos & 63) & 1); /* I2: invalid, live, eligible */
    assert(!s->concluding && !s->cancelled && s->rt->in_run);
    node *n = &s->graph.nodes[id];
    if (RARELY(--s->until_clock == 0 || (n->flags & (NODE_UNUSUAL | NODE_TIMED)))) {
        runner_run_unusual(s, id, pos);
        return true;
    }
    return runner_run_plain(s, n, id, pos, false);
}

#endif
