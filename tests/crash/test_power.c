/* test_power.c -- power fails at any moment: what was acknowledged is there, the rest is a prefix.
 *
 * A workload runs once on the lab's disk, which records every operation; each verdict leaves a mark.
 * Then power fails after operation n, for every n and with several seeds (what of the unsynced
 * writes survives, what is torn), and the file is opened again. Commit k appends k to one document
 * and sets a counter in another, so the list must read 1 .. m, m at least the last mark, and the
 * counters must be what m commits leave: nothing is lost, nothing is half there. Each commit also
 * carries a row about a node that reads its counter: rows and documents always belong together.
 *
 * Many cuts leave the same: what SQLite does not read (a torn end of the WAL) differs, what it reads does not. Each
 * state is opened and checked once; for a cut that leaves a state that was checked before, only the marks are
 * compared, and one in RECHECKED is opened all the same. So that states differ, a workload of its own is drawn for
 * every few thousand cuts: sizes of groups, checkpoints, pruning, opening again, large documents, sectors.
 *
 * HD_POWER_CUTS: how often power fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "scheduler/persistence/persistence.h"
#include "store/runtime.h"
#include "value/json_read.h"
#include "times.h"
#include "vfs.h"
#include <heddle/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "power.db"
enum {
    COMMITS = 120,
    COUNTERS = 5,
    RECHECKED = 64,
    CUTS_OF_EACH = 4000, /* of each workload that is drawn */
    FILLER = 17000       /* bytes: a document of that size has its value apart, and patches */
};

/* Together 20,000 in each run of the suite. */
static uint64_t cut_count(void) { return lab_times("HD_POWER_CUTS", LAB_SLOW ? 2000 : 18000); }

/* ---- The workload --------------------------------------------------------------------------- */

/* Once in so many commits; 0: never. */
typedef struct workload {
    uint64_t commits, tail_bytes;
    uint64_t pump, sync, checkpoint, prune, reopen;
    uint64_t large; /* this one changes the large document */
    lab_disk_options disk;
} workload;

static const workload rare_checkpoints = {
    .commits = COMMITS, .pump = 3, .sync = 20, .checkpoint = 50, .prune = 70, .reopen = 90
};

static uint64_t once_in(lab_random *random, uint64_t most) {
    return lab_random_once_in(random, 4) ? 0 : 1 + lab_random_below(random, most);
}

static workload draw_workload(lab_random *random) {
    static const uint64_t tails[] = { 0, 256, 4096, 30000 };
    return (workload){ .commits = 5 + lab_random_below(random, 50),
                       .tail_bytes = tails[lab_random_below(random, 4)],
                       .pump = once_in(random, 8),
                       .sync = once_in(random, 20),
                       .checkpoint = once_in(random, 30),
                       .prune = once_in(random, 30),
                       .reopen = once_in(random, 20),
                       .large = once_in(random, 8),
                       .disk = { .sector_size = lab_random_once_in(random, 2) ? 512 : 4096,
                                 .whole_sectors = lab_random_once_in(random, 4) } };
}

static bool is_time(uint64_t k, uint64_t every) { return every && k % every == 0; }

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

static hd_cell large(hd_runtime *rt) { return hd_cell_at(rt, "main/large#/last"); }

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

static void change_large(hd_runtime *rt, hd_tx *tx, uint64_t k, uint64_t every) {
    static char filler[FILLER];
    memset(filler, 'x', sizeof filler);
    hd_pool *pool = hd_tx_pool(tx);
    if (k == every)
        hd_tx_set(tx, hd_cell_at(rt, "main/large#/filler"), hd_string_n(pool, filler, FILLER));
    hd_tx_set(tx, large(rt), hd_int(pool, (int64_t)k));
}

static void commit_number(hd_runtime *rt, const workload *w, acked *a) {
    hd_tx *tx;
    hd_pool *pool;
    uint64_t k = a->number;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    pool = hd_tx_pool(tx);
    hd_tx_append(tx, hd_cell_at(rt, "main/list"), hd_int(pool, (int64_t)k));
    hd_tx_set(tx, counter(rt, k), hd_int(pool, (int64_t)k));
    if (is_time(k, w->large)) change_large(rt, tx, k, w->large);
    assert_int_equal(hd_tx_commit(tx, mark_accepted, a), HD_OK);
    add_row(rt, k);
}

