/* fold.c -- the log is the truth; head rows are a cache of it, which is brought up to date here.
 *
 * One pass over rows of the log folds each changed document in memory; then each is written once,
 * however often it changed. A large document is not even loaded when its changes are small against
 * its size: its operations become a patch behind it, and only when patches have grown to half of it
 * is it written anew, so bytes written stay in proportion to bytes changed. A document that has grown longer
 * than a row may be keeps its patches: each of them fits, since it comes from rows of the log. */
#include "store/log/fold.h"

#include "base/hash.h"
#include "store/log/node_rows.h"
#include <stdlib.h>

enum { FOLD_NONE, FOLD_VALUE, FOLD_PATCH };

/* What a document of the slice has become. */
typedef struct fold {
    uint32_t doc; /* its index in the tail */
    int mode;
    hd_value value;  /* FOLD_VALUE: owned */
    json_buffer ops; /* FOLD_PATCH: operations with commas between */
    uint64_t seq;
    bool guarded; /* created under "absent" in this tail */
    bool
        forgotten; /* deleted in this tail, without a tombstone that is kept, whatever came after */
} fold;

typedef struct folding {
    writer *w;
    VEC(fold) folds;
    uint32_t rows;           /* that they will be: a document and its metadata are one */
    table by_doc;            /* folds by their document's index in the tail */
    folded done;             /* how far it has come */
    node_fold nodes;         /* what the rows say of nodes, and where they leave the spaces */
    json_buffer value, meta; /* texts of the row under way */
} folding;

/* ---- Folding --------------------------------------------------------------------------------- */

static uint32_t doc_hash(uint32_t doc) { return hash_fold(hash_u64(doc)); }

/* NULL: these rows did not change it. */
static fold *fold_of(const folding *g, const doc_name *name) {
    const tail_doc *d = tail_find(&g->w->tail, name);
    if (!d) return NULL;
    uint32_t doc = (uint32_t)(d - g->w->tail.docs.items);
    assert(doc < g->w->tail.docs.count);
    for (table_probe p = table_find(&g->by_doc, doc_hash(doc)); table_next(&g->by_doc, &p);)
        if (g->folds.items[p.index].doc == doc) return &g->folds.items[p.index];
    return NULL;
}

/* Whether the document's other half, value or metadata, is folded already. */
static bool has_other_half(const folding *g, const doc_name *name) {
    doc_name other = *name;
    other.meta = !name->meta;
    return fold_of(g, &other) != NULL;
}

static hd_status new_fold(folding *g, const doc_name *name, fold **out) {
    assert(!fold_of(g, name));
    const tail_doc *d = tail_find(&g->w->tail, name);
    if (!d) return HD_CORRUPT;
    fold f = { .doc = (uint32_t)(d - g->w->tail.docs.items) };
    json_buffer_init(&f.ops, &g->w->env);
    if (!vec_room(&g->w->env, &g->folds, 1) ||
        table_insert(&g->by_doc, doc_hash(f.doc), g->folds.count))
        return HD_NOMEM;
    g->rows += !has_other_half(g, name);
    g->folds.items[g->folds.count++] = f;
    *out = &vec_last(&g->folds);
    return HD_OK;
}

static void become_value(fold *f, hd_value v) {
    assert(!value_is_failed(v));
    json_buffer_fini(&f->ops);
    value_unref(f->value);
    f->mode = FOLD_VALUE;
    f->value = v;
}

static hd_status start_fold(folding *g, fold *f, const doc_name *name) {
    stored_head stored;
    writer *w = g->w;
    hd_status status = head_find(w->store, name, &stored);
    if (status) return status;
    if (stored.large && !name->meta) {
        f->mode = FOLD_PATCH;
        return HD_OK;
    }
    hd_value v = value_absent();
    uint64_t seq;
    if (!SABOTAGED(w->store, LOG_LEAVE_OUT_HEAD))
        status = head_load(w->store, w->heap, name, &v, &seq);
    if (!status) become_value(f, v);
    return status;
}

/* Appends a printed list without its brackets. */
static hd_status gather_ops(fold *f, hd_value ops) {
    assert(f->mode == FOLD_PATCH);
    json_buffer *b = &f->ops;
    size_t before = b->length;
    hd_status status = json_print_to(b, ops, HD_JSON_COMPACT);
    if (status) return status;
    b->length--;
    if (before) b->bytes[before] = ',';
    else memmove(b->bytes, b->bytes + 1, --b->length);
    return HD_OK;
}

