/* footprint.h -- which places a commit changes in a document (MATCHING 2.2).
 *
 * The replica's own account, from the difference of the values. It holds if the authority is where the
 * replica thinks it is. Over layers of ours nobody can say: if one of them falls, more changes than the
 * difference to what is visible now. */
#ifndef STORE_FOOTPRINT_H
#define STORE_FOOTPRINT_H

#include "store/replica.h"

/* Adds the footprint of a document that changes from `before` to `now`: the places that differ, where
 * that can be said and is `wanted`; else none, and the operations' paths count. HD_NOMEM: the commit is
 * of no use any more. */
hd_status footprint_add(replica *r, commit *c, place_id doc, hd_value before, hd_value now,
                        bool wanted);

#endif
