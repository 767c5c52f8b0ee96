/* client.c -- from rows of the log to frames for the replica. */
#include "store/log/client.h"

#include "store/log/memo_fold.h"
#include "value/diff.h"
#include "value/array.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"

/* ---- Names ------------------------------------------------------------------------------------ */

doc_name client_name(const client *c, place_id doc) {
    const places *ps = &c->r->places;
    const place *p = place_at(ps, doc);
    const doc_home *h = &ps->homes.items[p->doc.home];
    return doc_name_of_keys(h->space, h->scope, h->instance, p->doc.id, h->meta);
}

hd_status client_space_at(client *c, struct key *name, log_space **out) {
    return log_spaces_at(&c->spaces, c->env, name, out);
}

static hd_status space_named(client *c, const char *text, size_t length, log_space **out) {
    return log_spaces_named(&c->spaces, c->env, c->r->heap, text, length, out);
}

/* The home that a document of the log lives in, if this runtime has ever had to do with it. Another
 * principal's instance is none of ours. */
static bool find_home(const client *c, const doc_name *n, uint32_t *out) {
    const places *ps = &c->r->places;
    const struct key *space = key_find(c->r->heap, n->space, n->space_length);
    const struct key *instance =
        n->scope == HD_SCOPE_SPACE ? NULL : key_find(c->r->heap, n->instance, n->instance_length);
    if (!space || (n->scope != HD_SCOPE_SPACE && !instance)) return false;
    for (uint32_t i = 0; i < ps->homes.count; i++) {
        const doc_home *h = &ps->homes.items[i];
        if (h->space == space && h->scope == n->scope && h->instance == instance &&
            h->meta == n->meta) {
            *out = i;
            return true;
        }
    }
    return false;
}

place_id client_find(const client *c, const doc_name *n) {
    assert(n->scope != HD_SCOPE_HERE);
    uint32_t home;
    const struct key *id = key_find(c->r->heap, n->id, n->id_length);
    return id && find_home(c, n, &home) ? places_find_doc(&c->r->places, home, id) : 0;
}

/* The same, made if need be. Only for documents of a followed space. */
static hd_status make_place(client *c, const doc_name *n, place_id *out) {
    assert(n->scope == HD_SCOPE_SPACE && !n->meta);
    struct key *space, *id = NULL;
    uint32_t home;
    hd_status status = key_make(c->r->heap, n->space, n->space_length, &space);
    if (!status) status = key_make(c->r->heap, n->id, n->id_length, &id);
    if (!status) status = places_home(&c->r->places, space, HD_SCOPE_SPACE, NULL, n->meta, &home);
    if (!status) status = places_doc(&c->r->places, home, id, out);
    key_unref(space);
    key_unref(id);
    return status;
}

/* ---- Reading rows ------------------------------------------------------------------------------ */

/* The memos of a commit; the spaces stand where it left them. */
static hd_status note_extra(client *c, hd_value extra, uint64_t row) {
    assert(row);
    memo_point now = log_spaces_point(&c->spaces);
    return value_exists(extra) ? memos_apply(&c->memos, extra, &now, row) : HD_OK;
}

/* A row is told again from the start if it failed half way: it has moved some of the spaces already. */
static bool follows_space(const client *c, const log_row *row, const log_space *space,
                          uint64_t seq) {
    return seq == space->seq + 1 || (row->row == c->half_told && seq <= space->seq);
}

static hd_status note_spaces(client *c, const log_row *row, hd_value made) {
    assert(row->row > c->position);
    for (size_t i = 0; i < log_commit_spaces(made); i++) {
        const char *name;
        size_t length;
        uint64_t seq;
        log_space *space;
        if (!log_commit_space(made, i, &name, &length, &seq)) return HD_CORRUPT;
        hd_status status = space_named(c, name, length, &space);
        if (status) return status;
        if (!follows_space(c, row, space, seq))
            return log_row_damaged(c->store, row->row, "it does not follow the rows before it");
        if (space->seq < seq) space->seq = seq;
    }
    return HD_OK;
}

/* Remembers where documents changed, how far the spaces are, and memos. */
static hd_status note_commit(client *c, const log_row *row, hd_value made) {
    hd_status noted = note_spaces(c, row, made);
    if (noted) return noted;
    for (size_t i = 0; i < log_commit_docs(made); i++) {
        log_doc doc;
        if (!log_commit_doc(made, i, &doc)) return HD_CORRUPT;
        hd_status status = tail_add(&c->tail, &doc.name, row->row, doc.seq);
        if (status) return status;
    }
    return note_extra(c, log_commit_extra(made), row->row);
}