static hd_status fold_doc(folding *g, const log_doc *doc) {
    assert(doc->seq);
    fold *f = fold_of(g, &doc->name);
    hd_status status = f ? HD_OK : new_fold(g, &doc->name, &f);
    if (status) return status;
    hd_value ops = log_doc_op_list(doc);
    f->seq = doc->seq;
    f->guarded = (f->guarded && !doc->forgotten) || doc->guarded;
    f->forgotten = f->forgotten || doc->forgotten;
    if (log_ops_start_anew(ops)) become_value(f, value_absent());
    else if (f->mode == FOLD_NONE) status = start_fold(g, f, &doc->name);
    if (status) return status;
    return f->mode == FOLD_PATCH ? gather_ops(f, ops) : log_fold(g->w->heap, ops, &f->value);
}

/* The documents of a row that these rows have not changed before, for backends that fetch many at once. */
static hd_status expect_row(folding *g, const log_row *row) {
    log_store *s = g->w->store;
    VEC(doc_name) names = { 0 };
    hd_status status = HD_OK;
    for (size_t i = 0; s->ops->expect_heads && i < log_row_commits(row); i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0, docs = log_commit_docs(made); k < docs && !status; k++) {
            log_doc doc;
            if (!log_commit_doc(made, k, &doc)) status = HD_CORRUPT;
            else if (!fold_of(g, &doc.name) && !vec_push(&g->w->env, &names, doc.name))
                status = HD_NOMEM;
        }
    }
    if (!status && names.count) status = s->ops->expect_heads(s, names.items, names.count);
    vec_fini(&g->w->env, &names);
    return status;
}

static hd_status fold_row(folding *g, const log_row *row) {
    for (size_t i = 0; i < log_row_commits(row); i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0, docs = log_commit_docs(made); k < docs; k++) {
            log_doc doc;
            hd_status status = log_commit_doc(made, k, &doc) ? fold_doc(g, &doc) : HD_CORRUPT;
            if (status) return status;
        }
        hd_status status = node_fold_commit(&g->nodes, row, i);
        if (status) return status;
    }
    return HD_OK;
}

/* What there is to write. A row of a node costs about half of what a document costs: nothing is read for it. */
static uint32_t things_of(const folding *g) { return g->rows + g->nodes.rows.entries.count / 2; }

/* What changes in two slices is written twice: long slices write less. */
static bool is_full(const folding *g) {
    uint32_t times = g->w->leaving ? SLICE_LEAVING : 1;
    return g->done.bytes >= times * SLICE_BYTES || things_of(g) >= times * SLICE_THINGS;
}

static hd_status fold_text(void *ctx, const log_text *text, bool *stop) {
    folding *g = ctx;
    writer *w = g->w;
    log_row row;
    hd_status status = log_row_read(w->store, w->heap, text, &row);
    if (!status && row.row != g->done.row + 1)
        status = log_row_damaged(w->store, row.row, "the row before it is missing");
    if (!status) status = expect_row(g, &row);
    if (!status) status = fold_row(g, &row);
    g->done.row = row.row;
    g->done.bytes += row.length;
    log_row_fini(w->heap, &row);
    *stop = is_full(g);
    return status;
}

