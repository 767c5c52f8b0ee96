/* judge.c -- admission, within one write transaction of the store.
 *
 * Each commit that is admitted changes the heads at once, since the next one in the batch may depend
 * on it. Should the transaction fail, the state is no longer what the store says; it is then learned
 * anew (state.c) before anything else is judged. */
#include "store/log/judge.h"

#include "store/log/readers.h"
#include "store/log/undo.h"
#include "value/id.h"

/* Where a row ends if there is more to store. */
#define ROW_BYTES ((size_t)32 << 20)

void outcome_free(const hd_env *env, outcome *o) {
    if (!o) return;
    vec_fini(env, &o->items);
    vec_fini(env, &o->seqs);
    passed_fini(&o->passed, env);
    env_free(env, o, sizeof *o);
}

void batch_free(const hd_env *env, batch *b) {
    if (!b) return;
    json_buffer_fini(&b->bytes);
    env_free(env, b, sizeof *b);
}

/* ---- What admission needs to know ---------------------------------------------------------- */

static doc_name name_of_head(const head *h) {
    return doc_name_of_keys(h->space, (hd_scope)h->scope, h->instance, h->id, h->meta);
}

/* Reads the next message of a batch without consuming it. False: there is none. */
static bool next_message(writer *w, const batch *b, candidate *work, size_t *used,
                         hd_status *status) {
    if (b->at == b->bytes.length) return false;
    *status = decode_message(&w->decoder, w->session_index, b->bytes.bytes + b->at,
                             b->bytes.length - b->at, work, used);
    return true;
}

/* Whether a claim cannot be judged by what is in memory: nothing is known of the document, or not how far
 * its touches go back. */
static bool is_unknown(const writer *w, const sub_claim *c) {
    assert(c->head < w->heads.heads.count);
    const head *h = &w->heads.heads.items[c->head];
    if (c->basis >= w->heads.spaces.items[h->space_index].floor) return false;
    return !(h->flags & HEAD_FETCHED) || (h->seq > c->basis && !(h->flags & HEAD_FLOOR));
}

typedef struct expectation {
    VEC(doc_name) names;
} expectation;

static bool is_wanted(const writer *w, uint32_t index) {
    return !(w->heads.heads.items[index].flags & HEAD_FETCHED);
}

static bool expect_head(writer *w, expectation *e, uint32_t index) {
    return vec_push(&w->env, &e->names, name_of_head(&w->heads.heads.items[index]));
}

static hd_status expect_message(writer *w, expectation *e, const submission *s) {
    bool ok = true;
    for (uint32_t i = 0; i < s->claim_count && ok; i++)
        if (is_unknown(w, &s->claims[i])) ok = expect_head(w, e, s->claims[i].head);
    for (uint32_t i = 0; i < s->precondition_count && ok; i++)
        if (s->preconditions[i].kind == PRE_ABSENT && is_wanted(w, s->preconditions[i].head))
            ok = expect_head(w, e, s->preconditions[i].head);
    return ok ? HD_OK : HD_NOMEM;
}

static hd_status expect_batch(writer *w, expectation *e, const batch *given) {
    batch b = *given;
    candidate work;
    size_t used;
    hd_status status = HD_OK;
    while (!status && next_message(w, &b, &work, &used, &status)) {
        if (!status) status = expect_message(w, e, &work.sub);
        b.at += used;
    }
    return status;
}

/* Tells the backend of all documents that judging the group will look up, before the first one is. Most groups look up
 * none: they do not come here, and are not decoded for it. */
static hd_status expect_all(writer *w) {
    expectation e = { 0 };
    hd_status status = HD_OK;
    if (w->expected || !w->store->ops->expect_heads) return HD_OK;
    w->expected = true;
    for (batch *b = w->todo; b && !status; b = b->next) status = expect_batch(w, &e, b);
    if (!status && e.names.count)
        status = w->store->ops->expect_heads(w->store, e.names.items, e.names.count);
    vec_fini(&w->env, &e.names);
    return status;
}

/* The highest seq that a head row of the space can have. A writer that has not read the log before this group
 * compares with what it knew then: commits of the group have raised the seqs since. */
static uint64_t highest_seq(const writer *w, uint32_t space) {
    if (w->abreast) return w->heads.spaces.items[space].seq;
    return space < w->undo.seqs.count ? w->undo.seqs.items[space] : 0;
}

