/* bench_postgres.c -- a store on PostgreSQL, beside libpq alone doing the least it could.
 *
 * Everything runs on one server on this machine with fsync on, a private one unless HD_POSTGRES names another. The raw
 * loop inserts a row for each row of our log, of as many bytes; the two take turns, and the median of the turns'
 * ratios counts. Every measurement has a fresh store, a schema of its own. */
#define _GNU_SOURCE
#include "bench.h"
#include "committing.h"
#include "on_server.h"
#include "peers.h"
#include "workflow_world.h"

#include <heddle/store.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static double median(double *of, int count) {
    qsort(of, (size_t)count, sizeof *of, compare_doubles);
    return of[count / 2];
}

/* The last row of the log, and how many bytes a row after `first` has on average. */
static uint64_t last_row(on_server *o, uint64_t first, double *bytes) {
    char sql[256];
    double found[2] = { 0 };
    snprintf(sql, sizeof sql,
             "select max(row), coalesce(avg(octet_length(body)) filter (where row > %llu), 0)"
             " from %s.log",
             (unsigned long long)first, o->schema);
    if (!raw_pg_ask(o->pg, sql, found, 2)) bench_wrong(o->b, "the log cannot be read");
    if (bytes) *bytes = found[1];
    return (uint64_t)found[0];
}

/* ---- Commits ------------------------------------------------------------------------------------- */

/* What commits of ours became in the log. */
typedef struct in_log {
    uint64_t rows;
    double bytes; /* of a row, on average */
} in_log;

static double our_turn_s(on_server *o, committing *c, uint64_t total, uint64_t in_flight,
                         in_log *became) {
    uint64_t first = last_row(o, 0, NULL), began = bench_wall_ns();
    if (in_flight == 1) commit_each(c, total);
    else commit_many(c, total, in_flight);
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    became->rows = last_row(o, first, &became->bytes) - first;
    return seconds;
}

static double raw_turn_s(on_server *o, in_log same) {
    uint64_t began = bench_wall_ns();
    if (!raw_pg_insert(o->pg, same.rows, (uint32_t)same.bytes)) bench_wrong(o->b, "no raw loop");
    return (double)(bench_wall_ns() - began) / 1e9;
}

/* The server's counts are of one store's life, in which nothing else runs. */
static server_counts count_commits(on_server *o, uint64_t total, uint64_t in_flight,
                                   in_log *became) {
    committing c;
    name_store(o);
    hd_close(open_store(o)); /* making the tables is not counted */
    server_counts before = count_server(o);
    hd_runtime *rt = open_store(o);
    if (!rt) return before;
    committing_init(&c, o->b, rt, "main/doc%d");
    our_turn_s(o, &c, total, in_flight, became);
    committing_close(&c);
    server_counts cost = counts_since(before, count_server(o));
    drop_store(o);
    return cost;
}

/* Puts the ratio of each turn's times, and the raw loop's seconds. Turns are short, some ten milliseconds, so that both
 * loops meet the same disk. */
static bool take_turns(on_server *o, uint64_t total, uint64_t in_flight, int count, double *ratios,
                       double *raw) {
    committing c;
    in_log became;
    name_store(o);
    hd_runtime *rt = open_store(o);
    if (!rt || !raw_pg_make_table(o->pg)) return hd_close(rt), false;
    committing_init(&c, o->b, rt, "main/doc%d");
    /* The first turn is not counted: the server has just started a process for our connection. */
    our_turn_s(o, &c, total, in_flight, &became);
    raw_turn_s(o, became);
    for (int i = 0; i < count; i++) {
        double ours = our_turn_s(o, &c, total, in_flight, &became);
        raw[i] = raw_turn_s(o, became);
        ratios[i] = ours / raw[i];
    }
    committing_close(&c);
    drop_store(o);
    return true;
}

static void bench_commits(on_server *o, uint64_t in_flight, double times) {
    enum { TURNS = 20, COUNTED = 10 /* as many commits as in 10 turns are counted */ };
    double ratios[ROUNDS * TURNS], raw[ROUNDS * TURNS];
    uint64_t total = in_flight == 1 ? 100 : in_flight * 20;
    int rounds = bench_repeats(o->b, ROUNDS);
    in_log became = { 0 };
    char name[64];
    server_counts cost = count_commits(o, total * COUNTED, in_flight, &became);
    for (int i = 0; i < rounds; i++)
        if (!take_turns(o, total, in_flight, TURNS, ratios + i * TURNS, raw + i * TURNS)) return;
    double seconds = median(raw, rounds * TURNS), ratio = median(ratios, rounds * TURNS);
    snprintf(name, sizeof name, "postgres/durable-%d-in-flight", (int)in_flight);
    bench_report(
        o->b,
        &(bench_row){
            .name = name,
            .n = total,
            .value = (double)total / (seconds * ratio),
            .unit = "commits/s",
            .rate = true,
            .peer = "raw libpq",
            .peer_value = (double)total / seconds,
            .must = bench_ratio_at_most(times),
            .counts = { { "log bytes per commit",
                          became.bytes * (double)became.rows / (double)(total * COUNTED) },
                        { "commits per group", (double)(total * COUNTED) / (double)became.rows },
                        { "transactions per group", cost.transactions / (double)became.rows },
                        { "syncs per group", cost.syncs / (double)became.rows },
                        { "WAL bytes per commit", cost.wal_bytes / (double)(total * COUNTED) } } });
}

