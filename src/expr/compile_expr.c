/* compile_expr.c -- expressions: see compiler.h. */
#include "expr/compiler.h"

#include "expr/arith.h"
#include "expr/compare.h"
#include "expr/encode.h"
#include "expr/operator.h"
#include "expr/text.h"

typedef bool (*compile_fn)(compiler *k, hd_value form);

bool is_form(hd_value form, const char *op) {
    size_t length;
    if (hd_value_kind(form) != HD_KIND_ARRAY) return false;
    const char *t = hd_value_text(hd_value_index(form, 0), &length);
    return t && strlen(op) == length && memcmp(t, op, length) == 0;
}

bool is_star(hd_value form, const char *star) {
    return is_form(form, star) && form_count(form) == 2;
}

bool compile_element(compiler *k, hd_value form, size_t index) {
    if (!enter(k, (uint32_t)index)) return false;
    compile_value(k, hd_value_index(form, index));
    leave(k);
    return !k->status;
}

static bool counts(compiler *k, hd_value form, size_t least, size_t most) {
    size_t n = form_count(form) - 1;
    if (n >= least && n <= most) return true;
    return refuse(k, "'%s' takes %zu%s, has %zu", hd_value_as_text(hd_value_index(form, 0), ""),
                  least, least == most ? "" : " or more", n);
}

/* ---- Leaves ------------------------------------------------------------------------------ */

static bool compile_const(compiler *k, hd_value form) {
    uint32_t at;
    hd_error error;
    ev v;
    if (!counts(k, form, 1, 1)) return false;
    hd_status status = decode_value(k->w, hd_value_index(form, 1), &v, &error);
    if (status == HD_NOMEM) return refuse_nomem(k);
    if (status) return enter(k, 1) && refuse(k, "%s", error.message);
    if (ev_has_identity(v)) return refuse(k, "a constant must be immutable");
    return constant(k, v, &at) && emit(k, CODE_CONST, 0, at, 0);
}

static bool compile_scalar(compiler *k, hd_value form) {
    ev v;
    uint32_t at;
    size_t length;
    const char *chars = hd_value_text(form, &length);
    switch (hd_value_kind(form)) {
    case HD_KIND_NULL: v = ev_none(); break;
    case HD_KIND_BOOL: v = ev_bool(hd_value_as_bool(form, false)); break;
    case HD_KIND_INT: v = ev_int(hd_value_as_int(form, 0)); break;
    case HD_KIND_DOUBLE: v = ev_float(hd_value_as_double(form, 0)); break;
    case HD_KIND_STRING:
        return constant_text(k, chars, length, &at) && emit(k, CODE_CONST, 0, at, 0);
    default:
        return refuse(k, "%s is no form: write [\"const\", ...]",
                      hd_kind_name(hd_value_kind(form)));
    }
    return constant(k, v, &at) && emit(k, CODE_CONST, 0, at, 0);
}

static bool compile_name(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    uint32_t slot, at;
    if (!counts(k, form, 1, 1) || !form_text(k, form, 1, "a name", &name, &length)) return false;
    for (uint32_t i = k->locals.count; i-- > 0;) {
        const local_name *l = &k->locals.items[i];
        if (l->length != length || memcmp(l->name, name, length) != 0) continue;
        return constant_text(k, name, length, &at) && emit(k, CODE_LOCAL, 0, l->slot, at);
    }
    if (!compile_slot(k, name, length, &slot)) return false;
    return emit(k, CODE_NAME, k->inner > 0, slot, 0);
}

static bool compile_type(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    uint32_t at;
    if (!counts(k, form, 1, 1) || !form_text(k, form, 1, "the name of a class", &name, &length))
        return false;
    uint32_t class_ = classes_find(k->w->classes, name, length);
    if (class_ == CLASS_NONE) return refuse(k, "there is no class '%.*s'", (int)length, name);
    return constant(k, ev_type(class_), &at) && emit(k, CODE_CONST, 0, at, 0);
}

/* ---- Operators --------------------------------------------------------------------------- */

