/* read_schema.c -- reading through a schema.
 *
 * A projection, not a validation: the schema decides which paths and links are followed, and so what
 * is journaled: the shape of each container that is walked, the whole of what the schema leaves
 * open, the place of a link at each hop. At a cell boundary the link is read and not its target,
 * except in preflight, which wants to know everything a handler could reach.
 *
 * Parts are collected on a build's stack. Each function leaves the stack as it found it when it
 * fails or when its place does not match. */
#include "store/runtime.h"
#include "store/tx.h"

#include "value/build.h"
#include "value/key.h"
#include "value/pool.h"
#include "value/schema.h"
#include "value/schema_match.h"
#include <stdio.h>
#include <string.h>

#define READ_DEPTH_MAX 512 /* project() recurses once per level and link */

typedef struct schema_read {
    hd_tx *tx;
    const hd_schema *schema;
    build b;
    unsigned flags; /* HD_READ_* of the whole read */
    uint32_t depth;
} schema_read;

/* Pushes what the schema makes of a place; *present is false when there is nothing. */
static hd_status project(schema_read *s, place_id id, const schema_node *n, bool *present);

static hd_status push(schema_read *s, hd_value v, bool *present) {
    *present = false;
    if (value_is_failed(v)) return hd_value_status(v); /* a link could not be made */
    *present = value_exists(v) && build_push(&s->b, value_ref(v));
    return *present == value_exists(v) ? HD_OK : HD_NOMEM;
}

static void drop_values(schema_read *s, size_t mark) {
    assert(mark <= s->b.count);
    while (s->b.count > mark) value_unref((hd_value){ s->b.items[--s->b.count] });
}

static void drop_pairs(schema_read *s, size_t mark) {
    assert(mark <= s->b.count && (s->b.count - mark) % 2 == 0);
    while (s->b.count > mark) {
        value_unref((hd_value){ s->b.items[--s->b.count] });
        s->b.count--; /* the key */
    }
}

/* The link itself, not its target. A value that is no link stands for its own place. */
static hd_status push_boundary(schema_read *s, place_id id, bool *present) {
    hd_status status = tx_note_place(s->tx, id, s->flags | HD_READ_SHAPE);
    if (status) return status;
    hd_value v = tx_peek(s->tx, id);
    if (value_tag(v) == TAG_LINK) return push(s, v, present);
    hd_pool *pool = tx_pool(s->tx);
    if (!pool) return HD_NOMEM;
    return push(s, hd_cell_link(s->tx->rt, pool, (hd_cell){ id }), present);
}

/* A child place, kept while it is read. */
static hd_status project_child(schema_read *s, place_id at, struct key *k, const schema_node *n,
                               bool *present) {
    places *ps = &s->tx->r->places;
    place_id child;
    *present = false;
    hd_status status = places_child(ps, at, k, &child);
    if (status) return status;
    place_ref(ps, child);
    status = project(s, child, n, present);
    place_unref(ps, child);
    return status;
}

static hd_status project_property(schema_read *s, place_id object, const char *name, size_t length,
                                  const schema_node *n, bool *present) {
    struct key *k = key_intern(s->tx->r->heap, name, length);
    size_t mark = s->b.count;
    *present = false;
    if (!k) return HD_NOMEM;
    hd_status status = build_push_key(&s->b, k) ? HD_OK : HD_NOMEM;
    if (!status) {
        status = project_child(s, object, k, n, present);
        if (!*present) s->b.count--; /* a key without a value must not stay */
    }
    key_unref(k);
    assert(s->b.count == mark + (*present ? 2 : 0));
    (void)mark;
    return status;
}

/* Keys that the schema does not name, where it lets them in. */
static hd_status project_others(schema_read *s, place_id id, const schema_node *n) {
    hd_value v = tx_peek(s->tx, id);
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        const schema_property *named = schema_node_find(n, it.key, it.key_length);
        const schema_node *other = named ? NULL : schema_node_property(n, it.key, it.key_length);
        bool present;
        if (!other) continue;
        hd_status status = project_property(s, id, it.key, it.key_length, other, &present);
        if (status) return status;
    }
    return HD_OK;
}

