/* test_workflow_cost.c -- what is done is counted: it grows with the steps of a workflow, never with their square
 * (seed 004, "Scaling Comparison" and "Loop Iteration Complexity"). */
#define _GNU_SOURCE
#include "lab.h"
#include <heddle/workflow.h>
#include <heddle/workflow_build.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static lab_env *env;
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static hd_flow *flow;

static hd_status one(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_int(NULL, 1));
}

static int set_up(void **state) {
    env = lab_env_open();
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    assert_int_equal(
        hd_action_register(engine, &(hd_action_spec){ .name = "one", .fn = one, .here = true }),
        HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_flow_open(pool, "w", &flow), HD_OK);
    return 0;
}
static int tear_down(void **state) {
    hd_flow_close(flow);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    lab_env_close(env);
    return 0;
}

static void use_flow(void) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(flow, &ir, &error) || hd_workflow_register(engine, ir, NULL, &error))
        fail_msg("%s", error.message);
}

typedef struct cost {
    uint64_t steps, nodes, arrivals, allocations;
} cost;

/* Of one instance with the input n. */
static cost run(int64_t n) {
    hd_engine_stats before, after;
    hd_value result;
    char id[HD_INSTANCE_ID_SIZE];
    hd_engine_stat(engine, &before);
    uint64_t allocations = lab_env_allocations(env);
    hd_value input = hd_object_set(pool, hd_object(), "n", hd_int(pool, n));
    assert_int_equal(hd_workflow_start(engine, "w", input, NULL, id), HD_OK);
    assert_int_equal(hd_workflow_await(engine, id, pool, &result), HD_OK);
    hd_engine_stat(engine, &after);
    return (cost){ after.steps - before.steps, after.nodes - before.nodes,
                   after.arrivals - before.arrivals, lab_env_allocations(env) - allocations };
}

/* 10, 50, 100, 500 nodes: as many operations as nodes, not 100 to 250,000. */
static void a_completion_costs_the_same_among_10_and_among_500_nodes(void **state) {
    static const int sizes[] = { 10, 50, 100, 500 };
    for (int i = 0; i < 4; i++) {
        hd_flow *f = flow;
        assert_int_equal(hd_flow_open(pool, "w", &flow), HD_OK);
        hd_flow_close(f);
        hd_flow_input(flow, "n", hd_int(pool, 0));
        for (int k = 0; k < sizes[i]; k++) hd_flow_action(flow, NULL, "one", NULL);
        use_flow();
        cost c = run(0);
        assert_int_equal(c.steps, sizes[i]);
        assert_int_equal(c.nodes, sizes[i] + 2); /* ENTRY and RETURN */
        assert_int_equal(c.arrivals, sizes[i] + 1);
    }
}

/* 32 iterations of 3 actions are 96 operations, not 4,600. */
static void iterations_cost_the_same(void **state) {
    hd_flow_input(flow, "n", hd_int(pool, 0));
    hd_flow_for(flow, "i", "range(n)");
    for (int k = 0; k < 3; k++) hd_flow_action(flow, NULL, "one", NULL);
    hd_flow_end(flow);
    use_flow();
    cost few = run(32), many = run(320);
    assert_int_equal(few.steps, 96);
    assert_int_equal(few.nodes, 32 * 4 + 3); /* with the LOOP_HEAD, which is asked once more */
    assert_int_equal(many.steps, 960);
    assert_int_equal(many.nodes, 320 * 4 + 3);
}

/* The seed's figure: the head is visited once for each iteration and once more. */
static void branches_cost_the_same(void **state) {
    hd_flow_input(flow, "n", hd_int(pool, 0));
    hd_flow_each(flow, "i", "range(n)");
    hd_flow_window(flow, 16);
    hd_flow_action(flow, "r", "one", NULL);
    hd_flow_join(flow, "given", "r");
    hd_flow_return(flow, "sum(given)");
    use_flow();
    cost few = run(100), many = run(1000);
    assert_int_equal(few.steps, 100);
    assert_int_equal(many.steps, 1000);
    assert_int_equal((many.nodes - few.nodes) % 900, 0);
    assert_true(many.nodes - few.nodes <= 900 * 2);
}

/* An iteration in the steady state: what it allocates does not grow with how many there were. */
static void late_iterations_allocate_no_more_than_early_ones(void **state) {
    hd_flow_input(flow, "n", hd_int(pool, 0));
    hd_flow_do(flow, "total = 0");
    hd_flow_for(flow, "i", "range(n)");
    hd_flow_action(flow, "r", "one", NULL);
    hd_flow_do(flow, "total += r");
    hd_flow_end(flow);
    hd_flow_return(flow, "total");
    use_flow();
    (void)run(100);
    uint64_t few = run(100).allocations, more = run(1100).allocations, many = run(2100).allocations;
    assert_true(many - more <= (more - few) + (more - few) / 10 + 10);
}

static void signal_many(const char *id, const char *signal, int count) {
    for (int i = 0; i < count; i++) {
        assert_int_equal(hd_workflow_signal(engine, id, signal, hd_int(NULL, i)), HD_OK);
        (void)hd_runtime_pump(rt);
    }
}

/* Each signal that comes, and each that is taken, costs the same, however many are kept. */
static void signals_cost_the_same_however_many_are_kept(void **state) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_flow_input(flow, "n", hd_int(pool, 0));
    hd_flow_while(flow, "n == 0");
    hd_flow_wait(flow, NULL, "taken", NULL);
    hd_flow_end(flow);
    hd_flow_wait(flow, NULL, "kept", NULL);
    use_flow();
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, id), HD_OK);
    signal_many(id, "kept", 100);
    signal_many(id, "taken", 100);
    uint64_t begin = lab_env_allocations(env);
    signal_many(id, "taken", 100);
    uint64_t few = lab_env_allocations(env) - begin;
    signal_many(id, "kept", 2000);
    begin = lab_env_allocations(env);
    signal_many(id, "taken", 100);
    assert_in_range(lab_env_allocations(env) - begin, 0, few + few / 10 + 10);
    begin = lab_env_allocations(env);
    signal_many(id, "kept", 100);
    assert_in_range(lab_env_allocations(env) - begin, 0, few + few / 10 + 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static void start_sleepers(uint64_t count) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_flow_sleep(flow, "9");
    hd_flow_return(flow, "1");
    use_flow();
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, id), HD_OK);
    for (hd_engine_stats now = { 0 }; now.timers < count; hd_engine_stat(engine, &now)) {
        (void)hd_runtime_pump(rt);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
    }
}

/* The commits with which the engine stores that all of them have gone on. */
static uint64_t commits_of_waking(uint64_t count) {
    hd_engine_stats before, after;
    hd_engine_stat(engine, &before);
    lab_env_advance_ms(env, 9000);
    for (after = before; after.finished < count; hd_engine_stat(engine, &after)) {
        (void)hd_runtime_pump(rt);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
    }
    return after.commits - before.commits;
}

/* Timers that are due together are stored in groups, as steps that end together are: a commit is not as large as there
 * are timers. */
static void many_timers_share_several_commits(void **state) {
    enum { MANY = 10000, MOST = 4096 };
    start_sleepers(MANY);
    assert_in_range(commits_of_waking(MANY), (MANY + MOST - 1) / MOST, MANY / MOST + 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_completion_costs_the_same_among_10_and_among_500_nodes),
        TEST(iterations_cost_the_same),
        TEST(branches_cost_the_same),
        TEST(late_iterations_allocate_no_more_than_early_ones),
        TEST(signals_cost_the_same_however_many_are_kept),
        TEST(many_timers_share_several_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
