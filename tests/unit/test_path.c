/* test_path.c -- paths: texts, interning, relations; reading and changing what is at a path. */
#include "value/node.h"
#include "value/path.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "value_world.h"

static hd_path at(world *w, const char *pointer) {
    hd_path path;
    assert_int_equal(hd_path_intern(w->heap, pointer, &path, NULL), HD_OK);
    return path;
}

/* ---- Texts ---- */

static void the_same_text_is_the_same_path(void **state) {
    world w = world_open();
    assert_int_equal(at(&w, ""), HD_PATH_ROOT);
    hd_path a = at(&w, "/a"), ab = at(&w, "/a/b");
    assert_int_equal(at(&w, "/a/b"), ab);
    assert_int_equal(hd_path_parent(w.heap, ab), a);
    assert_int_equal(hd_path_parent(w.heap, a), HD_PATH_ROOT);
    assert_int_equal(hd_path_parent(w.heap, HD_PATH_ROOT), HD_PATH_ROOT);
    assert_int_equal(hd_path_depth(w.heap, ab), 2);
    assert_int_equal(hd_path_depth(w.heap, HD_PATH_ROOT), 0);
    hd_path joined;
    assert_int_equal(hd_path_join(w.heap, a, "b", 1, &joined), HD_OK);
    assert_int_equal(joined, ab);
    world_close(&w);
}

static void escapes_are_part_of_the_text_only(void **state) {
    world w = world_open();
    static const char *const texts[] = { "",     "/",     "//",        "/a~1b",   "/~0",
                                         "/~01", "/m~0n", "/\xC3\xA4", "/a/~1/b", "/ /\"" };
    char out[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hd_path path = at(&w, texts[i]);
        assert_int_equal(hd_path_print(w.heap, path, out, sizeof out), strlen(texts[i]));
        assert_string_equal(out, texts[i]);
    }
    assert_string_equal(key_bytes(path_key(w.heap, at(&w, "/a~1b"))), "a/b");
    assert_string_equal(key_bytes(path_key(w.heap, at(&w, "/~01"))), "~1");
    hd_path joined;
    assert_int_equal(hd_path_join(w.heap, HD_PATH_ROOT, "a/b", 3, &joined), HD_OK);
    assert_int_equal(joined, at(&w, "/a~1b"));
    assert_int_not_equal(joined, at(&w, "/a/b"));
    world_close(&w);
}

static void long_escaped_segments_are_unescaped(void **state) {
    world w = world_open();
    static char text[4000];
    text[0] = '/';
    for (size_t i = 1; i + 2 < sizeof text; i += 2) memcpy(text + i, "~1", 2);
    hd_path path = at(&w, text);
    assert_int_equal(path_key(w.heap, path)->length, (strlen(text) - 1) / 2);
    static char out[4000];
    hd_path_print(w.heap, path, out, sizeof out);
    assert_string_equal(out, text);
    world_close(&w);
}

static void printing_into_little_room_is_cut_off(void **state) {
    world w = world_open();
    char out[8] = "#######";
    hd_path path = at(&w, "/abc/~0/d");
    assert_int_equal(hd_path_print(w.heap, path, out, 7), 9);
    assert_string_equal(out, "/abc/~");
    assert_int_equal(hd_path_print(w.heap, path, NULL, 0), 9);
    assert_int_equal(hd_path_print(w.heap, path, out, 1), 9);
    assert_string_equal(out, "");
    world_close(&w);
}

static void malformed_texts_are_refused_with_their_place(void **state) {
    world w = world_open();
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = { { "a", 0 },    { "a/b", 0 },      { "/a~", 2 },     { "/a~2", 2 },
                  { "/~0~", 3 }, { "/a/b~x/c", 4 }, { "/a/\xFF", 3 }, { "~0", 0 } };
    uint64_t paths = w.heap->paths_live;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_path path = 77;
        hd_error error;
        assert_int_equal(hd_path_intern(w.heap, cases[i].text, &path, &error), HD_SYNTAX);
        assert_int_equal(path, HD_PATH_ROOT);
        assert_int_equal(error.status, HD_SYNTAX);
        assert_int_equal(error.offset, cases[i].offset);
        assert_int_equal(error.column, cases[i].offset + 1);
        assert_int_equal(error.line, 1);
        assert_true(error.message[0] != 0);
        assert_int_equal(hd_path_intern(w.heap, cases[i].text, &path, NULL), HD_SYNTAX);
    }
    assert_true(w.heap->paths_live <= paths + 3); /* beginnings may stay until the next sweep */
    hd_path path;
    assert_int_equal(hd_path_join(w.heap, HD_PATH_ROOT, "\xFF", 1, &path), HD_SYNTAX);
    world_close(&w);
}

