/* number_parse.c -- text to integers and correctly rounded doubles.
 *
 * A decimal w * 10^q is turned into a double in three ways, the cheapest that is certain:
 *
 *   1. w and 10^|q| are both exact doubles: one division or multiplication rounds once.
 *   2. Multiply w by the 128-bit power of ten. That gives a lower and an upper bound of the true
 *      value; if both round to the same double, that is it. This decides all but about one in a
 *      billion.
 *   3. Otherwise the bounds round to neighbours. Compare the text with the midpoint between them,
 *      exactly, in big integers.
 *
 * Only the third looks at digits after the nineteenth. */
#include "value/number.h"
#include "value/number_powers.h"

#include <float.h>
#include <string.h>

/* ---- Big integers, for the exact comparison ---------------------------------------------- */

/* A midpoint between doubles has at most 768 significant digits; what follows the digits we keep
 * can only break a tie. */
#define BIG_DIGITS_MAX 780
/* Both sides of the comparison stay below 10^780 * 2^1200, or 5^1130 * 2^60: under 3,800 bits. */
#define BIG_LIMBS 64

typedef struct big {
    uint32_t count;            /* limbs in use; the top one is not zero */
    uint64_t limbs[BIG_LIMBS]; /* least significant first */
} big;

static void big_multiply_add(big *b, uint64_t factor, uint64_t add) {
    for (uint32_t i = 0; i < b->count; i++) {
        number_u128 product = (number_u128)b->limbs[i] * factor + add;
        b->limbs[i] = (uint64_t)product;
        add = (uint64_t)(product >> 64);
    }
    if (add) {
        assert(b->count < BIG_LIMBS);
        b->limbs[b->count++] = add;
    }
}

static void big_multiply_power_of_5(big *b, int exponent) {
    const uint64_t five_to_27 = UINT64_C(7450580596923828125);
    for (; exponent >= 27; exponent -= 27) big_multiply_add(b, five_to_27, 0);
    uint64_t rest = 1;
    for (; exponent > 0; exponent--) rest *= 5;
    big_multiply_add(b, rest, 0);
}

static void big_shift_left(big *b, int bits) {
    if (bits % 64) big_multiply_add(b, UINT64_C(1) << (bits % 64), 0);
    uint32_t limbs = (uint32_t)bits / 64;
    assert(b->count + limbs <= BIG_LIMBS);
    memmove(b->limbs + limbs, b->limbs, b->count * sizeof *b->limbs);
    memset(b->limbs, 0, limbs * sizeof *b->limbs);
    b->count += limbs;
}

static int big_compare(const big *a, const big *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (uint32_t i = a->count; i-- > 0;) {
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    }
    return 0;
}

/* ---- A number's parts -------------------------------------------------------------------- */

typedef struct decimal {
    uint64_t digits;  /* the first 19 significant digits */
    int64_t exponent; /* of ten, that goes with `digits` */
    bool more;        /* digits other than 0 were left out */
    const char *text; /* the digits, perhaps with a point among them */
    const char *end;  /* after the last digit */
    int64_t written;  /* the exponent as written after the `e` */
} decimal;

static bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* The digits of a number once more, without its point. */
typedef struct digit_walk {
    const char *p, *end;
    bool behind_point; /* the last digit was */
} digit_walk;

static bool next_digit(digit_walk *w, unsigned *digit) {
    if (w->p < w->end && *w->p == '.') {
        w->behind_point = true;
        w->p++;
    }
    if (w->p == w->end) return false;
    *digit = (unsigned)(*w->p++ - '0');
    return true;
}

/* The significant digits, as many as can matter, into b. Returns the exponent of ten that goes with
 * b; *more says that digits other than 0 were left out. */
static int64_t big_of_digits(const decimal *d, big *b, bool *more) {
    digit_walk w = { d->text, d->end, false };
    int64_t exponent = d->written;
    unsigned kept = 0, digit;
    *more = false;
    b->count = 0;
    while (next_digit(&w, &digit)) {
        if (kept == 0 && digit == 0) {
            exponent -= w.behind_point;
        } else if (kept < BIG_DIGITS_MAX) {
            big_multiply_add(b, 10, digit);
            kept++;
            exponent -= w.behind_point;
        } else {
            *more |= digit != 0;
            exponent += !w.behind_point;
        }
    }
    return exponent;
}

/* ---- Rounding ---------------------------------------------------------------------------- */

#define DOUBLE_INFINITY_BITS (UINT64_C(0x7FF) << 52)

/* The bits of the double nearest to (top + something below one unit if sticky) * 2^exponent; top
 * has its highest bit set. Too large gives the bits of infinity. */
