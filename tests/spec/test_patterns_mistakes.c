/* test_patterns_mistakes.c -- the first mistakes with patterns: each is refused, or told, by what it is about. */
#include "piece_world.h"

static char message[256]; /* of the last start */

static hd_status start(const char *id, hd_pattern_fn fn, const char *arguments) {
    hd_piece p;
    hd_pool *pool;
    hd_error error = { 0 };
    assert_int_equal(hd_pattern_register(rt(), id, "1", fn, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt()), &pool), HD_OK);
    hd_value given = hd_json_parse(pool, arguments, strlen(arguments), NULL);
    hd_piece_spec spec = { .id = id, .pattern = id, .arguments = given };
    hd_status status = hd_piece_start(rt(), &spec, &p, &error);
    snprintf(message, sizeof message, "%s", error.message);
    hd_pool_close(pool);
    return status;
}

#define assert_refused(fn, text)                                                                   \
    do {                                                                                           \
        assert_int_equal(start(#fn, fn, "{}"), HD_USAGE);                                          \
        if (!strstr(message, text)) fail_msg("\"%s\" does not say: %s", message, text);            \
        assert_json(l, #fn, "-");                                                                  \
    } while (0)

static hd_cell argument_x(hd_build *b, void *ctx) {
    return hd_build_argument(b, "x", hd_int(NULL, 1));
}

/* ---- names */

static hd_cell build_nothing(hd_build *b, hd_tx *tx, const hd_value *in, void *ctx) {
    return (hd_cell){ 0 };
}
static hd_cell nameless_derived(hd_build *b, void *ctx) {
    hd_cell x = argument_x(b, ctx);
    return hd_build_derive_pattern(b, NULL, build_nothing, NULL, &x, 1);
}
static hd_cell nameless_filter(hd_build *b, void *ctx) {
    return hd_build_filter(b, NULL, argument_x(b, ctx), &(hd_each){ .fn = twice });
}
static hd_cell nameless_cell(hd_build *b, void *ctx) { return hd_build_cell(b, NULL); }
static hd_cell nameless_given(hd_build *b, void *ctx) {
    hd_named_cell in = { NULL, argument_x(b, ctx) };
    return hd_build_use(b, "u", "argument_x", &in, 1);
}
static hd_cell nameless_stop(hd_build *b, void *ctx) {
    hd_build_on_stop(b, NULL, NULL);
    return argument_x(b, ctx);
}

static void what_has_no_name_is_refused(void **state) {
    assert_int_equal(hd_pattern_register(rt(), "argument_x", "1", argument_x, NULL), HD_OK);
    assert_refused(nameless_derived, "no name");
    assert_refused(nameless_filter, "no name");
    assert_refused(nameless_cell, "no name");
    assert_refused(nameless_given, "no name");
    assert_refused(nameless_stop, "no function");
    hd_piece p = start_piece("doubler", argument_x);
    assert_int_equal(hd_piece_cell(rt(), p, NULL).id, 0);
    assert_true(hd_piece_cell(rt(), p, "x").id);
}

static hd_cell odd_argument(hd_build *b, void *ctx) {
    return hd_build_argument(b, "a/b", hd_int(NULL, 1));
}
static hd_cell empty_argument(hd_build *b, void *ctx) {
    return hd_build_argument(b, "", hd_int(NULL, 1));
}

static void the_names_of_arguments_are_names(void **state) {
    assert_refused(odd_argument, "\"a/b\"");
    assert_refused(empty_argument, "no name");
}

static hd_cell twin_nodes(hd_build *b, void *ctx) {
    hd_build_derive(b, "n", argument_x(b, ctx), twice, NULL);
    return hd_build_derive(b, "n", argument_x(b, ctx), twice, NULL);
}
static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) { return HD_OK; }
static hd_cell twin_handlers(hd_build *b, void *ctx) {
    hd_cell s = hd_build_stream(b, "add");
    hd_build_handler(b, s, handle, NULL, NULL, 0);
    hd_build_handler(b, s, handle, NULL, NULL, 0);
    return s;
}

/* The same mistake has the same words, whoever notices it. */
static void two_of_a_kind_are_told_by_their_name(void **state) {
    assert_refused(twin_nodes, "there are two of the name \"n\" in twin_nodes");
    assert_refused(twin_handlers, "twin_handlers/add has a handler already");
}

/* Three of them fit no name. */
static const char *long_name(void) {
    static char name[200];
    memset(name, 'n', sizeof name - 1);
    return name;
}
static hd_status run_nothing(hd_tx *tx, void *ctx) { return HD_OK; }
static hd_cell deepest(hd_build *b, void *ctx) {
    hd_node_spec spec = { .name = long_name(), .effect = true, .fn = run_nothing };
    return hd_build_node(b, &spec);
}
static hd_cell deeper(hd_build *b, void *ctx) {
    return hd_build_use(b, long_name(), "deepest", NULL, 0);
}
static hd_cell deep(hd_build *b, void *ctx) {
    return hd_build_use(b, long_name(), "deeper", NULL, 0);
}

/* Not with the words of a failure before. */
static void a_name_that_is_too_long_is_told(void **state) {
    assert_int_equal(hd_pattern_register(rt(), "deeper", "1", deeper, NULL), HD_OK);
    assert_int_equal(hd_pattern_register(rt(), "deepest", "1", deepest, NULL), HD_OK);
    assert_int_equal(hd_cell_at(rt(), "nonsense").id, 0);
    assert_int_equal(start("deep", deep, "{}"), HD_LIMIT);
    assert_null(strstr(message, "nonsense"));
    assert_non_null(strstr(message, "too long"));
    assert_json(l, "deep", "-");
}

/* ---- cells */

static hd_cell bad_input(hd_build *b, void *ctx) {
    return hd_build_derive(b, "n", hd_cell_at(hd_build_runtime(b), "nowhere"), twice, NULL);
}
static hd_cell bad_handler_input(hd_build *b, void *ctx) {
    hd_cell s = hd_build_stream(b, "add"), in[] = { s, { 0 } };
    hd_build_handler(b, s, handle, NULL, in, 2);
    return s;
}
static hd_cell bad_given(hd_build *b, void *ctx) {
    hd_named_cell in = { "x", { 0 } };
    return hd_build_use(b, "u", "argument_x", &in, 1);
}

static void what_is_no_cell_is_refused(void **state) {
    assert_int_equal(hd_pattern_register(rt(), "argument_x", "1", argument_x, NULL), HD_OK);
    assert_refused(bad_input, "bad_input/n: input 1 is no cell");
    assert_refused(bad_handler_input, "main/bad_handler_input/add: input 2 is no cell");
    assert_refused(bad_given, "\"x\"");
}

/* ---- arguments */

static hd_cell use_with_a_slip(hd_build *b, void *ctx) {
    hd_named_cell in = { "y", hd_build_constant(b, "five", hd_int(NULL, 5)) };
    return hd_build_use(b, "u", "argument_x", &in, 1);
}

/* An argument that nobody asked for is most often a slip. */
static void an_argument_that_is_not_asked_for_is_told(void **state) {
    hd_lab_env *world = lab_world(l);
    assert_int_equal(hd_pattern_register(rt(), "argument_x", "1", argument_x, NULL), HD_OK);
    assert_int_equal(start("argument_x", argument_x, "{\"x\": 2}"), HD_OK);
    assert_int_equal(hd_lab_env_log_count(world), 0);
    assert_int_equal(start("argument_x", argument_x, "{\"x\": 3, \"y\": 2}"), HD_OK);
    assert_int_equal(start("use_with_a_slip", use_with_a_slip, "{\"z\": 2}"), HD_OK);
    assert_int_equal(hd_lab_env_logged(world, "no argument \"z\""), 1);
    assert_int_equal(hd_lab_env_logged(world,
                                       "use_with_a_slip/u: the pattern \"argument_x\" has no "
                                       "argument \"y\""),
                     1);
}

static hd_cell asking_row(hd_build *row, hd_cell element, void *ctx) {
    return hd_build_argument(row, "x", hd_int(NULL, 1));
}
static hd_cell rows_ask(hd_build *b, void *ctx) {
    return hd_build_map(b, "rows", hd_build_argument(b, "list", hd_array()),
                        &(hd_each){ .build = asking_row });
}

static void note_error(const hd_failure *failure, void *ctx) {
    snprintf(ctx, sizeof message, "%s", failure->message);
}

/* A row has no arguments: it would get the default, whatever the piece was given. */
static void a_row_that_asks_for_an_argument_is_told(void **state) {
    assert_int_equal(start("rows_ask", rows_ask, "{\"list\": [1], \"x\": 7}"), HD_OK);
    message[0] = 0;
    hd_runtime_on_error(rt(), note_error, message);
    hd_sink(rt(), hd_piece_cell(rt(), hd_piece_find(rt(), NULL, "rows_ask"), "rows"), show, NULL);
    lab_settle(l);
    assert_non_null(strstr(message, "x: rows and derived patterns have no arguments"));
    lab_failures(l);
}

/* ---- pieces in the wrong place */

static hd_cell starts_another(hd_build *b, void *ctx) {
    hd_piece p;
    hd_error error;
    hd_piece_spec spec = { .id = "inner", .pattern = "argument_x" };
    hd_status status = hd_piece_start(hd_build_runtime(b), &spec, &p, &error);
    return status ? hd_build_fail(b, status, "%s", error.message) : argument_x(b, ctx);
}

static void a_piece_started_inside_is_told_what_to_use(void **state) {
    assert_int_equal(hd_pattern_register(rt(), "argument_x", "1", argument_x, NULL), HD_OK);
    assert_refused(starts_another, "hd_tx_launch_piece");
    assert_refused(starts_another, "hd_build_use");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(what_has_no_name_is_refused),
        S(the_names_of_arguments_are_names),
        S(two_of_a_kind_are_told_by_their_name),
        S(a_name_that_is_too_long_is_told),
        S(what_is_no_cell_is_refused),
        S(an_argument_that_is_not_asked_for_is_told),
        S(a_row_that_asks_for_an_argument_is_told),
        S(a_piece_started_inside_is_told_what_to_use),
    };
    LAB_EVERYWHERE(tests);
}