static bool is_ours(const client *c, const log_row *row) {
    size_t length;
    const char *session =
        hd_value_text(array_get(object_get_bytes(row->body, "sessions", 8), 0), &length);
    return session && strcmp(session, c->session_text) == 0;
}

/* ---- Frames ------------------------------------------------------------------------------------ */

static bool follows(const client *c, const doc_name *n) {
    if (n->scope != HD_SCOPE_SPACE || n->meta) return false;
    for (uint32_t i = 0; i < c->spaces.items.count; i++) {
        const log_space *s = &c->spaces.items.items[i];
        if (s->followed && s->name->length == n->space_length &&
            memcmp(key_bytes(s->name), n->space, n->space_length) == 0)
            return true;
    }
    return false;
}

/* Loads followed documents that are met for the first time, as they were before this commit. Where
 * a checkpoint has already folded the commit in, that is past: the document then appears with it. */
static hd_status meet_docs(client *c, hd_value made) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_commit_docs(made) && !status; i++) {
        log_doc doc;
        place_id at;
        if (!log_commit_doc(made, i, &doc)) return HD_CORRUPT;
        bool followed = follows(c, &doc.name);
        at = followed ? 0 : client_find(c, &doc.name);
        if (!followed && !(at && replica_awaits(c->r, at))) continue;
        status = client_snapshot(c); /* where the checkpoint is decides below */
        if (!status && followed) status = make_place(c, &doc.name, &at);
        if (!status && c->checkpoint <= c->position) status = replica_load(c->r, at);
    }
    return status;
}

static hd_status frame_ops(client *c, place_id at, const log_doc *doc) {
    assert(c->telling && place_is_doc(&c->r->places, at));
    hd_heap *heap = c->r->heap;
    hd_value ops = log_doc_op_list(doc);
    for (size_t i = 0; i < hd_value_count(ops); i++) {
        log_op o;
        hd_status status = log_ops_at(heap, ops, i, &o);
        if (status) return status;
        status = replica_frame_op(c->r, at, doc->seq, o.kind, o.path, o.value, o.keep);
        path_unref(heap, o.path);
        if (status) return status;
    }
    return HD_OK;
}

/* The document as the file has it now, in place of operations on a state that is gone. */
static hd_status frame_state(client *c, place_id at, const doc_name *name) {
    hd_value value = value_absent();
    uint64_t seq;
    hd_status status = client_snapshot(c);
    if (!status)
        status = document_load(c->store, c->r->heap, &c->parsed, &c->tail, c->checkpoint,
                               UINT64_MAX, name, &value, &seq);
    if (!status) status = replica_frame_state(c->r, at, seq, value);
    value_unref(value);
    return status;
}

/* Whether the commit writes over an output: it is one of computations, or removes the document (0230, 0300). */
static bool overwrites(const client *c, const log_doc *doc) {
    hd_value ops = log_doc_op_list(doc);
    log_op last;
    if (c->r->frame_class == HD_COMMIT_DERIVED || !hd_value_count(ops)) return true;
    if (log_ops_at(c->r->heap, ops, hd_value_count(ops) - 1, &last)) return true;
    path_unref(c->r->heap, last.path);
    return last.kind == OP_DELETE;
}

static hd_status frame_doc(client *c, const log_doc *doc) {
    place_id at = client_find(c, &doc->name);
    if (!at) return HD_OK;
    const place *p = place_at(&c->r->places, at);
    if (!(p->doc.flags & DOC_KNOWN)) {
        if (replica_awaits(c->r, at)) replica_touch(c->r, at, overwrites(c, doc));
        if (!follows(c, &doc->name)) return HD_OK;
        /* What it was before is past; that does not matter where nothing of it is left. */
        return log_ops_start_anew(log_doc_op_list(doc)) ? frame_ops(c, at, doc)
                                                        : frame_state(c, at, &doc->name);
    }
    if (p->doc.seq >= doc->seq) return HD_OK; /* loaded with this in it */
    return frame_ops(c, at, doc);
}

/* What is met is loaded as it was before the commit; a listener that hears of it and then loads
 * another document must find that as it is after the commit. */
