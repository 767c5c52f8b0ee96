/* value_world.h -- a heap and a pool, for tests of values. Include after cmocka.h.
 *
 *     world w = world_open();
 *     hd_value v = hd_string(w.pool, "...");
 *     world_close(&w);                        looks at every invariant, and for a single byte lost */
#ifndef HEDDLE_VALUE_WORLD_H
#define HEDDLE_VALUE_WORLD_H

#include "lab.h"
#include "value/heap.h"
#include "value/path.h"

typedef struct world {
    lab_env *lab;
    hd_heap *heap;
    hd_pool *pool;
} world;

static inline world world_open(void) {
    world w = { .lab = lab_env_open() };
    assert_int_equal(hd_heap_open(lab_env_of(w.lab), NULL, &w.heap), HD_OK);
    assert_int_equal(hd_pool_open(w.heap, &w.pool), HD_OK);
    return w;
}

static inline void world_close(world *w) {
    hd_pool_close(w->pool);
    heap_check(w->heap);
    paths_check(w->heap);
    hd_heap_close(w->heap);
    assert_int_equal(lab_env_log_count(w->lab), 0);
    lab_env_close(w->lab);
}

static inline hd_heap_stats stats_of(const world *w) {
    hd_heap_stats s;
    hd_heap_stat(w->heap, &s);
    return s;
}

#endif
