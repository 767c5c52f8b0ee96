/* schema_match.c -- does a value match?
 *
 * One matcher with two sets of rules. *Validation* wants everything to fit. *Reading* wants a
 * projection to succeed: it does not look behind boundaries, and parts that may be left out need
 * not fit, so it looks at the required ones only.
 *
 * Alternatives (anyOf) are tried in order, each on the whole value; inside them other alternatives
 * are tried on parts, and so on: without a memory the work would double with each level. So what
 * is decided about (node, value) is kept until the outermost choice is done. */
#include "value/schema_match.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/pointer.h"
#include "value/heap.h"
#include <stdio.h>

void schema_match_init(schema_match *m, const hd_schema *schema, bool reading) {
    *m = (schema_match){ .env = &schema->heap->env, .reading = reading };
    table_init(&m->known, m->env);
}

void schema_match_fini(schema_match *m) {
    table_fini(&m->known);
    vec_fini(m->env, &m->decisions);
    vec_fini(m->env, &m->kept);
}

/* ---- Messages ---------------------------------------------------------------------------- */

static void print_place(const schema_place *at, hd_error *error) {
    const schema_place *chain[SCHEMA_FRAMES_MAX];
    size_t length = 0;
    for (; at && at->parent && length < SCHEMA_FRAMES_MAX; at = at->parent) chain[length++] = at;
    pointer p = pointer_begin(error->path, sizeof error->path);
    while (length > 0) {
        const schema_place *step = chain[--length];
        if (step->key) pointer_key(&p, step->key, step->key_length);
        else pointer_index(&p, step->index);
    }
    pointer_end(&p);
}

HD_PRINTF(4, 5)
static hd_status fail(schema_match *m, const schema_place *at, hd_status status, const char *format,
                      ...) {
    if (!m->quiet && m->mismatch && status == HD_MISMATCH) m->mismatch(m, at, false);
    if (m->quiet || !m->error) return status;
    va_list arguments;
    va_start(arguments, format);
    env_error_v(m->error, status, format, arguments);
    va_end(arguments);
    print_place(at, m->error);
    return status;
}

/* "string, array or null" */
static void print_types(unsigned types, char *out, size_t size) {
    static const char *const names[] = { "null",  "boolean", "integer", "fraction", "string",
                                         "bytes", "array",   "object",  "link" };
    unsigned number = SCHEMA_INTEGER | SCHEMA_FRACTION;
    bool both = (types & number) == number;
    size_t used = 0;
    if (both) types &= ~(unsigned)SCHEMA_FRACTION;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(types & (1u << i))) continue;
        types &= ~(1u << i);
        const char *name = both && (1u << i) == SCHEMA_INTEGER ? "number" : names[i];
        const char *join = used == 0 ? "" : types ? ", " : " or ";
        int written = snprintf(out + used, size - used, "%s%s", join, name);
        if (written > 0) used += (size_t)written;
    }
}

static hd_status fail_type(schema_match *m, const schema_node *node, hd_value v,
                           const schema_place *at) {
    char wanted[96] = "nothing";
    if (m->quiet || !(m->error || m->mismatch)) return HD_MISMATCH;
    print_types(node->types, wanted, sizeof wanted);
    return fail(m, at, HD_MISMATCH, "expected %s, found %s", wanted,
                hd_kind_name(hd_value_kind(v)));
}

static hd_status fail_missing(schema_match *m, const schema_place *at, const schema_property *p) {
    void (*mismatch)(schema_match *, const schema_place *, bool) = m->mismatch;
    if (!m->quiet && mismatch) mismatch(m, at, true);
    m->mismatch = NULL; /* it has been told */
    hd_status status = fail(m, at, HD_MISMATCH, "\"%s\" is missing", p->key);
    m->mismatch = mismatch;
    return status;
}

/* ---- Parts ------------------------------------------------------------------------------- */

static bool is_listed(hd_value allowed, hd_value v) {
    for (hd_iter it = hd_iter_of(allowed); hd_iter_next(&it);)
        if (hd_value_equal(it.value, v)) return true;
    return false;
}

hd_status schema_match_self(schema_match *m, const schema_node *node, hd_value v,
                            const schema_place *at) {
    unsigned type = schema_type_of(v);
    if (type == SCHEMA_LINK) return node->types ? HD_OK : fail_type(m, node, v, at);
    if (!(node->types & type)) return fail_type(m, node, v, at);
    if (value_exists(node->const_value) && !hd_value_equal(node->const_value, v))
        return fail(m, at, HD_MISMATCH, "is not the one value allowed");
    if (value_exists(node->enum_values) && !is_listed(node->enum_values, v))
        return fail(m, at, HD_MISMATCH, "is none of the %zu values allowed",
                    hd_value_count(node->enum_values));
    return HD_OK;
}

