/* step.c -- steps: what a completion does, when a timer fires.
 *
 * complete(), in the order of docs/WORKFLOWS.md: the token says whether the attempt still counts; the value or
 * exception goes into the walk, or a failure waits for its next attempt; what the walk has changed is stored
 * with the next commit.
 *
 * Cost: completing and firing are O(log n) in the steps that wait, plus the walk. */
#include "workflow/engine.h"

#include "base/env.h"
#include "expr/encode.h"
#include <math.h>
#include <stdio.h>

static live *live_of(const strand *s) { return s->in->owner; }

/* ---- queues */

/* Higher priorities first; of equal ones the instances take turns, so that one with many steps does not hold up the
 * others: its nth step that waits has a turn n later than its first. Within a turn in order of becoming ready. */
#define TURN_BITS 52

static uint64_t rank(hd_engine *e, live *l, strand *s) {
    int64_t priority = (int64_t)l->priority + strand_node(s)->priority;
    if (priority > 2000) priority = 2000;
    if (priority < -2000) priority = -2000;
    if (l->turns_serial != e->turns_serial) l->turns_serial = e->turns_serial, l->turn = 0;
    l->turn = (l->turn > e->turn ? l->turn : e->turn) + 1;
    s->ready.tie = ++e->age;
    return (uint64_t)(2000 - priority) << TURN_BITS | l->turn;
}

void step_note_turn(hd_engine *e, uint64_t of_rank) {
    e->turn = of_rank & ((UINT64_C(1) << TURN_BITS) - 1);
}

/* Called when what the instance waits for is stored. Steps of an instance that is paused, or is to be
 * given away or cancelled, wait in its own list. A step that no worker serves waits in its queue too. */
void step_queue(live *l) {
    hd_engine *e = l->e;
    if (!l->in || !l->stored || l->in->status != INSTANCE_RUNNING) return;
    if (l->shard->drains_ns || l->orphaned) return;
    l->in->owner = l;
    for (list_node *n; (n = list_pop_front(&l->in->unqueued));) {
        strand *s = LIST_ENTRY(n, strand, unqueued);
        s->timer.tie = s->begun; /* the order of timers that are due together, as in asyncio */
        hd_status status = s->due_ms ? binheap_push(&e->timers, &s->timer, s->due_ms) : HD_OK;
        if (!status && s->state == STRAND_READY) status = task_push(e, s, rank(e, l, s));
        if (!status && s->state == STRAND_CHILD) child_resume(s);
        if (status) {
            live_lost(l);
            return;
        }
    }
}

static void unqueue(hd_engine *e, strand *s) {
    if (binheap_linked(&s->timer)) binheap_remove(&e->timers, &s->timer);
    task_withdraw(e, s);
}

/* News are added at the end: what stands before one that is off the queues is off them too, since the queues get
 * strands back only when they are news no more. So a batch of completions costs each strand once. */
static void unqueue_news(live *l) {
    const list *news = &l->in->news.strands;
    const list_node *first = news->head.prev;
    while (first != &news->head && !LIST_ENTRY(first, strand, news)->off_queues)
        first = first->prev;
    /* Actions are cancelled in the order in which asyncio would do it. */
    for (list_node *n = first->next; n != &news->head; n = n->next) {
        strand *s = LIST_ENTRY(n, strand, news);
        unqueue(l->e, s);
        s->off_queues = true;
    }
}

void step_unqueue(live *l) {
    LIST_FOR (n, &l->in->strands) {
        child_unlink(LIST_ENTRY(n, strand, link));
        unqueue(l->e, LIST_ENTRY(n, strand, link));
    }
}

void step_suspend(live *l) {
    LIST_FOR (n, &l->in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_RUNNING || s->state == STRAND_ENDED) continue;
        unqueue(l->e, s);
        if (!list_linked(&s->unqueued)) list_push_back(&l->in->unqueued, &s->unqueued);
    }
}

/* ---- completing */

static bool is_worth_retrying(hd_engine *e, const plan_retry *r, uint32_t class_) {
    for (uint32_t i = 0; i < r->on_count; i++)
        if (class_is(e->classes, class_, r->on[i])) return true;
    return !r->on_count;
}

