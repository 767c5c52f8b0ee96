/* sort.h -- sorting: stable, with the comparisons of CPython for up to 63 elements, so that the first
 * pair that cannot be compared is the same. */
#ifndef EXPR_SORT_H
#define EXPR_SORT_H

#include "expr/iter.h"

/* Sorts the list in place. `key` is a function, None or EV_UNBOUND. False: an exception is pending and
 * the list may be in another order. */
bool sort_list(world *w, plist *l, ev key, bool reverse);

#endif
