/* within.c -- the worker that runs actions within a transaction: what they write is committed with their completion, so
 * that it happens once.
 *
 * One action at a time, in a commit of its own: if the commit is refused because what the action has read was changed,
 * only its own instance is loaded again, and the step runs again. So it waits until nothing else is to be stored.
 *
 * A refusal for good is noted with the instance (live.refusals): before the step is offered again, others may run. */
#include "workflow/engine.h"

#include "base/env.h"
#include <stdio.h>
#include <string.h>

struct within {
    worker w; /* first */
    hd_pool *pool;
    uint64_t commit; /* engine.commits_begun of the last one that was made here */
    char instance[HD_INSTANCE_ID_SIZE];
    char step[HD_INSTANCE_ID_SIZE + 32];    /* the step that it completes */
    char author[HD_INSTANCE_ID_SIZE + 204]; /* "instance#node", as the log has it */
    /* Instances that it has started: the listener does not hear of our own commits. References. */
    VEC(place_id) starts;
};

hd_tx *hd_action_tx(const hd_action *a) { return a->tx; }

void within_look(hd_engine *e) {
    if (!e->within) return;
    bool may_run = !e->starved && !e->waits && !flight_has_news(e);
    if (may_run != (e->within->w.capacity > 0)) worker_set_capacity(&e->within->w, may_run);
}

/* Whether the function has worked. Where the transaction has failed and it did not look, the action raises that. */
static bool conclude(bool ok, hd_action *a, const hd_tx *tx) {
    const hd_error *error = hd_runtime_error(tx->rt);
    if (ok && tx->failed && tx->failed == error->status)
        (void)hd_action_raise(a, "RuntimeError", "%s", error->message);
    else if (ok && tx->failed) here_blame(a, tx->failed);
    return ok && !tx->failed;
}

/* The store could not be read now, or another writer has changed it: that is no failure of the action. */
static bool is_to_run_again(const hd_tx *tx) {
    hd_class class = hd_status_class(tx->failed);
    return class == HD_CLASS_TRANSIENT || class == HD_CLASS_STALE || class == HD_CLASS_PENDING ||
           class == HD_CLASS_NOMEM;
}

static void run_later(hd_engine *e, const task_view *t, hd_status why) {
    (void)task_give_back(e, t->token);
    engine_starve(e, why);
}

static void forget_starts(hd_engine *e) {
    for (uint32_t i = 0; i < e->within->starts.count; i++)
        place_unref(&e->rt->r.places, e->within->starts.items[i]);
    vec_clear(&e->within->starts);
}

hd_status within_started(hd_engine *e, const hd_tx *tx, place_id doc) {
    if (!(tx->flags & TX_LENT) || !e->within) return HD_OK;
    if (!vec_push(e->env, &e->within->starts, doc)) return HD_NOMEM;
    place_ref(&e->rt->r.places, doc);
    return HD_OK;
}

/* ---- refusals */

/* So often the action runs while a value is not the one that it requires (HD_HASH_DIFFERS): the store does not say
 * whether another writer has changed what it read. */
#define RUNS_MAX 10

bool within_is_to_blame(hd_status status) {
    hd_class class_ = hd_status_class(status);
    return status_is_for_good(status) || class_ == HD_CLASS_INPUT || class_ == HD_CLASS_USAGE;
}

static refusal *find_refusal(const live *l, const char *step) {
    for (uint32_t i = 0; l && i < l->refusals.count; i++)
        if (!strcmp(l->refusals.items[i].step, step)) return &l->refusals.items[i];
    return NULL;
}

static void forget_refusal(live *l, const char *step) {
    const refusal *r = find_refusal(l, step);
    if (!r) return;
    engine_free_text(l->e, r->step);
    vec_swap_remove(&l->refusals, (uint32_t)(r - l->refusals.items));
}

void within_forget(live *l) {
    while (l->refusals.count) engine_free_text(l->e, vec_pop(&l->refusals).step);
    vec_fini(l->e->env, &l->refusals);
}

/* Without memory for it the step runs once more. */
static void note_refusal(live *l, const char *step, hd_status status) {
    refusal *r = find_refusal(l, step);
    if (!r) {
        refusal fresh = { .step = engine_text(l->e, step) };
        if (!fresh.step || !vec_push(l->e->env, &l->refusals, fresh)) {
            engine_free_text(l->e, fresh.step);
            return;
        }
        r = &l->refusals.items[l->refusals.count - 1];
    }
    r->status = status;
    r->times++;
}

static void judge(hd_engine *e, hd_status status) {
    live *l = live_find(e, e->within->instance);
    if (!l) return;
    if (!status) forget_refusal(l, e->within->step);
    else if (within_is_to_blame(status) || status == HD_HASH_DIFFERS)
        note_refusal(l, e->within->step, status);
}

bool within_told(hd_engine *e, uint64_t number, hd_status status) {
    if (!e->within || e->within->commit != number) return false;
    judge(e, status);
    for (uint32_t i = 0; i < e->within->starts.count && !status; i++)
        inbox_note(e, e->within->starts.items[i]);
    forget_starts(e);
    return true;
}

