/* Numbers as text: the C library is the oracle, in the C locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value/number.h"

#ifdef NDEBUG
#define ROUNDS 1000000
#else
#define ROUNDS 100000
#endif

/* xorshift64*: all we need is bits, and a seed that can be given again. */
static uint64_t random_state;

static uint64_t random_bits(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static double double_of(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t bits_of(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static number_kind parse(const char *text, number *out) {
    return number_parse(text, text + strlen(text), out);
}

static void assert_reads(const char *text) {
    number n = { 0 };
    double expected = strtod(text, NULL);
    number_kind kind = parse(text, &n);
    if (isinf(expected)) {
        assert_int_equal(kind, NUMBER_DOUBLE_RANGE);
        return;
    }
    if (kind != NUMBER_DOUBLE || bits_of(n.d) != bits_of(expected)) {
        print_message("%s read as %.17g, not %.17g\n", text, n.d, expected);
        fail();
    }
    assert_ptr_equal(n.end, text + strlen(text));
}

static const char *printed(double d) {
    static char text[NUMBER_TEXT_MAX + 1];
    text[number_print_double(d, text)] = 0;
    return text;
}

static void assert_prints(double d, const char *expected) {
    assert_string_equal(printed(d), expected);
}

static unsigned significant_digits(const char *text) {
    unsigned count = 0, trailing = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        if (count || *text != '0') count++;
        trailing = *text == '0' ? trailing + 1 : 0;
    }
    return count - (count > trailing ? trailing : 0);
}

static void assert_round_trips(double d) {
    number n = { 0 };
    const char *text = printed(d);
    assert_int_equal(parse(text, &n), NUMBER_DOUBLE);
    if (bits_of(n.d) != bits_of(d) || bits_of(strtod(text, NULL)) != bits_of(d)) {
        print_message("%.17g printed as %s\n", d, text);
        fail();
    }
}

/* The fewest digits that printf needs for a text that reads back. */
static unsigned fewest_digits(double d) {
    char text[64];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, d);
        if (strtod(text, NULL) == d) return significant_digits(text);
    }
    return 17;
}

static void assert_shortest(double d) {
    unsigned ours = significant_digits(printed(d));
    if (ours > fewest_digits(d)) {
        print_message("%.17g printed as %s\n", d, printed(d));
        fail();
    }
}

static void integers_print_and_read_at_every_limit(void **state) {
    (void)state;
    static const char *texts[] = { "0",
                                   "1",
                                   "-1",
                                   "9",
                                   "10",
                                   "99",
                                   "100",
                                   "-100",
                                   "1125899906842623",
                                   "1125899906842624",
                                   "-1125899906842624",
                                   "-1125899906842625",
                                   "9223372036854775806",
                                   "9223372036854775807",
                                   "-9223372036854775807",
                                   "-9223372036854775808" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        number n;
        char text[NUMBER_TEXT_MAX + 1];
        assert_int_equal(parse(texts[i], &n), NUMBER_INT);
        text[number_print_int(n.i, text)] = 0;
        assert_string_equal(text, texts[i]);
    }
}

static void integers_beyond_64_bits_are_out_of_range(void **state) {
    (void)state;
    number n;
    assert_int_equal(parse("9223372036854775808", &n), NUMBER_INT_RANGE);
    assert_int_equal(parse("-9223372036854775809", &n), NUMBER_INT_RANGE);
    assert_int_equal(parse("18446744073709551616", &n), NUMBER_INT_RANGE);
    assert_int_equal(parse("36893488147419103233", &n), NUMBER_INT_RANGE);
    assert_int_equal(parse("100000000000000000000000000000", &n), NUMBER_INT_RANGE);
}

static void every_power_of_ten_and_its_neighbours_print_as_integers(void **state) {
    (void)state;
    for (int64_t power = 1; power <= INT64_C(1000000000000000000); power *= 10) {
        for (int64_t i = power - 1; i <= power + 1; i++) {
            char ours[NUMBER_TEXT_MAX + 1], theirs[32];
            ours[number_print_int(-i, ours)] = 0;
            snprintf(theirs, sizeof theirs, "%lld", (long long)-i);
            assert_string_equal(ours, theirs);
        }
        if (power == INT64_C(1000000000000000000)) break;
    }
}

static void minus_zero_is_a_double(void **state) {
    (void)state;
    number n;
    assert_int_equal(parse("-0", &n), NUMBER_DOUBLE);
    assert_true(n.d == 0 && signbit(n.d));
    assert_prints(-0.0, "-0.0");
    assert_prints(0.0, "0.0");
}

