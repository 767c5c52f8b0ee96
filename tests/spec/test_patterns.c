/* test_patterns.c -- patterns: each primitive, what runs, and what does not. */
#include "piece_world.h"

static hd_value sum(hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "sum");
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in[0], 0) + hd_value_as_int(in[1], 0));
}

/* ---- lift, derive, constants, defaults */

static hd_cell adder(hd_build *b, void *ctx) {
    hd_cell in[] = { hd_build_argument(b, "x", hd_int(NULL, 2)),
                     hd_build_constant(b, "ten", hd_int(NULL, 10)) };
    return hd_build_lift(b, "sum", sum, NULL, in, 2);
}

/* Seed 000, lift: a computation over inputs, which runs when somebody looks. */
static void a_lift_runs_when_somebody_looks(void **state) {
    hd_piece p = start_piece("adder", adder);
    lab_settle(l);
    assert_ran(l, "");
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "sum show");
    assert_json(l, "main/adder/sum", "12");
    lab_set(l, "adder#/arguments/x", 5);
    lab_settle(l);
    assert_ran(l, "sum show");
    assert_json(l, "main/adder/sum", "15");
    assert_json(l, "adder#/result", "15");
    assert_true(hd_node_find(rt(), "main:adder:sum").id);
}

static hd_cell doubler(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), twice, NULL);
}

/* Seed 000, derive. A link as an argument is looked through. */
static void a_derive_follows_a_linked_argument(void **state) {
    hd_piece p;
    lab_set(l, "n", 4);
    hd_pattern_register(rt(), "doubler", NULL, doubler, NULL);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_value link = hd_cell_link(rt(), pool, hd_cell_at(rt(), "main/n"));
    hd_piece_spec spec = { .id = "p",
                           .pattern = "doubler",
                           .arguments = hd_object_set(pool, hd_object(), "x", link) };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    hd_pool_close(pool);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_json(l, "main/p/d", "8.0");
    lab_ran(l);
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/p/d", "10.0");
}

static void start_linked(void) {
    hd_piece p;
    hd_pool *pool;
    assert_int_equal(hd_pattern_register(rt(), "doubler", "1", doubler, NULL), HD_OK);
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_value link = hd_cell_link(rt(), pool, hd_cell_at(rt(), "main/far"));
    hd_piece_spec spec = { .id = "p",
                           .pattern = "doubler",
                           .arguments = hd_object_set(pool, hd_object(), "x", link) };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    hd_pool_close(pool);
}

static uint64_t loads(void) {
    hd_store_stats stats;
    hd_runtime_store_stats(rt(), &stats);
    return stats.loads;
}

/* Somebody else writes what the link leads to, and this runtime hears of all that it wants to hear. */
static void far_becomes(const char *json) {
    lab_write(lab_on(l, "b"), "far", json);
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    lab_on(l, "a");
    lab_idle(l);
}

/* C49, I2: a piece with linked input and no demand runs nothing and does not read what the link leads to,
 * neither when it is new nor when it was there; no more is read than for one without a link. */
static void i2_a_piece_without_demand_reads_nothing(void **state) {
    far_becomes("4");
    for (int life = 0; life < 2; life++) {
        uint64_t first = loads();
        start_piece("doubler", doubler);
        uint64_t second = loads();
        start_linked();
        assert_int_equal(loads() - second, second - first);
        second = loads();
        lab_idle(l);
        far_becomes(life ? "6" : "5"); /* nor when it changes */
        assert_ran(l, "");
        assert_int_equal(loads(), second);
        assert_int_equal(lab_stats(l).runs, 0);
        restart();
    }
    start_linked();
    hd_sink(rt(), hd_cell_at(rt(), "main/p/d"), show, NULL); /* now there is demand */
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/p/d", "12.0");
}

/* ---- ifElse */

static hd_cell chooser(hd_build *b, void *ctx) {
    hd_cell n = hd_build_argument(b, "n", hd_int(NULL, 1));
    return hd_build_if_else(b, "chosen", hd_build_argument(b, "c", hd_bool(true)),
                            hd_build_derive(b, "yes", n, twice, "yes"),
                            hd_build_derive(b, "no", n, twice, "no"));
}

