/* test_patterns_map.c -- map, filter, flat_map, gather: which rows there are, and which of them run. */
#include "piece_world.h"

/* ---- a function for each row */

static hd_cell lister(hd_build *b, void *ctx) {
    return hd_build_gather(
        b, "all",
        hd_build_map(b, "rows", hd_build_argument(b, "xs", hd_array()), &(hd_each){ .fn = twice }));
}

static hd_value note_id(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, hd_value_as_text(hd_value_at(in, "id"), "?"));
    return hd_value_at(in, "v");
}

static hd_cell keyed(hd_build *b, void *ctx) {
    hd_cell xs = hd_build_argument(b, "xs", hd_array());
    return hd_build_gather(b, "all",
                           hd_build_map(b, "rows", xs, &(hd_each){ .fn = note_id, .key = "/id" }));
}

/* I7 (its live half): one element changes, one row runs; an append runs the new row alone. */
static void one_changed_element_runs_one_row(void **state) {
    hd_piece p = start_piece("lister", lister);
    lab_set_json(l, "lister#/arguments/xs", "[1, 2, 3]");
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "twice twice twice show");
    assert_json(l, "main/lister/all", "[2.0,4.0,6.0]");
    lab_set(l, "lister#/arguments/xs/1", 20);
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/lister/all", "[2.0,40.0,6.0]");
    lab_set_json(l, "lister#/arguments/xs", "[1, 20, 3, 4]");
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/lister/all", "[2.0,40.0,6.0,8.0]");
    lab_set_json(l, "lister#/arguments/xs", "[1]");
    lab_settle(l);
    assert_ran(l, "show");
    assert_json(l, "main/lister/all", "[2.0]");
    hd_piece_info info;
    hd_piece_inspect(rt(), p, &info);
    assert_int_equal(info.rows, 1);
}

static bool keep_line(hd_log_entry *entry, void *ctx) {
    snprintf(ctx, 200, "%s", entry->line);
    return false;
}

/* What is no list has no rows, and the log says so; of one that is not there yet it does not. */
static void what_is_no_list_has_no_rows(void **state) {
    char line[200] = "";
    hd_piece p = start_piece("lister", lister);
    hd_runtime_set_log(rt(), keep_line, line);
    lab_set_json(l, "lister#/arguments/xs", "null");
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_json(l, "main/lister/all", "[]");
    assert_string_equal(line, "");
    lab_set_json(l, "lister#/arguments/xs", "\"no list\"");
    lab_settle(l);
    assert_json(l, "main/lister/all", "[]");
    assert_string_equal(
        line, "lister/rows: the list is neither an array nor an object but string: it has no rows");
}

/* Rows that are known by a key survive reordering, and go with their element. */
static void rows_survive_reordering(void **state) {
    hd_piece p = start_piece("keyed", keyed);
    lab_set_json(l, "keyed#/arguments/xs",
                 "[{\"id\":\"a\",\"v\":1},{\"id\":\"b\",\"v\":2},"
                 "{\"id\":\"c\",\"v\":3}]");
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "a b c show");
    lab_set_json(l, "keyed#/arguments/xs",
                 "[{\"id\":\"c\",\"v\":3},{\"id\":\"a\",\"v\":1},"
                 "{\"id\":\"b\",\"v\":2}]");
    lab_settle(l);
    assert_ran(l, "show");
    assert_json(l, "main/keyed/all", "[3,1,2]");
    lab_set_json(l, "keyed#/arguments/xs/1/v", "10");
    lab_settle(l);
    assert_ran(l, "a show");
    assert_json(l, "main/keyed/all", "[3,10,2]");
    lab_set_json(l, "keyed#/arguments/xs", "[{\"id\":\"b\",\"v\":2},{\"id\":\"d\",\"v\":4}]");
    lab_settle(l);
    assert_ran(l, "d show");
    assert_json(l, "main/keyed/all", "[2,4]");
    assert_json(l, "main/keyed/rows.elements",
                "{\"b\":{\"id\":\"b\",\"v\":2},\"d\":{\"id\":\"d\",\"v\":4}}");
    assert_false(hd_node_find(rt(), "main:keyed:rows/a").id);
    assert_true(hd_node_find(rt(), "main:keyed:rows/d").id);
}

