/* bench_events.c -- what an event costs: in memory, on disk, and before its handler runs.
 *
 * The handler of the first cases increments a cell that one effect reads; each event is a
 * transaction, a receipt, a pass and a run of the effect. The last two are about the consistency
 * gate: it may look at few nodes, however many there are. */
#include "bench.h"

#include "scheduler/events/events.h"
#include "scheduler/events/preflight.h"
#include "scheduler/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct world {
    bench_allocs allocs;
    hd_env env;
    hd_runtime *rt;
    hd_cell cell, to;
    hd_cell *inputs;
    uint32_t input_count;
    int64_t seen; /* by the effect */
    uint64_t told, failed;
} world;

static void world_open(world *w, const char *file) {
    *w = (world){ 0 };
    w->env = bench_count_allocs(hd_env_system(), &w->allocs);
    hd_options options = { .env = &w->env };
    if (hd_open(file, &options, &w->rt, NULL)) abort();
    w->cell = hd_cell_at(w->rt, "main/count");
    w->to = hd_cell_at(w->rt, "main/go");
    if (hd_write_json(w->rt, w->cell, "0")) abort();
}

static hd_status increment(hd_tx *tx, const hd_event *e, void *ctx) {
    const world *w = ctx;
    return hd_tx_set_int(tx, w->cell, hd_value_as_int(hd_tx_get(tx, w->cell), 0) + 1);
}

static hd_status look(hd_tx *tx, void *ctx) {
    world *w = ctx;
    w->seen = hd_value_as_int(hd_tx_get(tx, w->cell), 0);
    return HD_OK;
}

static void note(const char *id, hd_status status, void *ctx) {
    world *w = ctx;
    w->told++;
    w->failed += status != HD_OK;
}

static void handle(world *w, hd_handler_fn fn) {
    hd_handler h;
    hd_handler_spec spec = { .stream = w->to,
                             .fn = fn,
                             .ctx = w,
                             .inputs = w->inputs ? w->inputs : &w->cell,
                             .input_count = w->inputs ? w->input_count : 1 };
    if (hd_handler_register(w->rt, &spec, &h)) abort();
}

static void wait_for(const world *w, uint64_t deadline) {
    const hd_env *env = hd_runtime_env(w->rt);
    env->wait(hd_runtime_fd(w->rt), deadline, env->ctx);
}

/* Keeps `flight` events waiting or under way until n have been handled. */
static void send_all(world *w, uint64_t n, uint64_t flight) {
    uint64_t sent = 0, until = w->told + n;
    hd_send_options options = { .done = note, .ctx = w };
    while (w->told < until) {
        while (sent < n && sent + until - n - w->told < flight) {
            if (hd_event_send(w->rt, w->to, hd_null(), &options)) break;
            sent++;
        }
        hd_status status = hd_runtime_pump(w->rt);
        if (status && status != HD_PENDING) abort();
        uint64_t deadline = hd_runtime_deadline(w->rt);
        if (deadline && w->told < until && sent + until - n - w->told >= (sent < n ? flight : 1))
            wait_for(w, deadline);
    }
}

/* ---- throughput */

static void throughput(bench *b, const char *name, bool bare, double must) {
    uint64_t n = bench_quick(b) ? 50000 : 200000;
    double best = 0;
    uint64_t bytes = 0;
    for (int i = bench_repeats(b, 3); i-- > 0;) {
        world w;
        world_open(&w, NULL);
        handle(&w, increment);
        scheduler_get(w.rt)->events->bare = bare;
        hd_effect(w.rt, "look", look, &w);
        send_all(&w, 1000, 128);
        uint64_t live = w.allocs.live_bytes, began = bench_now_ns();
        send_all(&w, n, 128);
        double rate = (double)n * 1e9 / (double)(bench_now_ns() - began);
        bytes = (w.allocs.live_bytes - live) / n;
        if (rate > best) best = rate;
        if (w.seen != (int64_t)n + 1000 || w.failed)
            bench_wrong(b, "%s: the effect saw %lld of %llu events", name, (long long)w.seen,
                        (unsigned long long)n);
        hd_close(w.rt);
    }
    bench_report(b, &(bench_row){ .name = name,
                                  .n = n,
                                  .value = best,
                                  .unit = "events/s",
                                  .rate = true,
                                  .must = bench_at_least(must),
                                  .counts = { { "bytes kept per event", (double)bytes } } });
}

