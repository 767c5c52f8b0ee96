/* causes.h -- why does a node run?
 *
 * The *causes* of a run are the addresses that the node had registered as reads and that have changed
 * since its last completed run. They are fixed when the run begins, whatever it reads then (D9, I8).
 *
 * Most nodes need no bookkeeping: every place carries the revision of its last change, so the causes
 * of the next run are the registered reads that are newer than the last run, and those of the last run
 * the reads that changed between the last two. The reads do not tell them
 *
 *   - when a run has read something else than the run before it;
 *   - when a run that did so does not complete: it is set aside, refused, or suspended and stale;
 *   - of a node with a change group, which does not hear of every change of what it reads;
 *   - of a node that was resumed, whose reads changed while the program did not run.
 *
 * Then the causes are written down in a record beside the node (NODE_CAUSED), with a reference to each
 * place, until a run completes whose registered reads tell them again.
 *
 *     take (end of body) --+--> completed: they are the causes of the last run
 *                          +--> given back: the run did not complete, they cause the next one
 *     refused commit ------+--> restored: they cause the next one */
#ifndef SCHEDULER_CAUSES_H
#define SCHEDULER_CAUSES_H

#include "scheduler/state.h"

#define CAUSES_FEW 64 /* above this, the addresses of one document become their common ancestor */

void causes_fini(scheduler *s);

/* The revision of the last change of what a read with this key sees. For a read by shape that is the revision of the
 * shape, which a place has only while a node reads it by shape; otherwise the revision of the value counts. */
static inline uint64_t causes_changed_at(const scheduler *s, uint32_t key) {
    const place *p = place_at(&s->r->places, key & KEY_PLACE);
    if (!(key & KEY_SHAPE) || !p->watch || watch_is_inline(p->watch)) return p->rev;
    const watch *w = watch_list(p->watch);
    return w->shapes ? w->shape_rev : p->rev;
}

/* When the run before the node's last one completed. The last run itself if that was the node's first:
 * a first run has no causes. */
static inline uint64_t causes_last_since(const node *n) {
    return n->prev_back == UINT32_MAX ? 0 : n->ran_rev - n->prev_back;
}

/* The causes of the node's next run, and those of its last completed one: addresses, each once. More
 * than CAUSES_FEW become the common ancestor of each document's; none is left out. They replace what is
 * in `out`, which takes no references. HD_NOMEM: `out` holds the first ones. O(reads). */
hd_status causes_of_next(const scheduler *s, node_id id, place_vec *out);
hd_status causes_of_last(const scheduler *s, node_id id, place_vec *out);

/* Moves the causes of the run that is under way into tx->causes, with references (TX_CAUSES). Called before the run's
 * reads are applied; causes_completed, causes_give_back or causes_end takes them from there. A first run has none.
 * HD_NOMEM: nothing changed. */
hd_status causes_take(scheduler *s, node_id id, hd_tx *tx);
/* The run has completed: its causes are those of the last run. */
void causes_completed(scheduler *s, node_id id, hd_tx *tx);
/* The same for a run that has not taken its causes: its reads tell them, and what was kept of the run before is
 * dropped. */
void causes_forget_last(scheduler *s, node_id id);
/* The run has not completed: its causes are causes of the next run. */
void causes_give_back(scheduler *s, node_id id, hd_tx *tx);
/* The node of the run is gone: its causes are dropped. */
void causes_end(scheduler *s, hd_tx *tx);

/* A commit of the node was refused: what caused its run causes the next one. `since`: when the run before
 * that one completed; it serves where there is no memory. */
void causes_restore(scheduler *s, node_id id, const place_id *causes, uint32_t count,
                    uint64_t since);
/* The next run is caused by this, too: a change that a node of a change group was told of, one that the node's
 * own commit made and that concerns it all the same, or one that was found when the node was resumed. */
void causes_add(scheduler *s, node_id id, place_id at);
/* The node is removed, or begins anew: drops its record. */
void causes_forget(scheduler *s, node_id id);

#endif
