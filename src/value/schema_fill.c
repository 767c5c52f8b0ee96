/* schema_fill.c -- step 1 of compiling: what one schema says, keyword by keyword. */
#include "value/schema_draft.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    unsigned bits;
} type_names[] = {
    { "null", SCHEMA_NULL },       { "boolean", SCHEMA_BOOLEAN },
    { "integer", SCHEMA_INTEGER }, { "number", SCHEMA_INTEGER | SCHEMA_FRACTION },
    { "string", SCHEMA_STRING },   { "bytes", SCHEMA_BYTES },
    { "array", SCHEMA_ARRAY },     { "object", SCHEMA_OBJECT },
    { "link", SCHEMA_LINK },
};

/* An array of nodes for the array of schemas at a keyword; false after a failure. */
static bool children_add(schema_compiler *c, uint32_t i, keyword k, hd_value schemas,
                         const schema_node *const **out, uint32_t *count) {
    size_t n = hd_value_count(schemas);
    const schema_node **nodes = arena_alloc_array(&c->schema->memory, n, sizeof *nodes);
    if (!nodes) return draft_fail_memory(c);
    for (hd_iter it = hd_iter_of(schemas); hd_iter_next(&it);) {
        char name[24];
        int length = snprintf(name, sizeof name, "%zu", it.index);
        nodes[it.index] = draft_add_child(c, i, k, name, (size_t)length, it.value);
        if (!nodes[it.index]) return false;
    }
    *out = nodes;
    *count = (uint32_t)n;
    return true;
}

/* Every key is a keyword of the right kind, and they may stand beside each other. */
static bool check_keywords(schema_compiler *c, uint32_t i) {
    hd_value source = c->drafts.items[i].source;
    bool refers = value_exists(draft_keyword(c, i, KEYWORD_REF));
    bool chooses = value_exists(draft_keyword(c, i, KEYWORD_ANY_OF));
    for (hd_iter it = hd_iter_of(source); hd_iter_next(&it);) {
        keyword k = schema_keyword_find(it.key, it.key_length);
        if (k == KEYWORD_COUNT)
            return draft_fail(c, i, spot_key(it.key, it.key_length), "unknown keyword \"%s\"",
                              it.key);
        if (!(schema_keywords[k].kinds & (1u << hd_value_kind(it.value))))
            return draft_fail(c, i, spot_keyword(k), "%s must be %s, not %s",
                              schema_keywords[k].name, schema_keywords[k].want,
                              hd_kind_name(hd_value_kind(it.value)));
        if (refers && !schema_keywords[k].brand)
            return draft_fail(c, i, spot_keyword(k), "%s cannot stand beside $ref",
                              schema_keywords[k].name);
        if (chooses && schema_keywords[k].shape)
            return draft_fail(c, i, spot_keyword(k),
                              "%s cannot stand beside anyOf: put it into the alternatives",
                              schema_keywords[k].name);
    }
    return true;
}

static bool fill_brands(schema_compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    if (hd_value_as_bool(draft_keyword(c, i, KEYWORD_AS_CELL), false)) node->flags |= SCHEMA_CELL;
    if (hd_value_as_bool(draft_keyword(c, i, KEYWORD_AS_STREAM), false))
        node->flags |= SCHEMA_STREAM;
    if (hd_value_as_bool(draft_keyword(c, i, KEYWORD_SHALLOW), false))
        node->flags |= SCHEMA_SHALLOW;
    if ((node->flags & SCHEMA_BOUNDARY) == SCHEMA_BOUNDARY)
        return draft_fail(c, i, spot_keyword(KEYWORD_AS_STREAM),
                          "asCell and asStream exclude each other");
    return true;
}

