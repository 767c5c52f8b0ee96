/* test_cron_naive.c -- the next time of a schedule, against a walk from minute to minute.
 *
 * The model asks the C library what clocks read in each minute of UTC, and remembers what they have read before. It
 * knows nothing of offsets and transitions. */
#define _DEFAULT_SOURCE
#include "lab.h"
#include "times.h"
#include "workflow/cron.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static hd_env env;
static lab_random r;

static int below(int n) { return (int)lab_random_below(&r, (uint64_t)n); }

/* ---- what clocks read */

static struct tm reading_of(int64_t utc) {
    struct tm t;
    time_t at = (time_t)utc;
    localtime_r(&at, &t);
    return t;
}

/* As a number that rises from minute to minute. */
static int64_t minute_of(const struct tm *t) {
    return ((zone_days(t->tm_year + 1900, t->tm_mon + 1, t->tm_mday) * 24 + t->tm_hour) * 60) +
           t->tm_min;
}

static bool fits(const cron *c, int64_t minute) {
    int64_t year, days = (minute >= 0 ? minute : minute - 1439) / 1440;
    int month, day, rest = (int)(minute - days * 1440);
    zone_date(days, &year, &month, &day);
    bool by_day = c->days >> day & 1, by_week = c->weekdays >> ((days + 4) % 7) & 1;
    return c->months >> month & 1 && (c->either_day ? by_day || by_week : by_day && by_week) &&
           c->hours >> (rest / 60) & 1 && c->minutes >> (rest % 60) & 1;
}

#define LOOK_BACK 200 /* minutes: clocks are put back by less */

/* Whether clocks have read this before, within some hours. */
static bool is_repeat(int64_t utc, int64_t minute) {
    for (int i = 1; i <= LOOK_BACK; i++) {
        struct tm t = reading_of(utc - i * 60);
        if (minute_of(&t) == minute) return true;
    }
    return false;
}

static bool counts(const cron *c, int64_t utc) {
    struct tm now = reading_of(utc), last = reading_of(utc - 60);
    int64_t minute = minute_of(&now), before = minute_of(&last);
    if (c->by_reading) return fits(c, minute);
    for (int64_t left_out = before + 1; left_out < minute; left_out++)
        if (fits(c, left_out)) return true;
    return fits(c, minute) && !is_repeat(utc, minute);
}

/* CRON_NEVER: not within so many minutes. */
static int64_t naive_next(const cron *c, int64_t after, int minutes) {
    int64_t at = after - after % 60;
    for (int i = 0; i < minutes; i++) {
        at += 60;
        if (counts(c, at)) return at;
    }
    return CRON_NEVER;
}

/* ---- random schedules */

static void write_field(char *out, size_t size, int least, int most) {
    int low = least + below(most - least + 1), high = low + below(most - low + 1);
    switch (below(6)) {
    case 0:
    case 1: snprintf(out, size, "*"); break;
    case 2: snprintf(out, size, "%d", low); break;
    case 3: snprintf(out, size, "%d-%d", low, high); break;
    case 4: snprintf(out, size, "%d,%d-%d/%d", high, low, high, 1 + below(5)); break;
    default: snprintf(out, size, "*/%d", 1 + below(most)); break;
    }
}

static void write_cron(char *out, size_t size) {
    char f[5][24];
    static const int bounds[5][2] = { { 0, 59 }, { 0, 23 }, { 1, 28 }, { 1, 12 }, { 0, 7 } };
    for (int i = 0; i < 5; i++) write_field(f[i], sizeof f[i], bounds[i][0], bounds[i][1]);
    if (below(3)) strcpy(f[3], "*");
    if (below(2)) strcpy(f[2], "*");
    if (below(2)) snprintf(f[1], sizeof f[1], "%d", below(4)); /* when clocks are changed */
    snprintf(out, size, "%s %s %s %s %s", f[0], f[1], f[2], f[3], f[4]);
}

static const char *const zones[] = {
    "UTC",           "Europe/Berlin",       "America/New_York", "Australia/Lord_Howe",
    "Asia/Kolkata",  "America/Sao_Paulo",   "Pacific/Apia",     "Africa/Casablanca",
    "Europe/Dublin", "America/Los_Angeles", "Asia/Tehran",      "Pacific/Chatham"
};

/* Near a change of the clocks as often as not. Behind 2037 files have rules only. */
static int64_t some_time(const zone *z) {
    int64_t at =
        600000000 + (int64_t)below(2000000000) + (int64_t)below(1000000000) * (below(4) == 0);
    zone_span s = zone_at(z, at);
    if (below(2) && s.to < INT64_MAX) at = s.to - 7200 + below(10800);
    return at;
}

static void compare(const char *name, const zone *z) {
    char text[200];
    cron c;
    write_cron(text, sizeof text);
    if (cron_parse(text, &c, NULL)) return; /* no date fits */
    int64_t after = some_time(z);
    for (int i = 0; i < 4; i++) {
        enum { MINUTES = 3000 };
        int64_t is = cron_next(&c, z, after), should_be = naive_next(&c, after, MINUTES);
        if (should_be == CRON_NEVER && is > after + MINUTES * 60 - 60) return;
        if (is != should_be)
            fail_msg("\"%s\" in %s after %lld: %lld, not %lld", text, name, (long long)after,
                     (long long)is, (long long)should_be);
        after = is;
    }
}

static void compare_offsets(const char *name, const zone *z) {
    for (int i = 0; i < 200; i++) {
        int64_t at = some_time(z);
        struct tm t = reading_of(at);
        if (zone_at(z, at).offset != t.tm_gmtoff)
            fail_msg("%s at %lld: %d, not %ld", name, (long long)at, zone_at(z, at).offset,
                     t.tm_gmtoff);
    }
}

static void the_next_time_is_that_of_a_walk_by_minutes(void **state) {
    uint64_t seed = lab_seed(), rounds = lab_times("HD_CRON_ROUNDS", LAB_SLOW ? 20 : 60);
    env = hd_env_system();
    r = lab_random_of(seed);
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        zone *z;
        hd_status status = zone_open(&env, zones[i], &z, NULL);
        if (status == HD_NOT_FOUND) {
            print_message("no zone %s here\n", zones[i]);
            continue;
        }
        assert_int_equal(status, HD_OK);
        setenv("TZ", zones[i], 1);
        tzset();
        compare_offsets(zones[i], z);
        for (uint64_t k = 0; k < rounds; k++) compare(zones[i], z);
        zone_close(z);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_time_is_that_of_a_walk_by_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
