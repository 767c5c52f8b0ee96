/* bench_workflow_idle.c -- what an engine does that has nothing to do. */
#define _GNU_SOURCE
#include "bench.h"
#include "workflow_world.h"

#include <poll.h>
#include <stdio.h>

static char file_name[512];

/* Calls of read and write by this process so far. Asking is some of them, always as many. */
static double file_calls(void) {
    unsigned long long reads = 0, writes = 0;
    char line[100];
    FILE *f = fopen("/proc/self/io", "r");
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "syscr: %llu", &reads);
        (void)sscanf(line, "syscw: %llu", &writes);
    }
    if (f) fclose(f);
    return (double)(reads + writes);
}

/* Waits as a program's loop would; returns how often it woke up. */
static uint64_t wait_ms(workflow_world *w, uint64_t ms) {
    uint64_t wakeups = 0;
    for (uint64_t now, end = bench_wall_ns() + ms * UINT64_C(1000000);
         (now = bench_wall_ns()) < end;) {
        struct pollfd fd = { .fd = hd_runtime_fd(w->rt), .events = POLLIN };
        uint64_t due = hd_runtime_deadline(w->rt), until = due < end ? due : end;
        (void)poll(&fd, 1, until > now ? (int)((until - now) / 1000000) + 1 : 0);
        if (bench_wall_ns() >= end) break;
        wakeups++;
        (void)hd_runtime_pump(w->rt);
    }
    return wakeups;
}

/* Instances wait for signals. A second after the last commit the runtime says how far it has come; from then on it is
 * at rest. */
void bench_group_workflow_idle(bench *b);
void bench_group_workflow_idle(bench *b) {
    enum { WAITING = 100, SETTLE_MS = 2000, MS = 5000 };
    workflow_world w;
    char id[HD_INSTANCE_ID_SIZE];
    bench_file_name(file_name, "heddle-bench.db");
    world_remove_file(file_name);
    if (!world_start(&w, b, file_name, NULL)) return;
    world_wait(&w);
    for (int i = 0; i < WAITING; i++)
        (void)hd_workflow_start(w.engine, "wait", hd_object(), NULL, id);
    hd_runtime_sync(w.rt);
    double before = (double)wait_ms(&w, SETTLE_MS);
    double asking = file_calls();
    asking = file_calls() - asking;
    double calls = file_calls(), wakeups = (double)wait_ms(&w, MS);
    calls = file_calls() - calls - asking;
    world_stop(&w);
    world_remove_file(file_name);
    bench_report(b, &(bench_row){ .name = "workflow/idle-wakeups",
                                  .n = WAITING,
                                  .value = wakeups * 1000 / MS,
                                  .unit = "per s",
                                  .must = bench_at_most(0),
                                  .counts = { { "reads and writes of files", calls },
                                              { "in the 2 s after the last commit", before } } });
}
