/* surface.h -- warnings about what a node writes and what it declares. */
#ifndef SCHEDULER_RUNNER_SURFACE_H
#define SCHEDULER_RUNNER_SURFACE_H

#include "scheduler/registry.h"

/* Before the writes of a computation are committed. They are (4.3), unless the runtime is strict: HD_USAGE,
 * with the message of the failure. */
hd_status surface_check_writes(scheduler *s, node_id id, const hd_tx *tx);
/* When a computation has been registered. HD_USAGE in a strict runtime. */
hd_status surface_check_rivals(scheduler *s, node_id id);
/* After a first run that wrote nothing. HD_USAGE in a strict runtime, with the message of the failure. */
hd_status surface_check_first(scheduler *s, node_id id);
/* The node may leave its output absent: surface_check_first says nothing of it. */
void surface_may_stay_absent(scheduler *s, node_id id);

#endif
