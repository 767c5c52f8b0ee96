/* introspection.h -- looking inside: stats, traces, why and why not.
 *
 * Observes, never participates (P10): nothing in scheduling depends on whether it is on. */
#ifndef SCHEDULER_INTROSPECTION_H
#define SCHEDULER_INTROSPECTION_H

#include "scheduler/state.h"

void introspection_fini(scheduler *s);

/* Why the node does not run now. */
hd_why_not introspection_why_not(const scheduler *s, node_id id);
void introspection_info(const scheduler *s, node_id id, hd_node_info *out);

#endif
