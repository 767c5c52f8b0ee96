/* test_faults.c -- a disk that fails: a clear error, an unharmed file, success once it is healed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "lab.h"
#include "disk_world.h"
#include <heddle/store.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "faults.db"

static void no_log(hd_log_level level, const char *line, void *ctx) {
    (void)ctx, (void)level, (void)line;
}

static hd_status try_open(hd_runtime **rt, hd_error *error) {
    hd_env env = hd_env_system();
    env.log = no_log;
    hd_options options = { .vfs = lab_disk_vfs(disk), .env = &env };
    return hd_open(FILE_NAME, &options, rt, error);
}

static hd_runtime *open_store(void) {
    hd_runtime *rt;
    hd_error error;
    hd_status status = try_open(&rt, &error);
    if (status) fail_msg("open: %s", error.message);
    return rt;
}

static void count_ok(hd_status status, void *ctx) {
    if (!status) ++*(int *)ctx;
}

static void append_number(hd_runtime *rt, int n, int *accepted) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_tx_append(tx, hd_cell_at(rt, "main/list"), hd_int(NULL, n));
    assert_int_equal(hd_tx_commit(tx, count_ok, accepted), HD_OK);
}

static size_t list_length(hd_runtime *rt) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value all = hd_read(rt, pool, hd_cell_at(rt, "main/list"));
    size_t n = hd_value_count(all);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(hd_value_as_int(hd_value_index(all, i), -1), i + 1);
    hd_pool_close(pool);
    return n;
}

static void print_finding(const char *finding, void *ctx) {
    (void)ctx;
    fprintf(stderr, "finding: %s\n", finding);
}

static void assert_sound(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_error error;
    hd_status status = hd_store_check(FILE_NAME, &options, print_finding, NULL, &error);
    if (status) fail_msg("check: %s", error.message);
}

/* ---- Full --------------------------------------------------------------------------------------- */

static void a_full_disk_is_said_and_nothing_is_lost(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    int accepted = 0;
    append_number(rt, 1, &accepted);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    lab_disk_fill(disk, 100);
    append_number(rt, 2, &accepted);
    append_number(rt, 3, &accepted);
    assert_int_equal(hd_runtime_sync(rt), HD_FULL);
    assert_int_equal(hd_runtime_error(rt)->status, HD_FULL); /* and says of which file */
    assert_non_null(strstr(hd_runtime_error(rt)->message, "full"));
    assert_int_equal(hd_status_class(HD_FULL), HD_CLASS_TRANSIENT);
    assert_int_equal(accepted, 1);
    assert_int_equal(list_length(rt), 3); /* visible here, as before */
    lab_disk_heal(disk);
    hd_status status;
    while ((status = hd_runtime_sync(rt)) == HD_FULL) {}
    assert_int_equal(status, HD_OK);
    assert_int_equal(accepted, 3);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = open_store();
    assert_int_equal(list_length(rt), 3);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_sound();
}

/* A commit waits for room. What the program asks the store for meanwhile is tried, and does not wait behind it. */
static void a_call_does_not_wait_behind_commits_that_find_no_room(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    int accepted = 0;
    append_number(rt, 1, &accepted);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    lab_disk_fill(disk, 0);
    append_number(rt, 2, &accepted);
    assert_int_equal(hd_runtime_sync(rt), HD_FULL);
    (void)alarm(60);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hd_store_checkpoint(rt, NULL), HD_FULL);
        assert_int_equal(hd_runtime_follow(rt, "main"), HD_OK);
    }
    (void)alarm(0);
    lab_disk_heal(disk);
    while (hd_runtime_sync(rt) == HD_FULL) {}
    assert_int_equal(accepted, 2);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_sound();
}

/* ---- Each call fails ------------------------------------------------------------------------------ */

enum { NUMBERS = 6 };

/* Opens, writes, checkpoints and closes, whatever fails on the way. Returns how many commits were
 * accepted; the runtime may have known of more. */
static int work_through(void) {
    hd_runtime *rt;
    hd_error error;
    int accepted = 0;
    hd_status status = try_open(&rt, &error);
    if (status) {
        assert_true(error.message[0] != '\0');
        assert_int_equal(error.status, status);
        return 0;
    }
    size_t have = list_length(rt);
    assert_true(have < NUMBERS);
    for (int i = (int)have + 1; i <= NUMBERS; i++) {
        append_number(rt, i, &accepted);
        if (i % 2 == 0) (void)hd_runtime_sync(rt);
        if (i == NUMBERS / 2) (void)hd_store_checkpoint(rt, NULL);
    }
    (void)hd_close(rt);
    return accepted;
}

static void fail_each_call(lab_op op, int code, uint64_t step) {
    for (uint64_t nth = 1;; nth += step) {
        lab_disk_free(disk);
        disk = lab_disk_new(NULL);
        lab_disk_fail(disk, (lab_fault){ .op = op, .nth = nth, .code = code });
        int accepted = work_through();
        bool struck = lab_disk_faults_struck(disk) > 0;
        lab_disk_heal(disk);
        hd_runtime *rt = open_store();
        size_t n = list_length(rt);
        if (n < (size_t)accepted)
            fail_msg("call %llu: %d accepted, %zu are there", (unsigned long long)nth, accepted, n);
        if (!struck) assert_int_equal(n, NUMBERS);
        assert_int_equal(hd_close(rt), HD_OK);
        assert_sound();
        if (!struck) return;
    }
}

