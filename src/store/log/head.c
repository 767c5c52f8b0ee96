/* head.c -- reading documents: every text is compared with its hash before it is used. */
#include "store/log/head.h"

#include "base/hash.h"

uint64_t head_texts_hash(row_text value, row_text meta) {
    return hash_bytes(meta.bytes, meta.length, log_hash(value.bytes, value.length));
}

uint64_t head_hash(const doc_name *n, const stored_head *h, const char *kind, row_text value,
                   row_text meta) {
    const uint64_t numbers[] = {
        h->guarded, h->large, h->size, h->meta_seq, h->large ? 0 : h->seq, (uint64_t)n->scope
    };
    uint64_t hash = hash_bytes(n->id, n->id_length, head_texts_hash(value, meta));
    hash = hash_bytes(n->space, n->space_length, hash);
    hash = hash_bytes(n->instance, n->instance_length, hash);
    hash = hash_bytes(kind, strlen(kind), hash);
    return hash_bytes(numbers, sizeof numbers, hash);
}

/* ---- Rows, verified ------------------------------------------------------------------------ */

hd_status head_damaged(log_store *s, const doc_name *name, int64_t doc, const char *how) {
    return log_store_damaged(s, "head row %lld (%.*s/%.*s): %s", (long long)doc,
                             (int)name->space_length, name->space, (int)name->id_length, name->id,
                             how);
}

static hd_status take_numbers(log_store *s, const doc_name *name, const head_row *row,
                              stored_head *out) {
    assert(row->exists);
    *out = (stored_head){
        .exists = row->exists, .doc = row->doc, .guarded = row->guarded, .large = row->large
    };
    bool sane = log_number_of(row->seq, &out->seq) &&
                log_number_of(row->meta_seq, &out->meta_seq) &&
                log_number_of(row->size, &out->size) && log_number_of(row->patched, &out->patched);
    out->has_value = out->size > 0;
    if (sane && (out->large || !out->patched)) return HD_OK;
    return head_damaged(s, name, out->doc, "a number is out of range");
}

hd_status head_find(log_store *s, const doc_name *name, stored_head *out) {
    head_row row;
    *out = (stored_head){ 0 };
    hd_status status = s->ops->find_head(s, name, &row);
    return status || !row.exists ? status : take_numbers(s, name, &row, out);
}

/* Nothing of a row is used before its hash and its size are found to be right. */
static hd_status verify(log_store *s, const doc_name *name, const head_row *row,
                        const stored_head *head) {
    if (row->hash != head_hash(name, head, row->kind, row->value, row->meta) &&
        row->hash != head_texts_hash(row->value, row->meta))
        return head_damaged(s, name, head->doc, "its hash is wrong");
    if (head->large ? row->value.length != 0 : row->value.length != head->size)
        return head_damaged(s, name, head->doc, "its size is wrong");
    return HD_OK;
}

hd_status head_read(log_store *s, const doc_name *name, stored_head *out, head_row *row) {
    *out = (stored_head){ 0 };
    *row = (head_row){ .kind = "" };
    hd_status status = s->ops->read_head(s, name, row);
    if (!row->exists) return status;
    hd_status numbers = take_numbers(s, name, row, out);
    if (!status) status = numbers;
    return status ? status : verify(s, name, row, out);
}

static hd_status parse(log_store *s, hd_heap *heap, const doc_name *name, int64_t doc,
                       row_text text, hd_value *out) {
    *out = value_absent();
    if (!text.length) return HD_OK;
    hd_status status = log_json_of(heap, text, out);
    return status == HD_CORRUPT ? head_damaged(s, name, doc, "it cannot be read as JSON") : status;
}

/* ---- Large values -------------------------------------------------------------------------- */

/* A large value while it and its patches are read. */
typedef struct large_reading {
    log_store *s;
    hd_heap *heap;
    const doc_name *name;
    const stored_head *head;
    hd_value value;   /* owned */
    uint64_t patched; /* bytes of the patches so far */
    int64_t last;     /* the seq of the last of them */
} large_reading;

