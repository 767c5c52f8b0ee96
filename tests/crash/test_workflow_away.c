/* test_workflow_away.c -- processes that do steps through the store are killed, again and again: every workflow ends
 * with the result it would have had (W4), and no outcome counts twice (W1).
 *
 * The test's process has the engine and no actions. Two keepers each have a child process with the actions. The child
 * is killed in the middle of an action, before or after its result, or a random time after its start, and is started
 * again. The workflows are random, and ten run at a time; every second ten are divided into three shards. Their results
 * must be those of the same workflows in memory, without any interruption, and nothing of the killed processes may be
 * left in the store.
 *
 * HD_WORKFLOW_KILLS=N runs N times ten workflows, HD_SEED chooses them, HD_STORE=postgres uses a server. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab_place.h"
#include "random_flow.h"
#include "times.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOGETHER = 10, TENS = LAB_SLOW ? 2 : 6, TENS_ON_A_SERVER = 1, KEEPERS = 2, KILLS_EACH = 3 };

/* Shared by processes. */
typedef struct shared {
    _Atomic uint64_t calls, kills;
    _Atomic bool over; /* the processes are to end */
} shared;

static lab_store_place place;
static shared *all;
static uint64_t seed;
static uint64_t dies_after; /* so many calls of this process; 0: not by itself */
static uint32_t first;      /* of the workflows that run now */

static int make_place(void **state) {
    (void)state;
    lab_place_make(&place);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return all == MAP_FAILED ? -1 : 0;
}

static int remove_place(void **state) {
    (void)state;
    lab_place_remove(&place);
    return 0;
}

/* ---- the processes with the actions ----------------------------------------------------------- */

static void count_call(const char *step) {
    (void)step;
    all->calls++;
    if (dies_after && --dies_after == 0) raise(SIGKILL);
}

static void die(int signal_) {
    (void)signal_;
    kill(getpid(), SIGKILL);
}

/* `how` is a random number: after so many calls, or after so much time. */
static void choose_death(uint64_t how) {
    struct itimerval soon = { .it_value.tv_usec = 20000 + (int)(how / 2 % 200000) };
    if (how % 2) {
        dies_after = 1 + how / 2 % 40;
        return;
    }
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void wait_for_work(hd_runtime *rt) {
    struct pollfd p = { hd_runtime_fd(rt), POLLIN, 0 };
    if (hd_runtime_deadline(rt)) poll(&p, 1, 20);
}

/* The child of a keeper. `how`: see choose_death; 0: it is not killed, and ends when the others do. */
static void serve(uint64_t how) {
    hd_runtime *rt;
    hd_engine *engine;
    hd_error error = { 0 };
    random_flow_called = count_call;
    if (how) choose_death(how);
    if (hd_open(place.name, NULL, &rt, &error) ||
        hd_engine_open(rt, &(hd_engine_options){ .observer = true }, &engine, &error) ||
        random_flow_actions(engine, how % 4 < 2))
        lab_fail("open: %s", error.message);
    while (!all->over) {
        (void)hd_runtime_pump(rt);
        wait_for_work(rt);
    }
    (void)hd_close(rt);
    _exit(0);
}

/* A keeper: starts its child again and again, the first KILLS_EACH of them to be killed. */
static void keep(uint64_t how) {
    lab_random random = lab_random_of(how);
    for (int i = 0; !all->over; i++) {
        int status;
        pid_t pid = fork();
        if (!pid) serve(i < KILLS_EACH ? lab_random_u64(&random) | 8 : 0);
        if (waitpid(pid, &status, 0) != pid) _exit(1);
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) _exit(2);
        all->kills += WIFSIGNALED(status);
    }
    _exit(0);
}

/* ---- the workflows ----------------------------------------------------------------------------- */

typedef struct world {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
} world;

static void open_world(world *w, const char *where) {
    hd_error error = { 0 };
    hd_engine_options options = { .shards = where && first / TOGETHER % 2 == 0 ? 3 : 1 };
    if (hd_open(where, NULL, &w->rt, &error) ||
        hd_engine_open(w->rt, &options, &w->engine, &error) ||
        hd_pool_open(hd_runtime_heap(w->rt), &w->pool) ||
        (!where && random_flow_actions(w->engine, true)))
        lab_fail("open: %s", error.message);
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        char name[32];
        hd_value ir;
        snprintf(name, sizeof name, "w%u", i);
        if (random_flow(w->pool, name, seed * 1000 + i, &ir, &error) ||
            hd_workflow_register(w->engine, ir, NULL, &error))
            lab_fail("%s: %s", name, error.message);
    }
}

