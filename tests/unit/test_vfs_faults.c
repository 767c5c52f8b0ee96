/* test_vfs_faults.c -- the lab disk's faults, and its counters.
 *
 * For every kind of call and every n: fail the nth, once and for good; SQLite must say so, keep
 * what it acknowledged, and work again when the cause is gone. */
#define _GNU_SOURCE /* mkdtemp */
#include "lab.h"
#include "sqlite_world.h"
#include "vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DB "test.db"

static int db_open(const char *vfs, const char *path, sqlite3 **out) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    return sqlite3_open_v2(path, out, flags, vfs);
}

/* A database with the rows 1 to `rows`, closed cleanly. */
static lab_disk *disk_with_rows(int rows) {
    lab_disk *disk = lab_disk_new(NULL);
    sqlite3 *db;
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_run(db, "pragma journal_mode=wal; create table t(k integer primary key,"
                                " body)"),
                     SQLITE_OK);
    for (int k = 1; k <= rows; k++)
        assert_int_equal(db_run(db, "insert into t values(null, zeroblob(2000))"), SQLITE_OK);
    sqlite3_close(db);
    return disk;
}

typedef struct {
    int acked;    /* commits SQLite reported as done */
    int failures; /* statements it reported as failed */
} outcome;

/* Opens, commits a few rows with checkpoints between, closes; goes on after errors as a stubborn
 * program would. */
static outcome stubborn_run(lab_disk *disk) {
    outcome o = { 0 };
    sqlite3 *db = NULL;
    if (db_open(lab_disk_vfs(disk), DB, &db) != SQLITE_OK) {
        sqlite3_close(db);
        return (outcome){ .failures = 1 };
    }
    o.failures += db_run(db, "pragma wal_autocheckpoint=4") != SQLITE_OK;
    for (int i = 0; i < 6; i++) {
        if (db_run(db, "insert into t values(null, randomblob(3000))") == SQLITE_OK) o.acked++;
        else o.failures++;
    }
    o.failures += db_number(db, "select count(*) from t") < 0;
    sqlite3_close(db);
    return o;
}

/* Nothing acknowledged is gone; what was reported as failed may be there all the same, when only
 * the report of it failed. */
static void check_healed(lab_disk *disk, outcome o, int rows_before) {
    sqlite3 *db;
    lab_disk_heal(disk);
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_true(db_intact(db));
    int64_t rows = db_number(db, "select count(*) from t");
    assert_true(rows >= rows_before + o.acked);
    assert_true(rows <= rows_before + o.acked + o.failures);
    assert_int_equal(db_run(db, "insert into t values(null, 1)"), SQLITE_OK);
    sqlite3_close(db);
}

static uint64_t calls_of_a_run(lab_op op) {
    lab_disk *disk = disk_with_rows(3);
    uint64_t before = lab_disk_calls(disk, op);
    outcome o = stubborn_run(disk);
    assert_int_equal(o.failures, 0);
    uint64_t calls = lab_disk_calls(disk, op) - before;
    lab_disk_free(disk);
    return calls;
}

/* Returns the number of runs in which the program noticed. */
static int fail_each(lab_op op, int code, bool sticky) {
    int noticed = 0;
    uint64_t calls = calls_of_a_run(op);
    assert_true(calls > 0);
    for (uint64_t nth = 1; nth <= calls; nth++) {
        lab_disk *disk = disk_with_rows(3);
        lab_disk_fail(disk, (lab_fault){ .op = op, .nth = nth, .sticky = sticky, .code = code });
        outcome o = stubborn_run(disk);
        assert_true(lab_disk_faults_struck(disk) > 0);
        noticed += o.failures > 0;
        check_healed(disk, o, 3);
        lab_disk_free(disk);
    }
    return noticed;
}

static void every_nth_call_of_every_kind_may_fail(void **state) {
    for (lab_op op = LAB_OP_ANY; op <= LAB_OP_SHM_LOCK; op++) {
        fail_each(op, 0, false);
        int for_good = fail_each(op, 0, true);
        if (op == LAB_OP_READ || op == LAB_OP_WRITE || op == LAB_OP_SYNC || op == LAB_OP_OPEN)
            assert_true(for_good > 0);
    }
}

static void every_nth_write_may_find_the_disk_full(void **state) {
    assert_true(fail_each(LAB_OP_WRITE, SQLITE_FULL, true) > 0);
}

/* Also for good: then SQLite retries as often as it would have, but nobody sleeps. */
static void every_nth_lock_may_be_busy(void **state) {
    for (int sticky = 0; sticky < 2; sticky++) {
        fail_each(LAB_OP_LOCK, SQLITE_BUSY, sticky);
        fail_each(LAB_OP_SHM_LOCK, SQLITE_BUSY, sticky);
    }
}

