/* floattext.h -- floats as text: repr, fixed, exponent and general form, and rounding. */
#ifndef EXPR_FLOATTEXT_H
#define EXPR_FLOATTEXT_H

#include "expr/text.h"

/* repr(d): the shortest digits that read back; at most 32 characters. */
size_t float_repr(double d, char out[40]);

/* `kind` is 'e', 'f', 'g' or 'r' (repr digits; precision is ignored), lower case. `alternate` keeps the
 * point and trailing zeroes; `add_dot` makes sure of a ".0" (repr and str). No sign: d is finite and
 * not negative. Appends to the builder. */
void float_digits(text_builder *b, double d, char kind, int precision, bool alternate,
                  bool add_dot);

/* round(d, digits), to even on ties of the exact value; infinite where it overflows. */
double float_round(double d, int64_t digits);

/* Reads all of the text: the grammar of float() without spaces. False: malformed. */
bool float_parse(const char *ascii, size_t size, double *out);

#endif
