/* runtimes.c -- the tables session and reader: which runtimes use the file.
 *
 * All of them run on this machine. A row names the process, so that the rows of a process that was killed
 * are known to be left over. */
#define _GNU_SOURCE
#include "store/sqlite/store.h"

#include "base/process.h"
#include <assert.h>
#include <unistd.h>

typedef struct session_reading {
    session_row_fn fn;
    void *ctx;
} session_reading;

static hd_status tell_session(void *ctx, sqlite3_stmt *s, bool *stop) {
    const session_reading *g = ctx;
    session_row row = { .settled = sqlite3_column_int64(s, 2), .last = sqlite3_column_int64(s, 3) };
    hd_status status = sqlite_text(s, 0, &row.id);
    if (!status) status = sqlite_text(s, 4, &row.verdicts);
    return status ? status : g->fn(g->ctx, &row, stop);
}

hd_status sqlite_each_session(log_store *s, session_row_fn fn, void *ctx) {
    session_reading g = { fn, ctx };
    return sqlite_each(file_of(s), file_sql_get(file_of(s), SQL_SESSIONS), tell_session, &g);
}

hd_status sqlite_put_session(log_store *s, const session_row *row) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && row->id.length == 32);
    sqlite3_stmt *put = file_sql_get(f, SQL_SESSION_PUT);
    if (put) {
        sqlite_bind(put, 1, row->id);
        sqlite3_bind_int64(put, 2, getpid());
        sqlite3_bind_int64(put, 3, row->settled);
        sqlite3_bind_int64(put, 4, row->last);
        sqlite_bind(put, 5, row->verdicts);
    }
    return sqlite_finish(f, put);
}

typedef struct reader_reading {
    reader_row_fn fn;
    void *ctx;
} reader_reading;

static hd_status tell_reader(void *ctx, sqlite3_stmt *s, bool *stop) {
    const reader_reading *g = ctx;
    uint64_t started = (uint64_t)sqlite3_column_int64(s, 2);
    reader_row row = { .session = (const char *)sqlite3_column_text(s, 0),
                       .position = (uint64_t)sqlite3_column_int64(s, 3),
                       .lives = process_lives(sqlite3_column_int64(s, 1), started) };
    return row.session ? g->fn(g->ctx, &row, stop) : HD_OK;
}

hd_status sqlite_each_reader(log_store *s, reader_row_fn fn, void *ctx) {
    reader_reading g = { fn, ctx };
    return sqlite_each(file_of(s), file_sql_get(file_of(s), SQL_READERS), tell_reader, &g);
}

hd_status sqlite_put_reader(log_store *s, const char *session, uint64_t position) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    sqlite3_stmt *put = file_sql_get(f, SQL_READER_PUT);
    if (put) {
        sqlite3_bind_text(put, 1, session, -1, SQLITE_STATIC);
        sqlite3_bind_int64(put, 2, getpid());
        sqlite3_bind_int64(put, 3, (sqlite3_int64)process_started(getpid()));
        sqlite3_bind_int64(put, 4, (sqlite3_int64)position);
    }
    return sqlite_finish(f, put);
}

hd_status sqlite_move_reader(log_store *s, const char *session, uint64_t position) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    sqlite3_stmt *move = file_sql_get(f, SQL_READER_MOVE);
    if (move) {
        sqlite3_bind_text(move, 1, session, -1, SQLITE_STATIC);
        sqlite3_bind_int64(move, 2, (sqlite3_int64)position);
    }
    return sqlite_finish(f, move);
}

static hd_status drop(file *f, file_sql which, const char *session) {
    sqlite3_stmt *d = file_sql_get(f, which);
    if (d) sqlite3_bind_text(d, 1, session, -1, SQLITE_STATIC);
    return sqlite_finish(f, d);
}

hd_status sqlite_drop_runtime(log_store *s, const char *session) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    hd_status status = drop(f, SQL_READER_DROP, session);
    return status ? status : drop(f, SQL_SESSION_DROP, session);
}
