/* invalidation.c -- from changes to invalid nodes. */
#include "scheduler/invalidation.h"

#include "base/env.h"
#include "scheduler/graph/writers.h"

void invalidation_mark_special(scheduler *s, node_id id, bool was_invalid) {
    assert(node_is_invalid(&s->graph, node_of(s, id)) || was_invalid);
    node *n = node_of(s, id);
    if (n->flags & NODE_GATED) {
        gates_invalidated(s, id, was_invalid);
        bool waits = node_is_live(&s->graph, n) && gates_eligible_at(s, n) > 0;
        s->stats.filtered += waits && !node_is_eligible(&s->graph, n);
    }
    if (!(n->flags & NODE_MATERIALISER) || was_invalid) return;
    if (n->pos < s->waiting_low) s->waiting_low = n->pos;
    s->upstream_epoch++; /* what is downstream of it is not up to date */
    /* It waits for idle priority; without memory for the list of those that do, it runs with the others. */
    if (!vec_push(s->env, &s->waiting, id)) {
        n->flags |= NODE_PROMOTED;
        gates_apply(s, id, 0);
    }
}

/* A node with a change group is not told of every change, so the revisions of what it reads do not tell its
 * causes: they are written down. */
static void note_cause(scheduler *s, node_id id, place_id at) {
    assert(node_of(s, id)->flags & NODE_GATED);
    cold *c = cold_of(s, node_of(s, id));
    if (c) c->quiet = false;
    if (c && c->group) causes_add(s, id, at);
}

/* ---- commits that a node does not hear of (P5) */

static bool same_group(const scheduler *s, const node *n) {
    const cold *c = s->r->group && (n->flags & NODE_GATED) ? cold_of(s, n) : NULL;
    return c && c->group == s->r->group;
}

/* Whether a reader of `at` reads another place than before: a link is on the way to it now, or at its end, or
 * was at its end. (Of a link that was on the way the reader has read the place itself.) */
static bool leads_elsewhere(const scheduler *s, place_id at, hd_value before) {
    const places *ps = &s->r->places;
    if (value_tag(before) == TAG_LINK) return true;
    while (value_tag(place_at(ps, at)->value) != TAG_LINK) {
        if (place_is_doc(ps, at)) return false;
        at = place_at(ps, at)->in.parent;
    }
    return true;
}

/* A sink reads again, since it may read other places now, and does not call its function. */
static void reread(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    if (!c->rereads) return;
    assert(c->group);
    if (!node_is_invalid(&s->graph, n)) c->quiet = true;
    invalidation_mark(s, id);
}

/* The node is not marked by its own commit, nor by one of its change group: true, and that is counted. It is
 * marked if it would miss what changes from then on, because what it reads has moved. */
static bool suppress(scheduler *s, place_id at, node_id id, node_id self, hd_value before) {
    bool own = id == self && !SABOTAGED(s, LEAVE_OUT_SUPPRESSION);
    bool group = !own && same_group(s, node_of(s, id));
    if (!own && !group) return false;
    bool rereads = group && cold_of(s, node_of(s, id))->rereads;
    if (!rereads && leads_elsewhere(s, at, before)) {
        /* Its run ends after this change, whose revision will not tell that it is a cause. */
        causes_add(s, id, at);
        return false;
    }
    s->stats.suppressed++;
    if (s->tracer) s->tracer->trigger(s, id, own ? TRIGGER_SKIP_OWN : TRIGGER_SKIP_GROUP);
    if (rereads) reread(s, id);
    return true;
}

/* ---- marking */

static void mark_one(scheduler *s, place_id at, uint32_t reader_node, bool shape, node_id self,
                     hd_value before) {
    assert(at && !(node_of(s, reader_node & ~READER_SHAPE)->flags & NODE_REMOVED));
    if ((reader_node & READER_SHAPE) && !shape) return;
    node_id id = reader_node & ~READER_SHAPE;
    if (suppress(s, at, id, self, before)) return;
    if (node_of(s, id)->flags & NODE_GATED) note_cause(s, id, at);
    if (s->tracer) {
        bool already = node_is_invalid(&s->graph, node_of(s, id));
        s->tracer->trigger(s, id, already ? TRIGGER_ALREADY : TRIGGER_MARK);
    }
    invalidation_mark(s, id);
}

/* Marks the first `count` entries of the reader list. From the end, and reading the watch again each time: a dormant
 * reader leaves the list when it is marked. */
