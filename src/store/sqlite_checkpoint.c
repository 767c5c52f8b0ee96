/* sqlite_checkpoint.c -- the log is the truth; head rows are a cache of it, brought up to date here.
 *
 * One pass over the tail's rows folds each changed document in memory; then each is written once,
 * however often it changed. A large document is not even loaded when its changes are small against
 * its size: its operations become a patch behind it, and only when patches have grown to half of it
 * is it written anew, so bytes written stay in proportion to bytes changed. */
#include "store/sqlite_checkpoint.h"

#include "store/sqlite_basis.h"
#include "store/sqlite_readers.h"

/* Automatic pruning waits for this much: small lags of other processes then never meet a gap. */
#define KEPT_MAX (UINT64_C(4) << 20)

enum { FOLD_NONE, FOLD_VALUE, FOLD_PATCH };

/* What a document of the tail has become. */
typedef struct fold {
    int mode;
    hd_value value;  /* FOLD_VALUE: owned */
    json_buffer ops; /* FOLD_PATCH: operations with commas between */
    uint64_t seq;
    bool guarded; /* created under "absent" in this tail */
} fold;

typedef struct folding {
    writer *w;
    bool full;
    fold *folds; /* one for each document of the tail, by index */
    uint32_t count;
    basis_fold basis;        /* what the tail says of nodes */
    json_buffer value, meta; /* texts of the row under way */
} folding;

/* ---- Folding --------------------------------------------------------------------------------- */

static fold *fold_of(folding *g, const doc_name *name) {
    const tail_doc *d = tail_find(&g->w->tail, name);
    return d ? &g->folds[d - g->w->tail.docs.items] : NULL;
}

static void become_value(fold *f, hd_value v) {
    json_buffer_fini(&f->ops);
    value_unref(f->value);
    f->mode = FOLD_VALUE;
    f->value = v;
}

static hd_status start_fold(folding *g, fold *f, const doc_name *name) {
    stored_head stored;
    writer *w = g->w;
    hd_status status = head_find(&w->file, name, &stored);
    if (status) return status;
    if (stored.large && !name->meta && !g->full) {
        f->mode = FOLD_PATCH;
        return HD_OK;
    }
    hd_value v;
    uint64_t seq;
    status = head_load(&w->file, w->heap, name, &v, &seq);
    if (!status) become_value(f, v);
    return status;
}

/* Appends a printed list without its brackets. */
static hd_status gather_ops(fold *f, hd_value ops) {
    json_buffer *b = &f->ops;
    size_t before = b->length;
    hd_status status = json_print_to(b, ops, HD_JSON_COMPACT);
    if (status) return status;
    b->length--;
    if (before) b->bytes[before] = ',';
    else memmove(b->bytes, b->bytes + 1, --b->length);
    return HD_OK;
}

static hd_status fold_doc(folding *g, const log_doc *doc) {
    fold *f = fold_of(g, &doc->name);
    if (!f) return HD_CORRUPT;
    hd_value ops = log_doc_op_list(doc);
    f->seq = doc->seq;
    f->guarded |= doc->guarded;
    hd_status status = HD_OK;
    if (log_ops_start_anew(ops)) become_value(f, value_absent());
    else if (f->mode == FOLD_NONE) status = start_fold(g, f, &doc->name);
    if (status) return status;
    return f->mode == FOLD_PATCH ? gather_ops(f, ops) : log_fold(g->w->heap, ops, &f->value);
}

static hd_status fold_row(folding *g, const log_row *row) {
    for (size_t i = 0; i < log_row_commits(row); i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0; k < log_commit_docs(made); k++) {
            log_doc doc;
            hd_status status = log_commit_doc(made, k, &doc) ? fold_doc(g, &doc) : HD_CORRUPT;
            if (status) return status;
        }
        hd_status status = basis_fold_commit(&g->basis, made, row->row);
        if (status) return status;
    }
    return HD_OK;
}

