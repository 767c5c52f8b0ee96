/* basis.h -- what a store keeps about nodes, so that a restart runs nothing that need not run.
 *
 * Every named computation has a *row*: which code it was, what it read, and a hash of what it found
 * there. Rows travel in the `extra` of a commit, the one that carries the node's outputs, and the
 * authority keeps them: memory in a table, SQLite in the log first and with the next checkpoint in
 * `node`. The whole design is told in docs/RESUME.md.
 *
 *     {"nodes": [["main:corner:prices", "", "mrk", "hashes", "print", {"r": ["main/corner#/items"]}],
 *                ["main:corner:total", "", "mrk", "hashes"]],
 *      "gone":  [["main:corner:prices/7", ""], ...]}
 *
 * nodes   [name, instance, mark, hashes, print, body]: replaces the row. `print` is the fingerprint of
 *         the code, `mark` a short hash of code and reads, `hashes` a text of HASH_TEXT characters for
 *         each slot (basis_hash.h). The body is the scheduler's: "r", the reads, as cells in text
 *         ("space/id#/path", with a scope "space@user/id", of metadata "space/id!"), with a '~' in
 *         front where only the shape was read, and before that a '?' where it is not claimed; behind them, with a '=' in front, what the node writes,
 *         if a write by others there is a reason to run; "seen", seqs by space, for reads that the
 *         commit does not claim; "derived", "failed". "r" must be there, if only empty.
 *         [name, instance, mark, hashes]: the node ran again, with the same code and the same reads;
 *         these are the hashes now. If the store has a row with another mark, that row is not about
 *         the outputs that are there now: it is deleted.
 *         Either holds as of the moment of admission: of the seqs that all spaces have then, this
 *         commit's own included.
 * gone    [name, instance]: the row is deleted. Comes after the nodes.
 *
 * What is not of this form is refused, the commit with it (HD_PROTOCOL).
 *
 * A name is "space:piece:path"; the part before the second ':' is the piece, and the row is owned by that
 * space. An instance is "" where the node reads and writes documents of space scope only; else "user:NAME"
 * or "session:NAME", the narrower of them: one principal's rows never serve another. The instance "gates"
 * is a row beside these: its body has the gates that the program has set, and no reads.
 *
 * A commit with an extra and nothing else is admitted (its claims are judged) and takes no seq. */
#ifndef STORE_BASIS_H
#define STORE_BASIS_H

#include "base/table.h"
#include "store/authority.h"
#include "store/basis_name.h"
#include "value/array.h"
#include "value/text.h"

enum { HASH_TEXT = 11 }; /* characters of one hash */

/* The reads of a body that says nothing else, in its text, where they stand as they are. */
typedef struct basis_plain {
    const char *at, *end; /* from the first cell's quote on; NULL: it is not such a body */
} basis_plain;

/* One row as it is kept. Texts and values are borrowed for the call. */
typedef struct basis_row {
    const char *name, *instance, *mark, *hashes, *print;
    hd_value body;
    basis_plain plain; /* instead of a body: most rows of a file need no value */
    /* As of these seqs, by space: an object. It has at least the spaces that the row reads, with 0 if
     * they had never been written. Absent: the store has not admitted the row yet. */
    hd_value seqs;
} basis_row;
typedef bool (*basis_row_fn)(void *ctx, const basis_row *row); /* false stops */

/* A document that this replica has a place for has changed since. `seq` is that of its last change;
 * UINT64_MAX: it cannot be told any more, the document has to be looked at. */
typedef bool (*basis_change_fn)(void *ctx, place_id doc, uint64_t seq);

typedef bool (*basis_piece_fn)(void *ctx, const char *piece);

typedef struct basis_ops {
    /* All rows of a piece ("space:piece") at the snapshot of the last poll, in order of name and
     * instance. One query, whatever their number. */
    hd_status (*rows)(authority *a, const char *piece, basis_row_fn fn, void *ctx);
    /* The pieces that have rows, each once. */
    hd_status (*pieces)(authority *a, basis_piece_fn fn, void *ctx);
    /* Every document with a place in the replica that has changed in a space after `seq`, up to the
     * snapshot of the last poll. Reads no document. */
    hd_status (*changes)(authority *a, struct key *space, uint64_t seq, basis_change_fn fn,
                         void *ctx);
    /* The seq of a space at the snapshot of the last poll. */
    hd_status (*seq_of)(authority *a, struct key *space, uint64_t *out);
    /* The metadata of a document at the same snapshot, owned; absent: it has none. Makes no place. */
    hd_status (*metadata)(authority *a, place_id doc, hd_value *out);
} basis_ops;

/* ---- The form (basis_form.c) */

/* The parts of an extra, borrowed; absent: it has none. */
typedef struct basis_extra {
    hd_value nodes, gone;
} basis_extra;
basis_extra basis_extra_of(hd_value extra);

