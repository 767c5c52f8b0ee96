/* test_sqlite.c -- a store in a file: what is written is there again, for us and for others. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "disk_world.h"
#include "lab.h"
#include <heddle/scheduler.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "store.db"

/* ---- A small world ------------------------------------------------------------------------------ */

static char printed[4096];

static hd_runtime *open_with(hd_options options) {
    options.vfs = lab_disk_vfs(disk);
    hd_runtime *rt;
    hd_error error;
    hd_status status = hd_open(FILE_NAME, &options, &rt, &error);
    if (status) fail_msg("open: %s", error.message);
    return rt;
}
static hd_runtime *open_store(void) { return open_with((hd_options){ 0 }); }
static void close_store(hd_runtime *rt) { assert_int_equal(hd_close(rt), HD_OK); }

static void write_cell(hd_runtime *rt, const char *cell, const char *json) {
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, cell), json), HD_OK);
}

static const char *read_cell(hd_runtime *rt, const char *cell) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    const char *text =
        hd_json_print(pool, hd_read(rt, pool, hd_cell_at(rt, cell)), HD_JSON_COMPACT, NULL);
    snprintf(printed, sizeof printed, "%s", text ? text : "-");
    hd_pool_close(pool);
    return printed;
}

static void sync_store(hd_runtime *rt) { assert_int_equal(hd_runtime_sync(rt), HD_OK); }

/* Pumps until the cell reads so: others' commits arrive when they arrive. */
static void await_cell(hd_runtime *rt, const char *cell, const char *json) {
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        if (strcmp(read_cell(rt, cell), json) == 0) return;
        hd_env env = hd_env_system();
        env.wait(hd_runtime_fd(rt), env.monotonic_ns(env.ctx) + 5000000, env.ctx);
    }
    fail_msg("%s is %s, not %s", cell, printed, json);
}

static void keep_status(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

static void print_finding(const char *finding, void *ctx) {
    snprintf(printed, sizeof printed, "%s", finding);
    if (ctx) ++*(int *)ctx;
    else fprintf(stderr, "finding: %s\n", finding);
}

static void assert_sound(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_error error;
    hd_status status = hd_store_check(FILE_NAME, &options, print_finding, NULL, &error);
    if (status) fail_msg("check: %s", error.message);
}

/* Plain SQL, as somebody with the sqlite3 program would. */
static const char *sql(const char *text) {
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), 0);
    printed[0] = '\0';
    while (sqlite3_step(s) == SQLITE_ROW) {
        size_t n = strlen(printed);
        snprintf(printed + n, sizeof printed - n, "%s%s", n ? " " : "",
                 (const char *)sqlite3_column_text(s, 0));
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
    return printed;
}

/* ---- Durable --------------------------------------------------------------------------------------- */

static void what_is_written_is_there_after_reopening(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_cell(rt, "main/cart", "{\"items\":[1,2],\"note\":\"x\"}");
    write_cell(rt, "main/cart#/note", "\"y\"");
    write_cell(rt, "other/n", "7");
    close_store(rt);
    rt = open_store();
    assert_string_equal(read_cell(rt, "main/cart"), "{\"items\":[1,2],\"note\":\"y\"}");
    assert_string_equal(read_cell(rt, "other/n"), "7");
    assert_string_equal(read_cell(rt, "main/nothing"), "-");
    close_store(rt);
    assert_sound();
}

/* 0495: the store's thread stores the next commit while the verdict function of the first one still runs. */
static void await_two_rows(hd_status status, void *ctx) {
    hd_env env = hd_env_system();
    assert_int_equal(status, HD_OK);
    for (int i = 0; i < 2000 && !*(bool *)ctx; i++) {
        *(bool *)ctx = strcmp(sql("select count(*) from log"), "2") == 0;
        if (!*(bool *)ctx) env.wait(-1, env.monotonic_ns(env.ctx) + 1000000, env.ctx);
    }
}

