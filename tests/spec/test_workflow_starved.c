/* test_workflow_starved.c -- one allocation fails, whichever: what was asked for happens all the same, and once.
 *
 * Each story is told once with memory; then again with its first allocation failing, its second, and so on. A call that
 * returns HD_NOMEM is made again. The story must end as it did with memory (W4): no message is lost, no child ends as
 * stalled, no read that failed counts as "not there". */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static bool broken;

static hd_status twice(hd_action *a, hd_value args, void *ctx) {
    int64_t n = hd_value_as_int(hd_value_index(args, 0), 0);
    if (broken) return hd_action_raise(a, "ValueError", "broken");
    return hd_action_return(a, hd_int(NULL, 2 * n));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "twice", .fn = twice, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

/* Again while there is no memory: the allocation that fails is one. */
#define AGAIN(call)                                                                                \
    for (hd_status status_ = HD_NOMEM; status_ == HD_NOMEM;) {                                     \
        status_ = (call);                                                                          \
        if (status_ && status_ != HD_NOMEM && status_ != HD_EXISTS)                                \
            fail_msg("%s: %s", hd_status_name(status_), hd_runtime_error(rt)->message);            \
    }

static const char *end_of(const char *which) {
    static char text[300];
    hd_value result;
    hd_status status = HD_NOMEM;
    while (status == HD_NOMEM) status = hd_workflow_await(engine, which, pool, &result);
    const char *json = NULL;
    while (!json) json = hd_json_print(pool, result, HD_JSON_COMPACT, NULL);
    snprintf(text, sizeof text, "%s %s", hd_status_name(status), json);
    return text;
}

static void start_with_key(const char *name) {
    hd_start_options o = { .key = "k" };
    AGAIN(hd_workflow_start(engine, name, hd_object(), &o, id));
}

static void pump_all(void) {
    for (int i = 0; i < 20; i++) (void)hd_runtime_pump(rt);
}

/* ---- stories: what is registered, and what is told while an allocation fails */

static void write_children(void) {
    register_ir("{'heddle':1,'name':'double','inputs':[{'name':'n','schema':{'type':'integer'}}],'"
                "functions':[{'name':'run','params':['n'],'nodes':[{'id':'in','kind':'ENTRY'},"
                "{'id':'a','kind':'ACTION','action':'twice','args':[['name','n']],'into':['name',"
                "'r']},{'id':'out','kind':'RETURN','value':['name','r']}],'edges':[['in','a'],['a',"
                "'out']]}]}");
    register_nodes("bad", "{'id':'r','kind':'RAISE','value':['new','ValueError',['oh']]}",
                   "['in','r']");
    register_nodes(
        "outer",
        "{'id':'f','kind':'FAN_HEAD','over':['call','range',[3]],'into':['name','i']},{'id':'c',"
        "'kind':'CHILD','workflow':'double','args':{'n':['name','i']},'into':['name','r']},{'id':"
        "'j','kind':'BARRIER','give':['name','r'],'into':['name','all']},{'id':'b','kind':'CHILD',"
        "'workflow':'bad'},{'id':'h','kind':'HANDLER','clauses':[{'classes':['ValueError'],'as':"
        "'e'}]},{'id':'caught','kind':'RETURN','value':['name','all']},{'id':'out','kind':'RETURN'"
        "}",
        "['in','f'],['f','c','ELEM'],['c','j','JOIN'],['j','b'],['b','out'],['b','h','EXCEPT'],['h'"
        ",'caught','GUARD',0]");
}
static const char *tell_children(void) {
    start_with_key("outer");
    return end_of("outer/k");
}

static void write_signals(void) {
    register_nodes("w",
                   "{'id':'a','kind':'WAIT','signal':'go','into':['name','x']},{'id':'b','kind':"
                   "'WAIT','signal':'on','into':['name','y']},{'id':'c','kind':'ACTION','action':"
                   "'twice','args':[['name','x']],'into':['name','x']},{'id':'out','kind':'RETURN',"
                   "'value':['list',['name','x'],['name','y']]}",
                   "['in','a'],['a','b'],['b','c'],['c','out']");
}
static const char *tell_signals(void) {
    start_with_key("w");
    AGAIN(hd_workflow_signal(engine, "w/k", "on", hd_int(NULL, 7)));
    AGAIN(hd_workflow_pause(engine, "w/k"));
    AGAIN(hd_workflow_signal(engine, "w/k", "go", hd_int(NULL, 4)));
    AGAIN(hd_workflow_resume(engine, "w/k"));
    return end_of("w/k");
}

static void write_rerun(void) {
    broken = true;
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'twice','args':[4],'into':['name','x']},"
                   "{'id':'out','kind':'RETURN','value':['name','x']}",
                   "['in','a'],['a','out']");
}
static const char *tell_rerun(void) {
    start_with_key("w");
    (void)end_of("w/k");
    broken = false;
    AGAIN(hd_workflow_rerun(engine, "w/k", "a"));
    return end_of("w/k");
}

