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
/* Given a time that is due, the one to start if times that were missed are not made up for: the last one that is due,
 * too. A time was missed if the next one came when it could not be delayed any more. So where the jitter is longer than
 * the interval, each time is started, in its turn. */
uint64_t timetable_last_due(const timetable *t, uint64_t at_ms, uint64_t now_ms);
/* When the time is acted on: later by the jitter, which is the same in every process. */
uint64_t timetable_due(const timetable *t, uint64_t at_ms);

#endif
