/* state.c -- learning a store, and keeping up with it. */
#include "store/log/state.h"

#include "value/array.h"

void writer_forget(writer *w) {
    decoder_fini(&w->decoder);
    tail_fini(&w->tail);
    if (w->heads.env) heads_fini(&w->heads);
    w->heads.env = NULL;
    vec_fini(&w->env, &w->recovered);
    vec_fini(&w->env, &w->recovered_seqs);
    vec_fini(&w->env, &w->last_seqs);
    vec_fini(&w->env, &w->undo.writes);
    vec_fini(&w->env, &w->undo.seqs);
    w->undo.begun = false;
    w->known = false;
}

/* What was told of our own commits, taken out of the heads. The store does not say which were refused; and what an
 * attempt decided that failed, was not told. */
static void take_session(writer *w, head_session *kept) {
    *kept = (head_session){ 0 };
    if (!w->heads.env || w->session_index >= w->heads.sessions.count) return;
    head_session *ours = &w->heads.sessions.items[w->session_index];
    while (ours->verdicts.count && vec_last(&ours->verdicts).local_seq > w->decided)
        ours->verdicts.count--;
    *kept = *ours;
    assert(!kept->verdicts.count || vec_last(&kept->verdicts).local_seq <= w->decided);
    kept->last = w->decided;
    kept->logged = 0; /* the log is read anew */
    *ours = (head_session){ 0 };
}

static hd_status start_session(writer *w, head_session *kept) {
    assert(w->heads.env);
    hd_status status = heads_session(&w->heads, w->session, &w->session_index);
    if (status) return status;
    memcpy(kept->id, w->session, sizeof kept->id);
    w->heads.sessions.items[w->session_index] = *kept;
    return HD_OK;
}

static hd_status start_empty(writer *w) {
    head_session kept;
    take_session(w, &kept);
    writer_forget(w);
    tail_init(&w->tail, &w->env);
    hd_status status = heads_init(&w->heads, &w->env, w->heap);
    if (!status) {
        decoder_init(&w->decoder, &w->heads, &w->env);
        status = start_session(w, &kept);
    }
    if (!status) return HD_OK;
    vec_fini(&w->env, &kept.refused);
    vec_fini(&w->env, &kept.verdicts);
    return status;
}

/* ---- What checkpoints have written -------------------------------------------------------- */

static hd_status learn_space(void *ctx, const space_row *row, bool *stop) {
    writer *w = ctx;
    struct key *name;
    (void)stop;
    hd_status status = key_make(w->heap, row->name.bytes, row->name.length, &name);
    if (status && status != HD_NOMEM)
        return log_store_damaged(w->store, "space: a name that none can have");
    if (status) return status;
    uint32_t index;
    status = heads_space(&w->heads, name, &index);
    key_unref(name);
    if (status) return status;
    /* No claim of ours is older than the moment we opened, and what is below the checkpoint is
     * answered by head rows. */
    head_space *space = &w->heads.spaces.items[index];
    bool sane = log_number_of(row->seq, &space->seq);
    space->floor = space->seq;
    return sane ? HD_OK
                : log_store_damaged(w->store, "space %.*s: its seq is out of range",
                                    (int)row->name.length, row->name.bytes);
}

/* [[local seq, payload, status name], ...]: verdicts that a client may still ask for. */
static hd_status learn_verdicts(writer *w, head_session *session, row_text text) {
    hd_value all;
    hd_status status = log_json_of(w->heap, text, &all);
    for (size_t i = 0; i < hd_value_count(all) && !status; i++) {
        hd_value v = hd_value_index(all, i);
        decided d = { .local_seq = (uint64_t)hd_value_as_int(hd_value_index(v, 0), 0),
                      .payload = (uint64_t)hd_value_as_int(hd_value_index(v, 1), 0),
                      .status = HD_REJECTED,
                      .seq = (uint64_t)hd_value_as_int(hd_value_index(v, 3), 0) };
        const char *name = hd_value_as_text(hd_value_index(v, 2), "");
        for (int k = 0; k < HD_STATUS_COUNT_; k++)
            if (strcmp(hd_status_name((hd_status)k), name) == 0) d.status = (hd_status)k;
        /* A row that was tampered with: what does not come in order cannot be looked up. */
        uint64_t before = session->verdicts.count ? vec_last(&session->verdicts).local_seq : 0;
        if (d.local_seq <= before || d.local_seq > session->last) continue;
        if (!vec_push(&w->env, &session->verdicts, d)) status = HD_NOMEM;
    }
    value_unref(all);
    return status;
}

