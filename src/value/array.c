/* array.c -- reading and changing arrays; the trees behind them are in tree.c and node.c. */
#include "value/array.h"
#include "value/diff.h"
#include "value/pool.h"
#include "value/tree.h"

size_t array_count(hd_value array) {
    if (!value_is_array(array)) return 0;
    const node *n = value_node(array);
    return n ? node_total(n) : 0;
}

hd_value array_get(hd_value array, size_t index) {
    const node *n = value_is_array(array) ? value_node(array) : NULL;
    if (!n || index >= node_total(n)) return value_absent();
    while (n->level) n = inner_children(n)[inner_locate(n, &index)];
    return ((const array_leaf *)n)->values[index];
}

/* The way to an entry, or behind the last one. */
static void way_to(way *w, const node *n, size_t index) {
    assert(!n->object && index <= node_total(n));
    w->append = index == node_total(n);
    for (w->depth = 0;; n = inner_children(n)[w->slot[w->depth++]]) {
        w->node[w->depth] = n;
        if (n->level == 0) break;
        w->slot[w->depth] = inner_locate(n, &index);
    }
    assert(w->depth < TREE_LEVELS && index <= n->count);
    w->slot[w->depth++] = (unsigned)index;
}

/* Why `v` cannot become an element of `array`; HD_OK if it can. */
static hd_status refuse(const hd_heap *heap, hd_value array, hd_value v) {
    if (value_is_failed(array)) return hd_value_status(array);
    if (value_is_failed(v)) return hd_value_status(v);
    if (!value_is_array(array) || value_is_absent(v)) return HD_KIND;
    return value_nesting(v) + 1 > heap->limits.depth ? HD_LIMIT : HD_OK;
}

static hd_value finish(hd_status status, node *root) {
    assert(status ? !root : !root || !root->object);
    return status ? value_failed(status) : node_value(root, false);
}

hd_value array_set(hd_heap *heap, hd_value array, size_t index, hd_value v) {
    hd_status status = refuse(heap, array, v);
    if (!status && index >= array_count(array)) status = HD_RANGE;
    if (status) return value_failed(status);
    way w;
    way_to(&w, value_node(array), index);
    if (leaf_values(way_leaf(&w))[way_slot(&w)].bits == v.bits) return value_ref(array);
    node *leaf = leaf_with(heap, way_leaf(&w), way_slot(&w), v), *root = NULL;
    status = leaf ? tree_rise(heap, &w, (parts){ { leaf }, 1 }, &root) : HD_NOMEM;
    return finish(status, root);
}

hd_value array_insert(hd_heap *heap, hd_value array, size_t index, hd_value v) {
    hd_status status = refuse(heap, array, v);
    if (!status && index > array_count(array)) status = HD_RANGE;
    if (!status && array_count(array) >= HEAP_COUNT_MAX) status = HD_LIMIT;
    if (status) return value_failed(status);
    node *root = value_node(array);
    if (!root) {
        root = leaf_make(heap, NULL, &v, 1);
        return finish(root ? HD_OK : HD_NOMEM, root);
    }
    way w;
    run r;
    parts p;
    way_to(&w, root, index);
    run_load(&r, way_leaf(&w));
    run_insert(&r, way_slot(&w), NULL, v);
    if (!run_emit(&r, heap, w.append, false, &p)) return value_failed(HD_NOMEM);
    status = tree_rise(heap, &w, p, &root);
    return finish(status, root);
}

hd_value array_append(hd_heap *heap, hd_value array, hd_value v) {
    return array_insert(heap, array, array_count(array), v);
}

hd_value array_remove(hd_heap *heap, hd_value array, size_t index) {
    hd_status status = refuse(heap, array, value_single(SINGLE_NULL));
    if (!status && index >= array_count(array)) status = HD_RANGE;
    if (status) return value_failed(status);
    way w;
    run r;
    parts p;
    way_to(&w, value_node(array), index);
    run_load(&r, way_leaf(&w));
    run_remove(&r, way_slot(&w));
    if (!run_emit(&r, heap, false, false, &p)) return value_failed(HD_NOMEM);
    node *root;
    status = tree_rise(heap, &w, p, &root);
    return finish(status, root);
}

