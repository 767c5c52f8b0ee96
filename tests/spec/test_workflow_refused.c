/* test_workflow_refused.c -- IR that could not run: every construct that registration refuses, with what is wrong, the
 * node and its position in the source; and IR by strangers: very large, very deep, of the wrong shape. */
#define _GNU_SOURCE
#include "lab.h"
#include <heddle/workflow.h>

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

static int set_up(void **state) {
    env = lab_env_open();
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    return 0;
}
static int tear_down(void **state) {
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

static hd_status try(hd_value ir, hd_error *error) {
    *error = (hd_error){ 0 };
    hd_status status = hd_workflow_register(engine, ir, NULL, error);
    if (status) assert_true(error->message[0] != 0);
    assert_null(
        strstr(error->message, "no position")); /* of IR that was written by hand, which has none */
    return status;
}

/* ---- of the document */

static void documents_of_another_shape_are_refused(void **state) {
    static const char *const documents[][2] = {
        { "5", "" },
        { "[]", "" },
        { "{}", "has \"heddle\": 1" },
        { "{'heddle':'1','name':'w','functions':[]}", "has \"heddle\": 1" },
        { "{'heddle':1.5,'name':'w','functions':[]}", "has \"heddle\": 1" },
        { "{'heddle':2,'name':'w','functions':[]}", "IR of version 1" },
        { "{'heddle':1,'functions':[]}", "name" },
        { "{'heddle':1,'name':'a/b','functions':[]}", "letters, digits" },
        { "{'heddle':1,'name':'','functions':[]}", "name" },
        { "{'heddle':1,'name':'w'}", "functions" },
        { "{'heddle':1,'name':'w','functions':[]}", "at least one" },
        { "{'heddle':1,'name':'w','functions':{}}", "functions" },
        { "{'heddle':1,'name':'w','functions':[5]}", "" },
        { "{'heddle':1,'name':'w','donut':1,'functions':[]}", "donut" },
        { "{'heddle':1,'name':'w','inputs':5,'functions':[{'name':'run','nodes':[],'edges':[]}]}",
          "inputs" },
        { "{'heddle':1,'name':'w','inputs':[{'default':1}],'functions':[{'name':'run','nodes':[],'"
          "edges':"
          "[]}]}",
          "" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[],'edges':[]}]}", "ENTRY" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':5,'edges':[]}]}", "list" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[],'edges':5}]}", "list" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[5],'edges':[]}]}", "" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','params':5,'nodes':[],'edges':[]}]}",
          "list of names" },
        { "{'heddle':1,'name':'w','inputs':[{'default':1}],'functions':[{'name':'run','nodes':[{'"
          "id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
          "an input has a" },
        { "{'heddle':1,'name':'w','inputs':[{'name':'a','donut':1}],'functions':[{'name':'run','"
          "nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}"
          "]}",
          "donut" },
        { "{'heddle':1,'name':'w','inputs':[{'name':'a'}],'functions':[{'name':'run','nodes':[{'id'"
          ":'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
          "the parameters of run are not the inputs" },
        { "{'heddle':1,'name':'w','journal':'all','functions':[{'name':'run','nodes':[{'id':'in','"
          "kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
          "one of none, steps, nodes" },
        { "{'heddle':1,'name':'w','classes':5,'functions':[{'name':'run','nodes':[{'id':'in','kind'"
          ":'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
          "is a list" },
        { "{'heddle':1,'name':'w','classes':[{}],'functions':[{'name':'run','nodes':[{'id':'in','"
          "kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
          "a class has a" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','donut':1}],'functions':[{'name':'run','"
          "nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}"
          "]}",
          "donut" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','kind':'donut'}],'functions':[{'name':'"
          "run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','"
          "out']]}]}",
          "exception, record, tuple, enum" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','kind':'exception','base':'int'}],'"
          "functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'"
          "RETURN'}],'edges':[['in','out']]}]}",
          "cannot be the base" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','kind':'record','fields':5}],'functions':["
          "{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':"
          "[['in','out']]}]}",
          "at most 256 names" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','kind':'record','fields':[5]}],'functions'"
          ":[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'"
          "edges':[['in','out']]}]}",
          "a field is a name" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','kind':'record','fields':['a','b','a']}],'"
          "functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'"
          "RETURN'}],'edges':[['in','out']]}]}",
          "two fields \"a\"" },
        { "{'heddle':1,'name':'w','classes':[{'name':'A','kind':'record'},{'name':'A','kind':'enum'"
          "}],'functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'"
          "RETURN'}],'edges':[['in','out']]}]}",
          "there is another class" },
        { "{'heddle':1,'name':'w','functions':[{'nodes':[],'edges':[]}]}", "a function has a" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','donut':1,'nodes':[],'edges':[]}]}",
          "donut" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','params':[5],'nodes':[],'edges':[]}]}",
          "is no name" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','params':['a','a'],'nodes':[],'edges':"
          "[]}]}",
          "two parameters a" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'kind':'ENTRY'}],'edges':[]}"
          "]}",
          "a node has an" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'a\x7f','kind':'ENTRY'}"
          "],'"
          "edges':[]}]}",
          "without control characters" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'a\xc2\x9b','kind':'"
          "ENTRY'}],'edges':[]}]}",
          "without control characters" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'"
          "id':'in','kind':'RETURN'}],'edges':[]}]}",
          "a second node" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'"
          "id':'out','kind':'RETURN'}],'edges':[['in','out']]},{'name':'run','nodes':[{'id':'in','"
          "kind':'ENTRY'},{'id':'out','kind':'RET'}],'edges':[['in','out']]}]}",
          "two functions run" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'"
          "id':'c','kind':'CALL','function':'f','args':[1]},{'id':'out','kind':'RETURN'}],'edges':["
          "['in','c'],['c','out']]},{'name':'f','nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','"
          "kind':'RET'}],'edges':[['in','out']]}]}",
          "f takes 0 arguments, 1 is given" },
        { "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'"
          "id':'out','kind':'RETURN'}],'edges':[['in','out']]},{'name':'f','nodes':[{'id':'in','"
          "kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
          "the function ends with RET" },
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        hd_error error;
        hd_status status = try(parse(documents[i][0]), &error);
        if (status && strstr(error.message, documents[i][1])) continue;
        print_error("%s: %s\n", documents[i][0], status ? error.message : "is taken");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void a_wrong_input_is_told_with_its_place(void **state) {
    static const char *const inputs[][2] = {
        { "{'name':'a'},{'name':'b','schema':{'type':'donut'}}", "/inputs/1/schema/type" },
        { "{'name':'a','schema':{'type':'integer'},'default':'x'},{'name':'b'}",
          "/inputs/0/default" },
        { "{'name':'a'},{'name':'b','default':{'n':[1,'x']},'schema':{'properties':{'n':{'items':{"
          "'type':'integer'}}}}}",
          "/inputs/1/default/n/1" },
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        hd_error error;
        char text[600];
        snprintf(text, sizeof text,
                 "{'heddle':1,'name':'w','inputs':[%s],'functions':[{'name':'run','params':['a','b'"
                 "],'nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[["
                 "'in','out']]}]}",
                 inputs[i][0]);
        assert_int_equal(try(parse(text), &error), HD_SYNTAX);
        assert_string_equal(error.path, inputs[i][1]);
    }
}

