/* test_resume_quiet.c -- what a resume does not do (area O, I2, I7): it reads no document, asks once for each
 * piece and not for each node, and runs nothing before all nodes are there. */
#include "lab_inside.h"

#include "piece_world.h"

/* ---- what is asked of the store */

static void count_queries(void) { lab_watch_rows(lab_on(l, "a"), 0); }

static uint64_t loads(void) {
    hd_store_stats stats;
    hd_runtime_store_stats(rt(), &stats);
    return stats.loads;
}

/* ---- a piece of so many nodes, two inputs each */

static int width;
static hd_value add(hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "add");
    return hd_double(hd_value_number(in[0]) + hd_value_number(in[1]));
}
static hd_cell wide(hd_build *b, void *ctx) {
    hd_cell last = hd_cell_at(rt(), "main/x");
    char name[32];
    for (int i = 0; i < width; i++) {
        snprintf(name, sizeof name, "main/in%d", i);
        hd_cell in[] = { last, hd_cell_at(rt(), name) };
        snprintf(name, sizeof name, "n%d", i);
        last = hd_build_lift(b, name, add, NULL, in, 2);
    }
    return last;
}

static void write_inputs(void) {
    lab_set(l, "x", 1);
    for (int i = 0; i < width; i++) {
        char name[32];
        snprintf(name, sizeof name, "in%d", i);
        lab_set(l, name, i);
    }
}

/* It has run, and all that is known of it is stored. Then a new life begins. */
static void has_run(int nodes) {
    width = nodes;
    write_inputs();
    hd_piece p = start_piece("wide", wide);
    hd_node looking = hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    settle();
    hd_node_unregister(rt(), looking);
    settle();
    lab_ran(l);
    restart();
    count_queries();
    assert_int_equal(hd_pattern_register(rt(), "wide", "1", wide, NULL), HD_OK);
}

static uint64_t loads_of_a_resume(int nodes) {
    hd_piece p;
    has_run(nodes);
    assert_int_equal(hd_piece_open(rt(), "main", "wide", &p, NULL), HD_OK);
    settle();
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).runs, 0);
    assert_int_equal(lab_stats(l).invalid, 0);
    assert_int_equal(lab_rows_asked().rows, 1);
    assert_int_equal(lab_rows_asked().changes, 1);
    uint64_t n = loads();
    lab_close(l);
    l = lab_start();
    return n;
}

/* C295, I2, I7: nothing runs; of all documents the piece's own is read, and it alone, however many nodes it
 * has and however much they have read; one query for rows, and one for what has changed. */
static void a_clean_piece_costs_no_reads_and_no_queries_of_nodes(void **state) {
    assert_int_equal(loads_of_a_resume(1), 1);
    assert_int_equal(loads_of_a_resume(100), 1);
}

/* C295, I7: with one input changed what reads it runs, and what reads that; nothing else is read. */
static void one_change_reads_what_its_readers_read(void **state) {
    hd_piece p;
    has_run(20);
    stop();
    lab_on(l, "z");
    lab_set(l, "in18", 7);
    settle();
    lab_on(l, "a");
    count_queries();
    assert_int_equal(hd_pattern_register(rt(), "wide", "1", wide, NULL), HD_OK);
    assert_int_equal(hd_piece_open(rt(), "main", "wide", &p, NULL), HD_OK);
    assert_int_equal(lab_rows_asked().rows, 1);
    assert_int_equal(lab_stats(l).invalid, 1);
    settle();
    assert_ran(l, "");            /* nobody looks */
    assert_int_equal(loads(), 2); /* the piece's own, and the one that has changed */
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    settle();
    assert_ran(l, "add add show");
    assert_true(loads() <=
                1 + 5 + 2); /* n17, in18, n18, in19, n19; what is said beside those written */
}

static void chain(void) {
    lab_compute(l, "one", "n", NULL);
    lab_compute(l, "two", "one m", NULL);
}

/* C295, I2: the same for the nodes of a program that has no piece: there is nothing to read at all. */
static void a_clean_program_reads_nothing(void **state) {
    lab_set(l, "n", 1);
    lab_set(l, "m", 2);
    chain();
    lab_effect(l, "show", "two");
    settle();
    lab_ran(l);
    restart();
    count_queries();
    chain();
    settle();
    assert_ran(l, "");
    assert_true(lab_is_clean(l, "one") && lab_is_clean(l, "two"));
    assert_int_equal(loads(), 0);
    assert_int_equal(lab_rows_asked().rows, 1);
}

/* ---- a store that cannot tell */

/* C306: whatever of it cannot be read, the piece starts afresh, without an error and with the right values,
 * though one of its inputs has changed meanwhile. */
static void starts_afresh_with(unsigned faults) {
    hd_piece p;
    has_run(5);
    stop();
    lab_on(l, "z");
    lab_set(l, "x", 100);
    settle();
    lab_on(l, "a");
    lab_watch_rows(lab_on(l, "a"), faults);
    lab_catch(l);
    assert_int_equal(hd_pattern_register(rt(), "wide", "1", wide, NULL), HD_OK);
    assert_int_equal(hd_piece_open(rt(), "main", "wide", &p, NULL), HD_OK);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    settle();
    assert_ran(l, "add add add add add show");
    assert_json(l, "main/wide/n4", "110.0");
    assert_string_equal(lab_failures(l), "");
}
static void rows_that_cannot_be_read(void **state) { starts_afresh_with(LAB_ROWS_FAIL); }
static void rows_that_end_too_early(void **state) { starts_afresh_with(LAB_ROWS_END_EARLY); }
static void changes_that_cannot_be_read(void **state) { starts_afresh_with(LAB_CHANGES_FAIL); }

