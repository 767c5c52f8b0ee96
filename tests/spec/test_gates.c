/* test_gates.c -- area I: time gates; the echo breaker (C351) and the time slice (C352). */
#include "base/sabotage.h"
#include "lab_inside.h"
#include "spec.h"

static uint64_t now_ns(void) {
    const hd_env *env = lab_env_of(lab_world(l));
    return env->monotonic_ns(env->ctx);
}

/* How long until pump wants to be called; -1: never. A file is looked into from time to time. */
static int64_t wake_ms(void) {
    uint64_t at = lab_wakes_at(l);
    return at == UINT64_MAX ? -1 : at <= now_ns() ? 0 : (int64_t)((at - now_ns()) / 1000000);
}

static hd_node node_named(const char *name) { return lab_find(l, name)->node; }
static void set_debounce(const char *name, uint32_t ms) {
    assert_int_equal(hd_node_set_debounce(lab_runtime_now(l), node_named(name), ms), HD_OK);
}
static void set_throttle(const char *name, uint32_t ms) {
    assert_int_equal(hd_node_set_throttle(lab_runtime_now(l), node_named(name), ms), HD_OK);
}
static uint32_t debounce_of(const char *name) {
    return hd_node_debounce(lab_runtime_now(l), node_named(name));
}
static uint32_t throttle_of(const char *name) {
    return hd_node_throttle(lab_runtime_now(l), node_named(name));
}

/* ---- debounce */

/* C179: a debounce can be set, read, and cleared by zero. */
static void a_debounce_is_what_was_set(void **state) {
    lab_effect(l, "show", "n");
    assert_int_equal(debounce_of("show"), 0);
    set_debounce("show", 200);
    assert_int_equal(debounce_of("show"), 200);
    set_debounce("show", 0);
    assert_int_equal(debounce_of("show"), 0);
    hd_node gone = node_named("show");
    hd_node_unregister(lab_runtime_now(l), gone);
    assert_int_equal(hd_node_set_debounce(lab_runtime_now(l), gone, 5), HD_NOT_FOUND);
    assert_int_equal(hd_node_debounce(lab_runtime_now(l), gone), 0);
}

/* 8.1: a debounce that is set on an invalid node counts from then on, also after one that was cleared. */
static void a_debounce_set_on_an_invalid_node_holds_it(void **state) {
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    set_debounce("show", 400);
    set_debounce("show", 0);
    set_debounce("show", 300);
    lab_turn(l);
    assert_ran(l, "");
    assert_int_equal(lab_info(l, "show").why_not, HD_WHY_NOT_DEBOUNCE);
    lab_advance_ms(l, 299);
    lab_turn(l);
    assert_ran(l, "");
    lab_advance_ms(l, 1);
    lab_turn(l);
    assert_ran(l, "show");
}

/* 8.1: a throttle that is set on a node that has run holds its next run, from the moment it was set. */
static void a_throttle_set_after_a_run_holds_the_next_one(void **state) {
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_ran(l);
    set_throttle("show", 400);
    lab_set(l, "n", 1);
    lab_turn(l);
    assert_ran(l, "");
    assert_int_equal(lab_info(l, "show").why_not, HD_WHY_NOT_THROTTLE);
    lab_advance_ms(l, 399);
    lab_turn(l);
    assert_ran(l, "");
    lab_advance_ms(l, 1);
    lab_turn(l);
    assert_ran(l, "show");
}

/* C180, C181: a debounce given with the registration holds for the first run of an effect. */
static void a_debounced_effect_waits_for_its_first_run(void **state) {
    lab_add(l, .name = "show", .reads = "n", .effect = true, .debounce_ms = 100);
    assert_int_equal(debounce_of("show"), 100);
    lab_turn(l);
    assert_ran(l, "");
    assert_int_equal(lab_info(l, "show").why_not, HD_WHY_NOT_DEBOUNCE);
    lab_advance_ms(l, 99);
    lab_turn(l);
    assert_ran(l, "");
    lab_advance_ms(l, 1);
    lab_turn(l);
    assert_ran(l, "show");
}

/* C182: a debounced computation runs at once when it is first demanded; after that, once, when its
 * inputs have been quiet. */
