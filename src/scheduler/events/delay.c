/* delay.c -- posted events that are not due yet, and periodic events, which post an event each time they are due.
 *
 *     "event/<id>"   { "stream", "payload", "time", "as", "due": ms }                     handled once, from then on
 *                    { ..., "due": ms, "every": ms, "count": n, "all": true }             a periodic event
 *
 * Both are documents like every posted event, so they survive restarts, and every runtime with a handler for the
 * stream has them in a heap by the time they are due, on the wall clock. An event that has become due is taken
 * into its lane, the one with the earliest time first. A periodic event that has become due is *fired*: one transaction
 * posts an event and writes the time at which the periodic event is due next. The transaction claims the periodic event
 * as it was, so of several runtimes one fires it; and the event's id derives from the periodic event's and its count,
 * so a repetition would be the same event.
 *
 * The wall clock may be set: the runtime looks at it again after LOOK_MS at the latest. */
#include "scheduler/events/delay.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include <string.h>

#define MS        UINT64_C(1000000)
#define LOOK_MS   UINT64_C(60000)
#define LATEST_MS ((UINT64_C(1) << 45) - 1) /* that an id can carry */
#define AT_ONCE   64                        /* events that one transaction posts at most */
#define AGAIN_MS  1000 /* after which a periodic event that could not be fired is fired again */

typedef struct delay {
    binheap_item timer; /* in delays.due; key: the wall clock in ms */
    place_id doc;       /* referenced */
    uint32_t slot;      /* in delays.all */
} delay;

void delays_init(delays *d, const hd_env *env) {
    *d = (delays){ .env = env };
    binheap_init(&d->due, env);
    table_init(&d->by_doc, env);
}

void delays_fini(scheduler *s) {
    delays *d = &s->events->delays;
    while (d->all.count) delays_forget(s, vec_last(&d->all)->doc);
    assert(!binheap_count(&d->due) && !table_count(&d->by_doc));
    vec_fini(d->env, &d->all);
    table_fini(&d->by_doc);
    binheap_fini(&d->due);
}

/* ---- the heap */

static delay *find(const delays *d, place_id doc) {
    for (table_probe p = table_find(&d->by_doc, doc); table_next(&d->by_doc, &p);)
        if (d->all.items[p.index]->doc == doc) return d->all.items[p.index];
    return NULL;
}

static hd_status enter(scheduler *s, place_id doc, uint64_t due) {
    delays *d = &s->events->delays;
    assert(!find(d, doc));
    if (!vec_room(d->env, &d->all, 1)) return HD_NOMEM;
    delay *one = env_new0(d->env, sizeof *one);
    if (!one) return HD_NOMEM;
    one->doc = doc;
    one->slot = d->all.count;
    hd_status status = binheap_push(&d->due, &one->timer, due);
    if (!status && table_insert(&d->by_doc, doc, one->slot)) {
        binheap_remove(&d->due, &one->timer);
        status = HD_NOMEM;
    }
    if (status) {
        env_free(d->env, one, sizeof *one);
        return status;
    }
    d->all.items[d->all.count++] = one;
    place_ref(&s->r->places, doc);
    assert(find(d, doc) == one);
    return HD_OK;
}

void delays_forget(scheduler *s, place_id doc) {
    delays *d = &s->events->delays;
    delay *one = find(d, doc);
    if (!one) return;
    delay *last = vec_last(&d->all);
    assert(d->all.items[one->slot] == one && d->all.items[last->slot] == last);
    binheap_remove(&d->due, &one->timer);
    table_remove(&d->by_doc, doc, one->slot);
    if (last != one) table_move(&d->by_doc, last->doc, last->slot, one->slot);
    last->slot = one->slot;
    vec_swap_remove(&d->all, one->slot);
    env_free(d->env, one, sizeof *one);
    place_unref(&s->r->places, doc);
}

/* ---- what documents say */

static uint64_t number_at(hd_value record, const char *key) {
    int64_t n = hd_value_as_int(hd_value_at(record, key), 0);
    return n > 0 ? (uint64_t)n : 0;
}

uint64_t delay_due(hd_value record) { return number_at(record, "due"); }
uint64_t delay_missed(hd_value record) { return number_at(record, "missed"); }
bool delay_is_periodic(hd_value record) { return number_at(record, "every") > 0; }

hd_status delays_hold(scheduler *s, place_id doc, hd_value record) {
    assert(delay_due(record)); /* one that is due at once has no place here */
    delays_forget(s, doc);     /* it may have another time now */
    return enter(s, doc, delay_due(record));
}

/* ---- posting */

