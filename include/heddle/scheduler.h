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
    uint64_t reserved_[4]; /* room for later members; zero */
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
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_sink_spec;
/* `out` may be NULL. HD_USAGE without a cell or a function, and as hd_node_register. */
HD_API hd_status hd_sink_register(hd_runtime *rt, const hd_sink_spec *spec, hd_node *out);

/* Looks once: brings the cell up to date and calls fn. */
HD_API hd_status hd_pull(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);
/* The same, waiting for it, suspended runs included; not inside a run. The value belongs to the pool. */
HD_API hd_value hd_pull_now(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Async runs -------------------------------------------------------------------------- */

/* Suspends the running node: its action then returns HD_PENDING, and hd_run_resume is called later,
 * on the runtime's thread, once. A node whose runs set off each other, ten times in a row, is slowed down as any
 * node in a cycle is; one that the program keeps busy is not. Until then the node is not clean: nodes, handlers and pulls that depend
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
 * invalid; then it runs on the latest values. What reads its output and runs meanwhile, effects and pulls
 * included, reads its last result; handlers that declare it wait. The same holds for a backoff, and for the
 * delay before a run is tried again that was refused or failed for now. While the node is dormant, changes after the first do not restart
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
/* Takes it back before it was called. Does nothing if there is no such function. */
HD_API void hd_runtime_off_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx);
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
/* Takes it back, also while it is called. Does nothing if there is no such function. */
HD_API void hd_runtime_off_error(hd_runtime *rt, hd_error_fn fn, void *ctx);
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

#ifdef __cplusplus
}
#endif
#endif
