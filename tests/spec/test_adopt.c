/* test_adopt.c -- two runtimes have the same nodes: what one has run the other need not (C313). */
#include "lab_inside.h"

#include "spec.h"

static hd_runtime *rt(void) { return lab_runtime_now(l); }

/* One of them alone goes on until it has nothing left, and all that it has to say is stored. */
static void only(const char *runtime) {
    lab_on(l, runtime);
    hd_runtime_settle(rt());
    hd_runtime_sync(rt());
}
/* The same for one who first hears what others have done. */
static void hears(const char *runtime) {
    lab_on(l, runtime);
    lab_hear(lab_on(l, runtime));
    only(runtime);
}

static const char *version;

/* The same nodes on each, and an effect of its own. */
static void chain(const char *runtime) {
    lab_on(l, runtime);
    lab_add(l, .name = "double", .reads = "n n", .version = version);
    lab_add(l, .name = "plus", .reads = "double m", .version = version);
    lab_effect(l, runtime, "plus");
}

/* B goes first, so that names mean the nodes of A. Both are settled. */
static void both_have(const char *version_of_a) {
    version = "1";
    lab_set(l, "n", 3);
    lab_set(l, "m", 1);
    chain("b");
    lab_settle(l);
    version = version_of_a;
    chain("a");
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    lab_ran(l);
}

/* B changes n and runs what follows, and A has heard nothing of it so far. */
static void b_runs(void) {
    lab_on(l, "b");
    lab_set(l, "n", 4);
    only("b");
    assert_ran(l, "double plus b");
    lab_on(l, "a");
    lab_advance_ms(l, 100);
}

/* C313: outputs and rows arrive together: nothing but the effect runs here. */
static void what_another_has_run_is_adopted(void **state) {
    both_have("1");
    b_runs();
    hears("a");
    assert_ran(l, "a");
    assert_seen(l, "a", "9");
    assert_true(lab_is_clean(l, "double"));
    assert_true(lab_is_clean(l, "plus"));
    lab_set(l, "n", 5); /* it has its edges */
    only("a");
    assert_ran(l, "double plus a");
    assert_seen(l, "a", "11");
}

/* C313: also by a node that has never run here: its reads are those of the other's run. */
static void a_node_that_never_ran_is_adopted(void **state) {
    version = "1";
    lab_set(l, "n", 3);
    lab_set(l, "m", 1);
    lab_settle(l);
    lab_on(l, "b");
    lab_on(l, "a");
    lab_add(l, .name = "double", .reads = "n n", .version = version);
    chain("b");
    only("b");
    assert_ran(l, "double plus b");
    lab_advance_ms(l, 100);
    hears("a");
    lab_effect(l, "a", "double");
    only("a");
    assert_ran(l, "a");
    assert_seen(l, "a", "6");
    lab_set(l, "n", 4);
    only("a");
    assert_ran(l, "double a");
}

/* C313: another code: it runs. */
static void another_code_is_not_adopted(void **state) {
    both_have("2");
    b_runs();
    hears("a");
    assert_ran(l, "double plus a");
    assert_seen(l, "a", "9");
}

/* A row that another code has replaced meanwhile is written in full, not proved anew. */
static void a_replaced_row_is_written_again(void **state) {
    both_have("2");
    lab_runtime_close(lab_on(l, "a"));
    lab_advance_ms(l, 100);
    hears("b");
    lab_ran(l);
    lab_set(l, "n", 4);
    only("b");
    assert_ran(l, "double plus b");
    lab_runtime_close(lab_on(l, "b"));
    version = "1";
    chain("b");
    only("b");
    assert_ran(l, "b");
}

static double is_positive(const double *in) { return in[0] > 0; }
static void sign(const char *runtime, const char *version_there) {
    lab_on(l, runtime);
    lab_add(l, .name = "sign", .reads = "n", .formula = is_positive, .version = version_there);
    lab_effect(l, runtime, "sign");
}

/* Its value is as before: the row goes alone, once it has been quiet. */
static void goes_alone(const char *runtime) {
    only(runtime);
    lab_advance_ms(l, 1100);
    only(runtime);
}

/* B says that its row holds anew, and does not know that another code has replaced it meanwhile. In
 * the store is now the other's row: nothing that B has seen speaks for that. */
static void a_proof_does_not_vouch_for_another_code(void **state) {
    if (!lab_is_shared(l)) return; /* a store of one's own hears of derived state when one closes */
    lab_set(l, "n", 3);
    sign("b", "1");
    only("b");
    sign("a", "2");
    only("a");
    lab_advance_ms(l, 100);
    hears("b");
    lab_set(l, "n", 4);
    goes_alone("b");
    lab_hold(lab_on(l, "b"));
    lab_set(l, "n", 5);
    lab_turn(l);
    lab_seal(l);
    hears("a");
    goes_alone("a");
    lab_mend(lab_on(l, "b"));
    lab_send(lab_on(l, "b"));
    lab_runtime_drop(lab_on(l, "b"));
    lab_runtime_drop(lab_on(l, "a"));
    lab_advance_ms(l, 100);
    lab_ran(l);
    sign("c", "2");
    only("c");
    assert_ran(l, "sign c");
}

static double half_by_one(const double *in) { return (int)in[0] / 2 * 10 + 1; }
static double half_by_two(const double *in) { return (int)in[0] / 2 * 10 + 2; }
static void half(const char *runtime, const char *version_there) {
    lab_on(l, runtime);
    lab_add(l, .name = "half", .reads = "n", .version = version_there,
            .formula = *version_there == '1' ? half_by_one : half_by_two);
    lab_effect(l, runtime, "half");
}

