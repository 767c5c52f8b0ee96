/* test_patterns_family.c -- pieces with parents, launches that meet, and what goes when a piece goes. */
#include "lab.h"

#include <heddle/pattern.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct world {
    hd_memory *memory;
    hd_runtime *rt;
    hd_pool *pool;
    hd_piece piece, other;
    hd_status status;
    hd_error error;
    int stopped;
} world;

static world *w; /* of the test: pattern functions have no ctx */

static void live(void) {
    hd_options options = { .memory = w->memory };
    assert_int_equal(hd_open(NULL, &options, &w->rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(w->rt), &w->pool), HD_OK);
}
static void die(void) {
    hd_pool_close(w->pool);
    assert_int_equal(hd_close(w->rt), HD_OK);
}

static int set_up(void **state) {
    static world one;
    (void)state;
    w = &one;
    *w = (world){ 0 };
    if (hd_memory_open(NULL, &w->memory)) return 1;
    live();
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    die();
    hd_memory_close(w->memory);
    return 0;
}

static hd_value same(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx, (void)ctx;
    return in;
}
static hd_cell plain(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), same, NULL);
}
static void look(hd_value v, void *ctx) { (void)ctx, (void)v; }

static const hd_piece none = { 0, 0 };

static hd_status try_to_start(const char *id, hd_pattern_fn fn, hd_piece parent, hd_piece *out) {
    assert_int_equal(hd_pattern_register(w->rt, id, "1", fn, NULL), HD_OK);
    hd_piece_spec spec = { .id = id, .pattern = id, .parent = parent };
    return hd_piece_start(w->rt, &spec, out, &w->error);
}
static hd_piece start_under(const char *id, hd_pattern_fn fn, hd_piece parent) {
    hd_piece p;
    assert_int_equal(try_to_start(id, fn, parent, &p), HD_OK);
    return p;
}
static hd_piece start(const char *id, hd_pattern_fn fn) { return start_under(id, fn, none); }

static bool runs(const char *id) { return hd_piece_find(w->rt, "main", id).id; }
static void settle(void) { assert_int_equal(hd_runtime_settle(w->rt), HD_OK); }

static hd_status launch(const hd_piece_spec *spec, hd_pattern_fn fn, const char *absent,
                        hd_piece *out) {
    hd_tx *tx;
    assert_int_equal(hd_pattern_register(w->rt, spec->pattern, "1", fn, NULL), HD_OK);
    assert_int_equal(hd_tx_begin(w->rt, &tx), HD_OK);
    if (absent) hd_tx_require_absent(tx, hd_cell_at(w->rt, absent));
    hd_status status = hd_tx_launch_piece(tx, spec, out);
    if (status) hd_tx_abort(tx);
    else assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    return status;
}

/* A piece whose launch has no verdict, and no graph before. */
static hd_piece wait_for_launch(const char *id, hd_pattern_fn fn) {
    hd_piece p;
    hd_piece_spec spec = { .id = id, .pattern = id, .after_commit = true };
    assert_int_equal(launch(&spec, fn, NULL, &p), HD_OK);
    assert_int_equal(hd_piece_result(w->rt, p).id, 0);
    return p;
}

/* ---- parents */

static void a_parent_that_has_gone_is_none(void **state) {
    (void)state;
    hd_piece a = start("a", plain), p;
    hd_piece_stop(w->rt, a);
    assert_int_equal(try_to_start("b", plain, a, &p), HD_NOT_FOUND);
    assert_non_null(strstr(w->error.message, "parent"));
    assert_false(runs("b"));
    hd_piece_spec spec = { .id = "c", .pattern = "c", .parent = a };
    assert_int_equal(launch(&spec, plain, NULL, &p), HD_NOT_FOUND);
    assert_false(runs("c"));
    settle();
}

