/* memory.c -- the memory authority. */
#define _GNU_SOURCE
#include "store/memory/memory.h"

#include "store/memory/state.h"

#include "base/env.h"
#include "base/hint.h"
#include "store/runtime.h"
#include "value/key.h"
#include "value/id.h"
#include <stdlib.h>
#include <string.h>

/* ---- places and heads */

/* The head of a document, if it has one. What was never stored needs none: that is most outputs of
 * computations. */
bool memory_find_head(const memory_authority *ma, place_id doc, uint32_t *out) {
    if (doc < ma->head_of.count && ma->head_of.items[doc]) {
        *out = ma->head_of.items[doc] - 1;
        return true;
    }
    if (ma->sole && !ma->apart) return false;
    const places *ps = &ma->base.replica->places;
    const place *p = place_at(ps, doc);
    const doc_home *h = &ps->homes.items[p->doc.home];
    return heads_find(&ma->m->h, h->space, h->scope, h->instance, h->meta, p->doc.id, out);
}

/* What the replica alone has known until now. A head that is there already is up to date. */
static void fill_head(const memory_authority *ma, place_id doc, head *d) {
    const replica *r = ma->base.replica;
    const place *p = place_at(&r->places, doc);
    if (d->flags & (HEAD_EXISTS | HEAD_TOMBSTONE)) return;
    if (!p->doc.seq || (p->doc.flags & DOC_VOLATILE)) return;
    d->seq = d->floor = p->doc.seq;
    d->value = value_ref(replica_confirmed(r, doc));
    d->flags = value_is_absent(d->value) ? HEAD_TOMBSTONE : HEAD_EXISTS;
}

/* The same, made if missing. */
static hd_status head_of(memory_authority *ma, place_id doc, uint32_t *out) {
    assert(place_is_doc(&ma->base.replica->places, doc));
    const replica *r = ma->base.replica;
    if (doc < ma->head_of.count && ma->head_of.items[doc]) {
        *out = ma->head_of.items[doc] - 1;
        return HD_OK;
    }
    while (ma->head_of.count <= doc)
        if (!vec_push(&ma->m->env, &ma->head_of, 0)) return HD_NOMEM;
    const place *p = place_at(&r->places, doc);
    const doc_home *h = &r->places.homes.items[p->doc.home];
    hd_status status =
        heads_intern(&ma->m->h, h->space, h->scope, h->instance, h->meta, p->doc.id, out);
    if (status) return status;
    ma->head_of.items[doc] = *out + 1;
    if (ma->sole) fill_head(ma, doc, &ma->m->h.heads.items[*out]);
    return HD_OK;
}

/* Finds the space of a home, so that confirming needs no search. */
SELDOM static hd_status prepare_space(memory_authority *ma, uint32_t home) {
    assert(home && home < ma->base.replica->places.homes.count);
    struct key *name = ma->base.replica->places.homes.items[home].space;
    while (ma->space_of.count <= home)
        if (!vec_push(&ma->m->env, &ma->space_of, 0)) return HD_NOMEM;
    uint32_t index;
    hd_status status = heads_space(&ma->m->h, name, &index);
    if (!status) ma->space_of.items[home] = index + 1;
    return status;
}

/* ---- from commit to submission */

static hd_status add_claims(memory_authority *ma, const commit *c) {
    hd_memory *m = ma->m;
    const places *ps = &ma->base.replica->places;
    for (uint32_t i = 0; i < c->claims.count; i++) {
        const claim *cl = &c->claims.items[i];
        place_id id = cl->key & KEY_PLACE;
        uint32_t index;
        hd_status status = head_of(ma, place_at(ps, id)->root, &index);
        if (status) return status;
        sub_claim sub = { .head = index,
                          .path = place_path(ps, id),
                          .shape = cl->key & KEY_SHAPE,
                          .strict = cl->strict,
                          .all = cl->all,
                          .basis = cl->basis,
                          .first = cl->first,
                          .last = cl->last };
        if (!vec_push(&m->env, &m->claims, sub)) return HD_NOMEM;
    }
    return HD_OK;
}

/* Operations stand in the order of the footprints: *next is the first of this document. */
static hd_status add_op_paths(hd_memory *m, const commit *c, place_id doc, uint32_t *next,
                              bool *deletes) {
    assert(*next <= c->ops.count);
    for (; *next < c->ops.count && c->ops.items[*next].doc == doc; ++*next) {
        const op *o = &c->ops.items[*next];
        bool whole = op_starts_anew(o->kind, o->path);
        touch t = { o->path, (uint8_t)(TOUCH_KEYS | (whole ? TOUCH_WHOLE : 0)) };
        *deletes = o->kind == OP_DELETE || (*deletes && o->kind == OP_INCREMENT);
        if (!vec_push(&m->env, &m->op_paths, t)) return HD_NOMEM;
    }
    return HD_OK;
}

