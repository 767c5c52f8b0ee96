/* numbers.c -- see numbers.h. */
#include "expr/numbers.h"

#include "expr/floattext.h"
#include "expr/iter.h"
#include "expr/repr.h"
#include "expr/tuple.h"
#include "expr/unicode.h"

#include <math.h>
#include <stdio.h>

/* ---- Reading ----------------------------------------------------------------------------- */

/* The text in ASCII: digits of all scripts become those of ASCII, spaces of all kinds become ' ', and
 * what else is not ASCII becomes '?'. Spaces at both ends go. */
static size_t plain_text(ev v, char *out, size_t size) {
    const text *t = v.text;
    uint32_t from = 0, to = t->count;
    size_t n = 0;
    while (from < to &&
           (v.kind == EV_STR ? unicode_has(text_at(t, from), UNICODE_SPACE)
                             : strchr(" \t\n\r\f\v", (int)text_at(t, from)) && text_at(t, from)))
        from++;
    while (to > from && (v.kind == EV_STR ? unicode_has(text_at(t, to - 1), UNICODE_SPACE)
                                          : strchr(" \t\n\r\f\v", (int)text_at(t, to - 1)) &&
                                                text_at(t, to - 1)))
        to--;
    if (to - from > size) return SIZE_MAX;
    for (uint32_t i = from; i < to; i++) {
        uint32_t c = text_at(t, i);
        uint32_t digit = c > 127 && v.kind == EV_STR ? unicode_of(c)->decimal : 255;
        out[n++] = digit <= 9 ? (char)('0' + digit) : c < 128 && c ? (char)c : '?';
    }
    return n;
}

