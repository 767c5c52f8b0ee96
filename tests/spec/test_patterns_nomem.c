/* test_patterns_nomem.c -- every primitive without memory: each allocation of a run of the program below fails once,
 * alone and with all that follow. Nothing may leak or hang, and no builtin may be stopped twice. The sanitisers find
 * most of what can go wrong. */
#include "lab.h"

#include <heddle/pattern.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct world {
    bool own, derived_own; /* builtins that have not been stopped */
    int shown;
    hd_piece child;
} world;

static world *w; /* of the present run of the program: pattern functions have no ctx */

static hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    return hd_int(hd_tx_pool(tx), 2 * hd_value_as_int(in, 0));
}
static hd_value is_odd(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx, (void)ctx;
    return hd_bool(hd_value_as_int(in, 0) % 2);
}
static hd_value pair(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ in, in }, 2);
}
static hd_value sum(hd_tx *tx, const hd_value *in, void *ctx) {
    (void)ctx;
    int64_t all = hd_value_as_int(in[0], 0);
    for (hd_iter it = hd_iter_of(in[1]); hd_iter_next(&it);) all += hd_value_as_int(it.value, 0);
    return hd_int(hd_tx_pool(tx), all);
}
static void show(hd_value v, void *ctx) {
    (void)ctx, (void)v;
    w->shown++;
}

/* ---- a primitive of the program's own, which must be stopped once */

static void stop_builtin(void *ctx) {
    bool *there = ctx;
    assert_true(*there);
    *there = false;
}
static hd_status run_builtin(hd_tx *tx, void *ctx) {
    (void)ctx;
    return hd_tx_set_int(tx, hd_cell_at(hd_tx_runtime(tx), "main/p/own"), 1);
}
static hd_cell builtin(hd_build *b, const char *name, bool *there) {
    *there =
        true; /* true already if this is built again: a part that is the same stays, and is not stopped */
    hd_build_on_stop(b, stop_builtin, there);
    hd_node_spec spec = { .name = name, .fn = run_builtin, .output = hd_build_cell(b, name) };
    return hd_build_node(b, &spec);
}

/* ---- patterns */

static hd_cell child(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), twice, NULL);
    hd_build_sink(b, "look", d, show, NULL);
    return d;
}

static hd_status add(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)ctx;
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_cell count = hd_cell_at(rt, "main/p/count");
    hd_value now = hd_tx_get(tx, count);
    if (hd_value_status(now)) return hd_value_status(now);
    hd_status status =
        hd_tx_set_int(tx, count, hd_value_as_int(now, 0) + hd_value_as_int(event->payload, 1));
    hd_piece_spec spec = { .pattern = "child", .parent = hd_piece_find(rt, "main", "p") };
    return status ? status : hd_tx_launch_piece(tx, &spec, &w->child);
}

static hd_cell row(hd_build *b, hd_cell element, void *ctx) {
    (void)ctx;
    int *own = hd_build_memory(b, "own", sizeof *own);
    if (own) *own = 1; /* each row has memory of its own */
    hd_cell inner = hd_build_use(b, "used", "child", &(hd_named_cell){ "x", element }, 1);
    return hd_build_if_else(b, "chosen", element, inner,
                            hd_build_constant(b, "none", hd_int(NULL, 0)));
}

static hd_cell derived(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    (void)tx, (void)ctx;
    hd_cell list = hd_cell_at(hd_build_runtime(b), "main/list");
    if (!hd_value_is_true(in[0]))
        return hd_build_flat_map(b, "pairs", list, &(hd_each){ .fn = pair });
    builtin(b, "own", &w->derived_own);
    return hd_build_filter(b, "odd", list, &(hd_each){ .fn = is_odd, .key = "" });
}

