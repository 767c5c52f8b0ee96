/* bench_scheduler.c -- cost follows change: what an update, a registration and a node take, and what
 * they do not touch.
 *
 * The propagation graphs are in bench_signals.c. Here each case has one claim, and where it is a
 * claim about work (visits, runs, allocations) the row is the count itself; the time stands beside. */
#include "bench.h"

#include <heddle/introspect.h>
#include <heddle/scheduler.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world {
    bench_allocs allocs;
    hd_env env;
    hd_runtime *rt;
    hd_pool *pool;
    hd_cell *cells; /* what the case works with */
    uint32_t count;
    hd_cell source;
    uint32_t random;
    int64_t number; /* no two updates write the same */
} world;

/* What happened up to now; see `counts_since`. */
typedef struct counts {
    double runs, effect_runs, marks, walked, graph_visits, allocations;
} counts;

static void world_open(world *w) {
    *w = (world){ .random = 1 };
    w->env = bench_count_allocs(hd_env_system(), &w->allocs);
    hd_options options = { .env = &w->env };
    if (hd_open(NULL, &options, &w->rt, NULL)) abort();
    if (hd_pool_open(hd_runtime_heap(w->rt), &w->pool)) abort();
    w->source = hd_cell_at(w->rt, "main/source");
    if (hd_write_json(w->rt, w->source, "0")) abort();
}

static void world_close(world *w) {
    hd_pool_close(w->pool);
    hd_close(w->rt);
    free(w->cells);
}

static void settle(world *w) {
    if (hd_runtime_settle(w->rt)) abort();
}

static uint32_t below(world *w, uint32_t n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)w->random * n >> 32);
}

static counts counts_of(const world *w) {
    hd_scheduler_stats s;
    hd_store_stats t;
    hd_runtime_scheduler_stats(w->rt, &s);
    hd_runtime_store_stats(w->rt, &t);
    return (counts){ .runs = (double)s.runs,
                     .effect_runs = (double)s.effect_runs,
                     .marks = (double)s.marks,
                     .walked = (double)t.walked,
                     .graph_visits = (double)(s.demand_visits + s.edge_visits + s.repairs),
                     .allocations = (double)w->allocs.calls };
}

/* What one of `n` operations did on average. */
static counts counts_since(const world *w, counts then, double n) {
    counts now = counts_of(w);
    return (counts){ .runs = (now.runs - then.runs) / n,
                     .effect_runs = (now.effect_runs - then.effect_runs) / n,
                     .marks = (now.marks - then.marks) / n,
                     .walked = (now.walked - then.walked) / n,
                     .graph_visits = (now.graph_visits - then.graph_visits) / n,
                     .allocations = (now.allocations - then.allocations) / n };
}

/* Warms up, then counts. */
static counts counts_of_run(world *w, void (*run)(void *, uint64_t), uint64_t n) {
    run(w, n);
    counts then = counts_of(w);
    run(w, n);
    return counts_since(w, then, (double)n);
}

/* ---- Cells and nodes ---------------------------------------------------------------------- */

static hd_cell document(world *w, const char *prefix, uint32_t n) {
    char id[32];
    snprintf(id, sizeof id, "%s%u", prefix, n);
    return hd_cell_of(w->rt, "main", HD_SCOPE_SPACE, id, NULL);
}

static void make_documents(world *w, uint32_t count) {
    w->cells = calloc(count, sizeof *w->cells);
    w->count = count;
    if (!w->cells) abort();
    for (uint32_t i = 0; i < count; i++) w->cells[i] = document(w, "d", i);
}

/* A document of `count` keys, and a cell for each of them. */
static hd_cell make_table(world *w, const char *name, uint32_t count) {
    hd_cell table = hd_cell_at(w->rt, name);
    hd_builder *builder;
    char key[16];
    w->cells = calloc(count, sizeof *w->cells);
    w->count = count;
    if (!w->cells || hd_builder_open(w->pool, HD_KIND_OBJECT, &builder)) abort();
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "key%07u", i);
        hd_builder_put(builder, key, hd_int(NULL, i));
    }
    if (hd_write(w->rt, table, hd_builder_close(builder))) abort();
    hd_pool_clear(w->pool);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "key%07u", i);
        w->cells[i] = hd_cell_child(w->rt, table, key);
    }
    return table;
}

