/* node_rows.h -- rows about nodes, from the log into the file.
 *
 * Extras stand in the log like operations do; a checkpoint folds them: what was said last of each node
 * becomes its row in `node`. */
#ifndef STORE_LOG_NODE_ROWS_H
#define STORE_LOG_NODE_ROWS_H

#include "store/basis.h"
#include "store/log/rows.h"

/* What a commit of the log says of nodes; absent: nothing, or nothing that is understood, as what formats
 * before NODE_FORMAT said. */
hd_value log_commit_extra(hd_value made);

/* The log's extras while they are folded. */
typedef struct basis_fold {
    file *file;
    hd_heap *heap;
    basis rows;
    VEC(space_seq) spaces; /* where they stand; names referenced */
} basis_fold;

/* Within the checkpoint's transaction, before the spaces' rows are written. */
hd_status basis_fold_init(basis_fold *f, file *in, hd_heap *heap, const hd_env *env);
void basis_fold_fini(basis_fold *f);
hd_status basis_fold_commit(basis_fold *f, const log_row *row, size_t i);
hd_status basis_fold_write(basis_fold *f);

/* Whether there are rows: then the end of a document must be remembered, which may have been read. */
hd_status basis_has_rows(file *f, bool *out);

#endif
