/* invalidation.c -- from changes to invalid nodes. */
#include "scheduler/invalidation.h"

#include "base/env.h"
#include "base/hash.h"

void invalidation_mark_special(scheduler *s, node_id id, bool was_invalid) {
    node *n = node_of(s, id);
    if (n->flags & NODE_GATED) {
        gates_invalidated(s, id);
        bool waits = node_is_live(&s->graph, n) && gates_eligible_at(s, n) > 0;
        s->stats.filtered += waits && !node_is_eligible(&s->graph, n);
    }
    if (!(n->flags & NODE_MATERIALISER) || was_invalid) return;
    /* It waits for its turn; without memory to remember that, its turn is now. */
    if (!vec_push(s->env, &s->waiting, id)) {
        n->flags |= NODE_PROMOTED;
        gates_apply(s, id, 0);
    }
}

static bool same_group(const scheduler *s, const node *n) {
    const cold *c = s->r->group && (n->flags & NODE_GATED) ? cold_of(s, n) : NULL;
    return c && c->group == s->r->group;
}

/* P5: a run's own commit does not concern it; nor does one of its own change group. */
static bool suppressed(scheduler *s, node_id id, node_id self) {
    bool own = id == self && !SABOTAGED(s, LEAVE_OUT_SUPPRESSION);
    if (!own && !same_group(s, node_of(s, id))) return false;
    s->stats.suppressed++;
    if (s->tracer) s->tracer->trigger(s, id, own ? TRIGGER_SKIP_OWN : TRIGGER_SKIP_GROUP);
    return true;
}

/* ---- causes that are written down */

_Static_assert(READER_SHAPE == KEY_SHAPE, "a reader's mark is that of its read");

static uint32_t cause_hash(uint32_t key) { return hash_fold(hash_u64(key)); }

static noted_cause *noted(const noted_causes *c, uint32_t key) {
    if (!c) return NULL;
    for (table_probe p = table_find(&c->index, cause_hash(key)); table_next(&c->index, &p);)
        if (c->items.items[p.index].key == key) return &c->items.items[p.index];
    return NULL;
}

/* What no retry can ask for any more leaves before the list grows. Those that stay have their room in
 * the table. */
static void forget_old(noted_causes *c, const node *n) {
    uint32_t count = c->items.count;
    table_clear(&c->index);
    c->items.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        noted_cause cause = c->items.items[i];
        if (cause.rev <= n->ran_rev - n->prev_back) continue;
        hd_status status = table_insert(&c->index, cause_hash(cause.key), c->items.count);
        assert(!status);
        (void)status;
        c->items.items[c->items.count++] = cause;
    }
}

static noted_causes *causes_of(scheduler *s, cold *c) {
    if (c->causes) return c->causes;
    c->causes = env_new0(s->env, sizeof *c->causes);
    if (c->causes) table_init(&c->causes->index, s->env);
    return c->causes;
}

static bool add_cause(scheduler *s, noted_causes *c, const node *n, uint32_t key) {
    if (c->items.count == c->items.capacity) forget_old(c, n);
    if (!vec_room(s->env, &c->items, 1)) return false;
    if (table_insert(&c->index, cause_hash(key), c->items.count)) return false;
    c->items.items[c->items.count++] = (noted_cause){ key, s->r->rev };
    return true;
}

static void note_cause(scheduler *s, const node *n, uint32_t key) {
    cold *c = cold_of(s, n);
    if (!c || !c->group) return;
    noted_cause *known = noted(c->causes, key);
    if (known) {
        known->rev = s->r->rev;
        return;
    }
    noted_causes *causes = causes_of(s, c);
    if (!causes || !add_cause(s, causes, n, key)) c->causes_lost = true;
}

/* ---- marking */

static void mark_one(scheduler *s, place_id at, uint32_t reader_node, bool shape, node_id self) {
    if ((reader_node & READER_SHAPE) && !shape) return;
    node_id id = reader_node & ~READER_SHAPE;
    if (suppressed(s, id, self)) return;
    if (node_of(s, id)->flags & NODE_GATED)
        note_cause(s, node_of(s, id), at | (reader_node & READER_SHAPE));
    if (s->tracer) {
        bool already = node_is_invalid(&s->graph, node_of(s, id));
        s->tracer->trigger(s, id, already ? TRIGGER_ALREADY : TRIGGER_MARK);
    }
    invalidation_mark(s, id);
}

/* Backwards, and looking at the word again each time: a dormant reader leaves the list as it is
 * marked. */
void invalidation_mark_some(scheduler *s, place_id at, uint32_t count, bool shape, node_id self) {
    if (shape) watch_list(place_at(&s->r->places, at)->watch)->shape_rev = s->r->rev;
    for (uint32_t i = count; i-- > 0;) {
        uint64_t word = place_at(&s->r->places, at)->watch;
        if (!word) return;
        if (watch_is_inline(word)) {
            if (i == 0) mark_one(s, at, watch_reader(word).node, shape, self);
            continue;
        }
        const watch *w = watch_list(word);
        if (i < w->count) mark_one(s, at, w->nodes[i], shape, self);
    }
}

void invalidation_mark_readers(scheduler *s, place_id at, bool shape, node_id self) {
    uint64_t word = place_at(&s->r->places, at)->watch;
    if (!word) return;
    s->tick = true;
    if (!watch_is_inline(word)) {
        invalidation_mark_some(s, at, watch_list(word)->count, shape, self);
    } else {
        mark_one(s, at, watch_reader(word).node, shape, self);
    }
}

