/* test_pool.c -- who owns values, and until when. */
#include "value/heap.h"
#include "lab.h"
#include <setjmp.h>
#include <cmocka.h>

typedef struct world {
    lab_env *lab;
    hd_heap *heap;
} world;

static world world_open(void) {
    world w = { .lab = lab_env_open() };
    assert_int_equal(hd_heap_open(lab_env_of(w.lab), NULL, &w.heap), HD_OK);
    return w;
}

static void world_close(world *w) {
    hd_heap_close(w->heap);
    assert_int_equal(lab_env_log_count(w->lab), 0); /* nothing was forgotten */
    lab_env_close(w->lab);
}

static hd_pool *pool_open(world *w) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(w->heap, &pool), HD_OK);
    assert_ptr_equal(hd_pool_heap(pool), w->heap);
    return pool;
}

static uint64_t live(const world *w) {
    hd_heap_stats stats;
    hd_heap_stat(w->heap, &stats);
    return stats.live_blocks;
}

static void clearing_a_pool_releases_what_it_made(void **state) {
    world w = world_open();
    hd_pool *pool = pool_open(&w);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5000; i++) assert_true(hd_value_exists(hd_string(pool, "some text")));
        assert_int_equal(live(&w), 5000);
        hd_pool_clear(pool);
        assert_int_equal(live(&w), 0);
    }
    hd_pool_close(pool);
    world_close(&w);
}

static void a_reference_outlives_the_pool(void **state) {
    world w = world_open();
    hd_pool *pool = pool_open(&w);
    hd_value v = hd_value_ref(hd_object_set(pool, hd_object(), "a", hd_string(pool, "text")));
    hd_pool_close(pool);
    assert_string_equal(hd_value_as_text(hd_value_at(v, "a"), "gone"), "text");
    hd_value_unref(v);
    assert_int_equal(live(&w), 0);
    world_close(&w);
}

static void a_value_can_be_given_to_a_pool(void **state) {
    world w = world_open();
    hd_pool *one = pool_open(&w), *two = pool_open(&w);
    hd_value v = hd_value_ref(hd_string(one, "text"));
    hd_pool_clear(one);
    assert_int_equal(live(&w), 1);
    assert_int_equal(hd_value_take(two, v).bits, v.bits);
    assert_int_equal(hd_value_take(two, hd_null()).bits, hd_null().bits);
    hd_pool_close(two);
    assert_int_equal(live(&w), 0);
    hd_pool_close(one);
    world_close(&w);
}

static void pools_close_in_any_order(void **state) {
    world w = world_open();
    hd_pool *a = pool_open(&w), *b = pool_open(&w), *c = pool_open(&w);
    hd_value shared = hd_array_append(a, hd_array(), hd_string(b, "from b"));
    hd_value longer = hd_array_append(c, shared, hd_string(a, "from a"));
    hd_pool_close(b);
    hd_pool_close(a);
    assert_string_equal(hd_value_as_text(hd_value_index(longer, 0), ""), "from b");
    assert_string_equal(hd_value_as_text(hd_value_index(longer, 1), ""), "from a");
    hd_pool_close(c);
    hd_pool_close(NULL);
    assert_int_equal(live(&w), 0);
    world_close(&w);
}

static void a_heap_closes_the_pools_left_open(void **state) {
    world w = world_open();
    hd_pool *pool = pool_open(&w);
    for (int i = 0; i < 100; i++) hd_string_f(pool, "text %d", i);
    world_close(&w);
}

static void values_returned_unchanged_belong_to_the_pool_too(void **state) {
    world w = world_open();
    hd_pool *one = pool_open(&w), *two = pool_open(&w);
    hd_value v = hd_object_set(one, hd_object(), "a", hd_null());
    hd_value same = hd_object_remove(two, v, "never seen");
    hd_value cut = hd_array_truncate(two, hd_array_append(one, hd_array(), hd_null()), 5);
    assert_int_equal(same.bits, v.bits);
    hd_pool_close(one);
    assert_int_equal(hd_value_kind(hd_value_at(same, "a")), HD_KIND_NULL);
    assert_int_equal(hd_value_count(cut), 1);
    hd_pool_close(two);
    world_close(&w);
}

/* ---- No memory ---- */

static void fill_a_pool(lab_env *lab, void *ctx) {
    hd_heap *heap;
    hd_pool *pool = NULL;
    if (hd_heap_open(lab_env_of(lab), NULL, &heap) != HD_OK) return;
    if (hd_pool_open(heap, &pool) == HD_OK)
        for (int i = 0; i < 200; i++) {
            hd_value v = hd_string_f(pool, "a text of some length, number %d", i);
            hd_status status = hd_value_status(v);
            assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(lab)));
        }
    hd_pool_close(pool);
    hd_heap_stats stats;
    hd_heap_stat(heap, &stats);
    assert_int_equal(stats.live_blocks, 0);
    hd_heap_close(heap);
}

static void a_pool_that_cannot_grow_drops_the_value(void **state) {
    assert_true(lab_each_allocation_failure(fill_a_pool, NULL) > 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clearing_a_pool_releases_what_it_made),
        cmocka_unit_test(a_reference_outlives_the_pool),
        cmocka_unit_test(a_value_can_be_given_to_a_pool),
        cmocka_unit_test(pools_close_in_any_order),
        cmocka_unit_test(a_heap_closes_the_pools_left_open),
        cmocka_unit_test(values_returned_unchanged_belong_to_the_pool_too),
        cmocka_unit_test(a_pool_that_cannot_grow_drops_the_value),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
