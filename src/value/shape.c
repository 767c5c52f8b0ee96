/* shape.c -- sorted key lists, and the cache that finds them again.
 *
 * The cache is direct-mapped by a hash of the key pointers: a list that hits costs one comparison per
 * key and no look at the keys themselves. A collision replaces the older list. */
#include "value/shape.h"

/* ---- Shapes ---- */

static shape *shape_new(hd_heap *heap, struct key *const *keys, unsigned count) {
    shape *s = heap_alloc(heap, sizeof *s + count * sizeof *keys);
    if (!s) return NULL;
    heap->made_blocks++;
    s->refs = 1;
    s->count = count;
    for (unsigned i = 0; i < count; i++) {
        assert(i == 0 || key_compare(keys[i - 1], keys[i]) < 0);
        s->keys[i] = key_ref(keys[i]);
    }
    return s;
}

void shape_unref(shape *s) {
    assert(s->refs > 0);
    if (--s->refs > 0) return;
    for (uint32_t i = 0; i < s->count; i++) key_unref(s->keys[i]);
    heap_free(s);
}

shape *shape_of(hd_heap *heap, struct key *const *keys, unsigned count, bool share) {
    if (!share) return shape_new(heap, keys, count);
    uint64_t words[64];
    uint8_t place[64];
    assert(count <= 64);
    for (unsigned i = 0; i < count; i++) {
        words[i] = (uint64_t)(uintptr_t)keys[i];
        place[i] = (uint8_t)i;
    }
    const order *known = order_find(heap, words, count, 1);
    if (known && known->sorted) return shape_ref(known->shape);
    shape *s = shape_new(heap, keys, count);
    if (s) order_learn(heap, words, count, 1, s, place);
    return s;
}

/* ---- Orders ---- */

static uint64_t order_hash(const uint64_t *keys, unsigned count, unsigned stride) {
    uint64_t h = count;
    for (unsigned i = 0; i < count; i++)
        h = (h ^ keys[(size_t)i * stride]) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

static order **order_slot(const hd_heap *heap, uint64_t hash) {
    return (order **)(uintptr_t)&heap->orders[(hash >> 32) % HEAP_ORDERS];
}

static bool order_is(const order *o, const uint64_t *keys, unsigned count, unsigned stride) {
    for (unsigned i = 0; i < count; i++)
        if ((uint64_t)(uintptr_t)o->keys[i] != keys[(size_t)i * stride]) return false;
    return true;
}

const order *order_find(const hd_heap *heap, const uint64_t *keys, unsigned count,
                        unsigned stride) {
    uint64_t hash = order_hash(keys, count, stride);
    const order *o = *order_slot(heap, hash);
    if (!o || o->hash != hash || o->count != count) return NULL;
    return order_is(o, keys, count, stride) ? o : NULL;
}

static void order_free(order *o) {
    shape_unref(o->shape);
    heap_free(o);
}

void order_learn(hd_heap *heap, const uint64_t *keys, unsigned count, unsigned stride, shape *s,
                 const uint8_t *place) {
    order *o = heap_alloc(heap, sizeof *o + count * (sizeof *o->keys + sizeof *place));
    if (!o) return;
    assert(s->count == count);
    uint64_t hash = order_hash(keys, count, stride);
    *o = (order){ .shape = shape_ref(s), .hash = hash, .count = count, .sorted = true };
    o->keys = (struct key **)(o + 1);
    o->place = (uint8_t *)(o->keys + count);
    for (unsigned i = 0; i < count; i++) {
        assert(place[i] < count);
        o->keys[i] = (struct key *)(uintptr_t)keys[(size_t)i * stride];
        assert(s->keys[place[i]] == o->keys[i]);
        o->place[i] = place[i];
        o->sorted = o->sorted && place[i] == i;
    }
    order **slot = order_slot(heap, hash);
    if (*slot) order_free(*slot);
    *slot = o;
}

void orders_clear(hd_heap *heap) {
    for (unsigned i = 0; i < HEAP_ORDERS; i++) {
        if (heap->orders[i]) order_free(heap->orders[i]);
        heap->orders[i] = NULL;
    }
}
