/* test_workflow_exceptions.c -- exceptions that a workflow keeps are objects like lists and records: after a restart a
 * name has the exception that it had, with all attributes that were assigned (decision 0555). */
#define _DEFAULT_SOURCE
#include "workflow_flow.h"

static hd_status fail_now(hd_action *a, hd_value args, void *ctx) {
    return hd_action_raise(a, "ValueError", "no");
}

static hd_status echo(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_value_index(args, 0));
}

static void register_actions(hd_engine *e) {
    const hd_action_spec specs[] = { { .name = "fail", .fn = fail_now, .here = true },
                                     { .name = "echo", .fn = echo, .here = true } };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(hd_action_register(e, &specs[i]), HD_OK);
}

/* Another engine goes on after each second, as long as the flow sleeps. */
static void run_with_reloads(const char *name, int seconds) {
    start(name, "{}");
    for (pump(); seconds > 0; seconds--) {
        next_engine();
        advance(1000);
    }
}

/* Does the statements, with a restart behind each text of them, and returns the value. */
static void assert_kept(const char *const *statements, const char *value, const char *json) {
    static int count;
    char name[16];
    int seconds = 0;
    snprintf(name, sizeof name, "w%d", count++);
    hd_flow *f = flow(name);
    for (; statements[seconds]; seconds++) {
        hd_flow_do(f, statements[seconds]);
        hd_flow_sleep(f, "1");
    }
    hd_flow_return(f, value);
    register_flow(f);
    run_with_reloads(name, seconds);
    assert_result(json);
}

#define KEPT(value, json, ...) assert_kept((const char *const[]){ __VA_ARGS__, NULL }, value, json)

static void an_attribute_that_changes_is_stored(void **state) {
    KEPT("e.n", "1", "e = ValueError('a'); e.n = 0", "e.n = 1");
    KEPT("[e.n, e.m, str(e)]", "[3,2,\"a\"]", "e = ValueError('a')", "e.n = 1", "e.m = 2; e.n = 3");
    KEPT("e.d", "{\"z\":1}", "e = ValueError('a'); e.d = {}", "e.d = {'z': 1}");
    KEPT("e.d", "{\"y\":2}", "e = ValueError('a'); d = {}; e.d = d", "d['y'] = 2");
    KEPT("e.__cause__.n", "4", "e = ValueError('a'); c = KeyError('b')", "e.__cause__ = c",
         "c.n = 4");
    KEPT("[e.__cause__, c.n]", "[null,1]", "e = ValueError('a'); c = KeyError('b')",
         "e.__cause__ = c", "e.__cause__ = None; c.n = 1");
}

static void names_of_one_exception_stay_so(void **state) {
    KEPT("[e.n, e is f, e == f]", "[5,true,true]", "e = ValueError('a'); f = e", "f.n = 5");
    KEPT("[a[0] is a[1], a[0] is e, a[1].n]", "[true,true,1]",
         "e = ValueError('a'); a = [e, e]; t = (e, 1)", "t[0].n = 1");
    KEPT("len(a)", "1", "e = ValueError('a'); a = [e]",
         "a = a if e in a else a + [e]; s = {e}; d = {e: 1}",
         "a = a if e in s and d[e] else a * 2");
    KEPT("[a == b, a is b, a.n, b.n]", "[false,false,1,2]",
         "a = ValueError('a'); b = ValueError('a')", "a.n = 1; b.n = 2");
    KEPT("[g.exceptions[0] is e, g.exceptions[1].n, str(g)]", "[true,7,\"two (2 sub-exceptions)\"]",
         "e = ValueError('a'); g = ExceptionGroup('two', [e, KeyError('b')])",
         "g.exceptions[1].n = 7");
}

static void an_exception_may_contain_itself(void **state) {
    KEPT("[e.me is e, e.me.n]", "[true,1]", "e = ValueError('a'); e.me = e", "e.n = 1");
    KEPT("[e.args[0][0] is e, str(e)]", "[true,\"[ValueError([...])]\"]",
         "a = []; e = ValueError(a); a.append(e)");
    KEPT("[a.__cause__ is b, b.__cause__ is a]", "[true,true]",
         "a = ValueError('a'); b = KeyError('b'); a.__cause__ = b; b.__cause__ = a");
    hd_flow *f = flow("leaves");
    hd_flow_do(f, "e = ValueError('a'); e.me = e");
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "e");
    register_flow(f);
    run_with_reloads("leaves", 1);
    assert_raised("ValueError");
    assert_string_equal(printed(hd_value_at(hd_value_at(document(), "error"), "args")),
                        "[\"Circular reference detected\"]");
}

