/* state.h -- what the scheduler's components share.
 *
 * Each part is written by the component named there; the others read it. Components include each other in
 * the directions of section 12 (tools/check_layers checks that), and none includes the facade. */
#ifndef SCHEDULER_STATE_H
#define SCHEDULER_STATE_H

#include "base/binheap.h"
#include "base/hint.h"
#include "base/list.h"
#include "scheduler/graph/graph.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/build_id.h"
#include "value/key.h"

#define RUNS_OVER      (UINT32_C(1) << 31)
#define ITERATIONS_MAX 10 /* sweeps per pass, and so runs of one node per pass */
#define REPEATS_END    16 /* above what scheduler.repeats counts up to */
#define RETRIES_MAX    10 /* of transient failures */
#define BACKOFF_MS     250
#define BACKOFF_MAX_MS 2000
#define STARVED_MS     10000 /* a run that has been put off for so long may never come */
#define IDLE_HOLDS_MAX 3
#define HOLD_MS        2000 /* the longest wait for a first sync, unless it is said */

/* When may a node run? Each policy writes one field; see gates.h. */
typedef struct gate {
    uint32_t debounce_ms, throttle_ms;
    bool no_auto, auto_set;
    bool backed;    /* is in scheduler.backed */
    uint8_t streak; /* consecutive exhaustions; not 0: it has not settled since */
    /* How often a run of the node was suspended, or waited for a suspended run, and its causes led back to
     * the node itself, since the node was last exhausted; see runner/rounds.c. goes_round: it was so at
     * least once since the node settled. */
    uint8_t rounds;
    bool goes_round;
    uint32_t timed_runs; /* runs with NODE_TIMED since the first slow one; and the time they took */
    uint64_t timed_ns;
    uint8_t retries; /* refusals and transient failures in a row */
    uint8_t again; /* times in a row that it was invalid again soon after a run: gates_goes_round */
    uint8_t holds; /* backoffs in the episode holds_episode */
    uint8_t echoes; /* times it overwrote another writer's value, since echo_since */
    uint8_t echo_streak;
    uint64_t debounce_at, throttle_at, backoff_at, echo_at, hold_at, retry_at;
    uint64_t
        lead_at; /* until then the node, or one upstream of it, waits for another process's result */
    /* The replica's revision at the end of the pass that exhausted the node; UINT64_MAX: that pass has not
     * ended. A change of what the node reads after it comes from outside of the node's own cycle. */
    uint64_t exhausted_rev;
    uint64_t
        round_rev; /* node.ran_rev when a round was last looked for: each run is looked at once */
    uint64_t told; /* scheduler.unsettled_episode when the node was named last; by settle */
    uint64_t echo_since, holds_episode;
    uint64_t armed_at; /* when the debounce began that holds it, or held it last */
    uint64_t
        ran_at; /* when its last run completed, of a node with a debounce or throttle; 0: none has */
    binheap_item timer; /* linked while the node waits for a time; its key is gates_eligible_at() */
} gate;

/* While a hold lasts, nodes of a name do not run for the first time. Written by gates/hold.c. */
typedef struct hold {
    uint64_t id;
    struct key *name; /* referenced; NULL: all nodes */
    uint64_t until;
} hold;

typedef struct kept_causes kept_causes; /* of causes.c */

#define AWAITING_LISTS 256

