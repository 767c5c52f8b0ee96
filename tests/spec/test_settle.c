/* test_settle.c -- area H: settling, not settling, and idle. */
#include "lab_sched.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define BUDGET 10 /* runs of one node per pass */

static double plus_one(const double *in) { return in[0] + 1; }
/* in[0] + 1, up to in[1] */
static double plus_one_up_to(const double *in) { return fmin(in[0] + 1, in[1]); }

/* Two computations that never agree, and an effect that looks. */
static void add_quarrel(lab *l) {
    lab_compute(l, "ping", "pong", plus_one);
    lab_compute(l, "pong", "ping", plus_one);
    lab_effect(l, "watch", "ping");
}

static uint64_t deadline_ms(lab *l) {
    uint64_t at = hd_runtime_deadline(lab_runtime_now(l));
    const hd_env *env = lab_env_of(lab_world(l));
    return at == UINT64_MAX                   ? UINT64_MAX
           : at < env->monotonic_ns(env->ctx) ? 0
                                              : (at - env->monotonic_ns(env->ctx)) / 1000000;
}

static void count_idle(void *ctx) { ++*(int *)ctx; }

/* ---- convergence */

/* C150, I6: a cycle stays within its budget, its neighbours settle, and idle comes. */
static void a_cycle_does_not_starve_its_neighbours(void **state) {
    lab *l = lab_start();
    add_quarrel(l);
    lab_compute(l, "copy", "n", NULL);
    lab_effect(l, "show", "copy");
    lab_set(l, "n", 7);
    lab_turn(l);
    assert_seen(l, "show", "7");
    assert_true(lab_find(l, "ping")->runs <= BUDGET);
    assert_true(lab_find(l, "pong")->runs <= BUDGET);
    assert_int_equal(lab_find(l, "copy")->runs, 1);
    assert_int_equal(lab_find(l, "show")->runs, 1);

    lab_set(l, "n", 8); /* while the cycle waits */
    lab_turn(l);
    assert_seen(l, "show", "8");
    lab_idle(l);
    assert_int_equal(lab_find(l, "show")->runs, 2);
    lab_close(l);
}

/* C151, I6: a cycle that counts for ever runs a bounded number of times until idle. */
static void a_counting_cycle_is_bounded(void **state) {
    lab *l = lab_start();
    add_quarrel(l);
    lab_idle(l);
    assert_true(lab_find(l, "ping")->runs <= 5 * BUDGET);
    assert_true(lab_find(l, "pong")->runs <= 5 * BUDGET);
    assert_true(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_close(l);
}

/* I6: a pull of what does not settle returns, with a value that was there. */
static void a_pull_of_a_counting_cycle_returns(void **state) {
    lab *l = lab_start();
    hd_pool *pool;
    assert_status(hd_pool_open(hd_runtime_heap(lab_runtime_now(l)), &pool), HD_OK);
    add_quarrel(l);
    for (int i = 0; i < 3; i++) {
        hd_cell ping = hd_cell_at(lab_runtime_now(l), "main/ping");
        hd_value v = hd_pull_now(lab_runtime_now(l), pool, ping);
        assert_true(hd_value_number(v) > 0);
    }
    hd_pool_close(pool);
    lab_close(l);
}

static void a_ring_of(int size) {
    lab *l = lab_start();
    char name[16], reads[24];
    lab_set(l, "limit", 6);
    for (int i = 0; i < size; i++) {
        snprintf(name, sizeof name, "r%d", i);
        snprintf(reads, sizeof reads, "r%d limit", (i + size - 1) % size);
        lab_compute(l, name, reads, plus_one_up_to);
    }
    lab_effect(l, "watch", "r0");
    lab_idle(l);
    assert_seen(l, "watch", "6");
    for (int i = 0; i < size; i++) {
        snprintf(name, sizeof name, "r%d", i);
        assert_int_equal((int)lab_get(l, name), 6);
        assert_true(lab_is_clean(l, name));
        assert_true(lab_find(l, name)->runs <= 2 * BUDGET);
    }
    assert_int_equal(lab_stats(l).exhausted, 0);
    lab_close(l);
}

/* C152: cycles that converge reach their fixed point. */
static void a_converging_cycle_arrives(void **state) {
    for (int size = 2; size <= 4; size++) a_ring_of(size);
}

/* C153: a computation that reads what it writes is bounded. */
static void a_computation_of_itself_is_bounded(void **state) {
    lab *l = lab_start();
    lab_compute(l, "self", "self n", plus_one);
    lab_effect(l, "watch", "self");
    lab_idle(l);
    assert_true(lab_find(l, "self")->runs <= BUDGET);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_idle(l);
    assert_true(lab_find(l, "self")->runs <= 2 * BUDGET);
    assert_true(lab_is_clean(l, "self"));
    lab_close(l);
}

/* C154: levels that are only discovered by running have all run when idle comes. */
static void levels_discovered_by_running_are_all_there(void **state) {
    enum { LEVELS = 12 };
    lab *l = lab_start();
    char name[16], reads[24];
    lab_set(l, "c0", 5);
    lab_add(l, .name = "watch", .reads = "c12", .effect = true, .declares = "-");
    for (int i = LEVELS; i > 0; i--) {
        snprintf(name, sizeof name, "c%d", i);
        snprintf(reads, sizeof reads, "c%d", i - 1);
        lab_add(l, .name = name, .reads = reads, .declares = "-");
    }
    lab_idle(l);
    assert_seen(l, "watch", "5");
    for (int i = 1; i <= LEVELS; i++) {
        snprintf(name, sizeof name, "c%d", i);
        assert_true(lab_is_clean(l, name) && lab_find(l, name)->runs > 0);
    }
    lab_close(l);
}

static hd_status feed_itself(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "x", lab_tx_number(self, tx, "y"));
}

