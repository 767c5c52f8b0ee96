/* schedule.h -- workflows that are started by the clock.
 *
 * A schedule is the document "workflow-schedule/<name>": what is to be started, when, and how far it has come
 * ("next"). The active engine has a timer for each. When it fires, one transaction writes the start of an instance and
 * the time that follows: whatever happens, a time is started once. Any process may write, pause, trigger or remove a
 * schedule; the engine's transaction has read the document, so that it is refused, and made again, if that comes in
 * between. */
#ifndef WORKFLOW_SCHEDULE_H
#define WORKFLOW_SCHEDULE_H

#include "workflow/engine.h"
#include "workflow/timetable.h"

#define SCHEDULE_NAME_MAX 60 /* bytes: keys of instances are made of it */

/* What a schedule's document says. */
typedef struct schedule_form {
    timetable times;
    hd_overlap overlap;
    hd_catch_up catch_up;
    uint64_t window_ms; /* 0: a time may be late by any time */
    bool paused;
    uint64_t next_ms;    /* TIMETABLE_NEVER: none is left */
    uint64_t waiting_ms; /* a time that waits for the instance before it; 0: none */
    uint64_t trigger_ms; /* it is to be started out of turn; 0: no */
    const char *running; /* the last instance; "": none. As long as the document's value */
} schedule_form;

/* Reads a document. HD_SYNTAX, HD_NOT_FOUND, HD_USAGE with the error: it cannot be used; HD_NOMEM. */
hd_status schedule_read(hd_engine *e, const char *name, hd_value doc, schedule_form *out,
                        hd_error *error);
bool schedule_name_is_good(const char *name);
/* Whether the store may have a schedule of this name, which need not be one that is good now. */
bool schedule_may_exist(const char *name);
/* Whether there is such an instance, and it is not over. One that cannot be read counts as running. */
bool schedule_read_running(hd_engine *e, const char *id);

#endif
