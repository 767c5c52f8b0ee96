/* step.c -- steps: who begins next, what a completion does, when a timer fires.
 *
 * complete(), in the order of docs/WORKFLOWS.md: the token says whether the attempt still counts; the value or
 * exception goes into the walk, or a failure waits for its next attempt; what the walk has changed is stored
 * with the next commit.
 *
 * Cost: begin, complete and fire are O(log n) in the steps that wait, plus the walk. */
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

/* Called when what the instance waits for is stored. A step that no action of this program serves stays
 * where it is until one is registered. */
void step_queue(live *l) {
    hd_engine *e = l->e;
    if (!l->in || !l->stored || instance_is_over(l->in)) return;
    l->in->owner = l;
    LIST_FOR_SAFE (n, &l->in->unqueued) {
        strand *s = LIST_ENTRY(n, strand, unqueued);
        const plan_node *node = strand_node(s);
        if (s->state == STRAND_READY && !engine_action(e, node->name)) continue;
        list_remove(n);
        hd_status status = s->due_ms ? binheap_push(&e->timers, &s->timer, s->due_ms) : HD_OK;
        if (!status && s->state == STRAND_READY)
            status = binheap_push(&e->ready, &s->ready, rank(e, l, node));
        if (status) {
            live_lost(l);
            return;
        }
    }
}

static void drop_token(hd_engine *e, strand *s) {
    for (table_probe p = table_find(&e->tokens, (uint32_t)s->token);
         s->token && table_next(&e->tokens, &p);) {
        if (e->running.items[p.index] != s) continue;
        uint32_t index = p.index;
        e->running.items[index] = NULL;
        table_remove(&e->tokens, (uint32_t)s->token, index);
        break;
    }
    s->token = 0;
}

static void unqueue(hd_engine *e, strand *s) {
    if (binheap_linked(&s->timer)) binheap_remove(&e->timers, &s->timer);
    if (binheap_linked(&s->ready)) binheap_remove(&e->ready, &s->ready);
    drop_token(e, s);
}

void step_unqueue_news(live *l) {
    LIST_FOR (n, &l->in->news.strands) unqueue(l->e, LIST_ENTRY(n, strand, news));
}

void step_unqueue(live *l) {
    LIST_FOR (n, &l->in->strands) unqueue(l->e, LIST_ENTRY(n, strand, link));
}

static hd_status begin_claim(hd_engine *e, strand *s) {
    uint32_t index = 0;
    while (index < e->running.count && e->running.items[index]) index++;
    if (index == e->running.count && !vec_push(e->env, &e->running, NULL)) return HD_NOMEM;
    s->token = ++e->next_token;
    hd_status status = table_insert(&e->tokens, (uint32_t)s->token, index);
    if (status) return s->token = 0, status;
    e->running.items[index] = s;
    return HD_OK;
}

static strand *claimed(const hd_engine *e, uint64_t token) {
    for (table_probe p = table_find(&e->tokens, (uint32_t)token); table_next(&e->tokens, &p);)
        if (e->running.items[p.index] && e->running.items[p.index]->token == token)
            return e->running.items[p.index];
    return NULL;
}

/* ---- running an action */

const char *hd_action_id(const hd_action *action_) { return action_->id; }
uint32_t hd_action_attempt(const hd_action *action_) { return action_->attempt; }
hd_pool *hd_action_pool(hd_action *action_) { return action_->pool; }

hd_status hd_action_return(hd_action *action_, hd_value result) {
    action_->result = result;
    return hd_value_status(result);
}

hd_status hd_action_raise(hd_action *action_, const char *class_name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(action_->message, sizeof action_->message, format, arguments);
    va_end(arguments);
    snprintf(action_->class_name, sizeof action_->class_name, "%s", class_name);
    return HD_FAILED;
}

