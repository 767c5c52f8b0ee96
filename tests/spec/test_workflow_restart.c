/* test_workflow_restart.c -- what an instance is told stays told when its engine is closed and another takes it up. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static int calls;

static hd_status twice(hd_action *a, hd_value args, void *ctx) {
    calls++;
    return hd_action_return(a, hd_int(NULL, 2 * hd_value_as_int(hd_value_index(args, 0), 0)));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "twice", .fn = twice, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static int set_up(void **state) {
    calls = 0;
    return set_up_world(state);
}

static void restart(void) {
    pump();
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
}

static void a_paused_instance_stays_paused(void **state) {
    register_nodes("w",
                   "{'id':'s','kind':'SLEEP','seconds':5},{'id':'a','kind':'ACTION','action':"
                   "'twice','args':[4],'into':['name','x']},{'id':'out','kind':'RETURN','value':['"
                   "name','x']}",
                   "['in','s'],['s','a'],['a','out']");
    start("w", "{}");
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    restart();
    advance(60000);
    assert_int_equal(calls, 0);
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    assert_result("8");
}

static const char *name_of(const char *instance) {
    static char name[HD_INSTANCE_ID_SIZE + 20];
    snprintf(name, sizeof name, "workflow/%s", instance);
    return name;
}

static int told;

static void note_stored(hd_status status, void *ctx) { told += status == HD_OK; }

static void pump_until_told(int times) {
    for (int i = 0; i < 10000 && told < times; i++) {
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        pump();
    }
    assert_int_equal(told, times);
}

/* hd_workflow_stored: not before the commits have their verdicts, and with what the engine has done. */
static void who_asks_hears_that_it_is_stored(void **state) {
    hd_store_stats stats;
    told = 0;
    register_nodes("w", "{'id':'a','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    start("w", "{}");
    assert_int_equal(hd_workflow_stored(engine, note_stored, NULL), HD_OK);
    assert_int_equal(hd_workflow_stored(engine, note_stored, NULL), HD_OK);
    assert_int_equal(told, 0);
    pump_until_told(2);
    hd_runtime_store_stats(rt, &stats);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    assert_int_equal(hd_workflow_stored(engine, note_stored, NULL), HD_OK);
    pump_until_told(3);
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_stored(engine, note_stored, NULL), HD_OK); /* nothing was said */
    pump_until_told(4);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(hd_workflow_stored(engine, note_stored, NULL), HD_OK);
    restart(); /* closing stores it */
    assert_int_equal(told, 5);
    assert_string_equal(field("status"), "cancelled");
}

/* Its clean-up waits: the engine that takes it up knows why it runs. */
static void a_cancelled_instance_ends_as_cancelled(void **state) {
    hd_value result;
    register_nodes("w",
                   "{'id':'a','kind':'WAIT','signal':'go'},{'id':'h','kind':'HANDLER','clauses':[{}"
                   "]},{'id':'clean','kind':'SLEEP','seconds':5},{'id':'r','kind':'RAISE'},{'id':"
                   "'out','kind':'RETURN'}",
                   "['in','a'],['a','out'],['a','h','EXCEPT'],['h','clean','GUARD',0],['clean','r'"
                   "]");
    start("w", "{}");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    restart();
    assert_true(hd_value_as_bool(hd_value_at(document(), "cancelling"), false));
    assert_int_equal(await(&result), HD_ABORTED);
    assert_string_equal(field("status"), "cancelled");
    assert_false(hd_value_exists(hd_value_at(document(), "cancelling")));
}

/* Its clean-up waits, in a function that the first one calls, and another engine takes it up: `failed_at` is where the
 * exception was raised, not where the clean-up raised it again. */
