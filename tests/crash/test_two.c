/* test_two.c -- two processes write one file: each commit is judged against the other's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "folder.h"
#include <heddle/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INCREMENTS = 150, LEAST = 50, TOO_MANY = 50000 };

static char file[256];

static int make_folder(void **state) {
    if (folder_make(state)) return -1;
    folder_store(file, sizeof file, "two.db");
    return 0;
}

static hd_runtime *open_store(void) {
    hd_runtime *rt;
    hd_error error;
    hd_status status = hd_open(file, NULL, &rt, &error);
    if (status) fprintf(stderr, "open: %s\n", error.message);
    return status ? NULL : rt;
}

static void keep_status(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* Reads, adds one, writes: refused as stale when the other was faster. */
static hd_status increment(hd_runtime *rt, hd_cell cell) {
    hd_tx *tx;
    hd_status fate = HD_PENDING;
    hd_status status = hd_tx_begin(rt, &tx);
    if (status) return status;
    int64_t n = hd_value_as_int(hd_tx_get(tx, cell), 0);
    hd_tx_set_int(tx, cell, n + 1);
    status = hd_tx_commit(tx, keep_status, &fate);
    if (!status) status = hd_runtime_sync(rt);
    return status ? status : fate;
}

/* How often it was refused; -1: something else went wrong. */
static int increment_many(void) {
    hd_runtime *rt = open_store();
    if (!rt) return -1;
    hd_cell cell = hd_cell_at(rt, "main/total");
    int refused = 0;
    for (int done = 0; done < INCREMENTS;) {
        hd_status status = increment(rt, cell);
        if (!status) done++;
        else if (hd_status_class(status) == HD_CLASS_STALE) refused++;
        else {
            fprintf(stderr, "increment: %s\n", hd_status_name(status));
            return -1;
        }
    }
    return hd_close(rt) ? -1 : refused;
}

static pid_t start_child(void) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(increment_many() < 0 ? 1 : 0);
    return pid;
}

static void print_finding(const char *finding, void *ctx) {
    (void)ctx;
    fprintf(stderr, "finding: %s\n", finding);
}

/* S2: what a commit read was still so when it was admitted; no increment is lost. */
static void increments_of_two_processes_all_count(void **state) {
    (void)state;
    pid_t child = start_child();
    int refused = increment_many();
    assert_true(refused >= 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    hd_runtime *rt = open_store();
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    int64_t total = hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "main/total")), -1);
    assert_int_equal(total, 2 * INCREMENTS);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_store_check(file, NULL, print_finding, NULL, NULL), HD_OK);
}

/* What two processes have counted. */
typedef struct race {
    _Atomic int ready, done[2];
} race;

static hd_status add_one(hd_tx *tx, void *ctx) {
    hd_cell cell = hd_cell_at(hd_tx_runtime(tx), "main/total");
    (void)ctx;
    return hd_tx_set_int(tx, cell, hd_value_as_int(hd_tx_get(tx, cell), 0) + 1);
}

/* Adds to one number without a pause, until each has done so LEAST times, or one alone has TOO_MANY times: on a fast
 * disk a process makes hundreds of commits before the other one has got the lock for the first time. */
static hd_status run_race(race *r, int me) {
    hd_runtime *rt = open_store();
    if (!rt) return HD_IO;
    hd_status status = HD_OK;
    r->ready++;
    while (r->ready < 2) usleep(1000);
    while (!status && (r->done[0] < LEAST || r->done[1] < LEAST) && r->done[me] < TOO_MANY) {
        status = hd_transact(rt, add_one, NULL);
        if (!status) r->done[me]++;
    }
    if (status) fprintf(stderr, "transact: %s\n", hd_status_name(status));
    r->done[me] += status ? TOO_MANY : 0; /* the other one ends, too */
    hd_status closed = hd_close(rt);
    return status ? status : closed;
}

/* A writer that reads, adds and writes back to back leaves the other one its share. */
static void neither_of_two_processes_starves(void **state) {
    (void)state;
    race *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r != MAP_FAILED);
    assert_int_equal(hd_close(open_store()), HD_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(run_race(r, 1) ? 1 : 0);
    assert_int_equal(run_race(r, 0), HD_OK);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (r->done[0] < LEAST || r->done[1] < LEAST) fail_msg("%d and %d", r->done[0], r->done[1]);
    assert_int_equal(munmap(r, sizeof *r), 0);
}

static void hear(const hd_notice *notice, void *ctx) {
    if (notice->kind == HD_CHANGE_INTEGRATE) ++*(int *)ctx;
}

/* A process that only watches is woken, and hears of each commit of the other. */
static void a_watching_process_hears_each_commit(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    int heard = 0;
    assert_int_equal(hd_runtime_follow(rt, "main"), HD_OK);
    assert_int_equal(hd_runtime_listen(rt, hear, &heard), HD_OK);
    pid_t child = start_child();
    hd_env env = hd_env_system();
    uint64_t give_up = env.monotonic_ns(env.ctx) + UINT64_C(60000000000);
    while (heard < INCREMENTS && env.monotonic_ns(env.ctx) < give_up) {
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        uint64_t deadline = hd_runtime_deadline(rt);
        env.wait(hd_runtime_fd(rt), deadline < give_up ? deadline : give_up, env.ctx);
    }
    assert_int_equal(heard, INCREMENTS);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(hd_close(rt), HD_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, folder_remove)
    const struct CMUnitTest tests[] = {
        TEST(increments_of_two_processes_all_count),
        TEST(neither_of_two_processes_starves),
        TEST(a_watching_process_hears_each_commit),
    };
    return cmocka_run_group_tests_name("two", tests, NULL, NULL);
}