/* ---- durable */

static void ignore(hd_status status, void *ctx) { ((world *)ctx)->told += status == HD_OK; }

/* The same store without events: what there is to be reached. */
static double commit_rate(const char *file, uint64_t n, uint64_t flight) {
    world w;
    uint64_t sent = 0;
    world_open(&w, file);
    if (hd_runtime_sync(w.rt)) abort();
    uint64_t began = bench_wall_ns();
    while (w.told < n) {
        for (; sent < n && sent - w.told < flight; sent++) {
            hd_tx *tx;
            if (hd_tx_begin(w.rt, &tx)) abort();
            hd_tx_set_int(tx, w.cell, (int64_t)sent + 1);
            if (hd_tx_commit(tx, ignore, &w)) abort();
        }
        if (hd_runtime_pump(w.rt)) abort();
        uint64_t deadline = hd_runtime_deadline(w.rt);
        if (deadline && w.told < n && sent - w.told >= (sent < n ? flight : 1))
            wait_for(&w, deadline);
    }
    double rate = (double)n * 1e9 / (double)(bench_wall_ns() - began);
    hd_close(w.rt);
    return rate;
}

static void remove_file(const char *file) {
    static const char *const tails[] = { "", "-wal", "-shm" };
    char name[256];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", file, tails[i]);
        unlink(name);
    }
}

static void durable(bench *b) {
    char file[64];
    uint64_t n = bench_quick(b) ? 5000 : 20000;
    snprintf(file, sizeof file, "bench-events-%d.db", (int)getpid());
    double commits = commit_rate(file, n, 32);
    remove_file(file);
    world w;
    world_open(&w, file);
    handle(&w, increment);
    send_all(&w, 100, 32);
    uint64_t began = bench_wall_ns();
    send_all(&w, n, 32);
    double rate = (double)n * 1e9 / (double)(bench_wall_ns() - began);
    if (w.failed) bench_wrong(b, "events/durable: %llu failed", (unsigned long long)w.failed);
    hd_close(w.rt);
    remove_file(file);
    bench_report(b, &(bench_row){ .name = "events/durable",
                                  .n = n,
                                  .value = rate,
                                  .unit = "events/s",
                                  .rate = true,
                                  .peer = "plain commits",
                                  .peer_value = commits,
                                  .must = bench_ratio_at_most(2) });
}

/* ---- the gate */

static hd_status copy(hd_tx *tx, void *ctx) {
    const hd_cell *pair = ctx;
    return hd_tx_set(tx, pair[1], hd_tx_get(tx, pair[0]));
}

static hd_status add_up(hd_tx *tx, void *ctx) {
    const world *w = ctx;
    double sum = 0;
    for (uint32_t i = 0; i < w->input_count; i++)
        sum += hd_value_number(hd_tx_get(tx, w->inputs[i]));
    return hd_tx_set(tx, hd_cell_at(w->rt, "main/hub"), hd_double(sum));
}

static hd_status nothing(hd_tx *tx, const hd_event *e, void *ctx) { return HD_OK; }

enum { NODES = 100000 };

/* n computations from as many sources: pairs[2 i] -> pairs[2 i + 1]. */
static hd_cell *copies(world *w, uint32_t n) {
    hd_cell *pairs = malloc(2 * n * sizeof *pairs);
    if (!pairs) abort();
    for (uint32_t i = 0; i < n; i++) {
        char name[48];
        snprintf(name, sizeof name, "main/source%u", i);
        pairs[2 * i] = hd_cell_at(w->rt, name);
        if (hd_write_json(w->rt, pairs[2 * i], "1")) abort();
        snprintf(name, sizeof name, "main/copy%u", i);
        pairs[2 * i + 1] = hd_cell_at(w->rt, name);
        snprintf(name, sizeof name, "copy%u", i);
        hd_compute(w->rt, name, copy, &pairs[2 * i], pairs[2 * i + 1]);
    }
    return pairs;
}

