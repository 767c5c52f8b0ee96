/* test_cost.c -- cost follows change: what did not change, and who does not look, costs nothing.
 *
 * Counted, not timed: index entries visited, nodes marked, edges and demand looked at, runs,
 * allocations. */
#include "lab.h"

#include <heddle/scheduler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MANY 20000

typedef struct world {
    lab_env *env;
    hd_runtime *rt;
    uint64_t effect_runs; /* of the effects of watch() */
} world;

static world open_world(void) {
    world w = { .env = lab_env_open() };
    hd_options options = { .env = lab_env_of(w.env) };
    assert_int_equal(hd_open(NULL, &options, &w.rt, NULL), HD_OK);
    return w;
}

static void close_world(world *w) {
    hd_close(w->rt);
    lab_env_close(w->env);
}

static hd_cell cell_named(world *w, const char *format, int i) {
    char name[64];
    snprintf(name, sizeof name, format, i);
    hd_cell c = hd_cell_at(w->rt, name);
    assert_true(c.id);
    return c;
}

static void put(world *w, hd_cell at, double v) {
    assert_int_equal(hd_write(w->rt, at, hd_double(v)), HD_OK);
}
static void settle(world *w) { assert_int_equal(hd_runtime_settle(w->rt), HD_OK); }

/* ---- nodes */

typedef struct copy {
    hd_cell from, to;
} copy;

static hd_status run_copy(hd_tx *tx, void *ctx) {
    const copy *c = ctx;
    return hd_tx_set_double(tx, c->to, hd_value_as_double(hd_tx_get(tx, c->from), 0) + 1);
}

static hd_node add_copy(world *w, copy *c, hd_cell from, hd_cell to) {
    *c = (copy){ from, to };
    hd_node_spec spec = {
        .fn = run_copy, .ctx = c, .output = to, .reads = &c->from, .read_count = 1
    };
    hd_node n;
    assert_int_equal(hd_node_register(w->rt, &spec, &n), HD_OK);
    return n;
}

static void count_run(hd_value v, void *ctx) { ++*(uint64_t *)ctx; }
static hd_node watch_cell(world *w, hd_cell at) {
    return hd_sink(w->rt, at, count_run, &w->effect_runs);
}

/* ---- counters */

typedef struct cost {
    uint64_t runs, marks, walked, edges, demand;
} cost;

static cost cost_now(world *w) {
    hd_scheduler_stats s;
    hd_store_stats t;
    hd_runtime_scheduler_stats(w->rt, &s);
    hd_runtime_store_stats(w->rt, &t);
    return (cost){ s.runs, s.marks, t.walked, s.edge_visits, s.demand_visits };
}

/* What one write costs, up to the end of the runs it causes. */
static cost cost_of_write(world *w, hd_cell at, double v) {
    cost before = cost_now(w);
    put(w, at, v);
    settle(w);
    cost after = cost_now(w);
    return (cost){ after.runs - before.runs, after.marks - before.marks,
                   after.walked - before.walked, after.edges - before.edges,
                   after.demand - before.demand };
}

static void assert_same_cost(cost a, cost b) {
    assert_int_equal(a.runs, b.runs);
    assert_int_equal(a.marks, b.marks);
    assert_int_equal(a.walked, b.walked);
    assert_int_equal(a.edges, b.edges);
    assert_int_equal(a.demand, b.demand);
}

/* A small live graph: n -> a -> b -> effect. */
typedef struct small_graph {
    copy a, b;
    hd_cell n;
} small_graph;

static void add_small_graph(world *w, small_graph *g) {
    g->n = cell_named(w, "main/n", 0);
    hd_cell a = cell_named(w, "main/a", 0), b = cell_named(w, "main/b", 0);
    add_copy(w, &g->a, g->n, a);
    add_copy(w, &g->b, a, b);
    watch_cell(w, b);
    settle(w);
    put(w, g->n, 1);
    settle(w);
}

/* ---- who does not look */

/* What a write to the small graph costs with so many others around, in whatever state. */
static cost with_others(int others, bool same_document, bool documents_only) {
    world w = open_world();
    small_graph g;
    copy *copies = calloc((size_t)others + 1, sizeof *copies);
    add_small_graph(&w, &g);
    for (int i = 0; i < others; i++) {
        hd_cell out = cell_named(&w, "main/other%d", i);
        if (documents_only) put(&w, out, i);
        else add_copy(&w, &copies[i], same_document ? g.n : cell_named(&w, "main/else", 0), out);
    }
    settle(&w);
    cost c = cost_of_write(&w, g.n, 2);
    close_world(&w);
    free(copies);
    return c;
}

