/* test_workflow_unlucky.c -- allocations fail now and then, one at a time, while many instances run on a file: commits
 * are under way then, and instances that are lost go on from what is stored (W4).
 *
 * HD_WORKFLOW_UNLUCKY: so many worlds; HD_SEED: which. */
#define _DEFAULT_SOURCE
#include "folder.h"
#include "random_flow.h"
#include "times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TOGETHER = 12 };

typedef struct world {
    lab_env *env;
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
} world;

static uint64_t dice;
static uint64_t roll(uint64_t n) {
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % n;
}

static void open_world(world *w, const char *where) {
    w->env = lab_env_open();
    hd_options options = { .env = lab_env_of(w->env) };
    assert_int_equal(hd_open(where, &options, &w->rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(w->rt, NULL, &w->engine, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(w->rt), &w->pool), HD_OK);
    assert_int_equal(random_flow_actions(w->engine, true), HD_OK);
}

static void close_world(world *w) {
    hd_pool_close(w->pool);
    (void)hd_close(w->rt);
    lab_env_close(w->env);
}

static void start_all(world *w, uint64_t seed) {
    char name[32], id[HD_INSTANCE_ID_SIZE];
    hd_value ir;
    hd_start_options o = { .key = "k" };
    for (uint64_t i = 0; i < TOGETHER; i++) {
        snprintf(name, sizeof name, "w%d", (int)i);
        assert_int_equal(random_flow(w->pool, name, seed + i, &ir, NULL), HD_OK);
        assert_int_equal(hd_workflow_register(w->engine, ir, NULL, NULL), HD_OK);
        assert_int_equal(hd_workflow_start(w->engine, name, hd_object(), &o, id), HD_OK);
    }
}

static void result_of(world *w, int i, char out[200]) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_value result;
    snprintf(id, sizeof id, "w%d/k", i);
    hd_status status = hd_workflow_await(w->engine, id, w->pool, &result);
    if (status && status != HD_FAILED) fail_msg("%s: %s", id, hd_status_name(status));
    snprintf(out, 200, "%s", hd_json_print(w->pool, result, HD_JSON_COMPACT, NULL));
}

static uint32_t open_instances(const world *w) {
    hd_engine_stats s;
    hd_engine_stat(w->engine, &s);
    return (uint32_t)s.open;
}

static void run_unlucky(world *w) {
    for (int i = 0; i < 400 && open_instances(w); i++) {
        lab_env_fail_at(w->env, 1 + roll(roll(2) ? 40 : 600));
        (void)hd_runtime_pump(w->rt);
        if (!roll(3)) (void)hd_runtime_sync(w->rt);
        if (!roll(4)) lab_env_advance_ms(w->env, 1 + roll(2000));
    }
    lab_env_fail_at(w->env, 0);
}

static void run_world(uint64_t seed) {
    char file[256], expected[TOGETHER][200], got[200];
    world lucky, unlucky;
    open_world(&lucky, NULL);
    start_all(&lucky, seed * 1000);
    for (int i = 0; i < TOGETHER; i++) result_of(&lucky, i, expected[i]);
    close_world(&lucky);
    dice = seed;
    folder_store(file, sizeof file, "unlucky.db");
    open_world(&unlucky, file);
    start_all(&unlucky, seed * 1000);
    run_unlucky(&unlucky);
    for (int i = 0; i < TOGETHER; i++) {
        result_of(&unlucky, i, got);
        if (strcmp(got, expected[i]) != 0)
            fail_msg("HD_SEED=%llu, w%d: %s instead of %s", (unsigned long long)seed, i, got,
                     expected[i]);
    }
    close_world(&unlucky);
    folder_remove_store(file);
}

static void w4_lost_instances_go_on_from_what_is_stored(void **state) {
    (void)state;
    const char *given = getenv("HD_SEED");
    uint64_t n = given ? 1 : lab_times("HD_WORKFLOW_UNLUCKY", 40);
    for (uint64_t i = 1; i <= n; i++) run_world(given ? strtoull(given, NULL, 0) : i);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(
        w4_lost_instances_go_on_from_what_is_stored, folder_make, folder_remove) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
