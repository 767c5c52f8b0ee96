/* test_diff.c -- the places where two values differ, against an oracle that walks everything. */
#include "value/diff.h"
#include "value/heap.h"
#include "value/path.h"
#include "lab.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct world {
    lab_env *lab;
    hd_heap *heap;
    hd_pool *pool;
    lab_random random;
} world;

static world world_open(void) {
    world w = { .lab = lab_env_open(), .random = lab_random_of(lab_seed()) };
    assert_int_equal(hd_heap_open(lab_env_of(w.lab), NULL, &w.heap), HD_OK);
    assert_int_equal(hd_pool_open(w.heap, &w.pool), HD_OK);
    return w;
}

static void world_close(world *w) {
    hd_pool_close(w->pool);
    hd_heap_close(w->heap);
    assert_int_equal(lab_env_log_count(w->lab), 0);
    lab_env_close(w->lab);
}

static hd_value json(world *w, const char *text) {
    hd_value v = hd_json_parse(w->pool, text, strlen(text), NULL);
    if (!hd_value_exists(v)) lab_fail("%s", text);
    return v;
}

/* ---- A record of what was reported: one line per place ---- */

typedef struct record {
    char *text;
    size_t length, capacity;
} record;

static void record_add(record *r, const char *text) {
    size_t n = strlen(text);
    if (r->length + n + 1 > r->capacity) {
        r->capacity = (r->capacity + n + 1) * 2;
        r->text = realloc(r->text, r->capacity);
        assert_non_null(r->text);
    }
    memcpy(r->text + r->length, text, n + 1);
    r->length += n;
}

static void record_step(record *r, const hd_step *step) {
    char number[32];
    snprintf(number, sizeof number, "/%zu", step->index);
    if (step->key) record_add(r, "/");
    record_add(r, step->key ? step->key : number);
}

static void record_sides(record *r, hd_value before, hd_value after) {
    record_add(r, hd_value_exists(before) ? hd_value_exists(after) ? " changed\n" : " removed\n"
                                          : " added\n");
}

static bool record_place(const hd_step *path, size_t depth, hd_value before, hd_value after,
                         void *ctx) {
    record *r = ctx;
    for (size_t i = 0; i < depth; i++) record_step(r, &path[i]);
    record_sides(r, before, after);
    return true;
}

/* ---- The oracle: MATCHING 2.2, without sharing, trees or cursors ---- */

typedef struct oracle {
    record *out;
    hd_step path[64];
    size_t depth;
} oracle;

static bool naive_equal(hd_value a, hd_value b) {
    hd_kind kind = hd_value_kind(a);
    if (kind != hd_value_kind(b) || hd_value_count(a) != hd_value_count(b)) return false;
    if (kind != HD_KIND_ARRAY && kind != HD_KIND_OBJECT) return hd_value_compare(a, b) == 0;
    for (hd_iter it = hd_iter_of(a); hd_iter_next(&it);) {
        hd_value other = it.key ? hd_value_at(b, it.key) : hd_value_index(b, it.index);
        if (!naive_equal(it.value, other)) return false;
    }
    return true;
}

static void oracle_diff(oracle *o, hd_value a, hd_value b);

static void oracle_at(oracle *o, hd_step step, hd_value a, hd_value b) {
    o->path[o->depth++] = step;
    oracle_diff(o, a, b);
    o->depth--;
}

static void oracle_arrays(oracle *o, hd_value a, hd_value b) {
    size_t an = hd_value_count(a), bn = hd_value_count(b);
    if (an != bn) record_place(o->path, o->depth, a, b, o->out);
    for (size_t i = 0; i < an && i < bn; i++)
        oracle_at(o, (hd_step){ .index = i }, hd_value_index(a, i), hd_value_index(b, i));
}

/* All keys of both, merged in order. */
static void oracle_objects(oracle *o, hd_value a, hd_value b) {
    hd_iter x = hd_iter_of(a), y = hd_iter_of(b);
    bool more_x = hd_iter_next(&x), more_y = hd_iter_next(&y);
    while (more_x || more_y) {
        int c = !more_x ? 1 : !more_y ? -1 : strcmp(x.key, y.key);
        const char *key = c <= 0 ? x.key : y.key;
        oracle_at(o, (hd_step){ key, strlen(key), 0 }, c <= 0 ? x.value : (hd_value){ 0 },
                  c >= 0 ? y.value : (hd_value){ 0 });
        if (c <= 0) more_x = hd_iter_next(&x);
        if (c >= 0) more_y = hd_iter_next(&y);
    }
}

