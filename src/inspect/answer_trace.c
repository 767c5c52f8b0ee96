/* answer_trace.c -- the last runs and passes, and switching their trace. */
#include "inspect/answer.h"

#include "base/env.h"
#include "scheduler/scheduler.h"

typedef struct trace_answer {
    inspector *in;
    hd_builder *list;
} trace_answer;

static hd_value cells(inspector *in, const hd_trace_cells *c) {
    hd_value items = hd_array();
    for (uint32_t i = 0; i < c->count && i < HD_TRACE_CELLS; i++)
        items = hd_array_append(in->pool, items, answer_cell(in, c->cells[i]));
    return items;
}

static bool put_run(const hd_run_trace *t, void *ctx) {
    const trace_answer *w = ctx;
    hd_pool *pool = w->in->pool;
    const char *kind = t->effect ? "effect" : t->materialiser ? "materialiser" : "computation";
    hd_builder *b;
    if (hd_builder_open(pool, HD_KIND_OBJECT, &b)) {
        hd_builder_add(w->list, hd_failed(HD_NOMEM));
        return false;
    }
    hd_builder_put(b, "number", answer_count(pool, t->number));
    hd_builder_put(b, "pass", answer_count(pool, t->pass));
    hd_builder_put(b, "name", introspection_run_name(scheduler_get(w->in->rt), pool, t));
    hd_builder_put(b, "kind", hd_string(pool, kind));
    hd_builder_put(b, "began_ns", answer_count(pool, t->began_ns));
    hd_builder_put(b, "took_ns", answer_count(pool, t->took_ns));
    hd_builder_put(b, "status", hd_string(pool, hd_status_name(t->status)));
    if (t->first) hd_builder_put(b, "first", hd_bool(true));
    if (t->set_aside) hd_builder_put(b, "set_aside", hd_bool(true));
    hd_builder_put(b, "reads", hd_int(pool, t->reads));
    hd_builder_put(b, "causes", cells(w->in, &t->causes));
    hd_builder_put(b, "written", cells(w->in, &t->written));
    hd_builder_put(b, "unchanged", hd_bool(!t->written.count && t->attempted.count));
    hd_builder_add(w->list, hd_builder_close(b));
    return true;
}

static hd_value runs(inspector *in) {
    trace_answer w = { in, NULL };
    if (hd_builder_open(in->pool, HD_KIND_ARRAY, &w.list)) return hd_failed(HD_NOMEM);
    hd_trace_runs(in->rt, put_run, &w);
    return hd_builder_close(w.list);
}

static hd_status switch_trace(inspector *in, ask_switch on, hd_error *error) {
    if (on == SWITCH_LEAVE) return HD_OK;
    hd_status status = hd_trace_enable(in->rt, on == SWITCH_ON ? HD_TRACE_ALL : 0);
    if (status)
        env_error(error, status, "the trace cannot be switched: %s", hd_status_text(status));
    return status;
}

hd_value answer_trace(inspector *in, const request *r, hd_error *error) {
    hd_status status = switch_trace(in, r->on, error);
    if (status) return hd_failed(status);
    hd_value v = hd_object_set(in->pool, hd_object(), "on", hd_bool(hd_trace_enabled(in->rt)));
    v = hd_object_set(in->pool, v, "now_ns", answer_count(in->pool, env_now_ns(&in->rt->env)));
    if (r->as == FORM_CHROME)
        return hd_object_set(in->pool, v, "chrome", hd_trace_chrome(in->rt, in->pool));
    return r->as == FORM_RUNS ? hd_object_set(in->pool, v, "runs", runs(in)) : v;
}
