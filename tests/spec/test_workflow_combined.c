/* test_workflow_combined.c -- several things at once: pausing, timers, signals, cancelling, children, retries,
 * restarts. */
#define _DEFAULT_SOURCE
#include "workflow_flow.h"

static int worked, cleaned, failures;
static uint64_t token;

static hd_status work(hd_action *a, hd_value args, void *ctx) {
    worked++;
    if (failures > 0 && failures--) return hd_action_raise(a, "ValueError", "not yet");
    return hd_action_return(a, hd_int(NULL, worked));
}

static hd_status clean(hd_action *a, hd_value args, void *ctx) {
    cleaned++;
    return hd_action_return(a, hd_null());
}

static hd_status linger(hd_action *a, hd_value args, void *ctx) {
    token = hd_action_token(a);
    return HD_PENDING;
}

static void register_actions(hd_engine *e) {
    const hd_action_spec specs[] = { { .name = "work", .fn = work, .here = true },
                                     { .name = "clean", .fn = clean, .here = true },
                                     { .name = "linger", .fn = linger, .later = true } };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(hd_action_register(e, &specs[i]), HD_OK);
}

static int set_up(void **state) {
    worked = cleaned = failures = 0;
    token = 0;
    return set_up_world(state);
}

/* try: sleep; wait for a signal; finally: clean */
static void register_guarded(void) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_sleep(f, "10");
    hd_flow_wait(f, "p", "go", "100");
    hd_flow_action(f, "n", "work", NULL);
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "clean", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "[p, n]");
    register_flow(f);
}

/* Whatever falls due, and whichever engine has it: nothing happens before it is resumed, then all of it does. */
static void a_paused_instance_does_nothing_also_after_a_restart(void **state) {
    register_guarded();
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    advance(60000);
    next_engine();
    advance(60000);
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    pump();
    /* The sleep is over; the deadline of the wait counts from now on. */
    advance(99000);
    assert_string_equal(field("status"), "running");
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 7)), HD_OK);
    advance(5000);
    next_engine();
    assert_int_equal(worked, 0);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_result("[7,1]");
    assert_int_equal(cleaned, 1);
}

/* A deadline that was over while the instance was paused is over when it goes on. */
static void a_deadline_that_passed_while_paused_has_passed(void **state) {
    register_guarded();
    start("w", "{}");
    advance(10000);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    advance(200000);
    next_engine();
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_raised("TimeoutError");
    assert_int_equal(cleaned, 1);
}

/* The deadline has passed, but fires when the instance is resumed: a signal that comes before that ends the wait. One
 * that comes after it is for the next wait. */
static void a_signal_in_a_pause_comes_before_a_deadline_that_has_passed(void **state) {
    for (int restarts = 0; restarts < 2; restarts++) {
        register_guarded();
        start("w", "{}");
        advance(10000);
        assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
        advance(200000);
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 7)), HD_OK);
        if (restarts) next_engine();
        assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
        assert_result(restarts ? "[7,2]" : "[7,1]");
    }
    start("w", "{}");
    advance(10000);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    advance(200000);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    pump();
    (void)hd_workflow_signal(engine, id, "go", hd_int(NULL, 7));
    assert_raised("TimeoutError");
}

/* Cancelling ends a pause: what cleans up runs. */
static void a_paused_instance_that_is_cancelled_cleans_up(void **state) {
    hd_value result;
    register_guarded();
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(cleaned, 1);
    /* The same in an engine that has found it so. */
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    next_engine();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    next_engine();
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(cleaned, 2);
}

static void a_child_ends_while_its_parent_is_paused(void **state) {
    hd_flow *f = flow("inner");
    hd_flow_action(f, "r", "linger", NULL);
    hd_flow_return(f, "r");
    register_flow(f);
    f = flow("w");
    hd_flow_child(f, "r", "inner", NULL);
    hd_flow_action(f, "n", "work", NULL);
    hd_flow_return(f, "[r, n]");
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_attempt_return(engine, token, hd_int(NULL, 5)), HD_OK);
    pump();
    next_engine();
    assert_int_equal(worked, 0);
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_result("[5,1]");
}

