/* Printing JSON: its one form, its pretty form, and that everything survives print and parse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "value_world.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heddle/value.h>
#include "value/json_read.h"
#include "value/json_write.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

#ifdef NDEBUG
#define ROUNDS 20000
#else
#define ROUNDS 2000
#endif

static hd_value parse(world *w, const char *text) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(w->pool, text, strlen(text), &error);
    if (!hd_value_exists(v)) {
        print_message("%s\n  refused: %u:%u %s: %s\n", text, error.line, error.column, error.path,
                      error.message);
        fail();
    }
    return v;
}

static void assert_prints(world *w, hd_value v, const char *expected) {
    size_t length = 0;
    const char *text = hd_json_print(w->pool, v, HD_JSON_COMPACT, &length);
    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static bool gather(const char *text, size_t length, void *ctx) {
    json_buffer *b = ctx;
    if (!json_buffer_grow(b, length)) return false;
    memcpy(b->bytes + b->length, text, length);
    b->length += length;
    return true;
}

/* Both styles read back as v; the sink gets the same text as the pool. */
static void assert_survives(world *w, hd_value v) {
    for (hd_json_style style = HD_JSON_COMPACT; style <= HD_JSON_PRETTY; style++) {
        size_t length;
        const char *text = hd_json_print(w->pool, v, style, &length);
        assert_non_null(text);
        hd_error error = { 0 };
        hd_value again = hd_json_parse(w->pool, text, length, &error);
        if (!hd_value_equal(v, again)) {
            print_message("%s\n  %s\n", text, error.message);
            fail();
        }
        json_buffer b;
        json_buffer_init(&b, lab_env_of(w->lab));
        assert_int_equal(hd_json_write(v, style, gather, &b), HD_OK);
        assert_int_equal(b.length, length);
        assert_memory_equal(b.bytes, text, length);
        json_buffer_fini(&b);
    }
}

/* ---- Forms of text ---- */

static void escapes_are_the_fewest(void **state) {
    world w = world_open();
    static const char text[] = "\0\x01\b\t\n\v\f\r\x1f \"\\/\x7f\u00e9\u2028";
    hd_value v = hd_string_n(w.pool, text, sizeof text - 1);
    assert_prints(&w, v,
                  "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\x7f\u00e9\u2028\"");
    assert_survives(&w, v);
    world_close(&w);
}

static void what_json_cannot_say_has_a_form(void **state) {
    world w = world_open();
    assert_prints(&w, hd_double((double)NAN), "{\"$double\":\"NaN\"}");
    assert_prints(&w, hd_double((double)INFINITY), "{\"$double\":\"Infinity\"}");
    assert_prints(&w, hd_double(-(double)INFINITY), "{\"$double\":\"-Infinity\"}");
    assert_prints(&w, hd_bytes(w.pool, "\0\x01\xFE\xFF", 4), "{\"$bytes\":\"AAH+/w==\"}");
    assert_prints(&w, hd_bytes(w.pool, "", 0), "{\"$bytes\":\"\"}");
    hd_link link = { .space = "s", .scope = HD_SCOPE_USER, .id = "i", .path = "/a" };
    assert_prints(&w, hd_link_make(w.pool, &link),
                  "{\"$link\":{\"id\":\"i\",\"path\":\"/a\",\"scope\":\"user\",\"space\":\"s\"}}");
    assert_prints(&w, hd_link_make(w.pool, &(hd_link){ 0 }), "{\"$link\":{}}");
    world_close(&w);
}

static void a_dollar_is_doubled_in_keys_only(void **state) {
    world w = world_open();
    hd_value v = hd_object_set(w.pool, hd_object(), "$link", hd_string(w.pool, "$x"));
    v = hd_object_set(w.pool, v, "$", hd_null());
    v = hd_object_set(w.pool, v, "$\n", hd_null());
    assert_prints(&w, v, "{\"$$\":null,\"$$\\n\":null,\"$$link\":\"$x\"}");
    assert_survives(&w, v);
    world_close(&w);
}

