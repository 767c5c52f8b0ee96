/* test_patterns_folds.c -- folds, groups, and lists that are objects. */
#include "piece_world.h"

static hd_value value_of(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "row");
    return hd_value_at(in, "v");
}
static hd_value group_of(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "key");
    return hd_value_at(in, "g");
}

static uint32_t combined;
static hd_value join(hd_tx *tx, hd_value a, hd_value b, void *ctx) {
    combined++;
    if (hd_value_kind(a) != HD_KIND_STRING || hd_value_kind(b) != HD_KIND_STRING)
        return hd_failed(hd_tx_fail(tx, HD_FAILED, "not a text"));
    return hd_string_f(hd_tx_pool(tx), "%s%s", hd_value_as_text(a, ""), hd_value_as_text(b, ""));
}

static void look(hd_value v, void *ctx) {}

/* The fold that is tested, over main/xs. */
static hd_fold how;
static hd_cell folded(hd_build *b, void *ctx) {
    hd_cell out = hd_build_fold(b, "out", hd_cell_at(rt(), "main/xs"), &how);
    hd_build_sink(b, "look", out, look, NULL);
    return out;
}

static void expect(hd_fold fold, const char *xs, const char *result) {
    how = fold;
    lab_set_json(l, "xs", xs);
    hd_piece p = start_piece("p", folded);
    lab_settle(l);
    assert_json(l, "main/p/out", result);
    assert_int_equal(hd_piece_remove(rt(), p), HD_OK);
    assert_int_equal(hd_pattern_unregister(rt(), "p"), HD_OK);
    lab_settle(l);
}
#define FOLD(...) ((hd_fold){ __VA_ARGS__ })

static void each_kind_does_what_the_header_says(void **state) {
    expect(FOLD(.kind = HD_FOLD_COUNT), "[]", "0");
    expect(FOLD(.kind = HD_FOLD_COUNT), "[0, \"\", null, false, true, [], {}]", "5");
    expect(FOLD(.kind = HD_FOLD_SUM), "[]", "0");
    expect(FOLD(.kind = HD_FOLD_SUM), "[1, \"2\", null, 3, [4], true]", "4");
    expect(FOLD(.kind = HD_FOLD_SUM), "[1, 2.5]", "3.5");
    expect(FOLD(.kind = HD_FOLD_SUM), "[9223372036854775807, -1]", "9223372036854775806");
    expect(FOLD(.kind = HD_FOLD_SUM), "[9223372036854775807, 1]", "9.223372036854776e18");
    expect(FOLD(.kind = HD_FOLD_MINIMUM), "[]", "-");
    expect(FOLD(.kind = HD_FOLD_MINIMUM), "[null]", "-");
    expect(FOLD(.kind = HD_FOLD_MINIMUM), "[3, 2.5, null, 4]", "2.5");
    expect(FOLD(.kind = HD_FOLD_MAXIMUM), "[3, 2.5, 3.0, null]", "3");
    expect(FOLD(.kind = HD_FOLD_MAXIMUM), "[\"2026-01-02\", \"2026-01-10\"]", "\"2026-01-10\"");
    expect(FOLD(.kind = HD_FOLD_MINIMUM, .neutral = hd_int(NULL, 7)), "[]", "7");
    expect(FOLD(.kind = HD_FOLD_SUM, .neutral = hd_null()), "[\"x\"]", "null");
}

static void a_function_of_ones_own_is_called_in_the_order_of_the_list(void **state) {
    expect(FOLD(.combine = join), "[\"a\", \"b\", \"c\"]", "\"abc\"");
    expect(FOLD(.combine = join), "{\"z\": \"c\", \"b\": \"b\", \"a\": \"a\"}", "\"abc\"");
    expect(FOLD(.combine = join), "[\"a\"]", "\"a\"");
    expect(FOLD(.combine = join), "[]", "-");
    expect(FOLD(.combine = join, .each = { .fn = value_of }),
           "[{\"v\": \"a\"}, {}, {\"v\": \"b\"}]", "\"ab\"");
    expect(FOLD(.kind = HD_FOLD_SUM), "\"no list\"", "0");
}