static void oracle_diff(oracle *o, hd_value a, hd_value b) {
    hd_kind kind = hd_value_kind(a);
    if (naive_equal(a, b)) return;
    if (kind == HD_KIND_ARRAY && hd_value_kind(b) == kind) oracle_arrays(o, a, b);
    else if (kind == HD_KIND_OBJECT && hd_value_kind(b) == kind) oracle_objects(o, a, b);
    else record_place(o->path, o->depth, a, b, o->out);
}

/* ---- By hand ---- */

static void expect_diff(world *w, hd_value a, hd_value b, const char *expected) {
    record r = { 0 };
    record_add(&r, "");
    assert_int_equal(hd_value_diff(w->heap, a, b, record_place, &r), HD_OK);
    assert_string_equal(r.text, expected);
    free(r.text);
}

static void each_minimal_place_is_reported(void **state) {
    static const struct {
        const char *a, *b, *expected;
    } cases[] = {
        { "{\"a\":1}", "{\"a\":1}", "" },
        { "1", "1", "" },
        { "1", "2", " changed\n" },
        { "1", "1.0", " changed\n" },
        { "{\"a\":1}", "{\"a\":2}", "/a changed\n" },
        { "{\"a\":1}", "{\"a\":1,\"b\":2}", "/b added\n" },
        { "{\"a\":1,\"b\":2}", "{\"a\":1}", "/b removed\n" },
        { "{\"a\":1}", "{\"b\":1}", "/a removed\n/b added\n" },
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2,\"c\":3}}", "/a/b changed\n/a/c added\n" },
        { "[1,2]", "[1,3]", "/1 changed\n" },
        { "[1,2]", "[1,2,3]", " changed\n" },
        { "[1,2,3]", "[0,2]", " changed\n/0 changed\n" },
        { "{\"l\":[{\"a\":1}]}", "{\"l\":[{\"a\":2},3]}", "/l changed\n/l/0/a changed\n" },
        { "[]", "{}", " changed\n" },
        { "{\"a\":[]}", "{\"a\":{}}", "/a changed\n" },
        { "{\"a\":{}}", "{\"a\":1}", "/a changed\n" },
        { "{\"z\":0}", "{\"z\":-0.0}", "/z changed\n" },
        { "{\"l\":{\"$link\":{\"id\":\"x\"}}}", "{\"l\":{\"$link\":{\"id\":\"y\"}}}",
          "/l changed\n" },
    };
    world w = world_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_diff(&w, json(&w, cases[i].a), json(&w, cases[i].b), cases[i].expected);
    world_close(&w);
}

static void a_whole_that_appears_or_goes_is_one_place(void **state) {
    world w = world_open();
    hd_value v = json(&w, "{\"a\":1}"), absent = { 0 };
    expect_diff(&w, absent, v, " added\n");
    expect_diff(&w, v, absent, " removed\n");
    expect_diff(&w, absent, absent, "");
    assert_int_equal(hd_value_diff(w.heap, hd_failed(HD_IO), v, record_place, NULL), HD_IO);
    assert_int_equal(hd_value_diff(w.heap, v, hd_failed(HD_IO), record_place, NULL), HD_IO);
    world_close(&w);
}

static bool stop_at_two(const hd_step *path, size_t depth, hd_value before, hd_value after,
                        void *ctx) {
    return ++*(int *)ctx < 2;
}

static void the_callback_can_stop_the_walk(void **state) {
    world w = world_open();
    int calls = 0;
    hd_value a = json(&w, "[[1,2],[3,4]]"), b = json(&w, "[[5,6],[7,8]]");
    assert_int_equal(hd_value_diff(w.heap, a, b, stop_at_two, &calls), HD_OK);
    assert_int_equal(calls, 2);
    world_close(&w);
}

/* ---- Random values ---- */

static hd_value random_scalar(world *w) {
    int n = (int)lab_random_below(&w->random, 4);
    switch (lab_random_below(&w->random, 8)) {
    case 0: return hd_null();
    case 1: return hd_bool(n & 1);
    case 2: return hd_double(n);
    case 3: return hd_string_f(w->pool, "text %d", n);
    case 4: return hd_int(w->pool, INT64_MAX - n);
    case 5: return n & 1 ? hd_array() : hd_object();
    default: return hd_int(NULL, n);
    }
}

static size_t random_width(world *w) {
    static const unsigned widths[] = { 1, 3, 3, 5, 40, 200 };
    return lab_random_below(&w->random, widths[lab_random_below(&w->random, 6)] + 1u);
}

/* Recursion over a depth the test chose. */
static hd_value random_value(world *w, int depth) {
    if (depth == 0 || lab_random_once_in(&w->random, 4)) return random_scalar(w);
    bool object = lab_random_once_in(&w->random, 2);
    hd_value v = object ? hd_object() : hd_array();
    size_t width = depth > 2 ? lab_random_below(&w->random, 5) + 1 : random_width(w);
    for (size_t i = 0; i < width; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", (int)lab_random_below(&w->random, 300));
        hd_value item = random_value(w, depth - 1);
        v = object ? hd_object_set(w->pool, v, key, item) : hd_array_append(w->pool, v, item);
    }
    return v;
}

