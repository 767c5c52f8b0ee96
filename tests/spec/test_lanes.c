/* test_lanes.c -- 7.5: one line of events for each space; I6: what does not settle is bounded for events,
 * settle, sync and idle. */
#include "lab_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static double plus_one(const double *in) { return in[0] + 1; }
static double sum_and_one(const double *in) { return in[0] + in[1] + 1; }

static void sync_now(lab *l) { assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK); }

/* Two computations that never agree. */
static void add_quarrel(lab *l) {
    lab_compute(l, "ping", "pong", plus_one);
    lab_compute(l, "pong", "ping", plus_one);
}

static hd_event_wait waits_in(lab *l, const char *space) {
    return hd_space_event_waits(lab_runtime_now(l), space);
}

/* ---- lanes */

/* C360, 7.5: a head that waits in one space holds up no other; behind it the order is kept. */
static void a_head_that_waits_holds_up_its_own_space_only(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "c", .reads = "n", .throttle_ms = 1000);
    lab_handle(l, .stream = "one/slow", .reads = "c");
    lab_handle(l, .stream = "one/quick");
    lab_handle(l, .stream = "two/quick");
    lab_fire(l, "one/slow", "0", NULL);
    lab_idle(l);
    lab_ran(l);

    lab_set(l, "n", 2);
    lab_fire(l, "one/slow", "1", NULL);
    lab_fire(l, "one/quick", "2", NULL);
    lab_fire(l, "two/quick", "3", NULL);
    lab_fire(l, "two/quick", "4", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_ran(l, "two/quick two/quick");
    assert_int_equal(waits_in(l, "one"), HD_EVENT_WAITS_NODES);
    assert_int_equal(waits_in(l, "two"), HD_EVENT_WAITS_NOT);
    assert_int_equal(waits_in(l, "three"), HD_EVENT_WAITS_NOT);
    lab_idle(l);
    assert_ran(l, "c one/slow one/quick");
    assert_json(l, "two/quick_log", "[3,4]");
    lab_close(l);
}

typedef struct gate_keeper {
    hd_presync *sync;
} gate_keeper;

static hd_status never_yet(hd_presync *sync, const hd_event *event, void *ctx) {
    gate_keeper *k = ((lab_handler *)ctx)->data;
    k->sync = sync;
    return HD_PENDING;
}

static hd_status not_ready(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_value v = hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/ready"));
    return hd_value_exists(v) ? HD_OK : HD_PENDING;
}

/* 7.5: the same for every other reason to wait: a presync, a time, data that is not ready. Each lane goes
 * on when its own reason is gone. */
