/* zone.h -- time zones: how far clocks are ahead of UTC, and from when to when.
 *
 * Zones by name ("Europe/Berlin") come from the system's tzdata; "UTC", "+02:00", "-0530" need no file. The C
 * library's own functions know one zone for the whole process, so that the files are read here (RFC 8536).
 *
 * Cost: zone_at is a binary search; behind the last transition of the file, the arithmetic of one year's rules. */
#ifndef WORKFLOW_ZONE_H
#define WORKFLOW_ZONE_H

#include <heddle/base.h>

/* A stretch of time in which the offset does not change. Seconds since 1970, UTC. */
typedef struct zone_span {
    int64_t from, to; /* to: the first second that is not in it; INT64_MIN, INT64_MAX: no end */
    int32_t offset;   /* seconds ahead of UTC */
    int32_t before;   /* the offset before `from` */
} zone_span;

typedef struct zone zone;

/* HD_NOT_FOUND, with the error: the system knows no such zone; HD_CORRUPT: its file is none; HD_NOMEM. */
hd_status zone_open(const hd_env *env, const char *name, zone **out, hd_error *error);
/* The content of a file. */
hd_status zone_parse(const hd_env *env, const uint8_t *bytes, size_t size, zone **out);
void zone_close(zone *z); /* NULL is accepted */
zone_span zone_at(const zone *z, int64_t utc);

/* Days since 1970-01-01 of a date, and back. Any year; months from 1. */
int64_t zone_days(int64_t year, int month, int day);
void zone_date(int64_t days, int64_t *year, int *month, int *day);

#endif