static void a_debounced_computation_runs_at_first_demand(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "copy", .reads = "n", .debounce_ms = 100);
    lab_effect(l, "show", "copy");
    lab_turn(l);
    assert_ran(l, "copy show");
    for (int i = 2; i <= 4; i++) {
        lab_set(l, "n", i);
        lab_turn(l);
        lab_advance_ms(l, 60);
    }
    lab_turn(l);
    assert_ran(l, "");
    lab_advance_ms(l, 40);
    lab_turn(l);
    assert_ran(l, "copy show");
    assert_seen(l, "show", "4");
}

/* C183: many triggers inside the window are one run. */
static void a_burst_is_one_run(void **state) {
    lab_add(l, .name = "show", .reads = "n", .effect = true, .debounce_ms = 100);
    lab_idle(l);
    lab_ran(l);
    for (int i = 1; i <= 20; i++) {
        lab_set(l, "n", i);
        lab_turn(l);
        lab_advance_ms(l, 5);
    }
    lab_advance_ms(l, 100);
    lab_turn(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "20");
    lab_advance_ms(l, 1000);
    lab_turn(l);
    assert_ran(l, "");
}

/* C184: a shorter debounce moves the end of a window that is running, and the wake with it. */
static void a_shorter_debounce_ends_earlier(void **state) {
    lab_add(l, .name = "show", .reads = "n", .effect = true, .debounce_ms = 500);
    lab_turn(l);
    assert_int_equal(wake_ms(), 500);
    lab_advance_ms(l, 50);
    set_debounce("show", 100);
    assert_int_equal(wake_ms(), 50);
    lab_advance_ms(l, 50);
    lab_turn(l);
    assert_ran(l, "show");
}

/* C185: a clean node does not wait, and asking arms nothing. */
static void asking_arms_nothing(void **state) {
    lab_add(l, .name = "show", .reads = "n", .effect = true, .debounce_ms = 100);
    lab_idle(l);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lab_info(l, "show").why_not, HD_WHY_NOT_CLEAN);
        assert_int_equal(lab_info(l, "show").eligible_at_ns, 0);
        assert_int_equal(debounce_of("show"), 100);
    }
    assert_int_equal(wake_ms(), -1);
}

/* C186: a debounced node that is cancelled does not run, nor does idle wait for it. */
static void a_cancelled_node_holds_nothing(void **state) {
    lab_add(l, .name = "show", .reads = "n", .effect = true, .debounce_ms = 100);
    lab_turn(l);
    lab_cancel(l, "show");
    lab_turn(l);
    assert_int_equal(lab_wakes_at(l), UINT64_MAX);
    uint64_t before = lab_now_ms(l);
    lab_idle(l);
    assert_int_equal(lab_now_ms(l), before);
    lab_advance_ms(l, 200);
    lab_turn(l);
    assert_ran(l, "");
}

/* ---- throttle */

/* C187: a throttle can be set by option, read, changed and cleared. */
static void a_throttle_is_what_was_set(void **state) {
    lab_add(l, .name = "show", .reads = "n", .effect = true, .throttle_ms = 300);
    assert_int_equal(throttle_of("show"), 300);
    set_throttle("show", 50);
    assert_int_equal(throttle_of("show"), 50);
    set_throttle("show", 0);
    assert_int_equal(throttle_of("show"), 0);
}

/* C188: a throttled node that never ran runs at once. */
static void a_throttled_node_runs_at_first(void **state) {
    lab_add(l, .name = "copy", .reads = "n", .throttle_ms = 300);
    lab_add(l, .name = "show", .reads = "copy", .effect = true, .throttle_ms = 300);
    lab_turn(l);
    assert_ran(l, "copy show");
}

