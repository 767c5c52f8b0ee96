/* sqlite_readers.h -- who still reads the log, and what may be deleted from it.
 *
 * A process that follows a file has a row in `reader` with the last log row it has seen. Pruning
 * stops at the oldest of them; rows of processes that are gone are dropped. A process without a row
 * is served too: should it meet a gap, it reads its documents anew.
 *
 * All of these run inside a write transaction of the caller. */
#ifndef STORE_SQLITE_READERS_H
#define STORE_SQLITE_READERS_H

#include "store/sqlite_state.h"

/* Our row, with the position that our runtime has reached; and our session's verdicts. */
hd_status log_readers_put(writer *w);
hd_status log_readers_drop(writer *w);
/* Deletes log rows up to `checkpoint`, or as far as live readers allow, and notes the floor. */
hd_status log_readers_prune(writer *w, uint64_t checkpoint);

/* When a process started, in ticks since boot; 0 when the system does not say. With the pid it names
 * a process for good. */
uint64_t process_started(int64_t pid);

#endif
