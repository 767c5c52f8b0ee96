/* test_workflow_cancel.c -- clean-up that waits, and clean-up that is cancelled in its turn: what it begins is no more
 * cancelled than anything else, and the next cancellation is raised in it. An engine loads the instance in between. */
#define _DEFAULT_SOURCE
#include "workflow_flow.h"

static char said[200];
static int failures, calls;

static hd_status say(hd_action *a, hd_value args, void *ctx) {
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s ", hd_value_as_text(hd_value_index(args, 0), "?"));
    return hd_action_return(a, hd_value_index(args, 0));
}

static hd_status fail_now(hd_action *a, hd_value args, void *ctx) {
    failures++;
    return hd_action_raise(a, "ValueError", "no");
}

static hd_status wait_for_ever(hd_action *a, hd_value args, void *ctx) {
    calls++;
    return HD_PENDING;
}

static void register_actions(hd_engine *e) {
    const hd_action_spec specs[] = { { .name = "say", .fn = say, .here = true },
                                     { .name = "fail", .fn = fail_now, .here = true },
                                     { .name = "for_ever", .fn = wait_for_ever, .later = true } };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(hd_action_register(e, &specs[i]), HD_OK);
}

static int set_up(void **state) {
    said[0] = 0;
    failures = calls = 0;
    return set_up_world(state);
}

/* An instance of "w" begins, and is cancelled 1 s later. */
static void start_and_cancel(void) {
    start("w", "{}");
    pump();
    advance(1000);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
}

static void assert_over(const char *status, const char *words) {
    assert_string_equal(field("status"), status);
    assert_string_equal(said, words);
    assert_int_equal(stats_now().open, 0);
    assert_int_equal(stats_now().timers, 0);
}

/* What stands behind it is the first of two branches; the other one is a sleep. */
static void limit_begin(hd_flow *f) {
    hd_flow_gather(f);
    hd_flow_branch(f);
}
static void limit_end(hd_flow *f, const char *seconds, const char *into) {
    hd_flow_do(f, "r = 1");
    hd_flow_branch(f);
    hd_flow_sleep(f, seconds);
    hd_flow_do(f, "r = 2");
    hd_flow_join(f, into, "r");
    hd_flow_mode(f, "first");
}

/* try: sleep(1000) finally: */
static void clean_up_begin(hd_flow *f) {
    hd_flow_try(f);
    hd_flow_sleep(f, "1000");
    hd_flow_finally(f);
}

static void clean_up_waits_with_a_limit(void **state) {
    hd_flow *f = flow("w");
    clean_up_begin(f);
    limit_begin(f);
    hd_flow_action(f, NULL, "say", "'release'");
    hd_flow_sleep(f, "3");
    limit_end(f, "5", "both");
    hd_flow_action(f, NULL, "say", "str(both[0])");
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
    start_and_cancel();
    next_engine_after(0);
    advance(3000);
    assert_over("cancelled", "release 1 ");
}

static void a_limit_in_clean_up_cancels_what_takes_longer(void **state) {
    hd_flow *f = flow("w");
    clean_up_begin(f);
    limit_begin(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "100");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "say", "'late'");
    hd_flow_end(f);
    limit_end(f, "5", "both");
    hd_flow_action(f, NULL, "say", "str(both[1])");
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
    start_and_cancel();
    next_engine_after(0);
    advance(5000);
    assert_over("cancelled", "late 2 ");
}

static void register_child(const char *last_action) {
    hd_flow *f = flow("child");
    clean_up_begin(f);
    hd_flow_action(f, NULL, "say", "'clean'");
    hd_flow_sleep(f, "50");
    hd_flow_action(f, NULL, last_action, "'ed'");
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
}

static void clean_up_begins_a_child(void **state) {
    hd_flow *f = flow("undo");
    hd_flow_sleep(f, "3");
    hd_flow_action(f, NULL, "say", "'undone'");
    hd_flow_return(f, "'x'");
    register_flow(f);
    f = flow("w");
    clean_up_begin(f);
    hd_flow_child(f, "x", "undo", NULL);
    hd_flow_action(f, NULL, "say", "'after ' + x");
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
    start_and_cancel();
    next_engine_after(0);
    assert_int_equal(stats_now().open, 2);
    advance(3000);
    assert_over("cancelled", "undone after x ");
}