static hd_status frame_commit(client *c, const log_row *row, hd_value made) {
    assert(!c->telling);
    hd_status status = meet_docs(c, made);
    if (!status) status = note_commit(c, row, made);
    if (status) return status;
    c->telling = row->row;
    replica_frame_begin(c->r, log_commit_class(made));
    for (size_t i = 0; i < log_commit_docs(made) && !status; i++) {
        log_doc doc;
        status = log_commit_doc(made, i, &doc) ? frame_doc(c, &doc) : HD_CORRUPT;
    }
    if (!status) status = replica_frame_end(c->r);
    hd_value extra = status ? value_absent() : log_commit_extra(made);
    if (value_exists(extra)) replica_frame_observed(c->r, extra);
    c->telling = 0;
    return status;
}

/* A row of another runtime. If it fails half way it is told again from the start: frames that were
 * applied are recognised by their seqs. */
static hd_status tell_row(client *c, const log_row *row) {
    assert(row->row == c->position + 1);
    hd_status status = HD_OK;
    for (size_t i = 0; i < log_row_commits(row) && !status; i++)
        status = frame_commit(c, row, log_row_commit(row, i));
    return status;
}

/* ---- Gaps --------------------------------------------------------------------------------------- */

static hd_status learn_space(void *ctx, const space_row *row, bool *stop) {
    log_space *space;
    (void)stop;
    hd_status status = space_named(ctx, row->name.bytes, row->name.length, &space);
    if (status) return status;
    return log_number_of(row->seq, &space->seq) ? HD_OK : HD_CORRUPT;
}

static hd_status learn_row(void *ctx, const log_text *text, bool *stop) {
    client *c = ctx;
    log_row row;
    (void)stop;
    hd_status status = log_row_read(c->store, c->r->heap, text, &row);
    if (!status && row.row != c->position + 1)
        status = log_row_damaged(c->store, row.row, "the row before it is missing");
    for (size_t i = 0; i < log_row_commits(&row) && !status; i++)
        status = note_commit(c, &row, log_row_commit(&row, i));
    if (!status) client_stand_at(c, row.row);
    log_row_fini(c->r->heap, &row);
    return status;
}

/* Everything the snapshot says, without telling the replica. */
static hd_status learn(client *c) {
    assert(c->store->ops->in_transaction(c->store));
    log_store *s = c->store;
    row_cache_fini(&c->parsed, c->r->heap);
    tail_fini(&c->tail);
    tail_init(&c->tail, c->env);
    memos_fini(&c->memos);
    memos_init(&c->memos, c->env, c->r->heap, true);
    for (uint32_t i = 0; i < c->spaces.items.count; i++) c->spaces.items.items[i].seq = 0;
    hd_status status = s->ops->each_space(s, learn_space, c);
    client_stand_at(c, c->checkpoint);
    return status ? status : s->ops->read_after(s, c->checkpoint, learn_row, c);
}

static hd_status resync_doc(client *c, place_id at) {
    const place *p = place_at(&c->r->places, at);
    if (p->root == at && replica_awaits(c->r, at)) replica_touch(c->r, at, true);
    if (p->root != at || (p->doc.flags & (DOC_KNOWN | DOC_VOLATILE)) != DOC_KNOWN) return HD_OK;
    doc_name name = client_name(c, at);
    hd_value value;
    uint64_t seq;
    hd_status status = document_load(c->store, c->r->heap, &c->parsed, &c->tail, c->checkpoint,
                                     UINT64_MAX, &name, &value, &seq);
    log_space *space;
    if (!status) status = space_named(c, name.space, name.space_length, &space);
    /* Without a row it was deleted at some time: that it is absent holds as of now. */
    if (!status && !value_exists(value) && seq < space->seq) seq = space->seq;
    if (!status && seq > place_at(&c->r->places, at)->doc.seq)
        status = replica_frame_state(c->r, at, seq, value);
    value_unref(value);
    return status;
}

/* A document of a followed space that this runtime has not met: it may have been made by the rows that are gone. */
static hd_status meet_anew(client *c, const doc_name *name) {
    place_id at;
    if (!follows(c, name)) return HD_OK;
    hd_status status = make_place(c, name, &at);
    if (status || (place_at(&c->r->places, at)->doc.flags & DOC_KNOWN)) return status;
    return frame_state(c, at, name);
}

static hd_status meet_head(void *ctx, const head_item *item, bool *stop) {
    (void)stop;
    return meet_anew(ctx, &item->name);
}

