/* explain.c -- which loops of a workflow run in parallel, and why the others do not.
 *
 * A FAN_HEAD runs its branches in parallel. A LOOP_HEAD runs one iteration after the other; this file finds what in it
 * needs that: a condition, a variable that an iteration reads and an earlier one has assigned, an object from outside
 * that its body changes, a way out. A loop without any of these could be a FAN_HEAD, and is told so. Where the head of
 * a loop has a "comment", a compiler has judged it by rules of its own, and its reason is the answer. A loop with an
 * empty comment does not stand in the source, and is left out.
 *
 * Cost: O(nodes * variables / 64) for each loop. */
#include "base/env.h"
#include "value/heap.h"
#include "workflow/outline.h"
#include <heddle/workflow.h>

typedef struct looker {
    const plan *p;
    const plan_function *f;
    uint32_t f_index;
    uint32_t head;
    hd_pool *pool;
    uint8_t *seen;    /* by variable: assigned in the iteration so far */
    uint8_t *early;   /* read before that */
    uint8_t *changed; /* assigned anywhere in the body */
    hd_value why;     /* texts */
    bool sequential;  /* one of them forbids parallel iterations */
} looker;

static bool is_inside(const plan_function *f, const plan_node *n, uint32_t head) {
    for (uint32_t at = n->loop; at != PLAN_NONE; at = f->nodes[at].loop)
        if (at == head) return true;
    return false;
}

static void because(looker *l, bool forbids, hd_value text_) {
    l->why = hd_array_append(l->pool, l->why, text_);
    l->sequential = l->sequential || forbids;
}

/* ---- variables */

static void note_code(looker *l, const code *c) {
    for (uint32_t i = 0; c && i < c->insns.count; i++) {
        const insn *in = &c->insns.items[i];
        bool reads = in->op == CODE_NAME || in->op == CODE_DELETE_NAME;
        if (reads && !l->seen[in->b]) l->early[in->b] = 1;
        if (in->op == CODE_STORE_NAME) l->seen[in->b] = l->changed[in->b] = 1;
    }
}

static void note_target(looker *l, const plan_target *into) {
    if (into->variable != PLAN_NONE) l->seen[into->variable] = l->changed[into->variable] = 1;
    note_code(l, into->assign);
}

static void note_variables(looker *l, uint32_t variables) {
    memset(l->seen, 0, variables);
    memset(l->early, 0, variables);
    memset(l->changed, 0, variables);
    note_target(l, &l->f->nodes[l->head].into);
    for (uint32_t i = 0; i < l->f->node_count; i++) {
        const plan_node *n = &l->f->nodes[i];
        if (!is_inside(l->f, n, l->head)) continue;
        for (uint32_t k = 0; k < n->arg_count; k++) note_code(l, n->args[k]);
        note_code(l, n->code);
        note_code(l, n->test);
        note_target(l, &n->into);
    }
    for (uint32_t v = 0; v < variables; v++)
        if (l->early[v] && l->changed[v] && v != l->f->result)
            because(l, true,
                    hd_string_f(l->pool, "an iteration reads %s, which the one before has assigned",
                                l->f->names->names.items[v]));
}

/* ---- objects from outside that the body changes */

static bool is_text(hd_value v, const char *expected) {
    return strcmp(hd_value_as_text(v, ""), expected) == 0;
}

static bool is_mutating(const char *method) {
    static const char *const all[] = { "append",  "extend", "insert", "remove",     "pop",
                                       "clear",   "sort",   "update", "setdefault", "popitem",
                                       "reverse", "add",    "discard" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], method) == 0) return true;
    return false;
}

/* A variable whose name begins with % is one that a compiler has made. */
static const char *said(const char *name) { return *name == '%' ? "the result" : name; }

/* The variable of ["name", x], in words, if the body does not assign it. NULL: another form. */
static const char *outer_name(const looker *l, hd_value form) {
    const char *name = hd_value_as_text(hd_value_index(form, 1), "");
    if (!is_text(hd_value_index(form, 0), "name")) return NULL;
    for (uint32_t v = 0; v < l->f->names->names.count; v++)
        if (strcmp(l->f->names->names.items[v], name) == 0 && !l->changed[v])
            return said(l->f->names->names.items[v]);
    return NULL;
}

static void note_statement(looker *l, hd_value s) {
    hd_value e = hd_value_index(s, 1);
    if (is_text(hd_value_index(s, 0), "expr") && is_text(hd_value_index(e, 0), "method")) {
        const char *name = outer_name(l, hd_value_index(e, 1));
        const char *method = hd_value_as_text(hd_value_index(e, 2), "");
        if (name && strcmp(method, "append") == 0)
            because(
                l, false,
                hd_string_f(l->pool, "%s is appended to, in the order of the iterations", name));
        else if (name && is_mutating(method))
            because(l, true, hd_string_f(l->pool, "%s is changed by %s", name, method));
    }
    bool assigns = is_text(hd_value_index(s, 0), "assign");
    for (size_t i = 2; assigns && i < hd_value_count(s); i++) {
        hd_value target = hd_value_index(s, i);
        bool part = is_text(hd_value_index(target, 0), "item") ||
                    is_text(hd_value_index(target, 0), "attr") ||
                    is_text(hd_value_index(target, 0), "slice");
        const char *name = part ? outer_name(l, hd_value_index(target, 1)) : NULL;
        if (name) because(l, true, hd_string_f(l->pool, "a part of %s is assigned", name));
    }
}

static hd_value nodes_of(const looker *l) {
    hd_value functions = hd_value_at(l->p->source, "functions");
    return hd_value_at(hd_value_index(functions, l->f_index), "nodes");
}

