/* check.c -- everything that must hold, counted afresh the naive way.
 *
 * Called by tests after each step and by debug builds after each pass; the loops are plain, and what
 * they need besides the graph is taken from the environment. Without memory the recount is left out. */
#include "scheduler/graph/live.h"

#include "base/env.h"

/* ---- read sets and reader lists */

static void check_read(const graph *g, node_id id, uint32_t i, bool linked) {
    edge e = node_reads_const(graph_node(g, id))[i];
    const place *p = place_at(g->places, e.key & KEY_PLACE);
    assert(p->root); /* its record is there */
    assert((e.slot != EDGE_UNLINKED) == linked);
    if (!linked) return;
    assert(e.slot < readers_count(p));
    reader r = readers_at(p, e.slot);
    assert((r.node & ~READER_SHAPE) == id && r.slot == i);
    assert(!(r.node & READER_SHAPE) == !(e.key & KEY_SHAPE));
    (void)p, (void)r;
}

/* As many entries in the list as reads that point at it; so there are no others. */
static void check_list(const graph *g, place_id pid) {
    const place *p = place_at(g->places, pid);
    uint32_t shapes = 0;
    for (uint32_t i = 0; i < readers_count(p); i++) {
        reader r = readers_at(p, i);
        const node *n = graph_node(g, r.node & ~READER_SHAPE);
        assert(n->flags & NODE_LINKED && r.slot < n->read_count);
        assert((node_reads_const(n)[r.slot].key & KEY_PLACE) == pid);
        assert(node_reads_const(n)[r.slot].slot == i);
        shapes += (r.node & READER_SHAPE) != 0;
        (void)n;
    }
    uint32_t flags = p->root == pid ? p->doc.flags : p->in.flags;
    assert(!(flags & DOC_HAS_SHAPE) == !shapes);
    if (p->watch && !watch_is_inline(p->watch)) {
        assert(watch_list(p->watch)->shapes == shapes && watch_list(p->watch)->count > 0);
        assert(watch_list(p->watch)->count <= watch_capacity(watch_list(p->watch)));
    }
    (void)flags, (void)shapes;
}

static void check_reads(const graph *g, node_id id) {
    const node *n = graph_node(g, id);
    bool linked = n->flags & NODE_LINKED, live = node_is_live(g, n),
         invalid = node_is_invalid(g, n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        check_read(g, id, i, linked);
        check_list(g, node_reads_const(n)[i].key & KEY_PLACE);
    }
    if (linked) assert(live || !invalid);
    else assert(invalid || n->flags & NODE_RUNNING);
    if (live) assert(linked == !(n->flags & NODE_OWED));
    else assert(!(n->flags & NODE_OWED));
    (void)live, (void)invalid;
}

/* ---- writers */

static void check_outputs(const graph *g, node_id id) {
    uint32_t output, envelopes = 0;
    for (uint32_t i = 0; (output = graph_output(g, id, i)); i++) {
        uint32_t mark = output & WRITER_ENVELOPE;
        bool there = false;
        writer_walk walk;
        writer w;
        writers_begin(&walk, g, output & ~WRITER_ENVELOPE);
        while (writers_next(&walk, &w))
            there |= w.node == (id | mark) && w.place == (output & ~WRITER_ENVELOPE);
        assert(there);
        envelopes += mark != 0;
        (void)there;
    }
    assert(!(graph_node(g, id)->flags & NODE_MATERIALISER) == !envelopes);
    (void)envelopes;
}

static void check_writer_lists(const graph *g) {
    uint32_t entries = 0;
    for (uint32_t i = 1; i < g->writer_lists.count; i++) {
        const writer_list *l = &g->writer_lists.items[i];
        if (!l->items) continue;
        entries += l->count;
        for (uint32_t j = 0; j < l->count; j++) {
            const place *p = place_at(g->places, l->items[j].place);
            assert(place_at(g->places, p->root)->doc.writer == i);
            (void)p;
        }
    }
    assert(entries == g->writer_index.count);
    table_check(&g->writer_index);
    (void)entries;
}

/* ---- order */

