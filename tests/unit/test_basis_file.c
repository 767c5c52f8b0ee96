/* test_basis_file.c -- rows about nodes in a file: folded by checkpoints, found again after a restart,
 * and the index from documents to the nodes that read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/basis.h"
#include "store/runtime.h"
#include "store/sqlite_log.h"
#include "store/sqlite_schema.h"
#include "store/tx.h"
#include "value/json_read.h"
#include "vfs.h"
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "store.db"

static lab_disk *disk;
static hd_runtime *rt;
static char text[65536];

/* ---- a small world */

static void open_store(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_error error;
    if (hd_open(FILE_NAME, &options, &rt, &error)) fail_msg("open: %s", error.message);
}

static void close_store(void) {
    assert_int_equal(hd_close(rt), HD_OK);
    rt = NULL;
}

static void reopen(void) {
    close_store();
    open_store();
}

static int set_up(void **state) {
    disk = lab_disk_new(NULL);
    open_store();
    return 0;
}
static int tear_down(void **state) {
    if (rt) close_store();
    lab_disk_free(disk);
    return 0;
}

static void write_cell(const char *cell, const char *json) {
    hd_cell at = hd_cell_at(rt, cell);
    hd_status status = json ? hd_write_json(rt, at, json) : HD_OK;
    if (!json) {
        hd_tx *tx;
        assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
        assert_int_equal(hd_tx_remove(tx, at), HD_OK);
        status = hd_tx_commit(tx, NULL, NULL);
    }
    assert_int_equal(status, HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void keep(const char *extra) {
    commit *c = replica_commit_new(&rt->r, HD_COMMIT_DERIVED);
    c->extra = json_read(rt->heap, extra, strlen(extra), NULL);
    assert_true(basis_well_formed(c->extra, NULL));
    replica_enqueue(&rt->r, c);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void checkpoint(void) { assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK); }

static void add(const char *format, ...) {
    va_list arguments;
    size_t n = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + n, sizeof text - n, format, arguments);
    va_end(arguments);
}

static void add_value(hd_value v) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(rt->heap, &pool), HD_OK);
    add("%s", hd_json_print(pool, v, HD_JSON_COMPACT, NULL));
    hd_pool_close(pool);
}

static bool add_row(void *ctx, const basis_row *row) {
    add("%s|%s|%s|%d|", row->name, row->instance, row->fingerprint, row->stale);
    if (row->plain.at) add("{\"r\":[%.*s", (int)(row->plain.end - row->plain.at), row->plain.at);
    else add_value(row->body);
    add("@%d;", (int)hd_value_as_int(hd_value_at(row->seqs, "main"), 0));
    return true;
}

static const char *rows(const char *piece) {
    authority *a = rt->r.authority;
    hd_value valid;
    text[0] = '\0';
    assert_int_equal(a->ops->basis->rows(a, piece, &valid, add_row, NULL), HD_OK);
    if (value_exists(valid)) add_value(valid);
    value_unref(valid);
    return text;
}

static bool add_change(void *ctx, const basis_change *change) {
    char cell[128], path[128];
    hd_cell_print(rt, (hd_cell){ change->doc }, cell, sizeof cell);
    hd_path_print(rt->heap, change->path, path, sizeof path);
    add("%s%s%s@%d;", cell, change->flags & TOUCH_WHOLE ? "*" : "", path, (int)change->seq);
    return true;
}

static const char *changes(uint64_t after) {
    authority *a = rt->r.authority;
    text[0] = '\0';
    struct key *space = key_intern(rt->heap, "main", 4);
    assert_int_equal(a->ops->basis->changes(a, space, after, add_change, NULL), HD_OK);
    key_unref(space);
    return text;
}

