/* runner.h -- one run: one transaction.
 *
 *     clean -> body -> read delta -> commit -> (verdict, later)
 *
 * The status is set clean before the body: a change that arrives meanwhile must leave the node invalid
 * again; our own writes are filtered by origin, not by timing (P5). Seed 7.3. */
#ifndef SCHEDULER_RUNNER_H
#define SCHEDULER_RUNNER_H

#include "base/env.h"
#include "scheduler/gates.h"
#include "scheduler/invalidation.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/registry.h"
#include "value/pool.h"

hd_status runner_init(scheduler *s);
void runner_fini(scheduler *s);

/* ---- async runs (runner_async.c) */

/* Takes the running transaction along; and its end. */
hd_status runner_suspend(scheduler *s, hd_tx *tx, hd_run **out);
void runner_resume(hd_run *run, hd_status status);
/* The body has returned, and its transaction went along. If it does not wait after all, the run ends
 * with what it returned. */
void runner_left_suspended(scheduler *s, node_id id, hd_status status);
/* Those that were resumed from a body end now. */
void runner_end_resumed(scheduler *s);
void runner_drop_suspended(scheduler *s);

/* ---- waiting (runner_late.c) */

/* There was no memory: the node runs when there is, and pump tells of it. */
void runner_postpone(scheduler *s, node_id id);
/* Set aside without trace until the document is there. 0: it runs again. */
void runner_wait_for(scheduler *s, node_id id, place_id missing);
/* Of a store from which documents arrive late: whether all that is known to be needed is here. If not
 * the node waits for it: what it writes, and what those wait for whose results it reads. So nothing is
 * made of half of what is to come, and nobody runs twice. */
bool runner_can_begin(scheduler *s, node_id id);

/* ---- what stands before a run (runner_upstream.c) */

/* Something upstream of the node has to run, or to end its run, first. While that is a suspended run the
 * node is blocked: it is not eligible. Asked only while runs are suspended, or `behind` is set. */
bool runner_must_wait(scheduler *s, node_id id);
/* The run has ended, or is dropped: who waits for it is looked at again. And the same for all runs. */
void runner_unblock(scheduler *s, hd_run *run);
void runner_unblock_all(scheduler *s);
/* Observer of the store: a transaction reads what it was not expected to. True: what writes that is out
 * of date, and the read must fail. */
bool runner_read_is_early(void *ctx, const hd_tx *tx, uint32_t key);
/* The body has run, and its reads are registered: something below the node is out of date. */
bool runner_was_early(scheduler *s, node_id id);
/* A commit within the sweep: nodes below the cursor may have become invalid. */
void runner_note_behind(scheduler *s);

/* ---- the end of a run (runner.c) */

/* Returns what became of the run; the node may be gone. */
hd_status runner_finish(scheduler *s, node_id id, hd_tx *tx, hd_status status);
/* The node was cancelled in its body, or by who heard of what it wrote: it goes now. */
bool runner_has_left(scheduler *s, node_id id);

/* Tells the error handlers. `message` NULL: the status' own text. */
void runner_report(scheduler *s, node_id id, hd_status status, const char *message);

/* ---- most runs
 *
 * What was read last time is read again, and nothing is written but the output. This is the loop that
 * a large graph spends its time in; everything else takes the long way in runner.c. */

void runner_run_unusual(scheduler *s, node_id id, uint32_t pos);
/* The run was not plain after all. */
void runner_end_unusual(scheduler *s, node_id id, hd_tx *tx, hd_status status);
/* An output that is no plain number, or concerns more than its readers. */
hd_status runner_write_output(scheduler *s, node_id id, place_id at, hd_value v);
/* The body, begun at that time, has ended. */
void runner_record_time(scheduler *s, node_id id, uint64_t began);

enum { NODE_UNUSUAL = NODE_GATED | NODE_EPHEMERAL | NODE_MATERIALISER };

/* What the body is given. The transaction is as wipe() and a plain run leave it. */
static inline void runner_prepare(scheduler *s, const node *n, hd_tx *tx) {
    tx->flags = TX_OPEN | TX_RUN;
    tx->class = n->flags & NODE_EFFECT ? HD_COMMIT_SOURCE : HD_COMMIT_DERIVED;
    tx->front.out = n->flags & NODE_ROOT_OUT ? n->output : HD_NO_OUTPUT_;
    tx->front.out_value = value_absent();
    if (n->read_count <= 1) s->inline_read = n->reads.one; /* the record may move meanwhile */
    tx_expect(tx, n->read_count <= 1 ? &s->inline_read : n->reads.many, n->read_count);
}

/* Its first run here, or the first since its row was kept. */
void runner_completed_first(scheduler *s, node *n);

/* The second and then one run in so many of an effect is timed, unless it is slow: see gates_timed. */
#define TIMED_EVERY 64
/* There were so many more runs, or 2^32. */
void runner_counted(scheduler *s, node *n);

/* The run stands: from here its causes count. */
static inline void runner_completed(scheduler *s, node *n) {
    uint64_t now = s->r->rev, since = now - n->ran_rev;
    n->prev_back = since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
    n->ran_rev = now;
    if (RARELY((++n->runs & (TIMED_EVERY - 1)) == 0)) runner_counted(s, n);
    if (RARELY(n->flags & (NODE_NEVER_RAN | NODE_RESUMED | NODE_NOTED | NODE_CAUSED)))
        runner_completed_first(s, n);
    s->runs[n->flags & NODE_EFFECT]++; /* the lowest bit */
}

/* Whether all that an output concerns are its readers: the whole document's, by value. */
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
    if (USUALLY(p->watch)) invalidation_mark_all(s, at, p->watch, id);
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

/* Where plain runs follow each other, only the ends of the row say that a body is on the stack. */
static inline void runner_begin_row(scheduler *s) {
    s->rt->in_run = true;
    s->r->group = 0; /* of what plain runs write */
}
static inline void runner_end_row(scheduler *s) {
    s->rt->in_run = false;
    s->running = 0;
}

/* True: it was not plain after all. */
static inline bool runner_run_plain(scheduler *s, node_id id, uint32_t pos, bool timed) {
    node *n = &s->graph.nodes[id];
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
    if (RARELY(--s->until_clock == 0 || (s->graph.nodes[id].flags & (NODE_UNUSUAL | NODE_TIMED)))) {
        runner_run_unusual(s, id, pos);
        return true;
    }
    return runner_run_plain(s, id, pos, false);
}

#endif
