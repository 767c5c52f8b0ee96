/* scheduler_inside.c -- the facade's other half: looking inside. */
#include "scheduler/scheduler.h"

#include "scheduler/introspection/export.h"
#include "scheduler/introspection/introspection.h"
#include "scheduler/registry.h"
#include "scheduler/settle/settle.h"
#include "scheduler/introspection/why.h"
#include "value/key.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- nodes */

hd_status hd_node_inspect(const hd_runtime *rt, hd_node handle, hd_node_info *out) {
    const scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    *out = (hd_node_info){ .name = "", .why_not = HD_WHY_NOT_GONE };
    if (!id) return HD_NOT_FOUND;
    introspection_info(s, id, out);
    return HD_OK;
}

void hd_runtime_nodes(const hd_runtime *rt, hd_node_fn fn, void *ctx) {
    const scheduler *s = scheduler_get(rt);
    for (uint32_t pos = 0; s && pos < s->graph.order_count; pos++) {
        node_id id = s->graph.node_at[pos];
        hd_node_info info;
        if (!id) continue;
        introspection_info(s, id, &info);
        if (!fn(&info, ctx)) return;
    }
}

/* The readers of one node, gathered before the callback is called: it may cancel any of them. */
typedef struct dependents {
    const scheduler *s;
    VEC(hd_node) found;
    bool nomem;
} dependents;

static void note_dependent(void *ctx, node_id id) {
    dependents *d = ctx;
    d->nomem = d->nomem || !vec_push(d->s->env, &d->found, registry_handle(d->s, id));
}

static int by_id(const void *a, const void *b) {
    const hd_node *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

hd_status hd_node_dependents(const hd_runtime *rt, hd_node handle, hd_dependent_fn fn, void *ctx) {
    const scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    dependents d = { .s = s };
    if (!id) return HD_NOT_FOUND;
    graph_each_reader(&s->graph, id, note_dependent, &d);
    if (d.found.count) qsort(d.found.items, d.found.count, sizeof(hd_node), by_id);
    for (uint32_t i = 0; i < d.found.count && !d.nomem; i++)
        if (!i || d.found.items[i].id != d.found.items[i - 1].id) fn(d.found.items[i], ctx);
    vec_fini(s->env, &d.found);
    return d.nomem ? HD_NOMEM : HD_OK;
}

void hd_runtime_scheduler_stats(const hd_runtime *rt, hd_scheduler_stats *out) {
    const scheduler *s = scheduler_get(rt);
    *out = (hd_scheduler_stats){ 0 };
    if (!s) return;
    *out = s->stats;
    out->runs = runs_completed(s);
    out->effect_runs = s->runs[1];
    out->effects = s->effects;
    out->unsettled = settle_unsettled(s);
    out->computations = s->computations;
    out->materialisers = s->materialisers;
    out->nodes = (uint64_t)s->effects + s->computations;
    out->repairs = s->graph.repairs;
    out->demand_visits = s->graph.demand_visits;
    out->edge_visits = s->graph.edge_visits;
    for (uint32_t pos = 0; pos < s->graph.order_count; pos++) {
        if (!s->graph.node_at[pos]) continue;
        out->invalid += bit_test(s->graph.invalid, pos);
        out->live += bit_test(s->graph.live, pos);
    }
}

void hd_runtime_filter_stats(const hd_runtime *rt, hd_filter_stats *out) {
    const scheduler *s = scheduler_get(rt);
    *out = (hd_filter_stats){ 0 };
    if (!s) return;
    out->executed = runs_completed(s) - s->filter_base_runs;
    out->filtered = s->stats.filtered - s->filter_base_filtered;
}

void hd_runtime_reset_filter_stats(hd_runtime *rt) {
    scheduler *s = scheduler_get(rt);
    if (!s) return;
    s->filter_base_runs = runs_completed(s);
    s->filter_base_filtered = s->stats.filtered;
}

hd_status hd_runtime_action_stats(const hd_runtime *rt, const char *name, hd_action_stats *out) {
    const scheduler *s = scheduler_get(rt);
    *out = (hd_action_stats){ 0 };
    return s ? introspection_stats(s, name, out) : HD_NOT_FOUND;
}

hd_status hd_runtime_keep_stats(hd_runtime *rt, bool on) {
    scheduler *s = scheduler_of(rt);
    return s ? introspection_keep(s, on) : HD_NOMEM;
}

/* ---- why */

hd_why_not hd_node_why_not(const hd_runtime *rt, hd_node handle, char *out, size_t size) {
    const scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    if (id) why_not_sentence(s, id, out, size);
    else snprintf(out, size, "%s", hd_why_not_text(HD_WHY_NOT_GONE));
    return id ? why_not(s, id) : HD_WHY_NOT_GONE;
}

static const trace *trace_of(const scheduler *s) {
    return s && s->introspection ? &s->introspection->trace : NULL;
}

hd_status hd_node_why(const hd_runtime *rt, hd_node handle, hd_cause_fn fn, void *ctx) {
    const scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    if (!id) return HD_NOT_FOUND;
    why_tell(s, trace_of(s), id, fn, ctx);
    return HD_OK;
}

/* ---- traces */

hd_status hd_trace_enable(hd_runtime *rt, unsigned kinds) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    if (!in) return HD_NOMEM;
    hd_status status = trace_enable(&in->trace, s->env, kinds);
    if (!status) introspection_attach(s);
    return status;
}

