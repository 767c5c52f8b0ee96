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
#define PART_NAME_MAX   220 /* of one part: leaves room for ".elements" and for the keys of rows */

typedef struct build_stop_fn {
    void (*fn)(void *ctx);
    void *ctx;
} build_stop_fn;

struct hd_build {
    patterns *all;
    piece *of;
    hd_build *up;      /* NULL: the piece's own */
    list_node sibling; /* in up->children */
    list children;
    pattern what; /* whose code it is: the piece's, or that of the pattern used */
    part *owner;  /* the list or derived pattern it is a part of; NULL: used, or the piece's own */
    list parts;   /* in order of their making */
    VEC(build_stop_fn) stops;

    char *path;     /* of its documents: "corner/prices/3" */
    uint32_t local; /* where in `path` the names of its nodes begin: after its parent node's */
    hd_node under;  /* parent of its nodes; id 0: none */

    /* Of the round in progress. */
    hd_tx *tx;
    const hd_named_cell *in; /* arguments, of a pattern that is used */
    size_t in_count;
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
/* For a part that has not been added. */
void part_free(part *p);

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
    bool stopping;      /* a stop has been posted */
    bool going;         /* it is being stopped, its children first */
    bool opened;        /* its document is left alone */
    bool resumed;       /* it was there, of this very version: it has all the state it needs */
    hd_value arguments; /* while it is being built: with defaults; borrowed from the tx */
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
    uint64_t started;          /* how many pieces there were */
    uint32_t building;         /* functions of pieces on the stack */
    list launches, replies;    /* without a verdict */
    VEC(uint64_t) forsworn;    /* hashes of (space, id) that the program stopped */
    struct fetcher *fetcher;   /* NULL until the first fetch */
    void (*close_fetcher)(struct fetcher *f);
};

/* The runtime's, made at first use. NULL: no memory. */
patterns *patterns_of(hd_runtime *rt);
static inline patterns *patterns_get(const hd_runtime *rt) { return rt->extension.ctx; }
const pattern *patterns_find(const patterns *all, const char *name);

/* A piece that the program stopped stays so until it is started: nobody's demand opens it. Without
 * memory it may be opened. */
void patterns_forswear(patterns *all, const char *space, const char *name, bool on);
bool patterns_forsworn(const patterns *all, const char *space, const char *name);

/* From now on pieces are opened when somebody wants something of them. */
void demand_attach(patterns *all);

/* The piece behind a handle; NULL: gone. */
piece *piece_get(const patterns *all, hd_piece handle);
static inline hd_piece handle_of(const piece *p) {
    return p ? (hd_piece){ p->id, p->generation } : (hd_piece){ 0, 0 };
}
/* Stops it and frees the record. Not inside its own run. */
void piece_forget(piece *p);

/* ---- Shared by the primitives */

/* Writes the result of a computation: absent removes it. */
static inline hd_status write_result(hd_tx *tx, hd_cell output, hd_value v) {
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_value_exists(v) ? hd_tx_set(tx, output, v) : hd_tx_remove(tx, output);
}

/* A computation on some cells, in the order in which they are declared. */
hd_cell add_computation(part *p, const hd_cell *reads, size_t count, const hd_cell *side);

#endif