/* Each is an object, so nesting has no limit; for its text it has one, and then there is none in the document. */
static void a_chain_of_300_causes_is_kept(void **state) {
    hd_flow *f = flow("chain");
    hd_flow_do(f, "e = ValueError(0); x = []");
    hd_flow_for(f, "i", "range(300)");
    hd_flow_do(f, "c = e; x = [x]; e = ValueError(i + 1, x); e.__cause__ = c");
    hd_flow_end(f);
    hd_flow_sleep(f, "1");
    hd_flow_do(f, "n = 0");
    hd_flow_while(f, "e");
    hd_flow_do(f, "n = n + e.args[0]; e = e.__cause__");
    hd_flow_end(f);
    hd_flow_return(f, "n");
    register_flow(f);
    run_with_reloads("chain", 1);
    assert_result("45150");
}

static uint64_t objects_count(void) { return hd_value_count(hd_value_at(document(), "objects")); }

static void an_exception_that_nothing_holds_is_gone(void **state) {
    hd_flow *f = flow("w");
    hd_flow_do(f, "e = ValueError('a'); e.d = {}; f = e");
    hd_flow_sleep(f, "1");
    hd_flow_do(f, "f = None");
    hd_flow_sleep(f, "1");
    hd_flow_do(f, "e.__cause__ = KeyError(1)");
    hd_flow_sleep(f, "1");
    hd_flow_do(f, "e = None");
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "1");
    register_flow(f);
    static const uint64_t counts[] = { 2, 2, 3, 0 };
    start("w", "{}");
    pump();
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(objects_count(), counts[i]);
        next_engine();
        advance(1000);
    }
    assert_result("1");
}

/* What a branch raised is the same exception among the results, in the handler and in the variables. */
static void what_a_branch_gives_is_the_exception(void **state) {
    hd_flow *f = flow("w");
    hd_flow_do(f, "e = KeyError('k')");
    hd_flow_each(f, "i", "range(3)");
    hd_flow_sleep(f, "i");
    hd_flow_join(f, "got", "e");
    hd_flow_do(f, "got[0].n = 1");
    hd_flow_sleep(f, "1");
    hd_flow_try(f);
    hd_flow_action(f, NULL, "fail", NULL);
    hd_flow_except(f, "ValueError", "v");
    hd_flow_do(f, "w = v; w.n = 2");
    hd_flow_sleep(f, "1");
    hd_flow_do(f, "v.n = v.n + 1");
    hd_flow_end(f);
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "[got[1] is e, e.n, got[2].n, w.n, str(w)]");
    register_flow(f);
    run_with_reloads("w", 5);
    assert_result("[true,1,1,3,\"no\"]");
}

/* Where it was raised first is stored, also if the exception was stored before. */
static void where_it_was_raised_is_kept(void **state) {
    hd_flow *f = flow("w");
    hd_flow_do(f, "e = ValueError('a')");
    hd_flow_sleep(f, "1");
    hd_flow_try(f);
    hd_flow_id(f, "first");
    hd_flow_raise(f, "e");
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_sleep(f, "1");
    hd_flow_end(f);
    hd_flow_id(f, "second");
    hd_flow_raise(f, "e");
    register_flow(f);
    run_with_reloads("w", 2);
    assert_raised("ValueError");
    assert_string_equal(
        hd_value_as_text(hd_value_at(hd_value_at(document(), "failed_at"), "node"), ""), "first");
}

/* A boundary: the other side gets a copy, with all that belongs to the exception. */
static void what_crosses_is_a_copy(void **state) {
    hd_flow *f = flow("w");
    hd_flow_do(f,
               "e = ValueError('a'); e.n = 1; e.__cause__ = KeyError('k'); e.same = e.__cause__");
    hd_flow_sleep(f, "1");
    hd_flow_action(f, "got", "echo", "e");
    hd_flow_do(f, "got.n = 2");
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "[got is e, e.n, got, got.same is got.__cause__]");
    register_flow(f);
    run_with_reloads("w", 2);
    assert_result(
        "[false,1,{\"$$error\":\"ValueError\",\"args\":[\"a\"],\"attrs\":{\"n\":2,\"same\":{"
        "\"$$error\":\"KeyError\",\"args\":[\"k\"],\"message\":\"'k'\"}},\"cause\":{"
        "\"$$error\":\"KeyError\",\"args\":[\"k\"],\"message\":\"'k'\"},\"message\":\"a\"},"
        "false]");
}

typedef struct rewrite {
    hd_cell doc;
    const char *vars, *objects;
} rewrite;

static hd_status write_parts(hd_tx *tx, void *ctx) {
    const rewrite *r = ctx;
    hd_status status = hd_tx_set(tx, hd_cell_child(rt, r->doc, "vars"), parse(r->vars));
    return status ? status : hd_tx_set(tx, hd_cell_child(rt, r->doc, "objects"), parse(r->objects));
}