/* From the checkpoint on, until the slice is full. */
static hd_status fold_rows(folding *g) {
    log_store *s = g->w->store;
    return s->ops->read_after(s, g->w->checkpoint, fold_text, g);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Whether the document as one text may be longer than a row holds. */
static bool may_be_too_long(const folding *g, const stored_head *was, const fold *f) {
    return was->size + was->patched + f->ops.length > g->w->store->text_max;
}

/* Whether both have the same highest bit. */
static bool same_magnitude(uint64_t a, uint64_t b) { return (a ^ b) < (a & b); }

/* Half of the document: then writing it anew costs no more than what was written for its changes. One that
 * may be too long for that is tried again each time its patches have doubled. */
static bool patch_pays(const folding *g, const stored_head *was, const fold *f) {
    assert(was->large);
    uint64_t after = was->patched + f->ops.length;
    return after <= was->size / 2 ||
           (may_be_too_long(g, was, f) && same_magnitude(was->patched, after));
}

/* What was gathered becomes a list. */
static bool enclose(json_buffer *b) {
    if (!json_buffer_grow(b, 2)) return false;
    memmove(b->bytes + 1, b->bytes, b->length);
    b->bytes[0] = '[';
    b->bytes[b->length + 1] = ']';
    b->length += 2;
    return true;
}

static hd_status put_patch(folding *g, const stored_head *was, fold *f) {
    log_store *s = g->w->store;
    const json_buffer *b = &f->ops;
    assert(was->exists && was->large && f->mode == FOLD_PATCH);
    head_part patch = { (int64_t)f->seq, log_hash(b->bytes, b->length),
                        text_of_bytes(b->bytes, b->length) };
    hd_status status = s->ops->put_patch(s, was->doc, &patch);
    return status ? status : s->ops->touch_head(s, was->doc, f->seq, was->patched + b->length);
}

static hd_status print_fold(json_buffer *out, hd_value v) {
    out->length = 0;
    return value_is_absent(v) ? HD_OK : json_print_to(out, v, HD_JSON_COMPACT);
}

/* The patches have grown too long: load, fold, and go on as a value; unless that is longer than a row may
 * be: then go on as a patch. */
static hd_status unpatch(folding *g, const doc_name *name, const stored_head *was, fold *f) {
    assert(f->mode == FOLD_PATCH && was->exists);
    hd_value v = value_absent();
    writer *w = g->w;
    bool doubtful = may_be_too_long(g, was, f);
    hd_status status = large_load(w->store, w->heap, name, was, &v);
    if (!status) {
        hd_value ops = log_json_read(w->heap, f->ops.bytes, f->ops.length);
        status = value_is_failed(ops) ? HD_NOMEM : log_fold(w->heap, ops, &v);
        value_unref(ops);
    }
    if (!status && doubtful) status = print_fold(&g->value, v);
    if (status || (doubtful && g->value.length > w->store->text_max)) value_unref(v);
    else become_value(f, v);
    return status;
}

/* Afterwards `f` is a patch that has been stored, or a value that is to be. */
static hd_status put_or_unpatch(folding *g, const doc_name *name, const stored_head *was, fold *f) {
    assert(f->mode == FOLD_PATCH);
    bool pays = patch_pays(g, was, f);
    if (!enclose(&f->ops)) return HD_NOMEM;
    hd_status status = pays ? HD_OK : unpatch(g, name, was, f);
    return !status && f->mode == FOLD_PATCH ? put_patch(g, was, f) : status;
}

static const char *kind_of(hd_value meta) {
    return hd_value_as_text(hd_value_at(meta, "kind"), "");
}

/* What a row will say. Texts with length 0 are null. */
typedef struct new_head {
    stored_head was;
    const doc_name *name;
    uint64_t seq, meta_seq;
    bool guarded, large;
    size_t size;
    uint64_t patched;
    char kind[KIND_SIZE];
} new_head;

static hd_status put_large(folding *g, int64_t doc) {
    log_store *s = g->w->store;
    row_text value = text_of_bytes(g->value.bytes, g->value.length);
    assert(value.length >= LARGE_MIN);
    hd_status status = s->ops->put_large(s, doc, log_hash(value.bytes, value.length), value);
    return status ? status : s->ops->drop_patches(s, doc);
}

static uint64_t hash_of_row(const folding *g, const new_head *h) {
    stored_head numbers = { .guarded = h->guarded,
                            .large = h->large,
                            .size = h->size,
                            .seq = h->seq,
                            .meta_seq = h->meta_seq };
    row_text value = { g->value.bytes, h->large ? 0 : g->value.length };
    return head_hash(h->name, &numbers, h->kind, value,
                     (row_text){ g->meta.bytes, g->meta.length });
}

static hd_status put_head(folding *g, const new_head *h, int64_t *doc) {
    log_store *s = g->w->store;
    assert(h->large || !h->patched);
    head_row row = { .exists = h->was.exists,
                     .doc = h->was.doc,
                     .seq = (int64_t)h->seq,
                     .meta_seq = (int64_t)h->meta_seq,
                     .guarded = h->guarded,
                     .large = h->large,
                     .size = (int64_t)h->size,
                     .patched = (int64_t)h->patched,
                     .hash = hash_of_row(g, h),
                     .kind = h->kind,
                     .value = text_of_bytes(g->value.bytes, h->large ? 0 : g->value.length),
                     .meta = text_of_bytes(g->meta.bytes, g->meta.length) };
    return s->ops->put_head(s, h->name, &row, doc);
}

static hd_status copy_text(row_text text, json_buffer *out) {
    out->length = 0;
    return text.length && !json_buffer_add(out, text.bytes, text.length) ? HD_NOMEM : HD_OK;
}

/* The row as it is: texts into the buffers, the rest into `h`. A row that is damaged is not written on,
 * unless nothing of it stays: `anew`, the value is replaced, and there is no metadata. */
static hd_status take_old(folding *g, new_head *h, bool anew) {
    log_store *s = g->w->store;
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
    if (!status) status = copy_text(row.meta, &g->meta);
    if (!status) status = copy_text(row.value, &g->value);
    s->ops->end_head(s);
    return status;
}

static hd_status take_new_value(folding *g, new_head *h, const fold *f) {
    assert(f->mode == FOLD_VALUE);
    hd_status status = print_fold(&g->value, f->value);
    h->seq = f->seq;
    h->guarded = (h->guarded && !f->forgotten) || f->guarded;
    h->size = g->value.length;
    h->large = g->value.length >= LARGE_MIN;
    h->patched = 0;
    return status;
}

static hd_status take_new_meta(folding *g, new_head *h, const fold *f) {
    h->meta_seq = f->seq;
    h->kind[0] = '\0';
    strncat(h->kind, kind_of(f->value), sizeof h->kind - 1);
    return print_fold(&g->meta, f->value);
}

static hd_status drop_large(log_store *s, int64_t doc) {
    hd_status status = s->ops->drop_large(s, doc);
    return status ? status : s->ops->drop_patches(s, doc);
}

static hd_status write_row(folding *g, const new_head *h, bool value_changed) {
    assert(h->was.exists || !h->was.large);
    log_store *s = g->w->store;
    bool gone = !h->size && !g->meta.length && !h->guarded, read = false;
    /* Nodes that have read it find out by its tombstone that it is gone; pruning takes that away. */
    hd_status status = gone ? s->ops->has_nodes(s, &read) : HD_OK;
    gone = gone && !read;
    if (!status && h->was.large && value_changed && (gone || !h->large))
        status = drop_large(s, h->was.doc);
    if (status || (gone && !h->was.exists)) return status;
    if (gone) return s->ops->drop_head(s, h->was.doc);
    int64_t doc = 0;
    status = put_head(g, h, &doc);
    return status || !h->large || !value_changed ? status : put_large(g, doc);
}

static hd_status write_doc(folding *g, const doc_name *given) {
    doc_name name = *given, beside = *given;
    name.meta = false;
    beside.meta = true;
    fold *value = fold_of(g, &name), *meta = fold_of(g, &beside);
    assert(value || meta);                  /* the slice has changed one of them */
    if (given->meta && value) return HD_OK; /* written with the value */
    new_head h = { .name = &name };
    hd_status status = HD_OK;
    if (value && value->mode == FOLD_PATCH) {
        status = head_find(g->w->store, &name, &h.was);
        if (!status) status = put_or_unpatch(g, &name, &h.was, value);
        if (status || (value->mode == FOLD_PATCH && !meta)) return status;
    }
    bool value_changed = value && value->mode == FOLD_VALUE;
    status = take_old(g, &h, value_changed);
    if (!status && value_changed) status = take_new_value(g, &h, value);
    if (!status && meta) status = take_new_meta(g, &h, meta);
    return status ? status : write_row(g, &h, value_changed);
}

static int by_name(const void *a, const void *b) {
    return doc_name_compare(*(const doc_name *const *)a, *(const doc_name *const *)b);
}

/* In the order of the indexes: documents that were made one after the other often have names side by side, so that
 * writing them touches each page once. */
static hd_status write_docs(folding *g) {
    uint32_t count = g->folds.count;
    const doc_name **names = env_new_array(&g->w->env, count + 1, sizeof *names);
    if (!names) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        names[i] = &g->w->tail.docs.items[g->folds.items[i].doc].name;
    qsort(names, count, sizeof *names, by_name);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = write_doc(g, names[i]);
    env_free(&g->w->env, names, (count + 1) * sizeof *names);
    return status;
}

/* Where the slice leaves them: the log may go on. */
static hd_status write_spaces(folding *g) {
    log_store *s = g->w->store;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->nodes.spaces.items.count && !status; i++) {
        const log_space *at = &g->nodes.spaces.items.items[i];
        status = s->ops->put_space(s, text_of_key(at->name), at->seq);
    }
    return status;
}

