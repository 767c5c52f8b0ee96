/* limit.c -- how many steps with one key may be queued or running at once.
 *
 * A step with a limit enters its queue when fewer than `most` of its key are there or with a worker; else it waits
 * here, in the order in which it would have been begun. It leaves when its claim ends, or it is withdrawn; then the
 * next one enters. A key that no step has is forgotten. Keys belong to the whole space. */
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
    binheap_fini(&l->waiting);
    engine_free_text(e, l->key);
    env_free(e->env, l, sizeof *l);
}

static limit *limit_of(hd_engine *e, const char *key) {
    limit *l = find(e, key);
    if (l || !(l = env_new0(e->env, sizeof *l))) return l;
    binheap_init(&l->waiting, e->env);
    l->key = engine_text(e, key);
    if (l->key && vec_room(e->env, &e->limits, 1) &&
        !table_insert(&e->by_key, hash_key(key), e->limits.count)) {
        (void)vec_push(e->env, &e->limits, l);
        return l;
    }
    free_limit(e, l);
    return NULL;
}

static void forget_unused(hd_engine *e, limit *l) {
    if (l->held || binheap_count(&l->waiting)) return;
    uint32_t index = 0, last = e->limits.count - 1;
    while (e->limits.items[index] != l) index++;
    table_remove(&e->by_key, hash_key(l->key), index);
    if (index != last) table_move(&e->by_key, hash_key(e->limits.items[last]->key), last, index);
    vec_swap_remove(&e->limits, index);
    free_limit(e, l);
}

/* The next ones that wait enter their queues. Without memory they go on waiting: nothing is lost here, since this may be
 * called while an instance withdraws its steps one by one. */
static void admit(hd_engine *e, limit *l) {
    while (l->held < l->most && binheap_count(&l->waiting)) {
        strand *s = BINHEAP_ENTRY(binheap_pop(&l->waiting), strand, ready);
        uint64_t rank = s->ready.key;
        assert(s->limited_by == l && s->state == STRAND_READY && !s->queue);
        if (task_push_admitted(e, s, rank)) {
            (void)binheap_push(&l->waiting, &s->ready, rank); /* it has just made room */
            e->limits_stuck = true;
            engine_starve(e, HD_NOMEM);
            return;
        }
        l->held++;
    }
}

void limit_retry(hd_engine *e) {
    if (!e->limits_stuck) return;
    e->limits_stuck = false;
    for (uint32_t i = 0; i < e->limits.count; i++) admit(e, e->limits.items[i]);
}

hd_status limit_enter(hd_engine *e, strand *s, uint64_t rank, bool *may_queue) {
    *may_queue = true;
    if (!hd_value_exists(s->limit)) return HD_OK;
    limit *l = limit_of(e, hd_value_as_text(s->limit, ""));
    if (!l) return HD_NOMEM;
    assert(!s->limited_by);
    l->most = strand_node(s)->limit_most;
    admit(e, l); /* those that wait, if it was raised, come first */
    *may_queue = l->held < l->most;
    hd_status status = *may_queue ? HD_OK : binheap_push(&l->waiting, &s->ready, rank);
    if (status) return status;
    l->held += *may_queue;
    s->limited_by = l;
    return HD_OK;
}

void limit_leave(hd_engine *e, strand *s) {
    limit *l = s->limited_by;
    if (!l) return;
    assert(l->held <= UINT32_MAX / 2 && (l->held || binheap_count(&l->waiting)));
    s->limited_by = NULL;
    if (!s->queue && binheap_linked(&s->ready)) {
        binheap_remove(&l->waiting, &s->ready);
    } else {
        assert(l->held);
        l->held--;
        admit(e, l);
    }
    forget_unused(e, l);
}

void limit_fini(hd_engine *e) {
    for (uint32_t i = 0; i < e->limits.count; i++) free_limit(e, e->limits.items[i]);
    vec_fini(e->env, &e->limits);
    table_fini(&e->by_key);
}
