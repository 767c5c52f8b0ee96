/* pairs.c -- two cursors over two trees, which step over what is shared.
 *
 * A cursor has either a whole subtree ahead of it, or an entry of a leaf that it opened. Both begin
 * with the whole tree ahead. As long as the two subtrees ahead begin at the same place, compare them
 * by identity: the same node is stepped over whole; of two different ones the higher is entered, so
 * that nodes of the same level meet. What a change left alone is thus skipped at the highest level
 * at which the two trees have it in common, even when splits or joins beside it changed the shape. */
#include "value/pairs.h"

/* ---- Cursors ---- */

static void cursor_init(cursor *c, hd_value v) {
    c->node[0] = value_node(v);
    c->top = c->node[0] ? 0 : -1;
    c->open = false;
}

static bool cursor_done(const cursor *c) { return c->top < 0; }
static const node *cursor_node(const cursor *c) { return c->node[c->top]; }

/* Over the whole subtree ahead, or what is left of the open leaf. */
static void cursor_skip(cursor *c) {
    c->open = false;
    while (--c->top >= 0) {
        const node *parent = c->node[c->top];
        if (++c->slot[c->top] == parent->count) continue;
        c->node[c->top + 1] = inner_children(parent)[c->slot[c->top]];
        c->top++;
        return;
    }
}

/* Into the subtree ahead: to its first child, or to the first entry of a leaf. */
static void cursor_enter(cursor *c) {
    assert(!c->open);
    const node *n = cursor_node(c);
    c->slot[c->top] = 0;
    c->open = n->level == 0;
    if (!c->open) c->node[++c->top] = inner_children(n)[0];
}

static void cursor_advance(cursor *c) {
    assert(c->open);
    if (++c->slot[c->top] == cursor_node(c)->count) cursor_skip(c);
}

static hd_value cursor_value(const cursor *c) {
    return leaf_values(cursor_node(c))[c->slot[c->top]];
}

/* The key of the entry, or the lowest key of the subtree. */
static struct key *cursor_key(const cursor *c) {
    const node *n = cursor_node(c);
    return c->open ? leaf_shape(n)->keys[c->slot[c->top]] : node_first_key(n);
}

/* ---- Pairs ---- */

void pairs_init(pairs *p, hd_value before, hd_value after, bool keys_only) {
    assert(value_tag(before) == value_tag(after));
    cursor_init(&p->before, before);
    cursor_init(&p->after, after);
    const node *any = p->before.node[0] ? p->before.node[0] : p->after.node[0];
    p->heap = any ? heap_of(any) : NULL;
    p->object = value_is_object(before);
    p->keys_only = keys_only;
    p->key = NULL;
    p->index = 0;
    p->position = 0;
}

static void enter(pairs *p, cursor *c) {
    p->heap->visited++;
    cursor_enter(c);
}

static bool same_ahead(const pairs *p) {
    const node *a = cursor_node(&p->before), *b = cursor_node(&p->after);
    if (a == b) return true;
    return p->keys_only && p->object && a->level == 0 && b->level == 0 &&
           leaf_shape(a) == leaf_shape(b);
}

static node *const *siblings_ahead(const cursor *c, unsigned *count) {
    const node *parent = c->node[c->top - 1];
    unsigned slot = c->slot[c->top - 1];
    *count = parent->count - slot;
    return inner_children(parent) + slot;
}

/* The subtrees ahead are the same: how many in a row are, beneath their parents. */
static unsigned same_in_a_row(const pairs *p) {
    if (p->before.top == 0 || p->after.top == 0) return 1;
    unsigned left, right, n = 1;
    node *const *a = siblings_ahead(&p->before, &left);
    node *const *b = siblings_ahead(&p->after, &right);
    while (n < left && n < right && a[n] == b[n]) n++;
    return n;
}

/* Over the subtree ahead and the siblings behind it, `count` in all. */
static void cursor_skip_row(cursor *c, unsigned count) {
    if (c->top > 0) c->slot[c->top - 1] = (uint8_t)(c->slot[c->top - 1] + count - 1);
    cursor_skip(c);
}