/* C155: an effect that makes itself invalid again, by way of a computation, has exactly the budget;
 * the round stays unfinished. */
static void an_effect_that_feeds_itself_uses_its_budget(void **state) {
    lab *l = lab_start();
    lab_compute(l, "y", "x", plus_one);
    lab_add(l, .name = "loop", .effect = true, .body = feed_itself, .declares = "y");
    lab_turn(l);
    assert_int_equal(lab_find(l, "loop")->runs, BUDGET);
    hd_node_info info = lab_info(l, "y"); /* whose turn it would be */
    assert_int_equal(info.status, HD_NODE_INVALID);
    assert_int_equal(info.why_not, HD_WHY_NOT_BACKOFF);
    lab_close(l);
}

/* C156: the wait doubles from 250 ms to 2 s. */
static void the_backoff_doubles_to_its_cap(void **state) {
    static const uint64_t waits[] = { 250, 500, 1000, 2000, 2000, 2000 };
    lab *l = lab_start();
    lab_compute(l, "y", "x", plus_one);
    lab_add(l, .name = "loop", .effect = true, .body = feed_itself);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        lab_turn(l);
        assert_int_equal(deadline_ms(l), waits[i]);
        uint64_t runs = lab_find(l, "loop")->runs;
        lab_advance_ms(l, waits[i] - 1);
        lab_turn(l);
        assert_int_equal(lab_find(l, "loop")->runs, runs); /* not a moment earlier */
        lab_advance_ms(l, 1);
    }
    lab_close(l);
}

/* C157: what is not demanded, or waits behind a gate of its own, gets no backoff. */
static void only_what_ran_too_often_is_backed_off(void **state) {
    lab *l = lab_start();
    lab_compute(l, "dormant", "ping", NULL);
    lab_add(l, .name = "late", .reads = "ping", .effect = true, .debounce_ms = 60);
    add_quarrel(l);
    lab_turn(l);
    assert_int_equal(lab_info(l, "ping").why_not, HD_WHY_NOT_BACKOFF);
    assert_int_equal(lab_info(l, "dormant").why_not, HD_WHY_NOT_DORMANT);
    assert_int_equal(lab_info(l, "dormant").eligible_at_ns, 0);
    assert_int_equal(lab_info(l, "late").why_not, HD_WHY_NOT_DEBOUNCE);
    assert_int_equal(deadline_ms(l), 60);
    lab_advance_ms(l, 60);
    lab_turn(l);
    assert_int_equal(lab_find(l, "late")->runs, 1);
    lab_close(l);
}

