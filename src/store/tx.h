/* tx.h -- a transaction: what was read, what is to be written.
 *
 * Reads are journaled as keys (a place and how it was read). A run that is expected to read what it
 * read last time brings that list along; as long as it does, each read costs one comparison and
 * nothing is written down. At the first difference the part that agreed is copied and the journal
 * goes on by itself. A key stands in the journal once.
 *
 * Writes go to a list of documents with their new values, except the one that matters most: a
 * computation's single output, a whole document, is kept in two words until the commit. */
#ifndef STORE_TX_H
#define STORE_TX_H

#include "store/replica.h"

/* A read that is expected; `slot` belongs to the scheduler. */
typedef struct hd_expected_ expected;

typedef struct tx_op {
    op o;
    uint32_t next; /* the document's next operation, 1-based; 0: the last */
} tx_op;

/* One document that the transaction writes. */
typedef struct tx_write {
    place_id doc;         /* root place */
    hd_value before;      /* visible at first write; owned */
    hd_value now;         /* owned */
    uint32_t first, last; /* of its operations in `ops`, 1-based; 0: none */
    /* The transaction has read in the document after it wrote there: its claims on it are strict. */
    bool read_after;
    bool own; /* by tx_write_path: the library writes what has changed, and need not compare */
} tx_write;

enum {
    TX_OPEN = 1,
    TX_READ_ONLY = 2,
    TX_PREFLIGHT = 4,  /* schema reads go through cell boundaries; never committed */
    TX_DIVERGED = 8,   /* the journal is in `reads`; else it is expected[0 .. cursor) */
    TX_EPOCH = 32,     /* async: a read of what changed since `epoch` is stale */
    TX_RUN = 64,       /* belongs to a run or a handling: committed by the scheduler */
    TX_ATTEMPTS = 128, /* writes that change nothing are listed, in `attempted` */
    TX_LAUNCHED = 256, /* `lineage` is set: something was sent or started that depends on it */
    /* A read met a value that is about to change: what is new fails from there on. */
    TX_UNSETTLED = 512,
    TX_ELIDED = 1024, /* a write that changed nothing became a claim */
    TX_CAUSES = 2048, /* `causes` is filled in; by the scheduler */
    TX_BUSY = 4096,   /* there is more than reads and an output: writes, claims, a failure, ... */
    /* A handling whose inputs do not settle: outputs that cannot be sealed are taken as they are, and its
     * commit stands on all commits of ours that have no verdict. By the scheduler. */
    TX_TAKES_UNSEALED = 8192,
    /* The commit says what it changes by its operations (footprint_add_ops). By the library itself, where it claims
     * the documents that it writes. */
    TX_BY_OPS = 16384,
    TX_LENT = 32768 /* to a function of the program, which neither commits nor aborts it */
};

struct hd_tx {
    /* What the header's hd_tx_get and hd_tx_set need, and nothing else. `end` is NULL as soon as a
     * write or anything special stands in the way; out_value is alive in the pool or in a document.
     * Invariant: what is in `again` is in the journal, and can be read without looking closer. */
    struct hd_tx_front_ front;

    uint32_t flags; /* TX_* */
    uint32_t expected_count;
    hd_commit_class class;
    hd_status failed; /* the first failure that makes a commit impossible; with TX_BUSY */
    struct hd_runtime *rt;
    replica *r;
    hd_pool *pool; /* made at first use */
    /* The runtime's error when a call failed the transaction, if `failed` is its status; made at first use, NULL
     * until then. By tx_fail_told. */
    hd_error *why;

    /* Reads. */
    VEC(uint32_t) reads;      /* keys that are dependencies (and claims, unless KEY_NO_CLAIM) */
    VEC(uint32_t) claim_only; /* keys that are claims but no dependencies; of both, the places
                               * are referenced */
    uint32_t early_at; /* with TX_UNSETTLED: index in `reads` of the read that came too early */
    table seen;        /* where the keys of `reads` stand, once there are many */
    table claimed;     /* the same of `claim_only` */
    /* With TX_CAUSES: the addresses whose change made the run happen, referenced, as of the revision
     * causes_rev. They go into the commit. */
    place_vec causes;
    uint64_t causes_rev;

    /* Writes. */
    VEC(tx_write) writes;
    VEC(tx_op) ops;
    uint32_t kept; /* so many operations belong to a savepoint and may not be replaced */
    VEC(precondition) preconditions;
    table written; /* documents of `writes`, once there are many */
    /* Places of writes that changed nothing, referenced; only with TX_ATTEMPTS. They are evidence for
     * labels and traces, never dependencies. */
    VEC(place_id) attempted;

