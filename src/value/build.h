/* build.h -- building containers bottom up, without intermediate values.
 *
 * A build is a stack. Push values; then turn the top n of them into an array, or the top n pairs of
 * key and value into an object, which takes their place on the stack. A parser of nested text needs
 * nothing else:
 *
 *     [1, {"a": 2}]     push 1;  push_key "a"; push 2; object(1);  array(2)
 *
 * Key lists that were seen before cost a comparison of pointers: many objects with the same keys in
 * the same order share one shape. The keys table is held while a build is open (key.h), so keys are
 * pushed without a reference. */
#ifndef HD_VALUE_BUILD_H
#define HD_VALUE_BUILD_H

#include "value/key.h"

typedef struct build {
    hd_heap *heap;
    uint64_t *items; /* bits of owned values; keys as pointers, in object entries */
    size_t count, capacity;
} build;

void build_init(build *b, hd_heap *heap);
/* Releases what is still on the stack. */
void build_fini(build *b);

/* Releases all but the first `count` entries of the stack. */
void build_drop(build *b, size_t count);

/* Private: makes room for one more. */
bool build_grow(build *b);

/* Takes the reference of v, which must exist. False without memory: v is released. */
static inline bool build_push(build *b, hd_value v) {
    assert(value_exists(v));
    if (b->count == b->capacity && !build_grow(b)) {
        value_unref(v);
        return false;
    }
    b->items[b->count++] = v.bits;
    return true;
}
/* The key of the next entry; from key_intern_held, or referenced by the caller. (Read as a value,
 * the bits of a pointer are no block, so releasing the stack passes over keys.) */
static inline bool build_push_key(build *b, const struct key *k) {
    if (b->count == b->capacity && !build_grow(b)) return false;
    b->items[b->count++] = (uint64_t)(uintptr_t)k;
    return true;
}

/* Replaces the top n values by an array of them. HD_LIMIT, HD_NOMEM: they are gone. O(n). */
hd_status build_array(build *b, size_t n);
/* Replaces the top n pairs (key, value) by an object. When a key is there twice: HD_EXISTS, and
 * *duplicate is the number (0 .. n-1) of the first pair whose key was there before. With `duplicate`
 * NULL the last value of a key counts. On failure the pairs are gone. O(n) when the list of keys is
 * known or sorted, else O(n log n). */
hd_status build_object(build *b, size_t n, size_t *duplicate);
/* Takes the one value that is left off the stack: owned. */
hd_value build_take(build *b);

#endif
