/* runner.c -- running a node: the long way. The short one, which most runs take, is in runner.h. */
#include "scheduler/runner/runner.h"

#include "base/env.h"
#include "scheduler/origin.h"
#include "scheduler/runner/surface.h"
#include "store/overlay.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/pool.h"
#include <stdio.h>

#define SLOW_NS UINT64_C(200000) /* from here on every run is timed */
#define FAST_NS UINT64_C(20000)  /* until runs are this fast again */

/* ---- time: one run in so many is timed, all of them while they are slow
 *
 * These readings are for the time slice and for introspection. Which runs of an effect count for its
 * automatic debounce must not depend on either (P10): that is decided for each effect, by NODE_TIMED. */

#define TIMING_PERIOD 64

/* Called when until_clock has run down. */
static void restart_timing(scheduler *s) {
    uint32_t period = s->rt->options.timing_period ? s->rt->options.timing_period : TIMING_PERIOD;
    s->until_clock = s->fine || s->tracer ? 1 : period;
}

void runner_record_time(scheduler *s, node_id id, uint64_t began) {
    uint64_t took = (s->clock_ns = env_now_ns(s->env)) - began;
    node_side *side = &s->sides[id];
    side->timed_runs++;
    side->total_ns += took;
    s->fine = took >= SLOW_NS || (s->fine && took >= FAST_NS);
    restart_timing(s);
    if (gates_times_next(node_of(s, id))) gates_timed(s, id, took);
}

/* ---- the end of a run */

/* On overflow the count goes on at RUNS_OVER, so that it never says "has not run"; the cold record counts
 * what was taken off. Without memory for that record the number of runs is too low. */
void runner_counted(scheduler *s, node *n) {
    if (n->flags & NODE_EFFECT) n->flags |= NODE_TIMED;
    if (n->runs) return;
    cold *c = registry_cold(s, (node_id)(n - s->graph.nodes));
    if (c) c->runs_over++;
    n->runs = RUNS_OVER;
}

void runner_completed_first(scheduler *s, node *n) {
    bool first = n->flags & (NODE_NEVER_RAN | NODE_RESUMED);
    if (n->flags & NODE_NEVER_RAN) n->prev_back = 0; /* a first run has no causes */
    n->flags &= ~(uint32_t)(NODE_NEVER_RAN | NODE_RESUMED);
    if (first && (n->flags & NODE_EFFECT)) n->flags |= NODE_TIMED;
    if (n->flags & NODE_CAUSED) causes_forget_last(s, (node_id)(n - s->graph.nodes));
    if (!(first || (n->flags & NODE_NOTED))) return;
    if (first && s->wanted && node_is_live(&s->graph, n)) ask_for_writers(s, n);
    if (first && s->persistence) origin_say(s, (node_id)(n - s->graph.nodes));
    persistence_ran(s, n);
}

/* The run is made again at once: the values that it missed are in the replica already. */
static void again(scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & (NODE_REMOVED | NODE_RUNNING)));
    invalidation_mark(s, id);
    gates_release(s, id);
}

/* The store refused the run's commit, or the run failed for now. It is made again after a delay that grows
 * from retry to retry: without one, two writers that collide could keep refusing each other. */
static void again_later(scheduler *s, node_id id, bool failed) {
    invalidation_mark(s, id);
    gates_retry(s, id, failed);
}

/* Puts the causes of the run that failed into s->told: it completed, unless it failed for lack of memory;
 * then it is still to be made. */
static void tell_causes(scheduler *s, node_id id) {
    bool starved = node_of(s, id)->flags & NODE_STARVED;
    hd_status status = (starved ? causes_of_next : causes_of_last)(s, id, &s->told);
    (void)status; /* HD_NOMEM: s->told has the first ones */
}

