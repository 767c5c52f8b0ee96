/* memos.c -- the table node, which has the memos. Files of an old format that could not be brought forward lack it. */
#include "store/sqlite/store.h"

#include "store/log/columns.h"
#include <assert.h>
#include <stdio.h>

static bool has_table(const file *f) { return f->format >= NODE_FORMAT; }

static hd_status note_row(void *ctx, sqlite3_stmt *s, bool *stop) {
    (void)s;
    *(bool *)ctx = *stop = true;
    return HD_OK;
}

hd_status sqlite_has_memos(log_store *s, bool *out) {
    file *f = file_of(s);
    *out = false;
    return has_table(f) ? sqlite_each(f, file_sql_get(f, SQL_NODE_ANY), note_row, out) : HD_OK;
}

/* ---- Reading -------------------------------------------------------------------------------- */

typedef struct memo_reading {
    stored_memo_fn fn;
    void *ctx;
} memo_reading;

static hd_status tell_memo(void *ctx, sqlite3_stmt *s, bool *stop) {
    const memo_reading *g = ctx;
    stored_memo m;
    hd_status status = sqlite_bytes(s, MEMO_SEQS, &m.text[MEMO_SEQS]);
    for (int i = 0; i < MEMO_ITEMS && !status; i++) status = sqlite_text(s, i, &m.text[i]);
    return status ? status : g->fn(g->ctx, &m, stop);
}

hd_status sqlite_each_memo(log_store *s, const char *piece, stored_memo_fn fn, void *ctx) {
    file *f = file_of(s);
    memo_reading g = { fn, ctx };
    if (!has_table(f)) return HD_OK;
    if (!piece)
        return sqlite_each_of(f,
                              "select " MEMO_COLUMNS " from node"
                              " order by name, instance",
                              tell_memo, &g);
    sqlite3_stmt *select = file_sql_get(f, SQL_NODES);
    if (select) sqlite3_bind_text(select, 1, piece, -1, SQLITE_STATIC);
    return sqlite_each(f, select, tell_memo, &g);
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

hd_status sqlite_next_memo(log_store *s, const char *from, char *out, size_t size) {
    file *f = file_of(s);
    name_buffer to = { out, size };
    *out = '\0';
    if (!has_table(f)) return HD_OK;
    sqlite3_stmt *select = file_sql_get(f, SQL_NODE_NEXT);
    if (select) sqlite3_bind_text(select, 1, from, -1, SQLITE_STATIC);
    return sqlite_each(f, select, take_name, &to);
}

/* ---- Writing -------------------------------------------------------------------------------- */

hd_status sqlite_put_memo(log_store *s, const stored_memo *m) {
    file *f = file_of(s);
    sqlite3_stmt *put = file_sql_get(f, SQL_NODE_PUT);
    assert(has_table(f) && m->text[MEMO_NAME].length && m->text[MEMO_SEQS].length);
    assert(file_in_transaction(f));
    for (int i = 0; put && i < MEMO_TEXTS; i++) sqlite_bind(put, i + 1, m->text[i]);
    return sqlite_finish(f, put);
}

hd_status sqlite_drop_memo(log_store *s, row_text name, row_text instance) {
    file *f = file_of(s);
    sqlite3_stmt *drop = file_sql_get(f, SQL_NODE_DROP);
    assert(file_in_transaction(f));
    if (drop) sqlite_bind(drop, 1, name), sqlite_bind(drop, 2, instance);
    return sqlite_finish(f, drop);
}
