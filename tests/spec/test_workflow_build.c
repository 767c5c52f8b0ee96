/* test_workflow_build.c -- workflows written with heddle/workflow_build.h: the same plan as IR by hand, the meaning of
 * every block, and what is said when a call is wrong. */
#define _GNU_SOURCE
#include "lab.h"
#include <heddle/workflow.h>
#include <heddle/workflow_build.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static lab_env *env;
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static hd_flow *flow;
static char said[400]; /* by the action "say", in order */
static int failures;   /* how often "fail" fails first */

static hd_status say(hd_action *a, hd_value args, void *ctx) {
    const char *word = hd_value_as_text(hd_value_index(args, 0), "?");
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s ", word);
    return hd_action_return(a, hd_value_index(args, 0));
}

static hd_status flaky(hd_action *a, hd_value args, void *ctx) {
    if (failures-- > 0) return hd_action_raise(a, "ValueError", "no");
    return hd_action_return(a, hd_int(NULL, 5));
}

static int set_up(void **state) {
    static const hd_action_spec actions[] = { { .name = "say", .fn = say, .here = true },
                                              { .name = "fail", .fn = flaky, .here = true } };
    hd_error error = { 0 };
    env = lab_env_open();
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(NULL, &options, &rt, &error), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, &error), HD_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(hd_action_register(engine, &actions[i]), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_flow_open(pool, "w", &flow), HD_OK);
    said[0] = 0;
    failures = 0;
    return 0;
}
static int tear_down(void **state) {
    hd_flow_close(flow);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    lab_env_close(env);
    return 0;
}

/* JSON with single quotes. */
static hd_value parse(const char *text) {
    hd_error error = { 0 };
    char *json = strdup(text);
    for (char *c = json; *c; c++)
        if (*c == '\'') *c = '"';
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    if (!hd_value_exists(v)) fail_msg("%s at %zu of %s", error.message, error.offset, json);
    free(json);
    return v;
}

static hd_value built(void) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(flow, &ir, &error)) fail_msg("%s", error.message);
    return ir;
}

static void assert_result(const char *input, const char *json) {
    hd_error error = { 0 };
    hd_value result;
    char id[HD_INSTANCE_ID_SIZE];
    hd_value ir = built();
    if (hd_workflow_register(engine, ir, NULL, &error))
        fail_msg("%s: %s", error.message, hd_json_print(pool, ir, HD_JSON_COMPACT, NULL));
    assert_int_equal(hd_workflow_start(engine, "w", parse(input), NULL, id), HD_OK);
    hd_status status = hd_workflow_await(engine, id, pool, &result);
    const char *text = hd_json_print(pool, result, HD_JSON_COMPACT, NULL);
    if (status && *json != '{') fail_msg("%s: %s", hd_status_name(status), text);
    assert_string_equal(text, json);
}

/* ---- the seed's example */

static const char by_hand[] =
    "{'heddle':1,'name':'data_pipeline','inputs':[{'name':'fan_out','default':8},{'name':'loop_"
    "iters',"
    "'default':4}],'functions':[{'name':'run','params':['fan_out','loop_iters'],'nodes':["
    "{'id':'entry','kind':'ENTRY'},"
    "{'id':'fetch_items','kind':'ACTION','action':'fetch_items','args':{'count':['name','fan_out']}"
    ","
    "'into':['name','items']},"
    "{'id':'fan','kind':'FAN_HEAD','over':['name','items'],'into':['name','item']},"
    "{'id':'process_item','kind':'ACTION','action':'process_item','args':[['name','item']],"
    "'into':['name','result']},"
    "{'id':'processed','kind':'BARRIER','mode':'ordered','give':['name','result'],'into':['name',"
    "'processed']},"
    "{'id':'iter_source','kind':'CALC','do':[['assign',['//',['call','len',[['name','processed']]],"
    "['name','loop_iters']],['name','chunk_size']],['assign',['list'],['name','results']]]},"
    "{'id':'loop_head','kind':'LOOP_HEAD','over':['call','range',[['name','loop_iters']]],'into':["
    "'name','chunk_id']},"
    "{'id':'chunk','kind':'CALC','do':[['assign',['slice',['name','processed'],['*',['name',"
    "'chunk_id'],['name','chunk_size']],['*',['+',['name','chunk_id'],1],['name','chunk_size']],"
    "null]"
    ",['name','chunk']]]},"
    "{'id':'validate_chunk','kind':'ACTION','action':'validate_chunk','args':{'chunk_id':['name',"
    "'chunk_id'],'items':['name','chunk']},'into':['name','is_valid']},"
    "{'id':'aggregate_chunk','kind':'ACTION','action':'aggregate_chunk','args':{'chunk_id':['name',"
    "'chunk_id'],'items':['name','chunk'],'is_valid':['name','is_valid']},'into':['name',"
    "'chunk_result']},"
    "{'id':'append','kind':'CALC','do':[['expr',['method',['name','results'],'append',[['name',"
    "'chunk_result']]]]]},"
    "{'id':'finalize','kind':'ACTION','action':'finalize','args':[['name','results']],'into':['"
    "name',"
    "'total']},"
    "{'id':'return','kind':'RETURN','value':['name','total']}],"
    "'edges':[['entry','fetch_items'],['fetch_items','fan'],['fan','process_item','ELEM'],"
    "['process_item','processed','JOIN'],['processed','iter_source'],['iter_source','loop_head'],"
    "['loop_head','chunk','CONTINUE'],['loop_head','finalize','BREAK'],['chunk','validate_chunk'],"
    "['validate_chunk','aggregate_chunk'],['aggregate_chunk','append'],['append','loop_head','BACK'"
    "],"
    "['finalize','return']]}]}";

