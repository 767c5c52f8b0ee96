/* floattext.c -- see floattext.h.
 *
 * The C library's printf rounds correctly for every precision, and so does CPython; only its decimal
 * point follows the locale and is put right here. The shortest digits come from value/number.h. */
#include "expr/floattext.h"

#include "value/number.h"

#include <math.h>
#include <stdio.h>

/* ---- Digits and exponent ----------------------------------------------------------------- */

#define DECIMAL_MAX 780 /* significant digits that a double can have are fewer */

/* d is digits[0].digits[1]... times 10^exponent. */
typedef struct decimal {
    char digits[DECIMAL_MAX + 40];
    int count, exponent;
} decimal;

static decimal shortest(double d) {
    char chars[NUMBER_TEXT_MAX];
    size_t n = number_print_double(d, chars), i = 0;
    decimal out = { .count = 0 };
    int point = 0, exponent = 0;
    bool seen = false;
    for (; i < n && chars[i] != 'e' && chars[i] != 'E'; i++) {
        if (chars[i] == '.') seen = true;
        else {
            if (out.count || chars[i] != '0') out.digits[out.count++] = chars[i];
            else if (seen) point--; /* zeroes behind the point, before the first digit */
            if (!seen && out.count) point++;
        }
    }
    if (i < n) {
        bool negative = chars[++i] == '-';
        if (chars[i] == '-' || chars[i] == '+') i++;
        for (; i < n; i++) exponent = exponent * 10 + (chars[i] - '0');
        if (negative) exponent = -exponent;
    }
    while (out.count > 1 && out.digits[out.count - 1] == '0') out.count--;
    if (!out.count) return out.digits[0] = '0', out.count = 1, out.exponent = 0, out;
    out.exponent = point - 1 + exponent;
    return out;
}

/* ---- repr -------------------------------------------------------------------------------- */

static void put_exponent(text_builder *b, int exponent) {
    char chars[16];
    snprintf(chars, sizeof chars, "e%c%02d", exponent < 0 ? '-' : '+',
             exponent < 0 ? -exponent : exponent);
    write_ascii(b, chars);
}

static void put_decimal(text_builder *b, const decimal *d, int limit, bool add_dot,
                        bool alternate) {
    if (d->exponent < -4 || d->exponent >= limit) {
        write_chars(b, d->digits, 1);
        if (d->count > 1 || alternate) write_point(b, '.');
        write_chars(b, d->digits + 1, (size_t)d->count - 1);
        put_exponent(b, d->exponent);
        return;
    }
    if (d->exponent < 0) {
        write_ascii(b, "0.");
        write_fill(b, '0', (size_t)(-d->exponent - 1));
        write_chars(b, d->digits, (size_t)d->count);
        return;
    }
    int whole = d->exponent + 1;
    write_chars(b, d->digits, (size_t)(d->count < whole ? d->count : whole));
    if (d->count < whole) write_fill(b, '0', (size_t)(whole - d->count));
    if (d->count > whole) {
        write_point(b, '.');
        write_chars(b, d->digits + whole, (size_t)(d->count - whole));
    } else if (add_dot || alternate) {
        write_ascii(b, add_dot ? ".0" : ".");
    }
}

size_t float_repr(double d, char out[40]) {
    if (d != d) return strcpy(out, "nan"), 3;
    if (isinf(d)) return strcpy(out, d < 0 ? "-inf" : "inf"), d < 0 ? 4 : 3;
    size_t n = 0;
    if (signbit(d)) out[n++] = '-';
    decimal x = shortest(fabs(d));
    int whole = x.exponent + 1;
    if (x.exponent < -4 || x.exponent >= 16) {
        out[n++] = x.digits[0];
        if (x.count > 1) out[n++] = '.';
        for (int i = 1; i < x.count; i++) out[n++] = x.digits[i];
        return n + (size_t)snprintf(out + n, 8, "e%c%02d", x.exponent < 0 ? '-' : '+',
                                    x.exponent < 0 ? -x.exponent : x.exponent);
    }
    if (whole <= 0) {
        out[n++] = '0', out[n++] = '.';
        for (int i = whole; i < 0; i++) out[n++] = '0';
    }
    for (int i = 0; i < x.count || i < whole; i++) {
        if (i == whole && whole > 0) out[n++] = '.';
        out[n++] = i < x.count ? x.digits[i] : '0';
    }
    if (x.count <= whole) out[n++] = '.', out[n++] = '0';
    out[n] = 0;
    return n;
}

