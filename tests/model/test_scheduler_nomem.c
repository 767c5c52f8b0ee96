/* test_scheduler_nomem.c -- the scheduler when memory runs out, at each allocation in turn.
 *
 * Registering, running, committing and settling may fail with HD_NOMEM; what failed changed nothing,
 * and once there is memory again everything comes right without a nudge. */
#include "lab.h"
#include <heddle/scheduler.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { N, SWITCH, DOUBLED, CHOSEN, SIDE, TABLE, CHILD, CELLS };
enum { DOUBLE, CHOOSE, FILL, SHOW, NODES };

typedef struct scene {
    lab_env *world;
    hd_runtime *rt;
    hd_cell cells[CELLS];
    hd_node nodes[NODES];
    hd_node child;
    double shown;
} scene;

/* ---- a small graph with everything in it */

static double number(hd_tx *tx, hd_cell cell, hd_status *status) {
    hd_value v = hd_tx_get(tx, cell);
    if (!*status) *status = hd_value_status(v);
    return hd_value_exists(v) ? hd_value_number(v) : 0;
}

static hd_status run_double(hd_tx *tx, void *ctx) {
    const scene *s = ctx;
    hd_status status = HD_OK;
    double n = number(tx, s->cells[N], &status);
    return status ? status : hd_tx_set_double(tx, s->cells[DOUBLED], 2 * n);
}

/* Reads one thing or the other, and writes two documents. */
static hd_status run_choose(hd_tx *tx, void *ctx) {
    const scene *s = ctx;
    hd_status status = HD_OK;
    bool left = number(tx, s->cells[SWITCH], &status) > 0;
    double v = number(tx, s->cells[left ? DOUBLED : N], &status);
    if (!status) status = hd_tx_set_double(tx, s->cells[SIDE], v);
    return status ? status : hd_tx_set_double(tx, s->cells[CHOSEN], v + 1);
}

static hd_status run_fill(hd_tx *tx, void *ctx) {
    const scene *s = ctx;
    hd_status status = HD_OK;
    double n = number(tx, s->cells[N], &status);
    hd_cell at = hd_cell_child(s->rt, s->cells[TABLE], n > 1 ? "many" : "few");
    if (!at.id) return HD_NOMEM;
    return status ? status : hd_tx_set_double(tx, at, n);
}

static hd_status run_child(hd_tx *tx, void *ctx) {
    const scene *s = ctx;
    hd_status status = HD_OK;
    double v = number(tx, s->cells[CHOSEN], &status);
    return status ? status : hd_tx_set_double(tx, s->cells[CHILD], v);
}

/* Creates a node in the middle of its run. */
static hd_status run_show(hd_tx *tx, void *ctx) {
    scene *s = ctx;
    hd_status status = HD_OK;
    if (!s->child.id) {
        hd_node_spec spec = { .fn = run_child, .ctx = s, .output = s->cells[CHILD] };
        status = hd_node_register(s->rt, &spec, &s->child);
        if (status) return status;
    }
    double a = number(tx, s->cells[SIDE], &status), b = number(tx, s->cells[CHILD], &status);
    double c = number(tx, s->cells[CHOSEN], &status);
    if (!status) s->shown = a + b + c;
    return status;
}

static double expected(double n, bool left) {
    double v = left ? 2 * n : n;
    return v + (v + 1) + (v + 1);
}

/* ---- doing it, as far as memory goes */

static bool make_cells(scene *s) {
    static const char *const names[CELLS] = { "main/n",      "main/switch", "main/doubled",
                                              "main/chosen", "main/side",   "main/table",
                                              "main/child" };
    for (int i = 0; i < CELLS; i++) {
        if (!s->cells[i].id) s->cells[i] = hd_cell_at(s->rt, names[i]);
        if (!s->cells[i].id) return false;
    }
    return true;
}

static bool make_nodes(scene *s) {
    const hd_node_spec specs[NODES] = {
        [DOUBLE] = { .name = "double", .fn = run_double, .output = s->cells[DOUBLED] },
        [CHOOSE] = { .name = "choose",
                     .fn = run_choose,
                     .output = s->cells[CHOSEN],
                     .side_outputs = &s->cells[SIDE],
                     .side_output_count = 1,
                     .reads = s->cells,
                     .read_count = 3,
                     .throttle_ms = 1 },
        [FILL] = { .fn = run_fill, .envelopes = &s->cells[TABLE], .envelope_count = 1 },
        [SHOW] = { .name = "show", .fn = run_show, .effect = true },
    };
    for (int i = 0; i < NODES; i++) {
        hd_node_spec spec = specs[i];
        spec.ctx = s;
        if (s->nodes[i].id) continue;
        hd_status status = hd_node_register(s->rt, &spec, &s->nodes[i]);
        if (status) assert_int_equal(status, HD_NOMEM);
        if (status) return false;
    }
    return true;
}

static bool change(scene *s, double n, double left) {
    hd_status status = hd_write(s->rt, s->cells[N], hd_double(n));
    if (!status) status = hd_write(s->rt, s->cells[SWITCH], hd_double(left));
    if (status) assert_int_equal(status, HD_NOMEM);
    return !status;
}

/* As often as it may fail; time passes for the throttle. */
static bool settle(scene *s) {
    for (int i = 0; i < 4; i++) {
        hd_status status = hd_runtime_settle(s->rt);
        if (status) assert_int_equal(status, HD_NOMEM);
        if (status) return false;
        lab_env_advance_ms(s->world, 1);
    }
    return true;
}

