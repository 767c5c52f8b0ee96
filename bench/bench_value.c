/* bench_value.c -- immutable values: one change among many entries, comparing, paths, memory.
 *
 * Keys are "key0000000" and so on; each operation takes a random one, so that nothing but the top of
 * the tree stays in the cache. A changed copy is released before the next one is made, as a program
 * that keeps only the newest version does; releasing is part of the figure. Everything goes through
 * the public functions: finding the key by its text is part of the figure, too. */
#include "bench.h"

#include <heddle/value.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DIGITS = 7, KEY_LENGTH = 3 + KEY_DIGITS };

typedef struct world {
    hd_heap *heap;
    hd_pool *pool;   /* emptied after each operation */
    hd_pool *keep;   /* holds what the operations work on */
    hd_value before; /* the container */
    hd_value after;  /* another version of it */
    uint32_t count;  /* of its entries */
    uint32_t random;
    hd_path path;
} world;

static world world_open(void) {
    world w = { .random = 1 };
    if (hd_heap_open(NULL, NULL, &w.heap) || hd_pool_open(w.heap, &w.pool) ||
        hd_pool_open(w.heap, &w.keep))
        abort();
    return w;
}

static void world_close(world *w) {
    hd_pool_close(w->pool);
    hd_pool_close(w->keep);
    hd_heap_close(w->heap);
}

static uint32_t below(world *w, uint32_t n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)w->random * n >> 32);
}

static void key_text(char out[KEY_LENGTH + 1], uint32_t n) {
    memcpy(out, "key", 3);
    for (int i = KEY_LENGTH - 1; i >= 3; i--, n /= 10) out[i] = (char)('0' + n % 10);
    out[KEY_LENGTH] = 0;
}

static hd_value object_of(world *w, uint32_t count) {
    hd_builder *b;
    char key[KEY_LENGTH + 1];
    if (hd_builder_open(w->keep, HD_KIND_OBJECT, &b)) abort();
    for (uint32_t i = 0; i < count; i++) {
        key_text(key, i);
        hd_builder_put_n(b, key, KEY_LENGTH, hd_int(NULL, i));
    }
    w->count = count;
    return hd_builder_close(b);
}

static hd_value array_of(world *w, uint32_t count) {
    hd_builder *b;
    if (hd_builder_open(w->keep, HD_KIND_ARRAY, &b)) abort();
    for (uint32_t i = 0; i < count; i++) hd_builder_add(b, hd_int(NULL, i));
    w->count = count;
    return hd_builder_close(b);
}

static hd_heap_stats stats_of(const world *w) {
    hd_heap_stats s;
    hd_heap_stat(w->heap, &s);
    return s;
}

/* ---- One key of many --------------------------------------------------------------------- */

static void set_one_key(void *ctx, uint64_t n) {
    world *w = ctx;
    char key[KEY_LENGTH + 1];
    for (uint64_t i = 0; i < n; i++) {
        key_text(key, below(w, w->count));
        hd_value v = hd_object_set_n(w->pool, w->before, key, KEY_LENGTH, hd_int(NULL, -1));
        BENCH_KEEP(v.bits);
        hd_pool_clear(w->pool);
    }
}

static void get_one_key(void *ctx, uint64_t n) {
    world *w = ctx;
    char key[KEY_LENGTH + 1];
    for (uint64_t i = 0; i < n; i++) {
        key_text(key, below(w, w->count));
        BENCH_KEEP(hd_value_at_n(w->before, key, KEY_LENGTH).bits);
    }
}

/* Blocks made by one set, averaged over many. */
static double blocks_per_set(world *w) {
    enum { SETS = 1000 };
    uint64_t made = stats_of(w).made_blocks;
    set_one_key(w, SETS);
    return (double)(stats_of(w).made_blocks - made) / SETS;
}

static void bench_set(bench *b, uint32_t count, const char *name, const char *nodes_name,
                      double at_most_us) {
    world w = world_open();
    w.before = object_of(&w, count);
    double blocks = blocks_per_set(&w), us = bench_ns_per_op(b, set_one_key, &w) / 1000;
    bench_report(b, &(bench_row){ .name = name,
                                  .n = count,
                                  .value = us,
                                  .unit = "us",
                                  .must = bench_at_most(at_most_us),
                                  .counts = { { "nodes copied", blocks } } });
    bench_report(b, &(bench_row){ .name = nodes_name,
                                  .n = count,
                                  .value = blocks,
                                  .unit = "nodes",
                                  .must = bench_at_most(64) });
    if (count == 100000) {
        double ns = bench_ns_per_op(b, get_one_key, &w);
        bench_report(
            b, &(bench_row){ .name = "value/get-100k", .n = count, .value = ns, .unit = "ns" });
    }
    world_close(&w);
}

