/* test_object.c -- objects: operations, refusals, sharing of nodes and of shapes. */
#include "value/node.h"
#include "value/object.h"
#include "value/pool.h"
#include "lab.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "value_world.h"

/* {"key0": 0, ...}, n keys in no particular order. */
static hd_value many_keys(world *w, unsigned n) {
    hd_value v = hd_object();
    char key[24];
    for (unsigned i = 0; i < n; i++) {
        int length = snprintf(key, sizeof key, "key%u", i * 7919u % n);
        struct key *k = key_intern(w->heap, key, (size_t)length);
        hd_value next = object_set(w->heap, v, k, value_small_int(i * 7919u % n));
        key_unref(k);
        value_unref(v);
        v = next;
    }
    node_check(value_node(v));
    return hd_value_take(w->pool, v);
}

static void every_operation_leaves_the_original(void **state) {
    world w = world_open();
    hd_value one = hd_object_set(w.pool, hd_object(), "a", hd_int(NULL, 1));
    hd_value two = hd_object_set(w.pool, one, "b", hd_int(NULL, 2));
    hd_value changed = hd_object_set(w.pool, two, "a", hd_int(NULL, 3));
    hd_value less = hd_object_remove(w.pool, two, "a");
    assert_int_equal(hd_value_count(one), 1);
    assert_int_equal(hd_value_count(two), 2);
    assert_int_equal(hd_value_as_int(hd_value_at(two, "a"), 0), 1);
    assert_int_equal(hd_value_as_int(hd_value_at(changed, "a"), 0), 3);
    assert_int_equal(hd_value_kind(hd_value_at(less, "a")), HD_KIND_ABSENT);
    assert_int_equal(hd_value_as_int(hd_value_at(less, "b"), 0), 2);
    assert_int_equal(hd_object_remove(w.pool, less, "b").bits, hd_object().bits);
    assert_int_equal(hd_object_remove(w.pool, hd_object(), "b").bits, hd_object().bits);
    assert_int_equal(hd_object_remove(w.pool, two, "c").bits, two.bits);
    world_close(&w);
}

static void keys_may_hold_zeros(void **state) {
    world w = world_open();
    hd_value v = hd_object_set_n(w.pool, hd_object(), "a\0b", 3, hd_int(NULL, 1));
    v = hd_object_set_n(w.pool, v, "a\0c", 3, hd_int(NULL, 2));
    assert_int_equal(hd_value_as_int(hd_value_at_n(v, "a\0c", 3), 0), 2);
    assert_int_equal(hd_value_kind(hd_value_at(v, "a")), HD_KIND_ABSENT);
    assert_int_equal(hd_value_as_int(hd_value_at(hd_object_set(w.pool, v, "", v), ""), -1), -1);
    world_close(&w);
}

static void what_does_not_fit_is_refused(void **state) {
    world w = world_open();
    hd_value n = hd_null();
    assert_int_equal(hd_value_status(hd_object_set(w.pool, hd_array(), "a", n)), HD_KIND);
    assert_int_equal(hd_value_status(hd_object_set(w.pool, n, "a", n)), HD_KIND);
    assert_int_equal(hd_value_status(hd_object_remove(w.pool, hd_array(), "a")), HD_KIND);
    assert_int_equal(hd_value_status(hd_object_set(w.pool, hd_object(), "\xFF", n)), HD_SYNTAX);
    world_close(&w);
}

static void wide_objects_find_every_key(void **state) {
    world w = world_open();
    unsigned sizes[] = { OBJECT_LEAF_MAX, OBJECT_LEAF_MAX + 1, 500, 6007 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hd_value v = many_keys(&w, sizes[s]);
        assert_int_equal(hd_value_count(v), sizes[s]);
        char key[24];
        for (unsigned i = 0; i < sizes[s]; i++) {
            int n = snprintf(key, sizeof key, "key%u", i);
            assert_int_equal(hd_value_as_int(hd_value_at(v, key), -1), i);
            struct key *k = key_find(w.heap, key, (size_t)n);
            assert_int_equal(hd_value_as_int(object_get(v, k), -1), i);
            key[0] = 'x';
            assert_int_equal(hd_value_kind(hd_value_at(v, key)), HD_KIND_ABSENT);
        }
    }
    world_close(&w);
}

