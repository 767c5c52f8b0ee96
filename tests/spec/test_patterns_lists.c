/* test_patterns_lists.c -- lists against their definition: random edits, and no memory. */
#include "lab.h"

#include <heddle/pattern.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *key; /* of the list being tested */
static uint32_t runs;

static hd_value value_of(hd_tx *tx, hd_value in, void *ctx) {
    runs++;
    return hd_value_at(in, "v");
}

static hd_cell values(hd_build *b, void *ctx) {
    hd_cell xs = hd_build_argument(b, "xs", hd_array());
    hd_cell rows = hd_build_map(b, "rows", xs, &(hd_each){ .fn = value_of, .key = key });
    return hd_build_gather(b, "all", rows);
}

static void ignore(hd_value v, void *ctx) {}

/* ---- random edits */

typedef struct world {
    hd_runtime *rt;
    hd_pool *pool;
    hd_piece piece;
    hd_cell xs;
    uint64_t random;
} world;

static uint32_t below(world *w, uint32_t n) {
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((w->random >> 33) % n);
}

/* Few ids, so that some come twice; now and then an element without one, or a link. */
static hd_value element(world *w) {
    uint32_t kind = below(w, 12);
    hd_link link = { .id = kind == 0 ? "linked0" : "linked1" };
    if (kind < 2) return hd_link_make(w->pool, &link);
    hd_value v = hd_object_set(w->pool, hd_object(), "v", hd_int(NULL, below(w, 100)));
    return kind == 2 ? v : hd_object_set(w->pool, v, "id", hd_int(NULL, below(w, 15)));
}

static hd_value edited(world *w, hd_value list) {
    size_t n = hd_value_count(list);
    uint32_t at = n ? below(w, (uint32_t)n) : 0;
    switch (n ? below(w, 7) : 0) {
    case 0: return hd_array_append(w->pool, list, element(w));
    case 1: return hd_array_insert(w->pool, list, at, element(w));
    case 2: return hd_array_set(w->pool, list, at, element(w));
    case 3: return hd_array_remove(w->pool, list, at);
    case 4: return hd_array_truncate(w->pool, list, at);
    case 5: { /* two change places */
        uint32_t other = below(w, (uint32_t)n);
        hd_value a = hd_value_index(list, at), b = hd_value_index(list, other);
        return hd_array_set(w->pool, hd_array_set(w->pool, list, at, b), other, a);
    }
    default:
        return hd_array_append(w->pool, hd_array_append(w->pool, list, element(w)), element(w));
    }
}

static hd_value expected(world *w, hd_value list) {
    hd_value out = hd_array();
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);) {
        hd_link link;
        hd_value v = it.value;
        if (hd_value_link(v, &link))
            v = hd_read(w->rt, w->pool, hd_cell_of(w->rt, "main", HD_SCOPE_SPACE, link.id, ""));
        out = hd_array_append(w->pool, out, hd_value_at(v, "v"));
    }
    return out;
}

static void compare(world *w, hd_value list, int step) {
    hd_piece_info info;
    hd_value all = hd_read(w->rt, w->pool, hd_cell_at(w->rt, "main/p/all"));
    hd_value want = expected(w, list);
    if (!hd_value_equal(all, want))
        lab_fail("step %d: %s instead of %s", step,
                 hd_json_print(w->pool, all, HD_JSON_COMPACT, NULL),
                 hd_json_print(w->pool, want, HD_JSON_COMPACT, NULL));
    assert_int_equal(hd_piece_inspect(w->rt, w->piece, &info), HD_OK);
    assert_int_equal(info.rows, hd_value_count(list));
    assert_int_equal(info.nodes, 2 + info.rows);
}

static void edit_at_random(const char *by) {
    world w = { .random = lab_seed() };
    hd_value list = hd_array();
    key = by;
    assert_int_equal(hd_open(NULL, NULL, &w.rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(w.rt), &w.pool), HD_OK);
    hd_write_json(w.rt, hd_cell_at(w.rt, "main/linked0"), "{\"v\": \"l0\"}");
    hd_write_json(w.rt, hd_cell_at(w.rt, "main/linked1"), "{\"v\": \"l1\"}");
    assert_int_equal(hd_pattern_register(w.rt, "values", "1", values, NULL), HD_OK);
    hd_piece_spec spec = { .id = "p", .pattern = "values" };
    assert_int_equal(hd_piece_start(w.rt, &spec, &w.piece, NULL), HD_OK);
    w.xs = hd_cell_at(w.rt, "main/p#/arguments/xs");
    hd_sink(w.rt, hd_piece_result(w.rt, w.piece), ignore, NULL);
    for (int step = 0; step < 2000; step++) {
        uint32_t edits = 1 + below(&w, 3);
        for (uint32_t i = 0; i < edits; i++) list = edited(&w, list);
        assert_int_equal(hd_write(w.rt, w.xs, list), HD_OK);
        assert_int_equal(hd_runtime_settle(w.rt), HD_OK);
        compare(&w, list, step);
        hd_value kept = hd_value_ref(list);
        hd_pool_clear(w.pool);
        list = hd_value_take(w.pool, kept);
    }
    hd_pool_close(w.pool);
    hd_close(w.rt);
}

