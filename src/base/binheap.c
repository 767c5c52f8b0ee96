/* binheap.c -- sifting.
 *
 * Both sifts move a hole instead of swapping: the item on its way is written once, at its place. */
#include "base/binheap.h"
#include "base/env.h"
#include <assert.h>

void binheap_init(binheap *h, const hd_env *env) { *h = (binheap){ .env = env }; }

void binheap_fini(binheap *h) {
    env_free(h->env, h->slots, h->capacity * sizeof *h->slots);
    *h = (binheap){ .env = h->env };
}

/* The only writer of slots and of items' places. */
static inline void binheap_place(binheap *h, uint32_t i, binheap_slot slot) {
    h->slots[i] = slot;
    slot.item->at = i + 1;
}

static inline bool binheap_is_before(binheap_slot a, binheap_slot b) {
    return a.key < b.key || (a.key == b.key && a.item->tie < b.item->tie);
}

static void binheap_sift_up(binheap *h, uint32_t hole, binheap_slot slot) {
    while (hole > 0) {
        uint32_t parent = (hole - 1) / 2;
        if (!binheap_is_before(slot, h->slots[parent])) break;
        binheap_place(h, hole, h->slots[parent]);
        hole = parent;
    }
    binheap_place(h, hole, slot);
}

static void binheap_sift_down(binheap *h, uint32_t hole, binheap_slot slot) {
    for (;;) {
        uint32_t child = 2 * hole + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && binheap_is_before(h->slots[child + 1], h->slots[child]))
            child++;
        if (!binheap_is_before(h->slots[child], slot)) break;
        binheap_place(h, hole, h->slots[child]);
        hole = child;
    }
    binheap_place(h, hole, slot);
}

static void binheap_settle(binheap *h, uint32_t hole, binheap_slot slot) {
    bool up = hole > 0 && binheap_is_before(slot, h->slots[(hole - 1) / 2]);
    if (up) binheap_sift_up(h, hole, slot);
    else binheap_sift_down(h, hole, slot);
}

hd_status binheap_reserve(binheap *h, uint32_t count) {
    if (count <= h->capacity) return HD_OK;
    if (count > UINT32_MAX / 2) return HD_LIMIT; /* 2i + 2 must not wrap */
    uint32_t capacity = h->capacity ? h->capacity : 8;
    while (capacity < count) capacity *= 2;
    void *slots =
        env_resize(h->env, h->slots, h->capacity * sizeof *h->slots, capacity * sizeof *h->slots);
    if (!slots) return HD_NOMEM;
    h->slots = slots;
    h->capacity = capacity;
    return HD_OK;
}

hd_status binheap_push(binheap *h, binheap_item *item, uint64_t key) {
    assert(!binheap_linked(item));
    hd_status status = binheap_reserve(h, h->count + 1);
    if (status) return status;
    item->key = key;
    h->count++;
    binheap_sift_up(h, h->count - 1, (binheap_slot){ key, item });
    return HD_OK;
}

binheap_item *binheap_pop(binheap *h) {
    binheap_item *item = binheap_peek(h);
    if (item) binheap_remove(h, item);
    return item;
}

void binheap_remove(binheap *h, binheap_item *item) {
    uint32_t hole = item->at - 1;
    assert(hole < h->count && h->slots[hole].item == item);
    item->at = 0;
    h->count--;
    if (hole < h->count) binheap_settle(h, hole, h->slots[h->count]);
}

void binheap_update(binheap *h, binheap_item *item, uint64_t key) {
    uint32_t hole = item->at - 1;
    assert(hole < h->count && h->slots[hole].item == item);
    item->key = key;
    binheap_settle(h, hole, (binheap_slot){ key, item });
}

void binheap_check(const binheap *h) {
    assert(h->count <= h->capacity);
    for (uint32_t i = 0; i < h->count; i++) {
        assert(h->slots[i].item->at == i + 1);
        assert(h->slots[i].item->key == h->slots[i].key);
        assert(i == 0 || !binheap_is_before(h->slots[i], h->slots[(i - 1) / 2]));
    }
}
