/* surface.h -- warnings about what a node writes and what it declares. */
#ifndef SCHEDULER_RUNNER_SURFACE_H
#define SCHEDULER_RUNNER_SURFACE_H

#include "scheduler/registry.h"

/* Called before the writes of a computation are committed. A write outside of its outputs is committed all the same
 * (4.3), with a warning; in a strict runtime it is HD_USAGE, with s->message. */
hd_status surface_check_writes(scheduler *s, node_id id, const hd_tx *tx);
/* When a computation has been registered. HD_USAGE in a strict runtime. */
hd_status surface_check_rivals(scheduler *s, node_id id);
/* After a first run. HD_USAGE in a strict runtime if it did not write its output, with s->message. */
hd_status surface_check_first(scheduler *s, node_id id);
/* The node may leave its output absent: surface_check_first says nothing of it. */
void surface_may_stay_absent(scheduler *s, node_id id);

#endif
