/* test_workflow_rerun.c -- instances that are over run again: from the beginning, or from a node. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static int calls[3];
static bool broken;
static char ids[2000];

static void note_id(hd_action *a) {
    size_t n = strlen(ids);
    snprintf(ids + n, sizeof ids - n, "%s ", hd_action_id(a));
}
static hd_status first(hd_action *a, hd_value args, void *ctx) {
    calls[0]++;
    note_id(a);
    return hd_action_return(a, hd_int(NULL, 5));
}
static hd_status second(hd_action *a, hd_value args, void *ctx) {
    calls[1]++;
    note_id(a);
    if (broken) return hd_action_raise(a, "ValueError", "broken");
    return hd_action_return(a, hd_int(NULL, 100 + hd_value_as_int(hd_value_index(args, 0), 0)));
}

static void register_actions(hd_engine *e) {
    hd_action_spec all[] = { { .name = "first", .fn = first, .here = true },
                             { .name = "second", .fn = second, .here = true } };
    memset(calls, 0, sizeof calls);
    ids[0] = 0;
    broken = true;
    for (size_t i = 0; i < 2; i++) assert_int_equal(hd_action_register(e, &all[i]), HD_OK);
}

static void register_two(void) {
    register_nodes(
        "w",
        "{'id':'a','kind':'ACTION','action':'first','into':['name','x']},"
        "{'id':'l','kind':'CALC','do':[['assign',['list',['name','x']],['name','all']]]},"
        "{'id':'b','kind':'ACTION','action':'second','args':[['name','x']],'into':['name','y']},"
        "{'id':'c','kind':'CALC','do':[['expr',['method',['name','all'],'append',[['name','y']]]]]}"
        ","
        "{'id':'out','kind':'RETURN','value':['name','all']}",
        "['in','a'],['a','l'],['l','b'],['b','c'],['c','out']");
}

static void a_failed_instance_goes_on_from_the_node_that_failed(void **state) {
    register_two();
    start("w", "{}");
    assert_raised("ValueError");
    broken = false;
    assert_int_equal(hd_workflow_rerun(engine, id, "b"), HD_OK);
    pump();
    assert_result("[5,105]");
    assert_int_equal(calls[0], 1);
    assert_int_equal(calls[1], 2);
    assert_string_equal(field("status"), "done");
    assert_false(hd_value_exists(hd_value_at(document(), "error")));
}

static void the_steps_of_a_rerun_have_new_ids(void **state) {
    register_two();
    start_keyed("w", "k", "{}");
    assert_raised("ValueError");
    assert_int_equal(hd_workflow_rerun(engine, id, "b"), HD_OK);
    assert_raised("ValueError");
    assert_int_equal(hd_workflow_rerun(engine, id, "b"), HD_OK);
    assert_raised("ValueError");
    assert_string_equal(ids, "w/k/0.1 w/k/0.2 w/k/2.1 w/k/3.1 ");
}

static void an_instance_runs_again_from_the_beginning(void **state) {
    register_two();
    broken = false;
    start("w", "{}");
    assert_result("[5,105]");
    assert_int_equal(hd_workflow_rerun(engine, id, "b"), HD_USAGE); /* its variables are gone */
    assert_non_null(strstr(hd_runtime_error(rt)->message, "done"));
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    pump();
    assert_result("[5,105]");
    assert_int_equal(calls[0], 2);
}