/* C158: a node that ends clean has no backoff any more, and the next one starts from the base. */
static void settling_clears_the_backoff(void **state) {
    lab *l = lab_start();
    lab_set(l, "limit", 1e9);
    lab_compute(l, "ping", "pong limit", plus_one_up_to);
    lab_compute(l, "pong", "ping limit", plus_one_up_to);
    lab_effect(l, "watch", "ping");
    lab_turn(l);
    lab_advance_ms(l, 250);
    lab_turn(l);
    assert_int_equal(deadline_ms(l), 500);

    lab_set(l, "limit", lab_get(l, "ping")); /* now they agree */
    lab_advance_ms(l, 500);
    lab_turn(l);
    assert_true(lab_is_clean(l, "ping") && lab_is_clean(l, "pong") && lab_is_clean(l, "watch"));
    assert_int_equal(lab_info(l, "ping").eligible_at_ns, 0);
    assert_true(deadline_ms(l) == UINT64_MAX || lab_is_shared(l));

    lab_set(l, "limit", 1e9);
    lab_turn(l);
    assert_int_equal(lab_info(l, "ping").why_not == HD_WHY_NOT_BACKOFF ||
                         lab_info(l, "pong").why_not == HD_WHY_NOT_BACKOFF,
                     true);
    assert_int_equal(deadline_ms(l), 250);
    lab_close(l);
}

static hd_status push_y(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "y", lab_tx_number(self, tx, "x") + 1);
}
static hd_status push_x(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "x", lab_tx_number(self, tx, "y") + 1);
}

/* C159: effects that trigger each other are slowed down; that is no failure of theirs. */
static void effects_that_trigger_each_other_are_no_error(void **state) {
    lab *l = lab_start();
    lab_catch(l);
    lab_add(l, .name = "one", .effect = true, .body = push_y);
    lab_add(l, .name = "two", .effect = true, .body = push_x);
    lab_idle(l);
    assert_string_equal(lab_failures(l), "");
    assert_true(lab_find(l, "one")->runs <= 6 * BUDGET);
    assert_int_equal(lab_stats(l).failures, 0);
    lab_close(l);
}

/* ---- idle */

static void add_slow_wave(lab *l, double limit) {
    lab_set(l, "limit", limit);
    lab_compute(l, "ping", "pong limit", plus_one_up_to);
    lab_compute(l, "pong", "ping limit", plus_one_up_to);
    lab_effect(l, "watch", "ping");
}

/* C160: a wave that takes more than two passes holds idle until the effect has seen its end. */
static void idle_waits_for_a_wave(void **state) {
    lab *l = lab_start();
    add_slow_wave(l, 50);
    lab_idle(l);
    assert_seen(l, "watch", "50");
    assert_true(lab_stats(l).exhausted >= 2);
    lab_close(l);
}

