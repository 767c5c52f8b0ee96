/* bench_resume.c -- a restart: what is clean stays clean, and costs little.
 *
 * The store is a file with many documents; their head rows are written by SQL, since how they came
 * there does not matter here. A program of 10,000 computations, each reading three of them, runs and
 * ends; another one registers the same and finds what it had. Every node asks for a first run, so
 * each would run if it were not taken up clean.
 *
 * Then a node for each document, in pieces of 100 that nobody starts: what another piece's start takes
 * beside them, and what it takes to say which of them would have work to do. */
#include "bench.h"
#include "bookkeeping.h"

#include "store/memo.h"
#include "store/runtime.h"
#include "store/log/head.h"

#include <heddle/pattern.h>
#include <heddle/scheduler.h>
#include <heddle/store.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 10000, READS = 3, RESTARTS = 5 };

typedef struct world {
    bench *b;
    char file[512];
    uint64_t documents;
    hd_runtime *rt;
    uint64_t runs; /* of computations */
} world;

typedef struct adder {
    world *w;
    hd_cell in[READS];
} adder;

static void remove_file(const world *w) {
    static const char *const ends[] = { "", "-wal", "-shm" };
    char path[600];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", w->file, ends[i]);
        unlink(path);
    }
}

static void open_store(world *w) {
    hd_error error;
    if (hd_open(w->file, NULL, &w->rt, &error)) {
        bench_wrong(w->b, "open: %s", error.message);
        exit(1);
    }
}

/* text_hash(value): the hash of a head row with that value and no metadata. */
static void text_hash(sqlite3_context *call, int count, sqlite3_value **args) {
    (void)count;
    row_text value = { (const char *)sqlite3_value_text(args[0]), 0 };
    value.length = (size_t)sqlite3_value_bytes(args[0]);
    sqlite3_result_int64(call, (sqlite3_int64)head_texts_hash(value, (row_text){ "", 0 }));
}

static void run_sql(world *w, const char *sql) {
    sqlite3 *db;
    char *wrong = NULL;
    if (sqlite3_open(w->file, &db) ||
        sqlite3_create_function(db, "text_hash", 1, SQLITE_UTF8, NULL, text_hash, NULL, NULL) ||
        sqlite3_exec(db, sql, NULL, NULL, &wrong))
        bench_wrong(w->b, "filling: %s", wrong ? wrong : sqlite3_errmsg(db));
    sqlite3_free(wrong);
    sqlite3_close(db);
}

/* Documents main/d0, main/d1, ... as a checkpoint would have left them. */
static void fill(world *w) {
    char sql[1024];
    open_store(w);
    hd_close(w->rt);
    snprintf(
        sql, sizeof sql,
        "pragma synchronous = off; begin;"
        "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < %llu)"
        " insert into head(space, scope, instance, id, kind, seq, meta_seq, guarded, large,"
        " size, patched, hash, value) select 'main', 'space', '', 'd' || i, '', i + 1, 0, 0, 0,"
        " length(i), 0, text_hash(i), i from n;"
        "insert into space values('main', %llu, %llu); commit",
        (unsigned long long)w->documents, (unsigned long long)w->documents,
        (unsigned long long)w->documents);
    run_sql(w, sql);
}

/* ---- The program ------------------------------------------------------------------------------ */

static hd_status add_up(hd_tx *tx, void *ctx) {
    adder *a = ctx;
    int64_t sum = 0;
    for (int i = 0; i < READS; i++) sum += hd_value_as_int(hd_tx_get(tx, a->in[i]), 0);
    a->w->runs++;
    return hd_tx_set_int(tx, *(hd_cell *)(a + 1), sum);
}

typedef struct program {
    struct {
        adder a;
        hd_cell out; /* right behind, where add_up looks for it */
    } nodes[NODES];
} program;

