/* test_value.c -- kinds, conversions, texts, iteration; absent and failed values. */
#include "value/heap.h"
#include "value/text.h"
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "value_world.h"

/* ---- Kinds ---- */

static void every_value_knows_its_kind(void **state) {
    world w = world_open();
    const struct {
        hd_value v;
        hd_kind kind;
        const char *name;
    } cases[] = { { { 0 }, HD_KIND_ABSENT, "absent" },
                  { hd_failed(HD_NOMEM), HD_KIND_FAILED, "failed" },
                  { hd_null(), HD_KIND_NULL, "null" },
                  { hd_bool(true), HD_KIND_BOOL, "bool" },
                  { hd_bool(false), HD_KIND_BOOL, "bool" },
                  { hd_int(NULL, 0), HD_KIND_INT, "int" },
                  { hd_int(w.pool, INT64_MIN), HD_KIND_INT, "int" },
                  { hd_double(0), HD_KIND_DOUBLE, "double" },
                  { hd_double((double)NAN), HD_KIND_DOUBLE, "double" },
                  { hd_double((double)-INFINITY), HD_KIND_DOUBLE, "double" },
                  { hd_string(w.pool, ""), HD_KIND_STRING, "string" },
                  { hd_string(w.pool, "a"), HD_KIND_STRING, "string" },
                  { hd_bytes(w.pool, "", 0), HD_KIND_BYTES, "bytes" },
                  { hd_bytes(w.pool, "\xFF", 1), HD_KIND_BYTES, "bytes" },
                  { hd_array(), HD_KIND_ARRAY, "array" },
                  { hd_object(), HD_KIND_OBJECT, "object" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hd_value_kind(cases[i].v), cases[i].kind);
        assert_string_equal(hd_kind_name(hd_value_kind(cases[i].v)), cases[i].name);
        assert_int_equal(hd_value_exists(cases[i].v), i > 1);
    }
    assert_string_equal(hd_kind_name(HD_KIND_LINK), "link");
    assert_string_equal(hd_kind_name((hd_kind)99), "unknown");
    world_close(&w);
}

static void failed_values_carry_their_status(void **state) {
    for (int s = 1; s < HD_STATUS_COUNT_; s++) {
        hd_value v = hd_failed((hd_status)s);
        assert_int_equal(hd_value_kind(v), HD_KIND_FAILED);
        assert_int_equal(hd_value_status(v), s);
    }
    assert_int_equal(hd_value_status(hd_failed(HD_OK)), HD_FAILED);
    assert_int_equal(hd_value_status(hd_null()), HD_OK);
    assert_int_equal(hd_value_status((hd_value){ 0 }), HD_OK);
}

/* ---- Numbers ---- */

static void integers_come_back_whole(void **state) {
    world w = world_open();
    int64_t cases[] = {
        0,         1,        -1, VALUE_INT_MAX, VALUE_INT_MIN, VALUE_INT_MAX + 1, VALUE_INT_MIN - 1,
        INT64_MAX, INT64_MIN
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_value v = hd_int(w.pool, cases[i]);
        assert_int_equal(hd_value_kind(v), HD_KIND_INT);
        assert_true(hd_value_as_int(v, 42) == cases[i]);
        assert_true(hd_value_number(v) == (double)cases[i]);
        assert_int_equal(value_is_block(v), i >= 5);
    }
    assert_int_equal(hd_value_status(hd_int(NULL, INT64_MAX)), HD_USAGE);
    world_close(&w);
}

static void doubles_keep_every_bit_but_those_of_nan(void **state) {
    double cases[] = {
        0.0, -0.0, 1.5, -1.5, 5e-324, 1.7976931348623157e308, (double)INFINITY, (double)-INFINITY
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double back = hd_value_as_double(hd_double(cases[i]), 42);
        assert_memory_equal(&back, &cases[i], sizeof back);
        assert_int_equal(hd_value_kind(hd_double(cases[i])), HD_KIND_DOUBLE);
    }
    assert_true(isnan(hd_value_number(hd_double((double)NAN))));
    assert_int_equal(hd_double((double)NAN).bits, hd_double(-(double)NAN).bits);
    assert_true(isnan(hd_value_number(hd_null())));
}

static void conversions_take_what_fits(void **state) {
    world w = world_open();
    assert_int_equal(hd_value_as_int(hd_double(3.0), 42), 3);
    assert_int_equal(hd_value_as_int(hd_double(-0x1p63), 42), INT64_MIN);
    assert_int_equal(hd_value_as_int(hd_double(0x1p63), 42), 42);
    assert_int_equal(hd_value_as_int(hd_double(3.5), 42), 42);
    assert_int_equal(hd_value_as_int(hd_double((double)NAN), 42), 42);
    assert_int_equal(hd_value_as_int(hd_bool(true), 42), 42);
    assert_true(hd_value_as_double(hd_int(w.pool, 7), 42) == 7.0);
    assert_true(hd_value_as_double(hd_string(w.pool, "7"), 42) == 42);
    assert_true(hd_value_as_bool(hd_bool(true), false));
    assert_false(hd_value_as_bool(hd_bool(false), true));
    assert_true(hd_value_as_bool(hd_int(NULL, 0), true));
    assert_string_equal(hd_value_as_text(hd_null(), "otherwise"), "otherwise");
    size_t n = 99;
    assert_null(hd_value_text(hd_bytes(w.pool, "a", 1), &n));
    assert_int_equal(n, 0);
    assert_null(hd_value_bytes(hd_string(w.pool, "a"), &n));
    world_close(&w);
}

