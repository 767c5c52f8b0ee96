/* heddle/scheduler.h -- computations and effects: derived values, kept up to date where they are needed.
 *
 * A *node* is a function over a transaction. What it reads while it runs are its dependencies; when
 * one of those values really changes it becomes invalid. It runs again when it is invalid and *live*:
 *
 *   effect         always live. Prints, draws, sends; writes nothing or what it likes.
 *   computation    live while a live node reads its output. Otherwise it does not run.
 *   materialiser   a computation that may write anywhere inside its envelopes; always live, runs when
 *                  there is nothing else to do.
 *
 *     static hd_status add_up(hd_tx *tx, void *ctx) {
 *         const struct cart *cart = ctx;
 *         double sum = 0;
 *         hd_value items = hd_tx_get(tx, cart->items);          // now a dependency
 *         for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);)
 *             sum += hd_value_number(hd_value_at(it.value, "price"));
 *         return hd_tx_set(tx, cart->total, hd_double(sum));
 *     }
 *
 *     hd_compute(rt, "add_up", add_up, &cart, cart.total);      // runs while a live node reads the total
 *     hd_sink(rt, cart.total, print_value, stdout);             // an effect that reads it: now it runs
 *
 * Every run is a transaction. A computation must be idempotent: run again on the same inputs it
 * writes the same values. A result that is equal to the one before makes no node run. Nothing runs inside
 * the call that registers, writes or cancels: runs happen in hd_runtime_pump (or settle, or run).
 *
 * Order: writers before readers, parents before children, then by registration. A graph that does
 * not settle is slowed down, not stopped, and a warning names its nodes; nothing else waits for it for ever
 * (see Idle).
 */
#ifndef HEDDLE_SCHEDULER_H
#define HEDDLE_SCHEDULER_H

#include <heddle/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Nodes ------------------------------------------------------------------------------- */

/* What a node runs, on the runtime's thread. It reads and writes through `tx` only. HD_OK commits.
 * HD_PENDING, after hd_tx_suspend, means that it completes later. A read may fail with HD_PENDING: the
 * document is not there yet, or a node that writes it has to run first, which was not known because
 * this node has not read it before. The run is then set aside, whatever the action returns, and runs
 * again when that is done; an action that acts outside the store looks at hd_value_status first. So no
 * action sees a mixture of values from before and after a change; exceptions are cycles, and nodes
 * with time gates, whose last result is read. A transient status is
 * retried, ten runs in all, with growing delays; any other is reported to the error handlers, nothing is committed,
 * and the node runs again when something it read changes. After HD_NOMEM the node stays invalid: pump
 * returns HD_NOMEM when it has done the rest, and the next pump runs the node again. */
typedef hd_status (*hd_action_fn)(hd_tx *tx, void *ctx);

/* A handle. It stays harmless when the node is gone: calls then say HD_NOT_FOUND or do nothing. */
typedef struct hd_node {
    uint32_t id; /* 0: no node */
    uint32_t generation;
} hd_node;

typedef struct hd_node_spec {
    const char *name; /* unique among its siblings; NULL: anonymous, without durable identity */
    hd_action_fn fn;
    void *ctx;
    hd_release_fn release; /* called when the node is gone; may be NULL */

    bool effect;
    hd_cell output;              /* of a computation */
    const hd_cell *side_outputs; /* further cells it always writes */
    size_t side_output_count;
    const hd_cell *envelopes; /* makes it a materialiser; then side_outputs are not looked at */
    size_t envelope_count;
    const hd_cell *ignored; /* taken out of the outputs */
    size_t ignored_count;

    /* What it will read at first, as far as known: for the order of first runs, and to have it
     * brought up to date. */
    const hd_cell *reads;
    size_t read_count;

    hd_node again;  /* not 0: no new node; moves this one under the running node, and with `effect`
                     * makes it an effect */
    hd_node parent; /* default: the node that is running now */
    uint64_t group; /* commits of this change group do not concern it; 0: none */
    uint32_t debounce_ms, throttle_ms;
    bool no_auto_debounce;
    bool run_once; /* demand the first run, also if no live node reads the output */
    /* The version of the code, for resuming: a computation with a name, whose parents have names, does not
     * run after a restart unless its version, its cells, or something that it read has changed. NULL: the
     * build of the module that contains fn. */
    const char *version;
} hd_node_spec;

