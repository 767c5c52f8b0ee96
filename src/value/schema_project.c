/* schema_project.c -- the part of a value that a schema describes.
 *
 * Where a projection changes nothing it returns the value itself, so that what comes out of it
 * still shares structure with what went in and compares by identity. The parts of a container are
 * gathered on a stack first; a new container is built only when one of them differs. */
#include "base/env.h"
#include "value/schema_match.h"

/* Absent: v does not fit. Failed: HD_NOMEM, HD_LIMIT. Otherwise borrowed from v, from the schema,
 * or the pool's. */
static hd_value project_node(schema_match *m, const schema_node *node, hd_value v);

static hd_value absent_or_failed(hd_status status) {
    return status == HD_MISMATCH ? value_absent() : value_failed(status);
}

static bool keep(schema_match *m, const char *key, size_t length, hd_value v) {
    schema_kept k = { key, length, v };
    return vec_push(m->env, &m->kept, k);
}

/* Builds a container of what was kept since `base`. */
static hd_value build_kept(schema_match *m, hd_kind kind, uint32_t base) {
    hd_builder *b;
    hd_status status = hd_builder_open(m->pool, kind, &b);
    if (status) return value_failed(status);
    for (uint32_t i = base; i < m->kept.count; i++) {
        const schema_kept *k = &m->kept.items[i];
        if (k->key) hd_builder_put_n(b, k->key, k->key_length, k->value);
        else hd_builder_add(b, k->value);
    }
    return hd_builder_close(b);
}

/* ---- Objects ----------------------------------------------------------------------------- */

/* HD_OK; HD_MISMATCH: a required property is missing or does not fit. */
static hd_status project_property(schema_match *m, const schema_node *node,
                                  const schema_property *p, hd_value v, bool *changed) {
    hd_value part = hd_value_at_n(v, p->key, p->key_length);
    hd_value projected = project_node(m, p->node, part);
    if (value_is_failed(projected)) return hd_value_status(projected);
    bool keeps = p->declared || !(node->flags & SCHEMA_NAMED_ONLY);
    if (value_is_absent(projected)) {
        bool stream = p->node->flags & SCHEMA_STREAM;
        if (p->required && !(stream && value_is_absent(part))) return HD_MISMATCH;
        keeps = false;
    }
    *changed |= keeps ? projected.bits != part.bits : value_exists(part);
    if (keeps && !keep(m, p->key, p->key_length, projected)) return HD_NOMEM;
    return HD_OK;
}

static hd_status project_named(schema_match *m, const schema_node *node, hd_value v,
                               bool *changed) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; !status && i < node->property_count; i++)
        status = project_property(m, node, &node->properties[i], v, changed);
    return status;
}

/* Keys of v are interned and live as long as v: they can be kept beyond the iteration. */
static hd_status project_others(schema_match *m, const schema_node *node, hd_value v,
                                bool *changed) {
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        if (schema_node_find(node, it.key, it.key_length)) continue;
        hd_value projected = project_node(m, node->additional, it.value);
        if (value_is_failed(projected)) return hd_value_status(projected);
        *changed |= projected.bits != it.value.bits;
        if (value_is_absent(projected)) continue;
        if (!keep(m, it.key, it.key_length, projected)) return HD_NOMEM;
    }
    return HD_OK;
}

static hd_value project_object(schema_match *m, const schema_node *node, hd_value v) {
    uint32_t base = m->kept.count;
    bool changed = false, named_only = node->flags & SCHEMA_NAMED_ONLY;
    hd_status status = project_named(m, node, v, &changed);
    /* The other keys need no visit if they stay as they are and no named one changed. */
    bool others = !named_only && (changed || !(node->additional->flags & SCHEMA_ANYTHING));
    if (!status && others) status = project_others(m, node, v, &changed);

    hd_value result = v;
    if (status) result = absent_or_failed(status);
    else if (changed || (named_only && m->kept.count - base != hd_value_count(v)))
        result = build_kept(m, HD_KIND_OBJECT, base);
    m->kept.count = base;
    return result;
}

/* ---- Arrays and alternatives ------------------------------------------------------------- */

static hd_value project_array(schema_match *m, const schema_node *node, hd_value v) {
    uint32_t base = m->kept.count;
    bool changed = false;
    hd_status status = HD_OK;
    for (hd_iter it = hd_iter_of(v); !status && hd_iter_next(&it);) {
        hd_value projected = project_node(m, schema_node_items(node, it.index), it.value);
        changed |= projected.bits != it.value.bits;
        if (value_is_failed(projected)) status = hd_value_status(projected);
        else if (value_is_absent(projected)) status = HD_MISMATCH;
        else if (!keep(m, NULL, 0, projected)) status = HD_NOMEM;
    }
    hd_value result = v;
    if (status) result = absent_or_failed(status);
    else if (changed) result = build_kept(m, HD_KIND_ARRAY, base);
    m->kept.count = base;
    return result;
}

static hd_value project_any(schema_match *m, const schema_node *node, hd_value v) {
    const schema_node *choice;
    hd_value result = value_absent();
    schema_match_begin_choice(m);
    hd_status status = schema_match_choose(m, node, v, NULL, &choice);
    if (status) result = value_failed(status);
    else if (choice) result = project_node(m, choice, v);
    schema_match_end_choice(m);
    return result;
}

/* ---- The whole --------------------------------------------------------------------------- */

static hd_value project_inside(schema_match *m, const schema_node *node, hd_value v) {
    if (node->flags & SCHEMA_SHALLOW) return v;
    if (node->any_count) return project_any(m, node, v);
    switch (hd_value_kind(v)) {
    case HD_KIND_OBJECT: return project_object(m, node, v);
    case HD_KIND_ARRAY: return node->flags & SCHEMA_ELEMENTS ? project_array(m, node, v) : v;
    default: return v;
    }
}

static hd_value project_node(schema_match *m, const schema_node *node, hd_value v) {
    if (value_is_failed(v)) return v;
    if (value_is_absent(v)) return node->default_value;
    if (node->flags & (SCHEMA_ANYTHING | SCHEMA_BOUNDARY)) return v;
    hd_status status = schema_match_self(m, node, v, NULL);
    if (status) return absent_or_failed(status);
    if (hd_value_kind(v) == HD_KIND_LINK) return v;
    if (m->frames == SCHEMA_FRAMES_MAX) return value_failed(HD_LIMIT);
    m->frames++;
    hd_value result = project_inside(m, node, v);
    m->frames--;
    return result;
}

hd_value hd_schema_project(hd_pool *pool, const hd_schema *schema, hd_value v) {
    schema_match m;
    schema_match_init(&m, schema, true);
    m.pool = pool;
    hd_value result = project_node(&m, schema->root, v);
    schema_match_fini(&m);
    /* It may be v, or a default of the schema: the pool holds it in any case. */
    return value_is_block(result) ? hd_value_take(pool, hd_value_ref(result)) : result;
}
