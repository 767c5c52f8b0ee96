/* test_gates_naive.c -- time gates against a model that looks at every node each time.
 *
 * A few effects, each reading two of a few cells, with debounces and throttles that come, change and go,
 * holds, transient failures, tracing that is switched on and off, and async runs that end late or are given up. The
 * model keeps, of each node, the times of which seed 8.1 speaks, and says after every step which of them must have run,
 * how often, which is next and when, and why the others do not. How long a retry waits is drawn by chance: the model
 * looks it up, and checks that it is within its bounds.
 *
 * A second world has bodies that take their time, and effects that are debounced for it (8.2): as the average says,
 * and in two programs alike, one of which is traced, stopped at breakpoints and timed more often (P10).
 *
 * HD_STEPS is the number of steps; HD_SEED repeats a run. */
#include "lab_sched.h"
#include "scheduler/gates/gates.h"
#include "scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS UINT64_C(1000000)

enum { CELLS = 3, EFFECTS = 4, HOLDS = 3, STEPS = 4000 };

typedef struct twin {
    hd_node handle;
    int reads[2];
    bool invalid, ran, asynchronous;
    uint64_t debounce, throttle; /* ms; 0: none */
    uint64_t quiet_since;        /* of its debounce; 0: no window is open */
    uint64_t last_run;           /* of its throttle; 0: none that counts */
    uint32_t fails;              /* transient failures to come */
    uint32_t in_a_row; /* that it has had since its last success, or since it was given up */
    bool gave_up;     /* ten in a row, and no success since: a failure is not followed by a retry */
    uint32_t retries; /* the same, forgotten after a while */
    uint64_t retry_ns;   /* of its last retry; 0: none */
    bool drawn;          /* in this step: the model does not know retry_ns yet */
    hd_run *run;         /* suspended; NULL */
    bool stale;          /* what it read has changed since it was suspended */
    bool owed;           /* a retry after that: changes do not make it wait again */
    int begun, expected; /* bodies in this step */
} twin;

typedef struct held {
    hd_hold hold;
    int effect; /* -1: all */
    uint64_t until;
} held;

static lab *l;
static lab_random r;
static hd_runtime *rt;
static hd_cell cells[CELLS];
static int values[CELLS];
static twin twins[EFFECTS];
static held holds[HOLDS];
static uint64_t now; /* ms; begins at 1, so that 0 is none */
static long step;

static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

/* ---- the real ones */

static hd_status look(hd_tx *tx, void *ctx) {
    twin *t = ctx;
    t->begun++;
    for (int i = 0; i < 2; i++) (void)hd_tx_get(tx, cells[t->reads[i]]);
    if (t->fails) {
        t->fails--;
        return HD_BUSY;
    }
    if (!t->asynchronous) return HD_OK;
    assert_int_equal(hd_tx_suspend(tx, &t->run), HD_OK);
    return HD_PENDING;
}

/* ---- the model */

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t held_until(const twin *t) {
    uint64_t until = 0;
    for (int i = 0; i < HOLDS && !t->ran; i++)
        if (holds[i].hold.id && (holds[i].effect < 0 || &twins[holds[i].effect] == t))
            until = later(until, holds[i].until);
    return until;
}

static uint64_t eligible_at(const twin *t) {
    uint64_t at = held_until(t);
    if (t->debounce && t->quiet_since) at = later(at, t->quiet_since + t->debounce);
    if (t->throttle && t->last_run) at = later(at, t->last_run + t->throttle);
    return at;
}

static uint64_t clock_ns(void) {
    const hd_env *env = lab_env_of(lab_world(l));
    return env->monotonic_ns(env->ctx);
}

/* The model's milliseconds as the clock tells them. */
static uint64_t ns_of(uint64_t ms) { return ms ? clock_ns() + ms * MS - now * MS : 0; }
static uint64_t eligible_ns(const twin *t) { return later(ns_of(eligible_at(t)), t->retry_ns); }

static void change(int cell) {
    for (int i = 0; i < EFFECTS; i++) {
        twin *t = &twins[i];
        if (t->reads[0] != cell && t->reads[1] != cell) continue;
        t->invalid = true;
        t->stale = t->run != NULL;
        if (t->debounce && !t->owed) t->quiet_since = now;
    }
}

static void completed(twin *t) {
    t->invalid = t->owed = false;
    t->in_a_row = t->retries = 0;
    t->gave_up = false;
    t->retry_ns = 0;
    t->ran = true;
    t->last_run = t->throttle ? now : 0;
}

