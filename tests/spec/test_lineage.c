/* Lineage: what a transaction launches lives only if it commits (CONFORMANCE M; I10). */
#include "lab_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "events_control.h"

static void sync_now(lab *l) { assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK); }

/* A parent that reads "hot", which somebody else changes under its feet `times` times, and sends its
 * attempt's number on. */
typedef struct family {
    lab *l;
    hd_runtime *rival;
    hd_cell hot;
    int times;
    lab_outcome child;
    hd_status end_with;
    int stopped, after;
    hd_status after_status;
    const char *child_stream;
} family;

static family family_of(lab *l, int times) {
    lab_runtime *b = lab_on(l, "b");
    family f = { .l = l, .rival = lab_rt(b), .hot = lab_cell(b, "hot"), .times = times };
    f.child_stream = "child";
    lab_on(l, "a");
    return f;
}

static void disturb(family *f) {
    char text[16];
    if (f->times-- <= 0) return;
    snprintf(text, sizeof text, "%d", 100 + f->times);
    assert_status(hd_write_json(f->rival, f->hot, text), HD_OK);
    assert_status(hd_runtime_sync(f->rival), HD_OK);
}

static hd_status stop_it(void *ctx) {
    ((family *)ctx)->stopped++;
    return HD_OK;
}
static void after_it(hd_status status, void *ctx) {
    ((family *)ctx)->after++;
    ((family *)ctx)->after_status = status;
}

static hd_status parent(lab_handler *self, hd_tx *tx, const hd_event *event) {
    family *f = self->data;
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    hd_status status = lab_tx_set(self, tx, "n", hd_int(NULL, (int64_t)event->attempt));
    if (!status)
        status = lab_tx_send(self, tx, f->child_stream, hd_int(NULL, (int64_t)event->attempt),
                             &f->child);
    if (!status) status = hd_tx_launch(tx, stop_it, f);
    if (!status) status = hd_tx_after_commit(tx, after_it, f);
    disturb(f);
    return status ? status : f->end_with;
}

static void register_family(lab *l, family *f) {
    lab_handle(l, .stream = "parent", .reads = "hot", .body = parent, .data = f);
    lab_handle(l, .stream = f->child_stream);
}

/* C264, I10: the origin conflicts and its retry succeeds: exactly one follow-up commits, with the
 * payload of the attempt that committed. What the first attempt launched is stopped. */
static void i10_only_the_committed_attempts_launches_survive(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 1);
    lab_outcome o = { 0 };
    register_family(l, &f);
    lab_fire(l, "parent", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_json(l, "child_log", "[2]");
    assert_int_equal(f.child.told, 2);
    assert_status(f.child.status, HD_OK);
    assert_int_equal(f.stopped, 1);
    assert_int_equal(f.after, 2);
    assert_status(f.after_status, HD_OK);
    lab_close(l);
}

/* C265, I10: an origin that fails: its payload-only follow-up never runs, let alone commits. */
static void i10_a_failed_handlers_events_are_dropped(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    f.end_with = HD_FAILED;
    lab_catch(l);
    register_family(l, &f);
    lab_fire(l, "parent", "1", NULL);
    sync_now(l);
    assert_json(l, "child_log", "-");
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    assert_int_equal(f.stopped, 1);
    assert_int_equal(f.after, 1);
    assert_status(f.after_status, HD_FAILED);
    lab_close(l);
}

/* C265, I10: the parent's commit is refused after its payload-only follow-up was sent on its way: the
 * follow-up falls with it. */
static void i10_a_follow_up_in_flight_falls_with_its_origin(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    hd_runtime_set_retry_window(lab_runtime_now(l), 0);
    lab_catch(l);
    register_family(l, &f);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "parent", "1", NULL);
    lab_idle(l);
    assert_int_equal(lab_event_stats(l).in_flight, 2);
    f.times = 1;
    disturb(&f);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_json(l, "child_log", "-");
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    /* The store's own word, not only ours. */
    assert_cell(lab_on(l, "b"), "child_log", "-");
    lab_on(l, "a");
    lab_close(l);
}

/* Seed 003, phase E: a handler that uses up its retries: no follow-up, what it launched is stopped. */
static void i10_exhausted_retries_leave_nothing_behind(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 1000000);
    hd_runtime_set_retry_window(lab_runtime_now(l), 100);
    lab_outcome o = { 0 };
    lab_catch(l);
    register_family(l, &f);
    lab_fire(l, "parent", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_REJECTED);
    assert_json(l, "child_log", "-");
    assert_int_equal(f.stopped, f.child.told);
    assert_true(f.stopped > 3);
    lab_close(l);
}

