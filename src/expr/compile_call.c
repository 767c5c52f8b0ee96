/* compile_call.c -- calls of functions, methods and classes: see compiler.h.
 *
 *     ["call", "len", [args], [[name, value], ...]]      the list of names may be left out
 *
 * Without stars, arguments are pushed and the names are a constant. With ["*", e] or ["**", e] they are
 * collected in a list and a dict. */
#include "expr/compiler.h"

#include "expr/builtins.h"
#include "expr/tuple.h"

enum { CALL_OF_BUILTIN, CALL_OF_METHOD, CALL_OF_CLASS }; /* a of CALL_STAR */

static const code_op plain_ops[] = { CODE_CALL, CODE_METHOD, CODE_NEW };

static bool has_stars(hd_value args, hd_value names) {
    for (size_t i = 0; i < form_count(args); i++)
        if (is_star(hd_value_index(args, i), "*")) return true;
    for (size_t i = 0; i < form_count(names); i++)
        if (is_star(hd_value_index(names, i), "**")) return true;
    return false;
}

static bool lists_fit(compiler *k, hd_value form, size_t at) {
    hd_value args = hd_value_index(form, at), names = hd_value_index(form, at + 1);
    size_t n = form_count(form);
    if (n < at + 1 || n > at + 2)
        return refuse(k, "a call is its callee, a list of arguments and a list of names");
    if (hd_value_kind(args) != HD_KIND_ARRAY ||
        (n == at + 2 && hd_value_kind(names) != HD_KIND_ARRAY))
        return refuse(k, "arguments are a list");
    if (form_count(args) > 250 || form_count(names) > 250)
        return refuse(k, "more than 250 arguments");
    for (size_t i = 0; i < form_count(names); i++) {
        hd_value pair = hd_value_index(names, i);
        if (form_count(pair) != 2 || hd_value_kind(hd_value_index(pair, 0)) != HD_KIND_STRING)
            return refuse(k, "an argument by name is [name, value]");
    }
    return true;
}

/* ---- Without stars ----------------------------------------------------------------------- */

static bool names_constant(compiler *k, hd_value names, uint32_t *out) {
    ev all[250];
    size_t n = form_count(names);
    *out = CODE_NO_NAMES;
    if (!n) return true;
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *name = hd_value_text(hd_value_index(hd_value_index(names, i), 0), &length);
        uint32_t at;
        if (!constant_text(k, name, length, &at)) return false;
        all[i] = k->c->constants.items[at];
        for (size_t j = 0; j < i; j++)
            if (all[j].o == all[i].o) return refuse(k, "keyword argument repeated: %s", name);
    }
    return constant(k, tuple_of(k->w, all, n), out);
}

static bool push_args(compiler *k, hd_value form, size_t at) {
    hd_value args = hd_value_index(form, at), names = hd_value_index(form, at + 1);
    if (!enter(k, (uint32_t)at)) return false;
    for (size_t i = 0; i < form_count(args); i++)
        if (!compile_element(k, args, i)) return false;
    leave(k);
    if (!form_count(names)) return !k->status;
    if (!enter(k, (uint32_t)at + 1)) return false;
    for (size_t i = 0; i < form_count(names); i++) {
        if (!enter(k, (uint32_t)i) || !compile_element(k, hd_value_index(names, i), 1))
            return false;
        leave(k);
    }
    leave(k);
    return !k->status;
}

/* ---- With stars -------------------------------------------------------------------------- */

/* f(*v): `v` is iterated when the names have been evaluated, and then the complaint names the callee. */
static bool is_lone_star(hd_value args) {
    return form_count(args) == 1 && is_star(hd_value_index(args, 0), "*");
}

