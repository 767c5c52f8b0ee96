/* test_rounds.c -- I6, 7.7: cycles through asynchronous nodes. Each of their runs ends in another pass, so no
 * pass sees a node use up its runs; they are counted from run to run. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { NODES = 4, LONG_MS = 60000 };

/* Writes one more than it reads, up to a limit; asynchronously if `slow`. */
typedef struct adder {
    hd_cell from, also, to; /* `also` is read, and not used; 0: none */
    double limit;
    bool slow, posts; /* posts: the run is resumed by hd_runtime_post */
    hd_run *run;      /* suspended */
    int runs;
} adder;

static hd_lab *lab;
static hd_runtime *rt;
static adder adders[NODES];
static int told;
static hd_status told_as;
static double seen;

static uint64_t now_ms(void) {
    const hd_env *env = hd_runtime_env(rt);
    return env->monotonic_ns(env->ctx) / 1000000;
}

static int open_lab(void **state) {
    lab = hd_lab_open(NULL);
    rt = hd_lab_runtime(lab, "a");
    memset(adders, 0, sizeof adders);
    told = 0;
    seen = 0;
    return 0;
}
static int close_lab(void **state) {
    hd_lab_close(lab);
    return 0;
}

static void resume_posted(hd_runtime *of, void *ctx) {
    adder *a = ctx;
    hd_run *run = a->run;
    a->run = NULL;
    if (run) hd_run_resume(run, HD_OK);
}

static hd_status add(hd_tx *tx, void *ctx) {
    adder *a = ctx;
    hd_value v = hd_tx_get(tx, a->from);
    if (hd_value_status(v)) return hd_value_status(v);
    hd_value also = a->also.id ? hd_tx_get(tx, a->also) : v;
    if (hd_value_status(also)) return hd_value_status(also);
    double n = (hd_value_exists(v) ? hd_value_number(v) : 0) + 1;
    hd_status status = hd_tx_set_double(tx, a->to, n < a->limit ? n : a->limit);
    a->runs++;
    if (status || !a->slow) return status;
    status = hd_tx_suspend(tx, &a->run);
    if (!status && a->posts) status = hd_runtime_post(rt, resume_posted, a);
    return status ? status : HD_PENDING;
}

static adder *adder_at(int i, const char *from, const char *to, bool slow) {
    adders[i] = (adder){
        .from = hd_cell_at(rt, from), .to = hd_cell_at(rt, to), .limit = 1e9, .slow = slow
    };
    return &adders[i];
}

static adder *compute(int i, const char *from, const char *to, bool slow) {
    adder *a = adder_at(i, from, to, slow);
    hd_compute(rt, to, add, a, a->to);
    return a;
}

/* An effect: what it writes it does not declare. */
static adder *act(int i, const char *from, const char *to, bool slow) {
    adder *a = adder_at(i, from, to, slow);
    hd_effect(rt, to, add, a);
    return a;
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_value v = hd_tx_get(tx, *(hd_cell *)ctx);
    seen = hd_value_exists(v) ? hd_value_number(v) : -1;
    return hd_value_status(v);
}

static void note_told(const char *id, hd_status status, void *ctx) {
    told++;
    told_as = status;
}

static void send_to_reader_of(const char *name) {
    static hd_cell input;
    input = hd_cell_at(rt, name);
    hd_cell stream = hd_cell_at(rt, "main/stream");
    hd_handler_spec spec = {
        .stream = stream, .fn = handle, .ctx = &input, .inputs = &input, .input_count = 1
    };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    hd_send_options options = { .done = note_told };
    assert_int_equal(hd_event_send(rt, stream, hd_null(), &options), HD_OK);
}

/* `ms` pass; then all suspended runs end. */
static void turn(uint64_t ms) {
    hd_lab_settle(lab);
    hd_lab_advance_ms(lab, ms);
    for (int i = 0; i < NODES; i++) resume_posted(rt, &adders[i]);
    hd_lab_settle(lab);
}

static void turn_until_told(uint64_t ms, uint64_t most_ms) {
    uint64_t began = now_ms();
    while (!told) {
        turn(ms);
        if (now_ms() - began > most_ms) fail_msg("not told after %d ms", (int)most_ms);
    }
    assert_int_equal(told, 1);
    assert_int_equal(told_as, HD_OK);
}

static void nothing(hd_value v, void *ctx) {}
static void sink(const char *name) { hd_sink(rt, hd_cell_at(rt, name), nothing, NULL); }

static size_t warned(void) { return hd_lab_env_logged(hd_lab_world(lab), "does not settle"); }

static bool is_unsettled(void) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(rt, &stats);
    return stats.unsettled > 0;
}

/* ---- events */

/* C361, I6: an event that waits for a cycle with an asynchronous node goes on once ten runs and the backoff
 * are over, on the latest values, with a warning. */
