/* raw_sqlite.c -- see raw_sqlite.h. */
#define _GNU_SOURCE
#include "raw_sqlite.h"

#include "clock.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- A file ------------------------------------------------------------------------------ */

static bool refused(sqlite3 *db, const char *what) {
    fprintf(stderr, "raw sqlite: %s: %s\n", what, db ? sqlite3_errmsg(db) : "out of memory");
    return false;
}

static bool execute(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || refused(db, sql);
}

static void remove_files(const char *path) {
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char name[4096];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* A fresh file in WAL mode with one table. */
static sqlite3 *open_fresh(const char *path, const char *create) {
    sqlite3 *db = NULL;
    remove_files(path);
    if (sqlite3_open(path, &db) != SQLITE_OK) refused(db, "open");
    else if (execute(db, "PRAGMA journal_mode = WAL") && execute(db, "PRAGMA synchronous = FULL") &&
             execute(db, create))
        return db;
    sqlite3_close(db);
    return NULL;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        refused(db, sql);
    }
    return stmt;
}

static bool step_done(sqlite3 *db, sqlite3_stmt *stmt) {
    bool done = sqlite3_step(stmt) == SQLITE_DONE;
    sqlite3_reset(stmt);
    return done || refused(db, sqlite3_sql(stmt));
}

/* ---- Appending --------------------------------------------------------------------------- */

struct raw_log {
    sqlite3 *db;
    sqlite3_stmt *begin, *insert, *commit;
    char path[4096];
    char *row;
    uint32_t row_bytes;
};

raw_log *raw_log_open(const char *path, uint32_t row_bytes) {
    raw_log *log = calloc(1, sizeof *log);
    if (!log) return NULL;
    snprintf(log->path, sizeof log->path, "%s", path);
    log->row_bytes = row_bytes;
    log->row = malloc(row_bytes ? row_bytes : 1);
    log->db = open_fresh(path, "CREATE TABLE log (seq INTEGER PRIMARY KEY, body BLOB)");
    if (log->db) {
        log->begin = prepare(log->db, "BEGIN IMMEDIATE");
        log->insert = prepare(log->db, "INSERT INTO log (body) VALUES (?1)");
        log->commit = prepare(log->db, "COMMIT");
    }
    if (log->row) memset(log->row, 'x', row_bytes);
    if (log->row && log->begin && log->insert && log->commit) return log;
    raw_log_close(log);
    return NULL;
}

void raw_log_close(raw_log *log) {
    if (!log) return;
    sqlite3_finalize(log->begin);
    sqlite3_finalize(log->insert);
    sqlite3_finalize(log->commit);
    sqlite3_close(log->db);
    remove_files(log->path);
    free(log->row);
    free(log);
}

static bool append_tx(raw_log *log, uint32_t rows) {
    if (!step_done(log->db, log->begin)) return false;
    for (uint32_t i = 0; i < rows; i++) {
        if (log->row_bytes) log->row[i % log->row_bytes]++; /* no two rows alike */
        sqlite3_bind_blob(log->insert, 1, log->row, (int)log->row_bytes, SQLITE_STATIC);
        if (!step_done(log->db, log->insert)) return false;
    }
    return step_done(log->db, log->commit);
}

bool raw_log_append(raw_log *log, uint64_t rows, uint32_t rows_per_tx) {
    bool ok = true;
    for (uint64_t done = 0; done < rows && ok; done += rows_per_tx)
        ok = append_tx(log, rows_per_tx);
    return ok;
}

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

bool raw_sqlite_commit_us(const char *path, uint32_t row_bytes, uint32_t commits, double *median_us,
                          double *best_us) {
    raw_log *log = raw_log_open(path, row_bytes);
    double *us = calloc(commits, sizeof *us);
    bool ok = log && us;
    for (uint32_t i = 0; i < commits && ok; i++) {
        uint64_t start = clock_wall_ns();
        ok = append_tx(log, 1);
        us[i] = (double)(clock_wall_ns() - start) / 1e3;
    }
    if (ok) {
        qsort(us, commits, sizeof *us, by_size);
        *median_us = us[commits / 2];
        *best_us = us[0];
    }
    raw_log_close(log);
    free(us);
    return ok;
}

/* ---- Selecting --------------------------------------------------------------------------- */

static int document_id(char *out, size_t size, uint32_t i) {
    return snprintf(out, size, "doc-%u", i);
}

static bool fill_documents(sqlite3 *db, uint32_t row_bytes, uint32_t documents) {
    char id[32];
    char *body = calloc(1, row_bytes ? row_bytes : 1);
    sqlite3_stmt *insert = prepare(db, "INSERT INTO document (id, body) VALUES (?1, ?2)");
    bool ok = body && insert && execute(db, "BEGIN");
    for (uint32_t i = 0; ok && i < documents; i++) {
        sqlite3_bind_text(insert, 1, id, document_id(id, sizeof id, i), SQLITE_TRANSIENT);
        sqlite3_bind_blob(insert, 2, body, (int)row_bytes, SQLITE_STATIC);
        ok = step_done(db, insert);
    }
    ok = ok && execute(db, "COMMIT");
    sqlite3_finalize(insert);
    free(body);
    return ok;
}

/* One round over all documents. The stride is a prime, so the order is not that of the file. */
static bool select_round(sqlite3 *db, sqlite3_stmt *select, uint32_t row_bytes,
                         uint32_t documents) {
    char id[32];
    uint64_t bytes = 0;
    for (uint32_t i = 0, at = 0; i < documents; i++, at = (at + 7919) % documents) {
        sqlite3_bind_text(select, 1, id, document_id(id, sizeof id, at), SQLITE_TRANSIENT);
        if (sqlite3_step(select) != SQLITE_ROW) return refused(db, "select");
        volatile const char *body = sqlite3_column_blob(select, 0);
        if (body) (void)body[0];
        bytes += (uint64_t)sqlite3_column_bytes(select, 0);
        sqlite3_reset(select);
    }
    return bytes == (uint64_t)row_bytes * documents || refused(db, "select: wrong size");
}

static bool time_selects(sqlite3 *db, uint32_t row_bytes, uint32_t documents, int repeats,
                         double *rows_per_s) {
    sqlite3_stmt *select = prepare(db, "SELECT body FROM document WHERE id = ?1");
    uint64_t best = UINT64_MAX;
    bool ok = select && execute(db, "BEGIN"); /* as a loader would: one snapshot */
    for (int i = 0; ok && i <= repeats; i++) {
        uint64_t start = clock_now_ns();
        ok = select_round(db, select, row_bytes, documents);
        uint64_t took = clock_now_ns() - start;
        if (i > 0 && took < best) best = took; /* the first round warms the cache */
    }
    sqlite3_finalize(select);
    *rows_per_s = (double)documents * 1e9 / (double)best;
    return ok && execute(db, "COMMIT");
}

bool raw_sqlite_select_per_s(const char *path, uint32_t row_bytes, uint32_t documents, int repeats,
                             double *rows_per_s) {
    sqlite3 *db =
        open_fresh(path, "CREATE TABLE document (id TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID");
    bool ok = db && fill_documents(db, row_bytes, documents) &&
              time_selects(db, row_bytes, documents, repeats, rows_per_s);
    sqlite3_close(db);
    remove_files(path);
    return ok;
}
