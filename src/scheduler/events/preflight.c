/* preflight.c -- the closure of a handler, and the gate before it. */
#include "scheduler/events/preflight.h"

#include "base/env.h"
#include "scheduler/events/preflight_walk.h"
#include "scheduler/gates/gates.h"
#include "scheduler/runner/runner.h"

#define MS UINT64_C(1000000)

typedef struct preflight {
    hd_tx *tx; /* of the last one: its journal is the closure */
    walks walks;
    uint32_t invalid; /* nodes upstream of the closure that were found */
} preflight;

static preflight *preflight_of(scheduler *s) {
    events *ev = s->events;
    if (ev->preflight) return ev->preflight;
    preflight *p = env_new0(s->env, sizeof *p);
    if (!p) return NULL;
    if (tx_open(s->rt, HD_COMMIT_NONE, &p->tx)) {
        env_free(s->env, p, sizeof *p);
        return NULL;
    }
    walks_init(&p->walks, s->env);
    return ev->preflight = p;
}

void preflight_fini(scheduler *s) {
    preflight *p = s->events->preflight;
    if (!p) return;
    tx_close(p->tx);
    walks_fini(&p->walks, s->env);
    env_free(s->env, p, sizeof *p);
    s->events->preflight = NULL;
}

/* ---- the closure */

static void read_declared(hd_tx *tx, const event *e) {
    const stream *to = e->to;
    for (uint32_t i = 0; i < to->inputs.count; i++) hd_tx_get(tx, to->inputs.items[i]);
    /* Links in the payload lead to cells that the handler may read. */
    if (!to->spec.reads_nothing) tx_read_links(tx, to->place, e->payload, to->spec.event_schema);
}

static hd_status call_preflight(scheduler *s, hd_tx *tx, event *e) {
    hd_event view = events_view(e);
    assert(!tx->owner && !s->rt->in_run);
    tx->owner = e; /* for what it logs */
    s->rt->in_run = true;
    hd_status status = e->to->spec.preflight(tx, &view, e->to->spec.ctx);
    s->rt->in_run = false;
    tx->owner = NULL;
    return status;
}

/* HD_OK with the closure in the transaction's journal. */
static hd_status read_closure(scheduler *s, hd_tx *tx, event *e) {
    tx_reset(tx);
    tx->flags = TX_OPEN | TX_RUN | TX_READ_ONLY | TX_PREFLIGHT;
    s->message[0] = 0;
    hd_status status = HD_OK;
    read_declared(tx, e);
    if (e->to->spec.preflight && !tx->missing) status = call_preflight(s, tx, e);
    if (tx->missing) {
        events_wait_for(s, e, tx->missing);
        e->waits = HD_EVENT_WAITS_LOAD;
        return HD_PENDING;
    }
    if (!status) status = tx->failed;
    if (status == HD_PENDING) e->waits = HD_EVENT_WAITS_READS;
    return status ? status : tx_reads_complete(tx);
}

/* ---- the gate */

/* Demands the node until it is clean, also if no live node reads it. */
static hd_status demand(scheduler *s, node_id id) {
    node *n = node_of(s, id);
    assert(!(n->flags & NODE_REMOVED));
    if (n->flags & NODE_MATERIALISER) {
        if (n->flags & NODE_PROMOTED) return HD_OK;
        n->flags |= NODE_PROMOTED;
        gates_apply(s, id, env_now_ns(s->env));
        return HD_OK;
    }
    if (node_is_live(&s->graph, n) || (n->flags & (NODE_DEMANDED | NODE_EFFECT))) return HD_OK;
    if (!vec_push(s->env, &s->requested, id)) return HD_NOMEM;
    n->flags |= NODE_DEMANDED;
    graph_demand(&s->graph, id);
    return HD_OK;
}

/* ---- inputs that do not settle
 *
 * An event does not wait for ever for nodes that do not settle (I6): it waits until their backoff has reached
 * its maximum, and then its handler runs on their latest values. For nodes that cannot run for another
 * reason (a debounce, a document that is loading) it waits as long as that takes. */

/* What a node waits for that has an end of its own: a run that is suspended, a document. */
#define AWAITS_END (NODE_SUSPENDED | NODE_BLOCKED | NODE_WAITING)