static void a_rerun_that_cannot_be_is_refused(void **state) {
    register_nodes(
        "w",
        "{'id':'fan','kind':'FAN_HEAD','over':['call','range',[2]],'into':['name','i']},"
        "{'id':'a','kind':'ACTION','action':'second','args':[['name','i']]},{'id':'all','kind':'"
        "BARRIER'},"
        "{'id':'loop','kind':'LOOP_HEAD','over':['call','range',[2]],'into':['name','i']},"
        "{'id':'body','kind':'ACTION','action':'first'},{'id':'out','kind':'RETURN'}",
        "['in','fan'],['fan','a','ELEM'],['a','all','JOIN'],['all','loop'],['loop','body','"
        "CONTINUE'],"
        "['body','loop','BACK'],['loop','out','BREAK']");
    start("w", "{}");
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_USAGE); /* not over */
    assert_raised("ValueError");
    pump();
    assert_int_equal(hd_workflow_rerun(engine, id, "nothing"), HD_USAGE);
    assert_int_equal(hd_workflow_rerun(engine, id, "a"), HD_USAGE);
    assert_int_equal(hd_workflow_rerun(engine, id, "all"), HD_USAGE);
    assert_int_equal(hd_workflow_rerun(engine, id, "body"), HD_USAGE);
    assert_int_equal(hd_workflow_rerun(engine, "w/none", "a"), HD_NOT_FOUND);
    assert_string_equal(field("status"), "failed");
    broken = false;
    assert_int_equal(hd_workflow_rerun(engine, id, "loop"), HD_OK);
    pump();
    assert_result("null");
    assert_int_equal(calls[0], 2);
}

static void a_loop_goes_on_where_it_failed(void **state) {
    register_nodes(
        "w",
        "{'id':'s','kind':'CALC','do':[['assign',0,['name','sum']]]},"
        "{'id':'loop','kind':'LOOP_HEAD','over':['call','range',[4]],'into':['name','i']},"
        "{'id':'b','kind':'BRANCH','when':[['cmp',['name','i'],'==',2]]},"
        "{'id':'t','kind':'ACTION','action':'second','args':[['name','i']],'into':['name','x']},"
        "{'id':'f','kind':'ACTION','action':'first','into':['name','x']},{'id':'m','kind':'MERGE'},"
        "{'id':'add','kind':'CALC','do':[['assign',['+',['name','sum'],['name','x']],['name','sum']"
        "]]},"
        "{'id':'out','kind':'RETURN','value':['name','sum']}",
        "['in','s'],['s','loop'],['loop','b','CONTINUE'],['b','t','GUARD',0],['b','f','GUARD',1],['"
        "t','m'],['f','m'],"
        "['m','add'],['add','loop','BACK'],['loop','out','BREAK']");
    start("w", "{}");
    assert_raised("ValueError");
    broken = false;
    assert_int_equal(hd_workflow_rerun(engine, id, "t"), HD_OK);
    pump();
    assert_result("117"); /* 5 + 5 + 102 + 5 */
}

/* An action that fails, and behind it a step that waits for a signal, which has come already. */
static void register_waiting(void) {
    register_nodes("w",
                   "{'id':'s','kind':'SLEEP','seconds':1},"
                   "{'id':'b','kind':'ACTION','action':'second','args':[1]},"
                   "{'id':'w','kind':'WAIT','signal':'go','timeout':10,'into':['name','x']},"
                   "{'id':'out','kind':'RETURN','value':['name','x']}",
                   "['in','s'],['s','b'],['b','w'],['w','out']");
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 7)), HD_OK);
    advance(1000);
    assert_raised("ValueError");
    pump();
    broken = false;
}

/* The signal was received, and no step had taken it. */
static void a_rerun_at_a_node_has_the_signals_that_were_not_taken(void **state) {
    register_waiting();
    assert_int_equal(hd_workflow_rerun(engine, id, "b"), HD_OK);
    assert_result("7");
    assert_false(hd_value_exists(hd_value_at(document(), "signals")));
}

static void a_rerun_at_the_step_that_waits_has_its_signal_at_once(void **state) {
    register_waiting();
    assert_int_equal(hd_workflow_rerun(engine, id, "w"), HD_OK);
    assert_result("7");
}

/* The signal is also gone from the document: an engine that loads the instance does not find it. */
static void a_rerun_from_the_beginning_has_no_signal(void **state) {
    register_waiting();
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    pump();
    assert_false(hd_value_exists(hd_value_at(document(), "signals")));
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    broken = false;
    advance(1000);
    advance(10000);
    assert_raised("TimeoutError");
}

