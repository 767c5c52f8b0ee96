/* fold.c -- the log is the truth; head rows are a cache of it, brought up to date here.
 *
 * One pass over rows of the log folds each changed document in memory; then each is written once,
 * however often it changed. A large document is not even loaded when its changes are small against
 * its size: its operations become a patch behind it, and only when patches have grown to half of it
 * is it written anew, so bytes written stay in proportion to bytes changed. */
#include "store/log/fold.h"

#include "base/hash.h"
#include "store/log/node_rows.h"

enum { FOLD_NONE, FOLD_VALUE, FOLD_PATCH };

/* What a document of the slice has become. */
typedef struct fold {
    uint32_t doc; /* its index in the tail */
    int mode;
    hd_value value;  /* FOLD_VALUE: owned */
    json_buffer ops; /* FOLD_PATCH: operations with commas between */
    uint64_t seq;
    bool guarded; /* created under "absent" in this tail */
} fold;

typedef struct folding {
    writer *w;
    bool full;
    VEC(fold) folds;
    table by_doc;            /* folds by their document's index in the tail */
    folded done;             /* how far it has come */
    basis_fold basis;        /* what the rows say of nodes, and where they leave the spaces */
    json_buffer value, meta; /* texts of the row under way */
} folding;

/* ---- Folding --------------------------------------------------------------------------------- */

static uint32_t doc_hash(uint32_t doc) { return hash_fold(hash_u64(doc)); }

/* NULL: these rows did not change it. */
static fold *fold_of(const folding *g, const doc_name *name) {
    const tail_doc *d = tail_find(&g->w->tail, name);
    if (!d) return NULL;
    uint32_t doc = (uint32_t)(d - g->w->tail.docs.items);
    for (table_probe p = table_find(&g->by_doc, doc_hash(doc)); table_next(&g->by_doc, &p);)
        if (g->folds.items[p.index].doc == doc) return &g->folds.items[p.index];
    return NULL;
}

static hd_status new_fold(folding *g, const doc_name *name, fold **out) {
    const tail_doc *d = tail_find(&g->w->tail, name);
    if (!d) return HD_CORRUPT;
    fold f = { .doc = (uint32_t)(d - g->w->tail.docs.items) };
    json_buffer_init(&f.ops, &g->w->env);
    if (!vec_room(&g->w->env, &g->folds, 1) ||
        table_insert(&g->by_doc, doc_hash(f.doc), g->folds.count))
        return HD_NOMEM;
    g->folds.items[g->folds.count++] = f;
    *out = &vec_last(&g->folds);
    return HD_OK;
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
    hd_status status = f ? HD_OK : new_fold(g, &doc->name, &f);
    if (status) return status;
    hd_value ops = log_doc_op_list(doc);
    f->seq = doc->seq;
    f->guarded |= doc->guarded;
    if (log_ops_start_anew(ops)) become_value(f, value_absent());
    else if (f->mode == FOLD_NONE) status = start_fold(g, f, &doc->name);
    if (status) return status;
    return f->mode == FOLD_PATCH ? gather_ops(f, ops) : log_fold(g->w->heap, ops, &f->value);
}

static hd_status fold_row(folding *g, const log_row *row) {
    for (size_t i = 0; i < log_row_commits(row); i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0, docs = log_commit_docs(made); k < docs; k++) {
            log_doc doc;
            hd_status status = log_commit_doc(made, k, &doc) ? fold_doc(g, &doc) : HD_CORRUPT;
            if (status) return status;
        }
        hd_status status = basis_fold_commit(&g->basis, row, i);
        if (status) return status;
    }
    return HD_OK;
}

static bool is_full(const folding *g) {
    return g->done.bytes >= SLICE_BYTES ||
           g->folds.count + g->basis.rows.entries.count >= SLICE_THINGS;
}

