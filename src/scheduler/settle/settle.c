/* settle.c -- the pass.
 *
 * An iteration is one upward sweep through the order: the lowest runnable node at or above the cursor
 * runs next. A run that invalidates a node further up has it run in the same sweep; what it
 * invalidates behind the cursor waits for the next one. So writers run before readers, each node at
 * most once per sweep, and a chain of any length settles in one (7.2, 7.4, I9).
 *
 * A graph that does not settle is deferred, not forced: after ITERATIONS_MAX sweeps the nodes that
 * ran in each of them wait behind a growing backoff, and everything else goes on (7.7, I6). */
#include "scheduler/settle/settle.h"

#include "base/env.h"
#include "value/key.h"
#include <stdio.h>

#define MS       UINT64_C(1000000)
#define SLICE_MS 16
#define PATIENCE 64 /* passes in a row that end at the limit; then all runnable nodes wait */

static uint32_t begin_pass(scheduler *s);
static bool sweep(scheduler *s);
static bool find_runnable(scheduler *s);
static bool give_idle_turn(scheduler *s);
static void defer_unsettled(scheduler *s);
static void end_pass(scheduler *s);

hd_status settle_pass(scheduler *s) {
    bool gave_way = false;
    uint32_t first = begin_pass(s);
    if (s->events) events_head_step(s);
    for (s->iteration = first; s->iteration <= ITERATIONS_MAX; s->iteration++) {
        gave_way = sweep(s);
        if (gave_way) break;
        bool more = find_runnable(s);
        if (!more && !give_idle_turn(s)) break;
    }
    if (!gave_way) defer_unsettled(s);
    end_pass(s);
    return s->tick ? HD_PENDING : HD_OK;
}

/* ---- beginning */

static void begin_counting(scheduler *s) {
    s->pass++;
    s->stats.passes++;
    s->counting = 0;
    s->aside = 0;
}

/* A pass that gave way in the middle goes on there: what it has counted still counts (I6). Returns
 * the sweep to begin with. */
static uint32_t begin_pass(scheduler *s) {
    uint32_t first = s->gave_way ? s->gave_way : 1;
    assert(!s->iteration && !s->running && !s->concluding && !s->rt->in_run); /* one at a time */
    assert(first <= ITERATIONS_MAX);
    if (!s->gave_way) begin_counting(s);
    s->gave_way = 0;
    s->tick = false;
    if (s->pass_tracer) s->pass_tracer->begin(s);
    if (!list_empty(&s->resumed)) runner_end_resumed(s);
    if (s->overwritten.count) invalidation_mark_overwritten(s);
    graph_settle(&s->graph);
    if (s->unblock) runner_unblock_all(s);
    if (s->led.count) gates_release_led(s, env_now_ns(s->env));
    if (binheap_count(&s->timers) || s->refused_until) gates_wake(s, env_now_ns(s->env));
    return first;
}

/* ---- sweeping */

/* How often the node has run in this pass, as far as that was counted. */
static uint32_t repeats_of(const scheduler *s, node_id id) {
    uint64_t word = id < s->repeat_capacity ? s->repeats[id] : 0;
    return word / REPEATS_END == s->pass ? (uint32_t)(word % REPEATS_END) : 0;
}

/* Makes room in `repeats` for all nodes. False: no memory. */
SELDOM static bool room_for_repeats(scheduler *s) {
    uint32_t old = s->repeat_capacity, capacity = s->graph.node_capacity;
    uint64_t *repeats =
        env_resize(s->env, s->repeats, old * sizeof *repeats, capacity * sizeof *repeats);
    if (!repeats) return false;
    memset(repeats + old, 0, (capacity - old) * sizeof *repeats);
    s->repeats = repeats;
    s->repeat_capacity = capacity;
    return true;
}

static bool used_up(const scheduler *s, node_id id) {
    return repeats_of(s, id) >= ITERATIONS_MAX - 1;
}

/* The node has used up its runs: it waits behind its backoff, and the end of the pass names it. */
static void exhaust(scheduler *s, node_id id, uint64_t now) {
    gates_exhausted(s, id, now);
    cold *c = cold_of(s, node_of(s, id));
    if (!c || c->gate.backed) return;
    /* Without memory for the list the node is not named, and keeps its backoff until the time is over. */
    c->gate.backed = vec_push(s->env, &s->backed, id);
}

