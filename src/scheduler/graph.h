/* graph.h -- who reads what, who writes what, who comes before whom, who is demanded.
 *
 *   readers    place -> nodes that read it, in place.watch (readers.c)
 *   writers    document -> nodes whose static output lies in it, in place.doc.writer (writers.c)
 *   order      a topological position for each node, repaired when an edge violates it (order.c)
 *   liveness   the least fixed point of seed 5.1 (live.c)
 *   envelopes  materialisers by the documents their envelopes lie in (envelope.c)
 *
 * An *edge* W -> R exists when a linked read of R and an output of W lie on one path of one document
 * (place_related), by address alone; values have no say here. Edges are never stored: they are
 * the join of the two lists at a document, so that adding a read costs O(writers of the document)
 * and nothing else. Self-edges do not exist.
 *
 * A read is *linked* while its node is live or clean. A dormant invalid node is in no list at all:
 * what it would be told it knows already (P3, D5), so a write past a million of them visits none.
 *
 * Cost: link or unlink a read O(writers of its document), plus the repair of the order where an edge
 * violates it, plus the demand that it grants or withdraws. An unchanged read set costs nothing. */
#ifndef SCHEDULER_GRAPH_H
#define SCHEDULER_GRAPH_H

#include "scheduler/node.h"

typedef struct bitmap {
    uint64_t *words;
} bitmap;

/* A back edge: it would close a cycle, so it stays outside the order. */
typedef struct back_edge {
    node_id writer, reader;
} back_edge;

typedef struct graph {
    const hd_env *env;
    places *places;

    /* Nodes; owned here so that every part can reach them. Written by registry. */
    node *nodes;
    uint32_t node_count, node_capacity; /* nodes[0] is unused */

    /* Order. node_at[pos] is a node, or 0 for a hole. Positions below order_count. */
    node_id *node_at;
    uint32_t order_count, order_capacity; /* capacity is a multiple of 64 */
    uint32_t holes;
    bitmap invalid, live, eligible; /* by position */
    bitmap
        summary; /* one bit per word of the three: may be set while the word has nothing runnable,
                       never the other way round */
    VEC(back_edge) back_edges;
    table back_index; /* (writer, reader) -> index into back_edges */

    /* Liveness: withdrawals wait here until graph_settle_demand. */
    VEC(node_id) withdrawn;

    /* Nodes that became live or dormant since the last look, for whoever cares; see graph_transitions. */
    VEC(node_id) work; /* scratch stack of the walks */

    /* Counters. */
    uint64_t repairs, repaired_nodes, demand_visits, edge_visits;
} graph;

hd_status graph_init(graph *g, const hd_env *env, places *ps);
void graph_fini(graph *g);

static inline node *graph_node(const graph *g, node_id id) {
    assert(id && id < g->node_count);
    return &g->nodes[id];
}

/* ---- bits */

static inline void bit_set(bitmap b, uint32_t pos) {
    b.words[pos >> 6] |= UINT64_C(1) << (pos & 63);
}
static inline void bit_clear(bitmap b, uint32_t pos) {
    b.words[pos >> 6] &= ~(UINT64_C(1) << (pos & 63));
}
static inline bool bit_test(bitmap b, uint32_t pos) { return b.words[pos >> 6] >> (pos & 63) & 1; }

/* Status changes keep the summary right. */
static inline void graph_set_invalid(graph *g, node *n) {
    bit_set(g->invalid, n->pos);
    bit_set(g->summary, n->pos >> 6);
}
static inline void graph_set_clean(graph *g, node *n) { bit_clear(g->invalid, n->pos); }
static inline void graph_set_eligible(graph *g, node *n, bool on) {
    if (on) {
        bit_set(g->eligible, n->pos);
        bit_set(g->summary, n->pos >> 6);
    } else {
        bit_clear(g->eligible, n->pos);
    }
}
static inline bool node_is_invalid(const graph *g, const node *n) {
    return bit_test(g->invalid, n->pos);
}
static inline bool node_is_live(const graph *g, const node *n) { return bit_test(g->live, n->pos); }
static inline bool node_is_eligible(const graph *g, const node *n) {
    return bit_test(g->eligible, n->pos);
}

/* The lowest runnable position at or above `from`, or UINT32_MAX. Amortised O(1) per bit found: words
 * with nothing runnable lose their summary bit. */
uint32_t graph_next_runnable(graph *g, uint32_t from);

/* ---- nodes (called by registry) */

/* Appends the node at the end of the order: eligible, invalid, dormant, nothing linked. */
hd_status graph_add_node(graph *g, node_id id);
/* Takes everything about the node out of the graph: outputs, reads, demand, position. */
void graph_remove_node(graph *g, node_id id);

/* Outputs: readers that are linked already become dependents. */
hd_status graph_add_output(graph *g, node_id id, place_id output);
void graph_remove_output(graph *g, node_id id, place_id output);
/* Calls fn for each node with an output related to `p`. */
void graph_each_writer(const graph *g, place_id p, void (*fn)(void *ctx, node_id writer),
                       void *ctx);
/* Calls fn for each linked reader of each output of `id` (a reader may come more than once). */
void graph_each_reader(const graph *g, node_id id, void (*fn)(void *ctx, node_id reader),
                       void *ctx);

/* ---- reads */

/* Replaces the node's read set by the delta to `keys` (without duplicates). If the node is linked,
 * so are the new reads. On HD_NOMEM the old read set stands, whole. Takes place references. */
hd_status graph_apply_reads(graph *g, node_id id, const uint32_t *keys, uint32_t count);
/* Puts all reads into the index, or takes them out. No-ops when it is so already. */
hd_status graph_link(graph *g, node_id id);
void graph_unlink(graph *g, node_id id);

/* ---- demand */

/* One standing demand more or less. Grants at once, down to every writer that it reaches; linking a
 * dormant invalid writer's reads on the way. Withdrawals are settled in a batch. */
hd_status graph_demand(graph *g, node_id id);
void graph_withdraw(graph *g, node_id id);
/* Re-derives liveness in the region upstream of what was withdrawn, once for all of it. A node that
 * goes dormant while invalid is unlinked. */
void graph_settle_demand(graph *g);

/* ---- checks, for debug builds and tests */

/* Reader lists and read sets point at each other; positions, bitmaps and node_at agree; all edges but
 * back edges go upward; live_refs and live equal a full recount from the standing demands. */
void graph_check(const graph *g);

#endif
