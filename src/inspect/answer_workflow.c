/* answer_workflow.c -- what only the engine in memory knows of an instance: which of its steps a worker has, which
 * actions have workers, and what its steps wait for. */
#include "inspect/answer.h"

#include "base/env.h"
#include "workflow/engine.h"

/* {"charge": 2, "mail": 0}: workers by action. */
static hd_value workers_by_action(inspector *in, const hd_engine *e) {
    hd_value all = hd_object();
    for (uint32_t i = 0; i < e->queues.count; i++) {
        const queue *q = e->queues.items[i];
        all = hd_object_set(in->pool, all, q->name, answer_count(in->pool, q->workers.count));
    }
    return all;
}

/* Names of its steps, "strand.step", that a worker has. */
static hd_value running_steps(inspector *in, const live *l) {
    hd_value all = hd_array();
    if (!l->in) return all;
    LIST_FOR (n, &l->in->strands) {
        const strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_RUNNING)
            all =
                hd_array_append(in->pool, all, hd_string_f(in->pool, "%u.%u", s->number, s->step));
    }
    return all;
}

hd_value answer_workflow(inspector *in, const request *r, hd_error *error) {
    const live *l = NULL;
    for (hd_engine *e = in->rt->work.ctx; e && !l; e = e->next) l = live_find(e, r->of);
    if (!l) {
        env_error(error, HD_NOT_FOUND, "the program does not run the instance %.150s", r->of);
        return hd_failed(HD_NOT_FOUND);
    }
    hd_engine *e = l->e;
    hd_value v = hd_object_set(in->pool, hd_object(), "space", answer_text(in->pool, e->space));
    v = hd_object_set(in->pool, v, "workers", workers_by_action(in, e));
    v = hd_object_set(in->pool, v, "running", running_steps(in, l));
    hd_value state;
    hd_status status = hd_workflow_state(e, r->of, in->pool, &state);
    if (status) return hd_failed(status);
    hd_value steps = hd_value_at(state, "steps");
    return hd_value_exists(steps) ? hd_object_set(in->pool, v, "steps", steps) : v;
}
