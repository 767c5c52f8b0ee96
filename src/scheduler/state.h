/* state.h -- what the scheduler's components share.
 *
 * Each part is written by the component named; the others look. Components call each other only in
 * the directions of the seed's section 12 (tools/check_layers); nobody calls back into the facade. */
#ifndef SCHEDULER_STATE_H
#define SCHEDULER_STATE_H

#include "base/binheap.h"
#include "base/hint.h"
#include "base/list.h"
#include "scheduler/graph.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/key.h"

#define RUNS_OVER      (UINT32_C(1) << 31)
#define ITERATIONS_MAX 10 /* sweeps per pass, and so runs of one node per pass */
#define RETRIES_MAX    10 /* of transient failures */
#define BACKOFF_MS     250
#define BACKOFF_MAX_MS 2000
#define IDLE_HOLDS_MAX 3
#define HOLD_MS        2000 /* the longest wait for a first sync, unless it is said */

/* When may a node run? Each policy writes one field; see gates.h. */
typedef struct gate {
    uint32_t debounce_ms, throttle_ms;
    bool no_auto, auto_set;
    bool backed;         /* stands in scheduler.backed; by settle */
    uint8_t streak;      /* consecutive exhaustions; not 0: it has not settled since */
    uint32_t timed_runs; /* with NODE_TIMED, since one was slow; and what they took */
    uint64_t timed_ns;
    uint8_t retries; /* refusals and transient failures in a row */
    uint8_t holds;   /* backoffs in the episode below */
    uint8_t echoes;  /* times it overwrote another's write, since echo_since */
    uint8_t echo_streak;
    uint64_t debounce_at, throttle_at, backoff_at, echo_at, hold_at, retry_at;
    /* Of the replica when the pass in which the node was exhausted had ended; UINT64_MAX: it has not ended.
     * What the node reads and is newer comes from elsewhere: while it waits, what it feeds waits too. */
    uint64_t exhausted_rev;
    uint64_t told; /* the episode of not settling in which it was named; by settle */
    uint64_t echo_since, holds_episode;
    uint64_t armed_at;  /* when the debounce of its first run began */
    binheap_item timer; /* linked while the node is set aside */
} gate;

/* Nodes of a name do not run for the first time before this is over. By gates_hold.c. */
typedef struct hold {
    uint64_t id;
    struct key *name; /* referenced; NULL: all */
    uint64_t until;
} hold;

typedef struct kept_causes kept_causes; /* of causes.c */

#define AWAITING_LISTS 256

/* What few nodes have. */
typedef struct cold {
    node_id node; /* 0: free */
    uint32_t next_free;
    void (*release)(void *ctx);
    uint64_t group;
    gate gate;
    uint32_t transient; /* failures in a row */
    uint32_t stale;     /* stale rejections in a row */
    hd_run *run;        /* suspended */
    hd_run *blocked_by; /* NODE_BLOCKED: the suspended run that has to end first */
    list_node blocked;  /* and while it is: in that run's `blocked` */
    place_id missing;   /* the document it waits for; 0: none */
    list_node awaiting; /* while it does: in scheduler.awaiting */
    uint32_t failures;  /* reported */
    uint32_t runs_over; /* so many times RUNS_OVER have been taken off node.runs */
} cold;

/* Beside each node, in an array of its own. */
typedef struct node_side {
    uint32_t generation;
    uint32_t timed_runs;
    uint64_t total_ns;
} node_side;

typedef struct repeat {
    node_id node;
    uint32_t count;
} repeat;

typedef struct idle_waiter {
    hd_idle_fn fn;
    void *ctx;
} idle_waiter;

typedef struct error_handler {
    hd_error_fn fn;
    void *ctx;
} error_handler;

/* An async run between its body and its end. */
struct hd_run {
    list_node link; /* in scheduler.suspensions, or in scheduler.resumed */
    struct scheduler *s;
    hd_tx *tx; /* whose owner is this */
    node_id node;
    uint32_t generation;
    hd_status status; /* in `resumed`: of its end */
    list blocked;     /* cold records of nodes downstream that wait for its end */
};

typedef enum trigger_decision {
    TRIGGER_MARK,
    TRIGGER_ALREADY,
    TRIGGER_SKIP_OWN,
    TRIGGER_SKIP_GROUP
} trigger_decision;