static void a_path_has_at_most_so_many_segments(void **state) {
    world w = world_open();
    static char text[2 * PATH_DEPTH_MAX + 3];
    for (size_t i = 0; i <= PATH_DEPTH_MAX; i++) memcpy(text + 2 * i, "/a", 2);
    hd_path path;
    hd_error error;
    assert_int_equal(hd_path_intern(w.heap, text, &path, &error), HD_LIMIT);
    text[2 * PATH_DEPTH_MAX] = 0;
    assert_int_equal(hd_path_intern(w.heap, text, &path, &error), HD_OK);
    assert_int_equal(hd_path_depth(w.heap, path), PATH_DEPTH_MAX);
    assert_int_equal(hd_value_kind(hd_value_get(w.heap, hd_object(), path)), HD_KIND_ABSENT);
    world_close(&w);
}

/* ---- Relations ---- */

static void prefixes_are_ancestors(void **state) {
    world w = world_open();
    hd_path a = at(&w, "/a"), ab = at(&w, "/a/b"), abc = at(&w, "/a/b/c"), x = at(&w, "/x/b");
    assert_true(path_is_prefix(w.heap, HD_PATH_ROOT, abc));
    assert_true(path_is_prefix(w.heap, a, abc));
    assert_true(path_is_prefix(w.heap, ab, ab));
    assert_false(path_is_prefix(w.heap, abc, ab));
    assert_false(path_is_prefix(w.heap, x, abc));
    assert_false(path_is_prefix(w.heap, ab, x));
    assert_int_equal(path_ancestor(w.heap, abc, 1), a);
    world_close(&w);
}

/* ---- Counting ---- */

static void unreferenced_paths_are_reused(void **state) {
    world w = world_open();
    hd_path kept = at(&w, "/kept/for/ever");
    char text[64];
    for (int i = 0; i < 100000; i++) {
        int n = snprintf(text, sizeof text, "/one/number%d/of/many", i);
        hd_path path;
        assert_int_equal(path_parse(w.heap, text, (size_t)n, &path, NULL), HD_OK);
        path_unref(w.heap, path);
    }
    paths_check(w.heap);
    assert_true(w.heap->paths_count < 1000);
    hd_heap_stats stats;
    hd_heap_stat(w.heap, &stats);
    assert_true(stats.bytes < 2000000);
    assert_int_equal(at(&w, "/kept/for/ever"), kept);
    world_close(&w);
}

static void a_referenced_path_survives_the_sweep(void **state) {
    enum { N = 2000 };
    world w = world_open();
    static hd_path held[N];
    char text[64];
    for (int i = 0; i < N; i++) {
        int n = snprintf(text, sizeof text, "/a/%d/b", i);
        assert_int_equal(path_parse(w.heap, text, (size_t)n, &held[i], NULL), HD_OK);
        for (int k = 0; k < 5; k++) {
            hd_path passing;
            int m = snprintf(text, sizeof text, "/passing/%d/%d", i, k);
            assert_int_equal(path_parse(w.heap, text, (size_t)m, &passing, NULL), HD_OK);
            path_unref(w.heap, passing);
        }
    }
    for (int i = 0; i < N; i++) {
        char out[64];
        snprintf(text, sizeof text, "/a/%d/b", i);
        hd_path_print(w.heap, held[i], out, sizeof out);
        assert_string_equal(out, text);
        path_unref(w.heap, held[i]);
    }
    world_close(&w);
}

/* ---- Reading ---- */

/* {"items": [{"price": 3}, {"price": 4}], "length": "of an object"} */
static hd_value cart(world *w) {
    hd_value v = hd_object();
    v = hd_value_append(w->pool, v, at(w, "/items"),
                        hd_object_set(w->pool, hd_object(), "price", hd_int(NULL, 3)));
    v = hd_value_append(w->pool, v, at(w, "/items"),
                        hd_object_set(w->pool, hd_object(), "price", hd_int(NULL, 4)));
    v = hd_value_set(w->pool, v, at(w, "/length"), hd_string(w->pool, "of an object"));
    assert_true(hd_value_exists(v));
    return v;
}

static int64_t read_int(world *w, hd_value v, const char *pointer) {
    return hd_value_as_int(hd_value_get(w->heap, v, at(w, pointer)), -1);
}

