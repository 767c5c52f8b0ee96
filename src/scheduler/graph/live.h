/* live.h -- demand: how it is passed on and taken back; see live.c. */
#ifndef SCHEDULER_LIVE_H
#define SCHEDULER_LIVE_H

#include "scheduler/graph/order.h"

/* A linked read came, or is to go from the lists: its edges enter the order or leave it; and if the
 * node is live, its writers gain a reference each, or lose one. What was gained is passed on by
 * live_drain. */
void live_read_added_slow(graph *g, node_id id, place_id p, bool live);
static inline void live_read_added(graph *g, node_id id, place_id p, bool live) {
    if (writers_any(g, p)) live_read_added_slow(g, id, p, live);
}
void live_read_gone(graph *g, node_id id, place_id p, bool live);
void live_drain_slow(graph *g);
static inline void live_drain(graph *g) {
    if (g->work_count) live_drain_slow(g);
}

/* The node has references: makes it live, and puts it on the stack of live_drain if it was not. */
void live_wake(graph *g, node_id id);
/* The same for a node without reads, which gives no references. */
static inline void live_wake_alone(graph *g, node *n) {
    assert(n->live_refs == 1 && !n->read_count);
    bit_set(g->live, n->pos);
    n->flags = (n->flags & ~(uint32_t)NODE_DORMANT) | NODE_LINKED;
    graph_raise(g, n->pos);
    g->demand_visits++;
}
/* The node lost a reference: graph_settle finds out whether it is still live. */
void live_note_withdrawn(graph *g, node_id id);
/* The node is removed: its entry in `withdrawn` does not count any more. */
void live_forget(graph *g, node_id id);
/* Takes such entries out of `withdrawn`. */
void live_tidy_withdrawn(graph *g);

/* All reads of the node into the lists, and out of them; nothing else. HD_NOMEM: nothing changed. */
hd_status readers_enter(graph *g, node_id id);
void readers_leave(graph *g, node_id id);

/* The read set of a node that leaves; and its memory alone. */
void readers_clear(graph *g, node_id id);
void readers_free(graph *g, node_id id);

#endif
