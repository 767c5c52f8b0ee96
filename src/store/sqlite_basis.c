/* sqlite_basis.c -- folding extras, and writing what has changed of them. */
#include "store/sqlite_basis.h"

#include "store/sqlite_head.h"
#include "value/json_write.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"

hd_value log_commit_extra(hd_value made) {
    hd_value extra = object_get_bytes(made, "x", 1);
    return value_exists(extra) && basis_well_formed(extra, NULL) ? extra : value_absent();
}

enum { FEW_READS = 8 };

/* ---- Who reads what ---------------------------------------------------------------------- */

void read_set_init(read_set *s, const hd_env *env) {
    *s = (read_set){ .env = env };
    table_init(&s->by_name, env);
}

void read_set_fini(read_set *s) {
    if (!s->env) return;
    vec_fini(s->env, &s->docs);
    table_fini(&s->by_name);
    s->env = NULL;
}

/* Most rows read a handful of documents: comparing them costs less than a table. */
static bool has_among_few(const read_set *s, const doc_name *name) {
    for (uint32_t i = 0; i < s->docs.count; i++)
        if (doc_name_equal(&s->docs.items[i], name)) return true;
    return false;
}

bool read_set_has(const read_set *s, const doc_name *name) {
    if (s->docs.count <= FEW_READS) return has_among_few(s, name);
    for (table_probe p = table_find(&s->by_name, doc_name_hash(name)); table_next(&s->by_name, &p);)
        if (doc_name_equal(&s->docs.items[p.index], name)) return true;
    return false;
}

/* All that there are, when they have become too many. */
static hd_status index_docs(read_set *s) {
    hd_status status = HD_OK;
    for (uint32_t i = table_count(&s->by_name); i < s->docs.count && !status; i++)
        status = table_insert(&s->by_name, doc_name_hash(&s->docs.items[i]), i);
    return status;
}

hd_status read_set_add_doc(read_set *s, const doc_name *name) {
    if (read_set_has(s, name)) return HD_OK;
    if (!vec_push(s->env, &s->docs, *name)) return HD_NOMEM;
    return s->docs.count > FEW_READS ? index_docs(s) : HD_OK;
}

/* Whose instance of a document a row with this instance reads. */
static const char *instance_of(const char *instance, hd_scope scope) {
    const char *word = scope == HD_SCOPE_USER ? "user:" : "session:";
    if (scope == HD_SCOPE_SPACE || strncmp(instance, word, strlen(word)) != 0) return "";
    return instance + strlen(word);
}

doc_name read_doc_name(const basis_read *r, const char *instance) {
    doc_name name = { .space = r->space,
                      .space_length = (uint32_t)r->space_length,
                      .id = r->id,
                      .id_length = (uint32_t)r->id_length,
                      .instance = instance_of(instance, r->scope),
                      .scope = r->scope };
    name.instance_length = (uint32_t)strlen(name.instance);
    return name;
}

/* "id!" is the metadata of "id", or a document that is called so: both are meant. */
static hd_status add_read(read_set *s, const basis_read *r, const char *instance) {
    doc_name name = read_doc_name(r, instance);
    hd_status status = read_set_add_doc(s, &name);
    if (status || r->id_length < 2 || r->id[r->id_length - 1] != '!') return status;
    name.id_length--;
    return read_set_add_doc(s, &name);
}

hd_status read_set_add(read_set *s, hd_value body, const char *instance) {
    hd_value reads = basis_reads_of(body);
    hd_status status = HD_OK;
    for (size_t i = 0, count = array_count(reads); i < count && !status; i++) {
        basis_read r;
        if (basis_read_at(reads, i, &r)) status = add_read(s, &r, instance);
    }
    return status;
}

static uint64_t seq_in(hd_value seqs, const char *space, size_t length) {
    int64_t seq = hd_value_as_int(object_get_bytes(seqs, space, length), INT64_MAX);
    return seq < 0 ? 0 : (uint64_t)seq;
}

/* Replaces *object, owned. */
static hd_status put(hd_heap *heap, hd_value *object, const char *key, size_t length, hd_value v) {
    struct key *k = key_intern(heap, key, length);
    hd_value on = value_is_object(*object) ? *object : node_value(NULL, true);
    hd_value next = k ? object_set(heap, on, k, v) : value_failed(HD_NOMEM);
    key_unref(k);
    if (value_is_failed(next)) return HD_NOMEM;
    value_unref(*object);
    *object = next;
    return HD_OK;
}

