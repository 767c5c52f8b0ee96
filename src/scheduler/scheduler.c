/* scheduler.c -- the facade: the public functions, over the components. */
#include "scheduler/scheduler.h"

#include "base/env.h"
#include "scheduler/runner/confirmed.h"
#include "scheduler/events/events.h"
#include "scheduler/gates/gates.h"
#include "scheduler/introspection/introspection.h"
#include "scheduler/invalidation.h"
#include "scheduler/origin.h"
#include "scheduler/persistence/lead.h"
#include "scheduler/registry.h"
#include "scheduler/runner/runner.h"
#include "scheduler/runner/surface.h"
#include "scheduler/settle/settle.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

/* ---- life */

static bool nothing_to_do(scheduler *s) {
    return !s->tick && !s->starved && s->suspended == s->parked && !s->work &&
           !settle_find_work(s) && !events_hold_idle(s);
}

static bool is_idle(const void *ctx) {
    scheduler *s = (scheduler *)(uintptr_t)ctx; /* looking for work tidies the summary, no more */
    return nothing_to_do(s) && !settle_holds_idle(s);
}

static void tell_first_idler(scheduler *s) {
    idle_waiter w = s->idlers.items[0];
    vec_remove(&s->idlers, 0);
    w.fn(w.ctx);
}

/* Calls the functions that wait for idle now. One that is added meanwhile is called the next time; and if
 * one makes work, the others wait until that is done. */
static void tell_idle(scheduler *s) {
    settle_end_episode(s);
    uint32_t n = s->idlers.count;
    for (bool idle = true; n && idle && s->idlers.count; n--, idle = nothing_to_do(s))
        tell_first_idler(s);
}

/* The next time at which something may run; UINT64_MAX: none. */
static uint64_t next_time(const scheduler *s) {
    uint64_t of_nodes = gates_next(s), of_events = events_next(s);
    return of_nodes < of_events ? of_nodes : of_events;
}

static bool has_unsettled_nodes(const void *ctx) { return settle_unsettled(ctx) > 0; }
/* Whether sync has to go on. A tick counts: a verdict may just have invalidated a node. */
static bool is_unsettled(const void *ctx) {
    const scheduler *s = ctx;
    return (s->tick && !s->r->ahead.count) || events_are_unsettled(s) || settle_holds_sync(s) ||
           confirmed_is_due(s, is_idle(s));
}
static bool is_due(const void *ctx) { return persistence_is_ready(ctx); }
static void closing(void *ctx) {
    persistence_stop_leading(ctx);
    events_close(ctx);
    persistence_closing(ctx);
}

/* Nothing is waited for: no gate, no event, no suspended run, no memory, no work of hd_work_begin. */
static inline bool is_quiet(const scheduler *s) {
    uint32_t waits =
        s->suspended | s->work | s->idlers.count | binheap_count(&s->timers) | s->starved;
    return !waits && list_empty(&s->unconfirmed) && !(s->events && events_hold_idle(s));
}

/* No node can run, and nothing is waited for. */
static inline bool is_at_rest(const scheduler *s) {
    return !s->tick && !s->waiting.count && !s->graph.top && is_quiet(s);
}

/* While the replica holds a document in a later state than the rest (replica.ahead), no node runs: the store
 * delivers the rest with the next poll, and wakes the runtime for it. */
static hd_status pump(void *ctx) {
    scheduler *s = ctx;
    bool behind = s->r->ahead.count;
    assert(!s->running && !s->iteration && !s->concluding);
    s->slice_end = 0;
    s->must_wait = false;
    if (is_at_rest(s) && !s->persistence && !s->events) { /* as most pumps find it */
        settle_end_episode(s);
        return HD_OK;
    }
    if (s->starved) {
        gates_feed(s);
        events_feed(s);
    }
    if (s->persistence) persistence_pump(s);
    if (s->unsaid.count) origin_pump(s);
    if (!s->tick && next_time(s) != UINT64_MAX) s->tick = next_time(s) <= env_now_ns(s->env);
    while (s->tick && !s->r->ahead.count && !s->must_wait) {
        settle_pass(s);
        if (s->slice_end && s->tick && s->clock_ns >= s->slice_end) break;
        if (events_take_burst(s)) break;
    }
    introspection_check(s);
    if (is_idle(s)) tell_idle(s);
    if (!list_empty(&s->unconfirmed)) confirmed_tell(s, is_idle(s));
    if (s->starved) return HD_NOMEM;
    return s->tick && !behind ? HD_PENDING : HD_OK;
}