/* A signal that comes before the new run is stored belongs to it; those of the last run are gone. */
static void a_new_run_has_the_signals_that_come_to_it(void **state) {
    register_waiting();
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 8)), HD_OK);
    pump();
    hd_value kept = hd_value_at(document(), "signals");
    assert_int_equal(hd_value_count(kept), 1);
    hd_iter it = hd_iter_of(kept);
    assert_true(hd_iter_next(&it));
    assert_int_equal(hd_value_as_int(hd_value_index(it.value, 1), 0), 8);
}

/* Signals that no step has taken are dropped when the instance is done, as its variables are. */
static void an_instance_that_is_done_has_no_signals(void **state) {
    register_waiting();
    assert_int_equal(hd_workflow_rerun(engine, id, "b"), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 8)), HD_OK);
    assert_result("7");
    pump();
    assert_false(hd_value_exists(hd_value_at(document(), "signals")));
}

static hd_cell signals(void) { return hd_cell_child(rt, hd_workflow_cell(engine, id), "signals"); }

/* What no engine has written is no list of signals. */
static void damaged_signals_are_told(void **state) {
    static const char *const damaged[] = {
        "5",
        "'x'",
        "{'x':['go',1]}",
        "{'+0000001':['go',1]}",
        "{'-0000001':['go',1]}",
        "{'0x000001':['go',1]}",
        "{' 0000001':['go',1]}",
        "{'0000000A':['go',1]}",
        "{'00000000':['go',1]}",
        "{'ffffffff':['go',1]}",
        "{'000000001':['go',1]}",
    };
    register_waiting();
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        assert_int_equal(hd_write(rt, signals(), parse(damaged[i])), HD_OK);
        assert_int_equal(hd_workflow_rerun(engine, id, "w"), HD_CORRUPT);
        assert_non_null(strstr(hd_runtime_error(rt)->message, "its signals cannot be read"));
    }
    assert_int_equal(hd_write(rt, signals(), parse("{'00000001':['go',1]}")), HD_OK);
    assert_int_equal(hd_workflow_rerun(engine, id, "w"), HD_OK);
    assert_result("1");
}

/* Until decision 0630 they were a list. */
static void signals_in_a_list_are_read(void **state) {
    register_nodes("w",
                   "{'id':'v','kind':'WAIT','signal':'go','timeout':9,'into':['name','x']},"
                   "{'id':'s','kind':'SLEEP','seconds':1},"
                   "{'id':'w','kind':'WAIT','signal':'go','timeout':9,'into':['name','y']},"
                   "{'id':'out','kind':'RETURN','value':['list',['name','x'],['name','y']]}",
                   "['in','v'],['v','s'],['s','w'],['w','out']");
    start("w", "{}");
    pump();
    hd_cell at = signals();
    hd_engine_close(engine);
    assert_int_equal(hd_write(rt, at, parse("[['go',1],['other',2],['go',3],['go',4]]")), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 5)), HD_OK);
    pump();
    assert_string_equal(printed(hd_value_at(document(), "signals")),
                        "{\"00000002\":[\"other\",2],\"00000003\":[\"go\",3],"
                        "\"00000004\":[\"go\",4],\"00000005\":[\"go\",5]}");
    advance(1000);
    assert_result("[1,3]");
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_failed_instance_goes_on_from_the_node_that_failed),
        IN_A_WORLD(the_steps_of_a_rerun_have_new_ids),
        IN_A_WORLD(an_instance_runs_again_from_the_beginning),
        IN_A_WORLD(a_rerun_that_cannot_be_is_refused),
        IN_A_WORLD(a_loop_goes_on_where_it_failed),
        IN_A_WORLD(a_rerun_at_a_node_has_the_signals_that_were_not_taken),
        IN_A_WORLD(a_rerun_at_the_step_that_waits_has_its_signal_at_once),
        IN_A_WORLD(a_rerun_from_the_beginning_has_no_signal),
        IN_A_WORLD(a_new_run_has_the_signals_that_come_to_it),
        IN_A_WORLD(an_instance_that_is_done_has_no_signals),
        IN_A_WORLD(damaged_signals_are_told),
        IN_A_WORLD(signals_in_a_list_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
