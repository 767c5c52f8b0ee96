/* value.h -- the 64 bits of a value, and the blocks behind them.
 *
 * Doubles are themselves; everything else lives in the space of NaNs, told apart by the top 16
 * bits. The whole word is XORed with VALUE_MASK so that the absent value is 0:
 *
 *     raw 0x7FF9 payload   singletons: absent, null, false, true, failed(status)
 *     raw 0x7FFA pointer   string        NULL is ""
 *     raw 0x7FFB pointer   bytes         NULL is no bytes
 *     raw 0x7FFC pointer   array         NULL is []
 *     raw 0x7FFD pointer   object        NULL is {}
 *     raw 0x7FFE pointer   link
 *     raw 0x7FFF pointer   int beyond 51 bits
 *     raw 0xFFF8..0xFFFF   int of 51 bits
 *     anything else        a double; every NaN is stored as 0x7FF8 << 48
 *
 * So two immediates are equal exactly if their bits are, and a kind is known without touching
 * memory. Inside the library functions return *owned* values (one reference, the caller's); the
 * public functions put them into a pool. */
#ifndef HD_VALUE_VALUE_H
#define HD_VALUE_VALUE_H

#include <heddle/value.h>
#include <assert.h>
#include <string.h>

#define VALUE_MASK HD_VALUE_MASK_

/* Raw top-16 tags. */
enum {
    TAG_SINGLE = 0x7FF9,
    TAG_STRING = 0x7FFA,
    TAG_BYTES = 0x7FFB,
    TAG_ARRAY = 0x7FFC,
    TAG_OBJECT = 0x7FFD,
    TAG_LINK = 0x7FFE,
    TAG_BIGINT = 0x7FFF,
    TAG_INT = 0xFFF8 /* and above */
};

/* Payloads of TAG_SINGLE. */
enum { SINGLE_ABSENT = 0, SINGLE_NULL = 1, SINGLE_FALSE = 2, SINGLE_TRUE = 3, SINGLE_FAILED = 256 };

#define VALUE_INT_MIN (-(INT64_C(1) << 50))
#define VALUE_INT_MAX ((INT64_C(1) << 50) - 1)
#define VALUE_PAYLOAD UINT64_C(0x0000FFFFFFFFFFFF)

static inline uint64_t value_raw(hd_value v) { return v.bits ^ VALUE_MASK; }
static inline hd_value value_of_raw(uint64_t raw) { return (hd_value){ raw ^ VALUE_MASK }; }
static inline unsigned value_tag(hd_value v) { return (unsigned)(value_raw(v) >> 48); }

static inline hd_value value_absent(void) { return (hd_value){ 0 }; }
static inline bool value_is_absent(hd_value v) { return v.bits == 0; }
static inline hd_value value_single(uint64_t payload) {
    return value_of_raw(((uint64_t)TAG_SINGLE << 48) | payload);
}
static inline bool value_is_array(hd_value v) { return value_tag(v) == TAG_ARRAY; }
static inline bool value_is_object(hd_value v) { return value_tag(v) == TAG_OBJECT; }
static inline bool value_is_container(hd_value v) {
    return value_is_array(v) || value_is_object(v);
}
/* Nothing can be read below it: neither a container nor a link, which is followed. Absent is a leaf. */
static inline bool value_is_leaf(hd_value v) {
    return !value_is_container(v) && value_tag(v) != TAG_LINK;
}
static inline hd_value value_failed(hd_status status) {
    return value_single(SINGLE_FAILED + (uint64_t)status);
}
static inline bool value_is_failed(hd_value v) {
    return v.bits >= SINGLE_FAILED && v.bits < 2 * SINGLE_FAILED;
}
/* Neither absent nor failed. */
static inline bool value_exists(hd_value v) { return v.bits != 0 && !value_is_failed(v); }

static inline hd_value value_small_int(int64_t i) {
    assert(i >= VALUE_INT_MIN && i <= VALUE_INT_MAX);
    return value_of_raw(((uint64_t)i & UINT64_C(0x0007FFFFFFFFFFFF)) |
                        UINT64_C(0xFFF8000000000000));
}
static inline bool value_is_small_int(hd_value v) {
    return value_raw(v) >= UINT64_C(0xFFF8000000000000);
}
static inline int64_t value_small_int_of(hd_value v) { return (int64_t)(value_raw(v) << 13) >> 13; }

static inline hd_value value_double(double d) {
    uint64_t raw;
    if (d != d) return value_of_raw(UINT64_C(0x7FF8000000000000));
    memcpy(&raw, &d, sizeof raw);
    return value_of_raw(raw);
}
static inline bool value_is_double(hd_value v) {
    unsigned tag = value_tag(v);
    return tag < TAG_SINGLE || (tag > TAG_BIGINT && tag < TAG_INT);
}
static inline double value_double_of(hd_value v) {
    uint64_t raw = value_raw(v);
    double d;
    memcpy(&d, &raw, sizeof d);
    return d;
}

/* Every block begins with this. */
struct block {
    uint32_t refs;
};

/* Whether it is of a kind that has blocks; masked, their tags are 2 to 7. */
static inline bool value_may_be_block(hd_value v) { return (v.bits >> 48) - 2 < 6; }
static inline bool value_is_block(hd_value v) {
    return value_may_be_block(v) && (v.bits & VALUE_PAYLOAD) != 0;
}
static inline void *value_block(hd_value v) {
    return (void *)(uintptr_t)(value_raw(v) & VALUE_PAYLOAD);
}
static inline hd_value value_of_block(unsigned tag, const void *block_or_null) {
    return value_of_raw(((uint64_t)tag << 48) | (uint64_t)(uintptr_t)block_or_null);
}

/* An int or a double that stands in the word itself: all else is below, masked. */
static inline bool value_is_immediate_number(hd_value v) { return v.bits >> 51 != 0; }

/* Reference counts change here and in node.c (node_ref, node_unref, the freeing of trees). */
static inline hd_value value_ref(hd_value v) {
    if (value_is_block(v)) ((struct block *)value_block(v))->refs++;
    return v;
}
void value_destroy(hd_value v); /* the last reference is gone */
static inline void value_unref(hd_value v) {
    if (value_is_block(v) && --((struct block *)value_block(v))->refs == 0) value_destroy(v);
}

#endif
