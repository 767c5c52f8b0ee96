/* outbox.c -- messages and channels. */
#include "scheduler/outbox.h"

#include "base/env.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define AGAIN_MS  100
#define AGAIN_MAX 60000

typedef struct channel {
    char *name;
    size_t size;
    struct key *space; /* referenced */
    hd_channel_fn fn;
    void *ctx;
} channel;

typedef struct message {
    place_id doc; /* referenced */
    uint64_t due; /* 0: now */
    uint32_t times;
} message;

typedef struct outbox {
    VEC(channel) channels;
    VEC(message) messages; /* confirmed and not yet delivered */
} outbox;

static outbox *outbox_of(scheduler *s) {
    events *ev = events_of(s);
    if (!ev || ev->outbox) return ev ? ev->outbox : NULL;
    return ev->outbox = env_new0(s->env, sizeof(outbox));
}

void outbox_fini(scheduler *s) {
    outbox *o = s->events->outbox;
    if (!o) return;
    for (uint32_t i = 0; i < o->channels.count; i++) {
        env_free(s->env, o->channels.items[i].name, o->channels.items[i].size);
        key_unref(o->channels.items[i].space);
    }
    for (uint32_t i = 0; i < o->messages.count; i++)
        place_unref(&s->r->places, o->messages.items[i].doc);
    vec_fini(s->env, &o->channels);
    vec_fini(s->env, &o->messages);
    env_free(s->env, o, sizeof *o);
    s->events->outbox = NULL;
}

static const struct key *space_of(const scheduler *s, place_id doc) {
    return s->r->places.homes.items[place_at(&s->r->places, doc)->doc.home].space;
}

static channel *find_channel(const outbox *o, const struct key *space, const char *name) {
    for (uint32_t i = 0; i < o->channels.count; i++)
        if (o->channels.items[i].space == space && !strcmp(o->channels.items[i].name, name))
            return &o->channels.items[i];
    return NULL;
}

/* The channel that a message waits for; NULL: nobody has opened it. */
static const channel *channel_of(const scheduler *s, place_id doc) {
    hd_value record = place_at(&s->r->places, doc)->value;
    const char *name = hd_value_as_text(hd_value_at(record, "channel"), "");
    return find_channel(s->events->outbox, space_of(s, doc), name);
}

/* Its space was unloaded: the record has to be read again. */
static bool is_away(const scheduler *s, place_id doc) {
    return !(place_at(&s->r->places, doc)->doc.flags & (DOC_KNOWN | DOC_LOADING));
}

/* Whether something can be done about a message when its time has come. One that is not in the store
 * any more can be forgotten. */
static bool can_go_on(const scheduler *s, place_id doc) {
    const place *p = place_at(&s->r->places, doc);
    if (p->doc.flags & DOC_LOADING) return false;
    return !value_exists(p->value) || channel_of(s, doc);
}

static hd_status add(scheduler *s, place_id doc) {
    outbox *o = outbox_of(s);
    if (!o) return HD_NOMEM;
    for (uint32_t i = 0; i < o->messages.count; i++)
        if (o->messages.items[i].doc == doc) return HD_OK;
    if (!vec_push(s->env, &o->messages, (message){ .doc = doc })) return HD_NOMEM;
    place_ref(&s->r->places, doc);
    s->tick = true;
    return HD_OK;
}

/* ---- recording */

typedef struct recorded {
    scheduler *s;
    place_id doc;
} recorded;

