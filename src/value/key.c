/* key.c -- the table of interned texts.
 *
 * Open addressing with linear probing, at most two thirds full. Nothing is ever removed one by one:
 * when the table is full, keys without references are dropped and the rest move into a table of
 * fitting size. A sweep is paid for by the insertions since the last one, because the new table is
 * at most one third full. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "value/key.h"
#include "value/text.h"

enum { KEYS_FIRST = 256, KEY_TEXT_MIN = 8 };

static uint32_t hash_of(const hd_heap *heap, const char *bytes, size_t length) {
    uint64_t h = XXH3_64bits_withSeed(bytes, length, heap->seed);
    return (uint32_t)(h ^ (h >> 32));
}

/* A word of the table holds the pointer and the upper bits of the hash, so that other keys met on the
 * way are passed over without touching them. */
static uint64_t word_of(const struct key *k) {
    return (uint64_t)(uintptr_t)k | ((uint64_t)(k->hash >> 16) << 48);
}
static struct key *word_key(uint64_t word) {
    return (struct key *)(uintptr_t)(word & VALUE_PAYLOAD);
}

static bool key_is(const struct key *k, const char *bytes, size_t length, uint32_t hash) {
    return k->hash == hash && k->length == length && memcmp(key_bytes(k), bytes, length) == 0;
}

/* Where the key is, or where it belongs. */
static uint32_t slot_of(const hd_heap *heap, const char *bytes, size_t length, uint32_t hash) {
    for (uint32_t i = hash & heap->keys_mask;; i = (i + 1) & heap->keys_mask) {
        uint64_t word = heap->keys[i];
        if (!word) return i;
        if (word >> 48 == hash >> 16 && key_is(word_key(word), bytes, length, hash)) return i;
    }
}

/* ---- Blocks of keys ---- */

/* "0" or digits without a leading zero, below UINT32_MAX. */
static uint32_t index_of(const char *bytes, size_t length) {
    if (length == 0 || length > 10 || (bytes[0] == '0' && length > 1)) return KEY_NO_INDEX;
    uint64_t index = 0;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < '0' || bytes[i] > '9') return KEY_NO_INDEX;
        index = index * 10 + (uint64_t)(bytes[i] - '0');
    }
    return index < KEY_NO_INDEX ? (uint32_t)index : KEY_NO_INDEX;
}

/* Room for the text and its NUL; NULL without memory. */
static struct key *key_alloc(hd_heap *heap, size_t length, char **bytes) {
    if (length <= KEY_INLINE_MAX) {
        size_t room = length + 1 < KEY_TEXT_MIN ? KEY_TEXT_MIN : length + 1;
        struct key *k = heap_alloc(heap, sizeof *k + room);
        if (!k) return NULL;
        memset(k->text, 0, KEY_TEXT_MIN);
        *bytes = k->text;
        return k;
    }
    char *outside = heap_large_new(heap, length + 1);
    if (!outside) return NULL;
    struct key *k = heap_alloc(heap, sizeof *k + sizeof outside);
    if (!k) {
        heap_large_free(heap, outside);
        return NULL;
    }
    memcpy(k->text, &outside, sizeof outside);
    *bytes = outside;
    return k;
}

static struct key *key_new(hd_heap *heap, const char *bytes, size_t length, uint32_t hash) {
    char *text;
    struct key *k = key_alloc(heap, length, &text);
    if (!k) return NULL;
    k->refs = 0;
    k->length = (uint32_t)length;
    k->hash = hash;
    k->index = index_of(bytes, length);
    memcpy(text, bytes, length);
    text[length] = 0;
    return k;
}

static void key_free(hd_heap *heap, struct key *k) {
    if (k->length > KEY_INLINE_MAX) {
        char *outside;
        memcpy(&outside, k->text, sizeof outside);
        heap_large_free(heap, outside);
    }
    heap_free(k);
}

/* ---- Sweep and growth ---- */

static uint32_t count_kept(const hd_heap *heap) {
    if (heap->keys_held) return heap->keys_count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i <= heap->keys_mask; i++)
        kept += heap->keys[i] && word_key(heap->keys[i])->refs;
    return kept;
}

static void move_kept(hd_heap *heap, uint64_t *to, uint32_t mask) {
    for (uint32_t i = 0; i <= heap->keys_mask; i++) {
        if (!heap->keys[i]) continue;
        struct key *k = word_key(heap->keys[i]);
        if (k->refs == 0 && !heap->keys_held) {
            key_free(heap, k);
            continue;
        }
        uint32_t at = k->hash & mask;
        while (to[at]) at = (at + 1) & mask;
        to[at] = word_of(k);
    }
}

