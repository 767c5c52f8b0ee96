/* pairs.h -- walking two containers side by side, past everything that they share.
 *
 * Yields, in order, each entry that is not the same in both: present on one side only, or with
 * values that are not bit-identical. Two versions of a value share all nodes but those on the way
 * to what changed, so the walk costs what differs. When the trees have different shapes for the same
 * content, a subtree is skipped wherever both sides come to its beginning at the same time. */
#ifndef HD_VALUE_PAIRS_H
#define HD_VALUE_PAIRS_H

#include "value/node.h"

/* A place in a tree: the stack of nodes from the root. */
typedef struct cursor {
    const node *node[TREE_LEVELS];
    uint8_t slot[TREE_LEVELS];
    int top;   /* of the stack; -1: at the end */
    bool open; /* slot[top] is an entry of a leaf; else node[top] as a whole lies ahead */
} cursor;

typedef struct pairs {
    cursor before, after;
    hd_heap *heap;   /* counts visits */
    size_t position; /* arrays: entries behind us */
    bool object;
    bool keys_only; /* values do not matter: only entries of one side are yielded */

    /* The entry, after pairs_next returned true. */
    struct key *key; /* NULL in arrays */
    size_t index;    /* arrays: the index */
    hd_value was;    /* absent: only after has it */
    hd_value is;     /* absent: only before has it */
} pairs;

/* Both arrays or both objects; empty ones too. Arrays are walked as far as both go. */
void pairs_init(pairs *p, hd_value before, hd_value after, bool keys_only);
bool pairs_next(pairs *p);

#endif