/* Until decision 0555 an exception had no number: it stood where it was held. */
static void a_document_with_exceptions_inside_is_read(void **state) {
    hd_flow *f = flow("w");
    hd_flow_do(f, "e = 1; a = [2]");
    hd_flow_sleep(f, "1");
    hd_flow_do(f, "f = e; f.n = f.n + 1; b = a[0]; a[0] = b; b.n = 4");
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "[str(f), f.n, f.__cause__.args[0], a[0].n, a[0] is b]");
    register_flow(f);
    start("w", "{}");
    pump();
    rewrite old = { hd_workflow_cell(engine, id),
                    "{'a':{'$$ref':1},'e':{'$$error':'ValueError','args':['x'],'attrs':{'n':1},"
                    "'cause':{'$$error':'KeyError','args':['k'],'message':'k'},'message':'x',"
                    "'raised':{'$$tuple':['run','n1']}}}",
                    "{'1':[{'$$error':'OSError','args':[],'message':''}]}" };
    hd_engine_close(engine);
    assert_int_equal(hd_transact(rt, write_parts, &old), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    advance(1000);
    next_engine();
    advance(1000);
    assert_result("[\"x\",2,\"k\",4,true]");
}

/* A `try` around a fan-out is not around its branches: an element that does not fit is a branch that has failed, and
 * the handler runs once, when all have ended. */
static void an_element_that_does_not_fit_fails_its_branch(void **state) {
    hd_flow *f = flow("w");
    hd_flow_do(f, "seen = []");
    hd_flow_try(f);
    hd_flow_each(f, "a, b", "[(1, 2), 5, (3, 4), 6]");
    hd_flow_action(f, "r", "echo", "a");
    hd_flow_join(f, "given", "r");
    hd_flow_except(f, "TypeError", "e");
    hd_flow_do(f, "seen.append(str(e))");
    hd_flow_action(f, "z", "echo", "0");
    hd_flow_return(f, "seen");
    hd_flow_end(f);
    hd_flow_return(f, "given");
    register_flow(f);
    start("w", "{}");
    assert_result("[\"cannot unpack non-iterable int object\"]");
}

/* The result of a branch is computed at the BARRIER: a HANDLER for the last node of the branch is not asked. */
static void what_give_raises_is_what_the_branch_raises(void **state) {
    register_nodes(
        "w",
        "{'id':'f','kind':'FAN_HEAD','over':['list',1,2],'into':['name','i']},{'id':'a','kind':"
        "'ACTION','action':'echo','args':[['name','i']],'into':['name','r']},{'id':'h','kind':"
        "'HANDLER','clauses':[{}]},{'id':'no','kind':'CALC','do':[['assign',['list'],['name','r'"
        "]]]},{'id':'j','kind':'BARRIER','mode':'ordered','give':['//',['name','r'],0]},{'id':'o',"
        "'kind':'HANDLER','clauses':[{'classes':['ZeroDivisionError']}]},{'id':'caught','kind':"
        "'RETURN','value':'outside'},{'id':'out','kind':'RETURN'}",
        "['in','f'],['f','a','ELEM'],['a','h','EXCEPT'],['a','j','JOIN'],['h','no','GUARD',0],"
        "['no','j','JOIN'],['f','o','EXCEPT'],['j','out'],['o','caught','GUARD',0]");
    start("w", "{}");
    assert_result("\"outside\"");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_world, tear_down_world)

/* One line for each instance that has failed: which, why and where. A parent hears of its child. */
static void a_failure_is_logged_once(void **state) {
    register_nodes(
        "bad",
        "{'id':'r','kind':'RAISE','value':['new','ValueError',['oh\\nno']],'at':'shop.py:7'}",
        "['in','r']");
    register_nodes("calls",
                   "{'id':'c','kind':'CHILD','workflow':'bad'},{'id':'out','kind':'RETURN'}",
                   "['in','c'],['c','out']");
    register_nodes("waits", "{'id':'s','kind':'SLEEP','seconds':9},{'id':'out','kind':'RETURN'}",
                   "['in','s'],['s','out']");
    lab_env_log_clear(env);
    start_keyed("bad", "one", "{}");
    pump();
    assert_int_equal(lab_env_log_count(env), 1);
    assert_non_null(strstr(lab_env_log_line(env, 0),
                           "workflow instance bad/one has failed: "
                           "ValueError: oh no, at node \"r\" (shop.py:7)"));
    start_keyed("calls", "two", "{}");
    pump();
    assert_int_equal(lab_env_log_count(env), 2);
    assert_int_equal(lab_env_logged(env, "calls/two has failed: ValueError: oh no"), 1);
    start("waits", "{}");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    start("waits", "{}");
    advance(9000);
    assert_int_equal(lab_env_log_count(env), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_attribute_that_changes_is_stored),
        TEST(names_of_one_exception_stay_so),
        TEST(an_exception_may_contain_itself),
        TEST(a_chain_of_300_causes_is_kept),
        TEST(an_exception_that_nothing_holds_is_gone),
        TEST(what_a_branch_gives_is_the_exception),
        TEST(where_it_was_raised_is_kept),
        TEST(a_failure_is_logged_once),
        TEST(what_crosses_is_a_copy),
        TEST(a_document_with_exceptions_inside_is_read),
        TEST(an_element_that_does_not_fit_fails_its_branch),
        TEST(what_give_raises_is_what_the_branch_raises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