static double backoff_s(const plan_retry *r, uint32_t attempt) {
    assert(attempt >= 1);
    double factor = r->factor > 0 ? r->factor : 2, most = r->max_s > 0 ? r->max_s : 3600;
    if (!(r->backoff_s > 0)) return 0; /* zero times an infinite power is no number */
    double wait = r->backoff_s * pow(factor, attempt - 1);
    return wait < most ? wait : most;
}

static hd_status retry_later(strand *s, const plan_retry *r) {
    double wait = backoff_s(r, s->attempt);
    assert(s->state == STRAND_RUNNING && s->attempt < r->attempts);
    s->attempt++;
    s->due_ms = wait > 0 ? s->in->now_ms + (uint64_t)ceil(wait * 1000) : 0;
    instance_count_begun(s);
    strand_set_state(s, s->due_ms ? STRAND_BACKOFF : STRAND_READY);
    strand_mark(s);
    return HD_OK;
}

/* Raises an exception in the workflow. It has no arguments if the message is empty, as a CancelledError never has. */
static hd_status raise(hd_engine *e, strand *s, uint32_t class_, const char *message) {
    e->w->status = HD_OK;
    if (*message) (void)raise_f(e->w, class_, "%s", message);
    ev exception = *message ? raise_catch(e->w) : exc_new(e->w, class_, e->w->empty_tuple);
    if (exception.kind != EV_EXC) return e->w->status ? e->w->status : HD_NOMEM;
    return walk_raise(s->in, s, exception);
}

/* CLASS_NONE: not known, or no class of exceptions. */
static uint32_t exception_class(const hd_engine *e, const char *name) {
    uint32_t class_ = classes_find(e->classes, name, strlen(name));
    bool good = class_ != CLASS_NONE && class_is(e->classes, class_, CLASS_BaseException);
    return good ? class_ : CLASS_NONE;
}

static bool is_last_attempt(hd_engine *e, const strand *s, uint32_t class_) {
    const plan_retry *r = &strand_node(s)->retry;
    return s->attempt >= r->attempts || !is_worth_retrying(e, r, class_);
}

/* "ConnectionError: no route": what the attempt has raised, for those who look. */
static hd_status keep_reason(hd_engine *e, strand *s, const char *class_name, const char *message) {
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value v = hd_string_f(pool, "%.60s%s%.200s", class_name, *message ? ": " : "", message);
    if (hd_value_status(v) == HD_SYNTAX) v = hd_string(pool, "an exception that is not UTF-8");
    status = hd_value_status(v);
    if (!status) {
        hd_value_unref(s->why);
        s->why = hd_value_ref(v);
    }
    hd_pool_close(pool);
    return status;
}

static hd_status retry(hd_engine *e, strand *s, const char *class_name, const char *message) {
    assert(s->state == STRAND_RUNNING && strand_node(s)->kind == NODE_ACTION);
    hd_status status = keep_reason(e, s, class_name, message);
    if (status) return status;
    e->stats.retries++;
    instance_note(s->in, JOURNAL_STEPS, JOURNAL_RETRY, s);
    return retry_later(s, &strand_node(s)->retry);
}

/* A class that the engine does not know is a RuntimeError, and the message begins with its name. */
static hd_status raise_unknown(hd_engine *e, strand *s, const char *class_name,
                               const char *message) {
    char whole[1300];
    snprintf(whole, sizeof whole, "%.200s%s%.1000s", class_name,
             *class_name && *message ? ": " : "", message);
    return raise(e, s, CLASS_RuntimeError, whole);
}

static hd_status fail(hd_engine *e, strand *s, const char *class_name, const char *message) {
    assert(live_of(s)->in == s->in);
    uint32_t class_ = exception_class(e, class_name);
    const char *dot = strrchr(class_name, '.');
    if (class_ == CLASS_NONE && dot) class_ = exception_class(e, dot + 1);
    bool known = class_ != CLASS_NONE;
    if (!known) class_ = CLASS_RuntimeError;
    if (!is_last_attempt(e, s, class_)) return retry(e, s, class_name, message);
    return known ? raise(e, s, class_, message) : raise_unknown(e, s, class_name, message);
}