static void a_failure_keeps_its_place_through_the_clean_up(void **state) {
    hd_value result;
    register_ir(
        "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},"
        "{'id':'c','kind':'CALL','function':'half'},{'id':'h','kind':'HANDLER','clauses':[{}]},"
        "{'id':'clean','kind':'SLEEP','seconds':5},{'id':'r','kind':'RAISE'},"
        "{'id':'out','kind':'RETURN'}],'edges':[['in','c'],['c','out'],['c','h','EXCEPT'],"
        "['h','clean','GUARD',0],['clean','r']]},"
        "{'name':'half','nodes':[{'id':'in','kind':'ENTRY'},"
        "{'id':'bad','kind':'CALC','do':[['expr',['/',1,0]]],'at':'flow.c:7'},"
        "{'id':'out','kind':'RET'}],'edges':[['in','bad'],['bad','out']]}]}");
    start("w", "{}");
    restart();
    assert_string_equal(field("status"), "running");
    assert_int_equal(await(&result), HD_FAILED);
    assert_false(hd_value_exists(hd_value_at(result, "raised")));
    assert_string_equal(printed(hd_value_at(document(), "failed_at")),
                        "{\"at\":\"flow.c:7\",\"function\":\"half\",\"node\":\"bad\"}");
}

/* The stack does not grow with the elements: none of them can be unpacked. */
static void elements_that_do_not_unpack_fail_one_by_one(void **state) {
    register_nodes("w",
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[300000]],'into':['tuple',['"
                   "name','a'],['name','b']]},{'id':'c','kind':'CALC'},{'id':'j','kind':'BARRIER',"
                   "'mode':'settled','into':['name','all']},{'id':'out','kind':'RETURN','value':['"
                   "call','len',[['name','all']]]}",
                   "['in','f'],['f','c','ELEM'],['c','j','JOIN'],['j','out']");
    start("w", "{}");
    assert_result("300000");
}

/* A gather right behind a loop over a list: the walk has changed nothing of the frame but that the loop has ended. */
static void a_loop_that_has_ended_before_a_gather_is_over(void **state) {
    register_nodes("w",
                   "{'id':'for','kind':'LOOP_HEAD','over':['list',1,2],'into':['name','v']},"
                   "{'id':'s','kind':'SLEEP','seconds':1},{'id':'f','kind':'FAN_HEAD'},"
                   "{'id':'b','kind':'SLEEP','seconds':1},{'id':'j','kind':'BARRIER'},"
                   "{'id':'out','kind':'RETURN','value':['name','v']}",
                   "['in','for'],['for','s','CONTINUE'],['s','for','BACK'],['for','f','BREAK'],"
                   "['f','b','ELEM'],['b','j','JOIN'],['j','out']");
    start("w", "{}");
    pump();
    advance(1000);
    advance(1000);
    restart();
    assert_string_equal(field("status"), "running");
    assert_false(hd_value_exists(hd_value_at(hd_value_at(document(), "loops"), "for")));
    assert_result("2");
}

static hd_status endless(hd_action *a, hd_value args, void *ctx) {
    calls++;
    return HD_PENDING;
}

/* Closing an engine loses no worker: a long step may be begun again by any number of engines. */
static void a_step_is_not_lost_when_its_engine_is_closed(void **state) {
    hd_action_spec spec = { .name = "endless", .fn = endless, .later = true };
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'endless'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    start("w", "{}");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hd_action_register(engine, &spec), HD_OK);
        pump();
        restart();
    }
    assert_int_equal(calls, 20);
    assert_string_equal(field("status"), "running");
    assert_false(
        hd_value_exists(hd_value_index(hd_value_at(hd_value_at(document(), "open"), "0"), 3)));
}

/* A child's priority is added to its parent's, also beyond what a program may give. */
static void a_child_of_the_highest_priority_begins(void **state) {
    hd_start_options o = { .key = "k", .priority = 1000 };
    hd_value v;
    register_nodes("inner", "{'id':'out','kind':'RETURN','value':1}", "['in','out']");
    register_nodes("outer",
                   "{'id':'c','kind':'CHILD','workflow':'inner','priority':1000,'into':['name','r']"
                   "},{'id':'out','kind':'RETURN','value':['name','r']}",
                   "['in','c'],['c','out']");
    assert_int_equal(hd_workflow_start(engine, "outer", hd_object(), &o, id), HD_OK);
    assert_result("1");
    assert_int_equal(hd_workflow_state(engine, "inner/outer:k.0.1", pool, &v), HD_OK);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "priority"), 0), 2000);
}