static bool fill_one_type(schema_compiler *c, uint32_t i, hd_value name, spot at) {
    size_t length = 0;
    const char *text = hd_value_text(name, &length);
    if (!text)
        return draft_fail(c, i, at, "a type must be a string, not %s",
                          hd_kind_name(hd_value_kind(name)));
    for (size_t t = 0; t < sizeof type_names / sizeof *type_names; t++) {
        if (!draft_same_text(text, length, type_names[t].name, strlen(type_names[t].name)))
            continue;
        c->drafts.items[i].node->types |= type_names[t].bits;
        return true;
    }
    return draft_fail(c, i, at, "unknown type \"%s\"", text);
}

static bool fill_types(schema_compiler *c, uint32_t i) {
    hd_value type = draft_keyword(c, i, KEYWORD_TYPE);
    if (!value_exists(type)) return true;
    c->drafts.items[i].node->types = 0;
    if (hd_value_kind(type) == HD_KIND_STRING)
        return fill_one_type(c, i, type, spot_keyword(KEYWORD_TYPE));
    if (hd_value_count(type) == 0)
        return draft_fail(c, i, spot_keyword(KEYWORD_TYPE), "type must name at least one type");
    for (hd_iter it = hd_iter_of(type); hd_iter_next(&it);) {
        char text[24];
        if (!fill_one_type(c, i, it.value, spot_index(KEYWORD_TYPE, it.index, text))) return false;
    }
    return true;
}

static bool fill_values(schema_compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    node->default_value = draft_keyword(c, i, KEYWORD_DEFAULT);
    node->const_value = draft_keyword(c, i, KEYWORD_CONST);
    node->enum_values = draft_keyword(c, i, KEYWORD_ENUM);
    if (value_exists(node->enum_values) && hd_value_count(node->enum_values) == 0)
        return draft_fail(c, i, spot_keyword(KEYWORD_ENUM), "enum must list at least one value");
    return true;
}

/* The schema at a keyword that holds one: `otherwise` when it is not there, NULL after a failure. */
static const schema_node *fill_one(schema_compiler *c, uint32_t i, keyword k,
                                   const schema_node *otherwise) {
    hd_value source = draft_keyword(c, i, k);
    return value_exists(source) ? draft_add_child(c, i, k, NULL, 0, source) : otherwise;
}

/* `properties` is in order already: objects iterate by key. */
static bool fill_declared(schema_compiler *c, uint32_t i) {
    hd_value properties = draft_keyword(c, i, KEYWORD_PROPERTIES);
    for (hd_iter it = hd_iter_of(properties); hd_iter_next(&it);) {
        uint32_t child = c->drafts.count;
        schema_node *node =
            draft_add_child(c, i, KEYWORD_PROPERTIES, it.key, it.key_length, it.value);
        if (!node) return false;
        const draft *d = &c->drafts.items[child];
        schema_property p = { d->name, d->name_length, node, false, true };
        if (!vec_push(c->env, &c->properties, p)) return draft_fail_memory(c);
    }
    return true;
}

/* Marks the declared ones; those that are not declared are appended. A name given twice is
 * harmless. */
static bool fill_required(schema_compiler *c, uint32_t i) {
    const schema_node *additional = c->drafts.items[i].node->additional;
    uint32_t declared = c->properties.count;
    for (hd_iter it = hd_iter_of(draft_keyword(c, i, KEYWORD_REQUIRED)); hd_iter_next(&it);) {
        schema_property p = { .node = additional, .required = true };
        const char *text = hd_value_text(it.value, &p.key_length);
        char number[24];
        if (!text)
            return draft_fail(c, i, spot_index(KEYWORD_REQUIRED, it.index, number),
                              "a required name must be a string, not %s",
                              hd_kind_name(hd_value_kind(it.value)));
        p.key = text;
        schema_property *known = declared ? bsearch(&p, c->properties.items, declared, sizeof p,
                                                    draft_compare_properties)
                                          : NULL;
        if (known) {
            known->required = true;
            continue;
        }
        p.key = arena_copy(&c->schema->memory, text, p.key_length);
        if (!p.key || !vec_push(c->env, &c->properties, p)) return draft_fail_memory(c);
    }
    return true;
}

