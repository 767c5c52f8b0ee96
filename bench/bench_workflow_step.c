/* bench_workflow_step.c -- what a step costs, 256 workflows in flight: bytes written to the disk, closing included, and
 * CPU time. A program that has just opened its store lengthens the WAL by zeros, up to some 4 MiB, once. So the world
 * first runs until the WAL is as long as it becomes, and folds that into the file: what is counted then is the cost of
 * the steps that are counted. */
#define _GNU_SOURCE
#include "bench.h"
#include "workflow_world.h"

#include <time.h>

#include "vfs_count.h"

static char file_name[512];

static double cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void bench_group_workflow_step(bench *b);
void bench_group_workflow_step(bench *b) {
    enum { IN_FLIGHT = 256, WARM_UP = 4608 };
    uint64_t total = 20480; /* also of a quick run: what closing costs is shared by these */
    workflow_world w;
    lab_count_vfs *vfs = lab_vfs_counting_register("heddle-bench-workflow");
    bench_file_name(file_name, "heddle-bench.db");
    world_remove_file(file_name);
    if (!vfs || !world_start(&w, b, file_name, "heddle-bench-workflow")) return;
    world_sequence(&w, "ten", 10);
    world_run(&w, "ten", WARM_UP, IN_FLIGHT);
    if (hd_store_checkpoint(w.rt, NULL)) bench_wrong(b, "no checkpoint before the steps");
    lab_vfs_counting_reset(vfs);
    hd_engine_stats before = world_stats(&w);
    double cpu = cpu_us();
    world_run(&w, "ten", total, IN_FLIGHT);
    cpu = cpu_us() - cpu;
    hd_engine_stats after = world_stats(&w);
    world_stop(&w);
    lab_io_counts counts = lab_vfs_counting_read(vfs);
    lab_vfs_counting_unregister(vfs);
    world_remove_file(file_name);
    double steps = (double)(after.steps - before.steps);
    bench_report(
        b,
        &(bench_row){
            .name = "workflow/bytes-per-step",
            .n = after.steps - before.steps,
            .value = (double)lab_io_durable_bytes(&counts) / steps,
            .unit = "B",
            .must = bench_at_most(400),
            .counts = { { "WAL", (double)counts.file[LAB_FILE_WAL].bytes_written / steps },
                        { "database", (double)counts.file[LAB_FILE_DB].bytes_written / steps },
                        { "syncs per 1000", 1000.0 * (double)lab_io_syncs(&counts) / steps } } });
    bench_report(
        b, &(bench_row){ .name = "workflow/cpu-per-step",
                         .n = after.steps - before.steps,
                         .value = cpu / steps,
                         .unit = "us",
                         .must = bench_at_most(5),
                         .counts = { { "nodes", (double)(after.nodes - before.nodes) / steps },
                                     { "steps per commit",
                                       steps / (double)(after.commits - before.commits) } } });
}
