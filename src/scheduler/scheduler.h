/* scheduler.h -- the facade: composes the components and attaches them to a runtime. */
#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

#include "scheduler/runner/confirmed.h"
#include "scheduler/state.h"

/* The runtime's scheduler, made at first use. NULL: no memory. */
scheduler *scheduler_of(hd_runtime *rt);
/* The same if there is one already, else NULL. */
scheduler *scheduler_get(const hd_runtime *rt);

/* HD_OK: no live node reads in the space, and no handler takes events there. HD_BUSY: the runtime's error
 * names the node or handler. */
hd_status scheduler_spare(const scheduler *s, const struct key *space);

/* The body of a sink: reads its cell and shows the value, or only the confirmed ones. After a commit of the sink's own
 * change group it reads, since the sink may read other places now, and shows nothing. */
hd_status scheduler_show(hd_tx *tx, confirmed *to, bool only_confirmed);

#endif
