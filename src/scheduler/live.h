/* live.h -- demand: how it is passed on and taken back; see live.c. */
#ifndef SCHEDULER_LIVE_H
#define SCHEDULER_LIVE_H

#include "scheduler/order.h"

/* A linked read of a live node came or went: its writers gain a reference each, or lose one.
 * What was gained is passed on by live_drain. */
void live_read_added(graph *g, node_id id, place_id p);
void live_read_gone(graph *g, node_id id, place_id p);
void live_drain(graph *g);

/* It has references: so it is live, if it was not. */
void live_wake(graph *g, node_id id);
/* It lost a reference: graph_settle looks at it. */
void live_note_withdrawn(graph *g, node_id id);
/* It leaves: nobody looks at it any more. */
void live_forget(graph *g, node_id id);

/* The node's reads in the index, and their edges in the order; no demand. HD_NOMEM: nothing
 * changed. And out again. */
hd_status readers_link(graph *g, node_id id);
void readers_unlink(graph *g, node_id id);
/* Calls fn (writer, reader) for each edge, also of envelopes, that a read of `p` gives the node. */
void readers_edges(graph *g, node_id id, place_id p, void (*fn)(graph *, node_id, node_id));

/* The read set of a node that leaves; and its memory alone. */
void readers_clear(graph *g, node_id id);
void readers_free(graph *g, node_id id);

#endif
