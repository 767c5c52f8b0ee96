/* test_later_kill.c -- delayed and periodic events through kill -9: each event takes effect once.
 *
 * A program posts events for later, and periodic events of which one makes up for every missed period. It dies in the
 * middle of its handlers and between its pumps, again and again; between two lives some time passes, on a clock
 * of the test's own. In the end every event was handled once, at its time or later; the periodic event that misses
 * nothing has handled each period once, in order; the others never a period twice. Events that were cancelled
 * were not handled, if the cancellation was told to be stored. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "folder.h"
#include "lab.h"
#include <heddle.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 24, CANCELLED = 4, LIVES = 10, LIFE_MS = 60, STEP_MS = 5, EVERY = 10 };
#define BEGIN_MS UINT64_C(1800000000000)

/* Shared by the processes. */
typedef struct story {
    uint32_t dies_in; /* handler calls and pumps until the process ends; 0: it does not */
    uint64_t now_ms;  /* the clock of all lives */
    uint32_t cancelled[CANCELLED]; /* 1: it was said that the event is not handled */
} story;
static story *told;

static void tick_towards_death(void) {
    if (told->dies_in && !--told->dies_in) raise(SIGKILL);
}

/* Waiting passes the time of the lab, too. */
static uint64_t wall(const hd_runtime *rt) {
    const hd_env *env = hd_runtime_env(rt);
    return env->wall_ms(env->ctx);
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    const char *name = hd_value_as_text(event->payload, "?");
    char cell[64];
    tick_towards_death();
    told->now_ms = wall(rt);
    if (event->due_ms > told->now_ms) return HD_FAILED; /* too early */
    snprintf(cell, sizeof cell, "main/%s", name);
    hd_status status =
        hd_tx_append(tx, hd_cell_at(rt, cell), hd_int(hd_tx_pool(tx), (int64_t)event->due_ms));
    tick_towards_death();
    return status;
}

static void post(hd_runtime *rt, hd_pool *pool, const char *name, hd_send_options options) {
    char id[HD_EVENT_ID_SIZE];
    options.id = name;
    hd_status status =
        hd_event_post(rt, hd_cell_at(rt, "main/stream"), hd_string(pool, name), &options, id);
    if (status && status != HD_EXISTS) lab_fail("post %s: %s", name, hd_status_name(status));
}

/* Each life posts everything: what is there stays as it is. */
static void post_all(hd_runtime *rt) {
    hd_pool *pool;
    char name[16];
    if (hd_pool_open(hd_runtime_heap(rt), &pool)) abort();
    for (uint32_t i = 0; i < EVENTS; i++) {
        snprintf(name, sizeof name, "e%u", i);
        post(rt, pool, name, (hd_send_options){ .deliver_at_ms = BEGIN_MS + 1 + i * 23 });
    }
    post(rt, pool, "all",
         (hd_send_options){
             .deliver_at_ms = BEGIN_MS + EVERY, .every_ms = EVERY, .every_missed = true });
    post(rt, pool, "some",
         (hd_send_options){ .deliver_at_ms = BEGIN_MS + EVERY, .every_ms = EVERY });
    hd_pool_close(pool);
}

/* The last events, at random times of the first life. */
static void cancel_some(hd_runtime *rt, lab_random *dice) {
    uint32_t i = (uint32_t)lab_random_below(dice, CANCELLED);
    char name[16], id[HD_EVENT_ID_SIZE];
    hd_cell stream = hd_cell_at(rt, "main/stream");
    snprintf(name, sizeof name, "e%u", EVENTS - 1 - i);
    if (hd_event_id_of(rt, stream, name, 0, id)) abort();
    if (!hd_event_cancel(rt, stream, id)) told->cancelled[i] = 1;
}

