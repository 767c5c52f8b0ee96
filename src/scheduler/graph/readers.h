/* readers.h -- place.watch: the nodes that read a place.
 *
 * The first deep reader stands in the word itself. A second one, or one by shape, makes a list. An
 * entry and the read it stands for know each other's index (reader.slot, edge.slot), so both leave
 * in O(1).
 *
 * Going over the readers of a place while marking them (which takes dormant ones out of the list):
 *
 *     for (uint32_t i = readers_count(p); i-- > 0;) {
 *         if (i >= readers_count(p)) continue;
 *         reader r = readers_at(p, i);
 *         ...
 *     }
 */
#ifndef SCHEDULER_READERS_H
#define SCHEDULER_READERS_H

#include "scheduler/graph/graph.h"

/* Blocks of `bytes`, a power of two from 16 on. NULL: no memory. */
void *graph_block_take(graph *g, size_t bytes);
void graph_block_give(graph *g, void *block, size_t bytes);

/* What a list with room for 1 << room readers takes. */
static inline size_t readers_list_bytes(unsigned room, bool wide) {
    return offsetof(watch, nodes) + ((sizeof(uint32_t) + (wide ? 4 : 2)) << room);
}

static inline uint32_t readers_count(const place *p) {
    if (!p->watch) return 0;
    return watch_is_inline(p->watch) ? 1 : watch_list(p->watch)->count;
}
static inline reader readers_at(const place *p, uint32_t i) {
    return watch_is_inline(p->watch) ? watch_reader(p->watch) : watch_at(watch_list(p->watch), i);
}

/* Enters the node's read at `slot`, which stands in its read set already, and writes its back-index.
 * HD_NOMEM: nothing changed. */
hd_status readers_add_to_list(graph *g, node_id id, uint32_t slot);
static inline hd_status readers_add(graph *g, node_id id, uint32_t slot) {
    edge *e = &node_reads(graph_node(g, id))[slot];
    place *p = place_at(g->places, e->key & KEY_PLACE);
    assert(e->slot == EDGE_UNLINKED);
    if (p->watch || (e->key & KEY_SHAPE)) return readers_add_to_list(g, id, slot);
    p->watch = watch_inline((reader){ id, slot });
    e->slot = 0;
    return HD_OK;
}
/* Takes it out again; leaves EDGE_UNLINKED. */
void readers_remove(graph *g, node_id id, uint32_t slot);
/* The same for a read that does not stand in the read set any more: `e` is as it stood there. */
void readers_remove_old(graph *g, edge e);
/* The node's linked read moved within its read set, to `slot`; if that is above READER_SLOT_MAX, there
 * must have been a readers_widen before. */
void readers_move(graph *g, edge e, uint32_t slot);
/* Any slot can stand in the list that the linked read is in. HD_NOMEM: nothing changed. */
hd_status readers_widen(graph *g, edge e);

/* A live reader of this very place; 0: none. */
node_id readers_live(const graph *g, place_id at);

/* Gives a list back without looking at its readers; for graph_fini. */
void readers_drop(graph *g, place *p);

/* The linked readers of all places related to `top`: above, at, below. The lists must not change
 * meanwhile. */
typedef struct reader_walk {
    const graph *g;
    place_id top, at;
    uint32_t left; /* readers of `at` not yet returned */
    bool below;
} reader_walk;

reader_walk readers_of(const graph *g, place_id top);
bool readers_next(reader_walk *w, reader *out);

#endif
