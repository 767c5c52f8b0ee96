/* changes.h -- which documents have changed in a space after a seq: see authority_ops.changes. */
#ifndef STORE_LOG_CHANGES_H
#define STORE_LOG_CHANGES_H

#include "store/log/client.h"

hd_status client_changes(client *c, struct key *space, uint64_t seq, change_fn fn, void *ctx);

#endif