/* What somebody who looks is told. Filled in by introspection; nothing depends on it (P10). */
typedef struct tracer {
    void (*change)(struct scheduler *s, place_id at, hd_value before, hd_value after);
    void (*trigger)(struct scheduler *s, node_id id, trigger_decision decision);
    /* Before the body; after it, with reads and writes as they were made; and when the run has been
     * concluded, with what became of it. Of a suspended run the last one comes alone. */
    void (*run_begin)(struct scheduler *s, node_id id);
    void (*run_body)(struct scheduler *s, node_id id, const hd_tx *tx, hd_status status);
    void (*run_end)(struct scheduler *s, node_id id, hd_tx *tx, hd_status status);
} tracer;

/* The same for passes: it does not make runs take the long way. */
typedef struct pass_tracer {
    void (*begin)(struct scheduler *s);
    void (*end)(struct scheduler *s);
} pass_tracer;

typedef struct scheduler {
    hd_runtime *rt;
    replica *r;
    const hd_env *env;

    /* registry */
    graph graph;
    node_side *sides; /* by node; capacity is side_capacity */
    uint32_t side_capacity;
    struct key **node_names; /* by node, referenced; NULL: anonymous, as are those behind the end */
    uint32_t name_capacity;
    node_id free_nodes; /* linked through node.cold */
    VEC(cold *) colds;  /* [0] is unused */
    uint32_t colds_free;
    table names; /* (parent, name) -> node */
    uint32_t effects, computations, materialisers;

    /* causes */
    kept_causes **caused; /* by node, of those with NODE_CAUSED; NULL for the others */
    uint32_t caused_capacity;
    kept_causes *spare_causes; /* an empty one, or NULL */
    place_vec told;            /* scratch of those who ask; no references */

    /* runner */
    hd_tx *tx;          /* of the next run */
    uint64_t runs[2];   /* completed: of computations, of effects */
    node_id running;    /* whose body is on the stack; 0 */
    node_id concluding; /* whose run is being written down; 0. Who hears of that may cancel it */
    bool cancelled;     /* one of these two is to go when that is over */
    edge inline_read;   /* the running node's only read: its record may move meanwhile */
    uint32_t suspended; /* async runs of nodes that are there */
    list suspensions;   /* async runs, also of nodes that are gone */
    list resumed;       /* resumed from a body: they end between runs */
    bool
        unblock; /* nodes left the graph: whether blocked nodes still have to wait is asked again */
    /* What runner_upstream.c knows. */
    uint64_t *checked;          /* by node: the epoch in which nothing upstream was out of date */
    uint32_t checked_capacity;  /* 0: none yet */
    uint64_t upstream_epoch;    /* counts: something upstream of checked nodes may have changed */
    uint32_t suspended_low;     /* no suspended node has a lower position; UINT32_MAX: none */
    uint64_t upstream_moves;    /* graph.repaired_nodes as of suspended_low */
    VEC(node_id) upstream_walk; /* visited by the search under way */
    char message[256];          /* of hd_tx_fail */

    /* settle */
    uint64_t pass;
    uint32_t iteration;      /* 0: between passes */
    uint32_t cursor;         /* the sweep is here */
    uint32_t counting;       /* not 0: a node may run again, after the first sweep or going back */
    bool tick;               /* there may be something to do */
    uint64_t slice_end;      /* 0: unlimited */
    uint32_t until_clock;    /* runs until one takes the long way: for the clock, or a tracer */
    uint64_t clock_ns;       /* the last reading */
    bool fine;               /* every run is timed: they are slow */
    uint32_t gave_way;       /* the sweep at which the last pass used up its slice; 0: none */
    uint32_t gave_way_at;    /* and the cursor then */
    uint64_t gave_way_moves; /* and how many nodes had ever moved */
    bool must_wait; /* until the next pump nobody runs: somebody has to end something first */
    VEC(node_id) provisional; /* registered in this pass by a live run */
    VEC(repeat) repeats;      /* runs of this pass, counted from the second sweep on */
    table repeat_index;       /* node -> index into repeats */
    node_id aside;            /* the run that ended last was set aside: it does not count; 0 */
    uint64_t moves; /* graph.repaired_nodes at the end of the last run that looked; by runner */
    bool behind;    /* something below the cursor may be runnable; by runner and settle */
    VEC(node_id) requested;   /* NODE_DEMANDED */
    VEC(node_id) waiting;     /* invalid materialisers, for their turn */
    VEC(node_id) backed;      /* nodes with a backoff, each once */
    uint32_t deferred_passes; /* in a row, that ended at the limit */
    uint64_t episode;         /* counts arrivals at idle */
    uint64_t idle_rev;        /* the replica's revision at the last of them */
    uint64_t
        unsettled_episode; /* from 1; counts the times at which no node had a backoff any more */

    /* gates */
    binheap timers; /* nodes set aside, by the time they may run */
    VEC(hold) holds;
    uint64_t next_hold; /* counts them */
    bool starved;       /* there are nodes with NODE_STARVED */

    /* facade */
    uint32_t work; /* hd_work_begin */
    VEC(idle_waiter) idlers;
    VEC(error_handler) error_handlers;
    hd_log_fn log_fn;
    void *log_ctx;

    hd_telemetry_fn telemetry_fn;
    void *telemetry_ctx;

    struct events *events; /* events; NULL until the first stream */

    hd_scheduler_stats stats;
    uint64_t filter_base_runs, filter_base_filtered; /* at the last reset */
    const tracer *tracer;                            /* NULL: nobody looks */
    const pass_tracer *pass_tracer;                  /* ditto */
    bool rechecking; /* the body on the stack runs once more, for its writes to be compared */
    void (*removed)(struct scheduler *s, node_id id); /* a node is about to go; NULL */
    /* Which piece a node belongs to, and of which pattern that is; NULL: all are of "main". */
    const char *(*piece_of)(const struct scheduler *s, node_id id, const char **pattern);
    struct introspection *introspection; /* what was seen */
    /* Whoever opens pieces. A live node reads a document that nobody here writes; called once for
     * each, between or within runs. And an event has no handler: HD_OK if that may have changed. */
    void (*wanted)(struct scheduler *s, place_id doc);
    hd_status (*unhandled)(struct scheduler *s, place_id stream);
    struct persistence *persistence;                  /* what is kept; NULL: nothing is */
    void (*leaving)(struct scheduler *s, node_id id); /* as `removed`, for persistence; NULL */
    list awaiting[AWAITING_LISTS]; /* cold records of who waits for a document, by its number */
    SABOTAGE_FIELD
} scheduler;

