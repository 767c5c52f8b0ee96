/* format.h -- format(value, spec): the mini-language of format specifications, complete. */
#ifndef EXPR_FORMAT_H
#define EXPR_FORMAT_H

#include "expr/repr.h"

/* The spec is a str. */
ev ev_format(world *w, ev v, ev spec);

/* Reads decimal digits (of any script) at *at: their value, -1 where there are none, -2 where it is
 * too large (ValueError "Too many decimal digits in format string" is pending). */
int64_t format_number(world *w, const text *t, uint32_t *at, uint32_t end);

/* |i| in a base of 2, 8, 10 or 16, without sign and prefix; returns the length. */
size_t format_int_digits(uint64_t magnitude, unsigned base, bool upper, char out[72]);

#endif
