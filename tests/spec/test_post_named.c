/* test_post_named.c -- the same event posted by several programs under the sender's own id: one of them stores it,
 * the others are told that it is there. And sending while the runtime closes. From the public headers. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_lab *lab;
static hd_runtime *a, *b;
static int handled;

static int start_in(bool in_file) {
    lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file });
    a = hd_lab_runtime(lab, "a");
    b = hd_lab_runtime(lab, "b");
    handled = 0;
    return 0;
}
static int start(void **state) { return start_in(false); }
static int start_file(void **state) { return start_in(true); }
static int finish(void **state) {
    hd_lab_close(lab);
    return 0;
}
#define T(name)                                                                                    \
    { #name, name, start, finish, NULL }
#define TF(name)                                                                                   \
    T(name), { #name " in a file", name, start_file, finish, NULL }

typedef struct told {
    int times;
    hd_status status;
    char id[HD_EVENT_ID_SIZE];
} told;

static void tell(const char *id, hd_status status, void *ctx) {
    told *t = ctx;
    t->times++;
    t->status = status;
    snprintf(t->id, sizeof t->id, "%s", id);
}
static void expect_told(const told *t, hd_status status, const char *id) {
    assert_int_equal(t->times, 1);
    assert_int_equal(t->status, status);
    assert_string_equal(t->id, id);
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    handled++;
    return HD_OK;
}
static void add_handler(hd_runtime *rt) {
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/in"),
                             .fn = handle,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}
static hd_status post(hd_runtime *rt, told *t, char id[HD_EVENT_ID_SIZE]) {
    hd_send_options options = { .id = "order-1", .done = tell, .ctx = t };
    return hd_event_post(rt, hd_cell_at(rt, "main/in"), hd_bool(true), &options, id);
}
/* Retries wait for a time. */
static void go_on(void) {
    for (int i = 0; i < 5; i++) {
        hd_lab_settle(lab);
        hd_lab_advance_ms(lab, 100);
    }
    hd_lab_idle(lab);
}

/* C370: posted at the same time by two programs: both are told that it is stored, and it is handled once. */
static void two_programs_post_the_same_event(void **state) {
    told of_a = { 0 }, of_b = { 0 };
    char id[HD_EVENT_ID_SIZE], other[HD_EVENT_ID_SIZE];
    assert_int_equal(post(a, &of_a, id), HD_OK);
    assert_int_equal(post(b, &of_b, other), HD_OK);
    assert_string_equal(id, other);
    go_on();
    expect_told(&of_a, HD_OK, id);
    expect_told(&of_b, HD_OK, id);
    add_handler(a);
    go_on();
    assert_int_equal(handled, 1);
}

/* C370: handled before the second one's commit arrives: it is told HD_EXISTS. */
static void the_second_is_told_that_it_was_handled(void **state) {
    told of_a = { 0 }, of_b = { 0 };
    char id[HD_EVENT_ID_SIZE];
    hd_lab_delay(b, HD_LAB_COMMITS | HD_LAB_NEWS);
    assert_int_equal(post(b, &of_b, id), HD_OK);
    add_handler(a);
    assert_int_equal(post(a, &of_a, id), HD_OK);
    go_on();
    expect_told(&of_a, HD_OK, id);
    assert_int_equal(handled, 1);
    assert_int_equal(of_b.times, 0);
    hd_lab_deliver(b);
    go_on();
    expect_told(&of_b, HD_EXISTS, id);
    assert_int_equal(post(b, &of_b, id), HD_EXISTS); /* and at once, when it is known here */
    assert_int_equal(of_b.times, 1);
    assert_int_equal(handled, 1);
}

/* The id of the sender is borrowed for the call only. */
static void the_id_may_be_gone_when_it_is_tried_again(void **state) {
    told of_a = { 0 };
    char id[HD_EVENT_ID_SIZE], name[32] = "order-1";
    hd_send_options options = { .id = name, .done = tell, .ctx = &of_a };
    hd_lab_refuse(a, HD_STALE, 3);
    assert_int_equal(hd_event_post(a, hd_cell_at(a, "main/in"), hd_null(), &options, id), HD_OK);
    memset(name, 'x', sizeof name - 1);
    go_on();
    expect_told(&of_a, HD_OK, id);
}

/* ---- closing */

static int runs;
static told sent;
static hd_status count_and_send(hd_tx *tx, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_cell n = hd_cell_at(rt, "main/n");
    hd_value v = hd_tx_get(tx, n);
    if (hd_value_status(v)) return hd_value_status(v);
    runs++;
    hd_send_options options = { .done = tell, .ctx = &sent };
    hd_status status = hd_tx_send(tx, hd_cell_at(rt, "main/in"), hd_null(), &options);
    return status ? status : hd_tx_set_int(tx, n, hd_value_as_int(v, 0) + 1);
}

/* C371: close waits for a transaction that is tried again. What it sends then is told HD_CLOSED, and the transaction
 * does not fail. */
static void a_transaction_that_close_waits_for_may_send(void **state) {
    runs = 0;
    sent = (told){ 0 };
    add_handler(a);
    hd_lab_settle(lab);
    hd_lab_refuse(a, HD_STALE, 1);
    assert_int_equal(hd_transact_later(a, count_and_send, NULL, NULL, NULL), HD_OK);
    hd_lab_runtime_close(a);
    hd_lab_settle(lab);
    hd_lab_expect_cell(b, "main/n", "1");
    assert_int_equal(runs, 2);
    assert_int_equal(sent.times, 2); /* of the attempt that was refused, and of this one */
    assert_int_equal(sent.status, HD_CLOSED);
    assert_int_equal(handled, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TF(two_programs_post_the_same_event),
        T(the_second_is_told_that_it_was_handled),
        T(the_id_may_be_gone_when_it_is_tried_again),
        T(a_transaction_that_close_waits_for_may_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
