/* replica.c -- confirmed state, pending layers, and what shows through: loading, committing, announcing.
 * What the authority tells is in replica_pump.c. */
#include "store/replica.h"

#include "base/env.h"
#include "value/diff.h"
#include "value/key.h"

/* ---- life */

static void observer_ignore(void *ctx, place_id id, bool shape, hd_value before, hd_value after) {
    (void)ctx, (void)id, (void)shape, (void)before, (void)after;
}

void replica_forget_observer(replica *r) { r->observer = (observer){ .changed = observer_ignore }; }

static void record_ended(void *ctx, place_id doc) {
    authority *a = ((replica *)ctx)->authority;
    if (a && a->ops->forget) a->ops->forget(a, doc);
}

hd_status replica_init(replica *r, const hd_env *env, hd_heap *heap) {
    assert(env && heap);
    *r = (replica){ .env = env, .heap = heap, .next_local = 1 };
    replica_forget_observer(r);
    list_init(&r->queued);
    list_init(&r->pending);
    list_init(&r->trivial);
    list_init(&r->fated);
    slab_init(&r->layers, env, sizeof(layer));
    env_random(env, r->session, sizeof r->session);
    if (!vec_push(env, &r->overs, (over){ 0 })) return HD_NOMEM;
    hd_status status = places_init(&r->places, env, heap);
    r->places.ended = record_ended;
    r->places.ended_ctx = r;
    return status;
}

static void free_commits(replica *r, list *commits) {
    while (!list_empty(commits)) {
        commit *c = LIST_ENTRY(list_first(commits), commit, link);
        list_remove(&c->link);
        replica_commit_free(r, c);
    }
}

static void drop_layers(replica *r, over *o) {
    while (o->bottom) {
        layer *l = o->bottom;
        o->bottom = l->next;
        value_unref(l->after);
        slab_give(&r->layers, l);
    }
    value_unref(o->confirmed);
}

static void commit_destroy(replica *r, commit *c) {
    const hd_env *env = r->env;
    vec_fini(env, &c->ops);
    vec_fini(env, &c->claims);
    vec_fini(env, &c->preconditions);
    vec_fini(env, &c->writes);
    vec_fini(env, &c->touches);
    vec_fini(env, &c->causes);
    vec_fini(env, &c->seqs);
    env_free(env, c, sizeof *c);
}

void replica_fini(replica *r) {
    if (!r->env) return;
    for (place_id id = 1; r->overs.count > 1 && id < r->places.count; id++) {
        place *p = &r->places.at[id];
        if (p->root == id && p->doc.over) drop_layers(r, &r->overs.items[p->doc.over]);
    }
    free_commits(r, &r->queued);
    free_commits(r, &r->pending);
    free_commits(r, &r->trivial);
    free_commits(r, &r->fated);
    for (uint32_t i = 0; i < r->spare.count; i++) commit_destroy(r, r->spare.items[i]);
    vec_fini(r->env, &r->spare);
    vec_fini(r->env, &r->listeners);
    vec_fini(r->env, &r->overs);
    vec_fini(r->env, &r->shown);
    vec_fini(r->env, &r->changes);
    vec_fini(r->env, &r->plan);
    vec_fini(r->env, &r->plan_afters);
    vec_fini(r->env, &r->ahead);
    vec_fini(r->env, &r->dead);
    vec_fini(r->env, &r->unsealed);
    slab_fini(&r->layers);
    places_fini(&r->places);
    r->env = NULL;
}

/* ---- commits as records */

commit *replica_commit_new(replica *r, hd_commit_class class) {
    assert(r->authority);
    commit *c;
    if (r->spare.count) {
        c = vec_pop(&r->spare);
    } else {
        /* Room to take it back is made here, so that freeing a commit never fails. */
        if (!vec_room(r->env, &r->spare, r->pending_count + 8)) return NULL;
        c = env_new0(r->env, sizeof *c);
        if (!c) return NULL;
    }
    c->class = class;
    c->state = COMMIT_QUEUED;
    c->heard = r->heard;
    return c;
}

