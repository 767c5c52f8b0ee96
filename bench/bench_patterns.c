/* bench_patterns.c -- map: one of many elements changes, one row runs.
 *
 * The list is an array of `n` in one document; each row is looked at by an effect of its own, as a
 * window would that shows them. The counts are those of the rows' own function. */
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
    int64_t number; /* no two updates write the same */
    uint64_t runs;  /* of rows */
    bool keyed;
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

static hd_value element(world *w, int64_t id) {
    hd_value v = hd_object_set(w->pool, hd_object(), "id", hd_int(NULL, id));
    return hd_object_set(w->pool, v, "price", hd_int(NULL, ++w->number));
}

static void settle(world *w) {
    if (hd_runtime_settle(w->rt)) abort();
    hd_pool_clear(w->pool);
}

static void world_open(world *w, uint32_t count, bool keyed) {
    hd_builder *builder;
    hd_piece piece;
    *w = (world){ .count = count, .random = 1, .keyed = keyed };
    if (hd_open(NULL, NULL, &w->rt, NULL)) abort();
    if (hd_pool_open(hd_runtime_heap(w->rt), &w->pool)) abort();
    w->items = hd_cell_at(w->rt, "main/items");
    if (hd_builder_open(w->pool, HD_KIND_ARRAY, &builder)) abort();
    for (uint32_t i = 0; i < count; i++) hd_builder_add(builder, element(w, i));
    if (hd_write(w->rt, w->items, hd_builder_close(builder))) abort();
    now = w;
    if (hd_pattern_register(w->rt, "shop", "1", shop, NULL)) abort();
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
        snprintf(path, sizeof path, "main/items#/%u/price", below(w, w->count));
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

static void report(bench *b, const char *name, uint32_t n, bool keyed,
                   void (*run)(void *, uint64_t), bool bounded) {
    world w;
    world_open(&w, n, keyed);
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

void bench_group_patterns(bench *b);
void bench_group_patterns(bench *b) {
    report(b, "pattern/map-change-1", 10000, false, change_one, true);
    report(b, "pattern/map-change-1-keyed", 10000, true, change_one, true);
    report(b, "pattern/map-change-1-of-100k", 100000, false, change_one, false);
    report(b, "pattern/map-append", 10000, false, append_one, false);
    report(b, "pattern/map-append-keyed", 10000, true, append_one, false);
    report(b, "pattern/map-append-to-100k", 100000, false, append_one, false);
}
