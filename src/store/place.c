/* place.c -- interning documents and places; bringing places up to date. */
#include "store/place.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/object.h"
#include "value/pairs.h"

#define PLACE_DEPTH_MAX HEAP_DEPTH_MAX /* place_walk recurses once per segment */
#define FEW_CHILDREN    16             /* up to here the children are tried one by one */
#define MANY_CHANGES    1024           /* beyond, it may pay to try the children instead */

static uint32_t mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(h >> 32);
}

static uint32_t name_hash(uint32_t home_index, const struct key *id) {
    return mix(home_index, id->hash);
}
static uint32_t child_hash(place_id parent, const struct key *k) { return mix(parent, k->hash); }

/* ---- the table */

hd_status places_init(places *ps, const hd_env *env, hd_heap *heap) {
    assert(env && heap);
    *ps = (places){ .env = env, .heap = heap, .count = 1, .capacity = 16 };
    table_init(&ps->names, env);
    table_init(&ps->children, env);
    ps->at = env_new0(env, ps->capacity * sizeof *ps->at);
    if (!ps->at) return HD_NOMEM;
    /* homes.items[0] is unused, so that home 0 is no home. */
    if (!vec_push(env, &ps->homes, (doc_home){ 0 })) {
        places_fini(ps);
        return HD_NOMEM;
    }
    return HD_OK;
}

void places_fini(places *ps) {
    if (!ps->at) return;
    for (place_id id = 1; id < ps->count; id++) {
        place *p = &ps->at[id];
        if (!p->root) continue;
        if (p->root == id) {
            value_unref(p->value);
            key_unref(p->doc.id);
        } else {
            key_unref(p->in.key);
            path_unref(ps->heap, p->in.path);
        }
    }
    for (uint32_t i = 1; i < ps->homes.count; i++) {
        key_unref(ps->homes.items[i].space);
        key_unref(ps->homes.items[i].instance);
    }
    vec_fini(ps->env, &ps->homes);
    table_fini(&ps->names);
    table_fini(&ps->children);
    env_free(ps->env, ps->at, ps->capacity * sizeof *ps->at);
    ps->at = NULL;
}

static hd_status grow(places *ps) {
    uint32_t capacity = vec_next_capacity(ps->capacity, sizeof *ps->at);
    if (capacity > PLACE_MAX) return HD_LIMIT;
    place *at = env_resize(ps->env, ps->at, ps->capacity * sizeof *at, capacity * sizeof *at);
    if (!at) return HD_NOMEM;
    ps->at = at;
    ps->capacity = capacity;
    return HD_OK;
}

/* A zeroed record that is not in any table yet. */
static hd_status take_record(places *ps, place_id *out) {
    if (ps->free) {
        *out = ps->free;
        assert(!ps->at[*out].root && ps->freed); /* not in use */
        ps->free = ps->at[*out].first_child;
        ps->freed--;
    } else {
        if (ps->count == ps->capacity) {
            hd_status status = grow(ps);
            if (status) return status;
        }
        *out = ps->count++;
    }
    ps->at[*out] = (place){ 0 };
    return HD_OK;
}

static void give_record(places *ps, place_id id) {
    assert(id && id < ps->count);
    ps->at[id] = (place){ .first_child = ps->free };
    ps->free = id;
    ps->freed++;
}

/* ---- homes and documents */

/* A runtime has few, and looks for one when a cell is named, a link is followed or another writer's document is met.
 * The newest first. */
uint32_t places_find_home(const places *ps, const struct key *space, hd_scope scope,
                          const struct key *instance, bool meta) {
    for (uint32_t i = ps->homes.count - 1; i > 0; i--) {
        const doc_home *h = &ps->homes.items[i];
        if (h->space == space && h->scope == scope && h->instance == instance && h->meta == meta)
            return i;
    }
    return 0;
}

hd_status places_home(places *ps, struct key *space, hd_scope scope, struct key *instance,
                      bool meta, uint32_t *out) {
    assert(scope != HD_SCOPE_HERE);
    uint32_t known = places_find_home(ps, space, scope, instance, meta);
    if (known) {
        *out = known;
        return HD_OK;
    }
    doc_home h = { space, instance, scope, meta };
    if (!vec_push(ps->env, &ps->homes, h)) return HD_NOMEM;
    key_ref(space);
    if (instance) key_ref(instance);
    *out = ps->homes.count - 1;
    return HD_OK;
}