static hd_cell document(world *w, uint64_t i) {
    char name[64];
    snprintf(name, sizeof name, "main/d%llu", (unsigned long long)(i * 7919 % w->documents));
    return hd_cell_at(w->rt, name);
}

/* Handles are made before the clock starts: a program has them anyway. */
static void make_cells(world *w, program *p) {
    for (uint64_t i = 0; i < NODES; i++) {
        char name[64];
        p->nodes[i].a.w = w;
        for (uint64_t k = 0; k < READS; k++) p->nodes[i].a.in[k] = document(w, i * READS + k);
        snprintf(name, sizeof name, "main/sum%llu", (unsigned long long)i);
        p->nodes[i].out = hd_cell_at(w->rt, name);
    }
}

static void register_all(world *w, program *p) {
    for (int i = 0; i < NODES; i++) {
        char name[32];
        snprintf(name, sizeof name, "sum%05d", i);
        hd_node_spec spec = { .name = name,
                              .fn = add_up,
                              .ctx = &p->nodes[i].a,
                              .output = p->nodes[i].out,
                              .version = "1",
                              .run_once = true };
        hd_node node;
        if (hd_node_register(w->rt, &spec, &node))
            bench_wrong(w->b, "register: %s", hd_runtime_error(w->rt)->message);
    }
}

typedef struct outcome {
    double ms, worst;
    uint64_t runs, loads;
} outcome;

/* Opens, and measures from the first registration until nothing is left to do. */
static outcome start_program(world *w, program *p) {
    open_store(w);
    make_cells(w, p);
    hd_store_stats before, after;
    hd_runtime_store_stats(w->rt, &before);
    w->runs = 0;
    uint64_t began = bench_now_ns();
    register_all(w, p);
    if (hd_runtime_settle(w->rt)) bench_wrong(w->b, "settle failed");
    outcome o = { .ms = (double)(bench_now_ns() - began) / 1e6, .runs = w->runs };
    hd_runtime_store_stats(w->rt, &after);
    o.loads = after.loads - before.loads;
    return o;
}

static void end_program(world *w) {
    if (hd_runtime_sync(w->rt) || hd_close(w->rt)) bench_wrong(w->b, "the program ends badly");
}

static void change_one_input(world *w, int to) {
    open_store(w);
    if (hd_write(w->rt, document(w, 0), hd_int(NULL, to))) bench_wrong(w->b, "the change failed");
    end_program(w);
}

/* The middle one of several restarts, each of which must run and load the same. */
static outcome restart(world *w, program *p, bool changed) {
    outcome all[RESTARTS];
    for (int i = 0; i < RESTARTS; i++) {
        if (changed) change_one_input(w, -i - 1);
        outcome o = start_program(w, p);
        end_program(w);
        int at = i;
        for (; at > 0 && all[at - 1].ms > o.ms; at--) all[at] = all[at - 1];
        all[at] = o;
        if (o.runs != all[0].runs || o.loads != all[0].loads)
            bench_wrong(w->b, "restarts differ in what they run or load");
    }
    all[RESTARTS / 2].worst = all[RESTARTS - 1].ms;
    return all[RESTARTS / 2];
}

/* ---- Rows --------------------------------------------------------------------------------------- */

static void report(world *w, const char *name, outcome o, uint64_t runs) {
    if (o.runs != runs)
        bench_wrong(w->b, "%s: %llu runs, expected %llu", name, (unsigned long long)o.runs,
                    (unsigned long long)runs);
    bench_report(w->b, &(bench_row){ .name = name,
                                     .n = NODES,
                                     .value = o.ms,
                                     .unit = "ms",
                                     .must = bench_at_most(50),
                                     .aim = bench_at_most(30),
                                     .counts = { { "runs", (double)o.runs },
                                                 { "document reads", (double)o.loads },
                                                 { "documents", (double)w->documents },
                                                 { "worst ms", o.worst } } });
}

/* ---- Pieces that wait --------------------------------------------------------------------------- */

