/* test_late.c -- posted events on a store whose documents arrive late, as from a remote store (7.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/event.h>
#include <heddle/lab.h>

static hd_lab *lab;
static int stored_count;
static hd_status stored_status;

static int open_late(void **state) {
    lab = hd_lab_open(&(hd_lab_options){ .load_late = true });
    stored_count = 0;
    stored_status = HD_PENDING;
    return 0;
}
static int close_late(void **state) {
    hd_lab_close(lab);
    return 0;
}

static hd_status append_payload(hd_tx *tx, const hd_event *event, void *ctx) {
    return hd_tx_append(tx, hd_cell_at(hd_tx_runtime(tx), "main/got"), event->payload);
}

static void handle(hd_runtime *rt) {
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/clicks"),
                             .name = "append",
                             .fn = append_payload,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}

static void tell_stored(const char *id, hd_status status, void *ctx) {
    stored_count++;
    stored_status = status;
}

static void post(hd_runtime *rt, int64_t n) {
    hd_pool *pool;
    char id[HD_EVENT_ID_SIZE];
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_event_post(rt, hd_cell_at(rt, "main/clicks"), hd_int(pool, n),
                                   &(hd_send_options){ .done = tell_stored }, id),
                     HD_OK);
    hd_pool_close(pool);
}

static void a_post_without_an_id_is_stored(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    post(a, 1);
    hd_lab_settle(lab);
    assert_int_equal(stored_count, 1);
    assert_int_equal(stored_status, HD_OK);
}

static void a_handler_registered_later_takes_what_was_posted(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    post(a, 1);
    post(a, 2);
    hd_lab_settle(lab);
    handle(a);
    hd_lab_settle(lab);
    hd_lab_expect_cell(a, "main/got", "[1,2]");
}

static void another_program_takes_what_was_posted(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    post(a, 1);
    post(a, 2);
    hd_lab_settle(lab);
    hd_lab_runtime_close(a);
    hd_runtime *b = hd_lab_runtime(lab, "b");
    handle(b);
    hd_lab_settle(lab);
    hd_lab_expect_cell(b, "main/got", "[1,2]");
}

static void a_program_that_follows_takes_what_is_posted_elsewhere(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a"), *b = hd_lab_runtime(lab, "b");
    handle(b);
    hd_lab_settle(lab);
    post(a, 1);
    hd_lab_settle(lab);
    post(a, 2);
    hd_lab_settle(lab);
    hd_lab_expect_cell(b, "main/got", "[1,2]");
}

static void each_is_handled_once_though_two_programs_take_it(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a"), *b = hd_lab_runtime(lab, "b");
    post(a, 1);
    hd_lab_settle(lab);
    handle(a);
    handle(b);
    hd_lab_settle(lab);
    hd_lab_expect_cell(a, "main/got", "[1]");
    hd_lab_expect_cell(b, "main/got", "[1]");
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_late, close_late)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_post_without_an_id_is_stored),
        T(a_handler_registered_later_takes_what_was_posted),
        T(another_program_takes_what_was_posted),
        T(a_program_that_follows_takes_what_is_posted_elsewhere),
        T(each_is_handled_once_though_two_programs_take_it),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
