/* test_footprint_ops.c -- a commit that says what it changes by its operations (TX_BY_OPS) is never said to change less
 * than it does: whoever has read a place whose value it changed is refused. Judged by comparing values, over random
 * documents and operations, by the writer that admitted the commit and by one that has only read it in the log. */
#define _GNU_SOURCE
#include "lab.h"
#include "folder.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <heddle.h>

enum { ROUNDS = 400 };

/* Of depth 1 to 3; "l" may be an array. */
static const char *const paths[] = { "/a",   "/b",     "/l",     "/a/x",   "/a/y",
                                     "/b/x", "/b/x/u", "/a/x/u", "/l/0/x", "/a/y/v" };
enum { PATHS = sizeof paths / sizeof *paths };

static lab_random random_;

static hd_value some_value(hd_pool *pool) {
    static const char *const forms[] = { "1",
                                         "2",
                                         "\"t\"",
                                         "{}",
                                         "[]",
                                         "{\"x\": 1}",
                                         "{\"x\": {\"u\": 1}, \"y\": 2}",
                                         "[{\"x\": 1}, 2]" };
    const char *text = forms[lab_random_below(&random_, sizeof forms / sizeof *forms)];
    return hd_json_parse(pool, text, strlen(text), NULL);
}

static void operate(hd_tx *tx, hd_cell doc) {
    static const op_kind kinds[] = { OP_SET, OP_SET, OP_REMOVE, OP_APPEND, OP_SPLICE };
    const char *text = paths[lab_random_below(&random_, PATHS)];
    hd_path path;
    assert_int_equal(path_parse(tx->r->heap, text, strlen(text), &path, NULL), HD_OK);
    op_kind kind = kinds[lab_random_below(&random_, 5)];
    hd_value v = kind == OP_REMOVE ? (hd_value){ 0 } : some_value(hd_tx_pool(tx));
    if (kind == OP_SPLICE) v = hd_array();
    /* What does not fit changes nothing. */
    hd_status status = tx_write_path(tx, kind, doc.id, path, v, lab_random_below(&random_, 3));
    assert_true(status == HD_OK || status == HD_KIND || status == HD_RANGE);
    path_unref(tx->r->heap, path);
}

static void note(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

static hd_runtime *open_store(const char *file) {
    hd_runtime *rt;
    assert_int_equal(hd_open(file, NULL, &rt, NULL), HD_OK);
    return rt;
}

static void print(hd_pool *pool, hd_value v, char out[400]) {
    const char *text = hd_json_print(pool, v, HD_JSON_COMPACT, NULL);
    snprintf(out, 400, "%s", text ? text : "");
}

/* The reader's transaction: it has read one place, and writes elsewhere. */
static hd_tx *begin_reading(hd_runtime *rt, const char *path, char before[400]) {
    char name[64];
    hd_tx *tx;
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    snprintf(name, sizeof name, "main/d#%s", path);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    print(hd_tx_pool(tx), hd_tx_get(tx, hd_cell_at(rt, name)), before);
    return tx;
}

static bool is_refused(hd_runtime *rt, hd_tx *tx) {
    static int64_t serial;
    hd_status verdict = HD_PENDING;
    assert_int_equal(hd_tx_set(tx, hd_cell_at(rt, "main/e"), hd_int(hd_tx_pool(tx), ++serial)),
                     HD_OK);
    hd_status status = hd_tx_commit(tx, note, &verdict);
    if (!status) (void)hd_runtime_sync(rt);
    return status || verdict;
}

static bool has_changed(hd_runtime *rt, const char *path, const char *before) {
    char name[64], now[400];
    hd_pool *pool;
    snprintf(name, sizeof name, "main/d#%s", path);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    print(pool, hd_read(rt, pool, hd_cell_at(rt, name)), now);
    hd_pool_close(pool);
    return strcmp(before, now) != 0;
}

static void write_by_ops(hd_runtime *rt) {
    hd_tx *tx;
    hd_cell doc = hd_cell_at(rt, "main/d");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    tx->flags |= TX_BY_OPS;
    for (uint64_t n = 1 + lab_random_below(&random_, 3); n--;) operate(tx, doc);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static void one_round(hd_runtime *writer, hd_runtime *reader) {
    const char *path = paths[lab_random_below(&random_, PATHS)];
    char before[400] = "";
    hd_tx *tx = begin_reading(reader, path, before);
    write_by_ops(writer);
    bool refused = is_refused(reader, tx);
    if (has_changed(reader, path, before)) assert_true(refused);
}

static void no_change_is_left_out(void **state) {
    (void)state;
    char file[256];
    random_ = lab_random_of(lab_seed());
    folder_store(file, sizeof file, "ops.db");
    hd_runtime *writer = open_store(file), *reader = open_store(file);
    for (int i = 0; i < ROUNDS; i++) one_round(writer, reader);
    assert_int_equal(hd_close(reader), HD_OK);
    assert_int_equal(hd_close(writer), HD_OK);
}

/* Readers of what lies beside the paths of plain operations are not disturbed. */
static void a_plain_set_touches_its_own_path(void **state) {
    (void)state;
    char file[256], before[400];
    folder_store(file, sizeof file, "plain.db");
    hd_runtime *writer = open_store(file), *reader = open_store(file);
    assert_int_equal(
        hd_write_json(writer, hd_cell_at(writer, "main/d"), "{\"a\": {\"x\": 1, \"y\": 1}}"),
        HD_OK);
    assert_int_equal(hd_runtime_sync(writer), HD_OK);
    hd_tx *tx = begin_reading(reader, "/a/y", before), *by;
    hd_path path;
    assert_int_equal(hd_tx_begin(writer, &by), HD_OK);
    by->flags |= TX_BY_OPS;
    assert_int_equal(path_parse(by->r->heap, "/a/x", 4, &path, NULL), HD_OK);
    assert_int_equal(
        tx_write_path(by, OP_SET, hd_cell_at(writer, "main/d").id, path, hd_int(NULL, 2), 0),
        HD_OK);
    path_unref(by->r->heap, path);
    assert_int_equal(hd_tx_commit(by, NULL, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(writer), HD_OK);
    assert_false(is_refused(reader, tx));
    assert_int_equal(hd_close(reader), HD_OK);
    assert_int_equal(hd_close(writer), HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_change_is_left_out, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_plain_set_touches_its_own_path, folder_make,
                                        folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