static hd_status add_writes(memory_authority *ma, const commit *c) {
    hd_memory *m = ma->m;
    for (uint32_t i = 0, next = 0; i < c->writes.count; i++) {
        const doc_write *f = &c->writes.items[i];
        sub_write w = { .basis = f->basis,
                        .under = f->under,
                        .create = f->created,
                        /* By operations: they are what is taken anyway. */
                        .footprint = f->exact && !f->by_ops ? FOOTPRINT_GIVEN : FOOTPRINT_COARSE };
        uint32_t first = m->op_paths.count;
        hd_status status = head_of(ma, f->doc, &w.head);
        if (!status) status = add_op_paths(m, c, f->doc, &next, &w.delete_);
        if (status) return status;
        assert(m->op_paths.count > first); /* every write has an operation */
        w.anew = m->op_paths.items[first].flags & TOUCH_WHOLE;
        w.op_count = m->op_paths.count - first;
        w.exact_count = f->touch_count;
        w.exact = f->touch_count ? &c->touches.items[f->first_touch] : NULL;
        if (!vec_push(&m->env, &m->writes, w)) return HD_NOMEM;
    }
    assert(m->op_paths.count == c->ops.count);
    /* The vector has stopped moving. */
    uint32_t at = 0;
    for (uint32_t i = 0; i < m->writes.count; i++) {
        m->writes.items[i].ops = &m->op_paths.items[at];
        at += m->writes.items[i].op_count;
    }
    return HD_OK;
}

static bool value_holds(const hd_memory *m, uint32_t index, hd_path path, const uint8_t hash[32]) {
    assert(index < m->h.heads.count);
    uint8_t now[ID_DIGEST_SIZE];
    hd_value v = value_get_path(m->heap, m->h.heads.items[index].value, path);
    return value_exists(v) && !id_digest(v, now) && !memcmp(now, hash, sizeof now);
}

static hd_status add_preconditions(memory_authority *ma, const commit *c) {
    hd_memory *m = ma->m;
    const places *ps = &ma->base.replica->places;
    for (uint32_t i = 0; i < c->preconditions.count; i++) {
        const precondition *pre = &c->preconditions.items[i];
        sub_precondition sub = { .kind = (int)pre->kind, .origin = pre->origin };
        if (pre->place) {
            hd_status status = head_of(ma, place_at(ps, pre->place)->root, &sub.head);
            if (status) return status;
            if (pre->kind == PRE_EQUAL)
                sub.holds = value_holds(m, sub.head, place_path(ps, pre->place), pre->hash);
        }
        if (!vec_push(&m->env, &m->preconditions, sub)) return HD_NOMEM;
    }
    return HD_OK;
}

static hd_status build_submission(memory_authority *ma, const commit *c, submission *out) {
    hd_memory *m = ma->m;
    vec_clear(&m->claims);
    vec_clear(&m->writes);
    vec_clear(&m->preconditions);
    vec_clear(&m->op_paths);
    hd_status status = add_claims(ma, c);
    if (!status) status = add_writes(ma, c);
    if (!status) status = add_preconditions(ma, c);
    *out = (submission){
        ma->session,     c->local_seq,           ma->base.replica->settled, 0,
        c->class,        m->claims.items,        m->claims.count,           m->writes.items,
        m->writes.count, m->preconditions.items, m->preconditions.count
    };
    return status;
}

/* ---- deciding */

/* New seqs, one for each space written; several documents of one space share theirs. */
static hd_status assign_seqs(hd_memory *m, commit *c) {
    vec_clear(&m->seqs);
    vec_clear(&m->seqs_before);
    for (uint32_t i = 0; i < m->writes.count; i++) {
        const head *d = &m->h.heads.items[m->writes.items[i].head];
        uint64_t seq = 0;
        for (uint32_t j = 0; j < c->seqs.count && !seq; j++)
            if (c->seqs.items[j].space == d->space) seq = c->seqs.items[j].seq;
        if (!seq) {
            seq = m->h.spaces.items[d->space_index].seq + 1;
            assert(d->seq < seq && seq <= SEQ_MAX);
            if (!vec_push(&m->env, &c->seqs, ((space_seq){ d->space, seq }))) return HD_NOMEM;
            key_ref(d->space);
        }
        if (!vec_push(&m->env, &m->seqs, seq) || !vec_push(&m->env, &m->seqs_before, d->seq))
            return HD_NOMEM;
    }
    return HD_OK;
}

/* Applies the operations to the heads' values. Worked out first, so that no memory means no
 * change. Operations that do not fit what is there now are skipped, as on every side. */
static hd_status fold_values(hd_memory *m, const commit *c, hd_value *after) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < c->writes.count; i++) {
        hd_value v = value_ref(m->h.heads.items[m->writes.items[i].head].value);
        for (; next < c->ops.count && c->ops.items[next].doc == c->writes.items[i].doc; next++) {
            const op *o = &c->ops.items[next];
            hd_value changed = op_apply(m->heap, v, o->kind, o->path, o->value, o->keep);
            if (value_is_failed(changed) && hd_value_status(changed) != HD_NOMEM) continue;
            value_unref(v);
            v = changed;
        }
        after[i] = v;
        if (value_is_failed(v)) {
            while (i--) value_unref(after[i]);
            return HD_NOMEM;
        }
    }
    return HD_OK;
}