/* Documents that have changed after `seq`: in the heads, and in the log behind the checkpoint. */
static hd_status meet_changed(client *c, const log_space *space, uint64_t seq) {
    log_store *s = c->store;
    hd_status status = s->ops->heads_since(s, text_of_key(space->name), seq, false, meet_head, c);
    for (uint32_t i = 0; i < c->tail.docs.count && !status; i++) {
        const doc_name *name = &c->tail.docs.items[i].name;
        if (doc_name_in_space(name, space->name)) status = meet_anew(c, name);
    }
    return status;
}

/* Where the followed spaces stood. They are as many as before: none is let go of. */
typedef VEC(uint64_t) space_seqs;

static hd_status note_seqs(const client *c, space_seqs *out) {
    for (uint32_t i = 0; i < c->spaces.items.count; i++)
        if (!vec_push(c->env, out, c->spaces.items.items[i].seq)) return HD_NOMEM;
    return HD_OK;
}

static hd_status meet_all(client *c, const space_seqs *before) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < before->count && !status; i++) {
        log_space space = c->spaces.items.items[i];
        if (space.followed) status = meet_changed(c, &space, before->items[i]);
    }
    return status;
}

static hd_status resync_docs(client *c, const space_seqs *before) {
    hd_status status = HD_OK;
    place_id count = c->r->places.count;
    for (place_id at = 1; at < count && !status; at++) status = resync_doc(c, at);
    return status ? status : meet_all(c, before);
}

/* Rows that we have not seen are gone: what changed meanwhile is found by looking at every document
 * we hold, and announced as one change. */
static hd_status reload(client *c, const space_seqs *before) {
    hd_status status = learn(c);
    if (status) return status;
    env_log(c->env, HD_LOG_INFO, "%s: the log was pruned past us, reading anew", c->store->shown);
    replica_frame_begin(c->r, HD_COMMIT_SOURCE);
    replica_frame_of_many(c->r);
    if (!SABOTAGED(c->store, LOG_LEAVE_OUT_RELOAD)) status = resync_docs(c, before);
    if (!status) status = replica_frame_absorb(c->r);
    return status ? status : replica_frame_end(c->r);
}

static hd_status resync(client *c) {
    assert(c->store->ops->in_transaction(c->store));
    space_seqs before = { 0 };
    hd_status status = c->torn ? HD_OK : note_seqs(c, &before);
    /* After a failure it is not known any more where the spaces stood: everything is met. */
    for (uint32_t i = 0; c->torn && i < c->spaces.items.count && !status; i++)
        status = vec_push(c->env, &before, 0) ? HD_OK : HD_NOMEM;
    c->torn = true;
    if (!status) status = reload(c, &before);
    c->torn = status && !SABOTAGED(c->store, LOG_LEAVE_OUT_TORN);
    vec_fini(c->env, &before);
    return status;
}

/* ---- Moving on ----------------------------------------------------------------------------------- */

void client_release(client *c) {
    if (!c->store) return; /* not open yet */
    c->store->ops->rollback(c->store);
    assert(!c->store->ops->in_transaction(c->store));
    c->r->holding = false;
}

/* The transaction of a snapshot, if none is open. */
static hd_status begin(client *c) {
    log_store *s = c->store;
    if (s->ops->in_transaction(s)) return HD_OK;
    c->has_checkpoint = false;
    c->r->holding = true;
    hd_status status = s->ops->begin_read(s);
    if (status) client_release(c);
    return status;
}

/* Reads where the checkpoint is in the snapshot, once for each transaction. */
static hd_status read_checkpoint(client *c) {
    if (c->has_checkpoint) return HD_OK;
    hd_status status = c->store->ops->get_number(c->store, LOG_CHECKPOINT, &c->checkpoint);
    c->has_checkpoint = !status;
    return status == HD_NOT_FOUND ? log_store_damaged(c->store, "meta: 'checkpoint' is missing")
                                  : status;
}

hd_status client_snapshot(client *c) {
    hd_status status = begin(c);
    if (status) return status;
    status = read_checkpoint(c);
    if (status) client_release(c);
    return status;
}

/* The rows up to `until` that are told in one go. */
typedef struct advance {
    client *c;
    uint64_t until;
    bool own; /* it ended before a row of our own */
    bool gap; /* it ended where a row is missing */
} advance;