/* Counts one more run of the node in this pass. Called from the second sweep on, and after a sweep went
 * back: before that no node runs twice. False: the node has had all its runs, and waits. */
static bool count_run(scheduler *s, node_id id) {
    uint32_t count = repeats_of(s, id);
    assert(s->counting && count < ITERATIONS_MAX); /* I6 */
    if (count >= ITERATIONS_MAX - 1) {
        exhaust(s, id, env_now_ns(s->env));
        return false;
    }
    /* Without memory the run is not counted; the limit on sweeps still holds. */
    if (id < s->repeat_capacity || room_for_repeats(s))
        s->repeats[id] = s->pass * REPEATS_END + count + 1;
    return true;
}

/* A run that was set aside is not counted: the node upstream that it waited for has run since, and that run
 * was counted. */
static void discount_aside(scheduler *s) {
    if (repeats_of(s, s->aside)) s->repeats[s->aside]--;
    s->aside = 0;
}

/* Decides whether the node at the cursor runs now, and moves the cursor. False: another node runs first,
 * the node waits for a document or a suspended run, or it has used up its runs. Called where one of these
 * is possible; the sweep runs all other nodes without asking. */
static bool admit(scheduler *s, node_id id, uint32_t pos) {
    if (s->aside) discount_aside(s);
    s->cursor = pos + 1;
    bool upstream = s->suspended || s->behind || s->refused_until || s->led.count ||
                    s->awaiting_count || s->graph.materialisers_invalid;
    if (s->r->authority->late && !runner_load_ahead(s, id)) return false;
    if (upstream && runner_wait_upstream(s, id)) return false;
    if (s->leads && runner_wait_for_lead(s, id)) return false;
    if (gates_is_round_too_often(s, node_of(s, id))) {
        exhaust(s, id, env_now_ns(s->env));
        return false;
    }
    return !s->counting || count_run(s, id);
}

/* Starts the time slice at the first reading of the clock. Returns whether the sweep has to give way to the pump:
 * because the slice is used up; because a run loaded a document in a later state than the rest of the replica, and the
 * pump has to bring the rest up to date (replica.ahead); or because must_wait is set. */
static bool use_slice(scheduler *s) {
    if (s->r->ahead.count || s->must_wait) return true;
    if (!s->clock_ns) return false;
    uint32_t ms = s->rt->options.slice_ms ? s->rt->options.slice_ms : SLICE_MS;
    if (!s->slice_end) s->slice_end = s->clock_ns + ms * MS;
    return s->clock_ns >= s->slice_end;
}

/* The slow half of next_runnable: nothing more is runnable in the word of `from`. Most often no other word
 * is raised either. Otherwise the search begins at the bottom, which also lowers what was raised in vain. */
static bool look_further(graph *g, uint32_t from, uint32_t *pos) {
    uint32_t word = from >> 6;
    if (from < g->order_capacity && !graph_runnable(g, word) && graph_lower_last(g, word))
        return false;
    *pos = graph_lowest_runnable(g);
    if (*pos < from) *pos = graph_next_runnable(g, from);
    return *pos != UINT32_MAX;
}

/* The lowest runnable position at or above the cursor. False: there is none. */
static inline bool next_runnable(graph *g, uint32_t from, uint32_t *pos) {
    if (USUALLY(from < g->order_capacity)) {
        uint64_t bits = graph_runnable(g, from >> 6) >> (from & 63);
        if (USUALLY(bits)) {
            *pos = from + (uint32_t)__builtin_ctzll(bits);
            return true;
        }
    }
    return look_further(g, from, pos);
}

static void give_way(scheduler *s) {
    s->tick = true;
    s->gave_way = s->iteration;
    s->gave_way_at = s->cursor;
    s->gave_way_moves = s->graph.repaired_nodes;
}

/* Where the sweep begins: at the bottom, or where it gave way. If nodes have moved since then, a node that
 * was above that position may stand below it now: then the sweep begins at the bottom and counts runs. */