/* ---- Changes that another process sees ------------------------------------------------------------ */

static void tell_time(const hd_notice *notice, void *ctx) {
    if (notice->kind != HD_CHANGE_INTEGRATE) return;
    uint64_t now = bench_wall_ns();
    if (write(*(const int *)ctx, &now, sizeof now) < 0) _exit(1);
}

static void watch_in_child(on_server *o, int pipe) {
    hd_runtime *rt = open_store(o);
    uint64_t ready = 0;
    if (!rt || hd_runtime_follow(rt, "main") || hd_runtime_listen(rt, tell_time, &pipe)) _exit(1);
    if (write(pipe, &ready, sizeof ready) < 0) _exit(1);
    (void)hd_runtime_run(rt);
    _exit(0);
}

/* Times from the commit's beginning, in ms, with pauses of up to 24 ms before it. */
static bool change_and_hear(hd_runtime *rt, int heard, double *ms, int count) {
    uint64_t when;
    hd_cell n = hd_cell_at(rt, "main/n");
    bool ok = read(heard, &when, sizeof when) == sizeof when;
    for (int i = 0; i < count && ok; i++) {
        char json[16];
        snprintf(json, sizeof json, "%d", i + 1);
        (void)poll(NULL, 0, i * 7 % 25);
        uint64_t began = bench_wall_ns();
        ok = !hd_write_json(rt, n, json) && !hd_runtime_sync(rt) &&
             read(heard, &when, sizeof when) == sizeof when;
        ms[i] = (double)(when - began) / 1e6;
    }
    return ok;
}

static void bench_watch(on_server *o) {
    enum { CHANGES = 100 };
    static double ms[CHANGES];
    int ends[2];
    name_store(o);
    hd_runtime *rt = open_store(o);
    if (!rt || pipe(ends)) return;
    hd_write_json(rt, hd_cell_at(rt, "main/n"), "0");
    hd_close(rt);
    pid_t child = fork();
    if (child == 0) watch_in_child(o, ends[1]);
    close(ends[1]);
    rt = open_store(o);
    if (!rt || !change_and_hear(rt, ends[0], ms, CHANGES))
        bench_wrong(o->b, "the watching process stopped");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    hd_close(rt);
    drop_store(o);
    qsort(ms, CHANGES, sizeof ms[0], compare_doubles);
    bench_report(o->b, &(bench_row){ .name = "postgres/change-seen-p50",
                                     .n = CHANGES,
                                     .value = ms[CHANGES / 2],
                                     .unit = "ms",
                                     .must = bench_at_most(2) });
    bench_report(o->b, &(bench_row){ .name = "postgres/change-seen-p99",
                                     .n = CHANGES,
                                     .value = ms[CHANGES * 99 / 100],
                                     .unit = "ms",
                                     .must = bench_at_most(15),
                                     .counts = { { "worst ms", ms[CHANGES - 1] } } });
}

/* ---- Workflows ------------------------------------------------------------------------------------ */

static double ten_steps_s(on_server *o, uint64_t total, uint64_t in_flight, uint64_t *rows) {
    workflow_world w;
    name_store(o);
    if (!world_start(&w, o->b, o->url, NULL)) return 1;
    world_sequence(&w, "ten", 10);
    uint64_t first = last_row(o, 0, NULL), began = bench_wall_ns();
    world_run(&w, "ten", total, in_flight);
    double seconds = (double)(bench_wall_ns() - began) / 1e9;
    *rows = last_row(o, first, NULL) - first;
    world_stop(&w);
    drop_store(o);
    return seconds;
}

