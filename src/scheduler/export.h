/* export.h -- the graph and the traces in formats that others draw. */
#ifndef SCHEDULER_EXPORT_H
#define SCHEDULER_EXPORT_H

#include "scheduler/introspection.h"

/* Whether the graph has at most so many reads and edges; stops counting where it has more. HD_NOMEM. */
hd_status export_fits(const scheduler *s, uint64_t most, bool *fits);
hd_value export_snapshot(const scheduler *s, hd_pool *pool);
hd_status export_dot(const scheduler *s, hd_json_sink sink, void *ctx);
hd_value export_chrome(const scheduler *s, hd_pool *pool);

#endif
