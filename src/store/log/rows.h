/* rows.h -- rows of the log, and the commits in them.
 *
 * A row is parsed as JSON into its reader's own heap and then walked: by the writer (to learn what
 * other processes have committed), by a runtime (to tell its replica), by checkpoints and by the
 * check (to fold). What a row looks like is told in docs/FORMAT.md. */
#ifndef STORE_LOG_ROWS_H
#define STORE_LOG_ROWS_H

#include "store/commit.h"
#include "store/log/backend.h"
#include "store/log/tail.h"
#include "store/session.h"
#include "value/json_write.h"

/* The format of the rows that are written now; each row says its own (docs/FORMAT.md). */
#define LOG_FORMAT      6
#define LOG_FORMAT_TEXT "6"

/* A row, parsed. */
typedef struct log_row {
    uint64_t row;
    hd_value body;          /* owned */
    size_t length;          /* of its text */
    hd_value commits;       /* owned; ids in them are whole */
    VEC(uint64_t) payloads; /* hash of each commit's fragment */
} log_row;

/* Parses a row. HD_CORRUPT: its hash or form is wrong, which is noted in `s` unless that is NULL;
 * HD_NOMEM. In any case log_row_fini is to be called. */
hd_status log_row_read(log_store *s, hd_heap *heap, const log_text *text, log_row *out);
/* Notes that a row of the log is damaged, and how; returns HD_CORRUPT. */
hd_status log_row_damaged(log_store *s, uint64_t row, const char *how);
void log_row_fini(hd_heap *heap, log_row *row);

static inline size_t log_row_commits(const log_row *row) { return hd_value_count(row->commits); }
hd_value log_row_commit(const log_row *row, size_t i);
/* In which it was written; 0: before rows said so. */
uint64_t log_row_format(const log_row *row);
/* The session of a commit, 16 bytes. HD_CORRUPT. */
hd_status log_commit_session(const log_row *row, hd_value made, uint8_t out[16]);
uint64_t log_commit_local_seq(hd_value made);
hd_commit_class log_commit_class(hd_value made);

/* The spaces written by a commit and the seqs they got. */
size_t log_commit_spaces(hd_value made);
bool log_commit_space(hd_value made, size_t i, const char **name, size_t *length, uint64_t *seq);

/* A document that a commit changed. */
typedef struct log_doc {
    doc_name name;
    uint64_t seq;
    uint64_t basis;
    bool created, guarded, deleted;
    bool forgotten;      /* deleted without a tombstone that is kept */
    hd_value entry, ops; /* borrowed from the row */
} log_doc;

size_t log_commit_docs(hd_value made);
/* False: the entry is malformed. */
bool log_commit_doc(hd_value made, size_t i, log_doc *out);
/* Whether the exact footprint of document `i` of a commit holds: "f", or the paths of its operations. */
bool log_doc_footprint_holds(const log_row *row, hd_value made, size_t i);
/* The exact footprint, a list of touches; absent: it is what the operations say. */
hd_value log_doc_footprint(hd_value entry);
/* One of them. HD_CORRUPT, HD_NOMEM. Release the path with path_unref. */
hd_status log_touch_at(hd_heap *heap, hd_value footprint, size_t i, touch *out);

typedef struct log_op {
    op_kind kind;
    hd_path path;   /* one reference, the caller's */
    hd_value value; /* borrowed */
    uint64_t keep;
} log_op;

size_t log_doc_ops(const log_doc *doc);
/* HD_CORRUPT, HD_NOMEM. Let the path go with path_unref. */
hd_status log_ops_at(hd_heap *heap, hd_value ops, size_t i, log_op *out);
hd_value log_doc_op_list(const log_doc *doc);
/* Whether the first operation replaces whatever was there. */
bool log_ops_start_anew(hd_value ops);

/* Folds operations (a list as in the log) over *value, which is replaced. Operations that do not
 * fit what they find change nothing, as in a replica. HD_NOMEM, HD_CORRUPT. */
hd_status log_fold(hd_heap *heap, hd_value ops, hd_value *value);

/* A list of commits, with the ids of their documents spelled out; owned. HD_NOMEM, HD_CORRUPT. */
hd_status log_commits_read(hd_heap *heap, const char *text, size_t length, hd_value *out);

/* JSON that may nest a little deeper than documents may, since they stand inside. Owned. */
hd_value log_json_read(hd_heap *heap, const char *text, size_t length);
/* The same with a status: HD_CORRUPT if the text is empty or no JSON, HD_NOMEM; *out is then absent. */
hd_status log_json_of(hd_heap *heap, row_text text, hd_value *out);

/* The hash that is kept beside every text of a store: XXH3 with a seed of ours. */
uint64_t log_hash(const void *bytes, size_t size);

#endif