    stamp stamp;
    uint64_t epoch;     /* r->rev at begin */
    place_id missing;   /* the first document a read had to wait for; 0: none */
    void *owner;        /* free for the scheduler: the run */
    void *room;         /* ditto: to write its causes down; NULL outside of a run */
    void *lineage;      /* ditto: what depends on the fate of this transaction; NULL: nothing */
    struct hd_tx *next; /* in the runtime's list of spare transactions */
};

/* ---- life (tx.c) */

/* A cleared transaction from the runtime's spares. */
hd_status tx_open(struct hd_runtime *rt, hd_commit_class class, hd_tx **out);
/* Releases everything; the record goes back to the spares. */
void tx_close(hd_tx *tx);
/* Commits, if `status` is HD_OK; else aborts, and returns `status`. Ends the transaction in both cases. */
static inline hd_status tx_end(hd_tx *tx, hd_status status, hd_verdict_fn fn, void *ctx) {
    if (!status) return hd_tx_commit(tx, fn, ctx);
    hd_tx_abort(tx);
    return status;
}
/* tx_close where nothing was done but to write the one document in front.out. */
void tx_close_single(hd_tx *tx);
/* Clears the transaction for another run, keeping its memory. */
void tx_reset(hd_tx *tx);
void tx_destroy(hd_tx *tx);
/* The pool, made at first use; NULL: no memory. */
hd_pool *tx_pool(hd_tx *tx);

/* Reads have to look closer from here on. */
static inline void tx_slow_down(hd_tx *tx) {
    tx->front.end = NULL;
    memset(tx->front.again, 0, sizeof tx->front.again);
}
/* The reads this run is expected to make. */
static inline void tx_expect(hd_tx *tx, const expected *reads, uint32_t count) {
    assert(!(tx->flags & TX_DIVERGED) && !tx->reads.count); /* nothing has been read */
    assert(reads || !count);
    tx->front.first = tx->front.next = reads;
    tx->front.end = reads + count;
    tx->expected_count = count;
    memset(tx->front.again, 0, sizeof tx->front.again);
}
static inline void tx_expect_nothing(hd_tx *tx) {
    tx->front.first = tx->front.next = NULL;
    tx->expected_count = 0;
    tx_slow_down(tx);
}
/* How many of them it has made so far. */
static inline uint32_t tx_agreed(const hd_tx *tx) {
    assert(tx->front.next >= tx->front.first);
    return (uint32_t)(tx->front.next - tx->front.first);
}
/* The output that is to be written; absent: none. */
static inline bool tx_has_output(const hd_tx *tx) { return !value_is_absent(tx->front.out_value); }

static inline hd_status tx_fail(hd_tx *tx, hd_status status) {
    assert(status != HD_OK && (tx->flags & TX_OPEN));
    tx->flags |= TX_BUSY;
    return tx->failed = status;
}

/* The same for a call that has told the runtime's error why it fails: the text is kept for tx_fail_again. */
hd_status tx_fail_told(hd_tx *tx, hd_status status);
/* The text that was kept for the status with which the transaction has failed; NULL: none. */
static inline const hd_error *tx_why(const hd_tx *tx) {
    return tx->why && tx->failed && tx->why->status == tx->failed ? tx->why : NULL;
}
/* A further call on a transaction that has failed: it fails for the same reason, and the runtime's error tells that. */
hd_status tx_fail_again(hd_tx *tx);

/* A read has failed because the store could not be reached. */
static inline bool tx_is_unread(const hd_tx *tx) {
    return hd_status_class(tx->failed) == HD_CLASS_TRANSIENT;
}

/* A body may give up for a reason of its own when a read has failed. What decides is why that failed, if
 * no program made a mistake: then it is to be tried again. */
static inline hd_status tx_true_reason(const hd_tx *tx, hd_status status) {
    hd_class class = hd_status_class(tx->failed);
    if (tx->flags & TX_UNSETTLED && class == HD_CLASS_PENDING) return tx->failed;
    bool again = class == HD_CLASS_STALE || class == HD_CLASS_NOMEM || tx_is_unread(tx);
    return again ? tx->failed : status;
}

static inline place *tx_place(const hd_tx *tx, place_id id) { return place_at(&tx->r->places, id); }

/* Turns reads and writes into a commit and hands it to the replica. HD_OK when nothing had to be
 * submitted too (*out is NULL then). The transaction stays open for tx_close or tx_reset. */
hd_status tx_submit(hd_tx *tx, commit **out);

/* A suspended run ends: documents that it writes may have changed since. Its operations are made on what is there now.
 * HD_STALE: one of them does not fit. HD_PENDING: a document is no longer loaded. HD_NOMEM. All three fail the
 * transaction. */
hd_status tx_rebase(hd_tx *tx);

/* Documents that really change: *stored of them travel, *local ones are volatile. */
void tx_count_changes(hd_tx *tx, uint32_t *stored, uint32_t *local);

