/* hash.h -- a hash of what was read, to be compared by a later process.
 *
 * One read, deep or by shape, gives 64 bits: of the value, or of its keys, or, where the way to it ends
 * early, of how far it goes (MATCHING 2.4), so that two hashes are equal just where a change between the
 * two moments would not have been a reason to run. Hashes are keyed by the heap's secret, which for a
 * store in a file is the file's own: input cannot be prepared to collide, and all processes get the same hashes. */
#ifndef STORE_BASIS_HASH_H
#define STORE_BASIS_HASH_H

#include "store/basis/basis.h"
#include "store/place.h"

/* What a read finds now: `key` is a place, with KEY_SHAPE. Its document must be known. */
uint64_t basis_hash_read(const places *ps, uint32_t key);
void basis_hash_print(uint64_t hash, char out[HASH_TEXT]);

#endif
