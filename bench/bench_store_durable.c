/* bench_store_durable.c -- a store in a file, beside SQLite alone doing the least it could.
 *
 * Each of ours is measured next to a plain C loop on the same folder, in the same run. Files live in
 * the current folder unless HD_BENCH_DIR says where; a disk that takes long to sync hides what we
 * add, a memory file system shows it. */
#define _GNU_SOURCE
#include "bench.h"
#include "committing.h"
#include "raw_sqlite.h"

#include <heddle/store.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From the lab: the one part of it that measures rather than tests. */
#include "vfs_count.h"

static char file_name[512], raw_name[512];

static void remove_file(const char *name) {
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    char path[600];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", name, ends[i]);
        unlink(path);
    }
}

static hd_runtime *open_store(bench *b, const char *vfs) {
    hd_options options = { .vfs = vfs };
    hd_runtime *rt = NULL;
    hd_error error;
    if (hd_open(file_name, &options, &rt, &error)) bench_wrong(b, "open: %s", error.message);
    return rt;
}

/* ---- Commits ---------------------------------------------------------------------------------- */

enum { ROUNDS = 9, BODY = COMMITTING_BODY };

static bool begin_committing(committing *c, bench *b, const char *vfs, const char *cell) {
    remove_file(file_name);
    hd_runtime *rt = open_store(b, vfs);
    if (rt) committing_init(c, b, rt, cell);
    return rt != NULL;
}

static void end_committing(committing *c) {
    committing_close(c);
    remove_file(file_name);
}

