/* code.c -- see code.h. */
#include "expr/code.h"

#include "expr/builtins.h"
#include <string.h>

#define SCOPE_MAX 65000

void code_free(code *c) {
    if (!c) return;
    world *w = c->w;
    for (uint32_t i = 0; i < c->constants.count; i++) world_unref(w, c->constants.items[i]);
    vec_fini(&w->env, &c->insns);
    vec_fini(&w->env, &c->constants);
    vec_fini(&w->env, &c->methods);
    vec_fini(&w->env, &c->lambdas);
    env_free(&w->env, c, sizeof *c);
}

/* Functions of heddle's own tell the time, random numbers, or what a method returns. */
static bool insn_repeats(const insn *i) {
    switch (i->op) {
    case CODE_STORE_NAME:
    case CODE_DELETE_NAME:
    case CODE_INPLACE:
    case CODE_SET_ITEM:
    case CODE_DELETE_ITEM:
    case CODE_SET_SLICE:
    case CODE_DELETE_SLICE:
    case CODE_SET_ATTR:
    case CODE_DELETE_ATTR:
    case CODE_METHOD:
    case CODE_CALL_STAR: return false;
    case CODE_CALL: return strncmp(builtins[i->b].name, "heddle.", 7) != 0;
    default: return true;
    }
}

bool code_repeats(const code *c) {
    for (uint32_t i = 0; i < c->insns.count; i++)
        if (!insn_repeats(&c->insns.items[i])) return false;
    return true;
}

/* ---- Scopes ------------------------------------------------------------------------------ */

hd_status scope_open(const hd_env *env, scope **out) {
    hd_env own = env_copy(env);
    scope *s = env_new0(&own, sizeof *s);
    *out = s;
    if (!s) return HD_NOMEM;
    s->env = own;
    return HD_OK;
}

void scope_close(scope *s) {
    if (!s) return;
    hd_env env = s->env;
    for (uint32_t i = 0; i < s->names.count; i++)
        env_free(&env, s->names.items[i], strlen(s->names.items[i]) + 1);
    vec_fini(&env, &s->names);
    env_free(&env, s, sizeof *s);
}

uint32_t scope_find(const scope *s, const char *name, size_t length) {
    for (uint32_t i = 0; i < s->names.count; i++)
        if (strlen(s->names.items[i]) == length && memcmp(s->names.items[i], name, length) == 0)
            return i;
    return UINT32_MAX;
}

hd_status scope_slot(scope *s, const char *name, size_t length, uint32_t *out) {
    *out = scope_find(s, name, length);
    if (*out != UINT32_MAX) return HD_OK;
    if (memchr(name, 0, length)) return HD_SYNTAX;
    if (s->names.count >= SCOPE_MAX) return HD_LIMIT;
    char *own = env_new(&s->env, length + 1);
    if (!own) return HD_NOMEM;
    memcpy(own, name, length);
    own[length] = 0;
    if (!vec_push(&s->env, &s->names, own)) {
        env_free(&s->env, own, length + 1);
        return HD_NOMEM;
    }
    *out = s->names.count - 1;
    return HD_OK;
}

/* ---- Frames ------------------------------------------------------------------------------ */

hd_status frame_fit(frame *f) {
    const hd_env *env = &f->w->env;
    while (f->slots.count < f->names->names.count) {
        if (!vec_room(env, &f->changed, 1) || !vec_push(env, &f->slots, ev_unbound()))
            return HD_NOMEM;
        f->changed.items[f->changed.count++] = 0;
    }
    return HD_OK;
}

hd_status frame_open(world *w, const scope *names, frame **out) {
    frame *f = env_new0(&w->env, sizeof *f);
    *out = NULL;
    if (!f) return HD_NOMEM;
    f->w = w;
    f->names = names;
    hd_status status = frame_fit(f);
    if (status) frame_close(f);
    else *out = f;
    return status;
}

void frame_close(frame *f) {
    if (!f) return;
    world *w = f->w;
    for (uint32_t i = 0; i < f->slots.count; i++) world_unref(w, f->slots.items[i]);
    vec_fini(&w->env, &f->slots);
    vec_fini(&w->env, &f->changed);
    env_free(&w->env, f, sizeof *f);
}