/* Sorted, without repetitions, into memory of the schema. */
static bool store_properties(schema_compiler *c, schema_node *node) {
    uint32_t count = c->properties.count, kept = 0;
    if (count == 0) return true;
    qsort(c->properties.items, count, sizeof *c->properties.items, draft_compare_properties);
    schema_property *stored = arena_alloc_array(&c->schema->memory, count, sizeof *stored);
    if (!stored) return draft_fail_memory(c);
    for (uint32_t k = 0; k < count; k++) {
        const schema_property *p = &c->properties.items[k];
        if (kept == 0 || draft_compare_properties(p, &stored[kept - 1]) != 0) stored[kept++] = *p;
    }
    node->properties = stored;
    node->property_count = kept;
    return true;
}

static bool fill_object(schema_compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value additional = draft_keyword(c, i, KEYWORD_ADDITIONAL);
    bool named = value_exists(draft_keyword(c, i, KEYWORD_PROPERTIES));
    bool closed = hd_value_kind(additional) == HD_KIND_BOOL && !hd_value_as_bool(additional, true);
    vec_clear(&c->properties);

    node->additional = fill_one(c, i, KEYWORD_ADDITIONAL, &schema_anything);
    if (!node->additional || !fill_declared(c, i) || !fill_required(c, i) ||
        !store_properties(c, node))
        return false;
    if (closed || (named && !value_exists(additional))) node->flags |= SCHEMA_NAMED_ONLY;
    if (named || value_exists(additional)) node->flags |= SCHEMA_KEYS;
    return true;
}

static bool fill_array(schema_compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value prefix = draft_keyword(c, i, KEYWORD_PREFIX_ITEMS);
    node->items = fill_one(c, i, KEYWORD_ITEMS, &schema_anything);
    if (!node->items) return false;
    if (node->items != &schema_anything || value_exists(prefix)) node->flags |= SCHEMA_ELEMENTS;
    return !value_exists(prefix) ||
           children_add(c, i, KEYWORD_PREFIX_ITEMS, prefix, &node->prefix, &node->prefix_count);
}

static bool fill_any(schema_compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value any = draft_keyword(c, i, KEYWORD_ANY_OF);
    if (!value_exists(any)) return true;
    if (hd_value_count(any) == 0)
        return draft_fail(c, i, spot_keyword(KEYWORD_ANY_OF),
                          "anyOf must list at least one schema");
    c->drafts.items[i].any_first = c->drafts.count;
    return children_add(c, i, KEYWORD_ANY_OF, any, &node->any, &node->any_count);
}

static bool fill_defs(schema_compiler *c, uint32_t i) {
    for (hd_iter it = hd_iter_of(draft_keyword(c, i, KEYWORD_DEFS)); hd_iter_next(&it);)
        if (!draft_add_child(c, i, KEYWORD_DEFS, it.key, it.key_length, it.value)) return false;
    return true;
}

/* A node of which nothing was said. Brands and a default change where and what is read, not what
 * matches. */
static void mark_anything(schema_node *node) {
    bool said = node->types != SCHEMA_ALL_TYPES || node->property_count || node->any_count ||
                (node->flags & (SCHEMA_KEYS | SCHEMA_ELEMENTS)) ||
                value_exists(node->const_value) || value_exists(node->enum_values);
    if (!said) node->flags |= SCHEMA_ANYTHING;
}

bool draft_fill(schema_compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value source = c->drafts.items[i].source;
    switch (hd_value_kind(source)) {
    case HD_KIND_BOOL:
        *node = hd_value_as_bool(source, true) ? schema_anything : schema_nothing;
        return true;
    case HD_KIND_OBJECT: break;
    default:
        return draft_fail(c, i, spot_itself, "a schema must be an object or a boolean, not %s",
                          hd_kind_name(hd_value_kind(source)));
    }
    if (!check_keywords(c, i) || !fill_brands(c, i) || !fill_types(c, i) || !fill_values(c, i) ||
        !fill_object(c, i) || !fill_array(c, i) || !fill_any(c, i) || !fill_defs(c, i))
        return false;
    mark_anything(node);
    return true;
}