unsigned hd_trace_enabled(const hd_runtime *rt) {
    const trace *t = trace_of(scheduler_get(rt));
    return t ? t->kinds : 0;
}

void hd_trace_clear(hd_runtime *rt) {
    scheduler *s = scheduler_get(rt);
    if (s && s->introspection) trace_clear(&s->introspection->trace, s);
}

void hd_trace_triggers(const hd_runtime *rt, hd_trigger_fn fn, void *ctx) {
    const trace *t = trace_of(scheduler_get(rt));
    for (uint32_t i = 0; t && i < ring_count(&t->triggers); i++) {
        const trigger_entry *e = ring_at(&t->triggers, i);
        if (!fn(&e->t, ctx)) return;
    }
}

void hd_trace_runs(const hd_runtime *rt, hd_run_trace_fn fn, void *ctx) {
    const trace *t = trace_of(scheduler_get(rt));
    for (uint32_t i = 0; t && i < ring_count(&t->runs); i++) {
        const run_entry *e = ring_at(&t->runs, i);
        if (!fn(&e->t, ctx)) return;
    }
}

void hd_trace_settles(const hd_runtime *rt, hd_settle_trace_fn fn, void *ctx) {
    const trace *t = trace_of(scheduler_get(rt));
    for (uint32_t i = 0; t && i < ring_count(&t->settles); i++)
        if (!fn(ring_at(&t->settles, i), ctx)) return;
}

/* ---- pictures */

hd_value hd_graph_snapshot(const hd_runtime *rt, hd_pool *pool) {
    const scheduler *s = scheduler_get(rt);
    if (s) return export_snapshot(s, pool);
    hd_value empty = hd_object_set(pool, hd_object(), "nodes", hd_array());
    return hd_object_set(pool, empty, "edges", hd_array());
}

hd_status hd_graph_write_dot(const hd_runtime *rt, hd_text_fn sink, void *ctx) {
    static const char empty[] = "digraph heddle {\n}\n";
    const scheduler *s = scheduler_get(rt);
    if (s) return export_dot(s, sink, ctx);
    return sink(empty, sizeof empty - 1, ctx) ? HD_OK : HD_ABORTED;
}

hd_value hd_trace_chrome(const hd_runtime *rt, hd_pool *pool) {
    const scheduler *s = scheduler_get(rt);
    if (s) return export_chrome(s, pool);
    return hd_object_set(pool, hd_object(), "traceEvents", hd_array());
}

/* ---- stopping at a node */