/* A change somewhere inside: follow random entries down, then put, insert or take out. */
static hd_value mutated(world *w, hd_value v, int depth) {
    size_t n = hd_value_count(v);
    size_t at = n ? lab_random_below(&w->random, n) : 0;
    if (n == 0) return random_value(w, 2);
    hd_iter it = hd_iter_of(v);
    for (size_t i = 0; i <= at; i++) hd_iter_next(&it);
    char key[32];
    snprintf(key, sizeof key, "%s", it.key ? it.key : "");
    int what = (int)lab_random_below(&w->random, 6);
    hd_value inner = depth > 0 && what < 4 ? mutated(w, it.value, depth - 1) : random_scalar(w);
    if (it.key) {
        if (what == 5) return hd_object_remove(w->pool, v, key);
        if (what == 4) snprintf(key, sizeof key, "k%d", (int)lab_random_below(&w->random, 300));
        return hd_object_set(w->pool, v, key, inner);
    }
    if (what == 5) return hd_array_remove(w->pool, v, at);
    if (what == 4) return hd_array_insert(w->pool, v, at, inner);
    return hd_array_set(w->pool, v, at, inner);
}

static void expect_oracle(world *w, hd_value a, hd_value b) {
    record got = { 0 }, expected = { 0 };
    record_add(&got, "");
    record_add(&expected, "");
    oracle o = { .out = &expected };
    oracle_diff(&o, a, b);
    assert_int_equal(hd_value_diff(w->heap, a, b, record_place, &got), HD_OK);
    assert_string_equal(got.text, expected.text);
    assert_int_equal(hd_value_equal(a, b), expected.length == 0);
    assert_int_equal(hd_value_compare(a, b) == 0, expected.length == 0);
    free(got.text);
    free(expected.text);
}

static void the_diff_is_what_a_whole_comparison_finds(void **state) {
    world w = world_open();
    for (int round = 0; round < 700; round++) {
        hd_value a = random_value(&w, 4), b = a;
        size_t changes = lab_random_below(&w.random, 6);
        for (size_t i = 0; i < changes; i++) b = mutated(&w, b, 3);
        expect_oracle(&w, a, b);
        expect_oracle(&w, b, a);
        if (round % 8 == 0) expect_oracle(&w, a, random_value(&w, 4));
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

/* ---- Cost ---- */

static void one_key_of_many_visits_few_nodes(void **state) {
    world w = world_open();
    hd_builder *b;
    char key[24];
    assert_int_equal(hd_builder_open(w.pool, HD_KIND_OBJECT, &b), HD_OK);
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        hd_builder_put(b, key, hd_int(NULL, i));
    }
    hd_value v = hd_builder_close(b);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "key%d", i * 997);
        uint64_t before = w.heap->visited;
        char expected[40];
        snprintf(expected, sizeof expected, "/%s changed\n", key);
        expect_diff(&w, v, hd_object_set(w.pool, v, key, hd_null()), expected);
        assert_true(w.heap->visited - before <= 64);
    }
    world_close(&w);
}

/* ---- No memory ---- */

static void diff_deep_values(lab_env *lab, void *ctx) {
    hd_heap *heap;
    hd_pool *pool = NULL;
    if (hd_heap_open(lab_env_of(lab), NULL, &heap) != HD_OK) return;
    if (hd_pool_open(heap, &pool) == HD_OK) {
        hd_value a = hd_int(NULL, 1), b = hd_int(NULL, 2);
        for (int i = 0; i < 200; i++) {
            a = hd_array_append(pool, hd_array(), a);
            b = hd_array_append(pool, hd_array(), b);
        }
        int calls = 0;
        hd_status status = hd_value_diff(heap, a, b, stop_at_two, &calls);
        assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(lab)));
        assert_int_equal(calls, status == HD_OK ? 1 : 0);
    }
    hd_pool_close(pool);
    hd_heap_close(heap);
}

static void deep_diffs_survive_every_allocation_failure(void **state) {
    assert_true(lab_each_allocation_failure(diff_deep_values, NULL) > 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_minimal_place_is_reported),
        cmocka_unit_test(a_whole_that_appears_or_goes_is_one_place),
        cmocka_unit_test(the_callback_can_stop_the_walk),
        cmocka_unit_test(the_diff_is_what_a_whole_comparison_finds),
        cmocka_unit_test(one_key_of_many_visits_few_nodes),
        cmocka_unit_test(deep_diffs_survive_every_allocation_failure),
    };
    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
