/* test_said.c -- small statements of the headers and of docs/DECISIONS/0033 and 0037, one program each. Public headers
 * only. */
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int runs;
static char shown[200];

static void show(hd_value v, void *ctx) {
    hd_pool *pool = ctx;
    runs++;
    const char *text = hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "-";
    snprintf(shown, sizeof shown, "%s", text);
}

typedef struct world {
    hd_lab *lab;
    hd_runtime *rt;
    hd_pool *pool;
} world;

static world begin(bool in_file) {
    world w = { .lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file }) };
    w.rt = hd_lab_runtime(w.lab, "a");
    assert_int_equal(hd_pool_open(hd_runtime_heap(w.rt), &w.pool), HD_OK);
    runs = 0;
    return w;
}

static void end(world w) {
    hd_pool_close(w.pool);
    hd_lab_close(w.lab);
}

/* A sink on main/d through a schema that is closed at once (store.h: the runtime holds a reference). */
static hd_schema *sink_with_schema(world w, const char *json) {
    hd_schema *schema;
    hd_error error;
    hd_value v = hd_json_parse(w.pool, json, strlen(json), &error);
    assert_int_equal(hd_schema_compile(hd_runtime_heap(w.rt), v, &schema, &error), HD_OK);
    hd_sink(w.rt, hd_cell_with_schema(w.rt, hd_cell_at(w.rt, "main/d"), schema), show, w.pool);
    return schema;
}

/* 0037: what made the first alternative of an anyOf fail is a dependency. */
static void a_reader_runs_when_the_first_alternative_begins_to_match(void **state) {
    world w = begin(false);
    hd_lab_set(w.rt, "main/d", "{\"a\": \"text\", \"b\": 1}");
    hd_schema_close(sink_with_schema(
        w, "{\"anyOf\": [{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": "
           "{\"type\": \"number\"}}}, {\"type\": \"object\", \"properties\": {\"b\": true}}]}"));
    hd_lab_settle(w.lab);
    runs = 0;
    hd_lab_set(w.rt, "main/d#/a", "7");
    hd_lab_settle(w.lab);
    assert_int_equal(runs, 1);
    assert_non_null(strstr(shown, "\"a\":7"));
    end(w);
}

/* store.h: a cell with a schema reads what hd_schema_project gives, also for a required property with a default and a
 * value that does not match. */
static void a_required_default_reads_as_it_is_projected(void **state) {
    static const char *const documents[] = { "{}", "{\"a\": \"text\"}", "{\"a\": 3}", "7" };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        world w = begin(false);
        hd_error error;
        hd_lab_set(w.rt, "main/d", documents[i]);
        hd_schema *schema = sink_with_schema(
            w, "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"type\": "
               "\"number\", \"default\": 5}}}");
        hd_lab_settle(w.lab);
        hd_value v = hd_json_parse(w.pool, documents[i], strlen(documents[i]), &error);
        hd_value p = hd_schema_project(w.pool, schema, v);
        assert_string_equal(
            shown, hd_value_exists(p) ? hd_json_print(w.pool, p, HD_JSON_COMPACT, NULL) : "-");
        hd_schema_close(schema);
        end(w);
    }
}

/* store.h: a reader of /a/b runs when {"a": {}} becomes {}, though /a/b is absent before and after. */
static void a_reader_runs_when_less_of_its_path_exists(void **state) {
    world w = begin(false);
    hd_lab_set(w.rt, "main/d", "{\"a\": {}}");
    hd_sink(w.rt, hd_cell_at(w.rt, "main/d#/a/b"), show, w.pool);
    hd_lab_settle(w.lab);
    hd_lab_set(w.rt, "main/d", "{}");
    hd_lab_settle(w.lab);
    assert_int_equal(runs, 2);
    assert_string_equal(shown, "-");
    end(w);
}

/* ---- a piece */

