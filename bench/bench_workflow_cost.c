/* bench_workflow_cost.c -- what bounds the engine with 256 in flight: CPU time of the program's thread, which runs the
 * engine, and of the store's, for each instance.
 *
 * HD_BENCH_LOAD=job or =ten runs one of the two loads alone; README.md says how to count its instructions. */
#define _GNU_SOURCE
#include "bench.h"
#include "workflow_world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IN_FLIGHT = 256, TOTAL = 2560 };

static char file_name[512];

static double us_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void bench_load(bench *b, const char *row, const char *name, int steps) {
    workflow_world w;
    const char *only = getenv("HD_BENCH_LOAD");
    if (only && strcmp(only, name) != 0) return;
    world_remove_file(file_name);
    if (!world_start(&w, b, file_name, NULL)) return;
    world_sequence(&w, name, steps);
    double wall = us_of(CLOCK_MONOTONIC), all = us_of(CLOCK_PROCESS_CPUTIME_ID);
    double own = us_of(CLOCK_THREAD_CPUTIME_ID);
    uint64_t before = world_stats(&w).commits;
    world_run(&w, name, TOTAL, IN_FLIGHT);
    own = us_of(CLOCK_THREAD_CPUTIME_ID) - own;
    all = us_of(CLOCK_PROCESS_CPUTIME_ID) - all;
    wall = us_of(CLOCK_MONOTONIC) - wall;
    double commits = (double)(world_stats(&w).commits - before);
    world_stop(&w);
    world_remove_file(file_name);
    bench_report(
        b, &(bench_row){ .name = row,
                         .n = TOTAL,
                         .value = own / TOTAL,
                         .unit = "us",
                         .counts = { { "us of the store's thread", (all - own) / TOTAL },
                                     { "us of wall time", wall / TOTAL },
                                     { "steps per commit", TOTAL * (steps + 1) / commits } } });
}

void bench_group_workflow_cost(bench *b);
void bench_group_workflow_cost(bench *b) {
    bench_file_name(file_name, "heddle-bench.db");
    bench_load(b, "workflow/cost-of-a-job", "job", 1);
    bench_load(b, "workflow/cost-of-ten-steps", "ten", 10);
}
