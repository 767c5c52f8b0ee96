/* test_equal.c -- equality, sameness of shape, order and hash, and what they cost. */
#include "value/diff.h"
#include "value/heap.h"
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "value_world.h"

static hd_value json(world *w, const char *text) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(w->pool, text, strlen(text), &error);
    if (!hd_value_exists(v)) lab_fail("%s: %s", text, error.message);
    return v;
}

static uint64_t visited(const world *w) {
    hd_heap_stats stats;
    hd_heap_stat(w->heap, &stats);
    return stats.visited;
}

/* ---- Equality ---- */

static const char *const distinct[] = { "null",
                                        "false",
                                        "true",
                                        "0",
                                        "1",
                                        "-1",
                                        "9223372036854775807",
                                        "0.0",
                                        "-0.0",
                                        "1.0",
                                        "1.5",
                                        "{\"$double\":\"NaN\"}",
                                        "{\"$double\":\"Infinity\"}",
                                        "\"\"",
                                        "\"a\"",
                                        "\"ab\"",
                                        "\"b\"",
                                        "{\"$bytes\":\"\"}",
                                        "{\"$bytes\":\"YQ==\"}",
                                        "[]",
                                        "[null]",
                                        "[0]",
                                        "[0.0]",
                                        "[0,0]",
                                        "[[]]",
                                        "[{}]",
                                        "{}",
                                        "{\"a\":1}",
                                        "{\"a\":1.0}",
                                        "{\"a\":1,\"b\":2}",
                                        "{\"a\":2,\"b\":1}",
                                        "{\"b\":1}",
                                        "{\"a\":{}}",
                                        "{\"a\":[]}",
                                        "{\"$link\":{\"id\":\"x\"}}",
                                        "{\"$link\":{\"id\":\"y\"}}",
                                        "{\"$link\":{\"id\":\"x\",\"path\":\"/a\"}}",
                                        "{\"$link\":{\"space\":\"s\",\"id\":\"x\"}}" };
enum { DISTINCT = sizeof distinct / sizeof *distinct };

static void values_are_equal_by_kind_and_content(void **state) {
    world w = world_open();
    for (int i = 0; i < DISTINCT; i++)
        for (int j = 0; j < DISTINCT; j++) {
            hd_value a = json(&w, distinct[i]), b = json(&w, distinct[j]);
            if (hd_value_equal(a, b) != (i == j)) lab_fail("%s %s", distinct[i], distinct[j]);
            hd_hash x = hd_value_hash(w.heap, a), y = hd_value_hash(w.heap, b);
            assert_int_equal(x.lo == y.lo && x.hi == y.hi, i == j);
        }
    assert_true(hd_value_equal((hd_value){ 0 }, (hd_value){ 0 }));
    assert_false(hd_value_equal((hd_value){ 0 }, hd_null()));
    assert_true(hd_value_equal(hd_double((double)NAN), hd_double(-(double)NAN)));
    world_close(&w);
}

static void values_of_two_heaps_can_be_compared(void **state) {
    world a = world_open(), b = world_open();
    for (int i = 0; i < DISTINCT; i++)
        for (int j = 0; j < DISTINCT; j++) {
            hd_value x = json(&a, distinct[i]), y = json(&b, distinct[j]);
            assert_int_equal(hd_value_equal(x, y), i == j);
            assert_int_equal(hd_value_compare(x, y) == 0, i == j);
        }
    world_close(&a);
    world_close(&b);
}

/* ---- Shape ---- */

