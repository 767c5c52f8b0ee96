/* test_idle.c -- 8.4: what idle, settle, sync, close and hd_lab_idle wait for, line by line of the list in
 * heddle/scheduler.h. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_lab *lab;
static hd_runtime *rt;

static int open_lab(void **state) {
    (void)state;
    lab = hd_lab_open(NULL);
    rt = hd_lab_runtime(lab, "a");
    return 0;
}
static int close_lab(void **state) {
    (void)state;
    hd_lab_close(lab);
    return 0;
}

static uint64_t now_ms(void) {
    const hd_env *env = hd_lab_env_of(hd_lab_world(lab));
    return env->monotonic_ns(env->ctx) / 1000000;
}

static hd_status look(hd_tx *tx, void *ctx) {
    (void)ctx;
    return hd_value_status(hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/n")));
}

static hd_status count_up(hd_tx *tx, void *ctx) {
    (void)ctx;
    hd_cell n = hd_cell_at(hd_tx_runtime(tx), "main/n"),
            m = hd_cell_at(hd_tx_runtime(tx), "main/m");
    return hd_tx_set_double(tx, m, hd_value_number(hd_tx_get(tx, n)));
}

static void add(const char *name, hd_action_fn fn, uint32_t debounce, uint32_t throttle) {
    hd_node_spec spec = {
        .name = name, .fn = fn, .effect = true, .debounce_ms = debounce, .throttle_ms = throttle
    };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
}

/* A first run behind a debounce holds idle and settle, and not sync. */
static void a_first_run_behind_a_debounce(void **state) {
    (void)state;
    add("show", look, 500, 0);
    uint64_t began = now_ms();
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(now_ms(), began);
    hd_lab_expect_ran(rt, "");
    assert_false(hd_runtime_is_idle(rt));
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    hd_lab_pump(rt);
    hd_lab_expect_ran(rt, "show");
    assert_int_equal(now_ms(), began + 500);
}

/* A debounce or a throttle of a node that has run holds neither idle nor settle nor sync; hd_lab_idle waits
 * for it. */
static void a_window_of_a_node_that_has_run(void **state) {
    (void)state;
    hd_lab_set(rt, "main/n", "1");
    add("slow", look, 0, 1000);
    add("late", look, 300, 0);
    hd_lab_idle(lab);
    hd_lab_ran(rt);
    hd_lab_set(rt, "main/n", "2");
    uint64_t began = now_ms();
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    hd_lab_pump(rt);
    assert_true(hd_runtime_is_idle(rt));
    assert_int_equal(now_ms(), began);
    hd_lab_expect_ran(rt, "");
    hd_lab_idle(lab);
    hd_lab_expect_ran(rt, "late slow");
    assert_true(now_ms() <= began + 1000);
}

/* What close drops: a node that waits for its window does not run. */
static void close_does_not_wait_for_windows(void **state) {
    (void)state;
    hd_lab_set(rt, "main/n", "1");
    add("copy", count_up, 0, 1000);
    hd_lab_idle(lab);
    hd_lab_set(rt, "main/n", "2");
    uint64_t began = now_ms();
    hd_lab_runtime_close(rt);
    assert_int_equal(now_ms(), began);
    rt = hd_lab_runtime(lab, "b");
    hd_lab_expect_cell(rt, "main/n", "2");
    hd_lab_expect_cell(rt, "main/m", "1.0");
}

