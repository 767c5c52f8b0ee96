/* bench_workflow_scale.c -- what a step costs must not depend on how much there is: nodes, branches,
 * iterations. */
#define _GNU_SOURCE
#include "bench.h"
#include "workflow_world.h"

/* ---- In memory ------------------------------------------------------------------------------------- */

static void run_loop(void *ctx, uint64_t n) { world_run_one(ctx, "loop", (int64_t)n); }

static void bench_memory(bench *b) {
    workflow_world w;
    if (!world_start(&w, b, NULL, NULL)) return;
    world_loop(&w);
    double ns = bench_ns_per_op(b, run_loop, &w);
    world_stop(&w);
    bench_report(b, &(bench_row){ .name = "workflow/memory-action-to-action",
                                  .n = 1,
                                  .value = ns / 1000,
                                  .unit = "us",
                                  .must = bench_at_most(5) });
}

/* Allocations of one start, when others have been started before. The fewest of several: now and then a table grows. */
static double start_allocs(workflow_world *w, const char *name, const bench_allocs *allocs) {
    char id[HD_INSTANCE_ID_SIZE];
    double fewest = 1e9;
    hd_value result;
    world_run(w, name, 8, 2);
    for (int i = 0; i < 8; i++) {
        uint64_t before = allocs->calls;
        if (hd_workflow_start(w->engine, name, hd_object(), NULL, id))
            bench_wrong(w->b, "%s cannot be started", name);
        double calls = (double)(allocs->calls - before);
        if (calls < fewest) fewest = calls;
        if (hd_workflow_await(w->engine, id, w->pool, &result))
            bench_wrong(w->b, "%s failed", name);
    }
    return fewest;
}

static void bench_start(bench *b) {
    bench_allocs allocs = { 0 };
    hd_env env = bench_count_allocs(hd_env_system(), &allocs);
    workflow_world w;
    if (!world_start_with(&w, b, NULL, NULL, &env)) return;
    world_wide(&w, "nodes10", 10);
    world_wide(&w, "nodes500", 500);
    double few = start_allocs(&w, "nodes10", &allocs), many = start_allocs(&w, "nodes500", &allocs);
    world_stop(&w);
    bench_report(b, &(bench_row){ .name = "workflow/start-500-nodes",
                                  .n = 500,
                                  .value = many,
                                  .unit = "allocations",
                                  .peer = "10 nodes",
                                  .peer_value = few,
                                  .must = bench_ratio_at_most(1.05) });
}

/* ---- Fan-out ------------------------------------------------------------------------------------------ */

/* Nanoseconds for each branch, and the most memory that was in use at once. */
static double fan_ns(bench *b, int64_t branches, uint64_t *peak) {
    bench_allocs allocs = { 0 };
    hd_env env = bench_count_allocs(hd_env_system(), &allocs);
    workflow_world w;
    double best = 1e18;
    for (int i = 0; i < bench_repeats(b, 3); i++) {
        if (!world_start_with(&w, b, NULL, NULL, &env)) return 1;
        world_fan(&w);
        uint64_t began = bench_now_ns();
        world_run_one(&w, "fan", branches);
        double ns = (double)(bench_now_ns() - began) / (double)branches;
        if (ns < best) best = ns;
        world_stop(&w);
    }
    *peak = allocs.peak_bytes;
    return best;
}

static void bench_fan(bench *b) {
    uint64_t few_peak, many_peak;
    double few = fan_ns(b, 10000, &few_peak), many = fan_ns(b, 100000, &many_peak);
    bench_report(b, &(bench_row){ .name = "workflow/fan-out-100000",
                                  .n = 100000,
                                  .value = many,
                                  .unit = "ns/branch",
                                  .peer = "10,000",
                                  .peer_value = few,
                                  .must = bench_ratio_at_most(1.3),
                                  .counts = { { "peak MB", (double)many_peak / 1e6 },
                                              { "peak MB of 10,000", (double)few_peak / 1e6 } } });
}

/* ---- Loops ---------------------------------------------------------------------------------------------- */

enum { WINDOW = 500, WINDOWS = 19 };
/* When the first windows began, and those from iteration 100,000 on. */
static uint64_t early[WINDOWS + 1], late[WINDOWS + 1];

static void note_time(uint64_t calls) {
    uint64_t at = calls >= 100000 ? calls - 100000 : calls - 10;
    uint64_t *times = calls >= 100000 ? late : early;
    if (calls >= 10 && at % WINDOW == 0 && at / WINDOW <= WINDOWS)
        times[at / WINDOW] = bench_now_ns();
}

/* Of a window, in nanoseconds for an iteration; noise only ever adds. */
static double fastest(const uint64_t *times) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < WINDOWS; i++)
        if (times[i + 1] - times[i] < best) best = times[i + 1] - times[i];
    return (double)best / WINDOW;
}

static void bench_loop(bench *b) {
    workflow_world w;
    int64_t iterations = bench_quick(b) ? 110000 : 1000000;
    if (!world_start(&w, b, NULL, NULL)) return;
    world_loop(&w);
    world_run_one(&w, "loop", 2000); /* warm */
    world_calls = 0;
    world_called = note_time;
    uint64_t began = bench_now_ns();
    world_run_one(&w, "loop", iterations);
    double each = (double)(bench_now_ns() - began) / (double)iterations;
    world_called = NULL;
    world_stop(&w);
    bench_report(b, &(bench_row){ .name = "workflow/loop-at-100000",
                                  .n = (uint64_t)iterations,
                                  .value = fastest(late),
                                  .unit = "ns/iteration",
                                  .peer = "at 10",
                                  .peer_value = fastest(early),
                                  .must = bench_ratio_at_most(1.1),
                                  .counts = { { "mean of all", each } } });
}

void bench_group_workflow_scale(bench *b);
void bench_group_workflow_scale(bench *b) {
    bench_memory(b);
    bench_start(b);
    bench_fan(b);
    bench_loop(b);
}
