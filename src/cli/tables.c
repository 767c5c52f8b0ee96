/* tables.c -- reading the file's own tables. */
#define _POSIX_C_SOURCE 200809L
#include "cli/tables.h"

#include "cli/output.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BUSY_MS = 2000 };

const char *plain_name(const char *file, char out[PLAIN_NAME]) {
    if (strncmp(file, "file:", 5) != 0) return file;
    snprintf(out, PLAIN_NAME, "./%s", file);
    return out;
}

int tables_open(cli *c, tables *t, const char *file) {
    char plain[PLAIN_NAME];
    *t = (tables){ .c = c, .file = file };
    if (sqlite3_open_v2(plain_name(file, plain), &t->db, SQLITE_OPEN_READONLY, NULL))
        return tables_fail(t, "opening");
    sqlite3_busy_timeout(t->db, BUSY_MS);
    sqlite3_db_config(t->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(t->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return CLI_OK;
}

int tables_fail(tables *t, const char *doing) {
    int code = sqlite3_errcode(t->db) & 0xFF;
    bool bad = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_READONLY;
    return cli_fail(t->c,
                    bad                    ? CLI_FILE
                    : code == SQLITE_NOMEM ? CLI_INTERNAL
                                           : CLI_IO,
                    NULL, "%s: %s: %s", t->file, doing, sqlite3_errmsg(t->db));
}

sqlite3_stmt *tables_query(tables *t, const char *sql, int *failed) {
    sqlite3_stmt *s = NULL;
    *failed = sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) ? tables_fail(t, "reading") : CLI_OK;
    return s;
}

void tables_close(tables *t) {
    sqlite3_close(t->db);
    t->db = NULL;
}

uint64_t tables_number(tables *t, const char *sql) {
    sqlite3_stmt *s = NULL;
    uint64_t n = 0;
    if (!sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) && sqlite3_step(s) == SQLITE_ROW)
        n = column_number(s, 0);
    sqlite3_finalize(s);
    return n;
}

const char *column_text(sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

uint64_t column_number(sqlite3_stmt *s, int column) {
    return (uint64_t)sqlite3_column_int64(s, column);
}

uint64_t file_size(const char *file, const char *suffix) {
    char name[4096];
    struct stat st;
    int length = snprintf(name, sizeof name, "%s%s", file, suffix);
    if (length < 0 || (size_t)length >= sizeof name || stat(name, &st)) return 0;
    return (uint64_t)st.st_size;
}