static bool collect_args(compiler *k, hd_value form, size_t at, uint32_t into) {
    hd_value args = hd_value_index(form, at);
    if (!enter(k, (uint32_t)at)) return false;
    for (size_t i = 0; i < form_count(args); i++) {
        hd_value arg = hd_value_index(args, i);
        if (!is_star(arg, "*")) {
            if (!compile_element(k, args, i)) return false;
            emit(k, CODE_APPEND, 0, into, 0);
            continue;
        }
        if (!enter(k, (uint32_t)i) || !compile_element(k, arg, 1)) return false;
        leave(k);
        if (is_lone_star(args)) emit(k, CODE_STORE_LOCAL, 0, into, 0);
        else emit(k, CODE_EXTEND, 0, into, 0);
    }
    leave(k);
    return !k->status;
}

static bool collect_names(compiler *k, hd_value form, size_t at, uint32_t kind, uint32_t target,
                          uint32_t into) {
    hd_value names = hd_value_index(form, at);
    for (size_t i = 0; i < form_count(names); i++) {
        hd_value pair = hd_value_index(names, i);
        size_t length;
        const char *name = hd_value_text(hd_value_index(pair, 0), &length);
        uint32_t name_at;
        bool star = is_star(pair, "**");
        if (!star &&
            (!constant_text(k, name, length, &name_at) || !emit(k, CODE_CONST, 0, name_at, 0)))
            return false;
        if (!enter(k, (uint32_t)at) || !enter(k, (uint32_t)i) || !compile_element(k, pair, 1))
            return false;
        leave(k);
        leave(k);
        /* A name after ** must not be there already: a dict of one entry is checked like **. */
        if (!star) emit(k, CODE_DICT, 0, 1, 0);
        emit(k, CODE_STAR_NAMES, kind, target, into);
    }
    return !k->status;
}

static bool call_with_stars(compiler *k, hd_value form, size_t at, uint32_t kind, uint32_t target) {
    bool alone = is_lone_star(hd_value_index(form, at));
    uint32_t args = new_local(k), names = new_local(k), value = alone ? new_local(k) : args;
    emit(k, CODE_LIST, 0, 0, 0);
    emit(k, CODE_STORE_LOCAL, 0, args, 0);
    emit(k, CODE_DICT, 0, 0, 0);
    emit(k, CODE_STORE_LOCAL, 0, names, 0);
    if (!collect_args(k, form, at, value) || !collect_names(k, form, at + 1, kind, target, names))
        return false;
    if (alone) {
        emit(k, CODE_LOCAL, 0, value, 0);
        emit(k, CODE_STAR_ARGS, kind, target, args);
    }
    emit(k, CODE_LOCAL, 0, args, 0);
    emit(k, CODE_LOCAL, 0, names, 0);
    return emit(k, CODE_CALL_STAR, kind, target, 0);
}

static bool compile_elements(compiler *k, hd_value form, size_t at, uint32_t kind,
                             uint32_t target) {
    hd_value args = hd_value_index(form, at), names = hd_value_index(form, at + 1);
    uint32_t constant_at;
    if (!lists_fit(k, form, at)) return false;
    if (has_stars(args, names)) return call_with_stars(k, form, at, kind, target);
    return push_args(k, form, at) && names_constant(k, names, &constant_at) &&
           emit(k, plain_ops[kind], (uint32_t)form_count(args), target, constant_at);
}

/* ---- Callees ----------------------------------------------------------------------------- */

bool compile_call(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    if (!form_text(k, form, 1, "the name of a function", &name, &length)) return false;
    const function *f = function_find(builtins, name, length);
    if (!f) return refuse(k, "there is no function '%.*s'", (int)(length < 60 ? length : 60), name);
    return compile_elements(k, form, 2, CALL_OF_BUILTIN, (uint32_t)(f - builtins));
}

bool compile_method(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    uint32_t at;
    if (!compile_element(k, form, 1) ||
        !form_text(k, form, 2, "the name of a method", &name, &length) ||
        !constant_text(k, name, length, &at))
        return false;
    uint32_t site = k->c->methods.count; /* the receiver may have made some */
    method_site fresh = { .name = k->c->constants.items[at], .kind = EV_KINDS };
    if (!vec_push(&k->w->env, &k->c->methods, fresh)) return refuse_nomem(k);
    return emit(k, CODE_METHOD_CHECK, 0, site, 0) &&
           compile_elements(k, form, 3, CALL_OF_METHOD, site);
}