static void the_store_works_while_verdicts_are_told(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    hd_env env = hd_env_system();
    hd_tx *tx;
    bool both = false;
    int fd = hd_runtime_fd(rt);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/a"), 1);
    assert_int_equal(hd_tx_commit(tx, await_two_rows, &both), HD_OK);
    assert_int_equal(hd_runtime_pump(rt), HD_OK);
    for (int i = 0; i < 2000 && strcmp(sql("select count(*) from log"), "1"); i++)
        env.wait(fd, env.monotonic_ns(env.ctx) + 1000000, env.ctx);
    write_cell(rt, "main/b", "2"); /* sent by the pump that tells of the first */
    for (int i = 0; i < 2000 && !both; i++) {
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
        if (!both) env.wait(fd, env.monotonic_ns(env.ctx) + 1000000, env.ctx);
    }
    assert_true(both);
    close_store(rt);
}

/* 0498: a program with a loop of its own that commits again and again is woken once for each commit, by its verdict. If
 * its runtime asked after each verdict to be told of the next write, its own next write would wake it, too. */
static int pumps_until_verdict(hd_runtime *rt, int n) {
    hd_env env = hd_env_system();
    hd_status status = HD_PENDING;
    hd_tx *tx;
    int pumps = 0;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/n"), n);
    assert_int_equal(hd_tx_commit(tx, keep_status, &status), HD_OK);
    for (; status == HD_PENDING; pumps++) {
        if (pumps) env.wait(hd_runtime_fd(rt), hd_runtime_deadline(rt), env.ctx);
        assert_int_equal(hd_runtime_pump(rt), HD_OK);
    }
    assert_int_equal(status, HD_OK);
    return pumps;
}

