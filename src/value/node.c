/* node.c -- making, copying, searching, checking and freeing the nodes of trees. */
#include "value/node.h"

/* ---- Layout ---- */

static size_t leaf_size(bool object, unsigned count, unsigned nesting) {
    size_t head = object ? sizeof(object_leaf) : sizeof(array_leaf);
    return head + count * sizeof(hd_value) + (nesting > 1 ? sizeof(hd_hash) : 0);
}

/* Up to where the hash begins. */
static size_t inner_body(bool object, unsigned count) {
    size_t aside = object ? count * (sizeof(struct key *) + sizeof(uint64_t))
                          : (count * sizeof(uint32_t) + 7) / 8 * 8;
    return sizeof(inner) + count * sizeof(node *) + aside;
}

hd_hash *node_hash_slot(const node *n) {
    assert(node_has_hash(n));
    size_t at = n->level ? inner_body(n->object, n->count) : leaf_size(n->object, n->count, 0);
    return (hd_hash *)(void *)((char *)(uintptr_t)n + at);
}

/* ---- Leaves ---- */

static unsigned values_nesting(const hd_value *values, unsigned count) {
    unsigned deepest = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned nesting = value_nesting(values[i]);
        if (nesting > deepest) deepest = nesting;
    }
    return deepest + 1;
}

/* Without the references of the values. */
static node *leaf_new(hd_heap *heap, shape *s, const hd_value *values, unsigned count) {
    assert(count > 0 && count <= (s ? OBJECT_LEAF_MAX : ARRAY_LEAF_MAX));
    bool plain = true;
    unsigned nesting = 1; /* [] is plain, and nests */
    for (unsigned i = 0; i < count; i++) {
        if (!value_may_be_block(values[i])) continue;
        unsigned with = 1 + value_nesting(values[i]);
        if (with > nesting) nesting = with;
        plain = plain && !value_is_block(values[i]);
    }
    node *n = heap_block_new(heap, leaf_size(s != NULL, count, nesting));
    if (!n) return NULL;
    *n = (node){ .refs = 1, .object = s != NULL, .plain = plain };
    n->count = count & 0x1FF;
    n->nesting = nesting & 0xFFFF;
    if (s) ((object_leaf *)n)->shape = shape_ref(s);
    memcpy(leaf_values(n), values, count * sizeof *values);
    return n;
}

node *leaf_take(hd_heap *heap, shape *s, const hd_value *values, unsigned count) {
    return leaf_new(heap, s, values, count);
}

static void leaf_ref_values(const node *n) {
    if (n->plain) return;
    const hd_value *values = leaf_values(n);
    for (unsigned i = 0; i < n->count; i++) value_ref(values[i]);
}

node *leaf_make(hd_heap *heap, shape *s, const hd_value *values, unsigned count) {
    node *n = leaf_new(heap, s, values, count);
    if (n) leaf_ref_values(n);
    return n;
}

/* Most changes leave the nesting alone; only taking out the deepest value needs a look at all. */
static unsigned nesting_with(const node *leaf, unsigned slot, hd_value v) {
    unsigned now = 1 + value_nesting(v), was = 1 + value_nesting(leaf_values(leaf)[slot]);
    if (now >= leaf->nesting) return now;
    if (was < leaf->nesting) return leaf->nesting;
    unsigned before = values_nesting(leaf_values(leaf), slot);
    unsigned behind = values_nesting(leaf_values(leaf) + slot + 1, leaf->count - slot - 1);
    unsigned others = before > behind ? before : behind;
    return now > others ? now : others;
}

node *leaf_with(hd_heap *heap, const node *leaf, unsigned slot, hd_value v) {
    assert(leaf->level == 0 && slot < leaf->count);
    unsigned nesting = nesting_with(leaf, slot, v);
    node *n = heap_block_new(heap, leaf_size(leaf->object, leaf->count, nesting));
    if (!n) return NULL;
    memcpy(n, leaf, leaf_size(leaf->object, leaf->count, 0));
    n->refs = 1;
    n->hashed = 0;
    n->nesting = nesting & 0xFFFF;
    n->plain = leaf->plain && !value_is_block(v);
    if (n->object) shape_ref(leaf_shape(n));
    leaf_values(n)[slot] = v;
    leaf_ref_values(n);
    return n;
}

