/* resume.c -- the rows of a piece, and which documents have changed since.
 *
 * Rows are one query, with the tail's merged in: both come in order of name and instance, so this is one
 * pass. Rows of one checkpoint have the same seqs, letter by letter: their text is read once. */
#include "store/log/resume.h"

#include "value/node.h"
#include <stdio.h>

enum { PIECE_SIZE = 1100 };

/* Of SQL_NODES: the first are those of an item. */
enum { COLUMN_SEQS = ROW_BODY, COLUMN_BODY };

typedef struct reading {
    client *c;
    basis_row_fn fn;
    void *ctx;
    bool stopped;
    const basis_piece *over; /* of the tail; NULL: it has none */
    uint32_t next;           /* of its rows */
    hd_value seqs;           /* of the row before; owned */
    char seqs_text[256];     /* the same as text; empty: none */
} reading;

/* ---- The tail's rows --------------------------------------------------------------------- */

static const basis_entry *entry_at(const reading *g) {
    return g->over && g->next < g->over->rows.count
               ? &g->c->rows.entries.items[g->over->rows.items[g->next]]
               : NULL;
}

/* What another process has folded already is in the file, and newer there. */
static bool counts(const reading *g, const basis_entry *e) { return e->at > g->c->checkpoint; }

/* Without memory for its seqs it is left out: a node without a row runs, that is all. */
static void tell_entry(reading *g, const basis_entry *e) {
    if (!counts(g, e) || e->gone || value_is_absent(e->whole)) return;
    hd_value seqs = basis_seqs_of(&g->c->rows, e);
    if (value_is_failed(seqs)) return;
    basis_row row = basis_row_of(e, seqs);
    g->stopped = !g->fn(g->ctx, &row);
    value_unref(seqs);
}

static int compare_entry(const basis_entry *e, sqlite3_stmt *s) {
    for (int i = 0; i < 2; i++) {
        size_t length;
        const char *text = basis_item_text(e->item, (size_t)i, &length);
        size_t other = (size_t)sqlite3_column_bytes(s, i);
        int differs = memcmp(text, sqlite3_column_text(s, i), length < other ? length : other);
        if (differs || length != other) return differs ? differs : length < other ? -1 : 1;
    }
    return 0;
}

/* ---- The file's rows ---------------------------------------------------------------------- */

static hd_status column_json(const reading *g, sqlite3_stmt *s, int column, hd_value *out) {
    const char *text = sqlite3_column_blob(s, column);
    *out = text ? log_json_read(g->c->r->heap, text, (size_t)sqlite3_column_bytes(s, column))
                : value_failed(HD_CORRUPT);
    if (!value_is_failed(*out)) return HD_OK;
    hd_status status = hd_value_status(*out);
    *out = value_absent();
    return status == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
}

static hd_status take_body(const reading *g, sqlite3_stmt *s, basis_row *row) {
    const char *text = sqlite3_column_blob(s, COLUMN_BODY);
    if (text) row->plain = basis_plain_of(text, (size_t)sqlite3_column_bytes(s, COLUMN_BODY));
    return row->plain.at ? HD_OK : column_json(g, s, COLUMN_BODY, &row->body);
}

static hd_status take_seqs(reading *g, sqlite3_stmt *s) {
    const char *text = (const char *)sqlite3_column_text(s, COLUMN_SEQS);
    size_t length = (size_t)sqlite3_column_bytes(s, COLUMN_SEQS);
    if (!text) return HD_NOMEM;
    if (g->seqs_text[0] && strcmp(text, g->seqs_text) == 0) return HD_OK;
    value_unref(g->seqs);
    g->seqs_text[0] = '\0';
    hd_status status = column_json(g, s, COLUMN_SEQS, &g->seqs);
    if (!status && !value_is_object(g->seqs)) status = HD_CORRUPT;
    if (!status && length < sizeof g->seqs_text) memcpy(g->seqs_text, text, length + 1);
    return status;
}

/* `e` is what the tail knows of it: nothing, or that it was renewed. */
static hd_status tell_stored(reading *g, sqlite3_stmt *s, const basis_entry *e) {
    basis_row row = { .name = (const char *)sqlite3_column_text(s, ROW_NAME),
                      .instance = (const char *)sqlite3_column_text(s, ROW_INSTANCE),
                      .mark = (const char *)sqlite3_column_text(s, ROW_MARK),
                      .hashes = (const char *)sqlite3_column_text(s, ROW_HASHES),
                      .print = (const char *)sqlite3_column_text(s, ROW_PRINT) };
    if (!row.name || !row.instance || !row.mark || !row.hashes || !row.print) return HD_NOMEM;
    if (e && !basis_is_about(e, row.mark, strlen(row.mark))) return HD_OK; /* it is not valid now */
    if (e) row.hashes = basis_item_text(e->item, ROW_HASHES, NULL);
    hd_status status = e ? HD_OK : take_seqs(g, s);
    if (!status) status = take_body(g, s, &row);
    row.seqs = e ? basis_seqs_of(&g->c->rows, e) : value_ref(g->seqs);
    if (value_is_failed(row.seqs)) status = HD_NOMEM;
    if (!status) g->stopped = !g->fn(g->ctx, &row);
    if (!value_is_failed(row.seqs)) value_unref(row.seqs);
    value_unref(row.body);
    return status == HD_CORRUPT ? HD_OK : status; /* a node without a row runs, that is all */
}

