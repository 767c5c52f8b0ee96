/* pattern.h -- what a piece consists of: start reading here.
 *
 *     patterns            one per runtime: the patterns registered, the pieces that run
 *       piece             a document in the store, and the build that runs for it
 *         build           what one call of a building function made
 *           part          one primitive: a node with its function, or a handler
 *           build         a row of a list, a pattern used or derived
 *
 * A build is made by a *round*: its function is called and mentions parts by name. A part that was
 * there before and is the same (same kind, same function, same inputs) stays as it is; a part that is
 * no longer mentioned goes. A piece and a row have one round; a derived pattern has one for each run
 * of its parent. So "build it" and "build it again" are the same code.
 *
 * A part is the `ctx` of its node and is freed when the node is gone, which during its own run is
 * later. A build is freed at once; it is never that of the running node (piece.c defers that). */
#ifndef PATTERN_PATTERN_H
#define PATTERN_PATTERN_H

#include "base/list.h"
#include "base/table.h"
#include "base/vec.h"
#include "store/runtime.h"
#include <heddle/pattern.h>
#include <string.h>

struct scheduler;
typedef struct patterns patterns;
typedef struct piece piece;
typedef struct part part;

typedef struct pattern {
    const char *name, *version;
    hd_pattern_fn fn;
} pattern;

/* ---- Parts */

typedef struct part_kind {
    hd_action_fn run; /* ctx is the part */
    /* Whether `fresh`, of the same kind and name, would do what `p` does. NULL: never. */
    bool (*same)(const part *p, const part *fresh);
    /* It is no longer wanted, while its build still stands: undoes what is not a node. May be NULL. */
    void (*drop)(part *p);
    /* Frees what it holds, not the part. May be NULL. */
    void (*fini)(part *p);
} part_kind;

struct part {
    const part_kind *kind;
    const hd_env *env;
    hd_build *in;   /* NULL: dropped */
    list_node link; /* in build.parts, while `in` */
    hd_node node;   /* id 0: none */
    hd_cell output;
    const char *name; /* in the same block; "": the build's own */
    size_t size;      /* of the block */
    uint32_t round;   /* that mentioned it last */
    const char *salt; /* what makes it another node although its code is the same; NULL: nothing */
};

/* ---- Builds */

#define NAME_MAX_LENGTH 512 /* of a node, with all that stands before it */
#define IN_ASKED_MAX    64  /* arguments of a pattern used: of those after, nobody is told */
#define PART_NAME_MAX   220 /* of one part: leaves room for ".elements" and for the keys of rows */

typedef struct build_memory build_memory;
typedef struct build_stop_fn {
    void (*fn)(void *ctx);
    void *ctx;
    uint32_t round; /* that mentioned it last */
} build_stop_fn;

struct hd_build {
    patterns *all;
    piece *of;
    hd_build *up;      /* NULL: the piece's own */
    list_node sibling; /* in up->children */
    list children;
    pattern what; /* whose code it is: the piece's, or that of the pattern used */
    part *owner;  /* the list or derived pattern it is a part of; NULL: used, or the piece's own */
    list parts;   /* in order of their making, but names come first */
    VEC(build_stop_fn) stops;
    VEC(build_memory *) memories;

    char *path;     /* of its documents: "corner/prices/3" */
    uint32_t local; /* where in `path` the names of its nodes begin: after its parent node's */
    hd_node under;  /* parent of its nodes; id 0: none */

    /* Of the round in progress. */
    hd_tx *tx;
    const hd_named_cell *in; /* arguments, of a pattern that is used */
    size_t in_count;
    uint64_t in_asked;   /* which of the first IN_ASKED_MAX it has asked for, as bits */
    hd_status status;    /* the first failure */
    uint32_t used_round; /* of its parent: that mentioned it last */
    part *cursor;        /* behind the part mentioned last; NULL: none */
    uint32_t round;
};

/* Below `up`, for `owner`; the names of its nodes begin at `local`. NULL: no memory. */
hd_build *build_new(hd_build *up, part *owner, const char *name, uint32_t local, hd_node under);
/* The child used under this name; NULL. */
hd_build *build_find(const hd_build *b, const char *name);
/* With all that is below it. */
void build_stop(hd_build *b);

/* A round: begin, call the function, end with what it returned. On failure everything mentioned so far
 * stays; the caller stops the build, or leaves it for the next round. */
void build_begin(hd_build *b, hd_tx *tx);
hd_status build_end(hd_build *b);

/* A part of this size (which begins with `part`) and name. NULL: the build has failed. */
void *part_new(hd_build *b, const part_kind *kind, size_t size, const char *name);
/* Takes the part into the build: finds one that is the same, or registers its node. `spec` is filled
 * in as to name, function and parent; NULL: a part without a node. Frees `fresh` if it is not
 * needed. Returns the part that stands; NULL: the build has failed. */
part *part_add(part *fresh, hd_node_spec *spec);
/* The part of this name; NULL. */
part *find_part(const hd_build *b, const char *name);
/* A name that stands for a document without a node. May be mentioned again, by the same kind. */
hd_cell add_name(hd_build *b, const part_kind *kind, const char *name);
/* For a part that has not been added. */
void part_free(part *p);

/* Whether the name is one and each input a cell; else the build has failed, and says which. */
bool check_inputs(hd_build *b, const char *name, const hd_cell *in, size_t count);
/* The build fails: the name is taken. */
void twice_named(hd_build *b, const char *name);

/* owned.c: what the round did not mention; and all of it. */
void owned_let_go(hd_build *b);
void owned_free(hd_build *b);

/* Names have no '/', ':', '#' or control characters. */
bool name_is_plain(const char *name);

/* ---- Pieces */

