/* test_power.c -- power fails at any moment: what was acknowledged is there, the rest is a prefix.
 *
 * A workload runs once on the lab's disk, which records every operation; each verdict leaves a mark.
 * Then power fails after operation n, for every n and with several seeds (what of the unsynced
 * writes survives, what is torn), and the file is opened again. Commit k appends k to one document
 * and sets a counter in another, so the list must read 1 .. m, m at least the last mark, and the
 * counters must be what m commits leave: nothing is lost, nothing is half there. Each commit also
 * carries a row about a node that reads its counter: rows and documents always belong together.
 *
 * HD_POWER_CUTS: how often power fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/basis/basis.h"
#include "store/runtime.h"
#include "value/json_read.h"
#include "times.h"
#include "vfs.h"
#include <heddle/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "power.db"
enum { COMMITS = 120, COUNTERS = 5 };

/* Together 20,000 in each run of the suite. */
static uint64_t cut_count(void) { return lab_times("HD_POWER_CUTS", LAB_SLOW ? 2000 : 18000); }

/* ---- The workload --------------------------------------------------------------------------- */

typedef struct acked {
    lab_disk *disk;
    uint64_t number;
} acked;

static void mark_accepted(hd_status status, void *ctx) {
    acked *a = ctx;
    assert_int_equal(status, HD_OK);
    lab_disk_mark(a->disk, a->number);
}

static hd_runtime *open_on(lab_disk *disk, uint64_t tail_bytes) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .tail_bytes = tail_bytes };
    hd_runtime *rt;
    hd_error error;
    hd_status status = hd_open(FILE_NAME, &options, &rt, &error);
    if (status) fail_msg("open: %s", error.message);
    return rt;
}

static hd_cell counter(hd_runtime *rt, uint64_t k) {
    char name[32];
    snprintf(name, sizeof name, "main/c%llu#/last", (unsigned long long)(k % COUNTERS));
    return hd_cell_at(rt, name);
}

/* A row goes with the commit that was just queued. */
static void add_row(hd_runtime *rt, uint64_t k) {
    char text[160];
    int n = snprintf(text, sizeof text,
                     "{\"nodes\":[[\"main:p:c%d\",\"\",\"AAAAAAAAAAAAAAAAAAAAAA\",\"f%d\",\"\","
                     "\"main/c%d#/last\\nmain/x%d\"]]}",
                     (int)(k % COUNTERS), (int)k, (int)(k % COUNTERS), (int)(k % 7));
    commit *c = LIST_ENTRY(list_last(&rt->r.queued), commit, link);
    c->extra = json_read(rt->heap, text, (size_t)n, NULL);
    assert_true(value_exists(c->extra));
}

static void commit_number(hd_runtime *rt, acked *a) {
    hd_tx *tx;
    hd_pool *pool;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    pool = hd_tx_pool(tx);
    hd_tx_append(tx, hd_cell_at(rt, "main/list"), hd_int(pool, (int64_t)a->number));
    hd_tx_set(tx, counter(rt, a->number), hd_int(pool, (int64_t)a->number));
    assert_int_equal(hd_tx_commit(tx, mark_accepted, a), HD_OK);
    add_row(rt, a->number);
}

/* Commits of several sizes of group, a checkpoint now and then, pruning, and a second open. */
static lab_recording *record_workload(uint64_t tail_bytes) {
    lab_disk *disk = lab_disk_new(NULL);
    static acked acks[COMMITS + 1];
    hd_runtime *rt = open_on(disk, tail_bytes);
    lab_disk_settle(disk);
    lab_disk_record(disk);
    for (uint64_t k = 1; k <= COMMITS; k++) {
        acks[k] = (acked){ disk, k };
        commit_number(rt, &acks[k]);
        if (k % 7 == 0 || k % 3 == 0) hd_runtime_pump(rt);
        if (k % 20 == 0) assert_int_equal(hd_runtime_sync(rt), HD_OK);
        if (k == 50) assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
        if (k == 70) assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
        if (k == 90) {
            assert_int_equal(hd_close(rt), HD_OK);
            rt = open_on(disk, tail_bytes);
        }
    }
    assert_int_equal(hd_close(rt), HD_OK);
    lab_recording *recording = lab_disk_recorded(disk);
    lab_disk_free(disk);
    return recording;
}

