/* readers_link.c -- a node's whole read set into the index, or out of it. */
#include "scheduler/graph/live.h"

static void leave(graph *g, node_id id, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) readers_remove(g, id, i);
}

hd_status readers_enter(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(!(n->flags & NODE_LINKED));
    for (uint32_t i = 0; i < n->read_count; i++) {
        if (!readers_add(g, id, i)) continue;
        leave(g, id, i);
        return HD_NOMEM;
    }
    n->flags |= NODE_LINKED;
    n->flags &= ~(uint32_t)NODE_OWED;
    return HD_OK;
}

void readers_leave(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(n->flags & NODE_LINKED);
    leave(g, id, n->read_count);
    n->flags &= ~(uint32_t)NODE_LINKED;
}

/* ---- for others */

hd_status graph_link(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (n->flags & NODE_LINKED) return HD_OK;
    hd_status status = readers_enter(g, id);
    if (status) return status;
    bool live = node_is_live(g, n); /* live, and not linked: NODE_OWED */
    for (uint32_t i = 0; i < n->read_count; i++)
        live_read_added(g, id, node_reads(n)[i].key & KEY_PLACE, live);
    live_drain(g);
    return HD_OK;
}

void graph_unlink(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (!(n->flags & NODE_LINKED)) return;
    assert(!node_is_live(g, n));
    if (g->back_edges.count || g->back_lost)
        for (uint32_t i = 0; i < n->read_count; i++)
            live_read_gone(g, id, node_reads(n)[i].key & KEY_PLACE, false);
    readers_leave(g, id);
}