static bool compile_unary(compiler *k, hd_value form, unary_op op) {
    return counts(k, form, 1, 1) && compile_element(k, form, 1) && emit(k, CODE_UNARY, op, 0, 0);
}

static bool compile_neg(compiler *k, hd_value form) { return compile_unary(k, form, UNARY_NEG); }
static bool compile_pos(compiler *k, hd_value form) { return compile_unary(k, form, UNARY_POS); }
static bool compile_inv(compiler *k, hd_value form) { return compile_unary(k, form, UNARY_INVERT); }
static bool compile_not(compiler *k, hd_value form) { return compile_unary(k, form, UNARY_NOT); }

static bool compile_binary(compiler *k, hd_value form, binary_op op) {
    return counts(k, form, 2, 2) && compile_element(k, form, 1) && compile_element(k, form, 2) &&
           emit(k, CODE_BINARY, op, 0, 0);
}

static bool compile_logic(compiler *k, hd_value form, code_op op) {
    size_t n = form_count(form);
    uint32_t jumps[256];
    if (!counts(k, form, 2, 255)) return false;
    for (size_t i = 1; i < n; i++) {
        if (!compile_element(k, form, i)) return false;
        if (i + 1 < n) jumps[i] = emit_jump(k, op);
    }
    for (size_t i = 1; i + 1 < n; i++) patch(k, jumps[i]);
    return !k->status;
}

static bool compile_and(compiler *k, hd_value form) { return compile_logic(k, form, CODE_AND); }
static bool compile_or(compiler *k, hd_value form) { return compile_logic(k, form, CODE_OR); }

static bool compare_op_of(compiler *k, hd_value form, size_t index, compare_op *out) {
    const char *name;
    size_t length;
    if (!form_text(k, form, index, "an operator", &name, &length)) return false;
    for (*out = 0; *out < COMPARE_OPS; ++*out)
        if (strlen(compare_text(*out)) == length && memcmp(compare_text(*out), name, length) == 0)
            return true;
    return enter(k, (uint32_t)index) && refuse(k, "'%.*s' is no comparison", (int)length, name);
}

/* a < b < c: b is evaluated once, c only if a < b. */
static bool compile_cmp(compiler *k, hd_value form) {
    size_t n = form_count(form);
    uint32_t jumps[128], count = 0;
    if (!counts(k, form, 3, 255)) return false;
    if (n % 2 != 0) return refuse(k, "'cmp' alternates operands and operators");
    if (!compile_element(k, form, 1)) return false;
    for (size_t i = 2; i < n; i += 2) {
        compare_op op;
        bool last = i + 2 >= n;
        if (!compare_op_of(k, form, i, &op) || !compile_element(k, form, i + 1)) return false;
        if (!last) emit(k, CODE_DUP, 0, 0, 0), emit(k, CODE_ROT3, 0, 0, 0);
        emit(k, CODE_COMPARE, op, 0, 0);
        if (!last) jumps[count++] = emit_jump(k, CODE_AND);
    }
    if (!count) return !k->status;
    uint32_t end = emit_jump(k, CODE_JUMP);
    for (uint32_t i = 0; i < count; i++) patch(k, jumps[i]);
    emit(k, CODE_ROT2, 0, 0, 0); /* false is above the operand that was kept */
    emit(k, CODE_POP, 0, 0, 0);
    patch(k, end);
    return !k->status;
}

static bool compile_if(compiler *k, hd_value form) {
    if (!counts(k, form, 3, 3) || !compile_element(k, form, 1)) return false;
    uint32_t otherwise = emit_jump(k, CODE_JUMP_FALSE);
    if (!compile_element(k, form, 2)) return false;
    uint32_t end = emit_jump(k, CODE_JUMP);
    patch(k, otherwise);
    if (!compile_element(k, form, 3)) return false;
    patch(k, end);
    return !k->status;
}

/* ---- Displays ---------------------------------------------------------------------------- */