/* ---- one phase */

static uint64_t passes_at_build;
static hd_cell three(hd_build *b, void *ctx) {
    static char names[3][8] = { "a", "b", "c" };
    hd_cell at = hd_cell_at(rt(), "main/x");
    for (int i = 0; i < 3; i++) {
        at = hd_build_derive(b, names[i], at, twice, names[i]);
        hd_build_sink(b, i ? i > 1 ? "look_c" : "look_b" : "look_a", at, show, NULL);
        assert_int_equal(lab_stats(l).passes, passes_at_build);
    }
    return at;
}

/* C308: while a piece is taken up nothing is runnable, though it is stale from end to end; then one pass
 * runs all of it, each node once. */
static void a_stale_piece_is_taken_up_as_one(void **state) {
    lab_set(l, "x", 1);
    start_piece("three", three);
    settle();
    stop();
    lab_on(l, "z");
    lab_set(l, "x", 2);
    settle();
    lab_on(l, "a");
    lab_ran(l);
    lab_turn(l);
    passes_at_build = lab_stats(l).passes;
    start_piece("three", three);
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).passes, passes_at_build);
    lab_turn(l);
    assert_ran(l, "a show b show c show");
    assert_int_equal(lab_stats(l).passes, passes_at_build + 1);
    lab_turn(l);
    assert_ran(l, "");
    passes_at_build = 0;
}

/* ---- lists */

static hd_value price(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, ctx);
    return hd_value_at(in, "price");
}
static hd_value is_dear(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "dear");
    return hd_bool(hd_value_number(hd_value_at(in, "price")) > 10);
}
static hd_value both(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "both");
    hd_value v = hd_value_at(in, "price");
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ v, v }, 2);
}
static hd_cell lists(hd_build *b, void *ctx) {
    static char name[] = "price", link[] = "link";
    hd_cell items = hd_cell_at(rt(), "main/items"), links = hd_cell_at(rt(), "main/links");
    hd_cell some[] = {
        hd_build_gather(
            b, "all",
            hd_build_map(b, "prices", items, &(hd_each){ .fn = price, .ctx = name, .key = "/id" })),
        hd_build_filter(b, "dear", items, &(hd_each){ .fn = is_dear, .key = "/id" }),
        hd_build_flat_map(b, "flat", items, &(hd_each){ .fn = both, .key = "/id" }),
        hd_build_gather(b, "linked",
                        hd_build_map(b, "behind", links, &(hd_each){ .fn = price, .ctx = link })),
    };
    static const char *const sinks[] = { "s0", "s1", "s2", "s3" };
    for (int i = 0; i < 4; i++) hd_build_sink(b, sinks[i], some[i], show, NULL);
    return items;
}

static uint64_t runs_of(const char *name) {
    hd_action_stats stats = { 0 };
    if (hd_runtime_action_stats(rt(), name, &stats)) return 0;
    return stats.runs;
}

static void lists_have_run(void) {
    lab_set_json(l, "items", "[{\"id\":1,\"price\":10},{\"id\":2,\"price\":20}]");
    lab_set_json(l, "far", "{\"price\": 5}");
    lab_set_json(l, "links", "[{\"$link\":{\"id\":\"far\"}}]");
    start_piece("lists", lists);
    settle();
    lab_ran(l);
    restart();
    start_piece("lists", lists);
    settle();
}

/* C304: the coordinators run, once each; no row does, whichever list it belongs to. */
static void coordinators_run_and_rows_do_not(void **state) {
    static const char *const coordinators[] = { "main:lists:prices", "main:lists:dear.rows",
                                                "main:lists:flat.rows", "main:lists:behind" };
    lists_have_run();
    assert_ran(l, "show show show show");
    for (int i = 0; i < 4; i++) assert_int_equal(runs_of(coordinators[i]), 1);
    assert_true(hd_node_find(rt(), "main:lists:prices/1").id);
    assert_int_equal(runs_of("main:lists:prices/1"), 0);
    assert_json(l, "main/lists/all", "[10,20]");
    assert_json(l, "main/lists/flat", "[10,10,20,20]");
}

/* C310, I7: a field of one element, then one more element: the row that it is, in each list. */
static void one_element_is_one_row(void **state) {
    lists_have_run();
    lab_ran(l);
    lab_set(l, "items#/0/price", 11);
    settle();
    assert_ran(l, "price dear both show show show");
    lab_set_json(l, "items",
                 "[{\"id\":1,\"price\":11},{\"id\":2,\"price\":20},{\"id\":3,\"price\":1}]");
    settle();
    assert_ran(l, "price dear both show show");
    assert_json(l, "main/lists/all", "[11,20,1]");
    assert_json(l, "main/lists/flat", "[11,11,20,20,1,1]");
    assert_json(l, "main/lists/dear", "[{\"id\":1,\"price\":11},{\"id\":2,\"price\":20}]");
    lab_set_json(l, "far", "{\"price\": 6}");
    settle();
    assert_ran(l, "link show");
    assert_json(l, "main/lists/linked", "[6]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_clean_piece_costs_no_reads_and_no_queries_of_nodes),
        S(one_change_reads_what_its_readers_read),
        S(a_clean_program_reads_nothing),
        S(rows_that_cannot_be_read),
        S(rows_that_end_too_early),
        S(changes_that_cannot_be_read),
        S(a_stale_piece_is_taken_up_as_one),
        S(coordinators_run_and_rows_do_not),
        S(one_element_is_one_row),
    };
    LAB_EVERYWHERE(tests);
}
