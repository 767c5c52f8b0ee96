/* test_patterns_reentry.c -- pieces whose callbacks take away what they were called for, and names that
 * patterns must not have. The sanitisers judge most of it. */
#include <heddle/pattern.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct world {
    hd_runtime *rt;
    hd_piece piece, other, child;
    int stopped, seen;
    hd_status status;
    char name[600];
} world;

static world *w; /* of the test: pattern functions have no ctx */

static int set_up(void **state) {
    static world one;
    (void)state;
    w = &one;
    *w = (world){ 0 };
    return hd_open(NULL, NULL, &w->rt, NULL) == HD_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    hd_close(w->rt);
    return 0;
}

static hd_status try_to_start(const char *id, hd_pattern_fn fn, hd_piece parent, hd_piece *out) {
    assert_int_equal(hd_pattern_register(w->rt, id, "1", fn, NULL), HD_OK);
    return hd_piece_start(w->rt, &(hd_piece_spec){ .id = id, .pattern = id, .parent = parent }, out,
                          NULL);
}

static hd_piece start_under(const char *id, hd_pattern_fn fn, hd_piece parent) {
    hd_piece p;
    assert_int_equal(try_to_start(id, fn, parent, &p), HD_OK);
    return p;
}

static hd_piece start(const char *id, hd_pattern_fn fn) {
    return start_under(id, fn, (hd_piece){ 0, 0 });
}

static bool runs(const char *id) { return hd_piece_find(w->rt, "main", id).id; }

static hd_value same(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx, (void)ctx;
    return in;
}

static hd_cell plain(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), same, NULL);
}

/* ---- stopping */

static bool stop_it(const hd_piece_info *info, void *ctx) {
    (void)ctx;
    w->seen++;
    hd_piece_stop(w->rt, info->piece);
    return true;
}

static void every_piece_is_stopped_while_they_are_listed(void **state) {
    (void)state;
    hd_piece a = start("a", plain), b = start_under("b", plain, a);
    start_under("c", plain, b);
    start("d", plain);
    hd_runtime_pieces(w->rt, stop_it, NULL);
    assert_int_equal(w->seen, 2);
    assert_false(runs("a") || runs("b") || runs("c") || runs("d"));
}

static void stop_all_of_them(void *ctx) {
    (void)ctx;
    w->stopped++;
    hd_piece_stop(w->rt, w->piece);
    hd_piece_stop(w->rt, w->other);
    hd_piece_stop(w->rt, w->child);
    assert_int_not_equal(hd_piece_remove(w->rt, w->piece), HD_OK);
}

static hd_cell last_words(hd_build *b, void *ctx) {
    hd_build_on_stop(b, stop_all_of_them, NULL);
    return plain(b, ctx);
}

static void a_piece_that_is_stopped_stops_itself_and_others(void **state) {
    (void)state;
    w->piece = start("a", last_words);
    w->child = start_under("b", plain, w->piece);
    w->other = start_under("c", plain, w->piece);
    start_under("d", last_words, w->piece);
    hd_piece_stop(w->rt, w->piece);
    assert_int_equal(w->stopped, 2);
    assert_false(runs("a") || runs("b") || runs("c") || runs("d"));
}

static void start_again(void *ctx) {
    (void)ctx;
    if (w->stopped++) return;
    w->status =
        hd_piece_start(w->rt, &(hd_piece_spec){ .id = "a", .pattern = "a" }, &w->other, NULL);
}

static hd_cell phoenix(hd_build *b, void *ctx) {
    hd_build_on_stop(b, start_again, NULL);
    return plain(b, ctx);
}

static void a_piece_that_is_stopped_starts_itself_again(void **state) {
    (void)state;
    w->piece = start("a", phoenix);
    hd_piece_stop(w->rt, w->piece);
    assert_int_equal(w->status, HD_OK);
    assert_false(hd_piece_runs(w->rt, w->piece));
    assert_true(hd_piece_runs(w->rt, w->other));
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    hd_piece_stop(w->rt, w->other);
    assert_false(runs("a"));
}

