/* object.h -- objects: trees of values ordered by key, with the keys kept apart in shapes.
 *
 * Functions that make a value return it owned, or failed: HD_KIND when `object` is no object or v is
 * absent, HD_LIMIT when it would nest too deep, HD_NOMEM. Arguments are borrowed; a failed argument
 * comes back as the result. Up to OBJECT_LEAF_MAX keys are one block (and a shared shape); beyond
 * that every operation makes one node per level. Setting a key to what it has already, bit by bit,
 * makes nothing. */
#ifndef HD_VALUE_OBJECT_H
#define HD_VALUE_OBJECT_H

#include "value/key.h"

size_t object_count(hd_value object); /* O(1) */
/* Borrowed; absent when there is no such key, or v is no object. The key must be of v's heap.
 * O(log n); in a small object a scan of pointers. */
hd_value object_get(hd_value v, const struct key *k);
/* By text; O(log n) comparisons of bytes. */
hd_value object_get_bytes(hd_value v, const char *bytes, size_t length);

/* The last key before this text, in the order of keys; NULL: there is none. O(log n). */
struct key *object_before(hd_value v, const char *bytes, size_t length);

hd_value object_set(hd_heap *heap, hd_value object, struct key *k, hd_value v); /* O(log n) */
hd_value object_remove(hd_heap *heap, hd_value object, const struct key *k);    /* O(log n) */

typedef struct object_change {
    struct key *key;
    hd_value value; /* absent: the key is removed */
} object_change;
/* Sets and removes several keys, in this order. A small object is made once, not once for each change. */
hd_value object_patch(hd_heap *heap, hd_value object, const object_change *changes, unsigned count);

#endif