/* ---- With a precision -------------------------------------------------------------------- */

static bool is_plain(char c) { return (c >= '0' && c <= '9') || c == 'e' || c == '+' || c == '-'; }

/* Appends what printf wrote, with a plain decimal point: that of the locale may have several bytes. */
static void put_printed(text_builder *b, const char *chars, size_t size) {
    size_t plain = 0;
    while (plain < size && is_plain(chars[plain])) plain++;
    write_chars(b, chars, plain);
    if (plain == size) return;
    write_point(b, '.');
    while (plain < size && !is_plain(chars[plain])) plain++;
    write_chars(b, chars + plain, size - plain);
}

/* Exactly `count` digits, correctly rounded; trailing zeroes go. */
static decimal rounded(double d, int count) {
    char chars[DECIMAL_MAX + 40];
    decimal out = { .count = 0 };
    if (count > DECIMAL_MAX) count = DECIMAL_MAX;
    snprintf(chars, sizeof chars, "%.*e", count - 1, d);
    const char *at = chars;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') out.digits[out.count++] = *at;
    sscanf(at + 1, "%d", &out.exponent);
    while (out.count > 1 && out.digits[out.count - 1] == '0') out.count--;
    return out;
}

/* No type and a precision: like 'g', but a number with a point in it stays recognisable as a float. */
static void put_general(text_builder *b, double d, int precision, bool alternate) {
    int count = precision > 0 ? precision : 1;
    decimal x = rounded(d, count);
    if (alternate)
        while (x.count < count && x.count < DECIMAL_MAX) x.digits[x.count++] = '0';
    put_decimal(b, &x, count - 1, true, alternate);
}

void float_digits(text_builder *b, double d, char kind, int precision, bool alternate,
                  bool add_dot) {
    if (kind == 'r') {
        decimal x = shortest(d);
        put_decimal(b, &x, 16, add_dot, alternate);
        return;
    }
    if (kind == 'g' && add_dot) {
        put_general(b, d, precision, alternate);
        return;
    }
    char format[16], small[400];
    snprintf(format, sizeof format, "%%%s.*%c", alternate ? "#" : "", kind);
    int size = snprintf(small, sizeof small, format, precision, d);
    if (size < 0) {
        b->w->failure = FAILURE_MEMORY;
        b->failed = true;
        return;
    }
    if ((size_t)size < sizeof small) {
        put_printed(b, small, (size_t)size);
        return;
    }
    char *large = world_alloc(b->w, (size_t)size + 1);
    if (!large) {
        b->failed = true;
        return;
    }
    snprintf(large, (size_t)size + 1, format, precision, d);
    put_printed(b, large, (size_t)size);
    world_free(b->w, large, (size_t)size + 1);
}

/* ---- Reading ----------------------------------------------------------------------------- */

static bool same_word(const char *chars, size_t size, const char *word) {
    if (strlen(word) != size) return false;
    for (size_t i = 0; i < size; i++)
        if ((chars[i] | 32) != word[i]) return false;
    return true;
}

/* The digits at chars[*at], copied without underscores (which stand between two digits). */
static bool take_digits(const char *chars, size_t size, size_t *at, char *out, size_t *n) {
    size_t start = *at;
    while (*at < size) {
        char c = chars[*at];
        if (c == '_') {
            bool between = *at > start && *at + 1 < size && chars[*at - 1] != '_' &&
                           chars[*at + 1] >= '0' && chars[*at + 1] <= '9';
            if (!between) return false;
        } else if (c >= '0' && c <= '9') {
            out[(*n)++] = c;
        } else {
            break;
        }
        ++*at;
    }
    return true;
}