static void look(hd_value v, void *ctx) {
    (void)ctx;
    BENCH_KEEP(v.bits);
}

static void sink(world *w, hd_cell cell) {
    if (!hd_sink(w->rt, cell, look, NULL).id) abort();
}

static void update_source(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        if (hd_write(w->rt, w->source, hd_int(NULL, ++w->number))) abort();
        settle(w);
    }
}

static void update_one_cell(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        if (hd_write(w->rt, w->cells[below(w, w->count)], hd_int(NULL, -++w->number))) abort();
        settle(w);
    }
}

/* A computation: the sum of what it reads. Its context is where its cells are. */
typedef struct sum {
    const hd_cell *reads;
    uint32_t count;
    hd_cell output;
} sum;

static hd_status add_up(hd_tx *tx, void *ctx) {
    const sum *s = ctx;
    double total = 0;
    for (uint32_t i = 0; i < s->count; i++) total += hd_value_number(hd_tx_get(tx, s->reads[i]));
    return hd_tx_set(tx, s->output, hd_double(total));
}

static hd_node compute(world *w, sum *s, bool run_once) {
    hd_node node;
    hd_node_spec spec = { .fn = add_up,
                          .ctx = s,
                          .output = s->output,
                          .reads = s->reads,
                          .read_count = s->count,
                          .run_once = run_once };
    if (hd_node_register(w->rt, &spec, &node)) abort();
    return node;
}

/* ---- Dormant nodes ------------------------------------------------------------------------ */

/* An effect over a computation over the source, with `n` nodes standing between the two that have
 * run once and are read by nobody. */
static sum *dormant_between(world *w, hd_cell read, uint32_t n) {
    sum *sums = calloc((size_t)n + 1, sizeof *sums);
    hd_cell *reads = malloc(2 * sizeof *reads);
    if (!sums || !reads) abort();
    reads[0] = w->source;
    reads[1] = read;
    sums[n] = (sum){ reads, 1, hd_cell_at(w->rt, "main/watched") };
    compute(w, &sums[n], false);
    for (uint32_t i = 0; i < n; i++) {
        sums[i] = (sum){ &reads[1], 1, document(w, "dormant", i) };
        compute(w, &sums[i], true);
    }
    sink(w, sums[n].output);
    settle(w);
    return sums;
}

static void dormant_free(sum *sums, uint32_t n) {
    free((void *)(uintptr_t)sums[n].reads);
    free(sums);
}

static void bench_elsewhere(bench *b, uint32_t n, const char *name, bench_row *flat) {
    world w;
    world_open(&w);
    hd_cell elsewhere = hd_cell_at(w.rt, "main/elsewhere");
    if (hd_write_json(w.rt, elsewhere, "1")) abort();
    sum *sums = dormant_between(&w, elsewhere, n);
    counts each = counts_of_run(&w, update_source, 1000);
    if (each.runs != 2 || each.marks != 2) bench_wrong(b, "%s: %.1f runs", name, each.runs);
    double ns = bench_ns_per_op(b, update_source, &w);
    bench_report(b, &(bench_row){ .name = name,
                                  .n = n,
                                  .value = ns,
                                  .unit = "ns",
                                  .counts = { { "runs", each.runs },
                                              { "marks", each.marks },
                                              { "places walked", each.walked },
                                              { "graph visits", each.graph_visits },
                                              { "allocations", each.allocations } } });
    flat->n = n;
    flat->value = ns;
    if (flat->peer_value == 0) flat->peer_value = ns;
    world_close(&w);
    dormant_free(sums, n);
}

