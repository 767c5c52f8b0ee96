/* basis.h -- what a store keeps about nodes, so that a restart runs nothing that need not run.
 *
 * Every named computation has a *row*: which code it was (fingerprint), what it read, and up to which
 * point of the store that reading is proved. Rows travel in the `extra` of a commit, the one whose
 * claims prove them, and are kept by the authority: memory in a table, SQLite in the log first and
 * with the next checkpoint in `node`. Nothing is marked when somebody changes a document; whether a row
 * still holds is found out when its piece is resumed, from what has changed since alone.
 *
 *     {"nodes":  [["main:corner:prices", "", "5f0c...", {"r": ["main/corner#/items", ...]}], ["..."]],
 *      "pieces": [["main:corner", {"main": 97}, ["main:corner:total"]]],
 *      "gone":   [["main:corner:prices/7", ""], ...]}
 *
 * nodes   [name, instance, fingerprint, body]: replaces the row. The body is the scheduler's own: "r",
 *         the reads, as cells in text ("space/id#/path", with a scope "space@user/id"), by shape with a
 *         '~' in front; a read that is no claim as [cell, seq], with the seq that was seen; and gates.
 *         [name, instance]: the row stands as it is, and is proved anew: same code, same reads.
 *         Either is proved at the moment of admission: as of the sequence numbers that all spaces
 *         have then, this commit's own included.
 * pieces  [piece, seqs, stale]: whatever rows the piece has are valid up to these seqs (by space), but
 *         for those named, which are stale whatever the store says.
 * gone    [name, instance]: the node is no more.
 *
 * A name is "space:piece:path"; the part before the second ':' is the piece, and the row is owned by that
 * space. An instance is "" where the node reads and writes documents of space scope only; else "user:NAME"
 * or "session:NAME", the narrower of them: one principal's rows never serve another.
 *
 * A commit with an extra and nothing else is admitted (its claims are judged) and takes no seq. */
#ifndef STORE_BASIS_H
#define STORE_BASIS_H

#include "store/authority.h"

/* One row as it is kept. Texts and values are borrowed for the call. */
typedef struct basis_row {
    const char *name, *instance, *fingerprint;
    hd_value body;
    bool stale;
    /* Proved as of these seqs, by space: an object. */
    hd_value seqs;
} basis_row;
typedef bool (*basis_row_fn)(void *ctx, const basis_row *row); /* false stops */

/* One change since: a document that this replica has a place for, the seq of the change, and where. Of a
 * change whose places are no longer known the whole document is told. */
typedef struct basis_change {
    place_id doc;
    uint64_t seq;
    hd_path path;  /* borrowed */
    uint8_t flags; /* TOUCH_* of commit.h */
} basis_change;
typedef bool (*basis_change_fn)(void *ctx, const basis_change *change);

typedef struct basis_ops {
    /* All rows of a piece ("space:piece"), at the snapshot of the last poll, in order of name; before
     * them *valid, owned by the caller: the piece's seqs by space, an object, absent if it has none.
     * One query, whatever their number. */
    hd_status (*rows)(authority *a, const char *piece, hd_value *valid, basis_row_fn fn, void *ctx);
    /* Every change after `seq` in a space, up to the snapshot of the last poll, of documents that have a
     * place in the replica. Reads no document. */
    hd_status (*changes)(authority *a, struct key *space, uint64_t seq, basis_change_fn fn,
                         void *ctx);
    /* The seq of a space at the snapshot of the last poll. */
    hd_status (*seq_of)(authority *a, struct key *space, uint64_t *out);
    /* Keeps rows without a commit, proved as of now: of an authority that nobody else uses (see
     * `confirm`). NULL: there is no such way. */
    hd_status (*keep)(authority *a, hd_value extra);
} basis_ops;

#endif
