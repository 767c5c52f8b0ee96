/* Reading JSON: what is accepted, what is refused, and where it says the fault is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heddle/value.h>
#include "lab.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct world {
    lab_env *env;
    hd_heap *heap;
    hd_pool *pool;
} world;

static world open_world(const hd_limits *limits) {
    world w = { .env = lab_env_open() };
    assert_int_equal(hd_heap_open(lab_env_of(w.env), limits, &w.heap), HD_OK);
    assert_int_equal(hd_pool_open(w.heap, &w.pool), HD_OK);
    return w;
}

static void close_world(world *w) {
    hd_pool_close(w->pool);
    hd_heap_close(w->heap);
    lab_env_close(w->env);
}

/* From memory that ends where the text ends, so that a sanitizer sees a step too far. */
static hd_value parse_n(world *w, const char *text, size_t length, hd_error *error) {
    char *exact = malloc(length ? length : 1);
    if (length) memcpy(exact, text, length);
    hd_value v = hd_json_parse(w->pool, exact, length, error);
    free(exact);
    return v;
}

static hd_value parse(world *w, const char *text, hd_error *error) {
    return parse_n(w, text, strlen(text), error);
}

static void assert_reads_as(world *w, const char *text, const char *canonical) {
    hd_error error = { 0 };
    hd_value v = parse(w, text, &error);
    if (!hd_value_exists(v)) {
        print_message("%s\n  refused: %u:%u %s: %s\n", text, error.line, error.column, error.path,
                      error.message);
        fail();
    }
    const char *printed = hd_json_print(w->pool, v, HD_JSON_COMPACT, NULL);
    assert_non_null(printed);
    assert_string_equal(printed, canonical);
}

typedef struct refusal {
    const char *text;
    uint32_t line, column;
    const char *path;
    const char *message; /* part of it */
} refusal;

static void assert_refused_n(world *w, const char *text, size_t length, const refusal *r) {
    hd_error error = { 0 };
    hd_value v = parse_n(w, text, length, &error);
    bool right = hd_value_status(v) == HD_SYNTAX && error.status == HD_SYNTAX &&
                 error.line == r->line && error.column == r->column &&
                 strcmp(error.path, r->path) == 0 && strstr(error.message, r->message);
    if (right) return;
    print_message("%s\n  %s %u:%u '%s' %s\n", text, hd_status_name(hd_value_status(v)), error.line,
                  error.column, error.path, error.message);
    fail();
}

static void assert_refused(world *w, const refusal *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_refused_n(w, cases[i].text, strlen(cases[i].text), &cases[i]);
    }
}

/* ---- Accepted ---- */

static void every_kind_is_read(void **state) {
    world w = open_world(NULL);
    static const char *const same[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1.5",
        "\"\"",
        "\"text\"",
        "[]",
        "{}",
        "[1,2,3]",
        "{\"a\":1,\"b\":[true,null]}",
        "[[],{},[[]],\"\"]",
        "{\"\":{\"\":{}}}",
    };
    for (size_t i = 0; i < COUNT(same); i++) assert_reads_as(&w, same[i], same[i]);
    close_world(&w);
}

static void white_space_is_allowed_between_tokens_only(void **state) {
    world w = open_world(NULL);
    assert_reads_as(&w, " \t\r\n[ 1 ,\n2\t,{ \"a\" : 1 , \"b\":\r\n2 } , [ ] , { } ] \n",
                    "[1,2,{\"a\":1,\"b\":2},[],{}]");
    static const refusal cases[] = {
        { "1 2", 1, 3, "", "goes on after the value" }, { "tr ue", 1, 1, "", "'true'" },
        { "[1\f]", 1, 3, "/1", "byte 0x0C" },           { "\xEF\xBB\xBF[]", 1, 1, "", "byte 0xEF" },
        { "- 1", 1, 2, "", "a digit is expected" },
    };
    assert_refused(&w, cases, COUNT(cases));
    close_world(&w);
}

