/* node_rows.c -- folding extras, and writing what has changed of them. */
#include "store/log/node_rows.h"

#include "value/json_write.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"

hd_value log_commit_extra(hd_value made) {
    hd_value extra = object_get_bytes(made, "x", 1);
    return value_exists(extra) && basis_well_formed(extra, NULL) ? extra : value_absent();
}

/* ---- Folding ------------------------------------------------------------------------------ */

static bool space_at(void *ctx, uint32_t i, struct key **name, uint64_t *seq) {
    const node_fold *f = ctx;
    if (i >= f->spaces.count) return false;
    *name = f->spaces.items[i].space;
    *seq = f->spaces.items[i].seq;
    return true;
}

static hd_status move_space(node_fold *f, const char *text, size_t length, uint64_t seq) {
    struct key *k;
    hd_status status = key_make(f->heap, text, length, &k);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    uint32_t i = 0;
    while (i < f->spaces.count && f->spaces.items[i].space != k) i++;
    if (i < f->spaces.count) {
        f->spaces.items[i].seq = seq;
        key_unref(k);
        return HD_OK;
    }
    if (vec_push(f->rows.env, &f->spaces, ((space_seq){ k, seq }))) return HD_OK;
    key_unref(k);
    return HD_NOMEM;
}

static hd_status take_space(void *ctx, const space_row *space, bool *stop) {
    (void)stop;
    uint64_t seq;
    if (!log_number_of(space->seq, &seq)) return HD_CORRUPT;
    return move_space(ctx, space->name.bytes, space->name.length, seq);
}

hd_status node_fold_init(node_fold *f, log_store *store, hd_heap *heap) {
    *f = (node_fold){ .store = store, .heap = heap };
    assert(store->ops->in_transaction(store));
    basis_init(&f->rows, &store->env, heap, true);
    return store->ops->each_space(store, take_space, f);
}

void node_fold_fini(node_fold *f) {
    if (!f->heap) return;
    for (uint32_t i = 0; i < f->spaces.count; i++) key_unref(f->spaces.items[i].space);
    vec_fini(f->rows.env, &f->spaces);
    basis_fini(&f->rows);
    f->heap = NULL;
}

