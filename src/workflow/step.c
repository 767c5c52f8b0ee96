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

/* Higher priorities first, then the order in which steps became ready. */
static uint64_t rank(hd_engine *e, const live *l, const plan_node *n) {
    int64_t priority = (int64_t)l->priority + n->priority;
    if (priority > 2000) priority = 2000;
    if (priority < -2000) priority = -2000;
    return (uint64_t)(2000 - priority) << 48 | (++e->age & UINT64_C(0xFFFFFFFFFFFF));
}

/* Called when what the instance waits for is stored. A paused instance's steps wait in its own list. A step that no worker serves waits in its queue too. */
void step_queue(live *l) {
    hd_engine *e = l->e;
    if (!l->in || !l->stored || l->in->status != INSTANCE_RUNNING) return;
    l->in->owner = l;
    for (list_node *n; (n = list_pop_front(&l->in->unqueued));) {
        strand *s = LIST_ENTRY(n, strand, unqueued);
        hd_status status = s->due_ms ? binheap_push(&e->timers, &s->timer, s->due_ms) : HD_OK;
        if (!status && s->state == STRAND_READY)
            status = task_push(e, s, rank(e, l, strand_node(s)));
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
void step_unqueue_news(live *l) {
    const list *news = &l->in->news.strands;
    for (list_node *n = list_last(news); n && n != &news->head; n = n->prev) {
        strand *s = LIST_ENTRY(n, strand, news);
        if (s->off_queues) break;
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
    double factor = r->factor > 0 ? r->factor : 2, most = r->max_s > 0 ? r->max_s : 3600;
    double wait = r->backoff_s * pow(factor, attempt - 1);
    return wait < most ? wait : most;
}

static hd_status retry_later(strand *s, const plan_retry *r) {
    double wait = backoff_s(r, s->attempt);
    s->attempt++;
    s->due_ms = wait > 0 ? s->in->now_ms + (uint64_t)ceil(wait * 1000) : 0;
    strand_set_state(s, s->due_ms ? STRAND_BACKOFF : STRAND_READY);
    strand_mark(s);
    return HD_OK;
}

/* The exception is raised in the workflow. */
static hd_status raise(hd_engine *e, strand *s, uint32_t class_, const char *message) {
    (void)raise_f(e->w, class_, "%s", message);
    ev exception = raise_catch(e->w);
    if (exception.kind != EV_EXC) return e->w->status ? e->w->status : HD_NOMEM;
    return walk_raise(s->in, s, exception);
}

static hd_status fail(hd_engine *e, strand *s, const char *class_name, const char *message) {
    const plan_retry *r = &strand_node(s)->retry;
    uint32_t class_ = classes_find(e->classes, class_name, strlen(class_name));
    if (class_ == CLASS_NONE || !class_is(e->classes, class_, CLASS_BaseException))
        class_ = CLASS_RuntimeError;
    if (s->attempt >= r->attempts || s->cancelled || !is_worth_retrying(e, r, class_))
        return raise(e, s, class_, message);
    e->stats.retries++;
    instance_note(s->in, JOURNAL_STEPS, JOURNAL_RETRY, s);
    return retry_later(s, r);
}

static hd_status succeed(hd_engine *e, strand *s, hd_value result) {
    ev v;
    hd_error error;
    char message[300];
    hd_status status = decode_value(e->w, result, &v, &error);
    if (status == HD_NOMEM) return status;
    if (!status) return walk_result(s->in, s, v);
    snprintf(message, sizeof message, "the result of %.60s cannot be used: %.200s",
             strand_node(s)->name, error.message);
    return raise(e, s, CLASS_TypeError, message);
}

/* Before a walk, and after it: what it has changed is stored with the next commit. */
static live *begin_walk(hd_engine *e, strand *s) {
    live *l = live_of(s);
    assert(!s->token);
    if (binheap_linked(&s->timer)) binheap_remove(&e->timers, &s->timer);
    l->in->now_ms = env_wall_ms(e->env);
    return l;
}

static void end_walk(live *l, hd_status status) {
    if (!status) status = step_deliver(l);
    step_unqueue_news(l);
    if (status) live_lost(l);
    else live_changed(l);
}

void step_succeed(hd_engine *e, strand *s, hd_value result) {
    live *l = begin_walk(e, s);
    e->stats.steps++;
    end_walk(l, succeed(e, s, result));
}

void step_fail(hd_engine *e, strand *s, const char *class_name, const char *message) {
    live *l = begin_walk(e, s);
    e->stats.steps++;
    end_walk(l, fail(e, s, class_name, message));
}

void step_raise(hd_engine *e, strand *s, uint32_t class_, const char *message) {
    live *l = begin_walk(e, s);
    end_walk(l, raise(e, s, class_, message));
}

void step_raise_value(hd_engine *e, strand *s, ev exception) {
    live *l = begin_walk(e, s);
    end_walk(l, walk_raise(s->in, s, exception));
}

void step_lost(hd_engine *e, strand *s) {
    live *l = begin_walk(e, s);
    e->stats.lost++;
    instance_note(s->in, JOURNAL_STEPS, JOURNAL_LOST, s);
    if (++s->lost > TASK_LOST_MAX) {
        end_walk(l, raise(e, s, CLASS_ConnectionError, "the worker was lost too often"));
        return;
    }
    strand_set_state(s, STRAND_READY);
    strand_mark(s);
    end_walk(l, HD_OK);
}

/* ---- timers */

static hd_status fire_signal(hd_engine *e, strand *s) {
    char message[300];
    snprintf(message, sizeof message, "no signal \"%.200s\"", strand_node(s)->name);
    return raise(e, s, CLASS_TimeoutError, message);
}

/* A failed attempt has waited long enough: that is known without a commit. */
static void end_backoff(live *l, strand *s) {
    strand_set_state(s, STRAND_READY);
    s->due_ms = 0;
    list_push_back(&l->in->unqueued, &s->unqueued);
    step_queue(l);
}

static void fire(hd_engine *e, strand *s) {
    live *l = begin_walk(e, s);
    if (s->state == STRAND_BACKOFF) end_backoff(l, s);
    else if (s->state == STRAND_SLEEPING) end_walk(l, walk_result(l->in, s, ev_none()));
    else end_walk(l, fire_signal(e, s));
}

static bool fire_due(hd_engine *e) {
    uint64_t now = env_wall_ms(e->env);
    bool any = false;
    for (binheap_item *first; (first = binheap_peek(&e->timers)) && first->key <= now; any = true) {
        strand *s = BINHEAP_ENTRY(first, strand, timer);
        binheap_remove(&e->timers, first);
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

static void drop_mail(live *l, uint32_t i) {
    mail *m = &l->mail.items[i];
    env_free(l->e->env, m->name, strlen(m->name) + 1);
    hd_value_unref(m->payload);
    vec_remove(&l->mail, i);
    l->mail_changed = true;
}

hd_status step_deliver(live *l) {
    for (uint32_t i = 0; i < l->mail.count && !instance_is_over(l->in);) {
        strand *s = waiter_for(l->in, l->mail.items[i].name);
        ev v;
        if (!s) {
            i++;
            continue;
        }
        hd_status status = decode_value(l->e->w, l->mail.items[i].payload, &v, NULL);
        drop_mail(l, i);
        if (status) return status;
        if (binheap_linked(&s->timer)) binheap_remove(&l->e->timers, &s->timer);
        l->in->now_ms = env_wall_ms(l->e->env);
        status = walk_result(l->in, s, v);
        if (status) return status;
        i = 0; /* what it does next may wait for an earlier one */
    }
    return HD_OK;
}

/* ---- a turn */

bool step_work(hd_engine *e) {
    bool any = fire_due(e);
    any = task_fire(e) || any;
    return task_offer(e) || any;
}

/* Timers are kept in wall clock time; how long that is on the clock that waits is worked out anew each time. */
uint64_t step_deadline(const hd_engine *e) {
    uint64_t claims = task_deadline(e);
    const binheap_item *first = binheap_peek(&e->timers);
    if (!first || !claims) return claims;
    uint64_t now = env_wall_ms(e->env);
    if (first->key <= now) return 0;
    uint64_t due = env_now_ns(e->env) + (first->key - now) * UINT64_C(1000000);
    return due < claims ? due : claims;
}
