/* schema_draft.c -- keywords, drafts, failure; see the header. */
#include "value/schema_draft.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/pointer.h"
#include <stdio.h>

/* ---- Keywords ---------------------------------------------------------------------------- */

#define KIND(kind)   (1u << HD_KIND_##kind)
#define KINDS_SCHEMA (KIND(OBJECT) | KIND(BOOL))
#define KINDS_ALL    (~0u)

const keyword_info schema_keywords[KEYWORD_COUNT] = {
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

keyword schema_keyword_find(const char *name, size_t length) {
    for (int k = 0; k < KEYWORD_COUNT; k++)
        if (draft_same_text(name, length, schema_keywords[k].name, strlen(schema_keywords[k].name)))
            return (keyword)k;
    return KEYWORD_COUNT;
}

/* ---- Failure ----------------------------------------------------------------------------- */

bool draft_fail_memory(schema_compiler *c) {
    c->status = HD_NOMEM;
    env_error(c->error, HD_NOMEM, "%s", hd_status_text(HD_NOMEM));
    return false;
}

const spot spot_itself = { NULL, NULL, 0 };
spot spot_keyword(keyword k) { return (spot){ schema_keywords[k].name, NULL, 0 }; }
spot spot_key(const char *key, size_t length) { return (spot){ NULL, key, length }; }
spot spot_index(keyword k, size_t index, char text[static 24]) {
    int length = snprintf(text, 24, "%zu", index);
    return (spot){ schema_keywords[k].name, text, (size_t)length };
}

static void print_path(const schema_compiler *c, uint32_t i, spot s, hd_error *error) {
    uint32_t chain[SCHEMA_DEPTH_MAX + 1];
    uint32_t length = 0;
    for (; c->drafts.items[i].parent != DRAFT_NONE; i = c->drafts.items[i].parent)
        chain[length++] = i;
    pointer p = pointer_begin(error->path, sizeof error->path);
    while (length > 0) {
        const draft *d = &c->drafts.items[chain[--length]];
        pointer_key(&p, schema_keywords[d->keyword].name, strlen(schema_keywords[d->keyword].name));
        if (d->name) pointer_key(&p, d->name, d->name_length);
    }
    if (s.keyword) pointer_key(&p, s.keyword, strlen(s.keyword));
    if (s.key) pointer_key(&p, s.key, s.key_length);
    pointer_end(&p);
}

bool draft_fail(schema_compiler *c, uint32_t i, spot s, const char *format, ...) {
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

uint32_t draft_find_child(const schema_compiler *c, uint32_t parent, keyword k, const char *name,
                          size_t length) {
    uint32_t hash = child_hash(parent, k, name, length);
    for (table_probe p = table_find(&c->children, hash); table_next(&c->children, &p);) {
        const draft *d = &c->drafts.items[p.index];
        if (d->parent == parent && d->keyword == k &&
            draft_same_text(d->name ? d->name : "", d->name_length, name, length))
            return p.index;
    }
    return DRAFT_NONE;
}

bool draft_add(schema_compiler *c, draft d) {
    d.node = arena_alloc(&c->schema->memory, sizeof *d.node);
    if (!d.node || !vec_push(c->env, &c->drafts, d)) return draft_fail_memory(c);
    *d.node = (schema_node){ .types = SCHEMA_ALL_TYPES,
                             .additional = &schema_anything,
                             .items = &schema_anything,
                             .body = d.node };
    return true;
}

static bool check_room(schema_compiler *c, uint32_t parent, keyword k) {
    if (c->drafts.items[parent].depth == SCHEMA_DEPTH_MAX)
        return draft_fail(c, parent, spot_keyword(k), "nested too deep");
    if (c->drafts.count == SCHEMA_NODES_MAX)
        return draft_fail(c, parent, spot_keyword(k), "too many schemas");
    return true;
}

schema_node *draft_add_child(schema_compiler *c, uint32_t parent, keyword k, const char *name,
                             size_t length, hd_value source) {
    if (!check_room(c, parent, k)) return NULL;
    draft d = { .source = source,
                .parent = parent,
                .keyword = k,
                .name = name ? arena_copy(&c->schema->memory, name, length) : NULL,
                .name_length = length,
                .depth = c->drafts.items[parent].depth + 1,
                .target = DRAFT_NONE };
    uint32_t index = c->drafts.count, hash = child_hash(parent, k, name ? name : "", length);
    if ((name && !d.name) || table_insert(&c->children, hash, index)) {
        draft_fail_memory(c);
        return NULL;
    }
    return draft_add(c, d) ? c->drafts.items[index].node : NULL;
}

int draft_compare_properties(const void *a, const void *b) {
    const schema_property *p = a, *q = b;
    size_t shorter = p->key_length < q->key_length ? p->key_length : q->key_length;
    int order = memcmp(p->key, q->key, shorter);
    return order ? order : (p->key_length > q->key_length) - (p->key_length < q->key_length);
}