/* A list of n links to main/t0, main/t1, ... whose values are one letter each. */
static void write_links(int n) {
    hd_pool *pool;
    hd_value list = hd_array();
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%d", i);
        list = hd_array_append(pool, list, hd_link_make(pool, &(hd_link){ .id = id }));
    }
    hd_write(rt(), hd_cell_at(rt(), "main/xs"), list);
    hd_pool_close(pool);
}

typedef struct cost {
    uint32_t combined;
    uint64_t runs;
} cost;

static uint64_t runs_now(void) { return lab_stats(l).runs; }

/* What it costs on average to change an element of n, and to insert and remove one in the middle. */
static cost cost_of(int n, bool insert) {
    enum { TIMES = 100 };
    hd_pool *pool;
    write_links(n);
    for (int i = 0; i < n; i++) {
        char cell[16];
        snprintf(cell, sizeof cell, "t%d", i);
        lab_set_json(l, cell, "\"a\"");
    }
    lab_settle(l);
    combined = 0;
    uint64_t runs = runs_now();
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    for (int i = 0; i < TIMES; i++) {
        char cell[16];
        int at = i * n / TIMES;
        snprintf(cell, sizeof cell, "t%d", insert ? n + at : at);
        lab_set_json(l, cell, "\"b\"");
        hd_value xs = hd_read(rt(), pool, hd_cell_at(rt(), "main/xs"));
        hd_value link = hd_link_make(pool, &(hd_link){ .id = cell });
        if (insert)
            hd_write(
                rt(), hd_cell_at(rt(), "main/xs"),
                hd_array_insert(pool, hd_array_remove(pool, xs, (size_t)at), (size_t)at / 2, link));
        lab_settle(l);
    }
    hd_pool_close(pool);
    return (cost){ combined / TIMES, (runs_now() - runs) / TIMES };
}

/* One change of 4,000 elements looks at about as many more than one of 1,000 as the logarithms say: it combines
 * at most 16 members at each of 5 heights, and runs one node at each height. */
static void a_change_costs_the_logarithm(void **state) {
    how = FOLD(.combine = join);
    start_piece("p", folded);
    for (int insert = 0; insert < 2; insert++) {
        cost few = cost_of(200, insert), many = cost_of(800, insert);
        assert_in_range(many.combined, 8, insert ? 200 : 90);
        assert_in_range(many.combined, 0, few.combined * 3 / 2 + 10);
        assert_in_range(many.runs, 3, insert ? 30 : 10);
    }
}

static void a_failure_to_combine_is_reported_and_mended(void **state) {
    how = FOLD(.combine = join);
    lab_catch(l);
    lab_set_json(l, "xs", "[\"a\", 5, \"b\"]");
    start_piece("p", folded);
    lab_settle(l);
    assert_string_equal(lab_failures(l), "1.1 HD_FAILED");
    lab_set_json(l, "xs#/1", "\"-\"");
    lab_settle(l);
    assert_json(l, "main/p/out", "\"a-b\"");
}

static hd_fold wrong;
static hd_cell misused(hd_build *b, void *ctx) {
    return hd_build_fold(b, "out", hd_cell_at(rt(), "main/xs"), ctx ? NULL : &wrong);
}
static void refuse(hd_fold fold, const char *why) {
    hd_error error;
    wrong = fold;
    hd_pattern_register(rt(), "wrong", "1", misused, NULL);
    hd_piece_spec spec = { .id = "w", .pattern = "wrong" };
    assert_int_equal(hd_piece_start(rt(), &spec, NULL, &error), HD_USAGE);
    assert_string_equal(error.message, why);
    hd_pattern_unregister(rt(), "wrong");
}
static void what_makes_no_sense_is_refused(void **state) {
    refuse(FOLD(.kind = HD_FOLD_OWN), "out: .combine goes with HD_FOLD_OWN, and only with it");
    refuse(FOLD(.kind = HD_FOLD_SUM, .combine = join),
           "out: .combine goes with HD_FOLD_OWN, and only with it");
    refuse(FOLD(.kind = (hd_fold_kind)99), "out: there is no fold of kind 99");
    refuse(FOLD(.kind = HD_FOLD_SUM, .each = { .key = "/id" }),
           "out: .each has a key, but neither .fn nor .build");
}

/* ---- lists that are objects */

