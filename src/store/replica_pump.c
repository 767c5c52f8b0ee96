/* replica_pump.c -- what the authority tells a replica: commits of other writers, and verdicts on its own.
 *
 * Both change what is confirmed below the layers of commits that have no verdict. All new values are worked out first
 * (a plan), and shown then: a lack of memory leaves nothing half done. */
#include "store/replica.h"

#include "base/env.h"

/* ---- plans: changes from outside */

static void plan_clear(replica *r) {
    for (uint32_t i = 0; i < r->plan.count; i++)
        place_at(&r->places, r->plan.items[i].doc)->doc.flags &= (uint16_t)~DOC_PLANNED;
    vec_clear(&r->plan);
    vec_clear(&r->plan_afters);
}

static void plan_drop(replica *r) {
    for (uint32_t i = 0; i < r->plan.count; i++) value_unref(r->plan.items[i].confirmed);
    for (uint32_t i = 0; i < r->plan_afters.count; i++) value_unref(r->plan_afters.items[i]);
    plan_clear(r);
}

/* Operations of one document stand together: it is among the last ones, or not there. */
static plan_item *plan_find(replica *r, place_id doc) {
    if (!(place_at(&r->places, doc)->doc.flags & DOC_PLANNED)) return NULL;
    for (uint32_t i = r->plan.count; i-- > 0;)
        if (r->plan.items[i].doc == doc) return &r->plan.items[i];
    return NULL;
}

/* The item for a document, starting from what is confirmed. NULL: no memory. */
static plan_item *plan_doc(replica *r, place_id doc) {
    plan_item *item = plan_find(r, doc);
    if (item) return item;
    plan_item fresh = { doc, place_at(&r->places, doc)->doc.seq,
                        value_ref(replica_confirmed(r, doc)), 0, 0 };
    if (!vec_push(r->env, &r->plan, fresh)) {
        value_unref(fresh.confirmed);
        return NULL;
    }
    place_at(&r->places, doc)->doc.flags |= DOC_PLANNED;
    return &vec_last(&r->plan);
}

/* Folds one layer over a value (taken). A patch that no longer applies is skipped. */
static hd_value fold_layer(replica *r, const layer *l, hd_value base) {
    for (uint32_t i = 0; i < l->op_count; i++) {
        const op *o = &l->c->ops.items[l->first_op + i];
        hd_value next = op_apply(r->heap, base, o->kind, o->path, o->value, o->keep);
        if (value_is_failed(next) && hd_value_status(next) != HD_NOMEM) continue;
        value_unref(base);
        base = next;
        if (value_is_failed(base)) break;
    }
    return base;
}

/* Whether the layers of the commit leave with the plan. */
static bool leaves(const commit *c) { return c->state == COMMIT_DEAD || c->state == COMMIT_IN; }

/* Works out what the layers that stay make of the new confirmed value. */
static hd_status plan_fold(replica *r, plan_item *item) {
    assert(item->afters == 0 && !value_is_failed(item->confirmed));
    over *o = &r->overs.items[place_at(&r->places, item->doc)->doc.over];
    hd_value below = item->confirmed;
    item->first_after = r->plan_afters.count;
    for (layer *l = o->bottom; l; l = l->next) {
        if (leaves(l->c)) continue;
        hd_value after = fold_layer(r, l, value_ref(below));
        if (value_is_failed(after)) return HD_NOMEM;
        if (!vec_push(r->env, &r->plan_afters, after)) {
            value_unref(after);
            return HD_NOMEM;
        }
        below = after;
        item->afters++;
    }
    return HD_OK;
}

static void relayer(replica *r, over *o, const plan_item *item) {
    const hd_value *after = item->afters ? &r->plan_afters.items[item->first_after] : NULL;
    layer **at = &o->bottom;
    o->top = NULL;
    o->layers = 0;
    while (*at) {
        layer *l = *at;
        value_unref(l->after);
        if (leaves(l->c)) {
            *at = l->next;
            slab_give(&r->layers, l);
            continue;
        }
        assert(o->layers < item->afters); /* plan_fold has worked out one for each that stays */
        l->after = *after++;
        o->top = l;
        o->layers++;
        at = &l->next;
    }
}

