/* prune.h -- deleting log rows that are no longer needed, a slice at a time.
 *
 * A row may go when it is folded into the heads and every reader that lives has delivered it. A reader
 * that lags further behind than LAG_MAX is overtaken: it meets a gap and reads its documents anew from
 * the heads, which costs it more than the rows would. So a program that hangs does not make the file grow without
 * bound.
 *
 * A slice reads the rows that are to go, without a lock, since rows never change; then it deletes them
 * in one short transaction, which does not wait for the disk. Commits have their turn between slices. */
#ifndef STORE_LOG_PRUNE_H
#define STORE_LOG_PRUNE_H

#include "store/log/state.h"

#define LAG_MAX     (UINT64_C(16) << 20)  /* bytes of log text that are kept for readers, at most */
#define PRUNE_BYTES (UINT64_C(512) << 10) /* of log text in a slice */
#define PRUNE_ROWS  UINT32_C(512)

/* Begins: `prune_to` is the last row that may go; 0 if there is none. */
hd_status prune_begin(writer *w);
/* One slice; `prune_to` is 0 afterwards if that was the last, or if it failed. */
hd_status prune_slice(writer *w);

#endif