void step_run(const action *a, const char *id, uint32_t attempt, hd_pool *pool, hd_value args,
              completion *c) {
    hd_action now = { .id = id, .attempt = attempt, .pool = pool, .result = hd_null() };
    hd_status status = a->spec.fn(&now, args, a->spec.ctx);
    if (!status && hd_value_exists(now.result)) {
        c->result = now.result;
        return;
    }
    const char *otherwise =
        hd_status_class(status) == HD_CLASS_TRANSIENT ? "ConnectionError" : "RuntimeError";
    snprintf(c->class_name, sizeof c->class_name, "%s",
             now.class_name[0] ? now.class_name : otherwise);
    snprintf(c->message, sizeof c->message, "%s",
             now.class_name[0] ? now.message : hd_status_text(status));
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

static hd_status fail(hd_engine *e, strand *s, const completion *c) {
    const plan_retry *r = &strand_node(s)->retry;
    uint32_t class_ = classes_find(e->classes, c->class_name, strlen(c->class_name));
    if (class_ == CLASS_NONE || !class_is(e->classes, class_, CLASS_BaseException))
        class_ = CLASS_RuntimeError;
    if (s->attempt < r->attempts && !s->cancelled && is_worth_retrying(e, r, class_)) {
        e->stats.retries++;
        return retry_later(s, r);
    }
    (void)raise_f(e->w, class_, "%s", c->message);
    ev exception = raise_catch(e->w);
    if (exception.kind != EV_EXC) return e->w->status ? e->w->status : HD_NOMEM;
    return walk_raise(s->in, s, exception);
}

static hd_status succeed(hd_engine *e, strand *s, const completion *c) {
    ev v;
    hd_error error;
    hd_status status = decode_value(e->w, c->result, &v, &error);
    if (status == HD_NOMEM) return status;
    if (!status) return walk_result(s->in, s, v);
    (void)raise_f(e->w, CLASS_TypeError, "the result of %s cannot be used: %s",
                  strand_node(s)->name, error.message);
    ev exception = raise_catch(e->w);
    return exception.kind == EV_EXC ? walk_raise(s->in, s, exception) : HD_NOMEM;
}

static void complete(hd_engine *e, completion *c) {
    strand *s = claimed(e, c->token);
    if (!s) {
        e->stats.duplicates++;
    } else {
        live *l = live_of(s);
        unqueue(e, s);
        l->in->now_ms = env_wall_ms(e->env);
        hd_status status = hd_value_exists(c->result) ? succeed(e, s, c) : fail(e, s, c);
        if (!status) status = step_deliver(l);
        e->stats.steps++;
        step_unqueue_news(l);
        if (status) live_lost(l);
        else live_changed(l);
    }
    hd_value_unref(c->result);
    env_free(e->env, c, sizeof *c);
}

void step_arrived(hd_engine *e, completion *c) { list_push_back(&e->completions, &c->link); }

/* ---- beginning */

static void make_id(const strand *s, char *out, size_t size) {
    snprintf(out, size, "%s/%u.%u", live_of(s)->id, s->number, s->step);
}

static hd_status begin_here(hd_engine *e, const action *a, strand *s, const char *id) {
    hd_pool *pool;
    completion *c = env_new0(e->env, sizeof *c);
    if (!c || hd_pool_open(e->heap, &pool)) return env_free(e->env, c, sizeof *c), HD_NOMEM;
    c->token = s->token;
    step_run(a, id, s->attempt, pool, s->args, c);
    c->result = hd_value_ref(c->result);
    hd_pool_close(pool);
    step_arrived(e, c);
    return HD_OK;
}

static void begin(hd_engine *e, strand *s) {
    char id[HD_INSTANCE_ID_SIZE + 32];
    const plan_node *n = strand_node(s);
    const action *a = engine_action(e, n->name);
    make_id(s, id, sizeof id);
    strand_set_state(s, STRAND_RUNNING);
    e->stats.attempts++;
    hd_status status = begin_claim(e, s);
    if (!status) status = a->spec.here ? begin_here(e, a, s, id) : pool_give(e, a, s, id);
    if (status) {
        live_lost(live_of(s));
        return;
    }
    if (n->timeout_s > 0 && !a->spec.here)
        (void)binheap_push(&e->timers, &s->timer,
                           env_wall_ms(e->env) + (uint64_t)ceil(n->timeout_s * 1000));
}

/* ---- timers */

static void time_out(hd_engine *e, strand *s) {
    completion *c = env_new0(e->env, sizeof *c);
    if (!c) return;
    c->token = s->token;
    snprintf(c->class_name, sizeof c->class_name, "TimeoutError");
    complete(e, c);
}

static hd_status fire_signal(hd_engine *e, strand *s) {
    (void)raise_f(e->w, CLASS_TimeoutError, "no signal \"%s\"", strand_node(s)->name);
    ev exception = raise_catch(e->w);
    return exception.kind == EV_EXC ? walk_raise(s->in, s, exception) : HD_NOMEM;
}

static void fire(hd_engine *e, strand *s) {
    live *l = live_of(s);
    hd_status status = HD_OK;
    if (s->state == STRAND_RUNNING) {
        time_out(e, s);
        return;
    }
    l->in->now_ms = env_wall_ms(e->env);
    if (s->state == STRAND_BACKOFF) {
        strand_set_state(s, STRAND_READY);
        s->due_ms = 0;
        list_push_back(&l->in->unqueued, &s->unqueued);
        step_queue(l);
        return;
    }
    status = s->state == STRAND_SLEEPING ? walk_result(l->in, s, ev_none()) : fire_signal(e, s);
    if (!status) status = step_deliver(l);
    step_unqueue_news(l);
    if (status) live_lost(l);
    else live_changed(l);
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
    while (!e->waits && binheap_count(&e->ready)) {
        strand *s = BINHEAP_ENTRY(binheap_pop(&e->ready), strand, ready);
        begin(e, s);
        any = true;
    }
    while (!list_empty(&e->completions)) {
        complete(e, LIST_ENTRY(list_pop_front(&e->completions), completion, link));
        any = true;
    }
    return any;
}

/* Timers are kept in wall clock time; how long that is on the clock that waits is worked out anew each time. */
uint64_t step_deadline(const hd_engine *e) {
    if (!list_empty(&e->completions) || (!e->waits && binheap_count(&e->ready))) return 0;
    const binheap_item *first = binheap_peek(&e->timers);
    if (!first) return UINT64_MAX;
    uint64_t now = env_wall_ms(e->env);
    return first->key <= now ? 0 : env_now_ns(e->env) + (first->key - now) * UINT64_C(1000000);
}
