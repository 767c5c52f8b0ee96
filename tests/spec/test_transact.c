/* test_transact.c -- hd_transact: run until it is accepted; and refusals that nobody asked about. */
#include "lab_sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <heddle/scheduler.h>

static lab *l;
static hd_runtime *a, *b;

static int open_two(void **state) {
    l = lab_start();
    lab_set(l, "n", 0);
    lab_settle(l);
    a = lab_runtime_now(l);
    lab_on(l, "b");
    b = lab_runtime_now(l);
    lab_on(l, "a");
    return 0;
}
static int close_two(void **state) {
    lab_close(l);
    return 0;
}
#define T(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)

/* ---- adding one, while the other runtime writes in between */

typedef struct adding {
    int runs;
    int overtaken; /* the other runtime writes during so many of the first runs */
    int taking_ms; /* and so much time passes meanwhile */
    hd_status answer;
} adding;

static void write_elsewhere(int n) {
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(b), &pool);
    assert_int_equal(hd_write(b, hd_cell_at(b, "main/n"), hd_int(pool, n)), HD_OK);
    assert_int_equal(hd_runtime_sync(b), HD_OK);
    hd_pool_close(pool);
}

static hd_status add_one(hd_tx *tx, void *ctx) {
    adding *w = ctx;
    hd_cell n = hd_cell_at(hd_tx_runtime(tx), "main/n");
    hd_value v = hd_tx_get(tx, n);
    if (hd_value_status(v)) return hd_value_status(v);
    w->runs++;
    if (w->runs <= w->overtaken) {
        write_elsewhere(w->runs * 100);
        if (w->taking_ms) lab_advance_ms(l, (uint64_t)w->taking_ms);
    }
    if (w->answer) return w->answer;
    return hd_tx_set_int(tx, n, hd_value_as_int(v, 0) + 1);
}

static void a_transaction_is_run_until_it_is_accepted(void **state) {
    adding w = { .overtaken = 3 };
    assert_int_equal(hd_transact(a, add_one, &w), HD_OK);
    assert_int_equal(w.runs, 4);
    assert_json(l, "n", "301");
    assert_int_equal(hd_runtime_sync(a), HD_OK); /* nothing was left unsaid */
}

static void what_is_accepted_at_once_runs_once(void **state) {
    adding w = { 0 };
    assert_int_equal(hd_transact(a, add_one, &w), HD_OK);
    assert_int_equal(w.runs, 1);
    hd_store_stats stats;
    hd_runtime_store_stats(a, &stats);
    assert_int_equal(stats.pending, 0); /* it is stored */
}

static void a_status_of_its_own_ends_it(void **state) {
    adding w = { .answer = HD_NOT_FOUND };
    assert_int_equal(hd_transact(a, add_one, &w), HD_NOT_FOUND);
    assert_int_equal(w.runs, 1);
    assert_json(l, "n", "0");
}

static void a_transient_failure_is_tried_ten_times(void **state) {
    adding w = { .answer = HD_TRANSIENT };
    assert_int_equal(hd_transact(a, add_one, &w), HD_TRANSIENT);
    assert_int_equal(w.runs, 10);
}

static void it_gives_up_where_it_is_always_overtaken(void **state) {
    adding w = { .overtaken = 1000 };
    assert_int_equal(hd_status_class(hd_transact(a, add_one, &w)), HD_CLASS_STALE);
    assert_int_equal(w.runs, 1000);
}

/* The function itself has read what is out of date here: that takes its time. */
static void what_is_out_of_date_is_waited_for(void **state) {
    adding w = { .answer = HD_STALE };
    uint64_t began = lab_now_ms(l);
    assert_int_equal(hd_transact(a, add_one, &w), HD_STALE);
    assert_int_equal(w.runs, 200);
    assert_in_range(lab_now_ms(l) - began, 5000, 15000);
}

/* What refused an attempt has been told: whoever waited would lose to a writer that does not. */
static void an_attempt_that_was_refused_is_made_again_at_once(void **state) {
    adding w = { .overtaken = 100 };
    uint64_t began = lab_now_ms(l);
    assert_int_equal(hd_transact(a, add_one, &w), HD_OK);
    assert_int_equal(w.runs, 101);
    assert_int_equal(lab_now_ms(l), began);
}

static uint64_t accepted_of(const hd_runtime *rt) {
    hd_store_stats stats;
    hd_runtime_store_stats(rt, &stats);
    return stats.accepted;
}

/* So that other processes hear of this one: they see what is accepted, and not what is refused. A commit of nothing
 * goes with an attempt that begins 20 ms after the first refusal, and again every 20 ms. */
static void a_transaction_that_is_refused_for_long_sends_commits_of_nothing(void **state) {
    for (int overtaken = 0; overtaken <= 10; overtaken++) {
        adding w = { .overtaken = overtaken, .taking_ms = 10 };
        uint64_t before = accepted_of(a);
        assert_int_equal(hd_transact(a, add_one, &w), HD_OK);
        assert_int_equal(hd_runtime_sync(a), HD_OK);
        int of_nothing = overtaken < 2 ? 0 : (overtaken - 1) / 2;
        assert_int_equal(accepted_of(a) - before, 1 + of_nothing);
    }
}

