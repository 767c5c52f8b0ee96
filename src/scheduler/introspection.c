/* introspection.c -- what a node is doing, and why. */
#include "scheduler/introspection.h"

#include "base/env.h"
#include "scheduler/gates.h"
#include "scheduler/registry.h"
#include "value/key.h"

hd_why_not introspection_why_not(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    if (n->flags & NODE_SUSPENDED) return HD_WHY_NOT_RUNNING;
    if (!node_is_invalid(&s->graph, n)) return HD_WHY_NOT_CLEAN;
    if (!node_is_live(&s->graph, n)) return HD_WHY_NOT_DORMANT;
    if (n->flags & NODE_WAITING) return HD_WHY_NOT_LOADING;
    hd_why_not gate_ = gates_reason(s, n, env_now_ns(s->env));
    if (gate_ != HD_WHY_NOT_RUNS) return gate_;
    if ((n->flags & NODE_MATERIALISER) && !(n->flags & NODE_PROMOTED)) return HD_WHY_NOT_IDLE_TURN;
    return HD_WHY_NOT_RUNS;
}

static uint32_t count_children(const scheduler *s, node_id id) {
    uint32_t n = 0;
    for (node_id c = graph_first_child(&s->graph, id); c; c = graph_next_child(&s->graph, c)) n++;
    return n;
}

void introspection_info(const scheduler *s, node_id id, hd_node_info *out) {
    const node *n = node_of(s, id);
    const node_side *side = &s->sides[id];
    bool invalid = node_is_invalid(&s->graph, n);
    *out = (hd_node_info){
        .node = registry_handle(s, id),
        .name = side->name ? key_bytes(side->name) : "",
        .effect = n->flags & NODE_EFFECT,
        .materialiser = n->flags & NODE_MATERIALISER,
        .live = node_is_live(&s->graph, n),
        .provisional = n->flags & NODE_PROVISIONAL,
        .suspended = n->flags & NODE_SUSPENDED,
        .status = n->flags & NODE_NEVER_RAN ? HD_NODE_NEVER_RAN
                  : invalid                 ? HD_NODE_INVALID
                                            : HD_NODE_CLEAN,
        .parent = registry_handle(s, graph_parent(&s->graph, id)),
        .output = { n->output },
        .children = count_children(s, id),
        .reads = n->read_count,
        .live_refs = n->live_refs,
        .runs = n->runs,
        .timed_runs = side->timed_runs,
        .total_ns = side->total_ns,
        .eligible_at_ns = gates_eligible_at(s, n),
        .why_not = introspection_why_not(s, id),
    };
}

const char *hd_why_not_text(hd_why_not reason) {
    static const char *const texts[] = {
        [HD_WHY_NOT_RUNS] = "it runs in the next pump",
        [HD_WHY_NOT_CLEAN] = "nothing it read has changed",
        [HD_WHY_NOT_DORMANT] = "nobody looks at what it writes",
        [HD_WHY_NOT_DEBOUNCE] = "debounced",
        [HD_WHY_NOT_THROTTLE] = "throttled",
        [HD_WHY_NOT_BACKOFF] = "backing off: it did not settle",
        [HD_WHY_NOT_ECHO] = "backing off: it and another writer overwrite each other",
        [HD_WHY_NOT_HELD] = "held while its space is synced",
        [HD_WHY_NOT_LOADING] = "a document it reads is on its way",
        [HD_WHY_NOT_RUNNING] = "it is suspended in the middle of a run",
        [HD_WHY_NOT_IDLE_TURN] = "a materialiser: it runs after everything else",
        [HD_WHY_NOT_GONE] = "it was removed",
    };
    return (unsigned)reason < sizeof texts / sizeof *texts ? texts[reason] : "unknown";
}

void introspection_fini(scheduler *s) { (void)s; }