/* ---- of nodes and edges: the node at "f.py:7" is the one that is wrong */

#define AT  "'at':'f.py:7'"
#define OUT "{'id':'out','kind':'RETURN'}"

static const struct {
    const char *nodes, *edges, *why;
} rows[] = {
    { "{'id':'x','kind':'CALC'," AT ",'donut':1}," OUT, "['in','x'],['x','out']", "donut" },
    { "{'id':'x','kind':'ACTION'," AT "}," OUT, "['in','x'],['x','out']", "\"action\" is a name" },
    { "{'id':'x','kind':'ACTION','action':'a','args':5," AT "}," OUT, "['in','x'],['x','out']",
      "a list or an object" },
    { "{'id':'x','kind':'ACTION','action':'a','timeout':-1," AT "}," OUT, "['in','x'],['x','out']",
      "number of seconds" },
    { "{'id':'x','kind':'ACTION','action':'a','priority':9999," AT "}," OUT,
      "['in','x'],['x','out']", "from -1000 to 1000" },
    { "{'id':'x','kind':'ACTION','action':'a','retry':5," AT "}," OUT, "['in','x'],['x','out']",
      "\"retry\" is an object" },
    { "{'id':'x','kind':'ACTION','action':'a','retry':{'tries':2}," AT "}," OUT,
      "['in','x'],['x','out']", "tries" },
    { "{'id':'x','kind':'ACTION','action':'a','retry':{'attempts':0}," AT "}," OUT,
      "['in','x'],['x','out']", "attempts" },
    { "{'id':'x','kind':'ACTION','action':'a','retry':{'on':['int']}," AT "}," OUT,
      "['in','x'],['x','out']", "no class of exceptions" },
    { "{'id':'x','kind':'ACTION','action':'a','into':['+',1,2]," AT "}," OUT,
      "['in','x'],['x','out']", "" },
    { "{'id':'x','kind':'BRANCH','when':5," AT "}," OUT, "['in','x'],['x','out','GUARD',0]",
      "when" },
    { "{'id':'x','kind':'BRANCH','when':[true]," AT "}," OUT, "['in','x'],['x','out','GUARD',0]",
      "GUARD" },
    { "{'id':'x','kind':'BRANCH','when':[true]," AT "}," OUT,
      "['in','x'],['x','out','GUARD',0],['x','out','GUARD',0]", "GUARD" },
    { "{'id':'x','kind':'CALC'," AT "}," OUT, "['in','x'],['x','out'],['x','out']",
      "two edges to \"out\"" },
    { "{'id':'x','kind':'LOOP_HEAD'," AT "}," OUT, "['in','x'],['x','out','BREAK']", "over" },
    { "{'id':'x','kind':'LOOP_HEAD','while':1,'into':['name','y']," AT "}," OUT,
      "['in','x'],['x','out','BREAK']", "into" },
    { "{'id':'x','kind':'LOOP_HEAD','while':1," AT "}," OUT, "['in','x'],['x','out','BREAK']",
      "CONTINUE" },
    { "{'id':'x','kind':'LOOP_HEAD','while':1," AT "},{'id':'c','kind':'CALC'}," OUT,
      "['in','x'],['x','c','CONTINUE'],['c','out']", "BREAK" },
    { "{'id':'x','kind':'FAN_HEAD','over':['list'],'window':0," AT "}," OUT,
      "['in','x'],['x','out','ELEM']", "window" },
    { "{'id':'x','kind':'FAN_HEAD','over':['list']," AT "},{'id':'c','kind':'CALC'}," OUT,
      "['in','x'],['x','c','ELEM'],['c','out']", "" },
    { "{'id':'f','kind':'FAN_HEAD','over':['list']},{'id':'x','kind':'BARRIER','mode':'any'," AT
      "},"
      "{'id':'c','kind':'CALC'}," OUT,
      "['in','f'],['f','c','ELEM'],['c','x','JOIN'],['x','out']", "mode" },
    { "{'id':'x','kind':'SLEEP'," AT "}," OUT, "['in','x'],['x','out']",
      "\"seconds\" or \"until\"" },
    { "{'id':'x','kind':'SLEEP','seconds':1,'until':2," AT "}," OUT, "['in','x'],['x','out']",
      "\"seconds\" or \"until\"" },
    { "{'id':'x','kind':'WAIT'," AT "}," OUT, "['in','x'],['x','out']", "signal" },
    { "{'id':'x','kind':'CALL','function':'nowhere'," AT "}," OUT, "['in','x'],['x','out']",
      "no function \"nowhere\"" },
    { "{'id':'x','kind':'CALL','function':'run'," AT "}," OUT, "['in','x'],['x','out']",
      "first function" },
    { "{'id':'x','kind':'RAISE'," AT "}", "['in','x']", "nothing to raise" },
    { "{'id':'x','kind':'RET'," AT "}", "['in','x']", "RETURN" },
    { "{'id':'x','kind':'CALC','do':[['frobnicate']]," AT "}," OUT, "['in','x'],['x','out']",
      "statement" },
    { "{'id':'x','kind':'CALC','do':[['expr',['call','frobnicate',[]]]]," AT "}," OUT,
      "['in','x'],['x','out']", "frobnicate" },
    { "{'id':'x','kind':'CALC','do':[['assign',1,['name','v\\u0000']]]," AT "}," OUT,
      "['in','x'],['x','out']", "a name holds NUL" },
    { "{'id':'x','kind':'ACTION','action':'f','into':['name','\\u0000']," AT "}," OUT,
      "['in','x'],['x','out']", "a name holds NUL" },
    { "{'id':'x','kind':'CALC','do':[['expr',['name','ghost']]]," AT "}," OUT,
      "['in','x'],['x','out']", "\"ghost\"" },
    { "{'id':'x','kind':'ACTION','action':'f','args':[['name','own']],'into':['name','own']," AT
      "}," OUT,
      "['in','x'],['x','out']",
      "reads \"own\", which is neither an input (parameter) nor assigned before" },
    { "{'id':'x','kind':'CHILD','workflow':'c','args':{'a':['name','own']},'into':['name','own']"
      "," AT "}," OUT,
      "['in','x'],['x','out']", "reads \"own\"" },
    { "{'id':'x','kind':'FAN_HEAD','over':['name','own'],'into':['name','own']," AT
      "},{'id':'c','kind':'CALC'},{'id':'j','kind':'BARRIER'}," OUT,
      "['in','x'],['x','c','ELEM'],['c','j','JOIN'],['j','out']", "reads \"own\"" },
    { "{'id':'x','kind':'CALC'," AT "}", "['in','x']", "nothing follows" },
    { "{'id':'x','kind':'CALC'," AT "}," OUT, "['in','out'],['x','out']", "no edge leads to it" },
    { "{'id':'x','kind':'CALC'," AT "},{'id':'b','kind':'CALC'," AT "}," OUT,
      "['in','x'],['x','b'],['b','x'],['b','out']", "circle" },
    { "{'id':'x','kind':'CALC'," AT "}," OUT, "['in','x'],['x','out'],['x','in','BACK']", "ENTRY" },
    { "{'id':'a','kind':'CALC'},{'id':'x','kind':'CALC'," AT "}," OUT,
      "['in','a'],['a','x'],['x','out'],['x','a','BACK']", "LOOP_HEAD" },
    { "{'id':'x','kind':'RETURN'," AT "}," OUT, "['in','x'],['x','out']", "has no FORWARD edge" },
    { "{'id':'x','kind':'ENTRY'," AT "}," OUT, "['in','out'],['x','out']", "second ENTRY" },
    { "{'id':'x','kind':'HANDLER'," AT "}," OUT, "['in','x'],['x','out','GUARD',0]", "clauses" },
    { "{'id':'x','kind':'HANDLER','clauses':[{'classes':['Nothing']}]," AT "}," OUT,
      "['in','x'],['x','out','GUARD',0]", "Nothing" },
    { "{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'x','kind':'CALC'," AT "}," OUT,
      "['in','x'],['x','h'],['x','out'],['h','out','GUARD',0]", "EXCEPT edges, and no others" },
    { "{'id':'x','kind':'CALC','do':[['assign',1,['name','v']]]," AT
      "},{'id':'b','kind':'CALC','do':[["
      "'assign',2,['name','v']]]," AT "}," OUT,
      "['in','x'],['in','b'],['x','out'],['b','out']", "shares \"v\"" },
    { "{'id':'a','kind':'CALC'},{'id':'b','kind':'CALC'},{'id':'x','kind':'MERGE'," AT "}," OUT,
      "['in','a'],['in','b'],['a','x'],['b','x'],['x','out']", "meet" },
    { "{'id':'b','kind':'BRANCH','when':[true]},{'id':'a','kind':'CALC'},{'id':'c','kind':'CALC'},{"
      "'id':'x','kind':'RETURN'," AT "}",
      "['in','b'],['b','a','GUARD',0],['b','c','GUARD',1],['a','x'],['c','x']",
      "alternatives of \"b\" meet" },
    { "{'id':'b','kind':'BRANCH','when':[true]},{'id':'x','kind':'RETURN'," AT "}",
      "['in','b'],['b','x','GUARD',0],['b','x','GUARD',1]", "alternatives of \"b\" meet" },
    { "{'id':'b','kind':'BRANCH','when':[true]},{'id':'a','kind':'CALC'},{'id':'x','kind':'RETURN'"
      "," AT "}",
      "['in','b'],['b','a','GUARD',0],['b','x','GUARD',1],['a','x']",
      "alternatives of \"b\" meet" },
    { "{'id':'l','kind':'LOOP_HEAD','while':1},{'id':'a','kind':'CALC'},{'id':'x','kind':'RETURN'"
      "," AT "}",
      "['in','l'],['l','a','CONTINUE'],['l','x','BREAK'],['a','x']", "alternatives of \"l\" meet" },
    { "{'id':'a','kind':'ACTION','action':'f'},{'id':'h','kind':'HANDLER','clauses':[{}]},"
      "{'id':'x','kind':'RETURN'," AT "}",
      "['in','a'],['a','h','EXCEPT'],['a','x'],['h','x','GUARD',0]",
      "behind the HANDLER \"h\" and one without the exception meet" },
    { "{'id':'a','kind':'ACTION','action':'f'},{'id':'b','kind':'ACTION','action':'f'},"
      "{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'c','kind':'CALC'},"
      "{'id':'x','kind':'RETURN'," AT "}",
      "['in','a'],['a','h','EXCEPT'],['a','b'],['b','h','EXCEPT'],['b','x'],['h','c','GUARD',0],"
      "['c','x']",
      "behind the HANDLER \"h\"" },
    { "{'id':'x'," AT "}," OUT, "['in','x'],['x','out']", "a node has a \"kind\"" },
    { "{'id':'x','kind':'CHILD','workflow':'a b'," AT "}," OUT, "['in','x'],['x','out']",
      "letters, digits" },
    { "{'id':'x','kind':'DONUT'," AT "}," OUT, "['in','x'],['x','out']", "unknown kind \"DONUT\"" },
    { "{'id':'x','kind':'RAISE','value':['name']," AT "}", "['in','x']", "" },
    { "{'id':'x','kind':'ACTION','action':'a','named':5," AT "}," OUT, "['in','x'],['x','out']",
      "\"named\" is a list" },
    { "{'id':'x','kind':'ACTION','action':'a','named':[5]," AT "}," OUT, "['in','x'],['x','out']",
      "pairs of a name" },
    { "{'id':'x','kind':'ACTION','action':'a','named':[['k',1],['k',2]]," AT "}," OUT,
      "['in','x'],['x','out']", "two arguments \"k\"" },
    { "{'id':'x','kind':'ACTION','action':'a','args':[],'named':[]," AT "}," OUT,
      "['in','x'],['x','out']", "instead of \"args\"" },
    { "{'id':'x','kind':'ACTION','action':'a','heartbeat':'1'," AT "}," OUT,
      "['in','x'],['x','out']", "number of seconds" },
    { "{'id':'x','kind':'ACTION','action':'a','retry':{'on':5}," AT "}," OUT,
      "['in','x'],['x','out']", "classes are a list of names" },
    { "{'id':'x','kind':'ACTION','action':'a','limit':5," AT "}," OUT, "['in','x'],['x','out']",
      "\"limit\" is an object" },
    { "{'id':'x','kind':'ACTION','action':'a','limit':{'key':'k','least':1}," AT "}," OUT,
      "['in','x'],['x','out']", "\"least\" in \"limit\"" },
    { "{'id':'x','kind':'ACTION','action':'a','limit':{'most':1}," AT "}," OUT,
      "['in','x'],['x','out']", "\"key\" is missing" },
    { "{'id':'x','kind':'ACTION','action':'a','limit':{'key':'k','most':0}," AT "}," OUT,
      "['in','x'],['x','out']", "\"most\" is a whole number" },
    { "{'id':'x','kind':'ACTION','action':'a','queue':'a b'," AT "}," OUT, "['in','x'],['x','out']",
      "\"queue\" is a name" },
    { "{'id':'x','kind':'CHILD','workflow':'w','args':[1]," AT "}," OUT, "['in','x'],['x','out']",
      "its inputs by name" },
    { "{'id':'x','kind':'CHILD'," AT "}," OUT, "['in','x'],['x','out']", "\"workflow\" is a name" },
    { "{'id':'x','kind':'HANDLER','clauses':[5]," AT "}," OUT, "['in','x'],['x','out','GUARD',0]",
      "a clause is an object" },
    { "{'id':'x','kind':'HANDLER','clauses':[{'donut':1}]," AT "}," OUT,
      "['in','x'],['x','out','GUARD',0]", "\"donut\" in a clause" },
    { "{'id':'x','kind':'HANDLER','clauses':[{'as':5}]," AT "}," OUT,
      "['in','x'],['x','out','GUARD',0]", "\"as\" is a name" },
    { "{'id':'x','kind':'HANDLER','clauses':[]," AT "}," OUT, "['in','x'],['x','out','GUARD',0]",
      "a list of at least one" },
    { "{'id':'x','kind':'BRANCH','when':[true]," AT "}," OUT,
      "['in','x'],['x','out','GUARD',0],['x','out','GUARD',2]", "GUARD edge 1 is missing" },
    { "{'id':'x','kind':'CALC'," AT "},{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'g','kind':"
      "'HANDLER','clauses':[{}]}," OUT,
      "['in','x'],['x','out'],['x','h','EXCEPT'],['x','g','EXCEPT'],['h','out','GUARD',0],['g',"
      "'out','GUARD',0]",
      "EXCEPT edges; one at most" },
    { "{'id':'x','kind':'FAN_HEAD'," AT "}," OUT, "['in','x'],['in','out']", "no ELEM edge" },
    { "{'id':'x','kind':'CALC'," AT "},{'id':'b','kind':'BARRIER'}," OUT,
      "['in','x'],['x','b','JOIN'],['b','out']", "a JOIN edge outside" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'CALC'," AT "},{'id':'b','kind':'CALC'," AT
      "},{'id':'i','kind':'BARRIER'},{'id':'j','kind':'BARRIER'}," OUT,
      "['in','f'],['f','a','ELEM',0],['f','b','ELEM',1],['a','i','JOIN'],['b','j','JOIN'],['i','"
      "out'"
      "],['j','out']",
      "more than one BARRIER" },
    { "{'id':'f','kind':'FAN_HEAD','over':['list']},{'id':'a','kind':'CALC'},{'id':'b','kind':"
      "'BARRIER'},{'id':'x','kind':'MERGE'," AT "}," OUT,
      "['in','f'],['f','a','ELEM'],['a','b','JOIN'],['b','x'],['a','x'],['x','out']", "" },
    { "{'id':'x','kind':'FAN_HEAD','over':['list']," AT "},{'id':'r','kind':'RAISE','value':['new',"
      "'ValueError',[]]}",
      "['in','x'],['x','r','ELEM']", "none of its branches reaches a BARRIER" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'CALC'},{'id':'b','kind':'BARRIER'},{'id':'x',"
      "'kind':'RETURN'," AT "}," OUT,
      "['in','f'],['f','a','ELEM',0],['f','x','ELEM',1],['a','b','JOIN'],['b','out']",
      "ends with a JOIN edge" },
    { "{'id':'q','kind':'BRANCH','when':[true]},{'id':'l','kind':'LOOP_HEAD','while':true},{'id':'"
      "x'"
      ",'kind':'MERGE'," AT "}," OUT,
      "['in','q'],['q','l','GUARD',0],['q','x','GUARD',1],['l','x','CONTINUE'],['l','out','BREAK'],"
      "["
      "'x','l','BACK']",
      "which a way into it avoids" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true," AT
      "},{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':"
      "'CALC'},{'id':'x','kind':'CALC'},{'id':'b','kind':'BARRIER'}," OUT,
      "['in','l'],['l','f','CONTINUE'],['l','out','BREAK'],['f','a','ELEM',0],['f','x','ELEM',1],["
      "'a','b','JOIN'],['x','l','BACK'],['b','l','BACK']",
      "FAN_HEAD's branches meet" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true},{'id':'x','kind':'CALC'," AT "}," OUT,
      "['in','l'],['l','x','CONTINUE'],['l','out','BREAK'],['x','l','BACK'],['x','out']",
      "a BACK or JOIN edge beside another edge" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true},{'id':'m','kind':'LOOP_HEAD','while':true},"
      "{'id':'x','kind':'CALC'," AT "},{'id':'y','kind':'CALC'}," OUT,
      "['in','l'],['l','m','CONTINUE'],['l','out','BREAK'],['m','x','CONTINUE'],['x','m','BACK'],"
      "['x','l','BACK'],['m','y','BREAK'],['y','l','BACK']",
      "a BACK or JOIN edge beside another edge" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'CALC'},{'id':'c','kind':'CALC'},{'id':'x',"
      "'kind':'CALC'," AT "},{'id':'d','kind':'CALC'},{'id':'b','kind':'BARRIER'}," OUT,
      "['in','f'],['f','a','ELEM',0],['f','c','ELEM',1],['a','x'],['a','d'],['c','x'],['x','b',"
      "'JOIN'],['d','b','JOIN'],['b','out']",
      "ways from two branches of \"f\"" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'x','kind':'CALC'," AT
      "},{'id':'b','kind':'BARRIER'}," OUT,
      "['in','f'],['f','x','ELEM',0],['f','x','ELEM',1],['x','b','JOIN'],['b','out']",
      "ways from two branches of \"f\"" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true," AT "},{'id':'c','kind':'CALC'},{'id':'m','kind':"
      "'MERGE'}",
      "['in','l'],['l','c','CONTINUE'],['l','m','BREAK'],['c','m'],['m','l','BACK']",
      "from its BREAK edge a way leads back into the loop" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true," AT "},{'id':'c','kind':'CALC'},{'id':'d','kind':"
      "'CALC'},{'id':'q','kind':'BRANCH','when':[true]}," OUT,
      "['in','l'],['l','c','CONTINUE'],['l','d','BREAK'],['c','l','BACK'],['d','q'],['q','l',"
      "'GUARD',0],['q','out','GUARD',1]",
      "lies on a circle" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'CALC'},{'id':'x','kind':'CALC'," AT
      "},{'id':'c','kind':'CALC'},{'id':'b','kind':'BARRIER'}," OUT,
      "['in','f'],['f','a','ELEM'],['a','x'],['a','c'],['x','b','JOIN'],['c','b','JOIN'],['b',"
      "'out']",
      "before its JOIN edge" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'CALC'},{'id':'x','kind':'CALC'," AT
      "},{'id':'c','kind':'RAISE','value':['new','ValueError',[]]},{'id':'b','kind':'BARRIER'}"
      "," OUT,
      "['in','f'],['f','a','ELEM'],['a','x'],['a','c'],['x','b','JOIN'],['b','out']",
      "before its JOIN edge" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true},{'id':'a','kind':'CALC'},{'id':'x','kind':'CALC'"
      "," AT "},{'id':'c','kind':'RAISE','value':['new','ValueError',[]]}," OUT,
      "['in','l'],['l','a','CONTINUE'],['a','x'],['a','c'],['x','l','BACK'],['l','out','BREAK']",
      "before its BACK edge" },
    { "{'id':'f','kind':'FAN_HEAD'},{'id':'e','kind':'CALC'},{'id':'a','kind':'CALC'},{'id':'c',"
      "'kind':'CALC'},{'id':'x','kind':'CALC'," AT "},{'id':'g','kind':'CALC'},{'id':'h','kind':"
      "'CALC'},{'id':'y','kind':'CALC'," AT "},{'id':'b','kind':'BARRIER'}," OUT,
      "['in','f'],['f','e','ELEM'],['e','a'],['e','c'],['e','g'],['e','h'],['a','x'],['c','x'],"
      "['g','y'],['h','y'],['x','b','JOIN'],['y','b','JOIN'],['b','out']",
      "\"e\" begins several ways at once" },
    { "{'id':'a','kind':'CALC'},{'id':'c','kind':'CALC'},{'id':'g','kind':'CALC'},{'id':'h','kind':"
      "'CALC'},{'id':'p','kind':'CALC'},{'id':'q','kind':'CALC'},{'id':'x','kind':'MERGE'," AT
      "}," OUT,
      "['in','a'],['in','c'],['in','g'],['in','h'],['a','p'],['c','p'],['g','q'],['h','q'],"
      "['p','x'],['q','x'],['x','out']",
      "\"in\" begins at once meet in this MERGE" },
    { "{'id':'a','kind':'CALC'},{'id':'c','kind':'CALC'},{'id':'g','kind':'CALC'},{'id':'h','kind':"
      "'CALC'},{'id':'x','kind':'ACTION','action':'f','into':['name','v']," AT
      "},{'id':'y','kind':'ACTION','action':'f','into':['name','v']," AT "}," OUT,
      "['in','a'],['in','c'],['in','g'],['in','h'],['a','x'],['c','x'],['g','y'],['h','y'],"
      "['x','out'],['y','out']",
      "shares \"v\" with another way that \"in\"" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true},{'id':'a','kind':'CALC'},{'id':'c','kind':"
      "'ACTION','action':'f'},{'id':'g','kind':'ACTION','action':'f'},{'id':'j','kind':'CALC'},"
      "{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'x','kind':'MERGE'," AT "}," OUT,
      "['in','l'],['l','a','CONTINUE'],['l','out','BREAK'],['a','c'],['a','g'],['c','h','EXCEPT'],"
      "['g','h','EXCEPT'],['c','j'],['g','j'],['j','x'],['h','x','GUARD',0],['x','l','BACK']",
      "meet in this MERGE" },
    { "{'id':'l','kind':'LOOP_HEAD','while':true},{'id':'a','kind':'CALC'},{'id':'c','kind':"
      "'ACTION','action':'f'},{'id':'g','kind':'ACTION','action':'f'},{'id':'h','kind':'HANDLER',"
      "'clauses':[{}]},{'id':'x','kind':'CALC'," AT "}," OUT,
      "['in','l'],['l','a','CONTINUE'],['l','out','BREAK'],['a','c'],['a','g'],['c','h','EXCEPT'],"
      "['g','h','EXCEPT'],['c','out'],['g','out'],['h','x','GUARD',0],['x','l','BACK']",
      "before its BACK edge" },
};