static hd_cell mapped(hd_build *b, void *ctx) {
    hd_cell rows =
        hd_build_map(b, "rows", hd_cell_at(rt(), "main/xs"), &(hd_each){ .fn = value_of });
    hd_cell all = hd_build_gather(b, "all", rows);
    hd_build_sink(b, "look", all, look, NULL);
    return all;
}

static void a_property_has_a_row_as_long_as_it_is_there(void **state) {
    lab_set_json(l, "xs", "{\"tea\": {\"v\": 1}, \"milk\": {\"v\": 2}}");
    start_piece("p", mapped);
    lab_settle(l);
    assert_ran(l, "row row");
    assert_json(l, "main/p/all", "{\"milk\":2,\"tea\":1}");
    assert_json(l, "main/p/rows/tea", "1");
    lab_set_json(l, "xs#/coffee", "{\"v\": 3}");
    lab_settle(l);
    assert_ran(l, "row");
    lab_set(l, "xs#/milk/v", 5);
    lab_settle(l);
    assert_ran(l, "row");
    assert_json(l, "main/p/all", "{\"coffee\":3,\"milk\":5,\"tea\":1}");
    lab_remove(l, "xs#/tea");
    lab_settle(l);
    assert_ran(l, "");
    assert_json(l, "main/p/all", "{\"coffee\":3,\"milk\":5}");
    settle();
    restart();
    start_piece("p", mapped);
    lab_settle(l);
    assert_ran(l, "");
}

static void an_object_may_become_an_array_and_back(void **state) {
    lab_set_json(l, "xs", "{\"0\": {\"v\": 1}, \"1\": {\"v\": 2}}");
    start_piece("p", mapped);
    lab_settle(l);
    lab_set_json(l, "xs", "[{\"v\": 3}, {\"v\": 4}]");
    lab_settle(l);
    assert_json(l, "main/p/all", "[3,4]");
    lab_set_json(l, "xs", "{\"0\": {\"v\": 5}}");
    lab_settle(l);
    assert_json(l, "main/p/all", "{\"0\":5}");
}

static void names_of_properties_may_be_anything(void **state) {
    how = FOLD(.kind = HD_FOLD_SUM, .each = { .fn = value_of });
    lab_set_json(l, "xs",
                 "{\"\": {\"v\": 1}, \"a/b\": {\"v\": 2}, \"a\\u0000\": {\"v\": 4},"
                 " \"a\": {\"v\": 8}, \"a+2\": {\"v\": 16}, \"@x\": {\"v\": 32}}");
    start_piece("p", folded);
    lab_settle(l);
    assert_json(l, "main/p/out", "63");
    start_piece("q", mapped);
    lab_settle(l);
    assert_json(l, "main/q/all", "{\"\":1,\"@x\":32,\"a\":8,\"a\\u0000\":4,\"a+2\":16,\"a/b\":2}");
    lab_set_json(l, "xs", "{\"a\\u0000\": {\"v\": 4}}");
    lab_settle(l);
    assert_json(l, "main/q/all", "{\"a\\u0000\":4}");
    assert_json(l, "main/p/out", "4");
}

/* ---- groups */

static hd_cell sum_of_group(hd_build *row, hd_cell group, void *ctx) {
    hd_fold sum = { .kind = HD_FOLD_SUM, .each = { .fn = value_of } };
    return hd_build_fold(row, "sum", group, &sum);
}
static hd_cell grouped(hd_build *b, void *ctx) {
    hd_cell groups = hd_build_group(b, "by", hd_cell_at(rt(), "main/xs"),
                                    &(hd_each){ .fn = group_of, .key = "/id" });
    hd_cell sums = hd_build_map(b, "sums", groups, &(hd_each){ .build = sum_of_group });
    hd_cell all = hd_build_gather(b, "all", sums);
    hd_build_sink(b, "look", all, look, NULL);
    return all;
}
#define ITEM(id, g, v) "{\"id\": " #id ", \"g\": " g ", \"v\": " #v "}"

