/* timetable.h -- the times of one schedule: cron in a time zone, or an interval; since when, until when, how exact. */
#ifndef WORKFLOW_TIMETABLE_H
#define WORKFLOW_TIMETABLE_H

#include "workflow/cron.h"

#define TIMETABLE_NEVER UINT64_MAX

/* All times are milliseconds since 1970. */
typedef struct timetable {
    cron fields;
    const zone *zone;  /* borrowed; NULL: it is an interval */
    uint64_t every_ms; /* of an interval */
    uint64_t from_ms;  /* the first time of an interval; cron: none comes before */
    uint64_t until_ms; /* none comes then or later; 0: no end */
    uint64_t jitter_ms;
    uint64_t seed; /* of the jitter: each schedule has its own */
} timetable;

/* The first time behind this one; TIMETABLE_NEVER. */
uint64_t timetable_next(const timetable *t, uint64_t after_ms);
/* Which time to start now, where missed times are not made up for; `at_ms` is due. It was missed if a time that is
 * jitter_ms later, or more, is due too: then the last such time is started in its place. Times that come sooner than
 * that have turns of their own, so that none is lost where the jitter is longer than the interval. */
uint64_t timetable_last_due(const timetable *t, uint64_t at_ms, uint64_t now_ms);
/* When the time is acted on: later by the jitter, which is the same in every process. */
uint64_t timetable_due(const timetable *t, uint64_t at_ms);

#endif
