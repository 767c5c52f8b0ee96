/* basis.h -- what a store keeps about nodes, so that a restart runs nothing that need not run.
 *
 * A computation with a durable name has a *row*: which code it was, what it read and wrote, and hashes of
 * what it found there. Rows travel in the `extra` of a commit, and the authority keeps them: memory in a
 * table, SQLite in the log first and from the next checkpoint on in the table `node`. docs/RESUME.md
 * describes the whole design.
 *
 *     {"gone":  [["main:corner:prices/7", ""], ...],
 *      "nodes": [["main:corner:prices", "", "hashes", "print", "", "main/corner#/items\n=main/prices"], ...]}
 *
 * gone    [name, instance]: the row is deleted. Deletions come before the nodes.
 * nodes   [name, instance, hashes, print, flags, reads], all texts: replaces the row.
 *         hashes  HASH_TEXT characters for each cell of the reads
 *         print   the fingerprint of the code
 *         flags   'd': other pieces write some of what it reads; 'f': the run failed
 *         reads   cells, one in a line: "space/id#/path", with a scope "space@user/id", of metadata
 *                 "space/id!", with a '~' in front where only the shape was read, and before that a '?'
 *                 where the run did not claim it; behind the reads, with a '=' in front, what the node writes
 *         A row is as of the moment of admission: of the seqs that the spaces which it reads have then,
 *         this commit's own included.
 *
 * lead    the session that made the commit, if it has the lease to derive for some space: others then wait for
 *         its results (scheduler/persistence/lead.c). It is not kept.
 *
 * The scheduler makes extras. One of another form that is found in a log is damage, and left out.
 *
 * A name is "space:piece:path"; the part before the second ':' is the piece, and the row is owned by that
 * space. An instance is "" where the node reads and writes documents of space scope only; else "user:NAME"
 * or "session:NAME", the narrower of them: one principal's rows never serve another. The instance "gates"
 * is a row beside these: its flags are the gates that the program has set, "debounce throttle" in
 * milliseconds, and it has no reads.
 *
 * A commit with an extra and nothing else is admitted (its claims are judged) and takes no seq. */
#ifndef STORE_BASIS_BASIS_H
#define STORE_BASIS_BASIS_H

#include "base/table.h"
#include "store/authority.h"
#include "store/basis/name.h"
#include "value/array.h"
#include "value/text.h"

enum { HASH_TEXT = 11 }; /* characters of one hash */

/* One row as it is kept. Texts and values are borrowed for the call. */
typedef struct basis_row {
    const char *text[ROW_ITEMS];
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
    /* All rows of a piece ("space:piece") at the snapshot of the last poll, in any order. One query,
     * whatever their number. */
    hd_status (*rows)(authority *a, const char *piece, basis_row_fn fn, void *ctx);
    /* The pieces that have rows, each once. */
    hd_status (*pieces)(authority *a, basis_piece_fn fn, void *ctx);
    /* Every document with a place in the replica that has changed in a space after `seq`, up to the
     * snapshot of the last poll. Reads no document. */
    hd_status (*changes)(authority *a, struct key *space, uint64_t seq, basis_change_fn fn,
                         void *ctx);
    /* The seq of a space at the snapshot of the last poll. */
    hd_status (*seq_of)(authority *a, struct key *space, uint64_t *out);
} basis_ops;

/* ---- The form (form.c) */

/* The parts of an extra, borrowed; absent: it has none. */
typedef struct basis_extra {
    hd_value nodes, gone;
    const char *lead; /* the session that leads in some space; NULL: none was named */
} basis_extra;
basis_extra basis_extra_of(hd_value extra);

/* What is wrong with the form of an extra, or of a row; NULL: nothing. An extra may have other keys as well. O(size). */
const char *basis_fault(hd_value extra);
const char *basis_row_fault(const basis_row *row);

/* One of the texts of an item, borrowed. */
static inline const char *basis_item_text(hd_value item, size_t i, size_t *length) {
    size_t unwanted;
    assert(i < array_count(item)); /* the extra was found to be well formed */
    return text_of(array_get(item, i), length ? length : &unwanted);
}

/* One cell of a row's reads, taken apart; texts are borrowed from it and carry their lengths. */
typedef struct basis_read {
    const char *space, *id, *path; /* path is a pointer, "" for the whole document */
    size_t space_length, id_length, path_length;
    hd_scope scope;
    bool shape;
    bool unclaimed; /* the run did not claim it */
    bool output;    /* it was not read but written */
} basis_read;
/* False: it is malformed. */
bool basis_parse_cell(const char *text, size_t length, basis_read *out);
/* The next cell of *reads, which moves behind it; false: there is none. */
bool basis_next_cell(const char **reads, const char **cell, size_t *length);

/* ---- Rows in memory: those of a memory authority, what a file's log has after its checkpoint, and what
 * a runtime has sent and not heard of yet. */

typedef struct basis_entry {
    hd_value item;         /* owned: the item of the extra that came last */
    hd_value seqs;         /* owned: as of; an object. Absent: the row is deleted (basis.overlay) */
    uint64_t at;           /* the log row that changed it last */
    uint32_t hash;         /* of name and instance */
    uint32_t piece_hash;   /* of the piece in front of the name */
    uint32_t before, next; /* entries of the same piece; TABLE_NONE: there is none */
} basis_entry;

static inline bool basis_is_gone(const basis_entry *e) { return value_is_absent(e->seqs); }

typedef struct basis {
    const hd_env *env;
    hd_heap *heap;
    /* There are rows below these, in the file: entries of deleted rows are kept, to hide those. */
    bool overlay;
    VEC(basis_entry) entries;
    table by_name;    /* every entry */
    table by_piece;   /* the first entry of each piece */
    uint64_t trimmed; /* there is nothing up to this log row */
} basis;

/* Where the sequences stand; 0 for a space that was never written. */
typedef struct basis_point {
    void *ctx;
    uint64_t (*seq_of)(void *ctx, const char *space, size_t length);
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
/* Whether the entry is the first of its piece, whose name it then prints. False, too: the name is too long. */
enum { PIECE_SIZE = 1104 };
bool basis_first_of(const basis_entry *e, char piece[PIECE_SIZE]);
/* An item of "nodes" as a row, borrowed; one of "gone" as a row whose other texts are empty. */
basis_row basis_row_of(hd_value item, hd_value seqs);
/* Tells the rows of a piece, in any order; not deleted ones, nor those that log rows before `from` changed last. */
void basis_tell(const basis *b, const char *piece, uint64_t from, basis_row_fn fn, void *ctx);

#endif