static void each_lane_waits_for_itself(void **state) {
    lab *l = lab_start();
    gate_keeper k = { 0 };
    hd_runtime *rt = lab_runtime_now(l);
    lab_handle(l, .stream = "a/asks", .presync = never_yet, .data = &k);
    lab_handle(l, .stream = "b/later");
    lab_handle(l, .stream = "c/reads", .preflight = not_ready, .body = lab_append);
    lab_handle(l, .stream = "d/now");
    const hd_env *env = lab_env_of(lab_world(l));
    hd_send_options later = { .not_before_ns = env->monotonic_ns(env->ctx) + 50000000 };
    lab_fire(l, "a/asks", "1", NULL);
    assert_status(hd_event_send(rt, hd_cell_at(rt, "b/later"), hd_null(), &later), HD_OK);
    lab_fire(l, "c/reads", "1", NULL);
    lab_fire(l, "d/now", "1", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_ran(l, "d/now");
    assert_int_equal(waits_in(l, "a"), HD_EVENT_WAITS_PRESYNC);
    assert_int_equal(waits_in(l, "b"), HD_EVENT_WAITS_TIME);
    assert_int_equal(waits_in(l, "c"), HD_EVENT_WAITS_READS);
    assert_int_equal(hd_runtime_event_waits(rt), HD_EVENT_WAITS_PRESYNC); /* the oldest */

    lab_advance_ms(l, 50);
    lab_turn(l);
    assert_ran(l, "b/later");
    lab_set(l, "ready", 1);
    for (int i = 0; i < 3; i++) lab_turn(l);
    assert_ran(l, "c/reads");
    hd_presync_done(k.sync, HD_OK);
    for (int i = 0; i < 3; i++) lab_turn(l);
    assert_ran(l, "a/asks");
    lab_idle(l);
    lab_close(l);
}

/* A pass costs nothing for lanes whose events wait for something else, however many there are. */
static void lanes_that_wait_cost_a_pass_nothing(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "c", .reads = "n", .throttle_ms = 1000);
    lab_handle(l, .stream = "busy/quick");
    char names[40][24];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "s%d/slow", i);
        lab_handle(l, .stream = names[i], .reads = "c");
    }
    lab_idle(l);
    lab_fire(l, "s0/slow", "0", NULL);
    lab_idle(l);
    lab_set(l, "n", 2);
    for (int i = 0; i < 40; i++) lab_fire(l, names[i], "1", NULL);
    for (int i = 0; i < 3; i++) lab_turn(l);
    uint64_t before = lab_event_stats(l).preflights;
    for (int i = 0; i < 100; i++) lab_fire(l, "busy/quick", "1", NULL);
    for (int i = 0; i < 150; i++) lab_turn(l);
    assert_true(lab_event_stats(l).preflights - before <= 110);
    lab_idle(l);
    sync_now(l);
    assert_int_equal(lab_event_stats(l).handled, 141);
    lab_close(l);
}

typedef struct sender {
    lab_outcome child;
} sender;

static hd_status send_across(lab_handler *self, hd_tx *tx, const hd_event *e) {
    sender *p = self->data;
    hd_status status = lab_tx_add(self, tx, "one/count", 1);
    return status ? status : lab_tx_send(self, tx, "two/child", e->payload, &p->child);
}

/* I10, 7.5: a follow-up in another space waits until its origin is certain, at the head of its own lane;
 * the lane of the origin and all others go on. */
static void i10_a_follow_up_waits_in_its_own_lane(void **state) {
    lab *l = lab_start();
    sender p = { 0 };
    lab_handle(l, .stream = "one/parent", .reads = "one/count", .body = send_across, .data = &p);
    lab_handle(l, .stream = "one/next");
    lab_handle(l, .stream = "two/child");
    lab_handle(l, .stream = "three/free");
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "one/parent", "1", NULL);
    for (int i = 0; i < 3; i++) lab_turn(l);
    lab_fire(l, "one/next", "2", NULL);
    lab_fire(l, "two/child", "3", NULL); /* behind the follow-up */
    lab_fire(l, "three/free", "4", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_ran(l, "one/parent one/next three/free");
    assert_int_equal(waits_in(l, "two"), HD_EVENT_WAITS_ORIGIN);
    lab_mend(lab_on(l, "a"));
    sync_now(l);
    assert_ran(l, "two/child two/child");
    assert_json(l, "two/child_log", "[1,3]");
    assert_outcome(p.child, HD_OK);
    lab_close(l);
}

/* ---- inputs that do not settle */

/* C361, I6: an event whose inputs do not settle is handled in the end, on what there is, and says so; one behind
 * it and one elsewhere are not lost with it. */
static void i6_inputs_that_do_not_settle_are_not_waited_for_for_ever(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 }, c = { 0 };
    add_quarrel(l);
    lab_handle(l, .stream = "see", .reads = "ping");
    lab_handle(l, .stream = "next");
    lab_handle(l, .stream = "other/free");
    lab_fire(l, "see", "1", &a);
    lab_fire(l, "next", "2", &b);
    lab_fire(l, "other/free", "3", &c);
    uint64_t began = lab_now_ms(l);
    lab_turn(l);
    assert_non_null(strstr(lab_ran(l), "other/free"));
    while (!lab_event_stats(l).runs || lab_event_stats(l).runs < 3) {
        assert_true(lab_now_ms(l) - began <= 2000);
        lab_advance_ms(l, 10);
        lab_turn(l);
    }
    assert_true(lab_now_ms(l) - began >= 250 + 500); /* they had their chance */
    sync_now(l);
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_OK);
    assert_outcome(c, HD_OK);
    assert_int_equal(lab_event_stats(l).unsettled, 1);
    assert_int_equal(lab_env_logged(lab_world(l), "runs on inputs that do not settle"), 1);
    lab_close(l);
}