static void a_piece_is_not_its_own_parent(void **state) {
    (void)state;
    hd_piece a = wait_for_launch("a", plain), b = start_under("b", plain, a), p;
    assert_int_equal(try_to_start("a", plain, a, &p), HD_USAGE);
    assert_int_equal(try_to_start("a", plain, b, &p), HD_USAGE);
    hd_piece_stop(w->rt, start("z", plain)); /* looks at all of them */
    hd_piece_stop(w->rt, a);
    assert_false(runs("a") || runs("b"));
    settle();
}

/* Whoever is below goes, in whatever order they began. */
static void all_that_is_below_a_piece_stops_with_it(void **state) {
    (void)state;
    hd_piece p = start("p", plain), a = wait_for_launch("a", plain);
    start_under("c", plain, a);
    hd_piece b = start_under("b", plain, p);
    start_under("a", plain, b);
    hd_piece_stop(w->rt, p);
    assert_false(runs("p") || runs("a") || runs("b") || runs("c"));
    settle();
    assert_false(runs("a"));
}

static void start_below(void *ctx) {
    (void)ctx;
    w->stopped++;
    w->status = try_to_start("late", plain, w->piece, &w->other);
}
static hd_cell starts_below(hd_build *b, void *ctx) {
    hd_build_on_stop(b, start_below, NULL);
    return plain(b, ctx);
}

static void nothing_starts_below_a_piece_that_is_being_stopped(void **state) {
    (void)state;
    w->piece = start("a", plain);
    start_under("b", starts_below, w->piece);
    hd_piece_stop(w->rt, w->piece);
    assert_int_equal(w->stopped, 1);
    assert_int_equal(w->status, HD_NOT_FOUND);
    assert_false(runs("late"));
}

static void start_again(void *ctx) {
    (void)ctx;
    w->stopped++;
    w->status =
        hd_piece_start(w->rt, &(hd_piece_spec){ .id = "a", .pattern = "a" }, &w->other, NULL);
}
static hd_cell phoenix(hd_build *b, void *ctx) {
    hd_build_on_stop(b, start_again, NULL);
    return plain(b, ctx);
}

static void a_closing_runtime_starts_nothing(void **state) {
    (void)state;
    start("a", phoenix);
    die();
    assert_int_equal(w->stopped, 1);
    assert_int_equal(w->status, HD_CLOSED);
    live();
}

static void close_it(void *ctx) {
    (void)ctx;
    w->status = hd_close(w->rt);
}
static hd_cell closes(hd_build *b, void *ctx) {
    assert_int_equal(hd_close(w->rt), HD_USAGE);
    hd_build_on_stop(b, close_it, NULL);
    return plain(b, ctx);
}

static void a_pattern_does_not_close_the_runtime(void **state) {
    (void)state;
    hd_piece_stop(w->rt, start("a", closes));
    assert_int_equal(w->status, HD_USAGE);
    settle();
}

/* ---- launches */

static void a_second_launch_does_not_wait_for_the_first(void **state) {
    (void)state;
    hd_piece first, second;
    hd_write_json(w->rt, hd_cell_at(w->rt, "main/there"), "1");
    hd_runtime_sync(w->rt);
    hd_piece_spec spec = { .id = "a", .pattern = "a", .after_commit = true };
    assert_int_equal(launch(&spec, plain, "main/there", &first), HD_OK);
    spec.after_commit = false;
    assert_int_equal(launch(&spec, plain, NULL, &second), HD_OK);
    assert_int_not_equal(hd_piece_result(w->rt, second).id, 0);
    hd_runtime_sync(w->rt);
    settle();
    assert_true(hd_piece_runs(w->rt, second));
}

static hd_cell counter(hd_build *b, void *ctx) {
    return hd_build_state(b, "count", hd_int(NULL, 5));
}

