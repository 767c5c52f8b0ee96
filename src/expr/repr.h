/* repr.h -- repr(), ascii() and str() of every value. */
#ifndef EXPR_REPR_H
#define EXPR_REPR_H

#include "expr/raise.h"
#include "expr/text.h"

ev ev_repr(world *w, ev v);
ev ev_ascii(world *w, ev v);
/* str(v): v itself where it is a str. */
ev ev_str(world *w, ev v);

/* str(exception). */
ev exc_message(world *w, ev exception);

/* The shortened repr of an error message: '%.200R'. Writes UTF-8 with a NUL. */
void repr_short(world *w, ev v, char *out, size_t size);

#endif
