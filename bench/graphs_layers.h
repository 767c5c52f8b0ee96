/* graphs_layers.h -- graphs made of layers: cellx and dynamic (part of graphs_template.h). */

/* ---- cellx: four properties, thousands of layers ------------------------------------------
 *
 * Each layer computes p1' = p2, p2' = p1 - p3, p3' = p2 + p4, p4' = p3, with an effect on each
 * property. Timed: read the four last, write all four first in one batch, read again. A fresh
 * graph for each of ten repetitions; the result is their sum. */

typedef struct minus {
    engine_cell out;
    engine_cell left, right;
} minus;

static engine_status minus_body(engine_tx *tx, void *ctx) {
    const minus *self = ctx;
    double left = engine_read(tx, self->left);
    return engine_finish(tx, self->out, left - engine_read(tx, self->right));
}

static engine_status both_body(engine_tx *tx, void *ctx) {
    const minus *self = ctx;
    double left = engine_read(tx, self->left);
    return engine_finish(tx, self->out, left + engine_read(tx, self->right));
}

static engine_cell add_two(engine *e, graph_arena *a, engine_body *body, engine_cell left,
                           engine_cell right) {
    minus *self = graph_new(a, sizeof *self);
    self->left = left;
    self->right = right;
    engine_computed(e, body, self, &self->out);
    return self->out;
}

/* One layer upon p[0..3], which then are the new ones. */
static void add_cellx_layer(engine *e, graph_arena *a, engine_cell *p, uint64_t *calls) {
    engine_cell q[4];
    q[0] = add_plus(e, a, p[1], 0);
    q[1] = add_two(e, a, minus_body, p[0], p[2]);
    q[2] = add_two(e, a, both_body, p[1], p[3]);
    q[3] = add_plus(e, a, p[2], 0);
    for (int i = 0; i < 4; i++) add_watch(e, a, q[i], calls);
    for (int i = 0; i < 4; i++) p[i] = q[i];
}

static void check_four(engine *e, graph_result *r, const engine_cell *p, const double *expected) {
    for (int i = 0; i < 4; i++) graph_check(r, "property", engine_peek(e, p[i]), expected[i]);
}

static void cellx_once(graph_result *r, uint32_t layers, const double *before,
                       const double *after) {
    engine *e = engine_open(8 * layers + 16);
    graph_arena arena = { 0 };
    uint64_t calls = 0;
    engine_cell first[4], last[4];
    for (int i = 0; i < 4; i++) last[i] = first[i] = engine_signal(e, i + 1);
    for (uint32_t i = 0; i < layers; i++) {
        add_cellx_layer(e, &arena, last, &calls);
        for (int j = 0; j < 4; j++) engine_prepare(e, last[j]);
    }
    engine_settle(e);

    graph_result one = { 0 };
    lap l = lap_begin(e);
    check_four(e, r, last, before);
    engine_begin(e);
    for (int i = 0; i < 4; i++) engine_write(e, first[i], 4 - i);
    engine_end(e);
    check_four(e, r, last, after);
    lap_end(l, e, &one);

    r->ms += one.ms;
    r->computed_runs = one.computed_runs;
    r->effect_runs = one.effect_runs;
    engine_close(e);
    graph_arena_free(&arena);
}

static void run_cellx(const graph_options *o, graph_result *r, uint32_t layers,
                      const double *before, const double *after) {
    *r = (graph_result){ 0 };
    const int repeats = o->repeats ? o->repeats : 10;
    for (int i = 0; i < repeats; i++) cellx_once(r, layers, before, after);
    r->ms *= 10.0 / repeats;
    graph_check(r, "computed runs", (double)r->computed_runs, 4.0 * layers);
    graph_check(r, "effect runs", (double)r->effect_runs, 4.0 * layers);
}

static void run_cellx1000(const graph_options *o, graph_result *r) {
    run_cellx(o, r, 1000, (const double[]){ -3, -6, -2, 2 }, (const double[]){ -2, -4, 2, 3 });
}

static void run_cellx2500(const graph_options *o, graph_result *r) {
    run_cellx(o, r, 2500, (const double[]){ -3, -6, -2, 2 }, (const double[]){ -2, -4, 2, 3 });
}

static void run_cellx5000(const graph_options *o, graph_result *r) {
    run_cellx(o, r, 5000, (const double[]){ 2, 4, -1, -6 }, (const double[]){ -2, 1, -4, -4 });
}

/* ---- dynamic: layers of sums, some of which skip a source ----------------------------------
 *
 * Layer 0 is `width` signals; node i of each further layer sums `sources` nodes of the layer
 * before, from i on, around the edge. A dynamic node reads the first; if that is odd, it skips
 * one of the others. One effect reads the leaves that are left after a share was removed. */

typedef struct layers_shape {
    uint32_t sources, width, layers;
    double static_share, read_share;
    int iterations;
    double expected_sum;
    double expected_runs;
} layers_shape;

typedef struct layers_graph {
    engine *e;
    graph_arena arena;
    engine_cell *firsts;
    engine_cell *leaves; /* those that are read */
    uint32_t leaf_count;
    uint64_t calls;
} layers_graph;

