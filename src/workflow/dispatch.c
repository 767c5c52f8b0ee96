/* dispatch.c -- queues of ready steps, workers, claims: what task.h declares. */
#include "workflow/task.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/number.h"
#include "workflow/engine.h"
#include "workflow/guest.h"
#include <math.h>

#define INDEX_BITS 24 /* of a token: where the claim is; the rest counts claims */

/* ---- queues */

static uint32_t hash_name(const char *line_name, const char *action) {
    return (uint32_t)hash_bytes(action, strlen(action),
                                *line_name ? hash_bytes(line_name, strlen(line_name), 0) : 0);
}

static queue *find_queue(const hd_engine *e, const char *line_name, const char *action) {
    uint32_t hash = hash_name(line_name, action);
    for (table_probe p = table_find(&e->by_action, hash); table_next(&e->by_action, &p);) {
        queue *q = e->queues.items[p.index];
        if (!strcmp(q->name, action) && !strcmp(q->line->name, line_name)) return q;
    }
    return NULL;
}

static void heat(hd_engine *e, queue *q) {
    share_touch(e, &q->line->share);
    if (binheap_count(&q->ready) && q->room && line_has_room(q->line) && !list_linked(&q->hot))
        list_push_back(&e->hot, &q->hot);
}

void task_heat_line(hd_engine *e, const line *l) {
    for (uint32_t i = 0; i < e->queues.count; i++)
        if (e->queues.items[i]->line == l) heat(e, e->queues.items[i]);
}

static bool is_among(const name_vec *names, const char *name) {
    for (uint32_t i = 0; i < names->count; i++)
        if (!strcmp(names->items[i], name)) return true;
    return false;
}

static bool is_full(const worker *w) { return w->held >= w->capacity; }

/* The worker is offered what is in the queue, if it serves such steps. */
static hd_status attach(hd_engine *e, worker *w, queue *q) {
    bool any_line = !w->lines || !w->lines->count;
    if (!is_among(&w->actions, q->name)) return HD_OK;
    if (!any_line && !is_among(w->lines, q->line->name)) return HD_OK;
    if (!vec_room(e->env, &q->workers, 1) || !vec_push(e->env, &w->serves, q)) return HD_NOMEM;
    (void)vec_push(e->env, &q->workers, w);
    q->room += !is_full(w);
    q->near += !w->last_resort;
    if (w->sole) q->sole = w;
    return HD_OK;
}

static void detach(worker *w, queue *q) {
    for (uint32_t i = 0; i < q->workers.count; i++)
        if (q->workers.items[i] == w) {
            vec_remove(&q->workers, i);
            break;
        }
    assert(q->room >= !is_full(w) && q->near >= !w->last_resort);
    q->room -= !is_full(w);
    q->near -= !w->last_resort;
    if (q->sole == w) q->sole = NULL;
    heat(w->e, q); /* those of last resort may have it now */
}

static void free_queue(hd_engine *e, queue *q) {
    if (q->name) env_free(e->env, q->name, strlen(q->name) + 1);
    /* Of a queue that could not be made the workers have it last in `serves`; when the engine ends, they have none. */
    while (q->workers.count) {
        worker *w = vec_pop(&q->workers);
        if (w->serves.count) w->serves.count--;
    }
    vec_fini(e->env, &q->workers);
    binheap_fini(&q->ready);
    list_discard(&q->hot);
    env_free(e->env, q, sizeof *q);
}

static hd_status attach_all(hd_engine *e, queue *q) {
    hd_status status = HD_OK;
    LIST_FOR (n, &e->workers)
        if (!status) status = attach(e, LIST_ENTRY(n, worker, link), q);
    return status;
}

/* The action's queue in the line of that name, made where there is none; NULL: no memory. */
static queue *queue_of(hd_engine *e, const char *line_name, const char *action) {
    queue *q = find_queue(e, line_name, action);
    if (q || !(q = env_new0(e->env, sizeof *q))) return q;
    binheap_init(&q->ready, e->env);
    q->name = env_new_copy(e->env, action, strlen(action) + 1);
    q->line = line_of(e, line_name);
    if (q->name && q->line && vec_room(e->env, &e->queues, 1) && !attach_all(e, q) &&
        !table_insert(&e->by_action, hash_name(line_name, action), e->queues.count)) {
        (void)vec_push(e->env, &e->queues, q);
        return q;
    }
    free_queue(e, q);
    return NULL;
}