hd_status delay_check(scheduler *s, const hd_send_options *options) {
    bool delayed = options->deliver_at_ms || options->after_ms;
    if (options->deliver_at_ms && options->after_ms)
        return runtime_fail(s->rt, HD_USAGE, "an event has deliver_at_ms or after_ms, not both");
    if (options->every_missed && !options->every_ms)
        return runtime_fail(s->rt, HD_USAGE, "every_missed goes with every_ms");
    if (options->after_ms > LATEST_MS || options->every_ms > LATEST_MS ||
        delay_of(options, env_wall_ms(s->env)) > LATEST_MS)
        return runtime_fail(s->rt, HD_USAGE, "the time of an event is too far away");
    if ((delayed || options->every_ms) && options->not_before_ns)
        return runtime_fail(s->rt, HD_USAGE, "not_before_ns is for events that are sent");
    return HD_OK;
}

uint64_t delay_of(const hd_send_options *options, uint64_t now_ms) {
    if (options->deliver_at_ms) return options->deliver_at_ms;
    if (options->after_ms) return now_ms + options->after_ms;
    return options->every_ms ? now_ms + options->every_ms : 0;
}

hd_value delay_describe(hd_pool *pool, hd_value record, const hd_send_options *options,
                        uint64_t due) {
    assert(due || !options->every_ms); /* a periodic event has a next time */
    if (!due) return record;
    record = hd_object_set(pool, record, "due", hd_int(pool, (int64_t)due));
    if (!options->every_ms) return record;
    record = hd_object_set(pool, record, "every", hd_int(pool, (int64_t)options->every_ms));
    return options->every_missed ? hd_object_set(pool, record, "all", hd_bool(true)) : record;
}

/* ---- firing */

/* One event that a periodic event posts, and how the periodic event goes on. */
typedef struct firing {
    uint64_t due, missed; /* of the event */
    uint64_t next;        /* when the periodic event is due next */
    uint64_t count;       /* of the events before */
} firing;

/* Of the periods that have passed since the last time, one event stands for all; with "all", each has its own. */
static firing firing_of(hd_value record, uint64_t now) {
    uint64_t due = delay_due(record), every = number_at(record, "every");
    bool all = hd_value_as_bool(hd_value_at(record, "all"), false);
    assert(every && due <= now);
    uint64_t missed = all ? 0 : (now - due) / every;
    uint64_t at = due + missed * every;
    return (firing){ at, missed, at + every, number_at(record, "count") };
}

static hd_value event_of(scheduler *s, hd_pool *pool, hd_value periodic, const firing *f) {
    hd_value v = hd_object_set(pool, hd_object(), "stream", hd_value_at(periodic, "stream"));
    v = hd_object_set(pool, v, "payload", hd_value_at(periodic, "payload"));
    v = hd_object_set(pool, v, "time", hd_int(pool, (int64_t)env_wall_ms(s->env)));
    v = hd_object_set(pool, v, "due", hd_int(pool, (int64_t)f->due));
    return f->missed ? hd_object_set(pool, v, "missed", hd_int(pool, (int64_t)f->missed)) : v;
}

/* Posts one event of a periodic event. */
static hd_status post_one(scheduler *s, hd_tx *tx, const stream *to, place_id doc,
                          hd_value periodic, const firing *f) {
    char id[HD_EVENT_ID_SIZE];
    place_id posted;
    assert(f->next > f->due); /* or it would be fired for ever */
    event_id_child(to, key_bytes(place_at(&s->r->places, doc)->doc.id), (uint32_t)f->count, f->due,
                   id);
    hd_status status = event_document(s, to->home, "event/", id, &posted);
    if (status) return status;
    place_ref(&s->r->places, posted);
    /* A runtime that has posted this event has advanced the periodic event in the same commit; then this transaction,
     * which has read the periodic event, is refused. */
    status = events_assume_new(s, posted);
    if (!status) status = hd_tx_set(tx, (hd_cell){ posted }, event_of(s, tx_pool(tx), periodic, f));
    if (!status) status = hd_tx_set_kind(tx, (hd_cell){ posted }, "event");
    if (!status) status = events_watch_verdict(s, tx, posted, id, NULL);
    place_unref(&s->r->places, posted);
    return status;
}

/* The periodic event as it is after the event. */
static hd_value advanced(hd_pool *pool, hd_value periodic, const firing *f) {
    periodic = hd_object_set(pool, periodic, "due", hd_int(pool, (int64_t)f->next));
    return hd_object_set(pool, periodic, "count", hd_int(pool, (int64_t)(f->count + 1)));
}

typedef struct fired {
    scheduler *s;
    place_id doc;
} fired;