/* Without memory to remember it now, the record is found when the channel is opened again. */
static void confirmed(void *ctx, hd_status status) {
    recorded *r = ctx;
    scheduler *s = r->s;
    if (!status) add(s, r->doc);
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
    if (!h) return runtime_fail(s->rt, HD_USAGE, "only a handler has an outbox");
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

typedef struct removal {
    scheduler *s;
    place_id doc;
    uint32_t times; /* it was delivered before */
} removal;

static void again_later(scheduler *s, message *m) {
    uint64_t ms = (uint64_t)AGAIN_MS << (m->times < 10 ? m->times : 10);
    m->times++;
    m->due = env_now_ns(s->env) + (ms < AGAIN_MAX ? ms : AGAIN_MAX) * MS;
}

static void add_again(scheduler *s, const removal *r) {
    if (add(s, r->doc)) return;
    outbox *o = s->events->outbox;
    message *m = &vec_last(&o->messages);
    if (m->doc != r->doc) return; /* found by others meanwhile */
    m->times = r->times;
    again_later(s, m);
}

/* The record could not be removed: it will be delivered once more. */
static void removed(void *ctx, hd_status status) {
    removal *r = ctx;
    scheduler *s = r->s;
    if (status && s->events && !s->events->closing) add_again(s, r);
    place_unref(&s->r->places, r->doc);
    env_free(s->env, r, sizeof *r);
}

static hd_status remove_record(scheduler *s, place_id doc, uint32_t times) {
    hd_tx *tx;
    removal *r = env_new(s->env, sizeof *r);
    if (!r) return HD_NOMEM;
    *r = (removal){ s, doc, times };
    hd_status status = hd_tx_begin(s->rt, &tx);
    if (!status) {
        status = events_remove(s, tx, doc);
        if (status) hd_tx_abort(tx);
    }
    if (!status) {
        place_ref(&s->r->places, doc);
        status = hd_tx_commit(tx, removed, r);
        if (status) place_unref(&s->r->places, doc);
    }
    if (status) env_free(s->env, r, sizeof *r);
    return status;
}

/* HD_PENDING: the record is on its way. */
static hd_status hand_over(scheduler *s, place_id doc, uint32_t times) {
    hd_status status = is_away(s, doc) ? replica_load(s->r, doc) : HD_OK;
    hd_value v = place_at(&s->r->places, doc)->value;
    if (status || !value_exists(v)) return status;
    const channel *c = channel_of(s, doc);
    if (!c) return HD_PENDING;
    hd_value_ref(v); /* the channel may do as it likes */
    status =
        c->fn(c->ctx, key_bytes(place_at(&s->r->places, doc)->doc.id), hd_value_at(v, "message"));
    hd_value_unref(v);
    if (!status) status = remove_record(s, doc, times);
    return status == HD_PENDING ? HD_BUSY : status;
}

/* True: it is out of the list. */
static bool deliver(scheduler *s, uint32_t index) {
    outbox *o = s->events->outbox;
    place_id doc = o->messages.items[index].doc;
    hd_status status = hand_over(s, doc, o->messages.items[index].times);
    if (status == HD_PENDING) return false;
    if (status) {
        again_later(s, &o->messages.items[index]);
        return false;
    }
    vec_remove(&o->messages, index);
    place_unref(&s->r->places, doc);
    return true;
}

static bool is_due(const scheduler *s, const message *m, uint64_t *now) {
    if (!can_go_on(s, m->doc)) return false;
    if (m->due && !*now) *now = env_now_ns(s->env);
    return m->due <= *now;
}

void outbox_step(scheduler *s) {
    outbox *o = s->events->outbox;
    uint64_t now = 0;
    for (uint32_t i = 0; i < o->messages.count;)
        if (!is_due(s, &o->messages.items[i], &now) || !deliver(s, i)) i++;
}

bool outbox_has_work(const scheduler *s) {
    const outbox *o = s->events ? s->events->outbox : NULL;
    for (uint32_t i = 0; o && i < o->messages.count; i++)
        if (!o->messages.items[i].due && can_go_on(s, o->messages.items[i].doc)) return true;
    return false;
}

uint64_t outbox_next(const scheduler *s) {
    const outbox *o = s->events ? s->events->outbox : NULL;
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; o && i < o->messages.count; i++) {
        const message *m = &o->messages.items[i];
        if (m->due && m->due < next && can_go_on(s, m->doc)) next = m->due;
    }
    return next;
}

/* ---- opening */

/* What an earlier program has left, in the order in which it was recorded. */
static hd_status find_left(scheduler *s, const char *space) {
    listed_vec left = { 0 };
    hd_status status = events_find(s, space, "outbox", NULL, &left);
    for (uint32_t i = 0; i < left.count && !status; i++) {
        status = replica_load(s->r, left.items[i].doc);
        if (status == HD_PENDING) status = HD_OK;
        if (!status) status = add(s, left.items[i].doc);
    }
    vec_fini(s->env, &left);
    return status;
}

/* A channel of this name that does nothing yet, or the one that is there. NULL: no memory. */
static channel *channel_at(scheduler *s, struct key *space, const char *name) {
    outbox *o = s->events->outbox;
    channel c = { .size = strlen(name) + 1, .space = space };
    channel *known = find_channel(o, space, name);
    if (known) return known;
    c.name = env_new_copy(s->env, name, c.size);
    if (!c.name || !vec_push(s->env, &o->channels, c)) {
        env_free(s->env, c.name, c.size);
        return NULL;
    }
    key_ref(space);
    return &vec_last(&o->channels);
}

hd_status outbox_open(scheduler *s, const char *space, const char *name, hd_channel_fn fn,
                      void *ctx) {
    struct key *k;
    if (!fn || !outbox_of(s)) return fn ? HD_NOMEM : HD_USAGE;
    hd_status status = key_make(s->r->heap, space, strlen(space), &k);
    if (status) return status;
    channel *c = channel_at(s, k, name);
    key_unref(k);
    if (!c) return HD_NOMEM;
    c->fn = fn;
    c->ctx = ctx;
    s->tick = true;
    return find_left(s, space);
}
