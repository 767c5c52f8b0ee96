/* memo_fold.c -- folding extras, and writing the memos that have changed. */
#include "store/log/memo_fold.h"

#include "value/json_write.h"
#include "value/object.h"
#include "value/text.h"

hd_value log_commit_extra(hd_value made) {
    hd_value extra = object_get_bytes(made, "x", 1);
    return value_exists(extra) && !memo_fault(extra) ? extra : value_absent();
}

/* ---- Folding ------------------------------------------------------------------------------ */

static hd_status take_space(void *ctx, const space_row *row, bool *stop) {
    memo_fold *f = ctx;
    log_space *space;
    (void)stop;
    hd_status status = log_spaces_named(&f->spaces, f->memos.env, f->heap, row->name.bytes,
                                        row->name.length, &space);
    return status || log_number_of(row->seq, &space->seq) ? status : HD_CORRUPT;
}

hd_status memo_fold_init(memo_fold *f, log_store *store, hd_heap *heap) {
    *f = (memo_fold){ .store = store, .heap = heap };
    assert(store->ops->in_transaction(store));
    memos_init(&f->memos, &store->env, heap, true);
    return store->ops->each_space(store, take_space, f);
}

void memo_fold_fini(memo_fold *f) {
    if (!f->heap) return;
    log_spaces_fini(&f->spaces, f->memos.env);
    memos_fini(&f->memos);
    f->heap = NULL;
}

hd_status memo_fold_commit(memo_fold *f, const log_row *row, size_t i) {
    hd_value made = log_row_commit(row, i), extra = log_commit_extra(made);
    hd_status status = log_spaces_take(&f->spaces, f->memos.env, f->heap, made);
    if (status || value_is_absent(extra)) return status;
    memo_point now = log_spaces_point(&f->spaces);
    return memos_apply(&f->memos, extra, &now, row->row);
}

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct writing {
    memo_fold *f;
    json_buffer seqs;
} writing;

static hd_status write_entry(writing *w, const memo_entry *e) {
    log_store *s = w->f->store;
    stored_memo m = { 0 };
    for (size_t i = 0, count = array_count(e->item); i < count; i++)
        m.text[i].bytes = memo_text(e->item, i, &m.text[i].length);
    if (memo_is_gone(e)) return s->ops->drop_memo(s, m.text[MEMO_NAME], m.text[MEMO_INSTANCE]);
    w->seqs.length = 0;
    hd_status status = json_print_to(&w->seqs, e->seqs, HD_JSON_COMPACT);
    m.text[MEMO_SEQS] = text_of_bytes(w->seqs.bytes, w->seqs.length);
    return status ? status : s->ops->put_memo(s, &m);
}

hd_status memo_fold_write(memo_fold *f) {
    assert(f->heap);
    writing w = { .f = f };
    hd_status status = HD_OK;
    json_buffer_init(&w.seqs, f->memos.env);
    for (uint32_t i = 0; i < f->memos.entries.count && !status; i++)
        status = write_entry(&w, &f->memos.entries.items[i]);
    json_buffer_fini(&w.seqs);
    return status;
}