/* From the checkpoint on, until the slice is full. */
static hd_status fold_rows(folding *g) {
    writer *w = g->w;
    sqlite3_stmt *s = file_sql_get(&w->file, SQL_LOG_AFTER);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_int64(s, 1, (sqlite3_int64)w->checkpoint);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && !is_full(g) && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        log_row row;
        status = log_row_read(&w->file, w->heap, s, &row);
        if (!status) status = fold_row(g, &row);
        g->done.row = row.row;
        g->done.bytes += row.length;
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

/* What was gathered becomes a list. */
static bool enclose(json_buffer *b) {
    if (!json_buffer_grow(b, 2)) return false;
    memmove(b->bytes + 1, b->bytes, b->length);
    b->bytes[0] = '[';
    b->bytes[b->length + 1] = ']';
    b->length += 2;
    return true;
}

static hd_status put_patch(folding *g, const stored_head *was, fold *f) {
    file *to = &g->w->file;
    json_buffer *b = &f->ops;
    if (!enclose(b)) return HD_NOMEM;
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
static hd_status unpatch(folding *g, const doc_name *name, const stored_head *was, fold *f) {
    hd_value v = value_absent();
    writer *w = g->w;
    hd_status status = large_load(&w->file, w->heap, name, was, &v);
    if (!status && !enclose(&f->ops)) status = HD_NOMEM;
    if (!status) {
        hd_value ops = log_json_read(w->heap, f->ops.bytes, f->ops.length);
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
    char kind[KIND_SIZE];
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

static uint64_t hash_of_row(const folding *g, const new_head *h) {
    stored_head numbers = { .guarded = h->guarded,
                            .large = h->large,
                            .size = h->size,
                            .seq = h->seq,
                            .meta_seq = h->meta_seq };
    row_text value = { g->value.bytes, h->large ? 0 : g->value.length };
    return head_hash(h->name, &numbers, h->kind, value,
                     (row_text){ g->meta.bytes, g->meta.length });
}

static hd_status put_head(folding *g, const new_head *h, int64_t *doc) {
    file *f = &g->w->file;
    sqlite3_stmt *s = file_sql_get(f, SQL_HEAD_PUT);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    bind_name(s, h->name);
    if (h->was.exists) sqlite3_bind_int64(s, 5, h->was.doc);
    sqlite3_bind_text(s, 6, h->kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 7, (sqlite3_int64)h->seq);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)h->meta_seq);
    sqlite3_bind_int(s, 9, h->guarded);
    sqlite3_bind_int(s, 10, h->large);
    sqlite3_bind_int64(s, 11, (sqlite3_int64)h->size);
    sqlite3_bind_int64(s, 12, (sqlite3_int64)h->patched);
    sqlite3_bind_int64(s, 13, (sqlite3_int64)hash_of_row(g, h));
    bind_or_null(s, 14, &g->meta);
    if (h->large) sqlite3_bind_null(s, 15);
    else bind_or_null(s, 15, &g->value);
    hd_status status = file_finish(f, s);
    *doc = h->was.exists ? h->was.doc : sqlite3_last_insert_rowid(f->db);
    return status;
}

static hd_status copy_text(row_text text, json_buffer *out) {
    out->length = 0;
    return text.length && !json_buffer_add(out, text.bytes, text.length) ? HD_NOMEM : HD_OK;
}

/* The row as it is: texts into the buffers, the rest into `h`. A row that is damaged is not written on,
 * unless nothing of it stays: `anew`, the value is replaced, and there is no metadata. */
static hd_status take_old(folding *g, new_head *h, bool anew) {
    head_texts texts;
    hd_status status = head_read(&g->w->file, h->name, &h->was, &texts);
    if (status == HD_CORRUPT && anew && !texts.meta.length) status = HD_OK;
    h->seq = h->was.seq;
    h->meta_seq = h->was.meta_seq;
    h->guarded = h->was.guarded;
    h->large = h->was.large;
    h->size = (size_t)h->was.size;
    h->patched = h->was.patched;
    h->kind[0] = '\0';
    strncat(h->kind, texts.kind, sizeof h->kind - 1);
    if (!status) status = copy_text(texts.meta, &g->meta);
    if (!status) status = copy_text(texts.value, &g->value);
    head_texts_end(&texts);
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
    /* Nodes that have read it find out by its tombstone that it is gone; pruning takes that away. */
    hd_status status = gone ? basis_has_rows(f, &read) : HD_OK;
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
        if (!patch_pays(&h.was, value)) status = unpatch(g, &name, &h.was, value);
        else status = put_patch(g, &h.was, value);
        if (status || (value->mode == FOLD_PATCH && !meta)) return status;
    }
    bool value_changed = value && value->mode == FOLD_VALUE;
    status = take_old(g, &h, value_changed);
    if (!status && value_changed) status = take_new_value(g, &h, value);
    if (!status && meta) status = take_new_meta(g, &h, meta);
    return status ? status : write_row(g, &h, value_changed);
}

static hd_status write_docs(folding *g) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->folds.count && !status; i++)
        status = write_doc(g, &g->w->tail.docs.items[g->folds.items[i].doc].name);
    return status;
}

/* Where the slice leaves them: the log may go on. */
static hd_status write_spaces(folding *g) {
    file *f = &g->w->file;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->basis.spaces.count && !status; i++) {
        const space_seq *at = &g->basis.spaces.items[i];
        sqlite3_stmt *s = file_sql_get(f, SQL_SPACE_SET);
        if (!s) return file_status(sqlite3_extended_errcode(f->db));
        sqlite3_bind_text(s, 1, key_bytes(at->space), (int)at->space->length, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)at->seq);
        status = file_finish(f, s);
    }
    return status;
}

/* ---- A slice ---------------------------------------------------------------------------------- */

