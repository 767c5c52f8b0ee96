/* test_workflow_live.c -- instances and the commits that store them: what is under way, and what is refused. */
#define _DEFAULT_SOURCE
#include "workflow/engine.h"

#include "folder.h"
#include "workflow_world.h"

static worker hands;
static hd_runtime *other; /* another program on the same store */

static void register_actions(hd_engine *e) { (void)e; }

static void take_nothing(worker *w) { (void)w; }
static const worker_ops hands_ops = { .offer = take_nothing };

static int set_up(void **state) {
    static char file[200];
    if (folder_make(state)) return -1;
    env = lab_env_open();
    folder_store(file, sizeof file, "live.db");
    where = file;
    open_store();
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(file, &options, &other, NULL), HD_OK);
    hands = (worker){ .ops = &hands_ops, .capacity = 8 };
    worker_join(engine, &hands);
    assert_int_equal(worker_serve(&hands, "work"), HD_OK);
    return 0;
}

static int tear_down(void **state) {
    assert_int_equal(hd_close(other), HD_OK);
    worker_leave(&hands);
    close_store();
    lab_env_close(env);
    return folder_remove(state);
}

static void take_step(task_view *t) { PUMP_UNTIL(rt, task_claim(&hands, t)); }

static hd_value numbers(int count) {
    hd_value all = hd_array();
    for (int i = 0; i < count; i++) all = hd_array_append(pool, all, hd_int(pool, i));
    return all;
}

/* One branch has gone on, and the commit that stores that is under way; then there is no memory for what the other
 * branch does. False: all of it had memory. */
static bool lose_while_storing(uint64_t nth) {
    task_view first, second, next;
    start("w", "{}");
    take_step(&first);
    take_step(&second);
    assert_int_equal(task_complete(engine, first.token, hd_null()), HD_OK);
    assert_int_equal(flight_begin(engine), HD_OK);
    assert_int_equal(engine->waits, 1);
    hd_value result = numbers(300);
    lab_env_fail_at(env, nth);
    (void)task_complete(engine, second.token, result);
    bool failed = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    assert_false(task_claim(&hands, &next)); /* nothing of it is stored yet */
    for (int i = 0; stats_now().open; i++) {
        if (i == 100000) fail_msg("it does not end");
        (void)hd_runtime_pump(rt);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        while (task_claim(&hands, &next))
            assert_int_equal(task_complete(engine, next.token, hd_null()), HD_OK);
    }
    assert_result("5");
    return failed;
}

/* An instance is not loaded through a commit that may still be refused: no step begins before it is stored. */
static void an_instance_is_loaded_when_its_commit_has_its_verdict(void **state) {
    register_nodes("w",
                   "{'id':'f','kind':'FAN_HEAD','over':['list',1,2],'into':['name','i']},{'id':'a',"
                   "'kind':'ACTION','action':'work','into':['name','r']},{'id':'b','kind':'ACTION',"
                   "'action':'work','args':[['name','r']]},{'id':'j','kind':'BARRIER'},{'id':'out',"
                   "'kind':'RETURN','value':5}",
                   "['in','f'],['f','a','ELEM'],['a','b'],['b','j','JOIN'],['j','out']");
    for (uint64_t nth = 1; lose_while_storing(nth); nth++) {}
}

static int told;
static bool busy_when_told;

static void note_stored(hd_status status, void *ctx) {
    told++;
    busy_when_told = engine->waits || engine->changed.count || !list_empty(&engine->lame);
}

/* Another program writes into the document of the instance: the next commit of the engine is refused. */
static void write_note(void) {
    char name[HD_INSTANCE_ID_SIZE + 40];
    snprintf(name, sizeof name, "main/workflow/%s#/note", id);
    assert_int_equal(hd_write(other, hd_cell_at(other, name), hd_int(NULL, 1)), HD_OK);
    assert_int_equal(hd_runtime_sync(other), HD_OK);
}

/* An instance that a message has paused in memory, which no commit stores yet. */
static void pause_one(void) {
    register_nodes("w", "{'id':'a','kind':'WAIT','signal':'go'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    start("w", "{}");
    pump();
    told = 0;
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    assert_int_equal(hd_workflow_stored(engine, note_stored, NULL), HD_OK);
    for (int i = 0; !engine->changed.count; i++) { /* the message is stored, and acted on */
        if (i == 1000000) fail_msg("it is not paused");
        if (rt->r.settled + 1 < rt->r.next_local) (void)hd_runtime_pump(rt);
        else inbox_work(engine);
    }
}

static void assert_told_when_paused(void) {
    assert_int_equal(flight_begin(engine), HD_OK);
    assert_int_equal(engine->waits, 1);
    PUMP_UNTIL(rt, told);
    assert_false(busy_when_told);
    assert_string_equal(field("status"), "paused");
}

/* hd_workflow_stored: what a refused commit was to store is not stored. */
static void a_refused_commit_stores_nothing(void **state) {
    pause_one();
    write_note();
    assert_told_when_paused();
}

/* hd_workflow_stored: a commit does not store what an instance is to do that waits for memory then. */
static void what_waits_for_memory_is_not_stored(void **state) {
    char first[HD_INSTANCE_ID_SIZE];
    pause_one();
    snprintf(first, sizeof first, "%s", id);
    lab_env_fail_from(env, 1);
    flight_lose_changed(engine);
    lab_env_fail_from(env, 0);
    assert_false(list_empty(&engine->lame));
    start("w", "{}");
    snprintf(id, sizeof id, "%s", first);
    assert_told_when_paused();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_instance_is_loaded_when_its_commit_has_its_verdict),
        TEST(a_refused_commit_stores_nothing),
        TEST(what_waits_for_memory_is_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