static uint32_t sweep_from(scheduler *s) {
    uint32_t from = s->gave_way_at;
    s->gave_way_at = 0;
    if (!from || s->gave_way_moves == s->graph.repaired_nodes) return from;
    s->counting = 1;
    return 0;
}

/* Whether admit is asked for each node. That changes only in runs that are not plain; where it changes while a body is
 * on the stack, `asks` is set there. Invalid materialisers are looked at apart. */
static bool must_ask(const scheduler *s) {
    return (s->counting | s->suspended | s->behind | s->backed.count | s->leads) != 0 ||
           s->refused_until || s->r->authority->late;
}

/* True: the pass gives way to the pump. */
static bool sweep(scheduler *s) {
    graph *g = &s->graph;
    assert(s->iteration >= 1 && s->iteration <= ITERATIONS_MAX);
    bool gives_way = s->r->ahead.count > 0 || s->must_wait;
    s->stats.iterations++;
    graph_settle(g); /* an event may have demanded nodes, whose declared reads brought edges */
    s->cursor = sweep_from(s);
    s->counting |= s->iteration > 1;
    s->behind = s->cursor && graph_lowest_runnable(g) < s->cursor;
    s->upstream_epoch++;
    s->asks = must_ask(s);
    runner_begin_row(s);
    for (uint32_t pos; !gives_way && next_runnable(g, s->cursor, &pos);) {
        node_id id = g->node_at[pos];
        if (RARELY(g->materialisers_invalid | s->asks) && !admit(s, id, pos)) continue;
        s->cursor = pos + 1;
        if (!runner_run_node(s, id, pos)) continue;
        s->asks = must_ask(s);
        gives_way = use_slice(s);
    }
    runner_end_row(s);
    assert(!s->cancelled && !s->concluding);
    if (gives_way) give_way(s);
    return gives_way;
}

/* ---- idle priority */

/* Materialisers have their turn when there is no primary work (4.3, rule 1). */
static bool give_idle_turn(scheduler *s) {
    bool any = false;
    if (!s->waiting.count) return false;
    uint64_t now = env_now_ns(s->env);
    for (uint32_t i = 0; i < s->waiting.count; i++) {
        node_id id = s->waiting.items[i];
        node *n = &s->graph.nodes[id];
        if ((n->flags & NODE_REMOVED) || !(n->flags & NODE_MATERIALISER)) continue;
        if (!node_is_invalid(&s->graph, n)) continue;
        n->flags |= NODE_PROMOTED;
        gates_apply(s, id, now);
        any = any || node_is_eligible(&s->graph, n);
    }
    vec_clear(&s->waiting);
    s->waiting_low = UINT32_MAX;
    return any;
}

/* ---- not settling */

/* An episode of not settling lasts while any node has a backoff. In each, a node is named once: in a
 * marker, and in a warning. */
static uint32_t name_new(scheduler *s, node_id named[HD_TELEMETRY_NAMES]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->backed.count; i++) {
        node_id id = s->backed.items[i];
        const node *n = &s->graph.nodes[id];
        cold *c = n->flags & NODE_REMOVED ? NULL : cold_of(s, n);
        if (!c || !c->gate.backed || !c->gate.streak) continue;
        if (c->gate.told == s->unsettled_episode) continue;
        c->gate.told = s->unsettled_episode;
        if (count < HD_TELEMETRY_NAMES) named[count] = id;
        count++;
    }
    return count;
}

static void tell_unsettled(scheduler *s) {
    node_id named[HD_TELEMETRY_NAMES];
    const char *names[HD_TELEMETRY_NAMES] = { 0 };
    char text[160];
    uint32_t all = name_new(s, named);
    uint32_t count = all < HD_TELEMETRY_NAMES ? all : HD_TELEMETRY_NAMES;
    if (!all) return;
    for (uint32_t i = 0; i < count; i++) names[i] = node_label(s, named[i]);
    gates_print_names(s, named, all, text, sizeof text);
    env_log(s->env, HD_LOG_WARN, "does not settle: %s run%s again and again; slowed down", text,
            all == 1 ? "s" : "");
    tell(s, &(hd_telemetry){ .kind = HD_TELEMETRY_NOT_SETTLING,
                             .node = registry_handle(s, named[0]),
                             .action = names[0],
                             .count = all,
                             .names = names,
                             .name_count = count });
}

