/* test_failed_values.c -- value.h: "every consumer refuses it with that status". Each public function that takes a
 * value is called with one that could not be made. tools/check-headers reads the names here: a new function that takes
 * a value has a line in one of the tables. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle.h>
#include <heddle/workflow_build.h>
#include <stdio.h>
#include <string.h>

/* A status that none of these functions returns for a reason of its own. */
#define WHY HD_CORRUPT
#define BAD hd_failed(WHY)

static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static hd_cell cell, stream;
static char id[HD_INSTANCE_ID_SIZE];
static hd_error told;

static hd_status nothing(hd_tx *tx, const hd_event *event, void *ctx) { return HD_OK; }

static hd_value flow(const char *name) {
    hd_flow *f;
    hd_value ir;
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    hd_flow_input(f, "a", hd_null());
    hd_flow_wait(f, "x", "go", NULL);
    hd_flow_return(f, "[a, x]");
    assert_int_equal(hd_flow_ir(f, &ir, NULL), HD_OK);
    hd_flow_close(f);
    return ir;
}

static int set_up(void **state) {
    assert_int_equal(hd_open(NULL, NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    cell = hd_cell_at(rt, "main/x");
    stream = hd_cell_at(rt, "main/s");
    hd_handler_spec spec = { .stream = stream, .fn = nothing, .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_workflow_register(engine, flow("w"), NULL, NULL), HD_OK);
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    return 0;
}
static int tear_down(void **state) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    return 0;
}

static bool count(const char *text, size_t length, void *ctx) {
    (void)text;
    *(size_t *)ctx += length;
    return true;
}
static bool on_difference(const hd_step *path, size_t depth, hd_value before, hd_value after,
                          void *ctx) {
    return true;
}

static hd_status of(hd_value v) { return hd_value_status(v); }

/* ---- of values */

static hd_status build(hd_kind kind) {
    hd_builder *b;
    assert_int_equal(hd_builder_open(pool, kind, &b), HD_OK);
    if (kind == HD_KIND_ARRAY) hd_builder_add(b, BAD);
    else hd_builder_put(b, "k", BAD);
    return of(hd_builder_close(b));
}
static hd_status build_n(void) {
    hd_builder *b;
    assert_int_equal(hd_builder_open(pool, HD_KIND_OBJECT, &b), HD_OK);
    hd_builder_put_n(b, "k", 1, BAD);
    return of(hd_builder_close(b));
}
static hd_status schema_compile(void) {
    hd_schema *schema;
    return hd_schema_compile(hd_runtime_heap(rt), BAD, &schema, &told);
}
static hd_status with_schema(bool project) {
    hd_schema *schema;
    hd_heap *heap = hd_runtime_heap(rt);
    assert_int_equal(hd_schema_compile(heap, hd_bool(true), &schema, NULL), HD_OK);
    hd_status status =
        project ? of(hd_schema_project(pool, schema, BAD)) : hd_schema_validate(schema, BAD, &told);
    hd_schema_close(schema);
    return status;
}
static hd_path path_of(void) {
    hd_path path;
    assert_int_equal(hd_path_intern(hd_runtime_heap(rt), "/a", &path, NULL), HD_OK);
    return path;
}

static void functions_of_values_pass_the_failure_on(void **state) {
    char name[HD_ID_SIZE];
    size_t length = 0;
    hd_value list = hd_array_append(pool, hd_array(), hd_null());
    const struct {
        const char *name;
        hd_status status;
    } said[] = {
        { "hd_value_status", hd_value_status(BAD) },
        { "hd_value_ref", of(hd_value_ref(BAD)) },
        { "hd_value_take", of(hd_value_take(pool, BAD)) },
        { "hd_array_of", of(hd_array_of(pool, (hd_value[]){ BAD }, 1)) },
        { "hd_object_set", of(hd_object_set(pool, BAD, "k", hd_null())) },
        { "hd_object_set", of(hd_object_set(pool, hd_object(), "k", BAD)) },
        { "hd_object_set_n", of(hd_object_set_n(pool, hd_object(), "k", 1, BAD)) },
        { "hd_object_remove", of(hd_object_remove(pool, BAD, "k")) },
        { "hd_array_append", of(hd_array_append(pool, BAD, hd_null())) },
        { "hd_array_append", of(hd_array_append(pool, hd_array(), BAD)) },
        { "hd_array_set", of(hd_array_set(pool, list, 0, BAD)) },
        { "hd_array_insert", of(hd_array_insert(pool, list, 0, BAD)) },
        { "hd_array_remove", of(hd_array_remove(pool, BAD, 0)) },
        { "hd_array_truncate", of(hd_array_truncate(pool, BAD, 0)) },
        { "hd_builder_put", build(HD_KIND_OBJECT) },
        { "hd_builder_put_n", build_n() },
        { "hd_builder_add", build(HD_KIND_ARRAY) },
        { "hd_value_set", of(hd_value_set(pool, hd_object(), path_of(), BAD)) },
        { "hd_value_set", of(hd_value_set(pool, BAD, path_of(), hd_null())) },
        { "hd_value_remove", of(hd_value_remove(pool, BAD, path_of())) },
        { "hd_value_append", of(hd_value_append(pool, hd_array(), HD_PATH_ROOT, BAD)) },
        { "hd_id_of", hd_id_of(BAD, name) },
        { "hd_json_write", hd_json_write(BAD, HD_JSON_COMPACT, count, &length) },
        { "hd_schema_compile", schema_compile() },
        { "hd_schema_validate", with_schema(false) },
        { "hd_schema_project", with_schema(true) },
        { "hd_value_diff",
          hd_value_diff(hd_runtime_heap(rt), BAD, hd_null(), on_difference, NULL) },
        { "hd_workflow_graph",
          of(hd_workflow_graph(pool, BAD, HD_GRAPH_TEXT, (hd_value){ 0 }, NULL)) },
        { "hd_workflow_graph", of(hd_workflow_graph(pool, flow("g"), HD_GRAPH_TEXT, BAD, NULL)) },
        { "hd_workflow_explain", of(hd_workflow_explain(pool, BAD, NULL)) },
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].status != WHY) fail_msg("%s: %s", said[i].name, hd_status_name(said[i].status));
    assert_null(hd_json_print(pool, BAD, HD_JSON_COMPACT, NULL));
    assert_int_equal(length, 0);
}