static uint64_t file_size(const char *name) {
    struct stat st;
    return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

/* What commits of ours become in the log: the raw loop appends the same bytes in the same groups. */
typedef struct in_log {
    uint32_t bytes; /* of a commit */
    uint32_t group; /* commits that one transaction of SQLite carries, on average */
} in_log;

static in_log look_into_log(void) {
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    double bytes = 0, group = 0;
    if (sqlite3_open_v2(file_name, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(
            db,
            "select sum(length(body)) * 1.0 / sum(n), sum(n) * 1.0 / count(*)"
            " from (select body, json_array_length(body, '$.commits') as n from log)",
            -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW) {
        bytes = sqlite3_column_double(s, 0);
        group = sqlite3_column_double(s, 1);
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
    return (in_log){ bytes > 1 ? (uint32_t)bytes : 500, group > 1 ? (uint32_t)(group + 0.5) : 1 };
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of, int count) {
    qsort(of, (size_t)count, sizeof *of, compare_doubles);
    return of[count / 2];
}

/* Seconds for `total` commits into a fresh store. */
static double commits_s(bench *b, uint64_t total, uint64_t in_flight, in_log *became) {
    committing c;
    if (!begin_committing(&c, b, NULL, "main/doc%d")) return 0;
    uint64_t began = bench_wall_ns();
    if (in_flight == 1) commit_each(&c, total);
    else commit_many(&c, total, in_flight);
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    *became = look_into_log();
    end_committing(&c);
    return seconds;
}

static double raw_s(bench *b, uint64_t total, in_log same) {
    raw_log *raw = raw_log_open(raw_name, same.bytes);
    uint64_t began = bench_wall_ns();
    if (!raw || !raw_log_append(raw, total, same.group)) bench_wrong(b, "no raw loop");
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    raw_log_close(raw);
    return seconds;
}

/* A disk has moods: the sides take turns, each with a fresh file, in changing order, and the median of
 * the rounds' ratios counts. How large our groups become depends on how soon the writer is awake; the
 * raw loop has groups of the same size. */
static void bench_commits(bench *b, uint64_t in_flight, double share) {
    uint64_t total = in_flight * (in_flight == 1 ? 1000 : in_flight == 32 ? 300 : 100);
    double ratios[ROUNDS], raw[ROUNDS];
    int rounds = bench_repeats(b, ROUNDS);
    in_log became = { 0 };
    commits_s(b, total, in_flight, &became); /* what the raw loop is to do */
    for (int i = 0; i < rounds; i++) {
        double ours = i % 2 ? commits_s(b, total, in_flight, &became) : 0;
        raw[i] = raw_s(b, total, became);
        if (i % 2 == 0) ours = commits_s(b, total, in_flight, &became);
        ratios[i] = ours / raw[i];
    }
    double seconds = median(raw, rounds), ratio = median(ratios, rounds);
    char name[64];
    snprintf(name, sizeof name, "store/durable-%llu-in-flight", (unsigned long long)in_flight);
    bench_report(b, &(bench_row){ .name = name,
                                  .n = total,
                                  .value = (double)total / (seconds * ratio),
                                  .unit = "commits/s",
                                  .rate = true,
                                  .peer = "raw SQLite",
                                  .peer_value = (double)total / seconds,
                                  .must = bench_ratio_at_most(1 / share),
                                  .counts = { { "log bytes per commit", became.bytes },
                                              { "commits per group", became.group } } });
}

static void bench_latency(bench *b) {
    committing c;
    enum { COMMITS = 400 };
    static double us[COMMITS];
    if (!begin_committing(&c, b, NULL, "main/doc%d")) return;
    for (int i = 0; i < COMMITS; i++) {
        uint64_t began = bench_wall_ns();
        commit_each(&c, 1);
        us[i] = (double)(bench_wall_ns() - began) / 1000;
    }
    end_committing(&c);
    qsort(us, COMMITS, sizeof us[0], compare_doubles);
    double median = 0, best = 0;
    raw_sqlite_commit_us(raw_name, 560, COMMITS, &median, &best);
    bench_report(b, &(bench_row){ .name = "store/durable-latency",
                                  .n = COMMITS,
                                  .value = us[COMMITS / 2],
                                  .unit = "us",
                                  .peer = "raw SQLite",
                                  .peer_value = median,
                                  .must = bench_ratio_at_most(1.3),
                                  .counts = { { "best us", us[0] }, { "raw best us", best } } });
}

/* Hot documents, one key each time, 32 in flight, closing (its checkpoint) included. */
static void bench_bytes(bench *b) {
    committing c;
    lab_count_vfs *vfs = lab_vfs_counting_register("heddle-bench-count");
    if (!vfs || !begin_committing(&c, b, "heddle-bench-count", "main/doc%d#/n")) return;
    c.one_key = true;
    uint64_t total = bench_quick(b) ? 32000 : 128000;
    commit_many(&c, 3200, 32);
    lab_vfs_counting_reset(vfs);
    commit_many(&c, total, 32);
    end_committing(&c);
    lab_io_counts counts = lab_vfs_counting_read(vfs);
    lab_vfs_counting_unregister(vfs);
    double per = (double)total;
    bench_report(
        b, &(bench_row){
               .name = "store/bytes-per-commit",
               .n = total,
               .value = (double)lab_io_durable_bytes(&counts) / per,
               .unit = "B",
               .must = bench_at_most(600),
               .counts = { { "WAL", (double)counts.file[LAB_FILE_WAL].bytes_written / per },
                           { "database", (double)counts.file[LAB_FILE_DB].bytes_written / per },
                           { "syncs per 1000", 1000.0 * (double)lab_io_syncs(&counts) / per } } });
}

/* ---- A large document --------------------------------------------------------------------------- */

static void write_large(hd_runtime *rt, int keys) {
    hd_tx *tx;
    hd_builder *builder;
    hd_tx_begin(rt, &tx);
    hd_builder_open(hd_tx_pool(tx), HD_KIND_OBJECT, &builder);
    for (int i = 0; i < keys; i++) {
        char key[32];
        snprintf(key, sizeof key, "key-%06d", i);
        hd_builder_put(builder, key, hd_int(NULL, i));
    }
    hd_tx_set(tx, hd_cell_at(rt, "main/large"), hd_builder_close(builder));
    hd_tx_commit(tx, NULL, NULL);
    hd_runtime_sync(rt);
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bench_large(bench *b) {
    enum { KEYS = 100000, WRITES = 2000 };
    lab_count_vfs *vfs = lab_vfs_counting_register("heddle-bench-large");
    remove_file(file_name);
    hd_runtime *rt = open_store(b, "heddle-bench-large");
    if (!rt) return;
    write_large(rt, KEYS);
    hd_close(rt);
    rt = open_store(b, "heddle-bench-large");
    committing c = { .b = b, .rt = rt, .one_key = true };
    for (int i = 0; i < COMMITTING_DOCUMENTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "main/large#/key-%06d", i * 1500);
        c.docs[i] = hd_cell_at(rt, name);
    }
    commit_many(&c, 64, 32);
    lab_vfs_counting_reset(vfs);
    double before = cpu_ns();
    commit_many(&c, WRITES, 32);
    double us = (cpu_ns() - before) / 1000 / WRITES;
    hd_close(rt);
    lab_io_counts counts = lab_vfs_counting_read(vfs);
    lab_vfs_counting_unregister(vfs);
    remove_file(file_name);
    double bytes = (double)lab_io_durable_bytes(&counts) / WRITES;
    bench_report(b, &(bench_row){ .name = "store/durable-100k-keys-set",
                                  .n = KEYS,
                                  .value = us,
                                  .unit = "us",
                                  .must = bench_at_most(20),
                                  .counts = { { "bytes per write, closing included", bytes } } });
}

/* ---- Loading and opening -------------------------------------------------------------------------- */

/* Documents from `first` to before `end`. */
static void fill(hd_runtime *rt, uint32_t first, uint32_t end) {
    char body[BODY + 1];
    memset(body, 'x', BODY);
    body[BODY] = '\0';
    for (uint32_t i = first; i < end;) {
        hd_tx *tx;
        hd_tx_begin(rt, &tx);
        for (uint32_t k = 0; k < 1000 && i < end; k++, i++) {
            char id[32];
            snprintf(id, sizeof id, "doc-%u", i);
            hd_tx_set(tx, hd_cell_of(rt, "main", HD_SCOPE_SPACE, id, ""),
                      hd_string_n(hd_tx_pool(tx), body, BODY));
        }
        hd_tx_commit(tx, NULL, NULL);
        hd_runtime_pump(rt);
    }
    hd_runtime_sync(rt);
}

static double load_once(bench *b, uint32_t documents) {
    hd_runtime *rt = open_store(b, NULL);
    if (!rt) return 0;
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    uint64_t found = 0, began = bench_wall_ns();
    for (uint32_t i = 0; i < documents; i++) {
        char id[32];
        snprintf(id, sizeof id, "doc-%u", (uint32_t)((uint64_t)i * 7919 % documents));
        hd_cell cell = hd_cell_of(rt, "main", HD_SCOPE_SPACE, id, "");
        found += hd_value_exists(hd_read(rt, pool, cell));
    }
    double rate = (double)documents * 1e9 / (double)(bench_wall_ns() - began);
    if (found != documents) bench_wrong(b, "%llu documents loaded", (unsigned long long)found);
    hd_pool_close(pool);
    hd_close(rt);
    return rate;
}

static void bench_load(bench *b) {
    enum { LOADED = 10000 };
    remove_file(file_name);
    hd_runtime *rt = open_store(b, NULL);
    if (!rt) return;
    fill(rt, 0, LOADED);
    hd_close(rt);
    double ours = 0, raw = 0;
    for (int i = 0; i < 5; i++) {
        double rate = load_once(b, LOADED);
        if (rate > ours) ours = rate;
    }
    raw_sqlite_select_per_s(raw_name, BODY, LOADED, 5, &raw);
    remove_file(file_name);
    bench_report(b, &(bench_row){ .name = "store/load-10k",
                                  .n = LOADED,
                                  .value = ours,
                                  .unit = "documents/s",
                                  .rate = true,
                                  .peer = "raw SELECT",
                                  .peer_value = raw,
                                  .must = bench_ratio_at_most(1 / 0.55) });
}

static void bench_open_million(bench *b) {
    uint32_t documents = bench_quick(b) ? 100000 : 1000000;
    hd_runtime *rt;
    remove_file(file_name);
    for (uint32_t i = 0; i < documents; i += 100000) {
        if (!(rt = open_store(b, NULL))) return;
        fill(rt, i, i + 100000);
        hd_close(rt);
    }
    uint64_t memory = bench_resident_bytes();
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        uint64_t began = bench_wall_ns();
        rt = open_store(b, NULL);
        double ms = (double)(bench_wall_ns() - began) / 1e6;
        if (ms < best) best = ms;
        hd_close(rt);
    }
    bench_report(b, &(bench_row){ .name = "store/open-million",
                                  .n = documents,
                                  .value = best,
                                  .unit = "ms",
                                  .must = bench_at_most(50),
                                  .counts = { { "file MB", (double)file_size(file_name) / 1e6 },
                                              { "resident MB", (double)memory / 1e6 } } });
    remove_file(file_name);
}

/* ---- Watching --------------------------------------------------------------------------------------- */

typedef struct watching {
    int pipe;
} watching;

static void tell_time(const hd_notice *notice, void *ctx) {
    if (notice->kind != HD_CHANGE_INTEGRATE) return;
    uint64_t now = bench_wall_ns();
    if (write(((watching *)ctx)->pipe, &now, sizeof now) < 0) _exit(1);
}

static void watch_in_child(bench *b, int pipe) {
    hd_runtime *rt = open_store(b, NULL);
    watching w = { pipe };
    if (!rt || hd_runtime_follow(rt, "main") || hd_runtime_listen(rt, tell_time, &w)) _exit(1);
    uint64_t ready = 0;
    if (write(pipe, &ready, sizeof ready) < 0) _exit(1);
    (void)hd_runtime_run(rt);
    _exit(0);
}

static void bench_watch(bench *b) {
    enum { CHANGES = 50 };
    static double ms[CHANGES];
    int ends[2];
    remove_file(file_name);
    hd_runtime *rt = open_store(b, NULL);
    if (!rt || pipe(ends)) return;
    hd_write_json(rt, hd_cell_at(rt, "main/n"), "0");
    hd_close(rt);
    pid_t child = fork();
    if (child == 0) watch_in_child(b, ends[1]);
    close(ends[1]);
    uint64_t when;
    rt = open_store(b, NULL);
    hd_cell n = hd_cell_at(rt, "main/n");
    bool ok = read(ends[0], &when, sizeof when) == sizeof when;
    for (int i = 0; i < CHANGES && ok; i++) {
        char json[16];
        snprintf(json, sizeof json, "%d", i + 1);
        hd_write_json(rt, n, json);
        hd_runtime_sync(rt);
        uint64_t committed = bench_wall_ns();
        ok = read(ends[0], &when, sizeof when) == sizeof when;
        ms[i] = when > committed ? (double)(when - committed) / 1e6 : 0;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    hd_close(rt);
    remove_file(file_name);
    if (!ok) bench_wrong(b, "the watching process stopped");
    qsort(ms, CHANGES, sizeof ms[0], compare_doubles);
    bench_report(b, &(bench_row){ .name = "store/watch-latency",
                                  .n = CHANGES,
                                  .value = ms[CHANGES * 95 / 100],
                                  .unit = "ms",
                                  .must = bench_at_most(20),
                                  .counts = { { "median ms", ms[CHANGES / 2] },
                                              { "worst ms", ms[CHANGES - 1] } } });
}

void bench_group_store_durable(bench *b);
void bench_group_store_durable(bench *b) {
    const char *folder = getenv("HD_BENCH_DIR");
    snprintf(file_name, sizeof file_name, "%s/heddle-bench.db", folder ? folder : ".");
    snprintf(raw_name, sizeof raw_name, "%s/heddle-bench-raw.db", folder ? folder : ".");
    bench_commits(b, 1, 0.80);
    bench_commits(b, 32, 0.65);
    bench_commits(b, 256, 0.60);
    bench_latency(b);
    bench_bytes(b);
    bench_large(b);
    bench_load(b);
    bench_open_million(b);
    bench_watch(b);
}
