/* authority.h -- what decides on commits: the interface between a replica and the store behind it.
 *
 * One ordered stream comes back for each authority: other writers' commits (frames), and verdicts
 * on our own, in the order in which the authority decided. An authority calls the functions of
 * replica.h (replica_accept, replica_reject, replica_frame_*) only from within its poll(). */
#ifndef STORE_AUTHORITY_H
#define STORE_AUTHORITY_H

#include "store/commit.h"
#include "store/memo.h"

struct replica;

typedef bool (*piece_fn)(void *ctx, const char *piece); /* "space:piece"; false stops */
/* A document that this replica has a place for has changed. `seq` is that of its last change; UINT64_MAX: it cannot
 * be told any more, the document has to be looked at. False stops. */
typedef bool (*change_fn)(void *ctx, place_id doc, uint64_t seq);

/* The state of one document as loaded. */
typedef struct loaded {
    bool present;
    hd_value value; /* owned by the caller; absent if not present */
    uint64_t seq;   /* at which this is known to hold: at least the document's own */
    bool ahead;     /* it is newer than the last poll, and what it was then is gone */
} loaded;

/* Which documents of a space a listing shows. */
typedef struct list_range {
    const char *kind;   /* NULL: of any kind; never "" */
    const char *prefix; /* of their ids; "": any */
    const char *after;  /* their ids are greater than this; "": all are */
} list_range;

typedef struct authority authority;

