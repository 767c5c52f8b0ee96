/* test_holds.c -- nobody runs for the first time before the data is there (seed 9.2). */
#include "spec.h"

#include <heddle/pattern.h>

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static hd_hold hold(const char *name, uint32_t ms) {
    hd_hold h;
    assert_int_equal(hd_hold_begin(rt(), name, ms, &h), HD_OK);
    assert_int_not_equal(h.id, 0);
    return h;
}

static void settle(void) {
    lab_settle(l);
    hd_runtime_sync(rt());
}

/* C200: a hold that was staged before the registration applies, and is released early. */
static void a_hold_comes_before_the_node(void **state) {
    hd_hold h = hold("sum", 5000);
    lab_set(l, "n", 3);
    lab_compute(l, "sum", "n", NULL);
    lab_effect(l, "show", "sum");
    lab_settle(l);
    assert_ran(l, "show");
    assert_int_equal(lab_info(l, "sum").why_not, HD_WHY_NOT_HELD);
    char why[100];
    hd_node_why_not(rt(), lab_find(l, "sum")->node, why, sizeof why);
    assert_string_equal(why, "it is held until the data is there: at most 5000 ms more");
    assert_false(hd_runtime_is_idle(rt()));
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "");

    hd_hold_end(rt(), h);
    lab_settle(l);
    assert_ran(l, "sum show");
    assert_seen(l, "show", "4");
    assert_true(hd_runtime_is_idle(rt()));
    hd_hold_end(rt(), h); /* once more does nothing */
}

/* C200: one that nobody releases ends by itself. */
static void a_hold_ends_by_itself(void **state) {
    hold("show", 0);
    lab_effect(l, "show", "n");
    lab_advance_ms(l, 1999);
    lab_turn(l);
    assert_ran(l, "");
    lab_advance_ms(l, 1);
    lab_turn(l);
    assert_ran(l, "show");
    lab_effect(l, "late", "n");
    lab_turn(l);
    assert_ran(l, "late");
}

/* Who comes later knows nothing of it. */
static void a_hold_that_is_over_leaves_no_trace(void **state) {
    hold("late", 10);
    lab_advance_ms(l, 11);
    lab_effect(l, "late", "n");
    assert_int_equal(lab_info(l, "late").eligible_at_ns, 0);
}

static hd_status hold_all(lab_node *self, hd_tx *tx) {
    hd_hold h;
    hd_tx_get(tx, hd_cell_at(rt(), "main/n"));
    return self->runs > 1 ? HD_OK : hd_hold_begin(rt(), NULL, 5000, &h);
}

/* Also who was in the middle of its first run when the hold began. */
static void a_first_run_under_way_counts(void **state) {
    lab_add(l, .name = "importer", .effect = true, .body = hold_all);
    lab_settle(l);
    assert_ran(l, "importer");
    lab_set(l, "n", 4);
    lab_turn(l);
    assert_ran(l, "importer");
}

/* Whoever has run goes on; who is there and has not run is held as well. */
static void only_first_runs_are_held(void **state) {
    lab_effect(l, "ran", "n");
    lab_settle(l);
    lab_effect(l, "fresh", "n");
    hd_hold all = hold(NULL, 0), one = hold("fresh", 0);
    lab_add(l, .effect = true, .reads = "n", .name = "nameless", .anonymous = true);
    lab_set(l, "n", 1);
    lab_ran(l);
    lab_settle(l);
    assert_ran(l, "ran");
    hd_hold_end(rt(), all);
    lab_settle(l);
    assert_ran(l, "nameless");
    hd_hold_end(rt(), one);
    lab_settle(l);
    assert_ran(l, "fresh");
}

/* Whoever looks once sees what there is, as at any gate. */
static void a_pull_does_not_break_a_hold(void **state) {
    hd_hold h = hold("sum", 0);
    lab_compute(l, "sum", "n", NULL);
    lab_set(l, "n", 3);
    assert_string_equal(lab_pull(l, "sum"), "-");
    assert_ran(l, "");
    hd_hold_end(rt(), h);
    assert_string_equal(lab_pull(l, "sum"), "3");
}

static hd_status create_child(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    if (self->runs == 1) lab_effect(self->l, "child", "n");
    return HD_OK;
}

/* A path means what is there, and below; not what has such a name elsewhere. */
static void a_hold_covers_what_is_below(void **state) {
    hd_hold h = hold("parent/child", 0);
    lab_effect(l, "child", "n");
    lab_add(l, .name = "parent", .effect = true, .body = create_child);
    lab_settle(l);
    assert_ran(l, "child parent");
    hd_hold_end(rt(), h);
    lab_settle(l);
    assert_ran(l, "child");
}

