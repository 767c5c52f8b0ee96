/* test_invalidation.c -- area E, the channel: every change, whoever made it, invalidates those who read
 * what changed, at once, and nobody else. What counts as a change: test_matching.c. */
#include "base/sabotage.h"
#include "spec.h"

static double twice(const double *in) { return 2 * in[0]; }
static double parity(const double *in) { return (double)((int)in[0] % 2); }

/* ---- the channel */

/* C78: when the cell it reads changes a live effect runs exactly once more. */
static void a_change_runs_its_reader_once(void **state) {
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_settle(l);
    assert_ran(l, "show show");
}

static int open_late(void **state) {
    l = lab_start_late();
    return 0;
}
#define LATE(test) cmocka_unit_test_setup_teardown(test, open_late, spec_close)

/* C106: a read of a document that is not here is tracked: a write to its address runs the reader. */
static void a_read_that_waits_is_tracked(void **state) {
    lab_effect(l, "show", "n");
    lab_turn(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_seen(l, "show", "1");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_seen(l, "show", "2");
}

/* C125: a fresh start with an input that arrives later converges without a nudge. */
static void a_cold_input_arrives(void **state) {
    lab_on(l, "b");
    lab_set(l, "n", 4);
    lab_settle(l);
    lab_on(l, "a");
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_seen(l, "show", "8");
}

/* What a computation writes has to arrive as well, to be compared with: it is not begun before. */
static void a_computation_whose_output_is_late_runs_once(void **state) {
    lab_on(l, "b");
    lab_set(l, "y", 7);
    lab_settle(l);
    lab_on(l, "a");
    lab_set(l, "n", 4); /* and n is here */
    lab_compute(l, "x", "n", twice);
    lab_compute(l, "y", "x", twice);
    lab_compute(l, "none", "", NULL);
    lab_effect(l, "show", "y none");
    lab_settle(l);
    assert_int_equal(lab_find(l, "x")->runs, 1);
    assert_int_equal(lab_find(l, "y")->runs, 1);
    assert_int_equal(lab_find(l, "none")->runs, 1);
    assert_int_equal(lab_find(l, "show")->runs, 1);
    assert_seen(l, "show", "16 0");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_seen(l, "show", "20 0");
    assert_int_equal(lab_find(l, "x")->runs, 2);
}

static hd_status write_two(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, "two", n);
    return status ? status : lab_tx_put(self, tx, "side", -n);
}

/* The same of all that it writes: they are asked for together. */
static void a_computation_with_two_late_outputs_runs_once(void **state) {
    lab_set(l, "n", 4);
    lab_add(l, .name = "two", .declares = "n", .body = write_two, .side_outputs = "side");
    lab_effect(l, "show", "two side");
    lab_settle(l);
    assert_int_equal(lab_find(l, "two")->runs, 1);
    assert_int_equal(lab_find(l, "show")->runs, 1);
    assert_seen(l, "show", "4 -4");
}

/* Whoever reads the result of one that waits for a document waits with it: he would run again anyway, and
 * has seen half of what is to come. */
static void a_reader_waits_with_its_writer(void **state) {
    lab_on(l, "b");
    lab_set(l, "n", 4);
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a");
    lab_set(l, "m", 1);
    lab_set(l, "x", 1);
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x m");
    lab_effect(l, "other", "m");
    lab_send(a); /* n does not arrive */
    lab_set(l, "m", 2);
    lab_send(a);
    assert_int_equal(lab_find(l, "show")->runs, 0);
    assert_seen(l, "other", "2");
    lab_settle(l);
    assert_seen(l, "show", "8 2");
    assert_int_equal(lab_find(l, "show")->runs, 1);
}

/* C108, C109: when the commit call returns the reader of what changed is invalid already, and only
 * that: nothing is passed on. */
static void a_commit_marks_readers_at_once_and_no_further(void **state) {
    lab_compute(l, "a", "n", twice);
    lab_compute(l, "b", "a", twice);
    lab_effect(l, "show", "b");
    lab_settle(l);
    lab_set(l, "n", 1);
    assert_int_equal(lab_info(l, "a").status, HD_NODE_INVALID);
    assert_true(lab_is_clean(l, "b"));
    assert_true(lab_is_clean(l, "show"));
    assert_int_equal(lab_stats(l).invalid, 1);
}