static hd_status lower(hd_heap *heap, hd_value *seqs, const char *space, size_t length,
                       uint64_t seq) {
    if (seq_in(*seqs, space, length) <= seq) return HD_OK;
    hd_value n = int_make(heap, (int64_t)seq);
    hd_status status = put(heap, seqs, space, length, n);
    value_unref(n);
    return status;
}

hd_status reads_note_seen(hd_heap *heap, hd_value body, hd_value *seen) {
    hd_value reads = basis_reads_of(body);
    hd_status status = HD_OK;
    for (size_t i = 0, count = array_count(reads); i < count && !status; i++) {
        basis_read r;
        if (basis_read_at(reads, i, &r) && !r.claimed)
            status = lower(heap, seen, r.space, r.space_length, r.seq);
    }
    return status;
}

static hd_status is_read_as(file *f, const doc_name *name, bool *out) {
    sqlite3_stmt *s = file_sql_get(f, SQL_BASIS_READ);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    bind_name(s, name);
    int rc = sqlite3_step(s);
    *out = rc == SQLITE_ROW;
    sqlite3_reset(s);
    return file_status(rc);
}

/* By its own instance, or by a row that does not say whose it read. */
hd_status basis_is_read(file *f, const doc_name *name, bool *out) {
    hd_status status = is_read_as(f, name, out);
    if (status || *out || !name->instance_length) return status;
    doc_name any = *name;
    any.instance = "";
    any.instance_length = 0;
    return is_read_as(f, &any, out);
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

/* What every row of a piece that is new in this tail was proved after. */
static hd_status take_since(basis_fold *f) {
    for (uint32_t i = 0; i < f->spaces.count; i++) {
        hd_value n = int_make(f->heap, (int64_t)f->spaces.items[i].seq);
        hd_value next = object_set(f->heap, f->since, f->spaces.items[i].space, n);
        value_unref(n);
        if (value_is_failed(next)) return HD_NOMEM;
        value_unref(f->since);
        f->since = next;
    }
    return HD_OK;
}

static hd_status read_last(basis_fold *f) {
    sqlite3_stmt *s = file_sql_get(f->file, SQL_NODE_LAST);
    if (!s) return file_status(sqlite3_extended_errcode(f->file->db));
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) f->last = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    if (f->last > NODE_NUMBER_MAX) return HD_CORRUPT; /* there would be none for the next one */
    return file_status(rc);
}

hd_status basis_fold_init(basis_fold *f, file *in, hd_heap *heap, const hd_env *env) {
    *f = (basis_fold){ .file = in, .heap = heap, .since = node_value(NULL, true) };
    basis_init(&f->rows, env, heap, true);
    hd_status status = read_spaces(f);
    if (!status) status = take_since(f);
    return status ? status : read_last(f);
}