static ev refuse_int(world *w, ev v, int64_t base) {
    char shown[900];
    repr_short(w, v, shown, sizeof shown);
    if (raise_is_pending(w)) return ev_fail();
    return raise_f(w, CLASS_ValueError, "invalid literal for int() with base %lld: %s",
                   (long long)base, shown);
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

/* 0x, 0o, 0b: skipped where they fit the base, which becomes theirs where it was 0. */
static void skip_prefix(const char *t, size_t n, size_t *at, int64_t *base, bool *octal) {
    int64_t prefix = 0;
    if (*at + 1 < n && t[*at] == '0') {
        char c = (char)(t[*at + 1] | 32);
        prefix = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    }
    if (prefix && (*base == 0 || *base == prefix)) {
        *base = prefix;
        *at += 2;
        if (*at < n && t[*at] == '_') ++*at;
    } else if (*base == 0) {
        *base = 10;
        *octal = *at < n && t[*at] == '0'; /* 010 is refused, 00 is not */
    }
}

ev int_of_text(world *w, ev v, int64_t base) {
    char t[8192];
    int64_t given = base;
    size_t n = plain_text(v, t, sizeof t), at = 0, digits = 0;
    bool negative = false, octal = false, over = false, nonzero = false;
    arith_i128 value = 0;
    if (n == SIZE_MAX) return raise_int_overflow(w);
    if (at < n && (t[at] == '+' || t[at] == '-')) negative = t[at++] == '-';
    skip_prefix(t, n, &at, &base, &octal);
    for (; at < n; at++) {
        if (t[at] == '_' && digits && t[at - 1] != '_' && at + 1 < n) continue;
        int d = digit_of(t[at]);
        if (d >= base) return refuse_int(w, v, given);
        value = value * base + d;
        nonzero |= d != 0;
        over |= value > (arith_i128)INT64_MAX + 1;
        if (over) value = 0;
        digits++;
    }
    if (!digits || t[n - 1] == '_' || (octal && nonzero)) return refuse_int(w, v, given);
    return over ? raise_int_overflow(w) : arith_int(w, negative ? -value : value);
}

ev float_of_text(world *w, ev v) {
    char t[1500], shown[900];
    double d;
    size_t n = plain_text(v, t, sizeof t);
    if (n != SIZE_MAX && float_parse(t, n, &d)) return ev_float(d);
    repr_short(w, v, shown, sizeof shown);
    if (raise_is_pending(w)) return ev_fail();
    return raise_f(w, CLASS_ValueError, "could not convert string to float: %s", shown);
}

/* ---- Rounding ---------------------------------------------------------------------------- */

static ev round_int(world *w, int64_t i, int64_t digits) {
    arith_i128 unit = 1;
    if (digits >= 0) return ev_int(i);
    if (digits < -20) return ev_int(0);
    for (; digits < 0; digits++) unit *= 10;
    arith_i128 q = i / unit, r = i % unit;
    if (r < 0) r += unit, q -= 1; /* toward minus infinity */
    if (2 * r > unit || (2 * r == unit && q & 1)) q++;
    return arith_int(w, q * unit);
}

ev number_round(world *w, ev v, ev digits) {
    int64_t n = 0;
    bool whole = !arg_given(digits) || digits.kind == EV_NONE;
    if (!whole && !arg_int(w, digits, &n)) return ev_fail();
    if (v.kind != EV_FLOAT) return whole ? ev_int(v.i) : round_int(w, v.i, n);
    if (whole) return arith_int_of_float(w, isinf(v.d) || isnan(v.d) ? v.d : rint(v.d));
    double d = float_round(v.d, n);
    if (isinf(d) && !isinf(v.d))
        return raise_f(w, CLASS_OverflowError, "rounded value too large to represent");
    return ev_float(d);
}

/* ---- Methods of int ---------------------------------------------------------------------- */

static uint64_t magnitude(int64_t i) { return i < 0 ? -(uint64_t)i : (uint64_t)i; }

static ev int_bit_length(world *w, ev self, const ev *a, const call *c) {
    uint64_t m = magnitude(self.i);
    (void)w, (void)a, (void)c;
    return ev_int(m ? 64 - __builtin_clzll(m) : 0);
}

static ev int_bit_count(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    return ev_int(__builtin_popcountll(magnitude(self.i)));
}

static ev int_conjugate(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    return ev_int(self.i);
}

static ev int_ratio(world *w, ev self, const ev *a, const call *c) {
    (void)a, (void)c;
    return tuple_pair(w, ev_int(self.i), ev_int(1));
}

/* 1: big, 0: little, -1: refused. */
static int byte_order(world *w, ev v, const char *method) {
    if (!arg_given(v)) return 1;
    if (v.kind != EV_STR) {
        raise_f(w, CLASS_TypeError, "%s() argument 'byteorder' must be str, not %s", method,
                v.kind == EV_NONE ? "None" : type_name(w, v));
        return -1;
    }
    if (text_is(v.text, "little")) return 0;
    if (text_is(v.text, "big")) return 1;
    raise_f(w, CLASS_ValueError, "byteorder must be either 'little' or 'big'");
    return -1;
}

static bool fits_bytes(int64_t i, int64_t length, bool sign) {
    if (length >= 8) return true;
    if (!sign) return length == 0 ? i == 0 : (uint64_t)i >> (length * 8) == 0;
    if (length == 0) return i == 0 || i == -1; /* as CPython has it */
    int64_t limit = INT64_C(1) << (length * 8 - 1);
    return i >= -limit && i < limit;
}

static ev int_to_bytes(world *w, ev self, const ev *a, const call *c) {
    int64_t length;
    ev sign_arg = call_named(c, "signed");
    if (c->count > 2)
        return raise_f(w, CLASS_TypeError,
                       "to_bytes() takes at most 2 positional arguments (%u given)", c->count);
    if (!arg_size(w, a[0], 1, &length)) return ev_fail();
    int big = byte_order(w, a[1], "to_bytes");
    if (big < 0) return ev_fail();
    int sign = arg_given(sign_arg) ? ev_truth(w, sign_arg) : 0;
    if (sign < 0) return ev_fail();
    if (length < 0) return raise_f(w, CLASS_ValueError, "length argument must be non-negative");
    if (self.i < 0 && !sign)
        return raise_f(w, CLASS_OverflowError, "can't convert negative int to unsigned");
    if (!fits_bytes(self.i, length, sign))
        return raise_f(w, CLASS_OverflowError, "int too big to convert");
    if (length > (int64_t)w->limits.bytes) return w->failure = FAILURE_MEMORY, ev_fail();
    text_builder b = write_text(w);
    for (int64_t k = 0; k < length && !b.failed; k++) {
        int64_t at = big ? length - 1 - k : k;
        write_point(&b, at >= 8 ? (self.i < 0 ? 255 : 0)
                                : (uint32_t)((uint64_t)self.i >> (at * 8) & 255));
    }
    return write_bytes(&b);
}

ev bytes_of_items(world *w, ev v) {
    ev all = iter_list(w, v);
    if (ev_failed(all)) return all;
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < all.list->count; i++) {
        int64_t byte = 0;
        bool good = arg_int(w, all.list->items[i], &byte);
        if (good && byte >= 0 && byte < 256) {
            write_point(&b, (uint32_t)byte);
            continue;
        }
        write_drop(&b);
        return good ? raise_f(w, CLASS_ValueError, "bytes must be in range(0, 256)") : ev_fail();
    }
    return write_bytes(&b);
}

