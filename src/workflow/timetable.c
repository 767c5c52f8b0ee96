/* timetable.c -- what follows, what was last, when it is due. */
#include "workflow/timetable.h"

#include "base/hash.h"
#include <assert.h>

static uint64_t next_interval(const timetable *t, uint64_t after) {
    if (after < t->from_ms) return t->from_ms;
    uint64_t passed = (after - t->from_ms) / t->every_ms + 1;
    return passed > (UINT64_MAX / 2 - t->from_ms) / t->every_ms ? TIMETABLE_NEVER
                                                                : t->from_ms + passed * t->every_ms;
}

static uint64_t next_cron(const timetable *t, uint64_t after) {
    if (t->from_ms && after < t->from_ms) after = t->from_ms - 1;
    if (after > UINT64_C(9000000000000000)) return TIMETABLE_NEVER;
    int64_t next = cron_next(&t->fields, t->zone, (int64_t)(after / 1000));
    return next == CRON_NEVER ? TIMETABLE_NEVER : (uint64_t)next * 1000;
}

uint64_t timetable_next(const timetable *t, uint64_t after) {
    uint64_t next = t->zone ? next_cron(t, after) : next_interval(t, after);
    return t->until_ms && next >= t->until_ms ? TIMETABLE_NEVER : next;
}

/* The last time that is not behind `now`, given one that is not either. Times are looked for in ever longer stretches
 * before now, so that years of them need not be walked through. */
static uint64_t last_time(const timetable *t, uint64_t at, uint64_t now) {
    assert(at <= now);
    uint64_t found = at;
    for (uint64_t back = 3600000; back < now - at; back *= 24) {
        uint64_t later = timetable_next(t, now - back);
        if (later > now) continue;
        found = later;
        break;
    }
    for (uint64_t next = found; next <= now; next = timetable_next(t, next)) found = next;
    return found;
}

uint64_t timetable_due(const timetable *t, uint64_t at) {
    if (!t->jitter_ms || at == TIMETABLE_NEVER) return at;
    return at + hash_bytes(&at, sizeof at, t->seed) % t->jitter_ms;
}

/* Every time up to `sure` is due; those behind it are looked at one by one. */
uint64_t timetable_last_due(const timetable *t, uint64_t at, uint64_t now) {
    uint64_t missed = at + t->jitter_ms, sure = now > t->jitter_ms ? now - t->jitter_ms : 0;
    assert(timetable_due(t, at) <= now);
    uint64_t found = sure > missed ? last_time(t, at, sure) : at;
    if (found < missed) found = at;
    uint64_t next = timetable_next(t, found > at ? found : missed > at ? missed - 1 : at);
    for (; next <= now; next = timetable_next(t, next))
        if (timetable_due(t, next) <= now) found = next;
    return found;
}
