/* test_workflow_unfit.c -- values that have no form in the store: the instance that has one ends, and says why; the
 * other instances go on (decision 0362). */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

#include <heddle/workflow_build.h>

static hd_status echo(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_value_index(args, 0));
}
static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "echo", .fn = echo, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

/* A workflow that makes `x` by these statements, and then returns or raises something. Steps lie before and in between:
 * the instance is stored, and `x` in it. */
static void build(const char *name, const char *statements, bool raises, const char *value) {
    hd_flow *f;
    hd_value ir;
    hd_error error = { 0 };
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    hd_flow_action(f, "one", "echo", "1");
    hd_flow_do(f, statements);
    hd_flow_action(f, "two", "echo", "2");
    if (raises) hd_flow_raise(f, value);
    else hd_flow_return(f, value);
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
}

static const char *text_at(const char *member) {
    return hd_value_as_text(hd_value_at(document(), member), "");
}

static void a_result_that_contains_itself_fails_its_instance(void **state) {
    build("w", "x = []; x.append(x)", false, "x");
    start("w", "{}");
    assert_raised("ValueError");
    assert_string_equal(text_at("status"), "failed");
    assert_non_null(strstr(printed(hd_value_at(document(), "error")), "Circular reference"));
    assert_false(hd_value_exists(hd_value_at(document(), "result")));
}

static void an_exception_that_contains_itself_fails_with_another(void **state) {
    build("w", "x = {}; x['me'] = x", true, "KeyError(x)");
    start("w", "{}");
    assert_raised("ValueError");
    assert_string_equal(text_at("status"), "failed");
}

/* It can be called by the evaluation that made it alone: nothing is lost if it has no form of its own. */
static void a_function_that_is_kept_does_not_end_its_instance(void **state) {
    build("keeps", "x = [lambda y: y, len]", false, "len(x)");
    start("keeps", "{}");
    assert_result("2");
    build("calls", "x = [lambda y: y]", false, "list(map(x[0], [1]))");
    start("calls", "{}");
    assert_raised("Unsupported");
    build("counts", "x = [len]", false, "list(map(x[0], [[]]))");
    start("counts", "{}");
    (void)hd_runtime_pump(rt);
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    assert_raised("Unsupported");
    build("gives", "x = [len]", false, "x");
    start("gives", "{}");
    assert_raised("TypeError");
}

/* Wraps x, at first a list, 250 times; then `end` adds the steps behind it. */
static void build_deep(const char *name, const char *wraps, void (*end)(hd_flow *f)) {
    hd_flow *f;
    hd_value ir;
    hd_error error = { 0 };
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    hd_flow_do(f, "x = []");
    hd_flow_for(f, "i", "range(250)");
    hd_flow_do(f, wraps);
    hd_flow_end(f);
    end(f);
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
}

static void return_five(hd_flow *f) {
    hd_flow_action(f, "two", "echo", "2");
    hd_flow_return(f, "5");
}

/* A list has a number in the store, so a variable may contain lists to any depth; tuples have none. */
static void a_variable_without_a_form_stalls_its_instance(void **state) {
    hd_value error;
    build_deep("fits", "x = [x]", return_five);
    start("fits", "{}");
    assert_result("5");
    build_deep("w", "x = (x,)", return_five);
    start("w", "{}");
    assert_int_equal(await(&error), HD_FAILED);
    assert_string_equal(text_at("status"), "stalled");
    assert_non_null(strstr(printed(error), "cannot be stored"));
    assert_non_null(strstr(printed(error), "Unsupported"));
}

/* Several instances of all kinds change together, so they share commits. */
static void the_other_instances_go_on(void **state) {
    enum { N = 6 };
    char ids[N][HD_INSTANCE_ID_SIZE];
    build("bad", "x = []; x.append(x)", false, "x");
    build_deep("stuck", "x = (x,)", return_five);
    build("good", "x = [one]", false, "[x, x]");
    for (int i = 0; i < N; i++) {
        start(i % 2 ? "good" : i % 4 ? "stuck" : "bad", "{}");
        memcpy(ids[i], id, sizeof ids[i]);
    }
    for (int i = 0; i < N; i++) {
        memcpy(id, ids[i], sizeof id);
        if (i % 2) assert_result("[[1],[1]]");
        else assert_raised(i % 4 ? "Unsupported" : "ValueError");
    }
}

static hd_memory *memory;
static int refusals;      /* so many commits are refused, from the first write-off on */
static hd_status refusal; /* with this status */

static hd_status judge(const hd_runtime *from, void *ctx) {
    if (!refusals || !lab_env_logged(env, "cannot go on")) return HD_OK;
    refusals--;
    return refusal;
}

static void open_judged(void) {
    close_store();
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    hd_memory_intercept(memory, judge, NULL, NULL);
    open_engine(memory, &rt, &engine);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
}

static void pump_for(int seconds) {
    for (int i = 0; i < seconds * 100; i++) {
        lab_env_advance_ms(env, 10);
        (void)hd_runtime_pump(rt);
    }
}

static void close_judged(void) {
    close_store();
    hd_memory_close(memory);
    memory = NULL;
    open_store();
}

static void note_told(const char *which, hd_status status, hd_value result, void *ctx) {
    *(hd_status *)ctx = status;
}

