/* schema_compile.c -- from a value to a graph of nodes.
 *
 * Four steps over one list of *drafts*, one for each schema inside the schema:
 *
 *     1. fill     each draft in turn: check its keywords, fill its node, append its children
 *     2. resolve  find the draft that each `$ref` names
 *     3. settle   along `$ref` and `anyOf`, which consume no input: refuse cycles, and let each
 *                 reference take over what it refers to
 *     4. reach    carry the brands asCell and asStream upwards, so that reads and collection can
 *                 pass over parts without any
 *
 * Nothing recurses: the list is the queue. Everything that is wrong is refused with its path. */
#include "base/env.h"
#include "base/hash.h"
#include "base/pointer.h"
#include "base/table.h"
#include "base/vec.h"
#include "value/heap.h"
#include "value/schema.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- Keywords ---------------------------------------------------------------------------- */

typedef enum keyword {
    KEYWORD_ADDITIONAL,
    KEYWORD_ANY_OF,
    KEYWORD_AS_CELL,
    KEYWORD_AS_STREAM,
    KEYWORD_CONST,
    KEYWORD_DEFAULT,
    KEYWORD_DEFS,
    KEYWORD_DESCRIPTION,
    KEYWORD_ENUM,
    KEYWORD_ITEMS,
    KEYWORD_PREFIX_ITEMS,
    KEYWORD_PROPERTIES,
    KEYWORD_REF,
    KEYWORD_REQUIRED,
    KEYWORD_SHALLOW,
    KEYWORD_TITLE,
    KEYWORD_TYPE,
    KEYWORD_COUNT
} keyword;

#define KIND(kind)   (1u << HD_KIND_##kind)
#define KINDS_SCHEMA (KIND(OBJECT) | KIND(BOOL))
#define KINDS_ALL    (~0u)

/* `child`: holds a schema at that key ("one"), or schemas below it by key or index ("many").
 * `shape`: says something about parts of the value, so it cannot stand beside anyOf.
 * `brand`: may stand beside $ref, and adds to what that says. */
static const struct {
    const char *name;
    unsigned kinds;
    const char *want;
    enum { CHILD_NONE, CHILD_ONE, CHILD_MANY } child;
    bool shape, brand;
} keywords[KEYWORD_COUNT] = {
    [KEYWORD_ADDITIONAL] = { "additionalProperties", KINDS_SCHEMA, "a schema or a boolean",
                             CHILD_ONE, true, false },
    [KEYWORD_ANY_OF] = { "anyOf", KIND(ARRAY), "an array of schemas", CHILD_MANY, false, false },
    [KEYWORD_AS_CELL] = { "asCell", KIND(BOOL), "a boolean", CHILD_NONE, false, true },
    [KEYWORD_AS_STREAM] = { "asStream", KIND(BOOL), "a boolean", CHILD_NONE, false, true },
    [KEYWORD_CONST] = { "const", KINDS_ALL, "a value", CHILD_NONE, false, false },
    [KEYWORD_DEFAULT] = { "default", KINDS_ALL, "a value", CHILD_NONE, false, true },
    [KEYWORD_DEFS] = { "$defs", KIND(OBJECT), "an object of schemas", CHILD_MANY, false, true },
    [KEYWORD_DESCRIPTION] = { "description", KIND(STRING), "a string", CHILD_NONE, false, true },
    [KEYWORD_ENUM] = { "enum", KIND(ARRAY), "an array of values", CHILD_NONE, false, false },
    [KEYWORD_ITEMS] = { "items", KINDS_SCHEMA, "a schema or a boolean", CHILD_ONE, true, false },
    [KEYWORD_PREFIX_ITEMS] = { "prefixItems", KIND(ARRAY), "an array of schemas", CHILD_MANY, true,
                               false },
    [KEYWORD_PROPERTIES] = { "properties", KIND(OBJECT), "an object of schemas", CHILD_MANY, true,
                             false },
    [KEYWORD_REF] = { "$ref", KIND(STRING), "a string", CHILD_NONE, false, true },
    [KEYWORD_REQUIRED] = { "required", KIND(ARRAY), "an array of strings", CHILD_NONE, true,
                           false },
    [KEYWORD_SHALLOW] = { "shallow", KIND(BOOL), "a boolean", CHILD_NONE, false, true },
    [KEYWORD_TITLE] = { "title", KIND(STRING), "a string", CHILD_NONE, false, true },
    [KEYWORD_TYPE] = { "type", KIND(STRING) | KIND(ARRAY), "a string or an array of strings",
                       CHILD_NONE, false, false },
};

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

