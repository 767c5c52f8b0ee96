/* commit.h -- what travels from a runtime to an authority, and the verdict that comes back.
 *
 * A commit is immutable once it is queued. Its places are those of the replica that made it; an
 * authority that lives elsewhere translates them (memory: to its heads; SQLite: to text). Identity
 * before acceptance is (session, local seq), afterwards the seqs it got, one for each space. */
#ifndef STORE_COMMIT_H
#define STORE_COMMIT_H

#include "base/list.h"
#include "store/place.h"
#include <heddle/store.h>

typedef enum op_kind {
    OP_SET,       /* value at path; missing objects on the way are made */
    OP_REMOVE,    /* an object's key */
    OP_SPLICE,    /* an array: keep the first `keep` elements, then append those of `value` */
    OP_APPEND,    /* mergeable: `value` after the last element, whatever that is then */
    OP_INCREMENT, /* mergeable: number += value */
    OP_DELETE     /* the document; leaves a tombstone where it was created under "absent" */
} op_kind;

typedef struct op {
    op_kind kind;
    place_id doc;   /* root place; one reference */
    hd_path path;   /* one reference; root for OP_DELETE */
    hd_value value; /* one reference */
    uint64_t keep;
} op;

#define KIND_SIZE 64 /* bytes of a document's kind, with the NUL */

/* Applies one operation to a document's value. Returns an owned value: the changed document, absent
 * after a delete, or a failed value when the operation does not fit what it finds (HD_KIND,
 * HD_RANGE). The one fold of replica, authorities, checkpoint and check. */
hd_value op_apply(hd_heap *heap, hd_value document, op_kind kind, hd_path path, hd_value value,
                  uint64_t keep);

/* Whether nothing is left of what was there before. */
static inline bool op_starts_anew(op_kind kind, hd_path path) {
    return kind == OP_DELETE || (kind == OP_SET && path == HD_PATH_ROOT);
}

/* "I read this, and it was so." */
typedef struct claim {
    uint32_t key; /* place of a document or inside one, with KEY_SHAPE; the place referenced */
    /* The confirmed seq it was read at, of the document's space: its true basis, also where the
     * read went through pending layers. */
    uint64_t basis;
    /* It went through the pending layers of the document, the lowest and the topmost of which are of these commits
     * of ours (local seqs); 0: through none. Every commit between them that wrote the document, and was not dead,
     * was among them. */
    uint64_t first, last;
    bool all; /* it depends on every commit from `first` to `last`, whatever they wrote */
    /* The transaction had written in the document before it read the place: what it read is what its
     * operations made of the document, which depends on whether they fit what is there. */
    bool strict;
} claim;

typedef enum precondition_kind {
    PRE_ORIGIN, /* that local seq of this session was accepted: else permanent */
    PRE_ABSENT, /* no row of any kind for the document, tombstones included: else permanent */
    PRE_EQUAL,  /* the value at path hashes (BLAKE2b of its JSON) to this: else stale */
    PRE_FORGET /* no condition: the commit deletes the document, and its tombstone is not kept for PRE_ABSENT */
} precondition_kind;

typedef struct precondition {
    precondition_kind kind;
    uint64_t origin; /* PRE_ORIGIN: local seq */
    place_id place;  /* the others; referenced */
    uint8_t hash[32];
} precondition;

/* A touch: one path that a commit changes, and how. The touches of one document are the commit's
 * *footprint* there (footprint.h). */
enum {
    TOUCH_WHOLE = 1, /* the whole document is set, created or deleted */
    TOUCH_KEYS = 2,  /* the key set of the parent changes */
    TOUCH_WAY = 4,   /* objects on the way may be made: every key set above can change */
    TOUCH_REST = 8,  /* of an array: its elements from this index on come or go */
    TOUCH_LEAF = 16  /* what was there and what is there now has nothing below it: value_is_leaf */
};
typedef struct touch {
    hd_path path; /* referenced */
    uint8_t flags;
} touch;

