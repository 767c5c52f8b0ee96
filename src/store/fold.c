/* fold.c -- what one operation makes of a document. A value is the fold of its log (S9): replica,
 * authorities, checkpoint and check all come here. */
#include "store/commit.h"

#include "value/array.h"
#include "value/heap.h"
#include "value/text.h"

static hd_value set_at(hd_heap *heap, hd_value document, hd_path path, hd_value owned) {
    if (path == HD_PATH_ROOT || value_is_failed(owned)) return owned;
    hd_value changed = value_set_path(heap, document, path, owned);
    value_unref(owned);
    return changed;
}

static hd_value spliced(hd_heap *heap, hd_value array, uint64_t keep, hd_value items) {
    if (value_is_absent(array)) array = hd_array();
    if (value_tag(array) != TAG_ARRAY || value_tag(items) != TAG_ARRAY)
        return value_failed(HD_KIND);
    if (keep > array_count(array)) return value_failed(HD_RANGE);
    hd_value result = array_truncate(heap, array, (size_t)keep);
    for (size_t i = 0; i < array_count(items) && !value_is_failed(result); i++) {
        hd_value longer = array_append(heap, result, array_get(items, i));
        value_unref(result);
        result = longer;
    }
    return result;
}

static hd_value incremented(hd_heap *heap, hd_value number, hd_value by) {
    if (value_is_absent(number)) number = value_small_int(0);
    hd_kind a = hd_value_kind(number), b = hd_value_kind(by);
    bool ints = a == HD_KIND_INT && b == HD_KIND_INT;
    if (!ints &&
        ((a != HD_KIND_INT && a != HD_KIND_DOUBLE) || (b != HD_KIND_INT && b != HD_KIND_DOUBLE)))
        return value_failed(HD_KIND);
    if (!ints) return value_double(hd_value_number(number) + hd_value_number(by));
    int64_t sum;
    if (__builtin_add_overflow(int_of(number), int_of(by), &sum)) return value_failed(HD_RANGE);
    return int_make(heap, sum);
}

/* An object's key. Removing an element of an array would move all elements behind it: that is refused. */
static hd_value removed(hd_heap *heap, hd_value document, hd_path path) {
    hd_value around = path == HD_PATH_ROOT
                          ? value_absent()
                          : value_get_path(heap, document, path_parent(heap, path));
    if (value_tag(around) == TAG_ARRAY) return value_failed(HD_KIND);
    return value_remove_path(heap, document, path);
}

static hd_value apply(hd_heap *heap, hd_value document, op_kind kind, hd_path path, hd_value value,
                      uint64_t keep) {
    switch (kind) {
    case OP_SET: return set_at(heap, document, path, value_ref(value));
    case OP_REMOVE: return removed(heap, document, path);
    case OP_SPLICE: {
        hd_value array = value_get_path(heap, document, path);
        return set_at(heap, document, path, spliced(heap, array, keep, value));
    }
    case OP_APPEND: return value_append_path(heap, document, path, value);
    case OP_INCREMENT: {
        hd_value number = value_get_path(heap, document, path);
        return set_at(heap, document, path, incremented(heap, number, value));
    }
    case OP_DELETE: return value_absent();
    }
    return value_failed(HD_PROTOCOL);
}

/* The same operations must make the same document everywhere, whatever this program's limit is. */
hd_value op_apply(hd_heap *heap, hd_value document, op_kind kind, hd_path path, hd_value value,
                  uint64_t keep) {
    uint32_t depth = heap->limits.depth;
    assert(depth <= HEAP_DEPTH_MAX);
    heap->limits.depth = HEAP_DEPTH_MAX;
    hd_value made = apply(heap, document, kind, path, value, keep);
    heap->limits.depth = depth;
    return made;
}