/* A child that retries is cancelled with its parent, and both clean up, once, whenever that comes. */
static void cancelling_reaches_a_child_between_two_attempts(void **state) {
    hd_value result;
    hd_flow *f = flow("inner");
    hd_flow_try(f);
    hd_flow_action(f, "r", "work", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 9, .backoff_s = 60 });
    hd_flow_finally(f);
    hd_flow_sleep(f, "30");
    hd_flow_action(f, NULL, "clean", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "r");
    register_flow(f);
    f = flow("w");
    hd_flow_try(f);
    hd_flow_child(f, "r", "inner", NULL);
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "clean", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "r");
    register_flow(f);
    failures = 99;
    start("w", "{}");
    advance(10);
    assert_int_equal(worked, 1);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    next_engine();
    assert_string_equal(field("status"), "running");
    assert_int_equal(cleaned, 0);
    advance(30000);
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(cleaned, 2);
    assert_int_equal(worked, 1);
    assert_int_equal(stats_now().open, 0);
}

/* Cancelled branches still clean up when another engine takes over: the join raises CancelledError all the same. */
static void an_instance_is_cancelled_although_its_branches_end_after_a_restart(void **state) {
    static const char *const modes[] = { "all", "group", "settled", "ordered", "first" };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        hd_value result;
        hd_flow *f = flow("w");
        hd_flow_try(f);
        hd_flow_each(f, "x", "[1, 2]");
        hd_flow_try(f);
        hd_flow_wait(f, "r", "go", NULL);
        hd_flow_finally(f);
        hd_flow_sleep(f, "30");
        hd_flow_end(f);
        hd_flow_join(f, "rs", "r");
        hd_flow_mode(f, modes[i]);
        hd_flow_except(f, "Exception", "e");
        hd_flow_return(f, "'caught ' + repr(e)");
        hd_flow_end(f);
        hd_flow_return(f, "'gone on'");
        register_flow(f);
        start("w", "{}");
        pump();
        assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
        pump();
        next_engine();
        advance(30000);
        hd_status status = await(&result);
        if (status != HD_ABORTED)
            fail_msg("%s: %s, %s", modes[i], hd_status_name(status), printed(result));
    }
}

static char order[100];
static hd_status note(hd_action *a, hd_value args, void *ctx) {
    size_t length = strlen(order);
    snprintf(order + length, sizeof order - length, "%s ",
             hd_value_as_text(hd_value_index(args, 0), "?"));
    return hd_action_return(a, hd_null());
}

/* As in asyncio.gather: all branches are begun before the first failure is raised. */
static void a_branch_begins_before_what_follows_the_failure_of_another(void **state) {
    hd_action_spec spec = { .name = "note", .fn = note, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    *order = 0;
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_call(f, NULL, "bad", NULL);
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "note", "'beside'");
    hd_flow_join(f, NULL, NULL);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_action(f, NULL, "note", "'caught'");
    hd_flow_end(f);
    hd_flow_return(f, "1");
    hd_flow_function(f, "bad", NULL);
    hd_flow_raise(f, "ValueError('no')");
    register_flow(f);
    start("w", "{}");
    assert_result("1");
    assert_string_equal(order, "beside caught ");
}

/* As in asyncio.TaskGroup: a task that is cancelled, without the group, is no failure. */
static void a_child_that_is_cancelled_alone_fails_no_group(void **state) {
    hd_flow *f = flow("inner");
    hd_flow_wait(f, "r", "go", NULL);
    hd_flow_return(f, "r");
    register_flow(f);
    f = flow("w");
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_child(f, "r", "inner", NULL);
    hd_flow_branch(f);
    hd_flow_sleep(f, "30");
    hd_flow_action(f, "r", "work", NULL);
    hd_flow_join(f, "rs", "r");
    hd_flow_mode(f, "group");
    hd_flow_return(f, "[repr(r) for r in rs]");
    register_flow(f);
    start_keyed("w", "1", "{}");
    pump();
    assert_int_equal(hd_workflow_cancel(engine, "inner/w:1.3.1"), HD_OK);
    pump();
    assert_string_equal(field("status"), "running");
    next_engine();
    advance(30000);
    assert_result("[\"CancelledError()\",\"1\"]");
}

