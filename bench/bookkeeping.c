/* bookkeeping.c -- what keeping rows about nodes costs, beside the same commits without them.
 *
 * Two stores are open at once and do the same commits: three reads, one write, 32 in flight. Those of
 * one side carry a row each, of three reads and one output; one in ten has other reads than the row before.
 * A disk has moods that last from a millisecond to a minute, so the sides take turns in short rounds, in
 * changing order, and the median of the rounds' ratios counts. Checkpoints are rounds of their own.
 *
 * Times alone convince nobody: the syncs and bytes of both sides are counted, and the processor time that
 * both threads of a runtime take. */
#include "bookkeeping.h"

#include "store/memo.h"
#include "store/runtime.h"
#include "vfs_count.h"

#include <heddle/scheduler.h>
#include <heddle/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUND = 640, /* commits */
    ROUNDS =
        48, /* between two checkpoints: 30,000 commits; by itself a store makes one in 200,000 */
    CHECKPOINTS = 3,
    ALL = ROUNDS * CHECKPOINTS,
    IN_FLIGHT = 32,
    DOCS = 64,
    NODES = 1000,
    READS = 3
};

typedef struct side {
    bench *b;
    char file[512];
    lab_count_vfs *vfs;
    hd_runtime *rt;
    hd_cell docs[DOCS];
    uint64_t number, done;
    hd_pool *pool; /* NULL: without rows */
    hd_value rows[2 * NODES];
    double cpu_us;
    double us[ALL], checkpoint_us[CHECKPOINTS];
} side;

static double cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- commits */

static void count_done(hd_status status, void *ctx) {
    side *s = ctx;
    s->done++;
    if (status) bench_wrong(s->b, "a commit was refused: %s", hd_status_name(status));
}

static hd_value row_of(side *s, const char *json) {
    hd_value v = hd_json_parse(s->pool, json, strlen(json), NULL);
    if (hd_value_status(v)) abort();
    return v;
}

/* Two rows for each node, with different reads. */
static void make_rows(side *s) {
    static const char hashes[] =
        "5f0c5f0c5f05f0c5f0c5f05f0c5f0c5f05f0c5f0c5f0"; /* of three reads and an output */
    char row[512];
    for (int i = 0; i < 2 * NODES; i++) {
        int doc = i % NODES, other = doc + 14 + i / NODES;
        snprintf(row, sizeof row,
                 "{\"nodes\":[[\"main:main:sum%d\",\"\",\"%s\",\"5f0c5f0c5f0c5f0c5f0c5f0\","
                 "\"\",\"main/k%d\\nmain/k%d\\nmain/k%d\\n=main/sum%d\"]]}",
                 doc, hashes, doc % DOCS, (doc + 7) % DOCS, other % DOCS, doc);
        s->rows[i] = row_of(s, row);
    }
}

/* With the commit just queued. */
static void add_row(side *s) {
    uint64_t turn = s->number / NODES, node = s->number % NODES;
    commit *c = LIST_ENTRY(list_last(&s->rt->r.queued), commit, link);
    c->extra = value_ref(s->rows[node + NODES * (turn / 10 % 2)]);
}

static void commit_one(side *s) {
    hd_tx *tx;
    uint64_t n = s->number;
    if (hd_tx_begin(s->rt, &tx)) abort();
    for (uint64_t i = 0; i < READS; i++) (void)hd_tx_get(tx, s->docs[(n + i * 7) % DOCS]);
    hd_tx_set_int(tx, s->docs[n % DOCS], (int64_t)n);
    if (hd_tx_commit(tx, count_done, s)) abort();
    if (s->pool) add_row(s);
    s->number++;
}

static void commit_many(side *s, uint64_t count) {
    uint64_t until = s->number + count;
    hd_env env = hd_env_system();
    while (s->done < until) {
        while (s->number < until && s->number - s->done < IN_FLIGHT) commit_one(s);
        if (hd_runtime_pump(s->rt)) bench_wrong(s->b, "pump failed");
        if (s->done < until && (s->number - s->done >= IN_FLIGHT || s->number == until))
            env.wait(hd_runtime_fd(s->rt), hd_runtime_deadline(s->rt), env.ctx);
    }
}

/* ---- rounds */

static double round_of(side *s) {
    double cpu = cpu_us();
    uint64_t began = bench_wall_ns();
    commit_many(s, ROUND);
    double us = (double)(bench_wall_ns() - began) / 1e3;
    s->cpu_us += cpu_us() - cpu;
    return us;
}

