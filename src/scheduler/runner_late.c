/* runner_late.c -- runs that wait: for memory, and for documents that arrive later than asked for.
 *
 * A document that a run meets and that is not here sets the run aside, until it arrives. Where all of them
 * may be late (authority.late) more is known beforehand: what a node writes, and that somebody whose result
 * it reads waits himself. Then its run is not even begun.
 *
 *     waiting --> in scheduler.awaiting, by document --> arrived: eligible again (invalidation.c) */
#include "scheduler/runner.h"

void runner_postpone(scheduler *s, node_id id) {
    invalidation_mark(s, id);
    gates_starve(s, id);
}

void runner_wait_for(scheduler *s, node_id id, place_id missing) {
    cold *c = missing ? registry_cold(s, id) : NULL;
    if (missing && !c) {
        runner_postpone(s, id);
        return;
    }
    if (c) registry_await(s, c, missing);
    invalidation_mark(s, id);
    if (c) gates_apply(s, id, 0);
}

/* What it writes has to be here, or its result would have nothing to be compared with, and be lost. */
static hd_status ask_for_outputs(scheduler *s, node_id id, place_id *missing) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        if (out & WRITER_ENVELOPE) continue; /* any document below, or none */
        place_id doc = place_at(&s->r->places, out)->root;
        hd_status status = replica_load(s->r, doc);
        if (status == HD_NOMEM) return status;
        if (status == HD_PENDING && !*missing) *missing = doc;
    }
    return HD_OK; /* another failure is met again by the write, which reports it */
}

typedef struct upstream {
    const scheduler *s;
    place_id missing;
} upstream;

static void note_waiting(void *ctx, node_id id) {
    upstream *u = ctx;
    const node *n = node_of(u->s, id);
    if (n->flags & NODE_WAITING) u->missing = cold_of(u->s, n)->missing;
}

/* A document that a writer of what it reads waits for, or would wait for in turn. */
static place_id missing_upstream(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    upstream u = { s, 0 };
    for (uint32_t i = 0; i < n->read_count && !u.missing; i++)
        graph_each_writer(&s->graph, reads[i].key & KEY_PLACE, note_waiting, &u);
    return u.missing;
}

bool runner_can_begin(scheduler *s, node_id id) {
    place_id missing = 0;
    if (ask_for_outputs(s, id, &missing)) {
        runner_postpone(s, id);
        return false;
    }
    if (!missing) missing = missing_upstream(s, id);
    if (missing) runner_wait_for(s, id, missing);
    return !missing;
}
