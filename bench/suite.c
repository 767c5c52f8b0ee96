/* suite.c -- see suite.h. */
#include "suite.h"

#include "peers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static suite_figure figure_of(const suite_plan *plan, const graph *g) {
    for (const suite_figure *f = plan->figures; f && f->graph; f++) {
        if (strcmp(f->graph, g->name) == 0) return *f;
    }
    return (suite_figure){ g->name, g->propagation ? plan->propagation_must : 0, 0 };
}

static bench_figure ratio_figure(double ratio) {
    return ratio > 0 ? bench_ratio_at_most(ratio) : (bench_figure){ BENCH_NO_BOUND, 0 };
}

static void row_name(char *out, const char *group, const char *name) {
    snprintf(out, BENCH_NAME, "%s/%s", group, name);
}

static void add_count(bench_row *row, const char *what, double count) {
    for (int i = 0; i < BENCH_COUNTS; i++) {
        if (row->counts[i].what) continue;
        row->counts[i] = (bench_count){ what, count };
        return;
    }
}

/* Whoever else was measured goes beside the row. */
static void add_others(bench *b, bench_row *row, const suite_plan *plan, const graph *g) {
    char name[BENCH_NAME];
    double value;
    if (plan->base_group) {
        row_name(name, plan->base_group, g->name);
        if (bench_value_of(b, name, &value)) add_count(row, plan->base_group, value);
    }
    if (peer_value(b, PEER_PREACT, g, &value)) add_count(row, PEER_PREACT, value);
}

static void report_graph(bench *b, const suite_plan *plan, const graph *g) {
    const graph_options options = { .repeats = bench_quick(b) ? 2 : 0 };
    const suite_figure figure = figure_of(plan, g);
    graph_result result;
    char name[BENCH_NAME];
    row_name(name, plan->group, g->name);
    g->run(&options, &result);
    if (result.wrong[0]) bench_wrong(b, "%s: %s", name, result.wrong);

    bench_row row = { .name = name, .value = graph_value(g, &result) };
    row.n = result.computed_runs + result.effect_runs;
    row.unit = g->unit == GRAPH_MS ? "ms" : "ns/run";
    if (peer_value(b, PEER_ALIEN, g, &row.peer_value)) {
        row.peer = PEER_ALIEN;
        row.must = ratio_figure(figure.must);
        row.aim = ratio_figure(figure.aim);
    }
    add_count(&row, "computed runs", (double)result.computed_runs);
    add_count(&row, "effect runs", (double)result.effect_runs);
    add_others(b, &row, plan, g);
    bench_report(b, &row);
}

/* The geometric mean of the propagation graphs in this group; with `peer`, of the same graphs in
 * the peer's measurements. False where one is missing. */
typedef bool value_source(bench *b, const graph *g, const char *group, double *value);

static bool value_in_group(bench *b, const graph *g, const char *group, double *value) {
    char name[BENCH_NAME];
    row_name(name, group, g->name);
    return bench_value_of(b, name, value);
}

static bool value_of_alien(bench *b, const graph *g, const char *group, double *value) {
    (void)group;
    return peer_value(b, PEER_ALIEN, g, value);
}

static bool geomean(bench *b, graph_suite suite, value_source *source, const char *group,
                    double *mean) {
    double logs = 0, value;
    int count = 0;
    for (size_t i = 0; i < suite.count; i++) {
        if (!suite.graphs[i].propagation) continue;
        if (!source(b, &suite.graphs[i], group, &value)) return false;
        logs += log(value);
        count++;
    }
    *mean = count ? exp(logs / count) : 0;
    return count > 0;
}

static void report_geomeans(bench *b, graph_suite suite, const suite_plan *plan) {
    char name[BENCH_NAME];
    double own, other;
    if (!geomean(b, suite, value_in_group, plan->group, &own)) return;
    if (geomean(b, suite, value_of_alien, NULL, &other)) {
        row_name(name, plan->group, "geomean");
        bench_report(b, &(bench_row){ .name = name,
                                      .value = own,
                                      .unit = "ms",
                                      .peer = PEER_ALIEN,
                                      .peer_value = other,
                                      .must = ratio_figure(plan->geomean.must),
                                      .aim = ratio_figure(plan->geomean.aim) });
    }
    if (!plan->base_group) return;
    if (geomean(b, suite, value_in_group, plan->base_group, &other)) {
        row_name(name, plan->group, "geomean-against-core");
        bench_report(b, &(bench_row){ .name = name,
                                      .value = own,
                                      .unit = "ms",
                                      .peer = plan->base_group,
                                      .peer_value = other,
                                      .must = ratio_figure(plan->base_geomean.must),
                                      .aim = ratio_figure(plan->base_geomean.aim) });
    }
}

/* Does a node in a long chain take longer than one in a short chain? */
static void report_flatness(bench *b, const suite_plan *plan) {
    char name[BENCH_NAME];
    double short_ns, long_ns;
    row_name(name, plan->group, "chain-1000");
    if (!bench_value_of(b, name, &short_ns)) return;
    row_name(name, plan->group, "chain-100000");
    if (!bench_value_of(b, name, &long_ns)) return;
    row_name(name, plan->group, "chain-flatness");
    bench_report(b, &(bench_row){ .name = name,
                                  .n = 100000,
                                  .value = long_ns,
                                  .unit = "ns/run",
                                  .peer = "chain-1000",
                                  .peer_value = short_ns,
                                  .must = ratio_figure(plan->chain_flatness_must) });
}

void suite_report(bench *b, graph_suite suite, const suite_plan *plan) {
    for (size_t i = 0; i < suite.count; i++) report_graph(b, plan, &suite.graphs[i]);
    report_geomeans(b, suite, plan);
    if (plan->chain_flatness_must > 0) report_flatness(b, plan);
}
