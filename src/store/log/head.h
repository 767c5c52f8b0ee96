/* head.h -- documents as they are stored: head rows, large values, patches, tail.
 *
 * A head row holds value and metadata as of the checkpoint. A large value has a row of its own and
 * is followed by patches, so that a small change costs what it changes; both are read together here.
 * Each text has a hash beside it, which is compared before the text is parsed: damage is HD_CORRUPT,
 * and log_store_failure names the document and the row. What happened after the checkpoint is in the
 * log, in the rows that the tail names. */
#ifndef STORE_LOG_HEAD_H
#define STORE_LOG_HEAD_H

#include "store/log/row_cache.h"

#define LARGE_MIN ((size_t)16384) /* bytes of text from which a value gets a row of its own */

/* A head row without its texts, its numbers verified. */
typedef struct stored_head {
    bool exists; /* there is a row: a document or a tombstone */
    int64_t doc;
    uint64_t seq, meta_seq; /* of the last change of value and metadata; 0: never */
    bool has_value;
    bool guarded, large;
    uint64_t size, patched; /* bytes of value text, and of patches after it */
} stored_head;

/* Looks a document up; `name->meta` does not matter. */
hd_status head_find(log_store *s, const doc_name *name, stored_head *out);

/* The value (or, by name->meta, the metadata) as of the checkpoint: owned, or absent. *seq is that of
 * its last change; 0: there is no row. */
hd_status head_load(log_store *s, hd_heap *heap, const doc_name *name, hd_value *out,
                    uint64_t *seq);

/* The same as of log row `through`: folded with what the tail knows above row `checkpoint`. *seq is
 * that of the last change. `rows`: of row_cache_fold. */
hd_status document_load(log_store *s, hd_heap *heap, row_cache *rows, const tail *t,
                        uint64_t checkpoint, uint64_t through, const doc_name *name, hd_value *out,
                        uint64_t *seq);

/* The document's large value and its patches, folded: owned. */
hd_status large_load(log_store *s, hd_heap *heap, const doc_name *name, const stored_head *head,
                     hd_value *out);

/* Finds the row with its texts and verifies it: log_backend.read_head, and end_head is to be called in
 * any case. After HD_CORRUPT `row` has what could be read. */
hd_status head_read(log_store *s, const doc_name *name, stored_head *out, head_row *row);

/* Notes that the document's row is damaged, and how; returns HD_CORRUPT. */
hd_status head_damaged(log_store *s, const doc_name *name, int64_t doc, const char *how);

/* The hash of a head row: of its texts, its name and kind, and its numbers, except for those that change
 * when a patch is added behind a large value, which the patch itself proves: `patched`, and `seq` of a
 * large one. Lengths are 0 where there is no text. */
uint64_t head_hash(const doc_name *name, const stored_head *head, const char *kind, row_text value,
                   row_text meta);
/* The hash as it was before format 4: of the texts alone. Such rows are still read. */
uint64_t head_texts_hash(row_text value, row_text meta);

#endif