/* The bytes of what bytes() would take, except ints and strs. */
static ev bytes_argument(world *w, ev v) {
    if (v.kind == EV_BYTES) return v;
    if (!ev_is_obj(v) || v.kind == EV_STR || v.kind == EV_RECORD || v.kind == EV_EXC ||
        v.kind == EV_ENUM)
        return raise_f(w, CLASS_TypeError, "cannot convert '%s' object to bytes", type_name(w, v));
    return bytes_of_items(w, v);
}

static ev int_from_bytes(world *w, ev self, const ev *a, const call *c) {
    ev sign_arg = call_named(c, "signed");
    if (c->count > 2)
        return raise_f(w, CLASS_TypeError,
                       "from_bytes() takes at most 2 positional arguments (%u given)", c->count);
    int big = byte_order(w, a[1], "from_bytes");
    if (big < 0) return ev_fail();
    int sign = arg_given(sign_arg) ? ev_truth(w, sign_arg) : 0;
    if (sign < 0) return ev_fail();
    ev bytes = bytes_argument(w, a[0]);
    if (ev_failed(bytes)) return bytes;
    uint32_t n = bytes.text->count;
    const uint8_t *data = text_narrow(bytes.text);
    bool negative = sign && n && data[big ? 0 : n - 1] & 128;
    arith_i128 value = negative ? -1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        value = value * 256 + data[big ? i : n - 1 - i];
        if (value > ((arith_i128)1 << 100) || value < -((arith_i128)1 << 100))
            return raise_int_overflow(w);
    }
    /* A method of the class: of bool it makes a bool. */
    bool of_bool = self.kind == EV_BOOL || (self.kind == EV_TYPE && self.i == CLASS_bool);
    return of_bool ? ev_bool(value != 0) : arith_int(w, value);
}

const function int_methods[] = {
    FUNCTION_NONE("as_integer_ratio", int_ratio),
    FUNCTION_NONE("bit_count", int_bit_count),
    FUNCTION_NONE("bit_length", int_bit_length),
    FUNCTION_NONE("conjugate", int_conjugate),
    { "from_bytes", int_from_bytes, CALL_KEYWORDS, 1, 3, 0, { "bytes", "byteorder", "signed" } },
    { "to_bytes", int_to_bytes, CALL_KEYWORDS, 0, 3, 0, { "length", "byteorder", "signed" } },
    FUNCTION_END,
};

/* ---- Methods of float -------------------------------------------------------------------- */

static ev float_is_integer(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    return ev_bool(isfinite(self.d) && self.d == floor(self.d));
}

static ev float_conjugate(world *w, ev self, const ev *a, const call *c) {
    (void)w, (void)a, (void)c;
    return self;
}

static ev float_ratio(world *w, ev self, const ev *a, const call *c) {
    int exponent;
    (void)a, (void)c;
    if (isinf(self.d))
        return raise_f(w, CLASS_OverflowError, "cannot convert Infinity to integer ratio");
    if (isnan(self.d)) return raise_f(w, CLASS_ValueError, "cannot convert NaN to integer ratio");
    double m = frexp(self.d, &exponent);
    for (int i = 0; i < 300 && m != floor(m); i++) m *= 2, exponent--;
    if (exponent < -62) return raise_int_overflow(w); /* the denominator */
    if (exponent > 0) m = ldexp(m, exponent), exponent = 0;
    ev top = arith_int_of_float(w, m);
    return ev_failed(top) ? top : tuple_pair(w, top, ev_int(INT64_C(1) << -exponent));
}

static ev float_hex(world *w, ev self, const ev *a, const call *c) {
    char out[64];
    int exponent, n;
    (void)a, (void)c;
    if (isnan(self.d) || isinf(self.d)) return ev_repr(w, self);
    double m = frexp(fabs(self.d), &exponent);
    const char *sign = signbit(self.d) ? "-" : "";
    if (m == 0) return text_of_ascii(w, signbit(self.d) ? "-0x0.0p+0" : "0x0.0p+0");
    int shift =
        1 - (exponent < -1021 ? -1021 - exponent : 0); /* subnormals keep the exponent -1022 */
    m = ldexp(m, shift);
    exponent -= shift;
    uint64_t digits = (uint64_t)ldexp(m - floor(m), 52);
    n = snprintf(out, sizeof out, "%s0x%d.%013llxp%+d", sign, (int)m, (unsigned long long)digits,
                 exponent);
    return text_of_utf8(w, out, (size_t)n);
}