static int rows;
static hd_value row(hd_tx *tx, hd_value in, void *ctx) {
    rows++;
    return in;
}
static hd_cell pattern(hd_build *b, void *ctx) {
    hd_cell list = hd_build_argument(b, "list", hd_array());
    return hd_build_gather(b, "all", hd_build_map(b, "rows", list, &(hd_each){ .fn = row }));
}

/* RESUME.md, "Taking them up": stop and start need no sync; the rows of a piece do not run again. */
static void a_piece_stopped_and_started_runs_nothing(void **state) {
    for (int in_file = 0; in_file < 2; in_file++) {
        world w = begin(in_file);
        hd_error error;
        hd_piece piece;
        const hd_piece_spec spec = { .id = "p", .pattern = "p" };
        hd_pattern_register(w.rt, "p", "1", pattern, NULL);
        assert_int_equal(hd_piece_start(w.rt, &spec, &piece, &error), HD_OK);
        hd_lab_set(w.rt, "main/p#/arguments/list", "[1, 2, 3]");
        hd_node sink = hd_sink(w.rt, hd_piece_result(w.rt, piece), show, w.pool);
        hd_lab_settle(w.lab);
        rows = 0;
        hd_node_unregister(w.rt, sink);
        hd_piece_stop(w.rt, piece);
        assert_int_equal(hd_piece_start(w.rt, &spec, &piece, &error), HD_OK);
        hd_sink(w.rt, hd_piece_result(w.rt, piece), show, w.pool);
        hd_lab_settle(w.lab);
        assert_string_equal(shown, "[1,2,3]");
        assert_int_equal(rows, 0);
        end(w);
    }
}

static bool count_one(const hd_listing *entry, void *ctx) {
    ++*(int *)ctx;
    return true;
}
static int documents_of(hd_runtime *rt, const char *prefix) {
    int n = 0;
    assert_int_equal(hd_runtime_list(rt, "main", NULL, prefix, count_one, &n), HD_OK);
    return n;
}

/* pattern.h: the removal of the documents of a row that has left is tried again if the store refuses it. */
static void a_removal_that_is_refused_is_tried_again(void **state) {
    world w = begin(false);
    hd_error error;
    hd_piece piece;
    hd_lab_runtime(w.lab, "b"); /* commits are sent */
    hd_pattern_register(w.rt, "p", "1", pattern, NULL);
    assert_int_equal(
        hd_piece_start(w.rt, &(hd_piece_spec){ .id = "p", .pattern = "p" }, &piece, &error), HD_OK);
    hd_sink(w.rt, hd_piece_result(w.rt, piece), show, w.pool);
    hd_lab_set(w.rt, "main/p#/arguments/list", "[1]");
    hd_lab_idle(w.lab);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    int few = documents_of(w.rt, "p/");
    hd_lab_set(w.rt, "main/p#/arguments/list", "[1, 2, 3]");
    hd_lab_idle(w.lab);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    assert_true(documents_of(w.rt, "p/") > few);
    hd_lab_set(w.rt, "main/p#/arguments/list", "[1]");
    hd_lab_pump(w.rt); /* the list is stored; its rows have left, and the next pump removes them */
    hd_lab_refuse(w.rt, HD_STALE, 4);
    hd_lab_idle(w.lab);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    assert_int_equal(documents_of(w.rt, "p/"), few);
    end(w);
}

/* ---- time and events */

static hd_status copy(hd_tx *tx, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    runs++;
    return hd_tx_set(tx, hd_cell_at(rt, "main/y"), hd_tx_get(tx, hd_cell_at(rt, "main/x")));
}

