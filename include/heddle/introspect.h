/* heddle/introspect.h -- looking inside a running program: what its nodes and events do, and why.
 *
 * For debugging, tests and tools; a program's own logic does not need this header:
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
 * None of this changes what the program computes. A facility that is switched off costs nothing, or a counter.
 * Texts in the structs are borrowed: they are good as long as the comment beside them says, else until the next
 * call on the runtime. Call everything on the runtime's thread. Functions that take an hd_node return HD_NOT_FOUND
 * for a node that is gone; functions that switch a facility on return HD_NOMEM when there is no memory for it. */
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
    HD_WHY_NOT_DEBOUNCE, /* its debounce holds it until eligible_at_ns */
    HD_WHY_NOT_THROTTLE, /* its throttle holds it until eligible_at_ns */
    HD_WHY_NOT_BACKOFF,  /* it did not settle */
    HD_WHY_NOT_ECHO,     /* it and another writer overwrite each other */
    /* Its commit was refused, or it failed for now, and it is tried again; or it reads the output of a node whose
     * commit was refused. */
    HD_WHY_NOT_RETRY,
    HD_WHY_NOT_HELD,    /* a hold keeps it from its first run (hd_hold_begin) */
    HD_WHY_NOT_LOADING, /* a document it reads is still loading */
    HD_WHY_NOT_RUNNING, /* its run is suspended (hd_tx_suspend) */
    HD_WHY_NOT_AWAITS, /* the run of a node upstream (waits_for) is suspended, and has to end first */
    HD_WHY_NOT_IDLE_TURN, /* a materialiser runs after all other nodes */
    HD_WHY_NOT_GONE,      /* the node was removed */
    /* Another process derives for its space (hd_options.derive), and the result is on its way; or the node reads what
     * such a node writes. */
    HD_WHY_NOT_LED
} hd_why_not;
HD_API const char *hd_why_not_text(hd_why_not reason);

typedef enum hd_why_live {
    HD_LIVE_NOT,          /* it is dormant */
    HD_LIVE_EFFECT,       /* effects are always live */
    HD_LIVE_MATERIALISER, /* materialisers are always live */
    HD_LIVE_PROVISIONAL,  /* a live run registered it: live until that pass and its first run end */
    HD_LIVE_REQUESTED,    /* one run was asked for: hd_node_request, run_once */
    HD_LIVE_READ          /* a live node reads what it writes */
} hd_why_live;
HD_API const char *hd_why_live_text(hd_why_live reason);

