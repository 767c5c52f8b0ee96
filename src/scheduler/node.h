/* node.h -- one record per node: start reading here.
 *
 * A node is a function over a transaction, plus what the scheduler knows about it. Everything hot is
 * in one cache line; what few nodes have (gates, several outputs, an envelope, a name) is beside it.
 *
 *     RUNNABLE = invalid and live and eligible
 *
 *   invalid    a value it read has changed since its last completed run, or it never ran
 *   live       an effect or materialiser, or read (transitively) by one; see graph.h
 *   eligible   no time gate blocks it; see gates.h
 *
 * These three are not fields but bitmaps over *positions* (topological order), so that "the lowest
 * runnable node" is an AND of three words. A node knows its position; node_at[] leads back.
 *
 * Causes need no bookkeeping as long as a node reads what it read before: every place carries the
 * revision of its last change; see causes.h. */
#ifndef SCHEDULER_NODE_H
#define SCHEDULER_NODE_H

#include "store/place.h"
#include "store/tx.h"
#include <heddle/introspect.h>

typedef uint32_t node_id; /* 0 is no node */
#define NODE_MAX UINT32_C(0x7FFFFFFE)

/* One registered read: which place, how (KEY_SHAPE, KEY_NO_CLAIM), and where in that place's reader
 * list our entry stands, so that both halves find each other in O(1). The layout of `key` at a
 * stride of 8 bytes is what a transaction compares its reads with (tx.h). */
typedef expected edge;           /* { uint32_t key; uint32_t slot; } */
#define EDGE_UNLINKED UINT32_MAX /* slot of a read that is not in the index now */

enum {
    NODE_EFFECT = 1,       /* else a computation */
    NODE_MATERIALISER = 2, /* a computation with an envelope: standing demand, idle priority */
    NODE_NEVER_RAN = 4,    /* its reads are the declared ones */
    NODE_LINKED = 8,       /* its reads are in the index: it is live or clean */
    NODE_PROVISIONAL = 16, /* demanded by its creation; see spec 5.3 */
    NODE_RUNNING = 32,     /* its body is on the stack, or suspended */
    NODE_SUSPENDED = 64,   /* async: waits for its completion; invalid until then */
    NODE_REMOVED = 128,
    NODE_PROMOTED = 256,     /* a materialiser that runs with the primary work of this pass */
    NODE_DEMANDED = 512,     /* by an event's closure, or a run request; until it is clean */
    NODE_ROOT_OUT = 1024,    /* its one output is a whole document: commit in place */
    NODE_GATED = 2048,       /* has gate state in its cold record */
    NODE_WAITING = 4096,     /* its last run met a document that is still loading */
    NODE_EPHEMERAL = 8192,   /* a pull: removed after its run */
    NODE_BLOCKED = 16384,    /* a suspended run upstream has to end first; see runner/upstream.c */
    NODE_STARVED = 32768,    /* its last run had no memory: it waits for the next pump */
    NODE_NOTED = 1 << 16,    /* its next completed run calls persistence_ran_slow */
    NODE_RESUMED = 1 << 17,  /* its reads are from a row of the store: it has not run here yet */
    NODE_DORMANT = 1 << 18,  /* its bit in `live` is not set: a copy in the node; by graph */
    NODE_CAUSED = 1 << 19,   /* has a record of causes; by causes */
    NODE_TOLD_WHY = 1 << 29, /* the record names causes of its next run; by causes */
    NODE_TIMED = 1 << 30,    /* an effect whose run is timed, from its third on: gates_times_next */
    NODE_VISITED = 1 << 28   /* scratch of runner/upstream.c */
};
#define NODE_OVERWRITTEN                                                                           \
    (UINT32_C(1) << 31) /* in scheduler.overwritten; by invalidation and adopt */

/* 64 bytes. Written by registry, except where a field says otherwise. */
typedef struct node {
    hd_action_fn fn;
    void *ctx;

    /* The read set, in the order of the last run (or as declared, before the first). One read
     * stands inline. Capacity is read_count rounded up to a power of two. Written by graph. */
    union {
        edge one;
        edge *many;
    } reads;
    uint32_t read_count;

    place_id output; /* primary output; 0: none. Further ones are in graph.surfaces (NODE_MORE). */
    uint32_t pos;    /* position in the order; written by order */

    /* Live readers of our outputs (each linked, overlapping read of a live node counts one), plus one
     * for each standing demand (effect, materialiser, provisional, demanded). Live iff > 0, apart
     * from cycles: see live.c. Written by graph. */
    uint32_t live_refs;

    uint64_t ran_rev;   /* the replica's revision when the last run completed */
    uint32_t prev_back; /* ran_rev - prev_back: when the run before that completed; saturates */
    uint32_t runs;      /* completed; 0: none. With those in the cold record: node_runs */
    uint32_t flags;     /* NODE_*; several components write them */
    uint32_t cold;      /* index of the cold record; 0: none. NODE_REMOVED: the next free node */
} node;

_Static_assert(sizeof(node) == 64, "a node is one cache line");

static inline edge *node_reads(node *n) {
    return n->read_count <= 1 ? &n->reads.one : n->reads.many;
}
static inline const edge *node_reads_const(const node *n) {
    return n->read_count <= 1 ? &n->reads.one : n->reads.many;
}

/* An entry in a place's reader list: the node, and which of its reads. */
#define READER_SHAPE    UINT32_C(0x80000000)
#define READER_SLOT_MAX UINT16_MAX /* the highest slot that stands in two bytes */
typedef struct reader {
    uint32_t node; /* with READER_SHAPE */
    uint32_t slot; /* index into the node's reads */
} reader;

/* What place.watch points to when there is more than one deep reader. The nodes come first, since
 * marking them needs nothing else; behind them the slots, two bytes each unless the list is wide. */
typedef struct watch {
    uint64_t shape_rev; /* revision of the last change of shape */
    uint32_t count;
    uint32_t shapes;  /* readers by shape among them */
    uint8_t room;     /* log2 of how many it has room for */
    bool wide;        /* slots have four bytes: one of them is, or was, above READER_SLOT_MAX */
    uint32_t nodes[]; /* with READER_SHAPE; then the slots */
} watch;

static inline uint32_t watch_capacity(const watch *w) { return UINT32_C(1) << w->room; }
static inline reader watch_at(const watch *w, uint32_t i) {
    const void *slots = w->nodes + watch_capacity(w);
    assert(i < w->count);
    return (reader){ w->nodes[i],
                     w->wide ? ((const uint32_t *)slots)[i] : ((const uint16_t *)slots)[i] };
}
static inline void watch_put(watch *w, uint32_t i, reader r) {
    void *slots = w->nodes + watch_capacity(w);
    assert(i < watch_capacity(w) && (w->wide || r.slot <= READER_SLOT_MAX));
    w->nodes[i] = r.node;
    if (w->wide) ((uint32_t *)slots)[i] = r.slot;
    else ((uint16_t *)slots)[i] = (uint16_t)r.slot;
}

/* The word place.watch: 0: no reader; odd: one reader, inline (node << 32 | slot << 1 | 1); else a watch *. */
static inline bool watch_is_inline(uint64_t word) { return word & 1; }
static inline uint64_t watch_inline(reader r) {
    return (uint64_t)r.node << 32 | (uint64_t)r.slot << 1 | 1;
}
static inline reader watch_reader(uint64_t word) {
    return (reader){ (uint32_t)(word >> 32), (uint32_t)(word & UINT32_MAX) >> 1 };
}
static inline watch *watch_list(uint64_t word) { return (watch *)(uintptr_t)word; }

#endif