/* The name of the step's line: its node's, or its instance's; "": none. */
static const char *line_name_of(const strand *s) {
    const char *own = strand_node(s)->queue;
    const live *l = s->in->owner;
    return own ? own : l->line ? l->line : "";
}

bool task_is_served(const hd_engine *e, const strand *s) {
    const queue *q = find_queue(e, line_name_of(s), strand_node(s)->name);
    return q && q->workers.count;
}

hd_status task_push(hd_engine *e, strand *s, uint64_t rank) {
    bool may_queue;
    hd_status status = limit_enter(e, s, rank, &may_queue);
    return status || !may_queue ? status : task_push_admitted(e, s, rank);
}

hd_status task_push_admitted(hd_engine *e, strand *s, uint64_t rank) {
    queue *q = queue_of(e, line_name_of(s), strand_node(s)->name);
    assert(s->state == STRAND_READY && !s->token && !s->queue);
    hd_status status = q ? binheap_push(&q->ready, &s->ready, rank) : HD_NOMEM;
    if (status) return status;
    s->queue = q;
    e->ready_count++;
    heat(e, q);
    return HD_OK;
}

/* Where no step waits, turns begin anew. */
static void take_out(hd_engine *e, strand *s) {
    assert(s->queue && binheap_linked(&s->ready) && e->ready_count);
    binheap_remove(&s->queue->ready, &s->ready);
    share_touch(e, &s->queue->line->share);
    s->queue = NULL;
    if (!--e->ready_count) e->turns_serial++, e->turn = 0;
}

/* ---- workers */

/* The worker has become full, or has got room again. */
static void room_changed(worker *w) {
    bool full = is_full(w);
    for (uint32_t i = 0; i < w->serves.count; i++) {
        w->serves.items[i]->room += full ? UINT32_MAX : 1;
        if (!full) heat(w->e, w->serves.items[i]);
    }
}

static void set_held(worker *w, uint32_t held) {
    bool before = is_full(w);
    w->held = held;
    if (is_full(w) != before) room_changed(w);
}

void worker_join(hd_engine *e, worker *w) {
    w->e = e;
    w->held = 0;
    list_init(&w->claims);
    list_push_back(&e->workers, &w->link);
}

hd_status worker_serve(worker *w, const char *action) {
    hd_engine *e = w->e;
    if (is_among(&w->actions, action)) return HD_OK;
    queue *q = queue_of(e, "", action);
    char *name = q ? engine_text(e, action) : NULL;
    if (!name || !vec_push(e->env, &w->actions, name)) {
        engine_free_text(e, name);
        return HD_NOMEM;
    }
    for (uint32_t i = 0; i < e->queues.count; i++) {
        if (strcmp(e->queues.items[i]->name, action) != 0) continue;
        if (attach(e, w, e->queues.items[i])) {
            worker_unserve(w, action);
            return HD_NOMEM;
        }
        heat(e, e->queues.items[i]);
    }
    return HD_OK;
}

void worker_unserve(worker *w, const char *action) {
    for (uint32_t i = w->serves.count; i-- > 0;) {
        if (strcmp(w->serves.items[i]->name, action) != 0) continue;
        detach(w, w->serves.items[i]);
        vec_remove(&w->serves, i);
    }
    for (uint32_t i = w->actions.count; i-- > 0;) {
        if (strcmp(w->actions.items[i], action) != 0) continue;
        engine_free_text(w->e, w->actions.items[i]);
        vec_remove(&w->actions, i);
    }
    assert(!is_among(&w->actions, action));
}

void worker_set_capacity(worker *w, uint32_t capacity) {
    bool before = is_full(w);
    w->capacity = capacity;
    if (is_full(w) != before) room_changed(w);
}

