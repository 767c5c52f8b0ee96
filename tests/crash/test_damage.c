/* test_damage.c -- a file whose bytes have changed: what is read is what was written, or an error.
 *
 * A store is made of which every value is known: small documents, large ones with and without patches,
 * metadata, a tail of the log behind the checkpoint. Then it is damaged, again and again: bytes of the
 * file, bytes of the WAL, single rows, rows with correct hashes. Whoever opens it gets the values that
 * were written or an error, never others; writing, folding and pruning do not make the damage look good;
 * and what `repair` says it restored is what it was.
 *
 * HD_DAMAGED_FILES: how many files are damaged, of each kind. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "sqlite_world.h"
#include "store/log/rows.h"
#include "times.h"
#include "vfs.h"
#include <heddle/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "damage.db"

enum { DOCS = 24, LARGE = 3, VALUE_SIZE = 40000 };

static uint64_t file_count(void) { return lab_times("HD_DAMAGED_FILES", LAB_SLOW ? 150 : 600); }

/* ---- The file ------------------------------------------------------------------------------------- */

static const char *doc_name_at(uint32_t i, char out[32]) {
    snprintf(out, 32, "main/%s%u", i < LARGE ? "large" : "d", i);
    return out;
}

/* The text that document i has after it was changed `times` times. */
static const char *doc_text(uint32_t i, int times, char *out) {
    size_t filler = i < LARGE ? 20000 + 1000 * i : 10 + i * 13;
    int n = snprintf(out, 64, "{\"n\":%d,\"t\":\"", times * 1000 + (int)i);
    memset(out + n, 'a' + (char)(i % 26), filler);
    memcpy(out + n + filler, "\"}", 3);
    return out;
}

static void write_doc(hd_runtime *rt, uint32_t i, int times) {
    static char text[VALUE_SIZE];
    char name[64], json[16];
    doc_name_at(i, name);
    if (times == 1) {
        assert_int_equal(hd_write_json(rt, hd_cell_at(rt, name), doc_text(i, 1, text)), HD_OK);
        return;
    }
    strcat(name, "#/n");
    snprintf(json, sizeof json, "%d", times * 1000 + (int)i);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, name), json), HD_OK);
}

static hd_runtime *open_on(lab_disk *disk, bool keep_history) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .keep_history = keep_history };
    hd_runtime *rt;
    hd_error error;
    if (hd_open(FILE_NAME, &options, &rt, &error)) fail_msg("open: %s", error.message);
    return rt;
}

