/* test_workflow_keep.c -- instances that are over leave the store by themselves: after a time, or beyond a number, by
 * the policy of the engine or of their workflow. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static char file[64];

static hd_status one(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_int(NULL, 1));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "one", .fn = one, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static void remove_file(void) {
    static const char *const tails[] = { "", "-wal", "-shm", "-lock", "-workers" };
    char name[100];
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(name, sizeof name, "%s%s", file, tails[i]);
        (void)unlink(name);
    }
}

static int set_up_file(void **state) {
    env = lab_env_open();
    snprintf(file, sizeof file, "/tmp/heddle-keep-%d.db", (int)getpid());
    remove_file();
    where = file;
    open_store();
    return 0;
}

static int tear_down_file(void **state) {
    close_store();
    lab_env_close(env);
    remove_file();
    return 0;
}

/* The runtime's engine, with this policy. */
static void keep(uint64_t ms, uint64_t most) {
    hd_engine_options options = { .keep_ms = ms, .keep_most = most };
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, &options, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
}

#define STEP                                                                                       \
    "'functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'},{'id':'a','kind':'ACTION',"    \
    "'action':'one','into':['name','r']},{'id':'out','kind':'RETURN','value':['name','r']}],"      \
    "'edges':[['in','a'],['a','out']]}]}"

static void register_all(void) {
    register_ir("{'heddle':1,'name':'w','journal':'steps'," STEP);
    register_ir("{'heddle':1,'name':'own','keep':{'seconds':5}," STEP);
    register_ir("{'heddle':1,'name':'good','keep':{}," STEP);
    register_nodes("wait", "{'id':'wait','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','wait'],['wait','out']");
}

static bool count_entry(const hd_listing *entry, void *ctx) { return ++*(int *)ctx, true; }

/* Documents of this prefix. */
static int documents(const char *prefix) {
    int found = 0;
    assert_int_equal(hd_runtime_list(rt, "main", NULL, prefix, count_entry, &found), HD_OK);
    return found;
}

/* On a file verdicts come when they come. */
static void wait_for(const char *prefix, int count) {
    for (int i = 0; i < 1000 && documents(prefix) != count; i++) advance(100);
    assert_int_equal(documents(prefix), count);
}

static void run(const char *name, const char *key) {
    start_keyed(name, key, "{}");
    assert_result("1");
}

/* `count` instances with the keys "0", "1", ... */
static void run_many(const char *name, int from, int count) {
    for (int i = from; i < from + count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        run(name, key);
        lab_env_advance_ms(env, 1);
    }
    pump();
}

static bool is_there(const char *instance) {
    hd_value v;
    return hd_workflow_state(engine, instance, pool, &v) == HD_OK;
}

#define HOUR 3600000

static void an_end_goes_after_its_time(void **state) {
    keep(10 * HOUR, 0);
    register_all();
    run("w", "a");
    lab_env_advance_ms(env, 5 * HOUR);
    run("w", "b");
    pump();
    assert_int_equal(documents("workflow/"), 2);
    assert_int_equal(documents("workflow-journal/"), 2);
    advance(4 * HOUR);
    assert_int_equal(documents("workflow/"), 2);
    advance(1 * HOUR);
    wait_for("workflow/", 1);
    assert_false(is_there("w/a"));
    assert_true(is_there("w/b"));
    advance(5 * HOUR);
    wait_for("workflow/", 0);
    wait_for("workflow-journal/", 0);
    wait_for("workflow-ended/", 0);
    pump();
    assert_int_equal(stats_now().removed, 2);
}

static void an_end_goes_at_its_millisecond(void **state) {
    keep(1000, 0);
    register_all();
    run("w", "a");
    advance(999);
    assert_true(is_there("w/a"));
    advance(1);
    assert_false(is_there("w/a"));
}

static void the_engine_wakes_when_one_is_due_and_not_before(void **state) {
    keep(60000, 0);
    register_all();
    run("w", "a");
    pump();
    const hd_env *clock = lab_env_of(env);
    uint64_t now = clock->monotonic_ns(clock->ctx), due = hd_runtime_deadline(rt);
    assert_in_range(due, now + UINT64_C(59000000000), now + UINT64_C(60001000000));
    advance(60000);
    assert_int_equal(documents("workflow/"), 0);
    assert_int_equal(hd_runtime_deadline(rt), UINT64_MAX);
}

