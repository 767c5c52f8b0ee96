/* heads.c -- an authority's memory of its documents, sessions and sequences. */
#include "store/admit.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"

#define TOUCHES_MAX  4096
#define TOUCHES_KEPT 1024

static uint32_t name_hash(const struct key *space, hd_scope scope, const struct key *instance,
                          bool meta, const struct key *id) {
    uint64_t h = hash_combine(space->hash, id->hash);
    h = hash_combine(h, (uint64_t)scope * 2 + meta);
    return hash_fold(instance ? hash_combine(h, instance->hash) : h);
}

uint64_t heads_bit(const heads *h, uint32_t head_) {
    assert(head_ < h->heads.count);
    const head *d = &h->heads.items[head_];
    return UINT64_C(1) << (name_hash(d->space, (hd_scope)d->scope, d->instance, d->meta, d->id) &
                           63);
}

hd_status heads_init(heads *h, const hd_env *env, hd_heap *heap) {
    assert(env && heap);
    *h = (heads){ .env = env, .heap = heap };
    table_init(&h->by_name, env);
    return HD_OK;
}

static void head_fini(heads *h, head *d) {
    for (uint32_t i = 0; i < d->touches.count; i++) path_unref(h->heap, d->touches.items[i].path);
    vec_fini(h->env, &d->touches);
    value_unref(d->value);
    key_unref(d->space);
    key_unref(d->instance);
    key_unref(d->id);
}

void heads_fini(heads *h) {
    if (!h->env) return;
    for (uint32_t i = 0; i < h->heads.count; i++) head_fini(h, &h->heads.items[i]);
    for (uint32_t i = 0; i < h->spaces.count; i++) key_unref(h->spaces.items[i].name);
    for (uint32_t i = 0; i < h->sessions.count; i++) {
        vec_fini(h->env, &h->sessions.items[i].verdicts);
        vec_fini(h->env, &h->sessions.items[i].refused);
    }
    vec_fini(h->env, &h->heads);
    vec_fini(h->env, &h->spaces);
    vec_fini(h->env, &h->sessions);
    table_fini(&h->by_name);
    h->env = NULL;
}

hd_status heads_space(heads *h, struct key *name, uint32_t *out) {
    for (uint32_t i = h->spaces.count; i-- > 0;) {
        if (h->spaces.items[i].name != name) continue;
        *out = i;
        return HD_OK;
    }
    if (!vec_push(h->env, &h->spaces, ((head_space){ .name = name }))) return HD_NOMEM;
    key_ref(name);
    *out = h->spaces.count - 1;
    return HD_OK;
}

bool heads_find(const heads *h, const struct key *space, hd_scope scope, const struct key *instance,
                bool meta, const struct key *id, uint32_t *out) {
    uint32_t hash = name_hash(space, scope, instance, meta, id);
    for (table_probe p = table_find(&h->by_name, hash); table_next(&h->by_name, &p);) {
        const head *d = &h->heads.items[p.index];
        if (d->id == id && d->space == space && d->instance == instance && d->scope == scope &&
            d->meta == meta) {
            *out = p.index;
            return true;
        }
    }
    return false;
}

hd_status heads_intern(heads *h, struct key *space, hd_scope scope, struct key *instance, bool meta,
                       struct key *id, uint32_t *out) {
    assert(scope != HD_SCOPE_HERE);
    if (heads_find(h, space, scope, instance, meta, id, out)) return HD_OK;
    head d = {
        .space = space, .instance = instance, .id = id, .scope = (uint8_t)scope, .meta = meta
    };
    hd_status status = heads_space(h, space, &d.space_index);
    if (status) return status;
    if (!vec_push(h->env, &h->heads, d)) return HD_NOMEM;
    uint32_t index = h->heads.count - 1;
    status = table_insert(&h->by_name, name_hash(space, scope, instance, meta, id), index);
    if (status) {
        h->heads.count--;
        return status;
    }
    key_ref(space);
    key_ref(id);
    if (instance) key_ref(instance);
    *out = index;
    return HD_OK;
}

hd_status heads_session(heads *h, const uint8_t id[16], uint32_t *out) {
    for (uint32_t i = h->sessions.count; i-- > 0;) {
        if (memcmp(h->sessions.items[i].id, id, 16)) continue;
        *out = i;
        return HD_OK;
    }
    head_session s = { 0 };
    memcpy(s.id, id, 16);
    if (!vec_push(h->env, &h->sessions, s)) return HD_NOMEM;
    *out = h->sessions.count - 1;
    return HD_OK;
}

hd_status heads_touch(heads *h, uint32_t index, uint64_t seq, uint32_t session, uint64_t local_seq,
                      hd_path path, uint8_t flags) {
    assert(index < h->heads.count && session < h->sessions.count);
    assert(seq <= SEQ_MAX);
    head *d = &h->heads.items[index];
    head_touch t = { seq, local_seq, session, path, flags };
    assert(!d->touches.count || vec_last(&d->touches).seq <= seq);
    if (!vec_push(h->env, &d->touches, t)) return HD_NOMEM;
    path_ref(h->heap, path);
    if (d->seq < seq) d->seq = seq;
    return HD_OK;
}