/* scheduler.h, Time gates: while the node is dormant, changes after the first do not restart its debounce. */
static void a_dormant_node_does_not_restart_its_debounce(void **state) {
    world w = begin(false);
    hd_node n = hd_compute(w.rt, "copy", copy, NULL, hd_cell_at(w.rt, "main/y"));
    hd_lab_set(w.rt, "main/x", "1");
    hd_node sink = hd_sink(w.rt, hd_cell_at(w.rt, "main/y"), show, w.pool);
    hd_lab_idle(w.lab);
    hd_node_set_debounce(w.rt, n, 100);
    hd_node_unregister(w.rt, sink);
    hd_lab_settle(w.lab);
    hd_lab_set(w.rt, "main/x", "2");
    hd_lab_settle(w.lab);
    hd_lab_advance_ms(w.lab, 60);
    hd_lab_set(w.rt, "main/x", "3");
    hd_lab_settle(w.lab);
    hd_lab_advance_ms(w.lab, 60);
    hd_sink(w.rt, hd_cell_at(w.rt, "main/y"), show, w.pool);
    hd_lab_settle(w.lab);
    assert_string_equal(hd_lab_get(w.rt, "main/y"), "3");
    end(w);
}

/* ---- what does not settle, and what is refused */

static hd_status follow(hd_tx *tx, void *ctx) {
    const hd_cell *c = ctx; /* what it writes, what it reads */
    return hd_tx_set_int(tx, c[0], hd_value_as_int(hd_tx_get(tx, c[1]), 0) + 1);
}

/* 0033, I6: a pass runs each node of a cycle ten times at most, and makes ten sweeps. */
static void a_pass_runs_a_node_at_most_ten_times(void **state) {
    world w = begin(false);
    hd_cell ping = hd_cell_at(w.rt, "main/ping"), pong = hd_cell_at(w.rt, "main/pong");
    hd_cell a[] = { ping, pong }, b[] = { pong, ping };
    hd_scheduler_stats stats;
    hd_compute(w.rt, "ping", follow, a, ping);
    hd_compute(w.rt, "pong", follow, b, pong);
    hd_sink(w.rt, ping, show, w.pool);
    hd_lab_pump(w.rt);
    hd_runtime_scheduler_stats(w.rt, &stats);
    assert_int_equal(stats.passes, 1);
    assert_int_equal(stats.iterations, 10);
    uint64_t pings = hd_lab_runs(w.rt, "ping"), pongs = hd_lab_runs(w.rt, "pong");
    assert_in_range(pings, 9, 10); /* a run that met what had yet to run does not count */
    assert_in_range(pongs, 9, 10);
    assert_int_equal(stats.unsettled, 1);
    end(w);
}

/* introspect.h: stale_retries counts results that the store refused, as it counts other commits. */
static void a_refused_result_is_counted(void **state) {
    world w = begin(false);
    hd_scheduler_stats stats;
    hd_lab_runtime(w.lab, "b");
    hd_lab_set(w.rt, "main/x", "1");
    hd_lab_settle(w.lab);
    hd_lab_refuse(w.rt, HD_STALE, 2);
    hd_compute(w.rt, "copy", copy, NULL, hd_cell_at(w.rt, "main/y"));
    hd_sink(w.rt, hd_cell_at(w.rt, "main/y"), show, w.pool);
    hd_lab_idle(w.lab);
    assert_int_equal(hd_runtime_sync(w.rt), HD_OK);
    hd_runtime_scheduler_stats(w.rt, &stats);
    assert_int_equal(stats.stale_retries, 2);
    end(w);
}

/* ---- resumed nodes */

static int derived;
static hd_value count_derived(hd_tx *tx, hd_value in, void *ctx) {
    derived++;
    return in;
}
static hd_cell of_a(hd_build *b, void *ctx) {
    hd_cell a = hd_cell_at(hd_build_runtime(b), "main/d#/a");
    return hd_build_derive(b, "copy", a, count_derived, NULL);
}
static void start_of_a(hd_runtime *rt, hd_pool *pool) {
    hd_error error;
    hd_piece piece;
    hd_pattern_register(rt, "p", "1", of_a, NULL);
    assert_int_equal(
        hd_piece_start(rt, &(hd_piece_spec){ .id = "p", .pattern = "p" }, &piece, &error), HD_OK);
    hd_sink(rt, hd_piece_result(rt, piece), show, pool);
}

