/* test_workflow_child.c -- workflows as steps of workflows: results, exceptions, cancelling, restarts. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static int calls;
static char file[64];

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

/* "double" {n}: 2n by an action; "outer": double(n=20) + 1. */
static void register_family(void) {
    register_ir("{'heddle':1,'name':'double','inputs':[{'name':'n','schema':{'type':'integer'}}],'"
                "functions':[{'name':'run',"
                "'params':['n'],'nodes':[{'id':'in','kind':'ENTRY'},{'id':'a','kind':'ACTION','"
                "action':'twice',"
                "'args':[['name','n']],'into':['name','r']},{'id':'out','kind':'RETURN','value':['"
                "name','r']}],"
                "'edges':[['in','a'],['a','out']]}]}");
    register_nodes(
        "outer",
        "{'id':'c','kind':'CHILD','workflow':'double','args':{'n':20},'into':['name','r']},"
        "{'id':'out','kind':'RETURN','value':['+',['name','r'],1]}",
        "['in','c'],['c','out']");
}

static void a_child_runs_as_a_step_and_gives_its_result(void **state) {
    hd_value v;
    register_family();
    start_keyed("outer", "k", "{}");
    assert_result("41");
    assert_int_equal(calls, 1);
    assert_int_equal(hd_workflow_state(engine, "double/outer:k.0.1", pool, &v), HD_OK);
    assert_string_equal(hd_value_as_text(hd_value_at(v, "status"), ""), "done");
    assert_string_equal(hd_value_as_text(hd_value_at(hd_value_at(v, "parent"), "id"), ""),
                        "outer/k");
    assert_int_equal(stats_now().finished, 2);
}

static const char two_children[] =
    "{'id':'wait','kind':'WAIT','signal':'go'},{'id':'fan','kind':'FAN_HEAD'},"
    "{'id':'c','kind':'CHILD','workflow':'double','args':{'n':20},'into':['name','r']},"
    "{'id':'d','kind':'CHILD','workflow':'double','args':{'n':1},'into':['name','r']},"
    "{'id':'join','kind':'BARRIER','give':['name','r'],'into':['name','all']},"
    "{'id':'out','kind':'RETURN','value':['call','sum',[['name','all']]]}";
static const char two_children_edges[] =
    "['in','wait'],['wait','fan'],['fan','c','ELEM',0],['fan','d','ELEM',1],['c','join','JOIN'],"
    "['d','join','JOIN'],['join','out']";

/* hd_workflow_pause: a paused instance begins no step. Also if another engine has it by then. */
static void a_child_is_not_begun_while_its_parent_is_paused(void **state) {
    for (int turn = 0; turn < 4; turn++) {
        bool again = turn % 2, cancels = turn / 2;
        calls = 0;
        register_family();
        register_nodes("two", two_children, two_children_edges);
        start("two", "{}");
        pump();
        assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
        pump();
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
        for (int i = 0; i < 5; i++) advance(1000);
        assert_string_equal(field("status"), "paused");
        assert_int_equal(calls, 0);
        if (again) {
            hd_engine_close(engine);
            assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
            register_actions(engine);
            advance(1000);
            assert_string_equal(field("status"), "paused");
            assert_int_equal(calls, 0);
        }
        if (cancels) {
            assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
            pump();
            assert_string_equal(field("status"), "cancelled");
            assert_int_equal(calls, 0);
            continue;
        }
        assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
        assert_result("42");
        assert_int_equal(calls, 2);
    }
}

static void register_handled(const char *child, const char *args, const char *class_name) {
    char nodes[800];
    snprintf(nodes, sizeof nodes,
             "{'id':'c','kind':'CHILD','workflow':'%s'%s,'into':['name','r']},{'id':'h','kind':'"
             "HANDLER',"
             "'clauses':[{'classes':['%s'],'as':'e'}]},{'id':'caught','kind':'RETURN','value':['"
             "call','str',[['name','e']]]},"
             "{'id':'out','kind':'RETURN','value':['name','r']}",
             child, args, class_name);
    register_nodes("outer", nodes,
                   "['in','c'],['c','out'],['c','h','EXCEPT'],['h','caught','GUARD',0]");
}

