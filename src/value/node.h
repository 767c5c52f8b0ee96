/* node.h -- the blocks of arrays and objects: leaves and inner nodes of counted trees.
 *
 * A container is a tree of nodes; up to LEAF_MAX entries it is one leaf. All leaves are at level 0
 * and hold values; inner nodes hold children of the level below:
 *
 *     array leaf     header                 values[count]
 *     object leaf    header  shape          values[count]     the keys are in the shape
 *     array inner    header  total          children[count]   ends[count]   (running totals)
 *     object inner   header  total          children[count]   first[count]  (lowest key of each)
 *                                                             prefix[count] (its first 8 bytes)
 *
 * followed by 16 bytes for the cached hash where it pays (node_has_hash). Blocks are exactly as
 * long as their count needs: nodes are immutable, so there is nothing to grow into.
 *
 * INVARIANTS (node_check). No node is empty. Every node has at least half of its maximum of entries,
 * except the root and the nodes on the right edge, which appending leaves as full as can be behind
 * it. first[i] is exactly the lowest key below children[i]; it is not referenced, since the leaf's
 * shape does. `nesting` is 1 for a container of scalars, one more than the deepest entry otherwise. */
#ifndef HD_VALUE_NODE_H
#define HD_VALUE_NODE_H

#include "value/key.h"
#include "value/shape.h"

enum {
    ARRAY_LEAF_MAX = 31,  /* 256 bytes */
    OBJECT_LEAF_MAX = 30, /* 256 bytes */
    INNER_MAX = 16,       /* a copy counts every child once: fewer are cheaper, see the bench */
    TREE_LEVELS = 12,     /* 15 * 8^11 entries need no more */
    NODE_MAX = 31         /* the largest of the maxima */
};

typedef struct node {
    uint32_t refs;
    unsigned level : 4; /* 0: a leaf */
    unsigned object : 1;
    unsigned plain : 1;  /* a leaf that has no blocks among its values: nothing to count */
    unsigned hashed : 1; /* the hash has been computed; node.c clears it, digest.c sets it */
    unsigned count : 9;  /* entries of this node */
    unsigned nesting : 16;
} node;

typedef struct array_leaf {
    node n;
    hd_value values[];
} array_leaf;

typedef struct object_leaf {
    node n;
    shape *shape; /* referenced */
    hd_value values[];
} object_leaf;

typedef struct inner {
    node n;
    uint32_t total; /* entries of all leaves below */
    uint32_t unused;
    node *children[]; /* referenced; what stands behind them is said above */
} inner;

static inline hd_value *leaf_values(const node *n) {
    return n->object ? ((object_leaf *)(uintptr_t)n)->values : ((array_leaf *)(uintptr_t)n)->values;
}
static inline shape *leaf_shape(const node *n) { return ((const object_leaf *)n)->shape; }
static inline node **inner_children(const node *n) { return ((inner *)(uintptr_t)n)->children; }
static inline uint32_t *inner_ends(const node *n) {
    return (uint32_t *)(void *)(inner_children(n) + n->count);
}
static inline struct key **inner_first(const node *n) {
    return (struct key **)(void *)(inner_children(n) + n->count);
}
/* What a search reads before it touches a key: most keys differ here. */
static inline uint64_t *inner_prefix(const node *n) {
    return (uint64_t *)(void *)(inner_first(n) + n->count);
}

static inline uint32_t node_total(const node *n) {
    return n->level ? ((const inner *)n)->total : n->count;
}
static inline struct key *node_first_key(const node *n) {
    return n->level ? inner_first(n)[0] : leaf_shape(n)->keys[0];
}
static inline unsigned node_max(const node *n) {
    return n->level ? INNER_MAX : n->object ? OBJECT_LEAF_MAX : ARRAY_LEAF_MAX;
}
static inline unsigned node_min(const node *n) { return node_max(n) / 2; }

static inline bool node_has_hash(const node *n) { return n->level > 0 || n->nesting > 1; }
/* Where the cached hash is, whether or not it was computed. */
hd_hash *node_hash_slot(const node *n);

/* The root of an array or object; NULL when it is empty. */
static inline node *value_node(hd_value v) {
    assert(value_tag(v) == TAG_ARRAY || value_tag(v) == TAG_OBJECT);
    return value_block(v);
}
static inline hd_value node_value(const node *n, bool object) {
    return value_of_block(object ? TAG_OBJECT : TAG_ARRAY, n);
}
/* 0 for scalars, 1 for [] and [1], 2 for [[]]. O(1). */
static inline unsigned value_nesting(hd_value v) {
    if (!value_is_container(v)) return 0;
    const node *n = value_node(v);
    return n ? n->nesting : 1;
}

static inline node *node_ref(node *n) {
    n->refs++;
    return n;
}
/* Accepts NULL. Iterative: any nesting. */
void node_unref(node *n);
/* The last reference is gone. */
void node_destroy(node *n);

/* ---- Making nodes. All return an owned node, or NULL without memory, and take their own references
 * to what they hold. ---- */

/* A leaf of `count` values; `s` NULL makes an array leaf. */
node *leaf_make(hd_heap *heap, shape *s, const hd_value *values, unsigned count);
/* A leaf whose values come over with their references. On failure they stay the caller's. */
node *leaf_take(hd_heap *heap, shape *s, const hd_value *values, unsigned count);
/* A copy with one value replaced. */
node *leaf_with(hd_heap *heap, const node *leaf, unsigned slot, hd_value v);
/* An inner node over children of one level and kind. */
node *inner_make(hd_heap *heap, node *const *children, unsigned count);
/* A copy with one child replaced. */
node *inner_with(hd_heap *heap, const node *n, unsigned slot, node *child);
/* The slot of a key in a leaf, by pointer; -1 when it is not there. */
int leaf_find(const node *leaf, const struct key *k);
/* The number of keys in the leaf that are lower than the text; *found if the next one is it. */
unsigned leaf_search(const node *leaf, const needle *k, bool *found);
/* The child that a key belongs to: the last whose first key is not above it, or 0. */
unsigned inner_search(const node *n, const needle *k);
/* The child that has the entry *index; *index becomes relative to the child. */
unsigned inner_locate(const node *n, size_t *index);

/* Asserts every invariant of the whole tree; O(n). */
void node_check(const node *root);

#endif