static void write_pipeline(hd_flow *f) {
    hd_flow_input(f, "fan_out", hd_int(pool, 8));
    hd_flow_input(f, "loop_iters", hd_int(pool, 4));
    hd_flow_action(f, "items", "fetch_items", "count=fan_out");
    hd_flow_id(f, "fan");
    hd_flow_each(f, "item", "items");
    hd_flow_id(f, "process_item");
    hd_flow_action(f, "result", "process_item", "item");
    hd_flow_id(f, "processed");
    hd_flow_join(f, "processed", "result");
    hd_flow_id(f, "iter_source");
    hd_flow_do(f, "chunk_size = len(processed) // loop_iters; results = []");
    hd_flow_id(f, "loop_head");
    hd_flow_for(f, "chunk_id", "range(loop_iters)");
    hd_flow_id(f, "chunk");
    hd_flow_do(f, "chunk = processed[chunk_id * chunk_size:(chunk_id + 1) * chunk_size]");
    hd_flow_id(f, "validate_chunk");
    hd_flow_action(f, "is_valid", "validate_chunk", "chunk_id=chunk_id, items=chunk");
    hd_flow_id(f, "aggregate_chunk");
    hd_flow_action(f, "chunk_result", "aggregate_chunk",
                   "chunk_id=chunk_id, items=chunk, is_valid=is_valid");
    hd_flow_id(f, "append");
    hd_flow_do(f, "results.append(chunk_result)");
    hd_flow_end(f);
    hd_flow_action(f, "total", "finalize", "results");
    hd_flow_return(f, "total");
}

static void the_example_has_the_version_of_the_ir_by_hand(void **state) {
    char one[HD_ID_SIZE], other[HD_ID_SIZE];
    hd_error error = { 0 };
    hd_value ir;
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "data_pipeline", &f), HD_OK);
    write_pipeline(f);
    assert_int_equal(hd_flow_ir(f, &ir, &error), HD_OK);
    assert_int_equal(hd_workflow_register(engine, parse(by_hand), one, &error), HD_OK);
    assert_int_equal(hd_workflow_register(engine, ir, other, &error), HD_OK);
    assert_string_equal(one, other);
    hd_flow_close(f);
}

/* ---- blocks */

static void keys_with_a_dollar_are_kept(void **state) {
    hd_flow_input(flow, "v", hd_object());
    hd_flow_return(flow, "[sorted(v), v['$schema']]");
    /* In JSON text a dollar of the program's own is doubled; the value has one. */
    assert_result("{'v':{'$$schema':'x','type':'object'}}", "[[\"$schema\",\"type\"],\"x\"]");
}

static void alternatives_are_tried_in_order(void **state) {
    hd_flow_input(flow, "n", hd_int(pool, 0));
    hd_flow_if(flow, "n < 0");
    hd_flow_do(flow, "r = 'less'");
    hd_flow_elif(flow, "n == 0");
    hd_flow_do(flow, "r = 'none'");
    hd_flow_else(flow);
    hd_flow_return(flow, "'more'");
    hd_flow_end(flow);
    hd_flow_return(flow, "r");
    assert_result("{'n':0}", "\"none\"");
    assert_result("{'n':-1}", "\"less\"");
    assert_result("{'n':1}", "\"more\"");
}

static void loops_break_and_continue(void **state) {
    hd_flow_do(flow, "seen = []; n = 0");
    hd_flow_while(flow, "True");
    hd_flow_do(flow, "n += 1");
    hd_flow_if(flow, "n == 2");
    hd_flow_continue(flow);
    hd_flow_end(flow);
    hd_flow_for(flow, "a, b", "[(n, 1), (n, 2), (n, 3)]");
    hd_flow_if(flow, "b == 3");
    hd_flow_break(flow);
    hd_flow_end(flow);
    hd_flow_do(flow, "seen.append(a * 10 + b)");
    hd_flow_end(flow);
    hd_flow_if(flow, "n > 3");
    hd_flow_break(flow);
    hd_flow_end(flow);
    hd_flow_end(flow);
    hd_flow_return(flow, "seen");
    assert_result("{}", "[11,12,31,32,41,42]");
}

static void an_exception_is_caught_by_its_class(void **state) {
    failures = 1;
    hd_flow_try(flow);
    hd_flow_action(flow, "r", "fail", NULL);
    hd_flow_except(flow, "KeyError, OSError", NULL);
    hd_flow_return(flow, "1");
    hd_flow_except(flow, "ValueError", "e");
    hd_flow_return(flow, "f'caught {e}'");
    hd_flow_end(flow);
    hd_flow_return(flow, "r");
    assert_result("{}", "\"caught no\"");
}

