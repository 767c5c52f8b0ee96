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
 * Every visible change is made by place_show, and announced exactly once, by its caller: replica_show, or
 * a shorter way to the same where a document has no inner places and no listener is there (transact.c for a
 * single write, runner.h for an output). */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include "base/list.h"
#include "base/slab.h"
#include "store/authority.h"
#include "store/commit.h"
#include "base/sabotage.h"

/* A commit's part in one document. */
typedef struct layer {
    commit *c;
    uint32_t first_op, op_count; /* consecutive in c->ops */
    /* The fold up to and including this layer, owned. Kept right when what is below changes. */
    hd_value after;
    struct layer *next; /* the one above */
} layer;

typedef struct over {
    hd_value confirmed; /* owned; what the place's seq speaks of */
    layer *bottom, *top;
    uint32_t layers;
    uint32_t next_free; /* of a free record */
    uint64_t
        dead_from; /* local seq of the lowest layer of a dead commit; only while commits are doomed, else 0 */
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
    void (*notice)(void *ctx, hd_change_kind kind, uint32_t origin_node);
    /* A document that a run waits for has arrived (or is known to be absent). */
    void (*arrived)(void *ctx, place_id doc, hd_status status);
    /* The output `doc` is to be sealed: adds the claims, causes and provenance of the node that
     * wrote it, and names it (borrowed; NULL: it has no name). False when that node is not clean: the
     * output cannot be sealed now. HD_NOMEM is said through *status. */
    bool (*vouch)(void *ctx, place_id doc, struct commit *c, struct key **by, hd_status *status);
    /* A transaction that launched something: its commit `c` was queued (HD_PENDING), has its verdict,
     * or there is none to wait for (c NULL). Before the commit's owners are told. */
    void (*lineage)(void *ctx, void *lineage, const struct commit *c, hd_status status);
    /* Another writer's change became visible; documents of followed spaces included. */
    void (*integrated)(void *ctx, place_id doc);
    /* The visible value of an output (place.doc.writer) has changed, and no run here made it so: a computation
     * of another runtime has written it, another writer has removed the document, or a commit that lay over it was
     * refused. */
    void (*overwritten)(void *ctx, place_id doc);
    /* A seal was accepted. NULL: the observer does not want to know. */
    void (*sealed)(void *ctx, const struct commit *c);
    /* A seal was refused, and why: the outputs are gone, and the nodes behind them may run again. */
    void (*unseal)(void *ctx, const struct commit *c, const struct doc_write *of, hd_status status);
    /* Another writer's commit, whose changes are visible by now, had this extra (memo.h). */
    void (*observed)(void *ctx, hd_value extra);
    /* A seal is about to be queued, its layers are pushed: adds memos, as `extra`, and claims
     * that go with them. On HD_NOMEM it goes without. NULL: nothing. */
    hd_status (*keep)(void *ctx, struct commit *c);
    /* A seal was refused: its memos are not kept. */
    void (*refused)(void *ctx, const struct commit *c);
    /* A document was loaded that is ahead: from here on reads have to look closer. NULL: they do. */
    void (*ahead)(void *ctx);
    /* A transaction of a run reads what a node writes, and is not expected to. True: that node is out of
     * date, and the read fails. NULL: it never is. */
    bool (*early)(void *ctx, const struct hd_tx *tx, uint32_t key);
} observer;

/* What an operation from outside will make of one document, worked out before anything changes. */
typedef struct plan_item {
    place_id doc;
    uint64_t seq;
    hd_value confirmed;           /* owned */
    uint32_t first_after, afters; /* of the layers that stay, bottom first, in plan_afters */
} plan_item;

typedef struct listener {
    hd_listener_fn fn;
    void *ctx;
    uint64_t group; /* commits of this group are not told; 0: all are */
} listener;

