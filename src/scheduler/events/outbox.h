/* outbox.h -- side effects outside of the store, after the commit that decided on them.
 *
 * A message is a document of kind "outbox", written in the handler's own commit: it exists exactly if
 * the handling does. Once that is confirmed it is handed to its channel, and removed when the channel
 * says that it is done. A crash in between leaves it there, for the next program that opens the
 * channel: at least once, always under the same key. */
#ifndef SCHEDULER_OUTBOX_H
#define SCHEDULER_OUTBOX_H

#include "scheduler/events/state.h"

hd_status outbox_record(scheduler *s, hd_tx *tx, const char *channel, hd_value message);
/* From now on the channel's messages wait, in the store, until it is opened again. */
void outbox_close_channel(scheduler *s, const char *space, const char *channel);
hd_status outbox_open(scheduler *s, const char *space, const char *channel, hd_channel_fn fn,
                      void *ctx);
/* Delivers what is due. */
void outbox_step(scheduler *s);
bool outbox_has_work(const scheduler *s);
/* When the next one is due; UINT64_MAX: never. */
uint64_t outbox_next(const scheduler *s);
/* A document arrived, or could not be loaded: it may be the record of a message. */
void outbox_arrived(scheduler *s, place_id doc, hd_status status);
/* Another program has written or removed the record of a message. */
void outbox_integrated(scheduler *s, place_id doc);
/* Looks for records that there was no memory for. HD_NOMEM, or why a space cannot be listed. */
hd_status outbox_feed(scheduler *s);
void outbox_fini(scheduler *s);
/* Asserts what must hold of messages between passes. Nothing in release builds. */
void outbox_check(const scheduler *s);

#endif
