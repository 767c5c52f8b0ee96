/* persistence.h -- what is kept of nodes, and how it is taken up again (seed 9).
 *
 * A computation with a durable name has a *row* in the store: which code it was, and what it read.
 * Rows travel with seals (store/basis.h): a seal proves, by its claims, that what the node read is
 * what is there. So a restart need not run it: it registers the node, finds the row, puts the reads
 * into the index and calls the node clean, without looking at a single document. What has changed
 * meanwhile is asked of the store once for a whole piece.
 *
 *     run --> due --> seal: claims + row --> store           (persistence_rows.c)
 *     register --> resume set of its piece --> reads, clean  (persistence_resume.c, _reads.c)
 *     another runtime's seal --> reads, clean                (persistence_adopt.c)
 *     first run --> metadata of its outputs: the piece       (persistence_origin.c)
 *
 * Names: "space:piece:path", a child's below its parent's with a '/'. A node that was registered on
 * the runtime itself belongs to the piece `main` of its output's space. Without a name, or below a
 * node without one, nothing is kept. Effects have no row: they run once after a restart. Nor has a
 * node whose run creates others: it runs to create them again, and they do not run. Nor one that
 * reads or writes volatile documents.
 *
 * Off, and free, where the store dies with the runtime. */
#ifndef SCHEDULER_PERSISTENCE_H
#define SCHEDULER_PERSISTENCE_H

#include "base/hash.h"
#include "scheduler/registry.h"

#define FINGERPRINT_FORMAT "2" /* another one: nothing kept before is taken up */

enum {
    KEPT_DUE = 1,      /* in the list of nodes to keep */
    KEPT_ROW = 2,      /* the store has, or has been sent, a row */
    KEPT_CHANGED = 4,  /* the row must be written in full: code, reads or gates are others */
    KEPT_FAILED = 8,   /* its last run failed: whatever the store has is stale */
    KEPT_CREATES = 16, /* its runs create nodes: it has no row */
    KEPT_TAKEN = 32,   /* scratch of a seal: its row is in there */
    KEPT_DERIVED = 64, /* as in the row: it reads what other pieces write */
    KEPT_MENDS = 128 /* its outputs stand in the row: it holds only while they are what it wrote */
};

/* Beside each node. */
typedef struct kept_node {
    hd_value name;     /* a string, owned; absent: the node has no durable name */
    hd_value brief;    /* [name, instance, mark], owned; absent: nobody has asked for it yet */
    hd_value print;    /* its fingerprint, a string, owned */
    uint64_t sent_in;  /* local seq of the seal that carried its row last */
    uint64_t full_in;  /* the same for the whole row */
    uint64_t wrote_in; /* of its last commit beside the seals: no row before that is decided */
    uint32_t piece;    /* index into persistence.pieces */
    uint32_t debounce_ms, throttle_ms; /* as in the row */
    uint8_t flags;
    uint8_t narrow; /* of the instance: hd_scope */
} kept_node;

struct resume_set;

/* A piece of which this runtime has nodes with names. */
typedef struct kept_piece {
    hd_value name;          /* "space:piece", owned; absent: free */
    uint32_t nodes;         /* that are registered now */
    bool plain;             /* "space:main": of nodes outside of pieces */
    bool asked;             /* the store has been asked for its rows */
    struct resume_set *set; /* rows that nobody has claimed yet; NULL: none */
} kept_piece;

