/* export.h -- the graph and the traces in formats that others draw. */
#ifndef SCHEDULER_EXPORT_H
#define SCHEDULER_EXPORT_H

#include "scheduler/introspection/introspection.h"
#include "value/json_write.h"

/* One node, for a picture that is made piece by piece; *parts grows by its reads and edges. As JSON: its
 * object behind `nodes` and its edges behind `edges`, with commas between them. For Graphviz: its lines
 * behind `out`, which stand between "digraph heddle {" and "}". HD_NOMEM, or what is wrong with a name. */
hd_status export_node_json(const scheduler *s, hd_pool *pool, node_id id, json_buffer *nodes,
                           json_buffer *edges, uint64_t *parts);
hd_status export_node_dot(const scheduler *s, node_id id, json_buffer *out, uint64_t *parts);
extern const char export_dot_begin[];
hd_value export_snapshot(const scheduler *s, hd_pool *pool);
hd_status export_dot(const scheduler *s, hd_text_fn sink, void *ctx);
hd_value export_chrome(const scheduler *s, hd_pool *pool);

#endif
