/* async.c -- runs that are suspended: the run keeps its transaction, and ends when hd_run_resume is called.
 *
 *     body: hd_tx_suspend --> suspensions --> hd_run_resume --> as any other run ends
 *                                               |     ^
 *                       from a body: resumed ---+-----+  between runs
 *
 * A run that nothing can go on with is *parked*: it stays in suspensions, so that all waits for it as before, except
 * idle. runner_unpark ends it as a run that does not count, and its node runs again.
 *
 * Until its run ends the node is invalid and not eligible: it does not run, and no node downstream of it
 * does (upstream.c); handlers and pulls that depend on it wait as for any node that is not clean.
 * If the node is cancelled meanwhile, the end of its run commits nothing. */
#include "scheduler/runner/runner.h"

/* ---- the end */

static bool has_changed(const scheduler *s, const hd_tx *tx, const uint32_t *keys, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (causes_changed_at(s, keys[i]) > tx->epoch) return true;
    return false;
}

/* Whether something has changed that the run has read, or that it wrote as it was. */
static bool is_stale(const scheduler *s, const hd_tx *tx) {
    assert((tx->flags & TX_EPOCH) && tx->epoch <= s->r->rev);
    return has_changed(s, tx, tx->reads.items, tx->reads.count) ||
           has_changed(s, tx, tx->claim_only.items, tx->claim_only.count);
}

static bool reads_as_before(const node *n, const hd_tx *tx) {
    const edge *reads = node_reads_const(n);
    if (n->read_count != tx->reads.count) return false;
    for (uint32_t i = 0; i < n->read_count; i++)
        if (reads[i].key != tx->reads.items[i]) return false;
    return true;
}

static void end_suspended_node(scheduler *s, node_id id, hd_tx *tx, hd_status status) {
    node *n = node_of(s, id);
    hd_node handle = registry_handle(s, id);
    assert((n->flags & NODE_SUSPENDED) && s->suspended && cold_of(s, n)->run->tx == tx);
    s->suspended--;
    s->parked -= cold_of(s, n)->run->parked;
    cold_of(s, n)->run = NULL;
    n->flags &= ~(uint32_t)NODE_SUSPENDED;
    s->clock_ns = env_now_ns(s->env);
    bool stale = is_stale(s, tx);
    if (!status && stale) status = HD_STALE;
    if (!status) status = tx_rebase(tx);
    /* Nothing that this run read has changed. The change that marked the node meanwhile is of something that
     * only the run before had read. */
    if (!stale) graph_set_clean(&s->graph, n);
    /* If this run read less than the one before, a suspended run may no longer lie upstream of the nodes
     * that it blocks. */
    if (!reads_as_before(n, tx)) s->unblock = true;
    status = runner_finish(s, id, tx, status);
    if (!registry_get(s, handle)) return;
    gates_apply(s, id, s->clock_ns);
    if (s->tracer) s->tracer->run_end(s, id, tx, status);
}

/* The caller has taken `run` from its list; it is freed here. */
static void end_suspended(scheduler *s, hd_run *run, hd_status status) {
    assert(!list_linked(&run->link) && run->tx->owner == run);
    node_id id = registry_get(s, (hd_node){ run->node, run->generation });
    runner_unblock(s, run);
    if (id) end_suspended_node(s, id, run->tx, status);
    causes_end(s, run->tx);
    tx_close(run->tx);
    env_free(s->env, run, sizeof *run);
}

void runner_left_suspended(scheduler *s, node_id id, hd_status status) {
    hd_run *run = cold_of(s, node_of(s, id))->run;
    assert(run && run->node == id && (node_of(s, id)->flags & NODE_SUSPENDED));
    runner_remove_cancelled(s, id);
    if (status != HD_PENDING && !run->parked) runner_resume(run, status);
}

/* ---- suspending and resuming */

/* The running node's transaction becomes that of the suspended run; `next` is that of the runs after it. */
static void hand_over(scheduler *s, hd_tx *tx, hd_tx *next, hd_run *run) {
    assert(next != tx && s->tx == tx);
    run->tx = tx;
    tx->owner = run;
    tx->flags |= TX_EPOCH;
    tx->epoch = s->r->rev; /* nothing has changed since the body began */
    tx_expect_nothing(tx);
    s->tx = next;
}