/* `causes` are places; the caller keeps them until this returns. */
static void report(scheduler *s, node_id id, hd_status status, const char *message,
                   const place_id *causes, uint32_t count) {
    hd_cell named[CAUSES_FEW];
    uint32_t named_count = count < CAUSES_FEW ? count : CAUSES_FEW;
    for (uint32_t i = 0; i < named_count; i++) named[i] = (hd_cell){ causes[i] };
    cold *c = id ? registry_cold(s, id) : NULL;
    if (c) c->failures++;
    /* Copies and references: error handlers may cancel the node, and stop its piece. */
    const char *pattern;
    char piece[256];
    snprintf(piece, sizeof piece, "%s", piece_of(s, id, &pattern));
    struct key *name = id ? node_own_name(s, id) : NULL;
    if (name) key_ref(name);
    hd_failure failure = { .status = status,
                           .message = message && *message ? message : hd_status_text(status),
                           .action = node_label(s, id),
                           .piece = piece,
                           .pattern = pattern,
                           .space = node_space(s, id),
                           .node = registry_handle(s, id),
                           .causes = named,
                           .cause_count = named_count,
                           .causes_more = count - named_count };
    s->stats.failures++;
    bool handled = scheduler_tell_error(s, &failure);
    env_log(s->env, handled ? HD_LOG_INFO : HD_LOG_ERROR, "%s in node \"%s\": %s (%s)",
            handled ? "handled" : "uncaught", failure.action, failure.message,
            hd_status_name(status));
    key_unref(name);
}

/* Calls the error handlers. `message` NULL: the text of the status. */
static void report_run(scheduler *s, node_id id, hd_status status, const char *message) {
    vec_clear(&s->told);
    if (id) tell_causes(s, id);
    report(s, id, status, message, s->told.items, s->told.count);
}

/* ---- commits and their verdicts */

static void *pack(hd_node h) { return (void *)(uintptr_t)((uint64_t)h.generation << 32 | h.id); }
static hd_node unpack(void *p) {
    uint64_t word = (uint64_t)(uintptr_t)p;
    return (hd_node){ (uint32_t)word, (uint32_t)(word >> 32) };
}

/* Counts one more failure in a row. NODE_GATED makes the next run take the long way, which ends the row if
 * the run succeeds (overcome). */
static void count_retry(scheduler *s, node_id id, uint32_t *failures) {
    ++*failures;
    assert(*failures && cold_of(s, node_of(s, id)));
    node_of(s, id)->flags |= NODE_GATED;
}

/* No retry is due. False: none was. */
static bool end_retries(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    if (!c || !(c->stale | c->transient | c->gave_up)) return false;
    c->stale = c->transient = 0;
    c->gave_up = false;
    if (!c->group && !c->gate.debounce_ms && !c->gate.throttle_ms)
        n->flags &= ~(uint32_t)NODE_GATED;
    return true;
}

/* The node's run was accepted, or its body has failed for good: the row of retries is over. */
static void overcome(scheduler *s, node_id id) {
    if (end_retries(s, id)) gates_accepted(s, id);
}

/* The node's commit was refused for good. */
static void give_up(scheduler *s, node_id id) {
    end_retries(s, id);
    gates_refused(s, id);
}

static void count_stale(scheduler *s, node_id id) {
    cold *c = registry_cold(s, id);
    if (c) count_retry(s, id, &c->stale);
    s->stats.stale_retries++;
}

/* The row of failures has ended without a success: one more is not followed by a retry (C202). NODE_GATED makes the
 * next run take the long way, which clears gave_up if the run succeeds. */
static void end_row_in_failure(scheduler *s, node_id id, cold *c) {
    overcome(s, id);
    c->gave_up = true;
    node_of(s, id)->flags |= NODE_GATED;
}

/* True: the run is made again. False: its body has failed RETRIES_MAX times in a row, and counts as failed; the
 * node runs again, once, when something it read changes. Where the store could not be read there is no such limit: no
 * change would be heard of. */
