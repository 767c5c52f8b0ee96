/* checkpoint.h -- folding the log into head rows, and letting go of what is folded.
 *
 * A checkpoint is made in slices (fold.h), each a transaction of its own: between two of them
 * commits have their turn, of this runtime and of other processes. It is complete when it has reached
 * the row `fold_to`, or the end of the log. */
#ifndef STORE_LOG_CHECKPOINT_H
#define STORE_LOG_CHECKPOINT_H

#include "store/log/state.h"

/* One slice. `fold_to` is 0 afterwards if that was the last, or if it failed: then the caller
 * begins again. The last one begins to prune (prune.h) when enough has gathered. */
hd_status writer_fold(writer *w);
/* Writes large documents whole that have patches behind them, some at a time. */
hd_status writer_unpatch(writer *w, int64_t *after, bool *more);
/* Makes this process known as a reader, so that no process prunes rows that it has not seen. */
hd_status writer_register(writer *w);
/* Says how far this process has come, without waiting for the disk. */
hd_status writer_move_reader(writer *w);
/* Takes our rows out of `reader` and `session`; best effort. */
void writer_unregister(writer *w);

#endif