typedef VEC(place_id) place_vec;

/* Where a footprint is not listed, but follows from the operations. */
typedef enum footprint_form {
    FOOTPRINT_LISTED,
    FOOTPRINT_PLAIN, /* each operation touches its path, by op_plain_flags */
    FOOTPRINT_LOOSE  /* ... or makes it: by op_touch_flags, with TOUCH_WAY */
} footprint_form;

/* One document that a commit writes. `exact`: its footprint is c->touches[first_touch .. + touch_count), or what
 * `by_ops` says, if the document is still at `basis`, or as the commit `under` left it, when this commit is
 * admitted. */
typedef struct doc_write {
    place_id doc; /* referenced by the operations */
    uint64_t basis;
    uint64_t under; /* local seq of the pending commit of ours that it lies on; 0: on none */
    uint32_t first_touch, touch_count;
    bool exact;
    footprint_form by_ops; /* with `exact` */
    bool created;          /* did not exist at the basis */
    /* In a seal: the node that wrote it (referenced; NULL: it has no name, or there are several), and
     * what caused that run: commit.causes[first_cause .. + cause_count). */
    struct key *by;
    uint32_t first_cause, cause_count;
} doc_write;

typedef enum commit_state {
    COMMIT_QUEUED, /* layers applied, not sent */
    COMMIT_SENT,   /* no verdict yet */
    COMMIT_IN, /* accepted, and confirmed by a reload: its layers leave, its owners are not told yet */
    COMMIT_DEAD, /* rejected or doomed: its layers leave */
    COMMIT_GONE  /* they have left, its owners know; only its own verdict is still to come */
} commit_state;

_Static_assert(COMMIT_QUEUED < COMMIT_SENT && COMMIT_SENT < COMMIT_IN && COMMIT_IN < COMMIT_DEAD &&
                   COMMIT_DEAD < COMMIT_GONE,
               "states are compared: from COMMIT_DEAD on the layers of a commit do not count");

typedef struct space_seq {
    struct key *space; /* referenced */
    uint64_t seq;
} space_seq;

/* What makes the commit, for provenance; texts are good as long as the transaction. */
typedef struct stamp {
    uint32_t node;              /* the runtime's node; 0: the program */
    const char *action;         /* durable identity of node or handler; NULL */
    const char *implementation; /* of its code: the build; NULL */
    uint64_t group;
    uint64_t from; /* of a handling: local seq of the commit that sent its event; 0: none did */
} stamp;

typedef struct commit {
    list_node link; /* in the replica's queue or pending list, by local seq */
    uint64_t local_seq;
    hd_commit_class class;
    commit_state state;
    hd_status doom; /* why it is dead */
    stamp stamp;
    /* The stamp's texts, referenced, since their node may be gone when the commit is sent. NULL: none. */
    struct key *by, *as;

    VEC(op) ops;
    VEC(claim) claims;
    VEC(precondition) preconditions;
    VEC(doc_write) writes;
    VEC(touch) touches; /* of the writes' exact footprints */
    /* The addresses whose change made the run happen, referenced. Of a seal: those of each document, one
     * after the other. */
    place_vec causes;
    VEC(space_seq) seqs; /* filled by acceptance, one for each space written or claimed */
    hd_value extra;      /* memos, for the log beside the operations (memo.h); absent */
    uint64_t heard;      /* how far the authority had been heard when it was made: replica.heard */
    bool sealed;         /* derived outputs: each document has its author and causes */

    hd_verdict_fn done; /* told once; NULL */
    void *done_ctx;
    /* Internal owner, told before `done`, with the conflicts; NULL. */
    void (*settled)(void *ctx, struct commit *c, hd_status status);
    void *settled_ctx;
    void *owner;        /* free for the owner */
    uint64_t owner_rev; /* ditto */
    void *lineage;      /* of the transaction; the observer is told of the verdict; NULL */
} commit;

#endif
