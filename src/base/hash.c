/* hash.c -- XXH3, compiled in: short keys are most keys, and a call into the shared library costs
 * as much as hashing one. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/hash.h"

uint64_t hash_bytes(const void *bytes, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, size, seed);
}