/* Nodes that nobody looks at, documents that nobody reads: an update elsewhere does not notice. */
static void what_nobody_looks_at_costs_nothing(void **state) {
    cost alone = with_others(0, false, false);
    assert_int_equal(alone.runs, 3);
    assert_same_cost(with_others(10, false, false), alone);
    assert_same_cost(with_others(MANY, false, false), alone);
    assert_same_cost(with_others(MANY, false, true), alone);
}

/* D5: dormant nodes that are invalid already are not visited by a write to what they read. */
static void dormant_invalid_readers_are_not_visited(void **state) {
    assert_same_cost(with_others(MANY, true, false), with_others(0, true, false));
}

/* The same for nodes that were clean once: the first write finds each of them, the next finds none. */
static void a_dormant_reader_is_told_once(void **state) {
    enum { READERS = 1000 };
    world w = open_world();
    small_graph g;
    static copy copies[READERS];
    hd_node sinks[READERS];
    add_small_graph(&w, &g);
    cost alone = cost_of_write(&w, g.n, 2);
    for (int i = 0; i < READERS; i++) {
        hd_cell out = cell_named(&w, "main/other%d", i);
        add_copy(&w, &copies[i], g.n, out);
        sinks[i] = watch_cell(&w, out);
    }
    settle(&w);
    for (int i = 0; i < READERS; i++) hd_node_unregister(w.rt, sinks[i]);
    settle(&w);
    cost first = cost_of_write(&w, g.n, 3), second = cost_of_write(&w, g.n, 4);
    assert_int_equal(first.runs, 3);
    assert_int_equal(first.marks, alone.marks + READERS);
    assert_same_cost(second, alone);
    close_world(&w);
}

/* Many live nodes elsewhere are no concern either. */
static void live_nodes_elsewhere_cost_nothing(void **state) {
    world w = open_world();
    small_graph g;
    copy *copies = calloc(MANY, sizeof *copies);
    add_small_graph(&w, &g);
    cost alone = cost_of_write(&w, g.n, 2);
    hd_cell elsewhere = cell_named(&w, "main/elsewhere", 0);
    for (int i = 0; i < MANY; i++) {
        hd_cell out = cell_named(&w, "main/other%d", i);
        add_copy(&w, &copies[i], elsewhere, out);
        watch_cell(&w, out);
    }
    settle(&w);
    assert_same_cost(cost_of_write(&w, g.n, 3), alone);
    close_world(&w);
    free(copies);
}

/* ---- large documents */

static hd_value object_of(hd_pool *pool, int keys, int changed, double to) {
    hd_builder *b;
    char key[16];
    assert_int_equal(hd_builder_open(pool, HD_KIND_OBJECT, &b), HD_OK);
    for (int i = 0; i < keys; i++) {
        snprintf(key, sizeof key, "k%d", i);
        hd_builder_put(b, key, hd_double(i == changed ? to : i));
    }
    return hd_builder_close(b);
}

static void write_object(world *w, hd_cell at, int keys) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(w->rt), &pool), HD_OK);
    assert_int_equal(hd_write(w->rt, at, object_of(pool, keys, -1, 0)), HD_OK);
    hd_pool_close(pool);
}

/* One key of a large document, each key read by one effect: one of them runs, few entries are
 * visited. */
static void one_key_of_many_concerns_one_reader(void **state) {
    world w = open_world();
    write_object(&w, cell_named(&w, "main/big", 0), MANY);
    for (int i = 0; i < MANY; i++) watch_cell(&w, cell_named(&w, "main/big#/k%d", i));
    settle(&w);
    cost c = cost_of_write(&w, cell_named(&w, "main/big#/k77", 0), -1);
    assert_int_equal(c.runs, 1);
    assert_int_equal(c.marks, 1);
    assert_true(c.walked <= 64);
    close_world(&w);
}

enum { ROWS = 10000 };
typedef struct table_maker {
    hd_cell n, out;
} table_maker;

