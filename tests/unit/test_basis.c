/* test_basis.c -- rows about nodes: their form, the last of each, and hashes of reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/basis/basis.h"
#include "scheduler/persistence/persistence.h"
#include "value/diff.h"
#include "value/json_read.h"
#include "value/key.h"
#include "value/object.h"
#include <stdio.h>
#include <string.h>

static lab_env *world;
static hd_heap *heap;
static basis rows;
static struct key *spaces[2];
static uint64_t seqs[2];
static char text[2048];

static uint64_t seq_of(void *ctx, const char *space, size_t length) {
    for (int i = 0; i < 2; i++)
        if (!strncmp(key_bytes(spaces[i]), space, length)) return seqs[i];
    return 0;
}
static const basis_point now = { NULL, seq_of };

static int open_rows(bool overlay) {
    world = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
    basis_init(&rows, lab_env_of(world), heap, overlay);
    spaces[0] = key_intern(heap, "main", 4);
    spaces[1] = key_intern(heap, "other", 5);
    seqs[0] = 10;
    seqs[1] = 20;
    return 0;
}
static int set_up(void **state) { return open_rows(false); }
static int set_up_overlay(void **state) { return open_rows(true); }
static int tear_down(void **state) {
    basis_check(&rows);
    basis_fini(&rows);
    key_unref(spaces[0]);
    key_unref(spaces[1]);
    hd_heap_close(heap);
    lab_env_close(world); /* aborts on a leak */
    return 0;
}

static void apply(const char *json, uint64_t at) {
    hd_value extra = json_read(heap, json, strlen(json), NULL);
    if (basis_fault(extra)) fail_msg("%s", basis_fault(extra));
    assert_int_equal(basis_apply(&rows, extra, &now, at), HD_OK);
    value_unref(extra);
    basis_check(&rows);
}

static bool is_refused(const char *json) {
    hd_value extra = json_read(heap, json, strlen(json), NULL);
    bool refused = basis_fault(extra);
    value_unref(extra);
    return refused;
}

static bool print_row(void *ctx, const basis_row *row) {
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s %s@%d,%d;", row->text[ROW_NAME],
             row->text[ROW_INSTANCE], row->text[ROW_HASHES],
             (int)hd_value_as_int(object_get_bytes(row->seqs, "main", 4), -1),
             (int)hd_value_as_int(object_get_bytes(row->seqs, "other", 5), -1));
    return true;
}
/* "name hashes@seq,seq;" for each row */
static const char *told(const char *piece) {
    text[0] = '\0';
    basis_tell(&rows, piece, 0, print_row, NULL);
    return text;
}

#define H1                       "AAAAAAAAAAA"
#define H2                       "BBBBBBBBBBB"
#define ROW(name, hashes, reads) "[\"" name "\",\"\",\"" hashes "\",\"f\",\"\",\"" reads "\"]"
#define NODES(items)             "{\"nodes\":[" items "]}"

/* ---- the form */

/* C294: what is missing or of another kind is refused. */
static void what_is_not_of_the_form_is_refused(void **state) {
    assert_false(is_refused(NODES(ROW("main:p:a", H1, "main/x#/y\\n?~main/z!\\n=main/w"))));
    assert_false(is_refused("{\"gone\":[[\"main:p:a\",\"user:ann\"],[\"main:p:a\",\"gates\"]]}"));
    assert_true(is_refused("[]"));
    assert_true(is_refused(NODES(ROW("main:a", H1, ""))));
    assert_true(is_refused(NODES("[\"main:p:a\",\"ann\",\"" H1 "\",\"f\",\"\",\"\"]")));
    assert_true(is_refused(NODES(ROW("main:p:a", "short", ""))));
    assert_true(is_refused(NODES("[\"main:p:a\",\"\",\"" H1 "\",\"\",\"\",\"\"]")));
    assert_true(is_refused(NODES("[\"main:p:a\",\"\",\"" H1 "\",\"f\"]")));
    assert_true(is_refused(NODES("[\"main:p:a\",\"\",\"" H1 "\",\"f\",\"\",{}]")));
    assert_true(is_refused(NODES(ROW("main:p:a", H1, "nothing"))));
    /* As formats before the fourth had it. */
    assert_true(is_refused(NODES("[\"main:p:a\",\"\",\"f\",{\"r\":[\"main/x\"]}]")));
    assert_true(is_refused(NODES("[\"main:p:a\",\"\",\"f\"]")));
    assert_true(is_refused("{\"gone\":[[\"main:p:a\"]]}"));
}

