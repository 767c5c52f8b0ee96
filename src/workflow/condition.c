/* condition.c -- which names a condition reads: those that its code reads and does not assign. */
#include "workflow/condition.h"

#include "expr/class.h"
#include "expr/compile.h"
#include "value/heap.h"
#include "value/pool.h"

typedef struct reader {
    classes *classes;
    world *w;
    scope *names;
    code *made;
} reader;

static hd_status open_reader(const hd_env *env, reader *r) {
    hd_status status = classes_open(env, &r->classes);
    if (!status) status = world_open(env, NULL, r->classes, &r->w);
    return status ? status : scope_open(env, &r->names);
}

static void close_reader(reader *r) {
    if (r->made) code_free(r->made);
    if (r->names) scope_close(r->names);
    if (r->w) world_close(r->w);
    if (r->classes) classes_close(r->classes);
}

static hd_status add_known(reader *r, hd_value names) {
    uint32_t slot;
    hd_status status = scope_slot(r->names, "value", 5, &slot);
    for (hd_iter it = hd_iter_of(names); !status && hd_iter_next(&it);)
        status = scope_slot(r->names, it.key, it.key_length, &slot);
    return status;
}

static bool assigns(const code *c, uint32_t slot) {
    for (uint32_t i = 0; i < c->insns.count; i++)
        if (c->insns.items[i].op == CODE_STORE_NAME && c->insns.items[i].b == slot) return true;
    return false;
}

static uint32_t find_unknown(const code *c, uint32_t known) {
    for (uint32_t i = 0; i < c->insns.count; i++) {
        const insn *in = &c->insns.items[i];
        if (in->op == CODE_NAME && in->b >= known && !assigns(c, in->b)) return in->b;
    }
    return UINT32_MAX;
}

/* A form that does not compile is left to the step: it may use classes that this world does not know. */
hd_status condition_check(hd_pool *pool, hd_value form, hd_value names, hd_value *unknown) {
    reader r = { 0 };
    *unknown = (hd_value){ 0 };
    hd_status status = open_reader(&pool->heap->env, &r);
    if (!status) status = add_known(&r, names);
    uint32_t known = r.names ? r.names->names.count : 0, slot = UINT32_MAX;
    if (!status) status = compile_expression(r.w, r.names, form, &r.made, NULL);
    if (!status) slot = find_unknown(r.made, known);
    if (slot != UINT32_MAX) *unknown = hd_string(pool, r.names->names.items[slot]);
    close_reader(&r);
    return status == HD_NOMEM ? status : HD_OK;
}