static hd_status inside(hd_tx *tx, void *ctx) {
    adding w = { 0 };
    assert_int_equal(hd_transact(hd_tx_runtime(tx), add_one, &w), HD_USAGE);
    assert_int_equal(hd_transact_later(hd_tx_runtime(tx), add_one, &w, NULL, NULL), HD_USAGE);
    assert_int_equal(w.runs, 0);
    return HD_OK;
}
static void inside_a_transaction_it_is_refused(void **state) {
    assert_int_equal(hd_transact(a, inside, NULL), HD_OK);
}

/* ---- without waiting */

typedef struct fate {
    int told;
    hd_status status;
} fate;
static void note(hd_status status, void *ctx) {
    fate *f = ctx;
    f->told++;
    f->status = status;
}

static void without_waiting_the_end_is_told_in_a_pump(void **state) {
    adding w = { .overtaken = 2 };
    fate f = { 0 };
    assert_int_equal(hd_transact_later(a, add_one, &w, note, &f), HD_OK);
    assert_int_equal(f.told, 0);
    assert_int_equal(hd_runtime_sync(a), HD_OK); /* waits for all attempts */
    assert_int_equal(f.told, 1);
    assert_int_equal(f.status, HD_OK);
    assert_int_equal(w.runs, 3);
    assert_json(l, "n", "201");
}

static void a_first_attempt_that_ends_it_is_returned(void **state) {
    adding w = { .answer = HD_NOT_FOUND };
    fate f = { 0 };
    assert_int_equal(hd_transact_later(a, add_one, &w, note, &f), HD_NOT_FOUND);
    assert_int_equal(hd_runtime_sync(a), HD_OK);
    assert_int_equal(f.told, 0);
}

static void a_later_attempt_that_ends_it_is_told(void **state) {
    adding w = { .overtaken = 1 };
    fate f = { 0 };
    assert_int_equal(hd_transact_later(a, add_one, &w, note, &f), HD_OK);
    w.answer = HD_NOT_FOUND;
    assert_int_equal(hd_runtime_sync(a), HD_OK);
    assert_int_equal(f.told, 1);
    assert_int_equal(f.status, HD_NOT_FOUND);
}

static void the_close_waits_for_it(void **state) {
    adding w = { .overtaken = 1 };
    fate f = { 0 };
    assert_int_equal(hd_transact_later(a, add_one, &w, note, &f), HD_OK);
    lab_runtime_close(lab_on(l, "a"));
    assert_int_equal(f.told, 1);
    assert_int_equal(f.status, HD_OK);
    lab_on(l, "b");
    lab_settle(l);
    assert_json(l, "n", "101");
}

/* ---- a refusal that nobody asked about */

static void refuse_one(int run) {
    hd_tx *tx;
    adding w = { .runs = run - 1, .overtaken = run };
    assert_int_equal(hd_tx_begin(a, &tx), HD_OK);
    assert_int_equal(add_one(tx, &w), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static void a_refused_commit_is_logged_once_for_its_cell_and_returned_by_sync(void **state) {
    refuse_one(1);
    assert_int_equal(hd_runtime_sync(a), HD_STALE);
    assert_int_equal(hd_runtime_sync(a), HD_OK);
    assert_int_equal(lab_env_logged(lab_world(l), "main/n"), 1);
    refuse_one(2);
    assert_int_equal(hd_runtime_sync(a), HD_STALE);
    assert_int_equal(lab_env_logged(lab_world(l), "main/n"), 1);
}

static void a_refused_commit_is_returned_by_close(void **state) {
    hd_runtime *other;
    hd_options options = { .env = lab_env_of(lab_world(l)), .memory = lab_memory(l) };
    if (lab_is_sqlite(l)) skip(); /* the same code */
    assert_int_equal(hd_open(NULL, &options, &other, NULL), HD_OK);
    hd_runtime *before = a;
    a = other;
    refuse_one(1);
    a = before;
    assert_int_equal(hd_close(other), HD_STALE);
}

static void who_asked_is_told_and_sync_says_nothing(void **state) {
    hd_tx *tx;
    adding w = { .overtaken = 1 };
    fate f = { 0 };
    assert_int_equal(hd_tx_begin(a, &tx), HD_OK);
    assert_int_equal(add_one(tx, &w), HD_OK);
    assert_int_equal(hd_tx_commit(tx, note, &f), HD_OK);
    assert_int_equal(hd_runtime_sync(a), HD_OK);
    assert_int_equal(f.status, HD_STALE);
    assert_int_equal(lab_env_logged(lab_world(l), "refused"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_transaction_is_run_until_it_is_accepted),
        T(what_is_accepted_at_once_runs_once),
        T(a_status_of_its_own_ends_it),
        T(a_transient_failure_is_tried_ten_times),
        T(it_gives_up_where_it_is_always_overtaken),
        T(what_is_out_of_date_is_waited_for),
        T(an_attempt_that_was_refused_is_made_again_at_once),
        T(a_transaction_that_is_refused_for_long_sends_commits_of_nothing),
        T(inside_a_transaction_it_is_refused),
        T(without_waiting_the_end_is_told_in_a_pump),
        T(a_first_attempt_that_ends_it_is_returned),
        T(a_later_attempt_that_ends_it_is_told),
        T(the_close_waits_for_it),
        T(a_refused_commit_is_logged_once_for_its_cell_and_returned_by_sync),
        T(a_refused_commit_is_returned_by_close),
        T(who_asked_is_told_and_sync_says_nothing),
    };
    LAB_EVERYWHERE(tests);
}
