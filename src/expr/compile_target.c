/* compile_target.c -- assignment, deletion, statements: see compiler.h. */
#include "expr/compiler.h"

#include "expr/arith.h"
#include "expr/operator.h"

/* ---- Storing ----------------------------------------------------------------------------- */

bool compile_slot(compiler *k, const char *name, size_t length, uint32_t *slot) {
    hd_status status = scope_slot(k->names, name, length, slot);
    if (status == HD_SYNTAX) return refuse(k, "a name holds NUL");
    return !status || (status == HD_NOMEM ? refuse_nomem(k) : refuse(k, "too many variables"));
}

/* The value is on the stack. A walrus in a comprehension binds a variable of the frame. */
bool compile_name_store(compiler *k, const char *name, size_t length, bool comprehension) {
    uint32_t slot;
    for (uint32_t i = k->locals.count; comprehension && i-- > 0;) {
        const local_name *l = &k->locals.items[i];
        if (l->length == length && memcmp(l->name, name, length) == 0)
            return emit(k, CODE_STORE_LOCAL, 0, l->slot, 0);
    }
    if (!compile_slot(k, name, length, &slot)) return false;
    return emit(k, CODE_STORE_NAME, 0, slot, 0);
}

static bool attr_name(compiler *k, hd_value target, uint32_t *at) {
    const char *name;
    size_t length;
    if (form_count(target) != 3) return refuse(k, "'attr' takes an expression and a name");
    return form_text(k, target, 2, "the name of an attribute", &name, &length) &&
           constant_text(k, name, length, at);
}

static bool compile_parts(compiler *k, hd_value target, size_t from, size_t count) {
    for (size_t i = from; i < from + count; i++)
        if (!compile_element(k, target, i)) return false;
    return true;
}

static bool store_parts(compiler *k, hd_value target) {
    size_t n = form_count(target), star = 0;
    for (size_t i = 1; i < n; i++) {
        if (!is_star(hd_value_index(target, i), "*")) continue;
        if (star) return refuse(k, "multiple starred expressions in assignment");
        star = i;
    }
    if (n > 65000) return refuse(k, "too many targets");
    if (star) emit(k, CODE_UNPACK_REST, 0, (uint32_t)star - 1, (uint32_t)(n - 1 - star));
    else emit(k, CODE_UNPACK, 0, (uint32_t)n - 1, 0);
    for (size_t i = 1; i < n; i++) {
        hd_value part = hd_value_index(target, i);
        if (!enter(k, (uint32_t)i)) return false;
        if (!compile_store(k, i == star ? hd_value_index(part, 1) : part)) return false;
        leave(k);
    }
    return !k->status;
}

bool compile_store(compiler *k, hd_value target) {
    const char *name;
    size_t length;
    uint32_t at;
    if (is_form(target, "name") && form_count(target) == 2)
        return form_text(k, target, 1, "a name", &name, &length) &&
               compile_name_store(k, name, length, true);
    if (is_form(target, "attr"))
        return attr_name(k, target, &at) && compile_element(k, target, 1) &&
               emit(k, CODE_SET_ATTR, 0, at, 0);
    if (is_form(target, "item") && form_count(target) == 3)
        return compile_parts(k, target, 1, 2) && emit(k, CODE_SET_ITEM, 0, 0, 0);
    if (is_form(target, "slice") && form_count(target) == 5)
        return compile_parts(k, target, 1, 4) && emit(k, CODE_SET_SLICE, 0, 0, 0);
    if (is_form(target, "tuple") || is_form(target, "list")) return store_parts(k, target);
    return refuse(k, "this cannot be assigned to");
}

/* ---- Deleting ---------------------------------------------------------------------------- */

static bool delete_name(compiler *k, hd_value target) {
    const char *name;
    size_t length;
    uint32_t slot;
    if (!form_text(k, target, 1, "a name", &name, &length)) return false;
    if (!compile_slot(k, name, length, &slot)) return false;
    return emit(k, CODE_DELETE_NAME, 0, slot, 0);
}

static bool delete_target(compiler *k, hd_value target) {
    uint32_t at;
    if (is_form(target, "name") && form_count(target) == 2) return delete_name(k, target);
    if (is_form(target, "attr"))
        return attr_name(k, target, &at) && compile_element(k, target, 1) &&
               emit(k, CODE_DELETE_ATTR, 0, at, 0);
    if (is_form(target, "item") && form_count(target) == 3)
        return compile_parts(k, target, 1, 2) && emit(k, CODE_DELETE_ITEM, 0, 0, 0);
    if (is_form(target, "slice") && form_count(target) == 5)
        return compile_parts(k, target, 1, 4) && emit(k, CODE_DELETE_SLICE, 0, 0, 0);
    return refuse(k, "this cannot be deleted");
}

