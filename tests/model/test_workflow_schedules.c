/* test_workflow_schedules.c -- random schedules, against what their times say.
 *
 * Schedules of every policy start instances that end at once or wait for a signal, while the clock goes on by random
 * steps, is set back or forward, the engine closes and another opens, which may store the schedule again, and schedules
 * are triggered. After each turn the instances that there are must be ones that the schedule allows:
 *
 *     a time is started at most once, and never before it has come
 *     where overlapping is allowed and every time is caught up, all times that have come are started, unless a jitter
 *     may still delay them
 *     where it is not, at most one instance is open at once (a triggered one counts)
 *     the last time that has come, and that no jitter delays any more, is started, or a later one; unless it was
 *     skipped because an instance was open */
#define _DEFAULT_SOURCE
#include "lab.h"
#include <heddle.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND UINT64_C(1000)

static lab_env *env;
static hd_memory *memory;
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static long starts, opens, jumps, triggers;

static uint64_t dice;
static int roll(int n) {
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((dice >> 33) % (uint64_t)n);
}

static uint64_t now_ms(void) { return lab_env_of(env)->wall_ms(lab_env_of(env)->ctx); }

/* ---- the world */

static void register_flow(const char *name, const char *wait) {
    char text[600];
    hd_error error = { 0 };
    snprintf(text, sizeof text,
             "{\"heddle\":1,\"name\":\"%s\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":"
             "\"in\",\"kind\":\"ENTRY\"},%s{\"id\":\"out\",\"kind\":\"RETURN\"}],\"edges\":[%s]}]}",
             name, wait ? "{\"id\":\"w\",\"kind\":\"WAIT\",\"signal\":\"go\"}," : "",
             wait ? "[\"in\",\"w\"],[\"w\",\"out\"]" : "[\"in\",\"out\"]");
    hd_value ir = hd_json_parse(pool, text, strlen(text), &error);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
}

static void open_engine(void) {
    hd_error error = { 0 };
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    if (hd_open(NULL, &options, &rt, &error)) fail_msg("%s", error.message);
    if (hd_engine_open(rt, NULL, &engine, &error)) fail_msg("%s", error.message);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    opens++;
}

static void close_engine(void) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void pump(void) {
    for (int i = 0; i < 200; i++) {
        hd_status status = hd_runtime_pump(rt);
        if (status != HD_PENDING &&
            hd_runtime_deadline(rt) > lab_env_of(env)->monotonic_ns(lab_env_of(env)->ctx))
            return;
    }
}

/* ---- what there is */

enum { TIMES_MAX = 4096 };

typedef struct seen {
    char ids[TIMES_MAX][HD_INSTANCE_ID_SIZE];
    int count, open;
} seen;
static seen now;

static bool note_entry(const hd_listing *entry, void *ctx) {
    seen *s = ctx;
    assert_true(s->count < TIMES_MAX);
    snprintf(s->ids[s->count++], HD_INSTANCE_ID_SIZE, "%s", entry->id + strlen("workflow/"));
    return true;
}

static void look(const char *flow) {
    static const char *const kinds[] = { "workflow.queued", "workflow.running", "workflow.paused",
                                         "workflow.done", "workflow.cancelled" };
    char prefix[64];
    snprintf(prefix, sizeof prefix, "workflow/%s/", flow);
    now.count = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hd_runtime_list(rt, "main", kinds[i], prefix, note_entry, &now), HD_OK);
        if (i == 2) now.open = now.count;
    }
}

/* 0: it was triggered. */
static uint64_t time_of(const char *id) {
    int y, mo, d, h, mi, s;
    const char *at = strchr(id, '@');
    if (!at || sscanf(at, "@%d-%d-%dT%d:%d:%dZ", &y, &mo, &d, &h, &mi, &s) != 6) return 0;
    if (at[21]) return 0;
    int64_t days = (int64_t)(y - 1970) * 365 + (y - 1969) / 4 + d - 1;
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    days += before[mo - 1] + (mo > 2 && y % 4 == 0);
    return (uint64_t)(((days * 24 + h) * 60 + mi) * 60 + s) * SECOND;
}

/* ---- a world */

typedef struct world {
    hd_schedule s;
    bool from_given; /* else it begins an interval after it is stored */
    uint64_t latest; /* the latest wall clock that there was */
    bool triggered, jumped;
} world;

static bool has_from(uint64_t time) {
    for (int i = 0; i < now.count; i++)
        if (time_of(now.ids[i]) >= time) return true;
    return false;
}

/* How many times have come by then. */
static uint64_t times_until(const world *w, uint64_t ms) {
    return ms < w->s.from_ms ? 0 : (ms - w->s.from_ms) / (uint64_t)(w->s.every_s * 1000) + 1;
}

