/* resume.h -- what a runtime asks of a file when it resumes: the rows of a piece, and which
 * documents have changed since. See basis_ops. */
#ifndef STORE_LOG_RESUME_H
#define STORE_LOG_RESUME_H

#include "store/log/client.h"

/* The file's rows with those of the log's tail over them, as of the position. */
hd_status client_rows(client *c, const char *piece, basis_row_fn fn, void *ctx);
hd_status client_pieces(client *c, basis_piece_fn fn, void *ctx);
/* From the indexes: head rows by seq, and the names in the tail. Where the tombstones of deleted
 * documents have been pruned, each document that has a place is looked up instead. */
hd_status client_changes(client *c, struct key *space, uint64_t seq, basis_change_fn fn, void *ctx);

#endif
