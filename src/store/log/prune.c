/* prune.c -- from the oldest row on, and the floors of the spaces with them. */
#include "store/log/prune.h"

#include "store/log/readers.h"
#include "store/log/spaces.h"

/* What a slice deletes. */
typedef struct slice {
    writer *w;
    uint64_t floor;       /* every reader has delivered the rows up to this one */
    uint64_t first, last; /* rows; last is 0: none */
    uint64_t bytes;       /* of their text */
    uint32_t rows;
    log_spaces floors; /* the highest seq that each space has in them */
} slice;

/* ---- Reading what is to go -------------------------------------------------------------------- */

static hd_status raise_floors(slice *s, const log_row *row) {
    writer *w = s->w;
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++)
        status = log_spaces_take(&s->floors, &w->env, w->heap, log_row_commit(row, i));
    return status;
}

static hd_status take_row(slice *s, const log_text *text) {
    assert(text->row > s->last);
    writer *w = s->w;
    log_row row;
    hd_status status = log_row_read(w->store, w->heap, text, &row);
    if (!status) status = raise_floors(s, &row);
    if (!status) {
        if (!s->first) s->first = row.row;
        s->last = row.row;
        s->bytes += row.length;
        s->rows++;
    }
    log_row_fini(w->heap, &row);
    return status;
}

static bool is_full(const slice *s) { return s->bytes >= PRUNE_BYTES || s->rows >= PRUNE_ROWS; }

/* Rows up to `floor`, which every reader has delivered; and up to `prune_to` as long as more is kept than
 * readers may lag behind. */
static hd_status gather(void *ctx, const log_text *text, bool *stop) {
    slice *s = ctx;
    const writer *w = s->w;
    bool needed = text->row > s->floor && w->kept <= s->bytes + LAG_MAX;
    *stop = is_full(s) || text->row > w->prune_to || needed;
    return *stop ? HD_OK : take_row(s, text);
}

static hd_status read_slice(writer *w, slice *s) {
    log_store *store = w->store;
    s->floor = w->prune_to;
    hd_status status = store->ops->begin_read(store);
    if (!status) status = store->ops->get_number(store, LOG_KEPT, &w->kept);
    if (!status) status = log_readers_oldest(w, &s->floor);
    if (!status) status = store->ops->read_after(store, 0, gather, s);
    store->ops->rollback(store);
    return status;
}

/* ---- Deleting it ------------------------------------------------------------------------------ */

/* Tombstones below the floor go with the log: rows about nodes that are older than that are compared
 * without them (resume.c). */
static hd_status put_floors(writer *w, const slice *s) {
    assert(w->store->ops->in_transaction(w->store));
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < s->floors.items.count && !status; i++) {
        const log_space *at = &s->floors.items.items[i];
        status = w->store->ops->raise_floor(w->store, text_of_key(at->name), at->seq);
    }
    return status;
}

static hd_status see(void *ctx, const log_text *text, bool *stop) {
    (void)ctx, (void)text;
    *stop = true;
    return HD_OK;
}

/* If another process has deleted some of it meanwhile, that process has counted it. */
static hd_status delete_inside(writer *w, const slice *s) {
    assert(s->first && s->first <= s->last && s->last <= w->prune_to);
    log_store *store = w->store;
    hd_status status = store->ops->read_row(store, s->first, see, NULL);
    if (status) return status == HD_NOT_FOUND ? HD_OK : status;
    status = put_floors(w, s);
    if (!status) status = store->ops->delete_rows(store, s->last);
    if (!status) status = store->ops->get_number(store, LOG_KEPT, &w->kept);
    if (status) return status;
    w->kept -= s->bytes < w->kept ? s->bytes : w->kept;
    return store->ops->set_number(store, LOG_KEPT, w->kept);
}

hd_status prune_slice(writer *w) {
    assert(w->prune_to);
    slice s = { .w = w };
    hd_status status = read_slice(w, &s);
    assert(s.last <= w->prune_to && s.first <= s.last);
    if (!status && s.last) {
        status = writer_begin_soft(w);
        if (!status) status = delete_inside(w, &s);
        status = writer_end(w, status);
    }
    if (status || !is_full(&s)) w->prune_to = 0;
    log_spaces_fini(&s.floors, &w->env);
    return status;
}

static hd_status drop_dead(writer *w) {
    hd_status status = writer_begin_soft(w);
    if (!status) status = log_readers_drop_dead(w);
    return writer_end(w, status);
}

/* No further than the checkpoint is now: folds that come later have their own pruning. */
hd_status prune_begin(writer *w) {
    w->prune_to = 0;
    if (w->options.keep_history) return HD_OK;
    uint64_t checkpoint = 0;
    bool dead = false;
    hd_status status = log_readers_has_dead(w, &dead);
    if (!status && dead) status = drop_dead(w);
    if (!status) status = w->store->ops->get_number(w->store, LOG_CHECKPOINT, &checkpoint);
    if (!status) w->prune_to = checkpoint;
    return status;
}
