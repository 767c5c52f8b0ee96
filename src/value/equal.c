/* equal.c -- equality, sameness of shape, and the total order of values.
 *
 * Recursion goes over the nesting of values, which the heap bounds (HEAP_DEPTH_MAX). */
#include "value/diff.h"
#include "value/link.h"
#include "value/pairs.h"
#include "value/text.h"

/* ---- Equality ---- */

static bool text_equal(hd_value a, hd_value b) {
    size_t an, bn;
    const char *at = text_of(a, &an), *bt = text_of(b, &bn);
    return an == bn && memcmp(at, bt, an) == 0;
}

/* Cached hashes that differ settle it; equal ones are not taken as proof. */
static bool surely_different(const node *a, const node *b) {
    if (!a || !b || node_total(a) != node_total(b)) return true;
    if (!a->hashed || !b->hashed || heap_of(a) != heap_of(b)) return false;
    return memcmp(node_hash_slot(a), node_hash_slot(b), sizeof(hd_hash)) != 0;
}

static bool leaves_align(const node *a, const node *b) {
    return !a->level && !b->level && (!a->object || leaf_shape(a) == leaf_shape(b));
}

static bool leaf_equal(const node *a, const node *b) {
    const hd_value *av = leaf_values(a), *bv = leaf_values(b);
    heap_of(a)->visited += 2;
    for (unsigned i = 0; i < a->count; i++)
        if (av[i].bits != bv[i].bits && !value_equal(av[i], bv[i])) return false;
    return true;
}

static bool tree_equal(hd_value a, hd_value b) {
    pairs p;
    pairs_init(&p, a, b, false);
    while (pairs_next(&p))
        if (!value_equal(p.was, p.is)) return false;
    return true;
}

static bool container_equal(hd_value a, hd_value b) {
    const node *an = value_node(a), *bn = value_node(b);
    if (surely_different(an, bn)) return false;
    return leaves_align(an, bn) ? leaf_equal(an, bn) : tree_equal(a, b);
}

bool value_equal(hd_value a, hd_value b) {
    if (a.bits == b.bits) return true;
    unsigned tag = value_tag(a);
    if (tag != value_tag(b)) return false;
    switch (tag) {
    case TAG_STRING:
    case TAG_BYTES: return text_equal(a, b);
    case TAG_BIGINT: return int_of(a) == int_of(b);
    case TAG_LINK: return link_equal(link_of(a), link_of(b));
    case TAG_ARRAY:
    case TAG_OBJECT: return container_equal(a, b);
    default: return false; /* immediates are equal bit by bit */
    }
}

/* ---- Shape ---- */

static bool same_keys(hd_value a, hd_value b) {
    pairs p;
    pairs_init(&p, a, b, true);
    return !pairs_next(&p);
}

bool value_same_shape(hd_value a, hd_value b) {
    if (!value_is_container(a) || value_tag(a) != value_tag(b)) return value_equal(a, b);
    if (hd_value_count(a) != hd_value_count(b)) return false;
    return value_is_array(a) || same_keys(a, b);
}

/* ---- Order ---- */

static int compare_int(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* Negative numbers below positive ones, -0.0 below +0.0, NaN above all. */
static int compare_double(double a, double b) {
    int64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    if (x < 0) x = (int64_t)(UINT64_C(0x7FFFFFFFFFFFFFFF) ^ (uint64_t)x);
    if (y < 0) y = (int64_t)(UINT64_C(0x7FFFFFFFFFFFFFFF) ^ (uint64_t)y);
    return compare_int(x, y);
}

static int compare_text(hd_value a, hd_value b) {
    size_t an, bn;
    const char *at = text_of(a, &an), *bt = text_of(b, &bn);
    int c = memcmp(at, bt, an < bn ? an : bn);
    return c ? c : (an > bn) - (an < bn);
}

static int compare_key(const struct key *a, const struct key *b) {
    if (!a || !b) return (a != NULL) - (b != NULL);
    return key_compare(a, b);
}

static int compare_link(const link_block *a, const link_block *b) {
    int c = compare_key(a->space, b->space);
    if (!c) c = compare_int(a->scope, b->scope);
    if (!c) c = compare_key(a->id, b->id);
    return c ? c : compare_key(a->pointer, b->pointer);
}

static int compare_array(hd_value a, hd_value b) {
    pairs p;
    pairs_init(&p, a, b, false);
    while (pairs_next(&p)) {
        int c = value_compare(p.was, p.is);
        if (c) return c;
    }
    return compare_int((int64_t)hd_value_count(a), (int64_t)hd_value_count(b));
}

/* As lists of entries: the lower key first, then the lower value; a list before its continuation. An
 * entry that only `a` has is lower than b's next one, or `b` is at its end. */
static int compare_object(hd_value a, hd_value b) {
    pairs p;
    pairs_init(&p, a, b, false);
    while (pairs_next(&p)) {
        if (value_is_absent(p.is)) return p.after.top < 0 ? 1 : -1;
        if (value_is_absent(p.was)) return p.before.top < 0 ? -1 : 1;
        int c = value_compare(p.was, p.is);
        if (c) return c;
    }
    return 0;
}

int value_compare(hd_value a, hd_value b) {
    if (a.bits == b.bits) return 0;
    hd_kind kind = hd_value_kind(a);
    if (kind != hd_value_kind(b)) return compare_int(kind, hd_value_kind(b));
    switch (kind) {
    case HD_KIND_FAILED:
    case HD_KIND_BOOL: return compare_int((int64_t)a.bits, (int64_t)b.bits);
    case HD_KIND_INT: return compare_int(int_of(a), int_of(b));
    case HD_KIND_DOUBLE: return compare_double(value_double_of(a), value_double_of(b));
    case HD_KIND_STRING:
    case HD_KIND_BYTES: return compare_text(a, b);
    case HD_KIND_ARRAY: return compare_array(a, b);
    case HD_KIND_OBJECT: return compare_object(a, b);
    case HD_KIND_LINK: return compare_link(link_of(a), link_of(b));
    default: return 0; /* absent and null: equal bit by bit */
    }
}

/* ---- Public ---- */

bool hd_value_equal(hd_value a, hd_value b) { return value_equal(a, b); }
bool hd_value_same_shape(hd_value a, hd_value b) { return value_same_shape(a, b); }
int hd_value_compare(hd_value a, hd_value b) { return value_compare(a, b); }