/* Whoever waits for a document has yet to run: idle waits with him. */
static void idle_waits_for_documents(void **state) {
    lab *l = lab_start_late();
    lab_on(l, "b");
    lab_set(l, "n", 4);
    lab_settle(l);
    lab_runtime_close(lab_on(l, "b")); /* nobody else is on the store */
    lab_on(l, "a");
    lab_compute(l, "x", "n", NULL);
    lab_compute(l, "y", "x", NULL);
    lab_effect(l, "show", "y");
    lab_idle(l);
    assert_seen(l, "show", "4");
    assert_true(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_close(l);
}

/* C161: a wave without end holds idle for a bounded time; one warning names a node. */
static void idle_does_not_wait_for_ever(void **state) {
    lab *l = lab_start();
    int told = 0;
    add_quarrel(l);
    assert_int_equal(hd_runtime_on_idle(lab_runtime_now(l), count_idle, &told), HD_OK);
    lab_idle(l);
    assert_int_equal(told, 1);
    assert_true(lab_now_ms(l) >= 250 + 500);
    assert_true(lab_now_ms(l) <= 250 + 500 + 1000 + 2000);
    assert_int_equal(lab_env_logged(lab_world(l), "does not settle"), 1);
    assert_int_equal(
        lab_env_logged(lab_world(l), "\"ping\"") + lab_env_logged(lab_world(l), "\"pong\""), 1);
    lab_close(l);
}

/* C162: the patience spent on one wave is there again for the next. */
static void every_idle_starts_with_full_patience(void **state) {
    lab *l = lab_start();
    add_slow_wave(l, 1e9);
    lab_idle(l); /* gives up */
    double limit = lab_get(l, "ping") + 25;
    lab_set(l, "limit", limit);
    lab_idle(l);
    assert_int_equal((int)lab_get(l, "ping"), (int)limit);
    assert_true(lab_is_clean(l, "watch"));
    lab_close(l);
}

/* C163: nobody looks any more: idle does not wait for what waits, and forgets what it counted. */
static void a_dormant_wave_does_not_hold_idle(void **state) {
    lab *l = lab_start();
    add_slow_wave(l, 1e9);
    lab_turn(l);
    lab_advance_ms(l, 250);
    lab_turn(l); /* two of its backoffs are used up */
    lab_cancel(l, "watch");
    uint64_t before = lab_now_ms(l);
    lab_idle(l);
    assert_int_equal(lab_now_ms(l), before);

    lab_add(l, .name = "again", .reads = "ping", .effect = true);
    double limit = lab_get(l, "ping") + 30;
    lab_set(l, "limit", limit);
    lab_idle(l);
    assert_int_equal((int)lab_get(l, "ping"), (int)limit);
    lab_close(l);
}

/* C164: a timer of dormant work does not hold idle. */
static void a_timer_of_dormant_work_does_not_hold_idle(void **state) {
    lab *l = lab_start();
    lab_add(l, .name = "slow", .reads = "n", .debounce_ms = 1000);
    lab_effect(l, "show", "slow");
    lab_idle(l);
    lab_set(l, "n", 1);
    lab_turn(l);
    assert_int_equal(deadline_ms(l), 1000);
    lab_cancel(l, "show");
    uint64_t before = lab_now_ms(l);
    lab_idle(l);
    assert_int_equal(lab_now_ms(l), before);
    lab_close(l);
}

/* C167: invalid computations that nobody looks at do not hold idle. */
static void dormant_invalid_nodes_do_not_hold_idle(void **state) {
    lab *l = lab_start();
    lab_compute(l, "dormant", "n", NULL);
    lab_effect(l, "show", "m");
    lab_idle(l);
    lab_set(l, "n", 1);
    assert_true(hd_runtime_is_idle(lab_runtime_now(l)) || (lab_turn(l), true));
    lab_idle(l);
    assert_ran(l, "show");
    assert_int_equal(lab_info(l, "dormant").status, HD_NODE_NEVER_RAN);
    lab_close(l);
}

/* C170: idle waits for work elsewhere; if that fails, idle comes all the same and the log tells. */
static void idle_waits_for_work_elsewhere(void **state) {
    lab *l = lab_start();
    int told = 0;
    hd_runtime *rt = lab_runtime_now(l);
    lab_effect(l, "show", "n");
    hd_work_begin(rt);
    hd_runtime_on_idle(rt, count_idle, &told);
    lab_turn(l);
    lab_turn(l);
    assert_int_equal(told, 0);
    assert_false(hd_runtime_is_idle(rt));
    hd_work_end(rt, HD_IO);
    lab_turn(l);
    assert_int_equal(told, 1);
    assert_int_equal(lab_env_logged(lab_world(l), "background work failed"), 1);

    hd_work_begin(rt);
    hd_work_end(rt, HD_OK);
    lab_turn(l);
    assert_true(hd_runtime_is_idle(rt));
    assert_int_equal(lab_env_logged(lab_world(l), "background work failed"), 1);
    lab_close(l);
}

/* hd_work_begin, hd_runtime_set_log: without memory they say so, and nothing is waited for. */
static void work_that_cannot_begin_is_not_waited_for(void **state) {
    lab_env *world = lab_env_open();
    hd_options options = { .env = lab_env_of(world) };
    hd_runtime *rt;
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    lab_env_fail_at(world, 1);
    assert_int_equal(hd_work_begin(rt), HD_NOMEM);
    lab_env_fail_at(world, 1);
    assert_int_equal(hd_runtime_set_log(rt, NULL, NULL), HD_NOMEM);
    lab_env_fail_at(world, 0);
    assert_true(hd_runtime_is_idle(rt));
    assert_int_equal(hd_work_begin(rt), HD_OK);
    assert_false(hd_runtime_is_idle(rt));
    hd_work_end(rt, HD_OK);
    assert_true(hd_runtime_is_idle(rt));
    hd_close(rt);
    lab_env_close(world);
}

/* ---- the end */

/* C171: who waits for idle hears of it when the runtime closes, once. */
static void closing_tells_who_waits(void **state) {
    lab *l = lab_start();
    int told = 0;
    lab_runtime *b = lab_on(l, "b");
    lab_effect(l, "show", "n");
    lab_turn(l);
    hd_work_begin(lab_rt(b));
    hd_runtime_on_idle(lab_rt(b), count_idle, &told);
    lab_turn(l);
    assert_int_equal(told, 0);
    lab_on(l, "a");
    lab_runtime_close(b);
    assert_int_equal(told, 1);
    lab_close(l);
}

/* C172: with every node gone by hand, and with none gone, closing completes. */
static void closing_completes_with_and_without_nodes(void **state) {
    lab *l = lab_start();
    lab_runtime *b = lab_on(l, "b");
    add_quarrel(l);
    lab_turn(l);
    lab_cancel(l, "ping");
    lab_cancel(l, "pong");
    lab_cancel(l, "watch");
    lab_on(l, "a");
    lab_runtime_close(b);
    add_quarrel(l);
    lab_turn(l);
    lab_close(l);
}

/* C173: a runtime that is closed while a debounce runs: nothing runs afterwards. */
static void nothing_runs_after_closing(void **state) {
    lab *l = lab_start();
    lab_runtime *b = lab_on(l, "b");
    lab_node *late = lab_add(l, .name = "late", .reads = "n", .effect = true, .debounce_ms = 100);
    lab_turn(l);
    lab_on(l, "a");
    lab_runtime_close(b);
    lab_advance_ms(l, 200);
    lab_settle(l);
    assert_int_equal(late->runs, 0);
    lab_close(l);
}

/* ---- async runs */

typedef struct pause {
    hd_run *run;
    double value; /* to be written */
} pause;

/* Reads n, suspends; whoever resumes it writes. */
static hd_status read_and_suspend(lab_node *self, hd_tx *tx) {
    pause *p = self->data;
    p->value = lab_tx_number(self, tx, "n");
    hd_status status = hd_tx_suspend(tx, &p->run);
    return status ? status : HD_PENDING;
}

static void resume(lab_node *n) {
    pause *p = n->data;
    hd_run *run = p->run;
    hd_status status = HD_OK;
    p->run = NULL;
    if (!n->spec.effect) status = lab_tx_put(n, hd_run_tx(run), n->spec.name, p->value);
    hd_run_resume(run, status);
}

/* C174: an async effect invalidated twice while suspended runs once more, with the latest value. */
static void an_async_effect_ends_on_the_latest_value(void **state) {
    lab *l = lab_start();
    pause p = { 0 };
    lab_node *n = lab_add(l, .name = "slow", .effect = true, .body = read_and_suspend, .data = &p);
    lab_turn(l);
    assert_non_null(p.run);
    assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_set(l, "n", 1);
    lab_turn(l);
    lab_set(l, "n", 2);
    lab_turn(l);
    assert_int_equal(n->runs, 1);
    resume(n);
    lab_turn(l);
    assert_int_equal(n->runs, 2);
    assert_int_equal((int)p.value, 2);
    resume(n);
    lab_turn(l);
    assert_int_equal(n->runs, 2);
    assert_true(lab_is_clean(l, "slow"));
    assert_true(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_close(l);
}

/* C175: a computation invalidated in the middle of its run runs again; what it read is never
 * stored as if it were new. */
static void an_async_computation_ends_on_the_latest_value(void **state) {
    lab *l = lab_start();
    pause p = { 0 };
    lab_node *n = lab_add(l, .name = "slow", .body = read_and_suspend, .data = &p);
    lab_effect(l, "show", "slow");
    lab_turn(l);
    lab_ran(l);
    lab_set(l, "n", 5);
    lab_turn(l);
    resume(n);
    assert_string_equal(lab_json(l, "slow"), "-"); /* the old value was not written */
    lab_turn(l);
    resume(n);
    lab_turn(l);
    assert_seen(l, "show", "5");
    assert_int_equal(n->runs, 2);
    lab_close(l);
}

/* C176: when the commit of a late computation lands, its readers run. */
static void a_late_commit_wakes_its_readers(void **state) {
    lab *l = lab_start();
    pause p = { 0 };
    lab_set(l, "n", 3);
    lab_node *n = lab_add(l, .name = "slow", .body = read_and_suspend, .data = &p);
    lab_effect(l, "show", "slow");
    lab_turn(l);
    lab_ran(l);
    lab_turn(l);
    assert_ran(l, "");
    resume(n);
    lab_turn(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "3");
    lab_close(l);
}

/* ---- telling */

/* C177: a node behind a gate is passed over and counted; when its time comes it runs. */
static void a_gated_node_is_passed_over(void **state) {
    lab *l = lab_start();
    lab_add(l, .name = "slow", .reads = "n", .effect = true, .throttle_ms = 100);
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_ran(l);
    uint64_t before = lab_stats(l).filtered;
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "show");
    assert_true(lab_stats(l).filtered > before);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_ran(l, "slow");
    lab_close(l);
}

typedef struct markers {
    int count;
    uint64_t deferred;
    size_t names;
} markers;

static void note_marker(const hd_telemetry *t, void *ctx) {
    markers *m = ctx;
    if (t->kind != HD_TELEMETRY_NOT_SETTLING) return;
    m->count++;
    m->deferred = t->count;
    m->names = t->name_count;
    for (size_t i = 0; i < t->name_count; i++) assert_true(strlen(t->names[i]) > 0);
}

/* 7.7, C178 as decision 0033 has it: a node that does not settle is named once per episode, in one marker
 * with up to ten names and the count. */
static void what_does_not_settle_is_named_once_per_episode(void **state) {
    lab *l = lab_start();
    markers m = { 0 };
    char name[16];
    hd_runtime_set_telemetry(lab_runtime_now(l), note_marker, &m);
    lab_effect(l, "show", "n");
    lab_turn(l);
    assert_int_equal(m.count, 0);
    for (int i = 0; i < 12; i++) {
        char reads[24];
        snprintf(name, sizeof name, "ping%d", i);
        snprintf(reads, sizeof reads, "pong%d", i);
        lab_compute(l, name, reads, plus_one);
        lab_compute(l, reads, name, plus_one);
        snprintf(reads, sizeof reads, "watch%d", i);
        lab_effect(l, reads, name);
    }
    lab_turn(l);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.deferred, 12);
    assert_int_equal(m.names, 10);
    for (int i = 0; i < 10; i++) {
        lab_advance_ms(l, 2000);
        lab_turn(l);
        lab_idle(l); /* idle ends its own episode, not this one */
    }
    assert_int_equal(m.count, 1);
    assert_int_equal(lab_env_logged(lab_world(l), "does not settle"), 1);

    lab_compute(l, "tick", "tock", plus_one); /* another one is news */
    lab_compute(l, "tock", "tick", plus_one);
    lab_effect(l, "look", "tick");
    lab_turn(l);
    assert_int_equal(m.count, 2);
    assert_int_equal(m.deferred, 1);
    lab_close(l);
}

