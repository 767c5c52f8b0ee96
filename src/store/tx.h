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
typedef struct expected {
    uint32_t key;
    uint32_t slot;
} expected;

/* Reads without the dependency flag, kept apart: they are claims only. */
typedef struct tx_write {
    place_id doc;    /* root place */
    hd_value before; /* visible at first write; owned */
    hd_value now;    /* owned */
} tx_write;

enum {
    TX_OPEN = 1,
    TX_READ_ONLY = 2,
    TX_DERIVED = 4,
    TX_PREFLIGHT = 8,  /* schema reads go through cell boundaries; never committed */
    TX_DIVERGED = 16,  /* the journal is in `reads`; else it is expected[0 .. cursor) */
    TX_OUT_SET = 32,   /* out_value is to be written */
    TX_SLOW = 64,      /* has writes, or is special: no fast path */
    TX_STALE = 128,    /* an async run that met a document changed since its epoch */
    TX_SUSPENDED = 256 /* of an async run that waits */
};

struct hd_tx {
    struct hd_runtime *rt;
    replica *r;
    place *const *at; /* &r->places.at: the table may move while a body runs */
    uint32_t flags;

    /* Reads. */
    uint32_t cursor, expected_count;
    const expected *expected;
    VEC(uint32_t) reads;      /* keys that are dependencies (and claims, unless KEY_NO_CLAIM) */
    VEC(uint32_t) claim_only; /* keys that are claims but no dependencies */
    uint32_t *seen;           /* open addressing: keys of `reads`, with generation; see journal.c */
    uint32_t seen_mask, seen_generation;

    /* Writes. */
    place_id out_place; /* the output that may be written in place; 0: none */
    hd_value out_value; /* owned by the pool or immediate, if TX_OUT_SET */
    VEC(tx_write) writes;
    VEC(op) ops;
    VEC(precondition) preconditions;

    stamp stamp;
    hd_commit_class class;
    uint64_t epoch; /* r->rev at begin */
    hd_pool *pool;
    hd_status failed;   /* the first failure that makes a commit impossible */
    place_id missing;   /* the first document a read had to wait for; 0: none */
    void *owner;        /* free for the scheduler: the run */
    struct hd_tx *next; /* in the runtime's list of spare transactions */
};

/* ---- for the scheduler */

hd_status tx_open(struct hd_runtime *rt, hd_tx **out);
void tx_close(hd_tx *tx); /* releases everything; the record goes back to the spares */

/* Clears the transaction for another run, keeping its memory. */
void tx_reset(hd_tx *tx);

/* The journal as a list: count, and keys either from `expected` (stride 8) or `reads`. True if the
 * run read exactly what was expected. */
static inline bool tx_reads_unchanged(const hd_tx *tx) {
    return !(tx->flags & TX_DIVERGED) && tx->cursor == tx->expected_count;
}
/* Makes `reads` complete in any case. HD_NOMEM. */
hd_status tx_reads_complete(hd_tx *tx);

/* Turns reads and writes into a commit and hands it to the replica; HD_OK when nothing had to be
 * submitted too (*out is NULL then). The transaction stays open for tx_close or tx_reset. */
hd_status tx_submit(hd_tx *tx, commit **out);

/* Journals a read. */
hd_status tx_note_slow(hd_tx *tx, uint32_t key);
static inline hd_status tx_note(hd_tx *tx, uint32_t key) {
    if (tx->cursor < tx->expected_count && !(tx->flags & TX_DIVERGED) &&
        tx->expected[tx->cursor].key == key) {
        tx->cursor++;
        return HD_OK;
    }
    return tx_note_slow(tx, key);
}

#endif
