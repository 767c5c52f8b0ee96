/* number_print.c -- integers and doubles to text.
 *
 * A double v = c * 2^q stands for every real number that rounds to it: an interval of about one
 * unit 2^q around v. Among the decimals in that interval we want the one with the fewest digits,
 * and of those the one nearest to v. With k = floor(log10(interval)), the grid 10^(k+1) has at
 * most one point inside, the grid 10^k has at least one: so it suffices to look at the two
 * neighbours of v on each grid, coarse one first. All comparisons are made on integers scaled by
 * 4 * 10^-k, from 128-bit powers of ten, rounding to odd so that a strict comparison stays strict
 * (R. Giulietti, "The Schubfach way to render doubles").
 *
 * Layout: 0.000001 <= |v| < 1e17 in plain notation, everything else with an exponent. */
#include "value/number.h"
#include "value/number_powers.h"

#include <string.h>

/* "00" "01" ... "99" */
static const char digit_pairs[201] = "00010203040506070809101112131415161718192021222324"
                                     "25262728293031323334353637383940414243444546474849"
                                     "50515253545556575859606162636465666768697071727374"
                                     "75767778798081828384858687888990919293949596979899";

static unsigned count_digits(uint64_t n) {
    unsigned count = 1;
    for (;;) {
        if (n < 10) return count;
        if (n < 100) return count + 1;
        if (n < 1000) return count + 2;
        if (n < 10000) return count + 3;
        n /= 10000;
        count += 4;
    }
}

/* Writes exactly `count` digits. */
static void put_digits(char *out, uint64_t n, unsigned count) {
    char *p = out + count;
    while (n >= 100) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (n % 100), 2);
        n /= 100;
    }
    if (n >= 10) memcpy(p - 2, digit_pairs + 2 * n, 2);
    else p[-1] = (char)('0' + n);
}

size_t number_print_int(int64_t i, char *out) {
    char *p = out;
    uint64_t n = (uint64_t)i;
    if (i < 0) {
        *p++ = '-';
        n = 0 - n;
    }
    unsigned count = count_digits(n);
    put_digits(p, n, count);
    return (size_t)(p - out) + count;
}

typedef struct decimal {
    uint64_t digits;
    int exponent; /* the value is digits * 10^exponent */
} decimal;

/* c * g / 2^128, rounded to odd. g is one unit too large at most; the dropped part counts as zero
 * where only that error can have made it. */
static uint64_t scale(number_power g, uint64_t c) {
    uint64_t low = (uint64_t)(((number_u128)g.lo * c) >> 64);
    number_u128 y = (number_u128)g.hi * c + low;
    return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

/* Which of n and n + 1 (in units of `unit` quarter steps) the interval contains: exactly one, or
 * not. */
static bool only_one_inside(uint64_t n, uint64_t unit, uint64_t lower, uint64_t upper,
                            uint64_t *one) {
    bool down = lower <= unit * n;
    bool up = unit * n + unit <= upper;
    *one = n + up;
    return down != up;
}

static decimal shortest(uint64_t c, int q, bool closer_below) {
    int k = (q * 1262611 - (closer_below ? 524031 : 0)) >> 22;
    int shift = q + number_power_exponent(-k) + 1;
    number_power g = number_power_of_ten(-k);
    if (++g.lo == 0) g.hi++; /* from rounded down to rounded up */

    /* Both ends belong to the interval exactly if c is even, as ties round to even. */
    uint64_t open = c & 1;
    uint64_t lower = scale(g, (4 * c - 2 + closer_below) << shift) + open;
    uint64_t value = scale(g, (4 * c) << shift);
    uint64_t upper = scale(g, (4 * c + 2) << shift) - open;

    uint64_t fine = value / 4;
    uint64_t coarse = fine / 10;
    uint64_t one;
    if (fine >= 10 && only_one_inside(coarse, 40, lower, upper, &one)) {
        return (decimal){ one, k + 1 };
    }
    if (only_one_inside(fine, 4, lower, upper, &one)) return (decimal){ one, k };
    uint64_t middle = 4 * fine + 2;
    bool up = value > middle || (value == middle && (fine & 1));
    return (decimal){ fine + up, k };
}

static decimal strip_zeros(decimal d) {
    static const struct {
        uint32_t power;
        int zeros;
    } steps[] = { { 100000000, 8 }, { 10000, 4 }, { 100, 2 }, { 10, 1 } };
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (d.digits % steps[i].power == 0) {
            d.digits /= steps[i].power;
            d.exponent += steps[i].zeros;
        }
    }
    return d;
}

static decimal to_decimal(uint64_t bits) {
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int biased = (int)(bits >> 52);
    if (biased == 0) return strip_zeros(shortest(fraction, -1074, false));

    uint64_t c = fraction | UINT64_C(1) << 52;
    int q = biased - 1075;
    /* Whole numbers below 2^53 are their own digits. */
    if (q <= 0 && q > -53 && (c & ((UINT64_C(1) << -q) - 1)) == 0) {
        return strip_zeros((decimal){ c >> -q, 0 });
    }
    return strip_zeros(shortest(c, q, fraction == 0 && biased > 1));
}

static char *put_zeros(char *p, int count) {
    memset(p, '0', (size_t)count);
    return p + count;
}

/* 123.0, 1.25, 0.00125 */
static char *layout_plain(char *p, decimal d, int count) {
    if (d.exponent >= 0) {
        put_digits(p, d.digits, (unsigned)count);
        p = put_zeros(p + count, d.exponent);
        memcpy(p, ".0", 2);
        return p + 2;
    }
    int whole = count + d.exponent;
    if (whole > 0) {
        put_digits(p, d.digits, (unsigned)count);
        memmove(p + whole + 1, p + whole, (size_t)(count - whole));
        p[whole] = '.';
        return p + count + 1;
    }
    memcpy(p, "0.", 2);
    p = put_zeros(p + 2, -whole);
    put_digits(p, d.digits, (unsigned)count);
    return p + count;
}

/* 1e23, 1.25e-7 */
static char *layout_exponent(char *p, decimal d, int count) {
    put_digits(p + 1, d.digits, (unsigned)count);
    p[0] = p[1];
    if (count == 1) {
        p++;
    } else {
        p[1] = '.';
        p += count + 1;
    }
    *p++ = 'e';
    return p + number_print_int(d.exponent + count - 1, p);
}

size_t number_print_double(double d, char *out) {
    char *p = out;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    if (bits >> 63) *p++ = '-';
    bits &= ~(UINT64_C(1) << 63);
    assert(bits < UINT64_C(0x7FF) << 52);
    if (bits == 0) {
        memcpy(p, "0.0", 3);
        return (size_t)(p - out) + 3;
    }
    decimal shown = to_decimal(bits);
    int count = (int)count_digits(shown.digits);
    int leading = shown.exponent + count - 1; /* the power of ten of the first digit */
    bool plain = leading >= -6 && leading < 17;
    p = plain ? layout_plain(p, shown, count) : layout_exponent(p, shown, count);
    return (size_t)(p - out);
}