static void what_a_child_raises_is_raised_in_its_parent(void **state) {
    register_nodes("bad", "{'id':'r','kind':'RAISE','value':['new','ValueError',['oh']]}",
                   "['in','r']");
    register_handled("bad", "", "ValueError");
    start("outer", "{}");
    assert_result("\"oh\"");
}

/* hd_engine_options.value_max: the class of a longer exception stays. */
static void a_long_exception_of_a_child_is_cut(void **state) {
    hd_value result;
    register_nodes("bad",
                   "{'id':'r','kind':'RAISE','value':['new','KeyError',[['*','x',17000000]]]}",
                   "['in','r']");
    register_handled("bad", "", "KeyError");
    start("outer", "{}");
    assert_int_equal(await(&result), HD_OK);
    assert_non_null(strstr(hd_value_as_text(result, ""), "is longer than 16777216 bytes"));
}

static void a_child_that_cannot_start_raises_in_its_parent(void **state) {
    register_handled("nothing", "", "LookupError");
    start("outer", "{}");
    assert_result("\"no workflow \\\"nothing\\\" is registered\"");
    register_family();
    register_handled("double", ",'args':{'n':'text'}", "TypeError");
    start("outer", "{}");
    hd_value result;
    assert_int_equal(await(&result), HD_OK);
    assert_non_null(strstr(hd_value_as_text(result, ""), "\"n\""));
}

static void register_waiting(void) {
    register_nodes("inner",
                   "{'id':'w','kind':'WAIT','signal':'go','into':['name','p']},{'id':'out','kind':'"
                   "RETURN','value':['name','p']}",
                   "['in','w'],['w','out']");
    register_nodes("outer",
                   "{'id':'c','kind':'CHILD','workflow':'inner','into':['name','r']},{'id':'out','"
                   "kind':'RETURN','value':['name','r']}",
                   "['in','c'],['c','out']");
}

static const char *status_of(const char *which) {
    hd_value v;
    if (hd_workflow_state(engine, which, pool, &v)) return "none";
    return hd_value_as_text(hd_value_at(v, "status"), "");
}

/* The instance that the state of "outer/k" names as the child that it waits for. */
static const char *child_named(hd_engine *e) {
    hd_value v;
    assert_int_equal(hd_workflow_state(e, "outer/k", pool, &v), HD_OK);
    return hd_value_as_text(hd_value_at(hd_value_index(hd_value_at(v, "steps"), 0), "child"), "");
}

static void assert_child_of_k(const char *child) {
    hd_value v;
    assert_int_equal(hd_workflow_state(engine, child, pool, &v), HD_OK);
    assert_string_equal(hd_value_as_text(hd_value_at(hd_value_at(v, "parent"), "id"), ""),
                        "outer/k");
}

/* workflow.h, hd_workflow_state: also where another instance has the plain id. */
static void the_state_of_a_parent_names_its_child(void **state) {
    register_waiting();
    start_keyed("inner", "outer:k.0.1", "{}");
    start_keyed("outer", "k", "{}");
    pump();
    assert_child_of_k(child_named(engine));
    assert_string_not_equal(child_named(engine), "inner/outer:k.0.1");
}

static void cancelling_a_parent_cancels_its_child_first(void **state) {
    hd_value result;
    register_waiting();
    start_keyed("outer", "k", "{}");
    pump();
    assert_string_equal(status_of("inner/outer:k.0.1"), "running");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(await(&result), HD_ABORTED);
    assert_string_equal(status_of("inner/outer:k.0.1"), "cancelled");
    assert_int_equal(stats_now().open, 0);
}

