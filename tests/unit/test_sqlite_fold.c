/* test_sqlite_fold.c -- a long log tail is folded in slices, and commits have their turn in between. */
#include "store/runtime.h"
#include "store/log/authority.h"
#include "store/log/fold.h"
#include "disk_world.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define FILE_NAME "store.db"

enum {
    AT_ONCE = 64, /* documents in one commit, which is one row of the log */
    DOCUMENTS = 4 * SLICE_THINGS,
    SLICES = DOCUMENTS / SLICE_THINGS,
    ROUNDS = 50
};

/* ---- A small world ------------------------------------------------------------------------------ */

static hd_runtime *open_on(lab_disk *where, uint64_t tail_bytes) {
    hd_options options = { .vfs = lab_disk_vfs(where), .tail_bytes = tail_bytes };
    hd_runtime *rt;
    hd_error error;
    hd_status status = hd_open(FILE_NAME, &options, &rt, &error);
    if (status) fail_msg("open: %s", error.message);
    return rt;
}

static fold_counts counts_of(hd_runtime *rt) { return log_authority_folds(rt->r.authority); }

static hd_cell document(hd_runtime *rt, int n) {
    char name[32];
    snprintf(name, sizeof name, "main/d%d", n);
    return hd_cell_at(rt, name);
}

static void write_some(hd_runtime *rt, int first, int value) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    for (int n = first; n < first + AT_ONCE; n++)
        assert_int_equal(hd_tx_set_int(tx, document(rt, n), value + n), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void write_all(hd_runtime *rt, int value) {
    for (int n = 0; n < DOCUMENTS; n += AT_ONCE) write_some(rt, n, value);
}

static int64_t read_number(hd_runtime *rt, hd_cell cell) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    int64_t n = hd_value_as_int(hd_read(rt, pool, cell), -1);
    hd_pool_close(pool);
    return n;
}

static void print_finding(const char *finding, void *ctx) {
    (void)ctx;
    fprintf(stderr, "finding: %s\n", finding);
}

/* Everything is there, and the file says nothing that is not so. */
static void assert_whole(lab_disk *where, int value) {
    hd_options options = { .vfs = lab_disk_vfs(where) };
    hd_error error;
    if (hd_store_check(FILE_NAME, &options, print_finding, NULL, &error))
        fail_msg("%s", error.message);
    hd_runtime *rt = open_on(where, 0);
    for (int n = 0; n < DOCUMENTS; n += 17)
        assert_int_equal(read_number(rt, document(rt, n)), value + n);
    assert_int_equal(hd_close(rt), HD_OK);
}

/* How much of the log is left to fold, in slices. */
static uint64_t slices_left(lab_disk *where) {
    hd_runtime *rt = open_on(where, 0);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    uint64_t slices = counts_of(rt).slices;
    assert_int_equal(hd_close(rt), HD_OK);
    return slices;
}

/* ---- Slices ---------------------------------------------------------------------------------------- */

/* No slice writes more than it may, but for the row in which it became full. */
static void a_long_tail_is_folded_in_slices(void **state) {
    (void)state;
    hd_runtime *rt = open_on(disk, 0);
    write_all(rt, 1);
    assert_int_equal(counts_of(rt).slices, 0);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    fold_counts counts = counts_of(rt);
    assert_int_equal(counts.slices, SLICES);
    assert_true(counts.most >= SLICE_THINGS && counts.most < SLICE_THINGS + AT_ONCE);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_int_equal(counts_of(rt).slices, SLICES); /* nothing is left */
    assert_int_equal(hd_close(rt), HD_OK);
    assert_whole(disk, 1);
}

/* A document that changes all the time is written once for each slice, not for each change. */
static void many_changes_of_few_documents_are_one_slice(void **state) {
    (void)state;
    hd_runtime *rt = open_on(disk, 0);
    for (int i = 0; i < 100; i++) write_some(rt, 0, i);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_int_equal(counts_of(rt).slices, 1);
    assert_int_equal(counts_of(rt).most, AT_ONCE);
    assert_int_equal(hd_close(rt), HD_OK);
}

/* Wherever power fails, what is there is a checkpoint and a tail. */
static void a_checkpoint_may_end_between_slices(void **state) {
    (void)state;
    hd_runtime *rt = open_on(disk, 0);
    write_all(rt, 1);
    lab_disk_record(disk);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    lab_recording *rec = lab_disk_recorded(disk);
    assert_int_equal(hd_close(rt), HD_OK);
    size_t count = lab_recording_count(rec), between = 0;
    for (size_t i = 0; i <= 8; i++) {
        lab_disk *after = lab_disk_at(rec, count * i / 8, i + 1);
        lab_disk *same = lab_disk_clone(after);
        assert_whole(after, 1);
        uint64_t left = slices_left(same);
        between += left > 0 && left < SLICES;
        lab_disk_free(after);
        lab_disk_free(same);
    }
    assert_true(between > 0);
    lab_recording_free(rec);
}

/* ---- Commits in between ------------------------------------------------------------------------- */

