/* slab.c -- chunks; taking and giving back are in the header. */
#include "base/slab.h"
#include "base/env.h"

#define SLAB_FIRST_CHUNK 1024
#define SLAB_LAST_CHUNK  65536

/* The header is 16 bytes, so that objects behind it keep the alignment of the block. */
typedef struct slab_chunk {
    struct slab_chunk *next;
    size_t size; /* of the block, header included */
} slab_chunk;
_Static_assert(sizeof(slab_chunk) % 16 == 0, "objects follow the header");

void slab_init(slab *s, const hd_env *env, size_t object_size) {
    assert(object_size > 0 && object_size <= SLAB_LAST_CHUNK);
    *s = (slab){ .env = env, .object_size = (uint32_t)(object_size + 7) & ~UINT32_C(7) };
}

void slab_fini(slab *s) {
    while (s->chunk) {
        slab_chunk *chunk = s->chunk;
        s->chunk = chunk->next;
        UNPOISON(chunk, chunk->size);
        env_free(s->env, chunk, chunk->size);
    }
    *s = (slab){ .env = s->env, .object_size = s->object_size };
}

/* As many objects as fill the size, and the header on top: nothing is left over behind the last one,
 * which for objects of a kilobyte would be one in 64. */
static size_t slab_next_chunk_size(const slab *s) {
    size_t room = s->chunk ? (s->chunk->size - sizeof(slab_chunk)) * 2 : SLAB_FIRST_CHUNK;
    if (room > SLAB_LAST_CHUNK) room = SLAB_LAST_CHUNK;
    size_t objects = room / s->object_size;
    return sizeof(slab_chunk) + (objects < 8 ? 8 : objects) * s->object_size;
}

void *slab_take_from_new_chunk_(slab *s) {
    assert(!s->free && s->fresh == s->fresh_end);
    size_t size = slab_next_chunk_size(s);
    slab_chunk *chunk = env_new(s->env, size);
    if (!chunk) return NULL;
    *chunk = (slab_chunk){ s->chunk, size };
    s->chunk = chunk;
    s->bytes += size;

    size_t objects = (size - sizeof *chunk) / s->object_size;
    s->fresh = (char *)(chunk + 1);
    s->fresh_end = s->fresh + objects * s->object_size;
    POISON(s->fresh, (size_t)(s->fresh_end - s->fresh));
    return slab_take(s);
}

static const slab_free *slab_peek_next(const slab *s, const slab_free *f) {
    UNPOISON(f, sizeof *f);
    const slab_free *next = f->next;
    POISON(f, s->object_size);
    return next;
}

void slab_check(const slab *s) {
    size_t room = 0, bytes = 0, free = 0;
    for (const slab_chunk *c = s->chunk; c; c = c->next) {
        room += (c->size - sizeof *c) / s->object_size;
        bytes += c->size;
    }
    for (const slab_free *f = s->free; f; f = slab_peek_next(s, f)) free++;
    size_t fresh = (size_t)(s->fresh_end - s->fresh) / s->object_size;
    assert(bytes == s->bytes);
    assert(room == free + fresh + s->live);
    (void)room, (void)bytes, (void)fresh;
}