static void a_program_that_commits_again_and_again_is_woken_by_verdicts_alone(void **state) {
    enum { COMMITS = 100 };
    (void)state;
    char folder[] = "woken-XXXXXX", file[32];
    hd_runtime *rt;
    hd_error error;
    int pumps = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/s.db", folder);
    if (hd_open(file, NULL, &rt, &error)) fail_msg("open: %s", error.message);
    for (int i = 0; i < 10; i++) (void)pumps_until_verdict(rt, i);
    for (int i = 0; i < COMMITS; i++) pumps += pumps_until_verdict(rt, 10 + i);
    assert_in_range(pumps, 2 * COMMITS, 2 * COMMITS + COMMITS / 2);
    close_store(rt);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Two runtimes, as of two processes: when the second settles it sees what the first has stored, also right after a
 * verdict of its own, and also if the notification came before the commit could be seen. */
static void what_was_stored_before_a_settle_is_seen(void **state) {
    (void)state;
    char folder[] = "seen-XXXXXX", file[32], json[16];
    hd_runtime *a, *b;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/s.db", folder);
    assert_int_equal(hd_open(file, NULL, &a, NULL), HD_OK);
    assert_int_equal(hd_open(file, NULL, &b, NULL), HD_OK);
    write_cell(b, "main/n", "-1");
    sync_store(b);
    for (int i = 0; i < 300; i++) {
        snprintf(json, sizeof json, "%d", i);
        if (i % 3 == 0) {
            write_cell(b, "main/own", json);
            sync_store(b);
        }
        write_cell(a, "main/n", json);
        assert_int_equal(hd_runtime_pump(a), HD_OK);
        if (i % 2) assert_int_equal(hd_runtime_pump(b), HD_OK);
        sync_store(a);
        assert_int_equal(hd_runtime_settle(b), HD_OK);
        assert_string_equal(read_cell(b, "main/n"), json);
    }
    close_store(a);
    close_store(b);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Without a checkpoint: the second runtime folds the log itself. */
static void a_second_runtime_reads_what_is_only_in_the_log(void **state) {
    (void)state;
    hd_runtime *a = open_store();
    write_cell(a, "main/n", "{\"x\":1}");
    write_cell(a, "main/n#/y", "2");
    sync_store(a);
    hd_runtime *b = open_store();
    assert_string_equal(read_cell(b, "main/n"), "{\"x\":1,\"y\":2}");
    close_store(b);
    close_store(a);
    assert_sound();
}

/* One id is what all share; two others share half a character beyond it. */
static const char *const alike[] = { "main/gr\u00f6\u00dfe-", "main/gr\u00f6\u00dfe-\u00e4",
                                     "main/gr\u00f6\u00dfe-\u00f6",
                                     "main/gr\u00f6\u00dfe-\u00f6x" };

static void write_alike(hd_runtime *rt, int from) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    for (int i = from; i < 4; i++) {
        assert_int_equal(hd_tx_set_int(tx, hd_cell_at(rt, alike[i]), 10 * from + i), HD_OK);
        assert_int_equal(hd_tx_set_kind(tx, hd_cell_at(rt, alike[i]), "like"), HD_OK);
    }
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    sync_store(rt);
}

static void assert_alike(hd_runtime *rt) {
    for (int i = 0; i < 4; i++) {
        char expected[16];
        snprintf(expected, sizeof expected, "%d", i ? 10 + i : i);
        await_cell(rt, alike[i], expected);
    }
}

static void ids_of_one_commit_stand_behind_what_they_share(void **state) {
    (void)state;
    hd_runtime *a = open_store(), *follower = open_store();
    assert_int_equal(hd_runtime_follow(follower, "main"), HD_OK);
    write_alike(a, 0);
    write_alike(a, 1);
    assert_string_equal(sql("select c.value->>'a' from log, json_each(body, '$.commits') c"),
                        "gr\u00f6\u00dfe- gr\u00f6\u00dfe-");
    hd_runtime *late = open_store();
    assert_alike(late);
    assert_alike(follower);
    assert_sound();
    close_store(late);
    close_store(follower);
    close_store(a);
    assert_string_equal(sql("select count(*) from document where kind = 'like'"), "4");
    a = open_store();
    assert_alike(a);
    close_store(a);
    assert_sound();
}

static void plain_sql_sees_documents_after_a_checkpoint(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_cell(rt, "shop/cart", "{\"total\":12}");
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_string_equal(sql("select value->>'total' from document"), "12");
    close_store(rt);
}

/* ---- Admission --------------------------------------------------------------------------------------- */

static void increment_slowly(hd_runtime *rt, const char *cell, hd_tx **tx) {
    assert_int_equal(hd_tx_begin(rt, tx), HD_OK);
    hd_cell c = hd_cell_at(rt, cell);
    int64_t n = hd_value_as_int(hd_tx_get(*tx, c), 0);
    assert_int_equal(hd_tx_set_int(*tx, c, n + 1), HD_OK);
}

static void a_commit_that_read_what_has_changed_is_refused(void **state) {
    (void)state;
    hd_runtime *a = open_store(), *b = open_store();
    write_cell(a, "main/n", "1");
    sync_store(a);
    await_cell(b, "main/n", "1");
    hd_tx *tx;
    hd_status status = HD_PENDING;
    increment_slowly(b, "main/n", &tx);
    write_cell(a, "main/n", "10");
    sync_store(a);
    assert_int_equal(hd_tx_commit(tx, keep_status, &status), HD_OK);
    assert_string_equal(read_cell(b, "main/n"), "2");
    sync_store(b);
    assert_int_equal(status, HD_STALE);
    assert_string_equal(read_cell(b, "main/n"), "10"); /* the repair came ahead of the verdict */
    close_store(a);
    close_store(b);
    assert_sound();
}

static void blind_writes_of_two_runtimes_both_stand(void **state) {
    (void)state;
    hd_runtime *a = open_store(), *b = open_store();
    for (int i = 0; i < 20; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/d#/%c%d", i % 2 ? 'a' : 'b', i);
        write_cell(i % 2 ? a : b, cell, "1");
        if (i % 3 == 0) hd_runtime_pump(a);
    }
    sync_store(a);
    sync_store(b);
    close_store(a);
    close_store(b);
    hd_runtime *rt = open_store();
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    assert_int_equal(hd_value_count(hd_read(rt, pool, hd_cell_at(rt, "main/d"))), 20);
    hd_pool_close(pool);
    close_store(rt);
    assert_sound();
}

static hd_status create_guarded(hd_runtime *rt, const char *name) {
    hd_tx *tx;
    hd_status status = HD_PENDING;
    hd_tx_begin(rt, &tx);
    hd_tx_require_absent(tx, hd_cell_at(rt, name));
    hd_tx_set_int(tx, hd_cell_at(rt, name), 1);
    hd_status committed = hd_tx_commit(tx, keep_status, &status);
    if (!committed) sync_store(rt);
    return committed ? committed : status;
}

static void remove_document(hd_runtime *rt, const char *name) {
    hd_tx *tx;
    hd_tx_begin(rt, &tx);
    hd_tx_remove(tx, hd_cell_at(rt, name));
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    sync_store(rt);
}

/* A tombstone survives checkpoint, pruning and reopening. */
static void what_was_created_once_is_not_created_again(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    assert_int_equal(create_guarded(rt, "main/receipt"), HD_OK);
    assert_int_equal(create_guarded(rt, "main/receipt"), HD_EXISTS);
    remove_document(rt, "main/receipt");
    assert_int_equal(create_guarded(rt, "main/receipt"), HD_EXISTS);
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    close_store(rt);
    rt = open_store();
    assert_string_equal(read_cell(rt, "main/receipt"), "-");
    assert_int_equal(create_guarded(rt, "main/receipt"), HD_EXISTS);
    assert_int_equal(create_guarded(rt, "main/other"), HD_OK);
    close_store(rt);
    assert_sound();
}

static hd_status require_equal(hd_runtime *rt, const char *json, int set) {
    hd_tx *tx;
    hd_status status = HD_PENDING;
    hd_tx_begin(rt, &tx);
    hd_cell c = hd_cell_at(rt, "main/doc#/a");
    hd_value v = hd_json_parse(hd_tx_pool(tx), json, strlen(json), NULL);
    assert_int_equal(hd_tx_require_equal(tx, c, v), HD_OK);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/seen"), set);
    assert_int_equal(hd_tx_commit(tx, keep_status, &status), HD_OK);
    sync_store(rt);
    return status;
}

static void an_expected_value_is_compared_where_the_commit_is_admitted(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_cell(rt, "main/doc", "{\"a\":[1,2]}");
    assert_int_equal(require_equal(rt, "[1,2]", 1), HD_OK);
    assert_int_equal(require_equal(rt, "[1,3]", 2), HD_HASH_DIFFERS);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_int_equal(require_equal(rt, "[1,2]", 3), HD_OK);
    assert_string_equal(read_cell(rt, "main/seen"), "3");
    close_store(rt);
}

/* ---- Others ------------------------------------------------------------------------------------------- */

typedef struct heard {
    char text[1024];
} heard;

static void hear(const hd_notice *notice, void *ctx) {
    heard *h = ctx;
    for (size_t i = 0; i < notice->count && notice->kind == HD_CHANGE_INTEGRATE; i++) {
        size_t n = strlen(h->text);
        snprintf(h->text + n, sizeof h->text - n, "%s%lld", n ? " " : "",
                 (long long)hd_value_as_int(notice->changes[i].after, -1));
    }
}

static void a_follower_hears_each_change_of_documents_it_never_read(void **state) {
    (void)state;
    hd_runtime *a = open_store(), *b = open_store();
    heard h = { "" };
    assert_int_equal(hd_runtime_follow(b, "main"), HD_OK);
    assert_int_equal(hd_runtime_listen(b, hear, &h), HD_OK);
    for (int i = 1; i <= 4; i++) {
        char json[16], cell[32];
        snprintf(json, sizeof json, "%d", i);
        snprintf(cell, sizeof cell, "main/d%d", i / 3);
        write_cell(a, cell, json);
        sync_store(a);
        if (i == 2) assert_int_equal(hd_store_checkpoint(a, NULL), HD_OK);
    }
    await_cell(b, "main/d1", "4");
    assert_string_equal(h.text, "1 2 3 4");
    close_store(a);
    close_store(b);
}

/* S12: b was not looking while a checkpointed and pruned everything b had not seen. */
static void a_runtime_behind_a_pruned_log_reads_anew(void **state) {
    (void)state;
    hd_runtime *a = open_store(), *b;
    write_cell(a, "main/n", "1");
    write_cell(a, "main/gone", "1");
    sync_store(a);
    b = open_store();
    assert_string_equal(read_cell(b, "main/n"), "1");
    assert_string_equal(read_cell(b, "main/gone"), "1");
    write_cell(a, "main/n", "2");
    remove_document(a, "main/gone");
    assert_int_equal(hd_store_prune(a, NULL), HD_OK);
    write_cell(a, "main/n", "3");
    sync_store(a);
    heard h = { "" };
    hd_runtime_listen(b, hear, &h);
    await_cell(b, "main/n", "3");
    assert_string_equal(read_cell(b, "main/gone"), "-");
    close_store(b);
    close_store(a);
    assert_sound();
}

/* The file names spaces in another order than a met them in: what a remembers of the last checkpoint
 * must not be taken for another space's. */
static void spaces_may_be_numbered_anew_when_a_file_is_learned_again(void **state) {
    (void)state;
    hd_runtime *a = open_store();
    for (int i = 0; i < 9; i++) {
        write_cell(a, "main/n", i % 2 ? "1" : "2");
        sync_store(a);
    }
    write_cell(a, "far/n", "{\"x\":1,\"y\":1}");
    assert_int_equal(hd_store_checkpoint(a, NULL), HD_OK);
    lab_disk_fail(disk, (lab_fault){ .op = LAB_OP_SYNC }); /* what a knows is in doubt after that */
    write_cell(a, "main/n", "3");
    (void)hd_runtime_sync(a);
    lab_disk_heal(disk);
    for (int i = 0; i < 2; i++) {
        write_cell(a, "far/n", "1");
        remove_document(a, "far/n"); /* which is remembered beyond a checkpoint */
        sync_store(a);
        assert_int_equal(hd_store_checkpoint(a, NULL), HD_OK);
    }
    close_store(a);
    assert_sound();
}

static void one_principals_documents_are_not_anothers(void **state) {
    (void)state;
    hd_runtime *ada = open_with((hd_options){ .principal = "ada" });
    write_cell(ada, "main@user/secret", "1");
    write_cell(ada, "main/shared", "2");
    sync_store(ada);
    hd_runtime *bob = open_with((hd_options){ .principal = "bob" });
    assert_string_equal(read_cell(bob, "main@user/secret"), "-");
    assert_string_equal(read_cell(bob, "main/shared"), "2");
    write_cell(bob, "main@user/secret", "5");
    sync_store(bob);
    close_store(ada);
    close_store(bob);
    ada = open_with((hd_options){ .principal = "ada" });
    assert_string_equal(read_cell(ada, "main@user/secret"), "1");
    close_store(ada);
    assert_sound();
}

/* Nobody's documents would be everybody's. */
static void principal_and_session_need_a_name(void **state) {
    (void)state;
    hd_options nobody = { .vfs = lab_disk_vfs(disk), .principal = "" };
    hd_options nowhere = { .session = "" };
    hd_runtime *rt;
    hd_error error;
    assert_int_equal(hd_open(FILE_NAME, &nobody, &rt, &error), HD_USAGE);
    assert_non_null(strstr(error.message, "principal"));
    assert_int_equal(hd_open(NULL, &nowhere, &rt, &error), HD_USAGE);
    assert_non_null(strstr(error.message, "session"));
    assert_false(lab_disk_exists(disk, FILE_NAME));
}

/* ---- Listing ---------------------------------------------------------------------------------------- */

static bool add_id(const hd_listing *entry, void *ctx) {
    char *out = ctx;
    strcat(out, entry->id);
    strcat(out, " ");
    return true;
}

static const char *ids(hd_runtime *rt, const char *kind, const char *prefix) {
    printed[0] = '\0';
    assert_int_equal(hd_runtime_list(rt, "main", kind, prefix, add_id, printed), HD_OK);
    return printed;
}

static const char *ids_after(hd_runtime *rt, const char *kind, const char *prefix,
                             const char *after) {
    printed[0] = '\0';
    assert_int_equal(hd_runtime_list_after(rt, "main", kind, prefix, after, add_id, printed),
                     HD_OK);
    return printed;
}

static void write_kind(hd_runtime *rt, const char *cell, const char *kind) {
    hd_tx *tx;
    hd_tx_begin(rt, &tx);
    hd_tx_set_int(tx, hd_cell_at(rt, cell), 1);
    if (kind) hd_tx_set_kind(tx, hd_cell_at(rt, cell), kind);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static void assert_listed(hd_runtime *rt) {
    assert_string_equal(ids(rt, NULL, NULL), "a1 a3 b1 b2 ");
    assert_string_equal(ids(rt, NULL, "b"), "b1 b2 ");
    assert_string_equal(ids(rt, "task", NULL), "a3 b1 ");
    assert_string_equal(ids(rt, "task", "b"), "b1 ");
    assert_string_equal(ids(rt, "nothing", NULL), "");
    assert_string_equal(ids_after(rt, NULL, NULL, "a1"), "a3 b1 b2 ");
    assert_string_equal(ids_after(rt, NULL, NULL, "a2"), "a3 b1 b2 ");
    assert_string_equal(ids_after(rt, "task", NULL, "a3"), "b1 ");
    assert_string_equal(ids_after(rt, NULL, "b", "a3"), "b1 b2 ");
    assert_string_equal(ids_after(rt, NULL, "b", "b1"), "b2 ");
    assert_string_equal(ids_after(rt, NULL, "a", "b1"), "");
    assert_string_equal(ids_after(rt, NULL, NULL, ""), "a1 a3 b1 b2 ");
}

/* Writes so many documents in one burst, which is one row of the log, and counts the allocations of another runtime
 * that lists them and reads them all. */
static uint64_t count_loads_of_burst(int documents) {
    lab_env *world = lab_env_open();
    hd_runtime *a = open_store(), *b;
    char name[32];
    for (int i = 0; i < documents; i++) {
        snprintf(name, sizeof name, "main/%d-%d", documents, i * 7919 % documents);
        write_cell(a, name, "{\"text\": \"some forty bytes of text in each document\"}");
    }
    sync_store(a);
    b = open_with((hd_options){ .env = lab_env_of(world), .read_only = true });
    uint64_t before = lab_env_allocations(world);
    assert_string_equal(ids(b, "nothing", NULL), "");
    for (int i = 0; i < documents; i++) {
        snprintf(name, sizeof name, "main/%d-%d", documents, i);
        read_cell(b, name);
        assert_non_null(strstr(printed, "forty"));
    }
    uint64_t took = lab_env_allocations(world) - before;
    close_store(b);
    close_store(a);
    lab_env_close(world);
    return took;
}

/* A row with many documents is parsed once, and not once for each document, which takes some allocations each time. */
static void the_row_of_a_burst_is_parsed_once(void **state) {
    (void)state;
    uint64_t some = count_loads_of_burst(300), twice = count_loads_of_burst(600);
    printf("allocations: %llu for 300 documents, %llu for 600\n", (unsigned long long)some,
           (unsigned long long)twice);
    assert_true(twice - some < UINT64_C(2) * 300);
}

/* From the log, from head rows, and from both. */
static void documents_are_listed_by_kind_and_prefix(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_kind(rt, "main/b1", "task");
    write_kind(rt, "main/a1", "piece");
    write_kind(rt, "main/a2", "task");
    sync_store(rt);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    write_kind(rt, "main/a3", "task");
    write_kind(rt, "main/b2", NULL);
    remove_document(rt, "main/a2");
    assert_listed(rt);
    close_store(rt);
    rt = open_store();
    assert_listed(rt);
    close_store(rt);
    assert_sound();
}

/* ---- Large documents ---------------------------------------------------------------------------------- */

static void write_many_keys(hd_runtime *rt, int count) {
    hd_tx *tx;
    hd_builder *b;
    hd_tx_begin(rt, &tx);
    hd_builder_open(hd_tx_pool(tx), HD_KIND_OBJECT, &b);
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%06d", i);
        hd_builder_put(b, key, hd_int(NULL, i));
    }
    assert_int_equal(hd_tx_set(tx, hd_cell_at(rt, "main/big"), hd_builder_close(b)), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    sync_store(rt);
}

/* Each open, one-key write and close costs what was changed, not the document; patches are folded
 * in when they have grown. */
static void a_small_change_of_a_large_document_writes_little(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_many_keys(rt, 20000);
    close_store(rt);
    for (int i = 0; i < 8; i++) {
        lab_disk_counts_reset(disk);
        rt = open_store();
        char json[32];
        snprintf(json, sizeof json, "%d", -i);
        write_cell(rt, "main/big#/key000007", json);
        close_store(rt);
        lab_io_counts counts = lab_disk_counts(disk);
        assert_true(lab_io_durable_bytes(&counts) < 100000);
    }
    assert_sound();
    rt = open_store();
    assert_string_equal(read_cell(rt, "main/big#/key000007"), "-7");
    assert_string_equal(read_cell(rt, "main/big#/key019999"), "19999");
    assert_string_equal(sql("select patches from document"), "8");
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_string_equal(sql("select patches || ' ' || (value->>'key000007') from document"),
                        "0 -7");
    write_cell(rt, "main/big", "1");
    close_store(rt);
    assert_string_equal(sql("select count(*) from large"), "0");
    assert_sound();
}

/* ---- Checking --------------------------------------------------------------------------------------- */

static int findings(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    int count = 0;
    hd_status status = hd_store_check(FILE_NAME, &options, print_finding, &count, NULL);
    assert_int_equal(status, count ? HD_CORRUPT : HD_OK);
    return count;
}

static void the_check_finds_what_was_changed_behind_its_back(void **state) {
    (void)state;
    static const char *const damage[] = {
        "update head set value = '{\"total\":13}'",
        "update head set seq = seq + 1",
        "update head set kind = 'other'",
        "update log set body = replace(body, '12', '13') where row = 1",
        "delete from log where row = 2",
        "delete from head where id = 'a'",
        "update space set checkpoint = checkpoint + 1",
        "insert into patch values(4711, 1, 0, '[]')",
    };
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        lab_disk_free(disk);
        disk = lab_disk_new(NULL);
        hd_runtime *rt = open_with((hd_options){ .keep_history = true });
        write_cell(rt, "main/a", "{\"total\":12}");
        sync_store(rt);
        write_cell(rt, "main/b", "1");
        sync_store(rt);
        write_cell(rt, "main/c", "1");
        close_store(rt);
        assert_int_equal(findings(), 0);
        sql(damage[i]);
        if (!findings()) fail_msg("not found: %s", damage[i]);
    }
}

/* ---- Refusing --------------------------------------------------------------------------------------- */

static uint8_t *whole_file(size_t *size) {
    *size = (size_t)lab_disk_size(disk, FILE_NAME);
    uint8_t *bytes = malloc(*size + 1);
    lab_disk_read(disk, FILE_NAME, 0, bytes, *size);
    return bytes;
}

/* Refused with that status, and not a byte of the file is different afterwards. */
static void assert_refused(hd_options options, hd_status expected, const char *advice) {
    size_t before_size, after_size;
    uint8_t *before = whole_file(&before_size);
    options.vfs = lab_disk_vfs(disk);
    hd_runtime *rt;
    hd_error error;
    assert_int_equal(hd_open(FILE_NAME, &options, &rt, &error), expected);
    assert_null(rt);
    if (!strstr(error.message, advice)) fail_msg("'%s' does not say '%s'", error.message, advice);
    uint8_t *after = whole_file(&after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    free(before);
    free(after);
}

static void a_place_where_no_file_can_be_is_named(void **state) {
    (void)state;
    hd_runtime *rt;
    hd_error error;
    /* Whether the program may write there or not, the status is one that is not worth another try. */
    static const char *const directories[] = { "/", "/tmp" };
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(hd_open(directories[i], NULL, &rt, &error), HD_NOT_HEDDLE);
        assert_non_null(strstr(error.message, "is a directory"));
    }
    assert_int_equal(hd_open("/nowhere/at/all.db", NULL, &rt, &error), HD_NOT_FOUND);
    assert_int_equal(error.status, HD_NOT_FOUND);
    assert_non_null(strstr(error.message, "does not exist"));
}

static void what_is_not_ours_is_refused_untouched(void **state) {
    (void)state;
    assert_refused((hd_options){ .must_exist = true }, HD_NOT_FOUND, "does not exist");
    lab_disk_write(disk, FILE_NAME, 0, "just some text that is no database at all........", 49);
    for (int i = 1; i < 100; i++) lab_disk_write(disk, FILE_NAME, (uint64_t)i * 49, "more", 4);
    assert_refused((hd_options){ 0 }, HD_NOT_HEDDLE, "not a heddle file");
    sqlite3 *db;
    sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, lab_disk_vfs(disk));
    sqlite3_exec(db, "create table t(x); insert into t values(1)", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_refused((hd_options){ 0 }, HD_NOT_HEDDLE, "not a heddle file");
    assert_refused((hd_options){ .read_only = true }, HD_NOT_HEDDLE, "not a heddle file");
}

static void a_newer_format_is_refused_untouched(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_cell(rt, "main/n", "1");
    close_store(rt);
    sql("pragma user_version = 7");
    assert_refused((hd_options){ 0 }, HD_NEWER, "install a newer heddle");
    sql("pragma user_version = 6");
    rt = open_store();
    assert_string_equal(read_cell(rt, "main/n"), "1");
    close_store(rt);
}

static void read_only_reads_and_never_writes(void **state) {
    (void)state;
    hd_runtime *rt = open_store();
    write_cell(rt, "main/n", "1");
    close_store(rt);
    rt = open_with((hd_options){ .read_only = true });
    assert_string_equal(read_cell(rt, "main/n"), "1");
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_READ_ONLY);
    close_store(rt);
}