/* `return` in a try whose finally acts: the value is that of before, and finally is done once. */
static void finally_is_done_on_every_way_out(void **state) {
    hd_flow_input(flow, "way", hd_string(pool, "on"));
    hd_flow_do(flow, "x = 1");
    hd_flow_for(flow, "i", "range(2)");
    hd_flow_try(flow);
    hd_flow_try(flow);
    hd_flow_if(flow, "way == 'return'");
    hd_flow_return(flow, "x");
    hd_flow_elif(flow, "way == 'break'");
    hd_flow_break(flow);
    hd_flow_elif(flow, "way == 'continue'");
    hd_flow_continue(flow);
    hd_flow_elif(flow, "way == 'raise'");
    hd_flow_raise(flow, "KeyError('k')");
    hd_flow_end(flow);
    hd_flow_action(flow, NULL, "say", "'body'");
    hd_flow_finally(flow);
    hd_flow_do(flow, "x = 2");
    hd_flow_action(flow, NULL, "say", "'inner'");
    hd_flow_end(flow);
    hd_flow_finally(flow);
    hd_flow_action(flow, NULL, "say", "'outer'");
    hd_flow_end(flow);
    hd_flow_end(flow);
    hd_flow_return(flow, "'end'");
    assert_result("{'way':'on'}", "\"end\"");
    assert_string_equal(said, "body inner outer body inner outer ");
    said[0] = 0;
    assert_result("{'way':'return'}", "1");
    assert_string_equal(said, "inner outer ");
    said[0] = 0;
    assert_result("{'way':'break'}", "\"end\"");
    assert_string_equal(said, "inner outer ");
    said[0] = 0;
    assert_result("{'way':'continue'}", "\"end\"");
    assert_string_equal(said, "inner outer inner outer ");
    said[0] = 0;
    assert_result("{'way':'raise'}",
                  "{\"$$error\":\"KeyError\",\"args\":[\"k\"],\"message\":\"'k'\"}");
    assert_string_equal(said, "inner outer ");
}

/* hd_flow_id: a finally stands on each way out, the first with the id. */
static void leave(bool breaks) {
    if (breaks) hd_flow_break(flow);
    else hd_flow_continue(flow);
}

/* `for: try: break`, or continue, with an except clause (0), finally (1), or both. */
static void leave_a_block(bool breaks, int clauses) {
    hd_flow_for(flow, "i", "range(2)");
    hd_flow_try(flow);
    leave(breaks);
    if (clauses != 1) {
        hd_flow_except(flow, NULL, NULL);
        hd_flow_action(flow, NULL, "say", "'never'");
    }
    if (clauses != 0) {
        hd_flow_finally(flow);
        hd_flow_action(flow, NULL, "say", "'out'");
    }
    hd_flow_end(flow);
    hd_flow_end(flow);
    hd_flow_return(flow, "7");
}

/* What cannot be reached is not part of the IR: a block that raises nothing, and a loop that ends in its first turn. */
static void what_cannot_be_reached_is_left_out(void **state) {
    for (int i = 0; i < 6; i++) {
        static const char *const finals[] = { "out out ", "out " };
        hd_flow_close(flow);
        assert_int_equal(hd_flow_open(pool, "w", &flow), HD_OK);
        said[0] = 0;
        leave_a_block(i % 2, i / 2);
        assert_result("{}", "7");
        assert_string_equal(said, i / 2 ? finals[i % 2] : "");
    }
    for (int i = 0; i < 2; i++) {
        hd_flow_close(flow);
        assert_int_equal(hd_flow_open(pool, "w", &flow), HD_OK);
        said[0] = 0;
        hd_flow_try(flow);
        if (i) hd_flow_finally(flow);
        else hd_flow_except(flow, NULL, NULL);
        hd_flow_action(flow, NULL, "say", "'x'");
        hd_flow_end(flow);
        hd_flow_return(flow, "7");
        assert_result("{}", "7");
        assert_string_equal(said, i ? "x " : "");
    }
}

static void a_loop_may_end_in_its_first_turn(void **state) {
    hd_flow_for(flow, "i", "[5, 6]");
    hd_flow_action(flow, NULL, "say", "i");
    hd_flow_break(flow);
    hd_flow_end(flow);
    hd_flow_while(flow, "True");
    hd_flow_break(flow);
    hd_flow_end(flow);
    hd_flow_return(flow, "i");
    assert_result("{}", "5");
}

/* A finally is made once for each way out, and so is what it contains. */
static void a_flow_with_too_many_nodes_is_refused_early(void **state) {
    hd_value ir;
    hd_error error = { 0 };
    for (int i = 0; i < 60; i++) {
        hd_flow_try(flow);
        hd_flow_action(flow, NULL, "say", "'a'");
        hd_flow_finally(flow);
    }
    hd_flow_action(flow, NULL, "say", "'b'");
    for (int i = 0; i < 60; i++) hd_flow_end(flow);
    assert_int_equal(hd_flow_ir(flow, &ir, &error), HD_LIMIT);
    assert_non_null(strstr(error.message, "more than 100000 nodes"));
}

static void a_step_of_a_finally_may_have_an_id(void **state) {
    hd_value ir;
    hd_error error = { 0 };
    hd_flow_try(flow);
    hd_flow_action(flow, NULL, "say", "'body'");
    hd_flow_finally(flow);
    hd_flow_id(flow, "undo");
    hd_flow_action(flow, NULL, "say", "'undo'");
    hd_flow_end(flow);
    if (hd_flow_ir(flow, &ir, &error)) fail_msg("%s", error.message);
    const char *text = hd_json_print(pool, ir, HD_JSON_COMPACT, NULL);
    assert_non_null(strstr(text, "\"id\":\"undo\""));
    assert_non_null(strstr(text, "\"id\":\"undo.2\""));
    assert_result("{}", "null");
    assert_string_equal(said, "body undo ");
}