/* A named property. One that is required and has a value must match, also if it has a default; and one that
 * is only required, where the schema leaves out what it does not declare, is looked at and left out. */
static hd_status project_one(schema_read *s, place_id id, const schema_node *n,
                             const schema_property *p, bool *complete) {
    size_t mark = s->b.count;
    bool present, keeps = p->declared || !(n->flags & SCHEMA_NAMED_ONLY);
    hd_status status = project_property(s, id, p->key, p->key_length, p->node, &present);
    if (status) return status;
    if (present && !keeps) drop_pairs(s, mark);
    if (!present && p->required && !(p->node->flags & SCHEMA_STREAM)) *complete = false;
    return HD_OK;
}

static hd_status project_named(schema_read *s, place_id id, const schema_node *n, bool *complete) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < n->property_count && !status; i++)
        status = project_one(s, id, n, &n->properties[i], complete);
    return status;
}

static hd_status project_object(schema_read *s, place_id id, const schema_node *n, bool *present) {
    size_t mark = s->b.count;
    bool complete = true;
    assert(value_tag(tx_peek(s->tx, id)) == TAG_OBJECT && !*present);
    hd_status status = tx_note_place(s->tx, id, s->flags | HD_READ_SHAPE);
    if (!status) status = project_named(s, id, n, &complete);
    if (!status && !(n->flags & SCHEMA_NAMED_ONLY)) status = project_others(s, id, n);
    if (status || !complete) {
        drop_pairs(s, mark);
        return status;
    }
    status = build_object(&s->b, (s->b.count - mark) / 2, NULL);
    *present = !status;
    return status;
}

static hd_status project_array(schema_read *s, place_id id, const schema_node *n, bool *present) {
    size_t mark = s->b.count, count = hd_value_count(tx_peek(s->tx, id));
    assert(value_tag(tx_peek(s->tx, id)) == TAG_ARRAY && !*present);
    bool there = true; /* an array has no holes: one element that does not match spoils it */
    hd_status status = tx_note_place(s->tx, id, s->flags | HD_READ_SHAPE);
    for (size_t i = 0; i < count && there && !status; i++) {
        char text[24];
        int length = snprintf(text, sizeof text, "%zu", i);
        struct key *k = key_intern(s->tx->r->heap, text, (size_t)length);
        status = k ? project_child(s, id, k, schema_node_items(n, i), &there) : HD_NOMEM;
        key_unref(k);
    }
    if (status || !there) {
        drop_values(s, mark);
        return status;
    }
    assert(s->b.count == mark + count);
    status = build_array(&s->b, count);
    *present = !status;
    return status;
}

/* Type, const and enum; what is inside has been taken whole or is walked by project. */
static bool matches_self(const schema_read *s, const schema_node *n, hd_value v) {
    schema_match m;
    schema_match_init(&m, s->schema, true);
    bool ok = schema_match_self(&m, n, v, NULL) == HD_OK;
    schema_match_fini(&m);
    return ok;
}

/* ---- alternatives
 *
 * Which alternative holds is decided by looking into the value. For each alternative before that one, the part of the
 * value that does not match is journaled: as long as that part is the same, the alternative does not hold, whatever
 * else changes. */

typedef struct witness {
    schema_read *s;
    place_id id; /* where the alternative was tried */
    hd_status status;
} witness;

/* Goes down to the place of a step, which is referenced then in place of *at. */
static hd_status note_step(schema_read *s, place_id *at, const schema_place *step, bool last) {
    places *ps = &s->tx->r->places;
    place_id child;
    char text[24];
    if (!step->key) snprintf(text, sizeof text, "%zu", step->index);
    struct key *k = step->key ? key_intern(s->tx->r->heap, step->key, step->key_length)
                              : key_intern(s->tx->r->heap, text, strlen(text));
    hd_status status = k ? places_child(ps, *at, k, &child) : HD_NOMEM;
    key_unref(k);
    if (status) return status;
    place_ref(ps, child);
    place_unref(ps, *at);
    *at = child;
    return tx_note_place(s->tx, child, s->flags | (last ? 0 : (unsigned)HD_READ_SHAPE));
}