typedef struct persistence {
    VEC(kept_node) nodes; /* by node */
    VEC(kept_piece) pieces;
    table piece_names;
    table names; /* of nodes */
    VEC(node_id) due;
    VEC(node_id) unasked; /* resumed; whose writers have not been asked for */
    VEC(node_id) unsaid;  /* whose outputs do not say yet which piece writes them */
    VEC(place_id) untold; /* documents with DOC_UNTOLD, referenced */
    VEC(hd_value) gone;   /* rows to be deleted: [name, instance, ...], owned */
    table gone_names;
    uint64_t due_at;     /* when what is due goes alone, if no seal takes it before; 0: never */
    uint64_t reach;      /* of the store, when that was looked at last; see basis_ops; 0: never */
    uint64_t refused_at; /* the replica's revision when a seal was refused last; 0: never */
    bool wanted;         /* rows are to be written as they come, not only at the end */
    bool lost;           /* there was no memory to note that a node is due: look at all of them */
    uint32_t stopping;   /* pieces; not 0: nodes that are removed now keep their rows */
    VEC(char) text;      /* scratch of fingerprints */
    uintptr_t code_from, code_size; /* where the last function is whose build was asked for */
    char build[HD_ID_SIZE];         /* that build */
    char build_mark[12];            /* the beginning of it */
} persistence;

hd_status persistence_init(scheduler *s);
void persistence_fini(scheduler *s);
/* At the beginning of each pump: somebody may want rows who was not there before. */
void persistence_pump(scheduler *s);
/* When persistence_pump should be called at the latest; UINT64_MAX: whenever. */
uint64_t persistence_next(const scheduler *s);
/* The runtime closes: what nobody wanted so far is wanted by the next. */
void persistence_closing(scheduler *s);
/* The last word: everything has its verdict, and nothing will run any more. Says how far the rows
 * hold. */
void persistence_say_valid(scheduler *s);
/* The same while it goes on, if the store has forgotten what has changed since the rows were proved. */
void persistence_say_again(scheduler *s);
/* Whether the store has forgotten some of what has changed since this was asked last. */
bool persistence_look_back(scheduler *s);
/* Something could be kept now that is not. */
bool persistence_is_ready(const scheduler *s);

/* ---- a node's life */

/* Just registered. If the store has a row for this very code, takes it up: the node has its reads
 * and is clean, or invalid where one of them has changed. HD_NOMEM. */
hd_status persistence_registered(scheduler *s, node_id id, const hd_node_spec *spec);
/* The running node makes nodes or handlers; and has made all of them: rows of others below it are
 * gone. */
void persistence_creates(scheduler *s, node_id id);
void persistence_created(scheduler *s, node_id id);

void persistence_ran_slow(scheduler *s, node_id id);
/* A run has been completed. */
static inline void persistence_ran(scheduler *s, const node *n) {
    if (n->flags & NODE_NOTED) persistence_ran_slow(s, (node_id)(n - s->graph.nodes));
}
void persistence_failed(scheduler *s, node_id id);
void persistence_reads_changed(scheduler *s, node_id id);
/* A run's commit was queued beside the seals. */
void persistence_wrote(scheduler *s, node_id id, uint64_t local_seq);

/* ---- pieces */

/* The piece is about to stop: says how far its rows hold. What is due is to be sealed after that. */
void persistence_stops(scheduler *s, const char *space, const char *piece);
/* The nodes that are removed until the second call keep their rows: their piece stops. */
void persistence_stopping(scheduler *s, bool on);
/* A piece has been built: rows of nodes that it did not mention are gone, but for those that its
 * coordinators will ask for. */
void persistence_built(scheduler *s, const char *space, const char *piece);
/* All rows of a piece are gone: it does not run, and what it was is of no use. */
void persistence_drop_piece(scheduler *s, const char *space, const char *piece);

/* ---- between the files of this component */