static hd_status try_function(const char *nodes, const char *edges, hd_error *error) {
    char text[4000];
    snprintf(text, sizeof text,
             "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'"
             "},{'id':'c','kind':'CALL','function':'f','args':[]}," OUT
             "],'edges':[['in','c'],['c','out']]},{'name':'f','nodes':[{'id':'in','kind':'ENTRY'},"
             "%s],'edges':[%s]}]}",
             nodes, edges);
    return try(parse(text), error);
}

/* A function that is called ends once. */
static void ways_that_end_a_function_twice_are_refused(void **state) {
    static const char *const functions[][2] = {
        { "{'id':'a','kind':'RET'},{'id':'b','kind':'RET'}", "['in','a'],['in','b']" },
        { "{'id':'a','kind':'CALC'},{'id':'b','kind':'CALC'},{'id':'c','kind':'CALC'},{'id':'d',"
          "'kind':'CALC'},{'id':'x','kind':'RET'},{'id':'y','kind':'RET'}",
          "['in','a'],['in','b'],['in','c'],['in','d'],['a','x'],['b','x'],['c','y'],['d','y']" },
        { "{'id':'a','kind':'ACTION','action':'f'},{'id':'b','kind':'ACTION','action':'f'},{'id':"
          "'j','kind':'ACTION','action':'f'},{'id':'x','kind':'RET'},{'id':'h','kind':'HANDLER',"
          "'clauses':[{}]},{'id':'y','kind':'RET'}",
          "['in','a'],['in','b'],['a','j'],['b','j'],['j','x'],['a','h','EXCEPT'],['b','h',"
          "'EXCEPT'],['j','h','EXCEPT'],['h','y','GUARD',0]" },
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        hd_error error;
        assert_int_equal(try_function(functions[i][0], functions[i][1], &error), HD_SYNTAX);
        if (!strstr(error.message, "before RET")) fail_msg("%s", error.message);
    }
}

