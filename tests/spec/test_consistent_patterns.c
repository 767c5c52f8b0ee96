/* The sinks of patterns see one state, as those of single nodes do: while a derived pattern is built again,
 * and when a piece is taken up again from the store. */
#include "piece_world.h"

/* ---- a graph whose size is a value */

/* n derives of x, and their sum: x * (1 + 2 + ... + n). */
static hd_value times(hd_tx *tx, hd_value in, void *ctx) {
    return hd_int(NULL, hd_value_as_int(in, 0) * (int)(intptr_t)ctx);
}
static hd_value add_all(hd_tx *tx, const hd_value *in, void *ctx) {
    int64_t sum = 0;
    for (intptr_t i = 0; i < (intptr_t)ctx; i++) sum += hd_value_as_int(in[i], 0);
    return hd_int(NULL, sum);
}
static hd_cell build_sum(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    hd_cell parts[16], x = hd_cell_at(hd_build_runtime(b), "main/x");
    size_t n = (size_t)hd_value_as_int(in[0], 0);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%zu", i);
        parts[i] = hd_build_derive(b, name, x, times, (void *)(i + 1));
    }
    return hd_build_lift(b, "sum", add_all, (void *)n, parts, n);
}
static hd_cell sum_of_many(hd_build *b, void *ctx) {
    hd_cell n = hd_cell_at(hd_build_runtime(b), "main/n");
    return hd_build_derive_pattern(b, "some", build_sum, NULL, &n, 1);
}

static char told[400];
static void note_number(hd_value v, void *ctx) {
    size_t n = strlen(told);
    snprintf(told + n, sizeof told - n, "%g ", hd_value_as_double(v, -1));
}
static void note_list(hd_value v, void *ctx) {
    hd_pool *pool;
    size_t n = strlen(told);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    snprintf(told + n, sizeof told - n, "%s ", hd_json_print(pool, v, HD_JSON_COMPACT, NULL));
    hd_pool_close(pool);
}

static void set_both(int x, int n) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt(), &tx), HD_OK);
    hd_tx_set_int(tx, hd_cell_at(rt(), "main/x"), x);
    hd_tx_set_int(tx, hd_cell_at(rt(), "main/n"), n);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* One transaction changes x and how many nodes there are: no sink sees the new x in the old graph. */
static void a_graph_of_another_size_is_seen_with_the_values_of_its_time(void **state) {
    static const int sizes[] = { 3, 5, 2, 2, 4, 0, 1, 3 };
    *told = 0;
    set_both(1, 3);
    hd_piece p = start_piece("sum", sum_of_many);
    hd_sink(rt(), hd_piece_result(rt(), p), note_number, NULL);
    lab_settle(l);
    assert_string_equal(told, "6 ");
    for (int i = 1; i < 8; i++) {
        char expected[32];
        *told = 0;
        set_both(i + 1, sizes[i]);
        lab_settle(l);
        snprintf(expected, sizeof expected, "%d ", (i + 1) * sizes[i] * (sizes[i] + 1) / 2);
        assert_string_equal(told, expected);
    }
}

/* The same where the change and a restart come together: a node that registers others has them run before what
 * reads their results. */
static void a_graph_of_another_size_is_seen_whole_after_a_restart(void **state) {
    static const int sizes[] = { 3, 5, 2, 2, 4, 0, 1, 3 };
    for (int i = 0; i < 8; i++) {
        char expected[32];
        *told = 0;
        hd_piece p = start_piece("sum", sum_of_many);
        hd_sink(rt(), hd_piece_result(rt(), p), note_number, NULL);
        set_both(i + 1, sizes[i]);
        settle();
        snprintf(expected, sizeof expected, "%d ", (i + 1) * sizes[i] * (sizes[i] + 1) / 2);
        assert_string_equal(told, expected);
        restart();
    }
}

/* ---- a filtered list, after a restart */

static hd_value is_above(hd_tx *tx, hd_value in, void *ctx) {
    hd_value limit = hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/limit"));
    if (hd_value_status(limit)) return limit;
    return hd_bool(hd_value_as_int(in, 0) > hd_value_as_int(limit, 0));
}
static hd_cell above(hd_build *b, hd_cell element, void *ctx) {
    return hd_build_derive(b, "above", element, is_above, NULL);
}
static hd_cell filtered(hd_build *b, void *ctx) {
    hd_cell list = hd_cell_at(hd_build_runtime(b), "main/list");
    return hd_build_gather(b, "values",
                           hd_build_filter(b, "filtered", list, &(hd_each){ .build = above }));
}

static void look_again(void) {
    hd_piece p = start_piece("filter", filtered);
    hd_sink(rt(), hd_piece_result(rt(), p), note_list, NULL);
}

static void a_filtered_list_is_told_right_at_once_after_a_restart(void **state) {
    lab_set_json(l, "list", "[1, 2, 3, 4]");
    lab_set(l, "limit", 2);
    *told = 0;
    look_again();
    settle();
    assert_string_equal(told, "[3,4] ");
    static const struct {
        const char *list;
        int limit;
        const char *expected;
    } steps[] = { { "[1,2,3,4]", 3, "[4] " },
                  { "[1,2,3,4,5,6]", 3, "[4,5,6] " },
                  { "[6,5,4,3,2,1]", 4, "[6,5] " },
                  { "[1,7]", 0, "[1,7] " },
                  { "[0,9,1,8]", 5, "[9,8] " } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        restart();
        *told = 0;
        lab_set_json(l, "list", steps[i].list);
        lab_set(l, "limit", steps[i].limit);
        look_again();
        settle();
        assert_string_equal(told, steps[i].expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_graph_of_another_size_is_seen_with_the_values_of_its_time),
        S(a_graph_of_another_size_is_seen_whole_after_a_restart),
        S(a_filtered_list_is_told_right_at_once_after_a_restart),
    };
    LAB_EVERYWHERE(tests);
}