/* It was launched, and has a document, but it was never built. */
static void a_piece_that_was_only_launched_gets_its_state(void **state) {
    (void)state;
    hd_piece_info info;
    wait_for_launch("a", counter);
    hd_piece p = start("a", counter);
    settle();
    hd_value count = hd_read(w->rt, w->pool, hd_cell_at(w->rt, "main/a/count"));
    assert_int_equal(hd_value_as_int(count, 0), 5);
    assert_int_equal(hd_piece_inspect(w->rt, p, &info), HD_OK);
    assert_int_equal(info.started, 1);
}

/* The same where the process was killed before it was built, and the next one finds the document. */
static void a_piece_that_was_only_launched_is_built_when_it_is_opened(void **state) {
    (void)state;
    hd_piece p;
    const char *launched = "{\"pattern\":\"a\",\"version\":\"1\",\"arguments\":{},\"started\":1}";
    assert_int_equal(hd_write_json(w->rt, hd_cell_at(w->rt, "main/a"), launched), HD_OK);
    hd_pattern_register(w->rt, "a", "1", counter, NULL);
    assert_int_equal(hd_piece_open(w->rt, "main", "a", &p, &w->error), HD_OK);
    settle();
    hd_value count = hd_read(w->rt, w->pool, hd_piece_result(w->rt, p));
    assert_int_equal(hd_value_as_int(count, 0), 5);
    die();
    live();
    hd_pattern_register(w->rt, "a", "1", counter, NULL);
    hd_cell document = hd_cell_at(w->rt, "main/a"); /* from then on it is as others */
    hd_value before = hd_read(w->rt, w->pool, document);
    assert_true(hd_value_exists(hd_value_at(before, "result")));
    assert_int_equal(hd_piece_open(w->rt, "main", "a", &p, &w->error), HD_OK);
    assert_true(hd_value_equal(before, hd_read(w->rt, w->pool, document)));
}

static hd_value launching(hd_tx *tx, hd_value in, void *ctx) {
    (void)ctx;
    hd_piece_spec spec = { .id = "kid", .pattern = "plain" };
    w->status = hd_tx_launch_piece(tx, &spec, &w->other);
    return in;
}
static hd_cell launches(hd_build *b, void *ctx) {
    return hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), launching, NULL);
}

static void a_computation_launches_nothing(void **state) {
    (void)state;
    hd_pattern_register(w->rt, "plain", "1", plain, NULL);
    hd_sink(w->rt, hd_piece_result(w->rt, start("a", launches)), look, NULL);
    settle();
    assert_int_equal(w->status, HD_USAGE);
    assert_false(runs("kid"));
}

/* A launched piece is built, or gone: whatever there is no memory for. */
static void play(lab_env *env, void *ctx) {
    hd_runtime *rt = NULL;
    hd_piece piece = none;
    hd_tx *tx;
    hd_options options = { .env = lab_env_of(env) };
    (void)ctx;
    hd_status status = hd_open(NULL, &options, &rt, NULL);
    if (!status) status = hd_pattern_register(rt, "a", "1", plain, NULL);
    if (!status) status = hd_tx_begin(rt, &tx);
    if (!status) {
        hd_piece_spec spec = { .id = "a", .pattern = "a", .after_commit = true };
        status = hd_tx_launch_piece(tx, &spec, &piece);
        if (status) hd_tx_abort(tx);
        else status = hd_tx_commit(tx, NULL, NULL);
    }
    for (int i = 0; i < 3 && rt; i++) hd_runtime_settle(rt);
    if (rt && !status) hd_runtime_sync(rt);
    for (int i = 0; i < 3 && rt; i++) hd_runtime_settle(rt);
    if (rt && hd_piece_runs(rt, piece)) assert_int_not_equal(hd_piece_result(rt, piece).id, 0);
    if (!lab_env_failed(env)) assert_true(hd_piece_runs(rt, piece));
    hd_close(rt);
}

static void a_launched_piece_is_built_or_gone(void **state) {
    (void)state;
    lab_each_allocation_failure(play, NULL);
}

/* ---- who is opened again */

