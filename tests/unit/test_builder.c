/* test_builder.c -- containers built in one go. */
#include "value/build.h"
#include "value/node.h"
#include "value/text.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "value_world.h"

static hd_builder *builder_open(world *w, hd_kind kind) {
    hd_builder *b;
    assert_int_equal(hd_builder_open(w->pool, kind, &b), HD_OK);
    return b;
}

/* ---- Public builders ---- */

static void a_built_array_is_the_appended_one(void **state) {
    world w = world_open();
    size_t sizes[] = { 0, 1, ARRAY_LEAF_MAX, ARRAY_LEAF_MAX + 1, 1000, 20000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hd_builder *b = builder_open(&w, HD_KIND_ARRAY);
        hd_value appended = hd_array();
        for (size_t i = 0; i < sizes[s]; i++) {
            hd_builder_add(b, hd_int(NULL, (int64_t)i));
            appended = hd_array_append(w.pool, appended, hd_int(NULL, (int64_t)i));
        }
        hd_value built = hd_builder_close(b);
        node_check(value_node(built));
        assert_int_equal(hd_value_count(built), sizes[s]);
        assert_true(hd_value_equal(built, appended));
    }
    world_close(&w);
}

static void a_built_object_is_the_one_set_key_by_key(void **state) {
    world w = world_open();
    unsigned sizes[] = { 0, 1, 2, OBJECT_LEAF_MAX, OBJECT_LEAF_MAX + 1, 1000, 20011 };
    char key[24];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hd_builder *b = builder_open(&w, HD_KIND_OBJECT);
        hd_value set = hd_object();
        for (unsigned i = 0; i < sizes[s]; i++) {
            snprintf(key, sizeof key, "key%u", i * 7919u % sizes[s]);
            hd_builder_put(b, key, hd_int(NULL, i));
            set = hd_object_set(w.pool, set, key, hd_int(NULL, i));
        }
        hd_value built = hd_builder_close(b);
        node_check(value_node(built));
        assert_int_equal(hd_value_count(built), sizes[s]);
        assert_true(hd_value_equal(built, set));
    }
    world_close(&w);
}

static void the_last_value_of_a_key_counts(void **state) {
    world w = world_open();
    for (unsigned n = 2; n < 200; n = n * 2 + 1) {
        hd_builder *b = builder_open(&w, HD_KIND_OBJECT);
        char key[24];
        for (unsigned i = 0; i < n * 3; i++) {
            snprintf(key, sizeof key, "key%u", i % n);
            hd_builder_put(b, key, hd_string_f(w.pool, "value %u", i));
        }
        hd_value v = hd_builder_close(b);
        assert_int_equal(hd_value_count(v), n);
        assert_string_equal(hd_value_as_text(hd_value_at(v, "key1"), ""),
                            hd_value_as_text(hd_string_f(w.pool, "value %u", 2 * n + 1), "x"));
    }
    world_close(&w);
}

static void a_failure_comes_out_of_close(void **state) {
    world w = world_open();
    hd_builder *b = builder_open(&w, HD_KIND_ARRAY);
    hd_builder_add(b, hd_string(w.pool, "fine"));
    hd_builder_add(b, hd_failed(HD_IO));
    hd_builder_add(b, hd_failed(HD_NOMEM));
    assert_int_equal(hd_value_status(hd_builder_close(b)), HD_IO);

    b = builder_open(&w, HD_KIND_ARRAY);
    hd_builder_put(b, "key", hd_null());
    assert_int_equal(hd_value_status(hd_builder_close(b)), HD_USAGE);

    b = builder_open(&w, HD_KIND_OBJECT);
    hd_builder_put(b, "\xFF", hd_null());
    assert_int_equal(hd_value_status(hd_builder_close(b)), HD_SYNTAX);

    b = builder_open(&w, HD_KIND_OBJECT);
    hd_builder_put(b, "key", (hd_value){ 0 });
    assert_int_equal(hd_value_status(hd_builder_close(b)), HD_KIND);

    assert_int_equal(hd_builder_open(w.pool, HD_KIND_INT, &b), HD_USAGE);
    assert_null(b);
    world_close(&w);
}

/* ---- The stack ---- */

static struct key *held(world *w, const char *text) {
    return key_intern_held(w->heap, text, strlen(text));
}

static void nested_containers_are_built_bottom_up(void **state) {
    world w = world_open();
    build b;
    build_init(&b, w.heap); /* [1, {"a": 2, "b": []}] */
    assert_true(build_push(&b, value_small_int(1)));
    assert_true(build_push_key(&b, held(&w, "b")));
    assert_int_equal(build_array(&b, 0), HD_OK);
    assert_true(build_push_key(&b, held(&w, "a")));
    assert_true(build_push(&b, value_small_int(2)));
    size_t duplicate;
    assert_int_equal(build_object(&b, 2, &duplicate), HD_OK);
    assert_int_equal(build_array(&b, 2), HD_OK);
    hd_value v = hd_value_take(w.pool, build_take(&b));
    build_fini(&b);
    assert_int_equal(hd_value_count(v), 2);
    hd_value object = hd_value_index(v, 1);
    assert_int_equal(hd_value_as_int(hd_value_at(object, "a"), 0), 2);
    assert_int_equal(hd_value_kind(hd_value_at(object, "b")), HD_KIND_ARRAY);
    world_close(&w);
}