static hd_status merge_row(reading *g, sqlite3_stmt *s) {
    const basis_entry *e;
    int differs = 1;
    while ((e = entry_at(g)) && (differs = compare_entry(e, s)) < 0 && !g->stopped) {
        tell_entry(g, e);
        g->next++;
    }
    if (g->stopped) return HD_OK;
    if (!e || differs || !counts(g, e)) return tell_stored(g, s, NULL);
    if (!e->gone && value_is_absent(e->whole)) return tell_stored(g, s, e);
    return HD_OK; /* replaced, which comes in its turn, or gone */
}

static bool has_rows(const client *c) { return c->file.format >= NODE_FORMAT; }

static hd_status read_nodes(reading *g, const char *piece) {
    sqlite3_stmt *s = file_sql_get(&g->c->file, SQL_NODES);
    if (!s) return file_status(sqlite3_extended_errcode(g->c->file.db));
    sqlite3_bind_text(s, 1, piece, -1, SQLITE_STATIC);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && !g->stopped && (rc = sqlite3_step(s)) == SQLITE_ROW) status = merge_row(g, s);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

hd_status client_rows(client *c, const char *piece, basis_row_fn fn, void *ctx) {
    basis_piece *above = basis_find_piece(&c->rows, piece, strlen(piece));
    reading g = { .c = c, .fn = fn, .ctx = ctx, .over = above };
    hd_status status = client_snapshot(c);
    if (above) basis_sort(&c->rows, above);
    if (!status && has_rows(c)) status = read_nodes(&g, piece);
    for (const basis_entry *e; !status && !g.stopped && (e = entry_at(&g)); g.next++)
        tell_entry(&g, e);
    value_unref(g.seqs);
    return status;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The piece of the first row whose name is `from` or later, up to the second ':', into `out`; empty:
 * there is none. */
static hd_status next_piece(client *c, const char *from, char *out, size_t size) {
    sqlite3_stmt *s = file_sql_get(&c->file, SQL_NODE_NEXT);
    if (!s) return file_status(sqlite3_extended_errcode(c->file.db));
    sqlite3_bind_text(s, 1, from, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    const char *name = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    size_t length = name ? basis_piece_length(name, strlen(name)) : 0;
    *out = '\0';
    if (length && length < size) snprintf(out, length + 1, "%s", name);
    sqlite3_reset(s);
    return file_status(rc);
}

/* Behind all names of a piece: ';' follows ':'. */
static bool pass(const char *piece, char *next, size_t size) {
    int n = snprintf(next, size, "%s;", piece);
    return n > 0 && (size_t)n < size;
}

static hd_status tell_file_pieces(client *c, basis_piece_fn fn, void *ctx, bool *more) {
    char piece[PIECE_SIZE], next[PIECE_SIZE] = "";
    for (;;) {
        hd_status status = next_piece(c, next, piece, sizeof piece);
        if (status || !*piece || !pass(piece, next, sizeof next)) return status;
        *more = fn(ctx, piece);
        if (!*more) return HD_OK;
    }
}

static hd_status tell_tail_piece(client *c, const basis_piece *p, basis_piece_fn fn, void *ctx,
                                 bool *more) {
    char found[PIECE_SIZE] = "", from[PIECE_SIZE];
    size_t length;
    const char *name = text_of(p->name, &length);
    int n = snprintf(from, sizeof from, "%s:", name);
    bool fits = n > 0 && (size_t)n < sizeof from;
    hd_status status = fits && has_rows(c) ? next_piece(c, from, found, sizeof found) : HD_OK;
    if (!status && strcmp(found, name) != 0) *more = fn(ctx, name);
    return status;
}

hd_status client_pieces(client *c, basis_piece_fn fn, void *ctx) {
    bool more = true;
    hd_status status = client_snapshot(c);
    if (!status && has_rows(c)) status = tell_file_pieces(c, fn, ctx, &more);
    for (uint32_t i = 0; i < c->rows.pieces.count && more && !status; i++)
        status = tell_tail_piece(c, &c->rows.pieces.items[i], fn, ctx, &more);
    return status;
}

/* ---- Who writes a document -------------------------------------------------------------------- */

hd_status client_metadata(client *c, place_id doc, hd_value *out) {
    uint64_t seq;
    *out = value_absent();
    hd_status status = client_snapshot(c);
    if (status) return status;
    doc_name name = client_name(c, doc);
    name.meta = true;
    return client_document(c, &name, out, &seq);
}

/* ---- What has changed ------------------------------------------------------------------------- */

typedef struct telling {
    client *c;
    const struct key *space;
    uint64_t after;
    basis_change_fn fn;
    void *ctx;
    bool stopped;
} telling;

static void tell(telling *t, place_id doc, uint64_t seq) {
    if (doc && seq > t->after && !t->stopped) t->stopped = !t->fn(t->ctx, doc, seq);
}

static hd_status tell_row(telling *t, sqlite3_stmt *s, bool meta) {
    const char *scope = (const char *)sqlite3_column_text(s, 1);
    doc_name name = { .space = key_bytes(t->space),
                      .space_length = t->space->length,
                      .id = (const char *)sqlite3_column_text(s, 0),
                      .id_length = (uint32_t)sqlite3_column_bytes(s, 0),
                      .instance = (const char *)sqlite3_column_text(s, 2),
                      .instance_length = (uint32_t)sqlite3_column_bytes(s, 2),
                      .meta = meta };
    if (!name.id || !name.instance || !scope) return HD_NOMEM;
    name.scope = scope_of_word(scope);
    tell(t, client_find(t->c, &name), (uint64_t)sqlite3_column_int64(s, 3));
    return HD_OK;
}

static hd_status tell_heads(telling *t, file_sql which, bool meta) {
    file *f = &t->c->file;
    sqlite3_stmt *s = file_sql_get(f, which);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    sqlite3_bind_text(s, 1, key_bytes(t->space), (int)t->space->length, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)t->after);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && !t->stopped && (rc = sqlite3_step(s)) == SQLITE_ROW)
        status = tell_row(t, s, meta);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

static bool in_space(const telling *t, const doc_name *name) {
    return name->space_length == t->space->length &&
           memcmp(name->space, key_bytes(t->space), t->space->length) == 0;
}

static void tell_tail(telling *t) {
    const tail *of = &t->c->tail;
    for (uint32_t i = 0; i < of->docs.count; i++) {
        const tail_doc *d = &of->docs.items[i];
        uint64_t seq = vec_last(&d->at).seq;
        if (seq > t->after && in_space(t, &d->name)) tell(t, client_find(t->c, &d->name), seq);
    }
}

/* Up to where the tombstones of the space have been pruned. */
static hd_status read_floor(const telling *t, uint64_t *out) {
    file *f = &t->c->file;
    sqlite3_stmt *s = file_sql_get(f, SQL_SPACES);
    if (!s) return file_status(sqlite3_extended_errcode(f->db));
    int rc;
    *out = 0;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        doc_name name = { .space = (const char *)sqlite3_column_text(s, 0),
                          .space_length = (uint32_t)sqlite3_column_bytes(s, 0) };
        if (name.space && in_space(t, &name)) *out = (uint64_t)sqlite3_column_int64(s, 2);
    }
    sqlite3_reset(s);
    return file_status(rc);
}

