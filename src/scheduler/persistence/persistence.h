/* persistence.h -- rows: what the store keeps of nodes, so that a restart need not run them (spec 9; docs/RESUME.md).
 *
 * A *row* says: if these reads and outputs have these hashes, a run of this code would change nothing. That stays true
 * for ever, so it does not matter when a row is written, nor by which runtime. A node that has no row is run after a
 * restart, and that is all.
 *
 *     a node has run --> it is *due* --> the next seal writes its row     (persistence.c, rows.c, match.c)
 *     a node is registered --> the resume set of its piece --> its row    (set.c, resume.c, reads.c)
 *     another runtime commits a row of a node that is here too            (adopt.c)
 *     one of several runtimes that have a node live derives it            (lead.h)
 *
 * A row is found by the node's durable name (name.c): "space:piece:path", or the parent's name, a '/' and the node's
 * own name. A node that was registered outside of pieces belongs to the piece `main` in the space of its output.
 *
 * s->persistence is NULL where the store ends with the runtime: nothing would ever read the rows.
 *
 * To the store a row is a memo (store/memo.h): an item of "nodes" in the extra of a commit.
 *
 *     name, instance   under which it stands. The instance is "" where the node reads and writes documents of space
 *                      scope only; else "user:NAME" or "session:NAME", the narrower of them: one principal's rows never
 *                      serve another
 *     hashes           HASH_TEXT characters for each line of the reads
 *     print            the fingerprint of the code
 *     flags            'd': other pieces write some of what it reads; 'f': the run failed
 *     reads            cells, one in a line: "space/id#/path", with a scope "space@user/id", of metadata "space/id!",
 *                      with a '~' in front where only the shape was read, and before that a '?' where the run did not
 *                      claim it; behind the reads, with a '=' in front, what the node writes
 *
 * The instance "gates" is a row beside these: its flags are the gates that the program has set, "debounce throttle" in
 * milliseconds, and it has no reads. The key "lead" of an extra is the session that made the commit, if it has the
 * lease to derive for some space: others then wait for its results (lead.c).
 *
 * A row is checked when it is read (set.c). A malformed one is as none: its node runs. */
#ifndef SCHEDULER_PERSISTENCE_H
#define SCHEDULER_PERSISTENCE_H

#include "base/hash.h"
#include "scheduler/registry.h"
#include "store/memo.h"

/* The texts of a row. */
enum {
    ROW_NAME = MEMO_NAME,
    ROW_INSTANCE = MEMO_INSTANCE,
    ROW_HASHES,
    ROW_PRINT,
    ROW_FLAGS,
    ROW_READS = MEMO_CELLS,
    ROW_ITEMS = MEMO_ITEMS
};
enum { HASH_TEXT = 11 };  /* characters of one hash */
#define ROW_GATES "gates" /* the instance of rows that have the gates a program has set */

#define FINGERPRINT_FORMAT "5" /* rows with another format in their fingerprint are not taken up */

/* What is known of a node's row. */
enum {
    KEPT_DUE = 1,        /* the node is in persistence.due */
    KEPT_ROW = 2,        /* the store has a row of the node, or one is on its way there */
    KEPT_AGAIN = 4,      /* the next seal writes the row even if its hashes have not changed */
    KEPT_FAILED = 8,     /* the node's last run failed, and the row says so */
    KEPT_CREATES = 16,   /* the node gets no row: it is an effect, or its runs register nodes */
    KEPT_DERIVED = 32,   /* the node reads documents that other pieces write, and the row says so */
    KEPT_DEBOUNCE = 64,  /* the program has set the node's debounce, which has a row of its own */
    KEPT_THROTTLE = 128, /* the same for its throttle */
    KEPT_TAKEN = 256     /* while a seal is made: the row is in it, or need not be written again */
};
#define KEPT_GATES (KEPT_DEBOUNCE | KEPT_THROTTLE)