/* Whether an extra says what it should; `error` (may be NULL) tells where it does not. An extra may
 * have other keys as well. O(size). */
bool basis_well_formed(hd_value extra, hd_error *error);

enum { ROW_NAME, ROW_INSTANCE, ROW_MARK, ROW_HASHES, ROW_PRINT, ROW_BODY, ROW_ITEMS };
/* An item of "nodes" that is a whole row. */
static inline bool basis_is_whole(hd_value item) { return array_count(item) == ROW_ITEMS; }
/* One of the texts of an item, borrowed. */
static inline const char *basis_item_text(hd_value item, size_t i, size_t *length) {
    size_t unwanted;
    return text_of(array_get(item, i), length ? length : &unwanted);
}

/* One read of a body, taken apart; texts are borrowed from it and carry their lengths. */
typedef struct basis_read {
    const char *space, *id, *path; /* path is a pointer, "" for the whole document */
    size_t space_length, id_length, path_length;
    hd_scope scope;
    bool shape;
    bool unclaimed; /* the commit does not claim it */
    bool output;    /* it was not read but written */
} basis_read;
/* A cell in its text. False: it is malformed. */
bool basis_parse_cell(const char *text, size_t length, basis_read *out);
/* The reads of a body, borrowed: a list, else nothing well formed. */
hd_value basis_reads_of(hd_value body);
/* False: it is malformed. */
bool basis_read_at(hd_value reads, size_t i, basis_read *out);
bool basis_body_is_well_formed(hd_value body);

/* {"r":["cell","cell"]}: no other field, nothing escaped. */
basis_plain basis_plain_of(const char *text, size_t length);
/* The next cell; false: there is none. */
bool basis_plain_next(basis_plain *p, const char **cell, size_t *length);

/* ---- Rows in memory: those of a memory authority, what a file's log has after its checkpoint, and what
 * a runtime has sent and not heard of yet. */

typedef struct basis_entry {
    hd_value item;  /* owned: the item of the extra that came last; two texts where it is gone */
    hd_value whole; /* owned: the last whole row; absent: it is below, or gone */
    /* As of: one space and its seq, as most rows read but one; else an object, owned. */
    struct key *space;
    uint64_t seq;
    hd_value seqs;
    uint64_t at;    /* the log row that changed it last */
    uint32_t hash;  /* of name and instance */
    uint32_t piece; /* index into pieces */
    uint32_t slot;  /* in the piece's rows */
    bool gone;      /* only where something may be below */
} basis_entry;

typedef struct basis_piece {
    hd_value name; /* owned: a text */
    uint32_t hash;
    bool sorted;        /* rows are in order of name and instance */
    VEC(uint32_t) rows; /* indices into entries; never empty */
} basis_piece;

typedef struct basis {
    const hd_env *env;
    hd_heap *heap;
    /* There are rows below these, in the file: that a row is gone must be remembered, and an item that
     * is not whole may speak of a row there. */
    bool overlay;
    VEC(basis_entry) entries;
    VEC(basis_piece) pieces;
    table by_name, by_piece;
    uint64_t trimmed; /* there is nothing up to this log row */
} basis;

/* Where the sequences stand: space number i, from 0 until false. */
typedef struct basis_point {
    void *ctx;
    bool (*space)(void *ctx, uint32_t i, struct key **name, uint64_t *seq);
} basis_point;

void basis_init(basis *b, const hd_env *env, hd_heap *heap, bool overlay);
void basis_fini(basis *b);
void basis_check(const basis *b);

/* Takes a well-formed extra in, as of `now`, from log row `at`. HD_NOMEM: it may be in half; applying it
 * again completes it. */
hd_status basis_apply(basis *b, hd_value extra, const basis_point *now, uint64_t at);
/* Forgets every row that the extra speaks of: without rows, nodes run. Cannot fail. */
void basis_drop(basis *b, hd_value extra);
/* Forgets what changed last in a log row up to and including `at`. */
void basis_trim(basis *b, uint64_t at);

const basis_entry *basis_find(const basis *b, const char *name, const char *instance);
basis_piece *basis_find_piece(const basis *b, const char *name, size_t length);
/* Brings the rows of a piece into order. */
void basis_sort(const basis *b, basis_piece *p);

/* Its seqs as an object, owned; failed: HD_NOMEM. */
hd_value basis_seqs_of(const basis *b, const basis_entry *e);
/* The entry as a row, borrowed; of one with a whole row only. The seqs are the caller's business. */
basis_row basis_row_of(const basis_entry *e, hd_value seqs);
/* Whether what the entry says last is about a row with this mark. */
bool basis_is_about(const basis_entry *e, const char *mark, size_t length);
/* Tells the whole rows of a piece in order of name; gone ones are left out. */
void basis_tell(basis *b, const char *piece, basis_row_fn fn, void *ctx);

#endif