static void a_workflow_has_its_own_policy(void **state) {
    keep(1000, 0);
    register_all();
    run("w", "a");
    run("own", "a");
    run("good", "a");
    advance(1000);
    assert_int_equal(documents("workflow/"), 2);
    advance(4000);
    assert_int_equal(documents("workflow/"), 1);
    advance(10000000);
    assert_true(is_there("good/a"));
}

static void without_a_policy_all_stay(void **state) {
    register_all();
    run("w", "a");
    run("own", "a");
    advance(4999);
    assert_int_equal(documents("workflow/"), 2);
    assert_int_equal(documents("workflow-ended/"), 1);
    advance(1);
    assert_true(is_there("w/a"));
    assert_false(is_there("own/a"));
}

static void the_oldest_ends_go_beyond_a_number(void **state) {
    keep(0, 3);
    register_all();
    run_many("w", 0, 10);
    run_many("good", 0, 4);
    wait_for("workflow/w/", 3);
    assert_true(is_there("w/7") && is_there("w/8") && is_there("w/9"));
    keep(0, 2); /* counts what it finds */
    wait_for("workflow/w/", 2);
    run_many("w", 10, 1);
    wait_for("workflow/w/", 2);
    assert_int_equal(documents("workflow/good/"), 4);
    assert_true(is_there("w/9") && is_there("w/10"));
}

/* On a file what has just ended is read from the log, which takes its time: fewer of them there. */
/* docs/IR.md, "keep": while more than n instances are over, the one that ended first goes. */
static void one_that_runs_again_takes_nobodys_place(void **state) {
    keep(0, 3);
    register_all();
    run_many("w", 1, 3);
    for (int i = 0; i < 3; i++) {
        lab_env_advance_ms(env, 5);
        assert_int_equal(hd_workflow_rerun(engine, "w/3", NULL), HD_OK);
        pump();
        advance(100);
        assert_int_equal(documents("workflow/"), 3);
    }
    assert_true(is_there("w/1"));
    run_many("w", 4, 1);
    wait_for("workflow/", 3);
    assert_false(is_there("w/1"));
    run_many("w", 5, 1);
    wait_for("workflow/", 3);
    assert_true(is_there("w/3"));
}

static void one_that_was_removed_takes_nobodys_place(void **state) {
    keep(0, 3);
    register_all();
    run_many("w", 1, 3);
    assert_int_equal(hd_workflow_remove(engine, "w/2"), HD_OK);
    pump();
    run_many("w", 4, 1);
    advance(100);
    assert_true(is_there("w/1"));
    assert_int_equal(documents("workflow/"), 3);
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, &(hd_engine_options){ .keep_most = 3 }, &engine, NULL),
                     HD_OK);
    register_actions(engine);
    pump();
    assert_int_equal(hd_workflow_remove(engine, "w/3"), HD_OK);
    keep(0, 3);
    run_many("w", 5, 1);
    advance(100);
    assert_int_equal(documents("workflow/"), 3);
    run_many("w", 6, 1);
    wait_for("workflow/", 3);
    assert_false(is_there("w/1"));
}

static void many_at_once_go_beyond_a_number(void **state) {
    uint64_t count = where ? 150 : 700;
    keep(0, 100);
    register_all();
    for (uint64_t i = 0; i < count; i++) start("w", "{}");
    while (stats_now().finished < count) pump();
    wait_for("workflow/w/", 100);
    pump();
    assert_int_equal(stats_now().removed, count - 100);
}

static void what_is_open_stays(void **state) {
    keep(1000, 1);
    register_all();
    start_keyed("wait", "k", "{}");
    pump();
    advance(100000);
    assert_string_equal(field("status"), "running");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_string_equal(field("status"), "cancelled");
    advance(1000);
    assert_int_equal(documents("workflow/"), 0);
}

