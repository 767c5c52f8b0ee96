/* readers_link.c -- a node's whole read set into the index, or out of it. */
#include "scheduler/live.h"

static void leave(graph *g, node_id id, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) readers_remove(g, id, i);
}

void readers_edges(graph *g, node_id id, place_id p, void (*fn)(graph *, node_id, node_id)) {
    writer_walk walk;
    writer w;
    writers_begin(&walk, g, p);
    while (writers_next(&walk, &w)) {
        node_id writer_id = w.node & ~WRITER_ENVELOPE;
        g->edge_visits++;
        if (writer_id != id) fn(g, writer_id, id);
    }
}

hd_status readers_link(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(!(n->flags & NODE_LINKED));
    for (uint32_t i = 0; i < n->read_count; i++) {
        if (!readers_add(g, id, i)) continue;
        leave(g, id, i);
        return HD_NOMEM;
    }
    n->flags |= NODE_LINKED;
    n->flags &= ~(uint32_t)NODE_OWED;
    for (uint32_t i = 0; i < n->read_count; i++)
        readers_edges(g, id, node_reads(n)[i].key & KEY_PLACE, order_edge);
    return HD_OK;
}

void readers_unlink(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(n->flags & NODE_LINKED);
    if (g->back_edges.count || g->back_lost)
        for (uint32_t i = 0; i < n->read_count; i++)
            readers_edges(g, id, node_reads(n)[i].key & KEY_PLACE, order_edge_gone);
    leave(g, id, n->read_count);
    n->flags &= ~(uint32_t)NODE_LINKED;
}

void graph_unlink(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (!(n->flags & NODE_LINKED)) return;
    assert(!node_is_live(g, n));
    readers_unlink(g, id);
}
