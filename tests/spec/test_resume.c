/* test_resume.c -- after a restart nothing runs that need not (area O, I7).
 *
 * A program here is a function that registers its nodes; restart() closes the runtime and runs the
 * program again on the same store. */
#include "lab_line.h"
#include "base/sabotage.h"
#include "lab_inside.h"

#include "spec.h"

static void (*program)(void);

static void begin(void (*p)(void)) {
    program = p;
    p();
}

static uint64_t loads(void) {
    hd_store_stats stats;
    hd_runtime_store_stats(lab_runtime_now(l), &stats);
    return stats.loads;
}

static void stop(void) { lab_runtime_close(lab_on(l, "a")); }

static void again(void) {
    lab_on(l, "a");
    program();
}

static void restart(void) {
    stop();
    again();
}

static void settle(void) {
    lab_settle(l);
    hd_runtime_sync(lab_runtime_now(l));
}

/* ---- what is kept */

static void chain(void) {
    lab_compute(l, "double", "n n", NULL);
    lab_compute(l, "plus", "double m", NULL);
    lab_effect(l, "show", "plus");
}

/* The chain has run, and all that is known of it is stored. */
static void chain_has_run(void) {
    lab_set(l, "n", 3);
    lab_set(l, "m", 1);
    begin(chain);
    settle();
    assert_ran(l, "double plus show");
}

/* C295, C299, C308, I7: what was clean is clean, with its edges: only the effect runs, and it alone
 * reads a document. */
static void nothing_runs_that_need_not(void **state) {
    chain_has_run();
    restart();
    uint64_t before = loads();
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).runs, 0);
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "7");
    assert_int_equal(loads() - before, 1);
    assert_true(lab_is_clean(l, "double"));
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "double plus show");
    assert_seen(l, "show", "9");
}

/* C295, I7: the same where the process was killed, and not closed, once all had been stored. */
static void a_killed_program_resumes_as_well(void **state) {
    if (!lab_is_shared(l)) return; /* a store of one's own hears of derived state when one closes */
    chain_has_run();
    lab_runtime_drop(lab_on(l, "a"));
    again();
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "7");
}

/* C301: what changed meanwhile makes its reader invalid, and nobody else. */
static void a_change_while_down_runs_its_readers(void **state) {
    chain_has_run();
    stop();
    lab_on(l, "b");
    lab_set(l, "m", 2);
    settle();
    again();
    lab_settle(l);
    assert_ran(l, "plus show");
    assert_seen(l, "show", "8");
}

static void without_changes_c301_fails(void **state) {
    spec_must_notice(LEAVE_OUT_CHANGES, (struct CMUnitTest)S(a_change_while_down_runs_its_readers));
}

/* C306: a store that cannot tell what it knows: everything runs, nothing fails. */
static void rows_that_cannot_be_read_make_everything_fresh(void **state) {
    chain_has_run();
    stop();
    lab_watch_rows(lab_on(l, "a"), LAB_ROWS_FAIL);
    program();
    lab_settle(l);
    assert_ran(l, "double plus show");
    assert_seen(l, "show", "7");
}

/* What was changed and changed back is no change. */
static void an_equal_result_stops_the_wave(void **state) {
    chain_has_run();
    stop();
    lab_on(l, "b");
    lab_set(l, "n", 4);
    lab_set(l, "n", 3);
    settle();
    again();
    lab_settle(l);
    assert_ran(l, "show");
}

static void siblings(void) {
    lab_compute(l, "left", "doc#/left", NULL);
    lab_compute(l, "right", "doc#/right", NULL);
    lab_effect(l, "show", "left right");
}

/* C307: two that read parts of one document: the other stays clean. */
static void siblings_on_one_document_stay_clean(void **state) {
    lab_set_json(l, "doc", "{\"left\": 1, \"right\": 2}");
    begin(siblings);
    settle();
    lab_ran(l);
    stop();
    lab_on(l, "b");
    lab_set(l, "doc#/left", 5);
    settle();
    again();
    lab_settle(l);
    assert_ran(l, "left show");
    assert_seen(l, "show", "5 2");
}

