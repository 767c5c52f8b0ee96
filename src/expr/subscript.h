/* subscript.h -- a[i], a[i:j:k], their assignment and deletion, and attributes. */
#ifndef EXPR_SUBSCRIPT_H
#define EXPR_SUBSCRIPT_H

#include "expr/operator.h"

ev item_get(world *w, ev v, ev index);
bool item_set(world *w, ev v, ev index, ev value);
bool item_delete(world *w, ev v, ev index);

/* The bounds are ints or None. */
ev slice_get(world *w, ev v, ev from, ev to, ev step);
bool slice_set(world *w, ev v, ev from, ev to, ev step, ev value);
bool slice_delete(world *w, ev v, ev from, ev to, ev step);

/* A bound of find(), index() and the like: an int or None, within [0, count]. False: TypeError. */
bool slice_bound(world *w, ev v, uint32_t count, uint32_t otherwise, uint32_t *out);

ev attr_get(world *w, ev v, ev name);
bool attr_set(world *w, ev v, ev name, ev value);
/* Gives an exception that is being made an attribute that CPython keeps in a slot. False: no memory. */
bool exc_put(world *w, exc *e, const char *name, ev value);
bool attr_delete(world *w, ev v, ev name);

#endif