/* When the first branch ends, others have not begun yet: they count as cancelled. */
static void branches_that_were_not_begun_count_as_cancelled(void **state) {
    hd_flow *f = flow("w");
    hd_flow_each(f, "x", "range(5)");
    hd_flow_window(f, 2);
    hd_flow_action(f, "r", "work", NULL);
    hd_flow_join(f, "rs", "x");
    hd_flow_mode(f, "first");
    hd_flow_return(f, "[repr(r) for r in rs]");
    register_flow(f);
    start("w", "{}");
    assert_result("[\"0\",\"CancelledError()\",\"CancelledError()\",\"CancelledError()\","
                  "\"CancelledError()\"]");
    assert_int_equal(worked, 1);
}

/* Of two branches one fails while the other waits within try and finally: that one cleans up first. */
static void a_branch_that_fails_waits_for_the_clean_up_of_the_other(void **state) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "1000");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "clean", NULL);
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "work", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_mode(f, "group");
    hd_flow_except(f, "ExceptionGroup", "e");
    hd_flow_action(f, "n", "work", NULL);
    hd_flow_return(f, "n");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "clean", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
    failures = 1;
    start("w", "{}");
    assert_result("2");
    assert_int_equal(cleaned, 2);
}

/* It failed in the fourth iteration; run again there, it goes on with that one, and what was done stays done. */
static void a_rerun_goes_on_in_the_iteration_that_failed(void **state) {
    hd_value result;
    hd_flow *f = flow("w");
    hd_flow_do(f, "seen = []");
    hd_flow_for(f, "i", "range(6)");
    hd_flow_do(f, "x = i * 10");
    hd_flow_id(f, "step");
    hd_flow_action(f, "r", "work", NULL);
    hd_flow_do(f, "seen.append([x, r])");
    hd_flow_if(f, "i == 3 and r < 5");
    hd_flow_raise(f, "ValueError('odd')");
    hd_flow_end(f);
    hd_flow_end(f);
    hd_flow_return(f, "[len(seen), seen[-1]]");
    register_flow(f);
    start("w", "{}");
    assert_int_equal(await(&result), HD_FAILED);
    assert_int_equal(worked, 4);
    next_engine();
    assert_int_equal(hd_workflow_rerun(engine, id, "step"), HD_OK);
    assert_result("[7,[50,7]]"); /* r is 5 now: it goes on to the end */
    assert_int_equal(worked, 7);
    assert_int_equal(hd_workflow_rerun(engine, id, "step"), HD_USAGE); /* it is done */
}

/* One key for two workflows, a schedule and a pause: never more than one at once, and nobody is left behind. */
static void a_limit_holds_across_schedules_and_pauses(void **state) {
    hd_flow *f = flow("w");
    hd_flow_action(f, "r", "linger", NULL);
    hd_flow_limit(f, "'k'", 1);
    hd_flow_return(f, "r");
    register_flow(f);
    hd_error error = { 0 };
    hd_schedule s = { .name = "s", .workflow = "w", .every_s = 60, .overlap = HD_OVERLAP_ALLOW };
    if (hd_schedule_put(engine, &s, &error)) fail_msg("%s", error.message);
    start_keyed("w", "first", "{}");
    for (int i = 0; i < 3; i++) advance(60000);
    assert_int_equal(stats_now().open, 4);
    assert_int_equal(stats_now().running, 1);
    assert_int_equal(hd_schedule_remove(engine, "s"), HD_OK);
    assert_int_equal(hd_workflow_pause(engine, "w/first"), HD_OK);
    pump();
    next_engine(); /* what ran is lost with the engine; the paused one gives its place up */
    assert_int_equal(stats_now().running, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hd_attempt_return(engine, token, hd_int(NULL, i)), HD_OK);
        pump();
    }
    assert_int_equal(stats_now().open, 1);
    assert_int_equal(stats_now().running, 0);
    assert_int_equal(hd_workflow_resume(engine, "w/first"), HD_OK);
    pump();
    assert_int_equal(hd_attempt_return(engine, token, hd_int(NULL, 9)), HD_OK);
    pump();
    assert_int_equal(stats_now().open, 0);
}

