/* spaces.c -- see spaces.h. */
#include "store/log/spaces.h"

#include "base/env.h"

void log_spaces_fini(log_spaces *s, const hd_env *env) {
    for (uint32_t i = 0; i < s->items.count; i++) key_unref(s->items.items[i].name);
    vec_fini(env, &s->items);
}

hd_status log_spaces_at(log_spaces *s, const hd_env *env, struct key *name, log_space **out) {
    assert(name);
    for (uint32_t i = 0; i < s->items.count; i++) {
        if (s->items.items[i].name != name) continue;
        *out = &s->items.items[i];
        return HD_OK;
    }
    if (!vec_push(env, &s->items, ((log_space){ name, 0, false }))) return HD_NOMEM;
    key_ref(name);
    *out = &vec_last(&s->items);
    return HD_OK;
}

hd_status log_spaces_named(log_spaces *s, const hd_env *env, hd_heap *heap, const char *name,
                           size_t length, log_space **out) {
    struct key *k;
    hd_status status = key_make(heap, name, length, &k);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    status = log_spaces_at(s, env, k, out);
    key_unref(k);
    return status;
}

hd_status log_spaces_take(log_spaces *s, const hd_env *env, hd_heap *heap, hd_value made) {
    for (size_t i = 0, count = log_commit_spaces(made); i < count; i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        log_space *space;
        if (!log_commit_space(made, i, &name, &length, &seq)) return HD_CORRUPT;
        hd_status status = log_spaces_named(s, env, heap, name, length, &space);
        if (status) return status;
        space->seq = seq;
    }
    return HD_OK;
}

static uint64_t seq_of(void *ctx, const char *space, size_t length) {
    const log_spaces *s = ctx;
    for (uint32_t i = 0; i < s->items.count; i++) {
        const log_space *of = &s->items.items[i];
        if (of->name->length == length && !memcmp(key_bytes(of->name), space, length))
            return of->seq;
    }
    return 0;
}

memo_point log_spaces_point(log_spaces *s) { return (memo_point){ s, seq_of }; }
