/* test_cron.c -- the five fields, what is refused, and what happens when clocks are changed. */
#include "lab.h"
#include "workflow/cron.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_env env;

/* "2026-03-29T01:30Z". */
static int64_t utc(const char *text) {
    int y, mo, d, h, mi;
    assert_int_equal(sscanf(text, "%d-%d-%dT%d:%dZ", &y, &mo, &d, &h, &mi), 5);
    return zone_days(y, mo, d) * 86400 + h * 3600 + mi * 60;
}

static const char *text_of(int64_t at) {
    static char out[40];
    int64_t y, days = at / 86400, rest = at % 86400;
    int mo, d;
    if (at == CRON_NEVER) return "never";
    zone_date(days, &y, &mo, &d);
    snprintf(out, sizeof out, "%04d-%02d-%02dT%02d:%02dZ", (int)y, mo, d, (int)(rest / 3600),
             (int)(rest / 60 % 60));
    return out;
}

/* The times after `after`, as many as there are in `expected`. */
static void assert_times(const char *fields, const char *zone_name, const char *after,
                         const char *expected) {
    cron c;
    zone *z;
    hd_error error = { 0 };
    char got[400] = "";
    if (cron_parse(fields, &c, &error)) fail_msg("%s", error.message);
    if (zone_open(&env, zone_name, &z, &error)) fail_msg("%s", error.message);
    int64_t at = utc(after);
    while (strlen(got) < strlen(expected)) {
        at = cron_next(&c, z, at);
        size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%s", n ? " " : "", text_of(at));
    }
    assert_string_equal(got, expected);
    zone_close(z);
}

static void fields_say_when(void **state) {
    assert_times("30 2 * * *", "UTC", "2026-01-01T00:00Z", "2026-01-01T02:30Z 2026-01-02T02:30Z");
    assert_times("*/20 8-9 * * *", "UTC", "2026-01-01T08:30Z",
                 "2026-01-01T08:40Z 2026-01-01T09:00Z 2026-01-01T09:20Z");
    assert_times("0 0 29 feb *", "UTC", "2097-01-01T00:00Z", "2104-02-29T00:00Z");
    assert_times("0 12 * * mon-fri/2", "UTC", "2026-11-17T13:00Z",
                 "2026-11-18T12:00Z 2026-11-20T12:00Z 2026-11-23T12:00Z");
    assert_times("0 0 13 * 5", "UTC", "2026-11-01T00:00Z", "2026-11-06T00:00Z 2026-11-13T00:00Z");
    assert_times("0 0 * * 7", "UTC", "2026-11-17T00:00Z", "2026-11-22T00:00Z");
    /* A day of the month that begins with a star restricts as the other fields do. */
    assert_times("0 0 */2 * mon", "UTC", "2026-11-01T00:00Z",
                 "2026-11-09T00:00Z 2026-11-23T00:00Z 2026-12-07T00:00Z");
    assert_times("@monthly", "UTC", "2026-11-17T00:00Z", "2026-12-01T00:00Z 2027-01-01T00:00Z");
    assert_times("5/30 * * * *", "UTC", "2026-11-17T00:06Z", "2026-11-17T00:35Z 2026-11-17T01:05Z");
}

static void zones_may_be_fixed_offsets(void **state) {
    assert_times("0 9 * * *", "+05:30", "2026-01-01T00:00Z", "2026-01-01T03:30Z");
    assert_times("0 9 * * *", "-08", "2026-01-01T00:00Z", "2026-01-01T17:00Z");
}

/* Berlin: 2026-03-29 02:00 becomes 03:00, 2026-10-25 03:00 becomes 02:00. */
static void a_time_that_is_left_out_comes_when_clocks_are_changed(void **state) {
    assert_times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z",
                 "2026-03-28T01:30Z 2026-03-29T01:00Z 2026-03-30T00:30Z");
}

static void a_time_that_comes_twice_counts_once(void **state) {
    assert_times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z",
                 "2026-10-25T00:30Z 2026-10-26T01:30Z");
}

static void every_hour_is_every_hour(void **state) {
    assert_times("*/30 2 * * *", "Europe/Berlin", "2026-10-24T23:59Z",
                 "2026-10-25T00:00Z 2026-10-25T00:30Z 2026-10-25T01:00Z 2026-10-25T01:30Z "
                 "2026-10-26T01:00Z");
    assert_times("0 * * * *", "Europe/Berlin", "2026-10-24T23:30Z",
                 "2026-10-25T00:00Z 2026-10-25T01:00Z 2026-10-25T02:00Z");
    assert_times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00Z",
                 "2026-03-29T00:30Z 2026-03-29T01:30Z");
}

static void files_end_with_rules_that_go_on(void **state) {
    assert_times("0 12 1 7 *", "America/New_York", "2090-01-01T00:00Z", "2090-07-01T16:00Z");
    assert_times("0 12 1 1 *", "Australia/Sydney", "2090-01-05T00:00Z", "2091-01-01T01:00Z");
}

static void assert_refused(const char *fields, uint32_t column, const char *part) {
    cron c;
    hd_error error = { 0 };
    assert_int_equal(cron_parse(fields, &c, &error), HD_SYNTAX);
    if (error.column != column || !strstr(error.message, part))
        fail_msg("\"%s\": column %u: %s", fields, error.column, error.message);
}

static void what_is_no_schedule_is_refused(void **state) {
    assert_refused("", 1, "minute is missing");
    assert_refused("1 2 3 4", 8, "day of the week is missing");
    assert_refused("60 * * * *", 1, "cron, column 1: a minute is a number from 0 to 59");
    assert_refused("* 24 * * *", 3, "hour");
    assert_refused("* * 0 * *", 5, "day of the month");
    assert_refused("* * * foo *", 7, "name like feb");
    assert_refused("* * * * mond", 9, "day of the week");
    assert_refused("5-1 * * * *", 4, "ends before it begins");
    assert_refused("*/0 * * * *", 3, "step");
    assert_refused("1,,2 * * * *", 3, "minute");
    assert_refused("* * * * * *", 11, "five fields");
    assert_refused("@often", 1, "@hourly");
    assert_refused("0 0 30 2 *", 1, "no date");
}

static void what_is_no_zone_is_refused(void **state) {
    static const char *const bad[] = {
        "",       "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe",
        "+25:00", "+1",           "+02:0x",           "Europe/\x01"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        zone *z;
        hd_error error = { 0 };
        assert_int_not_equal(zone_open(&env, bad[i], &z, &error), HD_OK);
        assert_null(z);
        assert_true(error.message[0]);
    }
}

static int set_up(void **state) {
    env = hd_env_system();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_say_when),
        cmocka_unit_test(zones_may_be_fixed_offsets),
        cmocka_unit_test(a_time_that_is_left_out_comes_when_clocks_are_changed),
        cmocka_unit_test(a_time_that_comes_twice_counts_once),
        cmocka_unit_test(every_hour_is_every_hour),
        cmocka_unit_test(files_end_with_rules_that_go_on),
        cmocka_unit_test(what_is_no_schedule_is_refused),
        cmocka_unit_test(what_is_no_zone_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
