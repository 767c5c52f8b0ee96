/* compile_emit.c -- see compiler.h. */
#include "expr/compiler.h"

#include "expr/text.h"

#include <stdio.h>

/* ---- Errors ------------------------------------------------------------------------------ */

static void write_path(const compiler *k, hd_error *e) {
    size_t n = 0;
    e->path[0] = 0;
    for (uint32_t i = 0; i < k->depth && n < sizeof e->path - 16; i++)
        n += (size_t)snprintf(e->path + n, sizeof e->path - n, "/%u", k->path[i]);
}

bool refuse(compiler *k, const char *format, ...) {
    if (k->status) return false;
    va_list arguments;
    va_start(arguments, format);
    env_error_v(k->error, HD_SYNTAX, format, arguments);
    va_end(arguments);
    if (k->error) write_path(k, k->error);
    k->status = HD_SYNTAX;
    return false;
}

bool refuse_nomem(compiler *k) {
    if (!k->status) env_error(k->error, HD_NOMEM, "out of memory");
    if (!k->status) k->status = HD_NOMEM;
    return false;
}

bool enter(compiler *k, uint32_t index) {
    if (k->status) return false;
    if (k->depth >= COMPILE_DEPTH) return refuse(k, "nested deeper than %d", COMPILE_DEPTH);
    if (++k->nodes > COMPILE_NODES) return refuse(k, "more than %d forms", COMPILE_NODES);
    k->path[k->depth++] = index;
    return true;
}

void leave(compiler *k) {
    assert(k->depth > 0);
    /* A failure keeps the path of its place. */
    if (!k->status) k->depth--;
}

/* ---- Reading forms ----------------------------------------------------------------------- */

size_t form_count(hd_value form) {
    return hd_value_kind(form) == HD_KIND_ARRAY ? hd_value_count(form) : 0;
}

bool form_text(compiler *k, hd_value form, size_t index, const char *what, const char **out,
               size_t *length) {
    hd_value v = hd_value_index(form, index);
    *out = hd_value_text(v, length);
    if (hd_value_kind(v) == HD_KIND_STRING) return true;
    if (enter(k, (uint32_t)index)) refuse(k, "%s must be a string", what);
    return false;
}

/* ---- Code -------------------------------------------------------------------------------- */

/* How many values an instruction can leave on the stack beyond what it takes. */
static uint32_t pushes(code_op op, uint32_t b, uint32_t c) {
    switch (op) {
    case CODE_UNPACK: return b;
    case CODE_UNPACK_REST: return b + c + 1;
    case CODE_DUP2: return 2;
    case CODE_DUP4: return 4;
    default: return 1;
    }
}

bool emit(compiler *k, code_op op, uint32_t a, uint32_t b, uint32_t c) {
    if (k->status) return false;
    assert(a <= UINT16_MAX);
    insn i = { (uint16_t)op, (uint16_t)a, b, c };
    if (!vec_push(&k->w->env, &k->c->insns, i)) return refuse_nomem(k);
    k->c->pushes += pushes(op, b, c);
    return true;
}

uint32_t emit_jump(compiler *k, code_op op) {
    uint32_t at = k->c->insns.count;
    emit(k, op, 0, UINT32_MAX, 0);
    return at;
}

void patch(compiler *k, uint32_t at) {
    if (!k->status) k->c->insns.items[at].b = k->c->insns.count;
}

void patch_next(compiler *k, uint32_t at) {
    if (!k->status) k->c->insns.items[at].c = k->c->insns.count;
}

bool constant(compiler *k, ev v, uint32_t *out) {
    if (k->status) return false;
    if (ev_failed(v) || !vec_push(&k->w->env, &k->c->constants, v)) return refuse_nomem(k);
    world_ref(v);
    *out = k->c->constants.count - 1;
    return true;
}

bool constant_text(compiler *k, const char *name, size_t length, uint32_t *out) {
    ev v = text_of_utf8(k->w, name, length);
    if (ev_failed(v)) return refuse_nomem(k);
    /* Names recur: the same text is one constant. */
    for (uint32_t i = 0; i < k->c->constants.count; i++) {
        ev known = k->c->constants.items[i];
        if (known.kind == EV_STR && text_same(known.text, v.text)) return *out = i, !k->status;
    }
    return constant(k, v, out);
}

uint32_t new_local(compiler *k) { return k->c->locals++; }