/* ---- size */

typedef struct link {
    hd_cell from, to;
} link;

static hd_status pass_on(hd_tx *tx, void *ctx) {
    const link *k = ctx;
    return hd_tx_set(tx, k->to, hd_tx_get(tx, k->from));
}

static void keep_number(hd_value v, void *ctx) { *(double *)ctx = hd_value_number(v); }

/* No recursion over the graph: a chain of a million settles. */
static void a_chain_of_a_million_settles(void **state) {
    enum { LENGTH = 1000000 };
    static link links[LENGTH];
    hd_runtime *rt;
    double seen = 0;
    char name[32];
    if (strcmp(lab_place(), "in memory") != 0) return; /* the graph is the same everywhere */
    assert_int_equal(hd_open(NULL, NULL, &rt, NULL), HD_OK);
    hd_cell from = hd_cell_at(rt, "main/c0"), first = from;
    for (int i = 0; i < LENGTH; i++) {
        snprintf(name, sizeof name, "main/c%d", i + 1);
        links[i] = (link){ from, hd_cell_at(rt, name) };
        from = links[i].to;
        assert_true(hd_compute(rt, NULL, pass_on, &links[i], from).id);
    }
    hd_sink(rt, from, keep_number, &seen);
    assert_int_equal(hd_write(rt, first, hd_double(7)), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_true(seen == 7);
    assert_int_equal(hd_write(rt, first, hd_double(8)), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_true(seen == 8);
    hd_close(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_does_not_starve_its_neighbours),
        cmocka_unit_test(a_counting_cycle_is_bounded),
        cmocka_unit_test(a_pull_of_a_counting_cycle_returns),
        cmocka_unit_test(a_converging_cycle_arrives),
        cmocka_unit_test(a_computation_of_itself_is_bounded),
        cmocka_unit_test(levels_discovered_by_running_are_all_there),
        cmocka_unit_test(an_effect_that_feeds_itself_uses_its_budget),
        cmocka_unit_test(the_backoff_doubles_to_its_cap),
        cmocka_unit_test(only_what_ran_too_often_is_backed_off),
        cmocka_unit_test(settling_clears_the_backoff),
        cmocka_unit_test(effects_that_trigger_each_other_are_no_error),
        cmocka_unit_test(idle_waits_for_a_wave),
        cmocka_unit_test(idle_waits_for_documents),
        cmocka_unit_test(idle_does_not_wait_for_ever),
        cmocka_unit_test(every_idle_starts_with_full_patience),
        cmocka_unit_test(a_dormant_wave_does_not_hold_idle),
        cmocka_unit_test(a_timer_of_dormant_work_does_not_hold_idle),
        cmocka_unit_test(dormant_invalid_nodes_do_not_hold_idle),
        cmocka_unit_test(idle_waits_for_work_elsewhere),
        cmocka_unit_test(work_that_cannot_begin_is_not_waited_for),
        cmocka_unit_test(closing_tells_who_waits),
        cmocka_unit_test(closing_completes_with_and_without_nodes),
        cmocka_unit_test(nothing_runs_after_closing),
        cmocka_unit_test(an_async_effect_ends_on_the_latest_value),
        cmocka_unit_test(an_async_computation_ends_on_the_latest_value),
        cmocka_unit_test(a_late_commit_wakes_its_readers),
        cmocka_unit_test(a_gated_node_is_passed_over),
        cmocka_unit_test(what_does_not_settle_is_named_once_per_episode),
        cmocka_unit_test(a_chain_of_a_million_settles),
    };
    LAB_EVERYWHERE(tests);
}
