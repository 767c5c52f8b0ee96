/* bench_patterns.c -- map: one of many elements changes, one row runs. Fold: and the chunks above it.
 *
 * The list is an array of `n` in one document; each row of a map is looked at by an effect of its own, as a
 * window would that shows them. The counts are those of the rows' own function, and of the function that
 * combines. */
#include "bench.h"

#include <heddle/pattern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world {
    hd_runtime *rt;
    hd_pool *pool;
    hd_cell items;
    uint32_t count;
    uint32_t random;
    int64_t number;    /* no two updates write the same */
    uint64_t runs;     /* of rows */
    uint64_t combined; /* calls of the function that combines */
    bool keyed;
    bool numbers; /* the elements are numbers, not objects with an id and a price */
} world;

static world *now; /* for the pattern's function, which has no context */

static hd_value price(hd_tx *tx, hd_value element, void *ctx) {
    world *w = ctx;
    w->runs++;
    return hd_int(hd_tx_pool(tx), 2 * hd_value_as_int(hd_value_at(element, "price"), 0));
}

static void look(hd_value v, void *ctx) {
    (void)ctx;
    BENCH_KEEP(v.bits);
}

static hd_cell watched_row(hd_build *row, hd_cell element, void *ctx) {
    hd_cell out = hd_build_derive(row, "price", element, price, ctx);
    hd_build_sink(row, "look", out, look, NULL);
    return out;
}

static hd_cell shop(hd_build *b, void *ctx) {
    hd_each each = { .build = watched_row, .ctx = now, .key = now->keyed ? "/id" : NULL };
    hd_cell rows = hd_build_map(b, "rows", now->items, &each);
    hd_build_sink(b, "look", rows, look, NULL);
    return rows;
}

/* A sum by a function of the program's own, which counts: of the elements' rows, or of the elements. */
static hd_value add(hd_tx *tx, hd_value a, hd_value b, void *ctx) {
    ((world *)ctx)->combined++;
    return hd_int(hd_tx_pool(tx), hd_value_as_int(a, 0) + hd_value_as_int(b, 0));
}

static hd_cell sum_of(hd_build *b, hd_each each) {
    hd_fold fold = { .combine = add, .ctx = now, .each = each };
    hd_cell sum = hd_build_fold(b, "sum", now->items, &fold);
    hd_build_sink(b, "look", sum, look, NULL);
    return sum;
}
static hd_cell row_sum(hd_build *b, void *ctx) {
    (void)ctx;
    return sum_of(b, (hd_each){ .fn = price, .ctx = now, .key = now->keyed ? "/id" : NULL });
}
static hd_cell number_sum(hd_build *b, void *ctx) {
    (void)ctx;
    return sum_of(b, (hd_each){ 0 });
}

/* A hundred groups by price; each change of a price is one of the key. */
static hd_value shelf(hd_tx *tx, hd_value element, void *ctx) {
    ((world *)ctx)->runs++;
    return hd_int(hd_tx_pool(tx), hd_value_as_int(hd_value_at(element, "price"), 0) % 100);
}
static hd_cell shelves(hd_build *b, void *ctx) {
    (void)ctx;
    hd_each each = { .fn = shelf, .ctx = now, .key = "/id" };
    hd_cell by = hd_build_group(b, "by", now->items, &each);
    hd_build_sink(b, "look", by, look, NULL);
    return by;
}

static hd_value element(world *w, int64_t id) {
    if (w->numbers) return hd_int(NULL, ++w->number);
    hd_value v = hd_object_set(w->pool, hd_object(), "id", hd_int(NULL, id));
    return hd_object_set(w->pool, v, "price", hd_int(NULL, ++w->number));
}

static void settle(world *w) {
    if (hd_runtime_settle(w->rt)) abort();
    hd_pool_clear(w->pool);
}