static void note_objects(looker *l) {
    for (hd_iter it = hd_iter_of(nodes_of(l)); hd_iter_next(&it);) {
        uint32_t node = plan_find_node(l->f, hd_value_as_text(hd_value_at(it.value, "id"), ""));
        if (node == PLAN_NONE || !is_inside(l->f, &l->f->nodes[node], l->head)) continue;
        for (hd_iter s = hd_iter_of(hd_value_at(it.value, "do")); hd_iter_next(&s);)
            note_statement(l, s.value);
    }
}

/* ---- ways */

static void note_ways(looker *l) {
    const plan_node *head = &l->f->nodes[l->head];
    if (head->test)
        because(l, true, hd_string(l->pool, "its condition is asked again after each iteration"));
    for (uint32_t i = 0; i < l->f->node_count; i++) {
        const plan_node *n = &l->f->nodes[i];
        if (!is_inside(l->f, n, l->head)) continue;
        bool ends = n->kind == NODE_RETURN || n->kind == NODE_RET;
        bool leaves = ends;
        for (uint32_t k = 0; k < n->out_count && !leaves; k++) {
            const plan_edge *e = plan_out(l->f, n, k);
            leaves = e->to != l->head && !is_inside(l->f, &l->f->nodes[e->to], l->head);
        }
        if (leaves)
            because(l, true, hd_string_f(l->pool, "an iteration may leave it, at %s", n->id));
    }
}

static hd_value actions_of(looker *l, bool fan) {
    hd_value all = hd_array();
    for (uint32_t i = 0; i < l->f->node_count; i++) {
        const plan_node *n = &l->f->nodes[i];
        bool inside = fan ? n->fan == l->head : is_inside(l->f, n, l->head);
        if (inside && n->kind == NODE_ACTION)
            all = hd_array_append(l->pool, all, hd_string(l->pool, n->name));
    }
    return all;
}

/* ---- answers */

static hd_value record_of(looker *l, bool parallel, hd_value actions) {
    const plan_node *n = &l->f->nodes[l->head];
    hd_pool *pool = l->pool;
    hd_value r = hd_object_set(pool, hd_object(), "function", hd_string(pool, l->f->name));
    r = hd_object_set(pool, r, "node", hd_string(pool, n->id));
    if (*n->at) r = hd_object_set(pool, r, "at", hd_string(pool, n->at));
    r = hd_object_set(pool, r, "kind", hd_string(pool, node_kind_name(n->kind)));
    r = hd_object_set(pool, r, "parallel", hd_bool(parallel));
    r = hd_object_set(pool, r, "actions", actions);
    return hd_object_set(pool, r, "why", l->why);
}

/* What a compiler has said of the loop, which knows the source and its own rules; a value that does not exist:
 * nothing. */
static hd_value comment_of(looker *l) {
    for (hd_iter it = hd_iter_of(nodes_of(l)); hd_iter_next(&it);) {
        hd_value comment = hd_value_at(it.value, "comment");
        if (hd_value_kind(comment) == HD_KIND_STRING &&
            is_text(hd_value_at(it.value, "id"), l->f->nodes[l->head].id))
            return comment;
    }
    return (hd_value){ 0 };
}

static hd_value explain_loop(looker *l, hd_value all) {
    hd_value comment = comment_of(l);
    if (hd_value_exists(comment)) {
        if (is_text(comment, "")) return all;
        because(l, true, comment);
        return hd_array_append(l->pool, all, record_of(l, false, actions_of(l, false)));
    }
    note_ways(l);
    note_variables(l, l->f->names->names.count);
    note_objects(l);
    hd_value actions = actions_of(l, false);
    if (!l->sequential)
        because(l, false,
                hd_string(l->pool,
                          "nothing else is carried from one iteration to the next: it could run in "
                          "parallel, with concurrent = True in the Python class, or with "
                          "hd_flow_each in C"));
    return hd_array_append(l->pool, all, record_of(l, false, actions));
}

static hd_value explain_fan(looker *l) {
    const plan_node *n = &l->f->nodes[l->head];
    if (n->code)
        because(l, false,
                hd_string_f(l->pool,
                            "one branch for each element, at most %u at once; the results "
                            "in the order of the elements",
                            n->window ? n->window : 1000u));
    else because(l, false, hd_string_f(l->pool, "%u branches at once", n->out_count));
    return record_of(l, true, actions_of(l, true));
}

static hd_value explain_function(const plan *p, uint32_t of, hd_pool *pool, hd_value all,
                                 uint8_t *sets) {
    const plan_function *f = &p->functions[of];
    uint32_t variables = f->names->names.count;
    for (uint32_t i = 0; i < f->node_count; i++) {
        looker l = {
            p,          f,    of, i, pool, sets, sets + variables, sets + 2 * (size_t)variables,
            hd_array(), false
        };
        if (f->nodes[i].kind == NODE_LOOP_HEAD) all = explain_loop(&l, all);
        if (f->nodes[i].kind == NODE_FAN_HEAD) all = hd_array_append(pool, all, explain_fan(&l));
    }
    return all;
}

hd_value hd_workflow_explain(hd_pool *pool, hd_value ir, hd_error *error) {
    outline o;
    hd_heap *heap = hd_pool_heap(pool);
    hd_value all = hd_array();
    hd_status status = outline_open(heap, ir, &o, error);
    for (uint32_t i = 0; !status && i < o.p->function_count; i++) {
        size_t room = 3 * (size_t)o.p->functions[i].names->names.count + 1;
        uint8_t *sets = env_new(&heap->env, room);
        if (!sets) status = HD_NOMEM;
        else all = explain_function(o.p, i, pool, all, sets);
        if (sets) env_free(&heap->env, sets, room);
    }
    outline_close(&o);
    return status ? hd_failed(status) : all;
}
