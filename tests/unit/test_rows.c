/* test_rows.c -- rows of nodes: their reads, their hashes, and rows that are malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "scheduler/persistence/persistence.h"
#include "value/diff.h"
#include "value/json_read.h"
#include "value/key.h"
#include "vfs.h"
#include <heddle.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static lab_env *world;
static hd_heap *heap;
static struct key *space;

static int set_up(void **state) {
    world = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
    space = key_intern(heap, "main", 4);
    return 0;
}
static int tear_down(void **state) {
    key_unref(space);
    hd_heap_close(heap);
    lab_env_close(world); /* aborts on a leak */
    return 0;
}

/* ---- reads */

static void reads_stand_one_in_a_line(void **state) {
    const char *reads = "main/a\n~main/b#/c\n=main/d\n", *cell;
    size_t length;
    read_cell read;
    assert_true(reads_next(&reads, &cell, &length) && reads_split(cell, length, &read));
    assert_memory_equal(cell, "main/a", length);
    assert_true(reads_next(&reads, &cell, &length) && reads_split(cell, length, &read));
    assert_true(read.shape && !read.output && read.path_length == 2);
    assert_true(reads_next(&reads, &cell, &length) && reads_split(cell, length, &read));
    assert_true(read.output && !read.unclaimed);
    assert_false(reads_next(&reads, &cell, &length));
}

static void a_read_that_names_no_document_is_malformed(void **state) {
    static const char *const lines[] = {
        "", "nothing", "/x", "main/", "main@x/y", "main/x#y", "?~"
    };
    read_cell read;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(reads_split(lines[i], strlen(lines[i]), &read));
}

/* ---- hashes */

static places ps;
static place_id doc;

static uint64_t hash_of(const char *json, const char *pointer, uint32_t how) {
    hd_path path;
    place_id at;
    hd_value v = json ? json_read(heap, json, strlen(json), NULL) : value_absent();
    assert_int_equal(path_parse(heap, pointer, strlen(pointer), &path, NULL), HD_OK);
    assert_int_equal(places_inner(&ps, doc, path, &at), HD_OK);
    place_ref(&ps, at);
    hd_value before = place_show(place_at(&ps, doc), v, 1);
    place_walk(&ps, doc, before, NULL, NULL);
    value_unref(before);
    path_unref(heap, path);
    return match_hash(&ps, at | how);
}

/* MATCHING 2.4: equal exactly where a change from one to the other would be no reason to run. */
static void hashes_are_equal_where_a_change_is_none(void **state) {
    uint32_t home;
    struct key *id = key_intern(heap, "d", 1);
    places_init(&ps, lab_env_of(world), heap);
    assert_int_equal(places_home(&ps, space, HD_SCOPE_SPACE, NULL, false, &home), HD_OK);
    assert_int_equal(places_doc(&ps, home, id, &doc), HD_OK);
    place_ref(&ps, doc);
    const char *one = "{\"a\":{\"b\":1,\"c\":[1,2]},\"x\":1}",
               *two = "{\"a\":{\"b\":2,\"c\":[3,4]},\"x\":1}";
    assert_true(hash_of(one, "/x", 0) == hash_of(two, "/x", 0));
    assert_true(hash_of(one, "/a", 0) != hash_of(two, "/a", 0));
    assert_true(hash_of(one, "/a", KEY_SHAPE) == hash_of(two, "/a", KEY_SHAPE));
    assert_true(hash_of(one, "/a/c", KEY_SHAPE) == hash_of(two, "/a/c", KEY_SHAPE));
    assert_true(hash_of(one, "/a/c/length", 0) == hash_of(two, "/a/c/length", 0));
    assert_true(hash_of(one, "/a", KEY_SHAPE) != hash_of("{\"a\":{\"b\":1}}", "/a", KEY_SHAPE));
    assert_true(hash_of("[]", "", KEY_SHAPE) != hash_of("{}", "", KEY_SHAPE));
    assert_true(hash_of(NULL, "/a/b", 0) != hash_of("{}", "/a/b", 0)); /* it can be reached */
    assert_true(hash_of("{}", "/a/b", 0) != hash_of("{\"a\":{}}", "/a/b", 0));
    assert_true(hash_of("42", "/a", 0) == hash_of("43", "/a", 0));
    assert_true(hash_of("42", "/a", 0) !=
                hash_of("{\"$link\":{\"id\":\"z\"}}", "/a", 0)); /* it may lead there */
    value_unref(place_show(place_at(&ps, doc), value_absent(), 1));
    places_fini(&ps);
    key_unref(id);
}

