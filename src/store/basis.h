/* basis.h -- what a store keeps about nodes, so that a restart runs nothing that need not run.
 *
 * Every named computation has a *row*: which code it was (fingerprint), what it read, and up to which
 * point of the store that reading is proved. Rows travel in the `extra` of a commit, the one whose
 * claims prove them, and are kept by the authority: memory in a table, SQLite in the log first and
 * with the next checkpoint in `node`. Nothing is marked when somebody changes a document; whether a row
 * still holds is found out when its piece is resumed, from what has changed since alone.
 *
 *     {"nodes":  [["main:corner:prices", "", "~5f0c", {"r": ["main/corner#/items", ...]}],
 *                 ["main:corner:total", "", "5f0c"]],
 *      "pieces": [["main:corner", {"main": 97}, ["main:corner:total"]]],
 *      "gone":   [["main:corner:prices/7", ""], ...]}
 *
 * nodes   [name, instance, fingerprint, body]: replaces the row. The body is the scheduler's own: "r",
 *         the reads, as cells in text ("space/id#/path", with a scope "space@user/id", of metadata
 *         "space/id!"), by shape with a '~' in front; a read that is no claim as [cell, seq], with
 *         the seq that was seen; and last, with a '=' in front, what the node writes, if somebody else's
 *         write there is a reason to run. "derived" where other pieces write some of that; and gates. "r"
 *         must be there, if only empty.
 *         [name, instance, mark]: the row stands as it is, and is proved anew: same code, same reads.
 *         The mark is the end of that row's fingerprint. If another code has replaced the row in the
 *         meantime, the proof is not about what is there now, and says nothing. ([name, instance],
 *         which earlier versions wrote, never says anything.)
 *         Either is proved at the moment of admission: as of the sequence numbers that all spaces
 *         have then, this commit's own included.
 * pieces  [piece, seqs, stale]: whatever rows the piece has are valid up to these seqs (by space), but
 *         for those named, which are stale whatever the store says, until they are written again.
 * gone    [name, instance]: the node is no more. (With a mark behind it, too.)
 *
 * Within one extra nodes come first, then pieces, then gone. What is not of this form is refused, the
 * commit with it (HD_PROTOCOL).
 *
 * A name is "space:piece:path"; the part before the second ':' is the piece, and the row is owned by that
 * space. An instance is "" where the node reads and writes documents of space scope only; else "user:NAME"
 * or "session:NAME", the narrower of them: one principal's rows never serve another.
 *
 * A commit with an extra and nothing else is admitted (its claims are judged) and takes no seq. */
#ifndef STORE_BASIS_H
#define STORE_BASIS_H

#include "base/table.h"
#include "store/authority.h"
#include "store/basis_name.h"
#include "store/basis_proofs.h"
#include "value/array.h"
#include "value/text.h"

/* The reads of a body that says nothing else, in its text, where they stand as they are. */
typedef struct basis_plain {
    const char *at, *end; /* from the first cell's quote on; NULL: it is not such a body */
} basis_plain;

/* One row as it is kept. Texts and values are borrowed for the call. */
typedef struct basis_row {
    const char *name, *instance, *fingerprint;
    hd_value body;
    basis_plain plain; /* instead of a body: nothing need be made of most rows of a file */
    bool stale;
    /* Proved as of these seqs, by space: an object. It has at least the spaces that the row reads, with
     * 0 if they had never been written (earlier versions left those out). */
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

typedef bool (*basis_stale_fn)(void *ctx, const char *piece, uint64_t nodes);

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
    /* How far back changes can be told one by one, in the authority's own terms: it grows when some are
     * forgotten. NULL: no program that could be killed depends on it. */
    hd_status (*reach)(authority *a, uint64_t *out);
    /* The metadata of a document at the same snapshot, owned; absent: it has none. Makes no place. */
    hd_status (*metadata)(authority *a, place_id doc, hd_value *out);
    /* Keeps rows without a commit, proved as of now: of an authority that nobody else uses (see
     * `confirm`). NULL: there is no such way. */
    hd_status (*keep)(authority *a, hd_value extra);
    /* The pieces that have rows which hold no longer, and how many. NULL: there is no such way. */
    hd_status (*stale)(authority *a, basis_stale_fn fn, void *ctx);
} basis_ops;

/* ---- The form (basis_form.c) */

/* The parts of an extra, borrowed; absent: it has none. */
typedef struct basis_extra {
    hd_value nodes, pieces, gone;
} basis_extra;
basis_extra basis_extra_of(hd_value extra);

/* Whether an extra says what it should; `error` (may be NULL) tells where it does not. An extra may
 * have keys of other people's. O(size). */
bool basis_well_formed(hd_value extra, hd_error *error);

