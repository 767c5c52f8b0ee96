/* heads.c -- the tables head, large and patch. */
#include "store/sqlite/store.h"

#include "store/log/columns.h"
#include "store/log/head.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- One head ------------------------------------------------------------------------------ */

static head_row take_numbers(sqlite3_stmt *s) {
    return (head_row){ .exists = true,
                       .doc = sqlite3_column_int64(s, HEAD_DOC),
                       .seq = sqlite3_column_int64(s, HEAD_SEQ),
                       .meta_seq = sqlite3_column_int64(s, HEAD_META_SEQ),
                       .guarded = sqlite3_column_int(s, HEAD_IS_GUARDED) != 0,
                       .large = sqlite3_column_int(s, HEAD_IS_LARGE) != 0,
                       .size = sqlite3_column_int64(s, HEAD_SIZE),
                       .patched = sqlite3_column_int64(s, HEAD_PATCHED),
                       .kind = "" };
}

/* Steps the statement to the row of this name, if there is one. The caller resets the statement. */
static hd_status seek(file *f, file_sql which, const doc_name *name, sqlite3_stmt **out,
                      bool *found) {
    sqlite3_stmt *s = *out = file_sql_get(f, which);
    *found = false;
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    assert(!sqlite3_stmt_busy(s)); /* one row at a time */
    sqlite_bind_name(s, name);
    int rc = sqlite3_step(s);
    *found = rc == SQLITE_ROW;
    return file_status(rc);
}

hd_status sqlite_find_head(log_store *s, const doc_name *name, head_row *out) {
    sqlite3_stmt *select;
    bool found;
    *out = (head_row){ .kind = "" };
    hd_status status = seek(file_of(s), SQL_HEAD_SEQ, name, &select, &found);
    if (!status && found) *out = take_numbers(select);
    if (select) sqlite3_reset(select);
    return status;
}

/* A document without a row is absent; unless the index, or the page with the row, is damaged. Then
 * operations of the log would be folded over nothing, and look good. */
static hd_status verify_none(log_store *s, const doc_name *name) {
    sqlite3_stmt *select;
    bool found, none = false;
    hd_status status = seek(file_of(s), SQL_HEAD_NONE, name, &select, &found);
    if (!status && found) none = sqlite3_column_int(select, 0) != 0;
    if (select) sqlite3_reset(select);
    return status || none ? status
                          : head_damaged(s, name, 0, "it is missing, or its index is wrong");
}

static bool is_text(sqlite3_stmt *s, int column, const char *text, uint32_t length) {
    return (uint32_t)sqlite3_column_bytes(s, column) == length &&
           memcmp(sqlite_word(s, column), text, length) == 0;
}

/* An index that is damaged leads to the row of another document. */
static bool is_named(sqlite3_stmt *s, const doc_name *n) {
    return is_text(s, HEAD_ID, n->id, n->id_length) &&
           is_text(s, HEAD_SPACE, n->space, n->space_length) &&
           is_text(s, HEAD_INSTANCE, n->instance, n->instance_length) &&
           strcmp(sqlite_word(s, HEAD_SCOPE), scope_word(n->scope)) == 0;
}

hd_status sqlite_read_head(log_store *s, const doc_name *name, head_row *out) {
    sqlite3_stmt *select;
    bool found;
    *out = (head_row){ .kind = "" };
    hd_status status = seek(file_of(s), SQL_HEAD_GET, name, &select, &found);
    if (status || !found) return status ? status : verify_none(s, name);
    if (!is_named(select, name))
        return head_damaged(s, name, sqlite3_column_int64(select, HEAD_DOC), "it has another name");
    *out = take_numbers(select);
    out->kind = sqlite_word(select, HEAD_KIND);
    out->hash = (uint64_t)sqlite3_column_int64(select, HEAD_HASH);
    status = sqlite_bytes(select, HEAD_VALUE, &out->value);
    return status ? status : sqlite_bytes(select, HEAD_META, &out->meta);
}

void sqlite_end_head(log_store *s) {
    sqlite3_stmt *select = file_of(s)->statements[SQL_HEAD_GET];
    if (select) sqlite3_reset(select);
}

