/* test_workflow_classes.c -- classes of a program in the IR, arguments in order, and what compilers need besides. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static char seen[400]; /* what the actions were given */

static hd_status give_back(hd_action *a, hd_value args, void *ctx) {
    const char *json = hd_json_print(hd_action_pool(a), args, HD_JSON_COMPACT, NULL);
    snprintf(seen, sizeof seen, "%s", json);
    return hd_action_return(a, hd_value_at(args, "v"));
}

/* An exception of a class that nobody has declared. */
static hd_status strange(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, parse("{'$$error':'shop:NoStock','args':['tea'],'bases':['shop:"
                                     "ShopError','LookupError']}"));
}

static hd_status refuse(hd_action *a, hd_value args, void *ctx) {
    int64_t i = hd_value_as_int(hd_value_at(args, "v"), 0);
    if (i >= 2) return hd_action_raise(a, "ValueError", "%lld", (long long)i);
    return hd_action_return(a, hd_int(hd_action_pool(a), i * 10));
}

static void register_actions(hd_engine *e) {
    hd_action_spec all[] = { { .name = "give_back", .fn = give_back, .here = true },
                             { .name = "strange", .fn = strange, .here = true },
                             { .name = "refuse", .fn = refuse, .here = true } };
    for (size_t i = 0; i < 3; i++) assert_int_equal(hd_action_register(e, &all[i]), HD_OK);
}

/* A workflow with these classes that returns this. */
static void run_with(const char *classes, const char *expression) {
    static char json[4000];
    snprintf(json, sizeof json,
             "{'heddle':1,'name':'w','classes':[%s],'functions':[{'name':'run','nodes':["
             "{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN','value':%s}],"
             "'edges':[['in','out']]}]}",
             classes, expression);
    register_ir(json);
    start("w", "{}");
}

static const char item[] =
    "{'name':'shop:Item','kind':'record','fields':['id','name'],'open':true}";

static void a_declared_class_makes_records(void **state) {
    run_with(item, "['call','repr',[['new','shop:Item',[1],[['name','tea']]]]]");
    assert_result("\"Item(id=1, name='tea')\"");
    run_with(item, "['new','shop:Item',[1,'tea']]");
    assert_result("{\"$$record\":\"shop:Item\",\"id\":1,\"name\":\"tea\"}");
}

static void a_class_may_have_other_fields_in_the_next_version(void **state) {
    run_with(item, "['attr',['new','shop:Item',[1,'tea']],'id']");
    assert_result("1");
    run_with("{'name':'shop:Item','kind':'record','fields':['id','name','price']}",
             "['attr',['new','shop:Item',[1,'tea',5]],'price']");
    assert_result("5");
}

/* A workflow that makes a Move of these values, waits for the signal "go", and returns this. `e` is an exception that
 * nobody has declared, below the declared shop:ShopError. */
static void register_waiting(const char *classes, const char *values, const char *expression) {
    static char json[4000];
    snprintf(json, sizeof json,
             "{'heddle':1,'name':'w','classes':[%s],'functions':[{'name':'run','nodes':["
             "{'id':'in','kind':'ENTRY'},"
             "{'id':'c','kind':'CALC','do':[['assign',['new','shop:Move',[%s]],['name','m']]]},"
             "{'id':'s','kind':'WAIT','signal':'go'},"
             "{'id':'a','kind':'ACTION','action':'strange','into':['name','met']},"
             "{'id':'r','kind':'RAISE','value':['name','met']},"
             "{'id':'h','kind':'HANDLER','clauses':[{'classes':['shop:ShopError'],'as':'e'}]},"
             "{'id':'out','kind':'RETURN','value':%s}],"
             "'edges':[['in','c'],['c','s'],['s','a'],['a','r'],['r','h','EXCEPT'],"
             "['h','out','GUARD']]}]}",
             classes, values, expression);
    register_ir(json);
}

static void register_old(void) {
    register_waiting(
        "{'name':'shop:ShopError','kind':'exception','base':'ValueError'},"
        "{'name':'shop:Item','kind':'record','fields':['id','name']},"
        "{'name':'shop:Move','kind':'tuple','fields':['source','target']}",
        "1,5",
        "['list',['call','repr',[['new','shop:Item',[1,'tea']]]],['call','repr',[['name','m']]],"
        "['attr',['name','m'],'source'],"
        "['call','isinstance',[['name','e'],['type','ValueError']]],"
        "['call','isinstance',[['name','e'],['type','KeyError']]]]");
}