/* After the last sweep, nodes may still be runnable. Those that used up their runs wait behind a backoff;
 * the others run in the next pass. */
static void defer_unsettled(scheduler *s) {
    graph *g = &s->graph;
    if (s->iteration <= ITERATIONS_MAX || !find_runnable(s)) {
        s->deferred_passes = 0;
        return;
    }
    uint32_t pos = graph_lowest_runnable(g);
    bool all = ++s->deferred_passes > PATIENCE;
    uint64_t now = env_now_ns(s->env);
    s->stats.exhausted++;
    for (; pos != UINT32_MAX; pos = graph_next_runnable(g, pos + 1)) {
        node_id id = g->node_at[pos];
        if (used_up(s, id) || all) exhaust(s, id, now);
    }
}

/* A node that ends the pass clean has settled; if it is in a cycle of asynchronous nodes, everything upstream
 * of it must be clean as well. */
static bool has_settled(scheduler *s, node_id id, const cold *c) {
    if (node_is_invalid(&s->graph, node_of(s, id))) return false;
    return !c->gate.goes_round || runner_is_settled(s, id);
}

static void clear_backoffs(scheduler *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->backed.count; i++) {
        node_id id = s->backed.items[i];
        node *n = &s->graph.nodes[id];
        cold *c = n->flags & NODE_REMOVED ? NULL : cold_of(s, n);
        if (!c || !c->gate.backed) continue; /* the node is gone, and its id may be reused */
        if (!has_settled(s, id, c)) {
            if (c->gate.exhausted_rev == UINT64_MAX) c->gate.exhausted_rev = s->r->rev;
            s->backed.items[kept++] = id;
            continue;
        }
        c->gate.backed = false;
        gates_settled(s, id);
    }
    s->backed.count = kept;
    if (!kept) s->unsettled_episode++;
}

/* ---- ending */

/* Demand by creation ends with the later of the creating pass and the first run (5.3). */
static void expire_provisional(scheduler *s) {
    uint32_t kept = 0;
    if (SABOTAGED(s, LEAVE_OUT_EXPIRY)) return;
    for (uint32_t i = 0; i < s->provisional.count; i++) {
        node_id id = s->provisional.items[i];
        node *n = &s->graph.nodes[id];
        if ((n->flags & NODE_REMOVED) || !(n->flags & NODE_PROVISIONAL)) continue;
        if (n->flags & NODE_NEVER_RAN) {
            s->provisional.items[kept++] = id;
            continue;
        }
        n->flags &= ~(uint32_t)NODE_PROVISIONAL;
        graph_withdraw(&s->graph, id);
    }
    s->provisional.count = kept;
}

/* Whether the request for a run is given up because the node does not settle: its backoff has reached its
 * maximum. A request that stayed would keep the node running for ever, without a live reader. */
static bool is_hopeless(const scheduler *s, const node *n) {
    return !(n->flags & NODE_EPHEMERAL) && gates_backoff_is_full(s, n);
}

/* Ends the demand of requested nodes that are clean, and removes pulls that have seen their value. */
static void expire_requests(scheduler *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->requested.count; i++) {
        node_id id = s->requested.items[i];
        node *n = &s->graph.nodes[id];
        if ((n->flags & NODE_REMOVED) || !(n->flags & (NODE_DEMANDED | NODE_EPHEMERAL))) continue;
        if (node_is_invalid(&s->graph, n) && !is_hopeless(s, n)) {
            s->requested.items[kept++] = id;
        } else if (n->flags & NODE_EPHEMERAL) {
            registry_remove(s, id);
        } else {
            n->flags &= ~(uint32_t)NODE_DEMANDED;
            graph_withdraw(&s->graph, id);
        }
    }
    s->requested.count = kept;
}

static void end_pass(scheduler *s) {
    s->iteration = 0;
    if (s->provisional.count | s->requested.count | s->backed.count) {
        expire_provisional(s);
        expire_requests(s);
        if (s->backed.count) tell_unsettled(s);
        if (s->backed.count) clear_backoffs(s);
    }
    graph_settle(&s->graph);
    graph_tidy(&s->graph);
    bool runnable = find_runnable(s);
    s->tick = runnable || s->waiting.count || !list_empty(&s->resumed) || s->unblock ||
              (s->events && events_have_work(s));
    if (!runnable) s->gave_way = s->gave_way_at = 0; /* the pass was complete */
    if (s->pass_tracer) s->pass_tracer->end(s);
    settle_check(s);
}