/* The store refuses the commit that marks an instance as stalled: it is made again, ever less often, until it is
 * stored. */
static void what_is_written_off_is_so_in_the_end(void **state) {
    static const hd_status refused[] = { HD_REJECTED, HD_STALE, HD_IO };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        hd_value error;
        hd_status told = HD_PENDING;
        open_judged();
        build_deep("w", "x = (x,)", return_five);
        pump();
        refusals = 5;
        refusal = refused[i];
        lab_env_log_clear(env);
        start("w", "{}");
        assert_int_equal(hd_workflow_then(engine, id, note_told, &told), HD_OK);
        pump_for(2);
        assert_int_equal(refusals, 0);
        assert_int_equal(told, HD_FAILED);
        assert_int_equal(await(&error), HD_FAILED);
        assert_string_equal(text_at("status"), "stalled");
        assert_non_null(strstr(printed(error), "Unsupported"));
        assert_int_equal(lab_env_logged(env, "cannot go on"), 1);
        assert_int_equal(stats_now().open, 0);
        close_judged();
    }
}

static void refusals_of_a_write_off_take_little_time(void **state) {
    open_judged();
    build_deep("w", "x = (x,)", return_five);
    pump();
    refusals = 1000;
    refusal = HD_REJECTED;
    start("w", "{}");
    pump_for(60);
    assert_in_range(1000 - refusals, 10, 25);
    assert_string_equal(text_at("status"), "");
    refusals = 0;
    pump_for(11);
    assert_string_equal(text_at("status"), "stalled");
    close_judged();
}

/* The parent hears of the end of its child when that is stored. */
static void a_parent_hears_of_a_child_that_was_written_off(void **state) {
    hd_flow *f;
    hd_value ir;
    hd_error error = { 0 };
    open_judged();
    build_deep("bad", "x = (x,)", return_five);
    assert_int_equal(hd_flow_open(pool, "parent", &f), HD_OK);
    hd_flow_try(f);
    hd_flow_child(f, NULL, "bad", "");
    hd_flow_except(f, "RuntimeError", "e");
    hd_flow_return(f, "'heard'");
    hd_flow_end(f);
    hd_flow_return(f, "None");
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
    pump();
    refusals = 1000;
    refusal = HD_REJECTED;
    start("parent", "{}");
    pump_for(5);
    assert_string_equal(text_at("result"), "");
    refusals = 0;
    pump_for(11);
    assert_result("\"heard\"");
    close_judged();
}

/* The parent gets what the child's document has. */
static void a_parent_hears_of_its_child(void **state) {
    build("bad", "x = []; x.append(x)", false, "x");
    build("good", "x = {'k': (1, 2)}", false, "x");
    hd_flow *f;
    hd_value ir;
    hd_error error = { 0 };
    assert_int_equal(hd_flow_open(pool, "parent", &f), HD_OK);
    hd_flow_child(f, "good", "good", "");
    hd_flow_try(f);
    hd_flow_child(f, "bad", "bad", "");
    hd_flow_except(f, "ValueError", "e");
    hd_flow_return(f, "[good['k'], str(e)]");
    hd_flow_end(f);
    hd_flow_return(f, "None");
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
    start("parent", "{}");
    assert_result("[{\"$$tuple\":[1,2]},\"Circular reference detected\"]");
}

static void pass_it(hd_flow *f) {
    hd_flow_action(f, "one", "echo", "1");
    hd_flow_action(f, "y", "echo", "x");
    hd_flow_return(f, "2");
}
static void pass_it_with_care(hd_flow *f) {
    hd_flow_try(f);
    hd_flow_action(f, "y", "echo", "x");
    hd_flow_except(f, "RecursionError", "e");
    hd_flow_action(f, "one", "echo", "1");
    hd_flow_return(f, "one");
    hd_flow_end(f);
    hd_flow_return(f, "2");
}
static void return_it(hd_flow *f) { hd_flow_return(f, "x"); }

static void what_is_too_deep_to_cross_is_an_exception(void **state) {
    build_deep("pass", "x = [x]", pass_it);
    start("pass", "{}");
    assert_raised("RecursionError");
    build_deep("return", "x = [x]", return_it);
    start("return", "{}");
    assert_raised("RecursionError");
    build_deep("catch", "x = [x]", pass_it_with_care);
    start("catch", "{}");
    assert_result("1");
}

static void an_input_is_an_object(void **state) {
    static const char *const inputs[] = { "[1]", "[]", "1", "\"x\"" };
    build("w", "x = 1", false, "x");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        assert_int_equal(hd_workflow_start(engine, "w", parse(inputs[i]), NULL, id), HD_MISMATCH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_world, tear_down_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_result_that_contains_itself_fails_its_instance),
        TEST(an_exception_that_contains_itself_fails_with_another),
        TEST(a_function_that_is_kept_does_not_end_its_instance),
        TEST(a_variable_without_a_form_stalls_its_instance),
        TEST(the_other_instances_go_on),
        TEST(a_parent_hears_of_its_child),
        TEST(what_is_written_off_is_so_in_the_end),
        TEST(refusals_of_a_write_off_take_little_time),
        TEST(a_parent_hears_of_a_child_that_was_written_off),
        TEST(what_is_too_deep_to_cross_is_an_exception),
        TEST(an_input_is_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
