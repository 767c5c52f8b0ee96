/* writers.c -- the static writer map: document -> outputs, and node -> further outputs. */
#include "scheduler/graph/writers.h"

#include "base/env.h"

#define CLIMB_FROM 8 /* writers in a document from which on looking up beats trying each */

static place *doc_of(const graph *g, place_id p) {
    return place_at(g->places, place_at(g->places, p)->root);
}
static writer_list *list_of(const graph *g, const place *doc) {
    return &g->writer_lists.items[doc->doc.writer];
}

/* ---- going over them */

void writers_begin_many(writer_walk *w) {
    const graph *g = w->g;
    const place *doc = doc_of(g, w->place);
    const writer_list *entries = list_of(g, doc);
    w->items = entries->items;
    w->count = entries->count;
    const place *p = place_at(g->places, w->place);
    if (entries->count >= CLIMB_FROM && p != doc && !p->first_child) {
        w->up = w->place;
        w->probe = table_find(&g->writer_index, w->up);
    }
}

/* For a place without children: all outputs that are related to it lie at it or above it. */
bool writers_climb(writer_walk *w, writer *out) {
    for (;;) {
        if (table_next(&w->g->writer_index, &w->probe)) {
            *out = w->items[w->probe.index];
            assert(out->place == w->up);
            return true;
        }
        if (place_is_doc(w->g->places, w->up)) return false;
        w->up = place_at(w->g->places, w->up)->in.parent;
        w->probe = table_find(&w->g->writer_index, w->up);
    }
}

/* ---- the lists */

/* A free list of the table; 0: no memory. */
static uint32_t take_list(graph *g) {
    if (!g->writer_lists.count && !vec_push(g->env, &g->writer_lists, (writer_list){ 0 })) return 0;
    uint32_t index = g->writer_lists_free;
    if (!index) {
        if (!vec_push(g->env, &g->writer_lists, (writer_list){ 0 })) return 0;
        index = g->writer_lists.count - 1;
    } else {
        g->writer_lists_free = g->writer_lists.items[index].count;
    }
    g->writer_lists.items[index] = (writer_list){ 0 };
    return index;
}

static void give_list(graph *g, uint32_t index) {
    vec_fini(g->env, &g->writer_lists.items[index]);
    g->writer_lists.items[index].count = g->writer_lists_free;
    g->writer_lists_free = index;
}

/* Room is there: list and table were reserved. */
static void append(graph *g, writer_list *entries, writer w) {
    hd_status status = table_insert(&g->writer_index, w.place, entries->count);
    assert(!status && entries->count < entries->capacity);
    (void)status;
    entries->items[entries->count++] = w;
}

/* From the word in the document's record to a list. */
static hd_status make_list(graph *g, place *doc) {
    uint32_t index = take_list(g);
    if (!index) return HD_NOMEM;
    writer_list *entries = &g->writer_lists.items[index];
    if (!vec_room(g->env, entries, 2) ||
        table_reserve(&g->writer_index, g->writer_index.count + 2)) {
        give_list(g, index);
        return HD_NOMEM;
    }
    node_id only = doc->doc.writer;
    if (only) append(g, entries, (writer){ only, graph_node(g, only)->output });
    doc->doc.writer = index;
    doc->doc.flags |= DOC_MULTI_WRITER;
    return HD_OK;
}

hd_status writers_add(graph *g, writer w) {
    place *doc = doc_of(g, w.place);
    bool many = doc->doc.flags & DOC_MULTI_WRITER;
    if (!many && !doc->doc.writer && !(w.node & WRITER_ENVELOPE) &&
        graph_node(g, w.node)->output == w.place) {
        doc->doc.writer = w.node;
        return HD_OK;
    }
    if (!many) {
        hd_status status = make_list(g, doc);
        if (status) return status;
    }
    writer_list *entries = list_of(g, doc);
    if (!vec_room(g->env, entries, 1)) return HD_NOMEM;
    if (table_reserve(&g->writer_index, g->writer_index.count + 1)) return HD_NOMEM;
    append(g, entries, w);
    return HD_OK;
}

static uint32_t index_in_list(const graph *g, const writer_list *entries, writer w) {
    table_probe p = table_find(&g->writer_index, w.place);
    while (table_next(&g->writer_index, &p))
        if (entries->items[p.index].node == w.node) return p.index;
    assert(false && "the writer is in its document's list");
    return 0;
}