static bool retry_transient(scheduler *s, node_id id, bool unread) {
    cold *c = registry_cold(s, id);
    if (!c) return false;
    count_retry(s, id, &c->transient);
    if ((c->gave_up || c->transient >= RETRIES_MAX) && !unread) {
        end_row_in_failure(s, id, c);
        return false;
    }
    s->stats.retries++;
    again_later(s, id, true);
    return true;
}

static void restore_causes(scheduler *s, node_id id, const commit *c) {
    causes_restore(s, id, c->causes.items, c->causes.count, c->owner_rev);
}

/* What the node has written is stored: its row of refusals is over. */
static void accepted(scheduler *s, node_id id) {
    overcome(s, id);
    gates_accepted(s, id);
}

static void settled(void *ctx, commit *commit_, hd_status status) {
    scheduler *s = ctx;
    assert(!s->running && commit_->owner);
    node_id id = registry_get(s, unpack(commit_->owner));
    if (!id) return; /* the node was removed meanwhile */
    switch (hd_status_class(status)) {
    case HD_CLASS_NO_VERDICT: /* nothing says whether it is stored: what is computed again is the same */
        if (s->rt->closing) break;
        /* fall through */
    case HD_CLASS_STALE:
        restore_causes(s, id, commit_);
        count_stale(s, id);
        again_later(s, id, false);
        return;
    case HD_CLASS_TRANSIENT:
        if (retry_transient(s, id, false)) restore_causes(s, id, commit_);
        else report(s, id, status, NULL, commit_->causes.items, commit_->causes.count);
        return;
    default: break;
    }
    if (!status) {
        accepted(s, id);
        return;
    }
    give_up(s, id);
    report(s, id, status, NULL, commit_->causes.items, commit_->causes.count);
}

/* Whether the run's commit changed a place that the node reads: it overwrote what made it run. */
static bool is_echo(const scheduler *s, node_id id, uint64_t since) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        const place *p = place_at(&s->r->places, reads[i].key & KEY_PLACE);
        if (p->rev == s->r->rev && p->rev > since) return true;
    }
    return false;
}

static hd_status commit_writes(scheduler *s, node_id id, hd_tx *tx) {
    commit *c;
    node *n = node_of(s, id);
    bool triggered = tx->causes.count > 0;
    uint64_t before = s->r->rev;
    uint64_t since = n->flags & NODE_NEVER_RAN ? UINT64_MAX : n->ran_rev; /* of the run before */
    hd_status status = n->flags & NODE_EFFECT ? HD_OK : surface_check_writes(s, id, tx);
    if (status) return status;
    tx->stamp.node = id;
    tx->stamp.action = node_own_name(s, id) ? node_label(s, id) : NULL;
    if (tx->stamp.action)
        tx->stamp.implementation = build_prefix_of(s, (const void *)(uintptr_t)n->fn);
    status = tx_submit(tx, &c);
    if (status) return status;
    if (!c) overcome(s, id); /* else its verdict says so */
    if (c) {
        c->settled = settled;
        c->settled_ctx = s;
        c->owner = pack(registry_handle(s, id));
        c->owner_rev = since;
        persistence_wrote(s, id, c->local_seq);
    }
    runner_note_behind(s);
    if (triggered && s->r->rev != before && is_echo(s, id, before))
        gates_echoed(s, id, env_now_ns(s->env));
    else if (!gates_is_mending(s, id)) gates_converged(s, id);
    return HD_OK;
}

/* What runner_show_output is for, unless the value is the same. */
static void write_plain_output(scheduler *s, node_id id, place_id at, hd_value v) {
    if (value_equal(place_at(&s->r->places, at)->value, v)) return;
    s->r->group = 0;
    value_unref(runner_show_output(s, id, at, value_ref(v)));
}

/* The single output of a computation, in place. */
static hd_status write_output(scheduler *s, node_id id, hd_tx *tx) {
    place_id at = tx->front.out;
    hd_value v = tx->front.out_value;
    bool changed;
    if (tx->class != HD_COMMIT_DERIVED || tx->writes.count || tx->preconditions.count)
        return tx_unpack_single(tx);
    if (s->tracer || s->asynchronous || tx->stamp.group ||
        !runner_is_plain_output(s->r, place_at(&s->r->places, at)))
        return overlay_write(s->r, at, v, tx->stamp.group, id, &changed);
    s->tick = true;
    write_plain_output(s, id, at, v);
    return HD_OK;
}