hd_value array_truncate(hd_heap *heap, hd_value array, size_t count) {
    hd_status status = refuse(heap, array, value_single(SINGLE_NULL));
    if (status) return value_failed(status);
    if (count >= array_count(array)) return value_ref(array);
    if (count == 0) return hd_array();
    way w;
    way_to(&w, value_node(array), count - 1);
    node *leaf = leaf_make(heap, NULL, leaf_values(way_leaf(&w)), way_slot(&w) + 1), *root = NULL;
    status = leaf ? tree_rise_cut(heap, &w, (parts){ { leaf }, 1 }, &root) : HD_NOMEM;
    return finish(status, root);
}

/* Most arrays are one block. */
static hd_value take_few(hd_heap *heap, const hd_value *items, unsigned count) {
    node *leaf = leaf_take(heap, NULL, items, count);
    if (leaf && leaf->nesting <= heap->limits.depth) return node_value(leaf, false);
    if (leaf) node_unref(leaf);
    for (unsigned i = 0; !leaf && i < count; i++) value_unref(items[i]);
    return value_failed(leaf ? HD_LIMIT : HD_NOMEM);
}

hd_value array_take(hd_heap *heap, const hd_value *items, size_t count) {
    assert(count == 0 || (value_exists(items[0]) && value_exists(items[count - 1])));
    if (count == 0) return hd_array();
    if (count <= ARRAY_LEAF_MAX) return take_few(heap, items, (unsigned)count);
    node *root;
    hd_status status = tree_build(heap, NULL, items, count, &root);
    return finish(status, root);
}

/* ---- Comparing ---- */

/* The elements from the beginning of a node that both arrays have to their element `index` (of a) and `other`
 * (of b), with that element: these are equal. 0: no node on the way to both elements is the same. */
static size_t shared_before(const node *a, size_t index, const node *b, size_t other) {
    while (a->level > b->level) a = inner_children(a)[inner_locate(a, &index)];
    while (b->level > a->level) b = inner_children(b)[inner_locate(b, &other)];
    while (a != b || index != other) {
        if (!a->level) return 0;
        a = inner_children(a)[inner_locate(a, &index)];
        b = inner_children(b)[inner_locate(b, &other)];
    }
    return index + 1;
}

size_t array_common_tail(hd_value a, hd_value b, size_t most) {
    size_t of_a = array_count(a), of_b = array_count(b), same = 0;
    assert(most <= of_a && most <= of_b);
    while (same < most) {
        size_t at = of_a - 1 - same, other = of_b - 1 - same;
        size_t shared = shared_before(value_node(a), at, value_node(b), other);
        if (!shared && !value_equal(array_get(a, at), array_get(b, other))) break;
        same += shared ? shared : 1;
    }
    return same < most ? same : most;
}

/* ---- Public ---- */

hd_value hd_array(void) { return value_of_block(TAG_ARRAY, NULL); }

hd_value hd_array_of(hd_pool *pool, const hd_value *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (value_is_failed(items[i])) return items[i];
        if (value_is_absent(items[i])) return value_failed(HD_KIND);
    }
    for (size_t i = 0; i < count; i++) value_ref(items[i]);
    return pool_take(pool, array_take(pool->heap, items, count));
}

hd_value hd_array_append(hd_pool *pool, hd_value array, hd_value v) {
    return pool_take(pool, array_append(pool->heap, array, v));
}

hd_value hd_array_set(hd_pool *pool, hd_value array, size_t index, hd_value v) {
    return pool_take(pool, array_set(pool->heap, array, index, v));
}

hd_value hd_array_insert(hd_pool *pool, hd_value array, size_t index, hd_value v) {
    return pool_take(pool, array_insert(pool->heap, array, index, v));
}

hd_value hd_array_remove(hd_pool *pool, hd_value array, size_t index) {
    return pool_take(pool, array_remove(pool->heap, array, index));
}

hd_value hd_array_truncate(hd_pool *pool, hd_value array, size_t count) {
    return pool_take(pool, array_truncate(pool->heap, array, count));
}
