/* check_memos.h -- are the memos what they should be? */
#ifndef STORE_LOG_CHECK_MEMOS_H
#define STORE_LOG_CHECK_MEMOS_H

#include "store/log/memo_fold.h"

typedef struct memo_check {
    log_store *store;
    hd_heap *heap;
    /* Told of everything that is wrong. */
    hd_check_fn finding;
    void *ctx;
} memo_check;

/* Looks at every memo. HD_NOMEM, or why they could not be read; what is wrong with them is told. */
hd_status check_memos(memo_check *k);

#endif
