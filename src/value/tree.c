/* tree.c -- carrying a change from a leaf to the root, and building trees whole. */
#include "value/tree.h"

/* ---- Runs ---- */

/* The entries of n behind those that are there. */
static void load_more(run *r, const node *n) {
    assert(n->level == r->level && n->object == r->object);
    if (n->level) memcpy(r->children + r->count, inner_children(n), n->count * sizeof *r->children);
    else memcpy(r->values + r->count, leaf_values(n), n->count * sizeof *r->values);
    if (n->object && n->level == 0)
        memcpy(r->keys + r->count, leaf_shape(n)->keys, n->count * sizeof *r->keys);
    r->count += n->count;
}

void run_load(run *r, const node *n) {
    r->count = 0;
    r->level = n->level;
    r->object = n->object;
    load_more(r, n);
}

void run_insert(run *r, unsigned slot, struct key *k, hd_value v) {
    assert(r->level == 0 && slot <= r->count);
    unsigned behind = r->count - slot;
    memmove(r->values + slot + 1, r->values + slot, behind * sizeof *r->values);
    r->values[slot] = v;
    if (r->object) {
        memmove(r->keys + slot + 1, r->keys + slot, behind * sizeof *r->keys);
        r->keys[slot] = k;
    }
    r->count++;
}

void run_remove(run *r, unsigned slot) {
    assert(r->level == 0 && slot < r->count);
    unsigned behind = --r->count - slot;
    memmove(r->values + slot, r->values + slot + 1, behind * sizeof *r->values);
    if (r->object) memmove(r->keys + slot, r->keys + slot + 1, behind * sizeof *r->keys);
}

/* Children [from, from + width) become the parts. */
static void run_replace(run *r, unsigned from, unsigned width, const parts *p) {
    assert(r->level > 0 && from + width <= r->count);
    unsigned behind = r->count - from - width;
    memmove(r->children + from + p->count, r->children + from + width,
            behind * sizeof *r->children);
    for (unsigned i = 0; i < p->count; i++) r->children[from + i] = p->node[i];
    r->count += p->count - width;
}

static node *emit_one(const run *r, hd_heap *heap, unsigned from, unsigned count, bool share) {
    if (r->level) return inner_make(heap, r->children + from, count);
    if (!r->object) return leaf_make(heap, NULL, r->values + from, count);
    shape *s = shape_of(heap, r->keys + from, count, share);
    if (!s) return NULL;
    node *n = leaf_make(heap, s, r->values + from, count);
    shape_unref(s);
    return n;
}

static void parts_drop(parts *p) {
    for (unsigned i = 0; i < p->count; i++) node_unref(p->node[i]);
    p->count = 0;
}

bool run_emit(const run *r, hd_heap *heap, bool append, bool share, parts *out) {
    unsigned max = r->level ? INNER_MAX : r->object ? OBJECT_LEAF_MAX : ARRAY_LEAF_MAX;
    unsigned left = r->count <= max ? r->count : append ? max : (r->count + 1) / 2;
    out->count = 0;
    assert(r->count <= 2 * max); /* two nodes have room for it */
    if (r->count == 0) return true;
    if (!(out->node[0] = emit_one(r, heap, 0, left, share))) return false;
    out->count = 1;
    if (left == r->count) return true;
    if (!(out->node[1] = emit_one(r, heap, left, r->count - left, false))) {
        parts_drop(out);
        return false;
    }
    out->count = 2;
    return true;
}

/* ---- Rising ---- */

/* True if the node at `depth` on the way is on the right edge of the tree. */
static bool on_edge(const way *w, unsigned depth) {
    for (unsigned i = 0; i < depth; i++)
        if (w->slot[i] + 1 < w->node[i]->count) return false;
    return true;
}

static bool too_small(const way *w, unsigned depth, const parts *p) {
    return p->count == 1 && p->node[0]->count < node_min(p->node[0]) && !on_edge(w, depth);
}

/* The only part joins its neighbour, or takes entries from it. The children [*from, *from + 2) of the
 * parent then become the parts. */
static bool join_neighbour(hd_heap *heap, const node *parent, unsigned *from, parts *p) {
    assert(p->count == 1 && parent->level == p->node[0]->level + 1u && *from < parent->count);
    bool right = *from + 1u < parent->count;
    const node *neighbour = inner_children(parent)[right ? *from + 1 : *from - 1];
    run r;
    run_load(&r, right ? p->node[0] : neighbour);
    load_more(&r, right ? neighbour : p->node[0]);
    if (!right) --*from;
    parts joined;
    if (!run_emit(&r, heap, false, false, &joined)) return false;
    parts_drop(p);
    *p = joined;
    return true;
}

static bool rise_splice(hd_heap *heap, const way *w, unsigned depth, parts *p) {
    const node *parent = w->node[depth - 1];
    unsigned from = w->slot[depth - 1], width = 1;
    if (too_small(w, depth, p)) {
        assert(parent->count > 1);
        if (!join_neighbour(heap, parent, &from, p)) return false;
        width = 2;
    }
    run r;
    run_load(&r, parent);
    run_replace(&r, from, width, p);
    parts next;
    if (!run_emit(&r, heap, w->append, false, &next)) return false;
    parts_drop(p); /* the new parents hold them */
    *p = next;
    return true;
}