/* A run fails for now. True: it is tried again at once, whatever the gates say. */
static bool retried_at_once(twin *t) {
    if (clock_ns() > t->retry_ns + 2000 * MS) t->retries = 0;
    t->retries++;
    t->drawn = t->retries > 1;
    t->retry_ns = clock_ns();
    t->last_run = 0;
    return !t->drawn;
}

/* The tenth failure in a row is reported, and the run is over like any other. */
static void expect_run(twin *t) {
    bool given_up = false;
    t->quiet_since = 0;
    for (uint32_t left = t->fails; left && !given_up; left--) {
        t->expected++;
        given_up = ++t->in_a_row == RETRIES_MAX || t->gave_up;
        if (!given_up && !retried_at_once(t)) return;
    }
    if (!given_up) t->expected++;
    if (given_up || !t->asynchronous) completed(t);
    else t->invalid = t->stale = false;
    t->gave_up |= given_up;
}

/* 0.8 ms before the first retry, doubling to a second; after failures as if there had been three more. */
static void look_up_retry(twin *t) {
    const scheduler *s = scheduler_get(rt);
    uint64_t at = cold_of(s, node_of(s, t->handle.id))->gate.retry_at, ms = 25;
    uint32_t times = t->retries - 1 + 3;
    uint64_t ns = times < 6 ? ms * MS >> (6 - times) : ms * MS << (times - 6);
    if (ns > 1000 * MS) ns = 1000 * MS;
    if (at > t->retry_ns + ns || at < t->retry_ns + ns / 4 * 3)
        lab_fail("step %ld: a retry waits %llu ns of %llu", step,
                 (unsigned long long)(at - t->retry_ns), (unsigned long long)ns);
    t->retry_ns = at;
    t->drawn = false;
}

static void expect_runs(void) {
    for (int i = 0; i < EFFECTS; i++) {
        twin *t = &twins[i];
        t->expected = t->begun = 0;
        if (t->invalid && !t->run && clock_ns() >= eligible_ns(t)) expect_run(t);
    }
}

/* Of several that end at the same time a hold is named first, then a retry, then the throttle. */
static hd_why_not why_not(const twin *t) {
    if (t->run) return HD_WHY_NOT_RUNNING;
    if (!t->invalid) return HD_WHY_NOT_CLEAN;
    if (eligible_ns(t) == ns_of(held_until(t))) return HD_WHY_NOT_HELD;
    if (eligible_ns(t) == t->retry_ns) return HD_WHY_NOT_RETRY;
    bool throttled = t->throttle && t->last_run && eligible_at(t) == t->last_run + t->throttle;
    return throttled ? HD_WHY_NOT_THROTTLE : HD_WHY_NOT_DEBOUNCE;
}

static void compare(void) {
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < EFFECTS; i++) {
        twin *t = &twins[i];
        hd_node_info info;
        if (t->drawn) look_up_retry(t);
        if (t->begun != t->expected)
            lab_fail("step %ld: effect %d ran %d times and not %d", step, i, t->begun, t->expected);
        assert_int_equal(hd_node_inspect(rt, t->handle, &info), HD_OK);
        if (t->invalid && !t->run && eligible_ns(t) < next) next = eligible_ns(t);
        if (info.why_not != why_not(t))
            lab_fail("step %ld: effect %d: \"%s\" and not \"%s\"", step, i,
                     hd_why_not_text(info.why_not), hd_why_not_text(why_not(t)));
    }
    uint64_t wake = gates_next(scheduler_get(rt));
    if (next != UINT64_MAX && wake > next)
        lab_fail("step %ld: nothing wakes at %llu", step, (unsigned long long)next);
}

/* ---- steps */

static uint32_t some_ms(void) { return below(3) ? 1 + below(80) : 0; }

static void register_one(twin *t) {
    hd_run *run = t->run;
    *t = (twin){ .reads = { (int)below(CELLS), (int)below(CELLS) }, .invalid = true };
    t->debounce = some_ms();
    t->throttle = some_ms();
    if (t->debounce) t->quiet_since = now;
    char name[32];
    snprintf(name, sizeof name, "e%d", (int)(t - twins));
    hd_cell reads[2] = { cells[t->reads[0]], cells[t->reads[1]] };
    hd_node_spec spec = { .name = name,
                          .fn = look,
                          .ctx = t,
                          .effect = true,
                          .no_auto_debounce = true,
                          .reads = reads,
                          .read_count = 2,
                          .debounce_ms = (uint32_t)t->debounce,
                          .throttle_ms = (uint32_t)t->throttle };
    assert_int_equal(hd_node_register(rt, &spec, &t->handle), HD_OK);
    if (run) hd_run_resume(run, HD_OK); /* of the one before: for nobody */
}

