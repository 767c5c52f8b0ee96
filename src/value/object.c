/* object.c -- reading and changing objects; the trees behind them are in tree.c and node.c. */
#include "value/object.h"
#include "value/pool.h"
#include "value/tree.h"

size_t object_count(hd_value object) {
    if (!value_is_object(object)) return 0;
    const node *n = value_node(object);
    return n ? node_total(n) : 0;
}

static const node *leaf_for(const node *n, needle k) {
    while (n->level) n = inner_children(n)[inner_search(n, &k)];
    return n;
}

hd_value object_get(hd_value v, const struct key *k) {
    if (object_count(v) == 0) return value_absent();
    const node *n = value_node(v);
    assert(heap_of(n) == heap_of(k)); /* keys are compared by pointer */
    if (n->level) n = leaf_for(n, needle_of_key(k));
    int slot = leaf_find(n, k);
    return slot < 0 ? value_absent() : leaf_values(n)[slot];
}

hd_value object_get_bytes(hd_value v, const char *bytes, size_t length) {
    if (object_count(v) == 0) return value_absent();
    needle k = needle_of(bytes, length);
    const node *n = leaf_for(value_node(v), k);
    bool found;
    unsigned slot = leaf_search(n, &k, &found);
    return found ? leaf_values(n)[slot] : value_absent();
}

struct key *object_before(hd_value v, const char *bytes, size_t length) {
    if (object_count(v) == 0) return NULL;
    needle k = needle_of(bytes, length);
    const node *n = value_node(v),
               *left = NULL; /* left: all its keys are before; the nearest such */
    bool found;
    while (n->level) {
        unsigned slot = inner_search(n, &k);
        if (slot) left = inner_children(n)[slot - 1];
        n = inner_children(n)[slot];
    }
    unsigned slot = leaf_search(n, &k, &found);
    if (slot) return leaf_shape(n)->keys[slot - 1];
    if (!left) return NULL;
    while (left->level) left = inner_children(left)[left->count - 1u];
    return leaf_shape(left)->keys[left->count - 1u];
}

/* The way to a key, or to where it belongs; true if it is there. */
static bool way_to(way *w, const node *n, const struct key *k) {
    needle sought = needle_of_key(k);
    bool edge = true, found = false;
    for (w->depth = 0; n->level; n = inner_children(n)[w->slot[w->depth++]]) {
        w->node[w->depth] = n;
        w->slot[w->depth] = inner_search(n, &sought);
        edge = edge && w->slot[w->depth] + 1 == n->count;
    }
    w->node[w->depth] = n;
    int slot = leaf_find(n, k);
    found = slot >= 0;
    w->slot[w->depth] = found ? (unsigned)slot : leaf_search(n, &sought, &found);
    w->append = edge && !found && w->slot[w->depth] == n->count;
    assert(w->depth < TREE_LEVELS && w->slot[w->depth] <= n->count);
    w->depth++;
    return found;
}

/* Why `v` cannot become a value in `object`; HD_OK if it can. */
static hd_status refuse(const hd_heap *heap, hd_value object, hd_value v) {
    if (value_is_failed(object)) return hd_value_status(object);
    if (value_is_failed(v)) return hd_value_status(v);
    if (!value_is_object(object) || value_is_absent(v)) return HD_KIND;
    return value_nesting(v) + 1 > heap->limits.depth ? HD_LIMIT : HD_OK;
}

static hd_value finish(hd_status status, node *root) {
    assert(status ? !root : !root || root->object);
    return status ? value_failed(status) : node_value(root, true);
}

static hd_value first_entry(hd_heap *heap, struct key *k, hd_value v) {
    shape *s = shape_of(heap, &k, 1, true);
    if (!s) return value_failed(HD_NOMEM);
    node *n = leaf_make(heap, s, &v, 1);
    shape_unref(s);
    return finish(n ? HD_OK : HD_NOMEM, n);
}

static hd_value set_known(hd_heap *heap, hd_value object, const way *w, hd_value v) {
    if (leaf_values(way_leaf(w))[way_slot(w)].bits == v.bits) return value_ref(object);
    node *leaf = leaf_with(heap, way_leaf(w), way_slot(w), v), *root = NULL;
    hd_status status = leaf ? tree_rise(heap, w, (parts){ { leaf }, 1 }, &root) : HD_NOMEM;
    return finish(status, root);
}

