/* test_tree.c -- nesting: how deep values may be, and that depth costs no stack. */
#include "value/array.h"
#include "value/diff.h"
#include "value/node.h"
#include "value/object.h"
#include "value/path.h"
#include "lab.h"
#include <setjmp.h>
#include <cmocka.h>

typedef struct world {
    lab_env *lab;
    hd_heap *heap;
    hd_pool *pool;
} world;

static world world_open(uint32_t depth) {
    world w = { .lab = lab_env_open() };
    hd_limits limits = { .depth = depth };
    assert_int_equal(hd_heap_open(lab_env_of(w.lab), &limits, &w.heap), HD_OK);
    assert_int_equal(hd_pool_open(w.heap, &w.pool), HD_OK);
    return w;
}

static void world_close(world *w) {
    hd_pool_close(w->pool);
    heap_check(w->heap);
    hd_heap_close(w->heap);
    assert_int_equal(lab_env_log_count(w->lab), 0);
    lab_env_close(w->lab);
}

/* [[[ ... [leaf] ... ]]], arrays and objects in turns; owned. Every container has `width` entries
 * more in front of and behind the way down. */
static hd_value nest(world *w, uint32_t depth, unsigned width, hd_value leaf) {
    struct key *k = key_intern(w->heap, "k", 1);
    hd_value v = leaf;
    for (uint32_t d = 0; d < depth; d++) {
        hd_value next = hd_array();
        if (d % 2) next = object_set(w->heap, hd_object(), k, v);
        for (unsigned i = 0; !(d % 2) && i < 2 * width + 1; i++) {
            hd_value more = array_append(w->heap, next, i == width ? v : value_small_int(i));
            value_unref(next);
            next = more;
        }
        value_unref(v);
        v = next;
    }
    key_unref(k);
    return v;
}

static void nesting_is_known_without_a_walk(void **state) {
    world w = world_open(0);
    hd_value flat = hd_array_append(w.pool, hd_array(), hd_null());
    assert_int_equal(value_nesting(hd_null()), 0);
    assert_int_equal(value_nesting(hd_array()), 1);
    assert_int_equal(value_nesting(flat), 1);
    hd_value two = hd_array_append(w.pool, flat, hd_object());
    assert_int_equal(value_nesting(two), 2);
    hd_value three = hd_object_set(w.pool, hd_object(), "a", two);
    assert_int_equal(value_nesting(three), 3);
    /* and shrinks again when the deepest goes */
    assert_int_equal(value_nesting(hd_object_set(w.pool, three, "a", flat)), 2);
    assert_int_equal(value_nesting(hd_array_remove(w.pool, two, 1)), 1);
    assert_int_equal(value_nesting(hd_array_set(w.pool, two, 1, hd_null())), 1);
    world_close(&w);
}

static void nesting_follows_changes_in_wide_containers(void **state) {
    world w = world_open(0);
    hd_value v = hd_array(), deep = hd_array_append(w.pool, hd_array(), hd_array());
    for (int i = 0; i < 3000; i++) v = hd_array_append(w.pool, v, hd_int(NULL, i));
    hd_value one = hd_array_set(w.pool, v, 1500, deep);
    hd_value two = hd_array_set(w.pool, one, 10, deep);
    assert_int_equal(value_nesting(two), 3);
    assert_int_equal(value_nesting(hd_array_set(w.pool, two, 10, hd_null())), 3);
    assert_int_equal(value_nesting(hd_array_set(w.pool, one, 1500, hd_null())), 1);
    assert_int_equal(value_nesting(hd_array_remove(w.pool, one, 1500)), 1);
    assert_int_equal(value_nesting(hd_array_truncate(w.pool, one, 1500)), 1);
    world_close(&w);
}