/* C48: the branch that is not chosen does not run; after a switch the other does not. */
static void only_the_chosen_branch_runs(void **state) {
    hd_piece p = start_piece("chooser", chooser);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "yes show");
    lab_set(l, "chooser#/arguments/n", 2);
    lab_settle(l);
    assert_ran(l, "yes show");
    lab_set_json(l, "chooser#/arguments/c", "false");
    lab_settle(l);
    assert_ran(l, "no"); /* to the same value */
    lab_set(l, "chooser#/arguments/n", 3);
    lab_settle(l);
    assert_ran(l, "no show");
    assert_json(l, "main/chooser/chosen", "6.0");
    lab_set(l, "chooser#/arguments/n", 4);
    lab_settle(l);
    assert_ran(l, "no show");
}

static hd_cell long_way(hd_build *b, void *ctx) {
    hd_cell n = hd_build_argument(b, "n", hd_int(NULL, 1));
    hd_cell far = hd_build_derive(b, "far", n, twice, "far");
    return hd_build_if_else(b, "chosen", hd_build_argument(b, "c", hd_bool(true)),
                            hd_build_derive(b, "near", far, twice, "near"), n);
}

/* A branch that is taken again is brought up to date from its beginning, in one go. */
static void a_branch_is_brought_up_to_date_from_its_beginning(void **state) {
    hd_piece p = start_piece("long_way", long_way);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "far near show");
    lab_set_json(l, "long_way#/arguments/c", "false");
    lab_settle(l);
    lab_set(l, "long_way#/arguments/n", 2);
    lab_settle(l);
    assert_ran(l, "show show");
    lab_set_json(l, "long_way#/arguments/c", "true");
    lab_settle(l);
    assert_ran(l, "far near show");
    assert_json(l, "main/long_way/chosen", "8.0");
}

/* ---- patterns in patterns */

static hd_cell user(hd_build *b, void *ctx) {
    hd_cell n = hd_build_argument(b, "n", hd_int(NULL, 1));
    hd_cell first = hd_build_use(b, "first", "doubler", &(hd_named_cell){ "x", n }, 1);
    return hd_build_use(b, "second", "doubler", &(hd_named_cell){ "x", first }, 1);
}

/* A pattern's result is the input of another. */
static void a_pattern_uses_another(void **state) {
    assert_int_equal(hd_pattern_register(rt(), "doubler", NULL, doubler, NULL), HD_OK);
    hd_piece p = start_piece("user", user);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "twice twice show");
    assert_json(l, "main/user/second/d", "4.0");
    assert_true(hd_node_find(rt(), "main:user:second:d").id);
}

static hd_value multiply(hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "multiply");
    return hd_int(hd_tx_pool(tx), hd_value_as_int(in[0], 0) * hd_value_as_int(in[1], 0));
}
static hd_cell generate(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "generate");
    hd_cell of[] = { hd_build_constant(b, "x", in[0]), hd_cell_at(hd_build_runtime(b), "main/y") };
    return hd_build_lift(b, "multiply", multiply, NULL, of, 2);
}
static hd_cell generator(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 2));
    return hd_build_derive_pattern(b, "generated", generate, NULL, &x, 1);
}

/* A piece of this pattern, and somebody who looks at its result. */
static void look_at(const char *name, hd_pattern_fn pattern) {
    hd_piece p = start_piece(name, pattern);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
}

/* Seed 000's nested lift: the parent runs first, replaces what its inputs decided, and only the
 * appropriate child runs. */
static void a_parent_replaces_its_child(void **state) {
    lab_set(l, "y", 10);
    look_at("generator", generator);
    assert_ran(l, "generate multiply show"); /* nobody sees a graph half built */
    assert_json(l, "main/generator/generated/multiply", "20");
    lab_set(l, "generator#/arguments/x", 3);
    lab_settle(l);
    assert_ran(l, "generate multiply show");
    assert_json(l, "generator#/result", "30");
}

/* C146: the sub-pattern's own value changes; the derive that built it does not run. */
static void a_change_below_does_not_run_the_parent(void **state) {
    lab_set(l, "y", 10);
    look_at("generator", generator);
    lab_ran(l);
    lab_set(l, "y", 11);
    lab_settle(l);
    assert_ran(l, "multiply show");
    assert_json(l, "generator#/result", "22");
}

static hd_cell same_again(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    lab_note(l, "generate");
    hd_cell y = hd_cell_at(hd_build_runtime(b), "main/y");
    if (hd_value_as_int(in[0], 0) < 0) return hd_build_derive(b, "other", y, twice, "other");
    return hd_build_derive(b, "child", y, twice, "child");
}
static hd_cell steady(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 2));
    return hd_build_derive_pattern(b, "generated", same_again, NULL, &x, 1);
}

