/* nodes.c -- the table node. Files of an old format that could not be brought forward have none. */
#include "store/sqlite/store.h"

#include <assert.h>
#include <stdio.h>

static bool has_table(const file *f) { return f->format >= NODE_FORMAT; }

static hd_status note_row(void *ctx, sqlite3_stmt *s, bool *stop) {
    (void)s;
    *(bool *)ctx = *stop = true;
    return HD_OK;
}

hd_status sqlite_has_nodes(log_store *s, bool *out) {
    file *f = file_of(s);
    *out = false;
    return has_table(f) ? sqlite_each(f, file_sql_get(f, SQL_NODE_ANY), note_row, out) : HD_OK;
}

/* ---- Reading -------------------------------------------------------------------------------- */

typedef struct node_reading {
    node_row_fn fn;
    void *ctx;
} node_reading;

static hd_status tell_node(void *ctx, sqlite3_stmt *s, bool *stop) {
    const node_reading *g = ctx;
    node_row row;
    hd_status status = sqlite_text(s, 0, &row.name);
    if (!status) status = sqlite_text(s, 1, &row.instance);
    if (!status) status = sqlite_text(s, 2, &row.hashes);
    if (!status) status = sqlite_text(s, 3, &row.print);
    if (!status) status = sqlite_text(s, 4, &row.flags);
    if (!status) status = sqlite_text(s, 5, &row.reads);
    if (!status) status = sqlite_bytes(s, 6, &row.seqs);
    return status ? status : g->fn(g->ctx, &row, stop);
}

hd_status sqlite_each_node(log_store *s, const char *piece, node_row_fn fn, void *ctx) {
    file *f = file_of(s);
    node_reading g = { fn, ctx };
    if (!has_table(f)) return HD_OK;
    sqlite3_stmt *select = file_sql_get(f, SQL_NODES);
    if (select) sqlite3_bind_text(select, 1, piece, -1, SQLITE_STATIC);
    return sqlite_each(f, select, tell_node, &g);
}

typedef struct name_buffer {
    char *out;
    size_t size;
} name_buffer;

static hd_status take_name(void *ctx, sqlite3_stmt *s, bool *stop) {
    const name_buffer *to = ctx;
    *stop = true;
    snprintf(to->out, to->size, "%s", sqlite_word(s, 0));
    return HD_OK;
}

hd_status sqlite_next_node(log_store *s, const char *from, char *out, size_t size) {
    file *f = file_of(s);
    name_buffer to = { out, size };
    *out = '\0';
    if (!has_table(f)) return HD_OK;
    sqlite3_stmt *select = file_sql_get(f, SQL_NODE_NEXT);
    if (select) sqlite3_bind_text(select, 1, from, -1, SQLITE_STATIC);
    return sqlite_each(f, select, take_name, &to);
}

/* A statement on the row's key. */
static sqlite3_stmt *on_key(file *f, file_sql which, row_text name, row_text instance) {
    sqlite3_stmt *s = file_sql_get(f, which);
    if (!s) return NULL;
    sqlite_bind(s, 1, name);
    sqlite_bind(s, 2, instance);
    return s;
}

/* ---- Writing -------------------------------------------------------------------------------- */

hd_status sqlite_put_node(log_store *s, const node_row *row) {
    file *f = file_of(s);
    assert(file_in_transaction(f) && row->print.length);
    sqlite3_stmt *put = on_key(f, SQL_NODE_PUT, row->name, row->instance);
    if (put) {
        sqlite_bind(put, 3, row->hashes);
        sqlite_bind(put, 4, row->print);
        sqlite_bind(put, 5, row->flags);
        sqlite_bind(put, 6, row->reads);
        sqlite_bind(put, 7, row->seqs);
    }
    return sqlite_finish(f, put);
}

hd_status sqlite_drop_node(log_store *s, row_text name, row_text instance) {
    file *f = file_of(s);
    assert(file_in_transaction(f));
    return sqlite_finish(f, on_key(f, SQL_NODE_DROP, name, instance));
}