struct piece {
    patterns *all;
    list_node link;          /* in patterns.running */
    uint32_t id, generation; /* id 0: nobody finds it any more */
    uint64_t order;          /* of its start in this runtime */
    struct key *space;
    char *name;     /* the id of its document */
    pattern what;   /* a copy: the table may move */
    hd_build *root; /* NULL: launched, and not built yet */
    hd_cell document, result;
    uint64_t started;
    hd_piece parent;
    /* Transactions that launched it and may still fail, plus one for each that has not. At 0 nobody
     * wants it. Started by the program: one that never fails. */
    uint32_t launches;
    list below;        /* its children, in the order in which they got it as their parent */
    list_node sibling; /* in below of its parent, while that runs */
    list_node doomed;  /* in a list of those that a stop ends */
    list_node due;     /* in patterns.due: to be stopped, or else built, when nothing runs */
    bool stop;         /* a stop is ending it, its children first */
    bool stopping;     /* it is due for that */
    bool renounced;    /* and it is the program that wants it */
    bool opened;       /* its document is left alone, but for what it is `supplied` with: */
    bool supplied;     /* the store did not have all that its code asks for */
    bool resumed; /* it was built before, in this very version: it has all the state it needs */
    /* While it is being built; borrowed from the tx. */
    hd_value arguments; /* with defaults */
    hd_value asked;     /* {name: null}: the arguments its function has asked for */
};

/* The fate of a transaction that launched a piece. */
typedef struct launch {
    list_node link; /* in patterns.launches */
    patterns *all;
    hd_piece piece;
    bool deferred; /* build it when it is confirmed */
} launch;

/* A response that was written. */
typedef struct reply {
    list_node link; /* in patterns.replies */
    patterns *all;
    part *from; /* there as long as its node is */
    hd_node node;
    uint64_t url; /* its hash */
} reply;

struct patterns {
    hd_runtime *rt;
    const hd_env *env;
    VEC(pattern) known;
    VEC(piece *) pieces;       /* [id - 1]; NULL: free */
    VEC(uint32_t) generations; /* of each */
    VEC(uint32_t) free_ids;    /* indices into `pieces` */
    table names;               /* (space, id) -> index into `pieces` */
    list running;              /* in order of start */
    list due;                  /* pieces; idle waits for them */
    uint64_t started;          /* how many there were */
    uint32_t building;         /* functions of pieces on the stack */
    list launches, replies;    /* without a verdict */
    bool closing;              /* nothing starts any more */
    struct fetcher *fetcher;   /* NULL until the first fetch */
    void (*close_fetcher)(struct fetcher *f);
    uint64_t (*fetcher_deadline)(const struct fetcher *f);
};

/* The runtime's, made at first use. NULL: no memory. */
patterns *patterns_of(hd_runtime *rt);
static inline patterns *patterns_get(const hd_runtime *rt) { return rt->extension.ctx; }
const pattern *patterns_find(const patterns *all, const char *name);

/* A piece that the program stopped stays so until it is started: nobody's demand opens it. Its document
 * has a handle, so its place is there as long as the runtime. */
static inline void forswear(patterns *all, hd_cell document, bool on) {
    place *p = place_at(&all->rt->r.places, document.id);
    if (on) p->doc.flags |= DOC_FORSWORN;
    else p->doc.flags &= (uint16_t)~DOC_FORSWORN;
}
static inline bool is_forsworn(const patterns *all, hd_cell document) {
    return place_at(&all->rt->r.places, document.id)->doc.flags & DOC_FORSWORN;
}

/* From now on pieces are opened when somebody wants something of them. */
void demand_attach(struct scheduler *s);

/* piece.c: records, and how a piece begins */

/* The piece behind a handle; NULL: gone. */
piece *piece_get(const patterns *all, hd_piece handle);
static inline hd_piece handle_of(const piece *p) {
    return p ? (hd_piece){ p->id, p->generation } : (hd_piece){ 0, 0 };
}
/* The piece of this spec: the one that runs, or a new one. */
hd_status piece_take(patterns *all, const hd_piece_spec *spec, const char *id, piece **out,
                     bool *fresh);
/* With its document; the graph now, or later. */
hd_status piece_begin(piece *p, const hd_piece_spec *spec, hd_tx *tx, bool build_now);
/* Of one that was begun without its graph: what its document says. */
hd_status piece_build(piece *p);
/* Takes the graph back. */
void piece_unbuild(piece *p);
hd_status piece_change_arguments(piece *p, const hd_piece_spec *spec, hd_tx *tx);
/* It has been started: whoever wanted it stopped did so before. */
void piece_wanted(piece *p);
/* Stops it and frees the record. Its children stay. Not inside its own run. */
void piece_forget(piece *p);

/* piece_stop.c: how it ends */

bool piece_is_below(const piece *p, const piece *above);
/* With its children. `renounced`: nobody's demand opens them again. */
void piece_end(piece *p, bool renounced);
/* At once, or when nothing runs and builds any more. Needs no memory. */
void piece_end_soon(piece *p, bool renounced);
/* It is to be built, or stopped, before the next pump. */
void piece_later(piece *p);
void piece_not_later(piece *p);
/* All that is due. */
void pieces_work_off(patterns *all);

/* ---- Shared by the primitives */

/* Either may be NULL. */
static inline bool texts_equal(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

/* Writes the result of a computation: absent removes it. */
static inline hd_status write_result(hd_tx *tx, hd_cell output, hd_value v) {
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_value_exists(v) ? hd_tx_set(tx, output, v) : hd_tx_remove(tx, output);
}

/* A run that could not build, and why. */
hd_status part_failed(hd_tx *tx, hd_status status);

/* A computation on some cells, in the order in which they are declared. */
hd_cell add_computation(part *p, const hd_cell *reads, size_t count, const hd_cell *side);

#endif
