/* gates.c -- when a node may run: all of its gates together give one time (eligible_at), and one timer waits for it. */
#include "scheduler/gates/gates.h"

#include "base/env.h"
#include "scheduler/registry.h"
#include "value/key.h"
#include <stdio.h>

#define MS                UINT64_C(1000000)
#define AUTO_DEBOUNCE_MS  100
#define AUTO_THRESHOLD_MS 50
#define AUTO_MIN_RUNS     3
#define AUTO_SLOW_NS      UINT64_C(200000) /* a run that is shorter adds nothing to the average */
#define AUTO_FAST_NS      UINT64_C(20000)  /* after one that is shorter, most are not timed */
#define ECHO_LIMIT        12
#define ECHO_WINDOW_MS    60000
#define ECHO_MS           500
#define ECHO_MAX_MS       30000
#define SEVENTH_NS        (25 * MS) /* the delay before the seventh retry; each retry doubles it */
#define RETRY_MAX_NS      (1000 * MS)
#define FAILED_LATER                                                                               \
    3 /* a failed run delays its retry as if it had been refused so many times more */
#define RETRY_ROW_NS (2000 * MS) /* refusals that are further apart are not in a row */
#define RETRIES_HELD 10          /* retries in a row that idle and sync wait for */
#define NAMES_SHOWN  3

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

uint64_t gates_eligible_at(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (!c) return 0;
    const gate *g = &c->gate;
    return later(later(later(g->debounce_at, g->throttle_at), later(g->backoff_at, g->echo_at)),
                 later(later(g->hold_at, g->retry_at), g->lead_at));
}

hd_why_not gates_reason(const scheduler *s, const node *n, uint64_t now) {
    const cold *c = cold_of(s, n);
    uint64_t at = gates_eligible_at(s, n);
    if (at <= now) return HD_WHY_NOT_RUNS;
    assert(c); /* a node without the record has no gates */
    if (at == c->gate.hold_at) return HD_WHY_NOT_HELD;
    if (at == c->gate.echo_at) return HD_WHY_NOT_ECHO;
    if (at == c->gate.backoff_at) return HD_WHY_NOT_BACKOFF;
    if (at == c->gate.retry_at) return HD_WHY_NOT_RETRY;
    if (at == c->gate.lead_at) return HD_WHY_NOT_LED;
    return at == c->gate.throttle_at ? HD_WHY_NOT_THROTTLE : HD_WHY_NOT_DEBOUNCE;
}

/* Whether the node waits for nothing but a time. A materialiser waits until settle promotes it; others for a
 * document (NODE_WAITING), for the end of their own or another suspended run, or for memory, until the next
 * pump. */
static bool has_its_turn(const node *n) {
    assert(!(n->flags & NODE_REMOVED));
    if (n->flags & (NODE_WAITING | NODE_SUSPENDED | NODE_BLOCKED | NODE_STARVED)) return false;
    return !(n->flags & NODE_MATERIALISER) || (n->flags & NODE_PROMOTED);
}

void gates_apply(scheduler *s, node_id id, uint64_t now) {
    node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    uint64_t at = gates_eligible_at(s, n);
    bool wait = at > now;
    assert(!(n->flags & NODE_REMOVED) && (c || !at));
    if (c) {
        binheap_item *timer = &c->gate.timer;
        if (!wait && binheap_linked(timer)) binheap_remove(&s->timers, timer);
        /* Without memory for the timer the node does not wait: without a timer it would wait for ever. */
        if (wait && binheap_linked(timer)) binheap_update(&s->timers, timer, at);
        else if (wait && binheap_push(&s->timers, timer, at)) wait = false;
    }
    bool eligible = !wait && has_its_turn(n);
    graph_set_eligible(&s->graph, n, eligible);
    if (eligible) s->tick = true;
}

/* ---- events in a node's life */

void gates_registered(scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & (NODE_REMOVED | NODE_RUNNING)));
    node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    bool first_waits = n->flags & (NODE_EFFECT | NODE_PROVISIONAL);
    uint64_t now = 0;
    if (c && c->gate.debounce_ms && first_waits) {
        now = env_now_ns(s->env);
        c->gate.debounce_at = now + c->gate.debounce_ms * MS;
        c->gate.armed_at = now;
    }
    if (c || (n->flags & NODE_MATERIALISER)) gates_apply(s, id, now ? now : env_now_ns(s->env));
}

/* Whether the node has not run here, and its run is due for another reason than a change that was noticed here:
 * it never ran, or what it read had changed when it was resumed. */
