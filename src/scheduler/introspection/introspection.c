/* introspection.c -- the hooks, names of nodes, and what a node is doing. */
#include "scheduler/introspection/introspection.h"

#include "base/env.h"
#include "scheduler/gates/gates.h"
#include "scheduler/registry.h"
#include "scheduler/introspection/why.h"
#include "value/key.h"
#include <assert.h>
#include <string.h>

/* ---- hooks */

static void on_change(scheduler *s, place_id at, hd_value before, hd_value after) {
    assert(s->introspection && at);
    trace_change(&s->introspection->trace, at, before, after);
}

static void on_trigger(scheduler *s, node_id id, trigger_decision decision) {
    assert(s->introspection && id);
    trace_trigger(&s->introspection->trace, s, id, decision);
}

static bool stops_at(const scheduler *s, const breakpoint *b, hd_node handle) {
    assert(b->fn && handle.id);
    if (b->name) return introspection_find(s, key_bytes(b->name)) == handle.id;
    return b->node.id == handle.id && b->node.generation == handle.generation;
}

static bool is_same_break(const breakpoint *a, const breakpoint *b) {
    return a->name == b->name && a->node.id == b->node.id &&
           a->node.generation == b->node.generation;
}

static void on_run_begin(scheduler *s, node_id id) {
    introspection *in = s->introspection;
    hd_node handle = registry_handle(s, id);
    assert(in && !(node_of(s, id)->flags & NODE_REMOVED));
    for (uint32_t i = 0; i < in->breaks.count;) {
        breakpoint b = in->breaks.items[i];
        if (stops_at(s, &b, handle)) b.fn(handle, b.ctx);
        /* It may have removed itself, or others: then the next one stands here. */
        if (i < in->breaks.count && is_same_break(&in->breaks.items[i], &b)) i++;
    }
    trace_run_begin(&in->trace, s, id);
}

static void on_run_body(scheduler *s, node_id id, const hd_tx *tx, hd_status status) {
    assert(s->introspection && id);
    trace_run_body(&s->introspection->trace, s);
    diagnosis_run_body(&s->introspection->diagnosis, s, id, tx, status);
}

static void on_run_end(scheduler *s, node_id id, hd_tx *tx, hd_status status) {
    introspection *in = s->introspection;
    assert(in && id && tx);
    trace_run_end(&in->trace, s, id, tx, status);
    diagnosis_run_end(&in->diagnosis, s, id, status);
    recheck_run(&in->recheck, s, id, tx, status);
}

static void on_pass_begin(scheduler *s) {
    assert(s->introspection && !s->running);
    trace_pass_begin(&s->introspection->trace, s);
    diagnosis_pass_begin(&s->introspection->diagnosis, s);
}

static void on_pass_end(scheduler *s) {
    introspection *in = s->introspection;
    assert(in && !s->running);
    trace_pass_end(&in->trace, s);
    bool was_told = in->diagnosis.told;
    bool busy = diagnosis_pass_end(&in->diagnosis, s);
    if (!in->diagnosis.automatic || was_told == in->diagnosis.told) return;
    if (busy) diagnosis_start(&in->diagnosis, s->env); /* without memory there is none */
    else diagnosis_stop(&in->diagnosis);
    introspection_attach(s);
}

void introspection_attach(scheduler *s) {
    assert(s->introspection);
    static const tracer hooks = { on_change, on_trigger, on_run_begin, on_run_body, on_run_end };
    static const pass_tracer pass_hooks = { on_pass_begin, on_pass_end };
    const introspection *in = s->introspection;
    bool runs = (in->trace.kinds & (HD_TRACE_TRIGGERS | HD_TRACE_RUNS)) || in->recheck.fn ||
                in->diagnosis.on || in->breaks.count;
    bool passes = (in->trace.kinds & HD_TRACE_SETTLES) || s->telemetry_fn;
    s->tracer = runs ? &hooks : NULL;
    s->until_clock = 1; /* the next run takes the long way, and finds the tracer */
    s->pass_tracer = passes ? &pass_hooks : NULL;
}

/* ---- life */

introspection *introspection_of(scheduler *s) {
    if (s->introspection) return s->introspection;
    introspection *in = env_new0(s->env, sizeof *in);
    if (!in) return NULL;
    table_init(&in->kept_names, s->env);
    binheap_init(&in->kept_order, s->env);
    return s->introspection = in;
}

void introspection_fini(scheduler *s) {
    introspection *in = s->introspection;
    if (!in) return;
    s->tracer = NULL;
    s->pass_tracer = NULL;
    s->removed = NULL;
    trace_fini(&in->trace, s);
    recheck_fini(&in->recheck, s->env);
    diagnosis_fini(&in->diagnosis, s->env);
    for (uint32_t i = 0; i < in->breaks.count; i++) key_unref(in->breaks.items[i].name);
    vec_fini(s->env, &in->breaks);
    introspection_kept_fini(s, in);
    env_free(s->env, in, sizeof *in);
    s->introspection = NULL;
}