static engine_status skipping_body(engine_tx *tx, void *ctx) {
    const sum *self = ctx;
    double total = engine_read(tx, self->in[0]);
    const int64_t first = (int64_t)total;
    const uint32_t skip = first & 1 ? 1 + (uint32_t)(first % (self->count - 1)) : 0;
    for (uint32_t i = 1; i < self->count; i++) {
        if (i != skip) total += engine_read(tx, self->in[i]);
    }
    return engine_finish(tx, self->out, total);
}

static void add_row(layers_graph *g, const layers_shape *s, graph_rng *rng,
                    const engine_cell *before, engine_cell *row) {
    for (uint32_t i = 0; i < s->width; i++) {
        sum *node = new_sum(&g->arena, s->sources);
        for (uint32_t j = 0; j < s->sources; j++) node->in[j] = before[(i + j) % s->width];
        bool is_static = graph_rng_next(rng) < s->static_share;
        engine_computed(g->e, is_static ? sum_body : skipping_body, node, &node->out);
        row[i] = node->out;
    }
    for (uint32_t i = 0; i < s->width; i++) engine_prepare(g->e, row[i]);
}

static void remove_leaves(layers_graph *g, const layers_shape *s) {
    graph_rng rng = graph_rng_seeded("seed");
    g->leaf_count = s->width;
    uint32_t removed = (uint32_t)((double)s->width * (1 - s->read_share) + 0.5);
    for (; removed > 0; removed--) {
        uint32_t at = (uint32_t)(graph_rng_next(&rng) * g->leaf_count);
        g->leaf_count--;
        memmove(g->leaves + at, g->leaves + at + 1, (g->leaf_count - at) * sizeof *g->leaves);
    }
}

static void layers_open(layers_graph *g, const layers_shape *s) {
    *g = (layers_graph){ .e = engine_open(s->width * s->layers + 16) };
    engine_cell *row = graph_new(&g->arena, s->width * sizeof *row);
    for (uint32_t i = 0; i < s->width; i++) row[i] = engine_signal(g->e, i);
    g->firsts = row;
    graph_rng rng = graph_rng_seeded("seed");
    for (uint32_t i = 1; i < s->layers; i++) {
        engine_cell *next = graph_new(&g->arena, s->width * sizeof *next);
        add_row(g, s, &rng, row, next);
        row = next;
    }
    g->leaves = row;
    remove_leaves(g, s);
    watch *w = new_watch(&g->arena, g->leaf_count, &g->calls);
    memcpy(w->in, g->leaves, g->leaf_count * sizeof *g->leaves);
    engine_effect(g->e, watch_body, w);
    engine_settle(g->e);
}

static double layers_iterate(layers_graph *g, const layers_shape *s) {
    double total = 0;
    for (int i = 0; i < s->iterations; i++) {
        uint32_t at = (uint32_t)i % s->width;
        write_alone(g->e, g->firsts[at], i + (double)at);
        for (uint32_t j = 0; j < g->leaf_count; j++) {
            volatile double leaf = engine_peek(g->e, g->leaves[j]);
            (void)leaf;
        }
    }
    for (uint32_t j = 0; j < g->leaf_count; j++) total += engine_peek(g->e, g->leaves[j]);
    return total;
}

static void run_layers(const graph_options *o, graph_result *r, const layers_shape *s) {
    const int warm = o->repeats == 1 ? 1 : 3;
    const int repeats = o->repeats ? o->repeats : 5;
    layers_graph g;
    *r = (graph_result){ 0 };
    layers_open(&g, s);
    for (int i = 0; i < warm; i++) layers_iterate(&g, s);
    for (int i = 0; i < repeats; i++) {
        lap l = lap_begin(g.e);
        double total = layers_iterate(&g, s);
        lap_end(l, g.e, r);
        graph_check(r, "sum of the leaves", total, s->expected_sum);
    }
    graph_check(r, "computed runs", (double)r->computed_runs, s->expected_runs);
    engine_close(g.e);
    graph_arena_free(&g.arena);
}

static void run_2_10x5(const graph_options *o, graph_result *r) {
    run_layers(o, r, &(layers_shape){ 2, 10, 5, 1, .2, 600000, 19199968, 3480000 });
}

static void run_6_10x10(const graph_options *o, graph_result *r) {
    run_layers(o, r, &(layers_shape){ 6, 10, 10, .75, .2, 15000, 302310782860, 1155000 });
}

static void run_4_1000x12(const graph_options *o, graph_result *r) {
    run_layers(o, r, &(layers_shape){ 4, 1000, 12, .95, 1, 7000, 29355933696000, 1463000 });
}

static void run_25_1000x5(const graph_options *o, graph_result *r) {
    run_layers(o, r, &(layers_shape){ 25, 1000, 5, 1, 1, 3000, 1171484375000, 732000 });
}

static void run_3_5x500(const graph_options *o, graph_result *r) {
    run_layers(o, r, &(layers_shape){ 3, 5, 500, 1, 1, 500, 3.0239642676898464e241, 1246500 });
}

static void run_6_100x15(const graph_options *o, graph_result *r) {
    run_layers(o, r, &(layers_shape){ 6, 100, 15, .5, 1, 2000, 15664996402790400, 1078000 });
}