static void run_all(world *w) {
    char id[HD_INSTANCE_ID_SIZE], name[32];
    hd_value result;
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        snprintf(name, sizeof name, "w%u", i);
        assert_int_equal(hd_workflow_start(w->engine, name, hd_object(),
                                           &(hd_start_options){ .key = "one" }, id),
                         HD_OK);
    }
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        snprintf(id, sizeof id, "w%u/one", i);
        hd_status status = hd_workflow_await(w->engine, id, w->pool, &result);
        if (status && status != HD_FAILED) fail_msg("%s: %s", id, hd_status_name(status));
    }
}

static const char *document(world *w, uint32_t i) {
    static const char *const keys[] = { "status", "result", "error" };
    char id[HD_INSTANCE_ID_SIZE];
    snprintf(id, sizeof id, "w%u/one", i);
    hd_value d = hd_read(w->rt, w->pool, hd_workflow_cell(w->engine, id)), v = hd_object();
    for (int k = 0; k < 3; k++)
        if (hd_value_exists(hd_value_at(d, keys[k])))
            v = hd_object_set(w->pool, v, keys[k], hd_value_at(d, keys[k]));
    return hd_json_print(w->pool, v, HD_JSON_COMPACT, NULL);
}

static void compare(world *kept) {
    world clean;
    open_world(&clean, NULL);
    run_all(&clean);
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        const char *is = document(kept, i), *should_be = document(&clean, i);
        if (strcmp(is, should_be))
            fail_msg("w%u of seed %llu: %s, not %s", i, (unsigned long long)seed, is, should_be);
    }
    hd_pool_close(clean.pool);
    assert_int_equal(hd_close(clean.rt), HD_OK);
}

static bool one_more(const hd_listing *entry, void *ctx) {
    (void)entry;
    return ++*(int *)ctx, true;
}

static bool is_clean(hd_runtime *rt) {
    static const char *const kinds[] = { "workflow.worker", "workflow.tasks", "workflow.inbox" };
    int left = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(hd_runtime_list(rt, "main", kinds[i], NULL, one_more, &left), HD_OK);
    return !left;
}

/* Every process has ended: the engine notices, and removes what they have left. */
static void clear_up(world *w) {
    while (!is_clean(w->rt)) {
        assert_in_range(hd_runtime_pump(w->rt), 0, HD_PENDING);
        wait_for_work(w->rt);
    }
}

static void end_keepers(const pid_t *keepers) {
    all->over = true;
    for (int i = 0; i < KEEPERS; i++) {
        int status;
        assert_int_equal(waitpid(keepers[i], &status, 0), keepers[i]);
        assert_int_equal(status, 0);
    }
}

static void kill_and_compare(lab_random *random) {
    world w;
    pid_t keepers[KEEPERS];
    all->over = false;
    for (int i = 0; i < KEEPERS; i++) {
        uint64_t how = lab_random_u64(random);
        keepers[i] = fork();
        if (!keepers[i]) keep(how);
    }
    open_world(&w, place.name);
    run_all(&w);
    end_keepers(keepers);
    clear_up(&w);
    compare(&w);
    hd_pool_close(w.pool);
    assert_int_equal(hd_close(w.rt), HD_OK);
}

static void w4_results_do_not_depend_on_who_does_the_steps(void **state) {
    uint64_t tens = lab_times("HD_WORKFLOW_KILLS", lab_on_server() ? TENS_ON_A_SERVER : TENS);
    hd_error error = { 0 };
    hd_runtime *rt;
    (void)state;
    seed = lab_seed();
    lab_random random = lab_random_of(seed);
    assert_int_equal(hd_open(place.name, NULL, &rt, &error), HD_OK); /* the store is made once */
    assert_int_equal(hd_close(rt), HD_OK);
    for (uint64_t i = 0; i < tens; i++, first += TOGETHER) kill_and_compare(&random);
    assert_true(all->kills > 0);
    print_message("%llu workflows, %llu calls, %llu kills\n", (unsigned long long)tens * TOGETHER,
                  (unsigned long long)all->calls, (unsigned long long)all->kills);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(w4_results_do_not_depend_on_who_does_the_steps, make_place,
                                        remove_place),
    };
    return cmocka_run_group_tests_name("steps through the store, and kills", tests, NULL, NULL);
}