static bool has_star(hd_value form, const char *star) {
    for (size_t i = 1; i < form_count(form); i++)
        if (is_star(hd_value_index(form, i), star)) return true;
    return false;
}

/* ["*", e] inside a display or call: e. */
static bool compile_starred(compiler *k, hd_value form, size_t index) {
    if (!enter(k, (uint32_t)index)) return false;
    hd_value star = hd_value_index(form, index);
    if (counts(k, star, 1, 1)) compile_element(k, star, 1);
    leave(k);
    return !k->status;
}

/* With stars: element by element into a local. */
static bool compile_spread(compiler *k, hd_value form, code_op make, code_op one, code_op many) {
    uint32_t local = new_local(k);
    emit(k, make, 0, 0, 0);
    emit(k, CODE_STORE_LOCAL, 0, local, 0);
    for (size_t i = 1; i < form_count(form); i++) {
        bool star = is_star(hd_value_index(form, i), "*");
        if (!(star ? compile_starred(k, form, i) : compile_element(k, form, i))) return false;
        emit(k, star ? many : one, 0, local, 0);
    }
    return emit(k, CODE_LOCAL, 0, local, 0);
}

static bool compile_display(compiler *k, hd_value form, code_op make, code_op one, code_op many) {
    size_t n = form_count(form);
    if (has_star(form, "*")) return compile_spread(k, form, make, one, many);
    for (size_t i = 1; i < n; i++)
        if (!compile_element(k, form, i)) return false;
    return emit(k, make, 0, (uint32_t)n - 1, 0);
}

static bool compile_list(compiler *k, hd_value form) {
    return compile_display(k, form, CODE_LIST, CODE_APPEND, CODE_EXTEND);
}

static bool compile_set(compiler *k, hd_value form) {
    return compile_display(k, form, CODE_SET, CODE_ADD, CODE_UPDATE);
}

static bool compile_tuple(compiler *k, hd_value form) {
    if (!has_star(form, "*")) return compile_display(k, form, CODE_TUPLE, 0, 0);
    return compile_spread(k, form, CODE_LIST, CODE_APPEND, CODE_EXTEND) &&
           emit(k, CODE_TO_TUPLE, 0, 0, 0);
}

/* ["dict", key, value, ..., ["**", e], ...] */
static bool compile_dict(compiler *k, hd_value form) {
    size_t n = form_count(form);
    bool stars = has_star(form, "**");
    uint32_t local = stars ? new_local(k) : 0;
    if (stars) {
        emit(k, CODE_DICT, 0, 0, 0);
        emit(k, CODE_STORE_LOCAL, 0, local, 0);
    }
    for (size_t i = 1; i < n;) {
        if (is_star(hd_value_index(form, i), "**")) {
            if (!compile_starred(k, form, i++)) return false;
            emit(k, CODE_MERGE, 0, local, 0);
            continue;
        }
        if (i + 1 >= n) return refuse(k, "the last key of a dict has no value");
        if (!compile_element(k, form, i) || !compile_element(k, form, i + 1)) return false;
        i += 2;
        if (stars) emit(k, CODE_PUT, 0, local, 0);
    }
    return stars ? emit(k, CODE_LOCAL, 0, local, 0)
                 : emit(k, CODE_DICT, 0, (uint32_t)(n - 1) / 2, 0);
}

/* ---- Places ------------------------------------------------------------------------------ */

static bool compile_attr(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    uint32_t at;
    return counts(k, form, 2, 2) && compile_element(k, form, 1) &&
           form_text(k, form, 2, "the name of an attribute", &name, &length) &&
           constant_text(k, name, length, &at) && emit(k, CODE_ATTR, 0, at, 0);
}

static bool compile_item(compiler *k, hd_value form) {
    return counts(k, form, 2, 2) && compile_element(k, form, 1) && compile_element(k, form, 2) &&
           emit(k, CODE_ITEM, 0, 0, 0);
}

static bool compile_slice(compiler *k, hd_value form) {
    if (!counts(k, form, 4, 4)) return false;
    for (size_t i = 1; i <= 4; i++)
        if (!compile_element(k, form, i)) return false;
    return emit(k, CODE_SLICE, 0, 0, 0);
}

