/* test_workflow.c -- workflows through the public interface: seed 004's example, exceptions, retries, time,
 * signals, cancellation, restarts, and what registration refuses. */
#define _DEFAULT_SOURCE
#include "lab.h"
#include <heddle/workflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static lab_env *env;
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static char file[] = "/tmp/heddle-workflow-XXXXXX";
static const char *where;   /* the store: NULL in memory */
static int calls[8];        /* of each action */
static int failures_wanted; /* how often "flaky" fails first */
static char said[400];      /* by "say", in order */

/* ---- actions */

static hd_status fetch_items(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    hd_value items = hd_array();
    int64_t count = hd_value_as_int(hd_value_at(args, "count"), 0);
    calls[0]++;
    for (int64_t i = 0; i < count; i++)
        items = hd_array_append(p, items, hd_object_set(p, hd_object(), "id", hd_int(p, i)));
    return hd_action_return(a, items);
}

static hd_status process_item(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    int64_t id = hd_value_as_int(hd_value_at(hd_value_index(args, 0), "id"), -1);
    calls[1]++;
    return hd_action_return(a, hd_object_set(p, hd_object(), "score", hd_int(p, id * 10)));
}

static int64_t sum_of(hd_value items, const char *key, bool *positive) {
    int64_t sum = 0;
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) {
        int64_t n = hd_value_as_int(hd_value_at(it.value, key), 0);
        sum += n;
        if (positive) *positive = *positive && n > 0;
    }
    return sum;
}

static hd_status validate_chunk(hd_action *a, hd_value args, void *ctx) {
    bool positive = true;
    calls[2]++;
    sum_of(hd_value_at(args, "items"), "score", &positive);
    return hd_action_return(a, hd_bool(positive));
}

static hd_status aggregate_chunk(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    int64_t total = sum_of(hd_value_at(args, "items"), "score", NULL);
    calls[3]++;
    if (!hd_value_as_bool(hd_value_at(args, "is_valid"), false)) total = 0;
    return hd_action_return(a, hd_object_set(p, hd_object(), "total", hd_int(p, total)));
}

static hd_status finalize(hd_action *a, hd_value args, void *ctx) {
    calls[4]++;
    return hd_action_return(
        a, hd_int(hd_action_pool(a), sum_of(hd_value_index(args, 0), "total", NULL)));
}

static hd_status flaky(hd_action *a, hd_value args, void *ctx) {
    calls[5]++;
    if (calls[5] <= failures_wanted)
        return hd_action_raise(a, "ValueError", "try %u", hd_action_attempt(a));
    return hd_action_return(a, hd_int(NULL, (int64_t)hd_action_attempt(a)));
}

static hd_status say(hd_action *a, hd_value args, void *ctx) {
    const char *word = hd_value_as_text(hd_value_index(args, 0), "?");
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s ", word);
    return HD_OK;
}

/* ---- a world */

static void open_store(void) {
    static const struct {
        const char *name;
        hd_step_fn fn;
    } all[] = { { "fetch_items", fetch_items },
                { "process_item", process_item },
                { "validate_chunk", validate_chunk },
                { "aggregate_chunk", aggregate_chunk },
                { "finalize", finalize },
                { "flaky", flaky },
                { "say", say } };
    hd_error error = { 0 };
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_open(where, &options, &rt, &error), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, &error), HD_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(
            hd_action_register(
                engine, &(hd_action_spec){ .name = all[i].name, .fn = all[i].fn, .here = true }),
            HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
}

static void close_store(void) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static int set_up(void **state) {
    env = lab_env_open();
    where = NULL;
    memset(calls, 0, sizeof calls);
    failures_wanted = 0;
    said[0] = 0;
    open_store();
    return 0;
}
static int tear_down(void **state) {
    close_store();
    lab_env_close(env);
    return 0;
}

static hd_value parse(const char *json) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    if (!hd_value_exists(v)) fail_msg("%s at %zu of %s", error.message, error.offset, json);
    return v;
}

static void register_ir(const char *json) {
    hd_error error = { 0 };
    if (hd_workflow_register(engine, parse(json), NULL, &error)) fail_msg("%s", error.message);
}

