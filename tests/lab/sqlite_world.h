/* sqlite_world.h -- plain SQLite, for tests of the disks under it. */
#ifndef HEDDLE_SQLITE_WORLD_H
#define HEDDLE_SQLITE_WORLD_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline int db_run(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* The first column of the first row; -1 on an error or no row. */
static inline int64_t db_number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *q = NULL;
    int64_t number = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        number = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return number;
}

static inline bool db_intact(sqlite3 *db) {
    sqlite3_stmt *q = NULL;
    bool ok = sqlite3_prepare_v2(db, "pragma integrity_check", -1, &q, NULL) == SQLITE_OK &&
              sqlite3_step(q) == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(q, 0), "ok") == 0;
    sqlite3_finalize(q);
    return ok;
}

#endif