static void check_positions(const graph *g) {
    uint32_t holes = 0, materialisers = 0;
    for (uint32_t pos = 0; pos < g->order_count; pos++) {
        node_id id = g->node_at[pos];
        bool runnable =
            bit_test(g->invalid, pos) && bit_test(g->live, pos) && bit_test(g->eligible, pos);
        holes += !id;
        if (id) {
            const node *n = graph_node(g, id);
            assert(n->pos == pos);
            materialisers += n->flags & NODE_MATERIALISER && node_is_invalid(g, n);
        } else {
            assert(!bit_test(g->invalid, pos) && !bit_test(g->live, pos) &&
                   !bit_test(g->eligible, pos));
        }
        if (runnable) assert(bit_test(g->summary, pos >> 6) && g->top >> (pos >> g->top_shift) & 1);
        (void)runnable;
    }
    assert(holes == g->holes && materialisers == g->materialisers_invalid);
    (void)holes, (void)materialisers;
}

static void check_edges(const graph *g, node_id id) {
    predecessor_walk w = predecessors_of(g, id);
    node_id x;
    while (predecessors_next(&w, &x))
        assert(graph_node(g, x)->pos < graph_node(g, id)->pos || g->back_lost || g->pending.count ||
               back_edge_known(g, x, id));
    assert(!(graph_node(g, id)->flags & (NODE_FORWARD | NODE_BACKWARD | NODE_REGION)));
}

/* ---- demand */

/* Calls fn for each reference that the node gives while it is live. */
static void each_reference(const graph *g, node_id id, uint32_t *counts,
                           void (*fn)(const graph *g, uint32_t *counts, node_id to)) {
    const node *n = graph_node(g, id);
    if (!(n->flags & NODE_LINKED)) return;
    for (uint32_t i = 0; i < n->read_count; i++) {
        writer_walk walk;
        writer w;
        writers_begin(&walk, g, node_reads_const(n)[i].key & KEY_PLACE);
        while (writers_next(&walk, &w))
            if (w.node != id && !(w.node & WRITER_ENVELOPE)) fn(g, counts, w.node);
    }
}

static void count_one(const graph *g, uint32_t *counts, node_id to) {
    (void)g;
    counts[to]++;
}

#define REACHED UINT32_MAX

/* For the second count: reached nodes are kept on a stack behind the marks. */
static void reach(const graph *g, uint32_t *counts, node_id to) {
    if (counts[to] == REACHED) return;
    counts[to] = REACHED;
    uint32_t *stack = counts + g->node_count;
    stack[1 + stack[0]++] = to;
}

/* Counts the references that live nodes give; what a node has beyond them are standing demands. From these
 * alone it derives again which nodes are live. */
static void check_demand(const graph *g) {
    size_t bytes = (2 * (size_t)g->node_count + 1) * sizeof(uint32_t);
    uint32_t *counts = env_new0(g->env, bytes);
    if (!counts) return;
    for (uint32_t pos = 0; pos < g->order_count; pos++)
        if (g->node_at[pos] && bit_test(g->live, pos))
            each_reference(g, g->node_at[pos], counts, count_one);
    for (uint32_t pos = 0; pos < g->order_count; pos++) {
        node_id id = g->node_at[pos];
        if (!id) continue;
        assert(graph_node(g, id)->live_refs >= counts[id]);
        if (graph_node(g, id)->live_refs > counts[id]) reach(g, counts, id);
    }
    uint32_t *stack = counts + g->node_count;
    while (stack[0]) each_reference(g, stack[stack[0]--], counts, reach);
    for (uint32_t pos = 0; pos < g->order_count; pos++) {
        node_id id = g->node_at[pos];
        if (!id) continue;
        assert(bit_test(g->live, pos) == (counts[id] == REACHED));
        assert(bit_test(g->live, pos) == (graph_node(g, id)->live_refs > 0));
        assert(bit_test(g->live, pos) == !(graph_node(g, id)->flags & NODE_DORMANT));
    }
    env_free(g->env, counts, bytes);
}

void graph_check(const graph *g) {
    assert(g->work_count == 0);
    check_positions(g);
    check_writer_lists(g);
    for (uint32_t pos = 0; pos < g->order_count; pos++) {
        if (!g->node_at[pos]) continue;
        check_reads(g, g->node_at[pos]);
        check_outputs(g, g->node_at[pos]);
        check_edges(g, g->node_at[pos]);
    }
    if (!g->withdrawn_count) check_demand(g);
}