static hd_status copy_ping(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "ping");
    return hd_value_status(v) ? hd_value_status(v) : lab_tx_set(self, tx, "seen", v);
}

/* C361, 7.5, I6: a handler that reads such an input reads its latest value, and its commit stands, though the
 * output is never sealed. */
static void i6_a_handler_may_read_what_does_not_settle(void **state) {
    lab *l = lab_start();
    lab_outcome o[3] = { 0 };
    add_quarrel(l);
    lab_handle(l, .stream = "see", .reads = "ping", .body = copy_ping);
    for (int i = 0; i < 3; i++) {
        uint64_t began = lab_now_ms(l);
        lab_fire(l, "see", "1", &o[i]);
        sync_now(l);
        assert_outcome(o[i], HD_OK);
        /* The lab's clock runs on while a file's verdicts are waited for, which depends on the machine. */
        assert_true(lab_is_sqlite(l) || lab_now_ms(l) - began <= 10000);
        assert_true(lab_get(l, "seen") > 0 && lab_get(l, "seen") <= lab_get(l, "ping"));
    }
    assert_int_equal(lab_event_stats(l).runs, 3);
    lab_close(l);
}

/* C361, I6: the same for a handler that reads such a value without having declared it. */
static void i6_a_handler_may_read_undeclared_what_does_not_settle(void **state) {
    lab *l = lab_start();
    lab_outcome o[2] = { 0 };
    add_quarrel(l);
    lab_effect(l, "look", "ping");
    lab_turn(l);
    lab_handle(l, .stream = "see", .body = copy_ping);
    for (int i = 0; i < 2; i++) {
        uint64_t began = lab_now_ms(l);
        lab_fire(l, "see", "1", &o[i]);
        sync_now(l);
        assert_outcome(o[i], HD_OK);
        assert_true(lab_is_sqlite(l) || lab_now_ms(l) - began <= 10000);
        assert_true(lab_get(l, "seen") > 0 && lab_get(l, "seen") <= lab_get(l, "ping"));
    }
    lab_close(l);
}

/* Sets n, having read m. */
static void set_n_after_m(lab *l, int64_t n) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_tx *tx;
    assert_status(hd_tx_begin(rt, &tx), HD_OK);
    hd_tx_get(tx, hd_cell_at(rt, "main/m"));
    assert_status(hd_tx_set_int(tx, hd_cell_at(rt, "main/n"), n), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* S4: what such an input was computed from may yet be refused. Then the handling falls with it, and the next
 * attempt reads again. */
static void s4_a_handling_of_unsettled_inputs_falls_with_what_is_pending(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_set(l, "m", 1);
    lab_set(l, "n", 0);
    lab_compute(l, "ping", "pong n", sum_and_one);
    lab_compute(l, "pong", "ping", plus_one);
    lab_handle(l, .stream = "see", .reads = "ping", .body = copy_ping);
    lab_fire(l, "see", "1", NULL);
    sync_now(l);
    lab_advance_ms(l, 10000);
    lab_on(l, "b");
    lab_set(l, "m", 2);
    sync_now(l);
    lab_on(l, "a");
    lab_cut(lab_on(l, "a"));
    set_n_after_m(l, 1000000);
    lab_fire(l, "see", "2", &o);
    for (int i = 0; lab_event_stats(l).runs < 2; i++) {
        assert_true(i < 100);
        lab_advance_ms(l, 100);
        lab_turn(l);
    }
    assert_true(lab_get(l, "seen") > 1000000);
    lab_mend(lab_on(l, "a"));
    lab_idle(l);
    assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_STALE); /* of n */
    assert_outcome(o, HD_OK);
    assert_int_equal(lab_get(l, "n"), 0);
    assert_true(lab_event_stats(l).runs > 2 && lab_get(l, "seen") > 0);
    lab_close(l);
}