static void bench_workflows(on_server *o) {
    static const struct {
        uint64_t in_flight, total;
        double must;
    } rows[] = { { 1, 200, 240 }, { 8, 1200, 1300 }, { 32, 3200, 3200 }, { 256, 5120, 8000 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double seconds[ROUNDS];
        char name[64];
        uint64_t groups = 1;
        int rounds = bench_repeats(o->b, ROUNDS);
        for (int k = 0; k < rounds; k++)
            seconds[k] = ten_steps_s(o, rows[i].total, rows[i].in_flight, &groups);
        snprintf(name, sizeof name, "postgres/ten-steps-%d-in-flight", (int)rows[i].in_flight);
        bench_report(o->b,
                     &(bench_row){ .name = name,
                                   .n = rows[i].total,
                                   .value = (double)rows[i].total / median(seconds, rounds),
                                   .unit = "workflows/s",
                                   .rate = true,
                                   .must = bench_at_least(rows[i].must),
                                   .counts = { { "steps per group", 11.0 * (double)rows[i].total /
                                                                        (double)groups } } });
    }
    static const double times[] = { 6, 12, 30 };
    peer_compare_dbos(o->b, "postgres", times);
}

/* ---- At rest --------------------------------------------------------------------------------------- */

/* Statements that the server has written to its log, this one included; the server must be ours. */
static double statements(on_server *o) {
    double count = 0;
    if (!raw_pg_ask(o->pg,
                    "select count(*) from regexp_split_to_table(pg_read_file("
                    "current_setting('data_directory') || '/../log'), '\\n') as line"
                    " where line ~ 'LOG:  (execute|statement)'",
                    &count, 1))
        bench_wrong(o->b, "the server's log cannot be read");
    return count;
}

static void rest(hd_runtime *rt, uint64_t ms) {
    for (uint64_t now, end = bench_wall_ns() + ms * UINT64_C(1000000);
         (now = bench_wall_ns()) < end;) {
        struct pollfd fd = { .fd = hd_runtime_fd(rt), .events = POLLIN };
        uint64_t due = hd_runtime_deadline(rt), until = due < end ? due : end;
        (void)poll(&fd, 1, until > now ? (int)((until - now) / 1000000) + 1 : 0);
        (void)hd_runtime_pump(rt);
    }
}

static void log_statements(on_server *o, const char *which) {
    char sql[64];
    snprintf(sql, sizeof sql, "alter system set log_statement = '%s'", which);
    (void)raw_pg_ask(o->pg, sql, NULL, 0);
    (void)raw_pg_ask(o->pg, "select pg_reload_conf()", NULL, 0);
    (void)poll(NULL, 0, 200);
}

static double idle_statements(on_server *o, hd_runtime *rt) {
    enum { SETTLE_MS = 3000, MS = 10000 };
    rest(rt, SETTLE_MS);
    double before = statements(o);
    rest(rt, MS);
    return (statements(o) - before - 1) * 1000 / MS;
}

static void bench_idle(on_server *o) {
    workflow_world w;
    name_store(o);
    log_statements(o, "all");
    hd_runtime *rt = open_store(o);
    if (rt) hd_write_json(rt, hd_cell_at(rt, "main/n"), "1");
    double reader = rt ? idle_statements(o, rt) : 0, engine = 0;
    hd_close(rt);
    if (world_start(&w, o->b, o->url, NULL)) {
        engine = idle_statements(o, w.rt);
        world_stop(&w);
    }
    log_statements(o, "none");
    drop_store(o);
    bench_report(o->b, &(bench_row){ .name = "postgres/idle-statements",
                                     .n = 1,
                                     .value = reader,
                                     .unit = "per s",
                                     .must = bench_at_most(1) });
    bench_report(o->b, &(bench_row){ .name = "postgres/idle-statements-engine",
                                     .n = 1,
                                     .value = engine,
                                     .unit = "per s",
                                     .must = bench_at_most(1) });
}

void bench_group_postgres(bench *b);
void bench_group_postgres(bench *b) {
    raw_server server;
    if (!raw_server_open(&server, b)) return;
    on_server o = { .b = b, .server = server.url, .pg = raw_pg_open(server.url) };
    if (o.pg) {
        if (!server.child || !raw_pg_apart(o.pg))
            bench_note(b, "postgres: the kernel chooses the cores of durable-1 and durable-32");
        bench_commits(&o, 1, 1.25);
        bench_commits(&o, 32, 1.5);
        raw_pg_anywhere(o.pg);
        bench_commits(&o, 256, 1.7); /* its program uses two cores */
        bench_watch(&o);
        bench_workflows(&o);
        bench_steps_elsewhere(&o);
        bench_leases(&o);
        bench_four_writers(&o);
        bench_many_documents(&o);
        if (server.child) bench_idle(&o);
        else bench_note(b, "postgres: idle statements are counted on a private server only");
        (void)raw_pg_ask(o.pg, "drop table if exists raw_log", NULL, 0);
    } else bench_wrong(b, "no connection to the server");
    raw_pg_close(o.pg);
    raw_server_close(&server);
}