static void set_kind(hd_runtime *rt, uint32_t i) {
    hd_tx *tx;
    char name[32];
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_tx_set_kind(tx, hd_cell_at(rt, doc_name_at(i, name)), "thing");
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* Every document was written once; the first ones were folded after a second change, as a patch where
 * they are large; the last change of every fifth is behind the checkpoint. */
static int times_of(uint32_t i) { return i % 5 == 0 ? 3 : i % 2 == 0 ? 2 : 1; }

static lab_disk *make_file(bool keep_history) {
    lab_disk *disk = lab_disk_new(NULL);
    hd_runtime *rt = open_on(disk, keep_history);
    for (uint32_t i = 0; i < DOCS; i++) {
        write_doc(rt, i, 1);
        if (i % 3 == 0) set_kind(rt, i);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
    }
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    for (uint32_t i = 0; i < DOCS; i++)
        if (times_of(i) >= 2) write_doc(rt, i, 2);
    assert_int_equal(hd_close(rt), HD_OK); /* which leaves patches */
    rt = open_on(disk, keep_history);
    if (!keep_history) assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    for (uint32_t i = 0; i < DOCS; i++)
        if (times_of(i) == 3) write_doc(rt, i, 3);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    lab_disk *left = lab_disk_clone(disk); /* as a killed program leaves it */
    assert_int_equal(hd_close(rt), HD_OK);
    lab_disk_free(disk);
    return left;
}

static int run_sql(lab_disk *disk, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
    return rc;
}

/* ---- What is read ----------------------------------------------------------------------------------- */

typedef struct seen {
    int right, refused, absent;
} seen;

static bool is_state(hd_pool *pool, uint32_t i, int times, hd_value v) {
    static char text[VALUE_SIZE];
    doc_text(i, times, text);
    return hd_value_equal(v, hd_json_parse(pool, text, strlen(text), NULL));
}

/* Where a WAL is damaged SQLite takes it to end there: an older state is as good as after a power cut. */
static bool may_be_older;

static bool is_right(hd_pool *pool, uint32_t i, hd_value v) {
    int last = times_of(i), first = may_be_older ? 1 : last;
    for (int times = first; times <= last; times++)
        if (is_state(pool, i, times, v)) return true;
    return false;
}

/* Never another value. That a document is not found at all is what a damaged index leads to, which only
 * a check can tell. */
static void read_all(hd_runtime *rt, uint32_t except, seen *out) {
    hd_pool *pool;
    char name[32];
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (uint32_t i = 0; i < DOCS; i++) {
        if (i == except) continue;
        hd_value v = hd_read(rt, pool, hd_cell_at(rt, doc_name_at(i, name)));
        if (hd_value_status(v)) out->refused++;
        else if (!hd_value_exists(v)) out->absent++;
        else if (is_right(pool, i, v)) out->right++;
        else
            fail_msg("%s is read with a value that nobody has written: %.100s", name,
                     hd_json_print(pool, v, HD_JSON_COMPACT, NULL));
        hd_pool_clear(pool);
    }
    hd_pool_close(pool);
}

static void ignore(const char *line, void *ctx) { (void)ctx, (void)line; }

static hd_status check_file(lab_disk *disk) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    return hd_store_check(FILE_NAME, &options, ignore, NULL, NULL);
}

static void say_nothing(hd_log_level level, const char *line, void *ctx) {
    (void)ctx, (void)level, (void)line;
}

static hd_status try_open(lab_disk *disk, bool read_only, hd_runtime **out) {
    static hd_env env;
    env = hd_env_system();
    env.log = say_nothing;
    hd_options options = { .vfs = lab_disk_vfs(disk), .read_only = read_only, .env = &env };
    return hd_open(FILE_NAME, &options, out, NULL);
}

/* Writes another document, folds and prunes: the damage must still be told apart. */
static void write_on(lab_disk *disk, seen *out) {
    hd_runtime *rt;
    if (try_open(disk, false, &rt)) return;
    read_all(rt, UINT32_MAX, out);
    (void)hd_write_json(rt, hd_cell_at(rt, "main/other"), "1");
    (void)hd_runtime_sync(rt);
    (void)hd_store_checkpoint(rt, NULL);
    (void)hd_store_prune(rt, NULL);
    hd_close(rt);
}

/* All values are right, or a check finds something. */
static void must_not_look_good(lab_disk *disk) {
    hd_runtime *rt;
    seen now = { 0 };
    hd_status checked = check_file(disk);
    if (try_open(disk, true, &rt)) {
        assert_int_not_equal(checked, HD_OK);
        return;
    }
    read_all(rt, UINT32_MAX, &now);
    hd_close(rt);
    if (now.refused || (!may_be_older && now.right != DOCS)) assert_int_not_equal(checked, HD_OK);
}

static void live_with(lab_disk *disk) {
    hd_runtime *rt;
    seen first = { 0 }, then = { 0 };
    if (!try_open(disk, true, &rt)) {
        read_all(rt, UINT32_MAX, &first);
        hd_close(rt);
    }
    must_not_look_good(disk);
    write_on(disk, &then);
    must_not_look_good(disk);
}

/* ---- Bytes ------------------------------------------------------------------------------------------ */

