/* admit.c -- may this commit stand? */
#include "store/admit.h"

#include "base/env.h"

/* ---- overlap */

/* An array has become longer or shorter from `path` on: whether a read of the array, of its length, or of
 * an element that came or went sees that. */
static bool rest_overlaps(const hd_heap *heap, hd_path path, hd_path read, bool shape) {
    assert(path != HD_PATH_ROOT);
    hd_path array = path_parent(heap, path);
    if (path_is_prefix(heap, read, array)) return !shape || read == array;
    if (!path_is_prefix(heap, array, read)) return false;
    uint32_t index = path_key(heap, path_ancestor(heap, read, path_depth(heap, path)))->index;
    return index == KEY_NO_INDEX || index >= path_key(heap, path)->index;
}

/* An element that comes into being makes its array longer. */
static bool length_overlaps(const hd_heap *heap, hd_path path, uint8_t flags, hd_path read) {
    if (read == HD_PATH_ROOT || path_key(heap, read) != heap->length_key) return false;
    hd_path array = path_parent(heap, read);
    if (array == path || !path_is_prefix(heap, array, path)) return false;
    hd_path element = path_ancestor(heap, path, path_depth(heap, read));
    return path_key(heap, element)->index != KEY_NO_INDEX &&
           ((flags & TOUCH_WAY) || ((flags & TOUCH_KEYS) && element == path));
}

bool touch_overlaps(const hd_heap *heap, hd_path path, uint8_t flags, hd_path read, bool shape) {
    if (flags & TOUCH_WHOLE) return true;
    if ((flags & TOUCH_REST) && path != HD_PATH_ROOT) return rest_overlaps(heap, path, read, shape);
    /* A read below a leaf found nothing there before, and finds nothing now. */
    bool reaches = flags & TOUCH_LEAF ? path == read : path_is_prefix(heap, path, read);
    if (reaches || length_overlaps(heap, path, flags, read)) return true;
    if (!shape || (flags & TOUCH_WAY)) return path_is_prefix(heap, read, path);
    /* A key that comes or goes changes the shape of what it is in, not of its neighbours. */
    return (flags & TOUCH_KEYS) && path != HD_PATH_ROOT && path_parent(heap, path) == read;
}

/* A touch that may have made objects on its way can have made one that is on the way of the read. */
static bool ways_meet(const hd_heap *heap, const head_touch *t, hd_path read) {
    if (!(t->flags & TOUCH_WAY) || t->path == HD_PATH_ROOT || read == HD_PATH_ROOT) return false;
    return path_ancestor(heap, t->path, 1) == path_ancestor(heap, read, 1);
}

/* A read through commits of its own session, or through the transaction's own writes: what they made of
 * the document depended on what there was to stand on, and on how long an array was, also where the read
 * itself finds nothing of that. */
static bool overlaps_strictly(const hd_heap *heap, const head_touch *t, hd_path read, bool shape) {
    bool element = (t->flags & (TOUCH_KEYS | TOUCH_REST)) && t->path != HD_PATH_ROOT &&
                   path_key(heap, t->path)->index != KEY_NO_INDEX;
    if (element && path_is_prefix(heap, path_parent(heap, t->path), read)) return true;
    if (ways_meet(heap, t, read)) return true;
    return touch_overlaps(heap, t->path, t->flags & (uint8_t)~TOUCH_LEAF, read, shape);
}