enum { PIECE_NODES = 100, TURNS = 3 };

/* Node i belongs to piece p(i / 100). It reads document i, and what all nodes of its piece read: the
 * document of the first of them. Names in order of their index: SQLite then only appends. */
static const char dormant_sql[] =
    "pragma synchronous = off; pragma cache_size = -200000; begin;"
    "create temp table n as with recursive n(i) as (select 0 union all select i + 1 from n"
    "  where i + 1 < (select count(*) from head)) select i from n;"
    "create temp table here as select json_object('main', checkpoint) as seqs, checkpoint as seq"
    "  from space where name = 'main';"
    "insert into head(space, scope, instance, id, kind, seq, meta_seq, guarded, large, size,"
    "  patched, hash, value) select 'main', 'space', '', printf('p%d', i / 100), 'piece', seq, 0, "
    "0, 0,"
    "  length(v), 0, text_hash(v), v from (select i, seq, json_object('arguments', json('{}'), "
    "'pattern',"
    "  'dormant', 'started', 1, 'version', '1') as v from n, here where i % 100 = 0);"
    "insert into node(name, instance, hashes, print, flags, reads, seqs)"
    "  select printf('main:p%d:n%02d', i / 100, i % 100), '',"
    "  'AAAAAAAAAAAAAAAAAAAAAA', '5f0c5f0c5f0c5f0c', '',"
    "  printf('main/d%d' || char(10) || 'main/d%d', i, i - i % 100), seqs from n, here"
    "  order by 1; commit";

/* How many rows a start asks the store for: its own way to them is counted. */
static struct {
    authority_ops ops;
    hd_status (*rows)(authority *a, const char *piece, memo_fn fn, void *ctx);
    memo_fn fn;
    void *ctx;
    uint64_t count;
} counted;

static bool count_row(void *ctx, const memo *row) {
    (void)ctx;
    counted.count++;
    return counted.fn(counted.ctx, row);
}

static hd_status counted_rows(authority *a, const char *piece, memo_fn fn, void *ctx) {
    counted.fn = fn;
    counted.ctx = ctx;
    return counted.rows(a, piece, count_row, NULL);
}

static void count_rows(hd_runtime *rt) {
    authority *a = rt->r.authority;
    counted.ops = *a->ops;
    counted.rows = a->ops->memos;
    counted.count = 0;
    counted.ops.memos = counted_rows;
    a->ops = &counted.ops;
}

static uint64_t effects, built; /* patterns' functions have no context */

static hd_cell build_dormant(hd_build *b, void *ctx) {
    built++;
    return hd_build_constant(b, "nothing", hd_null());
}

static hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    return hd_int(hd_tx_pool(tx), 2 * hd_value_as_int(in, 0));
}

static void show(hd_value v, void *ctx) {
    (void)ctx;
    effects += hd_value_as_int(v, 0) == 16;
}

static hd_cell build_other(hd_build *b, void *ctx) {
    hd_cell out =
        hd_build_derive(b, "twice", hd_build_argument(b, "n", hd_int(NULL, 8)), twice, NULL);
    hd_build_sink(b, "show", out, show, NULL);
    return out;
}

/* Milliseconds from nothing until the effect of one small piece has run. */
static double start_other(world *w) {
    hd_piece_spec spec = { .id = "other", .pattern = "other" };
    hd_piece piece;
    effects = built = 0;
    uint64_t began = bench_now_ns();
    open_store(w);
    count_rows(w->rt);
    if (hd_pattern_register(w->rt, "dormant", "1", build_dormant, NULL) ||
        hd_pattern_register(w->rt, "other", "1", build_other, NULL) ||
        hd_piece_start(w->rt, &spec, &piece, NULL) || hd_runtime_settle(w->rt))
        bench_wrong(w->b, "the other piece: %s", hd_runtime_error(w->rt)->message);
    double ms = (double)(bench_now_ns() - began) / 1e6;
    if (effects != 1 || built)
        bench_wrong(w->b, "%llu effects instead of one, %llu dormant pieces built",
                    (unsigned long long)effects, (unsigned long long)built);
    return ms;
}