static void an_element_that_changes_its_group_moves(void **state) {
    lab_set_json(
        l, "xs",
        "[" ITEM(1, "\"red\"", 1) "," ITEM(2, "\"blue\"", 2) "," ITEM(3, "\"red\"", 4) "]");
    start_piece("p", grouped);
    lab_settle(l);
    assert_json(l, "main/p/all", "{\"blue\":2,\"red\":5}");
    lab_ran(l);
    lab_set(l, "xs#/0/v", 10); /* its key runs, and says the same; its row in the sum runs */
    lab_settle(l);
    assert_ran(l, "key row");
    assert_json(l, "main/p/all", "{\"blue\":2,\"red\":14}");
    lab_set_json(l, "xs#/2/g", "\"blue\"");
    lab_settle(l);
    assert_ran(l, "key row"); /* the row is of another list now */
    assert_json(l, "main/p/all", "{\"blue\":6,\"red\":10}");
    lab_set_json(l, "xs#/0/g", "null");
    lab_settle(l);
    assert_json(l, "main/p/all", "{\"blue\":6}");
    lab_ran(l);
    settle();
    restart();
    start_piece("p", grouped);
    lab_settle(l);
    assert_ran(l, "");
}

static void keys_of_groups_are_texts_or_json(void **state) {
    lab_set_json(l, "xs",
                 "[" ITEM(1, "7", 1) "," ITEM(2, "\"7\"", 2) "," ITEM(3, "[1]", 4) "," ITEM(
                     4, "\"\"", 8) "," ITEM(5, "false", 16) "]");
    start_piece("p", grouped);
    lab_settle(l);
    assert_json(l, "main/p/all", "{\"\":8,\"7\":3,\"[1]\":4,\"false\":16}");
}

/* A list of n links to main/t0, ... whose values are {"g": one of ten groups, "v": 1}; `grouped` reads it. */
static void write_grouped(int n) {
    write_links(n);
    for (int i = 0; i < n; i++) {
        char cell[16], json[40];
        snprintf(cell, sizeof cell, "t%d", i);
        snprintf(json, sizeof json, "{\"g\": \"g%d\", \"v\": 1}", i % 10);
        lab_set_json(l, cell, json);
    }
    lab_settle(l);
}

typedef struct reads_search {
    const char *name;
    uint32_t reads;
} reads_search;
static bool match_name(const hd_node_info *info, void *ctx) {
    reads_search *search = ctx;
    if (info->name && !strcmp(info->name, search->name)) search->reads = info->reads;
    return true;
}
static uint32_t reads_of(const char *name) {
    reads_search search = { name, 0 };
    hd_runtime_nodes(rt(), match_name, &search);
    return search.reads;
}

/* How many nodes run, and how many rows' keys, when one of n elements gets another key: on average. */
static uint64_t runs_of_key_change(int n) {
    enum { TIMES = 40 };
    write_grouped(n);
    lab_ran(l);
    uint64_t runs = runs_now();
    for (int i = 0; i < TIMES; i++) {
        char cell[16];
        snprintf(cell, sizeof cell, "t%d#/g", i * n / TIMES);
        lab_set_json(l, cell, i % 2 ? "\"g1\"" : "\"g2\"");
        lab_settle(l);
    }
    return (runs_now() - runs) / TIMES;
}

/* pattern.h, hd_build_group: another key of one element runs the chunks above its row and the chunks above it in two
 * groups; the grouping node reads one digest, however long the list is. */
static void another_key_costs_the_logarithm_and_two_groups(void **state) {
    start_piece("p", grouped);
    uint64_t few = runs_of_key_change(100), many = runs_of_key_change(800);
    assert_in_range(many, 5, few + 15);
    assert_in_range(reads_of("main:p:by"), 1, 3);
    assert_json(l, "main/p/by#/g3/0/g", "\"g3\"");
}

static bool count_one(const hd_listing *entry, void *ctx) {
    ++*(int *)ctx;
    return true;
}
static int documents_of(const char *piece) {
    int n = 0;
    char prefix[16];
    snprintf(prefix, sizeof prefix, "%s/", piece);
    assert_int_equal(hd_runtime_list(rt(), "main", NULL, prefix, count_one, &n), HD_OK);
    return n;
}

/* pattern.h: the documents of rows that leave a list, of groups that have no element any more, and of what a fold no
 * longer needs, are removed: the same list has as many documents as the first time. */