/* ---- Inner nodes ---- */

static void set_first(node *n, unsigned slot, const node *child) {
    struct key *k = node_first_key(child);
    if (child->level) inner_prefix(n)[slot] = inner_prefix(child)[0];
    else inner_prefix(n)[slot] = key_prefix(key_bytes(k));
    inner_first(n)[slot] = k;
}

static void inner_describe(node *n) {
    uint32_t total = 0;
    unsigned nesting = 0;
    for (unsigned i = 0; i < n->count; i++) {
        const node *child = inner_children(n)[i];
        assert(child->level + 1 == n->level && child->object == n->object);
        total += node_total(child);
        if (child->nesting > nesting) nesting = child->nesting;
        if (n->object) set_first(n, i, child);
        else inner_ends(n)[i] = total;
    }
    ((inner *)n)->total = total;
    n->nesting = nesting & 0xFFFF;
}

node *inner_make(hd_heap *heap, node *const *children, unsigned count) {
    assert(count > 0 && count <= INNER_MAX);
    bool object = children[0]->object;
    node *n = heap_block_new(heap, inner_body(object, count) + sizeof(hd_hash));
    if (!n) return NULL;
    *n = (node){ .refs = 1, .object = object };
    n->level = (children[0]->level + 1u) & 0xF;
    n->count = count & 0x1FF;
    for (unsigned i = 0; i < count; i++) inner_children(n)[i] = node_ref(children[i]);
    inner_describe(n);
    return n;
}

static unsigned children_nesting(const node *n) {
    unsigned nesting = 0;
    for (unsigned i = 0; i < n->count; i++)
        if (inner_children(n)[i]->nesting > nesting) nesting = inner_children(n)[i]->nesting;
    return nesting;
}

node *inner_with(hd_heap *heap, const node *old, unsigned slot, node *child) {
    assert(old->level > 0 && slot < old->count && child->level + 1 == old->level);
    size_t body = inner_body(old->object, old->count);
    node *n = heap_block_new(heap, body + sizeof(hd_hash));
    if (!n) return NULL;
    memcpy(n, old, body);
    n->refs = 1;
    n->hashed = 0;
    const node *was = inner_children(old)[slot];
    inner_children(n)[slot] = child;
    for (unsigned i = 0; i < n->count; i++) node_ref(inner_children(n)[i]);

    uint32_t more = node_total(child) - node_total(was); /* modulo 2^32: may be less */
    ((inner *)n)->total += more;
    if (n->object) set_first(n, slot, child);
    else
        for (unsigned i = slot; more && i < n->count; i++) inner_ends(n)[i] += more;
    if (child->nesting >= n->nesting) n->nesting = child->nesting;
    else if (was->nesting == n->nesting) n->nesting = children_nesting(n) & 0xFFFF;
    return n;
}

/* ---- Freeing ---- */

static void word_set(node *n, node *link) {
    if (n->level) inner_children(n)[0] = link;
    else leaf_values(n)[0].bits = (uint64_t)(uintptr_t)link;
}
static node *word_link(const node *n) {
    return n->level ? inner_children(n)[0] : (node *)(uintptr_t)leaf_values(n)[0].bits;
}

/* Gives up one reference to v. Returns v's node if that was the last one, for the caller to free. */
static inline node *drop_value(hd_value v) {
    if (!value_is_block(v)) return NULL;
    if (!value_is_container(v)) {
        value_unref(v);
        return NULL;
    }
    node *n = value_node(v);
    return --n->refs == 0 ? n : NULL;
}
static inline node *drop_child(node *n) { return --n->refs == 0 ? n : NULL; }

static inline node *drop_entry(const node *n, unsigned slot) {
    if (n->level) return drop_child(inner_children(n)[slot]);
    return n->plain ? NULL : drop_value(leaf_values(n)[slot]);
}

/* Puts a node without references on the list of the dead. The list is linked through the first entry
 * of each node, which is therefore dropped here; if that kills a node, it is the next to be buried.
 * So nesting of any depth is freed without recursion and without memory. */
