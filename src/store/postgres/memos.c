/* memos.c -- the table node, which has the memos. */
#include "store/postgres/store.h"

#include <assert.h>
#include <stdio.h>

hd_status pg_has_memos(log_store *s, bool *out) {
    conn *c = conn_of(s);
    hd_status status = conn_ask(c, PG_NODE_ANY, NULL);
    *out = !status && rows_of(c, c->results[c->count - 1]) > 0;
    return status;
}

typedef struct memo_reading {
    stored_memo_fn fn;
    void *ctx;
} memo_reading;

static hd_status tell_memo(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    const memo_reading *g = ctx;
    stored_memo m;
    for (int k = 0; k < MEMO_TEXTS; k++) m.text[k] = text_at(c, r, i, k);
    return g->fn(g->ctx, &m, stop);
}

hd_status pg_each_memo(log_store *s, const char *piece, stored_memo_fn fn, void *ctx) {
    conn_args a = { 0 };
    if (piece) args_word(&a, piece);
    return conn_each(conn_of(s), piece ? PG_NODES : PG_NODES_ALL, &a, tell_memo,
                     &(memo_reading){ fn, ctx });
}

hd_status pg_next_memo(log_store *s, const char *from, char *out, size_t size) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    *out = '\0';
    args_word(&a, from);
    hd_status status = conn_ask(c, PG_NODE_NEXT, &a);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (r && rows_of(c, r)) snprintf(out, size, "%s", word_at(c, r, 0, 0));
    return status;
}

hd_status pg_put_memo(log_store *s, const stored_memo *m) {
    conn_args a = { 0 };
    assert(m->text[MEMO_NAME].length && m->text[MEMO_SEQS].length);
    assert(conn_of(s)->mode == CONN_HOUSEWORK);
    for (int i = 0; i < MEMO_TEXTS; i++) args_text(&a, m->text[i]);
    return conn_send(conn_of(s), PG_NODE_PUT, &a);
}

hd_status pg_drop_memo(log_store *s, row_text name, row_text instance) {
    conn_args a = { 0 };
    args_text(&a, name);
    args_text(&a, instance);
    return conn_send(conn_of(s), PG_NODE_DROP, &a);
}