/* One read of a body, taken apart; texts are borrowed from it and carry their lengths. */
typedef struct basis_read {
    const char *space, *id, *path; /* path is a pointer, "" for the whole document */
    size_t space_length, id_length, path_length;
    hd_scope scope;
    bool shape;
    bool output;  /* it was not read but written: somebody else's write makes the row stale */
    bool claimed; /* else `seq` is what was seen */
    uint64_t seq;
} basis_read;
/* A cell in its text. False: it is malformed. */
bool basis_parse_cell(const char *text, size_t length, basis_read *out);
/* The reads of a body, borrowed: a list, else nothing well formed. */
hd_value basis_reads_of(hd_value body);
/* False: it is malformed. */
bool basis_read_at(hd_value reads, size_t i, basis_read *out);

/* {"r":["cell","cell"]}: no other field, nothing escaped, no read with a seq of its own. */
basis_plain basis_plain_of(const char *text, size_t length);
/* The next cell; false: there is none. */
bool basis_plain_next(basis_plain *p, const char **cell, size_t *length);

/* Whether a proof is about the row of this fingerprint: it ends with the mark. */
bool basis_mark_fits(const char *mark, size_t mark_length, const char *fingerprint, size_t length);
bool basis_is_meant(hd_value proof, const char *fingerprint, size_t length);

/* ---- Rows in memory: those of a memory authority, or what a file's log has after its checkpoint */

enum {
    ROW_WHOLE = 1, /* [name, instance, fingerprint, body]; else a proof of a row below */
    ROW_GONE = 2,  /* only where something may be below */
    ROW_STALE = 4
};

typedef struct basis_entry {
    hd_value row; /* owned: the item of the extra that it came from */
    /* Proved as of: one space and its seq, as most rows read but one; else an object. Owned. Of
     * ROW_GONE neither. */
    struct key *space;
    uint64_t seq;
    hd_value seqs;
    uint64_t at;    /* the log row that changed it last */
    uint32_t hash;  /* of name and instance */
    uint32_t piece; /* index into pieces */
    uint32_t slot;  /* in the piece's rows */
    uint8_t flags;  /* ROW_* */
} basis_entry;

typedef struct basis_piece {
    hd_value name;  /* owned: a text */
    hd_value valid; /* owned: seqs by space; absent: nothing was said */
    hd_value stale; /* owned: names; with `valid` */
    table named;    /* the same: by hash of the name into `stale` */
    uint64_t at;    /* the log row that said so */
    uint32_t hash;
    bool sorted;        /* rows are in order of name and instance */
    VEC(uint32_t) rows; /* indices into entries */
} basis_piece;

typedef struct basis_found {
    uint32_t hash, entry; /* TABLE_NONE: there was none */
} basis_found;

typedef struct basis {
    const hd_env *env;
    hd_heap *heap;
    /* There are rows below these, in the file: what is gone must be remembered, and what is proved
     * anew may be a row of there. */
    bool overlay;
    VEC(basis_entry) entries;
    VEC(basis_piece) pieces;
    table by_name, by_piece;
    VEC(basis_found) found; /* scratch: the entries that the rows of an extra speak of */
    uint64_t trimmed;       /* there is nothing up to this log row */
} basis;

/* Where the sequences stand: space number i, from 0 until false. */
typedef struct basis_point {
    void *ctx;
    bool (*space)(void *ctx, uint32_t i, struct key **name, uint64_t *seq);
} basis_point;

void basis_init(basis *b, const hd_env *env, hd_heap *heap, bool overlay);
void basis_fini(basis *b);
void basis_check(const basis *b);

/* Takes a well-formed extra in, proved as of `now`, from log row `at`. HD_NOMEM: it may be in half;
 * applying it again completes it. */
hd_status basis_apply(basis *b, hd_value extra, const basis_point *now, uint64_t at);
/* The same for proofs that are still text. */
hd_status basis_apply_proofs(basis *b, basis_proofs proofs, const basis_point *now, uint64_t at);
/* Forgets every row that the extra speaks of: without rows, nodes run. Cannot fail. */
void basis_drop(basis *b, hd_value extra);
/* Forgets what changed last in a log row up to and including `at`. */
void basis_trim(basis *b, uint64_t at);

const basis_entry *basis_find(const basis *b, const char *name, size_t name_length,
                              const char *instance, size_t instance_length);
basis_piece *basis_find_piece(const basis *b, const char *name, size_t length);
/* Brings the rows of a piece into order. */
void basis_sort(const basis *b, basis_piece *p);
/* Whether the piece's own record names the node as stale. One hash lookup. */
bool basis_names_stale(const basis_piece *p, const char *name);

static inline const char *basis_text(const basis_entry *e, size_t i, size_t *length) {
    size_t unwanted;
    return text_of(array_get(e->row, i), length ? length : &unwanted);
}
/* Its seqs as an object, owned; failed: HD_NOMEM. */
hd_value basis_seqs_of(const basis *b, const basis_entry *e);
/* The entry as a row, borrowed; of ROW_WHOLE only. The seqs are the caller's business. */
basis_row basis_row_of(const basis_entry *e, hd_value seqs);

#endif