place_id places_find_doc(const places *ps, uint32_t home_index, const struct key *id) {
    assert(home_index < ps->homes.count);
    for (table_probe p = table_find(&ps->names, name_hash(home_index, id));
         table_next(&ps->names, &p);) {
        const place *d = &ps->at[p.index];
        if (d->doc.id == id && d->doc.home == home_index) return p.index;
    }
    return 0;
}

hd_status places_new_doc(places *ps, uint32_t home_index, struct key *id, place_id *out) {
    assert(home_index && home_index < ps->homes.count);
    assert(!places_find_doc(ps, home_index, id));
    place_id doc;
    hd_status status = take_record(ps, &doc);
    if (status) return status;
    status = table_insert(&ps->names, name_hash(home_index, id), doc);
    if (status) {
        give_record(ps, doc);
        return status;
    }
    place *p = &ps->at[doc];
    p->root = doc;
    p->doc.id = key_ref(id);
    p->doc.home = home_index;
    ps->documents++;
    *out = doc;
    return HD_OK;
}

hd_status places_doc(places *ps, uint32_t home_index, struct key *id, place_id *out) {
    place_id doc = places_find_doc(ps, home_index, id);
    if (!doc) return places_new_doc(ps, home_index, id, out);
    *out = doc;
    return HD_OK;
}

/* ---- inner places */

static place_id find_child(const places *ps, place_id parent, const struct key *k) {
    for (table_probe p = table_find(&ps->children, child_hash(parent, k));
         table_next(&ps->children, &p);) {
        const place *c = &ps->at[p.index];
        if (c->in.key == k && c->in.parent == parent) return p.index;
    }
    return 0;
}

static void link_child(places *ps, place_id parent, place_id child) {
    assert(parent != child && ps->at[child].root == ps->at[parent].root);
    place *p = &ps->at[parent], *c = &ps->at[child];
    c->in.prev = 0;
    c->in.next = p->first_child;
    if (c->in.next) ps->at[c->in.next].in.prev = child;
    p->first_child = child;
}

static void unlink_child(places *ps, place_id child) {
    assert(ps->at[child].root != child);
    place *c = &ps->at[child];
    if (c->in.prev) ps->at[c->in.prev].in.next = c->in.next;
    else ps->at[c->in.parent].first_child = c->in.next;
    if (c->in.next) ps->at[c->in.next].in.prev = c->in.prev;
}

hd_status places_child(places *ps, place_id parent, struct key *k, place_id *out) {
    assert(parent && parent < ps->count);
    assert(ps->at[parent].root);
    place_id found = find_child(ps, parent, k);
    if (found) {
        *out = found;
        return HD_OK;
    }
    if (path_depth(ps->heap, place_path(ps, parent)) >= PLACE_DEPTH_MAX) return HD_LIMIT;
    hd_path path;
    hd_status status = path_child(ps->heap, place_path(ps, parent), k, &path);
    if (status) return status;

    place_id child;
    status = take_record(ps, &child);
    if (!status) {
        status = table_insert(&ps->children, child_hash(parent, k), child);
        if (status) give_record(ps, child);
    }
    if (status) {
        path_unref(ps->heap, path);
        return status;
    }
    place *c = &ps->at[child];
    c->root = ps->at[parent].root;
    c->rev = ps->at[c->root].rev; /* it cannot have changed after its document did */
    c->in.key = key_ref(k);
    c->in.parent = parent;
    c->in.path = path;
    c->value = value_step(ps->heap, ps->at[parent].value, k, true);
    link_child(ps, parent, child);
    place_ref(ps, parent);
    *out = child;
    return HD_OK;
}

hd_status places_inner(places *ps, place_id doc, hd_path path, place_id *out) {
    assert(place_is_doc(ps, doc));
    uint32_t depth = path_depth(ps->heap, path);
    place_id at = doc;
    for (uint32_t i = 1; i <= depth; i++) {
        hd_path step = path_ancestor(ps->heap, path, i);
        place_id next;
        hd_status status = places_child(ps, at, path_key(ps->heap, step), &next);
        if (status) {
            if (at != doc) { /* the part that was made may be needed by nothing: then it is freed */
                place_ref(ps, at);
                place_unref(ps, at);
            }
            return status;
        }
        at = next;
    }
    *out = at;
    return HD_OK;
}

