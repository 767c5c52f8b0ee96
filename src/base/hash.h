/* hash.h -- hashing of bytes and integers.
 *
 * Bytes by XXH3; give it a random seed where untrusted input chooses the bytes. The hashes of rows in a
 * store's file are hash_bytes with a fixed seed, so hash_bytes cannot change without a new file format.
 * The other functions serve tables inside the process.
 *
 * Cost: a few nanoseconds for short strings, about 10 bytes per nanosecond for long ones. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *bytes, size_t size, uint64_t seed);

/* Every bit of the result depends on every bit of x. A bijection: different x give different results. */
static inline uint64_t hash_u64(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return x ^ (x >> 32);
}

/* Order matters: combine(a, b) is not combine(b, a). */
static inline uint64_t hash_combine(uint64_t a, uint64_t b) {
    return hash_u64(a + UINT64_C(0x9E3779B97F4A7C15) * (b + 1));
}

/* 32 bits of 64, for a table. */
static inline uint32_t hash_fold(uint64_t h) { return (uint32_t)(h ^ (h >> 32)); }

#endif