/* One record for each node of the graph. It owns its values. */
typedef struct kept_node {
    hd_value name;     /* the durable name, a string; absent: the node has none */
    hd_value print;    /* the fingerprint of the node's code, a string */
    hd_value hashes;   /* of the node's last row; absent: no row, or its reads are others now */
    uint64_t rev;      /* the replica's revision at which these hashes were right */
    uint64_t wrote_in; /* the local seq of the node's last commit: no row before its verdict */
    uint32_t piece;    /* index into persistence.pieces */
    uint16_t flags;    /* KEPT_ */
    uint8_t narrow; /* the scope of the row's instance, an hd_scope; 0 stands for HD_SCOPE_SPACE */
    uint32_t lead;  /* of the node's space: index into persistence.leads plus 1; 0: none */
    uint32_t turn;  /* lead.turn when the leader wrote a row of the node last; 0: it has not */
} kept_node;

struct resume_set;
struct set_row;
typedef struct lead lead; /* of lead.c */

/* A piece to which nodes with durable names belong, or have belonged, in this runtime. */
typedef struct kept_piece {
    hd_value name;          /* "space:piece", owned */
    uint32_t nodes;         /* nodes of the piece that are registered now */
    bool plain;             /* it is "space:main", which stands for nodes outside of pieces */
    bool asked;             /* the store has been asked for the rows of the piece */
    struct resume_set *set; /* rows that no node has claimed yet; NULL: there are none */
} kept_piece;

typedef struct persistence {
    VEC(kept_node) nodes; /* indexed by node id */
    VEC(kept_piece) pieces;
    table piece_names;    /* name of a piece -> index into pieces */
    table names;          /* durable name -> node id */
    VEC(node_id) due;     /* nodes that have run: the next seal looks whether they need a new row */
    VEC(node_id) gated;   /* nodes whose debounce and throttle the next seal writes */
    VEC(node_id) unasked; /* resumed nodes for which ask_for_writers has not been called yet */
    VEC(hd_value) gone;   /* rows that the next seal deletes: [name, instance], owned */
    /* Texts of instances by scope, owned; absent: not made yet. */
    hd_value instances[HD_SCOPE_SESSION + 1];
    uint64_t due_at;     /* when rows are sealed alone, if no other seal comes before; 0: never */
    uint64_t refused_at; /* the revision at which a seal was refused last, plus one; 0: none was */
    bool wanted;         /* the store wants rows now; if not, they wait until the runtime closes */
    uint32_t stopping;   /* calls of persistence_stopping that are on: removed nodes keep rows */
    VEC(lead *) leads;   /* one for each space in which another process derives, too; by lead */
    uint32_t turns;      /* how often one of them has changed hands; by lead */
    uint32_t held;       /* how many of them are ours; by lead */
    VEC(uint32_t) keys;  /* scratch of match_keys */
    VEC(char) text;      /* scratch: a fingerprint, or the reads of a row */
} persistence;

hd_status persistence_init(scheduler *s);
void persistence_fini(scheduler *s);
/* At the beginning of each pump: the store may want rows that it did not want before. */
void persistence_pump(scheduler *s);
/* When persistence_pump should be called at the latest; UINT64_MAX: no such time. */
uint64_t persistence_next(const scheduler *s);
/* The runtime closes: a store in memory wants the rows now, for the next runtime. */
void persistence_closing(scheduler *s);
/* The runtime closes, all commits have their verdict, and no node will run any more. Rows that still hold, but are
 * older than documents that they are about, are written once more: the next resume then loads none of those. */
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
/* The running node registers nodes or handlers: from now on it has no row. */
void persistence_creates(scheduler *s, node_id id);
/* The running node has registered all of its children: other rows below it are told (`left` may be NULL) and
 * deleted. */
typedef void (*left_fn)(const struct resume_set *set, const struct set_row *row, void *ctx);
void persistence_created(scheduler *s, node_id id, left_fn left, void *ctx);

/* The node has completed its first run, or one that is to be noted (NODE_NOTED). */
void persistence_ran_slow(scheduler *s, node_id id);
static inline void persistence_ran(scheduler *s, const node *n) {
    if (n->flags & NODE_NOTED) persistence_ran_slow(s, (node_id)(n - s->graph.nodes));
}
/* The node's run has failed. */
void persistence_failed(scheduler *s, node_id id);
/* Whether the row says that the last run has failed. */
bool persistence_has_failed(const scheduler *s, node_id id);
/* The node reads other places than before. */
void persistence_reads_changed(scheduler *s, node_id id);
/* The node's run has made a commit of its own, instead of writing into the next seal. */
void persistence_wrote(scheduler *s, node_id id, uint64_t local_seq);
/* The program has set a gate: KEPT_DEBOUNCE or KEPT_THROTTLE. */
void persistence_gated(scheduler *s, node_id id, uint16_t which);

