/* test_workflow_kill.c -- the process that runs workflows is killed, again and again: every instance ends with the
 * result it would have had (W4).
 *
 * A child opens the store and its engine, registers ten random workflows, starts each under a key and runs them. It is
 * killed with SIGKILL: in the middle of an action, or a random time after it began. The next child goes on, and is
 * killed too, up to five times. Then the results are those of the same workflows in memory, without any interruption.
 * All that follows happens to the same file, with the next ten: every workflow was killed at least once.
 *
 * HD_WORKFLOW_KILLS: for so many tens of workflows; HD_SEED: which workflows. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "folder.h"
#include "random_flow.h"
#include "times.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOGETHER = 10, TENS = LAB_SLOW ? 6 : 30, KILLS_MAX = 5 };

/* Shared by processes. */
typedef struct shared {
    uint64_t calls;    /* of actions, by all children */
    uint64_t notes[3]; /* calls of "note", by its argument */
} shared;

static char file[256];
static shared *all;
static uint64_t seed;
static uint64_t dies_after; /* so many calls of this child; 0: not by itself */
static uint32_t first;      /* of the workflows that run now */

static int make_folder(void **state) {
    if (folder_make(state)) return -1;
    folder_store(file, sizeof file, "kill.db");
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return all == MAP_FAILED ? -1 : 0;
}

static void count_call(const char *step) {
    (void)step;
    all->calls++;
    if (dies_after && --dies_after == 0) raise(SIGKILL);
}

/* ---- Running all of them ----------------------------------------------------------------------- */

typedef struct world {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
} world;

static void name_of(char name[32], uint32_t i) { snprintf(name, 32, "w%u", i); }

static void open_world(world *w, const char *where) {
    hd_error error = { 0 };
    hd_options options = { .tail_bytes = 32 << 10 }; /* checkpoints are to be interrupted too */
    if (hd_open(where, &options, &w->rt, &error) ||
        hd_engine_open(w->rt, NULL, &w->engine, &error) ||
        hd_pool_open(hd_runtime_heap(w->rt), &w->pool) || random_flow_actions(w->engine, true))
        lab_fail("open: %s", error.message);
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        char name[32];
        hd_value ir;
        name_of(name, i);
        if (random_flow(w->pool, name, seed * 1000 + i, &ir, &error) ||
            hd_workflow_register(w->engine, ir, NULL, &error))
            lab_fail("%s: %s", name, error.message);
    }
}

static void run_all(world *w) {
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        char name[32], id[HD_INSTANCE_ID_SIZE];
        name_of(name, i);
        hd_status status = hd_workflow_start(w->engine, name, hd_object(),
                                             &(hd_start_options){ .key = "one" }, id);
        if (status && status != HD_EXISTS) lab_fail("start: %s", hd_status_name(status));
    }
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        char id[HD_INSTANCE_ID_SIZE];
        hd_value result;
        snprintf(id, sizeof id, "w%u/one", i);
        hd_status status = hd_workflow_await(w->engine, id, w->pool, &result);
        if (status && status != HD_FAILED) lab_fail("%s: %s", id, hd_status_name(status));
    }
}

static void close_world(world *w) {
    hd_pool_close(w->pool);
    if (hd_close(w->rt)) lab_fail("close");
}

/* ---- Children ------------------------------------------------------------------------------------ */

static void die(int signal_) {
    (void)signal_;
    kill(getpid(), SIGKILL);
}

