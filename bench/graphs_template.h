/* graphs_template.h -- the graphs, compiled once per engine.
 *
 * Include it from a .c file that has first defined, as static inline functions, the engine:
 *
 *   engine        the world: everything a graph lives in
 *   engine_tx     what a body is given
 *   engine_cell   a signal, or the output of a computed
 *   engine_item   one item of a cell that holds a list
 *   engine_status what a body returns
 *
 *   engine *engine_open(uint32_t nodes)                    at most so many signals and nodes
 *   void engine_close(engine *)                            with everything in it
 *   engine_cell engine_signal(engine *, double)
 *   void engine_computed(engine *, body, void *ctx, engine_cell *out)
 *                                                          sets *out before the body may run
 *   void engine_effect(engine *, body, void *ctx)
 *   void engine_settle(engine *)                           runs what is new, at the latest
 *   void engine_prepare(engine *, engine_cell)             a lazy engine evaluates the fresh
 *                                                          computed now, so that long chains do
 *                                                          not nest at the first read
 *   void engine_begin(engine *), engine_write(engine *, engine_cell, double), engine_end(engine *)
 *                                                          one batch: a transaction and what
 *                                                          follows from it
 *   double engine_peek(engine *, engine_cell)              the value now, from outside
 *   double engine_read(engine_tx *, engine_cell)           inside a body
 *   engine_item engine_item_of(engine *, engine_cell, uint32_t index)
 *   double engine_read_item(engine_tx *, engine_item)
 *   engine_status engine_finish(engine_tx *, engine_cell out, double)
 *   engine_status engine_finish_list(engine_tx *, engine_cell out, const double *, uint32_t)
 *                                                          the items stay valid and unchanged
 *                                                          until the second next run
 *   engine_status engine_done(engine_tx *)                 how an effect ends
 *   uint64_t engine_computed_runs(const engine *), engine_effect_runs(const engine *)
 *
 *   ENGINE_MATCHES_ITEMS  1 where a reader of one item runs only when that item changed
 *   ENGINE_RUNS_DROPPED   1 where a node may run once more although its only reader will drop it
 *   ENGINE_SUITE          the name of the function that returns the suite */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

typedef engine_status engine_body(engine_tx *tx, void *ctx);

/* ---- Bodies that several graphs use ------------------------------------------------------ */

typedef struct plus {
    engine_cell out;
    engine_cell in;
    double add;
} plus;

static engine_status plus_body(engine_tx *tx, void *ctx) {
    const plus *self = ctx;
    return engine_finish(tx, self->out, engine_read(tx, self->in) + self->add);
}

static engine_cell add_plus(engine *e, graph_arena *a, engine_cell in, double add) {
    plus *self = graph_new(a, sizeof *self);
    self->in = in;
    self->add = add;
    engine_computed(e, plus_body, self, &self->out);
    return self->out;
}

typedef struct sum {
    engine_cell out;
    uint32_t count;
    engine_cell in[];
} sum;

static engine_status sum_body(engine_tx *tx, void *ctx) {
    const sum *self = ctx;
    double total = 0;
    for (uint32_t i = 0; i < self->count; i++) total += engine_read(tx, self->in[i]);
    return engine_finish(tx, self->out, total);
}

static sum *new_sum(graph_arena *a, uint32_t count) {
    sum *self = graph_new(a, sizeof *self + count * sizeof self->in[0]);
    self->count = count;
    return self;
}

typedef struct watch {
    uint64_t *calls;
    uint32_t count;
    engine_cell in[];
} watch;

static engine_status watch_body(engine_tx *tx, void *ctx) {
    const watch *self = ctx;
    for (uint32_t i = 0; i < self->count; i++) (void)engine_read(tx, self->in[i]);
    ++*self->calls;
    return engine_done(tx);
}

static watch *new_watch(graph_arena *a, uint32_t count, uint64_t *calls) {
    watch *self = graph_new(a, sizeof *self + count * sizeof self->in[0]);
    self->calls = calls;
    self->count = count;
    return self;
}

static void add_watch(engine *e, graph_arena *a, engine_cell in, uint64_t *calls) {
    watch *self = new_watch(a, 1, calls);
    self->in[0] = in;
    engine_effect(e, watch_body, self);
}

/* ---- One repetition, timed --------------------------------------------------------------- */

static void write_alone(engine *e, engine_cell cell, double value) {
    engine_begin(e);
    engine_write(e, cell, value);
    engine_end(e);
}

typedef struct lap {
    uint64_t start_ns;
    uint64_t computed_runs;
    uint64_t effect_runs;
} lap;

static lap lap_begin(const engine *e) {
    lap l = { 0, engine_computed_runs(e), engine_effect_runs(e) };
    l.start_ns = clock_now_ns();
    return l;
}

/* Keeps the fastest time; every repetition has the same counts. */
static void lap_end(lap l, const engine *e, graph_result *r) {
    double ms = graph_ms(clock_now_ns() - l.start_ns);
    if (r->ms == 0 || ms < r->ms) r->ms = ms;
    r->computed_runs = engine_computed_runs(e) - l.computed_runs;
    r->effect_runs = engine_effect_runs(e) - l.effect_runs;
}

#include "graphs_kairo.h"
#include "graphs_layers.h"
#include "graphs_sbench.h"
#include "graphs_chains.h"

/* ---- The suite --------------------------------------------------------------------------- */

graph_suite ENGINE_SUITE(void) {
    static const graph graphs[] = {
        { "avoidable", GRAPH_MS, true, run_avoidable },
        { "broad", GRAPH_MS, true, run_broad },
        { "deep", GRAPH_MS, true, run_deep },
        { "diamond", GRAPH_MS, true, run_diamond },
        { "mux", GRAPH_MS, true, run_mux },
        { "repeated", GRAPH_MS, true, run_repeated },
        { "triangle", GRAPH_MS, true, run_triangle },
        { "unstable", GRAPH_MS, true, run_unstable },
        { "molBench", GRAPH_MS, false, run_mol },
        { "cellx1000", GRAPH_MS, true, run_cellx1000 },
        { "cellx2500", GRAPH_MS, true, run_cellx2500 },
        { "cellx5000", GRAPH_MS, true, run_cellx5000 },
        { "2-10x5", GRAPH_MS, true, run_2_10x5 },
        { "6-10x10", GRAPH_MS, true, run_6_10x10 },
        { "4-1000x12", GRAPH_MS, true, run_4_1000x12 },
        { "25-1000x5", GRAPH_MS, true, run_25_1000x5 },
        { "3-5x500", GRAPH_MS, true, run_3_5x500 },
        { "6-100x15", GRAPH_MS, true, run_6_100x15 },
        { "updateSignals", GRAPH_MS, true, run_update_signals },
        { "createSignals", GRAPH_MS, false, run_create_signals },
        { "createComputations", GRAPH_MS, false, run_create_computations },
        { "chain-1000", GRAPH_NS_PER_RUN, false, run_chain_1000 },
        { "chain-100000", GRAPH_NS_PER_RUN, false, run_chain_100000 },
        { "chains-150000-by-1", GRAPH_NS_PER_RUN, false, run_chains_by_1 },
        { "chains-150000-by-1000", GRAPH_NS_PER_RUN, false, run_chains_by_1000 },
    };
    return (graph_suite){ graphs, sizeof graphs / sizeof graphs[0] };
}
