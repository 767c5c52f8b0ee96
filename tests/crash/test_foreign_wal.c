/* test_foreign_wal.c -- a WAL that a killed program has left lies beside another file: it is not taken for that
 * file's. */
#define _DEFAULT_SOURCE
#include "folder.h"

#include <heddle/store.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static int enter(void **state) { return folder_make(state) || chdir(folder); }
static int leave(void **state) { return chdir("/") || folder_remove(state); }

static void shell(const char *command) { assert_int_equal(system(command), 0); }

static void set(hd_runtime *rt, const char *json) {
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

/* A store with a few documents, closed. */
static void make(const char *file, const char *json) {
    hd_runtime *rt;
    assert_int_equal(hd_open(file, NULL, &rt, NULL), HD_OK);
    set(rt, json);
    assert_int_equal(hd_close(rt), HD_OK);
}

/* Writes `times`, then the program is killed: its WAL stays. */
static void write_and_die(const char *file, int times) {
    pid_t program = fork();
    assert_true(program >= 0);
    if (!program) {
        hd_runtime *rt;
        char text[16];
        if (hd_open(file, NULL, &rt, NULL)) _exit(1);
        for (int i = 0; i < times; i++) {
            snprintf(text, sizeof text, "%d", 100 + i);
            set(rt, text);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(program, &status, 0), program);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void expect(const char *file, const char *json) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_error error = { 0 };
    if (hd_open(file, NULL, &rt, &error)) fail_msg("%s", error.message);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_string_equal(
        hd_json_print(pool, hd_read(rt, pool, hd_cell_at(rt, "main/n")), HD_JSON_COMPACT, NULL),
        json);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void expect_refused(const char *file) {
    hd_runtime *rt;
    hd_error error = { 0 };
    hd_options reader = { .read_only = true };
    assert_int_equal(hd_open(file, NULL, &rt, &error), HD_CORRUPT);
    assert_non_null(strstr(error.message, "-wal belongs to another file"));
    assert_int_equal(hd_open(file, &reader, &rt, &error), HD_CORRUPT);
}

static void its_own_wal_is_taken(void **state) {
    make("a.db", "1");
    write_and_die("a.db", 3);
    expect("a.db", "102");
    write_and_die("a.db", 1);
    write_and_die("a.db", 1);
    expect("a.db", "100");
    shell("rm -f a.db*");
}

/* However few or many commits the WAL has, and however often it has begun anew. */
static void the_wal_of_another_store_is_refused(void **state) {
    static const int times[] = { 1, 2, 5, 3000 };
    make("b.db", "7");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        make("a.db", "1");
        write_and_die("a.db", times[i]);
        shell("cp b.db a.db && rm -f a.db-shm");
        expect_refused("a.db");
        shell("mv a.db-wal elsewhere");
        expect("a.db", "7");
        shell("rm -f a.db* elsewhere");
    }
    shell("rm -f b.db*");
}

/* What was refused is as it was: the file that belongs to the WAL can be put back. */
static void the_right_file_can_be_put_back(void **state) {
    make("a.db", "1");
    make("b.db", "7");
    write_and_die("a.db", 4);
    shell("mv a.db kept.db && cp b.db a.db");
    expect_refused("a.db");
    shell("mv kept.db a.db && rm -f a.db-shm");
    expect("a.db", "103");
    shell("rm -f a.db* b.db*");
}

/* ---- power cuts in the middle of a checkpoint ------------------------------------------------ */

enum { PAGE = 2048 };

static long page_of_meta(const char *file) {
    sqlite3 *db;
    sqlite3_stmt *s;
    const char *sql = "select rootpage from sqlite_schema where name = 'meta'";
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    long page = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return page;
}

static void change_byte(FILE *f, long at) {
    int c = (fseek(f, at, SEEK_SET), fgetc(f));
    assert_true(c != EOF);
    fseek(f, at, SEEK_SET);
    assert_int_equal(fputc(c ^ 0x5A, f), c ^ 0x5A);
    assert_int_equal(fflush(f), 0);
}

/* The WAL has the page with the id whole; in the file power was lost while it was copied there. */
static void its_own_wal_is_taken_beside_a_torn_page(void **state) {
    hd_options reader = { .read_only = true };
    hd_error error;
    hd_runtime *rt;
    make("a.db", "1");
    long at = (page_of_meta("a.db") - 1) * PAGE;
    write_and_die("a.db", 1);
    FILE *f = fopen("a.db", "r+b");
    for (long i = at; i < at + PAGE; i++) {
        if (i == at + 64) i = at + PAGE - 512; /* between the two the page has nothing */
        change_byte(f, i);
        if (hd_open("a.db", &reader, &rt, &error)) fail_msg("byte %ld: %s", i - at, error.message);
        assert_int_equal(hd_close(rt), HD_OK);
        change_byte(f, i);
    }
    fclose(f);
    shell("rm -f a.db*");
}

static void execute(const char *file, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A file that an earlier version made has no id, so a WAL beside it cannot be compared. Its own is taken, though only
 * the WAL has the id that the first commit drew; from the first checkpoint on the file has it, and other WALs are
 * refused. */
static void a_file_without_an_id_gets_one(void **state) {
    make("a.db", "1");
    execute("a.db", "delete from meta where key = 'file'");
    write_and_die("a.db", 2);
    expect("a.db", "101"); /* opens for writing, and checkpoints when it closes */
    make("b.db", "7");
    write_and_die("b.db", 2);
    shell("cp a.db b.db && rm -f b.db-shm");
    expect_refused("b.db");
    shell("rm -f a.db* b.db*");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_wal_is_taken),
        cmocka_unit_test(the_wal_of_another_store_is_refused),
        cmocka_unit_test(the_right_file_can_be_put_back),
        cmocka_unit_test(its_own_wal_is_taken_beside_a_torn_page),
        cmocka_unit_test(a_file_without_an_id_gets_one),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