/* ---- Texts ---- */

static void texts_of_any_length_come_back(void **state) {
    world w = world_open();
    static char bytes[70000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)('a' + i % 26);
    size_t lengths[] = { 0, 1, 7, 8, 100, TEXT_INLINE_MAX, TEXT_INLINE_MAX + 1, sizeof bytes };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n;
        const char *text = hd_value_text(hd_string_n(w.pool, bytes, lengths[i]), &n);
        assert_int_equal(n, lengths[i]);
        assert_memory_equal(text, bytes, n);
        assert_int_equal(text[n], 0);
        const char *data = hd_value_bytes(hd_bytes(w.pool, bytes, lengths[i]), &n);
        assert_int_equal(n, lengths[i]);
        assert_memory_equal(data, bytes, n);
    }
    size_t n;
    hd_value_text(hd_string_n(w.pool, "a\0b", 3), &n);
    assert_int_equal(n, 3);
    assert_int_equal(hd_value_status(hd_string(w.pool, NULL)), HD_USAGE);
    world_close(&w);
}

static void texts_longer_than_the_limit_are_refused(void **state) {
    lab_env *lab = lab_env_open();
    hd_heap *heap;
    hd_pool *pool;
    hd_limits limits = { .size = 10 };
    assert_int_equal(hd_heap_open(lab_env_of(lab), &limits, &heap), HD_OK);
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    assert_int_equal(hd_value_status(hd_string(pool, "0123456789")), HD_OK);
    assert_int_equal(hd_value_status(hd_string(pool, "0123456789a")), HD_LIMIT);
    assert_int_equal(hd_value_status(hd_bytes(pool, "0123456789a", 11)), HD_LIMIT);
    assert_int_equal(hd_value_status(hd_string_f(pool, "%s", "0123456789a")), HD_LIMIT);
    assert_int_equal(hd_value_status(hd_object_set(pool, hd_object(), "0123456789a", hd_null())),
                     HD_LIMIT);
    hd_heap_close(heap);
    lab_env_close(lab);
}

static void formatted_strings_are_strings(void **state) {
    world w = world_open();
    assert_string_equal(hd_value_as_text(hd_string_f(w.pool, "%d of %s", 3, "four"), ""),
                        "3 of four");
    assert_string_equal(hd_value_as_text(hd_string_f(w.pool, "%s", ""), "x"), "");
    assert_int_equal(hd_value_status(hd_string_f(w.pool, "%c", 0xFF)), HD_SYNTAX);
    world_close(&w);
}

static void strings_must_be_utf8(void **state) {
    static const struct {
        const char *bytes;
        size_t bad; /* SIZE_MAX: valid */
    } cases[] = { { "plain ascii that is longer than eight bytes", SIZE_MAX },
                  { "\xC3\xA4", SIZE_MAX },
                  { "\xE2\x82\xAC", SIZE_MAX },
                  { "\xF0\x9F\x98\x80", SIZE_MAX },
                  { "\xF4\x8F\xBF\xBF", SIZE_MAX },
                  { "\xED\x9F\xBF", SIZE_MAX },
                  { "\xEF\xBF\xBF", SIZE_MAX },
                  { "\x80", 0 },
                  { "12345678\xFF", 8 },
                  { "\xC0\xAF", 0 },           /* overlong */
                  { "\xC1\xBF", 0 },           /* overlong */
                  { "\xE0\x9F\xBF", 0 },       /* overlong */
                  { "\xF0\x8F\xBF\xBF", 0 },   /* overlong */
                  { "\xED\xA0\x80", 0 },       /* surrogate */
                  { "\xF4\x90\x80\x80", 0 },   /* above U+10FFFF */
                  { "\xF5\x80\x80\x80", 0 },   /* above U+10FFFF */
                  { "a\xC3", 1 },              /* cut off */
                  { "a\xE2\x82", 1 },          /* cut off */
                  { "a\xF0\x9F\x98", 1 },      /* cut off */
                  { "\xE2\x28\xA1", 0 },       /* no continuation */
                  { "\xF0\x9F\x28\x80", 0 },   /* no continuation */
                  { "\xF0\x9F\x98\x28", 0 } }; /* no continuation */
    world w = world_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bad = SIZE_MAX;
        bool valid = utf8_valid(cases[i].bytes, strlen(cases[i].bytes), &bad);
        assert_int_equal(valid, cases[i].bad == SIZE_MAX);
        assert_int_equal(bad, cases[i].bad);
        hd_status status = hd_value_status(hd_string(w.pool, cases[i].bytes));
        assert_int_equal(status, valid ? HD_OK : HD_SYNTAX);
    }
    world_close(&w);
}