/* They have no status to return: a value that failed reads as none, and has the least cost. */
static void functions_that_only_look_see_no_value(void **state) {
    hd_link link;
    assert_int_equal(hd_value_kind(BAD), HD_KIND_FAILED);
    assert_false(hd_value_exists(BAD) || hd_value_is_true(BAD) || hd_value_link(BAD, &link));
    assert_true(hd_value_as_bool(BAD, true));
    assert_int_equal(hd_value_as_int(BAD, 7), 7);
    assert_true(hd_value_as_double(BAD, 7) == 7 && hd_value_number(BAD) != hd_value_number(BAD));
    assert_string_equal(hd_value_as_text(BAD, "none"), "none");
    assert_true(!hd_value_text(BAD, NULL) && !hd_value_bytes(BAD, NULL));
    assert_int_equal(hd_value_count(BAD), 0);
    assert_false(hd_value_exists(hd_value_at(BAD, "k")) || hd_value_exists(hd_value_index(BAD, 0)));
    assert_false(hd_value_exists(hd_value_at_n(BAD, "k", 1)));
    assert_false(hd_value_exists(hd_value_get(hd_runtime_heap(rt), BAD, path_of())));
    hd_iter it = hd_iter_of(BAD);
    assert_false(hd_iter_next(&it));
    assert_true(hd_value_equal(BAD, BAD) && !hd_value_equal(BAD, hd_null()));
    assert_true(hd_value_same_shape(BAD, BAD) && hd_value_compare(BAD, BAD) == 0);
    (void)hd_value_hash(hd_runtime_heap(rt), BAD);
    hd_value_unref(BAD);
    assert_int_equal(hd_cell_of_link(rt, cell, BAD).id, 0);
}