static void random_edits_by_place(void **state) { edit_at_random(NULL); }
static void random_edits_by_key(void **state) { edit_at_random("/id"); }
static void random_edits_by_content(void **state) { edit_at_random(""); }

/* ---- no memory: whatever fails, nothing is lost, and the next change puts it right */

static void play(lab_env *env, void *ctx) {
    hd_runtime *rt = NULL;
    hd_piece piece;
    hd_options options = { .env = lab_env_of(env) };
    hd_status status = hd_open(NULL, &options, &rt, NULL);
    key = ctx;
    if (!status) status = hd_pattern_register(rt, "values", "1", values, NULL);
    hd_piece_spec spec = { .id = "p", .pattern = "values" };
    if (!status) status = hd_piece_start(rt, &spec, &piece, NULL);
    hd_cell xs = status ? (hd_cell){ 0 } : hd_cell_at(rt, "main/p#/arguments/xs");
    if (!status && !xs.id) status = HD_NOMEM;
    if (!status && !hd_sink(rt, hd_piece_result(rt, piece), ignore, NULL).id) status = HD_NOMEM;
    if (!status) status = hd_write_json(rt, xs, "[{\"id\": \"a\", \"v\": 1}, {\"id\": \"b\"}]");
    if (!status) status = hd_runtime_settle(rt);
    if (!status) status = hd_write_json(rt, xs, "[{\"id\": \"b\"}, {\"id\": \"c\"}]");
    if (!status) status = hd_runtime_settle(rt);
    if (!status) hd_piece_stop(rt, piece);
    if (!lab_env_failed(env)) assert_int_equal(status, HD_OK);
    hd_close(rt);
}

static void every_allocation_may_fail(void **state) {
    static char id[] = "/id";
    lab_each_allocation_failure(play, NULL);
    lab_each_allocation_failure(play, id);
}

/* Groups of an object's properties, a sum of each group, and the sum of all. */
static hd_value group_of(hd_tx *tx, hd_value in, void *ctx) { return hd_value_at(in, "g"); }
static hd_cell sum_row(hd_build *row, hd_cell group, void *ctx) {
    hd_fold sum = { .kind = HD_FOLD_SUM, .each = { .fn = value_of } };
    return hd_build_fold(row, "sum", group, &sum);
}
static hd_cell sums(hd_build *b, void *ctx) {
    hd_cell xs = hd_build_argument(b, "xs", hd_object());
    hd_cell groups = hd_build_group(b, "groups", xs, &(hd_each){ .fn = group_of });
    hd_cell rows = hd_build_map(b, "rows", groups, &(hd_each){ .build = sum_row });
    hd_fold sum = { .kind = HD_FOLD_SUM };
    return hd_build_fold(b, "sum", rows, &sum);
}

static hd_status edit_sums(hd_runtime *rt, hd_cell xs) {
    hd_status status = hd_write_json(rt, xs,
                                     "{\"a\": {\"g\": 1, \"v\": 1}, \"b\": {\"g\": 1, \"v\": 2},"
                                     " \"c\": {\"g\": 2, \"v\": 4}}");
    if (!status) status = hd_runtime_settle(rt);
    if (!status)
        status =
            hd_write_json(rt, xs, "{\"b\": {\"g\": 2, \"v\": 2}, \"d\": {\"g\": 2, \"v\": 8}}");
    return status ? status : hd_runtime_settle(rt);
}

static void play_sums(lab_env *env, void *ctx) {
    hd_runtime *rt = NULL;
    hd_piece piece;
    hd_options options = { .env = lab_env_of(env) };
    hd_status status = hd_open(NULL, &options, &rt, NULL);
    if (!status) status = hd_pattern_register(rt, "sums", "1", sums, NULL);
    hd_piece_spec spec = { .id = "p", .pattern = "sums" };
    if (!status) status = hd_piece_start(rt, &spec, &piece, NULL);
    hd_cell xs = status ? (hd_cell){ 0 } : hd_cell_at(rt, "main/p#/arguments/xs");
    if (!status && !xs.id) status = HD_NOMEM;
    if (!status && !hd_sink(rt, hd_piece_result(rt, piece), ignore, NULL).id) status = HD_NOMEM;
    if (!status) status = edit_sums(rt, xs);
    for (int i = 0; rt && status == HD_NOMEM && i < 4; i++) status = hd_runtime_settle(rt);
    hd_pool *pool;
    if (!status && !hd_pool_open(hd_runtime_heap(rt), &pool)) {
        hd_value sum = hd_read(rt, pool, hd_cell_at(rt, "main/p/sum"));
        if (!lab_env_failed(env)) assert_int_equal(hd_value_as_int(sum, -1), 10);
        hd_pool_close(pool);
    }
    if (!lab_env_failed(env)) assert_int_equal(status, HD_OK);
    hd_close(rt);
}

static void every_allocation_of_folds_may_fail(void **state) {
    lab_each_allocation_failure(play_sums, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_edits_by_place),
        cmocka_unit_test(random_edits_by_key),
        cmocka_unit_test(random_edits_by_content),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_of_folds_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
