/* key.h -- interned texts: the keys of objects, the segments of paths, the names in links.
 *
 * Two keys of one heap are equal exactly if their pointers are; order is by bytes. The table is
 * weak: a key without references stays, to be found again, until the table would
 * have to grow; then all such keys are swept. So an endless stream of distinct keys needs no more
 * memory than those that are in use at the same time, and letting a key go is one decrement. */
#ifndef HD_VALUE_KEY_H
#define HD_VALUE_KEY_H

#include "value/heap.h"

#define KEY_INLINE_MAX ((size_t)1000)
#define KEY_NO_INDEX   UINT32_MAX

struct key {
    uint32_t refs; /* 0: unreferenced, swept when the table would grow */
    uint32_t length;
    uint32_t hash;
    uint32_t
        index;   /* if the text is a canonical array index ("0", "17", not "07"), else NO_INDEX */
    char text[]; /* NUL-terminated, zeroed to 8 bytes; longer than KEY_INLINE_MAX: a char * */
};

/* NUL-terminated; at least 8 bytes can be read. */
static inline const char *key_bytes(const struct key *k) {
    if (k->length <= KEY_INLINE_MAX) return k->text;
    const char *outside;
    memcpy(&outside, k->text, sizeof outside);
    return outside;
}

static inline struct key *key_ref(struct key *k) {
    k->refs++;
    return k;
}
/* Accepts NULL. Frees nothing: see the sweep. */
static inline void key_unref(struct key *k) {
    if (!k) return;
    assert(k->refs > 0);
    k->refs--;
}

/* The key of a text that is known to be valid UTF-8: owned (+1). NULL: no memory, or longer than
 * the heap's size limit. Cost: a hash and a comparison when known. */
struct key *key_intern(hd_heap *heap, const char *bytes, size_t length);
/* The same for a text that may be anything: HD_SYNTAX for invalid UTF-8, HD_LIMIT, HD_NOMEM. */
hd_status key_make(hd_heap *heap, const char *bytes, size_t length, struct key **out);
/* The key if it exists (borrowed), else NULL. */
struct key *key_find(const hd_heap *heap, const char *bytes, size_t length);

/* While held, unreferenced keys are not swept: key_intern_held returns a key *without* a reference,
 * which is good until the matching release. Parsers use this to keep counts untouched. Nests. */
static inline void keys_hold(hd_heap *heap) { heap->keys_held++; }
static inline void keys_release(hd_heap *heap) {
    assert(heap->keys_held > 0);
    heap->keys_held--;
}
struct key *key_intern_held(hd_heap *heap, const char *bytes, size_t length);

/* By bytes: < 0, 0, > 0. */
int key_compare(const struct key *a, const struct key *b);

/* A text to be compared with many keys: most differ in the first 8 bytes, read as one number. */
typedef struct needle {
    const char *bytes;
    size_t length;
    uint64_t prefix;
} needle;

static inline uint64_t key_prefix(const char *eight_bytes) {
    uint64_t word;
    memcpy(&word, eight_bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}
static inline needle needle_of(const char *bytes, size_t length) {
    if (length >= 8) return (needle){ bytes, length, key_prefix(bytes) };
    uint64_t prefix = 0;
    for (size_t i = 0; i < length; i++) prefix |= (uint64_t)(unsigned char)bytes[i] << (56 - 8 * i);
    return (needle){ bytes, length, prefix };
}
static inline needle needle_of_key(const struct key *k) {
    return (needle){ key_bytes(k), k->length, key_prefix(key_bytes(k)) };
}

/* Private: the rest of the comparison. */
int key_compare_behind(const struct key *a, const needle *b);

static inline int key_compare_needle(const struct key *a, const needle *b) {
    uint64_t prefix = key_prefix(key_bytes(a));
    if (prefix != b->prefix) return prefix < b->prefix ? -1 : 1;
    if (a->length == b->length && b->length <= 8) return 0;
    return key_compare_behind(a, b);
}

hd_status keys_init(hd_heap *heap);
void keys_fini(hd_heap *heap);

#endif