static void set_cell(void) {
    int cell = (int)below(CELLS), value = (int)below(3);
    if (values[cell] == value) return;
    values[cell] = value;
    hd_write(rt, cells[cell], hd_double(value));
    change(cell);
}

/* A window that is open is of the new length from its start; one that is cleared is closed. Where there was
 * no gate, the window of a run that is due begins now. */
static void set_debounce(twin *t) {
    bool had = t->debounce;
    t->debounce = some_ms();
    if (!had && t->invalid && t->ran && !t->run && !t->owed && !t->in_a_row) t->quiet_since = now;
    if (!t->debounce) t->quiet_since = 0;
    assert_int_equal(hd_node_set_debounce(rt, t->handle, (uint32_t)t->debounce), HD_OK);
}

static void set_throttle(twin *t) {
    bool had = t->throttle;
    t->throttle = some_ms();
    if (!had && t->ran && !t->owed && !t->in_a_row) t->last_run = now;
    if (!t->throttle) t->last_run = 0;
    assert_int_equal(hd_node_set_throttle(rt, t->handle, (uint32_t)t->throttle), HD_OK);
}

static void begin_or_end_hold(held *h) {
    if (h->hold.id) {
        hd_hold_end(rt, h->hold);
        h->hold.id = 0;
        return;
    }
    uint32_t ms = 1 + below(100);
    char name[32];
    h->effect = (int)below(EFFECTS + 1) - 1;
    snprintf(name, sizeof name, "e%d", h->effect);
    assert_int_equal(hd_hold_begin(rt, h->effect < 0 ? NULL : name, ms, &h->hold), HD_OK);
    h->until = now + ms;
}

static void resume(twin *t) {
    if (!t->run) return;
    hd_run *run = t->run;
    t->run = NULL;
    if (t->stale) { /* a retry is owed */
        t->quiet_since = t->last_run = 0;
        t->invalid = t->owed = true;
    } else {
        t->quiet_since = 0;
        completed(t);
    }
    hd_run_resume(run, HD_OK);
}

static void act(void) {
    twin *t = &twins[below(EFFECTS)];
    switch (below(13)) {
    case 0:
    case 1:
    case 2: set_cell(); break;
    case 3: set_debounce(t); break;
    case 4: set_throttle(t); break;
    case 5: begin_or_end_hold(&holds[below(HOLDS)]); break;
    case 6:
        if (t->fails < RETRIES_MAX) t->fails = 1 + below(below(8) ? 4 : 30);
        break;
    case 7: t->asynchronous = !t->asynchronous; break;
    case 8:
    case 9: resume(t); break;
    case 10:
        if (below(4)) break;
        hd_node_unregister(rt, t->handle);
        register_one(t);
        break;
    case 11: /* who looks on decides nothing (P10) */
        assert_int_equal(hd_trace_enable(rt, below(2) ? HD_TRACE_ALL : 0), HD_OK);
        break;
    default:
        now += 1 + below(below(8) ? 40 : 1500);
        lab_env_advance_ms(lab_world(l), now - 1 - lab_now_ms(l));
        break;
    }
}

static void nodes_run_when_the_model_says(void **state) {
    l = lab_start_with((lab_options){ .kind = LAB_MEMORY });
    r = lab_random_of(lab_seed());
    rt = lab_runtime_now(l);
    now = 1;
    const char *steps = getenv("HD_STEPS");
    for (int i = 0; i < CELLS; i++) {
        char name[32];
        snprintf(name, sizeof name, "main/c%d", i);
        cells[i] = hd_cell_at(rt, name);
        values[i] = -1;
    }
    for (int i = 0; i < EFFECTS; i++) register_one(&twins[i]);
    for (step = 0; step < (steps ? atol(steps) : STEPS); step++) {
        act();
        expect_runs();
        hd_runtime_pump(rt);
        compare();
    }
    lab_close(l);
}

/* ---- slow bodies */

enum { SLOW_EFFECTS = 6, SLOW_STEPS = 400 };

