/* delay.h -- posted events that are not due yet, and periodic events. */
#ifndef SCHEDULER_EVENTS_DELAY_H
#define SCHEDULER_EVENTS_DELAY_H

#include "scheduler/events/state.h"

void delays_init(delays *d, const hd_env *env);
void delays_fini(scheduler *s);

/* HD_USAGE: these options make no sense together. */
hd_status delay_check(scheduler *s, const hd_send_options *options);
/* When an event that is posted now with these options is due, in ms of the wall clock; 0: at once. */
uint64_t delay_of(const hd_send_options *options, uint64_t now_ms);
/* The record of a posted event with the time at which it is due, and its period. */
hd_value delay_describe(hd_pool *pool, hd_value record, const hd_send_options *options,
                        uint64_t due);

/* What the record of a posted event says: when it is due, and how many periods it stands for beside its own. */
uint64_t delay_due(hd_value record);
uint64_t delay_missed(hd_value record);
bool delay_is_periodic(hd_value record);

/* The document of an event with a time, or of a periodic event, waits in the heap. HD_NOMEM. */
hd_status delays_hold(scheduler *s, place_id doc, hd_value record);
/* The document is gone, or has changed. */
void delays_forget(scheduler *s, place_id doc);
/* Takes up the events that have become due, and fires periodic events. */
void delays_step(scheduler *s);
/* Whether the next step has something to do; and when, on the monotonic clock; UINT64_MAX: never. */
bool delays_are_due(const scheduler *s);
uint64_t delays_next(const scheduler *s);
void delays_check(const scheduler *s);

#endif
