/* iter.h -- iterating: over containers, and through enumerate, zip, map, filter and generators. */
#ifndef EXPR_ITER_H
#define EXPR_ITER_H

#include "expr/compare.h"
#include "expr/plist.h"

bool ev_is_iterable(ev v);
ev iter_new(world *w, iter_what what, ev a, ev b);
/* iter(v); v itself if it is an iterator. TypeError "'int' object is not iterable". */
ev iter_of(world *w, ev v);
/* reversed(v). TypeError if v has no order that can be reversed. */
ev iter_back(world *w, ev v);
/* 1: *out is the next; 0: the end; -1: failed. */
int iter_next(world *w, ev iterator, ev *out);

/* A new list with all elements. */
ev iter_list(world *w, ev v);
/* The elements of a list or tuple where they are; NULL for anything else. Good until it changes. */
const ev *sequence_items(world *w, ev v, uint32_t *count);

/* len(v), or -1: it has none. */
int64_t ev_length(world *w, ev v);
/* The i-th element of a list, tuple, str, bytes or range. */
ev sequence_at(world *w, ev v, uint64_t i);
/* v in container: 1, 0, -1. */
int ev_contains(world *w, ev container, ev v);

#endif