static void malformed_numbers_say_where(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int at;
    } cases[] = {
        { "", 0 },    { "-", 1 },    { "+1", 0 },    { ".5", 0 },   { "-.5", 1 },      { "01", 1 },
        { "-01", 2 }, { "00", 1 },   { "1.", 2 },    { "1.e5", 2 }, { "1e", 2 },       { "1e+", 3 },
        { "1e-", 3 }, { "1E+x", 3 }, { "0x10", -1 }, { "a", 0 },    { "Infinity", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        number n;
        number_kind kind = parse(cases[i].text, &n);
        if (cases[i].at < 0) {
            assert_int_equal(kind, NUMBER_INT); /* "0", and then something else */
            assert_int_equal(n.end - cases[i].text, 1);
        } else {
            assert_int_equal(kind, NUMBER_MALFORMED);
            assert_int_equal(n.end - cases[i].text, cases[i].at);
        }
    }
}

static void the_limit_is_never_crossed(void **state) {
    (void)state;
    const char *text = "-12.5e+10";
    for (size_t length = 0; length <= strlen(text); length++) {
        char *exact = malloc(length ? length : 1); /* a sanitizer watches its end */
        memcpy(exact, text, length);
        number n;
        number_kind kind = number_parse(exact, exact + length, &n);
        bool complete = length == 2 || length == 3 || length == 5 || length >= 8;
        assert_int_equal(kind != NUMBER_MALFORMED, complete);
        free(exact);
    }
}

static void doubles_print_in_their_one_form(void **state) {
    (void)state;
    assert_prints(1, "1.0");
    assert_prints(-1.5, "-1.5");
    assert_prints(0.1, "0.1");
    assert_prints(0.3, "0.3");
    assert_prints(0.1 + 0.2, "0.30000000000000004");
    assert_prints(100, "100.0");
    assert_prints(123.456, "123.456");
    assert_prints(0.000001, "0.000001");
    assert_prints(0.0000001, "1e-7");
    assert_prints(1.25e-7, "1.25e-7");
    assert_prints(12345678901234567.0, "12345678901234568.0");
    assert_prints(1e16, "10000000000000000.0");
    assert_prints(1e17, "1e17");
    assert_prints(1.5e17, "1.5e17");
    assert_prints(1e23, "1e23");
    assert_prints(9007199254740993.0, "9007199254740992.0");
    assert_prints(DBL_MAX, "1.7976931348623157e308");
    assert_prints(-DBL_MAX, "-1.7976931348623157e308");
    assert_prints(DBL_MIN, "2.2250738585072014e-308");
    assert_prints(DBL_TRUE_MIN, "5e-324");
    assert_prints(DBL_EPSILON, "2.220446049250313e-16");
}

