/* test_parse.c -- expressions as text: what is refused, with what and where; what is taken is compared with
 * CPython's own parser by tests/model/test_parse_cpython.c. */
#define _GNU_SOURCE
#include "expr/parse.h"
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static hd_heap *heap;
static hd_pool *pool;

static int set_up(void **state) {
    assert_int_equal(hd_heap_open(NULL, NULL, &heap), HD_OK);
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    return 0;
}
static int tear_down(void **state) {
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

static void assert_form(hd_status status, hd_value form, const hd_error *error, const char *json) {
    if (status) fail_msg("%s", error->message);
    assert_string_equal(hd_json_print(pool, form, HD_JSON_COMPACT, NULL), json);
}

static void text_becomes_the_form_of_the_documents(void **state) {
    static const char *const pairs[][2] = {
        { "a + 1", "[\"+\",[\"name\",\"a\"],1]" },
        { "0 < n <= 10", "[\"cmp\",0,\"<\",[\"name\",\"n\"],\"<=\",10]" },
        { "items[1:-1]", "[\"slice\",[\"name\",\"items\"],1,[\"neg\",1],null]" },
        { "sum(x.total for x in rows if x)", "[\"call\",\"sum\",[[\"gen\",[\"attr\",[\"name\","
                                             "\"x\"],\"total\"],[\"for\",[\"name\",\"x\"],"
                                             "[\"name\",\"rows\"],[\"name\",\"x\"]]]]]" },
        { "f'{n:03d} of {m!r}'",
          "[\"fstr\",[\"fmt\",[\"name\",\"n\"],null,\"03d\"],\" of \",[\"fmt\",["
          "\"name\",\"m\"],\"r\",null]]" },
        { "isinstance(e, ValueError)",
          "[\"call\",\"isinstance\",[[\"name\",\"e\"],[\"type\",\"ValueError\"]]]" },
        { "sorted(xs, key=str.lower)",
          "[\"call\",\"sorted\",[[\"name\",\"xs\"]],[[\"key\",[\"func\",\"str.lower\"]]]]" },
        { "heddle.now() - start", "[\"-\",[\"call\",\"heddle.now\",[]],[\"name\",\"start\"]]" },
        { "heddle.uuid().upper()", "[\"method\",[\"call\",\"heddle.uuid\",[]],\"upper\",[]]" },
        { "(len)(xs)", "[\"call\",\"len\",[[\"name\",\"xs\"]]]" },
        { "heddle.later()", "[\"method\",[\"name\",\"heddle\"],\"later\",[]]" },
        { "heddle.now", "[\"attr\",[\"name\",\"heddle\"],\"now\"]" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "-922337203685477_5808", "-9223372036854775808" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hd_error error = { 0 };
        hd_value form;
        hd_status status = parse_expression(pool, pairs[i][0], &form, &error);
        assert_form(status, form, &error, pairs[i][1]);
    }
}

static void statements_stand_on_lines_or_behind_semicolons(void **state) {
    hd_error error = { 0 };
    hd_value form;
    hd_status status = parse_statements(
        pool, "a = b = 1; x.n += 2\n\n# a remark\ndel y[0]  # another\npass\nlog.append(a)", &form,
        &error);
    assert_form(
        status, form, &error,
        "[[\"assign\",1,[\"name\",\"a\"],[\"name\",\"b\"]],[\"aug\",\"+\",[\"attr\",[\"name\","
        "\"x\"],\"n\"],2],[\"del\",[\"item\",[\"name\",\"y\"],0]],[\"expr\",[\"method\",["
        "\"name\",\"log\"],\"append\",[[\"name\",\"a\"]]]]]");
}

static void a_semicolon_stands_behind_a_statement(void **state) {
    static const char *const wrong[] = { ";", "; a", "a;;b", "a\n;b", ";\n" };
    hd_error error = { 0 };
    hd_value form;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse_statements(pool, wrong[i], &form, &error), HD_SYNTAX);
        assert_non_null(strstr(error.message, "';' stands behind a statement"));
    }
    assert_form(parse_statements(pool, "pass;\npass;", &form, &error), form, &error, "[]");
}

static void what_is_deleted_has_no_star(void **state) {
    static const char *const wrong[] = { "del *a,", "del [*a]", "del a, (b, [*c])" };
    hd_error error = { 0 };
    hd_value form;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse_statements(pool, wrong[i], &form, &error), HD_SYNTAX);
        assert_non_null(strstr(error.message, "cannot be deleted"));
    }
}

static void a_target_is_what_can_be_assigned_to(void **state) {
    hd_error error = { 0 };
    hd_value form;
    assert_form(parse_target(pool, "a, *rest", &form, &error), form, &error,
                "[\"tuple\",[\"name\",\"a\"],[\"*\",[\"name\",\"rest\"]]]");
    assert_int_equal(parse_target(pool, "a + 1", &form, &error), HD_SYNTAX);
    assert_int_equal(parse_target(pool, "len", &form, &error), HD_SYNTAX);
    assert_non_null(strstr(error.message, "'len' is built in"));
}

