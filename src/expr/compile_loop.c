/* compile_loop.c -- comprehensions and generators: see compiler.h.
 *
 *     ["listcomp", element, ["for", target, iterable, condition...], ...]
 *
 * Loops are inline: the iterator and what is collected are locals. A generator's body stands aside; the
 * machine runs it until YIELD, and its state is its locals and the place to go on. */
#include "expr/compiler.h"

typedef enum collect { COLLECT_LIST, COLLECT_SET, COLLECT_DICT, COLLECT_YIELD } collect;

typedef struct comprehension {
    hd_value form;
    collect what;
    uint32_t into;   /* the local that collects */
    uint32_t clause; /* the first clause: behind the element, or key and value */
    uint32_t first;  /* the local with the iterator of the first clause */
} comprehension;

/* ---- Names ------------------------------------------------------------------------------- */

/* Each name of a target becomes a local of the comprehension. */
static bool declare(compiler *k, hd_value target) {
    if (is_form(target, "name")) {
        local_name l = { .slot = k->c->locals };
        if (!form_text(k, target, 1, "a name", &l.name, &l.length)) return false;
        new_local(k);
        if (!vec_push(&k->w->env, &k->locals, l)) return refuse_nomem(k);
        return emit(k, CODE_CLEAR_LOCAL, 0, l.slot, 0);
    }
    if (is_form(target, "tuple") || is_form(target, "list") || is_star(target, "*")) {
        for (size_t i = 1; i < form_count(target); i++) {
            if (!enter(k, (uint32_t)i) || !declare(k, hd_value_index(target, i))) return false;
            leave(k);
        }
        return true;
    }
    return refuse(k, "the target of a comprehension is a name or a tuple of names");
}

static bool declare_all(compiler *k, const comprehension *c) {
    for (size_t i = c->clause; i < form_count(c->form); i++) {
        hd_value clause = hd_value_index(c->form, i);
        if (!enter(k, (uint32_t)i)) return false;
        if (!is_form(clause, "for") || form_count(clause) < 3)
            return refuse(k, "a clause is [\"for\", target, iterable, conditions...]");
        if (!enter(k, 1) || !declare(k, hd_value_index(clause, 1))) return false;
        leave(k);
        leave(k);
    }
    return true;
}

/* ---- Loops ------------------------------------------------------------------------------- */

static bool compile_body(compiler *k, const comprehension *c) {
    if (!compile_element(k, c->form, 1)) return false;
    if (c->what == COLLECT_DICT && !compile_element(k, c->form, 2)) return false;
    switch (c->what) {
    case COLLECT_LIST: return emit(k, CODE_APPEND, 0, c->into, 0);
    case COLLECT_SET: return emit(k, CODE_ADD, 0, c->into, 0);
    case COLLECT_DICT: return emit(k, CODE_PUT, 0, c->into, 0);
    default: return emit(k, CODE_YIELD, 0, 0, 0);
    }
}

static bool compile_clauses(compiler *k, const comprehension *c, size_t index);

static bool compile_clause(compiler *k, const comprehension *c, hd_value clause, size_t index) {
    uint32_t iterator = index == c->clause ? c->first : new_local(k);
    if (index != c->clause) {
        if (!compile_element(k, clause, 2)) return false;
        emit(k, CODE_ITER, 0, iterator, 0);
    }
    uint32_t start = k->c->insns.count;
    emit(k, CODE_NEXT, 0, iterator, UINT32_MAX);
    if (!enter(k, 1) || !compile_store(k, hd_value_index(clause, 1))) return false;
    leave(k);
    for (size_t i = 3; i < form_count(clause); i++) {
        if (!compile_element(k, clause, i)) return false;
        emit(k, CODE_JUMP_FALSE, 0, start, 0);
    }
    if (!compile_clauses(k, c, index + 1)) return false;
    emit(k, CODE_JUMP, 0, start, 0);
    patch_next(k, start);
    return !k->status;
}

/* One clause inside the other; recursion is bounded by enter(). */
static bool compile_clauses(compiler *k, const comprehension *c, size_t index) {
    if (index >= form_count(c->form)) return compile_body(k, c);
    if (!enter(k, (uint32_t)index)) return false;
    uint32_t depth = k->depth;
    /* The body is not below the clause on the path. */
    bool good = compile_clause(k, c, hd_value_index(c->form, index), index);
    assert(!good || k->depth == depth);
    (void)depth;
    leave(k);
    return good && !k->status;
}

/* The iterable of the first clause belongs to what is around: it is evaluated before the names exist. */
static bool compile_first(compiler *k, comprehension *c) {
    hd_value clause = hd_value_index(c->form, c->clause);
    if (form_count(c->form) <= c->clause) return refuse(k, "a comprehension needs a clause");
    if (!is_form(clause, "for") || form_count(clause) < 3)
        return enter(k, c->clause) &&
               refuse(k, "a clause is [\"for\", target, iterable, conditions...]");
    if (!enter(k, c->clause) || !compile_element(k, clause, 2)) return false;
    leave(k);
    c->first = new_local(k);
    return emit(k, CODE_ITER, 0, c->first, 0);
}

static bool compile_inside(compiler *k, comprehension *c) {
    uint32_t known = k->locals.count;
    k->inner++;
    bool good = declare_all(k, c) && compile_clauses(k, c, c->clause);
    k->inner--;
    k->locals.count = known;
    return good;
}

static bool compile_collect(compiler *k, hd_value form, collect what, code_op make) {
    comprehension c = { .form = form, .what = what, .clause = what == COLLECT_DICT ? 3 : 2 };
    if (!compile_first(k, &c)) return false;
    c.into = new_local(k);
    emit(k, make, 0, 0, 0);
    emit(k, CODE_STORE_LOCAL, 0, c.into, 0);
    return compile_inside(k, &c) && emit(k, CODE_LOCAL, 0, c.into, 0);
}

bool compile_listcomp(compiler *k, hd_value form) {
    return compile_collect(k, form, COLLECT_LIST, CODE_LIST);
}
bool compile_setcomp(compiler *k, hd_value form) {
    return compile_collect(k, form, COLLECT_SET, CODE_SET);
}
bool compile_dictcomp(compiler *k, hd_value form) {
    return compile_collect(k, form, COLLECT_DICT, CODE_DICT);
}

bool compile_generator(compiler *k, hd_value form) {
    comprehension c = { .form = form, .what = COLLECT_YIELD, .clause = 2 };
    if (!compile_first(k, &c)) return false;
    uint32_t over = emit_jump(k, CODE_JUMP), start = k->c->insns.count;
    if (!compile_inside(k, &c)) return false;
    emit(k, CODE_END, 0, 0, 0);
    patch(k, over);
    return emit(k, CODE_GENERATOR, 0, start, new_local(k));
}