/* CancelledError has no arguments, whichever of the two is cancelled. */
static void cancelling_a_child_raises_cancelled_error_in_its_parent(void **state) {
    const char *const cancelled[] = { "inner/outer:a.0.1", "outer/b" };
    register_waiting();
    for (size_t i = 0; i < 2; i++) {
        start_keyed("outer", i ? "b" : "a", "{}");
        pump();
        assert_int_equal(hd_workflow_cancel(engine, cancelled[i]), HD_OK);
        pump();
        hd_value error = hd_value_at(hd_read(rt, pool, hd_workflow_cell(engine, id)), "error");
        assert_string_equal(hd_value_as_text(hd_value_at(error, "$error"), ""), "CancelledError");
        assert_int_equal(hd_value_count(hd_value_at(error, "args")), 0);
    }
}

static void a_child_that_nothing_waits_for_any_more_is_cancelled(void **state) {
    register_nodes("inner", "{'id':'w','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','w'],['w','out']");
    register_nodes(
        "outer",
        "{'id':'c','kind':'CHILD','workflow':'inner'},{'id':'j','kind':'RETURN','value':1},"
        "{'id':'s','kind':'SLEEP','seconds':5},{'id':'out','kind':'RETURN','value':2}",
        "['in','c'],['in','s'],['c','j'],['s','out']");
    start_keyed("outer", "k", "{}");
    assert_result("2");
    pump();
    assert_string_equal(status_of("inner/outer:k.0.1"), "cancelled");
}

static void a_workflow_that_starts_itself_ends_with_recursion_error(void **state) {
    register_nodes("outer",
                   "{'id':'c','kind':'CHILD','workflow':'outer'},{'id':'out','kind':'RETURN'}",
                   "['in','c'],['c','out']");
    start("outer", "{}");
    assert_raised("RecursionError");
    pump();
    assert_int_equal(stats_now().open, 0);
}

/* The seed's fan-out, with workflows as elements. */
static void register_fan(void) {
    register_family();
    register_nodes("outer",
                   "{'id':'fan','kind':'FAN_HEAD','over':['call','range',[300]],'into':['name','i']"
                   ",'window':50},"
                   "{'id':'c','kind':'CHILD','workflow':'double','args':{'n':['name','i']},'into':["
                   "'name','r']},"
                   "{'id':'all','kind':'BARRIER','give':['name','r'],'into':['name','rs']},"
                   "{'id':'out','kind':'RETURN','value':['call','sum',[['name','rs']]]}",
                   "['in','fan'],['fan','c','ELEM'],['c','all','JOIN'],['all','out']");
}

static void children_run_in_parallel_branches(void **state) {
    register_fan();
    start("outer", "{}");
    assert_result("89700");
    assert_int_equal(calls, 300);
    assert_int_equal(stats_now().finished, 301);
}

static void open_file(void) {
    close_store();
    snprintf(file, sizeof file, "/tmp/heddle-child-%d.db", (int)getpid());
    unlink(file);
    where = file;
    open_store();
}

static void close_file(void) {
    close_store();
    unlink(file);
    where = NULL;
    open_store();
}

/* After a restart the parent finds its children, and they find it. */
static void a_family_goes_on_in_the_next_program(void **state) {
    open_file();
    register_waiting();
    start_keyed("outer", "k", "{}");
    pump();
    close_store();
    open_store();
    pump();
    assert_int_equal(stats_now().open, 2);
    assert_int_equal(hd_workflow_signal(engine, "inner/outer:k.0.1", "go", parse("'now'")), HD_OK);
    assert_result("\"now\"");
    assert_int_equal(stats_now().open, 0);
    close_file();
}

static void register_pair(void) {
    register_ir(
        "{'heddle':1,'name':'kid','inputs':[{'name':'n'}],'functions':[{'name':'run','params':['n']"
        ","
        "'nodes':[{'id':'in','kind':'ENTRY'},{'id':'w','kind':'WAIT','signal':'go'},"
        "{'id':'out','kind':'RETURN','value':['name','n']}],'edges':[['in','w'],['w','out']]}]}");
    register_ir(
        "{'heddle':1,'name':'par','inputs':[{'name':'n'}],'functions':[{'name':'run','params':['n']"
        ","
        "'nodes':[{'id':'in','kind':'ENTRY'},{'id':'c','kind':'CHILD','workflow':'kid',"
        "'args':{'n':['name','n']},'into':['name','r']},"
        "{'id':'out','kind':'RETURN','value':['name','r']}],'edges':[['in','c'],['c','out']]}]}");
}

