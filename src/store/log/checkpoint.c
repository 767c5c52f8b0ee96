/* checkpoint.c -- when head rows are brought up to date, and what may be forgotten then. */
#include "store/log/checkpoint.h"

#include "store/log/fold.h"
#include "store/log/prune.h"
#include "store/log/readers.h"

/* Automatic pruning waits for this much: small lags of other processes then never meet a gap. */
#define KEPT_MAX (UINT64_C(4) << 20)

/* ---- A slice ---------------------------------------------------------------------------------- */

static hd_status slice_inside(writer *w, bool full, folded *done) {
    hd_status status = fold_slice(w, full, done);
    if (!status) status = file_meta_set(&w->file, "checkpoint", done->row);
    if (!status) status = file_meta_set(&w->file, "kept", w->kept + done->bytes);
    if (!status && w->registered) status = log_readers_put(w);
    return status;
}

/* Footprints from before the last checkpoint are let go; the one before that was their floor. */
static void forget_footprints(writer *w) {
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
    pthread_mutex_lock(&w->lock);
    w->folds.slices++;
    if (w->folds.most < done->things) w->folds.most = done->things;
    pthread_mutex_unlock(&w->lock);
    w->checkpoint = done->row;
    w->tail.bytes -= done->bytes < w->tail.bytes ? done->bytes : w->tail.bytes;
}

/* The checkpoint is complete. */
static hd_status complete(writer *w) {
    w->fold_to = 0;
    tail_trim(&w->tail, w->checkpoint);
    if (w->checkpoint == w->row) w->tail.bytes = 0;
    forget_footprints(w);
#ifndef NDEBUG
    tail_check(&w->tail);
    heads_check(&w->heads);
#endif
    hd_status status = file_meta_get(&w->file, "kept", &w->kept);
    bool due = !status && !w->options.keep_history && w->kept > KEPT_MAX;
    return due ? prune_begin(w) : status;
}

hd_status writer_fold(writer *w, bool full) {
    folded done = { 0 };
    /* Soft: what it makes is in the log already, and nobody should wait for the disk while we hold the
     * lock. What deletes log rows comes after it in the WAL, so it cannot survive without it. */
    hd_status status = file_begin_soft(&w->file);
    if (!status) status = writer_catch_up(w);
    bool nothing = !status && w->row == w->checkpoint;
    if (!status && !nothing) status = slice_inside(w, full, &done);
    if (!status && !nothing) status = file_commit(&w->file);
    if (status || nothing) {
        file_rollback(&w->file);
        w->fold_to = 0;
        return status;
    }
    note_slice(w, &done);
    if (w->checkpoint < w->fold_to && w->checkpoint < w->row)
        return file_meta_get(&w->file, "kept", &w->kept);
    return complete(w);
}

hd_status writer_unpatch(writer *w, bool *more) {
    hd_status status = file_begin_soft(&w->file);
    if (!status) status = fold_patches_slice(w, more);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    return status;
}

/* ---- Readers ---------------------------------------------------------------------------------- */

hd_status writer_register(writer *w) {
    if (w->registered) return HD_OK;
    hd_status status = file_begin_soft(&w->file);
    if (status) return status;
    status = log_readers_put(w);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    else w->registered = true;
    return status;
}

hd_status writer_move_reader(writer *w) {
    hd_status status = file_begin_soft(&w->file);
    if (!status) status = log_readers_move(w);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    return status;
}

void writer_unregister(writer *w) {
    if (!w->registered || file_begin_soft(&w->file)) return;
    hd_status status = log_readers_drop(w);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    w->registered = false;
}