static void show(hd_value v, void *ctx) { lab_note(l, "look"); }
static hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "twice");
    return hd_double(2 * hd_value_number(in));
}
static hd_cell watcher(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), twice, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

/* C200: a whole piece, or all of a space. */
static void hold_the_piece_in(const char *space, const char *name) {
    hd_piece p;
    hd_error error;
    hd_hold h = hold(name, 0);
    assert_int_equal(hd_pattern_register(rt(), "watcher", "1", watcher, NULL), HD_OK);
    hd_piece_spec spec = { .space = space, .id = "w", .pattern = "watcher" };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, &error), HD_OK);
    lab_effect(l, "other", "n");
    lab_settle(l);
    assert_ran(l, "other");
    hd_hold_end(rt(), h);
    lab_settle(l);
    assert_ran(l, "twice look");
}
static void hold_the_piece(const char *name) { hold_the_piece_in(NULL, name); }
static void a_piece_is_held_as_one(void **state) { hold_the_piece("main:w"); }
static void so_are_all_of_a_space(void **state) { hold_the_piece("main"); }

/* In names of nodes the space is written with "%3A" for a colon. */
static void the_name_of_a_space_may_have_colons(void **state) { hold_the_piece_in("a:b%", "a:b%"); }
static void so_may_that_of_a_piece(void **state) { hold_the_piece_in("a:b", "a:b:w"); }
static void another_space_is_not_held(void **state) {
    hd_piece p;
    hd_piece_spec spec = { .space = "a:b", .id = "w", .pattern = "watcher" };
    hold("a", 0);
    assert_int_equal(hd_pattern_register(rt(), "watcher", "1", watcher, NULL), HD_OK);
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    lab_settle(l);
    assert_ran(l, "twice look");
}

static void program(void) {
    lab_compute(l, "sum", "a b c", NULL);
    lab_effect(l, "show", "sum");
}

/* C200, C308: a computation that was resumed is not set off by a space that fills up under it. */
static void what_was_resumed_waits_for_the_data(void **state) {
    program();
    settle();
    lab_runtime_close(lab_on(l, "a"));
    lab_ran(l);

    lab_on(l, "a");
    hd_hold h = hold(NULL, 0);
    program();
    for (int i = 0; i < 3; i++) {
        lab_set(l, (const char *[]){ "a", "b", "c" }[i], i + 1);
        lab_settle(l);
    }
    assert_ran(l, "");
    hd_hold_end(rt(), h);
    lab_settle(l);
    assert_ran(l, "sum show");
    assert_seen(l, "show", "6");
}

/* ---- no memory */

static hd_status nothing(hd_tx *tx, void *ctx) {
    (void)tx;
    ++*(int *)ctx;
    return HD_OK;
}

static bool hold_and_release(hd_runtime *own, int *runs) {
    hd_hold h;
    bool well = hd_effect(own, "early", nothing, runs).id != 0;
    well = well && hd_hold_begin(own, "late", 0, &h) == HD_OK;
    well = well && hd_hold_begin(own, NULL, 0, &h) == HD_OK;
    well = well && hd_effect(own, "late", nothing, runs).id != 0;
    if (!well) return false;
    hd_runtime_pump(own);
    assert_int_equal(*runs, 0);
    hd_hold_end(own, h);
    hd_runtime_pump(own);
    hd_runtime_pump(own); /* the first may have had no memory */
    assert_int_equal(*runs, 1);
    return true;
}

static void one_life(lab_env *world, void *ctx) {
    hd_options options = { .env = lab_env_of(world) };
    hd_runtime *own;
    int runs = 0; /* whoever could not be held runs when the runtime closes */
    (void)ctx;
    if (hd_open(NULL, &options, &own, NULL)) return;
    assert_true(hold_and_release(own, &runs) || lab_env_failed(world));
    hd_close(own);
}

static void a_hold_survives_every_failed_allocation(void **state) {
    assert_true(lab_each_allocation_failure(one_life, NULL) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_hold_comes_before_the_node),
        S(a_hold_ends_by_itself),
        S(a_hold_that_is_over_leaves_no_trace),
        S(a_first_run_under_way_counts),
        S(only_first_runs_are_held),
        S(a_pull_does_not_break_a_hold),
        S(a_hold_covers_what_is_below),
        S(a_piece_is_held_as_one),
        S(so_are_all_of_a_space),
        S(the_name_of_a_space_may_have_colons),
        S(so_may_that_of_a_piece),
        S(another_space_is_not_held),
        S(what_was_resumed_waits_for_the_data),
        cmocka_unit_test(a_hold_survives_every_failed_allocation),
    };
    LAB_EVERYWHERE(tests);
}
