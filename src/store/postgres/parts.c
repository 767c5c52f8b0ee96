/* parts.c -- the tables large and patch, listings of head rows, and sizes. */
#include "store/postgres/store.h"

#include "store/log/columns.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Large values and patches ---------------------------------------------------------------- */

typedef struct part_reading {
    head_part_fn fn;
    void *ctx;
    bool found;
} part_reading;

/* Columns: seq, hash, text. */
static hd_status tell_part(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    part_reading *g = ctx;
    head_part part = { number_at(c, r, i, 0), (uint64_t)number_at(c, r, i, 1),
                       text_at(c, r, i, 2) };
    g->found = true;
    return g->fn(g->ctx, &part, stop);
}

static hd_status read_parts(log_store *s, pg_sql which, int64_t doc, part_reading *g) {
    conn_args a = { 0 };
    args_number(&a, doc);
    return conn_each(conn_of(s), which, &a, tell_part, g);
}

hd_status pg_read_large(log_store *s, int64_t doc, head_part_fn fn, void *ctx) {
    part_reading g = { fn, ctx, false };
    hd_status status = read_parts(s, PG_LARGE_GET, doc, &g);
    return status || g.found ? status : HD_NOT_FOUND;
}

hd_status pg_each_patch(log_store *s, int64_t doc, head_part_fn fn, void *ctx) {
    part_reading g = { fn, ctx, false };
    return read_parts(s, PG_PATCH_GET, doc, &g);
}

hd_status pg_put_large(log_store *s, int64_t doc, uint64_t hash, row_text value) {
    conn_args a = { 0 };
    assert(value.length && conn_of(s)->mode == CONN_HOUSEWORK);
    args_number(&a, doc);
    args_number(&a, (int64_t)hash);
    args_text(&a, value);
    return conn_send(conn_of(s), PG_LARGE_PUT, &a);
}

hd_status pg_put_patch(log_store *s, int64_t doc, const head_part *patch) {
    conn_args a = { 0 };
    assert(patch->text.length && patch->seq > 0 && conn_of(s)->mode == CONN_HOUSEWORK);
    args_number(&a, doc);
    args_number(&a, patch->seq);
    args_number(&a, (int64_t)patch->hash);
    args_text(&a, patch->text);
    return conn_send(conn_of(s), PG_PATCH_PUT, &a);
}

static hd_status drop(log_store *s, pg_sql which, int64_t doc) {
    conn_args a = { 0 };
    assert(conn_of(s)->mode == CONN_HOUSEWORK);
    args_number(&a, doc);
    return conn_send(conn_of(s), which, &a);
}

hd_status pg_drop_large(log_store *s, int64_t doc) { return drop(s, PG_LARGE_DROP, doc); }
hd_status pg_drop_patches(log_store *s, int64_t doc) { return drop(s, PG_PATCH_DROP, doc); }

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Columns: id, scope, instance, kind, seq. */
static head_item item_at(const conn *c, const PGresult *r, int i, row_text space, bool meta) {
    return (head_item){ .name = name_of_texts(space, text_at(c, r, i, 0), word_at(c, r, i, 1),
                                              text_at(c, r, i, 2), meta),
                        .kind = word_at(c, r, i, 3),
                        .seq = number_at(c, r, i, 4) };
}

static hd_status tell_items(conn *c, const PGresult *r, row_text space, bool meta, head_item_fn fn,
                            void *ctx, bool *stop) {
    hd_status status = HD_OK;
    for (int i = 0; i < rows_of(c, r) && !status && !*stop; i++) {
        head_item item = item_at(c, r, i, space, meta);
        status = fn(ctx, &item, stop);
    }
    return status;
}

/* The rows of a listing behind the last one of the portion before. */
static hd_status ask_portion(conn *c, row_text space, const char *kind, const char *from,
                             const PGresult *before) {
    conn_args a = { 0 };
    int last = before ? rows_of(c, before) - 1 : 0;
    assert(last >= 0); /* a portion that is followed by another one is full */
    args_text(&a, space);
    if (before) {
        for (int column = 0; column < 3; column++) args_text(&a, text_at(c, before, last, column));
    } else {
        args_word(&a, from);
        args_word(&a, ""); /* comes before every scope */
        args_word(&a, "");
    }
    if (kind) args_word(&a, kind);
    return conn_ask(c, kind ? PG_LIST_KIND : PG_LIST_ALL, &a);
}

