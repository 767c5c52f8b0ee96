/* test_primitives.c -- the table of primitives, row by row, and the nested lift: what kind of action each is,
 * when it runs, and what it leaves alone (seed 000). */
#include "piece_world.h"
#include "lab_events.h"

static hd_value sum(hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "sum");
    return hd_double(hd_value_number(in[0]) + hd_value_number(in[1]));
}

static hd_node_info info_of(const char *name) {
    hd_node_info info;
    assert_int_equal(hd_node_inspect(rt(), hd_node_find(rt(), name), &info), HD_OK);
    return info;
}

static char seen[32];
static void see(hd_value v, void *ctx) {
    lab_note(l, "see");
    snprintf(seen, sizeof seen, "%g", hd_value_as_double(v, -1));
}

/* sink(cell, callback) | Effect | runs callback when cell changes */
static void a_sink_is_an_effect(void **state) {
    hd_node_info info;
    lab_set(l, "n", 1);
    hd_node sink = hd_sink(rt(), hd_cell_at(rt(), "main/n"), see, NULL);
    assert_int_equal(hd_node_inspect(rt(), sink, &info), HD_OK);
    assert_true(info.effect && info.live); /* a root of demand, whoever else looks */
    assert_int_equal(lab_stats(l).effects, 1);
    assert_int_equal(lab_stats(l).computations, 0);
    lab_settle(l);
    assert_ran(l, "see");
    assert_string_equal(seen, "1");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "see");
    assert_string_equal(seen, "2");
    lab_set(l, "other", 2);
    lab_set(l, "n", 2); /* the same once more */
    lab_settle(l);
    assert_ran(l, "");
}

static hd_cell computing(hd_build *b, void *ctx) {
    hd_cell in[] = { hd_cell_at(rt(), "main/n"), hd_cell_at(rt(), "main/m") };
    hd_cell lifted = hd_build_lift(b, "lifted", sum, NULL, in, 2);
    return hd_build_derive(b, "derived", lifted, twice, "derive");
}

/* A computation: it writes its output cell, and runs only when an effect needs that. */
static void assert_computes(const char *node, const char *cell) {
    hd_node_info info = info_of(node);
    assert_false(info.effect || info.live);
    assert_int_equal(info.output.id, hd_cell_at(rt(), cell).id);
    assert_int_equal(info.runs, 0);
    assert_int_equal(info.why_not, HD_WHY_NOT_DORMANT);
}

/* lift(fn, ...inputs) | Computation | transforms inputs, writes to output cell
 * derive(input, fn)   | Computation | derives new value from input */
static void lift_and_derive_are_computations(void **state) {
    lab_set(l, "n", 1);
    lab_set(l, "m", 2);
    hd_piece p = start_piece("computing", computing);
    lab_settle(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, ""); /* changed, and nobody needs it */
    assert_computes("main:computing:lifted", "main/computing/lifted");
    assert_computes("main:computing:derived", "main/computing/derived");
    assert_int_equal(lab_stats(l).computations, 2);
    assert_int_equal(lab_stats(l).effects, 0);
    hd_node sink = hd_sink(rt(), hd_piece_result(rt(), p), see, NULL);
    lab_settle(l);
    assert_ran(l, "sum derive see");
    assert_string_equal(seen, "10");
    lab_set(l, "m", 4);
    lab_settle(l);
    assert_ran(l, "sum derive see");
    assert_json(l, "main/computing/lifted", "7.0");
    assert_json(l, "main/computing/derived", "14.0");
    hd_node_unregister(rt(), sink);
    lab_set(l, "m", 5);
    lab_settle(l);
    assert_ran(l, ""); /* it stays invalid until somebody looks again */
    assert_int_equal(info_of("main:computing:lifted").status, HD_NODE_INVALID);
    assert_json(l, "main/computing/derived", "14.0");
}

static hd_status add(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_cell count = hd_cell_at(rt(), "main/counting/count");
    lab_note(l, "add");
    double now = hd_value_number(hd_tx_get(tx, count));
    return hd_tx_set_double(tx, count, now + hd_value_number(event->payload));
}
static hd_cell counting(hd_build *b, void *ctx) {
    hd_cell count = hd_build_state(b, "count", hd_int(NULL, 0));
    hd_build_handler(b, hd_build_stream(b, "add"), add, NULL, &count, 1);
    return hd_build_derive(b, "d", count, twice, "derive");
}

/* event handlers | Effect (one-time) | responds to user events: once for each, never for a change */
static void a_handler_runs_once_for_an_event(void **state) {
    hd_piece p = start_piece("counting", counting);
    lab_settle(l);
    assert_int_equal(lab_stats(l).nodes, 1); /* the derive: a handler is none */
    assert_ran(l, "");
    hd_cell stream = hd_piece_cell(rt(), p, "add");
    assert_int_equal(hd_event_send(rt(), stream, hd_int(NULL, 2), NULL), HD_OK);
    assert_ran(l, ""); /* not inside the call */
    lab_idle(l);
    assert_ran(l, "add"); /* what follows from it waits for demand */
    lab_set(l, "main/counting/count", 10);
    lab_idle(l);
    assert_ran(l, "");
    hd_sink(rt(), hd_piece_result(rt(), p), see, NULL);
    lab_idle(l);
    assert_ran(l, "derive see");
    assert_int_equal(hd_event_send(rt(), stream, hd_int(NULL, 1), NULL), HD_OK);
    lab_idle(l);
    assert_ran(l, "add derive see");
    assert_string_equal(seen, "22");
}

