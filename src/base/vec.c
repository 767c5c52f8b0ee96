/* vec.c -- the untyped half of vec.h. */
#include "base/vec.h"
#include "base/env.h"

void *vec_grow_(const hd_env *env, void *items, uint32_t *capacity, uint64_t need, size_t size) {
    uint64_t grown = *capacity ? *capacity : 4;
    while (grown < need) grown *= 2;
    if (grown > UINT32_MAX) grown = UINT32_MAX;
    if (need > grown || grown > SIZE_MAX / size) return items;
    void *moved = env_resize(env, items, *capacity * size, (size_t)grown * size);
    if (!moved) return items;
    *capacity = (uint32_t)grown;
    return moved;
}

void vec_fini_(const hd_env *env, void *items, uint32_t capacity, size_t size) {
    env_free(env, items, capacity * size);
}

void vec_close_gap_(void *items, uint32_t count, uint32_t index, size_t size) {
    assert(index < count);
    char *at = (char *)items + index * size;
    memmove(at, at + size, (count - index - 1) * size);
}