/* The pump of hd_runtime_settle for a runtime in which nothing is waited for. True: nothing is left to do. */
static bool settle_alone(void *ctx) {
    scheduler *s = ctx;
    if (!is_quiet(s) || (s->persistence && s->persistence->unasked.count)) return false;
    assert(!s->running && !s->iteration);
    s->slice_end = 0;
    for (int i = 0; s->tick && !s->must_wait && i < ITERATIONS_MAX; i++) settle_pass(s);
    if (!is_at_rest(s) || s->must_wait) return false;
    settle_end_episode(s);
    return true;
}

static uint64_t deadline(const void *ctx) {
    const scheduler *s = ctx;
    if ((s->tick && !s->r->ahead.count) || s->starved) return 0;
    if (!list_empty(&s->unconfirmed) && confirmed_is_due(s, is_idle(s))) return 0;
    uint64_t next = next_time(s), kept = UINT64_MAX;
    if (next == UINT64_MAX || s->leads) kept = persistence_next(s);
    return kept < next ? kept : next;
}

static void scheduler_close(void *ctx) {
    scheduler *s = ctx;
    const hd_env *env = s->env;
    for (uint32_t n = s->idlers.count; n && s->idlers.count; n--) tell_first_idler(s);
    persistence_last(s);
    events_fini(s);
    runner_fini(s);
    persistence_fini(s);
    registry_fini(s);
    settle_fini(s);
    introspection_fini(s);
    gates_fini(s);
    invalidation_fini(s);
    vec_fini(env, &s->unsaid);
    vec_fini(env, &s->idlers);
    vec_fini(env, &s->error_handlers);
    replica_forget_observer(s->r);
    s->rt->hooks = (runtime_hooks){ 0 };
    env_free(env, s, sizeof *s);
}

static hd_status spare(const void *ctx, const struct key *space) {
    return scheduler_spare(ctx, space);
}

static uint64_t body_on_stack(const void *ctx) {
    return runner_body(ctx, ((const scheduler *)ctx)->running);
}

scheduler *scheduler_get(const hd_runtime *rt) { return rt->hooks.ctx; }

scheduler *scheduler_of(hd_runtime *rt) {
    if (rt->hooks.ctx) return rt->hooks.ctx;
    scheduler *s = env_new0(&rt->env, sizeof *s);
    if (!s) return NULL;
    s->rt = rt;
    s->r = &rt->r;
    s->env = &rt->env;
    binheap_init(&s->timers, s->env);
    list_init(&s->suspensions);
    list_init(&s->resumed);
    list_init(&s->unconfirmed);
    rt->hooks = (runtime_hooks){ .ctx = s,
                                 .pump = pump,
                                 .deadline = deadline,
                                 .settle_alone = settle_alone,
                                 .idle = is_idle,
                                 .unsettled = is_unsettled,
                                 .due = is_due,
                                 .spare = spare,
                                 .body = body_on_stack,
                                 .closing = closing,
                                 .close = scheduler_close };
    rt->hooks.left_unsettled = has_unsettled_nodes;
    s->unsettled_episode = 1;
    hd_status status = registry_init(s);
    assert(rt->hooks.ctx == s);
    if (!status) status = runner_init(s);
    if (!status) status = persistence_init(s);
    if (status) {
        scheduler_close(s);
        return NULL;
    }
    invalidation_attach(s);
    return s;
}

/* ---- registering */

/* A computation that a live run creates is demanded by that (5.3); effects and materialisers
 * always are. */