/* Touches above the basis are at the end. */
static uint32_t first_above(const head *d, uint64_t basis) {
    assert(d->seq > basis || !d->touches.count);
    uint32_t low = 0, high = d->touches.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (d->touches.items[mid].seq <= basis) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* Whether the claim was read through the commit of `session` that has touched the document above its basis: that was
 * pending then. */
static bool is_under(const sub_claim *c, uint32_t session, uint32_t by, uint64_t local_seq) {
    return c->first && by == session && c->first <= local_seq && local_seq <= c->last;
}

/* Whether the claim was read through all commits whose touches are forgotten. */
static bool knows_forgotten(const head *d, const sub_claim *c, uint32_t session) {
    return (d->flags & HEAD_FLOOR) && d->floor_from <= c->basis &&
           is_under(c, session, d->floor_session, d->floor_local);
}

/* Whether what was claimed can have changed since its basis. */
static bool read_is_stale(const heads *h, const sub_claim *c, uint32_t session, conflict *out) {
    assert(c->head < h->heads.count && session < h->sessions.count);
    const head *d = &h->heads.items[c->head];
    if (d->seq <= c->basis) return false;
    *out = (conflict){ c->head, c->path, HD_PATH_ROOT, c->basis, 0 };
    if (c->basis < heads_floor(h, d) && !knows_forgotten(d, c, session))
        return true; /* cannot know: resync */
    bool strict = c->strict || c->first;
    for (uint32_t i = first_above(d, c->basis); i < d->touches.count; i++) {
        const head_touch *t = &d->touches.items[i];
        if (is_under(c, session, t->session, t->local_seq)) continue;
        bool hit = strict ? overlaps_strictly(h->heap, t, c->path, c->shape)
                          : touch_overlaps(h->heap, t->path, t->flags, c->path, c->shape);
        if (!hit) continue;
        out->touched_path = t->path;
        out->seq = t->seq;
        return true;
    }
    return false;
}

/* ---- verdicts remembered */

/* A commit builds on recent ones. */
enum { REFUSED_MAX = 1 << 14 };

/* The first verdict on this local seq or a later one. The numbers ascend, so it stands at most as far from the first as
 * its number is greater: exactly there if none was left out, which is the rule. */
static uint32_t find_verdict(const head_session *s, uint64_t local_seq) {
    const decided *items = s->verdicts.items;
    if (!s->verdicts.count || local_seq <= items[0].local_seq) return 0;
    uint64_t at = local_seq - items[0].local_seq;
    if (at < s->verdicts.count && items[at].local_seq == local_seq) return (uint32_t)at;
    uint32_t low = 0, high = at < s->verdicts.count ? (uint32_t)at : s->verdicts.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (items[mid].local_seq < local_seq) low = mid + 1;
        else high = mid;
    }
    return low;
}

static const decided *find_decided(const head_session *s, uint64_t local_seq) {
    assert(local_seq);
    uint32_t at = find_verdict(s, local_seq);
    bool found = at < s->verdicts.count && s->verdicts.items[at].local_seq == local_seq;
    return found ? &s->verdicts.items[at] : NULL;
}

/* The first refusal of this local seq or a later one, among those that are settled. */
static uint32_t find_refusal(const head_session *s, uint64_t local_seq) {
    uint32_t low = 0, high = s->refused.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->refused.items[mid].local_seq < local_seq) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* Of a settled one only this is left: that it was refused. */
static bool was_refused(const head_session *s, uint64_t local_seq) {
    uint32_t at = find_refusal(s, local_seq);
    return local_seq <= s->forgotten ||
           (at < s->refused.count && s->refused.items[at].local_seq == local_seq);
}

static bool was_accepted(const head_session *s, uint64_t local_seq) {
    if (local_seq <= s->settled) return !was_refused(s, local_seq);
    const decided *d = find_decided(s, local_seq);
    return d && !d->status;
}

/* Whether a commit from `first` to `last` was refused that would have written a document with this bit; 0: any commit,
 * also one that writes nothing. A commit is judged again after an attempt that has failed: what it was read through may
 * be settled by then. */
