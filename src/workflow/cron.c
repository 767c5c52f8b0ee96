/* cron.c -- reading the five fields; the next time.
 *
 * cron_next goes from one stretch of constant offset to the next (zone.h). Within one, a clock's reading is the time
 * plus a constant, so that the next time is a matter of the calendar alone. */
#include "workflow/cron.h"

#include "base/env.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define DAYS_MAX (12 * 366) /* 1896 to 1904 had no February 29 in between */

/* ---- reading */

typedef struct field {
    const char *what;
    int least, most;
    const char *const *names; /* of `least` and those that follow; NULL: none */
} field;

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                           "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const day_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL };
static const field fields[] = { { "minute", 0, 59, NULL },
                                { "hour", 0, 23, NULL },
                                { "day of the month", 1, 31, NULL },
                                { "month", 1, 12, month_names },
                                { "day of the week", 0, 7, day_names } };

typedef struct cron_reader {
    const char *text, *at;
    const field *f;
    hd_error *error;
} cron_reader;

static hd_status refuse(const cron_reader *r, const char *format, ...) HD_PRINTF(2, 3);
static hd_status refuse(const cron_reader *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    env_error_v(r->error, HD_SYNTAX, format, arguments);
    va_end(arguments);
    if (r->error) {
        r->error->line = 1;
        r->error->offset = (size_t)(r->at - r->text);
        r->error->column = (uint32_t)r->error->offset + 1;
    }
    return HD_SYNTAX;
}

static hd_status bad_value(const cron_reader *r) {
    return refuse(r, "cron, column %d: %s %s is a number from %d to %d%s%s",
                  (int)(r->at - r->text) + 1, *r->f->what == 'h' ? "an" : "a", r->f->what,
                  r->f->least, r->f->most, r->f->names ? ", or a name like " : "",
                  r->f->names ? r->f->names[1] : "");
}

static hd_status read_value(cron_reader *r, int *out) {
    const char *from = r->at;
    int n = 0;
    for (int i = 0; r->f->names && r->f->names[i]; i++)
        if (!strncasecmp(r->at, r->f->names[i], 3) && !isalnum((unsigned char)r->at[3])) {
            *out = i + r->f->least;
            r->at += 3;
            return HD_OK;
        }
    while (isdigit((unsigned char)*r->at) && r->at - from < 3) n = n * 10 + *r->at++ - '0';
    *out = n;
    if (r->at > from && !isalnum((unsigned char)*r->at) && n >= r->f->least && n <= r->f->most)
        return HD_OK;
    r->at = from;
    return bad_value(r);
}

static hd_status read_step(cron_reader *r, int *out) {
    int n = 0;
    const char *from = ++r->at;
    while (isdigit((unsigned char)*r->at) && r->at - from < 3) n = n * 10 + *r->at++ - '0';
    *out = n;
    if (r->at > from && n > 0) return HD_OK;
    r->at = from;
    return refuse(r, "cron, column %d: a step is a number from 1", (int)(r->at - r->text) + 1);
}

/* "*", "5", "1-5", each with "/2". */
static hd_status read_range(cron_reader *r, uint64_t *bits) {
    int low = r->f->least, high = r->f->most, step = 1;
    bool star = *r->at == '*', one = false;
    hd_status status = HD_OK;
    if (star) r->at++;
    else status = read_value(r, &low);
    if (!status && !star) {
        one = *r->at != '-';
        high = low;
        if (!one && (r->at++, !(status = read_value(r, &high))) && high < low) {
            return refuse(r, "cron, column %d: the range ends before it begins",
                          (int)(r->at - r->text) + 1);
        }
    }
    if (!status && *r->at == '/') {
        status = read_step(r, &step);
        if (one) high = r->f->most;
    }
    for (int i = low; i <= high && !status; i += step) *bits |= UINT64_C(1) << i;
    return status;
}

static hd_status read_field(cron_reader *r, uint64_t *bits, bool *star) {
    *bits = 0;
    *star = *r->at == '*';
    for (;;) {
        hd_status status = read_range(r, bits);
        if (status || *r->at != ',') return status;
        r->at++;
    }
}

