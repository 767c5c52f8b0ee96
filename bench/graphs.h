/* graphs.h -- the propagation graphs, as a suite that any engine can run.
 *
 * The graphs are those of the public js-reactivity-benchmark (kairo, cellx, sbench, dynamic) with
 * its sizes, and two of our own: long chains, and so many chains that no cache holds them. They
 * are written once, in graphs_template.h and the files it includes, which is compiled once per
 * engine; bench/peers/graphs.mjs has the same graphs for the peers.
 *
 * Each graph checks what it computes (values, sums) and what ran (counts), in every run. So a
 * suite is also a conformance test: run each graph with few repeats and look at `wrong`. */
#ifndef BENCH_GRAPHS_H
#define BENCH_GRAPHS_H

#include "clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero means: as specified. */
typedef struct graph_options {
    int repeats;
    int iterations; /* kairo and chains only: fewer rounds, with counts in proportion */
} graph_options;

typedef struct graph_result {
    double ms; /* the fastest repetition; cellx: the sum of them */
    uint64_t computed_runs;
    uint64_t effect_runs; /* both: in one repetition */
    char wrong[192];      /* the first check that failed; "" when all held */
} graph_result;

typedef enum graph_unit { GRAPH_MS, GRAPH_NS_PER_RUN } graph_unit;

typedef struct graph {
    const char *name;
    graph_unit unit;  /* how the result is best told */
    bool propagation; /* belongs into the geometric means */
    void (*run)(const graph_options *options, graph_result *result);
} graph;

typedef struct graph_suite {
    const graph *graphs;
    size_t count;
} graph_suite;

/* The suite on the minimal signal core. */
graph_suite graphs_core(void);

/* ms, or nanoseconds per run of a node. */
double graph_value(const graph *g, const graph_result *result);

/* ---- For the template -------------------------------------------------------------------- */

static inline double graph_ms(uint64_t ns) { return (double)ns / 1e6; }

/* Keeps the first failure. */
void graph_wrong(graph_result *r, const char *what, double got, double expected);

static inline void graph_check(graph_result *r, const char *what, double got, double expected) {
    if (__builtin_expect(got != expected, 0)) graph_wrong(r, what, got, expected);
}

/* Contexts of bodies: taken one by one, freed together. Aborts when there is no memory. */
typedef struct graph_arena {
    char *at;
    size_t left;
    void *chunks;
} graph_arena;

void *graph_new(graph_arena *a, size_t size);
void graph_arena_free(graph_arena *a);

/* The generator of the dynamic graphs: sfc32 seeded by xmur3a. Both are public algorithms. */
typedef struct graph_rng {
    uint32_t a, b, c, d;
} graph_rng;

graph_rng graph_rng_seeded(const char *seed);
uint32_t graph_rng_bits(graph_rng *rng);
double graph_rng_next(graph_rng *rng); /* [0, 1) */

#endif