/* What ends the instance may be reached by a way alone; a HANDLER may be asked for several; a way may fork again; and
 * not all ways need to meet in one node. */
static void ways_that_end_well_are_taken(void **state) {
    static const char *const graphs[][2] = {
        { "{'id':'a','kind':'ACTION','action':'f'},{'id':'b','kind':'ACTION','action':'f'},"
          "{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'c','kind':'RETURN'}," OUT,
          "['in','a'],['in','b'],['a','out'],['b','out'],['a','h','EXCEPT'],['b','h','EXCEPT'],"
          "['h','c','GUARD',0]" },
        { "{'id':'a','kind':'CALC'},{'id':'b','kind':'CALC'},{'id':'c','kind':'ACTION','action':"
          "'f','into':['name','v']},{'id':'d','kind':'CALC','do':[['assign',1,['name','w']]]},"
          "{'id':'out','kind':'RETURN','value':['+',['name','v'],['name','w']]}",
          "['in','a'],['in','b'],['a','c'],['a','d'],['b','d'],['c','out'],['d','out']" },
        { "{'id':'a','kind':'ACTION','action':'f','into':['name','v']},{'id':'b','kind':'CALC'},"
          "{'id':'c','kind':'CALC'},{'id':'d','kind':'ACTION','action':'f','args':[['name','v']],"
          "'into':['name','v']}," OUT,
          "['in','a'],['in','b'],['in','c'],['a','d'],['b','d'],['c','out'],['d','out']" },
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char text[2000];
        hd_error error;
        snprintf(text, sizeof text,
                 "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':"
                 "'ENTRY'},%s],'edges':[%s]}]}",
                 graphs[i][0], graphs[i][1]);
        if (try(parse(text), &error)) fail_msg("%zu: %s", i, error.message);
    }
}