static bool any_refused(const head_session *s, uint64_t first, uint64_t last, uint64_t bit) {
    if (s->last_refused < first) return false;
    if (first <= s->forgotten) return true;
    for (uint32_t i = find_refusal(s, first); i < s->refused.count; i++) {
        const refused_commit *d = &s->refused.items[i];
        if (d->local_seq > last) return false;
        if (!bit || (d->wrote & bit)) return true;
    }
    for (uint32_t i = find_verdict(s, first); i < s->verdicts.count; i++) {
        const decided *d = &s->verdicts.items[i];
        if (d->local_seq > last) return false;
        if (d->status && (!bit || (d->wrote & bit))) return true;
    }
    return false;
}

/* Whether a commit that the claim was read through was refused. */
static bool is_dead(const heads *h, const head_session *s, const sub_claim *c) {
    if (!c->first) return false;
    return any_refused(s, c->first, c->last, c->all ? 0 : heads_bit(h, c->head));
}

static uint64_t bits_written(const heads *h, const submission *s) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < s->write_count; i++) bits |= heads_bit(h, s->writes[i].head);
    return bits;
}

static decided make_verdict(const heads *h, const submission *s, hd_status status, uint64_t seq) {
    return (decided){ s->local_seq, s->payload, status, seq, status ? bits_written(h, s) : 0 };
}

static void forget_oldest_refused(head_session *session) {
    assert(session->refused.count <= REFUSED_MAX);
    if (session->refused.count < REFUSED_MAX) return;
    uint32_t gone = REFUSED_MAX / 2;
    session->forgotten = session->refused.items[gone - 1].local_seq;
    session->refused.count -= gone;
    memmove(session->refused.items, session->refused.items + gone,
            session->refused.count * sizeof *session->refused.items);
}

/* Verdicts that the client needs no more; there is room for what stays of them. */
static void settle_verdicts(head_session *session, uint32_t gone) {
    assert(gone <= session->verdicts.count);
    for (uint32_t i = 0; i < gone; i++) {
        const decided *d = &session->verdicts.items[i];
        if (!d->status) continue;
        session->refused.items[session->refused.count++] =
            (refused_commit){ d->local_seq, d->wrote };
        forget_oldest_refused(session);
    }
    session->verdicts.count -= gone;
    memmove(session->verdicts.items, session->verdicts.items + gone,
            session->verdicts.count * sizeof *session->verdicts.items);
}

static hd_status remember(heads *h, const submission *s, hd_status status, uint64_t seq) {
    assert(s->local_seq && s->session < h->sessions.count);
    head_session *session = &h->sessions.items[s->session];
    /* A session's row may be newer than the checkpoint: the log then tells it again. */
    if (s->local_seq <= session->last) return HD_OK;
    uint64_t settled = s->settled > session->settled ? s->settled : session->settled;
    uint32_t gone = 0, refused = 0;
    for (; gone < session->verdicts.count && session->verdicts.items[gone].local_seq <= settled;
         gone++)
        refused += session->verdicts.items[gone].status != HD_OK;
    if (refused && !vec_room(h->env, &session->refused, refused)) return HD_NOMEM;
    session->settled = settled;
    if (gone) settle_verdicts(session, gone);
    if (!vec_push(h->env, &session->verdicts, make_verdict(h, s, status, seq))) return HD_NOMEM;
    session->last = s->local_seq;
    if (status) session->last_refused = s->local_seq;
    return HD_OK;
}

/* ---- the steps, in this order */

/* True: decided before. First, because re-checking "document absent" would refuse a commit's own
 * retry. */
static bool find_replay(const heads *h, const submission *s, verdict *out) {
    const head_session *session = &h->sessions.items[s->session];
    if (s->local_seq > session->last) return false;
    const decided *d = find_decided(session, s->local_seq);
    out->replayed = true;
    if (!d || d->payload != s->payload) {
        out->status = HD_PROTOCOL; /* the same number with other content, or long settled */
        return true;
    }
    out->status = d->status;
    out->seq = d->seq;
    return true;
}