/* Nodes that the builder adds (MERGE, the HANDLERs and the RAISE of a try, copies of a finally) have ids of their own,
 * whatever the actions of the user are called. */
static void n_raise(hd_flow *f) {
    hd_flow_try(f);
    hd_flow_raise(f, "ValueError('x')");
    hd_flow_finally(f);
    hd_flow_do(f, "z = 1");
    hd_flow_end(f);
}
static void n_action_in_try(hd_flow *f) {
    static const char *const names[] = {
        "raise", "raise.2", "except", "finally", "done", "raised"
    };
    hd_flow_try(f);
    for (int i = 0; i < 6; i++) hd_flow_action(f, NULL, names[i], NULL);
    hd_flow_except(f, "KeyError", NULL);
    for (int i = 0; i < 6; i++) hd_flow_action(f, NULL, names[i], NULL);
    hd_flow_return(f, "1");
    hd_flow_finally(f);
    for (int i = 0; i < 6; i++) hd_flow_action(f, NULL, names[i], NULL);
    hd_flow_end(f);
}
static void n_merge(hd_flow *f) {
    hd_flow_action(f, NULL, "merge", NULL);
    hd_flow_if(f, "1");
    hd_flow_action(f, NULL, "merge", NULL);
    hd_flow_end(f);
    hd_flow_action(f, NULL, "merge.2", NULL);
}
static void n_merge_behind_if(hd_flow *f) {
    hd_flow_if(f, "1");
    hd_flow_do(f, "z = 1");
    hd_flow_end(f);
    hd_flow_action(f, NULL, "merge", NULL);
}
static void n_merge_given(hd_flow *f) {
    hd_flow_if(f, "1");
    hd_flow_do(f, "z = 1");
    hd_flow_end(f);
    hd_flow_id(f, "merge");
    hd_flow_do(f, "z = 2");
}
static void n_raise_given(hd_flow *f) {
    hd_flow_id(f, "try/raise");
    hd_flow_do(f, "z = 1");
    hd_flow_id(f, "try/except");
    hd_flow_do(f, "z = 1");
    hd_flow_id(f, "try");
    hd_flow_try(f);
    hd_flow_do(f, "z = 1");
    hd_flow_except(f, NULL, NULL);
    hd_flow_do(f, "z = 1");
    hd_flow_finally(f);
    hd_flow_do(f, "z = 2");
    hd_flow_end(f);
}
static void n_try_in_finally(hd_flow *f) { /* lowered twice, with the id that is given once */
    hd_flow_try(f);
    hd_flow_do(f, "z = 1");
    hd_flow_finally(f);
    hd_flow_id(f, "undo");
    hd_flow_try(f);
    hd_flow_do(f, "z = 1");
    hd_flow_except(f, NULL, NULL);
    hd_flow_do(f, "z = 1");
    hd_flow_finally(f);
    hd_flow_do(f, "z = 2");
    hd_flow_end(f);
    hd_flow_end(f);
}
static void n_value_and_join(hd_flow *f) {
    hd_flow_try(f);
    hd_flow_action(f, NULL, "value", NULL);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "join", NULL);
    hd_flow_branch(f);
    hd_flow_action(f, NULL, "gather", NULL);
    hd_flow_join(f, NULL, "1");
    hd_flow_action(f, NULL, "join", NULL);
    hd_flow_return(f, "1");
    hd_flow_finally(f);
    hd_flow_action(f, NULL, "value", NULL);
    hd_flow_action(f, NULL, "finally1/value", NULL);
    hd_flow_end(f);
}
static void ids_of_the_builder_never_meet_those_of_the_user(void **state) {
    static void (*const writes[])(hd_flow *) = {
        n_raise,       n_action_in_try, n_merge,          n_merge_behind_if,
        n_merge_given, n_raise_given,   n_try_in_finally, n_value_and_join,
    };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        hd_value ir;
        hd_error error = { 0 };
        hd_flow *f;
        assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
        writes[i](f);
        if (hd_flow_ir(f, &ir, &error)) fail_msg("%zu: %s", i, error.message);
        if (hd_workflow_register(engine, ir, NULL, &error))
            fail_msg("%zu: %s: %s", i, error.message,
                     hd_json_print(pool, ir, HD_JSON_COMPACT, NULL));
        hd_flow_close(f);
    }
}

/* Ids are not cut while they are made, so that the numbers behind them count: the registration refuses the long
 * ones. */
static void two_steps_of_a_long_name_have_two_ids(void **state) {
    char name[700];
    hd_value ir;
    hd_error error = { 0 };
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < 2; i++) hd_flow_action(flow, NULL, name, NULL);
    assert_int_equal(hd_flow_ir(flow, &ir, &error), HD_OK);
    assert_int_equal(hd_workflow_register(engine, ir, NULL, &error), HD_SYNTAX);
    assert_non_null(strstr(error.message, "200 bytes"));
}