/* Logs a document's operations, before the head gets its new value. There is room. */
static void log_ops(hd_memory *m, const commit *c, uint32_t write, uint32_t *next) {
    const sub_write *w = &m->writes.items[write];
    const head *d = &m->h.heads.items[w->head];
    for (uint32_t i = 0; i < w->op_count; i++) {
        const op *o = &c->ops.items[(*next)++];
        assert(o->doc == c->writes.items[write].doc);
        m->ops.items[m->ops.count++] = (logged_op){ w->head,
                                                    m->seqs.items[write],
                                                    o->kind,
                                                    path_ref(m->heap, o->path),
                                                    value_ref(o->value),
                                                    o->keep,
                                                    value_ref(d->value),
                                                    m->seqs_before.items[write] };
    }
}

/* Tests can intercept commits; then every commit goes through submit(), never through confirm(). */
static bool alone(const hd_memory *m) {
    return m->attached_count == 1 && !m->untold && !m->arrives && !m->hears;
}

static void tell_alone(hd_memory *m) {
    LIST_FOR (n, &m->attached) LIST_ENTRY(n, memory_authority, link)->base.alone = alone(m);
}

/* A runtime that is alone makes commits without claims: what it has read must be the latest. */
static void look_if_told(hd_memory *m) {
    const memory_authority *last = LIST_ENTRY(list_first(&m->attached), memory_authority, link);
    m->untold = m->attached_count == 1 && last->position < m->log_base + m->log.count;
    tell_alone(m);
}

static void drop_seqs(commit *c) {
    for (uint32_t i = 0; i < c->seqs.count; i++) key_unref(c->seqs.items[i].space);
    vec_clear(&c->seqs);
}

/* Takes the new value. Whether the document exists is what the fold says, not what was intended. Without either flag
 * it was deleted, and has left no tombstone (PRE_FORGET). */
static void set_head(hd_memory *m, uint32_t index, hd_value after) {
    assert(index < m->h.heads.count && !value_is_failed(after));
    head *d = &m->h.heads.items[index];
    value_unref(d->value);
    d->value = after;
    if (value_is_absent(after) && !(d->flags & (HEAD_EXISTS | HEAD_TOMBSTONE))) return;
    d->flags &= (uint8_t) ~(HEAD_EXISTS | HEAD_TOMBSTONE);
    d->flags |= value_is_absent(after) ? HEAD_TOMBSTONE : HEAD_EXISTS;
}

static hd_status accept_folded(hd_memory *m, commit *c, const submission *s, hd_value *after) {
    hd_status status = fold_values(m, c, after);
    if (status) return status;
    status = admit_apply(&m->h, s, m->seqs.items);
    for (uint32_t i = 0, next = 0; i < c->writes.count; i++) {
        if (status) {
            value_unref(after[i]);
            continue;
        }
        if (!alone(m)) log_ops(m, c, i, &next);
        set_head(m, m->writes.items[i].head, after[i]);
    }
    return status;
}

static hd_status accept(hd_memory *m, commit *c, const submission *s) {
    assert(c->state == COMMIT_SENT || c->state >= COMMIT_DEAD || c->state == COMMIT_QUEUED);
    assert(m->writes.count == c->writes.count);
    hd_value few[8], *after = few;
    uint32_t n = c->writes.count;
    if (n > 8) {
        after = env_new_array(&m->env, n, sizeof *after);
        if (!after) return HD_NOMEM;
    }
    hd_status status = assign_seqs(m, c);
    if (!status) status = accept_folded(m, c, s, after);
    if (status) drop_seqs(c);
    if (after != few) env_free(&m->env, after, n * sizeof *after);
    return status;
}

/* Keeps the memos of the commit, and its extra for other runtimes that use the store. */
static void keep_extra(hd_memory *m, logged *entry) {
    assert(!entry->status && value_exists(entry->c->extra));
    memory_keep_extra(m, entry->c->extra);
    if (!alone(m)) entry->extra = value_ref(entry->c->extra);
}

/* What the heads say, unless it is refused in any case. HD_NOMEM: undecided, nothing changed. */
static hd_status decide(memory_authority *ma, commit *c, hd_status refusal) {
    assert(c->local_seq);
    hd_memory *m = ma->m;
    submission s;
    uint32_t ops_before = m->ops.count;
    if (!vec_room(&m->env, &m->log, 1)) return HD_NOMEM;
    hd_status status = build_submission(ma, c, &s);
    if (!status) status = admit(&m->h, &s, &m->verdict);
    if (status || m->verdict.replayed) return status; /* a replay's verdict is in the log already */
    if (!m->verdict.status) m->verdict.status = refusal;
    if (!m->verdict.status) {
        if (!alone(m) && !vec_room(&m->env, &m->ops, c->ops.count)) return HD_NOMEM;
        status = accept(m, c, &s);
    } else {
        status = admit_refuse(&m->h, &s, m->verdict.status);
    }
    if (status) return status;
    logged entry = { .owner = ma,
                     .c = c,
                     .status = m->verdict.status,
                     .class = c->class,
                     .first_op = m->ops_base + ops_before,
                     .op_count = m->ops.count - ops_before };
    if (!entry.status && value_exists(c->extra)) keep_extra(m, &entry);
    m->log.items[m->log.count++] = entry;
    return HD_OK;
}

