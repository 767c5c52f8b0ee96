/* arith.c -- see arith.h. */
#include "expr/arith.h"

#include "expr/text.h"
#include "expr/tuple.h"

#include <math.h>

static double as_double(ev v) { return v.kind == EV_FLOAT ? v.d : (double)v.i; }

static ev raise_zero(world *w, const char *message) {
    return raise_f(w, CLASS_ZeroDivisionError, "%s", message);
}

/* ---- Integers ---------------------------------------------------------------------------- */

static ev floor_div(world *w, int64_t a, int64_t b) {
    if (b == 0) return raise_zero(w, "integer division or modulo by zero");
    if (b == -1) return a == INT64_MIN ? raise_int_overflow(w) : ev_int(-a);
    int64_t q = a / b, r = a % b;
    return ev_int(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
}

static ev floor_mod(world *w, int64_t a, int64_t b) {
    if (b == 0) return raise_zero(w, "integer modulo by zero");
    if (b == -1) return ev_int(0);
    int64_t r = a % b;
    return ev_int(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}

static uint64_t magnitude(int64_t i) { return i < 0 ? -(uint64_t)i : (uint64_t)i; }

/* a / b correctly rounded: where both are exact as doubles the machine does it; else the quotient is
 * taken to 64 bits or more with a sticky bit below, and rounded once. */
static double divide_ints(int64_t a, int64_t b) {
    const uint64_t exact = UINT64_C(1) << 53;
    uint64_t x = magnitude(a), y = magnitude(b);
    if (x <= exact && y <= exact) return (double)a / (double)b;
    int up = __builtin_clzll(x | 1) + 63; /* x << up has its top bit at 126 */
    arith_u128 wide = (arith_u128)x << up, q = wide / y, rest = wide % y;
    int shift = 0;
    while (q >> 62) q = q >> 1 | (q & 1), shift++; /* 62 bits, the lowest of them sticky */
    double d = ldexp((double)(int64_t)((uint64_t)q | (rest != 0)), shift - up);
    return (a < 0) != (b < 0) ? -d : d;
}

static ev int_pow(world *w, int64_t base, int64_t exponent) {
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0) return raise_zero(w, "0.0 cannot be raised to a negative power");
        return ev_float(pow((double)base, (double)exponent));
    }
    for (;;) {
        if (exponent & 1 && __builtin_mul_overflow(result, base, &result))
            return raise_int_overflow(w);
        if (!(exponent >>= 1)) return ev_int(result);
        /* A base whose square does not fit is needed again, or the loop had ended. */
        if (__builtin_mul_overflow(base, base, &base)) return raise_int_overflow(w);
    }
}

static ev shift_left(world *w, int64_t a, int64_t b) {
    if (b < 0) return raise_f(w, CLASS_ValueError, "negative shift count");
    if (a == 0) return ev_int(0);
    if (b > 63) return raise_int_overflow(w);
    return arith_int(w, (arith_i128)a * ((arith_i128)1 << b));
}

static ev shift_right(world *w, int64_t a, int64_t b) {
    if (b < 0) return raise_f(w, CLASS_ValueError, "negative shift count");
    return ev_int(b > 63 ? (a < 0 ? -1 : 0) : a >> b);
}

static ev int_binary(world *w, binary_op op, int64_t a, int64_t b) {
    int64_t r;
    switch (op) {
    case BINARY_ADD: return __builtin_add_overflow(a, b, &r) ? raise_int_overflow(w) : ev_int(r);
    case BINARY_SUB: return __builtin_sub_overflow(a, b, &r) ? raise_int_overflow(w) : ev_int(r);
    case BINARY_MUL: return __builtin_mul_overflow(a, b, &r) ? raise_int_overflow(w) : ev_int(r);
    case BINARY_DIV: return b ? ev_float(divide_ints(a, b)) : raise_zero(w, "division by zero");
    case BINARY_FLOOR: return floor_div(w, a, b);
    case BINARY_MOD: return floor_mod(w, a, b);
    case BINARY_POW: return int_pow(w, a, b);
    case BINARY_LSHIFT: return shift_left(w, a, b);
    case BINARY_RSHIFT: return shift_right(w, a, b);
    case BINARY_AND: return ev_int(a & b);
    case BINARY_OR: return ev_int(a | b);
    default: return ev_int(a ^ b);
    }
}

ev arith_pow_mod(world *w, int64_t base, int64_t exponent, int64_t modulus) {
    if (modulus == 0) return raise_f(w, CLASS_ValueError, "pow() 3rd argument cannot be 0");
    uint64_t m = magnitude(modulus);
    uint64_t b = (uint64_t)(((arith_i128)base % (arith_i128)m + (arith_i128)m) % (arith_i128)m);
    if (exponent < 0) {
        /* The inverse of the base, by Euclid's algorithm. */
        arith_i128 r0 = m, r1 = b, t0 = 0, t1 = 1;
        while (r1) {
            arith_i128 q = r0 / r1, r2 = r0 - q * r1, t2 = t0 - q * t1;
            r0 = r1, r1 = r2, t0 = t1, t1 = t2;
        }
        if (r0 != 1)
            return raise_f(w, CLASS_ValueError, "base is not invertible for the given modulus");
        b = (uint64_t)((t0 % (arith_i128)m + (arith_i128)m) % (arith_i128)m);
    }
    uint64_t e = magnitude(exponent), result = 1 % m;
    for (; e; e >>= 1) {
        if (e & 1) result = (uint64_t)((arith_u128)result * b % m);
        b = (uint64_t)((arith_u128)b * b % m);
    }
    arith_i128 signed_result =
        modulus < 0 && result ? (arith_i128)result - (arith_i128)m : (arith_i128)result;
    return arith_int(w, signed_result);
}