/* The wall clock is put back and forward: a sleep takes as long as the clock says, and nothing is lost. */
static void a_clock_that_jumps_ends_a_sleep_early_or_late(void **state) {
    const hd_env *of = lab_env_of(env);
    register_guarded();
    start("w", "{}");
    pump();
    uint64_t begin = of->wall_ms(of->ctx);
    lab_env_set_wall_ms(env, begin - 3600000);
    advance(20000);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 1)), HD_OK);
    pump();
    assert_string_equal(field("status"), "running");
    lab_env_set_wall_ms(env, begin + 10000);
    pump();
    assert_result("[1,1]");
    start("w", "{}");
    pump();
    lab_env_set_wall_ms(env, begin + 86400000);
    pump();
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 2)), HD_OK);
    assert_result("[2,2]");
}

/* A signal, a pause, a resume and a cancellation left together are done in that order, once. */
static void messages_keep_their_order(void **state) {
    hd_value result;
    register_guarded();
    start("w", "{}");
    advance(10000);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 3)), HD_OK);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(worked, 0);
    assert_int_equal(cleaned, 1);
}

/* ---- actions that call the engine */

static const char *deed;
static char other[HD_INSTANCE_ID_SIZE];

static hd_status meddle(hd_action *a, hd_value args, void *ctx) {
    hd_status status = HD_OK;
    worked++;
    if (!strcmp(deed, "cancel")) status = hd_workflow_cancel(engine, id);
    if (!strcmp(deed, "pause")) status = hd_workflow_pause(engine, id);
    if (!strcmp(deed, "signal")) status = hd_workflow_signal(engine, id, "go", hd_int(NULL, 4));
    if (!strcmp(deed, "start")) {
        hd_value result;
        hd_start_options o = { .key = "nested" };
        deed = "";
        status = hd_workflow_start(engine, "w", hd_object(), &o, other);
        if (!status) status = hd_workflow_signal(engine, other, "go", hd_int(NULL, 5));
        if (!status) status = hd_workflow_await(engine, other, hd_action_pool(a), &result);
        return status ? status : hd_action_return(a, result);
    }
    if (!strcmp(deed, "unregister")) hd_action_unregister(engine, "meddle");
    if (!strcmp(deed, "rerun")) status = hd_workflow_rerun(engine, id, NULL);
    if (!strcmp(deed, "remove")) status = hd_workflow_remove(engine, id);
    if (status) return hd_action_raise(a, "RuntimeError", "%s", hd_status_name(status));
    return hd_action_return(a, hd_int(NULL, 1));
}

static void register_meddling(void) {
    hd_action_spec spec = { .name = "meddle", .fn = meddle, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_action(f, "a", "meddle", NULL);
    hd_flow_except(f, "RuntimeError", "e");
    hd_flow_do(f, "a = str(e)");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "clean", NULL);
    hd_flow_end(f);
    hd_flow_wait(f, "b", "go", NULL);
    hd_flow_return(f, "[a, b]");
    register_flow(f);
}

static void begin_meddling(const char *what) {
    deed = what;
    start("w", "{}");
    pump();
}

static void end_meddling(const char *expected) {
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 2)), HD_OK);
    assert_result(expected);
}

/* An action on the runtime's thread may do to its own instance what any caller may. */
static void an_action_may_call_the_engine_about_its_own_instance(void **state) {
    hd_value result;
    register_meddling();
    begin_meddling("cancel");
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(cleaned, 1);
    begin_meddling("pause");
    assert_string_equal(field("status"), "paused");
    assert_int_equal(cleaned, 1);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    end_meddling("[1,2]");
    begin_meddling("signal");
    assert_result("[1,4]");
    begin_meddling("start");
    end_meddling("[[1,5],2]");
    begin_meddling("rerun");
    end_meddling("[\"HD_USAGE\",2]");
    begin_meddling("remove");
    end_meddling("[\"HD_USAGE\",2]");
    begin_meddling("unregister");
    end_meddling("[1,2]");
    begin_meddling("");
    assert_string_equal(field("status"), "running");
    assert_int_equal(stats_now().ready, 1); /* nobody does it any more */
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(await(&result), HD_ABORTED);
}