static bool note_id(const hd_workflow_entry *entry, void *ctx) {
    snprintf(ctx, HD_INSTANCE_ID_SIZE, "%s", entry->id);
    return true;
}

/* The id of the only instance of "kid" that is open. */
static void find_kid(char kid[HD_INSTANCE_ID_SIZE]) {
    hd_workflow_filter f = { .status = "running", .name = "kid" };
    *kid = 0;
    assert_int_equal(hd_workflow_list(engine, &f, note_id, kid), HD_OK);
}

static void run_parent(const char *input, const char *result) {
    char kid[HD_INSTANCE_ID_SIZE];
    start_keyed("par", "a", input);
    pump();
    find_kid(kid);
    assert_int_equal(hd_workflow_signal(engine, kid, "go", hd_null()), HD_OK);
    assert_result(result);
}

/* hd_workflow_remove: the children of a removed instance stay, and are not those of the next one with its key. */
static void the_child_of_a_removed_parent_is_not_taken_for_another(void **state) {
    register_pair();
    run_parent("{'n':1}", "1");
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    run_parent("{'n':2}", "2");
    assert_string_equal(status_of("kid/par:a.0.1"), "done");
}

static void an_instance_that_a_program_started_is_no_child(void **state) {
    register_pair();
    start_keyed("kid", "par:a.0.1", "{'n':0}");
    pump();
    start_keyed("par", "a", "{'n':1}");
    pump();
    assert_int_equal(stats_now().open, 3);
    assert_int_equal(hd_workflow_signal(engine, "kid/par:a.0.1", "go", hd_null()), HD_OK);
    pump();
    assert_string_equal(status_of("par/a"), "running");
    assert_int_equal(hd_workflow_remove(engine, "kid/par:a.0.1"), HD_OK);
    char kid[HD_INSTANCE_ID_SIZE];
    find_kid(kid);
    assert_int_equal(hd_workflow_signal(engine, kid, "go", hd_null()), HD_OK);
    assert_result("1");
}

/* The plain id is free again by then: the parent still knows the id of its child. */
static void a_child_with_another_id_is_found_by_the_next_program(void **state) {
    char kid[HD_INSTANCE_ID_SIZE];
    open_file();
    register_pair();
    run_parent("{'n':1}", "1");
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    start_keyed("par", "a", "{'n':2}");
    pump();
    assert_int_equal(hd_workflow_remove(engine, "kid/par:a.0.1"), HD_OK);
    close_store();
    open_store();
    pump();
    assert_int_equal(stats_now().open, 2);
    find_kid(kid);
    assert_int_equal(hd_workflow_signal(engine, kid, "go", hd_null()), HD_OK);
    assert_result("2");
    close_file();
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_child_runs_as_a_step_and_gives_its_result),
        IN_A_WORLD(a_child_is_not_begun_while_its_parent_is_paused),
        IN_A_WORLD(what_a_child_raises_is_raised_in_its_parent),
        IN_A_WORLD(a_long_exception_of_a_child_is_cut),
        IN_A_WORLD(a_child_that_cannot_start_raises_in_its_parent),
        IN_A_WORLD(the_state_of_a_parent_names_its_child),
        IN_A_WORLD(cancelling_a_parent_cancels_its_child_first),
        IN_A_WORLD(cancelling_a_child_raises_cancelled_error_in_its_parent),
        IN_A_WORLD(a_child_that_nothing_waits_for_any_more_is_cancelled),
        IN_A_WORLD(a_workflow_that_starts_itself_ends_with_recursion_error),
        IN_A_WORLD(children_run_in_parallel_branches),
        IN_A_WORLD(a_family_goes_on_in_the_next_program),
        IN_A_WORLD(the_child_of_a_removed_parent_is_not_taken_for_another),
        IN_A_WORLD(an_instance_that_a_program_started_is_no_child),
        IN_A_WORLD(a_child_with_another_id_is_found_by_the_next_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
