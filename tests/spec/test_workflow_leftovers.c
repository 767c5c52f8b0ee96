/* test_workflow_leftovers.c -- branches that no strand waits for any more, because a gather has raised the failure of
 * another branch. They go on until the first function has ended; then they are cancelled, as asyncio.run cancels tasks,
 * and the instance is over when they have cleaned up. */
#define _DEFAULT_SOURCE
#include "workflow_flow.h"

static char said[200];

static hd_status say(hd_action *a, hd_value args, void *ctx) {
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s ", hd_value_as_text(hd_value_index(args, 0), "?"));
    return hd_action_return(a, hd_null());
}

static hd_status fail_now(hd_action *a, hd_value args, void *ctx) {
    return hd_action_raise(a, "ValueError", "no");
}

static void register_actions(hd_engine *e) {
    const hd_action_spec specs[] = { { .name = "say", .fn = say, .here = true },
                                     { .name = "fail", .fn = fail_now, .here = true } };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(hd_action_register(e, &specs[i]), HD_OK);
}

static int set_up(void **state) {
    said[0] = 0;
    return set_up_world(state);
}

/* gather(leftover(), fail()), where leftover is: try: sleep(1000) finally: say("clean"); sleep(5); say("ed") */
static void leave_one(hd_flow *f) {
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "1000");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "say", "'clean'");
    hd_flow_sleep(f, "5");
    hd_flow_action(f, NULL, "say", "'ed'");
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_join(f, NULL, NULL);
}

/* The failure is handled, and the instance returns. */
static void register_handled(void) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    leave_one(f);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_do(f, "x = [1]");
    hd_flow_end(f);
    hd_flow_return(f, "x");
    register_flow(f);
}

static void register_unhandled(void) {
    hd_flow *f = flow("w");
    leave_one(f);
    hd_flow_return(f, "0");
    register_flow(f);
}

static void assert_ending(const char *ending) {
    assert_string_equal(field("ending"), ending);
    assert_string_equal(field("status"), "running");
    assert_string_equal(said, "clean ");
}

static void assert_over(const char *status) {
    assert_string_equal(field("status"), status);
    assert_string_equal(said, "clean ed ");
    assert_false(hd_value_exists(hd_value_at(document(), "ending")));
    assert_false(hd_value_exists(hd_value_at(document(), "fans")));
}

static void a_leftover_cleans_up_before_the_instance_is_done(void **state) {
    register_handled();
    start("w", "{}");
    pump();
    assert_ending("done");
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_USAGE);
    advance(4000);
    assert_ending("done");
    advance(1000);
    assert_over("done");
    assert_result("[1]");
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    pump();
    advance(5000);
    assert_string_equal(said, "clean ed clean ed ");
    assert_result("[1]");
}

static void a_leftover_cleans_up_before_the_instance_has_failed(void **state) {
    register_unhandled();
    start("w", "{}");
    pump();
    assert_ending("failed");
    advance(5000);
    assert_over("failed");
    assert_raised("ValueError");
    assert_true(hd_value_exists(hd_value_at(document(), "failed_at")));
}

/* The document has what the first function has ended with. */
static void another_engine_goes_on_with_the_clean_up(void **state) {
    register_handled();
    start("w", "{}");
    pump();
    next_engine();
    assert_ending("done");
    advance(4000);
    next_engine();
    advance(1000);
    assert_over("done");
    assert_result("[1]");
    register_unhandled();
    said[0] = 0;
    start("w", "{}");
    pump();
    next_engine();
    advance(5000);
    assert_over("failed");
    assert_raised("ValueError");
}

static void cancelling_changes_nothing_about_the_end(void **state) {
    register_handled();
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_ending("done");
    next_engine();
    advance(5000);
    assert_over("done");
    assert_result("[1]");
}

static void the_clean_up_can_be_paused(void **state) {
    register_handled();
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    advance(10000);
    assert_string_equal(said, "clean ");
    next_engine();
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    pump();
    assert_over("done");
    assert_result("[1]");
}

/* What a leftover raises or returns after it was cancelled is dropped. */
static void what_a_leftover_raises_is_dropped(void **state) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "1000");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "1000");
    hd_flow_except(f, "CancelledError", NULL);
    hd_flow_action(f, NULL, "say", "'swallowed'");
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "7");
    register_flow(f);
    start("w", "{}");
    assert_result("7");
    assert_string_equal(said, "swallowed ");
}

/* As in CPython, while the first function of a cancelled instance cleans up, its leftovers go on. */
static void an_outside_cancel_leaves_a_leftover_until_the_end(void **state) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    leave_one(f);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_end(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "100");
    hd_flow_finally(f);
    hd_flow_sleep(f, "10");
    hd_flow_action(f, NULL, "say", "'first'");
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    next_engine();
    assert_string_equal(said, "");
    advance(10000);
    assert_string_equal(said, "first clean ");
    assert_string_equal(field("ending"), "cancelled");
    advance(5000);
    assert_string_equal(said, "first clean ed ");
    assert_string_equal(field("status"), "cancelled");
}

