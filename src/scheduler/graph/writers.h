/* writers.h -- place.doc.writer: the nodes whose outputs or envelopes lie in a document.
 *
 * Nearly every document has one writer, whose primary output it is (or holds): then the node's id
 * stands in the document's record. Otherwise (DOC_MULTI_WRITER) there is a list of (node, place),
 * and a table from place to entry, so that a reader of one row in a document of a thousand rows with
 * a writer each meets the writers of its row and of what contains it, and no other. */
#ifndef SCHEDULER_WRITERS_H
#define SCHEDULER_WRITERS_H

#include "scheduler/graph/graph.h"

/* The outputs and envelopes related to a place. Lists must not change meanwhile. */
typedef struct writer_walk {
    const graph *g;
    place_id place;
    const writer *items; /* candidates: tried one by one, or looked up on the way up */
    uint32_t at, count;
    place_id up; /* while climbing: the place looked up now; 0: not climbing */
    table_probe probe;
    writer one;
} writer_walk;

void writers_begin_many(writer_walk *w);
bool writers_climb(writer_walk *w, writer *out);

/* Whether some node writes in the place's document. */
static inline bool writers_any(const graph *g, place_id p) {
    return place_at(g->places, place_at(g->places, p)->root)->doc.writer != 0;
}

static inline void writers_begin(writer_walk *w, const graph *g, place_id p) {
    const place *doc = place_at(g->places, place_at(g->places, p)->root);
    w->g = g;
    w->place = p;
    w->at = w->count = 0;
    w->up = 0;
    if (!doc->doc.writer) return;
    if (doc->doc.flags & DOC_MULTI_WRITER) {
        writers_begin_many(w);
        return;
    }
    w->one = (writer){ doc->doc.writer, graph_node(g, doc->doc.writer)->output };
    w->items = &w->one;
    w->count = 1;
}

static inline bool writers_next(writer_walk *w, writer *out) {
    if (w->up) return writers_climb(w, out);
    while (w->at < w->count) {
        writer candidate = w->items[w->at++];
        if (candidate.place != w->place && !place_related(w->g->places, candidate.place, w->place))
            continue;
        *out = candidate;
        return true;
    }
    return false;
}

/* Enters a writer of a place, and takes it out again. The caller holds the reference to the place. HD_NOMEM: nothing
 * changed. */
hd_status writers_add(graph *g, writer w);
void writers_remove(graph *g, writer w);

/* Gives all lists back; for graph_fini. */
void writers_fini(graph *g);

/* Further outputs and envelopes of a node. */
surface *surface_of(const graph *g, node_id id); /* NULL: it has none */
hd_status surface_add(graph *g, node_id id, uint32_t p);
void surface_remove(graph *g, node_id id, uint32_t p);

#endif