typedef struct replica {
    places places; /* first: see hd_runtime */
    const hd_env *env;
    hd_heap *heap;
    authority *authority;
    /* The authority has a snapshot of its file open for loads. While it has, the file's WAL cannot start
     * anew: it is ended before anything waits. Written by the authority only. */
    bool holding;
    bool polling; /* the authority's poll() is on the stack; only replica_pump writes this */
    bool leaving; /* the runtime is being closed: what cannot be stored now is given up */
    /* The store is gone while it was open: nothing is written any more. Written by the authority only. */
    bool lost;
    observer observer;
    VEC(listener) listeners;
    uint32_t telling; /* whose turn is next, while they are told */

    uint8_t session[16]; /* 128 random bits: one open of one runtime */
    uint64_t next_local; /* local seq of the next commit, from 1 */
    uint64_t settled;    /* every local seq up to here has its verdict */
    uint64_t unknown;    /* how many of them ended with HD_NO_VERDICT */
    uint64_t rev;        /* counts visible changes */
    uint64_t heard;      /* how far the authority has been heard, in its own terms */

    list queued;            /* commits to send, by local seq */
    list pending;           /* sent, no verdict yet, by local seq */
    uint32_t pending_count; /* of both */
    VEC(commit *) spare;    /* commits to use again, with their vectors */

    VEC(over) overs; /* by place.doc.over; 0 is unused */
    uint32_t overs_free;
    slab layers;

    VEC(shown) shown;       /* of the notice under way; only while there are listeners */
    VEC(hd_change) changes; /* the same, for listeners */
    hd_change_kind kind;    /* of the notice under way */
    hd_commit_class class;  /* ditto */
    uint64_t group;         /* ditto */
    uint32_t origin_node;   /* ditto */
    bool overwrites;        /* ditto: outputs that change are told to observer.overwritten */

    VEC(plan_item) plan;
    VEC(hd_value) plan_afters; /* owned */
    hd_commit_class frame_class;
    bool frame_of_many; /* the frame stands for commits of any class (replica_frame_of_many) */

    /* Documents in a later state than all others, until the authority has caught up with them: a
     * snapshot may hold one of them alone, or none (S10). One reference for each. */
    VEC(place_id) ahead;

    VEC(uint64_t) dead; /* local seqs of dead commits, ascending; scratch of replica_reject */

    VEC(place_id) unsealed; /* outputs with DOC_UNSEALED; may hold others too */
    uint32_t due;           /* written by the observer: things that `keep` would add */

    list trivial; /* commits that changed nothing: told in the next pump */
    list fated;   /* verdict known, owners not told yet */

    bool announcing; /* a listener is on the stack */
    bool in_body;    /* a run's body or an open transaction is on the stack */
    hd_error error;  /* of the last call that failed */
    hd_store_stats stats;
    SABOTAGE_FIELD
} replica;

hd_status replica_init(replica *r, const hd_env *env, hd_heap *heap);
void replica_fini(replica *r);
/* Changes are no longer told to the observer. */
void replica_forget_observer(replica *r);
void replica_check(const replica *r);

/* The runtime closes and these commits have no verdict: their functions are told HD_NO_VERDICT. */
void replica_tell_undecided(replica *r);

/* ---- for transactions */

/* A commit to fill in, from the spares. NULL: no memory. */
commit *replica_commit_new(replica *r, hd_commit_class class);
void replica_commit_free(replica *r, commit *c);

/* Makes sure that the document is known, loading it if the authority can. HD_PENDING otherwise. */
hd_status replica_load(replica *r, place_id doc);

/* Takes the commit over. `after` is, for each write, the new visible value (owned, taken).
 * Assigns the local seq, pushes layers, announces, queues. On HD_NOMEM nothing has changed and the
 * commit is freed. */
hd_status replica_commit(replica *r, commit *c, hd_value *after);

/* ---- for authorities, within poll() */

/* The verdict on the oldest pending commit `c`, which is gone afterwards. Seqs are in c->seqs.
 * HD_NOMEM or HD_USAGE (a transaction is open) of reject: nothing has changed, say it again in the next poll. */
void replica_accept(replica *r, commit *c);
/* The same for one that replica_frame_absorb has made part of what is confirmed. */
void replica_absorb(replica *r, commit *c);
hd_status replica_reject(replica *r, commit *c, hd_status status);

/* Another writer's commit: begin, one call for each operation of a document that this replica
 * knows (or follows), end. Values are borrowed. Frames of one space come in order of seq. Nothing
 * changes before end; HD_NOMEM of any of them, or HD_USAGE of the end (a transaction is open), drops the frame: begin
 * it again in the next poll. */
void replica_frame_begin(replica *r, hd_commit_class class);
hd_status replica_frame_op(replica *r, place_id doc, uint64_t seq, op_kind kind, hd_path path,
                           hd_value value, uint64_t keep);