/* C189: within the window it stays invalid; it is parked, not looked at again and again. */
static void a_throttled_node_is_parked(void **state) {
    lab_add(l, .name = "slow", .reads = "n", .effect = true, .throttle_ms = 300);
    lab_effect(l, "other", "m");
    lab_turn(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    uint64_t before = lab_stats(l).filtered;
    for (int i = 0; i < 50; i++) {
        lab_set(l, "m", i + 1);
        lab_turn(l);
    }
    assert_int_equal(lab_find(l, "slow")->runs, 1);
    assert_int_equal(lab_info(l, "slow").status, HD_NODE_INVALID);
    assert_int_equal(lab_info(l, "slow").why_not, HD_WHY_NOT_THROTTLE);
    assert_true(lab_stats(l).filtered - before <= 3);
}

/* C190: when the window ends the node runs by itself, with the latest value. */
static void a_throttled_node_wakes_by_itself(void **state) {
    lab_add(l, .name = "slow", .reads = "n", .effect = true, .throttle_ms = 300);
    lab_turn(l);
    lab_set(l, "n", 1);
    lab_turn(l);
    lab_set(l, "n", 2);
    lab_turn(l);
    lab_ran(l);
    assert_int_equal(wake_ms(), 300);
    lab_advance_ms(l, 300);
    lab_turn(l);
    assert_ran(l, "slow");
    assert_seen(l, "slow", "2");
}

/* C191: clearing the throttle of an invalid node lets it run at once. */
static void a_cleared_throttle_lets_go(void **state) {
    lab_add(l, .name = "slow", .reads = "n", .effect = true, .throttle_ms = 300);
    lab_turn(l);
    lab_set(l, "n", 1);
    lab_turn(l);
    lab_ran(l);
    set_throttle("slow", 0);
    lab_turn(l);
    assert_ran(l, "slow");
}

/* C192: a pull inside the window gives the old value, and the node stays invalid. */
static void a_pull_does_not_break_a_throttle(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "slow", .reads = "n", .throttle_ms = 300);
    assert_string_equal(lab_pull(l, "slow"), "1");
    lab_set(l, "n", 2);
    assert_string_equal(lab_pull(l, "slow"), "1");
    assert_int_equal(lab_info(l, "slow").status, HD_NODE_INVALID);
    lab_advance_ms(l, 300);
    assert_string_equal(lab_pull(l, "slow"), "2");
}

/* C193: a shorter throttle counts from the last run. */
static void a_shorter_throttle_ends_earlier(void **state) {
    lab_add(l, .name = "slow", .reads = "n", .effect = true, .throttle_ms = 1000);
    lab_turn(l);
    lab_set(l, "n", 1);
    lab_turn(l);
    lab_ran(l);
    lab_advance_ms(l, 100);
    set_throttle("slow", 150);
    assert_int_equal(wake_ms(), 50);
    lab_advance_ms(l, 50);
    lab_turn(l);
    assert_ran(l, "slow");
}

/* ---- auto-debounce */

/* Takes as long as the number behind `data` says. */
static hd_status take_time(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    lab_advance_ms(self->l, *(uint32_t *)self->data);
    return self->spec.effect ? HD_OK : lab_tx_put(self, tx, self->spec.name, n);
}

static void run_some(int times) {
    for (int i = 0; i < times; i++) {
        lab_set(l, "n", lab_get(l, "n") + 1);
        lab_turn(l);
        lab_advance_ms(l, 1000);
        lab_turn(l);
    }
}

static uint32_t slow_ms = 60, fast_ms = 10;

/* C194: an effect that takes 50 ms or more on average gets a debounce of 100 ms after three runs. */
static void a_slow_effect_is_debounced(void **state) {
    lab_add(l, .name = "slow", .effect = true, .body = take_time, .data = &slow_ms);
    lab_turn(l);
    run_some(1);
    assert_int_equal(debounce_of("slow"), 0);
    run_some(1);
    assert_int_equal(lab_find(l, "slow")->runs, 3);
    assert_int_equal(debounce_of("slow"), 100);
    lab_set(l, "n", 1);
    lab_turn(l);
    assert_int_equal(lab_info(l, "slow").why_not, HD_WHY_NOT_DEBOUNCE);
}

static void look_away(hd_node node_, void *ctx) { (void)ctx, (void)node_; }

/* Ten runs of a slow effect beside a cheap computation and a cheap effect; what its debounce is then, and
 * after which run it had it. */
