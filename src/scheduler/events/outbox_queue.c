/* outbox_queue.c -- moving messages between the places where they wait. */
#include "scheduler/events/outbox_queue.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include <string.h>

/* ---- life */

void outbox_queue_init(outbox *o, scheduler *s) {
    const hd_env *env = s->env;
    *o = (outbox){ .s = s, .env = env, .places = &s->r->places };
    slab_init(&o->records, env, sizeof(message));
    table_init(&o->by_doc, env);
    table_init(&o->by_name, env);
    binheap_init(&o->ready, env);
    binheap_init(&o->timed, env);
}

void outbox_queue_fini(outbox *o) {
    for (uint32_t i = 0; i < o->all.count; i++) place_unref(o->places, o->all.items[i]->doc);
    for (uint32_t i = 0; i < o->channels.count; i++) {
        key_unref(o->channels.items[i]->space);
        env_free(o->env, o->channels.items[i], o->channels.items[i]->size);
    }
    vec_fini(o->env, &o->all);
    vec_fini(o->env, &o->channels);
    table_fini(&o->by_doc);
    table_fini(&o->by_name);
    binheap_fini(&o->ready);
    binheap_fini(&o->timed);
    slab_fini(&o->records);
}

/* ---- coming and going */

static uint32_t doc_hash(place_id doc) { return hash_fold(hash_u64(doc)); }

message *outbox_find(const outbox *o, place_id doc) {
    for (table_probe p = table_find(&o->by_doc, doc_hash(doc)); table_next(&o->by_doc, &p);)
        if (o->all.items[p.index]->doc == doc) return o->all.items[p.index];
    return NULL;
}

/* Makes room for one more message in both heaps, so that moving it cannot fail. */
static hd_status reserve(outbox *o) {
    if (!vec_room(o->env, &o->all, 1)) return HD_NOMEM;
    hd_status status = table_reserve(&o->by_doc, o->all.count + 1);
    if (!status) status = binheap_reserve(&o->ready, o->all.count + 1);
    if (!status) status = binheap_reserve(&o->timed, o->all.count + 1);
    return status;
}

hd_status outbox_add(outbox *o, place_id doc) {
    assert(!outbox_find(o, doc));
    hd_status status = reserve(o);
    message *m = status ? NULL : slab_take(&o->records);
    if (!m) return status ? status : HD_NOMEM;
    *m = (message){ .of = o, .doc = doc, .at = o->all.count, .order = o->next_order++ };
    status = table_insert(&o->by_doc, doc_hash(doc), m->at);
    assert(!status);
    (void)vec_push(o->env, &o->all, m);
    place_ref(o->places, doc);
    outbox_make_ready(o, m);
    assert(outbox_find(o, doc) == m && m->state == MESSAGE_READY);
    return status;
}

/* Takes the message out of the heap or list in which it waits. */
static void leave(outbox *o, message *m) {
    assert(!m->channel == (m->state != MESSAGE_PARKED));
    switch (m->state) {
    case MESSAGE_READY: binheap_remove(&o->ready, &m->turn); break;
    case MESSAGE_TIMED: binheap_remove(&o->timed, &m->turn); break;
    case MESSAGE_PARKED: list_remove(&m->link); break;
    case MESSAGE_AT_HAND:
    case MESSAGE_LOADING:
    case MESSAGE_REMOVING: break;
    }
    m->channel = NULL;
    m->state = MESSAGE_AT_HAND;
}

void outbox_drop(outbox *o, message *m) {
    place_id doc = m->doc;
    assert(m->of == o && o->all.items[m->at] == m);
    leave(o, m);
    table_remove(&o->by_doc, doc_hash(doc), m->at);
    message *last = vec_last(&o->all);
    if (last != m) {
        table_move(&o->by_doc, doc_hash(last->doc), last->at, m->at);
        last->at = m->at;
    }
    vec_swap_remove(&o->all, m->at);
    slab_give(&o->records, m);
    place_unref(o->places, doc);
}

/* ---- waiting */

