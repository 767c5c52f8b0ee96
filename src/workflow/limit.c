/* limit.c -- how many steps with one key may be queued or running at once.
 *
 * A step with a limit enters its queue when fewer than its `most` of its key are there or with a worker; else it waits
 * here, in the order in which it would have been begun. It leaves when its claim ends, or it is withdrawn; then the
 * next one enters. Steps of one key may differ in `most`: each is let in by its own. No step passes one that waits
 * before it; otherwise steps with a high `most` could keep one with a low `most` waiting for ever. A key that no step
 * has is forgotten. Limits hold in the whole space: where several engines run its shards, share.c divides the slots of
 * a key among them. */
#include "workflow/engine.h"

#include "base/env.h"
#include "base/hash.h"

static uint32_t hash_key(const char *key) { return (uint32_t)hash_bytes(key, strlen(key), 0); }

static limit *find(const hd_engine *e, const char *key) {
    for (table_probe p = table_find(&e->by_key, hash_key(key)); table_next(&e->by_key, &p);)
        if (!strcmp(e->limits.items[p.index]->key, key)) return e->limits.items[p.index];
    return NULL;
}

static void free_limit(hd_engine *e, limit *l) {
    share_close(e, &l->share);
    binheap_fini(&l->waiting);
    engine_free_text(e, l->key);
    env_free(e->env, l, sizeof *l);
}

static limit *limit_of(hd_engine *e, const char *key) {
    limit *l = find(e, key);
    if (l || !(l = env_new0(e->env, sizeof *l))) return l;
    binheap_init(&l->waiting, e->env);
    l->key = engine_text(e, key);
    if (l->key && !share_open(e, &l->share, true, key) && vec_room(e->env, &e->limits, 1) &&
        !table_insert(&e->by_key, hash_key(key), e->limits.count)) {
        (void)vec_push(e->env, &e->limits, l);
        return l;
    }
    free_limit(e, l);
    return NULL;
}

share *limit_share(const hd_engine *e, uint32_t hash, place_id doc) {
    for (table_probe p = table_find(&e->by_key, hash); table_next(&e->by_key, &p);)
        if (e->limits.items[p.index]->share.doc == doc) return &e->limits.items[p.index]->share;
    return NULL;
}

void limit_forget_unused(hd_engine *e, limit *l) {
    if (l->held || binheap_count(&l->waiting)) return;
    if (l->share.slots || l->share.wants || l->share.ask)
        return; /* share.c gives them back first */
    uint32_t last = e->limits.count - 1;
    table_probe p = table_find(&e->by_key, hash_key(l->key));
    while (table_next(&e->by_key, &p) && e->limits.items[p.index] != l) {}
    uint32_t index = p.index;
    assert(e->limits.items[index] == l);
    table_remove(&e->by_key, hash_key(l->key), index);
    if (index != last) table_move(&e->by_key, hash_key(e->limits.items[last]->key), last, index);
    vec_swap_remove(&e->limits, index);
    free_limit(e, l);
}

/* The next step may be one of the instance that is being paused, or has ended: then it is withdrawn, too, before any
 * step is begun. A step for which there is no memory goes on waiting. Its instance is not given up (live_lost), since
 * this may be called while that instance withdraws its steps one by one. */
void limit_admit(hd_engine *e, limit *l) {
    for (strand *s; !e->limits_closed && (s = limit_next(l)) && limit_has_room(l, s);) {
        (void)binheap_pop(&l->waiting);
        uint64_t rank = s->ready.key;
        assert(s->limited_by == l && s->state == STRAND_READY && !s->queue);
        if (task_push_admitted(e, s, rank)) {
            (void)binheap_push(&l->waiting, &s->ready, rank); /* has room: it was popped just now */
            e->limits_stuck = true;
            engine_starve(e, HD_NOMEM);
            return;
        }
        l->held++;
    }
}

static void admit_all(hd_engine *e) {
    for (uint32_t i = 0; i < e->limits.count; i++) limit_admit(e, e->limits.items[i]);
}

void limit_retry(hd_engine *e) {
    if (!e->limits_stuck) return;
    e->limits_stuck = false;
    admit_all(e);
}

void limits_close(hd_engine *e) { e->limits_closed = true; }

void limits_open(hd_engine *e) {
    e->limits_closed = false;
    admit_all(e);
}

/* In the order of the heap. */
static bool goes_before(const strand *s, uint64_t rank, const strand *other) {
    if (rank != other->ready.key) return rank < other->ready.key;
    return s->ready.tie < other->ready.tie;
}

hd_status limit_enter(hd_engine *e, strand *s, uint64_t rank, bool *may_queue) {
    *may_queue = true;
    if (!hd_value_exists(s->limit)) return HD_OK;
    limit *l = limit_of(e, hd_value_as_text(s->limit, ""));
    if (!l) return HD_NOMEM;
    assert(!s->limited_by);
    const strand *next = limit_next(l);
    *may_queue = !e->limits_closed && (!next || goes_before(s, rank, next)) && limit_has_room(l, s);
    hd_status status = *may_queue ? HD_OK : binheap_push(&l->waiting, &s->ready, rank);
    if (status) return status;
    l->held += *may_queue;
    s->limited_by = l;
    share_touch(e, &l->share);
    return HD_OK;
}

void limit_leave(hd_engine *e, strand *s) {
    limit *l = s->limited_by;
    if (!l) return;
    assert(l->held <= UINT32_MAX / 2 && (l->held || binheap_count(&l->waiting)));
    s->limited_by = NULL;
    if (!s->queue && binheap_linked(&s->ready)) {
        binheap_remove(&l->waiting, &s->ready);
        share_touch(e, &l->share);
    } else {
        assert(l->held);
        l->held--;
        share_ended(e, &l->share);
    }
    limit_admit(e, l);
    limit_forget_unused(e, l);
}

void limit_fini(hd_engine *e) {
    for (uint32_t i = 0; i < e->limits.count; i++) free_limit(e, e->limits.items[i]);
    vec_fini(e->env, &e->limits);
    table_fini(&e->by_key);
}
