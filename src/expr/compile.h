/* compile.h -- from the JSON form of docs/EXPRESSIONS.md to code.
 *
 * Everything is checked here: forms, counts, names of functions and classes, depth, size. An error says
 * what is wrong and where (hd_error.path is the place in the JSON). The machine then trusts the code. */
#ifndef EXPR_COMPILE_H
#define EXPR_COMPILE_H

#include "expr/code.h"

#include <heddle/value.h>

/* One expression; its evaluation gives its value. Names are added to the scope. */
hd_status compile_expression(world *w, scope *names, hd_value form, code **out, hd_error *error);
/* A list of statements (assign, aug, del, expr); its evaluation gives None. */
hd_status compile_statements(world *w, scope *names, hd_value form, code **out, hd_error *error);

#endif