typedef struct authority_ops {
    /* Takes a queued commit over; it stays the replica's memory until its verdict. Order of calls
     * is order of local seqs. HD_OK, or a transient status: the replica offers it again. */
    hd_status (*submit)(authority *a, commit *c);

    /* Of an authority that no other runtime uses: stores a document's new value, at once, and returns its
     * seq. `first` begins a commit: what follows without it belongs to the same one. After prepare
     * of each document nothing can fail. NULL: there is no such way. */
    hd_status (*confirm_prepare)(authority *a, place_id doc);
    uint64_t (*confirm)(authority *a, place_id doc, hd_value after, bool first);
    /* Both for a commit that is one document; 0: no memory. */
    uint64_t (*confirm_one)(authority *a, place_id doc, hd_value after);

    /* Beside the two above: there is no row of any kind for the document, tombstones included. */
    bool (*never_was)(authority *a, place_id doc);

    /* All commits offered in this pump have been submitted: hand them on. */
    void (*flush)(authority *a);
    /* After flush, one of two. Either it goes on its way while the caller does something else. Or
     * the caller has nothing else to do, and does itself what the authority's thread would, for as
     * long as storage takes; its verdicts are then there for poll(). False: that was not possible,
     * and it is on its way. NULL: flush is all there is to it. */
    void (*start)(authority *a);
    bool (*turn)(authority *a);

    /* Delivers what has arrived, in order, by calling the replica. Does not wait for anything to arrive, but reads the
     * store, which on a server takes a round trip or two. */
    hd_status (*poll)(authority *a);

    /* Loads a document at the snapshot of the last poll. HD_OK with `out`, HD_PENDING when it
     * will arrive by replica_arrived() in a later poll, or an error. Where that snapshot cannot be
     * had any more the document is `ahead`, and the next poll catches up with it. */
    hd_status (*load)(authority *a, place_id doc, loaded *out);
    /* The metadata of a document at the same snapshot, owned; absent: it has none. Makes no place. */
    hd_status (*metadata)(authority *a, place_id doc, hd_value *out);

    /* Lets go of what loads hold open (a snapshot of a file), if anything: the replica's
     * `holding` is false afterwards. Called when a pump or a transaction is over. NULL: loads hold nothing. */
    void (*rest)(authority *a);

    /* What the replica forgets can be loaded again. NULL: it must not forget. */
    bool (*reloads)(const authority *a);

    /* A commit can be submitted without waiting: the writer is free. Gates sealing. */
    bool (*idle)(const authority *a);

    /* Whether derived state is of use to anything but this replica (it is kept in a file, or other
     * runtimes read it); and whether another writer can be in conflict, so that claims and footprints
     * matter. */
    bool (*wants_derived)(const authority *a);
    bool (*shared)(const authority *a);

    /* Follow a whole space; and no longer. */
    hd_status (*follow)(authority *a, struct key *space);
    void (*unfollow)(authority *a, const struct key *space);

    /* The replica is about to forget a document: keeps what is known to the replica alone. HD_NOMEM: nothing has
     * changed. NULL: there is no such thing. */
    hd_status (*keep)(authority *a, place_id doc);
    /* The document's place is about to stand for another. NULL: that is nothing to us. */
    void (*forget)(authority *a, place_id doc);

    /* Readable when poll() has something; -1: there is none. */
    int (*fd)(authority *a);
    /* The file's full name, for what stands beside it. NULL, also the function: there is no file. */
    const char *(*file)(const authority *a);
    uint64_t (*deadline)(authority *a); /* when poll() should be called at the latest */

    hd_status (*list)(authority *a, struct key *space, const list_range *range, hd_list_fn fn,
                      void *ctx);
    hd_status (*spaces)(authority *a, hd_space_fn fn, void *ctx);
    hd_status (*checkpoint)(authority *a, hd_error *error);
    /* Many documents are about to be loaded: folds the log if many of them may have to be read from there, where each
     * costs the rows that it has changed in. Waits for that. A failure costs time alone. NULL: loading is cheap. */
    void (*expect_loads)(authority *a);
    /* The next poll that has a cause to look for others' commits looks at once. NULL: no look is ever put off. */
    void (*look)(authority *a);
    /* Whether loading the document reads rows of the log. NULL: never. */
    bool (*is_in_log)(const authority *a, place_id doc);
    hd_status (*prune)(authority *a, hd_error *error);
    hd_status (*vacuum)(authority *a, hd_error *error);

    /* The memos of a piece at the snapshot of the last poll, in any order (memo.h). One query, whatever their
     * number. NULL: it keeps none. */
    hd_status (*memos)(authority *a, const char *piece, memo_fn fn, void *ctx);
    /* The pieces that have memos, each once. */
    hd_status (*memo_pieces)(authority *a, piece_fn fn, void *ctx);
    /* Every document with a place in the replica that has changed in a space after `seq`, up to the snapshot of the
     * last poll. Reads no document. */
    hd_status (*changes)(authority *a, struct key *space, uint64_t seq, change_fn fn, void *ctx);
    /* The seq of a space at the snapshot of the last poll. */
    hd_status (*seq_of)(authority *a, struct key *space, uint64_t *out);

    /* Asserts what must hold of what it keeps for this runtime. Debug builds only; NULL: nothing. */
    void (*check)(const authority *a);

    void (*close)(authority *a);
    /* Of a remote authority. From now on our session is kept alive, until the runtime is closed; returns when other
     * processes can know that. HD_BUSY: it is being kept alive, but others cannot know that now. */
    hd_status (*stay)(authority *a);
    /* Until when others take our session for alive, on our own clock; 0: it is not kept alive. */
    uint64_t (*present_until)(authority *a);
    /* For how many ms another session is certain to live; 0: it does not. */
    hd_status (*lasts)(authority *a, const char *session, uint32_t *ms);
} authority_ops;

struct authority {
    const authority_ops *ops;
    struct replica *replica;
    /* No other runtime uses it now, and there is a `confirm`. Written by the authority only. */
    bool alone;
    /* Runtimes may be on other machines: whether their sessions live is told by `lasts`, and not by their
     * processes. Written by the authority when it is opened. */
    bool remote;
    bool late; /* documents may arrive later than asked for: `load` answers HD_PENDING */
    /* How long the commit took whose verdict was told last, from being judged to being durable: what a group costs
     * however few commits are in it. Written by the authority; 0: not known. */
    uint64_t sync_ns;
};

#endif
