/* test_kill.c -- a process is killed in the middle of its work, again and again.
 *
 * A child appends numbers to one document of a real file and says through a pipe which of them were
 * accepted; we kill it after a while, open the file, and find at least those. The next child goes on
 * where the file ends. Now and then two children work on the same file.
 *
 * HD_KILLS: how many children are killed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "folder.h"
#include "lab.h"
#include "times.h"
#include <heddle/store.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    IN_FLIGHT = 16,
    KILLS_OF_EACH = 500 /* then another file: each check reads all that is there */
};

static char file[256];

static void name_file(uint64_t kills) {
    char name[32];
    snprintf(name, sizeof name, "kill%llu.db", (unsigned long long)(kills / KILLS_OF_EACH));
    folder_store(file, sizeof file, name);
}

static int make_folder(void **state) {
    if (folder_make(state)) return -1;
    name_file(0);
    return 0;
}

/* ---- The child ------------------------------------------------------------------------------------ */

typedef struct told {
    int pipe;
    uint64_t number;
} told;

static void tell_accepted(hd_status status, void *ctx) {
    told *t = ctx;
    if (!status && write(t->pipe, &t->number, sizeof t->number) < 0) _exit(3);
    free(t);
}

/* Number n of this child; a document of its own, and one that all share. */
static void commit_number(hd_runtime *rt, int pipe, const char *own, uint64_t n) {
    hd_tx *tx;
    if (hd_tx_begin(rt, &tx)) _exit(4);
    hd_tx_append(tx, hd_cell_at(rt, own), hd_int(NULL, (int64_t)n));
    hd_tx_increment(tx, hd_cell_at(rt, "main/total"), hd_int(NULL, 1));
    told *t = malloc(sizeof *t);
    *t = (told){ pipe, n };
    if (hd_tx_commit(tx, tell_accepted, t)) _exit(5);
}

static void child(int pipe, const char *own) {
    hd_runtime *rt;
    hd_options options = { .tail_bytes = 4096 }; /* checkpoints are to be interrupted too */
    hd_error error;
    hd_status status = hd_open(file, &options, &rt, &error);
    if (status) {
        fprintf(stderr, "child: %s\n", error.message);
        _exit(6);
    }
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    uint64_t n = hd_value_count(hd_read(rt, pool, hd_cell_at(rt, own)));
    hd_env env = hd_env_system();
    for (;;) {
        hd_store_stats stats;
        commit_number(rt, pipe, own, ++n);
        for (hd_runtime_pump(rt);; hd_runtime_pump(rt)) {
            hd_runtime_store_stats(rt, &stats);
            if (stats.pending < IN_FLIGHT) break;
            env.wait(hd_runtime_fd(rt), hd_runtime_deadline(rt), env.ctx);
        }
    }
}

/* ---- The one who kills ------------------------------------------------------------------------------ */

typedef struct victim {
    pid_t pid;
    int pipe;
    const char *own;
    uint64_t last; /* the highest number it was told of */
} victim;

static victim start(const char *own) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    victim v = { fork(), ends[0], own, 0 };
    assert_true(v.pid >= 0);
    if (v.pid == 0) {
        close(ends[0]);
        child(ends[1], own);
    }
    close(ends[1]);
    return v;
}

static void wait_for_first(victim *v) {
    struct pollfd p = { v->pipe, POLLIN, 0 };
    assert_true(poll(&p, 1, 10000) == 1);
}

static void kill_it(victim *v) {
    kill(v->pid, SIGKILL);
    int status;
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the child ended by itself, with status %x", (unsigned)status);
    uint64_t n;
    while (read(v->pipe, &n, sizeof n) == sizeof n) v->last = n;
    close(v->pipe);
}

static void print_finding(const char *finding, void *ctx) {
    (void)ctx;
    fprintf(stderr, "finding: %s\n", finding);
}

static uint64_t check_own(hd_runtime *rt, hd_pool *pool, const char *own) {
    hd_value all = hd_read(rt, pool, hd_cell_at(rt, own));
    size_t n = hd_value_count(all);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(hd_value_as_int(hd_value_index(all, i), -1), i + 1);
    return n;
}

static void check_file(const victim *v, int count, bool thoroughly) {
    hd_runtime *rt;
    hd_error error;
    hd_status status = hd_open(file, NULL, &rt, &error);
    if (status) fail_msg("open: %s", error.message);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    for (int i = 0; i < count; i++) {
        uint64_t n = check_own(rt, pool, v[i].own);
        if (n < v[i].last)
            fail_msg("%s: %llu are there, %llu were accepted", v[i].own, (unsigned long long)n,
                     (unsigned long long)v[i].last);
    }
    uint64_t sum = check_own(rt, pool, "main/a") + check_own(rt, pool, "main/b");
    assert_int_equal(hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, "main/total")), 0), sum);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    if (!thoroughly) return;
    status = hd_store_check(file, NULL, print_finding, NULL, &error);
    if (status) fail_msg("check: %s", error.message);
}

static void a_killed_process_loses_nothing_it_was_told(void **state) {
    (void)state;
    lab_random random = lab_random_of(lab_seed());
    uint64_t most = lab_times("HD_KILLS", LAB_SLOW ? 60 : 300);
    for (uint64_t kills = 0; kills < most;) {
        victim v[2];
        int count = lab_random_once_in(&random, 4) ? 2 : 1;
        v[0] = start("main/a");
        if (count == 2) v[1] = start("main/b");
        for (int i = 0; i < count; i++) wait_for_first(&v[i]);
        (void)poll(NULL, 0, (int)lab_random_below(&random, 12));
        for (int i = 0; i < count; i++) kill_it(&v[i]);
        kills += (uint64_t)count;
        check_file(v, count, kills % 10 == 0);
        name_file(kills);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(
        a_killed_process_loses_nothing_it_was_told, make_folder, folder_remove) };
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