/* W4: of several branches that wait for a signal the one that began first gets it, also after a restart. */
static void branches_get_signals_in_their_order(void **state) {
    register_nodes("w",
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[12]],'into':['name','i']},"
                   "{'id':'s','kind':'WAIT','signal':'go','into':['name','r']},{'id':'j','kind':"
                   "'BARRIER','give':['name','r'],'into':['name','all']},{'id':'out','kind':"
                   "'RETURN','value':['name','all']}",
                   "['in','f'],['f','s','ELEM'],['s','j','JOIN'],['j','out']");
    start("w", "{}");
    for (int i = 0; i < 12; i++) {
        if (i % 5 == 0) restart();
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, i)), HD_OK);
    }
    assert_result("[0,1,2,3,4,5,6,7,8,9,10,11]");
}

/* Signals that nothing waits for yet are taken in the order in which they came, also after a restart. */
static void kept_signals_come_in_their_order(void **state) {
    register_nodes("w",
                   "{'id':'s','kind':'SLEEP','seconds':5},"
                   "{'id':'c','kind':'CALC','do':[['assign',['list'],['name','l']]]},"
                   "{'id':'h','kind':'LOOP_HEAD','over':['call','range',[24]],'into':['name','i']},"
                   "{'id':'g','kind':'WAIT','signal':'go','into':['name','r']},"
                   "{'id':'n','kind':'CALC','do':[['expr',['method',['name','l'],'append',[['name',"
                   "'r']]]]]},{'id':'z','kind':'SLEEP','seconds':1},"
                   "{'id':'out','kind':'RETURN','value':['name','l']}",
                   "['in','s'],['s','c'],['c','h'],['h','g','CONTINUE'],['g','n'],['n','z'],"
                   "['z','h','BACK'],['h','out','BREAK']");
    start("w", "{}");
    for (int i = 0; i < 24; i++) {
        if (i % 7 == 3) restart();
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, i)), HD_OK);
        if (i % 3 == 0) pump();
        if (i > 18) advance(1000);
    }
    for (int i = 0; i < 30; i++) {
        if (i % 4 == 1) restart();
        advance(1000);
    }
    assert_result("[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23]");
}

/* Twelve timers are due together. They were begun from the last branch to the first. */
static void register_timers(void) {
    register_nodes("w",
                   "{'id':'l','kind':'CALC','do':[['assign',['list'],['name','l']]]},"
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[12]],'into':['name','i']},"
                   "{'id':'s','kind':'SLEEP','seconds':['-',12,['name','i']]},"
                   "{'id':'t','kind':'SLEEP','seconds':['+',1,['name','i']]},"
                   "{'id':'n','kind':'CALC','do':[['expr',['method',['name','l'],'append',[['name',"
                   "'i']]]]]},{'id':'j','kind':'BARRIER'},"
                   "{'id':'out','kind':'RETURN','value':['name','l']}",
                   "['in','l'],['l','f'],['f','s','ELEM'],['s','t'],['t','n'],['n','j','JOIN'],"
                   "['j','out']");
}

/* W4: timers that are due together fire in the order in which they were begun, also after a restart. */
static void timers_fire_in_their_order(void **state) {
    register_timers();
    for (int restarts = 0; restarts < 3; restarts++) {
        start("w", "{}");
        for (int second = 0; second < 12; second++) {
            advance(1000);
            if (restarts == 1 && second == 11) restart();
            if (restarts == 2) restart();
        }
        advance(1000);
        assert_result("[11,10,9,8,7,6,5,4,3,2,1,0]");
    }
}

/* Twelve children, in each of which a timer ends a child of its own. All timers are due together, and were begun from
 * the last to the first. */