static bool is_first(const node *n, const gate *g, bool was_invalid) {
    if (n->flags & NODE_NEVER_RAN) return !(n->flags & (NODE_EFFECT | NODE_PROVISIONAL));
    return (n->flags & NODE_RESUMED) && was_invalid && !g->debounce_at;
}

/* The longest time between a run and the change that makes the node run again, if the two belong to a cycle: there
 * may be several nodes with such windows in it. */
static uint64_t round_ns(const gate *g) {
    return later(g->debounce_ms, g->throttle_ms) * ITERATIONS_MAX * MS;
}

static void count_again(gate *g, uint64_t now) {
    bool soon = g->ran_at && now - g->ran_at <= round_ns(g);
    if (!soon) g->again = 0;
    else if (g->again < ITERATIONS_MAX) g->again++;
}

void gates_invalidated(scheduler *s, node_id id, bool was_invalid) {
    node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    if (!c || !(c->gate.debounce_ms | c->gate.throttle_ms)) return;
    uint64_t now = env_now_ns(s->env);
    if (!was_invalid) count_again(&c->gate, now);
    if (!c->gate.debounce_ms || c->stale) return; /* a retry is due, and is not debounced */
    /* The first run of a computation is not debounced: it runs when it is demanded. */
    if (is_first(n, &c->gate, was_invalid)) return;
    if (!was_invalid || !c->gate.debounce_at) c->gate.armed_at = now;
    c->gate.debounce_at = now + c->gate.debounce_ms * MS;
    gates_apply(s, id, now);
}

void gates_ran(scheduler *s, node_id id, uint64_t now, bool completed) {
    node *n = node_of(s, id);
    cold *c = cold_of(s, n);
    /* Its next run waits for idle priority again. */
    if (!node_is_invalid(&s->graph, n)) n->flags &= ~(uint32_t)NODE_PROMOTED;
    if (c) c->gate.debounce_at = 0;
    if (c && n->runs) c->gate.hold_at = 0; /* a hold that began during its first run */
    if (c && completed) c->gate.ran_at = now;
    if (c && completed && c->gate.throttle_ms) c->gate.throttle_at = now + c->gate.throttle_ms * MS;
    gates_apply(s, id, now);
}

static uint64_t doubled(uint64_t base_ms, uint64_t max_ms, uint8_t *streak) {
    assert(base_ms && base_ms <= max_ms);
    uint64_t ms = base_ms << (*streak < 16 ? *streak : 16);
    if (*streak < UINT8_MAX) (*streak)++;
    return (ms < max_ms ? ms : max_ms) * MS;
}

void gates_exhausted(scheduler *s, node_id id, uint64_t now) {
    if (SABOTAGED(s, LEAVE_OUT_BACKOFF)) return;
    cold *c = registry_cold(s, id);
    if (!c) return;
    if (c->gate.holds_episode != s->episode) {
        c->gate.holds_episode = s->episode;
        c->gate.holds = 0;
    }
    if (c->gate.holds < UINT8_MAX) c->gate.holds++;
    c->gate.backoff_at = now + doubled(BACKOFF_MS, BACKOFF_MAX_MS, &c->gate.streak);
    c->gate.exhausted_rev = UINT64_MAX;
    c->gate.rounds = 0;
    assert(c->gate.backoff_at > now && c->gate.streak);
    s->stats.filtered++;
    gates_apply(s, id, now);
}

void gates_went_round(scheduler *s, node_id id) {
    cold *c = registry_cold(s, id);
    if (!c || !(c->gate.backed || vec_push(s->env, &s->backed, id))) return;
    c->gate.backed = c->gate.goes_round = true;
    if (c->gate.rounds < ITERATIONS_MAX) c->gate.rounds++;
}

bool gates_is_round_too_often(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    return c && c->gate.rounds >= ITERATIONS_MAX;
}

void gates_settled(scheduler *s, node_id id) {
    cold *c = cold_of(s, node_of(s, id));
    if (!c) return;
    c->gate.rounds = 0;
    c->gate.goes_round = false;
    if (!(c->gate.backoff_at || c->gate.streak)) return;
    c->gate.backoff_at = 0;
    c->gate.streak = 0;
    gates_apply(s, id, env_now_ns(s->env));
}

bool gates_is_unsettled(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    return c && (c->gate.streak || c->gate.echo_streak);
}

