/* bench_workflow.c -- workflows per second, beside a loop that only makes the same bytes durable.
 *
 * The ceiling is a raw C loop with SQLite that appends as many bytes for each step as the engine does, in
 * as many transactions of as many steps, one writer, each durable before the next begins. Both take turns on
 * fresh files in one folder, and the median of the rounds' ratios counts. */
#define _GNU_SOURCE
#include "bench.h"
#include "peers.h"
#include "raw_sqlite.h"
#include "workflow_world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7 };

static char file_name[512], raw_name[512];

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *of, int count) {
    qsort(of, (size_t)count, sizeof *of, compare_doubles);
    return of[count / 2];
}

/* ---- The ceiling ------------------------------------------------------------------------------------ */

/* What a run of ours became in the log. A step here is a start or a completion: each must be durable before
 * what follows it. */
typedef struct in_log {
    uint64_t steps, groups; /* groups: transactions of SQLite, one log row each */
    double bytes;           /* of a group's row, on average */
} in_log;

/* Rows are folded away in time; those that are left tell how large one is, the last one's number how many
 * there were. */
static void look_into_log(in_log *became) {
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    if (sqlite3_open_v2(file_name, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "select avg(length(body)), max(row) from log", -1, &s, NULL) ==
            SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW) {
        became->bytes = sqlite3_column_double(s, 0);
        became->groups = (uint64_t)sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static double raw_s(bench *b, in_log same) {
    double per_group = (double)same.steps / (double)(same.groups ? same.groups : 1);
    uint32_t rows = per_group > 1 ? (uint32_t)(per_group + 0.5) : 1;
    raw_log *raw = raw_log_open(raw_name, (uint32_t)(same.bytes / per_group));
    uint64_t began = bench_wall_ns();
    if (!raw || !raw_log_append(raw, same.steps, rows)) bench_wrong(b, "no raw loop");
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    raw_log_close(raw);
    return seconds;
}

/* ---- Rates ---------------------------------------------------------------------------------------------- */

typedef struct load {
    const char *workflow;
    void (*set_up)(workflow_world *w);
    int64_t n; /* input of the workflow; 0: none */
    uint64_t total, in_flight;
    uint64_t steps_each; /* starts and completions of an instance */
} load;

static double ours_s(bench *b, const load *l, in_log *became) {
    workflow_world w;
    world_remove_file(file_name);
    if (!world_start(&w, b, file_name, NULL)) return 1;
    l->set_up(&w);
    uint64_t began = bench_wall_ns();
    if (l->n)
        for (uint64_t i = 0; i < l->total; i++) world_run_one(&w, l->workflow, l->n);
    else world_run(&w, l->workflow, l->total, l->in_flight);
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    became->steps = l->total * l->steps_each;
    look_into_log(became);
    world_stop(&w);
    world_remove_file(file_name);
    return seconds;
}

static void bench_rate(bench *b, const char *name, const load *l, double share, const char *unit) {
    double ratios[ROUNDS], raw[ROUNDS];
    int rounds = bench_repeats(b, ROUNDS);
    in_log became = { 0 };
    ours_s(b, l, &became); /* what the raw loop is to do */
    for (int i = 0; i < rounds; i++) {
        double ours = i % 2 ? ours_s(b, l, &became) : 0;
        raw[i] = raw_s(b, became);
        if (i % 2 == 0) ours = ours_s(b, l, &became);
        ratios[i] = ours / raw[i];
    }
    double seconds = median(raw, rounds), ratio = median(ratios, rounds);
    bench_report(
        b, &(bench_row){
               .name = name,
               .n = l->total,
               .value = (double)l->total / (seconds * ratio),
               .unit = unit,
               .rate = true,
               .peer = "ceiling",
               .peer_value = (double)l->total / seconds,
               .must = bench_ratio_at_most(1 / share),
               .counts = { { "steps per group", (double)became.steps / (double)became.groups },
                           { "log bytes per step",
                             became.bytes * (double)became.groups / (double)became.steps } } });
}

static void set_up_ten(workflow_world *w) { world_sequence(w, "ten", 10); }
static void set_up_job(workflow_world *w) { world_sequence(w, "job", 1); }

static void bench_sequential(bench *b) {
    static const struct {
        uint64_t in_flight, total;
        double share;
    } rows[] = { { 1, 200, 0.80 }, { 8, 1600, 0.75 }, { 32, 3200, 0.65 }, { 256, 5120, 0.60 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        load l = { "ten", set_up_ten, 0, rows[i].total, rows[i].in_flight, 11 };
        snprintf(name, sizeof name, "workflow/ten-steps-%d-in-flight", (int)rows[i].in_flight);
        bench_rate(b, name, &l, rows[i].share, "workflows/s");
    }
}

void bench_group_workflow(bench *b);
void bench_group_workflow(bench *b) {
    bench_file_name(file_name, "heddle-bench.db");
    bench_file_name(raw_name, "heddle-bench-raw.db");
    bench_sequential(b);
    bench_rate(b, "workflow/fan-out-100", &(load){ "fan", world_fan, 100, 200, 1, 101 }, 0.70,
               "workflows/s");
    bench_rate(b, "workflow/one-step-jobs", &(load){ "job", set_up_job, 0, 25600, 256, 2 }, 0.55,
               "jobs/s");
    static const double times[] = { 8, 20, 20 };
    peer_compare_dbos(b, "workflow", times);
}