static void children_of_an_open_parent_go_and_it_goes_on(void **state) {
    keep(1000, 0);
    register_all();
    register_nodes("outer",
                   "{'id':'c','kind':'CHILD','workflow':'w','into':['name','r']},"
                   "{'id':'wait','kind':'WAIT','signal':'go'},"
                   "{'id':'out','kind':'RETURN','value':['name','r']}",
                   "['in','c'],['c','wait'],['wait','out']");
    start_keyed("outer", "k", "{}");
    pump();
    assert_int_equal(documents("workflow/w/"), 1);
    advance(1000);
    assert_int_equal(documents("workflow/w/"), 0);
    keep(1000, 0); /* loads the parent */
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    assert_result("1");
    advance(1000);
    assert_int_equal(documents("workflow/"), 0);
}

static void one_that_runs_again_is_kept_from_its_last_end(void **state) {
    keep(1000, 0);
    register_all();
    run("w", "a");
    advance(600);
    assert_int_equal(hd_workflow_rerun(engine, id, NULL), HD_OK);
    assert_result("1");
    advance(600);
    assert_true(is_there("w/a"));
    advance(400);
    assert_false(is_there("w/a"));
    assert_int_equal(documents("workflow-ended/"), 0);
}

static void a_key_that_is_used_again_is_another_instance(void **state) {
    keep(1000, 0);
    register_all();
    run("w", "a");
    assert_int_equal(hd_workflow_remove(engine, id), HD_OK);
    advance(600);
    run("w", "a");
    advance(600);
    assert_true(is_there("w/a"));
    advance(400);
    assert_false(is_there("w/a"));
    run("w", "a"); /* the key is free */
}

static void a_long_journal_goes_in_slices(void **state) {
    hd_value result;
    register_ir("{'heddle':1,'name':'long','journal':'nodes','keep':{'seconds':1},'inputs':[{'name'"
                ":'n'}],'functions':[{'name':'run','params':['n'],'nodes':[{'id':'in','kind':"
                "'ENTRY'},"
                "{'id':'loop','kind':'LOOP_HEAD','over':['call','range',[['name','n']]],'into':["
                "'name','i']},{'id':'c','kind':'CALC','do':[['assign',['name','i'],['name','x']]]},"
                "{'id':'out','kind':'RETURN','value':['name','n']}],'edges':[['in','loop'],"
                "['loop','c','CONTINUE'],['c','loop','BACK'],['loop','out','BREAK']]}]}");
    start("long", "{'n':4300}");
    assert_int_equal(await(&result), HD_OK);
    assert_in_range(documents("workflow-journal/"), 65, 256);
    advance(1000);
    assert_int_equal(documents("workflow-journal/"), 0);
    assert_int_equal(documents("workflow/"), 0);
}

/* What a program has noted, the next one removes, whatever its own policy is. On a file a wait for the disk moves the
 * lab's clock to the next time that something is due. */
static void the_next_program_removes_them(void **state) {
    keep(10 * HOUR, 0);
    register_all();
    run_many("w", 0, 5);
    close_store();
    lab_env_advance_ms(env, 10 * HOUR);
    open_store();
    wait_for("workflow/", 0);
    wait_for("workflow-ended/", 0);
}

/* The bound of the workflow itself: the next engine has not heard of an end of it. */
static void the_next_program_removes_those_beyond_a_number(void **state) {
    register_ir("{'heddle':1,'name':'some','keep':{'most':3}," STEP);
    register_ir("{'heddle':1,'name':'few','keep':{'seconds':100000}," STEP);
    for (int i = 0; i < 5; i++) start("few", "{}");
    for (int i = 0; i < 10; i++) start("some", "{}");
    while (stats_now().finished < 15) (void)hd_runtime_pump(rt);
    close_store();
    open_store();
    wait_for("workflow/some/", 3);
    assert_int_equal(documents("workflow/few/"), 5);
}

/* Allocation n fails, and those behind it; then there is memory again. */
static bool fail_at(uint64_t n) {
    env = lab_env_open();
    open_store();
    keep(1000, 2);
    register_all();
    run_many("w", 0, 2);
    start_keyed("w", "last", "{}");
    lab_env_fail_from(env, n);
    for (int i = 0; i < 3; i++) (void)hd_runtime_pump(rt);
    lab_env_advance_ms(env, 1000);
    for (int i = 0; i < 3; i++) (void)hd_runtime_pump(rt);
    bool failed = lab_env_failed(env);
    lab_env_fail_from(env, 0);
    for (int i = 0; i < 1000 && documents("workflow/") + documents("workflow-ended/"); i++)
        advance(1000); /* what failed is tried again a second later */
    assert_int_equal(documents("workflow/"), 0);
    assert_int_equal(documents("workflow-journal/"), 0);
    assert_int_equal(documents("workflow-ended/"), 0);
    close_store();
    lab_env_close(env);
    return failed;
}

