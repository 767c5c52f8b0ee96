/* arith.h -- numbers: the operators on int, bool and float, exactly as CPython computes them, except
 * that an int beyond 64 bits is an OverflowError. */
#ifndef EXPR_ARITH_H
#define EXPR_ARITH_H

#include "expr/raise.h"

typedef enum binary_op {
    BINARY_ADD,
    BINARY_SUB,
    BINARY_MUL,
    BINARY_DIV,
    BINARY_FLOOR,
    BINARY_MOD,
    BINARY_POW,
    BINARY_LSHIFT,
    BINARY_RSHIFT,
    BINARY_AND,
    BINARY_OR,
    BINARY_XOR,
    BINARY_OPS
} binary_op;

typedef enum unary_op { UNARY_NEG, UNARY_POS, UNARY_INVERT, UNARY_NOT, UNARY_OPS } unary_op;

/* Both are numbers. EV_UNBOUND: the operator does not exist for them (float & int). */
ev arith_binary(world *w, binary_op op, ev a, ev b);
/* v is a number; NEG and POS of all, INVERT of ints. */
ev arith_unary(world *w, unary_op op, ev v);
/* pow(base, exponent, modulus) of ints. */
ev arith_pow_mod(world *w, int64_t base, int64_t exponent, int64_t modulus);
/* Floor division and remainder at once; they are (quotient, remainder) of divmod. */
bool arith_divmod_float(world *w, double a, double b, const char *what, double *quotient,
                        double *remainder);

/* A float as int, toward zero. OverflowError for infinities and beyond 64 bits, ValueError for NaN. */
ev arith_int_of_float(world *w, double d);

__extension__ typedef __int128 arith_i128;
__extension__ typedef unsigned __int128 arith_u128;
/* Fits into 64 bits, or OverflowError. */
static inline ev arith_int(world *w, arith_i128 i) {
    return i < INT64_MIN || i > INT64_MAX ? raise_int_overflow(w) : ev_int((int64_t)i);
}

#endif