/* `writes` makes the tail long; `folds`, which finds it too long, commits meanwhile one by one. */
static void commit_while_folding(hd_runtime *writes, hd_runtime *folds, int round) {
    write_all(writes, round);
    for (int n = 0; n < 4 * SLICES; n++) {
        assert_int_equal(hd_write(folds, hd_cell_at(folds, "main/n"), hd_int(NULL, n)), HD_OK);
        assert_int_equal(hd_runtime_sync(folds), HD_OK);
    }
}

/* A commit never waits for more than the slice that is being written and one that comes before it. Whether
 * one comes at the right moment is for the threads to say; in fifty rounds one does. */
static void commits_have_their_turn_between_slices(void **state) {
    (void)state;
    hd_runtime *writes = open_on(disk, 0), *folds = open_on(disk, 1 << 16);
    fold_counts counts = { 0 };
    int round = 0;
    while (!counts.groups && round < ROUNDS) {
        commit_while_folding(writes, folds, ++round);
        counts = counts_of(folds);
    }
    assert_true(counts.groups > 0);
    assert_true(counts.waited <= 1);
    assert_true(counts.most < SLICE_THINGS + AT_ONCE);
    assert_int_equal(hd_close(writes), HD_OK);
    assert_int_equal(hd_close(folds), HD_OK);
    assert_whole(disk, round);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_disk, free_disk)

/* ---- Another process comes between reading and writing ---------------------------------------------- */

/* A slice is read and folded before the file's lock is taken. */
typedef struct between {
    hd_runtime *other;
    int locks; /* that were taken since it was set up */
    pthread_t thread;
    sem_t reached, go_on;
} between;

static void check_file(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_error error;
    if (hd_store_check(FILE_NAME, &options, print_finding, NULL, &error))
        fail_msg("%s", error.message);
}

static void fold_first(void *ctx) {
    between *b = ctx;
    lab_disk_before_write(disk, NULL, NULL);
    assert_int_equal(hd_store_prune(b->other, NULL), HD_OK);
}

static void a_slice_that_another_process_has_folded_is_dropped(void **state) {
    (void)state;
    hd_runtime *rt = open_on(disk, 0);
    between b = { .other = open_on(disk, 0) };
    for (int i = 0; i < 3; i++) write_some(rt, 0, i);
    lab_disk_before_write(disk, fold_first, &b);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_int_equal(counts_of(rt).slices, 0);
    assert_int_equal(counts_of(b.other).slices, 1);
    assert_int_equal(hd_close(b.other), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    check_file();
}

static void write_large(hd_runtime *rt, int n) {
    static char filler[20000];
    memset(filler, 'x', sizeof filler);
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    if (!n)
        hd_tx_set(tx, hd_cell_at(rt, "main/large#/text"),
                  hd_string_n(hd_tx_pool(tx), filler, sizeof filler));
    hd_tx_set_int(tx, hd_cell_at(rt, "main/large#/n"), n);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

/* Makes one text of the large document and its patch, and nothing else. */
static void *unpatch(void *ctx) {
    between *b = ctx;
    assert_int_equal(hd_store_checkpoint(b->other, NULL), HD_OK);
    return NULL;
}

/* The first lock is the other's, which is held up; the second one our commit's, the third one our slice's. */
static void let_unpatch_first(void *ctx) {
    between *b = ctx;
    int lock = ++b->locks;
    if (lock == 1) {
        sem_post(&b->reached);
        sem_wait(&b->go_on);
    } else if (lock == 3) {
        lab_disk_before_write(disk, NULL, NULL);
        sem_post(&b->go_on);
        pthread_join(b->thread, NULL);
    }
}

static hd_status fold_beside_unpatch(hd_runtime *rt, between *b) {
    sem_init(&b->reached, 0, 0);
    sem_init(&b->go_on, 0, 0);
    write_large(rt, 0);
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    write_large(rt, 1);
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK); /* which leaves a patch */
    lab_disk_before_write(disk, let_unpatch_first, b);
    assert_int_equal(pthread_create(&b->thread, NULL, unpatch, b), 0);
    sem_wait(&b->reached);
    write_large(rt, 2);
    return hd_store_prune(rt, NULL);
}

static void a_patch_is_not_added_behind_a_value_that_has_changed(void **state) {
    (void)state;
    hd_runtime *rt = open_on(disk, 0);
    between b = { .other = open_on(disk, 0) };
    assert_int_equal(fold_beside_unpatch(rt, &b), HD_OK);
    assert_int_equal(b.locks, 3);
    assert_int_equal(hd_close(b.other), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    check_file();
    rt = open_on(disk, 0);
    assert_int_equal(read_number(rt, hd_cell_at(rt, "main/large#/n")), 2);
    assert_int_equal(hd_close(rt), HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_long_tail_is_folded_in_slices),
        TEST(many_changes_of_few_documents_are_one_slice),
        TEST(a_checkpoint_may_end_between_slices),
        TEST(commits_have_their_turn_between_slices),
        TEST(a_slice_that_another_process_has_folded_is_dropped),
        TEST(a_patch_is_not_added_behind_a_value_that_has_changed),
    };
    return cmocka_run_group_tests_name("sqlite_fold", tests, NULL, NULL);
}