bool gates_backoff_is_full(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    if (!c || !c->gate.streak) return false;
    uint32_t doublings = c->gate.streak - 1u < 16 ? c->gate.streak - 1u : 16;
    return (uint64_t)BACKOFF_MS << doublings >= BACKOFF_MAX_MS;
}

bool gates_is_stirred(const scheduler *s, const node *n, uint64_t since) {
    const cold *c = cold_of(s, n);
    const edge *reads = node_reads_const(n);
    if (!c || !c->gate.streak) return false;
    since = later(since, c->gate.exhausted_rev);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (place_at(&s->r->places, reads[i].key & KEY_PLACE)->rev > since) return true;
    return false;
}

/* ---- retries */

uint64_t gates_delay_ns(const scheduler *s, uint32_t n) {
    assert(n > 0);
    uint64_t ns = n < 6 ? SEVENTH_NS >> (6 - n) : SEVENTH_NS << (n < 12 ? n - 6 : 6);
    if (ns > RETRY_MAX_NS) ns = RETRY_MAX_NS;
    return ns - env_random_u64(s->env) % (ns / 4);
}

void gates_release(scheduler *s, node_id id) {
    cold *c = cold_of(s, node_of(s, id));
    if (!c) return;
    c->gate.debounce_at = c->gate.throttle_at = 0;
    gates_apply(s, id, env_now_ns(s->env));
}

static void count_refusal(gate *g, uint64_t now) {
    if (now > g->retry_at + RETRY_ROW_NS) g->retries = 0;
    if (g->retries < UINT8_MAX) g->retries++;
}

/* Without memory for the record the retry is made at once. */
void gates_retry(scheduler *s, node_id id, bool failed) {
    cold *c = registry_cold(s, id);
    if (!c) return;
    gate *g = &c->gate;
    uint64_t now = env_now_ns(s->env);
    count_refusal(g, now);
    g->debounce_at = g->throttle_at = 0;
    uint32_t times = g->retries - 1u + (failed ? FAILED_LATER : 0);
    g->retry_at = g->retries > 1 ? now + gates_delay_ns(s, times) : now;
    assert(g->retries && g->retry_at >= now);
    gates_apply(s, id, now);
    /* Another gate may hold the node longer at first, and end before the retry is due. */
    if (failed || g->retry_at == now || g->retries > RETRIES_HELD) return;
    s->refused_until = later(s->refused_until, g->retry_at);
    s->upstream_epoch++;
}

bool gates_is_refused(const scheduler *s, const node *n) {
    const cold *c = s->refused_until ? cold_of(s, n) : NULL;
    return c && !c->transient && gates_retry_holds(c);
}

void gates_wait_with(scheduler *s, node_id id, const cold *refused) {
    cold *c = registry_cold(s, id);
    assert(gates_retry_holds(refused));
    if (!c) {
        gates_starve(s, id);
        return;
    }
    c->gate.retry_at = later(c->gate.retry_at, refused->gate.retry_at);
    gates_apply(s, id, env_now_ns(s->env));
}

void gates_refused(scheduler *s, node_id id) {
    cold *c = registry_cold(s, id);
    if (!c) return;
    gate *g = &c->gate;
    uint64_t now = env_now_ns(s->env);
    count_refusal(g, now);
    g->retry_at = g->retries > RETRIES_HELD ? now + gates_delay_ns(s, g->retries - 1u) : now;
    gates_apply(s, id, now);
}

void gates_accepted(scheduler *s, node_id id) {
    cold *c = cold_of(s, node_of(s, id));
    if (!c || !c->gate.retries) return;
    c->gate.retries = 0;
    c->gate.retry_at = 0;
    gates_apply(s, id, env_now_ns(s->env));
}

bool gates_retry_holds(const cold *c) {
    assert(c->node);
    const gate *g = &c->gate;
    return binheap_linked(&g->timer) && g->retry_at == g->timer.key && g->retries <= RETRIES_HELD;
}

/* ---- waiting for another process */

bool gates_await_lead(scheduler *s, node_id id, uint64_t until) {
    cold *c = registry_cold(s, id);
    assert(until);
    if (!c || !vec_push(s->env, &s->led, id)) return false;
    c->gate.lead_at = until;
    if (s->led.count == 1 || until < s->led_until) s->led_until = until;
    s->upstream_epoch++;
    gates_apply(s, id, env_now_ns(s->env));
    return true;
}

/* The leader's result was adopted: it is stored, so that refusals before it and after it are not in a row. */
static void end_wait(cold *c) {
    c->asked_ns = 0;
    c->gate.retries = 0;
    c->gate.retry_at = 0;
}

