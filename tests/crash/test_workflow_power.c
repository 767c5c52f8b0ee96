/* test_workflow_power.c -- power fails at any moment of a workflow: it goes on, and ends with its result (W4).
 *
 * Random workflows run on the lab's disk, which records every operation; the end of each, when it has been told, leaves
 * a mark. Then power fails after operation n, for many n. The file is opened again and whatever is open runs to its
 * end. An instance whose end was told is over with that result; every other one that is there ends with the result it
 * has without an interruption. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "random_flow.h"
#include "times.h"
#include "vfs.h"

#include <stdlib.h>
#include <string.h>

#define FILE_NAME "workflows.db"
enum { WORKFLOWS = 12 };

typedef struct world {
    hd_runtime *rt;
    hd_engine *engine;
    hd_pool *pool;
} world;

static uint64_t seed;
static char *results[WORKFLOWS]; /* without an interruption */

static void open_world(world *w, lab_disk *disk, uint64_t tail_bytes) {
    hd_error error = { 0 };
    hd_options options = { .vfs = disk ? lab_disk_vfs(disk) : NULL, .tail_bytes = tail_bytes };
    if (hd_open(disk ? FILE_NAME : NULL, &options, &w->rt, &error) ||
        hd_engine_open(w->rt, NULL, &w->engine, &error) ||
        hd_pool_open(hd_runtime_heap(w->rt), &w->pool) || random_flow_actions(w->engine, true))
        fail_msg("open: %s", error.message);
}

static void close_world(world *w) {
    hd_pool_close(w->pool);
    assert_int_equal(hd_close(w->rt), HD_OK);
}

static void register_all(world *w) {
    hd_error error = { 0 };
    for (uint32_t i = 0; i < WORKFLOWS; i++) {
        char name[32];
        hd_value ir;
        snprintf(name, sizeof name, "w%u", i);
        if (random_flow(w->pool, name, seed * 1000 + i, &ir, &error) ||
            hd_workflow_register(w->engine, ir, NULL, &error))
            fail_msg("%s: %s", name, error.message);
    }
}

static const char *result_of(world *w, uint32_t i) {
    char id[HD_INSTANCE_ID_SIZE];
    hd_value result;
    snprintf(id, sizeof id, "w%u/one", i);
    hd_status status = hd_workflow_await(w->engine, id, w->pool, &result);
    if (status == HD_NOT_FOUND) return NULL;
    assert_true(status == HD_OK || status == HD_FAILED);
    return hd_json_print(w->pool, result, HD_JSON_COMPACT, NULL);
}

/* In twos, so that steps of several instances share a commit. Instance i that is told leaves the mark i + 1. */
static void run_all(world *w, lab_disk *disk) {
    register_all(w);
    for (uint32_t i = 0; i < WORKFLOWS; i += 2) {
        for (uint32_t k = i; k < i + 2; k++) {
            char name[32], id[HD_INSTANCE_ID_SIZE];
            snprintf(name, sizeof name, "w%u", k);
            assert_int_equal(hd_workflow_start(w->engine, name, hd_object(),
                                               &(hd_start_options){ .key = "one" }, id),
                             HD_OK);
        }
        for (uint32_t k = i; k < i + 2; k++) {
            const char *result = result_of(w, k);
            assert_non_null(result);
            if (disk) lab_disk_mark(disk, k + 1);
            if (!disk) results[k] = strdup(result);
        }
    }
}

static lab_recording *record(uint64_t tail_bytes) {
    lab_disk *disk = lab_disk_new(NULL);
    world w;
    open_world(&w, disk, tail_bytes);
    lab_disk_settle(disk);
    lab_disk_record(disk);
    run_all(&w, disk);
    close_world(&w);
    lab_recording *recording = lab_disk_recorded(disk);
    lab_disk_free(disk);
    return recording;
}

static hd_status remove_lease(hd_tx *tx, void *ctx) {
    (void)ctx;
    return hd_tx_remove(tx, hd_cell_at(hd_tx_runtime(tx), "main/lease/workflow"));
}

/* The process that had the lease ends with its machine; this one, which stands for it, does not. */
static void forget_process(lab_disk *disk) {
    hd_runtime *rt;
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    assert_int_equal(hd_open(FILE_NAME, &options, &rt, NULL), HD_OK);
    assert_int_equal(hd_transact(rt, remove_lease, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void check_after(lab_disk *disk, uint64_t told) {
    world w;
    forget_process(disk);
    open_world(&w, disk, 0);
    for (uint32_t i = 0; i < WORKFLOWS; i++) {
        const char *result = result_of(&w, i);
        if (!result) assert_true(i >= told);
        else assert_string_equal(result, results[i]);
    }
    close_world(&w);
}

static void cut_power(uint64_t tail_bytes) {
    world clean;
    open_world(&clean, NULL, 0);
    run_all(&clean, NULL);
    close_world(&clean);
    lab_recording *recording = record(tail_bytes);
    size_t count = lab_recording_count(recording);
    lab_random random = lab_random_of(seed);
    for (uint64_t i = lab_times("HD_WORKFLOW_CUTS", LAB_SLOW ? 25 : 80); i > 0; i--) {
        size_t marks, n = (size_t)lab_random_below(&random, count + 1);
        lab_disk *disk = lab_disk_at(recording, n, lab_random_u64(&random));
        const uint64_t *all = lab_recording_marks(recording, n, &marks);
        check_after(disk, marks ? all[marks - 1] : 0);
        lab_disk_free(disk);
    }
    lab_recording_free(recording);
    for (uint32_t i = 0; i < WORKFLOWS; i++) free(results[i]);
}

static void w4_a_workflow_ends_with_its_result_whenever_power_fails(void **state) {
    (void)state;
    seed = lab_seed();
    cut_power(0);
}

static void w4_the_same_with_a_checkpoint_after_nearly_every_commit(void **state) {
    (void)state;
    seed = lab_seed() + 1;
    cut_power(256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w4_a_workflow_ends_with_its_result_whenever_power_fails),
        cmocka_unit_test(w4_the_same_with_a_checkpoint_after_nearly_every_commit),
    };
    return cmocka_run_group_tests_name("workflows and power", tests, NULL, NULL);
}
