/* row_cache.h -- rows of the log that were read lately, parsed, with an index of their documents.
 *
 * Commits that were made together stand in one row. A program that loads the documents of such a row one after the
 * other, after a kill, say, would parse the row for each of them. A row never changes once it is stored, so it is kept
 * until a checkpoint has folded it, or until there is no room.
 *
 *     find a document in a row   the logarithm of the row's documents; if the row is not kept: its length
 *     memory                     BYTES_MAX of text, parsed; one row may be longer */
#ifndef STORE_LOG_ROW_CACHE_H
#define STORE_LOG_ROW_CACHE_H

#include "store/log/rows.h"

enum { ROWS_KEPT = 64 };

typedef struct row_entry {
    uint32_t hash; /* of the document's name */
    uint32_t commit, doc;
} row_entry;

typedef struct kept_row {
    log_row row;
    VEC(row_entry) entries; /* by hash, then in the order of the row */
    uint64_t used;          /* row_cache.clock when it was used last */
} kept_row;

typedef struct row_cache {
    kept_row rows[ROWS_KEPT];
    uint32_t count;
    size_t bytes; /* of their texts */
    uint64_t clock;
} row_cache;

void row_cache_fini(row_cache *c, hd_heap *heap);
/* A checkpoint has folded everything up to and including `row`. */
void row_cache_trim(row_cache *c, hd_heap *heap, uint64_t row);

/* Folds over *value what the row at->row has done to the document up to at->seq: while a row is being told, its later
 * commits have not happened yet. `c` may be NULL: nothing is kept. HD_CORRUPT: the row is damaged, or not there. */
hd_status row_cache_fold(row_cache *c, log_store *s, hd_heap *heap, const tail_at *at,
                         const doc_name *name, hd_value *value);

#endif
