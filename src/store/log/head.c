/* head.c -- reading documents: every text is compared with its hash before it is used. */
#include "store/log/head.h"

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

uint64_t head_texts_hash(row_text value, row_text meta) {
    return hash_bytes(meta.bytes, meta.length,
                      hash_bytes(value.bytes, value.length, FILE_HASH_SEED));
}

uint64_t head_hash(const doc_name *n, const stored_head *h, const char *kind, row_text value,
                   row_text meta) {
    const uint64_t numbers[] = {
        h->guarded, h->large, h->size, h->meta_seq, h->large ? 0 : h->seq, (uint64_t)n->scope
    };
    uint64_t hash = hash_bytes(n->id, n->id_length, head_texts_hash(value, meta));
    hash = hash_bytes(n->space, n->space_length, hash);
    hash = hash_bytes(n->instance, n->instance_length, hash);
    hash = hash_bytes(kind, strlen(kind), hash);
    return hash_bytes(numbers, sizeof numbers, hash);
}

/* ---- Rows, verified ------------------------------------------------------------------------ */

/* Columns of SQL_HEAD_GET, and its first ones of SQL_HEAD_SEQ. */
enum {
    HEAD_DOC,
    HEAD_KIND,
    HEAD_SEQ,
    HEAD_META_SEQ,
    HEAD_IS_GUARDED,
    HEAD_IS_LARGE,
    HEAD_SIZE,
    HEAD_PATCHED,
    HEAD_HASH,
    HEAD_META,
    HEAD_VALUE,
    HEAD_SPACE,
    HEAD_ID,
    HEAD_SCOPE,
    HEAD_INSTANCE
};

hd_status head_damaged(file *f, const doc_name *name, int64_t doc, const char *how) {
    return file_damaged(f, "head row %lld (%.*s/%.*s): %s", (long long)doc, (int)name->space_length,
                        name->space, (int)name->id_length, name->id, how);
}

static hd_status take_head(file *f, const doc_name *name, sqlite3_stmt *s, stored_head *out) {
    *out = (stored_head){ .exists = true,
                          .doc = sqlite3_column_int64(s, HEAD_DOC),
                          .guarded = sqlite3_column_int(s, HEAD_IS_GUARDED) != 0,
                          .large = sqlite3_column_int(s, HEAD_IS_LARGE) != 0 };
    hd_status status = file_column_number(s, HEAD_SEQ, &out->seq);
    if (!status) status = file_column_number(s, HEAD_META_SEQ, &out->meta_seq);
    if (!status) status = file_column_number(s, HEAD_SIZE, &out->size);
    if (!status) status = file_column_number(s, HEAD_PATCHED, &out->patched);
    if (!status && out->patched && !out->large) status = HD_CORRUPT;
    out->has_value = out->size > 0;
    return status ? head_damaged(f, name, out->doc, "a number is out of range") : HD_OK;
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
    if (!status && found) status = take_head(f, name, s, out);
    if (s) sqlite3_reset(s);
    return status;
}

/* A column's text; of length 0 for null. As a blob: as text it would be copied for a NUL. HD_NOMEM. */
static hd_status column_text(sqlite3_stmt *s, int column, row_text *out) {
    out->bytes = sqlite3_column_blob(s, column);
    out->length = (size_t)sqlite3_column_bytes(s, column);
    return out->length && !out->bytes ? HD_NOMEM : HD_OK;
}