static bool compile_walrus(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    if (!counts(k, form, 2, 2) || !form_text(k, form, 1, "a name", &name, &length)) return false;
    /* In CPython the name is one of the lambda alone. */
    if (k->lambdas) return refuse(k, "':=' in a lambda: assign '%.*s' outside", (int)length, name);
    return compile_element(k, form, 2) && emit(k, CODE_DUP, 0, 0, 0) &&
           compile_name_store(k, name, length, false);
}

/* ---- f-strings --------------------------------------------------------------------------- */

static bool compile_fmt(compiler *k, hd_value form) {
    size_t length;
    const char *conversion = hd_value_text(hd_value_index(form, 2), &length);
    if (!counts(k, form, 3, 3)) return false;
    if (conversion && (length != 1 || !strchr("rsa", conversion[0])))
        return refuse(k, "a conversion is r, s or a");
    if (!compile_element(k, form, 1)) return false;
    hd_value spec = hd_value_index(form, 3);
    bool has_spec = hd_value_kind(spec) != HD_KIND_NULL;
    if (has_spec && hd_value_kind(spec) != HD_KIND_STRING && !is_form(spec, "fstr"))
        return refuse(k, "a format specification is a string or an fstr");
    if (has_spec && !compile_element(k, form, 3)) return false;
    return emit(k, CODE_FORMAT, conversion ? (uint8_t)conversion[0] : 0, has_spec, 0);
}

static bool compile_fstr(compiler *k, hd_value form) {
    size_t n = form_count(form);
    for (size_t i = 1; i < n; i++) {
        hd_value part = hd_value_index(form, i);
        if (!enter(k, (uint32_t)i)) return false;
        if (hd_value_kind(part) == HD_KIND_STRING) compile_scalar(k, part);
        else if (is_form(part, "fmt")) compile_fmt(k, part);
        else refuse(k, "a part of an fstr is a string or [\"fmt\", ...]");
        leave(k);
    }
    return emit(k, CODE_CONCAT, 0, (uint32_t)n - 1, 0);
}

/* ---- All --------------------------------------------------------------------------------- */

static const struct {
    const char *op;
    compile_fn fn;
} forms[] = {
    { "name", compile_name },       { "const", compile_const },
    { "type", compile_type },       { "neg", compile_neg },
    { "pos", compile_pos },         { "inv", compile_inv },
    { "not", compile_not },         { "and", compile_and },
    { "or", compile_or },           { "cmp", compile_cmp },
    { "if", compile_if },           { "list", compile_list },
    { "tuple", compile_tuple },     { "set", compile_set },
    { "dict", compile_dict },       { "attr", compile_attr },
    { "item", compile_item },       { "slice", compile_slice },
    { ":=", compile_walrus },       { "fstr", compile_fstr },
    { "call", compile_call },       { "method", compile_method },
    { "new", compile_new },         { "lambda", compile_function },
    { "func", compile_function },   { "listcomp", compile_listcomp },
    { "setcomp", compile_setcomp }, { "dictcomp", compile_dictcomp },
    { "gen", compile_generator },
};

static bool compile_form(compiler *k, hd_value form) {
    size_t length;
    const char *op = hd_value_text(hd_value_index(form, 0), &length);
    if (!op) return refuse(k, "a form is an array that begins with the name of an operation");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strlen(forms[i].op) == length && memcmp(forms[i].op, op, length) == 0)
            return forms[i].fn(k, form);
    for (binary_op b = 0; b < BINARY_OPS; b++)
        if (strlen(binary_text(b)) == length && memcmp(binary_text(b), op, length) == 0)
            return compile_binary(k, form, b);
    return refuse(k, "there is no operation '%.*s'", (int)(length < 60 ? length : 60), op);
}

bool compile_value(compiler *k, hd_value form) {
    if (hd_value_kind(form) != HD_KIND_ARRAY) return compile_scalar(k, form);
    return compile_form(k, form);
}