void basis_fold_fini(basis_fold *f) {
    if (!f->heap) return;
    for (uint32_t i = 0; i < f->spaces.count; i++) key_unref(f->spaces.items[i].space);
    vec_fini(f->rows.env, &f->spaces);
    value_unref(f->since);
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
    basis_proofs proofs = row->proofs.items[number];
    if (proofs.begin) return basis_apply_proofs(&f->rows, proofs, &now, row->row);
    hd_value extra = log_commit_extra(made);
    return value_exists(extra) ? basis_apply(&f->rows, extra, &now, row->row) : HD_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* One piece's rows while they are written. */
typedef struct writing {
    basis_fold *f;
    int64_t piece;
    json_buffer seqs, body;
    /* Of the row under way: what the file has. */
    bool exists;
    int64_t node;
    hd_value old_body, old_seqs; /* owned */
    /* Documents that some row reads no longer, and the bodies that their names stand in. */
    read_set dropped;
    VEC(hd_value) held; /* owned */
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

/* A statement on the row's key: piece, name, instance. */
static sqlite3_stmt *key_statement(writing *w, file_sql which, const basis_entry *e) {
    sqlite3_stmt *s = file_sql_get(w->f->file, which);
    if (!s) return NULL;
    sqlite3_bind_int64(s, 1, w->piece);
    bind_value_text(s, 2, hd_value_index(e->row, 0));
    bind_value_text(s, 3, hd_value_index(e->row, 1));
    return s;
}

static hd_status print(json_buffer *b, hd_value v) {
    b->length = 0;
    return json_print_to(b, v, HD_JSON_COMPACT);
}

/* Whatever cannot be read counts as nothing: it is written anew. */
static hd_status column_json(hd_heap *heap, sqlite3_stmt *s, int column, hd_value *out) {
    const char *text = sqlite3_column_blob(s, column);
    hd_value v =
        text ? log_json_read(heap, text, (size_t)sqlite3_column_bytes(s, column)) : value_absent();
    if (value_is_failed(v) && hd_value_status(v) == HD_NOMEM) return HD_NOMEM;
    *out = value_exists(v) ? v : value_absent();
    return HD_OK;
}

static bool column_is(sqlite3_stmt *s, int column, const json_buffer *b) {
    const void *text = sqlite3_column_blob(s, column);
    return text && (size_t)sqlite3_column_bytes(s, column) == b->length &&
           memcmp(text, b->bytes, b->length) == 0;
}

static bool is_meant(const basis_entry *e, sqlite3_stmt *s) {
    const char *fingerprint = sqlite3_column_blob(s, 3);
    return fingerprint && basis_is_meant(e->row, fingerprint, (size_t)sqlite3_column_bytes(s, 3));
}

/* Reads the row that is there: of one that a proof is not about, and of a body that is just what it
 * will be, nothing needs to be known. */
static hd_status read_old(writing *w, const basis_entry *e, bool *same_body) {
    sqlite3_stmt *s = key_statement(w, SQL_NODE_GET, e);
    if (!s) return file_status(sqlite3_extended_errcode(w->f->file->db));
    int rc = sqlite3_step(s);
    hd_status status = file_status(rc);
    bool proof = !(e->flags & (ROW_WHOLE | ROW_GONE));
    w->exists = rc == SQLITE_ROW && (!proof || is_meant(e, s));
    *same_body = false;
    if (w->exists) {
        w->node = sqlite3_column_int64(s, 0);
        *same_body = (e->flags & ROW_WHOLE) && column_is(s, 2, &w->body);
        if (proof) status = column_json(w->f->heap, s, 1, &w->old_seqs);
        else if (!*same_body) status = column_json(w->f->heap, s, 2, &w->old_body);
    }
    sqlite3_reset(s);
    return status;
}

static void forget_old(writing *w) {
    value_unref(w->old_body);
    value_unref(w->old_seqs);
    w->old_body = w->old_seqs = value_absent();
}

static hd_status change_basis(writing *w, file_sql which, const doc_name *name) {
    sqlite3_stmt *s = file_sql_get(w->f->file, which);
    if (s) {
        bind_name(s, name);
        sqlite3_bind_int64(s, 5, w->node);
    }
    return step_done(w->f->file, s);
}

static hd_status drop_read(writing *w, const doc_name *name) {
    hd_status status = change_basis(w, SQL_BASIS_DROP, name);
    return status ? status : read_set_add_doc(&w->dropped, name);
}

/* C314: entries of reads that are no more go, entries of new reads come, the others stay. */
static hd_status change_reads(writing *w, const read_set *before, const read_set *after) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < before->docs.count && !status; i++)
        if (!read_set_has(after, &before->docs.items[i]))
            status = drop_read(w, &before->docs.items[i]);
    for (uint32_t i = 0; i < after->docs.count && !status; i++)
        if (!read_set_has(before, &after->docs.items[i]))
            status = change_basis(w, SQL_BASIS_ADD, &after->docs.items[i]);
    return status;
}

/* Names of documents live as long as the values that they stand in. */
static hd_status hold(writing *w, hd_value v) {
    if (!vec_push(w->f->rows.env, &w->held, v)) return HD_NOMEM;
    value_ref(v);
    return HD_OK;
}

static hd_status move_basis(writing *w, const basis_entry *e, hd_value new_body) {
    read_set before, after;
    const char *instance = basis_text(e, 1, NULL);
    uint32_t dropped = w->dropped.docs.count;
    read_set_init(&before, w->f->rows.env);
    read_set_init(&after, w->f->rows.env);
    hd_status status = read_set_add(&before, w->old_body, instance);
    if (!status) status = read_set_add(&after, new_body, instance);
    if (!status) status = change_reads(w, &before, &after);
    if (!status && w->dropped.docs.count > dropped) status = hold(w, w->old_body);
    read_set_fini(&before);
    read_set_fini(&after);
    return status;
}

