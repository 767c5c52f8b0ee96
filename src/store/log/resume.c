/* resume.c -- the rows of a piece, and which documents have changed since.
 *
 * Stored rows and those of the tail both come in order of name and instance, so they are merged in one
 * pass. Rows of one checkpoint have the same seqs, letter by letter: their text is parsed once. */
#include "store/log/resume.h"

#include "value/node.h"
#include <stdio.h>

enum { PIECE_SIZE = 1104 };

typedef struct reading {
    client *c;
    basis_row_fn fn;
    void *ctx;
    bool stopped;
    const basis_piece *over; /* of the tail; NULL: it has none */
    uint32_t next;           /* of its rows */
    hd_value seqs;           /* of the row before; owned */
    char seqs_text[256];     /* the same as text */
    size_t seqs_length;      /* 0: none */
} reading;

/* ---- The tail's rows --------------------------------------------------------------------- */

static const basis_entry *entry_at(const reading *g) {
    return g->over && g->next < g->over->rows.count
               ? &g->c->rows.entries.items[g->over->rows.items[g->next]]
               : NULL;
}

/* What another process has folded already is in the file, and newer there. */
static bool counts(const reading *g, const basis_entry *e) { return e->at > g->c->checkpoint; }

static void tell_entry(reading *g, const basis_entry *e) {
    assert(!g->stopped);
    if (!counts(g, e) || basis_is_gone(e)) return;
    basis_row row = basis_row_of(e);
    g->stopped = !g->fn(g->ctx, &row);
}

static int compare_entry(const basis_entry *e, const node_row *row) {
    const row_text texts[] = { row->name, row->instance };
    for (size_t i = 0; i < 2; i++) {
        size_t length, other = texts[i].length;
        const char *text = basis_item_text(e->item, i, &length);
        int differs = memcmp(text, texts[i].bytes, length < other ? length : other);
        if (differs || length != other) return differs ? differs : length < other ? -1 : 1;
    }
    return 0;
}

/* ---- Stored rows ---------------------------------------------------------------------------- */

/* Rows of one checkpoint have the same seqs, letter by letter. */
static hd_status take_seqs(reading *g, row_text text) {
    if (text.length && text.length == g->seqs_length &&
        memcmp(text.bytes, g->seqs_text, text.length) == 0)
        return HD_OK;
    value_unref(g->seqs);
    g->seqs_length = 0;
    hd_status status = log_json_of(g->c->r->heap, text, &g->seqs);
    if (!status && !value_is_object(g->seqs)) status = HD_CORRUPT;
    if (!status && text.length <= sizeof g->seqs_text) {
        memcpy(g->seqs_text, text.bytes, text.length);
        g->seqs_length = text.length;
    }
    return status;
}

/* A row that cannot be read is left out: its node runs. */
static hd_status tell_stored(reading *g, const node_row *stored) {
    hd_status status = take_seqs(g, stored->seqs);
    basis_row row = { .name = stored->name.bytes,
                      .instance = stored->instance.bytes,
                      .hashes = stored->hashes.bytes,
                      .print = stored->print.bytes,
                      .flags = stored->flags.bytes,
                      .reads = stored->reads.bytes,
                      .seqs = g->seqs };
    if (!status) g->stopped = !g->fn(g->ctx, &row);
    return status == HD_CORRUPT ? HD_OK : status;
}

/* An entry of the tail replaces or deletes the stored row of the same name: it is told in its turn. */
static hd_status merge_row(void *ctx, const node_row *row, bool *stop) {
    reading *g = ctx;
    const basis_entry *e;
    int differs = 1;
    while ((e = entry_at(g)) && (differs = compare_entry(e, row)) < 0 && !g->stopped) {
        tell_entry(g, e);
        g->next++;
    }
    hd_status status = HD_OK;
    bool changed = e && !differs && counts(g, e);
    if (!g->stopped && !changed) status = tell_stored(g, row);
    *stop = g->stopped;
    return status;
}