/* ---- A slice ---------------------------------------------------------------------------------- */

static hd_status folding_init(folding *g, writer *w) {
    *g = (folding){ .w = w, .done = { .row = w->checkpoint } };
    json_buffer_init(&g->value, &w->env);
    json_buffer_init(&g->meta, &w->env);
    table_init(&g->by_doc, &w->env);
    return node_fold_init(&g->nodes, w->store, w->heap);
}

static void folding_fini(folding *g) {
    for (uint32_t i = 0; i < g->folds.count; i++) {
        value_unref(g->folds.items[i].value);
        json_buffer_fini(&g->folds.items[i].ops);
    }
    vec_fini(&g->w->env, &g->folds);
    table_fini(&g->by_doc);
    node_fold_fini(&g->nodes);
    json_buffer_fini(&g->value);
    json_buffer_fini(&g->meta);
}

hd_status fold_slice(writer *w, folded *out) {
    assert(w->store->ops->in_transaction(w->store));
    assert(w->known && w->checkpoint < w->row);
    folding g;
    hd_status status = folding_init(&g, w);
    if (!status) status = fold_rows(&g);
    if (!status) status = node_fold_write(&g.nodes); /* first: are there rows? */
    if (!status) status = write_docs(&g);
    if (!status) status = write_spaces(&g);
    assert(status || (g.done.row > w->checkpoint && g.done.row <= w->row));
    *out = g.done;
    out->things = things_of(&g);
    folding_fini(&g);
    return status;
}