static void numbers_are_ints_or_doubles_by_how_they_are_written(void **state) {
    world w = open_world(NULL);
    static const struct {
        const char *text;
        hd_kind kind;
        const char *canonical;
    } cases[] = {
        { "1", HD_KIND_INT, "1" },
        { "1.0", HD_KIND_DOUBLE, "1.0" },
        { "1e0", HD_KIND_DOUBLE, "1.0" },
        { "1E+2", HD_KIND_DOUBLE, "100.0" },
        { "0", HD_KIND_INT, "0" },
        { "-0", HD_KIND_DOUBLE, "-0.0" },
        { "-0.0", HD_KIND_DOUBLE, "-0.0" },
        { "0.0", HD_KIND_DOUBLE, "0.0" },
        { "9223372036854775807", HD_KIND_INT, "9223372036854775807" },
        { "-9223372036854775808", HD_KIND_INT, "-9223372036854775808" },
        { "9223372036854775808.0", HD_KIND_DOUBLE, "9.223372036854776e18" },
        { "9223372036854775808e0", HD_KIND_DOUBLE, "9.223372036854776e18" },
        { "1125899906842623", HD_KIND_INT, "1125899906842623" },
        { "1125899906842624", HD_KIND_INT, "1125899906842624" },
        { "-1125899906842624", HD_KIND_INT, "-1125899906842624" },
        { "-1125899906842625", HD_KIND_INT, "-1125899906842625" },
        { "1.7976931348623157e308", HD_KIND_DOUBLE, "1.7976931348623157e308" },
        { "5e-324", HD_KIND_DOUBLE, "5e-324" },
        { "1e-400", HD_KIND_DOUBLE, "0.0" },
        { "0.1", HD_KIND_DOUBLE, "0.1" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        hd_value v = parse(&w, cases[i].text, NULL);
        assert_int_equal(hd_value_kind(v), cases[i].kind);
        const char *printed = hd_json_print(w.pool, v, HD_JSON_COMPACT, NULL);
        assert_string_equal(printed, cases[i].canonical);
    }
    close_world(&w);
}

static void escapes_stand_for_their_characters(void **state) {
    world w = open_world(NULL);
    size_t length;
    hd_value v =
        parse(&w, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", NULL);
    assert_string_equal(hd_value_text(v, &length), "\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600");
    v = parse(&w, "\"a\\u0000b\"", NULL);
    assert_memory_equal(hd_value_text(v, &length), "a\0b", 4);
    assert_int_equal(length, 3);
    assert_reads_as(&w, "\"\\u0001\\u001F\\u007f\\/\"", "\"\\u0001\\u001f\x7f/\"");
    assert_reads_as(&w, "{\"\\u0061\\n\":1}", "{\"a\\n\":1}");
    assert_reads_as(&w, "\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", "\"\U00010000\U0010FFFF\"");
    close_world(&w);
}

static void keys_come_out_in_byte_order(void **state) {
    world w = open_world(NULL);
    assert_reads_as(&w, "{\"b\":1,\"a\":2,\"\":3,\"ab\":4,\"\u00e9\":5,\"B\":6}",
                    "{\"\":3,\"B\":6,\"a\":2,\"ab\":4,\"b\":1,\"\u00e9\":5}");
    close_world(&w);
}

/* Every length around the width of a scanning step, with the odd byte at every place. */
static void strings_of_every_length_and_alignment_are_read(void **state) {
    world w = open_world(NULL);
    char text[160], expected[160];
    for (size_t length = 0; length < 50; length++) {
        for (size_t odd = 0; odd <= length; odd++) {
            size_t n = 0, m = 0;
            text[n++] = expected[m++] = '"';
            for (size_t i = 0; i < length; i++) {
                const char *in = i != odd       ? "x"
                                 : odd % 3 == 0 ? "\\n"
                                 : odd % 3 == 1 ? "\u00e9"
                                                : "\\u000A";
                const char *out = i != odd ? "x" : odd % 3 == 1 ? "\u00e9" : "\\n";
                n += (size_t)snprintf(text + n, sizeof text - n, "%s", in);
                m += (size_t)snprintf(expected + m, sizeof expected - m, "%s", out);
            }
            text[n++] = expected[m++] = '"';
            text[n] = expected[m] = 0;
            assert_reads_as(&w, text, expected);
        }
        hd_pool_clear(w.pool);
    }
    close_world(&w);
}

/* ---- Refused ---- */

static void malformed_text_is_refused_where_it_goes_wrong(void **state) {
    world w = open_world(NULL);
    static const refusal cases[] = {
        { "", 1, 1, "", "a value is expected, not the end of the text" },
        { "  \n ", 2, 2, "", "the end of the text" },
        { "[", 1, 2, "/0", "the end of the text" },
        { "[1", 1, 3, "/1", "',' or ']' is expected" },
        { "[1,", 1, 4, "/1", "a value is expected" },
        { "[1,]", 1, 4, "/1", "a value is expected, not ']'" },
        { "[,1]", 1, 2, "/0", "a value is expected" },
        { "[1 2]", 1, 4, "/1", "',' or ']'" },
        { "[1}", 1, 3, "/1", "',' or ']'" },
        { "{", 1, 2, "", "a key in quotes" },
        { "{\"a\"", 1, 5, "/a", "':' is expected" },
        { "{\"a\":", 1, 6, "/a", "a value is expected" },
        { "{\"a\":1", 1, 7, "", "',' or '}'" },
        { "{\"a\":1,", 1, 8, "", "a key in quotes" },
        { "{\"a\":1,}", 1, 8, "", "a key in quotes" },
        { "{a:1}", 1, 2, "", "a key in quotes" },
        { "{1:1}", 1, 2, "", "a key in quotes" },
        { "{\"a\" 1}", 1, 6, "/a", "':' is expected, not '1'" },
        { "{\"a\":1 \"b\":2}", 1, 8, "", "',' or '}'" },
        { "]", 1, 1, "", "a value is expected" },
        { "[1]]", 1, 4, "", "goes on after the value" },
        { "{}{}", 1, 3, "", "goes on after the value" },
        { "\"a\"x", 1, 4, "", "goes on after the value" },
        { "nul", 1, 1, "", "'null'" },
        { "True", 1, 1, "", "a value is expected" },
        { "truex", 1, 5, "", "goes on" },
        { "'a'", 1, 1, "", "a value is expected" },
        { "// c\n1", 1, 1, "", "a value is expected" },
        { "[\n  1,\n  {\"x\": [0, oops]}\n]", 3, 13, "/1/x/1", "a value is expected, not 'o'" },
        { "{\"a/b~c\":{\"\":[?]}}", 1, 15, "/a~1b~0c//0", "a value is expected" },
    };
    assert_refused(&w, cases, COUNT(cases));
    close_world(&w);
}

static void malformed_numbers_are_refused(void **state) {
    world w = open_world(NULL);
    static const refusal cases[] = {
        { "01", 1, 1, "", "must not begin with a zero" },
        { "-012", 1, 1, "", "must not begin with a zero" },
        { "00.5", 1, 1, "", "must not begin with a zero" },
        { "-", 1, 2, "", "a digit is expected" },
        { "+1", 1, 1, "", "a value is expected" },
        { ".5", 1, 1, "", "a value is expected" },
        { "1.", 1, 3, "", "a digit is expected" },
        { "[1.e3]", 1, 4, "/0", "a digit is expected, not 'e'" },
        { "1e", 1, 3, "", "a digit is expected" },
        { "1e+", 1, 4, "", "a digit is expected" },
        { "0x1F", 1, 2, "", "goes on after the value" },
        { "NaN", 1, 1, "", "a value is expected" },
        { "-Infinity", 1, 2, "", "a digit is expected" },
        { "9223372036854775808", 1, 1, "", "decimal point or an exponent" },
        { "[0,-9223372036854775809]", 1, 4, "/1", "64 bits" },
        { "123456789012345678901234567890", 1, 1, "", "64 bits" },
        { "1e309", 1, 1, "", "beyond the largest double" },
        { "-1.7976931348623159e308", 1, 1, "", "beyond the largest double" },
    };
    assert_refused(&w, cases, COUNT(cases));
    close_world(&w);
}

static void malformed_strings_are_refused(void **state) {
    world w = open_world(NULL);
    static const refusal cases[] = {
        { "\"", 1, 2, "", "ends inside a string" },
        { "\"abc", 1, 5, "", "ends inside a string" },
        { "\"abc\\", 1, 5, "", "ends inside a string" },
        { "\"a\nb\"", 1, 3, "", "control characters" },
        { "\"a\tb\"", 1, 3, "", "control characters" },
        { "\"\x1f\"", 1, 2, "", "control characters" },
        { "\"\\x41\"", 1, 2, "", "not an escape" },
        { "\"\\'\"", 1, 2, "", "not an escape" },
        { "\"\\u12\"", 1, 2, "", "four hexadecimal digits" },
        { "\"\\u12G4\"", 1, 2, "", "four hexadecimal digits" },
        { "\"\\u 123\"", 1, 2, "", "four hexadecimal digits" },
        { "\"\\u", 1, 2, "", "four hexadecimal digits" },
        { "\"\\ud800\"", 1, 2, "", "surrogate" },
        { "\"\\udc00\"", 1, 2, "", "surrogate" },
        { "\"\\udfff\\ud800\"", 1, 2, "", "surrogate" },
        { "\"\\ud800\\ud800\"", 1, 2, "", "surrogate" },
        { "\"\\ud800\\u0041\"", 1, 2, "", "surrogate" },
        { "\"\\ud800x\"", 1, 2, "", "surrogate" },
        { "\"\\ud83d\\\"\"", 1, 2, "", "surrogate" },
        { "{\"a\\q\":1}", 1, 4, "", "not an escape" },
        { "[\"ok\", \"bad\x01\"]", 1, 12, "/1", "control characters" },
    };
    assert_refused(&w, cases, COUNT(cases));
    assert_refused_n(&w, "\"a\0b\"", 5, &(refusal){ "NUL", 1, 3, "", "control characters" });
    close_world(&w);
}

static void invalid_utf8_of_every_class_is_refused(void **state) {
    world w = open_world(NULL);
    static const char *const bad[] = {
        "\x80",
        "\xBF", /* a continuation alone */
        "\xC0\x80",
        "\xC1\xBF", /* overlong, two bytes */
        "\xE0\x80\x80",
        "\xE0\x9F\xBF", /* overlong, three */
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", /* overlong, four */
        "\xED\xA0\x80",
        "\xED\xAF\xBF",
        "\xED\xB0\x80",
        "\xED\xBF\xBF", /* surrogates */
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF8\x88\x80\x80\x80", /* beyond U+10FFFF */
        "\xFE",
        "\xFF", /* never */
        "\xC3",
        "\xE2\x82",
        "\xF0\x9F\x98",
        "\xE2", /* cut short by the quote */
        "\xC3\x28",
        "\xE2\x28\xA1",
        "\xE2\x82\x28",
        "\xF0\x28\x8C\xBC",
        "\xF0\x9F\x28\xBC",
        "\xF0\x9F\x98\x28", /* a continuation that is none */
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[64];
        for (int before = 0; before < 20; before += 19) {
            snprintf(text, sizeof text, "[\"%.*s%s\"]", before, "nineteen characters", bad[i]);
            refusal r = { text, 1, (uint32_t)before + 3, "/0", "invalid UTF-8" };
            assert_refused(&w, &r, 1);
            snprintf(text, sizeof text, "{\"%.*s%s\":1}", before, "nineteen characters", bad[i]);
            r.path = "";
            assert_refused(&w, &r, 1);
        }
    }
    close_world(&w);
}

static void utf8_at_the_edges_of_each_length_is_read(void **state) {
    world w = open_world(NULL);
    static const char exact[] = "\"\x7f\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80"
                                "\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"";
    assert_reads_as(&w, exact, exact);
    close_world(&w);
}

static void a_duplicate_key_is_refused_at_the_second(void **state) {
    world w = open_world(NULL);
    static const refusal cases[] = {
        { "{\"a\":1,\"a\":2}", 1, 8, "/a", "twice" },
        { "{\"a\":1,\n \"b\":{\"x\":[{}, \"}\"], \"y\":\"\\\"\"},\n \"a\":2}", 3, 2, "/a",
          "twice" },
        { "[{\"p\":{\"k\":1,\"\\u006b\":2}}]", 1, 14, "/0/p/k", "twice" },
        { "{\"\":1,\"\":2}", 1, 7, "/", "twice" },
        { "{\"$$a\":1,\"$$a\":2}", 1, 10, "/$a", "twice" },
        { "{\"a\":1,\"b\":2,\"b\":3,\"a\":4}", 1, 14, "/b", "twice" },
    };
    assert_refused(&w, cases, COUNT(cases));
    close_world(&w);
}

/* More keys than one leaf holds. */
static void a_duplicate_among_many_keys_is_refused(void **state) {
    world w = open_world(NULL);
    for (unsigned again = 0; again < 200; again += 23) {
        char text[4096];
        size_t n = (size_t)snprintf(text, sizeof text, "{");
        for (unsigned i = 0; i < 200; i++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "\"k%u\":%u,", i * 7 % 200, i);
        }
        uint32_t column = (uint32_t)n + 1;
        char path[16];
        snprintf(path, sizeof path, "/k%u", again);
        snprintf(text + n, sizeof text - n, "\"k%u\":0}", again);
        assert_refused(&w, &(refusal){ text, 1, column, path, "twice" }, 1);
    }
    close_world(&w);
}

static void every_truncation_is_an_error(void **state) {
    world w = open_world(NULL);
    static const char text[] =
        " {\"a\":[1,-2.5e3,true,false,null,\"x\\n\\ud83d\\ude00\u00e9\"],\"$$b\":{\"c\":{\"$link\":"
        "{\"id\":\"i\",\"path\":\"/p\"}}},\"d\":[{\"$bytes\":\"AAE=\"},{\"$double\":\"NaN\"}]}";
    for (size_t length = 0; length < sizeof text - 1; length++) {
        hd_error error = { 0 };
        hd_value v = parse_n(&w, text, length, &error);
        assert_int_equal(hd_value_status(v), HD_SYNTAX);
        assert_true(error.offset <= length);
        assert_true(error.message[0] != 0);
    }
    assert_true(hd_value_exists(parse(&w, text, NULL)));
    close_world(&w);
}

/* ---- Limits ---- */

static char *nested(size_t depth, const char *core) {
    size_t size = 6 * depth + strlen(core) + 1;
    char *text = malloc(size);
    size_t n = 0;
    for (size_t i = 0; i < depth; i++)
        n += (size_t)snprintf(text + n, size - n, i % 2 ? "{\"\":" : "[");
    n += (size_t)snprintf(text + n, size - n, "%s", core);
    for (size_t i = depth; i-- > 0;) text[n++] = i % 2 ? '}' : ']';
    text[n] = 0;
    return text;
}

static hd_status status_nested(world *w, size_t depth, const char *core, hd_error *error) {
    char *text = nested(depth, core);
    hd_value v = parse(w, text, error);
    if (hd_value_exists(v)) {
        const char *again = hd_json_print(w->pool, v, HD_JSON_COMPACT, NULL);
        assert_non_null(again);
        assert_string_equal(again, text);
    }
    free(text);
    return hd_value_status(v);
}

static void depth_is_limited(void **state) {
    static const uint32_t limits[] = { 1, 2, 5, 100, 0 };
    for (size_t i = 0; i < COUNT(limits); i++) {
        world w = open_world(&(hd_limits){ .depth = limits[i] });
        size_t limit = limits[i] ? limits[i] : 512;
        hd_error error = { 0 };
        assert_int_equal(status_nested(&w, limit, "1", NULL), HD_OK);
        assert_int_equal(status_nested(&w, limit - 1, "[]", NULL), HD_OK);
        assert_int_equal(status_nested(&w, limit - 1, "{}", NULL), HD_OK);
        assert_int_equal(status_nested(&w, limit, "[]", &error), HD_LIMIT);
        assert_int_equal(error.status, HD_LIMIT);
        assert_non_null(strstr(error.message, "deeper than"));
        assert_int_equal(status_nested(&w, limit, "{}", NULL), HD_LIMIT);
        assert_int_equal(status_nested(&w, limit + 1, "1", NULL), HD_LIMIT);
        assert_int_equal(status_nested(&w, 100000, "1", NULL), HD_LIMIT);
        /* Forms are scalars: they do not nest. */
        assert_int_equal(status_nested(&w, limit, "{\"$double\":\"NaN\"}", NULL), HD_OK);
        assert_int_equal(status_nested(&w, limit, "{\"$link\":{\"id\":\"x\"}}", NULL), HD_OK);
        assert_int_equal(status_nested(&w, limit, "{\"$link\":{\"id\":[]}}", NULL), HD_LIMIT);
        assert_int_equal(status_nested(&w, limit, "{\"$$link\":{}}", NULL), HD_LIMIT);
        close_world(&w);
    }
}

static void a_long_path_is_shortened(void **state) {
    world w = open_world(NULL);
    hd_error error = { 0 };
    assert_int_equal(status_nested(&w, 200, "?", &error), HD_SYNTAX);
    size_t length = strlen(error.path);
    assert_true(length > 100 && length < sizeof error.path);
    assert_string_equal(error.path + length - 3, "...");
    close_world(&w);
}

static void size_is_limited(void **state) {
    world w = open_world(&(hd_limits){ .size = 10 });
    hd_error error = { 0 };
    assert_true(hd_value_exists(parse(&w, "[1,2,3,40]", NULL)));
    assert_int_equal(hd_value_status(parse(&w, "[1,2,3,400]", &error)), HD_LIMIT);
    assert_int_equal(error.status, HD_LIMIT);
    assert_int_equal(error.line, 1);
    close_world(&w);
}

/* ---- Forms ---- */

static void forms_are_read(void **state) {
    world w = open_world(NULL);
    hd_link link;
    assert_true(isnan(hd_value_number(parse(&w, "{\"$double\":\"NaN\"}", NULL))));
    assert_true(hd_value_number(parse(&w, "{\"$double\":\"Infinity\"}", NULL)) > 1e308);
    assert_true(hd_value_number(parse(&w, "{ \"$double\" : \"-Infinity\" }", NULL)) < -1e308);
    size_t size;
    hd_value v = parse(&w, "{\"$bytes\":\"AAH+/w==\"}", NULL);
    assert_memory_equal(hd_value_bytes(v, &size), "\x00\x01\xFE\xFF", 4);
    assert_int_equal(size, 4);
    v = parse(&w, "{\"$bytes\":\"\"}", NULL);
    assert_int_equal(hd_value_kind(v), HD_KIND_BYTES);
    v = parse(
        &w, "{\"\\u0024link\":{\"path\":\"/a/0\",\"space\":\"s\",\"id\":\"i\",\"scope\":\"user\"}}",
        NULL);
    assert_true(hd_value_link(v, &link));
    assert_string_equal(link.space, "s");
    assert_string_equal(link.id, "i");
    assert_string_equal(link.path, "/a/0");
    assert_int_equal(link.scope, HD_SCOPE_USER);
    close_world(&w);
}

static void a_doubled_dollar_is_a_key_of_the_user(void **state) {
    world w = open_world(NULL);
    hd_value v = parse(&w, "{\"$$link\":1,\"$$\":2,\"a$\":3,\"$$$x\":4}", NULL);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "$link"), 0), 1);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "$"), 0), 2);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "a$"), 0), 3);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "$$x"), 0), 4);
    close_world(&w);
}

