/* admit.h -- may this commit stand?
 *
 * Pure: (submission, heads) -> verdict. No I/O, no clock; the authority has fetched what is needed.
 * The order is fixed: replay, preconditions, then all reads, and a rejection lists all conflicts.
 *
 * Heads are an authority's memory of its documents: the seq of each one's last change, and which
 * paths each commit since the floor touched. Every authority, in memory or with a log, keeps this same
 * structure; only what is behind it differs.
 *
 * Conflicts are decided by path and depth, never by value: a read at seq s conflicts with a later
 * touch of the same document if their places overlap. Reporting too much is allowed, missing a
 * conflict is not (S3). One comparison of the head's seq answers the common case.
 *
 * Cost: O(claims + touches of claimed documents above their basis), however many commits of its own session a claim was
 * read through; while some of those are refused, O(those commits) for each claim. */
#ifndef STORE_ADMIT_H
#define STORE_ADMIT_H

#include "base/table.h"
#include "base/vec.h"
#include "store/commit.h"
#include "base/sabotage.h"
#include "value/key.h"
#include "value/path.h"
#include <heddle/store.h>

/* ---- Heads */

enum {
    HEAD_FETCHED = 1, /* seq and the two below are known (not only "at or below the checkpoint") */
    HEAD_EXISTS = 2,  /* has a value */
    HEAD_TOMBSTONE = 4, /* was deleted, and that is remembered */
    HEAD_GUARDED = 8,   /* was created under "absent": deleting it leaves a tombstone for good */
    HEAD_FLOOR = 16,    /* `floor` is known: else only that it is not above the space's */
    HEAD_SEEN = 32      /* it is what the author of the last change expected to make of it */
};

/* A touch of an accepted commit: which commit, and what it changed. */
typedef struct head_touch {
    uint64_t seq;
    uint64_t local_seq;
    uint32_t session; /* index into heads.sessions */
    hd_path path;     /* referenced */
    uint8_t flags;
} head_touch;

typedef struct head {
    struct key *space, *instance, *id; /* referenced; instance NULL for space scope */
    uint8_t scope;                     /* hd_scope, never HERE */
    bool meta;
    uint8_t flags;
    uint32_t space_index; /* into heads.spaces */
    uint64_t seq;         /* of the last change; 0: never existed, as far as fetched */
    uint64_t floor;       /* the last change whose touches are forgotten */
    /* Of those above floor_from all were of commits of floor_session, floor_local the last of them. */
    uint64_t floor_from, floor_local;
    uint32_t floor_session;
    VEC(head_touch) touches; /* above the floor, by seq */
    hd_value value;          /* owned; for authorities that keep values here; else absent */
    uint64_t met;            /* decoder.commits when it was last in a commit of a log; 0: never */
    uint64_t last_local;     /* of the commit that changed it last; 0: unknown */
    uint32_t last_session;
} head;

typedef struct head_space {
    struct key *name;
    uint64_t seq;   /* the last one given out */
    uint64_t floor; /* touches at or below are forgotten: older claims need head.seq <= basis */
    uint64_t stamp; /* free for the authority: the commit that took the last seq */
} head_space;

/* What is remembered of a session: verdicts above what the client has declared settled. */
typedef struct decided {
    uint64_t local_seq;
    uint64_t payload; /* hash of the content, to tell a replay from an impostor */
    hd_status status; /* HD_OK: accepted */
    uint64_t seq;     /* of the first space written; 0: none */
    uint64_t wrote;   /* if refused: see refused_commit */
} decided;

typedef struct refused_commit {
    uint64_t local_seq;
    uint64_t wrote; /* heads_bit of each document that the commit would have written */
} refused_commit;

typedef struct head_session {
    uint8_t id[16];
    uint64_t settled;      /* the client needs no verdict at or below */
    VEC(decided) verdicts; /* above `settled`, by local seq */
    uint64_t last;         /* highest local seq decided */
    uint64_t last_refused; /* no verdict above it refuses */
    uint64_t logged;       /* highest local seq met in rows of a log; 0: none */
    /* Of those at or below `settled`: what was refused, ascending; the oldest are forgotten, and then
     * all up to `forgotten` count as refused. */
    VEC(refused_commit) refused;
    uint64_t forgotten;
} head_session;

typedef struct heads {
    const hd_env *env;
    hd_heap *heap;
    VEC(head) heads;
    VEC(head_space) spaces;
    VEC(head_session) sessions;
    table by_name;
    SABOTAGE_FIELD
} heads;

hd_status heads_init(heads *h, const hd_env *env, hd_heap *heap);
void heads_fini(heads *h);
void heads_check(const heads *h);

hd_status heads_space(heads *h, struct key *name, uint32_t *out);
/* The head of a document, made if missing (flags 0, seq 0). */
hd_status heads_intern(heads *h, struct key *space, hd_scope scope, struct key *instance, bool meta,
                       struct key *id, uint32_t *out);
