/* presence.h -- saying that our session lives, and hearing which others do, where runtimes are on several machines.
 *
 * Once a second the writer sends a *beat*: one statement says until when our session lives, by the clock of the
 * database, asks the same of the sessions that our runtime has named, and looks for rows. */
#ifndef STORE_LOG_PRESENCE_H
#define STORE_LOG_PRESENCE_H

#include "store/log/state.h"

/* Sends a beat. From the first one that succeeds on they are due once a second. */
hd_status presence_beat(writer *w);
void presence_beat_if_due(writer *w);
/* In how many ms the next one is due; -1: never. */
int presence_beat_in_ms(const writer *w);
/* Says that our session is gone; best effort. */
void presence_end(writer *w);

/* ---- On the runtime's thread */

/* Until when others can see that we live, on our own clock; 0: we have not begun to say so (COMMAND_STAY). */
uint64_t presence_until(writer *w);
/* Until when another session lives, on our clock, as the last beat has told; 0: it was not noted. Sessions that are
 * noted are asked for by each beat, as long as they are asked for here. */
uint64_t presence_of(writer *w, const char *session);
void presence_note(writer *w, const char *session, uint64_t until_ns);

#endif
