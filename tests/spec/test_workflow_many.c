/* test_workflow_many.c -- many instances at once on a file: groups of them are committed one beside the other, nothing
 * begins before it is stored, and a commit that is refused loses nothing. */
#define _GNU_SOURCE
#include "folder.h"
#include "lab_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <heddle.h>

/* An engine stores so many instances with one commit, and has so many commits under way (decisions 0122 and 0250). */
enum { GROUP = 128, FLIGHTS = 2 };
enum { MANY = 3 * GROUP, STEPS = 4 };

static const char ir[] =
    "{\"heddle\":1,\"name\":\"add\",\"inputs\":[{\"name\":\"n\"}],\"functions\":[{\"name\":\"run\","
    "\"params\":[\"n\"],\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},"
    "{\"id\":\"each\",\"kind\":\"LOOP_HEAD\",\"over\":[\"call\",\"range\",[4]],\"into\":[\"name\","
    "\"i\"]},"
    "{\"id\":\"one\",\"kind\":\"ACTION\",\"action\":\"one\",\"args\":{\"n\":[\"name\",\"n\"]},"
    "\"into\":[\"name\",\"n\"]},{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"n\"]}],"
    "\"edges\":[[\"in\",\"each\"],[\"each\",\"one\",\"CONTINUE\"],[\"each\",\"out\",\"BREAK\"],"
    "[\"one\",\"each\",\"BACK\"]]}]}";

static hd_runtime *rt;
static hd_engine *engine;
static char ids[MANY][HD_INSTANCE_ID_SIZE];
static uint32_t most_waits;

static hd_status one(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    if (lab_engine_waits(engine) > most_waits) most_waits = lab_engine_waits(engine);
    int64_t n = hd_value_as_int(hd_value_at(args, "n"), 0);
    return hd_action_return(a, hd_int(hd_action_pool(a), n + 1));
}

