/* owned.c -- what a build owns beside its parts: memory for its functions (hd_build_memory), and stop
 * functions (hd_build_on_stop).
 *
 * A round mentions both, as it mentions parts; what it does not mention is freed. That happens after the
 * build's nodes have ended: first the stop functions are called, the latest first, then the memory is
 * freed. */
#include "pattern/pattern.h"

#include "base/env.h"
#include <stddef.h>

/* ---- stop functions */

void hd_build_on_stop(hd_build *b, hd_release_fn fn, void *ctx) {
    if (!fn) {
        hd_build_fail(b, HD_USAGE, "%s: hd_build_on_stop: no function, fn is NULL", b->path);
        return;
    }
    for (uint32_t i = 0; i < b->stops.count; i++) {
        build_stop_fn *s = &b->stops.items[i];
        if (s->fn != fn || s->ctx != ctx) continue;
        s->round = b->round; /* known from an earlier round */
        return;
    }
    build_stop_fn s = { fn, ctx, b->round };
    if (!b->status && vec_push(b->all->env, &b->stops, s)) return;
    if (!b->status) hd_build_fail(b, HD_NOMEM, "%s: no memory", b->path);
    fn(ctx);
}

static void call_stops(hd_build *b, bool all) {
    for (uint32_t i = b->stops.count; i-- > 0;) {
        build_stop_fn s = b->stops.items[i];
        assert(s.fn && s.round <= b->round);
        if (!all && s.round == b->round) continue;
        vec_remove(&b->stops, i);
        s.fn(s.ctx);
    }
}

/* ---- memory */

struct build_memory {
    uint32_t round;    /* the last round that mentioned it */
    size_t size;       /* in bytes, as the building function asked for */
    size_t block_size; /* of this struct with `bytes` and the name behind them */
    max_align_t bytes[];
};

static const char *name_of(const build_memory *m) { return (const char *)m->bytes + m->size; }

static build_memory *find_memory(const hd_build *b, const char *name) {
    for (uint32_t i = 0; i < b->memories.count; i++)
        if (!strcmp(name_of(b->memories.items[i]), name)) return b->memories.items[i];
    return NULL;
}

static build_memory *memory_new(hd_build *b, const char *name, size_t size) {
    size_t length = strlen(name) + 1, block_size = sizeof(build_memory) + size + length;
    if (size > SIZE_MAX / 2 || !vec_room(b->all->env, &b->memories, 1)) return NULL;
    build_memory *m = env_new0(b->all->env, block_size);
    if (!m) return NULL;
    m->size = size;
    m->block_size = block_size;
    memcpy((char *)m->bytes + size, name, length);
    b->memories.items[b->memories.count++] = m;
    return m;
}

void *hd_build_memory(hd_build *b, const char *name, size_t size) {
    if (!check_inputs(b, name, NULL, 0)) return NULL;
    build_memory *m = find_memory(b, name);
    if (m && m->size != size) {
        hd_build_fail(b, HD_USAGE, "%.120s/%.80s: the memory had another size", b->path, name);
        return NULL;
    }
    if (!m) m = memory_new(b, name, size);
    if (!m) {
        hd_build_fail(b, HD_NOMEM, "%.120s/%.80s: no memory", b->path, name);
        return NULL;
    }
    m->round = b->round;
    return m->bytes;
}

static void free_memories(hd_build *b, bool all) {
    for (uint32_t i = b->memories.count; i-- > 0;) {
        build_memory *m = b->memories.items[i];
        if (!all && m->round == b->round) continue;
        assert(m->block_size > sizeof *m + m->size && m->round <= b->round);
        vec_swap_remove(&b->memories, i);
        env_free(b->all->env, m, m->block_size);
    }
}

/* ---- freeing */

void owned_let_go(hd_build *b) {
    assert(!b->tx && !b->status); /* after a round that succeeded */
    call_stops(b, false);
    free_memories(b, false);
}

void owned_free(hd_build *b) {
    assert(list_empty(&b->parts));
    call_stops(b, true);
    free_memories(b, true);
    vec_fini(b->all->env, &b->stops);
    vec_fini(b->all->env, &b->memories);
}