static void bury(node *n, node **dead) {
    while (n) {
        node *next = drop_entry(n, 0);
        word_set(n, *dead);
        *dead = n;
        n = next;
    }
}

void node_destroy(node *n) {
    node *dead = NULL;
    bury(n, &dead);
    while (dead) {
        n = dead;
        dead = word_link(n);
        if (n->level || !n->plain)
            for (unsigned i = 1; i < n->count; i++) bury(drop_entry(n, i), &dead);
        if (n->object && n->level == 0) shape_unref(leaf_shape(n));
        heap_block_free(n);
    }
}

void node_unref(node *n) {
    if (n && --n->refs == 0) node_destroy(n);
}

/* ---- Searching ---- */

int leaf_find(const node *leaf, const struct key *k) {
    const shape *s = leaf_shape(leaf);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->keys[i] == k) return (int)i;
    return -1;
}

unsigned leaf_search(const node *leaf, const needle *k, bool *found) {
    const shape *s = leaf_shape(leaf);
    unsigned low = 0, high = s->count;
    *found = false;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        int c = key_compare_needle(s->keys[middle], k);
        if (c == 0) {
            *found = true;
            return middle;
        }
        if (c < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool first_above(const node *n, unsigned slot, const needle *k) {
    uint64_t prefix = inner_prefix(n)[slot];
    if (prefix != k->prefix) return prefix > k->prefix;
    return key_compare_behind(inner_first(n)[slot], k) > 0;
}

unsigned inner_search(const node *n, const needle *k) {
    unsigned low = 0, high = n->count - 1u; /* the answer is in [low, high] */
    while (low < high) {
        unsigned middle = (low + high + 1) / 2;
        if (first_above(n, middle, k)) high = middle - 1;
        else low = middle;
    }
    return low;
}

unsigned inner_locate(const node *n, size_t *index) {
    const uint32_t *ends = inner_ends(n);
    unsigned slot = 0;
    while (slot + 1u < n->count && ends[slot] <= *index) slot++;
    if (slot > 0) *index -= ends[slot - 1];
    return slot;
}

/* ---- Checking ---- */

#ifndef NDEBUG
static void leaf_check(const node *n) {
    const hd_value *values = leaf_values(n);
    assert(n->nesting == values_nesting(values, n->count));
    for (unsigned i = 0; i < n->count; i++) {
        assert(value_exists(values[i]));
        if (!value_is_block(values[i])) continue;
        assert(!n->plain && ((struct block *)value_block(values[i]))->refs > 0);
    }
    if (!n->object) return;
    const shape *s = leaf_shape(n);
    assert(s->refs > 0 && s->count == n->count);
    for (unsigned i = 0; i < s->count; i++) {
        assert(s->keys[i]->refs > 0);
        assert(i == 0 || key_compare(s->keys[i - 1], s->keys[i]) < 0);
    }
}

static const struct key *last_key(const node *n) {
    while (n->level) n = inner_children(n)[n->count - 1];
    return leaf_shape(n)->keys[n->count - 1];
}

/* Recursion over the levels of one tree, of which there are few. */
static void subtree_check(const node *n, bool edge) {
    assert(n->refs > 0 && n->count > 0 && n->count <= node_max(n));
    assert(edge || n->count >= node_min(n));
    if (n->level == 0) {
        leaf_check(n);
        return;
    }
    uint32_t total = 0;
    for (unsigned i = 0; i < n->count; i++) {
        const node *child = inner_children(n)[i];
        assert(child->level + 1 == n->level && child->object == n->object);
        subtree_check(child, edge && i + 1u == n->count);
        total += node_total(child);
        if (!n->object) {
            assert(inner_ends(n)[i] == total);
            continue;
        }
        assert(inner_first(n)[i] == node_first_key(child));
        assert(inner_prefix(n)[i] == key_prefix(key_bytes(inner_first(n)[i])));
        assert(i == 0 || key_compare(last_key(inner_children(n)[i - 1]), inner_first(n)[i]) < 0);
    }
    assert(node_total(n) == total && n->nesting == children_nesting(n));
}

void node_check(const node *root) {
    if (!root) return;
    assert(root->level == 0 || root->count > 1);
    subtree_check(root, true);
}
#else
void node_check(const node *root) { (void)root; }
#endif