static void mark_some(scheduler *s, place_id at, uint32_t count, bool shape, node_id self,
                      hd_value before) {
    if (shape) watch_list(place_at(&s->r->places, at)->watch)->shape_rev = s->r->rev;
    for (uint32_t i = count; i-- > 0;) {
        uint64_t word = place_at(&s->r->places, at)->watch;
        if (!word) return;
        if (watch_is_inline(word)) {
            if (i == 0) mark_one(s, at, watch_reader(word).node, shape, self, before);
            continue;
        }
        const watch *w = watch_list(word);
        if (i < w->count) mark_one(s, at, w->nodes[i], shape, self, before);
    }
}

void invalidation_mark_readers(scheduler *s, place_id at, bool shape, node_id self,
                               hd_value before) {
    assert(at);
    uint64_t word = place_at(&s->r->places, at)->watch;
    if (!word) return;
    s->tick = true;
    if (!watch_is_inline(word)) {
        mark_some(s, at, watch_list(word)->count, shape, self, before);
    } else {
        mark_one(s, at, watch_reader(word).node, shape, self, before);
    }
}

/* Marks plain readers, from the end of the list up to the first that is not plain; returns how many are
 * left. Readers often have neighbouring positions, so their bits are gathered and set a word at a time. */
static inline uint32_t mark_plain(graph *g, const watch *w, node_id self) {
    const uint32_t *end = w->nodes + w->count;
    for (const node *n; end > w->nodes && (n = invalidation_plain(g, end[-1], self));) {
        uint32_t word = n->pos >> 6;
        uint64_t bits = 0;
        do bits |= UINT64_C(1) << (n->pos & 63);
        while (--end > w->nodes && (n = invalidation_plain(g, end[-1], self)) &&
               n->pos >> 6 == word);
        graph_set_all_invalid(g, word, bits);
    }
    return (uint32_t)(end - w->nodes);
}

SELDOM static void mark_rest(scheduler *s, place_id at, watch *w, uint32_t left, node_id self,
                             hd_value before) {
    assert(left <= w->count);
    w->shape_rev = s->r->rev;
    if (left) mark_some(s, at, left, true, self, before);
}

void invalidation_mark_list(scheduler *s, place_id at, watch *w, node_id self, hd_value before) {
    uint32_t left = mark_plain(&s->graph, w, self);
    s->stats.marks += w->count - left;
    if (RARELY(left | w->shapes)) mark_rest(s, at, w, left, self, before);
}

/* A document was loaded: marks its readers, but for nodes that were resumed from the store. Those depended
 * on the document as it is now, so for them nothing has changed. From the end, as above. */
static void mark_unresumed(scheduler *s, place_id at, bool shape) {
    assert(s->r->kind == HD_CHANGE_LOAD);
    uint64_t word = place_at(&s->r->places, at)->watch;
    if (!word) return;
    uint32_t count = watch_is_inline(word) ? 1 : watch_list(word)->count;
    while (count-- > 0) {
        word = place_at(&s->r->places, at)->watch;
        if (!word) return;
        bool one = watch_is_inline(word);
        if (count >= (one ? 1 : watch_list(word)->count)) continue;
        uint32_t reader_node = one ? watch_reader(word).node : watch_list(word)->nodes[count];
        if (node_of(s, reader_node & ~READER_SHAPE)->flags & NODE_RESUMED) continue;
        mark_one(s, at, reader_node, shape, 0, value_absent());
    }
}

/* ---- which node changed a place */

node_id invalidation_author(const scheduler *s, place_id at) {
    return at < s->author_capacity ? s->authors[at] : 0;
}

/* Without memory the author is not known. */
static bool room_for_author(scheduler *s, place_id at) {
    uint32_t old = s->author_capacity, capacity = s->r->places.capacity;
    if (at < old) return true;
    assert(at < capacity);
    node_id *authors =
        env_resize(s->env, s->authors, old * sizeof *authors, capacity * sizeof *authors);
    if (!authors) return false;
    memset(authors + old, 0, (capacity - old) * sizeof *authors);
    s->authors = authors;
    s->author_capacity = capacity;
    return true;
}

/* A commit that a body, or a listener during a run, made beside its transaction is that node's. The only
 * writer of a document is known without this. */
SELDOM static void note_author(scheduler *s, place_id at) {
    node_id author = s->r->origin_node ? s->r->origin_node : s->running;
    const place *doc = place_doc(&s->r->places, at);
    if (!author) author = s->concluding;
    if (s->r->kind != HD_CHANGE_COMMIT) author = 0;
    if (doc->doc.writer == author && !(doc->doc.flags & DOC_MULTI_WRITER)) author = 0;
    if ((author || at < s->author_capacity) && room_for_author(s, at)) s->authors[at] = author;
}