static void what_could_not_run_is_refused_with_its_node_and_position(void **state) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4000];
        hd_error error;
        snprintf(text, sizeof text,
                 "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'"
                 "ENTRY'},%s],"
                 "'edges':[%s]}]}",
                 rows[i].nodes, rows[i].edges);
        hd_status status = try(parse(text), &error);
        if (status == HD_SYNTAX && strstr(error.message, rows[i].why) &&
            strstr(error.message, "f.py:7"))
            continue;
        print_error("%s: %s\n", rows[i].nodes, status ? error.message : "is taken");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Each alternative of "b" begins two ways, and each way reaches its MERGE whichever alternative was taken: "x" may wait
 * for both. */
static void alternatives_that_all_arrive_may_meet(void **state) {
    hd_error error;
    hd_value ir = parse("{'heddle':1,'name':'w','functions':[{'name':'run','nodes':["
                        "{'id':'in','kind':'ENTRY'},{'id':'b','kind':'BRANCH','when':[true]},"
                        "{'id':'p','kind':'CALC'},{'id':'q','kind':'CALC'},{'id':'m','kind':'MERGE'"
                        "},{'id':'n','kind':'MERGE'},{'id':'x','kind':'RETURN'}],'edges':["
                        "['in','b'],['b','p','GUARD',0],['b','q','GUARD',1],['p','m'],['p','n'],"
                        "['q','m'],['q','n'],['m','x'],['n','x']]}]}");
    assert_int_equal(try(ir, &error), HD_OK);
}

