/* place.c -- reading and changing what is at a path.
 *
 * Going down collects the containers on the way; coming up makes a changed copy of each. A value
 * nests at most HEAP_DEPTH_MAX deep, so a longer path leads nowhere and the way fits on the stack. */
#include "value/array.h"
#include "value/node.h"
#include "value/object.h"
#include "value/path.h"
#include "value/pool.h"

/* The segments of a path, from the root. */
typedef struct trail {
    uint32_t depth;
    struct key *segment[HEAP_DEPTH_MAX];
} trail;

/* False when no value can have such a path. */
static bool trail_of(trail *t, const hd_heap *heap, hd_path path) {
    t->depth = path_depth(heap, path);
    if (t->depth > heap->limits.depth) return false;
    for (uint32_t d = t->depth; d > 0; d--, path = path_parent(heap, path))
        t->segment[d - 1] = path_key(heap, path);
    assert(path == HD_PATH_ROOT && t->depth <= HEAP_DEPTH_MAX);
    return true;
}

hd_value value_step(const hd_heap *heap, hd_value v, const struct key *segment, bool last) {
    if (value_is_object(v)) return object_get(v, segment);
    if (!value_is_array(v)) return value_absent();
    if (segment->index != KEY_NO_INDEX) return array_get(v, segment->index);
    if (last && segment == heap->length_key) return value_small_int((int64_t)array_count(v));
    return value_absent();
}

hd_value value_get_path(const hd_heap *heap, hd_value v, hd_path path) {
    trail t;
    if (!trail_of(&t, heap, path)) return value_absent();
    for (uint32_t d = 0; d < t.depth; d++) v = value_step(heap, v, t.segment[d], d + 1 == t.depth);
    return v;
}

/* ---- Setting ---- */

/* What is in a container (or in nothing, which will become an object) at a segment where something
 * may be set. */
static hd_status step_for_set(hd_value v, const struct key *segment, hd_value *out) {
    *out = value_absent();
    if (value_is_absent(v)) return HD_OK;
    if (value_is_object(v)) {
        *out = object_get(v, segment);
        return HD_OK;
    }
    if (!value_is_array(v)) return HD_KIND;
    if (segment->index > array_count(v)) return HD_RANGE; /* KEY_NO_INDEX as well */
    *out = array_get(v, segment->index);
    return HD_OK;
}

static hd_value put(hd_heap *heap, hd_value container, struct key *segment, hd_value v) {
    if (value_is_absent(container)) return object_set(heap, hd_object(), segment, v);
    if (value_is_object(container)) return object_set(heap, container, segment, v);
    assert(value_is_array(container) && segment->index <= array_count(container));
    if (segment->index == array_count(container)) return array_append(heap, container, v);
    return array_set(heap, container, segment->index, v);
}

/* Containers on the way: held[d] is what segment[d] is taken from. */
typedef struct descent {
    trail t;
    hd_value held[HEAP_DEPTH_MAX];
} descent;

/* Copies of everything on the way with `v` at its end; takes v. */
static hd_value rise(hd_heap *heap, descent *way, uint32_t depth, hd_value v) {
    for (uint32_t d = depth; d > 0 && !value_is_failed(v); d--) {
        hd_value above = put(heap, way->held[d - 1], way->t.segment[d - 1], v);
        value_unref(v);
        v = above;
    }
    return v;
}

hd_value value_set_path(hd_heap *heap, hd_value v, hd_path path, hd_value to) {
    if (value_is_failed(v)) return v;
    if (value_is_failed(to)) return to;
    if (value_is_absent(to)) return value_failed(HD_KIND);
    descent way;
    if (!trail_of(&way.t, heap, path)) return value_failed(HD_LIMIT);
    for (uint32_t d = 0; d < way.t.depth; d++) {
        way.held[d] = v;
        hd_status status = step_for_set(v, way.t.segment[d], &v);
        if (status) return value_failed(status);
    }
    return rise(heap, &way, way.t.depth, value_ref(to));
}

/* ---- Removing ---- */

static hd_value take_out(hd_heap *heap, hd_value container, const struct key *segment) {
    if (value_is_object(container)) return object_remove(heap, container, segment);
    assert(value_is_array(container) && segment->index < array_count(container));
    return array_remove(heap, container, segment->index);
}

hd_value value_remove_path(hd_heap *heap, hd_value v, hd_path path) {
    hd_value whole = v;
    if (value_is_failed(v)) return v;
    descent way;
    if (!trail_of(&way.t, heap, path)) return value_ref(whole);
    if (way.t.depth == 0) return value_absent();
    for (uint32_t d = 0; d < way.t.depth; d++) {
        way.held[d] = v;
        v = value_step(heap, v, way.t.segment[d], false);
        if (value_is_absent(v)) return value_ref(whole);
    }
    uint32_t last = way.t.depth - 1;
    return rise(heap, &way, last, take_out(heap, way.held[last], way.t.segment[last]));
}

/* ---- Appending ---- */

hd_value value_append_path(hd_heap *heap, hd_value v, hd_path path, hd_value item) {
    if (value_is_failed(v)) return v;
    hd_value array = value_get_path(heap, v, path);
    if (value_is_absent(array)) array = hd_array();
    hd_value longer = array_append(heap, array, item);
    if (value_is_failed(longer)) return longer;
    hd_value changed = value_set_path(heap, v, path, longer);
    value_unref(longer);
    return changed;
}

/* ---- Public ---- */

hd_value hd_value_get(const hd_heap *heap, hd_value v, hd_path path) {
    return value_get_path(heap, v, path);
}

hd_value hd_value_set(hd_pool *pool, hd_value v, hd_path path, hd_value to) {
    return pool_take(pool, value_set_path(pool->heap, v, path, to));
}

hd_value hd_value_remove(hd_pool *pool, hd_value v, hd_path path) {
    return pool_take(pool, value_remove_path(pool->heap, v, path));
}

hd_value hd_value_append(hd_pool *pool, hd_value v, hd_path path, hd_value item) {
    return pool_take(pool, value_append_path(pool->heap, v, path, item));
}
