/* suite.h -- runs the graphs of graphs.h on one engine, and reports the times beside those of other libraries
 * (peers.h). */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include "bench.h"
#include "graphs.h"

/* What the time of one graph is measured against: ratios to the time of alien-signals, one of the peers. */
typedef struct suite_figure {
    const char *graph;
    double must; /* the ratio that must hold; 0: none */
    double aim;  /* the ratio to aim at; 0: none */
} suite_figure;

typedef struct suite_plan {
    const char *group;           /* rows are "group/graph" */
    double propagation_must;     /* for each propagation graph without a line in `figures` */
    const suite_figure *figures; /* ended by a graph of NULL; may be NULL */
    suite_figure geomean;        /* against alien-signals; its graph is not looked at */
    const char *base_group;      /* another group of this run to compare with; may be NULL */
    suite_figure base_geomean;   /* against that group */
    double chain_flatness_must;  /* time per node, chain of 100,000 against 1,000; 0: no row */
} suite_plan;

/* Runs every graph and reports a row for each, then the means. */
void suite_report(bench *b, graph_suite suite, const suite_plan *plan);

#endif