/* SQLite takes it for the end of the file: a reader sees a damaged page, the file is unharmed. */
static void a_read_may_come_up_short(void **state) {
    lab_disk *disk = disk_with_rows(20);
    sqlite3 *db;
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_number(db, "select 1 from sqlite_schema"), 1);
    lab_disk_fail(
        disk, (lab_fault){ .op = LAB_OP_READ, .sticky = true, .code = SQLITE_IOERR_SHORT_READ });
    assert_int_equal(db_run(db, "select sum(length(body)) from t"), SQLITE_CORRUPT);
    sqlite3_close(db);
    check_healed(disk, (outcome){ 0 }, 20);
    lab_disk_free(disk);
}

static void a_fault_strikes_once_at_its_call(void **state) {
    lab_disk *disk = disk_with_rows(1);
    sqlite3 *db;
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_run(db, "pragma synchronous=full; insert into t values(null, 1)"),
                     SQLITE_OK);

    lab_disk_fail(disk, (lab_fault){ .op = LAB_OP_SYNC });
    assert_int_equal(db_run(db, "insert into t values(null, 2)"), SQLITE_IOERR);
    assert_int_equal(sqlite3_extended_errcode(db), SQLITE_IOERR_FSYNC);
    assert_int_equal(lab_disk_faults_struck(disk), 1);
    assert_int_equal(db_run(db, "insert into t values(null, 2)"), SQLITE_OK);
    assert_int_equal(db_number(db, "select count(*) from t"), 3);
    sqlite3_close(db);
    lab_disk_free(disk);
}

static void a_held_lock_is_busy(void **state) {
    lab_disk *disk = disk_with_rows(1);
    sqlite3 *db, *other;
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &other), SQLITE_OK);
    assert_int_equal(db_run(db, "begin immediate"), SQLITE_OK);
    assert_int_equal(db_run(other, "begin immediate"), SQLITE_BUSY);
    assert_int_equal(db_number(other, "select count(*) from t"), 1);
    assert_int_equal(db_run(db, "rollback"), SQLITE_OK);
    assert_int_equal(db_run(other, "begin immediate"), SQLITE_OK);
    sqlite3_close(db);
    sqlite3_close(other);
    lab_disk_free(disk);
}

/* ---- conditions ---- */

static void a_full_disk_refuses_growth_until_there_is_room(void **state) {
    for (uint64_t room = 0; room < 60000; room += 1700) {
        lab_disk *disk = disk_with_rows(3);
        lab_disk_fill(disk, room);
        outcome o = stubborn_run(disk);
        if (room < 8000) assert_true(o.failures > 0 && lab_disk_faults_struck(disk) > 0);
        check_healed(disk, o, 3);
        lab_disk_free(disk);
    }
}

static void a_read_only_disk_refuses_writers(void **state) {
    lab_disk *disk = disk_with_rows(3);
    sqlite3 *db = NULL;
    lab_disk_set_read_only(disk, true);
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK); /* for reading, as on unix */
    assert_int_equal(sqlite3_db_readonly(db, "main"), 1);
    assert_int_not_equal(db_run(db, "insert into t values(null, 1)"), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(db_open(lab_disk_vfs(disk), "new.db", &db), SQLITE_CANTOPEN);
    sqlite3_close(db);
    check_healed(disk, (outcome){ 0 }, 3);
    lab_disk_free(disk);
}

/* Without a WAL to share, a read-only database of the old kind can be read. */
static void a_read_only_rollback_database_can_be_read(void **state) {
    lab_disk *disk = disk_with_rows(3);
    sqlite3 *db;
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_run(db, "pragma journal_mode=delete"), SQLITE_OK);
    sqlite3_close(db);

    lab_disk_set_read_only(disk, true);
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_number(db, "select count(*) from t"), 3);
    assert_int_equal(db_run(db, "insert into t values(null, 1)"), SQLITE_READONLY);
    sqlite3_close(db);
    lab_disk_free(disk);
}

static void a_corrupt_page_is_found(void **state) {
    lab_disk *disk = disk_with_rows(20);
    sqlite3 *db;
    lab_disk_corrupt(disk, DB, 4096, 4096, 1); /* the root of the table */
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_false(db_intact(db));
    assert_int_equal(db_run(db, "select sum(length(body)) from t"), SQLITE_CORRUPT);
    sqlite3_close(db);

    lab_disk_corrupt(disk, DB, 0, 16, 2); /* the magic words */
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    assert_int_equal(db_run(db, "select * from t"), SQLITE_NOTADB);
    sqlite3_close(db);
    lab_disk_free(disk);
}