/* ---- ifElse, in the settle loop's example */

static hd_cell branches(hd_build *b, void *ctx) {
    hd_cell a = hd_build_derive(b, "a", hd_cell_at(rt(), "main/n"), twice, "branch_a");
    hd_cell other = hd_build_derive(b, "b", hd_cell_at(rt(), "main/m"), twice, "branch_b");
    return hd_build_if_else(b, "result", hd_cell_at(rt(), "main/condition"), a, other);
}

/* The condition changes, and the branch that it now means is out of date: that runs, and whoever looks sees
 * the one fresh value. */
static void a_switch_runs_the_other_branch_first(void **state) {
    lab_set(l, "n", 1);
    lab_set(l, "m", 2);
    lab_set_json(l, "condition", "true");
    hd_piece p = start_piece("branches", branches);
    hd_sink(rt(), hd_piece_result(rt(), p), see, NULL);
    lab_settle(l);
    assert_ran(l, "branch_a see");
    lab_set(l, "m", 3);
    lab_settle(l);
    assert_ran(l, "");
    lab_set_json(l, "condition", "false");
    lab_settle(l);
    assert_ran(l, "branch_b see");
    assert_string_equal(seen, "6");
}

/* ---- the nested lift: multiplyGenerator creates multiply, which reads what its creator reads */

static hd_value multiply(hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, ctx);
    return hd_double(hd_value_number(in[0]) * hd_value_number(in[1]));
}
static hd_cell generate(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    static char plain[] = "multiply", other[] = "multiply_big";
    hd_cell of[] = { hd_cell_at(rt(), "main/x"), hd_cell_at(rt(), "main/y") };
    lab_note(l, "generate");
    bool big = hd_value_number(in[0]) > 100;
    return hd_build_lift(b, big ? other : plain, multiply, big ? other : plain, of, 2);
}
static hd_cell multiply_generator(hd_build *b, void *ctx) {
    hd_cell in[] = { hd_cell_at(rt(), "main/x"), hd_cell_at(rt(), "main/y") };
    return hd_build_derive_pattern(b, "generated", generate, NULL, in, 2);
}

static hd_piece start_generator(void) {
    lab_set(l, "x", 2);
    lab_set(l, "y", 10);
    hd_piece p = start_piece("generator", multiply_generator);
    hd_sink(rt(), hd_piece_result(rt(), p), see, NULL);
    lab_settle(l);
    assert_ran(l, "generate multiply see");
    assert_string_equal(seen, "20");
    return p;
}

/* Both are concerned by a change of x. The parent runs first; its child is the same and runs once after
 * it. */
static void the_parent_runs_before_its_child(void **state) {
    start_generator();
    lab_set(l, "x", 3);
    assert_int_equal(lab_stats(l).invalid, 2);
    lab_settle(l);
    assert_ran(l, "generate multiply see");
    assert_string_equal(seen, "30");
    lab_set(l, "y", 11);
    lab_settle(l);
    assert_ran(l, "generate multiply see");
    assert_string_equal(seen, "33");
}

/* Both are concerned, and the parent wants another child: the old one, though invalid, does not run again. */
static void only_the_appropriate_child_runs(void **state) {
    start_generator();
    lab_set(l, "x", 200);
    lab_settle(l);
    assert_ran(l, "generate multiply_big see");
    assert_string_equal(seen, "2000");
    assert_false(hd_node_find(rt(), "main:generator:generated.pattern/multiply").id);
    lab_set(l, "x", 4);
    lab_settle(l);
    assert_ran(l, "generate multiply see");
    assert_string_equal(seen, "40");
}

/* The arrow back: a parent that creates the child and reads what it writes. Both are concerned by a change; data
 * goes before descent (C145), and it settles on the product with one run each. */
static hd_status generate_and_read(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "x");
    if (self->runs == 1) lab_add(l, .name = "multiply", .reads = "x y");
    return lab_tx_put(self, tx, "parent", lab_tx_number(self, tx, "multiply") + 1);
}
static void a_parent_that_reads_its_childs_result_settles(void **state) {
    lab_set(l, "x", 2);
    lab_set(l, "y", 10);
    lab_add(l, .name = "parent", .body = generate_and_read);
    lab_effect(l, "show", "parent");
    lab_settle(l);
    assert_ran(l, "parent multiply parent show");
    assert_seen(l, "show", "13");
    lab_set(l, "x", 3);
    lab_settle(l);
    assert_ran(l, "multiply parent show");
    assert_seen(l, "show", "14");
    assert_int_equal(lab_stats(l).exhausted, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_sink_is_an_effect),
        S(lift_and_derive_are_computations),
        S(a_handler_runs_once_for_an_event),
        S(a_switch_runs_the_other_branch_first),
        S(the_parent_runs_before_its_child),
        S(only_the_appropriate_child_runs),
        S(a_parent_that_reads_its_childs_result_settles),
    };
    LAB_EVERYWHERE(tests);
}