/* A workflow "w" of one function with these nodes and edges. */
static const char *one_function(const char *nodes, const char *edges) {
    static char text[8000];
    snprintf(text, sizeof text,
             "{\"heddle\":1,\"name\":\"w\",\"functions\":[{\"name\":\"run\",\"nodes\":[{\"id\":"
             "\"in\",\"kind\":\"ENTRY\"},%s],"
             "\"edges\":[%s]}]}",
             nodes, edges);
    return text;
}

static char id[HD_INSTANCE_ID_SIZE];

static void start(const char *name, const char *input) {
    assert_int_equal(hd_workflow_start(engine, name, parse(input), NULL, id), HD_OK);
}

static hd_status await(hd_value *result) { return hd_workflow_await(engine, id, pool, result); }

static void assert_result(const char *json) {
    hd_value result;
    hd_status status = await(&result);
    const char *text = hd_json_print(pool, result, HD_JSON_COMPACT, NULL);
    if (status) fail_msg("%s: %s", hd_status_name(status), text ? text : "-");
    assert_string_equal(text, json);
}

static const char *text_at(const char *key) {
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, id));
    return hd_value_as_text(hd_value_at(doc, key), "");
}

static const char pipeline[] =
    "{\"heddle\":1,\"name\":\"data_pipeline\","
    "\"inputs\":[{\"name\":\"fan_out\",\"default\":8},{\"name\":\"loop_iters\",\"default\":4}],"
    "\"functions\":[{\"name\":\"run\",\"params\":[\"fan_out\",\"loop_iters\"],\"nodes\":["
    "{\"id\":\"entry\",\"kind\":\"ENTRY\"},"
    "{\"id\":\"fetch_items\",\"kind\":\"ACTION\",\"action\":\"fetch_items\","
    " \"args\":{\"count\":[\"name\",\"fan_out\"]},\"into\":[\"name\",\"items\"]},"
    "{\"id\":\"fan\",\"kind\":\"FAN_HEAD\",\"over\":[\"name\",\"items\"],\"into\":[\"name\","
    "\"item\"]},"
    "{\"id\":\"process_item\",\"kind\":\"ACTION\",\"action\":\"process_item\","
    " \"args\":[[\"name\",\"item\"]],\"into\":[\"name\",\"result\"]},"
    "{\"id\":\"processed\",\"kind\":\"BARRIER\",\"mode\":\"ordered\",\"give\":[\"name\",\"result\"]"
    ","
    " \"into\":[\"name\",\"processed\"]},"
    "{\"id\":\"iter_source\",\"kind\":\"CALC\",\"do\":["
    " [\"assign\",[\"//"
    "\",[\"call\",\"len\",[[\"name\",\"processed\"]]],[\"name\",\"loop_iters\"]],[\"name\",\"chunk_"
    "size\"]],"
    " [\"assign\",[\"list\"],[\"name\",\"results\"]]]},"
    "{\"id\":\"loop_head\",\"kind\":\"LOOP_HEAD\",\"over\":[\"call\",\"range\",[[\"name\",\"loop_"
    "iters\"]]],"
    " \"into\":[\"name\",\"chunk_id\"]},"
    "{\"id\":\"chunk\",\"kind\":\"CALC\",\"do\":[[\"assign\",[\"slice\",[\"name\",\"processed\"],"
    " [\"*\",[\"name\",\"chunk_id\"],[\"name\",\"chunk_size\"]],"
    " [\"*\",[\"+\",[\"name\",\"chunk_id\"],1],[\"name\",\"chunk_size\"]],null],[\"name\","
    "\"chunk\"]]]},"
    "{\"id\":\"validate_chunk\",\"kind\":\"ACTION\",\"action\":\"validate_chunk\","
    " \"args\":{\"chunk_id\":[\"name\",\"chunk_id\"],\"items\":[\"name\",\"chunk\"]},\"into\":["
    "\"name\",\"is_valid\"]},"
    "{\"id\":\"aggregate_chunk\",\"kind\":\"ACTION\",\"action\":\"aggregate_chunk\","
    " \"args\":{\"chunk_id\":[\"name\",\"chunk_id\"],\"items\":[\"name\",\"chunk\"],\"is_valid\":["
    "\"name\",\"is_valid\"]},"
    " \"into\":[\"name\",\"chunk_result\"]},"
    "{\"id\":\"append\",\"kind\":\"CALC\",\"do\":[[\"expr\",[\"method\",[\"name\",\"results\"],"
    "\"append\",[[\"name\",\"chunk_result\"]]]]]},"
    "{\"id\":\"finalize\",\"kind\":\"ACTION\",\"action\":\"finalize\",\"args\":[[\"name\","
    "\"results\"]],\"into\":[\"name\",\"total\"]},"
    "{\"id\":\"return\",\"kind\":\"RETURN\",\"value\":[\"name\",\"total\"]}],"
    "\"edges\":[[\"entry\",\"fetch_items\"],[\"fetch_items\",\"fan\"],[\"fan\",\"process_item\","
    "\"ELEM\"],"
    "[\"process_item\",\"processed\",\"JOIN\"],[\"processed\",\"iter_source\"],[\"iter_source\","
    "\"loop_head\"],"
    "[\"loop_head\",\"chunk\",\"CONTINUE\"],[\"loop_head\",\"finalize\",\"BREAK\"],[\"chunk\","
    "\"validate_chunk\"],"
    "[\"validate_chunk\",\"aggregate_chunk\"],[\"aggregate_chunk\",\"append\"],[\"append\",\"loop_"
    "head\",\"BACK\"],"
    "[\"finalize\",\"return\"]]}]}";