/* Carries out one item; takes what it owns. */
static void plan_apply(replica *r, plan_item *item) {
    assert(item->seq >= place_at(&r->places, item->doc)->doc.seq);
    place *p = place_at(&r->places, item->doc);
    place_set_seq(p, item->seq);
    p->doc.flags |= DOC_KNOWN;
    if (p->doc.over) {
        over *o = &r->overs.items[p->doc.over];
        value_unref(o->confirmed);
        o->confirmed = value_ref(item->confirmed);
        relayer(r, o, item);
    }
    bool overlay = p->doc.flags & DOC_OVERLAY;
    if (overlay && !p->doc.over) {
        /* A fresh overlay over something that now exists: it must be kept beside. If there is no
         * memory for that, the output counts as confirmed absent, which only makes a seal stale. */
        if (!value_is_absent(item->confirmed) && !replica_over(r, item->doc)) {
            over *o = &r->overs.items[place_at(&r->places, item->doc)->doc.over];
            value_unref(o->confirmed);
            o->confirmed = value_ref(item->confirmed);
        }
    }
    if (!overlay) {
        layer *top = replica_top(r, item->doc);
        replica_show(r, item->doc, value_ref(top ? top->after : item->confirmed));
    }
    replica_over_trim(r, item->doc);
    value_unref(item->confirmed);
}

/* `overwrites`: see the field of the replica. */
static hd_status plan_run(replica *r, hd_change_kind kind, hd_commit_class class, bool overwrites) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < r->plan.count && !status; i++)
        status = plan_fold(r, &r->plan.items[i]);
    if (!status) status = replica_notice_begin(r, kind, class, 0, 0, r->plan.count);
    if (status) {
        plan_drop(r);
        return status;
    }
    r->overwrites = overwrites;
    for (uint32_t i = 0; i < r->plan.count; i++) plan_apply(r, &r->plan.items[i]);
    plan_clear(r);
    assert(!r->plan.count && !r->plan_afters.count);
    replica_notice_end(r);
    return HD_OK;
}

/* ---- frames */

void replica_frame_begin(replica *r, hd_commit_class class) {
    assert(r->polling);
    plan_drop(r);
    r->frame_class = class;
    r->frame_of_many = false;
}

hd_status replica_frame_op(replica *r, place_id doc, uint64_t seq, op_kind kind, hd_path path,
                           hd_value value, uint64_t keep) {
    assert(place_is_doc(&r->places, doc));
    assert(seq <= SEQ_MAX);
    assert(!value_is_failed(value));
    if (place_at(&r->places, doc)->doc.flags & DOC_VOLATILE) return HD_OK; /* ours alone */
    plan_item *item = plan_doc(r, doc);
    if (!item) return HD_NOMEM;
    if (seq <= place_at(&r->places, doc)->doc.seq) return HD_OK; /* confirmed only moves forward */
    hd_value next = op_apply(r->heap, item->confirmed, kind, path, value, keep);
    if (value_is_failed(next) && hd_value_status(next) == HD_NOMEM) return HD_NOMEM;
    item->seq = seq; /* also where the operation does not fit and is skipped: the head moved, too */
    if (value_is_failed(next)) return HD_OK;
    value_unref(item->confirmed);
    item->confirmed = next;
    return HD_OK;
}

hd_status replica_frame_state(replica *r, place_id doc, uint64_t seq, hd_value value) {
    return replica_frame_op(r, doc, seq, value_is_absent(value) ? OP_DELETE : OP_SET, HD_PATH_ROOT,
                            value, 0);
}

static hd_status plan_removal(replica *r, const commit *c) {
    for (uint32_t i = 0; i < c->writes.count; i++)
        if (!plan_doc(r, c->writes.items[i].doc)) return HD_NOMEM;
    return HD_OK;
}

