/* tables.c -- reading the file's own tables. */
#define _POSIX_C_SOURCE 200809L
#include "cli/tables.h"

#include "cli/output.h"
#include "cli/store.h"
#include "store/sqlite/backend.h"
#include "store/sqlite/store.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *plain_name(const char *name, char out[PLAIN_NAME]) {
    if (strncmp(name, "file:", 5) != 0) return name;
    snprintf(out, PLAIN_NAME, "./%s", name);
    return out;
}

int tables_open(cli *c, tables *t, const char *name) {
    hd_error error = { 0 };
    hd_env env = hd_env_system();
    hd_options options = { .read_only = true };
    *t = (tables){ .c = c, .file = name };
    hd_status status = sqlite_backend.open(name, &options, &env, LOG_ALONE, &t->store, &error);
    if (status) return store_open_failed(c, name, status, &error);
    t->db = file_of(t->store)->db;
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
    if (!t->store) return;
    t->store->ops->close(t->store);
    t->store = NULL;
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

uint64_t file_size(const char *name, const char *suffix) {
    char whole[4096];
    struct stat st;
    int length = snprintf(whole, sizeof whole, "%s%s", name, suffix);
    if (length < 0 || (size_t)length >= sizeof whole || stat(whole, &st)) return 0;
    return (uint64_t)st.st_size;
}