static hd_status folding_init(folding *g, writer *w, bool full) {
    *g = (folding){ .w = w, .full = full, .done = { .row = w->checkpoint } };
    json_buffer_init(&g->value, &w->env);
    json_buffer_init(&g->meta, &w->env);
    table_init(&g->by_doc, &w->env);
    return basis_fold_init(&g->basis, &w->file, w->heap, &w->env);
}

static void folding_fini(folding *g) {
    for (uint32_t i = 0; i < g->folds.count; i++) {
        value_unref(g->folds.items[i].value);
        json_buffer_fini(&g->folds.items[i].ops);
    }
    vec_fini(&g->w->env, &g->folds);
    table_fini(&g->by_doc);
    basis_fold_fini(&g->basis);
    json_buffer_fini(&g->value);
    json_buffer_fini(&g->meta);
}

hd_status fold_slice(writer *w, bool full, folded *out) {
    folding g;
    hd_status status = folding_init(&g, w, full);
    if (!status) status = fold_rows(&g);
    if (!status) status = basis_fold_write(&g.basis); /* first: are there rows? */
    if (!status) status = write_docs(&g);
    if (!status) status = write_spaces(&g);
    *out = g.done;
    out->things = g.folds.count + g.basis.rows.entries.count;
    folding_fini(&g);
    return status;
}

/* ---- One document, for repair ---------------------------------------------------------------- */

static hd_status rewrite(folding *g, new_head *h, const document_state *to) {
    fold value = { .mode = FOLD_VALUE, .value = to->value, .seq = to->seq, .guarded = to->guarded };
    fold meta = { .mode = FOLD_VALUE, .value = to->meta, .seq = to->meta_seq };
    hd_status status = head_find(&g->w->file, h->name, &h->was);
    if (status == HD_CORRUPT) status = HD_OK; /* that is why it is written anew */
    if (!status) status = take_new_value(g, h, &value);
    if (!status) status = take_new_meta(g, h, &meta);
    if (!status && h->was.exists) status = drop_rows(&g->w->file, h->was.doc, SQL_LARGE_DROP);
    if (!status && h->was.exists) status = drop_rows(&g->w->file, h->was.doc, SQL_PATCH_DROP);
    return status ? status : write_row(g, h, true);
}

hd_status fold_rewrite(writer *w, const doc_name *name, const document_state *to) {
    folding g;
    new_head h = { .name = name };
    hd_status status = folding_init(&g, w, true);
    if (!status) status = rewrite(&g, &h, to);
    folding_fini(&g);
    return status;
}

/* ---- Large documents whose patches are still apart: loaded and written whole ------------------- */

/* `doc` is the row that was found to have patches: if its name leads to another one, that would be
 * written for ever. */
static hd_status unpatch_doc(folding *g, const doc_name *name, int64_t doc) {
    new_head h = { .name = name };
    fold f = { .mode = FOLD_VALUE };
    hd_status status = take_old(g, &h, false);
    if (!status && (!h.was.exists || h.was.doc != doc)) status = HD_CORRUPT;
    if (!status) status = large_load(&g->w->file, g->w->heap, name, &h.was, &f.value);
    f.seq = h.seq;
    if (!status) status = take_new_value(g, &h, &f);
    if (!status) status = write_row(g, &h, true);
    g->done.bytes += h.size;
    value_unref(f.value);
    return status;
}

static hd_status unpatch_next(folding *g, bool *more) {
    static const char sql[] = "select space, scope, instance, id, doc from head where patched > 0";
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(g->w->file.db, sql, -1, &s, NULL);
    if (!rc) rc = sqlite3_step(s);
    hd_status status = file_status(rc);
    *more = rc == SQLITE_ROW;
    const char *scope = *more ? (const char *)sqlite3_column_text(s, 1) : NULL;
    if (*more) {
        doc_name name = { .space = (const char *)sqlite3_column_text(s, 0),
                          .instance = (const char *)sqlite3_column_text(s, 2),
                          .id = (const char *)sqlite3_column_text(s, 3),
                          .space_length = (uint32_t)sqlite3_column_bytes(s, 0),
                          .instance_length = (uint32_t)sqlite3_column_bytes(s, 2),
                          .id_length = (uint32_t)sqlite3_column_bytes(s, 3),
                          .scope = scope_of_word(scope ? scope : "") };
        bool named = scope && name.space && name.instance && name.id;
        status = named ? unpatch_doc(g, &name, sqlite3_column_int64(s, 4)) : HD_CORRUPT;
    }
    sqlite3_finalize(s);
    return status;
}

hd_status fold_patches_slice(writer *w, bool *more) {
    folding g;
    *more = true;
    hd_status status = folding_init(&g, w, true);
    while (!status && *more && !is_full(&g)) status = unpatch_next(&g, more);
    folding_fini(&g);
    return status;
}