/* The first of each ten dies in one of the first calls: there are as many at least. */
static void child(uint64_t how, bool early) {
    world w;
    random_flow_called = count_call;
    if (how % 2 || early) {
        dies_after = 1 + how / 2 % (early ? TOGETHER : 80);
    } else {
        struct itimerval soon = { .it_value.tv_usec = 1000 + (int)(how / 2 % 60000) };
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    open_world(&w, file);
    run_all(&w);
    close_world(&w);
    _exit(0);
}

/* True: it came to its end. */
static bool run_child(uint64_t how, bool early) {
    int status;
    pid_t pid = fork();
    if (pid == 0) child(how, early);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return false;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static const char *document(world *w, uint32_t i) {
    char id[HD_INSTANCE_ID_SIZE];
    snprintf(id, sizeof id, "w%u/one", i);
    hd_value d = hd_read(w->rt, w->pool, hd_workflow_cell(w->engine, id)), v = hd_object();
    static const char *const keys[] = { "status", "result", "error" };
    for (int k = 0; k < 3; k++)
        if (hd_value_exists(hd_value_at(d, keys[k])))
            v = hd_object_set(w->pool, v, keys[k], hd_value_at(d, keys[k]));
    return hd_json_print(w->pool, v, HD_JSON_COMPACT, NULL);
}

/* How often they were killed. */
static uint64_t kill_and_compare(lab_random *random) {
    world kept, clean;
    uint64_t kills = 0;
    while (kills < KILLS_MAX && !run_child(lab_random_u64(random), kills == 0)) kills++;
    open_world(&kept, file);
    run_all(&kept);
    open_world(&clean, NULL);
    run_all(&clean);
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        const char *is = document(&kept, i), *should_be = document(&clean, i);
        if (strcmp(is, should_be))
            fail_msg("w%u of seed %llu: %s, not %s", i, (unsigned long long)seed, is, should_be);
    }
    close_world(&clean);
    close_world(&kept);
    return kills;
}

static void w4_results_do_not_depend_on_kills(void **state) {
    uint64_t tens = lab_times("HD_WORKFLOW_KILLS", TENS), kills = 0;
    (void)state;
    seed = lab_seed();
    lab_random random = lab_random_of(seed);
    for (uint64_t i = 0; i < tens; i++, first += TOGETHER) {
        uint64_t more = kill_and_compare(&random);
        assert_true(more >= 1);
        kills += more;
    }
    print_message("%llu workflows, %llu kills\n", (unsigned long long)tens * TOGETHER,
                  (unsigned long long)kills);
}

/* ---- Branches that are left -------------------------------------------------------------------------- */

static hd_status note(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    all->notes[hd_value_as_int(hd_value_index(args, 0), 0)]++;
    if (dies_after && --dies_after == 0) raise(SIGKILL);
    return hd_action_return(a, hd_null());
}

/* gather(leftover(), <raises>), where leftover is: try: sleep(1000) finally: note(0); note(1); note(2) */
static hd_status make_leaving(hd_pool *pool, hd_value *ir, hd_error *error) {
    hd_flow *f;
    hd_status status = hd_flow_open(pool, "leaving", &f);
    if (status) return status;
    hd_flow_try(f);
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_try(f);
    hd_flow_sleep(f, "1000");
    hd_flow_finally(f);
    for (int i = 0; i < 3; i++) hd_flow_action(f, NULL, "note", i ? i > 1 ? "2" : "1" : "0");
    hd_flow_end(f);
    hd_flow_branch(f);
    hd_flow_raise(f, "ValueError('no')");
    hd_flow_join(f, NULL, NULL);
    hd_flow_except(f, "ValueError", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "5");
    status = hd_flow_ir(f, ir, error);
    hd_flow_close(f);
    return status;
}

static int64_t run_leaving(const char *key) {
    world w;
    hd_error error = { 0 };
    hd_value ir, result;
    char id[HD_INSTANCE_ID_SIZE];
    if (hd_open(file, NULL, &w.rt, &error) || hd_engine_open(w.rt, NULL, &w.engine, &error) ||
        hd_pool_open(hd_runtime_heap(w.rt), &w.pool) || make_leaving(w.pool, &ir, &error) ||
        hd_workflow_register(w.engine, ir, NULL, &error))
        lab_fail("leaving: %s", error.message);
    hd_action_spec spec = { .name = "note", .fn = note, .here = true };
    if (hd_action_register(w.engine, &spec)) lab_fail("note");
    hd_status status =
        hd_workflow_start(w.engine, "leaving", hd_object(), &(hd_start_options){ .key = key }, id);
    if (status && status != HD_EXISTS) lab_fail("start: %s", hd_status_name(status));
    snprintf(id, sizeof id, "leaving/%s", key);
    status = hd_workflow_await(w.engine, id, w.pool, &result);
    int64_t n = status ? -1 : hd_value_as_int(result, -1);
    close_world(&w);
    return n;
}

/* Killed in any step of the clean-up, the instance ends with what its first function had returned before, and each step
 * of the clean-up is done. */
static void w4_the_clean_up_of_branches_that_are_left_survives_kills(void **state) {
    (void)state;
    for (uint64_t at = 1; at <= 3; at++) {
        char key[8];
        int status;
        snprintf(key, sizeof key, "k%u", (unsigned)at);
        memset(all->notes, 0, sizeof all->notes);
        pid_t pid = fork();
        if (pid == 0) {
            dies_after = at;
            (void)run_leaving(key);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(run_leaving(key), 5);
        for (uint64_t i = 0; i < 3; i++) assert_int_equal(all->notes[i], i + 1 == at ? 2 : 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(w4_results_do_not_depend_on_kills, make_folder,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(w4_the_clean_up_of_branches_that_are_left_survives_kills,
                                        make_folder, folder_remove),
    };
    return cmocka_run_group_tests_name("workflows and kills", tests, NULL, NULL);
}