static hd_cell parent(hd_build *b, void *ctx) {
    hd_cell which = hd_build_argument(b, "which", hd_bool(true));
    hd_cell list = hd_build_argument(b, "list", hd_array());
    hd_cell count = hd_build_state(b, "count", hd_int(NULL, 0));
    hd_build_handler(b, hd_build_stream(b, "add"), add, NULL, &count, 1);
    builtin(b, "own", &w->own);
    hd_cell rows =
        hd_build_gather(b, "rows", hd_build_map(b, "map", list, &(hd_each){ .build = row }));
    hd_cell some = hd_build_derive_pattern(b, "some", derived, NULL, &which, 1);
    hd_build_sink(b, "look", some, show, NULL);
    hd_cell in[] = { count, rows };
    hd_cell total = hd_build_lift(b, "total", sum, NULL, in, 2);
    hd_build_sink(b, "total.look", total, show, NULL);
    return total;
}

/* ---- the program */

static hd_status set(hd_runtime *rt, const char *cell, const char *json) {
    hd_cell at = hd_cell_at(rt, cell);
    return at.id ? hd_write_json(rt, at, json) : HD_NOMEM;
}

static hd_status settle(hd_runtime *rt) {
    hd_status status = HD_OK;
    for (int i = 0; i < 3; i++) status = hd_runtime_settle(rt);
    return status;
}

static void ignore(const hd_failure *failure, void *ctx) { (void)ctx, (void)failure; }

static hd_status begin(hd_runtime *rt, hd_piece *out) {
    hd_status status = hd_runtime_on_error(rt, ignore, NULL);
    if (!status) status = hd_pattern_register(rt, "child", "1", child, NULL);
    if (!status) status = hd_pattern_register(rt, "parent", "1", parent, NULL);
    hd_piece_spec spec = { .id = "p", .pattern = "parent" };
    if (!status) status = hd_piece_start(rt, &spec, out, NULL);
    if (!status) status = set(rt, "main/list", "[1, 2, 3]");
    if (!status) status = set(rt, "main/p#/arguments/list", "[1, 0, 2]");
    return status ? status : settle(rt);
}

static hd_status go_on(hd_runtime *rt) {
    hd_cell stream = hd_cell_at(rt, "main/p/add");
    hd_status status = stream.id ? hd_event_send(rt, stream, hd_int(NULL, 5), NULL) : HD_NOMEM;
    if (!status) status = settle(rt);
    if (!status) status = set(rt, "main/p#/arguments/which", "false");
    if (!status) status = set(rt, "main/p#/arguments/list", "[2, 1]");
    if (!status) status = settle(rt);
    if (!status) status = set(rt, "main/p#/arguments/which", "true");
    return status ? status : settle(rt);
}

static int64_t total_of(hd_runtime *rt) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    int64_t total = hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "main/p/total")), -1);
    hd_pool_close(pool);
    return total;
}

/* The piece ends with its runtime (0), is stopped (1), or is removed (2). It adds 5 to the stored total each time. */
static void run_program(lab_env *env, hd_memory *memory, int how) {
    world one = { 0 };
    hd_runtime *rt = NULL;
    hd_piece p = { 0, 0 };
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    w = &one;
    hd_status status = hd_open(NULL, &options, &rt, NULL);
    if (!status) status = begin(rt, &p);
    if (!status) status = go_on(rt);
    if (!lab_env_failed(env)) {
        assert_int_equal(status, HD_OK);
        assert_int_equal(total_of(rt), 11 + 5 * how);
        assert_true(hd_piece_runs(rt, w->child));
    }
    if (rt && how == 1) hd_piece_stop(rt, p);
    bool gone = rt && (how == 1 || (how == 2 && hd_piece_remove(rt, p) == HD_OK));
    if (gone) assert_false(hd_piece_runs(rt, w->child) || hd_piece_runs(rt, p));
    hd_close(rt);
    assert_false(w->own || w->derived_own);
}

static void play(lab_env *env, void *ctx) {
    hd_memory *memory;
    (void)ctx;
    if (hd_memory_open(lab_env_of(env), &memory)) return;
    for (int how = 0; how < 3; how++) run_program(env, memory, how);
    hd_memory_close(memory);
}

static void every_primitive_without_memory(void **state) {
    (void)state;
    lab_each_allocation_failure(play, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_primitive_without_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