static hd_status plan_leaving(replica *r, list *commits) {
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        hd_status status = leaves(c) ? plan_removal(r, c) : HD_OK;
        if (status) return status;
    }
    return HD_OK;
}

hd_status replica_frame_absorb(replica *r) { return plan_leaving(r, &r->pending); }

/* HD_USAGE, here and in replica_reject: a listener or a verdict function has begun a transaction and not ended it, and
 * what it reads must not change. The pump says so; the authority says the frame or verdict again in the next poll. */
hd_status replica_frame_end(replica *r) {
    if (!r->plan.count) return HD_OK;
    if (r->in_body) return plan_drop(r), HD_USAGE;
    bool computed = r->frame_class == HD_COMMIT_DERIVED || r->frame_of_many;
    hd_status status = plan_run(r, HD_CHANGE_INTEGRATE, r->frame_class, computed);
    if (!status) r->stats.frames++;
    return status;
}

/* ---- verdicts */

static uint64_t seq_of(const replica *r, const commit *c, place_id doc) {
    const struct key *space = r->places.homes.items[place_at(&r->places, doc)->doc.home].space;
    for (uint32_t i = 0; i < c->seqs.count; i++)
        if (c->seqs.items[i].space == space) return c->seqs.items[i].seq;
    return 0;
}

/* Takes a commit out of the pending list; tell_fates tells its owners. */
static void fate(replica *r, commit *c, hd_status status) {
    assert(r->pending_count > 0);
    assert(c->local_seq > r->settled);
    if (c->state < COMMIT_DEAD) c->doom = status;
    list_remove(&c->link);
    r->pending_count--;
    r->settled = c->local_seq;
    r->unknown += c->doom == HD_NO_VERDICT;
    list_push_back(&r->fated, &c->link);
}

/* What was launched with the commit hears first: the commit's owner must not find it alive after a failure. */
static void tell_lineage(replica *r, commit *c) {
    void *lineage = c->lineage;
    c->lineage = NULL;
    if (lineage && r->observer.lineage) r->observer.lineage(r->observer.ctx, lineage, c, c->doom);
}

/* Owners may commit again from within, so each is off the list before it is told. */
static void tell_fates(replica *r, list *fated) {
    while (!list_empty(fated)) {
        commit *c = LIST_ENTRY(list_first(fated), commit, link);
        list_remove(&c->link);
        hd_status status = c->doom;
        tell_lineage(r, c);
        if (c->settled) c->settled(c->settled_ctx, c, status);
        if (c->done) c->done(status, c->done_ctx);
        replica_commit_free(r, c);
    }
}

/* The bottom layer of a document becomes what is confirmed. */
static void promote(replica *r, commit *c, place_id doc) {
    place *p = place_at(&r->places, doc);
    over *o = &r->overs.items[p->doc.over];
    layer *l = o->bottom;
    assert(p->doc.over && l && l->c == c); /* S5: in order of local seq */
    value_unref(o->confirmed);
    o->confirmed = l->after;
    o->bottom = l->next;
    if (!o->bottom) o->top = NULL;
    o->layers--;
    slab_give(&r->layers, l);
    uint64_t seq = seq_of(r, c, doc);
    if (seq) place_set_seq(p, seq);
    p->doc.flags |= DOC_KNOWN;
    replica_over_trim(r, doc);
}

void replica_accept(replica *r, commit *c) {
    assert(LIST_ENTRY(list_first(&r->pending), commit, link) == c);
    assert(c->state == COMMIT_SENT && r->polling);
    for (uint32_t i = 0; i < c->writes.count; i++) promote(r, c, c->writes.items[i].doc);
    r->stats.accepted++;
    fate(r, c, HD_OK);
}

/* Whether a commit from `first` to `last` is dead. */
static bool any_dead(const replica *r, uint64_t first, uint64_t last) {
    uint32_t low = 0, high = r->dead.count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (r->dead.items[mid] < first) low = mid + 1;
        else high = mid;
    }
    return low < r->dead.count && r->dead.items[low] <= last;
}