/* Two elements of one key are two rows, whichever way they came. */
static void a_repeated_key_has_a_row_of_its_own(void **state) {
    hd_piece p = start_piece("keyed", keyed);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_set_json(l, "keyed#/arguments/xs", "[{\"id\":\"a\",\"v\":1}]");
    lab_settle(l);
    lab_set_json(l, "keyed#/arguments/xs",
                 "[{\"id\":\"a\",\"v\":1},{\"id\":\"a\",\"v\":2},{\"v\":3}]");
    lab_settle(l);
    assert_json(l, "main/keyed/all", "[1,2,3]");
    lab_set_json(l, "keyed#/arguments/xs", "[{\"id\":\"a\",\"v\":2}]");
    lab_settle(l);
    assert_json(l, "main/keyed/all", "[2]");
    hd_piece_info info;
    hd_piece_inspect(rt(), p, &info);
    assert_int_equal(info.rows, 1);
}

/* Links are known by where they point: the target's change runs its row, moving it runs none. */
static void linked_elements_are_known_by_their_target(void **state) {
    hd_piece p = start_piece("lister", lister);
    lab_set(l, "a", 1);
    lab_set(l, "b", 2);
    lab_set_json(l, "lister#/arguments/xs",
                 "[{\"$link\":{\"id\":\"a\"}},{\"$link\":{\"id\":\"b\"}}]");
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_ran(l, "twice twice show");
    lab_set_json(l, "lister#/arguments/xs",
                 "[{\"$link\":{\"id\":\"b\"}},{\"$link\":{\"id\":\"a\"}}]");
    lab_settle(l);
    assert_ran(l, "show");
    assert_json(l, "main/lister/all", "[4.0,2.0]");
    lab_set(l, "b", 5);
    lab_settle(l);
    assert_ran(l, "twice show");
    assert_json(l, "main/lister/all", "[10.0,2.0]");
}

/* Also where the name of the target is long. */
static void a_link_to_a_long_name_has_a_row(void **state) {
    char name[1500], json[1600], cell[1520];
    hd_piece p = start_piece("lister", lister);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(cell, sizeof cell, "main/a#/%s", name);
    assert_int_equal(hd_write_json(rt(), hd_cell_at(rt(), "main/a"), "{}"), HD_OK);
    assert_int_equal(hd_write_json(rt(), hd_cell_at(rt(), cell), "4"), HD_OK);
    snprintf(json, sizeof json, "[{\"$link\":{\"id\":\"a\",\"path\":\"/%s\"}}]", name);
    hd_cell xs = hd_cell_at(rt(), "main/lister#/arguments/xs");
    assert_int_equal(hd_write_json(rt(), xs, json), HD_OK);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_settle(l);
    assert_json(l, "main/lister/all", "[8.0]");
}

static hd_value is_big(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "big?");
    return hd_bool(hd_value_number(in) > 2);
}
static hd_value pair(hd_tx *tx, hd_value in, void *ctx) {
    if (hd_value_number(in) > 8) return hd_object_set(hd_tx_pool(tx), hd_object(), "no", in);
    return hd_array_of(hd_tx_pool(tx), (hd_value[]){ in, in }, 2);
}
static hd_cell sieve(hd_build *b, void *ctx) {
    hd_cell xs = hd_build_argument(b, "xs", hd_array());
    hd_cell big = hd_build_filter(b, "big", xs, &(hd_each){ .fn = is_big });
    return hd_build_flat_map(b, "pairs", big, &(hd_each){ .fn = pair });
}

static void filter_and_flat_map(void **state) {
    hd_piece p = start_piece("sieve", sieve);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_set_json(l, "sieve#/arguments/xs", "[1, 2, 3, 4]");
    lab_settle(l);
    assert_json(l, "main/sieve/pairs", "[3,3,4,4]");
    lab_ran(l);
    lab_set_json(l, "sieve#/arguments/xs", "[1, 7, 3, 4]");
    lab_settle(l);
    assert_ran(l, "big? show");
    assert_json(l, "main/sieve/pairs", "[7,7,3,3,4,4]");
    lab_set_json(l, "sieve#/arguments/xs/0", "0"); /* still small */
    lab_settle(l);
    assert_ran(l, "big?");
    lab_set_json(l, "sieve#/arguments/xs/1", "9"); /* its row is no list */
    lab_settle(l);
    assert_json(l, "main/sieve/pairs", "[3,3,4,4]");
}

/* ---- a graph for each row */

