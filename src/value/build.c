/* build.c -- arrays and objects from a stack of values.
 *
 * Small objects are the common case, and the same lists of keys come again and again: then the
 * heap's orders (shape.h) say where each value belongs, and nothing is sorted. */
#include "value/build.h"
#include "value/array.h"
#include "value/pool.h"
#include "value/text.h"
#include "value/tree.h"

enum { BUILD_FIRST = 64, BUILD_KEPT = 4096 };

void build_init(build *b, hd_heap *heap) {
    *b =
        (build){ .heap = heap, .items = heap->build_spare, .capacity = heap->build_spare_capacity };
    heap->build_spare = NULL;
    heap->build_spare_capacity = 0;
    keys_hold(heap);
}

void build_drop(build *b, size_t from) {
    assert(from <= b->count && b->count <= b->capacity);
    for (size_t i = from; i < b->count; i++) value_unref((hd_value){ b->items[i] });
    b->count = from;
}

void build_fini(build *b) {
    build_drop(b, 0);
    if (b->capacity <= BUILD_KEPT && b->capacity > b->heap->build_spare_capacity) {
        heap_large_free(b->heap, b->heap->build_spare);
        b->heap->build_spare = b->items;
        b->heap->build_spare_capacity = b->capacity;
    } else heap_large_free(b->heap, b->items);
    keys_release(b->heap);
    *b = (build){ 0 };
}

bool build_grow(build *b) {
    size_t capacity = b->capacity ? b->capacity * 2 : BUILD_FIRST;
    uint64_t *items = heap_large_resize(b->heap, b->items, capacity * sizeof *items);
    if (!items) return false;
    b->items = items;
    b->capacity = capacity;
    return true;
}

/* Replaces the entries from `from` on by v, which holds their references now. */
static hd_status build_replace(build *b, size_t from, hd_value v) {
    assert(from <= b->count && !value_is_absent(v));
    b->count = from;
    if (value_is_failed(v)) return hd_value_status(v);
    return build_push(b, v) ? HD_OK : HD_NOMEM;
}

hd_status build_array(build *b, size_t n) {
    assert(n <= b->count);
    size_t from = b->count - n;
    _Static_assert(sizeof(hd_value) == sizeof *b->items, "the stack is an array of values");
    if (n == 0) return build_replace(b, from, hd_array()); /* there may be no stack yet */
    return build_replace(b, from, array_take(b->heap, (const hd_value *)(b->items + from), n));
}

/* ---- Objects: small ---- */

/* A leaf from values that are in the order of the shape. Takes them. */
static hd_value small_object(hd_heap *heap, shape *s, const hd_value *values, unsigned n) {
    node *leaf = leaf_take(heap, s, values, n);
    if (!leaf) {
        for (unsigned i = 0; i < n; i++) value_unref(values[i]);
        return value_failed(HD_NOMEM);
    }
    if (leaf->nesting <= heap->limits.depth) return node_value(leaf, true);
    node_unref(leaf);
    return value_failed(HD_LIMIT);
}

static hd_value object_in_order(hd_heap *heap, const order *o, const uint64_t *entries) {
    hd_value values[OBJECT_LEAF_MAX];
    assert(o->count <= OBJECT_LEAF_MAX && o->shape->count == o->count);
    for (unsigned i = 0; i < o->count; i++) values[o->place[i]].bits = entries[2 * i + 1];
    return small_object(heap, o->shape, values, o->count);
}

/* ---- Objects: any ---- */

typedef struct entry {
    struct key *key;
    hd_value value;
    size_t number; /* as given: 0, 1, ... */
} entry;

static void merge(const entry *a, size_t an, const entry *b, size_t bn, entry *out) {
    while (an && bn) {
        bool left = key_compare(a->key, b->key) <= 0; /* stable */
        *out++ = left ? *a++ : *b++;
        an -= left;
        bn -= !left;
    }
    memcpy(out, an ? a : b, (an + bn) * sizeof *out);
}

static void sort_short(entry *e, size_t n) {
    for (size_t i = 1; i < n; i++) {
        entry x = e[i];
        size_t j = i;
        for (; j > 0 && key_compare(e[j - 1].key, x.key) > 0; j--) e[j] = e[j - 1];
        e[j] = x;
    }
}

/* Stable; `spare` is room for n more. Returns where the sorted entries are. */
static entry *sort_entries(entry *e, entry *spare, size_t n) {
    enum { SHORT = 16 };
    for (size_t i = 0; i < n; i += SHORT) sort_short(e + i, n - i < SHORT ? n - i : SHORT);
    for (size_t width = SHORT; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t an = n - i < width ? n - i : width, rest = n - i - an;
            merge(e + i, an, e + i + an, rest < width ? rest : width, spare + i);
        }
        entry *swap = e;
        e = spare;
        spare = swap;
    }
    return e;
}

static void load_entries(entry *e, const uint64_t *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        e[i] = (entry){ (struct key *)(uintptr_t)items[2 * i], { items[2 * i + 1] }, i };
}

/* The number of the first entry that repeats the key of an earlier one; n: no entry does. */
static size_t first_duplicate(const entry *sorted, size_t n) {
    size_t first = n;
    for (size_t i = 1; i < n; i++)
        if (sorted[i].key == sorted[i - 1].key && sorted[i].number < first)
            first = sorted[i].number;
    return first;
}

/* Of equal keys the last value counts; returns how many are left. */
static size_t drop_repeated(entry *sorted, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && sorted[i + 1].key == sorted[i].key) value_unref(sorted[i].value);
        else sorted[kept++] = sorted[i];
    }
    return kept;
}

static void drop_entries(const entry *e, size_t n) {
    for (size_t i = 0; i < n; i++) value_unref(e[i].value);
}

