/* tree.h -- changing trees: what happens above the leaf that changed.
 *
 * A change replaces one leaf by none, one or two (parts). tree_rise() carries that up the way to the
 * root: each parent is copied with its new children, splits when it has too many, and joins or
 * evens out two neighbours when one has too few. */
#ifndef HD_VALUE_TREE_H
#define HD_VALUE_TREE_H

#include "value/node.h"

/* From the root to a leaf: borrowed nodes, and the slot taken in each. In the leaf, the slot of the
 * entry. */
typedef struct way {
    const node *node[TREE_LEVELS];
    unsigned slot[TREE_LEVELS];
    unsigned depth; /* nodes */
    bool append; /* an insertion behind the last entry of all: split so that the left stays full */
} way;

/* What takes the place of a node: owned. */
typedef struct parts {
    node *node[2];
    unsigned count;
} parts;

/* Entries of one or two nodes on their way into others; everything borrowed. */
typedef struct run {
    unsigned count;
    unsigned level;
    bool object;
    union {
        hd_value values[2 * NODE_MAX + 2];
        node *children[2 * NODE_MAX + 2];
    };
    struct key *keys[2 * NODE_MAX + 2]; /* object leaves only */
} run;

static inline const node *way_leaf(const way *w) { return w->node[w->depth - 1]; }
static inline unsigned way_slot(const way *w) { return w->slot[w->depth - 1]; }

void run_load(run *r, const node *n); /* the entries of n */
void run_insert(run *r, unsigned slot, struct key *k, hd_value v);
void run_remove(run *r, unsigned slot);
/* One node, or two when it is too much for one; none when it is empty. `share`: see shape_of. */
bool run_emit(const run *r, hd_heap *heap, bool append, bool share, parts *out);

/* The root of the changed tree, NULL when it is empty. Takes the parts, whatever the result. */
hd_status tree_rise(hd_heap *heap, const way *w, parts p, node **root);
/* The same when everything right of the way goes away. */
hd_status tree_rise_cut(hd_heap *heap, const way *w, parts p, node **root);

/* A tree of `count` > 0 entries, leaves full. Keys ascending and distinct; NULL makes an array. Takes
 * the references of the values, whatever the result. */
hd_status tree_build(hd_heap *heap, struct key *const *keys, const hd_value *values, size_t count,
                     node **root);

#endif
