/* node_rows.c -- folding extras, and writing what has changed of them. */
#include "store/log/node_rows.h"

#include "store/log/head.h"
#include "value/json_write.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"

hd_value log_commit_extra(hd_value made) {
    hd_value extra = object_get_bytes(made, "x", 1);
    return value_exists(extra) && basis_well_formed(extra, NULL) ? extra : value_absent();
}

hd_status basis_has_rows(file *f, bool *out) {
    sqlite3_stmt *s = file_sql_get(f, SQL_NODE_ANY);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    int rc = sqlite3_step(s);
    *out = rc == SQLITE_ROW;
    sqlite3_reset(s);
    return file_status(rc);
}

/* ---- Folding ------------------------------------------------------------------------------ */

static bool space_at(void *ctx, uint32_t i, struct key **name, uint64_t *seq) {
    const basis_fold *f = ctx;
    if (i >= f->spaces.count) return false;
    *name = f->spaces.items[i].space;
    *seq = f->spaces.items[i].seq;
    return true;
}

static hd_status move_space(basis_fold *f, const char *text, size_t length, uint64_t seq) {
    struct key *k;
    hd_status status = key_make(f->heap, text, length, &k);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    uint32_t i = 0;
    while (i < f->spaces.count && f->spaces.items[i].space != k) i++;
    if (i < f->spaces.count) {
        f->spaces.items[i].seq = seq;
        key_unref(k);
        return HD_OK;
    }
    if (vec_push(f->rows.env, &f->spaces, ((space_seq){ k, seq }))) return HD_OK;
    key_unref(k);
    return HD_NOMEM;
}

static hd_status read_spaces(basis_fold *f) {
    sqlite3_stmt *s = file_sql_get(f->file, SQL_SPACES);
    if (!s) return file_status(sqlite3_extended_errcode(f->file->db));
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        uint64_t seq;
        status = text ? file_column_number(s, 1, &seq) : HD_NOMEM;
        if (!status) status = move_space(f, text, (size_t)sqlite3_column_bytes(s, 0), seq);
    }
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

hd_status basis_fold_init(basis_fold *f, file *in, hd_heap *heap, const hd_env *env) {
    *f = (basis_fold){ .file = in, .heap = heap };
    basis_init(&f->rows, env, heap, true);
    return read_spaces(f);
}

void basis_fold_fini(basis_fold *f) {
    if (!f->heap) return;
    for (uint32_t i = 0; i < f->spaces.count; i++) key_unref(f->spaces.items[i].space);
    vec_fini(f->rows.env, &f->spaces);
    basis_fini(&f->rows);
    f->heap = NULL;
}