/* The cold record: state that few nodes have. Made by registry_cold(), and kept as long as the node. */
typedef struct cold {
    node_id node; /* 0: free */
    uint32_t next_free;
    hd_release_fn release;
    uint64_t group;
    gate gate;
    uint32_t transient; /* transient failures in a row */
    uint32_t stale;     /* stale refusals in a row */
    hd_run *run;        /* NODE_SUSPENDED: its suspended run; else NULL */
    hd_run *blocked_by; /* NODE_BLOCKED: the suspended run that has to end first; else NULL */
    list_node blocked;  /* NODE_BLOCKED: in blocked_by->blocked */
    place_id missing;   /* the document that the node waits for; 0: none */
    list_node awaiting; /* linked while `missing` is set: in scheduler.awaiting */
    uint8_t warned;     /* what surface.c has warned of */
    bool gave_up;       /* RETRIES_MAX transient failures in a row, and no success since */
    bool
        rereads; /* a sink with a group: a commit of the group marks it, too; by scheduler_sink.c */
    bool quiet;  /* invalid by such commits alone: its next run does not call the sink's function */
    uint64_t mended;    /* node_runs when an output was last found written over; by gates */
    uint32_t failures;  /* reported to the error handlers */
    uint64_t failed_in; /* the number of the last run that has failed; 0: none */
    uint32_t runs_over; /* how many times RUNS_OVER has been taken off node.runs */
    /* Of a node that another process computes (runner/lead.c). */
    uint32_t patience_ms; /* how long it waits for a result; 0: not known */
    uint64_t
        asked_ns;  /* since when it has not been clean in a pass, and waits; 0: it does not wait */
    bool answered; /* a row of that process has arrived since */
} cold;

/* Beside each node, in an array of its own: what runs do not need. */
typedef struct node_side {
    uint32_t generation;
    uint32_t timed_runs;
    uint64_t total_ns;
} node_side;

typedef struct idle_waiter {
    hd_idle_fn fn;
    void *ctx;
} idle_waiter;

typedef struct error_handler {
    hd_error_fn fn;
    void *ctx;
} error_handler;

/* A suspended (async) run: its body has returned or is about to, and its end is still to come. */
struct hd_run {
    list_node link; /* in scheduler.suspensions, or in scheduler.resumed */
    struct scheduler *s;
    hd_tx *tx; /* tx->owner is this record */
    node_id node;
    uint32_t generation; /* of the node's handle: the node may be removed meanwhile */
    bool parked;         /* nothing can go on with it until hd_runtime_unpark */
    hd_status status;    /* in `resumed`: what the run ends with */
    list blocked;        /* cold records of nodes downstream that wait for its end */
};

typedef enum trigger_decision {
    TRIGGER_MARK,
    TRIGGER_ALREADY,
    TRIGGER_SKIP_OWN,
    TRIGGER_SKIP_GROUP
} trigger_decision;

/* Hooks of introspection. Scheduling does not depend on whether they are set (P10). */
typedef struct tracer {
    void (*change)(struct scheduler *s, place_id at, hd_value before, hd_value after);
    void (*trigger)(struct scheduler *s, node_id id, trigger_decision decision);
    /* Called before the body; after it, with the reads and writes it made; and when the run has been
     * concluded, with its outcome. For a suspended run, run_end is called when the run ends. */
    void (*run_begin)(struct scheduler *s, node_id id);
    void (*run_body)(struct scheduler *s, node_id id, const hd_tx *tx, hd_status status);
    void (*run_end)(struct scheduler *s, node_id id, hd_tx *tx, hd_status status);
} tracer;