/* The class of an exception from outside: its own, else the first of its bases that is known. */
static uint32_t class_or_base(const hd_engine *e, hd_value exception) {
    uint32_t class_ = exception_class(e, hd_value_as_text(hd_value_at(exception, "$error"), ""));
    hd_iter it = hd_iter_of(hd_value_at(exception, "bases"));
    while (class_ == CLASS_NONE && hd_iter_next(&it))
        class_ = exception_class(e, hd_value_as_text(it.value, ""));
    return class_ == CLASS_NONE ? CLASS_RuntimeError : class_;
}

/* The exception, and what caused it, with nothing that is not part of one; belongs to the pool. A class that the engine
 * does not know is made if the exception names its bases, and `made` says so; else it is one that the engine knows. */
static hd_value with_classes(const hd_engine *e, hd_pool *pool, hd_value exception, bool made,
                             int depth) {
    static const char *const parts[] = { "args", "attrs", "message", "bases" };
    bool keeps = made && hd_value_count(hd_value_at(exception, "bases"));
    const char *name = keeps ? hd_value_as_text(hd_value_at(exception, "$error"), "")
                             : class_of(e->classes, class_or_base(e, exception))->name;
    hd_value cause = hd_value_at(exception, "cause");
    hd_value out = hd_object_set(pool, hd_object(), "$error", hd_string(pool, name));
    for (size_t i = 0; i < (keeps ? 4 : 3); i++) {
        hd_value v = hd_value_at(exception, parts[i]);
        if (hd_value_exists(v)) out = hd_object_set(pool, out, parts[i], v);
    }
    if (!hd_value_exists(cause) || depth >= 20) return out;
    return hd_object_set(pool, out, "cause", with_classes(e, pool, cause, made, depth + 1));
}

static hd_status raise_decoded(hd_engine *e, strand *s, hd_pool *pool, hd_value exception) {
    ev v;
    hd_error error;
    char message[300];
    hd_value whole = with_classes(e, pool, exception, true, 0);
    hd_status status = hd_value_status(whole);
    if (!status) status = decode_value(e->w, whole, &v, &error);
    if (status && status != HD_NOMEM) {
        whole = with_classes(e, pool, exception, false, 0);
        status = hd_value_status(whole);
        if (!status) status = decode_value(e->w, whole, &v, &error);
    }
    if (status == HD_NOMEM) return status;
    assert(status || v.kind == EV_EXC);
    if (!status) return walk_raise(s->in, s, v);
    snprintf(message, sizeof message, "the exception of %.60s cannot be used: %.200s",
             strand_node(s)->name, error.message);
    return raise(e, s, CLASS_TypeError, message);
}

static hd_status fail_with(hd_engine *e, strand *s, hd_value exception) {
    bool final = hd_value_as_bool(hd_value_at(exception, "final"), false);
    if (!final && !is_last_attempt(e, s, class_or_base(e, exception)))
        return retry(e, s, hd_value_as_text(hd_value_at(exception, "$error"), "an exception"),
                     hd_value_as_text(hd_value_index(hd_value_at(exception, "args"), 0), ""));
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    status = raise_decoded(e, s, pool, exception);
    hd_pool_close(pool);
    return status;
}

static hd_status refuse_long(hd_engine *e, strand *s) {
    char message[200];
    snprintf(message, sizeof message, "the result of %.60s is longer than %zu bytes",
             strand_node(s)->name, e->value_max);
    return fail(e, s, "ValueError", message);
}

/* `except` and `retry` go by the class: that stays, and the message says that arguments and attributes were dropped. It
 * is a ValueError if that is still too long, or if it is a group, which cannot be made of a message alone. */
