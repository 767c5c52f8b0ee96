/* sqlite_rows.h -- what a runtime asks of a file when it resumes: the rows of a piece, and what has
 * changed since them. */
#ifndef STORE_SQLITE_ROWS_H
#define STORE_SQLITE_ROWS_H

#include "store/sqlite_client.h"

/* See basis_ops: the file's rows with those of the log's tail over them, as of the position. */
hd_status client_rows(client *c, const char *piece, hd_value *valid, basis_row_fn fn, void *ctx);
hd_status client_changes(client *c, struct key *space, uint64_t seq, basis_change_fn fn, void *ctx);
hd_status client_metadata(client *c, place_id doc, hd_value *out);
/* The first row that the log still has. */
hd_status client_reach(client *c, uint64_t *out);

/* ---- Changes of any documents, known here or not (sqlite_changes.c) */

/* Who asks, and about what. */
typedef struct change_query {
    client *c;
    struct key *space;
    uint64_t after; /* seqs above it */
    void *ctx;
    /* The asker's number for a document, not 0; 0: does not care. */
    uint32_t (*wanted)(void *ctx, const doc_name *name);
    /* One place that changed in it; false stops. The path is borrowed. */
    bool (*tell)(void *ctx, uint32_t doc, uint64_t seq, hd_path path, uint8_t flags);
} change_query;

/* Looks at head rows, tail and log; reads no document. Costs what has changed since, however many
 * documents there are. What changed below the log that is kept is told as a whole. */
hd_status changes_since(const change_query *q);

#endif
