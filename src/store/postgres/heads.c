/* heads.c -- the table head.
 *
 * A round trip for each head row would make a checkpoint slow. So log/ says beforehand which documents it will
 * ask for (expect_heads), and all of their rows come in one round trip; find_head and read_head then answer from
 * memory. */
#define _GNU_SOURCE
#include "store/postgres/store.h"

#include "store/log/columns.h"
#include <assert.h>
#include <endian.h>
#include <string.h>

enum { DOCS_TAKEN = 1024 }; /* numbers for new rows, at once */

static head_row numbers_at(const conn *c, const PGresult *r, int i) {
    return (head_row){ .exists = true,
                       .doc = number_at(c, r, i, HEAD_DOC),
                       .seq = number_at(c, r, i, HEAD_SEQ),
                       .meta_seq = number_at(c, r, i, HEAD_META_SEQ),
                       .guarded = bool_at(c, r, i, HEAD_IS_GUARDED),
                       .large = bool_at(c, r, i, HEAD_IS_LARGE),
                       .size = number_at(c, r, i, HEAD_SIZE),
                       .patched = number_at(c, r, i, HEAD_PATCHED),
                       .kind = "" };
}

static head_row whole_at(const conn *c, const PGresult *r, int i) {
    head_row row = numbers_at(c, r, i);
    row.kind = word_at(c, r, i, HEAD_KIND);
    row.hash = (uint64_t)number_at(c, r, i, HEAD_HASH);
    row.value = text_at(c, r, i, HEAD_VALUE);
    row.meta = text_at(c, r, i, HEAD_META);
    return row;
}

static doc_name name_at(const conn *c, const PGresult *r, int i) {
    return name_of_texts(text_at(c, r, i, HEAD_SPACE), text_at(c, r, i, HEAD_ID),
                         word_at(c, r, i, HEAD_SCOPE), text_at(c, r, i, HEAD_INSTANCE), false);
}

/* ---- What is fetched before it is asked for -------------------------------------------------- */

static fetched_head *find_fetched(pg_store *s, const doc_name *name) {
    doc_name plain = *name;
    plain.meta = false; /* value and metadata have one row */
    for (table_probe p = table_find(&s->cache.by_name, doc_name_hash(&plain));
         table_next(&s->cache.by_name, &p);)
        if (doc_name_equal(&s->cache.heads.items[p.index].name, &plain))
            return &s->cache.heads.items[p.index];
    return NULL;
}

static hd_status add_fetched(pg_store *s, fetched_head head) {
    head_cache *cache = &s->cache;
    assert(!head.name.meta && (head.row < 0) == !head.result); /* value and metadata have one row */
    if (!vec_room(s->conn.env, &cache->heads, 1) ||
        table_insert(&cache->by_name, doc_name_hash(&head.name), cache->heads.count))
        return HD_NOMEM;
    cache->heads.items[cache->heads.count++] = head;
    return HD_OK;
}

void pg_forget_heads(pg_store *s) {
    head_cache *cache = &s->cache;
    if (!cache->heads.count && !cache->results.count) return;
    for (uint32_t i = 0; i < cache->results.count; i++) s->conn.pq.PQclear(cache->results.items[i]);
    for (uint32_t i = 0; i < cache->names.count; i++) {
        size_t size;
        memcpy(&size, cache->names.items[i], sizeof size);
        env_free(s->conn.env, cache->names.items[i], size);
    }
    vec_fini(s->conn.env, &cache->results);
    vec_fini(s->conn.env, &cache->names);
    vec_fini(s->conn.env, &cache->heads);
    table_fini(&cache->by_name);
    table_init(&cache->by_name, s->conn.env);
}

enum { ARRAY_HEADER = 20, NAME_PARTS = 4, SCOPE_LONGEST = 7 };

/* Texts as the server's arrays: dimensions, flags, type, length, lower bound; then each with its length. */
typedef struct text_array {
    char *bytes;
    size_t size, length;
} text_array;

static void put_number(text_array *to, uint32_t n) {
    uint32_t big = htobe32(n);
    memcpy(to->bytes + to->length, &big, sizeof big);
    to->length += sizeof big;
}

static void put_text(text_array *to, const char *text, size_t length) {
    assert(to->length + sizeof(uint32_t) + length <= to->size);
    put_number(to, (uint32_t)length);
    if (length) memcpy(to->bytes + to->length, text, length);
    to->length += length;
}

static void begin_array(text_array *to, uint32_t count) {
    const uint32_t header[] = { 1, 0, 25, count, 1 };
    _Static_assert(sizeof header == ARRAY_HEADER, "array_size counts it");
    assert(!to->length);
    for (size_t i = 0; i < sizeof header / sizeof *header; i++) put_number(to, header[i]);
}

static size_t array_size(const doc_name *names, uint32_t count) {
    size_t size = ARRAY_HEADER;
    for (uint32_t i = 0; i < count; i++) {
        size_t longest =
            names[i].space_length > names[i].id_length ? names[i].space_length : names[i].id_length;
        if (longest < names[i].instance_length) longest = names[i].instance_length;
        size += 4 + (longest < SCOPE_LONGEST ? SCOPE_LONGEST : longest);
    }
    return size;
}

