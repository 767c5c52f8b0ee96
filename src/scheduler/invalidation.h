/* invalidation.h -- a value changed: its readers become invalid.
 *
 * The scheduler observes the replica's changes (P1). For each watched place whose value differs the replica
 * calls `changed`, and the nodes that read the place are marked invalid. Nodes further downstream are not,
 * and nothing runs here. Spec 6.1. */
#ifndef SCHEDULER_INVALIDATION_H
#define SCHEDULER_INVALIDATION_H

#include "scheduler/causes.h"
#include "scheduler/gates/gates.h"
#include "scheduler/registry.h"

/* Subscribes the scheduler to its runtime's changes. */
void invalidation_attach(scheduler *s);
void invalidation_fini(scheduler *s);

/* The node whose commit changed the place last; 0: the program, a handler or another runtime did, or it is not
 * known, because no node had been suspended yet (scheduler.authors). The node may be gone. Plain runs are
 * not noted: graph_each_writer tells those nodes. */
node_id invalidation_author(const scheduler *s, place_id at);

/* Marks the readers of a place: those by value, and those by shape if its shape changed. `self`, the node
 * whose run made the change, is not marked, unless the change moves what it reads: a link came or went.
 * `before`: what was there. */
void invalidation_mark_readers(scheduler *s, place_id at, bool shape, node_id self,
                               hd_value before);

/* The reader, if it is a plain one: by value, live, without gates, no materialiser, not `self`. Else NULL. */
static inline const node *invalidation_plain(const graph *g, uint32_t reader_node, node_id self) {
    if (RARELY((reader_node & READER_SHAPE) || reader_node == self)) return NULL;
    const node *n = &g->nodes[reader_node];
    assert(reader_node && reader_node < g->node_count && !(n->flags & NODE_REMOVED));
    return RARELY(n->flags & (NODE_GATED | NODE_MATERIALISER | NODE_DORMANT)) ? NULL : n;
}

/* invalidation_mark_all for a place with a list of readers. */
void invalidation_mark_list(scheduler *s, place_id at, watch *w, node_id self, hd_value before);

/* Marks all readers of a place whose value and shape have changed; `word` is its watch. For use where no
 * tracer is set. */
static inline void invalidation_mark_all(scheduler *s, place_id at, uint64_t word, node_id self,
                                         hd_value before) {
    if (watch_is_inline(word)) {
        const node *n = invalidation_plain(&s->graph, (uint32_t)(word >> 32), self);
        if (RARELY(!n)) {
            invalidation_mark_readers(s, at, true, self, before);
            return;
        }
        s->stats.marks++;
        bit_set(s->graph.invalid, n->pos);
        graph_raise(&s->graph, n->pos);
        return;
    }
    invalidation_mark_list(s, at, watch_list(word), self, before);
}

/* Marks the nodes whose outputs were written over since the last call. */
void invalidation_mark_overwritten(scheduler *s);

/* The part of marking for nodes with gates and for materialisers. */
void invalidation_mark_special(scheduler *s, node_id id, bool was_invalid);

static inline void invalidation_mark(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    bool was_invalid = node_is_invalid(&s->graph, n);
    assert(!(n->flags & NODE_REMOVED));
    s->stats.marks++;
    graph_mark_invalid(&s->graph, id);
    s->tick = true;
    if (n->flags & (NODE_GATED | NODE_MATERIALISER)) invalidation_mark_special(s, id, was_invalid);
}

#endif
