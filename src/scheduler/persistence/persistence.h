/* persistence.h -- rows: what the store keeps of nodes, and how a restart uses it (spec 9; docs/RESUME.md).
 *
 * A computation with a durable name has a *row* in the store: which code it was, what it read and wrote,
 * and hashes of what it found there (store/basis.h). A row is true by value: whenever the reads and the
 * outputs have these hashes, a run would change nothing. So a row may be written late, or not at all, and
 * may be taken up at any time by any runtime with the same code; a node without a row runs, and that is all.
 *
 * A restart registers the node, finds the row, puts the reads into the index and calls the node clean,
 * without loading a document. Documents that have changed since the row was written, and no others, are
 * loaded, and what the node would find there now is compared.
 *
 *     run --> due --> seal: row + claims --> store                 (persistence.c, rows.c, match.c)
 *     register --> resume set of its piece --> reads, clean        (set.c, resume.c, reads.c)
 *     another runtime's commit --> reads, clean                    (adopt.c)
 *     first run --> metadata of its outputs: the piece             (origin.c)
 *
 * Names (name.c): "space:piece:path", a child's below its parent's with a '/'. A node that was
 * registered on the runtime itself belongs to the piece `main` of its output's space. Without a name, or
 * below a node without one, nothing is kept. Effects have no row of what they read: they run once after
 * a restart. Nor has a node whose run creates others: it runs to create them again, and they do not run.
 * Nor has a node that reads or writes volatile documents. Gates that the program sets have a row of their
 * own.
 *
 * s->persistence is NULL where the store ends with the runtime: there rows would be of no use. */
#ifndef SCHEDULER_PERSISTENCE_H
#define SCHEDULER_PERSISTENCE_H

#include "base/hash.h"
#include "scheduler/registry.h"
#include "store/basis_hash.h"

#define FINGERPRINT_FORMAT "3" /* rows with another format in their fingerprint are not taken up */

enum {
    KEPT_DUE = 1,      /* in persistence.due */
    KEPT_ROW = 2,      /* the store has, or has been sent, a row of it */
    KEPT_AGAIN = 4,    /* its next row is written even if the hashes are those of the last one */
    KEPT_FAILED = 8,   /* its last run failed */
    KEPT_CREATES = 16, /* it has no row of what it reads: an effect, or its runs create nodes */
    KEPT_DERIVED = 32, /* as in the row: it reads what other pieces write */
    KEPT_GATES = 64,   /* the program has set its gates: they have a row */
    KEPT_TAKEN = 128,  /* scratch of a seal: its row is in there */
    KEPT_SAME = 256    /* scratch of a seal: the row in the store is still right */
};

/* Beside each node. Values are owned. */
typedef struct kept_node {
    hd_value name;     /* a string; absent: the node has no durable name */
    hd_value print;    /* its fingerprint, a string */
    hd_value hashes;   /* of its last row; absent: its reads have changed since, or it has none */
    uint64_t rev;      /* the replica's, as of which the hashes are right */
    uint64_t wrote_in; /* local seq of its own last commit: until its verdict no row is written */
    uint32_t piece;    /* index into persistence.pieces */
    uint16_t flags;    /* KEPT_ */
    uint8_t narrow;    /* of the instance: hd_scope; 0 is HD_SCOPE_SPACE */
} kept_node;

struct resume_set;

/* A piece of which this runtime has nodes with names. */
typedef struct kept_piece {
    hd_value name;          /* "space:piece", owned */
    uint32_t nodes;         /* that are registered now */
    bool plain;             /* "space:main": nodes that belong to no piece */
    bool asked;             /* the store has been asked for its rows */
    struct resume_set *set; /* its rows; NULL: there are none, or all have been taken up */
} kept_piece;