static int open_world_with(void **state, const hd_env *env) {
    char file[256];
    hd_pool *pool;
    hd_options options = { .env = env };
    if (folder_make(state)) return -1;
    folder_store(file, sizeof file, "many.db");
    assert_int_equal(hd_open(file, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_action_spec spec = { .name = "one", .fn = one, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_value v = hd_json_parse(pool, ir, strlen(ir), NULL);
    assert_int_equal(hd_workflow_register(engine, v, NULL, NULL), HD_OK);
    for (int i = 0; i < MANY; i++) {
        hd_value input = hd_object_set(pool, hd_object(), "n", hd_int(pool, i));
        assert_int_equal(hd_workflow_start(engine, "add", input, NULL, ids[i]), HD_OK);
    }
    hd_pool_close(pool);
    most_waits = 0;
    return 0;
}

static int open_world(void **state) { return open_world_with(state, NULL); }

static uint64_t always_now(void *ctx) {
    (void)ctx;
    return 1;
}

static uint64_t wall_ms = UINT64_C(1600000000000);
static uint64_t wall(void *ctx) {
    (void)ctx;
    return wall_ms;
}

/* On a clock that stands still a sync takes no time, so that every group is worth one. */
static int open_world_without_time(void **state) {
    hd_env env = hd_env_system();
    env.monotonic_ns = always_now;
    env.wall_ms = wall;
    return open_world_with(state, &env);
}

static int close_world(void **state) {
    assert_int_equal(hd_close(rt), HD_OK);
    return folder_remove(state);
}

static void assert_results(void) {
    hd_pool *pool;
    hd_value result;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(hd_workflow_await(engine, ids[i], pool, &result), HD_OK);
        assert_int_equal(hd_value_as_int(result, -1), i + STEPS);
    }
    hd_pool_close(pool);
}

static void run_until_finished(void (*between)(hd_runtime *other), hd_runtime *other) {
    hd_env env = hd_env_system();
    hd_engine_stats stats = { 0 };
    for (int i = 0; stats.finished < MANY && i < 100000; i++) {
        hd_status status = hd_runtime_pump(rt);
        assert_true(status == HD_OK || status == HD_PENDING);
        if (between) between(other);
        hd_engine_stat(engine, &stats);
        if (stats.finished < MANY) env.wait(hd_runtime_fd(rt), hd_runtime_deadline(rt), env.ctx);
    }
}

static void steps_run_while_a_commit_is_under_way(void **state) {
    (void)state;
    hd_engine_stats stats;
    run_until_finished(NULL, NULL);
    assert_results();
    hd_engine_stat(engine, &stats);
    assert_int_equal(stats.steps, MANY * STEPS);
    assert_in_range(most_waits, 1, FLIGHTS);
}

static void starts_are_sent_before_the_pump(void **state) {
    (void)state;
    assert_int_equal(lab_engine_waits(engine), FLIGHTS);
    run_until_finished(NULL, NULL);
    assert_results();
}

/* Another runtime writes into documents of instances: commits that claim them are refused. */
static void write_somewhere(hd_runtime *other) {
    static unsigned turn;
    char name[HD_INSTANCE_ID_SIZE + 40];
    if (++turn % 4) return;
    snprintf(name, sizeof name, "main/workflow/%s#/note", ids[turn * 31 % MANY]);
    assert_int_equal(hd_write(other, hd_cell_at(other, name), hd_int(NULL, turn)), HD_OK);
    assert_int_equal(hd_runtime_sync(other), HD_OK);
}

static void refused_commits_lose_nothing(void **state) {
    (void)state;
    char file[256];
    hd_runtime *other;
    assert_int_equal(hd_runtime_sync(rt), HD_OK); /* the documents are there */
    folder_store(file, sizeof file, "many.db");
    assert_int_equal(hd_open(file, NULL, &other, NULL), HD_OK);
    run_until_finished(write_somewhere, other);
    assert_results();
    assert_int_equal(hd_close(other), HD_OK);
}

static const char nap[] =
    "{\"heddle\":1,\"name\":\"nap\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":\"in\","
    "\"kind\":\"ENTRY\"},{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":9},{\"id\":\"out\",\"kind\":"
    "\"RETURN\"}],\"edges\":[[\"in\",\"s\"],[\"s\",\"out\"]]}]}";

static void start_naps(uint64_t count) {
    hd_pool *pool;
    char id[HD_INSTANCE_ID_SIZE];
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value v = hd_json_parse(pool, nap, strlen(nap), NULL);
    assert_int_equal(hd_workflow_register(engine, v, NULL, NULL), HD_OK);
    hd_pool_close(pool);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(hd_workflow_start(engine, "nap", hd_object(), NULL, id), HD_OK);
}

/* Timers that are due together are stored in groups, as steps that end together are. When a group is full depends on
 * how long commits take (decision 0250). */
static void timers_that_are_due_together_are_stored_in_groups(void **state) {
    (void)state;
    hd_engine_stats stats = { 0 };
    run_until_finished(NULL, NULL);
    start_naps(MANY);
    while (stats.timers < MANY) {
        (void)hd_runtime_pump(rt);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        hd_engine_stat(engine, &stats);
    }
    uint64_t before = stats.commits;
    wall_ms += 9000;
    while (stats.finished < 2 * MANY) {
        (void)hd_runtime_pump(rt);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        hd_engine_stat(engine, &stats);
    }
    assert_in_range(stats.commits - before, 2, MANY / GROUP + FLIGHTS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_run_while_a_commit_is_under_way,
                                        open_world_without_time, close_world),
        cmocka_unit_test_setup_teardown(starts_are_sent_before_the_pump, open_world_without_time,
                                        close_world),
        cmocka_unit_test_setup_teardown(timers_that_are_due_together_are_stored_in_groups,
                                        open_world_without_time, close_world),
        TEST(refused_commits_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
