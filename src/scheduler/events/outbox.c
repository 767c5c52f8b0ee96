/* outbox.c -- messages: recorded with a handling, delivered after it, removed when that is done.
 *
 * Where messages wait is in outbox_queue.h. A pass looks at those that are ready, and at no others.
 *
 * Cost of a pass: nothing for messages that wait, whether for a time, for a channel that is not open or
 * for a space that is not loaded; for each message that became ready since, one look and O(log n).
 * Opening a channel lists the outbox of its space once, and looks at each message that waits for the
 * channel or was not known here. */
#include "scheduler/events/outbox.h"

#include "base/env.h"
#include "scheduler/events/outbox_queue.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define AGAIN_MS  100
#define AGAIN_MAX 60000

static outbox *outbox_of(scheduler *s) {
    events *ev = events_of(s);
    if (!ev || ev->outbox) return ev ? ev->outbox : NULL;
    outbox *o = env_new(s->env, sizeof *o);
    if (o) outbox_queue_init(o, s);
    return ev->outbox = o;
}

void outbox_fini(scheduler *s) {
    outbox *o = s->events->outbox;
    if (!o) return;
    outbox_queue_fini(o);
    env_free(s->env, o, sizeof *o);
    s->events->outbox = NULL;
}

static hd_status take_up(scheduler *s, place_id doc) {
    assert(doc);
    outbox *o = outbox_of(s);
    if (!o) return HD_NOMEM;
    if (outbox_find(o, doc)) return HD_OK;
    s->tick = true;
    return outbox_add(o, doc);
}

static void again_later(scheduler *s, message *m) {
    assert(m->of == s->events->outbox);
    uint64_t ms = (uint64_t)AGAIN_MS << (m->times < 10 ? m->times : 10);
    m->times++;
    outbox_wait_until(s->events->outbox, m,
                      env_now_ns(s->env) + (ms < AGAIN_MAX ? ms : AGAIN_MAX) * MS);
}

/* ---- recording */

typedef struct recorded {
    scheduler *s;
    place_id doc;
} recorded;

static void confirmed(hd_status status, void *ctx) {
    assert(((recorded *)ctx)->doc);
    recorded *r = ctx;
    scheduler *s = r->s;
    if (!status && take_up(s, r->doc)) events_miss(s);
    place_unref(&s->r->places, r->doc);
    env_free(s->env, r, sizeof *r);
}

static hd_status release_later(scheduler *s, hd_tx *tx, place_id doc) {
    lineage *l = lineage_of(&s->events->lineages, tx);
    recorded *r = l ? env_new(s->env, sizeof *r) : NULL;
    if (!r) return HD_NOMEM;
    *r = (recorded){ s, doc };
    if (!vec_push(s->env, &l->afters, ((after_commit){ confirmed, r }))) {
        env_free(s->env, r, sizeof *r);
        return HD_NOMEM;
    }
    place_ref(&s->r->places, doc);
    return HD_OK;
}

hd_status outbox_record(scheduler *s, hd_tx *tx, const char *name, hd_value v) {
    handling *h = handling_of(tx);
    char prefix[32];
    place_id doc;
    if (!h)
        return runtime_fail(s->rt, HD_USAGE,
                            "only a handler has an outbox: send an event, whose handler puts "
                            "the message there");
    if (!value_exists(v)) return value_is_failed(v) ? hd_value_status(v) : HD_KIND;
    snprintf(prefix, sizeof prefix, "outbox/%u/", h->recorded++);
    hd_pool *pool = tx_pool(tx);
    hd_status status = pool ? event_document(s, h->e->to->home, prefix, h->e->id, &doc) : HD_NOMEM;
    if (status) return status;
    hd_value record = hd_object_set(pool, hd_object(), "channel", hd_string(pool, name));
    record = hd_object_set(pool, record, "message", v);
    status = hd_tx_set(tx, (hd_cell){ doc }, record);
    if (!status) status = hd_tx_set_kind(tx, (hd_cell){ doc }, "outbox");
    return status ? status : release_later(s, tx, doc);
}

/* ---- delivering */

/* A record that could not be removed is delivered once more. */
static void removed(hd_status status, void *ctx) {
    message *m = ctx;
    outbox *o = m->of;
    assert(m->state == MESSAGE_REMOVING);
    o->s->tick = true;
    if (status) again_later(o->s, m);
    else outbox_drop(o, m);
}

/* The message waits for the verdict. */
static hd_status remove_record(scheduler *s, message *m) {
    assert(m->of == s->events->outbox && m->doc);
    hd_tx *tx;
    hd_status status = hd_tx_begin(s->rt, &tx);
    if (status) return status;
    status = events_remove(s, tx, m->doc);
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    outbox_wait_in(s->events->outbox, m, MESSAGE_REMOVING);
    return hd_tx_commit(tx, removed, m);
}

static void deliver(scheduler *s, message *m, const channel *c) {
    assert(c->fn);
    const place *p = place_at(&s->r->places, m->doc);
    hd_value v = value_ref(p->value); /* the channel's function may change the document */
    hd_status status = c->fn(key_bytes(p->doc.id), hd_value_at(v, "message"), c->ctx);
    value_unref(v);
    if (!status) status = remove_record(s, m);
    if (status) again_later(s, m);
}