/* Journals the containers on the way by shape, and then the value that does not match, or its shape if a key is missing
 * in it. */
static hd_status note_way(schema_read *s, place_id at, const schema_place *to, bool lacks_key) {
    const schema_place *chain[READ_DEPTH_MAX];
    size_t length = 0;
    for (; to && to->parent; to = to->parent) {
        if (length == READ_DEPTH_MAX) return tx_note_place(s->tx, at, s->flags);
        chain[length++] = to;
    }
    assert(length < READ_DEPTH_MAX || !to || !to->parent);
    bool whole = !length && !lacks_key;
    hd_status status = tx_note_place(s->tx, at, s->flags | (whole ? 0 : (unsigned)HD_READ_SHAPE));
    place_ref(&s->tx->r->places, at);
    for (; length > 0 && !status; length--)
        status = note_step(s, &at, chain[length - 1], length == 1 && !lacks_key);
    place_unref(&s->tx->r->places, at);
    return status;
}

static void note_mismatch(schema_match *m, const schema_place *at, bool lacks_key) {
    witness *w = m->ctx;
    if (!w->status) w->status = note_way(w->s, w->id, at, lacks_key);
}

/* Journals why an alternative does not hold. */
static hd_status note_failure(schema_read *s, place_id id, const schema_node *alternative,
                              hd_value v) {
    schema_match m;
    schema_place root = { 0 };
    witness w = { s, id, HD_OK };
    schema_match_init(&m, s->schema, true);
    m.mismatch = note_mismatch;
    m.ctx = &w;
    hd_status status = schema_match_node(&m, alternative, v, &root);
    schema_match_fini(&m);
    return status == HD_MISMATCH ? w.status : status;
}

static hd_status choose_one(schema_read *s, const schema_node *n, hd_value v,
                            const schema_node **out) {
    schema_match m;
    schema_place root = { 0 };
    schema_match_init(&m, s->schema, true);
    schema_match_begin_choice(&m);
    hd_status status = schema_match_choose(&m, n, v, &root, out);
    schema_match_end_choice(&m);
    schema_match_fini(&m);
    return status;
}

static bool has_choice(const schema_node *n) {
    return n && n->any_count && !(n->flags & (SCHEMA_BOUNDARY | SCHEMA_SHALLOW));
}

/* The schema node that the place is read by; NULL: the value matches none. Alternatives may have alternatives. */
static hd_status choose(schema_read *s, place_id id, const schema_node *n, hd_value v,
                        const schema_node **out) {
    hd_status status = HD_OK;
    for (*out = n; has_choice(*out) && !status;) {
        const schema_node *of = *out;
        *out = NULL;
        if (!matches_self(s, of, v)) return HD_OK;
        status = choose_one(s, of, v, out);
        for (uint32_t i = 0; i < of->any_count && of->any[i] != *out && !status; i++)
            status = note_failure(s, id, of->any[i], v);
    }
    return status;
}

/* Whether the value is a container of a kind that cannot match, whatever is inside. */
static bool is_of_wrong_kind(const schema_node *n, hd_value v) {
    return hd_value_count(v) > 0 && !(n->types & schema_type_of(v));
}