/* Section 10: the causes of the run go into its commit, and stay known when its new read set replaces the
 * old one. A run that neither commits nor reads something new needs no record: its reads tell the causes. */
static hd_status take_causes(scheduler *s, node_id id, hd_tx *tx) {
    bool commits = tx->writes.count || tx->preconditions.count;
    bool kept = node_of(s, id)->flags & NODE_TOLD_WHY;
    if ((tx->flags & TX_CAUSES) || !(commits || kept || !tx_reads_unchanged(tx))) return HD_OK;
    return causes_take(s, id, tx);
}

static hd_status apply_reads(scheduler *s, node_id id, hd_tx *tx) {
    if (tx_reads_unchanged(tx)) {
        node *n = node_of(s, id);
        return n->flags & NODE_LINKED || node_is_invalid(&s->graph, n)
                   ? HD_OK
                   : graph_mark_clean(&s->graph, id);
    }
    hd_status status = take_causes(s, id, tx); /* before the reads that tell them are replaced */
    if (!status) status = tx_reads_complete(tx);
    s->stats.read_deltas++;
    if (!status) status = graph_apply_reads(&s->graph, id, tx->reads.items, tx->reads.count);
    persistence_reads_changed(s, id);
    if (!status && s->wanted && node_is_live(&s->graph, node_of(s, id)))
        ask_for_writers(s, node_of(s, id));
    return status;
}

/* The run does not count: the node is invalid again, and the sweep goes back to the lowest runnable node.
 * Each going back is due to an invalid node upstream, which runs before this one runs again; so the number
 * of times is bounded by the number of those nodes. */
static void go_back(scheduler *s, node_id id) {
    assert(!s->running && s->concluding == id);
    graph_mark_invalid(&s->graph, id);
    graph_settle(&s->graph); /* the run may have brought the edge that puts the writer before it */
    s->tick = true;
    if (!s->iteration) return;
    s->aside = id;
    s->counting = 1;
    s->cursor = 0;
    s->behind = false;
    s->upstream_epoch++;
}

/* A body may register the writer of something that it has read already. Then that writer has to run first,
 * and what the body made of the old value must not be committed. True: the run was set aside. */
static bool set_aside(scheduler *s, node_id id) {
    if (!s->iteration) return false;
    graph_settle(&s->graph);
    if (!runner_was_early(s, id)) return false;
    go_back(s, id);
    return true;
}

/* The run stands. */
static void completed(scheduler *s, node_id id, hd_tx *tx) {
    runner_completed(s, node_of(s, id));
    causes_completed(s, id, tx);
}

/* A first run of a node without declared reads, which read something, wrote at most its output, and did
 * nothing else: there is no former read set to compare with. */
static inline bool is_plain_first(const node *n, const hd_tx *tx) {
    const uint32_t needed = NODE_NEVER_RAN | NODE_LINKED;
    return tx->flags == (TX_OPEN | TX_RUN | TX_DIVERGED) && !n->read_count &&
           (n->flags & needed) == needed;
}