/* What a query answers, columns with ',' and rows with ';' between. */
static const char *sql(const char *query) {
    static char answer[8192];
    sqlite3 *db;
    sqlite3_stmt *s;
    answer[0] = '\0';
    sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk));
    if (sqlite3_prepare_v2(db, query, -1, &s, NULL)) fail_msg("%s", sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            size_t n = strlen(answer);
            const char *value = (const char *)sqlite3_column_text(s, i);
            snprintf(answer + n, sizeof answer - n, "%s%s", value ? value : "null",
                     i + 1 < sqlite3_column_count(s) ? "," : ";");
        }
    sqlite3_finalize(s);
    sqlite3_close(db);
    return answer;
}

/* ---- rows */

#define ROW(name, reads) "[\"main:p:" name "\",\"\",\"f\",{\"r\":[" reads "]}]"

static void rows_are_there_after_a_restart_with_and_without_a_checkpoint(void **state) {
    write_cell("main/n", "1");
    keep("{\"nodes\":[" ROW("x", "\"main/n\"") "," ROW("y", "") "]}");
    static const char wanted[] = "main:p:x||f|0|{\"r\":[\"main/n\"]}@1;main:p:y||f|0|{\"r\":[]}@1;";
    assert_string_equal(rows("main:p"), wanted);
    checkpoint();
    assert_string_equal(rows("main:p"), wanted);
    reopen();
    assert_string_equal(rows("main:p"), wanted);
}

static void the_tail_goes_over_the_file(void **state) {
    keep("{\"nodes\":[" ROW("a", "") "," ROW("c", "") "," ROW("e", "") "]}");
    checkpoint();
    keep("{\"nodes\":[" ROW("b", "") "," ROW("c", "\"main/n\"") "," ROW(
        "f", "") "],"
                 "\"gone\":[[\"main:p:e\",\"\"]],\"pieces\":[[\"main:p\",{\"main\":0},[\"main:p:"
                 "a\"]]]}");
    static const char wanted[] = "main:p:a||f|1|{\"r\":[]}@0;main:p:b||f|0|{\"r\":[]}@0;"
                                 "main:p:c||f|0|{\"r\":[\"main/n\"]}@0;"
                                 "main:p:f||f|0|{\"r\":[]}@0;{\"main\":0}";
    assert_string_equal(rows("main:p"), wanted);
    reopen();
    assert_string_equal(rows("main:p"), wanted);
}

static void a_row_proved_anew_keeps_what_it_reads(void **state) {
    write_cell("main/n", "1");
    keep("{\"nodes\":[" ROW("x", "\"main/n\"") "]}");
    checkpoint();
    write_cell("main/n", "2");
    keep("{\"nodes\":[[\"main:p:x\",\"\",\"f\"],[\"main:p:none\",\"\",\"f\"]]}");
    static const char wanted[] = "main:p:x||f|0|{\"r\":[\"main/n\"]}@2;";
    assert_string_equal(rows("main:p"), wanted);
    reopen();
    assert_string_equal(rows("main:p"), wanted);
    assert_string_equal(sql("select seqs from node"), "{\"main\":2};");
}

/* C314: a run replaces its rows, and narrowing deletes those that nobody stands on any more. */
static void the_index_follows_the_read_sets(void **state) {
    keep("{\"nodes\":[" ROW(
        "x", "\"main/a#/p\",\"main/a#/q\",\"main/b\"") ","
                                                       "[\"main:p:x\",\"user:ann\",\"f\",{\"r\":["
                                                       "\"main@user/a\",\"main/b\"]}]]}");
    checkpoint();
    assert_string_equal(sql("select id, scope, b.instance, n.instance from basis b join node n"
                            " using(node) order by id, n.instance"),
                        "a,space,,;a,user,ann,user:ann;b,space,,;b,space,,user:ann;");
    keep("{\"nodes\":[" ROW("x",
                            "\"main/b\",\"main/c\"") "],\"gone\":[[\"main:p:x\",\"user:ann\"]]}");
    reopen();
    assert_string_equal(sql("select id, n.name from basis join node n using(node) order by id"),
                        "b,main:p:x;c,main:p:x;");
    assert_string_equal(sql("select count(*) from basis"), "2;");
}