static void each_write_may_fail(void **state) {
    (void)state;
    fail_each_call(LAB_OP_WRITE, 0, 1);
}
static void each_sync_may_fail(void **state) {
    (void)state;
    fail_each_call(LAB_OP_SYNC, 0, 1);
}
static void each_read_may_fail(void **state) {
    (void)state;
    fail_each_call(LAB_OP_READ, 0, 1);
}
static void any_call_may_fail(void **state) {
    (void)state;
    fail_each_call(LAB_OP_ANY, 0, 3);
}
static void the_disk_may_be_full_at_each_write(void **state) {
    (void)state;
    fail_each_call(LAB_OP_WRITE, SQLITE_FULL, 1);
}

/* The disk is broken for a while: everything waits, and goes through when it is back. */
static void a_broken_disk_is_waited_for(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    int accepted = 0;
    lab_disk_fail(disk, (lab_fault){ .op = LAB_OP_SYNC, .nth = 1, .sticky = true });
    append_number(rt, 1, &accepted);
    assert_int_equal(hd_runtime_sync(rt), HD_IO);
    assert_int_equal(accepted, 0);
    lab_disk_heal(disk);
    hd_status status;
    while ((status = hd_runtime_sync(rt)) == HD_IO) {}
    assert_int_equal(status, HD_OK);
    assert_int_equal(accepted, 1);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = open_store();
    assert_int_equal(list_length(rt), 1); /* once, though it was tried often */
    assert_int_equal(hd_close(rt), HD_OK);
    assert_sound();
}

/* ---- Damage --------------------------------------------------------------------------------------- */

static void write_and_close(int count) {
    hd_runtime *rt = open_store();
    int accepted = 0;
    for (int i = 1; i <= count; i++) {
        append_number(rt, i, &accepted);
        if (i % 3 == 0) assert_int_equal(hd_runtime_sync(rt), HD_OK);
    }
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(accepted, count);
}

static void a_read_only_disk_is_refused_with_advice(void **state) {
    (void)state;
    write_and_close(3);
    lab_disk_set_read_only(disk, true);
    hd_runtime *rt;
    hd_error error;
    hd_status status = try_open(&rt, &error);
    assert_int_equal(status, HD_READ_ONLY);
    assert_non_null(strstr(error.message, "permission"));
    lab_disk_heal(disk);
    rt = open_store();
    assert_int_equal(list_length(rt), 3);
    assert_int_equal(hd_close(rt), HD_OK);
}

/* A damaged page is noticed, by the check at the latest; opening never makes it worse. */
static void a_corrupt_page_is_noticed(void **state) {
    (void)state;
    write_and_close(30);
    hd_runtime *whole = open_store();
    assert_int_equal(hd_store_vacuum(whole, NULL), HD_OK); /* damage to a free page harms nobody */
    assert_int_equal(hd_close(whole), HD_OK);
    uint64_t pages = lab_disk_size(disk, FILE_NAME) / 2048;
    for (uint64_t page = 0; page < pages; page++) {
        lab_disk *copy = lab_disk_clone(disk), *kept = disk;
        disk = copy;
        lab_disk_corrupt(disk, FILE_NAME, page * 2048, 2048, page + 1);
        hd_options options = { .vfs = lab_disk_vfs(disk) };
        hd_status status = hd_store_check(FILE_NAME, &options, NULL, NULL, NULL);
        if (status != HD_CORRUPT && status != HD_NOT_HEDDLE)
            fail_msg("page %llu: %s", (unsigned long long)page + 1, hd_status_name(status));
        hd_runtime *rt;
        hd_error error;
        if (!try_open(&rt, &error)) (void)hd_close(rt);
        else assert_true(error.message[0] != '\0');
        lab_disk_free(disk);
        disk = kept;
    }
    assert_sound();
}

/* A cut WAL is a shorter past: a prefix of what was written, and whole. */
static void a_truncated_wal_leaves_a_prefix(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    int accepted = 0;
    for (int i = 1; i <= 12; i++) {
        append_number(rt, i, &accepted);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
    }
    uint64_t size = lab_disk_size(disk, FILE_NAME "-wal");
    lab_disk *live = disk;
    size_t last = 13;
    for (uint64_t cut = size; cut > 40000 || last > 12; cut -= cut > 1000 ? 1000 : cut) {
        disk = lab_disk_clone(live);
        lab_disk_truncate(disk, FILE_NAME "-wal", cut);
        hd_runtime *after = open_store();
        size_t n = list_length(after);
        assert_true(n <= last);
        last = n;
        assert_int_equal(hd_close(after), HD_OK);
        assert_sound();
        lab_disk_free(disk);
        if (!cut) break;
    }
    disk = live;
    assert_int_equal(hd_close(rt), HD_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_disk, free_disk)
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_is_said_and_nothing_is_lost),
        TEST(a_call_does_not_wait_behind_commits_that_find_no_room),
        TEST(each_write_may_fail),
        TEST(each_sync_may_fail),
        TEST(each_read_may_fail),
        TEST(any_call_may_fail),
        TEST(the_disk_may_be_full_at_each_write),
        TEST(a_broken_disk_is_waited_for),
        TEST(a_read_only_disk_is_refused_with_advice),
        TEST(a_corrupt_page_is_noticed),
        TEST(a_truncated_wal_leaves_a_prefix),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
