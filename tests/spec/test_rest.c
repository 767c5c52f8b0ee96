/* test_rest.c -- a runtime with a file, and an engine on it, that have nothing to do: they wait for a descriptor and
 * for no time, and hear of the next write all the same. */
#define _GNU_SOURCE
#include "lab.h"
#include "folder.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <heddle.h>
#include <heddle/workflow.h>

static lab_env *env; /* its clock stands still unless the test moves it */
static char file[100];

static int open_world(void **state) {
    env = lab_env_open();
    if (folder_make(state)) return -1;
    folder_file(file, sizeof file, "rest.db");
    return 0;
}
static int close_world(void **state) {
    lab_env_close(env);
    return folder_remove(state);
}

static hd_runtime *open_store(void) {
    hd_runtime *rt;
    assert_int_equal(hd_open(file, &(hd_options){ .env = lab_env_of(env) }, &rt, NULL), HD_OK);
    return rt;
}

/* About a minute of real time each: they end a test in which nothing comes to rest, however slow the machine is. */
enum { LOOKS_MAX = 30000, TRIES_MAX = 600, PATIENCE_MS = 60000 };

/* Moves the clock from deadline to deadline. Returns how often that was, until there is none. */
static int times_until_rest(hd_runtime *rt) {
    int times = 0;
    for (;; times++) {
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        uint64_t due = hd_runtime_deadline(rt),
                 now = lab_env_of(env)->monotonic_ns(lab_env_of(env)->ctx);
        if (due == UINT64_MAX) return times;
        assert_true(times < LOOKS_MAX);
        if (due > now) lab_env_advance_ns(env, due - now);
        /* While the writer's thread has the file's lock, which takes time of the real clock, the runtime looks
         * again. */
        struct pollfd fd = { .fd = hd_runtime_fd(rt), .events = POLLIN };
        (void)poll(&fd, 1, 2);
    }
}

/* The writer's thread says how far the runtime has come, which is a write that the runtime hears of, at a time of the
 * thread's own. After a few of these nothing is left to hear, and nothing is waited for. */
static void comes_to_rest(hd_runtime *rt) {
    int tries = 0;
    (void)times_until_rest(rt);
    do {
        struct pollfd fd = { .fd = hd_runtime_fd(rt), .events = POLLIN };
        (void)poll(&fd, 1, 100);
        assert_true(tries++ < TRIES_MAX);
    } while (times_until_rest(rt) > 0);
}

static void start_one_that_waits(hd_engine *e, hd_runtime *rt) {
    static const char ir[] = "{\"heddle\":1,\"name\":\"wait\",\"functions\":[{\"name\":\"run\","
                             "\"nodes\":[{\"id\":\"in\","
                             "\"kind\":\"ENTRY\"},{\"id\":\"w\",\"kind\":\"WAIT\",\"signal\":"
                             "\"go\"},{\"id\":\"out\",\"kind\":"
                             "\"RETURN\"}],\"edges\":[[\"in\",\"w\"],[\"w\",\"out\"]]}]}";
    char id[HD_INSTANCE_ID_SIZE];
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_workflow_register(e, hd_json_parse(pool, ir, strlen(ir), NULL), NULL, NULL),
                     HD_OK);
    assert_int_equal(hd_workflow_start(e, "wait", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    hd_pool_close(pool);
}

/* Its own writes are looked at a few times, and after that nothing is. */
static void an_idle_engine_waits_for_no_time(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    hd_engine *e;
    assert_int_equal(hd_engine_open(rt, NULL, &e, NULL), HD_OK);
    start_one_that_waits(e, rt);
    comes_to_rest(rt);
    assert_int_equal(hd_close(rt), HD_OK);
}

/* One that stands by watches the other's process, or, in the same process, the lease's document. */
static void an_engine_that_stands_by_waits_for_no_time(void **state) {
    (void)state;
    hd_runtime *first = open_store(), *second = open_store();
    hd_engine *active, *standby;
    assert_int_equal(hd_engine_open(first, NULL, &active, NULL), HD_OK);
    assert_int_equal(hd_engine_open(second, NULL, &standby, NULL), HD_OK);
    assert_false(hd_engine_is_active(standby));
    comes_to_rest(first);
    comes_to_rest(second);
    assert_int_equal(hd_close(first), HD_OK);
    assert_int_equal(hd_close(second), HD_OK);
}

static int64_t read_number(hd_runtime *rt) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    int64_t n = hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "main/n")), 0);
    hd_pool_close(pool);
    return n;
}

static void a_runtime_at_rest_hears_of_a_write(void **state) {
    (void)state;
    hd_runtime *reader = open_store(), *writer = open_store();
    for (int64_t n = 1; n <= 20; n++) {
        (void)read_number(reader);
        (void)times_until_rest(reader);
        struct pollfd fd = { .fd = hd_runtime_fd(reader), .events = POLLIN };
        assert_int_equal(hd_write(writer, hd_cell_at(writer, "main/n"), hd_int(NULL, n)), HD_OK);
        assert_int_equal(hd_runtime_sync(writer), HD_OK);
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        (void)times_until_rest(reader);
        assert_int_equal(read_number(reader), n);
    }
    assert_int_equal(hd_close(reader), HD_OK);
    assert_int_equal(hd_close(writer), HD_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_idle_engine_waits_for_no_time),
        TEST(an_engine_that_stands_by_waits_for_no_time),
        TEST(a_runtime_at_rest_hears_of_a_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
