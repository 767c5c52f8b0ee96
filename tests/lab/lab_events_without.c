/* lab_events_without.c -- leaving a part of events out, to see that it is missed. */
#include "scheduler/events/events.h"
#include "scheduler/scheduler.h"

#include "lab_events.h"

unsigned lab_events_without;

bool lab_event_sabotage(lab *l, unsigned what) {
#ifndef NDEBUG
    scheduler *s = scheduler_of(lab_runtime_now(l));
    events_of(s)->sabotage = what;
    events_of(s)->bare = what & 4;
    return true;
#else
    return (void)l, (void)what, false;
#endif
}