/* A tombstone that only these rows' reads kept is needed no longer. */
static hd_status drop_tombstone(file *f, const doc_name *name) {
    sqlite3_stmt *s = file_sql_get(f, SQL_TOMBSTONE);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    bind_name(s, name);
    int rc = sqlite3_step(s);
    int64_t doc = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    bool read = false;
    hd_status status = file_status(rc);
    if (!status && doc) status = basis_is_read(f, name, &read);
    if (status || !doc || read) return status;
    s = file_sql_get(f, SQL_TOMBSTONE_DROP);
    if (s) sqlite3_bind_int64(s, 1, doc);
    return step_done(f, s);
}

static hd_status drop_tombstones(writing *w) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < w->dropped.docs.count && !status; i++)
        status = drop_tombstone(w->f->file, &w->dropped.docs.items[i]);
    return status;
}

static hd_status put_node(writing *w, const basis_entry *e) {
    sqlite3_stmt *s = key_statement(w, w->exists ? SQL_NODE_CHANGE : SQL_NODE_ADD, e);
    if (s) {
        sqlite3_bind_int64(s, 4, w->node);
        bind_value_text(s, 5, hd_value_index(e->row, 2));
        sqlite3_bind_int(s, 6, (e->flags & ROW_STALE) != 0);
        bind_buffer(s, 7, &w->seqs);
        bind_buffer(s, 8, &w->body);
    }
    return step_done(w->f->file, s);
}

static hd_status print_seqs(writing *w, const basis_entry *e) {
    hd_value seqs = basis_seqs_of(&w->f->rows, e);
    if (value_is_failed(seqs)) return HD_NOMEM;
    hd_status status = print(&w->seqs, seqs);
    value_unref(seqs);
    return status;
}

static hd_status write_whole(writing *w, const basis_entry *e) {
    hd_value body = array_get(e->row, 3);
    bool same_body;
    hd_status status = print(&w->body, body);
    if (!status) status = print_seqs(w, e);
    if (!status) status = read_old(w, e, &same_body);
    if (status) return status;
    if (!w->exists) w->node = ++w->f->last;
    if (!same_body) status = move_basis(w, e, body);
    return status ? status : put_node(w, e);
}

/* The spaces that the row reads are those that its seqs name. */
static hd_status narrow_seqs(writing *w, hd_value seqs, hd_value *out) {
    hd_value narrow = node_value(NULL, true);
    hd_value spaces = value_is_object(w->old_seqs) ? w->old_seqs : narrow;
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

static hd_status write_proved(writing *w, const basis_entry *e) {
    bool same;
    hd_value seqs = value_absent();
    hd_status status = read_old(w, e, &same);
    if (status || !w->exists) return status; /* there is no such row, or no longer */
    hd_value all = basis_seqs_of(&w->f->rows, e);
    status = value_is_failed(all) ? HD_NOMEM : narrow_seqs(w, all, &seqs);
    if (!value_is_failed(all)) value_unref(all);
    if (!status) status = print(&w->seqs, seqs);
    value_unref(seqs);
    sqlite3_stmt *s = status ? NULL : key_statement(w, SQL_NODE_PROVED, e);
    if (status) return status;
    if (s) {
        sqlite3_bind_int(s, 4, (e->flags & ROW_STALE) != 0);
        bind_buffer(s, 5, &w->seqs);
    }
    return step_done(w->f->file, s);
}

static hd_status write_gone(writing *w, const basis_entry *e) {
    bool same;
    hd_status status = read_old(w, e, &same);
    if (status || !w->exists) return status;
    status = move_basis(w, e, value_absent());
    return status ? status : step_done(w->f->file, key_statement(w, SQL_NODE_DROP, e));
}

static hd_status write_entry(writing *w, const basis_entry *e) {
    hd_status status = e->flags & ROW_GONE    ? write_gone(w, e)
                       : e->flags & ROW_WHOLE ? write_whole(w, e)
                                              : write_proved(w, e);
    forget_old(w);
    return status;
}

/* ---- Pieces -------------------------------------------------------------------------------- */

/* Its number, and where its rows begin; owned. */
static hd_status find_piece(writing *w, const basis_piece *p, bool *found, hd_value *since) {
    sqlite3_stmt *s = file_sql_get(w->f->file, SQL_PIECE_GET);
    *since = value_absent();
    if (!s) return file_status(sqlite3_extended_errcode(w->f->file->db));
    bind_value_text(s, 1, p->name);
    int rc = sqlite3_step(s);
    hd_status status = file_status(rc);
    *found = rc == SQLITE_ROW;
    if (*found) {
        w->piece = sqlite3_column_int64(s, 0);
        status = column_json(w->f->heap, s, 2, since);
    }
    sqlite3_reset(s);
    return status;
}

/* What the piece's rows have seen of what they do not claim is looked at from there on, however late
 * they were written: PIECE_SEEN of `since` says so. */
static hd_status note_seen(const writing *w, const basis_piece *p, hd_value *since, bool *changed) {
    hd_heap *heap = w->f->heap;
    hd_value seen = value_ref(object_get_bytes(*since, PIECE_SEEN, strlen(PIECE_SEEN)));
    uint64_t before = seen.bits;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < p->rows.count && !status; i++) {
        const basis_entry *e = &w->f->rows.entries.items[p->rows.items[i]];
        if (e->flags & ROW_WHOLE) status = reads_note_seen(heap, array_get(e->row, 3), &seen);
    }
    *changed = !status && seen.bits != before;
    if (*changed) status = put(heap, since, PIECE_SEEN, strlen(PIECE_SEEN), seen);
    value_unref(seen);
    return status;
}