static bool inner_needed(const place *p) {
    return p->in.refs || p->watch || p->first_child || (p->in.flags & DOC_PINNED);
}

/* Whether the record must stay: something refers to the document, or knows of it what is not stored. */
static bool doc_needed(const place *p) {
    unsigned held = DOC_PINNED | DOC_VOLATILE | DOC_OVERLAY | DOC_UNSEALED | DOC_LOADING;
    return p->doc.refs || p->watch || p->first_child || p->doc.over || p->doc.writer ||
           (p->doc.flags & held);
}

static void doc_forget(places *ps, place_id id) {
    assert(!ps->at[id].first_child && !ps->at[id].doc.refs);
    assert(!ps->at[id].doc.over);
    place *p = &ps->at[id];
    if (ps->ended) ps->ended(ps->ended_ctx, id);
    table_remove(&ps->names, name_hash(p->doc.home, p->doc.id), id);
    value_unref(p->value);
    key_unref(p->doc.id);
    ps->documents--;
    give_record(ps, id);
}

bool places_forget(places *ps, place_id doc) {
    assert(place_is_doc(ps, doc));
    if (doc_needed(&ps->at[doc])) return false;
    doc_forget(ps, doc);
    return true;
}

/* The record of the document's metadata; 0: there is none. */
static place_id meta_of(const places *ps, const place *p) {
    const doc_home *h = &ps->homes.items[p->doc.home];
    uint32_t home = h->meta ? 0 : places_find_home(ps, h->space, h->scope, h->instance, true);
    return home ? places_find_doc(ps, home, p->doc.id) : 0;
}

/* Frees the record of a passing document that nothing needs, and that of its metadata: no reference to the metadata may
 * ever have been taken, the end of which would free it. */
static void let_pass(places *ps, place_id doc) {
    place *p = &ps->at[doc];
    if (!(p->doc.flags & DOC_PASSING) || doc_needed(p)) return;
    place_id meta = meta_of(ps, p);
    doc_forget(ps, doc);
    if (meta && (ps->at[meta].doc.flags & DOC_PASSING)) (void)places_forget(ps, meta);
}

void place_unref(places *ps, place_id id) {
    for (;;) {
        place *p = place_at(ps, id);
        if (p->root == id) {
            assert(p->doc.refs > 0);
            p->doc.refs--;
            let_pass(ps, id);
            return;
        }
        assert(p->in.refs > 0);
        p->in.refs--;
        if (inner_needed(p)) return;

        place_id parent = p->in.parent;
        unlink_child(ps, id);
        table_remove(&ps->children, child_hash(parent, p->in.key), id);
        key_unref(p->in.key);
        path_unref(ps->heap, p->in.path);
        give_record(ps, id);
        id = parent; /* and let go of the parent in turn */
    }
}

bool place_related(const places *ps, place_id a, place_id b) {
    const place *pa = place_at(ps, a), *pb = place_at(ps, b);
    if (pa->root != pb->root) return false;
    if (a == b || pa->root == a || pb->root == b) return true;
    return path_is_prefix(ps->heap, pa->in.path, pb->in.path) ||
           path_is_prefix(ps->heap, pb->in.path, pa->in.path);
}

/* ---- the walk */

/* One side of a place during a walk, MATCHING 2.4: whether every step to it was possible, and how
 * many containers lie on the way. Where a step was not possible because of a link, the value may be
 * found behind that link: a link that appears or vanishes is a change of every place below it. */
typedef struct side {
    hd_value value;
    bool reach;
    bool linked; /* a link is on the way; not with `reach` */
    uint32_t containers;
} side;

typedef struct walk {
    places *ps;
    uint64_t rev;
    place_changed_fn fn;
    void *ctx;
} walk;

static bool is_container(hd_value v) {
    unsigned tag = value_tag(v);
    return tag == TAG_ARRAY || tag == TAG_OBJECT;
}

static side step(const places *ps, side from, const struct key *k) {
    if (!from.reach || !is_container(from.value)) {
        bool linked = from.linked || value_tag(from.value) == TAG_LINK;
        return (side){ value_absent(), false, linked, from.containers };
    }
    return (side){ value_step(ps->heap, from.value, k, true), true, false, from.containers + 1 };
}

