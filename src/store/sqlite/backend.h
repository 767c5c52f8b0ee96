/* backend.h -- the SQLite backend: a store with a log in one file. */
#ifndef STORE_SQLITE_BACKEND_H
#define STORE_SQLITE_BACKEND_H

struct log_backend;

/* For log_authority_open. docs/FORMAT.md describes the file; hd_store_check is in check.c. */
extern const struct log_backend sqlite_backend;

#endif
