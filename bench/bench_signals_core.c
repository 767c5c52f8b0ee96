/* bench_signals_core.c -- the graphs on the minimal signal core, the yardstick of `signals`. */
#include "suite.h"

void bench_group_signals_core(bench *b);

void bench_group_signals_core(bench *b) {
    const suite_plan plan = {
        .group = "signals-core",
        .geomean = { .must = 0.2 },
    };
    suite_report(b, graphs_core(), &plan);
}
