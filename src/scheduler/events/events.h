/* events.h -- events, as the pass and the facade see them; state.h has what is behind it. */
#ifndef SCHEDULER_EVENTS_H
#define SCHEDULER_EVENTS_H

#include "scheduler/events/state.h"

/* The runtime is about to close: events whose handling has not begun end with HD_CLOSED. */
void events_close(scheduler *s);
void events_fini(scheduler *s);

/* The first part of a pass: handles at most one event of each lane. */
void events_head_step(scheduler *s);
/* Whether the step of another pass would do something. */
bool events_have_work(const scheduler *s);
/* Whether events keep the runtime from being idle; and whether they keep a sync waiting. */
bool events_hold_idle(const scheduler *s);
bool events_are_unsettled(const scheduler *s);
/* When the first lane or message that waits for a time is due; UINT64_MAX: none waits. */
uint64_t events_next(const scheduler *s);
/* True, once, after EVENTS_BURST handlings: the pump sends their commits before it goes on. */
bool events_take_burst(scheduler *s);
/* Puts the handler's name, piece and space into a log line from its body or preflight. */
void events_sign(const scheduler *s, const hd_tx *tx, hd_log_entry *entry);
/* Looks in the store for events and messages that arrived while there was no memory to take them up. */
void events_feed(scheduler *s);

/* Asserts what must hold of lanes, events and messages between passes. Nothing in release builds. */
void events_check(const scheduler *s);

#endif
