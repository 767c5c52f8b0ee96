/* text.h -- strings, bytes and integers beyond 51 bits: the blocks behind the scalar values.
 *
 * Short texts stand inside their block. Longer ones (TEXT_INLINE_MAX) stand in memory of their own,
 * and the block holds the pointer; the length tells which. A text is always followed by a NUL. */
#ifndef HD_VALUE_TEXT_H
#define HD_VALUE_TEXT_H

#include "value/heap.h"

#define TEXT_INLINE_MAX ((size_t)1000)

typedef struct text_block {
    struct block b;
    uint32_t length;
    char bytes[]; /* NUL-terminated; longer than TEXT_INLINE_MAX: a char * */
} text_block;

typedef struct int_block {
    struct block b;
    int64_t i;
} int_block;

/* A string or bytes value of a copy of the bytes (TAG_STRING, TAG_BYTES), owned. Strings must be
 * valid UTF-8: the caller has checked. Failed: HD_NOMEM, HD_LIMIT. */
hd_value text_make(hd_heap *heap, unsigned tag, const void *bytes, size_t length);
/* The same, to be filled in by the caller at *out (`length` bytes; the NUL is there already).
 * For length 0, *out is not written. */
hd_value text_new(hd_heap *heap, unsigned tag, size_t length, char **out);
/* A string from text that may be anything: HD_SYNTAX when it is not UTF-8. */
hd_value text_string(hd_heap *heap, const char *bytes, size_t length);

/* The bytes of a string or bytes value; never NULL. */
static inline const char *text_of(hd_value v, size_t *length) {
    const text_block *t = value_block(v);
    if (!t) {
        *length = 0;
        return "";
    }
    *length = t->length;
    if (t->length <= TEXT_INLINE_MAX) return t->bytes;
    const char *outside;
    memcpy(&outside, t->bytes, sizeof outside);
    return outside;
}

/* Any integer, owned. Allocates only beyond 51 bits. */
hd_value int_make(hd_heap *heap, int64_t i);
static inline int64_t int_of(hd_value v) {
    if (value_is_small_int(v)) return value_small_int_of(v);
    return ((const int_block *)value_block(v))->i;
}

/* True if the bytes are UTF-8 (no surrogates, no overlong forms, at most U+10FFFF); otherwise *bad
 * (which may be NULL) is the offset of the first byte that is not. About 8 bytes per step on ASCII. */
bool utf8_valid(const char *bytes, size_t length, size_t *bad);
/* Whether UTF-8 has a control character: C0, DEL, or one from U+0080 to U+009F. */
bool utf8_has_control(const char *bytes, size_t length);

void text_destroy(text_block *t);

#endif
