/* order.h -- a topological position for each node.
 *
 * New nodes go to the end. Most edges then point upward as they come, because programs register writers
 * before readers; an edge W -> R that points down is repaired (Pearce and Kelly): the nodes that can be
 * reached from R below W's position, and those that reach W from above R's, exchange the positions that they
 * hold together. No other node moves.
 *
 *     positions   . R . a . . b . W .        R -> a, b -> W, and now W -> R
 *     after       . b . W . . R . a .
 *
 * If W can be reached from R, the edge closes a cycle: then one edge of it becomes a *back edge*,
 * outside the order (order_cycle.c). After graph_settle the back edges are exactly the edges that point
 * down; they are kept in a list, to be tried again when an edge that kept them down is gone.
 *
 * Repairs wait for graph_settle. Many that come together, say of a chain that was registered from its
 * end, would each move more than the last; there the stretch is sorted afresh (order_sort.c).
 *
 * Cost: an edge that points upward one comparison; a repair the nodes between both positions that
 * hang together with its ends, and their edges. */
#ifndef SCHEDULER_ORDER_H
#define SCHEDULER_ORDER_H

#include "scheduler/graph/readers.h"
#include "scheduler/graph/writers.h"

/* ---- positions (order.c) */

/* Makes room for more positions. */
hd_status order_grow(graph *g);
static inline hd_status order_append(graph *g, node_id id) {
    if (g->order_count == g->order_capacity) {
        hd_status status = order_grow(g);
        if (status) return status;
    }
    uint32_t pos = g->order_count++;
    assert(pos < g->order_capacity && !bit_test(g->invalid, pos) && !bit_test(g->live, pos));
    g->node_at[pos] = id;
    graph_node(g, id)->pos = pos;
    return HD_OK;
}
void order_remove(graph *g, node_id id);
void order_fini(graph *g);

/* Gives the nodes of g->sequence the positions that they hold together, in the sequence's order; their
 * bits go with them. False: no memory, nothing changed. */
bool order_place(graph *g);
void sort_marks(uint64_t *items, uint32_t count);

static inline uint64_t mark_of(const graph *g, node_id id) {
    return (uint64_t)graph_node(g, id)->pos << 32 | id;
}

/* An edge among these positions was removed, or nodes there moved: graph_settle tries the back edges again
 * that overlap them. */
static inline void order_note(graph *g, uint32_t low, uint32_t high) {
    assert(low <= high);
    if (low == high) return; /* there is no edge */
    if (low < g->retry_low) g->retry_low = low;
    if (high > g->retry_high) g->retry_high = high;
}

/* ---- edges (order_search.c) */

void order_defer(graph *g, node_id from, node_id to);
/* A new edge (of data or envelope). If it points down, it waits for order_settle. */
static inline void order_edge(graph *g, node_id from, node_id to) {
    assert(from != to);
    if (graph_node(g, from)->pos > graph_node(g, to)->pos) order_defer(g, from, to);
}
/* Puts all that wait right: each by a repair, or, when that takes long, all by sorting afresh. */
void order_settle(graph *g);
/* An edge went away, though perhaps another one between the same two is left. */
static inline void order_edge_gone(graph *g, node_id from, node_id to) {
    if (!g->back_edges.count && !g->back_lost) return;
    uint32_t a = graph_node(g, from)->pos, b = graph_node(g, to)->pos;
    order_note(g, a < b ? a : b, a < b ? b : a);
}
/* Puts parent before child, if no data flows the other way. */
void order_kin(graph *g, node_id parent, node_id child);

typedef enum order_result { ORDER_DONE, ORDER_CYCLE, ORDER_NOMEM } order_result;
/* Makes the edge point upward, or finds that it closes a cycle. With `kin`, parents stay before their
 * children too. */
order_result order_try(graph *g, node_id from, node_id to, bool kin);

/* Which edges and positions a search follows. */
typedef struct order_search {
    uint32_t low, high;
    uint32_t limit; /* nodes it may find; beyond: ORDER_NOMEM */
    bool down;      /* edges that point down too; else only upward ones */
    bool kin;       /* parent -> child too */
} order_search;
/* Fills g->forward with what can be reached from `from` (marked NODE_FORWARD), or g->backward with what
 * reaches it (NODE_BACKWARD). ORDER_CYCLE: `target` was found, and the search ended there. */
order_result order_forward(graph *g, const order_search *s, node_id from, node_id target);
order_result order_backward(graph *g, const order_search *s, node_id from);
/* Takes the marks off and empties both. */
void order_search_end(graph *g);

/* Order neighbours: along data and envelopes. A node may come more than once, itself never. */
typedef struct successor_walk {
    const graph *g;
    node_id id;
    uint32_t output; /* the next to look at */
    bool open;
    reader_walk readers;
} successor_walk;
typedef struct predecessor_walk {
    const graph *g;
    node_id id;
    uint32_t read; /* the next to look at */
    bool open;
    writer_walk writers;
} predecessor_walk;
static inline successor_walk successors_of(const graph *g, node_id id) {
    return (successor_walk){ .g = g, .id = id };
}
static inline predecessor_walk predecessors_of(const graph *g, node_id id) {
    return (predecessor_walk){ .g = g, .id = id };
}
bool successors_next(successor_walk *w, node_id *out);
bool predecessors_next(predecessor_walk *w, node_id *out);

/* ---- cycles, and sorting afresh (order_cycle.c, order_sort.c) */

/* The edge closes a cycle: decides which edge of it is the back edge. */
void order_break_cycle(graph *g, node_id from, node_id to);
/* The nodes of a cycle (marked NODE_FORWARD and NODE_BACKWARD; in order of position) appended to
 * g->sequence in the order that they are to have. False: no memory. */
bool order_arrange(graph *g, const node_id *ids, uint32_t count);
/* After they were placed: edges among them that point down are back edges. */
void order_record(graph *g, const node_id *ids, uint32_t count);
/* All nodes in these positions, sorted anew. False: no memory, nothing changed. */
bool order_sort(graph *g, uint32_t low, uint32_t high);

/* ---- back edges (order_back.c) */

bool back_edge_known(const graph *g, node_id from, node_id to);
/* Writes it down, if it is not; sets back_lost if it cannot. */
void back_edge_add(graph *g, node_id from, node_id to);
void back_edge_drop(graph *g, node_id from, node_id to); /* if it is there */
void back_edges_forget(graph *g, node_id id);            /* all of a node that leaves */
bool edge_exists(graph *g, node_id from, node_id to);
/* Tries those again that lie among the positions noted. */
void order_retry(graph *g);

/* ---- kin (kin.c) */

/* The node leaves: no parent, no children. */
void kin_forget(graph *g, node_id id);

#endif
