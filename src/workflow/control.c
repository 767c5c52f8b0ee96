/* control.c -- what is done to an instance from outside: waiting for it, cancelling, signals, pausing.
 *
 * Each of these is a message in the inbox (inbox.c), left there after some checks. An active engine acts on its own
 * at once. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"
#include "workflow/name_list.h"
#include <stdio.h>

/* ---- waiting */

bool control_is_over(hd_value doc) {
    static const char *const ends[] = { "done", "failed", "cancelled", "stalled" };
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(status, ends[i])) return true;
    return false;
}

static hd_status outcome_of(hd_value doc, hd_value *result) {
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    *result = hd_value_at(doc, "result");
    if (!strcmp(status, "done")) return HD_OK;
    *result = hd_value_at(doc, "error");
    if (!strcmp(status, "cancelled")) return HD_ABORTED;
    return *status ? HD_FAILED : HD_NOT_FOUND;
}

/* What is visible of the document is a commit of this runtime that the store may still refuse: that of an engine which
 * has put its lease down, for example. */
static bool is_undecided(const hd_engine *e, place_id doc) { return replica_top(&e->rt->r, doc); }

/* What hd_workflow_await returns for an instance that is over, or does not exist. HD_PENDING: it is open, or its start
 * or its end is not stored yet. HD_BUSY: the server is away, so its document cannot be read now
 * (runtime_waits_for_store). */
static hd_status end_of(hd_engine *e, hd_pool *pool, const char *id, place_id at,
                        hd_value *result) {
    *result = (hd_value){ 0 };
    if (live_find(e, id)) return HD_PENDING;
    hd_value doc = hd_read(e->rt, pool, (hd_cell){ at });
    if (hd_value_status(doc)) return hd_value_status(doc);
    if (hd_value_exists(doc) ? !control_is_over(doc) : start_comes(e, at)) return HD_PENDING;
    return outcome_of(doc, result);
}

typedef struct awaited {
    hd_engine *e;
    const char *id;
    place_id doc;
} awaited;

static bool read_over(void *ctx) {
    const awaited *a = ctx;
    hd_pool *pool;
    if (a->e->nomem) return true;
    if (live_find(a->e, a->id) || is_undecided(a->e, a->doc)) return false;
    if (hd_pool_open(a->e->heap, &pool)) return true;
    hd_value doc = hd_read(a->e->rt, pool, (hd_cell){ a->doc });
    bool comes =
        runtime_waits_for_store(a->e->rt, hd_value_status(doc)) || start_comes(a->e, a->doc);
    bool open = hd_value_exists(doc) ? !control_is_over(doc) : comes;
    hd_pool_close(pool);
    return !open;
}

/* The reference on the document is kept meanwhile, so that the runtime hears of changes by other runtimes. */
hd_status hd_workflow_await(hd_engine *e, const char *id, hd_pool *pool, hd_value *result) {
    awaited a = { e, id, engine_document(e, INSTANCE_PREFIX, id) };
    *result = (hd_value){ 0 };
    if (!a.doc) return engine_may_exist(id) ? HD_NOMEM : HD_NOT_FOUND;
    e->nomem = false; /* what failed before is tried again */
    hd_status status = runtime_run_until(e->rt, read_over, &a);
    if (!status) status = end_of(e, pool, id, a.doc, result);
    place_unref(&e->rt->r.places, a.doc);
    return status == HD_PENDING ? HD_NOMEM : status;
}

/* ---- being told */

typedef struct waiter {
    list_node link; /* in waited.waiters */
    hd_workflow_end_fn fn;
    void *ctx;
} waiter;

static uint32_t hash_id(const char *id) { return (uint32_t)hash_bytes(id, strlen(id), 0); }

static waited *find_waited(const hd_engine *e, const char *id) {
    for (table_probe p = table_find(&e->by_waited, hash_id(id)); table_next(&e->by_waited, &p);)
        if (!strcmp(e->waited.items[p.index]->id, id)) return e->waited.items[p.index];
    return NULL;
}

static void free_waited(hd_engine *e, waited *w) {
    for (list_node *n; (n = list_pop_front(&w->waiters));)
        env_free(e->env, LIST_ENTRY(n, waiter, link), sizeof(waiter));
    if (w->doc) place_unref(&e->rt->r.places, w->doc);
    engine_free_text(e, w->id);
    env_free(e->env, w, sizeof *w);
}

