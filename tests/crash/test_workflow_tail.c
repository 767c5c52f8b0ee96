/* test_workflow_tail.c -- a program is killed whose many open instances stand only in the log: the next engine takes
 * them up from head rows, which it has the log folded into first, and each goes on. */
#define _GNU_SOURCE
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>
#include <heddle.h>
#include <heddle/workflow.h>

enum { MANY = 400 };

static const char ir[] =
    "{\"heddle\":1,\"name\":\"wait\",\"inputs\":[{\"name\":\"n\"}],\"functions\":[{\"name\":"
    "\"run\","
    "\"params\":[\"n\"],\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},{\"id\":\"w\",\"kind\":"
    "\"WAIT\","
    "\"signal\":\"go\"},{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"n\"]}],"
    "\"edges\":[[\"in\",\"w\"],[\"w\",\"out\"]]}]}";

static void instance_key(int i, char key[16]) { snprintf(key, 16, "k%d", i); }

/* In a process of its own, which ends without closing anything. */
static void start_and_die(const char *file) {
    hd_runtime *rt;
    hd_engine *e;
    hd_pool *pool;
    char id[HD_INSTANCE_ID_SIZE], key[16];
    if (hd_open(file, NULL, &rt, NULL) || hd_engine_open(rt, NULL, &e, NULL) ||
        hd_pool_open(hd_runtime_heap(rt), &pool) ||
        hd_workflow_register(e, hd_json_parse(pool, ir, strlen(ir), NULL), NULL, NULL))
        _exit(1);
    for (int i = 0; i < MANY; i++) {
        hd_value input = hd_object_set(pool, hd_object(), "n", hd_int(pool, i));
        instance_key(i, key);
        if (hd_workflow_start(e, "wait", input, &(hd_start_options){ .key = key }, id)) _exit(2);
        if (i % 50 == 49 && hd_runtime_sync(rt)) _exit(3);
    }
    _exit(hd_runtime_sync(rt) ? 4 : 0);
}

static void assert_goes_on(hd_engine *e, hd_pool *pool, int i) {
    char id[64], key[16];
    hd_value result;
    instance_key(i, key);
    snprintf(id, sizeof id, "wait/%s", key);
    assert_int_equal(hd_workflow_signal(e, id, "go", hd_null()), HD_OK);
    assert_int_equal(hd_workflow_await(e, id, pool, &result), HD_OK);
    assert_int_equal(hd_value_as_int(result, -1), i);
}

static void instances_in_the_log_alone_are_taken_up(void **state) {
    (void)state;
    char file[256];
    hd_runtime *rt;
    hd_engine *e;
    hd_engine_stats stats;
    hd_pool *pool;
    int ended;
    folder_store(file, sizeof file, "tail.db");
    pid_t child = fork();
    if (!child) start_and_die(file);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);

    assert_int_equal(hd_open(file, NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &e, NULL), HD_OK);
    /* On a server the lease of the dead runs out; in a file it is free at once. */
    assert_true(lab_on_server() || hd_engine_is_active(e));
    while (!hd_engine_is_active(e)) {
        hd_env env = hd_env_system();
        env.wait(hd_runtime_fd(rt), hd_runtime_deadline(rt), env.ctx);
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
    }
    hd_engine_stat(e, &stats);
    assert_int_equal(stats.open, MANY);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < MANY; i += 37) assert_goes_on(e, pool, i);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_store_check(file, NULL, NULL, NULL, NULL), HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(instances_in_the_log_alone_are_taken_up, folder_make,
                                        folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