static double always_one(const double *in) { return in[0] * 0 + 1; }
static void levelled(void) {
    lab_compute(l, "one", "n", always_one);
    lab_effect(l, "show", "one");
}

static char last = 'x';
static hd_cell far_below(void) {
    char cell[800];
    memset(cell, 'p', sizeof cell);
    memcpy(cell, "main/far#/", 10);
    snprintf(cell + 700, 8, "/%c", last);
    return hd_cell_at(lab_runtime_now(l), cell);
}
static hd_status write_far_below(hd_tx *tx, void *ctx) {
    lab_note(l, "far");
    hd_value n = hd_tx_get(tx, hd_cell_at(lab_runtime_now(l), "main/n"));
    return hd_tx_set(tx, far_below(), n);
}
static void see_far_below(hd_value v, void *ctx) { lab_note(l, "show"); }
static void writes_far_below(void) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_compute(rt, "far", write_far_below, NULL, far_below());
    hd_sink(rt, far_below(), see_far_below, NULL);
}

/* Another output is another node, however far down it is. */
static void another_output_far_below_runs(void **state) {
    lab_set(l, "n", 3);
    begin(writes_far_below);
    settle();
    assert_ran(l, "far show");
    restart();
    settle();
    assert_ran(l, "show");
    last = 'y';
    restart();
    settle();
    last = 'x';
    assert_ran(l, "far show");
}

/* A run whose output was as before has its basis too: it does not run at every restart. */
static void a_run_without_a_change_is_kept(void **state) {
    lab_set(l, "n", 3);
    begin(levelled);
    settle();
    lab_set(l, "n", 4);
    settle();
    assert_ran(l, "one show one");
    restart();
    lab_settle(l);
    assert_ran(l, "show");
}

/* The same where the process is killed, and nobody asked for anything to be stored. */
static void rows_go_alone_when_things_are_quiet(void **state) {
    if (!lab_is_shared(l)) return;
    lab_set(l, "n", 3);
    begin(levelled);
    settle();
    lab_set(l, "n", 4);
    lab_settle(l);
    lab_advance_ms(l, 1100);
    lab_settle(l);
    assert_ran(l, "one show one");
    lab_runtime_drop(lab_on(l, "a"));
    again();
    lab_settle(l);
    assert_ran(l, "show");
}

static const char *version_of_b;
static void versions(void) {
    lab_add(l, .name = "a1", .reads = "n", .version = "1");
    lab_add(l, .name = "b1", .reads = "n", .version = version_of_b);
    lab_effect(l, "show", "a1 b1");
}

/* C297: another code runs; those that are the same do not. */
static void another_version_runs_again(void **state) {
    version_of_b = "1";
    lab_set(l, "n", 3);
    begin(versions);
    settle();
    assert_ran(l, "a1 b1 show");
    version_of_b = "2";
    restart();
    settle();
    assert_ran(l, "b1 show");
    restart();
    lab_settle(l);
    assert_ran(l, "show");
}

static void nameless(void) {
    lab_add(l, .name = "plain", .reads = "n", .anonymous = true);
    lab_effect(l, "show", "plain");
}

/* C305: without a durable name nothing is kept. */
static void without_a_name_nothing_is_kept(void **state) {
    lab_set(l, "n", 3);
    begin(nameless);
    settle();
    lab_ran(l);
    restart();
    lab_settle(l);
    assert_ran(l, "plain show");
}

static void failing(void) {
    lab_compute(l, "sum", "n", NULL);
    lab_effect(l, "show", "sum");
}

/* I7: a node whose last run failed would fail again: like a process that stayed alive, a restart waits for
 * a change of what it read. */