/* Marks plain readers from the end of the list on; returns how many are left. They stand close together
 * in the order, so their bits gather here and go into the bitmap by the word. */
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

SELDOM static void mark_rest(scheduler *s, place_id at, watch *w, uint32_t left, node_id self) {
    w->shape_rev = s->r->rev;
    if (left) invalidation_mark_some(s, at, left, true, self);
}

void invalidation_mark_list(scheduler *s, place_id at, watch *w, node_id self) {
    uint32_t left = mark_plain(&s->graph, w, self);
    s->stats.marks += w->count - left;
    if (RARELY(left | w->shapes)) mark_rest(s, at, w, left, self);
}

/* ---- causes */

/* What concerned the node of it. */
static uint64_t changed_at(const scheduler *s, const cold *c, uint32_t key) {
    if (c && c->group && !c->causes_lost) {
        const noted_cause *known = noted(c->causes, key & (KEY_PLACE | KEY_SHAPE));
        return known ? known->rev : 0;
    }
    return invalidation_changed_at(s, key);
}

size_t invalidation_causes_until(const scheduler *s, node_id id, uint64_t since, uint64_t until,
                                 uint32_t *out, size_t max) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    const cold *c = cold_of(s, n);
    size_t count = 0;
    for (uint32_t i = 0; i < n->read_count; i++) {
        uint64_t rev = changed_at(s, c, reads[i].key);
        if (rev <= since || rev > until) continue;
        if (count < max) out[count] = reads[i].key;
        count++;
    }
    return count;
}

static place_id parent_of(const places *ps, place_id at) {
    return place_is_doc(ps, at) ? 0 : place_at(ps, at)->in.parent;
}

/* The nearest place above both (or one of them). They are of one document. */
static place_id common_ancestor(const places *ps, place_id a, place_id b) {
    while (a != b && !place_is_doc(ps, a)) {
        for (place_id up = b; up; up = parent_of(ps, up))
            if (up == a) return a;
        a = parent_of(ps, a);
    }
    return a;
}

/* Enters an address: once, or joined with the one of its document that is there already. */
static size_t join_address(const places *ps, place_id at, bool by_document, place_id *out,
                           size_t count) {
    for (size_t i = 0; i < count && i < CAUSES_MAX; i++) {
        if (out[i] == at) return count;
        if (!by_document || place_at(ps, out[i])->root != place_at(ps, at)->root) continue;
        out[i] = common_ancestor(ps, out[i], at);
        return count;
    }
    if (count < CAUSES_MAX) out[count] = at;
    return count + 1;
}

static size_t addresses(const scheduler *s, node_id id, uint64_t since, uint64_t until,
                        bool by_document, place_id *out) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    const cold *c = cold_of(s, n);
    size_t count = 0;
    for (uint32_t i = 0; i < n->read_count; i++) {
        uint64_t rev = changed_at(s, c, reads[i].key);
        if (rev <= since || rev > until) continue;
        count = join_address(&s->r->places, reads[i].key & KEY_PLACE, by_document, out, count);
        if (count > CAUSES_MAX && !by_document) break; /* too many: it takes the other way */
    }
    return count;
}

size_t invalidation_addresses(const scheduler *s, node_id id, uint64_t since, uint64_t until,
                              place_id out[CAUSES_MAX]) {
    size_t count = addresses(s, id, since, until, false, out);
    return count > CAUSES_MAX ? addresses(s, id, since, until, true, out) : count;
}

/* A document has arrived. Whoever was taken up from the store depends on it as it is: for him nothing
 * has changed. Backwards, as above. */
static void mark_unresumed(scheduler *s, place_id at, bool shape) {
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
        mark_one(s, at, reader_node, shape, 0);
    }
}

SELDOM static void changed_otherwise(scheduler *s, place_id at, bool shape, hd_value before,
                                     hd_value after) {
    if (s->tracer) s->tracer->change(s, at, before, after);
    if (s->r->kind == HD_CHANGE_LOAD) mark_unresumed(s, at, shape);
    else
        invalidation_mark_readers(s, at, shape,
                                  s->r->kind == HD_CHANGE_COMMIT ? s->r->origin_node : 0);
}

static void on_changed(void *ctx, place_id at, bool shape, hd_value before, hd_value after) {
    scheduler *s = ctx;
    if (RARELY(s->tracer || !shape || s->r->kind != HD_CHANGE_COMMIT)) {
        changed_otherwise(s, at, shape, before, after);
        return;
    }
    s->tick = true;
    if (RARELY(s->iteration && !s->r->origin_node)) { /* written from a body */
        s->behind = true;
        s->upstream_epoch++;
    }
    invalidation_mark_all(s, at, place_at(&s->r->places, at)->watch, s->r->origin_node);
}

/* A document that a run had to wait for is here, or never will be. */
static void on_arrived(void *ctx, place_id doc, hd_status status) {
    scheduler *s = ctx;
    (void)status; /* a failed load is met again by the read, which reports it */
    LIST_FOR_SAFE (at, &s->awaiting[doc % AWAITING_LISTS]) {
        cold *c = LIST_ENTRY(at, cold, awaiting);
        if (c->missing != doc) continue;
        registry_await(s, c, 0);
        invalidation_mark(s, c->node);
        gates_apply(s, c->node, 0);
    }
}

void invalidation_attach(scheduler *s) {
    s->r->observer.ctx = s;
    s->r->observer.changed = on_changed;
    s->r->observer.arrived = on_arrived;
}