static hd_status copy_n(hd_tx *tx, void *ctx) {
    (void)ctx;
    hd_runtime *rt = hd_tx_runtime(tx);
    return hd_tx_set(tx, hd_cell_at(rt, "main/copy"), hd_tx_get(tx, hd_cell_at(rt, "main/n")));
}
static void look(hd_value v, void *ctx) { *(int64_t *)ctx = hd_value_as_int(v, -1); }

/* It computes for itself: that nothing of it can be stored is no failure. */
static void who_only_reads_may_compute(void **state) {
    (void)state;
    int64_t seen = 0;
    hd_runtime *rt = open_store();
    write_cell(rt, "main/n", "4");
    close_store(rt);
    rt = open_with((hd_options){ .read_only = true });
    hd_compute(rt, "copy", copy_n, NULL, hd_cell_at(rt, "main/copy"));
    hd_sink(rt, hd_cell_at(rt, "main/copy"), look, &seen);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(seen, 4);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = open_store();
    assert_string_equal(read_cell(rt, "main/copy"), "-");
    close_store(rt);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_disk, free_disk)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_there_after_reopening),
        TEST(the_store_works_while_verdicts_are_told),
        TEST(a_program_that_commits_again_and_again_is_woken_by_verdicts_alone),
        TEST(what_was_stored_before_a_settle_is_seen),
        TEST(a_second_runtime_reads_what_is_only_in_the_log),
        TEST(ids_of_one_commit_stand_behind_what_they_share),
        TEST(plain_sql_sees_documents_after_a_checkpoint),
        TEST(a_commit_that_read_what_has_changed_is_refused),
        TEST(blind_writes_of_two_runtimes_both_stand),
        TEST(what_was_created_once_is_not_created_again),
        TEST(an_expected_value_is_compared_where_the_commit_is_admitted),
        TEST(a_follower_hears_each_change_of_documents_it_never_read),
        TEST(a_runtime_behind_a_pruned_log_reads_anew),
        TEST(spaces_may_be_numbered_anew_when_a_file_is_learned_again),
        TEST(one_principals_documents_are_not_anothers),
        TEST(principal_and_session_need_a_name),
        TEST(documents_are_listed_by_kind_and_prefix),
        TEST(the_row_of_a_burst_is_parsed_once),
        TEST(a_small_change_of_a_large_document_writes_little),
        TEST(the_check_finds_what_was_changed_behind_its_back),
        TEST(a_place_where_no_file_can_be_is_named),
        TEST(what_is_not_ours_is_refused_untouched),
        TEST(a_newer_format_is_refused_untouched),
        TEST(read_only_reads_and_never_writes),
        TEST(who_only_reads_may_compute),
    };
    return cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