static hd_cell hasty(hd_build *b, void *ctx) {
    hd_cell d = plain(b, ctx);
    hd_piece_stop(w->rt, hd_piece_find(w->rt, "main", "a"));
    hd_piece_stop(w->rt, hd_piece_find(w->rt, "main", "parent"));
    w->status = hd_piece_remove(w->rt, hd_piece_find(w->rt, "main", "a"));
    return hd_build_derive(b, "e", d, same, NULL);
}

static void a_pattern_stops_the_piece_that_it_builds(void **state) {
    (void)state;
    hd_piece parent = start("parent", plain);
    w->piece = start_under("a", hasty, parent);
    assert_int_equal(w->status, HD_USAGE);
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    assert_false(runs("a") || runs("parent"));
}

static hd_status stop_in_handler(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)tx, (void)event, (void)ctx;
    hd_piece_stop(w->rt, w->piece);
    w->seen++;
    return HD_OK;
}

static void sent(const char *id, hd_status status, void *ctx) {
    (void)ctx, (void)id, (void)status;
    /* The stop is posted, and has not happened. */
    w->status =
        hd_piece_start(w->rt, &(hd_piece_spec){ .id = "a", .pattern = "a" }, &w->other, NULL);
}

static void a_start_after_a_stop_in_a_handler_starts(void **state) {
    (void)state;
    hd_cell stream = hd_cell_at(w->rt, "main/stream");
    hd_handler_spec spec = { .stream = stream, .fn = stop_in_handler, .reads_nothing = true };
    hd_handler handler;
    w->status = HD_FAILED;
    w->piece = start("a", plain);
    assert_int_equal(hd_handler_register(w->rt, &spec, &handler), HD_OK);
    hd_send_options options = { .done = sent };
    assert_int_equal(hd_event_send(w->rt, stream, hd_null(), &options), HD_OK);
    for (int i = 0; i < 5; i++) hd_runtime_pump(w->rt);
    assert_int_equal(w->seen, 1);
    assert_int_equal(w->status, HD_OK);
    assert_true(runs("a"));
}

/* The piece "a", and an event for this handler on its way. */
static void start_and_send(hd_handler_fn fn) {
    hd_cell stream = hd_cell_at(w->rt, "main/stream");
    hd_handler_spec spec = { .stream = stream, .fn = fn, .reads_nothing = true };
    hd_handler handler;
    w->piece = start("a", plain);
    assert_int_equal(hd_handler_register(w->rt, &spec, &handler), HD_OK);
    assert_int_equal(hd_event_send(w->rt, stream, hd_null(), NULL), HD_OK);
}

static void a_stop_in_a_handler_does_not_hold_up_another(void **state) {
    (void)state;
    start_and_send(stop_in_handler);
    for (int i = 0; i < 5 && !w->seen; i++) hd_runtime_pump(w->rt);
    assert_int_equal(w->seen, 1);
    hd_piece_stop(w->rt, w->piece); /* outside of runs: at once */
    assert_false(runs("a"));
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
}

static void settling_waits_for_a_stop(void **state) {
    (void)state;
    start_and_send(stop_in_handler);
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    assert_false(runs("a"));
}

static hd_status stop_and_launch(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)event, (void)ctx;
    hd_piece_stop(w->rt, w->piece);
    w->seen++;
    return hd_tx_launch_piece(tx, &(hd_piece_spec){ .id = "a", .pattern = "a" }, &w->other);
}

static void a_handler_that_stops_a_piece_and_launches_it_keeps_it(void **state) {
    (void)state;
    start_and_send(stop_and_launch);
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    assert_int_equal(w->seen, 1);
    assert_true(hd_piece_runs(w->rt, w->other));
    hd_piece_stop(w->rt, w->other);
    assert_false(runs("a"));
}