static void damage_bytes(lab_disk *disk, lab_random *random, const char *name) {
    uint64_t size = lab_disk_size(disk, name);
    uint64_t runs = 1 + lab_random_below(random, 3);
    for (uint64_t i = 0; i < runs && size; i++) {
        uint64_t at = lab_random_below(random, size), most = size - at;
        uint64_t length = lab_random_once_in(random, 4) ? lab_random_below(random, 300) : 1;
        if (length > most) length = most;
        if (length) lab_disk_corrupt(disk, name, at, (size_t)length, lab_random_u64(random));
    }
}

static void damage_often(const char *name, bool keep_history) {
    lab_random random = lab_random_of(lab_seed());
    lab_disk *whole = make_file(keep_history);
    for (uint64_t i = 0; i < file_count(); i++) {
        lab_disk *disk = lab_disk_clone(whole);
        damage_bytes(disk, &random, name);
        live_with(disk);
        lab_disk_free(disk);
    }
    lab_disk_free(whole);
}

static void damaged_pages_are_never_read_as_good(void **state) { damage_often(FILE_NAME, false); }
static void a_damaged_wal_is_never_read_as_good(void **state) {
    may_be_older = true;
    damage_often(FILE_NAME "-wal", true);
    may_be_older = false;
}

/* ---- Rows ------------------------------------------------------------------------------------------- */

/* Changes one character of a text; its hash stays. */
static const char *const row_damages[] = {
    "update head set value = replace(value, '\"t\"', '\"u\"') where doc = %d",
    "update head set meta = replace(meta, 'thing', 'thinG') where doc = %d",
    "update head set size = size + 1 where doc = %d",
    "update head set patched = patched + 1 where doc = %d",
    "update head set large = 1 - large where doc = %d",
    "update head set hash = hash + 1 where doc = %d",
    "update head set seq = 1000000 where doc = %d",
    "update large set value = replace(value, '\"t\"', '\"u\"') where doc = %d",
    "update large set hash = hash + 1 where doc = %d",
    "delete from large where doc = %d",
    "update patch set body = replace(body, '/n', '/m') where doc = %d",
    "delete from patch where doc = %d",
};
enum { ROW_DAMAGES = sizeof row_damages / sizeof *row_damages };

/* Log rows that are well-formed and whose hashes are right. */
static void add_log_row(sqlite3 *db, int64_t row, const char *body) {
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "insert into log values(?1, ?2, ?3)", -1, &s, NULL), 0);
    sqlite3_bind_int64(s, 1, row);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)log_hash(body, strlen(body)));
    sqlite3_bind_text(s, 3, body, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
}

static char *log_body(sqlite3 *db, int64_t row) {
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "select body from log where row = ?1", -1, &s, NULL),
                     0);
    sqlite3_bind_int64(s, 1, row);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    char *body = strdup((const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return body;
}

/* The last row once more; with the session's next number; with seqs that leave some out. */
static void add_hostile_row(lab_disk *disk, lab_random *random) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    int64_t last = db_number(db, "select max(row) from log");
    char *body = log_body(db, last), *q = strstr(body, "\"q\":["), *n = strstr(body, "\"n\":");
    assert_true(q && n);
    switch (lab_random_below(random, 4)) {
    case 0: break;
    case 1: n[4] = n[4] == '9' ? '8' : '9'; break;
    case 2: q[5] = q[5] == '9' ? '8' : '9'; break;
    default: memset(q + 5, '9', strcspn(q + 5, "],"));
    }
    add_log_row(db, last + 1, body);
    free(body);
    sqlite3_close(db);
}

/* A row whose one commit has the next seq of its space, and these documents. */
static void add_next_row(lab_disk *disk, const char *docs) {
    sqlite3 *db;
    char made[512], body[1024];
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    int64_t last = db_number(db, "select max(row) from log");
    int64_t seq = db_number(db, "select max(cast(q.value as integer)) from log,"
                                " json_each(log.body, '$.commits') c, json_each(c.value, '$.q') q");
    snprintf(made, sizeof made, "{\"q\":[%d],\"n\":1,\"p\":[\"main\"],\"d\":[%s]}", (int)seq + 1,
             docs);
    snprintf(body, sizeof body,
             "{\"sessions\":[\"00112233445566778899aabbccddeeff\"],\"sizes\":[%zu],\"v\":5,"
             "\"commits\":[%s]}",
             strlen(made), made);
    add_log_row(db, last + 1, body);
    sqlite3_close(db);
}

