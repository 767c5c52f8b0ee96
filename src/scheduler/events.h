/* events.h -- events, as the pass and the facade see them; events_state.h has what is behind it. */
#ifndef SCHEDULER_EVENTS_H
#define SCHEDULER_EVENTS_H

#include "scheduler/events_state.h"

/* The runtime is about to close: events whose handling has not begun are told so. */
void events_close(scheduler *s);
void events_fini(scheduler *s);

/* First in a pass: one event per lane, at most. */
void events_head_step(scheduler *s);
/* Whether a pass would get a head any further. */
bool events_have_work(const scheduler *s);
/* Whether somebody who waits for idle, or for all verdicts, has to wait for events. */
bool events_hold_idle(const scheduler *s);
bool events_are_unsettled(const scheduler *s);
/* When to look again; UINT64_MAX: never. */
uint64_t events_next(const scheduler *s);
/* Commits should be sent now. */
bool events_want_sending(scheduler *s);
/* A document arrived, or could not be loaded. */
void events_arrived(scheduler *s, place_id doc, hd_status status);
/* A log line from a handler's body, or its preflight, says whose it is. */
void events_sign(const scheduler *s, const hd_tx *tx, hd_log_entry *entry);
/* Something changed. */
void events_noticed(scheduler *s);
/* There may be memory again for what came when there was none. */
void events_feed(scheduler *s);

#endif