/* Until its run ends the node is invalid and not eligible. */
static void mark_suspended(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    s->suspended++;
    n->flags |= NODE_RUNNING | NODE_SUSPENDED;
    graph_set_eligible(&s->graph, n, false);
    graph_set_invalid(&s->graph, n);
    if (s->suspended == 1 || n->pos < s->suspended_low) s->suspended_low = n->pos;
    if (s->suspended == 1) s->upstream_moves = s->graph.repaired_nodes;
    s->upstream_epoch++;
    s->asynchronous = true;
    assert(s->suspended_low <= n->pos);
    assert(s->suspended <= list_count(&s->suspensions) + list_count(&s->resumed));
}

hd_status runner_suspend(scheduler *s, hd_tx *tx, hd_run **out) {
    node_id id = s->running;
    *out = NULL;
    if (!id || tx != s->tx)
        return runtime_fail(s->rt, HD_USAGE, "only the running node can be suspended");
    hd_run *run = env_new(s->env, sizeof *run);
    hd_tx *next = NULL;
    cold *c = registry_cold(s, id);
    hd_status status = tx_open(s->rt, HD_COMMIT_DERIVED, &next);
    if (!status)
        status = tx_reads_complete(tx); /* the expected reads are the node's, and may change */
    if (!status) status = causes_take(s, id, tx); /* later revisions would not tell them any more */
    if (!run || !c) status = HD_NOMEM;
    if (status) {
        causes_give_back(s, id, tx);
        if (next) tx_close(next);
        env_free(s->env, run, sizeof *run);
        return status;
    }
    assert(!c->run && !c->blocked_by && !(node_of(s, id)->flags & NODE_SUSPENDED));
    *run = (hd_run){ .s = s, .node = id, .generation = s->sides[id].generation };
    list_init(&run->blocked);
    list_push_back(&s->suspensions, &run->link);
    c->run = run;
    hand_over(s, tx, next, run);
    mark_suspended(s, id);
    runner_note_round(s, id, &tx->causes);
    *out = run;
    return HD_OK;
}

/* A suspended run does not end while a body is on the stack or a run is concluded: it would change values,
 * read sets and positions under them. It waits in `resumed` for the next pass. */
void runner_resume(hd_run *run, hd_status status) {
    scheduler *s = run->s;
    assert(list_linked(&run->link));
    s->tick = true;
    list_remove(&run->link);
    if (!s->rt->in_run && !s->concluding) {
        end_suspended(s, run, status);
        return;
    }
    run->status = status;
    list_push_back(&s->resumed, &run->link);
}

/* ---- parking */

void runner_park(hd_run *run) {
    scheduler *s = run->s;
    assert(list_linked(&run->link) && !run->parked);
    run->parked = true;
    if (registry_get(s, (hd_node){ run->node, run->generation })) s->parked++;
    assert(s->parked <= s->suspended);
}

/* The program has been interrupted: no other node runs in this pump. */
hd_status runner_park_running(scheduler *s) {
    node_id id = s->running;
    if (!id) return runtime_fail(s->rt, HD_USAGE, "no node is running");
    hd_run *run = node_of(s, id)->flags & NODE_SUSPENDED ? cold_of(s, node_of(s, id))->run : NULL;
    hd_status status = run ? HD_OK : runner_suspend(s, s->tx, &run);
    if (status) return status;
    if (!run->parked) runner_park(run);
    s->must_wait = s->tick = true;
    return HD_OK;
}

void runner_unpark(scheduler *s) {
    LIST_FOR_SAFE (at, &s->suspensions) {
        hd_run *run = LIST_ENTRY(at, hd_run, link);
        if (run->parked) runner_resume(run, HD_PENDING);
    }
}

void runner_end_resumed(scheduler *s) {
    assert(!s->running && !s->concluding && !s->rt->in_run);
    while (!list_empty(&s->resumed)) {
        hd_run *run = LIST_ENTRY(list_pop_front(&s->resumed), hd_run, link);
        end_suspended(s, run, run->status);
    }
}

/* ---- the runtime closes */

static void drop_runs(scheduler *s, list *runs) {
    while (!list_empty(runs)) {
        hd_run *run = LIST_ENTRY(list_pop_front(runs), hd_run, link);
        while (!list_empty(&run->blocked)) list_pop_front(&run->blocked);
        causes_end(s, run->tx);
        tx_close(run->tx);
        env_free(s->env, run, sizeof *run);
    }
}

void runner_drop_suspended(scheduler *s) {
    drop_runs(s, &s->suspensions);
    drop_runs(s, &s->resumed);
}