static hd_status fold_tail(folding *g) {
    writer *w = g->w;
    sqlite3_stmt *s = file_sql_get(&w->file, SQL_LOG_AFTER);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_int64(s, 1, (sqlite3_int64)w->checkpoint);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        log_row row;
        status = log_row_read(w->heap, s, &row);
        if (!status) status = fold_row(g, &row);
        log_row_fini(w->heap, &row);
    }
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static hd_status drop_rows(file *f, int64_t doc, file_sql which) {
    sqlite3_stmt *s = file_sql_get(f, which);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, doc);
    return file_finish(f, s);
}

/* Half of the document: then writing it anew costs no more than what was written for its changes. */
static bool patch_pays(const stored_head *was, const fold *f) {
    return was->patched + f->ops.length <= was->size / 2;
}

static hd_status put_patch(folding *g, const stored_head *was, fold *f) {
    file *to = &g->w->file;
    json_buffer *b = &f->ops;
    if (!json_buffer_grow(b, 2)) return HD_NOMEM;
    memmove(b->bytes + 1, b->bytes, b->length);
    b->bytes[0] = '[';
    b->bytes[b->length + 1] = ']';
    b->length += 2;
    sqlite3_stmt *s = file_sql_get(to, SQL_PATCH_PUT);
    if (!s) return file_status(sqlite3_extended_errcode(to->db));
    sqlite3_bind_int64(s, 1, was->doc);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)f->seq);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)file_hash(b->bytes, b->length));
    sqlite3_bind_text64(s, 4, b->bytes, b->length, SQLITE_STATIC, SQLITE_UTF8);
    hd_status status = file_finish(to, s);
    if (status || !(s = file_sql_get(to, SQL_HEAD_PATCHED))) return status ? status : HD_NOMEM;
    sqlite3_bind_int64(s, 1, was->doc);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)f->seq);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(was->patched + b->length));
    return file_finish(to, s);
}

/* The patch has grown too long: load, fold, and go on as a value. */
static hd_status unpatch(folding *g, const stored_head *was, fold *f) {
    hd_value v = value_absent(), ops;
    writer *w = g->w;
    hd_status status = large_load(&w->file, w->heap, was->doc, &v);
    json_buffer *b = &f->ops;
    if (!status && !json_buffer_grow(b, 2)) status = HD_NOMEM;
    if (!status) {
        memmove(b->bytes + 1, b->bytes, b->length);
        b->bytes[0] = '[';
        b->bytes[b->length + 1] = ']';
        ops = log_json_read(w->heap, b->bytes, b->length + 2);
        status = value_is_failed(ops) ? HD_NOMEM : log_fold(w->heap, ops, &v);
        value_unref(ops);
    }
    if (status) value_unref(v);
    else become_value(f, v);
    return status;
}

static const char *kind_of(hd_value meta) {
    return hd_value_as_text(hd_value_at(meta, "kind"), "");
}

/* What a row will say. Texts with length 0 are null. */
typedef struct new_head {
    stored_head was;
    const doc_name *name;
    uint64_t seq, meta_seq;
    bool guarded, large;
    size_t size;
    uint64_t patched;
    char kind[64];
} new_head;

static void bind_or_null(sqlite3_stmt *s, int at, const json_buffer *b) {
    if (b->length) sqlite3_bind_text64(s, at, b->bytes, b->length, SQLITE_STATIC, SQLITE_UTF8);
    else sqlite3_bind_null(s, at);
}

static hd_status put_large(folding *g, int64_t doc) {
    file *f = &g->w->file;
    sqlite3_stmt *s = file_sql_get(f, SQL_LARGE_PUT);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_int64(s, 1, doc);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)file_hash(g->value.bytes, g->value.length));
    bind_or_null(s, 3, &g->value);
    hd_status status = file_finish(f, s);
    return status ? status : drop_rows(f, doc, SQL_PATCH_DROP);
}