static void bench_all_elsewhere(bench *b) {
    bench_row flat = { .name = "scheduler/update-elsewhere-flat",
                       .unit = "ns",
                       .peer = "10 dormant",
                       .must = bench_ratio_at_most(1.5) };
    bench_elsewhere(b, 10, "scheduler/update-elsewhere-10", &flat);
    bench_elsewhere(b, 1000, "scheduler/update-elsewhere-1k", &flat);
    bench_elsewhere(b, 100000, "scheduler/update-elsewhere-100k", &flat);
    bench_elsewhere(b, 1000000, "scheduler/update-elsewhere-1m", &flat);
    bench_report(b, &flat);
}

/* What an update of the source visits, with `n` nodes that read it and know already. */
static counts update_past_invalid(bench *b, uint32_t n, double *ns) {
    enum {
        COUNTED = 1024
    }; /* of two runs each: one in 64 is timed, takes the long way and counts more */
    world w;
    world_open(&w);
    sum *sums = dormant_between(&w, w.source, n);
    counts first = counts_of(&w);
    update_source(&w, 1); /* tells them */
    first = counts_since(&w, first, 1);
    if (first.marks != n + 2) bench_wrong(b, "dormant-invalid: %.0f marks at first", first.marks);
    counts each = counts_of_run(&w, update_source, COUNTED);
    *ns = bench_ns_per_op(b, update_source, &w);
    world_close(&w);
    dormant_free(sums, n);
    return each;
}

static void bench_dormant_invalid(bench *b) {
    enum { N = 100000 };
    double ns, ns_none;
    counts none = update_past_invalid(b, 0, &ns_none), all = update_past_invalid(b, N, &ns);
    bench_report(b,
                 &(bench_row){ .name = "scheduler/dormant-invalid",
                               .n = N,
                               .value = all.marks - none.marks + all.walked - none.walked +
                                        all.graph_visits - none.graph_visits + all.runs - none.runs,
                               .unit = "visits",
                               .must = bench_at_most(0),
                               .counts = { { "ns", ns }, { "ns without them", ns_none } } });
}

/* ---- Registering -------------------------------------------------------------------------- */

typedef struct registering {
    world w;
    sum *sums;
    hd_node *nodes;
    bool effect;
} registering;

enum { REGISTERED = 100000, SOURCES = 1000 };

static void register_all(void *ctx) {
    registering *r = ctx;
    for (uint32_t i = 0; i < REGISTERED; i++) {
        sum *s = &r->sums[i];
        hd_node_spec spec = { .fn = add_up,
                              .ctx = s,
                              .effect = r->effect,
                              .output = r->effect ? (hd_cell){ 0 } : s->output,
                              .reads = s->reads,
                              .read_count = s->count };
        if (hd_node_register(r->w.rt, &spec, &r->nodes[i])) abort();
    }
}

static void bench_register(bench *b, const char *name, bool effect) {
    double best = 0, allocations = 0;
    for (int i = bench_repeats(b, 5); i-- > 0;) {
        registering r = { .effect = effect };
        world_open(&r.w);
        make_documents(&r.w, SOURCES + REGISTERED);
        r.sums = calloc(REGISTERED, sizeof *r.sums);
        r.nodes = calloc(REGISTERED, sizeof *r.nodes);
        if (!r.sums || !r.nodes) abort();
        for (uint32_t k = 0; k < REGISTERED; k++)
            r.sums[k] = (sum){ &r.w.cells[k % (SOURCES - 1)], 2, r.w.cells[SOURCES + k] };
        r.w.allocs.calls = 0;
        double ns = bench_best_ns(b, 1, register_all, &r) / REGISTERED;
        if (best == 0 || ns < best) best = ns;
        allocations = (double)r.w.allocs.calls / REGISTERED;
        world_close(&r.w);
        free(r.sums);
        free(r.nodes);
    }
    bench_report(b, &(bench_row){ .name = name,
                                  .n = REGISTERED,
                                  .value = best,
                                  .unit = "ns",
                                  .must = bench_at_most(1000),
                                  .aim = bench_at_most(400),
                                  .counts = { { "allocations", allocations } } });
}