static double checkpoint_of(side *s) {
    double cpu = cpu_us();
    uint64_t began = bench_wall_ns();
    if (hd_store_checkpoint(s->rt, NULL)) bench_wrong(s->b, "checkpoint failed");
    double us = (double)(bench_wall_ns() - began) / 1e3;
    s->cpu_us += cpu_us() - cpu;
    return us;
}

static void take_turns(side *rows, side *plain) {
    for (int i = 0; i < ALL; i++) {
        side *first = i % 2 ? rows : plain, *second = i % 2 ? plain : rows;
        first->us[i] = round_of(first);
        second->us[i] = round_of(second);
        if (i % ROUNDS != ROUNDS - 1) continue;
        first->checkpoint_us[i / ROUNDS] = checkpoint_of(first);
        second->checkpoint_us[i / ROUNDS] = checkpoint_of(second);
    }
}

/* ---- opening and closing */

static void remove_file(const side *s) {
    static const char *const ends[] = { "", "-wal", "-shm" };
    char path[600];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", s->file, ends[i]);
        unlink(path);
    }
}

static bool side_open(side *s, bench *b, const char *name, const char *which, bool rows) {
    char vfs[64];
    s->b = b;
    snprintf(s->file, sizeof s->file, "%s-%s.db", name, which);
    snprintf(vfs, sizeof vfs, "heddle-bench-%s", which);
    remove_file(s);
    s->vfs = lab_vfs_counting_register(vfs);
    hd_options options = { .vfs = vfs };
    hd_error error;
    if (!s->vfs || hd_open(s->file, &options, &s->rt, &error)) {
        bench_wrong(b, "open: %s", s->vfs ? error.message : "no counting of writes");
        return false;
    }
    for (int i = 0; i < DOCS; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/k%d", i);
        s->docs[i] = hd_cell_at(s->rt, cell);
    }
    if (rows && hd_pool_open(hd_runtime_heap(s->rt), &s->pool)) abort();
    if (rows) make_rows(s);
    commit_many(s, NODES);
    checkpoint_of(s);
    lab_vfs_counting_reset(s->vfs);
    s->cpu_us = 0;
    return true;
}

static void side_close(side *s) {
    if (s->pool) hd_pool_close(s->pool);
    if (s->rt) hd_close(s->rt);
    if (s->vfs) lab_vfs_counting_unregister(s->vfs);
    remove_file(s);
}

/* ---- the report */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *of, int count) {
    double sorted[ALL];
    memcpy(sorted, of, (size_t)count * sizeof *of);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return sorted[count / 2];
}

static double median_ratio(const side *rows, const side *plain) {
    double ratios[ALL];
    for (int i = 0; i < ALL; i++) ratios[i] = rows->us[i] / plain->us[i];
    return median(ratios, ALL);
}

/* Microseconds per commit: rounds, and the share of a checkpoint. */
static double per_commit(const side *s, double round_us) {
    return (round_us * ROUNDS + median(s->checkpoint_us, CHECKPOINTS)) / (ROUNDS * ROUND);
}

static void report(const side *rows, const side *plain) {
    double n = (double)ALL * ROUND, round_us = median(plain->us, ALL);
    lab_io_counts io = lab_vfs_counting_read(rows->vfs), base = lab_vfs_counting_read(plain->vfs);
    bench_report(
        rows->b,
        &(bench_row){ .name = "resume/bookkeeping",
                      .n = ALL * ROUND,
                      .value = per_commit(rows, round_us * median_ratio(rows, plain)),
                      .unit = "us",
                      .peer = "without rows",
                      .peer_value = per_commit(plain, round_us),
                      .must = bench_ratio_at_most(1.3),
                      .aim = bench_ratio_at_most(1.15),
                      .counts = { { "processor us", rows->cpu_us / n },
                                  { "without", plain->cpu_us / n },
                                  { "bytes", (double)lab_io_durable_bytes(&io) / n },
                                  { "without", (double)lab_io_durable_bytes(&base) / n },
                                  { "syncs per 1000", 1000.0 * (double)lab_io_syncs(&io) / n },
                                  { "without", 1000.0 * (double)lab_io_syncs(&base) / n } } });
}

void bookkeeping_report(bench *b, const char *name) {
    static side rows, plain; /* large */
    if (side_open(&rows, b, name, "rows", true) && side_open(&plain, b, name, "plain", false)) {
        take_turns(&rows, &plain);
        report(&rows, &plain);
    }
    side_close(&rows);
    side_close(&plain);
}