static hd_status put_head(folding *g, const new_head *h, int64_t *doc) {
    file *f = &g->w->file;
    sqlite3_stmt *s = file_sql_get(f, SQL_HEAD_PUT);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    size_t inline_length = h->large ? 0 : g->value.length;
    bind_name(s, h->name);
    if (h->was.exists) sqlite3_bind_int64(s, 5, h->was.doc);
    sqlite3_bind_text(s, 6, h->kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 7, (sqlite3_int64)h->seq);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)h->meta_seq);
    sqlite3_bind_int(s, 9, h->guarded);
    sqlite3_bind_int(s, 10, h->large);
    sqlite3_bind_int64(s, 11, (sqlite3_int64)h->size);
    sqlite3_bind_int64(s, 12, (sqlite3_int64)h->patched);
    sqlite3_bind_int64(
        s, 13,
        (sqlite3_int64)head_hash(g->value.bytes, inline_length, g->meta.bytes, g->meta.length));
    bind_or_null(s, 14, &g->meta);
    if (h->large) sqlite3_bind_null(s, 15);
    else bind_or_null(s, 15, &g->value);
    hd_status status = file_finish(f, s);
    *doc = h->was.exists ? h->was.doc : sqlite3_last_insert_rowid(f->db);
    return status;
}

static hd_status copy_column(sqlite3_stmt *s, int column, json_buffer *out) {
    size_t n = (size_t)sqlite3_column_bytes(s, column);
    out->length = 0;
    if (!n) return HD_OK;
    if (out->capacity < n && !json_buffer_grow(out, n)) return HD_NOMEM;
    memcpy(out->bytes, sqlite3_column_blob(s, column), n);
    out->length = n;
    return HD_OK;
}

/* The row as it is: texts into the buffers, the rest into `h`. */
static hd_status take_old(folding *g, new_head *h) {
    hd_status status = head_find(&g->w->file, h->name, &h->was);
    g->value.length = g->meta.length = 0;
    h->seq = h->was.seq;
    h->meta_seq = h->was.meta_seq;
    h->guarded = h->was.guarded;
    h->large = h->was.large;
    h->size = (size_t)h->was.size;
    h->patched = h->was.patched;
    h->kind[0] = '\0';
    if (status || !h->was.exists) return status;
    sqlite3_stmt *s = file_sql_get(&g->w->file, SQL_HEAD_GET);
    if (!s) return file_status(sqlite3_extended_errcode(g->w->file.db));
    bind_name(s, h->name);
    int rc = sqlite3_step(s);
    status = file_status(rc);
    if (!status && rc == SQLITE_ROW) {
        const char *kind = (const char *)sqlite3_column_text(s, 1);
        strncat(h->kind, kind ? kind : "", sizeof h->kind - 1);
        status = copy_column(s, 8, &g->meta);
        if (!status) status = copy_column(s, 9, &g->value);
    }
    sqlite3_reset(s);
    return status;
}

static hd_status print_fold(json_buffer *out, hd_value v) {
    out->length = 0;
    return value_is_absent(v) ? HD_OK : json_print_to(out, v, HD_JSON_COMPACT);
}

static hd_status take_new_value(folding *g, new_head *h, const fold *f) {
    hd_status status = print_fold(&g->value, f->value);
    h->seq = f->seq;
    h->guarded |= f->guarded;
    h->size = g->value.length;
    h->large = g->value.length >= LARGE_MIN;
    h->patched = 0;
    return status;
}

static hd_status take_new_meta(folding *g, new_head *h, const fold *f) {
    h->meta_seq = f->seq;
    h->kind[0] = '\0';
    strncat(h->kind, kind_of(f->value), sizeof h->kind - 1);
    return print_fold(&g->meta, f->value);
}