static void a_path_leads_through_objects_and_arrays(void **state) {
    world w = world_open();
    hd_value v = cart(&w);
    assert_int_equal(hd_value_get(w.heap, v, HD_PATH_ROOT).bits, v.bits);
    assert_int_equal(read_int(&w, v, "/items/1/price"), 4);
    assert_int_equal(read_int(&w, v, "/items/length"), 2);
    assert_string_equal(hd_value_as_text(hd_value_get(w.heap, v, at(&w, "/length")), ""),
                        "of an object");
    static const char *const missing[] = { "/nothing",  "/items/2",        "/items/01",
                                           "/items/-1", "/items/length/x", "/items/0/price/x",
                                           "/items/a",  "/items/0/length", "/length/length" };
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_int_equal(hd_value_kind(hd_value_get(w.heap, v, at(&w, missing[i]))),
                         HD_KIND_ABSENT);
    assert_int_equal(hd_value_kind(hd_value_get(w.heap, (hd_value){ 0 }, at(&w, "/a"))),
                     HD_KIND_ABSENT);
    world_close(&w);
}

/* ---- Changing ---- */

static void setting_makes_the_objects_on_the_way(void **state) {
    world w = world_open();
    hd_value v = hd_value_set(w.pool, (hd_value){ 0 }, at(&w, "/a/b/0"), hd_int(NULL, 7));
    assert_int_equal(hd_value_kind(hd_value_get(w.heap, v, at(&w, "/a/b"))), HD_KIND_OBJECT);
    assert_int_equal(read_int(&w, v, "/a/b/0"), 7);
    assert_int_equal(hd_value_set(w.pool, v, HD_PATH_ROOT, hd_null()).bits, hd_null().bits);
    world_close(&w);
}

static void an_index_sets_or_appends(void **state) {
    world w = world_open();
    hd_value v = cart(&w);
    hd_value changed = hd_value_set(w.pool, v, at(&w, "/items/0/price"), hd_int(NULL, 30));
    assert_int_equal(read_int(&w, changed, "/items/0/price"), 30);
    assert_int_equal(read_int(&w, v, "/items/0/price"), 3);
    hd_value longer = hd_value_set(w.pool, v, at(&w, "/items/2/price"), hd_int(NULL, 5));
    assert_int_equal(read_int(&w, longer, "/items/length"), 3);
    assert_int_equal(read_int(&w, longer, "/items/2/price"), 5);
    world_close(&w);
}

static hd_status set_status(world *w, hd_value v, const char *pointer) {
    return hd_value_status(hd_value_set(w->pool, v, at(w, pointer), hd_null()));
}

static void ways_that_lead_nowhere_are_refused(void **state) {
    world w = world_open();
    hd_value v = cart(&w);
    assert_int_equal(set_status(&w, v, "/items/3"), HD_RANGE);
    assert_int_equal(set_status(&w, v, "/items/01"), HD_RANGE);
    assert_int_equal(set_status(&w, v, "/items/length"), HD_RANGE);
    assert_int_equal(set_status(&w, v, "/items/x/y"), HD_RANGE);
    assert_int_equal(set_status(&w, v, "/length/x"), HD_KIND);
    assert_int_equal(set_status(&w, v, "/items/0/price/x"), HD_KIND);
    assert_int_equal(set_status(&w, hd_null(), "/a"), HD_KIND);
    hd_value item = hd_value_append(w.pool, v, at(&w, "/length"), hd_null());
    assert_int_equal(hd_value_status(item), HD_KIND);
    item = hd_value_append(w.pool, v, at(&w, "/length/x"), hd_null());
    assert_int_equal(hd_value_status(item), HD_KIND);
    world_close(&w);
}

static void removing_closes_up_or_changes_nothing(void **state) {
    world w = world_open();
    hd_value v = cart(&w);
    hd_value less = hd_value_remove(w.pool, v, at(&w, "/items/0"));
    assert_int_equal(read_int(&w, less, "/items/length"), 1);
    assert_int_equal(read_int(&w, less, "/items/0/price"), 4);
    assert_int_equal(hd_value_count(hd_value_remove(w.pool, v, at(&w, "/length"))), 1);
    assert_int_equal(hd_value_kind(hd_value_remove(w.pool, v, HD_PATH_ROOT)), HD_KIND_ABSENT);
    static const char *const missing[] = { "/nothing",      "/items/2", "/items/length",
                                           "/items/0/cost", "/a/b/c",   "/length/x" };
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_int_equal(hd_value_remove(w.pool, v, at(&w, missing[i])).bits, v.bits);
    world_close(&w);
}

