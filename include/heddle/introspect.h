/* heddle/introspect.h -- looking inside a running program: what its nodes and events do, and why.
 *
 * A program that works does not need this header; one that has to be understood does:
 *
 *     hd_node_inspect, hd_runtime_nodes     what a node is, what it waits for, how often it ran
 *     hd_node_why, hd_node_why_not          what caused its last run; why it does not run now
 *     hd_trace_enable                       records changes, runs and passes
 *     hd_graph_snapshot                     the graph as a value, or for Graphviz
 *     hd_break_node                         calls a function before a node runs
 *     hd_recheck_enable                     finds computations that are not idempotent
 *     hd_diagnosis_start                    finds out why a graph does not settle
 *     hd_runtime_event_waits                what the first event in line waits for
 *
 * None of this changes what the program computes. What is not switched on costs nothing, or a counter. The
 * texts in the structs are good as long as the comments say, else until the runtime is called again. */
#ifndef HEDDLE_INTROSPECT_H
#define HEDDLE_INTROSPECT_H

#include <heddle/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Nodes ---------------------------------------------------------------------------------- */

typedef enum hd_node_status { HD_NODE_NEVER_RAN, HD_NODE_CLEAN, HD_NODE_INVALID } hd_node_status;

typedef enum hd_why_not {
    HD_WHY_NOT_RUNS,     /* it will run in the next pump */
    HD_WHY_NOT_CLEAN,    /* nothing it read has changed */
    HD_WHY_NOT_DORMANT,  /* no live node reads what it writes */
    HD_WHY_NOT_DEBOUNCE, /* until eligible_at_ns */
    HD_WHY_NOT_THROTTLE,
    HD_WHY_NOT_BACKOFF, /* it did not settle */
    HD_WHY_NOT_ECHO,    /* it and another writer overwrite each other */
    HD_WHY_NOT_RETRY,   /* its commit was refused, or it failed for now: it is tried again */
    HD_WHY_NOT_HELD,    /* hd_hold_begin: data that it depends on is on its way */
    HD_WHY_NOT_LOADING, /* a document it reads is on its way */
    HD_WHY_NOT_RUNNING, /* it is suspended */
    HD_WHY_NOT_AWAITS, /* the run of a node upstream (waits_for) is suspended, and has to end first */
    HD_WHY_NOT_IDLE_TURN, /* a materialiser: after everything else */
    HD_WHY_NOT_GONE       /* removed */
} hd_why_not;
HD_API const char *hd_why_not_text(hd_why_not reason);

typedef enum hd_why_live {
    HD_LIVE_NOT,          /* dormant */
    HD_LIVE_EFFECT,       /* an effect always is */
    HD_LIVE_MATERIALISER, /* so is a materialiser */
    HD_LIVE_PROVISIONAL,  /* a live run created it */
    HD_LIVE_REQUESTED,    /* one run was asked for */
    HD_LIVE_READ          /* a live node reads what it writes */
} hd_why_live;
HD_API const char *hd_why_live_text(hd_why_live reason);