static void reads_stand_one_in_a_line(void **state) {
    const char *reads = "main/a\n~main/b#/c\n=main/d\n", *cell;
    size_t length;
    basis_read read;
    assert_true(basis_next_cell(&reads, &cell, &length) && basis_parse_cell(cell, length, &read));
    assert_memory_equal(cell, "main/a", length);
    assert_true(basis_next_cell(&reads, &cell, &length) && basis_parse_cell(cell, length, &read));
    assert_true(read.shape && !read.output && read.path_length == 2);
    assert_true(basis_next_cell(&reads, &cell, &length) && basis_parse_cell(cell, length, &read));
    assert_true(read.output && !read.unclaimed);
    assert_false(basis_next_cell(&reads, &cell, &length));
}

/* ---- the last row counts */

static void a_row_is_as_of_the_spaces_that_it_reads(void **state) {
    apply(NODES(ROW("main:p:b", H1, "main/x") "," ROW("main:p:a", H1, "other/y") "," ROW(
              "main:p:c", H1, "main/x\\nother/y")),
          1);
    assert_string_equal(told("main:p"), "main:p:b " H1 "@10,-1;main:p:c " H1 "@10,20;"
                                        "main:p:a " H1 "@-1,20;");
    assert_string_equal(told("main:q"), "");
}

static void a_row_replaces_the_one_before(void **state) {
    apply(NODES(ROW("main:p:a", H1, "main/x")), 1);
    seqs[0] = 11;
    apply(NODES(ROW("main:p:a", H2, "main/x")), 2);
    assert_string_equal(told("main:p"), "main:p:a " H2 "@11,-1;");
}

static void a_deleted_row_is_not_told(void **state) {
    apply(NODES(ROW("main:p:a", H1, "main/x") "," ROW("main:p:b", H1, "main/x")), 1);
    apply("{\"gone\":[[\"main:p:a\",\"\"],[\"main:p:none\",\"\"]]}", 2);
    assert_string_equal(told("main:p"), "main:p:b " H1 "@10,-1;");
}

/* A node may leave and be registered again under its name before the seal. */
static void a_row_beside_its_deletion_stays(void **state) {
    apply("{\"gone\":[[\"main:p:a\",\"\"]],\"nodes\":[" ROW("main:p:a", H1, "main/x") "]}", 1);
    assert_string_equal(told("main:p"), "main:p:a " H1 "@10,-1;");
}

/* ---- over rows in a file */

static void over_a_file_deletions_are_remembered(void **state) {
    apply(NODES(ROW("main:p:a", H2, "main/x")), 1);
    apply("{\"gone\":[[\"main:p:a\",\"\"]]}", 2);
    const basis_entry *e = basis_find(&rows, "main:p:a", "");
    assert_true(e && basis_is_gone(e));
    apply("{\"gone\":[[\"main:p:b\",\"\"]]}", 3);
    e = basis_find(&rows, "main:p:b", "");
    assert_true(e && basis_is_gone(e));
    assert_string_equal(told("main:p"), "");
    basis_trim(&rows, 2);
    assert_null(basis_find(&rows, "main:p:a", ""));
    assert_non_null(basis_find(&rows, "main:p:b", ""));
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
    assert_int_equal(places_home(&ps, spaces[0], HD_SCOPE_SPACE, NULL, false, &home), HD_OK);
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

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(what_is_not_of_the_form_is_refused),
        EACH(reads_stand_one_in_a_line),
        EACH(a_row_is_as_of_the_spaces_that_it_reads),
        EACH(a_row_replaces_the_one_before),
        EACH(a_deleted_row_is_not_told),
        EACH(a_row_beside_its_deletion_stays),
        cmocka_unit_test_setup_teardown(over_a_file_deletions_are_remembered, set_up_overlay,
                                        tear_down),
        EACH(hashes_are_equal_where_a_change_is_none),
        EACH(a_secret_makes_hashes_of_two_processes_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