hd_status sqlite_put_head(log_store *s, const doc_name *name, const head_row *row, int64_t *doc) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && (!row->large || !row->value.length));
    assert(row->large || !row->patched);
    sqlite3_stmt *put = file_sql_get(f, SQL_HEAD_PUT);
    if (put) {
        sqlite_bind_name(put, name);
        if (row->exists) sqlite3_bind_int64(put, 5, row->doc);
        sqlite3_bind_text(put, 6, row->kind, -1, SQLITE_STATIC);
        sqlite3_bind_int64(put, 7, row->seq);
        sqlite3_bind_int64(put, 8, row->meta_seq);
        sqlite3_bind_int(put, 9, row->guarded);
        sqlite3_bind_int(put, 10, row->large);
        sqlite3_bind_int64(put, 11, row->size);
        sqlite3_bind_int64(put, 12, row->patched);
        sqlite3_bind_int64(put, 13, (sqlite3_int64)row->hash);
        sqlite_bind_or_null(put, 14, row->meta);
        sqlite_bind_or_null(put, 15, row->value);
    }
    hd_status status = sqlite_finish(f, put);
    *doc = row->exists ? row->doc : sqlite3_last_insert_rowid(f->db);
    return status;
}

hd_status sqlite_touch_head(log_store *s, int64_t doc, uint64_t seq, uint64_t patched) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && seq && patched);
    sqlite3_stmt *update = file_sql_get(f, SQL_HEAD_PATCHED);
    if (update) {
        sqlite3_bind_int64(update, 1, doc);
        sqlite3_bind_int64(update, 2, (sqlite3_int64)seq);
        sqlite3_bind_int64(update, 3, (sqlite3_int64)patched);
    }
    return sqlite_finish(f, update);
}

static hd_status drop(log_store *s, int64_t doc, file_sql which) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    sqlite3_stmt *d = file_sql_get(f, which);
    if (d) sqlite3_bind_int64(d, 1, doc);
    return sqlite_finish(f, d);
}

hd_status sqlite_drop_head(log_store *s, int64_t doc) { return drop(s, doc, SQL_HEAD_DROP); }
hd_status sqlite_drop_large(log_store *s, int64_t doc) { return drop(s, doc, SQL_LARGE_DROP); }
hd_status sqlite_drop_patches(log_store *s, int64_t doc) { return drop(s, doc, SQL_PATCH_DROP); }

/* ---- Large values and patches ---------------------------------------------------------------- */

typedef struct part_reading {
    head_part_fn fn;
    void *ctx;
    int hash; /* the column of the hash; the text is behind it, the seq of a patch before it */
    bool found;
} part_reading;

static hd_status tell_part(void *ctx, sqlite3_stmt *s, bool *stop) {
    part_reading *g = ctx;
    head_part part = { .seq = g->hash ? sqlite3_column_int64(s, 0) : 0,
                       .hash = (uint64_t)sqlite3_column_int64(s, g->hash) };
    g->found = true;
    hd_status status = sqlite_bytes(s, g->hash + 1, &part.text);
    return status ? status : g->fn(g->ctx, &part, stop);
}

static hd_status read_parts(log_store *s, file_sql which, int64_t doc, part_reading *g) {
    sqlite3_stmt *select = file_sql_get(file_of(s), which);
    if (select) sqlite3_bind_int64(select, 1, doc);
    return sqlite_each(file_of(s), select, tell_part, g);
}

hd_status sqlite_read_large(log_store *s, int64_t doc, head_part_fn fn, void *ctx) {
    part_reading g = { fn, ctx, 0, false };
    hd_status status = read_parts(s, SQL_LARGE_GET, doc, &g);
    return status || g.found ? status : HD_NOT_FOUND;
}

hd_status sqlite_each_patch(log_store *s, int64_t doc, head_part_fn fn, void *ctx) {
    part_reading g = { fn, ctx, 1, false };
    return read_parts(s, SQL_PATCH_GET, doc, &g);
}

hd_status sqlite_put_large(log_store *s, int64_t doc, uint64_t hash, row_text value) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && value.length);
    sqlite3_stmt *put = file_sql_get(f, SQL_LARGE_PUT);
    if (put) {
        sqlite3_bind_int64(put, 1, doc);
        sqlite3_bind_int64(put, 2, (sqlite3_int64)hash);
        sqlite_bind(put, 3, value);
    }
    return sqlite_finish(f, put);
}