/* Edges have no position: what they name is told. */
static void edges_to_nowhere_are_refused(void **state) {
    static const char *const edges[][2] = {
        { "['in','nowhere']", "\"nowhere\"" },
        { "['nowhere','out']", "\"nowhere\"" },
        { "['in']", "an edge is" },
        { "5", "an edge is" },
        { "['in','out','SIDEWAYS']", "SIDEWAYS" },
        { "['in','out','GUARD',-1]", "number from 0" },
        { "['in','out','FORWARD',0,0]", "an edge is" },
        { "['in','out','FORWARD',1]", "a FORWARD edge has no index" },
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        char text[600];
        hd_error error;
        snprintf(text, sizeof text,
                 "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'"
                 "ENTRY'}," OUT "],'edges':[%s]}]}",
                 edges[i][0]);
        assert_int_equal(try(parse(text), &error), HD_SYNTAX);
        if (!strstr(error.message, edges[i][1])) fail_msg("%s: %s", edges[i][0], error.message);
    }
}

/* ---- of strangers */

static hd_value many(size_t count, const char *format) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(
        out,
        "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'}");
    for (size_t i = 0; i < count; i++) fprintf(out, format, i);
    fprintf(out, "],'edges':[]}]}");
    fclose(out);
    hd_value v = parse(text);
    free(text);
    return v;
}