static void deeper_than_the_limit_cannot_be_built(void **state) {
    world w = world_open(5);
    hd_value v = nest(&w, 5, 0, hd_null()), items[2] = { hd_null(), v };
    assert_int_equal(hd_value_kind(v), HD_KIND_ARRAY);
    assert_int_equal(hd_value_status(hd_array_append(w.pool, hd_array(), v)), HD_LIMIT);
    assert_int_equal(hd_value_status(hd_object_set(w.pool, hd_object(), "a", v)), HD_LIMIT);
    assert_int_equal(hd_value_status(hd_array_of(w.pool, items, 2)), HD_LIMIT);
    hd_builder *b;
    assert_int_equal(hd_builder_open(w.pool, HD_KIND_OBJECT, &b), HD_OK);
    hd_builder_put(b, "a", v);
    assert_int_equal(hd_value_status(hd_builder_close(b)), HD_LIMIT);
    hd_path path;
    assert_int_equal(hd_path_intern(w.heap, "/a/b/c/d/e/f", &path, NULL), HD_OK);
    assert_int_equal(hd_value_status(hd_value_set(w.pool, hd_object(), path, hd_null())), HD_LIMIT);
    assert_int_equal(hd_value_kind(hd_value_get(w.heap, v, path)), HD_KIND_ABSENT);
    assert_int_equal(hd_value_remove(w.pool, v, path).bits, v.bits);
    hd_value_unref(v);
    world_close(&w);
}

static bool count_one(const hd_step *path, size_t depth, hd_value before, hd_value after,
                      void *ctx) {
    (*(size_t *)ctx) += depth;
    return true;
}

/* At the greatest depth there is, with containers wide enough to be trees. */
static void the_deepest_values_can_be_compared_hashed_and_freed(void **state) {
    world w = world_open(UINT32_MAX);
    uint32_t depth = w.heap->limits.depth;
    assert_int_equal(depth, HEAP_DEPTH_MAX);
    for (unsigned width = 0; width <= 40; width += 20) {
        hd_value a = nest(&w, depth, width, hd_int(NULL, 1));
        hd_value b = nest(&w, depth, width, hd_int(NULL, 1));
        hd_value c = nest(&w, depth, width, hd_int(NULL, 2));
        assert_int_equal(value_nesting(a), depth);
        assert_true(hd_value_equal(a, b));
        assert_false(hd_value_equal(a, c));
        assert_int_equal(hd_value_compare(a, b), 0);
        assert_true(hd_value_compare(a, c) < 0);
        hd_hash ha = hd_value_hash(w.heap, a), hb = hd_value_hash(w.heap, b);
        assert_memory_equal(&ha, &hb, sizeof ha);
        size_t steps = 0;
        assert_int_equal(hd_value_diff(w.heap, a, c, count_one, &steps), HD_OK);
        assert_int_equal(steps, depth);
        value_unref(a);
        value_unref(b);
        value_unref(c);
    }
    world_close(&w);
}

static void freeing_shared_structure_frees_each_block_once(void **state) {
    world w = world_open(64);
    hd_value v = hd_array();
    for (int i = 0; i < 30; i++) { /* 2^30 elements, were they not shared */
        hd_value twice[2] = { v, v };
        v = hd_array_of(w.pool, twice, 2);
    }
    hd_heap_stats stats;
    hd_heap_stat(w.heap, &stats);
    assert_int_equal(stats.live_blocks, 30);
    hd_value_ref(v);
    hd_pool_clear(w.pool);
    hd_heap_stat(w.heap, &stats);
    assert_int_equal(stats.live_blocks, 30);
    hd_value_unref(v);
    hd_heap_stat(w.heap, &stats);
    assert_int_equal(stats.live_blocks, 0);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_is_known_without_a_walk),
        cmocka_unit_test(nesting_follows_changes_in_wide_containers),
        cmocka_unit_test(deeper_than_the_limit_cannot_be_built),
        cmocka_unit_test(the_deepest_values_can_be_compared_hashed_and_freed),
        cmocka_unit_test(freeing_shared_structure_frees_each_block_once),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