/* C362, I6: settle and sync return while an event waits for inputs that do not settle; settle says that they do
 * not. */
static void i6_settle_and_sync_return(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    lab_outcome a = { 0 }, b = { 0 };
    add_quarrel(l);
    lab_effect(l, "watch", "ping");
    lab_handle(l, .stream = "see", .reads = "ping");
    lab_fire(l, "see", "1", &a);
    assert_status(hd_runtime_settle(rt), HD_UNSETTLED);
    assert_int_equal(hd_status_class(HD_UNSETTLED), HD_CLASS_PENDING);
    assert_true(lab_now_ms(l) <= 250 + 500 + 1000 + 2000);
    lab_fire(l, "see", "2", &b);
    assert_status(hd_runtime_sync(rt), HD_OK);
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_OK);
    for (int i = 0; i < 50 && !hd_runtime_is_idle(rt);
         i++) { /* in a file: verdicts come when they come */
        assert_status(hd_runtime_sync(rt), HD_OK);
        lab_turn(l);
    }
    assert_true(hd_runtime_is_idle(rt));
    assert_int_equal(lab_stats(l).unsettled, 1);
    uint64_t before = lab_now_ms(l);
    assert_status(hd_runtime_settle(rt), HD_UNSETTLED); /* it does not wait again for the same */
    assert_int_equal(lab_now_ms(l), before);

    lab_cancel(l, "watch"); /* what nobody looks at is nobody's concern */
    assert_status(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(lab_stats(l).unsettled, 0);
    lab_close(l);
}

static double until_told(const double *in) { return in[1] > 0 ? 7 : in[0] + 1; }

/* C377: an event does not wait again for what has not settled, also when a change would let it settle: the backoff is
 * at 2 s, and the handler reads the latest values. The next event after the cycle has settled reads right ones. */
static void i6_a_change_gives_no_patience_back(void **state) {
    lab *l = lab_start();
    lab_compute(l, "ping", "pong stop", until_told);
    lab_compute(l, "pong", "ping", plus_one);
    lab_effect(l, "watch", "ping");
    lab_handle(l, .stream = "see", .reads = "ping", .body = copy_ping);
    assert_status(hd_runtime_settle(lab_runtime_now(l)), HD_UNSETTLED);
    lab_advance_ms(l, 10);
    lab_set(l, "stop", 1);
    lab_fire(l, "see", "1", NULL);
    uint64_t began = lab_now_ms(l);
    for (int i = 0; i < 10 && !lab_event_stats(l).runs; i++) lab_turn(l);
    assert_int_equal(lab_event_stats(l).runs, 1);
    assert_true(lab_is_sqlite(l) || lab_now_ms(l) == began);
    assert_int_equal(lab_event_stats(l).unsettled, 1);
    assert_true(lab_get(l, "seen") > 7);
    lab_advance_ms(l, 2000);
    lab_idle(l);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_int_equal(lab_get(l, "seen"), 7);
    lab_close(l);
}

/* A handler is warned of once while its inputs do not settle, and again in the next such time. */
static void a_handler_is_warned_of_once_each_time(void **state) {
    lab *l = lab_start();
    add_quarrel(l);
    lab_handle(l, .stream = "see", .reads = "ping");
    for (int i = 0; i < 5; i++) {
        lab_fire(l, "see", "1", NULL);
        sync_now(l);
    }
    assert_int_equal(lab_event_stats(l).unsettled, 5);
    assert_int_equal(lab_env_logged(lab_world(l), "handler \"see\" runs on inputs"), 1);
    lab_cancel(l, "pong");
    lab_advance_ms(l, 2000);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    sync_now(l);
    assert_int_equal(lab_event_stats(l).unsettled, 5);
    lab_compute(l, "pong", "ping", plus_one);
    lab_fire(l, "see", "1", NULL);
    sync_now(l);
    assert_int_equal(lab_env_logged(lab_world(l), "handler \"see\" runs on inputs"), 2);
    lab_close(l);
}