void writers_remove(graph *g, writer w) {
    place *doc = doc_of(g, w.place);
    if (!(doc->doc.flags & DOC_MULTI_WRITER)) {
        assert(doc->doc.writer == w.node);
        doc->doc.writer = 0;
        return;
    }
    writer_list *entries = list_of(g, doc);
    uint32_t at = index_in_list(g, entries, w), last = entries->count - 1;
    table_remove(&g->writer_index, w.place, at);
    if (at != last) table_move(&g->writer_index, entries->items[last].place, last, at);
    vec_swap_remove(entries, at);
    if (entries->count) return;
    give_list(g, doc->doc.writer);
    doc->doc.writer = 0;
    doc->doc.flags &= (uint16_t)~DOC_MULTI_WRITER;
}

void writers_fini(graph *g) {
    for (uint32_t i = 1; i < g->writer_lists.count; i++) {
        writer_list *entries = &g->writer_lists.items[i];
        if (entries->items) vec_fini(g->env, entries);
    }
    vec_fini(g->env, &g->writer_lists);
    table_fini(&g->writer_index);
    for (uint32_t i = 0; i < g->surfaces.count; i++)
        if (g->surfaces.items[i].node) vec_fini(g->env, &g->surfaces.items[i].places);
    vec_fini(g->env, &g->surfaces);
    table_fini(&g->surface_index);
}

/* ---- surfaces */

surface *surface_of(const graph *g, node_id id) {
    if (!(graph_node(g, id)->flags & NODE_MORE)) return NULL;
    table_probe p = table_find(&g->surface_index, id);
    while (table_next(&g->surface_index, &p))
        if (g->surfaces.items[p.index].node == id) return &g->surfaces.items[p.index];
    assert(false && "a node with NODE_MORE has a surface");
    return NULL;
}

static surface *surface_new(graph *g, node_id id) {
    uint32_t index = g->surfaces_free;
    if (!index) {
        if (!vec_push(g->env, &g->surfaces, (surface){ 0 })) return NULL;
        index = g->surfaces.count;
        g->surfaces_free = index; /* free until the table has it */
    }
    if (table_insert(&g->surface_index, id, index - 1)) return NULL;
    surface *s = &g->surfaces.items[index - 1];
    g->surfaces_free = s->envelopes; /* of a free one: the next free */
    *s = (surface){ .node = id };
    graph_node(g, id)->flags |= NODE_MORE;
    return s;
}

static void surface_free(graph *g, surface *s) {
    uint32_t index = (uint32_t)(s - g->surfaces.items);
    table_remove(&g->surface_index, s->node, index);
    graph_node(g, s->node)->flags &= ~(uint32_t)NODE_MORE;
    vec_fini(g->env, &s->places);
    *s = (surface){ .envelopes = g->surfaces_free };
    g->surfaces_free = index + 1;
}

hd_status surface_add(graph *g, node_id id, uint32_t p) {
    surface *s = surface_of(g, id);
    if (!s) s = surface_new(g, id);
    if (!s) return HD_NOMEM;
    if (!vec_push(g->env, &s->places, p)) {
        if (!s->places.count) surface_free(g, s);
        return HD_NOMEM;
    }
    s->envelopes += (p & WRITER_ENVELOPE) != 0;
    return HD_OK;
}

void surface_remove(graph *g, node_id id, uint32_t p) {
    surface *s = surface_of(g, id);
    assert(s);
    uint32_t i = 0;
    while (s->places.items[i] != p) assert(i + 1 < s->places.count), i++;
    vec_remove(&s->places, i);
    s->envelopes -= (p & WRITER_ENVELOPE) != 0;
    if (!s->places.count) surface_free(g, s);
}

uint32_t graph_output(const graph *g, node_id id, uint32_t i) {
    const node *n = graph_node(g, id);
    if (n->output && i-- == 0) return n->output;
    const surface *s = surface_of(g, id);
    return s && i < s->places.count ? s->places.items[i] : 0;
}

/* ---- for others */

void graph_each_writer(const graph *g, place_id p, void (*fn)(void *ctx, node_id writer),
                       void *ctx) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, g, p);
    while (writers_next(&walk, &w))
        if (!(w.node & WRITER_ENVELOPE)) fn(ctx, w.node);
}
