/* test_workflow_order.c -- the order in which strands run: one goes on until it waits, then the next that is ready, as
 * tasks of asyncio do (docs/IR.md). Each branch appends to the list `l`, which all of them share. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static hd_status give(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_null());
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "give", .fn = give, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

#define LIST "{'id':'l','kind':'CALC','do':[['assign',['list'],['name','l']]]},"
#define NOTE(id, x)                                                                                \
    "{'id':'" id "','kind':'CALC','do':[['expr',['method',['name','l'],'append',['" x "']]]]},"
#define END "{'id':'out','kind':'RETURN','value':['name','l']}"

static void assert_order(const char *nodes, const char *edges, const char *order) {
    register_nodes("w", nodes, edges);
    start("w", "{}");
    assert_result(order);
}

/* The first branch makes two notes before the second one begins. */
static void a_strand_runs_until_it_waits(void **state) {
    assert_order(LIST NOTE("a1", "a1") NOTE("a2", "a2") NOTE("b1", "b1") NOTE("b2", "b2")
                     NOTE("a3", "a3") "{'id':'f','kind':'FAN_HEAD'},{'id':'j','kind':'BARRIER'},"
                                      "{'id':'s','kind':'ACTION','action':'give'}," END,
                 "['in','l'],['l','f'],['f','a1','ELEM',0],['f','b1','ELEM',1],['a1','a2'],['a2',"
                 "'s'],['s','a3'],['a3','j','JOIN'],['b1','b2'],['b2','j','JOIN'],['j','out']",
                 "[\"a1\",\"a2\",\"b1\",\"b2\",\"a3\"]");
}

/* The branches of the inner fan-out come after the second branch of the outer one. */
static void new_branches_stand_at_the_end(void **state) {
    assert_order(LIST NOTE("a", "a") NOTE("a1", "a1") NOTE("a2", "a2") NOTE("b", "b")
                     NOTE("c", "c") "{'id':'f','kind':'FAN_HEAD'},{'id':'j','kind':'BARRIER'},"
                                    "{'id':'g','kind':'FAN_HEAD'},{'id':'k','kind':'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','a','ELEM',0],['f','b','ELEM',1],['a','g'],['g','a1',"
                 "'ELEM',0],['g','a2','ELEM',1],['a1','k','JOIN'],['a2','k','JOIN'],['k','c'],"
                 "['c','j','JOIN'],['b','j','JOIN'],['j','out']",
                 "[\"a\",\"b\",\"a1\",\"a2\",\"c\"]");
}

/* With `now` they come before the other branches of the FAN_HEAD around it. */
static void branches_of_now_come_before_those_around_them(void **state) {
    assert_order(LIST NOTE("a1", "a1") NOTE("a2", "a2") NOTE("b", "b")
                     NOTE("c", "c") "{'id':'f','kind':'FAN_HEAD'},{'id':'j','kind':'BARRIER'},"
                                    "{'id':'g','kind':'FAN_HEAD','now':true},{'id':'k','kind':"
                                    "'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','b','ELEM',0],['f','g','ELEM',1],['g','a1','ELEM',0],"
                 "['g','a2','ELEM',1],['a1','k','JOIN'],['a2','k','JOIN'],['k','c'],"
                 "['c','j','JOIN'],['b','j','JOIN'],['j','out']",
                 "[\"a1\",\"a2\",\"b\",\"c\"]");
}

/* A CALC without `do`: the second branch runs before the first one goes on. */
static void a_calc_without_statements_lets_others_go_first(void **state) {
    assert_order(LIST NOTE("a1", "a1") NOTE("a2", "a2")
                     NOTE("b", "b") "{'id':'y','kind':'CALC'},{'id':'f','kind':'FAN_HEAD'},"
                                    "{'id':'j','kind':'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','a1','ELEM',0],['f','b','ELEM',1],['a1','y'],['y',"
                 "'a2'],['a2','j','JOIN'],['b','j','JOIN'],['j','out']",
                 "[\"a1\",\"b\",\"a2\"]");
}

/* A BRANCH at the beginning of a branch sees what the branches before it have done; only one that leads to a FAN_HEAD
 * with `now` chooses before they begin. */
#define EVEN_OR_ODD "{'id':'w','kind':'BRANCH','when':[['%',['call','len',[['name','l']]],2]]},"

static void a_condition_waits_for_its_turn(void **state) {
    assert_order(LIST NOTE("a", "a") NOTE("odd", "odd") NOTE("even", "even") EVEN_OR_ODD
                 "{'id':'m','kind':'MERGE'},{'id':'f','kind':'FAN_HEAD'},"
                 "{'id':'j','kind':'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','a','ELEM',0],['f','w','ELEM',1],['w','odd','GUARD',0],"
                 "['w','even','GUARD',1],['odd','m'],['even','m'],['m','j','JOIN'],['a','j',"
                 "'JOIN'],['j','out']",
                 "[\"a\",\"odd\"]");
}

