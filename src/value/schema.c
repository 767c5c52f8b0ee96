/* schema.c -- walking a compiled schema, and collecting its boundaries. */
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

/* ---- Collecting boundaries --------------------------------------------------------------- */

typedef struct collector {
    unsigned brand;
    schema_collect_fn fn;
    void *ctx;
    bool stopped;
    uint32_t visited;
    uint32_t frames;
    size_t depth;
    schema_step path[SCHEMA_DEPTH_MAX];
} collector;

/* The nodes from the root to here, to notice a repetition. */
typedef struct collect_frame {
    const struct collect_frame *parent;
    const schema_node *node;
} collect_frame;

static hd_status collect_node(collector *c, const schema_node *node, const collect_frame *parent);

static bool repeats(const collect_frame *frame, const schema_node *node) {
    for (; frame; frame = frame->parent)
        if (frame->node->body == node->body) return true;
    return false;
}

static hd_status collect_report(collector *c, const schema_node *node) {
    c->stopped = !c->fn(c->ctx, c->path, c->depth, node);
    return HD_OK;
}

static hd_status collect_step(collector *c, schema_step step, const schema_node *node,
                              const collect_frame *frame) {
    if (c->depth == SCHEMA_DEPTH_MAX) return HD_LIMIT;
    c->path[c->depth++] = step;
    hd_status status = collect_node(c, node, frame);
    c->depth--;
    return status;
}

static hd_status collect_object(collector *c, const schema_node *node, const collect_frame *frame) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; !status && i < node->property_count; i++) {
        const schema_property *p = &node->properties[i];
        schema_step step = { SCHEMA_STEP_KEY, p->key, p->key_length, 0 };
        if (p->declared) status = collect_step(c, step, p->node, frame);
    }
    if (status || (node->flags & SCHEMA_NAMED_ONLY)) return status;
    return collect_step(c, (schema_step){ .kind = SCHEMA_STEP_EVERY_KEY }, node->additional, frame);
}

static hd_status collect_array(collector *c, const schema_node *node, const collect_frame *frame) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; !status && i < node->prefix_count; i++)
        status = collect_step(c, (schema_step){ .kind = SCHEMA_STEP_INDEX, .index = i },
                              node->prefix[i], frame);
    if (status) return status;
    schema_step rest = { .kind = SCHEMA_STEP_EVERY_INDEX, .index = node->prefix_count };
    return collect_step(c, rest, node->items, frame);
}

static hd_status collect_below(collector *c, const schema_node *node, const collect_frame *frame) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; !status && i < node->any_count; i++)
        status = collect_node(c, node->any[i], frame);
    if (!status && (node->flags & SCHEMA_KEYS)) status = collect_object(c, node, frame);
    if (!status && (node->flags & SCHEMA_ELEMENTS)) status = collect_array(c, node, frame);
    return status;
}

static hd_status collect_node(collector *c, const schema_node *node, const collect_frame *parent) {
    if (c->stopped || !(node->reach & c->brand)) return HD_OK;
    if (++c->visited > SCHEMA_NODES_MAX || c->frames == SCHEMA_FRAMES_MAX) return HD_LIMIT;
    if (node->flags & SCHEMA_BOUNDARY || repeats(parent, node)) return collect_report(c, node);
    c->frames++;
    hd_status status = collect_below(c, node, &(collect_frame){ parent, node });
    c->frames--;
    return status;
}

hd_status schema_collect(const hd_schema *schema, schema_flag brand, schema_collect_fn fn,
                         void *ctx) {
    collector c = { .brand = brand, .fn = fn, .ctx = ctx };
    return collect_node(&c, schema->root, NULL);
}
