/* test_workflow_look.c -- lists of instances and what one does now: honest states. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static hd_status fine(hd_action *a, hd_value args, void *ctx) { return HD_OK; }
static hd_status broken(hd_action *a, hd_value args, void *ctx) {
    return hd_action_raise(a, "ValueError", "no");
}

static void register_actions(hd_engine *e) {
    hd_action_spec all[] = { { .name = "fine", .fn = fine, .here = true },
                             { .name = "broken", .fn = broken, .here = true } };
    for (size_t i = 0; i < 2; i++) assert_int_equal(hd_action_register(e, &all[i]), HD_OK);
}

/* ---- lists */

static char seen[2000];
static bool note(const hd_workflow_entry *e, void *ctx) {
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof seen - n, "%s=%s ", e->id, e->status);
    return true;
}

static void assert_listed(const hd_workflow_filter *f, const char *expected) {
    seen[0] = 0;
    assert_int_equal(hd_workflow_list(engine, f, note, NULL), HD_OK);
    assert_string_equal(seen, expected);
}

static void register_three(void) {
    register_nodes("wait", "{'id':'w','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','w'],['w','out']");
    register_nodes("good", "{'id':'out','kind':'RETURN','value':1}", "['in','out']");
    register_nodes("bad",
                   "{'id':'a','kind':'ACTION','action':'broken'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
}

static void instances_are_listed_by_status_name_and_time(void **state) {
    register_three();
    start_keyed("wait", "a", "{}");
    start_keyed("good", "b", "{}");
    start_keyed("bad", "c", "{}");
    pump();
    lab_env_advance_ms(env, 5000);
    uint64_t now = lab_env_of(env)->wall_ms(lab_env_of(env)->ctx);
    start_keyed("wait", "d", "{}");
    pump();
    assert_listed(NULL, "bad/c=failed good/b=done wait/a=running wait/d=running ");
    assert_listed(&(hd_workflow_filter){ .status = "running" }, "wait/a=running wait/d=running ");
    assert_listed(&(hd_workflow_filter){ .name = "good" }, "good/b=done ");
    assert_listed(&(hd_workflow_filter){ .name = "goo" }, "");
    assert_listed(&(hd_workflow_filter){ .status = "done", .name = "wait" }, "");
    assert_listed(&(hd_workflow_filter){ .since_ms = now }, "wait/d=running ");
    assert_listed(&(hd_workflow_filter){ .until_ms = now, .name = "wait" }, "wait/a=running ");
    hd_workflow_filter slip = { .status = "Done" };
    assert_int_equal(hd_workflow_list(engine, &slip, NULL, NULL), HD_USAGE);
    assert_listed(&(hd_workflow_filter){ .limit = 2 }, "bad/c=failed good/b=done ");
    assert_listed(&(hd_workflow_filter){ .limit = 2, .after = "good/b" },
                  "wait/a=running wait/d=running ");
}

/* ---- states */

static const char *state_now(void) {
    hd_value v;
    assert_int_equal(hd_workflow_state(engine, id, pool, &v), HD_OK);
    return hd_value_as_text(hd_value_at(hd_value_index(hd_value_at(v, "steps"), 0), "state"), "");
}

static hd_value first_step(hd_engine *e) {
    hd_value v;
    assert_int_equal(hd_workflow_state(e, id, pool, &v), HD_OK);
    return hd_value_index(hd_value_at(v, "steps"), 0);
}

static void a_state_says_what_an_instance_waits_for(void **state) {
    hd_value v;
    register_nodes(
        "w",
        "{'id':'s','kind':'SLEEP','seconds':10},{'id':'wait','kind':'WAIT','signal':'go'},"
        "{'id':'b','kind':'ACTION','action':'broken','retry':{'attempts':2,'backoff':60},'at':'f."
        "py:3:1'},"
        "{'id':'h','kind':'HANDLER','clauses':[{}]},{'id':'n','kind':'ACTION','action':'nobody'},"
        "{'id':'m','kind':'MERGE'},{'id':'out','kind':'RETURN'}",
        "['in','s'],['s','wait'],['wait','b'],['b','m'],['b','h','EXCEPT'],['h','n','GUARD',0],['"
        "n','m'],['m','out']");
    start("w", "{}");
    pump();
    assert_string_equal(state_now(), "sleeping");
    assert_true(hd_value_exists(hd_value_at(first_step(engine), "due")));
    advance(10001);
    assert_string_equal(state_now(), "waiting");
    assert_string_equal(hd_value_as_text(hd_value_at(first_step(engine), "signal"), ""), "go");
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    pump();
    v = first_step(engine);
    assert_string_equal(hd_value_as_text(hd_value_at(v, "state"), ""), "retrying");
    assert_string_equal(hd_value_as_text(hd_value_at(v, "at"), ""), "f.py:3:1");
    assert_int_equal(hd_value_as_int(hd_value_at(v, "attempt"), 0), 2);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    advance(70000);
    assert_string_equal(state_now(), "retrying");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    advance(1);
    assert_string_equal(state_now(), "no worker");
    assert_int_equal(hd_workflow_state(engine, "w/none", pool, &v), HD_NOT_FOUND);
}

static void a_state_counts_the_branches_that_are_done(void **state) {
    register_nodes(
        "w",
        "{'id':'fan','kind':'FAN_HEAD','over':['call','range',[5]],'into':['name','i']},"
        "{'id':'a','kind':'ACTION','action':'fine'},{'id':'wait','kind':'WAIT','signal':'go'},"
        "{'id':'all','kind':'BARRIER'},{'id':'out','kind':'RETURN'}",
        "['in','fan'],['fan','a','ELEM'],['a','wait'],['wait','all','JOIN'],['all','out']");
    start("w", "{}");
    pump();
    for (int i = 0; i < 2; i++)
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    pump();
    hd_value f = hd_value_at(first_step(engine), "fan");
    assert_int_equal(hd_value_as_int(hd_value_at(f, "done"), -1), 2);
    assert_int_equal(hd_value_as_int(hd_value_at(f, "total"), -1), 5);
}

/* A branch of a fan-out that says that it was begun in itself: the step is left out. */
static void assert_damage_is_survived(hd_runtime *at, hd_engine *looking) {
    char open[HD_INSTANCE_ID_SIZE + 32], fans[HD_INSTANCE_ID_SIZE + 32];
    hd_value v;
    snprintf(open, sizeof open, "main/workflow/%s#/open/0", id);
    snprintf(fans, sizeof fans, "main/workflow/%s#/fans", id);
    hd_write_json(at, hd_cell_at(at, open), "[\"s\", 0, 0, {\"fan\": 1}]");
    hd_write_json(at, hd_cell_at(at, fans), "{\"1\": {\"in\": {\"fan\": 1}}}");
    assert_int_equal(hd_workflow_state(looking, id, pool, &v), HD_OK);
    assert_false(hd_value_exists(hd_value_at(v, "steps")));
}

/* An engine that is not active reads the document. */
static void an_observer_sees_the_same_steps(void **state) {
    hd_memory *memory;
    hd_runtime *rt1 = rt, *other;
    hd_engine *engine1 = engine, *looking;
    hd_engine_options observer = { .observer = true };
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    open_engine(memory, &rt, &engine);
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    assert_int_equal(hd_open(NULL, &options, &other, NULL), HD_OK);
    assert_int_equal(hd_engine_open(other, &observer, &looking, NULL), HD_OK);
    hd_pool *kept = pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    register_nodes("w", "{'id':'s','kind':'SLEEP','seconds':10},{'id':'out','kind':'RETURN'}",
                   "['in','s'],['s','out']");
    start("w", "{}");
    pump();
    hd_runtime_pump(other);
    hd_value mine = first_step(engine), seen_there = first_step(looking);
    assert_string_equal(printed(mine), printed(seen_there));
    assert_damage_is_survived(other, looking);
    hd_pool_close(pool);
    hd_close(other);
    hd_close(rt);
    hd_memory_close(memory);
    pool = kept;
    rt = rt1;
    engine = engine1;
}

/* A failed instance says at which node it failed, also in a function that it called, and where that stands; a rerun
 * that goes well does not any more. */
static void a_failed_instance_says_where(void **state) {
    hd_value v;
    register_nodes("where",
                   "{'id':'a','kind':'ACTION','action':'fine'},"
                   "{'id':'bö','kind':'ACTION','action':'broken','at':'flow.c:12'},"
                   "{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','bö'],['bö','out']");
    start_keyed("where", "x", "{}");
    pump();
    assert_int_equal(hd_workflow_state(engine, "where/x", pool, &v), HD_OK);
    hd_value at = hd_value_at(v, "failed_at");
    assert_string_equal(hd_value_as_text(hd_value_at(at, "node"), ""), "bö");
    assert_string_equal(hd_value_as_text(hd_value_at(at, "at"), ""), "flow.c:12");
    hd_action_spec mended = { .name = "broken", .fn = fine, .here = true };
    assert_int_equal(hd_action_register(engine, &mended), HD_OK);
    assert_int_equal(hd_workflow_rerun(engine, "where/x", "bö"), HD_OK);
    pump();
    assert_int_equal(hd_workflow_state(engine, "where/x", pool, &v), HD_OK);
    assert_string_equal(hd_value_as_text(hd_value_at(v, "status"), ""), "done");
    assert_false(hd_value_exists(hd_value_at(v, "failed_at")));
}

/* A step that is tried again says what the attempt before has raised. */
static void a_retry_has_its_reason(void **state) {
    register_nodes(
        "again",
        "{'id':'a','kind':'ACTION','action':'broken','retry':{'attempts':3,'backoff':5}},"
        "{'id':'out','kind':'RETURN'}",
        "['in','a'],['a','out']");
    start_keyed("again", "x", "{}");
    pump();
    hd_value step = first_step(engine);
    assert_string_equal(hd_value_as_text(hd_value_at(step, "state"), ""), "retrying");
    assert_string_equal(hd_value_as_text(hd_value_at(step, "why"), ""), "ValueError: no");
}

/* The refusal of a signal lists those that the workflow waits for, and says so where there are more than it lists. */
static void a_refused_signal_lists_the_others(void **state) {
    char nodes[3000], edges[1000], last[20] = "in";
    for (int count = 2; count <= 20; count += 18) {
        size_t n = 0, m = 0;
        for (int i = 0; i < count; i++) {
            n += (size_t)snprintf(nodes + n, sizeof nodes - n,
                                  "{'id':'s%d','kind':'WAIT','signal':'a-long-signal-%d'},", i, i);
            m += (size_t)snprintf(edges + m, sizeof edges - m, "['%s','s%d'],", last, i);
            snprintf(last, sizeof last, "s%d", i);
        }
        snprintf(nodes + n, sizeof nodes - n, "{'id':'out','kind':'RETURN'}");
        snprintf(edges + m, sizeof edges - m, "['%s','out']", last);
        snprintf(last, sizeof last, "in");
        register_nodes("w", nodes, edges);
        start("w", "{}");
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_USAGE);
        const char *message = hd_runtime_error(rt)->message;
        const char *end = count == 2 ? "\"a-long-signal-0\", \"a-long-signal-1\"" : "\", ...";
        assert_non_null(
            strstr(message, "w waits for no signal \"go\"; it waits for \"a-long-signal-0"));
        assert_string_equal(message + strlen(message) - strlen(end), end);
    }
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(instances_are_listed_by_status_name_and_time),
        IN_A_WORLD(a_state_says_what_an_instance_waits_for),
        IN_A_WORLD(a_state_counts_the_branches_that_are_done),
        IN_A_WORLD(an_observer_sees_the_same_steps),
        IN_A_WORLD(a_failed_instance_says_where),
        IN_A_WORLD(a_retry_has_its_reason),
        IN_A_WORLD(a_refused_signal_lists_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
