/* basis_hash.h -- a hash of what was read, to be compared by a later process.
 *
 * One read, deep or by shape, gives 64 bits: of the value, or of its keys, or, where the way to it ends
 * early, of how far it goes (MATCHING 2.4), so that two hashes are equal just where a change between the
 * two moments would not have been a reason to run. Hashes are keyed by the heap's secret, which for a
 * store in a file is the file's own: input cannot be prepared to collide, and all processes get the same hashes.
 *
 * A row keeps one hash for each *slot*. The first SLOTS - 1 documents that it reads have a slot each, in
 * the order of its reads; all further ones share the last. So a row stays small whatever it reads, and
 * to look at one changed document of a usual row costs one load. */
#ifndef STORE_BASIS_HASH_H
#define STORE_BASIS_HASH_H

#include "base/hash.h"
#include "store/basis.h"
#include "store/place.h"

enum { SLOTS = 16 };

/* Which documents have which slot. */
typedef struct slots {
    uint32_t count;       /* used */
    uint32_t last;        /* the slot that was asked for last */
    place_id docs[SLOTS]; /* of the shared slot: the first of its documents */
} slots;
/* The slot of a read of `doc`; reads are given in order. */
uint32_t slots_take(slots *of, place_id doc);

/* What a read finds now: `key` is a place, with KEY_SHAPE. Its document must be known. */
uint64_t basis_hash_read(const places *ps, uint32_t key);
/* Adds the hash of read number `ordinal` to that of its slot. */
static inline uint64_t basis_hash_add(uint64_t slot, uint64_t read, uint32_t ordinal) {
    return slot + hash_u64(read + ordinal * UINT64_C(0x9E3779B97F4A7C15));
}

void basis_hash_print(uint64_t hash, char out[HASH_TEXT]);

#endif
