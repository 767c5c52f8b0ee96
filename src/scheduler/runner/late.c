/* late.c -- runs that wait: for memory, and for documents that arrive later than asked for.
 *
 * A run that reads a document which is not loaded is set aside until the document arrives. Where every
 * document may be late (authority.late), the runner looks before the run: if a document that the node writes
 * is not loaded, or a writer of what it reads waits for a document, the run is not begun.
 *
 *     waiting --> in scheduler.awaiting, by document --> arrived: eligible again (invalidation.c) */
#include "scheduler/runner/runner.h"

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

typedef struct upstream {
    const scheduler *s;
    place_id missing;
} upstream;

static void note_waiting(void *ctx, node_id id) {
    upstream *u = ctx;
    const node *n = node_of(u->s, id);
    if (n->flags & NODE_WAITING) u->missing = cold_of(u->s, n)->missing;
}

/* A document that a writer of what the node reads waits for; 0: none. */
static place_id missing_upstream(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    upstream u = { s, 0 };
    for (uint32_t i = 0; i < n->read_count && !u.missing; i++)
        graph_each_writer(&s->graph, reads[i].key & KEY_PLACE, note_waiting, &u);
    return u.missing;
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
