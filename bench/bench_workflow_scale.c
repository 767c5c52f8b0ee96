/* bench_workflow_scale.c -- what a step costs must not depend on how much there is: nodes, branches,
 * iterations, instances that are over. */
#define _GNU_SOURCE
#include "bench.h"
#include "workflow_world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs_count.h"

static char file_name[512];

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

/* Allocations of one start, when others have been started before. */
static double start_allocs(workflow_world *w, const char *name, const bench_allocs *allocs) {
    char id[HD_INSTANCE_ID_SIZE];
    world_run(w, name, 8, 2);
    uint64_t before = allocs->calls;
    if (hd_workflow_start(w->engine, name, hd_object(), NULL, id))
        bench_wrong(w->b, "%s cannot be started", name);
    double calls = (double)(allocs->calls - before);
    hd_value result;
    if (hd_workflow_await(w->engine, id, w->pool, &result)) bench_wrong(w->b, "%s failed", name);
    return calls;
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

enum { WINDOW = 500, WINDOWS = 8 };
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

/* ---- Many instances that are over ------------------------------------------------------------------ */

static uint64_t finished_wanted(bench *b) {
    const char *set = getenv("HD_BENCH_INSTANCES");
    if (set) return strtoull(set, NULL, 10);
    return bench_quick(b) ? 20000 : 1000000;
}

static bool make_store(bench *b, uint64_t finished, uint64_t open) {
    workflow_world w;
    char id[HD_INSTANCE_ID_SIZE];
    world_remove_file(file_name);
    if (!world_start(&w, b, file_name, NULL)) return false;
    world_sequence(&w, "job", 1);
    world_wait(&w);
    for (uint64_t i = 0; i < open; i++) {
        if (hd_workflow_start(w.engine, "wait", hd_object(), NULL, id)) return false;
        if (i % 1000 == 0) hd_runtime_sync(w.rt);
    }
    hd_runtime_sync(w.rt);
    world_run(&w, "job", finished, 256);
    world_stop(&w);
    return true;
}

static bool count_listed(const hd_listing *entry, void *ctx) {
    (void)entry;
    return ++*(int *)ctx < 100;
}

/* Microseconds for the first hundred of a status. */
static double list_us(workflow_world *w, const char *prefix) {
    double best = 1e18;
    for (int i = 0; i < 20; i++) {
        int listed = 0;
        uint64_t began = bench_wall_ns();
        if (hd_runtime_list(w->rt, "main", "workflow.done", prefix, count_listed, &listed) ||
            listed != 100)
            bench_wrong(w->b, "100 instances should be listed, not %d", listed);
        double us = (double)(bench_wall_ns() - began) / 1000;
        if (us < best) best = us;
    }
    return best;
}

/* Microseconds from a start to its result. */
static double job_us(workflow_world *w) {
    double best = 1e18;
    world_run(w, "job", 20, 1);
    for (int i = 0; i < 50; i++) {
        uint64_t began = bench_wall_ns();
        world_run(w, "job", 1, 1);
        double us = (double)(bench_wall_ns() - began) / 1000;
        if (us < best) best = us;
    }
    return best;
}

typedef struct among {
    double open_ms, job_us, status_us, name_us;
} among;

static bool measure_among(bench *b, uint64_t finished, uint64_t open, among *m) {
    workflow_world w;
    if (!make_store(b, finished, open)) return false;
    uint64_t began = bench_wall_ns();
    if (!world_start(&w, b, file_name, NULL)) return false;
    m->open_ms = (double)(bench_wall_ns() - began) / 1e6;
    if (world_stats(&w).open != open) bench_wrong(b, "not all open instances were taken up");
    world_sequence(&w, "job", 1);
    m->job_us = job_us(&w);
    m->status_us = list_us(&w, "workflow/");
    m->name_us = list_us(&w, "workflow/job/");
    world_stop(&w);
    world_remove_file(file_name);
    return true;
}

static void bench_finished(bench *b) {
    uint64_t finished = finished_wanted(b), open = finished / 100;
    among few, many;
    if (!measure_among(b, 1000, 10, &few) || !measure_among(b, finished, open, &many)) {
        bench_wrong(b, "a store with many instances could not be made");
        return;
    }
    bench_report(b, &(bench_row){ .name = "workflow/recovery",
                                  .n = open,
                                  .value = many.open_ms,
                                  .unit = "ms",
                                  .must = bench_at_most(1000),
                                  .counts = { { "finished", (double)finished },
                                              { "us per open instance",
                                                many.open_ms * 1000 / (double)open } } });
    bench_report(b, &(bench_row){ .name = "workflow/start-among-finished",
                                  .n = finished,
                                  .value = many.job_us,
                                  .unit = "us",
                                  .peer = "1,000 finished",
                                  .peer_value = few.job_us,
                                  .must = bench_ratio_at_most(1.5) });
    bench_report(b, &(bench_row){ .name = "workflow/list-100-by-status",
                                  .n = finished,
                                  .value = many.status_us,
                                  .unit = "us",
                                  .peer = "1,000 finished",
                                  .peer_value = few.status_us,
                                  .must = bench_ratio_at_most(1.5) });
    bench_report(b, &(bench_row){ .name = "workflow/list-100-by-name",
                                  .n = finished,
                                  .value = many.name_us,
                                  .unit = "us",
                                  .peer = "1,000 finished",
                                  .peer_value = few.name_us,
                                  .must = bench_ratio_at_most(1.5) });
}

/* ---- Idle --------------------------------------------------------------------------------------------------- */

/* Instances wait for signals; the program waits as its loop would, for a second. */
static void bench_idle(bench *b) {
    enum { WAITING = 100, MS = 1000 };
    workflow_world w;
    char id[HD_INSTANCE_ID_SIZE];
    lab_count_vfs *vfs = lab_vfs_counting_register("heddle-bench-idle");
    world_remove_file(file_name);
    if (!vfs || !world_start(&w, b, file_name, "heddle-bench-idle")) return;
    world_wait(&w);
    for (int i = 0; i < WAITING; i++)
        (void)hd_workflow_start(w.engine, "wait", hd_object(), NULL, id);
    for (int i = 0; i < 50; i++) { /* what is left to be done after the commits */
        struct pollfd soon = { .fd = hd_runtime_fd(w.rt), .events = POLLIN };
        hd_runtime_sync(w.rt);
        poll(&soon, 1, 10);
    }
    lab_vfs_counting_reset(vfs);
    uint64_t wakeups = 0;
    for (uint64_t now, end = bench_wall_ns() + MS * UINT64_C(1000000);
         (now = bench_wall_ns()) < end;) {
        struct pollfd fd = { .fd = hd_runtime_fd(w.rt), .events = POLLIN };
        uint64_t due = hd_runtime_deadline(w.rt), until = due < end ? due : end;
        (void)poll(&fd, 1, until > now ? (int)((until - now) / 1000000) + 1 : 0);
        if (bench_wall_ns() >= end) break;
        wakeups++;
        (void)hd_runtime_pump(w.rt);
    }
    lab_io_counts counts = lab_vfs_counting_read(vfs);
    double io = 0;
    for (int i = 0; i < LAB_FILE_KINDS; i++)
        io += (double)(counts.file[i].reads + counts.file[i].writes);
    world_stop(&w);
    lab_vfs_counting_unregister(vfs);
    world_remove_file(file_name);
    bench_report(b, &(bench_row){ .name = "workflow/idle-wakeups",
                                  .n = WAITING,
                                  .value = (double)wakeups,
                                  .unit = "per s",
                                  .must = bench_at_most(0),
                                  .counts = { { "reads and writes of the file", io } } });
}

void bench_group_workflow_scale(bench *b);
void bench_group_workflow_scale(bench *b) {
    const char *folder = getenv("HD_BENCH_DIR");
    snprintf(file_name, sizeof file_name, "%s/heddle-bench.db", folder ? folder : ".");
    bench_memory(b);
    bench_start(b);
    bench_fan(b);
    bench_loop(b);
    bench_finished(b);
    bench_idle(b);
}