/* One random extra; nodes of two pieces. */
static void random_extra(lab_random *r, char *out, size_t size) {
    size_t n = (size_t)snprintf(out, size, "{\"nodes\":[");
    for (uint64_t i = 0, count = 1 + lab_random_below(r, 4); i < count; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s[\"main:p%d:n%d\",\"\"", i ? "," : "",
                              (int)lab_random_below(r, 2), (int)lab_random_below(r, 9));
        if (!lab_random_once_in(r, 4))
            n += (size_t)snprintf(out + n, size - n, ",\"%df\",{\"r\":[\"main/d%d\",\"main/e%d\"]}",
                                  (int)lab_random_below(r, 3), (int)lab_random_below(r, 5),
                                  (int)lab_random_below(r, 5));
        else n += (size_t)snprintf(out + n, size - n, ",\"f\"");
        n += (size_t)snprintf(out + n, size - n, "]");
    }
    n += (size_t)snprintf(out + n, size - n, "]");
    if (lab_random_once_in(r, 4))
        n += (size_t)snprintf(out + n, size - n,
                              ",\"pieces\":[[\"main:p0\",{\"main\":%d},[\"main:p0:n%d\"]]]",
                              (int)lab_random_below(r, 50), (int)lab_random_below(r, 9));
    if (lab_random_once_in(r, 3))
        n += (size_t)snprintf(out + n, size - n, ",\"gone\":[[\"main:p%d:n%d\",\"\"]]",
                              (int)lab_random_below(r, 2), (int)lab_random_below(r, 9));
    snprintf(out + n, size - n, "}");
}

/* The file, with checkpoints and restarts in between, against a store in memory that hears the
 * same. */
static void rows_in_a_file_are_what_a_store_in_memory_has(void **state) {
    lab_random r = lab_random_of(lab_seed());
    static char in_file[65536];
    hd_runtime *memory, *ours;
    assert_int_equal(hd_open(NULL, NULL, &memory, NULL), HD_OK);
    for (int round = 0; round < 200; round++) {
        char extra[2048];
        random_extra(&r, extra, sizeof extra);
        write_cell("main/tick", round % 2 ? "1" : "2");
        keep(extra);
        if (lab_random_once_in(&r, 6)) checkpoint();
        if (lab_random_once_in(&r, 12)) reopen();
        snprintf(in_file, sizeof in_file, "%s", rows("main:p0"));
        snprintf(in_file + strlen(in_file), sizeof in_file - strlen(in_file), "%s",
                 rows("main:p1"));
        ours = rt;
        rt = memory;
        write_cell("main/tick", round % 2 ? "1" : "2");
        keep(extra);
        static char in_memory[65536];
        snprintf(in_memory, sizeof in_memory, "%s", rows("main:p0"));
        snprintf(in_memory + strlen(in_memory), sizeof in_memory - strlen(in_memory), "%s",
                 rows("main:p1"));
        rt = ours;
        assert_string_equal(in_file, in_memory);
    }
    assert_int_equal(hd_close(memory), HD_OK);
    /* The index says what the bodies say. */
    close_store();
    assert_string_equal(
        sql("select count(*) from node n, json_each(n.body, '$.r') r where not exists (select 1"
            " from basis b where b.node = n.node and 'main/' || b.id = r.value)"),
        "0;");
    assert_string_equal(
        sql("select count(*) from basis b where not exists (select 1 from node n,"
            " json_each(n.body, '$.r') r where b.node = n.node and 'main/' || b.id = r.value)"),
        "0;");
}

/* ---- changes */

static void changes_are_found_in_the_log_and_below_it_by_seq(void **state) {
    write_cell("main/n", "{\"x\":1,\"y\":1}"); /* 1 */
    write_cell("main/m", "1");                 /* 2 */
    write_cell("main/n#/x", "2");              /* 3 */
    assert_string_equal(changes(2), "main/n/x@3;");
    reopen();
    assert_string_equal(changes(2), ""); /* not known here */
    hd_cell_at(rt, "main/n");
    assert_string_equal(changes(2), "main/n/x@3;");
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    assert_string_equal(changes(2), "main/n*@3;");
    assert_string_equal(changes(3), "");
    assert_int_equal(rt->r.stats.loads, 0);
}

