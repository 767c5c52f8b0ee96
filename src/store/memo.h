/* memo.h -- memos: texts that a commit keeps in the store, beside documents.
 *
 * A *memo* stands under a name and an instance. A later commit replaces it or deletes it. It is kept with the seqs that
 * the spaces which it names had when it was admitted, so that a reader can ask which of their documents have changed
 * since (authority_ops.changes). What else its texts mean is known to the author alone; memos of the scheduler are rows
 * of nodes (docs/RESUME.md).
 *
 * Memos travel in the `extra` of a commit:
 *
 *     {"gone":  [["main:corner:prices/7", ""], ...],
 *      "nodes": [["main:corner:prices", "", "...", "...", "...", "main/corner#/items\n=main/prices"], ...]}
 *
 * gone    [name, instance]: the memo is deleted. Deletions come before the memos.
 * nodes   [name, instance, three texts of the author, cells], all texts: replaces the memo.
 *         cells   one in a line: "space/id..." or "space@scope/id...", behind any of the marks "?~="
 *
 * A name is "space:piece:path". Memos of a piece, the part before the second ':', are asked for together. The memo is
 * as of the moment of admission: of the seqs that the spaces of its cells have then, this commit's own included.
 *
 * An extra may have further keys: they reach other runtimes and are not kept. One that is not of this form and is found
 * in a log is damage, and left out. A commit with an extra and nothing else is admitted (its claims are judged) and
 * takes no seq. */
#ifndef STORE_MEMO_H
#define STORE_MEMO_H

#include "base/table.h"
#include "base/vec.h"
#include "value/array.h"
#include "value/text.h"

/* The texts of a memo; an item of "gone" has the first two. */
enum { MEMO_NAME, MEMO_INSTANCE, MEMO_CELLS = MEMO_INSTANCE + 4, MEMO_ITEMS };
enum { GONE_ITEMS = MEMO_INSTANCE + 1 };

/* One memo as it is kept. Texts and values are borrowed for the call. */
typedef struct memo {
    const char *text[MEMO_ITEMS];
    /* As of these seqs, by space: an object. It has at least the spaces of the cells, with 0 if they had
     * never been written. Absent: the store has not admitted the memo yet. */
    hd_value seqs;
} memo;
typedef bool (*memo_fn)(void *ctx, const memo *m); /* false stops */

/* ---- The form */

/* The parts of an extra, borrowed; absent: it has none. */
typedef struct memo_extra {
    hd_value kept, gone;
} memo_extra;
memo_extra memo_extra_of(hd_value extra);

/* What is wrong with the form of an extra; NULL: nothing. O(size). */
const char *memo_fault(hd_value extra);

/* One of the texts of an item, borrowed. */
static inline const char *memo_text(hd_value item, size_t i, size_t *length) {
    size_t unwanted;
    assert(i < array_count(item)); /* the extra was found to be well formed */
    return text_of(array_get(item, i), length ? length : &unwanted);
}
/* An item as a memo, borrowed; one of "gone" as a memo whose other texts are empty. */
memo memo_of(hd_value item, hd_value seqs);

/* The space that the next of *cells names, which moves behind it; false: there is none. *length is 0 if it names
 * no document. */
bool memo_next_space(const char **cells, const char **space, size_t *length);

/* The length of the piece in front of a name; 0: it is no name of a memo. */
size_t memo_piece_length(const char *name, size_t length);
/* The space as it stands in front of names: ':' is "%3A" there, '%' is "%25", so that the first colon
 * ends it. False: no room. */
bool memo_print_space(const char *space, char *out, size_t size);
/* The space that was printed so. False: no room. */
bool memo_parse_space(const char *text, size_t length, char *out, size_t size);

/* ---- Memos in memory: those of a memory authority, and what a file's log has after its checkpoint. */

typedef struct memo_entry {
    hd_value item;       /* owned: the item of the extra that came last */
    hd_value seqs;       /* owned: as of; an object. Absent: the memo is deleted (memos.overlay) */
    uint64_t at;         /* the log row that changed it last */
    uint32_t hash;       /* of name and instance */
    uint32_t piece_hash; /* of the piece in front of the name */
    uint32_t before, next; /* entries of the same piece; TABLE_NONE: there is none */
} memo_entry;

static inline bool memo_is_gone(const memo_entry *e) { return value_is_absent(e->seqs); }

typedef struct memos {
    const hd_env *env;
    hd_heap *heap;
    /* There are memos below these, in the file: entries of deleted ones are kept, to hide those. */
    bool overlay;
    VEC(memo_entry) entries;
    table by_name;    /* every entry */
    table by_piece;   /* the first entry of each piece */
    uint64_t trimmed; /* there is nothing up to this log row */
} memos;

/* Where the sequences stand; 0 for a space that was never written. */
typedef struct memo_point {
    void *ctx;
    uint64_t (*seq_of)(void *ctx, const char *space, size_t length);
} memo_point;

void memos_init(memos *all, const hd_env *env, hd_heap *heap, bool overlay);
void memos_fini(memos *all);
void memos_check(const memos *all);

/* Takes a well-formed extra in, as of `now`, from log row `at`. HD_NOMEM: it may be in half; applying it
 * again completes it. */
hd_status memos_apply(memos *all, hd_value extra, const memo_point *now, uint64_t at);
/* Forgets every memo that the extra speaks of. Cannot fail. */
void memos_drop(memos *all, hd_value extra);
/* Forgets what changed last in a log row up to and including `at`. */
void memos_trim(memos *all, uint64_t at);

const memo_entry *memos_find(const memos *all, const char *name, const char *instance);
/* Whether the entry is the first of its piece, whose name it then prints. False, too: the name is too long. */
enum { PIECE_SIZE = 1104 };
bool memos_first_of(const memo_entry *e, char piece[PIECE_SIZE]);
/* Tells the memos of a piece, in any order; not deleted ones, nor those that log rows before `from` changed last. */
void memos_tell(const memos *all, const char *piece, uint64_t from, memo_fn fn, void *ctx);

#endif