/* ---- Many readers of one document --------------------------------------------------------- */

static void bench_one_key(bench *b) {
    enum { KEYS = 100000, COUNTED = 1000 };
    world w;
    world_open(&w);
    make_table(&w, "main/table", KEYS);
    for (uint32_t i = 0; i < KEYS; i++) sink(&w, w.cells[i]);
    settle(&w);
    counts each = counts_of_run(&w, update_one_cell, COUNTED);
    if (each.runs != 1) bench_wrong(b, "one-key-reader: %.3f runs", each.runs);
    bench_report(b, &(bench_row){ .name = "scheduler/one-key-reader",
                                  .n = KEYS,
                                  .value = bench_ns_per_op(b, update_one_cell, &w) / 1000,
                                  .unit = "us",
                                  .must = bench_at_most(5),
                                  .aim = bench_at_most(1),
                                  .counts = { { "runs", each.runs },
                                              { "marks", each.marks },
                                              { "allocations", each.allocations } } });
    bench_report(b, &(bench_row){ .name = "scheduler/one-key-reader-visited",
                                  .n = KEYS,
                                  .value = each.walked,
                                  .unit = "entries",
                                  .must = bench_at_most(64) });
    world_close(&w);
}

/* ---- A materialiser ----------------------------------------------------------------------- */

/* Copies its input key by key, so that nothing is shared with what it wrote before. */
static hd_status copy_table(hd_tx *tx, void *ctx) {
    const hd_cell *cells = ctx;
    hd_builder *builder;
    hd_value input = hd_tx_get(tx, cells[0]);
    hd_status status = hd_builder_open(hd_tx_pool(tx), HD_KIND_OBJECT, &builder);
    if (status) return status;
    for (hd_iter it = hd_iter_of(input); hd_iter_next(&it);)
        hd_builder_put_n(builder, it.key, it.key_length, it.value);
    return hd_tx_set(tx, cells[1], hd_builder_close(builder));
}

static void bench_materialiser(bench *b) {
    enum { KEYS = 10000, COUNTED = 20 };
    world w;
    world_open(&w);
    hd_cell cells[2] = { make_table(&w, "main/input", KEYS), hd_cell_at(w.rt, "main/output") };
    hd_cell *inputs = w.cells;
    hd_node node;
    hd_node_spec spec = {
        .fn = copy_table, .ctx = cells, .envelopes = &cells[1], .envelope_count = 1
    };
    if (hd_node_register(w.rt, &spec, &node)) abort();
    settle(&w);
    make_table(&w, "main/output", KEYS);
    for (uint32_t i = 0; i < KEYS; i++) sink(&w, w.cells[i]);
    settle(&w);

    hd_cell *outputs = w.cells;
    w.cells = inputs;
    counts each = counts_of_run(&w, update_one_cell, COUNTED);
    if (each.runs != 2 || each.effect_runs != 1)
        bench_wrong(b, "materialiser: %.2f runs, %.2f of them of readers", each.runs,
                    each.effect_runs);
    bench_report(b,
                 &(bench_row){ .name = "scheduler/materialiser",
                               .n = KEYS,
                               .value = each.runs,
                               .unit = "runs",
                               .must = bench_at_most(2),
                               .counts = { { "of readers", each.effect_runs },
                                           { "us", bench_ns_per_op(b, update_one_cell, &w) / 1000 },
                                           { "places walked", each.walked } } });
    free(outputs);
    world_close(&w);
}

/* ---- A list whose rows come and go -------------------------------------------------------- */

typedef struct rows {
    hd_cell source, list;
    uint32_t count;
} rows;

static hd_status make_rows(hd_tx *tx, void *ctx) {
    const rows *r = ctx;
    hd_value items = hd_array(), base = hd_tx_get(tx, r->source);
    for (uint32_t i = 0; i < r->count; i++)
        items = hd_array_append(hd_tx_pool(tx), items, hd_double(hd_value_number(base) + i));
    return hd_tx_set(tx, r->list, items);
}

