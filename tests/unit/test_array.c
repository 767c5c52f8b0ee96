/* test_array.c -- arrays: operations, refusals, sharing, memory. */
#include "value/array.h"
#include "value/node.h"
#include <setjmp.h>
#include <cmocka.h>
#include "value_world.h"

/* [0, 1, ..., n-1], appended one by one; only the last version stays. */
static hd_value count_to(world *w, int64_t n) {
    hd_value v = hd_array();
    for (int64_t i = 0; i < n; i++) {
        hd_value next = array_append(w->heap, v, value_small_int(i));
        value_unref(v);
        v = next;
    }
    node_check(value_node(v));
    return hd_value_take(w->pool, v);
}

static void expect(hd_value v, const int *numbers, size_t count) {
    assert_int_equal(hd_value_count(v), count);
    node_check(value_node(v));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(hd_value_as_int(hd_value_index(v, i), -1), numbers[i]);
}
#define EXPECT(v, ...)                                                                             \
    expect(v, (int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

static void every_operation_leaves_the_original(void **state) {
    world w = world_open();
    hd_value v = count_to(&w, 4);
    EXPECT(hd_array_append(w.pool, v, hd_int(NULL, 9)), 0, 1, 2, 3, 9);
    EXPECT(hd_array_set(w.pool, v, 1, hd_int(NULL, 9)), 0, 9, 2, 3);
    EXPECT(hd_array_insert(w.pool, v, 0, hd_int(NULL, 9)), 9, 0, 1, 2, 3);
    EXPECT(hd_array_insert(w.pool, v, 4, hd_int(NULL, 9)), 0, 1, 2, 3, 9);
    EXPECT(hd_array_remove(w.pool, v, 0), 1, 2, 3);
    EXPECT(hd_array_remove(w.pool, v, 3), 0, 1, 2);
    EXPECT(hd_array_truncate(w.pool, v, 2), 0, 1);
    EXPECT(hd_array_truncate(w.pool, v, 9), 0, 1, 2, 3);
    EXPECT(hd_array_of(w.pool, (hd_value[]){ hd_int(NULL, 5), hd_int(NULL, 6) }, 2), 5, 6);
    assert_int_equal(hd_array_truncate(w.pool, v, 0).bits, hd_array().bits);
    assert_int_equal(hd_array_of(w.pool, NULL, 0).bits, hd_array().bits);
    EXPECT(v, 0, 1, 2, 3);
    world_close(&w);
}

static void what_does_not_fit_is_refused(void **state) {
    world w = world_open();
    hd_value v = count_to(&w, 3), n = hd_null();
    assert_int_equal(hd_value_status(hd_array_set(w.pool, v, 3, n)), HD_RANGE);
    assert_int_equal(hd_value_status(hd_array_insert(w.pool, v, 4, n)), HD_RANGE);
    assert_int_equal(hd_value_status(hd_array_remove(w.pool, v, 3)), HD_RANGE);
    assert_int_equal(hd_value_status(hd_array_remove(w.pool, hd_array(), 0)), HD_RANGE);
    assert_int_equal(hd_value_status(hd_array_set(w.pool, hd_object(), 0, n)), HD_KIND);
    assert_int_equal(hd_value_status(hd_array_append(w.pool, n, n)), HD_KIND);
    assert_int_equal(hd_value_status(hd_array_append(w.pool, (hd_value){ 0 }, n)), HD_KIND);
    assert_int_equal(hd_value_status(hd_array_truncate(w.pool, hd_object(), 0)), HD_KIND);
    assert_int_equal(hd_value_kind(hd_value_index(v, 3)), HD_KIND_ABSENT);
    assert_int_equal(hd_value_kind(hd_value_index(v, SIZE_MAX)), HD_KIND_ABSENT);
    world_close(&w);
}

static void arrays_of_every_size_near_a_boundary_are_whole(void **state) {
    world w = world_open();
    enum { LEAF = ARRAY_LEAF_MAX, TWO = LEAF * INNER_MAX };
    int sizes[] = { 1, LEAF - 1, LEAF, LEAF + 1, 2 * LEAF, TWO - 1, TWO, TWO + 1, TWO * 3 + 7 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hd_value v = count_to(&w, sizes[s]);
        for (int cut = sizes[s]; cut > 0; cut -= 1 + sizes[s] / 50) {
            hd_value shorter = hd_array_truncate(w.pool, v, (size_t)cut);
            node_check(value_node(shorter));
            assert_int_equal(hd_value_count(shorter), cut);
            assert_int_equal(hd_value_as_int(hd_value_index(shorter, (size_t)cut - 1), -1),
                             cut - 1);
        }
        for (int i = 0; i < sizes[s]; i += 1 + sizes[s] / 50) {
            hd_value less = hd_array_remove(w.pool, v, (size_t)i);
            hd_value more = hd_array_insert(w.pool, v, (size_t)i, hd_null());
            node_check(value_node(less));
            node_check(value_node(more));
            assert_int_equal(hd_value_as_int(hd_value_index(more, (size_t)i + 1), -1), i);
        }
    }
    world_close(&w);
}

static void removing_everything_leaves_the_empty_array(void **state) {
    world w = world_open();
    for (int end = 0; end < 2; end++) {
        hd_value v = hd_value_ref(count_to(&w, 2000));
        for (size_t n = 2000; n > 0; n--) {
            hd_value less = array_remove(w.heap, v, end ? n - 1 : 0);
            value_unref(v);
            v = less;
            if (n % 50 == 1) node_check(value_node(v));
        }
        assert_int_equal(v.bits, hd_array().bits);
    }
    world_close(&w);
}

/* ---- Cost ---- */

static void appending_leaves_full_leaves_behind(void **state) {
    world w = world_open();
    uint64_t before = stats_of(&w).live_blocks;
    hd_value v = count_to(&w, 100000);
    uint64_t blocks = stats_of(&w).live_blocks - before;
    uint64_t leaves = 100000 / ARRAY_LEAF_MAX + 1;
    assert_in_range(blocks, leaves, leaves + leaves / 10);
    assert_int_equal(hd_value_count(v), 100000);
    world_close(&w);
}

static void a_million_small_ints_take_at_most_ten_bytes_each(void **state) {
    world w = world_open();
    uint64_t before = stats_of(&w).bytes;
    count_to(&w, 1000000);
    assert_true(stats_of(&w).bytes - before <= 10 * 1000000);
    world_close(&w);
}

static void changing_one_element_makes_one_node_per_level(void **state) {
    world w = world_open();
    hd_value v = count_to(&w, 100000);
    unsigned levels = value_node(v)->level + 1u;
    uint64_t made = stats_of(&w).made_blocks;
    hd_array_set(w.pool, v, 50000, hd_null());
    assert_int_equal(stats_of(&w).made_blocks - made, levels);
    made = stats_of(&w).made_blocks;
    assert_int_equal(hd_array_set(w.pool, v, 7, hd_int(NULL, 7)).bits, v.bits);
    assert_int_equal(stats_of(&w).made_blocks - made, 0); /* it was that already */
    hd_array_truncate(w.pool, v, 77777);
    assert_true(stats_of(&w).made_blocks - made <= levels);
    world_close(&w);
}

/* ---- No memory ---- */

typedef hd_value (*operation)(hd_heap *heap, hd_value v);

static hd_value op_set(hd_heap *heap, hd_value v) {
    return array_set(heap, v, hd_value_count(v) / 2, hd_null());
}
static hd_value op_append(hd_heap *heap, hd_value v) { return array_append(heap, v, hd_null()); }
static hd_value op_insert(hd_heap *heap, hd_value v) {
    return array_insert(heap, v, hd_value_count(v) / 2, hd_null());
}
static hd_value op_remove(hd_heap *heap, hd_value v) {
    return array_remove(heap, v, hd_value_count(v) / 3);
}
static hd_value op_truncate(hd_heap *heap, hd_value v) {
    return array_truncate(heap, v, hd_value_count(v) / 3);
}

/* The nth block that the operation asks for is refused, for every n: it fails, and leaks nothing. */
static void fail_each_block(world *w, operation op, hd_value v) {
    uint64_t before = stats_of(w).live_blocks;
    for (uint64_t n = 1;; n++) {
        w->heap->fail_block_in = n;
        hd_value result = op(w->heap, v);
        bool failed = w->heap->fail_block_in == 0;
        w->heap->fail_block_in = 0;
        assert_int_equal(hd_value_status(result), failed ? HD_NOMEM : HD_OK);
        value_unref(result);
        assert_int_equal(stats_of(w).live_blocks, before);
        node_check(value_node(v));
        if (!failed) return;
        assert_true(n < 100);
    }
}

static void every_operation_survives_a_refused_block(void **state) {
    world w = world_open();
    operation operations[] = { op_set, op_append, op_insert, op_remove, op_truncate };
    int64_t sizes[] = { 1, ARRAY_LEAF_MAX, ARRAY_LEAF_MAX + 1, ARRAY_LEAF_MAX * INNER_MAX, 3000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hd_value v = count_to(&w, sizes[s]);
        hd_value thin = v; /* leaves at their minimum: removing joins them */
        for (size_t i = 0; hd_value_count(thin) > (size_t)sizes[s] / 2 + 1; i++)
            thin = hd_array_remove(w.pool, thin, i * 16 % hd_value_count(thin));
        for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
            fail_each_block(&w, operations[o], v);
            fail_each_block(&w, operations[o], thin);
        }
    }
    world_close(&w);
}

/* Against a comparison of the elements from the back; versions of one array, and arrays made apart. */
static void the_common_tail_is_what_a_walk_from_the_back_finds(void **state) {
    lab_random dice = lab_random_of(lab_seed());
    for (int round = 0; round < 200; round++) {
        world w = world_open();
        hd_value a = hd_array();
        for (uint64_t i = lab_random_below(&dice, 3000); i > 0; i--)
            a = hd_array_append(w.pool, a, hd_int(NULL, (int64_t)lab_random_below(&dice, 4)));
        hd_value b = a;
        for (uint64_t i = lab_random_below(&dice, 4); i > 0; i--) {
            size_t n = array_count(b), at = lab_random_below(&dice, n + 1);
            if (lab_random_below(&dice, 2)) b = hd_array_insert(w.pool, b, at, hd_int(NULL, 9));
            else if (at < n) b = hd_array_remove(w.pool, b, at);
        }
        size_t most = array_count(a) < array_count(b) ? array_count(a) : array_count(b), same = 0;
        while (same < most && hd_value_equal(array_get(a, array_count(a) - 1 - same),
                                             array_get(b, array_count(b) - 1 - same)))
            same++;
        assert_int_equal(array_common_tail(a, b, most), same);
        assert_int_equal(array_common_tail(b, a, most / 2), same < most / 2 ? same : most / 2);
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_common_tail_is_what_a_walk_from_the_back_finds),
        cmocka_unit_test(every_operation_leaves_the_original),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(arrays_of_every_size_near_a_boundary_are_whole),
        cmocka_unit_test(removing_everything_leaves_the_empty_array),
        cmocka_unit_test(appending_leaves_full_leaves_behind),
        cmocka_unit_test(a_million_small_ints_take_at_most_ten_bytes_each),
        cmocka_unit_test(changing_one_element_makes_one_node_per_level),
        cmocka_unit_test(every_operation_survives_a_refused_block),
    };
    return cmocka_run_group_tests_name("array", tests, NULL, NULL);
}