/* A live node reads these. */
static inline void ask_for_writers(scheduler *s, const node *n) {
    if (!s->wanted) return;
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        place_id root = place_at(&s->r->places, reads[i].key & KEY_PLACE)->root;
        place *doc = place_at(&s->r->places, root);
        if (doc->doc.writer || (doc->doc.flags & DOC_ASKED)) continue;
        doc->doc.flags |= DOC_ASKED;
        s->wanted(s, root);
    }
}

static inline cold *cold_of(const scheduler *s, const node *n) {
    return n->cold ? s->colds.items[n->cold] : NULL;
}
/* All of the node's, ever. */
static inline uint64_t node_runs(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    return n->runs + (c ? (uint64_t)c->runs_over * RUNS_OVER : 0);
}

static inline uint64_t runs_completed(const scheduler *s) { return s->runs[0] + s->runs[1]; }

static inline node *node_of(const scheduler *s, node_id id) { return graph_node(&s->graph, id); }

static inline struct key *node_own_name(const scheduler *s, node_id id) {
    return id < s->name_capacity ? s->node_names[id] : NULL;
}
/* "" for one without a name, and for none. */
static inline const char *node_label(const scheduler *s, node_id id) {
    const struct key *name = node_own_name(s, id);
    return name ? key_bytes(name) : "";
}

/* The space that a node is about: of its output, or of what it reads first; "" if it has neither. */
static inline const char *node_space(const scheduler *s, node_id id) {
    const node *n = id ? node_of(s, id) : NULL;
    if (!n || !(n->output || n->read_count)) return "";
    place_id at = n->output ? n->output : node_reads_const(n)[0].key & KEY_PLACE;
    return key_bytes(s->r->places.homes.items[place_doc(&s->r->places, at)->doc.home].space);
}

static inline const char *piece_of(const scheduler *s, node_id id, const char **of) {
    *of = "";
    return s->piece_of && id ? s->piece_of(s, id, of) : "main";
}

static inline void tell(const scheduler *s, const hd_telemetry *t) {
    if (s->telemetry_fn) s->telemetry_fn(s->telemetry_ctx, t);
}

#endif