static hd_status match_key(schema_match *m, const schema_node *node, const char *key, size_t length,
                           hd_value v, const schema_place *at) {
    schema_place place = { at, key, length, 0 };
    return schema_match_node(m, node, v, &place);
}

/* The named properties. A read asks for the required ones only: others are left out if they do not
 * fit. */
static hd_status match_named(schema_match *m, const schema_node *node, hd_value v,
                             const schema_place *at) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; !status && i < node->property_count; i++) {
        const schema_property *p = &node->properties[i];
        if (m->reading && !p->required) continue;
        hd_value part = hd_value_at_n(v, p->key, p->key_length);
        if (value_exists(part)) status = match_key(m, p->node, p->key, p->key_length, part, at);
        else if (schema_property_needed(p)) status = fail_missing(m, at, p);
    }
    return status;
}

static hd_status match_object(schema_match *m, const schema_node *node, hd_value v,
                              const schema_place *at) {
    hd_status status = match_named(m, node, v, at);
    if (status || m->reading || (node->additional->flags & SCHEMA_ANYTHING)) return status;
    bool closed = node->additional->types == 0 && !(node->additional->flags & SCHEMA_STREAM);
    for (hd_iter it = hd_iter_of(v); !status && hd_iter_next(&it);) {
        if (schema_node_find(node, it.key, it.key_length)) continue;
        if (closed) {
            schema_place place = { at, it.key, it.key_length, 0 };
            status = fail(m, &place, HD_MISMATCH, "\"%s\" is not among the properties", it.key);
        } else {
            status = match_key(m, node->additional, it.key, it.key_length, it.value, at);
        }
    }
    return status;
}

static hd_status match_array(schema_match *m, const schema_node *node, hd_value v,
                             const schema_place *at) {
    hd_status status = HD_OK;
    bool rest = !(node->items->flags & SCHEMA_ANYTHING);
    for (hd_iter it = hd_iter_of(v); !status && hd_iter_next(&it);) {
        if (!rest && it.index >= node->prefix_count) break;
        schema_place place = { at, NULL, 0, it.index };
        status = schema_match_node(m, schema_node_items(node, it.index), it.value, &place);
    }
    return status;
}

/* ---- Alternatives ------------------------------------------------------------------------ */

/* Up to this nesting of choices, decisions on scalars are not kept. */
enum { CHOICES_FORGOTTEN = 4 };

void schema_match_begin_choice(schema_match *m) { m->choices++; }

void schema_match_end_choice(schema_match *m) {
    assert(m->choices > 0);
    if (--m->choices > 0) return;
    vec_clear(&m->decisions);
    if (table_count(&m->known)) table_clear(&m->known);
}

static uint32_t decision_hash(const schema_node *node, hd_value v) {
    return hash_fold(hash_combine((uintptr_t)node, v.bits));
}

static const schema_decision *decision_find(const schema_match *m, const schema_node *node,
                                            hd_value v) {
    uint32_t hash = decision_hash(node, v);
    for (table_probe p = table_find(&m->known, hash); table_next(&m->known, &p);) {
        const schema_decision *d = &m->decisions.items[p.index];
        if (d->node == node && d->bits == v.bits) return d;
    }
    return NULL;
}

static hd_status decision_keep(schema_match *m, schema_decision d) {
    assert(m->choices > 0 && !decision_find(m, d.node, (hd_value){ d.bits }));
    uint32_t hash = decision_hash(d.node, (hd_value){ d.bits });
    hd_status status = table_reserve(&m->known, table_count(&m->known) + 1);
    if (!status && !vec_push(m->env, &m->decisions, d)) status = HD_NOMEM;
    return status ? status : table_insert(&m->known, hash, m->decisions.count - 1);
}

static hd_status try_alternatives(schema_match *m, const schema_node *node, hd_value v,
                                  const schema_place *at, const schema_node **out) {
    hd_status status = HD_MISMATCH;
    m->quiet++;
    for (uint32_t i = 0; status == HD_MISMATCH && i < node->any_count; i++) {
        status = schema_match_node(m, node->any[i], v, at);
        if (!status) *out = node->any[i];
    }
    assert(m->quiet > 0 && (status || *out));
    m->quiet--;
    return status == HD_MISMATCH ? HD_OK : status;
}

