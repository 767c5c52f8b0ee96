/* test_sqlite_damage.c -- a file in which somebody has written: every column of every table may hold
 * anything. Whatever is asked of such a store gets an answer or an error, and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/memo.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/json_read.h"
#include "vfs.h"
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "store.db"

static hd_runtime *rt;

static hd_status open_store(lab_disk *disk, bool read_only) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .read_only = read_only };
    return hd_open(FILE_NAME, &options, &rt, NULL);
}

static void run_sql(lab_disk *disk, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
    (void)sqlite3_exec(db, sql, NULL, NULL, NULL); /* what a constraint forbids stays */
    sqlite3_close(db);
}

/* ---- a file with something in every table */

static void keep(const char *extra) {
    commit *c = replica_commit_new(&rt->r, HD_COMMIT_DERIVED);
    c->extra = json_read(rt->heap, extra, strlen(extra), NULL);
    replica_enqueue(&rt->r, c);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void write_cell(const char *cell, const char *json) {
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, cell), json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void write_large(const char *cell) {
    static char json[40000];
    memset(json, 'x', sizeof json - 1);
    memcpy(json, "{\"n\":1,\"t\":\"", 12);
    memcpy(json + sizeof json - 3, "\"}", 3);
    write_cell(cell, json);
}

static void set_kind(const char *cell) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_kind(tx, hd_cell_at(rt, cell), "order"), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void write_first_half(void) {
    write_cell("main/a", "{\"x\":1,\"y\":[1,2]}");
    write_cell("main@user/mine", "1");
    write_cell("other/b", "\"text\"");
    write_large("main/large");
    set_kind("main/a");
    keep("{\"nodes\":[[\"main:p:x\",\"\",\"AAAAAAAAAAABBBBBBBBBBB\",\"f\",\"\","
         "\"main/a#/x\\nmain/gone\"],"
         "[\"main:p:y\",\"user:ann\",\"AAAAAAAAAAABBBBBBBBBBB\",\"f\",\"d\","
         "\"main@user/mine\\n?other/b\"],"
         "[\"main:q:z\",\"\",\"AAAAAAAAAAA\",\"f\",\"\",\"main/large\"]]}");
}

/* The second half stands in the log behind the checkpoint. */
static void write_second_half(void) {
    write_cell("main/large#/n", "2");
    hd_close(rt); /* which makes that a patch */
}

static lab_disk *make_file(void) {
    lab_disk *disk = lab_disk_new(NULL);
    assert_int_equal(open_store(disk, false), HD_OK);
    write_first_half();
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    write_second_half();
    assert_int_equal(open_store(disk, false), HD_OK);
    write_cell("main/a#/x", "2");
    write_cell("main/gone", "3");
    keep("{\"nodes\":[[\"main:p:x\",\"\",\"CCCCCCCCCCCDDDDDDDDDDD\",\"f\",\"\","
         "\"main/a#/x\\nmain/gone\"],"
         "[\"main:n:n\",\"\",\"AAAAAAAAAAA\",\"g\",\"\",\"main/a\"]]}");
    lab_disk *left = lab_disk_clone(disk); /* as a killed program leaves it: with its tail */
    hd_close(rt);
    lab_disk_free(disk);
    run_sql(left,
            "insert or ignore into reader values('0123', 1, 1, 1);"
            "insert or ignore into session values('00112233445566778899aabbccddeeff', 1, 0, 2,"
            " '[[1,5,\"HD_OK\",1]]');");
    return left;
}

/* ---- everything that can be asked */

static bool take_row(void *ctx, const memo *row) { return row->text[MEMO_NAME] != ctx; }
static bool take_change(void *ctx, place_id doc, uint64_t seq) { return doc || seq || ctx; }
static bool take_stale(const hd_stale_piece *piece, void *ctx) { return piece != ctx; }
static bool take_listed(const hd_listing *entry, void *ctx) { return entry != ctx; }
static bool take_space(const char *space, void *ctx) { return space != ctx; }
static void take_finding(const char *line, void *ctx) { assert_ptr_not_equal(line, ctx); }

static void ask_rows(const char *piece) {
    authority *a = rt->r.authority;
    (void)a->ops->memos(a, piece, take_row, NULL);
}

static void read_all(void) {
    static const char *const cells[] = { "main/a",     "main@user/mine", "other/b",
                                         "main/large", "main/gone",      "main/none" };
    hd_pool *pool;
    assert_int_equal(hd_pool_open(rt->heap, &pool), HD_OK);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        (void)hd_read(rt, pool, hd_cell_at(rt, cells[i]));
    hd_pool_close(pool);
}

static void ask_all(void) {
    authority *a = rt->r.authority;
    read_all();
    (void)hd_store_stale_pieces(rt, take_stale, NULL);
    (void)hd_runtime_list(rt, "main", NULL, NULL, take_listed, NULL);
    (void)hd_runtime_list(rt, "main", "order", "a", take_listed, NULL);
    (void)hd_runtime_spaces(rt, take_space, NULL);
    ask_rows("main:p");
    ask_rows("main:q");
    ask_rows("main:n");
    struct key *space = key_intern(rt->heap, "main", 4);
    (void)a->ops->changes(a, space, 0, take_change, NULL);
    (void)a->ops->changes(a, space, 2, take_change, NULL);
    key_unref(space);
}

static void change_all(void) {
    (void)hd_write_json(rt, hd_cell_at(rt, "main/a#/x"), "7");
    (void)hd_write_json(rt, hd_cell_at(rt, "main/large#/n"), "7");
    (void)hd_runtime_sync(rt);
    (void)hd_store_checkpoint(rt, NULL);
    (void)hd_store_prune(rt, NULL);
    (void)hd_runtime_sync(rt);
}

static void live_with(lab_disk *disk) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    (void)hd_store_check(FILE_NAME, &options, take_finding, NULL, NULL);
    for (int writing = 0; writing < 2; writing++) {
        if (open_store(disk, !writing)) continue;
        ask_all();
        if (writing) change_all();
        if (writing) ask_all();
        (void)hd_close(rt);
    }
}

