/* check.h -- is a store what it says it is? */
#ifndef STORE_LOG_CHECK_H
#define STORE_LOG_CHECK_H

#include "store/log/backend.h"

/* hd_store_check, on a store of this backend. */
hd_status log_check(const log_backend *backend, const char *name, const hd_options *options,
                    hd_check_fn fn, void *ctx, hd_error *error);
/* The same inside of a transaction. HD_CORRUPT: `fn` has been told what is wrong. */
hd_status log_check_inside(log_store *s, hd_heap *heap, hd_check_fn fn, void *ctx);

#endif
