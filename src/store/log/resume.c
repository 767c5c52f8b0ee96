/* resume.c -- the rows of a piece, and which documents have changed since.
 *
 * A row of the tail takes the place of the stored one. Rows of one checkpoint have the same seqs, letter by letter:
 * their text is parsed once. */
#include "store/log/resume.h"

#include "value/node.h"
#include <stdio.h>

typedef struct reading {
    client *c;
    basis_row_fn fn;
    void *ctx;
    bool stopped;
    hd_value seqs;       /* of the row before; owned */
    char seqs_text[256]; /* the same as text */
    size_t seqs_length;  /* 0: none */
} reading;

/* ---- Stored rows ---------------------------------------------------------------------------- */

static hd_status take_seqs(reading *g, row_text text) {
    if (text.length && text.length == g->seqs_length &&
        memcmp(text.bytes, g->seqs_text, text.length) == 0)
        return HD_OK;
    value_unref(g->seqs);
    g->seqs_length = 0;
    hd_status status = log_json_of(g->c->r->heap, text, &g->seqs);
    if (!status && !value_is_object(g->seqs)) status = HD_CORRUPT;
    assert(status || value_is_object(g->seqs));
    if (!status && text.length <= sizeof g->seqs_text) {
        memcpy(g->seqs_text, text.bytes, text.length);
        g->seqs_length = text.length;
    }
    return status;
}

/* Whether the tail replaces or deletes the stored row. What another process has folded already is in the file, and
 * newer there. */
static bool is_replaced(const client *c, const node_row *stored) {
    const basis_entry *e =
        basis_find(&c->rows, stored->text[ROW_NAME].bytes, stored->text[ROW_INSTANCE].bytes);
    return e && e->at > c->checkpoint;
}

/* A row that cannot be read is left out: its node runs. */
static hd_status tell_stored(void *ctx, const node_row *stored, bool *stop) {
    reading *g = ctx;
    assert(!g->stopped);
    if (is_replaced(g->c, stored)) return HD_OK;
    const row_text *text = stored->text;
    hd_status status = take_seqs(g, text[NODE_SEQS]);
    basis_row row = { .seqs = g->seqs };
    for (size_t i = 0; i < ROW_ITEMS; i++) row.text[i] = text[i].bytes;
    if (!status) g->stopped = *stop = !g->fn(g->ctx, &row);
    return status == HD_CORRUPT ? HD_OK : status;
}

hd_status client_rows(client *c, const char *piece, basis_row_fn fn, void *ctx) {
    assert(*piece);
    reading g = { .c = c, .fn = fn, .ctx = ctx };
    hd_status status = client_snapshot(c);
    if (!status) status = c->store->ops->each_node(c->store, piece, tell_stored, &g);
    if (!status && !g.stopped) basis_tell(&c->rows, piece, c->checkpoint + 1, fn, ctx);
    value_unref(g.seqs);
    return status;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The piece of the first row whose name is `from` or later, up to the second ':', into `out`; empty:
 * there is none. */
static hd_status next_piece(client *c, const char *from, char *out, size_t size) {
    assert(c->store->ops->in_transaction(c->store));
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

/* A piece that has rows in the log's tail, unless it has stored ones, too. */
static hd_status tell_tail_piece(client *c, const char *piece, basis_piece_fn fn, void *ctx,
                                 bool *more) {
    char found[PIECE_SIZE] = "", from[PIECE_SIZE];
    int n = snprintf(from, sizeof from, "%s:", piece);
    bool fits = n > 0 && (size_t)n < sizeof from;
    hd_status status = fits ? next_piece(c, from, found, sizeof found) : HD_OK;
    if (!status && strcmp(found, piece) != 0) *more = fn(ctx, piece);
    return status;
}

hd_status client_pieces(client *c, basis_piece_fn fn, void *ctx) {
    char piece[PIECE_SIZE];
    bool more = true;
    hd_status status = client_snapshot(c);
    if (!status) status = tell_stored_pieces(c, fn, ctx, &more);
    for (uint32_t i = 0; i < c->rows.entries.count && more && !status; i++)
        if (basis_first_of(&c->rows.entries.items[i], piece))
            status = tell_tail_piece(c, piece, fn, ctx, &more);
    return status;
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
    assert(s->ops->in_transaction(s));
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
    uint64_t folded, floor; /* tombstones have been pruned up to the floor */
    hd_status status = client_space_at(c, space, &known);
    if (status || known->seq <= seq) return status;
    status = client_snapshot(c);
    if (!status) status = c->store->ops->get_space(c->store, text_of_key(space), &folded, &floor);
    if (status && status != HD_CORRUPT) return status;
    /* Numbers that make no sense hide how far pruning went. */
    if (status || seq < floor) return tell_places(&t);
    status = tell_heads(&t, false);
    if (!status) status = tell_heads(&t, true);
    if (!status) tell_tail(&t);
    return status;
}