/* Lets go of what the commit references, and keeps its vectors. */
static void commit_clear(replica *r, commit *c) {
    places *ps = &r->places;
    for (uint32_t i = 0; i < c->ops.count; i++) {
        op *o = &c->ops.items[i];
        value_unref(o->value);
        path_unref(r->heap, o->path);
        place_unref(ps, o->doc);
    }
    for (uint32_t i = 0; i < c->claims.count; i++)
        place_unref(ps, c->claims.items[i].key & KEY_PLACE);
    for (uint32_t i = 0; i < c->causes.count; i++) place_unref(ps, c->causes.items[i]);
    for (uint32_t i = 0; i < c->preconditions.count; i++)
        if (c->preconditions.items[i].place) place_unref(ps, c->preconditions.items[i].place);
    for (uint32_t i = 0; i < c->touches.count; i++) path_unref(r->heap, c->touches.items[i].path);
    for (uint32_t i = 0; i < c->writes.count; i++) key_unref(c->writes.items[i].by);
    for (uint32_t i = 0; i < c->seqs.count; i++) key_unref(c->seqs.items[i].space);
    value_unref(c->extra);
    vec_clear(&c->ops);
    vec_clear(&c->claims);
    vec_clear(&c->preconditions);
    vec_clear(&c->writes);
    vec_clear(&c->touches);
    vec_clear(&c->causes);
    vec_clear(&c->seqs);
    c->extra = value_absent();
    c->sealed = false;
    key_unref(c->by);
    key_unref(c->as);
    c->by = c->as = NULL;
    c->stamp = (stamp){ 0 };
    c->doom = HD_OK;
    c->done = NULL;
    c->settled = NULL;
    c->owner = c->lineage = NULL;
}

void replica_commit_free(replica *r, commit *c) {
    commit_clear(r, c);
    if (r->spare.count < r->spare.capacity) r->spare.items[r->spare.count++] = c;
    else commit_destroy(r, c);
}

/* ---- notices: the one change channel */

/* Only listeners are told of single changes. */
hd_status replica_notice_room(replica *r, uint32_t room) {
    bool there = !r->listeners.count ||
                 (vec_room(r->env, &r->shown, room) && vec_room(r->env, &r->changes, room));
    return there ? HD_OK : HD_NOMEM;
}

hd_status replica_notice_begin(replica *r, hd_change_kind kind, hd_commit_class class,
                               uint64_t group, uint32_t origin_node, uint32_t room) {
    if (r->announcing) {
        env_error(&r->error, HD_USAGE, "a listener may read, and must not write");
        return HD_USAGE;
    }
    assert(r->shown.count == 0);
    hd_status status = replica_notice_room(r, room);
    if (status) return status;
    r->kind = kind;
    r->class = class;
    r->group = group;
    r->origin_node = origin_node;
    r->overwrites = false;
    r->rev++;
    return HD_OK;
}

void replica_show(replica *r, place_id doc, hd_value after) {
    assert(place_is_doc(&r->places, doc));
    assert(!value_is_failed(after));
    hd_value before = place_at(&r->places, doc)->value;
    if (before.bits == after.bits || value_equal(before, after))
        value_unref(after); /* S7: no change, no announcement */
    else replica_show_changed(r, doc, after);
}

/* That a document arrives is no change of it: what has been derived of it elsewhere still holds. */
static uint64_t rev_of_change(const replica *r, place_id doc) {
    return r->kind == HD_CHANGE_LOAD ? place_at(&r->places, doc)->rev : r->rev;
}