static void a_piece_that_waits_for_its_launch_can_be_started(void **state) {
    (void)state;
    hd_tx *tx;
    hd_piece_spec spec = { .id = "a", .pattern = "a", .after_commit = true };
    assert_int_equal(hd_pattern_register(w->rt, "a", "1", plain, NULL), HD_OK);
    assert_int_equal(hd_tx_begin(w->rt, &tx), HD_OK);
    assert_int_equal(hd_tx_launch_piece(tx, &spec, &w->piece), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    assert_int_equal(hd_piece_result(w->rt, w->piece).id, 0);
    start("a", plain);
    assert_int_not_equal(hd_piece_result(w->rt, w->piece).id, 0);
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    assert_true(hd_piece_runs(w->rt, w->piece));
}

static void failing(const hd_failure *failure, void *ctx) {
    (void)ctx;
    hd_piece_stop(w->rt, hd_piece_find(w->rt, "main", failure->piece));
    w->seen++;
}

static hd_value no_value(hd_tx *tx, hd_value in, void *ctx) {
    (void)in, (void)ctx;
    return hd_failed(hd_tx_fail(tx, HD_FAILED, "it does not work"));
}
static void look(hd_value v, void *ctx) { (void)ctx, (void)v; }
static hd_cell bad_row_seen(hd_build *b, hd_cell element, void *ctx) {
    (void)ctx;
    hd_cell d = hd_build_derive(b, "bad", element, no_value, NULL);
    hd_build_sink(b, "look", d, look, NULL);
    return d;
}
static hd_cell bad_list(hd_build *b, void *ctx) {
    hd_cell list = hd_build_argument(b, "list", hd_array());
    hd_cell rows = hd_build_map(b, "rows", list, &(hd_each){ .build = bad_row_seen });
    hd_build_sink(b, "all", hd_build_gather(b, "gathered", rows), look, NULL);
    return rows;
}

static void an_error_handler_stops_the_piece_that_failed(void **state) {
    (void)state;
    assert_int_equal(hd_runtime_on_error(w->rt, failing, NULL), HD_OK);
    w->piece = start("a", bad_list);
    hd_write_json(w->rt, hd_cell_at(w->rt, "main/a#/arguments/list"), "[1,2,3]");
    hd_runtime_settle(w->rt);
    assert_true(w->seen > 0);
    assert_false(runs("a"));
    hd_runtime_settle(w->rt);
}

/* ---- names */

static hd_cell uses_itself(hd_build *b, void *ctx) { return hd_build_use(b, "u", "a", NULL, 0); }

static void a_pattern_that_uses_itself_is_refused(void **state) {
    (void)state;
    assert_int_equal(try_to_start("a", uses_itself, (hd_piece){ 0, 0 }, &w->piece), HD_LIMIT);
    assert_false(runs("a"));
}

static void a_name_that_is_none_does_not_take_the_others_away(void **state) {
    (void)state;
    w->piece = start("a", plain);
    memset(w->name, 'x', sizeof w->name - 1);
    assert_int_equal(hd_piece_cell(w->rt, w->piece, w->name).id, 0);
    assert_int_equal(hd_piece_cell(w->rt, w->piece, "no\nname").id, 0);
    assert_int_not_equal(hd_piece_cell(w->rt, w->piece, "d").id, 0);
}

static hd_cell nameless(hd_build *b, void *ctx) {
    return hd_build_derive(b, "", hd_build_argument(b, "x", hd_int(NULL, 1)), same, NULL);
}

static void a_primitive_without_a_name_does_not_write_the_piece(void **state) {
    (void)state;
    assert_int_equal(try_to_start("a", nameless, (hd_piece){ 0, 0 }, &w->piece), HD_USAGE);
}

static hd_cell long_map(hd_build *b, void *ctx) {
    hd_cell list = hd_build_argument(b, "list", hd_array());
    return hd_build_map(b, w->name, list, &(hd_each){ .fn = same, .key = "" });
}

static void a_name_that_is_too_long_is_refused(void **state) {
    (void)state;
    memset(w->name, 'x', 255);
    assert_int_equal(try_to_start("a", long_map, (hd_piece){ 0, 0 }, &w->piece), HD_LIMIT);
}

static hd_cell two_of_a_name(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 1));
    hd_cell d = hd_build_derive(b, "d", x, same, NULL);
    hd_build_use(b, "d", "used", NULL, 0);
    return d;
}
static hd_cell two_of_a_name_reversed(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 1));
    hd_build_use(b, "d", "used", NULL, 0);
    return hd_build_derive(b, "d", x, same, NULL);
}