void gates_release_led(scheduler *s, uint64_t now) {
    if (!s->unlead && now < s->led_until) return;
    for (uint32_t i = 0; i < s->led.count; i++) {
        const node *n = &s->graph.nodes[s->led.items[i]]; /* it may be another one by now */
        cold *c = n->flags & NODE_REMOVED ? NULL : cold_of(s, n);
        if (!c || !c->gate.lead_at) continue;
        c->gate.lead_at = 0;
        if (!node_is_invalid(&s->graph, n)) end_wait(c);
        gates_apply(s, c->node, now);
    }
    vec_clear(&s->led);
    s->unlead = false;
    s->upstream_epoch++;
}

/* ---- windows that do not end */

bool gates_is_put_off(const gate *g) {
    assert(g->debounce_ms || !g->debounce_at);
    uint64_t ms = later((uint64_t)g->debounce_ms * ITERATIONS_MAX, STARVED_MS);
    return g->debounce_at > g->armed_at + g->debounce_ms * MS + ms * MS;
}

bool gates_goes_round(const gate *g, uint64_t waited_ns) {
    if (g->debounce_at && gates_is_put_off(g)) return true;
    return g->again >= ITERATIONS_MAX && waited_ns >= round_ns(g);
}

/* ---- names */

void gates_print_names(const scheduler *s, const node_id *ids, uint32_t count, char *out,
                       size_t size) {
    size_t at = 0;
    uint32_t named = count < NAMES_SHOWN ? count : NAMES_SHOWN;
    for (uint32_t i = 0; i < named && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s\"%.40s\"", i ? ", " : "",
                               node_label(s, ids[i]));
    if (count > named && at < size) snprintf(out + at, size - at, " and %u more", count - named);
}

void gates_echoed(scheduler *s, node_id id, uint64_t now) {
    if (SABOTAGED(s, LEAVE_OUT_ECHO)) return;
    cold *c = registry_cold(s, id);
    if (!c) return;
    gate *g = &c->gate;
    if (!g->echoes || now - g->echo_since > ECHO_WINDOW_MS * MS) {
        g->echoes = 0;
        g->echo_since = now;
    }
    if (++g->echoes < ECHO_LIMIT) return;
    g->echoes = ECHO_LIMIT - 1; /* the next echo reaches the limit again */
    if (!g->echo_streak)
        env_log(s->env, HD_LOG_WARN,
                "node \"%s\" and another writer keep overwriting each other: slowed down",
                node_label(s, id));
    g->echo_at = now + doubled(ECHO_MS, ECHO_MAX_MS, &g->echo_streak);
    assert(g->echo_streak && g->echoes < ECHO_LIMIT);
    gates_apply(s, id, now);
}

void gates_converged(scheduler *s, node_id id) {
    cold *c = cold_of(s, node_of(s, id));
    if (!c || !c->gate.echoes) return;
    c->gate.echoes = c->gate.echo_streak = 0;
    c->gate.echo_at = 0;
}

void gates_overwritten(scheduler *s, node_id id) {
    cold *c = registry_cold(s, id);
    if (!c) return;
    uint64_t runs = node_runs(s, node_of(s, id));
    assert(c->mended <= runs);
    if (c->mended && c->mended + 1 == runs) gates_echoed(s, id, env_now_ns(s->env));
    else gates_converged(s, id);
    c->mended = runs;
}

bool gates_is_mending(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const cold *c = cold_of(s, n);
    return c && c->mended && c->mended == node_runs(s, n);
}

/* ---- policies */

/* A retry is due: debounce and throttle do not hold it. */
static bool is_owed(const cold *c) { return c->stale || c->transient; }

/* Whether a debounce that is set now holds a run that is due already. Not the first one, and none that is
 * under way. */
static bool is_held_from_now(const scheduler *s, const node *n, const cold *c) {
    assert(c->node && c == cold_of(s, n));
    if (n->flags & (NODE_NEVER_RAN | NODE_RUNNING | NODE_SUSPENDED)) return false;
    return node_is_invalid(&s->graph, n) && !is_owed(c);
}

/* A window that is running ends as if it had been of the new length from the start. When a node without a
 * debounce became invalid is not known: there the window begins now. */
