/* number_powers.h -- powers of ten to 128 bits, shared by reading and printing doubles.
 *
 * 10^k is hi:lo times 2^(number_power_exponent(k) - 127), rounded down; the top bit of hi is set.
 * The true value is therefore in [hi:lo, hi:lo + 1) units, and is hi:lo exactly for the powers
 * that fit. */
#ifndef HD_VALUE_NUMBER_POWERS_H
#define HD_VALUE_NUMBER_POWERS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define NUMBER_POWER_MIN (-342)
#define NUMBER_POWER_MAX 324

typedef struct number_power {
    uint64_t hi, lo;
} number_power;

extern const number_power number_powers[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1];

static inline number_power number_power_of_ten(int k) {
    assert(k >= NUMBER_POWER_MIN && k <= NUMBER_POWER_MAX);
    return number_powers[k - NUMBER_POWER_MIN];
}

/* 5^55 is the last power of five below 2^128. */
static inline bool number_power_is_exact(int k) { return k >= 0 && k <= 55; }

/* floor(log2(10^k)). The generator of the table checks the estimate. */
static inline int number_power_exponent(int k) { return (k * 1741647) >> 19; }

__extension__ typedef unsigned __int128 number_u128;

#endif
