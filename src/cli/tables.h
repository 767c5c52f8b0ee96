/* tables.h -- reads a store for what the library has no function for: history, sizes, rows.
 *
 * A read-only connection beside the runtime's, of the library's own backend for the store: what that refuses is
 * refused here. The tables are described in docs/FORMAT.md. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "cli/command.h"
#include "store/log/backend.h"
#include <heddle/store.h>

typedef struct tables {
    cli *c;
    const char *file; /* its name */
    log_store *store; /* in a read transaction */
} tables;

/* SQLite takes "file:..." for a URI: the name with "./" in front, where it begins like that. */
enum { PLAIN_NAME = 4096 };
const char *plain_name(const char *file, char out[PLAIN_NAME]);

/* These say what is wrong and return an exit status. All that is read until the close is of one moment. */
int tables_open(cli *c, tables *t, const char *file);
int tables_fail(tables *t, hd_status status, const char *doing);

/* Accepts what was not opened. */
void tables_close(tables *t);

/* The size of a file in bytes; 0 when there is none. `suffix` is put behind the name. */
uint64_t file_size(const char *file, const char *suffix);

#endif