/* Heaps that have the same secret agree. */
static void a_secret_makes_hashes_of_two_processes_equal(void **state) {
    hd_heap *other;
    hd_value here, there;
    const char *json = "{\"a\":[1,2.5,\"x\"],\"b\":null}";
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &other), HD_OK);
    heap_take_secret(heap, "seed", 4);
    heap_take_secret(other, "seed", 4);
    here = json_read(heap, json, strlen(json), NULL);
    there = json_read(other, json, strlen(json), NULL);
    assert_true(value_hash(heap, here).lo == value_hash(other, there).lo);
    assert_true(value_shape_hash(heap, here).lo == value_shape_hash(other, there).lo);
    value_unref(here);
    value_unref(there);
    hd_heap_close(other);
}

/* ---- malformed rows */

#define FILE_NAME "rows.db"

static int runs, warnings;

static void note_line(hd_log_level level, const char *line, void *ctx) {
    warnings += level == HD_LOG_WARN && strstr(line, "the row of main:main:twice is malformed");
}

static hd_status twice(hd_tx *tx, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    runs++;
    int64_t x = hd_value_as_int(hd_tx_get(tx, hd_cell_at(rt, "main/x")), 0);
    return hd_tx_set_int(tx, hd_cell_at(rt, "main/twice"), 2 * x);
}

static void show(hd_value v, void *ctx) { *(int64_t *)ctx = hd_value_as_int(v, 0); }

/* How often the node runs after a start, with the right value in the end. */
static int runs_of_a_start(lab_disk *disk) {
    hd_env env = hd_env_system();
    hd_runtime *rt;
    int64_t last = 0;
    env.log = note_line;
    hd_options options = { .vfs = lab_disk_vfs(disk), .env = &env };
    runs = warnings = 0;
    assert_int_equal(hd_open(FILE_NAME, &options, &rt, NULL), HD_OK);
    hd_cell out = hd_cell_at(rt, "main/twice");
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/x"), "21"), HD_OK);
    assert_true(hd_compute(rt, "twice", twice, NULL, out).id);
    hd_sink(rt, out, show, &last);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(last, 42);
    assert_int_equal(hd_close(rt), HD_OK);
    return runs;
}

static void run_sql(lab_disk *disk, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), 0);
    assert_true(sqlite3_changes(db));
    sqlite3_close(db);
}

static int runs_after(lab_disk *whole, const char *change) {
    char sql[160];
    lab_disk *disk = lab_disk_clone(whole);
    snprintf(sql, sizeof sql, "update node set %s where name = 'main:main:twice'", change);
    run_sql(disk, sql);
    int count = runs_of_a_start(disk);
    lab_disk_free(disk);
    return count;
}

/* C294: a malformed row is as none: the node runs. The log of the program names the row. */
static void a_malformed_row_is_as_none(void **state) {
    static const char *const changes[] = {
        "hashes = substr(hashes, 2)",       "hashes = ''",
        "hashes = hashes || 'AAAAAAAAAAA'", "reads = 'nothing'",
        "reads = replace(reads, '/', '')",  "reads = reads || reads, hashes = hashes || hashes",
        "reads = replace(reads, 'x', '!')",
    };
    lab_disk *whole = lab_disk_new(NULL);
    assert_int_equal(runs_of_a_start(whole), 1);
    assert_int_equal(runs_of_a_start(whole), 0);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_int_equal(runs_after(whole, changes[i]), 1);
        assert_int_equal(warnings, 1);
    }
    assert_int_equal(runs_after(whole, "instance = 'ann'"), 1);
    assert_int_equal(runs_after(whole, "print = ''"), 1);
    assert_int_equal(runs_after(whole, "seqs = '[]'"), 1);
    assert_int_equal(runs_after(whole, "flags = '?!'"), 0);
    assert_int_equal(runs_after(whole, "seqs = '{}'"), 0);
    lab_disk_free(whole);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(reads_stand_one_in_a_line),
        EACH(a_read_that_names_no_document_is_malformed),
        EACH(hashes_are_equal_where_a_change_is_none),
        EACH(a_secret_makes_hashes_of_two_processes_equal),
        cmocka_unit_test(a_malformed_row_is_as_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
