/* test_workflow_nomem.c -- any allocation may fail: a call says HD_NOMEM, nothing leaks, and an instance that is in the
 * store ends with its result once there is memory again (W4). */
#include "random_flow.h"
#include "times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *where; /* the store: NULL in memory */

typedef struct world {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
} world;

static hd_status open_world(world *w, lab_env *env) {
    hd_options options = { .env = lab_env_of(env) };
    *w = (world){ 0 };
    hd_status status = hd_open(where, &options, &w->rt, NULL);
    if (!status) status = hd_engine_open(w->rt, NULL, &w->engine, NULL);
    if (!status) status = hd_pool_open(hd_runtime_heap(w->rt), &w->pool);
    if (!status) status = random_flow_actions(w->engine, true);
    return status;
}

static void close_world(world *w) {
    if (w->pool) hd_pool_close(w->pool);
    if (w->rt) (void)hd_close(w->rt);
}

static hd_status run_one(world *w, uint64_t seed, char out[200]) {
    hd_value ir, result;
    char id[HD_INSTANCE_ID_SIZE];
    hd_status status = random_flow(w->pool, "w", seed, &ir, NULL);
    if (!status) status = hd_workflow_register(w->engine, ir, NULL, NULL);
    if (!status)
        status =
            hd_workflow_start(w->engine, "w", hd_object(), &(hd_start_options){ .key = "k" }, id);
    if (status == HD_EXISTS) status = HD_OK;
    if (!status) status = hd_workflow_await(w->engine, "w/k", w->pool, &result);
    if (status) return status;
    const char *text = hd_json_print(w->pool, result, HD_JSON_COMPACT, NULL);
    if (!text) return HD_NOMEM;
    snprintf(out, 200, "%s", text);
    return HD_OK;
}

/* Allocation n and all after it fail for one life; the next life has memory. */
static bool fail_from(uint64_t n, uint64_t seed, const char *expected, bool once) {
    lab_env *env = lab_env_open();
    world w;
    char result[200] = "";
    if (once) lab_env_fail_at(env, n);
    else lab_env_fail_from(env, n);
    hd_status status = open_world(&w, env);
    if (!status) status = run_one(&w, seed, result);
    bool failed = lab_env_failed(env);
    lab_env_fail_from(env, 0);
    close_world(&w);
    lab_env_close(env); /* complains about what was not freed */
    if (!status) assert_string_equal(result, expected);
    return failed;
}

static void check_seed(uint64_t seed, bool once) {
    lab_env *env = lab_env_open();
    world w;
    char expected[200];
    where = NULL;
    assert_int_equal(open_world(&w, env), HD_OK);
    assert_int_equal(run_one(&w, seed, expected), HD_OK);
    close_world(&w);
    lab_env_close(env);
    for (uint64_t n = 1; fail_from(n, seed, expected, once); n += 1 + n / 300) {}
}

static void every_allocation_may_be_the_first_to_fail(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= lab_times("HD_NOMEM_WORKFLOWS", 4); seed++)
        check_seed(seed, false);
}

static void one_allocation_may_fail_and_the_next_succeed(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= lab_times("HD_NOMEM_WORKFLOWS", 4); seed++)
        check_seed(seed + 4, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_be_the_first_to_fail),
        cmocka_unit_test(one_allocation_may_fail_and_the_next_succeed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
