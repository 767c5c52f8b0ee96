/* test_reads.c -- area F: read sets and their deltas. */
#include "lab_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* How many entries stand in the reader list of a cell's place. */
static uint32_t readers_of(lab *l, const char *cell) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", strchr(cell, '/') ? "" : "main/", cell);
    return lab_readers(l, full);
}

static uint64_t walked(lab *l) {
    hd_store_stats stats;
    hd_runtime_store_stats(lab_runtime_now(l), &stats);
    return stats.walked;
}

/* Reads "which", then the cell that it names. */
static hd_status read_the_one_named(lab_node *self, hd_tx *tx) {
    hd_value which = hd_tx_get(tx, lab_cell(self->at, "which"));
    double v = lab_tx_number(self, tx, hd_value_as_text(which, "x"));
    return self->spec.effect ? HD_OK : lab_tx_put(self, tx, self->spec.name, v);
}

/* C126: a read set whose only difference is the scope moves to the new scope. */
static void the_scope_is_part_of_what_is_read(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "which", "\"main/n\"");
    lab_add(l, .name = "show", .effect = true, .body = read_the_one_named);
    lab_settle(l);
    assert_int_equal(readers_of(l, "main/n"), 1);

    lab_set_json(l, "which", "\"main@user/n\"");
    lab_settle(l);
    assert_ran(l, "show show");
    assert_int_equal(readers_of(l, "main/n"), 0);
    assert_int_equal(readers_of(l, "main@user/n"), 1);

    lab_set(l, "main/n", 5);
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "main@user/n", 5);
    lab_settle(l);
    assert_ran(l, "show");
    lab_close(l);
}

/* C127: a node moved from one document to another; cancelling it leaves nothing of either. */
static void cancelling_removes_what_is_registered_now(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "which", "\"x\"");
    lab_add(l, .name = "show", .effect = true, .body = read_the_one_named);
    lab_settle(l);
    assert_int_equal(readers_of(l, "x"), 1);
    lab_set_json(l, "which", "\"y\"");
    lab_settle(l);
    assert_int_equal(readers_of(l, "x"), 0);
    assert_int_equal(readers_of(l, "y"), 1);

    lab_cancel(l, "show");
    assert_int_equal(readers_of(l, "x") + readers_of(l, "y") + readers_of(l, "which"), 0);
    lab_ran(l);
    lab_set(l, "x", 1);
    lab_set(l, "y", 1);
    lab_settle(l);
    assert_ran(l, "");
    lab_close(l);
}

/* C128: when the last reader of a document leaves, its entry is gone. */
static void the_last_reader_takes_the_entry_along(void **state) {
    lab *l = lab_start();
    lab_effect(l, "one", "n n#/a ~n#/b");
    lab_effect(l, "two", "n");
    lab_settle(l);
    assert_int_equal(readers_of(l, "n"), 2);
    lab_cancel(l, "one");
    assert_int_equal(readers_of(l, "n"), 1);
    assert_int_equal(readers_of(l, "n#/a") + readers_of(l, "n#/b"), 0);
    lab_cancel(l, "two");
    assert_int_equal(readers_of(l, "n"), 0);
    lab_close(l);
}

/* if a then b else c */
static hd_status choose(lab_node *self, hd_tx *tx) {
    double a = lab_tx_number(self, tx, "a");
    return lab_tx_put(self, tx, self->spec.name, lab_tx_number(self, tx, a != 0 ? "b" : "c"));
}

/* C130: after a choice has gone the other way, only the branch that was taken counts. */
static void the_branch_not_taken_does_not_count(void **state) {
    lab *l = lab_start();
    lab_set(l, "a", 1);
    lab_set(l, "b", 10);
    lab_set(l, "c", 20);
    lab_add(l, .name = "chosen", .body = choose);
    lab_effect(l, "show", "chosen");
    lab_settle(l);
    assert_seen(l, "show", "10");
    lab_ran(l);

    lab_set(l, "c", 21);
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "a", 0);
    lab_settle(l);
    assert_ran(l, "chosen show");
    lab_set(l, "b", 11);
    lab_settle(l);
    assert_ran(l, "");
    assert_true(lab_is_clean(l, "chosen"));
    lab_set(l, "c", 22);
    lab_settle(l);
    assert_ran(l, "chosen show");
    assert_seen(l, "show", "22");
    lab_close(l);
}

/* C131: a computation that changed its source follows the new one and forgets the old one. */
static void a_changed_source_is_followed(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "which", "\"a\"");
    lab_set(l, "a", 1);
    lab_set(l, "b", 2);
    lab_add(l, .name = "copy", .body = read_the_one_named);
    lab_effect(l, "show", "copy");
    lab_settle(l);
    lab_set_json(l, "which", "\"b\"");
    lab_settle(l);
    assert_seen(l, "show", "2");
    lab_ran(l);

    lab_set(l, "a", 3);
    assert_true(lab_is_clean(l, "copy"));
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "b", 4);
    assert_false(lab_is_clean(l, "copy"));
    lab_settle(l);
    assert_ran(l, "copy show");
    assert_seen(l, "show", "4");
    lab_close(l);
}

