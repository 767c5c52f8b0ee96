/* bench_store_memory.c -- transactions on a store in memory, without anybody who reads.
 *
 * Each operation is a whole one: begin, read, write, commit, the change announced, and the pump that
 * brings the verdict. */
#include "bench.h"

#include <heddle/store.h>

#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 100000, HANDLES = 1024 };

typedef struct world {
    bench_allocs allocs;
    hd_env env;
    hd_runtime *rt;
    hd_cell read, write;
    hd_cell keys[HANDLES]; /* spread over the document */
    int64_t number;        /* no two transactions write the same */
    uint64_t heard;        /* changes that the listener was told of */
} world;

static void world_open(world *w) {
    *w = (world){ 0 };
    w->env = bench_count_allocs(hd_env_system(), &w->allocs);
    hd_options options = { .env = &w->env };
    if (hd_open(NULL, &options, &w->rt, NULL)) abort();
}

static void world_close(world *w) { hd_close(w->rt); }

static hd_store_stats stats_of(const world *w) {
    hd_store_stats stats;
    hd_runtime_store_stats(w->rt, &stats);
    return stats;
}

static hd_heap_stats heap_of(const world *w) {
    hd_heap_stats stats;
    hd_heap_stat(hd_runtime_heap(w->rt), &stats);
    return stats;
}

/* ---- Small documents ---------------------------------------------------------------------- */

static void read_and_write(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        hd_tx *tx;
        if (hd_tx_begin(w->rt, &tx)) abort();
        BENCH_KEEP(hd_tx_get(tx, w->read).bits);
        if (hd_tx_set_int(tx, w->write, ++w->number)) abort();
        if (hd_tx_commit(tx, NULL, NULL) || hd_runtime_pump(w->rt)) abort();
    }
}

static void only_read(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        hd_tx *tx;
        if (hd_tx_begin_read(w->rt, &tx)) abort();
        BENCH_KEEP(hd_tx_get(tx, w->read).bits);
        if (hd_tx_commit(tx, NULL, NULL)) abort();
    }
}

/* Heap allocations that `count` more operations make, after as many to warm up. */
static double allocations_of(world *w, void (*run)(void *, uint64_t), uint64_t count) {
    run(w, count);
    w->allocs.calls = 0;
    run(w, count);
    return (double)w->allocs.calls;
}

static void bench_small(bench *b) {
    enum { COUNTED = 10000 };
    world w;
    world_open(&w);
    w.read = hd_cell_at(w.rt, "main/read");
    w.write = hd_cell_at(w.rt, "main/written");
    if (hd_write_json(w.rt, w.read, "7") || hd_runtime_sync(w.rt)) abort();
    double allocations = allocations_of(&w, read_and_write, COUNTED);
    hd_store_stats before = stats_of(&w);
    read_and_write(&w, COUNTED);
    hd_store_stats after = stats_of(&w);
    if (after.accepted - before.accepted != COUNTED || after.pending)
        bench_wrong(b, "memory-tx: not every commit was accepted in the pump after it");
    bench_report(
        b, &(bench_row){
               .name = "store/memory-tx",
               .value = bench_ns_per_op(b, read_and_write, &w),
               .unit = "ns",
               .must = bench_at_most(200),
               .counts = { { "allocations", allocations / COUNTED },
                           { "notices", (double)(after.notices - before.notices) / COUNTED } } });
    bench_report(b, &(bench_row){ .name = "store/memory-read-tx",
                                  .value = bench_ns_per_op(b, only_read, &w),
                                  .unit = "ns" });
    world_close(&w);
}

/* ---- One key of many ---------------------------------------------------------------------- */

static void key_text(char *out, size_t size, uint32_t n) { snprintf(out, size, "key%07u", n); }

static void fill_document(world *w, hd_cell document) {
    hd_tx *tx;
    hd_builder *builder;
    char key[16];
    if (hd_tx_begin(w->rt, &tx) || hd_builder_open(hd_tx_pool(tx), HD_KIND_OBJECT, &builder))
        abort();
    for (uint32_t i = 0; i < KEYS; i++) {
        key_text(key, sizeof key, i);
        hd_builder_put(builder, key, hd_int(NULL, i));
    }
    if (hd_tx_set(tx, document, hd_builder_close(builder))) abort();
    if (hd_tx_commit(tx, NULL, NULL) || hd_runtime_sync(w->rt)) abort();
}

static void count_changes(const hd_notice *notice, void *ctx) {
    world *w = ctx;
    w->heard += notice->count;
}

static void set_one_key(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        hd_tx *tx;
        if (hd_tx_begin(w->rt, &tx)) abort();
        w->number++;
        if (hd_tx_set_int(tx, w->keys[w->number * 37 % HANDLES], -w->number)) abort();
        if (hd_tx_commit(tx, NULL, NULL) || hd_runtime_pump(w->rt)) abort();
    }
}

static void bench_one_key(bench *b) {
    enum { COUNTED = 1000 };
    world w;
    char key[16];
    world_open(&w);
    hd_cell document = hd_cell_at(w.rt, "main/table");
    fill_document(&w, document);
    for (uint32_t i = 0; i < HANDLES; i++) {
        key_text(key, sizeof key, i * (KEYS / HANDLES));
        w.keys[i] = hd_cell_child(w.rt, document, key);
    }
    if (hd_runtime_listen(w.rt, count_changes, &w)) abort();
    double allocations = allocations_of(&w, set_one_key, COUNTED);
    hd_heap_stats heap = heap_of(&w);
    hd_store_stats store = stats_of(&w);
    w.heard = 0;
    set_one_key(&w, COUNTED);
    double blocks = (double)(heap_of(&w).made_blocks - heap.made_blocks) / COUNTED;
    double visited = (double)(heap_of(&w).visited - heap.visited) / COUNTED;
    double walked = (double)(stats_of(&w).walked - store.walked) / COUNTED;
    if (w.heard != COUNTED)
        bench_wrong(b, "one-key-100k: %llu changes", (unsigned long long)w.heard);
    bench_report(b, &(bench_row){ .name = "store/one-key-100k",
                                  .n = KEYS,
                                  .value = bench_ns_per_op(b, set_one_key, &w) / 1000,
                                  .unit = "us",
                                  .must = bench_at_most(20),
                                  .counts = { { "blocks made", blocks },
                                              { "values visited", visited },
                                              { "places walked", walked },
                                              { "allocations", allocations / COUNTED } } });
    bench_report(b, &(bench_row){ .name = "store/one-key-100k-visited",
                                  .n = KEYS,
                                  .value = blocks + visited + walked,
                                  .unit = "entries",
                                  .must = bench_at_most(128) });
    world_close(&w);
}

void bench_group_store(bench *b);
void bench_group_store(bench *b) {
    bench_small(b);
    bench_one_key(b);
}