static hd_status write_row(folding *g, const new_head *h, bool value_changed) {
    file *f = &g->w->file;
    bool gone = !h->size && !g->meta.length && !h->guarded, read = false;
    /* Nodes that have read it find out by its tombstone that it is gone. */
    hd_status status = gone ? basis_is_read(f, h->name, &read) : HD_OK;
    gone = gone && !read;
    if (status) return status;
    if (h->was.large && value_changed && (gone || !h->large)) {
        status = drop_rows(f, h->was.doc, SQL_LARGE_DROP);
        if (!status) status = drop_rows(f, h->was.doc, SQL_PATCH_DROP);
    }
    if (gone) return status || !h->was.exists ? status : drop_rows(f, h->was.doc, SQL_HEAD_DROP);
    int64_t doc = 0;
    if (!status) status = put_head(g, h, &doc);
    if (!status && h->large && value_changed) status = put_large(g, doc);
    return status;
}

static hd_status write_doc(folding *g, const doc_name *given) {
    doc_name name = *given, beside = *given;
    name.meta = false;
    beside.meta = true;
    fold *value = fold_of(g, &name), *meta = fold_of(g, &beside);
    if (given->meta && value) return HD_OK; /* written with the value */
    new_head h = { .name = &name };
    hd_status status = HD_OK;
    if (value && value->mode == FOLD_PATCH) {
        status = head_find(&g->w->file, &name, &h.was);
        if (status) return status;
        if (!patch_pays(&h.was, value)) status = unpatch(g, &h.was, value);
        else status = put_patch(g, &h.was, value);
        if (status || (value->mode == FOLD_PATCH && !meta)) return status;
    }
    bool value_changed = value && value->mode == FOLD_VALUE;
    status = take_old(g, &h);
    if (!status && value_changed) status = take_new_value(g, &h, value);
    if (!status && meta) status = take_new_meta(g, &h, meta);
    return status ? status : write_row(g, &h, value_changed);
}

static hd_status write_docs(folding *g) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->count && !status; i++)
        status = write_doc(g, &g->w->tail.docs.items[i].name);
    return status;
}

static hd_status write_spaces(writer *w) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < w->heads.spaces.count && !status; i++) {
        const head_space *space = &w->heads.spaces.items[i];
        sqlite3_stmt *s = file_sql_get(&w->file, SQL_SPACE_SET);
        if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
        if (!space->seq) continue; /* claimed, never written */
        sqlite3_bind_text(s, 1, key_bytes(space->name), (int)space->name->length, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)space->seq);
        status = file_finish(&w->file, s);
    }
    return status;
}

/* ---- The whole -------------------------------------------------------------------------------- */

static hd_status folding_init(folding *g, writer *w, bool full) {
    *g = (folding){ .w = w, .full = full, .count = w->tail.docs.count };
    json_buffer_init(&g->value, &w->env);
    json_buffer_init(&g->meta, &w->env);
    hd_status status = basis_fold_init(&g->basis, &w->file, w->heap, &w->env);
    if (status || !g->count) return status;
    g->folds = env_new_array(&w->env, g->count, sizeof *g->folds);
    if (!g->folds) return HD_NOMEM;
    for (uint32_t i = 0; i < g->count; i++) {
        g->folds[i] = (fold){ 0 };
        json_buffer_init(&g->folds[i].ops, &w->env);
    }
    return HD_OK;
}

static void folding_fini(folding *g) {
    for (uint32_t i = 0; g->folds && i < g->count; i++) {
        value_unref(g->folds[i].value);
        json_buffer_fini(&g->folds[i].ops);
    }
    if (g->folds) env_free(&g->w->env, g->folds, g->count * sizeof *g->folds);
    basis_fold_fini(&g->basis);
    json_buffer_fini(&g->value);
    json_buffer_fini(&g->meta);
}