/* An effect that is in both programs. */
typedef struct slow {
    uint32_t ms;       /* that its next run takes */
    uint64_t total_ms; /* of its runs but the first two */
    int runs;
    bool fast;      /* a run of it took no time: then not every run is timed */
    bool debounced; /* as the average says */
} slow;

static slow slows[SLOW_EFFECTS];
static lab *programs[2];
static hd_node slow_nodes[2][SLOW_EFFECTS];
static int program; /* whose turn it is */

static hd_status take_time(hd_tx *tx, void *ctx) {
    const slow *e = ctx;
    char name[32];
    snprintf(name, sizeof name, "main/t%d", (int)(e - slows));
    (void)hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), name));
    lab_env_advance_ms(lab_world(programs[program]), e->ms);
    return HD_OK;
}

static void ignore_stop(hd_node at, void *ctx) { (void)at, (void)ctx; }

/* The second program is looked at. */
static void look_on(hd_runtime *in) {
    hd_node any = slow_nodes[1][below(SLOW_EFFECTS)];
    assert_int_equal(hd_trace_enable(in, below(2) ? HD_TRACE_ALL : 0), HD_OK);
    assert_int_equal(hd_break_node(in, any, below(2) ? ignore_stop : NULL, NULL), HD_OK);
}

/* All have run before the next change: a debounce is waited for. */
static void run_once(int i, int value) {
    char name[32];
    snprintf(name, sizeof name, "main/t%d", i);
    for (program = 0; program < 2; program++) {
        hd_runtime *in = lab_runtime_now(programs[program]);
        hd_node_info before, after;
        if (program) look_on(in);
        assert_int_equal(hd_node_inspect(in, slow_nodes[program][i], &before), HD_OK);
        hd_write(in, hd_cell_at(in, name), hd_double(value));
        lab_settle(programs[program]);
        lab_advance_ms(programs[program], 100);
        lab_settle(programs[program]);
        assert_int_equal(hd_node_inspect(in, slow_nodes[program][i], &after), HD_OK);
        assert_int_equal(after.runs, before.runs + 1);
    }
}

static void note_run(slow *e) {
    e->fast |= !e->ms;
    if (e->runs++ >= 2) e->total_ms += e->ms;
    if (e->runs >= 3 && e->total_ms >= 50 * (uint64_t)(e->runs - 2)) e->debounced = true;
}

static void compare_slow(int i) {
    uint32_t ms[2];
    for (int p = 0; p < 2; p++)
        ms[p] = hd_node_debounce(lab_runtime_now(programs[p]), slow_nodes[p][i]);
    if (ms[0] != ms[1])
        lab_fail("effect %d: a debounce of %u ms, and of %u where someone looks on", i, ms[0],
                 ms[1]);
    if (!slows[i].fast && ms[0] != (slows[i].debounced ? 100u : 0u))
        lab_fail("effect %d: after %d runs and %llu ms its debounce is %u ms", i, slows[i].runs,
                 (unsigned long long)slows[i].total_ms, ms[0]);
}

static void open_program(int p) {
    programs[p] = lab_start_with((lab_options){ .kind = LAB_MEMORY });
    program = p;
    for (int i = 0; i < SLOW_EFFECTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%d", i);
        hd_node_spec spec = { .name = name, .fn = take_time, .ctx = &slows[i], .effect = true };
        assert_int_equal(hd_node_register(lab_runtime_now(programs[p]), &spec, &slow_nodes[p][i]),
                         HD_OK);
    }
    lab_settle(programs[p]);
}

static void slow_effects_are_debounced_whoever_looks_on(void **state) {
    r = lab_random_of(lab_seed());
    memset(slows, 0, sizeof slows);
    for (int p = 0; p < 2; p++) open_program(p);
    for (int i = 0; i < SLOW_EFFECTS; i++) slows[i].runs = 1; /* the first, of no time */
    for (int n = 1; n <= SLOW_STEPS; n++) {
        int i = (int)below(SLOW_EFFECTS);
        slows[i].ms = i < 2 && !below(3) ? 0 : 1 + below(40 + 15 * (uint32_t)i);
        run_once(i, n);
        note_run(&slows[i]);
        compare_slow(i);
    }
    for (int p = 0; p < 2; p++) lab_close(programs[p]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_run_when_the_model_says),
        cmocka_unit_test(slow_effects_are_debounced_whoever_looks_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
