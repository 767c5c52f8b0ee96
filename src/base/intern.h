/* intern.h -- byte strings as small integers.
 *
 * Equal strings have equal ids while someone holds them, so comparing names is comparing integers.
 * Ids are reference counted; when the last holder lets go, the string is freed and the id is used
 * again. 0 is never an id.
 *
 * Hashes are seeded at random, so that nobody can choose strings that collide.
 *
 * Cost: take and find are one hash of the bytes and one lookup, O(length); ref, release and bytes
 * O(1). Only taking an unknown string allocates. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/table.h"
#include <assert.h>

#define INTERN_NONE UINT32_C(0)

typedef struct intern_entry {
    char *bytes; /* with a NUL behind them; NULL: a free entry */
    uint32_t length;
    uint32_t hash;
    uint32_t refs; /* holders; 0 only in a free entry */
    uint32_t next; /* of a free entry: the next free id, or INTERN_NONE */
} intern_entry;

typedef struct intern {
    const hd_env *env;
    uint64_t seed;
    table ids;             /* hash -> id */
    intern_entry *entries; /* of id i: entries[i - 1] */
    uint32_t count;        /* entries in use, now or once */
    uint32_t capacity;
    uint32_t free; /* the first free id, or INTERN_NONE */
    size_t bytes;  /* of all strings */
} intern;

void intern_init(intern *in, const hd_env *env);
/* Frees everything, held or not. */
void intern_fini(intern *in);

/* The id of the string, which is made if need be; the caller holds one reference more.
 * HD_NOMEM: *id is INTERN_NONE and nothing changed. HD_LIMIT: longer than 4 GiB. */
hd_status intern_take(intern *in, const void *bytes, size_t length, uint32_t *id);
/* The id of a known string, or INTERN_NONE; no reference. */
uint32_t intern_find(const intern *in, const void *bytes, size_t length);

static inline const intern_entry *intern_entry_(const intern *in, uint32_t id) {
    assert(id != INTERN_NONE && id <= in->count && in->entries[id - 1].refs > 0);
    return &in->entries[id - 1];
}

/* The bytes, NUL-terminated, good while the id is held. `length` may be NULL. */
static inline const char *intern_bytes(const intern *in, uint32_t id, size_t *length) {
    const intern_entry *e = intern_entry_(in, id);
    if (length) *length = e->length;
    return e->bytes;
}

static inline void intern_ref(intern *in, uint32_t id) {
    assert(intern_entry_(in, id)->refs < UINT32_MAX);
    in->entries[id - 1].refs++;
}
void intern_release(intern *in, uint32_t id);

/* Strings that are held by someone. */
static inline uint32_t intern_live(const intern *in) { return table_count(&in->ids); }

/* Asserts that table, entries and free list agree; O(entries). */
void intern_check(const intern *in);

#endif