hd_status client_rows(client *c, const char *piece, basis_row_fn fn, void *ctx) {
    assert(*piece);
    basis_piece *above = basis_find_piece(&c->rows, piece, strlen(piece));
    reading g = { .c = c, .fn = fn, .ctx = ctx, .over = above };
    hd_status status = client_snapshot(c);
    if (above) basis_sort(&c->rows, above);
    if (!status) status = c->store->ops->each_node(c->store, piece, merge_row, &g);
    for (const basis_entry *e; !status && !g.stopped && (e = entry_at(&g)); g.next++)
        tell_entry(&g, e);
    value_unref(g.seqs);
    return status;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The piece of the first row whose name is `from` or later, up to the second ':', into `out`; empty:
 * there is none. */
static hd_status next_piece(client *c, const char *from, char *out, size_t size) {
    hd_status status = c->store->ops->next_node(c->store, from, out, size);
    out[status ? 0 : basis_piece_length(out, strlen(out))] = '\0';
    return status;
}

/* Behind all names of a piece: ';' follows ':'. */
static bool pass(const char *piece, char *next, size_t size) {
    int n = snprintf(next, size, "%s;", piece);
    return n > 0 && (size_t)n < size;
}

static hd_status tell_stored_pieces(client *c, basis_piece_fn fn, void *ctx, bool *more) {
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
    hd_status status = fits ? next_piece(c, from, found, sizeof found) : HD_OK;
    if (!status && strcmp(found, name) != 0) *more = fn(ctx, name);
    return status;
}

hd_status client_pieces(client *c, basis_piece_fn fn, void *ctx) {
    bool more = true;
    hd_status status = client_snapshot(c);
    if (!status) status = tell_stored_pieces(c, fn, ctx, &more);
    for (uint32_t i = 0; i < c->rows.pieces.count && more && !status; i++)
        status = tell_tail_piece(c, &c->rows.pieces.items[i], fn, ctx, &more);
    return status;
}

/* ---- Metadata ---------------------------------------------------------------------------------- */

hd_status client_metadata(client *c, place_id doc, hd_value *out) {
    assert(place_is_doc(&c->r->places, doc));
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

static hd_status tell_item(void *ctx, const head_item *item, bool *stop) {
    telling *t = ctx;
    tell(t, client_find(t->c, &item->name), (uint64_t)item->seq);
    *stop = t->stopped;
    return HD_OK;
}

static hd_status tell_heads(telling *t, bool meta) {
    log_store *s = t->c->store;
    row_text space = text_of_key(t->space);
    return t->stopped ? HD_OK : s->ops->heads_since(s, space, t->after, meta, tell_item, t);
}

static void tell_tail(telling *t) {
    const tail *of = &t->c->tail;
    for (uint32_t i = 0; i < of->docs.count; i++) {
        const tail_doc *d = &of->docs.items[i];
        uint64_t seq = vec_last(&d->at).seq;
        if (seq > t->after && doc_name_in_space(&d->name, t->space))
            tell(t, client_find(t->c, &d->name), seq);
    }
}

typedef struct floor_of {
    const struct key *space;
    uint64_t floor;
} floor_of;

static hd_status take_floor(void *ctx, const space_row *row, bool *stop) {
    floor_of *f = ctx;
    *stop = row->name.length == f->space->length &&
            memcmp(row->name.bytes, key_bytes(f->space), f->space->length) == 0;
    /* One that makes no sense hides how far pruning went: then nothing is taken from the indexes. */
    if (*stop && !log_number_of(row->floor, &f->floor)) f->floor = UINT64_MAX;
    return HD_OK;
}

/* The seq up to which the tombstones of the space have been pruned. */
static hd_status read_floor(const telling *t, uint64_t *out) {
    floor_of f = { t->space, 0 };
    log_store *s = t->c->store;
    hd_status status = s->ops->each_space(s, take_floor, &f);
    *out = f.floor;
    return status;
}

static hd_status tell_place(telling *t, place_id doc) {
    assert(place_is_doc(&t->c->r->places, doc));
    client *c = t->c;
    doc_name name = client_name(c, doc);
    const tail_doc *after = tail_find(&c->tail, &name);
    stored_head head;
    if (after) {
        tell(t, doc, vec_last(&after->at).seq);
        return HD_OK;
    }
    hd_status status = head_find(c->store, &name, &head);
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
    log_space *known;
    uint64_t floor = 0;
    hd_status status = client_space_at(c, space, &known);
    if (status || known->seq <= seq) return status;
    status = client_snapshot(c);
    if (!status) status = read_floor(&t, &floor);
    if (status) return status;
    if (seq < floor) return tell_places(&t);
    status = tell_heads(&t, false);
    if (!status) status = tell_heads(&t, true);
    if (!status) tell_tail(&t);
    return status;
}