/* ---- pieces */

/* The piece is about to stop: its rows that are older than what they are about are due (see persistence_last). The
 * caller makes a seal after this, and removes the nodes then. */
void persistence_stops(scheduler *s, const char *space, const char *piece);
/* Between a call with true and one with false, nodes that are removed keep their rows: their piece stops, and may
 * be started again. */
void persistence_stopping(scheduler *s, bool on);
/* The piece has been built. Rows of nodes that it did not register are deleted; not those of children of its nodes,
 * which are registered when their parents run. */
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
/* Whether two fingerprints differ in the declared reads at most. */
bool fingerprint_same_code(hd_value print, const char *other, size_t other_length);

/* match.c: the *keys* of a row are the places that the node reads and, behind them, its outputs. Envelopes are not
 * among them: other nodes may write there as well. A row has one hash for each key, HASH_TEXT characters of text. */
/* What a key finds now: 64 bits. Its document must be known. */
uint64_t match_hash(const places *ps, uint32_t key);
void match_print(uint64_t hash, char out[HASH_TEXT]);
/* The keys of the node's next row, borrowed until the next call. NULL: no memory. */
const uint32_t *match_keys(scheduler *s, node_id id, uint32_t *count);
/* Whether key number `i` of a row has now the hash that the row says. Its document must be known. */
bool match_key(const scheduler *s, uint32_t key, const char *hashes, uint32_t i);
/* The same where the document is not known: it is as the row says. */
bool match_if_known(const scheduler *s, uint32_t key, const char *hashes, uint32_t i);

/* rows.c. The replica calls the first two (see observer in store/replica.h). */
/* A seal is made: puts the rows of due nodes into it. */
hd_status rows_keep(void *ctx, struct commit *c);
/* The store has refused a seal: its rows are due again. */
void rows_refused(void *ctx, const struct commit *c);
/* The text of this runtime's instance for a scope ("", "user:NAME", "session:NAME"), borrowed; absent: no memory. */
hd_value rows_instance(scheduler *s, hd_scope scope);
/* Whether a row of the node could be written now. */
bool rows_can_keep(const scheduler *s, node_id id);
/* Makes nodes of the piece due (UINT32_MAX: of all pieces) whose row still holds and is older than one of the
 * documents that it is about. */
void rows_renew(scheduler *s, uint32_t piece);
/* The next seal deletes the row. Without memory the row stays, which does no harm: rows of nodes that are not
 * registered are not looked at. */
void rows_delete(scheduler *s, const char *name, const char *instance);
void rows_delete_of(scheduler *s, node_id id);
/* The next seal deletes nothing. */
void rows_forget_deletions(scheduler *s);

/* adopt.c: another runtime's commit, with rows in it, has arrived (see observer in store/replica.h). */
void adopt_observed(void *ctx, hd_value extra);

/* lead.c: see there and lead.h. lead_pump returns whether it has seen to the rows that are due. */
bool lead_pump(scheduler *s);
uint64_t lead_deadline(const scheduler *s);
void lead_fini(scheduler *s);

/* reads.c: how keys are written in rows, one in a line: "space/id#/path". */
/* A line, taken apart; texts are borrowed from it and carry their lengths. */
typedef struct read_cell {
    const char *space, *id, *path; /* path is a pointer, "" for the whole document */
    size_t space_length, id_length, path_length;
    hd_scope scope;
    bool shape;
    bool unclaimed; /* the run did not claim it */
    bool output;    /* it was not read but written */
} read_cell;
/* False: it is malformed. */
bool reads_split(const char *text, size_t length, read_cell *out);
/* The next line of *reads, which moves behind it; false: there is none. */
bool reads_next(const char **reads, const char **cell, size_t *length);
/* Makes a key of a line, without a reference to its place. *home is the home of the document before, which often is
 * the same one; 0 at first. *output: the line names an output, and no read. */