static void register_children(void) {
    register_ir(
        "{'heddle':1,'name':'leaf','inputs':[{'name':'n'}],'functions':[{'name':'run','params':['n'"
        "],'nodes':[{'id':'in','kind':'ENTRY'},{'id':'s','kind':'SLEEP','seconds':['-',12,['name',"
        "'n']]},{'id':'t','kind':'SLEEP','seconds':['+',1,['name','n']]},{'id':'out','kind':"
        "'RETURN'}],'edges':[['in','s'],['s','t'],['t','out']]}]}");
    register_ir(
        "{'heddle':1,'name':'kid','inputs':[{'name':'n'}],'functions':[{'name':'run','params':['n'"
        "],'nodes':[{'id':'in','kind':'ENTRY'},{'id':'c','kind':'CHILD','workflow':'leaf','args':{"
        "'n':['name','n']}},{'id':'out','kind':'RETURN'}],'edges':[['in','c'],['c','out']]}]}");
    register_nodes("w",
                   "{'id':'l','kind':'CALC','do':[['assign',['list'],['name','l']]]},"
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[12]],'into':['name','i']},"
                   "{'id':'c','kind':'CHILD','workflow':'kid','args':{'n':['name','i']}},"
                   "{'id':'n','kind':'CALC','do':[['expr',['method',['name','l'],'append',[['name',"
                   "'i']]]]]},{'id':'j','kind':'BARRIER'},"
                   "{'id':'out','kind':'RETURN','value':['name','l']}",
                   "['in','l'],['l','f'],['f','c','ELEM'],['c','n'],['n','j','JOIN'],['j','out']");
}

/* W4: children whose timers are due together end in the order in which the timers were begun, also after a restart. */
static void children_end_in_their_order(void **state) {
    register_children();
    for (int restarts = 0; restarts < 3; restarts++) {
        start("w", "{}");
        for (int second = 0; second < 12; second++) {
            advance(1000);
            if (restarts == 1 && second == 11) restart();
            if (restarts == 2) restart();
        }
        advance(1000);
        assert_result("[11,10,9,8,7,6,5,4,3,2,1,0]");
    }
}

static hd_status never(hd_action *a, hd_value args, void *ctx) { return HD_PENDING; }

/* W4: attempts whose time is over together fail in the order in which they were begun, also after a restart. */
static void timeouts_come_in_their_order(void **state) {
    hd_action_spec spec = { .name = "never", .fn = never, .later = true };
    register_nodes("w",
                   "{'id':'l','kind':'CALC','do':[['assign',['list'],['name','l']]]},"
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[12]],'into':['name','i']},"
                   "{'id':'a','kind':'ACTION','action':'never','timeout':2},"
                   "{'id':'h','kind':'HANDLER','clauses':[{'classes':['TimeoutError']}]},"
                   "{'id':'n','kind':'CALC','do':[['expr',['method',['name','l'],'append',[['name',"
                   "'i']]]]]},{'id':'m','kind':'MERGE'},{'id':'j','kind':'BARRIER'},"
                   "{'id':'out','kind':'RETURN','value':['name','l']}",
                   "['in','l'],['l','f'],['f','a','ELEM'],['a','m'],['a','h','EXCEPT'],"
                   "['h','n','GUARD',0],['n','m'],['m','j','JOIN'],['j','out']");
    for (int restarts = 0; restarts < 2; restarts++) {
        assert_int_equal(hd_action_register(engine, &spec), HD_OK);
        start("w", "{}");
        pump();
        if (restarts) restart();
        assert_int_equal(hd_action_register(engine, &spec), HD_OK);
        pump();
        advance(2000);
        assert_result("[0,1,2,3,4,5,6,7,8,9,10,11]");
    }
}

/* Objects have rising numbers, and most are gone: loading costs what is there. */
static void numbers_of_objects_cost_nothing(void **state) {
    register_nodes("w",
                   "{'id':'c','kind':'CALC','do':[['assign',['list',7],['name','x']]]},{'id':'s',"
                   "'kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN','value':['name','x']}",
                   "['in','c'],['c','s'],['s','out']");
    start("w", "{}");
    pump();
    hd_value doc = hd_object_set(pool, document(), "objects", parse("{'4000000':[7]}"));
    hd_engine_close(engine);
    doc = hd_object_set(pool, doc, "vars", parse("{'x':{'$$ref':4000000}}"));
    assert_int_equal(hd_write(rt, hd_cell_of(rt, "main", HD_SCOPE_SPACE, name_of(id), NULL), doc),
                     HD_OK);
    size_t before = lab_env_bytes(env);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    pump();
    assert_true(lab_env_bytes(env) < before + 1000000);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    assert_result("[7]");
}