static void a_condition_before_now_does_not(void **state) {
    assert_order(LIST NOTE("a", "a") NOTE("odd", "odd") NOTE("even", "even") EVEN_OR_ODD
                 "{'id':'m','kind':'MERGE'},{'id':'f','kind':'FAN_HEAD'},"
                 "{'id':'j','kind':'BARRIER'},{'id':'g','kind':'FAN_HEAD','now':"
                 "true},{'id':'k','kind':'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','a','ELEM',0],['f','w','ELEM',1],['w','odd','GUARD',0],"
                 "['w','g','GUARD',1],['g','even','ELEM'],['even','k','JOIN'],['odd','m'],"
                 "['k','m'],['m','j','JOIN'],['a','j','JOIN'],['j','out']",
                 "[\"even\",\"a\"]");
}

/* The first branch of a fan-out with `here` is the strand itself: a branch that was ready before does not come between,
 * and what follows the BARRIER comes at once when it ends last. */
static void the_first_branch_of_here_goes_on_at_once(void **state) {
    assert_order(LIST NOTE("a", "a") NOTE("h", "h") NOTE("t", "t") NOTE("b", "b")
                     NOTE("c", "c") "{'id':'f','kind':'FAN_HEAD'},{'id':'j','kind':'BARRIER'},"
                                    "{'id':'g','kind':'FAN_HEAD','here':1},{'id':'k','kind':"
                                    "'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','a','ELEM',0],['f','b','ELEM',1],['a','g'],['g','h',"
                 "'ELEM',0],['g','t','ELEM',1],['h','k','JOIN'],['t','k','JOIN'],['k','c'],"
                 "['c','j','JOIN'],['b','j','JOIN'],['j','out']",
                 "[\"a\",\"h\",\"b\",\"t\",\"c\"]");
}

/* Nested ones begin their other branches in the order of their numbers: the outer fan-out has 2 here. */
static void numbers_of_here_say_which_task_begins_first(void **state) {
    assert_order(LIST NOTE("h", "h") NOTE("t1", "t1")
                     NOTE("t2", "t2") "{'id':'f','kind':'FAN_HEAD','here':2},{'id':'j','kind':"
                                      "'BARRIER'},{'id':'g','kind':'FAN_HEAD','here':1},"
                                      "{'id':'k','kind':'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','g','ELEM',0],['f','t2','ELEM',1],['g','h','ELEM',0],"
                 "['g','t1','ELEM',1],['h','k','JOIN'],['t1','k','JOIN'],['k','j','JOIN'],"
                 "['t2','j','JOIN'],['j','out']",
                 "[\"h\",\"t1\",\"t2\"]");
}

/* The code of the strand itself takes the CancelledError: that counts, and the instance is not cancelled. */
static void what_the_first_branch_of_here_makes_of_a_cancel_counts(void **state) {
    register_nodes("w",
                   LIST "{'id':'g','kind':'FAN_HEAD','here':1},{'id':'k','kind':'BARRIER'},"
                        "{'id':'s','kind':'SLEEP','seconds':100},{'id':'t','kind':'SLEEP',"
                        "'seconds':100},{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'m',"
                        "'kind':'MERGE'}," NOTE("c", "caught") END,
                   "['in','l'],['l','g'],['g','s','ELEM',0],['g','t','ELEM',1],['s','h','EXCEPT'],"
                   "['h','c','GUARD',0],['c','m'],['s','m'],['m','k','JOIN'],['t','k','JOIN'],"
                   "['k','out']");
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_result("[\"caught\"]");
}

/* What is no time from now on is over at once: in CPython 3.11 sleeps of 0, -5 and nan end in the order in which they
 * were begun. Times beyond all clocks are for ever. */
static void odd_times_are_those_of_asyncio(void **state) {
    assert_order(LIST "{'id':'f','kind':'FAN_HEAD','over':['list',0,-5,0,['call','float',['-inf"
                      "']],-9,['call','float',['nan']]],'into':['name','t']},{'id':'s','kind':"
                      "'SLEEP','seconds':['name','t']},{'id':'n','kind':'CALC','do':[['expr',["
                      "'method',['name','l'],'append',[['call','str',[['name','t']]]]]]]},"
                      "{'id':'j','kind':'BARRIER'}," END,
                 "['in','l'],['l','f'],['f','s','ELEM'],['s','n'],['n','j','JOIN'],['j','out']",
                 "[\"0\",\"-5\",\"0\",\"-inf\",\"-9\",\"nan\"]");
    static const char *const for_ever[] = { "['call','float',['inf']]", "1e300" };
    for (int i = 0; i < 2; i++) {
        char nodes[300];
        snprintf(nodes, sizeof nodes,
                 "{'id':'s','kind':'SLEEP','seconds':%s},"
                 "{'id':'out','kind':'RETURN'}",
                 for_ever[i]);
        register_nodes("w", nodes, "['in','s'],['s','out']");
        start("w", "{}");
        advance(UINT64_C(1000) * 366 * 24 * 3600 * 100);
        assert_string_equal(field("status"), "running");
    }
    register_nodes("w",
                   "{'id':'s','kind':'WAIT','signal':'go','timeout':['call','float',['nan']]},"
                   "{'id':'out','kind':'RETURN'}",
                   "['in','s'],['s','out']");
    start("w", "{}");
    assert_raised("TimeoutError");
    register_nodes("w",
                   "{'id':'s','kind':'SLEEP','until':['call','float',['nan']]},"
                   "{'id':'out','kind':'RETURN'}",
                   "['in','s'],['s','out']");
    start("w", "{}");
    assert_raised("ValueError");
}