static hd_status grant_first_demand(scheduler *s, node_id id, const hd_node_spec *spec) {
    assert(!node_of(s, id)->live_refs || (node_of(s, id)->flags & NODE_NEVER_RAN) ||
           (node_of(s, id)->flags & NODE_RESUMED));
    node *n = node_of(s, id);
    if (n->flags & (NODE_EFFECT | NODE_MATERIALISER)) {
        graph_demand(&s->graph, id);
        /* One that was resumed as clean has nothing to wait for. */
        if ((n->flags & NODE_MATERIALISER) && node_is_invalid(&s->graph, n))
            invalidation_mark_special(s, id, false);
    } else if (s->running && node_is_live(&s->graph, node_of(s, s->running))) {
        if (!vec_push(s->env, &s->provisional, id)) return HD_NOMEM;
        n->flags |= NODE_PROVISIONAL;
        graph_demand(&s->graph, id);
    } else if (spec->run_once) {
        if (!vec_push(s->env, &s->requested, id)) return HD_NOMEM;
        n->flags |= NODE_DEMANDED;
        graph_demand(&s->graph, id);
    }
    return HD_OK;
}

/* A body that is run again for comparison finds the nodes that it registered when it ran. */
static hd_status find_rechecked(const scheduler *s, const hd_node_spec *spec, hd_node *out) {
    assert(s->rechecking && s->running);
    node_id parent = registry_get(s, spec->parent), id = registry_get(s, spec->again);
    if (!id && spec->name)
        id = registry_find(s, parent ? parent : s->running, spec->name, strlen(spec->name));
    *out = registry_handle(s, id);
    if (!id) return HD_ABORTED;
    bool another = !spec->again.id && spec->ctx != node_of(s, id)->ctx;
    if (another && spec->release) spec->release(spec->ctx); /* taken over, and not needed */
    return HD_OK;
}

hd_status hd_node_register(hd_runtime *rt, const hd_node_spec *spec, hd_node *out) {
    scheduler *s = scheduler_of(rt);
    node_id id;
    hd_node unwanted;
    if (!out) out = &unwanted;
    *out = (hd_node){ 0, 0 };
    if (!s) return HD_NOMEM;
    if (s->rechecking) return find_rechecked(s, spec, out);
    if (s->running) s->tx->flags |= TX_BUSY; /* the order is put right before another node runs */
    hd_status status = registry_register(s, spec, &id);
    if (status) return status;
    assert(id && !(node_of(s, id)->flags & NODE_REMOVED));
    s->upstream_epoch++;
    if (!spec->again.id) {
        if (s->persistence) status = persistence_registered(s, id, spec);
        if (!status) status = surface_check_rivals(s, id);
        if (!status) status = grant_first_demand(s, id, spec);
        if (!status && s->holds.count) status = gates_stage(s, id);
        if (status) {
            cold *c = cold_of(s, node_of(s, id));
            if (c) c->release = NULL;
            registry_remove(s, id);
            return status;
        }
        gates_registered(s, id);
    }
    s->tick = true;
    *out = registry_handle(s, id);
    return HD_OK;
}

void hd_node_unregister(hd_runtime *rt, hd_node handle) {
    scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    if (!id || s->rechecking) return;
    if (id == s->running || id == s->concluding) {
        assert(!(node_of(s, id)->flags & NODE_REMOVED));
        s->cancelled = true;
        s->tx->flags |= TX_BUSY;
        return;
    }
    registry_remove(s, id);
    if (s->running) s->tx->flags |= TX_BUSY; /* as in hd_node_register */
    if (!s->iteration && !s->running) graph_settle(&s->graph);
    s->tick = true;
}

hd_status hd_node_promote(hd_runtime *rt, hd_node handle) {
    scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    if (!id) return HD_NOT_FOUND;
    registry_promote(s, id);
    gates_apply(s, id, env_now_ns(s->env));
    s->tick = true;
    return HD_OK;
}