typedef struct slow {
    hd_presync *sync;
} slow;
static hd_status ask_first(hd_presync *sync, const hd_event *event, void *ctx) {
    ((slow *)((lab_handler *)ctx)->data)->sync = sync;
    return HD_PENDING;
}

/* C266: a follow-up that waits in its presync when the origin fails is not dispatched, and its sender
 * hears once. */
static void i10_a_follow_up_in_presync_is_dropped_with_its_origin(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    slow w = { NULL };
    hd_runtime_set_retry_window(lab_runtime_now(l), 0);
    lab_catch(l);
    lab_handle(l, .stream = "parent", .reads = "hot", .body = parent, .data = &f);
    lab_handler *child = lab_handle(l, .stream = "child", .presync = ask_first, .data = &w);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "parent", "1", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_non_null(w.sync);
    f.times = 1;
    disturb(&f);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    hd_presync_done(w.sync, HD_OK);
    lab_idle(l);
    assert_int_equal(child->runs, 0);
    lab_close(l);
}

/* C267: a follow-up that went back to the queue is dropped when its origin then fails. */
static hd_status busy_child(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return self->runs < 2 ? HD_BUSY : lab_append(self, tx, event);
}
static void i10_a_follow_up_that_was_requeued_is_dropped_with_its_origin(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    hd_runtime_set_retry_window(lab_runtime_now(l), 0);
    lab_catch(l);
    lab_handle(l, .stream = "parent", .reads = "hot", .body = parent, .data = &f);
    lab_handler *child = lab_handle(l, .stream = "child", .reads = "child_log", .body = busy_child);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "parent", "1", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_int_equal(child->runs, 1);
    assert_int_equal(lab_event_stats(l).queued, 1);
    f.times = 1;
    disturb(&f);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    assert_int_equal(child->runs, 1);
    lab_close(l);
}

/* C268, I10: a follow-up into another space waits until its origin is certain; idle waits with it. */
static void i10_a_follow_up_in_another_space_waits_for_its_origin(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    f.child_stream = "other/child";
    register_family(l, &f);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "parent", "1", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_ran(l, "parent");
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_ORIGIN);
    assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_ran(l, "other/child");
    assert_outcome(f.child, HD_OK);
    lab_close(l);
}

/* C268: and is dropped, without ever running, when the origin fails. */
static void i10_a_follow_up_in_another_space_never_runs_after_a_failure(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    f.child_stream = "other/child";
    hd_runtime_set_retry_window(lab_runtime_now(l), 0);
    lab_catch(l);
    register_family(l, &f);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "parent", "1", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    f.times = 1;
    disturb(&f);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_ran(l, "parent");
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    lab_close(l);
}

/* C269: sent by a transaction that is committed, or that only reads: as from outside. C270: by one
 * that is aborted: dropped, told once. */
