/* readers.c -- adding to and removing from place.watch, and going over the readers of an output. */
#include "scheduler/graph/readers.h"

#include "base/env.h"

/* ---- blocks */

static unsigned block_class(size_t bytes) {
    assert(bytes >= 16 && (bytes & (bytes - 1)) == 0);
    return (unsigned)__builtin_ctzll(bytes) - 4;
}

/* Too large for the slabs. */
static void *large_take(graph *g, size_t bytes) {
    void *block = env_new(g->env, bytes);
    if (block) g->large++;
    return block;
}

static void large_give(graph *g, void *block, size_t bytes) {
    assert(g->large > 0);
    g->large--;
    env_free(g->env, block, bytes);
}

void *graph_block_take(graph *g, size_t bytes) {
    unsigned class = block_class(bytes);
    return class < GRAPH_BLOCK_CLASSES ? slab_take(&g->blocks[class]) : large_take(g, bytes);
}

void graph_block_give(graph *g, void *block, size_t bytes) {
    unsigned class = block_class(bytes);
    if (class < GRAPH_BLOCK_CLASSES) slab_give(&g->blocks[class], block);
    else large_give(g, block, bytes);
}

/* ---- lists */

/* Slots need four bytes only for nodes with more than 65,536 reads. */
static bool slot_is_wide(uint32_t slot) { return slot > READER_SLOT_MAX; }

static watch *list_new(graph *g, unsigned room, bool wide) {
    bool slabbed = room < GRAPH_LIST_CLASSES && !wide;
    watch *entries =
        slabbed ? slab_take(&g->lists[room]) : large_take(g, readers_list_bytes(room, wide));
    if (entries) *entries = (watch){ .room = (uint8_t)room, .wide = wide };
    return entries;
}

static void list_free(graph *g, watch *entries) {
    unsigned room = entries->room;
    if (room < GRAPH_LIST_CLASSES && !entries->wide) slab_give(&g->lists[room], entries);
    else large_give(g, entries, readers_list_bytes(room, entries->wide));
}

/* The same list in another block; the old one is given back. */
static watch *list_moved(graph *g, watch *old, unsigned room, bool wide) {
    watch *entries = list_new(g, room, wide);
    if (!entries) return NULL;
    entries->count = old->count;
    entries->shapes = old->shapes;
    entries->shape_rev = old->shape_rev;
    for (uint32_t i = 0; i < old->count; i++) watch_put(entries, i, watch_at(old, i));
    list_free(g, old);
    return entries;
}

static void flag_shape(place *p, place_id id, bool on) {
    if (p->root == id) {
        if (on) p->doc.flags |= DOC_HAS_SHAPE;
        else p->doc.flags &= (uint16_t)~DOC_HAS_SHAPE;
    } else {
        if (on) p->in.flags |= DOC_HAS_SHAPE;
        else p->in.flags &= ~(uint32_t)DOC_HAS_SHAPE;
    }
}

/* The first list of a place. */
static watch *list_of_first(graph *g, const place *p, bool wide) {
    if (p->watch) wide |= slot_is_wide(watch_reader(p->watch).slot);
    watch *entries = list_new(g, p->watch ? 1 : 0, wide);
    if (!entries) return NULL;
    /* When its shape last changed is not known; not after its value did. */
    entries->shape_rev = p->rev;
    if (p->watch) watch_put(entries, entries->count++, watch_reader(p->watch));
    return entries;
}

/* A list with room for one more, at `slot` of its reads; NULL: no memory, nothing changed. */
static watch *list_with_room(graph *g, const place *p, uint32_t slot) {
    bool wide = slot_is_wide(slot);
    if (!p->watch || watch_is_inline(p->watch)) return list_of_first(g, p, wide);
    watch *entries = watch_list(p->watch);
    bool full = entries->count == watch_capacity(entries);
    if (!full && entries->wide >= wide) return entries;
    return list_moved(g, entries, entries->room + full, entries->wide || wide);
}

hd_status readers_add_to_list(graph *g, node_id id, uint32_t slot) {
    edge *e = &node_reads(graph_node(g, id))[slot];
    place_id pid = e->key & KEY_PLACE;
    place *p = place_at(g->places, pid);
    bool shape = e->key & KEY_SHAPE;
    watch *entries = list_with_room(g, p, slot);
    if (!entries) return HD_NOMEM;
    p->watch = (uint64_t)(uintptr_t)entries;
    e->slot = entries->count;
    watch_put(entries, entries->count++, (reader){ shape ? id | READER_SHAPE : id, slot });
    if (shape && entries->shapes++ == 0) {
        entries->shape_rev = p->rev; /* without readers by shape its changes were not recorded */
        flag_shape(p, pid, true);
    }
    return HD_OK;
}

