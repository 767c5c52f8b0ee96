/* Events: conflicts and retries (CONFORMANCE K, 232 to 239; H, 169). */
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

/* Another writer who gets in the way: `times` bodies find that what they read has changed when they
 * come to commit. */
typedef struct rival {
    hd_runtime *rt;
    hd_cell cell;
    int times, done;
    uint64_t began_ns[64];
    int bodies;
    lab *l;
} rival;

static rival rival_open(lab *l, const char *cell, int times) {
    lab_runtime *b = lab_on(l, "b");
    rival r = { .rt = lab_rt(b), .cell = lab_cell(b, cell), .times = times, .l = l };
    lab_on(l, "a");
    return r;
}

static void interfere(rival *r) {
    const hd_env *env = lab_env_of(lab_world(r->l));
    if (r->bodies < 64) r->began_ns[r->bodies] = env->monotonic_ns(env->ctx);
    r->bodies++;
    if (r->done >= r->times) return;
    char text[32];
    snprintf(text, sizeof text, "%d", 1000 + r->done++);
    assert_status(hd_write_json(r->rt, r->cell, text), HD_OK);
    assert_status(hd_runtime_sync(r->rt), HD_OK);
}

/* Reads what the rival writes, and appends to its log. */
static hd_status contend(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    hd_status status = lab_append(self, tx, event);
    interfere(self->data);
    return status;
}

static lab_handler *contender(lab *l, rival *r) {
    return lab_handle(l, .stream = "buy", .reads = "hot buy_log", .body = contend, .data = r);
}

static void sync_now(lab *l) { assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK); }

/* C232, C233: a conflict that is retried and lands: the sender hears once, after the final outcome.
 * C169: the barrier waits for the retry. */
static void the_sender_hears_once_of_the_final_outcome(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    rival r = rival_open(l, "hot", 1);
    lab_handler *h = contender(l, &r);
    lab_fire(l, "buy", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_int_equal(h->runs, 2);
    assert_json(l, "buy_log", "[1]");
    assert_int_equal(lab_event_stats(l).retries, 1);
    lab_close(l);
}

/* C234: eight conflicts in a row: the write lands, nobody is alarmed. */
static void eight_conflicts_in_a_row_are_no_failure(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    rival r = rival_open(l, "hot", 8);
    lab_handler *h = contender(l, &r);
    lab_catch(l);
    lab_fire(l, "buy", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_int_equal(h->runs, 9);
    assert_string_equal(lab_failures(l), "");
    assert_int_equal(lab_env_logged(lab_world(l), "warn"), 0);
    lab_close(l);
}

/* C235: the delays: three under 5 ms, 25 ms before the seventh attempt, doubling to one second. */
static void delays_grow_from_under_a_millisecond_to_a_second(void **state) {
    lab *l = lab_start();
    rival r = rival_open(l, "hot", 16);
    contender(l, &r);
    lab_fire(l, "buy", "1", NULL);
    sync_now(l);
    for (int i = 1; i < r.bodies; i++) {
        uint64_t ns = r.began_ns[i] - r.began_ns[i - 1];
        uint64_t most = i <= 6 ? UINT64_C(25000000) >> (6 - i) : UINT64_C(25000000) << (i - 6);
        if (most > 1000000000) most = 1000000000;
        assert_in_range(ns, most * 3 / 4, most + (lab_is_sqlite(l) ? 20000000u : 0u));
        if (i <= 3) assert_true(ns < 5000000);
    }
    lab_close(l);
}

/* A body that ends once with `status`: it runs once, and sender and error handlers hear `told`. */
static void ends_with(hd_status status, hd_status told, const char *failures) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "buy");
    h->fail_with = status;
    h->fail_times = 1;
    lab_fire(l, "buy", "1", &o);
    sync_now(l);
    assert_int_equal(h->runs, 1);
    assert_outcome(o, told);
    assert_string_equal(lab_failures(l), failures);
    assert_int_equal(lab_event_stats(l).duplicates, 0);
    lab_close(l);
}

/* C236: an error that is not about old data ends the event after one run. */
static void other_errors_are_not_retried(void **state) {
    ends_with(HD_MISMATCH, HD_MISMATCH, "buy HD_MISMATCH");
}

/* Only a verdict can say that an event was handled before. A body that passes such a status on, perhaps
 * from a document that it wanted to create, has failed: the event is not lost for it. */
static void what_a_verdict_says_is_no_answer_of_a_body(void **state) {
    ends_with(HD_EXISTS, HD_FAILED, "buy HD_FAILED");
}

/* C213: a transient failure is retried, ten times at most. */
static void transient_failures_are_retried_within_a_budget(void **state) {
    lab *l = lab_start();
    lab_outcome good = { 0 }, bad = { 0 };
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "buy");
    h->fail_with = HD_BUSY;
    h->fail_times = 4;
    lab_fire(l, "buy", "1", &good);
    sync_now(l);
    assert_int_equal(h->runs, 5);
    assert_outcome(good, HD_OK);
    h->fail_times = 100;
    h->runs = 0;
    lab_fire(l, "buy", "2", &bad);
    sync_now(l);
    assert_int_equal(h->runs, 10);
    assert_outcome(bad, HD_BUSY);
    assert_string_equal(lab_failures(l), "buy HD_BUSY");
    h->fail_times = 0;
    lab_close(l);
}

