/* replica.h -- one runtime's view of a store.
 *
 * Per document: what is confirmed (value and seq), the commits of ours that wait for a verdict (an
 * ordered stack of layers), and what is visible: the fold of the layers over the confirmed value,
 * or, for the output of a computation, its overlay. The visible value stands in the place record;
 * whatever is beside it (a different confirmed value, layers) in an `over` record, which most
 * documents do not have.
 *
 *     commit        push layers, announce, queue
 *     accept        bottom layers become confirmed; nothing visible changes unless others' did
 *     reject        the layers leave, and those stacked on them; announce what that uncovers
 *     frame         another writer's commit: confirmed moves; announce what is not shadowed
 *
 * Everything but commit happens in replica_pump, between runs: a transaction sees one snapshot.
 * Every visible change is announced exactly once, by replica_show(). */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include "base/list.h"
#include "base/slab.h"
#include "store/authority.h"
#include "store/commit.h"

/* A commit's part in one document. */
typedef struct layer {
    commit *c;
    uint32_t first_op, op_count; /* consecutive in c->ops */
    /* The fold up to and including this layer, owned; valid while nothing below it changed. */
    hd_value after;
    struct layer *next; /* the one above */
} layer;

typedef struct over {
    hd_value confirmed; /* owned; what the place's seq speaks of */
    layer *bottom, *top;
    uint32_t layers;
    bool exact; /* every layer's `after` is the fold over the present confirmed value */
} over;

/* One change of a document, kept until its notice is delivered. */
typedef struct shown {
    place_id doc;
    hd_value before, after; /* owned */
} shown;

/* The scheduler's side of the change channel. All calls come from the runtime's own thread. */
typedef struct observer {
    void *ctx;
    /* A watched place changed. Called during the walk: mark, nothing else. */
    place_changed_fn changed;
    /* After all of a notice's changes. */
    void (*notice)(void *ctx, const hd_notice *notice, uint32_t origin_node);
    /* A document that a run waits for has arrived (or is known to be absent). */
    void (*arrived)(void *ctx, place_id doc, hd_status status);
    /* Fills `c` with the outputs to seal; see overlay.h. */
    void (*seal)(void *ctx, struct commit *c);
} observer;

typedef struct listener {
    hd_listener_fn fn;
    void *ctx;
} listener;

typedef struct replica {
    const hd_env *env;
    hd_heap *heap;
    places places;
    authority *authority;
    observer observer;
    VEC(listener) listeners;

    uint8_t session[16]; /* 128 random bits: one open of one runtime */
    uint64_t next_local; /* local seq of the next commit, from 1 */
    uint64_t settled;    /* every local seq up to here has its verdict */
    uint64_t rev;        /* counts visible changes */

    list queued;            /* commits to send, by local seq */
    list pending;           /* sent, no verdict yet, by local seq */
    uint32_t pending_count; /* of both */
    VEC(commit *) spare;    /* commits to use again, with their vectors */

    VEC(over) overs; /* by place.doc.over; 0 is unused */
    uint32_t overs_free;
    slab layers;

    VEC(shown) shown;       /* of the notice under way */
    VEC(hd_change) changes; /* the same, for listeners */
    hd_change_kind kind;    /* of the notice under way */
    hd_commit_class class;  /* ditto */
    uint64_t group;         /* ditto */
    uint32_t origin_node;   /* ditto */

    /* Told in the next pump: commits that changed nothing. */
    VEC(commit *) trivial;

    bool in_body;   /* a run's body or an open transaction is on the stack */
    hd_error error; /* of the last call that failed */
    hd_store_stats stats;
} replica;

hd_status replica_init(replica *r, const hd_env *env, hd_heap *heap);
void replica_fini(replica *r);
void replica_check(const replica *r);

/* ---- for transactions */

/* A commit to fill in, from the spares. NULL: no memory. */
commit *replica_commit_new(replica *r, hd_commit_class class);
void replica_commit_free(replica *r, commit *c);

/* Makes sure that the document is known, loading it if the authority can. HD_PENDING otherwise. */
hd_status replica_load(replica *r, place_id doc);

/* Takes the commit over. `after` is, for each footprint, the new visible value (owned, taken).
 * Assigns the local seq, pushes layers, announces, queues. On HD_NOMEM nothing has changed and the
 * commit is freed. */
hd_status replica_commit(replica *r, commit *c, hd_value *after);

/* ---- for authorities, within poll() */

/* The verdict on the oldest pending commit `c`. Seqs are in c->seqs. */
void replica_accept(replica *r, commit *c);
void replica_reject(replica *r, commit *c, hd_status status);

/* Another writer's commit: begin, one call for each operation of a document that this replica
 * knows (or follows), end. Values are borrowed. Frames of one space come in order of seq. */
void replica_frame_begin(replica *r, hd_commit_class class);
hd_status replica_frame_op(replica *r, place_id doc, uint64_t seq, op_kind kind, hd_path path,
                           hd_value value, uint64_t keep);
/* The document is now this, whatever it was (resync, late load). */
hd_status replica_frame_state(replica *r, place_id doc, uint64_t seq, hd_value value);
void replica_frame_end(replica *r);

/* A late load: HD_OK with the state, or why it failed. */
void replica_arrived(replica *r, place_id doc, const loaded *state, hd_status status);

/* ---- for the runtime */

/* Sends what is queued, applies what has arrived. */
hd_status replica_pump(replica *r);

/* The confirmed value and seq of a document; borrowed. */
static inline hd_value replica_confirmed(const replica *r, place_id doc) {
    const place *p = place_at(&r->places, doc);
    return p->doc.over ? r->overs.items[p->doc.over].confirmed : p->value;
}

/* Sets what is visible, announces it as part of the notice under way. Takes `after`. The only way
 * in which a visible value changes, apart from overlay_write's fast path. */
hd_status replica_show(replica *r, place_id doc, hd_value after);
void replica_notice_begin(replica *r, hd_change_kind kind, hd_commit_class class, uint64_t group,
                          uint32_t origin_node);
void replica_notice_end(replica *r);

#endif