/* C132: a deep read covers what lies below it; shallow reads are dropped only if they are the same. */
static void a_deep_read_covers_what_is_below(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "n", "{\"a\":{\"b\":1},\"c\":2}");
    lab_add(l, .name = "deep", .reads = "n#/a n#/a/b n#/a n#/a/b/x", .effect = true,
            .declares = "-");
    lab_add(l, .name = "shallow", .reads = "~n ~n#/a ~n ~n#/a/b", .effect = true, .declares = "-");
    lab_settle(l);
    assert_int_equal(lab_info(l, "deep").reads, 1);
    assert_int_equal(lab_info(l, "shallow").reads, 3);
    lab_ran(l);

    lab_set(l, "n#/a/b", 5);
    lab_settle(l);
    assert_ran(l, "deep shallow");
    assert_int_equal(lab_info(l, "deep").reads, 1);
    lab_set(l, "n#/c", 5);
    lab_settle(l);
    assert_ran(l, "");
    lab_close(l);
}

/* C133: a write concerns readers at, above and below its path, and none beside it. */
static void a_write_concerns_its_path_and_nothing_beside(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "n", "{\"a\":{\"b\":{\"c\":1},\"x\":2},\"z\":3}");
    lab_effect(l, "root", "n");
    lab_effect(l, "above", "n#/a");
    lab_effect(l, "at", "n#/a/b");
    lab_effect(l, "below", "n#/a/b/c");
    lab_effect(l, "beside", "n#/a/x");
    lab_effect(l, "far", "n#/z");
    lab_effect(l, "elsewhere", "m#/a/b");
    lab_settle(l);
    lab_ran(l);
    lab_set_json(l, "n#/a/b", "{\"c\":7}");
    lab_settle(l);
    assert_ran(l, "root above at below");
    lab_close(l);
}

/* Visited index entries of one write, with so many readers of one member each. */
static uint64_t visits_with(int readers) {
    lab *l = lab_start();
    char name[32], cell[32], json[16384], *end = json;
    end += snprintf(end, 8, "{");
    for (int i = 0; i < readers; i++) end += snprintf(end, 32, "%s\"k%d\":0", i ? "," : "", i);
    snprintf(end, 8, "}");
    lab_set_json(l, "n", json);
    for (int i = 0; i < readers; i++) {
        snprintf(name, sizeof name, "r%d", i);
        snprintf(cell, sizeof cell, "n#/k%d", i);
        lab_effect(l, name, cell);
    }
    lab_settle(l);
    lab_ran(l);
    uint64_t before = walked(l);
    lab_set(l, "n#/k7", 1);
    uint64_t visits = walked(l) - before;
    lab_settle(l);
    assert_ran(l, "r7");
    lab_close(l);
    return visits;
}

/* C134: one member written among many that are read: no more visits for 1,024 readers than for
 * 16. */
static void a_write_does_not_visit_the_other_members(void **state) {
    assert_true(visits_with(1024) <= visits_with(16));
}

/* C135: once all readers are gone, a match visits what it visits in an empty index. */
static void removed_readers_cost_nothing(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "n", "{\"a\":1,\"b\":2}");
    uint64_t start = walked(l);
    lab_set(l, "n#/a", 2);
    uint64_t empty = walked(l) - start;
    lab_effect(l, "one", "n#/a");
    lab_effect(l, "two", "n");
    lab_settle(l);
    lab_cancel(l, "one");
    lab_cancel(l, "two");
    lab_settle(l);
    start = walked(l);
    lab_set(l, "n#/a", 3);
    assert_int_equal(walked(l) - start, empty);
    lab_close(l);
}

/* C136: a key that contains a separator is one segment. */
static void a_separator_in_a_key_is_no_separator(void **state) {
    lab *l = lab_start();
    lab_set_json(l, "n", "{\"a/b\":1,\"a\":{\"b\":1}}");
    lab_effect(l, "one", "n#/a~1b");
    lab_effect(l, "two", "n#/a/b");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n#/a~1b", 2);
    lab_settle(l);
    assert_ran(l, "one");
    lab_set(l, "n#/a/b", 2);
    lab_settle(l);
    assert_ran(l, "two");
    lab_close(l);
}

/* P6: a run that reads what it read before applies no delta. */
static void an_unchanged_read_set_is_no_delta(void **state) {
    lab *l = lab_start();
    lab_compute(l, "sum", "a b", NULL);
    lab_effect(l, "show", "sum");
    lab_settle(l);
    uint64_t before = lab_stats(l).read_deltas;
    for (int i = 1; i <= 5; i++) {
        lab_set(l, i & 1 ? "a" : "b", i);
        lab_settle(l);
    }
    assert_int_equal(lab_stats(l).read_deltas, before);
    lab_close(l);
}