/* The journal of such a run becomes the node's read set, and its references to places become the graph's. */
static hd_status conclude_first(scheduler *s, node_id id, hd_tx *tx) {
    uint64_t edges = s->graph.edge_visits;
    s->stats.read_deltas++;
    hd_status status = graph_take_reads(&s->graph, id, tx->reads.items, tx->reads.count);
    if (status) return status;
    if (s->persistence) persistence_reads_changed(s, id);
    if (s->wanted && node_is_live(&s->graph, node_of(s, id))) ask_for_writers(s, node_of(s, id));
    /* Without a visit to an edge no node writes what it read, so none can be out of date. */
    bool aside = edges != s->graph.edge_visits && set_aside(s, id);
    tx_reads_taken(tx);
    if (aside) return HD_OK;
    if (tx_has_output(tx)) status = write_output(s, id, tx);
    else status = surface_check_first(s, id);
    if (status) return status;
    node *n = node_of(s, id);
    n->flags &= ~(uint32_t)NODE_NEVER_RAN; /* its writers have been asked for */
    if (n->flags & NODE_EFFECT) n->flags |= NODE_TIMED;
    overcome(s, id);
    runner_completed(s, n);
    n->prev_back = 0; /* a first run has no causes */
    if (s->persistence) origin_say(s, id);
    return HD_OK;
}

/* A run that returned HD_OK. */
static hd_status conclude(scheduler *s, node_id id, hd_tx *tx) {
    assert(s->concluding == id && (tx->flags & TX_RUN));
    if (tx->failed) return tx->failed;
    if (is_plain_first(node_of(s, id), tx)) return conclude_first(s, id, tx);
    bool elsewhere = !tx_reads_unchanged(tx), first = node_of(s, id)->flags & NODE_NEVER_RAN;
    uint64_t edges = s->graph.edge_visits;
    hd_status status = take_causes(s, id, tx);
    if (!status) status = apply_reads(s, id, tx);
    if (first && edges == s->graph.edge_visits) elsewhere = false; /* no node writes what it read */
    if (!status && elsewhere && set_aside(s, id)) return HD_OK;
    if (!status && tx_has_output(tx)) status = write_output(s, id, tx);
    bool commits = tx->writes.count || tx->preconditions.count;
    if (!status && commits) status = commit_writes(s, id, tx);
    bool wrote = commits || tx_has_output(tx) || (tx->flags & TX_ELIDED);
    if (!status && first && !wrote) status = surface_check_first(s, id);
    if (status) return status;
    if (!commits) overcome(s, id);
    if (tx->lineage) tx_launched(tx, HD_OK); /* nothing was written: what it sent stands */
    completed(s, id, tx);
    return HD_OK;
}

/* A read failed because a node that writes the place is out of date. What the run read so far is registered:
 * that demands the writers, which run before this node runs again. */
static void read_early(scheduler *s, node_id id, hd_tx *tx) {
    if (apply_reads(s, id, tx)) runner_postpone(s, id);
    else go_back(s, id);
}

/* The run had no memory. Its reads may not have been registered, so no change of them would mark the node:
 * it stays invalid, and runs in the next pump. */
static void starve(scheduler *s, node_id id) {
    runner_postpone(s, id);
    report_run(s, id, HD_NOMEM, s->message);
}

/* Registers what a failed run has read: the failure depends on that, so a change of it makes the node run
 * again (7.3). */
static hd_status keep_reads(scheduler *s, node_id id, hd_tx *tx) {
    hd_status status = apply_reads(s, id, tx);
    if (status || node_is_invalid(&s->graph, node_of(s, id))) return status;
    return graph_link(&s->graph, id);
}

uint64_t runner_body(const scheduler *s, node_id id) {
    if (id) return (uint64_t)id << 32 | node_of(s, id)->runs;
    return UINT64_C(1) << 63 | s->handlings;
}

void runner_take_message(scheduler *s, node_id id, const hd_tx *tx, hd_status status) {
    const hd_runtime *rt = s->rt;
    const hd_error *why = tx_why(tx);
    if (why && why->status != status) why = NULL;
    if (!why && rt->error_body == runner_body(s, id)) why = &rt->r.error;
    if (s->message[0] || !why || why->status != status) return;
    snprintf(s->message, sizeof s->message, "%s", why->message);
}

/* `refused`: the body succeeded, and the store does not take its commit now: it has read an output whose node
 * is not clean and waits behind a gate. Nothing newer is visible yet, so the retry takes its time. */