static void live(const char *file, uint64_t seed) {
    lab_env *env = lab_env_open();
    lab_random dice = lab_random_of(seed);
    hd_options options = { .env = lab_env_of(env) };
    hd_runtime *rt;
    lab_env_set_wall_ms(env, told->now_ms);
    lab_env_set_seed(env, seed);
    if (hd_open(file, &options, &rt, NULL)) abort();
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/stream"),
                             .fn = handle,
                             .reads_nothing = true };
    if (hd_handler_register(rt, &spec, NULL)) abort();
    post_all(rt);
    for (uint64_t end = told->now_ms + LIFE_MS; told->now_ms < end; told->now_ms = wall(rt)) {
        tick_towards_death();
        hd_status status = hd_runtime_pump(rt);
        if (status && status != HD_PENDING) abort();
        for (int i = 0; i < 10 && !told->dies_in; i++)
            if (hd_runtime_sync(rt) || hd_runtime_settle(rt)) abort();
        if (!lab_random_below(&dice, 8)) cancel_some(rt, &dice);
        lab_env_advance_ms(env, STEP_MS);
    }
    if (hd_close(rt)) abort();
    lab_env_close(env);
    _exit(0);
}

/* Returns whether it lived to its end. */
static bool one_life(const char *file, uint64_t seed) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        live(file, seed);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && !WEXITSTATUS(status)) return true;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("HD_SEED=%llu: a life ended with %d", (unsigned long long)seed, status);
    return false;
}

/* ---- what must be in the file in the end */

static void check_event(hd_runtime *rt, hd_pool *pool, uint64_t seed, uint32_t i) {
    char cell[32];
    snprintf(cell, sizeof cell, "main/e%u", i);
    hd_value v = hd_read(rt, pool, hd_cell_at(rt, cell));
    uint32_t from_end = EVENTS - 1 - i;
    size_t want = from_end < CANCELLED && told->cancelled[from_end] ? 0 : 1;
    if (from_end < CANCELLED && !want && hd_value_count(v) == 0) return;
    /* A cancellation may have been stored without being told. */
    if (from_end < CANCELLED && want && hd_value_count(v) == 0) return;
    if (hd_value_count(v) != want)
        fail_msg("HD_SEED=%llu: %s was handled %zu times instead of %zu", (unsigned long long)seed,
                 cell, hd_value_count(v), want);
}

static void check_periods(hd_runtime *rt, hd_pool *pool, uint64_t seed, const char *cell,
                          bool all) {
    hd_value v = hd_read(rt, pool, hd_cell_at(rt, cell));
    int64_t before = (int64_t)BEGIN_MS;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        int64_t due = hd_value_as_int(it.value, 0), step = due - before;
        if (all ? step != EVERY : step <= 0 || step % EVERY)
            fail_msg("HD_SEED=%llu: %s: %lld after %lld", (unsigned long long)seed, cell,
                     (long long)due, (long long)before);
        before = due;
    }
    if (hd_value_count(v) < (all ? LIVES : 2))
        fail_msg("HD_SEED=%llu: %s has %zu periods", (unsigned long long)seed, cell,
                 hd_value_count(v));
}

static void check_all(const char *file, uint64_t seed) {
    hd_runtime *rt;
    hd_pool *pool;
    assert_int_equal(hd_open(file, NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (uint32_t i = 0; i < EVENTS; i++) check_event(rt, pool, seed, i);
    check_periods(rt, pool, seed, "main/all", true);
    check_periods(rt, pool, seed, "main/some", false);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void each_event_takes_effect_once(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_ROUNDS");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1,
             rounds = count ? strtoull(count, NULL, 10) : 6;
    char file[256];
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    folder_store(file, sizeof file, "later.db");
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        lab_random dice = lab_random_of(seed);
        *told = (story){ .now_ms = BEGIN_MS };
        for (int i = 0; i < LIVES; i++) {
            told->dies_in = 1 + (uint32_t)lab_random_below(&dice, 40);
            one_life(file, seed * 1000 + (uint64_t)i);
            told->now_ms += lab_random_below(&dice, 3 * LIFE_MS);
        }
        told->dies_in = 0;
        while (told->now_ms < BEGIN_MS + 1 + EVENTS * 23) told->now_ms += LIFE_MS;
        assert_true(one_life(file, seed * 1000 + LIVES));
        check_all(file, seed);
        folder_remove_store(file);
    }
    munmap(told, sizeof *told);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_event_takes_effect_once, folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
