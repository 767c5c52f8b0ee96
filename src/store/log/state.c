/* state.c -- learning a file, and keeping up with it. */
#include "store/log/state.h"

#include "value/array.h"

void writer_forget(writer *w) {
    decoder_fini(&w->decoder);
    tail_fini(&w->tail);
    if (w->heads.env) heads_fini(&w->heads);
    w->heads.env = NULL;
    w->known = false;
}

/* Which of our commits were refused no file says. */
static void take_refused(writer *w, head_session *kept) {
    *kept = (head_session){ 0 };
    if (!w->heads.env || w->session_index >= w->heads.sessions.count) return;
    head_session *ours = &w->heads.sessions.items[w->session_index];
    *kept = *ours;
    ours->refused.items = NULL;
    ours->refused.count = ours->refused.capacity = 0;
}

static hd_status start_session(writer *w, const head_session *kept) {
    hd_status status = heads_session(&w->heads, w->session, &w->session_index);
    if (status) return status;
    head_session *ours = &w->heads.sessions.items[w->session_index];
    memcpy(&ours->refused, &kept->refused, sizeof ours->refused);
    ours->forgotten = kept->forgotten;
    return HD_OK;
}

static hd_status start_empty(writer *w) {
    head_session kept;
    take_refused(w, &kept);
    writer_forget(w);
    vec_clear(&w->recovered);
    vec_clear(&w->recovered_seqs);
    vec_clear(&w->last_seqs); /* spaces are numbered anew */
    tail_init(&w->tail, &w->env);
    hd_status status = heads_init(&w->heads, &w->env, w->heap);
    if (!status) {
        decoder_init(&w->decoder, &w->heads, &w->env);
        status = start_session(w, &kept);
    }
    if (status) vec_fini(&w->env, &kept.refused);
    return status;
}

/* ---- What checkpoints have written -------------------------------------------------------- */

static hd_status learn_space(writer *w, sqlite3_stmt *s) {
    struct key *name;
    const char *text = (const char *)sqlite3_column_text(s, 0);
    hd_status status =
        text ? key_make(w->heap, text, (size_t)sqlite3_column_bytes(s, 0), &name) : HD_NOMEM;
    if (status && status != HD_NOMEM)
        return file_damaged(&w->file, "space: a name that none can have");
    if (status) return status;
    uint32_t index;
    status = heads_space(&w->heads, name, &index);
    key_unref(name);
    if (status) return status;
    /* No claim of ours is older than the moment we opened, and what is below the checkpoint is
     * answered by head rows. */
    head_space *space = &w->heads.spaces.items[index];
    status = file_column_number(s, 1, &space->seq);
    space->floor = space->seq;
    if (status) return file_damaged(&w->file, "space %s: its seq is out of range", text);
    return HD_OK;
}

/* [[local seq, payload, status name], ...]: verdicts that a client may still ask for. */
static hd_status learn_verdicts(writer *w, head_session *session, const char *text, size_t length) {
    hd_value all = log_json_read(w->heap, text, length);
    if (value_is_failed(all)) return hd_value_status(all) == HD_NOMEM ? HD_NOMEM : HD_CORRUPT;
    hd_status status = HD_OK;
    for (size_t i = 0; i < hd_value_count(all) && !status; i++) {
        hd_value v = hd_value_index(all, i);
        decided d = { .local_seq = (uint64_t)hd_value_as_int(hd_value_index(v, 0), 0),
                      .payload = (uint64_t)hd_value_as_int(hd_value_index(v, 1), 0),
                      .status = HD_REJECTED,
                      .seq = (uint64_t)hd_value_as_int(hd_value_index(v, 3), 0) };
        const char *name = hd_value_as_text(hd_value_index(v, 2), "");
        for (int k = 0; k < HD_STATUS_COUNT_; k++)
            if (strcmp(hd_status_name((hd_status)k), name) == 0) d.status = (hd_status)k;
        if (!vec_push(&w->env, &session->verdicts, d)) status = HD_NOMEM;
    }
    value_unref(all);
    return status;
}

static hd_status learn_session(writer *w, sqlite3_stmt *s) {
    const char *text = (const char *)sqlite3_column_text(s, 0);
    const char *verdicts = (const char *)sqlite3_column_text(s, 4);
    uint8_t id[16];
    if (!text || !verdicts) return HD_NOMEM;
    if (!session_of_text(text, (size_t)sqlite3_column_bytes(s, 0), id))
        return file_damaged(&w->file, "session: '%.40s' is not the id of one", text);
    uint32_t index;
    hd_status status = heads_session(&w->heads, id, &index);
    if (status) return status;
    head_session *session = &w->heads.sessions.items[index];
    session->settled = (uint64_t)sqlite3_column_int64(s, 2);
    session->last = (uint64_t)sqlite3_column_int64(s, 3);
    status = learn_verdicts(w, session, verdicts, (size_t)sqlite3_column_bytes(s, 4));
    return status == HD_CORRUPT
               ? file_damaged(&w->file, "session %s: its verdicts are malformed", text)
               : status;
}

static hd_status learn_rows(writer *w, file_sql which,
                            hd_status (*learn)(writer *w, sqlite3_stmt *s)) {
    sqlite3_stmt *s = file_sql_get(&w->file, which);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) status = learn(w, s);
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

/* ---- The log ------------------------------------------------------------------------------ */

