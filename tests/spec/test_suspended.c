/* test_suspended.c -- suspended runs that write parts of documents, which change meanwhile. */
#include "spec.h"

/* Writes n into d#/mine before it is suspended. */
static hd_status put_and_suspend(lab_node *self, hd_tx *tx) {
    hd_run **run = self->data;
    hd_status status = lab_tx_put(self, tx, "d#/mine", lab_tx_number(self, tx, "n"));
    if (!status && self->runs == 1) status = hd_tx_suspend(tx, run);
    return status || self->runs > 1 ? status : HD_PENDING;
}

static hd_run *begin_slow(void) {
    hd_run *run = NULL;
    lab_set(l, "n", 1);
    lab_add(l, .name = "slow", .effect = true, .body = put_and_suspend, .data = &run);
    lab_turn(l);
    assert_non_null(run);
    return run;
}

/* S1: what is written into other parts of the document while the run is suspended stays. */
static void a_suspended_run_keeps_what_others_write_beside_it(void **state) {
    lab_set_json(l, "d", "{\"other\":1}");
    hd_run *run = begin_slow();
    lab_set(l, "d#/other", 2);
    lab_settle(l);
    lab_set(l, "d#/third", 3);
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    assert_int_equal(lab_find(l, "slow")->runs, 1);
    assert_json(l, "d", "{\"mine\":1,\"other\":2,\"third\":3}");
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    assert_json(l, "d", "{\"mine\":1,\"other\":2,\"third\":3}");
}

/* The same from another runtime. */
static void a_suspended_run_keeps_what_another_runtime_writes(void **state) {
    if (!lab_is_shared(l)) skip();
    lab_set_json(l, "d", "{\"other\":1}");
    lab_settle(l);
    hd_run *run = begin_slow();
    lab_on(l, "b");
    lab_json(l, "d");
    lab_settle(l);
    lab_set(l, "d#/other", 2);
    lab_settle(l);
    lab_on(l, "a");
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    assert_json(l, "d", "{\"mine\":1,\"other\":2}");
    lab_on(l, "b");
    assert_json(l, "d", "{\"mine\":1,\"other\":2}");
}

/* The write no longer fits what is there: the run does not count, and the next one finds it out. */
static void a_suspended_run_whose_write_no_longer_fits_runs_again(void **state) {
    lab_catch(l);
    hd_run *run = begin_slow();
    lab_set(l, "d", 5);
    lab_settle(l);
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    assert_int_equal(lab_find(l, "slow")->runs, 2);
    assert_string_equal(lab_failures(l), "slow HD_KIND");
    assert_json(l, "d", "5");
}

/* A write that changed nothing when it was made is made anew if the place has changed since. */
static void a_suspended_run_that_changed_nothing_writes_again(void **state) {
    lab_set_json(l, "d", "{\"mine\":1}");
    lab_settle(l);
    hd_run *run = begin_slow();
    lab_set(l, "d#/mine", 7);
    lab_settle(l);
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    assert_int_equal(lab_find(l, "slow")->runs, 2);
    assert_json(l, "d", "{\"mine\":1}");
}

/* A write that is made after the change, and repeats what is there then, is no reason to run again. */
static void a_suspended_run_may_repeat_what_was_written_meanwhile(void **state) {
    hd_run *run = begin_slow();
    lab_set_json(l, "e", "{\"part\":5}");
    lab_settle(l);
    assert_int_equal(lab_tx_put(lab_find(l, "slow"), hd_run_tx(run), "e#/part", 5), HD_OK);
    hd_run_resume(run, HD_OK);
    lab_settle(l);
    assert_int_equal(lab_find(l, "slow")->runs, 1);
    assert_json(l, "e", "{\"part\":5}");
    assert_json(l, "d", "{\"mine\":1}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_suspended_run_keeps_what_others_write_beside_it),
        S(a_suspended_run_keeps_what_another_runtime_writes),
        S(a_suspended_run_whose_write_no_longer_fits_runs_again),
        S(a_suspended_run_that_changed_nothing_writes_again),
        S(a_suspended_run_may_repeat_what_was_written_meanwhile),
    };
    LAB_EVERYWHERE(tests);
}