bool compile_new(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    if (!form_text(k, form, 1, "the name of a class", &name, &length)) return false;
    uint32_t class_ = classes_find(k->w->classes, name, length);
    if (class_ == CLASS_NONE)
        return refuse(
            k, "no function or class is called '%.*s'; an action is called in a step of its own",
            (int)(length < 60 ? length : 60), name);
    return compile_elements(k, form, 2, CALL_OF_CLASS, class_);
}

/* ---- Functions as values ----------------------------------------------------------------- */

/* ["func", "len"] or ["func", "str.lower"] */
static bool compile_func(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    uint32_t at, pair_at;
    if (form_count(form) != 2) return refuse(k, "'func' takes a name");
    if (!form_text(k, form, 1, "the name of a function", &name, &length)) return false;
    const char *dot = memchr(name, '.', length);
    const function *f = dot ? NULL : function_find(builtins, name, length);
    if (f)
        return constant(k, call_target(TARGET_BUILTIN, k->c->serial, (uint32_t)(f - builtins)),
                        &at) &&
               emit(k, CODE_CONST, 0, at, 0);
    uint32_t class_ = classes_find(k->w->classes, name, dot ? (size_t)(dot - name) : length);
    if (class_ == CLASS_NONE)
        return refuse(k, "there is no function '%.*s'", (int)(length < 60 ? length : 60), name);
    if (!dot) return constant(k, ev_type(class_), &at) && emit(k, CODE_CONST, 0, at, 0);
    if (!constant_text(k, dot + 1, length - (size_t)(dot + 1 - name), &at)) return false;
    ev pair = tuple_pair(k->w, ev_type(class_), k->c->constants.items[at]);
    return constant(k, pair, &pair_at) &&
           constant(k, call_target(TARGET_METHOD, k->c->serial, pair_at), &at) &&
           emit(k, CODE_CONST, 0, at, 0);
}

/* ["lambda", ["x", ...], body]: the body stands aside and is jumped over. */
static bool compile_lambda(compiler *k, hd_value form) {
    hd_value params = hd_value_index(form, 1);
    uint32_t at, index = k->c->lambdas.count, known = k->locals.count;
    if (form_count(form) != 3 || hd_value_kind(params) != HD_KIND_ARRAY || form_count(params) > 16)
        return refuse(k, "'lambda' takes a list of names and an expression");
    if (!vec_push(&k->w->env, &k->c->lambdas, ((lambda){ 0 }))) return refuse_nomem(k);
    uint32_t over = emit_jump(k, CODE_JUMP);
    lambda l = { .start = k->c->insns.count,
                 .params = (uint32_t)form_count(params),
                 .first = k->c->locals };
    for (size_t i = 0; i < form_count(params); i++) {
        local_name param = { .slot = new_local(k) };
        if (!form_text(k, params, i, "a parameter", &param.name, &param.length)) return false;
        if (!vec_push(&k->w->env, &k->locals, param)) return refuse_nomem(k);
    }
    k->inner++;
    k->lambdas++;
    bool good = compile_element(k, form, 2);
    k->lambdas--;
    k->inner--;
    k->locals.count = known;
    emit(k, CODE_RETURN, 0, 0, 0);
    patch(k, over);
    if (!good) return false;
    k->c->lambdas.items[index] = l;
    return constant(k, call_target(TARGET_LAMBDA, k->c->serial, index), &at) &&
           emit(k, CODE_CONST, 0, at, 0);
}

bool compile_function(compiler *k, hd_value form) {
    return is_form(form, "func") ? compile_func(k, form) : compile_lambda(k, form);
}