/* ---- tests */

static void the_example_returns_270(void **state) {
    hd_engine_stats stats;
    register_ir(pipeline);
    start("data_pipeline", "{}");
    assert_result("270");
    int expected[] = { 1, 8, 4, 4, 1 };
    for (int i = 0; i < 5; i++) assert_int_equal(calls[i], expected[i]);
    hd_engine_stat(engine, &stats);
    assert_int_equal(stats.steps, 18);
    assert_int_equal(stats.open, 0);
    assert_string_equal(text_at("status"), "done");
}

static void the_operations_of_a_loop_are_linear(void **state) {
    uint64_t before = 0, nodes[2];
    int iterations[] = { 8, 32 };
    register_ir(pipeline);
    for (int i = 0; i < 2; i++) {
        char input[80];
        hd_engine_stats stats;
        snprintf(input, sizeof input, "{\"fan_out\":%d,\"loop_iters\":%d}", iterations[i],
                 iterations[i]);
        start("data_pipeline", input);
        hd_value result;
        assert_int_equal(await(&result), HD_OK);
        hd_engine_stat(engine, &stats);
        nodes[i] = stats.nodes - before;
        before = stats.nodes;
    }
    /* 6 nodes for each iteration and element, and a few around them. */
    assert_int_equal((nodes[1] - nodes[0]) / 24, 6);
    assert_int_equal((nodes[1] - nodes[0]) % 24, 0);
}

static void two_starts_with_one_key_are_one_instance(void **state) {
    register_ir(pipeline);
    hd_start_options keyed = { .key = "order-17" };
    assert_int_equal(hd_workflow_start(engine, "data_pipeline", hd_object(), &keyed, id), HD_OK);
    assert_int_equal(hd_workflow_start(engine, "data_pipeline", hd_object(), &keyed, id),
                     HD_EXISTS);
    assert_result("270");
    assert_int_equal(hd_workflow_start(engine, "data_pipeline", hd_object(), &keyed, id),
                     HD_EXISTS);
    assert_int_equal(calls[0], 1);
}

/* Many starts touch few pages of an index only if their ids are neighbours. */
static void ids_that_are_not_given_are_in_the_order_of_the_starts(void **state) {
    char before[HD_INSTANCE_ID_SIZE] = "";
    register_ir(pipeline);
    for (int i = 0; i < 20; i++) {
        start("data_pipeline", "{}");
        assert_true(strcmp(before, id) < 0);
        memcpy(before, id, sizeof before);
        lab_env_advance_ms(env, (uint64_t)i * 7 + 1);
    }
}

/* Deeper than a value of a workflow may be. */
static hd_value deep_value(void) {
    static char text[601];
    memset(text, '[', 300);
    memset(text + 300, ']', 300);
    return parse(text);
}