static void a_failure_is_not_tried_again(void **state) {
    lab_set(l, "n", 3);
    begin(failing);
    lab_catch(l);
    settle();
    lab_set(l, "n", 4);
    lab_fail_next(l, "sum", HD_FAILED, 1);
    settle();
    assert_ran(l, "sum show sum");
    restart();
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "3");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "sum show");
    assert_seen(l, "show", "5");
}

static bool looking;
static void perhaps(void) {
    lab_compute(l, "sum", "n", NULL);
    if (looking) lab_effect(l, "show", "sum");
}

/* C296, I2: a stale node that nobody looks at does not run; its row stays stale until somebody does. */
static void a_stale_node_waits_for_demand(void **state) {
    looking = true;
    lab_set(l, "n", 3);
    begin(perhaps);
    settle();
    lab_ran(l);
    stop();
    lab_on(l, "b");
    lab_set(l, "n", 4);
    settle();
    looking = false;
    again();
    uint64_t before = loads();
    settle();
    assert_ran(l, "");
    assert_false(lab_is_clean(l, "sum"));
    assert_int_equal(loads(), before);
    looking = true;
    restart();
    lab_settle(l);
    assert_ran(l, "sum show");
    assert_seen(l, "show", "4");
}

static hd_status spread(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "box#/inside", lab_tx_number(self, tx, "n") + 1);
}
static void materialising(void) {
    lab_add(l, .name = "filler", .body = spread, .envelopes = "box", .output = "-");
    lab_effect(l, "show", "box#/inside");
}

/* C302: a materialiser that was away runs if its input has changed, and else not. */
static void a_materialiser_catches_up(void **state) {
    lab_set(l, "n", 3);
    begin(materialising);
    settle();
    lab_ran(l);
    restart();
    settle();
    assert_ran(l, "show");
    stop();
    lab_on(l, "b");
    lab_set(l, "n", 7);
    settle();
    again();
    settle();
    assert_ran(l, "filler show");
    assert_json(l, "box", "{\"inside\":8}");
}

static void across(void) {
    lab_compute(l, "here", "other/n", NULL);
    lab_effect(l, "show", "here");
}

/* C303: what is read in another space counts as well. */
static void another_space_counts(void **state) {
    lab_set(l, "other/n", 3);
    begin(across);
    settle();
    lab_ran(l);
    restart();
    lab_settle(l);
    assert_ran(l, "show");
    stop();
    lab_on(l, "b");
    lab_set(l, "other/n", 4);
    settle();
    again();
    lab_settle(l);
    assert_ran(l, "here show");
}

static void gated(void) {
    lab_compute(l, "slow", "n", NULL);
    lab_effect(l, "show", "slow");
}

/* C293: gates are part of what is kept. */
static void gates_are_restored(void **state) {
    lab_set(l, "n", 3);
    begin(gated);
    hd_node_set_throttle(lab_runtime_now(l), lab_find(l, "slow")->node, 400);
    hd_node_set_debounce(lab_runtime_now(l), lab_find(l, "slow")->node, 30);
    settle();
    lab_ran(l);
    restart();
    lab_settle(l);
    assert_ran(l, "show");
    assert_int_equal(hd_node_throttle(lab_runtime_now(l), lab_find(l, "slow")->node), 400);
    assert_int_equal(hd_node_debounce(lab_runtime_now(l), lab_find(l, "slow")->node), 30);
    lab_set(l, "n", 4); /* and they are in force */
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_info(l, "slow").why_not, HD_WHY_NOT_DEBOUNCE);
    lab_advance_ms(l, 30);
    lab_settle(l);
    assert_ran(l, "slow show");
}

/* A cancelled node leaves no row: registered again it is a new one. */
static void a_cancelled_node_is_forgotten(void **state) {
    chain_has_run();
    lab_cancel(l, "double");
    settle();
    restart();
    lab_settle(l);
    assert_ran(l, "double show");
}