void replica_show_changed(replica *r, place_id doc, hd_value after) {
    assert(!value_equal(place_at(&r->places, doc)->value, after));
    hd_value before = place_show(place_at(&r->places, doc), after, rev_of_change(r, doc));
    if (SABOTAGED(r, SABOTAGE_FLIP) && r->kind == HD_CHANGE_REVERT) {
        value_unref(before);
        return;
    }
    r->stats.changes++;
    place_walk(&r->places, doc, before, r->observer.changed, r->observer.ctx);
    if (r->kind == HD_CHANGE_INTEGRATE && r->observer.integrated)
        r->observer.integrated(r->observer.ctx, doc);
    bool removed = r->kind == HD_CHANGE_INTEGRATE && value_is_absent(after);
    if ((r->overwrites || removed) && place_at(&r->places, doc)->doc.writer &&
        r->observer.overwritten)
        r->observer.overwritten(r->observer.ctx, doc);
    if (r->listeners.count) {
        assert(r->shown.count < r->shown.capacity);
        r->shown.items[r->shown.count++] = (shown){ doc, before, value_ref(after) };
    } else {
        value_unref(before);
    }
}

static void tell_listeners(replica *r) {
    assert(!r->announcing && r->changes.capacity >= r->shown.count);
    vec_clear(&r->changes);
    for (uint32_t i = 0; i < r->shown.count; i++) {
        shown *s = &r->shown.items[i];
        uint64_t seq = replica_top(r, s->doc) ? 0 : place_at(&r->places, s->doc)->doc.seq;
        r->changes.items[r->changes.count++] = (hd_change){ { s->doc }, s->before, s->after, seq };
    }
    hd_notice notice = { r->kind, r->class, r->group, r->changes.items, r->changes.count };
    r->announcing = true;
    for (r->telling = 0; r->telling < r->listeners.count;) {
        listener l = r->listeners.items[r->telling++];
        bool own = l.group && r->group == l.group && r->kind == HD_CHANGE_COMMIT;
        if (!own) l.fn(&notice, l.ctx);
    }
    r->announcing = false;
}

void replica_notice_end(replica *r) {
    assert(!r->announcing);
    r->stats.notices++;
    if (r->shown.count) tell_listeners(r);
    for (uint32_t i = 0; i < r->shown.count; i++) {
        value_unref(r->shown.items[i].before);
        value_unref(r->shown.items[i].after);
    }
    vec_clear(&r->shown);
    if (r->observer.notice) r->observer.notice(r->observer.ctx, r->kind, r->origin_node);
}

/* ---- over records */

hd_status replica_over(replica *r, place_id doc) {
    assert(place_is_doc(&r->places, doc));
    place *p = place_at(&r->places, doc);
    if (p->doc.over) return HD_OK;
    uint32_t index = r->overs_free;
    if (index) {
        r->overs_free = r->overs.items[index].next_free;
    } else {
        if (!vec_push(r->env, &r->overs, (over){ 0 })) return HD_NOMEM;
        index = r->overs.count - 1;
    }
    r->overs.items[index] = (over){ .confirmed = value_ref(replica_confirmed(r, doc)) };
    p->doc.over = index;
    return HD_OK;
}

void replica_over_trim(replica *r, place_id doc) {
    assert(place_is_doc(&r->places, doc));
    place *p = place_at(&r->places, doc);
    over *o = &r->overs.items[p->doc.over];
    if (!p->doc.over || o->bottom) return;
    /* An overlay needs its confirmed value kept, unless there is none to keep. */
    if ((p->doc.flags & DOC_OVERLAY) && !value_is_absent(o->confirmed)) return;
    value_unref(o->confirmed);
    assert(!o->top && !o->layers);
    o->next_free = r->overs_free;
    r->overs_free = p->doc.over;
    p->doc.over = 0;
}

/* ---- loading */

bool replica_is_ahead(const replica *r, place_id doc) {
    for (uint32_t i = 0; i < r->ahead.count; i++)
        if (r->ahead.items[i] == doc) return true;
    return false;
}

