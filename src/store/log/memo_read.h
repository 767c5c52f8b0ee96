/* memo_read.h -- the memos of a store with a log: those of the checkpoint with those of the log's tail over them, as of
 * the position. See authority_ops. */
#ifndef STORE_LOG_MEMO_READ_H
#define STORE_LOG_MEMO_READ_H

#include "store/log/client.h"

hd_status client_memos(client *c, const char *piece, memo_fn fn, void *ctx);
hd_status client_memo_pieces(client *c, piece_fn fn, void *ctx);

#endif