static void register_new(void) {
    register_waiting("{'name':'shop:ShopError','kind':'exception','base':'KeyError'},"
                     "{'name':'shop:Item','kind':'enum'},"
                     "{'name':'shop:Move','kind':'tuple','fields':['target','source','by']}",
                     "1,5,7",
                     "['list',['call','repr',[['name','m']]],"
                     "['call','isinstance',[['name','e'],['type','KeyError']]]]");
}

static void assert_end(const char *key, const char *json) {
    snprintf(id, sizeof id, "w/%s", key);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    assert_result(json);
}

#define OLD_END "[\"Item(id=1, name='tea')\",\"Move(source=1, target=5)\",1,true,false]"
#define NEW_END "[\"Move(target=1, source=5, by=7)\",true]"

static void an_instance_has_the_classes_of_its_version(void **state) {
    register_old();
    start_keyed("w", "a", "{}");
    start_keyed("w", "b", "{}");
    pump();
    register_new();
    start_keyed("w", "c", "{}");
    start_keyed("w", "d", "{}");
    pump();
    assert_end("a", OLD_END);
    assert_end("c", NEW_END);
    assert_end("b", OLD_END);
    assert_end("d", NEW_END);
}

/* The new version is read before the old one, which is in the store alone. */
static void a_loaded_instance_has_the_classes_of_its_version(void **state) {
    register_old();
    start_keyed("w", "old", "{}");
    pump();
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    register_new();
    start_keyed("w", "new", "{}");
    pump();
    assert_end("new", NEW_END);
    assert_end("old", OLD_END);
}

/* Declared, and met in a value. */
static void a_named_tuple_is_a_tuple(void **state) {
    run_with("{'name':'shop:Pair','kind':'tuple','fields':['a','b']}",
             "['call','isinstance',[['new','shop:Pair',[1,2]],['type','tuple']]]");
    assert_result("true");
    run_with(
        "",
        "['call','isinstance',[['const',{'$$tuple':[1,2],'class':'shop:Met'}],['type','tuple']]]");
    assert_result("true");
}

static void exceptions_are_caught_by_classes_of_the_program(void **state) {
    register_ir(
        "{'heddle':1,'name':'w','classes':[{'name':'shop:ShopError','kind':'exception','base'"
        ":'LookupError'},{'name':'shop:NoStock','kind':'exception','base':'shop:ShopError'}],"
        "'functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},"
        "{'id':'r','kind':'RAISE','value':['new','shop:NoStock',['tea']]},"
        "{'id':'h','kind':'HANDLER','clauses':[{'classes':['shop:ShopError'],'as':'e'}]},"
        "{'id':'out','kind':'RETURN','value':['call','repr',[['name','e']]]}],"
        "'edges':[['in','r'],['r','h','EXCEPT'],['h','out','GUARD']]}]}");
    start("w", "{}");
    assert_result("\"NoStock('tea')\"");
}

/* A value of a class that the workflow has not declared crosses, also over a restart. */
static void an_unknown_class_is_met(void **state) {
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'strange','into':['name','e']},"
                   "{'id':'s','kind':'SLEEP','seconds':5},"
                   "{'id':'r','kind':'RAISE','value':['name','e']},"
                   "{'id':'h','kind':'HANDLER','clauses':[{'classes':['LookupError'],'as':'f'}]},"
                   "{'id':'out','kind':'RETURN','value':['name','f']}",
                   "['in','a'],['a','s'],['s','r'],['r','h','EXCEPT'],['h','out','GUARD']");
    start("w", "{}");
    pump();
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    advance(5000);
    assert_result("{\"$$error\":\"shop:NoStock\",\"args\":[\"tea\"],\"bases\":[\"shop:ShopError\","
                  "\"LookupError\"],\"message\":\"tea\"}");
}

