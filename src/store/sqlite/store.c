/* store.c -- stepping through statements, and taking texts out of columns. */
#include "store/sqlite/store.h"

#include <assert.h>

static hd_status not_prepared(const file *f) {
    return file_status(sqlite3_extended_errcode(f->db));
}

static hd_status each_row(sqlite3_stmt *s, sqlite_row_fn fn, void *ctx) {
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    bool stop = false;
    while (!status && !stop && (rc = sqlite3_step(s)) == SQLITE_ROW) status = fn(ctx, s, &stop);
    return status ? status : file_status(rc);
}

hd_status sqlite_each(file *f, sqlite3_stmt *s, sqlite_row_fn fn, void *ctx) {
    if (!s) return not_prepared(f);
    assert(!sqlite3_stmt_busy(s)); /* it is not being stepped through further out */
    hd_status status = each_row(s, fn, ctx);
    sqlite3_reset(s);
    return status;
}

hd_status sqlite_each_of(file *f, const char *sql, sqlite_row_fn fn, void *ctx) {
    sqlite3_stmt *s = NULL;
    hd_status status = file_status(sqlite3_prepare_v2(f->db, sql, -1, &s, NULL));
    if (!status) status = each_row(s, fn, ctx);
    sqlite3_finalize(s);
    return status;
}

hd_status sqlite_finish(file *f, sqlite3_stmt *s) {
    return s ? file_finish(f, s) : not_prepared(f);
}

void sqlite_bind(sqlite3_stmt *s, int at, row_text text) {
    assert(s && at > 0 && (text.bytes || !text.length));
    const char *bytes = text.bytes ? text.bytes : "";
    sqlite3_bind_text64(s, at, bytes, text.length, SQLITE_STATIC, SQLITE_UTF8);
}

void sqlite_bind_or_null(sqlite3_stmt *s, int at, row_text text) {
    if (text.length) sqlite_bind(s, at, text);
    else sqlite3_bind_null(s, at);
}

void sqlite_bind_name(sqlite3_stmt *s, const doc_name *n) {
    sqlite_bind(s, 1, text_of_bytes(n->space, n->space_length));
    sqlite_bind(s, 2, text_of_bytes(n->id, n->id_length));
    sqlite3_bind_text(s, 3, scope_word(n->scope), -1, SQLITE_STATIC);
    sqlite_bind(s, 4, text_of_bytes(n->instance, n->instance_length));
}

const char *sqlite_word(sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

hd_status sqlite_text(sqlite3_stmt *s, int column, row_text *out) {
    assert(column < sqlite3_column_count(s));
    bool null = sqlite3_column_type(s, column) == SQLITE_NULL;
    out->bytes = (const char *)sqlite3_column_text(s, column);
    out->length = (size_t)sqlite3_column_bytes(s, column);
    return out->bytes ? HD_OK : null ? HD_CORRUPT : HD_NOMEM;
}

hd_status sqlite_bytes(sqlite3_stmt *s, int column, row_text *out) {
    assert(column < sqlite3_column_count(s));
    out->bytes = sqlite3_column_blob(s, column);
    out->length = (size_t)sqlite3_column_bytes(s, column);
    return out->length && !out->bytes ? HD_NOMEM : HD_OK;
}

doc_name sqlite_name(sqlite3_stmt *s, int column) {
    return (doc_name){ .space = sqlite_word(s, column),
                       .space_length = (uint32_t)sqlite3_column_bytes(s, column),
                       .scope = scope_of_word(sqlite_word(s, column + 1)),
                       .instance = sqlite_word(s, column + 2),
                       .instance_length = (uint32_t)sqlite3_column_bytes(s, column + 2),
                       .id = sqlite_word(s, column + 3),
                       .id_length = (uint32_t)sqlite3_column_bytes(s, column + 3) };
}