static hd_status open_with_row(const char *docs) {
    lab_disk *disk = make_file(true);
    hd_runtime *rt;
    add_next_row(disk, docs);
    hd_status status = try_open(disk, false, &rt);
    if (!status) assert_int_equal(hd_close(rt), HD_OK);
    lab_disk_free(disk);
    return status;
}

/* A commit has one entry for each of its documents. */
static void a_commit_with_two_entries_for_a_document_is_damage(void **state) {
    assert_int_equal(open_with_row("[\"d7\",[[\"/n\",1]]],[\"d9\",[[\"/n\",2]]]"), HD_OK);
    assert_int_equal(open_with_row("[\"d7\",[[\"/n\",1]]],[\"d7\",[[\"/n\",2]]]"), HD_CORRUPT);
}

static void damage_row(lab_disk *disk, lab_random *random) {
    char sql[160];
    if (lab_random_once_in(random, 4)) {
        add_hostile_row(disk, random);
        return;
    }
    const char *how = row_damages[lab_random_below(random, ROW_DAMAGES)];
    snprintf(sql, sizeof sql, how, (int)lab_random_below(random, DOCS + 1));
    assert_int_equal(run_sql(disk, sql), 0);
}

static void damaged_rows_are_never_read_as_good(void **state) {
    lab_random random = lab_random_of(lab_seed());
    lab_disk *whole[2] = { make_file(false), make_file(true) };
    for (uint64_t i = 0; i < file_count(); i++) {
        lab_disk *disk = lab_disk_clone(whole[i % 2]);
        for (uint64_t k = 1 + lab_random_below(&random, 3); k > 0; k--) damage_row(disk, &random);
        live_with(disk);
        lab_disk_free(disk);
    }
    lab_disk_free(whole[0]);
    lab_disk_free(whole[1]);
}

/* ---- Repair ----------------------------------------------------------------------------------------- */

typedef struct repaired {
    int restored, removed, not_restored;
} repaired;

static void take_line(const char *line, void *ctx) {
    repaired *r = ctx;
    r->restored += strncmp(line, "restored", 8) == 0;
    r->removed += strncmp(line, "removed", 7) == 0;
    r->not_restored += strncmp(line, "not restored", 12) == 0;
}

static hd_status repair(lab_disk *disk, bool drop, repaired *out) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    return hd_store_repair(FILE_NAME, &options, drop, take_line, out, NULL);
}

/* With the whole log everything in head rows can be had again. */
static void repair_restores_documents_that_the_log_has(void **state) {
    lab_disk *whole = make_file(true);
    for (size_t i = 0; i < ROW_DAMAGES; i++) {
        char sql[160];
        lab_disk *disk = lab_disk_clone(whole);
        for (int doc = 1; doc <= DOCS; doc++) {
            snprintf(sql, sizeof sql, row_damages[i], doc);
            assert_int_equal(run_sql(disk, sql), 0);
        }
        repaired r = { 0 };
        bool found = check_file(disk) != HD_OK;
        assert_int_equal(repair(disk, false, &r), HD_OK);
        assert_true(!found || r.restored || i == 6);
        assert_int_equal(r.not_restored, 0);
        seen now = { 0 };
        hd_runtime *rt = open_on(disk, true);
        read_all(rt, UINT32_MAX, &now);
        hd_close(rt);
        assert_int_equal(now.right, DOCS);
        assert_int_equal(check_file(disk), HD_OK);
        lab_disk_free(disk);
    }
    lab_disk_free(whole);
}