hd_status hd_node_request(hd_runtime *rt, hd_node handle) {
    scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    if (!id) return HD_NOT_FOUND;
    node *n = node_of(s, id);
    if ((n->flags & NODE_DEMANDED) || !node_is_invalid(&s->graph, n)) return HD_OK;
    if (!vec_push(s->env, &s->requested, id)) return HD_NOMEM;
    n->flags |= NODE_DEMANDED;
    graph_demand(&s->graph, id);
    s->tick = true;
    return HD_OK;
}

bool hd_node_exists(const hd_runtime *rt, hd_node handle) {
    const scheduler *s = scheduler_get(rt);
    return s && registry_get(s, handle);
}

hd_node hd_node_find(const hd_runtime *rt, const char *name) {
    const scheduler *s = scheduler_get(rt);
    return s ? registry_handle(s, introspection_find(s, name)) : (hd_node){ 0, 0 };
}

hd_node hd_compute(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx, hd_cell output) {
    hd_node n;
    hd_node_spec spec = { .name = name, .fn = fn, .ctx = ctx, .output = output };
    if (!output.id) {
        runtime_fail(rt, HD_USAGE, "computation \"%s\": the output is no cell", name ? name : "");
        return (hd_node){ 0, 0 };
    }
    hd_node_register(rt, &spec, &n);
    return n;
}

/* The quick way for an effect without a name: it has no row in the store, no parent and no gates. Programs
 * may register many thousands. */
static hd_node effect_alone(scheduler *s, hd_action_fn fn, void *ctx) {
    assert(!s->persistence && !s->running && fn);
    node_id id;
    if (registry_add_effect(s, fn, ctx, &id)) return (hd_node){ 0, 0 };
    s->tick = true;
    return registry_handle(s, id);
}

hd_node hd_effect(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx) {
    scheduler *s = scheduler_get(rt);
    if (s && fn && !name && !s->running && !s->persistence && !s->rechecking && !s->holds.count)
        return effect_alone(s, fn, ctx);
    hd_node n;
    hd_node_spec spec = { .name = name, .fn = fn, .ctx = ctx, .effect = true };
    hd_node_register(rt, &spec, &n);
    return n;
}

/* ---- async runs */

hd_status hd_tx_suspend(hd_tx *tx, hd_run **out) {
    *out = NULL;
    scheduler *s = scheduler_get(tx->rt);
    return s ? runner_suspend(s, tx, out) : HD_USAGE;
}
hd_tx *hd_run_tx(hd_run *run) { return run->tx; }
void hd_run_resume(hd_run *run, hd_status status) { runner_resume(run, status); }
void hd_run_park(hd_run *run) { runner_park(run); }

hd_status hd_runtime_park(hd_runtime *rt) {
    scheduler *s = scheduler_get(rt);
    return s ? runner_park_running(s) : HD_USAGE;
}

void hd_runtime_unpark(hd_runtime *rt) {
    scheduler *s = scheduler_get(rt);
    if (s && s->parked) runner_unpark(s);
}

/* ---- pieces of the store */

hd_status hd_store_stale_pieces(hd_runtime *rt, hd_stale_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    if (!s) return HD_NOMEM;
    if (!s->persistence)
        return runtime_fail(rt, HD_USAGE,
                            "a store that ends with its runtime has no pieces that wait");
    rt->listing++; /* the callback must not end the snapshot from which the listing goes on */
    hd_status status = stale_tell(s, fn, ctx);
    rt->listing--;
    runtime_rest(rt);
    return status;
}

/* ---- gates */

static hd_status set_gate(hd_runtime *rt, hd_node handle, uint32_t ms,
                          hd_status (*set)(scheduler *, node_id, uint32_t), uint16_t which) {
    scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    hd_status status = id ? set(s, id, ms) : HD_NOT_FOUND;
    if (!status) persistence_gated(s, id, which);
    return status;
}

hd_status hd_node_set_debounce(hd_runtime *rt, hd_node node_, uint32_t ms) {
    return set_gate(rt, node_, ms, gates_set_debounce, KEPT_DEBOUNCE);
}
hd_status hd_node_set_throttle(hd_runtime *rt, hd_node node_, uint32_t ms) {
    return set_gate(rt, node_, ms, gates_set_throttle, KEPT_THROTTLE);
}