static hd_status advance_row(advance *g, const log_text *text) {
    client *c = g->c;
    log_row row;
    hd_status status = log_row_read(c->store, c->r->heap, text, &row);
    bool ours = !status && is_ours(c, &row);
    if (ours) {
        g->own = g->until == UINT64_MAX;
        for (size_t i = 0; i < log_row_commits(&row) && !status && !g->own; i++)
            status = note_commit(c, &row, log_row_commit(&row, i));
    } else if (!status) status = tell_row(c, &row);
    if (!status && !g->own) client_stand_at(c, row.row);
    if (status) c->half_told = row.row;
    if (status && SABOTAGED(c->store, LOG_LEAVE_OUT_ORDER)) client_stand_at(c, row.row);
    log_row_fini(c->r->heap, &row);
    return status;
}

static hd_status advance_next(void *ctx, const log_text *text, bool *stop) {
    advance *g = ctx;
    g->gap = text->row != g->c->position + 1;
    hd_status status = read_checkpoint(g->c);
    if (!status && !g->gap) status = advance_row(g, text);
    *stop = g->gap || g->own || g->c->position >= g->until;
    return status;
}

static hd_status advance_rows(client *c, uint64_t until, bool *gap) {
    advance g = { .c = c, .until = until };
    if (c->position >= until) return HD_OK;
    /* Postgres sends the rows and the checkpoint in one answer, so the checkpoint is not asked for before. */
    hd_status status = c->store->ops->read_after(c->store, c->position, advance_next, &g);
    if (!status) status = read_checkpoint(c);
    /* The log ends before the checkpoint: the rows in between have been pruned. */
    bool short_of = c->position < until && !g.own && c->checkpoint > c->position;
    *gap = !status && (g.gap || short_of) && !SABOTAGED(c->store, LOG_LEAVE_OUT_GAP);
    return status;
}

static void note_checkpoint(client *c) {
    if (c->checkpoint > c->position) return;
    client_trim(c, c->checkpoint);
    replica_caught_up(c->r);
}

hd_status client_advance(client *c, uint64_t until) {
    assert(!c->telling);
    client_release(c);
    hd_status status = begin(c);
    if (status) return status;
    c->gap = c->torn;
    if (!c->gap) status = advance_rows(c, until, &c->gap);
    if (!status) status = read_checkpoint(c);
    if (!status && !c->gap) note_checkpoint(c);
    return status;
}

hd_status client_advance_passed(client *c, const passed_rows *rows, uint64_t until,
                                uint64_t checkpoint) {
    assert(!c->telling && !c->torn && passed_has(rows, c->position, until));
    advance g = { .c = c, .until = until };
    hd_status status = HD_OK;
    client_release(c);
    c->gap = false;
    while (c->position < until && !status) {
        log_text text = passed_get(rows, c->position + 1);
        status = advance_row(&g, &text);
    }
    if (c->checkpoint < checkpoint) c->checkpoint = checkpoint;
    if (!status) note_checkpoint(c);
    return status;
}

hd_status client_reload(client *c) {
    assert(c->gap && !c->telling);
    hd_status status = resync(c);
    c->gap = c->torn;
    if (!status) note_checkpoint(c);
    return status;
}

hd_status client_note_own(client *c, const commit *made, uint64_t row) {
    assert(row);
    assert(made->state == COMMIT_SENT);
    for (uint32_t i = 0; i < made->seqs.count; i++) {
        log_space *space;
        hd_status status = client_space_at(c, made->seqs.items[i].space, &space);
        if (status) return status;
        if (space->seq < made->seqs.items[i].seq) space->seq = made->seqs.items[i].seq;
    }
    const char *last = NULL; /* documents of one space stand together */
    log_space *space = NULL;
    for (uint32_t i = 0; i < made->writes.count; i++) {
        doc_name name = client_name(c, made->writes.items[i].doc);
        hd_status status = HD_OK;
        if (name.space != last) status = space_named(c, name.space, name.space_length, &space);
        last = name.space;
        if (!status) status = tail_add(&c->tail, &name, row, space->seq);
        if (status) return status;
    }
    return note_extra(c, made->extra, row);
}

/* As of all commits that were noted: that is where the spaces stand, in the middle of a row, too, if the row failed
 * half way. */
hd_status client_document(client *c, const doc_name *name, hd_value *out, uint64_t *seq) {
    assert(c->store->ops->in_transaction(c->store));
    return document_load(c->store, c->r->heap, &c->parsed, &c->tail, c->checkpoint, UINT64_MAX,
                         name, out, seq);
}

hd_status client_metadata(client *c, place_id doc, hd_value *out) {
    assert(place_is_doc(&c->r->places, doc));
    uint64_t seq;
    *out = value_absent();
    hd_status status = client_snapshot(c);
    if (status) return status;
    doc_name name = client_name(c, doc);
    name.meta = true;
    return client_document(c, &name, out, &seq);
}

