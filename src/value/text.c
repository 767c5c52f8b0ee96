/* text.c -- making strings, bytes and large integers; UTF-8. */
#include "value/text.h"
#include "value/pool.h"
#include <stdio.h>

/* ---- Blocks ---- */

static text_block *text_alloc(hd_heap *heap, size_t length, char **out) {
    if (length <= TEXT_INLINE_MAX) {
        text_block *t = heap_block_new(heap, sizeof *t + length + 1);
        if (t) *out = t->bytes;
        return t;
    }
    char *outside = heap_large_new(heap, length + 1);
    if (!outside) return NULL;
    text_block *t = heap_block_new(heap, sizeof *t + sizeof outside);
    if (!t) {
        heap_large_free(heap, outside);
        return NULL;
    }
    memcpy(t->bytes, &outside, sizeof outside);
    *out = outside;
    return t;
}

hd_value text_new(hd_heap *heap, unsigned tag, size_t length, char **out) {
    assert(tag == TAG_STRING || tag == TAG_BYTES);
    if (length == 0) return value_of_block(tag, NULL);
    if (length > heap->limits.size) return value_failed(HD_LIMIT);
    text_block *t = text_alloc(heap, length, out);
    if (!t) return value_failed(HD_NOMEM);
    assert(length <= UINT32_MAX);
    t->b.refs = 1;
    t->length = (uint32_t)length;
    (*out)[length] = 0;
    return value_of_block(tag, t);
}

hd_value text_make(hd_heap *heap, unsigned tag, const void *bytes, size_t length) {
    char *out = NULL;
    hd_value v = text_new(heap, tag, length, &out);
    if (out) memcpy(out, bytes, length);
    return v;
}

hd_value text_string(hd_heap *heap, const char *bytes, size_t length) {
    if (length > heap->limits.size) return value_failed(HD_LIMIT);
    if (!utf8_valid(bytes, length, NULL)) return value_failed(HD_SYNTAX);
    return text_make(heap, TAG_STRING, bytes, length);
}

void text_destroy(text_block *t) {
    assert(t->b.refs == 0 && t->length > 0);
    if (t->length > TEXT_INLINE_MAX) {
        char *outside;
        memcpy(&outside, t->bytes, sizeof outside);
        heap_large_free(heap_of(t), outside);
    }
    heap_block_free(t);
}

hd_value int_make(hd_heap *heap, int64_t i) {
    if (i >= VALUE_INT_MIN && i <= VALUE_INT_MAX) return value_small_int(i);
    int_block *b = heap_block_new(heap, sizeof *b);
    if (!b) return value_failed(HD_NOMEM);
    b->b.refs = 1;
    b->i = i;
    return value_of_block(TAG_BIGINT, b);
}

/* ---- UTF-8 ---- */

/* Length of the ASCII run at the beginning, in steps of eight, then of one. */
static size_t ascii_run(const unsigned char *s, size_t length) {
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, s + i, sizeof word);
        if (word & UINT64_C(0x8080808080808080)) break;
    }
    while (i < length && s[i] < 0x80) i++;
    return i;
}

static bool is_continuation(unsigned char c) { return (c & 0xC0) == 0x80; }

/* The length of the sequence that begins with a byte above 0x7F; 0 if it is none. The limits of the
 * second byte keep out overlong forms, surrogates and what is above U+10FFFF. */
static size_t sequence_length(const unsigned char *s, size_t length) {
    unsigned char c = s[0];
    if (c < 0xC2 || c > 0xF4) return 0;
    size_t n = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (n > length) return 0;
    unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    unsigned char high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < low || s[1] > high) return 0;
    if (n > 2 && !is_continuation(s[2])) return 0;
    if (n > 3 && !is_continuation(s[3])) return 0;
    return n;
}

bool utf8_valid(const char *bytes, size_t length, size_t *bad) {
    const unsigned char *s = (const unsigned char *)bytes;
    size_t i = ascii_run(s, length);
    while (i < length) {
        size_t n = sequence_length(s + i, length - i);
        if (n == 0) {
            if (bad) *bad = i;
            return false;
        }
        i += n;
        i += ascii_run(s + i, length - i);
    }
    return true;
}

bool utf8_has_control(const char *bytes, size_t length) {
    const unsigned char *s = (const unsigned char *)bytes;
    for (size_t i = 0; i < length; i++) {
        if (s[i] < 0x20 || s[i] == 0x7F) return true;
        if (s[i] == 0xC2 && i + 1 < length && s[i + 1] <= 0x9F) return true;
    }
    return false;
}

/* ---- Public ---- */

hd_value hd_int(hd_pool *pool, int64_t i) {
    if (i >= VALUE_INT_MIN && i <= VALUE_INT_MAX) return value_small_int(i);
    if (!pool) return value_failed(HD_USAGE);
    return pool_take(pool, int_make(pool->heap, i));
}

hd_value hd_string_n(hd_pool *pool, const char *bytes, size_t length) {
    return pool_take(pool, text_string(pool->heap, bytes, length));
}

hd_value hd_string(hd_pool *pool, const char *bytes) {
    return bytes ? hd_string_n(pool, bytes, strlen(bytes)) : value_failed(HD_USAGE);
}

/* Formats into a text of the measured length; a format that yields invalid UTF-8 fails like any
 * other text. */
static hd_value string_v(hd_heap *heap, size_t length, const char *format, va_list arguments) {
    char *out = NULL;
    hd_value v = text_new(heap, TAG_STRING, length, &out);
    if (!out) return v;
    vsnprintf(out, length + 1, format, arguments);
    if (utf8_valid(out, length, NULL)) return v;
    value_unref(v);
    return value_failed(HD_SYNTAX);
}

hd_value hd_string_f(hd_pool *pool, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    hd_value v =
        length < 0 ? value_failed(HD_USAGE) : string_v(pool->heap, (size_t)length, format, again);
    va_end(again);
    va_end(arguments);
    return pool_take(pool, v);
}

hd_value hd_bytes(hd_pool *pool, const void *data, size_t size) {
    return pool_take(pool, text_make(pool->heap, TAG_BYTES, data, size));
}