static void malformed_forms_are_refused_with_their_path(void **state) {
    world w = open_world(NULL);
    static const refusal cases[] = {
        { "{\"$\":1}", 1, 2, "/$", "reserved" },
        { "{\"$foo\":1}", 1, 2, "/$foo", "reserved" },
        { "[{\"a\":{\"$linK\":{}}}]", 1, 8, "/0/a/$linK", "reserved" },
        { "{\"a\":1,\"$link\":{}}", 1, 8, "/$link", "only key" },
        { "{\"$link\":{},\"a\":1}", 1, 13, "/a", "only key" },
        { "{\"$link\":{},\"$link\":{}}", 1, 13, "/$link", "only key" },
        { "{\"$double\":1.5}", 1, 1, "/$double", "NaN" },
        { "{\"$double\":\"nan\"}", 1, 1, "/$double", "NaN" },
        { "{\"$double\":\"1.5\"}", 1, 1, "/$double", "NaN" },
        { "{\"$bytes\":[1]}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"A\"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"AA\"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"AB==\"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"AA-_\"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"A===\"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"====\"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"AAA \"}", 1, 1, "/$bytes", "base64" },
        { "{\"$bytes\":\"AA==AA==\"}", 1, 1, "/$bytes", "base64" },
        { "[0,{\"$link\":\"x\"}]", 1, 4, "/1/$link", "must be an object" },
        { "{\"$link\":{\"id\":1}}", 1, 1, "/$link/id", "strings" },
        { "{\"$link\":{\"id\":\"\"}}", 1, 1, "/$link/id", "empty" },
        { "{\"$link\":{\"id\":\"a\\u0000\"}}", 1, 1, "/$link/id", "U+0000" },
        { "{\"$link\":{\"space\":\"a\\n\"}}", 1, 1, "/$link/space", "control" },
        { "{\"$link\":{\"path\":\"a\"}}", 1, 1, "/$link/path", "JSON pointer" },
        { "{\"$link\":{\"path\":\"/~2\"}}", 1, 1, "/$link/path", "JSON pointer" },
        { "{\"$link\":{\"scope\":\"here\"}}", 1, 1, "/$link/scope", "scope" },
        { "{\"$link\":{\"scope\":null}}", 1, 1, "/$link/scope", "strings" },
        { "{\"$link\":{\"id\":\"x\",\"extra\":\"y\"}}", 1, 1, "/$link/extra", "not a field" },
        { "{\"x\":{\"$link\":{\"$bytes\":\"\"}}}", 1, 6, "/x/$link", "must be an object" },
    };
    assert_refused(&w, cases, COUNT(cases));
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(white_space_is_allowed_between_tokens_only),
        cmocka_unit_test(numbers_are_ints_or_doubles_by_how_they_are_written),
        cmocka_unit_test(escapes_stand_for_their_characters),
        cmocka_unit_test(keys_come_out_in_byte_order),
        cmocka_unit_test(strings_of_every_length_and_alignment_are_read),
        cmocka_unit_test(malformed_text_is_refused_where_it_goes_wrong),
        cmocka_unit_test(malformed_numbers_are_refused),
        cmocka_unit_test(malformed_strings_are_refused),
        cmocka_unit_test(invalid_utf8_of_every_class_is_refused),
        cmocka_unit_test(utf8_at_the_edges_of_each_length_is_read),
        cmocka_unit_test(a_duplicate_key_is_refused_at_the_second),
        cmocka_unit_test(a_duplicate_among_many_keys_is_refused),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(a_long_path_is_shortened),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(a_doubled_dollar_is_a_key_of_the_user),
        cmocka_unit_test(malformed_forms_are_refused_with_their_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