/* Strands that give way to each other again and again need room for their number, not for their turns. */
static void giving_way_needs_no_memory(void **state) {
    register_nodes("w",
                   "{'id':'f','kind':'FAN_HEAD','over':['list',1,2,3],'into':['name','i']},{'id':"
                   "'for','kind':'LOOP_HEAD','over':['call','range',[50000]],'into':['name','k']},"
                   "{'id':'y','kind':'CALC'},{'id':'s','kind':'SLEEP','seconds':1},{'id':'j',"
                   "'kind':'BARRIER'},{'id':'out','kind':'RETURN'}",
                   "['in','f'],['f','for','ELEM'],['for','y','CONTINUE'],['y','for','BACK'],['for',"
                   "'s','BREAK'],['s','j','JOIN'],['j','out']");
    size_t before = lab_env_bytes(env);
    start("w", "{}");
    pump();
    assert_true(lab_env_bytes(env) < before + 200000);
    advance(1001);
    assert_result("null");
}

#define FIRST     "{'id':'j','kind':'BARRIER','mode':'first'},"
#define SLEEP(id) "{'id':'" id "','kind':'SLEEP','seconds':2},"

static void assert_first(const char *nodes, const char *edges, const char *order) {
    register_nodes("w", nodes, edges);
    start("w", "{}");
    pump();
    advance(2000);
    assert_result(order);
}

/* IR.md: a SLEEP with which a later branch begins is due before what the first one waits for. */
static void a_time_limit_is_due_before_what_it_limits(void **state) {
    assert_first(LIST SLEEP("s") SLEEP("t") NOTE("a", "a") NOTE("b", "b") FIRST
                 "{'id':'f','kind':'FAN_HEAD'}," END,
                 "['in','l'],['l','f'],['f','s','ELEM',0],['f','t','ELEM',1],['s','a'],['t','b'],"
                 "['a','j','JOIN'],['b','j','JOIN'],['j','out']",
                 "[\"b\"]");
}

/* Other steps of later branches are due in their order: a SLEEP behind a CALC, and those of branches for elements. */
static void other_sleeps_are_due_in_their_order(void **state) {
    assert_first(LIST SLEEP("s") SLEEP("t") NOTE("a", "a") NOTE("b", "b") NOTE("c", "c") FIRST
                 "{'id':'f','kind':'FAN_HEAD'}," END,
                 "['in','l'],['l','f'],['f','s','ELEM',0],['f','c','ELEM',1],['c','t'],['s','a'],"
                 "['t','b'],['a','j','JOIN'],['b','j','JOIN'],['j','out']",
                 "[\"c\",\"a\"]");
    assert_first(LIST SLEEP("s") "{'id':'a','kind':'CALC','do':[['expr',['method',['name','l'],"
                                 "'append',[['name','i']]]]]}," FIRST
                                 "{'id':'f','kind':'FAN_HEAD','over':['list',1,2,3],'into':['name',"
                                 "'i']}," END,
                 "['in','l'],['l','f'],['f','s','ELEM'],['s','a'],['a','j','JOIN'],['j','out']",
                 "[1]");
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_strand_runs_until_it_waits),
        IN_A_WORLD(new_branches_stand_at_the_end),
        IN_A_WORLD(branches_of_now_come_before_those_around_them),
        IN_A_WORLD(a_calc_without_statements_lets_others_go_first),
        IN_A_WORLD(a_condition_waits_for_its_turn),
        IN_A_WORLD(a_condition_before_now_does_not),
        IN_A_WORLD(the_first_branch_of_here_goes_on_at_once),
        IN_A_WORLD(numbers_of_here_say_which_task_begins_first),
        IN_A_WORLD(what_the_first_branch_of_here_makes_of_a_cancel_counts),
        IN_A_WORLD(odd_times_are_those_of_asyncio),
        IN_A_WORLD(giving_way_needs_no_memory),
        IN_A_WORLD(a_time_limit_is_due_before_what_it_limits),
        IN_A_WORLD(other_sleeps_are_due_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