/* As what a function raises that is awaited. */
static void what_the_clean_up_of_a_child_raises_is_raised_in_its_parent(void **state) {
    register_child("fail");
    hd_flow *f = flow("w");
    hd_flow_child(f, NULL, "child", NULL);
    hd_flow_return(f, "0");
    register_flow(f);
    start_and_cancel();
    next_engine_after(0);
    advance(50000);
    assert_over("failed", "clean ");
    assert_raised("ValueError");
}

static void a_step_in_clean_up_is_retried(void **state) {
    hd_flow *f = flow("w");
    clean_up_begin(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 3, .backoff_s = 1 });
    hd_flow_end(f);
    hd_flow_return(f, "0");
    register_flow(f);
    start_and_cancel();
    next_engine_after(0);
    advance(1000);
    advance(2000);
    assert_int_equal(failures, 3);
    assert_over("failed", "");
}

static void cancelling_again_from_outside_does_not_cut_clean_up_short(void **state) {
    register_child("say");
    hd_flow *f = flow("w");
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_child(f, NULL, "child", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_return(f, "0");
    register_flow(f);
    start_and_cancel();
    next_engine_after(0);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    advance(49000);
    assert_string_equal(said, "clean ");
    advance(1000);
    assert_over("cancelled", "clean ed ");
}

/* As in CPython 3.11 a wait_for that is cancelled while it waits for a task that it has cancelled leaves that
 * behind. */
static void a_limit_that_is_cancelled_again_leaves_its_branch_behind(void **state) {
    hd_flow *f = flow("w");
    limit_begin(f);
    limit_begin(f);
    clean_up_begin(f);
    hd_flow_sleep(f, "50");
    hd_flow_action(f, NULL, "say", "'cleaned'");
    hd_flow_end(f);
    limit_end(f, "2", NULL);
    limit_end(f, "5", NULL);
    hd_flow_action(f, NULL, "say", "'on'");
    hd_flow_sleep(f, "100");
    hd_flow_return(f, "7");
    register_flow(f);
    start("w", "{}");
    pump();
    advance(2000);
    next_engine_after(0);
    advance(3000);
    assert_string_equal(said, "on ");
    next_engine_after(0);
    advance(47000);
    assert_string_equal(said, "on cleaned ");
    advance(100000);
    assert_over("done", "on cleaned ");
    assert_result("7");
}

static void a_step_whose_limit_is_over_is_not_begun_by_the_next_engine(void **state) {
    hd_flow *f = flow("w");
    limit_begin(f);
    hd_flow_action(f, NULL, "for_ever", NULL);
    limit_end(f, "5", "both");
    hd_flow_return(f, "both[1]");
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(calls, 1);
    next_engine_after(4000);
    assert_int_equal(calls, 2);
    next_engine_after(2000);
    assert_int_equal(calls, 2);
    assert_result("2");
}

/* Two blocks with time limits around each other, and this node in the inner one. Each block gives what its own branches
 * have given or raised. */
static void register_blocks(const char *node, const char *inner, const char *outer) {
    char nodes[2000];
    snprintf(nodes, sizeof nodes,
             "{'id':'f1','kind':'FAN_HEAD','here':1},{'id':'f2','kind':'FAN_HEAD','here':1},%s,"
             "{'id':'s2','kind':'SLEEP','seconds':%s},{'id':'n2','kind':'CALC','do':[['assign',2,['"
             "name','r']]]},"
             "{'id':'j2','kind':'BARRIER','mode':'first','give':['name','r'],'into':['name','r']},"
             "{'id':'s1','kind':'SLEEP','seconds':%s},{'id':'n1','kind':'CALC','do':[['assign',1,['"
             "name','r']]]},"
             "{'id':'j1','kind':'BARRIER','mode':'first','give':['name','r'],'into':['name','r']},"
             "{'id':'out','kind':'RETURN','value':['call','repr',[['name','r']]]}",
             node, inner, outer);
    register_nodes("w", nodes,
                   "['in','f1'],['f1','f2','ELEM'],['f2','x','ELEM'],['x','j2','JOIN'],"
                   "['f2','s2','ELEM',1],['s2','n2'],['n2','j2','JOIN'],['j2','j1','JOIN'],"
                   "['f1','s1','ELEM',1],['s1','n1'],['n1','j1','JOIN'],['j1','out']");
}

static void run_blocks(const char *inner, const char *outer, const char *result) {
    char quoted[200];
    register_child("say");
    register_blocks("{'id':'x','kind':'CHILD','workflow':'child','into':['name','r']}", inner,
                    outer);
    start("w", "{}");
    pump();
    advance(2000);
    next_engine_after(0);
    advance(1000);
    assert_string_equal(said, "clean ");
    advance(2000);
    snprintf(quoted, sizeof quoted, "\"%s\"", result);
    assert_result(quoted);
    assert_over("done", "clean ");
}

/* The child cleans up, and is cancelled again. What the inner limit has asked for is not all: its sleep counts as
 * cancelled, as asyncio.timeout does not raise TimeoutError then. */
static void the_outer_limit_interrupts_what_the_inner_one_has_cancelled(void **state) {
    run_blocks("2", "5", "[[CancelledError(), CancelledError()], 1]");
}

static void the_inner_limit_interrupts_what_the_outer_one_has_cancelled(void **state) {
    run_blocks("5", "2", "[[CancelledError(), CancelledError()], 1]");
}

/* Cancelled once, the workflow cleans up in a block with a time limit. The limit is the only one that has cancelled the
 * block, so its sleep counts as over: asyncio.timeout raises TimeoutError then. */
static void a_block_in_clean_up_has_a_limit_of_its_own(void **state) {
    register_nodes(
        "w",
        "{'id':'x','kind':'SLEEP','seconds':1000},{'id':'h','kind':'HANDLER','clauses':[{'as':'e'}]"
        "},"
        "{'id':'f','kind':'FAN_HEAD','here':1},{'id':'y','kind':'SLEEP','seconds':100},"
        "{'id':'m','kind':'CALC','do':[['assign',1,['name','r']]]},"
        "{'id':'s','kind':'SLEEP','seconds':5},"
        "{'id':'n','kind':'CALC','do':[['assign',2,['name','r']]]},"
        "{'id':'j','kind':'BARRIER','mode':'first','give':['name','r'],'into':['name','both']},"
        "{'id':'a','kind':'ACTION','action':'say','args':[['call','repr',[['name','both']]]]},"
        "{'id':'raise','kind':'RAISE','value':['name','e']},{'id':'out','kind':'RETURN'}",
        "['in','x'],['x','out'],['x','h','EXCEPT'],['h','f','GUARD'],['f','y','ELEM'],['y','m'],"
        "['m','j','JOIN'],['f','s','ELEM',1],['s','n'],['n','j','JOIN'],['j','a'],['a','raise']");
    start_and_cancel();
    next_engine_after(0);
    advance(5000);
    assert_over("cancelled", "[CancelledError(), 2] ");
}

/* try: for_ever() finally: wait("go"), say("left"). The signal came before the step was cancelled. */
static void clean_up_takes_a_signal_that_is_there(void **state) {
    hd_flow *f = flow("w");
    hd_flow_try(f);
    hd_flow_action(f, NULL, "for_ever", NULL);
    hd_flow_finally(f);
    hd_flow_wait(f, "s", "go", NULL);
    hd_flow_action(f, NULL, "say", "s");
    hd_flow_end(f);
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_signal(engine, id, "go", parse("'left'")), HD_OK);
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_over("cancelled", "left ");
    assert_int_equal(stats_now().running, 0);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(clean_up_waits_with_a_limit),
        IN_A_WORLD(a_limit_in_clean_up_cancels_what_takes_longer),
        IN_A_WORLD(clean_up_takes_a_signal_that_is_there),
        IN_A_WORLD(clean_up_begins_a_child),
        IN_A_WORLD(what_the_clean_up_of_a_child_raises_is_raised_in_its_parent),
        IN_A_WORLD(a_step_in_clean_up_is_retried),
        IN_A_WORLD(cancelling_again_from_outside_does_not_cut_clean_up_short),
        IN_A_WORLD(a_limit_that_is_cancelled_again_leaves_its_branch_behind),
        IN_A_WORLD(a_step_whose_limit_is_over_is_not_begun_by_the_next_engine),
        IN_A_WORLD(the_outer_limit_interrupts_what_the_inner_one_has_cancelled),
        IN_A_WORLD(the_inner_limit_interrupts_what_the_outer_one_has_cancelled),
        IN_A_WORLD(a_block_in_clean_up_has_a_limit_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