/* ---- One document, for repair ---------------------------------------------------------------- */

static hd_status rewrite(folding *g, new_head *h, const document_state *to) {
    fold value = { .mode = FOLD_VALUE, .value = to->value, .seq = to->seq, .guarded = to->guarded };
    fold meta = { .mode = FOLD_VALUE, .value = to->meta, .seq = to->meta_seq };
    hd_status status = head_find(g->w->store, h->name, &h->was);
    if (status == HD_CORRUPT) status = HD_OK; /* that is why it is written anew */
    if (!status) status = take_new_value(g, h, &value);
    if (!status) status = take_new_meta(g, h, &meta);
    if (!status && h->was.exists) status = drop_large(g->w->store, h->was.doc);
    return status ? status : write_row(g, h, true);
}

hd_status fold_rewrite(writer *w, const doc_name *name, const document_state *to) {
    folding g;
    new_head h = { .name = name };
    hd_status status = folding_init(&g, w);
    if (!status) status = rewrite(&g, &h, to);
    folding_fini(&g);
    return status;
}

/* ---- Large documents whose patches are still apart: loaded and written whole ------------------- */

/* `doc` is the row that was found to have patches: its name must lead to it. */
static hd_status unpatch_doc(folding *g, const doc_name *name, int64_t doc) {
    new_head h = { .name = name };
    fold f = { .mode = FOLD_VALUE };
    hd_status status = take_old(g, &h, false);
    if (!status && (!h.was.exists || h.was.doc != doc)) status = HD_CORRUPT;
    if (!status) status = large_load(g->w->store, g->w->heap, name, &h.was, &f.value);
    f.seq = h.seq;
    if (!status) status = take_new_value(g, &h, &f);
    if (!status && h.size <= g->w->store->text_max) status = write_row(g, &h, true);
    g->done.bytes += h.size;
    value_unref(f.value);
    return status;
}

typedef struct unpatching {
    folding *g;
    int64_t *after;
    bool found;
} unpatching;

static hd_status unpatch_item(void *ctx, const head_item *item, bool *stop) {
    unpatching *u = ctx;
    u->found = *stop = true;
    *u->after = item->doc;
    return unpatch_doc(u->g, &item->name, item->doc);
}

static hd_status unpatch_next(folding *g, int64_t *after, bool *more) {
    log_store *s = g->w->store;
    unpatching u = { g, after, false };
    hd_status status = s->ops->find_patched(s, *after, unpatch_item, &u);
    *more = u.found;
    return status;
}

hd_status fold_patches_slice(writer *w, int64_t *after, bool *more) {
    assert(w->store->ops->in_transaction(w->store));
    folding g;
    assert(w->known && w->checkpoint <= w->row);
    *more = true;
    hd_status status = folding_init(&g, w);
    while (!status && *more && !is_full(&g)) status = unpatch_next(&g, after, more);
    folding_fini(&g);
    return status;
}