static int runs_until_debounced(bool watched) {
    lab_add(l, .name = "slow", .effect = true, .body = take_time, .data = &slow_ms);
    lab_compute(l, "cheap", "n", NULL);
    lab_effect(l, "show", "cheap");
    if (watched) {
        hd_runtime *rt = lab_runtime_now(l);
        assert_int_equal(hd_break_name(rt, "show", look_away, NULL), HD_OK);
        assert_int_equal(hd_trace_enable(rt, HD_TRACE_ALL), HD_OK);
    }
    lab_turn(l);
    for (int i = 0; i < 10; i++) {
        if (debounce_of("slow")) return (int)lab_find(l, "slow")->runs;
        run_some(1);
    }
    return 0;
}

/* 8.2, P10, C194: a slow effect is debounced beside cheap nodes, whether or not anything looks. */
static void a_slow_effect_beside_cheap_nodes_is_debounced(void **state) {
    assert_int_equal(runs_until_debounced(false), 3);
}
static void who_looks_does_not_change_the_debounce(void **state) {
    assert_int_equal(runs_until_debounced(true), 3);
}

/* 8.2: an effect that becomes slow after many fast runs is found out, and timed from then on. */
static void an_effect_that_becomes_slow_is_found_out(void **state) {
    uint32_t takes = 0;
    lab_add(l, .name = "slow", .effect = true, .body = take_time, .data = &takes);
    lab_turn(l);
    for (int i = 0; i < 100; i++) {
        lab_set(l, "n", i + 1);
        lab_turn(l);
    }
    takes = 2000;
    for (int i = 0; i < 80 && !debounce_of("slow"); i++) {
        lab_set(l, "n", 1000 + i);
        lab_turn(l);
    }
    assert_int_equal(debounce_of("slow"), 100);
}

/* C195: a slow computation never is. */
static void a_slow_computation_is_not_debounced(void **state) {
    lab_add(l, .name = "slow", .body = take_time, .data = &slow_ms);
    lab_effect(l, "show", "slow");
    lab_turn(l);
    run_some(6);
    assert_int_equal(debounce_of("slow"), 0);
}

/* C196: nor is an effect that opted out. */
static void who_opted_out_is_not_debounced(void **state) {
    lab_add(l, .name = "slow", .effect = true, .body = take_time, .data = &slow_ms,
            .no_auto_debounce = true);
    lab_add(l, .name = "later", .effect = true, .body = take_time, .data = &slow_ms);
    assert_int_equal(hd_node_set_auto_debounce(lab_runtime_now(l), node_named("later"), false),
                     HD_OK);
    lab_turn(l);
    run_some(6);
    assert_int_equal(debounce_of("slow"), 0);
    assert_int_equal(debounce_of("later"), 0);
}

static void dawdle(hd_value v, void *ctx) {
    lab_advance_ms(l, slow_ms);
    *(double *)ctx = hd_value_as_double(v, -1);
}

/* C196: a pull is answered at once, however slow those before it were. */
static void a_pull_is_not_debounced(void **state) {
    lab_set(l, "n", 7);
    for (int i = 0; i < 6; i++) {
        double got = -1;
        hd_cell n = hd_cell_at(lab_runtime_now(l), "main/n");
        assert_int_equal(hd_pull(lab_runtime_now(l), n, dawdle, &got), HD_OK);
        lab_turn(l);
        assert_true(got == 7);
    }
    assert_int_equal(lab_stats(l).nodes, 0);
}

/* C197: nor is a fast one. */
static void a_fast_effect_is_not_debounced(void **state) {
    lab_add(l, .name = "fast", .effect = true, .body = take_time, .data = &fast_ms);
    lab_turn(l);
    run_some(30);
    assert_int_equal(debounce_of("fast"), 0);
}

/* ---- the one timer */

/* C198: a gate that is released early leaves the timer at the true minimum. */
static void the_timer_is_at_the_true_minimum(void **state) {
    lab_add(l, .name = "one", .reads = "n", .effect = true, .debounce_ms = 100);
    lab_add(l, .name = "two", .reads = "n", .effect = true, .debounce_ms = 300);
    lab_turn(l);
    assert_int_equal(wake_ms(), 100);
    set_debounce("one", 0);
    assert_int_equal(wake_ms(), 0); /* there is something to do now */
    lab_turn(l);
    assert_ran(l, "one");
    assert_int_equal(wake_ms(), 300);
    lab_cancel(l, "two");
    lab_turn(l);
    assert_int_equal(wake_ms(), -1);
}