/* Debounced inputs are waited for, also beside inputs that do not settle. */
static void a_debounced_input_beside_a_quarrel_is_waited_for(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    add_quarrel(l);
    lab_add(l, .name = "c", .reads = "n", .debounce_ms = 5000);
    lab_effect(l, "show", "c");
    lab_handle(l, .stream = "see", .reads = "c ping");
    lab_idle(l);
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_outcome o = { 0 };
    lab_fire(l, "see", "1", &o);
    lab_turn(l);
    for (int i = 0; i < 49; i++) {
        lab_advance_ms(l, 100);
        lab_turn(l);
    }
    assert_int_equal(o.told, 0);
    lab_advance_ms(l, 200);
    lab_turn(l);
    sync_now(l);
    assert_outcome(o, HD_OK);
    lab_close(l);
}

/* I6: a quarrel that only an event has set off does not go on for nobody. */
static void a_quarrel_that_an_event_set_off_comes_to_rest(void **state) {
    lab *l = lab_start();
    add_quarrel(l);
    lab_handle(l, .stream = "see", .reads = "ping");
    lab_fire(l, "see", "1", NULL);
    sync_now(l);
    lab_ran(l);
    for (int i = 0; i < 10; i++) {
        lab_advance_ms(l, 2000);
        lab_turn(l);
    }
    assert_ran(l, "");
    lab_close(l);
}

/* ---- events behind suspended runs */

typedef struct slow_node {
    hd_run *run;    /* suspended */
    double at_most; /* greater inputs are suspended */
} slow_node;

static hd_status copy_slowly(lab_node *self, hd_tx *tx) {
    slow_node *slow = self->data;
    double n = lab_tx_number(self, tx, "n");
    if (n <= slow->at_most) return lab_tx_put(self, tx, "slow", n);
    hd_status status = hd_tx_suspend(tx, &slow->run);
    return status ? status : HD_PENDING;
}

static hd_status copy_late(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "late");
    return hd_value_status(v) ? hd_value_status(v) : lab_tx_set(self, tx, "seen", v);
}

/* I4: however long an event has waited for a suspended run, the debounced node that reads its result is waited for,
 * too: it does not go round. */
static void i4_a_debounced_reader_of_a_slow_run_is_waited_for(void **state) {
    lab *l = lab_start();
    slow_node slow = { NULL, 1 };
    lab_outcome o = { 0 };
    lab_set(l, "n", 1);
    lab_add(l, .name = "slow", .declares = "n", .body = copy_slowly, .data = &slow);
    lab_add(l, .name = "late", .reads = "slow", .debounce_ms = 50);
    lab_handle(l, .stream = "see", .reads = "late", .body = copy_late);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_int_equal(lab_get(l, "seen"), 1);
    lab_set(l, "n", 2);
    lab_fire(l, "see", "2", &o);
    lab_turn(l);
    assert_non_null(slow.run);
    lab_advance_ms(l, 60000);
    lab_turn(l);
    assert_status(
        hd_tx_set_double(hd_run_tx(slow.run), hd_cell_at(lab_runtime_now(l), "main/slow"), 2),
        HD_OK);
    hd_run_resume(slow.run, HD_OK);
    lab_idle(l);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_int_equal(lab_get(l, "seen"), 2);
    lab_close(l);
}

/* I4: nodes with windows of different lengths, one behind the other, run a few times each; their last runs are
 * waited for. */
static void i4_windows_of_different_lengths_are_waited_for(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_set(l, "n", 1);
    lab_add(l, .name = "long", .reads = "n", .debounce_ms = 170);
    lab_add(l, .name = "middle", .reads = "n", .debounce_ms = 90);
    lab_add(l, .name = "late", .reads = "n middle long", .debounce_ms = 10);
    lab_handle(l, .stream = "see", .reads = "late", .body = copy_late);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_int_equal(lab_get(l, "seen"), 3);
    lab_set(l, "n", 2);
    lab_fire(l, "see", "2", &o);
    lab_idle(l);
    sync_now(l);
    assert_outcome(o, HD_OK);
    assert_int_equal(lab_get(l, "seen"), 6);
    lab_close(l);
}

