/* preflight.h -- before a handler runs: what will it read, and is that up to date?
 *
 * The *closure* is what a read-only transaction finds when it reads the handler's declared inputs
 * through their schemas, through cell boundaries, and through the links in the payload. It is read
 * anew for each event: a guess here would weaken what the user sees (I4).
 *
 * The *consistency gate* asks whether an invalid node stands upstream of the closure. Two walks look
 * for the answer, a step each in turn: one up from the closure through the writers of what is read,
 * one down from the invalid nodes through the readers of what they write. Whichever comes to its end
 * first knows. So the cost is twice that of the cheaper one: nothing where all is clean, however
 * large the graph; a few steps for one invalid node beside a hub with a hundred thousand writers; and
 * a few steps for a closure of a few cells, however many nodes are invalid elsewhere.
 *
 * Invalid nodes that were found are demanded, for this pass, and the event waits for them. */
#ifndef SCHEDULER_PREFLIGHT_H
#define SCHEDULER_PREFLIGHT_H

#include "scheduler/events/state.h"

/* HD_OK: the handler may run. HD_PENDING: e->waits says for what. Else: it cannot be found out what
 * it reads; the message is in s->message. */
hd_status preflight_event(scheduler *s, event *e);

/* Reads of a body that were not in its closure. */
uint32_t preflight_outside(scheduler *s, const hd_tx *tx);

void preflight_fini(scheduler *s);

#endif
