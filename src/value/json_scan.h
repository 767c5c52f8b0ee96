/* json_scan.h -- looking at strings many bytes at a time.
 *
 * Both directions have one question in their inner loop: how far does a text go on without a byte
 * that needs a look? Reading stops at `"`, `\`, control characters and everything beyond ASCII
 * (which must be checked to be UTF-8); printing stops at the first three only. Most strings answer
 * "to the end", so with SSE2 16 bytes are asked at once, elsewhere 8 in a word. */
#ifndef HD_VALUE_JSON_SCAN_H
#define HD_VALUE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Bytes that neither direction needs to look at. */
static inline bool json_is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}
/* Bytes that a printed string holds as they are. */
static inline bool json_is_printable(unsigned char c) { return c >= 0x20 && c != '"' && c != '\\'; }

/* ---- Eight bytes in a word --------------------------------------------------------------- */

#define JSON_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t json_load8(const char *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Keeps the first `count` (1 to 8) of the eight bytes. */
static inline uint64_t json_first_bytes(uint64_t x, size_t count) {
    size_t drop = 64 - 8 * count;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return x << drop;
#else
    return x >> drop;
#endif
}

/* Not zero exactly if one of the eight bytes is a control character, `"` or `\`. */
static inline uint64_t json_special8(uint64_t x) {
    uint64_t quote = x ^ JSON_EACH('"');
    uint64_t escape = x ^ JSON_EACH('\\');
    uint64_t below = (x - JSON_EACH(0x20)) & ~x;
    uint64_t is_quote = (quote - JSON_EACH(1)) & ~quote;
    uint64_t is_escape = (escape - JSON_EACH(1)) & ~escape;
    return (below | is_quote | is_escape) & JSON_EACH(0x80);
}

/* ---- Steps ------------------------------------------------------------------------------- */

#if defined(__SSE2__)

/* A bit for each of 16 bytes that is `"`, `\` or, as a signed byte, below 0x20: that is control
 * characters and all of non-ASCII. */
static inline uint32_t json_not_plain16(const char *p) {
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i below = _mm_cmplt_epi8(x, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    __m128i escape = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(below, _mm_or_si128(quote, escape)));
}

/* The first byte from p on that is not plain, or `end`. */
static inline const char *json_skip_plain(const char *p, const char *end) {
    for (; end - p >= 16; p += 16) {
        uint32_t mask = json_not_plain16(p);
        if (mask) return p + __builtin_ctz(mask);
    }
    while (p < end && json_is_plain((unsigned char)*p)) p++;
    return p;
}

/* A bit for each of 16 bytes that must be escaped in print. */
static inline uint32_t json_special16(__m128i x) {
    __m128i below = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1F)), x);
    __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    __m128i escape = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(below, _mm_or_si128(quote, escape)));
}

/* The first byte from p on that must be escaped in print, or `end`. */
static inline const char *json_skip_printable(const char *p, const char *end) {
    for (; end - p >= 16; p += 16) {
        uint32_t mask = json_special16(_mm_loadu_si128((const __m128i *)(const void *)p));
        if (mask) return p + __builtin_ctz(mask);
    }
    while (p < end && json_is_printable((unsigned char)*p)) p++;
    return p;
}

/* Copies whole steps of 16 bytes; returns where it stopped: at less, or behind what is special. */
static inline size_t json_copy_steps(char *out, const char *p, size_t length, uint64_t *special) {
    size_t i = 0;
    for (; i + 16 <= length && !*special; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        _mm_storeu_si128((__m128i *)(void *)(out + i), x);
        *special = json_special16(x);
    }
    return i;
}

#else

static inline const char *json_skip_plain(const char *p, const char *end) {
    for (; end - p >= 8; p += 8) {
        uint64_t x = json_load8(p);
        if (json_special8(x) | (x & JSON_EACH(0x80))) break;
    }
    while (p < end && json_is_plain((unsigned char)*p)) p++;
    return p;
}

static inline const char *json_skip_printable(const char *p, const char *end) {
    for (; end - p >= 8; p += 8) {
        if (json_special8(json_load8(p))) break;
    }
    while (p < end && json_is_printable((unsigned char)*p)) p++;
    return p;
}

static inline size_t json_copy_steps(char *out, const char *p, size_t length, uint64_t *special) {
    (void)out, (void)p, (void)length, (void)special;
    return 0;
}

#endif

/* ---- Copying while looking --------------------------------------------------------------- */

static inline bool json_copy_below8(char *out, const char *p, size_t length) {
    if (length >= 4) { /* two halves that overlap */
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + length - 4, 4);
        memcpy(out, &first, 4);
        memcpy(out + length - 4, &last, 4);
        return !json_special8(first | (uint64_t)last << 32);
    }
    bool printable = true;
    for (size_t i = 0; i < length; i++) {
        out[i] = p[i];
        printable &= json_is_printable((unsigned char)p[i]);
    }
    return printable;
}

/* Copies a text and says whether it can stand as it is; if not, the copy is worthless. The last
 * step may overlap the one before it, so that there is no loop over single bytes. */
static inline bool json_copy_printable(char *out, const char *p, size_t length) {
    if (length < 8) return json_copy_below8(out, p, length);
    uint64_t special = 0;
    size_t i = json_copy_steps(out, p, length, &special);
    for (; i + 8 <= length && !special; i += 8) {
        uint64_t x = json_load8(p + i);
        memcpy(out + i, &x, 8);
        special = json_special8(x);
    }
    uint64_t x = json_load8(p + length - 8);
    memcpy(out + length - 8, &x, 8);
    return !(special | json_special8(x));
}

#endif
