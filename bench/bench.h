/* bench.h -- the harness every benchmark group reports to.
 *
 * A group is one function, `void bench_group_<group>(bench *b)`, in `bench_<group>.c`; main.c has
 * one line per group. A group measures and hands over finished rows:
 *
 *     double ns = bench_ns_per_op(b, set_one_key, &world);
 *     bench_report(b, &(bench_row){ .name = "value/set-100k", .n = 100000, .value = ns / 1000,
 *                                   .unit = "us", .must = bench_at_most(3),
 *                                   .counts = { { "nodes copied", copied } } });
 *
 * A row with a peer states both measurements, taken in this same run; the harness forms the
 * ratio, for which below 1 is always better. Times without counts convince nobody: put what was
 * done (runs, comparisons, visited entries, bytes) beside what it took.
 *
 * Groups are not library code: they may read clocks and allocate as they like. */
#ifndef BENCH_H
#define BENCH_H

#include <heddle/base.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench bench;

/* ---- Rows -------------------------------------------------------------------------------- */

/* A figure to reach, and what it bounds. The default (all zero) is "none". */
typedef enum bench_bound {
    BENCH_NO_BOUND,
    BENCH_VALUE_AT_MOST,
    BENCH_VALUE_AT_LEAST,
    BENCH_RATIO_AT_MOST
} bench_bound;

typedef struct bench_figure {
    bench_bound bound;
    double figure;
} bench_figure;

static inline bench_figure bench_at_most(double f) {
    return (bench_figure){ BENCH_VALUE_AT_MOST, f };
}
static inline bench_figure bench_at_least(double f) {
    return (bench_figure){ BENCH_VALUE_AT_LEAST, f };
}
static inline bench_figure bench_ratio_at_most(double f) {
    return (bench_figure){ BENCH_RATIO_AT_MOST, f };
}

enum { BENCH_COUNTS = 6, BENCH_NAME = 64, BENCH_UNIT = 16 };

typedef struct bench_count {
    const char *what; /* NULL ends the list */
    double count;
} bench_count;

/* One measurement. Only name, value and unit are required. Strings are borrowed for the call. */
typedef struct bench_row {
    const char *name; /* "group/case" */
    uint64_t n;       /* the size of the problem: elements, nodes, writes */
    double value;
    const char *unit; /* "ms", "ns", "B", "commits/s" */
    bool rate;        /* more is better: the ratio is turned round */

    const char *peer; /* who was measured beside it, in the same unit; NULL for nobody */
    double peer_value;

    bench_figure must; /* the figure an issue names */
    bench_figure aim;  /* the figure we would like; never reported as missed */
    bench_count counts[BENCH_COUNTS];
} bench_row;

/* Prints the row and keeps a copy for the JSON file. */
void bench_report(bench *b, const bench_row *row);

/* Finds the value (or the ratio) of a row reported earlier in this run; false where there is
 * none. The way to form means over rows, or to use another group's measurement as a peer. */
bool bench_value_of(const bench *b, const char *name, double *value);
bool bench_ratio_of(const bench *b, const char *name, double *ratio);

/* Says that a result is wrong (a count or a sum, not a time). The run goes on, and ends with
 * exit status 1. */
void bench_wrong(bench *b, const char *fmt, ...) HD_PRINTF(2, 3);

/* A line for the reader, e.g. why a peer is missing. */
void bench_note(bench *b, const char *fmt, ...) HD_PRINTF(2, 3);

/* ---- Timing ------------------------------------------------------------------------------ */

/* --quick: smaller repetitions, for a look at the shape. Sizes stay as specified. */
bool bench_quick(const bench *b);
bool bench_cpu(const bench *b);

/* `repeats`, or fewer when quick; never less than 1. */
int bench_repeats(const bench *b, int repeats);

/* Nanoseconds of the clock in use (wall, or with --cpu the CPU time of the process), and always
 * of the wall clock: for what waits for a disk or for another process. */
uint64_t bench_now_ns(void);
uint64_t bench_wall_ns(void);

/* The fastest of `repeats` calls, in nanoseconds: noise only ever adds. */
double bench_best_ns(const bench *b, int repeats, void (*run)(void *ctx), void *ctx);

/* Nanoseconds per operation: run(ctx, n) does n operations; n grows until a call takes long
 * enough to be measured well, then the fastest of several calls counts. */
double bench_ns_per_op(const bench *b, void (*run)(void *ctx, uint64_t n), void *ctx);

/* Makes the compiler believe that `x` is used, without a store. */
#define BENCH_KEEP(x) __asm__ volatile("" : : "g"(x) : "memory")

/* Makes the compiler believe that all memory may have changed. */
#define BENCH_CLOBBER() __asm__ volatile("" : : : "memory")

/* ---- Allocations ------------------------------------------------------------------------- */

/* What went through a counting env. Reset it by assigning zero to the counters of interest;
 * live_bytes must stay, or later frees make it wrap. */
typedef struct bench_allocs {
    hd_env inner;
    uint64_t calls; /* allocations and resizes; frees are not counted */
    uint64_t frees;
    uint64_t live_bytes;
    uint64_t peak_bytes;
} bench_allocs;

/* An env like `inner` that counts into `counts`, which must outlive every user of the env. */
hd_env bench_count_allocs(hd_env inner, bench_allocs *counts);

/* Resident memory of this process in bytes; 0 where the system does not say. */
uint64_t bench_resident_bytes(void);

/* ---- The run (main.c) -------------------------------------------------------------------- */

typedef struct bench_options {
    bool quick;
    bool cpu;              /* CPU time instead of wall time, for a machine that is busy otherwise */
    const char *json_path; /* NULL: no file */
} bench_options;

bench *bench_open(const bench_options *options);

/* Writes the file, prints a line for each missed figure, frees. Returns the exit status:
 * 0, or 1 where a result was wrong or the file could not be written. */
int bench_close(bench *b);

#endif