/* The full table becomes one that is at most a third full. */
static bool keys_renew(hd_heap *heap) {
    if (!heap->keys_held) heap->forget(heap); /* shapes remembered by order hold keys */
    uint32_t kept = count_kept(heap);
    uint64_t capacity = KEYS_FIRST;
    while (capacity < (uint64_t)kept * 3 + 1) capacity *= 2;
    if (capacity > UINT32_C(1) << 31) return false;
    uint64_t *fresh = heap_large_new(heap, capacity * sizeof *fresh);
    if (!fresh) return false;
    memset(fresh, 0, capacity * sizeof *fresh);
    move_kept(heap, fresh, (uint32_t)capacity - 1);
    heap_large_free(heap, heap->keys);
    heap->keys = fresh;
    heap->keys_mask = (uint32_t)capacity - 1;
    heap->keys_count = kept;
    return true;
}

/* ---- Interning ---- */

static bool is_full(const hd_heap *heap) {
    return (uint64_t)heap->keys_count * 3 >= ((uint64_t)heap->keys_mask + 1) * 2;
}

/* `at` is where it belongs, unless the table is renewed first. */
static struct key *key_add(hd_heap *heap, const char *bytes, size_t length, uint32_t hash,
                           uint32_t at) {
    if (length > heap->limits.size) return NULL;
    if (is_full(heap)) {
        if (!keys_renew(heap)) return NULL;
        at = slot_of(heap, bytes, length, hash);
    }
    struct key *k = key_new(heap, bytes, length, hash);
    if (!k) return NULL;
    heap->keys[at] = word_of(k);
    heap->keys_count++;
    return k;
}

/* The key, without a reference: the next sweep frees it, unless the table is held. */
static struct key *key_unowned(hd_heap *heap, const char *bytes, size_t length) {
    uint32_t hash = hash_of(heap, bytes, length);
    uint32_t at = slot_of(heap, bytes, length, hash);
    struct key *k = word_key(heap->keys[at]);
    return k ? k : key_add(heap, bytes, length, hash, at);
}

struct key *key_intern(hd_heap *heap, const char *bytes, size_t length) {
    struct key *k = key_unowned(heap, bytes, length);
    return k ? key_ref(k) : NULL;
}

struct key *key_intern_held(hd_heap *heap, const char *bytes, size_t length) {
    assert(heap->keys_held > 0);
    return key_unowned(heap, bytes, length);
}

struct key *key_find(const hd_heap *heap, const char *bytes, size_t length) {
    return word_key(heap->keys[slot_of(heap, bytes, length, hash_of(heap, bytes, length))]);
}

hd_status key_make(hd_heap *heap, const char *bytes, size_t length, struct key **out) {
    uint32_t hash = hash_of(heap, bytes, length);
    uint32_t at = slot_of(heap, bytes, length, hash);
    *out = word_key(heap->keys[at]);
    if (!*out) {
        if (length > heap->limits.size) return HD_LIMIT;
        if (!utf8_valid(bytes, length, NULL)) return HD_SYNTAX;
        *out = key_add(heap, bytes, length, hash, at);
        if (!*out) return HD_NOMEM;
    }
    key_ref(*out);
    return HD_OK;
}

/* ---- Order ---- */

int key_compare_behind(const struct key *a, const needle *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int c = shorter > 8 ? memcmp(key_bytes(a) + 8, b->bytes + 8, shorter - 8) : 0;
    return c ? c : (a->length > b->length) - (a->length < b->length);
}

int key_compare(const struct key *a, const struct key *b) {
    if (a == b) return 0;
    needle n = needle_of_key(b);
    return key_compare_needle(a, &n);
}

/* ---- Opening and closing ---- */

hd_status keys_init(hd_heap *heap) {
    heap->keys = heap_large_new(heap, KEYS_FIRST * sizeof *heap->keys);
    if (!heap->keys) return HD_NOMEM;
    memset(heap->keys, 0, KEYS_FIRST * sizeof *heap->keys);
    heap->keys_mask = KEYS_FIRST - 1;
    heap->length_key = key_intern(heap, "length", 6);
    return heap->length_key ? HD_OK : HD_NOMEM;
}

/* The blocks go with their pages, what is outside with the heap's large memory. */
void keys_fini(hd_heap *heap) {
    key_unref(heap->length_key);
    heap->length_key = NULL;
    heap_large_free(heap, heap->keys);
    heap->keys = NULL;
    heap->keys_count = 0;
}
