/* readers.h -- which runtimes still read the log, and how far each has come.
 *
 * A runtime that follows a file has a row in `reader` with the last log row it has delivered. It
 * brings the row up to date when it commits or folds anyway, and otherwise at most once a second, in
 * a transaction that does not wait for the disk. Pruning (prune.h) stops at the oldest of them,
 * within limits; rows of processes that are gone are dropped. A runtime without a row is served too:
 * should it meet a gap, it reads its documents anew.
 *
 * All of these run inside a transaction of the caller. */
#ifndef STORE_LOG_READERS_H
#define STORE_LOG_READERS_H

#include "store/log/state.h"

/* Our row, with the position that our runtime has reached; and our session's verdicts. */
hd_status log_readers_put(writer *w);
/* The position alone. */
hd_status log_readers_move(writer *w);
hd_status log_readers_drop(writer *w);

/* Whether there are rows of processes that are gone; and deleting them. */
hd_status log_readers_has_dead(writer *w, bool *out);
hd_status log_readers_drop_dead(writer *w);
/* Lowers *floor to the lowest position of our runtime and of all readers that live. */
hd_status log_readers_oldest(writer *w, uint64_t *floor);

#endif