/* Loading 20,000 branches takes a step for each, not for each pair. */
static void many_branches_are_loaded(void **state) {
    register_nodes("w",
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[100]],'into':['name','i']},"
                   "{'id':'g','kind':'FAN_HEAD','over':['call','range',[200]],'into':['name','k']},"
                   "{'id':'s','kind':'WAIT','signal':'go'},{'id':'j','kind':'BARRIER'},{'id':'m',"
                   "'kind':'BARRIER'},{'id':'out','kind':'RETURN'}",
                   "['in','f'],['f','g','ELEM'],['g','s','ELEM'],['s','j','JOIN'],['j','m','JOIN'],"
                   "['m','out']");
    start("w", "{}");
    pump();
    hd_value before = document();
    restart();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_value_count(hd_value_at(before, "open")), 100 * 200 + 101);
    assert_string_equal(field("status"), "cancelled");
}

/* What cannot be is said, and no instance of it runs. */
static void two_strands_of_one_number_are_refused(void **state) {
    register_nodes("w", "{'id':'s','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','s'],['s','out']");
    start("w", "{}");
    pump();
    hd_value doc = document(), open = hd_value_at(doc, "open");
    hd_engine_close(engine);
    open = hd_object_set(pool, open, "00", hd_value_at(open, "0"));
    doc = hd_object_set(pool, doc, "open", open);
    assert_int_equal(hd_write(rt, hd_cell_of(rt, "main", HD_SCOPE_SPACE, name_of(id), NULL), doc),
                     HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    pump();
    assert_string_equal(field("status"), "stalled");
    assert_non_null(strstr(printed(hd_value_at(document(), "error")), "the same number"));
}

static void close_at_the_end(const char *which, hd_status status, hd_value result, void *ctx) {
    hd_engine_close(engine);
}
static void close_when_stored(hd_status status, void *ctx) { hd_engine_close(engine); }

/* What the engine calls cannot close it, also not while it is being closed. */
static void an_engine_is_not_closed_by_what_it_calls(void **state) {
    register_nodes("w", "{'id':'out','kind':'RETURN','value':5}", "['in','out']");
    start("w", "{}");
    assert_int_equal(hd_workflow_then(engine, id, close_at_the_end, NULL), HD_OK);
    assert_int_equal(hd_workflow_stored(engine, close_when_stored, NULL), HD_OK);
    pump();
    assert_int_equal(lab_env_logged(env, "hd_engine_close"), 2);
    start("w", "{}");
    assert_int_equal(hd_workflow_stored(engine, close_when_stored, NULL), HD_OK);
    hd_engine_close(engine);
    assert_int_equal(lab_env_logged(env, "hd_engine_close"), 3);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    assert_result("5");
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_paused_instance_stays_paused),
        IN_A_WORLD(who_asks_hears_that_it_is_stored),
        IN_A_WORLD(a_cancelled_instance_ends_as_cancelled),
        IN_A_WORLD(a_failure_keeps_its_place_through_the_clean_up),
        IN_A_WORLD(elements_that_do_not_unpack_fail_one_by_one),
        IN_A_WORLD(a_loop_that_has_ended_before_a_gather_is_over),
        IN_A_WORLD(a_step_is_not_lost_when_its_engine_is_closed),
        IN_A_WORLD(a_child_of_the_highest_priority_begins),
        IN_A_WORLD(branches_get_signals_in_their_order),
        IN_A_WORLD(kept_signals_come_in_their_order),
        IN_A_WORLD(timers_fire_in_their_order),
        IN_A_WORLD(children_end_in_their_order),
        IN_A_WORLD(timeouts_come_in_their_order),
        IN_A_WORLD(numbers_of_objects_cost_nothing),
        IN_A_WORLD(many_branches_are_loaded),
        IN_A_WORLD(two_strands_of_one_number_are_refused),
        IN_A_WORLD(an_engine_is_not_closed_by_what_it_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