/* `out` may be NULL. HD_USAGE for a spec that makes no sense, HD_SYNTAX for a name that is not UTF-8 (the
 * error says why), HD_NOMEM. */
HD_API hd_status hd_node_register(hd_runtime *rt, const hd_node_spec *spec, hd_node *out);
/* Removes the node. Its children stay, but hd_node_find does not find them any more. A node that cancels
 * itself is removed after its run, which commits nothing. A node that is cancelled by a listener, while what
 * it wrote is announced, is removed after the listeners. */
HD_API void hd_node_unregister(hd_runtime *rt, hd_node node);
/* A computation becomes an effect, in place. The other way round: HD_USAGE. */
HD_API hd_status hd_node_promote(hd_runtime *rt, hd_node node);
/* Demands one run of the node if it is invalid, also if no live node reads its output. */
HD_API hd_status hd_node_request(hd_runtime *rt, hd_node node);
HD_API bool hd_node_exists(const hd_runtime *rt, hd_node node);
/* The node under this name (a path "parent/child" for children; names may have slashes of their own);
 * id 0: none. */
HD_API hd_node hd_node_find(const hd_runtime *rt, const char *name);

/* The common ones. A failure gives a node with id 0, and hd_runtime_error tells why. */
HD_API hd_node hd_compute(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx,
                          hd_cell output);
HD_API hd_node hd_effect(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx);

/* Calls fn with the cell's value now and whenever it changes. The value is borrowed. No cell: HD_USAGE. */
typedef void (*hd_sink_fn)(hd_value v, void *ctx);
HD_API hd_node hd_sink(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);

/* The same with more to say. What is left out of the spec is as in hd_sink; later versions may add to it. */
typedef struct hd_sink_spec {
    const char *name; /* of its node; NULL: anonymous */
    hd_cell cell;
    hd_sink_fn fn;
    void *ctx;
    /* Commits of this change group (hd_tx_set_group) do not call fn: an editor's own edits, which it shows
     * already. 0: none. */
    uint64_t group;
} hd_sink_spec;
/* `out` may be NULL. HD_USAGE without a cell or a function, and as hd_node_register. */
HD_API hd_status hd_sink_register(hd_runtime *rt, const hd_sink_spec *spec, hd_node *out);

