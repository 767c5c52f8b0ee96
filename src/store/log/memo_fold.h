/* memo_fold.h -- memos, from the log into the store.
 *
 * The extras of commits (memo.h) are in the log as operations are, and a checkpoint folds them, too: the last memo of a
 * name and instance is stored. */
#ifndef STORE_LOG_MEMO_FOLD_H
#define STORE_LOG_MEMO_FOLD_H

#include "store/memo.h"
#include "store/log/spaces.h"

/* The extra of a commit of the log; absent: there is none, or it has a form that was written before format 4
 * and is no longer read. */
hd_value log_commit_extra(hd_value made);

/* The log's extras while they are folded. */
typedef struct memo_fold {
    log_store *store;
    hd_heap *heap;
    memos memos;
    log_spaces spaces; /* the seqs that the rows read so far leave the spaces at */
} memo_fold;

/* Within the checkpoint's transaction, before the spaces' rows are written. */
hd_status memo_fold_init(memo_fold *f, log_store *store, hd_heap *heap);
void memo_fold_fini(memo_fold *f);
hd_status memo_fold_commit(memo_fold *f, const log_row *row, size_t i);
hd_status memo_fold_write(memo_fold *f);

#endif