static void inputs_are_checked(void **state) {
    register_ir("{\"heddle\":1,\"name\":\"w\",\"inputs\":[{\"name\":\"n\",\"schema\":{\"type\":"
                "\"integer\"}}],"
                "\"functions\":[{\"name\":\"run\",\"params\":[\"n\"],\"nodes\":[{\"id\":\"in\","
                "\"kind\":\"ENTRY\"},"
                "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"n\"]}],\"edges\":[["
                "\"in\",\"out\"]]}]}");
    assert_int_equal(hd_workflow_start(engine, "w", parse("{}"), NULL, id), HD_MISMATCH);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "\"n\""));
    assert_int_equal(hd_workflow_start(engine, "w", parse("{\"n\":1,\"m\":2}"), NULL, id),
                     HD_MISMATCH);
    assert_int_equal(hd_workflow_start(engine, "w", parse("{\"n\":\"x\"}"), NULL, id), HD_MISMATCH);
    assert_int_equal(hd_workflow_start(engine, "nothing", parse("{}"), NULL, id), HD_NOT_FOUND);
    start("w", "{\"n\":5}");
    assert_result("5");
}

static const char *with_retry(const char *retry) {
    static char nodes[600];
    snprintf(nodes, sizeof nodes,
             "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"flaky\",\"into\":[\"name\",\"r\"]%s},"
             "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"r\"]}",
             retry);
    return one_function(nodes, "[\"in\",\"a\"],[\"a\",\"out\"]");
}

/* Such an instance could never take its first step. */
static void an_input_that_is_no_value_of_a_workflow_is_refused(void **state) {
    hd_value bad[] = { deep_value(), parse("{\"$$ref\":1}"), parse("[{\"$$set\":[[1]]}]"),
                       parse("{\"$$type\":\"none\"}") };
    register_ir(
        "{\"heddle\":1,\"name\":\"w\",\"inputs\":[{\"name\":\"n\"}],\"functions\":["
        "{\"name\":\"run\",\"params\":[\"n\"],\"nodes\":[{\"id\":\"in\",\"kind\":\"ENTRY\"},"
        "{\"id\":\"out\",\"kind\":\"RETURN\"}],\"edges\":[[\"in\",\"out\"]]}]}");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hd_value input = hd_object_set(pool, hd_object(), "n", bad[i]);
        assert_int_equal(hd_workflow_start(engine, "w", input, NULL, id), HD_MISMATCH);
        assert_non_null(strstr(hd_runtime_error(rt)->message, "input \"n\" of w: "));
    }
    start("w", "{\"n\":{\"$$tuple\":[3]}}");
}

static void a_failed_attempt_is_repeated_after_its_backoff(void **state) {
    uint64_t before = lab_env_of(env)->monotonic_ns(lab_env_of(env)->ctx);
    register_ir(with_retry(",\"retry\":{\"attempts\":4,\"backoff\":10,\"factor\":3}"));
    failures_wanted = 3;
    start("w", "{}");
    assert_result("4");
    assert_int_equal(calls[5], 4);
    uint64_t after = lab_env_of(env)->monotonic_ns(lab_env_of(env)->ctx);
    assert_in_range((after - before) / 1000000000, 130, 132); /* 10 + 30 + 90 seconds */
}

/* The factor to the power of so many attempts is infinite. */
static void many_attempts_without_a_backoff_are_made_without_one(void **state) {
    uint64_t before = lab_env_of(env)->monotonic_ns(lab_env_of(env)->ctx);
    register_ir(with_retry(",\"retry\":{\"attempts\":1100}"));
    failures_wanted = 1050;
    start("w", "{}");
    assert_result("1051");
    uint64_t after = lab_env_of(env)->monotonic_ns(lab_env_of(env)->ctx);
    assert_in_range((after - before) / 1000000000, 0, 1);
}

static void after_the_last_attempt_the_exception_ends_the_instance(void **state) {
    hd_value error;
    register_ir(with_retry(",\"retry\":{\"attempts\":2}"));
    failures_wanted = 9;
    start("w", "{}");
    assert_int_equal(await(&error), HD_FAILED);
    assert_int_equal(calls[5], 2);
    assert_string_equal(hd_value_as_text(hd_value_at(error, "$error"), ""), "ValueError");
    assert_string_equal(hd_value_as_text(hd_value_at(error, "message"), ""), "try 2");
    assert_string_equal(text_at("status"), "failed");
}