static void what_a_class_does_in_python_is_unsupported(void **state) {
    run_with("{'name':'shop:Cart','kind':'record','fields':['n'],'partial':true,'own':true}",
             "['attr',['new','shop:Cart',[1]],'total']");
    assert_raised("Unsupported");
    run_with("{'name':'shop:Cart','kind':'record','fields':['n'],'partial':true,'own':true}",
             "['call','str',[['new','shop:Cart',[1]]]]");
    assert_raised("Unsupported");
    run_with("{'name':'shop:Cart','kind':'record','fields':['n'],'partial':true}",
             "['call','type',[['type','shop:Cart']]]"); /* it may have a metaclass */
    assert_raised("Unsupported");
}

/* CPython takes a member of such an enum for the str or int that it is. A complaint about it is not the engine's to
 * make, whether its message names the class or not. */
static void a_complaint_about_an_object_with_code_is_unsupported(void **state) {
    static const char *const forms[] = {
        "['method','ab','strip',[%s]]",
        "['method','ab','translate',[['dict',97,%s]]]",
        "['method',['type','str'],'maketrans',[%s,'a']]",
        "['method',['type','str'],'maketrans',[['dict',%s,1]]]",
        "['method',['type','float'],'fromhex',[%s]]",
        "['call','int',[%s,36]]",
        "['call','bytes',[%s,'utf-8']]",
        "['call','pow',[1.5,%s,2]]",
        "['method',['list',1],'index',[1,%s]]",
        "['slice',['list',1],%s,null,null]",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        static char form[200];
        snprintf(form, sizeof form, forms[i],
                 "['const',{'$$enum':'shop:Kind','name':'A','value':'x'}]");
        run_with("{'name':'shop:Kind','kind':'enum','bare':true,'own_operators':true}", form);
        assert_raised("Unsupported");
    }
}

/* Loops, subscripts, `in` and len() see the text of a member of a StrEnum, and the number of a member of an IntEnum. */
#define KIND "['const',{'$$enum':'shop:Kind','name':'B','value':'yz'}]"
static void a_member_has_the_elements_of_its_value(void **state) {
    run_with("{'name':'shop:Kind','kind':'enum','bare':true,'own_operators':true}",
             "['list',['call','len',[" KIND "]],['call','list',[" KIND "]],['item'," KIND ",-1],"
             "['slice'," KIND ",0,1,null],['cmp','y','in'," KIND "],['cmp'," KIND ",'in','xyz'],"
             "['call','list',[['call','reversed',[" KIND "]]]]]");
    assert_result("[2,[\"y\",\"z\"],\"z\",\"y\",true,true,[\"z\",\"y\"]]");
    run_with("{'name':'shop:Rank','kind':'enum','bare':true,'own_operators':true}",
             "['item',['list',4,5],['const',{'$$enum':'shop:Rank','name':'LOW','value':1}]]");
    assert_result("5");
    run_with(
        "{'name':'shop:Rank','kind':'enum','bare':true,'own_operators':true}",
        "['%','%03d %x',['tuple',['const',{'$$enum':'shop:Rank','name':'LOW','value':31}],31]]");
    assert_result("\"031 1f\"");
    run_with("{'name':'shop:Kind','kind':'enum','bare':true,'own_operators':true}",
             "['%','%*d',['tuple'," KIND ",1]]");
    assert_raised("TypeError");
}

static void refused(const char *classes, const char *message) {
    static char json[1000];
    hd_error error = { 0 };
    snprintf(json, sizeof json,
             "{'heddle':1,'name':'w','classes':[%s],'functions':[{'name':'run','nodes':["
             "{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':[['in','out']]}]}",
             classes);
    assert_int_equal(hd_workflow_register(engine, parse(json), NULL, &error), HD_SYNTAX);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
    assert_string_equal(error.path, "/classes/0");
}

static void classes_that_cannot_be_are_refused(void **state) {
    refused("{'kind':'record'}", "a class has a \"name\"");
    refused("{'name':'a:B','kind':'thing'}", "is one of exception, record, tuple, enum");
    refused("{'name':'a:B','kind':'record','colour':1}", "unknown key \"colour\"");
    refused("{'name':'a:B','kind':'exception','base':'int'}", "cannot be the base");
    refused("{'name':'a:B','kind':'record','base':'ValueError'}", "cannot be the base");
    refused("{'name':'int','kind':'record'}", "another class \"int\"");
    refused("{'name':'a:B','kind':'record','frozen':1}", "\"frozen\" is true or false");
    refused("{'name':'a:B','kind':'record','fields':[1]}", "a field is a name");
}