typedef struct persistence {
    VEC(kept_node) nodes; /* by node */
    VEC(kept_piece) pieces;
    table piece_names;
    table names; /* of nodes */
    VEC(node_id) due;
    VEC(node_id) gated;   /* whose gates are to be stored */
    VEC(node_id) unasked; /* resumed nodes for which ask_for_writers has not been called */
    VEC(node_id) unsaid;  /* nodes whose outputs' metadata does not name their piece yet */
    VEC(hd_value) gone;   /* rows that the next seal deletes: [name, instance], owned */
    hd_value instances[HD_SCOPE_SESSION + 1]; /* texts, owned; absent: not asked for yet */
    uint64_t due_at; /* when rows that are due are sealed alone, if no seal takes them; 0: not */
    uint64_t refused_at; /* the replica's revision when a seal was refused last; 0: never */
    bool wanted;        /* rows are written now; else they wait, at most until the runtime closes */
    uint32_t stopping;  /* pieces; not 0: nodes that are removed now keep their rows */
    VEC(uint32_t) keys; /* scratch of match_keys */
    VEC(char) text;     /* scratch: a fingerprint, or the reads of a row */
    uintptr_t code_from, code_size; /* the module of the last function asked about (code.c) */
    char build[HD_ID_SIZE];         /* its build */
    char build_prefix[12];          /* the beginning of `build` */
} persistence;

hd_status persistence_init(scheduler *s);
void persistence_fini(scheduler *s);
/* At the beginning of each pump: the store may want rows that it did not want before. */
void persistence_pump(scheduler *s);
/* When persistence_pump should be called at the latest; UINT64_MAX: no such time. */
uint64_t persistence_next(const scheduler *s);
/* The runtime closes: a store in memory wants the rows now, for the next runtime. */
void persistence_closing(scheduler *s);
/* All commits have their verdict, and no node will run any more: renews rows that have aged. */
void persistence_last(scheduler *s);
/* Whether a seal now would write or delete a row. */
bool persistence_is_ready(const scheduler *s);

/* Asserts what must hold between pumps (check.c). */
#ifndef NDEBUG
void persistence_check(const scheduler *s);
#else
static inline void persistence_check(const scheduler *s) { (void)s; }
#endif

/* ---- a node's life */

/* The node was just registered. If the store has a row of the same code, the node gets its reads from the row
 * and is clean, or invalid if what it read has changed. HD_NOMEM. */
hd_status persistence_registered(scheduler *s, node_id id, const hd_node_spec *spec);
/* The running node registers nodes or handlers; and has registered all of them: other rows below it are
 * deleted. */
void persistence_creates(scheduler *s, node_id id);
void persistence_created(scheduler *s, node_id id);

void persistence_ran_slow(scheduler *s, node_id id);
/* A run has been completed. */
static inline void persistence_ran(scheduler *s, const node *n) {
    if (n->flags & NODE_NOTED) persistence_ran_slow(s, (node_id)(n - s->graph.nodes));
}
/* ... and has failed. */
void persistence_failed(scheduler *s, node_id id);
void persistence_reads_changed(scheduler *s, node_id id);
/* A run's commit was queued beside the seals. */
void persistence_wrote(scheduler *s, node_id id, uint64_t local_seq);
/* The program has set a gate. */
void persistence_gated(scheduler *s, node_id id);

/* ---- pieces */

/* The piece is about to stop: rows that have aged are due. What is due is to be sealed after that. */
void persistence_stops(scheduler *s, const char *space, const char *piece);
/* The nodes that are removed until the second call keep their rows: their piece stops. */
void persistence_stopping(scheduler *s, bool on);
/* A piece has been built: rows of nodes that it did not register are deleted, but for those below its
 * nodes, which may register children when they run. */
void persistence_built(scheduler *s, const char *space, const char *piece);
/* Deletes all rows of a piece. */
void persistence_drop_piece(scheduler *s, const char *space, const char *piece);

/* ---- between the files of this component */

static inline kept_node *kept_of(const scheduler *s, node_id id) {
    assert(s->persistence && id < s->persistence->nodes.count);
    return &s->persistence->nodes.items[id];
}
/* The document that a place is in. */
static inline place *doc_of(const scheduler *s, place_id at) {
    return place_doc(&s->r->places, at);
}
static inline uint32_t kept_name_hash(const char *name, size_t length) {
    return hash_fold(hash_bytes(name, length, 0));
}
static inline bool kept_has_name(const kept_node *k) { return value_exists(k->name); }
static inline hd_scope kept_scope(const kept_node *k) {
    return k->narrow ? (hd_scope)k->narrow : HD_SCOPE_SPACE;
}
void persistence_due(scheduler *s, node_id id);
/* Rows are due: if no seal takes them within QUIET_NS, they are sealed alone. */
void persistence_soon(scheduler *s);
/* Updates replica.due, after a list of what is due has changed. */
void persistence_count_due(scheduler *s);