static void only_the_named_classes_are_tried_again(void **state) {
    hd_value error;
    register_ir(with_retry(",\"retry\":{\"attempts\":5,\"on\":[\"OSError\"]}"));
    failures_wanted = 9;
    start("w", "{}");
    assert_int_equal(await(&error), HD_FAILED);
    assert_int_equal(calls[5], 1);
}

static void a_handler_takes_an_exception_by_its_superclass(void **state) {
    register_ir(one_function(
        "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"flaky\"},"
        "{\"id\":\"h\",\"kind\":\"HANDLER\",\"clauses\":[{\"classes\":[\"OSError\"]},{\"classes\":["
        "\"Exception\"],\"as\":\"e\"}]},"
        "{\"id\":\"no\",\"kind\":\"RETURN\",\"value\":1},"
        "{\"id\":\"yes\",\"kind\":\"RETURN\",\"value\":[\"call\",\"str\",[[\"name\",\"e\"]]]},"
        "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":2}",
        "[\"in\",\"a\"],[\"a\",\"out\"],[\"a\",\"h\",\"EXCEPT\"],[\"h\",\"no\",\"GUARD\",0],[\"h\","
        "\"yes\",\"GUARD\",1]"));
    failures_wanted = 1;
    start("w", "{}");
    assert_result("\"try 1\"");
}

static void a_month_of_sleep_takes_no_time_here(void **state) {
    register_ir(one_function("{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":2592000},{\"id\":"
                             "\"out\",\"kind\":\"RETURN\",\"value\":7}",
                             "[\"in\",\"s\"],[\"s\",\"out\"]"));
    start("w", "{}");
    assert_result("7");
}

/* 1e11 seconds are more nanoseconds than 64 bits hold. The product once wrapped: the program was woken for nothing. */
static void a_sleep_of_thousands_of_years_wakes_nobody_meanwhile(void **state) {
    register_ir(one_function("{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":1e11},{\"id\":\"out\","
                             "\"kind\":\"RETURN\",\"value\":7}",
                             "[\"in\",\"s\"],[\"s\",\"out\"]"));
    start("w", "{}");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    while (hd_runtime_deadline(rt) == 0) assert_int_equal(hd_runtime_pump(rt), HD_OK);
    uint64_t centuries = UINT64_C(500) * 365 * 86400 * 1000000000;
    assert_true(hd_runtime_deadline(rt) > centuries);
    lab_env_advance_ms(env, UINT64_C(86400000) * 365);
    assert_int_equal(hd_runtime_pump(rt), HD_OK);
    assert_true(hd_runtime_deadline(rt) > centuries);
}

static const char waiting[] = "{\"id\":\"wait\",\"kind\":\"WAIT\",\"signal\":\"paid\",\"timeout\":"
                              "3600,\"into\":[\"name\",\"p\"]},"
                              "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"p\"]}";

static void a_signal_wakes_the_wait_for_it(void **state) {
    register_ir(one_function(waiting, "[\"in\",\"wait\"],[\"wait\",\"out\"]"));
    start("w", "{}");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "piad", hd_null()), HD_USAGE);
    assert_int_equal(hd_workflow_signal(engine, id, "paid", parse("{\"euro\":5}")), HD_OK);
    assert_result("{\"euro\":5}");
    assert_int_equal(hd_workflow_signal(engine, id, "paid", hd_null()), HD_NOT_FOUND);
}

static void a_payload_that_cannot_be_used_is_a_TypeError(void **state) {
    hd_value error;
    register_ir(one_function(waiting, "[\"in\",\"wait\"],[\"wait\",\"out\"]"));
    start("w", "{}");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "paid", deep_value()), HD_OK);
    assert_int_equal(await(&error), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(error, "$error"), ""), "TypeError");
    assert_non_null(strstr(hd_value_as_text(hd_value_at(error, "message"), ""), "signal paid"));
}