SELDOM static void changed_otherwise(scheduler *s, place_id at, bool shape, hd_value before,
                                     hd_value after) {
    if (s->tracer) s->tracer->change(s, at, before, after);
    if (s->r->kind == HD_CHANGE_LOAD) mark_unresumed(s, at, shape);
    else
        invalidation_mark_readers(s, at, shape,
                                  s->r->kind == HD_CHANGE_COMMIT ? s->r->origin_node : 0, before);
}

static void on_changed(void *ctx, place_id at, bool shape, hd_value before, hd_value after) {
    scheduler *s = ctx;
    if (RARELY(s->asynchronous)) note_author(s, at);
    if (RARELY(s->tracer || !shape || s->r->kind != HD_CHANGE_COMMIT)) {
        changed_otherwise(s, at, shape, before, after);
        return;
    }
    s->tick = true;
    if (RARELY(s->iteration && !s->r->origin_node)) { /* written from a body */
        s->behind = true;
        s->asks = 1;
        s->upstream_epoch++;
    }
    invalidation_mark_all(s, at, place_at(&s->r->places, at)->watch, s->r->origin_node, before);
}

/* ---- outputs that were written over
 *
 * A node whose result is what is stored already has written and claimed nothing. So another runtime can store a result
 * of other inputs over it, while the inputs that stay are those that this node has read: I1 then asks for a run,
 * though no read of the node has changed. If the commit brings a row that says what the other run read, and those
 * values are here, its result is right and nothing is to be done: adopt.c clears the flag.
 *
 * A document that another program removes counts as written over, whatever commit removed it: that program may have had
 * no use for it any more, as for the documents of a row that has left its list. */

static void note_overwritten(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    if (node_is_invalid(&s->graph, n) || (n->flags & (NODE_EFFECT | NODE_OVERWRITTEN))) return;
    if (SABOTAGED(s, LEAVE_OUT_MENDING)) return;
    s->tick = true;
    if (vec_push(s->env, &s->overwritten, id)) n->flags |= NODE_OVERWRITTEN;
    else invalidation_mark(s, id);
}

/* Below an envelope other nodes write as well: what changes there says nothing. What a program writes over a part of a
 * document stands, also if it removes the document. */
static void on_overwritten(void *ctx, place_id doc) {
    scheduler *s = ctx;
    writer_walk walk;
    writer w;
    writers_begin(&walk, &s->graph, doc);
    while (writers_next(&walk, &w)) {
        if ((w.node & WRITER_ENVELOPE) || (!s->r->overwrites && w.place != doc)) continue;
        if (place_at(&s->r->places, w.place)->rev == s->r->rev) note_overwritten(s, w.node);
    }
}

void invalidation_mark_overwritten(scheduler *s) {
    for (uint32_t i = 0; i < s->overwritten.count; i++) {
        node_id id = s->overwritten.items[i];
        node *n = &s->graph.nodes[id]; /* it may have been removed, and the record used again */
        bool still = n->flags & NODE_OVERWRITTEN;
        n->flags &= ~NODE_OVERWRITTEN;
        if (!still || node_is_invalid(&s->graph, n)) continue;
        invalidation_mark(s, id);
        gates_release(s, id);
        gates_overwritten(s, id);
    }
    vec_clear(&s->overwritten);
}

/* ---- documents that nodes wait for */

/* A document that nodes wait for was loaded, or could not be. */
static void on_arrived(void *ctx, place_id doc, hd_status status) {
    scheduler *s = ctx;
    (void)status; /* a failed load is met again by the read, which reports it */
    LIST_FOR_SAFE (at, &s->awaiting[doc % AWAITING_LISTS]) {
        cold *c = LIST_ENTRY(at, cold, awaiting);
        if (c->missing != doc) continue;
        assert(node_of(s, c->node)->flags & NODE_WAITING);
        registry_await(s, c, 0);
        invalidation_mark(s, c->node);
        gates_apply(s, c->node, 0);
    }
}

void invalidation_fini(scheduler *s) {
    env_free(s->env, s->authors, s->author_capacity * sizeof *s->authors);
    vec_fini(s->env, &s->overwritten);
}

void invalidation_attach(scheduler *s) {
    assert(s->r == &s->rt->r);
    s->r->observer.ctx = s;
    s->r->observer.changed = on_changed;
    s->r->observer.arrived = on_arrived;
    s->r->observer.overwritten = on_overwritten;
}