/* Takes `w` out of the table; the last one takes its place. */
static void take_waited(hd_engine *e, const waited *w) {
    uint32_t last = e->waited.count - 1;
    table_probe p = table_find(&e->by_waited, hash_id(w->id));
    while (table_next(&e->by_waited, &p) && e->waited.items[p.index] != w) {}
    assert(e->waited.items[p.index] == w);
    table_remove(&e->by_waited, hash_id(w->id), p.index);
    if (p.index != last)
        table_move(&e->by_waited, hash_id(e->waited.items[last]->id), last, p.index);
    vec_swap_remove(&e->waited, p.index);
}

static hd_status make_waited(hd_engine *e, const char *id, const live *l, waited **out) {
    waited *w = env_new0(e->env, sizeof *w);
    *out = w;
    if (!w) return HD_NOMEM;
    list_init(&w->waiters);
    w->id = engine_text(e, id);
    if (l && l->doc) place_ref(&e->rt->r.places, w->doc = l->doc);
    else w->doc = engine_document(e, INSTANCE_PREFIX, id);
    if (w->id && w->doc && vec_room(e->env, &e->waited, 1) &&
        !table_insert(&e->by_waited, hash_id(id), e->waited.count)) {
        (void)vec_push(e->env, &e->waited, w);
        return HD_OK;
    }
    free_waited(e, w);
    return HD_NOMEM;
}

/* The functions that are called may call hd_workflow_then for the same instance again. While a server is away, or a
 * commit of the document has no verdict, the inbox looks at the document again. */
void control_tell(hd_engine *e, const char *id) {
    hd_pool *pool;
    hd_value result;
    waited *w = find_waited(e, id);
    if (!w) return;
    if (is_undecided(e, w->doc) || hd_pool_open(e->heap, &pool)) {
        inbox_note(e, w->doc);
        return;
    }
    hd_status status = end_of(e, pool, id, w->doc, &result);
    if (runtime_waits_for_store(e->rt, status)) inbox_note(e, w->doc);
    else if (status != HD_PENDING) {
        take_waited(e, w);
        LIST_FOR_SAFE (n, &w->waiters) {
            const waiter *one = LIST_ENTRY(n, waiter, link);
            one->fn(w->id, status, result, one->ctx);
        }
        free_waited(e, w);
    }
    hd_pool_close(pool);
}

void control_look_again(hd_engine *e, const char *id) {
    const waited *w = find_waited(e, id);
    if (w) inbox_note(e, w->doc);
}

void control_fini(hd_engine *e) {
    while (e->waited.count) free_waited(e, vec_pop(&e->waited));
    table_clear(&e->by_waited);
}

hd_status hd_workflow_then(hd_engine *e, const char *id, hd_workflow_end_fn fn, void *ctx) {
    if (!engine_may_exist(id)) return HD_NOT_FOUND;
    if (!fn) return runtime_fail(e->rt, HD_USAGE, "hd_workflow_then: no function is given");
    const live *l = live_find(e, id);
    waited *w = find_waited(e, id);
    waiter *one = env_new(e->env, sizeof *one);
    hd_status status = one ? inbox_listen(e) : HD_NOMEM;
    if (!status && !w) status = make_waited(e, id, l, &w);
    if (status) {
        if (one) env_free(e->env, one, sizeof *one);
        return status; /* a new `waited` without waiters stays; it calls no function */
    }
    *one = (waiter){ .fn = fn, .ctx = ctx };
    list_push_back(&w->waiters, &one->link);
    /* The instance may be over already: then no event follows that would call control_tell. */
    if (!l) inbox_note(e, w->doc);
    return HD_OK;
}

/* ---- doing */

/* Steps and timers of the instance go on when the end of the pause is stored. */
static void end_pause(live *l) {
    assert(l->in->status == INSTANCE_PAUSED);
    l->in->status = INSTANCE_RUNNING;
    l->in->now_ms = env_wall_ms(l->e->env);
    instance_note(l->in, JOURNAL_STEPS, JOURNAL_RESUME, NULL);
    LIST_FOR (n, &l->in->strands) task_resume(l->e, LIST_ENTRY(n, strand, link));
    l->in->status_changed = true;
}

