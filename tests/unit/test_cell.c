/* test_cell.c -- names of cells, scopes, schemas, volatile documents, metadata, kinds, listing. */
#include "lab_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "store_world.h"

/* ---- names */

static void assert_prints(hd_cell cell, const char *name) {
    char text[128];
    assert_int_equal(hd_cell_print(lab_rt(a), cell, text, sizeof text), strlen(name));
    assert_string_equal(text, name);
}

static void a_name_and_its_cell_go_both_ways(void **state) {
    static const char *const names[] = {
        "main/n",
        "main/n#/a/b",
        "main/with/slashes#/x",
        "main@user/n",
        "main@session/n#/a",
        "other/n#/a~1b",
        "main/\xC3\xA9#/~0",
        "m-1.x/n#/",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hd_cell cell = hd_cell_at(lab_rt(a), names[i]);
        assert_int_not_equal(cell.id, 0);
        assert_prints(cell, names[i]);
        assert_int_equal(hd_cell_at(lab_rt(a), names[i]).id, cell.id);
    }
    assert_prints(hd_cell_at(lab_rt(a), "main@space/n"), "main/n");
    assert_prints(hd_cell_of(lab_rt(a), "main", HD_SCOPE_USER, "n", "/x"), "main@user/n#/x");
    assert_prints(hd_cell_child(lab_rt(a), lab_cell(a, "n#/x"), "y/z"), "main/n#/x/y~1z");
}

static void a_name_is_cut_where_there_is_no_room(void **state) {
    char text[8];
    assert_int_equal(hd_cell_print(lab_rt(a), lab_cell(a, "n#/abc"), text, sizeof text), 11);
    assert_string_equal(text, "main/n#");
    assert_int_equal(hd_cell_print(lab_rt(a), lab_cell(a, "n#/abc"), NULL, 0), 11);
    assert_int_equal(hd_cell_print(lab_rt(a), (hd_cell){ 0 }, text, sizeof text), 0);
    assert_string_equal(text, "");
}

static void a_malformed_name_gives_no_cell_and_says_why(void **state) {
    static const struct {
        const char *name, *message;
    } bad[] = {
        { "n", "write space/id" },      { "", "write space/id" },
        { "/n", "space is a word" },    { "main/", "id is a text" },
        { "main@team/n", "scope is" },  { "main/n#x", "" },
        { "main/n#/~2", "" },           { "ma\tin/n", "space is a word" },
        { "main/n\n", "id is a text" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hd_cell_at(lab_rt(a), bad[i].name).id, 0);
        assert_non_null(strstr(hd_runtime_error(lab_rt(a))->message, bad[i].message));
        assert_status(hd_runtime_error(lab_rt(a))->status, HD_SYNTAX);
    }
    assert_int_equal(hd_cell_child(lab_rt(a), (hd_cell){ 0 }, "x").id, 0);
}

static void a_link_to_a_cell_leads_back_to_it(void **state) {
    hd_pool *pool;
    assert_status(hd_pool_open(hd_runtime_heap(lab_rt(a)), &pool), HD_OK);
    hd_cell cell = lab_cell(a, "main@user/n#/a~1b/c");
    hd_value link = hd_cell_link(lab_rt(a), pool, cell);
    assert_int_equal(hd_cell_of_link(lab_rt(a), lab_cell(a, "other/x"), link).id, cell.id);
    assert_int_equal(hd_cell_of_link(lab_rt(a), lab_cell(a, "x"), hd_null()).id, 0);
    hd_pool_close(pool);
}

/* ---- scopes */

static void scopes_keep_users_and_sessions_apart(void **state) {
    hd_status status;
    lab_runtime *other = lab_runtime_try(l, "other", "somebody", &status);
    assert_non_null(other);
    lab_do(a, "set n 1; set main@user/n 2; set main@session/n 3");
    lab_settle(l);
    assert_cell(a, "main@session/n", "3");
    assert_cell(b, "n", "1");
    assert_cell(b, "main@user/n", "2");
    assert_cell(b, "main@session/n", "-");
    assert_cell(other, "n", "1");
    assert_cell(other, "main@user/n", "-");
}