/* C110: an identical write, of the root or inside, makes no notice and no commit, and triggers
 * nobody. */
static void an_identical_write_is_nothing(void **state) {
    hd_store_stats before, after;
    lab_set_json(l, "doc", "{\"a\":{\"b\":1}}");
    lab_effect(l, "show", "doc");
    lab_settle(l);
    lab_ran(l);
    hd_runtime_store_stats(lab_runtime_now(l), &before);
    lab_set_json(l, "doc", "{\"a\":{\"b\":1}}");
    lab_set(l, "doc#/a/b", 1);
    hd_runtime_store_stats(lab_runtime_now(l), &after);
    assert_int_equal(after.commits, before.commits);
    assert_int_equal(after.notices, before.notices);
    assert_int_equal(after.changes, before.changes);
    lab_settle(l);
    assert_ran(l, "");
}

/* C111: a computation that read a document becomes invalid when another writer's change arrives, and
 * recomputes when it is pulled. */
static void another_writers_change_invalidates(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "x", "n", twice);
    assert_string_equal(lab_pull(l, "x"), "2");
    lab_settle(l);
    lab_write(lab_on(l, "b"), "n", "5");
    lab_settle(l);
    lab_on(l, "a");
    assert_int_equal(lab_info(l, "x").status, HD_NODE_INVALID);
    lab_ran(l);
    assert_string_equal(lab_pull(l, "x"), "10");
    assert_ran(l, "x");
}

static hd_status sum_frontier(lab_node *self, hd_tx *tx) {
    hd_cell at = lab_cell(self->at, "frontier");
    hd_value links = hd_tx_get(tx, at);
    double sum = 0;
    if (hd_value_status(links)) return hd_value_status(links);
    for (hd_iter it = hd_iter_of(links); hd_iter_next(&it);) {
        hd_value v = hd_tx_follow(tx, at, it.value);
        if (hd_value_status(v)) return hd_value_status(v);
        sum += hd_value_number(v);
    }
    return lab_tx_put(self, tx, "sum", sum);
}

/* C112: a frontier that another writer expands to 64 documents is recomputed when it is pulled. */
static void a_frontier_expands_elsewhere(void **state) {
    lab_set_json(l, "frontier", "[]");
    lab_add(l, .name = "sum", .body = sum_frontier);
    assert_string_equal(lab_pull(l, "sum"), "0");
    lab_settle(l);
    lab_runtime *b = lab_on(l, "b");
    assert_json(l, "frontier", "[]");
    for (int i = 0; i < 64; i++) {
        char script[128];
        snprintf(script, sizeof script,
                 "set leaf%d %d; append frontier {\"$link\":{\"id\":\"leaf%d\"}}", i, i, i);
        lab_do(b, script);
    }
    lab_settle(l);
    lab_on(l, "a");
    assert_string_equal(lab_pull(l, "sum"), "2016");
}

/* C113: after a commit was refused its values are taken back, and their readers become invalid. */
static void a_revert_invalidates(void **state) {
    lab_set(l, "n", 1);
    lab_set(l, "m", 0);
    lab_effect(l, "show", "m");
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a"), *b = lab_on(l, "b");
    lab_write(b, "n", "2");
    lab_on(l, "a");
    lab_hold(a);
    lab_pump(b);
    lab_fate *f = lab_do(a, "get n; set m 7");
    lab_turn(l);
    assert_seen(l, "show", "7");
    lab_mend(a);
    lab_settle(l);
    assert_fate(f, HD_STALE);
    assert_seen(l, "show", "0");
}