/* The same for passes. A separate record, because a `tracer` makes all runs take the long way. */
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
    struct key **node_names; /* by node, referenced; NULL, or beyond the capacity: anonymous */
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
    place_vec told;            /* scratch of callers of causes_of_next and _last; no references */

    /* invalidation */
    VEC(node_id) overwritten; /* those with NODE_OVERWRITTEN; may hold others, and removed ones */
    bool asynchronous;        /* a run has been suspended: from then on `authors` is kept */
    node_id *authors;         /* by place: the node that changed it last; 0: none, or not known */
    uint32_t author_capacity;

    /* runner */
    hd_tx *tx;          /* the transaction of the next run */
    uint64_t runs[2];   /* completed runs: of computations, of effects */
    node_id running;    /* the node whose body is on the stack; 0: none */
    node_id concluding; /* the node whose run is being committed or reported; 0: none */
    bool cancelled;     /* the node above was cancelled: it is removed at the end of its run */
    edge inline_read;   /* a copy of the running node's only read: node records may move */
    uint32_t suspended; /* nodes with NODE_SUSPENDED */
    uint32_t parked;    /* those of them whose run is parked: idle does not wait for these */
    list suspensions;   /* suspended runs, also of nodes that are gone */
    list resumed;       /* runs that were resumed from inside a body: the next pass ends them */
    bool
        unblock; /* edges are gone: the next pass unblocks all nodes; the sweep blocks them again */
    /* The memory of runner/upstream.c. */
    uint64_t *checked; /* by node: the last epoch in which nothing upstream was out of date */
    uint32_t checked_capacity; /* 0: none yet */
    uint64_t upstream_epoch; /* raised when something upstream of checked nodes may have changed */
    uint32_t suspended_low;  /* no suspended node has a lower position; UINT32_MAX: none */
    uint64_t upstream_moves; /* graph.repaired_nodes when suspended_low was found */
    VEC(node_id) upstream_walk; /* visited by the search under way; else empty */
    char message[256];          /* of hd_tx_fail, for the run or handling under way */
    uint64_t handlings;         /* handler bodies begun: runner_body tells them apart */

    /* settle */
    uint64_t pass;
    uint32_t iteration;       /* 0: between passes */
    uint32_t cursor;          /* the position from which the sweep goes on */
    uint32_t asks;            /* not 0: each node needs a look before it runs; else most do not */
    uint32_t counting;        /* not 0: nodes may run again in this pass, so runs are counted */
    bool tick;                /* there may be something for a pass to do */
    uint64_t slice_end;       /* 0: unlimited */
    uint32_t until_clock;     /* runs until one is timed */
    uint64_t clock_ns;        /* the reading at the end of the last run; 0: it was not timed */
    bool fine;                /* runs are slow at present: every run is timed */
    uint32_t gave_way;        /* the sweep at which the last pass used up its slice; 0: none */
    uint32_t gave_way_at;     /* the cursor then */
    uint64_t gave_way_moves;  /* graph.repaired_nodes then */
    bool must_wait;           /* no node runs before the next pump; set by the pattern layer */
    VEC(node_id) provisional; /* nodes with NODE_PROVISIONAL */
    /* By node: the last pass in which its runs were counted, times REPEATS_END, and how many of them. */
    uint64_t *repeats;
    uint32_t repeat_capacity; /* 0: none yet */
    node_id aside;          /* the node whose run was set aside last, until that is discounted; 0 */
    uint64_t moves;         /* graph.repaired_nodes when a run last looked at it; by runner */
    bool behind;            /* something below the cursor may be runnable; by runner and settle */
    VEC(node_id) requested; /* nodes with NODE_DEMANDED, and pulls */
    VEC(node_id) waiting;   /* invalid materialisers that wait for idle priority */
    uint32_t waiting_low;   /* none of `waiting` has a lower position */
    uint64_t waiting_moves; /* graph.repaired_nodes when waiting_low was found */
    VEC(node_id) backed;    /* nodes with gate.backed: with a backoff, or in a round */
    uint32_t deferred_passes;   /* passes in a row that ended at the limit of sweeps */
    uint64_t episode;           /* how often the runtime has become idle */
    uint64_t idle_rev;          /* the replica's revision when it last did */
    uint64_t unsettled_episode; /* from 1: how often the list `backed` has become empty */

    /* gates */
    binheap timers; /* gates of nodes that wait for a time, by that time */
    VEC(hold) holds;
    uint64_t next_hold; /* the id of the last hold */
    /* Until then a node may wait that was refused and that its readers wait for; 0: none does. */
    uint64_t refused_until;
    bool starved; /* there are nodes with NODE_STARVED, or events.missed is set */
    uint32_t
        leads; /* spaces in which other processes derive, too: persistence.leads; by persistence */
    VEC(node_id) led;   /* nodes with gate.lead_at; may hold others, and removed ones */
    uint64_t led_until; /* the earliest of those times; of no meaning while `led` is empty */
    bool
        unlead; /* rows have arrived, or another process leads: the next pass lets all of `led` go on */

    /* facade */
    uint32_t work; /* hd_work_begin */
    VEC(idle_waiter) idlers;
    list unconfirmed; /* sinks that wait for commits to be accepted; by confirmed */
    VEC(error_handler) error_handlers;
    uint32_t telling; /* the error handler that is called next, while a failure is reported */
    hd_log_fn log_fn;
    void *log_ctx;

    hd_telemetry_fn telemetry_fn;
    void *telemetry_ctx;

    struct events *events; /* events; NULL until the first stream */

    hd_scheduler_stats stats;
    uint64_t filter_base_runs, filter_base_filtered; /* at the last reset */
    const tracer *tracer;                            /* NULL: runs are not traced */
    const pass_tracer *pass_tracer;                  /* NULL: passes are not traced */
    bool rechecking; /* the body on the stack is run again by recheck.c, to compare its writes */
    void (*removed)(struct scheduler *s, node_id id); /* called before a node is removed; NULL */
    /* Tells which piece a node belongs to, and its pattern; NULL: all nodes belong to "main". */
    const char *(*piece_of)(const struct scheduler *s, node_id id, const char **pattern);
    struct introspection *introspection; /* NULL until something is switched on */
    /* Hooks of the pattern layer, which opens pieces; NULL: none. `wanted`: a live node reads a document
     * that no node here writes; called once for each document, between or within runs. `unhandled`: an
     * event has no handler; HD_OK if there may be one now. */
    void (*wanted)(struct scheduler *s, place_id doc);
    hd_status (*unhandled)(struct scheduler *s, place_id stream);
    VEC(node_id)
    unsaid;             /* nodes whose outputs' metadata does not name their piece yet (origin.c) */
    build_cache builds; /* for build_of */
    struct persistence *persistence;                  /* NULL: the store ends with the runtime */
    void (*leaving)(struct scheduler *s, node_id id); /* as `removed`, for persistence; NULL */
    uint32_t awaiting_count;                          /* of them */
    list awaiting
        [AWAITING_LISTS]; /* cold records of nodes that wait for a document, by its number */
    SABOTAGE_FIELD
} scheduler;

