/* memo_read.c -- the memos of a piece.
 *
 * A memo of the tail takes the place of the stored one. Memos of one checkpoint have the same seqs, letter by letter:
 * their text is parsed once. */
#include "store/log/memo_read.h"

#include "value/node.h"
#include <stdio.h>

typedef struct reading {
    client *c;
    memo_fn fn;
    void *ctx;
    bool stopped;
    hd_value seqs;       /* of the memo before; owned */
    char seqs_text[256]; /* the same as text */
    size_t seqs_length;  /* 0: none */
} reading;

/* ---- Stored memos --------------------------------------------------------------------------- */

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

/* Whether the tail replaces or deletes the stored memo. What another process has folded already is in the file, and
 * newer there. */
static bool is_replaced(const client *c, const stored_memo *stored) {
    const memo_entry *e =
        memos_find(&c->memos, stored->text[MEMO_NAME].bytes, stored->text[MEMO_INSTANCE].bytes);
    return e && e->at > c->checkpoint;
}

/* A memo whose seqs cannot be read is left out. */
static hd_status tell_stored(void *ctx, const stored_memo *stored, bool *stop) {
    reading *g = ctx;
    assert(!g->stopped);
    if (is_replaced(g->c, stored)) return HD_OK;
    const row_text *text = stored->text;
    hd_status status = take_seqs(g, text[MEMO_SEQS]);
    memo m = { .seqs = g->seqs };
    for (size_t i = 0; i < MEMO_ITEMS; i++) m.text[i] = text[i].bytes;
    if (!status) g->stopped = *stop = !g->fn(g->ctx, &m);
    return status == HD_CORRUPT ? HD_OK : status;
}

hd_status client_memos(client *c, const char *piece, memo_fn fn, void *ctx) {
    assert(*piece);
    reading g = { .c = c, .fn = fn, .ctx = ctx };
    hd_status status = client_snapshot(c);
    if (!status) status = c->store->ops->each_memo(c->store, piece, tell_stored, &g);
    if (!status && !g.stopped) memos_tell(&c->memos, piece, c->checkpoint + 1, fn, ctx);
    value_unref(g.seqs);
    return status;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The piece of the first memo whose name is `from` or later, up to the second ':', into `out`; empty:
 * there is none. */
static hd_status next_piece(client *c, const char *from, char *out, size_t size) {
    assert(c->store->ops->in_transaction(c->store));
    hd_status status = c->store->ops->next_memo(c->store, from, out, size);
    out[status ? 0 : memo_piece_length(out, strlen(out))] = '\0';
    return status;
}

/* Behind all names of a piece: ';' follows ':'. */
static bool pass(const char *piece, char *next, size_t size) {
    int n = snprintf(next, size, "%s;", piece);
    return n > 0 && (size_t)n < size;
}

static hd_status tell_stored_pieces(client *c, piece_fn fn, void *ctx, bool *more) {
    char piece[PIECE_SIZE], next[PIECE_SIZE] = "";
    for (;;) {
        hd_status status = next_piece(c, next, piece, sizeof piece);
        if (status || !*piece || !pass(piece, next, sizeof next)) return status;
        *more = fn(ctx, piece);
        if (!*more) return HD_OK;
    }
}

/* A piece that has memos in the log's tail, unless it has stored ones, too. */
static hd_status tell_tail_piece(client *c, const char *piece, piece_fn fn, void *ctx, bool *more) {
    char found[PIECE_SIZE] = "", from[PIECE_SIZE];
    int n = snprintf(from, sizeof from, "%s:", piece);
    bool fits = n > 0 && (size_t)n < sizeof from;
    hd_status status = fits ? next_piece(c, from, found, sizeof found) : HD_OK;
    if (!status && strcmp(found, piece) != 0) *more = fn(ctx, piece);
    return status;
}

hd_status client_memo_pieces(client *c, piece_fn fn, void *ctx) {
    char piece[PIECE_SIZE];
    bool more = true;
    hd_status status = client_snapshot(c);
    if (!status) status = tell_stored_pieces(c, fn, ctx, &more);
    for (uint32_t i = 0; i < c->memos.entries.count && more && !status; i++)
        if (memos_first_of(&c->memos.entries.items[i], piece))
            status = tell_tail_piece(c, piece, fn, ctx, &more);
    return status;
}
