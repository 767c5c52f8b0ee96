/* footprint.h -- which places a commit changes in a document (MATCHING 2.2).
 *
 * The replica's own account, from the difference of the values. It holds if the document is, when the
 * commit is admitted, what it was when the commit was made: at the same seq, or, where the commit lies
 * on others of ours that had no verdict yet, as the topmost of them left it (admit.c). */
#ifndef STORE_FOOTPRINT_H
#define STORE_FOOTPRINT_H

#include "store/replica.h"

/* Adds the footprint of a document that is to become `now`; before the commit's layers are pushed.
 * With an account where one is `wanted` and not too long. HD_NOMEM: the commit is of no use any more. */
hd_status footprint_add(replica *r, commit *c, place_id doc, hd_value now, bool wanted);

#endif
