/* checkpoint.c -- when head rows are brought up to date, and what may be forgotten then. */
#include "store/log/checkpoint.h"

#include "store/log/fold.h"
#include "store/log/prune.h"
#include "store/log/readers.h"

/* Automatic pruning waits for this much, so that it is rare: a process that is a little behind and has no row among the
 * readers has to read anew when it finds rows gone. */
#define KEPT_MAX (UINT64_C(4) << 20)

/* ---- A slice ---------------------------------------------------------------------------------- */

static hd_status slice_inside(writer *w, folded *done) {
    assert(w->checkpoint < w->row);
    hd_status status = fold_slice(w, done);
    log_store *s = w->store;
    if (!status) status = s->ops->set_number(s, LOG_CHECKPOINT, done->row);
    if (!status) status = s->ops->set_number(s, LOG_KEPT, w->kept + done->bytes);
    if (!status && w->registered) status = log_readers_put(w);
    return status;
}

/* Footprints from before the last checkpoint are let go; the one before that was their floor. */
static void forget_footprints(writer *w) {
    assert(w->last_seqs.count <= w->heads.spaces.count && w->last_row <= w->row);
    for (uint32_t i = 0; i < w->heads.spaces.count; i++) {
        if (i < w->last_seqs.count) heads_prune(&w->heads, i, w->last_seqs.items[i]);
        else if (!vec_push(&w->env, &w->last_seqs, 0)) return;
        w->last_seqs.items[i] = w->heads.spaces.items[i].seq;
    }
    heads_compact(&w->heads); /* what is left stands in head rows */
    w->forgotten = w->last_row;
    w->last_row = w->row;
}

static void note_slice(writer *w, const folded *done) {
    assert(done->row > w->checkpoint && done->row <= w->row);
    pthread_mutex_lock(&w->lock);
    w->folds.slices++;
    if (w->folds.most < done->things) w->folds.most = done->things;
    pthread_mutex_unlock(&w->lock);
    w->checkpoint = done->row;
    w->tail.bytes -= done->bytes < w->tail.bytes ? done->bytes : w->tail.bytes;
}

static hd_status read_kept(writer *w) {
    const log_backend *ops = w->store->ops;
    hd_status status = ops->begin_read(w->store);
    if (!status) status = ops->get_number(w->store, LOG_KEPT, &w->kept);
    ops->rollback(w->store);
    return status;
}

/* The checkpoint is complete. */
static hd_status complete(writer *w) {
    assert(w->checkpoint <= w->row);
    w->fold_to = 0;
    tail_trim(&w->tail, w->checkpoint);
    if (w->checkpoint == w->row) w->tail.bytes = 0;
    forget_footprints(w);
#ifndef NDEBUG
    tail_check(&w->tail);
    heads_check(&w->heads);
#endif
    hd_status status = read_kept(w);
    bool due = !status && !w->options.keep_history && w->kept > KEPT_MAX;
    return due ? prune_begin(w) : status;
}

hd_status writer_fold(writer *w) {
    folded done = { 0 };
    hd_status status = writer_begin_housework(w);
    if (!status) status = writer_catch_up(w);
    bool nothing = !status && w->row == w->checkpoint;
    if (!status && !nothing) status = slice_inside(w, &done);
    if (!nothing) status = writer_end(w, status);
    if (status || nothing) {
        w->store->ops->rollback(w->store);
        w->fold_to = 0;
        return status;
    }
    note_slice(w, &done);
    assert(!w->store->ops->in_transaction(w->store));
    if (w->checkpoint < w->fold_to && w->checkpoint < w->row) return read_kept(w);
    return complete(w);
}

hd_status writer_unpatch(writer *w, int64_t *after, bool *more) {
    assert(!w->fold_to); /* the checkpoint is complete */
    hd_status status = writer_begin_housework(w);
    if (!status) status = fold_patches_slice(w, after, more);
    return writer_end(w, status);
}

/* ---- Readers ---------------------------------------------------------------------------------- */

hd_status writer_register(writer *w) {
    if (w->registered) return HD_OK;
    hd_status status = writer_begin_soft(w);
    if (!status) status = log_readers_put(w);
    status = writer_end(w, status);
    if (!status) w->registered = true;
    return status;
}

hd_status writer_move_reader(writer *w) {
    assert(w->registered);
    hd_status status = writer_begin_soft(w);
    if (!status) status = log_readers_move(w);
    return writer_end(w, status);
}

void writer_unregister(writer *w) {
    if (!w->registered) return;
    hd_status status = writer_begin_soft(w);
    if (!status) status = log_readers_drop(w);
    (void)writer_end(w, status);
    w->registered = false;
}