void outbox_make_ready(outbox *o, message *m) {
    leave(o, m);
    m->state = MESSAGE_READY;
    hd_status status = binheap_push(&o->ready, &m->turn, m->order);
    assert(!status);
    (void)status;
}

message *outbox_take(outbox *o) {
    binheap_item *first = binheap_peek(&o->ready);
    message *m = first ? BINHEAP_ENTRY(first, message, turn) : NULL;
    assert(!m || (m->state == MESSAGE_READY && m->of == o));
    if (m) leave(o, m);
    return m;
}

void outbox_wait_until(outbox *o, message *m, uint64_t due) {
    leave(o, m);
    m->state = MESSAGE_TIMED;
    hd_status status = binheap_push(&o->timed, &m->turn, due);
    assert(!status);
    (void)status;
}

void outbox_park(outbox *o, message *m, channel *c) {
    assert(!c->fn && m->state == MESSAGE_AT_HAND);
    leave(o, m);
    m->state = MESSAGE_PARKED;
    m->channel = c;
    list_push_back(&c->parked, &m->link);
}

void outbox_wait_in(outbox *o, message *m, message_state state) {
    assert(state == MESSAGE_LOADING || state == MESSAGE_REMOVING);
    leave(o, m);
    m->state = state;
}

void outbox_release_due(outbox *o, uint64_t now) {
    for (binheap_item *first; (first = binheap_peek(&o->timed)) && first->key <= now;)
        outbox_make_ready(o, BINHEAP_ENTRY(first, message, turn));
}

void outbox_release(outbox *o, message *m) {
    assert(m->state == MESSAGE_PARKED);
    m->order = o->next_order++;
    outbox_make_ready(o, m);
}

#ifndef NDEBUG
void outbox_queue_check(const outbox *o) {
    uint32_t ready = 0, timed = 0, parked = 0, in_lists = 0;
    for (uint32_t i = 0; i < o->all.count; i++) {
        const message *m = o->all.items[i];
        assert(m->of == o && m->at == i && m->state != MESSAGE_AT_HAND);
        assert(binheap_linked(&m->turn) ==
               (m->state == MESSAGE_READY || m->state == MESSAGE_TIMED));
        assert(list_linked(&m->link) == (m->state == MESSAGE_PARKED));
        assert(!m->channel == (m->state != MESSAGE_PARKED));
        ready += m->state == MESSAGE_READY;
        timed += m->state == MESSAGE_TIMED;
        parked += m->state == MESSAGE_PARKED;
    }
    for (uint32_t i = 0; i < o->channels.count; i++) {
        const channel *c = o->channels.items[i];
        assert(!c->fn || list_empty(&c->parked));
        in_lists += (uint32_t)list_count(&c->parked);
    }
    assert(ready == binheap_count(&o->ready) && timed == binheap_count(&o->timed));
    assert(parked == in_lists && o->all.count == table_count(&o->by_doc));
    (void)ready, (void)timed, (void)parked, (void)in_lists;
}
#else
void outbox_queue_check(const outbox *o) { (void)o; }
#endif

/* ---- channels */

static uint32_t name_hash(const struct key *space, const char *name) {
    return hash_fold(hash_bytes(name, strlen(name), space->hash));
}

static channel *new_channel(outbox *o, struct key *space, const char *name) {
    size_t size = sizeof(channel) + strlen(name) + 1;
    channel *c = env_new0(o->env, size);
    if (!c) return NULL;
    c->space = space;
    c->size = size;
    list_init(&c->parked);
    memcpy(c->name, name, strlen(name) + 1);
    if (!vec_room(o->env, &o->channels, 1) ||
        table_insert(&o->by_name, name_hash(space, name), o->channels.count)) {
        env_free(o->env, c, size);
        return NULL;
    }
    (void)vec_push(o->env, &o->channels, c);
    key_ref(space);
    return c;
}

channel *outbox_channel(outbox *o, struct key *space, const char *name) {
    table_probe p = table_find(&o->by_name, name_hash(space, name));
    while (table_next(&o->by_name, &p)) {
        channel *c = o->channels.items[p.index];
        if (c->space == space && !strcmp(c->name, name)) return c;
    }
    return new_channel(o, space, name);
}
