/* fold_tree.h -- the order of a list's elements as a tree of chunks, for hd_build_fold.
 *
 *     height 2    first ----------------------> g ------------> ...
 *     height 1    first -------> d -----------> g ------------> ...
 *     elements    a   b   c      d   e   f      g   h   i   j   ...
 *
 * A chunk is a run of neighbours, and has a node that combines what they have. Where chunks begin is a
 * function of the elements' keys alone, as in a skip list whose heights come from hashes: an element has a
 * *rank*, and begins a chunk at every height up to its rank; one element in eight has rank 1 or more, one in
 * 64 rank 2, and so on. So every runtime that derives the same list makes the same chunks,
 * whatever edits led to it, and a restart finds their stored results by name.
 *
 * The first chunk of each height begins with the list; if the first element has a rank, the first chunk of
 * height 1 has no members. The top chunk is the first chunk of the lowest height that has one chunk only.
 *
 * Cost: inserting or removing one element changes one chunk at each height, of eight members on
 * average: O(log n) expected. Where keys are chosen so that no hash begins a chunk, it is O(n). */
#ifndef PATTERN_FOLD_TREE_H
#define PATTERN_FOLD_TREE_H

#include "pattern/pattern.h"

#define FOLD_FANOUT_BITS 3
#define FOLD_RANK_MAX    10 /* eight to the power of ten elements */

struct fold_chunk;

/* An element, or a chunk as a member of the chunk above it. */
typedef struct fold_item {
    struct fold_chunk *up; /* NULL: the top chunk, or a chunk that is not in the tree */
    hd_cell cell;          /* what the chunk above reads */
    uint8_t height;        /* 0: an element */
    uint8_t rank;          /* it begins a chunk if this is more than its height */
} fold_item;

/* What hd_build_group knows of an element. */
typedef struct fold_member {
    hd_value pair;  /* [key, link] as it was read last; referenced */
    uint32_t group; /* its slot in group_part.groups */
} fold_member;

typedef struct fold_element {
    fold_item item;
    fold_member *member; /* owned; NULL: in no group. Written by group.c */
    uint32_t slot;       /* in fold_tree.elements */
    uint32_t repeats;    /* how many elements behind it have the same cell */
} fold_element;

typedef struct fold_chunk {
    fold_item item; /* cell: of its result */
    VEC(fold_item *) members;
    hd_build *build; /* of its node */
    uint32_t slot;   /* in fold_tree.chunks */
    uint32_t hash;   /* of height and key */
    /* The digest up to which hd_build_group has taken in what is below; referenced. Absent: not all of it. If it is
     * there, the chunks below have theirs, too. Written by group.c, forgotten here when members change. */
    hd_value seen;
    bool in_tree;
    bool touched; /* in fold_tree.touched */
    char key[];   /* of the element it begins with; "": the first chunk of its height */
} fold_chunk;

typedef struct fold_tree {
    const hd_env *env;
    part *of; /* the part that the chunks' builds belong to */
    VEC(fold_element *) elements;
    table cells; /* cell -> index in `elements` */
    VEC(fold_chunk *) chunks;
    table names;               /* height and key -> index in `chunks` */
    fold_chunk *top;           /* NULL: there are no elements */
    VEC(fold_chunk *) touched; /* since fold_tree_settle: other members, or not in the tree */
    VEC(fold_element *) gone;  /* not in the tree any more, but in a group; until fold_tree_bury */
} fold_tree;

void fold_tree_init(fold_tree *t, part *of);
/* Frees the tree, not the builds of its chunks. */
void fold_tree_fini(fold_tree *t);

/* The element that has this cell; of several the first. NULL: none. */
fold_element *fold_tree_find(const fold_tree *t, hd_cell cell);
/* Puts an element behind `after` (NULL: in front). `key` decides its rank. HD_NOMEM: the tree is not usable
 * before fold_tree_clear. */
hd_status fold_tree_insert(fold_tree *t, hd_cell cell, const char *key, fold_element *after,
                           fold_element **out);
/* Takes an element out and frees it; one that is in a group goes to `gone`. HD_NOMEM as above. */
hd_status fold_tree_remove(fold_tree *t, fold_element *e);
/* Takes all elements out. Chunks stay, not in the tree, until fold_tree_settle. */
hd_status fold_tree_clear(fold_tree *t);
/* Calls `build` for every chunk whose members may differ, then stops and frees those that are not in the tree
 * any more. */
typedef hd_status (*fold_build_fn)(fold_chunk *c, void *ctx);
hd_status fold_tree_settle(fold_tree *t, fold_build_fn build, void *ctx);

/* Frees what is in `gone`. */
void fold_tree_bury(fold_tree *t);
/* The element is in no group any more. */
void fold_element_leave(fold_tree *t, fold_element *e);
/* Which of two elements of the tree comes first: negative, 0, positive. O(log n). */
int fold_tree_compare(const fold_element *a, const fold_element *b);
/* Forgets what hd_build_group has taken in; O(n). */
void fold_tree_forget(fold_tree *t);

/* Asserts the invariants; O(n). */
void fold_tree_check(const fold_tree *t);

#endif
