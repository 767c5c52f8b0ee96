/* bench_json.c -- a megabyte of JSON, in and out, beside jansson.
 *
 * The document is what programs of this kind hold: an array of records with names, ids, counts,
 * prices, flags, tags, a nested address, a free text with the odd escape and non-ASCII letter, and
 * a run of measurements. It is generated, the same on every run. Both libraries read the same
 * bytes and print their own tree; making and freeing the tree is part of reading. */
#include "bench.h"

#include <heddle/value.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENT_SIZE = 1000000 };

/* ---- The document ------------------------------------------------------------------------ */

typedef struct text {
    char *bytes;
    size_t length, capacity;
} text;

static void text_add(text *t, const char *format, ...) HD_PRINTF(2, 3);
static void text_add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->bytes + t->length, t->capacity - t->length, format, arguments);
    va_end(arguments);
    t->length += (size_t)n;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static const char *pick(uint32_t *random, const char *const *words, size_t count) {
    return words[next_random(random) % count];
}

static void add_sentence(text *t, uint32_t *random) {
    static const char *const words[] = {
        "thread",  "loom",    "weft",   "a",          "the",
        "shuttle", "passes",  "under",  "na\u00efve", "r\u00e9sum\u00e9",
        "of",      "and",     "slowly", "\\\"so\\\"", "warp",
        "lifts",   "pattern", "line\\n"
    };
    uint32_t count = 4 + next_random(random) % 16;
    for (uint32_t i = 0; i < count; i++) {
        text_add(t, "%s%s", i ? " " : "", pick(random, words, sizeof words / sizeof *words));
    }
}

static void add_record(text *t, uint32_t *random, uint32_t n) {
    static const char *const names[] = { "Ada Lovelace",   "Grace Hopper", "Alan Turing",
                                         "Barbara Liskov", "Tony Hoare",   "Margaret Hamilton" };
    static const char *const cities[] = { "London", "Z\u00fcrich", "New York", "K\u00f8benhavn" };
    static const char *const tags[] = { "new", "paid", "express", "gift", "returned" };
    text_add(t, "{\"id\":%u,\"name\":\"%s\",\"email\":\"user%u@example.com\",\"active\":%s,", n,
             pick(random, names, 6), n, next_random(random) % 2 ? "true" : "false");
    text_add(t, "\"price\":%.2f,\"quantity\":%u,\"parent\":",
             (double)(next_random(random) % 100000) / 100, next_random(random) % 20);
    if (n % 3) text_add(t, "%u,", n / 3);
    else text_add(t, "null,");
    text_add(
        t,
        "\"address\":{\"street\":\"%u High Street\",\"city\":\"%s\",\"zip\":\"%05u\"},\"tags\":[",
        next_random(random) % 200, pick(random, cities, 4), next_random(random) % 100000);
    uint32_t tag_count = next_random(random) % 4;
    for (uint32_t i = 0; i < tag_count; i++) {
        text_add(t, "%s\"%s\"", i ? "," : "", pick(random, tags, 5));
    }
    text_add(t, "],\"note\":\"");
    add_sentence(t, random);
    text_add(t, "\",\"samples\":[");
    uint32_t sample_count = next_random(random) % 8;
    for (uint32_t i = 0; i < sample_count; i++) {
        text_add(t, "%s%.6f", i ? "," : "", (double)next_random(random) / 1234.5);
    }
    text_add(t, "]}");
}

static text make_document(void) {
    text t = { .capacity = DOCUMENT_SIZE + 4096 };
    t.bytes = malloc(t.capacity);
    if (!t.bytes) abort();
    uint32_t random = 20240229, n = 0;
    text_add(&t, "[");
    while (t.length < DOCUMENT_SIZE) {
        if (n) text_add(&t, ",");
        add_record(&t, &random, n++);
    }
    text_add(&t, "]");
    return t;
}

/* ---- The runs ---------------------------------------------------------------------------- */

typedef struct world {
    text document;
    hd_heap *heap;
    hd_pool *pool;
    hd_value value;
    json_t *peer_value;
    size_t printed, peer_printed;
    bool failed;
} world;

static void parse_ours(void *ctx) {
    world *w = ctx;
    hd_value v = hd_json_parse(w->pool, w->document.bytes, w->document.length, NULL);
    if (!hd_value_exists(v)) w->failed = true;
    hd_pool_clear(w->pool);
}

static void parse_peer(void *ctx) {
    world *w = ctx;
    json_t *v = json_loadb(w->document.bytes, w->document.length, JSON_REJECT_DUPLICATES, NULL);
    if (!v) w->failed = true;
    json_decref(v);
}

static void print_ours(void *ctx) {
    world *w = ctx;
    if (!hd_json_print(w->pool, w->value, HD_JSON_COMPACT, &w->printed)) w->failed = true;
    hd_pool_clear(w->pool);
}

static void print_peer(void *ctx) {
    world *w = ctx;
    char *printed = json_dumps(w->peer_value, JSON_COMPACT);
    if (!printed) w->failed = true;
    else w->peer_printed = strlen(printed);
    free(printed);
}

static bool open_world(world *w) {
    *w = (world){ .document = make_document() };
    if (hd_heap_open(NULL, NULL, &w->heap) || hd_pool_open(w->heap, &w->pool)) return false;
    w->value = hd_json_parse(w->pool, w->document.bytes, w->document.length, NULL);
    w->peer_value = json_loadb(w->document.bytes, w->document.length, 0, NULL);
    if (!hd_value_exists(w->value) || !w->peer_value) return false;
    hd_value_ref(w->value);
    hd_pool_clear(w->pool);
    return true;
}

static void close_world(world *w) {
    json_decref(w->peer_value);
    hd_value_unref(w->value);
    hd_pool_close(w->pool);
    hd_heap_close(w->heap);
    free(w->document.bytes);
}

static uint64_t made_blocks(const world *w) {
    hd_heap_stats stats;
    hd_heap_stat(w->heap, &stats);
    return stats.made_blocks;
}

static void report(bench *b, world *w, const char *name, void (*ours)(void *), void (*peer)(void *),
                   double must, bench_count count) {
    double ns = bench_best_ns(b, bench_repeats(b, 100), ours, w);
    double peer_ns = bench_best_ns(b, bench_repeats(b, 20), peer, w);
    double megabytes = (double)w->document.length / 1e6;
    bench_report(b, &(bench_row){ .name = name,
                                  .n = w->document.length,
                                  .value = ns / 1e6,
                                  .unit = "ms",
                                  .peer = "jansson",
                                  .peer_value = peer_ns / 1e6,
                                  .must = bench_ratio_at_most(must),
                                  .counts = { { "MB/s", megabytes / (ns / 1e9) }, count } });
}

void bench_group_json(bench *b);
void bench_group_json(bench *b) {
    world w;
    if (!open_world(&w)) {
        bench_wrong(b, "value/parse-1mb: the document could not be read");
    } else {
        uint64_t before = made_blocks(&w);
        parse_ours(&w);
        bench_count blocks = { "blocks made", (double)(made_blocks(&w) - before) };
        report(b, &w, "value/parse-1mb", parse_ours, parse_peer, 0.1, blocks);
        print_ours(&w);
        bench_count bytes = { "bytes printed", (double)w.printed };
        report(b, &w, "value/print-1mb", print_ours, print_peer, 0.25, bytes);
        if (w.failed) bench_wrong(b, "value/parse-1mb, print-1mb: a run failed");
    }
    close_world(&w);
}