/* ---- Augmented assignment ---------------------------------------------------------------- */

static bool augment_place(compiler *k, hd_value form, binary_op op, hd_value target,
                          uint32_t parts) {
    bool item = parts == 2;
    if (!enter(k, 2) || !compile_parts(k, target, 1, parts)) return false;
    leave(k);
    emit(k, item ? CODE_DUP2 : CODE_DUP4, 0, 0, 0);
    emit(k, item ? CODE_ITEM : CODE_SLICE, 0, 0, 0);
    if (!compile_element(k, form, 3)) return false;
    emit(k, CODE_INPLACE, op, 0, 0);
    emit(k, item ? CODE_ROT3 : CODE_ROT5, 0, 0, 0); /* the value below its place */
    return emit(k, item ? CODE_SET_ITEM : CODE_SET_SLICE, 0, 0, 0);
}

static bool augment_attr(compiler *k, hd_value form, binary_op op, hd_value target) {
    uint32_t at;
    if (!enter(k, 2) || !attr_name(k, target, &at) || !compile_element(k, target, 1)) return false;
    leave(k);
    emit(k, CODE_DUP, 0, 0, 0);
    emit(k, CODE_ATTR, 0, at, 0);
    if (!compile_element(k, form, 3)) return false;
    emit(k, CODE_INPLACE, op, 0, 0);
    emit(k, CODE_ROT2, 0, 0, 0);
    return emit(k, CODE_SET_ATTR, 0, at, 0);
}

/* ["aug", "+", target, value] */
static bool compile_aug(compiler *k, hd_value form) {
    const char *name;
    size_t length;
    binary_op op = 0;
    hd_value target = hd_value_index(form, 2);
    if (form_count(form) != 4) return refuse(k, "'aug' takes an operator, a target and a value");
    if (!form_text(k, form, 1, "an operator", &name, &length)) return false;
    while (op < BINARY_OPS &&
           !(strlen(binary_text(op)) == length && memcmp(binary_text(op), name, length) == 0))
        op++;
    if (op == BINARY_OPS)
        return refuse(k, "'%.*s' is no operator", (int)(length < 60 ? length : 60), name);
    if (is_form(target, "item") && form_count(target) == 3)
        return augment_place(k, form, op, target, 2);
    if (is_form(target, "slice") && form_count(target) == 5)
        return augment_place(k, form, op, target, 4);
    if (is_form(target, "attr")) return augment_attr(k, form, op, target);
    if (!is_form(target, "name")) return enter(k, 2) && refuse(k, "this cannot be assigned to");
    if (!compile_element(k, form, 2) || !compile_element(k, form, 3)) return false;
    emit(k, CODE_INPLACE, op, 0, 0);
    if (!enter(k, 2) || !compile_store(k, target)) return false;
    leave(k);
    return !k->status;
}

/* ---- Statements -------------------------------------------------------------------------- */

/* ["assign", value, target, ...] */
static bool compile_assign(compiler *k, hd_value form) {
    size_t n = form_count(form);
    if (n < 3) return refuse(k, "'assign' takes a value and targets");
    if (!compile_element(k, form, 1)) return false;
    for (size_t i = 2; i < n; i++) {
        if (i + 1 < n) emit(k, CODE_DUP, 0, 0, 0);
        if (!enter(k, (uint32_t)i) || !compile_store(k, hd_value_index(form, i))) return false;
        leave(k);
    }
    return !k->status;
}

bool compile_statement(compiler *k, hd_value form) {
    if (is_form(form, "assign")) return compile_assign(k, form);
    if (is_form(form, "aug")) return compile_aug(k, form);
    if (is_form(form, "expr")) {
        if (form_count(form) != 2) return refuse(k, "'expr' takes one expression");
        return compile_element(k, form, 1) && emit(k, CODE_POP, 0, 0, 0);
    }
    if (!is_form(form, "del") || form_count(form) < 2)
        return refuse(k, "a statement is assign, aug, del or expr");
    for (size_t i = 1; i < form_count(form); i++) {
        if (!enter(k, (uint32_t)i) || !delete_target(k, hd_value_index(form, i))) return false;
        leave(k);
    }
    return !k->status;
}
