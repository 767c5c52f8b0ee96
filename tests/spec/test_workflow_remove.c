/* test_workflow_remove.c -- instances that are over are deleted: with their journals, from any engine, once. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static hd_memory *memory;
static hd_runtime *rt2;
static hd_engine *engine2;
static int calls;

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_int(NULL, ++calls));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "count", .fn = count, .here = true };
    calls = 0;
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static bool note(const hd_listing *entry, void *ctx) { return ++*(int *)ctx, true; }

/* Documents of this prefix. */
static int documents(const char *prefix) {
    int found = 0;
    assert_int_equal(hd_runtime_list(rt, "main", NULL, prefix, note, &found), HD_OK);
    return found;
}

/* "w": an action, a journal of steps. "long": so many rounds of a loop, four entries each. */
static void register_two(void) {
    register_ir("{'heddle':1,'name':'w','journal':'steps','functions':[{'name':'run','nodes':[{'id'"
                ":'in','kind':'ENTRY'},{'id':'a','kind':'ACTION','action':'count','into':['name',"
                "'r']},{'id':'out','kind':'RETURN','value':['name','r']}],"
                "'edges':[['in','a'],['a','out']]}]}");
    register_ir("{'heddle':1,'name':'long','journal':'nodes','inputs':[{'name':'n'}],'functions':[{"
                "'name':'run','params':['n'],'nodes':[{'id':'in','kind':'ENTRY'},"
                "{'id':'loop','kind':'LOOP_HEAD','over':['call','range',[['name','n']]],'into':["
                "'name','i']},{'id':'c','kind':'CALC','do':[['assign',['name','i'],['name','x']]]},"
                "{'id':'out','kind':'RETURN','value':['name','n']}],'edges':[['in','loop'],"
                "['loop','c','CONTINUE'],['c','loop','BACK'],['loop','out','BREAK']]}]}");
}

static void register_wait(void) {
    register_nodes("wait", "{'id':'wait','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','wait'],['wait','out']");
}

static void an_instance_goes_with_its_journal(void **state) {
    hd_value v;
    register_two();
    start_keyed("w", "k", "{}");
    assert_result("1");
    assert_int_equal(documents("workflow-journal/"), 1);
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    assert_int_equal(documents("workflow/"), 0);
    assert_int_equal(documents("workflow-journal/"), 0);
    assert_int_equal(hd_workflow_state(engine, id, pool, &v), HD_NOT_FOUND);
    assert_int_equal(await(&v), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_remove(engine, id), HD_NOT_FOUND);
}

static void its_key_may_be_used_again(void **state) {
    register_two();
    start_keyed("w", "k", "{}");
    assert_result("1");
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    start_keyed("w", "k", "{}");
    assert_result("2");
    assert_int_equal(documents("workflow-journal/"), 1);
}

static void what_is_not_over_is_refused(void **state) {
    register_wait();
    start_keyed("wait", "k", "{}");
    assert_int_equal(hd_workflow_remove(engine, id), HD_USAGE); /* not even stored */
    pump();
    assert_int_equal(hd_workflow_remove(engine, id), HD_USAGE);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "wait/k is not over"));
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_workflow_remove(engine, id), HD_USAGE);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_string_equal(field("status"), "cancelled");
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    assert_int_equal(documents("workflow/"), 0);
}

static void children_stay(void **state) {
    register_two();
    register_nodes("outer",
                   "{'id':'c','kind':'CHILD','workflow':'w','into':['name','r']},"
                   "{'id':'out','kind':'RETURN','value':['name','r']}",
                   "['in','c'],['c','out']");
    start_keyed("outer", "k", "{}");
    assert_result("1");
    assert_int_equal(hd_workflow_remove(engine, "outer/k"), HD_OK);
    assert_int_equal(documents("workflow/"), 1);
    assert_int_equal(hd_workflow_remove(engine, "w/outer:k.0.1"), HD_OK);
    assert_int_equal(documents("workflow/"), 0);
}

static hd_status write_child(hd_tx *tx, void *ctx) {
    return hd_tx_set(tx, hd_workflow_cell(engine, "w/child"), *(hd_value *)ctx);
}

/* As if there had been no memory to tell the parent. */
static void a_child_that_its_parent_waits_for_stays(void **state) {
    register_wait();
    start_keyed("wait", "k", "{}");
    pump();
    hd_value child = parse("{'workflow':'w','status':'done','result':null,"
                           "'parent':{'id':'wait/k','strand':0,'step':1}}");
    assert_int_equal(hd_transact(rt, write_child, &child), HD_OK);
    assert_int_equal(hd_workflow_remove(engine, "w/child"), HD_BUSY);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    pump();
    assert_int_equal(hd_workflow_remove(engine, "w/child"), HD_OK);
}

