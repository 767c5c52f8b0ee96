/* arena.c -- see the header. */
#include "base/arena.h"
#include "base/env.h"
#include "base/poison.h"
#include <assert.h>
#include <string.h>

#define ARENA_ALIGN       16
#define ARENA_FIRST_CHUNK 1024
#define ARENA_LAST_CHUNK  (1024 * 1024)

struct arena_chunk {
    struct arena_chunk *next; /* the one to use when this is full; NULL: make one */
    size_t size;              /* of the block, header included */
};
_Static_assert(sizeof(arena_chunk) % ARENA_ALIGN == 0, "blocks follow the header");

void arena_init(arena *a, const hd_env *env) { *a = (arena){ .env = env }; }

void arena_fini(arena *a) {
    while (a->first) {
        arena_chunk *chunk = a->first;
        a->first = chunk->next;
        UNPOISON(chunk, chunk->size);
        env_free(a->env, chunk, chunk->size);
    }
    arena_init(a, a->env);
}

static void arena_use(arena *a, arena_chunk *chunk) {
    a->current = chunk;
    a->at = (char *)(chunk + 1);
    a->end = (char *)chunk + chunk->size;
    POISON(a->at, (size_t)(a->end - a->at));
}

void arena_reset(arena *a) {
    if (a->first) arena_use(a, a->first);
}

/* A chunk behind the current one, which the caller knows to be too small for `size`. */
static arena_chunk *arena_add_chunk(arena *a, size_t size) {
    size_t want = a->current ? a->current->size * 2 : ARENA_FIRST_CHUNK;
    if (want > ARENA_LAST_CHUNK) want = ARENA_LAST_CHUNK;
    if (want < size + sizeof(arena_chunk)) want = size + sizeof(arena_chunk);
    arena_chunk *chunk = env_new(a->env, want);
    if (!chunk) return NULL;

    arena_chunk **link = a->current ? &a->current->next : &a->first;
    *chunk = (arena_chunk){ *link, want };
    *link = chunk;
    a->bytes += want;
    return chunk;
}

/* After a reset the following chunks are empty and waiting; one that is too small for this request
 * stays in line behind the chunk made for it. */
static bool arena_next_chunk(arena *a, size_t size) {
    arena_chunk *next = a->current ? a->current->next : NULL;
    if (!next || next->size - sizeof *next < size) next = arena_add_chunk(a, size);
    if (!next) return false;
    arena_use(a, next);
    return true;
}

void *arena_alloc(arena *a, size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    size_t rounded = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (rounded == 0) rounded = ARENA_ALIGN;
    if ((size_t)(a->end - a->at) < rounded && !arena_next_chunk(a, rounded)) return NULL;
    void *block = a->at;
    a->at += rounded;
    UNPOISON(block, size);
    return block;
}

void *arena_alloc_array(arena *a, size_t count, size_t size) {
    return size && count > SIZE_MAX / size ? NULL : arena_alloc(a, count * size);
}

char *arena_copy(arena *a, const void *data, size_t size) {
    char *copy = size < SIZE_MAX ? arena_alloc(a, size + 1) : NULL;
    if (!copy) return NULL;
    if (size) memcpy(copy, data, size);
    copy[size] = 0;
    return copy;
}

void arena_check(const arena *a) {
    size_t bytes = 0;
    bool found = a->current == NULL;
    for (const arena_chunk *c = a->first; c; c = c->next) {
        bytes += c->size;
        if (c == a->current) found = true;
    }
    assert(found && bytes == a->bytes);
    assert((a->first == NULL) == (a->current == NULL));
    if (a->current) assert(a->end == (char *)a->current + a->current->size && a->at <= a->end);
    (void)bytes, (void)found;
}