void worker_ask_again(worker *w) {
    for (uint32_t i = 0; i < w->serves.count; i++) heat(w->e, w->serves.items[i]);
}

void worker_hold(worker *w, int more) { set_held(w, w->held + (uint32_t)more); }

/* An engine that is closed ends the claims of its workers itself: none of them is lost. */
static void leave_claim(hd_engine *e, uint64_t token) {
    if (e->closing) (void)task_give_back(e, token);
    else (void)task_lost(e, token);
}

void worker_leave(worker *w) {
    hd_engine *e = w->e;
    if (!e) return;
    guest_left(w);
    for (uint32_t i = 0; i < w->serves.count; i++) detach(w, w->serves.items[i]);
    vec_fini(e->env, &w->serves);
    while (w->actions.count) engine_free_text(e, vec_pop(&w->actions));
    vec_fini(e->env, &w->actions);
    while (!list_empty(&w->claims))
        leave_claim(e, LIST_ENTRY(list_first(&w->claims), task, link)->token);
    list_discard(&w->link);
    w->e = NULL;
}

/* ---- claims */

static task *slot_of(const hd_engine *e, uint64_t token) {
    uint64_t index = token & ((UINT64_C(1) << INDEX_BITS) - 1);
    task *c = index < e->claims.count ? e->claims.items[index] : NULL;
    return c && c->token == token ? c : NULL;
}

static task *claim_of(const hd_engine *e, uint64_t token) {
    task *c = slot_of(e, token);
    return c && c->s ? c : NULL;
}

uint32_t task_shard(const hd_engine *e, uint64_t token) {
    const task *c = slot_of(e, token);
    assert(c);
    return c->shard;
}

bool task_is_held_by(const worker *w, uint64_t token) {
    const task *c = w->e ? claim_of(w->e, token) : NULL;
    return c && c->w == w;
}

place_id task_document(const hd_engine *e, uint64_t token) {
    const task *c = claim_of(e, token);
    const live *l = c->s->in->owner;
    return l->doc;
}

/* A free one; NULL: no memory, or too many. */
static task *new_claim(hd_engine *e) {
    if (e->free_claims.count) return vec_pop(&e->free_claims);
    uint32_t index = e->claims.count;
    if (index >> INDEX_BITS || !vec_room(e->env, &e->claims, 1) ||
        !vec_room(e->env, &e->free_claims, index + 1) || binheap_reserve(&e->deadlines, index + 1))
        return NULL;
    task *c = env_new0(e->env, sizeof *c);
    if (!c) return NULL;
    c->token = index;
    (void)vec_push(e->env, &e->claims, c);
    return c;
}

/* Room for it was made in new_claim: this cannot fail. */
static void end_claim(hd_engine *e, task *c) {
    worker *w = c->w;
    assert(c->s && c->s->token == c->token); /* W1 */
    assert(w && w->held && c->line->running && e->claimed_count);
    if (binheap_linked(&c->timer)) binheap_remove(&e->deadlines, &c->timer);
    strand *s = c->s;
    bool was_full = !line_has_room(c->line);
    s->token = 0;
    c->s = NULL;
    c->w = NULL;
    list_remove(&c->link);
    e->claimed_count--;
    c->line->running--;
    share_ended(e, &c->line->share);
    (void)vec_push(e->env, &e->free_claims, c);
    set_held(w, w->held - 1);
    if (was_full) task_heat_line(e, c->line);
    limit_leave(e, s);
}

static void revoke(hd_engine *e, task *c, const char *why) {
    worker *w = c->w;
    uint64_t token = c->token;
    end_claim(e, c);
    if (w->ops->revoke) w->ops->revoke(w, token, why);
}

void task_withdraw(hd_engine *e, strand *s) {
    if (s->queue) take_out(e, s);
    task *c = s->token ? claim_of(e, s->token) : NULL;
    if (c) revoke(e, c, "gone");
    s->token = 0;
    limit_leave(e, s);
}

/* ---- claiming */

static uint64_t ns_of(double seconds) {
    return seconds < 1e9 ? (uint64_t)(seconds * 1e9) : (uint64_t)1e18;
}