static void what_leaves_takes_its_documents_along(void **state) {
    static const char two[] = "[" ITEM(1, "\"red\"", 1) "," ITEM(2, "\"blue\"", 2) "]";
    lab_set_json(l, "xs", "[]");
    start_piece("p", grouped);
    settle();
    int none = documents_of("p");
    lab_set_json(l, "xs", two);
    settle();
    int few = documents_of("p");
    for (int round = 0; round < 3; round++) {
        write_grouped(90);
        settle();
        assert_in_range(documents_of("p"), 200, 2000);
        lab_set_json(l, "xs", two);
        settle();
        assert_json(l, "main/p/all", "{\"blue\":2,\"red\":1}");
        assert_int_equal(documents_of("p"), few);
    }
    lab_set_json(l, "xs", "[]");
    settle();
    assert_int_equal(documents_of("p"), none);
    assert_in_range(none, 3, 8);
}

/* pattern.h: the same of what leaves while no program runs the piece: its next start removes the documents. */
static void what_leaves_meanwhile_takes_its_documents_along(void **state) {
    static const char two[] = "[" ITEM(1, "\"red\"", 1) "," ITEM(2, "\"blue\"", 2) "]";
    lab_set_json(l, "xs", two);
    start_piece("p", grouped);
    settle();
    int few = documents_of("p");
    for (int round = 0; round < 3; round++) {
        write_grouped(90);
        settle();
        assert_in_range(documents_of("p"), 200, 2000);
        stop();
        lab_on(l, "z");
        lab_set_json(l, "xs", two);
        settle();
        lab_on(l, "a");
        start_piece("p", grouped);
        settle();
        assert_json(l, "main/p/all", "{\"blue\":2,\"red\":1}");
        assert_int_equal(documents_of("p"), few);
    }
}

/* A row that leaves and comes back has its document. */
static void a_row_that_comes_back_has_its_document(void **state) {
    lab_set_json(l, "xs", "{\"tea\": {\"v\": 1}, \"milk\": {\"v\": 2}}");
    start_piece("p", mapped);
    settle();
    for (int i = 0; i < 3; i++) {
        lab_remove(l, "xs#/tea");
        if (i) lab_settle(l);
        if (i > 1) settle();
        lab_set_json(l, "xs#/tea", "{\"v\": 1}");
        settle();
        assert_json(l, "main/p/rows/tea", "1");
        assert_json(l, "main/p/all", "{\"milk\":2,\"tea\":1}");
    }
}

/* invalidation.c: a document that another program removes is written again by the computation that has it as its
 * output. */
static void a_result_that_another_program_removes_comes_back(void **state) {
    if (!lab_is_shared(l)) return;
    lab_set_json(l, "xs", "{\"tea\": {\"v\": 1}}");
    start_piece("p", mapped);
    settle();
    lab_on(l, "b");
    lab_remove(l, "p/rows/tea");
    hd_runtime_sync(rt());
    lab_on(l, "a");
    settle();
    settle();
    assert_json(l, "main/p/rows/tea", "1");
    assert_json(l, "main/p/all", "{\"tea\":1}");
}

/* ---- links that count from where they are */

static hd_value is_true(hd_tx *tx, hd_value in, void *ctx) { return hd_bool(true); }
static hd_value itself(hd_tx *tx, hd_value in, void *ctx) { return in; }
static hd_cell carried(hd_build *b, void *ctx) {
    hd_cell xs = hd_build_argument(b, "xs", hd_array());
    hd_cell some = hd_build_filter(b, "some", xs, &(hd_each){ .fn = is_true });
    hd_fold sum = { .kind = HD_FOLD_SUM };
    hd_build_sink(b, "l1", hd_build_gather(b, "all", some), look, NULL);
    hd_cell rows = hd_build_map(b, "rows", xs, &(hd_each){ .fn = itself });
    hd_build_sink(b, "l4", hd_build_gather(b, "mapped", rows), look, NULL);
    hd_build_sink(b, "l2", hd_build_gather(b, "own", xs), look, NULL);
    hd_build_sink(b, "l3", hd_build_fold(b, "sum", xs, &sum), look, NULL);
    return some;
}