static uint32_t find_break(const introspection *in, hd_node handle, const struct key *name) {
    for (uint32_t i = 0; i < in->breaks.count; i++) {
        const breakpoint *b = &in->breaks.items[i];
        bool same =
            name ? b->name == name
                 : !b->name && b->node.id == handle.id && b->node.generation == handle.generation;
        if (same) return i;
    }
    return in->breaks.count;
}

/* Sets, replaces or removes. `name` (may be NULL) is taken. */
static hd_status set_break(scheduler *s, introspection *in, breakpoint b) {
    hd_status status = HD_OK;
    uint32_t at = find_break(in, b.node, b.name);
    bool known = at < in->breaks.count;
    if (known) key_unref(in->breaks.items[at].name);
    if (known && b.fn) in->breaks.items[at] = b;
    else if (known) vec_remove(&in->breaks, at);
    else if (b.fn && !vec_push(s->env, &in->breaks, b)) status = HD_NOMEM;
    if (!b.fn || status) key_unref(b.name);
    introspection_attach(s);
    return status;
}

hd_status hd_break_node(hd_runtime *rt, hd_node node_, hd_break_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    if (!in) return HD_NOMEM;
    if (fn && !registry_get(s, node_)) return HD_NOT_FOUND;
    return set_break(s, in, (breakpoint){ node_, NULL, fn, ctx });
}

hd_status hd_break_name(hd_runtime *rt, const char *name, hd_break_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    struct key *k;
    if (!in) return HD_NOMEM;
    hd_status status = key_make(s->r->heap, name, strlen(name), &k);
    return status ? status : set_break(s, in, (breakpoint){ { 0, 0 }, k, fn, ctx });
}

/* ---- recheck */

hd_status hd_recheck_enable(hd_runtime *rt, hd_violation_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    if (!in) return HD_NOMEM;
    in->recheck.fn = fn;
    in->recheck.ctx = ctx;
    introspection_attach(s);
    return HD_OK;
}

hd_status hd_node_recheck(hd_runtime *rt, hd_node handle) {
    scheduler *s = scheduler_get(rt);
    node_id id = s ? registry_get(s, handle) : 0;
    if (!id) return HD_NOT_FOUND;
    if (rt->in_run || rt->open)
        return runtime_fail(rt, HD_USAGE, "not inside a run or transaction");
    if (node_of(s, id)->flags & NODE_EFFECT)
        return runtime_fail(rt, HD_USAGE, "an effect need not be idempotent");
    return recheck_node(s, id);
}

/* ---- telemetry and diagnosis */

hd_status hd_runtime_set_telemetry(hd_runtime *rt, hd_telemetry_fn fn, void *ctx) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    if (!in) return HD_NOMEM;
    s->telemetry_fn = fn;
    s->telemetry_ctx = ctx;
    introspection_attach(s);
    return HD_OK;
}

hd_status hd_diagnosis_start(hd_runtime *rt) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    hd_status status = in ? diagnosis_start(&in->diagnosis, s->env) : HD_NOMEM;
    if (!status) introspection_attach(s);
    return status;
}

void hd_diagnosis_stop(hd_runtime *rt) {
    scheduler *s = scheduler_get(rt);
    if (!s || !s->introspection) return;
    diagnosis_stop(&s->introspection->diagnosis);
    introspection_attach(s);
}

bool hd_diagnosis_is_on(const hd_runtime *rt) {
    const scheduler *s = scheduler_get(rt);
    return s && s->introspection && s->introspection->diagnosis.on;
}

hd_status hd_diagnosis_set_automatic(hd_runtime *rt, bool on) {
    scheduler *s = scheduler_of(rt);
    introspection *in = s ? introspection_of(s) : NULL;
    if (!in) return HD_NOMEM;
    in->diagnosis.automatic = on;
    return HD_OK;
}

void hd_diagnosis_report(const hd_runtime *rt, hd_diagnosis_fn fn, void *ctx) {
    const scheduler *s = scheduler_get(rt);
    if (s && s->introspection) diagnosis_report(&s->introspection->diagnosis, fn, ctx);
}