static void i6_an_event_does_not_wait_for_ever_for_an_async_cycle(void **state) {
    compute(0, "main/y", "main/x", true);
    compute(1, "main/x", "main/y", false);
    send_to_reader_of("main/y");
    turn_until_told(10, 5000);
    assert_true(seen > 10);
    assert_int_equal(warned(), 1);
    assert_int_equal(hd_lab_env_logged(hd_lab_world(lab), "runs on inputs that do not settle"), 1);
}

/* The same where every node of the cycle is asynchronous: at the end of each pass one of them is clean. */
static void i6_an_event_does_not_wait_for_ever_for_two_async_nodes(void **state) {
    compute(0, "main/y", "main/x", true);
    compute(1, "main/x", "main/y", true);
    send_to_reader_of("main/y");
    turn_until_told(10, 5000);
    assert_true(seen > 5);
    assert_int_equal(hd_lab_env_logged(hd_lab_world(lab), "runs on inputs that do not settle"), 1);
}

/* The same where an effect closes the cycle; and where the effect is the asynchronous node. */
static void i6_effects_in_async_cycles_are_bounded(void **state) {
    compute(0, "main/y", "main/x", true);
    act(1, "main/x", "main/y", false);
    send_to_reader_of("main/x");
    turn_until_told(10, 5000);
    told = 0;
    compute(2, "main/b", "main/a", false);
    act(3, "main/a", "main/b", true);
    turn(10);
    send_to_reader_of("main/a");
    turn_until_told(10, 5000);
}

/* The same while the program writes something else all the time. */
static void i6_unrelated_commits_do_not_hide_an_async_cycle(void **state) {
    char json[16];
    compute(0, "main/y", "main/x", true);
    compute(1, "main/x", "main/y", false);
    compute(2, "main/clock", "main/shown", false);
    sink("main/shown");
    send_to_reader_of("main/y");
    for (int i = 0; !told && i < 500; i++) {
        snprintf(json, sizeof json, "%d", i);
        turn(10);
        hd_lab_set(rt, "main/clock", json);
    }
    assert_int_equal(told, 1);
}

/* The same while the program changes what the cycle reads, now and then. */
static void i6_a_cycle_that_is_stirred_is_bounded_for_events(void **state) {
    char json[16];
    compute(0, "main/y", "main/x", true);
    compute(1, "main/x", "main/y", false)->also = hd_cell_at(rt, "main/clock");
    send_to_reader_of("main/y");
    for (int i = 0; !told && i < 1000; i++) {
        snprintf(json, sizeof json, "%d", i);
        turn(10);
        if (i % 5 == 0) hd_lab_set(rt, "main/clock", json);
    }
    assert_int_equal(told, 1);
}

/* An asynchronous node that reads what does not settle, and takes longer than any backoff, never has a result
 * that stands. An event that waits for it goes on as well. */
static void i6_an_event_does_not_wait_for_ever_for_a_slow_reader_of_a_cycle(void **state) {
    compute(0, "main/y", "main/x", false);
    compute(1, "main/x", "main/y", false);
    adder *late = compute(2, "main/y", "main/z", true);
    send_to_reader_of("main/z");
    for (int i = 0; !told && i < 100; i++) {
        hd_lab_settle(lab);
        hd_lab_advance_ms(lab, 100);
        if (i % 30 == 29) resume_posted(rt, late);
    }
    assert_int_equal(told, 1);
}

/* What has nothing to do with the cycle is waited for. */
static void an_async_input_beside_a_cycle_is_waited_for(void **state) {
    compute(0, "main/y", "main/x", false);
    compute(1, "main/x", "main/y", false);
    compute(2, "main/n", "main/slow", true);
    compute(3, "main/slow", "main/both", false)->also = hd_cell_at(rt, "main/y");
    send_to_reader_of("main/both");
    for (int i = 0; i < 60; i++) {
        hd_lab_settle(lab);
        hd_lab_advance_ms(lab, 99);
    }
    assert_int_equal(told, 0);
    resume_posted(rt, &adders[2]);
    turn_until_told(10, 2000); /* both, and what it reads of the cycle */
    assert_true(seen == 2);
}

/* ---- settle and sync */

/* C362, I6: settle returns HD_UNSETTLED, and sync returns, though each run of the cycle is resumed. */
static void i6_settle_and_sync_return_beside_an_async_cycle(void **state) {
    compute(0, "main/y", "main/x", true)->posts = true;
    compute(1, "main/x", "main/y", false);
    sink("main/y");
    uint64_t began = now_ms();
    assert_int_equal(hd_runtime_settle(rt), HD_UNSETTLED);
    assert_true(now_ms() - began <= 250 + 500 + 1000 + 2000);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_true(adders[0].runs <= 60);
}