static void more_than_100000_nodes_are_too_many(void **state) {
    hd_error error;
    assert_int_equal(try(many(100001, ",{'id':'n%zu','kind':'CALC'}"), &error), HD_LIMIT);
    assert_non_null(strstr(error.message, "100000"));
}

static hd_value copies(size_t count, const char *json) {
    hd_builder *b;
    hd_value one = parse(json);
    assert_int_equal(hd_builder_open(pool, HD_KIND_ARRAY, &b), HD_OK);
    for (size_t i = 0; i < count; i++) hd_builder_add(b, one);
    return hd_builder_close(b);
}

static hd_value function_of(hd_value nodes, hd_value edges) {
    hd_value f = hd_object_set(pool, hd_object(), "name", hd_string(pool, "run"));
    f = hd_object_set(pool, f, "nodes", nodes);
    return hd_object_set(pool, f, "edges", edges);
}

static hd_value document_of(hd_value functions) {
    hd_value ir = hd_object_set(pool, hd_object(), "heddle", hd_int(pool, 1));
    ir = hd_object_set(pool, ir, "name", hd_string(pool, "w"));
    return hd_object_set(pool, ir, "functions", functions);
}

/* What is too large is counted, and nothing is made of it. */
static void ten_million_nodes_cost_nothing(void **state) {
    static const char *const wanted[] = { "10000000 nodes, more than 100000",
                                          "1000001 edges, more than 1000000",
                                          "10001 functions, more than 10000" };
    hd_value node = copies(10000000, "{'id':'n','kind':'CALC'}");
    hd_value edge = copies(1000001, "['in','out']");
    hd_value few = function_of(parse("[]"), edge), large = function_of(node, parse("[]"));
    hd_value documents[] = { document_of(hd_array_of(pool, &large, 1)),
                             document_of(hd_array_of(pool, &few, 1)),
                             document_of(copies(10001, "{'name':'f','nodes':[],'edges':[]}")) };
    for (size_t i = 0; i < 3; i++) {
        hd_error error;
        uint64_t before = lab_env_allocations(env);
        assert_int_equal(try(documents[i], &error), HD_LIMIT);
        assert_in_range(lab_env_allocations(env) - before, 0, 20);
        if (!strstr(error.message, wanted[i])) fail_msg("%s", error.message);
    }
}

/* Each node would have a set of all variables. */
static void many_nodes_with_many_variables_are_too_many(void **state) {
    hd_error error;
    const char *node = ",{'id':'n%1$zu','kind':'ACTION','action':'a','into':['name','v%1$zu']}";
    hd_value ir = many(50000, node);
    size_t before = lab_env_bytes(env);
    assert_int_equal(try(ir, &error), HD_LIMIT);
    assert_non_null(strstr(error.message, "too many nodes (50001) for its variables"));
    assert_in_range(lab_env_bytes(env), 0, before + ((size_t)1 << 20));
}

static void a_thousand_variables_and_clauses_are_taken(void **state) {
    char *text;
    size_t size;
    hd_error error;
    FILE *out = open_memstream(&text, &size);
    fprintf(
        out,
        "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{"
        "'id':'c','kind':'CALC','do':[");
    for (int i = 0; i < 1000; i++)
        fprintf(out, "%s['assign',%d,['name','v%d']]", i ? "," : "", i, i);
    fprintf(out, "]}," OUT "],'edges':[['in','c'],['c','out']]}]}");
    fclose(out);
    hd_status status = try(parse(text), &error);
    free(text);
    if (status) fail_msg("%s", error.message);
}

static void expressions_that_are_nested_deeply_are_refused(void **state) {
    char *text;
    size_t size;
    hd_error error;
    FILE *out = open_memstream(&text, &size);
    fprintf(
        out,
        "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{"
        "'id':'x'," AT ",'kind':'RETURN','value':");
    for (int i = 0; i < 200; i++) fprintf(out, "['neg',");
    fprintf(out, "1");
    for (int i = 0; i < 200; i++) fprintf(out, "]");
    fprintf(out, "}],'edges':[['in','x']]}]}");
    fclose(out);
    hd_status status = try(parse(text), &error);
    free(text);
    assert_int_not_equal(status, HD_OK);
    assert_non_null(strstr(error.message, "f.py:7"));
}

/* A line of nodes is checked in time that grows with it, not with its square. */
static void loops_in_loops_are_checked_quickly(void **state) {
    enum { DEEP = 2000 };
    char *text;
    size_t size;
    hd_error error;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'"
                 "ENTRY'}," OUT);
    for (int i = 0; i < DEEP; i++)
        fprintf(out, ",{'id':'l%d','kind':'LOOP_HEAD','while':false},{'id':'m%d','kind':'MERGE'}",
                i, i);
    fprintf(out, ",{'id':'c','kind':'CALC'}],'edges':[['in','l0'],['l0','out','BREAK']");
    for (int i = 0; i < DEEP; i++) {
        fprintf(out,
                i + 1 < DEEP ? ",['l%d','l%d','CONTINUE'],['l%d','m%d','BREAK']"
                             : ",['l%d','c','CONTINUE']",
                i, i + 1, i + 1, i);
        fprintf(out, ",['m%d','l%d','BACK']", i, i);
    }
    fprintf(out, ",['c','m%d']]}]}", DEEP - 1);
    fclose(out);
    hd_status status = try(parse(text), &error);
    free(text);
    if (status) fail_msg("%s", error.message);
}