static void a_wait_that_is_over_raises_TimeoutError(void **state) {
    hd_value error;
    register_ir(one_function(waiting, "[\"in\",\"wait\"],[\"wait\",\"out\"]"));
    start("w", "{}");
    assert_int_equal(await(&error), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(error, "$error"), ""), "TimeoutError");
}

/* try: sleep finally: say("cleaned") */
static void cancelling_runs_the_clean_up(void **state) {
    hd_value error;
    register_ir(one_function(
        "{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":1000000},"
        "{\"id\":\"h\",\"kind\":\"HANDLER\",\"clauses\":[{}]},"
        "{\"id\":\"clean\",\"kind\":\"ACTION\",\"action\":\"say\",\"args\":[\"cleaned\"]},"
        "{\"id\":\"again\",\"kind\":\"RAISE\"},{\"id\":\"out\",\"kind\":\"RETURN\"}",
        "[\"in\",\"s\"],[\"s\",\"out\"],[\"s\",\"h\",\"EXCEPT\"],[\"h\",\"clean\",\"GUARD\",0],["
        "\"clean\",\"again\"]"));
    start("w", "{}");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(await(&error), HD_ABORTED);
    assert_string_equal(said, "cleaned ");
    assert_string_equal(text_at("status"), "cancelled");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(hd_workflow_cancel(engine, "w/none"), HD_NOT_FOUND);
}

static void ways_that_begin_at_once_are_joined_by_count(void **state) {
    register_ir(
        one_function("{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"say\",\"args\":[\"a\"]},"
                     "{\"id\":\"b\",\"kind\":\"ACTION\",\"action\":\"say\",\"args\":[\"b\"]},"
                     "{\"id\":\"c\",\"kind\":\"ACTION\",\"action\":\"say\",\"args\":[\"c\"]},"
                     "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":3}",
                     "[\"in\",\"a\"],[\"in\",\"b\"],[\"a\",\"c\"],[\"b\",\"c\"],[\"c\",\"out\"]"));
    start("w", "{}");
    assert_result("3");
    assert_non_null(strstr(said, "c "));
    assert_int_equal(strlen(said), 6);
    assert_string_equal(said + 4, "c ");
}

/* "x" waits for the first alternative of "a" and the second of "b", "y" for the other two: registration cannot know
 * which ones are taken. */
static void what_can_never_go_on_ends_as_stalled(void **state) {
    hd_value error;
    register_ir(one_function(
        "{\"id\":\"a\",\"kind\":\"BRANCH\",\"when\":[true]},"
        "{\"id\":\"b\",\"kind\":\"BRANCH\",\"when\":[true]},"
        "{\"id\":\"x\",\"kind\":\"RETURN\"},{\"id\":\"y\",\"kind\":\"RETURN\"}",
        "[\"in\",\"a\"],[\"in\",\"b\"],[\"a\",\"x\",\"GUARD\",0],[\"b\",\"y\",\"GUARD\",0],"
        "[\"a\",\"y\",\"GUARD\",1],[\"b\",\"x\",\"GUARD\",1]"));
    start("w", "{}");
    assert_int_equal(await(&error), HD_FAILED);
    assert_string_equal(text_at("status"), "stalled");
}

static void an_instance_goes_on_in_the_next_program(void **state) {
    close_store();
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    remove(file);
    where = file;
    open_store();
    register_ir(
        one_function("{\"id\":\"one\",\"kind\":\"ACTION\",\"action\":\"say\",\"args\":[\"one\"]},"
                     "{\"id\":\"list\",\"kind\":\"CALC\",\"do\":[[\"assign\",[\"list\",1,2],["
                     "\"name\",\"a\"],[\"name\",\"b\"]]]},"
                     "{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":100000},"
                     "{\"id\":\"more\",\"kind\":\"CALC\",\"do\":[[\"expr\",[\"method\",[\"name\","
                     "\"a\"],\"append\",[3]]]]},"
                     "{\"id\":\"two\",\"kind\":\"ACTION\",\"action\":\"say\",\"args\":[\"two\"]},"
                     "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"b\"]}",
                     "[\"in\",\"one\"],[\"one\",\"list\"],[\"list\",\"s\"],[\"s\",\"more\"],["
                     "\"more\",\"two\"],[\"two\",\"out\"]"));
    start("w", "{}");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    for (int i = 0; i < 10; i++) assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_string_equal(said, "one ");
    close_store();
    open_store();
    assert_result("[1,2,3]"); /* b is the same list as a */
    assert_string_equal(said, "one two ");
    close_store();
    remove(file);
    where = NULL;
    open_store();
}

