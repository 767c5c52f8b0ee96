/* pattern.h -- the structures of the pattern layer: start reading here.
 *
 *     patterns            one per runtime: the registered patterns and the running pieces
 *       piece             a document in the store, and the build that runs for it
 *         build           everything that one building function made
 *           part          one primitive: a node with its function, a handler, or a name
 *           build         of a row of a list, of a pattern that is used, or of one that is derived
 *
 * A *round* makes a build: the runtime calls the building function, and the function mentions parts by
 * name. A part of an earlier round that is the same (kind, function, inputs) stays as it is; a part
 * that the round does not mention is dropped. A piece and a row have one round; a derived pattern has
 * one for each run of the node that derives it. So building and building again are the same code.
 *
 * A part is the `ctx` of its node and is freed when the scheduler releases the node: at once, or after
 * the node's run if that is in progress. A build is freed at once; piece_stop.c puts off the stop of a
 * piece until no node runs, so that the build of a running node is not freed. */
#ifndef PATTERN_PATTERN_H
#define PATTERN_PATTERN_H

#include "base/list.h"
#include "base/table.h"
#include "base/vec.h"
#include "store/runtime.h"
#include <heddle/introspect.h>
#include <heddle/pattern.h>
#include <assert.h>
#include <string.h>

struct scheduler;
typedef struct patterns patterns;
typedef struct piece piece;
typedef struct part part;

typedef struct pattern {
    const char *name, *version;
    hd_pattern_fn fn;
    void *ctx;
} pattern;

/* ---- Parts */

typedef struct part_kind {
    hd_action_fn run; /* of its node; ctx is the part. NULL: parts of this kind have no node */
    /* Whether `fresh`, of the same kind and name, would do what `p` does. NULL: never. */
    bool (*same)(const part *p, const part *fresh);
    /* The part is dropped while its build still exists: undoes what is not a node (a handler, a
     * request). May be NULL. */
    void (*drop)(part *p);
    /* Frees what the part holds, not the part. May be NULL. */
    void (*fini)(part *p);
    /* Asserts what holds between runs. May be NULL. */
    void (*check)(const part *p);
    bool inner; /* its builds are no rows of the program: hd_piece_info counts none of them */
    bool plain; /* its node is one of the program's own, as hd_node_register makes it */
} part_kind;

struct part {
    const part_kind *kind;
    const hd_env *env;
    hd_build *in;   /* NULL: dropped, and waits for its node to be released */
    list_node link; /* in build.parts; a new part is not linked before part_add */
    hd_node node;   /* id 0: none */
    hd_cell output;
    const char *name; /* in the same block; "": the part that stands for the whole build */
    size_t size;      /* of the block */
    uint32_t round;   /* the last round that mentioned it */
    const char *salt; /* part of the node's version: another salt is another node. NULL: none */
};

/* ---- Builds */

#define NAME_MAX_LENGTH 512 /* bytes of a node's name, with the names of all builds above it */
#define IN_ASKED_MAX                                                                               \
    64 /* hd_build_use: the arguments after these cause no "has no argument" warning */
#define PART_NAME_MAX 220 /* bytes of a part's name: leaves room for ".elements" and keys of rows */

typedef struct build_memory build_memory;
typedef struct build_stop_fn {
    void (*fn)(void *ctx);
    void *ctx;
    uint32_t round; /* the last round that mentioned it */
} build_stop_fn;

struct hd_build {
    patterns *all;
    piece *of;
    hd_build *up;      /* NULL: this is the root, the build of the piece itself */
    list_node sibling; /* in up->children */
    list children;
    pattern what; /* whose code it runs: the pattern of the piece, or the pattern that is used */
    part *
        owner; /* the list or derived pattern that made it; NULL: the root, or made by hd_build_use */
    list parts; /* parts without a node first, then those with one, in the order of part_add */
    VEC(build_stop_fn) stops;
    VEC(build_memory *) memories;

    char *path;     /* of its documents: "corner/prices/3" */
    uint32_t local; /* where in `path` the names of its nodes begin: behind the name of `under` */
    hd_node under;  /* parent of its nodes; id 0: none */

    hd_tx *tx;               /* of the round in progress; NULL between rounds */
    const hd_named_cell *in; /* hd_build_use: the arguments, during the round; else NULL */
    size_t in_count;
    uint64_t in_asked;   /* bit i: the function has asked for argument i (up to IN_ASKED_MAX) */
    hd_status status;    /* the first failure of the round */
    uint32_t used_round; /* hd_build_use: the last round of `up` that mentioned it */
    part *cursor;        /* the part that follows the one mentioned last; NULL: none */
    uint32_t round;      /* how many have begun */
};

