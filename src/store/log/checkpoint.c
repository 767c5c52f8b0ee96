/* checkpoint.c -- when head rows are brought up to date, and what may be forgotten then. */
#include "store/log/checkpoint.h"

#include "store/log/fold.h"
#include "store/log/prune.h"
#include "store/log/readers.h"

/* Automatic pruning waits for this much, so that it is rare: a process that is a little behind and has no row among the
 * readers has to read anew when it finds rows gone. */
#define KEPT_MAX (UINT64_C(4) << 20)

enum { FOLD_RACES = 3 };

/* ---- A slice ---------------------------------------------------------------------------------- */

/* HD_RESYNC: another process has folded, pruned or made one text of a large document since the slice was read. */
static hd_status write_slice(writer *w, folding *g, bool later) {
    log_store *s = w->store;
    folded done = fold_gathered(g);
    uint64_t checkpoint = w->checkpoint;
    hd_status status = later ? s->ops->get_number(s, LOG_CHECKPOINT, &checkpoint) : HD_OK;
    if (!status && checkpoint != w->checkpoint) status = HD_RESYNC;
    if (!status) status = fold_write(g, later);
    if (!status) status = s->ops->set_number(s, LOG_CHECKPOINT, done.row);
    if (!status && later) status = s->ops->get_number(s, LOG_KEPT, &w->kept);
    if (!status) status = s->ops->set_number(s, LOG_KEPT, w->kept + done.bytes);
    if (!status && w->registered) status = log_readers_put(w);
    return status;
}

/* *out stays NULL if there is nothing to fold. */
static hd_status read_slice(writer *w, folding **out) {
    hd_status status = writer_catch_up(w);
    return status || w->row == w->checkpoint ? status : fold_gather(w, out);
}

/* Where a write transaction keeps other writers out, it only writes: reading, folding and printing, which take
 * several times as long, come before it. An optimistic backend keeps none out, and reads and writes in one; so does a
 * slice before which other processes were faster too often. */
static hd_status do_slice(writer *w, folding **out) {
    log_store *s = w->store;
    bool apart = !s->optimistic && w->fold_races < FOLD_RACES;
    hd_status status = apart ? s->ops->begin_read(s) : writer_begin_housework(w);
    if (!status) status = read_slice(w, out);
    if (apart || status || !*out) s->ops->rollback(s);
    if (status || !*out) return status;
    if (apart) status = writer_begin_housework(w);
    if (!status) status = write_slice(w, *out, apart);
    return writer_end(w, status);
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
    w->folds.things += done->things;
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
    folding *g = NULL;
    hd_status status = do_slice(w, &g);
    bool nothing = !g;
    folded done = g ? fold_gathered(g) : (folded){ 0 };
    fold_free(g);
    assert(!w->store->ops->in_transaction(w->store));
    w->fold_races = status == HD_RESYNC ? w->fold_races + 1 : 0;
    if (status == HD_RESYNC) return HD_OK; /* the next slice begins with what there is then */
    if (status || nothing) {
        w->fold_to = 0;
        return status;
    }
    note_slice(w, &done);
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