/* All large documents whose patches are still apart: loaded and written whole. */
static hd_status unpatch_all(folding *g) {
    static const char sql[] = "select space, scope, instance, id from head where patched > 0";
    writer *w = g->w;
    for (;;) {
        sqlite3_stmt *s = NULL;
        int rc = sqlite3_prepare_v2(w->file.db, sql, -1, &s, NULL);
        if (!rc) rc = sqlite3_step(s);
        if (rc != SQLITE_ROW) {
            sqlite3_finalize(s);
            return file_status(rc);
        }
        doc_name name = { .space = (const char *)sqlite3_column_text(s, 0),
                          .instance = (const char *)sqlite3_column_text(s, 2),
                          .id = (const char *)sqlite3_column_text(s, 3),
                          .space_length = (uint32_t)sqlite3_column_bytes(s, 0),
                          .instance_length = (uint32_t)sqlite3_column_bytes(s, 2),
                          .id_length = (uint32_t)sqlite3_column_bytes(s, 3),
                          .scope = scope_of_word((const char *)sqlite3_column_text(s, 1)) };
        new_head h = { .name = &name };
        fold f = { .mode = FOLD_VALUE };
        hd_status status = take_old(g, &h);
        if (!status) status = large_load(&w->file, w->heap, h.was.doc, &f.value);
        f.seq = h.seq;
        if (!status) status = take_new_value(g, &h, &f);
        if (!status) status = write_row(g, &h, true);
        value_unref(f.value);
        sqlite3_finalize(s);
        if (status) return status;
    }
}

static hd_status checkpoint_inside(writer *w, bool full) {
    folding g;
    hd_status status = folding_init(&g, w, full);
    if (!status) status = fold_tail(&g);
    if (!status) status = basis_fold_write(&g.basis); /* first: which documents are read? */
    if (!status) status = write_docs(&g);
    if (!status && full) status = unpatch_all(&g);
    if (!status) status = write_spaces(w);
    if (!status) status = file_meta_set(&w->file, "checkpoint", w->row);
    if (!status) status = file_meta_set(&w->file, "kept", w->kept + w->tail.bytes);
    if (!status && w->registered) status = log_readers_put(w);
    if (!status && !w->options.keep_history && w->kept + w->tail.bytes > KEPT_MAX)
        status = log_readers_prune(w, w->row);
    folding_fini(&g);
    return status;
}

/* Footprints from before the last checkpoint are let go; the one before that was their floor. */
static void forget_footprints(writer *w) {
    for (uint32_t i = 0; i < w->heads.spaces.count; i++) {
        if (i < w->last_seqs.count) heads_prune(&w->heads, i, w->last_seqs.items[i]);
        else if (!vec_push(&w->env, &w->last_seqs, 0)) return;
        w->last_seqs.items[i] = w->heads.spaces.items[i].seq;
    }
    heads_compact(&w->heads); /* what is left stands in head rows */
}

hd_status writer_checkpoint(writer *w, bool full) {
    hd_status status = file_begin_write(&w->file);
    if (status) return status;
    status = writer_catch_up(w);
    bool nothing = !status && w->row == w->checkpoint && !full;
    if (!status && !nothing) status = checkpoint_inside(w, full);
    if (!status && !nothing) status = file_commit(&w->file);
    if (status || nothing) {
        file_rollback(&w->file);
        return status;
    }
    w->checkpoint = w->row;
    (void)file_meta_get(&w->file, "kept", &w->kept);
    tail_trim(&w->tail, w->row);
    w->tail.bytes = 0;
    forget_footprints(w);
    return HD_OK;
}

hd_status writer_prune(writer *w) {
    hd_status status = writer_checkpoint(w, false);
    if (!status) status = file_begin_write(&w->file);
    if (status) return status;
    if (!w->options.keep_history) status = log_readers_prune(w, w->checkpoint);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    else (void)file_meta_get(&w->file, "kept", &w->kept);
    return status;
}

hd_status writer_register(writer *w) {
    if (w->registered) return HD_OK;
    hd_status status = file_begin_write(&w->file);
    if (status) return status;
    status = log_readers_put(w);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    else w->registered = true;
    return status;
}

void writer_unregister(writer *w) {
    if (!w->registered || file_begin_write(&w->file)) return;
    hd_status status = log_readers_drop(w);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    w->registered = false;
}
