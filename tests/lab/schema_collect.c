/* schema_collect.c -- see schema_collect.h. */
#include "schema_collect.h"

#include <stdlib.h>

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

/* ---- which parts can be passed over */

/* The nodes that one search has met. */
typedef struct met_nodes {
    const schema_node **items;
    size_t count;
} met_nodes;

static bool has_met(const met_nodes *met, const schema_node *node) {
    for (size_t i = 0; i < met->count; i++)
        if (met->items[i] == node) return true;
    return false;
}

static void meet(met_nodes *met, const schema_node *node) {
    met->items = realloc(met->items, (met->count + 1) * sizeof *met->items);
    if (!met->items) abort();
    met->items[met->count++] = node;
}

/* Whether the brand is at this node or below it, up to the first boundary. */
static bool finds(unsigned brand, const schema_node *node, met_nodes *met) {
    if (node->flags & SCHEMA_BOUNDARY) return node->flags & brand;
    if (has_met(met, node)) return false;
    meet(met, node);
    bool found = false;
    for (uint32_t i = 0; !found && i < node->any_count; i++)
        found = finds(brand, node->any[i], met);
    for (uint32_t i = 0; !found && i < node->property_count; i++)
        found = finds(brand, node->properties[i].node, met);
    for (uint32_t i = 0; !found && i < node->prefix_count; i++)
        found = finds(brand, node->prefix[i], met);
    return found || finds(brand, node->additional, met) || finds(brand, node->items, met);
}

static bool reaches(unsigned brand, const schema_node *node) {
    met_nodes met = { NULL, 0 };
    bool found = finds(brand, node, &met);
    free(met.items);
    return found;
}

static hd_status collect_node(collector *c, const schema_node *node, const collect_frame *parent) {
    if (c->stopped || !reaches(c->brand, node)) return HD_OK;
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