/* ---- names */

/* With a NUL, or a slash, behind each part. */
static size_t name_size(const scheduler *s, node_id id) {
    assert(id);
    size_t size = 0;
    for (node_id up = id; up; up = graph_parent(&s->graph, up))
        size += strlen(node_label(s, up)) + 1;
    return size;
}

/* Written from the end: parents are met last. */
char *introspection_name(const scheduler *s, node_id id, size_t *size) {
    size_t at = *size = name_size(s, id);
    char *text = env_new(s->env, *size);
    for (node_id up = id; text && up; up = graph_parent(&s->graph, up)) {
        const char *name = node_label(s, up);
        size_t length = strlen(name);
        text[--at] = up == id ? '\0' : '/';
        at -= length;
        memcpy(text + at, name, length);
    }
    assert(!text || at == 0);
    return text;
}

hd_value introspection_text(const scheduler *s, hd_pool *pool, node_id id) {
    size_t size;
    char *name = introspection_name(s, id, &size);
    if (!name) return hd_failed(HD_NOMEM);
    hd_value v = hd_string_n(pool, name, size - 1);
    env_free(s->env, name, size);
    return v;
}

hd_value introspection_run_name(const scheduler *s, hd_pool *pool, const hd_run_trace *run) {
    if (!*run->action) return hd_string_f(pool, "#%u", run->node.id);
    return registry_get(s, run->node) ? introspection_text(s, pool, run->node.id)
                                      : hd_string(pool, run->action);
}

/* The first slash from here on, or the end. */
static size_t part_end(const char *name, size_t from) { return from + strcspn(name + from, "/"); }

/* A name may have slashes of its own, so a part is tried with each end that it may have, the nearest
 * first; where none leads on, the one above was not meant to end there. Each node is met once, by way
 * of its parent. */
node_id introspection_find(const scheduler *s, const char *name) {
    node_id at = 0;
    size_t from = 0, end = part_end(name, 0);
    for (;;) {
        node_id found = registry_find(s, at, name + from, end - from);
        if (found && !name[end]) return found;
        if (found) {
            at = found;
            from = end + 1;
            end = part_end(name, from);
            continue;
        }
        while (!name[end]) { /* back to the one above */
            if (!at) return 0;
            assert(from && node_own_name(s, at)->length < from); /* it was found by this part */
            end = from - 1;
            from = end - node_own_name(s, at)->length;
            at = graph_parent(&s->graph, at);
        }
        end = part_end(name, end + 1);
    }
}

/* ---- a node */

static uint32_t count_children(const scheduler *s, node_id id) {
    uint32_t n = 0;
    for (node_id c = graph_first_child(&s->graph, id); c; c = graph_next_child(&s->graph, c)) n++;
    return n;
}

static hd_node_status status_of(const scheduler *s, const node *n) {
    assert(!(n->flags & NODE_REMOVED));
    if (n->flags & NODE_NEVER_RAN) return HD_NODE_NEVER_RAN;
    return node_is_invalid(&s->graph, n) ? HD_NODE_INVALID : HD_NODE_CLEAN;
}

void introspection_info(const scheduler *s, node_id id, hd_node_info *out) {
    const node *n = node_of(s, id);
    const node_side *side = &s->sides[id];
    const cold *c = cold_of(s, n);
    node_id live_reader;
    assert(!c || c->node == id);
    *out = (hd_node_info){
        .node = registry_handle(s, id),
        .name = node_label(s, id),
        .effect = n->flags & NODE_EFFECT,
        .materialiser = n->flags & NODE_MATERIALISER,
        .live = node_is_live(&s->graph, n),
        .provisional = n->flags & NODE_PROVISIONAL,
        .suspended = n->flags & NODE_SUSPENDED,
        .status = status_of(s, n),
        .parent = registry_handle(s, graph_parent(&s->graph, id)),
        .output = { n->output },
        .children = count_children(s, id),
        .reads = n->read_count,
        .live_refs = n->live_refs,
        .runs = node_runs(s, n),
        .timed_runs = side->timed_runs,
        .total_ns = side->total_ns,
        .failures = c ? c->failures : 0,
        .eligible_at_ns = gates_eligible_at(s, n),
        .why_not = why_not(s, id),
        .waits_for = registry_handle(s, why_awaits(s, id)),
        .why_live = why_live(s, id, &live_reader),
    };
    assert((out->why_live == HD_LIVE_NOT) == !out->live);
    out->live_reader = registry_handle(s, live_reader);
}