static void twins(void) {
    lab_add(l, .name = "mine", .reads = "main@user/n", .output = "main@user/mine");
    lab_effect(l, "show", "main@user/mine");
}

/* One that comes back before anybody was told that it went keeps what its new run gave. */
static void a_node_that_comes_back_is_kept(void **state) {
    chain_has_run();
    lab_cancel(l, "plus");
    lab_compute(l, "plus", "double m", NULL);
    settle();
    assert_ran(l, "plus");
    restart();
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "7");
}

/* C312: the rows of one principal never serve another. */
static void a_principal_has_rows_of_its_own(void **state) {
    hd_status status;
    program = twins;
    stop();
    lab_runtime_try(l, "ann", "ann", &status);
    lab_on(l, "ann");
    lab_set(l, "main@user/n", 3);
    twins();
    settle();
    assert_ran(l, "mine show");
    lab_runtime_close(lab_on(l, "ann"));
    lab_runtime_try(l, "bob", "bob", &status);
    lab_on(l, "bob");
    lab_set(l, "main@user/n", 5);
    twins();
    settle();
    assert_ran(l, "mine show");
    assert_seen(l, "show", "5");
    lab_runtime_close(lab_on(l, "bob"));
    lab_runtime_try(l, "ann2", "ann", &status);
    lab_on(l, "ann2");
    twins();
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "3");
}

static void volatile_input(void) {
    hd_cell_set_volatile(lab_runtime_now(l), lab_cell(lab_on(l, "a"), "v"));
    lab_compute(l, "of_v", "v n", NULL);
    lab_effect(l, "show", "of_v");
}

/* Nothing is kept of a node that reads what is gone after a restart. */
static void volatile_documents_make_no_rows(void **state) {
    lab_set(l, "n", 3);
    begin(volatile_input);
    lab_set(l, "v", 1);
    settle();
    lab_ran(l);
    restart();
    lab_settle(l);
    assert_ran(l, "of_v show");
    assert_seen(l, "show", "3");
}

static hd_status make_child(lab_node *self, hd_tx *tx) {
    hd_status status = lab_tx_put(self, tx, "maker", lab_tx_number(self, tx, "n"));
    if (self->runs == 1) lab_add(l, .name = "child", .reads = "m");
    return status;
}
static void family(void) {
    lab_add(l, .name = "maker", .body = make_child);
    lab_effect(l, "show", "maker child");
}

/* C304: who creates nodes runs, to create them again; they do not. */
static void a_creator_runs_and_its_children_do_not(void **state) {
    lab_set(l, "n", 3);
    lab_set(l, "m", 4);
    begin(family);
    settle();
    lab_ran(l);
    restart();
    lab_settle(l);
    assert_ran(l, "maker show");
    assert_seen(l, "show", "3 4");
    lab_set(l, "m", 5);
    lab_settle(l);
    assert_ran(l, "child show");
}

/* Another runtime's change of a document that a resumed node reads, and nobody has loaded here. */
static void a_change_of_an_unread_document_is_noticed(void **state) {
    lab_set_json(l, "doc", "{\"left\": 1, \"right\": 2}");
    begin(siblings);
    settle();
    lab_ran(l);
    restart();
    lab_settle(l);
    assert_ran(l, "show");
    lab_on(l, "b");
    lab_set(l, "doc#/left", 7);
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_ran(l, "left show");
    assert_seen(l, "show", "7 2");
    lab_remove(l, "doc#/right");
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_ran(l, "right show");
}

/* ---- outputs that others have written */

static void mender(void) {
    lab_compute(l, "plain", "n", NULL);
    lab_compute(l, "mended", "n", NULL);
    lab_add(l, .name = "inner", .reads = "n", .output = "doc#/inner");
    lab_effect(l, "show", "plain mended inner doc#/inner");
}

/* C295: a node whose output another writer has changed while the program was down runs; the others do not.
 * A change beside the output is none, nor is one that was taken back. */
