/* registry.h -- node records: identity and life. */
#ifndef SCHEDULER_REGISTRY_H
#define SCHEDULER_REGISTRY_H

#include "scheduler/state.h"

hd_status registry_init(scheduler *s);
void registry_fini(scheduler *s);

/* Checks the spec, makes the record, puts it into the graph. Nothing runs. */
hd_status registry_register(scheduler *s, const hd_node_spec *spec, node_id *out);
/* The same for an effect without name, parent and declared reads. Its standing demand is granted here. */
hd_status registry_add_effect(scheduler *s, hd_action_fn fn, void *ctx, node_id *out);
/* Takes the node out of the graph, calls release, forgets the record. */
void registry_remove(scheduler *s, node_id id);

/* The node behind a handle; 0: gone. */
node_id registry_get(const scheduler *s, hd_node handle);
static inline hd_node registry_handle(const scheduler *s, node_id id) {
    return id ? (hd_node){ id, s->sides[id].generation } : (hd_node){ 0, 0 };
}
node_id registry_find(const scheduler *s, node_id parent, const char *name, size_t length);

/* A name as a key, referenced. HD_SYNTAX, HD_LIMIT: it cannot be a name; the runtime's error says so, with
 * `of` as the thing that is named ("node", "hold"). HD_NOMEM. */
hd_status registry_make_name(scheduler *s, const char *of, const char *name, struct key **out);

/* The cold record, made if missing. NULL: no memory. */
cold *registry_cold(scheduler *s, node_id id);

/* The node waits for a document; or (0) no longer. */
static inline void registry_await(scheduler *s, cold *c, place_id doc) {
    uint32_t waiting = NODE_WAITING;
    node *n = node_of(s, c->node);
    assert(!c->missing == !list_linked(&c->awaiting));
    s->awaiting_count -= c->missing != 0;
    s->awaiting_count += doc != 0;
    list_discard(&c->awaiting);
    if (doc) list_push_back(&s->awaiting[doc % AWAITING_LISTS], &c->awaiting);
    n->flags = doc ? n->flags | waiting : n->flags & ~waiting;
    c->missing = doc;
}

/* Becomes an effect, in place. */
void registry_promote(scheduler *s, node_id id);

#endif
