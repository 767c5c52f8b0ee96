/* test_unregister.c -- what is registered can be taken back (heddle/base.h, "Endings"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/lab.h>

static hd_lab *lab;
static hd_runtime *rt;
static int calls;

static int begin(void **state) {
    lab = hd_lab_open(NULL);
    rt = hd_lab_runtime(lab, "a");
    calls = 0;
    return 0;
}
static int end(void **state) {
    hd_lab_close(lab);
    return 0;
}

/* ---- error functions */

static hd_status fails(hd_tx *tx, void *ctx) {
    hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/n"));
    return hd_tx_fail(tx, HD_FAILED, "as always");
}

static void count(const hd_failure *failure, void *ctx) { ++*(int *)ctx; }
static void count_once(const hd_failure *failure, void *ctx) {
    ++*(int *)ctx;
    hd_runtime_off_error(rt, count_once, ctx);
}

static void run_failing(const char *n) {
    hd_lab_set(rt, "main/n", n);
    hd_lab_settle(lab);
    assert_string_equal(hd_lab_failures(rt), "fails HD_FAILED: as always");
}

/* scheduler.h, hd_runtime_off_error. */
static void an_error_function_that_was_taken_back_is_not_called(void **state) {
    int other = 0;
    hd_effect(rt, "fails", fails, NULL);
    hd_runtime_on_error(rt, count, &calls);
    hd_runtime_on_error(rt, count, &other);
    run_failing("1");
    hd_runtime_off_error(rt, count, &calls);
    hd_runtime_off_error(rt, count, &calls); /* there is none any more */
    run_failing("2");
    assert_int_equal(calls, 1);
    assert_int_equal(other, 2);
}

/* scheduler.h, hd_runtime_off_error: also while it is called. */
static void an_error_function_may_take_itself_back_and_the_others_are_called(void **state) {
    int first = 0, last = 0;
    hd_effect(rt, "fails", fails, NULL);
    hd_runtime_on_error(rt, count, &first);
    hd_runtime_on_error(rt, count_once, &calls);
    hd_runtime_on_error(rt, count, &last);
    run_failing("1");
    run_failing("2");
    assert_int_equal(calls, 1);
    assert_int_equal(first, 2);
    assert_int_equal(last, 2);
}

/* ---- idle functions */

static void note_idle(void *ctx) { ++*(int *)ctx; }
static void take_back_the_other(void *ctx) {
    calls++;
    hd_runtime_off_idle(rt, note_idle, ctx);
}

/* scheduler.h, hd_runtime_off_idle; taken back before, and by another one that is called first. */
static void an_idle_function_that_was_taken_back_is_not_called(void **state) {
    int noted = 0;
    hd_runtime_on_idle(rt, note_idle, &noted);
    hd_runtime_off_idle(rt, note_idle, &noted);
    hd_lab_settle(lab);
    hd_runtime_on_idle(rt, take_back_the_other, &noted);
    hd_runtime_on_idle(rt, note_idle, &noted);
    hd_lab_settle(lab);
    assert_int_equal(calls, 1);
    assert_int_equal(noted, 0);
}

/* ---- patterns */

static hd_value times(hd_tx *tx, hd_value in, void *ctx) {
    return hd_double(hd_value_number(in) * *(const double *)ctx);
}
static hd_cell scaled(hd_build *b, void *ctx) {
    return hd_build_derive(b, "out", hd_build_argument(b, "n", hd_double(1)), times, ctx);
}
static void look(hd_value v, void *ctx) {}

static hd_status start(const char *id) {
    hd_piece piece;
    hd_status status =
        hd_piece_start(rt, &(hd_piece_spec){ .id = id, .pattern = "scaled" }, &piece, NULL);
    if (!status) hd_sink(rt, hd_piece_result(rt, piece), look, NULL);
    return status;
}

/* pattern.h, hd_pattern_unregister. */
static void pieces_of_a_pattern_that_was_taken_back_go_on_and_no_other_starts(void **state) {
    static const double two = 2, ten = 10;
    assert_int_equal(hd_pattern_unregister(rt, "scaled"), HD_NOT_FOUND);
    hd_pattern_register(rt, "scaled", "1", scaled, (void *)(uintptr_t)&two);
    assert_int_equal(start("p"), HD_OK);
    assert_int_equal(hd_pattern_unregister(rt, "scaled"), HD_OK);
    assert_int_equal(hd_pattern_unregister(rt, "scaled"), HD_NOT_FOUND);
    assert_int_equal(start("q"), HD_NOT_FOUND);
    hd_lab_set(rt, "main/p#/arguments/n", "3");
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/p/out", "6.0");

    /* The name is free. */
    assert_int_equal(hd_pattern_register(rt, "scaled", "2", scaled, (void *)(uintptr_t)&ten),
                     HD_OK);
    assert_int_equal(start("q"), HD_OK);
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/q/out", "10.0");
    hd_lab_expect_cell(rt, "main/p/out", "6.0");
}

/* ---- channels */

static hd_status deliver(const char *key, hd_value message, void *ctx) {
    ++*(int *)ctx;
    return HD_OK;
}

static hd_status send_mail(hd_tx *tx, const hd_event *event, void *ctx) {
    return hd_tx_outbox(tx, "mail", event->payload);
}

static void record(void) {
    assert_int_equal(hd_event_send(rt, hd_cell_at(rt, "main/buy"), hd_double(1), NULL), HD_OK);
    hd_lab_idle(lab);
}

/* event.h, hd_channel_unregister. */
static void messages_of_a_channel_that_was_taken_back_wait_until_it_is_registered_again(
    void **state) {
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/buy"),
                             .fn = send_mail,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    hd_channel_unregister(rt, "main", "mail"); /* there is none */
    hd_channel_register(rt, "main", "mail", deliver, &calls);
    record();
    assert_int_equal(calls, 1);
    hd_channel_unregister(rt, "main", "mail");
    record();
    assert_int_equal(calls, 1);
    hd_channel_register(rt, "main", "mail", deliver, &calls);
    hd_lab_idle(lab);
    assert_int_equal(calls, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_error_function_that_was_taken_back_is_not_called),
        T(an_error_function_may_take_itself_back_and_the_others_are_called),
        T(an_idle_function_that_was_taken_back_is_not_called),
        T(pieces_of_a_pattern_that_was_taken_back_go_on_and_no_other_starts),
        T(messages_of_a_channel_that_was_taken_back_wait_until_it_is_registered_again),
    };
    return cmocka_run_group_tests_name("unregister", tests, NULL, NULL);
}
