/* graph.h -- which nodes read and write what, in which order they run, and which of them are demanded.
 *
 *   readers    place -> nodes that read it, in place.watch            (readers.c, readers_link.c,
 *                                                                      readers_delta.c)
 *   writers    document -> nodes whose output or envelope lies in it,
 *              in place.doc.writer                                    (writers.c, envelope.c)
 *   order      a topological position for each node, repaired when
 *              an edge violates it                                    (order.c, order_search.c,
 *                                                                      order_sort.c, order_back.c)
 *   liveness   the least fixed point of spec 5.1                      (live.c, live_settle.c)
 *   kin        parents and children, which the order follows          (kin.c)
 *
 * An *edge* W -> R exists when a linked read of R and an output of W lie on one path of one document
 * (place_related); values do not matter. Edges are not stored, but for those that point down: they are
 * the join of the two lists at a document, so that adding a read costs O(writers related to it) and
 * nothing else. An *envelope edge* is the same with an envelope of W; it orders and does nothing else.
 * Self-edges do not exist.
 *
 * A read is *linked* while its node is live or clean. A dormant invalid node is in no reader list: a change
 * could tell it nothing but that it is invalid (P3, D5), so a write visits none of a million such nodes.
 *
 * Functions that need room in reader lists, read sets or writer lists return HD_NOMEM and change nothing.
 * Repairing the order and passing demand on cannot fail; see `back_lost` and NODE_OWED for what they
 * do without memory.
 *
 * Cost: link or unlink a read O(writers related to it), plus the repair of the order where an edge
 * violates it, plus the demand that it grants or withdraws. An unchanged read set costs nothing. */
#ifndef SCHEDULER_GRAPH_H
#define SCHEDULER_GRAPH_H

#include "base/hint.h"
#include "base/slab.h"
#include "scheduler/node.h"
#include "base/sabotage.h"

/* Bits of node.flags that the files of the graph write, as well as NODE_LINKED, NODE_MATERIALISER and
 * NODE_DORMANT. */
enum {
    /* Live, but there was no memory to put its reads into the index. It is invalid, and linked when
     * its reads are next applied. Until then it demands nothing of its writers. */
    NODE_OWED = 1 << 20,
    NODE_MORE = 1 << 21,      /* has further outputs or envelopes: a record in `surfaces` */
    NODE_KIN = 1 << 22,       /* has or had a parent or children: a record in `kin` */
    NODE_BACK = 1 << 23,      /* may stand in `back_edges` or `pending` */
    NODE_WITHDRAWN = 1 << 24, /* stands in `withdrawn` */
    NODE_REGION = 1 << 25,    /* scratch of live_settle.c */
    NODE_FORWARD = 1 << 26,   /* scratch of order: reached downstream */
    NODE_BACKWARD = 1 << 27   /* scratch of order: reached upstream */
};

#define SUMMARY_SHIFT 12 /* one word of the summary stands for 4096 positions */

typedef struct bitmap {
    uint64_t *words;
} bitmap;

/* One output or envelope, in the writer list of a document. */
#define WRITER_ENVELOPE UINT32_C(0x80000000) /* in writer.node, and in a surface's places */
typedef struct writer {
    uint32_t node; /* with WRITER_ENVELOPE */
    place_id place;
} writer;

typedef struct writer_list {
    writer *items;            /* NULL: this list is free */
    uint32_t count, capacity; /* of a free one: count is the next free list */
} writer_list;

/* What a node may write beyond its primary output. */
typedef struct surface {
    node_id node; /* 0: free */
    VEC(uint32_t)
    places; /* with WRITER_ENVELOPE */
    uint32_t envelopes;
} surface;

typedef struct kin_record {
    node_id node; /* 0: free */
    node_id parent, first_child;
    node_id next, prev; /* siblings; 0 ends */
} kin_record;

/* An edge by its ends. As a back edge: it would close a cycle, so it stays outside the order. */
typedef struct back_edge {
    node_id writer, reader;
} back_edge;

/* Nodes with their positions: position << 32 | node. */
typedef VEC(uint64_t) mark_vec;

#define GRAPH_BLOCK_CLASSES 7 /* slabs of 16, 32, ... 1024 bytes; larger blocks from env */
#define GRAPH_LIST_CLASSES  8 /* slabs of lists of 1, 2, ... 128 readers; others from env */

