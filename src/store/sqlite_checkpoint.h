/* sqlite_checkpoint.h -- folding the log into head rows, and letting go of what is folded. */
#ifndef STORE_SQLITE_CHECKPOINT_H
#define STORE_SQLITE_CHECKPOINT_H

#include "store/sqlite_state.h"

/* Folds the log's tail into head rows, in one transaction of its own. A large document that changed
 * little gets a patch instead, unless `full`. Prunes when enough has gathered. */
hd_status writer_checkpoint(writer *w, bool full);
/* Deletes the log rows that nobody needs: below the checkpoint and every live reader. */
hd_status writer_prune(writer *w);
/* Makes this process known as a reader, so that nobody prunes what it has not seen. */
hd_status writer_register(writer *w);
/* Takes our rows out of `reader` and `session`; best effort. */
void writer_unregister(writer *w);

#endif