/* ---- in transactions */

typedef hd_status in_tx(hd_tx *tx);
static hd_status set(hd_tx *tx) { return hd_tx_set(tx, cell, BAD); }
static hd_status set_otherwise(hd_tx *tx) { return hd_tx_set_otherwise_(tx, cell, BAD); }
static hd_status append(hd_tx *tx) { return hd_tx_append(tx, cell, BAD); }
static hd_status increment(hd_tx *tx) { return hd_tx_increment(tx, cell, BAD); }
static hd_status patch(hd_tx *tx) { return hd_tx_patch(tx, cell, BAD, &told); }
static hd_status require(hd_tx *tx) { return hd_tx_require_equal(tx, cell, BAD); }
static hd_status set_meta(hd_tx *tx) { return hd_tx_set_meta(tx, cell, "k", BAD); }
static hd_status follow(hd_tx *tx) { return of(hd_tx_follow(tx, cell, BAD)); }
static hd_status tx_send(hd_tx *tx) { return hd_tx_send(tx, stream, BAD, NULL); }
static hd_status tx_post(hd_tx *tx) { return hd_tx_post(tx, stream, BAD, NULL, NULL); }
static hd_status tx_start(hd_tx *tx) {
    char other[HD_INSTANCE_ID_SIZE];
    return hd_workflow_start_in(engine, tx, "w", BAD, NULL, other);
}
static hd_status launch(hd_tx *tx) {
    hd_piece_spec spec = { .id = "l", .pattern = "none", .arguments = BAD };
    return hd_tx_launch_piece(tx, &spec, NULL);
}

static void writes_are_refused(void **state) {
    static const struct {
        const char *name;
        in_tx *fn;
    } calls[] = {
        { "hd_tx_set", set },
        { "hd_tx_set_otherwise_", set_otherwise },
        { "hd_tx_append", append },
        { "hd_tx_increment", increment },
        { "hd_tx_patch", patch },
        { "hd_tx_require_equal", require },
        { "hd_tx_set_meta", set_meta },
        { "hd_tx_follow", follow },
        { "hd_tx_send", tx_send },
        { "hd_tx_post", tx_post },
        { "hd_workflow_start_in", tx_start },
        { "hd_tx_launch_piece", launch },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        hd_tx *tx;
        assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
        hd_status status = calls[i].fn(tx);
        if (status != WHY) fail_msg("%s: %s", calls[i].name, hd_status_name(status));
        hd_tx_abort(tx);
    }
    assert_int_equal(hd_write(rt, cell, BAD), WHY);
    assert_int_equal(hd_event_send(rt, stream, BAD, NULL), WHY);
    assert_int_equal(hd_event_post(rt, stream, BAD, NULL, NULL), WHY);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_false(hd_value_exists(hd_read(rt, pool, cell)));
}