/* I7: a commit of this program that has no verdict yet, elsewhere in the document, runs no resumed node. */
static void a_resumed_node_does_not_run_for_a_pending_commit_elsewhere(void **state) {
    for (int late = 0; late < 2; late++) {
        world w = begin(true);
        hd_lab_set(w.rt, "main/d", "{\"a\": 1, \"b\": 1}");
        start_of_a(w.rt, w.pool);
        hd_lab_idle(w.lab);
        hd_pool_close(w.pool);
        hd_lab_runtime_close(w.rt);
        w.rt = hd_lab_runtime(w.lab, "again");
        assert_int_equal(hd_pool_open(hd_runtime_heap(w.rt), &w.pool), HD_OK);
        derived = 0;
        hd_cell b = hd_cell_at(w.rt, "main/d#/b");
        if (!late) assert_int_equal(hd_write(w.rt, b, hd_int(NULL, 2)), HD_OK);
        start_of_a(w.rt, w.pool);
        if (late) assert_int_equal(hd_write(w.rt, b, hd_int(NULL, 2)), HD_OK);
        hd_lab_idle(w.lab);
        assert_string_equal(shown, "1");
        assert_int_equal(derived, 0);
        end(w);
    }
}

static hd_value in_array(hd_tx *tx, hd_value in, void *ctx) {
    return hd_array_of(hd_tx_pool(tx), &in, 1);
}
static hd_cell two_steps(hd_build *b, void *ctx) {
    hd_cell a = hd_cell_at(hd_build_runtime(b), "main/d#/a");
    hd_cell y = hd_build_derive(b, "y", a, count_derived, NULL);
    return hd_build_derive(b, "z", y, in_array, NULL);
}
static void start_two_steps(hd_runtime *rt, hd_pool *pool) {
    hd_error error;
    hd_piece piece;
    hd_pattern_register(rt, "p", "1", two_steps, NULL);
    const hd_piece_spec spec = { .id = "p", .pattern = "p" };
    assert_int_equal(hd_piece_start(rt, &spec, &piece, &error), HD_OK);
    hd_sink(rt, hd_piece_result(rt, piece), show, pool);
}

/* 0300: another program removes the document of a resumed node, which is not loaded here, and folds the log before this
 * program hears of it. The node makes the document again before anything reads it. */
static void a_document_that_is_removed_unseen_is_made_again(void **state) {
    for (int pruned = 0; pruned < 2; pruned++) {
        world w = begin(true);
        hd_error error;
        hd_lab_set(w.rt, "main/d", "{\"a\": 1}");
        start_two_steps(w.rt, w.pool);
        hd_lab_idle(w.lab);
        hd_pool_close(w.pool);
        hd_lab_runtime_close(w.rt);
        w.rt = hd_lab_runtime(w.lab, "again");
        assert_int_equal(hd_pool_open(hd_runtime_heap(w.rt), &w.pool), HD_OK);
        start_two_steps(w.rt, w.pool);
        hd_lab_idle(w.lab);
        hd_runtime *b = hd_lab_runtime(w.lab, "b");
        hd_tx *tx;
        assert_int_equal(hd_tx_begin(b, &tx), HD_OK);
        assert_int_equal(hd_tx_remove(tx, hd_cell_at(b, "main/p/y")), HD_OK);
        assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
        assert_int_equal(hd_runtime_sync(b), HD_OK);
        assert_int_equal((pruned ? hd_store_prune : hd_store_checkpoint)(b, &error), HD_OK);
        hd_lab_idle(w.lab);
        assert_string_equal(hd_lab_failures(w.rt), "");
        assert_string_equal(hd_lab_get(w.rt, "main/p/y"), "1");
        assert_string_equal(shown, "[1]");
        end(w);
    }
}

/* ---- events */