static void write_cancel(void) {
    register_nodes("inner", "{'id':'w','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','w'],['w','out']");
    register_nodes("outer",
                   "{'id':'c','kind':'CHILD','workflow':'inner'},{'id':'out','kind':'RETURN'}",
                   "['in','c'],['c','out']");
}
static const char *tell_cancel(void) {
    start_with_key("outer");
    pump_all();
    AGAIN(hd_workflow_cancel(engine, "outer/k"));
    return end_of("outer/k");
}

/* ---- each allocation */

typedef struct story {
    const char *name;
    void (*write)(void);
    const char *(*tell)(void);
} story;

/* False: there are not so many allocations. */
static bool tell(const story *s, uint64_t nth, char out[300]) {
    env = lab_env_open();
    broken = false;
    open_store();
    s->write();
    pump();
    lab_env_fail_at(env, nth);
    snprintf(out, 300, "%s", s->tell());
    bool failed = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    pump();
    assert_int_equal(stats_now().open, 0);
    close_store();
    lab_env_close(env); /* complains about what was not freed */
    return failed;
}

static void check(const story *s) {
    char expected[300], got[300];
    where = NULL;
    (void)tell(s, 0, expected);
    for (uint64_t n = 1; tell(s, n, got); n++)
        if (strcmp(got, expected) != 0)
            fail_msg("%s, allocation %llu: %s instead of %s", s->name, (unsigned long long)n, got,
                     expected);
}

static void children_end_as_they_do_with_memory(void **state) {
    check(&(story){ "children", write_children, tell_children });
}
static void no_message_is_lost(void **state) {
    check(&(story){ "signals", write_signals, tell_signals });
}
static void a_rerun_takes_place(void **state) {
    check(&(story){ "rerun", write_rerun, tell_rerun });
}
static void cancelling_reaches_children(void **state) {
    check(&(story){ "cancel", write_cancel, tell_cancel });
}

/* What is due and cannot be done is tried again soon, not at once: the program does not turn in circles. */
static void without_memory_the_engine_does_not_spin(void **state) {
    env = lab_env_open();
    where = NULL;
    open_store();
    register_nodes("w", "{'id':'s','kind':'SLEEP','seconds':1},{'id':'out','kind':'RETURN'}",
                   "['in','s'],['s','out']");
    for (int i = 0; i < 3; i++) start("w", "{}");
    pump();
    const hd_env *of = lab_env_of(env);
    lab_env_advance_ms(env, 1000);
    lab_env_fail_from(env, 1);
    (void)hd_runtime_pump(rt);
    assert_true(hd_runtime_deadline(rt) > of->monotonic_ns(of->ctx));
    lab_env_fail_at(env, 0);
    pump();
    assert_int_equal(stats_now().open, 0);
    close_store();
    lab_env_close(env);
}

/* An action for which there was no memory is registered again: it is given all steps that wait for it. */
static bool register_at(uint64_t n) {
    hd_action_spec spec = { .name = "half", .fn = twice, .here = true };
    env = lab_env_open();
    where = NULL;
    open_store();
    register_nodes("w",
                   "{'id':'f','kind':'FAN_HEAD'},{'id':'a','kind':'ACTION','action':'half','args':["
                   "1],'queue':'q1'},{'id':'b','kind':'ACTION','action':'half','args':[1],'queue':"
                   "'q2'},{'id':'j','kind':'BARRIER'},{'id':'out','kind':'RETURN'}",
                   "['in','f'],['f','a','ELEM',0],['f','b','ELEM',1],['a','j','JOIN'],['b','j',"
                   "'JOIN'],['j','out']");
    start("w", "{}");
    pump();
    lab_env_fail_at(env, n);
    hd_status status = hd_action_register(engine, &spec);
    bool failed = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    assert_int_equal(status, failed ? HD_NOMEM : HD_OK);
    if (failed) assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    pump();
    assert_int_equal(stats_now().open, 0);
    close_store();
    lab_env_close(env);
    return failed;
}

static void an_action_is_registered_again(void **state) {
    for (uint64_t n = 1; register_at(n); n++) {}
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_end_as_they_do_with_memory),
        cmocka_unit_test(no_message_is_lost),
        cmocka_unit_test(a_rerun_takes_place),
        cmocka_unit_test(cancelling_reaches_children),
        cmocka_unit_test(without_memory_the_engine_does_not_spin),
        cmocka_unit_test(an_action_is_registered_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