/* The touch is the oldest one that is not forgotten. */
static void forget_touch(heads *h, head *d, const head_touch *t) {
    if (!(d->flags & HEAD_FLOOR) || t->session != d->floor_session) {
        d->floor_from = heads_floor(h, d);
        d->floor_session = t->session;
    }
    d->floor_local = t->local_seq;
    d->floor = t->seq;
    d->flags |= HEAD_FLOOR;
    path_unref(h->heap, t->path);
}

static void forget_touches(heads *h, head *d, uint64_t floor) {
    uint32_t gone = 0;
    while (gone < d->touches.count && d->touches.items[gone].seq <= floor)
        forget_touch(h, d, &d->touches.items[gone++]);
    if (!gone) return;
    memmove(d->touches.items, d->touches.items + gone,
            (d->touches.count - gone) * sizeof *d->touches.items);
    d->touches.count -= gone;
    if (!d->touches.count) vec_fini(h->env, &d->touches); /* most documents are written once */
}

void heads_raise_floor(heads *h, uint32_t index, uint64_t floor) {
    head *d = &h->heads.items[index];
    assert(floor >= d->floor);
    if (d->touches.count) forget_touches(h, d, floor);
    if (d->floor < floor) d->floor_from = floor;
    d->floor = floor;
}

void heads_bound(heads *h, uint32_t index) {
    assert(index < h->heads.count);
    head *d = &h->heads.items[index];
    if (d->touches.count > TOUCHES_MAX)
        forget_touches(h, d, d->touches.items[d->touches.count - TOUCHES_KEPT].seq);
}

void heads_prune(heads *h, uint32_t space, uint64_t floor) {
    assert(space < h->spaces.count);
    assert(floor <= h->spaces.items[space].seq);
    if (floor <= h->spaces.items[space].floor) return;
    for (uint32_t i = 0; i < h->heads.count; i++)
        if (h->heads.items[i].space_index == space) forget_touches(h, &h->heads.items[i], floor);
    h->spaces.items[space].floor = floor;
}

/* Nothing is lost with it that the authority could not look up: no touches, no value, and not the
 * memory of a deletion that is written nowhere else. */
static bool is_spent(const heads *h, const head *d) {
    bool only_here = (d->flags & HEAD_TOMBSTONE) && !(d->flags & HEAD_GUARDED);
    bool recent = d->seq > h->spaces.items[d->space_index].floor; /* it may have changed nothing */
    return !d->touches.count && !recent && value_is_absent(d->value) && !only_here;
}

void heads_compact(heads *h) {
    uint32_t kept = 0;
    table_clear(&h->by_name);
    for (uint32_t i = 0; i < h->heads.count; i++) {
        head *d = &h->heads.items[i];
        if (is_spent(h, d)) {
            head_fini(h, d);
            continue;
        }
        hd_status status = table_insert(
            &h->by_name, name_hash(d->space, (hd_scope)d->scope, d->instance, d->meta, d->id),
            kept);
        assert(!status && "there is room: it had more");
        (void)status;
        h->heads.items[kept++] = *d;
    }
    h->heads.count = kept;
}

static void check_sessions(const heads *h) {
    for (uint32_t i = 0; i < h->sessions.count; i++) {
        const head_session *s = &h->sessions.items[i];
        assert(!s->verdicts.count || vec_last(&s->verdicts).local_seq <= s->last);
        for (uint32_t k = 1; k < s->verdicts.count; k++)
            assert(s->verdicts.items[k - 1].local_seq < s->verdicts.items[k].local_seq);
        for (uint32_t k = 1; k < s->refused.count; k++)
            assert(s->refused.items[k - 1].local_seq < s->refused.items[k].local_seq);
        assert(!s->refused.count || s->refused.items[0].local_seq > s->forgotten);
        (void)s;
    }
}

void heads_check(const heads *h) {
    assert(table_count(&h->by_name) == h->heads.count);
    check_sessions(h);
    for (uint32_t i = 0; i < h->heads.count; i++) {
        const head *d = &h->heads.items[i];
        const head_space *s = &h->spaces.items[d->space_index];
        uint64_t last = d->floor;
        for (uint32_t j = 0; j < d->touches.count; j++) {
            assert(d->touches.items[j].seq >= last);
            last = d->touches.items[j].seq;
        }
        assert(d->seq <= s->seq && d->floor <= s->seq && s->floor <= s->seq);
        assert(!d->touches.count || vec_last(&d->touches).seq <= d->seq);
        assert((d->flags & (HEAD_EXISTS | HEAD_TOMBSTONE)) != (HEAD_EXISTS | HEAD_TOMBSTONE));
        assert(!value_is_failed(d->value) && d->scope != HD_SCOPE_HERE);
        (void)s, (void)last;
    }
}
