/* test_sqlite_memory.c -- memory runs out while a store in a file is used: nothing leaks, nothing is
 * lost that was acknowledged, and with memory again everything goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/runtime.h"
#include "value/json_read.h"
#include "vfs.h"
#include <heddle/store.h>
#include <pthread.h>
#include <stdio.h>

#define FILE_NAME "memory.db"
enum { NUMBERS = 4, STRIDE = 5 };

/* ---- The lab's environment, for two threads ------------------------------------------------------ */

typedef struct shared_env {
    lab_env *world;
    pthread_mutex_t lock;
} shared_env;

static void *locked_alloc(void *block, size_t old_size, size_t size, void *ctx) {
    shared_env *s = ctx;
    const hd_env *inner = lab_env_of(s->world);
    pthread_mutex_lock(&s->lock);
    void *result = inner->alloc(block, old_size, size, inner->ctx);
    pthread_mutex_unlock(&s->lock);
    return result;
}

static void no_log(hd_log_level level, const char *line, void *ctx) {
    (void)ctx, (void)level, (void)line;
}

/* Real time and randomness: only memory is the lab's. Their system versions use no context. */
static hd_env env_of(shared_env *s) {
    hd_env env = hd_env_system();
    env.ctx = s;
    env.alloc = locked_alloc;
    env.log = no_log;
    return env;
}

/* ---- The story ------------------------------------------------------------------------------------- */

static void count_ok(hd_status status, void *ctx) {
    if (!status) ++*(int *)ctx;
}

/* A row about a node goes with the commit, if there is memory for it. */
static void add_row(hd_runtime *rt, int i) {
    char text[200];
    int n = snprintf(text, sizeof text,
                     "{\"nodes\":[[\"main:p:n%d\",\"\",\"AAAAAAAAAAABBBBBBBBBBB\",\"f\",\"\","
                     "\"main/list\\nmain/x%d\"]],"
                     "\"gone\":[[\"main:p:n%d\",\"\"]]}",
                     i % 3, i, (i + 1) % 3);
    list_node *last = list_last(&rt->r.queued);
    if (!last) return;
    commit *c = LIST_ENTRY(last, commit, link);
    c->extra = json_read(rt->heap, text, (size_t)n, NULL);
    if (!value_exists(c->extra)) c->extra = value_absent();
}

static void append_number(hd_runtime *rt, int n, int *accepted) {
    hd_tx *tx;
    if (hd_tx_begin(rt, &tx)) return;
    if (hd_tx_append(tx, hd_cell_at(rt, "main/list"), hd_int(NULL, n))) {
        hd_tx_abort(tx);
        return;
    }
    if (!hd_tx_commit(tx, count_ok, accepted)) add_row(rt, n);
}

static int work(lab_disk *disk, const hd_env *env) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .env = env };
    hd_runtime *rt;
    int accepted = 0;
    if (hd_open(FILE_NAME, &options, &rt, NULL)) return 0;
    for (int i = 1; i <= NUMBERS; i++) {
        append_number(rt, i, &accepted);
        if (i == 2) (void)hd_runtime_sync(rt);
        if (i == 3) (void)hd_store_checkpoint(rt, NULL);
    }
    (void)hd_runtime_sync(rt);
    (void)hd_close(rt);
    return accepted;
}

static size_t list_length(lab_disk *disk) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_runtime *rt;
    hd_error error;
    if (hd_open(FILE_NAME, &options, &rt, &error)) fail_msg("open: %s", error.message);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    size_t n = hd_value_count(hd_read(rt, pool, hd_cell_at(rt, "main/list")));
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_store_check(FILE_NAME, &options, NULL, NULL, NULL), HD_OK);
    return n;
}

/* True while the nth allocation was reached. */
static bool run_with_failure(uint64_t nth, bool all_after) {
    shared_env shared = { lab_env_open(), PTHREAD_MUTEX_INITIALIZER };
    hd_env env = env_of(&shared);
    lab_disk *disk = lab_disk_new(NULL);
    if (all_after) lab_env_fail_from(shared.world, nth);
    else lab_env_fail_at(shared.world, nth);
    int accepted = work(disk, &env);
    bool failed = lab_env_failed(shared.world);
    lab_env_fail_at(shared.world, 0);
    assert_true(list_length(disk) >= (size_t)accepted);
    if (!failed) assert_int_equal(accepted, NUMBERS);
    lab_disk_free(disk);
    lab_env_close(shared.world); /* aborts on a leak */
    return failed;
}

static void each_allocation_may_fail(void **state) {
    (void)state;
    for (uint64_t nth = 1; run_with_failure(nth, false); nth += STRIDE) {}
}

static void memory_may_be_gone_for_good(void **state) {
    (void)state;
    for (uint64_t nth = 1; run_with_failure(nth, true); nth += STRIDE) {}
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(memory_may_be_gone_for_good),
    };
    return cmocka_run_group_tests_name("sqlite, memory", tests, NULL, NULL);
}