/* Makes a build below `up`, for `owner`; the names of its nodes begin at `local`. NULL: no memory. */
hd_build *build_new(hd_build *up, part *owner, const char *name, uint32_t local, hd_node under);
/* The child that hd_build_use made under this name; NULL: there is none. */
hd_build *build_find(const hd_build *b, const char *name);
/* Stops and frees the build and all builds below it. */
void build_stop(hd_build *b);
/* The same for a row that has left its list, or a chunk that has left its fold: the next pump removes the documents
 * that its nodes have written (left.c). */
void build_leave(hd_build *b);

/* A round: begin, call the building function, end. build_end returns the first failure; then every part
 * stays, and the caller stops the build or leaves it for the next round. */
void build_begin(hd_build *b, hd_tx *tx);
hd_status build_end(hd_build *b);

/* A part of this size (which begins with `part`) and name. NULL: the build has failed. */
void *part_new(hd_build *b, const part_kind *kind, size_t size, const char *name);
/* Takes the part into the build: keeps the one of an earlier round if it is the same, else registers a
 * node for `fresh`. part_add fills in name, function, context and parent of `spec`; NULL: a part
 * without a node. Frees `fresh` if it is not needed. Returns the part in the build; NULL: the build
 * has failed. */
part *part_add(part *fresh, hd_node_spec *spec);
/* The part of this name; NULL: there is none. */
part *find_part(const hd_build *b, const char *name);
/* Adds a part that names a document and has no node. A round may mention it several times. */
hd_cell add_name(hd_build *b, const part_kind *kind, const char *name);
/* Frees a part that is in no build. */
void part_free(part *p);

/* Whether `name` is a valid name and every input a cell; if not, the build fails with a message. */
bool check_inputs(hd_build *b, const char *name, const hd_cell *in, size_t count);
/* The build fails: the round has mentioned this name already. */
void twice_named(hd_build *b, const char *name);

/* owned.c: frees what the round did not mention; frees everything. */
void owned_let_go(hd_build *b);
void owned_free(hd_build *b);

/* Whether `name` is not empty and without '/', ':', '#' and control characters. */
bool name_is_plain(const char *name);

/* left.c: notes the documents that the build's own nodes write, before they end. */
void left_note(hd_build *b);
/* Notes the documents of a node of which only the store knows, because its element left the list while no program ran.
 * ctx: the part of the list or fold. */
struct resume_set;
struct set_row;
void left_note_row(const struct resume_set *set, const struct set_row *row, void *ctx);
/* Removes noted documents, some in each pump; those that a node writes again stay. */
void left_work_off(patterns *all);

/* ---- Pieces */

struct piece {
    patterns *all;
    list_node link;          /* in patterns.running */
    uint32_t id, generation; /* id 0: no handle and no name leads to it any more */
    uint64_t order;          /* counts the starts in this runtime: patterns.started at its start */
    struct key *space;
    char *name;     /* the id of its document */
    pattern what;   /* a copy: the table may move */
    hd_build *root; /* NULL: launched, and not built yet */
    hd_cell document, result;
    uint64_t started; /* "started" in its document: how often it was started, in any runtime */
    hd_piece parent;
    /* How many transactions launched it and have not failed, plus one for each hd_piece_start, and for the
     * hd_piece_open that started it: those cannot fail any more. A launch that fails and leaves 0 ends the
     * piece. Opening a piece that runs counts nothing: if its launch fails, it has no document. */
    uint32_t launches;
    list below;        /* its children, in the order in which they got it as their parent */
    list_node sibling; /* in parent's `below`, while the parent runs */
    list_node doomed;  /* in the list of the pieces that one piece_end stops */
    list_node due;     /* in patterns.due: to be stopped (`stopping`) or built when nothing runs */
    bool stop;         /* piece_end is stopping it: no caller can start or stop it any more */
    bool stopping;     /* it is to be stopped when nothing runs */
    bool renounced;    /* with `stopping`: the program stopped it, demand must not open it again */
    bool opened;   /* by hd_piece_open or demand: its document is not written, but see `supplied` */
    bool supplied; /* with `opened`: the build wrote arguments or state that the store lacked */
    bool resumed;  /* an earlier process built it with this version: its state is in the store */
    /* During its round; borrowed from the tx. */
    hd_value arguments; /* with defaults */
    hd_value asked;     /* {name: null}: the arguments its function has asked for */
};

/* Waits for the verdict on a transaction that launched a piece. */
typedef struct launch {
    list_node link; /* in patterns.launches */
    patterns *all;
    hd_piece piece;
    bool deferred; /* the piece is built when the transaction is confirmed */
} launch;

/* Waits for the verdict on the commit of a fetch's response. */
typedef struct reply {
    list_node link; /* in patterns.replies */
    patterns *all;
    part *from; /* valid as long as `node` exists */
    hd_node node;
    uint64_t url; /* its hash */
} reply;