/* The exception leaves the function in which the gather stands; the branch goes on. */
static void a_leftover_outlives_its_function(void **state) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_call(f, NULL, "helper", NULL);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_end(f);
    hd_flow_sleep(f, "20");
    hd_flow_return(f, "3");
    hd_flow_function(f, "helper", NULL);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_sleep(f, "10");
    hd_flow_action(f, NULL, "say", "'on'");
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_return(f, "0");
    register_flow(f);
    start("w", "{}");
    pump();
    next_engine();
    advance(10000);
    assert_string_equal(said, "on ");
    assert_false(hd_value_count(hd_value_at(document(), "fans")));
    assert_false(hd_value_count(hd_value_at(document(), "calls")));
    advance(10000);
    assert_result("3");
}

/* The inner gather leaves a branch behind; the branch with that gather ends, then the outer gather, then the first
 * function. An engine loads the instance in each of these states. */
static void a_leftover_outlives_the_branch_around_it(void **state) {
    hd_flow *f = flow("w");
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_try(f);
    leave_one(f);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_sleep(f, "3");
    hd_flow_join(f, NULL, NULL);
    hd_flow_sleep(f, "3");
    hd_flow_return(f, "4");
    register_flow(f);
    start("w", "{}");
    pump();
    next_engine();
    advance(3000);
    next_engine();
    assert_string_equal(said, "");
    advance(3000);
    assert_ending("done");
    next_engine();
    advance(5000);
    assert_over("done");
    assert_result("4");
}

/* What cannot be stored stalls its instance, whose document has the strands and the leftover of before. */
static void a_rerun_of_a_stalled_instance_has_no_strands_of_the_last_run(void **state) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_sleep(f, "3");
    hd_flow_do(f, "y = ()");
    hd_flow_for(f, "i", "range(250)");
    hd_flow_do(f, "y = (y,)");
    hd_flow_end(f);
    hd_flow_sleep(f, "3");
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_end(f);
    hd_flow_sleep(f, "1");
    hd_flow_action(f, NULL, "say", "'on'");
    hd_flow_sleep(f, "1000");
    hd_flow_return(f, "7");
    register_flow(f);
    start("w", "{}");
    pump();
    advance(1000);
    assert_string_equal(said, "on ");
    advance(2000);
    assert_string_equal(field("status"), "stalled");
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    pump();
    next_engine();
    assert_string_equal(field("status"), "running");
    assert_int_equal(hd_value_count(hd_value_at(document(), "open")), 2);
    advance(1000);
    assert_string_equal(said, "on on ");
    assert_int_equal(hd_value_count(hd_value_at(document(), "open")), 2);
}

/* An instance that has failed keeps its variables, for a rerun at a node. */
static void a_rerun_from_the_beginning_has_no_variables_of_the_last_run(void **state) {
    hd_flow *f = flow("w");
    hd_flow_wait(f, "a", "s", NULL);
    hd_flow_if(f, "a == 1");
    hd_flow_do(f, "dd = {'a': 1}; v = dd.items(); y = 3");
    hd_flow_else(f);
    hd_flow_do(f, "lst = [5]");
    hd_flow_end(f);
    hd_flow_wait(f, "b", "s", NULL);
    hd_flow_if(f, "b == 0");
    hd_flow_raise(f, "ValueError('f')");
    hd_flow_end(f);
    hd_flow_return(f, "[a, b, lst, y]");
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_signal(engine, id, "s", hd_int(pool, 1)), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "s", hd_int(pool, 0)), HD_OK);
    pump();
    assert_raised("ValueError");
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    pump();
    next_engine();
    assert_int_equal(hd_workflow_signal(engine, id, "s", hd_int(pool, 2)), HD_OK);
    pump();
    next_engine();
    assert_int_equal(hd_workflow_signal(engine, id, "s", hd_int(pool, 3)), HD_OK);
    pump();
    assert_raised("UnboundLocalError"); /* y */
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_leftover_cleans_up_before_the_instance_is_done),
        IN_A_WORLD(a_leftover_cleans_up_before_the_instance_has_failed),
        IN_A_WORLD(another_engine_goes_on_with_the_clean_up),
        IN_A_WORLD(cancelling_changes_nothing_about_the_end),
        IN_A_WORLD(the_clean_up_can_be_paused),
        IN_A_WORLD(what_a_leftover_raises_is_dropped),
        IN_A_WORLD(an_outside_cancel_leaves_a_leftover_until_the_end),
        IN_A_WORLD(a_leftover_outlives_its_function),
        IN_A_WORLD(a_leftover_outlives_the_branch_around_it),
        IN_A_WORLD(a_rerun_of_a_stalled_instance_has_no_strands_of_the_last_run),
        IN_A_WORLD(a_rerun_from_the_beginning_has_no_variables_of_the_last_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
