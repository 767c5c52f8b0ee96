/* numbers.h -- methods of int and float, and reading numbers from text. */
#ifndef EXPR_NUMBERS_H
#define EXPR_NUMBERS_H

#include "expr/arith.h"
#include "expr/call.h"

extern const function int_methods[]; /* of bool, too */
extern const function float_methods[];

/* int(text, base) and float(text); the text is a str or bytes. */
ev int_of_text(world *w, ev v, int64_t base);
ev float_of_text(world *w, ev v);
/* round(number, digits); digits may be EV_UNBOUND or None. */
ev number_round(world *w, ev v, ev digits);
/* The bytes of an iterable of ints from 0 to 255. */
ev bytes_of_items(world *w, ev v);

#endif