static void world_open(world *w, uint32_t count, bool keyed, hd_pattern_fn pattern) {
    hd_builder *builder;
    hd_piece piece;
    *w = (world){ .count = count, .random = 1, .keyed = keyed, .numbers = pattern == number_sum };
    if (hd_open(NULL, NULL, &w->rt, NULL)) abort();
    if (hd_pool_open(hd_runtime_heap(w->rt), &w->pool)) abort();
    w->items = hd_cell_at(w->rt, "main/items");
    if (hd_builder_open(w->pool, HD_KIND_ARRAY, &builder)) abort();
    for (uint32_t i = 0; i < count; i++) hd_builder_add(builder, element(w, i));
    if (hd_write(w->rt, w->items, hd_builder_close(builder))) abort();
    now = w;
    if (hd_pattern_register(w->rt, "shop", "1", pattern, NULL)) abort();
    if (hd_piece_start(w->rt, &(hd_piece_spec){ .id = "shop", .pattern = "shop" }, &piece, NULL))
        abort();
    settle(w);
}

static void world_close(world *w) {
    hd_pool_close(w->pool);
    hd_close(w->rt);
}

static uint32_t below(world *w, uint32_t n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)w->random * n >> 32);
}

static void change_one(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        char path[48];
        snprintf(path, sizeof path, "main/items#/%u%s", below(w, w->count),
                 w->numbers ? "" : "/price");
        if (hd_write(w->rt, hd_cell_at(w->rt, path), hd_int(NULL, ++w->number))) abort();
        settle(w);
    }
}

static void append_one(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        hd_tx *tx;
        if (hd_tx_begin(w->rt, &tx)) abort();
        if (hd_tx_append(tx, w->items, element(w, w->count++)) || hd_tx_commit(tx, NULL, NULL))
            abort();
        settle(w);
    }
}

static void report_rows(bench *b, const char *name, uint32_t n, bool keyed, hd_pattern_fn pattern,
                        void (*run)(void *, uint64_t), bool bounded) {
    world w;
    world_open(&w, n, keyed, pattern);
    uint64_t before = w.runs;
    run(&w, 100);
    double runs = (double)(w.runs - before) / 100;
    double ns = bench_ns_per_op(b, run, &w);
    bench_row row = {
        .name = name, .n = n, .value = ns / 1000, .unit = "us", .counts = { { "row runs", runs } }
    };
    if (bounded) row.must = bench_at_most(20);
    bench_report(b, &row);
    if (runs > 1.0 || runs < 1.0) bench_wrong(b, "%s: %g rows ran instead of one", name, runs);
    world_close(&w);
}

static void report(bench *b, const char *name, uint32_t n, bool keyed,
                   void (*run)(void *, uint64_t), bool bounded) {
    report_rows(b, name, n, keyed, shop, run, bounded);
}

static void report_fold(bench *b, const char *name, uint32_t n, bool keyed, hd_pattern_fn pattern,
                        void (*run)(void *, uint64_t)) {
    world w;
    world_open(&w, n, keyed, pattern);
    uint64_t before = w.combined;
    run(&w, 1000);
    double combined = (double)(w.combined - before) / 1000;
    double ns = bench_ns_per_op(b, run, &w);
    bench_row row = { .name = name,
                      .n = n,
                      .value = ns / 1000,
                      .unit = "us",
                      .counts = { { "calls to combine", combined } } };
    if (w.numbers && run == change_one) row.must = bench_at_most(10);
    bench_report(b, &row);
    if (combined > 200) bench_wrong(b, "%s: %g calls to combine", name, combined);
    world_close(&w);
}

void bench_group_patterns(bench *b);
void bench_group_patterns(bench *b) {
    report(b, "pattern/map-change-1", 10000, false, change_one, true);
    report(b, "pattern/map-change-1-keyed", 10000, true, change_one, true);
    report(b, "pattern/map-change-1-of-100k", 100000, false, change_one, false);
    report(b, "pattern/map-append", 10000, false, append_one, false);
    report(b, "pattern/map-append-keyed", 10000, true, append_one, false);
    report(b, "pattern/map-append-to-100k", 100000, false, append_one, false);
    report_fold(b, "pattern/fold-change-1-of-100k", 100000, false, number_sum, change_one);
    report_fold(b, "pattern/fold-append-to-100k", 100000, false, number_sum, append_one);
    report_fold(b, "pattern/fold-row-1-of-100k", 100000, false, row_sum, change_one);
    report_fold(b, "pattern/fold-row-1-of-100k-keyed", 100000, true, row_sum, change_one);
    report_rows(b, "pattern/group-key-1-of-10k", 10000, true, shelves, change_one, false);
    report_rows(b, "pattern/group-key-1-of-100k", 100000, true, shelves, change_one, false);
}