static hd_status count_first(hd_tx *tx, const hd_event *event, void *ctx) {
    ++*(int *)ctx;
    return HD_OK;
}

/* event.h, 0033: a second handler replaces the first. */
static void a_second_handler_replaces_the_first(void **state) {
    world w = begin(false);
    int first = 0, second = 0;
    hd_cell stream = hd_cell_at(w.rt, "main/go");
    hd_handler_spec spec = {
        .stream = stream, .fn = count_first, .ctx = &first, .reads_nothing = true
    };
    hd_handler_register(w.rt, &spec, NULL);
    spec.ctx = &second;
    hd_handler_register(w.rt, &spec, NULL);
    hd_event_send(w.rt, stream, hd_null(), NULL);
    hd_lab_idle(w.lab);
    assert_int_equal(first, 0);
    assert_int_equal(second, 1);
    end(w);
}

/* The second write does not fit, and the body does not look. */
static void write_without_looking(hd_tx *tx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/before"), 1);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/five#/a"), 1);
    hd_tx_set_int(tx, hd_cell_at(rt, "main/after"), 1);
    hd_tx_append(tx, hd_cell_at(rt, "main/five"), hd_null());
}
static hd_status act_without_looking(hd_tx *tx, void *ctx) {
    write_without_looking(tx);
    return HD_OK;
}
static hd_status handle_without_looking(hd_tx *tx, const hd_event *event, void *ctx) {
    write_without_looking(tx);
    return HD_OK;
}
static hd_status suspend_without_looking(hd_tx *tx, void *ctx) {
    hd_status status = hd_tx_suspend(tx, ctx);
    return status ? status : HD_PENDING;
}

/* store.h: the failure of a run, and of a handling, names the cell of the write that failed first. */
static void a_failure_names_the_write_that_failed_first(void **state) {
    world w = begin(false);
    hd_run *run;
    hd_lab_set(w.rt, "main/five", "5");
    hd_effect(w.rt, "act", act_without_looking, NULL);
    hd_lab_settle(w.lab);
    assert_string_equal(hd_lab_failures(w.rt),
                        "act HD_KIND: main/five#/a: what is there is of another kind");
    hd_effect(w.rt, "later", suspend_without_looking, &run);
    hd_lab_settle(w.lab);
    write_without_looking(hd_run_tx(run));
    hd_run_resume(run, HD_OK);
    hd_lab_settle(w.lab);
    assert_string_equal(hd_lab_failures(w.rt),
                        "later HD_KIND: main/five#/a: what is there is of another kind");
    hd_handler_spec spec = { .stream = hd_cell_at(w.rt, "main/go"),
                             .fn = handle_without_looking,
                             .reads_nothing = true };
    hd_handler_register(w.rt, &spec, NULL);
    hd_event_send(w.rt, spec.stream, hd_null(), NULL);
    hd_lab_settle(w.lab);
    assert_string_equal(hd_lab_failures(w.rt),
                        "main/go HD_KIND: main/five#/a: what is there is of another kind");
    end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_runs_when_the_first_alternative_begins_to_match),
        cmocka_unit_test(a_required_default_reads_as_it_is_projected),
        cmocka_unit_test(a_reader_runs_when_less_of_its_path_exists),
        cmocka_unit_test(a_piece_stopped_and_started_runs_nothing),
        cmocka_unit_test(a_dormant_node_does_not_restart_its_debounce),
        cmocka_unit_test(a_second_handler_replaces_the_first),
        cmocka_unit_test(a_failure_names_the_write_that_failed_first),
        cmocka_unit_test(a_removal_that_is_refused_is_tried_again),
        cmocka_unit_test(a_pass_runs_a_node_at_most_ten_times),
        cmocka_unit_test(a_refused_result_is_counted),
        cmocka_unit_test(a_resumed_node_does_not_run_for_a_pending_commit_elsewhere),
        cmocka_unit_test(a_document_that_is_removed_unseen_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