/* It takes what is not there yet for 0, and says that all is well. */
static hd_status does_not_look_at_the_status(lab_node *self, hd_tx *tx) {
    double v = lab_tx_number(self, tx, "n");
    return self->spec.effect ? HD_OK : lab_tx_put(self, tx, self->spec.name, v);
}

/* 7.3: a run that met a document which has not arrived yet does not count, whatever the body returns
 * (hd_action_fn). */
static void a_run_that_missed_a_document_does_not_count(void **state) {
    lab *l = lab_start_late();
    lab_on(l, "b");
    lab_set(l, "n", 3);
    lab_settle(l);
    lab_runtime_close(lab_on(l, "b"));
    lab_on(l, "a");
    lab_add(l, .name = "copy", .declares = "-", .body = does_not_look_at_the_status);
    lab_effect(l, "show", "copy");
    lab_settle(l);
    assert_seen(l, "show", "3");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_seen(l, "show", "4");
    lab_close(l);
}

static hd_run *waiting;
static hd_status suspends_though_it_missed_something(lab_node *self, hd_tx *tx) {
    hd_status status = does_not_look_at_the_status(self, tx);
    if (self->runs > 1 || (status && status != HD_PENDING)) return status;
    return hd_tx_suspend(tx, &waiting) ? HD_NOMEM : HD_PENDING;
}

/* 7.3: the same for a run that is suspended, and ends after the document has arrived. */
static void also_if_the_run_was_suspended_meanwhile(void **state) {
    lab *l = lab_start_late();
    lab_on(l, "b");
    lab_set(l, "n", 3);
    lab_set(l, "copy", 1);
    lab_settle(l);
    lab_runtime_close(lab_on(l, "b"));
    lab_on(l, "a");
    lab_add(l, .name = "copy", .declares = "-", .body = suspends_though_it_missed_something);
    lab_effect(l, "show", "copy");
    lab_settle(l);
    assert_int_equal(lab_find(l, "copy")->runs, 1);
    hd_run_resume(waiting, HD_OK);
    lab_settle(l);
    assert_seen(l, "show", "3");
    lab_close(l);
}

static double as_it_is(const double *in) { return in[0]; }

/* I7: a computation was resumed from its row, and what it had read is not loaded. Another writer changes that and folds
 * the log. Then it is loaded here, as it is now, by a write that changes nothing: the computation runs. */
static void what_is_loaded_in_a_later_state_is_a_change(void **state) {
    lab *l = lab_start();
    lab_set(l, "m", 1);
    lab_add(l, .name = "copy", .reads = "m", .formula = as_it_is, .version = "1");
    lab_effect(l, "show", "copy");
    lab_settle(l);
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    lab_add(l, .name = "copy", .reads = "m", .formula = as_it_is, .version = "1");
    lab_effect(l, "show", "copy");
    lab_settle(l);
    lab_runtime *b = lab_on(l, "b");
    lab_do(b, "set m 2");
    lab_pump(b);
    hd_store_checkpoint(lab_rt(b), NULL);
    lab_on(l, "a");
    lab_set(l, "m", 2);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_seen(l, "show", "2");
    lab_close(l);
}

/* S10: a transaction that missed a document commits nothing (hd_tx_commit). */
static void a_transaction_that_missed_a_document_commits_nothing(void **state) {
    lab *l = lab_start_late();
    lab_on(l, "b");
    lab_set(l, "n", 3);
    lab_settle(l);
    lab_runtime_close(lab_on(l, "b"));
    lab_on(l, "a");
    hd_runtime *rt = lab_runtime_now(l);
    hd_tx *tx;
    lab_set(l, "m", 1);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_value_status(hd_tx_get(tx, hd_cell_at(rt, "main/n"))), HD_PENDING);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/m"), 2);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_PENDING);
    assert_json(l, "m", "1");
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scope_is_part_of_what_is_read),
        cmocka_unit_test(cancelling_removes_what_is_registered_now),
        cmocka_unit_test(the_last_reader_takes_the_entry_along),
        cmocka_unit_test(the_branch_not_taken_does_not_count),
        cmocka_unit_test(a_changed_source_is_followed),
        cmocka_unit_test(a_deep_read_covers_what_is_below),
        cmocka_unit_test(a_write_concerns_its_path_and_nothing_beside),
        cmocka_unit_test(a_write_does_not_visit_the_other_members),
        cmocka_unit_test(removed_readers_cost_nothing),
        cmocka_unit_test(a_separator_in_a_key_is_no_separator),
        cmocka_unit_test(an_unchanged_read_set_is_no_delta),
        cmocka_unit_test(a_run_that_missed_a_document_does_not_count),
        cmocka_unit_test(also_if_the_run_was_suspended_meanwhile),
        cmocka_unit_test(what_is_loaded_in_a_later_state_is_a_change),
        cmocka_unit_test(a_transaction_that_missed_a_document_commits_nothing),
    };
    LAB_EVERYWHERE(tests);
}