static hd_status memory_submit(authority *a, commit *c) {
    memory_authority *ma = self(a);
    assert(c->local_seq && c->local_seq < a->replica->next_local);
    return vec_push(&ma->m->env, &ma->inbox, c) ? HD_OK : HD_NOMEM;
}

static inline hd_status confirm_prepare(memory_authority *ma, place_id doc) {
    uint32_t home = place_at(&ma->base.replica->places, doc)->doc.home, index;
    if (RARELY(home >= ma->space_of.count || !ma->space_of.items[home])) {
        hd_status status = prepare_space(ma, home);
        if (status) return status;
    }
    return USUALLY(ma->sole) ? HD_OK : head_of(ma, doc, &index);
}

static hd_status memory_confirm_prepare(authority *a, place_id doc) {
    return confirm_prepare(self(a), doc);
}

static inline uint64_t confirm(memory_authority *ma, place_id doc, hd_value after, bool first) {
    hd_memory *m = ma->m;
    assert(alone(m) && !ma->inbox.count);
    uint32_t home = place_at(&ma->base.replica->places, doc)->doc.home, index;
    assert(home < ma->space_of.count && ma->space_of.items[home]); /* prepared */
    head_space *space = &m->h.spaces.items[ma->space_of.items[home] - 1];
    m->confirmed += first;
    if (space->stamp != m->confirmed) {
        space->stamp = m->confirmed;
        space->seq++;
    }
    if (memory_find_head(ma, doc, &index)) {
        head *d = &m->h.heads.items[index];
        d->seq = space->seq;
        heads_raise_floor(&m->h, index, space->seq); /* a runtime that comes later starts here */
        d->last_local = 0;
        set_head(m, index, value_ref(after));
    }
    return space->seq;
}

static uint64_t memory_confirm(authority *a, place_id doc, hd_value after, bool first) {
    return confirm(self(a), doc, after, first);
}

static uint64_t memory_confirm_one(authority *a, place_id doc, hd_value after) {
    return RARELY(confirm_prepare(self(a), doc)) ? 0 : confirm(self(a), doc, after, true);
}

static bool memory_never_was(authority *a, place_id doc) {
    const memory_authority *ma = self(a);
    uint32_t index;
    if (memory_find_head(ma, doc, &index))
        return !(ma->m->h.heads.items[index].flags & (HEAD_EXISTS | HEAD_TOMBSTONE));
    return !ma->sole || !place_at(&a->replica->places, doc)->doc.seq;
}

static hd_runtime *runtime_of(const memory_authority *ma) {
    return (hd_runtime *)(void *)((char *)ma->base.replica - offsetof(hd_runtime, r));
}

static hd_status arrive(memory_authority *ma, commit *c) {
    const hd_memory *m = ma->m;
    hd_status said = m->arrives ? m->arrives(runtime_of(ma), m->hooks_ctx) : HD_OK;
    ma->kept_out = hd_status_class(said) == HD_CLASS_TRANSIENT;
    return ma->kept_out ? said : decide(ma, c, said);
}

/* HD_NOMEM: some are left that could not be decided. Those that are kept out are left as well. */
static hd_status decide_inbox(memory_authority *ma) {
    uint32_t done = 0;
    hd_status status = HD_OK;
    while (done < ma->inbox.count && !(status = arrive(ma, ma->inbox.items[done]))) done++;
    if (done) {
        memmove(ma->inbox.items, ma->inbox.items + done,
                (ma->inbox.count - done) * sizeof *ma->inbox.items);
        ma->inbox.count -= done;
    }
    return ma->kept_out ? HD_OK : status;
}

static void memory_flush(authority *a) { decide_inbox(self(a)); }

/* ---- delivering */

/* The replica's place for a document; 0: it has none. */
static place_id find_place(const memory_authority *ma, const head *d) {
    const places *ps = &ma->base.replica->places;
    for (uint32_t i = 1; i < ps->homes.count; i++) {
        const doc_home *h = &ps->homes.items[i];
        if (h->space == d->space && h->scope == d->scope && h->instance == d->instance &&
            h->meta == d->meta)
            return places_find_doc(ps, i, d->id);
    }
    return 0;
}

static bool is_followed(const memory_authority *ma, const head *d) {
    for (uint32_t i = 0; i < ma->followed.count; i++)
        if (ma->followed.items[i] == d->space) return d->scope == HD_SCOPE_SPACE;
    return false;
}

/* The replica's place for a document, if it knows or follows it. 0: it does not care. */
static hd_status place_of_head(memory_authority *ma, const head *d, place_id *out) {
    places *ps = &ma->base.replica->places;
    place_id doc = find_place(ma, d);
    bool followed = is_followed(ma, d);
    bool concerns = doc && ((place_at(ps, doc)->doc.flags & DOC_KNOWN) || followed ||
                            replica_awaits(ma->base.replica, doc));
    *out = concerns ? doc : 0;
    if (doc || !followed) return HD_OK;
    uint32_t home;
    hd_status status = places_home(ps, d->space, (hd_scope)d->scope, d->instance, d->meta, &home);
    return status ? status : places_doc(ps, home, d->id, out);
}