/* Without the log it says so, changes nothing, and removes what is lost only when told to. */
static void repair_says_what_it_cannot_restore(void **state) {
    lab_disk *disk = make_file(false);
    assert_int_equal(run_sql(disk, "update head set value = replace(value, '\"t\"', '\"u\"')"
                                   " where id = 'd7'"),
                     0);
    repaired first = { 0 }, then = { 0 };
    assert_int_equal(repair(disk, false, &first), HD_CORRUPT);
    assert_int_equal(first.not_restored, 1);
    assert_int_equal(check_file(disk), HD_CORRUPT);
    assert_int_equal(repair(disk, true, &then), HD_OK);
    assert_int_equal(then.removed, 1);
    assert_int_equal(check_file(disk), HD_OK);
    seen now = { 0 };
    hd_runtime *rt = open_on(disk, false);
    read_all(rt, 7, &now);
    hd_close(rt);
    assert_int_equal(now.right, DOCS - 1);
    lab_disk_free(disk);
}

/* A log row up to the checkpoint whose hash is right, and whose commit has no session; the sequence number at which the
 * log begins. */
static void damage_history(lab_disk *disk) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    int64_t row = db_number(db, "select value / 2 from meta where key = 'checkpoint'");
    char *body = log_body(db, row), *session = strstr(body, "\"sessions\"");
    assert_non_null(session);
    session[1] = 'S';
    assert_true(db_number(db, "select value from meta where key = 'checkpoint'") > row);
    assert_int_equal(sqlite3_exec(db,
                                  "delete from log where row ="
                                  " (select value / 2 from meta where key = 'checkpoint')",
                                  NULL, NULL, NULL),
                     0);
    add_log_row(db, row, body);
    free(body);
    sqlite3_close(db);
}
static void damage_floor(lab_disk *disk) {
    assert_int_equal(run_sql(disk, "update space set floor = checkpoint + 10"), 0);
}

/* What repair calls in order is in order for check. */
static void repair_does_not_overlook_what_check_finds(void **state) {
    void (*const damages[])(lab_disk *) = { damage_history, damage_floor };
    for (int i = 0; i < 2; i++) {
        lab_disk *disk = make_file(true);
        repaired first = { 0 }, then = { 0 };
        seen now = { 0 };
        damages[i](disk);
        assert_int_equal(check_file(disk), HD_CORRUPT);
        assert_int_equal(repair(disk, false, &first), HD_CORRUPT);
        assert_true(first.not_restored > 0);
        assert_int_equal(repair(disk, true, &then), HD_OK);
        assert_int_equal(then.removed, 1);
        assert_int_equal(then.not_restored, 0);
        assert_int_equal(check_file(disk), HD_OK);
        hd_runtime *rt = open_on(disk, true);
        read_all(rt, UINT32_MAX, &now);
        hd_close(rt);
        assert_int_equal(now.right, DOCS);
        lab_disk_free(disk);
    }
}

/* Changes every copy of d15's name in rows of the table, not in indexes, and as much of what follows. */
static void damage_name(lab_disk *disk, size_t length) {
    static const char before[] = "mainspaced15"; /* space, scope, instance, id */
    size_t size = (size_t)lab_disk_size(disk, FILE_NAME), named = sizeof before - 1, found = 0;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(lab_disk_read(disk, FILE_NAME, 0, bytes, size), size);
    for (size_t at = 0; at + named < size; at++) {
        if (memcmp(bytes + at, before, named) != 0) continue;
        lab_disk_corrupt(disk, FILE_NAME, at + named - 5, length, 1); /* from the scope on */
        found++;
    }
    free(bytes);
    assert_true(found > 0);
}

