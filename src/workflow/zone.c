/* zone.c -- files of tzdata, the rules at their end, and fixed offsets. */
#include "workflow/zone.h"

#include "base/env.h"
#include "base/vec.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZONES_DIRECTORY "/usr/share/zoneinfo"
#define FILE_MAX        (1 << 20)
#define NAME_SIZE       128
#define DAY             86400
#define TRANSITIONS_MAX 100000

/* A day of a year, and a time of that day. */
typedef struct zone_rule {
    enum { RULE_WEEKDAY, RULE_DAY, RULE_DAY_WITHOUT_LEAP } kind;
    int month, week,
        day;      /* WEEKDAY: month 1 to 12, week 1 to 5 (5: the last), day 0 to 6; else the day */
    int32_t time; /* seconds; may be negative, and beyond a day */
} zone_rule;

typedef struct transition {
    int64_t at;
    int32_t offset; /* from then on */
} transition;

struct zone {
    const hd_env *env;
    VEC(transition) table;
    int32_t first;  /* offset before the table */
    bool has_rules; /* summer time goes on behind the table */
    int32_t standard, summer;
    zone_rule begin, end; /* of summer time */
};

/* ---- dates */

/* Years are counted from March, so that the day that not every year has is the last. */
int64_t zone_days(int64_t year, int month, int day) {
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400, in_era = y - era * 400;
    int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

void zone_date(int64_t days, int64_t *year, int *month, int *day) {
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, in_era = z - era * 146097;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100), m = (5 * in_year + 2) / 153;
    *day = (int)(in_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

static int64_t floor_days(int64_t seconds) {
    return (seconds >= 0 ? seconds : seconds - DAY + 1) / DAY;
}

/* ---- rules, as POSIX writes them: "CET-1CEST,M3.5.0,M10.5.0/3" */

static bool read_number(const char **at, int most, int *out) {
    int n = 0, digits = 0;
    for (; isdigit((unsigned char)**at) && digits < 4; digits++, (*at)++) n = n * 10 + **at - '0';
    *out = n;
    return digits > 0 && n <= most;
}

/* "-1", "5:30", "+2:00:00". */
static bool read_time(const char **at, int32_t *out) {
    int sign = **at == '-' ? -1 : 1, hours, minutes = 0, seconds = 0;
    *at += **at == '-' || **at == '+';
    if (!read_number(at, 167, &hours)) return false;
    if (**at == ':' && ((*at)++, !read_number(at, 59, &minutes))) return false;
    if (**at == ':' && ((*at)++, !read_number(at, 59, &seconds))) return false;
    *out = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool read_name(const char **at) {
    const char *from = *at;
    if (**at == '<') {
        while (**at && **at != '>') (*at)++;
        if (!**at) return false;
        (*at)++;
    } else {
        while (isalpha((unsigned char)**at)) (*at)++;
    }
    return *at - from >= 3;
}

static bool read_rule(const char **at, zone_rule *r) {
    *r = (zone_rule){ .kind = RULE_DAY, .time = 7200 };
    if (*(*at)++ != ',') return false;
    if (**at == 'M') {
        r->kind = RULE_WEEKDAY;
        (*at)++;
        if (!read_number(at, 12, &r->month) || *(*at)++ != '.' || !read_number(at, 5, &r->week) ||
            *(*at)++ != '.' || !read_number(at, 6, &r->day) || !r->month || !r->week)
            return false;
    } else {
        if (**at == 'J') r->kind = RULE_DAY_WITHOUT_LEAP, (*at)++;
        if (!read_number(at, 365, &r->day)) return false;
    }
    return **at != '/' || ((*at)++, read_time(at, &r->time));
}

/* Offsets are written as how far UTC is ahead. */
static bool read_rules(zone *z, const char *text) {
    int32_t west;
    if (!read_name(&text) || !read_time(&text, &west)) return false;
    z->standard = -west;
    if (!*text) return true;
    z->summer = z->standard + 3600;
    if (!read_name(&text)) return false;
    if (*text && *text != ',') {
        if (!read_time(&text, &west)) return false;
        z->summer = -west;
    }
    z->has_rules = true;
    return read_rule(&text, &z->begin) && read_rule(&text, &z->end) && !*text;
}

static bool is_leap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

/* When the clocks, which are `offset` ahead, read what the rule says. */
static int64_t rule_in(const zone_rule *r, int64_t year, int32_t offset) {
    int64_t day;
    if (r->kind == RULE_WEEKDAY) {
        int64_t first = zone_days(year, r->month, 1),
                next = zone_days(r->month == 12 ? year + 1 : year,
                                 r->month == 12 ? 1 : r->month + 1, 1);
        int64_t weekday = ((first + 4) % 7 + 7) % 7;
        day = first + (r->day - weekday + 7) % 7 + (r->week - 1) * 7;
        if (day >= next) day -= 7;
    } else {
        bool later = r->kind == RULE_DAY_WITHOUT_LEAP;
        day = zone_days(year, 1, 1) + r->day - later + (later && is_leap(year) && r->day >= 60);
    }
    return day * DAY + r->time - offset;
}

static void add_year(const zone *z, int64_t year, transition out[2]) {
    transition begin = { rule_in(&z->begin, year, z->standard), z->summer },
               end = { rule_in(&z->end, year, z->summer), z->standard };
    out[0] = begin.at < end.at ? begin : end;
    out[1] = begin.at < end.at ? end : begin;
}

/* Among the transitions of the years around. */
static zone_span span_by_rules(const zone *z, int64_t utc) {
    transition all[8];
    int64_t year;
    int month, day, i = 1;
    zone_date(floor_days(utc + z->standard), &year, &month, &day);
    for (int k = 0; k < 4; k++) add_year(z, year - 2 + k, &all[2 * k]);
    while (i < 7 && all[i].at <= utc) i++;
    return (zone_span){ all[i - 1].at, all[i].at, all[i - 1].offset,
                        i > 1 ? all[i - 2].offset : all[0].offset };
}

/* ---- spans */

static zone_span span_behind(const zone *z, int64_t utc) {
    uint32_t n = z->table.count;
    zone_span s = { INT64_MIN, INT64_MAX, n ? vec_last(&z->table).offset : z->first, z->first };
    if (z->has_rules) s = span_by_rules(z, utc);
    if (!n || s.from > vec_last(&z->table).at) return s;
    s.from = vec_last(&z->table).at;
    s.offset = vec_last(&z->table).offset;
    s.before = n > 1 ? z->table.items[n - 2].offset : z->first;
    return s;
}

zone_span zone_at(const zone *z, int64_t utc) {
    uint32_t low = 0, high = z->table.count;
    while (low < high) { /* the first transition behind utc */
        uint32_t middle = (low + high) / 2;
        if (z->table.items[middle].at <= utc) low = middle + 1;
        else high = middle;
    }
    if (low == z->table.count) return span_behind(z, utc);
    int64_t to = z->table.items[low].at;
    if (!low) return (zone_span){ INT64_MIN, to, z->first, z->first };
    const transition *here = &z->table.items[low - 1];
    return (zone_span){ here->at, to, here->offset,
                        low > 1 ? z->table.items[low - 2].offset : z->first };
}

/* ---- files */

typedef struct header {
    char version;
    uint32_t utc_count, standard_count, leap_count, time_count, type_count, char_count;
} header;

#define HEADER_SIZE 44

static uint32_t big32(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}
static int64_t big64(const uint8_t *b) {
    return (int64_t)((uint64_t)big32(b) << 32 | big32(b + 4));
}

static bool read_header(const uint8_t *b, size_t size, header *h) {
    if (size < HEADER_SIZE || memcmp(b, "TZif", 4) != 0) return false;
    *h = (header){ (char)b[4],    big32(b + 20), big32(b + 24), big32(b + 28),
                   big32(b + 32), big32(b + 36), big32(b + 40) };
    return h->time_count <= TRANSITIONS_MAX && h->type_count && h->type_count <= 256 &&
           h->char_count <= 10000 && h->leap_count <= 10000 && h->utc_count <= 256 &&
           h->standard_count <= 256;
}

static size_t body_size(const header *h, size_t time_size) {
    return h->time_count * (time_size + 1) + h->type_count * 6 + h->char_count +
           h->leap_count * (time_size + 4) + h->standard_count + h->utc_count;
}

static hd_status read_table(zone *z, const header *h, const uint8_t *b, size_t time_size) {
    const uint8_t *kinds = b + h->time_count * time_size, *types = kinds + h->time_count;
    z->first = (int32_t)big32(types);
    if (!vec_room(z->env, &z->table, h->time_count)) return HD_NOMEM;
    for (uint32_t i = 0; i < h->time_count; i++) {
        if (kinds[i] >= h->type_count) return HD_CORRUPT;
        transition t = { time_size == 8 ? big64(b + i * 8) : (int32_t)big32(b + i * 4),
                         (int32_t)big32(types + kinds[i] * 6) };
        if (t.offset < -2 * DAY || t.offset > 2 * DAY) return HD_CORRUPT;
        if (i && t.at <= vec_last(&z->table).at) return HD_CORRUPT;
        (void)vec_push(z->env, &z->table, t);
    }
    return z->first < -2 * DAY || z->first > 2 * DAY ? HD_CORRUPT : HD_OK;
}

/* "\n<rules>\n" */
static hd_status read_footer(zone *z, const uint8_t *b, size_t size) {
    char text[100];
    const uint8_t *end = size > 1 ? memchr(b + 1, '\n', size - 1) : NULL;
    if (!end || b[0] != '\n' || (size_t)(end - b) > sizeof text) return HD_CORRUPT;
    size_t length = (size_t)(end - b) - 1;
    memcpy(text, b + 1, length);
    text[length] = 0;
    if (!length) return HD_OK;
    if (!read_rules(z, text)) return HD_CORRUPT;
    if (!z->table.count) z->first = z->standard;
    return HD_OK;
}

/* A second block with longer numbers follows the first in every file since 2005. */
static hd_status read_file(zone *z, const uint8_t *b, size_t size) {
    header h;
    if (!read_header(b, size, &h)) return HD_CORRUPT;
    size_t body = HEADER_SIZE + body_size(&h, 4);
    if (size < body) return HD_CORRUPT;
    if (h.version < '2') return read_table(z, &h, b + HEADER_SIZE, 4);
    b += body;
    size -= body;
    if (!read_header(b, size, &h)) return HD_CORRUPT;
    body = HEADER_SIZE + body_size(&h, 8);
    if (size < body) return HD_CORRUPT;
    hd_status status = read_table(z, &h, b + HEADER_SIZE, 8);
    return status ? status : read_footer(z, b + body, size - body);
}

hd_status zone_parse(const hd_env *env, const uint8_t *bytes, size_t size, zone **out) {
    zone *z = env_new0(env, sizeof *z);
    *out = NULL;
    if (!z) return HD_NOMEM;
    z->env = env;
    hd_status status = read_file(z, bytes, size);
    if (status) return zone_close(z), status;
    *out = z;
    return HD_OK;
}

void zone_close(zone *z) {
    if (!z) return;
    vec_fini(z->env, &z->table);
    env_free(z->env, z, sizeof *z);
}

/* ---- names */

/* "Z", "UTC", "+02", "-0530", "+02:00". */
static bool fixed_offset(const char *name, int32_t *out) {
    int digits[4] = { 0 }, count = 0;
    *out = 0;
    if (!strcmp(name, "UTC") || !strcmp(name, "Z")) return true;
    if (*name != '+' && *name != '-') return false;
    for (const char *c = name + 1; *c; c++) {
        if (*c == ':' && count == 2 && c[1]) continue;
        if (!isdigit((unsigned char)*c) || count == 4) return false;
        digits[count++] = *c - '0';
    }
    int hours = digits[0] * 10 + digits[1], minutes = digits[2] * 10 + digits[3];
    if ((count != 2 && count != 4) || hours > 23 || minutes > 59) return false;
    *out = (hours * 3600 + minutes * 60) * (*name == '-' ? -1 : 1);
    return true;
}

/* Nothing but a file below the directory. */
static bool is_name(const char *name) {
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-+/", *c)) return false;
    return *name && *name != '/' && strlen(name) < NAME_SIZE;
}

static hd_status unknown(const char *name, hd_error *error) {
    env_error(error, HD_NOT_FOUND,
              "no time zone \"%.60s\" (say UTC, +02:00, or a name like Europe/Berlin)", name);
    return HD_NOT_FOUND;
}

static hd_status read_whole(const hd_env *env, FILE *f, zone **out) {
    uint8_t *bytes = env_new(env, FILE_MAX);
    if (!bytes) return HD_NOMEM;
    size_t size = fread(bytes, 1, FILE_MAX, f);
    hd_status status = ferror(f) ? HD_IO : zone_parse(env, bytes, size, out);
    env_free(env, bytes, FILE_MAX);
    return status;
}

hd_status zone_open(const hd_env *env, const char *name, zone **out, hd_error *error) {
    char path[NAME_SIZE + 300];
    int32_t offset;
    const char *directory = getenv("TZDIR");
    *out = NULL;
    if (fixed_offset(name, &offset)) {
        zone *z = env_new0(env, sizeof *z);
        if (!z) return HD_NOMEM;
        z->env = env;
        z->first = offset;
        *out = z;
        return HD_OK;
    }
    if (!is_name(name)) return unknown(name, error);
    snprintf(path, sizeof path, "%.280s/%s", directory ? directory : ZONES_DIRECTORY, name);
    FILE *f = fopen(path, "rbe");
    if (!f) return unknown(name, error);
    hd_status status = read_whole(env, f, out);
    fclose(f);
    if (status && status != HD_NOMEM) env_error(error, status, "%.200s is no time zone", path);
    return status;
}
