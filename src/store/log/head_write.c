/* head_write.c -- see head_write.h. */
#include "store/log/head_write.h"

#include <string.h>

void new_head_init(new_head *h, const hd_env *env, const doc_name *name) {
    *h = (new_head){ .name = name };
    json_buffer_init(&h->value, env);
    json_buffer_init(&h->meta, env);
}

void new_head_fini(new_head *h) {
    json_buffer_fini(&h->value);
    json_buffer_fini(&h->meta);
}

static hd_status copy_text(row_text text, json_buffer *out) {
    out->length = 0;
    return text.length && !json_buffer_add(out, text.bytes, text.length) ? HD_NOMEM : HD_OK;
}

hd_status new_head_take_old(log_store *s, new_head *h, bool anew) {
    head_row row;
    hd_status status = head_read(s, h->name, &h->was, &row);
    if (status == HD_CORRUPT && anew && row.exists && !row.meta.length) status = HD_OK;
    h->seq = h->was.seq;
    h->meta_seq = h->was.meta_seq;
    h->guarded = h->was.guarded;
    h->large = h->was.large;
    h->size = (size_t)h->was.size;
    h->patched = h->was.patched;
    h->kind[0] = '\0';
    strncat(h->kind, row.kind, sizeof h->kind - 1);
    if (!status) status = copy_text(row.meta, &h->meta);
    if (!status && !anew) status = copy_text(row.value, &h->value);
    s->ops->end_head(s);
    return status;
}

void new_head_hash(new_head *h) {
    stored_head numbers = { .guarded = h->guarded,
                            .large = h->large,
                            .size = h->size,
                            .seq = h->seq,
                            .meta_seq = h->meta_seq };
    row_text value = { h->value.bytes, h->large ? 0 : h->value.length };
    h->hash =
        head_hash(h->name, &numbers, h->kind, value, (row_text){ h->meta.bytes, h->meta.length });
    if (h->large && h->value_changed) h->large_hash = log_hash(h->value.bytes, h->value.length);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static hd_status put_patch(log_store *s, const new_head *h) {
    const json_buffer *b = h->patch;
    assert(h->was.exists && h->was.large);
    head_part patch = { (int64_t)h->seq, log_hash(b->bytes, b->length),
                        text_of_bytes(b->bytes, b->length) };
    hd_status status = s->ops->put_patch(s, h->was.doc, &patch);
    return status ? status : s->ops->touch_head(s, h->was.doc, h->seq, h->patched);
}

static hd_status put_large(log_store *s, const new_head *h, int64_t doc) {
    row_text value = text_of_bytes(h->value.bytes, h->value.length);
    assert(value.length >= LARGE_MIN);
    hd_status status = s->ops->put_large(s, doc, h->large_hash, value);
    return status ? status : s->ops->drop_patches(s, doc);
}

static hd_status put_head(log_store *s, const new_head *h, int64_t *doc) {
    assert(h->large || !h->patched);
    head_row row = { .exists = h->was.exists,
                     .doc = h->was.doc,
                     .seq = (int64_t)h->seq,
                     .meta_seq = (int64_t)h->meta_seq,
                     .guarded = h->guarded,
                     .large = h->large,
                     .size = (int64_t)h->size,
                     .patched = (int64_t)h->patched,
                     .hash = h->hash,
                     .kind = h->kind,
                     .value = text_of_bytes(h->value.bytes, h->large ? 0 : h->value.length),
                     .meta = text_of_bytes(h->meta.bytes, h->meta.length) };
    return s->ops->put_head(s, h->name, &row, doc);
}

hd_status new_head_drop_large(log_store *s, int64_t doc) {
    hd_status status = s->ops->drop_large(s, doc);
    return status ? status : s->ops->drop_patches(s, doc);
}

static hd_status write_row(log_store *s, const new_head *h) {
    assert(h->was.exists || !h->was.large);
    bool gone = !h->size && !h->meta.length && !h->guarded, asked = false;
    /* Where there are memos, its tombstone tells that it has changed (changes.c); pruning takes that away. */
    hd_status status = gone ? s->ops->has_memos(s, &asked) : HD_OK;
    gone = gone && !asked;
    if (!status && h->was.large && h->value_changed && (gone || !h->large))
        status = new_head_drop_large(s, h->was.doc);
    if (status || (gone && !h->was.exists)) return status;
    if (gone) return s->ops->drop_head(s, h->was.doc);
    int64_t doc = 0;
    status = put_head(s, h, &doc);
    return status || !h->large || !h->value_changed ? status : put_large(s, h, doc);
}

static bool is_same(const stored_head *a, const stored_head *b) {
    return a->exists == b->exists && a->doc == b->doc && a->seq == b->seq &&
           a->meta_seq == b->meta_seq && a->guarded == b->guarded && a->large == b->large &&
           a->size == b->size && a->patched == b->patched;
}

/* Between reading and writing another process may have taken a tombstone away, or have made one text of a large
 * document and its patches. */
static hd_status verify_unchanged(log_store *s, const new_head *h) {
    stored_head now;
    hd_status status = head_find(s, h->name, &now);
    if (status && status != HD_CORRUPT)
        return status; /* damaged numbers are compared as they are */
    return is_same(&h->was, &now) ? HD_OK : HD_RESYNC;
}

hd_status new_head_write(log_store *s, const new_head *h, bool later) {
    assert(s->ops->in_transaction(s));
    hd_status status = later ? verify_unchanged(s, h) : HD_OK;
    if (!status && h->patch) status = put_patch(s, h);
    if (!status && h->whole) status = write_row(s, h);
    return status;
}