static const char *macro(const char *text) {
    static const char *const all[][2] = { { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },
                                          { "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
                                          { "@monthly", "0 0 1 * *" },  { "@yearly", "0 0 1 1 *" },
                                          { "@annually", "0 0 1 1 *" } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(text, all[i][0])) return all[i][1];
    return text;
}

static int64_t next_reading(const cron *c, int64_t from);

hd_status cron_parse(const char *text, cron *out, hd_error *error) {
    uint64_t bits[5];
    bool star[5];
    text = macro(text);
    cron_reader r = { text, text, fields, error };
    if (*text == '@')
        return refuse(&r, "cron: the words are @hourly, @daily, @midnight, @weekly, @monthly, "
                          "@yearly and @annually");
    for (int i = 0; i < 5; i++) {
        r.at += strspn(r.at, " \t");
        r.f = &fields[i];
        if (!*r.at) return refuse(&r, "cron: the %s is missing, there are five fields", r.f->what);
        hd_status status = read_field(&r, &bits[i], &star[i]);
        if (status) return status;
        if (*r.at && *r.at != ' ' && *r.at != '\t') return bad_value(&r);
    }
    r.at += strspn(r.at, " \t");
    if (*r.at)
        return refuse(&r, "cron, column %d: there are five fields", (int)(r.at - r.text) + 1);
    *out = (cron){ .minutes = bits[0],
                   .hours = (uint32_t)bits[1],
                   .days = (uint32_t)bits[2],
                   .months = (uint32_t)bits[3],
                   .weekdays = (uint32_t)((bits[4] | bits[4] >> 7) & 127),
                   .either_day = !star[2] && !star[4],
                   .by_reading = star[0] || star[1] };
    r.at = r.text;
    return next_reading(out, 0) == CRON_NEVER ? refuse(&r, "no date fits it") : HD_OK;
}

/* ---- the calendar */

static bool day_fits(const cron *c, int64_t days, int day) {
    bool by_day = c->days >> day & 1, by_week = c->weekdays >> (((days + 4) % 7 + 7) % 7) & 1;
    return c->either_day ? by_day || by_week : by_day && by_week;
}

/* The first minute of a day, from this one on, that fits; -1: there is none. */
static int minute_of_day(const cron *c, int from) {
    for (int h = from / 60, m = from % 60; h < 24; h++, m = 0) {
        uint64_t rest = c->hours >> h & 1 ? c->minutes >> m : 0;
        if (rest) return h * 60 + m + __builtin_ctzll(rest);
    }
    return -1;
}

/* The first reading of a clock, from this one on, that fits. Both are seconds as if the clock showed UTC. */
static int64_t next_reading(const cron *c, int64_t from) {
    int64_t minute = from / 60 + (from % 60 > 0), days = minute / 1440;
    if (minute % 1440 < 0) days--;
    int first = (int)(minute - days * 1440);
    for (int64_t last = days + DAYS_MAX; days <= last; first = 0) {
        int64_t year;
        int month, day;
        zone_date(days, &year, &month, &day);
        if (!(c->months >> month & 1)) {
            days = zone_days(month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1);
            continue;
        }
        int found = day_fits(c, days, day) ? minute_of_day(c, first) : -1;
        if (found >= 0) return (days * 1440 + found) * 60;
        days++;
    }
    return CRON_NEVER;
}

/* ---- times */

/* Clocks are put forward by this: times of a day that are left out come then. */
static bool is_made_up(const cron *c, const zone_span *s, const zone_span *next) {
    if (c->by_reading || next->offset <= s->offset) return false;
    return next_reading(c, s->to + s->offset) < s->to + next->offset;
}

int64_t cron_next(const cron *c, const zone *z, int64_t after) {
    zone_span s = zone_at(z, after), next;
    int64_t last = after + (int64_t)DAYS_MAX * 86400;
    for (int64_t from = after + 1; from <= last; from = s.to, s = next) {
        int64_t reading = from + s.offset;
        /* Clocks were put back: up to then they read what they had read before. */
        if (!c->by_reading && s.before > s.offset && reading < s.from + s.before)
            reading = s.from + s.before;
        reading = next_reading(c, reading);
        if (reading == CRON_NEVER) return CRON_NEVER;
        if (reading - s.offset < s.to) return reading - s.offset;
        next = zone_at(z, s.to);
        if (is_made_up(c, &s, &next)) return s.to;
    }
    return CRON_NEVER;
}