static void doubles_at_the_edges_read_correctly(void **state) {
    (void)state;
    static const char *texts[] = {
        "0.0",
        "-0.0",
        "0e0",
        "0e999999999999999999999",
        "-0e-5",
        "1e0",
        "1E2",
        "1e+2",
        "1e-2",
        /* the largest, the midpoint to infinity and its neighbours */
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.797693134862315807e308",
        "1.7976931348623158079e308",
        "1.797693134862315808e308",
        "1.8e308",
        "1e309",
        "1e99999",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
        "854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
        "342711559699508093042880.0",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
        "854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
        "342711559699508093042879.9",
        /* the smallest, its half, and around the step from subnormal to normal */
        "5e-324",
        "4.9e-324",
        "2.4703282292062327208e-324",
        "2.4703282292062328e-324",
        "2.4703282292062327e-324",
        "2.5e-324",
        "2.4e-324",
        "1e-324",
        "1e-400",
        "1e-99999",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.225073858507201136e-308",
        "2.2250738585072012e-308",
        /* ties */
        "9007199254740993.0",
        "9007199254740993.00000000000000000000000000000000000000000001",
        "9007199254740992.99999999999999999999999999999999999999999999",
        "9007199254740995.0",
        "900719925474099.25",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "1.00000000000000033306690738754696212708950042724609375",
        /* nineteen digits and more */
        "9999999999999999999.0",
        "18446744073709551615.0",
        "18446744073709551616.0",
        "18446744073709551617e1",
        "123456789012345678901234567890.0",
        "1234567890123456789012e-22",
        "0.000000000000000000000000000000000000000000000000000000000001234567890123456789012345",
        "0.1e1",
        "100000000000000000000000e-23",
        "8.5e22",
        "9.5e22",
        "1e22",
        "1e23",
        "6.0221e23",
        "7.2057594037927933e16",
        "3.2378839133029012895883e-319",
        "6.8985865317742005e9",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_reads(texts[i]);
}

/* The midpoint of the two smallest doubles is 1.5 * 2^-1074: 1,075 places, of which the last
 * decides. A long double holds it exactly. */
static void the_longest_midpoint_is_decided_by_its_last_digit(void **state) {
    (void)state;
    char text[1200];
    snprintf(text, sizeof text, "%.1075Lf", 3 * 0x1p-1075L);
    size_t last = strlen(text) - 1;
    assert_int_equal(text[last], '5');
    assert_reads(text);
    text[last] = '4';
    assert_reads(text);
    memcpy(text + last, "50000000001", 12);
    assert_reads(text);
}

static void powers_of_two_and_their_neighbours_round_trip(void **state) {
    (void)state;
    for (uint64_t exponent = 0; exponent < 2047; exponent++) {
        for (int64_t step = -2; step <= 2; step++) {
            uint64_t bits = (exponent << 52) + (uint64_t)step;
            if (bits >= UINT64_C(0x7FF) << 52) continue;
            assert_round_trips(double_of(bits));
            assert_shortest(double_of(bits));
        }
    }
}

static void powers_of_ten_and_their_neighbours_round_trip(void **state) {
    (void)state;
    for (int exponent = -330; exponent <= 308; exponent++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", exponent);
        assert_reads(text);
        uint64_t bits = bits_of(strtod(text, NULL));
        for (uint64_t b = bits > 2 ? bits - 2 : 0; b <= bits + 2; b++) {
            assert_round_trips(double_of(b));
            assert_shortest(double_of(b));
        }
    }
}

static void random_doubles_round_trip(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        double d = double_of(random_bits());
        if (!isfinite(d)) continue;
        assert_round_trips(d);
        if (i % 32 == 0) assert_shortest(d);
        if (i % 32 == 1) {
            char text[64];
            snprintf(text, sizeof text, "%.17e", d);
            assert_reads(text);
        }
    }
}

/* Decimals with few digits are what people write. */
static void random_short_decimals_read_and_print_as_written(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS / 4; i++) {
        char text[64];
        uint64_t digits = random_bits() % 1000000;
        int places = (int)(random_bits() % 5) + 1;
        snprintf(text, sizeof text, "%.*f", places, (double)digits / pow(10, places));
        assert_reads(text);
        assert_round_trips(strtod(text, NULL));
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)random_bits(),
                 (int)(random_bits() % 700) - 360);
        assert_reads(text);
    }
}

/* The exact midpoint of two random neighbours, cut at a random place and with a random tail. */
static void random_midpoints_round_to_even(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS / 20; i++) {
        uint64_t bits = random_bits() >> 1;
        if (bits >= (UINT64_C(0x7FF) << 52) - 1) continue;
        if (i % 2) bits = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1000) + bits % 90) << 52;
        long double middle = ((long double)double_of(bits) + (long double)double_of(bits + 1)) / 2;
        char text[1300];
        int length = snprintf(text, sizeof text, "%.1100Le", middle);
        char *exponent = strchr(text, 'e');
        assert_non_null(exponent);
        assert_true(length > 0);
        assert_reads(text);
        exponent[-1] = '1'; /* a hair above */
        assert_reads(text);
        char cut[1300];
        size_t keep = 3 + random_bits() % 40;
        snprintf(cut, sizeof cut, "%.*s%s", (int)keep, text, exponent);
        assert_reads(cut);
    }
}

int main(void) {
    const char *given = getenv("HD_SEED");
    random_state = given ? strtoull(given, NULL, 0) : UINT64_C(0x9E3779B97F4A7C15);
    if (random_state == 0) random_state = 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_print_and_read_at_every_limit),
        cmocka_unit_test(integers_beyond_64_bits_are_out_of_range),
        cmocka_unit_test(every_power_of_ten_and_its_neighbours_print_as_integers),
        cmocka_unit_test(minus_zero_is_a_double),
        cmocka_unit_test(malformed_numbers_say_where),
        cmocka_unit_test(the_limit_is_never_crossed),
        cmocka_unit_test(doubles_print_in_their_one_form),
        cmocka_unit_test(doubles_at_the_edges_read_correctly),
        cmocka_unit_test(the_longest_midpoint_is_decided_by_its_last_digit),
        cmocka_unit_test(powers_of_two_and_their_neighbours_round_trip),
        cmocka_unit_test(powers_of_ten_and_their_neighbours_round_trip),
        cmocka_unit_test(random_doubles_round_trip),
        cmocka_unit_test(random_short_decimals_read_and_print_as_written),
        cmocka_unit_test(random_midpoints_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