/* The piece "a" in another runtime of the same store. */
static void start_elsewhere(void) {
    hd_runtime *here = w->rt;
    hd_pool *pool = w->pool;
    live();
    hd_sink(w->rt, hd_piece_result(w->rt, start("a", plain)), look, NULL);
    settle();
    die();
    w->rt = here;
    w->pool = pool;
    for (int i = 0; i < 3; i++) assert_int_equal(hd_runtime_sync(w->rt), HD_OK);
}

/* Nobody stopped it but the refusal of its launch. */
static void a_launch_in_vain_does_not_keep_others_from_opening_it(void **state) {
    (void)state;
    hd_piece p;
    hd_piece_spec spec = { .id = "a", .pattern = "a" };
    hd_write_json(w->rt, hd_cell_at(w->rt, "main/there"), "1");
    hd_runtime_sync(w->rt);
    assert_int_equal(launch(&spec, plain, "main/there", &p), HD_OK);
    hd_runtime_sync(w->rt);
    settle();
    assert_false(runs("a"));
    start_elsewhere();
    hd_sink(w->rt, hd_cell_at(w->rt, "main/a/d"), look, NULL);
    settle();
    assert_true(runs("a"));
}

/* A child that the program stopped with its parent stays so as well. */
static void demand_does_not_open_what_stopped_with_its_parent(void **state) {
    (void)state;
    start_elsewhere();
    hd_piece parent = start("parent", plain);
    start_under("a", plain, parent);
    settle();
    hd_piece_stop(w->rt, parent);
    hd_sink(w->rt, hd_cell_at(w->rt, "main/a/d"), look, NULL);
    settle();
    assert_false(runs("a"));
}

static bool refuses; /* for one start */
static hd_cell now_and_then(hd_build *b, void *ctx) {
    return refuses ? hd_build_fail(b, HD_FAILED, "not now") : plain(b, ctx);
}

/* It was not started: what the program wanted before still holds. */
static void a_start_that_fails_leaves_it_stopped(void **state) {
    (void)state;
    hd_piece p, a = start("a", now_and_then);
    hd_sink(w->rt, hd_piece_result(w->rt, a), look, NULL);
    settle();
    hd_piece_stop(w->rt, a);
    refuses = true;
    hd_piece_spec spec = { .id = "a", .pattern = "a" };
    assert_int_equal(hd_piece_start(w->rt, &spec, &p, NULL), HD_FAILED);
    refuses = false;
    hd_sink(w->rt, hd_cell_at(w->rt, "main/a/d"), look, NULL);
    settle();
    assert_false(runs("a"));
}

static void many_pieces_are_stopped_and_started_again(void **state) {
    (void)state;
    char id[32];
    hd_piece p[300];
    hd_pattern_register(w->rt, "plain", "1", plain, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            snprintf(id, sizeof id, "p%d", i);
            hd_piece_spec spec = { .id = id, .pattern = "plain" };
            assert_int_equal(hd_piece_start(w->rt, &spec, &p[i], NULL), HD_OK);
        }
        for (int i = 0; i < 300; i++) hd_piece_stop(w->rt, p[(i * 7) % 300]);
    }
    assert_int_equal(hd_piece_open(w->rt, NULL, "p7", &w->piece, &w->error), HD_OK);
    assert_true(runs("p7"));
}

/* ---- removing */

static void a_piece_is_not_removed_inside_a_transaction(void **state) {
    (void)state;
    hd_tx *tx;
    hd_piece a = start("a", plain);
    assert_int_equal(hd_tx_begin(w->rt, &tx), HD_OK);
    assert_int_equal(hd_piece_remove(w->rt, a), HD_USAGE);
    hd_tx_abort(tx);
    assert_true(runs("a"));
    assert_int_equal(hd_piece_remove(w->rt, a), HD_OK);
    assert_false(runs("a"));
}