/* Sorted, distinct entries, into a tree; `keys` and `values` are room for as many. Takes them. */
static hd_value object_of_sorted(hd_heap *heap, const entry *e, size_t n, struct key **keys,
                                 hd_value *values) {
    for (size_t i = 0; i < n; i++) {
        keys[i] = e[i].key;
        values[i] = e[i].value;
    }
    node *root;
    hd_status status = tree_build(heap, keys, values, n, &root);
    return status ? value_failed(status) : node_value(root, true);
}

/* Remembers where the keys of a small object went. */
static void learn(hd_heap *heap, const entry *sorted, const uint64_t *items, size_t n, hd_value v) {
    uint8_t place[OBJECT_LEAF_MAX];
    for (size_t i = 0; i < n; i++) place[sorted[i].number] = (uint8_t)i;
    order_learn(heap, items, (unsigned)n, 2, leaf_shape(value_node(v)), place);
}

/* `room` has space for 2n entries: sort_entries uses both halves, and the keys and values of the result are
 * then written to the half that does not hold the sorted entries. */
static hd_value object_of_entries(hd_heap *heap, const uint64_t *items, size_t n, entry *room,
                                  size_t *duplicate) {
    load_entries(room, items, n);
    entry *sorted = sort_entries(room, room + n, n);
    entry *spare = sorted == room ? room + n : room;
    size_t repeated = first_duplicate(sorted, n), kept = n;
    if (repeated < n && duplicate) {
        *duplicate = repeated;
        drop_entries(sorted, n);
        return value_failed(HD_EXISTS);
    }
    if (repeated < n) kept = drop_repeated(sorted, n);
    struct key **keys = (struct key **)(void *)spare;
    hd_value v = object_of_sorted(heap, sorted, kept, keys, (hd_value *)(void *)(keys + kept));
    if (kept == n && n <= OBJECT_LEAF_MAX && !value_is_failed(v)) learn(heap, sorted, items, n, v);
    return v;
}

static hd_value object_unknown(build *b, size_t n, size_t *duplicate) {
    entry few[2 * OBJECT_LEAF_MAX], *room = few;
    size_t from = b->count - 2 * n;
    if (n > OBJECT_LEAF_MAX) room = heap_large_new(b->heap, 2 * n * sizeof *room);
    if (!room) {
        build_drop(b, from);
        return value_failed(HD_NOMEM);
    }
    hd_value v = object_of_entries(b->heap, b->items + from, n, room, duplicate);
    if (room != few) heap_large_free(b->heap, room);
    return v;
}

hd_status build_object(build *b, size_t n, size_t *duplicate) {
    assert(2 * n <= b->count);
    size_t from = b->count - 2 * n;
    const order *known = NULL;
    if (n == 0) return build_replace(b, from, hd_object());
    if (n <= OBJECT_LEAF_MAX) known = order_find(b->heap, b->items + from, (unsigned)n, 2);
    hd_value v =
        known ? object_in_order(b->heap, known, b->items + from) : object_unknown(b, n, duplicate);
    return build_replace(b, from, v);
}

hd_value build_take(build *b) {
    assert(b->count == 1);
    return (hd_value){ b->items[--b->count] };
}

/* ---- Public builders ---- */

struct hd_builder {
    build b;
    hd_pool *pool;
    hd_kind kind;
    hd_status status; /* the first failure; everything after it is ignored */
};

hd_status hd_builder_open(hd_pool *pool, hd_kind kind, hd_builder **out) {
    *out = NULL;
    if (kind != HD_KIND_ARRAY && kind != HD_KIND_OBJECT) return HD_USAGE;
    hd_builder *b = heap_alloc(pool->heap, sizeof *b);
    if (!b) return HD_NOMEM;
    *b = (hd_builder){ .pool = pool, .kind = kind };
    build_init(&b->b, pool->heap);
    *out = b;
    return HD_OK;
}

static hd_status refuse(const hd_builder *b, hd_kind kind, hd_value v) {
    if (b->status) return b->status;
    if (value_is_failed(v)) return hd_value_status(v);
    if (b->kind != kind) return HD_USAGE;
    return value_is_absent(v) ? HD_KIND : HD_OK;
}

/* As key_make, without a reference: the build holds the table. */
static hd_status held_key(hd_heap *heap, const char *bytes, size_t length, struct key **out) {
    hd_status status = key_make(heap, bytes, length, out);
    if (!status) key_unref(*out);
    return status;
}

void hd_builder_put_n(hd_builder *b, const char *key, size_t length, hd_value v) {
    struct key *k = NULL;
    b->status = refuse(b, HD_KIND_OBJECT, v);
    if (!b->status) b->status = held_key(b->pool->heap, key, length, &k);
    if (b->status) return;
    if (!build_push_key(&b->b, k) || !build_push(&b->b, value_ref(v))) b->status = HD_NOMEM;
}

void hd_builder_put(hd_builder *b, const char *key, hd_value v) {
    hd_builder_put_n(b, key, strlen(key), v);
}

void hd_builder_add(hd_builder *b, hd_value v) {
    b->status = refuse(b, HD_KIND_ARRAY, v);
    if (!b->status && !build_push(&b->b, value_ref(v))) b->status = HD_NOMEM;
}

hd_value hd_builder_close(hd_builder *b) {
    hd_pool *pool = b->pool;
    hd_status status = b->status;
    if (!status && b->kind == HD_KIND_ARRAY) status = build_array(&b->b, b->b.count);
    else if (!status) status = build_object(&b->b, b->b.count / 2, NULL);
    hd_value v = status ? value_failed(status) : build_take(&b->b);
    build_fini(&b->b);
    heap_free(b);
    return pool_take(pool, v);
}