/* ---- damage */

static const char *const values[] = { "null",
                                      "''",
                                      "0",
                                      "-1",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "'main:x'",
                                      "'{\"main\":-4}'",
                                      "'[[\"a\"],{\"r\":7},null]'",
                                      "x'00ff80'",
                                      "zeroblob(70000)" };

/* Constraints are out of the way while a file is damaged, and back before it is opened: a schema that is
 * not ours is refused. */
static const char relax_schema[] =
    "create table original as select name as was, sql as text from sqlite_schema;"
    "update sqlite_schema set sql = replace(sql, ' not null', '')"
    " where type = 'table' and name <> 'original'";
static const char restore_schema[] =
    "update sqlite_schema set sql = (select text from original where was = name)"
    " where exists(select 1 from original where was = name);"
    "drop table original";

static void damage(lab_disk *whole, const char *from, const char *column) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char sql[512];
        lab_disk *disk = lab_disk_clone(whole);
        snprintf(sql, sizeof sql, "update or replace %s set %s = %s%s", from, column, values[i],
                 i % 2 ? " where random() % 2" : "");
        run_sql(disk, sql);
        run_sql(disk, restore_schema);
        live_with(disk);
        lab_disk_free(disk);
    }
}

static void damage_table(const char *from) {
    lab_disk *whole = make_file();
    lab_sqlite_seed((uint32_t)lab_seed());
    sqlite3 *db;
    sqlite3_stmt *s;
    char query[128];
    snprintf(query, sizeof query, "select name from pragma_table_info('%s')", from);
    run_sql(whole, relax_schema);
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READONLY, lab_disk_vfs(whole)), 0);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &s, NULL), 0);
    int columns = 0;
    for (; sqlite3_step(s) == SQLITE_ROW; columns++)
        damage(whole, from, (const char *)sqlite3_column_text(s, 0));
    assert_true(columns > 1);
    sqlite3_finalize(s);
    sqlite3_close(db);
    lab_disk_free(whole);
}

static void any_value_in_the_log_is_survived(void **state) { damage_table("log"); }
static void any_value_in_head_rows_is_survived(void **state) { damage_table("head"); }
static void any_value_of_large_documents_is_survived(void **state) {
    damage_table("large");
    damage_table("patch");
}
static void any_value_in_rows_about_nodes_is_survived(void **state) { damage_table("node"); }
static void any_value_in_the_rest_is_survived(void **state) {
    damage_table("meta");
    damage_table("space");
    damage_table("session");
    damage_table("reader");
}

/* What a number says that nobody writes there. */
static void a_format_below_the_first_is_refused(void **state) {
    lab_disk *disk = make_file();
    run_sql(disk, "pragma user_version = -5");
    assert_int_equal(open_store(disk, false), HD_CORRUPT);
    assert_int_equal(open_store(disk, true), HD_CORRUPT);
    lab_disk_free(disk);
}