hd_status node_fold_commit(node_fold *f, const log_row *row, size_t number) {
    hd_value made = log_row_commit(row, number);
    for (size_t i = 0, spaces = log_commit_spaces(made); i < spaces; i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        if (!log_commit_space(made, i, &name, &length, &seq)) return HD_CORRUPT;
        hd_status status = move_space(f, name, length, seq);
        if (status) return status;
    }
    basis_point now = { f, space_at };
    hd_value extra = log_commit_extra(made);
    return value_exists(extra) ? basis_apply(&f->rows, extra, &now, row->row) : HD_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct writing {
    node_fold *f;
    json_buffer seqs, body;
} writing;

static row_text text_of_value(hd_value v) {
    row_text t;
    t.bytes = hd_value_text(v, &t.length);
    return t;
}

static row_text text_of_buffer(const json_buffer *b) { return text_of_bytes(b->bytes, b->length); }

static node_row row_named(const basis_entry *e) {
    return (node_row){ .name = text_of_value(array_get(e->item, ROW_NAME)),
                       .instance = text_of_value(array_get(e->item, ROW_INSTANCE)) };
}

static hd_status print(json_buffer *b, hd_value v) {
    b->length = 0;
    return json_print_to(b, v, HD_JSON_COMPACT);
}

static hd_status write_gone(writing *w, const basis_entry *e) {
    log_store *s = w->f->store;
    node_row row = row_named(e);
    return s->ops->drop_node(s, row.name, row.instance);
}

static hd_status write_whole(writing *w, const basis_entry *e) {
    log_store *s = w->f->store;
    hd_value seqs = basis_seqs_of(&w->f->rows, e);
    hd_status status = value_is_failed(seqs) ? HD_NOMEM : print(&w->seqs, seqs);
    if (!value_is_failed(seqs)) value_unref(seqs);
    if (!status) status = print(&w->body, array_get(e->whole, ROW_BODY));
    if (status) return status;
    node_row row = row_named(e);
    row.mark = text_of_value(array_get(e->whole, ROW_MARK));
    row.hashes = text_of_value(array_get(e->item, ROW_HASHES));
    row.print = text_of_value(array_get(e->whole, ROW_PRINT));
    row.seqs = text_of_buffer(&w->seqs);
    row.body = text_of_buffer(&w->body);
    return s->ops->put_node(s, &row);
}

/* The stored row that an entry without a whole row may renew. */
typedef struct old_row {
    const basis_entry *entry;
    hd_heap *heap;
    bool fits;       /* the entry renews that very row */
    hd_value spaces; /* owned: the spaces that it reads, an object; only if it fits */
} old_row;

/* A row that cannot be read does not fit: it goes, and its node runs. */
static hd_status take_old(void *ctx, const node_row *row, bool *stop) {
    old_row *old = ctx;
    *stop = true;
    hd_value spaces;
    if (!basis_is_about(old->entry, row->mark.bytes, row->mark.length)) return HD_OK;
    hd_status status = log_json_of(old->heap, row->seqs, &spaces);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_OK;
    old->fits = value_is_object(spaces);
    if (old->fits) old->spaces = spaces;
    else value_unref(spaces);
    return HD_OK;
}

/* The seqs of now, of the spaces that the row reads. */
static hd_status narrow_seqs(writing *w, hd_value seqs, hd_value spaces, hd_value *out) {
    hd_value narrow = node_value(NULL, true);
    for (hd_iter it = hd_iter_of(spaces); hd_iter_next(&it);) {
        hd_value seq = object_get_bytes(seqs, it.key, it.key_length);
        struct key *k = key_intern(w->f->heap, it.key, it.key_length);
        hd_value next = k ? object_set(w->f->heap, narrow, k, value_exists(seq) ? seq : it.value)
                          : value_failed(HD_NOMEM);
        key_unref(k);
        value_unref(narrow);
        narrow = next;
        if (value_is_failed(narrow)) return HD_NOMEM;
    }
    *out = narrow;
    return HD_OK;
}

static hd_status print_seqs(writing *w, const basis_entry *e, hd_value spaces) {
    hd_value seqs = value_absent(), all = basis_seqs_of(&w->f->rows, e);
    hd_status status = value_is_failed(all) ? HD_NOMEM : narrow_seqs(w, all, spaces, &seqs);
    if (!status) status = print(&w->seqs, seqs);
    if (!value_is_failed(all)) value_unref(all);
    value_unref(seqs);
    return status;
}

static hd_status write_renewed(writing *w, const basis_entry *e) {
    log_store *s = w->f->store;
    node_row row = row_named(e);
    old_row old = { .entry = e, .heap = w->f->heap, .spaces = value_absent() };
    hd_status status = s->ops->get_node(s, row.name, row.instance, take_old, &old);
    if (!status && !old.fits) return write_gone(w, e);
    if (!status) status = print_seqs(w, e, old.spaces);
    value_unref(old.spaces);
    if (status) return status;
    row.hashes = text_of_value(array_get(e->item, ROW_HASHES));
    row.seqs = text_of_buffer(&w->seqs);
    return s->ops->renew_node(s, &row);
}

static hd_status write_entry(writing *w, const basis_entry *e) {
    if (e->gone) return write_gone(w, e);
    return value_exists(e->whole) ? write_whole(w, e) : write_renewed(w, e);
}

/* In order of name: neighbours in the store, too. */
static hd_status write_piece(writing *w, basis_piece *p) {
    const basis *rows = &w->f->rows;
    hd_status status = HD_OK;
    basis_sort(rows, p);
    for (uint32_t i = 0; i < p->rows.count && !status; i++)
        status = write_entry(w, &rows->entries.items[p->rows.items[i]]);
    return status;
}

hd_status node_fold_write(node_fold *f) {
    writing w = { .f = f };
    hd_status status = HD_OK;
    json_buffer_init(&w.seqs, f->rows.env);
    json_buffer_init(&w.body, f->rows.env);
    for (uint32_t i = 0; i < f->rows.pieces.count && !status; i++)
        status = write_piece(&w, &f->rows.pieces.items[i]);
    json_buffer_fini(&w.seqs);
    json_buffer_fini(&w.body);
    return status;
}
