/* plan.c -- the life of a plan, and what is found in it. */
#include "workflow/plan.h"

#include "base/env.h"
#include <ctype.h>

static const char *const node_names[] = {
#define PLAN_NODE_ROW(name, out) #name,
    PLAN_NODE_TABLE(PLAN_NODE_ROW)
#undef PLAN_NODE_ROW
};
static const char *const edge_names[] = {
#define PLAN_EDGE_ROW(name) #name,
    PLAN_EDGE_TABLE(PLAN_EDGE_ROW)
#undef PLAN_EDGE_ROW
};

const char *node_kind_name(node_kind kind) { return kind < NODE_KINDS ? node_names[kind] : "?"; }
const char *edge_kind_name(edge_kind kind) { return kind < EDGE_KINDS ? edge_names[kind] : "?"; }

/* ---- version */

/* A copy without the keys that say nothing about what is done. Depth is bounded by the heap's limits. */
static hd_value without_positions(hd_pool *pool, hd_value v) {
    hd_kind kind = hd_value_kind(v);
    if (kind != HD_KIND_ARRAY && kind != HD_KIND_OBJECT) return v;
    hd_builder *b;
    hd_status status = hd_builder_open(pool, kind, &b);
    if (status) return hd_failed(status);
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        if (kind == HD_KIND_ARRAY) hd_builder_add(b, without_positions(pool, it.value));
        else if (strcmp(it.key, "at") != 0 && strcmp(it.key, "comment") != 0)
            hd_builder_put_n(b, it.key, it.key_length, without_positions(pool, it.value));
    }
    return hd_builder_close(b);
}

static hd_status find_version(plan *p) {
    hd_pool *pool;
    hd_status status = hd_pool_open(p->heap, &pool);
    if (status) return status;
    hd_value plain = without_positions(pool, p->source);
    status = hd_value_status(plain);
    if (!status) status = hd_id_of(plain, p->version);
    hd_pool_close(pool);
    return status;
}

/* ---- record */

/* Of an instance that runs: inputs and the time of its start are replaced. */
static hd_status make_record(plan *p) {
    hd_pool *pool;
    hd_status status = hd_pool_open(p->heap, &pool);
    if (status) return status;
    hd_value r = hd_object_set(pool, hd_object(), "workflow", hd_string(pool, p->name));
    r = hd_object_set(pool, r, "version", hd_string(pool, p->version));
    r = hd_object_set(pool, r, "status", hd_string(pool, "running"));
    r = hd_object_set(pool, r, "started", hd_int(pool, 0));
    r = hd_object_set(pool, r, "input", hd_object());
    status = hd_value_status(r);
    if (!status) p->record = hd_value_ref(r);
    hd_pool_close(pool);
    return status;
}

/* ---- what walks rely on */

static void check_edges(const plan_function *f, const plan_node *n) {
    uint32_t from = (uint32_t)(n - f->nodes);
    assert(n->first_out + n->out_count <= f->edge_count || !n->out_count);
    for (uint32_t i = 0; i < n->out_count; i++) {
        const plan_edge *e = plan_out(f, n, i);
        assert(e->from == from && e->to < f->node_count && e->kind != EDGE_EXCEPT);
        assert((e->kind == EDGE_BACK) == (e->to <= from));
        (void)e;
    }
    (void)from;
}

static void check_node(const plan *p, const plan_function *f, const plan_node *n) {
    uint32_t count = f->node_count;
    assert(&p->functions[n->function] == f && n->id && n->kind < NODE_KINDS);
    assert(n->except == PLAN_NONE ||
           (n->except < count && f->nodes[n->except].kind == NODE_HANDLER));
    assert(n->fan == PLAN_NONE || (n->fan < count && f->nodes[n->fan].kind == NODE_FAN_HEAD));
    assert(n->loop == PLAN_NONE || (n->loop < count && f->nodes[n->loop].kind == NODE_LOOP_HEAD));
    assert(n->kind != NODE_FAN_HEAD || (n->pair < count && f->nodes[n->pair].kind == NODE_BARRIER));
    assert(n->kind != NODE_FAN_HEAD || f->nodes[n->pair].pair == (uint32_t)(n - f->nodes));
    assert(n->kind != NODE_CALL || n->callee < p->function_count);
    assert(n->kind != NODE_HANDLER || n->caught != PLAN_NONE);
    assert((n->kind != NODE_ACTION && n->kind != NODE_CHILD && n->kind != NODE_WAIT) || n->name);
    check_edges(f, n);
    (void)p, (void)count;
}

static void plan_check(const plan *p) {
    assert(p->function_count && p->refs == 1);
    for (uint32_t i = 0; i < p->function_count; i++) {
        const plan_function *f = &p->functions[i];
        assert(f->entry < f->node_count && f->nodes[f->entry].kind == NODE_ENTRY);
        assert(f->params <= f->names->names.count && f->result < f->names->names.count);
        for (uint32_t k = 0; k < f->node_count; k++) check_node(p, f, &f->nodes[k]);
    }
}

hd_status plan_complete(plan *p) {
    hd_status status = find_version(p);
    if (!status) status = make_record(p);
    if (!status) plan_check(p);
    return status;
}

/* ---- life */

plan *plan_ref(plan *p) {
    p->refs++;
    return p;
}

void plan_unref(plan *p) {
    if (!p) return;
    assert(p->refs);
    if (--p->refs) return;
    for (uint32_t i = 0; i < p->codes.count; i++) code_free(p->codes.items[i]);
    vec_fini(p->env, &p->codes);
    classes_end(p->w->classes, &p->classes);
    for (uint32_t i = 0; i < p->function_count; i++) scope_close(p->functions[i].names);
    for (uint32_t i = 0; i < p->input_count; i++) {
        hd_value_unref(p->inputs[i].otherwise);
        hd_schema_close(p->inputs[i].schema);
    }
    hd_value_unref(p->source);
    hd_value_unref(p->record);
    arena_fini(&p->memory);
    env_free(p->env, p, sizeof *p);
}

/* ---- finding */

uint32_t plan_find_function(const plan *p, const char *name) {
    for (uint32_t i = 0; i < p->function_count; i++)
        if (p->functions[i].name && !strcmp(p->functions[i].name, name)) return i;
    return PLAN_NONE;
}

uint32_t plan_find_node(const plan_function *f, const char *id) {
    for (uint32_t i = 0; i < f->node_count; i++)
        if (!strcmp(f->nodes[i].id, id)) return i;
    return PLAN_NONE;
}

bool plan_name_is_good(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && (!name[i] || !strchr("_-.", name[i]))) return false;
    return length && length <= PLAN_NAME_MAX;
}
