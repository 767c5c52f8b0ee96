/* pool.h -- the owner of a transaction's or program's values, which are released together. */
#ifndef HD_VALUE_POOL_H
#define HD_VALUE_POOL_H

#include "value/heap.h"

enum { POOL_FIRST = 16 };

struct hd_pool {
    hd_heap *heap;
    list_node by_heap; /* in heap->pools */
    hd_value *items;   /* owned references to blocks, nothing else; `few`, or memory of the heap */
    size_t count, capacity;
    hd_value few[POOL_FIRST]; /* most pools never have more */
};

/* Gives an owned value to the pool and returns it; immediates pass through. Without memory the
 * reference is dropped and the result is failed (HD_NOMEM). Amortised O(1).
 *
 *     return pool_take(pool, object_set(pool->heap, object, key, v));
 */
hd_value pool_take(hd_pool *pool, hd_value owned);

#endif