static bool same_side(side a, side b) {
    return a.value.bits == b.value.bits && a.reach == b.reach && a.linked == b.linked &&
           a.containers == b.containers;
}

static void walk_place(const walk *w, place_id id, side before, side after);

static void walk_child(const walk *w, place_id child, side before, side after) {
    assert(w->ps->at[child].root != child);
    const struct key *k = w->ps->at[child].in.key;
    walk_place(w, child, step(w->ps, before, k), step(w->ps, after, k));
}

static void walk_each_child(const walk *w, place_id id, side before, side after) {
    for (place_id c = w->ps->at[id].first_child; c; c = w->ps->at[c].in.next)
        walk_child(w, c, before, after);
}

static uint32_t count_children(const places *ps, place_id id, uint32_t limit) {
    uint32_t n = 0;
    for (place_id c = ps->at[id].first_child; c && n < limit; c = ps->at[c].in.next) n++;
    return n;
}

/* The place of an array's element, if there is one. */
static place_id child_of_index(const places *ps, place_id id, size_t i) {
    char digits[24];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + i % 10);
    while (i /= 10);
    const struct key *k = key_find(ps->heap, digits + at, sizeof digits - at);
    return k ? find_child(ps, id, k) : 0;
}

/* The place for an entry that differs, if there is one. */
static place_id child_of_pair(const places *ps, place_id id, const pairs *p) {
    return p->key ? find_child(ps, id, p->key) : child_of_index(ps, id, p->index);
}

/* Elements that only the longer of two arrays has: pairs go as far as both. */
static void walk_tail(const walk *w, place_id id, side before, side after) {
    assert(is_container(before.value) && is_container(after.value));
    places *ps = w->ps;
    size_t was = array_count(before.value), is = array_count(after.value);
    size_t from = was < is ? was : is, to = was < is ? is : was;
    if (to - from <= MANY_CHANGES) {
        for (size_t i = from; i < to; i++) {
            place_id child = child_of_index(ps, id, i);
            if (child) walk_child(w, child, before, after);
        }
        return;
    }
    for (place_id c = ps->at[id].first_child; c; c = ps->at[c].in.next) {
        uint32_t index = ps->at[c].in.key->index;
        if (index != KEY_NO_INDEX && index >= from) walk_child(w, c, before, after);
    }
}

/* Whether an entry lies at or before the one that the pairs have come to. */
static bool pairs_passed(const pairs *p, const struct key *k) {
    if (p->key) return key_compare(k, p->key) <= 0;
    return k->index != KEY_NO_INDEX && k->index <= p->index;
}

/* The children that the pairs have not come to. */
static void walk_rest(const walk *w, place_id id, side before, side after, const pairs *p) {
    for (place_id c = w->ps->at[id].first_child; c; c = w->ps->at[c].in.next)
        if (!pairs_passed(p, w->ps->at[c].in.key)) walk_child(w, c, before, after);
}

/* Two containers of one kind with many places below: go by what differs between them, until so much
 * does that going by the places is cheaper. */
static void walk_pairs(const walk *w, place_id id, side before, side after) {
    assert(value_tag(before.value) == value_tag(after.value));
    places *ps = w->ps;
    pairs p;
    uint32_t seen = 0;
    pairs_init(&p, before.value, after.value, false);
    while (pairs_next(&p)) {
        ps->walked++;
        place_id child = child_of_pair(ps, id, &p);
        if (child)
            walk_place(w, child, (side){ p.was, true, false, before.containers + 1 },
                       (side){ p.is, true, false, after.containers + 1 });
        if (++seen == MANY_CHANGES && count_children(ps, id, MANY_CHANGES) < MANY_CHANGES) {
            walk_rest(w, id, before, after, &p);
            return;
        }
    }
    if (value_tag(before.value) != TAG_ARRAY) return;
    walk_tail(w, id, before, after);
    place_id length = ps->heap->length_key ? find_child(ps, id, ps->heap->length_key) : 0;
    if (length) walk_child(w, length, before, after);
}