bool heads_find(const heads *h, const struct key *space, hd_scope scope, const struct key *instance,
                bool meta, const struct key *id, uint32_t *out);
hd_status heads_session(heads *h, const uint8_t id[16], uint32_t *out);

/* Remembers that a commit touched a path; keeps head.seq. */
hd_status heads_touch(heads *h, uint32_t head, uint64_t seq, uint32_t session, uint64_t local_seq,
                      hd_path path, uint8_t flags);
/* Keeps only the newest touches of a head that has many: older claims on it will be told to resync, unless what was
 * forgotten is of commits that they were read through. Amortised O(1) per touch. */
void heads_bound(heads *h, uint32_t head);
/* Forgets the touches of one head up to `floor`, which becomes its floor. */
void heads_raise_floor(heads *h, uint32_t head, uint64_t floor);
/* Touches above this are all there. A document that has not changed for long has a low one, wherever
 * the space's is: what is known of it goes back to its last change before that. */
static inline uint64_t heads_floor(const heads *h, const head *d) {
    assert(d->space_index < h->spaces.count);
    uint64_t space = h->spaces.items[d->space_index].floor;
    return (d->flags & HEAD_FLOOR) || space < d->floor ? d->floor : space;
}
/* One of 64 bits, by the document's name. */
uint64_t heads_bit(const heads *h, uint32_t head);
/* Forgets touches at or below the space's new floor. */
void heads_prune(heads *h, uint32_t space, uint64_t floor);
/* Drops heads that say no more than what is stored elsewhere; the others get new indices. */
void heads_compact(heads *h);

/* ---- Submissions: a commit in the authority's own terms */

typedef struct sub_claim {
    uint32_t head;
    hd_path path;            /* borrowed from the maker of the submission */
    bool shape, strict, all; /* see claim of commit.h */
    uint64_t basis;
    uint64_t first, last; /* it was read through commits of the same session: see claim */
} sub_claim;

/* Which paths a write changes (footprint.h). */
typedef enum footprint_state {
    FOOTPRINT_COARSE, /* its operations' paths: no exact one was given, or it does not hold */
    FOOTPRINT_GIVEN,  /* an exact one, which holds if the document is what its author saw */
    FOOTPRINT_HOLDS   /* it does: admit_apply has found that out, now or, of a log commit, then */
} footprint_state;

typedef struct sub_write {
    uint32_t head;
    uint64_t basis;       /* the replica's confirmed seq of the document when it committed */
    uint64_t under;       /* the pending commit of its own session that it was made on; 0: none */
    bool create, delete_; /* the whole document appears or goes */
    bool anew;            /* its operations leave nothing of what was there */
    footprint_state footprint;
    const touch *exact; /* of the exact footprint */
    uint32_t exact_count;
    const touch *ops; /* what the operations can change at most */
    uint32_t op_count;
} sub_write;

typedef struct sub_precondition {
    int kind; /* precondition_kind of commit.h */
    uint64_t origin;
    uint32_t head;
    bool holds; /* PRE_EQUAL: the authority has compared already */
} sub_precondition;

typedef struct submission {
    uint32_t session;
    uint64_t local_seq, settled, payload;
    hd_commit_class class;
    const sub_claim *claims;
    uint32_t claim_count;
    sub_write *writes; /* admit_apply changes their footprint_state */
    uint32_t write_count;
    const sub_precondition *preconditions;
    uint32_t precondition_count;
} submission;

typedef struct conflict {
    uint32_t head;
    hd_path read_path, touched_path;
    uint64_t basis, seq; /* seq 0: a dead layer, or a basis below the floor */
} conflict;

typedef struct verdict {
    hd_status status; /* HD_OK: admit; its class tells what to do else */
    bool replayed;    /* decided before: `status` and `seq` are those of then; change nothing */
    uint64_t seq;
    VEC(conflict) conflicts; /* all of them; reused from call to call */
} verdict;

/* Whether a touched path and a read overlap. */
bool touch_overlaps(const hd_heap *heap, hd_path touched, uint8_t flags, hd_path read, bool shape);

/* HD_NOMEM is the only failure of admit itself. */
hd_status admit(const heads *h, const submission *s, verdict *out);

/* Records an admitted submission: seqs[i] is the new seq of the space of writes[i]. Also records the
 * verdict for replays. On HD_NOMEM nothing has changed. */
hd_status admit_apply(heads *h, const submission *s, const uint64_t *seqs);
/* Records a rejection, so that a replay gets the same answer. */
hd_status admit_refuse(heads *h, const submission *s, hd_status status);
/* The same for a commit that comes before others which are decided. Its client has not been told of any. A commit that
 * is decided already, by an attempt that failed later, stays so. */
hd_status admit_refuse_late(heads *h, const submission *s, hd_status status);

#endif
