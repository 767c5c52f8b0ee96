/* test_workflow_busy.c -- actions on threads that return late: a thread is free when its action has returned, and what
 * an action has returned reaches its step. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

#include <sched.h>
#include <stdatomic.h>

static atomic_bool may_return, begun, starved;

static hd_status stuck(hd_action *a, hd_value args, void *ctx) {
    atomic_store(&begun, true);
    while (!atomic_load(&may_return)) sched_yield();
    return hd_action_return(a, hd_null());
}

static hd_status quick(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_null());
}

static hd_status starve(hd_action *a, hd_value args, void *ctx) {
    lab_env_fail_from(env, 1);
    atomic_store(&starved, true);
    return HD_OK;
}

static void register_actions(hd_engine *e) {
    const hd_action_spec specs[] = { { .name = "stuck", .fn = stuck },
                                     { .name = "quick", .fn = quick },
                                     { .name = "starve", .fn = starve } };
    for (size_t i = 0; i < 3; i++) assert_int_equal(hd_action_register(e, &specs[i]), HD_OK);
}

/* An engine with one thread. */
static int set_up(void **state) {
    hd_engine_options one = { .threads = 1 };
    atomic_store(&may_return, false);
    atomic_store(&begun, false);
    atomic_store(&starved, false);
    set_up_world(state);
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, &one, &engine, NULL), HD_OK);
    register_actions(engine);
    return 0;
}

static void run_action(const char *action, const char *options) {
    char nodes[300];
    snprintf(nodes, sizeof nodes,
             "{'id':'a','kind':'ACTION','action':'%s'%s},{'id':'out','kind':'RETURN','value':5}",
             action, options);
    register_nodes(action, nodes, "['in','a'],['a','out']");
    start(action, "{}");
    pump();
}

/* The thread goes on with an attempt that is over: the next step waits for it, and its time does not run meanwhile. */
static void a_step_is_claimed_when_a_thread_is_free(void **state) {
    run_action("stuck", ",'timeout':1");
    while (!atomic_load(&begun)) sched_yield();
    advance(1001);
    assert_raised("TimeoutError");
    run_action("quick", ",'timeout':1");
    advance(5000);
    assert_int_equal(stats_now().ready, 1);
    atomic_store(&may_return, true);
    PUMP_UNTIL(rt, !stats_now().open); /* the clock stands still while the thread is at it */
    assert_result("5");
}

/* That the action has returned is told without memory. */
static void an_action_that_returns_without_memory_is_heard_of(void **state) {
    run_action("starve", "");
    while (!atomic_load(&starved) || !lab_env_failed(env)) sched_yield();
    for (int i = 0; i < 1000; i++) sched_yield();
    lab_env_fail_from(env, 0);
    PUMP_UNTIL(rt, !stats_now().open);
    assert_raised("MemoryError");
}

static atomic_bool is_paused, seen_paused;

static void note_pause(bool begins, void *ctx) { atomic_store(&is_paused, begins); }

/* As an action in a language with a lock around its interpreter, it ends when the lock is let go. */
static hd_status locked(hd_action *a, hd_value args, void *ctx) {
    atomic_store(&begun, true);
    for (int i = 0; i < 2000000 && !atomic_load(&is_paused); i++) sched_yield();
    atomic_store(&seen_paused, atomic_load(&is_paused));
    return hd_action_return(a, hd_null());
}

/* base.h, hd_pause_fn: closing an engine waits for its threads. */
static void a_close_tells_that_it_waits_for_threads(void **state) {
    hd_env pausing = *lab_env_of(env);
    hd_options options = { .env = &pausing };
    hd_engine_options one = { .threads = 1 };
    hd_action_spec spec = { .name = "locked", .fn = locked };
    pausing.pause = note_pause;
    close_store();
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_engine_open(rt, &one, &engine, NULL), HD_OK);
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    run_action("locked", "");
    while (!atomic_load(&begun)) sched_yield();
    hd_engine_close(engine);
    assert_true(atomic_load(&seen_paused));
    assert_false(atomic_load(&is_paused));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_claimed_when_a_thread_is_free),
        TEST(an_action_that_returns_without_memory_is_heard_of),
        TEST(a_close_tells_that_it_waits_for_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