/* Whether the claim was read through a layer of a dead commit. */
static bool is_claim_dead(const replica *r, const claim *cl) {
    if (!cl->first) return false;
    if (cl->all) return any_dead(r, cl->first, cl->last);
    uint64_t dead = r->overs.items[place_doc(&r->places, cl->key & KEY_PLACE)->doc.over].dead_from;
    assert(!dead || dead >= cl->first);
    return dead && dead <= cl->last;
}

/* Notes in the documents that the commit writes that one of their layers is dead; `from` 0: takes that back. */
static void note_dead(replica *r, const commit *c, uint64_t from) {
    for (uint32_t i = 0; i < c->writes.count; i++) {
        uint32_t index = place_at(&r->places, c->writes.items[i].doc)->doc.over;
        over *o = &r->overs.items[index];
        if (index && (!from || !o->dead_from)) o->dead_from = from;
    }
}

/* HD_OK, or why the commit cannot stand now that the dead are dead. */
static hd_status doom_of(const replica *r, const commit *c) {
    if (SABOTAGED(r, SABOTAGE_CASCADE)) return HD_OK;
    for (uint32_t i = 0; i < c->claims.count; i++)
        if (is_claim_dead(r, &c->claims.items[i])) return HD_DEAD_LAYER;
    for (uint32_t i = 0; i < c->preconditions.count; i++) {
        const precondition *pre = &c->preconditions.items[i];
        if (pre->kind == PRE_ORIGIN && any_dead(r, pre->origin, pre->origin))
            return HD_ORIGIN_FAILED;
    }
    return HD_OK;
}

/* Everything stacked on a dead commit is dead too (S4). Later commits only name earlier ones, so
 * one pass in order of local seq finds them all. Where nothing says whether a commit is stored, nothing says
 * that of those which were sent after it either. */
static void doom_list(replica *r, list *commits, hd_status why) {
    LIST_FOR (n, commits) {
        commit *c = LIST_ENTRY(n, commit, link);
        hd_status doom = c->state >= COMMIT_DEAD ? HD_OK : doom_of(r, c);
        if (doom) {
            bool unknown = why == HD_NO_VERDICT && c->state == COMMIT_SENT;
            c->state = COMMIT_DEAD;
            c->doom = unknown ? why : doom;
            r->stats.doomed++;
        }
        assert(!r->dead.count || vec_last(&r->dead) < c->local_seq);
        if (c->state >= COMMIT_DEAD) r->dead.items[r->dead.count++] = c->local_seq;
        if (c->state == COMMIT_DEAD) note_dead(r, c, c->local_seq);
    }
}

static void forget_dead(replica *r, list *commits) {
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        if (c->state == COMMIT_DEAD) note_dead(r, c, 0);
    }
}

static hd_status doom(replica *r, hd_status why) {
    vec_clear(&r->dead);
    if (!vec_room(r->env, &r->dead, r->pending_count)) return HD_NOMEM;
    doom_list(r, &r->pending, why);
    doom_list(r, &r->queued, why);
    forget_dead(r, &r->pending);
    forget_dead(r, &r->queued);
    return HD_OK;
}

/* A queued commit that is dead was never sent: it goes at once. One that was sent waits, without
 * layers, for the verdict that will come for it too. */
static void bury_queued(replica *r) {
    LIST_FOR_SAFE (n, &r->queued) {
        commit *c = LIST_ENTRY(n, commit, link);
        if (c->state != COMMIT_DEAD) continue;
        list_remove(&c->link);
        r->pending_count--;
        list_push_back(&r->fated, &c->link);
    }
}

/* A dead commit's owner hears at once, not when the authority gets round to saying it. It may commit
 * again from within, but nothing leaves the list before the next verdict. */