static void a_long_journal_goes_in_slices(void **state) {
    hd_value result;
    register_two();
    start("long", "{'n':18000}"); /* 72,000 entries are 282 segments */
    assert_int_equal(await(&result), HD_OK);
    assert_in_range(documents("workflow-journal/"), 257, 512);
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    assert_int_equal(documents("workflow-journal/"), 0);
    assert_int_equal(documents("workflow/"), 0);
}

/* ---- a file, and no memory */

static void remove_file(const char *path) {
    static const char *const tails[] = { "", "-wal", "-shm", "-lock", "-workers" };
    char name[100];
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(name, sizeof name, "%s%s", path, tails[i]);
        (void)unlink(name);
    }
}

/* Allocation n fails, and the program ends. What is left is whole, or gone; the next program removes the rest. */
static bool fail_at(uint64_t n) {
    env = lab_env_open();
    open_store();
    register_two();
    start_keyed("w", "k", "{}");
    assert_result("1");
    lab_env_fail_from(env, n);
    hd_status status = hd_workflow_remove(engine, id);
    bool failed = lab_env_failed(env);
    lab_env_fail_from(env, 0);
    hd_pool_close(pool);
    (void)hd_close(rt); /* says what failed */
    open_store();
    if (!status) assert_int_equal(documents("workflow/"), 0);
    int left = documents("workflow/");
    assert_int_equal(documents("workflow-journal/"), left);
    assert_int_equal(hd_workflow_remove(engine, id), left ? HD_OK : HD_NOT_FOUND);
    assert_int_equal(documents("workflow-journal/"), 0);
    close_store();
    lab_env_close(env);
    return failed;
}

static void any_allocation_may_fail(void **state) {
    char file[64];
    snprintf(file, sizeof file, "/tmp/heddle-remove-%d.db", (int)getpid());
    where = file;
    for (uint64_t n = 1; fail_at(n); n++) remove_file(file);
    remove_file(file);
    where = NULL;
}

/* ---- two engines */

static int set_up_two(void **state) {
    env = lab_env_open();
    where = NULL;
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    open_engine(memory, &rt, &engine);
    open_engine(memory, &rt2, &engine2);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    register_two();
    return 0;
}

static int tear_down_two(void **state) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_close(rt2), HD_OK);
    hd_memory_close(memory);
    lab_env_close(env);
    return 0;
}

static void pump_both(void) {
    for (int i = 0; i < 12; i++) {
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        assert_int_equal(hd_runtime_sync(rt2), HD_OK);
        assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
        assert_in_range(hd_runtime_pump(rt2), 0, HD_PENDING);
    }
}

static void one_that_stands_by_removes_too(void **state) {
    start_keyed("w", "k", "{}");
    pump_both();
    assert_int_equal(hd_workflow_remove(engine2, id), HD_OK);
    pump_both();
    assert_int_equal(documents("workflow/"), 0);
    assert_int_equal(documents("workflow-journal/"), 0);
    start_keyed("w", "k", "{}");
    pump_both();
    assert_result("2");
}

/* The rerun and the removal are both made before either has heard of the other: one of them is refused. */
static void a_rerun_and_a_removal_do_not_mix(void **state) {
    start_keyed("w", "k", "{}");
    pump_both();
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    assert_int_equal(hd_workflow_remove(engine2, id), HD_OK);
    pump_both();
    assert_int_equal(documents("workflow/"), 0);
    assert_int_equal(documents("workflow-journal/"), 0);
    assert_int_equal(stats_now().open, 0);
}

static void end(const char *of, hd_status status, hd_value result, void *ctx) {
    *(hd_status *)ctx = status;
}

/* The one that waits hears of the end and of the removal at once. */
static void who_waits_is_told_that_it_is_gone(void **state) {
    hd_status told = HD_PENDING;
    register_wait();
    start_keyed("wait", "k", "{}");
    pump_both();
    assert_int_equal(hd_workflow_then(engine2, id, end, &told), HD_OK);
    pump_both();
    assert_int_equal(told, HD_PENDING);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    pump_both();
    assert_int_equal(told, HD_NOT_FOUND);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
#define WITH_TWO(test)   cmocka_unit_test_setup_teardown(test, set_up_two, tear_down_two)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(an_instance_goes_with_its_journal),
        IN_A_WORLD(its_key_may_be_used_again),
        IN_A_WORLD(what_is_not_over_is_refused),
        IN_A_WORLD(children_stay),
        IN_A_WORLD(a_child_that_its_parent_waits_for_stays),
        IN_A_WORLD(a_long_journal_goes_in_slices),
        cmocka_unit_test(any_allocation_may_fail),
        WITH_TWO(one_that_stands_by_removes_too),
        WITH_TWO(a_rerun_and_a_removal_do_not_mix),
        WITH_TWO(who_waits_is_told_that_it_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