static void settle_is_bounded(void) {
    uint64_t began = now_ms();
    assert_int_equal(hd_runtime_settle(rt), HD_UNSETTLED);
    assert_true(now_ms() - began <= 3 * (250 + 500 + 1000 + 2000));
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

/* Effects do not declare what they write: a cycle through them is found all the same. */
static void i6_settle_returns_beside_a_computation_and_an_effect(void **state) {
    compute(0, "main/y", "main/x", true)->posts = true;
    act(1, "main/x", "main/y", false);
    settle_is_bounded();
}

static void i6_settle_returns_beside_two_async_effects(void **state) {
    act(0, "main/y", "main/x", true)->posts = true;
    act(1, "main/x", "main/y", true)->posts = true;
    settle_is_bounded();
}

static void i6_settle_returns_beside_two_async_nodes_in_a_cycle(void **state) {
    compute(0, "main/y", "main/x", true)->posts = true;
    compute(1, "main/x", "main/y", true)->posts = true;
    sink("main/y");
    settle_is_bounded();
}

/* 7.6: an effect that reads an output which cannot be stored, since its node does not settle, is refused. It
 * tries again after growing delays, also if it is asynchronous; settle and sync return. */
static void i6_an_async_effect_that_reads_a_cycle_takes_its_time(void **state) {
    hd_lab_runtime(lab, "b"); /* the store is shared: what is read is sealed first */
    compute(0, "main/y", "main/x", false);
    compute(1, "main/x", "main/y", false);
    adder *e = act(2, "main/y", "main/out", true);
    e->posts = true;
    assert_int_equal(hd_runtime_settle(rt), HD_UNSETTLED);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_true(e->runs > 0 && e->runs < 100);
}

/* ---- what is no cycle */

/* An asynchronous node that is kept busy from outside is not slowed down: each job is written as soon as the
 * one before is done, also through a computation and an effect. */
static void a_job_queue_is_not_slowed_down(void **state) {
    char json[16];
    compute(0, "main/job", "main/copy", false);
    compute(1, "main/copy", "main/done", true);
    sink("main/done");
    for (int i = 0; i < 100; i++) {
        snprintf(json, sizeof json, "%d", i);
        resume_posted(rt, &adders[1]);
        hd_lab_set(rt, "main/job", json);
        hd_lab_settle(lab);
        assert_int_equal(adders[1].runs, i + 1);
    }
    assert_int_equal(warned(), 0);
    turn(0);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
}

/* Nor is a line of asynchronous nodes, each of which is busy whenever another one is done. */
static void a_line_of_async_nodes_under_load_is_not_slowed_down(void **state) {
    char json[16];
    compute(0, "main/job", "main/a", true);
    compute(1, "main/a", "main/b", true);
    compute(2, "main/b", "main/c", true);
    sink("main/c");
    for (int i = 0; i < 300; i++) {
        snprintf(json, sizeof json, "%d", i);
        if (i % 4 == 0) hd_lab_set(rt, "main/job", json);
        hd_lab_settle(lab);
        for (int k = 2; k >= 0; k--) resume_posted(rt, &adders[k]);
    }
    assert_true(adders[0].runs == 75 && adders[2].runs > 70);
    assert_int_equal(warned(), 0);
    for (int i = 0; i < 4; i++) turn(0);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    hd_lab_expect_cell(rt, "main/c", "299.0");
}

/* ---- cycles that settle */

/* A cycle that agrees in the end is slowed down on the way, and no longer afterwards. */
static void an_async_cycle_that_agrees_is_settled(void **state) {
    const char *once_more[] = { "1", "2", "3", "4", "5" };
    compute(0, "main/y", "main/x", true)->limit = 31;
    compute(1, "main/x", "main/y", false)->limit = 31;
    adders[0].also = hd_cell_at(rt, "main/start");
    sink("main/y");
    while (!hd_runtime_is_idle(rt)) {
        turn(10);
        assert_true(now_ms() < LONG_MS);
    }
    hd_lab_expect_cell(rt, "main/x", "31.0");
    assert_int_equal(warned(), 1);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_false(is_unsettled());
    for (int i = 0; i < 5; i++) { /* at once */
        adders[0].limit = adders[1].limit += 8;
        hd_lab_set(rt, "main/start", once_more[i]);
        uint64_t began = now_ms();
        while (!hd_runtime_is_idle(rt)) turn(0);
        assert_true(now_ms() == began);
    }
    assert_int_equal(warned(), 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, open_lab, close_lab)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(i6_an_event_does_not_wait_for_ever_for_an_async_cycle),
        T(i6_an_event_does_not_wait_for_ever_for_two_async_nodes),
        T(i6_effects_in_async_cycles_are_bounded),
        T(i6_unrelated_commits_do_not_hide_an_async_cycle),
        T(i6_a_cycle_that_is_stirred_is_bounded_for_events),
        T(i6_an_event_does_not_wait_for_ever_for_a_slow_reader_of_a_cycle),
        T(an_async_input_beside_a_cycle_is_waited_for),
        T(i6_an_async_effect_that_reads_a_cycle_takes_its_time),
        T(i6_settle_and_sync_return_beside_an_async_cycle),
        T(i6_settle_returns_beside_two_async_nodes_in_a_cycle),
        T(i6_settle_returns_beside_a_computation_and_an_effect),
        T(i6_settle_returns_beside_two_async_effects),
        T(a_job_queue_is_not_slowed_down),
        T(a_line_of_async_nodes_under_load_is_not_slowed_down),
        T(an_async_cycle_that_agrees_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
