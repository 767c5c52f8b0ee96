/* sqlite_changes.c -- what has changed in a space since a seq.
 *
 * First the indexes: head rows by seq, and the names in the tail. If nobody cares about any of these
 * documents, that is all. Otherwise the log is read backwards from our position until the seq is
 * reached; each commit there says which places it changed. Where the log does not reach back so far,
 * the documents are told as a whole, as of where it begins.
 *
 * Where a commit's account of what it changed did not hold when it was admitted, which its row says, its
 * operations' own paths count, and the way to them. */
#include "store/sqlite_rows.h"

#include "store/sqlite_encode.h"
#include "value/array.h"
#include "value/object.h"

/* A document that has changed, by the asker's number. */
typedef struct changed_doc {
    uint32_t doc;
    uint64_t seq;
} changed_doc;

/* One commit's part in it. */
typedef struct part {
    uint32_t doc;
    uint64_t seq;
    bool told;      /* its account holds */
    bool whole;     /* created or deleted by it */
    hd_value entry; /* owned: the document's entry in the commit */
} part;

typedef struct gathering {
    const change_query *q;
    const hd_env *env;
    VEC(changed_doc) docs;
    VEC(part) parts; /* newest first */
    uint64_t from;   /* what changed above this is in the log */
    bool reached;    /* the log goes back so far */
    bool stopped;
} gathering;

/* ---- Which documents ------------------------------------------------------------------------ */

static hd_status gather(gathering *g, const doc_name *name, uint64_t seq) {
    uint32_t doc = g->q->wanted(g->q->ctx, name);
    if (!doc) return HD_OK;
    return vec_push(g->env, &g->docs, ((changed_doc){ doc, seq })) ? HD_OK : HD_NOMEM;
}

static hd_status gather_row(gathering *g, sqlite3_stmt *s, bool meta) {
    const struct key *space = g->q->space;
    const char *scope = (const char *)sqlite3_column_text(s, 1);
    doc_name name = { .space = key_bytes(space),
                      .space_length = space->length,
                      .id = (const char *)sqlite3_column_text(s, 0),
                      .id_length = (uint32_t)sqlite3_column_bytes(s, 0),
                      .instance = (const char *)sqlite3_column_text(s, 2),
                      .instance_length = (uint32_t)sqlite3_column_bytes(s, 2),
                      .meta = meta };
    if (!name.id || !name.instance || !scope) return HD_NOMEM;
    name.scope = scope_of_word(scope);
    return gather(g, &name, (uint64_t)sqlite3_column_int64(s, 3));
}

static hd_status gather_heads(gathering *g, file_sql which, bool meta) {
    file *f = &g->q->c->file;
    sqlite3_stmt *s = file_sql_get(f, which);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_text(s, 1, key_bytes(g->q->space), (int)g->q->space->length, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)g->q->after);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) status = gather_row(g, s, meta);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

static bool in_space(const gathering *g, const doc_name *name) {
    const struct key *space = g->q->space;
    return name->space_length == space->length &&
           memcmp(name->space, key_bytes(space), space->length) == 0;
}

static hd_status gather_tail(gathering *g) {
    const tail *t = &g->q->c->tail;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < t->docs.count && !status; i++) {
        const tail_doc *d = &t->docs.items[i];
        uint64_t seq = vec_last(&d->at).seq;
        if (seq > g->q->after && in_space(g, &d->name)) status = gather(g, &d->name, seq);
    }
    return status;
}

static hd_status gather_docs(gathering *g) {
    hd_status status = gather_heads(g, SQL_HEADS_SINCE, false);
    if (!status && g->q->c->file.format >= 2) status = gather_heads(g, SQL_METAS_SINCE, true);
    return status ? status : gather_tail(g);
}

/* ---- The log, backwards --------------------------------------------------------------------- */

static hd_status take_part(gathering *g, const log_doc *doc, bool told) {
    part p = { .doc = g->q->wanted(g->q->ctx, &doc->name),
               .seq = doc->seq,
               .told = told,
               .whole = doc->created || doc->deleted };
    if (!p.doc) return HD_OK;
    if (!vec_push(g->env, &g->parts, p)) return HD_NOMEM;
    vec_last(&g->parts).entry = value_ref(doc->entry);
    return HD_OK;
}

/* What the space got in this commit; 0: it is not in it. */
static uint64_t seq_in(const gathering *g, hd_value made) {
    for (size_t i = 0; i < log_commit_spaces(made); i++) {
        doc_name name = { 0 };
        size_t length;
        uint64_t seq;
        if (!log_commit_space(made, i, &name.space, &length, &seq)) continue;
        name.space_length = (uint32_t)length;
        if (in_space(g, &name)) return seq;
    }
    return 0;
}

static hd_status take_commit(gathering *g, const log_row *row, hd_value made) {
    uint64_t seq = seq_in(g, made);
    if (!seq) return HD_OK;
    g->reached = seq <= g->from + 1; /* seqs have no gaps */
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_commit_docs(made) && seq > g->from && !status; i++) {
        log_doc doc;
        if (!log_commit_doc(made, i, &doc)) return HD_CORRUPT;
        if (in_space(g, &doc.name)) status = take_part(g, &doc, log_doc_told(row, made, i));
    }
    return status;
}