/* It is no part of the snapshot that everything else is in; tx_note_place sees to that. */
static hd_status note_ahead(replica *r, place_id doc) {
    assert(place_is_doc(&r->places, doc));
    if (!vec_push(r->env, &r->ahead, doc)) return HD_NOMEM;
    place_ref(&r->places, doc);
    if (r->observer.ahead) r->observer.ahead(r->observer.ctx);
    return HD_OK;
}

void replica_caught_up(replica *r) {
    while (r->ahead.count) place_unref(&r->places, vec_pop(&r->ahead));
}

hd_status replica_load(replica *r, place_id doc) {
    assert(place_is_doc(&r->places, doc));
    assert(r->authority);
    place *p = place_at(&r->places, doc);
    if (p->doc.flags & (DOC_KNOWN | DOC_VOLATILE)) return HD_OK;
    if (p->doc.flags & DOC_LOADING) return HD_PENDING;
    loaded state = { 0 };
    hd_status status = r->authority->ops->load(r->authority, doc, &state);
    p = place_at(&r->places, doc);
    if (status == HD_PENDING) p->doc.flags |= DOC_LOADING;
    if (!status && state.ahead) status = note_ahead(r, doc);
    /* The commits that made it so will be told, and passed over: nodes that have not read it here hear of them now. */
    if (!status && state.ahead && replica_awaits(r, doc)) replica_touch(r, doc, true);
    if (!status) replica_meet(r, doc, &state);
    else value_unref(state.value);
    return status;
}

void replica_meet(replica *r, place_id doc, const loaded *state) {
    place *p = place_at(&r->places, doc);
    r->stats.loads++;
    p->doc.flags |= DOC_KNOWN;
    place_set_seq(p, state->seq);
    /* No node here has read it: the observer is told nothing, and its revision stays. Inner places may be
     * there. */
    hd_value before = place_show(p, state->present ? state->value : value_absent(), p->rev);
    assert(value_is_absent(before));
    place_walk(&r->places, doc, before, observer_ignore, NULL);
}

void replica_touch(replica *r, place_id doc, bool overwritten) {
    assert(place_is_doc(&r->places, doc) && !r->announcing);
    r->kind = HD_CHANGE_INTEGRATE;
    r->origin_node = 0;
    r->group = 0;
    place_touch(&r->places, doc, ++r->rev, r->observer.changed, r->observer.ctx);
    if (!overwritten || !place_at(&r->places, doc)->doc.writer || !r->observer.overwritten) return;
    r->overwrites = true;
    r->observer.overwritten(r->observer.ctx, doc);
    r->overwrites = false;
}

bool replica_can_forget(const replica *r, place_id doc) {
    const place *p = place_at(&r->places, doc);
    unsigned only_here = DOC_VOLATILE | DOC_OVERLAY | DOC_UNSEALED | DOC_LOADING;
    return (p->doc.flags & DOC_KNOWN) && !(p->doc.flags & only_here) && !p->doc.over;
}

void replica_forget(replica *r, place_id doc) {
    assert(!replica_top(r, doc));
    assert(replica_can_forget(r, doc));
    replica_touch(r, doc, false);
    place *p = place_at(&r->places, doc);
    hd_value before = place_show(p, value_absent(), r->rev);
    p->doc.seq = 0;
    p->doc.flags &= (uint16_t) ~(DOC_KNOWN | DOC_ASKED);
    place_walk(&r->places, doc, before, observer_ignore, NULL);
    value_unref(before);
    for (uint32_t i = r->ahead.count; i-- > 0;) {
        if (r->ahead.items[i] != doc) continue;
        vec_remove(&r->ahead, i);
        place_unref(&r->places, doc);
    }
}