/* C199: a gate that is armed on a node that is gone arms no timer. */
static void nothing_is_armed_for_who_is_gone(void **state) {
    lab_effect(l, "show", "n");
    lab_turn(l);
    hd_node gone = node_named("show");
    lab_cancel(l, "show");
    lab_turn(l);
    assert_int_equal(hd_node_set_debounce(lab_runtime_now(l), gone, 100), HD_NOT_FOUND);
    assert_int_equal(hd_node_set_throttle(lab_runtime_now(l), gone, 100), HD_NOT_FOUND);
    lab_set(l, "n", 1);
    lab_turn(l);
    assert_int_equal(wake_ms(), -1);
}

/* ---- retries that are owed */

static hd_status copy_n_to_m(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "m", lab_tx_number(self, tx, "n"));
}

/* Has the commit that runtime a makes next refused: b changes n under it. */
static void refuse_next(lab_runtime *a, lab_runtime *b, const char *n) {
    lab_hold(a);
    lab_turn(l);
    lab_write(b, "n", n);
    lab_pump(b);
    lab_mend(a);
}

/* C201: a retry that is owed does not wait for debounce and throttle, also when more comes. */
static void a_retry_does_not_wait_at_the_gates(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_add(l, .name = "copy", .effect = true, .body = copy_n_to_m, .throttle_ms = 5000);
    refuse_next(a, b, "2");
    set_debounce("copy", 3000);
    uint64_t before = lab_now_ms(l);
    lab_settle(l);
    assert_true(lab_now_ms(l) - before < 1000);
    assert_string_equal(lab_json(l, "m"), "2");
    assert_int_equal(lab_stats(l).stale_retries, 1);
}

static hd_status feed_itself(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    return lab_tx_put(self, tx, "x", lab_tx_number(self, tx, "y") + n);
}
static double plus_one(const double *in) { return in[0] + 1; }

/* C201: but it waits for a backoff. */
static void a_retry_waits_for_a_backoff(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_settle(l);
    lab_compute(l, "y", "x", plus_one);
    lab_add(l, .name = "loop", .effect = true, .body = feed_itself, .declares = "y n");
    lab_settle(l);
    uint64_t runs = lab_find(l, "loop")->runs;
    assert_true(lab_info(l, "loop").why_not == HD_WHY_NOT_BACKOFF ||
                lab_info(l, "y").why_not == HD_WHY_NOT_BACKOFF);
    refuse_next(a, b, "5");
    lab_settle(l);
    /* The loop may run for the new n; round after round it does not. */
    assert_true(lab_find(l, "loop")->runs <= runs + 10);
    assert_true(wake_ms() > 0);
}

/* ---- I6: bounded non-convergence */

/* Writes one more than it reads from the cell named by `data`. */
static hd_status go_one_further(lab_node *self, hd_tx *tx) {
    if (self->runs > 500) lab_fail("%s runs and runs", self->spec.name);
    double n = lab_tx_number(self, tx, self->data);
    return lab_tx_put(self, tx, self->spec.name, n + 1);
}

/* I6: a graph that does not settle goes on behind growing waits, starves nobody, and idle comes. */
static void i6_what_does_not_settle_is_slowed_down(void **state) {
    lab_add(l, .name = "ping", .body = go_one_further, .data = "pong");
    lab_add(l, .name = "pong", .body = go_one_further, .data = "ping");
    lab_effect(l, "watch", "pong");
    lab_effect(l, "other", "n");
    lab_turn(l);
    assert_true(lab_find(l, "ping")->runs <= 11 && lab_find(l, "pong")->runs <= 11);
    assert_int_equal(lab_find(l, "other")->runs, 1);
    assert_int_equal(wake_ms(), 250);
    lab_idle(l);
    assert_true(lab_find(l, "ping")->runs <= 60);
    lab_set(l, "n", 1);
    lab_turn(l);
    assert_seen(l, "other", "1");
    lab_advance_ms(l, 10000);
    lab_turn(l);
    assert_true(lab_find(l, "ping")->runs > 11); /* slowed down, never stopped */
    lab_cancel(l, "watch");                      /* closing takes time, and so rounds */
}