/* Tells the pattern layer of documents that the (live) node reads and that no node writes. */
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
    assert(!(n->flags & NODE_REMOVED) && n->cold < s->colds.count); /* else `cold` is a free list */
    return n->cold ? s->colds.items[n->cold] : NULL;
}
/* All runs that the node has completed. */
static inline uint64_t node_runs(const scheduler *s, const node *n) {
    const cold *c = cold_of(s, n);
    return n->runs + (c ? (uint64_t)c->runs_over * RUNS_OVER : 0);
}

static inline uint64_t runs_completed(const scheduler *s) { return s->runs[0] + s->runs[1]; }

static inline node *node_of(const scheduler *s, node_id id) { return graph_node(&s->graph, id); }

static inline struct key *node_own_name(const scheduler *s, node_id id) {
    return id < s->name_capacity ? s->node_names[id] : NULL;
}
/* "" for a node without a name, and for id 0. */
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

/* The build of the module that contains the function, good until the next call; "": nothing outlives the runtime. */
static inline const char *build_of(scheduler *s, const void *fn) {
    return s->persistence ? build_cache_id(&s->builds, fn) : "";
}
/* Enough of it to tell builds apart, for stamps; NULL: nothing outlives the runtime. */
static inline const char *build_prefix_of(scheduler *s, const void *fn) {
    return *build_of(s, fn) ? s->builds.prefix : NULL;
}

static inline void tell(const scheduler *s, const hd_telemetry *t) {
    if (s->telemetry_fn) s->telemetry_fn(t, s->telemetry_ctx);
}

/* Calls the error handlers, which may take back each other and themselves. False: there are none. */
static inline bool scheduler_tell_error(scheduler *s, const hd_failure *failure) {
    bool handled = s->error_handlers.count > 0;
    uint32_t outer = s->telling;
    for (s->telling = 0; s->telling < s->error_handlers.count;) {
        error_handler h = s->error_handlers.items[s->telling++];
        h.fn(failure, h.ctx);
    }
    s->telling = outer;
    return handled;
}

#endif