/* The seq that the heads of a space include; 0: it has none. */
static hd_status folded_seq(client *c, const struct key *space, uint64_t *out) {
    uint64_t floor;
    return c->store->ops->get_space(c->store, text_of_key(space), out, &floor);
}

/* The document's own seq, 0 where it has no row, becomes the one at which it is known to hold. Where
 * another process has folded rows that we have not told, it may be newer than they let us be: that it
 * has no row, too, holds as of the fold, since what was there may have been deleted on the way. */
static hd_status date(client *c, const log_space *space, loaded *out) {
    assert(c->store->ops->in_transaction(c->store));
    hd_status status = HD_OK;
    uint64_t folded = 0;
    bool past = c->checkpoint > (c->telling ? c->telling : c->position);
    if ((!out->seq && past) || out->seq > space->seq) status = folded_seq(c, space->name, &folded);
    if (!status && out->seq > space->seq && out->seq > folded)
        status = log_store_damaged(
            c->store, "a document of space %s has seq %llu, its heads are at %llu",
            key_bytes(space->name), (unsigned long long)out->seq, (unsigned long long)folded);
    if (!out->seq) out->seq = folded;
    out->ahead = out->seq > space->seq;
    if (!out->ahead) out->seq = space->seq;
    return status;
}

hd_status client_load(client *c, place_id doc, loaded *out) {
    assert(place_is_doc(&c->r->places, doc));
    *out = (loaded){ 0 };
    hd_status status = client_snapshot(c);
    if (status) return status;
    doc_name name = client_name(c, doc);
    log_space *space;
    status = client_space_at(
        c, c->r->places.homes.items[place_at(&c->r->places, doc)->doc.home].space, &space);
    if (!status) status = client_document(c, &name, &out->value, &out->seq);
    if (status) return status;
    out->present = value_exists(out->value);
    status = date(c, space, out);
    if (status) value_unref(out->value);
    if (status) *out = (loaded){ 0 };
    return status;
}

/* The store's secret keys the hashes of values, which memos may contain (hash.h). A store without one, a file of an
 * old format that is opened read-only, has no memos either. */
static hd_status take_secret(client *c) {
    uint8_t secret[64];
    size_t length = 0;
    hd_status status = c->store->ops->get_secret(c->store, secret, &length);
    if (!status && length) heap_take_secret(c->r->heap, secret, length);
    return status;
}

hd_status client_open(client *c, log_store *store, replica *r) {
    assert(!c->store && store);
    c->store = store;
    c->env = &store->env;
    c->r = r;
    session_text(r->session, c->session_text);
    tail_init(&c->tail, c->env);
    memos_init(&c->memos, c->env, r->heap, true);
    hd_status status = client_snapshot(c);
    if (!status) status = take_secret(c);
    if (!status) status = learn(c);
    client_release(c);
    return status;
}

void client_close(client *c) {
    if (!c->store) return;
    client_release(c);
    row_cache_fini(&c->parsed, c->r->heap);
    tail_fini(&c->tail);
    memos_fini(&c->memos);
    log_spaces_fini(&c->spaces, c->env);
    c->store->ops->close(c->store);
    c->store = NULL;
}

/* ---- Invariants ----------------------------------------------------------------------------------- */

/* The tail ends where we stand, and no document is newer there than its space. Rows that were told in part are in it,
 * too, and so are those of a resync that failed. */
static void check_tail(const client *c, uint64_t noted) {
    tail_check(&c->tail);
    uint64_t end = c->half_told > c->position ? c->half_told : c->position;
    if (noted > end) end = noted;
    for (uint32_t i = 0; i < c->tail.docs.count && !c->torn; i++) {
        const tail_doc *d = &c->tail.docs.items[i];
        assert(vec_last(&d->at).row <= end);
        (void)d;
    }
    (void)end;
}

void client_check(const client *c, uint64_t noted) {
    check_tail(c, noted);
    memos_check(&c->memos);
    assert(!c->telling && c->position == c->r->heard);
    assert(c->r->holding || !c->store->ops->in_transaction(c->store));
    for (uint32_t i = 0; i < c->spaces.items.count; i++) {
        assert(c->spaces.items.items[i].seq <= SEQ_MAX);
        for (uint32_t k = 0; k < i; k++)
            assert(c->spaces.items.items[k].name != c->spaces.items.items[i].name);
    }
}
