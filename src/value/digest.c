/* digest.c -- structural hashes.
 *
 * Entries e1 .. en of a container hash to the polynomial
 *
 *     P(e1 .. en) = h(e1) * B^(n-1) + ... + h(en)        modulo 2^128, B odd and secret
 *
 * which two subtrees combine to P(left) * B^|right| + P(right): the result depends on the entries and
 * their order, not on how the tree is cut. Inner nodes, and leaves that hold containers, keep their P;
 * after a change only the nodes that were made anew are hashed. What a user sees is P, the kind and
 * the count, hashed once more by XXH3 with the heap's secret.
 *
 * Recursion goes over the nesting of values, which the heap bounds, and the levels of trees. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "value/diff.h"
#include "value/link.h"
#include "value/node.h"
#include "value/text.h"

__extension__ typedef unsigned __int128 wide;

static wide wide_of(hd_hash h) { return ((wide)h.hi << 64) | h.lo; }
static hd_hash hash_of(wide w) { return (hd_hash){ (uint64_t)w, (uint64_t)(w >> 64) }; }

static hd_hash hash_data(const hd_heap *heap, const void *data, size_t size) {
    XXH128_hash_t h = XXH3_128bits_withSecret(data, size, heap->secret, HEAP_SECRET);
    return (hd_hash){ h.low64, h.high64 };
}

/* ---- The polynomial ---- */

/* 3 modulo 4: then B^k - 1 has few factors of two, and entries that change places are told apart. */
static wide base_of(const hd_heap *heap) {
    wide b;
    memcpy(&b, heap->secret, sizeof b);
    return b | 3;
}

static wide power(wide base, uint32_t n) {
    wide result = 1;
    for (; n; n >>= 1, base *= base)
        if (n & 1) result *= base;
    return result;
}

static hd_hash entry_hash(const hd_heap *heap, const struct key *k, hd_value v) {
    hd_hash both[2] = { { 0, 0 }, value_hash(heap, v) };
    if (!k) return both[1];
    both[0] = hash_data(heap, key_bytes(k), k->length);
    return hash_data(heap, both, sizeof both);
}

static wide node_polynomial(const hd_heap *heap, const node *n);

static wide leaf_polynomial(const hd_heap *heap, const node *n) {
    wide base = base_of(heap), sum = 0;
    for (unsigned i = 0; i < n->count; i++) {
        const struct key *k = n->object ? leaf_shape(n)->keys[i] : NULL;
        sum = sum * base + wide_of(entry_hash(heap, k, leaf_values(n)[i]));
    }
    return sum;
}

static wide inner_polynomial(const hd_heap *heap, const node *n) {
    wide base = base_of(heap), sum = 0;
    for (unsigned i = 0; i < n->count; i++) {
        const node *child = inner_children(n)[i];
        sum = sum * power(base, node_total(child)) + node_polynomial(heap, child);
    }
    return sum;
}

/* A node is immutable but for its reference count and this cache. */
static wide node_polynomial(const hd_heap *heap, const node *n) {
    if (n->hashed) return wide_of(*node_hash_slot(n));
    wide sum = n->level ? inner_polynomial(heap, n) : leaf_polynomial(heap, n);
    if (node_has_hash(n)) {
        *node_hash_slot(n) = hash_of(sum);
        ((node *)(uintptr_t)n)->hashed = 1;
    }
    return sum;
}

/* ---- Kinds ---- */

static hd_hash container_hash(const hd_heap *heap, hd_value v) {
    const node *n = value_node(v);
    uint64_t data[4] = { (uint64_t)hd_value_kind(v), n ? node_total(n) : 0, 0, 0 };
    if (n) {
        assert(heap_of(n) == heap);
        hd_hash sum = hash_of(node_polynomial(heap, n));
        data[2] = sum.lo;
        data[3] = sum.hi;
    }
    return hash_data(heap, data, sizeof data);
}

/* Bytes hash like the string of the same bytes, but for the last bit. */
static hd_hash text_hash(const hd_heap *heap, hd_value v) {
    size_t length;
    const char *bytes = text_of(v, &length);
    hd_hash h = hash_data(heap, bytes, length);
    h.lo ^= value_tag(v) == TAG_BYTES;
    return h;
}

static hd_hash part_hash(const hd_heap *heap, const struct key *part) {
    return part ? hash_data(heap, key_bytes(part), part->length) : (hd_hash){ 0, 0 };
}

static hd_hash link_hash(const hd_heap *heap, const link_block *l) {
    hd_hash parts[4] = { { HD_KIND_LINK, l->scope },
                         part_hash(heap, l->space),
                         part_hash(heap, l->id),
                         part_hash(heap, l->pointer) };
    return hash_data(heap, parts, sizeof parts);
}

static hd_hash scalar_hash(const hd_heap *heap, uint64_t kind, uint64_t bits) {
    uint64_t data[2] = { kind, bits };
    return hash_data(heap, data, sizeof data);
}

hd_hash value_hash(const hd_heap *heap, hd_value v) {
    switch (value_tag(v)) {
    case TAG_STRING:
    case TAG_BYTES: return text_hash(heap, v);
    case TAG_ARRAY:
    case TAG_OBJECT: return container_hash(heap, v);
    case TAG_LINK: return link_hash(heap, link_of(v));
    case TAG_BIGINT: return scalar_hash(heap, HD_KIND_INT, (uint64_t)int_of(v));
    default: return scalar_hash(heap, 0, v.bits);
    }
}

/* ---- Shapes ---- */

static wide keys_polynomial(const hd_heap *heap, const node *n) {
    wide base = base_of(heap), sum = 0;
    for (unsigned i = 0; i < n->count; i++) {
        if (n->level) {
            const node *child = inner_children(n)[i];
            sum = sum * power(base, node_total(child)) + keys_polynomial(heap, child);
        } else {
            const struct key *k = leaf_shape(n)->keys[i];
            sum = sum * base + wide_of(hash_data(heap, key_bytes(k), k->length));
        }
    }
    return sum;
}

hd_hash value_shape_hash(const hd_heap *heap, hd_value v) {
    if (!value_is_container(v)) return value_hash(heap, v);
    const node *n = value_node(v);
    uint64_t data[4] = { (uint64_t)hd_value_kind(v), n ? node_total(n) : 0, 0, 0 };
    if (n && n->object) {
        hd_hash sum = hash_of(keys_polynomial(heap, n));
        data[2] = sum.lo;
        data[3] = sum.hi;
    }
    return hash_data(heap, data, sizeof data);
}

/* Nothing may have been hashed before: what nodes keep would be of another secret. */
void heap_take_secret(hd_heap *heap, const void *seed, size_t size) {
    (void)XXH3_generateSecret(heap->secret, sizeof heap->secret, seed, size);
}

hd_hash hd_value_hash(const hd_heap *heap, hd_value v) { return value_hash(heap, v); }