/* Cancelling ends a pause, because clean-up must run. */
hd_status control_cancel(live *l, uint32_t times) {
    if (l->in->status == INSTANCE_PAUSED) end_pause(l);
    l->in->now_ms = env_wall_ms(l->e->env);
    if (l->in->cancelling >= times) return step_end_walk(l, HD_OK);
    l->in->cancelling = times - 1;
    return step_end_walk(l, walk_cancel(l->in));
}

static hd_status apply_signal(live *l, hd_value message) {
    hd_value name = hd_value_at(message, "signal");
    hd_status status = mail_add(l, name, hd_value_at(message, "payload"));
    if (status) return status;
    l->in->now_ms = env_wall_ms(l->e->env);
    instance_note_signal(l->in, name);
    return step_end_walk(l, HD_OK);
}

/* Steps that wait for a worker leave the queues; what runs may finish. */
static hd_status apply_pause(live *l) {
    if (l->in->status == INSTANCE_PAUSED) return HD_OK;
    assert(l->in->status == INSTANCE_RUNNING);
    l->in->status = INSTANCE_PAUSED;
    l->in->now_ms = env_wall_ms(l->e->env);
    instance_note(l->in, JOURNAL_STEPS, JOURNAL_PAUSE, NULL);
    l->in->status_changed = true;
    step_suspend(l);
    live_changed(l);
    return HD_OK;
}

static hd_status apply_resume(live *l) {
    if (l->in->status != INSTANCE_PAUSED) return HD_OK;
    end_pause(l);
    live_changed(l);
    return HD_OK;
}

hd_status control_apply(hd_engine *e, const char *id, hd_value message) {
    const char *verb = hd_value_as_text(hd_value_at(message, "verb"), "");
    live *l = live_find(e, id);
    if (!l || !l->in || instance_is_over(l->in)) return HD_NOT_FOUND;
    if (!strcmp(verb, "cancel")) return control_cancel(l, 1);
    if (!strcmp(verb, "signal")) return apply_signal(l, message);
    if (!strcmp(verb, "pause")) return apply_pause(l);
    if (!strcmp(verb, "resume")) return apply_resume(l);
    if (away_is_said(verb)) return away_apply(e, message);
    return HD_USAGE;
}

/* ---- asking */

/* A message is a document, also in the active engine: if the commit with its effect is refused, it is read again. */
static hd_status ask(hd_engine *e, hd_value message) {
    hd_status status = hd_value_status(message);
    if (!status) status = inbox_listen(e);
    if (!status) status = inbox_post(e, message, NULL, NULL);
    if (!status && e->active) inbox_work(e);
    return status;
}

hd_value control_message(hd_pool *pool, const char *id, const char *verb) {
    hd_value m = hd_object_set(pool, hd_object(), "to", hd_string(pool, id));
    return hd_object_set(pool, m, "verb", hd_string(pool, verb));
}

/* The error that says why the instance takes no messages. `doc` is its document; absent: there is none. */
static hd_status not_open(hd_engine *e, const char *id, hd_value doc) {
    if (!hd_value_exists(doc) && !live_find(e, id))
        return runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s", id);
    const char *status = hd_value_as_text(hd_value_at(doc, "status"), "");
    return runtime_fail(e->rt, HD_NOT_FOUND, "%s is over (%s)", id,
                        control_is_over(doc) ? status : "its end is being stored");
}

hd_value control_look_at(hd_engine *e, hd_pool *pool, const char *id) {
    inbox_work(e);
    if (e->active && !list_empty(&e->lame) && !e->rt->open) live_retry(e);
    return engine_read(e, pool, INSTANCE_PREFIX, id);
}

/* Whether the instance waits for memory: what becomes of it is not known. */
static bool is_lame(const live *l) { return l && !l->in && !l->stalled; }

/* Whether the instance can go on: by what is in memory (`l`), else by its document. */
static bool is_open(const live *l, hd_value doc) {
    if (l) return l->in && !instance_is_over(l->in);
    return hd_value_exists(doc) && !control_is_over(doc);
}