static void a_truncated_wal_leaves_a_prefix(void **state) {
    lab_disk *disk = disk_with_rows(0);
    sqlite3 *db;
    assert_int_equal(db_open(lab_disk_vfs(disk), DB, &db), SQLITE_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(db_run(db, "insert into t values(null, 1)"), SQLITE_OK);
    uint64_t whole = lab_disk_size(disk, DB "-wal");
    int64_t last = 10;
    for (uint64_t size = whole; size > 2000; size -= 2000) {
        lab_disk *copy = lab_disk_clone(disk);
        lab_disk_truncate(copy, DB "-wal", size);
        sqlite3 *cut;
        assert_int_equal(db_open(lab_disk_vfs(copy), DB, &cut), SQLITE_OK);
        assert_true(db_intact(cut));
        int64_t rows = db_number(cut, "select count(*) from t");
        assert_true(rows <= last);
        assert_int_equal(db_number(cut, "select coalesce(max(k), 0) from t"), rows);
        last = rows;
        sqlite3_close(cut);
        lab_disk_free(copy);
    }
    assert_int_equal(last, 0);
    lab_disk_remove(disk, DB "-wal");
    assert_false(lab_disk_exists(disk, DB "-wal"));
    sqlite3_close(db);
    lab_disk_free(disk);
}

static void files_can_be_made_and_exported(void **state) {
    char dir[] = P_tmpdir "/heddle-vfs-XXXXXX", path[64], back[16] = { 0 };
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/out", dir);
    lab_disk *disk = lab_disk_new(NULL);
    lab_disk_write(disk, "f", 2, "hello", 5);
    assert_true(lab_disk_export(disk, "f", path));
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    assert_int_equal(fread(back, 1, sizeof back, in), 7);
    assert_memory_equal(back, "\0\0hello", 7);
    fclose(in);
    unlink(path);
    rmdir(dir);
    lab_disk_free(disk);
}

/* ---- counters ---- */

static void run_counted(const char *vfs, const char *path) {
    sqlite3 *db;
    assert_int_equal(db_open(vfs, path, &db), SQLITE_OK);
    assert_int_equal(db_run(db, "pragma journal_mode=wal; pragma synchronous=full;"
                                "pragma wal_autocheckpoint=10;"
                                "create table t(k integer primary key, body)"),
                     SQLITE_OK);
    for (int i = 0; i < 50; i++)
        assert_int_equal(db_run(db, "insert into t values(null, zeroblob(700))"), SQLITE_OK);
    sqlite3_close(db);
}

static lab_io_counts counts_on_a_real_disk(void) {
    char dir[] = P_tmpdir "/heddle-vfs-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/" DB, dir);
    lab_count_vfs *vfs = lab_vfs_counting_register("test-counting");
    assert_non_null(vfs);
    run_counted("test-counting", path);
    unlink(path);
    lab_vfs_counting_reset(vfs);
    lab_io_counts counts = lab_vfs_counting_read(vfs);
    assert_int_equal(lab_io_syncs(&counts), 0);
    run_counted("test-counting", path);
    counts = lab_vfs_counting_read(vfs);
    lab_vfs_counting_unregister(vfs);
    unlink(path);
    rmdir(dir);
    return counts;
}

/* The same statements cost the same on the lab disk and on a real one: what is measured on either
 * holds for both. */
static void a_real_disk_and_the_lab_disk_count_alike(void **state) {
    lab_disk *disk = lab_disk_new(NULL);
    run_counted(lab_disk_vfs(disk), DB);
    lab_io_counts lab = lab_disk_counts(disk), real = counts_on_a_real_disk();
    for (int kind = 0; kind < LAB_FILE_KINDS; kind++) {
        assert_int_equal(lab.file[kind].writes, real.file[kind].writes);
        assert_int_equal(lab.file[kind].bytes_written, real.file[kind].bytes_written);
        assert_int_equal(lab.file[kind].syncs, real.file[kind].syncs);
    }
    assert_true(lab.file[LAB_FILE_WAL].syncs >= 50);
    assert_true(lab_io_durable_bytes(&lab) > 50 * 4096);

    lab_disk_counts_reset(disk);
    lab = lab_disk_counts(disk);
    assert_int_equal(lab_io_durable_bytes(&lab), 0);
    lab_disk_free(disk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_nth_call_of_every_kind_may_fail),
        cmocka_unit_test(every_nth_write_may_find_the_disk_full),
        cmocka_unit_test(every_nth_lock_may_be_busy),
        cmocka_unit_test(a_read_may_come_up_short),
        cmocka_unit_test(a_fault_strikes_once_at_its_call),
        cmocka_unit_test(a_held_lock_is_busy),
        cmocka_unit_test(a_full_disk_refuses_growth_until_there_is_room),
        cmocka_unit_test(a_read_only_disk_refuses_writers),
        cmocka_unit_test(a_read_only_rollback_database_can_be_read),
        cmocka_unit_test(a_corrupt_page_is_found),
        cmocka_unit_test(a_truncated_wal_leaves_a_prefix),
        cmocka_unit_test(files_can_be_made_and_exported),
        cmocka_unit_test(a_real_disk_and_the_lab_disk_count_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
