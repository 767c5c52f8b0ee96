/* tables.h -- reads the file's tables for what the library has no function for: history, sizes, rows.
 *
 * A read-only connection beside the runtime's, opened by the library's own layer (store/sqlite/): what that
 * refuses is refused here. The tables are described in docs/FORMAT.md. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "cli/command.h"
#include <heddle/store.h>
#include <sqlite3.h>

struct log_store;

typedef struct tables {
    cli *c;
    const char *file; /* its name */
    struct log_store *store;
    sqlite3 *db; /* the store's connection */
} tables;

/* SQLite takes "file:..." for a URI: the name with "./" in front, where it begins like that. */
enum { PLAIN_NAME = 4096 };
const char *plain_name(const char *file, char out[PLAIN_NAME]);

/* These say what is wrong and return an exit status. `t` must not be moved while it is open. */
int tables_open(cli *c, tables *t, const char *file);
int tables_fail(tables *t, const char *doing);
/* Prepares a query. NULL: *failed says why, and has been told. */
sqlite3_stmt *tables_query(tables *t, const char *sql, int *failed);

/* Accepts what was not opened. */
void tables_close(tables *t);

/* The first column of the query's first row; 0 if it has no row. */
uint64_t tables_number(tables *t, const char *sql);
/* Column as text, never NULL. */
const char *column_text(sqlite3_stmt *s, int column);
uint64_t column_number(sqlite3_stmt *s, int column);

/* The size of a file in bytes; 0 when there is none. `suffix` is put behind the name. */
uint64_t file_size(const char *file, const char *suffix);

#endif
