/* test_resume_valid.c -- a runtime that closes says how far the rows of its pieces hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/basis.h"
#include "store/runtime.h"
#include "vfs.h"
#include <heddle/scheduler.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "valid.db"

static lab_disk *disk;
static hd_runtime *rt;
static int runs;
static char text[2048];

static void open_store(void) {
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    assert_int_equal(hd_open(FILE_NAME, &options, &rt, NULL), HD_OK);
}
static void reopen(void) {
    assert_int_equal(hd_close(rt), HD_OK);
    open_store();
}

static int set_up(void **state) {
    disk = lab_disk_new(NULL);
    runs = 0;
    open_store();
    return 0;
}
static int tear_down(void **state) {
    assert_int_equal(hd_close(rt), HD_OK);
    lab_disk_free(disk);
    return 0;
}

static void write_cell(const char *cell, const char *json) {
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, cell), json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static hd_status copy_in(hd_tx *tx, void *ctx) {
    hd_value v = hd_tx_get(tx, hd_cell_at(rt, ctx));
    runs++;
    return hd_tx_set_int(tx, hd_cell_at(rt, strcmp(ctx, "main/a") ? "main/b2" : "main/a2"),
                         hd_value_as_int(v, 0));
}

/* A copy of a document, made once although nobody looks. */
static void add_copy(const char *name, const char *in, const char *out) {
    hd_node_spec spec = { .name = name,
                          .fn = copy_in,
                          .ctx = (void *)(uintptr_t)in,
                          .output = hd_cell_at(rt, out),
                          .version = "1",
                          .run_once = runs == 0 };
    hd_node node;
    assert_int_equal(hd_node_register(rt, &spec, &node), HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
}

static bool add_row(void *ctx, const basis_row *row) {
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s;", row->name, row->stale ? " stale" : "");
    return true;
}

/* "name;name stale;@seq" */
static const char *piece(void) {
    authority *a = rt->r.authority;
    hd_value valid;
    text[0] = '\0';
    assert_int_equal(a->ops->basis->rows(a, "main:main", &valid, add_row, NULL), HD_OK);
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "@%d",
             (int)hd_value_as_int(hd_value_at(valid, "main"), -1));
    value_unref(valid);
    return text;
}

static uint64_t seq_now(void) {
    authority *a = rt->r.authority;
    uint64_t seq;
    struct key *space = key_intern(rt->heap, "main", 4);
    assert_int_equal(a->ops->basis->seq_of(a, space, &seq), HD_OK);
    key_unref(space);
    return seq;
}

static void rows_hold_as_of_the_end(void **state) {
    char wanted[128];
    write_cell("main/a", "1");
    add_copy("copy", "main/a", "main/a2");
    assert_int_equal(runs, 1);
    write_cell("main/unrelated", "1");
    reopen();
    snprintf(wanted, sizeof wanted, "main:main:copy;@%d", (int)seq_now());
    assert_string_equal(piece(), wanted);
}

static void a_node_that_is_invalid_at_the_end_is_named(void **state) {
    char wanted[128];
    write_cell("main/a", "1");
    add_copy("copy", "main/a", "main/a2");
    write_cell("main/a", "2"); /* nobody looks: it does not run */
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(runs, 1);
    reopen();
    snprintf(wanted, sizeof wanted, "main:main:copy stale;@%d", (int)seq_now());
    assert_string_equal(piece(), wanted);
    add_copy("copy", "main/a", "main/a2");
    hd_pool *pool;
    assert_int_equal(hd_pool_open(rt->heap, &pool), HD_OK);
    hd_value v = hd_pull_now(rt, pool, hd_cell_at(rt, "main/a2"));
    assert_int_equal(hd_value_as_int(v, 0), 2); /* C296: it runs when it is demanded */
    hd_pool_close(pool);
}

/* Another program's nodes of the same piece: nothing is known of them here. */
static void of_rows_that_are_not_known_here_nothing_is_said(void **state) {
    write_cell("main/a", "1");
    add_copy("copy", "main/a", "main/a2");
    reopen();
    runs = 0;
    write_cell("main/b", "1");
    add_copy("other", "main/b", "main/b2");
    write_cell("main/a", "5"); /* what the first program's node has read */
    reopen();
    authority *a = rt->r.authority;
    hd_value valid;
    text[0] = '\0';
    assert_int_equal(a->ops->basis->rows(a, "main:main", &valid, add_row, NULL), HD_OK);
    assert_true((uint64_t)hd_value_as_int(hd_value_at(valid, "main"), 0) < seq_now());
    value_unref(valid);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(rows_hold_as_of_the_end),
        EACH(a_node_that_is_invalid_at_the_end_is_named),
        EACH(of_rows_that_are_not_known_here_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
