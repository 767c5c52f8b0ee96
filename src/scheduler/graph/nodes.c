/* nodes.c -- the graph as a whole; nodes and their outputs come and go. */
#include "scheduler/graph/live.h"

#include "base/env.h"

hd_status graph_init(graph *g, const hd_env *env, places *ps) {
    *g = (graph){ .env = env, .places = ps, .retry_low = UINT32_MAX };
    table_init(&g->back_index, env);
    table_init(&g->writer_index, env);
    table_init(&g->surface_index, env);
    table_init(&g->kin_index, env);
    for (unsigned i = 0; i < GRAPH_BLOCK_CLASSES; i++)
        slab_init(&g->blocks[i], env, (size_t)16 << i);
    for (unsigned i = 0; i < GRAPH_LIST_CLASSES; i++)
        slab_init(&g->lists[i], env, readers_list_bytes(i, false));
    return HD_OK;
}

/* Frees the reader lists and read sets that are too large for a slab. All others are freed with their slabs. */
static void drop_reads(graph *g, node_id id) {
    node *n = graph_node(g, id);
    for (uint32_t i = 0; i < n->read_count; i++)
        readers_drop(g, place_at(g->places, node_reads(n)[i].key & KEY_PLACE));
    readers_free(g, id);
}

void graph_fini(graph *g) {
    for (uint32_t pos = 0; g->large && pos < g->order_count; pos++)
        if (g->node_at[pos]) drop_reads(g, g->node_at[pos]);
    writers_fini(g);
    order_fini(g);
    vec_fini(g->env, &g->kin);
    table_fini(&g->kin_index);
    vec_fini(g->env, &g->fresh);
    vec_fini(g->env, &g->fates);
    if (g->seen) env_free(g->env, g->seen, g->seen_capacity * sizeof *g->seen);
    for (unsigned i = 0; i < GRAPH_BLOCK_CLASSES; i++) slab_fini(&g->blocks[i]);
    for (unsigned i = 0; i < GRAPH_LIST_CLASSES; i++) slab_fini(&g->lists[i]);
    if (g->nodes) env_free(g->env, g->nodes, g->node_capacity * sizeof *g->nodes);
    *g = (graph){ 0 };
}

/* Gives the node its position in the order. The node is dormant, so its bit in the summary is not raised. */
static inline hd_status enter(graph *g, node_id id) {
    node *n = graph_node(g, id);
    assert(!n->read_count && !n->output && !n->live_refs && !(n->flags & NODE_MATERIALISER));
    hd_status status = order_append(g, id);
    if (status) return status;
    n->reads.one = (edge){ 0, EDGE_UNLINKED };
    n->flags |= NODE_DORMANT;
    bit_set(g->eligible, n->pos);
    bit_set(g->invalid, n->pos);
    return HD_OK;
}

hd_status graph_add_node(graph *g, node_id id) { return enter(g, id); }

hd_status graph_add_demanded(graph *g, node_id id) {
    hd_status status = enter(g, id);
    if (status) return status;
    node *n = graph_node(g, id);
    n->live_refs = 1;
    live_wake_alone(g, n);
    assert(node_is_live(g, n) && node_is_invalid(g, n));
    return HD_OK;
}

/* Takes back the references that the node gave, and takes its reads out of the reader lists. */
static void leave_readers(graph *g, node_id id) {
    assert(!(graph_node(g, id)->flags & NODE_REMOVED));
    node *n = graph_node(g, id);
    if (!(n->flags & NODE_LINKED)) return;
    bool live = node_is_live(g, n);
    for (uint32_t i = 0; i < n->read_count; i++)
        live_read_gone(g, id, node_reads(n)[i].key & KEY_PLACE, live);
    readers_leave(g, id);
}

void graph_remove_node(graph *g, node_id id) {
    node *n = graph_node(g, id);
    if (n->flags & NODE_BACK) order_settle(g); /* it may stand in `pending` */
    leave_readers(g, id);
    readers_clear(g, id);
    n->live_refs = 0;
    bit_clear(g->live, n->pos);
    live_forget(g, id);
    for (uint32_t output; (output = graph_output(g, id, 0));) {
        if (output & WRITER_ENVELOPE) graph_remove_envelope(g, id, output & ~WRITER_ENVELOPE);
        else graph_remove_output(g, id, output);
    }
    back_edges_forget(g, id);
    kin_forget(g, id);
    order_remove(g, id);
    assert(!n->read_count && !n->output && !n->live_refs);
    assert(!(n->flags & (NODE_LINKED | NODE_MORE | NODE_KIN | NODE_WITHDRAWN | NODE_MATERIALISER)));
    n->flags &= ~(uint32_t)(NODE_OWED | NODE_BACK);
    n->flags |= NODE_DORMANT;
}

/* ---- outputs */

static hd_status enter_output(graph *g, node_id id, place_id output) {
    assert(output && !(output & WRITER_ENVELOPE));
    node *n = graph_node(g, id);
    bool primary = !n->output;
    if (primary) n->output = output;
    hd_status status = primary ? HD_OK : surface_add(g, id, output);
    if (status) return status;
    status = writers_add(g, (writer){ id, output });
    if (status && primary) n->output = 0;
    else if (status) surface_remove(g, id, output);
    return status;
}

hd_status graph_add_output(graph *g, node_id id, place_id output) {
    assert(output);
    node *n = graph_node(g, id);
    hd_status status = enter_output(g, id, output);
    if (status) return status;
    place_ref(g->places, output);
    reader r;
    for (reader_walk w = readers_of(g, output); readers_next(&w, &r);) {
        g->edge_visits++;
        if (r.node == id) continue;
        order_edge(g, id, r.node);
        n->live_refs += node_is_live(g, graph_node(g, r.node));
    }
    if (n->live_refs) live_wake(g, id);
    live_drain(g);
    return HD_OK;
}

void graph_remove_output(graph *g, node_id id, place_id output) {
    node *n = graph_node(g, id);
    bool live = node_is_live(g, n);
    reader r;
    for (reader_walk w = readers_of(g, output); readers_next(&w, &r);) {
        g->edge_visits++;
        if (r.node == id) continue;
        order_edge_gone(g, id, r.node);
        if (live) n->live_refs -= node_is_live(g, graph_node(g, r.node));
    }
    live_note_withdrawn(g, id);
    writers_remove(g, (writer){ id, output });
    if (n->output == output) n->output = 0;
    else surface_remove(g, id, output);
    place_unref(g->places, output);
}

void graph_each_reader(const graph *g, node_id id, void (*fn)(void *ctx, node_id reader),
                       void *ctx) {
    uint32_t output;
    for (uint32_t i = 0; (output = graph_output(g, id, i)); i++) {
        if (output & WRITER_ENVELOPE) continue;
        reader r;
        for (reader_walk w = readers_of(g, output); readers_next(&w, &r);)
            if (r.node != id) fn(ctx, r.node);
    }
}