/* A list in another document, reached through a link, whose elements are links inside that document. */
static void links_inside_a_document_lead_to_the_same_from_elsewhere(void **state) {
    lab_set_json(
        l, "store",
        "{\"list\": [{\"$link\": {\"path\": \"/a\"}}, {\"$link\": {\"path\": \"/b\"}}], \"a\": 1, "
        "\"b\": 2}");
    lab_set_json(
        l, "other",
        "{\"list\": [{\"$link\": {\"path\": \"/a\"}}, {\"$link\": {\"path\": \"/b\"}}], \"a\": 10, "
        "\"b\": 20}");
    start_piece("p", carried);
    lab_set_json(l, "p#/arguments/xs", "{\"$link\": {\"id\": \"store\", \"path\": \"/list\"}}");
    lab_settle(l);
    assert_json(l, "main/p/own", "[1,2]");
    assert_json(l, "main/p/all", "[1,2]");
    assert_json(l, "main/p/sum", "3");
    lab_set_json(l, "p#/arguments/xs", "{\"$link\": {\"id\": \"other\", \"path\": \"/list\"}}");
    lab_settle(l);
    assert_json(l, "main/p/mapped", "[10,20]");
    assert_json(l, "main/p/own", "[10,20]");
    assert_json(l, "main/p/all", "[10,20]");
    assert_json(l, "main/p/sum", "30");
}

/* ---- two programs with the same fold */

static hd_cell summed(hd_build *b, void *ctx) {
    return hd_build_fold(b, "out", hd_cell_at(hd_build_runtime(b), "main/xs"),
                         &(hd_fold){ .kind = HD_FOLD_SUM });
}

/* One of them, in which nothing keeps the fold live, asks for it. */
static void assert_pulls(const char *runtime, int64_t sum) {
    hd_pool *pool;
    lab_settle(l);
    lab_on(l, runtime);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    hd_value v = hd_pull_now(rt(), pool, hd_cell_at(rt(), "main/p/out"));
    assert_int_equal(hd_value_as_int(v, -1), sum);
    hd_pool_close(pool);
    lab_settle(l);
}

static void both_sum(const char *xs) {
    lab_set_json(l, "xs", xs);
    lab_on(l, "b");
    start_piece("p", summed);
    lab_settle(l);
    lab_on(l, "a");
    start_piece("p", summed);
}

/* The key k6 begins a chunk: the first chunk has k5 when b runs, k5 and k8 when a runs, and k5 again in the end. */
static void a_chunk_is_not_taken_for_one_of_other_members(void **state) {
    if (!lab_is_shared(l)) return;
    both_sum("{\"k5\": 5}");
    assert_pulls("b", 5);
    lab_set_json(l, "xs#/k8", "8");
    assert_pulls("a", 13);
    lab_set_json(l, "xs#/k6", "6");
    assert_pulls("b", 19);
    assert_pulls("a", 19);
}

/* The list is again what it was when b ran: b has no chunk to make anew, but its chunk holds what a has stored. The
 * elements are links: what they lead to stays. */
static void a_list_that_becomes_what_it_was_has_the_sum_that_it_had(void **state) {
    if (!lab_is_shared(l)) return;
    static const char one[] = "[{\"$link\": {\"id\": \"five\"}}]";
    lab_set_json(l, "five", "5");
    lab_set_json(l, "eight", "8");
    both_sum(one);
    assert_pulls("b", 5);
    lab_set_json(l, "xs", "[{\"$link\": {\"id\": \"five\"}}, {\"$link\": {\"id\": \"eight\"}}]");
    assert_pulls("a", 13);
    lab_set_json(l, "xs", one);
    assert_pulls("b", 5);
    assert_pulls("a", 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(each_kind_does_what_the_header_says),
        S(a_function_of_ones_own_is_called_in_the_order_of_the_list),
        S(a_change_costs_the_logarithm),
        S(a_failure_to_combine_is_reported_and_mended),
        S(what_makes_no_sense_is_refused),
        S(a_property_has_a_row_as_long_as_it_is_there),
        S(an_object_may_become_an_array_and_back),
        S(names_of_properties_may_be_anything),
        S(an_element_that_changes_its_group_moves),
        S(keys_of_groups_are_texts_or_json),
        S(another_key_costs_the_logarithm_and_two_groups),
        S(what_leaves_takes_its_documents_along),
        S(what_leaves_meanwhile_takes_its_documents_along),
        S(a_row_that_comes_back_has_its_document),
        S(a_result_that_another_program_removes_comes_back),
        S(links_inside_a_document_lead_to_the_same_from_elsewhere),
        S(a_chunk_is_not_taken_for_one_of_other_members),
        S(a_list_that_becomes_what_it_was_has_the_sum_that_it_had),
    };
    LAB_EVERYWHERE(tests);
}