hd_status replica_arrived(replica *r, place_id doc, const loaded *state, hd_status status) {
    assert((status || state) && place_is_doc(&r->places, doc));
    place *p = place_at(&r->places, doc);
    bool news = !status && !(p->doc.flags & DOC_KNOWN);
    hd_status begun =
        news ? replica_notice_begin(r, HD_CHANGE_LOAD, HD_COMMIT_SOURCE, 0, 0, 1) : HD_OK;
    if (begun) return begun;
    p->doc.flags &= (uint16_t)~DOC_LOADING;
    if (news) {
        r->stats.loads++;
        p->doc.flags |= DOC_KNOWN;
        place_set_seq(p, state->seq);
        replica_show(r, doc, state->present ? value_ref(state->value) : value_absent());
        replica_notice_end(r);
    }
    if (r->observer.arrived) r->observer.arrived(r->observer.ctx, doc, status);
    return HD_OK;
}

/* ---- committing */

/* Index of the first operation of a document. They stand together, and mostly in the order of the
 * writes: `from` is where those of the last one end. */
static uint32_t first_op_of(const commit *c, place_id doc, uint32_t from) {
    assert(c->ops.count);
    uint32_t i = from < c->ops.count ? from : 0;
    while (c->ops.items[i].doc != doc) i = i + 1 < c->ops.count ? i + 1 : 0;
    while (i && c->ops.items[i - 1].doc == doc) i--;
    return i;
}

static uint32_t op_count_of(const commit *c, uint32_t first) {
    uint32_t n = first;
    while (n < c->ops.count && c->ops.items[n].doc == c->ops.items[first].doc) n++;
    return n - first;
}

/* Returns where the document's operations end. */
static uint32_t push_layer(replica *r, commit *c, place_id doc, hd_value after, layer *l,
                           uint32_t from) {
    assert(place_at(&r->places, doc)->doc.over);
    place *p = place_at(&r->places, doc);
    over *o = &r->overs.items[p->doc.over];
    uint32_t first = first_op_of(c, doc, from);
    *l = (layer){ c, first, op_count_of(c, first), value_ref(after), NULL };
    if (o->top) o->top->next = l;
    else o->bottom = l;
    o->top = l;
    o->layers++;
    p->doc.flags &= (uint16_t) ~(DOC_OVERLAY | DOC_UNSEALED); /* a layer is above every overlay */
    return first + l->op_count;
}

/* Everything a commit's layers need; after this pushing cannot fail. */
static hd_status reserve_layers(replica *r, commit *c, layer **out) {
    layer *chain = NULL;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < c->writes.count && !status; i++) {
        layer *l = slab_take(&r->layers);
        if (!l) {
            status = HD_NOMEM;
            break;
        }
        l->next = chain;
        chain = l;
        status = replica_over(r, c->writes.items[i].doc);
    }
    if (status) {
        for (layer *l = chain, *next; l; l = next) {
            next = l->next;
            slab_give(&r->layers, l);
        }
        for (uint32_t i = 0; i < c->writes.count; i++) replica_over_trim(r, c->writes.items[i].doc);
        chain = NULL;
    }
    *out = chain;
    return status;
}

static void push_reserved(replica *r, commit *c, hd_value *after, layer *chain) {
    for (uint32_t i = 0, from = 0; i < c->writes.count; i++) {
        layer *l = chain;
        chain = chain->next;
        from = push_layer(r, c, c->writes.items[i].doc, after[i], l, from);
    }
}

hd_status replica_push_layers(replica *r, commit *c, hd_value *after) {
    assert(c->state == COMMIT_QUEUED && c->writes.count);
    layer *chain;
    hd_status status = reserve_layers(r, c, &chain);
    if (!status) push_reserved(r, c, after, chain);
    return status;
}

void replica_enqueue(replica *r, commit *c) {
    assert(c->state == COMMIT_QUEUED);
    assert(r->next_local > r->settled);
    c->local_seq = r->next_local++;
    c->state = COMMIT_QUEUED;
    list_push_back(&r->queued, &c->link);
    r->pending_count++;
    r->stats.commits++;
}

