/* bench_signals.c -- the graphs on heddle, against the peers and the minimal signal core.
 *
 * The engine measured is the whole one. Its side of the graph template is graphs_heddle.c. */
#include "suite.h"

void bench_group_signals(bench *b);
__attribute__((weak)) graph_suite graphs_heddle(void);

void bench_group_signals(bench *b) {
    static const suite_figure figures[] = {
        { "unstable", 0.9, 0 },
        { "createSignals", 1.0, 0.7 },
        { "createComputations", 0.15, 0.06 },
        { "chains-150000-by-1", 0.85, 0.55 },
        { "chains-150000-by-1000", 0.6, 0.4 },
        { NULL, 0, 0 },
    };
    const suite_plan plan = {
        .group = "signals",
        .propagation_must = 0.5,
        .figures = figures,
        .geomean = { .must = 0.25, .aim = 0.14 },
        .base_group = "signals-core",
        .base_geomean = { .must = 1.5, .aim = 0.8 },
        .chain_flatness_must = 1.5,
    };
    if (graphs_heddle) suite_report(b, graphs_heddle(), &plan);
}