/* A followed document that was never seen: its state before this frame is needed first. */
static hd_status deliver_frame(memory_authority *ma, const logged *entry) {
    assert(!entry->status && entry->owner != ma);
    hd_memory *m = ma->m;
    replica *r = ma->base.replica;
    replica_frame_begin(r, entry->class);
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const logged_op *o = &m->ops.items[entry->first_op - m->ops_base + i];
        place_id doc;
        hd_status status = place_of_head(ma, &m->h.heads.items[o->head], &doc);
        bool first = i == 0 || o[-1].head != o->head;
        if (!status && doc && first && replica_awaits(r, doc))
            replica_meet(r, doc,
                         &(loaded){ .present = !value_is_absent(o->before),
                                    .value = value_ref(o->before),
                                    .seq = o->before_seq });
        if (!status && doc && first && !(place_at(&r->places, doc)->doc.flags & DOC_KNOWN))
            status = replica_frame_state(r, doc, o->before_seq, o->before);
        if (!status && doc)
            status = replica_frame_op(r, doc, o->seq, o->kind, o->path, o->value, o->keep);
        if (status) return status;
    }
    hd_status status = replica_frame_end(r);
    if (!status && value_exists(entry->extra)) replica_frame_observed(r, entry->extra);
    return status;
}

static hd_status deliver(memory_authority *ma, const logged *entry) {
    replica *r = ma->base.replica;
    assert(entry->owner != ma || entry->c->local_seq > r->settled);
    if (entry->owner != ma) return entry->status ? HD_OK : deliver_frame(ma, entry);
    if (entry->status) return replica_reject(r, entry->c, entry->status);
    replica_accept(r, entry->c);
    return HD_OK;
}

/* Drops what everybody has seen. */
static void trim_log(hd_memory *m) {
    assert(m->log_base <= UINT64_MAX - m->log.count);
    uint64_t seen = UINT64_MAX;
    LIST_FOR (n, &m->attached) {
        uint64_t position = LIST_ENTRY(n, memory_authority, link)->position;
        if (position < seen) seen = position;
    }
    assert(seen >= m->log_base);
    uint32_t gone = seen == UINT64_MAX ? m->log.count : (uint32_t)(seen - m->log_base);
    assert(gone <= m->log.count);
    if (!gone) return;
    uint32_t ops = 0;
    for (uint32_t i = 0; i < gone; i++) {
        ops += m->log.items[i].op_count;
        value_unref(m->log.items[i].extra);
    }
    for (uint32_t i = 0; i < ops; i++) {
        path_unref(m->heap, m->ops.items[i].path);
        value_unref(m->ops.items[i].value);
        value_unref(m->ops.items[i].before);
    }
    m->log.count -= gone;
    m->ops.count -= ops;
    memmove(m->log.items, m->log.items + gone, m->log.count * sizeof *m->log.items);
    if (ops) memmove(m->ops.items, m->ops.items + ops, m->ops.count * sizeof *m->ops.items);
    m->log_base += gone;
    m->ops_base += ops;
}

static hd_status deliver_load(memory_authority *ma, place_id doc) {
    uint32_t index;
    hd_status status = head_of(ma, doc, &index);
    if (status) return status;
    const head *d = &ma->m->h.heads.items[index];
    loaded state = { .present = !value_is_absent(d->value),
                     .value = d->value,
                     .seq = ma->m->h.spaces.items[d->space_index].seq };
    return replica_arrived(ma->base.replica, doc, &state, HD_OK);
}

/* Without memory the rest waits for the next poll, as do those that are asked for from within. */
static hd_status deliver_loads(memory_authority *ma) {
    uint32_t count = ma->wanted.count, done = 0;
    hd_status status = HD_OK;
    while (done < count && !status) {
        status = deliver_load(ma, ma->wanted.items[done]);
        if (!status) done++;
    }
    ma->wanted.count -= done;
    memmove(ma->wanted.items, ma->wanted.items + done, ma->wanted.count * sizeof *ma->wanted.items);
    return status;
}

static bool hears(const memory_authority *ma) {
    const hd_memory *m = ma->m;
    return !m->hears || m->hears(runtime_of(ma), m->hooks_ctx);
}

static hd_status memory_poll(authority *a) {
    memory_authority *ma = self(a);
    hd_memory *m = ma->m;
    hd_status undecided = ma->inbox.count ? decide_inbox(ma) : HD_OK;
    if (!hears(ma)) return undecided;
    while (ma->position < m->log_base + m->log.count) {
        logged entry = m->log.items[ma->position - m->log_base];
        ma->position++; /* first: a listener that loads more must get what belongs to it */
        hd_status status = deliver(ma, &entry);
        if (status) {
            ma->position--;
            return status;
        }
    }
    if (m->log.count) trim_log(m);
    if (m->untold) look_if_told(m);
    hd_status undelivered = ma->wanted.count ? deliver_loads(ma) : HD_OK;
    return undecided ? undecided : undelivered;
}