static void a_pattern_that_is_used_has_a_name_of_its_own(void **state) {
    (void)state;
    assert_int_equal(hd_pattern_register(w->rt, "used", "1", plain, NULL), HD_OK);
    assert_int_equal(try_to_start("a", two_of_a_name, (hd_piece){ 0, 0 }, &w->piece), HD_USAGE);
    assert_int_equal(try_to_start("b", two_of_a_name_reversed, (hd_piece){ 0, 0 }, &w->piece),
                     HD_USAGE);
}

static bool count_entry(const hd_listing *entry, void *ctx) {
    (void)entry;
    (*(int *)ctx)++;
    return true;
}

static void a_piece_is_removed_whatever_its_space_is_called(void **state) {
    (void)state;
    int count = 0;
    memset(w->name, 's', 300);
    hd_piece_spec spec = { .space = w->name, .id = "a", .pattern = "a" };
    assert_int_equal(hd_pattern_register(w->rt, "a", "1", plain, NULL), HD_OK);
    assert_int_equal(hd_piece_start(w->rt, &spec, &w->piece, NULL), HD_OK);
    hd_sink(w->rt, hd_piece_result(w->rt, w->piece), look, NULL);
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    assert_int_equal(hd_runtime_list(w->rt, w->name, NULL, "a", count_entry, &count), HD_OK);
    assert_int_equal(count, 2);
    assert_int_equal(hd_piece_remove(w->rt, w->piece), HD_OK);
    assert_int_equal(hd_runtime_settle(w->rt), HD_OK);
    count = 0;
    assert_int_equal(hd_runtime_list(w->rt, w->name, NULL, "a", count_entry, &count), HD_OK);
    assert_int_equal(count, 0);
}

static hd_cell sink_of_none(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 1));
    hd_build_sink(b, "look", x, NULL, NULL);
    return x;
}
static hd_cell pattern_of_none(hd_build *b, void *ctx) {
    hd_cell x = hd_build_argument(b, "x", hd_int(NULL, 1));
    return hd_build_derive_pattern(b, "p", NULL, NULL, &x, 1);
}
static hd_cell node_of_none(hd_build *b, void *ctx) {
    hd_build_node(b, &(hd_node_spec){ .name = "n", .output = hd_build_cell(b, "n") });
    return hd_build_cell(b, "n");
}

static hd_cell list_of_none(hd_build *b, void *ctx) {
    return hd_build_map(b, "m", hd_build_argument(b, "x", hd_array()), NULL);
}

static void a_primitive_without_a_function_is_refused(void **state) {
    (void)state;
    assert_int_equal(try_to_start("a", sink_of_none, (hd_piece){ 0, 0 }, &w->piece), HD_USAGE);
    assert_int_equal(try_to_start("b", pattern_of_none, (hd_piece){ 0, 0 }, &w->piece), HD_USAGE);
    assert_int_equal(try_to_start("c", node_of_none, (hd_piece){ 0, 0 }, &w->piece), HD_USAGE);
    assert_int_equal(try_to_start("d", list_of_none, (hd_piece){ 0, 0 }, &w->piece), HD_USAGE);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(every_piece_is_stopped_while_they_are_listed),
        T(a_piece_that_is_stopped_stops_itself_and_others),
        T(a_piece_that_is_stopped_starts_itself_again),
        T(a_pattern_stops_the_piece_that_it_builds),
        T(a_start_after_a_stop_in_a_handler_starts),
        T(a_stop_in_a_handler_does_not_hold_up_another),
        T(settling_waits_for_a_stop),
        T(a_handler_that_stops_a_piece_and_launches_it_keeps_it),
        T(a_piece_that_waits_for_its_launch_can_be_started),
        T(an_error_handler_stops_the_piece_that_failed),
        T(a_pattern_that_uses_itself_is_refused),
        T(a_name_that_is_none_does_not_take_the_others_away),
        T(a_primitive_without_a_name_does_not_write_the_piece),
        T(a_name_that_is_too_long_is_refused),
        T(a_pattern_that_is_used_has_a_name_of_its_own),
        T(a_piece_is_removed_whatever_its_space_is_called),
        T(a_primitive_without_a_function_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
