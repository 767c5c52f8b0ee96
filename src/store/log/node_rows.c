/* node_rows.c -- folding extras, and writing what has changed of them. */
#include "store/log/node_rows.h"

#include "value/json_write.h"
#include "value/object.h"
#include "value/text.h"

hd_value log_commit_extra(hd_value made) {
    hd_value extra = object_get_bytes(made, "x", 1);
    return value_exists(extra) && !basis_fault(extra) ? extra : value_absent();
}

/* ---- Folding ------------------------------------------------------------------------------ */

static hd_status take_space(void *ctx, const space_row *row, bool *stop) {
    node_fold *f = ctx;
    log_space *space;
    (void)stop;
    hd_status status = log_spaces_named(&f->spaces, f->rows.env, f->heap, row->name.bytes,
                                        row->name.length, &space);
    return status || log_number_of(row->seq, &space->seq) ? status : HD_CORRUPT;
}

hd_status node_fold_init(node_fold *f, log_store *store, hd_heap *heap) {
    *f = (node_fold){ .store = store, .heap = heap };
    assert(store->ops->in_transaction(store));
    basis_init(&f->rows, &store->env, heap, true);
    return store->ops->each_space(store, take_space, f);
}

void node_fold_fini(node_fold *f) {
    if (!f->heap) return;
    log_spaces_fini(&f->spaces, f->rows.env);
    basis_fini(&f->rows);
    f->heap = NULL;
}

hd_status node_fold_commit(node_fold *f, const log_row *row, size_t i) {
    hd_value made = log_row_commit(row, i), extra = log_commit_extra(made);
    hd_status status = log_spaces_take(&f->spaces, f->rows.env, f->heap, made);
    if (status || value_is_absent(extra)) return status;
    basis_point now = log_spaces_point(&f->spaces);
    return basis_apply(&f->rows, extra, &now, row->row);
}

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct writing {
    node_fold *f;
    json_buffer seqs;
} writing;

static hd_status write_entry(writing *w, const basis_entry *e) {
    log_store *s = w->f->store;
    node_row row = { 0 };
    for (size_t i = 0, count = array_count(e->item); i < count; i++)
        row.text[i].bytes = basis_item_text(e->item, i, &row.text[i].length);
    if (basis_is_gone(e)) return s->ops->drop_node(s, row.text[ROW_NAME], row.text[ROW_INSTANCE]);
    w->seqs.length = 0;
    hd_status status = json_print_to(&w->seqs, e->seqs, HD_JSON_COMPACT);
    row.text[NODE_SEQS] = text_of_bytes(w->seqs.bytes, w->seqs.length);
    return status ? status : s->ops->put_node(s, &row);
}

hd_status node_fold_write(node_fold *f) {
    assert(f->heap);
    writing w = { .f = f };
    hd_status status = HD_OK;
    json_buffer_init(&w.seqs, f->rows.env);
    for (uint32_t i = 0; i < f->rows.entries.count && !status; i++)
        status = write_entry(&w, &f->rows.entries.items[i]);
    json_buffer_fini(&w.seqs);
    return status;
}
