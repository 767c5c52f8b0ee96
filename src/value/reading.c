/* reading.c -- what every value can do: kinds, references, conversions, lookups. */
#include "value/array.h"
#include "value/link.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"
#include <math.h>

/* ---- Kinds ---- */

static hd_kind single_kind(uint64_t payload) {
    switch (payload) {
    case SINGLE_ABSENT: return HD_KIND_ABSENT;
    case SINGLE_NULL: return HD_KIND_NULL;
    case SINGLE_FALSE:
    case SINGLE_TRUE: return HD_KIND_BOOL;
    default: return HD_KIND_FAILED;
    }
}

hd_kind hd_value_kind(hd_value v) {
    switch (value_tag(v)) {
    case TAG_SINGLE: return single_kind(v.bits);
    case TAG_STRING: return HD_KIND_STRING;
    case TAG_BYTES: return HD_KIND_BYTES;
    case TAG_ARRAY: return HD_KIND_ARRAY;
    case TAG_OBJECT: return HD_KIND_OBJECT;
    case TAG_LINK: return HD_KIND_LINK;
    case TAG_BIGINT: return HD_KIND_INT;
    default: return value_is_small_int(v) ? HD_KIND_INT : HD_KIND_DOUBLE;
    }
}

const char *hd_kind_name(hd_kind kind) {
    static const char *const names[] = { "absent", "failed", "null",  "bool",   "int", "double",
                                         "string", "bytes",  "array", "object", "link" };
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

bool hd_value_exists(hd_value v) { return value_exists(v); }

hd_status hd_value_status(hd_value v) {
    return value_is_failed(v) ? (hd_status)(v.bits - SINGLE_FAILED) : HD_OK;
}

/* ---- References ---- */

hd_value hd_value_ref(hd_value v) { return value_ref(v); }
void hd_value_unref(hd_value v) { value_unref(v); }

void value_destroy(hd_value v) {
    switch (value_tag(v)) {
    case TAG_STRING:
    case TAG_BYTES: text_destroy(value_block(v)); break;
    case TAG_BIGINT: heap_block_free(value_block(v)); break;
    case TAG_LINK: link_destroy(value_block(v)); break;
    default: node_destroy(value_node(v)); break;
    }
}

/* ---- Immediates ---- */

hd_value hd_null(void) { return value_single(SINGLE_NULL); }
hd_value hd_bool(bool b) { return value_single(b ? SINGLE_TRUE : SINGLE_FALSE); }
/* Inline in the header; these are the functions for builds without optimisation and other languages. */
extern inline hd_value hd_double(double d);

/* A failure needs a reason: HD_OK is none. */
hd_value hd_failed(hd_status status) { return value_failed(status == HD_OK ? HD_FAILED : status); }

/* ---- Conversions ---- */

static bool is_int(hd_value v) { return value_is_small_int(v) || value_tag(v) == TAG_BIGINT; }

bool hd_value_as_bool(hd_value v, bool otherwise) {
    if (v.bits == SINGLE_TRUE) return true;
    return v.bits == SINGLE_FALSE ? false : otherwise;
}

int64_t hd_value_as_int(hd_value v, int64_t otherwise) {
    if (is_int(v)) return int_of(v);
    if (!value_is_double(v)) return otherwise;
    double d = value_double_of(v);
    bool whole = d >= -0x1p63 && d < 0x1p63 && d == trunc(d);
    return whole ? (int64_t)d : otherwise;
}

double hd_value_as_double(hd_value v, double otherwise) {
    if (value_is_double(v)) return value_double_of(v);
    return is_int(v) ? (double)int_of(v) : otherwise;
}

extern inline double hd_value_number(hd_value v);

const char *hd_value_text(hd_value v, size_t *length) {
    size_t ignored;
    if (!length) length = &ignored;
    *length = 0;
    return value_tag(v) == TAG_STRING ? text_of(v, length) : NULL;
}

const char *hd_value_as_text(hd_value v, const char *otherwise) {
    const char *bytes = hd_value_text(v, NULL);
    return bytes ? bytes : otherwise;
}

const void *hd_value_bytes(hd_value v, size_t *size) {
    size_t ignored;
    if (!size) size = &ignored;
    *size = 0;
    return value_tag(v) == TAG_BYTES ? text_of(v, size) : NULL;
}

/* ---- Entries ---- */

size_t hd_value_count(hd_value v) {
    if (!value_is_container(v) || !value_node(v)) return 0;
    return node_total(value_node(v));
}

hd_value hd_value_at_n(hd_value v, const char *key, size_t length) {
    return object_get_bytes(v, key, length);
}

hd_value hd_value_at(hd_value v, const char *key) { return object_get_bytes(v, key, strlen(key)); }

hd_value hd_value_index(hd_value v, size_t index) { return array_get(v, index); }

/* ---- Iteration ---- */

_Static_assert(TREE_LEVELS <= HD_ITER_DEPTH, "an iterator has room for every tree");

static void iter_down(hd_iter *it, const node *n) {
    for (;; n = inner_children(n)[0]) {
        it->stack_[it->depth_].node = n;
        it->stack_[it->depth_++].slot = 0;
        if (n->level == 0) return;
    }
}

hd_iter hd_iter_of(hd_value v) {
    hd_iter it;
    it.key = NULL;
    it.key_length = 0;
    it.index = SIZE_MAX; /* the first step makes it 0 */
    it.value = value_absent();
    it.depth_ = 0;
    if (value_is_container(v) && value_node(v)) iter_down(&it, value_node(v));
    return it;
}

/* To the leaf behind the one that is done; false at the end. */
static bool iter_turn(hd_iter *it) {
    while (--it->depth_ > 0) {
        const node *n = it->stack_[it->depth_ - 1].node;
        if (++it->stack_[it->depth_ - 1].slot == n->count) continue;
        iter_down(it, inner_children(n)[it->stack_[it->depth_ - 1].slot]);
        return true;
    }
    return false;
}

bool hd_iter_next(hd_iter *it) {
    if (it->depth_ == 0) return false;
    if (it->stack_[it->depth_ - 1].slot == ((const node *)it->stack_[it->depth_ - 1].node)->count &&
        !iter_turn(it))
        return false;
    const node *n = it->stack_[it->depth_ - 1].node;
    uint32_t slot = it->stack_[it->depth_ - 1].slot++;
    it->index++;
    it->value = leaf_values(n)[slot];
    if (!n->object) return true;
    const struct key *k = leaf_shape(n)->keys[slot];
    it->key = key_bytes(k);
    it->key_length = k->length;
    return true;
}