/* Objects of the store have their keys sorted; "named" keeps the order of the source for what has effects. */
static void named_arguments_are_evaluated_in_order(void **state) {
    register_nodes("w",
                   "{'id':'c','kind':'CALC','do':[['assign',['list',1,2],['name','x']]]},"
                   "{'id':'a','kind':'ACTION','action':'give_back','named':["
                   "['v',['method',['name','x'],'pop',[]]],['a',['method',['name','x'],'pop',[]]]],"
                   "'into':['name','r']},{'id':'out','kind':'RETURN','value':['name','r']}",
                   "['in','c'],['c','a'],['a','out']");
    start("w", "{}");
    assert_result("2");
    assert_string_equal(seen, "{\"a\":1,\"v\":2}");
}

/* As in CPython: the action is called, and gets copies, when all arguments have been evaluated. */
static void an_argument_may_change_what_another_one_names(void **state) {
    register_nodes("w",
                   "{'id':'c','kind':'CALC','do':[['assign',['list',1,2],['name','x']]]},"
                   "{'id':'a','kind':'ACTION','action':'give_back','named':["
                   "['v',['name','x']],['a',['method',['name','x'],'append',[3]]]],"
                   "'into':['name','r']},{'id':'out','kind':'RETURN','value':['name','r']}",
                   "['in','c'],['c','a'],['a','out']");
    start("w", "{}");
    assert_result("[1,2,3]");
    assert_string_equal(seen, "{\"a\":null,\"v\":[1,2,3]}");
}

static const char loop_nodes[] =
    "{'id':'c','kind':'CALC','do':[['assign',['list'],['name','xs']]]},"
    "{'id':'f','kind':'FAN_HEAD','over':['call','range',[4]],'into':['name','i']},"
    "{'id':'a','kind':'ACTION','action':'refuse','args':{'v':['name','i']},'into':['name','r']},"
    "{'id':'b','kind':'BARRIER','mode':'ordered','give':['name','r'],'into':"
    "['slice',['name','xs'],['call','len',[['name','xs']]],null,null]},"
    "{'id':'none','kind':'RETURN'},"
    "{'id':'h','kind':'HANDLER','clauses':[{'as':'e'}]},"
    "{'id':'out','kind':'RETURN','value':['list',['name','xs'],['call','str',[['name','e']]]]}";

static void an_ordered_barrier_keeps_what_came_before_the_failure(void **state) {
    register_nodes("w", loop_nodes,
                   "['in','c'],['c','f'],['f','a','ELEM'],['a','b','JOIN'],['b','none'],"
                   "['f','h','EXCEPT'],['h','out','GUARD']");
    start("w", "{}");
    assert_result("[[0,10],\"2\"]");
}

static void race(const char *first, const char *second) {
    static char nodes[2000];
    snprintf(nodes, sizeof nodes,
             "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'SLEEP','seconds':%s},"
             "{'id':'ca','kind':'CALC','do':[['assign','a',['name','r']]]},"
             "{'id':'b','kind':'SLEEP','seconds':%s},"
             "{'id':'cb','kind':'CALC','do':[['assign','b',['name','r']]]},"
             "{'id':'j','kind':'BARRIER','mode':'first','give':['name','r'],'into':['name','all']},"
             "{'id':'out','kind':'RETURN','value':['listcomp',['call','repr',[['name','x']]],"
             "['for',['name','x'],['name','all']]]}",
             first, second);
    register_nodes("w", nodes,
                   "['in','f'],['f','a','ELEM'],['f','b','ELEM',1],['a','ca'],['b','cb'],"
                   "['ca','j','JOIN'],['cb','j','JOIN'],['j','out']");
    start("w", "{}");
    pump();
    advance(1000);
}

static void the_first_branch_cancels_the_others(void **state) {
    race("1", "5");
    assert_result("[\"'a'\",\"CancelledError()\"]");
    race("5", "1");
    assert_result("[\"CancelledError()\",\"'b'\"]");
}