/* ---- Nothing to check twice ---- */

static void absence_reads_as_absence_all_the_way_down(void **state) {
    world w = world_open();
    hd_value cases[] = {
        { 0 },      hd_failed(HD_NOMEM),      hd_null(), hd_int(NULL, 1), hd_object(),
        hd_array(), hd_string(w.pool, "text")
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_value v = hd_value_index(hd_value_at(hd_value_at(cases[i], "a"), "b"), 3);
        assert_int_equal(hd_value_kind(v), HD_KIND_ABSENT);
        assert_int_equal(hd_value_count(cases[i]), 0);
        hd_iter it = hd_iter_of(cases[i]);
        assert_false(hd_iter_next(&it));
        assert_false(hd_iter_next(&it));
    }
    world_close(&w);
}

static void builders_pass_failures_on(void **state) {
    world w = world_open();
    hd_value bad = hd_failed(HD_IO), one = hd_array_append(w.pool, hd_array(), hd_null());
    hd_value results[] = { hd_object_set(w.pool, bad, "a", hd_null()),
                           hd_object_set(w.pool, hd_object(), "a", bad),
                           hd_object_remove(w.pool, bad, "a"),
                           hd_array_append(w.pool, bad, hd_null()),
                           hd_array_append(w.pool, hd_array(), bad),
                           hd_array_set(w.pool, one, 0, bad),
                           hd_array_set(w.pool, bad, 0, hd_null()),
                           hd_array_insert(w.pool, one, 0, bad),
                           hd_array_remove(w.pool, bad, 0),
                           hd_array_truncate(w.pool, bad, 0),
                           hd_array_of(w.pool, &bad, 1),
                           hd_value_set(w.pool, bad, HD_PATH_ROOT, hd_null()),
                           hd_value_set(w.pool, hd_null(), HD_PATH_ROOT, bad),
                           hd_value_remove(w.pool, bad, HD_PATH_ROOT),
                           hd_value_append(w.pool, bad, HD_PATH_ROOT, hd_null()),
                           hd_value_append(w.pool, one, HD_PATH_ROOT, bad),
                           hd_value_take(w.pool, bad) };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        assert_int_equal(hd_value_status(results[i]), HD_IO);
    world_close(&w);
}

static void absence_cannot_be_stored(void **state) {
    world w = world_open();
    hd_value absent = { 0 }, one = hd_array_append(w.pool, hd_array(), hd_null());
    hd_value results[] = { hd_object_set(w.pool, hd_object(), "a", absent),
                           hd_array_append(w.pool, hd_array(), absent),
                           hd_array_set(w.pool, one, 0, absent),
                           hd_array_insert(w.pool, one, 0, absent),
                           hd_array_of(w.pool, &absent, 1),
                           hd_value_set(w.pool, one, HD_PATH_ROOT, absent),
                           hd_value_append(w.pool, one, HD_PATH_ROOT, absent) };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        assert_int_equal(hd_value_status(results[i]), HD_KIND);
    world_close(&w);
}

/* ---- Iteration ---- */

static void objects_iterate_in_byte_order(void **state) {
    world w = world_open();
    static const char *const given[] = { "b", "a", "10", "", "2", "aa", "B", "\xC3\xA4", "~" };
    static const char *const expected[] = { "", "10", "2", "B", "a", "aa", "b", "~", "\xC3\xA4" };
    hd_value v = hd_object();
    for (int i = 0; i < 9; i++) v = hd_object_set(w.pool, v, given[i], hd_int(NULL, i));
    size_t at = 0;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it); at++) {
        assert_string_equal(it.key, expected[at]);
        assert_int_equal(it.key_length, strlen(expected[at]));
        assert_int_equal(it.index, at);
        assert_string_equal(given[hd_value_as_int(it.value, 99)], it.key);
    }
    assert_int_equal(at, 9);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_knows_its_kind),
        cmocka_unit_test(failed_values_carry_their_status),
        cmocka_unit_test(integers_come_back_whole),
        cmocka_unit_test(doubles_keep_every_bit_but_those_of_nan),
        cmocka_unit_test(conversions_take_what_fits),
        cmocka_unit_test(texts_of_any_length_come_back),
        cmocka_unit_test(texts_longer_than_the_limit_are_refused),
        cmocka_unit_test(formatted_strings_are_strings),
        cmocka_unit_test(strings_must_be_utf8),
        cmocka_unit_test(absence_reads_as_absence_all_the_way_down),
        cmocka_unit_test(builders_pass_failures_on),
        cmocka_unit_test(absence_cannot_be_stored),
        cmocka_unit_test(objects_iterate_in_byte_order),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
