/* shape.h -- shapes: the sorted keys of a leaf, shared by all leaves that have the same.
 *
 * Changing a value copies the values of a leaf and counts one more user of its shape. Objects built
 * from the same list of keys find their shape again in a small cache, the heap's *orders*: it maps a
 * list of keys, in the order given, to the shape and to the place of each. The cache keeps its shapes
 * alive; it is emptied before keys are swept. */
#ifndef HD_VALUE_SHAPE_H
#define HD_VALUE_SHAPE_H

#include "value/key.h"

typedef struct shape {
    uint32_t refs;
    uint32_t count;
    struct key *keys[]; /* referenced; ascending */
} shape;

/* A list of keys as it was given. */
typedef struct order {
    shape *shape; /* referenced */
    uint64_t hash;
    uint32_t count;
    bool sorted;       /* place[i] is i */
    struct key **keys; /* as given; referenced through the shape */
    uint8_t *place;    /* slot in the shape of the i-th key given */
} order;

static inline shape *shape_ref(shape *s) {
    s->refs++;
    return s;
}
void shape_unref(shape *s);

/* The shape of keys that are ascending and distinct; owned, or NULL without memory. `share`: look
 * for it among the orders first, and keep it there. */
shape *shape_of(hd_heap *heap, struct key *const *keys, unsigned count, bool share);

/* The order of `count` keys (at most OBJECT_LEAF_MAX) that stand `stride` words apart, borrowed until
 * the next call; NULL if it is not known. */
const order *order_find(const hd_heap *heap, const uint64_t *keys, unsigned count, unsigned stride);
/* Remembers it. Without memory nothing happens. */
void order_learn(hd_heap *heap, const uint64_t *keys, unsigned count, unsigned stride, shape *s,
                 const uint8_t *place);

/* Empties the cache. */
void orders_clear(hd_heap *heap);

#endif
