/* envelope.c -- materialisers: nodes that may write anywhere inside a declared envelope (spec 4.3).
 *
 * Envelopes are in the writer map beside outputs, marked WRITER_ENVELOPE. They order the materialiser before
 * nodes that read inside, and the search upstream of a node that is about to run follows them (upstream.c). They
 * carry no demand, and mark no node invalid. Places of another scope or space are other documents, so an envelope
 * does not reach across. */
#include "scheduler/graph/live.h"

/* Invalid materialisers are counted, so that the search for them costs nothing when there is none. */
static void set_materialiser(graph *g, node *n, bool on) {
    assert(!(n->flags & NODE_REMOVED));
    bool was = n->flags & NODE_MATERIALISER;
    if (was == on) return;
    n->flags ^= NODE_MATERIALISER;
    if (!node_is_invalid(g, n)) return;
    if (on) g->materialisers_invalid++;
    else g->materialisers_invalid--;
}

hd_status graph_add_envelope(graph *g, node_id id, place_id envelope) {
    assert(envelope && !(envelope & WRITER_ENVELOPE));
    hd_status status = surface_add(g, id, envelope | WRITER_ENVELOPE);
    if (status) return status;
    status = writers_add(g, (writer){ id | WRITER_ENVELOPE, envelope });
    if (status) {
        surface_remove(g, id, envelope | WRITER_ENVELOPE);
        return status;
    }
    place_ref(g->places, envelope);
    set_materialiser(g, graph_node(g, id), true);
    reader r;
    for (reader_walk w = readers_of(g, envelope); readers_next(&w, &r);)
        if (r.node != id) order_edge(g, id, r.node);
    return HD_OK;
}

void graph_remove_envelope(graph *g, node_id id, place_id envelope) {
    assert(graph_node(g, id)->flags & NODE_MATERIALISER);
    reader r;
    if (g->back_edges.count || g->back_lost)
        for (reader_walk w = readers_of(g, envelope); readers_next(&w, &r);)
            if (r.node != id) order_edge_gone(g, id, r.node);
    writers_remove(g, (writer){ id | WRITER_ENVELOPE, envelope });
    surface_remove(g, id, envelope | WRITER_ENVELOPE);
    const surface *s = surface_of(g, id);
    if (!s || !s->envelopes) set_materialiser(g, graph_node(g, id), false);
    place_unref(g->places, envelope);
}