static void ignore_value(hd_value v, void *ctx) { BENCH_KEEP(v.bits); }

static void demand_all(world *w, const hd_cell *pairs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) hd_pull(w->rt, pairs[2 * i + 1], ignore_value, NULL);
    if (hd_runtime_settle(w->rt)) abort();
}

static void clean_graph(bench *b) {
    world w;
    world_open(&w, NULL);
    hd_cell *pairs = copies(&w, NODES), inputs[10];
    demand_all(&w, pairs, NODES);
    for (int i = 0; i < 10; i++) inputs[i] = pairs[2 * (i * 9973) + 1];
    w.inputs = inputs;
    w.input_count = 10;
    handle(&w, nothing);
    scheduler *s = scheduler_get(w.rt);
    s->events->bare = true;
    send_all(&w, 100, 16);
    /* The gate alone: everything of an event up to its handler. */
    stream *to;
    if (stream_of_cell(s, w.to, &to)) abort();
    event *e = events_new(s, to);
    if (!e) abort();
    uint64_t n = bench_quick(b) ? 20000 : 200000;
    uint64_t visits = s->events->stats.preflight_visits;
    double best = 1e18;
    for (int k = 0; k < 5; k++) {
        uint64_t began = bench_now_ns();
        for (uint64_t i = 0; i < n / 5; i++)
            if (preflight_event(s, e)) abort();
        double ns = (double)(bench_now_ns() - began) / (double)(n / 5);
        if (ns < best) best = ns;
    }
    visits = s->events->stats.preflight_visits - visits;
    slab_give(&s->events->records, e);
    bench_report(b, &(bench_row){ .name = "events/preflight-clean",
                                  .n = NODES,
                                  .value = best / 1000,
                                  .unit = "us",
                                  .must = bench_at_most(2),
                                  .counts = { { "visits", (double)visits / (double)n } } });
    hd_close(w.rt);
    free(pairs);
}

static void hub(bench *b) {
    world w;
    world_open(&w, NULL);
    hd_cell *pairs = copies(&w, NODES);
    w.inputs = malloc(NODES * sizeof *w.inputs);
    if (!w.inputs) abort();
    w.input_count = NODES;
    for (uint32_t i = 0; i < NODES; i++) w.inputs[i] = pairs[2 * i + 1];
    hd_cell out = hd_cell_at(w.rt, "main/hub");
    hd_compute(w.rt, "hub", add_up, &w, out);
    hd_handler h;
    hd_handler_spec spec = { .stream = w.to, .fn = nothing, .inputs = &out, .input_count = 1 };
    if (hd_handler_register(w.rt, &spec, &h)) abort();
    send_all(&w, 1, 1);
    scheduler *s = scheduler_get(w.rt);
    uint64_t visits = s->events->stats.preflight_visits, runs = s->stats.runs;
    if (hd_write_json(w.rt, pairs[2 * 54321], "5")) abort();
    send_all(&w, 1, 1);
    visits = s->events->stats.preflight_visits - visits;
    bench_report(b, &(bench_row){ .name = "events/preflight-hub",
                                  .n = NODES,
                                  .value = (double)visits,
                                  .unit = "visits",
                                  .must = bench_at_most(20),
                                  .counts = { { "runs", (double)(s->stats.runs - runs) } } });
    hd_close(w.rt);
    free(w.inputs);
    free(pairs);
}

void bench_group_events(bench *b) {
    throughput(b, "events/memory", false, 500000);
    throughput(b, "events/dispatch", true, 1500000);
    durable(b);
    clean_graph(b);
    hub(b);
}