static bool find_runnable(scheduler *s) {
    return s->graph.top && graph_lowest_runnable(&s->graph) != UINT32_MAX;
}

bool settle_find_work(scheduler *s) { return s->waiting.count || find_runnable(s); }

/* ---- idle */

/* Whether idle waits for the backoff of a node that may still settle: until the backoff has reached its
 * maximum, and again after another writer has changed what the node reads; at most IDLE_HOLDS_MAX times
 * before idle. After idle it waits for the node again only if such a change came since. */
static bool backoff_holds(const scheduler *s, const node *n, const gate *g) {
    if (g->holds_episode != s->episode) return gates_is_stirred(s, n, s->idle_rev);
    if (g->holds > IDLE_HOLDS_MAX) return false;
    return !gates_backoff_is_full(s, n) || gates_is_stirred(s, n, 0);
}

static bool waits_for_first_run(const node *n, const gate *g) {
    return (n->flags & NODE_NEVER_RAN) && g->debounce_at && g->debounce_at == g->timer.key;
}

static bool holds(const scheduler *s, const cold *c) {
    const node *n = node_of(s, c->node);
    const gate *g = &c->gate;
    if (!node_is_live(&s->graph, n) || !node_is_invalid(&s->graph, n)) return false;
    if (g->hold_at && g->hold_at == g->timer.key) return true;
    if (g->lead_at && g->lead_at == g->timer.key) return true;
    if (g->retry_at && gates_retry_holds(c)) return true;
    if (g->backoff_at && g->backoff_at == g->timer.key) return backoff_holds(s, n, g);
    return waits_for_first_run(n, g) && !gates_is_put_off(g);
}

/* Whether a live invalid node waits for a document. */
static bool awaits_documents(const scheduler *s) {
    for (uint32_t i = 0; i < AWAITING_LISTS; i++)
        LIST_FOR (at, &s->awaiting[i]) {
            const node *n = node_of(s, LIST_ENTRY(at, cold, awaiting)->node);
            if (node_is_live(&s->graph, n) && node_is_invalid(&s->graph, n)) return true;
        }
    return false;
}

bool settle_holds_idle(const scheduler *s) {
    if (s->r->authority->late && awaits_documents(s)) return true;
    for (uint32_t i = 0; i < s->timers.count; i++)
        if (holds(s, BINHEAP_ENTRY(s->timers.slots[i].item, cold, gate.timer))) return true;
    return false;
}

bool settle_holds_sync(const scheduler *s) {
    for (uint32_t i = 0; i < s->timers.count; i++) {
        const cold *c = BINHEAP_ENTRY(s->timers.slots[i].item, cold, gate.timer);
        const node *n = node_of(s, c->node);
        if (c->gate.retry_at && gates_retry_holds(c) && node_is_live(&s->graph, n) &&
            node_is_invalid(&s->graph, n))
            return true;
    }
    return false;
}

/* Whether settle_unsettled counts the node. A node whose commit is refused again and again counts as one
 * that does not settle. */
static bool is_left_behind(const scheduler *s, const cold *c) {
    const node *n = node_of(s, c->node);
    const gate *g = &c->gate;
    if (!node_is_live(&s->graph, n) || !node_is_invalid(&s->graph, n)) return false;
    return gates_is_unsettled(s, n) || (g->retry_at && g->retry_at == g->timer.key) ||
           waits_for_first_run(n, g);
}

uint32_t settle_unsettled(const scheduler *s) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->timers.count; i++)
        count += is_left_behind(s, BINHEAP_ENTRY(s->timers.slots[i].item, cold, gate.timer));
    return count + s->parked;
}

void settle_fini(scheduler *s) {
    vec_fini(s->env, &s->provisional);
    vec_fini(s->env, &s->requested);
    env_free(s->env, s->repeats, s->repeat_capacity * sizeof *s->repeats);
    vec_fini(s->env, &s->waiting);
    vec_fini(s->env, &s->backed);
}