static hd_status tell_place(telling *t, place_id doc) {
    client *c = t->c;
    doc_name name = client_name(c, doc);
    const tail_doc *after = tail_find(&c->tail, &name);
    stored_head head;
    if (after) {
        tell(t, doc, vec_last(&after->at).seq);
        return HD_OK;
    }
    hd_status status = head_find(&c->file, &name, &head);
    if (status) return status;
    uint64_t seq = name.meta ? head.meta_seq : head.seq;
    tell(t, doc, head.exists && seq ? seq : UINT64_MAX);
    return HD_OK;
}

static hd_status tell_places(telling *t) {
    const places *ps = &t->c->r->places;
    hd_status status = HD_OK;
    for (place_id id = 1; id < ps->count && !status && !t->stopped; id++) {
        const place *p = &ps->at[id];
        if (p->root != id || (p->doc.flags & DOC_VOLATILE)) continue;
        if (ps->homes.items[p->doc.home].space == t->space) status = tell_place(t, id);
    }
    return status;
}

hd_status client_changes(client *c, struct key *space, uint64_t seq, basis_change_fn fn,
                         void *ctx) {
    telling t = { c, space, seq, fn, ctx, false };
    client_space *known;
    uint64_t floor = 0;
    hd_status status = client_space_at(c, space, &known);
    if (status || known->seq <= seq) return status;
    status = client_snapshot(c);
    if (!status) status = read_floor(&t, &floor);
    if (status) return status;
    if (seq < floor) return tell_places(&t);
    status = tell_heads(&t, SQL_HEADS_SINCE, false);
    if (!status && c->file.format >= 2) status = tell_heads(&t, SQL_METAS_SINCE, true);
    if (!status) tell_tail(&t);
    return status;
}
