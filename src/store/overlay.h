/* overlay.h -- derived state: what computations write.
 *
 * It can be recomputed, and is treated so: a run writes into its output's one slot, in place, with
 * the confirmed value kept beside it; there is no layer, local seq or verdict per run. Outputs whose
 * node is clean are *sealed* from time to time: one commit for all of them, with those nodes' read
 * sets as its claims. From then on they are layers like any other. If the seal is refused they are
 * gone and their nodes run again.
 *
 * Cost: a write O(1) plus the walk of the document's inner places; a seal O(outputs + their reads). */
#ifndef STORE_OVERLAY_H
#define STORE_OVERLAY_H

#include "store/replica.h"

/* Makes `v` (borrowed) the output's visible value, if it differs, and announces it. *changed tells.
 * HD_NOMEM: nothing changed. */
hd_status overlay_write(replica *r, place_id doc, hd_value v, uint64_t group, uint32_t origin_node,
                        bool *changed);

/* Seals every output that can be sealed into one commit and queues it, with the memos that are due.
 * `memos_alone`: the commit is made for memos even if there is no output to seal. */
hd_status overlay_seal(replica *r, bool memos_alone);

/* True if `doc` is an output that has not been sealed. */
static inline bool overlay_is_open(const replica *r, place_id doc) {
    return place_at(&r->places, doc)->doc.flags & DOC_OVERLAY;
}

#endif