typedef struct graph {
    const hd_env *env;
    places *places;

    /* Nodes; owned here so that every part can reach them. Written by registry. */
    node *nodes;
    uint32_t node_count, node_capacity; /* nodes[0] is unused */

    /* Order. node_at[pos] is a node, or 0 for a hole. Positions below order_count. All arrays of
     * `order_capacity` (a power of two, at least 64), but for the two of liveness, lie in one block. */
    node_id *node_at;
    uint32_t order_count, order_capacity;
    uint32_t holes;
    bitmap invalid, live, eligible; /* by position */
    /* One bit per word of the three, and one per 1/64 of the capacity: may be set while nothing below
     * is runnable, never the other way round. */
    bitmap summary;
    uint64_t top;
    uint32_t top_shift; /* pos >> top_shift is the bit in `top`; at least 12 */

    /* New edges that point down; graph_settle puts them right. */
    VEC(back_edge) pending;

    /* Back edges. After graph_settle an edge is upward, or it is here; unless `back_lost`, when there was no memory to
     * write one down (or to look for a cycle): then order_retry finds them again. */
    VEC(back_edge)
    back_edges;
    table back_index; /* (writer, reader) -> index into back_edges */
    bool back_lost;
    uint32_t retry_low, retry_high; /* edges went away among these positions; high 0: none */

    /* Liveness. Both have order_capacity entries, and a node stands at most once in each, so that
     * demand and withdrawal need no memory. */
    node_id *withdrawn; /* lost a reference; waits for graph_settle */
    uint32_t withdrawn_count;
    bool withdrawn_left; /* some of them have left the graph meanwhile; by live.c */
    node_id *work;       /* stack of the walks */
    uint32_t work_count;

    /* Writers. */
    VEC(writer_list)
    writer_lists;               /* [0] is unused */
    uint32_t writer_lists_free; /* 0: none */
    table writer_index;         /* place -> index in its document's list */
    VEC(surface)
    surfaces;
    uint32_t surfaces_free; /* as index + 1 */
    table surface_index;    /* node -> index into surfaces */
    uint32_t materialisers_invalid;

    /* Kin. */
    VEC(kin_record)
    kin;
    uint32_t kin_free; /* as index + 1 */
    table kin_index;   /* node -> index into kin */

    /* Memory of read sets, by powers of two. And memory of reader lists: their capacities are powers of two, so a
     * power of two for the whole block would leave nearly half of it unused, because of the header. */
    slab blocks[GRAPH_BLOCK_CLASSES];
    slab lists[GRAPH_LIST_CLASSES];
    uint32_t large; /* blocks and lists too large for those; by readers.c */

    /* Scratch. */
    mark_vec forward, backward, sequence, pool;
    VEC(edge)
    fresh; /* a read set under change */
    VEC(uint32_t)
    fates;          /* per entry of `fresh`: where it goes */
    uint32_t *seen; /* keys of a large read set -> index; open addressing, 0 empty */
    uint32_t seen_capacity;

    /* Counters. */
    uint64_t repairs, repaired_nodes; /* order: repairs; nodes that moved, for whatever reason */
    uint64_t demand_visits; /* nodes whose demand was passed on, taken back or re-derived */
    uint64_t edge_visits;   /* readers and writers looked at in joins */
    SABOTAGE_FIELD
} graph;

hd_status graph_init(graph *g, const hd_env *env, places *ps);
/* Frees everything, nodes included; they need not be removed before. Places keep their references and their
 * `watch`, which is dangling then: the places are freed next, with the runtime. */
void graph_fini(graph *g);

static inline node *graph_node(const graph *g, node_id id) {
    assert(id && id < g->node_count);
    return &g->nodes[id];
}

/* ---- bits */

static inline void bit_set(bitmap b, uint32_t pos) {
    b.words[pos >> 6] |= UINT64_C(1) << (pos & 63);
}
static inline void bit_clear(bitmap b, uint32_t pos) {
    b.words[pos >> 6] &= ~(UINT64_C(1) << (pos & 63));
}
/* The same for a bit that is set. */
static inline void bit_clear_set(bitmap b, uint32_t pos) {
    assert(b.words[pos >> 6] >> (pos & 63) & 1);
    b.words[pos >> 6] ^= UINT64_C(1) << (pos & 63);
}
static inline bool bit_test(bitmap b, uint32_t pos) { return b.words[pos >> 6] >> (pos & 63) & 1; }

