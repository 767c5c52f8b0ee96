/* scheduler_sink.c -- the facade: sinks, and pulls, which are sinks that look once. */
#include "scheduler/scheduler.h"

#include "base/env.h"
#include "scheduler/registry.h"
#include "value/pool.h"

/* Whether this run of a sink is due to commits of its own change group alone. From its first run on the sink's
 * node is marked by those, too (cold.rereads). */
static bool take_quiet(const hd_tx *tx) {
    scheduler *s = scheduler_get(tx->rt);
    cold *c = cold_of(s, node_of(s, s->running));
    if (!c || !c->group) return false;
    bool quiet = c->quiet;
    c->rereads = true;
    c->quiet = false;
    return quiet;
}

hd_status scheduler_show(hd_tx *tx, confirmed *to, bool only_confirmed) {
    hd_value v = hd_tx_get(tx, to->cell);
    if (value_is_failed(v)) return hd_value_status(v);
    /* The group's own write is not shown; but if an older value still waits to be shown, the write takes its place. */
    if (take_quiet(tx) && !(only_confirmed && list_linked(&to->link))) return HD_OK;
    if (only_confirmed) confirmed_show(scheduler_get(tx->rt), to, v);
    else to->fn(v, to->ctx);
    return HD_OK;
}

/* ---- sinks */

typedef struct sink {
    hd_env env;
    confirmed to;          /* whom it shows the values */
    bool confirmed;        /* only those that are confirmed */
    hd_release_fn release; /* of to.ctx; NULL: none */
} sink;

static void sink_release(void *ctx) {
    sink *k = ctx;
    hd_env env = k->env;
    void *released = k->to.ctx;
    hd_release_fn release = k->release;
    confirmed_fini(&k->to);
    env_free(&env, k, sizeof *k);
    if (release) release(released);
}

static hd_status sink_run(hd_tx *tx, void *ctx) {
    assert(ctx);
    sink *k = ctx;
    return scheduler_show(tx, &k->to, k->confirmed);
}

static hd_status sink_register(hd_runtime *rt, const hd_sink_spec *of, bool once, hd_node *out) {
    *out = (hd_node){ 0, 0 };
    if (!of->cell.id || !of->fn)
        return runtime_fail(rt, HD_USAGE, "%s",
                            of->fn ? "hd_sink: cell is no cell: was its name refused?"
                                   : "hd_sink: fn must not be NULL");
    sink *k = env_new(&rt->env, sizeof *k);
    if (!k) return HD_NOMEM;
    *k = (sink){ .env = rt->env,
                 .to = { .cell = of->cell, .fn = of->fn, .ctx = of->ctx, .edits = of->group != 0 },
                 .confirmed = of->confirmed,
                 .release = of->release };
    hd_node_spec spec = { .name = of->name,
                          .fn = sink_run,
                          .ctx = k,
                          .release = sink_release,
                          .effect = true,
                          .reads = &of->cell,
                          .read_count = 1,
                          .group = of->group,
                          .no_auto_debounce = once };
    hd_status status = hd_node_register(rt, &spec, out);
    if (status) env_free(&rt->env, k, sizeof *k);
    return status;
}

hd_status hd_sink_register(hd_runtime *rt, const hd_sink_spec *spec, hd_node *out) {
    hd_node n;
    hd_status status = sink_register(rt, spec, false, &n);
    if (out) *out = n;
    return status;
}

hd_node hd_sink(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx) {
    hd_node n;
    sink_register(rt, &(hd_sink_spec){ .cell = cell, .fn = fn, .ctx = ctx }, false, &n);
    return n;
}

/* ---- pulls */

static hd_status pull(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx, hd_node *out) {
    scheduler *s = scheduler_of(rt);
    *out = (hd_node){ 0, 0 };
    if (!s || !vec_room(s->env, &s->requested, 1)) return HD_NOMEM;
    hd_sink_spec spec = { .cell = cell, .fn = fn, .ctx = ctx };
    hd_status status = sink_register(rt, &spec, true, out);
    if (status) return status;
    node_of(s, out->id)->flags |= NODE_EPHEMERAL;
    assert(node_of(s, out->id)->flags & NODE_EFFECT);
    s->requested.items[s->requested.count++] = out->id;
    return HD_OK;
}

hd_status hd_pull(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx) {
    hd_node n;
    return pull(rt, cell, fn, ctx, &n);
}

typedef struct pulled {
    hd_pool *pool;
    hd_value value;
    bool done;
} pulled;

/* In a cycle a pull runs once in each sweep of its pass: the last value counts. */
static void keep_pulled(hd_value v, void *ctx) {
    assert(((pulled *)ctx)->pool);
    pulled *p = ctx;
    p->value = hd_value_take(p->pool, value_ref(v));
    p->done = true;
}

hd_value hd_pull_now(hd_runtime *rt, hd_pool *pool, hd_cell cell) {
    pulled p = { pool, value_absent(), false };
    hd_node n;
    hd_status status = pull(rt, cell, keep_pulled, &p, &n);
    if (!status) status = runtime_settle_until(rt, &p.done);
    if (!p.done) hd_node_unregister(rt, n);        /* it must not look later: `p` is gone then */
    if (!status && !p.done) status = HD_UNSETTLED; /* it waits for a parked run */
    return status ? value_failed(status) : p.value;
}