/* Retries hold settle and sync, the first ten in a row; then settle says that something is left. */
static void retries_of_what_was_refused(void **state) {
    (void)state;
    hd_runtime *other = hd_lab_runtime(lab, "other");
    hd_lab_set(rt, "main/n", "1");
    hd_lab_settle(lab);
    add("copy", count_up, 0, 0);
    hd_lab_refuse(rt, HD_STALE, 5);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    hd_lab_expect_cell(rt, "main/m", "1.0");
    assert_int_equal(hd_lab_runs(rt, "copy"), 6);

    hd_lab_set(rt, "main/n", "2");
    hd_lab_settle(lab);
    hd_lab_set(other, "main/n", "3");
    hd_lab_pump(other);
    hd_lab_refuse(rt, HD_STALE, 1000);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_UNSETTLED);
    uint64_t runs = hd_lab_runs(rt, "copy");
    for (int i = 0; i < 3000; i++) hd_lab_pump(rt); /* they wait: pumping does not run them */
    assert_int_equal(hd_lab_runs(rt, "copy"), runs);
    for (int i = 0; i < 10; i++) {
        hd_lab_advance_ms(lab, 1000);
        hd_lab_pump(rt);
    }
    assert_true(hd_lab_runs(rt, "copy") - runs >= 10); /* unlimited, and at most a second apart */
    hd_lab_refuse(rt, HD_STALE, 0);
    hd_lab_advance_ms(lab, 1000);
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/m", "3.0");
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    return hd_tx_set(tx, hd_cell_at(hd_tx_runtime(tx), "main/handled"), event->payload);
}

static void note(const char *id, hd_status status, void *ctx) {
    (void)id;
    *(hd_status *)ctx = status;
}

/* An event for later holds idle, settle and sync; close tells its sender HD_CLOSED and does not wait. */
static void events_in_line(void **state) {
    (void)state;
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/stream"),
                             .fn = handle,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    hd_status outcome = HD_PENDING;
    hd_send_options options = { .done = note, .ctx = &outcome };
    options.not_before_ns = (now_ms() + 400) * 1000000;
    assert_int_equal(hd_event_send(rt, spec.stream, hd_null(), &options), HD_OK);
    uint64_t began = now_ms();
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(now_ms(), began + 400);
    assert_int_equal(outcome, HD_OK);

    outcome = HD_PENDING;
    options.not_before_ns = (now_ms() + 400) * 1000000;
    assert_int_equal(hd_event_send(rt, spec.stream, hd_null(), &options), HD_OK);
    began = now_ms();
    hd_lab_runtime_close(rt);
    assert_int_equal(now_ms(), began);
    assert_int_equal(outcome, HD_CLOSED);
}

static hd_status add_one(hd_tx *tx, void *ctx) {
    (void)ctx;
    return hd_tx_increment(tx, hd_cell_at(hd_tx_runtime(tx), "main/n"), hd_int(NULL, 1));
}
static void keep_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* Transactions that are tried again hold sync, close and hd_lab_idle, and neither idle nor settle. */
static void transactions_that_are_tried_again(void **state) {
    (void)state;
    hd_status verdict = HD_PENDING;
    hd_lab_runtime(lab, "other");
    hd_lab_refuse(rt, HD_STALE, 12);
    assert_int_equal(hd_transact_later(rt, add_one, NULL, keep_verdict, &verdict), HD_OK);
    hd_lab_pump(rt);
    assert_true(hd_runtime_is_idle(rt));
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(verdict, HD_PENDING);
    hd_lab_idle(lab);
    assert_int_equal(verdict, HD_OK);
    hd_lab_expect_cell(rt, "main/n", "1");

    verdict = HD_PENDING;
    hd_lab_refuse(rt, HD_STALE, 12);
    assert_int_equal(hd_transact_later(rt, add_one, NULL, keep_verdict, &verdict), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(verdict, HD_OK);

    verdict = HD_PENDING;
    hd_lab_refuse(rt, HD_STALE, 12);
    assert_int_equal(hd_transact_later(rt, add_one, NULL, keep_verdict, &verdict), HD_OK);
    hd_lab_runtime_close(rt);
    assert_int_equal(verdict, HD_OK);
}

#define T(test) cmocka_unit_test_setup_teardown(test, open_lab, close_lab)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_first_run_behind_a_debounce),
        T(a_window_of_a_node_that_has_run),
        T(close_does_not_wait_for_windows),
        T(retries_of_what_was_refused),
        T(events_in_line),
        T(transactions_that_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