static void branches_run_side_by_side_and_are_joined(void **state) {
    hd_flow_gather(flow);
    hd_flow_branch(flow);
    hd_flow_sleep(flow, "10");
    hd_flow_action(flow, "r", "say", "'a'");
    hd_flow_branch(flow);
    hd_flow_action(flow, "r", "say", "'b'");
    hd_flow_join(flow, "first, second", "r");
    hd_flow_each(flow, "n", "range(5)");
    hd_flow_window(flow, 2);
    hd_flow_if(flow, "n % 2");
    hd_flow_do(flow, "n = -n");
    hd_flow_end(flow);
    hd_flow_join(flow, "rest", "n");
    hd_flow_mode(flow, "settled");
    hd_flow_return(flow, "[first, second, rest]");
    assert_result("{}", "[\"a\",\"b\",[0,-1,2,-3,4]]");
    assert_string_equal(said, "b a ");
}

static void a_function_is_called_with_a_frame_of_its_own(void **state) {
    hd_flow_do(flow, "n = 5");
    hd_flow_call(flow, "r", "fact", "n");
    hd_flow_return(flow, "(n, r)[1]");
    hd_flow_function(flow, "fact", "n");
    hd_flow_if(flow, "n < 2");
    hd_flow_return(flow, "1");
    hd_flow_end(flow);
    hd_flow_call(flow, "less", "fact", "n - 1");
    hd_flow_return(flow, "n * less");
    assert_result("{}", "120");
}

static void an_action_is_tried_again_as_it_says(void **state) {
    failures = 2;
    hd_flow_action(flow, "r", "fail", NULL);
    hd_flow_retried(flow, &(hd_flow_retry){ .attempts = 3, .backoff_s = 60, .on = "ValueError" });
    hd_flow_return(flow, "r");
    assert_result("{}", "5");
}

static void a_wait_ends_with_its_timeout(void **state) {
    hd_flow_try(flow);
    hd_flow_wait(flow, "x", "go", "30 * 86400");
    hd_flow_except(flow, "TimeoutError", NULL);
    hd_flow_return(flow, "'late'");
    hd_flow_end(flow);
    hd_flow_return(flow, "x");
    assert_result("{}", "\"late\"");
}

static void a_step_that_fails_names_its_line(void **state) {
    hd_error error = { 0 };
    int line = __LINE__ + 1;
    hd_flow_return(flow, "nothing");
    char expected[80];
    snprintf(expected, sizeof expected, "test_workflow_build.c:%d", line);
    assert_int_equal(hd_workflow_register(engine, built(), NULL, &error), HD_SYNTAX);
    assert_non_null(strstr(error.message, expected));
}

/* ---- problems */

static void w_text(hd_flow *f) { hd_flow_do(f, "a = = 1"); }
static void w_args(hd_flow *f) { hd_flow_action(f, "r", "say", "1, x=2"); }
static void w_args_twice(hd_flow *f) { hd_flow_action(f, "r", "say", "x=1, x=2"); }
static void w_column(hd_flow *f) { hd_flow_action(f, "r", "say", "1 +"); }
static void w_target(hd_flow *f) { hd_flow_action(f, "1", "say", NULL); }
static void w_else(hd_flow *f) { hd_flow_else(f); }
static void w_end(hd_flow *f) { hd_flow_end(f); }
static void w_open(hd_flow *f) { hd_flow_while(f, "True"); }
static void w_break(hd_flow *f) { hd_flow_break(f); }
static void w_join(hd_flow *f) { hd_flow_join(f, "a", "b"); }
static void w_retry(hd_flow *f) { hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2 }); }
static void w_after(hd_flow *f) {
    hd_flow_return(f, "1");
    hd_flow_do(f, "a = 1");
}
static void w_try(hd_flow *f) {
    hd_flow_try(f);
    hd_flow_do(f, "a = 1");
    hd_flow_end(f);
}
static void w_two_else(hd_flow *f) {
    hd_flow_if(f, "1");
    hd_flow_else(f);
    hd_flow_else(f);
    hd_flow_end(f);
}
static void w_return_in_branch(hd_flow *f) {
    hd_flow_each(f, "i", "range(2)");
    hd_flow_return(f, "i");
    hd_flow_join(f, "given", "i");
}
static void w_end_of_branches(hd_flow *f) {
    hd_flow_each(f, "i", "range(2)");
    hd_flow_end(f);
}
static void w_no_end_of_branch(hd_flow *f) {
    hd_flow_each(f, "i", "range(2)");
    hd_flow_raise(f, "ValueError(i)");
    hd_flow_join(f, NULL, NULL);
}
static void w_gather(hd_flow *f) {
    hd_flow_gather(f);
    hd_flow_join(f, "a", "b");
}
static void w_two_of_one_id(hd_flow *f) {
    hd_flow_id(f, "a");
    hd_flow_do(f, "1");
    hd_flow_id(f, "a");
    hd_flow_do(f, "2");
}
static void w_schema(hd_flow *f) { hd_flow_schema(f, hd_object()); }

