/* preflight_walk.h -- two walks that look for invalid nodes upstream of what is about to be read.
 *
 * Both go a step at a time, so that they can take turns; see preflight.h. The graph must not change
 * while they go. */
#ifndef SCHEDULER_PREFLIGHT_WALK_H
#define SCHEDULER_PREFLIGHT_WALK_H

#include "scheduler/graph/readers.h"
#include "scheduler/graph/writers.h"

typedef VEC(node_id) node_vec;

/* Up: from the closure, through writers that are clean, to those that are not. */
typedef struct walk_up {
    node_vec nodes;  /* clean ones that were met: their reads lead on */
    node_vec direct; /* writers of the closure itself */
    node_vec found;  /* invalid ones */
    table seen;
    uint32_t key;        /* the next place of the closure */
    uint32_t node, read; /* the next read of the next node */
    writer_walk writers;
    bool open; /* `writers` has more */
    bool from_closure;
} walk_up;

/* Down: from the invalid nodes, through readers that are clean, to the closure. */
typedef struct reached {
    node_id node, seed;
} reached;
typedef struct walk_down {
    VEC(reached) nodes;
    node_vec found; /* seeds from which the closure is reached */
    table seen;
    uint32_t word; /* of the bitmap of invalid nodes, to look at next */
    uint64_t bits; /* of the word before, not yet taken */
    uint32_t node, output;
    reader_walk readers;
    bool open;
} walk_down;

typedef struct walks {
    const graph *g;
    const uint32_t *keys; /* of the closure */
    uint32_t key_count;
    table closure; /* document -> index into keys */
    walk_up up;
    walk_down down;
    uint32_t visits;
    hd_status status; /* HD_NOMEM */
} walks;

void walks_init(walks *w, const hd_env *env);
void walks_fini(walks *w, const hd_env *env);

/* Looks for invalid nodes upstream of the keys. Returns the list that is complete: NULL when there is
 * none (or no memory: see status). */
const node_vec *walks_look(walks *w, const hd_env *env, const graph *g, const uint32_t *keys,
                           uint32_t count);
/* Whether the walk up came to its end: then `up.direct` is complete, and what lies upstream of it has
 * been seen to be small. */
static inline bool walks_ended_up(const walks *w, const node_vec *found) {
    return found == &w->up.found;
}

/* Whether a place was in the closure, or below something that was. */
bool walks_cover(const walks *w, const places *ps, place_id at);

#endif