static uint64_t round_bits(uint64_t top, bool sticky, int exponent) {
    int biased = exponent + 63 + 1023;
    if (biased >= 2047) return DOUBLE_INFINITY_BITS;
    int drop = 11;
    if (biased <= 0) { /* subnormal: fewer bits, no hidden one */
        drop += 1 - biased;
        biased = 0;
        if (drop > 64) return 0;
    }
    uint64_t kept = drop == 64 ? 0 : top >> drop;
    uint64_t half = UINT64_C(1) << (drop - 1);
    uint64_t rest = top & (half | (half - 1));
    bool up = rest > half || (rest == half && (sticky || (kept & 1)));
    /* Adding, rather than or-ing, lets a carry out of the fraction step into the exponent. */
    uint64_t hidden = biased ? UINT64_C(1) << 52 : 0;
    return ((uint64_t)biased << 52) + (kept - hidden) + up;
}

static double double_of_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Is the decimal above (1), below (-1) or at (0) the midpoint between the double `bits` and the
 * next one up? */
static int compare_with_midpoint(const decimal *d, uint64_t bits) {
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int biased = (int)(bits >> 52);
    uint64_t c = biased ? fraction | UINT64_C(1) << 52 : fraction;
    int two = (biased ? biased : 1) - 1075 - 1; /* midpoint = (2c + 1) * 2^two */

    big left, right = { .count = 1, .limbs = { 2 * c + 1 } };
    bool more;
    int ten = (int)big_of_digits(d, &left, &more);
    big_multiply_power_of_5(ten >= 0 ? &left : &right, ten >= 0 ? ten : -ten);
    int shift = ten - two; /* the powers of two that the left side has more */
    big_shift_left(shift >= 0 ? &left : &right, shift >= 0 ? shift : -shift);
    int order = big_compare(&left, &right);
    return order == 0 && more ? 1 : order;
}

/* The product of digits and a power of ten, in 192 bits with the highest one set. */
typedef struct product {
    uint64_t top, middle, low;
} product;

static product multiply(uint64_t digits, number_power g) {
    number_u128 low = (number_u128)digits * g.lo;
    number_u128 high = (number_u128)digits * g.hi + (uint64_t)(low >> 64);
    return (product){ (uint64_t)(high >> 64), (uint64_t)high, (uint64_t)low };
}

/* Cannot overflow: the product of 64 and 128 bits leaves room for one more of 64. */
static void product_add(product *p, uint64_t add) {
    number_u128 sum = (number_u128)p->low + add;
    p->low = (uint64_t)sum;
    sum = (sum >> 64) + p->middle;
    p->middle = (uint64_t)sum;
    p->top += (uint64_t)(sum >> 64);
}

static uint64_t round_product(product p, int exponent) {
    bool sticky = (p.middle | p.low) != 0;
    if (p.top >> 63) return round_bits(p.top, sticky, exponent);
    uint64_t top = p.top << 1 | p.middle >> 63;
    return round_bits(top, (p.middle << 1 | p.low) != 0, exponent - 1);
}

/* The bits of d's magnitude. */
static uint64_t bits_of_decimal(const decimal *d) {
    if (d->digits == 0 || d->exponent < NUMBER_POWER_MIN) return 0;
    if (d->exponent > 308) return DOUBLE_INFINITY_BITS;
    int ten = (int)d->exponent;
    int leading = __builtin_clzll(d->digits);
    uint64_t w = d->digits << leading;
    number_power g = number_power_of_ten(ten);

    /* value = w * 2^-leading * g * 2^(number_power_exponent - 127), and the product's top word
     * counts in units of 2^128. */
    int exponent = number_power_exponent(ten) - 127 - leading + 128;
    product lower = multiply(w, g);
    uint64_t w_upper = (d->digits + d->more) << leading; /* 0 when it needs a 65th bit */
    product upper = multiply(w_upper, g);
    if (!number_power_is_exact(ten)) product_add(&upper, w_upper);

    uint64_t down = round_product(lower, exponent);
    if (w_upper && down == round_product(upper, exponent)) return down;
    int order = compare_with_midpoint(d, down);
    return down + (order > 0 || (order == 0 && (down & 1)));
}

static bool double_of_decimal(const decimal *d, bool negative, double *out) {
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (FLT_EVAL_METHOD == 0 && d->digits <= UINT64_C(1) << 53 && !d->more && d->exponent >= -22 &&
        d->exponent <= 22) {
        double x = (double)d->digits;
        x = d->exponent < 0 ? x / powers[-d->exponent] : x * powers[d->exponent];
        *out = negative ? -x : x;
        return true;
    }
    uint64_t bits = bits_of_decimal(d);
    *out = double_of_bits(bits | (uint64_t)negative << 63);
    return bits != DOUBLE_INFINITY_BITS;
}

/* ---- Grammar ----------------------------------------------------------------------------- */