/* Looks once: brings the cell up to date and calls fn. */
HD_API hd_status hd_pull(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);
/* The same, waiting for it, suspended runs included; not inside a run. The value belongs to the pool. */
HD_API hd_value hd_pull_now(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Async runs -------------------------------------------------------------------------- */

/* Suspends the running node: its action then returns HD_PENDING, and hd_run_resume is called later,
 * on the runtime's thread, once. Until then the node is not clean: nodes, handlers and pulls that depend
 * on its output wait (HD_WHY_NOT_AWAITS); everything else goes on. Meanwhile the program may read and write
 * with `hd_run_tx`; the run fails with HD_STALE, and the node runs again, if something it read has changed.
 * If the action returns anything but HD_PENDING its run ends with that, and *out is gone. If the node is
 * cancelled meanwhile, resuming commits nothing; hd_close ends runs that were not resumed. */
typedef struct hd_run hd_run;
HD_API hd_status hd_tx_suspend(hd_tx *tx, hd_run **out);
HD_API hd_tx *hd_run_tx(hd_run *run);
/* Ends the run with this status; `run` is gone. From inside another node's run, or a handler: after
 * that. */
HD_API void hd_run_resume(hd_run *run, hd_status status);

/* ---- Time gates -------------------------------------------------------------------------- */

/* Debounce: the node runs when nothing that it reads has changed for `ms`. Throttle: at most one run in
 * `ms`, not counting runs that are retried or were set aside. 0 clears. While a gate holds a node it stays
 * invalid; then it runs on the latest values. While the node is dormant, changes after the first do not restart
 * its debounce: it may run as soon as it is demanded.
 * A gate that is changed counts from when its window began. One that is set where there was none counts from the
 * moment it is set: a debounce, if the node is invalid then; a throttle, if the node has run.
 * What is set here counts more than what the node was registered with, and is stored: a node of the same durable
 * name has it again after a restart, effects included. */
HD_API hd_status hd_node_set_debounce(hd_runtime *rt, hd_node node, uint32_t ms);
HD_API hd_status hd_node_set_throttle(hd_runtime *rt, hd_node node, uint32_t ms);
HD_API hd_status hd_node_set_auto_debounce(hd_runtime *rt, hd_node node, bool on);
HD_API uint32_t hd_node_debounce(const hd_runtime *rt, hd_node node);
HD_API uint32_t hd_node_throttle(const hd_runtime *rt, hd_node node);

/* A hold, for the time in which data arrives that everything depends on: a first sync, an import.
 * Nodes of this name (a path "parent/child"; of a piece "space:id", of all pieces of a space its name;
 * NULL: all nodes) and those below them do not run for the first time before it ends; neither do
 * computations that were resumed, which a space that fills up would set off. It may be begun before
 * they are registered, and ends with hd_hold_end, when the data is there, or else after `ms` (0: 2,000).
 * Nodes that have run already are not held. hd_node_why_not says HD_WHY_NOT_HELD; idle waits for live nodes
 * that are held, and a pull sees the present value. HD_NOMEM: no node is held. */
typedef struct hd_hold {
    uint64_t id; /* 0: none */
} hd_hold;
HD_API hd_status hd_hold_begin(hd_runtime *rt, const char *name, uint32_t ms, hd_hold *out);
/* Ends a hold. Does nothing if it is over. */
HD_API void hd_hold_end(hd_runtime *rt, hd_hold hold);

/* ---- Idle -------------------------------------------------------------------------------- */

/* What the calls that wait do wait for. Settle waits for idle. Close ends events that were not begun with
 * HD_CLOSED, then does what sync does, then ends everything else. "lab" is hd_lab_idle.
 *
 *                                                            idle, settle   sync   close   lab
 *   nodes that can run now                                       yes        yes    yes     yes
 *   suspended runs, hd_work_begin                                yes        -      -       yes
 *   live nodes: a first run behind a debounce, a hold,
 *     or a document on its way                                   yes        -      -       yes
 *   live nodes: the first ten retries in a row of a run that
 *     was refused or failed for now                              yes        yes    yes     yes
 *   live nodes that have run, and are debounced or throttled     -          -      -       yes
 *   live nodes that do not settle: their backoff until it has
 *     reached 2 s, and after a change of what they read          yes        -      -       yes
 *   live nodes that wait because they and another writer
 *     overwrite each other (echo)                                -          -      -       -
 *   events in line                                               yes        yes    begun   yes
 *     that wait for a presync, or a handler that is loaded       yes        -      -       yes
 *     that wait for a suspended run                              yes        -      -       yes
 *     whose preflight said HD_PENDING                            -          -      -       -
 *   verdicts of commits                                          -          yes    yes     yes
 *   messages of the outbox that a channel has refused            -          -      -       -
 *
 * Dormant nodes are never waited for. Nothing here waits for ever because a graph does not settle: an event
 * goes on after 2 s, a first run behind a debounce that never ends is left after ten windows and ten seconds.
 * If nodes are left that do not settle, echo or are refused again and again, settle returns HD_UNSETTLED
 * and hd_scheduler_stats.unsettled counts them. A run that close drops is made after the next start, if it
 * was a computation; to have a debounced effect run before, set its debounce to 0 and settle. */

/* `fn` is called once, from pump, when the runtime is idle as above. */
typedef void (*hd_idle_fn)(void *ctx);
HD_API hd_status hd_runtime_on_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx);
HD_API bool hd_runtime_is_idle(const hd_runtime *rt);
/* Work outside of the runtime that idle waits for. hd_work_end logs a status that is a failure. */
HD_API void hd_work_begin(hd_runtime *rt);
HD_API void hd_work_end(hd_runtime *rt, hd_status status);