static void the_absence_of_a_session_document_is_knowledge(void **state) {
    lab_fate *f = lab_do(b, "get main@session/n; set m 1");
    lab_do(a, "set main@session/n 1"); /* another instance */
    lab_settle(l);
    assert_fate(f, HD_OK);
}

/* ---- volatile documents */

static void a_volatile_document_stays_here(void **state) {
    hd_cell v = lab_cell(a, "v");
    assert_status(hd_cell_set_volatile(lab_rt(a), v), HD_OK);
    lab_fate *f = lab_do(a, "set v 1");
    assert_heard(a, "commit v=1");
    lab_settle(l);
    assert_fate(f, HD_OK);
    assert_int_equal(lab_arrived(l), 0);
    assert_cell(a, "v", "1");
    assert_cell(b, "v", "-");
    lab_do(b, "set v 2"); /* not ours */
    lab_settle(l);
    assert_cell(a, "v", "1");
    lab_fate *read = lab_do(a, "get v; set n 1"); /* no claim */
    lab_settle(l);
    assert_fate(read, HD_OK);
}

static hd_status set_kind(lab_runtime *x, const char *cell, const char *kind) {
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(x), &tx), HD_OK);
    assert_status(hd_tx_set_kind(tx, lab_cell(x, cell), kind), HD_OK);
    return hd_tx_commit(tx, NULL, NULL);
}

static void assert_kind(lab_runtime *x, const char *cell, const char *kind) {
    hd_tx *tx;
    assert_status(hd_tx_begin_read(lab_rt(x), &tx), HD_OK);
    hd_value v = hd_tx_get_meta(tx, lab_cell(x, cell), "kind");
    assert_string_equal(hd_value_as_text(v, "-"), kind);
    hd_tx_abort(tx);
}

static void what_is_said_of_a_volatile_document_stays_here_too(void **state) {
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "v")), HD_OK);
    assert_status(set_kind(a, "v", "cursor"), HD_OK);
    lab_settle(l);
    assert_int_equal(lab_arrived(l), 0);
    assert_kind(a, "v", "cursor");
    assert_kind(b, "v", "-");
}

/* Also where somebody has looked at it before. */
static void metadata_becomes_volatile_with_its_document(void **state) {
    assert_kind(a, "v", "-");
    assert_status(set_kind(a, "w", "order"), HD_OK);
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "w")), HD_BUSY);
    lab_settle(l);
    assert_int_equal(lab_arrived(l), 1);
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "v")), HD_OK);
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "w")), HD_OK);
    assert_status(set_kind(a, "v", "cursor"), HD_OK);
    assert_status(set_kind(a, "w", "cursor"), HD_OK);
    lab_settle(l);
    assert_int_equal(lab_arrived(l), 1);
    assert_kind(a, "w", "cursor");
    assert_kind(b, "w", "order");
}

static void only_a_new_whole_document_can_become_volatile(void **state) {
    lab_write(a, "n", "1");
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "n")), HD_USAGE);
    assert_status(hd_cell_set_volatile(lab_rt(a), lab_cell(a, "m#/x")), HD_USAGE);
    assert_status(hd_cell_set_volatile(lab_rt(a), (hd_cell){ 0 }), HD_USAGE);
}

/* A document that this runtime has not looked at may well have a value. */
static void a_stored_document_cannot_become_volatile_unseen(void **state) {
    lab_write(a, "n", "1");
    lab_settle(l);
    assert_status(hd_cell_set_volatile(lab_rt(b), lab_cell(b, "n")), HD_USAGE);
    assert_cell(b, "n", "1");
}

/* ---- metadata and kinds */

static hd_value meta_of(hd_tx *tx, lab_runtime *r, const char *cell, const char *key) {
    return hd_tx_get_meta(tx, lab_cell(r, cell), key);
}

static void metadata_is_beside_the_value(void **state) {
    lab_write(a, "n", "1");
    lab_settle(l);
    assert_cell(b, "n", "1");
    lab_fate *reader = lab_do(b, "get n; set copy 1");
    lab_do(a, "meta n label \"x\"");
    lab_pump(a);
    lab_settle(l);
    assert_fate(reader, HD_OK); /* does not concern readers of the value */
    hd_tx *tx;
    assert_status(hd_tx_begin_read(lab_rt(b), &tx), HD_OK);
    assert_string_equal(hd_value_as_text(meta_of(tx, b, "n", "label"), ""), "x");
    assert_false(hd_value_exists(meta_of(tx, b, "n", "other")));
    hd_tx_abort(tx);
    assert_cell(a, "n", "1");
}