/* C147: the same structure again: what is there stays, and does not run. Another: it goes. */
static void the_same_structure_again_stays(void **state) {
    lab_set(l, "y", 5);
    look_at("steady", steady);
    lab_ran(l);
    lab_set(l, "steady#/arguments/x", 3);
    lab_settle(l);
    assert_ran(l, "generate");
    lab_set(l, "steady#/arguments/x", -3);
    lab_settle(l);
    assert_ran(l, "generate other"); /* to the same value */
    assert_true(hd_node_find(rt(), "main:steady:generated.pattern/other").id);
    assert_false(hd_node_find(rt(), "main:steady:generated.pattern/child").id);
    lab_set(l, "y", 1);
    lab_settle(l);
    assert_ran(l, "other show");
}

/* ---- what goes wrong */

static hd_cell twins(hd_build *b, void *ctx) {
    hd_cell n = hd_build_argument(b, "n", hd_int(NULL, 1));
    hd_build_derive(b, "same", n, twice, NULL);
    assert_int_equal(hd_build_status(b), HD_OK);
    hd_cell second = hd_build_derive(b, "same", n, twice, NULL);
    assert_int_equal(hd_build_status(b), HD_USAGE);
    return second;
}

/* A duplicate is an error, and nothing is left of the piece. */
static void two_of_a_name_are_refused(void **state) {
    hd_piece p;
    hd_error error;
    hd_pattern_register(rt(), "twins", NULL, twins, NULL);
    assert_int_equal(
        hd_piece_start(rt(), &(hd_piece_spec){ .id = "t", .pattern = "twins" }, &p, &error),
        HD_USAGE);
    assert_non_null(strstr(error.message, "same"));
    assert_int_equal(p.id, 0);
    assert_json(l, "t", "-");
    assert_false(hd_node_find(rt(), "main:t:same").id);
    assert_int_equal(
        hd_piece_start(rt(), &(hd_piece_spec){ .id = "t", .pattern = "none" }, &p, &error),
        HD_NOT_FOUND);
    assert_int_equal(
        hd_piece_start(rt(), &(hd_piece_spec){ .id = "a/b", .pattern = "twins" }, &p, &error),
        HD_USAGE);
}

static hd_cell state_and_node(hd_build *b, void *ctx) {
    return hd_build_derive(b, "n", hd_build_state(b, "n", hd_int(NULL, 1)), twice, NULL);
}
static hd_cell node_and_stream(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "n", hd_build_argument(b, "n", hd_int(NULL, 1)), twice, NULL);
    hd_build_stream(b, "n");
    return d;
}
static hd_cell state_and_stream(hd_build *b, void *ctx) {
    hd_build_stream(b, "n");
    return hd_build_state(b, "n", hd_int(NULL, 1));
}

/* States and streams are documents of the piece like the outputs of nodes. */
static void a_state_or_a_stream_has_a_name_of_its_own(void **state) {
    static const hd_pattern_fn all[] = { state_and_node, node_and_stream, state_and_stream };
    static const char *const names[] = { "a", "b", "c" };
    hd_piece p;
    hd_error error;
    for (int i = 0; i < 3; i++) {
        hd_pattern_register(rt(), names[i], NULL, all[i], NULL);
        hd_piece_spec spec = { .id = names[i], .pattern = names[i] };
        assert_int_equal(hd_piece_start(rt(), &spec, &p, &error), HD_USAGE);
        assert_non_null(strstr(error.message, "two of the name \"n\""));
    }
}

static hd_cell mentions_twice(hd_build *b, void *ctx) {
    hd_cell n = hd_build_state(b, "n", hd_int(NULL, 1)),
            again = hd_build_state(b, "n", hd_int(NULL, 2));
    hd_cell s = hd_build_stream(b, "s");
    bool same =
        n.id == again.id && s.id == hd_build_stream(b, "s").id &&
        hd_build_argument(b, "x", hd_int(NULL, 1)).id == hd_build_argument(b, "x", hd_null()).id;
    return same ? n : hd_build_fail(b, HD_FAILED, "they are others");
}
static hd_cell mentions_and_uses(hd_build *b, void *ctx) {
    hd_build_use(b, "used", "mentions_twice", NULL, 0);
    return mentions_twice(b, ctx);
}

/* A state, a stream and an argument may be asked for again. */
static void what_is_mentioned_twice_is_one(void **state) {
    assert_int_equal(hd_pattern_register(rt(), "mentions_twice", "1", mentions_twice, NULL), HD_OK);
    start_piece("mentions_and_uses", mentions_and_uses);
    assert_json(l, "main/mentions_and_uses/n", "1");
    assert_json(l, "main/mentions_and_uses/used/n", "1");
}

