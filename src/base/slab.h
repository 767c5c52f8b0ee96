/* slab.h -- objects of one size.
 *
 * Objects are carved out of chunks and given back to a free list that runs through the free
 * objects themselves: no header per object, no search. Chunks start small and double, so a slab of
 * three objects costs little and one of a million costs few allocations; they return to the
 * environment at slab_fini only.
 *
 * Objects are aligned to 16 bytes when their size is a multiple of 16, else to 8. Fresh objects
 * are not zeroed. Free objects are poisoned under AddressSanitizer and scribbled over in debug
 * builds.
 *
 * Cost: take and give O(1); take allocates when a chunk is used up. */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include "base/poison.h"
#include <heddle/base.h>
#include <assert.h>
#include <string.h>

typedef struct slab_free {
    struct slab_free *next;
} slab_free;

typedef struct slab {
    const hd_env *env;
    slab_free *free;          /* objects given back, last first */
    char *fresh, *fresh_end;  /* the part of the newest chunk that was never used */
    struct slab_chunk *chunk; /* newest first */
    uint32_t object_size;     /* rounded up to a multiple of 8 */
    uint32_t live;            /* taken and not given back */
    size_t bytes;             /* taken from the environment */
} slab;

void slab_init(slab *s, const hd_env *env, size_t object_size);
/* Frees all chunks, whether or not objects are still live; an owner that must not lose any checks `live` first. */
void slab_fini(slab *s);

/* Private: opens a new chunk and takes its first object. */
void *slab_take_from_new_chunk_(slab *s);

static inline void *slab_take(slab *s) {
    void *object;
    if (s->free) {
        object = s->free;
        UNPOISON(object, s->object_size);
        s->free = s->free->next;
    } else if (s->fresh < s->fresh_end) {
        object = s->fresh;
        s->fresh += s->object_size;
        UNPOISON(object, s->object_size);
    } else {
        return slab_take_from_new_chunk_(s);
    }
    s->live++;
    return object;
}

static inline void slab_give(slab *s, void *object) {
    assert(object && s->live > 0);
#ifndef NDEBUG
    memset(object, 0xDD, s->object_size); /* makes a use after free visible */
#endif
    slab_free *f = object;
    f->next = s->free;
    s->free = f;
    s->live--;
    POISON(object, s->object_size);
}

/* Asserts that live, free and fresh objects add up; O(free objects + chunks). */
void slab_check(const slab *s);

#endif