/* C114: a conflict on one child: readers of the container run, readers of a sibling do not. */
static void a_conflict_on_one_child_spares_the_others(void **state) {
    lab_set_json(l, "doc", "{\"left\":1,\"right\":1}");
    lab_effect(l, "left", "doc#/left");
    lab_effect(l, "all", "doc");
    lab_effect(l, "right", "doc#/right");
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a"), *b = lab_on(l, "b");
    assert_json(l, "doc#/left", "1");
    lab_on(l, "a");
    lab_hold(a);
    lab_fate *f = lab_do(a, "get doc#/left; set doc#/left 5");
    lab_write(b, "doc#/left", "7");
    lab_pump(b);
    lab_turn(l);
    lab_ran(l);
    lab_mend(a);
    lab_settle(l);
    assert_fate(f, HD_STALE);
    assert_ran(l, "left all");
    assert_seen(l, "all", "{\"left\":7,\"right\":1}");
}

/* ---- self */

static hd_status count_up(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "counter", lab_tx_number(self, tx, "counter") + 1);
}

/* C115, I5: an effect that reads and writes one counter is not run again by its own commit; by
 * somebody else's write it is. */
static void i5_an_own_commit_does_not_run_the_effect_again(void **state) {
    lab_set(l, "counter", 10);
    lab_add(l, .name = "count", .body = count_up, .effect = true);
    lab_settle(l);
    assert_ran(l, "count");
    assert_json(l, "counter", "11");
    lab_set(l, "counter", 20);
    lab_settle(l);
    assert_ran(l, "count");
    assert_json(l, "counter", "21");
}

static double larger(const double *in) { return in[0] > in[1] ? in[0] : in[1]; }

/* C116, I5: a computation whose own commit touches what it reads runs once. */
static void i5_a_computation_that_reads_its_output_runs_once(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "most", "most n", larger);
    lab_effect(l, "show", "most");
    lab_settle(l);
    assert_ran(l, "most show");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "most show");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "most");
    assert_json(l, "most", "5");
}

static hd_status count_to_two(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "counter");
    return n < 2 ? lab_tx_put(self, tx, "counter", n + 1) : HD_OK;
}

/* C117, I5: two nodes that look the same to a human are two: what one commits triggers the other. */
static void i5_suppression_goes_by_identity(void **state) {
    lab_add(l, .name = "twin", .body = count_to_two, .effect = true, .anonymous = true);
    lab_add(l, .name = "twin", .body = count_to_two, .effect = true, .anonymous = true);
    lab_settle(l);
    assert_ran(l, "twin twin twin");
    assert_json(l, "counter", "2");
}

static void note_pull(hd_value v, void *ctx) { *(double *)ctx = hd_value_number(v); }

/* C117: two pulls of one cell are both answered. */
static void two_pulls_of_one_cell_are_both_answered(void **state) {
    double one = 0, two = 0;
    lab_set(l, "n", 4);
    lab_compute(l, "x", "n", twice);
    hd_cell x = lab_cell(lab_on(l, "a"), "x");
    assert_int_equal(hd_pull(lab_runtime_now(l), x, note_pull, &one), HD_OK);
    assert_int_equal(hd_pull(lab_runtime_now(l), x, note_pull, &two), HD_OK);
    lab_settle(l);
    assert_ran(l, "x");
    assert_true(one == 8 && two == 8);
    assert_int_equal(lab_stats(l).effects, 0);
}

/* C118: a subscriber with a change group does not hear of commits in that group, and of others. */
static void a_change_group_is_not_heard_by_its_own(void **state) {
    lab_add(l, .name = "editor", .reads = "text", .effect = true, .group = 7);
    lab_effect(l, "other", "text");
    lab_settle(l);
    lab_ran(l);
    lab_do(lab_on(l, "a"), "group 7; set text \"mine\"");
    lab_settle(l);
    assert_ran(l, "other");
    lab_do(lab_on(l, "a"), "set text \"yours\"");
    lab_settle(l);
    assert_ran(l, "editor other");
    lab_do(lab_on(l, "a"), "group 8; set text \"theirs\"");
    lab_settle(l);
    assert_ran(l, "editor other");
}

/* ---- values gate execution */

/* C119, I3: a computation that gives the same output three times wakes nobody. */
static void i3_an_unchanged_output_wakes_nobody(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "parity", "n", parity);
    lab_effect(l, "show", "parity");
    lab_settle(l);
    lab_ran(l);
    for (int i = 3; i <= 7; i += 2) {
        lab_set(l, "n", i);
        lab_settle(l);
    }
    assert_ran(l, "parity parity parity");
}