/* name.c */
enum { NAME_SIZE = 1024 };
/* Borrowed. */
const char *kept_name(const kept_node *k, size_t *length);
/* The node of a durable name; 0: none. */
node_id persistence_find(const scheduler *s, const char *name, size_t length);
/* "space:piece:path", from the names of the node and those above it. False: it has none. */
bool name_of_node(const scheduler *s, node_id id, char out[NAME_SIZE]);
/* The piece in front of a name, made if need be. */
hd_status name_piece(scheduler *s, const char *name, uint32_t *out);
/* NULL: no node of it is, or was, registered here. */
kept_piece *persistence_piece(const scheduler *s, const char *space, const char *piece);
/* "space:piece"; 0: no room. */
size_t name_print_piece(const char *space, const char *piece, char out[NAME_SIZE]);

/* code.c */
hd_value fingerprint_of(scheduler *s, node_id id, const hd_node_spec *spec, const char *name);
/* The build that contains the function, as text; good until the next call. */
const char *persistence_build_of(scheduler *s, const void *fn);
/* Enough of it to tell builds apart, for stamps; NULL: nothing outlives the runtime. */
const char *persistence_build_prefix(scheduler *s, const void *fn);

/* match.c: hashes of what a node's keys find now. The keys of a row are the node's reads and, behind them,
 * its outputs (not its envelopes: other nodes may write there as well). */
/* Borrowed: scratch. NULL: no memory. */
const uint32_t *match_keys(scheduler *s, node_id id, uint32_t *count);
/* The slots of keys whose place has changed after `rev`. */
uint32_t match_changed(const scheduler *s, const uint32_t *keys, uint32_t count, uint64_t rev);
/* The slots all of whose documents are known here. */
uint32_t match_known(const scheduler *s, const uint32_t *keys, uint32_t count);
/* Hashes of the slots in `mask`; returns how many slots there are. Their documents must be known. */
uint32_t match_hash(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                    uint64_t out[SLOTS]);
/* The slots of `mask` whose hashes differ from those of a row; all, if the row has another number of slots.
 * Their documents must be known. */
uint32_t match_differing(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                         const char *hashes);
/* Whether the keys in the slots of `mask` find what the hashes of a row say. Loads their documents; false
 * also if one cannot be loaded now. */
bool match_row(scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
               const char *hashes);

/* rows.c: what the store asks at a seal; see observer in store/replica.h. */
hd_status rows_keep(void *ctx, struct commit *c);
void rows_refused(void *ctx, const struct commit *c);
/* The text of an instance, borrowed; absent: no memory. */
hd_value rows_instance(scheduler *s, hd_scope scope);
/* Whether a row of the node could be written now. */
bool rows_can_keep(const scheduler *s, node_id id);
/* Nodes of the piece (UINT32_MAX: all) are due whose row holds, and whose documents have changed since. */
void rows_renew(scheduler *s, uint32_t piece);
/* The next seal deletes the row. Without memory the row stays: it has no effect while its node is not
 * registered. */
void rows_delete(scheduler *s, const char *name, const char *instance);
void rows_delete_of(scheduler *s, node_id id);
void rows_forget_deletions(scheduler *s);

/* adopt.c: another runtime's rows; see observer in store/replica.h. */
void adopt_observed(void *ctx, hd_value extra, hd_value seqs);

/* origin.c */
/* Writes into the metadata of the node's outputs which piece it is of; or tries again with a later
 * pump. */
void origin_say(scheduler *s, node_id id);
void origin_say_later(scheduler *s, node_id id);
void origin_pump(scheduler *s);
/* The piece that writes a document, "space:piece", owned; absent: none, or it cannot be told. */
hd_value origin_of(const scheduler *s, place_id doc);
/* Whether the node reads what other pieces write. */
bool origin_reads_others(const scheduler *s, node_id id);