static void tell_doomed(replica *r) {
    LIST_FOR_SAFE (n, &r->pending) {
        commit *c = LIST_ENTRY(n, commit, link);
        if (c->state != COMMIT_DEAD) continue;
        c->state = COMMIT_GONE;
        hd_verdict_fn done = c->done;
        void (*settled)(void *, commit *, hd_status) = c->settled;
        c->done = NULL;
        c->settled = NULL;
        tell_lineage(r, c);
        if (settled) settled(c->settled_ctx, c, c->doom);
        if (done) done(c->doom, c->done_ctx);
    }
}

/* The commit falls, with all that is stacked on it. HD_NOMEM: nothing has changed, except that the
 * commits are marked dead. */
static hd_status let_fall(replica *r, commit *c, hd_status why) {
    assert(why != HD_OK && c->state != COMMIT_GONE);
    if (c->state != COMMIT_DEAD) {
        c->state = COMMIT_DEAD;
        c->doom = why;
    }
    plan_drop(r);
    hd_status status = doom(r, why);
    if (!status) status = plan_leaving(r, &r->pending);
    if (!status) status = plan_leaving(r, &r->queued);
    /* observer.unseal tells of a refused seal, and why: `overwritten` need not. */
    if (!status && r->plan.count)
        status = plan_run(r, HD_CHANGE_REVERT, c->class, c->class != HD_COMMIT_DERIVED);
    if (status) plan_drop(r);
    return status;
}

hd_status replica_reject(replica *r, commit *c, hd_status why) {
    assert(why != HD_OK && r->polling);
    assert(c->state != COMMIT_QUEUED);
    if (r->in_body) return HD_USAGE;
    bool known = c->state == COMMIT_GONE; /* it fell with another one */
    hd_status status = known ? HD_OK : let_fall(r, c, why);
    if (status) return status;
    r->stats.rejected++;
    fate(r, c, why);
    if (!known) bury_queued(r);
    tell_fates(r, &r->fated);
    if (!known) tell_doomed(r);
    return HD_OK;
}

void replica_absorb(replica *r, commit *c) {
    assert(LIST_ENTRY(list_first(&r->pending), commit, link) == c);
    assert(c->state == COMMIT_IN && r->polling);
    r->stats.accepted++;
    fate(r, c, HD_OK);
}

static void tell_undecided(list *commits) {
    LIST_FOR (n, commits) {
        commit *c = LIST_ENTRY(n, commit, link);
        hd_verdict_fn done = c->done;
        c->done = NULL;
        if (done) done(HD_NO_VERDICT, c->done_ctx);
    }
}

void replica_tell_undecided(replica *r) {
    tell_undecided(&r->pending);
    tell_undecided(&r->queued);
    tell_fates(r, &r->fated);
    tell_fates(r, &r->trivial);
}

/* ---- the pump */

/* SABOTAGE_BASIS: dates claims as of the sending, where they must be as of the reading. */
static void redate_claims(replica *r, commit *c) {
    for (uint32_t i = 0; i < c->claims.count; i++) {
        place_id root = place_at(&r->places, c->claims.items[i].key & KEY_PLACE)->root;
        c->claims.items[i].basis = place_at(&r->places, root)->doc.seq;
    }
}

hd_status replica_send(replica *r) {
    assert(!r->announcing);
    hd_status status = HD_OK;
    while (!list_empty(&r->queued)) {
        commit *c = LIST_ENTRY(list_first(&r->queued), commit, link);
        if (SABOTAGED(r, SABOTAGE_BASIS)) redate_claims(r, c);
        status = r->authority->ops->submit(r->authority, c);
        if (status) break;
        assert(c->state == COMMIT_QUEUED);
        list_remove(&c->link);
        list_push_back(&r->pending, &c->link);
        c->state = COMMIT_SENT;
    }
    r->authority->ops->flush(r->authority);
    return status;
}

hd_status replica_pump(replica *r) {
    assert(!r->in_body);
    if (!list_empty(&r->trivial)) tell_fates(r, &r->trivial);
    hd_status status = list_empty(&r->queued) ? HD_OK : replica_send(r);
    r->polling = true;
    hd_status polled = r->authority->ops->poll(r->authority);
    r->polling = false;
    tell_fates(r, &r->fated);
    return status ? status : polled;
}