static void i10_the_fate_of_the_senders_transaction_decides(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_cell child = hd_cell_at(rt, "main/child");
    lab_outcome read = { 0 }, wrote = { 0 }, aborted = { 0 };
    hd_send_options options = { .done = lab_outcome_note };
    hd_tx *tx;
    lab_handle(l, .stream = "child");
    hd_tx_begin_read(rt, &tx);
    options.ctx = &read;
    assert_status(hd_tx_send(tx, child, hd_int(NULL, 1), &options), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    hd_tx_begin(rt, &tx);
    options.ctx = &wrote;
    hd_tx_set_int(tx, hd_cell_at(rt, "main/n"), 1);
    assert_status(hd_tx_send(tx, child, hd_int(NULL, 2), &options), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    hd_tx_begin(rt, &tx);
    options.ctx = &aborted;
    assert_status(hd_tx_send(tx, child, hd_int(NULL, 3), &options), HD_OK);
    hd_tx_abort(tx);
    assert_outcome(aborted, HD_ORIGIN_FAILED);
    sync_now(l);
    assert_json(l, "child_log", "[1,2]");
    assert_outcome(read, HD_OK);
    assert_outcome(wrote, HD_OK);
    lab_close(l);
}

static hd_status abort_then_send(lab_handler *self, hd_tx *tx, const hd_event *event) {
    family *f = self->data;
    hd_tx_abort(tx);
    return lab_tx_send(self, tx, "child", event->payload, &f->child);
}

/* C270, I10: an origin that has failed already when it sends: dropped, told once. */
static void i10_what_a_failed_origin_sends_is_dropped(void **state) {
    lab *l = lab_start();
    family f = family_of(l, 0);
    lab_outcome o = { 0 };
    lab_catch(l);
    lab_handle(l, .stream = "parent", .reads = "hot", .body = abort_then_send, .data = &f);
    lab_handler *child = lab_handle(l, .stream = "child");
    lab_fire(l, "parent", "1", &o);
    lab_idle(l);
    sync_now(l);
    assert_outcome(o, HD_ABORTED);
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    assert_int_equal(child->runs, 0);
    lab_close(l);
}

static hd_status send_from_effect(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_runtime *rt = hd_tx_runtime(tx);
    return hd_tx_send(tx, hd_cell_at(rt, "main/child"), hd_int(NULL, (int64_t)n), NULL);
}

static hd_status send_from_computation(lab_node *self, hd_tx *tx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    self->data = (void *)(uintptr_t)hd_tx_send(tx, hd_cell_at(rt, "main/child"), hd_null(), NULL);
    return lab_tx_put(self, tx, "c", lab_tx_number(self, tx, "n"));
}

/* Effects send, also when they write nothing; computations do not. */
static void effects_send_and_computations_do_not(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 3);
    lab_handle(l, .stream = "child");
    lab_add(l, .name = "e", .effect = true, .body = send_from_effect);
    lab_add(l, .name = "c", .body = send_from_computation, .run_once = true);
    lab_idle(l);
    lab_set(l, "n", 4);
    lab_idle(l);
    assert_json(l, "child_log", "[3,4]");
    assert_int_equal((hd_status)(uintptr_t)lab_find(l, "c")->data, HD_USAGE);
    lab_close(l);
}

static void without_the_origin_precondition_i10_fails(void **state) {
    struct CMUnitTest test = cmocka_unit_test(i10_a_follow_up_in_flight_falls_with_its_origin);
    must_miss(EVENTS_WITHOUT_ORIGIN, test);
}

static void keep_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* C378: of a run that ends with a failure, of its body or of a write, the reason is told. */
static hd_status launch_and_fail(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    hd_status status = hd_tx_after_commit(tx, keep_verdict, self->data);
    if (!status && n == 2) (void)hd_tx_set_json(tx, lab_cell(self->at, "m"), "{");
    if (!status && n == 3) status = HD_BUSY;
    return status || n != 1 ? status : HD_FAILED;
}
static void what_waits_for_a_run_is_told_why_it_failed(void **state) {
    static const hd_status wanted[] = { HD_OK, HD_FAILED, HD_SYNTAX, HD_BUSY };
    (void)state;
    hd_status verdict = HD_PENDING;
    lab *l = lab_start();
    lab_catch(l);
    lab_add(l, .name = "e", .effect = true, .body = launch_and_fail, .data = &verdict);
    for (int n = 0; n < 4; n++) {
        lab_set(l, "n", n);
        lab_settle(l);
        assert_status(verdict, wanted[n]);
        lab_failures(l);
    }
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_for_a_run_is_told_why_it_failed),
        cmocka_unit_test(i10_only_the_committed_attempts_launches_survive),
        cmocka_unit_test(i10_a_failed_handlers_events_are_dropped),
        cmocka_unit_test(i10_a_follow_up_in_flight_falls_with_its_origin),
        cmocka_unit_test(i10_exhausted_retries_leave_nothing_behind),
        cmocka_unit_test(i10_a_follow_up_in_presync_is_dropped_with_its_origin),
        cmocka_unit_test(i10_a_follow_up_that_was_requeued_is_dropped_with_its_origin),
        cmocka_unit_test(i10_a_follow_up_in_another_space_waits_for_its_origin),
        cmocka_unit_test(i10_a_follow_up_in_another_space_never_runs_after_a_failure),
        cmocka_unit_test(i10_the_fate_of_the_senders_transaction_decides),
        cmocka_unit_test(i10_what_a_failed_origin_sends_is_dropped),
        cmocka_unit_test(effects_send_and_computations_do_not),
        cmocka_unit_test(without_the_origin_precondition_i10_fails),
    };
    LAB_EVERYWHERE(tests);
}
