/* code.h -- compiled expressions: a flat program for a machine with a stack.
 *
 * Code belongs to the world it was compiled for: its constants are values of that world. Variables are
 * slots of a *scope*, which several pieces of code share (the variables of one function); a *frame* has
 * the values. Variables of comprehensions and lambdas are locals of the code, which live during one
 * evaluation. */
#ifndef EXPR_CODE_H
#define EXPR_CODE_H

#include "expr/call.h"

#define CODE_OPS(X)                                                                                \
    X(CONST)                                                                                       \
    X(NAME)                                                                                        \
    X(LOCAL)                                                                                       \
    X(STORE_NAME)                                                                                  \
    X(STORE_LOCAL)                                                                                 \
    X(DELETE_NAME)                                                                                 \
    X(CLEAR_LOCAL)                                                                                 \
    X(POP)                                                                                         \
    X(DUP)                                                                                         \
    X(DUP2)                                                                                        \
    X(DUP4)                                                                                        \
    X(ROT2)                                                                                        \
    X(ROT3)                                                                                        \
    X(ROT5)                                                                                        \
    X(UNARY)                                                                                       \
    X(BINARY)                                                                                      \
    X(INPLACE)                                                                                     \
    X(COMPARE)                                                                                     \
    X(JUMP)                                                                                        \
    X(JUMP_FALSE)                                                                                  \
    X(AND)                                                                                         \
    X(OR)                                                                                          \
    X(TUPLE)                                                                                       \
    X(LIST)                                                                                        \
    X(SET)                                                                                         \
    X(DICT)                                                                                        \
    X(APPEND)                                                                                      \
    X(EXTEND)                                                                                      \
    X(ADD)                                                                                         \
    X(UPDATE)                                                                                      \
    X(PUT)                                                                                         \
    X(MERGE)                                                                                       \
    X(TO_TUPLE)                                                                                    \
    X(ITEM)                                                                                        \
    X(SET_ITEM)                                                                                    \
    X(DELETE_ITEM)                                                                                 \
    X(SLICE)                                                                                       \
    X(SET_SLICE)                                                                                   \
    X(DELETE_SLICE)                                                                                \
    X(ATTR)                                                                                        \
    X(SET_ATTR)                                                                                    \
    X(DELETE_ATTR)                                                                                 \
    X(UNPACK)                                                                                      \
    X(UNPACK_REST)                                                                                 \
    X(ITER)                                                                                        \
    X(NEXT)                                                                                        \
    X(CALL)                                                                                        \
    X(METHOD_CHECK)                                                                                \
    X(METHOD)                                                                                      \
    X(NEW)                                                                                         \
    X(STAR_ARGS)                                                                                   \
    X(STAR_NAMES)                                                                                  \
    X(CALL_STAR)                                                                                   \
    X(FORMAT)                                                                                      \
    X(CONCAT)                                                                                      \
    X(GENERATOR)                                                                                   \
    X(YIELD)                                                                                       \
    X(END)                                                                                         \
    X(RETURN)

typedef enum code_op {
#define CODE_ROW(name) CODE_##name,
    CODE_OPS(CODE_ROW)
#undef CODE_ROW
        CODE_COUNT
} code_op;

typedef struct insn {
    uint16_t op;
    uint16_t a;
    uint32_t b, c;
} insn;

#define CODE_NO_NAMES UINT32_MAX

/* A method call: the name, and which function it was for the kind of the last receiver. */
typedef struct method_site {
    ev name;
    uint32_t kind;
    const function *found;
} method_site;

typedef struct lambda {
    uint32_t start;  /* of its body, which ends with RETURN */
    uint32_t params; /* consecutive locals */
    uint32_t first;  /* the first of them */
} lambda;

typedef struct code {
    world *w;
    VEC(insn) insns;
    VEC(ev) constants; /* referenced */
    VEC(method_site) methods;
    VEC(lambda) lambdas;
    uint32_t serial; /* which code of the world it is; functions that are values carry it */
    uint32_t locals;
    uint32_t pushes; /* an evaluation needs no more of the stack than that and the locals */
} code;

/* Names of variables; each has a slot. */
typedef struct scope {
    hd_env env;
    VEC(char *) names;
} scope;

hd_status scope_open(const hd_env *env, scope **out);
void scope_close(scope *s);
/* The slot of a name, which is added where it is new. HD_SYNTAX: the name holds NUL; HD_LIMIT, HD_NOMEM. */
hd_status scope_slot(scope *s, const char *name, size_t length, uint32_t *out);
/* UINT32_MAX: there is no such variable. */
uint32_t scope_find(const scope *s, const char *name, size_t length);

/* The values of a scope's variables. */
typedef struct frame {
    world *w;
    const scope *names;
    VEC(ev) slots;        /* EV_UNBOUND: no value; referenced */
    VEC(uint8_t) changed; /* 1: written since the owner set it to 0 */
} frame;

hd_status frame_open(world *w, const scope *names, frame **out);
void frame_close(frame *f);
/* Makes room for names that were added to the scope since. */
hd_status frame_fit(frame *f);
static inline void frame_set(frame *f, uint32_t slot, ev v) {
    assert(slot < f->slots.count);
    world_ref(v);
    world_unref(f->w, f->slots.items[slot]);
    f->slots.items[slot] = v;
    f->changed.items[slot] = 1;
}

void code_free(code *c);
/* Whether another evaluation, with the same values of the variables, gives the same and has changed nothing. False also
 * where that is not known: of methods, any may change its object. */
bool code_repeats(const code *c);

#endif