static hd_status not_now(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "copy");
    return hd_value_status(v) ? hd_value_status(v) : HD_TRANSIENT;
}

/* 8.4: sync does not wait for suspended runs, nor for events behind them, also through other nodes; idle does,
 * and the event is handled when the run has ended. */
static void sync_does_not_wait_for_events_behind_suspended_runs(void **state) {
    lab *l = lab_start();
    slow_node slow = { NULL, 1 };
    lab_outcome o = { 0 };
    lab_set(l, "n", 2);
    lab_add(l, .name = "slow", .declares = "n", .body = copy_slowly, .data = &slow);
    lab_compute(l, "copy", "slow", NULL);
    lab_handle(l, .stream = "see", .reads = "copy");
    lab_fire(l, "see", "1", &o);
    sync_now(l);
    assert_non_null(slow.run);
    assert_int_equal(o.told, 0);
    assert_int_equal(waits_in(l, "main"), HD_EVENT_WAITS_NODES);
    assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
    hd_run_resume(slow.run, HD_OK);
    lab_idle(l);
    sync_now(l);
    assert_outcome(o, HD_OK);
    lab_close(l);
}

/* Close tells HD_CLOSED to the senders of events behind suspended runs, also of those that were begun. */
static void close_does_not_wait_for_events_behind_suspended_runs(void **state) {
    lab *l = lab_start();
    slow_node slow = { NULL, 1 };
    lab_outcome begun = { 0 }, queued = { 0 };
    lab_set(l, "n", 1);
    lab_add(l, .name = "slow", .declares = "n", .body = copy_slowly, .data = &slow);
    lab_compute(l, "copy", "slow", NULL);
    lab_handle(l, .stream = "see", .reads = "copy", .body = not_now);
    lab_fire(l, "see", "1", &begun);
    lab_fire(l, "see", "2", &queued);
    for (int i = 0; !lab_event_stats(l).runs; i++) {
        assert_true(i < 100);
        lab_turn(l);
    }
    lab_set(l, "n", 2);
    assert_int_equal(begun.told, 0);
    lab_runtime_close(lab_on(l, "a"));
    assert_non_null(slow.run); /* close tried the event again, and that ran the computation */
    assert_outcome(begun, HD_CLOSED);
    assert_outcome(queued, HD_CLOSED);
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_that_waits_holds_up_its_own_space_only),
        cmocka_unit_test(each_lane_waits_for_itself),
        cmocka_unit_test(lanes_that_wait_cost_a_pass_nothing),
        cmocka_unit_test(i10_a_follow_up_waits_in_its_own_lane),
        cmocka_unit_test(i6_inputs_that_do_not_settle_are_not_waited_for_for_ever),
        cmocka_unit_test(i6_a_handler_may_read_what_does_not_settle),
        cmocka_unit_test(i6_a_handler_may_read_undeclared_what_does_not_settle),
        cmocka_unit_test(s4_a_handling_of_unsettled_inputs_falls_with_what_is_pending),
        cmocka_unit_test(i6_settle_and_sync_return),
        cmocka_unit_test(i6_a_change_gives_no_patience_back),
        cmocka_unit_test(a_handler_is_warned_of_once_each_time),
        cmocka_unit_test(a_debounced_input_beside_a_quarrel_is_waited_for),
        cmocka_unit_test(a_quarrel_that_an_event_set_off_comes_to_rest),
        cmocka_unit_test(i4_a_debounced_reader_of_a_slow_run_is_waited_for),
        cmocka_unit_test(i4_windows_of_different_lengths_are_waited_for),
        cmocka_unit_test(sync_does_not_wait_for_events_behind_suspended_runs),
        cmocka_unit_test(close_does_not_wait_for_events_behind_suspended_runs),
    };
    LAB_EVERYWHERE(tests);
}