static hd_status fail_shortened(hd_engine *e, strand *s, hd_value exception) {
    char message[200];
    snprintf(message, sizeof message,
             "the exception of %.60s is longer than %zu bytes: its arguments and attributes were "
             "dropped",
             strand_node(s)->name, e->value_max);
    if (class_is(e->classes, class_or_base(e, exception), CLASS_BaseExceptionGroup))
        return fail(e, s, "ValueError", message);
    hd_pool *pool;
    hd_status status = hd_pool_open(e->heap, &pool);
    if (status) return status;
    hd_value args = hd_array_append(pool, hd_array(), hd_string(pool, message));
    hd_value v = hd_object_set(pool, hd_object(), "$error", hd_value_at(exception, "$error"));
    v = hd_object_set(pool, v, "args", args);
    if (hd_value_exists(hd_value_at(exception, "bases")))
        v = hd_object_set(pool, v, "bases", hd_value_at(exception, "bases"));
    status = hd_value_status(v);
    if (!status)
        status = engine_takes(e, v) ? fail_with(e, s, v) : fail(e, s, "ValueError", message);
    hd_pool_close(pool);
    return status;
}

static hd_status succeed(hd_engine *e, strand *s, hd_value result) {
    ev v;
    hd_error error;
    char message[300];
    if (!engine_takes(e, result)) return refuse_long(e, s);
    hd_status status = decode_value(e->w, result, &v, &error);
    if (status == HD_NOMEM) return status;
    if (!status) return walk_result(s->in, s, v);
    snprintf(message, sizeof message, "the result of %.60s cannot be used: %.200s",
             strand_node(s)->name, error.message);
    return raise(e, s, CLASS_TypeError, message);
}

static live *begin_walk(hd_engine *e, strand *s) {
    live *l = live_of(s);
    assert(!s->token && !s->queue && l->in == s->in && !instance_is_over(s->in));
    if (binheap_linked(&s->timer)) binheap_remove(&e->timers, &s->timer);
    l->in->now_ms = env_wall_ms(e->env);
    plan_use(l->in->p);
    return l;
}

hd_status step_end_walk(live *l, hd_status status) {
    assert(l->in && !l->in->walking.count);
    if (!status) status = step_deliver(l);
    unqueue_news(l);
    if (status) live_lost(l);
    else live_changed(l);
    return status;
}

void step_succeed(hd_engine *e, strand *s, hd_value result) {
    live *l = begin_walk(e, s);
    e->stats.steps++;
    (void)step_end_walk(l, succeed(e, s, result));
}

void step_fail(hd_engine *e, strand *s, const char *class_name, const char *message) {
    live *l = begin_walk(e, s);
    e->stats.steps++;
    (void)step_end_walk(l, fail(e, s, class_name, message));
}

void step_fail_with(hd_engine *e, strand *s, hd_value exception) {
    live *l = begin_walk(e, s);
    e->stats.steps++;
    (void)step_end_walk(l, engine_takes(e, exception) ? fail_with(e, s, exception)
                                                      : fail_shortened(e, s, exception));
}

void step_raise(hd_engine *e, strand *s, uint32_t class_, const char *message) {
    live *l = begin_walk(e, s);
    (void)step_end_walk(l, raise(e, s, class_, message));
}

void step_raise_value(hd_engine *e, strand *s, ev exception) {
    live *l = begin_walk(e, s);
    (void)step_end_walk(l, walk_raise(s->in, s, exception));
}

void step_lost(hd_engine *e, strand *s) {
    assert(s->state == STRAND_RUNNING && strand_node(s)->kind == NODE_ACTION);
    live *l = begin_walk(e, s);
    e->stats.lost++;
    instance_note(s->in, JOURNAL_STEPS, JOURNAL_LOST, s);
    if (++s->lost >= TASK_LOST_MAX) {
        (void)step_end_walk(l, raise(e, s, CLASS_ConnectionError,
                                     "the worker was lost, or gave no heartbeat, too often"));
        return;
    }
    strand_set_state(s, STRAND_READY);
    strand_mark(s);
    (void)step_end_walk(l, HD_OK);
}

/* ---- timers */

static hd_status fire_signal(hd_engine *e, strand *s) {
    assert(s->state == STRAND_SIGNAL && s->due_ms);
    char message[300];
    snprintf(message, sizeof message, "no signal \"%.200s\"", strand_node(s)->name);
    return raise(e, s, CLASS_TimeoutError, message);
}