static char listed[256];
static bool list_one(const hd_listing *e, void *ctx) {
    size_t n = strlen(listed);
    snprintf(listed + n, sizeof listed - n, "%s%s:%s", n ? " " : "", e->id, e->kind);
    return !ctx || strcmp(e->id, ctx);
}
static const char *list(lab_runtime *r, const char *space, const char *kind, const char *prefix,
                        const char *stop_at) {
    listed[0] = 0;
    assert_status(hd_runtime_list(lab_rt(r), space, kind, prefix, list_one, (void *)stop_at),
                  HD_OK);
    return listed;
}

static void documents_are_listed_by_kind_and_prefix_in_order(void **state) {
    lab_do(a, "set t2 1; kind t2 task; set t1 1; kind t1 task; set p1 1; set t3 1; kind t3 piece");
    lab_do(a, "set gone 1; set other/o 1");
    lab_do(a, "remove gone");
    lab_settle(l);
    assert_string_equal(list(b, "main", NULL, NULL, NULL), "p1: t1:task t2:task t3:piece");
    assert_string_equal(list(b, "main", "task", NULL, NULL), "t1:task t2:task");
    assert_string_equal(list(b, "main", NULL, "t", NULL), "t1:task t2:task t3:piece");
    assert_string_equal(list(b, "main", "piece", "t", NULL), "t3:piece");
    assert_string_equal(list(b, "main", NULL, NULL, "t1"), "p1: t1:task");
    assert_string_equal(list(b, "other", NULL, NULL, NULL), "o:");
    assert_string_equal(list(b, "nowhere", NULL, NULL, NULL), "");
    listed[0] = 0;
    assert_status(hd_runtime_list_after(lab_rt(b), "main", NULL, "t", "t1", list_one, NULL), HD_OK);
    assert_string_equal(listed, "t2:task t3:piece");
}

/* "Sees what this runtime sees." */
static void a_listing_sees_what_its_runtime_sees(void **state) {
    lab_do(a, "set n 1; kind n task");
    assert_string_equal(list(a, "main", NULL, NULL, NULL), "n:task");
    assert_string_equal(list(b, "main", NULL, NULL, NULL), "");
    lab_settle(l);
    lab_do(a, "remove n");
    assert_string_equal(list(a, "main", NULL, NULL, NULL), "");
    assert_string_equal(list(b, "main", NULL, NULL, NULL), "n:task");
}

static bool space_one(const char *space, void *ctx) {
    size_t n = strlen(listed);
    snprintf(listed + n, sizeof listed - n, "%s%s", n ? " " : "", space);
    return true;
}

static void spaces_are_those_written_to(void **state) {
    lab_do(a, "set n 1; set other/n 1");
    lab_read_cell(a, "empty/n");
    lab_settle(l);
    listed[0] = 0;
    assert_status(hd_runtime_spaces(lab_rt(b), space_one, NULL), HD_OK);
    assert_string_equal(listed, "main other");
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_two, close_all)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_name_and_its_cell_go_both_ways),
        T(a_name_is_cut_where_there_is_no_room),
        T(a_malformed_name_gives_no_cell_and_says_why),
        T(a_link_to_a_cell_leads_back_to_it),
        T(scopes_keep_users_and_sessions_apart),
        T(the_absence_of_a_session_document_is_knowledge),
        T(a_volatile_document_stays_here),
        T(what_is_said_of_a_volatile_document_stays_here_too),
        T(metadata_becomes_volatile_with_its_document),
        T(only_a_new_whole_document_can_become_volatile),
        T(a_stored_document_cannot_become_volatile_unseen),
        T(metadata_is_beside_the_value),
        T(documents_are_listed_by_kind_and_prefix_in_order),
        T(a_listing_sees_what_its_runtime_sees),
        T(spaces_are_those_written_to),
    };
    return cmocka_run_group_tests_name("cell", tests, NULL, NULL);
}