static hd_cell argument_and_node(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 3)),
            y = hd_build_argument(b, "y", (hd_value){ 0 });
    hd_build_derive(b, "y", y, twice, "y");
    return hd_build_derive(b, "x", x, twice, "x");
}
static hd_cell uses_argument_and_node(hd_build *b, void *ctx) {
    return hd_build_use(b, "u", "argument_and_node", NULL, 0);
}

/* Arguments have names of their own, also in a pattern that is used. */
static void an_argument_may_be_called_as_a_node(void **state) {
    look_at("argument_and_node", argument_and_node);
    assert_json(l, "main/argument_and_node/x", "6.0");
    look_at("uses", uses_argument_and_node);
    assert_json(l, "main/uses/u/x", "6.0");
    assert_json(l, "main/uses/u/x.argument", "3");
}

static hd_status run_own(hd_tx *tx, void *ctx) {
    lab_note(l, "own");
    return hd_tx_set_int(tx, hd_cell_at(hd_tx_runtime(tx), "main/own"), 1);
}
static hd_cell with_gate(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    return hd_build_node(b, &(hd_node_spec){ .name = "own",
                                             .fn = run_own,
                                             .output = hd_cell_at(rt(), "main/own"),
                                             .throttle_ms = hd_value_is_true(in[0]) ? 400 : 0 });
}
static hd_cell gated(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_bool(true));
    return hd_build_derive_pattern(b, "generated", with_gate, NULL, &x, 1);
}

/* A node of one's own is the same if all that its spec says is. */
static void a_node_with_another_gate_is_another(void **state) {
    const char *name = "main:gated:generated.pattern/own";
    look_at("gated", gated);
    assert_ran(l, "own show");
    assert_int_equal(hd_node_throttle(rt(), hd_node_find(rt(), name)), 400);
    lab_set_json(l, "gated#/arguments/x", "1"); /* as true as before */
    lab_settle(l);
    assert_ran(l, "");
    lab_set_json(l, "gated#/arguments/x", "false");
    lab_settle(l);
    assert_ran(l, "own");
    assert_int_equal(hd_node_throttle(rt(), hd_node_find(rt(), name)), 0);
}

static void note_stop(void *ctx) { lab_note(l, ctx); }
static hd_cell with_last_words(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    static char yes[] = "stop_yes", always[] = "stop_always";
    hd_cell y = hd_cell_at(hd_build_runtime(b), "main/y");
    hd_build_on_stop(b, note_stop, always);
    if (hd_value_is_true(in[0])) hd_build_on_stop(b, note_stop, yes);
    return hd_build_derive(b, hd_value_is_true(in[0]) ? "yes" : "no", y, twice, "child");
}
static hd_cell talkative(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_bool(true));
    return hd_build_derive_pattern(b, "generated", with_last_words, NULL, &x, 1);
}

/* What is no longer built is told so at once, what stays is not. */
static void what_a_derive_no_longer_builds_is_told(void **state) {
    lab_set(l, "y", 5);
    hd_piece p = start_piece("talkative", talkative);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "child show");
    lab_set_json(l, "talkative#/arguments/x", "false");
    lab_settle(l);
    assert_ran(l, "stop_yes child");
    hd_piece_stop(rt(), p);
    assert_ran(l, "stop_always");
}

typedef struct scale {
    hd_cell by;
    int builds;
} scale;
static hd_value scaled(hd_tx *tx, hd_value in, void *ctx) {
    const scale *own = ctx;
    lab_note(l, "scaled");
    return hd_double(hd_value_number(in) * hd_value_number(hd_tx_get(tx, own->by)));
}
static hd_cell scale_row(hd_build *row, hd_cell element, void *ctx) {
    scale *above = ctx, *own = hd_build_memory(row, "scale", sizeof *own);
    if (!own) return (hd_cell){ 0 };
    assert_int_equal(own->builds++, 0);
    own->by = above->by;
    return hd_build_derive(row, "n", element, scaled, own);
}
static hd_cell scaler(hd_build *b, void *ctx) {
    scale *own = hd_build_memory(b, "scale", sizeof *own);
    if (!own) return (hd_cell){ 0 };
    assert_ptr_equal(own, hd_build_memory(b, "scale", sizeof *own));
    own->by = hd_build_argument(b, "by", hd_int(NULL, 2));
    hd_cell list = hd_build_argument(b, "list", hd_array());
    hd_cell rows = hd_build_map(b, "scale", list, &(hd_each){ .build = scale_row, .ctx = own });
    return hd_build_gather(b, "all", rows);
}

