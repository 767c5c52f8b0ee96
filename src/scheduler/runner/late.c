/* late.c -- runs that wait: for memory, and for documents that arrive later than asked for.
 *
 * A run that reads a document which is not loaded is set aside until the document arrives, and so
 * are the nodes that read what its node writes (upstream.c). Where every document may be late (authority.late),
 * the runner looks before the run: if a document that the node writes is not loaded, the run is not begun.
 *
 *     waiting --> in scheduler.awaiting, by document --> arrived: eligible again (invalidation.c) */
#include "scheduler/runner/runner.h"

void runner_postpone(scheduler *s, node_id id) {
    invalidation_mark(s, id);
    gates_starve(s, id);
    assert(s->starved && !node_is_eligible(&s->graph, node_of(s, id)));
}

void runner_wait_for(scheduler *s, node_id id, place_id missing) {
    assert(!missing || place_at(&s->r->places, missing)->root == missing); /* a document */
    /* It may have arrived meanwhile, if the run was suspended. */
    if (missing && !(place_at(&s->r->places, missing)->doc.flags & DOC_LOADING)) missing = 0;
    cold *c = missing ? registry_cold(s, id) : NULL;
    if (missing && !c) {
        runner_postpone(s, id);
        return;
    }
    if (c) {
        registry_await(s, c, missing);
        s->upstream_epoch++;
    }
    invalidation_mark(s, id);
    if (c) gates_apply(s, id, 0);
    assert(!c || (c->missing == missing && (node_of(s, id)->flags & NODE_WAITING)));
}

/* Asks for the documents that the node writes: without them its result cannot be compared with what is
 * there. */
static hd_status ask_for_outputs(scheduler *s, node_id id, place_id *missing) {
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        if (out & WRITER_ENVELOPE) continue; /* what it will write below is not known */
        place_id doc = place_at(&s->r->places, out)->root;
        hd_status status = replica_load(s->r, doc);
        if (status == HD_NOMEM) return status;
        if (status == HD_PENDING && !*missing) *missing = doc;
    }
    return HD_OK; /* any other failure is met again by the write, which reports it */
}

bool runner_load_ahead(scheduler *s, node_id id) {
    place_id missing = 0;
    if (ask_for_outputs(s, id, &missing)) {
        runner_postpone(s, id);
        return false;
    }
    if (missing) runner_wait_for(s, id, missing);
    return !missing;
}
