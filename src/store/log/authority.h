/* authority.h -- a store with a log as an authority: shared by any number of runtimes and processes.
 *
 * The log is the truth, head rows are a checkpointed cache of it (docs/FORMAT.md). Each runtime has a
 * writer thread with a connection of its own (writer.h) and, on its own thread, a reading connection
 * (client.h). How rows are kept is the backend's business (backend.h). The environment's alloc and log
 * are called from both threads. */
#ifndef STORE_LOG_AUTHORITY_H
#define STORE_LOG_AUTHORITY_H

#include "store/authority.h"

struct log_backend;

/* Opens `name` with a backend: the statuses of log_backend.open, and what reading the store gives; `error`
 * says what to do. The replica must be initialised; it is not called before the first poll. */
hd_status log_authority_open(const struct log_backend *backend, const char *name,
                             const hd_options *options, struct replica *r, authority **out,
                             hd_error *error);

/* Whether the writer has decided everything that was handed to it; verdicts may still wait for a
 * poll. For tests, which hold answers back. */
bool log_authority_decided(const authority *a);
/* The next poll looks for rows of others, although nothing was heard of them; for tests. */
void log_authority_look(authority *a);
/* What its checkpoints have done so far; for tests. */
struct fold_counts log_authority_folds(const authority *a);

#endif
