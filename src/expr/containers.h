/* containers.h -- methods of list, tuple, dict, set, range and the views of dicts. */
#ifndef EXPR_CONTAINERS_H
#define EXPR_CONTAINERS_H

#include "expr/call.h"
#include "expr/subscript.h"

extern const function list_methods[];
extern const function tuple_methods[];
extern const function range_methods[];
extern const function dict_methods[];
extern const function set_methods[];
extern const function view_methods[];

#endif