static bool do_everything(scene *s) {
    if (!make_cells(s) || !make_nodes(s)) return false;
    if (!change(s, 1, 0) || !settle(s)) return false;
    if (!change(s, 2, 1) || !settle(s)) return false;
    hd_node_unregister(s->rt, s->nodes[FILL]);
    return settle(s);
}

/* With memory again, and without a change of what was written already, all is as it should be. */
static void everything_is_right(scene *s) {
    assert_true(make_cells(s) && make_nodes(s));
    assert_true(settle(s));
    double n = 0, left = 0;
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(s->rt), &pool), HD_OK);
    hd_value v = hd_read(s->rt, pool, s->cells[N]), w = hd_read(s->rt, pool, s->cells[SWITCH]);
    if (hd_value_exists(v)) n = hd_value_number(v);
    if (hd_value_exists(w)) left = hd_value_number(w);
    hd_pool_close(pool);
    assert_true(s->shown == expected(n, left > 0));
    assert_true(change(s, 7, 0) && settle(s));
    assert_true(s->shown == expected(7, false));
    assert_true(change(s, 8, 1) && settle(s));
    assert_true(s->shown == expected(8, true));
}

static void quiet(const hd_failure *failure, void *ctx) { (void)ctx, (void)failure; }

/* True: the failure was met. Memory comes back before the end, so the lab's own loop will not do. */
static bool one_run(uint64_t nth, bool and_all_after) {
    lab_env *world = lab_env_open();
    scene s = { .world = world };
    hd_options options = { .env = lab_env_of(world) };
    if (and_all_after) lab_env_fail_from(world, nth);
    else lab_env_fail_at(world, nth);
    hd_status status = hd_open(NULL, &options, &s.rt, NULL);
    bool all = !status && !hd_runtime_on_error(s.rt, quiet, NULL) && do_everything(&s);
    bool met = lab_env_failed(world);
    assert_true(met || all);
    lab_env_fail_at(world, 0);
    if (!status) {
        everything_is_right(&s);
        assert_int_equal(hd_close(s.rt), HD_OK);
    }
    lab_env_close(world);
    return met;
}

static void memory_runs_out_at_every_point(void **state) {
    uint64_t nth = 1;
    while (one_run(nth, false)) {
        assert_true(one_run(nth, true));
        nth++;
    }
    printf("%llu allocations\n", (unsigned long long)(nth - 1));
    assert_true(nth > 50);
}

/* ---- many effects that are functions and no more */

enum {
    CROWD = 70,
    SEEN = 24
}; /* records and positions grow on the way, and the largest read sets */

typedef struct crowd {
    hd_runtime *rt;
    hd_cell cells[SEEN];
    struct looker {
        struct crowd *of;
        int reads; /* so many of the cells */
        double sum;
        hd_node node;
    } lookers[CROWD];
} crowd;

static hd_status run_look(hd_tx *tx, void *ctx) {
    struct looker *self = ctx;
    hd_status status = HD_OK;
    double sum = 0;
    for (int i = 0; i < self->reads; i++) sum += number(tx, self->of->cells[i], &status);
    if (!status) self->sum = sum;
    return status;
}

static bool fill_crowd(crowd *c, double each) {
    static const int reads[] = { 0, 1, 3, SEEN };
    for (int i = 0; i < SEEN; i++) {
        char name[] = "main/?";
        name[5] = (char)('a' + i);
        if (!c->cells[i].id) c->cells[i] = hd_cell_at(c->rt, name);
        if (!c->cells[i].id || hd_write(c->rt, c->cells[i], hd_double(each))) return false;
    }
    for (int i = 0; i < CROWD; i++) {
        struct looker *x = &c->lookers[i];
        if (x->node.id) continue;
        *x = (struct looker){ .of = c, .reads = reads[i % 4], .sum = -1 };
        x->node = hd_effect(c->rt, NULL, run_look, x);
        if (!x->node.id) return false;
    }
    return hd_runtime_settle(c->rt) == HD_OK;
}

static void crowd_has_seen(const crowd *c, double each) {
    for (int i = 0; i < CROWD; i++) assert_true(c->lookers[i].sum == each * c->lookers[i].reads);
}

/* True: the failure was met. */
static bool one_crowd(uint64_t nth, bool and_all_after) {
    lab_env *world = lab_env_open();
    static crowd c;
    c = (crowd){ 0 };
    hd_options options = { .env = lab_env_of(world) };
    assert_int_equal(hd_open(NULL, &options, &c.rt, NULL), HD_OK);
    assert_int_equal(hd_runtime_on_error(c.rt, quiet, NULL), HD_OK);
    if (and_all_after) lab_env_fail_from(world, nth);
    else lab_env_fail_at(world, nth);
    bool all = fill_crowd(&c, 1), met = lab_env_failed(world);
    assert_true(met || all);
    lab_env_fail_at(world, 0);
    assert_true(fill_crowd(&c, 1));
    crowd_has_seen(&c, 1);
    assert_true(fill_crowd(&c, 2)); /* all that they read is known */
    crowd_has_seen(&c, 2);
    for (int i = 0; i < CROWD; i++) hd_node_unregister(c.rt, c.lookers[i].node);
    assert_int_equal(hd_close(c.rt), HD_OK);
    lab_env_close(world);
    return met;
}

static void memory_runs_out_while_effects_are_made(void **state) {
    uint64_t nth = 1;
    while (one_crowd(nth, false)) {
        assert_true(one_crowd(nth, true));
        nth++;
    }
    assert_true(nth > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(memory_runs_out_at_every_point),
                                        cmocka_unit_test(memory_runs_out_while_effects_are_made) };
    return cmocka_run_group_tests_name("scheduler without memory", tests, NULL, NULL);
}