/* The step ran before, and the store does not take what it wrote: running it again would not help. */
static bool fail_refused(hd_engine *e, const task_view *t) {
    live *l = live_find(e, t->instance);
    const refusal *r = find_refusal(l, t->id);
    if (!r || (!within_is_to_blame(r->status) && r->times < RUNS_MAX)) return false;
    char message[128];
    snprintf(message, sizeof message, "its commit was refused: %s", hd_status_text(r->status));
    forget_refusal(l, t->id);
    (void)task_fail(e, t->token, "RuntimeError", message);
    return true;
}

/* ---- running */

/* The completion of a step with another result is an attempt that has failed: what it wrote is not stored. */
static bool is_good_result(hd_engine *e, const task_view *t, hd_value result) {
    const live *l = live_find(e, t->instance);
    if (!l || !l->in) return true; /* finish() sees that the completion is late */
    hd_status status = engine_takes(e, result) ? engine_try(e, l->in->p, result, NULL) : HD_LIMIT;
    return !status || status == HD_NOMEM;
}

/* Stores what the completion has made of the instance in the action's transaction. If that is not possible, both are
 * given up, and the action runs again: a completion that was stored alone would lose what the action wrote. */
static void finish(hd_engine *e, hd_tx *tx, const task_view *t, hd_value result) {
    struct within *self = e->within;
    snprintf(self->instance, sizeof self->instance, "%s", t->instance);
    snprintf(self->step, sizeof self->step, "%s", t->id);
    snprintf(self->author, sizeof self->author, "%s#%s", t->instance, t->node);
    tx->stamp.action = self->author;
    assert(!e->waits && !(tx->flags & TX_LENT));
    /* Before the action ran everything was stored, so an earlier loss has spoiled nothing. Instances that have changed
     * since are those that the action's function has started or rerun: they are stored in the same commit. */
    e->spoiled = false;
    self->commit = e->commits_begun + 1;
    hd_status status = task_complete(e, t->token, result);
    if (!status) (void)child_work(e);
    const live *l = live_find(e, self->instance);
    bool stored = !status && l && l->changed && !e->spoiled;
    if (stored) status = flight_begin_in(e, tx);
    else hd_tx_abort(tx), flight_lose_changed(e);
    bool sent = e->commits_begun >= self->commit;
    if (!sent) self->commit = 0; /* the next commit is another one */
    if (stored && status && !(sent && within_is_to_blame(status)))
        engine_starve(e, status); /* loaded again, the step would be offered at once */
    else if (!stored && !status) engine_starve(e, HD_NOMEM);
}

/* Before the action runs: what it does cannot be kept until the store can be read. */
static hd_status begin(hd_engine *e, const task_view *t, hd_tx **tx) {
    live *l = live_find(e, t->instance);
    hd_status status = l && l->in ? document_prepare_step(l) : HD_OK;
    return status ? status : engine_begin(e, tx);
}

static void run(hd_engine *e, const task_view *t, hd_pool *pool) {
    if (fail_refused(e, t)) return;
    hd_action_spec spec = engine_action(e, t->action)->spec;
    hd_action now = here_attempt(t, pool);
    hd_status status = begin(e, t, &now.tx);
    if (status) {
        run_later(e, t, status);
        return;
    }
    hd_value args = hd_value_ref(t->args);
    hd_tx *tx = now.tx;
    forget_starts(e);
    tx->flags |= TX_LENT;
    bool ok = here_run(&spec, &now, args);
    tx->flags &= ~(uint32_t)TX_LENT;
    if (conclude(ok, &now, tx)) {
        if (is_good_result(e, t, now.result)) finish(e, tx, t, now.result);
        else hd_tx_abort(tx), (void)task_complete(e, t->token, now.result);
    } else if (is_to_run_again(tx)) {
        status = tx->failed;
        hd_tx_abort(tx);
        run_later(e, t, status);
    } else {
        hd_tx_abort(tx);
        (void)task_fail(e, t->token, now.class_name, now.message);
    }
    hd_value_unref(args);
}

static void offer(worker *w) {
    struct within *self = (struct within *)(void *)w;
    hd_engine *e = w->e;
    task_view t;
    within_look(e);
    if (e->closing || e->rt->open || e->rt->in_run || !w->capacity || !task_claim(w, &t)) return;
    run(e, &t, self->pool);
    hd_pool_clear(self->pool);
    within_look(e);
}

static const worker_ops ops = { .offer = offer };

hd_status within_serve(hd_engine *e, const char *action) {
    if (!e->within) {
        struct within *self = env_new0(e->env, sizeof *self);
        if (!self || hd_pool_open(e->heap, &self->pool))
            return env_free(e->env, self, sizeof *self), HD_NOMEM;
        self->w = (worker){ .ops = &ops, .lines = &e->served, .capacity = 1, .sole = true };
        worker_join(e, &self->w);
        e->within = self;
    }
    return worker_serve(&e->within->w, action);
}

void within_close(hd_engine *e) {
    if (!e->within) return;
    worker_leave(&e->within->w);
    hd_pool_close(e->within->pool);
    forget_starts(e);
    vec_fini(e->env, &e->within->starts);
    env_free(e->env, e->within, sizeof *e->within);
    e->within = NULL;
}
