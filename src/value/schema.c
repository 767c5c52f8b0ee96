/* schema.c -- questions to a compiled schema. */
#include "value/schema.h"
#include <math.h>

const schema_node schema_anything = { .flags = SCHEMA_ANYTHING,
                                      .types = SCHEMA_ALL_TYPES,
                                      .additional = &schema_anything,
                                      .items = &schema_anything,
                                      .body = &schema_anything };

const schema_node schema_nothing = {
    .types = 0, .additional = &schema_anything, .items = &schema_anything, .body = &schema_nothing
};

hd_value hd_schema_source(const hd_schema *schema) { return schema->source; }

/* ---- Questions to a node ----------------------------------------------------------------- */

static int compare_keys(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

const schema_property *schema_node_find(const schema_node *node, const char *key, size_t length) {
    uint32_t low = 0, high = node->property_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const schema_property *p = &node->properties[middle];
        int order = compare_keys(key, length, p->key, p->key_length);
        if (order == 0) return p;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

const schema_node *schema_node_property(const schema_node *node, const char *key, size_t length) {
    const schema_property *p = schema_node_find(node, key, length);
    if (p && p->declared) return p->node;
    return node->flags & SCHEMA_NAMED_ONLY ? NULL : node->additional;
}

/* 2^63 is a double; the largest double below it is an int64_t. */
static bool is_whole(double d) { return d >= -0x1p63 && d < 0x1p63 && d == floor(d); }

unsigned schema_type_of(hd_value v) {
    switch (hd_value_kind(v)) {
    case HD_KIND_NULL: return SCHEMA_NULL;
    case HD_KIND_BOOL: return SCHEMA_BOOLEAN;
    case HD_KIND_INT: return SCHEMA_INTEGER;
    case HD_KIND_DOUBLE: return is_whole(value_double_of(v)) ? SCHEMA_INTEGER : SCHEMA_FRACTION;
    case HD_KIND_STRING: return SCHEMA_STRING;
    case HD_KIND_BYTES: return SCHEMA_BYTES;
    case HD_KIND_ARRAY: return SCHEMA_ARRAY;
    case HD_KIND_OBJECT: return SCHEMA_OBJECT;
    case HD_KIND_LINK: return SCHEMA_LINK;
    case HD_KIND_ABSENT:
    case HD_KIND_FAILED: break;
    }
    return 0;
}