/* C237: a conflict that never clears ends with the window, loudly; without a window at once. */
static void a_conflict_that_never_clears_ends_loudly(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 }, at_once = { 0 };
    rival r = rival_open(l, "hot", 1000000);
    lab_handler *h = contender(l, &r);
    lab_catch(l);
    lab_fire(l, "buy", "1", &o);
    uint64_t began = lab_now_ms(l);
    sync_now(l);
    assert_outcome(o, HD_REJECTED);
    assert_in_range(lab_now_ms(l) - began, 30000, 32000);
    assert_in_range(h->runs, 30, 60);
    assert_string_equal(lab_failures(l), "buy HD_REJECTED");
    hd_runtime_set_retry_window(lab_runtime_now(l), 0);
    h->runs = 0;
    lab_fire(l, "buy", "2", &at_once);
    sync_now(l);
    assert_int_equal(h->runs, 1);
    assert_outcome(at_once, HD_REJECTED);
    lab_close(l);
}

/* C238: three appends through a storm of conflicts are all there, in order. */
static void three_appends_through_a_storm_arrive_in_order(void **state) {
    lab *l = lab_start();
    rival r = rival_open(l, "hot", 9);
    contender(l, &r);
    lab_fire(l, "buy", "1", NULL);
    lab_fire(l, "buy", "2", NULL);
    lab_fire(l, "buy", "3", NULL);
    sync_now(l);
    assert_json(l, "buy_log", "[1,2,3]");
    lab_close(l);
}

/* C239, I4: several in flight are refused together: they run again in the order of sending, before
 * what was sent later. */
static void i4_what_was_refused_runs_again_in_its_old_order(void **state) {
    lab *l = lab_start();
    rival r = rival_open(l, "hot", 0);
    contender(l, &r);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "buy", "1", NULL);
    lab_fire(l, "buy", "2", NULL);
    lab_fire(l, "buy", "3", NULL);
    lab_idle(l);
    assert_int_equal(lab_event_stats(l).in_flight, 3);
    r.times = 1;
    interfere(&r);
    lab_fire(l, "buy", "4", NULL);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_json(l, "buy_log", "[1,2,3,4]");
    lab_close(l);
}

/* A terminal refusal settles the barrier (C169), and is told once. */
static hd_status no_such_origin(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return hd_tx_require_equal(tx, lab_cell(lab_on(self->l, "a"), "hot"), hd_int(NULL, 42));
}
static void a_refusal_for_good_settles_the_barrier(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_catch(l);
    hd_runtime_set_retry_window(lab_runtime_now(l), 5);
    lab_handle(l, .stream = "buy", .reads = "hot", .body = no_such_origin);
    lab_fire(l, "buy", "1", &o);
    sync_now(l);
    assert_outcome(o, HD_REJECTED);
    lab_close(l);
}

static void without_send_order_c239_fails(void **state) {
    struct CMUnitTest test = cmocka_unit_test(i4_what_was_refused_runs_again_in_its_old_order);
    must_miss(EVENTS_WITHOUT_ORDER, test);
}

/* In the first body another runtime writes both and folds the log: m cannot be read in the state that n
 * was read in. The body takes that for missing data. */
static hd_status complain_of_m(lab_handler *self, hd_tx *tx, const hd_event *e) {
    (void)e;
    lab_runtime *a = lab_on(self->l, "a");
    (void)hd_tx_get(tx, lab_cell(a, "n"));
    if (self->runs == 1) lab_fold_elsewhere(self->l);
    return hd_value_exists(hd_tx_get(tx, lab_cell(a, "m"))) ? HD_OK : HD_RANGE;
}

/* S10, C233: that is a conflict, whatever the body calls it. */
static void what_a_body_makes_of_a_stale_read_is_no_failure(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_prepare_fold(l);
    lab_handle(l, .stream = "look", .reads = "n", .body = complain_of_m);
    lab_settle(l);
    lab_turn(l); /* now it looks at the file only when it needs something */
    lab_fire(l, "look", "1", &o);
    lab_idle(l);
    assert_int_equal(hd_runtime_sync(lab_runtime_now(l)), HD_OK);
    assert_outcome(o, HD_OK);
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_body_makes_of_a_stale_read_is_no_failure),
        cmocka_unit_test(the_sender_hears_once_of_the_final_outcome),
        cmocka_unit_test(eight_conflicts_in_a_row_are_no_failure),
        cmocka_unit_test(delays_grow_from_under_a_millisecond_to_a_second),
        cmocka_unit_test(other_errors_are_not_retried),
        cmocka_unit_test(what_a_verdict_says_is_no_answer_of_a_body),
        cmocka_unit_test(transient_failures_are_retried_within_a_budget),
        cmocka_unit_test(a_conflict_that_never_clears_ends_loudly),
        cmocka_unit_test(three_appends_through_a_storm_arrive_in_order),
        cmocka_unit_test(i4_what_was_refused_runs_again_in_its_old_order),
        cmocka_unit_test(a_refusal_for_good_settles_the_barrier),
        cmocka_unit_test(without_send_order_c239_fails),
    };
    LAB_EVERYWHERE(tests);
}