/* Writes the whole table anew; one row depends on n. */
static hd_status make_table(hd_tx *tx, void *ctx) {
    const table_maker *m = ctx;
    double n = hd_value_as_double(hd_tx_get(tx, m->n), 0);
    return hd_tx_set(tx, m->out, object_of(hd_tx_pool(tx), ROWS, 77, n));
}

/* A materialiser over many keys, one of them changed: it runs, and one reader. */
static void a_materialiser_wakes_whom_it_concerns(void **state) {
    world w = open_world();
    table_maker m = { cell_named(&w, "main/n", 0), cell_named(&w, "main/table", 0) };
    hd_node_spec spec = { .fn = make_table, .ctx = &m, .envelopes = &m.out, .envelope_count = 1 };
    hd_node node;
    assert_int_equal(hd_node_register(w.rt, &spec, &node), HD_OK);
    for (int i = 0; i < ROWS; i++) watch_cell(&w, cell_named(&w, "main/table#/k%d", i));
    settle(&w);
    cost c = cost_of_write(&w, m.n, -5);
    assert_int_equal(c.runs, 1 + 1);
    close_world(&w);
}

/* ---- removing and adding */

static uint64_t work_of_replacing(int rows) {
    world w = open_world();
    hd_node *sinks = calloc((size_t)rows, sizeof *sinks);
    copy *copies = calloc((size_t)rows, sizeof *copies);
    hd_cell source = cell_named(&w, "main/n", 0);
    for (int i = 0; i < rows; i++) {
        hd_cell out = cell_named(&w, "main/row%d", i);
        add_copy(&w, &copies[i], source, out);
        sinks[i] = watch_cell(&w, out);
    }
    settle(&w);
    cost before = cost_now(&w);
    for (int i = 0; i < rows; i++) hd_node_unregister(w.rt, sinks[i]);
    settle(&w);
    for (int i = 0; i < rows; i++) watch_cell(&w, copies[i].to);
    settle(&w);
    cost after = cost_now(&w);
    close_world(&w);
    free(copies);
    free(sinks);
    return after.edges - before.edges + after.demand - before.demand + after.runs - before.runs;
}

/* Removing and adding again all readers of a list takes time in proportion to its rows. */
static void replacing_all_readers_is_linear(void **state) {
    uint64_t one = work_of_replacing(1000), two = work_of_replacing(2000);
    assert_true(two <= 2 * one + 100);
}

/* ---- memory */

/* Once it has run, an update allocates nothing. (Debug builds check small graphs after each pass, for
 * which they allocate: so it is not a small one.) */
static void a_steady_update_allocates_nothing(void **state) {
    enum { OTHERS = 1000 };
    static copy others[OTHERS];
    world w = open_world();
    small_graph g;
    add_small_graph(&w, &g);
    for (int i = 0; i < OTHERS; i++)
        add_copy(&w, &others[i], g.n, cell_named(&w, "main/other%d", i));
    for (int i = 2; i < 10; i++) {
        put(&w, g.n, i);
        settle(&w);
    }
    uint64_t before = lab_env_allocations(w.env), runs = w.effect_runs;
    for (int i = 10; i < 110; i++) {
        put(&w, g.n, i);
        settle(&w);
    }
    assert_int_equal(lab_env_allocations(w.env) - before, 0);
    assert_int_equal(w.effect_runs - runs, 100);
    close_world(&w);
}

/* A pass in which there is nothing to do looks at nothing. */
static void an_empty_pass_looks_at_nothing(void **state) {
    world w = open_world();
    small_graph g;
    add_small_graph(&w, &g);
    cost before = cost_now(&w);
    for (int i = 0; i < 10; i++) hd_runtime_pump(w.rt);
    cost after = cost_now(&w);
    assert_memory_equal(&before, &after, sizeof before);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_looks_at_costs_nothing),
        cmocka_unit_test(dormant_invalid_readers_are_not_visited),
        cmocka_unit_test(a_dormant_reader_is_told_once),
        cmocka_unit_test(live_nodes_elsewhere_cost_nothing),
        cmocka_unit_test(one_key_of_many_concerns_one_reader),
        cmocka_unit_test(a_materialiser_wakes_whom_it_concerns),
        cmocka_unit_test(replacing_all_readers_is_linear),
        cmocka_unit_test(a_steady_update_allocates_nothing),
        cmocka_unit_test(an_empty_pass_looks_at_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