/* One snapshot: a document as it was at the last poll, though the head may have moved on. */
static void as_of_position(const memory_authority *ma, uint32_t index, hd_value *value,
                           uint64_t *seq) {
    const hd_memory *m = ma->m;
    for (uint64_t at = ma->position; at < m->log_base + m->log.count; at++) {
        const logged *entry = &m->log.items[at - m->log_base];
        for (uint32_t i = 0; i < entry->op_count; i++) {
            const logged_op *o = &m->ops.items[entry->first_op - m->ops_base + i];
            if (o->head != index) continue;
            *value = o->before;
            *seq = o->before_seq;
            return;
        }
    }
}

static hd_status memory_load(authority *a, place_id doc, loaded *out) {
    memory_authority *ma = self(a);
    if (ma->m->load_late) return vec_push(&ma->m->env, &ma->wanted, doc) ? HD_PENDING : HD_NOMEM;
    uint32_t index;
    *out = (loaded){ 0 };
    if (!memory_find_head(ma, doc, &index)) return HD_OK;
    const head *d = &ma->m->h.heads.items[index];
    hd_value value = d->value;
    uint64_t seq = d->seq;
    as_of_position(ma, index, &value, &seq);
    *out = (loaded){ .present = !value_is_absent(value), .value = value_ref(value), .seq = seq };
    return HD_OK;
}

/* ---- the rest */

static hd_status memory_metadata(authority *a, place_id doc, hd_value *out) {
    const hd_memory *m = self(a)->m;
    const places *ps = &a->replica->places;
    const place *p = place_at(ps, doc);
    assert(place_is_doc(ps, doc));
    const doc_home *h = &ps->homes.items[p->doc.home];
    uint32_t index;
    bool found = heads_find(&m->h, h->space, h->scope, h->instance, true, p->doc.id, &index);
    *out = found ? value_ref(m->h.heads.items[index].value) : value_absent();
    return HD_OK;
}

static bool memory_idle(const authority *a) { return !self_const(a)->inbox.count; }
static bool memory_shared(const authority *a) { return !alone(self_const(a)->m); }
static int memory_fd(authority *a) { return (void)a, -1; }
static uint64_t memory_deadline(authority *a) {
    memory_authority *ma = self(a);
    bool told = ma->wanted.count || ma->position < ma->m->log_base + ma->m->log.count;
    bool work = (ma->inbox.count && !ma->kept_out) || (told && hears(ma));
    return work ? 0 : UINT64_MAX;
}
static hd_status memory_nothing(authority *a, hd_error *error) {
    return (void)a, (void)error, HD_OK;
}

static hd_status memory_follow(authority *a, struct key *space) {
    memory_authority *ma = self(a);
    for (uint32_t i = 0; i < ma->followed.count; i++)
        if (ma->followed.items[i] == space) return HD_OK;
    if (!vec_push(&ma->m->env, &ma->followed, space)) return HD_NOMEM;
    key_ref(space);
    return HD_OK;
}

static void memory_unfollow(authority *a, const struct key *space) {
    memory_authority *ma = self(a);
    for (uint32_t i = 0; i < ma->followed.count; i++) {
        if (ma->followed.items[i] != space) continue;
        key_unref(ma->followed.items[i]);
        vec_remove(&ma->followed, i);
        return;
    }
}

static hd_status memory_keep(authority *a, place_id doc) {
    memory_authority *ma = self(a);
    uint32_t index;
    if (!ma->sole || !place_at(&a->replica->places, doc)->doc.seq) return HD_OK;
    hd_status status = head_of(ma, doc, &index);
    if (!status) ma->apart = true;
    return status;
}

static void memory_forget(authority *a, place_id doc) {
    memory_authority *ma = self(a);
    if (doc < ma->head_of.count) ma->head_of.items[doc] = 0;
}

/* What this runtime sees of a document; borrowed. */
static hd_value seen(const memory_authority *ma, uint32_t index) {
    const head *d = &ma->m->h.heads.items[index];
    const places *ps = &ma->base.replica->places;
    place_id doc = find_place(ma, d);
    unsigned flags = doc ? (unsigned)place_at(ps, doc)->doc.flags : 0;
    if ((flags & DOC_KNOWN) && !(flags & DOC_VOLATILE)) return place_at(ps, doc)->value;
    hd_value value = d->value;
    uint64_t seq = d->seq;
    as_of_position(ma, index, &value, &seq);
    return value;
}

/* Borrowed. */
static hd_value kind_of(const memory_authority *ma, const head *d) {
    uint32_t meta;
    if (!heads_find(&ma->m->h, d->space, (hd_scope)d->scope, d->instance, true, d->id, &meta))
        return value_absent();
    return hd_value_at(seen(ma, meta), "kind");
}

/* Whose instance: ours, if we have such a home. */
static bool is_ours(const memory_authority *ma, const head *d) {
    const places *ps = &ma->base.replica->places;
    if (d->scope == HD_SCOPE_SPACE) return true;
    for (uint32_t i = 1; i < ps->homes.count; i++)
        if (ps->homes.items[i].instance == d->instance && ps->homes.items[i].scope == d->scope)
            return true;
    return false;
}