/* C120, I3: a computation whose output changes n times runs its effect exactly n times. */
static void i3_every_change_is_seen_once(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    uint64_t before = lab_find(l, "show")->runs;
    for (int i = 1; i <= 10; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
    }
    assert_int_equal(lab_find(l, "show")->runs - before, 10);
}

/* C121, I3: where the output upstream is unchanged, computation and effect further down have not run
 * and are clean. */
static void i3_unchanged_output_stops_the_wave(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "parity", "n", parity);
    lab_compute(l, "text", "parity", twice);
    lab_effect(l, "show", "text");
    lab_settle(l);
    assert_ran(l, "parity text show");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "parity");
    assert_true(lab_is_clean(l, "text"));
    assert_true(lab_is_clean(l, "show"));
}

/* I3: a value that changes and changes back before anybody looked runs its reader at most once, and
 * nobody behind it. */
static void i3_there_and_back(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 4);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "x");
}

/* C122: a clean effect whose writer is invalid but gated stays clean when it is registered again. */
static void a_gated_writer_leaves_its_reader_clean(void **state) {
    lab_add(l, .name = "x", .reads = "n", .debounce_ms = 100);
    lab_effect(l, "show", "x");
    lab_idle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_int_equal(lab_info(l, "x").status, HD_NODE_INVALID);
    lab_add(l, .again = "show", .effect = true);
    lab_settle(l);
    assert_ran(l, "");
    assert_true(lab_is_clean(l, "show"));
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_ran(l, "x show");
}

static hd_status build_object(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    char json[64];
    if (n < 10) snprintf(json, sizeof json, "{\"a\":%d}", (int)n);
    else snprintf(json, sizeof json, "{\"a\":1,\"b\":%d}", (int)n);
    return hd_tx_set_json(tx, lab_cell(self->at, "x"), json);
}

/* C123: a shallow effect registered again over an invalid writer: the writer runs once, the effect
 * only if what it sees has changed. */
static void a_shallow_effect_over_an_invalid_writer(void **state) {
    lab_add(l, .name = "x", .body = build_object, .declares = "n");
    lab_effect(l, "show", "~x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_add(l, .again = "show", .effect = true);
    lab_idle(l);
    assert_ran(l, "x");
    lab_set(l, "n", 12);
    lab_add(l, .again = "show", .effect = true);
    lab_idle(l);
    assert_ran(l, "x show");
}

/* C124: a node that never ran and that nobody demands: when its declared source changes it does not
 * run, and nothing is noted. */
static void a_node_that_never_ran_is_told_nothing(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_settle(l);
    uint64_t marks = lab_stats(l).marks;
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).marks, marks);
    assert_int_equal(lab_info(l, "x").status, HD_NODE_NEVER_RAN);
}

/* ---- invariants over whole worlds */

#define SOURCES 4

static double sum3(const double *in) { return in[0] + in[1] + in[2]; }

/* A world of its own on the runtime: which cells depends on the salt. */
static void add_graph(const char *prefix, unsigned salt) {
    char name[16], reads[48], last[16] = "s0";
    for (unsigned i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s%u", prefix, i);
        snprintf(reads, sizeof reads, "s%u s%u %s", (i + salt) % SOURCES, (i * salt) % SOURCES,
                 last);
        lab_compute(l, name, reads, sum3);
        snprintf(last, sizeof last, "%s", name);
    }
    snprintf(name, sizeof name, "%s_show", prefix);
    lab_effect(l, name, last);
}

/* What the last node of that graph must be. */
static double expect(unsigned salt) {
    char cell[8];
    double s[SOURCES];
    for (unsigned i = 0; i < SOURCES; i++) {
        snprintf(cell, sizeof cell, "s%u", i);
        s[i] = lab_get(l, cell);
    }
    double last = s[0];
    for (unsigned i = 0; i < 6; i++)
        last = s[(i + salt) % SOURCES] + s[(i * salt) % SOURCES] + last;
    return last;
}

/* I1: at quiescence every live node has seen the current values; also with two runtimes on one store
 * that compute different things from the same sources. */
