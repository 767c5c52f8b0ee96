/* compile.c -- see compile.h. */
#include "expr/compile.h"

#include "expr/compiler.h"

static hd_status finish(compiler *k, code **out) {
    vec_fini(&k->w->env, &k->locals);
    if (k->status) {
        code_free(k->c);
        *out = NULL;
        /* What a failed allocation left in the world is the compilation's, not the next evaluation's. */
        k->w->status = HD_OK;
        k->w->failure = FAILURE_NONE;
    } else {
        *out = k->c;
    }
    return k->status;
}

static bool start(compiler *k, world *w, scope *names, hd_error *error) {
    *k = (compiler){ .w = w, .names = names, .error = error };
    k->c = env_new0(&w->env, sizeof *k->c);
    if (!k->c) return refuse_nomem(k);
    k->c->w = w;
    k->c->serial = ++w->codes & CALL_SERIAL;
    return true;
}

hd_status compile_expression(world *w, scope *names, hd_value form, code **out, hd_error *error) {
    compiler k;
    if (start(&k, w, names, error) && compile_value(&k, form)) emit(&k, CODE_RETURN, 0, 0, 0);
    return finish(&k, out);
}

hd_status compile_statements(world *w, scope *names, hd_value form, code **out, hd_error *error) {
    compiler k;
    uint32_t none;
    if (!start(&k, w, names, error)) return finish(&k, out);
    if (hd_value_kind(form) != HD_KIND_ARRAY) refuse(&k, "statements are a list");
    for (size_t i = 0; i < form_count(form) && !k.status; i++) {
        if (!enter(&k, (uint32_t)i)) break;
        compile_statement(&k, hd_value_index(form, i));
        leave(&k);
    }
    if (!k.status && constant(&k, ev_none(), &none)) emit(&k, CODE_CONST, 0, none, 0);
    emit(&k, CODE_RETURN, 0, 0, 0);
    return finish(&k, out);
}
