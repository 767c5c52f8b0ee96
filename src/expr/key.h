/* key.h -- hashing and equality of what can be a key: 1, 1.0 and True are one key. */
#ifndef EXPR_KEY_H
#define EXPR_KEY_H

#include "expr/raise.h"

/* False: TypeError "unhashable type: 'list'", or too deep. */
bool key_hash(world *w, ev v, uint32_t *out);
/* Both have been hashed with success. */
bool key_same(ev a, ev b);

/* Whether two numbers are equal, exactly: 2**53 + 1 is not 2.0**53. */
bool number_same(ev a, ev b);
/* -1, 0, 1; 2 where one is no number. */
int number_order(ev a, ev b);

#endif
