/* binheap.h -- a binary heap: which of many has the smallest key?
 *
 * Items are embedded in their objects and know their place in the heap, so an object can leave
 * from the middle or change its key without a search. Timers are the use: the key is a time.
 *
 *     struct timer { binheap_item item; ... };
 *     struct timer *t = BINHEAP_ENTRY(binheap_peek(&heap), struct timer, item);
 *
 * Among equal keys the item with the smaller `tie` comes first; among equal ties any may, but the same operations give
 * the same order each time.
 * Keys are kept beside the pointers: sifting compares without touching the objects.
 *
 * Cost: peek O(1); push, pop, remove, update O(log n). Only push and reserve may allocate. */
#ifndef BASE_BINHEAP_H
#define BASE_BINHEAP_H

#include <heddle/base.h>

/* Zeroed: in no heap. */
typedef struct binheap_item {
    uint64_t key; /* written by binheap_push and binheap_update only */
    uint64_t tie; /* the caller's: it may write it while the item is in no heap */
    uint32_t at;  /* place in the heap, counted from 1; 0: in no heap */
} binheap_item;

typedef struct binheap_slot {
    uint64_t key; /* = item->key */
    binheap_item *item;
} binheap_slot;

typedef struct binheap {
    const hd_env *env;
    binheap_slot *slots; /* [0] is the smallest; the children of i are 2i + 1 and 2i + 2 */
    uint32_t count, capacity;
} binheap;

#define BINHEAP_ENTRY(item_, type, member)                                                         \
    ((type *)(void *)((char *)(item_)-offsetof(type, member)))

void binheap_init(binheap *h, const hd_env *env);
/* Items still in the heap are left as they are. */
void binheap_fini(binheap *h);

static inline uint32_t binheap_count(const binheap *h) { return h->count; }
static inline bool binheap_linked(const binheap_item *item) { return item->at != 0; }

/* The item with the smallest key; NULL when the heap is empty. */
static inline binheap_item *binheap_peek(const binheap *h) {
    return h->count ? h->slots[0].item : NULL;
}

/* Makes room for `count` items in all, so that pushes up to there cannot fail. */
hd_status binheap_reserve(binheap *h, uint32_t count);

/* `item` must be in no heap. HD_NOMEM: nothing changed. */
hd_status binheap_push(binheap *h, binheap_item *item, uint64_t key);
/* Takes the smallest out; NULL when the heap is empty. */
binheap_item *binheap_pop(binheap *h);
/* `item` must be in this heap. */
void binheap_remove(binheap *h, binheap_item *item);
void binheap_update(binheap *h, binheap_item *item, uint64_t key);

/* Asserts order and back references; O(n). */
void binheap_check(const binheap *h);

#endif
