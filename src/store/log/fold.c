/* fold.c -- the log is the truth; head rows are a cache of it, which is brought up to date here.
 *
 * One pass over rows of the log folds each changed document in memory; then each is written once,
 * however often it changed. A large document is not even loaded when its changes are small against
 * its size: its operations become a patch behind it, and only when patches have grown to half of it
 * is it written anew, so bytes written stay in proportion to bytes changed. A document that has grown longer
 * than a row may be keeps its patches: each of them fits, since it comes from rows of the log. */
#include "store/log/fold.h"

#include "base/hash.h"
#include "store/log/head_write.h"
#include "store/log/memo_fold.h"
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

struct folding {
    writer *w;
    VEC(fold) folds;
    uint32_t rows;       /* that they will be: a document and its metadata are one */
    table by_doc;        /* folds by their document's index in the tail */
    folded done;         /* how far it has come */
    memo_fold memos;     /* of the rows, and where they leave the spaces */
    VEC(new_head) heads; /* what is to be written, by name */
};

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
        hd_status status = memo_fold_commit(&g->memos, row, i);
        if (status) return status;
    }
    return HD_OK;
}

/* What there is to write. A memo costs about half of what a document costs: nothing is read for it. */
static uint32_t things_of(const folding *g) { return g->rows + g->memos.memos.entries.count / 2; }

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

/* ---- What rows will say ---------------------------------------------------------------------- */

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

static hd_status print_fold(json_buffer *out, hd_value v) {
    out->length = 0;
    return value_is_absent(v) ? HD_OK : json_print_to(out, v, HD_JSON_COMPACT);
}

/* The patches have grown too long: load, fold, and go on as a value; unless that is longer than a row may
 * be: then go on as a patch. `h` has a buffer for the text. */
static hd_status unpatch(folding *g, new_head *h, fold *f) {
    assert(f->mode == FOLD_PATCH && h->was.exists);
    hd_value v = value_absent();
    writer *w = g->w;
    bool doubtful = may_be_too_long(g, &h->was, f);
    hd_status status = large_load(w->store, w->heap, h->name, &h->was, &v);
    if (!status) {
        hd_value ops = log_json_read(w->heap, f->ops.bytes, f->ops.length);
        status = value_is_failed(ops) ? HD_NOMEM : log_fold(w->heap, ops, &v);
        value_unref(ops);
    }
    if (!status && doubtful) status = print_fold(&h->value, v);
    if (status || (doubtful && h->value.length > w->store->text_max)) value_unref(v);
    else become_value(f, v);
    return status;
}

/* Afterwards `f` is a patch that is to be added, or a value that is to be written. */
static hd_status choose_patch(folding *g, new_head *h, fold *f) {
    assert(f->mode == FOLD_PATCH);
    hd_status status = head_find(g->w->store, h->name, &h->was);
    if (status) return status;
    bool pays = patch_pays(g, &h->was, f);
    if (!enclose(&f->ops)) return HD_NOMEM;
    if (!pays) status = unpatch(g, h, f);
    h->patch = f->mode == FOLD_PATCH ? &f->ops : NULL;
    return status;
}

static const char *kind_of(hd_value meta) {
    return hd_value_as_text(hd_value_at(meta, "kind"), "");
}

static hd_status take_new_value(new_head *h, const fold *f) {
    assert(f->mode == FOLD_VALUE);
    hd_status status = print_fold(&h->value, f->value);
    h->seq = f->seq;
    h->guarded = (h->guarded && !f->forgotten) || f->guarded;
    h->size = h->value.length;
    h->large = h->value.length >= LARGE_MIN;
    h->patched = 0;
    h->value_changed = true;
    return status;
}

static hd_status take_new_meta(new_head *h, const fold *f) {
    h->meta_seq = f->seq;
    h->kind[0] = '\0';
    strncat(h->kind, kind_of(f->value), sizeof h->kind - 1);
    return print_fold(&h->meta, f->value);
}

static void take_patch(new_head *h, const fold *f) {
    h->seq = f->seq;
    h->patched = h->was.patched + f->ops.length;
}

static hd_status prepare(folding *g, new_head *h, fold *value, fold *meta) {
    hd_status status = value && value->mode == FOLD_PATCH ? choose_patch(g, h, value) : HD_OK;
    if (status) return status;
    bool anew = value && value->mode == FOLD_VALUE;
    h->whole = anew || meta;
    if (h->whole) status = new_head_take_old(g->w->store, h, anew);
    if (!status && h->patch) take_patch(h, value);
    if (!status && anew) status = take_new_value(h, value);
    if (!status && meta) status = take_new_meta(h, meta);
    if (!status && h->whole) new_head_hash(h);
    if (!status && anew) become_value(value, value_absent()); /* its text is enough */
    return status;
}

static hd_status prepare_doc(folding *g, const doc_name *given) {
    doc_name name = *given, beside = *given;
    name.meta = false;
    beside.meta = true;
    fold *value = fold_of(g, &name), *meta = fold_of(g, &beside);
    assert(value || meta);                  /* the slice has changed one of them */
    if (given->meta && value) return HD_OK; /* prepared with the value */
    if (!vec_room(&g->w->env, &g->heads, 1)) return HD_NOMEM;
    new_head *h = &g->heads.items[g->heads.count++];
    new_head_init(h, &g->w->env, given);
    return prepare(g, h, value, meta);
}