static const char *column_word(sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

static bool is_text(sqlite3_stmt *s, int column, const char *text, uint32_t length) {
    return (uint32_t)sqlite3_column_bytes(s, column) == length &&
           memcmp(column_word(s, column), text, length) == 0;
}

/* An index that is damaged leads to the row of another document. */
static bool is_named(sqlite3_stmt *s, const doc_name *n) {
    return is_text(s, HEAD_ID, n->id, n->id_length) &&
           is_text(s, HEAD_SPACE, n->space, n->space_length) &&
           is_text(s, HEAD_INSTANCE, n->instance, n->instance_length) &&
           strcmp(column_word(s, HEAD_SCOPE), scope_word(n->scope)) == 0;
}

/* Stands on the row; texts are borrowed from the statement. Nothing of a row is used before its hash and
 * its size are found to be right. */
static hd_status take_row(file *f, const doc_name *name, sqlite3_stmt *s, stored_head *head,
                          row_text *value, row_text *meta) {
    hd_status status = take_head(f, name, s, head);
    if (!status) status = column_text(s, HEAD_VALUE, value);
    if (!status) status = column_text(s, HEAD_META, meta);
    if (status) return status;
    uint64_t hash = (uint64_t)sqlite3_column_int64(s, HEAD_HASH);
    if (!is_named(s, name)) return head_damaged(f, name, head->doc, "it has another name");
    if (hash != head_hash(name, head, column_word(s, HEAD_KIND), *value, *meta) &&
        hash != head_texts_hash(*value, *meta))
        return head_damaged(f, name, head->doc, "its hash is wrong");
    if (head->large ? value->length != 0 : value->length != head->size)
        return head_damaged(f, name, head->doc, "its size is wrong");
    return HD_OK;
}

static hd_status parse(file *f, hd_heap *heap, const doc_name *name, int64_t doc, row_text text,
                       hd_value *out) {
    *out = value_absent();
    if (!text.length) return HD_OK;
    hd_value v = log_json_read(heap, text.bytes, text.length);
    if (!value_is_failed(v)) *out = v;
    else if (hd_value_status(v) == HD_NOMEM) return HD_NOMEM;
    else return head_damaged(f, name, doc, "it cannot be read as JSON");
    return HD_OK;
}

/* A document without a row is absent; unless the index, or the page with the row, is damaged. Then
 * operations of the log would be folded over nothing, and look good. */
static hd_status verify_none(file *f, const doc_name *name) {
    sqlite3_stmt *s;
    bool found, none = false;
    hd_status status = seek(f, SQL_HEAD_NONE, name, &s, &found);
    if (!status && found) none = sqlite3_column_int(s, 0) != 0;
    if (s) sqlite3_reset(s);
    return status || none ? status
                          : head_damaged(f, name, 0, "it is missing, or its index is wrong");
}

hd_status head_read(file *f, const doc_name *name, stored_head *out, head_texts *texts) {
    *out = (stored_head){ 0 };
    texts->value = texts->meta = (row_text){ 0 };
    texts->kind = "";
    bool found;
    hd_status status = seek(f, SQL_HEAD_GET, name, &texts->statement, &found);
    if (status || !found) return status ? status : verify_none(f, name);
    texts->kind = column_word(texts->statement, HEAD_KIND);
    return take_row(f, name, texts->statement, out, &texts->value, &texts->meta);
}

void head_texts_end(head_texts *texts) {
    if (texts->statement) sqlite3_reset(texts->statement);
}

/* ---- Large values -------------------------------------------------------------------------- */

/* Columns of SQL_LARGE_GET, and of SQL_PATCH_GET with a seq in front: a hash, and its text. */
static hd_status take_text(file *f, const doc_name *name, int64_t doc, sqlite3_stmt *s, int column,
                           row_text *out) {
    hd_status status = column_text(s, column + 1, out);
    if (status) return status;
    if (out->length &&
        file_hash(out->bytes, out->length) == (uint64_t)sqlite3_column_int64(s, column))
        return HD_OK;
    return head_damaged(f, name, doc,
                        column ? "the hash of a patch is wrong"
                               : "the hash of its large value is wrong");
}

typedef struct patching {
    uint64_t bytes, seq; /* of the patches so far */
} patching;

static hd_status fold_patch(file *f, hd_heap *heap, const doc_name *name, int64_t doc,
                            sqlite3_stmt *s, patching *p, hd_value *value) {
    row_text text;
    hd_value ops = value_absent();
    hd_status status = take_text(f, name, doc, s, 1, &text);
    if (!status) status = parse(f, heap, name, doc, text, &ops);
    if (!status) status = log_fold(heap, ops, value);
    if (status == HD_CORRUPT && !value_is_absent(ops))
        status = head_damaged(f, name, doc, "a patch is malformed");
    value_unref(ops);
    p->bytes += text.length;
    p->seq = (uint64_t)sqlite3_column_int64(s, 0);
    return status;
}

/* All patches that the head row speaks of, and no others. */
static hd_status fold_patches(file *f, hd_heap *heap, const doc_name *name, const stored_head *head,
                              hd_value *value) {
    sqlite3_stmt *s = file_sql_get(f, SQL_PATCH_GET);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, head->doc);
    patching p = { 0 };
    int rc = SQLITE_DONE;
    hd_status status = HD_OK;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW)
        status = fold_patch(f, heap, name, head->doc, s, &p, value);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    if (status) return status;
    if (p.bytes != head->patched || (p.bytes && p.seq != head->seq))
        return head_damaged(f, name, head->doc, "patches are missing, or too many");
    return HD_OK;
}

static hd_status load_unpatched(file *f, hd_heap *heap, const doc_name *name,
                                const stored_head *head, hd_value *out) {
    sqlite3_stmt *s = file_sql_get(f, SQL_LARGE_GET);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, head->doc);
    int rc = sqlite3_step(s);
    row_text text = { 0 };
    hd_status status = file_status(rc);
    if (rc == SQLITE_DONE) status = head_damaged(f, name, head->doc, "its large value is missing");
    if (!status) status = take_text(f, name, head->doc, s, 0, &text);
    if (!status && text.length != head->size)
        status = head_damaged(f, name, head->doc, "the size of its large value is wrong");
    if (!status) status = parse(f, heap, name, head->doc, text, out);
    sqlite3_reset(s);
    return status;
}

hd_status large_load(file *f, hd_heap *heap, const doc_name *name, const stored_head *head,
                     hd_value *out) {
    *out = value_absent();
    if (!head->large) return head_damaged(f, name, head->doc, "it has patches, and no large value");
    hd_status status = load_unpatched(f, heap, name, head, out);
    if (!status) status = fold_patches(f, heap, name, head, out);
    if (status) {
        value_unref(*out);
        *out = value_absent();
    }
    return status;
}

hd_status head_load(file *f, hd_heap *heap, const doc_name *name, hd_value *out, uint64_t *seq) {
    *out = value_absent();
    *seq = 0;
    stored_head head;
    head_texts texts;
    hd_status status = head_read(f, name, &head, &texts);
    if (!status && head.exists) {
        *seq = name->meta ? head.meta_seq : head.seq;
        status = parse(f, heap, name, head.doc, name->meta ? texts.meta : texts.value, out);
    }
    head_texts_end(&texts);
    bool large = !status && head.large && !name->meta;
    return large ? large_load(f, heap, name, &head, out) : status;
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
    hd_status status = file_status(rc);
    log_row r = { 0 };
    if (rc == SQLITE_DONE) status = log_row_damaged(f, at->row, "it is missing");
    if (!status) status = log_row_read(f, heap, s, &r);
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