static void a_document_that_is_gone_is_told_as_changed_if_somebody_read_it(void **state) {
    write_cell("main/n", "1");
    write_cell("main/m", "1");
    keep("{\"nodes\":[" ROW("x", "\"main/n\"") "]}");
    write_cell("main/n", NULL);
    write_cell("main/m", NULL);
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    reopen();
    hd_cell_at(rt, "main/n");
    assert_string_equal(changes(2), "main/n*@3;");
    assert_string_equal(sql("select id from head"), "n;");
    /* It is no tombstone of the kind that forbids to make it anew. */
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_require_absent(tx, hd_cell_at(rt, "main/n")), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, hd_cell_at(rt, "main/n"), 5), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    write_cell("main/n", NULL);
    reopen();
    assert_string_equal(sql("select id, guarded from head"), "n,1;");
}

static void a_tombstone_goes_with_the_last_node_that_read_it(void **state) {
    write_cell("main/n", "1");
    keep("{\"nodes\":[" ROW("x", "\"main/n\"") "]}");
    write_cell("main/n", NULL);
    checkpoint();
    assert_string_equal(sql("select id from head"), "n;");
    keep("{\"nodes\":[" ROW("x", "\"main/m\"") "]}");
    checkpoint();
    assert_string_equal(sql("select id from head"), "");
}

/* ---- pieces that would have work to do */

static bool add_stale(void *ctx, const hd_stale_piece *piece) {
    add("%s/%s %d;", piece->space, piece->id, (int)piece->nodes);
    return true;
}

static const char *stale(void) {
    text[0] = '\0';
    assert_int_equal(hd_store_stale_pieces(rt, add_stale, NULL), HD_OK);
    assert_int_equal(rt->r.stats.loads, 0);
    return text;
}

#define NODE(name, reads) "[\"main:" name "\",\"\",\"f\",{\"r\":[" reads "]}]"

static void set_up_pieces(void) {
    write_cell("main/a", "{\"x\":1,\"y\":1}");
    write_cell("main/b", "1");
    keep("{\"nodes\":[" NODE("p:x", "\"main/a#/x\"") "," NODE("p:y", "\"main/a#/y\"") "," NODE(
        "q:b", "\"main/b\",\"main/none\"") "," NODE("r:z", "\"~main/a\",\"main/b!\"") "]}");
    reopen();
    assert_string_equal(stale(), "");
}

static void a_change_makes_pieces_stale_by_path(void **state) {
    set_up_pieces();
    hd_close(rt);
    open_store();
    rt->r.stats.loads = 0;
    write_cell("main/a", "{\"x\":2,\"y\":1}");
    rt->r.stats.loads = 0;
    assert_string_equal(stale(), "main/p 1;");
    reopen(); /* the same with everything folded */
    assert_string_equal(stale(), "main/p 1;");
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    assert_string_equal(stale(), "main/p 2;main/r 1;"); /* what changed in it is known no longer */
    keep("{\"nodes\":[[\"main:p:x\",\"\",\"f\"],[\"main:p:y\",\"\",\"f\"],[\"main:r:z\",\"\",\"f\"]"
         "]}");
    assert_string_equal(stale(), "");
    reopen();
    assert_string_equal(stale(), "");
}

static void a_document_that_appears_makes_stale_who_missed_it(void **state) {
    set_up_pieces();
    write_cell("main/none", "1");
    rt->r.stats.loads = 0;
    assert_string_equal(stale(), "main/q 1;");
    reopen();
    assert_string_equal(stale(), "main/q 1;");
}