static void take_out(graph *g, watch *entries, uint32_t at) {
    assert(at < entries->count);
    reader last = watch_at(entries, entries->count - 1);
    if (at == --entries->count) return;
    watch_put(entries, at, last);
    node *moved = graph_node(g, last.node & ~READER_SHAPE);
    node_reads(moved)[last.slot].slot = at;
}

/* A list that lost most of its readers moves to a smaller block, if there is one. */
static void list_shrink(graph *g, place *p, watch *entries) {
    if (entries->count == 0) {
        list_free(g, entries);
        p->watch = 0;
    } else if (watch_capacity(entries) > 16 && entries->count <= watch_capacity(entries) / 4) {
        watch *smaller = list_moved(g, entries, entries->room - 1U, entries->wide);
        if (smaller) p->watch = (uint64_t)(uintptr_t)smaller;
    }
}

void readers_remove_old(graph *g, edge e) {
    place_id pid = e.key & KEY_PLACE;
    place *p = place_at(g->places, pid);
    assert(e.slot < readers_count(p));
    if (watch_is_inline(p->watch)) {
        p->watch = 0;
        return;
    }
    watch *entries = watch_list(p->watch);
    if ((e.key & KEY_SHAPE) && --entries->shapes == 0) flag_shape(p, pid, false);
    take_out(g, entries, e.slot);
    list_shrink(g, p, entries);
}

void readers_remove(graph *g, node_id id, uint32_t slot) {
    edge *e = &node_reads(graph_node(g, id))[slot];
    edge old = *e;
    assert((readers_at(place_at(g->places, old.key & KEY_PLACE), old.slot).node & ~READER_SHAPE) ==
           id);
    e->slot = EDGE_UNLINKED;
    readers_remove_old(g, old);
}

void readers_move(graph *g, edge e, uint32_t slot) {
    place *p = place_at(g->places, e.key & KEY_PLACE);
    assert(e.slot < readers_count(p));
    if (watch_is_inline(p->watch)) {
        p->watch = watch_inline((reader){ watch_reader(p->watch).node, slot });
    } else {
        watch *entries = watch_list(p->watch);
        watch_put(entries, e.slot, (reader){ entries->nodes[e.slot], slot });
    }
}

hd_status readers_widen(graph *g, edge e) {
    place *p = place_at(g->places, e.key & KEY_PLACE);
    if (watch_is_inline(p->watch) || watch_list(p->watch)->wide) return HD_OK;
    watch *wide = list_moved(g, watch_list(p->watch), watch_list(p->watch)->room, true);
    if (!wide) return HD_NOMEM;
    p->watch = (uint64_t)(uintptr_t)wide;
    return HD_OK;
}

node_id readers_live(const graph *g, place_id at) {
    const place *p = place_at(g->places, at);
    for (uint32_t i = 0; i < readers_count(p); i++) {
        node_id id = readers_at(p, i).node & ~READER_SHAPE;
        if (node_is_live(g, graph_node(g, id))) return id;
    }
    return 0;
}

void readers_drop(graph *g, place *p) {
    if (p->watch && !watch_is_inline(p->watch)) {
        watch *entries = watch_list(p->watch);
        list_free(g, entries);
    }
    p->watch = 0;
}

/* ---- the walk */

static void look_at(reader_walk *w, place_id at) {
    w->at = at;
    w->left = readers_count(place_at(w->g->places, at));
}

reader_walk readers_of(const graph *g, place_id top) {
    reader_walk w = { .g = g, .top = top };
    look_at(&w, top);
    return w;
}

/* The place after `at` in a preorder walk below `top`; 0 at its end. */
static place_id next_below(const places *ps, place_id top, place_id at) {
    if (ps->at[at].first_child) return ps->at[at].first_child;
    for (; at != top; at = ps->at[at].in.parent)
        if (ps->at[at].in.next) return ps->at[at].in.next;
    return 0;
}

/* Upwards from `top` to the document, then all that is below `top`. */
static bool next_place(reader_walk *w) {
    const places *ps = w->g->places;
    if (!w->below && !place_is_doc(ps, w->at)) {
        look_at(w, ps->at[w->at].in.parent);
        return true;
    }
    place_id at = next_below(ps, w->top, w->below ? w->at : w->top);
    w->below = true;
    if (!at) return false;
    look_at(w, at);
    return true;
}

bool readers_next(reader_walk *w, reader *out) {
    while (!w->left)
        if (!next_place(w)) return false;
    *out = readers_at(place_at(w->g->places, w->at), --w->left);
    out->node &= ~READER_SHAPE;
    return true;
}