hd_status replica_commit(replica *r, commit *c, hd_value *after) {
    assert(c->ops.count >= c->writes.count);
    uint32_t n = c->writes.count;
    layer *chain;
    hd_status status = reserve_layers(r, c, &chain);
    if (!status)
        status =
            replica_notice_begin(r, HD_CHANGE_COMMIT, c->class, c->stamp.group, c->stamp.node, n);
    if (status) {
        for (layer *l = chain, *next; l; l = next) {
            next = l->next;
            slab_give(&r->layers, l);
        }
        for (uint32_t i = 0; i < n; i++) {
            replica_over_trim(r, c->writes.items[i].doc);
            value_unref(after[i]);
        }
        replica_commit_free(r, c);
        return status;
    }
    replica_enqueue(r, c);
    push_reserved(r, c, after, chain);
    for (uint32_t i = 0; i < n; i++) replica_show(r, c->writes.items[i].doc, after[i]);
    replica_notice_end(r);
    return HD_OK;
}

/* ---- invariants */

static void check_over(const replica *r, place_id id) {
    const place *p = &r->places.at[id];
    assert(p->doc.over < r->overs.count);
    const over *o = &r->overs.items[p->doc.over];
    assert(o->bottom || (p->doc.flags & DOC_OVERLAY)); /* else it says nothing, and is trimmed */
    uint32_t layers = 0;
    uint64_t last = 0;
    const layer *top = NULL;
    for (const layer *l = o->bottom; l; l = l->next) {
        assert(l->c->local_seq > last && l->c->state != COMMIT_GONE);
        assert(l->op_count && l->c->ops.items[l->first_op].doc == id);
        last = l->c->local_seq;
        top = l;
        layers++;
    }
    assert(layers == o->layers && top == o->top);
    if (!(p->doc.flags & DOC_OVERLAY))
        assert(value_equal(p->value, top ? top->after : o->confirmed));
    (void)layers, (void)top, (void)last;
}

/* The commits of a list in order of local seq, above `last`; returns the last one. */
static uint64_t check_commits(const replica *r, const list *commits, uint64_t last,
                              uint32_t *count) {
    LIST_FOR (n, commits) {
        const commit *c = LIST_ENTRY(n, commit, link);
        assert(c->local_seq > last && c->local_seq < r->next_local);
        assert(commits != &r->queued || c->state == COMMIT_QUEUED);
        assert(commits != &r->pending || c->state != COMMIT_QUEUED);
        assert(c->ops.count >= c->writes.count);
        last = c->local_seq;
        (*count)++;
    }
    (void)r;
    return last;
}

/* Every document that waits for a seal is in the list (others may be, too). */
static void check_unsealed(const replica *r) {
    uint32_t listed = 0, flagged = 0;
    for (uint32_t i = 0; i < r->unsealed.count; i++)
        listed += (place_at(&r->places, r->unsealed.items[i])->doc.flags & DOC_UNSEALED) != 0;
    for (place_id id = 1; id < r->places.count; id++)
        flagged += r->places.at[id].root == id && (r->places.at[id].doc.flags & DOC_UNSEALED);
    assert(listed >= flagged);
    (void)listed, (void)flagged;
}

void replica_check(const replica *r) {
    uint32_t count = 0;
    uint64_t last = check_commits(r, &r->pending, r->settled, &count);
    (void)check_commits(r, &r->queued, last, &count);
    assert(count == r->pending_count);
    assert(!r->announcing && !r->shown.count);
    for (uint32_t i = 0; i < r->ahead.count; i++)
        assert(place_is_doc(&r->places, r->ahead.items[i]));
    check_unsealed(r);
    places_check(&r->places);
    for (place_id id = 1; id < r->places.count; id++) {
        const place *p = &r->places.at[id];
        if (p->root != id) continue;
        assert(p->rev <= r->rev);
        /* A frame that found no memory leaves its plan, which the next frame drops. */
        assert(r->plan.count || !(p->doc.flags & DOC_PLANNED));
        assert(p->doc.home < r->places.homes.count);
        assert(!(p->doc.flags & DOC_UNSEALED) || (p->doc.flags & DOC_OVERLAY));
        if (p->doc.over) check_over(r, id);
    }
}