static void put_part(text_array *to, const doc_name *n, int part) {
    switch (part) {
    case 0: put_text(to, n->space, n->space_length); break;
    case 1: put_text(to, n->id, n->id_length); break;
    case 2:
        assert(strlen(scope_word(n->scope)) <= SCOPE_LONGEST);
        put_text(to, scope_word(n->scope), strlen(scope_word(n->scope)));
        break;
    default: put_text(to, n->instance, n->instance_length); break;
    }
}

static hd_status ask_heads(pg_store *s, const doc_name *names, uint32_t count) {
    size_t size = array_size(names, count);
    text_array all = { env_new(s->conn.env, NAME_PARTS * size), NAME_PARTS * size, 0 };
    conn_args a = { 0 };
    if (!all.bytes) return HD_NOMEM;
    for (int part = 0; part < NAME_PARTS; part++) {
        text_array array = { all.bytes + (size_t)part * size, size, 0 };
        begin_array(&array, count);
        for (uint32_t i = 0; i < count; i++) put_part(&array, &names[i], part);
        assert(array.length <= size);
        args_text(&a, text_of_bytes(array.bytes, array.length));
    }
    hd_status status = conn_ask(&s->conn, PG_HEADS_GET, &a);
    env_free(s->conn.env, all.bytes, all.size);
    return status;
}

static hd_status take_found(pg_store *s) {
    PGresult *r = conn_take(&s->conn);
    if (!vec_push(s->conn.env, &s->cache.results, r)) return s->conn.pq.PQclear(r), HD_NOMEM;
    hd_status status = HD_OK;
    for (int i = 0; i < rows_of(&s->conn, r) && !status; i++)
        status = add_fetched(s, (fetched_head){ r, i, name_at(&s->conn, r, i), false });
    return status;
}

/* Of names without a row it is then known that they have none. The names are copied: the caller's do not last. */
static hd_status note_missing(pg_store *s, const doc_name *name) {
    assert(!find_fetched(s, name));
    size_t texts = (size_t)name->space_length + name->id_length + name->instance_length;
    size_t size = sizeof size + texts + 1;
    char *block = env_new(s->conn.env, size), *at = block + sizeof size;
    if (!block) return HD_NOMEM;
    if (!vec_push(s->conn.env, &s->cache.names, block)) {
        env_free(s->conn.env, block, size);
        return HD_NOMEM;
    }
    memcpy(block, &size, sizeof size);
    fetched_head head = { .row = -1, .name = *name };
    head.name.meta = false;
    head.name.space = memcpy(at, name->space, name->space_length);
    head.name.id = memcpy(at += name->space_length, name->id, name->id_length);
    at += name->id_length;
    if (name->instance_length) memcpy(at, name->instance, name->instance_length);
    head.name.instance = at;
    return add_fetched(s, head);
}

hd_status pg_expect_heads(log_store *s, const doc_name *names, uint32_t count) {
    pg_store *mine = pg_of(s);
    if (!count) return pg_forget_heads(mine), HD_OK;
    assert(mine->conn.mode != CONN_FREE); /* what is fetched holds until the transaction ends */
    hd_status status = ask_heads(mine, names, count);
    if (!status) status = take_found(mine);
    for (uint32_t i = 0; i < count && !status; i++)
        if (!find_fetched(mine, &names[i])) status = note_missing(mine, &names[i]);
    return status;
}

/* Whole rows in portions, each of which is asked for while it is told. */
static hd_status tell_portion(pg_store *s, head_item_fn fn, void *ctx, int64_t *last, int *rows,
                              bool *stop) {
    hd_status status = take_found(s);
    const conn *c = &s->conn;
    const PGresult *r = status ? NULL : vec_last(&s->cache.results);
    *rows = r ? rows_of(c, r) : 0;
    for (int i = 0; i < *rows && !status && !*stop; i++) {
        head_item item = { .name = name_at(c, r, i),
                           .kind = word_at(c, r, i, HEAD_KIND),
                           .seq = number_at(c, r, i, HEAD_SEQ),
                           .doc = *last = number_at(c, r, i, HEAD_DOC) };
        status = fn(ctx, &item, stop);
    }
    pg_forget_heads(s);
    return status;
}

hd_status pg_each_head(log_store *s, head_item_fn fn, void *ctx) {
    pg_store *mine = pg_of(s);
    int64_t last = 0;
    int rows = PG_PORTION;
    bool stop = false;
    hd_status status = HD_OK;
    while (!status && !stop && rows == PG_PORTION) {
        conn_args a = { 0 };
        args_number(&a, last);
        status = conn_ask(&mine->conn, PG_HEADS_ALL, &a);
        if (!status) status = tell_portion(mine, fn, ctx, &last, &rows, &stop);
    }
    return status;
}

/* ---- One head ------------------------------------------------------------------------------ */

/* The row of a document: from what was fetched, or from the server. *row is -1: there is none. `asked` is the
 * caller's to clear; NULL: it is in the cache. */