static hd_status learn_session(void *ctx, const session_row *row, bool *stop) {
    writer *w = ctx;
    uint8_t id[16];
    (void)stop;
    if (!session_of_text(row->id.bytes, row->id.length, id))
        return log_store_damaged(w->store, "session: '%.40s' is not the id of one", row->id.bytes);
    uint32_t index;
    hd_status status = heads_session(&w->heads, id, &index);
    if (status || index == w->session_index) return status; /* of ours we know more */
    head_session *session = &w->heads.sessions.items[index];
    session->settled = (uint64_t)row->settled;
    session->last = (uint64_t)row->last;
    status = learn_verdicts(w, session, row->verdicts);
    return status == HD_CORRUPT
               ? log_store_damaged(w->store, "session %s: its verdicts are malformed",
                                   row->id.bytes)
               : status;
}

/* ---- The log ------------------------------------------------------------------------------ */

/* A commit of ours in the log: either it has been told already, or its COMMIT reported failure. */
static hd_status note_recovered(writer *w, const log_row *row, const candidate *work,
                                hd_value made) {
    assert(work->sub.session == w->session_index);
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
    bool ours = work.sub.session == w->session_index;
    uint64_t last = w->heads.sessions.items[w->session_index].last;
    assert(status || work.sub.session < w->heads.sessions.count);
    if (!status && !follows(w, &work, made))
        status = log_row_damaged(w->store, row->row, "it does not follow the rows before it");
    if (!status) status = admit_apply(&w->heads, &work.sub, work.seqs);
    for (uint32_t k = 0; k < work.sub.write_count && !status; k++)
        status = tail_add(&w->tail, &work.names[k], row->row, work.seqs[k]);
    if (SABOTAGED(w->store, LOG_LEAVE_OUT_RECOVERY) && ours)
        w->heads.sessions.items[w->session_index].last = last;
    else if (!status && ours) status = note_recovered(w, row, &work, made);
    return status;
}

static hd_status record_row(writer *w, const log_text *text) {
    assert(w->known || !w->row || w->row >= w->checkpoint);
    assert(text->row == w->row + 1);
    log_row row;
    hd_status status = log_row_read(w->store, w->heap, text, &row);
    for (size_t i = 0; i < log_row_commits(&row) && !status; i++)
        status = record_commit(w, &row, i);
    if (status == HD_CORRUPT && !w->store->damage[0])
        log_row_damaged(w->store, row.row, "its form is wrong");
    if (status) w->known = false; /* some of its commits are applied */
    if (!status) {
        w->row = row.row;
        w->tail.bytes += row.length;
        if (w->store->optimistic && w->running) passed_add(&w->passed, &w->env, text);
    }
    decoder_reset(&w->decoder);
    log_row_fini(w->heap, &row);
    return status;
}

/* A gap: another process has pruned rows that we have not read. */
static hd_status record_next(void *ctx, const log_text *text, bool *stop) {
    writer *w = ctx;
    (void)stop;
    return text->row == w->row + 1 ? record_row(w, text) : HD_RESYNC;
}

static hd_status record_rows(writer *w) {
    return w->store->ops->read_after(w->store, w->row, record_next, w);
}

static hd_status learn_all(writer *w) {
    log_store *s = w->store;
    assert(s->ops->in_transaction(s));
    hd_status status = start_empty(w);
    if (!status) status = s->ops->get_number(s, LOG_CHECKPOINT, &w->checkpoint);
    if (!status) status = s->ops->get_number(s, LOG_KEPT, &w->kept);
    if (!status) status = s->ops->each_space(s, learn_space, w);
    if (!status) status = s->ops->each_session(s, learn_session, w);
    w->row = w->forgotten = w->last_row = w->checkpoint;
    if (!status) status = record_rows(w);
    w->known = !status;
    if (status == HD_NOT_FOUND)
        return log_store_damaged(s, "meta: 'checkpoint' or 'kept' is missing");
    if (status == HD_RESYNC)
        return log_row_damaged(s, w->row + 1, "it is missing, and there are later ones");
    return status;
}