/* ---- After the power is back ----------------------------------------------------------------- */

static void report_finding(const char *finding, void *ctx) {
    (void)ctx;
    fprintf(stderr, "finding: %s\n", finding);
}

static uint64_t read_prefix(hd_runtime *rt, hd_pool *pool) {
    hd_value all = hd_read(rt, pool, hd_cell_at(rt, "main/list"));
    uint64_t m = hd_value_count(all);
    for (size_t i = 0; i < m; i++)
        assert_int_equal(hd_value_as_int(hd_value_index(all, i), -1), i + 1);
    for (uint64_t k = m; k > 0 && k + COUNTERS > m; k--)
        assert_int_equal(hd_value_as_int(hd_read(rt, pool, counter(rt, k)), -1), k);
    return m;
}

typedef struct rows_seen {
    uint64_t commits, count;
} rows_seen;

/* The row is that of the counter's last commit, proved as of it. */
static bool check_row(void *ctx, const basis_row *row) {
    rows_seen *seen = ctx;
    uint64_t j = (uint64_t)(row->name[8] - '0'), last = seen->commits;
    while (last % COUNTERS != j) last--;
    char fingerprint[32];
    snprintf(fingerprint, sizeof fingerprint, "f%d", (int)last);
    assert_string_equal(row->print, fingerprint);
    assert_int_equal(hd_value_as_int(hd_value_at(row->seqs, "main"), 0), last);
    seen->count++;
    return true;
}

static void check_rows(hd_runtime *rt, uint64_t m) {
    authority *a = rt->r.authority;
    rows_seen seen = { m, 0 };
    assert_int_equal(a->ops->basis->rows(a, "main:p", check_row, &seen), HD_OK);
    assert_int_equal(seen.count, m < COUNTERS ? m : COUNTERS);
}

static void check_after(lab_disk *disk, uint64_t last_mark, bool thoroughly) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_runtime *rt = open_on(disk, 0);
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    uint64_t m = read_prefix(rt, pool);
    check_rows(rt, m);
    if (m < last_mark)
        fail_msg("%llu commits are there, %llu were acknowledged", (unsigned long long)m,
                 (unsigned long long)last_mark);
    if (thoroughly) { /* and it goes on from there */
        acked a = { disk, m + 1 };
        commit_number(rt, &a);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        assert_int_equal(read_prefix(rt, pool), m + 1);
    }
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    if (!thoroughly) return;
    hd_error error;
    hd_status status = hd_store_check(FILE_NAME, &options, report_finding, NULL, &error);
    if (status) fail_msg("check: %s", error.message);
}

static uint64_t last_mark(const lab_recording *recording, size_t n) {
    size_t count;
    const uint64_t *marks = lab_recording_marks(recording, n, &count);
    return count ? marks[count - 1] : 0;
}

static void cut_power(const lab_recording *recording, uint64_t cycles, uint64_t seed) {
    size_t count = lab_recording_count(recording);
    lab_random random = lab_random_of(seed);
    for (uint64_t i = 0; i < cycles; i++) {
        size_t n = i <= count ? (size_t)i : (size_t)lab_random_below(&random, count + 1);
        lab_disk *disk = lab_disk_at(recording, n, lab_random_u64(&random));
        check_after(disk, last_mark(recording, n), i % 16 == 0);
        lab_disk_free(disk);
    }
}

/* S1, S8, S9: a file whose checkpoints are rare: recovery is by the log. */
static void power_loss_keeps_what_was_acknowledged(void **state) {
    (void)state;
    lab_recording *recording = record_workload(0);
    cut_power(recording, cut_count() / 2, lab_seed());
    lab_recording_free(recording);
}

/* The same with a checkpoint after nearly every commit: recovery is by head rows, and power fails
 * in the middle of checkpoints. */
static void power_loss_during_checkpoints_loses_nothing(void **state) {
    (void)state;
    lab_recording *recording = record_workload(256);
    cut_power(recording, cut_count() - cut_count() / 2, lab_seed() + 1);
    lab_recording_free(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_loss_keeps_what_was_acknowledged),
        cmocka_unit_test(power_loss_during_checkpoints_loses_nothing),
    };
    return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