/* The channel that the record names. NULL: no memory. */
static channel *channel_of(scheduler *s, place_id doc) {
    assert(s->events->outbox);
    const place *p = place_at(&s->r->places, doc);
    const char *name = hd_value_as_text(hd_value_at(p->value, "channel"), "");
    return outbox_channel(s->events->outbox, s->r->places.homes.items[p->doc.home].space, name);
}

/* Delivers a message, or puts it where it waits for what it lacks. A message whose record is gone was
 * delivered by another program. */
static void look_at(scheduler *s, message *m) {
    outbox *o = s->events->outbox;
    assert(m->of == o && m->state == MESSAGE_AT_HAND);
    s->events->stats.outbox_visits++;
    hd_status status = replica_load(s->r, m->doc);
    bool there = !status && value_exists(place_at(&s->r->places, m->doc)->value);
    channel *c = there ? channel_of(s, m->doc) : NULL;
    if (status == HD_PENDING) outbox_wait_in(o, m, MESSAGE_LOADING);
    else if (status || (there && !c)) again_later(s, m);
    else if (!there) outbox_drop(o, m);
    else if (!c->fn) outbox_park(o, m, c);
    else deliver(s, m, c);
}

void outbox_step(scheduler *s) {
    assert(s->events->outbox);
    outbox *o = s->events->outbox;
    if (binheap_count(&o->timed)) outbox_release_due(o, env_now_ns(s->env));
    for (message *m; (m = outbox_take(o));) look_at(s, m);
}

bool outbox_has_work(const scheduler *s) {
    const outbox *o = s->events ? s->events->outbox : NULL;
    return o && binheap_count(&o->ready);
}

uint64_t outbox_next(const scheduler *s) {
    const outbox *o = s->events ? s->events->outbox : NULL;
    const binheap_item *first = o ? binheap_peek(&o->timed) : NULL;
    return first ? first->key : UINT64_MAX;
}

/* ---- what happens to records */

void outbox_arrived(scheduler *s, place_id doc, hd_status status) {
    outbox *o = s->events->outbox;
    message *m = o ? outbox_find(o, doc) : NULL;
    if (!m || m->state != MESSAGE_LOADING) return;
    if (status) again_later(s, m);
    else outbox_make_ready(o, m);
    s->tick = true;
}

void outbox_integrated(scheduler *s, place_id doc) {
    outbox *o = s->events->outbox;
    message *m = o ? outbox_find(o, doc) : NULL;
    if (!m || (m->state != MESSAGE_PARKED && m->state != MESSAGE_TIMED)) return;
    if (value_exists(place_at(&s->r->places, doc)->value)) return;
    outbox_make_ready(o, m);
    s->tick = true;
}

/* ---- opening */

/* Makes the messages ready that wait in the space for this channel, and takes up those that another program
 * has recorded, in the order in which they were recorded. */
static hd_status find_left(scheduler *s, const char *space, const channel *c) {
    assert(s->events->outbox && c->fn);
    listed_vec left = { 0 };
    outbox *o = s->events->outbox;
    hd_status status = events_find(s, space, "outbox", NULL, &left);
    for (uint32_t i = 0; i < left.count && !status; i++) {
        message *m = outbox_find(o, left.items[i].doc);
        if (!m) status = take_up(s, left.items[i].doc);
        else if (m->state == MESSAGE_PARKED && m->channel == c) outbox_release(o, m);
    }
    vec_fini(s->env, &left);
    return status;
}

void outbox_close_channel(scheduler *s, const char *space, const char *name) {
    outbox *o = s->events ? s->events->outbox : NULL;
    for (uint32_t i = 0; o && i < o->channels.count; i++) {
        channel *c = o->channels.items[i];
        if (strcmp(key_bytes(c->space), space) || strcmp(c->name, name)) continue;
        c->fn = NULL;
        c->ctx = NULL;
    }
}

hd_status outbox_open(scheduler *s, const char *space, const char *name, hd_channel_fn fn,
                      void *ctx) {
    struct key *k;
    outbox *o = fn ? outbox_of(s) : NULL;
    if (!o) return fn ? HD_NOMEM : HD_USAGE;
    hd_status status = runtime_space(s->rt, space, strlen(space), &k);
    if (status) return status;
    channel *c = outbox_channel(o, k, name);
    key_unref(k);
    if (!c) return HD_NOMEM;
    c->fn = fn;
    c->ctx = ctx;
    s->tick = true;
    status = find_left(s, space, c);
    /* The listing may have failed, or may not contain what another program has recorded just now. */
    while (!list_empty(&c->parked))
        outbox_release(o, LIST_ENTRY(list_first(&c->parked), message, link));
    assert(c->fn == fn);
    return status;
}

hd_status outbox_feed(scheduler *s) {
    const outbox *o = s->events->outbox;
    hd_status status = HD_OK;
    for (uint32_t i = 0; o && i < o->channels.count && !status; i++) {
        const channel *c = o->channels.items[i];
        if (c->fn) status = find_left(s, key_bytes(c->space), c);
    }
    return status;
}

void outbox_check(const scheduler *s) {
    if (s->events->outbox) outbox_queue_check(s->events->outbox);
}