static hd_cell of_user(void) { return hd_cell_of(w->rt, "main", HD_SCOPE_USER, "a/mine", ""); }

/* Also what no cell of this runtime has named. */
static void the_documents_of_the_user_are_removed_too(void **state) {
    (void)state;
    start("a", plain);
    hd_write_json(w->rt, of_user(), "1");
    die();
    live();
    assert_int_equal(hd_piece_remove(w->rt, start("a", plain)), HD_OK);
    settle();
    assert_false(hd_value_exists(hd_read(w->rt, w->pool, of_user())));
}

/* ---- opening */

static void what_cannot_be_opened_is_told(void **state) {
    (void)state;
    hd_piece p;
    hd_pattern_register(w->rt, "plain", "1", plain, NULL);
    hd_write_json(w->rt, hd_cell_at(w->rt, "main/main"), "{\"pattern\": \"plain\"}");
    assert_int_equal(hd_piece_open(w->rt, "main", "a/b", &p, &w->error), HD_USAGE);
    assert_non_null(strstr(w->error.message, "id"));
    assert_int_equal(hd_piece_open(w->rt, "main", NULL, &p, &w->error), HD_USAGE);
    assert_int_equal(hd_piece_open(w->rt, "main", "main", &p, &w->error), HD_USAGE);
    assert_int_equal(hd_piece_open(w->rt, NULL, "nothing", &p, &w->error), HD_NOT_FOUND);
    assert_int_equal(p.id, 0);
}

static bool grown;
static hd_value is_there(hd_tx *tx, hd_value in, void *ctx) {
    (void)tx, (void)ctx;
    return hd_bool(hd_value_exists(in));
}
static hd_cell grows(hd_build *b, void *ctx) {
    if (grown) hd_build_state(b, "count", hd_int(NULL, 7));
    return hd_build_derive(b, "d", hd_build_argument(b, grown ? "y" : "x", hd_int(NULL, 1)),
                           is_there, NULL);
}

/* What new code asks for is not there, and cannot be written: it goes without. */
static void who_only_reads_opens_a_piece_as_it_is(void **state) {
    (void)state;
    hd_piece p;
    start("a", grows);
    settle();
    die();
    grown = true;
    hd_options options = { .memory = w->memory, .read_only = true };
    assert_int_equal(hd_open(NULL, &options, &w->rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(w->rt), &w->pool), HD_OK);
    hd_pattern_register(w->rt, "a", "2", grows, NULL);
    assert_int_equal(hd_piece_open(w->rt, NULL, "a", &p, &w->error), HD_OK);
    hd_sink(w->rt, hd_piece_result(w->rt, p), look, NULL);
    settle();
    grown = false;
    hd_value there = hd_read(w->rt, w->pool, hd_piece_result(w->rt, p));
    assert_false(hd_value_as_bool(there, true));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_parent_that_has_gone_is_none),
        T(a_piece_is_not_its_own_parent),
        T(all_that_is_below_a_piece_stops_with_it),
        T(nothing_starts_below_a_piece_that_is_being_stopped),
        T(a_closing_runtime_starts_nothing),
        T(a_pattern_does_not_close_the_runtime),
        T(a_second_launch_does_not_wait_for_the_first),
        T(a_piece_that_was_only_launched_gets_its_state),
        T(a_piece_that_was_only_launched_is_built_when_it_is_opened),
        T(a_computation_launches_nothing),
        cmocka_unit_test(a_launched_piece_is_built_or_gone),
        T(a_launch_in_vain_does_not_keep_others_from_opening_it),
        T(demand_does_not_open_what_stopped_with_its_parent),
        T(a_start_that_fails_leaves_it_stopped),
        T(many_pieces_are_stopped_and_started_again),
        T(a_piece_is_not_removed_inside_a_transaction),
        T(the_documents_of_the_user_are_removed_too),
        T(who_only_reads_opens_a_piece_as_it_is),
        T(what_cannot_be_opened_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