/* Something at `pos` may be runnable now. A bit that is set in the summary is set in `top` too. */
static inline void graph_raise(graph *g, uint32_t pos) {
    assert(pos < g->order_capacity);
    if (USUALLY(bit_test(g->summary, pos >> 6))) return;
    bit_set(g->summary, pos >> 6);
    g->top |= UINT64_C(1) << (pos >> g->top_shift);
}

static inline bool node_is_invalid(const graph *g, const node *n) {
    assert(!(n->flags & NODE_REMOVED) && n->pos < g->order_capacity);
    return bit_test(g->invalid, n->pos);
}
static inline bool node_is_live(const graph *g, const node *n) { return bit_test(g->live, n->pos); }
static inline bool node_is_eligible(const graph *g, const node *n) {
    return bit_test(g->eligible, n->pos);
}

/* Sets the status of a node that is live or about to run. For a dormant node that becomes invalid, see
 * graph_mark_invalid, which unlinks it; for an unlinked one that becomes clean, graph_mark_clean. */
static inline void graph_set_invalid(graph *g, node *n) {
    if (n->flags & NODE_MATERIALISER) g->materialisers_invalid += !node_is_invalid(g, n);
    bit_set(g->invalid, n->pos);
    graph_raise(g, n->pos);
}
/* The same for several in one word of 64 positions; no materialisers. */
static inline void graph_set_all_invalid(graph *g, uint32_t word, uint64_t bits) {
    g->invalid.words[word] |= bits;
    graph_raise(g, word << 6);
}
static inline void graph_set_clean(graph *g, node *n) {
    if (n->flags & NODE_MATERIALISER) g->materialisers_invalid -= node_is_invalid(g, n);
    bit_clear(g->invalid, n->pos);
}
static inline void graph_set_eligible(graph *g, node *n, bool on) {
    if (on) {
        bit_set(g->eligible, n->pos);
        graph_raise(g, n->pos);
    } else {
        bit_clear(g->eligible, n->pos);
    }
}

/* The runnable ones among the 64 positions of a word. */
static inline uint64_t graph_runnable(const graph *g, uint32_t word) {
    return g->invalid.words[word] & g->live.words[word] & g->eligible.words[word];
}

/* No other word of the summary is raised among those that share its bit of `top`. */
bool graph_is_last_of_share(const graph *g, uint32_t at);

/* For a word in which nothing is runnable: if it is the only one that is raised, lowers it. True: nothing is
 * runnable at all. */
static inline bool graph_lower_last(graph *g, uint32_t word) {
    assert(!graph_runnable(g, word));
    uint32_t at = word >> 6, shift = g->top_shift - SUMMARY_SHIFT;
    if (g->top != UINT64_C(1) << (at >> shift)) return false;
    if (g->summary.words[at] != UINT64_C(1) << (word & 63)) return false;
    if (RARELY(shift) && !graph_is_last_of_share(g, at)) return false;
    g->summary.words[at] = g->top = 0;
    return true;
}

/* The lowest runnable position at or above `from`, or UINT32_MAX. Amortised O(1) per bit found: words
 * with nothing runnable lose their summary bit. */
uint32_t graph_next_runnable(graph *g, uint32_t from);
/* The lowest of all; UINT32_MAX: then nothing is raised any more. */
uint32_t graph_lowest_runnable(graph *g);

/* ---- nodes (called by registry) */

/* Appends the node at the end of the order: eligible, invalid, dormant, nothing linked. The record is
 * in `nodes` already, with no reads and no output. HD_NOMEM. */
hd_status graph_add_node(graph *g, node_id id);
/* The same with one standing demand, as graph_demand gives it. */
hd_status graph_add_demanded(graph *g, node_id id);
/* Takes everything about the node out of the graph: outputs, envelopes, reads, demand, kin, position.
 * Its writers lose what it demanded at the next graph_settle. */
void graph_remove_node(graph *g, node_id id);

/* The node that created this one comes before it, unless data flows the other way (7.4). `parent` 0:
 * none. Replaces a former parent. HD_NOMEM. */
