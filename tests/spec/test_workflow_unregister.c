/* test_workflow_unregister.c -- actions that are taken back: hd_action_unregister. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static int calls;
static bool leaves; /* the function takes its own action back */

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    if (leaves) hd_action_unregister(engine, "count");
    return hd_action_return(a, hd_int(NULL, ++calls + *(int *)ctx));
}

static void add(hd_engine *e, int *ctx) {
    hd_action_spec spec = { .name = "count", .fn = count, .ctx = ctx, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static void register_actions(hd_engine *e) {
    static int none;
    calls = 0;
    leaves = false;
    add(e, &none);
}

static void register_two_steps(void) {
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'count','into':['name','x']},"
                   "{'id':'b','kind':'ACTION','action':'count','into':['name','x']},"
                   "{'id':'out','kind':'RETURN','value':['name','x']}",
                   "['in','a'],['a','b'],['b','out']");
}

/* Steps of an action that nobody serves wait; the next registration takes them up, as it is. */
static void steps_wait_until_it_is_registered_again(void **state) {
    int other = 1000;
    register_two_steps();
    hd_action_unregister(engine, "count");
    hd_action_unregister(engine, "count"); /* it is gone */
    hd_action_unregister(engine, "none");
    start("w", "{}");
    pump();
    assert_int_equal(calls, 0);
    assert_int_equal(stats_now().ready, 1);
    add(engine, &other);
    assert_result("1002");
}

/* Its own function may take it back: the attempt counts, the next step waits. */
static void an_action_takes_itself_back(void **state) {
    int other = 1000;
    register_two_steps();
    leaves = true;
    start("w", "{}");
    pump();
    assert_int_equal(calls, 1);
    leaves = false;
    add(engine, &other);
    assert_result("1002");
}

/* On a thread, or to be ended later by the program: the next registration may be of another kind. */
static void another_kind_may_follow(void **state) {
    static int ctx = 5;
    register_two_steps();
    hd_action_unregister(engine, "count");
    hd_action_spec spec = { .name = "count", .fn = count, .ctx = &ctx };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_action_unregister(engine, "count");
    spec.later = true;
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    start("w", "{}");
    assert_result("7");
}

/* The same with an action within a transaction. */
static void an_action_in_a_transaction_takes_itself_back(void **state) {
    static int none;
    hd_action_unregister(engine, "count");
    hd_action_spec spec = { .name = "count", .fn = count, .ctx = &none, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    register_two_steps();
    leaves = true;
    start("w", "{}");
    pump();
    assert_int_equal(calls, 1);
    leaves = false;
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    assert_result("2");
}

static hd_status start_twice(hd_tx *tx, void *ctx) {
    char made[HD_INSTANCE_ID_SIZE];
    hd_start_options options = { .key = "one" };
    hd_status *second = ctx;
    hd_status first = hd_workflow_start_in(engine, tx, "w", hd_object(), &options, made);
    *second = hd_workflow_start_in(engine, tx, "w", hd_object(), &options, made);
    return first;
}

/* Two starts with one key in one transaction are one instance, too. */
static void a_key_is_known_within_the_transaction(void **state) {
    hd_status second = HD_OK;
    register_two_steps();
    assert_int_equal(hd_transact(rt, start_twice, &second), HD_OK);
    assert_int_equal(second, HD_EXISTS);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(steps_wait_until_it_is_registered_again),
        IN_A_WORLD(an_action_takes_itself_back),
        IN_A_WORLD(another_kind_may_follow),
        IN_A_WORLD(an_action_in_a_transaction_takes_itself_back),
        IN_A_WORLD(a_key_is_known_within_the_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