static hd_status watch(hd_tx *tx, void *ctx) {
    const char *status = hd_value_as_text(hd_tx_get(tx, *(hd_cell *)ctx), "");
    if (*status) snprintf(said + strlen(said), sizeof said - strlen(said), "%s ", status);
    return HD_OK;
}

static void an_effect_sees_an_instance_like_any_cell(void **state) {
    register_ir(one_function("{\"id\":\"s\",\"kind\":\"SLEEP\",\"seconds\":5},{\"id\":\"out\","
                             "\"kind\":\"RETURN\",\"value\":7}",
                             "[\"in\",\"s\"],[\"s\",\"out\"]"));
    hd_start_options keyed = { .key = "k" };
    hd_cell cell = hd_cell_child(rt, hd_workflow_cell(engine, "w/k"), "status");
    hd_effect(rt, "watch", watch, &cell);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &keyed, id), HD_OK);
    assert_result("7");
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    assert_string_equal(said, "running done ");
}

/* ---- refused */

static const struct {
    const char *nodes, *edges, *why;
} refused[] = {
    { "{\"id\":\"out\",\"kind\":\"RETURN\"}", "[\"in\",\"nowhere\"]", "nowhere" },
    { "{\"id\":\"out\",\"kind\":\"RETURN\"}", "", "nothing follows it" },
    { "{\"id\":\"x\",\"kind\":\"STEP\"}", "", "unknown kind" },
    { "{\"id\":\"x\",\"kind\":\"CALC\",\"donut\":1}", "", "donut" },
    { "{\"id\":\"in\",\"kind\":\"CALC\"}", "", "second node" },
    { "{\"id\":\"a\",\"kind\":\"CALC\"},{\"id\":\"b\",\"kind\":\"CALC\"},{\"id\":\"out\",\"kind\":"
      "\"RETURN\"}",
      "[\"in\",\"a\"],[\"a\",\"b\"],[\"b\",\"a\"],[\"b\",\"out\"]", "circle" },
    { "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":[\"name\",\"x\"]}", "[\"in\",\"out\"]",
      "\"x\"" },
    { "{\"id\":\"if\",\"kind\":\"BRANCH\",\"when\":[true]},{\"id\":\"out\",\"kind\":\"RETURN\"}",
      "[\"in\",\"if\"],[\"if\",\"out\",\"GUARD\",0]", "GUARD" },
    { "{\"id\":\"l\",\"kind\":\"LOOP_HEAD\",\"while\":true},{\"id\":\"out\",\"kind\":\"RETURN\"}",
      "[\"in\",\"l\"],[\"l\",\"out\",\"BREAK\"]", "CONTINUE" },
    { "{\"id\":\"l\",\"kind\":\"LOOP_HEAD\",\"while\":true},{\"id\":\"m\",\"kind\":\"MERGE\"},"
      "{\"id\":\"c\",\"kind\":\"CALC\"},{\"id\":\"out\",\"kind\":\"RETURN\"}",
      "[\"in\",\"l\"],[\"in\",\"c\"],[\"l\",\"m\",\"CONTINUE\"],[\"l\",\"out\",\"BREAK\"],[\"c\","
      "\"m\"],[\"m\",\"l\",\"BACK\"]",
      "avoids" },
    { "{\"id\":\"f\",\"kind\":\"FAN_HEAD\",\"over\":[\"list\"]},{\"id\":\"out\",\"kind\":"
      "\"RETURN\"}",
      "[\"in\",\"f\"],[\"f\",\"out\",\"ELEM\"]", "BARRIER" },
    { "{\"id\":\"a\",\"kind\":\"CALC\",\"do\":[[\"assign\",1,[\"name\",\"x\"]]]},"
      "{\"id\":\"b\",\"kind\":\"CALC\",\"do\":[[\"assign\",2,[\"name\",\"x\"]]]},{\"id\":\"out\","
      "\"kind\":\"RETURN\"}",
      "[\"in\",\"a\"],[\"in\",\"b\"],[\"a\",\"out\"],[\"b\",\"out\"]", "shares \"x\"" },
    { "{\"id\":\"r\",\"kind\":\"RAISE\"}", "[\"in\",\"r\"]", "nothing to raise" },
    { "{\"id\":\"r\",\"kind\":\"RET\"}", "[\"in\",\"r\"]", "RETURN" },
    { "{\"id\":\"c\",\"kind\":\"CALL\",\"function\":\"f\"},{\"id\":\"out\",\"kind\":\"RETURN\"}",
      "[\"in\",\"c\"],[\"c\",\"out\"]", "has no function" },
    { "{\"id\":\"c\",\"kind\":\"CALC\",\"do\":[[\"frobnicate\"]]}", "[\"in\",\"c\"]", "statement" },
    { "{\"id\":\"a\",\"kind\":\"ACTION\",\"action\":\"x\",\"retry\":{\"attempts\":0}},{\"id\":"
      "\"out\",\"kind\":\"RETURN\"}",
      "[\"in\",\"a\"],[\"a\",\"out\"]", "attempts" },
};

static void what_could_not_run_is_refused_with_the_reason(void **state) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        hd_error error = { 0 };
        hd_value ir = parse(one_function(refused[i].nodes, refused[i].edges));
        assert_int_equal(hd_workflow_register(engine, ir, NULL, &error), HD_SYNTAX);
        if (!strstr(error.message, refused[i].why)) fail_msg("%zu: %s", i, error.message);
    }
}