static int by_name(const void *a, const void *b) {
    return doc_name_compare(*(const doc_name *const *)a, *(const doc_name *const *)b);
}

/* In the order of the indexes: documents that were made one after the other often have names side by side, so that
 * writing them touches each page once. */
static hd_status prepare_docs(folding *g) {
    uint32_t count = g->folds.count;
    const doc_name **names = env_new_array(&g->w->env, count + 1, sizeof *names);
    if (!names) return HD_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        names[i] = &g->w->tail.docs.items[g->folds.items[i].doc].name;
    qsort(names, count, sizeof *names, by_name);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = prepare_doc(g, names[i]);
    env_free(&g->w->env, names, (count + 1) * sizeof *names);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static hd_status write_heads(folding *g, bool later) {
    log_store *s = g->w->store;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->heads.count && !status; i++)
        status = new_head_write(s, &g->heads.items[i], later);
    return status;
}

/* Where the slice leaves them: the log may go on. */
static hd_status write_spaces(folding *g) {
    log_store *s = g->w->store;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < g->memos.spaces.items.count && !status; i++) {
        const log_space *at = &g->memos.spaces.items.items[i];
        status = s->ops->put_space(s, text_of_key(at->name), at->seq);
    }
    return status;
}

/* ---- A slice ---------------------------------------------------------------------------------- */

static hd_status folding_init(folding *g, writer *w) {
    *g = (folding){ .w = w, .done = { .row = w->checkpoint } };
    table_init(&g->by_doc, &w->env);
    return memo_fold_init(&g->memos, w->store, w->heap);
}

static void folding_fini(folding *g) {
    for (uint32_t i = 0; i < g->folds.count; i++) {
        value_unref(g->folds.items[i].value);
        json_buffer_fini(&g->folds.items[i].ops);
    }
    vec_fini(&g->w->env, &g->folds);
    table_fini(&g->by_doc);
    memo_fold_fini(&g->memos);
    for (uint32_t i = 0; i < g->heads.count; i++) new_head_fini(&g->heads.items[i]);
    vec_fini(&g->w->env, &g->heads);
}

hd_status fold_gather(writer *w, folding **out) {
    assert(w->store->ops->in_transaction(w->store));
    assert(w->known && w->checkpoint < w->row);
    folding *g = *out = env_new0(&w->env, sizeof *g);
    if (!g) return HD_NOMEM;
    hd_status status = folding_init(g, w);
    if (!status) status = fold_rows(g);
    if (!status) status = prepare_docs(g);
    assert(status || (g->done.row > w->checkpoint && g->done.row <= w->row));
    return status;
}

folded fold_gathered(const folding *g) {
    folded done = g->done;
    done.things = things_of(g);
    return done;
}

hd_status fold_write(folding *g, bool later) {
    assert(g->w->store->ops->in_transaction(g->w->store));
    hd_status status = memo_fold_write(&g->memos); /* first: are there memos? */
    if (!status) status = write_heads(g, later);
    return status ? status : write_spaces(g);
}

void fold_free(folding *g) {
    if (!g) return;
    hd_env env = g->w->env;
    folding_fini(g);
    env_free(&env, g, sizeof *g);
}

/* ---- One document, for repair ---------------------------------------------------------------- */

static hd_status rewrite(log_store *s, new_head *h, const document_state *to) {
    fold value = { .mode = FOLD_VALUE, .value = to->value, .seq = to->seq, .guarded = to->guarded };
    fold meta = { .mode = FOLD_VALUE, .value = to->meta, .seq = to->meta_seq };
    hd_status status = head_find(s, h->name, &h->was);
    if (status == HD_CORRUPT) status = HD_OK; /* that is why it is written anew */
    h->whole = true;
    if (!status) status = take_new_value(h, &value);
    if (!status) status = take_new_meta(h, &meta);
    if (!status && h->was.exists) status = new_head_drop_large(s, h->was.doc);
    new_head_hash(h);
    return status ? status : new_head_write(s, h, false);
}

hd_status fold_rewrite(writer *w, const doc_name *name, const document_state *to) {
    new_head h;
    new_head_init(&h, &w->env, name);
    hd_status status = rewrite(w->store, &h, to);
    new_head_fini(&h);
    return status;
}

/* ---- Large documents whose patches are still apart: loaded and written whole ------------------- */

/* `doc` is the row that was found to have patches: its name must lead to it. */
static hd_status unpatch_row(folding *g, new_head *h, int64_t doc) {
    fold f = { .mode = FOLD_VALUE };
    writer *w = g->w;
    hd_status status = new_head_take_old(w->store, h, false);
    if (!status && (!h->was.exists || h->was.doc != doc)) status = HD_CORRUPT;
    if (!status) status = large_load(w->store, w->heap, h->name, &h->was, &f.value);
    f.seq = h->seq;
    if (!status) status = take_new_value(h, &f);
    value_unref(f.value);
    if (status || h->size > w->store->text_max) return status;
    h->whole = true;
    new_head_hash(h);
    return new_head_write(w->store, h, false);
}

static hd_status unpatch_doc(folding *g, const doc_name *name, int64_t doc) {
    new_head h;
    new_head_init(&h, &g->w->env, name);
    hd_status status = unpatch_row(g, &h, doc);
    g->done.bytes += h.size;
    new_head_fini(&h);
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