typedef struct hd_node_info {
    hd_node node;
    const char *name; /* "" */
    bool effect, materialiser, live, provisional, suspended;
    hd_node_status status;
    hd_node parent;
    hd_cell output;
    uint32_t children, reads, live_refs;
    uint64_t runs, timed_runs, total_ns; /* total_ns of the timed ones */
    uint64_t failures;                   /* reported to the error handlers */
    uint64_t eligible_at_ns;             /* 0: now */
    hd_why_not why_not;
    hd_node waits_for; /* HD_WHY_NOT_AWAITS: the node whose run is suspended; else id 0 */
    hd_why_live why_live;
    hd_node live_reader;   /* HD_LIVE_READ: one of the live readers */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_node_info;
HD_API hd_status hd_node_inspect(const hd_runtime *rt, hd_node node, hd_node_info *out);
/* Every node, in order of position. Return false to stop. */
typedef bool (*hd_node_fn)(const hd_node_info *info, void *ctx);
HD_API void hd_runtime_nodes(const hd_runtime *rt, hd_node_fn fn, void *ctx);
/* Calls `fn` for each node that reads what this one writes, once; `fn` may cancel them. HD_NOT_FOUND;
 * HD_NOMEM: `fn` was not called. */
typedef void (*hd_dependent_fn)(hd_node dependent, void *ctx);
HD_API hd_status hd_node_dependents(const hd_runtime *rt, hd_node node, hd_dependent_fn fn,
                                    void *ctx);

typedef struct hd_scheduler_stats {
    uint64_t nodes, effects, computations, materialisers, invalid, live;
    uint64_t unsettled; /* live nodes that wait, invalid, because they do not settle; now */
    uint64_t passes, iterations, failures, retries, stale_retries;
    uint64_t runs, effect_runs; /* completed; of those, of effects */
    uint64_t marks;             /* times that a change marked a reader invalid */
    uint64_t suppressed;        /* times that it did not: the reader's own commit, or its group's */
    uint64_t filtered;          /* turns at which a node was not eligible */
    uint64_t read_deltas;
    uint64_t outside_surface;                     /* writes outside the declared outputs */
    uint64_t exhausted;                           /* passes that ended at a limit */
    uint64_t repairs, demand_visits, edge_visits; /* of the graph */
    uint64_t reserved_[8];                        /* room for later members; zero */
} hd_scheduler_stats;
HD_API void hd_runtime_scheduler_stats(const hd_runtime *rt, hd_scheduler_stats *out);

/* How often nodes ran, and how often an invalid one had to wait for its time, since the last reset. */
typedef struct hd_filter_stats {
    uint64_t executed, filtered;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_filter_stats;
HD_API void hd_runtime_filter_stats(const hd_runtime *rt, hd_filter_stats *out);
HD_API void hd_runtime_reset_filter_stats(hd_runtime *rt);

/* The statistics of an action by name (a path "parent/child"), of all nodes that had the name together;
 * HD_NOT_FOUND: there are none. After hd_runtime_keep_stats(rt, true) those of nodes that are gone are kept:
 * HD_KEPT_STATS names, of which those that ran least recently are forgotten first. */
#define HD_KEPT_STATS 20000
typedef struct hd_action_stats {
    uint64_t runs, timed_runs, total_ns, failures;
    bool exists;           /* the node is there now */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_action_stats;
HD_API hd_status hd_runtime_action_stats(const hd_runtime *rt, const char *name,
                                         hd_action_stats *out);
HD_API hd_status hd_runtime_keep_stats(hd_runtime *rt, bool on);

/* ---- Why ----------------------------------------------------------------------------------- */

/* Why the node does not run now, in one sentence. Writes it with a NUL, cut to `size`. */
HD_API hd_why_not hd_node_why_not(const hd_runtime *rt, hd_node node, char *out, size_t size);

typedef enum hd_origin {
    HD_ORIGIN_SOURCE, /* a commit of the program; without a trace also what no node here wrote */
    HD_ORIGIN_NODE,   /* a run of `writer` */
    HD_ORIGIN_OTHERS, /* another runtime */
    HD_ORIGIN_LOAD,   /* it arrived from the store */
    HD_ORIGIN_REVERT  /* a commit of ours was refused */
} hd_origin;

/* One cause of a run: a cell that changed, and its writer. */
typedef struct hd_cause {
    uint32_t depth; /* 0: of the node asked about; 1: of the run that wrote that; ... */
    hd_node node;   /* the node whose run this is a cause of */
    hd_cell cell;
    bool pending;       /* it changed after the node's last run, and will cause the next */
    const char *before; /* shortened JSON; NULL: not known, no trigger trace was on */
    const char *after;
    hd_origin origin;
    hd_node writer;
    const char *writer_name; /* "" */
    bool repeated;           /* the writer's causes were told already, or are too deep */
} hd_cause;
/* Tells what caused the node's last run (and what will cause the next, if it is invalid), then what
 * caused the run that wrote that, and so on down to source commits: depth first, each node once, at
 * most HD_WHY_DEPTH deep. Without a trace it goes by revisions: exact while the nodes are clean; of
 * one that is invalid, what changed again since its last run is told as pending.
 * Texts are good during the call. False stops. */
#define HD_WHY_DEPTH 32
typedef bool (*hd_cause_fn)(const hd_cause *cause, void *ctx);
HD_API hd_status hd_node_why(const hd_runtime *rt, hd_node node, hd_cause_fn fn, void *ctx);

/* ---- Traces -------------------------------------------------------------------------------- */

/* The last 20 passes, 400 triggers, 2,000 runs. All memory is taken by enable (HD_NOMEM: nothing has
 * changed). Kinds that are switched off keep what they have until hd_trace_clear. */
enum { HD_TRACE_TRIGGERS = 1, HD_TRACE_RUNS = 2, HD_TRACE_SETTLES = 4, HD_TRACE_ALL = 7 };
#define HD_TRACE_MAX_TRIGGERS 400
#define HD_TRACE_MAX_RUNS     2000
#define HD_TRACE_MAX_SETTLES  20
HD_API hd_status hd_trace_enable(hd_runtime *rt, unsigned kinds);
HD_API unsigned hd_trace_enabled(const hd_runtime *rt);
HD_API void hd_trace_clear(hd_runtime *rt);

typedef enum hd_trigger_decision {
    HD_TRIGGER_MARK_INVALID,
    HD_TRIGGER_ALREADY_INVALID,
    HD_TRIGGER_SKIP_OWN,  /* its own commit */
    HD_TRIGGER_SKIP_GROUP /* a commit of its change group */
} hd_trigger_decision;
HD_API const char *hd_trigger_decision_name(hd_trigger_decision decision); /* "mark-invalid" */

/* A change met a reader. */
typedef struct hd_trigger {
    uint64_t number; /* counts all there were, from 1 */
    uint64_t at_ns;
    hd_node node;
    const char *action; /* its name; "" */
    hd_cell cell;       /* what it reads, and what changed */
    hd_trigger_decision decision;
    hd_origin origin;
    hd_node writer;
    const char *writer_name;
    char before[32], after[32]; /* shortened JSON; "-" for absent */
} hd_trigger;

#define HD_TRACE_CELLS 8
/* Some cells, and how many there were. */
typedef struct hd_trace_cells {
    hd_cell cells[HD_TRACE_CELLS];
    uint32_t count; /* may exceed HD_TRACE_CELLS */
} hd_trace_cells;

typedef struct hd_run_trace {
    uint64_t number;
    uint64_t began_ns, took_ns; /* of a suspended run: until it was resumed */
    uint64_t pass;
    hd_node node, parent;
    const char *action;
    bool effect, materialiser, first;
    bool set_aside;   /* a node upstream had to run first: nothing was committed, it runs again */
    hd_status status; /* what became of it */
    hd_trace_cells causes;
    hd_trace_cells declared;  /* outputs and envelopes */
    hd_trace_cells written;   /* documents it changed */
    hd_trace_cells attempted; /* written, and left as they were */
    uint32_t reads;
} hd_run_trace;

typedef struct hd_settle_trace {
    uint64_t number; /* of the pass */
    uint64_t began_ns, took_ns;
    uint64_t runs, marks, filtered;
    uint32_t iterations;
    bool exhausted;  /* it ended at the limit */
    bool unfinished; /* there was more to do: the limit, or the time slice */
} hd_settle_trace;

/* Oldest first; false stops. Texts and cells are good during the call. */
typedef bool (*hd_trigger_fn)(const hd_trigger *trigger, void *ctx);
typedef bool (*hd_run_trace_fn)(const hd_run_trace *run, void *ctx);
typedef bool (*hd_settle_trace_fn)(const hd_settle_trace *pass, void *ctx);
HD_API void hd_trace_triggers(const hd_runtime *rt, hd_trigger_fn fn, void *ctx);
HD_API void hd_trace_runs(const hd_runtime *rt, hd_run_trace_fn fn, void *ctx);
HD_API void hd_trace_settles(const hd_runtime *rt, hd_settle_trace_fn fn, void *ctx);

/* ---- Pictures ------------------------------------------------------------------------------ */

/* The graph as {"nodes": [...], "edges": [...]}; a failed value: no memory. */
HD_API hd_value hd_graph_snapshot(const hd_runtime *rt, hd_pool *pool);
/* The same for Graphviz. HD_ABORTED: fn returned false. */
HD_API hd_status hd_graph_write_dot(const hd_runtime *rt, hd_text_fn fn, void *ctx);
/* The traced runs and passes in the format of chrome://tracing. */
HD_API hd_value hd_trace_chrome(const hd_runtime *rt, hd_pool *pool);

/* ---- Stopping at a node -------------------------------------------------------------------- */

/* Called before the node's body. It may read and inspect, and must not write, register or cancel. */
typedef void (*hd_break_fn)(hd_node node, void *ctx);
/* By handle, or by name (then `node` is not looked at). Set again: replaced. fn NULL: removed. */
HD_API hd_status hd_break_node(hd_runtime *rt, hd_node node, hd_break_fn fn, void *ctx);
HD_API hd_status hd_break_name(hd_runtime *rt, const char *name, hd_break_fn fn, void *ctx);

/* ---- Is it idempotent? --------------------------------------------------------------------- */

typedef struct hd_written {
    hd_cell document;
    hd_value value; /* absent: removed */
} hd_written;

typedef struct hd_violation {
    hd_node node;
    const char *action;
    /* What its run wrote, and what it wrote when it was run again on the outcome. */
    const hd_written *first, *second;
    size_t first_count, second_count;
} hd_violation;
typedef void (*hd_violation_fn)(const hd_violation *violation, void *ctx);

/* From now on every computation's run is made twice, the second time in a transaction that is never
 * committed; if it would change what the first one left, or does not write a document that the first one
 * wrote (and does not read it either), that is told: once for each node; `second` is what it changes, and
 * may be empty. Effects
 * and async runs are not looked at. For tests: bodies really run twice. The second time log lines
 * are dropped, registrations find the nodes of the first and release what they were given, and what
 * it sends goes nowhere. fn NULL: off. */
HD_API hd_status hd_recheck_enable(hd_runtime *rt, hd_violation_fn fn, void *ctx);
/* Runs one computation again now, without committing. HD_OK: it writes what is there. HD_MISMATCH: it
 * does not. HD_STALE: it is invalid, so nothing can be said. Else how its body failed. */
HD_API hd_status hd_node_recheck(hd_runtime *rt, hd_node node);

/* ---- Telemetry and diagnosis --------------------------------------------------------------- */

typedef enum hd_telemetry_kind {
    HD_TELEMETRY_NOT_SETTLING, /* `count` more nodes do not settle, some in `names`; each is told once, until
                                * none has a backoff any more */
    HD_TELEMETRY_BUSY,     /* more than 30 % and 1 s of a window of 5 s: busy_ns of window_ns */
    HD_TELEMETRY_DIAGNOSIS /* the diagnosis found a node that writes differently */
} hd_telemetry_kind;
typedef struct hd_telemetry {
    hd_telemetry_kind kind;
    hd_node node;
    const char *action;
    uint64_t count;
    uint64_t busy_ns, window_ns;
    const char *const *names; /* NOT_SETTLING: the first of those that are left */
    size_t name_count;        /* at most HD_TELEMETRY_NAMES */
} hd_telemetry;
#define HD_TELEMETRY_NAMES 10
/* Sets the hook; NULL: none. It is called between runs; it may inspect, and start a diagnosis. */
typedef void (*hd_telemetry_fn)(const hd_telemetry *t, void *ctx);
HD_API hd_status hd_runtime_set_telemetry(hd_runtime *rt, hd_telemetry_fn fn, void *ctx);

/* Writes down what runs read and write, and looks for a node that writes differently although it
 * reads the same: why a graph does not settle. Keeps the last 1,000 runs. With `automatic` it starts
 * by itself when the runtime is busy (a telemetry hook must be there), and stops when it is not. */
HD_API hd_status hd_diagnosis_start(hd_runtime *rt);
HD_API void hd_diagnosis_stop(hd_runtime *rt);
HD_API bool hd_diagnosis_is_on(const hd_runtime *rt);
HD_API hd_status hd_diagnosis_set_automatic(hd_runtime *rt, bool on);

/* One node that was seen to run. */
typedef struct hd_diagnosis {
    hd_node node;
    const char *action;
    uint64_t runs; /* recorded */
    bool differs;  /* two runs read the same and wrote differently */
} hd_diagnosis;
typedef bool (*hd_diagnosis_fn)(const hd_diagnosis *found, void *ctx); /* false stops */
HD_API void hd_diagnosis_report(const hd_runtime *rt, hd_diagnosis_fn fn, void *ctx);

/* ---- Events --------------------------------------------------------------------------------- */

typedef struct hd_event_stats {
    uint64_t sent, posted, taken; /* taken: posted ones that were found in the store */
    uint64_t queued, in_flight;   /* now: waiting for their turn; for their verdict */
    uint64_t runs;                /* bodies begun */
    uint64_t handled;             /* confirmed */
    uint64_t retries;
    uint64_t duplicates; /* ended with HD_EXISTS */
    uint64_t failed;     /* ended with any other failure */
    uint64_t cancelled;  /* with their origin */
    uint64_t collapsed, refused;
    uint64_t preflights, preflight_visits; /* nodes looked at by the consistency gate */
    uint64_t parked;                       /* turns at which a head had to wait */
    uint64_t unsettled;                    /* events that went on although inputs do not settle */
    uint64_t outside_reads;                /* of bodies, outside their declared inputs */
    uint64_t outbox_visits;                /* messages looked at, delivered or not */
    uint64_t reserved_[8];                 /* room for later members; zero */
} hd_event_stats;
HD_API void hd_runtime_event_stats(const hd_runtime *rt, hd_event_stats *out);

typedef enum hd_event_stage { HD_EVENT_PREFLIGHT, HD_EVENT_COMMIT } hd_event_stage;
#define HD_EVENT_SAMPLE 25
typedef struct hd_event_trace {
    hd_event_stage stage;
    const char *id;
    const char *handler;
    hd_cell stream;
    hd_status status; /* PREFLIGHT: HD_OK go, HD_PENDING wait. COMMIT: of submitting it */
    /* PREFLIGHT */
    uint32_t closure; /* places read */
    uint32_t visits, invalid;
    /* COMMIT */
    uint32_t writes;                 /* documents */
    hd_cell sample[HD_EVENT_SAMPLE]; /* the first of them */
    bool truncated;
} hd_event_trace;
/* Sets the function that is called at each stage of each handling; NULL: none. */
typedef void (*hd_event_trace_fn)(const hd_event_trace *trace, void *ctx);
HD_API hd_status hd_runtime_set_event_trace(hd_runtime *rt, hd_event_trace_fn fn, void *ctx);

/* Why an event that is first in line does not run. */
typedef enum hd_event_wait {
    HD_EVENT_WAITS_NOT, /* there is none, or it runs in the next pump */
    HD_EVENT_WAITS_TIME,
    HD_EVENT_WAITS_NODES, /* computations that feed it cannot run yet */
    HD_EVENT_WAITS_LOAD,
    HD_EVENT_WAITS_ORIGIN,
    HD_EVENT_WAITS_PRESYNC,
    HD_EVENT_WAITS_HANDLER,
    HD_EVENT_WAITS_READS,    /* its preflight said so: until something changes */
    HD_EVENT_WAITS_DUPLICATE /* an earlier delivery has no verdict yet */
} hd_event_wait;
/* What the first event of a space waits for: of all spaces, the event that was sent first. */
HD_API hd_event_wait hd_runtime_event_waits(const hd_runtime *rt);
/* The same for the first event of this space. */
HD_API hd_event_wait hd_space_event_waits(const hd_runtime *rt, const char *space);

#ifdef __cplusplus
}
#endif
#endif
