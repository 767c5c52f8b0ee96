/* persistence.h -- rows: what the store keeps of nodes, and how a restart uses it (spec 9; docs/RESUME.md).
 *
 * A computation with a durable name has a *row* in the store: which code it was, what it read, and a
 * hash of what it found there (store/basis.h). A restart registers the node, finds the row, puts the
 * reads into the index and calls the node clean, without loading a document. Only documents that have
 * changed since the row was written are loaded, and what the node would read there now is compared.
 *
 *     run --> due --> seal: claims + row --> store           (rows.c, match.c)
 *     register --> resume set of its piece --> reads, clean  (resume.c, set.c, reads.c)
 *     another runtime's seal --> reads, clean                (adopt.c)
 *     first run --> metadata of its outputs: the piece       (origin.c)
 *
 * Names (name.c): "space:piece:path", a child's below its parent's with a '/'. A node that was
 * registered on the runtime itself belongs to the piece `main` of its output's space. Without a name, or
 * below a node without one, nothing is kept. Effects have no row of what they read: they run once after
 * a restart. Nor has a node whose run creates others: it runs to create them again, and they do not run.
 * Nor one that reads or writes volatile documents. Gates that the program sets have a row of their own.
 *
 * Off, and free, where the store dies with the runtime. */
#ifndef SCHEDULER_PERSISTENCE_H
#define SCHEDULER_PERSISTENCE_H

#include "base/hash.h"
#include "scheduler/registry.h"
#include "store/basis_hash.h"

#define FINGERPRINT_FORMAT "2" /* another one: nothing kept before is taken up */

enum {
    KEPT_DUE = 1,      /* in the list of nodes to keep */
    KEPT_ROW = 2,      /* the store has, or has been sent, a row */
    KEPT_CHANGED = 4,  /* the row must be written as a whole: code, reads or outcome have changed */
    KEPT_RAN = 8,      /* it has run since its hashes were made */
    KEPT_FAILED = 16,  /* its last run failed */
    KEPT_CREATES = 32, /* it has no row of what it reads: an effect, or its runs create nodes */
    KEPT_TAKEN = 64,   /* scratch of a seal: its row is in there */
    KEPT_DERIVED = 128, /* as in the row: it reads what other pieces write */
    KEPT_MENDS = 256, /* its outputs stand in the row: it holds only while they are what it wrote */
    KEPT_GATES = 512, /* the program has set its gates: they have a row */
    KEPT_AGED = 1024, /* documents that it reads have changed since, elsewhere: renew the row */
    KEPT_SAME = 2048, /* scratch of a seal: the row in the store is still right */
    KEPT_UNSURE = 4096,  /* taken for clean until documents arrive that its row is compared with */
    KEPT_REPLACED = 8192 /* another version has written its outputs since its last run: no row */
};

