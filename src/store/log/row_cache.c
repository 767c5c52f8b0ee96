/* row_cache.c -- see row_cache.h. */
#include "store/log/row_cache.h"

#include <stdlib.h>

/* Shorter rows have few documents: to parse one again costs less than to keep it. */
#define BYTES_MIN ((size_t)4096)
#define BYTES_MAX ((size_t)16 << 20)

static void drop(row_cache *c, hd_heap *heap, uint32_t i) {
    kept_row *k = &c->rows[i];
    assert(i < c->count && c->bytes >= k->row.length);
    c->bytes -= k->row.length;
    vec_fini(&heap->env, &k->entries);
    log_row_fini(heap, &k->row);
    c->rows[i] = c->rows[--c->count];
}

void row_cache_fini(row_cache *c, hd_heap *heap) {
    while (c->count) drop(c, heap, c->count - 1);
}

void row_cache_trim(row_cache *c, hd_heap *heap, uint64_t row) {
    for (uint32_t i = c->count; i-- > 0;)
        if (c->rows[i].row.row <= row) drop(c, heap, i);
}

static void make_room(row_cache *c, hd_heap *heap, size_t length) {
    while (c->count && (c->count == ROWS_KEPT || c->bytes + length > BYTES_MAX)) {
        uint32_t oldest = 0;
        for (uint32_t i = 1; i < c->count; i++)
            if (c->rows[i].used < c->rows[oldest].used) oldest = i;
        drop(c, heap, oldest);
    }
}

/* ---- The documents of a row ---------------------------------------------------------------- */

static int by_hash(const void *a, const void *b) {
    const row_entry *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    if (x->commit != y->commit) return x->commit < y->commit ? -1 : 1;
    return (x->doc > y->doc) - (x->doc < y->doc);
}

static hd_status index_row(hd_heap *heap, kept_row *k) {
    for (size_t i = 0; i < log_row_commits(&k->row); i++) {
        hd_value made = log_row_commit(&k->row, i);
        for (size_t d = 0; d < log_commit_docs(made); d++) {
            log_doc doc;
            if (!log_commit_doc(made, d, &doc)) return HD_CORRUPT;
            row_entry e = { doc_name_hash(&doc.name), (uint32_t)i, (uint32_t)d };
            if (!vec_push(&heap->env, &k->entries, e)) return HD_NOMEM;
        }
    }
    if (k->entries.count) qsort(k->entries.items, k->entries.count, sizeof(row_entry), by_hash);
    return HD_OK;
}

static uint32_t first_with(const kept_row *k, uint32_t hash) {
    uint32_t low = 0, high = k->entries.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (k->entries.items[middle].hash < hash) low = middle + 1;
        else high = middle;
    }
    return low;
}

static hd_status fold_one(hd_heap *heap, hd_value made, size_t i, const tail_at *at,
                          const doc_name *name, hd_value *value) {
    log_doc doc;
    if (!log_commit_doc(made, i, &doc)) return HD_CORRUPT;
    if (doc.seq > at->seq || !doc_name_equal(&doc.name, name)) return HD_OK;
    return log_fold(heap, log_doc_op_list(&doc), value);
}

static hd_status fold_kept(hd_heap *heap, const kept_row *k, const tail_at *at,
                           const doc_name *name, hd_value *value) {
    uint32_t hash = doc_name_hash(name);
    hd_status status = HD_OK;
    for (uint32_t i = first_with(k, hash); i < k->entries.count && !status; i++) {
        const row_entry *e = &k->entries.items[i];
        if (e->hash != hash) break;
        status = fold_one(heap, log_row_commit(&k->row, e->commit), e->doc, at, name, value);
    }
    return status;
}

static hd_status fold_row(hd_heap *heap, const log_row *row, const tail_at *at,
                          const doc_name *name, hd_value *value) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0; k < log_commit_docs(made) && !status; k++)
            status = fold_one(heap, made, k, at, name, value);
    }
    return status;
}

/* ---- Reading ------------------------------------------------------------------------------- */

typedef struct row_reading {
    row_cache *c;
    log_store *s;
    hd_heap *heap;
    const tail_at *at;
    const doc_name *name;
    hd_value *value;
} row_reading;

/* Takes the row over. The index is made first: a row that cannot be walked is not kept. */
static hd_status keep_and_fold(const row_reading *g, log_row *row) {
    kept_row k = { .row = *row, .used = ++g->c->clock };
    hd_status status = index_row(g->heap, &k);
    if (!status) status = fold_kept(g->heap, &k, g->at, g->name, g->value);
    if (status) {
        vec_fini(&g->heap->env, &k.entries);
        return status;
    }
    make_room(g->c, g->heap, row->length);
    g->c->rows[g->c->count++] = k;
    g->c->bytes += row->length;
    *row = (log_row){ 0 };
    return HD_OK;
}

static hd_status take_text(void *ctx, const log_text *text, bool *stop) {
    const row_reading *g = ctx;
    log_row row;
    *stop = true;
    hd_status status = log_row_read(g->s, g->heap, text, &row);
    if (!status && g->c && row.length >= BYTES_MIN) status = keep_and_fold(g, &row);
    else if (!status) status = fold_row(g->heap, &row, g->at, g->name, g->value);
    log_row_fini(g->heap, &row);
    return status;
}

hd_status row_cache_fold(row_cache *c, log_store *s, hd_heap *heap, const tail_at *at,
                         const doc_name *name, hd_value *value) {
    assert(at->row && at->seq);
    for (uint32_t i = 0; c && i < c->count; i++) {
        if (c->rows[i].row.row != at->row) continue;
        c->rows[i].used = ++c->clock;
        return fold_kept(heap, &c->rows[i], at, name, value);
    }
    row_reading g = { c, s, heap, at, name, value };
    hd_status status = s->ops->read_row(s, at->row, take_text, &g);
    return status == HD_NOT_FOUND ? log_row_damaged(s, at->row, "it is missing") : status;
}
