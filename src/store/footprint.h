/* footprint.h -- which paths a commit changes in a document (MATCHING 2.2).
 *
 * The exact footprint of a write is the difference of two values: what the replica showed of the document
 * without the commit, and what the commit makes of it. It *holds* if the document is, when the commit is
 * admitted, what it was when the commit was made: at the same seq, or, where the commit was made over
 * others of its own session that had no verdict yet, as the topmost of them left it (admit.c). Where it does
 * not hold, or there is none, the paths of the operations are the footprint, which is coarser. */
#ifndef STORE_FOOTPRINT_H
#define STORE_FOOTPRINT_H

#include "store/replica.h"

/* Adds to the commit the write of a document that is to become `now`; before the commit's layers are pushed.
 * Its footprint is exact if that is wanted and not too long. HD_NOMEM: the commit can only be freed. */
hd_status footprint_add(replica *r, commit *c, place_id doc, hd_value now, bool exact);

/* The same for a commit that says what it changes by its operations, c->ops[first ..]: each touches its own path and
 * all below it, and where a key may be new, the objects on its way. That is coarser than the difference, but nothing is
 * compared, and the log need not list the paths again. */
hd_status footprint_add_ops(replica *r, commit *c, place_id doc, uint32_t first);

#endif