/* Reads the document's head row into its head. The row has the last change before the checkpoint; of later changes the
 * head has all touches above the space's floor. */
static hd_status look_up(writer *w, uint32_t index) {
    assert(index < w->heads.heads.count);
    hd_status status = expect_all(w);
    if (status) return status;
    head *h = &w->heads.heads.items[index];
    doc_name name = name_of_head(h);
    stored_head stored;
    status = head_find(w->store, &name, &stored);
    if (status) return status;
    uint64_t seq = name.meta ? stored.meta_seq : stored.seq;
    bool ahead = seq > highest_seq(w, h->space_index);
    if (ahead && !w->abreast) return HD_RESYNC; /* another process has appended and folded */
    if (ahead)
        return head_damaged(w->store, &name, stored.doc, "its seq is above that of its space");
    bool touched_since = h->touches.count > 0;
    /* A tombstone that is there only to be told as a change (changes.c). */
    bool for_memos = !stored.has_value && !stored.guarded && !stored.meta_seq;
    if (h->seq < seq) h->seq = seq;
    /* What happened since has set the flags already. */
    if (!touched_since && stored.exists && !for_memos)
        h->flags |= stored.has_value || name.meta ? HEAD_EXISTS : HEAD_TOMBSTONE;
    if (stored.guarded) h->flags |= HEAD_GUARDED;
    h->flags |= HEAD_FETCHED;
    if (!(h->flags & HEAD_FLOOR) && seq <= w->heads.spaces.items[h->space_index].floor) {
        h->floor = seq;
        h->flags |= HEAD_FLOOR;
    }
    return HD_OK;
}

/* Documents not changed since we opened are known only to be at or below the checkpoint. */
static hd_status fetch(writer *w, uint32_t index) {
    return w->heads.heads.items[index].flags & HEAD_FETCHED ? HD_OK : look_up(w, index);
}

static hd_status fetch_claims(writer *w, const submission *s) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < s->claim_count && !status; i++)
        if (is_unknown(w, &s->claims[i])) status = look_up(w, s->claims[i].head);
    return status;
}

/* Applies to the value what the commits that this attempt has admitted do to the document: their row is not in the log
 * yet. */
static hd_status fold_batch(writer *w, const doc_name *name, hd_value *value) {
    if (!w->admitted) return HD_OK;
    json_buffer text;
    json_buffer_init(&text, &w->env);
    hd_status status = HD_NOMEM;
    if (json_buffer_grow(&text, w->commits.length + 2)) {
        text.bytes[0] = '[';
        memcpy(text.bytes + 1, w->commits.bytes, w->commits.length);
        text.bytes[w->commits.length + 1] = ']';
        hd_value all;
        status = log_commits_read(w->heap, text.bytes, w->commits.length + 2, &all);
        if (status) status = HD_NOMEM;
        for (size_t i = 0; i < hd_value_count(all) && !status; i++) {
            hd_value made = hd_value_index(all, i);
            for (size_t k = 0; k < log_commit_docs(made) && !status; k++) {
                log_doc doc;
                if (!log_commit_doc(made, k, &doc)) status = HD_CORRUPT;
                else if (doc_name_equal(&doc.name, name))
                    status = log_fold(w->heap, log_doc_op_list(&doc), value);
            }
        }
        value_unref(all);
    }
    json_buffer_fini(&text);
    return status;
}

/* The document's value after all commits that were admitted so far. Rows up to w->row are read from the store: the tail
 * also names the row under way, which is not there yet. */
static hd_status current_value(writer *w, const doc_name *name, hd_value *out) {
    assert(w->store->ops->in_transaction(w->store));
    uint64_t seq;
    hd_status status =
        document_load(w->store, w->heap, NULL, &w->tail, w->checkpoint, w->row, name, out, &seq);
    return status ? status : fold_batch(w, name, out);
}

static hd_status compare(writer *w, candidate *work, const equal_check *e) {
    /* A value is made of head rows and of the log after the checkpoint: both must be of one snapshot. */
    if (!w->abreast) return HD_RESYNC;
    sub_precondition *p = (sub_precondition *)&work->sub.preconditions[e->precondition];
    doc_name name = name_of_head(&w->heads.heads.items[p->head]);
    hd_value value = value_absent();
    uint8_t hash[32];
    hd_status status = current_value(w, &name, &value);
    hd_value at = status ? value_absent() : value_get_path(w->heap, value, e->path);
    p->holds = false; /* what is absent equals nothing */
    if (!status && value_exists(at)) {
        status = id_digest(at, hash);
        p->holds = !status && memcmp(hash, e->hash, sizeof hash) == 0;
    }
    value_unref(value);
    return status;
}