static void pretty_breaks_only_what_is_wide(void **state) {
    world w = world_open();
    hd_value v =
        parse(&w, "{\"short\":[1,2,{\"a\":[]}],\"empty\":{},\"long\":[\"aaaaaaaaaaaaaaaaaaaaaaa"
                  "aaaaaa\",\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",{\"c\":\"ccccccccccccccccccccccc"
                  "ccccc\",\"d\":{\"$double\":\"NaN\"}}]}");
    const char *expected =
        "{\n"
        "  \"empty\": {},\n"
        "  \"long\": [\n"
        "    \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\n"
        "    \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",\n"
        "    {\"c\": \"cccccccccccccccccccccccccccc\", \"d\": {\"$double\": \"NaN\"}}\n"
        "  ],\n"
        "  \"short\": [1, 2, {\"a\": []}]\n"
        "}";
    const char *text = hd_json_print(w.pool, v, HD_JSON_PRETTY, NULL);
    assert_string_equal(text, expected);
    text = hd_json_print(w.pool, parse(&w, "[1,{\"a\":2}]"), HD_JSON_PRETTY, NULL);
    assert_string_equal(text, "[1, {\"a\": 2}]");
    assert_string_equal(hd_json_print(w.pool, hd_object(), HD_JSON_PRETTY, NULL), "{}");
    world_close(&w);
}

/* A line holds 80 columns, the comma included. */
static void pretty_lines_are_at_most_80_columns(void **state) {
    world w = world_open();
    for (int length = 60; length < 90; length++) {
        char text[256];
        snprintf(text, sizeof text, "[[\"%0*d\",1],[2]]", length, 7);
        const char *pretty = hd_json_print(w.pool, parse(&w, text), HD_JSON_PRETTY, NULL);
        for (const char *line = pretty; line;) {
            const char *end = strchr(line, '\n');
            size_t n = end ? (size_t)(end - line) : strlen(line);
            assert_true(n <= 80 || !strchr(line, '[') || strchr(line, '[') > line + n);
            line = end ? end + 1 : NULL;
        }
        assert_survives(&w, parse(&w, text));
    }
    world_close(&w);
}

static void strings_of_every_length_and_alignment_are_printed(void **state) {
    world w = world_open();
    char text[64], expected[128];
    for (size_t length = 0; length < 40; length++) {
        for (size_t odd = 0; odd <= length; odd++) {
            memset(text, 'x', length);
            if (odd < length) text[odd] = "\"\\\n\x01"[odd % 4];
            static const char *const escapes[] = { "\\\"", "\\\\", "\\n", "\\u0001" };
            const char *escape = odd < length ? escapes[odd % 4] : "";
            size_t rest = odd < length ? length - odd - 1 : 0;
            snprintf(expected, sizeof expected, "\"%.*s%s%.*s\"", (int)odd, text, escape, (int)rest,
                     text + odd + 1);
            assert_prints(&w, hd_string_n(w.pool, text, length), expected);
        }
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

static void absent_and_failed_values_are_not_printed(void **state) {
    world w = world_open();
    size_t length = 7;
    assert_null(hd_json_print(w.pool, (hd_value){ 0 }, HD_JSON_COMPACT, &length));
    assert_int_equal(length, 0);
    assert_null(hd_json_print(w.pool, hd_failed(HD_RANGE), HD_JSON_PRETTY, NULL));
    assert_int_equal(hd_json_write((hd_value){ 0 }, HD_JSON_COMPACT, gather, NULL), HD_KIND);
    assert_int_equal(hd_json_write(hd_failed(HD_RANGE), HD_JSON_COMPACT, gather, NULL), HD_RANGE);
    world_close(&w);
}

static bool count_down(const char *text, size_t length, void *ctx) {
    (void)text;
    (void)length;
    return --*(int *)ctx > 0;
}

static void a_sink_can_stop(void **state) {
    world w = world_open();
    hd_value v = hd_array();
    for (int i = 0; i < 20000; i++) v = hd_array_append(w.pool, v, hd_int(w.pool, i));
    for (hd_json_style style = HD_JSON_COMPACT; style <= HD_JSON_PRETTY; style++) {
        int left = 3;
        assert_int_equal(hd_json_write(v, style, count_down, &left), HD_ABORTED);
        assert_int_equal(left, 0);
    }
    world_close(&w);
}

static void a_buffer_is_appended_to(void **state) {
    world w = world_open();
    json_buffer b;
    json_buffer_init(&b, lab_env_of(w.lab));
    assert_int_equal(json_print_to(&b, hd_bool(true), HD_JSON_COMPACT), HD_OK);
    assert_int_equal(json_print_to(&b, parse(&w, "[1,[2]]"), HD_JSON_COMPACT), HD_OK);
    assert_int_equal(json_print_to(&b, (hd_value){ 0 }, HD_JSON_COMPACT), HD_KIND);
    assert_int_equal(b.length, 11);
    assert_memory_equal(b.bytes, "true[1,[2]]", 11);
    json_buffer_fini(&b);
    world_close(&w);
}

/* ---- Survival ---- */

static void every_kind_survives_print_and_parse(void **state) {
    world w = world_open();
    char *long_text = malloc(5000);
    memset(long_text, 'y', 5000);
    hd_value values[] = {
        hd_null(),
        hd_bool(true),
        hd_bool(false),
        hd_array(),
        hd_object(),
        hd_int(w.pool, 0),
        hd_int(w.pool, INT64_MAX),
        hd_int(w.pool, INT64_MIN),
        hd_int(w.pool, (INT64_C(1) << 50) - 1),
        hd_int(w.pool, INT64_C(1) << 50),
        hd_int(w.pool, -(INT64_C(1) << 50)),
        hd_int(w.pool, -(INT64_C(1) << 50) - 1),
        hd_double(0.0),
        hd_double(-0.0),
        hd_double((double)NAN),
        hd_double((double)INFINITY),
        hd_double(-(double)INFINITY),
        hd_double(1.0),
        hd_double(9223372036854775807.0),
        hd_double(DBL_MAX),
        hd_double(DBL_MIN),
        hd_double(DBL_TRUE_MIN),
        hd_double(0.1),
        hd_string(w.pool, ""),
        hd_string_n(w.pool, "a\0b", 3),
        hd_string(w.pool, "$link"),
        hd_string_n(w.pool, long_text, 5000),
        hd_bytes(w.pool, "", 0),
        hd_bytes(w.pool, "\xff", 1),
        hd_bytes(w.pool, long_text, 5000),
        hd_link_make(w.pool, &(hd_link){ .id = "~x", .path = "/a~1b/\u00e9" }),
        hd_link_make(w.pool, &(hd_link){ .scope = HD_SCOPE_SESSION }),
    };
    hd_value all = hd_object();
    for (size_t i = 0; i < COUNT(values); i++) {
        assert_true(hd_value_exists(values[i]));
        assert_survives(&w, values[i]);
        char key[16];
        snprintf(key, sizeof key, "%s%zu", i % 3 ? "" : "$", i);
        all = hd_object_set(w.pool, all, key, values[i]);
    }
    all = hd_object_set(w.pool, all, "", hd_array_of(w.pool, values, COUNT(values)));
    all = hd_object_set_n(w.pool, all, "a\0b", 3, all);
    assert_survives(&w, all);
    assert_survives(&w, hd_array_of(w.pool, &all, 1));
    free(long_text);
    world_close(&w);
}

static void wide_containers_survive(void **state) {
    world w = world_open();
    hd_builder *b;
    assert_int_equal(hd_builder_open(w.pool, HD_KIND_OBJECT, &b), HD_OK);
    for (int i = 0; i < 3000; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i * 7919 % 3000);
        hd_builder_put(b, key, hd_int(w.pool, i));
    }
    hd_value object = hd_builder_close(b);
    hd_value array = hd_array();
    for (int i = 0; i < 3000; i++) array = hd_array_append(w.pool, array, hd_int(w.pool, i));
    assert_survives(&w, object);
    assert_survives(&w, array);
    assert_survives(&w, hd_object_set(w.pool, object, "key5", array));
    assert_survives(&w, hd_array_append(w.pool, array, object));
    world_close(&w);
}

static void the_deepest_value_survives(void **state) {
    world w = world_open();
    hd_value v = hd_link_make(w.pool, &(hd_link){ .id = "x" });
    for (int i = 0; i < 512; i++) {
        v = i % 2 ? hd_object_set(w.pool, hd_object(), "k", v) : hd_array_of(w.pool, &v, 1);
    }
    assert_true(hd_value_exists(v));
    assert_survives(&w, v);
    assert_int_equal(hd_value_status(hd_array_of(w.pool, &v, 1)), HD_LIMIT);
    world_close(&w);
}

/* ---- Random documents ---- */

static hd_value random_string(world *w, lab_random *r) {
    static const char *const parts[] = { "a",  "bc",    "",   "\u00e9", "\u20ac", "\U0001F600",
                                         "\"", "\\",    "\n", "\x01",   "/",      "~",
                                         "$",  "$link", " ",  "0" };
    char text[256];
    size_t n = 0;
    for (uint64_t i = lab_random_below(r, 20); i > 0; i--) {
        const char *part = parts[lab_random_below(r, COUNT(parts))];
        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return hd_string_n(w->pool, text, n);
}

static double random_double(lab_random *r) {
    uint64_t bits = lab_random_u64(r);
    double d;
    memcpy(&d, &bits, sizeof d);
    if (lab_random_once_in(r, 2)) d = (double)(int64_t)(bits % 2000000) / 64;
    return isfinite(d) ? d : 0.5;
}

/* `common` keeps to what every JSON library has. */
static hd_value random_scalar(world *w, lab_random *r, bool common) {
    char junk[40];
    switch (lab_random_below(r, common ? 6 : 9)) {
    case 0: return hd_null();
    case 1: return hd_bool(lab_random_once_in(r, 2));
    case 2: return hd_int(w->pool, (int64_t)lab_random_u64(r) >> lab_random_below(r, 64));
    case 3: return hd_double(random_double(r));
    case 6: return hd_double(lab_random_once_in(r, 2) ? (double)NAN : (double)INFINITY);
    case 7:
        lab_random_bytes(r, junk, sizeof junk);
        return hd_bytes(w->pool, junk, lab_random_below(r, sizeof junk));
    case 8: return hd_link_make(w->pool, &(hd_link){ .id = "i", .path = "/a/0" });
    default: return random_string(w, r);
    }
}

static hd_value random_value(world *w, lab_random *r, int depth, bool common) {
    if (depth == 0 || lab_random_once_in(r, 3)) return random_scalar(w, r, common);
    bool object = lab_random_once_in(r, 2);
    hd_value v = object ? hd_object() : hd_array();
    for (uint64_t i = lab_random_below(r, lab_random_once_in(r, 20) ? 60 : 6); i > 0; i--) {
        hd_value item = random_value(w, r, depth - 1, common);
        if (!object) {
            v = hd_array_append(w->pool, v, item);
            continue;
        }
        char key[64];
        const char *text = hd_value_as_text(random_string(w, r), "");
        snprintf(key, sizeof key, "%s%.30s", common ? "k" : "", text);
        size_t length = strlen(key); /* cut back to a whole character */
        while (length && ((unsigned char)key[length - 1] & 0x80)) length--;
        v = hd_object_set_n(w->pool, v, key, length, item);
    }
    return v;
}

static void random_values_survive(void **state) {
    lab_random r = lab_random_of(lab_seed());
    world w = world_open();
    for (int i = 0; i < ROUNDS; i++) {
        hd_value v = random_value(&w, &r, (int)lab_random_below(&r, 6), false);
        assert_true(hd_value_exists(v));
        assert_survives(&w, v);
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

/* ours -> jansson -> ours, and jansson's own layout as well as ours. */
static void random_values_agree_with_jansson(void **state) {
    lab_random r = lab_random_of(lab_seed() + 1);
    world w = world_open();
    for (int i = 0; i < ROUNDS; i++) {
        hd_value v = random_value(&w, &r, (int)lab_random_below(&r, 6), true);
        hd_json_style style = i % 2 ? HD_JSON_PRETTY : HD_JSON_COMPACT;
        size_t length;
        const char *text = hd_json_print(w.pool, v, style, &length);
        json_error_t why;
        json_t *theirs = json_loadb(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
        if (!theirs) {
            print_message("%s\n  jansson: %s\n", text, why.text);
            fail();
        }
        size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) |
                       (i % 3 ? JSON_COMPACT : JSON_INDENT(1)) | (i % 5 ? 0 : JSON_ENSURE_ASCII);
        char *back = json_dumps(theirs, flags);
        assert_non_null(back);
        hd_value again = parse(&w, back);
        if (!hd_value_equal(v, again)) {
            print_message("%s\n%s\n", text, back);
            fail();
        }
        free(back);
        json_decref(theirs);
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

/* A good document with one byte changed is read or refused exactly as jansson does, but for keys with
 * one `$`, which we reserve, and keys with U+0000, which RFC 8259 allows and jansson cannot hold. */
static void random_damage_is_judged_as_by_jansson(void **state) {
    lab_random r = lab_random_of(lab_seed() + 2);
    world w = world_open();
    for (int i = 0; i < ROUNDS * 4; i++) {
        hd_value v = random_value(&w, &r, 3, true);
        size_t length;
        char *text = (char *)(uintptr_t)hd_json_print(w.pool, v, HD_JSON_COMPACT, &length);
        static const char bytes[] = "\"\\{}[],:0123456789.eE+-truefalsn u\x01\x80\xC3\xE2\xF0 \n";
        text[lab_random_below(&r, length)] = bytes[lab_random_below(&r, sizeof bytes - 1)];
        size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
        json_error_t why = { 0 };
        json_t *theirs = json_loadb(text, length, flags, &why);
        hd_value ours = hd_json_parse(w.pool, text, length, NULL);
        bool excepted = strstr(text, "\"$") != NULL;
        if (!theirs && json_error_code(&why) == json_error_null_byte_in_key) excepted = true;
        if (!excepted && hd_value_exists(ours) != (theirs != NULL)) {
            print_message("%s\n  ours %s, theirs %s\n", text, hd_value_exists(ours) ? "yes" : "no",
                          theirs ? "yes" : "no");
            fail();
        }
        json_decref(theirs);
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

/* ---- Memory that runs out ---- */

static const char failing_text[] =
    "{\"a\":[1,2.5,\"text that is longer than a block may be, or at least not so short\",null],"
    "\"\\u0062\":{\"c\":{\"$link\":{\"id\":\"x\",\"path\":\"/y/"
    "z\",\"space\":\"s\"}},\"d\":{\"$bytes\":"
    "\"AAAA\"}},\"big\":9007199254740993,\"n\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
    "1]]]"
    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}";

static void parse_and_print(lab_env *env, void *ctx) {
    (void)ctx;
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    hd_error error = { 0 };
    if (hd_heap_open(lab_env_of(env), NULL, &heap) == HD_OK && hd_pool_open(heap, &pool) == HD_OK) {
        hd_value v = hd_json_parse(pool, failing_text, sizeof failing_text - 1, &error);
        if (!hd_value_exists(v)) {
            assert_true(lab_env_failed(env));
            assert_int_equal(hd_value_status(v), HD_NOMEM);
            assert_int_equal(error.status, HD_NOMEM);
        } else {
            const char *text = hd_json_print(pool, v, HD_JSON_PRETTY, NULL);
            assert_true(text || lab_env_failed(env));
            char id[HD_ID_SIZE];
            hd_status status = hd_id_of(v, id);
            assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(env)));
        }
    }
    hd_pool_close(pool);
    hd_heap_close(heap);
}

static void any_allocation_may_fail(void **state) {
    uint64_t count = lab_each_allocation_failure(parse_and_print, NULL);
    assert_true(count > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_the_fewest),
        cmocka_unit_test(what_json_cannot_say_has_a_form),
        cmocka_unit_test(a_dollar_is_doubled_in_keys_only),
        cmocka_unit_test(pretty_breaks_only_what_is_wide),
        cmocka_unit_test(pretty_lines_are_at_most_80_columns),
        cmocka_unit_test(strings_of_every_length_and_alignment_are_printed),
        cmocka_unit_test(absent_and_failed_values_are_not_printed),
        cmocka_unit_test(a_sink_can_stop),
        cmocka_unit_test(a_buffer_is_appended_to),
        cmocka_unit_test(every_kind_survives_print_and_parse),
        cmocka_unit_test(wide_containers_survive),
        cmocka_unit_test(the_deepest_value_survives),
        cmocka_unit_test(random_values_survive),
        cmocka_unit_test(random_values_agree_with_jansson),
        cmocka_unit_test(random_damage_is_judged_as_by_jansson),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