/* ---- Sharing ---- */

static void setting_one_key_of_many_makes_one_node_per_level(void **state) {
    world w = world_open();
    hd_value v = many_keys(&w, 100003);
    uint64_t made = stats_of(&w).made_blocks;
    hd_object_set(w.pool, v, "key500", hd_null());
    assert_int_equal(stats_of(&w).made_blocks - made, value_node(v)->level + 1u);
    assert_true(value_node(v)->level + 1u <= 64);

    made = stats_of(&w).made_blocks;
    hd_object_set(w.pool, v, "a new key", hd_null()); /* and a shape; and perhaps splits */
    assert_true(stats_of(&w).made_blocks - made <= 2 * (value_node(v)->level + 1u) + 3);

    made = stats_of(&w).made_blocks;
    assert_int_equal(hd_object_set(w.pool, v, "key7", hd_int(NULL, 7)).bits, v.bits);
    assert_int_equal(stats_of(&w).made_blocks - made, 0); /* it was that already */
    world_close(&w);
}

static hd_value person(world *w, const char *name, int born) {
    hd_value v = hd_object_set(w->pool, hd_object(), "name", hd_string(w->pool, name));
    return hd_object_set(w->pool, v, "born", hd_int(NULL, born));
}

static void objects_with_the_same_keys_share_their_shape(void **state) {
    world w = world_open();
    hd_value ada = person(&w, "Ada", 1815), alan = person(&w, "Alan", 1912);
    assert_ptr_equal(leaf_shape(value_node(ada)), leaf_shape(value_node(alan)));
    hd_value later = hd_object_set(w.pool, ada, "born", hd_int(NULL, 1816));
    assert_ptr_equal(leaf_shape(value_node(later)), leaf_shape(value_node(ada)));
    world_close(&w);
}

static void keys_go_when_no_object_has_them(void **state) {
    world w = world_open();
    char key[24];
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "once%d", i);
        hd_object_set(w.pool, hd_object(), key, hd_null());
        if (i % 100 == 0) hd_pool_clear(w.pool);
    }
    hd_pool_clear(w.pool);
    assert_true(stats_of(&w).keys < 3000);
    assert_true(stats_of(&w).bytes < 2000000);
    assert_int_equal(stats_of(&w).live_blocks, 0);
    world_close(&w);
}

/* ---- No memory ---- */

/* The nth block is refused, for every n: the operation fails, and leaks nothing. */
static void fail_each_block(world *w, hd_value v, const char *text, bool remove) {
    struct key *k = key_intern(w->heap, text, strlen(text));
    uint64_t before = stats_of(w).live_blocks;
    for (uint64_t n = 1;; n++) {
        w->heap->fail_block_in = n;
        hd_value result =
            remove ? object_remove(w->heap, v, k) : object_set(w->heap, v, k, hd_null());
        bool refused = w->heap->fail_block_in == 0;
        w->heap->fail_block_in = 0;
        hd_status status = hd_value_status(result);
        /* a refused cache entry for the shape does no harm */
        assert_true(status == HD_OK || (refused && status == HD_NOMEM));
        value_unref(result);
        assert_int_equal(stats_of(w).live_blocks, before);
        node_check(value_node(v));
        if (!refused) break;
        assert_true(n < 100);
    }
    key_unref(k);
}

static void every_operation_survives_a_refused_block(void **state) {
    world w = world_open();
    unsigned sizes[] = { 1, 5, OBJECT_LEAF_MAX, OBJECT_LEAF_MAX + 1, 480, 3001 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hd_value v = many_keys(&w, sizes[s]);
        fail_each_block(&w, v, "key0", false);
        fail_each_block(&w, v, "key0", true);
        fail_each_block(&w, v, "key3x", false);
        fail_each_block(&w, v, "zz", false);
        char key[24];
        for (unsigned i = 0; i < sizes[s]; i += 1 + sizes[s] / 20) { /* splits and joins */
            snprintf(key, sizeof key, "key%u", i);
            fail_each_block(&w, v, key, true);
            snprintf(key, sizeof key, "key%ux", i);
            fail_each_block(&w, v, key, false);
        }
    }
    world_close(&w);
}