static hd_status prepare(writer *w, candidate *work) {
    hd_status status = fetch_claims(w, &work->sub);
    for (uint32_t i = 0; i < work->sub.precondition_count && !status; i++)
        if (work->sub.preconditions[i].kind == PRE_ABSENT)
            status = fetch(w, work->sub.preconditions[i].head);
    for (uint32_t i = 0; i < work->equal_count && !status; i++)
        status = compare(w, work, &work->equals[i]);
    return status;
}

/* ---- The row under way ---------------------------------------------------------------------- */

static bool append_number(json_buffer *b, uint64_t n) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    return json_buffer_add(b, digits + at, sizeof digits - at);
}

/* A footprint holds if the document has not changed since its basis. Heads forget documents that have not
 * changed for long: for a commit that was made before the row `forgotten`, it cannot be told any more. */
static void doubt_footprints(const writer *w, const candidate *work) {
    if (work->heard >= w->forgotten) return;
    for (uint32_t i = 0; i < work->sub.write_count; i++)
        if (!work->sub.writes[i].under) work->sub.writes[i].footprint = FOOTPRINT_COARSE;
}

/* "u":[documents whose exact footprints do not hold], */
static bool add_doubted(json_buffer *b, const submission *s) {
    bool ok = true, first = true;
    for (uint32_t i = 0; i < s->write_count && ok; i++) {
        if (s->writes[i].footprint == FOOTPRINT_HOLDS) continue;
        ok = json_buffer_add(b, first ? "\"u\":[" : ",", first ? 5 : 1) && append_number(b, i);
        first = false;
    }
    return ok && (first || json_buffer_add(b, "],", 2));
}

/* {"q":[seqs],"u":[...],fragment */
static hd_status add_to_row(writer *w, const candidate *work) {
    assert(work->fragment_length);
    json_buffer *b = &w->commits;
    bool ok =
        w->admitted == 0 || (json_buffer_add(b, ",", 1) && json_buffer_add(&w->sizes, ",", 1));
    size_t start = b->length;
    ok = ok && json_buffer_add(b, "{", 1);
    for (uint32_t i = 0; i < work->written && ok; i++)
        ok = (i ? json_buffer_add(b, ",", 1) : json_buffer_add(b, "\"q\":[", 5)) &&
             append_number(b, w->heads.spaces.items[work->spaces[i]].seq);
    if (work->written) ok = ok && json_buffer_add(b, "],", 2);
    ok = ok && add_doubted(b, &work->sub) &&
         json_buffer_add(b, work->fragment, work->fragment_length) &&
         append_number(&w->sizes, b->length - start);
    w->admitted++;
    return ok ? HD_OK : HD_NOMEM;
}

#define ROW_MIDDLE "],\"v\":" LOG_FORMAT_TEXT ",\"commits\":["

static hd_status store_row(writer *w) {
    assert(w->admitted && w->commits.length);
    assert(w->known);
    json_buffer *b = &w->body;
    b->length = 0;
    bool ok =
        json_buffer_add(b, "{\"sessions\":[\"", 14) && json_buffer_add(b, w->session_text, 32) &&
        json_buffer_add(b, "\"],\"sizes\":[", 12) &&
        json_buffer_add(b, w->sizes.bytes, w->sizes.length) &&
        json_buffer_add(b, ROW_MIDDLE, sizeof ROW_MIDDLE - 1) &&
        json_buffer_add(b, w->commits.bytes, w->commits.length) && json_buffer_add(b, "]}", 2);
    if (!ok) return HD_NOMEM;
    return w->store->ops->append(w->store, w->row + 1, log_hash(b->bytes, b->length),
                                 text_of_bytes(b->bytes, b->length));
}

/* ---- Verdicts -------------------------------------------------------------------------------- */

static hd_status tell(writer *w, outcome *o, uint64_t local_seq, hd_status status,
                      const uint64_t *seqs, uint32_t seq_count) {
    outcome_item item = { local_seq, status, o->seqs.count, seq_count };
    if (!vec_room(&w->env, &o->seqs, seq_count)) return HD_NOMEM;
    for (uint32_t i = 0; i < seq_count; i++) o->seqs.items[o->seqs.count++] = seqs[i];
    return vec_push(&w->env, &o->items, item) ? HD_OK : HD_NOMEM;
}