#define ADD_TO_SCHEMA "pragma writable_schema = on; insert into sqlite_schema values("

/* Whatever a stranger has made of the tables: it is refused, and nothing of it runs. */
static void a_schema_that_is_not_ours_is_refused(void **state) {
    static const char *const changes[] = {
        "create table more(x)",
        "create trigger t after insert on log begin delete from head; end",
        "create view v as select * from log",
        "drop index head_list",
        "alter table log rename to old; create view log as select row, hash, body from old",
        "alter table reader add column x default 1",
        (ADD_TO_SCHEMA
         "'trigger', 'sqlite_stat_log', 'log', 0,"
         " 'create trigger sqlite_stat_log after insert on log begin select 1; end')"),
        (ADD_TO_SCHEMA "'view', 'sqlite_stat1', 'sqlite_stat1', 0,"
                       " 'create view sqlite_stat1 as select 1')"),
    };
    lab_disk *whole = make_file();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        lab_disk *disk = lab_disk_clone(whole);
        hd_options options = { .vfs = lab_disk_vfs(disk) };
        run_sql(disk, changes[i]);
        assert_int_equal(open_store(disk, false), HD_CORRUPT);
        assert_int_equal(open_store(disk, true), HD_CORRUPT);
        assert_int_equal(hd_store_check(FILE_NAME, &options, take_finding, NULL, NULL), HD_CORRUPT);
        lab_disk_free(disk);
    }
    lab_disk_free(whole);
}

/* SQLite would open it read-only without a word (issue: check opens as a writer would). */
static void a_header_that_bars_writing_is_damage(void **state) {
    lab_disk *disk = make_file();
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    lab_disk_corrupt(disk, FILE_NAME, 18, 1, 77);
    assert_int_equal(hd_store_check(FILE_NAME, &options, take_finding, NULL, NULL), HD_CORRUPT);
    assert_int_equal(open_store(disk, false), HD_CORRUPT);
    assert_int_equal(open_store(disk, true), HD_OK);
    hd_close(rt);
    lab_disk_free(disk);
}

/* A check finds whatever keeps a writer from opening the file. */
static void what_cannot_be_opened_for_writing_is_found_by_a_check(void **state) {
    static const char *const changes[] = {
        "delete from meta where key = 'kept'", "delete from meta where key = 'checkpoint'",
        "update session set verdicts = '[['",  "update session set id = 'x'",
        "update space set checkpoint = -1",    "update head set patched = 7 where id = 'a'",
    };
    lab_disk *whole = make_file();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        lab_disk *disk = lab_disk_clone(whole);
        hd_options options = { .vfs = lab_disk_vfs(disk) };
        run_sql(disk, changes[i]);
        assert_int_equal(hd_store_check(FILE_NAME, &options, take_finding, NULL, NULL), HD_CORRUPT);
        lab_disk_free(disk);
    }
    lab_disk_free(whole);
}

/* C294. What the other texts of a row say is checked when the row is used. */
static void a_check_tells_of_malformed_rows_about_nodes(void **state) {
    static const char *const changes[] = {
        "update node set reads = 'nothing'",
        "update node set name = 'main:x' where name = 'main:p:x'",
        "update node set seqs = '{}'",
        "update node set seqs = '[]'",
        "update node set seqs = '{\"main\":1000,\"other\":0}'",
    };
    lab_disk *whole = make_file();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        lab_disk *disk = lab_disk_clone(whole);
        hd_options options = { .vfs = lab_disk_vfs(disk) };
        run_sql(disk, changes[i]);
        assert_int_equal(hd_store_check(FILE_NAME, &options, take_finding, NULL, NULL), HD_CORRUPT);
        lab_disk_free(disk);
    }
    lab_disk_free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema_that_is_not_ours_is_refused),
        cmocka_unit_test(a_header_that_bars_writing_is_damage),
        cmocka_unit_test(what_cannot_be_opened_for_writing_is_found_by_a_check),
        cmocka_unit_test(a_format_below_the_first_is_refused),
        cmocka_unit_test(any_value_in_the_log_is_survived),
        cmocka_unit_test(any_value_in_head_rows_is_survived),
        cmocka_unit_test(any_value_of_large_documents_is_survived),
        cmocka_unit_test(any_value_in_rows_about_nodes_is_survived),
        cmocka_unit_test(a_check_tells_of_malformed_rows_about_nodes),
        cmocka_unit_test(any_value_in_the_rest_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