/* I7: version 2 has run, with the result that was there before; then version 1 has written its own. No row
 * of version 2 stands beside that. */
static void a_row_does_not_stand_beside_outputs_of_another_version(void **state) {
    lab_set(l, "n", 3);
    half("b", "2");
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l); /* not for so long that the row of version 2 goes alone */
    half("a", "1");
    lab_settle(l);
    assert_seen(l, "b", "11");
    lab_runtime_close(lab_on(l, "a"));
    lab_runtime_close(lab_on(l, "b"));
    lab_ran(l);
    half("b", "2");
    only("b");
    assert_non_null(strstr(lab_ran(l), "half"));
    assert_seen(l, "b", "12");
}

/* I7: the same, where the row of version 2 is on its way when version 1 writes. */
static void a_row_on_its_way_does_not_replace_that_of_another_version(void **state) {
    if (!lab_is_shared(l)) return;
    lab_set(l, "n", 3);
    lab_set(l, "half", 12);
    lab_settle(l);
    half("b", "2");
    lab_turn(l);
    lab_hold(lab_on(l, "b"));
    lab_seal(l);
    half("a", "1");
    hears("a");
    assert_seen(l, "a", "11");
    lab_mend(lab_on(l, "b"));
    lab_send(lab_on(l, "b"));
    lab_hear(lab_on(l, "b"));
    lab_runtime_drop(lab_on(l, "b"));
    lab_runtime_drop(lab_on(l, "a"));
    lab_advance_ms(l, 100);
    lab_ran(l);
    half("c", "2");
    only("c");
    assert_ran(l, "half c");
    assert_seen(l, "c", "12");
}

/* C313: something that it reads has been written here, and the other did not know. */
static void a_pending_write_to_what_it_reads_makes_it_run(void **state) {
    both_have("1");
    b_runs();
    lab_set(l, "m", 2);
    hears("a");
    assert_ran(l, "plus a");
    assert_seen(l, "a", "10");
}

/* C313: something that it reads has changed after the other's run. */
static void a_newer_change_makes_it_run(void **state) {
    both_have("1");
    b_runs();
    lab_on(l, "c");
    lab_set(l, "m", 5);
    only("c");
    lab_advance_ms(l, 100);
    hears("a");
    assert_ran(l, "plus a");
    assert_seen(l, "a", "13");
}

/* C313: its output is written here, and that has no verdict yet: it runs. */
static void a_pending_write_to_its_output_makes_it_run(void **state) {
    both_have("1");
    b_runs();
    lab_set(l, "plus", 77);
    hears("a");
    assert_non_null(strstr(lab_ran(l), "plus"));
    assert_seen(l, "a", "9");
}

/* 9.3: storing rows is never needed. A runtime ends whose store takes no rows, also if its runs have changed nothing
 * since it was opened. */
static void a_runtime_whose_rows_are_refused_ends(void **state) {
    both_have("1");
    lab_runtime_close(lab_on(l, "a"));
    lab_runtime_close(lab_on(l, "b"));
    version = "2"; /* the results are the same, and only rows are to be written */
    chain("c");
    lab_runtime_drop(lab_on(l, "c"));
    assert_ran(l, "double plus c");
}

static hd_run *waiting;
static bool suspends;
static hd_status slow(lab_node *self, hd_tx *tx) {
    hd_status status = lab_tx_put(self, tx, "slow", lab_tx_number(self, tx, "n"));
    if (!status && suspends) status = hd_tx_suspend(tx, &waiting) ? HD_NOMEM : HD_PENDING;
    return status;
}
static void slow_chain(const char *runtime) {
    lab_on(l, runtime);
    lab_add(l, .name = "slow", .body = slow, .version = "1");
    lab_effect(l, runtime, "slow");
}

/* C313: it is running when the other's result arrives: that run is not taken from it. */
static void a_running_node_goes_on(void **state) {
    suspends = false;
    lab_set(l, "n", 3);
    slow_chain("b");
    slow_chain("a");
    lab_settle(l);
    lab_ran(l);
    suspends = true;
    lab_on(l, "a");
    lab_set(l, "n", 4);
    hd_runtime_pump(rt());
    hd_runtime_sync(rt());
    assert_ran(l, "slow");
    suspends = false;
    lab_advance_ms(l, 100);
    hears("b");
    assert_ran(l, "slow b");
    lab_advance_ms(l, 100);
    lab_hear(lab_on(l, "a"));
    hd_node_info info;
    hd_node_inspect(rt(), lab_find(l, "slow")->node, &info);
    assert_int_equal(info.why_not, HD_WHY_NOT_RUNNING);
    hd_run_resume(waiting, HD_OK);
    lab_settle(l);
    assert_true(lab_is_clean(l, "slow"));
    assert_seen(l, "a", "4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(what_another_has_run_is_adopted),
        S(a_node_that_never_ran_is_adopted),
        S(another_code_is_not_adopted),
        S(a_replaced_row_is_written_again),
        S(a_proof_does_not_vouch_for_another_code),
        S(a_row_does_not_stand_beside_outputs_of_another_version),
        S(a_row_on_its_way_does_not_replace_that_of_another_version),
        S(a_pending_write_to_what_it_reads_makes_it_run),
        S(a_newer_change_makes_it_run),
        S(a_pending_write_to_its_output_makes_it_run),
        S(a_runtime_whose_rows_are_refused_ends),
        S(a_running_node_goes_on),
    };
    LAB_EVERYWHERE(tests);
}