static bool listed(const memory_authority *ma, uint32_t index, const struct key *space,
                   const list_range *r) {
    const head *d = &ma->m->h.heads.items[index];
    if (d->space != space || d->meta || !is_ours(ma, d)) return false;
    const char *id = key_bytes(d->id);
    if (strncmp(id, r->prefix, strlen(r->prefix)) || strcmp(id, r->after) <= 0) return false;
    if (value_is_absent(seen(ma, index))) return false;
    return !r->kind || !strcmp(hd_value_as_text(kind_of(ma, d), ""), r->kind);
}

static int by_id(const void *a, const void *b, void *ctx) {
    const head *of = ctx;
    return key_compare(of[*(const uint32_t *)a].id, of[*(const uint32_t *)b].id);
}

/* A listing goes by heads: what only this runtime sees so far (outputs of computations, commits on
 * their way) gets its head now. */
static hd_status make_heads_of_seen(memory_authority *ma, const struct key *space) {
    const places *ps = &ma->base.replica->places;
    hd_status status = HD_OK;
    for (place_id id = 1; id < ps->count && !status; id++) {
        const place *p = place_at(ps, id);
        uint32_t index;
        if (p->root != id || value_is_absent(p->value) || (p->doc.flags & DOC_VOLATILE)) continue;
        if (ps->homes.items[p->doc.home].space == space) status = head_of(ma, id, &index);
    }
    return status;
}

/* What it is told stays there meanwhile, whatever it writes. */
static bool tell_listed(const memory_authority *ma, uint32_t index, hd_list_fn fn, void *ctx) {
    const head *d = &ma->m->h.heads.items[index];
    hd_value kind = value_ref(kind_of(ma, d));
    hd_listing entry = { key_bytes(d->space), (hd_scope)d->scope, key_bytes(d->id),
                         hd_value_as_text(kind, ""), d->seq };
    bool more = fn(&entry, ctx);
    value_unref(kind);
    return more;
}

static hd_status memory_list(authority *a, struct key *space, const list_range *range,
                             hd_list_fn fn, void *ctx) {
    memory_authority *ma = self(a);
    hd_memory *m = ma->m;
    VEC(uint32_t) found = { 0 };
    hd_status status = make_heads_of_seen(ma, space);
    for (uint32_t i = 0; i < m->h.heads.count && !status; i++)
        if (listed(ma, i, space, range) && !vec_push(&m->env, &found, i)) status = HD_NOMEM;
    if (!status && found.count)
        qsort_r(found.items, found.count, sizeof *found.items, by_id, m->h.heads.items);
    for (uint32_t i = 0; i < found.count && !status; i++)
        if (!tell_listed(ma, found.items[i], fn, ctx)) break;
    vec_fini(&m->env, &found);
    return status;
}

static hd_status memory_spaces(authority *a, hd_space_fn fn, void *ctx) {
    const hd_memory *m = self(a)->m;
    for (uint32_t i = 0; i < m->h.spaces.count; i++)
        if (m->h.spaces.items[i].seq && !fn(key_bytes(m->h.spaces.items[i].name), ctx)) break;
    return HD_OK;
}

/* Entries of the log have their operations one behind the other, and the operations of a document stand together. */
static void check_log(const hd_memory *m) {
    uint64_t next = m->ops_base;
    for (uint32_t i = 0; i < m->log.count; i++) {
        const logged *entry = &m->log.items[i];
        assert(entry->first_op == next && (!entry->status || !entry->op_count));
        next += entry->op_count;
    }
    assert(next == m->ops_base + m->ops.count);
    for (uint32_t i = 0; i < m->ops.count; i++) {
        const logged_op *o = &m->ops.items[i];
        assert(o->head < m->h.heads.count && o->seq > o->before_seq);
        assert(o->seq <= m->h.heads.items[o->head].seq);
        (void)o;
    }
    (void)next;
}

/* What was looked up once is still so. */
static void check_attached(const memory_authority *ma) {
    const places *ps = &ma->base.replica->places;
    for (place_id id = 1; id < ps->count && id < ma->head_of.count; id++) {
        if (!ma->head_of.items[id]) continue;
        const head *d = &ma->m->h.heads.items[ma->head_of.items[id] - 1];
        assert(place_is_doc(ps, id) && d->id == place_at(ps, id)->doc.id);
        assert(d->space == ps->homes.items[place_at(ps, id)->doc.home].space);
        (void)d;
    }
    for (uint32_t i = 0; i < ma->inbox.count; i++) assert(ma->inbox.items[i]->local_seq);
    for (uint32_t i = 0; i < ma->wanted.count; i++) assert(place_is_doc(ps, ma->wanted.items[i]));
}

static void memory_check(const authority *a) {
    const memory_authority *ma = self_const(a);
    uint32_t attached = 0;
    heads_check(&ma->m->h);
    memos_check(&ma->m->memos);
    check_log(ma->m);
    check_attached(ma);
    LIST_FOR (n, &ma->m->attached) attached++;
    assert(attached == ma->m->attached_count && (!ma->sole || attached == 1));
    assert(ma->position >= ma->m->log_base && ma->position <= ma->m->log_base + ma->m->log.count);
    assert(ma->base.alone == alone(ma->m));
    assert(ma->base.late == ma->m->load_late);
    (void)attached;
}