static void failed(scheduler *s, node_id id, hd_tx *tx, hd_status status, bool refused) {
    runner_take_message(s, id, tx, status);
    switch (hd_status_class(status)) {
    case HD_CLASS_PENDING:
        if (tx->flags & TX_UNSETTLED) read_early(s, id, tx);
        else runner_wait_for(s, id, tx->missing);
        return;
    case HD_CLASS_STALE:
        count_stale(s, id);
        if (refused) again_later(s, id, false);
        else again(s, id);
        return;
    case HD_CLASS_TRANSIENT:
        if (retry_transient(s, id, tx_is_unread(tx))) return;
        break;
    case HD_CLASS_NOMEM: starve(s, id); return;
    default: break;
    }
    if (take_causes(s, id, tx)) {
        starve(s, id);
        return;
    }
    if (keep_reads(s, id, tx)) runner_postpone(s, id); /* no change of its reads would mark it */
    completed(s, id, tx);
    persistence_failed(s, id);
    cold *c = registry_cold(s, id);
    if (c) c->failed_in = node_runs(s, node_of(s, id));
    if (status != HD_ABORTED) report_run(s, id, status, s->message);
}

/* ---- one run */

static hd_status call_body(scheduler *s, node_id id, hd_tx *tx) {
    node *n = node_of(s, id);
    assert(!s->running && !s->rt->in_run && !(n->flags & NODE_RUNNING));
    n->flags |= NODE_RUNNING;
    s->running = id;
    s->rt->in_run = true;
    hd_status status = n->fn(tx, n->ctx);
    s->rt->in_run = false;
    s->running = 0;
    return status;
}

hd_status runner_write_output(scheduler *s, node_id id, place_id at, hd_value v) {
    const place *p = place_at(&s->r->places, at);
    if (!runner_is_plain_output(s->r, p)) {
        bool changed;
        runner_end_row(s); /* listeners are called outside of runs */
        assert(!s->concluding);
        s->concluding = id;
        hd_status status = overlay_write(s->r, at, v, 0, id, &changed);
        s->concluding = 0;
        runner_begin_row(s);
        return s->cancelled ? HD_ABORTED : status; /* runner_end_unusual removes the node */
    }
    write_plain_output(s, id, at, v);
    return HD_OK;
}

bool runner_remove_cancelled(scheduler *s, node_id id) {
    assert(!s->running && !s->concluding); /* nothing of the run is on the stack any more */
    if (!s->cancelled) return false;
    s->cancelled = false;
    registry_remove(s, id);
    return true;
}

/* Commits what the run did (`how`), or deals with its failure. A listener or error handler that is called
 * meanwhile may cancel the node: it is removed at the end. */
static hd_status conclude_with(scheduler *s, node_id id, hd_tx *tx, hd_status status,
                               hd_status (*how)(scheduler *s, node_id id, hd_tx *tx)) {
    uint32_t runs = node_of(s, id)->runs;
    assert(!s->concluding && !s->running && !(node_of(s, id)->flags & NODE_RUNNING));
    s->concluding = id;
    bool succeeded = !status && !tx->failed;
    if (!status) status = how(s, id, tx);
    if (status) failed(s, id, tx, status, succeeded);
    causes_give_back(s, id, tx); /* if the run took them and has not completed */
    s->concluding = 0;
    const node *n = node_of(s, id);
    if (n->cold || (n->flags & NODE_MATERIALISER))
        gates_ran(s, id, s->clock_ns ? s->clock_ns : env_now_ns(s->env), n->runs != runs);
    runner_remove_cancelled(s, id);
    return status;
}

/* Nodes that the run registered, or that moved because of what it read, may stand below the cursor now. */
static void settle_order(scheduler *s) {
    graph_settle(&s->graph);
    if (s->moves == s->graph.repaired_nodes) return;
    s->moves = s->graph.repaired_nodes;
    runner_note_behind(s);
}

