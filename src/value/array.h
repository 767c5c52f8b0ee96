/* array.h -- arrays: counted trees of values.
 *
 * Functions that make a value return it owned, or failed: HD_KIND when `array` is no array, HD_RANGE
 * for an index beyond the end, HD_KIND for an absent item, HD_LIMIT when it would nest too deep,
 * HD_NOMEM. Arguments are borrowed; a failed argument comes back as the result. Up to
 * ARRAY_LEAF_MAX elements are one block; beyond that every operation makes one node per level. */
#ifndef HD_VALUE_ARRAY_H
#define HD_VALUE_ARRAY_H

#include "value/heap.h"

hd_value array_get(hd_value array, size_t index); /* borrowed; absent beyond the end; O(log n) */
size_t array_count(hd_value array);               /* O(1) */
/* How many elements at the ends of two arrays are equal, `most` at most. It walks from the back, past the
 * nodes that both share: O(log n) for versions of one array, with elements inserted or removed anywhere. */
size_t array_common_tail(hd_value a, hd_value b, size_t most);

hd_value array_set(hd_heap *heap, hd_value array, size_t index, hd_value v);    /* O(log n) */
hd_value array_append(hd_heap *heap, hd_value array, hd_value v);               /* O(log n) */
hd_value array_insert(hd_heap *heap, hd_value array, size_t index, hd_value v); /* O(log n) */
hd_value array_remove(hd_heap *heap, hd_value array, size_t index);             /* O(log n) */
/* The first `count` elements; a count beyond the length changes nothing. O(log n). */
hd_value array_truncate(hd_heap *heap, hd_value array, size_t count);

/* All at once, leaves full. Takes the references of `items`, whatever the result; they must exist
 * (neither absent nor failed). O(n). */
hd_value array_take(hd_heap *heap, const hd_value *items, size_t count);

#endif