hd_status schema_match_choose(schema_match *m, const schema_node *node, hd_value v,
                              const schema_place *at, const schema_node **out) {
    /* Trying a scalar costs less than remembering it, unless alternatives lead to alternatives. */
    bool worth_keeping =
        (value_is_block(v) && hd_value_count(v) > 0) || m->choices > CHOICES_FORGOTTEN;
    const schema_decision *known = worth_keeping ? decision_find(m, node, v) : NULL;
    *out = known ? known->choice : NULL;
    if (known) return HD_OK;
    hd_status status = try_alternatives(m, node, v, at, out);
    if (!status && worth_keeping)
        status = decision_keep(m, (schema_decision){ node, v.bits, *out });
    if (status == HD_NOMEM || status == HD_LIMIT) fail(m, at, status, "%s", hd_status_text(status));
    return status;
}

/* No alternative matches. If the kind of the value leaves one alternative only, the message says what is
 * wrong with that one. */
static hd_status fail_any(schema_match *m, const schema_node *node, hd_value v,
                          const schema_place *at) {
    const schema_node *only = NULL;
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < node->any_count; i++) {
        if (!(node->any[i]->types & schema_type_of(v))) continue;
        only = node->any[i];
        candidates++;
    }
    if (candidates == 1 && !m->quiet && (m->error || m->mismatch))
        return schema_match_node(m, only, v, at);
    return fail(m, at, HD_MISMATCH, "matches none of the %u alternatives", node->any_count);
}

static hd_status match_any(schema_match *m, const schema_node *node, hd_value v,
                           const schema_place *at) {
    const schema_node *choice;
    schema_match_begin_choice(m);
    hd_status status = schema_match_choose(m, node, v, at, &choice);
    if (!status && !choice) status = fail_any(m, node, v, at);
    schema_match_end_choice(m);
    return status;
}

/* ---- The whole --------------------------------------------------------------------------- */

static hd_status match_inside(schema_match *m, const schema_node *node, hd_value v,
                              const schema_place *at) {
    if (m->reading && (node->flags & SCHEMA_SHALLOW)) return HD_OK;
    if (node->any_count) return match_any(m, node, v, at);
    switch (hd_value_kind(v)) {
    case HD_KIND_OBJECT: return match_object(m, node, v, at);
    case HD_KIND_ARRAY: return match_array(m, node, v, at);
    default: return HD_OK;
    }
}

hd_status schema_match_node(schema_match *m, const schema_node *node, hd_value v,
                            const schema_place *at) {
    if (value_is_failed(v)) return hd_value_status(v);
    if (value_is_absent(v)) return fail(m, at, HD_MISMATCH, "there is no value");
    if (node->flags & (SCHEMA_ANYTHING | SCHEMA_STREAM)) return HD_OK;
    if (m->reading && (node->flags & SCHEMA_CELL)) return HD_OK;
    hd_status status = schema_match_self(m, node, v, at);
    if (status || hd_value_kind(v) == HD_KIND_LINK) return status;
    if (m->frames == SCHEMA_FRAMES_MAX) return fail(m, at, HD_LIMIT, "nested too deep");
    m->frames++;
    status = match_inside(m, node, v, at);
    m->frames--;
    return status;
}

hd_status hd_schema_validate(const hd_schema *schema, hd_value v, hd_error *error) {
    schema_match m;
    schema_place root = { 0 };
    schema_match_init(&m, schema, false);
    m.error = error;
    hd_status status = schema_match_node(&m, schema->root, v, &root);
    schema_match_fini(&m);
    if (status && value_is_failed(v)) env_error(error, status, "%s", hd_status_text(status));
    return status;
}

hd_status schema_choose(const hd_schema *schema, const schema_node *node, hd_value v,
                        const schema_node **out) {
    schema_match m;
    schema_place root = { 0 };
    hd_status status = HD_OK;
    *out = node;
    if (!node->any_count) return HD_OK;
    schema_match_init(&m, schema, true);
    schema_match_begin_choice(&m);
    while (!status && *out && (*out)->any_count && !((*out)->flags & SCHEMA_BOUNDARY))
        status = schema_match_choose(&m, *out, v, &root, out);
    schema_match_end_choice(&m);
    schema_match_fini(&m);
    if (status) *out = NULL;
    return status;
}
