/* arena.h -- memory that is all freed at once.
 *
 * A bump allocator for one pass, one parse, one compilation. Chunks double in size; a request that
 * does not fit gets a chunk of at least its size. arena_reset forgets everything and keeps the
 * chunks, so an arena in steady state never asks the environment again.
 *
 * Blocks are aligned to 16 bytes and not zeroed. What is not in use is poisoned under
 * AddressSanitizer.
 *
 * Cost: alloc O(1); reset and fini O(chunks). */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <heddle/base.h>

typedef struct arena_chunk arena_chunk;

typedef struct arena {
    const hd_env *env;
    arena_chunk *first;   /* oldest; chunks before `current` are full, those after it empty */
    arena_chunk *current; /* where the next block comes from; NULL: no chunk yet */
    char *at, *end;       /* the unused part of `current` */
    size_t bytes;         /* taken from the environment */
} arena;

void arena_init(arena *a, const hd_env *env);
void arena_fini(arena *a);
void arena_reset(arena *a);

/* NULL when there is no memory. `size` may be 0. */
void *arena_alloc(arena *a, size_t size);
/* count * size bytes; NULL as well when the product does not fit. */
void *arena_alloc_array(arena *a, size_t count, size_t size);
/* A copy of the bytes with a NUL behind them. */
char *arena_copy(arena *a, const void *data, size_t size);

/* Asserts that the chunks are whole; O(chunks). */
void arena_check(const arena *a);

#endif