static hd_status large_damaged(const large_reading *g, const char *how) {
    return head_damaged(g->s, g->name, g->head->doc, how);
}

static bool is_whole(const head_part *part) {
    return part->text.length && log_hash(part->text.bytes, part->text.length) == part->hash;
}

static hd_status take_value(void *ctx, const head_part *part, bool *stop) {
    large_reading *g = ctx;
    *stop = true; /* there is one */
    if (!is_whole(part)) return large_damaged(g, "the hash of its large value is wrong");
    if (part->text.length != g->head->size)
        return large_damaged(g, "the size of its large value is wrong");
    return parse(g->s, g->heap, g->name, g->head->doc, part->text, &g->value);
}

static hd_status take_patch(void *ctx, const head_part *part, bool *stop) {
    large_reading *g = ctx;
    (void)stop;
    if (!is_whole(part)) return large_damaged(g, "the hash of a patch is wrong");
    hd_value ops;
    hd_status status = parse(g->s, g->heap, g->name, g->head->doc, part->text, &ops);
    if (status) return status;
    status = log_fold(g->heap, ops, &g->value);
    value_unref(ops);
    g->patched += part->text.length;
    g->last = part->seq;
    return status == HD_CORRUPT ? large_damaged(g, "a patch is malformed") : status;
}

/* All patches that the head row speaks of, and no others. */
static hd_status read_patches(large_reading *g) {
    const stored_head *head = g->head;
    hd_status status = g->s->ops->each_patch(g->s, head->doc, take_patch, g);
    if (status) return status;
    bool all = g->patched == head->patched && (!g->patched || (uint64_t)g->last == head->seq);
    return all ? HD_OK : large_damaged(g, "patches are missing, or too many");
}

hd_status large_load(log_store *s, hd_heap *heap, const doc_name *name, const stored_head *head,
                     hd_value *out) {
    assert(head->exists);
    large_reading g = { s, heap, name, head, value_absent(), 0, 0 };
    *out = value_absent();
    if (!head->large) return large_damaged(&g, "it has patches, and no large value");
    hd_status status = s->ops->read_large(s, head->doc, take_value, &g);
    if (status == HD_NOT_FOUND) status = large_damaged(&g, "its large value is missing");
    if (!status) status = read_patches(&g);
    if (status) value_unref(g.value);
    else *out = g.value;
    return status;
}

hd_status head_load(log_store *s, hd_heap *heap, const doc_name *name, hd_value *out,
                    uint64_t *seq) {
    assert(s->ops->in_transaction(s));
    *out = value_absent();
    *seq = 0;
    stored_head head;
    head_row row;
    hd_status status = head_read(s, name, &head, &row);
    if (!status && head.exists) {
        *seq = name->meta ? head.meta_seq : head.seq;
        status = parse(s, heap, name, head.doc, name->meta ? row.meta : row.value, out);
    }
    s->ops->end_head(s);
    bool large = !status && head.large && !name->meta;
    return large ? large_load(s, heap, name, &head, out) : status;
}

/* ---- With the tail ----------------------------------------------------------------------- */

hd_status document_load(log_store *s, hd_heap *heap, row_cache *rows, const tail *t,
                        uint64_t checkpoint, uint64_t through, const doc_name *name, hd_value *out,
                        uint64_t *seq) {
    assert(s->ops->in_transaction(s));
    hd_status status = head_load(s, heap, name, out, seq);
    const tail_doc *changes = status ? NULL : tail_find(t, name);
    for (uint32_t i = 0; changes && i < changes->at.count && !status; i++) {
        const tail_at *at = &changes->at.items[i];
        if (at->row <= checkpoint || at->row > through) continue;
        status = row_cache_fold(rows, s, heap, at, name, out);
        *seq = at->seq;
    }
    if (status) {
        value_unref(*out);
        *out = value_absent();
    }
    return status;
}