/* ---- Comparing --------------------------------------------------------------------------- */

static bool count_place(const hd_step *path, size_t depth, hd_value before, hd_value after,
                        void *ctx) {
    (void)path, (void)depth, (void)before, (void)after;
    ++*(uint64_t *)ctx;
    return true;
}

static void diff_versions(void *ctx, uint64_t n) {
    world *w = ctx;
    uint64_t places = 0;
    for (uint64_t i = 0; i < n; i++)
        hd_value_diff(w->heap, w->before, w->after, count_place, &places);
    BENCH_KEEP(places);
}

static void equal_versions(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) BENCH_KEEP(hd_value_equal(w->before, w->after));
}

static double visited_by(world *w, void (*run)(void *ctx, uint64_t n)) {
    uint64_t before = stats_of(w).visited;
    run(w, 1);
    return (double)(stats_of(w).visited - before);
}

static void report_compare(bench *b, world *w, const char *name, void (*run)(void *, uint64_t),
                           bench_figure visits) {
    double visited = visited_by(w, run), ns = bench_ns_per_op(b, run, w);
    bench_report(b, &(bench_row){ .name = name,
                                  .n = w->count,
                                  .value = ns,
                                  .unit = "ns",
                                  .counts = { { "nodes visited", visited } } });
    if (visits.bound == BENCH_NO_BOUND) return;
    char row[BENCH_NAME];
    snprintf(row, sizeof row, "%s-visited", name);
    bench_report(
        b, &(bench_row){
               .name = row, .n = w->count, .value = visited, .unit = "nodes", .must = visits });
}

static void bench_compare(bench *b) {
    bench_figure none = { 0 };
    world w = world_open();
    w.before = object_of(&w, 100000);
    w.after = hd_object_set(w.keep, w.before, "key0054321", hd_null());
    report_compare(b, &w, "value/diff-100k", diff_versions, bench_at_most(64));

    hd_value back = hd_object_set(w.keep, w.after, "key0054321", hd_int(NULL, 54321));
    w.after = back; /* equal, and on the way to one key not the same nodes */
    report_compare(b, &w, "value/equal-100k", equal_versions, bench_at_most(64));
    w.after = w.before;
    report_compare(b, &w, "value/equal-identical", equal_versions, bench_at_most(0));

    hd_value grown = hd_object_set(w.keep, w.before, "key0054321x", hd_null());
    w.after = hd_object_remove(w.keep, grown, "key0054321x"); /* equal, but cut differently */
    report_compare(b, &w, "value/equal-reshaped", equal_versions, none);
    w.after = object_of(&w, 100000); /* equal, and nothing shared */
    report_compare(b, &w, "value/equal-unshared", equal_versions, none);
    world_close(&w);
}

static void hash_after_set(void *ctx, uint64_t n) {
    world *w = ctx;
    char key[KEY_LENGTH + 1];
    for (uint64_t i = 0; i < n; i++) {
        key_text(key, below(w, w->count));
        hd_value v = hd_object_set_n(w->pool, w->before, key, KEY_LENGTH, hd_int(NULL, -1));
        BENCH_KEEP(hd_value_hash(w->heap, v).lo);
        hd_pool_clear(w->pool);
    }
}

static void bench_hash(bench *b) {
    world w = world_open();
    w.before = object_of(&w, 100000);
    BENCH_KEEP(hd_value_hash(w.heap, w.before).lo); /* cached from here on */
    double us = bench_ns_per_op(b, hash_after_set, &w) / 1000;
    bench_report(
        b, &(bench_row){ .name = "value/set-hash-100k", .n = w.count, .value = us, .unit = "us" });
    world_close(&w);
}

/* ---- Paths ------------------------------------------------------------------------------- */

static void intern_known_path(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        hd_path path;
        const char *text = "/items/3/price";
        BENCH_KEEP(text);
        BENCH_KEEP(hd_path_intern(w->heap, text, &path, NULL));
        BENCH_KEEP(path);
    }
}

static void get_by_path(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) BENCH_KEEP(hd_value_get(w->heap, w->before, w->path).bits);
}

static void set_by_path(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        BENCH_KEEP(hd_value_set(w->pool, w->before, w->path, hd_int(NULL, (int64_t)i)).bits);
        hd_pool_clear(w->pool);
    }
}