hd_status basis_fold_commit(basis_fold *f, const log_row *row, size_t number) {
    hd_value made = log_row_commit(row, number);
    for (size_t i = 0, spaces = log_commit_spaces(made); i < spaces; i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        if (!log_commit_space(made, i, &name, &length, &seq)) return HD_CORRUPT;
        hd_status status = move_space(f, name, length, seq);
        if (status) return status;
    }
    basis_point now = { f, space_at };
    hd_value extra = log_commit_extra(made);
    return value_exists(extra) ? basis_apply(&f->rows, extra, &now, row->row) : HD_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct writing {
    basis_fold *f;
    json_buffer seqs, body;
} writing;

static hd_status step_done(file *f, sqlite3_stmt *s) {
    return s ? file_finish(f, s) : file_status(sqlite3_extended_errcode(f->db));
}

static void bind_buffer(sqlite3_stmt *s, int at, const json_buffer *b) {
    sqlite3_bind_text64(s, at, b->bytes, b->length, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_value_text(sqlite3_stmt *s, int at, hd_value v) {
    size_t length;
    const char *text = hd_value_text(v, &length);
    sqlite3_bind_text64(s, at, text, length, SQLITE_STATIC, SQLITE_UTF8);
}

/* A statement on the row's key: name, instance. */
static sqlite3_stmt *key_statement(writing *w, file_sql which, const basis_entry *e) {
    sqlite3_stmt *s = file_sql_get(w->f->file, which);
    if (!s) return NULL;
    bind_value_text(s, 1, array_get(e->item, ROW_NAME));
    bind_value_text(s, 2, array_get(e->item, ROW_INSTANCE));
    return s;
}

static hd_status print(json_buffer *b, hd_value v) {
    b->length = 0;
    return json_print_to(b, v, HD_JSON_COMPACT);
}

static hd_status write_gone(writing *w, const basis_entry *e) {
    return step_done(w->f->file, key_statement(w, SQL_NODE_DROP, e));
}

static hd_status write_whole(writing *w, const basis_entry *e) {
    hd_value seqs = basis_seqs_of(&w->f->rows, e);
    hd_status status = value_is_failed(seqs) ? HD_NOMEM : print(&w->seqs, seqs);
    if (!value_is_failed(seqs)) value_unref(seqs);
    if (!status) status = print(&w->body, array_get(e->whole, ROW_BODY));
    if (status) return status;
    sqlite3_stmt *s = key_statement(w, SQL_NODE_PUT, e);
    if (s) {
        bind_value_text(s, 3, array_get(e->whole, ROW_MARK));
        bind_value_text(s, 4, array_get(e->item, ROW_HASHES));
        bind_buffer(s, 5, &w->seqs);
        bind_value_text(s, 6, array_get(e->whole, ROW_PRINT));
        bind_buffer(s, 7, &w->body);
    }
    return step_done(w->f->file, s);
}

/* What the file has of the row: *fits if the entry renews that very row; the spaces that it reads. */
static hd_status read_old(writing *w, const basis_entry *e, bool *fits, hd_value *spaces) {
    sqlite3_stmt *s = key_statement(w, SQL_NODE_GET, e);
    *fits = false;
    *spaces = value_absent();
    if (!s) return file_status(sqlite3_extended_errcode(w->f->file->db));
    int rc = sqlite3_step(s);
    hd_status status = file_status(rc);
    if (rc == SQLITE_ROW) {
        const char *mark = sqlite3_column_blob(s, 0), *text = sqlite3_column_blob(s, 1);
        *fits = mark && text && basis_is_about(e, mark, (size_t)sqlite3_column_bytes(s, 0));
        if (*fits) *spaces = log_json_read(w->f->heap, text, (size_t)sqlite3_column_bytes(s, 1));
    }
    sqlite3_reset(s);
    if (!value_is_failed(*spaces) && *fits && value_tag(*spaces) != TAG_OBJECT) {
        *fits = false; /* damaged: it names no spaces */
        value_unref(*spaces);
        *spaces = value_absent();
    }
    if (!value_is_failed(*spaces)) return status;
    status = hd_value_status(*spaces) == HD_NOMEM ? HD_NOMEM : HD_OK;
    *fits = false; /* whatever cannot be read goes */
    *spaces = value_absent();
    return status;
}

/* The seqs of now, of the spaces that the row reads. */
static hd_status narrow_seqs(writing *w, hd_value seqs, hd_value spaces, hd_value *out) {
    hd_value narrow = node_value(NULL, true);
    for (hd_iter it = hd_iter_of(spaces); hd_iter_next(&it);) {
        hd_value seq = object_get_bytes(seqs, it.key, it.key_length);
        struct key *k = key_intern(w->f->heap, it.key, it.key_length);
        hd_value next = k ? object_set(w->f->heap, narrow, k, value_exists(seq) ? seq : it.value)
                          : value_failed(HD_NOMEM);
        key_unref(k);
        value_unref(narrow);
        narrow = next;
        if (value_is_failed(narrow)) return HD_NOMEM;
    }
    *out = narrow;
    return HD_OK;
}

static hd_status write_seqs(writing *w, const basis_entry *e, hd_value spaces) {
    hd_value seqs = value_absent(), all = basis_seqs_of(&w->f->rows, e);
    hd_status status = value_is_failed(all) ? HD_NOMEM : narrow_seqs(w, all, spaces, &seqs);
    if (!status) status = print(&w->seqs, seqs);
    if (!value_is_failed(all)) value_unref(all);
    value_unref(seqs);
    return status;
}

static hd_status write_renewed(writing *w, const basis_entry *e) {
    bool fits;
    hd_value spaces;
    hd_status status = read_old(w, e, &fits, &spaces);
    if (!status && !fits) return write_gone(w, e);
    if (!status) status = write_seqs(w, e, spaces);
    value_unref(spaces);
    if (status) return status;
    sqlite3_stmt *s = key_statement(w, SQL_NODE_RENEW, e);
    if (s) {
        bind_value_text(s, 3, array_get(e->item, ROW_HASHES));
        bind_buffer(s, 4, &w->seqs);
    }
    return step_done(w->f->file, s);
}

static hd_status write_entry(writing *w, const basis_entry *e) {
    if (e->gone) return write_gone(w, e);
    return value_exists(e->whole) ? write_whole(w, e) : write_renewed(w, e);
}

/* In order of name: neighbours in the file, too. */
static hd_status write_piece(writing *w, basis_piece *p) {
    const basis *rows = &w->f->rows;
    hd_status status = HD_OK;
    basis_sort(rows, p);
    for (uint32_t i = 0; i < p->rows.count && !status; i++)
        status = write_entry(w, &rows->entries.items[p->rows.items[i]]);
    return status;
}

hd_status basis_fold_write(basis_fold *f) {
    writing w = { .f = f };
    hd_status status = HD_OK;
    json_buffer_init(&w.seqs, f->rows.env);
    json_buffer_init(&w.body, f->rows.env);
    for (uint32_t i = 0; i < f->rows.pieces.count && !status; i++)
        status = write_piece(&w, &f->rows.pieces.items[i]);
    json_buffer_fini(&w.seqs);
    json_buffer_fini(&w.body);
    return status;
}