/* The index of names still has it. Without it the log's last change would look like the whole document. */
static void repair_finds_a_damaged_name_in_the_index(void **state) {
    for (size_t length = 1; length < 150; length += 140) {
        lab_disk *disk = make_file(false);
        repaired r = { 0 };
        seen now = { 0 };
        damage_name(disk, length);
        assert_int_equal(repair(disk, false, &r), length == 1 ? HD_OK : HD_CORRUPT);
        hd_runtime *rt = open_on(disk, true);
        read_all(rt, UINT32_MAX, &now);
        hd_close(rt);
        assert_int_equal(now.right, length == 1 ? DOCS : DOCS - 1);
        assert_int_equal(now.refused, length == 1 ? 0 : 1);
        lab_disk_free(disk);
    }
}

/* Changes a byte of large0's name in the index of names. */
static void damage_indexed_name(lab_disk *disk) {
    static const char entry[] = "large0mainspace"; /* id, space, scope, instance */
    size_t size = (size_t)lab_disk_size(disk, FILE_NAME), length = sizeof entry - 1, found = 0;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(lab_disk_read(disk, FILE_NAME, 0, bytes, size), size);
    for (size_t at = 0; at + length < size; at++) {
        if (memcmp(bytes + at, entry, length) != 0) continue;
        lab_disk_corrupt(disk, FILE_NAME, at, 1, 1);
        found++;
    }
    free(bytes);
    assert_true(found > 0);
}

/* The name in the table is right, though the row cannot be read: without it the log's last change would look like the
 * whole document. */
static void repair_keeps_the_name_of_a_row_whose_large_value_is_damaged(void **state) {
    lab_disk *disk = make_file(false);
    repaired r = { 0 };
    seen now = { 0 };
    assert_int_equal(run_sql(disk, "update large set value = replace(value, 'aaaa', 'aaab') where"
                                   " doc = (select doc from head where id = 'large0')"),
                     0);
    damage_indexed_name(disk);
    assert_int_equal(repair(disk, false, &r), HD_CORRUPT);
    hd_runtime *rt = open_on(disk, true);
    read_all(rt, UINT32_MAX, &now);
    hd_close(rt);
    assert_int_equal(now.right, DOCS - 1);
    assert_int_equal(now.refused, 1);
    lab_disk_free(disk);
}

/* After any damage: what repair leaves is right, told as lost, or removed and told so. */
static void repair_never_makes_damage_look_good(void **state) {
    lab_random random = lab_random_of(lab_seed() + 1);
    lab_disk *whole[2] = { make_file(false), make_file(true) };
    for (uint64_t i = 0; i < file_count(); i++) {
        lab_disk *disk = lab_disk_clone(whole[i % 2]);
        if (i % 3) damage_row(disk, &random);
        else damage_bytes(disk, &random, FILE_NAME);
        repaired r = { 0 };
        bool drop = i % 4 == 1;
        hd_status status = repair(disk, drop, &r);
        seen now = { 0 };
        hd_runtime *rt;
        if (!status) assert_int_equal(check_file(disk), HD_OK);
        if (drop) assert_true(status || r.removed || r.restored || !check_file(disk));
        else if (!try_open(disk, true, &rt)) {
            read_all(rt, UINT32_MAX, &now);
            hd_close(rt);
            if (!status && now.right != DOCS) assert_int_not_equal(check_file(disk), HD_OK);
        } else assert_int_not_equal(status, HD_OK);
        lab_disk_free(disk);
    }
    lab_disk_free(whole[0]);
    lab_disk_free(whole[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_pages_are_never_read_as_good),
        cmocka_unit_test(a_damaged_wal_is_never_read_as_good),
        cmocka_unit_test(damaged_rows_are_never_read_as_good),
        cmocka_unit_test(a_commit_with_two_entries_for_a_document_is_damage),
        cmocka_unit_test(repair_restores_documents_that_the_log_has),
        cmocka_unit_test(repair_says_what_it_cannot_restore),
        cmocka_unit_test(repair_does_not_overlook_what_check_finds),
        cmocka_unit_test(repair_finds_a_damaged_name_in_the_index),
        cmocka_unit_test(repair_keeps_the_name_of_a_row_whose_large_value_is_damaged),
        cmocka_unit_test(repair_never_makes_damage_look_good),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