static void shape_looks_at_keys_and_lengths_only(void **state) {
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = { { "[1,2]", "[3,{}]", true },
                  { "[1,2]", "[1]", false },
                  { "[]", "{}", false },
                  { "{\"a\":1}", "{\"a\":[2]}", true },
                  { "{\"a\":1}", "{\"b\":1}", false },
                  { "{\"a\":1}", "{\"a\":1,\"b\":1}", false },
                  { "{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}", false },
                  { "1", "1", true },
                  { "1", "2", false },
                  { "\"a\"", "\"a\"", true },
                  { "1", "[]", false },
                  { "{\"$link\":{\"id\":\"x\"}}", "{\"$link\":{\"id\":\"x\"}}", true },
                  { "{\"$link\":{\"id\":\"x\"}}", "{\"$link\":{\"id\":\"y\"}}", false },
                  { "[{\"$link\":{\"id\":\"x\"}}]", "[{\"$link\":{\"id\":\"y\"}}]", true } };
    world w = world_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(hd_value_same_shape(json(&w, cases[i].a), json(&w, cases[i].b)),
                         cases[i].same);
    assert_true(hd_value_same_shape((hd_value){ 0 }, (hd_value){ 0 }));
    assert_false(hd_value_same_shape((hd_value){ 0 }, hd_object()));
    world_close(&w);
}

/* ---- Order ---- */

static void order_is_total(void **state) {
    world w = world_open();
    hd_value v[DISTINCT];
    for (int i = 0; i < DISTINCT; i++) v[i] = json(&w, distinct[i]);
    for (int i = 0; i < DISTINCT; i++)
        for (int j = 0; j < DISTINCT; j++) {
            int c = hd_value_compare(v[i], v[j]), back = hd_value_compare(v[j], v[i]);
            assert_int_equal(c == 0, i == j);
            assert_int_equal(c > 0, back < 0);
            for (int k = 0; k < DISTINCT; k++)
                if (c < 0 && hd_value_compare(v[j], v[k]) < 0)
                    assert_true(hd_value_compare(v[i], v[k]) < 0);
        }
    world_close(&w);
}

static void order_is_by_kind_and_then_by_content(void **state) {
    static const char *const sorted[] = { "null",
                                          "false",
                                          "true",
                                          "-9223372036854775808",
                                          "-1",
                                          "0",
                                          "9223372036854775807",
                                          "{\"$double\":\"-Infinity\"}",
                                          "-1.5",
                                          "-0.0",
                                          "0.0",
                                          "1e300",
                                          "{\"$double\":\"Infinity\"}",
                                          "{\"$double\":\"NaN\"}",
                                          "\"\"",
                                          "\"a\"",
                                          "\"aa\"",
                                          "\"b\"",
                                          "[]",
                                          "[1]",
                                          "[1,1]",
                                          "[2]",
                                          "{}",
                                          "{\"a\":1}",
                                          "{\"a\":1,\"b\":0}",
                                          "{\"a\":2}",
                                          "{\"b\":0}" };
    enum { N = sizeof sorted / sizeof *sorted };
    world w = world_open();
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int c = hd_value_compare(json(&w, sorted[i]), json(&w, sorted[j]));
            if ((c > 0) - (c < 0) != (i > j) - (i < j)) lab_fail("%s %s", sorted[i], sorted[j]);
        }
    world_close(&w);
}

/* ---- Cost ---- */

static hd_value many_keys(world *w, int n) {
    hd_builder *b;
    char key[24];
    assert_int_equal(hd_builder_open(w->pool, HD_KIND_OBJECT, &b), HD_OK);
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "key%d", i);
        hd_builder_put(b, key, hd_int(NULL, i));
    }
    return hd_builder_close(b);
}

static void identical_values_are_not_looked_at(void **state) {
    world w = world_open();
    hd_value v = many_keys(&w, 10000);
    uint64_t before = visited(&w);
    assert_true(hd_value_equal(v, v));
    assert_int_equal(visited(&w), before);
    world_close(&w);
}