/* The timeout of a paused instance's attempt waits; task_resume sets it. */
static void set_timer(hd_engine *e, task *c) {
    uint64_t due = c->s->in->status == INSTANCE_PAUSED ? 0 : c->timeout_ns;
    assert(!binheap_linked(&c->timer));
    c->timer.tie = c->token >> INDEX_BITS; /* in the order in which they were begun */
    if (c->silent_ns && (!due || c->silent_ns < due)) due = c->silent_ns;
    if (due) (void)binheap_push(&e->deadlines, &c->timer, due);
}

/* How long this attempt may take. A step that waits may have begun in another engine, before this one was opened. */
static uint64_t time_left(const hd_engine *e, const worker *w, const strand *s) {
    uint64_t whole = ns_of(strand_node(s)->timeout_s), now = env_wall_ms(e->env);
    if (!w->waits || s->attempt > 1 || now <= s->since_ms) return whole;
    uint64_t gone_ms = now - s->since_ms;
    return gone_ms < whole / 1000000 ? whole - gone_ms * 1000000 : 0;
}

static void begin_claim(hd_engine *e, task *c, worker *w, strand *s, line *l) {
    const plan_node *n = strand_node(s);
    uint64_t now = n->timeout_s > 0 || n->heartbeat_s > 0 ? env_now_ns(e->env) : 0;
    assert(!c->s && !s->token && s->state == STRAND_READY && !s->queue);
    assert(s->in->status == INSTANCE_RUNNING);
    assert(!is_full(w) && line_has_room(l) && !binheap_linked(&c->timer));
    const live *of = s->in->owner;
    c->s = s;
    c->w = w;
    c->line = l;
    c->shard = of->shard->number;
    l->running++;
    c->token = (c->token & ((UINT64_C(1) << INDEX_BITS) - 1)) | ++e->claim_serial << INDEX_BITS;
    c->beat_ns = ns_of(n->heartbeat_s);
    c->timeout_ns = n->timeout_s > 0 ? now + time_left(e, w, s) : 0;
    c->silent_ns = c->beat_ns ? now + c->beat_ns : 0;
    list_push_back(&w->claims, &c->link);
    s->token = c->token;
    strand_set_state(s, STRAND_RUNNING);
    e->claimed_count++;
    e->stats.attempts++;
    set_timer(e, c);
    set_held(w, w->held + 1);
}

/* Whether the worker gets what is in the queue. */
static bool may_have(const worker *w, const queue *q) {
    return (!q->sole || q->sole == w) && (!w->last_resort || !q->near);
}

static queue *best_queue(const worker *w) {
    queue *best = NULL;
    for (uint32_t i = 0; i < w->serves.count; i++) {
        queue *q = w->serves.items[i];
        if (!binheap_count(&q->ready) || !line_has_room(q->line) || !may_have(w, q)) continue;
        if (!best || binheap_peek(&q->ready)->key < binheap_peek(&best->ready)->key) best = q;
    }
    return best;
}

/* "<instance>/<strand>.<step>". */
static void write_id(const strand *s, char *out) {
    const live *l = s->in->owner;
    size_t length = strlen(l->id);
    memcpy(out, l->id, length);
    out += length;
    *out++ = '/';
    out += number_print_int(s->number, out);
    *out++ = '.';
    out[number_print_int(s->step, out)] = 0;
}

static void describe(const strand *s, task_view *out) {
    const plan_node *n = strand_node(s);
    const live *l = s->in->owner;
    *out = (task_view){ .token = s->token,
                        .action = n->name,
                        .instance = l->id,
                        .node = n->id,
                        .args = s->args,
                        .attempt = s->attempt,
                        .timeout_ms = (uint64_t)ceil(n->timeout_s * 1000),
                        .heartbeat_ms = (uint64_t)ceil(n->heartbeat_s * 1000) };
    write_id(s, out->id);
}

