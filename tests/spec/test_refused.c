/* test_refused.c -- a store that refuses everything for good: nodes end, and so does the runtime. */
#include "lab_line.h"

#include "spec.h"

static hd_status put_one(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "d#/zero");
    hd_status status = lab_tx_put(self, tx, "one", 1);
    return status ? status : lab_tx_put(self, tx, "side", 1);
}

/* While d is not there, d#/zero cannot be reached. The node `two` makes d, so `one` runs again, which `two` reads; and
 * both commits are refused. Close gives up. */
static void a_runtime_whose_commits_are_all_refused_can_be_closed(void **state) {
    lab_on(l, "b");
    lab_on(l, "a");
    lab_catch(l);
    lab_add(l, .name = "one", .body = put_one, .side_outputs = "side", .declares = "-");
    lab_add(l, .name = "two", .reads = "one", .output = "d#/two");
    lab_effect(l, "show", "d#/two");
    lab_runtime_drop(lab_on(l, "a"));
    lab_on(l, "b");
    assert_json(l, "d", "-");
}

static uint64_t seals_of(hd_runtime *rt) {
    hd_store_stats stats;
    hd_runtime_store_stats(rt, &stats);
    return stats.seals;
}

static hd_status put_same(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "x");
    return lab_tx_put(self, tx, "y", 1);
}

/* The node `same` has run, and its output is as before: its row alone is to be stored. While `one` and `two` wait for
 * their retries the row, which would be refused again, is not sent again with each verdict. */
static void a_row_that_was_refused_waits_for_a_change(void **state) {
    lab_on(l, "b");
    lab_on(l, "a");
    lab_catch(l);
    lab_add(l, .name = "same", .body = put_same, .output = "y");
    lab_effect(l, "see", "y");
    lab_settle(l);
    assert_int_equal(hd_runtime_sync(lab_rt(lab_on(l, "a"))), HD_OK);
    lab_set(l, "x", 5);
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a");
    lab_line_drop(lab_line_of(a));
    lab_add(l, .name = "one", .body = put_one, .side_outputs = "side", .declares = "-");
    lab_add(l, .name = "two", .reads = "one", .output = "d#/two");
    lab_effect(l, "show", "d#/two");
    uint64_t before = seals_of(lab_rt(a));
    (void)hd_runtime_sync(lab_rt(a));
    assert_true(seals_of(lab_rt(a)) - before <= 15); /* there are ten retries in a row */
    lab_runtime_close(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_runtime_whose_commits_are_all_refused_can_be_closed),
        S(a_row_that_was_refused_waits_for_a_change),
    };
    LAB_EVERYWHERE(tests);
}