/* Without backoff a pass never ends, and I6 notices. */
static void without_backoff_i6_fails(void **state) {
    struct CMUnitTest test = S(i6_what_does_not_settle_is_slowed_down);
    spec_must_notice(LEAVE_OUT_BACKOFF, test);
}

/* ---- C351: the echo breaker */

/* An opinion: n should be what `data` says. */
static hd_status insist(lab_node *self, hd_tx *tx) {
    double opinion = *(double *)self->data;
    if (lab_tx_number(self, tx, "n") == opinion) return HD_OK;
    return lab_tx_put(self, tx, "n", opinion);
}
static double one = 1, two = 2;

static bool is_slowed_down(const char *runtime, const char *name) {
    lab_on(l, runtime);
    return lab_info(l, name).why_not == HD_WHY_NOT_ECHO;
}

/* Until one of them is slowed down. Others' commits to a file are noticed as time passes. */
static void let_them_quarrel(void) {
    lab_settle(l);
    for (int i = 0; i < 100 && !is_slowed_down("a", "mine") && !is_slowed_down("b", "ours"); i++) {
        lab_advance_ms(l, 20);
        lab_settle(l);
    }
}

/* C351: two writers that keep overwriting each other are slowed down, from 0.5 s to 30 s, and idle
 * does not wait for it. */
static void two_opinions_are_slowed_down(void **state) {
    lab_on(l, "b");
    lab_add(l, .name = "ours", .effect = true, .body = insist, .data = &two);
    lab_on(l, "a");
    lab_add(l, .name = "mine", .effect = true, .body = insist, .data = &one);
    let_them_quarrel(); /* in memory they would not come to rest otherwise */
    uint64_t runs = lab_find(l, "mine")->runs;
    assert_true(runs >= 12 && runs <= 30);
    bool mine = is_slowed_down("a", "mine");
    assert_true(mine || is_slowed_down("b", "ours"));
    assert_true(lab_env_logged(lab_world(l), "keep overwriting each other") >= 1);
    lab_on(l, mine ? "a" : "b");
    assert_true(wake_ms() > 450 && wake_ms() <= 500);
    assert_true(hd_runtime_is_idle(lab_runtime_now(l)));

    uint64_t last = 0;
    for (int i = 0; i < 10; i++) { /* each round waits longer, up to 30 s */
        lab_on(l, mine ? "a" : "b");
        lab_advance_ms(l, (uint64_t)wake_ms());
        lab_settle(l);
        lab_on(l, mine ? "a" : "b");
        if (wake_ms() < 0) break;
        /* In a file a moment of the wait may have passed already. */
        assert_true((uint64_t)wake_ms() + 100 >= last && wake_ms() <= 30000);
        last = (uint64_t)wake_ms();
    }
}

static hd_status insist_elsewhere(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, self->data, lab_tx_number(self, tx, "n"));
}

/* C351: runs that follow an input into another field or document are no quarrel. */
static void following_an_input_is_no_echo(void **state) {
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_add(l, .name = "copy", .effect = true, .body = insist_elsewhere, .data = "m");
    lab_add(l, .name = "field", .effect = true, .body = insist_elsewhere, .data = "f#/x");
    for (int i = 1; i <= 40; i++) {
        char json[16];
        snprintf(json, sizeof json, "%d", i);
        lab_write(b, "n", json);
        lab_pump(b);
        lab_pump(a);
        lab_settle(l);
    }
    assert_string_equal(lab_json(l, "m"), "40");
    assert_int_equal(lab_env_logged(lab_world(l), "overwriting"), 0);
    assert_int_equal(lab_info(l, "copy").why_not, HD_WHY_NOT_CLEAN);
}

/* C351: a run that agrees with the other ends the quarrel. */
static void agreeing_ends_the_quarrel(void **state) {
    double opinion = 1;
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_add(l, .name = "mine", .effect = true, .body = insist, .data = &opinion);
    for (int i = 0; i < 10; i++) {
        lab_write(b, "n", "7");
        lab_settle(l);
        lab_pump(a);
    }
    opinion = 7; /* it gives in: the count starts over */
    lab_write(b, "n", "8");
    lab_settle(l);
    lab_write(b, "n", "7");
    lab_settle(l);
    opinion = 1;
    for (int i = 0; i < 10; i++) {
        lab_write(b, "n", "7");
        lab_settle(l);
        lab_pump(a);
    }
    assert_int_equal(lab_env_logged(lab_world(l), "overwriting"), 0);
}

