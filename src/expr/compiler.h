/* compiler.h -- private to the compile files: the state of a compilation and what emits code. */
#ifndef EXPR_COMPILER_H
#define EXPR_COMPILER_H

#include "expr/code.h"

#include <heddle/value.h>

#define COMPILE_DEPTH 150    /* nesting of forms: compiling recurses */
#define COMPILE_NODES 200000 /* forms in one piece of code */

/* A variable of a comprehension or lambda. */
typedef struct local_name {
    const char *name;
    size_t length;
    uint32_t slot;
} local_name;

typedef struct compiler {
    world *w;
    scope *names;
    code *c;
    hd_error *error;
    hd_status status;
    uint32_t path[COMPILE_DEPTH + 2]; /* indices into arrays, from the root to the current form */
    uint32_t depth;
    uint32_t nodes;
    uint32_t inner; /* comprehensions and lambdas around us: their names are free variables there */
    uint32_t lambdas; /* around us */
    VEC(local_name) locals;
} compiler;

/* compile_emit.c: code, constants, errors. All return false when the compilation has failed. */
bool emit(compiler *k, code_op op, uint32_t a, uint32_t b, uint32_t c);
uint32_t emit_jump(compiler *k, code_op op); /* its place, for patch() */
void patch(compiler *k, uint32_t at);        /* the jump leads here */
void patch_next(compiler *k, uint32_t at);   /* the end of a NEXT leads here */
bool constant(compiler *k, ev v, uint32_t *out);
bool constant_text(compiler *k, const char *name, size_t length, uint32_t *out);
uint32_t new_local(compiler *k);
bool refuse(compiler *k, const char *format, ...) HD_PRINTF(2, 3);
bool refuse_nomem(compiler *k);
/* The element of the current form, with its place on the path. */
bool enter(compiler *k, uint32_t index);
void leave(compiler *k);
/* The form's element is a string: its text. */
bool form_text(compiler *k, hd_value form, size_t index, const char *what, const char **out,
               size_t *length);
size_t form_count(hd_value form);

/* compile_expr.c */
bool compile_value(compiler *k, hd_value form);                 /* any expression */
bool compile_element(compiler *k, hd_value form, size_t index); /* form[index] */
bool is_form(hd_value form, const char *op);
/* ["*", e] or ["**", e]: with two operands they are operators. */
bool is_star(hd_value form, const char *star);

/* compile_call.c */
bool compile_call(compiler *k, hd_value form);
bool compile_method(compiler *k, hd_value form);
bool compile_new(compiler *k, hd_value form);
bool compile_function(compiler *k, hd_value form); /* lambda and func */

/* compile_loop.c */
bool compile_listcomp(compiler *k, hd_value form);
bool compile_setcomp(compiler *k, hd_value form);
bool compile_dictcomp(compiler *k, hd_value form);
bool compile_generator(compiler *k, hd_value form);

/* compile_target.c */
bool compile_store(compiler *k, hd_value target);
bool compile_statement(compiler *k, hd_value form);
/* The slot of a variable of the frame. */
bool compile_slot(compiler *k, const char *name, size_t length, uint32_t *slot);
bool compile_name_store(compiler *k, const char *name, size_t length, bool comprehension);

#endif