/* More than nineteen digits: leading zeros do not count, and what is beyond nineteen is left out. */
static void take_first_digits(decimal *d) {
    digit_walk w = { d->text, d->end, false };
    unsigned kept = 0, digit;
    d->digits = 0;
    d->exponent = d->written;
    while (next_digit(&w, &digit)) {
        if (kept < 19) {
            d->digits = d->digits * 10 + digit;
            kept += d->digits != 0;
            d->exponent -= w.behind_point;
        } else {
            d->more |= digit != 0;
            d->exponent += !w.behind_point;
        }
    }
}

/* The digits of an exponent, saturating far beyond what any double has. */
static const char *scan_exponent(const char *p, const char *limit, int64_t *out) {
    bool negative = false;
    if (p < limit && (*p == '+' || *p == '-')) negative = *p++ == '-';
    const char *digits = p;
    int64_t e = 0;
    for (; p < limit && is_digit(*p); p++) {
        if (e < INT64_C(1) << 40) e = e * 10 + (*p - '0');
    }
    *out = negative ? -e : e;
    return p == digits ? NULL : p;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* How many of the eight bytes of x are digits, from the first on; *value is their number. The digits
 * are moved to the end, as if zeros stood before them, and then joined to pairs, fours and eight. */
static unsigned eight_digits(uint64_t x, uint64_t *value) {
    x ^= EACH('0');
    uint64_t other = ((x + EACH(0x76)) | x) & EACH(0x80); /* the lowest mark is exact */
    unsigned count = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    if (count == 0) return 0;
    x <<= 64 - 8 * count;
    x = ((x * (10 * 256 + 1)) >> 8) & UINT64_C(0x00FF00FF00FF00FF);
    x = ((x * (100 * 65536 + 1)) >> 16) & UINT64_C(0x0000FFFF0000FFFF);
    *value = (x * (10000 * (UINT64_C(1) << 32) + 1)) >> 32;
    return count;
}

/* Eight bytes at a time: the end of a number is hard to predict, and is met once per step here. */
static const char *scan_digits(const char *p, const char *limit, uint64_t *digits) {
    static const uint32_t powers[] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000
    };
    while (limit - p >= 8) {
        uint64_t x, value = 0;
        memcpy(&x, p, sizeof x);
        unsigned count = eight_digits(x, &value);
        *digits = *digits * powers[count] + value; /* means nothing after more than nineteen */
        p += count;
        if (count < 8) return p;
    }
    for (; p < limit && is_digit(*p); p++) *digits = *digits * 10 + (uint64_t)(*p - '0');
    return p;
}

#else

static const char *scan_digits(const char *p, const char *limit, uint64_t *digits) {
    for (; p < limit && is_digit(*p); p++) *digits = *digits * 10 + (uint64_t)(*p - '0');
    return p;
}

#endif

static number_kind finish_int(const char *text, bool negative, uint64_t n, number *out) {
    int64_t digits = out->end - text;
    uint64_t most = (uint64_t)INT64_MAX + negative;
    if (digits > 19 || n > most) return NUMBER_INT_RANGE;
    if (n == 0 && negative) {
        out->d = -0.0;
        return NUMBER_DOUBLE;
    }
    out->i = (int64_t)(negative ? 0 - n : n);
    return NUMBER_INT;
}

static number_kind malformed(const char *at, number *out) {
    out->end = at;
    return NUMBER_MALFORMED;
}

/* From the point or the `e` on. */
static number_kind finish_double(const char *p, const char *limit, bool negative, decimal *d,
                                 number *out) {
    int64_t behind_point = 0;
    if (*p == '.') {
        const char *fraction = ++p;
        p = scan_digits(p, limit, &d->digits);
        behind_point = p - fraction;
        if (behind_point == 0) return malformed(p, out);
    }
    d->end = p;
    if (p < limit && (*p | 0x20) == 'e') {
        const char *exponent = p + 1;
        p = scan_exponent(exponent, limit, &d->written);
        if (!p) {
            bool sign = exponent < limit && (*exponent == '+' || *exponent == '-');
            return malformed(exponent + sign, out);
        }
    }
    out->end = p;
    d->exponent = d->written - behind_point;
    if (d->end - d->text > 19) take_first_digits(d);
    return double_of_decimal(d, negative, &out->d) ? NUMBER_DOUBLE : NUMBER_DOUBLE_RANGE;
}

number_kind number_parse(const char *text, const char *limit, number *out) {
    const char *p = text;
    bool negative = p < limit && *p == '-';
    p += negative;
    decimal d = { .text = p };
    p = scan_digits(p, limit, &d.digits);
    if (p == d.text) return malformed(p, out);
    if (*d.text == '0' && p - d.text > 1) return malformed(d.text + 1, out);
    if (p < limit && (*p == '.' || (*p | 0x20) == 'e')) {
        return finish_double(p, limit, negative, &d, out);
    }
    out->end = p;
    return finish_int(d.text, negative, d.digits, out);
}
