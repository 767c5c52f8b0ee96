/* nodes.c -- the table node. */
#include "store/postgres/store.h"

#include <assert.h>
#include <stdio.h>

hd_status pg_has_nodes(log_store *s, bool *out) {
    conn *c = conn_of(s);
    hd_status status = conn_ask(c, PG_NODE_ANY, NULL);
    *out = !status && rows_of(c, c->results[c->count - 1]) > 0;
    return status;
}

typedef struct node_reading {
    node_row_fn fn;
    void *ctx;
} node_reading;

static hd_status tell_node(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    const node_reading *g = ctx;
    node_row row;
    for (int k = 0; k < NODE_TEXTS; k++) row.text[k] = text_at(c, r, i, k);
    return g->fn(g->ctx, &row, stop);
}

hd_status pg_each_node(log_store *s, const char *piece, node_row_fn fn, void *ctx) {
    conn_args a = { 0 };
    if (piece) args_word(&a, piece);
    return conn_each(conn_of(s), piece ? PG_NODES : PG_NODES_ALL, &a, tell_node,
                     &(node_reading){ fn, ctx });
}

hd_status pg_next_node(log_store *s, const char *from, char *out, size_t size) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    *out = '\0';
    args_word(&a, from);
    hd_status status = conn_ask(c, PG_NODE_NEXT, &a);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    if (r && rows_of(c, r)) snprintf(out, size, "%s", word_at(c, r, 0, 0));
    return status;
}

hd_status pg_put_node(log_store *s, const node_row *row) {
    conn_args a = { 0 };
    assert(row->text[ROW_NAME].length && row->text[NODE_SEQS].length);
    assert(conn_of(s)->mode == CONN_HOUSEWORK);
    for (int i = 0; i < NODE_TEXTS; i++) args_text(&a, row->text[i]);
    return conn_send(conn_of(s), PG_NODE_PUT, &a);
}

hd_status pg_drop_node(log_store *s, row_text name, row_text instance) {
    conn_args a = { 0 };
    args_text(&a, name);
    args_text(&a, instance);
    return conn_send(conn_of(s), PG_NODE_DROP, &a);
}