static void calls_are_a_thousand_deep_at_most(void **state) {
    register_ir(
        "{'heddle':1,'name':'w','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'"
        "},{'id':'c','kind':'CALL','function':'f','args':[1]},{'id':'out','kind':'RETURN'}],"
        "'edges':[['in','c'],['c','out']]},{'name':'f','params':['n'],'nodes':["
        "{'id':'in','kind':'ENTRY'},{'id':'c','kind':'CALL','function':'f','args':["
        "['+',['name','n'],1]]},{'id':'out','kind':'RET'}],'edges':[['in','c'],['c','out']]}]}");
    start("w", "{}");
    assert_raised("RecursionError");
}

static void recorded_values_are_of_their_kinds(void **state) {
    register_nodes("w",
                   "{'id':'out','kind':'RETURN','value':['list',"
                   "['cmp',['call','heddle.now',[]],'>',0.0],"
                   "['cmp',0.0,'<=',['call','heddle.random',[]],'<',1.0],"
                   "['call','len',[['call','heddle.uuid',[]]]],"
                   "['item',['call','heddle.uuid',[]],14]]}",
                   "['in','out']");
    start("w", "{}");
    assert_result("[true,true,36,\"4\"]");
}

/* CPython looks the method up before it evaluates the arguments. */
static void a_method_is_looked_up_without_a_call(void **state) {
    run_with("", "['call','heddle.method',[['list'],'append']]");
    assert_result("null");
    run_with("", "['call','heddle.method',[['list'],'replace']]");
    assert_raised("AttributeError");
}

static void an_expression_raises_what_it_is_given(void **state) {
    run_with("", "['call','heddle.raise',[['new','KeyError',['k']]]]");
    assert_raised("KeyError");
    run_with("", "['call','heddle.raise',[3]]");
    assert_raised("TypeError");
}

static void groups_of_exceptions_have_their_parts(void **state) {
    static const char group[] = "['new','ExceptionGroup',['no',['list',['new','KeyError',['k']]]]]";
    static char form[800];
    snprintf(form, sizeof form,
             "['list',['call','str',[%s]],['attr',%s,'message'],['call','repr',[['item',['attr',%s,"
             "'exceptions'],0]]],['call','isinstance',[%s,['type','BaseExceptionGroup']]]]",
             group, group, group, group);
    run_with("", form);
    assert_result("[\"no (1 sub-exception)\",\"no\",\"KeyError('k')\",true]");
}

/* A name of a class has up to 200 bytes; complaints about its calls name its module, too, as in CPython. */
static void a_complaint_about_a_call_names_the_class(void **state) {
    char name[201], class_[300], form[300];
    for (int i = 0; i < 2; i++) {
        const char *rest = i ? "[],[['**',5]]" : "[['*',5]]";
        memset(name, 'A', 200);
        name[200] = 0;
        snprintf(class_, sizeof class_, "{'name':'%s','kind':'record'}", name);
        snprintf(form, sizeof form, "['new','%s',%s]", name, rest);
        run_with(class_, form);
        assert_raised("TypeError");
    }
    run_with(item, "['new','shop:Item',[['*',5]]]");
    assert_raised("TypeError");
    assert_non_null(strstr(printed(hd_value_at(document(), "error")),
                           "shop.Item() argument after * must be an iterable, not int"));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up_world, tear_down_world)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_declared_class_makes_records),
        T(a_class_may_have_other_fields_in_the_next_version),
        T(an_instance_has_the_classes_of_its_version),
        T(a_loaded_instance_has_the_classes_of_its_version),
        T(a_named_tuple_is_a_tuple),
        T(exceptions_are_caught_by_classes_of_the_program),
        T(an_unknown_class_is_met),
        T(what_a_class_does_in_python_is_unsupported),
        T(a_complaint_about_an_object_with_code_is_unsupported),
        T(a_member_has_the_elements_of_its_value),
        T(classes_that_cannot_be_are_refused),
        T(named_arguments_are_evaluated_in_order),
        T(an_argument_may_change_what_another_one_names),
        T(an_ordered_barrier_keeps_what_came_before_the_failure),
        T(the_first_branch_cancels_the_others),
        T(calls_are_a_thousand_deep_at_most),
        T(recorded_values_are_of_their_kinds),
        T(a_method_is_looked_up_without_a_call),
        T(an_expression_raises_what_it_is_given),
        T(groups_of_exceptions_have_their_parts),
        T(a_complaint_about_a_call_names_the_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