static void check(const world *w, uint64_t seed) {
    uint64_t every = (uint64_t)(w->s.every_s * 1000), timed = 0;
    look(w->s.workflow);
    for (int i = 0; i < now.count; i++) {
        uint64_t t = time_of(now.ids[i]);
        timed += t != 0;
        if (!t && !w->triggered)
            fail_msg("seed %lu: %s was not asked for", (unsigned long)seed, now.ids[i]);
        if (!t) continue;
        if (t > w->latest) fail_msg("seed %lu: %s is too early", (unsigned long)seed, now.ids[i]);
        if (t < w->s.from_ms || (t - w->s.from_ms) % every)
            fail_msg("seed %lu: %s is no time of the schedule", (unsigned long)seed, now.ids[i]);
    }
    if (w->s.overlap != HD_OVERLAP_ALLOW && now.open > 1)
        fail_msg("seed %lu: %d instances are open", (unsigned long)seed, now.open);
    if (w->latest < w->s.from_ms || w->jumped) return;
    uint64_t come = times_until(w, w->latest);
    uint64_t due = times_until(w, w->latest - (uint64_t)(w->s.jitter_s * 1000));
    bool all = w->s.overlap == HD_OVERLAP_ALLOW && w->s.catch_up == HD_CATCH_UP_ALL;
    if (all && (timed < due || timed > come))
        fail_msg("seed %lu: %lu times were started, of %lu and at most %lu", (unsigned long)seed,
                 (unsigned long)timed, (unsigned long)due, (unsigned long)come);
    bool last = w->s.overlap == HD_OVERLAP_ALLOW && w->s.catch_up == HD_CATCH_UP_LAST;
    if (last && due && !has_from(w->s.from_ms + (due - 1) * every))
        fail_msg("seed %lu: the last time was not started", (unsigned long)seed);
}

static void finish_some(const world *w) {
    look(w->s.workflow);
    for (int i = 0; i < now.open; i++)
        if (roll(2)) (void)hd_workflow_signal(engine, now.ids[i], "go", hd_null());
}

/* Programs do that at each start: it changes nothing. */
static void store_schedule(const world *w) {
    hd_schedule s = w->s;
    hd_error error = { 0 };
    if (!w->from_given) s.from_ms = 0;
    if (hd_schedule_put(engine, &s, &error)) fail_msg("%s", error.message);
}

static void disturb(world *w) {
    int what = roll(12);
    if (what == 0) {
        close_engine();
        lab_env_advance_ms(env, (uint64_t)roll(5 * (int)(w->s.every_s * 1000)));
        open_engine();
        if (roll(2)) store_schedule(w);
    } else if (what == 1 &&
               now_ms() % SECOND % 900) { /* its id has a fraction, which tells it apart */
        triggers += !hd_schedule_trigger(engine, w->s.name);
        w->triggered = true;
    } else if (what == 2 &&
               roll(4) == 0) { /* back: times that were started are not started again */
        lab_env_set_wall_ms(env, now_ms() - (uint64_t)roll(100000));
        jumps++;
    } else if (what == 3 && roll(8) == 0) {
        lab_env_set_wall_ms(env, now_ms() + (uint64_t)roll(100000));
        jumps++;
    }
    if (w->latest < now_ms()) w->latest = now_ms();
}

static void run_world(uint64_t seed) {
    dice = seed;
    env = lab_env_open();
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    open_engine();
    register_flow("quick", NULL);
    register_flow("slow", "wait");
    world w = { .s = { .name = "s",
                       .workflow = roll(2) ? "quick" : "slow",
                       .every_s = 1 + roll(30),
                       .overlap = (hd_overlap)roll(4),
                       .catch_up = (hd_catch_up)roll(3) } };
    w.from_given = roll(2);
    w.s.from_ms =
        now_ms() + (w.from_given ? 1 + (uint64_t)roll(20) : (uint64_t)w.s.every_s) * SECOND;
    if (!roll(3)) w.s.jitter_s = 1 + roll(3 * (int)w.s.every_s);
    store_schedule(&w);
    for (int turn = 0; turn < 60; turn++) {
        lab_env_advance_ms(env, (uint64_t)roll((int)(w.s.every_s * 1500)));
        disturb(&w);
        pump();
        check(&w, seed);
        if (roll(3)) finish_some(&w);
        pump();
        check(&w, seed);
        hd_pool_clear(pool);
    }
    starts += now.count;
    close_engine();
    hd_memory_close(memory);
    lab_env_close(env);
}

static void a_schedule_starts_what_its_times_say(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_SCHEDULES");
    long n = given ? 1 : count ? atol(count) : 400;
    for (long i = 1; i <= n; i++) run_world(given ? strtoull(given, NULL, 0) : (uint64_t)i * 7919);
    print_message("%ld starts, %ld engines, %ld jumps, %ld triggers\n", starts, opens, jumps,
                  triggers);
    assert_true(n < 100 || (starts > n * 10 && opens > n * 2 && jumps > n / 4 && triggers > n));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_schedule_starts_what_its_times_say) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
