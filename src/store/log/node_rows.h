/* node_rows.h -- rows about nodes, from the log into the store.
 *
 * The extras of commits (store/basis/basis.h) are in the log as operations are, and a checkpoint folds them, too:
 * the last row of a node becomes its stored row. */
#ifndef STORE_LOG_NODE_ROWS_H
#define STORE_LOG_NODE_ROWS_H

#include "store/basis/basis.h"
#include "store/log/spaces.h"

/* The extra of a commit of the log; absent: there is none, or it has a form that was written before format 4
 * and is no longer read. */
hd_value log_commit_extra(hd_value made);

/* The log's extras while they are folded. */
typedef struct node_fold {
    log_store *store;
    hd_heap *heap;
    basis rows;
    log_spaces spaces; /* the seqs that the rows read so far leave the spaces at */
} node_fold;

/* Within the checkpoint's transaction, before the spaces' rows are written. */
hd_status node_fold_init(node_fold *f, log_store *store, hd_heap *heap);
void node_fold_fini(node_fold *f);
hd_status node_fold_commit(node_fold *f, const log_row *row, size_t i);
hd_status node_fold_write(node_fold *f);

#endif