/* reads.c: reads as they are written down in rows. */
/* A read becomes a key; its place has no reference yet. *home is that of the read before, 0 at first.
 * *output: it is no read, but what the node writes. */
hd_status reads_parse(scheduler *s, const char *text, size_t length, uint32_t *home, uint32_t *out,
                      bool *output);
/* Appends the cell "space/id#/path", as a line, to persistence.text. HD_NOMEM; HD_LIMIT: it cannot be written
 * down. */
hd_status reads_print(scheduler *s, uint32_t key, bool output);

/* set.c: the rows of a piece, when its first node is registered. */
enum { SCOPE_GATES = HD_SCOPE_HERE }; /* set_row.scope of a row of the instance "gates" */

typedef struct set_row {
    uint32_t name, print, hashes;      /* in resume_set.text, each with its NUL */
    uint32_t first_key, keys, outputs; /* in resume_set.keys; the last are not read but written */
    uint32_t debounce_ms, throttle_ms; /* of SCOPE_GATES */
    hd_value seqs;        /* as of; owned. Absent: it is in an own commit without a verdict */
    uint8_t scope;        /* of its instance: hd_scope, or SCOPE_GATES */
    bool claimed;         /* its node has been registered, or the row is to be deleted */
    bool derived, failed; /* as its body says */
} set_row;

/* A document that has changed. */
typedef struct set_change {
    place_id doc;
    uint64_t seq; /* its last; UINT64_MAX: not known */
} set_change;

struct resume_set {
    VEC(set_row) rows; /* in order of name; of a name the gates first, and at most one other */
    VEC(char) text;
    VEC(uint32_t) keys; /* with a reference to each place */
    VEC(set_change) changes;
    table by_doc; /* document -> index into changes; a document may stand there twice */
    uint64_t rev; /* the replica's, when this was made */
    uint32_t unclaimed;
    uint32_t next;    /* behind the row that was found last */
    hd_status status; /* while it is being made */
};
typedef struct resume_set resume_set;

/* What the store has of a piece, and what own commits without a verdict say of it. NULL: nothing. */
resume_set *set_make(scheduler *s, const char *piece);
/* One row, as it stands in an extra. NULL: it cannot be read, or is not this principal's. */
resume_set *set_of_item(scheduler *s, hd_value item);
void set_free(scheduler *s, resume_set *set);
static inline const char *set_text(const resume_set *set, uint32_t at) {
    assert(at < set->text.count);
    return &set->text.items[at];
}
static inline const uint32_t *set_keys(const resume_set *set, const set_row *of) {
    assert(of->first_key + of->keys <= set->keys.count && of->outputs <= of->keys);
    return set->keys.items ? &set->keys.items[of->first_key] : NULL;
}
/* The index of the first row of a name; TABLE_NONE: there is none. */
uint32_t set_find(resume_set *set, const char *name);
bool set_is_named(const resume_set *set, uint32_t i, const char *name);
/* The index of the first row whose name is not before this. */
uint32_t set_first_at_or_after(const resume_set *set, const char *name);
/* The slots of a row whose documents may have changed since it was written: these must be compared. */
uint32_t set_changed_slots(const scheduler *s, const resume_set *set, const set_row *row);

/* resume.c */
/* The node has its reads without a run: if pieces write some of them, those are opened when it is
 * live. */
hd_status resume_ask_later(scheduler *s, node_id id);
hd_status resume_take(scheduler *s, node_id id);
/* Gives the node the reads and hashes of its row, and if the row holds calls it clean. HD_NOMEM. */
hd_status resume_install(scheduler *s, node_id id, const resume_set *set, const set_row *row,
                         bool holds);
void resume_free(scheduler *s, kept_piece *of);
/* Deletes the rows whose name begins with `prefix` and that no node has taken up. */
void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix);
void resume_drop_all(scheduler *s, const char *piece);
void resume_drop_unbuilt(scheduler *s, kept_piece *of);

#endif