/* ---- Floats ------------------------------------------------------------------------------ */

/* CPython's _float_div_mod. */
bool arith_divmod_float(world *w, double a, double b, const char *what, double *quotient,
                        double *remainder) {
    if (b == 0) {
        raise_zero(w, what);
        return false;
    }
    double mod = fmod(a, b), div = (a - mod) / b, floored;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) mod += b, div -= 1.0;
    } else {
        mod = copysign(0.0, b);
    }
    if (div != 0) {
        floored = floor(div);
        if (div - floored > 0.5) floored += 1.0;
    } else {
        floored = copysign(0.0, a / b);
    }
    *quotient = floored;
    *remainder = mod;
    return true;
}

static ev float_mod(world *w, double a, double b) {
    if (b == 0) return raise_zero(w, "float modulo");
    double mod = fmod(a, b);
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) mod += b;
    } else {
        mod = copysign(0.0, b);
    }
    return ev_float(mod);
}

/* CPython's float_pow, its special cases in its order. */
static ev float_pow(world *w, double x, double y) {
    if (y == 0 || x == 1.0) return ev_float(1.0);
    if (isnan(x)) return ev_float(x);
    if (isnan(y)) return ev_float(y);
    if (isinf(y)) {
        double size = fabs(x);
        if (size == 1.0) return ev_float(1.0);
        return ev_float((y > 0) == (size > 1.0) ? fabs(y) : 0.0);
    }
    bool odd = fmod(fabs(y), 2.0) == 1.0;
    if (isinf(x)) {
        if (y > 0) return ev_float(odd ? x : fabs(x));
        return ev_float(odd ? copysign(0.0, x) : 0.0);
    }
    if (x == 0) {
        if (y < 0) return raise_zero(w, "0.0 cannot be raised to a negative power");
        return ev_float(odd ? x : 0.0);
    }
    bool negate = false;
    if (x < 0) {
        if (y != floor(y))
            return raise_f(w, CLASS_Unsupported,
                           "complex numbers: a negative number to a fractional power");
        x = -x;
        negate = odd;
    }
    if (x == 1.0) return ev_float(negate ? -1.0 : 1.0);
    double r = pow(x, y);
    if (isinf(r)) {
        ev args = tuple_pair(w, ev_int(34), text_of_ascii(w, "Numerical result out of range"));
        return ev_failed(args) ? args : raise_exc(w, exc_new(w, CLASS_OverflowError, args));
    }
    return ev_float(negate ? -r : r);
}

static ev float_binary(world *w, binary_op op, double a, double b) {
    double q, r;
    switch (op) {
    case BINARY_ADD: return ev_float(a + b);
    case BINARY_SUB: return ev_float(a - b);
    case BINARY_MUL: return ev_float(a * b);
    case BINARY_DIV: return b != 0 ? ev_float(a / b) : raise_zero(w, "float division by zero");
    case BINARY_FLOOR:
        return arith_divmod_float(w, a, b, "float floor division by zero", &q, &r) ? ev_float(q)
                                                                                   : ev_fail();
    case BINARY_MOD: return float_mod(w, a, b);
    case BINARY_POW: return float_pow(w, a, b);
    default: return ev_unbound();
    }
}

ev arith_int_of_float(world *w, double d) {
    if (d != d) return raise_f(w, CLASS_ValueError, "cannot convert float NaN to integer");
    if (isinf(d))
        return raise_f(w, CLASS_OverflowError, "cannot convert float infinity to integer");
    if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0)) return raise_int_overflow(w);
    return ev_int((int64_t)d);
}

/* ---- Both -------------------------------------------------------------------------------- */

ev arith_binary(world *w, binary_op op, ev a, ev b) {
    assert(ev_is_number(a) && ev_is_number(b));
    if (a.kind == EV_FLOAT || b.kind == EV_FLOAT)
        return float_binary(w, op, as_double(a), as_double(b));
    ev r = int_binary(w, op, a.i, b.i);
    bool bits = op == BINARY_AND || op == BINARY_OR || op == BINARY_XOR;
    if (bits && a.kind == EV_BOOL && b.kind == EV_BOOL) r.kind = EV_BOOL;
    return r;
}

ev arith_unary(world *w, unary_op op, ev v) {
    if (v.kind == EV_FLOAT) return ev_float(op == UNARY_NEG ? -v.d : v.d);
    if (op == UNARY_NEG) return v.i == INT64_MIN ? raise_int_overflow(w) : ev_int(-v.i);
    return ev_int(op == UNARY_INVERT ? ~v.i : v.i);
}