static void walk_children(const walk *w, place_id id, side before, side after) {
    bool alike = before.reach && after.reach && is_container(before.value) &&
                 value_tag(before.value) == value_tag(after.value);
    if (alike && count_children(w->ps, id, FEW_CHILDREN + 1) > FEW_CHILDREN)
        walk_pairs(w, id, before, after);
    else walk_each_child(w, id, before, after);
}

static bool differs(side before, side after, bool (*same)(hd_value, hd_value)) {
    if (before.reach && after.reach) return !same(before.value, after.value);
    if (before.reach != after.reach) return true;
    return before.linked != after.linked || before.containers != after.containers;
}

static void walk_place(const walk *w, place_id id, side before, side after) {
    places *ps = w->ps;
    ps->walked++;
    if (same_side(before, after)) return; /* shared: nothing below can differ */
    place *p = &ps->at[id];
    if (p->root != id) p->value = after.value;
    if (differs(before, after, value_equal)) {
        assert(p->rev <= w->rev);
        p->rev = w->rev;
        if (p->watch) {
            bool reshaped =
                !(p->in.flags & DOC_HAS_SHAPE) || differs(before, after, value_same_shape);
            w->fn(w->ctx, id, reshaped, before.value, after.value);
        }
    }
    if (ps->at[id].first_child) walk_children(w, id, before, after);
}

void place_walk(places *ps, place_id doc, hd_value before, place_changed_fn fn, void *ctx) {
    assert(!value_is_failed(before));
    assert(place_is_doc(ps, doc));
    const place *p = &ps->at[doc];
    hd_value after = p->value;
    uint64_t rev = p->rev;
    ps->walked++;
    if (p->watch) {
        bool reshaped = !(p->doc.flags & DOC_HAS_SHAPE) || !value_same_shape(before, after);
        fn(ctx, doc, reshaped, before, after);
    }
    if (!ps->at[doc].first_child) return;
    walk w = { ps, rev, fn, ctx };
    walk_children(&w, doc, (side){ before, true, false, 0 }, (side){ after, true, false, 0 });
}

/* The place after `id` in the tree of its document, parents first; 0: none. */
static place_id next_place(const places *ps, place_id id) {
    if (place_at(ps, id)->first_child) return place_at(ps, id)->first_child;
    while (!place_is_doc(ps, id)) {
        const place *p = place_at(ps, id);
        if (p->in.next) return p->in.next;
        id = p->in.parent;
    }
    return 0;
}

void place_touch(places *ps, place_id doc, uint64_t rev, place_changed_fn fn, void *ctx) {
    assert(rev >= place_at(ps, doc)->rev);
    assert(place_is_doc(ps, doc));
    place_show(place_at(ps, doc), place_at(ps, doc)->value, rev);
    for (place_id id = doc; id; id = next_place(ps, id)) {
        place *p = place_at(ps, id);
        assert(p->rev <= rev);
        p->rev = rev;
        if (p->watch) fn(ctx, id, true, value_absent(), value_absent());
    }
}

/* ---- invariants */

static void check_inner(const places *ps, place_id id) {
    const place *p = &ps->at[id];
    const place *parent = &ps->at[p->in.parent];
    assert(parent->root == p->root);
    assert(find_child(ps, p->in.parent, p->in.key) == id);
    assert(p->value.bits == value_step(ps->heap, parent->value, p->in.key, true).bits);
    assert(p->rev <= ps->at[p->root].rev);
    assert(!p->in.next || ps->at[p->in.next].in.prev == id);
    assert(p->in.prev ? ps->at[p->in.prev].in.next == id : parent->first_child == id);
    assert(path_key(ps->heap, p->in.path) == p->in.key);
    (void)parent;
}

void places_check(const places *ps) {
    uint32_t documents = 0, unused = 0;
    assert(!ps->at[0].root && value_is_absent(ps->at[0].value));
    for (place_id id = 1; id < ps->count; id++) {
        const place *p = &ps->at[id];
        unused += !p->root;
        if (!p->root) continue;
        if (p->root != id) {
            check_inner(ps, id);
            continue;
        }
        documents++;
        assert(places_find_doc(ps, p->doc.home, p->doc.id) == id);
        assert(!value_is_failed(p->value));
    }
    assert(documents == ps->documents && unused == ps->freed);
    (void)documents, (void)unused;
}