hd_status hd_hold_begin(hd_runtime *rt, const char *name, uint32_t ms, hd_hold *out) {
    scheduler *s = scheduler_of(rt);
    *out = (hd_hold){ 0 };
    return s ? gates_begin_hold(s, name, ms, &out->id) : HD_NOMEM;
}
void hd_hold_end(hd_runtime *rt, hd_hold hold_) {
    scheduler *s = scheduler_get(rt);
    if (s && hold_.id) gates_end_hold(s, hold_.id);
}

static const cold *cold_behind(const hd_runtime *rt, hd_node handle) {
    const scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    return id ? cold_of(s, node_of(s, id)) : NULL;
}

hd_status hd_node_set_auto_debounce(hd_runtime *rt, hd_node handle, bool on) {
    scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    cold *c = id ? registry_cold(s, id) : NULL;
    if (!c) return id ? HD_NOMEM : HD_NOT_FOUND;
    c->gate.no_auto = !on;
    return HD_OK;
}

uint32_t hd_node_debounce(const hd_runtime *rt, hd_node handle) {
    const cold *c = cold_behind(rt, handle);
    return c ? c->gate.debounce_ms : 0;
}
uint32_t hd_node_throttle(const hd_runtime *rt, hd_node handle) {
    const cold *c = cold_behind(rt, handle);
    return c ? c->gate.throttle_ms : 0;
}

/* ---- idle */

hd_status hd_runtime_on_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx) {
    if (!fn) return runtime_fail(rt, HD_USAGE, "hd_runtime_on_idle: no function is given");
    scheduler *s = scheduler_of(rt);
    return s && vec_push(s->env, &s->idlers, ((idle_waiter){ fn, ctx })) ? HD_OK : HD_NOMEM;
}

void hd_runtime_off_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx) {
    scheduler *s = scheduler_get(rt);
    for (uint32_t i = 0; s && i < s->idlers.count; i++) {
        if (s->idlers.items[i].fn != fn || s->idlers.items[i].ctx != ctx) continue;
        vec_remove(&s->idlers, i);
        return;
    }
}

bool hd_runtime_is_idle(const hd_runtime *rt) {
    return !rt->hooks.idle || rt->hooks.idle(rt->hooks.ctx);
}

hd_status hd_work_begin(hd_runtime *rt) {
    scheduler *s = scheduler_of(rt);
    if (!s) return HD_NOMEM;
    s->work++;
    return HD_OK;
}

void hd_work_end(hd_runtime *rt, hd_status status) {
    scheduler *s = scheduler_get(rt);
    if (!s || !s->work) return;
    s->work--;
    if (status) env_log(s->env, HD_LOG_WARN, "background work failed: %s", hd_status_text(status));
}

/* ---- errors and log lines */

hd_status hd_runtime_on_error(hd_runtime *rt, hd_error_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    return s && vec_push(s->env, &s->error_handlers, ((error_handler){ fn, ctx })) ? HD_OK
                                                                                   : HD_NOMEM;
}

void hd_runtime_off_error(hd_runtime *rt, hd_error_fn fn, void *ctx) {
    scheduler *s = scheduler_get(rt);
    for (uint32_t i = 0; s && i < s->error_handlers.count; i++) {
        if (s->error_handlers.items[i].fn != fn || s->error_handlers.items[i].ctx != ctx) continue;
        vec_remove(&s->error_handlers, i);
        if (i < s->telling) s->telling--; /* one of those that were called already */
        return;
    }
}

/* What does not fit ends in "...". */
HD_PRINTF(2, 0)
static void keep_message(scheduler *s, const char *format, va_list arguments) {
    int length = vsnprintf(s->message, sizeof s->message, format, arguments);
    if (length >= (int)sizeof s->message) env_end_cut(s->message, sizeof s->message);
}