/* Visits of the graph while all readers of a list are removed and come again, `apart` each in a pump
 * of its own. */
static counts replace_rows(uint32_t count, bool apart, double *ns) {
    world w;
    world_open(&w);
    rows r = { w.source, hd_cell_at(w.rt, "main/list"), count };
    hd_node *nodes = calloc(count, sizeof *nodes);
    w.cells = calloc(count, sizeof *w.cells);
    if (!nodes || !w.cells || !hd_compute(w.rt, "rows", make_rows, &r, r.list).id) abort();
    for (uint32_t i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        w.cells[i] = hd_cell_child(w.rt, r.list, key);
        nodes[i] = hd_sink(w.rt, w.cells[i], look, NULL);
    }
    settle(&w);
    counts then = counts_of(&w);
    uint64_t began = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        hd_node_unregister(w.rt, nodes[i]);
        if (apart) settle(&w);
    }
    settle(&w);
    for (uint32_t i = 0; i < count; i++) {
        sink(&w, w.cells[i]);
        if (apart) settle(&w);
    }
    settle(&w);
    *ns = (double)(bench_now_ns() - began);
    counts done = counts_since(&w, then, 1);
    world_close(&w);
    free(nodes);
    return done;
}

static void bench_rows(bench *b, const char *name, bool apart) {
    enum { ROWS = 1000 };
    double ns, ns_twice;
    counts once = replace_rows(ROWS, apart, &ns);
    counts twice = replace_rows(2 * ROWS, apart, &ns_twice);
    if (once.effect_runs != ROWS) bench_wrong(b, "%s: %.0f runs", name, once.effect_runs);
    bench_report(b, &(bench_row){ .name = name,
                                  .n = ROWS,
                                  .value = twice.graph_visits / (2 * ROWS),
                                  .unit = "visits/row",
                                  .peer = "half the rows",
                                  .peer_value = once.graph_visits / ROWS,
                                  .must = bench_ratio_at_most(1.1),
                                  .counts = { { "ns per row, 1,000", ns / ROWS },
                                              { "ns per row, 2,000", ns_twice / (2 * ROWS) },
                                              { "runs", once.runs } } });
}

/* ---- Steady state ------------------------------------------------------------------------- */

/* source -> 50 times (computation -> computation -> sink), and a table with a reader for each key:
 * an update of either. */
static void update_both(void *ctx, uint64_t n) {
    update_source(ctx, n);
    update_one_cell(ctx, n);
}

static void bench_steady(bench *b) {
    enum { WIDE = 50, KEYS = 1000, COUNTED = 10000 };
    world w;
    world_open(&w);
    sum sums[2 * WIDE];
    for (uint32_t i = 0; i < WIDE; i++) {
        sums[2 * i] = (sum){ &w.source, 1, document(&w, "a", i) };
        sums[2 * i + 1] = (sum){ &sums[2 * i].output, 1, document(&w, "b", i) };
        compute(&w, &sums[2 * i], false);
        compute(&w, &sums[2 * i + 1], false);
        sink(&w, sums[2 * i + 1].output);
    }
    make_table(&w, "main/table", KEYS);
    for (uint32_t i = 0; i < KEYS; i++) sink(&w, w.cells[i]);
    settle(&w);
    counts each = counts_of_run(&w, update_both, COUNTED);
    bench_report(b, &(bench_row){ .name = "scheduler/steady-allocations",
                                  .n = COUNTED,
                                  .value = each.allocations * COUNTED,
                                  .unit = "allocations",
                                  .must = bench_at_most(0),
                                  .counts = { { "runs", each.runs } } });
    world_close(&w);
}

static void pump_only(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) BENCH_KEEP(hd_runtime_pump(w->rt));
}

