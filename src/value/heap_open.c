/* heap_open.c -- opening and closing a whole heap: pages, keys, shapes, paths, pools.
 *
 * heap.c knows pages only. This file composes it with the tables that live in it, so that none of
 * those has to know the others. */
#include "value/path.h"
#include "value/pool.h"
#include "value/shape.h"

hd_status hd_heap_open(const hd_env *env, const hd_limits *limits, hd_heap **out) {
    *out = NULL;
    hd_heap *heap = heap_new(env, limits);
    if (!heap) return HD_NOMEM;
    heap->forget = orders_clear;
    hd_status status = keys_init(heap);
    if (!status) status = paths_init(heap);
    if (status) {
        hd_heap_close(heap);
        return status;
    }
    *out = heap;
    return HD_OK;
}

/* Debug builds report blocks that are referenced after that: the program did not release them. */
static void close_pools(hd_heap *heap) {
    for (list_node *l; (l = list_first(&heap->pools)) != NULL;)
        hd_pool_close(LIST_ENTRY(l, hd_pool, by_heap));
#ifndef NDEBUG
    if (heap->live_blocks > 0)
        env_log(&heap->env, HD_LOG_ERROR, "heap closed with %llu blocks still referenced",
                (unsigned long long)heap->live_blocks);
#endif
}

void hd_heap_close(hd_heap *heap) {
    if (!heap) return;
    close_pools(heap);
    orders_clear(heap);
    paths_fini(heap);
    keys_fini(heap);
    heap_delete(heap);
}

static size_t table_bytes(const table *t) {
    return t->slots ? ((size_t)t->mask + 1) * sizeof *t->slots : 0;
}

void hd_heap_stat(const hd_heap *heap, hd_heap_stats *out) {
    size_t tables = table_bytes(&heap->paths_by_step) + table_bytes(&heap->paths_by_text);
    *out = (hd_heap_stats){ .bytes = heap->bytes + tables,
                            .live_blocks = heap->live_blocks,
                            .made_blocks = heap->made_blocks,
                            .visited = heap->visited,
                            .keys = heap->keys_count,
                            .paths = heap->paths_live };
}