static void an_abandoned_build_releases_its_stack(void **state) {
    world w = world_open();
    build b;
    build_init(&b, w.heap);
    for (int i = 0; i < 500; i++) {
        build_push_key(&b, held(&w, "key"));
        build_push(&b, text_make(w.heap, TAG_STRING, "a text", 6));
    }
    build_push_key(&b, held(&w, "without a value"));
    build_fini(&b);
    world_close(&w);
}

static size_t duplicate_among(world *w, unsigned n, unsigned first, unsigned second) {
    build b;
    char text[24];
    size_t duplicate = SIZE_MAX;
    build_init(&b, w->heap);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "key%u", i == second ? first : i);
        build_push_key(&b, held(w, text));
        build_push(&b, text_make(w->heap, TAG_STRING, text, strlen(text)));
    }
    hd_status status = build_object(&b, n, &duplicate);
    assert_int_equal(status, first == second ? HD_OK : HD_EXISTS);
    build_fini(&b);
    return duplicate;
}

static void the_first_repeated_key_is_named(void **state) {
    world w = world_open();
    for (unsigned n = 2; n < 300; n = n * 3 / 2 + 1) {
        assert_int_equal(duplicate_among(&w, n, 0, 0), SIZE_MAX);
        assert_int_equal(duplicate_among(&w, n, 0, n - 1), n - 1);
        assert_int_equal(duplicate_among(&w, n, n / 2 - 1, n / 2), n / 2);
    }
    world_close(&w);
}

static void a_known_list_of_keys_is_not_sorted_again(void **state) {
    world w = world_open();
    const node *first = NULL;
    for (int round = 0; round < 3; round++) {
        build b;
        build_init(&b, w.heap);
        const char *keys[] = { "name", "id", "born", "a" };
        for (int i = 0; i < 4; i++) {
            build_push_key(&b, held(&w, keys[i]));
            build_push(&b, value_small_int(i));
        }
        uint64_t made = w.heap->made_blocks;
        assert_int_equal(build_object(&b, 4, NULL), HD_OK);
        if (round > 0) assert_int_equal(w.heap->made_blocks - made, 1); /* no new shape */
        hd_value v = hd_value_take(w.pool, build_take(&b));
        build_fini(&b);
        for (int i = 0; i < 4; i++)
            assert_int_equal(hd_value_as_int(hd_value_at(v, keys[i]), -1), i);
        if (first) assert_ptr_equal(leaf_shape(first), leaf_shape(value_node(v)));
        first = value_node(v);
    }
    world_close(&w);
}

/* ---- No memory ---- */

static void build_both(lab_env *lab, void *ctx) {
    hd_heap *heap;
    hd_pool *pool = NULL;
    hd_builder *b = NULL;
    hd_status status = hd_heap_open(lab_env_of(lab), NULL, &heap);
    if (status) return;
    if (hd_pool_open(heap, &pool) == HD_OK) {
        for (int kind = 0; kind < 2; kind++) {
            status = hd_builder_open(pool, kind ? HD_KIND_OBJECT : HD_KIND_ARRAY, &b);
            char key[40];
            for (int i = 0; !status && i < 1500; i++) {
                snprintf(key, sizeof key, "a longer key, number %d", i);
                if (kind) hd_builder_put(b, key, hd_string(pool, key));
                else hd_builder_add(b, hd_string(pool, key));
            }
            if (!status) status = hd_value_status(hd_builder_close(b));
            assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(lab)));
        }
    }
    hd_pool_close(pool);
    hd_heap_stats stats;
    hd_heap_stat(heap, &stats);
    assert_int_equal(stats.live_blocks, 0);
    hd_heap_close(heap);
}

static void building_survives_every_allocation_failure(void **state) {
    assert_true(lab_each_allocation_failure(build_both, NULL) > 10);
}

static void building_survives_every_refused_block(void **state) {
    world w = world_open();
    uint64_t before = w.heap->live_blocks;
    for (uint64_t n = 1; n < 400; n++) {
        build b;
        build_init(&b, w.heap);
        char text[24];
        for (int i = 0; i < 300; i++) {
            snprintf(text, sizeof text, "key%d", i);
            build_push_key(&b, held(&w, text));
            build_push(&b, text_make(w.heap, TAG_STRING, text, strlen(text)));
        }
        w.heap->fail_block_in = n;
        hd_status status = build_object(&b, 300, NULL);
        if (!status) status = build_array(&b, 1);
        bool refused = w.heap->fail_block_in == 0;
        w.heap->fail_block_in = 0;
        assert_true(status == HD_OK || (refused && status == HD_NOMEM));
        build_fini(&b);
        assert_int_equal(w.heap->live_blocks, before);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_built_array_is_the_appended_one),
        cmocka_unit_test(a_built_object_is_the_one_set_key_by_key),
        cmocka_unit_test(the_last_value_of_a_key_counts),
        cmocka_unit_test(a_failure_comes_out_of_close),
        cmocka_unit_test(nested_containers_are_built_bottom_up),
        cmocka_unit_test(an_abandoned_build_releases_its_stack),
        cmocka_unit_test(the_first_repeated_key_is_named),
        cmocka_unit_test(a_known_list_of_keys_is_not_sorted_again),
        cmocka_unit_test(building_survives_every_allocation_failure),
        cmocka_unit_test(building_survives_every_refused_block),
    };
    return cmocka_run_group_tests_name("builder", tests, NULL, NULL);
}