/* Another code has replaced the row: a proof of the former is not about this one. */
static void a_proof_of_another_code_says_nothing(void **state) {
    write_cell("main/n", "1");
    keep("{\"nodes\":[" ROW("x", "\"main/n\"") "]}");
    checkpoint();
    write_cell("main/n", "2");
    keep("{\"nodes\":[[\"main:p:x\",\"\",\"g\"]]}");
    static const char wanted[] = "main:p:x||f|0|{\"r\":[\"main/n\"]}@1;";
    assert_string_equal(rows("main:p"), wanted);
    reopen();
    assert_string_equal(rows("main:p"), wanted);
    assert_string_equal(stale(), "main/p 1;");
}

static void what_a_piece_says_counts(void **state) {
    set_up_pieces();
    keep("{\"pieces\":[[\"main:q\",{\"main\":2},[\"main:q:b\"]]]}");
    assert_string_equal(stale(), "main/q 1;");
    reopen();
    assert_string_equal(stale(), "main/q 1;");
    write_cell("main/b", "2");
    keep("{\"pieces\":[[\"main:q\",{\"main\":3},[]]]}"); /* seen, and none the worse */
    rt->r.stats.loads = 0;
    assert_string_equal(stale(), "");
    reopen();
    assert_string_equal(stale(), "");
}

static void rows_of_the_tail_are_looked_at_too(void **state) {
    set_up_pieces();
    keep("{\"nodes\":[" NODE("new:n", "\"main/c\"") "," NODE("q:b", "\"main/c\"") "]}");
    write_cell("main/c", "1");
    write_cell("main/b", "7");
    rt->r.stats.loads = 0;
    assert_string_equal(stale(), "main/q 1;main/new 1;");
    keep("{\"gone\":[[\"main:q:b\",\"\"]]}");
    assert_string_equal(stale(), "main/new 1;");
}

/* ---- the check */

static char findings[4096];
static void add_finding(void *ctx, const char *line) {
    size_t n = strlen(findings);
    snprintf(findings + n, sizeof findings - n, "%s;", line);
}

static const char *check(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    findings[0] = '\0';
    hd_status status = hd_store_check(FILE_NAME, &options, add_finding, NULL, NULL);
    assert_int_equal(status, findings[0] ? HD_CORRUPT : HD_OK);
    return findings;
}

static void the_check_looks_at_rows_and_their_index(void **state) {
    write_cell("main/n", "1");
    keep("{\"nodes\":[" ROW("x", "\"main/n\",\"main/m\"") "," ROW(
        "y", "") "],"
                 "\"pieces\":[[\"main:p\",{\"main\":1},[]]]}");
    close_store();
    assert_string_equal(check(), "");
    sql("delete from basis where id = 'm'");
    assert_string_equal(check(), "node main:p:x: its read of main/m is not in the index;");
    sql("insert into basis values('m', 'main', 'space', '', 1), ('q', 'main', 'space', '', 1),"
        " ('q', 'main', 'space', '', 7)");
    assert_string_equal(check(), "basis: main/q is read by node 7, which is not there;"
                                 "basis: 1 entries that no row asks for;");
    sql("delete from basis where id = 'q'");
    sql("update node set seqs = '{\"main\":9}' where name = 'main:p:y'");
    assert_string_equal(check(), "node main:p:y: seq 9 of space main, the checkpoint is 1;");
    sql("update node set seqs = '{}', body = '{}' where name = 'main:p:y'");
    assert_string_equal(check(), "node main:p:y: its body is malformed;");
    sql("update node set body = '{\"r\":[]}' where name = 'main:p:y'");
    sql("update piece set name = 'main:q'");
    assert_string_equal(check(), "node main:p:x: it is not of the piece 'main:q';"
                                 "node main:p:y: it is not of the piece 'main:q';");
}

/* A row that cannot be read is as good as none: its node runs. */
static void a_row_that_cannot_be_read_is_left_out(void **state) {
    keep("{\"nodes\":[" ROW("w", "") "," ROW("x", "") "," ROW("y", "") "]}");
    close_store();
    sql("update node set seqs = '[1]' where name = 'main:p:w'");
    sql("update node set body = '{' where name = 'main:p:x'");
    open_store();
    assert_string_equal(rows("main:p"), "main:p:y||f|0|{\"r\":[]}@0;");
}