/* Where the store belongs to this runtime alone and no verdict is outstanding: applies and confirms
 * at once. No precondition but absence. False: it has to be submitted. */
bool tx_commit_now(hd_tx *tx, hd_status *status);

/* The transaction ends without a commit to wait for: tells what was launched with it. */
void tx_launched(hd_tx *tx, hd_status status);

/* Adds a claim for a read key to a commit under construction. HD_NOMEM. */
hd_status tx_claim(replica *r, commit *c, uint32_t key);
/* Adds a cause: an address whose change made the run happen. HD_NOMEM. */
hd_status tx_cause(replica *r, commit *c, place_id at);
hd_status tx_require_origin(hd_tx *tx, uint64_t local_seq);
/* The transaction deletes this document, and afterwards it counts as one that never was: for hd_tx_require_absent,
 * at the latest when the log up to this commit has been pruned. */
hd_status tx_forget(hd_tx *tx, place_id doc);

/* What the transaction had written, to go back to. */
typedef struct tx_savepoint {
    uint32_t ops, kept;
} tx_savepoint;
tx_savepoint tx_save(hd_tx *tx);
/* Ends the savepoint, going back to it if asked. No memory for that: the transaction has failed. */
void tx_restore(hd_tx *tx, const tx_savepoint *save, bool back);

/* ---- the journal (journal.c) */

hd_status tx_note_slow(hd_tx *tx, uint32_t key);
/* A deep read of a whole document, which can be read without looking closer: nothing stands above. */
hd_status tx_note_document(hd_tx *tx, place_id doc);
static inline hd_status tx_note(hd_tx *tx, uint32_t key) {
    assert((key & KEY_PLACE) && tx_agreed(tx) <= tx->expected_count);
    if (!(tx->flags & TX_DIVERGED) && tx_agreed(tx) < tx->expected_count &&
        tx->front.next->key == key) {
        tx->front.next++;
        return HD_OK;
    }
    return tx_note_slow(tx, key);
}
/* A claim that is no dependency. */
hd_status tx_note_claim(hd_tx *tx, uint32_t key);
/* Forgets all reads; and where the caller has taken them over with their references. */
void tx_drop_reads(hd_tx *tx);
void tx_reads_taken(hd_tx *tx);

/* True if the run read exactly what was expected. */
static inline bool tx_reads_unchanged(const hd_tx *tx) {
    assert((tx->flags & TX_DIVERGED) || !tx->reads.count);
    return !(tx->flags & TX_DIVERGED) && tx_agreed(tx) == tx->expected_count;
}
/* Makes `reads` the whole journal in any case. HD_NOMEM. */
hd_status tx_reads_complete(hd_tx *tx);

/* ---- reading and writing (read.c, write.c) */

/* What the transaction sees at a place of a known document: its own writes first. */
hd_value tx_peek(const hd_tx *tx, place_id id);
/* Follows links on the way to a place (and at its end, if asked), journaling each hop. Leaves in *id
 * the place that is meant. HD_CYCLE, HD_PENDING, HD_NOMEM. */
hd_status tx_resolve(hd_tx *tx, place_id *id, bool last_too, unsigned flags);
/* Journals a read with HD_READ_* flags. */
hd_status tx_note_place(hd_tx *tx, place_id id, unsigned flags);
hd_value tx_read_place(hd_tx *tx, place_id id, unsigned flags);
hd_value tx_read_schema(hd_tx *tx, place_id id, const hd_schema *schema, unsigned flags);
/* What the links in a value lead to, as far as its schema goes (NULL: all of it), seen from the
 * document of `from`. */
void tx_read_links(hd_tx *tx, place_id from, hd_value v, const hd_schema *schema);
/* The place a link means, seen from a document. 0 and a status in *status on failure. */
place_id tx_link_target(hd_tx *tx, place_id from, hd_value link, hd_status *status);

/* The write kept in front.out_value becomes an ordinary one. */
hd_status tx_unpack_single(hd_tx *tx);

tx_write *tx_write_of(const hd_tx *tx, place_id doc);
/* One operation on a place of a document, after resolving links. `keep` is of OP_SPLICE. */
hd_status tx_write_path(hd_tx *tx, op_kind kind, place_id doc, hd_path path, hd_value v,
                        uint64_t keep);
/* Several keys of the document itself, each set or removed; as many calls of tx_write_path would do the same. */
typedef struct tx_key {
    hd_path path;   /* of one segment */
    hd_value value; /* absent: the key is removed */
} tx_key;
#define TX_KEYS_MAX 12
hd_status tx_write_keys(hd_tx *tx, place_id doc, const tx_key *keys, uint32_t count);
hd_status tx_write_op(hd_tx *tx, op_kind kind, place_id at, hd_value v, uint64_t keep);

#endif