static hd_status precondition_status(const heads *h, const submission *s,
                                     const sub_precondition *p) {
    switch (p->kind) {
    case PRE_ORIGIN:
        return was_accepted(&h->sessions.items[s->session], p->origin) ? HD_OK : HD_ORIGIN_FAILED;
    case PRE_ABSENT:
        return h->heads.items[p->head].flags & (HEAD_EXISTS | HEAD_TOMBSTONE) ? HD_EXISTS : HD_OK;
    case PRE_EQUAL: return p->holds ? HD_OK : HD_HASH_DIFFERS;
    case PRE_FORGET: return HD_OK;
    default: return HD_PROTOCOL;
    }
}

/* A permanent failure counts more than a stale one: it ends the matter. */
static hd_status preconditions_status(const heads *h, const submission *s) {
    hd_status worst = HD_OK;
    for (uint32_t i = 0; i < s->precondition_count; i++) {
        hd_status status = precondition_status(h, s, &s->preconditions[i]);
        if (!status) continue;
        if (hd_status_class(status) != HD_CLASS_STALE) return status;
        worst = status;
    }
    return worst;
}

static hd_status add_conflict(const heads *h, verdict *out, conflict c, hd_status status) {
    if (!vec_push(h->env, &out->conflicts, c)) return HD_NOMEM;
    /* The first says what it is; a dead layer says more than a stale value. */
    if (out->status == HD_OK || status == HD_DEAD_LAYER) out->status = status;
    return HD_OK;
}

static hd_status check_claim(const heads *h, const submission *s, const sub_claim *c,
                             verdict *out) {
    assert(c->head < h->heads.count && c->first <= c->last && c->last < s->local_seq);
    conflict found = { c->head, c->path, HD_PATH_ROOT, c->basis, 0 };
    if (is_dead(h, &h->sessions.items[s->session], c))
        return add_conflict(h, out, found, HD_DEAD_LAYER);
    if (!read_is_stale(h, c, s->session, &found)) return HD_OK;
    return add_conflict(h, out, found, found.seq ? HD_STALE : HD_RESYNC);
}

hd_status admit(const heads *h, const submission *s, verdict *out) {
    assert(s->session < h->sessions.count && s->local_seq);
    out->status = HD_OK;
    out->replayed = false;
    out->seq = 0;
    vec_clear(&out->conflicts);
    if (find_replay(h, s, out)) return HD_OK;
    out->status = preconditions_status(h, s);
    if (out->status) return HD_OK;
    for (uint32_t i = 0; i < s->claim_count; i++) {
        hd_status status = check_claim(h, s, &s->claims[i], out);
        if (status) return status;
    }
    return HD_OK;
}

/* ---- recording */

/* Whether the document is what the author of the commit saw. Without pending commits under it: it has not
 * changed since the basis. Over pending commits of the same session: the topmost of them was the last to
 * change it, and for that one the same held (HEAD_SEEN), and so on down. Another writer in between, or a
 * commit of the chain that was refused, breaks it. */
static bool footprint_holds(const heads *h, const submission *s, const sub_write *w) {
    const head *d = &h->heads.items[w->head];
    if (w->footprint != FOOTPRINT_GIVEN) return w->footprint == FOOTPRINT_HOLDS;
    if (!w->under) return d->seq <= w->basis;
    return (d->flags & HEAD_SEEN) && d->last_session == s->session && d->last_local == w->under;
}

static void record_exact(heads *h, const submission *s, const sub_write *w, uint64_t seq) {
    for (uint32_t i = 0; i < w->exact_count; i++)
        heads_touch(h, w->head, seq, s->session, s->local_seq, w->exact[i].path, w->exact[i].flags);
}

/* An operation's path is where it aims, not what it changes: it may make objects on its way. */
static void record_ops(heads *h, const submission *s, const sub_write *w, uint64_t seq) {
    uint8_t more = TOUCH_WAY | (w->create || w->delete_ ? TOUCH_WHOLE : 0);
    for (uint32_t i = 0; i < w->op_count; i++)
        heads_touch(h, w->head, seq, s->session, s->local_seq, w->ops[i].path,
                    w->ops[i].flags | more);
}

