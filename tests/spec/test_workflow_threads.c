/* test_workflow_threads.c -- actions on the engine's threads: results come back, whatever their order; an engine that
 * is closed waits for what runs. Under the thread sanitizer, too. */
#define _GNU_SOURCE
#include "random_flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WORKFLOWS = 40 };

static uint64_t seed;

typedef struct world {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
} world;

static void open_world(world *w, bool here, uint32_t threads) {
    hd_error error = { 0 };
    assert_int_equal(hd_open(NULL, NULL, &w->rt, &error), HD_OK);
    assert_int_equal(
        hd_engine_open(w->rt, &(hd_engine_options){ .threads = threads }, &w->engine, &error),
        HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(w->rt), &w->pool), HD_OK);
    assert_int_equal(random_flow_actions(w->engine, here), HD_OK);
    for (uint32_t i = 0; i < WORKFLOWS; i++) {
        char name[32], id[HD_INSTANCE_ID_SIZE];
        hd_value ir;
        snprintf(name, sizeof name, "w%u", i);
        if (random_flow(w->pool, name, seed * 1000 + i, &ir, &error) ||
            hd_workflow_register(w->engine, ir, NULL, &error))
            fail_msg("%s", error.message);
        assert_int_equal(
            hd_workflow_start(w->engine, name, hd_object(), &(hd_start_options){ .key = "k" }, id),
            HD_OK);
    }
}

static void close_world(world *w) {
    hd_pool_close(w->pool);
    assert_int_equal(hd_close(w->rt), HD_OK);
}

static const char *result_of(world *w, uint32_t i) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_value result;
    snprintf(id, sizeof id, "w%u/k", i);
    hd_status status = hd_workflow_await(w->engine, id, w->pool, &result);
    assert_true(status == HD_OK || status == HD_FAILED);
    return hd_json_print(w->pool, result, HD_JSON_COMPACT, NULL);
}

static void w4_results_do_not_depend_on_threads(void **state) {
    world threads, here;
    seed = lab_seed();
    open_world(&threads, false, 8);
    open_world(&here, true, 1);
    for (uint32_t i = 0; i < WORKFLOWS; i++)
        assert_string_equal(result_of(&threads, i), result_of(&here, i));
    close_world(&threads);
    close_world(&here);
}

static void an_engine_is_closed_while_actions_run(void **state) {
    for (int i = 0; i < 10; i++) {
        world w;
        open_world(&w, false, 4);
        for (int k = 0; k < i; k++) (void)hd_runtime_pump(w.rt);
        close_world(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w4_results_do_not_depend_on_threads),
        cmocka_unit_test(an_engine_is_closed_while_actions_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
