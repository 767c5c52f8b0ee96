/* backend.h -- the SQLite backend: a store with a log in one file. */
#ifndef STORE_SQLITE_BACKEND_H
#define STORE_SQLITE_BACKEND_H

#include <heddle/store.h>

struct log_backend;

/* For log_authority_open. docs/FORMAT.md describes the file; log/check.h looks for damage. */
extern const struct log_backend sqlite_backend;

/* The connection of a store in a file, for what only a file has: its pages, and a copy of it. */
struct log_store;
struct sqlite3;
struct sqlite3 *sqlite_connection(const struct log_store *s);

/* hd_store_repair, of a file. */
hd_status sqlite_repair(const char *name, const hd_options *options, bool drop, hd_check_fn fn,
                        void *ctx, hd_error *error);

#endif