static void w_keep(hd_flow *f) { hd_flow_keep(f, -1, 0); }
static void w_step_in_gather(hd_flow *f) {
    hd_flow_gather(f);
    hd_flow_do(f, "a = 1");
    hd_flow_branch(f);
    hd_flow_join(f, "x", "1");
}
static void w_input(hd_flow *f) { hd_flow_input(f, "a b", hd_null()); }
static void w_input_keyword(hd_flow *f) { hd_flow_input(f, "class", hd_null()); }
static void w_input_built_in(hd_flow *f) { hd_flow_input(f, "len", hd_null()); }
static void w_input_path(hd_flow *f) { hd_flow_input(f, "a.b", hd_null()); }
static void w_input_twice(hd_flow *f) {
    hd_flow_input(f, "a", hd_null());
    hd_flow_input(f, "a", hd_null());
}
static void w_function_twice(hd_flow *f) {
    hd_flow_function(f, "g", NULL);
    hd_flow_function(f, "g", NULL);
}
static void w_parameter_twice(hd_flow *f) { hd_flow_function(f, "g", "a, b, a"); }
static void w_parameter(hd_flow *f) { hd_flow_function(f, "g", "len"); }
static void w_except(hd_flow *f, const char *first) {
    hd_flow_try(f);
    hd_flow_do(f, "x = 1");
    hd_flow_except(f, first, NULL);
    hd_flow_except(f, "OSError", NULL);
    hd_flow_end(f);
}
static void w_except_behind_all(hd_flow *f) { w_except(f, NULL); }
static void w_except_behind_none(hd_flow *f) { w_except(f, ""); }
static void w_except_as(hd_flow *f) {
    hd_flow_try(f);
    hd_flow_do(f, "x = 1");
    hd_flow_except(f, NULL, "len");
    hd_flow_end(f);
}
static void w_last_id(hd_flow *f) {
    hd_flow_do(f, "x = 1");
    hd_flow_id(f, "last");
}
static void w_two_ids(hd_flow *f) {
    hd_flow_id(f, "a");
    hd_flow_id(f, "b");
    hd_flow_do(f, "x = 1");
}
static void w_id_of_function(hd_flow *f) {
    hd_flow_id(f, "a");
    hd_flow_function(f, "g", NULL);
}
static void w_id_of_break(hd_flow *f) {
    hd_flow_while(f, "True");
    hd_flow_id(f, "a");
    hd_flow_break(f);
    hd_flow_end(f);
}
static void w_id_of_continue(hd_flow *f) {
    hd_flow_for(f, "i", "range(2)");
    hd_flow_id(f, "a");
    hd_flow_continue(f);
    hd_flow_end(f);
}
static void w_cell(hd_flow *f) {
    hd_flow_wait_for(f, "r", "'main/x'", "value > 1", "cell='main/y'", 2);
}
static void w_until(hd_flow *f) {
    hd_flow_wait_for(f, "r", "'main/x'", "value > 1", "until='False'", 2);
}
static void w_value(hd_flow *f) { hd_flow_wait_for(f, "r", "'main/x'", "value > 1", "value=9", 2); }
static void w_condition(hd_flow *f) {
    hd_flow_wait_for(f, "r", "'main/x'", "any(v > limit for v in value)", "low=1", 2);
}

static void no_time(hd_flow *f) { hd_flow_keep(f, NAN, 0); }
static void time_before(hd_flow *f) { hd_flow_keep(f, -1, 5); }
static void no_timeout(hd_flow *f) {
    hd_flow_action(f, NULL, "say", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .timeout_s = NAN });
}
static void no_end(hd_flow *f) {
    hd_flow_action(f, NULL, "say", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .timeout_s = INFINITY });
}

/* Numbers that are no times are refused, and never mean that there is no bound. */
static void seconds_are_numbers_of_seconds(void **state) {
    static void (*const writes[])(hd_flow *) = { no_time, time_before, no_timeout, no_end };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        hd_flow *f;
        hd_value ir;
        hd_error error = { 0 };
        assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
        writes[i](f);
        hd_flow_return(f, "1");
        hd_status status = hd_flow_ir(f, &ir, &error);
        if (!status) status = hd_workflow_register(engine, ir, NULL, &error);
        hd_flow_close(f);
        if (!status || !strstr(error.message, "number of seconds"))
            fail_msg("%zu: %s", i, error.message);
    }
}

