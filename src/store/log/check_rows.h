/* check_rows.h -- are the rows about nodes what they should be? */
#ifndef STORE_LOG_CHECK_ROWS_H
#define STORE_LOG_CHECK_ROWS_H

#include "store/log/node_rows.h"

typedef struct row_check {
    log_store *store;
    hd_heap *heap;
    /* Told of everything that is wrong. */
    hd_check_fn finding;
    void *ctx;
} row_check;

/* Looks at every row. HD_NOMEM, or why the rows could not be read; what is wrong with them is told. */
hd_status check_rows(row_check *k);

#endif