hd_status runner_finish(scheduler *s, node_id id, hd_tx *tx, hd_status status) {
    node_of(s, id)->flags &= ~(uint32_t)NODE_RUNNING;
    if (!runner_remove_cancelled(s, id))
        status = conclude_with(s, id, tx, status ? tx_true_reason(tx, status) : HD_OK, conclude);
    /* What the run launched ends with it. One that is pending has not failed: it is made again. */
    if (status && tx->lineage) tx_launched(tx, status == HD_PENDING ? HD_ABORTED : status);
    s->message[0] = 0; /* the text of hd_tx_fail belonged to this run */
    settle_order(s);
    return status;
}

/* Empties the transaction, for runner_prepare. */
static void wipe(hd_tx *tx) {
    if (tx->writes.count || tx->preconditions.count || tx->claim_only.count || tx->failed ||
        tx->missing || tx->attempted.count || tx->lineage || tx->causes.count || tx->stamp.group) {
        tx_reset(tx);
        return;
    }
    if (tx->flags & TX_DIVERGED) tx_drop_reads(tx);
    if (tx->pool && tx->pool->count) hd_pool_clear(tx->pool);
}

static void run_unusual(scheduler *s, node_id id) {
    hd_tx *tx = s->tx;
    const node *n = node_of(s, id);
    bool clock = s->until_clock == 0 || s->tracer || (n->flags & NODE_GATED) || gates_times_next(n);
    graph_set_clean(&s->graph, node_of(s, id));
    uint64_t began = s->clock_ns = clock ? env_now_ns(s->env) : 0;
    runner_prepare(s, node_of(s, id), tx);
    if (s->tracer) s->tracer->run_begin(s, id);
    if (s->tracer) tx->flags |= TX_ATTEMPTS;
    hd_status status = call_body(s, id, tx);
    if (clock) runner_record_time(s, id, began);
    if (s->tracer) s->tracer->run_body(s, id, tx, status);
    if (s->tx != tx) {
        runner_left_suspended(s, id, status);
        return;
    }
    hd_node handle = registry_handle(s, id);
    status = runner_finish(s, id, tx, status);
    if (s->tracer && registry_get(s, handle)) s->tracer->run_end(s, id, tx, status);
    wipe(tx);
}

/* Most runs that come here are plain ones that are timed. */
void runner_run_unusual(scheduler *s, node_id id, uint32_t pos) {
    node *n = node_of(s, id);
    if (!s->tracer && !(n->flags & NODE_UNUSUAL)) {
        runner_run_plain(s, n, id, pos, s->until_clock == 0 || gates_times_next(n));
        return;
    }
    runner_end_row(s);
    run_unusual(s, id);
    runner_begin_row(s);
}

/* What runner_finish and wipe do, for a plain first run. */
static void end_first(scheduler *s, node_id id, hd_tx *tx) {
    hd_status status = conclude_with(s, id, tx, HD_OK, conclude_first);
    settle_order(s);
    if (status) s->message[0] = 0, wipe(tx);
    else if (tx->pool && tx->pool->count) hd_pool_clear(tx->pool);
}

/* A run like a plain one, of a node whose record names causes of it. False: it has to take the long way, and nothing
 * of it is committed yet. */
static bool end_told(scheduler *s, node_id id, hd_tx *tx, hd_status *status) {
    const uint32_t told = NODE_LINKED | NODE_TOLD_WHY;
    if (*status || tx->flags != (TX_OPEN | TX_RUN) || !tx_reads_unchanged(tx)) return false;
    if ((node_of(s, id)->flags & (told | NODE_NEVER_RAN)) != told) return false;
    if (causes_take(s, id, tx)) return false;
    if (tx_has_output(tx))
        *status = runner_write_in_place(s, id, tx->front.out, tx->front.out_value);
    if (*status) return false;
    s->concluding = id; /* the record is needed until the run has completed */
    completed(s, id, tx);
    s->concluding = 0;
    if (tx->pool && tx->pool->count) hd_pool_clear(tx->pool);
    return true;
}