/* ---- callbacks that go on */

static int ends;

static void begin_next(const char *of, hd_status status, hd_value result, void *ctx) {
    ends++;
    if (ends < 5) {
        start("w", "{}");
        assert_int_equal(hd_workflow_then(engine, id, begin_next, NULL), HD_OK);
    }
    if (ends == 3) assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
}

static void the_end_of_one_may_begin_the_next(void **state) {
    ends = 0;
    hd_flow *f = flow("w");
    hd_flow_action(f, "a", "work", NULL);
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "a");
    register_flow(f);
    start("w", "{}");
    assert_int_equal(hd_workflow_then(engine, id, begin_next, NULL), HD_OK);
    for (int i = 0; i < 20; i++) advance(1000);
    assert_int_equal(ends, 5);
    assert_int_equal(stats_now().open, 0);
}

/* ---- running again */

/* A parent whose child failed is run again at the CHILD: a new child is begun, the old one stays as it is. */
static void a_rerun_at_a_child_begins_a_new_one(void **state) {
    hd_value result;
    hd_flow *f = flow("inner");
    hd_flow_action(f, "r", "work", NULL);
    hd_flow_return(f, "r");
    register_flow(f);
    f = flow("w");
    hd_flow_do(f, "n = 10");
    hd_flow_id(f, "child");
    hd_flow_child(f, "r", "inner", NULL);
    hd_flow_return(f, "n + r");
    register_flow(f);
    failures = 2;
    start("w", "{}");
    assert_int_equal(await(&result), HD_FAILED);
    assert_int_equal(hd_workflow_rerun(engine, id, "child"), HD_OK);
    assert_int_equal(await(&result), HD_FAILED);
    next_engine();
    assert_int_equal(hd_workflow_rerun(engine, id, "child"), HD_OK);
    next_engine();
    assert_result("13");
    assert_int_equal(worked, 3);
    /* Cancelled and run again from the beginning, it is as new. */
    start_keyed("w", "again", "{}");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_USAGE);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    assert_string_equal(field("status"), "paused"); /* its child has not begun, and does not */
    assert_int_equal(worked, 3);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_result("14");
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_paused_instance_does_nothing_also_after_a_restart),
        IN_A_WORLD(a_deadline_that_passed_while_paused_has_passed),
        IN_A_WORLD(a_signal_in_a_pause_comes_before_a_deadline_that_has_passed),
        IN_A_WORLD(a_paused_instance_that_is_cancelled_cleans_up),
        IN_A_WORLD(a_child_ends_while_its_parent_is_paused),
        IN_A_WORLD(cancelling_reaches_a_child_between_two_attempts),
        IN_A_WORLD(an_instance_is_cancelled_although_its_branches_end_after_a_restart),
        IN_A_WORLD(a_branch_begins_before_what_follows_the_failure_of_another),
        IN_A_WORLD(a_child_that_is_cancelled_alone_fails_no_group),
        IN_A_WORLD(branches_that_were_not_begun_count_as_cancelled),
        IN_A_WORLD(a_branch_that_fails_waits_for_the_clean_up_of_the_other),
        IN_A_WORLD(a_rerun_goes_on_in_the_iteration_that_failed),
        IN_A_WORLD(a_limit_holds_across_schedules_and_pauses),
        IN_A_WORLD(a_clock_that_jumps_ends_a_sleep_early_or_late),
        IN_A_WORLD(messages_keep_their_order),
        IN_A_WORLD(an_action_may_call_the_engine_about_its_own_instance),
        IN_A_WORLD(the_end_of_one_may_begin_the_next),
        IN_A_WORLD(a_rerun_at_a_child_begins_a_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
