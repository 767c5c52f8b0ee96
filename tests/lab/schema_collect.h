/* schema_collect.h -- the places of a compiled schema that are marked as cells, or as streams (4.3).
 *
 * The library asks about places one by one, when it reads. Tests collect all of them, to say which outputs a node with
 * such a schema would have. */
#ifndef LAB_SCHEMA_COLLECT_H
#define LAB_SCHEMA_COLLECT_H

#include "value/schema.h"

typedef enum schema_step_kind {
    SCHEMA_STEP_KEY,
    SCHEMA_STEP_INDEX,
    SCHEMA_STEP_EVERY_KEY,  /* keys that are not named */
    SCHEMA_STEP_EVERY_INDEX /* elements behind the tuple */
} schema_step_kind;

typedef struct schema_step {
    schema_step_kind kind;
    const char *key; /* of KEY */
    size_t key_length;
    size_t index; /* of INDEX; of EVERY_INDEX the first */
} schema_step;

/* Return false to stop. */
typedef bool (*schema_collect_fn)(void *ctx, const schema_step *path, size_t depth,
                                  const schema_node *node);

/* Calls `fn` with each path that is branded asCell (brand SCHEMA_CELL) or asStream (SCHEMA_STREAM),
 * in order of the schema. What lies behind a boundary is not visited. Where the schema repeats
 * itself and the repetition holds such a brand, the place of the repetition is given in its stead,
 * so finitely many paths cover all. Alternatives may give a path more than once.
 * HD_LIMIT: too many paths (SCHEMA_NODES_MAX places visited). */
hd_status schema_collect(const hd_schema *schema, schema_flag brand, schema_collect_fn fn,
                         void *ctx);
static inline hd_status schema_collect_cells(const hd_schema *schema, schema_collect_fn fn,
                                             void *ctx) {
    return schema_collect(schema, SCHEMA_CELL, fn, ctx);
}
static inline hd_status schema_collect_streams(const hd_schema *schema, schema_collect_fn fn,
                                               void *ctx) {
    return schema_collect(schema, SCHEMA_STREAM, fn, ctx);
}

#endif
