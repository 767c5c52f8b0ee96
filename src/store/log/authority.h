/* authority.h -- the SQLite authority: one file, shared by any number of runtimes and processes.
 *
 * The log is the truth, head rows are a checkpointed cache of it (docs/FORMAT.md). Each runtime has
 * a writer thread with a connection of its own (writer.h) and, on its own thread, a reading
 * connection (client.h). The environment's alloc and log are called from both threads. */
#ifndef STORE_LOG_AUTHORITY_H
#define STORE_LOG_AUTHORITY_H

#include "store/authority.h"

/* HD_NOT_HEDDLE, HD_NEWER, HD_CORRUPT, HD_READ_ONLY, HD_NOT_FOUND, HD_IO, HD_BUSY, HD_NOMEM; `error`
 * says what to do. The file is then untouched. The replica must be initialised; it is not called
 * before the first poll. hd_store_check (heddle/store.h) is in check.c. */
hd_status sqlite_authority_open(const char *file, const hd_options *options, struct replica *r,
                                authority **out, hd_error *error);

/* Whether the writer has decided everything that was handed to it; verdicts may still wait for a
 * poll. For tests, which hold answers back. */
bool sqlite_authority_decided(const authority *a);
/* What its checkpoints have done so far; for tests. */
struct fold_counts sqlite_authority_folds(const authority *a);

#endif