static void bench_empty_pass(bench *b) {
    enum { NODES = 1000 };
    world w;
    world_open(&w);
    for (uint32_t i = 0; i < NODES; i++) sink(&w, w.source);
    settle(&w);
    bench_report(b, &(bench_row){ .name = "scheduler/empty-pass",
                                  .n = NODES,
                                  .value = bench_ns_per_op(b, pump_only, &w),
                                  .unit = "ns",
                                  .must = bench_at_most(50),
                                  .aim = bench_at_most(10) });
    world_close(&w);
}

/* ---- Memory ------------------------------------------------------------------------------- */

/* Ids are text of the program's: they are interned, as the keys of an object, before what follows is
 * weighed. */
static void intern_ids(world *w, const char *prefix, uint32_t count) {
    char id[32];
    hd_builder *builder;
    if (hd_builder_open(w->pool, HD_KIND_OBJECT, &builder)) abort();
    for (uint32_t i = 0; i < count; i++) {
        snprintf(id, sizeof id, "%s%u", prefix, i);
        hd_builder_put(builder, id, hd_null());
    }
    BENCH_KEEP(hd_builder_close(builder).bits);
}

/* Bytes for each of `count` live computations with their documents, `reads` inputs each. The inputs
 * of the first are documents that exist; of the others, its predecessors. */
static double bytes_per_computed(uint32_t count, uint32_t reads) {
    world w;
    world_open(&w);
    sum *sums = calloc(count, sizeof *sums);
    if (!sums) abort();
    make_documents(&w, reads);
    intern_ids(&w, "d", count + reads);
    w.cells = realloc(w.cells, (count + (size_t)reads) * sizeof *w.cells);
    if (!w.cells) abort();
    sink(&w, w.source); /* the scheduler is there from here on */
    uint64_t before = w.allocs.live_bytes;
    for (uint32_t i = 0; i < count; i++) {
        w.cells[reads + i] = document(&w, "d", reads + i);
        sums[i] = (sum){ &w.cells[i], reads, w.cells[reads + i] };
        compute(&w, &sums[i], true);
        if (i % 8192 == 8191) settle(&w); /* as in a program that grows */
    }
    sink(&w, sums[count - 1].output);
    settle(&w);
    double each = (double)(w.allocs.live_bytes - before) / count;
    world_close(&w);
    free(sums);
    return each;
}

static void bench_memory(bench *b, const char *name, uint32_t nodes) {
    bench_report(b, &(bench_row){ .name = name,
                                  .n = nodes,
                                  .value = bytes_per_computed(nodes, 1),
                                  .unit = "B",
                                  .must = bench_at_most(200),
                                  .aim = bench_at_most(150) });
}

/* From 16 reads to 32: what comes with the first of them is not counted again. */
static void bench_memory_per_read(bench *b) {
    enum { NODES = 100000, READS = 16 };
    double few = bytes_per_computed(NODES, READS), many = bytes_per_computed(NODES, 2 * READS);
    bench_report(b, &(bench_row){ .name = "scheduler/memory-per-read",
                                  .n = NODES,
                                  .value = (many - few) / READS,
                                  .unit = "B",
                                  .must = bench_at_most(16),
                                  .counts = { { "bytes with 16 reads", few },
                                              { "bytes with 32 reads", many } } });
}

void bench_group_scheduler(bench *b);
void bench_group_scheduler(bench *b) {
    bench_all_elsewhere(b);
    bench_dormant_invalid(b);
    bench_register(b, "scheduler/register", false);
    bench_register(b, "scheduler/register-effect", true);
    bench_one_key(b);
    bench_materialiser(b);
    bench_rows(b, "scheduler/list-rows", false);
    bench_rows(b, "scheduler/list-rows-apart", true);
    bench_steady(b);
    bench_empty_pass(b);
    bench_memory(b, "scheduler/memory-per-computed", 100000);
    bench_memory(b, "scheduler/memory-per-computed-1m", 1000000);
    bench_memory_per_read(b);
}