/* Whether a row that has been folded is ours; if so its commits are noted, with the seqs that it gave them. */
static hd_status recover_folded(void *ctx, const log_text *text, bool *stop) {
    writer *w = ctx;
    log_row row;
    (void)stop;
    hd_status status = log_row_read(w->store, w->heap, text, &row);
    for (size_t i = 0; i < log_row_commits(&row) && !status; i++) {
        candidate work;
        status = decode_log_commit(&w->decoder, &row, i, &work);
        if (!status && work.sub.session == w->session_index)
            status = note_recovered(w, &row, &work, log_row_commit(&row, i));
    }
    decoder_reset(&w->decoder);
    log_row_fini(w->heap, &row);
    return status;
}

/* A row that was read from the tail before it was folded. */
static bool has_recovered(const writer *w, uint64_t row) {
    assert(row);
    for (uint32_t i = 0; i < w->recovered.count; i++)
        if (w->recovered.items[i].row == row) return true;
    return false;
}

hd_status writer_resolve_doubt(writer *w, bool *unknowable) {
    assert(w->known && w->store->ops->in_transaction(w->store));
    *unknowable = false;
    if (!w->doubt || w->doubt > w->checkpoint || has_recovered(w, w->doubt)) return HD_OK;
    vec_clear(&w->recovered);
    vec_clear(&w->recovered_seqs);
    hd_status status = w->store->ops->read_row(w->store, w->doubt, recover_folded, w);
    *unknowable = status == HD_NOT_FOUND && !SABOTAGED(w->store, LOG_LEAVE_OUT_DOUBT);
    return status == HD_NOT_FOUND ? HD_OK : status;
}

hd_status writer_learn(writer *w) {
    log_store *s = w->store;
    bool inside = s->ops->in_transaction(s);
    hd_status status = inside ? HD_OK : s->ops->begin_read(s);
    if (!status) status = learn_all(w);
    if (!inside) s->ops->rollback(s);
    return status;
}

/* Another process may have checkpointed and pruned past us. */
static hd_status follow_checkpoint(writer *w) {
    assert(w->known);
    log_store *s = w->store;
    uint64_t checkpoint;
    hd_status status = s->ops->get_number(s, LOG_CHECKPOINT, &checkpoint);
    if (status) return status;
    if (checkpoint > w->row) return HD_RESYNC;
    if (checkpoint != w->checkpoint) {
        /* Rows are taken as equally long: the lengths of those that are left are not known. */
        uint64_t rows = w->row - w->checkpoint, left = w->row - checkpoint;
        w->checkpoint = checkpoint;
        tail_trim(&w->tail, checkpoint);
        w->tail.bytes = rows > left ? w->tail.bytes / rows * left : w->tail.bytes;
    }
    return s->ops->get_number(s, LOG_KEPT, &w->kept);
}

hd_status writer_catch_up(writer *w) {
    assert(w->store->ops->in_transaction(w->store));
    hd_status status = w->known ? record_rows(w) : HD_RESYNC;
    if (!status) status = follow_checkpoint(w);
    return status == HD_RESYNC ? writer_learn(w) : status;
}

hd_status writer_begin_housework(writer *w) {
    assert(!w->store->ops->in_transaction(w->store));
    return w->store->ops->begin_write(w->store, LOG_HOUSEWORK);
}

hd_status writer_begin_soft(writer *w) {
    assert(!w->store->ops->in_transaction(w->store));
    return w->store->ops->begin_write(w->store, LOG_SOFT);
}

hd_status writer_end(writer *w, hd_status status) {
    if (!status) status = w->store->ops->commit(w->store);
    if (status) w->store->ops->rollback(w->store);
    return status;
}