static void i1_two_runtimes_agree_with_what_is_there(void **state) {
    lab_random r = lab_random_of(lab_seed());
    add_graph("p", 1);
    lab_on(l, "b");
    add_graph("q", 3);
    for (int round = 0; round < 20; round++) {
        char cell[8];
        lab_on(l, lab_random_once_in(&r, 2) ? "a" : "b");
        snprintf(cell, sizeof cell, "s%u", (unsigned)lab_random_below(&r, SOURCES));
        lab_set(l, cell, (double)lab_random_below(&r, 5));
        if (lab_random_once_in(&r, 3)) continue; /* more than one change at once */
        lab_settle(l);
        lab_on(l, "a");
        assert_true(strtod(lab_seen(l, "p_show"), NULL) == expect(1));
        lab_on(l, "b");
        assert_true(strtod(lab_seen(l, "q_show"), NULL) == expect(3));
    }
}

/* I1: two runtimes that derive the same document agree, and each runs once per change. */
static void i1_two_runtimes_derive_the_same(void **state) {
    char twice_n[8];
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show_a", "x");
    lab_on(l, "b");
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show_b", "x");
    lab_settle(l);
    lab_ran(l);
    for (int i = 1; i <= 10; i++) {
        lab_on(l, i % 3 ? "a" : "b");
        lab_set(l, "n", i);
        lab_settle(l);
        snprintf(twice_n, sizeof twice_n, "%d", 2 * i);
        assert_seen(l, "show_a", twice_n);
        assert_seen(l, "show_b", twice_n);
    }
    assert_int_equal(lab_find(l, "show_a")->runs + lab_find(l, "show_b")->runs, 22);
}

/* Without self-suppression the effect runs itself again, and C115 notices. */
static void without_suppression_c115_fails(void **state) {
    struct CMUnitTest test = S(i5_an_own_commit_does_not_run_the_effect_again);
    spec_must_notice(LEAVE_OUT_SUPPRESSION, test);
}

/* I9: a writer runs before its reader, whatever the order of registration. */
static void i9_writers_run_before_readers(void **state) {
    lab_effect(l, "show", "d");
    lab_compute(l, "d", "b c", NULL);
    lab_compute(l, "c", "a", NULL);
    lab_compute(l, "b", "a", NULL);
    lab_compute(l, "a", "n", NULL);
    lab_settle(l);
    lab_ran(l);
    for (int i = 1; i < 4; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
        const char *ran = lab_ran(l);
        assert_true(!strcmp(ran, "a c b d show") || !strcmp(ran, "a b c d show"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_change_runs_its_reader_once),
        LATE(a_read_that_waits_is_tracked),
        LATE(a_cold_input_arrives),
        LATE(a_computation_whose_output_is_late_runs_once),
        LATE(a_computation_with_two_late_outputs_runs_once),
        LATE(a_reader_waits_with_its_writer),
        S(a_commit_marks_readers_at_once_and_no_further),
        S(an_identical_write_is_nothing),
        S(another_writers_change_invalidates),
        S(a_frontier_expands_elsewhere),
        S(a_revert_invalidates),
        S(a_conflict_on_one_child_spares_the_others),
        S(i5_an_own_commit_does_not_run_the_effect_again),
        S(i5_a_computation_that_reads_its_output_runs_once),
        S(i5_suppression_goes_by_identity),
        S(two_pulls_of_one_cell_are_both_answered),
        S(a_change_group_is_not_heard_by_its_own),
        S(i3_an_unchanged_output_wakes_nobody),
        S(i3_every_change_is_seen_once),
        S(i3_unchanged_output_stops_the_wave),
        S(i3_there_and_back),
        S(a_gated_writer_leaves_its_reader_clean),
        S(a_shallow_effect_over_an_invalid_writer),
        S(a_node_that_never_ran_is_told_nothing),
        S(i1_two_runtimes_agree_with_what_is_there),
        S(i1_two_runtimes_derive_the_same),
        S(i9_writers_run_before_readers),
        cmocka_unit_test(without_suppression_c115_fails),
    };
    LAB_EVERYWHERE(tests);
}