/* Beside each node. Values are owned. */
typedef struct kept_node {
    hd_value name;     /* a string; absent: the node has no durable name */
    hd_value print;    /* its fingerprint, a string */
    hd_value mark;     /* of its row; absent: it has none */
    hd_value hashes;   /* the same */
    uint64_t rev;      /* the replica's, as of which the hashes are right */
    uint64_t sent_in;  /* local seq of the commit that carried its row last */
    uint64_t full_in;  /* local seq of the commit that carried the whole row last */
    uint64_t wrote_in; /* local seq of its own last commit: until its verdict no row is written */
    uint32_t piece;    /* index into persistence.pieces */
    uint16_t flags;
    uint8_t narrow; /* of the instance: hd_scope; 0 is HD_SCOPE_SPACE */
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
    VEC(hd_value) gone;   /* rows to be deleted: [name, instance], owned */
    table gone_names;
    hd_value instances[HD_SCOPE_SESSION + 1]; /* texts, owned; absent: not asked for yet */
    uint64_t due_at; /* when rows that are due are sealed alone, if no seal takes them; 0: not */
    uint64_t refused_at; /* the replica's revision when a seal was refused last; 0: never */
    void (*arrived)(void *ctx, place_id doc, hd_status status); /* the observer before this one */
    bool wanted;        /* rows are written while the runtime runs; else when it closes */
    bool lost;          /* there was no memory to note that a node is due: look at all nodes */
    uint32_t stopping;  /* pieces; not 0: nodes that are removed now keep their rows */
    VEC(uint32_t) keys; /* scratch: a node's reads */
    VEC(char) text;     /* scratch of fingerprints and marks */
    uintptr_t code_from, code_size; /* the module of the last function asked about (code.c) */
    char build[HD_ID_SIZE];         /* its build */
    char build_mark[12];            /* the beginning of `build` */
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
const char *persistence_mark_of(scheduler *s, const void *fn);

/* match.c: hashes of what reads find now. */
/* The node's reads, and its outputs if it mends them, as they stand in its row; borrowed: scratch. NULL:
 * no memory. */
const uint32_t *match_keys(scheduler *s, node_id id, uint32_t *count);
/* Hashes of the slots in `mask`, of `count` reads; returns how many slots there are. Their documents
 * must be known. */
uint32_t match_hash(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                    uint64_t out[SLOTS]);
/* Whether the reads in the slots of `mask` find what the hashes of a row say. Loads their documents. */
typedef enum match {
    MATCH_NO, /* or one cannot be loaded */
    MATCH_YES,
    MATCH_LATER /* some of them will arrive */
} match;
match match_reads(scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                  const char *hashes);
/* Of slots all of whose documents are known here: those in which the hashes differ. */
uint32_t match_differing(const scheduler *s, const uint32_t *keys, uint32_t count,
                         const char *hashes);
/* The slots all of whose documents are known here. */
uint32_t match_known(const scheduler *s, const uint32_t *keys, uint32_t count);

/* rows.c: what the store asks at a seal; see observer in store/replica.h. */
hd_status rows_keep(void *ctx, struct commit *c);
void rows_refused(void *ctx, const struct commit *c);
/* The text of an instance, borrowed; absent: no memory. */
hd_value rows_instance(scheduler *s, hd_scope scope);
/* What the node's own commit, about to be made, must say of its row; owned, absent: nothing. HD_NOMEM. */
hd_status rows_outrun(scheduler *s, node_id id, hd_value *extra);
/* Whether a row of the node could be written now. */
bool rows_can_keep(const scheduler *s, node_id id);
/* Nodes of the piece (UINT32_MAX: all) are due whose row holds, and whose documents have changed since. */
void rows_renew(scheduler *s, uint32_t piece);

/* gone.c */
/* The next seal deletes the row. Without memory the row stays: it has no effect while its node is not
 * registered. */
void gone_add(scheduler *s, const char *name, const char *instance);
void gone_add_node(scheduler *s, node_id id);
/* The node has a row again: it is not deleted. */
void gone_take_back(scheduler *s, hd_value name, hd_value instance);
/* Whether the row is to be deleted. */
bool gone_is(const scheduler *s, const char *name, const char *instance);
void gone_clear(scheduler *s);

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
/* "space/id#/path", owned; failed: HD_LIMIT if it cannot be written down. */
hd_value reads_print(scheduler *s, uint32_t key, bool output);

/* set.c: the rows of a piece, when its first node is registered. */
typedef struct set_row {
    uint32_t name, print, mark, hashes; /* in resume_set.text, each with its NUL */
    uint32_t first_read, reads;         /* in resume_set.reads */
    uint32_t outputs;                   /* the last of these are not read but written */
    uint64_t sent_in;                   /* the own commit that carries it; 0: it is in the store */
    hd_value seqs;                      /* as of; owned */
    uint8_t scope;                      /* of its instance: hd_scope */
    bool claimed;
    bool derived, failed; /* as its body says */
} set_row;

/* Gates that the program had set. */
typedef struct gate_row {
    uint32_t name;
    uint32_t debounce_ms, throttle_ms;
} gate_row;

struct resume_set {
    VEC(set_row) rows;   /* in order of name, each name once */
    VEC(gate_row) gates; /* in order of name */
    VEC(char) text;
    VEC(uint32_t) reads;   /* keys, with a reference to each place */
    VEC(uint32_t) rows_of; /* by read: its row; only while it is being made */
    VEC(uint8_t) changed;  /* by read: its document has changed since; empty: none has */
    table by_doc;          /* document -> read; only while it is being made */
    uint64_t rev;          /* the replica's, when this was made */
    uint32_t unclaimed;
    uint32_t next;    /* behind the row that was found last */
    hd_status status; /* while it is being made */
};
typedef struct resume_set resume_set;

/* What the store knows of a piece, and what this runtime has sent and not heard of yet. NULL: nothing. */
resume_set *set_make(scheduler *s, const char *piece);
void set_free(scheduler *s, resume_set *set);
static inline const char *set_text(const resume_set *set, uint32_t at) {
    return &set->text.items[at];
}
/* The row or the gates of a name; NULL: there are none. */
set_row *set_find(resume_set *set, const char *name);
const gate_row *set_find_gate(const resume_set *set, const char *name);
/* The first row whose name is not before this. */
uint32_t set_first_at_or_after(const resume_set *set, const char *name);
/* Whether a run now would find what the row's run found. Loads documents that have changed: *looked if
 * there were any. */
match set_match(scheduler *s, const resume_set *set, const set_row *row, bool *looked);

/* resume.c */
/* The node has its reads without a run: if pieces write some of them, those are opened when it is
 * live. */
hd_status resume_ask_later(scheduler *s, node_id id);
hd_status resume_take(scheduler *s, node_id id);
/* See observer in store/replica.h: rows that could not be compared are, now. */
void resume_arrived(void *ctx, place_id doc, hd_status status);
void resume_free(scheduler *s, kept_piece *of);
/* Deletes the rows whose name begins with `prefix` and that no node has taken up. */
void resume_drop_below(scheduler *s, kept_piece *of, const char *prefix);
void resume_drop_all(scheduler *s, const char *piece);
void resume_drop_unbuilt(scheduler *s, kept_piece *of);
/* Tells the pieces of the store that have rows which do not hold: see hd_store_stale_pieces. */
hd_status resume_tell_stale(scheduler *s, hd_stale_fn fn, void *ctx);

#endif