bool task_claim(worker *w, task_view *out) {
    hd_engine *e = w->e;
    if (!e || e->closing || is_full(w) || (w->share && w->held >= w->share)) return false;
    if (guest_claim(w, out)) return true;
    queue *q = best_queue(w);
    if (!q) return false;
    strand *s = BINHEAP_ENTRY(binheap_peek(&q->ready), strand, ready);
    task *c = new_claim(e);
    if (!c) { /* its instance is loaded again, and the step offered again */
        live_lost(s->in->owner);
        return false;
    }
    /* Now, so that its outcome can be stored even if the store cannot be read when it ends. If it cannot be read now,
     * the outcome waits for that. */
    (void)document_prepare_step(s->in->owner);
    step_note_turn(e, s->ready.key);
    take_out(e, s);
    begin_claim(e, c, w, s, q->line);
    describe(s, out);
    return true;
}

/* What each worker would hold if the steps in the queue were spread evenly over those that have room. */
static uint32_t even_share(const queue *q) {
    uint64_t steps = binheap_count(&q->ready), count = 0;
    for (uint32_t i = 0; i < q->workers.count; i++) {
        const worker *w = q->workers.items[i];
        if (is_full(w) || !may_have(w, q)) continue;
        steps += w->held;
        count++;
    }
    return count > 1 ? (uint32_t)((steps + count - 1) / count) : 0;
}

/* One worker after the other, until there is no step or no room left. A worker may refuse. */
static void offer_round(queue *q, uint32_t each) {
    for (uint32_t asked = 0;
         asked < q->workers.count && q->room && line_has_room(q->line) && binheap_count(&q->ready);
         asked++) {
        worker *w = q->workers.items[q->turn++ % q->workers.count];
        w->share = each;
        if (!is_full(w) && may_have(w, q)) w->ops->offer(w);
        w->share = 0;
    }
}

/* A worker with much room would take all of them, and the others would wait for its next commits. */
static void offer_queue(queue *q) {
    uint32_t each = even_share(q);
    if (each) offer_round(q, each);
    offer_round(q, 0);
}

bool task_offer(hd_engine *e) {
    bool any = false;
    for (list_node *n; !flight_is_group(e) && (n = list_pop_front(&e->hot)); any = true) {
        queue *q = LIST_ENTRY(n, queue, hot);
        offer_queue(q);
        if (flight_is_group(e)) heat(e, q); /* the rest comes after the commit */
    }
    return any;
}

/* ---- what a worker says */

static hd_status late(hd_engine *e) {
    e->stats.duplicates++;
    return HD_NOT_FOUND;
}

/* The token is not that of a step of this engine: it may be a guest's. */
static hd_status say_of_guest(hd_engine *e, uint64_t token, const guest_words *words) {
    return guest_say(e, token, words) ? late(e) : HD_OK;
}

/* Ends the claim; NULL: the token is old. */
static strand *end_with(hd_engine *e, uint64_t token) {
    task *c = claim_of(e, token);
    strand *s = c ? c->s : NULL;
    if (c) end_claim(e, c);
    return s;
}

hd_status task_complete(hd_engine *e, uint64_t token, hd_value result) {
    strand *s = end_with(e, token);
    if (!s) return say_of_guest(e, token, &(guest_words){ .result = result });
    step_succeed(e, s, result);
    return HD_OK;
}

hd_status task_fail(hd_engine *e, uint64_t token, const char *class_name, const char *message) {
    strand *s = end_with(e, token);
    if (!s)
        return say_of_guest(e, token,
                            &(guest_words){ .class_name = class_name, .message = message });
    step_fail(e, s, class_name, message);
    return HD_OK;
}

hd_status task_raise(hd_engine *e, uint64_t token, hd_value exception) {
    if (!hd_value_text(hd_value_at(exception, "$error"), NULL)) return HD_KIND;
    strand *s = end_with(e, token);
    if (!s) return say_of_guest(e, token, &(guest_words){ .error = exception });
    step_fail_with(e, s, exception);
    return HD_OK;
}

/* The timer stays where it is: when it fires it finds that the worker has been heard of since. */
hd_status task_heartbeat(hd_engine *e, uint64_t token) {
    task *c = claim_of(e, token);
    if (!c) return guest_beat(e, token) ? late(e) : HD_OK;
    if (c->beat_ns) c->silent_ns = env_now_ns(e->env) + c->beat_ns;
    return HD_OK;
}

