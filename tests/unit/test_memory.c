/* test_memory.c -- the store in memory: who shares it, what it keeps, what it lets go. */
#include "lab_judge.h"
#include "store/admit.h"
#include "store/memory.h"
#include "store/runtime.h"
#include "store/tx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static lab *l;

static int open_lab(void **state) {
    l = lab_open_with((lab_options){ .kind = LAB_MEMORY });
    return 0;
}
static int close_lab(void **state) {
    lab_close(l);
    return 0;
}

/* A store with one runtime skips what only serves others; it must not be too late when a second one
 * comes. */
static void what_was_read_alone_is_in_conflict_with_a_newcomer(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    lab_do(a, "set n 1");
    lab_pump(a);
    lab_do(a, "get n; set copy 1");
    lab_runtime *b = lab_runtime_open(l, "b");
    lab_do(b, "get copy; set n 2"); /* one of the two must have seen the other */
    lab_pump(b);
    lab_settle(l);
    lab_judge(l, false);
}

static void a_runtime_that_leaves_does_not_hold_the_others_up(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
    lab_read_cell(b, "n");
    for (int i = 0; i < 100; i++) {
        lab_dof(a, "set n %d", i);
        lab_pump(a);
    }
    lab_runtime_close(b); /* has not heard of any of it */
    lab_runtime *c = lab_runtime_open(l, "c");
    assert_cell(c, "n", "99");
    lab_do(a, "set n 100");
    lab_settle(l);
    assert_cell(c, "n", "100");
}

static void memory_does_not_grow_with_history(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
    lab_read_cell(b, "n");
    size_t after_warm_up = 0;
    for (int i = 0; i < 20000; i++) {
        assert_status(hd_write(lab_rt(a), lab_cell(a, "n"), hd_int(NULL, i)), HD_OK);
        assert_status(hd_runtime_pump(lab_rt(a)), HD_OK);
        assert_status(hd_runtime_pump(lab_rt(b)), HD_OK);
        if (i == 10000) after_warm_up = lab_env_bytes(lab_world(l));
    }
    assert_int_equal(lab_env_bytes(lab_world(l)), after_warm_up);
}

static void a_claim_older_than_the_history_kept_is_told_to_resync(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a"), *b = lab_runtime_open(l, "b");
    lab_write(a, "n", "{\"x\":0}");
    lab_settle(l);
    assert_cell(b, "n#/x", "0");
    lab_fate *old = lab_do(b, "get n#/y; set copy 1");
    for (int i = 0; i < 5000; i++) {
        hd_tx *tx;
        assert_status(hd_tx_begin(lab_rt(a), &tx), HD_OK);
        assert_status(hd_tx_set_int(tx, lab_cell(a, "n#/x"), i + 1), HD_OK);
        assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
        assert_status(hd_runtime_pump(lab_rt(a)), HD_OK);
    }
    lab_pump(b);
    assert_fate(old, HD_RESYNC);
    assert_int_equal(hd_status_class(HD_RESYNC), HD_CLASS_STALE);
    lab_fate *again = lab_do(b, "get n#/y; set copy 1");
    lab_pump(b);
    assert_fate(again, HD_OK);
}

static void a_store_of_ones_own_is_closed_with_its_runtime(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *rt;
    hd_options options = { .env = lab_env_of(world) };
    assert_status(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_status(hd_write_json(rt, hd_cell_at(rt, "main/n"), "[1,{\"a\":2}]"), HD_OK);
    assert_int_equal(hd_runtime_deadline(rt), UINT64_MAX); /* nobody to tell: nothing to do */
    assert_status(hd_close(rt), HD_OK);
    lab_env_close(world);
}

static void a_read_only_runtime_does_not_write(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    lab_write(a, "n", "1");
    lab_settle(l);
    hd_runtime *rt;
    hd_options options = { .env = lab_env_of(lab_world(l)),
                           .memory = lab_memory(l),
                           .read_only = true };
    assert_status(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_status(hd_write_json(rt, hd_cell_at(rt, "main/n"), "2"), HD_READ_ONLY);
    hd_tx *tx;
    assert_status(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, hd_cell_at(rt, "main/n")), 0), 1);
    assert_status(hd_tx_append(tx, hd_cell_at(rt, "main/l"), hd_null()), HD_READ_ONLY);
    assert_status(hd_tx_remove(tx, hd_cell_at(rt, "main/n")), HD_READ_ONLY);
    hd_tx_abort(tx);
    assert_status(hd_close(rt), HD_OK);
}

static void count_post(hd_runtime *rt, void *ctx) { ++*(int *)ctx; }

static void posts_run_in_the_next_pump_in_order(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    static int count;
    count = 0;
    for (int i = 0; i < 3; i++)
        assert_status(hd_runtime_post(lab_rt(a), count_post, &count), HD_OK);
    assert_int_equal(hd_runtime_deadline(lab_rt(a)), 0);
    assert_int_equal(count, 0);
    lab_pump(a);
    assert_int_equal(count, 3);
    assert_status(hd_runtime_post(lab_rt(a), count_post, &count), HD_OK); /* run by close */
}

static void checkpoints_of_memory_do_nothing(void **state) {
    lab_runtime *a = lab_runtime_open(l, "a");
    assert_status(hd_store_checkpoint(lab_rt(a), NULL), HD_OK);
    assert_status(hd_store_prune(lab_rt(a), NULL), HD_OK);
    assert_status(hd_store_vacuum(lab_rt(a), NULL), HD_OK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(what_was_read_alone_is_in_conflict_with_a_newcomer),
        T(a_runtime_that_leaves_does_not_hold_the_others_up),
        T(memory_does_not_grow_with_history),
        T(a_claim_older_than_the_history_kept_is_told_to_resync),
        T(a_store_of_ones_own_is_closed_with_its_runtime),
        T(a_read_only_runtime_does_not_write),
        T(posts_run_in_the_next_pump_in_order),
        T(checkpoints_of_memory_do_nothing),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