struct patterns {
    hd_runtime *rt;
    const hd_env *env;
    VEC(pattern) known;
    VEC(piece *) pieces;       /* [id - 1]; NULL: free */
    VEC(uint32_t) generations; /* [id - 1]: of the piece that has the id, or had it last */
    VEC(uint32_t) free_ids;    /* indices into `pieces`; has room for all of them */
    table names;               /* (space, id) -> index into `pieces` */
    list running;              /* all pieces, in order of start */
    list due;                  /* pieces to stop or build in the next pump; idle waits for them */
    VEC(place_id) left;        /* documents to be removed; referenced (left.c) */
    uint64_t started;          /* how many pieces this runtime has started */
    uint32_t building;         /* how many pieces' functions are on the stack */
    list launches, replies;    /* without a verdict */
    bool closing;              /* the runtime is being closed: no piece starts any more */
    uint32_t unchecked;        /* debug builds: in so many pumps patterns_check does nothing */
    struct fetcher *fetcher;   /* NULL until the first fetch */
    void (*close_fetcher)(struct fetcher *f);
    uint64_t (*fetcher_deadline)(const struct fetcher *f);
};

/* The runtime's patterns, made at first use. NULL: no memory. */
patterns *patterns_of(hd_runtime *rt);
static inline patterns *patterns_get(const hd_runtime *rt) { return rt->extension.ctx; }
const pattern *patterns_find(const patterns *all, const char *name);

/* check.c: asserts the invariants of all pieces, builds and parts; debug builds run it in every pump, less
 * often when there are many parts. */
void patterns_check(patterns *all);

/* Marks the document of a piece that the program stopped: demand does not open the piece until the program
 * starts it again. The place of the document exists as long as the runtime, because it has a handle. */
static inline void forswear(patterns *all, hd_cell document, bool on) {
    assert(document.id);
    place *p = place_at(&all->rt->r.places, document.id);
    if (on) p->doc.flags |= DOC_FORSWORN;
    else p->doc.flags &= (uint16_t)~DOC_FORSWORN;
}
static inline bool is_forsworn(const patterns *all, hd_cell document) {
    assert(document.id);
    return place_at(&all->rt->r.places, document.id)->doc.flags & DOC_FORSWORN;
}

/* From now on the runtime opens a stored piece when a node demands its output or an event needs its
 * handler. */
void demand_attach(struct scheduler *s);

/* piece.c: records, and how a piece begins */

/* The piece behind a handle; NULL: gone. */
piece *piece_get(const patterns *all, hd_piece handle);
static inline hd_piece handle_of(const piece *p) {
    return p ? (hd_piece){ p->id, p->generation } : (hd_piece){ 0, 0 };
}
/* The running piece that the spec names, or a new record (*fresh). */
hd_status piece_take(patterns *all, const hd_piece_spec *spec, const char *id, piece **out,
                     bool *fresh);
/* Writes the piece's document, after it has built the graph if `build_now`. */
hd_status piece_begin(piece *p, const hd_piece_spec *spec, hd_tx *tx, bool build_now);
/* Builds the graph of a piece that began without one, with the arguments in its document. */
hd_status piece_build(piece *p);
/* Frees the graph; the piece waits for its launch again. */
void piece_unbuild(piece *p);
hd_status piece_change_arguments(piece *p, const hd_piece_spec *spec, hd_tx *tx);
/* The piece has been started or opened: a stop that is due from before does not happen. */
void piece_wanted(piece *p);
/* Frees the graph and the record. The piece's children stay. Not during a run of one of its nodes. */
void piece_forget(piece *p);

/* piece_stop.c: how it ends */

bool piece_is_below(const piece *p, const piece *above);
/* Stops the piece and all pieces below it. `renounced`: demand does not open them again. */
void piece_end(piece *p, bool renounced);
/* The same, at once or in the next pump if a node runs or a pattern builds. Needs no memory. */
void piece_end_soon(piece *p, bool renounced);
/* Makes the piece due: pieces_work_off stops it (`stopping`) or builds it. And the opposite. */
void piece_later(piece *p);
void piece_not_later(piece *p);
/* Stops or builds every piece that is due. */
void pieces_work_off(patterns *all);

/* ---- Shared by the primitives */

/* Either may be NULL. */
static inline bool texts_equal(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

/* Writes the result of a computation; an absent value removes the output. */
static inline hd_status write_result(hd_tx *tx, hd_cell output, hd_value v) {
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_value_exists(v) ? hd_tx_set(tx, output, v) : hd_tx_remove(tx, output);
}

/* Fails the run with `status` and the runtime's message for it. */
hd_status part_failed(hd_tx *tx, hd_status status);

/* Adds a part whose node declares that it reads `reads` and writes the document of the part's name.
 * `side`: one more output; NULL: none. */
hd_cell add_computation(part *p, const hd_cell *reads, size_t count, const hd_cell *side);
/* The same; returns the part in the build, NULL: the build has failed. */
part *add_computing_part(part *p, const hd_cell *reads, size_t count, const hd_cell *side);

#endif