hd_status gates_set_debounce(scheduler *s, node_id id, uint32_t ms) {
    cold *c = registry_cold(s, id);
    if (!c) return HD_NOMEM;
    uint64_t now = env_now_ns(s->env), at = c->gate.debounce_at;
    node *n = node_of(s, id);
    n->flags |= NODE_GATED;
    if (at) at = at - c->gate.debounce_ms * MS + ms * MS;
    else if (!c->gate.debounce_ms && is_held_from_now(s, n, c)) at = now + ms * MS;
    if (!c->gate.debounce_at) c->gate.armed_at = now;
    c->gate.debounce_ms = ms;
    c->gate.debounce_at = ms ? at : 0;
    gates_apply(s, id, now);
    return HD_OK;
}

/* Whether it has run in this process, and is not to run again because that run did not count. */
static bool has_run_here(const node *n, const cold *c) {
    return !(n->flags & (NODE_NEVER_RAN | NODE_RESUMED)) && !is_owed(c);
}

/* A window that is running is counted from the last run. When a node without a throttle ran last is not known:
 * there the first window begins now. */
hd_status gates_set_throttle(scheduler *s, node_id id, uint32_t ms) {
    cold *c = registry_cold(s, id);
    if (!c) return HD_NOMEM;
    uint64_t now = env_now_ns(s->env), at = c->gate.throttle_at;
    node *n = node_of(s, id);
    n->flags |= NODE_GATED;
    if (at) at = at - c->gate.throttle_ms * MS + ms * MS;
    else if (!c->gate.throttle_ms && has_run_here(n, c)) at = now + ms * MS;
    c->gate.throttle_ms = ms;
    c->gate.throttle_at = ms ? at : 0;
    gates_apply(s, id, now);
    return HD_OK;
}

static void consider_auto(scheduler *s, node_id id, cold *c, uint64_t runs) {
    assert(runs && c->node == id);
    gate *g = &c->gate;
    if (g->no_auto || g->auto_set || g->debounce_ms) return;
    if (g->timed_ns / runs < AUTO_THRESHOLD_MS * MS) return;
    g->auto_set = true;
    gates_set_debounce(s, id, AUTO_DEBOUNCE_MS);
}

bool gates_times_next(const node *n) {
    assert(!(n->flags & NODE_TIMED) || ((n->flags & NODE_EFFECT) && n->runs));
    return (n->flags & NODE_TIMED) && n->runs > 1;
}

void gates_timed(scheduler *s, node_id id, uint64_t took_ns) {
    node *n = node_of(s, id);
    assert(gates_times_next(n));
    uint64_t runs = node_runs(s, n) - 1; /* with this one, without the first two */
    if (took_ns < AUTO_FAST_NS) n->flags &= ~(uint32_t)NODE_TIMED;
    if (n->flags & NODE_EPHEMERAL) return;
    cold *c = took_ns >= AUTO_SLOW_NS ? registry_cold(s, id) : cold_of(s, n);
    if (!c) return;
    c->gate.timed_runs++;
    c->gate.timed_ns += took_ns;
    if (runs + 2 >= AUTO_MIN_RUNS) consider_auto(s, id, c, later(runs, c->gate.timed_runs));
}

/* ---- memory */

void gates_starve(scheduler *s, node_id id) {
    node_of(s, id)->flags |= NODE_STARVED;
    s->starved = true;
    gates_apply(s, id, 0);
}

/* Looks at all nodes: a list of the starved ones would have needed memory. */
void gates_feed(scheduler *s) {
    uint64_t now = env_now_ns(s->env);
    s->starved = false;
    for (node_id id = 1; id < s->graph.node_count; id++) {
        node *n = &s->graph.nodes[id];
        if ((n->flags & NODE_REMOVED) || !(n->flags & NODE_STARVED)) continue;
        n->flags &= ~(uint32_t)NODE_STARVED;
        gates_apply(s, id, now);
    }
    assert(!s->starved);
}

/* ---- the timer */

void gates_wake(scheduler *s, uint64_t now) {
    for (binheap_item *timer; (timer = binheap_peek(&s->timers)) && timer->key <= now;) {
        cold *c = BINHEAP_ENTRY(timer, cold, gate.timer);
        assert(c->node && timer->key == gates_eligible_at(s, node_of(s, c->node)));
        if (c->gate.streak > 1 && gates_is_stirred(s, node_of(s, c->node), 0)) c->gate.streak = 1;
        gates_apply(s, c->node, now);
    }
    if (s->refused_until <= now) s->refused_until = 0;
}

uint64_t gates_next(const scheduler *s) {
    const binheap_item *timer = binheap_peek(&s->timers);
    return timer ? timer->key : UINT64_MAX;
}