static void build_in_little_memory(lab_env *lab, void *ctx) {
    hd_heap *heap;
    hd_pool *pool = NULL;
    if (hd_heap_open(lab_env_of(lab), NULL, &heap) != HD_OK) return;
    hd_value v = hd_failed(HD_NOMEM);
    if (hd_pool_open(heap, &pool) == HD_OK) {
        char key[40];
        v = hd_object();
        for (int i = 0; i < 1500; i++) {
            snprintf(key, sizeof key, "a longer key, number %d", i);
            v = hd_object_set(pool, v, key, hd_string(pool, key));
        }
    }
    hd_status status = hd_value_status(v);
    assert_int_equal(status, lab_env_failed(lab) ? HD_NOMEM : HD_OK);
    hd_pool_close(pool);
    hd_heap_stats stats;
    hd_heap_stat(heap, &stats);
    assert_int_equal(stats.live_blocks, 0);
    hd_heap_close(heap);
}

static void setting_survives_every_allocation_failure(void **state) {
    assert_true(lab_each_allocation_failure(build_in_little_memory, NULL) > 10);
}

static void the_key_before_is_the_last_lower_one(void **state) {
    lab_random dice = lab_random_of(lab_seed());
    for (int count = 0; count < 600; count += count < 40 ? 1 : 97) {
        world w = world_open();
        char text[16];
        hd_value v = hd_object();
        for (int i = 0; i < count; i++) {
            snprintf(text, sizeof text, "k%d", (int)lab_random_below(&dice, 2000));
            v = hd_object_set(w.pool, v, text, hd_null());
        }
        for (int i = 0; i < 200; i++) {
            const char *want = NULL;
            char kept[16];
            snprintf(text, sizeof text, "k%d", (int)lab_random_below(&dice, 2000));
            if (!i) text[0] = '\0';
            for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
                if (strcmp(it.key, text) < 0) want = strcpy(kept, it.key);
            const struct key *k = object_before(v, text, strlen(text));
            assert_true(!k == !want);
            if (k) assert_string_equal(key_bytes(k), want);
        }
        world_close(&w);
    }
}

/* Several changes at once make what one after the other makes, also where an object grows beyond a leaf. */
static void a_patch_is_its_changes_one_after_the_other(void **state) {
    world w = world_open();
    lab_random dice = lab_random_of(lab_seed());
    for (int round = 0; round < 300; round++) {
        hd_value object = hd_object(), expected;
        for (uint64_t i = lab_random_below(&dice, 40); i > 0; i--) {
            char name[16];
            snprintf(name, sizeof name, "k%d", (int)lab_random_below(&dice, 50));
            object = hd_object_set(w.pool, object, name, hd_int(w.pool, (int64_t)i));
        }
        object_change changes[12];
        unsigned count = (unsigned)lab_random_below(&dice, 13);
        expected = object;
        for (unsigned i = 0; i < count; i++) {
            char name[16];
            bool gone = lab_random_below(&dice, 3) == 0;
            snprintf(name, sizeof name, "k%d", (int)lab_random_below(&dice, 50));
            assert_int_equal(key_make(w.heap, name, strlen(name), &changes[i].key), HD_OK);
            changes[i].value = gone ? value_absent() : hd_string(w.pool, name);
            expected = gone ? hd_object_remove(w.pool, expected, name)
                            : hd_object_set(w.pool, expected, name, changes[i].value);
        }
        hd_value made = pool_take(w.pool, object_patch(w.heap, object, changes, count));
        assert_int_equal(hd_value_status(made), HD_OK);
        assert_true(hd_value_equal(made, expected));
        for (unsigned i = 0; i < count; i++) key_unref(changes[i].key);
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_before_is_the_last_lower_one),
        cmocka_unit_test(every_operation_leaves_the_original),
        cmocka_unit_test(keys_may_hold_zeros),
        cmocka_unit_test(a_patch_is_its_changes_one_after_the_other),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(wide_objects_find_every_key),
        cmocka_unit_test(setting_one_key_of_many_makes_one_node_per_level),
        cmocka_unit_test(objects_with_the_same_keys_share_their_shape),
        cmocka_unit_test(keys_go_when_no_object_has_them),
        cmocka_unit_test(every_operation_survives_a_refused_block),
        cmocka_unit_test(setting_survives_every_allocation_failure),
    };
    return cmocka_run_group_tests_name("object", tests, NULL, NULL);
}