/* The node whose suspended run, or document, a node of AWAITS_END waits for. */
static const node *awaited(const scheduler *s, const node *n) {
    if (!(n->flags & NODE_BLOCKED)) return n;
    const hd_run *run = cold_of(s, n)->blocked_by;
    node_id id = registry_get(s, (hd_node){ run->node, run->generation });
    return id ? node_of(s, id) : n;
}

/* A cycle through a debounced or throttled node does not use up its runs in a pass: that node runs once in
 * its window, and is invalid again when the others have run. A node whose debounce is longer than the
 * period of a cycle that feeds it does not run at all. And a suspended run that takes longer than that period is
 * stale each time it ends. */
static bool goes_round(const scheduler *s, const patience *p, const node *n, uint64_t now) {
    bool awaits = n->flags & AWAITS_END;
    const cold *c = cold_of(s, awaits ? awaited(s, n) : n);
    if (!c) return false;
    if (awaits) return c->stale >= ITERATIONS_MAX && now - p->from >= STARVED_MS * MS;
    if (!(c->gate.debounce_ms | c->gate.throttle_ms)) return false;
    return gates_goes_round(&c->gate, now - p->from);
}

/* Whether a node that can run, or whose run is suspended, reads what does not settle: it may be out of date
 * again before it is done, and a run that takes longer than a backoff never ends in time. Of a node that waits
 * for a suspended run: whether that run's node does. */
static bool follows_unsettled(scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    if (!s->backed.count) return false; /* no node has a backoff */
    if (n->flags & NODE_BLOCKED) {
        const hd_run *run = cold_of(s, n)->blocked_by;
        id = registry_get(s, (hd_node){ run->node, run->generation });
        return id && runner_reads_unsettled(s, id);
    }
    bool busy = node_is_eligible(&s->graph, n) || (n->flags & NODE_SUSPENDED);
    return busy && runner_reads_unsettled(s, id);
}

/* Whether the event has waited for the node as long as events do. */
static bool is_given_up(scheduler *s, const patience *p, node_id id, uint64_t now) {
    const node *n = node_of(s, id);
    bool waited = p->unsettled && now - p->unsettled >= BACKOFF_MAX_MS * MS;
    if (!gates_is_unsettled(s, n))
        return goes_round(s, p, n, now) || (waited && follows_unsettled(s, id));
    if (waited) return true;
    return gates_backoff_is_full(s, n) && !node_is_eligible(&s->graph, n);
}

/* The event waits for nodes for the first time. */
static void begin_patience(event *e, uint64_t now) {
    patience *p = &e->to->patience;
    assert(!(e->flags & EVENT_WAITED) && now >= p->gave_up_at);
    e->flags |= EVENT_WAITED;
    if (p->gave_up_at && now - p->gave_up_at <= BACKOFF_MAX_MS * MS) return;
    *p = (patience){ .from = now };
}

static bool goes_on_without(scheduler *s, event *e, const node_vec *found) {
    patience *p = &e->to->patience;
    uint64_t now = env_now_ns(s->env);
    bool all = true, first = !(e->flags & EVENT_WAITED);
    assert(found->count);
    if (first) begin_patience(e, now);
    for (uint32_t i = 0; i < found->count && !p->unsettled; i++)
        if (gates_is_unsettled(s, node_of(s, found->items[i])) ||
            follows_unsettled(s, found->items[i]))
            p->unsettled = now;
    /* A node that can run now is waited for at least once by each event. */
    for (uint32_t i = 0; i < found->count && all; i++)
        all = is_given_up(s, p, found->items[i], now) &&
              !(first && node_is_eligible(&s->graph, node_of(s, found->items[i])));
    if (all) p->gave_up_at = now;
    return all;
}

/* ---- waiting */

/* If a time gate holds a node that is waited for, the lane need not look at its head again before the gate
 * opens. */
static void wait_behind(const scheduler *s, lane *l, node_id id) {
    const cold *c = cold_of(s, node_of(s, id));
    if (l->blocker.id || !c || !binheap_linked(&c->gate.timer)) return;
    l->blocker = registry_handle(s, id);
    l->blocked_until = c->gate.timer.key;
}