/* A hexadecimal number: mantissa times 2^exponent; the lowest bit of the mantissa is sticky. */
typedef struct hex_number {
    uint64_t mantissa;
    int64_t exponent;
} hex_number;

static bool read_hex_digits(const char *t, size_t n, size_t *at, hex_number *h) {
    bool point = false, some = false;
    for (; *at < n; ++*at) {
        if (t[*at] == '.' && !point) {
            point = true;
            continue;
        }
        int d = digit_of(t[*at]);
        if (d > 15) break;
        some = true;
        if (h->mantissa >> 59) {
            h->mantissa |= d != 0;
            h->exponent += point ? 0 : 4;
        } else {
            h->mantissa = h->mantissa << 4 | (uint64_t)d;
            h->exponent -= point ? 4 : 0;
        }
    }
    return some;
}

static bool read_hex(const char *t, size_t n, hex_number *h) {
    size_t at = 0;
    *h = (hex_number){ 0 };
    if (at + 1 < n && t[at] == '0' && (t[at + 1] | 32) == 'x') at += 2;
    if (!read_hex_digits(t, n, &at, h)) return false;
    if (at == n) return true;
    if ((t[at++] | 32) != 'p') return false;
    bool negative = at < n && t[at] == '-';
    if (at < n && (t[at] == '-' || t[at] == '+')) at++;
    if (at == n) return false;
    int64_t e = 0;
    for (; at < n && t[at] >= '0' && t[at] <= '9'; at++)
        if (e < 1000000) e = e * 10 + (t[at] - '0');
    h->exponent += negative ? -e : e;
    return at == n;
}

/* Rounds once, to even, to as many bits as a double has at that size. */
static double double_of_hex(hex_number h) {
    if (!h.mantissa) return 0;
    int bits = 64 - __builtin_clzll(h.mantissa);
    int64_t top = h.exponent + bits - 1, keep = top < -1022 ? top + 1075 : 53;
    if (keep < 0 || top < -1100) return 0;
    int64_t cut = bits - keep;
    if (cut > 0) {
        uint64_t half = cut > 63 ? UINT64_C(1) << 63 : UINT64_C(1) << (cut - 1);
        uint64_t rest = cut > 63 ? h.mantissa : h.mantissa & ((half << 1) - 1);
        h.mantissa = cut > 63 ? 0 : h.mantissa >> cut;
        h.mantissa += rest > half || (rest == half && h.mantissa & 1);
        h.exponent += cut;
    }
    return h.exponent > 2000 ? (double)INFINITY : ldexp((double)h.mantissa, (int)h.exponent);
}

static ev float_fromhex(world *w, ev self, const ev *a, const call *c) {
    char t[1500];
    hex_number h;
    (void)self, (void)c;
    if (a[0].kind != EV_STR)
        return raise_about(w, a[0], "bad argument type for built-in operation");
    size_t n = plain_text(a[0], t, sizeof t), at = 0;
    if (n == SIZE_MAX) n = 0;
    double sign = n && t[0] == '-' ? -1 : 1, d;
    if (n && (t[0] == '-' || t[0] == '+')) at++;
    bool word = at < n && strchr("iInN", t[at]) != NULL;
    if (word && float_parse(t + at, n - at, &d)) return ev_float(sign * d);
    if (word || !read_hex(t + at, n - at, &h))
        return raise_f(w, CLASS_ValueError, "invalid hexadecimal floating-point string");
    d = double_of_hex(h);
    if (isinf(d))
        return raise_f(w, CLASS_OverflowError,
                       "hexadecimal value too large to represent as a float");
    return ev_float(sign * d);
}

const function float_methods[] = {
    FUNCTION_NONE("as_integer_ratio", float_ratio), FUNCTION_NONE("conjugate", float_conjugate),
    FUNCTION_ONE("fromhex", float_fromhex),         FUNCTION_NONE("hex", float_hex),
    FUNCTION_NONE("is_integer", float_is_integer),  FUNCTION_END,
};
