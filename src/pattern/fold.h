/* fold.h -- the tree of nodes over a list, for folds and groups (fold.c).
 *
 * A coordinator keeps a fold_tree with the elements of the list, and a node for each chunk. The chunks' results are
 * combined values for hd_build_fold, and digests for hd_build_group, which finds changed elements by them. */
#ifndef PATTERN_FOLD_H
#define PATTERN_FOLD_H

#include "pattern/fold_tree.h"

/* What a chunk makes of its members. */
typedef struct folding {
    hd_fold_kind kind;
    hd_combine_fn combine;
    void *ctx;
    bool
        digest; /* a hash of what the members have, in their order; the other fields are not used */
} folding;

/* The coordinator: the part "name.tree", whose output is a link to the top chunk's result. */
typedef struct fold_part {
    part part;
    folding how;
    hd_cell list;
    fold_tree tree;
    /* What the last run read; referenced. Absent: nothing, or the run failed and the tree has to be cleared. */
    hd_value list_value;
    place_id at;   /* where it read the list: relative links in it count from there */
    bool repeated; /* two elements have the same cell: the next run begins anew */
    char salt[8];  /* what it does, for the fingerprints of its chunks */
} fold_part;

/* Adds the tree to the build; NULL: the build has failed. */
fold_part *fold_add_tree(hd_build *b, const char *name, hd_cell items, const folding *how);
/* The digest of members that have these values. */
hd_value fold_digest(hd_tx *tx, const hd_value *members, uint32_t count);

#endif