static size_t entries_ahead(const cursor *c, unsigned row) {
    unsigned count;
    size_t total = node_total(cursor_node(c));
    if (row == 1) return total;
    node *const *siblings = siblings_ahead(c, &count);
    for (unsigned i = 1; i < row; i++) total += node_total(siblings[i]);
    return total;
}

/* Over subtrees that are the same. A change of one entry leaves all but one child of each node on its
 * way alone, so whole rows of them are stepped over at once. */
static bool skip_shared(pairs *p) {
    if (p->before.open || p->after.open || !same_ahead(p)) return false;
    unsigned row = same_in_a_row(p);
    if (!p->object) p->position += entries_ahead(&p->before, row);
    cursor_skip_row(&p->before, row);
    cursor_skip_row(&p->after, row);
    return true;
}

/* Both begin at the same place, with different subtrees ahead on one side or on both: enters the
 * higher, or both. */
static void approach(pairs *p) {
    cursor *a = &p->before, *b = &p->after;
    int la = a->open ? -1 : (int)cursor_node(a)->level;
    int lb = b->open ? -1 : (int)cursor_node(b)->level;
    if (la >= lb) enter(p, a);
    if (lb >= la) enter(p, b);
}

static void cursor_jump(cursor *c, unsigned count) {
    c->slot[c->top] = (uint8_t)(c->slot[c->top] + count);
    if (c->slot[c->top] == cursor_node(c)->count) cursor_skip(c);
}

/* Over the entries of two open leaves that are the same bit by bit. False if there are none, or their
 * keys do not stand side by side. */
static bool skip_same_entries(pairs *p) {
    const node *a = cursor_node(&p->before), *b = cursor_node(&p->after);
    unsigned i = p->before.slot[p->before.top], j = p->after.slot[p->after.top], n = 0;
    if (p->object && (i != j || leaf_shape(a) != leaf_shape(b))) return false;
    const hd_value *x = leaf_values(a) + i, *y = leaf_values(b) + j;
    unsigned most = a->count - i < b->count - j ? a->count - i : b->count - j;
    while (n < most && x[n].bits == y[n].bits) n++;
    if (n == 0) return false;
    p->position += n;
    cursor_jump(&p->before, n);
    cursor_jump(&p->after, n);
    return true;
}

/* Over what both have in common here. */
static bool skip_common(pairs *p) {
    return p->before.open && p->after.open ? skip_same_entries(p) : skip_shared(p);
}

/* Takes the entry of one side or of both. True if it is to be yielded. */
static bool take(pairs *p, bool from_before, bool from_after) {
    p->key = p->object ? cursor_key(from_before ? &p->before : &p->after) : NULL;
    p->index = p->position++;
    p->was = from_before ? cursor_value(&p->before) : value_absent();
    p->is = from_after ? cursor_value(&p->after) : value_absent();
    if (from_before) cursor_advance(&p->before);
    if (from_after) cursor_advance(&p->after);
    if (p->was.bits == p->is.bits || (p->keys_only && from_before && from_after)) return false;
    p->heap->visited++;
    return true;
}

static bool array_next(pairs *p) {
    while (!cursor_done(&p->before) && !cursor_done(&p->after)) {
        if (skip_common(p)) continue;
        if (!p->before.open || !p->after.open) approach(p);
        else if (take(p, true, true)) return true;
    }
    return false;
}

/* Which side comes first: < 0 before, > 0 after, 0 both at the same key. */
static int order_of(const pairs *p) {
    if (cursor_done(&p->after)) return -1;
    if (cursor_done(&p->before)) return 1;
    return key_compare(cursor_key(&p->before), cursor_key(&p->after));
}

static bool object_next(pairs *p) {
    while (!cursor_done(&p->before) || !cursor_done(&p->after)) {
        bool both = !cursor_done(&p->before) && !cursor_done(&p->after);
        if (both && skip_common(p)) continue; /* without a look at the keys */
        int first = order_of(p);
        cursor *lower = first <= 0 ? &p->before : &p->after;
        if (first == 0 && (!p->before.open || !p->after.open)) approach(p);
        else if (!lower->open) enter(p, lower);
        else if (take(p, first <= 0, first >= 0)) return true;
    }
    return false;
}

bool pairs_next(pairs *p) { return p->object ? object_next(p) : array_next(p); }
