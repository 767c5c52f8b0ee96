/* signal_core.h -- a minimal signals library in C, the yardstick for the scheduler.
 *
 * What the best push-pull libraries do, and nothing else: a write marks everything that depends
 * on it as stale and queues the effects among it; the effects then pull, and a node runs only if
 * one of the sources it read last time really changed. No documents, no transactions, no
 * journal, no causes, no demand beyond "an effect pulls it".
 *
 *     write --mark--> computed --mark--> effect       every node reached: stale
 *           <--check-           <--check-             run only what changed
 *
 * Whether something changed is told by two numbers per node instead of a second colour: the epoch
 * in which its value last changed and the epoch in which it was last known to be right. An edge
 * is so touched when it is marked, when it is checked and when it is read, never to pass news on.
 *
 * Edges are arrays of 8-byte halves with back-indices. A node reads its sources in the order of
 * its last run, so tracking an unchanged read set is one compare per read. */
#ifndef BENCH_SIGNAL_CORE_H
#define BENCH_SIGNAL_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct sc_core sc_core;

/* A body returns the node's value: the bits of a double, or a pointer. Values are compared as
 * bits. An effect returns 0. */
typedef uint64_t sc_body(sc_core *c, void *ctx);

/* One half of an edge. In a node's sources `node` is what it reads, in a node's readers who reads
 * it; `back` is the place of the other half in the other node's array. */
typedef struct sc_edge {
    uint32_t node;
    uint32_t back;
} sc_edge;

/* The first edge lies in the node; from the second on they lie in a block. */
typedef union sc_edges {
    sc_edge first;
    sc_edge *block;
} sc_edges;

/* One cache line. */
typedef struct sc_node {
    uint64_t value;
    sc_body *body; /* NULL: a signal */
    void *ctx;
    sc_edges sources;
    sc_edges readers;
    uint32_t source_count;
    uint32_t reader_count;
    uint32_t changed_at; /* the epoch in which value last became another one */
    uint32_t right_at;   /* the epoch in which value was last known to follow from the sources */
    bool stale;          /* something upstream changed. Invariant: then its readers are stale too */
    bool effect;
    uint8_t source_class; /* room for 1 << class edges; 0: the one in the node */
    uint8_t reader_class;
} sc_node;

_Static_assert(sizeof(sc_node) == 64, "a node is one cache line");

struct sc_core {
    sc_node *nodes; /* node 0 is nobody */

    /* The run in progress: where in its sources the next read is expected. */
    sc_edge *cursor;
    sc_edge *first;
    sc_edge *end;
    uint32_t running; /* 0: none, reads are not tracked */
    uint32_t epoch;   /* + 1 with each write that changes a value */

    uint32_t node_count;
    uint32_t node_limit;
    uint32_t depth;       /* bodies on the C stack */
    uint32_t batch_depth; /* > 0: effects wait */
    bool flushing;

    uint32_t *queue; /* effects to look at, in the order they were marked */
    uint32_t queue_count;
    uint32_t queue_capacity;

    uint32_t *marks; /* the stack of sc_mark */
    uint32_t mark_capacity;

    uint64_t *frames; /* the stack of sc_refresh: node << 32 | next source */
    uint32_t frame_count;
    uint32_t frame_capacity;

    uint64_t runs[2]; /* of computeds, of effects */

    char *chunk; /* where edge blocks come from */
    size_t chunk_left;
    void *chunks;
    void *free_blocks[32];
};

/* Room for `node_limit` nodes is reserved as addresses; memory follows with use. */
sc_core *sc_open(uint32_t node_limit);
void sc_close(sc_core *c);

uint32_t sc_signal(sc_core *c, uint64_t value);
uint32_t sc_computed(sc_core *c, sc_body *body, void *ctx); /* runs when first read */
uint32_t sc_effect(sc_core *c, sc_body *body, void *ctx);   /* runs now */

/* Effects run when the outermost batch ends; a write outside of any is a batch of its own. */
void sc_batch_begin(sc_core *c);
void sc_batch_end(sc_core *c);
void sc_write(sc_core *c, uint32_t signal, uint64_t value);

/* ---- Reading, inline --------------------------------------------------------------------- */

/* The two rare cases of a read. */
void sc_track_changed(sc_core *c, uint32_t source);
void sc_refresh(sc_core *c, uint32_t node);

/* Reads inside a body, and notes that the body depends on it. */
static inline uint64_t sc_read(sc_core *c, uint32_t source) {
    sc_node *n = &c->nodes[source];
    sc_edge *cursor = c->cursor;
    if (__builtin_expect(n->stale, 0)) sc_refresh(c, source);
    if (__builtin_expect(cursor != c->end && cursor->node == source, 1)) c->cursor = cursor + 1;
    else if (cursor == c->first || cursor[-1].node != source) sc_track_changed(c, source);
    return n->value;
}

/* Reads from outside. */
static inline uint64_t sc_peek(sc_core *c, uint32_t node) {
    if (c->nodes[node].stale) sc_refresh(c, node);
    return c->nodes[node].value;
}

static inline uint64_t sc_bits(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static inline double sc_double(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

#endif
