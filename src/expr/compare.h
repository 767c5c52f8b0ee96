/* compare.h -- ==, <, in, is, and truth. */
#ifndef EXPR_COMPARE_H
#define EXPR_COMPARE_H

#include "expr/dict.h"

typedef enum compare_op {
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_IN,
    COMPARE_NOT_IN,
    COMPARE_IS,
    COMPARE_IS_NOT,
    COMPARE_OPS
} compare_op;

/* The text of an operator ("not in"). */
const char *compare_text(compare_op op);

/* 1, 0, or -1: an exception is pending. Identity counts as equality, as for elements of containers. */
int ev_same(world *w, ev a, ev b);
bool ev_is(ev a, ev b);
/* LT to GE: 1, 0, or -1 with TypeError "'<' not supported between instances of ...". */
int ev_order(world *w, compare_op op, ev a, ev b);
/* EQ to GE. */
int ev_compare(world *w, compare_op op, ev a, ev b);
/* 1, 0, or -1: an exception is pending, or the status is set. */
int ev_truth(world *w, ev v);

/* Whether every element of a is in b; 1, 0, -1. Sets, and views of keys or items. */
int set_within(world *w, ev a, ev b);
/* Whether an items view has this element; 1, 0, -1. */
int item_within(world *w, ev v, ev items);

/* (key, value) of an entry, its key or its value. */
ev view_item(world *w, uint32_t what, const dict_entry *e);

#endif
