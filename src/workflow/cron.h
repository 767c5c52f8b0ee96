/* cron.h -- five fields that say when: "30 2 * * 1-5".
 *
 * Minute, hour, day of the month, month, day of the week (0 and 7 are Sunday); lists, ranges, steps, names of months
 * and days; @hourly, @daily, @weekly, @monthly, @yearly. Where both days are given, either will do.
 *
 * When clocks are changed: a schedule whose minute or hour is '*' follows what clocks read, so that a reading that
 * comes twice counts twice, and one that is left out does not count. Any other means certain times of a day: each
 * counts once, at its first reading; one that is left out counts at the moment at which the clocks are put forward. */
#ifndef WORKFLOW_CRON_H
#define WORKFLOW_CRON_H

#include "workflow/zone.h"

typedef struct cron {
    uint64_t minutes; /* bits */
    uint32_t hours, days, months;
    uint32_t weekdays; /* bit 0: Sunday */
    bool either_day;   /* day of the month or day of the week */
    bool by_reading;   /* its minute or hour is '*' */
} cron;

#define CRON_NEVER INT64_MAX

/* HD_SYNTAX with the column; also where no date fits (February 30). */
hd_status cron_parse(const char *text, cron *out, hd_error *error);
/* The first time after this one, in seconds since 1970. CRON_NEVER: within the next twelve years there is none. */
int64_t cron_next(const cron *c, const zone *z, int64_t after);

#endif
