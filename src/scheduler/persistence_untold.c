/* persistence_untold.c -- changes of which the store does not know what they were.
 *
 * A restart takes a row for stale if what it read has been touched, and what a commit touched is its
 * author's account. Where somebody else came in between, or too much changed at once, there is none
 * that holds, and every reader of the document looks stale. This runtime knows better: it has compared
 * the values, and who is clean has nothing to do. So once things are quiet the rows of those that are
 * clean are proved anew. Until then, and for readers that are not here, a run too many is all that is
 * lost. */
#include "scheduler/persistence.h"

#include "base/env.h"

void untold_add(void *ctx, place_id doc) {
    scheduler *s = ctx;
    persistence *p = s->persistence;
    place *at = place_at(&s->r->places, doc);
    if (!p->wanted || (at->doc.flags & (DOC_UNTOLD | DOC_VOLATILE))) return;
    if (!vec_push(s->env, &p->untold, doc)) return;
    at->doc.flags |= DOC_UNTOLD;
    place_ref(&s->r->places, doc);
    persistence_soon(s);
}

static void prove_anew(void *ctx, node_id id) {
    scheduler *s = ctx;
    if (id < s->persistence->nodes.count && (kept_of(s, id)->flags & KEPT_ROW))
        persistence_due(s, id);
}

static void forget(scheduler *s, place_id doc) {
    place_at(&s->r->places, doc)->doc.flags &= (uint16_t)~DOC_UNTOLD;
    place_unref(&s->r->places, doc);
}

void untold_prove(scheduler *s) {
    persistence *p = s->persistence;
    while (p->untold.count) {
        place_id doc = vec_pop(&p->untold);
        graph_each_reader_of(&s->graph, doc, prove_anew, s);
        forget(s, doc);
    }
}

void untold_fini(scheduler *s) {
    persistence *p = s->persistence;
    while (p->untold.count) forget(s, vec_pop(&p->untold));
    vec_fini(s->env, &p->untold);
}