static void any_allocation_may_fail(void **state) {
    where = NULL;
    for (uint64_t n = 1; fail_at(n); n++) {}
}

/* Ends of two workflows share a commit, and an allocation of it fails: neither loses more ends than its policy says. */
static bool keep_at(uint64_t n) {
    env = lab_env_open();
    open_store();
    for (int i = 0; i < 2; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "{'heddle':1,'name':'w%d','keep':{'most':3},'functions':[{'name':'run','nodes':[{"
                 "'id':'in','kind':'ENTRY'},{'id':'s','kind':'SLEEP','seconds':1},{'id':'out',"
                 "'kind':'RETURN'}],'edges':[['in','s'],['s','out']]}]}",
                 i);
        register_ir(text);
    }
    for (int i = 0; i < 6; i++) start(i % 2 ? "w1" : "w0", "{}");
    advance(1001);
    for (int i = 0; i < 4; i++) start(i % 2 ? "w1" : "w0", "{}");
    pump();
    lab_env_advance_ms(env, 1001);
    lab_env_fail_at(env, n);
    for (int i = 0; i < 4; i++) (void)hd_runtime_pump(rt);
    bool failed = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    for (int i = 0; i < 20; i++) advance(1000);
    assert_int_equal(documents("workflow/w0/"), 3);
    assert_int_equal(documents("workflow/w1/"), 3);
    close_store();
    lab_env_close(env);
    return failed;
}

static void a_failed_commit_takes_no_end(void **state) {
    where = NULL;
    for (uint64_t n = 1; keep_at(n); n++) {}
}

static void policies_that_are_none_are_refused(void **state) {
    static const char *const bad[] = { "5",           "{'seconds':-1}", "{'seconds':'x'}",
                                       "{'most':-1}", "{'most':1.5}",   "{'days':3}" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[600];
        hd_error error = { 0 };
        snprintf(text, sizeof text, "{'heddle':1,'name':'w','keep':%s," STEP, bad[i]);
        assert_int_equal(hd_workflow_register(engine, parse(text), NULL, &error), HD_SYNTAX);
        assert_non_null(strstr(error.path, "/keep"));
    }
}

static uint64_t known_documents(void) {
    hd_store_stats s;
    hd_runtime_store_stats(rt, &s);
    return s.documents;
}

/* A program that runs for months has no memory of what has left the store: neither of documents nor of their kinds. */
static void what_is_removed_leaves_the_memory(void **state) {
    keep(0, 3);
    register_all();
    run_many("w", 0, 20);
    wait_for("workflow/w/", 3);
    uint64_t few = known_documents();
    run_many("w", 20, 60);
    wait_for("workflow/w/", 3);
    assert_in_range(known_documents(), 0, few + 5);
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, set_up_world, tear_down_world)
#define ON_FILE(name) cmocka_unit_test_setup_teardown(name, set_up_file, tear_down_file)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_end_goes_at_its_millisecond),
        TEST(an_end_goes_after_its_time),
        TEST(the_engine_wakes_when_one_is_due_and_not_before),
        TEST(a_workflow_has_its_own_policy),
        TEST(without_a_policy_all_stay),
        TEST(the_oldest_ends_go_beyond_a_number),
        ON_FILE(the_oldest_ends_go_beyond_a_number),
        TEST(one_that_runs_again_takes_nobodys_place),
        TEST(one_that_was_removed_takes_nobodys_place),
        TEST(many_at_once_go_beyond_a_number),
        ON_FILE(many_at_once_go_beyond_a_number),
        TEST(what_is_open_stays),
        TEST(children_of_an_open_parent_go_and_it_goes_on),
        TEST(one_that_runs_again_is_kept_from_its_last_end),
        TEST(a_key_that_is_used_again_is_another_instance),
        TEST(a_long_journal_goes_in_slices),
        ON_FILE(what_is_removed_leaves_the_memory),
        ON_FILE(the_next_program_removes_them),
        ON_FILE(the_next_program_removes_those_beyond_a_number),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(a_failed_commit_takes_no_end),
        TEST(policies_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