/* With the seqs that its spaces have now. */
static hd_status tell_accepted(writer *w, outcome *o, const candidate *work) {
    assert(work->written <= work->space_count);
    uint64_t *seqs = arena_alloc_array(&w->decoder.arena, work->space_count + 1, sizeof *seqs);
    if (!seqs) return HD_NOMEM;
    for (uint32_t i = 0; i < work->space_count; i++)
        seqs[i] = w->heads.spaces.items[work->spaces[i]].seq;
    return tell(w, o, work->sub.local_seq, HD_OK, seqs, work->space_count);
}

static hd_status accept(writer *w, outcome *o, const candidate *work) {
    assert(work->refusal == REFUSAL_NONE);
    doubt_footprints(w, work);
    if (w->undo.begun && undo_note(w, &work->sub)) return HD_NOMEM;
    for (uint32_t i = 0; i < work->written; i++) w->heads.spaces.items[work->spaces[i]].seq++;
    for (uint32_t i = 0; i < work->sub.write_count; i++) {
        const head *h = &w->heads.heads.items[work->sub.writes[i].head];
        work->seqs[i] = w->heads.spaces.items[h->space_index].seq;
    }
    hd_status status = admit_apply(&w->heads, &work->sub, work->seqs);
    if (!status) status = add_to_row(w, work);
    assert(status || w->heads.sessions.items[w->session_index].last == work->sub.local_seq ||
           SABOTAGED(&w->heads, SABOTAGE_MARK));
    for (uint32_t i = 0; i < work->sub.write_count && !status; i++)
        status = tail_add(&w->tail, &work->names[i], w->row + 1, work->seqs[i]);
    return status ? status : tell_accepted(w, o, work);
}

/* Refuses a commit with HD_CORRUPT: a document that it claims or compares is damaged in the store, and trying again
 * would not help. */
static hd_status refuse_on_damage(writer *w, outcome *o, const candidate *work) {
    assert(work->sub.local_seq);
    hd_error error;
    log_store_failure(w->store, HD_CORRUPT, "judging a commit", &error);
    env_log(&w->env, HD_LOG_ERROR, "%s", error.message);
    hd_status status = admit_refuse(&w->heads, &work->sub, HD_CORRUPT);
    return status ? status : tell(w, o, work->sub.local_seq, HD_CORRUPT, NULL, 0);
}

static hd_status judge(writer *w, outcome *o, candidate *work) {
    assert(w->known);
    assert(work->sub.session == w->session_index);
    hd_status status = prepare(w, work);
    if (status == HD_CORRUPT) return refuse_on_damage(w, o, work);
    if (!status) status = admit(&w->heads, &work->sub, &w->verdict);
    if (status) return status;
    hd_status fate = w->verdict.status;
    if (fate == HD_STALE && SABOTAGED(w->store, LOG_LEAVE_OUT_CLAIMS)) fate = HD_OK;
    if (fate == HD_EXISTS && SABOTAGED(w->store, LOG_LEAVE_OUT_ABSENT)) fate = HD_OK;
    if (!w->verdict.replayed) {
        if (work->refusal == REFUSAL_TOO_LONG) fate = HD_LIMIT;
        if (!fate) return accept(w, o, work);
        status = admit_refuse(&w->heads, &work->sub, fate);
    }
    if (status) return status;
    return fate ? tell(w, o, work->sub.local_seq, fate, NULL, 0) : tell_accepted(w, o, work);
}

/* A row ends before it becomes too long; the first commit of a row always fits (encoder.longest). */
static bool is_row_full(const writer *w, const candidate *work) {
    size_t most = w->store->text_max;
    if (most > ROW_BYTES) most = ROW_BYTES;
    return w->admitted && w->commits.length + work->fragment_length > most;
}

/* Nothing of what waits is decided yet. */
static void begin_judging(writer *w) {
    for (batch *b = w->todo; b; b = b->next) b->judged = b->at;
}

/* Judges the batch from `at` on. What is judged is consumed only when the attempt has succeeded (drop_judged). */
static hd_status judge_batch(writer *w, outcome *o, batch *given, bool *full) {
    assert(given->at <= given->bytes.length);
    batch b = *given;
    candidate work;
    size_t used;
    hd_status status = HD_OK;
    while (!status && !*full && next_message(w, &b, &work, &used, &status)) {
        assert(status || (used && used <= b.bytes.length - b.at));
        *full = !status && is_row_full(w, &work);
        if (*full) break;
        if (!status) status = judge(w, o, &work);
        b.at += used;
    }
    given->judged = b.at;
    return status;
}