static void an_output_that_was_overwritten_is_made_again(void **state) {
    lab_set(l, "n", 3);
    begin(mender);
    settle();
    lab_ran(l);
    lab_on(l, "b");
    stop();
    lab_on(l, "b");
    lab_set(l, "plain", 7);
    settle();
    lab_set(l, "plain", 3);
    lab_set(l, "mended", 7);
    lab_set(l, "doc#/other", 7);
    settle();
    again();
    settle();
    assert_ran(l, "mended show");
    assert_seen(l, "show", "3 3 - 3");
    stop();
    lab_on(l, "b");
    lab_remove(l, "mended");
    lab_remove(l, "doc#/inner");
    settle();
    again();
    settle();
    assert_ran(l, "mended inner show");
    assert_seen(l, "show", "3 3 - 3");
    lab_set(l, "n", 4);
    settle();
    assert_seen(l, "show", "4 4 - 4");
}

/* ---- late: documents arrive when the next answers come */

static char causes_told[128];
static hd_status tell_causes(lab_node *self, hd_tx *tx) {
    hd_cell causes[4];
    double n = lab_tx_number(self, tx, "n"), m = lab_tx_number(self, tx, "m");
    size_t count = hd_tx_causes(tx, causes, 4);
    *causes_told = 0;
    for (size_t i = 0; i < count && i < 4; i++) {
        size_t length = strlen(causes_told);
        hd_cell_print(lab_rt(self->at), causes[i], causes_told + length,
                      sizeof causes_told - length);
    }
    return lab_tx_put(self, tx, "sum", n + m);
}

static void sum_of_two(void) {
    lab_add(l, .name = "sum", .declares = "n m", .body = tell_causes);
    lab_effect(l, "show", "sum");
    lab_effect(l, "other", "n");
}

static int open_late(void **state) {
    l = lab_start_late();
    return 0;
}

/* C295, I1: that a document arrives for somebody else is no change: who was clean without it stays so, and
 * when it does run that was not the cause. */
static void an_arrival_is_no_change(void **state) {
    lab_set(l, "n", 3);
    lab_set(l, "m", 1);
    begin(sum_of_two);
    settle();
    lab_ran(l);
    lab_on(l, "b");
    restart();
    lab_settle(l);
    assert_seen(l, "show", "4");
    assert_seen(l, "other", "3");
    assert_int_equal(lab_find(l, "sum")->runs, 0);
    assert_true(lab_is_clean(l, "sum"));
    lab_set(l, "m", 2);
    lab_settle(l);
    assert_string_equal(causes_told, "main/m");
    assert_seen(l, "show", "5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(another_output_far_below_runs),
        S(nothing_runs_that_need_not),
        S(a_killed_program_resumes_as_well),
        S(a_change_while_down_runs_its_readers),
        cmocka_unit_test(without_changes_c301_fails),
        S(rows_that_cannot_be_read_make_everything_fresh),
        S(an_equal_result_stops_the_wave),
        S(siblings_on_one_document_stay_clean),
        S(a_run_without_a_change_is_kept),
        S(rows_go_alone_when_things_are_quiet),
        S(another_version_runs_again),
        S(without_a_name_nothing_is_kept),
        S(a_failure_is_not_tried_again),
        S(a_stale_node_waits_for_demand),
        S(a_materialiser_catches_up),
        S(another_space_counts),
        S(gates_are_restored),
        S(a_cancelled_node_is_forgotten),
        S(a_node_that_comes_back_is_kept),
        S(a_principal_has_rows_of_its_own),
        S(volatile_documents_make_no_rows),
        S(a_creator_runs_and_its_children_do_not),
        S(a_change_of_an_unread_document_is_noticed),
        S(an_output_that_was_overwritten_is_made_again),
        cmocka_unit_test_setup_teardown(an_arrival_is_no_change, open_late, spec_close),
    };
    LAB_EVERYWHERE(tests);
}