static hd_cell row_of_two(hd_build *row, hd_cell element, void *ctx) {
    hd_cell once = hd_build_derive(row, "once", element, twice, "once");
    return hd_build_derive(row, "again", once, twice, "again");
}
static hd_cell builder(hd_build *b, void *ctx) {
    return hd_build_gather(b, "all",
                           hd_build_map(b, "rows", hd_build_argument(b, "xs", hd_array()),
                                        &(hd_each){ .build = row_of_two }));
}

static void a_row_may_be_a_graph(void **state) {
    hd_piece p = start_piece("builder", builder);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_set_json(l, "builder#/arguments/xs", "[1, 2]");
    lab_settle(l);
    assert_json(l, "main/builder/all", "[4.0,8.0]");
    assert_json(l, "main/builder/rows/1/once", "4.0");
    assert_true(hd_node_find(rt(), "main:builder:rows/1:once").id);
    lab_ran(l);
    lab_set(l, "builder#/arguments/xs/0", 3);
    lab_settle(l);
    assert_ran(l, "once again show");
}

static hd_cell doubled;
static hd_value add_up(hd_tx *tx, const hd_value *in, void *ctx) {
    double all = 0;
    hd_value list = hd_tx_get_list(tx, doubled);
    lab_note(l, "add_up");
    if (hd_value_status(list)) return list;
    for (hd_iter it = hd_iter_of(list); hd_iter_next(&it);) all += hd_value_number(it.value);
    return hd_double(all);
}
static hd_cell adding_up(hd_build *b, void *ctx) {
    hd_cell xs = hd_build_argument(b, "xs", hd_array());
    doubled = hd_build_map(b, "rows", xs, &(hd_each){ .fn = twice });
    hd_build_sink(b, "look", hd_build_lift(b, "sum", add_up, NULL, &doubled, 1), show, NULL);
    return hd_build_status(b) ? (hd_cell){ 0 } : doubled;
}

/* A function may look at a list's values by itself: it depends on them all, and runs when one changes. */
static void a_function_reads_the_values_of_a_list(void **state) {
    start_piece("adding_up", adding_up);
    lab_set_json(l, "adding_up#/arguments/xs", "[1, 2, 3]");
    lab_settle(l);
    assert_json(l, "main/adding_up/sum", "12.0");
    lab_ran(l);
    lab_set(l, "adding_up#/arguments/xs/1", 4);
    lab_settle(l);
    assert_ran(l, "twice add_up show");
    assert_json(l, "main/adding_up/sum", "16.0");
}

static hd_cell choosing_row(hd_build *row, hd_cell element, void *ctx) {
    hd_cell yes = hd_build_derive(row, "yes", element, twice, "yes");
    hd_cell no = hd_build_derive(row, "no", element, twice, "no");
    return hd_build_if_else(row, "chosen", element, yes, no);
}
static hd_cell unread(hd_build *b, void *ctx) {
    return hd_build_map(b, "rows", hd_build_argument(b, "xs", hd_array()),
                        &(hd_each){ .build = choosing_row });
}

/* C51, C52: a row runs once when it has been built; then it waits for somebody who follows its link, and
 * only the branch that is chosen runs. */
static void all_of_a_row_runs_once(void **state) {
    hd_piece p = start_piece("unread", unread);
    hd_sink(rt(), hd_piece_result(rt(), p), show, NULL);
    lab_set_json(l, "unread#/arguments/xs", "[1]");
    lab_settle(l);
    assert_ran(l, "show yes no");
    lab_set(l, "unread#/arguments/xs/0", 2);
    lab_settle(l);
    assert_ran(l, "");
    hd_sink(rt(), hd_cell_at(rt(), "main/unread/rows/0/chosen"), show, NULL);
    lab_settle(l);
    assert_ran(l, "yes show");
    lab_set(l, "unread#/arguments/xs/0", 3);
    lab_settle(l);
    assert_ran(l, "yes show");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(one_changed_element_runs_one_row),
        S(what_is_no_list_has_no_rows),
        S(rows_survive_reordering),
        S(a_repeated_key_has_a_row_of_its_own),
        S(linked_elements_are_known_by_their_target),
        S(a_link_to_a_long_name_has_a_row),
        S(filter_and_flat_map),
        S(a_row_may_be_a_graph),
        S(a_function_reads_the_values_of_a_list),
        S(all_of_a_row_runs_once),
    };
    LAB_EVERYWHERE(tests);
}
