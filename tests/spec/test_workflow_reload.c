/* test_workflow_reload.c -- several instances at once, loaded again after every commit: each ends with the result it
 * has by itself (W4). What one instance changes and frees between two commits is stored in its own document. */
#define _GNU_SOURCE
#include "folder.h"
#include "random_flow.h"
#include "times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WORKFLOWS = 8 };

static char file[256];
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;

static void open_engine(void) {
    hd_error error = { 0 };
    if (hd_engine_open(rt, NULL, &engine, &error)) fail_msg("%s", error.message);
    assert_int_equal(random_flow_actions(engine, true), HD_OK);
}

static void open_store(const char *where) {
    assert_int_equal(hd_open(where, NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    open_engine();
}

static void close_store(void) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void start_all(uint64_t seed) {
    for (uint32_t i = 0; i < WORKFLOWS; i++) {
        char name[32], id[HD_INSTANCE_ID_SIZE];
        hd_value ir;
        hd_error error = { 0 };
        snprintf(name, sizeof name, "w%u", i);
        if (random_flow(pool, name, seed * 100 + i, &ir, &error) ||
            hd_workflow_register(engine, ir, NULL, &error))
            fail_msg("%s", error.message);
        assert_int_equal(
            hd_workflow_start(engine, name, hd_object(), &(hd_start_options){ .key = "k" }, id),
            HD_OK);
    }
}

static void results_of_all(char out[WORKFLOWS][200]) {
    for (uint32_t i = 0; i < WORKFLOWS; i++) {
        char id[HD_INSTANCE_ID_SIZE];
        hd_value result;
        snprintf(id, sizeof id, "w%u/k", i);
        hd_status status = hd_workflow_await(engine, id, pool, &result);
        assert_true(status == HD_OK || status == HD_FAILED);
        snprintf(out[i], 200, "%s", hd_json_print(pool, result, HD_JSON_COMPACT, NULL));
    }
}

/* Closing the engine waits for the commit under way, and for nothing else. */
static void run_with_reloads(void) {
    hd_engine_stats stats;
    for (hd_engine_stat(engine, &stats); stats.open; hd_engine_stat(engine, &stats)) {
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        hd_engine_close(engine);
        open_engine();
    }
}

static void w4_instances_that_share_commits_are_apart(void **state) {
    uint64_t rounds = lab_times("HD_WORKFLOW_RELOADS", LAB_SLOW ? 6 : 25);
    for (uint64_t seed = lab_seed(); rounds > 0; rounds--, seed++) {
        static char is[WORKFLOWS][200], should_be[WORKFLOWS][200];
        open_store(NULL);
        start_all(seed);
        results_of_all(should_be);
        close_store();
        folder_store(file, sizeof file, "reload.db");
        open_store(file);
        start_all(seed);
        run_with_reloads();
        results_of_all(is);
        close_store();
        folder_remove_store(file);
        for (uint32_t i = 0; i < WORKFLOWS; i++)
            if (strcmp(is[i], should_be[i]))
                fail_msg("w%u of seed %llu: %s, not %s", i, (unsigned long long)seed, is[i],
                         should_be[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(w4_instances_that_share_commits_are_apart, folder_make,
                                        folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