hd_status graph_set_parent(graph *g, node_id child, node_id parent);
node_id graph_parent(const graph *g, node_id child);
/* Children of a parent, newest first; 0 ends. */
node_id graph_first_child(const graph *g, node_id parent);
node_id graph_next_child(const graph *g, node_id child);

/* Outputs, the first of which is the primary one (node.output). Readers that are linked already
 * become dependents. Takes a reference to the place. An output is added once. HD_NOMEM: nothing
 * changed. */
hd_status graph_add_output(graph *g, node_id id, place_id output);
void graph_remove_output(graph *g, node_id id, place_id output);
/* Envelopes: they make the node a materialiser (NODE_MATERIALISER), ordered before nodes that read
 * inside. Its standing demand is the caller's to give (graph_demand). */
hd_status graph_add_envelope(graph *g, node_id id, place_id envelope);
void graph_remove_envelope(graph *g, node_id id, place_id envelope);

/* The ith output or envelope (with WRITER_ENVELOPE); 0: no more. */
uint32_t graph_output(const graph *g, node_id id, uint32_t i);

/* Calls fn for each node with an output (not an envelope) related to `p`. */
void graph_each_writer(const graph *g, place_id p, void (*fn)(void *ctx, node_id writer),
                       void *ctx);
/* Calls fn for each linked reader of an output of `id`, of what is above it or below (a reader may come more than
 * once). */
void graph_each_reader(const graph *g, node_id id, void (*fn)(void *ctx, node_id reader),
                       void *ctx);

/* ---- reads */

/* Replaces the node's read set by the delta to `keys` (without duplicates). If the node is live or
 * clean the reads are linked, whether or not they were. On HD_NOMEM the old read set stands, whole.
 * Takes place references. O(old + new) after the common prefix; allocates only when a capacity class
 * changes. */
hd_status graph_apply_reads(graph *g, node_id id, const uint32_t *keys, uint32_t count);
/* The same for a node that is linked and has no reads yet: nothing is compared, and the references to
 * the places become the graph's. On HD_NOMEM they stay the caller's, and nothing changed. */
hd_status graph_take_reads(graph *g, node_id id, const uint32_t *keys, uint32_t count);
/* Puts all reads into the index, or takes them out. No-ops when it is so already. A node that is
 * live is not unlinked. HD_NOMEM: nothing changed. */
hd_status graph_link(graph *g, node_id id);
void graph_unlink(graph *g, node_id id);

/* A value that the node read has changed: it becomes invalid, and if it is dormant it leaves the reader
 * lists. A caller that walks a reader list has to look at readers_count again after each call. */
static inline void graph_mark_invalid(graph *g, node_id id) {
    node *n = graph_node(g, id);
    graph_set_invalid(g, n);
    if (!node_is_live(g, n)) graph_unlink(g, id);
}
/* The node has seen the present values of its reads: links it if necessary. HD_NOMEM: nothing changed. */
static inline hd_status graph_mark_clean(graph *g, node_id id) {
    hd_status status = graph_link(g, id);
    if (!status) graph_set_clean(g, graph_node(g, id));
    return status;
}

/* ---- demand */

/* One standing demand more or less. Grants at once, up to every writer that it reaches; linking a
 * dormant invalid writer's reads on the way. Withdrawals wait for graph_settle. */
void graph_demand(graph *g, node_id id);
void graph_withdraw(graph *g, node_id id);

/* After a run or a registration, or a batch of them: puts the order right for the edges that came;
 * re-derives liveness in the region upstream of what was withdrawn, once for all of it (a node that
 * goes dormant while invalid is unlinked); and retries the back edges that were blocked by edges
 * which are gone. Costs one comparison when there is nothing to do. */
void graph_settle_slow(graph *g);
static inline void graph_settle(graph *g) {
    if (g->withdrawn_count | g->pending.count | g->retry_high) graph_settle_slow(g);
}

/* Closes the holes in the order once they are half of it. Positions change, so call it between
 * passes only. */
void graph_tidy(graph *g);

/* ---- checks, for debug builds and tests */

/* Reader lists and read sets point at each other; positions, bitmaps and node_at agree; all edges but
 * back edges go upward; live_refs and live equal a full recount from the standing demands (after
 * graph_settle). O(everything). */
void graph_check(const graph *g);

#endif