/* ---- formats */

/* A file as format 1 had it, with a document in its head rows and one in its log. */
static void a_file_of_format_1_is_brought_forward(void **state) {
    write_cell("main/n", "1");
    checkpoint();
    write_cell("main/m", "2");
    close_store();
    sql("drop table piece");
    sql("drop index node_stale");
    sql("drop table node");
    sql("drop table basis");
    sql("drop index head_meta");
    sql("pragma user_version = 1");
    hd_options options = { .vfs = lab_disk_vfs(disk), .read_only = true };
    assert_int_equal(hd_open(FILE_NAME, &options, &rt, NULL), HD_OK);
    assert_string_equal(rows("main:p"), ""); /* as it is */
    hd_cell_at(rt, "main/n");
    assert_string_equal(changes(0), "main/n@1;");
    reopen();
    assert_string_equal(sql("pragma user_version"), "3;");
    keep("{\"nodes\":[" ROW("x", "\"main/n\"") "]}");
    reopen();
    assert_string_equal(rows("main:p"), "main:p:x||f|0|{\"r\":[\"main/n\"]}@2;");
    assert_int_equal(sizeof schema_steps / sizeof schema_steps[0], 3);
}

/* The rows of the log as format 2 had them: without a word on which accounts hold. */
static void make_old_rows(void) {
    static const char mark[] = "\"v\":3,";
    char body[4096], update[256];
    for (int row = 1; row < 100; row++) {
        snprintf(update, sizeof update, "select body from log where row = %d", row);
        snprintf(body, sizeof body, "%s", sql(update));
        if (!*body) break;
        char *at = strstr(body, mark), *end = body + strlen(body) - 1; /* with a ';' */
        *end = '\0';
        assert_non_null(at);
        memmove(at, at + sizeof mark - 1, (size_t)(end - at) + 2 - sizeof mark);
        snprintf(update, sizeof update,
                 "update log set body = replace(body, '%s', ''), hash = %lld where row = %d", mark,
                 (long long)file_hash(body, strlen(body)), row);
        sql(update);
    }
    sql("pragma user_version = 2");
}

static void rows_of_format_2_are_believed_as_far_as_their_operations_aim(void **state) {
    write_cell("main/n", "{\"a\":1,\"b\":2}");
    keep("{\"nodes\":[" ROW("x", "\"main/n#/a\"") "]}");
    write_cell("main/n", "{\"a\":1,\"b\":3}");
    assert_string_equal(changes(1), "main/n/b@2;");
    close_store();
    make_old_rows();
    open_store();
    hd_cell_at(rt, "main/n");
    assert_string_equal(changes(1), "main/n*@2;");
    write_cell("main/n", "{\"a\":1,\"b\":4}");
    assert_string_equal(changes(2), "main/n/b@3;");
    reopen();
    assert_string_equal(sql("pragma user_version"), "3;");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(rows_are_there_after_a_restart_with_and_without_a_checkpoint),
        EACH(the_tail_goes_over_the_file),
        EACH(a_row_proved_anew_keeps_what_it_reads),
        EACH(the_index_follows_the_read_sets),
        EACH(a_proof_of_another_code_says_nothing),
        EACH(rows_in_a_file_are_what_a_store_in_memory_has),
        EACH(changes_are_found_in_the_log_and_below_it_by_seq),
        EACH(a_document_that_is_gone_is_told_as_changed_if_somebody_read_it),
        EACH(a_tombstone_goes_with_the_last_node_that_read_it),
        EACH(a_change_makes_pieces_stale_by_path),
        EACH(a_document_that_appears_makes_stale_who_missed_it),
        EACH(what_a_piece_says_counts),
        EACH(rows_of_the_tail_are_looked_at_too),
        EACH(the_check_looks_at_rows_and_their_index),
        EACH(a_row_that_cannot_be_read_is_left_out),
        EACH(a_file_of_format_1_is_brought_forward),
        EACH(rows_of_format_2_are_believed_as_far_as_their_operations_aim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