bool float_parse(const char *chars, size_t size, double *out) {
    size_t at = 0, n = 0, whole, before;
    double sign = 1;
    char plain[1200]; /* longer numbers are refused: no float has more than 1,100 digits */
    if (at < size && (chars[at] == '+' || chars[at] == '-')) sign = chars[at++] == '-' ? -1 : 1;
    if (same_word(chars + at, size - at, "inf") || same_word(chars + at, size - at, "infinity"))
        return *out = sign * (double)INFINITY, true;
    if (same_word(chars + at, size - at, "nan")) return *out = copysign((double)NAN, sign), true;
    if (size - at > sizeof plain - 16) return false;
    plain[n++] = '0';
    if (!take_digits(chars, size, &at, plain, &n)) return false;
    whole = n;
    /* JSON's grammar, which number_parse reads, has no leading zeroes. */
    size_t zeroes = 0;
    while (zeroes + 1 < n && plain[zeroes] == '0') zeroes++;
    plain[n++] = '.';
    before = n;
    if (at < size && chars[at] == '.') {
        at++;
        if (!take_digits(chars, size, &at, plain, &n)) return false;
    }
    if (whole == 1 && n == before) return false; /* no digit at all */
    if (n == before) plain[n++] = '0';
    if (at < size && (chars[at] == 'e' || chars[at] == 'E')) {
        at++;
        plain[n++] = 'e';
        if (at < size && (chars[at] == '+' || chars[at] == '-')) plain[n++] = chars[at++];
        before = n;
        if (!take_digits(chars, size, &at, plain, &n) || n == before) return false;
    }
    if (at != size) return false;
    number parsed;
    number_kind kind = number_parse(plain + zeroes, plain + n, &parsed);
    if (kind == NUMBER_DOUBLE_RANGE) return *out = sign * (double)INFINITY, true;
    if (kind != NUMBER_DOUBLE || parsed.end != plain + n) return false;
    *out = sign * parsed.d;
    return true;
}

/* ---- Rounding ---------------------------------------------------------------------------- */

/* 10^-digits is more than |d|: the result is 0 or that power, whichever is nearer; 0 on a tie. */
static double round_to_power(double d, int digits) {
    char half[32];
    double limit;
    int size = snprintf(half, sizeof half, "5e%d", -digits - 1);
    if (!float_parse(half, (size_t)size, &limit) || fabs(d) <= limit) return copysign(0.0, d);
    size = snprintf(half, sizeof half, "1e%d", -digits);
    float_parse(half, (size_t)size, &limit);
    return copysign(limit, d);
}

double float_round(double d, int64_t digits) {
    char chars[400];
    double out;
    int size;
    if (isnan(d) || isinf(d) || d == 0 || digits > 323) return d;
    if (digits < -308) return copysign(0.0, d);
    if (digits >= 0) {
        size = snprintf(chars, sizeof chars, "%.*f", (int)digits, fabs(d));
        if (size >= (int)sizeof chars) return d; /* 300 digits before the point: nothing to round */
    } else {
        int exponent;
        snprintf(chars, sizeof chars, "%.17e", fabs(d));
        sscanf(strchr(chars, 'e') + 1, "%d", &exponent);
        int count = exponent + 1 + (int)digits;
        if (count < 0) return copysign(0.0, d);
        if (count == 0) return round_to_power(d, (int)digits);
        size = snprintf(chars, sizeof chars, "%.*e", count - 1, fabs(d));
    }
    for (int i = 0; i < size; i++)
        if (!(chars[i] >= '0' && chars[i] <= '9') && !strchr("e+-", chars[i])) chars[i] = '.';
    return float_parse(chars, (size_t)size, &out) ? copysign(out, d) : d;
}
