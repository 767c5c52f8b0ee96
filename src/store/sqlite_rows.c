/* sqlite_rows.c -- the rows of a piece: one query, and the tail's rows merged in.
 *
 * Both come in order of name and instance, so this is one pass. Rows that were proved in the same
 * checkpoint have the same seqs, letter by letter: their text is read once. */
#include "store/sqlite_rows.h"

#include "value/node.h"

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
    if (!counts(g, e) || !(e->flags & ROW_WHOLE)) return;
    hd_value seqs = basis_seqs_of(&g->c->rows, e);
    if (value_is_failed(seqs)) return;
    basis_row row = basis_row_of(e, seqs);
    g->stopped = !g->fn(g->ctx, &row);
    value_unref(seqs);
}

static int compare_entry(const basis_entry *e, sqlite3_stmt *s) {
    for (int i = 0; i < 2; i++) {
        size_t length;
        const char *text = basis_text(e, (size_t)i, &length);
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
    const char *text = sqlite3_column_blob(s, 5);
    if (text) row->plain = basis_plain_of(text, (size_t)sqlite3_column_bytes(s, 5));
    return row->plain.at ? HD_OK : column_json(g, s, 5, &row->body);
}

static hd_status take_seqs(reading *g, sqlite3_stmt *s) {
    const char *text = (const char *)sqlite3_column_text(s, 4);
    size_t length = (size_t)sqlite3_column_bytes(s, 4);
    if (!text) return HD_NOMEM;
    if (g->seqs_text[0] && strcmp(text, g->seqs_text) == 0) return HD_OK;
    value_unref(g->seqs);
    g->seqs_text[0] = '\0';
    hd_status status = column_json(g, s, 4, &g->seqs);
    if (!status && !value_is_object(g->seqs)) status = HD_CORRUPT;
    if (!status && length < sizeof g->seqs_text) memcpy(g->seqs_text, text, length + 1);
    return status;
}

static bool is_meant(const basis_entry *e, sqlite3_stmt *s) {
    const char *fingerprint = (const char *)sqlite3_column_text(s, 2);
    return fingerprint && basis_is_meant(e->row, fingerprint, (size_t)sqlite3_column_bytes(s, 2));
}

/* `e` is what the tail knows of it: nothing, or that it was proved anew. */
static hd_status tell_stored(reading *g, sqlite3_stmt *s, const basis_entry *e) {
    if (e && !is_meant(e, s)) e = NULL;
    basis_row row = { .name = (const char *)sqlite3_column_text(s, 0),
                      .instance = (const char *)sqlite3_column_text(s, 1),
                      .fingerprint = (const char *)sqlite3_column_text(s, 2),
                      .stale = sqlite3_column_int(s, 3) != 0 };
    if (!row.name || !row.instance || !row.fingerprint) return HD_NOMEM;
    bool said = g->over && value_exists(g->over->valid) && g->over->at > g->c->checkpoint;
    if (said) row.stale = basis_names_stale(g->over, row.name);
    if (e) row.stale = e->flags & ROW_STALE;
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
    if (!(e->flags & (ROW_WHOLE | ROW_GONE))) return tell_stored(g, s, e);
    return HD_OK; /* replaced, which comes in its turn, or gone */
}

static hd_status read_nodes(reading *g, int64_t piece) {
    sqlite3_stmt *s = file_sql_get(&g->c->file, SQL_NODES);
    if (!s) return file_status(sqlite3_extended_errcode(g->c->file.db));
    sqlite3_bind_int64(s, 1, piece);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && !g->stopped && (rc = sqlite3_step(s)) == SQLITE_ROW) status = merge_row(g, s);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

/* The piece's number in the file, 0: none; and how far it says that its rows hold. */
static hd_status find_piece(reading *g, const char *name, int64_t *piece, hd_value *valid) {
    *piece = 0;
    *valid = value_absent();
    if (g->c->file.format < 2) return HD_OK;
    sqlite3_stmt *s = file_sql_get(&g->c->file, SQL_PIECE_GET);
    if (!s) return file_status(sqlite3_extended_errcode(g->c->file.db));
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    hd_status status = file_status(rc);
    if (rc == SQLITE_ROW) {
        *piece = sqlite3_column_int64(s, 0);
        if (sqlite3_column_type(s, 1) != SQLITE_NULL) status = column_json(g, s, 1, valid);
    }
    sqlite3_reset(s);
    return status == HD_CORRUPT ? HD_OK : status;
}

hd_status client_rows(client *c, const char *piece, hd_value *valid, basis_row_fn fn, void *ctx) {
    basis_piece *above = basis_find_piece(&c->rows, piece, strlen(piece));
    reading g = { .c = c, .fn = fn, .ctx = ctx, .over = above };
    int64_t number = 0;
    *valid = value_absent();
    hd_status status = client_snapshot(c);
    if (above) basis_sort(&c->rows, above);
    if (!status) status = find_piece(&g, piece, &number, valid);
    if (!status && above && value_exists(above->valid) && above->at > c->checkpoint) {
        value_unref(*valid);
        *valid = value_ref(above->valid);
    }
    if (!status && number) status = read_nodes(&g, number);
    for (const basis_entry *e; !status && !g.stopped && (e = entry_at(&g)); g.next++)
        tell_entry(&g, e);
    value_unref(g.seqs);
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

/* ---- What has changed in documents that are known here -------------------------------------- */

typedef struct told {
    client *c;
    basis_change_fn fn;
    void *ctx;
} told;

static uint32_t known_place(void *ctx, const doc_name *name) {
    const told *t = ctx;
    return client_find(t->c, name);
}

static bool tell_change(void *ctx, uint32_t doc, uint64_t seq, hd_path path, uint8_t flags) {
    const told *t = ctx;
    basis_change change = { doc, seq, path, flags };
    return t->fn(t->ctx, &change);
}

hd_status client_changes(client *c, struct key *space, uint64_t seq, basis_change_fn fn,
                         void *ctx) {
    told t = { c, fn, ctx };
    change_query q = { c, space, seq, &t, known_place, tell_change };
    return changes_since(&q);
}