/* The periodic event is taken up again, as it is in the store by now; if that could not be written, in a second. */
static void on_verdict(hd_status status, void *ctx) {
    fired *f = ctx;
    scheduler *s = f->s;
    bool stale = hd_status_class(status) == HD_CLASS_STALE;
    if (!s->events->closing && (!status || stale)) events_integrated(s, f->doc);
    else if (!s->events->closing && !find(&s->events->delays, f->doc) &&
             enter(s, f->doc, env_wall_ms(s->env) + AGAIN_MS))
        events_miss(s);
    place_unref(&s->r->places, f->doc);
    env_free(s->env, f, sizeof *f);
}

static hd_status watch_verdict(scheduler *s, hd_tx *tx, place_id doc) {
    lineage *l = lineage_of(&s->events->lineages, tx);
    fired *f = l ? env_new(s->env, sizeof *f) : NULL;
    if (!f) return HD_NOMEM;
    *f = (fired){ s, doc };
    if (!vec_push(s->env, &l->afters, ((after_commit){ on_verdict, f }))) {
        env_free(s->env, f, sizeof *f);
        return HD_NOMEM;
    }
    place_ref(&s->r->places, doc);
    return HD_OK;
}

/* HD_ABORTED: there is nothing to fire any more. */
static hd_status fire_in(scheduler *s, hd_tx *tx, const stream *to, place_id doc) {
    hd_value record = tx_read_place(tx, doc, 0);
    hd_pool *pool = tx_pool(tx);
    uint64_t now = env_wall_ms(s->env);
    hd_status status = value_is_failed(record) ? hd_value_status(record) : pool ? HD_OK : HD_NOMEM;
    if (status) return status;
    if (!delay_is_periodic(record) || delay_due(record) > now) return HD_ABORTED;
    for (int i = 0; i < AT_ONCE && !status && delay_due(record) <= now; i++) {
        firing f = firing_of(record, now);
        status = post_one(s, tx, to, doc, record, &f);
        record = advanced(pool, record, &f);
        if (!status) status = hd_value_status(record);
    }
    if (!status) status = hd_tx_set(tx, (hd_cell){ doc }, record);
    return status ? status : watch_verdict(s, tx, doc);
}

/* The document has left the heap: on_verdict, or a failure here, sees to it that it comes back. */
static hd_status fire(scheduler *s, const stream *to, place_id doc) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(s->rt, &tx);
    if (status) return status;
    status = fire_in(s, tx, to, doc);
    if (!status) {
        hd_tx_commit(tx, events_on_stored, s->rt); /* and on_verdict is told */
        return HD_OK;
    }
    hd_tx_abort(tx);
    return status;
}

static void end_delay(scheduler *s, place_id doc) {
    assert(!find(&s->events->delays, doc)); /* it has just left the heap */
    stream *to;
    hd_value record = place_at(&s->r->places, doc)->value;
    if (!value_exists(record)) return;
    hd_status status = events_addressee(s, doc, record, &to);
    if (status == HD_NOMEM) events_miss(s);
    if (status) return; /* the handler is gone; the next one that is registered takes it up */
    status = delay_is_periodic(record) ? fire(s, to, doc) : events_take(s, doc, true);
    if (status == HD_ABORTED) events_integrated(s, doc);
    else if (status && enter(s, doc, env_wall_ms(s->env) + AGAIN_MS)) events_miss(s);
}

void delays_step(scheduler *s) {
    delays *d = &s->events->delays;
    if (!d->all.count || s->events->closing) return;
    uint64_t now = env_wall_ms(s->env);
    /* A periodic event that is fired comes back later, so this ends. */
    for (binheap_item *first; (first = binheap_peek(&d->due)) && first->key <= now;) {
        place_id doc = BINHEAP_ENTRY(first, delay, timer)->doc;
        place_ref(&s->r->places, doc);
        delays_forget(s, doc);
        end_delay(s, doc);
        place_unref(&s->r->places, doc);
    }
}

bool delays_are_due(const scheduler *s) {
    const binheap_item *first = binheap_peek(&s->events->delays.due);
    return first && !s->events->closing && first->key <= env_wall_ms(s->env);
}

uint64_t delays_next(const scheduler *s) {
    const binheap_item *first = binheap_peek(&s->events->delays.due);
    if (!first || s->events->closing) return UINT64_MAX;
    uint64_t now = env_wall_ms(s->env), left = first->key > now ? first->key - now : 0;
    return env_now_ns(s->env) + (left < LOOK_MS ? left : LOOK_MS) * MS;
}

void delays_check(const scheduler *s) {
    const delays *d = &s->events->delays;
    assert(d->all.count == binheap_count(&d->due) && d->all.count == table_count(&d->by_doc));
    for (uint32_t i = 0; i < d->all.count; i++) {
        assert(d->all.items[i]->slot == i && binheap_linked(&d->all.items[i]->timer));
        assert(place_is_doc(&s->r->places, d->all.items[i]->doc));
    }
    binheap_check(&d->due);
}
