/* lead.c -- a node that another process computes waits for the result.
 *
 * The process that leads in the space (persistence/lead.c) runs the node when it hears of the change that made the node
 * out of date here. Until its row arrives, the node is invalid and not eligible; nodes downstream wait with it
 * (upstream.c), and so do handlers and pulls, as for every node that is not clean. The wait ends when the row has been
 * adopted, when another session leads, or when the patience is over; then the node runs here.
 *
 * What this runtime has not stored yet the leader cannot know: a node that reads such a thing runs at once, so that a
 * program sees the results of its own writes without a delay. */
#include "scheduler/runner/runner.h"

#include "base/env.h"
#include "scheduler/persistence/lead.h"

#define MS UINT64_C(1000000)

enum { PATIENCE_MAX_MS = 10000 };

/* Whether the node reads what the store has not confirmed. */
static bool reads_unconfirmed(const scheduler *s, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        place_id doc = place_at(&s->r->places, reads[i].key & KEY_PLACE)->root;
        if (place_at(&s->r->places, doc)->doc.flags & (DOC_OVERLAY | DOC_VOLATILE)) return true;
        if (replica_top(s->r, doc)) return true;
    }
    return false;
}

/* Nodes with a debounce or throttle, and those whose run was refused or failed, run by themselves. */
static bool may_follow(scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const uint32_t alone = NODE_EFFECT | NODE_MATERIALISER | NODE_GATED | NODE_NEVER_RAN;
    if (n->flags & (alone | NODE_NOT_ADOPTED)) return false;
    return persistence_is_led(s, id) && !reads_unconfirmed(s, n);
}

/* The node runs here. A leader that was silent may need longer than that, and gets twice the time when it has written a
 * row of the node again. */
static bool give_up(scheduler *s, node_id id, cold *c) {
    if (!c->answered) c->patience_ms *= 2;
    if (c->patience_ms > PATIENCE_MAX_MS) c->patience_ms = PATIENCE_MAX_MS;
    c->asked_ns = 0;
    persistence_stop_following(s, id, !c->answered);
    return false;
}

/* Until when the node waits. */
static uint64_t ask(cold *c, uint64_t now) {
    if (!c->patience_ms) c->patience_ms = PATIENCE_MS;
    if (!c->asked_ns) c->answered = false;
    if (!c->asked_ns) c->asked_ns = now;
    return c->asked_ns + c->patience_ms * MS;
}

bool runner_wait_for_lead(scheduler *s, node_id id) {
    bool follows = may_follow(s, id);
    cold *c = follows ? registry_cold(s, id) : cold_of(s, node_of(s, id));
    if (!follows && c) c->asked_ns = 0;
    if (!follows || !c) return false;
    uint64_t now = env_now_ns(s->env), until = ask(c, now);
    if (SABOTAGED(s, LEAVE_OUT_PATIENCE)) until = UINT64_MAX;
    return now < until ? gates_await_lead(s, id, until) : give_up(s, id, c);
}