static void equality_costs_what_differs(void **state) {
    world w = world_open();
    hd_value v = many_keys(&w, 100000);
    hd_value other = hd_object_set(w.pool, v, "key777", hd_null());
    hd_value back = hd_object_set(w.pool, other, "key777", hd_int(NULL, 777));
    uint64_t before = visited(&w);
    assert_false(hd_value_equal(v, other));
    assert_true(visited(&w) - before <= 64);
    before = visited(&w);
    assert_true(hd_value_equal(v, back));
    assert_true(visited(&w) - before <= 64);
    world_close(&w);
}

/* A key added and removed again leaves a tree of another shape: leaves split, and do not join. */
static void equality_skips_what_is_shared_beside_a_split(void **state) {
    world w = world_open();
    hd_value v = many_keys(&w, 100000);
    for (int i = 0; i < 100; i++) {
        char key[24];
        snprintf(key, sizeof key, "key%dx", i * 1000 + 7);
        hd_value more = hd_object_set(w.pool, v, key, hd_null());
        hd_value back = hd_object_remove(w.pool, more, key);
        uint64_t before = visited(&w);
        assert_true(hd_value_equal(v, back));
        assert_false(hd_value_equal(v, more));
        assert_true(hd_value_same_shape(v, back));
        assert_true(visited(&w) - before <= 128);
    }
    world_close(&w);
}

static void a_changed_key_does_not_rehash_the_whole(void **state) {
    world w = world_open();
    hd_value v = many_keys(&w, 200000);
    hd_hash was = hd_value_hash(w.heap, v);
    hd_value changed = hd_object_set(w.pool, v, "key100", hd_null());
    hd_value back = hd_object_set(w.pool, changed, "key100", hd_int(NULL, 100));
    for (int i = 0; i < 2000; i++) { /* 2,000 times 200,000 entries would take a minute */
        changed = hd_object_set(w.pool, back, "key100", hd_int(NULL, -i));
        hd_hash now = hd_value_hash(w.heap, changed);
        assert_false(now.lo == was.lo && now.hi == was.hi);
    }
    hd_hash again = hd_value_hash(w.heap, back);
    assert_true(again.lo == was.lo && again.hi == was.hi);
    world_close(&w);
}

static void hashes_that_differ_settle_equality(void **state) {
    world w = world_open();
    hd_value a = many_keys(&w, 5000),
             b = hd_object_set(w.pool, many_keys(&w, 5000), "key4999", hd_null());
    hd_value_hash(w.heap, a);
    hd_value_hash(w.heap, b);
    uint64_t before = visited(&w);
    assert_false(hd_value_equal(a, b));
    assert_int_equal(visited(&w), before);
    world_close(&w);
}

static void elements_that_change_places_change_the_hash(void **state) {
    world w = world_open();
    hd_value v = hd_array();
    for (int i = 0; i < 300; i++) v = hd_array_append(w.pool, v, hd_int(NULL, i));
    hd_hash h = hd_value_hash(w.heap, v);
    for (int i = 0; i < 299; i++) {
        hd_value moved = hd_array_remove(w.pool, v, (size_t)i);
        moved = hd_array_insert(w.pool, moved, 299, hd_int(NULL, i));
        hd_hash m = hd_value_hash(w.heap, moved);
        assert_false(m.lo == h.lo || m.hi == h.hi);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_equal_by_kind_and_content),
        cmocka_unit_test(values_of_two_heaps_can_be_compared),
        cmocka_unit_test(shape_looks_at_keys_and_lengths_only),
        cmocka_unit_test(order_is_total),
        cmocka_unit_test(order_is_by_kind_and_then_by_content),
        cmocka_unit_test(identical_values_are_not_looked_at),
        cmocka_unit_test(equality_costs_what_differs),
        cmocka_unit_test(equality_skips_what_is_shared_beside_a_split),
        cmocka_unit_test(a_changed_key_does_not_rehash_the_whole),
        cmocka_unit_test(hashes_that_differ_settle_equality),
        cmocka_unit_test(elements_that_change_places_change_the_hash),
    };
    return cmocka_run_group_tests_name("equal", tests, NULL, NULL);
}