static hd_status seek(pg_store *s, const doc_name *name, const PGresult **out, PGresult **asked,
                      int *row) {
    const fetched_head *fetched = find_fetched(s, name);
    *asked = NULL;
    assert(!fetched || s->conn.mode != CONN_FREE);
    if (fetched && !fetched->changed) {
        *out = fetched->result;
        *row = fetched->row;
        return HD_OK;
    }
    conn_args a = { 0 };
    args_name(&a, name);
    hd_status status = conn_ask(&s->conn, PG_HEAD_GET, &a);
    if (status) return status;
    *out = *asked = conn_take(&s->conn);
    *row = rows_of(&s->conn, *asked) ? 0 : -1;
    return HD_OK;
}

hd_status pg_find_head(log_store *s, const doc_name *name, head_row *out) {
    pg_store *mine = pg_of(s);
    const PGresult *r = NULL;
    PGresult *asked;
    int row;
    *out = (head_row){ .kind = "" };
    hd_status status = seek(mine, name, &r, &asked, &row);
    if (!status && row >= 0) *out = numbers_at(&mine->conn, r, row);
    mine->conn.pq.PQclear(asked);
    return status;
}

hd_status pg_read_head(log_store *s, const doc_name *name, head_row *out) {
    pg_store *mine = pg_of(s);
    const PGresult *r = NULL;
    int row;
    assert(!mine->head);
    *out = (head_row){ .kind = "" };
    hd_status status = seek(mine, name, &r, &mine->head, &row);
    if (!status && row >= 0) *out = whole_at(&mine->conn, r, row);
    return status;
}

void pg_end_head(log_store *s) {
    pg_store *mine = pg_of(s);
    mine->conn.pq.PQclear(mine->head);
    mine->head = NULL;
}

/* The store gives numbers out in portions. What is left of one when a transaction fails is forgotten (pg_rollback): if
 * the portion was taken in it, the store has it again. */
static hd_status take_doc(pg_store *s, int64_t *out) {
    conn *c = &s->conn;
    if (s->doc_next == s->doc_end) {
        conn_args a = { 0 };
        args_number(&a, DOCS_TAKEN);
        hd_status status = conn_ask(c, PG_DOCS_TAKE, &a);
        if (status) return status;
        const PGresult *r = c->results[c->count - 1];
        uint64_t end = 0;
        if (!rows_of(c, r) || !log_number_of(number_at(c, r, 0, 0), &end) || end < DOCS_TAKEN)
            return log_store_damaged(&s->base, "meta: 'docs' is missing, or no number");
        s->doc_end = (int64_t)end;
        s->doc_next = s->doc_end - DOCS_TAKEN;
    }
    *out = ++s->doc_next;
    assert(s->doc_next <= s->doc_end);
    return HD_OK;
}

static void note_change(pg_store *s, const doc_name *name) {
    fetched_head *fetched = find_fetched(s, name);
    if (fetched) fetched->changed = true;
}

hd_status pg_put_head(log_store *s, const doc_name *name, const head_row *row, int64_t *doc) {
    pg_store *mine = pg_of(s);
    conn_args a = { 0 };
    assert(!row->large || !row->value.length);
    assert(row->large || !row->patched);
    assert(mine->conn.mode == CONN_HOUSEWORK);
    *doc = row->doc;
    hd_status status = row->exists ? HD_OK : take_doc(mine, doc);
    if (status) return status;
    args_number(&a, *doc);
    args_word(&a, row->kind);
    args_number(&a, row->seq);
    args_number(&a, row->meta_seq);
    args_bool(&a, row->guarded);
    args_bool(&a, row->large);
    args_number(&a, row->size);
    args_number(&a, row->patched);
    args_number(&a, (int64_t)row->hash);
    args_text_or_null(&a, row->meta);
    args_text_or_null(&a, row->value);
    if (!row->exists) args_name(&a, name);
    note_change(mine, name);
    return conn_send(&mine->conn, row->exists ? PG_HEAD_SET : PG_HEAD_ADD, &a);
}

static void note_change_of(pg_store *s, int64_t doc) {
    for (uint32_t i = 0; i < s->cache.heads.count; i++) {
        fetched_head *h = &s->cache.heads.items[i];
        if (h->row >= 0 && number_at(&s->conn, h->result, h->row, HEAD_DOC) == doc)
            h->changed = true;
    }
}

hd_status pg_touch_head(log_store *s, int64_t doc, uint64_t seq, uint64_t patched) {
    conn_args a = { 0 };
    assert(seq && patched && conn_of(s)->mode == CONN_HOUSEWORK);
    note_change_of(pg_of(s), doc);
    args_number(&a, doc);
    args_number(&a, (int64_t)seq);
    args_number(&a, (int64_t)patched);
    return conn_send(conn_of(s), PG_HEAD_PATCHED, &a);
}

hd_status pg_drop_head(log_store *s, int64_t doc) {
    conn_args a = { 0 };
    note_change_of(pg_of(s), doc);
    args_number(&a, doc);
    return conn_send(conn_of(s), PG_HEAD_DROP, &a);
}