/* ---- Errors and log lines ---------------------------------------------------------------- */

typedef struct hd_failure {
    hd_status status;
    const char *message;
    const char *action;  /* name of the node or handler; "" */
    const char *piece;   /* of its piece; "main" */
    const char *pattern; /* "" */
    const char *space;   /* of its output; of an effect, of what it reads first; "" */
    hd_node node;
    const hd_cell *causes; /* what made the run happen; the first ones, if there are very many */
    size_t cause_count;
    size_t causes_more; /* so many are not among them */
} hd_failure;

/* Every handler is called; without one, failures are logged as uncaught. */
typedef void (*hd_error_fn)(const hd_failure *failure, void *ctx);
HD_API hd_status hd_runtime_on_error(hd_runtime *rt, hd_error_fn fn, void *ctx);
/* For an action: sets the message that is reported with the status it is about to return, and returns that
 * status. Outside of actions and handlers the message is lost. */
HD_API hd_status hd_tx_fail(hd_tx *tx, hd_status status, const char *format, ...) HD_PRINTF(3, 4);

/* A log line from inside an action. The hook may rewrite it, or return false to drop it. */
typedef struct hd_log_entry {
    hd_log_level level;
    const char *line;
    const char *action, *piece, *space; /* as in hd_failure */
    const char *pattern;                /* ditto */
} hd_log_entry;
typedef bool (*hd_log_fn)(hd_log_entry *entry, void *ctx);
HD_API void hd_runtime_set_log(hd_runtime *rt, hd_log_fn fn, void *ctx);
HD_API void hd_tx_log(hd_tx *tx, hd_log_level level, const char *format, ...) HD_PRINTF(3, 4);

/* The causes of the run this transaction belongs to: the cells that the node read in its last completed
 * run, or while it was tried since, and that have changed since that run. What this run reads has no
 * influence on them; a run that is tried again, because its commit was refused or what it read has
 * changed, has them again. Of more than 64, those of one document become their common ancestor. A first
 * run has none; the first run after a restart has what was found changed.
 * Returns how many there are, and writes the first `max` of them. They go into the commit's row of the
 * log, too ("why", at most 64, then "more": how many are left out). Without memory the transaction fails
 * with HD_NOMEM. */
HD_API size_t hd_tx_causes(hd_tx *tx, hd_cell *out, size_t max);
/* The node this transaction belongs to; id 0: none. */
HD_API hd_node hd_tx_node(const hd_tx *tx);

/* ---- Looking inside ---------------------------------------------------------------------- */

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
    hd_node live_reader; /* HD_LIVE_READ: one of the live readers */
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
} hd_scheduler_stats;
HD_API void hd_runtime_scheduler_stats(const hd_runtime *rt, hd_scheduler_stats *out);

/* How often nodes ran, and how often an invalid one had to wait for its time, since the last reset. */
typedef struct hd_filter_stats {
    uint64_t executed, filtered;
} hd_filter_stats;
HD_API void hd_runtime_filter_stats(const hd_runtime *rt, hd_filter_stats *out);
HD_API void hd_runtime_reset_filter_stats(hd_runtime *rt);

/* The statistics of an action by name (a path "parent/child"), of all nodes that had the name together;
 * HD_NOT_FOUND: there are none. After hd_runtime_keep_stats(rt, true) those of nodes that are gone are kept:
 * HD_KEPT_STATS names, of which those that ran least recently are forgotten first. */
#define HD_KEPT_STATS 20000
typedef struct hd_action_stats {
    uint64_t runs, timed_runs, total_ns, failures;
    bool exists; /* the node is there now */
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

#ifdef __cplusplus
}
#endif
#endif