static hd_status answers[2];
static hd_status answer(hd_tx *tx, const hd_event *event, void *ctx) {
    answers[0] = hd_tx_return(tx, BAD);
    answers[1] = hd_tx_outbox(tx, "channel", BAD);
    return HD_OK;
}
static void handlers_are_told(void **state) {
    hd_cell other = hd_cell_at(rt, "main/other");
    hd_handler_spec spec = { .stream = other, .fn = answer, .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_event_send(rt, other, hd_null(), NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(answers[0], WHY);
    assert_int_equal(answers[1], WHY);
}

/* ---- in patterns */

static hd_cell argument(hd_build *b, void *ctx) { return hd_build_argument(b, "a", BAD); }
static hd_cell constant(hd_build *b, void *ctx) { return hd_build_constant(b, "c", BAD); }
static hd_cell with_state(hd_build *b, void *ctx) { return hd_build_state(b, "s", BAD); }
static hd_cell fold(hd_build *b, void *ctx) {
    hd_fold counted = { .kind = HD_FOLD_COUNT, .neutral = BAD };
    return hd_build_fold(b, "f", hd_build_argument(b, "l", hd_array()), &counted);
}

static void pieces_do_not_start(void **state) {
    static const struct {
        const char *name;
        hd_pattern_fn fn;
    } calls[] = { { "hd_build_argument", argument },
                  { "hd_build_constant", constant },
                  { "hd_build_state", with_state },
                  { "hd_build_fold", fold } };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        hd_piece_spec spec = { .id = calls[i].name, .pattern = calls[i].name };
        assert_int_equal(hd_pattern_register(rt, calls[i].name, "1", calls[i].fn, NULL), HD_OK);
        hd_status status = hd_piece_start(rt, &spec, NULL, &told);
        if (status != WHY) fail_msg("%s: %s", calls[i].name, hd_status_name(status));
    }
    hd_piece_spec spec = { .id = "a", .pattern = "hd_build_state", .arguments = BAD };
    assert_int_equal(hd_piece_start(rt, &spec, NULL, &told), WHY);
}

/* ---- in workflows */

static void workflows_are_not_started_nor_signalled(void **state) {
    char other[HD_INSTANCE_ID_SIZE];
    uint64_t times[1];
    size_t n;
    hd_value result;
    hd_schedule daily = { .name = "s", .workflow = "w", .cron = "@daily", .input = BAD };
    assert_int_equal(hd_workflow_start(engine, "w", BAD, NULL, other), WHY);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "could not be made"));
    assert_int_equal(hd_workflow_signal(engine, id, "go", BAD), WHY);
    assert_int_equal(hd_schedule_put(engine, &daily, &told), WHY);
    assert_int_equal(hd_schedule_times(engine, &daily, 0, times, 1, &n, &told), WHY);
    assert_int_equal(hd_workflow_register(engine, BAD, NULL, &told), WHY);
    assert_int_equal(hd_attempt_return(engine, 1, BAD), WHY);
    assert_int_equal(hd_attempt_raise(engine, 1, BAD), WHY);
    assert_int_equal(hd_schedule_state(engine, "s", pool, &result), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    assert_int_equal(hd_workflow_await(engine, id, pool, &result), HD_OK);
}

static hd_status returned;
static hd_status return_it(hd_action *action, hd_value args, void *ctx) {
    return returned = hd_action_return(action, BAD);
}
static void an_action_that_returns_it_has_failed(void **state) {
    hd_flow *f;
    hd_value ir, result;
    char other[HD_INSTANCE_ID_SIZE];
    assert_int_equal(hd_action_register(engine, &(hd_action_spec){ .name = "a", .fn = return_it }),
                     HD_OK);
    assert_int_equal(hd_flow_open(pool, "acts", &f), HD_OK);
    hd_flow_action(f, NULL, "a", NULL);
    assert_int_equal(hd_flow_ir(f, &ir, NULL), HD_OK);
    hd_flow_close(f);
    assert_int_equal(hd_workflow_register(engine, ir, NULL, NULL), HD_OK);
    assert_int_equal(hd_workflow_start(engine, "acts", hd_object(), NULL, other), HD_OK);
    assert_int_equal(hd_workflow_await(engine, other, pool, &result), HD_FAILED);
    assert_int_equal(returned, WHY);
}

static hd_status flow_with(hd_value otherwise, hd_value schema) {
    hd_flow *f;
    hd_value ir;
    assert_int_equal(hd_flow_open(pool, "f", &f), HD_OK);
    hd_flow_input(f, "a", otherwise);
    hd_flow_schema(f, schema);
    hd_status status = hd_flow_ir(f, &ir, &told);
    assert_non_null(strstr(told.message, "could not be made"));
    assert_non_null(strstr(told.message, "test_failed_values.c:"));
    hd_flow_close(f);
    return status;
}
static void a_flow_has_a_problem(void **state) {
    assert_int_equal(flow_with(BAD, (hd_value){ 0 }), WHY);
    assert_int_equal(flow_with(hd_null(), BAD), WHY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_of_values_pass_the_failure_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(functions_that_only_look_see_no_value, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(handlers_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_do_not_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(workflows_are_not_started_nor_signalled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_action_that_returns_it_has_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flow_has_a_problem, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