/* After the begin: the frame stands for an unknown number of commits, of computations too. */
static inline void replica_frame_of_many(replica *r) { r->frame_of_many = true; }
/* The document is now this, whatever it was (resync, late load). */
hd_status replica_frame_state(replica *r, place_id doc, uint64_t seq, hd_value value);
/* What was said so far of documents has the commits in it that are COMMIT_IN: their layers leave with the frame. */
hd_status replica_frame_absorb(replica *r);
hd_status replica_frame_end(replica *r);
/* After the end: the extra of the commit. */
static inline void replica_frame_observed(replica *r, hd_value extra) {
    assert(!r->plan.count); /* the frame has ended */
    if (r->observer.observed) r->observer.observed(r->observer.ctx, extra);
}

/* A document of which nothing is known here, though a node depends on it that has
 * not run here. Its changes must be heard. */
static inline bool replica_awaits(const replica *r, place_id doc) {
    const place *p = place_at(&r->places, doc);
    assert(p->root == doc);
    return !(p->doc.flags & (DOC_KNOWN | DOC_VOLATILE)) &&
           (p->watch || p->first_child || p->doc.refs);
}
/* It was this (the value is taken) before the frame that is about to be told. */
void replica_meet(replica *r, place_id doc, const loaded *state);
/* It has changed, and what it was before is not known: the readers of all its places are told; and, if `overwritten`,
 * the nodes that write it (observer.overwritten). */
void replica_touch(replica *r, place_id doc, bool overwritten);

/* All that was loaded ahead has been told by now. */
void replica_caught_up(replica *r);
bool replica_is_ahead(const replica *r, place_id doc);

/* What is known of the document is stored, and nothing else is said of it. */
bool replica_can_forget(const replica *r, place_id doc);
/* Nothing is known of it any more. Its readers are told, and hear no more of it: the caller has made sure
 * that none of them depends on it. */
void replica_forget(replica *r, place_id doc);

/* A late load: HD_OK with the state, or why it failed. HD_NOMEM: nothing has changed, say it again in the
 * next poll. */
hd_status replica_arrived(replica *r, place_id doc, const loaded *state, hd_status status);

/* ---- for the runtime */

/* Sends what is queued, applies what has arrived. */
hd_status replica_pump(replica *r);
/* The first half of it. */
hd_status replica_send(replica *r);

/* The confirmed value and seq of a document; borrowed. */
static inline hd_value replica_confirmed(const replica *r, place_id doc) {
    const place *p = place_at(&r->places, doc);
    assert(p->root == doc && p->doc.over < r->overs.count);
    if (p->doc.over) return r->overs.items[p->doc.over].confirmed;
    return p->doc.flags & DOC_OVERLAY ? value_absent() : p->value;
}

/* Every commit up to this local seq has its verdict. (`settled` does not say so: a commit that fell with another one
 * before it was sent has its verdict, and is not counted there.) */
static inline bool replica_has_decided(const replica *r, uint64_t local_seq) {
    const list *first = list_empty(&r->pending) ? &r->queued : &r->pending;
    return list_empty(first) || LIST_ENTRY(list_first(first), commit, link)->local_seq > local_seq;
}

/* The top layer of a document, or NULL. */
static inline layer *replica_top(const replica *r, place_id doc) {
    const place *p = place_at(&r->places, doc);
    assert(p->root == doc && p->doc.over < r->overs.count);
    return p->doc.over ? r->overs.items[p->doc.over].top : NULL;
}

/* An `over` record for the document, made if it has none. HD_NOMEM. */
hd_status replica_over(replica *r, place_id doc);
/* Lets the record go if it says nothing any more. */
void replica_over_trim(replica *r, place_id doc);

/* Pushes the commit's layers without announcing anything: what they show is visible already. */
hd_status replica_push_layers(replica *r, commit *c, hd_value *after);
void replica_enqueue(replica *r, commit *c);

/* A notice: begin, any number of replica_show, end. `room` documents can be shown without failing;
 * HD_NOMEM when that cannot be promised. */
hd_status replica_notice_room(replica *r, uint32_t room);
hd_status replica_notice_begin(replica *r, hd_change_kind kind, hd_commit_class class,
                               uint64_t group, uint32_t origin_node, uint32_t room);
/* Makes `after` (taken) what is visible, if it differs, and announces it. */
void replica_show(replica *r, place_id doc, hd_value after);
/* The same for a value that is known to differ. */
void replica_show_changed(replica *r, place_id doc, hd_value after);
void replica_notice_end(replica *r);

#endif