void runner_end_unusual(scheduler *s, node_id id, hd_tx *tx, hd_status status) {
    if (end_told(s, id, tx, &status)) return;
    runner_end_row(s);
    if (!status && is_plain_first(node_of(s, id), tx)) {
        end_first(s, id, tx);
    } else if (s->tx != tx) {
        runner_left_suspended(s, id, status);
    } else {
        runner_finish(s, id, tx, status);
        wipe(tx);
    }
    runner_begin_row(s);
}

/* ---- sealing: what the store asks about outputs */

/* The causes of the author's last run go into the seal: that run wrote the document, or left it as it was. */
static hd_status vouch_causes(scheduler *s, node_id author, commit *c) {
    hd_status status = causes_of_last(s, author, &s->told);
    for (uint32_t i = 0; i < s->told.count && !status; i++)
        status = tx_cause(s->r, c, s->told.items[i]);
    return status;
}

static bool vouch(void *ctx, place_id doc, commit *c, struct key **by, hd_status *status) {
    scheduler *s = ctx;
    node_id author = place_at(&s->r->places, doc)->doc.writer;
    if (!author || (place_at(&s->r->places, doc)->doc.flags & DOC_MULTI_WRITER)) return true;
    const node *n = node_of(s, author);
    if (node_is_invalid(&s->graph, n) || (n->flags & NODE_RUNNING)) return false;
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count && !*status; i++)
        if (!(reads[i].key & KEY_NO_CLAIM)) *status = tx_claim(s->r, c, reads[i].key);
    if (!*status) *status = vouch_causes(s, author, c);
    *by = node_own_name(s, author);
    return true;
}

/* The node that wrote the output; 0: there is none, or there are several. */
static node_id author_of(const scheduler *s, place_id output) {
    const place *doc = place_at(&s->r->places, output);
    return doc->doc.flags & DOC_MULTI_WRITER ? 0 : doc->doc.writer;
}

static void sealed(void *ctx, const commit *c) {
    scheduler *s = ctx;
    assert(c->sealed);
    for (uint32_t i = 0; i < c->writes.count; i++) {
        node_id author = author_of(s, c->writes.items[i].doc);
        if (author) accepted(s, author);
    }
}

static void unseal(void *ctx, const commit *c, const doc_write *of, hd_status status) {
    scheduler *s = ctx;
    assert(c->sealed && of->first_cause + of->cause_count <= c->causes.count);
    node_id author = author_of(s, of->doc);
    if (!author) return;
    const place_id *causes = of->cause_count ? &c->causes.items[of->first_cause] : NULL;
    if (status_is_for_good(status)) {
        give_up(s, author);
        report(s, author, status, NULL, causes, of->cause_count);
        return;
    }
    causes_restore(s, author, causes, of->cause_count, causes_last_since(node_of(s, author)));
    s->stats.stale_retries++;
    again_later(s, author, false);
    origin_say_later(s, author);
}

/* A document was loaded in a later state than the rest of the replica, while a body is on the stack. Its
 * further reads take the slow way, which looks whether they meet such a document, also those that the last
 * run made. */
static void look_closer(void *ctx) {
    scheduler *s = ctx;
    if (!s->running || s->rechecking) return;
    s->tx->flags |= TX_BUSY;
    tx_slow_down(s->tx);
}

hd_status runner_init(scheduler *s) {
    s->until_clock = 1;
    s->upstream_epoch = 1;
    s->waiting_low = UINT32_MAX;
    s->r->observer.ahead = look_closer;
    s->r->observer.early = runner_check_read;
    s->r->observer.vouch = vouch;
    s->r->observer.sealed = sealed;
    s->r->observer.unseal = unseal;
    return tx_open(s->rt, HD_COMMIT_DERIVED, &s->tx);
}

void runner_fini(scheduler *s) {
    runner_drop_suspended(s);
    env_free(s->env, s->checked, s->checked_capacity * sizeof *s->checked);
    vec_fini(s->env, &s->upstream_walk);
    if (s->tx) tx_close(s->tx);
}