static void what_is_wrong_is_said_with_call_and_line(void **state) {
    static const struct {
        void (*write)(hd_flow *f);
        const char *why;
    } rows[] = {
        { w_text, "hd_flow_do: line 1, column 5: expected an expression" },
        { w_args, "hd_flow_action: arguments are all by name or all by place" },
        { w_args_twice, "the argument \"x\" is given twice" },
        { w_column, "hd_flow_action: line 1, column 4: expected an expression" },
        { w_target, "this cannot be assigned to" },
        { w_else, "hd_flow_else: there is no if above it" },
        { w_end, "hd_flow_end: no block is open" },
        { w_open, "hd_flow_while: the block is not ended" },
        { w_break, "hd_flow_break: there is no loop around it" },
        { w_join, "there is no each or gather above it" },
        { w_retry, "the call before it is no action" },
        { w_after, "hd_flow_do: nothing leads here" },
        { w_try, "a try has an except or a finally" },
        { w_two_else, "the else above it was the last alternative" },
        { w_return_in_branch, "a branch cannot return" },
        { w_end_of_branches, "branches are ended by hd_flow_join" },
        { w_no_end_of_branch, "hd_flow_join: no branch comes to its end" },
        { w_gather, "the gather above it has no branch" },
        { w_schema, "there is no input yet" },
        { w_keep, "hd_flow_keep: -1 is no number of seconds" },
        { w_step_in_gather, "a step stands between hd_flow_gather and the first hd_flow_branch" },
        { w_input, "hd_flow_input: line 1, column 3: 'b' is not expected here" },
        { w_input_keyword, "hd_flow_input: line 1, column 1: expected an expression, not 'class'" },
        { w_input_built_in, "'len' is built in and cannot be assigned" },
        { w_input_path, "the name \"a.b\" is no name" },
        { w_input_twice, "there is an input \"a\" already" },
        { w_function_twice, "hd_flow_function: there is a function g already" },
        { w_parameter_twice, "there is a parameter \"a\" already" },
        { w_parameter, "'len' is built in" },
        { w_except_behind_all, "the except above it takes every exception" },
        { w_except_behind_none, "the except above it takes every exception" },
        { w_except_as, "'len' is built in" },
        { w_last_id, "hd_flow_id: no step stands behind it" },
        { w_two_ids, "hd_flow_id: no step stands behind it" },
        { w_id_of_function, "hd_flow_id: no step stands behind it" },
        { w_id_of_break, "hd_flow_id: no step stands behind it" },
        { w_id_of_continue, "hd_flow_id: no step stands behind it" },
        { w_cell, "the names of a condition cannot have \"cell\"" },
        { w_until, "the names of a condition cannot have \"until\"" },
        { w_value, "the names of a condition cannot have \"value\"" },
        { w_condition, "the condition reads \"limit\", which is not among `names`" },
        { w_two_of_one_id, "hd_flow_do: there is another node \"a\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hd_flow *f;
        hd_value ir;
        hd_error error = { 0 }, problem;
        assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
        rows[i].write(f);
        hd_status status = hd_flow_ir(f, &ir, &error);
        bool kept = hd_flow_problem(f, 0, &problem);
        hd_flow_close(f);
        if (!status || !strstr(error.message, rows[i].why)) fail_msg("%zu: %s", i, error.message);
        assert_true(kept);
        assert_false(hd_value_exists(ir));
        assert_non_null(strstr(error.message, "test_workflow_build.c:"));
    }
}

static void a_call_with_too_few_arguments_is_refused(void **state) {
    hd_error error = { 0 };
    hd_flow_call(flow, "x", "half", "1");
    hd_flow_function(flow, "half", "a, b");
    hd_flow_return(flow, "a");
    assert_int_equal(hd_workflow_register(engine, built(), NULL, &error), HD_SYNTAX);
    assert_non_null(strstr(error.message, "half takes 2 arguments, 1 is given"));
}

/* What a condition binds itself is no name that it lacks. */
static void a_condition_may_have_names_of_its_own(void **state) {
    hd_error error = { 0 };
    hd_flow_wait_for(flow, "r", "'main/x'", "any(v > low for v in value) and (n := value) and n",
                     "low=1", 2);
    assert_int_equal(hd_workflow_register(engine, built(), NULL, &error), HD_OK);
}

/* Texts that a call cannot do without. */
static void say_without(hd_flow *f, int call, const char *t) {
    switch (call) {
    case 0: hd_flow_input(f, t, hd_null()); break;
    case 1: hd_flow_do(f, t); break;
    case 2: hd_flow_action(f, NULL, t, NULL); break;
    case 3: hd_flow_sleep(f, t); break;
    case 4: hd_flow_sleep_until(f, t); break;
    case 5: hd_flow_wait(f, NULL, t, NULL); break;
    case 6: hd_flow_send(f, t, "1"); break;
    case 7: hd_flow_send(f, "1", t); break;
    case 8: hd_flow_wait_for(f, NULL, t, "True", NULL, 0); break;
    case 9: hd_flow_wait_for(f, NULL, "1", t, NULL, 0); break;
    case 10: hd_flow_child(f, NULL, t, NULL); break;
    case 11: hd_flow_limit(f, t, 1); break;
    case 12: hd_flow_queue(f, t); break;
    case 13: hd_flow_journal(f, t); break;
    case 14: hd_flow_if(f, t), hd_flow_end(f); break;
    case 15: hd_flow_if(f, "1"), hd_flow_elif(f, t), hd_flow_end(f); break;
    case 16: hd_flow_while(f, t), hd_flow_end(f); break;
    case 17: hd_flow_for(f, "i", t), hd_flow_end(f); break;
    case 18: hd_flow_each(f, "i", t), hd_flow_join(f, NULL, NULL); break;
    case 19: hd_flow_each(f, "i", "[]"), hd_flow_join(f, NULL, NULL), hd_flow_mode(f, t); break;
    case 20: hd_flow_call(f, NULL, t, NULL); break;
    case 21: hd_flow_id(f, t), hd_flow_do(f, "1"); break;
    case 22: hd_flow_function(f, t, NULL); break;
    default: fail();
    }
}

static void a_text_that_is_missing_or_no_text_is_a_problem(void **state) {
    for (int call = 0; call <= 22; call++)
        for (int no_text = 0; no_text < 2; no_text++) {
            hd_flow *f;
            hd_value ir;
            hd_error error = { 0 };
            assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
            hd_flow_action(f, NULL, "a", NULL);
            say_without(f, call, no_text ? "\xff" : NULL);
            hd_status status = hd_flow_ir(f, &ir, &error);
            hd_flow_close(f);
            if (status != (no_text ? HD_SYNTAX : HD_USAGE) || !strstr(error.message, ": hd_flow_"))
                fail_msg("%d: %s %s", call, hd_status_name(status), error.message);
        }
    hd_flow_action(flow, NULL, "a", NULL);
    hd_flow_retried(flow, NULL);
    hd_error error = { 0 };
    hd_value ir;
    assert_int_equal(hd_flow_ir(flow, &ir, &error), HD_USAGE);
    assert_non_null(strstr(error.message, "no hd_flow_retry is given"));
}

static void a_flow_without_a_name_is_a_problem(void **state) {
    static const char *const names[] = { NULL, "\xff" };
    for (int i = 0; i < 2; i++) {
        hd_flow *f;
        hd_value ir;
        hd_error error = { 0 };
        assert_int_equal(hd_flow_open(pool, names[i], &f), HD_OK);
        hd_flow_return(f, NULL);
        assert_int_equal(hd_flow_ir(f, &ir, &error), i ? HD_SYNTAX : HD_USAGE);
        assert_non_null(strstr(error.message, "hd_flow_open: "));
        hd_flow_close(f);
    }
}

static void every_problem_is_kept(void **state) {
    hd_error error = { 0 }, problem;
    hd_value ir;
    hd_flow_do(flow, "1 +");
    hd_flow_else(flow);
    hd_flow_action(flow, "x", "say", ")");
    assert_int_equal(hd_flow_ir(flow, &ir, &error), HD_SYNTAX);
    assert_non_null(strstr(error.message, "(and 2 more)"));
    assert_true(hd_flow_problem(flow, 2, &problem));
    assert_non_null(strstr(problem.message, "hd_flow_action"));
    assert_false(hd_flow_problem(flow, 3, &problem));
}

static void every_failed_allocation_is_reported(void **state) {
    bool done = false;
    for (uint64_t n = 1; !done && n < 20000; n++) {
        lab_env *small = lab_env_open();
        hd_heap *heap;
        hd_pool *p = NULL;
        hd_flow *f;
        hd_value ir;
        lab_env_fail_from(small, n);
        hd_status status = hd_heap_open(lab_env_of(small), NULL, &heap);
        if (!status) {
            status = hd_pool_open(heap, &p);
            if (!status) status = hd_flow_open(p, "data_pipeline", &f);
            if (!status) {
                hd_pool *before = pool;
                pool = p;
                write_pipeline(f);
                pool = before;
                status = hd_flow_ir(f, &ir, NULL);
                hd_flow_close(f);
            }
            if (p) hd_pool_close(p);
            hd_heap_close(heap);
        }
        if (status && status != HD_NOMEM) fail_msg("%d: %s", (int)n, hd_status_name(status));
        done = !status;
        assert_int_equal(lab_env_blocks(small), 0);
        lab_env_close(small);
    }
    assert_true(done);
}

/* The function of a map belongs to the expression; a loop takes its elements later. */
static void a_loop_over_code_that_runs_later_is_unsupported(void **state) {
    static const char *const all[] = { "map(lambda v: v * 2, [1, 2])", "filter(lambda v: v, [1])",
                                       "enumerate(map(lambda v: v, [1]))", "(v * 2 for v in [1])",
                                       "map(str.upper, ['a'])" };
    for (size_t i = 0; i < 2 * (sizeof all / sizeof *all); i++) {
        hd_flow_close(flow);
        assert_int_equal(hd_flow_open(pool, "w", &flow), HD_OK);
        if (i % 2) hd_flow_for(flow, "x", all[i / 2]);
        else hd_flow_each(flow, "x", all[i / 2]);
        hd_flow_sleep(flow, "0");
        if (i % 2) hd_flow_end(flow);
        else hd_flow_join(flow, NULL, NULL);
        hd_flow_return(flow, "1");
        char id[HD_INSTANCE_ID_SIZE];
        hd_value why;
        assert_int_equal(hd_workflow_register(engine, built(), NULL, NULL), HD_OK);
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, id), HD_OK);
        assert_int_equal(hd_workflow_await(engine, id, pool, &why), HD_FAILED);
        assert_string_equal(hd_value_as_text(hd_value_at(why, "$error"), ""), "Unsupported");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_example_has_the_version_of_the_ir_by_hand),
        TEST(keys_with_a_dollar_are_kept),
        TEST(alternatives_are_tried_in_order),
        TEST(loops_break_and_continue),
        TEST(an_exception_is_caught_by_its_class),
        TEST(finally_is_done_on_every_way_out),
        TEST(what_cannot_be_reached_is_left_out),
        TEST(a_loop_may_end_in_its_first_turn),
        TEST(a_flow_with_too_many_nodes_is_refused_early),
        TEST(a_step_of_a_finally_may_have_an_id),
        TEST(ids_of_the_builder_never_meet_those_of_the_user),
        TEST(two_steps_of_a_long_name_have_two_ids),
        TEST(branches_run_side_by_side_and_are_joined),
        TEST(a_function_is_called_with_a_frame_of_its_own),
        TEST(an_action_is_tried_again_as_it_says),
        TEST(a_wait_ends_with_its_timeout),
        TEST(a_step_that_fails_names_its_line),
        TEST(seconds_are_numbers_of_seconds),
        TEST(what_is_wrong_is_said_with_call_and_line),
        TEST(a_call_with_too_few_arguments_is_refused),
        TEST(a_condition_may_have_names_of_its_own),
        TEST(a_text_that_is_missing_or_no_text_is_a_problem),
        TEST(a_flow_without_a_name_is_a_problem),
        TEST(every_problem_is_kept),
        TEST(every_failed_allocation_is_reported),
        TEST(a_loop_over_code_that_runs_later_is_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