hd_status hd_tx_fail(hd_tx *tx, hd_status status, const char *format, ...) {
    scheduler *s = scheduler_get(tx->rt);
    va_list arguments;
    va_start(arguments, format);
    /* Only the text of a run or handling that will be reported is kept: any other would be taken for the
     * text of a later failure. */
    if (s && (tx->flags & TX_RUN) && !s->rechecking) keep_message(s, format, arguments);
    va_end(arguments);
    tx->flags |=
        TX_BUSY; /* the run takes the long way, which clears the text also if it succeeds */
    return status;
}

hd_status hd_runtime_set_log(hd_runtime *rt, hd_log_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    if (!s) return HD_NOMEM;
    s->log_fn = fn;
    s->log_ctx = ctx;
    return HD_OK;
}

/* The node whose run a transaction belongs to: the one on the stack, or a suspended one. 0: none. */
static node_id runs_in(const scheduler *s, const hd_tx *tx) {
    assert(tx->rt == s->rt);
    if (!(tx->flags & TX_RUN)) return 0;
    if (tx == s->tx || s->rechecking) return s->running;
    const hd_run *run = tx->flags & TX_EPOCH ? tx->owner : NULL;
    return run ? registry_get(s, (hd_node){ run->node, run->generation }) : 0;
}

/* In the first run of an effect no reads are registered yet: the first one of this run counts. */
static const char *space_of_run(const scheduler *s, node_id id, const hd_tx *tx) {
    const char *space = node_space(s, id);
    if (!id || *space || !tx->reads.count) return space;
    const place *doc = place_doc(&s->r->places, tx->reads.items[0] & KEY_PLACE);
    return key_bytes(s->r->places.homes.items[doc->doc.home].space);
}

static void log_line(hd_tx *tx, hd_log_level level, const char *line) {
    scheduler *s = scheduler_get(tx->rt);
    node_id id = s ? runs_in(s, tx) : 0;
    const char *pattern = "", *piece = s ? piece_of(s, id, &pattern) : "main";
    hd_log_entry entry = { .level = level,
                           .line = line,
                           .action = s ? node_label(s, id) : "",
                           .piece = piece,
                           .space = s ? space_of_run(s, id, tx) : "",
                           .pattern = pattern };
    if (s && s->rechecking) return;
    if (s) events_sign(s, tx, &entry);
    if (s && s->log_fn && !s->log_fn(&entry, s->log_ctx)) return;
    env_log_line(&tx->rt->env, entry.level, entry.line);
}

/* As long as it comes; without memory for that it ends in "...". */
void hd_tx_log(hd_tx *tx, hd_log_level level, const char *format, ...) {
    const hd_env *env = &tx->rt->env;
    char few[512], *line = few;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(few, sizeof few, format, arguments);
    size_t size = length < 0 ? 0 : (size_t)length + 1;
    if (size > sizeof few && (line = env_new(env, size))) vsnprintf(line, size, format, again);
    if (!line) env_end_cut(few, sizeof few);
    va_end(again);
    va_end(arguments);
    log_line(tx, level, length < 0 ? "(unprintable)" : line ? line : few);
    if (line && line != few) env_free(env, line, size);
}

/* ---- a run about itself */

hd_node hd_tx_node(const hd_tx *tx) {
    const scheduler *s = scheduler_get(tx->rt);
    return s ? registry_handle(s, runs_in(s, tx)) : (hd_node){ 0, 0 };
}

size_t hd_tx_causes(hd_tx *tx, hd_cell *out, size_t max) {
    scheduler *s = scheduler_get(tx->rt);
    node_id id = s ? runs_in(s, tx) : 0;
    const place_vec *found = &tx->causes;
    if (!id) return 0;
    if (!(tx->flags & TX_CAUSES)) {
        /* A body that recheck.c runs again has the causes of the run that it is compared with. */
        hd_status status = (s->rechecking ? causes_of_last : causes_of_next)(s, id, &s->told);
        if (status) tx_fail(tx, status);
        found = &s->told;
    }
    for (size_t i = 0; i < found->count && i < max; i++) out[i] = (hd_cell){ found->items[i] };
    return found->count;
}