static void report_dormant(world *w) {
    double ms = start_other(w); /* its first life: what follows are restarts */
    hd_store_stats stats;
    for (int i = 0; i < bench_repeats(w->b, TURNS); i++) {
        end_program(w);
        double again = start_other(w);
        ms = i && ms < again ? ms : again;
    }
    hd_runtime_store_stats(w->rt, &stats);
    bench_report(w->b, &(bench_row){ .name = "resume/dormant",
                                     .n = w->documents,
                                     .value = ms,
                                     .unit = "ms",
                                     .must = bench_at_most(200),
                                     .aim = bench_at_most(10),
                                     .counts = { { "pieces", (double)w->documents / PIECE_NODES },
                                                 { "document reads", (double)stats.loads },
                                                 { "rows read", (double)counted.count },
                                                 { "effects", (double)effects } } });
    end_program(w);
}

typedef struct told {
    uint64_t pieces, nodes;
} told;

static bool count_stale(const hd_stale_piece *piece, void *ctx) {
    told *t = ctx;
    t->pieces++;
    t->nodes += piece->nodes;
    return true;
}

/* One document has changed that all nodes of one piece read. */
static void report_stale(world *w) {
    told t = { 0 };
    hd_store_stats stats;
    change_one_input(w, -1);
    open_store(w);
    uint64_t began = bench_now_ns();
    if (hd_store_stale_pieces(w->rt, count_stale, &t)) bench_wrong(w->b, "stale pieces failed");
    double ms = (double)(bench_now_ns() - began) / 1e6;
    hd_runtime_store_stats(w->rt, &stats);
    if (t.pieces != 1 || t.nodes != PIECE_NODES)
        bench_wrong(w->b, "%llu pieces and %llu nodes are stale, expected 1 and %d",
                    (unsigned long long)t.pieces, (unsigned long long)t.nodes, PIECE_NODES);
    bench_report(w->b, &(bench_row){ .name = "resume/stale-pieces",
                                     .n = w->documents,
                                     .value = ms,
                                     .unit = "ms",
                                     .counts = { { "pieces", (double)w->documents / PIECE_NODES },
                                                 { "told", (double)t.pieces },
                                                 { "their nodes", (double)t.nodes },
                                                 { "document reads", (double)stats.loads } } });
    end_program(w);
}

static void report_waiting(world *w) {
    if (w->documents % PIECE_NODES) w->documents += PIECE_NODES - w->documents % PIECE_NODES;
    remove_file(w);
    fill(w);
    run_sql(w, dormant_sql);
    report_dormant(w);
    report_stale(w);
}

void bench_group_resume(bench *b);
void bench_group_resume(bench *b) {
    const char *directory = getenv("HD_BENCH_DIR"), *documents = getenv("HD_BENCH_DOCUMENTS");
    world w = { .b = b };
    program *p = calloc(1, sizeof *p);
    if (!p) return;
    w.documents = documents ? strtoull(documents, NULL, 10) : 1000000;
    if (!directory) directory = ".";
    snprintf(w.file, sizeof w.file, "%s/bench-resume", directory);
    bookkeeping_report(b, w.file);
    snprintf(w.file, sizeof w.file, "%s/bench-resume.db", directory);
    remove_file(&w);
    fill(&w);
    outcome first = start_program(&w, p);
    end_program(&w);
    if (first.runs != NODES) bench_wrong(b, "the first start runs everything once");
    report(&w, "resume/clean", restart(&w, p, false), 0);
    report(&w, "resume/one-changed", restart(&w, p, true), 1);
    report_waiting(&w);
    remove_file(&w);
    free(p);
}
