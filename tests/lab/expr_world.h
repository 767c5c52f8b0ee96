/* expr_world.h -- a world with a machine for tests of the evaluator: JSON in, text out. */
#ifndef LAB_EXPR_WORLD_H
#define LAB_EXPR_WORLD_H

#include "expr/compile.h"
#include "expr/dict.h"
#include "expr/encode.h"
#include "expr/machine.h"
#include "expr/plist.h"
#include "expr/repr.h"
#include "expr/text.h"
#include "lab.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct expr_world {
    lab_env *lab; /* NULL: not ours */
    hd_heap *heap;
    hd_pool *pool;
    classes *classes;
    scope *names;
    world *w;
    machine *m;
    frame *f;
} expr_world;

/* False where there was no memory; close it in any case. */
static inline bool expr_world_try(expr_world *x, const hd_env *env, const world_limits *limits) {
    class_info item = { .name = (char[]){ "Item" }, .base = CLASS_object, .kind = CLASS_RECORD };
    class_info color = { .name = (char[]){ "Color" }, .base = CLASS_Enum, .kind = CLASS_ENUM };
    char *fields[2] = { (char[]){ "name" }, (char[]){ "price" } };
    uint32_t id;
    item.fields = fields;
    item.fields_count = item.required = 2;
    *x = (expr_world){ 0 };
    return !hd_heap_open(env, NULL, &x->heap) && !hd_pool_open(x->heap, &x->pool) &&
           !classes_open(env, &x->classes) && !classes_add(x->classes, &item, &id) &&
           !classes_add(x->classes, &color, &id) && !scope_open(env, &x->names) &&
           !world_open(env, limits, x->classes, &x->w) && !machine_open(x->w, &x->m) &&
           !frame_open(x->w, x->names, &x->f);
}

static inline void expr_world_close(expr_world *x) {
    frame_close(x->f);
    machine_close(x->m);
    world_close(x->w);
    scope_close(x->names);
    classes_close(x->classes);
    if (x->pool) hd_pool_close(x->pool);
    if (x->heap) hd_heap_close(x->heap);
    lab_env_close(x->lab);
}

static inline expr_world expr_world_open(const world_limits *limits) {
    expr_world x;
    lab_env *lab = lab_env_open();
    if (!expr_world_try(&x, lab_env_of(lab), limits)) abort();
    x.lab = lab;
    return x;
}

static inline code *expr_compile(expr_world *x, const char *json) {
    hd_error error;
    code *c;
    hd_value form = hd_json_parse(x->pool, json, strlen(json), &error);
    bool statements = strncmp(json, "[[", 2) == 0;
    hd_status s = statements ? compile_statements(x->w, x->names, form, &c, &error)
                             : compile_expression(x->w, x->names, form, &c, &error);
    if (s) lab_fail("%s: %s at %s", json, error.message, error.path);
    return c;
}

/* The repr of the value, or "ValueError: message". Good until the next call. */
static inline const char *expr_text(expr_world *x, outcome o, ev v) {
    static char out[2000];
    size_t n = 0;
    if (o == OUTCOME_STOPPED) return hd_status_name(x->w->status);
    ev t = o == OUTCOME_VALUE ? ev_repr(x->w, v) : exc_message(x->w, v);
    if (ev_failed(t)) return "<no text>";
    if (o == OUTCOME_RAISED) n = (size_t)snprintf(out, 200, "%s: ", type_name(x->w, v));
    for (uint32_t i = 0; i < t.text->count && n < sizeof out - 5; i++)
        n += utf8_put((uint8_t *)out + n, text_at(t.text, i));
    out[n] = 0;
    return out;
}

static inline const char *expr_run(expr_world *x, const char *json) {
    code *c = expr_compile(x, json);
    ev v;
    outcome o = machine_eval(x->m, c, x->f, &v);
    const char *out = expr_text(x, o, v);
    code_free(c);
    return out;
}

#endif
