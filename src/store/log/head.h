/* head.h -- documents as they stand in the file: head rows, large values, patches, tail.
 *
 * A head row holds value and metadata as of the checkpoint. A large value has a row of its own and
 * is followed by patches, so that a small change costs what it changes; both are read together
 * here. Each text has a hash beside it, which is compared before anything is made of the text: what is
 * damaged is HD_CORRUPT, and file_failure names the document and the row. What happened since the checkpoint is in the log, at the rows that the tail names. */
#ifndef STORE_LOG_AUTHORITY_HEAD_H
#define STORE_LOG_AUTHORITY_HEAD_H

#include "store/log/rows.h"

#define LARGE_MIN ((size_t)16384) /* bytes of text from which a value gets a row of its own */

/* A text in a row, borrowed from its statement; length 0: there is none. */
typedef struct row_text {
    const char *bytes;
    size_t length;
} row_text;

/* A head row without its texts. */
typedef struct stored_head {
    bool exists; /* there is a row: a document or a tombstone */
    int64_t doc;
    uint64_t seq, meta_seq; /* of the last change of value and metadata; 0: never */
    bool has_value;
    bool guarded, large;
    uint64_t size, patched; /* bytes of value text, and of patches after it */
} stored_head;

/* Looks a document up; `name->meta` does not matter. */
hd_status head_find(file *f, const doc_name *name, stored_head *out);

/* The value (or, by name->meta, the metadata) as of the checkpoint: owned, or absent. *seq is that of
 * its last change; 0: there is no row. */
hd_status head_load(file *f, hd_heap *heap, const doc_name *name, hd_value *out, uint64_t *seq);

/* The same as of log row `through`: folded with what the tail knows above row `checkpoint`. *seq is
 * that of the last change. */
hd_status document_load(file *f, hd_heap *heap, const tail *t, uint64_t checkpoint,
                        uint64_t through, const doc_name *name, hd_value *out, uint64_t *seq);

/* The document's large value and its patches, folded: owned. */
hd_status large_load(file *f, hd_heap *heap, const doc_name *name, const stored_head *head,
                     hd_value *out);

/* A head row with its texts, which are borrowed until head_texts_end. */
typedef struct head_texts {
    sqlite3_stmt *statement;
    const char *kind;
    row_text value, meta;
} head_texts;

/* Finds the row and verifies it. In any case head_texts_end is to be called. */
hd_status head_read(file *f, const doc_name *name, stored_head *out, head_texts *texts);
void head_texts_end(head_texts *texts);

/* Notes that the document's row is damaged, and how; returns HD_CORRUPT. */
hd_status head_damaged(file *f, const doc_name *name, int64_t doc, const char *how);

/* The hash of a head row: of its texts, its name and kind, and its numbers, except for those that change
 * when a patch is added behind a large value, which the patch itself proves: `patched`, and `seq` of a
 * large one. Lengths are 0 where there is no text. */
uint64_t head_hash(const doc_name *name, const stored_head *head, const char *kind, row_text value,
                   row_text meta);
/* What the hash was before format 4: of the texts alone. Such rows are still read. */
uint64_t head_texts_hash(row_text value, row_text meta);

void bind_name(sqlite3_stmt *s, const doc_name *name);

/* A name whose texts are borrowed from keys; `instance` is NULL for space scope. */
doc_name name_of_keys(const struct key *space, hd_scope scope, const struct key *instance,
                      const struct key *id, bool meta);

#endif