/* The parts become those of the parent. False without memory: they are as they were, or joined. */
static bool rise_one(hd_heap *heap, const way *w, unsigned depth, parts *p) {
    if (p->count != 1 || too_small(w, depth, p)) return rise_splice(heap, w, depth, p);
    node *n = inner_with(heap, w->node[depth - 1], w->slot[depth - 1], p->node[0]);
    if (!n) return false;
    parts_drop(p);
    *p = (parts){ { n }, 1 };
    return true;
}

/* Two parts get a root above them; an only child is a root itself. */
static hd_status root_of(hd_heap *heap, parts p, node **root) {
    assert(p.count <= 2);
    *root = NULL;
    if (p.count == 2) {
        *root = inner_make(heap, p.node, 2);
        parts_drop(&p);
        return *root ? HD_OK : HD_NOMEM;
    }
    node *n = p.count ? p.node[0] : NULL;
    while (n && n->level && n->count == 1) {
        node *child = node_ref(inner_children(n)[0]);
        node_unref(n);
        n = child;
    }
    *root = n;
    return HD_OK;
}

hd_status tree_rise(hd_heap *heap, const way *w, parts p, node **root) {
    assert(w->depth > 0 && w->depth <= TREE_LEVELS && way_leaf(w)->level == 0);
    *root = NULL;
    for (unsigned depth = w->depth - 1; depth > 0; depth--) {
        if (rise_one(heap, w, depth, &p)) continue;
        parts_drop(&p);
        return HD_NOMEM;
    }
    return root_of(heap, p, root);
}

hd_status tree_rise_cut(hd_heap *heap, const way *w, parts p, node **root) {
    *root = NULL;
    for (unsigned depth = w->depth - 1; depth > 0; depth--) {
        run r;
        parts next;
        run_load(&r, w->node[depth - 1]);
        r.count = w->slot[depth - 1] + 1;
        run_replace(&r, r.count - 1, 1, &p);
        bool made = run_emit(&r, heap, false, false, &next);
        parts_drop(&p);
        if (!made) return HD_NOMEM;
        p = next;
    }
    return root_of(heap, p, root);
}

/* ---- Building whole ---- */

static void unref_all(const hd_value *values, size_t count) {
    for (size_t i = 0; i < count; i++) value_unref(values[i]);
}

static node *leaf_of(hd_heap *heap, struct key *const *keys, const hd_value *values, unsigned count,
                     bool share) {
    if (!keys) return leaf_take(heap, NULL, values, count);
    shape *s = shape_of(heap, keys, count, share);
    if (!s) return NULL;
    node *n = leaf_take(heap, s, values, count);
    shape_unref(s);
    return n;
}

/* All leaves; returns how many values went into them. */
static size_t build_leaves(hd_heap *heap, struct key *const *keys, const hd_value *values,
                           size_t count, node **nodes, size_t *made) {
    size_t max = keys ? OBJECT_LEAF_MAX : ARRAY_LEAF_MAX, done = 0;
    for (*made = 0; done < count; ++*made) {
        size_t n = count - done < max ? count - done : max;
        node *leaf =
            leaf_of(heap, keys ? keys + done : NULL, values + done, (unsigned)n, count <= max);
        if (!leaf) break;
        nodes[*made] = leaf;
        done += n;
    }
    return done;
}

/* The level above, in the same array; false without memory: the nodes that are left are released. */
static bool build_level(hd_heap *heap, node **nodes, size_t *count) {
    size_t made = 0, done = 0;
    bool ok = true;
    while (ok && done < *count) {
        size_t n = *count - done < INNER_MAX ? *count - done : INNER_MAX;
        node *parent = inner_make(heap, nodes + done, (unsigned)n);
        ok = parent != NULL;
        if (!ok) break;
        for (size_t i = 0; i < n; i++) node_unref(nodes[done + i]);
        done += n;
        nodes[made++] = parent;
    }
    if (!ok) {
        for (size_t i = 0; i < made; i++) node_unref(nodes[i]);
        for (size_t i = done; i < *count; i++) node_unref(nodes[i]);
    }
    *count = made;
    return ok;
}

static hd_status build_in(hd_heap *heap, struct key *const *keys, const hd_value *values,
                          size_t count, node **nodes, node **root) {
    size_t made;
    size_t done = build_leaves(heap, keys, values, count, nodes, &made);
    if (done < count) {
        for (size_t i = 0; i < made; i++) node_unref(nodes[i]);
        unref_all(values + done, count - done);
        return HD_NOMEM;
    }
    while (made > 1)
        if (!build_level(heap, nodes, &made)) return HD_NOMEM;
    *root = nodes[0];
    return HD_OK;
}

hd_status tree_build(hd_heap *heap, struct key *const *keys, const hd_value *values, size_t count,
                     node **root) {
    assert(count > 0);
    *root = NULL;
    if (count > HEAP_COUNT_MAX) {
        unref_all(values, count);
        return HD_LIMIT;
    }
    size_t max = keys ? OBJECT_LEAF_MAX : ARRAY_LEAF_MAX, leaves = (count + max - 1) / max;
    node *few[4], **nodes = few;
    if (leaves > 4) nodes = heap_large_new(heap, leaves * sizeof(node *));
    if (!nodes) {
        unref_all(values, count);
        return HD_NOMEM;
    }
    hd_status status = build_in(heap, keys, values, count, nodes, root);
    if (nodes != few) heap_large_free(heap, nodes);
    if (status || (*root)->nesting <= heap->limits.depth) return status;
    node_unref(*root);
    *root = NULL;
    return HD_LIMIT;
}
