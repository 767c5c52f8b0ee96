/* postgres_processes.c -- several processes on one store: steps that another one does, writers of one space; and a
 * store of many documents. */
#define _GNU_SOURCE
#include "committing.h"
#include "on_server.h"
#include "workflow_world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Steps elsewhere --------------------------------------------------------------------------- */

enum { RUNS = 30, STEPS = 10, TIMES = RUNS * (STEPS - 1) };

static hd_status note_time(hd_action *a, hd_value args, void *ctx) {
    uint64_t now = bench_wall_ns();
    (void)args;
    if (write(*(const int *)ctx, &now, sizeof now) < 0) _exit(1);
    return hd_action_return(a, hd_int(NULL, 1));
}

static void serve_in_child(on_server *o, int pipe) {
    hd_engine *engine;
    hd_runtime *rt = open_store(o);
    hd_engine_options options = { .observer = true };
    hd_action_spec spec = { .name = "elsewhere", .fn = note_time, .ctx = &pipe, .here = true };
    if (!rt || hd_engine_open(rt, &options, &engine, NULL) || hd_action_register(engine, &spec))
        _exit(1);
    (void)hd_runtime_run(rt);
    _exit(0);
}

/* From one step of an instance to its next: an outcome, its effect, another entry. */
static bool run_and_hear(workflow_world *w, int heard, double *ms) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_value result;
    for (int i = 0; i < RUNS; i++) {
        uint64_t before = 0, now;
        if (hd_workflow_start(w->engine, "away", hd_object(), NULL, id) ||
            hd_workflow_await(w->engine, id, w->pool, &result))
            return false;
        for (int k = 0; k < STEPS; k++, before = now) {
            if (read(heard, &now, sizeof now) != sizeof now) return false;
            if (k) *ms++ = (double)(now - before) / 1e6;
        }
    }
    return true;
}

static void report_steps(on_server *o, double *ms) {
    qsort(ms, TIMES, sizeof *ms, compare_doubles);
    bench_report(o->b, &(bench_row){ .name = "postgres/step-elsewhere-p50",
                                     .n = TIMES,
                                     .value = ms[TIMES / 2],
                                     .unit = "ms",
                                     .must = bench_at_most(10) });
    bench_report(o->b, &(bench_row){ .name = "postgres/step-elsewhere-p99",
                                     .n = TIMES,
                                     .value = ms[TIMES * 99 / 100],
                                     .unit = "ms",
                                     .counts = { { "worst ms", ms[TIMES - 1] } } });
}