static hd_status judge_all(writer *w, outcome *o) {
    w->commits.length = w->sizes.length = 0;
    w->admitted = 0;
    hd_status status = HD_OK;
    bool full = false;
    begin_judging(w);
    for (batch *b = w->todo; b && !full && !status; b = b->next)
        status = judge_batch(w, o, b, &full);
    return status;
}

/* ---- After a COMMIT whose result was not known ----------------------------------------------- */

static const recovered *find_recovered(const writer *w, uint64_t local_seq) {
    for (uint32_t i = 0; i < w->recovered.count; i++)
        if (w->recovered.items[i].local_seq == local_seq) return &w->recovered.items[i];
    return NULL;
}

/* Verdicts on the commits up to `last`, which the attempt has decided that seemed to fail. Those that are not in
 * its row were refused (S5: they resolve in order): `otherwise` says how. */
static hd_status tell_recovered(writer *w, outcome *o, uint64_t last, hd_status otherwise,
                                batch *given, bool *more) {
    batch b = *given;
    candidate work;
    size_t used;
    hd_status status = HD_OK;
    while (!status && next_message(w, &b, &work, &used, &status)) {
        if (!status && work.sub.local_seq > last) {
            *more = false;
            break;
        }
        const recovered *r = status ? NULL : find_recovered(w, work.sub.local_seq);
        if (r) {
            o->row = r->row;
            status = tell(w, o, r->local_seq, HD_OK, &w->recovered_seqs.items[r->first_seq],
                          r->seq_count);
        } else if (!status) {
            status = admit_refuse_late(&w->heads, &work.sub, otherwise);
            if (!status) status = tell(w, o, work.sub.local_seq, otherwise, NULL, 0);
        }
        if (!status) b.at += used;
    }
    given->judged = b.at;
    return status;
}

static hd_status tell_all_recovered(writer *w, outcome *o, uint64_t last, hd_status otherwise) {
    hd_status status = HD_OK;
    bool more = true;
    begin_judging(w);
    for (batch *b = w->todo; b && more && !status; b = b->next)
        status = tell_recovered(w, o, last, otherwise, b, &more);
    return status;
}

static uint64_t first_undecided(writer *w, hd_status *status) {
    candidate work;
    size_t used;
    if (!w->todo || !next_message(w, w->todo, &work, &used, status) || *status) return UINT64_MAX;
    return work.sub.local_seq;
}

/* Verdicts on commits that an earlier attempt has stored although it seemed to fail. Sets o->row if there are any. */
static hd_status recover(writer *w, outcome *o) {
    hd_status status = HD_OK;
    uint64_t last = w->recovered.count ? vec_last(&w->recovered).local_seq : 0;
    if (!last || last < first_undecided(w, &status) || status) return status;
    status = tell_all_recovered(w, o, last, HD_STALE);
    o->before = o->row - 1;
    return status;
}

/* It cannot be known whether the commits of the earlier attempt are stored: either verdict could be wrong, and judging
 * them again could store them twice. */
static hd_status give_up_doubted(writer *w, outcome *o) {
    assert(w->doubt && w->doubt <= w->checkpoint);
    env_log(
        &w->env, HD_LOG_WARN,
        "%s: commits have no verdict: the store failed while they were written, and the log was "
        "pruned past them",
        w->store->shown);
    o->before = o->row = w->row;
    return tell_all_recovered(w, o, w->doubted, HD_NO_VERDICT);
}

static hd_status recover_all(writer *w, outcome *o) {
    bool unknowable;
    hd_status status = writer_resolve_doubt(w, &unknowable);
    if (status) return status;
    if (unknowable) return give_up_doubted(w, o);
    /* If no writer has appended that row, the database may still be about to store ours. */
    if (w->doubt <= w->row) w->doubt = 0;
    return recover(w, o);
}

/* ---- One attempt ------------------------------------------------------------------------------ */

/* One batch is kept for its memory, which the runtime then fills again. */
static void give_back(writer *w, batch *b) {
    pthread_mutex_lock(&w->lock);
    batch *other = w->spare;
    w->spare = b;
    pthread_mutex_unlock(&w->lock);
    batch_free(&w->env, other);
}