/* A failed attempt has waited long enough: that is known without a commit. */
static void end_backoff(live *l, strand *s) {
    assert(s->state == STRAND_BACKOFF && s->attempt > 1 && !list_linked(&s->unqueued));
    strand_set_state(s, STRAND_READY);
    s->due_ms = 0;
    list_push_back(&l->in->unqueued, &s->unqueued);
    step_queue(l);
}

static void fire(hd_engine *e, strand *s) {
    live *l = begin_walk(e, s);
    assert(s->due_ms && s->in->status == INSTANCE_RUNNING);
    assert(s->state == STRAND_BACKOFF || s->state == STRAND_SLEEPING || s->state == STRAND_SIGNAL);
    if (s->state == STRAND_BACKOFF) end_backoff(l, s);
    else if (s->state == STRAND_SLEEPING) (void)step_end_walk(l, walk_result(l->in, s, ev_none()));
    else (void)step_end_walk(l, fire_signal(e, s));
}

/* `of_loaded`: only those of strands that were loaded, up to the first that was not. A group is counted in instances:
 * one instance fires all of its timers that are due together, however many, in one pump. */
static bool fire_due(hd_engine *e, bool of_loaded) {
    uint64_t now = env_wall_ms(e->env);
    bool any = false;
    for (binheap_item *first;
         (first = binheap_peek(&e->timers)) && first->key <= now && !flight_is_group(e);
         any = true) {
        strand *s = BINHEAP_ENTRY(first, strand, timer);
        if (of_loaded && !s->loaded) break;
        fire(e, s);
    }
    return any;
}

/* ---- signals */

static strand *waiter_for(const instance *in, const char *signal) {
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_SIGNAL && !strcmp(strand_node(s)->name, signal)) return s;
    }
    return NULL;
}

/* The strand may have come here by a cancellation in this walk: the attempt that it was at is still claimed then. A
 * payload that is no value of a workflow is an exception there: kept, it would be in the way of every later one. */
static hd_status wake(live *l, strand *s, hd_value payload) {
    ev v;
    hd_error error = { 0 };
    char message[320];
    unqueue(l->e, s);
    l->in->now_ms = env_wall_ms(l->e->env);
    plan_use(l->in->p);
    hd_status status = decode_value(l->e->w, payload, &v, &error);
    if (status == HD_NOMEM) return status;
    if (!status) return walk_result(l->in, s, v);
    snprintf(message, sizeof message, "the payload of the signal %.60s cannot be used: %.200s",
             strand_node(s)->name, error.message);
    return raise(l->e, s, CLASS_TypeError, message);
}

/* A signal that is kept is looked at again only when a strand has begun to wait: a step costs the same however many are
 * kept. */
hd_status step_deliver(live *l) {
    hd_status status = HD_OK;
    mailbox *box = &l->mail;
    while (!status && !instance_is_over(l->in)) {
        if (l->in->waits_anew) box->offered = 0; /* what it waits for may have come earlier */
        l->in->waits_anew = false;
        if (box->offered == box->kept.count) break;
        strand *s = waiter_for(l->in, box->kept.items[box->offered].name);
        if (!s) {
            box->offered++;
            continue;
        }
        hd_value payload = { 0 };
        status = mail_take(l, box->offered, &payload);
        if (!status) status = wake(l, s, payload);
        hd_value_unref(payload);
    }
    return status;
}

/* ---- a turn */

/* As in asyncio a step is begun before its time limit can cancel it, however short that is. But a step whose limit was
 * over while no engine ran is not begun again. */
bool step_work(hd_engine *e) {
    bool any = fire_due(e, true);
    any = task_offer(e) || any;
    any = fire_due(e, false) || any;
    return task_fire(e) || any;
}

/* What is due waits while what has changed is a group that is to be committed first. Timers are kept in wall clock
 * time; how long that is on the clock that waits is worked out anew each time. */
uint64_t step_deadline(const hd_engine *e) {
    if (flight_is_group(e)) return UINT64_MAX; /* a commit comes first */
    uint64_t claims = task_deadline(e);
    const binheap_item *first = binheap_peek(&e->timers);
    if (!first || !claims) return claims;
    uint64_t now = env_wall_ms(e->env);
    if (first->key <= now) return 0;
    uint64_t due = env_ns_at(e->env, now, first->key);
    return due < claims ? due : claims;
}