/* A commit of ours in the log: either it has been told already, or its COMMIT reported failure. */
static hd_status note_recovered(writer *w, const log_row *row, const candidate *work,
                                hd_value made) {
    recovered r = { work->sub.local_seq, row->row, w->recovered_seqs.count, work->written };
    for (uint32_t i = 0; i < work->written; i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        if (!log_commit_space(made, i, &name, &length, &seq)) return HD_CORRUPT;
        if (!vec_push(&w->env, &w->recovered_seqs, seq)) return HD_NOMEM;
    }
    return vec_push(&w->env, &w->recovered, r) ? HD_OK : HD_NOMEM;
}

/* Rows come from a file that others have written, perhaps twice, perhaps by other means: a commit is
 * taken only if it follows what is there. Its seqs are the next of their spaces, and its number is above
 * those of its session before it. */
static bool follows(writer *w, const candidate *work, hd_value made) {
    head_session *session = &w->heads.sessions.items[work->sub.session];
    if (work->sub.local_seq <= session->logged) return false;
    session->logged = work->sub.local_seq;
    for (uint32_t k = 0; k < work->written; k++) {
        const char *name;
        size_t length;
        uint64_t seq;
        if (!log_commit_space(made, k, &name, &length, &seq)) return false;
        head_space *space = &w->heads.spaces.items[work->spaces[k]];
        if (seq != space->seq + 1) return false;
        space->seq = seq;
    }
    return true;
}

static hd_status record_commit(writer *w, const log_row *row, size_t i) {
    candidate work;
    hd_value made = log_row_commit(row, i);
    hd_status status = decode_log_commit(&w->decoder, row, i, &work);
    if (!status && !follows(w, &work, made))
        status = log_row_damaged(&w->file, row->row, "it does not follow the rows before it");
    if (!status) status = admit_apply(&w->heads, &work.sub, work.seqs);
    for (uint32_t k = 0; k < work.sub.write_count && !status; k++)
        status = tail_add(&w->tail, &work.names[k], row->row, work.seqs[k]);
    if (!status && work.sub.session == w->session_index)
        status = note_recovered(w, row, &work, made);
    return status;
}

static hd_status record_row(writer *w, sqlite3_stmt *s) {
    log_row row;
    hd_status status = log_row_read(&w->file, w->heap, s, &row);
    for (size_t i = 0; i < log_row_commits(&row) && !status; i++)
        status = record_commit(w, &row, i);
    if (status == HD_CORRUPT && !w->file.damage[0])
        log_row_damaged(&w->file, row.row, "its form is wrong");
    if (!status) {
        w->row = row.row;
        w->tail.bytes += row.length;
    }
    decoder_reset(&w->decoder);
    log_row_fini(w->heap, &row);
    return status;
}

static hd_status record_rows(writer *w) {
    sqlite3_stmt *s = file_sql_get(&w->file, SQL_LOG_AFTER);
    if (!s) return file_status(sqlite3_extended_errcode(w->file.db));
    sqlite3_bind_int64(s, 1, (sqlite3_int64)w->row);
    hd_status status = HD_OK;
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        if ((uint64_t)sqlite3_column_int64(s, 0) != w->row + 1) status = HD_RESYNC;
        else status = record_row(w, s);
    }
    if (!status) status = file_status(rc);
    sqlite3_reset(s);
    return status;
}

/* Within a transaction. */
static hd_status learn_all(writer *w) {
    hd_status status = start_empty(w);
    if (!status) status = file_meta_get(&w->file, "checkpoint", &w->checkpoint);
    if (!status) status = file_meta_get(&w->file, "kept", &w->kept);
    if (!status) status = learn_rows(w, SQL_SPACES, learn_space);
    if (!status) status = learn_rows(w, SQL_SESSIONS, learn_session);
    w->row = w->forgotten = w->last_row = w->checkpoint;
    if (!status) status = record_rows(w);
    w->known = !status;
    if (status == HD_NOT_FOUND)
        return file_damaged(&w->file, "meta: 'checkpoint' or 'kept' is missing");
    if (status == HD_RESYNC)
        return log_row_damaged(&w->file, w->row + 1, "it is missing, and there are later ones");
    return status;
}

hd_status writer_learn(writer *w) {
    bool inside = file_in_transaction(&w->file);
    hd_status status = inside ? HD_OK : file_begin_read(&w->file);
    if (!status) status = learn_all(w);
    if (!inside) file_rollback(&w->file);
    return status;
}

/* Another process may have checkpointed and pruned past us. */
static hd_status follow_checkpoint(writer *w) {
    uint64_t checkpoint;
    hd_status status = file_meta_get(&w->file, "checkpoint", &checkpoint);
    if (status) return status;
    if (checkpoint > w->row) return HD_RESYNC;
    if (checkpoint != w->checkpoint) {
        w->checkpoint = checkpoint;
        tail_trim(&w->tail, checkpoint);
        if (checkpoint == w->row) w->tail.bytes = 0;
    }
    return file_meta_get(&w->file, "kept", &w->kept);
}

hd_status writer_catch_up(writer *w) {
    uint64_t before = w->row;
    hd_status status = w->known ? record_rows(w) : HD_RESYNC;
    if (!status) status = follow_checkpoint(w);
    if (status == HD_RESYNC) return writer_learn(w);
    if (status && w->row != before) w->known = false;
    if (status) w->known = false;
    return status;
}