/* Posts a message to an instance that is open. `when_over_too`: HD_OK if the instance is over. */
static hd_status say(hd_engine *e, const char *id, const char *verb, bool when_over_too) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value doc = control_look_at(e, pool, id);
    const live *l = live_find(e, id);
    if (is_lame(l)) status = HD_NOMEM;
    else if (hd_value_status(doc)) status = hd_value_status(doc);
    else if (is_open(l, doc)) status = ask(e, control_message(pool, id, verb));
    else if (!when_over_too || !(l || hd_value_exists(doc))) status = not_open(e, id, doc);
    hd_pool_close(pool);
    return status;
}

hd_status hd_workflow_cancel(hd_engine *e, const char *id) { return say(e, id, "cancel", true); }
hd_status hd_workflow_pause(hd_engine *e, const char *id) { return say(e, id, "pause", false); }
hd_status hd_workflow_resume(hd_engine *e, const char *id) { return say(e, id, "resume", false); }

/* Finds a step of the workflow that waits for the signal. False: there is none, and `names` has the signals for which
 * the workflow waits. */
static bool plan_find_signal(const plan *p, const char *name, name_list *names) {
    for (uint32_t i = 0; i < p->function_count; i++)
        for (uint32_t k = 0; k < p->functions[i].node_count; k++) {
            const plan_node *n = &p->functions[i].nodes[k];
            if (n->kind != NODE_WAIT) continue;
            if (!strcmp(n->name, name)) return true;
            name_list_add(names, n->name);
        }
    return false;
}

/* Whether a step of the workflow waits for the signal; HD_USAGE: none does. */
static hd_status check_signal_of(hd_engine *e, const plan *p, const char *signal) {
    name_list names;
    int most = (int)strlen(signal);
    if (most > 60) most = 60;
    while (most && ((unsigned char)signal[most] & 0xC0) == 0x80) most--; /* between characters */
    name_list_begin(&names, "; it waits for ", "%s waits for no signal \"%.*s%s\"", p->name, most,
                    signal, signal[most] ? "..." : "");
    if (plan_find_signal(p, signal, &names)) return HD_OK;
    return runtime_fail(e->rt, HD_USAGE, "%s", names.text);
}

static hd_status check_signal(hd_engine *e, const char *id, hd_value doc, const char *signal) {
    const live *l = live_find(e, id);
    plan *p = l && l->in ? l->in->p : NULL;
    hd_status status = is_lame(l) ? HD_NOMEM : hd_value_status(doc);
    if (status) return status;
    if (!is_open(l, doc)) return not_open(e, id, doc);
    if (!p) status = version_plan(e, hd_value_as_text(hd_value_at(doc, "version"), ""), &p);
    if (engine_may_pass(status)) return status;
    return p ? check_signal_of(e, p, signal) : HD_OK;
}

hd_status hd_workflow_signal(hd_engine *e, const char *id, const char *signal, hd_value payload) {
    if (!signal) return runtime_fail(e->rt, HD_USAGE, "no signal is named");
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    if (hd_value_status(payload))
        status = runtime_fail(e->rt, hd_value_status(payload),
                              "the payload of \"%.100s\" could not be made", signal);
    else if (!engine_takes(e, payload))
        status = runtime_fail(e->rt, HD_LIMIT, "the payload of \"%.100s\" is longer than %zu bytes",
                              signal, e->value_max);
    if (!status) status = check_signal(e, id, control_look_at(e, pool, id), signal);
    hd_value m = control_message(pool, id, "signal");
    m = hd_object_set(pool, m, "signal", hd_string(pool, signal));
    if (hd_value_exists(payload)) m = hd_object_set(pool, m, "payload", payload);
    if (!status) status = ask(e, m);
    hd_pool_close(pool);
    return status;
}

hd_cell hd_workflow_cell(hd_engine *e, const char *id) {
    place_id doc = engine_document(e, INSTANCE_PREFIX, id);
    if (!doc) {
        bool may_exist = engine_may_exist(id);
        runtime_fail(e->rt, may_exist ? HD_NOMEM : HD_SYNTAX, "%s",
                     may_exist ? hd_status_text(HD_NOMEM) : "no instance has this id");
        return (hd_cell){ 0 };
    }
    place_at(&e->rt->r.places, doc)->doc.flags |= DOC_PINNED; /* the handle stays good */
    place_unref(&e->rt->r.places, doc);
    return (hd_cell){ doc };
}