hd_status reads_parse(scheduler *s, const char *text, size_t length, uint32_t *home, uint32_t *out,
                      bool *output);
/* Appends the line of a key to persistence.text. HD_NOMEM; HD_LIMIT: the key cannot be written as a line. */
hd_status reads_print(scheduler *s, uint32_t key, bool output);

/* set.c: the *resume set* of a piece: its rows, read when its first node is registered. */
enum { SCOPE_GATES = HD_SCOPE_HERE }; /* set_row.scope of a row that keeps debounce and throttle */

typedef struct set_row {
    uint32_t text[ROW_READS]; /* the texts before the reads, by ROW_: offsets in resume_set.text */
    uint32_t first_key, keys; /* its keys are resume_set.keys[first_key ...] */
    uint32_t outputs;         /* so many of its keys, the last ones, are outputs */
    /* The sequence numbers of its spaces when the row was admitted; owned. Absent: the row is in a commit of this
     * runtime that has no verdict yet. */
    hd_value seqs;
    uint8_t scope; /* of its instance: hd_scope, or SCOPE_GATES */
    bool gone;     /* while the set is being made: an own commit deletes the row */
    bool claimed;  /* its node has been registered, or the row is to be deleted */
} set_row;

/* A document that has changed after one of the rows was written. */
typedef struct set_change {
    place_id doc;
    uint64_t seq; /* of its last change; UINT64_MAX: unknown, so every row has to be compared */
} set_change;

struct resume_set {
    /* In order of name. A name has at most two rows: one with SCOPE_GATES, which comes first, and one other. */
    VEC(set_row) rows;
    VEC(char) text;     /* of all rows, each with a NUL behind it */
    VEC(uint32_t) keys; /* of all rows; each holds a reference to its place */
    VEC(set_change) changes;
    table by_doc;       /* document -> index into changes; a document may be there more than once */
    uint64_t rev;       /* the replica's revision when the set was made */
    uint32_t unclaimed; /* rows that are not claimed */
    uint32_t next;      /* the index behind the row that was found last */
    hd_status status;   /* while the set is being made */
};
typedef struct resume_set resume_set;

/* The rows of a piece: those of the store, replaced by those in commits of this runtime that have no verdict yet.
 * *out is NULL if there are none, and if they cannot be read. */
hd_status set_read(scheduler *s, const char *piece, resume_set **out);
/* The same for nodes that are to be resumed: rows that cannot be read are logged, and are none. */
resume_set *set_make(scheduler *s, const char *piece);
/* A set of the one row that another runtime's commit carries. NULL: the row cannot be read, or is another
 * principal's. */
resume_set *set_of_item(scheduler *s, hd_value item);
void set_free(scheduler *s, resume_set *set);
/* One of the texts of a row: ROW_NAME and so on. */
static inline const char *set_text(const resume_set *set, const set_row *of, int which) {
    assert(which < ROW_READS && of->text[which] < set->text.count);
    return &set->text.items[of->text[which]];
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
/* Whether the row holds. Loads the documents that may have changed since the row was written, and compares the hashes
 * of what the row says of them: *compared if there are such. False, too, if one cannot be loaded now. */
bool set_row_holds(scheduler *s, const resume_set *set, const set_row *row, bool *compared);

/* resume.c */
/* The node was just registered: takes up its row, if the store has one. HD_NOMEM. */
hd_status resume_take(scheduler *s, node_id id);
/* Gives the node the reads of its row. If the row holds, also its hashes, and the node is clean. HD_NOMEM. */
hd_status resume_install(scheduler *s, node_id id, const resume_set *set, const set_row *row,
                         bool holds);
void resume_free(scheduler *s, kept_piece *of);
/* Deletes unclaimed rows below a piece ("space:piece", mark ':') or a node (its name, mark '/'), except those of
 * children of a registered node: that node may still run and register them. `left` may be NULL. */
void resume_drop_below(scheduler *s, kept_piece *of, const char *name, char mark, left_fn left,
                       void *ctx);
/* Deletes all rows of a piece, those of other principals included. */
void resume_drop_all(scheduler *s, const char *piece);

#endif