static hd_status put_piece(writing *w, const basis_piece *p, bool found, hd_value since) {
    hd_status status = print(&w->seqs, since);
    if (status) return status;
    sqlite3_stmt *s = file_sql_get(w->f->file, found ? SQL_PIECE_SINCE : SQL_PIECE_ADD);
    if (s) {
        bind_value_text(s, 1, p->name);
        bind_buffer(s, 2, &w->seqs);
    }
    status = step_done(w->f->file, s);
    if (!found) w->piece = sqlite3_last_insert_rowid(w->f->file->db);
    return status;
}

static hd_status ensure_piece(writing *w, const basis_piece *p) {
    bool found = false, changed = false;
    hd_value since;
    hd_status status = find_piece(w, p, &found, &since);
    if (!status && !found) since = value_ref(w->f->since);
    if (!status) status = note_seen(w, p, &since, &changed);
    if (!status && (changed || !found)) status = put_piece(w, p, found, since);
    value_unref(since);
    return status;
}

/* Rows that were written after the piece's own word carry theirs, and are written after this. */
static hd_status write_valid(writing *w, const basis_piece *p) {
    hd_status status = print(&w->seqs, p->valid);
    if (status) return status;
    sqlite3_stmt *s = file_sql_get(w->f->file, SQL_PIECE_VALID);
    if (s) {
        sqlite3_bind_int64(s, 1, w->piece);
        bind_buffer(s, 2, &w->seqs);
    }
    status = step_done(w->f->file, s);
    s = status ? NULL : file_sql_get(w->f->file, SQL_NODE_FRESH);
    if (s) sqlite3_bind_int64(s, 1, w->piece);
    if (!status) status = step_done(w->f->file, s);
    for (hd_iter it = hd_iter_of(p->stale); !status && hd_iter_next(&it);) {
        s = file_sql_get(w->f->file, SQL_NODE_STALE);
        if (s) {
            sqlite3_bind_int64(s, 1, w->piece);
            bind_value_text(s, 2, it.value);
        }
        status = step_done(w->f->file, s);
    }
    return status;
}

static hd_status write_piece(writing *w, basis_piece *p) {
    const basis *rows = &w->f->rows;
    hd_status status = ensure_piece(w, p);
    if (!status && value_exists(p->valid)) status = write_valid(w, p);
    if (!status) basis_sort(rows, p); /* neighbours in the file, too */
    for (uint32_t i = 0; i < p->rows.count && !status; i++)
        status = write_entry(w, &rows->entries.items[p->rows.items[i]]);
    return status;
}

static void writing_init(writing *w, basis_fold *f) {
    *w = (writing){ .f = f };
    json_buffer_init(&w->seqs, f->rows.env);
    json_buffer_init(&w->body, f->rows.env);
    read_set_init(&w->dropped, f->rows.env);
}

static void writing_fini(writing *w) {
    for (uint32_t i = 0; i < w->held.count; i++) value_unref(w->held.items[i]);
    vec_fini(w->f->rows.env, &w->held);
    read_set_fini(&w->dropped);
    json_buffer_fini(&w->seqs);
    json_buffer_fini(&w->body);
}

hd_status basis_fold_write(basis_fold *f) {
    writing w;
    writing_init(&w, f);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < f->rows.pieces.count && !status; i++)
        status = write_piece(&w, &f->rows.pieces.items[i]);
    if (!status) status = drop_tombstones(&w);
    writing_fini(&w);
    return status;
}
