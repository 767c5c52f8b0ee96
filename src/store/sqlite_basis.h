/* sqlite_basis.h -- rows about nodes, from the log into the file.
 *
 * Extras stand in the log like operations do; a checkpoint folds them: the last word on each node
 * becomes its row in `node`, and each document it read an entry in `basis`, so that "who reads this?"
 * is one look into an index. Entries are written only where the read set has changed. */
#ifndef STORE_SQLITE_BASIS_H
#define STORE_SQLITE_BASIS_H

#include "store/basis.h"
#include "store/sqlite_log.h"

/* Nodes are numbered from 1; nobody has as many as this. */
#define NODE_NUMBER_MAX (INT64_MAX / 2)

/* What a commit of the log says of nodes; absent: nothing, or nothing that can be understood. */
hd_value log_commit_extra(hd_value made);

/* In `since` of a piece: seqs by space, the lowest that its rows have seen of what they do not claim. No
 * space is called so. */
#define PIECE_SEEN ""

/* The log's extras while they are folded. */
typedef struct basis_fold {
    file *file;
    hd_heap *heap;
    basis rows;
    VEC(space_seq) spaces; /* where they stand; names referenced */
    hd_value since;        /* where they stood at the start, by space; owned */
    int64_t last;          /* the highest number of a node */
} basis_fold;

/* Within the checkpoint's transaction, before the spaces' rows are written. */
hd_status basis_fold_init(basis_fold *f, file *in, hd_heap *heap, const hd_env *env);
void basis_fold_fini(basis_fold *f);
/* Commit number `i` of a row that was read to be folded. */
hd_status basis_fold_commit(basis_fold *f, const log_row *row, size_t i);
hd_status basis_fold_write(basis_fold *f);

/* Whether some node has read the document: its end must then be remembered. */
hd_status basis_is_read(file *f, const doc_name *name, bool *out);

/* The documents that a row reads, each once. Names are borrowed from the body and the instance. */
typedef struct read_set {
    const hd_env *env;
    VEC(doc_name) docs;
    table by_name;
} read_set;
void read_set_init(read_set *s, const hd_env *env);
void read_set_fini(read_set *s);
/* Keeps the name, not a copy of its texts. HD_NOMEM. */
hd_status read_set_add_doc(read_set *s, const doc_name *name);
/* A read of another principal's instance than the row's own has the instance "": any. HD_NOMEM. */
hd_status read_set_add(read_set *s, hd_value body, const char *instance);
/* The document that a read means. */
doc_name read_doc_name(const basis_read *r, const char *instance);
bool read_set_has(const read_set *s, const doc_name *name);

/* Lowers `*seen` (owned: seqs by space; absent: none) to what the body's reads that are no claims have
 * seen: no proof reaches further than that. HD_NOMEM. */
hd_status reads_note_seen(hd_heap *heap, hd_value body, hd_value *seen);

#endif
