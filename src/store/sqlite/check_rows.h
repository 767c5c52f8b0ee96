/* check_rows.h -- are the rows about nodes what they should be? */
#ifndef STORE_SQLITE_CHECK_ROWS_H
#define STORE_SQLITE_CHECK_ROWS_H

#include "store/log/node_rows.h"
#include "store/sqlite/store.h"

typedef struct row_check {
    file *file;
    hd_heap *heap;
    /* Told of everything that is wrong. */
    hd_check_fn finding;
    void *ctx;
} row_check;

/* Looks at `node`, in a file that has it. HD_NOMEM and the like only. */
hd_status check_rows(row_check *k);

#endif