/* Commits of several sizes of group, a checkpoint now and then, pruning, and opening again. */
static lab_recording *record_workload(const workload *w) {
    lab_disk *disk = lab_disk_new(&w->disk);
    static acked acks[COMMITS + 1];
    hd_runtime *rt = open_on(disk, w->tail_bytes);
    lab_disk_settle(disk);
    lab_disk_record(disk);
    for (uint64_t k = 1; k <= w->commits; k++) {
        acks[k] = (acked){ disk, k };
        commit_number(rt, w, &acks[k]);
        if (k % 7 == 0 || is_time(k, w->pump)) hd_runtime_pump(rt);
        if (is_time(k, w->sync)) assert_int_equal(hd_runtime_sync(rt), HD_OK);
        if (is_time(k, w->checkpoint)) assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
        if (is_time(k, w->prune)) assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
        if (is_time(k, w->reopen)) {
            assert_int_equal(hd_close(rt), HD_OK);
            rt = open_on(disk, w->tail_bytes);
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

static uint64_t read_prefix(hd_runtime *rt, const workload *w, hd_pool *pool) {
    hd_value all = hd_read(rt, pool, hd_cell_at(rt, "main/list"));
    uint64_t m = hd_value_count(all);
    for (size_t i = 0; i < m; i++)
        assert_int_equal(hd_value_as_int(hd_value_index(all, i), -1), i + 1);
    for (uint64_t k = m; k > 0 && k + COUNTERS > m; k--)
        assert_int_equal(hd_value_as_int(hd_read(rt, pool, counter(rt, k)), -1), k);
    if (w->large && m >= w->large)
        assert_int_equal(hd_value_as_int(hd_read(rt, pool, large(rt)), -1), m - m % w->large);
    return m;
}

typedef struct rows_seen {
    uint64_t commits, count;
} rows_seen;

/* The row is that of the counter's last commit, proved as of it. */
static bool check_row(void *ctx, const memo *row) {
    rows_seen *seen = ctx;
    uint64_t j = (uint64_t)(row->text[ROW_NAME][8] - '0'), last = seen->commits;
    while (last % COUNTERS != j) last--;
    char fingerprint[32];
    snprintf(fingerprint, sizeof fingerprint, "f%d", (int)last);
    assert_string_equal(row->text[ROW_PRINT], fingerprint);
    assert_int_equal(hd_value_as_int(hd_value_at(row->seqs, "main"), 0), last);
    seen->count++;
    return true;
}

static void check_rows(hd_runtime *rt, uint64_t m) {
    authority *a = rt->r.authority;
    rows_seen seen = { m, 0 };
    assert_int_equal(a->ops->memos(a, "main:p", check_row, &seen), HD_OK);
    assert_int_equal(seen.count, m < COUNTERS ? m : COUNTERS);
}

/* How many commits are there. */
static uint64_t check_after(lab_disk *disk, const workload *w, bool thoroughly) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_runtime *rt = open_on(disk, 0);
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    uint64_t m = read_prefix(rt, w, pool);
    check_rows(rt, m);
    if (thoroughly) { /* and it goes on from there */
        acked a = { disk, m + 1 };
        commit_number(rt, w, &a);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        assert_int_equal(read_prefix(rt, w, pool), m + 1);
    }
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    if (!thoroughly) return m;
    hd_error error;
    hd_status status = hd_store_check(FILE_NAME, &options, report_finding, NULL, &error);
    if (status) fail_msg("check: %s", error.message);
    return m;
}

/* ---- Cuts -------------------------------------------------------------------------------------- */

enum { SEEN = 1 << 14 };

/* The states of one recording that were checked; when it is full, others are checked each time. */
typedef struct seen_state {
    lab_state state;
    uint64_t commits;
    bool used;
} seen_state;

typedef struct cutting {
    const workload *w;
    const lab_recording *recording;
    lab_random random;
    seen_state seen[SEEN];
    uint32_t count;
    uint64_t cuts, checked; /* so far, of all recordings */
} cutting;

static seen_state *find_state(cutting *c, lab_state state) {
    uint64_t i = state.words[0] % SEEN;
    while (c->seen[i].used && memcmp(&c->seen[i].state, &state, sizeof state) != 0)
        i = (i + 1) % SEEN;
    return &c->seen[i];
}

static uint64_t commits_after(cutting *c, lab_disk *disk) {
    seen_state *s = find_state(c, lab_disk_state(disk, FILE_NAME)), before = *s;
    if (s->used && !lab_random_once_in(&c->random, RECHECKED)) return s->commits;
    if (!s->used && c->count < SEEN / 2) {
        *s = (seen_state){ lab_disk_state(disk, FILE_NAME), 0, true };
        c->count++;
    }
    uint64_t m = check_after(disk, c->w, lab_random_once_in(&c->random, 4));
    if (before.used) assert_int_equal(m, before.commits);
    if (s->used) s->commits = m;
    c->checked++;
    return m;
}

static uint64_t last_mark(const lab_recording *recording, size_t n) {
    size_t count;
    const uint64_t *marks = lab_recording_marks(recording, n, &count);
    return count ? marks[count - 1] : 0;
}

static void cut_once(cutting *c, size_t n) {
    lab_disk *disk = lab_disk_at(c->recording, n, lab_random_u64(&c->random));
    uint64_t m = commits_after(c, disk), acknowledged = last_mark(c->recording, n);
    if (m < acknowledged)
        fail_msg("%llu commits are there, %llu were acknowledged", (unsigned long long)m,
                 (unsigned long long)acknowledged);
    lab_disk_free(disk);
    c->cuts++;
}

/* After every operation once, then after any. */
static void cut_power(cutting *c, const workload *w, uint64_t cycles) {
    lab_recording *recording = record_workload(w);
    size_t count = lab_recording_count(recording);
    c->w = w;
    c->recording = recording;
    c->count = 0;
    memset(c->seen, 0, sizeof c->seen);
    for (uint64_t i = 0; i < cycles; i++)
        cut_once(c, i <= count ? (size_t)i : (size_t)lab_random_below(&c->random, count + 1));
    lab_recording_free(recording);
}

static cutting *new_cutting(uint64_t seed) {
    cutting *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->random = lab_random_of(seed);
    return c;
}

static void free_cutting(cutting *c) {
    printf("%llu cuts, %llu of them opened\n", (unsigned long long)c->cuts,
           (unsigned long long)c->checked);
    free(c);
}

/* S1, S8, S9: a file whose checkpoints are rare: recovery is by the log. */
static void power_loss_keeps_what_was_acknowledged(void **state) {
    (void)state;
    cutting *c = new_cutting(lab_seed());
    cut_power(c, &rare_checkpoints, cut_count() / 4);
    free_cutting(c);
}

/* The same with a checkpoint after nearly every commit: recovery is by head rows, and power fails
 * in the middle of checkpoints. */
static void power_loss_during_checkpoints_loses_nothing(void **state) {
    (void)state;
    cutting *c = new_cutting(lab_seed() + 1);
    workload w = rare_checkpoints;
    w.tail_bytes = 256;
    cut_power(c, &w, cut_count() / 4);
    free_cutting(c);
}

static void power_loss_in_any_workload_loses_nothing(void **state) {
    (void)state;
    cutting *c = new_cutting(lab_seed() + 2);
    for (uint64_t left = cut_count() - cut_count() / 4 * 2, now; left; left -= now) {
        workload w = draw_workload(&c->random);
        now = left < CUTS_OF_EACH ? left : CUTS_OF_EACH;
        cut_power(c, &w, now);
    }
    free_cutting(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_loss_keeps_what_was_acknowledged),
        cmocka_unit_test(power_loss_during_checkpoints_loses_nothing),
        cmocka_unit_test(power_loss_in_any_workload_loses_nothing),
    };
    return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