hd_status pg_list_heads(log_store *s, row_text space, const char *kind, const char *from,
                        head_item_fn fn, void *ctx) {
    conn *c = conn_of(s);
    PGresult *r = NULL;
    bool stop = false;
    hd_status status = HD_OK;
    while (!status && !stop && (!r || rows_of(c, r) == PG_PORTION)) {
        status = ask_portion(c, space, kind, from, r);
        c->pq.PQclear(r);
        r = status ? NULL : conn_take(c);
        if (r) status = tell_items(c, r, space, false, fn, ctx, &stop);
    }
    c->pq.PQclear(r);
    return status;
}

hd_status pg_heads_since(log_store *s, row_text space, uint64_t seq, bool meta, head_item_fn fn,
                         void *ctx) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    args_text(&a, space);
    args_number(&a, (int64_t)seq);
    hd_status status = conn_ask(c, meta ? PG_METAS_SINCE : PG_HEADS_SINCE, &a);
    if (status) return status;
    PGresult *r = conn_take(c);
    bool stop = false;
    status = tell_items(c, r, space, meta, fn, ctx, &stop);
    c->pq.PQclear(r);
    return status;
}

/* Columns: those of a listing, then doc, space. */
hd_status pg_find_patched(log_store *s, int64_t after, head_item_fn fn, void *ctx) {
    conn *c = conn_of(s);
    conn_args a = { 0 };
    args_number(&a, after);
    hd_status status = conn_ask(c, PG_FIND_PATCHED, &a);
    if (status) return status;
    PGresult *r = conn_take(c);
    bool stop = false;
    if (rows_of(c, r)) {
        head_item item = item_at(c, r, 0, text_at(c, r, 0, 6), false);
        item.doc = number_at(c, r, 0, 5);
        status = fn(ctx, &item, &stop);
    }
    c->pq.PQclear(r);
    return status;
}

/* ---- For people ------------------------------------------------------------------------------ */

typedef struct telling {
    hd_check_fn fn;
    void *ctx;
} telling;

static hd_status tell_line(void *ctx, const conn *c, const PGresult *r, int i, bool *stop) {
    const telling *to = ctx;
    (void)stop;
    to->fn(word_at(c, r, i, 0), to->ctx);
    return HD_OK;
}

hd_status pg_check(log_store *s, hd_check_fn fn, void *ctx) {
    conn *c = conn_of(s);
    hd_status status = conn_each(c, PG_MISSING, NULL, tell_line, &(telling){ fn, ctx });
    if (!status) status = conn_each(c, PG_META_WRONG, NULL, tell_line, &(telling){ fn, ctx });
    if (!status) status = conn_ask(c, PG_PARTS, NULL);
    if (status) return status;
    const PGresult *r = c->results[c->count - 1];
    for (int i = 0; i < rows_of(c, r); i++) {
        char line[80];
        snprintf(line, sizeof line, "%s: row for document %lld, which has no head",
                 word_at(c, r, i, 0), (long long)number_at(c, r, i, 1));
        fn(line, ctx);
    }
    return HD_OK;
}

hd_status pg_measure(log_store *s, store_sizes *out) {
    conn *c = conn_of(s);
    uint64_t *const to[] = { &out->format,     &out->bytes,    &out->log_rows,   &out->log_bytes,
                             &out->first_row,  &out->last_row, &out->checkpoint, &out->tail_rows,
                             &out->tail_bytes, &out->large,    &out->tombstones, &out->memos,
                             &out->sessions,   &out->readers };
    *out = (store_sizes){ 0 };
    hd_status status = conn_ask(c, PG_SIZES, NULL);
    const PGresult *r = status ? NULL : c->results[c->count - 1];
    _Static_assert(sizeof to / sizeof *to == 14, "the columns of PG_SIZES");
    for (size_t i = 0; r && rows_of(c, r) && i < sizeof to / sizeof *to; i++)
        *to[i] = (uint64_t)number_at(c, r, 0, (int)i);
    return status;
}
