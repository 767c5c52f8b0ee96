/* builtins.h -- the built-in functions, and the methods of every kind by name. */
#ifndef EXPR_BUILTINS_H
#define EXPR_BUILTINS_H

#include "expr/call.h"

extern const function builtins[];

/* The methods of a kind; NULL: it has none. */
const function *methods_of(uint32_t kind);
/* Calls a method. AttributeError "'int' object has no attribute 'x'". */
ev call_method(world *w, ev self, ev name, const call *c);
/* x.name. A method that is not called is Unsupported: CPython would give a bound method. */
ev read_attribute(world *w, ev v, ev name);
/* x.name = value; value EV_UNBOUND: del x.name. A method of a built-in class is read-only. */
bool write_attribute(world *w, ev v, ev name, ev value);
/* Whether call_method would find it; else AttributeError. */
bool method_exists(world *w, ev self, ev name);
/* Calls a built-in function by its place in the table. */
ev call_builtin(world *w, uint32_t index, const call *c);
/* A class as a function: int("3"), ValueError("x"), a record. */
ev call_class(world *w, uint32_t class_, const call *c);

#endif
