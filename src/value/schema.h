/* schema.h -- compiled schemas, and how a read walks one.
 *
 * A schema is compiled once into a graph of nodes, one for each place where the source has a
 * schema. `$ref` is resolved at compile time: a node that was a reference has taken over what it
 * refers to, so recursive schemas are cycles of the graph and a walk never meets a reference. The
 * graph is immutable.
 *
 * A node answers, for a value at its place:
 *
 *     which kinds match          types (links match wherever anything does: their target decides)
 *     where a read stops         SCHEMA_CELL, SCHEMA_STREAM: a boundary, the link is read and not
 *                                its target; SCHEMA_SHALLOW: the shape is read; SCHEMA_ANYTHING:
 *                                the whole is read
 *     which parts are read       schema_node_property, schema_node_items
 *     which alternative holds    schema_choose
 *     what stands for nothing    default_value
 *
 * A read of the store walks like this, at each place:
 *
 *     flags & (CELL | STREAM)    stop: a cell of this place
 *     v absent                   default_value, or absent
 *     v is a link                follow it, go on with the same node
 *     flags & SHALLOW, ANYTHING  take v by shape, or deep
 *     any_count                  node = schema_choose(node, v); none: mismatch; go on with it
 *     object                     each property, then (unless NAMED_ONLY) the other keys
 *     array                      each element
 *
 * Two differences from JSON Schema: `integer` accepts a double that is a whole number, as there,
 * but equality in `enum` and `const` is that of values (1 is not 1.0); and a required property with
 * a default is never missing. A stream is a place without a value: it is never missing either.
 *
 * Cost: schema_node_property O(log properties), the other questions O(1). Validation and projection
 * visit each part of the value once for each alternative that is tried on it; what alternatives
 * inside alternatives have found out about a value is remembered, so the work is bounded by parts
 * of the value * nodes of the schema * depth, never by 2^depth. */
#ifndef HD_VALUE_SCHEMA_H
#define HD_VALUE_SCHEMA_H

#include "base/arena.h"
#include "value/value.h"

#define SCHEMA_DEPTH_MAX 512   /* nesting of schemas within a schema, and of a collected path */
#define SCHEMA_NODES_MAX 65536 /* schemas within a schema */
#define SCHEMA_FRAMES_MAX                                                                          \
    2048 /* nested calls of a validation: alternatives and nesting of values */

typedef struct schema_node schema_node;

typedef enum schema_flag {
    SCHEMA_CELL = 1,        /* asCell: yields a cell */
    SCHEMA_STREAM = 2,      /* asStream: yields a stream */
    SCHEMA_SHALLOW = 4,     /* shallow: key set, length, existence, link identity */
    SCHEMA_ANYTHING = 8,    /* every value matches, and is read whole */
    SCHEMA_KEYS = 16,       /* says something about the keys of an object; else it is taken whole */
    SCHEMA_ELEMENTS = 32,   /* the same for the elements of an array */
    SCHEMA_NAMED_ONLY = 64, /* a read leaves out the keys that are not named */
} schema_flag;
#define SCHEMA_BOUNDARY ((unsigned)SCHEMA_CELL | (unsigned)SCHEMA_STREAM)

/* What `type` can say. A whole number is INTEGER, any other number FRACTION; "number" is both. */
typedef enum schema_type {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_INTEGER = 4,
    SCHEMA_FRACTION = 8,
    SCHEMA_STRING = 16,
    SCHEMA_BYTES = 32,
    SCHEMA_ARRAY = 64,
    SCHEMA_OBJECT = 128,
    SCHEMA_LINK = 256,
    SCHEMA_ALL_TYPES = 511,
} schema_type;

typedef struct schema_property {
    const char *key; /* NUL-terminated */
    size_t key_length;
    const schema_node *node;
    bool required;
    bool declared; /* in `properties`; else only in `required`, and node is what the rest follows */
} schema_property;

struct schema_node {
    unsigned flags; /* of schema_flag */
    unsigned types; /* of schema_type; 0: nothing matches */
    uint32_t property_count, prefix_count, any_count;
    const schema_property *properties;   /* ascending by key; also those only required */
    const schema_node *additional;       /* what all other keys must match; never NULL */
    const schema_node *const *prefix;    /* the first elements of an array */
    const schema_node *items;            /* the others; never NULL */
    const schema_node *const *any;       /* alternatives; then nothing above is said */
    const schema_node *body;             /* itself, or what it refers to in the end */
    hd_value default_value, const_value; /* absent: none; borrowed from the source */
    hd_value enum_values;                /* an array; absent: none */
};

struct hd_schema {
    hd_heap *heap;
    hd_value source; /* referenced: default, const and enum values live in it */
    const schema_node *root;
    uint32_t node_count;
    arena memory;  /* nodes, names, arrays; filled while the schema is compiled */
    uint32_t refs; /* the owner, until hd_schema_close, and each runtime that reads through it */
};

/* Keeps the schema for a runtime that reads through it, until the runtime calls hd_schema_close. */
static inline const hd_schema *schema_ref(const hd_schema *schema) {
    ((hd_schema *)(uintptr_t)schema)->refs++;
    return schema;
}

/* The schemas `true` and `false`. */
extern const schema_node schema_anything, schema_nothing;

static inline const schema_node *schema_root(const hd_schema *schema) { return schema->root; }

/* The property of that name, declared or only required; else NULL. */
const schema_property *schema_node_find(const schema_node *node, const char *key, size_t length);
/* What a read does with a key: the node to go on with, or NULL: the key is left out. */
const schema_node *schema_node_property(const schema_node *node, const char *key, size_t length);
/* What a read does with an element. */
static inline const schema_node *schema_node_items(const schema_node *node, size_t index) {
    return index < node->prefix_count ? node->prefix[index] : node->items;
}
/* Whether a property must be in the value for a read to succeed. */
static inline bool schema_property_needed(const schema_property *p) {
    return p->required && !(p->node->flags & SCHEMA_STREAM) &&
           value_is_absent(p->node->default_value);
}

/* The schema_type of a value; 0 for absent and failed. */
unsigned schema_type_of(hd_value v);

/* The first alternative that a read of v succeeds with, alternatives of alternatives included; the
 * node itself if it has none. *out is NULL when no alternative fits. Links inside v fit anything.
 * HD_NOMEM, HD_LIMIT (nested too deep). */
hd_status schema_choose(const hd_schema *schema, const schema_node *node, hd_value v,
                        const schema_node **out);

#endif
