/* log.c -- the tables log, meta and space. */
#include "store/sqlite/store.h"

#include "store/log/columns.h"
#include <assert.h>
#include <string.h>

/* ---- log ---------------------------------------------------------------------------------- */

hd_status sqlite_log_text(sqlite3_stmt *s, log_text *out) {
    *out = (log_text){ .row = (uint64_t)sqlite3_column_int64(s, 0),
                       .hash = (uint64_t)sqlite3_column_int64(s, 1) };
    return sqlite_bytes(s, 2, &out->body);
}

hd_status sqlite_append(log_store *s, uint64_t row, uint64_t hash, row_text body) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && !f->soft);
    assert(row && body.length);
    sqlite3_stmt *insert = file_sql_get(f, SQL_LOG_APPEND);
    if (insert) {
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)row);
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)hash);
        sqlite_bind(insert, 3, body);
    }
    hd_status status = sqlite_finish(f, insert);
    if (status && sqlite3_errcode(f->db) == SQLITE_CONSTRAINT) return HD_RESYNC;
    if (!status) wal_make_room(&store_of(s)->wal, f, body.length);
    return status;
}

typedef struct text_reading {
    log_text_fn fn;
    void *ctx;
    bool found;
} text_reading;

static hd_status tell_text(void *ctx, sqlite3_stmt *s, bool *stop) {
    text_reading *g = ctx;
    log_text text;
    g->found = true;
    hd_status status = sqlite_log_text(s, &text);
    return status ? status : g->fn(g->ctx, &text, stop);
}

static hd_status read_texts(log_store *s, file_sql which, uint64_t row, text_reading *g) {
    sqlite3_stmt *select = file_sql_get(file_of(s), which);
    if (select) sqlite3_bind_int64(select, 1, (sqlite3_int64)row);
    return sqlite_each(file_of(s), select, tell_text, g);
}

hd_status sqlite_read_after(log_store *s, uint64_t after, log_text_fn fn, void *ctx) {
    text_reading g = { fn, ctx, false };
    return read_texts(s, SQL_LOG_AFTER, after, &g);
}

hd_status sqlite_read_row(log_store *s, uint64_t row, log_text_fn fn, void *ctx) {
    text_reading g = { fn, ctx, false };
    hd_status status = read_texts(s, SQL_LOG_ROW, row, &g);
    return status || g.found ? status : HD_NOT_FOUND;
}

static hd_status take_ends(void *ctx, sqlite3_stmt *s, bool *stop) {
    uint64_t *const *ends = ctx;
    *ends[0] = (uint64_t)sqlite3_column_int64(s, 0);
    *ends[1] = (uint64_t)sqlite3_column_int64(s, 1);
    *stop = true;
    return HD_OK;
}

hd_status sqlite_row_ends(log_store *s, uint64_t *first, uint64_t *last) {
    uint64_t *ends[] = { first, last };
    *first = *last = 0;
    return sqlite_each_of(file_of(s),
                          "select (select min(row) from log), (select max(row) from log)",
                          take_ends, ends);
}

hd_status sqlite_delete_rows(log_store *s, uint64_t row) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    sqlite3_stmt *d = file_sql_get(f, SQL_LOG_PRUNE);
    if (d) sqlite3_bind_int64(d, 1, (sqlite3_int64)row);
    return sqlite_finish(f, d);
}

/* ---- meta --------------------------------------------------------------------------------- */

hd_status sqlite_get_number(log_store *s, log_number which, uint64_t *out) {
    return file_meta_get(file_of(s), number_key(which), out);
}

hd_status sqlite_set_number(log_store *s, log_number which, uint64_t value) {
    assert(file_in_transaction(file_of(s)));
    return file_meta_set(file_of(s), number_key(which), value);
}

typedef struct secret {
    uint8_t *out;
    size_t length;
} secret;

static hd_status take_secret(void *ctx, sqlite3_stmt *s, bool *stop) {
    secret *to = ctx;
    row_text bytes;
    *stop = true;
    hd_status status = sqlite_bytes(s, 0, &bytes);
    if (status) return status;
    to->length = bytes.length < 64 ? bytes.length : 64;
    if (to->length) memcpy(to->out, bytes.bytes, to->length);
    return HD_OK;
}

hd_status sqlite_get_secret(log_store *s, uint8_t out[64], size_t *length) {
    secret to = { out, 0 };
    sqlite3_stmt *select = file_sql_get(file_of(s), SQL_META_GET);
    if (select) sqlite3_bind_text(select, 1, "secret", -1, SQLITE_STATIC);
    hd_status status = sqlite_each(file_of(s), select, take_secret, &to);
    *length = to.length;
    return status;
}

/* ---- space -------------------------------------------------------------------------------- */

typedef struct space_reading {
    space_row_fn fn;
    void *ctx;
} space_reading;

static hd_status tell_space(void *ctx, sqlite3_stmt *s, bool *stop) {
    const space_reading *g = ctx;
    space_row row = { .seq = sqlite3_column_int64(s, 1), .floor = sqlite3_column_int64(s, 2) };
    hd_status status = sqlite_text(s, 0, &row.name);
    return status ? status : g->fn(g->ctx, &row, stop);
}

hd_status sqlite_each_space(log_store *s, space_row_fn fn, void *ctx) {
    space_reading g = { fn, ctx };
    return sqlite_each(file_of(s), file_sql_get(file_of(s), SQL_SPACES), tell_space, &g);
}

static hd_status take_numbers(void *ctx, sqlite3_stmt *s, bool *stop) {
    uint64_t *out = ctx;
    *stop = true;
    hd_status status = file_column_number(s, 0, &out[0]);
    return status ? status : file_column_number(s, 1, &out[1]);
}

hd_status sqlite_get_space(log_store *s, row_text name, uint64_t *seq, uint64_t *floor) {
    sqlite3_stmt *select = file_sql_get(file_of(s), SQL_SPACE_GET);
    uint64_t numbers[2] = { 0, 0 };
    if (select) sqlite_bind(select, 1, name);
    hd_status status = sqlite_each(file_of(s), select, take_numbers, numbers);
    *seq = numbers[0];
    *floor = numbers[1];
    return status;
}

static hd_status with_seq(log_store *s, file_sql which, row_text name, uint64_t seq) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    sqlite3_stmt *change = file_sql_get(f, which);
    if (change) {
        sqlite_bind(change, 1, name);
        sqlite3_bind_int64(change, 2, (sqlite3_int64)seq);
    }
    return sqlite_finish(f, change);
}

hd_status sqlite_put_space(log_store *s, row_text name, uint64_t seq) {
    return with_seq(s, SQL_SPACE_SET, name, seq);
}

hd_status sqlite_raise_floor(log_store *s, row_text name, uint64_t seq) {
    hd_status status = with_seq(s, SQL_SPACE_FLOOR, name, seq);
    return status ? status : with_seq(s, SQL_TOMBSTONES_DROP, name, seq);
}
