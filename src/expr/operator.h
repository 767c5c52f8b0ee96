/* operator.h -- operators on all kinds of values: `a + b`, `a += b`, `-a`, and what they refuse. */
#ifndef EXPR_OPERATOR_H
#define EXPR_OPERATOR_H

#include "expr/arith.h"
#include "expr/iter.h"

/* The text of an operator ("//"). */
const char *binary_text(binary_op op);

ev ev_binary(world *w, binary_op op, ev a, ev b);
/* a op= b: lists, dicts and sets change in place; the result is what the target is bound to. */
ev ev_inplace(world *w, binary_op op, ev a, ev b);
ev ev_unary(world *w, unary_op op, ev v);

/* In place: lists and sets take any iterable. */
bool list_extend(world *w, plist *l, ev iterable);
bool set_update(world *w, dict *d, ev iterable);
/* dict.update(v): a dict, or an iterable of pairs. */
bool dict_update(world *w, dict *d, ev v);
/* Elements of a that are (keep) or are not (!keep) in b, which is a set; a new set. */
ev set_filter(world *w, const dict *a, const dict *b, bool keep);
/* Elements of both, in the order of a; of two equal ones that of b where `theirs`, else that of a. */
ev set_common(world *w, const dict *a, const dict *b, bool theirs);
/* v as a set: itself where it is one, otherwise a new one of its elements. */
ev set_from(world *w, ev v);
ev set_symmetric(world *w, const dict *a, const dict *b);
bool set_take_keys(world *w, dict *d, const dict *from);
void set_keep_only(world *w, dict *d, const dict *of, bool keep);

#endif
