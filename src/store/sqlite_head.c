/* sqlite_head.c -- reading documents. */
#include "store/sqlite_head.h"

#include "base/hash.h"

static void bind_text(sqlite3_stmt *s, int at, const char *text, uint32_t length) {
    sqlite3_bind_text(s, at, text, (int)length, SQLITE_STATIC);
}

void bind_name(sqlite3_stmt *s, const doc_name *n) {
    bind_text(s, 1, n->space, n->space_length);
    bind_text(s, 2, n->id, n->id_length);
    sqlite3_bind_text(s, 3, scope_word(n->scope), -1, SQLITE_STATIC);
    bind_text(s, 4, n->instance, n->instance_length);
}

doc_name name_of_keys(const struct key *space, hd_scope scope, const struct key *instance,
                      const struct key *id, bool meta) {
    return (doc_name){ .space = key_bytes(space),
                       .space_length = space->length,
                       .instance = instance ? key_bytes(instance) : "",
                       .instance_length = instance ? instance->length : 0,
                       .id = key_bytes(id),
                       .id_length = id->length,
                       .scope = scope,
                       .meta = meta };
}

uint64_t head_hash(const char *value, size_t value_length, const char *meta, size_t meta_length) {
    return hash_bytes(meta, meta_length, hash_bytes(value, value_length, FILE_HASH_SEED));
}

static hd_status take_head(sqlite3_stmt *s, stored_head *out) {
    *out = (stored_head){ .exists = true,
                          .doc = sqlite3_column_int64(s, 0),
                          .guarded = sqlite3_column_int(s, 4) != 0,
                          .large = sqlite3_column_int(s, 5) != 0,
                          .size = (uint64_t)sqlite3_column_int64(s, 6),
                          .patched = (uint64_t)sqlite3_column_int64(s, 7) };
    hd_status status = file_column_number(s, 2, &out->seq);
    return status ? status : file_column_number(s, 3, &out->meta_seq);
}

/* Stands on the row, or not; the caller resets. */
static hd_status seek(file *f, file_sql which, const doc_name *name, sqlite3_stmt **out,
                      bool *found) {
    sqlite3_stmt *s = *out = file_sql_get(f, which);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    bind_name(s, name);
    int rc = sqlite3_step(s);
    *found = rc == SQLITE_ROW;
    return file_status(rc);
}

hd_status head_find(file *f, const doc_name *name, stored_head *out) {
    *out = (stored_head){ 0 };
    sqlite3_stmt *s;
    bool found;
    hd_status status = seek(f, SQL_HEAD_SEQ, name, &s, &found);
    if (!status && found) status = take_head(s, out);
    out->has_value = out->exists && out->size > 0;
    if (s) sqlite3_reset(s);
    return status;
}

/* The value of a text column; absent for null. */
static hd_status column_value(hd_heap *heap, sqlite3_stmt *s, int column, hd_value *out) {
    *out = value_absent();
    if (sqlite3_column_type(s, column) == SQLITE_NULL) return HD_OK;
    const char *text = sqlite3_column_blob(s, column); /* as text it would be copied for a NUL */
    if (!text) return HD_NOMEM;
    hd_value v = log_json_read(heap, text, (size_t)sqlite3_column_bytes(s, column));
    if (value_is_failed(v)) return hd_value_status(v) == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    *out = v;
    return HD_OK;
}

static hd_status fold_patches(file *f, hd_heap *heap, int64_t doc, hd_value *value) {
    sqlite3_stmt *s = file_sql_get(f, SQL_PATCH_GET);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, doc);
    int rc;
    hd_status status = HD_OK;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        hd_value ops;
        status = column_value(heap, s, 2, &ops);
        if (!status) status = log_fold(heap, ops, value);
        value_unref(ops);
    }
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

hd_status large_load(file *f, hd_heap *heap, int64_t doc, hd_value *out) {
    *out = value_absent();
    sqlite3_stmt *s = file_sql_get(f, SQL_LARGE_GET);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, doc);
    int rc = sqlite3_step(s);
    hd_status status = rc == SQLITE_DONE ? HD_CORRUPT : file_status(rc);
    if (!status) status = column_value(heap, s, 1, out);
    sqlite3_reset(s);
    if (!status) status = fold_patches(f, heap, doc, out);
    if (status) {
        value_unref(*out);
        *out = value_absent();
    }
    return status;
}

/* Only the columns that are needed: this is what every load comes down to. */
hd_status head_load(file *f, hd_heap *heap, const doc_name *name, hd_value *out, uint64_t *seq) {
    *out = value_absent();
    *seq = 0;
    sqlite3_stmt *s;
    bool found;
    int64_t large = 0;
    hd_status status = seek(f, name->meta ? SQL_HEAD_META : SQL_HEAD_VALUE, name, &s, &found);
    if (!status && found) {
        status = file_column_number(s, 1, seq);
        if (!name->meta && sqlite3_column_int(s, 2)) large = sqlite3_column_int64(s, 3);
        else if (!status) status = column_value(heap, s, 0, out);
    }
    if (s) sqlite3_reset(s);
    return status || !large ? status : large_load(f, heap, large, out);
}

/* ---- With the tail ----------------------------------------------------------------------- */

/* Up to `seq`: while a row is being told, its later commits have not happened yet. */
static hd_status fold_row(hd_heap *heap, const log_row *row, const doc_name *name, uint64_t seq,
                          hd_value *value) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0; k < log_commit_docs(made) && !status; k++) {
            log_doc doc;
            if (!log_commit_doc(made, k, &doc)) return HD_CORRUPT;
            if (doc.seq <= seq && doc_name_equal(&doc.name, name))
                status = log_fold(heap, log_doc_op_list(&doc), value);
        }
    }
    return status;
}

static hd_status fold_at(file *f, hd_heap *heap, const tail_at *at, const doc_name *name,
                         hd_value *value) {
    sqlite3_stmt *s = file_sql_get(f, SQL_LOG_ROW);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, (sqlite3_int64)at->row);
    int rc = sqlite3_step(s);
    hd_status status = rc == SQLITE_DONE ? HD_CORRUPT : file_status(rc);
    log_row r = { 0 };
    if (!status) status = log_row_read(heap, s, &r);
    if (!status) status = fold_row(heap, &r, name, at->seq, value);
    log_row_fini(heap, &r);
    sqlite3_reset(s);
    return status;
}

hd_status document_load(file *f, hd_heap *heap, const tail *t, uint64_t checkpoint,
                        uint64_t through, const doc_name *name, hd_value *out, uint64_t *seq) {
    hd_status status = head_load(f, heap, name, out, seq);
    const tail_doc *changes = status ? NULL : tail_find(t, name);
    for (uint32_t i = 0; changes && i < changes->at.count && !status; i++) {
        const tail_at *at = &changes->at.items[i];
        if (at->row <= checkpoint || at->row > through) continue;
        status = fold_at(f, heap, at, name, out);
        *seq = at->seq;
    }
    if (status) {
        value_unref(*out);
        *out = value_absent();
    }
    return status;
}