/* A step of an instance that is paused, or is to be given away, waits in the instance's own list (step_queue). */
hd_status task_give_back(hd_engine *e, uint64_t token) {
    strand *s = end_with(e, token);
    if (!s) return say_of_guest(e, token, &(guest_words){ .back = true });
    strand_set_state(s, STRAND_READY);
    const live *l = s->in->owner;
    if (s->in->status == INSTANCE_PAUSED || l->shard->drains_ns) {
        if (!list_linked(&s->unqueued)) list_push_back(&s->in->unqueued, &s->unqueued);
        return HD_OK;
    }
    if (task_push(e, s, s->ready.key)) live_lost(s->in->owner);
    return HD_OK;
}

hd_status task_lost(hd_engine *e, uint64_t token) {
    strand *s = end_with(e, token);
    if (!s) return say_of_guest(e, token, &(guest_words){ .back = true });
    step_lost(e, s);
    return HD_OK;
}

/* ---- time */

void task_resume(hd_engine *e, const strand *s) {
    task *c = s->token ? claim_of(e, s->token) : NULL;
    if (!c) return;
    if (binheap_linked(&c->timer)) binheap_remove(&e->deadlines, &c->timer);
    set_timer(e, c);
}

static void fire(hd_engine *e, task *c, uint64_t now) {
    strand *s = c->s;
    assert(s && s->token == c->token && !binheap_linked(&c->timer));
    bool paused = s->in->status == INSTANCE_PAUSED;
    if (!paused && c->timeout_ns && c->timeout_ns <= now) {
        revoke(e, c, "timeout");
        step_fail(e, s, "TimeoutError", "");
    } else if (c->silent_ns && c->silent_ns <= now) {
        revoke(e, c, "silent");
        step_lost(e, s);
    } else {
        set_timer(e, c);
    }
}

bool task_fire(hd_engine *e) {
    const binheap_item *first = binheap_peek(&e->deadlines);
    if (!first) return false;
    uint64_t now = env_now_ns(e->env);
    bool any = false;
    for (binheap_item *i; (i = binheap_peek(&e->deadlines)) && i->key <= now && !flight_is_group(e);
         any = true) {
        binheap_remove(&e->deadlines, i);
        fire(e, BINHEAP_ENTRY(i, task, timer), now);
    }
    return any;
}

uint64_t task_deadline(const hd_engine *e) {
    if (!list_empty(&e->hot)) return 0;
    const binheap_item *first = binheap_peek(&e->deadlines);
    return first ? first->key : UINT64_MAX;
}

/* ---- life */

void task_fini(hd_engine *e) {
    while (!list_empty(&e->workers))
        worker_leave(LIST_ENTRY(list_first(&e->workers), worker, link));
    for (uint32_t i = 0; i < e->queues.count; i++) free_queue(e, e->queues.items[i]);
    for (uint32_t i = 0; i < e->claims.count; i++)
        env_free(e->env, e->claims.items[i], sizeof *e->claims.items[i]);
    vec_fini(e->env, &e->queues);
    vec_fini(e->env, &e->claims);
    vec_fini(e->env, &e->free_claims);
    table_fini(&e->by_action);
    binheap_fini(&e->deadlines);
}

void task_check(const hd_engine *e) {
#ifndef NDEBUG
    uint64_t claimed = 0, ready = 0;
    for (uint32_t i = 0; i < e->claims.count; i++) {
        const task *c = e->claims.items[i];
        if (!c->s) continue;
        claimed++;
        assert(c->s->token == c->token && c->s->state == STRAND_RUNNING && c->w->e == e);
    }
    for (uint32_t i = 0; i < e->queues.count; i++) {
        const queue *q = e->queues.items[i];
        uint32_t room = 0;
        ready += binheap_count(&q->ready);
        for (uint32_t k = 0; k < q->workers.count; k++) room += !is_full(q->workers.items[k]);
        assert(room == q->room);
    }
    assert(claimed == e->claimed_count && ready == e->ready_count);
    assert(claimed + e->free_claims.count == e->claims.count);
#else
    (void)e;
#endif
}