/* Pushes what the schema makes of the value at `id`, to which project() has followed all links. */
static hd_status project_value(schema_read *s, place_id id, const schema_node *n, bool *present) {
    hd_value v = tx_peek(s->tx, id);
    const schema_node *chosen = n;
    hd_status status = value_exists(v) ? choose(s, id, n, v, &chosen) : HD_OK;
    if (status) return status;

    bool fits = value_exists(v) && chosen && matches_self(s, chosen, v);
    bool walked = fits && !(chosen->flags & (SCHEMA_SHALLOW | SCHEMA_ANYTHING));
    bool keys = walked && ((chosen->flags & SCHEMA_KEYS) || chosen->property_count);
    if (keys && value_tag(v) == TAG_OBJECT) return project_object(s, id, chosen, present);
    if (walked && value_tag(v) == TAG_ARRAY && (chosen->flags & SCHEMA_ELEMENTS))
        return project_array(s, id, chosen, present);

    bool shallow = fits ? chosen->flags & SCHEMA_SHALLOW : is_of_wrong_kind(chosen ? chosen : n, v);
    status = tx_note_place(s->tx, id, s->flags | (shallow ? (unsigned)HD_READ_SHAPE : 0));
    if (status) return status;
    if (fits) return push(s, v, present);
    return value_exists(v) ? HD_OK : push(s, n->default_value, present);
}

static hd_status project(schema_read *s, place_id id, const schema_node *n, bool *present) {
    *present = false;
    if (s->depth >= READ_DEPTH_MAX)
        return runtime_fail(s->tx->rt, HD_LIMIT, "a read by schema nests deeper than %d levels",
                            READ_DEPTH_MAX);
    size_t mark = s->b.count;
    s->depth++;
    bool boundary = (n->flags & SCHEMA_BOUNDARY) && !(s->tx->flags & TX_PREFLIGHT);
    hd_status status = tx_resolve(s->tx, &id, !boundary, s->flags);
    if (!status) {
        place_ref(&s->tx->r->places, id);
        status = boundary ? push_boundary(s, id, present) : project_value(s, id, n, present);
        place_unref(&s->tx->r->places, id);
    }
    s->depth--;
    assert(s->b.count == mark + *present); /* one value, or the stack as it was */
    assert(!status || !*present);
    (void)mark;
    return status;
}

static hd_value read_from(hd_tx *tx, place_id id, const hd_schema *schema, const schema_node *node,
                          unsigned flags) {
    hd_pool *pool = tx_pool(tx);
    if (!pool) return value_failed(tx_fail(tx, HD_NOMEM));
    schema_read s = { .tx = tx, .schema = schema, .flags = flags };
    bool present = false;
    build_init(&s.b, tx->r->heap);
    hd_status status = project(&s, id, node, &present);
    assert(s.b.count == present && !s.depth);
    hd_value v = value_absent();
    if (status) v = value_failed(status);
    else if (present) v = pool_take(pool, build_take(&s.b));
    build_fini(&s.b);
    if (status && status != HD_PENDING) tx_fail_told(tx, status);
    return v;
}

hd_value tx_read_schema(hd_tx *tx, place_id id, const hd_schema *schema, unsigned flags) {
    return read_from(tx, id, schema, schema_root(schema), flags);
}

/* ---- links in a value that is in no document */

/* Stops without an error at READ_DEPTH_MAX: a read by schema could not go deeper either. */
static void read_links(hd_tx *tx, place_id from, hd_value v, const hd_schema *schema,
                       const schema_node *node, int depth) {
    if (!node || depth == READ_DEPTH_MAX) return;
    if (value_tag(v) == TAG_LINK) {
        hd_status status;
        place_id target = tx_link_target(tx, from, v, &status);
        if (status) tx_fail(tx, status);
        else if (schema) read_from(tx, target, schema, node, 0);
        else tx_read_place(tx, target, 0);
        return;
    }
    if (node->any_count && schema && schema_choose(schema, node, v, &node)) return;
    for (hd_iter it = hd_iter_of(v); node && hd_iter_next(&it);) {
        if (!value_is_block(it.value)) continue;
        const schema_node *part = it.key ? schema_node_property(node, it.key, it.key_length)
                                         : schema_node_items(node, it.index);
        read_links(tx, from, it.value, schema, part, depth + 1);
    }
}

void tx_read_links(hd_tx *tx, place_id from, hd_value v, const hd_schema *schema) {
    if (!value_is_block(v)) return;
    read_links(tx, from, v, schema, schema ? schema_root(schema) : &schema_anything, 0);
}