static void record_write(heads *h, const submission *s, sub_write *w, uint64_t seq) {
    assert(seq > h->heads.items[w->head].seq);
    bool holds = footprint_holds(h, s, w);
    w->footprint = holds ? FOOTPRINT_HOLDS : FOOTPRINT_COARSE;
    if (holds) record_exact(h, s, w, seq);
    else record_ops(h, s, w, seq);
    heads_bound(h, w->head);
    head *d = &h->heads.items[w->head];
    d->seq = seq;
    d->last_session = s->session;
    d->last_local = s->local_seq;
    d->flags &= (uint8_t) ~(HEAD_EXISTS | HEAD_TOMBSTONE | HEAD_SEEN);
    d->flags |= w->delete_ ? HEAD_TOMBSTONE : HEAD_EXISTS;
    d->flags |= HEAD_FETCHED | (holds || w->anew ? HEAD_SEEN : 0);
}

/* Documents that were required to be absent, and that this very commit has written; and documents that it has deleted
 * for good. */
static void guard_created(heads *h, const submission *s) {
    for (uint32_t i = 0; i < s->precondition_count; i++) {
        int kind = s->preconditions[i].kind;
        if (kind != PRE_ABSENT && kind != PRE_FORGET) continue;
        head *d = &h->heads.items[s->preconditions[i].head];
        if (d->last_session != s->session || d->last_local != s->local_seq) continue;
        if (kind == PRE_ABSENT) d->flags |= HEAD_GUARDED;
        else if (d->flags & HEAD_TOMBSTONE) d->flags &= (uint8_t) ~(HEAD_GUARDED | HEAD_TOMBSTONE);
    }
}

static hd_status reserve_touches(heads *h, const submission *s) {
    for (uint32_t i = 0; i < s->write_count; i++) {
        const sub_write *w = &s->writes[i];
        uint32_t most = w->exact_count > w->op_count ? w->exact_count : w->op_count;
        if (!vec_room(h->env, &h->heads.items[w->head].touches, most)) return HD_NOMEM;
    }
    return HD_OK;
}

hd_status admit_apply(heads *h, const submission *s, const uint64_t *seqs) {
    hd_status status = reserve_touches(h, s);
    if (!status && !SABOTAGED(h, SABOTAGE_MARK))
        status = remember(h, s, HD_OK, s->write_count ? seqs[0] : 0);
    if (status) return status;
    for (uint32_t i = 0; i < s->write_count; i++) {
        record_write(h, s, &s->writes[i], seqs[i]);
        head_space *space = &h->spaces.items[h->heads.items[s->writes[i].head].space_index];
        if (space->seq < seqs[i]) space->seq = seqs[i];
    }
    guard_created(h, s);
    return HD_OK;
}

hd_status admit_refuse(heads *h, const submission *s, hd_status status) {
    assert(status != HD_OK);
    return remember(h, s, status, 0);
}

hd_status admit_refuse_late(heads *h, const submission *s, hd_status status) {
    assert(status != HD_OK);
    head_session *session = &h->sessions.items[s->session];
    decided d = make_verdict(h, s, status, 0);
    assert(s->local_seq > session->settled);
    if (find_decided(session, s->local_seq)) return HD_OK;
    if (!vec_push(h->env, &session->verdicts, d)) return HD_NOMEM;
    uint32_t at = session->verdicts.count - 1;
    for (; at && session->verdicts.items[at - 1].local_seq > d.local_seq; at--)
        session->verdicts.items[at] = session->verdicts.items[at - 1];
    session->verdicts.items[at] = d;
    if (session->last < d.local_seq) session->last = d.local_seq;
    if (session->last_refused < d.local_seq) session->last_refused = d.local_seq;
    return HD_OK;
}