static bool same_text(const char *a, size_t a_length, const char *b, size_t b_length) {
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

static keyword keyword_find(const char *name, size_t length) {
    for (int k = 0; k < KEYWORD_COUNT; k++)
        if (same_text(name, length, keywords[k].name, strlen(keywords[k].name))) return (keyword)k;
    return KEYWORD_COUNT;
}

/* ---- Drafts ------------------------------------------------------------------------------ */

#define DRAFT_NONE UINT32_MAX

/* One schema inside the schema while it is being compiled. Children follow their parent in the
 * list; those of one anyOf follow each other. */
typedef struct draft {
    schema_node *node;
    hd_value source;
    uint32_t parent; /* DRAFT_NONE: the root */
    keyword keyword; /* of the parent that holds us; the rest of our path is `name` */
    const char *name;
    size_t name_length; /* name NULL: the keyword holds one schema only */
    uint32_t depth;
    uint32_t any_first; /* the first draft of our anyOf */
    uint32_t target;    /* what $ref names; DRAFT_NONE: no reference */
    uint32_t referrer;  /* the last draft that refers to us; then `next_referrer`, ... */
    uint32_t next_referrer;
    enum { UNSEEN, OPEN, SETTLED } state;
} draft;

typedef struct settle_frame {
    uint32_t draft, next;
} settle_frame;

typedef struct compiler {
    hd_schema *schema;
    const hd_env *env;
    hd_error *error;
    hd_status status; /* the first failure */
    VEC(draft) drafts;
    table children; /* hash of (parent, keyword, name) -> draft */
    VEC(schema_property) properties;
    VEC(settle_frame) open;
    VEC(uint32_t) reached;
} compiler;

/* ---- Failure ----------------------------------------------------------------------------- */

static bool fail_memory(compiler *c) {
    c->status = HD_NOMEM;
    env_error(c->error, HD_NOMEM, "%s", hd_status_text(HD_NOMEM));
    return false;
}

/* What of a schema is wrong: a keyword, or a key or index below it, or the whole. */
typedef struct spot {
    const char *keyword, *key; /* NULL: not so far */
    size_t key_length;
} spot;

static const spot itself = { NULL, NULL, 0 };
static spot at_keyword(keyword k) { return (spot){ keywords[k].name, NULL, 0 }; }
static spot at_key(const char *key, size_t length) { return (spot){ NULL, key, length }; }
static spot at_index(keyword k, size_t index, char text[static 24]) {
    int length = snprintf(text, 24, "%zu", index);
    return (spot){ keywords[k].name, text, (size_t)length };
}

static void print_path(const compiler *c, uint32_t i, spot s, hd_error *error) {
    uint32_t chain[SCHEMA_DEPTH_MAX + 1];
    uint32_t length = 0;
    for (; c->drafts.items[i].parent != DRAFT_NONE; i = c->drafts.items[i].parent)
        chain[length++] = i;
    pointer p = pointer_begin(error->path, sizeof error->path);
    while (length > 0) {
        const draft *d = &c->drafts.items[chain[--length]];
        pointer_key(&p, keywords[d->keyword].name, strlen(keywords[d->keyword].name));
        if (d->name) pointer_key(&p, d->name, d->name_length);
    }
    if (s.keyword) pointer_key(&p, s.keyword, strlen(s.keyword));
    if (s.key) pointer_key(&p, s.key, s.key_length);
    pointer_end(&p);
}

HD_PRINTF(4, 5)
static bool fail(compiler *c, uint32_t i, spot s, const char *format, ...) {
    c->status = HD_SCHEMA;
    if (!c->error) return false;
    va_list arguments;
    va_start(arguments, format);
    env_error_v(c->error, HD_SCHEMA, format, arguments);
    va_end(arguments);
    print_path(c, i, s, c->error);
    return false;
}

/* ---- Making drafts ----------------------------------------------------------------------- */

static uint32_t child_hash(uint32_t parent, keyword k, const char *name, size_t length) {
    return hash_fold(hash_bytes(name, length, hash_combine(parent, k)));
}

static uint32_t child_find(const compiler *c, uint32_t parent, keyword k, const char *name,
                           size_t length) {
    uint32_t hash = child_hash(parent, k, name, length);
    for (table_probe p = table_find(&c->children, hash); table_next(&c->children, &p);) {
        const draft *d = &c->drafts.items[p.index];
        if (d->parent == parent && d->keyword == k &&
            same_text(d->name ? d->name : "", d->name_length, name, length))
            return p.index;
    }
    return DRAFT_NONE;
}

static bool draft_add(compiler *c, draft d) {
    d.node = arena_alloc(&c->schema->memory, sizeof *d.node);
    if (!d.node || !vec_push(c->env, &c->drafts, d)) return fail_memory(c);
    *d.node = (schema_node){ .types = SCHEMA_ALL_TYPES,
                             .additional = &schema_anything,
                             .items = &schema_anything,
                             .body = d.node };
    return true;
}

/* The node for a schema that `parent` holds at keyword and name (NULL: at the keyword itself);
 * NULL after a failure. */
static schema_node *child_add(compiler *c, uint32_t parent, keyword k, const char *name,
                              size_t length, hd_value source) {
    uint32_t index = c->drafts.count, depth = c->drafts.items[parent].depth + 1;
    if (depth > SCHEMA_DEPTH_MAX || index >= SCHEMA_NODES_MAX) {
        bool deep = depth > SCHEMA_DEPTH_MAX;
        fail(c, parent, at_keyword(k), "%s", deep ? "nested too deep" : "too many schemas");
        return NULL;
    }
    const char *copy = name ? arena_copy(&c->schema->memory, name, length) : NULL;
    draft d = { .source = source,
                .parent = parent,
                .keyword = k,
                .name = copy,
                .name_length = length,
                .depth = depth,
                .target = DRAFT_NONE,
                .referrer = DRAFT_NONE,
                .next_referrer = DRAFT_NONE };
    if ((name && !copy) || !draft_add(c, d)) {
        fail_memory(c);
        return NULL;
    }
    uint32_t hash = child_hash(parent, k, name ? name : "", length);
    if (table_insert(&c->children, hash, index)) {
        fail_memory(c);
        return NULL;
    }
    return c->drafts.items[index].node;
}

/* An array of nodes for the array of schemas at a keyword; false after a failure. */
static bool children_add(compiler *c, uint32_t i, keyword k, hd_value schemas,
                         const schema_node *const **out, uint32_t *count) {
    size_t n = hd_value_count(schemas);
    const schema_node **nodes = arena_alloc_array(&c->schema->memory, n, sizeof *nodes);
    if (!nodes) return fail_memory(c);
    for (hd_iter it = hd_iter_of(schemas); hd_iter_next(&it);) {
        char name[24];
        int length = snprintf(name, sizeof name, "%zu", it.index);
        nodes[it.index] = child_add(c, i, k, name, (size_t)length, it.value);
        if (!nodes[it.index]) return false;
    }
    *out = nodes;
    *count = (uint32_t)n;
    return true;
}

/* ---- 1. Fill ----------------------------------------------------------------------------- */

static hd_value keyword_of(const compiler *c, uint32_t i, keyword k) {
    return hd_value_at(c->drafts.items[i].source, keywords[k].name);
}

/* Every key is a keyword of the right kind, and they may stand beside each other. */
static bool check_keywords(compiler *c, uint32_t i) {
    hd_value source = c->drafts.items[i].source;
    bool refers = value_exists(keyword_of(c, i, KEYWORD_REF));
    bool chooses = value_exists(keyword_of(c, i, KEYWORD_ANY_OF));
    for (hd_iter it = hd_iter_of(source); hd_iter_next(&it);) {
        keyword k = keyword_find(it.key, it.key_length);
        if (k == KEYWORD_COUNT)
            return fail(c, i, at_key(it.key, it.key_length), "unknown keyword \"%s\"", it.key);
        if (!(keywords[k].kinds & (1u << hd_value_kind(it.value))))
            return fail(c, i, at_keyword(k), "%s must be %s, not %s", keywords[k].name,
                        keywords[k].want, hd_kind_name(hd_value_kind(it.value)));
        if (refers && !keywords[k].brand)
            return fail(c, i, at_keyword(k), "%s cannot stand beside $ref", keywords[k].name);
        if (chooses && keywords[k].shape)
            return fail(c, i, at_keyword(k),
                        "%s cannot stand beside anyOf: put it into the alternatives",
                        keywords[k].name);
    }
    return true;
}

static bool fill_brands(compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    if (hd_value_as_bool(keyword_of(c, i, KEYWORD_AS_CELL), false)) node->flags |= SCHEMA_CELL;
    if (hd_value_as_bool(keyword_of(c, i, KEYWORD_AS_STREAM), false)) node->flags |= SCHEMA_STREAM;
    if (hd_value_as_bool(keyword_of(c, i, KEYWORD_SHALLOW), false)) node->flags |= SCHEMA_SHALLOW;
    if ((node->flags & SCHEMA_BOUNDARY) == SCHEMA_BOUNDARY)
        return fail(c, i, at_keyword(KEYWORD_AS_STREAM), "asCell and asStream exclude each other");
    return true;
}

static bool fill_one_type(compiler *c, uint32_t i, hd_value name, spot at) {
    size_t length = 0;
    const char *text = hd_value_text(name, &length);
    if (!text)
        return fail(c, i, at, "a type must be a string, not %s", hd_kind_name(hd_value_kind(name)));
    for (size_t t = 0; t < sizeof type_names / sizeof *type_names; t++) {
        if (!same_text(text, length, type_names[t].name, strlen(type_names[t].name))) continue;
        c->drafts.items[i].node->types |= type_names[t].bits;
        return true;
    }
    return fail(c, i, at, "unknown type \"%s\"", text);
}

static bool fill_types(compiler *c, uint32_t i) {
    hd_value type = keyword_of(c, i, KEYWORD_TYPE);
    if (!value_exists(type)) return true;
    c->drafts.items[i].node->types = 0;
    if (hd_value_kind(type) == HD_KIND_STRING)
        return fill_one_type(c, i, type, at_keyword(KEYWORD_TYPE));
    if (hd_value_count(type) == 0)
        return fail(c, i, at_keyword(KEYWORD_TYPE), "type must name at least one type");
    for (hd_iter it = hd_iter_of(type); hd_iter_next(&it);) {
        char text[24];
        if (!fill_one_type(c, i, it.value, at_index(KEYWORD_TYPE, it.index, text))) return false;
    }
    return true;
}

static bool fill_values(compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    node->default_value = keyword_of(c, i, KEYWORD_DEFAULT);
    node->const_value = keyword_of(c, i, KEYWORD_CONST);
    node->enum_values = keyword_of(c, i, KEYWORD_ENUM);
    if (value_exists(node->enum_values) && hd_value_count(node->enum_values) == 0)
        return fail(c, i, at_keyword(KEYWORD_ENUM), "enum must list at least one value");
    return true;
}

/* The schema at a keyword that holds one: `otherwise` when it is not there, NULL after a failure. */
static const schema_node *fill_one(compiler *c, uint32_t i, keyword k,
                                   const schema_node *otherwise) {
    hd_value source = keyword_of(c, i, k);
    return value_exists(source) ? child_add(c, i, k, NULL, 0, source) : otherwise;
}

/* `properties` is in order already: objects iterate by key. */
static bool fill_declared(compiler *c, uint32_t i) {
    hd_value properties = keyword_of(c, i, KEYWORD_PROPERTIES);
    for (hd_iter it = hd_iter_of(properties); hd_iter_next(&it);) {
        uint32_t child = c->drafts.count;
        schema_node *node = child_add(c, i, KEYWORD_PROPERTIES, it.key, it.key_length, it.value);
        if (!node) return false;
        const draft *d = &c->drafts.items[child];
        schema_property p = { d->name, d->name_length, node, false, true };
        if (!vec_push(c->env, &c->properties, p)) return fail_memory(c);
    }
    return true;
}

static int compare_properties(const void *a, const void *b) {
    const schema_property *p = a, *q = b;
    size_t shorter = p->key_length < q->key_length ? p->key_length : q->key_length;
    int order = memcmp(p->key, q->key, shorter);
    return order ? order : (p->key_length > q->key_length) - (p->key_length < q->key_length);
}

/* Marks the declared ones; those that are not declared are appended. A name given twice is
 * harmless. */
static bool fill_required(compiler *c, uint32_t i) {
    const schema_node *additional = c->drafts.items[i].node->additional;
    uint32_t declared = c->properties.count;
    for (hd_iter it = hd_iter_of(keyword_of(c, i, KEYWORD_REQUIRED)); hd_iter_next(&it);) {
        schema_property p = { .node = additional, .required = true };
        const char *text = hd_value_text(it.value, &p.key_length);
        char number[24];
        if (!text)
            return fail(c, i, at_index(KEYWORD_REQUIRED, it.index, number),
                        "a required name must be a string, not %s",
                        hd_kind_name(hd_value_kind(it.value)));
        p.key = text;
        schema_property *known =
            declared ? bsearch(&p, c->properties.items, declared, sizeof p, compare_properties)
                     : NULL;
        if (known) {
            known->required = true;
            continue;
        }
        p.key = arena_copy(&c->schema->memory, text, p.key_length);
        if (!p.key || !vec_push(c->env, &c->properties, p)) return fail_memory(c);
    }
    return true;
}

/* Sorted, without repetitions, into memory of the schema. */
static bool store_properties(compiler *c, schema_node *node) {
    uint32_t count = c->properties.count, kept = 0;
    if (count == 0) return true;
    qsort(c->properties.items, count, sizeof *c->properties.items, compare_properties);
    schema_property *stored = arena_alloc_array(&c->schema->memory, count, sizeof *stored);
    if (!stored) return fail_memory(c);
    for (uint32_t k = 0; k < count; k++) {
        const schema_property *p = &c->properties.items[k];
        if (kept == 0 || compare_properties(p, &stored[kept - 1]) != 0) stored[kept++] = *p;
    }
    node->properties = stored;
    node->property_count = kept;
    return true;
}

static bool fill_object(compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value additional = keyword_of(c, i, KEYWORD_ADDITIONAL);
    bool named = value_exists(keyword_of(c, i, KEYWORD_PROPERTIES));
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

static bool fill_array(compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value prefix = keyword_of(c, i, KEYWORD_PREFIX_ITEMS);
    node->items = fill_one(c, i, KEYWORD_ITEMS, &schema_anything);
    if (!node->items) return false;
    if (node->items != &schema_anything || value_exists(prefix)) node->flags |= SCHEMA_ELEMENTS;
    return !value_exists(prefix) ||
           children_add(c, i, KEYWORD_PREFIX_ITEMS, prefix, &node->prefix, &node->prefix_count);
}

static bool fill_any(compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value any = keyword_of(c, i, KEYWORD_ANY_OF);
    if (!value_exists(any)) return true;
    if (hd_value_count(any) == 0)
        return fail(c, i, at_keyword(KEYWORD_ANY_OF), "anyOf must list at least one schema");
    c->drafts.items[i].any_first = c->drafts.count;
    return children_add(c, i, KEYWORD_ANY_OF, any, &node->any, &node->any_count);
}

static bool fill_defs(compiler *c, uint32_t i) {
    for (hd_iter it = hd_iter_of(keyword_of(c, i, KEYWORD_DEFS)); hd_iter_next(&it);)
        if (!child_add(c, i, KEYWORD_DEFS, it.key, it.key_length, it.value)) return false;
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

static bool fill(compiler *c, uint32_t i) {
    schema_node *node = c->drafts.items[i].node;
    hd_value source = c->drafts.items[i].source;
    switch (hd_value_kind(source)) {
    case HD_KIND_BOOL:
        *node = hd_value_as_bool(source, true) ? schema_anything : schema_nothing;
        return true;
    case HD_KIND_OBJECT: break;
    default:
        return fail(c, i, itself, "a schema must be an object or a boolean, not %s",
                    hd_kind_name(hd_value_kind(source)));
    }
    if (!check_keywords(c, i) || !fill_brands(c, i) || !fill_types(c, i) || !fill_values(c, i) ||
        !fill_object(c, i) || !fill_array(c, i) || !fill_any(c, i) || !fill_defs(c, i))
        return false;
    mark_anything(node);
    return true;
}

/* ---- 2. Resolve -------------------------------------------------------------------------- */

/* Takes the next segment off a pointer, which begins with "/", into memory of the schema. */
static bool pointer_segment(compiler *c, const char **at, const char *end, char **segment,
                            size_t *length) {
    const char *from = *at + 1, *to = memchr(from, '/', (size_t)(end - from));
    *at = to = to ? to : end;
    char *out = arena_alloc(&c->schema->memory, (size_t)(to - from) + 1);
    if (!out) return fail_memory(c);
    *segment = out;
    for (; from < to; from++) {
        bool escape = *from == '~' && from + 1 < to && (from[1] == '0' || from[1] == '1');
        *out++ = escape ? (*++from == '0' ? '~' : '/') : *from;
    }
    *out = 0;
    *length = (size_t)(out - *segment);
    return true;
}

/* The draft that a pointer names, from the root; DRAFT_NONE: there is no schema at that place. */
static bool resolve_pointer(compiler *c, const char *at, const char *end, uint32_t *out) {
    uint32_t found = 0;
    while (at < end && *at == '/' && found != DRAFT_NONE) {
        char *segment;
        size_t length;
        if (!pointer_segment(c, &at, end, &segment, &length)) return false;
        keyword k = keyword_find(segment, length);
        segment = "";
        length = 0;
        bool many = k < KEYWORD_COUNT && keywords[k].child == CHILD_MANY;
        if (many && at < end && !pointer_segment(c, &at, end, &segment, &length)) return false;
        found = child_find(c, found, k, segment, length);
    }
    *out = at == end ? found : DRAFT_NONE;
    return true;
}

static bool resolve(compiler *c, uint32_t i) {
    size_t length;
    const char *text = hd_value_text(keyword_of(c, i, KEYWORD_REF), &length);
    if (!text) return true;
    uint32_t target = DRAFT_NONE;
    if (length > 0 && text[0] == '#' && !resolve_pointer(c, text + 1, text + length, &target))
        return false;
    if (target == DRAFT_NONE)
        return fail(c, i, at_keyword(KEYWORD_REF), "there is no schema at \"%s\"", text);
    draft *from = &c->drafts.items[i], *to = &c->drafts.items[target];
    from->target = target;
    from->next_referrer = to->referrer;
    to->referrer = i;
    return true;
}

/* ---- 3. Settle --------------------------------------------------------------------------- */

/* What a reference says itself (brands, a default) goes before what it refers to. */
static void take_over(schema_node *node, const schema_node *target) {
    unsigned flags = node->flags & (SCHEMA_BOUNDARY | SCHEMA_SHALLOW);
    hd_value default_value = node->default_value;
    *node = *target;
    if (flags & SCHEMA_BOUNDARY) node->flags &= ~SCHEMA_BOUNDARY;
    node->flags |= flags;
    if (value_exists(default_value)) node->default_value = default_value;
}

/* The drafts that a value at this one is matched with before any of it is consumed. */
static uint32_t settle_next(const draft *d, uint32_t n) {
    if (d->target != DRAFT_NONE) return n == 0 ? d->target : DRAFT_NONE;
    return n < d->node->any_count ? d->any_first + n : DRAFT_NONE;
}

static bool settle_open(compiler *c, uint32_t i) {
    draft *d = &c->drafts.items[i];
    if (d->state == SETTLED) return true;
    if (d->state == OPEN)
        return fail(c, i, itself, "the schema leads back to itself without consuming any input");
    d->state = OPEN;
    if (!vec_push(c->env, &c->open, ((settle_frame){ i, 0 }))) return fail_memory(c);
    return true;
}

static bool settle(compiler *c, uint32_t i) {
    if (!settle_open(c, i)) return false;
    while (c->open.count > 0) {
        settle_frame *frame = &vec_last(&c->open);
        draft *d = &c->drafts.items[frame->draft];
        uint32_t next = settle_next(d, frame->next++);
        if (next != DRAFT_NONE) {
            if (!settle_open(c, next)) return false;
            continue;
        }
        if (d->target != DRAFT_NONE) take_over(d->node, c->drafts.items[d->target].node);
        d->state = SETTLED;
        c->open.count--;
    }
    return true;
}

/* ---- 4. Reach ---------------------------------------------------------------------------- */

/* `to` sees what `from` reaches, unless a boundary hides it. */
static bool reach_from(compiler *c, uint32_t to, unsigned brands) {
    schema_node *node = c->drafts.items[to].node;
    unsigned reach = node->flags & SCHEMA_BOUNDARY ? node->reach : node->reach | brands;
    if (reach == node->reach) return true;
    node->reach = reach;
    return vec_push(c->env, &c->reached, to) ? true : fail_memory(c);
}

static bool reach(compiler *c) {
    for (uint32_t i = 0; i < c->drafts.count; i++) {
        schema_node *node = c->drafts.items[i].node;
        node->reach = node->flags & SCHEMA_BOUNDARY;
        if (node->reach && !vec_push(c->env, &c->reached, i)) return fail_memory(c);
    }
    while (c->reached.count > 0) {
        uint32_t i = vec_pop(&c->reached);
        const draft *d = &c->drafts.items[i];
        bool contained = d->parent != DRAFT_NONE && d->keyword != KEYWORD_DEFS;
        if (contained && !reach_from(c, d->parent, d->node->reach)) return false;
        for (uint32_t r = d->referrer; r != DRAFT_NONE; r = c->drafts.items[r].next_referrer)
            if (!reach_from(c, r, d->node->reach)) return false;
    }
    return true;
}

/* ---- Check ------------------------------------------------------------------------------- */

/* Asserts that `part`, which belongs to `node`, hides no brand from it. */
static void check_part(const schema_node *node, const schema_node *part) {
    assert(part && part->body);
    assert((node->flags & SCHEMA_BOUNDARY) || (part->reach & ~node->reach) == 0);
    (void)node, (void)part;
}

static void check_node(const schema_node *node) {
    check_part(node, node->additional);
    check_part(node, node->items);
    for (uint32_t i = 0; i < node->prefix_count; i++) check_part(node, node->prefix[i]);
    for (uint32_t i = 0; i < node->any_count; i++) check_part(node, node->any[i]);
    for (uint32_t i = 0; i < node->property_count; i++) {
        check_part(node, node->properties[i].node);
        assert(i == 0 || compare_properties(&node->properties[i - 1], &node->properties[i]) < 0);
    }
    assert(!node->any_count || !(node->flags & (SCHEMA_KEYS | SCHEMA_ELEMENTS)));
    assert(!(node->flags & SCHEMA_NAMED_ONLY) || (node->flags & SCHEMA_KEYS));
}

/* ---- The whole --------------------------------------------------------------------------- */

static bool compile(compiler *c) {
    draft root = { .source = c->schema->source,
                   .parent = DRAFT_NONE,
                   .keyword = KEYWORD_COUNT,
                   .target = DRAFT_NONE,
                   .referrer = DRAFT_NONE,
                   .next_referrer = DRAFT_NONE };
    if (!draft_add(c, root)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++)
        if (!fill(c, i)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++)
        if (!resolve(c, i)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++)
        if (!settle(c, i)) return false;
    if (!reach(c)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++) check_node(c->drafts.items[i].node);
    c->schema->root = c->drafts.items[0].node;
    c->schema->node_count = c->drafts.count;
    return true;
}

static void compiler_fini(compiler *c) {
    vec_fini(c->env, &c->drafts);
    vec_fini(c->env, &c->properties);
    vec_fini(c->env, &c->open);
    vec_fini(c->env, &c->reached);
    table_fini(&c->children);
}

hd_status hd_schema_compile(hd_heap *heap, hd_value source, hd_schema **out, hd_error *error) {
    *out = NULL;
    compiler c = { .env = &heap->env, .error = error };
    table_init(&c.children, c.env);
    if (value_is_failed(source)) {
        env_error(error, hd_value_status(source), "%s", hd_status_text(hd_value_status(source)));
        return hd_value_status(source);
    }
    c.schema = env_new(c.env, sizeof *c.schema);
    if (c.schema) {
        *c.schema = (hd_schema){ .heap = heap, .source = hd_value_ref(source) };
        arena_init(&c.schema->memory, c.env);
        if (compile(&c)) {
            *out = c.schema;
            c.schema = NULL; /* handed to the caller */
        }
    } else {
        fail_memory(&c);
    }
    compiler_fini(&c);
    hd_schema_free(c.schema);
    return c.status;
}

void hd_schema_free(hd_schema *schema) {
    if (!schema) return;
    const hd_env *env = &schema->heap->env;
    arena_fini(&schema->memory);
    hd_value_unref(schema->source);
    env_free(env, schema, sizeof *schema);
}
