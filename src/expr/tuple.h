/* tuple.h -- making tuples and ranges. Nothing here raises. */
#ifndef EXPR_TUPLE_H
#define EXPR_TUPLE_H

#include "expr/world.h"

ev tuple_of(world *w, const ev *items, size_t count);
/* Of `count` times None, for the caller to fill before anything else sees it. */
ev tuple_new(world *w, size_t count);
ev tuple_pair(world *w, ev a, ev b);
/* `step` is not 0. */
ev range_of(world *w, int64_t start, int64_t stop, int64_t step);
static inline int64_t range_at(const range *r, uint64_t i) {
    assert(i < r->count);
    return (int64_t)((uint64_t)r->start + i * (uint64_t)r->step);
}

#endif