/* The outcome has the verdicts on everything that was judged. */
static void drop_judged(writer *w) {
    for (batch *b = w->todo; b; b = b->next) b->at = b->judged;
    assert(!w->todo || w->todo->at <= w->todo->bytes.length);
    while (w->todo && w->todo->at == w->todo->bytes.length) {
        batch *b = w->todo;
        w->todo = b->next;
        b->next = NULL;
        give_back(w, b);
    }
}

/* Whether the position of our runtime is to be written along with the commits. */
static bool takes_position(writer *w) {
    pthread_mutex_lock(&w->lock);
    bool due = w->report;
    w->report = false;
    pthread_mutex_unlock(&w->lock);
    return due;
}

/* The attempt within its transaction: judges, appends the row and commits. */
static hd_status attempt_inside(writer *w, outcome *o) {
    log_store *s = w->store;
    assert(s->ops->in_transaction(s));
    /* An append behind rows that we have not read would be refused, after it has waited for the other writer's sync.
     * While others write there are such rows: others append them while we step aside (courtesy). */
    w->abreast = !s->optimistic || w->behind || !w->known || w->there > w->row || w->courtesy;
    s->answers = w->there > w->own;
    s->contended = w->courtesy || w->races;
    hd_status status = w->abreast ? writer_catch_up(w) : HD_OK;
    if (s->told_early) w->abreast = false;
    if (!status && (w->doubt || w->recovered.count)) status = recover_all(w, o);
    if (status || o->row) return status;
    o->before = w->row;
    if (s->optimistic) status = undo_begin(w);
    w->expected = false;
    if (!status) status = judge_all(w, o);
    uint64_t judged_ns = env_now_ns(&w->env);
    if (!status && w->admitted) status = store_row(w);
    if (!status && w->registered && takes_position(w)) status = log_readers_move(w);
    if (!status) status = s->ops->commit(s);
    uint64_t now = env_now_ns(&w->env);
    o->sync_ns = now > judged_ns ? now - judged_ns : 0;
    return status && w->admitted && SABOTAGED(s, LOG_LEAVE_OUT_COMMIT) ? HD_OK : status;
}

/* The group is not stored, or it is not known whether it is. */
static void attempt_failed(writer *w) {
    bool undone = w->undo.begun && w->known;
    w->behind = true;
    if (SABOTAGED(w->store, LOG_LEAVE_OUT_LEARNING)) return;
    if (undone) undo_all(w);
    else if (!w->store->optimistic) w->known = false;
}

static void attempt_stored(writer *w, outcome *o) {
    assert(!w->store->ops->in_transaction(w->store));
    assert(!o->row && o->before == w->row);
    if (w->admitted) {
        w->own = ++w->row;
        w->tail.bytes += w->body.length;
    }
    o->row = w->row;
}

/* The row that was to be appended may be in the store: the next attempt looks for it. */
static void note_doubt(writer *w) {
    assert(!w->doubt || w->doubt == w->row + 1);
    w->doubt = w->row + 1;
    w->doubted = w->heads.sessions.items[w->session_index].last;
}

hd_status writer_attempt(writer *w, outcome **out) {
    assert(!w->store->ops->in_transaction(w->store));
    assert(w->todo);
    *out = NULL;
    outcome *o = env_new0(&w->env, sizeof *o);
    if (!o) return HD_NOMEM;
    /* What is written to a file without a name is lost: it must not be acknowledged. */
    log_store *s = w->store;
    hd_status status = s->ops->is_lost(s) ? HD_NOT_FOUND : s->ops->begin_write(s, LOG_DURABLE);
    bool began = !status;
    w->admitted = 0;
    if (!status) status = attempt_inside(w, o);
    s->ops->rollback(s);
    decoder_reset(&w->decoder);
    if (status) {
        if (w->admitted && status != HD_RESYNC) note_doubt(w);
        if (began) attempt_failed(w);
        outcome_free(&w->env, o);
        return status;
    }
    assert(o->items.count); /* there was something to decide */
    w->behind = w->undo.begun = false;
    if (!o->row) attempt_stored(w, o);
    drop_judged(w);
    w->doubt = 0;
    w->decided = w->heads.sessions.items[w->session_index].last;
    vec_clear(&w->recovered);
    vec_clear(&w->recovered_seqs);
    o->passed = w->passed;
    o->checkpoint = w->checkpoint;
    passed_init(&w->passed, &w->env);
    *out = o;
    return HD_OK;
}
