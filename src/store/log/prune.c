/* prune.c -- deletes log rows from the oldest on, and raises the floors of the spaces that they belong to. */
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

/* ---- Reading the rows to be deleted -------------------------------------------------------------------- */

static hd_status raise_floors(slice *s, const log_row *row) {
    writer *w = s->w;
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++)
        status = log_spaces_take(&s->floors, &w->env, w->heap, log_row_commit(row, i));
    return status;
}

static hd_status take_row(slice *s, const log_text *text) {
    writer *w = s->w;
    log_row row;
    if (text->row <= s->last)
        return log_row_damaged(w->store, text->row, "it comes after a later one");
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

/* A row is deleted if every reader has delivered it (up to `floor`). Later rows, up to `prune_to`, are deleted too
 * while the file keeps more than LAG_MAX bytes of log for readers. */
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

/* ---- Deleting them ------------------------------------------------------------------------------ */

/* Raising the floor deletes the tombstones below it. A reader of changes since an earlier seq is answered by
 * looking each document up (changes.c). */
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

/* If another process has deleted the first row meanwhile, it has taken all of them off `kept`: nothing is left to
 * do. */
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
    assert(s.last <= w->prune_to && s.first <= s.last && !s.first == !s.last);
    if (!status && s.last) {
        status = writer_begin_housework(w);
        if (!status) status = delete_inside(w, &s);
        status = writer_end(w, status);
    }
    if (status || !is_full(&s)) w->prune_to = 0;
    log_spaces_fini(&s.floors, &w->env);
    return status;
}

static hd_status drop_dead(writer *w) {
    hd_status status = writer_begin_housework(w);
    if (!status) status = log_readers_drop_dead(w);
    return writer_end(w, status);
}

static hd_status read_numbers(writer *w, bool *dead, uint64_t *checkpoint) {
    const log_backend *ops = w->store->ops;
    hd_status status = ops->begin_read(w->store);
    if (!status) status = log_readers_has_dead(w, dead);
    if (!status) status = ops->get_number(w->store, LOG_CHECKPOINT, checkpoint);
    ops->rollback(w->store);
    return status;
}

/* Rows up to the present checkpoint may be deleted. A later checkpoint begins a pruning of its own. */
hd_status prune_begin(writer *w) {
    assert(!w->store->ops->in_transaction(w->store));
    w->prune_to = 0;
    if (w->options.keep_history) return HD_OK;
    uint64_t checkpoint = 0;
    bool dead = false;
    hd_status status = read_numbers(w, &dead, &checkpoint);
    if (!status && dead) status = drop_dead(w);
    /* Where writers find each other by the last row, that one stays: it may be the checkpoint's. */
    if (!status && w->store->optimistic && checkpoint && checkpoint >= w->row) checkpoint--;
    if (!status) w->prune_to = checkpoint;
    return status;
}
