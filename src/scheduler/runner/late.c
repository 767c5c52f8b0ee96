/* late.c -- runs that wait: for memory, and for documents that arrive later than asked for.
 *
 * A run that reads a document which is not loaded is set aside until the document arrives. Where every
 * document may be late (authority.late), the runner looks before the run: if a document that the node writes
 * is not loaded, or a node upstream of it waits for a document, the run is not begun.
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
    if (c) registry_await(s, c, missing);
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

static bool is_waiting(const scheduler *s, const node *n) {
    assert(!(n->flags & NODE_WAITING) || cold_of(s, n));
    return (n->flags & NODE_WAITING) && cold_of(s, n)->missing;
}

/* A document that a node upstream waits for, also through nodes that are clean; 0: none. They may become
 * invalid when it has arrived, and a run that did not wait would see a mixture. */
static place_id missing_upstream(scheduler *s, node_id id) {
    if (!s->awaiting_count) return 0;
    node_id waits = runner_find_upstream(s, id, is_waiting);
    return waits ? cold_of(s, node_of(s, waits))->missing : 0;
}

bool runner_load_ahead(scheduler *s, node_id id) {
    place_id missing = 0;
    if (ask_for_outputs(s, id, &missing)) {
        runner_postpone(s, id);
        return false;
    }
    if (!missing) missing = missing_upstream(s, id);
    if (missing) runner_wait_for(s, id, missing);
    return !missing;
}
