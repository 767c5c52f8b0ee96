/* pool.c -- pools: lists of references, released together. */
#include "value/pool.h"

enum { POOL_KEPT = 1024 };

hd_status hd_pool_open(hd_heap *heap, hd_pool **out) {
    *out = NULL;
    hd_pool *pool = heap_alloc(heap, sizeof *pool);
    if (!pool) return HD_NOMEM;
    pool->heap = heap;
    pool->by_heap = (list_node){ 0 };
    pool->items = pool->few;
    pool->count = 0;
    pool->capacity = POOL_FIRST;
    list_push_back(&heap->pools, &pool->by_heap);
    *out = pool;
    return HD_OK;
}

static void drop_items(hd_pool *pool) {
    if (pool->items != pool->few) heap_large_free(pool->heap, pool->items);
    pool->items = pool->few;
    pool->capacity = POOL_FIRST;
}

void hd_pool_clear(hd_pool *pool) {
    assert(pool->count <= pool->capacity && list_linked(&pool->by_heap));
    for (size_t i = pool->count; i-- > 0;) value_unref(pool->items[i]);
    pool->count = 0;
    if (pool->capacity > POOL_KEPT) drop_items(pool);
    /* else the next round will want about as much */
}

void hd_pool_close(hd_pool *pool) {
    if (!pool) return;
    hd_pool_clear(pool);
    drop_items(pool);
    list_remove(&pool->by_heap);
    heap_free(pool);
}

hd_heap *hd_pool_heap(const hd_pool *pool) { return pool->heap; }

static bool pool_grow(hd_pool *pool) {
    bool few = pool->items == pool->few;
    size_t capacity = pool->capacity * 2;
    hd_value *items =
        heap_large_resize(pool->heap, few ? NULL : pool->items, capacity * sizeof *items);
    if (!items) return false;
    if (few) memcpy(items, pool->few, sizeof pool->few);
    pool->items = items;
    pool->capacity = capacity;
    return true;
}

hd_value pool_take(hd_pool *pool, hd_value owned) {
    if (!value_is_block(owned)) return owned;
    assert(heap_of(value_block(owned)) == pool->heap);
    if (pool->count == pool->capacity && !pool_grow(pool)) {
        value_unref(owned);
        return value_failed(HD_NOMEM);
    }
    pool->items[pool->count++] = owned;
    return owned;
}

hd_value hd_value_take(hd_pool *pool, hd_value v) { return pool_take(pool, v); }
