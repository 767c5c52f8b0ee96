/* rows.c -- the tables session, reader and presence.
 *
 * Runtimes are on several machines, so a row of `reader` says when its runtime was last heard of, by the clock of
 * the database. A runtime that was taken for dead, and lives, writes its row again with its next report. */
#include "store/postgres/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- session ------------------------------------------------------------------------------- */

typedef struct session_reading {
    session_row_fn fn;
    void *ctx;
} session_reading;

static hd_status tell_session(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    const session_reading *g = ctx;
    session_row row = { .id = text_at(c, r, i, 0),
                        .settled = number_at(c, r, i, 1),
                        .last = number_at(c, r, i, 2),
                        .verdicts = text_at(c, r, i, 3) };
    return g->fn(g->ctx, &row, stop);
}

hd_status pg_each_session(log_store *s, session_row_fn fn, void *ctx) {
    return conn_each(conn_of(s), PG_SESSIONS, NULL, tell_session, &(session_reading){ fn, ctx });
}

hd_status pg_put_session(log_store *s, const session_row *row) {
    conn_args a = { 0 };
    assert(row->id.length == 32);
    args_text(&a, row->id);
    args_number(&a, row->settled);
    args_number(&a, row->last);
    args_text(&a, row->verdicts);
    return conn_send(conn_of(s), PG_SESSION_PUT, &a);
}

/* ---- reader -------------------------------------------------------------------------------- */

typedef struct reader_reading {
    reader_row_fn fn;
    void *ctx;
} reader_reading;

static hd_status tell_reader(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    const reader_reading *g = ctx;
    reader_row row = { .session = word_at(c, r, i, 0),
                       .position = (uint64_t)number_at(c, r, i, 1),
                       .lives = bool_at(c, r, i, 2) };
    return g->fn(g->ctx, &row, stop);
}

hd_status pg_each_reader(log_store *s, reader_row_fn fn, void *ctx) {
    return conn_each(conn_of(s), PG_READERS, NULL, tell_reader, &(reader_reading){ fn, ctx });
}

/* During an append the transaction is a reading one, which cannot write: the row is written outside of it. */
hd_status pg_put_reader(log_store *s, const char *session, uint64_t position) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    assert(c->mode != CONN_FREE && c->mode != CONN_READ && strlen(session) == 32);
    args_word(&a, session);
    args_number(&a, (int64_t)position);
    hd_status status = c->mode == CONN_APPEND ? conn_leave_snapshot(c) : HD_OK;
    return status ? status : conn_send(c, PG_READER_PUT, &a);
}

hd_status pg_drop_runtime(log_store *s, const char *session) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    args_word(&a, session);
    hd_status status = conn_send(c, PG_READER_DROP, &a);
    return status ? status : conn_send(c, PG_SESSION_DROP, NULL);
}

/* ---- presence ------------------------------------------------------------------------------- */

static void join_sessions(const log_life *others, uint32_t count,
                          char out[LOG_LIVES * sizeof others->session]) {
    assert(count <= LOG_LIVES);
    char *at = out;
    *out = 0;
    for (uint32_t i = 0; i < count; i++) at += sprintf(at, "%s%s", i ? "," : "", others[i].session);
}

/* The first row has the number of the log's last row, each other one a session that lives. */
static void take_lives(const conn *c, const PGresult *r, log_life *others, uint32_t count) {
    for (int i = 1; i < rows_of(c, r); i++)
        for (uint32_t k = 0; k < count; k++)
            if (!strcmp(word_at(c, r, i, 0), others[k].session))
                others[k].ms = (uint32_t)number_at(c, r, i, 1) + 1; /* less than one is left */
}

hd_status pg_beat(log_store *s, const char *session, uint32_t ms, log_life *others, uint32_t count,
                  uint64_t *row) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    char watched[LOG_LIVES * sizeof others->session];
    assert(c->mode == CONN_FREE && strlen(session) == 32);
    join_sessions(others, count, watched);
    args_word(&a, session);
    args_number(&a, ms);
    args_word(&a, watched);
    hd_status status = conn_ask(c, PG_BEAT, &a);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (!r || !rows_of(c, r)) return status ? status : HD_IO;
    *row = (uint64_t)number_at(c, r, 0, 1);
    take_lives(c, r, others, count);
    return HD_OK;
}

hd_status pg_leave(log_store *s, const char *session) {
    conn_args a = { 0 };
    assert(conn_of(s)->mode == CONN_SOFT && strlen(session) == 32);
    args_word(&a, session);
    return conn_send(conn_of(s), PG_LEAVE, &a);
}

hd_status pg_lasts(log_store *s, const char *session, uint32_t *ms) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    *ms = 0;
    args_word(&a, session);
    hd_status status = conn_ask(c, PG_LASTS, &a);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (r && rows_of(c, r)) *ms = (uint32_t)number_at(c, r, 0, 0) + 1; /* less than one is left */
    return status;
}