typedef struct hd_node_info {
    hd_node node;
    const char *name; /* "": it has none */
    bool effect, materialiser, live;
    bool provisional; /* see HD_LIVE_PROVISIONAL */
    bool suspended;
    hd_node_status status;
    hd_node parent;
    hd_cell output;
    uint32_t children, reads;
    uint32_t live_refs; /* how many reasons it has to be live, live readers included */
    uint64_t runs;      /* completed runs: without those set aside, and without a suspended one */
    /* Calls of the node's function that were timed (hd_options.timing_period), also in runs that `runs` leaves
     * out, and how long they took. */
    uint64_t timed_runs, total_ns;
    uint64_t failures;       /* reported to the error handlers */
    uint64_t eligible_at_ns; /* 0: now */
    hd_why_not why_not;
    hd_node waits_for; /* HD_WHY_NOT_AWAITS: the node whose run is suspended; else id 0 */
    hd_why_live why_live;
    hd_node live_reader;   /* HD_LIVE_READ: one of the live readers */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_node_info;
HD_API hd_status hd_node_inspect(const hd_runtime *rt, hd_node node, hd_node_info *out);
/* Calls `fn` for every node, in the order in which they run in a pass, until it returns false. `fn` must not register
 * or remove nodes. */
typedef bool (*hd_node_fn)(const hd_node_info *info, void *ctx);
HD_API void hd_runtime_nodes(const hd_runtime *rt, hd_node_fn fn, void *ctx);
/* Calls `fn` once for each node that reads what this one writes; `fn` may unregister nodes. HD_NOT_FOUND;
 * HD_NOMEM: `fn` was not called. */
typedef void (*hd_dependent_fn)(hd_node dependent, void *ctx);
HD_API hd_status hd_node_dependents(const hd_runtime *rt, hd_node node, hd_dependent_fn fn,
                                    void *ctx);

typedef struct hd_scheduler_stats {
    uint64_t nodes, effects, computations, materialisers, invalid, live;
    uint64_t unsettled;          /* now: invalid live nodes that wait because they do not settle */
    uint64_t passes, iterations; /* an iteration is one sweep of a pass through the order */
    uint64_t failures;           /* runs whose failure was reported to the error handlers */
    uint64_t retries;            /* runs made again after a transient failure */
    uint64_t stale_retries; /* runs made again because the store refused their commit or result */
    uint64_t runs, effect_runs; /* completed; of those, of effects */
    uint64_t marks;             /* times that a change marked a reader invalid */
    uint64_t suppressed; /* times that it did not: the change was the reader's own or its group's */
    uint64_t filtered;   /* times that a pass skipped an invalid node that was not eligible yet */
    uint64_t read_deltas;     /* runs that read other cells than the run before */
    uint64_t outside_surface; /* writes outside the declared outputs */
    uint64_t exhausted;       /* passes that ended at a limit */
    uint64_t repairs;         /* times that a new edge moved nodes in the order */
    /* Work on the graph: nodes looked at because demand changed; edges looked at. */
    uint64_t demand_visits, edge_visits;
    uint64_t reserved_[8]; /* room for later members; zero */
} hd_scheduler_stats;
HD_API void hd_runtime_scheduler_stats(const hd_runtime *rt, hd_scheduler_stats *out);

/* Since the last reset: how often nodes ran, and how often a pass skipped an invalid node that was not eligible yet
 * (a debounce, a throttle, a backoff, ...). */
typedef struct hd_filter_stats {
    uint64_t executed, filtered;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_filter_stats;
HD_API void hd_runtime_filter_stats(const hd_runtime *rt, hd_filter_stats *out);
HD_API void hd_runtime_reset_filter_stats(hd_runtime *rt);

/* The statistics of an action by name (a path "parent/child"): the sum over all nodes that had the name.
 * HD_NOT_FOUND: there are none. After hd_runtime_keep_stats(rt, true) the runtime keeps the statistics of nodes
 * that are gone, for up to HD_KEPT_STATS names; above that it forgets the name that ran least recently. */
#define HD_KEPT_STATS 20000
typedef struct hd_action_stats {
    uint64_t runs, timed_runs, total_ns, failures; /* as in hd_node_info */
    bool exists;                                   /* the node is there now */
    uint64_t reserved_[4];                         /* room for later members; zero */
} hd_action_stats;
HD_API hd_status hd_runtime_action_stats(const hd_runtime *rt, const char *name,
                                         hd_action_stats *out);
HD_API hd_status hd_runtime_keep_stats(hd_runtime *rt, bool on);

/* ---- Why ----------------------------------------------------------------------------------- */

/* Why the node does not run now. Writes one sentence with a NUL to `out`, cut to `size`. */
HD_API hd_why_not hd_node_why_not(const hd_runtime *rt, hd_node node, char *out, size_t size);

typedef enum hd_origin {
    HD_ORIGIN_SOURCE, /* a commit of the program; without a trace: any writer but a node of this runtime */
    HD_ORIGIN_NODE,   /* a run of `writer` */
    HD_ORIGIN_OTHERS, /* a commit of another runtime */
    HD_ORIGIN_LOAD,   /* the document was loaded from the store */
    HD_ORIGIN_REVERT  /* the store refused a commit of this runtime, which was taken back */
} hd_origin;

/* One cause of a run: a cell that changed, and its writer. */
typedef struct hd_cause {
    uint32_t
        depth; /* 0: cause of a run of the node asked about; 1: of the run that wrote that; ... */
    hd_node node; /* the node whose run this is a cause of */
    hd_cell cell;
    bool pending;       /* the cell changed after the node's last run, and will cause the next */
    const char *before; /* shortened JSON; NULL: not known, because no trigger trace was on */
    const char *after;
    hd_origin origin;
    hd_node writer;
    const char *writer_name; /* "": none */
    bool
        repeated; /* the writer's own causes are left out: told before, or deeper than HD_WHY_DEPTH */
} hd_cause;
/* Calls `fn` for each cause of the node's last run (and of its next, if the node is invalid), then for each cause of
 * the runs that wrote those cells, and so on down to source commits: depth first, each node once, at most HD_WHY_DEPTH
 * deep, until `fn` returns false. Without a trigger trace the causes are found by comparing revisions: they are exact
 * while the nodes are clean; of an invalid node a cell that has changed again since its last run is told as pending
 * only. Texts are good during the call. HD_NOT_FOUND. */
#define HD_WHY_DEPTH 32
typedef bool (*hd_cause_fn)(const hd_cause *cause, void *ctx);
HD_API hd_status hd_node_why(const hd_runtime *rt, hd_node node, hd_cause_fn fn, void *ctx);

/* ---- Traces -------------------------------------------------------------------------------- */

/* A trace keeps the last HD_TRACE_MAX_... passes, triggers and runs. hd_trace_enable switches exactly these kinds on
 * and the others off; it allocates all memory (HD_NOMEM: nothing has changed). Records of a kind that is switched off
 * stay until hd_trace_clear. */
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

/* A cell changed that a node reads, and what the runtime decided about the node. */
typedef struct hd_trigger {
    uint64_t number; /* counts all triggers of the runtime, from 1 */
    uint64_t at_ns;
    hd_node node;       /* the reader */
    const char *action; /* its name; "": none */
    hd_cell cell;       /* what it reads, and what changed */
    hd_trigger_decision decision;
    hd_origin origin;
    hd_node writer;
    const char *writer_name;
    char before[32], after[32]; /* shortened JSON; "-" for absent */
} hd_trigger;

#define HD_TRACE_CELLS 8
/* The first cells of a set, and how many it has. */
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
    hd_status status; /* of the action, or of committing the run */
    hd_trace_cells causes;
    hd_trace_cells declared;  /* outputs and envelopes */
    hd_trace_cells written;   /* documents it changed */
    hd_trace_cells attempted; /* documents it wrote without changing them */
    uint32_t reads;
} hd_run_trace;

typedef struct hd_settle_trace {
    /* The pass's number. A pass that returned to its caller at the end of a time slice has one record for each part,
     * all with the same number. */
    uint64_t number;
    uint64_t began_ns, took_ns;
    uint64_t runs, marks, filtered;
    uint32_t iterations;
    bool exhausted;  /* it ended at the limit of iterations */
    bool unfinished; /* it ended with work left: at that limit, or at the end of the time slice */
} hd_settle_trace;

/* Call `fn` for each record, oldest first, until it returns false. Texts and cells are good during the call. */
typedef bool (*hd_trigger_fn)(const hd_trigger *trigger, void *ctx);
typedef bool (*hd_run_trace_fn)(const hd_run_trace *run, void *ctx);
typedef bool (*hd_settle_trace_fn)(const hd_settle_trace *pass, void *ctx);
HD_API void hd_trace_triggers(const hd_runtime *rt, hd_trigger_fn fn, void *ctx);
HD_API void hd_trace_runs(const hd_runtime *rt, hd_run_trace_fn fn, void *ctx);
HD_API void hd_trace_settles(const hd_runtime *rt, hd_settle_trace_fn fn, void *ctx);

/* ---- Pictures ------------------------------------------------------------------------------ */

/* The graph as {"nodes": [...], "edges": [...]}, a value of the pool; failed: no memory. */
HD_API hd_value hd_graph_snapshot(const hd_runtime *rt, hd_pool *pool);
/* The graph in Graphviz's language, given to fn in pieces. HD_ABORTED: fn returned false; HD_NOMEM. */
HD_API hd_status hd_graph_write_dot(const hd_runtime *rt, hd_text_fn fn, void *ctx);
/* The traced runs and passes in the format of chrome://tracing, a value of the pool; failed: no memory. */
HD_API hd_value hd_trace_chrome(const hd_runtime *rt, hd_pool *pool);

/* ---- Stopping at a node -------------------------------------------------------------------- */

/* Called before the node's function runs. It may read and inspect; it must not write, register or unregister. */
typedef void (*hd_break_fn)(hd_node node, void *ctx);
/* Sets the function that is called before each run of this node, or of every node with this name. A second call for the
 * same node or name replaces the function; NULL removes it. */
HD_API hd_status hd_break_node(hd_runtime *rt, hd_node node, hd_break_fn fn, void *ctx);
HD_API hd_status hd_break_name(hd_runtime *rt, const char *name, hd_break_fn fn, void *ctx);

/* ---- Is it idempotent? --------------------------------------------------------------------- */

typedef struct hd_written {
    hd_cell document;
    hd_value value; /* absent: the document was removed */
} hd_written;

typedef struct hd_violation {
    hd_node node;
    const char *action;
    /* What the first run wrote; and what the second run, on the state that the first left, would change. */
    const hd_written *first, *second;
    size_t first_count, second_count;
} hd_violation;
typedef void (*hd_violation_fn)(const hd_violation *violation, void *ctx);

/* For tests: from now on the runtime calls the function of every computation twice in each run, the second time in a
 * transaction that is never committed. It calls fn, once for each node, if the second call would change what the
 * first left, or neither writes nor reads a document that the first wrote; `second` may be empty then. Effects and
 * async runs are called once. In the second call log lines are dropped, registrations return the nodes that the first
 * registered (and release the ctx they were given), and events are not sent. fn NULL: off. */
HD_API hd_status hd_recheck_enable(hd_runtime *rt, hd_violation_fn fn, void *ctx);
/* Runs one computation again now, without committing. HD_OK: it would write the values that are there. HD_MISMATCH: it
 * would write others. HD_STALE: the node is invalid, never ran or is suspended, so there is nothing to compare with.
 * HD_NOT_FOUND; HD_USAGE: the node is an effect, or the call is inside a run or a transaction. Else the status with
 * which its function failed. */
HD_API hd_status hd_node_recheck(hd_runtime *rt, hd_node node);

/* ---- Telemetry and diagnosis --------------------------------------------------------------- */

typedef enum hd_telemetry_kind {
    HD_TELEMETRY_NOT_SETTLING, /* `count` more nodes do not settle; `names` has some. A node is told once, until no
                                * node has a backoff any more */
    HD_TELEMETRY_BUSY,     /* runs took busy_ns of window_ns: more than 30 % and 1 s in 5 s */
    HD_TELEMETRY_DIAGNOSIS /* the diagnosis found a node that reads the same and writes differently */
} hd_telemetry_kind;
typedef struct hd_telemetry {
    hd_telemetry_kind kind;
    hd_node node;
    const char *action;
    uint64_t count;
    uint64_t busy_ns, window_ns;
    const char *const *names; /* NOT_SETTLING: the names of the first of the `count` nodes */
    size_t name_count;        /* at most HD_TELEMETRY_NAMES */
} hd_telemetry;
#define HD_TELEMETRY_NAMES 10
/* Sets the function that is called, between runs, with each of these; NULL: none. It may inspect, and start a
 * diagnosis. */
typedef void (*hd_telemetry_fn)(const hd_telemetry *t, void *ctx);
HD_API hd_status hd_runtime_set_telemetry(hd_runtime *rt, hd_telemetry_fn fn, void *ctx);

/* A diagnosis records what each run reads and writes, for the last 1,000 runs, and looks for a node that writes
 * differently although it reads the same: the usual reason why a graph does not settle. With `automatic` the diagnosis
 * starts by itself when the runtime is busy (HD_TELEMETRY_BUSY; a telemetry hook must be set), and stops when it is
 * not. */
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
/* Calls `fn` for each node that the diagnosis has recorded, until it returns false. */
typedef bool (*hd_diagnosis_fn)(const hd_diagnosis *found, void *ctx);
HD_API void hd_diagnosis_report(const hd_runtime *rt, hd_diagnosis_fn fn, void *ctx);

/* ---- Events --------------------------------------------------------------------------------- */

typedef struct hd_event_stats {
    uint64_t sent, posted, taken; /* taken: posted ones that were found in the store */
    uint64_t queued, in_flight;   /* now: waiting for their turn; waiting for their verdict */
    uint64_t runs;                /* calls of handler functions */
    uint64_t handled;             /* events whose commit the store has accepted */
    uint64_t retries;             /* of handlers */
    uint64_t duplicates;          /* ended with HD_EXISTS */
    uint64_t failed;              /* ended with any other failure */
    uint64_t cancelled;           /* ended because the transaction that sent them failed */
    uint64_t collapsed;        /* sends to a full stream that replaced an event, or repeated one */
    uint64_t refused;          /* sends to a full stream that got HD_BUSY */
    uint64_t preflights;       /* times that the inputs of a handler were found and checked */
    uint64_t preflight_visits; /* nodes looked at for that */
    uint64_t parked;           /* times that the first event of a space had to wait */
    uint64_t unsettled;        /* events handled although their inputs do not settle */
    uint64_t outside_reads;    /* reads of handlers outside their declared inputs */
    uint64_t outbox_visits;    /* messages looked at, delivered or not */
    uint64_t receipts_listed, receipts_pruned; /* looked at by pruning; deleted */
    uint64_t reserved_[6];                     /* room for later members; zero */
} hd_event_stats;
HD_API void hd_runtime_event_stats(const hd_runtime *rt, hd_event_stats *out);

typedef enum hd_event_stage { HD_EVENT_PREFLIGHT, HD_EVENT_COMMIT } hd_event_stage;
#define HD_EVENT_SAMPLE 25
typedef struct hd_event_trace {
    hd_event_stage stage;
    const char *id;
    const char *handler;
    hd_cell stream;
    hd_status
        status; /* PREFLIGHT: HD_OK: it runs, HD_PENDING: it waits. COMMIT: of submitting it */
    /* PREFLIGHT */
    uint32_t closure;         /* places read */
    uint32_t visits, invalid; /* nodes looked at; of those, invalid */
    /* COMMIT */
    uint32_t writes;                 /* documents */
    hd_cell sample[HD_EVENT_SAMPLE]; /* the first of them */
    bool truncated;
} hd_event_trace;
/* Sets the function that is called at each stage of handling an event; NULL: none. The trace is good during the
 * call. */
typedef void (*hd_event_trace_fn)(const hd_event_trace *trace, void *ctx);
HD_API hd_status hd_runtime_set_event_trace(hd_runtime *rt, hd_event_trace_fn fn, void *ctx);

/* Why an event that is first in line does not run. */
typedef enum hd_event_wait {
    HD_EVENT_WAITS_NOT,     /* no event is in line, or it runs in the next pump */
    HD_EVENT_WAITS_TIME,    /* its time has not come: not_before_ns, or the delay before a retry */
    HD_EVENT_WAITS_NODES,   /* computations that feed its handler cannot run yet */
    HD_EVENT_WAITS_LOAD,    /* a document that its handler reads is still loading */
    HD_EVENT_WAITS_ORIGIN,  /* the transaction that sent it has no verdict yet */
    HD_EVENT_WAITS_PRESYNC, /* the program has not called hd_presync_done yet */
    HD_EVENT_WAITS_HANDLER, /* the program has not called hd_handler_loaded yet */
    HD_EVENT_WAITS_READS,   /* its preflight returned HD_PENDING: until something it read changes */
    HD_EVENT_WAITS_DUPLICATE /* an earlier delivery has no verdict yet */
} hd_event_wait;
/* A stream of this runtime: one that has a handler, or to which an event was sent here. Texts and cells are good
 * during the call. */
typedef struct hd_stream_info {
    hd_cell stream;
    const char *handler;      /* its name; NULL: the stream has none */
    const char *piece;        /* the piece that registered the handler; "main": none */
    uint64_t queued;          /* events that wait for their turn */
    uint64_t handled, failed; /* events that ended here, since the runtime was opened */
    /* If events of this stream wait: what the first event of the space waits for. */
    hd_event_wait waits;
    hd_cell behind; /* the stream of that first event, if it is another; id 0: it is this one */
    hd_node node;   /* HD_EVENT_WAITS_NODES: a node that the event waits for; id 0: not known */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_stream_info;
typedef bool (*hd_stream_fn)(const hd_stream_info *info, void *ctx); /* false stops */
/* Calls fn for each stream, in the order in which the program first used them. fn must only read. */
HD_API void hd_runtime_streams(const hd_runtime *rt, hd_stream_fn fn, void *ctx);

/* What the event waits for that was sent first, of the first events of all spaces. */
HD_API hd_event_wait hd_runtime_event_waits(const hd_runtime *rt);
/* The same for the first event of this space. */
HD_API hd_event_wait hd_space_event_waits(const hd_runtime *rt, const char *space);

#ifdef __cplusplus
}
#endif
#endif
