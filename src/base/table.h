/* table.h -- a hash table that holds no keys: from a 32-bit hash to the indices that have it.
 *
 * The entries live in an array of the table's owner, which compares them; the table stores 8 bytes for
 * each: the hash and the index. So one table serves paths, documents, pieces and more.
 *
 *     for (table_probe p = table_find(&t, hash); table_next(&t, &p);)
 *         if (same(&entries[p.index], key)) return p.index;
 *
 * Open addressing with linear probing, at most 13 of 16 slots taken, capacity a power of two.
 * Removal shifts the run behind the hole back, so there are no tombstones and a table that shrank
 * is as fast as one that never grew. The slot comes from the upper bits of the hash times an odd
 * constant: hashes that differ only in some bits still spread.
 *
 * Cost: find, insert, remove O(1) expected; insert allocates only when the capacity doubles. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <heddle/base.h>

#define TABLE_NONE UINT32_MAX /* no index: an empty slot */

typedef struct table_slot {
    uint32_t hash;
    uint32_t index; /* TABLE_NONE: empty */
} table_slot;

typedef struct table {
    const hd_env *env;
    table_slot *slots; /* NULL until the first insert */
    uint32_t count;
    uint32_t mask;  /* capacity - 1; 0 while slots is NULL */
    uint32_t shift; /* 32 - log2(capacity) */
} table;

typedef struct table_probe {
    uint32_t index; /* the candidate, after table_next returned true */
    uint32_t hash;
    uint32_t at_; /* private: the next slot to look at */
} table_probe;

void table_init(table *t, const hd_env *env);
void table_fini(table *t);
/* Empties the table and keeps its memory. */
void table_clear(table *t);

static inline uint32_t table_count(const table *t) { return t->count; }

/* Private: the home slot of a hash, where a search for it begins. */
static inline uint32_t table_home_(const table *t, uint32_t hash) {
    return (hash * UINT32_C(0x9E3779B1)) >> t->shift;
}

/* Starts a search; table_next finds each index stored under the hash. The table must not change
 * in between. */
static inline table_probe table_find(const table *t, uint32_t hash) {
    return (table_probe){ TABLE_NONE, hash, t->slots ? table_home_(t, hash) : 0 };
}

static inline bool table_next(const table *t, table_probe *p) {
    if (!t->slots) return false;
    for (;;) {
        const table_slot *slot = &t->slots[p->at_];
        if (slot->index == TABLE_NONE) return false;
        p->at_ = (p->at_ + 1) & t->mask;
        if (slot->hash == p->hash) {
            p->index = slot->index;
            return true;
        }
    }
}

/* Makes room for `count` entries in all, so that inserts up to there cannot fail. */
hd_status table_reserve(table *t, uint32_t count);

/* The pair must not be in the table. HD_NOMEM: nothing changed. */
hd_status table_insert(table *t, uint32_t hash, uint32_t index);
/* The pair must be in the table. */
void table_remove(table *t, uint32_t hash, uint32_t index);
/* The entry moved in its owner's array. The pair (hash, from) must be in the table. */
void table_move(table *t, uint32_t hash, uint32_t from, uint32_t to);

/* Asserts that every entry can be reached from its home slot; O(capacity). */
void table_check(const table *t);

#endif
