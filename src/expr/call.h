/* call.h -- calling built-in functions and methods: how arguments are passed and checked.
 *
 * A `function` says how many arguments it takes and how CPython words the complaint when they do not
 * fit; call_function() checks, puts keyword arguments into their places and calls. Missing arguments
 * are EV_UNBOUND. */
#ifndef EXPR_CALL_H
#define EXPR_CALL_H

#include "expr/raise.h"

typedef struct call {
    const ev *args;  /* positional ones, then the values of those by name */
    uint32_t count;  /* positional */
    uint32_t named;  /* by name */
    const ev *names; /* their names, strs */
    bool
        spread; /* written with * or **: CPython then names the class of the receiver, not the method's */
} call;

typedef enum call_style {
    CALL_NONE,     /* "str.upper() takes no arguments (1 given)" */
    CALL_ONE,      /* "list.append() takes exactly one argument (0 given)" */
    CALL_PLACES,   /* "replace expected at least 2 arguments, got 1" */
    CALL_TUPLE,    /* "find() takes at least 1 argument (0 given)" */
    CALL_KEYWORDS, /* "split() takes at most 2 arguments (3 given)" */
    CALL_RAW,      /* the function looks at the call itself */
} call_style;

#define CALL_MAX 4

/* `self` is the receiver of a method; EV_UNBOUND for functions. `a` has CALL_MAX elements. */
typedef ev (*call_fn)(world *w, ev self, const ev *a, const call *c);

typedef struct function {
    const char *name;
    call_fn fn;
    uint8_t style, least, most;
    uint8_t positional;      /* CALL_KEYWORDS: the first so many cannot be given by name */
    const char *keywords[4]; /* CALL_KEYWORDS: names by place */
} function;

/* Entries of a table of functions. */
#define FUNCTION_OF(name, fn, style, least, most)                                                  \
    {                                                                                              \
        name, fn, style, least, most, 0, { 0 }                                                     \
    }
#define FUNCTION_NONE(name, fn)         FUNCTION_OF(name, fn, CALL_NONE, 0, 0)
#define FUNCTION_ONE(name, fn)          FUNCTION_OF(name, fn, CALL_ONE, 1, 1)
#define FUNCTION_PLACES(name, fn, a, b) FUNCTION_OF(name, fn, CALL_PLACES, a, b)
#define FUNCTION_TUPLE(name, fn, a, b)  FUNCTION_OF(name, fn, CALL_TUPLE, a, b)
#define FUNCTION_RAW(name, fn)          FUNCTION_OF(name, fn, CALL_RAW, 0, 0)
#define FUNCTION_END                    FUNCTION_OF(NULL, NULL, 0, 0, 0)

/* `owner` is the class of a method, or NULL. */
ev call_function(world *w, const function *f, const char *owner, ev self, const call *c);

/* A table of functions of one owner; ends with a name of NULL. */
const function *function_find(const function *table, const char *name, size_t length);

/* The value of a keyword argument; EV_UNBOUND: not given. */
ev call_named(const call *c, const char *name);
/* TypeError for a keyword argument that is none of these (at most two; NULL for none). */
bool call_only_names(world *w, const call *c, const char *function, const char *a, const char *b);

/* Arguments of common kinds. False: TypeError "'str' object cannot be interpreted as an integer". */
bool arg_int(world *w, ev v, int64_t *out);
/* The same for an argument that CPython takes as a C int. */
bool arg_c_int(world *w, ev v, int64_t *out);
/* The same, cut to what a length can be; `otherwise` where it is not given. */
bool arg_size(world *w, ev v, int64_t otherwise, int64_t *out);
static inline bool arg_given(ev v) { return v.kind != EV_UNBOUND; }

/* Which function a value of kind EV_FUNC stands for. It can be called by the code that made it, whose serial number it
 * carries: lambdas and methods are found there. */
typedef enum call_target_kind {
    TARGET_BUILTIN, /* index into the table of built-ins */
    TARGET_METHOD, /* index of a constant, (class, name): str.lower as a function of one argument */
    TARGET_LAMBDA, /* index into the lambdas */
} call_target_kind;

#define CALL_SERIAL UINT32_C(0x0FFFFFFF)

static inline ev call_target(call_target_kind kind, uint32_t serial, uint32_t index) {
    return (ev){ .kind = EV_FUNC,
                 .i = (int64_t)((uint64_t)kind << 60 | (uint64_t)serial << 32 | index) };
}
static inline call_target_kind call_target_of(ev v) {
    return (call_target_kind)((uint64_t)v.i >> 60);
}
static inline uint32_t call_serial_of(ev v) {
    return (uint32_t)((uint64_t)v.i >> 32) & CALL_SERIAL;
}
static inline uint32_t call_index_of(ev v) { return (uint32_t)v.i; }

#endif