/* {"items": [{"price": 0}, ...]}, among 10,000 other paths. */
static void paths_fill(world *w) {
    char text[64];
    for (int i = 0; i < 10000; i++) {
        hd_path path;
        snprintf(text, sizeof text, "/items/%d/price", i);
        if (hd_path_intern(w->heap, text, &path, NULL)) abort();
    }
    if (hd_path_intern(w->heap, "/items/3/price", &w->path, NULL)) abort();
    hd_value items = hd_array(), item = hd_object_set(w->keep, hd_object(), "price", hd_null());
    for (int i = 0; i < 10; i++) items = hd_array_append(w->keep, items, item);
    w->before = hd_object_set(w->keep, hd_object(), "items", items);
}

static void bench_paths(bench *b) {
    world w = world_open();
    paths_fill(&w);
    bench_report(b, &(bench_row){ .name = "value/path-intern",
                                  .n = 3,
                                  .value = bench_ns_per_op(b, intern_known_path, &w),
                                  .unit = "ns",
                                  .must = bench_at_most(60) });
    bench_report(b, &(bench_row){ .name = "value/path-get",
                                  .n = 3,
                                  .value = bench_ns_per_op(b, get_by_path, &w),
                                  .unit = "ns" });
    bench_report(b, &(bench_row){ .name = "value/path-set",
                                  .n = 3,
                                  .value = bench_ns_per_op(b, set_by_path, &w),
                                  .unit = "ns" });
    world_close(&w);
}

/* ---- Building and memory ----------------------------------------------------------------- */

static void make_small_object(void *ctx, uint64_t n) {
    world *w = ctx;
    for (uint64_t i = 0; i < n; i++) {
        hd_builder *b;
        if (hd_builder_open(w->pool, HD_KIND_OBJECT, &b)) abort();
        hd_builder_put(b, "name", hd_bool(true));
        hd_builder_put(b, "born", hd_int(NULL, 1815));
        hd_builder_put(b, "id", hd_int(NULL, (int64_t)i));
        BENCH_KEEP(hd_builder_close(b).bits);
        hd_pool_clear(w->pool);
    }
}

static void append_and_release(void *ctx, uint64_t n) {
    world *w = ctx;
    hd_value v = hd_array();
    for (uint64_t i = 0; i < n; i++) {
        hd_value longer = hd_value_ref(hd_array_append(w->pool, v, hd_int(NULL, 1)));
        hd_pool_clear(w->pool);
        hd_value_unref(v);
        v = longer;
    }
    hd_value_unref(v);
}

static void iterate(void *ctx, uint64_t n) {
    world *w = ctx;
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n;)
        for (hd_iter it = hd_iter_of(w->before); done < n && hd_iter_next(&it); done++)
            sum += it.value.bits;
    BENCH_KEEP(sum);
}

static void bench_building(bench *b) {
    world w = world_open();
    bench_report(b, &(bench_row){ .name = "value/small-object",
                                  .n = 3,
                                  .value = bench_ns_per_op(b, make_small_object, &w),
                                  .unit = "ns" });
    bench_report(b, &(bench_row){ .name = "value/append",
                                  .value = bench_ns_per_op(b, append_and_release, &w),
                                  .unit = "ns" });
    w.before = array_of(&w, 1000000);
    bench_report(b, &(bench_row){ .name = "value/iterate-1m",
                                  .n = w.count,
                                  .value = bench_ns_per_op(b, iterate, &w),
                                  .unit = "ns" });
    world_close(&w);
}

/* What the environment gave for a heap with nothing but the array in it. */
static void bench_memory(bench *b) {
    enum { N = 1000000 };
    bench_allocs allocs;
    hd_env env = bench_count_allocs(hd_env_system(), &allocs);
    world w = { 0 };
    if (hd_heap_open(&env, NULL, &w.heap) || hd_pool_open(w.heap, &w.keep)) abort();
    hd_value v = array_of(&w, N);
    double each = (double)allocs.live_bytes / N;
    if (hd_value_count(v) != N) bench_wrong(b, "the array has %zu elements", hd_value_count(v));
    bench_report(b, &(bench_row){ .name = "value/memory-ints",
                                  .n = N,
                                  .value = each,
                                  .unit = "B",
                                  .must = bench_at_most(10),
                                  .counts = { { "blocks", (double)stats_of(&w).live_blocks },
                                              { "allocations", (double)allocs.calls } } });
    hd_heap_close(w.heap);
}

void bench_group_value(bench *b);
void bench_group_value(bench *b) {
    bench_set(b, 100000, "value/set-100k", "value/set-100k-nodes", 3);
    bench_set(b, 1000000, "value/set-1m", "value/set-1m-nodes", 4.5);
    bench_compare(b);
    bench_hash(b);
    bench_paths(b);
    bench_building(b);
    bench_memory(b);
}