/* Something upstream has to run first. */
static hd_status hold_back(scheduler *s, event *e, const walks *w, const node_vec *found) {
    lane *l = e->to->lane;
    uint64_t now = env_now_ns(s->env);
    hd_status status = HD_OK;
    const node_vec *asked = walks_ended_up(w, found) ? &w->up.direct : found;
    for (uint32_t i = 0; i < asked->count && !status; i++) status = demand(s, asked->items[i]);
    bool again = false;
    l->blocker = (hd_node){ 0, 0 };
    l->behind_suspended = false;
    for (uint32_t i = 0; i < found->count && !status; i++) {
        if (node_of(s, found->items[i])->flags & NODE_MATERIALISER)
            status = demand(s, found->items[i]);
        again |= node_is_eligible(&s->graph, node_of(s, found->items[i]));
        l->behind_suspended |=
            (node_of(s, found->items[i])->flags & (NODE_SUSPENDED | NODE_BLOCKED)) != 0;
        if (!is_given_up(s, &e->to->patience, found->items[i], now))
            wait_behind(s, l, found->items[i]);
    }
    if (again) l->blocker = (hd_node){ 0, 0 }; /* a node runs in this pass: look again after it */
    s->events->again |= again;
    return status;
}

/* Warns once, until a handler of this stream has run on settled inputs. */
static void warn_unsettled(scheduler *s, const event *e, const node_vec *found) {
    stream *to = e->to;
    char names[160];
    s->events->stats.unsettled++;
    if (to->warned_unsettled) return;
    to->warned_unsettled = true;
    gates_print_names(s, found->items, found->count, names, sizeof names);
    env_log(s->env, HD_LOG_WARN,
            "handler \"%s\" runs on inputs that do not settle: %s upstream of them", to->name,
            names);
}

static void trace(scheduler *s, const event *e, const preflight *p, hd_status status) {
    events *ev = s->events;
    if (!ev->trace) return;
    hd_event_trace t = { .stage = HD_EVENT_PREFLIGHT,
                         .id = e->id,
                         .handler = e->to->name,
                         .stream = { e->to->place },
                         .status = status,
                         .closure = p->tx->reads.count,
                         .visits = p->walks.visits,
                         .invalid = p->invalid };
    ev->trace(&t, ev->trace_ctx);
}

static hd_status consult_gate(scheduler *s, event *e, preflight *p) {
    walks *w = &p->walks;
    const hd_tx *tx = p->tx;
    const node_vec *found = walks_look(w, s->env, &s->graph, tx->reads.items, tx->reads.count);
    s->events->stats.preflight_visits += w->visits;
    if (w->status) return w->status;
    if (!found) {
        e->to->warned_unsettled = false;
        e->to->patience.gave_up_at = 0;
    }
    if (!found || SABOTAGED(s->events, EVENTS_WITHOUT_GATE)) return HD_OK;
    p->invalid = found->count;
    if (goes_on_without(s, e, found)) {
        e->flags |= EVENT_UNSETTLED;
        warn_unsettled(s, e, found);
        return HD_OK;
    }
    hd_status status = hold_back(s, e, w, found);
    if (status) return status;
    e->waits = HD_EVENT_WAITS_NODES;
    return HD_PENDING;
}

hd_status preflight_event(scheduler *s, event *e) {
    preflight *p = preflight_of(s);
    if (!p) return HD_NOMEM;
    assert(lane_head(e->to->lane) == e && !e->waits && !s->running);
    s->events->stats.preflights++;
    p->walks.visits = p->invalid = 0;
    e->flags &= ~(uint32_t)EVENT_UNSETTLED;
    hd_status status = read_closure(s, p->tx, e);
    if (!status) status = consult_gate(s, e, p);
    trace(s, e, p, status);
    return status;
}

uint32_t preflight_outside(scheduler *s, const hd_tx *tx) {
    const preflight *p = s->events->preflight;
    const places *ps = &s->r->places;
    uint32_t outside = 0;
    assert(p); /* every handling comes after a preflight */
    for (uint32_t i = 0; i < tx->reads.count; i++)
        outside += !walks_cover(&p->walks, ps, tx->reads.items[i] & KEY_PLACE);
    return outside;
}