static inline kept_node *kept_of(const scheduler *s, node_id id) {
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
/* Borrowed. */
const char *kept_name(const kept_node *k, size_t *length);
/* The node of a durable name; 0: none. */
node_id persistence_find(const scheduler *s, const char *name, size_t length);
/* NULL: no node of it is, or was, registered here. */
kept_piece *persistence_piece(const scheduler *s, const char *space, const char *piece);
void persistence_due(scheduler *s, node_id id);
/* There is something to keep once things are quiet. */
void persistence_soon(scheduler *s);
/* What is due has become more or less. */
void persistence_count_due(scheduler *s);

/* persistence_code.c */
hd_value fingerprint_of(scheduler *s, node_id id, const hd_node_spec *spec, const char *name);
/* The build that contains the function, as text; good until the next call. */
const char *persistence_build_of(scheduler *s, const void *fn);
/* Enough of it to tell builds apart, for stamps; NULL: nothing outlives the runtime. */
const char *persistence_mark_of(scheduler *s, const void *fn);

/* persistence_rows.c: what the store asks at a seal; see observer in store/replica.h. */
hd_status rows_keep(void *ctx, struct commit *c);
void rows_refused(void *ctx, const struct commit *c);
/* [name, instance, mark] for this runtime, owned; without a fingerprint [name, instance]. Takes the
 * reference of the name, which may be failed. */
hd_status rows_brief(scheduler *s, hd_value name, hd_scope scope, hd_value print, hd_value *out);
/* That of a node with a name, borrowed; absent: no memory. */
hd_value rows_kept(scheduler *s, node_id id);
hd_status rows_brief_of(scheduler *s, const char *name, const char *instance, hd_value *out);
/* The store has the node's row as it is here. */
bool rows_is_known(const scheduler *s, node_id id);
/* What the node's own commit, about to be made, must say of its row; owned, absent: nothing. HD_NOMEM. */
hd_status rows_outrun(scheduler *s, node_id id, hd_value *extra);
/* Whether it reads something that no seal claims, and of which no word for a whole piece speaks. */
bool rows_has_unclaimed(const node *n);
/* Whether a row of the node could be written now. */
bool rows_can_keep(const scheduler *s, node_id id);

/* persistence_gone.c */
/* Takes the reference. Without memory the row stays: it is harmless. */
void gone_add(scheduler *s, hd_value brief);
void gone_add_node(scheduler *s, node_id id);
/* There is such a row again. */
void gone_take_back(scheduler *s, hd_value brief);
/* Whether some row of the name is to be deleted. */
bool gone_is(const scheduler *s, const char *name, size_t length);
void gone_clear(scheduler *s);

/* persistence_untold.c: the first is called by the store, see observer in store/replica.h. */
void untold_add(void *ctx, place_id doc);
/* Things are quiet: who has read such a document, and is clean, is due. */
void untold_prove(scheduler *s);
void untold_fini(scheduler *s);

/* persistence_adopt.c: another runtime's rows; see observer in store/replica.h. */
void adopt_observed(void *ctx, hd_value extra, hd_value seqs);

/* persistence_origin.c */
/* Writes into the metadata of the node's outputs which piece it is of; or tries again with a later
 * pump. */
void origin_say(scheduler *s, node_id id);
void origin_say_later(scheduler *s, node_id id);
void origin_pump(scheduler *s);
/* The piece that writes a document, "space:piece", owned; absent: none, or it cannot be told. */
hd_value origin_of(const scheduler *s, place_id doc);
/* Whether the node reads what other pieces write. */
bool origin_reads_others(const scheduler *s, node_id id);

/* persistence_reads.c */
/* A read as it was written down, as a key; its place has no reference yet. *home is that of the read
 * before, 0 at first. *output: it is no read, but what the node writes. */
hd_status reads_parse(scheduler *s, const char *text, size_t length, uint32_t *home, uint32_t *out,
                      bool *output);

/* persistence_resume.c */
/* The node has its reads without a run: if pieces write some of them, those are opened when it is
 * live. */
hd_status resume_ask_later(scheduler *s, node_id id);
hd_status resume_take(scheduler *s, node_id id);
void resume_free(scheduler *s, kept_piece *of);
/* Rows whose name begins so and that nobody has claimed are gone. */
void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix);
void resume_drop_all(scheduler *s, const char *piece);
void resume_drop_unbuilt(scheduler *s, kept_piece *of);

#endif