hd_status sqlite_put_patch(log_store *s, int64_t doc, const head_part *patch) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && patch->text.length && patch->seq > 0);
    sqlite3_stmt *put = file_sql_get(f, SQL_PATCH_PUT);
    if (put) {
        sqlite3_bind_int64(put, 1, doc);
        sqlite3_bind_int64(put, 2, patch->seq);
        sqlite3_bind_int64(put, 3, (sqlite3_int64)patch->hash);
        sqlite_bind(put, 4, patch->text);
    }
    return sqlite_finish(f, put);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

typedef struct item_reading {
    head_item_fn fn;
    void *ctx;
    row_text space;
    int kind, seq; /* columns; kind is 0 where there is none */
    bool meta;
} item_reading;

/* id, scope, instance come first. */
static hd_status tell_item(void *ctx, sqlite3_stmt *s, bool *stop) {
    const item_reading *g = ctx;
    row_text id, scope, instance;
    hd_status status = sqlite_text(s, 0, &id);
    if (!status) status = sqlite_text(s, 1, &scope);
    if (!status) status = sqlite_text(s, 2, &instance);
    if (status) return status;
    head_item item = { .name = name_of_texts(g->space, id, scope.bytes, instance, g->meta),
                       .kind = g->kind ? sqlite_word(s, g->kind) : "",
                       .seq = sqlite3_column_int64(s, g->seq) };
    return g->fn(g->ctx, &item, stop);
}

hd_status sqlite_list_heads(log_store *s, row_text space, const char *kind, const char *from,
                            head_item_fn fn, void *ctx) {
    assert(from && (!kind || *kind)); /* no document has the kind "" */
    item_reading g = { fn, ctx, space, 3, 4, false };
    sqlite3_stmt *select = file_sql_get(file_of(s), kind ? SQL_LIST_KIND : SQL_LIST_ALL);
    if (select) {
        sqlite_bind(select, 1, space);
        sqlite3_bind_text(select, 2, from, -1, SQLITE_STATIC);
        if (kind) sqlite3_bind_text(select, 3, kind, -1, SQLITE_STATIC);
    }
    return sqlite_each(file_of(s), select, tell_item, &g);
}

hd_status sqlite_heads_since(log_store *s, row_text space, uint64_t seq, bool meta, head_item_fn fn,
                             void *ctx) {
    file *f = file_of(s);
    if (meta && f->format < META_FORMAT)
        return HD_OK; /* nothing that such a file keeps reads metadata */
    item_reading g = { fn, ctx, space, 0, 3, meta };
    sqlite3_stmt *select = file_sql_get(f, meta ? SQL_METAS_SINCE : SQL_HEADS_SINCE);
    if (select) {
        sqlite_bind(select, 1, space);
        sqlite3_bind_int64(select, 2, (sqlite3_int64)seq);
    }
    return sqlite_each(f, select, tell_item, &g);
}

typedef struct named_reading {
    head_item_fn fn;
    void *ctx;
    bool once; /* the first row alone */
} named_reading;

static hd_status tell_named(void *ctx, sqlite3_stmt *s, bool *stop) {
    const named_reading *g = ctx;
    head_item item = { .name = sqlite_name(s, 0),
                       .kind = sqlite_word(s, 6),
                       .doc = sqlite3_column_int64(s, 4),
                       .seq = sqlite3_column_int64(s, 5) };
    *stop = g->once;
    return g->fn(g->ctx, &item, stop);
}

hd_status sqlite_find_patched(log_store *s, int64_t after, head_item_fn fn, void *ctx) {
    named_reading g = { fn, ctx, true };
    char sql[160];
    snprintf(sql, sizeof sql,
             "select space, scope, instance, id, doc, seq, kind from head"
             " where patched > 0 and doc > %lld order by doc",
             (long long)after);
    return sqlite_each_of(file_of(s), sql, tell_named, &g);
}

hd_status sqlite_each_head(log_store *s, head_item_fn fn, void *ctx) {
    named_reading g = { fn, ctx, false };
    return sqlite_each_of(file_of(s), "select space, scope, instance, id, doc, seq, kind from head",
                          tell_named, &g);
}