/* Four ways, of which two and two meet first: what is noted about them needs memory, and none of it leaks. */
static void ways_without_memory_are_no_mistake(void **state) {
    hd_value ir = parse(
        "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},"
        "{'id':'a','kind':'CALC','do':[['assign',1,['name','v']]]},{'id':'b','kind':'CALC'},"
        "{'id':'c','kind':'CALC'},{'id':'d','kind':'CALC'},{'id':'x','kind':'CALC','do':[["
        "'assign',['name','v'],['name','v']]]},{'id':'y','kind':'CALC'}," OUT "],'edges':["
        "['in','a'],['in','b'],['in','c'],['in','d'],['a','x'],['b','x'],['c','y'],['d','y'],"
        "['x','out'],['y','out']]}]}");
    uint64_t n = 0;
    for (bool failed = true; failed; n++) {
        hd_error error = { 0 };
        lab_env_fail_at(env, n + 1);
        hd_status status = hd_workflow_register(engine, ir, NULL, &error);
        failed = lab_env_failed(env);
        lab_env_fail_from(env, 0);
        if (status && !failed) fail_msg("%s: %s", hd_status_text(status), error.message);
    }
    assert_true(n > 20);
}

/* A chain of `count` nodes, of which each begins `ways` ways that meet behind it; `deep`: each lies in the one
 * before. */
static hd_status try_forks(int count, int ways, bool deep, hd_error *error) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'"
                 "ENTRY'}," OUT);
    for (int i = 0; i < count; i++) {
        fprintf(out, ",{'id':'f%d','kind':'CALC'},{'id':'j%d','kind':'CALC'}", i, i);
        for (int k = 0; k < ways; k++) fprintf(out, ",{'id':'w%d_%d','kind':'CALC'}", i, k);
    }
    fprintf(out, "],'edges':[['in','f0'],['j%d','out']", deep ? 0 : count - 1);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < ways; k++) fprintf(out, ",['f%d','w%d_%d']", i, i, k);
        for (int k = deep && i + 1 < count; k < ways; k++)
            fprintf(out, ",['w%d_%d','j%d']", i, k, i);
        if (i + 1 == count) break;
        if (deep) fprintf(out, ",['w%d_0','f%d'],['j%d','j%d']", i, i + 1, i + 1, i);
        else fprintf(out, ",['j%d','f%d']", i, i + 1);
    }
    fprintf(out, "]}]}");
    fclose(out);
    hd_status status = try(parse(text), error);
    free(text);
    return status;
}

/* So are many ways, and many nodes that begin some; if each lies in the one before, they may be too many. */
static void ways_in_ways_are_checked_quickly(void **state) {
    hd_error error;
    if (try_forks(1, 50000, false, &error)) fail_msg("%s", error.message);
    if (try_forks(19000, 3, false, &error)) fail_msg("%s", error.message);
    if (try_forks(1000, 2, true, &error)) fail_msg("%s", error.message);
    assert_int_equal(try_forks(19000, 3, true, &error), HD_LIMIT);
    assert_non_null(strstr(error.message, "begin several ways at once"));
}

/* It would hold up every other instance for good. */
static void a_loop_that_waits_for_nothing_is_ended(void **state) {
    hd_error error;
    hd_value why;
    char id[HD_INSTANCE_ID_SIZE];
    assert_int_equal(try(parse("{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'"
                               "in','kind':'ENTRY'},{'id':"
                               "'l','kind':'LOOP_HEAD','while':true},{'id':'c','kind':'MERGE'}," OUT
                               "],'edges':[['in','l'],["
                               "'l','c','CONTINUE'],['c','l','BACK'],['l','out','BREAK']]}]}"),
                         &error),
                     HD_OK);
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_workflow_await(engine, id, pool, &why), HD_FAILED);
    assert_non_null(strstr(hd_value_as_text(hd_value_at(why, "message"), ""), "without waiting"));
}

/* A RAISE has no other way on: the node behind its HANDLER waits for a way that is always taken. */
static void a_way_that_always_raises_may_meet_another(void **state) {
    hd_error error;
    hd_value result;
    char id[HD_INSTANCE_ID_SIZE];
    hd_status status = try(
        parse(
            "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},"
            "{'id':'s','kind':'CALC'},{'id':'r','kind':'RAISE','value':['new','ValueError',[1]]},"
            "{'id':'c','kind':'CALC'},{'id':'h','kind':'HANDLER','clauses':[{}]},"
            "{'id':'out','kind':'RETURN','value':5}],'edges':[['in','s'],['s','r'],['s','c'],"
            "['r','h','EXCEPT'],['h','out','GUARD',0],['c','out']]}]}"),
        &error);
    if (status) fail_msg("%s", error.message);
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_workflow_await(engine, id, pool, &result), HD_OK);
    assert_int_equal(hd_value_as_int(result, 0), 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(documents_of_another_shape_are_refused),
        TEST(a_wrong_input_is_told_with_its_place),
        TEST(what_could_not_run_is_refused_with_its_node_and_position),
        TEST(ways_that_end_a_function_twice_are_refused),
        TEST(ways_that_end_well_are_taken),
        TEST(ways_in_ways_are_checked_quickly),
        TEST(ways_without_memory_are_no_mistake),
        TEST(alternatives_that_all_arrive_may_meet),
        TEST(edges_to_nowhere_are_refused),
        TEST(more_than_100000_nodes_are_too_many),
        TEST(ten_million_nodes_cost_nothing),
        TEST(many_nodes_with_many_variables_are_too_many),
        TEST(a_thousand_variables_and_clauses_are_taken),
        TEST(expressions_that_are_nested_deeply_are_refused),
        TEST(loops_in_loops_are_checked_quickly),
        TEST(a_loop_that_waits_for_nothing_is_ended),
        TEST(a_way_that_always_raises_may_meet_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