static void the_version_does_not_depend_on_positions_and_comments(void **state) {
    char one[HD_ID_SIZE], two[HD_ID_SIZE], three[HD_ID_SIZE];
    const char *out = "{\"id\":\"out\",\"kind\":\"RETURN\",\"value\":%d%s}";
    char nodes[200];
    snprintf(nodes, sizeof nodes, out, 1, "");
    assert_int_equal(
        hd_workflow_register(engine, parse(one_function(nodes, "[\"in\",\"out\"]")), one, NULL),
        HD_OK);
    snprintf(nodes, sizeof nodes, out, 1, ",\"at\":\"f.py:3\",\"comment\":\"hello\"");
    assert_int_equal(
        hd_workflow_register(engine, parse(one_function(nodes, "[\"in\",\"out\"]")), two, NULL),
        HD_OK);
    snprintf(nodes, sizeof nodes, out, 2, "");
    assert_int_equal(
        hd_workflow_register(engine, parse(one_function(nodes, "[\"in\",\"out\"]")), three, NULL),
        HD_OK);
    assert_string_equal(one, two);
    assert_string_not_equal(one, three);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_example_returns_270),
        TEST(the_operations_of_a_loop_are_linear),
        TEST(two_starts_with_one_key_are_one_instance),
        TEST(ids_that_are_not_given_are_in_the_order_of_the_starts),
        TEST(inputs_are_checked),
        TEST(an_input_that_is_no_value_of_a_workflow_is_refused),
        TEST(a_failed_attempt_is_repeated_after_its_backoff),
        TEST(many_attempts_without_a_backoff_are_made_without_one),
        TEST(after_the_last_attempt_the_exception_ends_the_instance),
        TEST(only_the_named_classes_are_tried_again),
        TEST(a_handler_takes_an_exception_by_its_superclass),
        TEST(a_month_of_sleep_takes_no_time_here),
        TEST(a_sleep_of_thousands_of_years_wakes_nobody_meanwhile),
        TEST(a_signal_wakes_the_wait_for_it),
        TEST(a_payload_that_cannot_be_used_is_a_TypeError),
        TEST(a_wait_that_is_over_raises_TimeoutError),
        TEST(cancelling_runs_the_clean_up),
        TEST(ways_that_begin_at_once_are_joined_by_count),
        TEST(what_can_never_go_on_ends_as_stalled),
        TEST(an_instance_goes_on_in_the_next_program),
        TEST(an_effect_sees_an_instance_like_any_cell),
        TEST(what_could_not_run_is_refused_with_the_reason),
        TEST(the_version_does_not_depend_on_positions_and_comments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
