/* prune.c -- from the oldest row on, and the floors of the spaces with them. */
#include "store/log/prune.h"

#include "store/log/readers.h"

/* What a slice deletes. */
typedef struct slice {
    uint64_t first, last; /* rows; last is 0: none */
    uint64_t bytes;       /* of their text */
    uint32_t rows;
    VEC(space_seq) floors; /* the highest seq that each space has in them; keys are referenced */
} slice;

static void slice_fini(writer *w, slice *s) {
    for (uint32_t i = 0; i < s->floors.count; i++) key_unref(s->floors.items[i].space);
    vec_fini(&w->env, &s->floors);
}

/* ---- Reading what is to go -------------------------------------------------------------------- */

static hd_status raise_floor(writer *w, slice *s, const char *name, size_t length, uint64_t seq) {
    struct key *space;
    hd_status status = key_make(w->heap, name, length, &space);
    if (status) return status == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    for (uint32_t i = 0; i < s->floors.count; i++) {
        if (s->floors.items[i].space != space) continue;
        s->floors.items[i].seq = seq;
        key_unref(space);
        return HD_OK;
    }
    if (vec_push(&w->env, &s->floors, ((space_seq){ space, seq }))) return HD_OK;
    key_unref(space);
    return HD_NOMEM;
}

static hd_status raise_floors(writer *w, slice *s, const log_row *row) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++) {
        hd_value made = log_row_commit(row, i);
        for (size_t k = 0; k < log_commit_spaces(made) && !status; k++) {
            const char *name;
            size_t length;
            uint64_t seq;
            status = log_commit_space(made, k, &name, &length, &seq)
                         ? raise_floor(w, s, name, length, seq)
                         : HD_CORRUPT;
        }
    }
    return status;
}

static hd_status take_row(writer *w, slice *s, sqlite3_stmt *statement) {
    log_row row;
    hd_status status = log_row_read(&w->file, w->heap, statement, &row);
    if (!status) status = raise_floors(w, s, &row);
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
static hd_status gather(writer *w, slice *s, uint64_t floor) {
    sqlite3_stmt *statement = file_sql_get(&w->file, SQL_LOG_AFTER);
    if (!statement) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_int64(statement, 1, 0);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && !is_full(s) && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        uint64_t row = (uint64_t)sqlite3_column_int64(statement, 0);
        if (row > w->prune_to || (row > floor && w->kept <= s->bytes + LAG_MAX)) break;
        status = take_row(w, s, statement);
    }
    if (!status && rc != SQLITE_ROW) status = file_status(rc);
    sqlite3_reset(statement);
    return status;
}

static hd_status read_slice(writer *w, slice *s) {
    uint64_t floor = w->prune_to;
    hd_status status = file_begin_read(&w->file);
    if (!status) status = file_meta_get(&w->file, "kept", &w->kept);
    if (!status) status = log_readers_oldest(w, &floor);
    if (!status) status = gather(w, s, floor);
    file_rollback(&w->file);
    return status;
}

/* ---- Deleting it ------------------------------------------------------------------------------ */

static hd_status with_floor(writer *w, file_sql which, const space_seq *at) {
    sqlite3_stmt *statement = file_sql_get(&w->file, which);
    if (!statement) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_text(statement, 1, key_bytes(at->space), (int)at->space->length, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)at->seq);
    return file_finish(&w->file, statement);
}

/* Tombstones below the floor go with the log: rows about nodes that are older than that are compared
 * without them (resume.c). */
static hd_status put_floors(writer *w, const slice *s) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < s->floors.count && !status; i++) {
        status = with_floor(w, SQL_SPACE_FLOOR, &s->floors.items[i]);
        if (!status) status = with_floor(w, SQL_TOMBSTONES_DROP, &s->floors.items[i]);
    }
    return status;
}

static hd_status delete_rows(writer *w, const slice *s) {
    sqlite3_stmt *statement = file_sql_get(&w->file, SQL_LOG_PRUNE);
    if (!statement) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)s->last);
    return file_finish(&w->file, statement);
}

/* Whether another process has deleted some of it meanwhile: what they weighed is counted there. */
static hd_status is_gone(writer *w, const slice *s, bool *out) {
    sqlite3_stmt *statement = file_sql_get(&w->file, SQL_LOG_ROW);
    if (!statement) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)s->first);
    int rc = sqlite3_step(statement);
    *out = rc == SQLITE_DONE;
    sqlite3_reset(statement);
    return file_status(rc);
}

static hd_status delete_inside(writer *w, const slice *s) {
    bool gone = false;
    hd_status status = is_gone(w, s, &gone);
    if (status || gone) return status;
    status = put_floors(w, s);
    if (!status) status = delete_rows(w, s);
    if (!status) status = file_meta_get(&w->file, "kept", &w->kept);
    if (status) return status;
    w->kept -= s->bytes < w->kept ? s->bytes : w->kept;
    return file_meta_set(&w->file, "kept", w->kept);
}

hd_status prune_slice(writer *w) {
    assert(w->prune_to);
    slice s = { 0 };
    hd_status status = read_slice(w, &s);
    if (!status && s.last) {
        status = file_begin_soft(&w->file);
        if (!status) status = delete_inside(w, &s);
        if (!status) status = file_commit(&w->file);
        if (status) file_rollback(&w->file);
    }
    if (status || !is_full(&s)) w->prune_to = 0;
    slice_fini(w, &s);
    return status;
}

static hd_status drop_dead(writer *w) {
    hd_status status = file_begin_soft(&w->file);
    if (!status) status = log_readers_drop_dead(w);
    if (!status) status = file_commit(&w->file);
    if (status) file_rollback(&w->file);
    return status;
}

/* No further than the checkpoint is now: folds that come later have their own pruning. */
hd_status prune_begin(writer *w) {
    w->prune_to = 0;
    if (w->options.keep_history) return HD_OK;
    uint64_t checkpoint = 0;
    bool dead = false;
    hd_status status = log_readers_has_dead(w, &dead);
    if (!status && dead) status = drop_dead(w);
    if (!status) status = file_meta_get(&w->file, "checkpoint", &checkpoint);
    if (!status) w->prune_to = checkpoint;
    return status;
}