static void what_is_refused_is_said_with_line_and_column(void **state) {
    static const struct {
        const char *text, *why;
        uint32_t line, column;
    } rows[] = {
        { "", "expected an expression, not the end of the text", 1, 1 },
        { "a +", "expected an expression", 1, 4 },
        { "(a", "expected ')'", 1, 3 },
        { "a b", "'b' is not expected here", 1, 3 },
        { "'abc", "a string that does not end", 1, 1 },
        { "f'{a'", "expects '}'", 1, 5 },
        { "f'{a=}'", "'=' in an f-string", 1, 5 },
        { "f'}'", "single '}'", 1, 3 },
        { "a @ b", "'@' is not expected", 1, 3 },
        { "12ab", "'12ab' is no number", 1, 1 },
        { "9223372036854775808", "beyond 64 bits", 1, 1 },
        { "await f()", "'await' cannot stand in an expression", 1, 1 },
        { "[x async for x in y]", "'async' cannot stand", 1, 4 },
        { "lambda *a: 1", "plain parameters", 1, 8 },
        { "f(x)(y)", "only functions, methods and classes", 1, 1 },
        { "f(a=1, 2)", "behind one by name", 1, 8 },
        { "(\n a,\n ,)", "expected an expression", 3, 2 },
        { "a[1:2, 3]", "a slice stands alone", 1, 3 },
        { "...", "expected an expression", 1, 1 },
        { "$", "means nothing here", 1, 1 },
        { "'\\ud800'", "lone surrogate", 1, 7 },
        { "b'\\u1234' 'x'", "side by side", 1, 11 },
        { "*a", "list of elements", 1, 1 },
        { "(a), *b", "within brackets", 1, 6 },
        { "a + \xff", "not UTF-8", 1, 5 },
        { "a +\n'b\xc3'", "not UTF-8", 2, 3 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hd_error error = { 0 };
        hd_value form;
        assert_int_not_equal(parse_expression(pool, rows[i].text, &form, &error), HD_OK);
        if (!strstr(error.message, rows[i].why) || error.line != rows[i].line ||
            error.column != rows[i].column)
            fail_msg("%s: %u:%u: %s", rows[i].text, error.line, error.column, error.message);
        assert_false(hd_value_exists(form));
    }
}

static void deep_nesting_is_refused_in_every_direction(void **state) {
    static const char *const openings[] = { "(",  "[",      "-",        "not ",
                                            "f(", "{1:",    "lambda: ", "1 if 1 else ",
                                            "a[", "x := (", "a.b(",     "1 ** ",
                                            "{" };
    static char text[400000];
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        hd_error error = { 0 };
        hd_value form;
        text[0] = 0;
        char *end = text;
        for (int k = 0; k < 20000; k++) end = stpcpy(end, openings[i]);
        hd_status status = parse_expression(pool, text, &form, &error);
        assert_true(status == HD_LIMIT || status == HD_SYNTAX);
    }
    char *end = text;
    for (int k = 0; k < 20000; k++) end = stpcpy(end, k ? "+1" : "1");
    hd_error error = { 0 };
    hd_value form;
    assert_int_equal(parse_expression(pool, text, &form, &error), HD_LIMIT);
}

static void every_failed_allocation_is_reported(void **state) {
    static const char source[] =
        "f'{a}b' + str(sum([x * 2 for x in y if x], start=b'q')) or {1: (2, *z)}";
    bool done = false;
    for (uint64_t n = 1; !done && n < 10000; n++) {
        lab_env *env = lab_env_open();
        hd_heap *h;
        hd_pool *p;
        hd_value form;
        lab_env_fail_from(env, n);
        hd_status status = hd_heap_open(lab_env_of(env), NULL, &h);
        if (!status) {
            status = hd_pool_open(h, &p);
            if (!status) {
                status = parse_expression(p, source, &form, NULL);
                hd_pool_close(p);
            }
            hd_heap_close(h);
        }
        assert_true(status == HD_OK || status == HD_NOMEM);
        done = !status;
        assert_int_equal(lab_env_blocks(env), 0);
        lab_env_close(env);
    }
    assert_true(done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(text_becomes_the_form_of_the_documents),
        TEST(statements_stand_on_lines_or_behind_semicolons),
        TEST(a_semicolon_stands_behind_a_statement),
        TEST(what_is_deleted_has_no_star),
        TEST(a_target_is_what_can_be_assigned_to),
        TEST(what_is_refused_is_said_with_line_and_column),
        TEST(deep_nesting_is_refused_in_every_direction),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