static void memory_detach(authority *a) {
    memory_authority *ma = self(a);
    hd_memory *m = ma->m;
    assert(m->attached_count && list_linked(&ma->link));
    list_remove(&ma->link);
    m->attached_count--;
    if (m->attached_count) look_if_told(m);
    trim_log(m);
    for (uint32_t i = 0; i < ma->followed.count; i++) key_unref(ma->followed.items[i]);
    vec_fini(&m->env, &ma->inbox);
    vec_fini(&m->env, &ma->head_of);
    vec_fini(&m->env, &ma->space_of);
    vec_fini(&m->env, &ma->followed);
    vec_fini(&m->env, &ma->wanted);
    env_free(&m->env, ma, sizeof *ma);
}

static const authority_ops memory_ops = {
    .submit = memory_submit,
    .confirm_prepare = memory_confirm_prepare,
    .confirm = memory_confirm,
    .confirm_one = memory_confirm_one,
    .never_was = memory_never_was,
    .flush = memory_flush,
    .poll = memory_poll,
    .load = memory_load,
    .metadata = memory_metadata,
    .idle = memory_idle,
    .wants_derived = memory_shared,
    .shared = memory_shared,
    .follow = memory_follow,
    .unfollow = memory_unfollow,
    .keep = memory_keep,
    .forget = memory_forget,
    .fd = memory_fd,
    .deadline = memory_deadline,
    .list = memory_list,
    .spaces = memory_spaces,
    .checkpoint = memory_nothing,
    .prune = memory_nothing,
    .vacuum = memory_nothing,
    .memos = memory_memos,
    .memo_pieces = memory_memo_pieces,
    .changes = memory_changes,
    .seq_of = memory_seq_of,
    .check = memory_check,
    .close = memory_detach,
};

hd_heap *memory_heap(hd_memory *m) { return m->heap; }
struct heads *memory_heads(hd_memory *m) {
    return &m->h;
}

/* What a runtime committed while it was alone carries no claims: it must be decided before another
 * runtime can write. */
static hd_status decide_what_is_queued(hd_memory *m) {
    hd_status status = HD_OK;
    LIST_FOR (n, &m->attached)
        if (!status) status = replica_send(LIST_ENTRY(n, memory_authority, link)->base.replica);
    return status;
}

hd_status memory_attach(hd_memory *m, struct replica *r, bool sole, authority **out) {
    memory_authority *ma = env_new0(&m->env, sizeof *ma);
    *out = NULL;
    if (!ma) return HD_NOMEM;
    hd_status status = decide_what_is_queued(m);
    if (!status) status = heads_session(&m->h, r->session, &ma->session);
    if (status) {
        env_free(&m->env, ma, sizeof *ma);
        return status;
    }
    ma->base = (authority){ .ops = &memory_ops, .replica = r, .late = m->load_late };
    assert(!sole || !m->attached_count);
    ma->m = m;
    ma->sole = sole;
    ma->position = m->log_base + m->log.count;
    list_push_back(&m->attached, &ma->link);
    m->attached_count++;
    tell_alone(m);
    *out = &ma->base;
    return HD_OK;
}

hd_status hd_memory_open(const hd_env *env, hd_memory **out) {
    *out = NULL;
    hd_env copy = env_copy(env);
    hd_memory *m = env_new0(&copy, sizeof *m);
    if (!m) return HD_NOMEM;
    m->env = copy;
    list_init(&m->attached);
    hd_status status = hd_heap_open(&m->env, NULL, &m->heap);
    if (!status) status = heads_init(&m->h, &m->env, m->heap);
    if (!status) memos_init(&m->memos, &m->env, m->heap, false);
    if (status) {
        hd_memory_close(m);
        return status;
    }
    *out = m;
    return HD_OK;
}

void hd_memory_load_late(hd_memory *m) {
    assert(list_empty(&m->attached));
    m->load_late = true;
}

void hd_memory_intercept(hd_memory *m, memory_arrives_fn *on_arrival, memory_hears_fn *on_hearing,
                         void *ctx) {
    assert(list_empty(&m->attached));
    m->arrives = on_arrival;
    m->hears = on_hearing;
    m->hooks_ctx = ctx;
}

void hd_memory_close(hd_memory *m) {
    if (!m) return;
    assert(list_empty(&m->attached));
    trim_log(m);
    memos_fini(&m->memos);
    heads_fini(&m->h);
    vec_fini(&m->env, &m->log);
    vec_fini(&m->env, &m->ops);
    vec_fini(&m->env, &m->claims);
    vec_fini(&m->env, &m->writes);
    vec_fini(&m->env, &m->preconditions);
    vec_fini(&m->env, &m->op_paths);
    vec_fini(&m->env, &m->seqs);
    vec_fini(&m->env, &m->seqs_before);
    vec_fini(&m->env, &m->verdict.conflicts);
    if (m->heap) hd_heap_close(m->heap);
    hd_env env = m->env;
    env_free(&env, m, sizeof *m);
}