static void appending_makes_the_array(void **state) {
    world w = world_open();
    hd_value v = hd_value_append(w.pool, (hd_value){ 0 }, at(&w, "/log/lines"), hd_int(NULL, 1));
    v = hd_value_append(w.pool, v, at(&w, "/log/lines"), hd_int(NULL, 2));
    assert_int_equal(read_int(&w, v, "/log/lines/length"), 2);
    assert_int_equal(read_int(&w, v, "/log/lines/1"), 2);
    v = hd_value_append(w.pool, hd_array(), HD_PATH_ROOT, hd_int(NULL, 3));
    assert_int_equal(read_int(&w, v, "/0"), 3);
    world_close(&w);
}

static void a_change_deep_inside_shares_the_rest(void **state) {
    world w = world_open();
    hd_value v = cart(&w);
    hd_value changed = hd_value_set(w.pool, v, at(&w, "/items/0/price"), hd_int(NULL, 30));
    assert_int_equal(hd_value_get(w.heap, v, at(&w, "/items/1")).bits,
                     hd_value_get(w.heap, changed, at(&w, "/items/1")).bits);
    hd_value same = hd_value_set(w.pool, v, at(&w, "/items/0/price"), hd_int(NULL, 3));
    assert_int_equal(same.bits, v.bits);
    world_close(&w);
}

/* ---- No memory ---- */

static void intern_and_change(lab_env *lab, void *ctx) {
    hd_heap *heap;
    hd_pool *pool = NULL;
    if (hd_heap_open(lab_env_of(lab), NULL, &heap) != HD_OK) return;
    hd_status status = hd_pool_open(heap, &pool);
    hd_value v = hd_object();
    char text[64];
    for (int i = 0; !status && i < 400; i++) {
        hd_path path;
        hd_error error;
        snprintf(text, sizeof text, "/some~1where/%d/in/%d", i % 20, i);
        status = hd_path_intern(heap, text, &path, &error);
        if (!status) v = hd_value_set(pool, v, path, hd_int(NULL, i));
        if (!status) v = hd_value_append(pool, v, heap->paths[path].parent, hd_null());
        if (hd_value_status(v) == HD_KIND) v = hd_object(); /* it was an object: as it should */
    }
    if (!status) status = hd_value_status(v);
    assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(lab)));
    paths_check(heap);
    hd_pool_close(pool);
    hd_heap_close(heap);
}

static void interning_survives_every_allocation_failure(void **state) {
    assert_true(lab_each_allocation_failure(intern_and_change, NULL) > 10);
}

static void changing_survives_every_refused_block(void **state) {
    world w = world_open();
    hd_value v = cart(&w);
    hd_path path = at(&w, "/items/2/price"), price = at(&w, "/items/0/price");
    hd_path items = at(&w, "/items");
    for (int change = 0; change < 3; change++) {
        uint64_t before = w.heap->live_blocks;
        for (uint64_t n = 1;; n++) {
            w.heap->fail_block_in = n;
            hd_value result = change == 0   ? value_set_path(w.heap, v, path, hd_null())
                              : change == 1 ? value_remove_path(w.heap, v, price)
                                            : value_append_path(w.heap, v, items, v);
            bool refused = w.heap->fail_block_in == 0;
            w.heap->fail_block_in = 0;
            hd_status status = hd_value_status(result);
            assert_true(status == HD_OK || (refused && status == HD_NOMEM));
            value_unref(result);
            assert_int_equal(w.heap->live_blocks, before);
            if (!refused) break;
        }
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_text_is_the_same_path),
        cmocka_unit_test(escapes_are_part_of_the_text_only),
        cmocka_unit_test(long_escaped_segments_are_unescaped),
        cmocka_unit_test(printing_into_little_room_is_cut_off),
        cmocka_unit_test(malformed_texts_are_refused_with_their_place),
        cmocka_unit_test(a_path_has_at_most_so_many_segments),
        cmocka_unit_test(prefixes_are_ancestors),
        cmocka_unit_test(unreferenced_paths_are_reused),
        cmocka_unit_test(a_referenced_path_survives_the_sweep),
        cmocka_unit_test(a_path_leads_through_objects_and_arrays),
        cmocka_unit_test(setting_makes_the_objects_on_the_way),
        cmocka_unit_test(an_index_sets_or_appends),
        cmocka_unit_test(ways_that_lead_nowhere_are_refused),
        cmocka_unit_test(removing_closes_up_or_changes_nothing),
        cmocka_unit_test(appending_makes_the_array),
        cmocka_unit_test(a_change_deep_inside_shares_the_rest),
        cmocka_unit_test(interning_survives_every_allocation_failure),
        cmocka_unit_test(changing_survives_every_refused_block),
    };
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