/* Without the breaker they go on for ever, and C351 notices. */
static void without_the_echo_breaker_c351_fails(void **state) {
    struct CMUnitTest test = S(two_opinions_are_slowed_down);
    spec_must_notice(LEAVE_OUT_ECHO, test);
}

/* ---- C352: the time slice */

/* C352: a pass gives way after its time slice, between two nodes, and goes on when it is called
 * again. */
static void a_pass_gives_way_after_its_slice(void **state) {
    char name[16];
    lab_set(l, "n", 1);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "e%d", i);
        lab_add(l, .name = name, .effect = true, .body = take_time, .data = &fast_ms,
                .no_auto_debounce = true);
    }
    int turns = 0;
    while (hd_runtime_pump(lab_runtime_now(l)) == HD_PENDING) {
        turns++;
        assert_int_equal(hd_runtime_deadline(lab_runtime_now(l)), 0);
        assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
        assert_true(turns < 10);
    }
    assert_true(turns >= 1);
    assert_ran(l, "e0 e1 e2 e3 e4 e5"); /* each once, in order */
}

/* Takes 10 ms, and never agrees. */
static hd_status go_further_slowly(lab_node *self, hd_tx *tx) {
    lab_advance_ms(self->l, fast_ms);
    return go_one_further(self, tx);
}

/* I6, C352: a cycle of slow nodes is slowed down too, although no slice holds ten rounds. */
static void i6_slices_do_not_hide_a_cycle(void **state) {
    lab_time_every_run(l);
    lab_add(l, .name = "ping", .body = go_further_slowly, .data = "pong");
    lab_add(l, .name = "pong", .body = go_further_slowly, .data = "ping");
    lab_effect(l, "watch", "pong");
    int turns = 0;
    while (hd_runtime_pump(lab_runtime_now(l)) == HD_PENDING) assert_true(++turns < 100);
    assert_true(turns > 2);
    assert_true(lab_find(l, "ping")->runs <= 12);
    assert_true(wake_ms() > 0);
    lab_cancel(l, "watch");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_debounce_is_what_was_set),
        S(a_debounce_set_on_an_invalid_node_holds_it),
        S(a_throttle_set_after_a_run_holds_the_next_one),
        S(a_debounced_effect_waits_for_its_first_run),
        S(a_debounced_computation_runs_at_first_demand),
        S(a_burst_is_one_run),
        S(a_shorter_debounce_ends_earlier),
        S(asking_arms_nothing),
        S(a_cancelled_node_holds_nothing),
        S(a_throttle_is_what_was_set),
        S(a_throttled_node_runs_at_first),
        S(a_throttled_node_is_parked),
        S(a_throttled_node_wakes_by_itself),
        S(a_cleared_throttle_lets_go),
        S(a_pull_does_not_break_a_throttle),
        S(a_shorter_throttle_ends_earlier),
        S(a_slow_effect_is_debounced),
        S(a_slow_effect_beside_cheap_nodes_is_debounced),
        S(who_looks_does_not_change_the_debounce),
        S(an_effect_that_becomes_slow_is_found_out),
        S(a_slow_computation_is_not_debounced),
        S(who_opted_out_is_not_debounced),
        S(a_pull_is_not_debounced),
        S(a_fast_effect_is_not_debounced),
        S(the_timer_is_at_the_true_minimum),
        S(nothing_is_armed_for_who_is_gone),
        S(a_retry_does_not_wait_at_the_gates),
        S(a_retry_waits_for_a_backoff),
        S(i6_what_does_not_settle_is_slowed_down),
        cmocka_unit_test(without_backoff_i6_fails),
        S(two_opinions_are_slowed_down),
        S(following_an_input_is_no_echo),
        S(agreeing_ends_the_quarrel),
        cmocka_unit_test(without_the_echo_breaker_c351_fails),
        S(a_pass_gives_way_after_its_slice),
        S(i6_slices_do_not_hide_a_cycle),
    };
    LAB_EVERYWHERE(tests);
}