static hd_status take_row(gathering *g, sqlite3_stmt *s) {
    hd_heap *heap = g->q->c->r->heap;
    log_row row;
    hd_status status = log_row_read(&g->q->c->file, heap, s, &row);
    for (size_t i = status ? 0 : log_row_commits(&row); i-- > 0 && !g->reached && !status;)
        status = take_commit(g, &row, log_row_commit(&row, i));
    log_row_fini(heap, &row);
    return status;
}

static hd_status read_back(gathering *g) {
    client *c = g->q->c;
    sqlite3_stmt *s = file_sql_get(&c->file, SQL_LOG_BEFORE);
    if (!s) return file_status(sqlite3_extended_errcode(c->file.db));
    sqlite3_bind_int64(s, 1, (sqlite3_int64)c->position);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && !g->reached && (rc = sqlite3_step(s)) == SQLITE_ROW) status = take_row(g, s);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static void tell(gathering *g, uint32_t doc, uint64_t seq, hd_path path, uint8_t flags) {
    if (!g->stopped) g->stopped = !g->q->tell(g->q->ctx, doc, seq, path, flags);
}

/* The places that the commit itself says it changed. */
static hd_status tell_account(gathering *g, const part *p, hd_value account) {
    hd_heap *heap = g->q->c->r->heap;
    for (size_t i = 0; i < hd_value_count(account); i++) {
        touched t;
        hd_status status = log_account_at(heap, account, i, &t);
        if (status) return status;
        tell(g, p->doc, p->seq, t.path, t.flags);
        path_unref(heap, t.path);
    }
    return HD_OK;
}

static uint8_t flags_of(const part *p, const log_op *o) {
    if (p->told) return op_plain_flags(o->kind, o->path, o->value);
    return op_touch_flags(o->kind, o->path) | TOUCH_WAY | (p->whole ? TOUCH_WHOLE : 0);
}

static hd_status tell_operations(gathering *g, const part *p) {
    hd_heap *heap = g->q->c->r->heap;
    hd_value ops = object_get_bytes(p->entry, "o", 1);
    for (size_t i = 0; i < hd_value_count(ops); i++) {
        log_op o;
        hd_status status = log_ops_at(heap, ops, i, &o);
        if (status) return status;
        tell(g, p->doc, p->seq, o.path, flags_of(p, &o));
        path_unref(heap, o.path);
    }
    return HD_OK;
}

static hd_status tell_parts(gathering *g) {
    hd_status status = HD_OK;
    for (uint32_t i = g->parts.count; i-- > 0 && !status && !g->stopped;) {
        const part *p = &g->parts.items[i];
        hd_value account = log_doc_account(p->entry);
        status =
            p->told && value_exists(account) ? tell_account(g, p, account) : tell_operations(g, p);
    }
    return status;
}

/* Whatever changed since may have changed up to `until` as well, and nobody knows where. */
static void tell_whole(gathering *g, uint64_t until) {
    for (uint32_t i = 0; i < g->docs.count; i++) {
        const changed_doc *d = &g->docs.items[i];
        tell(g, d->doc, d->seq < until ? d->seq : until, HD_PATH_ROOT, TOUCH_WHOLE);
    }
}

/* The seq at which the log that is kept begins. */
static hd_status read_floor(gathering *g, uint64_t *out) {
    file *f = &g->q->c->file;
    sqlite3_stmt *s = file_sql_get(f, SQL_SPACES);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    int rc;
    *out = 0;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        doc_name name = { .space = (const char *)sqlite3_column_text(s, 0),
                          .space_length = (uint32_t)sqlite3_column_bytes(s, 0) };
        if (name.space && in_space(g, &name)) *out = (uint64_t)sqlite3_column_int64(s, 2);
    }
    sqlite3_reset(s);
    return file_status(rc);
}

/* Changes that the log still has are told as they are, also where it does not go back to the seq:
 * whoever was proved after its beginning need not suffer for the others. */
static hd_status tell_changes(gathering *g, uint64_t now) {
    uint64_t floor = 0, after = g->q->after;
    hd_status status = read_floor(g, &floor);
    g->from = after < floor ? floor : after;
    g->reached = g->from >= now;
    if (!status && !g->reached) status = read_back(g);
    if (status) return status;
    if (!g->reached || after < floor) tell_whole(g, g->reached ? floor : UINT64_MAX);
    return g->reached ? tell_parts(g) : HD_OK;
}

hd_status client_reach(client *c, uint64_t *out) {
    hd_status status = client_snapshot(c);
    sqlite3_stmt *s = status ? NULL : file_sql_get(&c->file, SQL_LOG_AFTER);
    if (!s) return status ? status : file_status(sqlite3_extended_errcode(c->file.db));
    sqlite3_bind_int64(s, 1, 0);
    int rc = sqlite3_step(s);
    *out = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(s, 0) : c->position + 1;
    sqlite3_reset(s);
    return rc == SQLITE_ROW ? HD_OK : file_status(rc);
}

hd_status changes_since(const change_query *q) {
    gathering g = { .q = q, .env = q->c->env };
    client_space *space;
    hd_status status = client_space_at(q->c, q->space, &space);
    if (status || space->seq <= q->after) return status;
    status = client_snapshot(q->c);
    if (!status) status = gather_docs(&g);
    if (!status && g.docs.count) status = tell_changes(&g, space->seq);
    for (uint32_t i = 0; i < g.parts.count; i++) value_unref(g.parts.items[i].entry);
    vec_fini(g.env, &g.parts);
    vec_fini(g.env, &g.docs);
    return status;
}