static hd_value set_new(hd_heap *heap, const way *w, struct key *k, hd_value v) {
    if (node_total(w->node[0]) >= HEAP_COUNT_MAX) return value_failed(HD_LIMIT);
    run r;
    parts p;
    run_load(&r, way_leaf(w));
    run_insert(&r, way_slot(w), k, v);
    bool flat = w->depth == 1 && r.count <= OBJECT_LEAF_MAX;
    if (!run_emit(&r, heap, w->append, flat, &p)) return value_failed(HD_NOMEM);
    node *root;
    hd_status status = tree_rise(heap, w, p, &root);
    return finish(status, root);
}

hd_value object_set(hd_heap *heap, hd_value object, struct key *k, hd_value v) {
    hd_status status = refuse(heap, object, v);
    if (status) return value_failed(status);
    if (!value_node(object)) return first_entry(heap, k, v);
    way w;
    return way_to(&w, value_node(object), k) ? set_known(heap, object, &w, v)
                                             : set_new(heap, &w, k, v);
}

hd_value object_remove(hd_heap *heap, hd_value object, const struct key *k) {
    hd_status status = refuse(heap, object, value_single(SINGLE_NULL));
    if (status) return value_failed(status);
    way w;
    if (!value_node(object) || !way_to(&w, value_node(object), k)) return value_ref(object);
    run r;
    parts p;
    run_load(&r, way_leaf(&w));
    run_remove(&r, way_slot(&w));
    if (!run_emit(&r, heap, false, w.depth == 1, &p)) return value_failed(HD_NOMEM);
    node *root;
    status = tree_rise(heap, &w, p, &root);
    return finish(status, root);
}

/* Where the key is, or where it belongs. */
static unsigned slot_in_run(const run *r, const struct key *k, bool *found) {
    unsigned slot = 0;
    while (slot < r->count && r->keys[slot] != k) slot++;
    *found = slot < r->count;
    for (slot = *found ? slot : 0; !*found && slot < r->count; slot++)
        if (key_compare(r->keys[slot], k) > 0) break;
    return slot;
}

static void change_run(run *r, const object_change *c) {
    bool found;
    unsigned slot = slot_in_run(r, c->key, &found);
    if (value_is_absent(c->value)) {
        if (found) run_remove(r, slot);
    } else if (found) {
        r->values[slot] = c->value;
    } else {
        run_insert(r, slot, c->key, c->value);
    }
}

static hd_value patch_each(hd_heap *heap, hd_value object, const object_change *changes,
                           unsigned count) {
    value_ref(object);
    for (unsigned i = 0; i < count && !value_is_failed(object); i++) {
        const object_change *c = &changes[i];
        hd_value next = value_is_absent(c->value) ? object_remove(heap, object, c->key)
                                                  : object_set(heap, object, c->key, c->value);
        value_unref(object);
        object = next;
    }
    return object;
}

hd_value object_patch(hd_heap *heap, hd_value object, const object_change *changes,
                      unsigned count) {
    const node *root = value_is_object(object) ? value_node(object) : NULL;
    run r;
    parts p;
    if (!root || root->level || root->count + count > OBJECT_LEAF_MAX)
        return patch_each(heap, object, changes, count);
    run_load(&r, root);
    for (unsigned i = 0; i < count; i++) {
        bool gone = value_is_absent(changes[i].value);
        hd_status status = gone ? HD_OK : refuse(heap, object, changes[i].value);
        if (status) return value_failed(status);
        change_run(&r, &changes[i]);
    }
    if (!run_emit(&r, heap, false, true, &p)) return value_failed(HD_NOMEM);
    return finish(HD_OK, p.count ? p.node[0] : NULL);
}

/* ---- Public ---- */

hd_value hd_object(void) { return value_of_block(TAG_OBJECT, NULL); }

hd_value hd_object_set_n(hd_pool *pool, hd_value object, const char *key, size_t length,
                         hd_value v) {
    hd_status status = refuse(pool->heap, object, v);
    struct key *k = NULL;
    if (!status) status = key_make(pool->heap, key, length, &k);
    if (status) return value_failed(status);
    hd_value made = object_set(pool->heap, object, k, v);
    key_unref(k);
    return pool_take(pool, made);
}

hd_value hd_object_set(hd_pool *pool, hd_value object, const char *key, hd_value v) {
    return hd_object_set_n(pool, object, key, strlen(key), v);
}

/* A key that was never interned cannot be in any object. */
hd_value hd_object_remove(hd_pool *pool, hd_value object, const char *key) {
    hd_status status = refuse(pool->heap, object, value_single(SINGLE_NULL));
    if (status) return value_failed(status);
    struct key *k = key_find(pool->heap, key, strlen(key));
    return pool_take(pool, k ? object_remove(pool->heap, object, k) : value_ref(object));
}