void bench_steps_elsewhere(on_server *o) {
    static double ms[TIMES];
    workflow_world w;
    int ends[2];
    name_store(o);
    hd_runtime *rt = open_store(o); /* the store is made before there are two programs */
    if (!rt || hd_close(rt) || pipe(ends)) return;
    pid_t child = fork();
    if (child == 0) serve_in_child(o, ends[1]);
    close(ends[1]);
    if (world_start(&w, o->b, o->url, NULL)) {
        world_sequence_of(&w, "away", "elsewhere", STEPS);
        if (run_and_hear(&w, ends[0], ms)) report_steps(o, ms);
        else bench_wrong(o->b, "the other process stopped");
        world_stop(&w);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    drop_store(o);
}

/* ---- Writers of one space ---------------------------------------------------------------------- */

/* One writer and four take turns, because a disk is faster at one time than at another: the turn with the median ratio
 * counts. */
enum { WRITERS = 4, IN_FLIGHT = 32, WRITE_MS = 1000, WRITE_TURNS = 5 };

/* Commits until the time is over, and tells how many. */
static void write_in_child(on_server *o, int writer, int start, int out) {
    committing c;
    char cell[32], byte;
    uint64_t commits = 0;
    hd_runtime *rt = open_store(o);
    if (!rt) _exit(1);
    snprintf(cell, sizeof cell, "main/w%d-%%d", writer);
    committing_init(&c, o->b, rt, cell);
    if (write(out, &commits, sizeof commits) < 0 || read(start, &byte, 1) < 0) _exit(1);
    uint64_t end = bench_wall_ns() + WRITE_MS * UINT64_C(1000000);
    for (; bench_wall_ns() < end; commits += IN_FLIGHT * 4)
        commit_many(&c, IN_FLIGHT * 4, IN_FLIGHT);
    if (write(out, &commits, sizeof commits) < 0) _exit(1);
    committing_close(&c);
    _exit(0);
}

/* What writers did together. */
typedef struct together {
    double commits_s, least; /* of the slowest, as a part of the fastest */
    double commits, groups;  /* rows of the log */
    server_counts cost;
} together;

static double count_rows(on_server *o) {
    char sql[128];
    double last = 0;
    snprintf(sql, sizeof sql, "select max(row) from %s.log", o->schema);
    if (!raw_pg_ask(o->pg, sql, &last, 1)) bench_wrong(o->b, "the log cannot be read");
    return last;
}

/* Adds up what the writers tell, when each has told that it is ready and when it has ended. */
static void hear_writers(together *t, int writers, int start, int out) {
    uint64_t commits, fewest = UINT64_MAX, most = 0;
    for (int i = 0; i < 2 * writers; i++) {
        if (i == writers) close(start); /* all are ready */
        if (read(out, &commits, sizeof commits) != sizeof commits) break;
        if (i < writers) continue;
        t->commits += (double)commits;
        if (commits < fewest) fewest = commits;
        if (commits > most) most = commits;
    }
    t->least = most ? (double)fewest / (double)most : 0;
    t->commits_s = t->commits * 1000 / WRITE_MS;
}

static together write_together(on_server *o, int writers) {
    int start[2], out[2];
    together t = { 0 };
    name_store(o);
    hd_runtime *rt = open_store(o);
    if (!rt || hd_close(rt) || pipe(start) || pipe(out)) return t;
    server_counts before = count_server(o);
    for (int i = 0; i < writers; i++)
        if (fork() == 0) {
            close(start[1]);
            write_in_child(o, i, start[0], out[1]);
        }
    close(start[0]);
    close(out[1]);
    hear_writers(&t, writers, start[1], out[0]);
    close(out[0]);
    for (int i = 0; i < writers; i++) wait(NULL);
    t.cost = counts_since(before, count_server(o));
    t.groups = count_rows(o);
    drop_store(o);
    return t;
}

typedef struct writing {
    together alone, four;
    double ratio; /* of the commits of four, and those of one */
} writing;

static int by_ratio(const void *a, const void *b) {
    const writing *x = a, *y = b;
    return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

void bench_four_writers(on_server *o) {
    writing turns[WRITE_TURNS];
    for (int i = 0; i < WRITE_TURNS; i++) {
        writing *t = &turns[i];
        t->alone = write_together(o, 1);
        t->four = write_together(o, WRITERS);
        t->ratio = t->alone.commits > 0 ? t->four.commits / t->alone.commits : 0;
    }
    qsort(turns, WRITE_TURNS, sizeof *turns, by_ratio);
    together alone = turns[WRITE_TURNS / 2].alone, four = turns[WRITE_TURNS / 2].four;
    bench_report(
        o->b, &(bench_row){
                  .name = "postgres/four-writers",
                  .n = WRITERS,
                  .value = four.commits_s,
                  .unit = "commits/s",
                  .rate = true,
                  .peer = "one writer",
                  .peer_value = alone.commits_s,
                  .must = bench_ratio_at_most(2),
                  .counts = { { "commits per group", four.commits / four.groups },
                              { "transactions per group", four.cost.transactions / four.groups },
                              { "syncs per group", four.cost.syncs / four.groups },
                              { "WAL bytes per commit", four.cost.wal_bytes / four.commits } } });
    bench_report(o->b, &(bench_row){ .name = "postgres/four-writers-slowest",
                                     .n = WRITERS,
                                     .value = four.least,
                                     .unit = "of fastest",
                                     .must = bench_at_least(0.33) });
}

/* ---- Many documents ------------------------------------------------------------------------------ */

enum { IN_ONE = 2000 };

static bool make_documents(on_server *o, uint64_t count) {
    hd_runtime *rt = open_store(o);
    hd_error error = { 0 };
    bool good = rt != NULL;
    for (uint64_t i = 0; i < count && good; i += IN_ONE) {
        hd_tx *tx;
        good = !hd_tx_begin(rt, &tx);
        for (uint64_t k = i; k < i + IN_ONE && good; k++) {
            char name[32];
            snprintf(name, sizeof name, "main/d%llu", (unsigned long long)k);
            good = !hd_tx_set_int(tx, hd_cell_at(rt, name), (int64_t)k);
        }
        good = good && !hd_tx_commit(tx, NULL, NULL) && !hd_runtime_sync(rt);
    }
    if (good) good = !hd_store_checkpoint(rt, &error);
    return !hd_close(rt) && good;
}

void bench_many_documents(on_server *o) {
    const char *documents = getenv("HD_BENCH_DOCUMENTS");
    uint64_t count = documents           ? strtoull(documents, NULL, 10)
                     : bench_quick(o->b) ? 100000
                                         : 1000000;
    double ms[5];
    name_store(o);
    if (!make_documents(o, count)) {
        bench_wrong(o->b, "documents cannot be made");
        return;
    }
    for (int i = 0; i < 5; i++) {
        char name[32];
        hd_pool *pool;
        uint64_t began = bench_wall_ns();
        hd_runtime *rt = open_store(o);
        snprintf(name, sizeof name, "main/d%llu", (unsigned long long)(count / 7 * (uint64_t)i));
        if (!rt || hd_pool_open(hd_runtime_heap(rt), &pool)) return;
        if (!hd_value_exists(hd_read(rt, pool, hd_cell_at(rt, name))))
            bench_wrong(o->b, "%s is not there", name);
        ms[i] = (double)(bench_wall_ns() - began) / 1e6;
        hd_pool_close(pool);
        hd_close(rt);
    }
    drop_store(o);
    qsort(ms, 5, sizeof *ms, compare_doubles);
    bench_report(o->b, &(bench_row){ .name = "postgres/open-and-read",
                                     .n = count,
                                     .value = ms[2],
                                     .unit = "ms",
                                     .must = bench_at_most(50) });
}
