/* parse.h -- expressions and statements written as text, in Python's syntax.
 *
 * The result is the form of docs/EXPRESSIONS.md, a value of the pool; compile.h makes code of it. What is
 * not in the documented subset is refused, with line and column. The functions read `text` only while they
 * run. HD_SYNTAX; HD_LIMIT: nested too deeply, or an integer beyond 64 bits; HD_NOMEM. */
#ifndef EXPR_PARSE_H
#define EXPR_PARSE_H

#include <heddle/value.h>

/* One expression. */
hd_status parse_expression(hd_pool *pool, const char *text, hd_value *out, hd_error *error);
/* Statements, one on a line or separated by semicolons: assignments, `x += e`, `del`, expressions, `pass`. */
hd_status parse_statements(hd_pool *pool, const char *text, hd_value *out, hd_error *error);
/* What can be assigned to: "x", "a.b", "a[0]", "x, *rest". */
hd_status parse_target(hd_pool *pool, const char *text, hd_value *out, hd_error *error);

#endif