/* Pieces of one pattern, and rows of one list, know each their own. */
static void functions_know_what_their_build_gave_them(void **state) {
    look_at("scaler", scaler);
    hd_pool *pool;
    hd_piece other;
    hd_pool_open(hd_runtime_heap(rt()), &pool);
    hd_value five = hd_object_set(pool, hd_object(), "by", hd_int(pool, 5));
    hd_piece_spec spec = { .id = "other", .pattern = "scaler", .arguments = five };
    assert_int_equal(hd_piece_start(rt(), &spec, &other, NULL), HD_OK);
    hd_pool_close(pool);
    hd_sink(rt(), hd_piece_result(rt(), other), show, NULL);
    lab_set_json(l, "scaler#/arguments/list", "[1, 2]");
    lab_set_json(l, "other#/arguments/list", "[1]");
    lab_settle(l);
    assert_json(l, "main/scaler/all", "[2.0,4.0]");
    assert_json(l, "main/other/all", "[5.0]");
    lab_set_json(l, "scaler#/arguments/list", "[3]");
    hd_piece_stop(rt(), other);
    lab_settle(l);
    assert_json(l, "main/scaler/all", "[6.0]");
}

static hd_cell remembers(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    scale *own = hd_build_memory(b, "scale", sizeof *own);
    if (!own) return (hd_cell){ 0 };
    own->by = hd_cell_at(rt(), "main/y");
    if (hd_value_is_true(in[0])) hd_build_memory(b, "more", 1000);
    return hd_build_derive(b, "n", hd_cell_at(rt(), "main/y"), scaled, own);
}
static hd_cell rememberer(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_bool(true));
    return hd_build_derive_pattern(b, "generated", remembers, NULL, &x, 1);
}

/* It is the same memory, so what is built with it stays; what is no longer asked for goes. */
static void memory_outlasts_a_round(void **state) {
    lab_set(l, "y", 3);
    look_at("rememberer", rememberer);
    lab_settle(l);
    lab_ran(l);
    lab_set_json(l, "rememberer#/arguments/x", "false");
    lab_settle(l);
    assert_ran(l, "");
    assert_json(l, "main/rememberer/generated", "9.0");
}

/* A pattern reaches what its program gave the runtime, and may build the values it begins with. */
static hd_cell greeter(hd_build *b, void *ctx) {
    const char *name = hd_runtime_context(hd_build_runtime(b));
    return hd_build_state(b, "greeting", hd_string_f(hd_build_pool(b), "hello, %s", name));
}
static void a_pattern_knows_its_program(void **state) {
    char name[] = "Ada";
    hd_runtime *own;
    hd_pool *pool;
    hd_piece p;
    assert_int_equal(hd_open(NULL, &(hd_options){ .context = name }, &own, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(own), &pool), HD_OK);
    hd_pattern_register(own, "greeter", "1", greeter, NULL);
    assert_int_equal(
        hd_piece_start(own, &(hd_piece_spec){ .id = "g", .pattern = "greeter" }, &p, NULL), HD_OK);
    hd_value greeting = hd_read(own, pool, hd_piece_result(own, p));
    assert_string_equal(hd_value_as_text(greeting, "?"), "hello, Ada");
    hd_pool_close(pool);
    assert_int_equal(hd_close(own), HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_lift_runs_when_somebody_looks),
        S(a_derive_follows_a_linked_argument),
        S(i2_a_piece_without_demand_reads_nothing),
        S(only_the_chosen_branch_runs),
        S(a_branch_is_brought_up_to_date_from_its_beginning),
        S(a_pattern_uses_another),
        S(a_parent_replaces_its_child),
        S(a_change_below_does_not_run_the_parent),
        S(the_same_structure_again_stays),
        S(two_of_a_name_are_refused),
        S(a_state_or_a_stream_has_a_name_of_its_own),
        S(what_is_mentioned_twice_is_one),
        S(an_argument_may_be_called_as_a_node),
        S(a_node_with_another_gate_is_another),
        S(what_a_derive_no_longer_builds_is_told),
        S(functions_know_what_their_build_gave_them),
        S(memory_outlasts_a_round),
        S(a_pattern_knows_its_program),
    };
    LAB_EVERYWHERE(tests);
}
