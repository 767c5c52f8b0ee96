/* heddle/scheduler.h -- computations and effects: derived values, kept up to date where they are needed.
 *
 * A *node* is a function that runs in a transaction. The cells that it reads while it runs are its dependencies;
 * when the value of one of them changes, the node becomes invalid. It runs again when it is invalid and *live*:
 *
 *   effect         always live. Prints, draws, sends; it may write any cell, or none.
 *   computation    live while a live node reads its output. Otherwise it does not run.
 *   materialiser   a computation that may write anywhere inside the cells that it names as its envelopes
 *                  (hd_node_spec.envelopes); always live, runs when there is nothing else to do.
 *
 * A node is *clean* when it is not invalid, and *dormant* when it is not live. Two writers *echo* when each overwrites
 * what the other has written into the same cell, so that both are invalid again and again.
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
 * writes the same values. A result that equals the one before makes no other node run. The calls that register,
 * write or unregister run no node: nodes run in hd_runtime_pump, and in the calls that pump (settle, sync, run, ...).
 *
 * Order: writers before readers, parents before children, then by registration. Nodes that do not settle are
 * slowed down, not stopped, and a warning names them; no other node, event or call waits for them for ever (see Idle).
 *
 * Everything here is called on the runtime's thread. */
#ifndef HEDDLE_SCHEDULER_H
#define HEDDLE_SCHEDULER_H

#include <heddle/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Nodes ------------------------------------------------------------------------------- */

/* The function of a node. It reads and writes through `tx` only. What it returns:
 *
 *   HD_OK               the run is committed.
 *   HD_PENDING          after hd_tx_suspend: the run ends later.
 *   a transient status  nothing is committed; the node runs again, ten times in all, after growing delays; after that
 *                       once for each change of what it read, until a run succeeds.
 *   HD_NOMEM            nothing is committed and the node stays invalid: this pump does the rest of its work and
 *                       returns HD_NOMEM, and the next pump runs the node again.
 *   any other           nothing is committed, the error handlers are called (hd_runtime_on_error), and the node runs
 *                       again when something it read changes.
 *
 * A read in the function may fail with HD_PENDING: the document is still loading; or the function reads the cell for
 * the first time, and the node that writes it has to run first. The run is then *set aside*: nothing is committed,
 * whatever the function returns, and the node runs again when the document is there or the other node has run. So a
 * function that does something outside of the store first checks hd_value_status of what it read. In return, no
 * function sees a mixture of values from before and after a change. Two exceptions: in a cycle, and when a time gate
 * (see below) holds the writing node, the function reads the writer's last result. */
typedef hd_status (*hd_action_fn)(hd_tx *tx, void *ctx);

/* A handle. After the node is gone, calls with the handle return HD_NOT_FOUND or do nothing. */
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
    const hd_cell *envelopes; /* makes it a materialiser; side_outputs are then ignored */
    size_t envelope_count;
    const hd_cell *ignored; /* cells inside the outputs that do not count as outputs */
    size_t ignored_count;

    /* What the node will read in its first run, as far as the program knows: the nodes that write these cells then
     * run before it. */
    const hd_cell *reads;
    size_t read_count;

    /* If its id is not 0: the call makes no node, but makes the existing node `again` a child of the node that is
     * running now, and with `effect` turns it into an effect. The other members are ignored. */
    hd_node again;
    hd_node parent; /* default: the node that is running now */
    /* Commits of this change group (hd_tx_set_group) do not invalidate the node; 0: no group. But a commit that adds or
     * removes a link on the path of a cell that the node reads always does, because the node then reads another place:
     * also a commit of the group, and one of the node itself. */
    uint64_t group;
    uint32_t debounce_ms, throttle_ms; /* see "Time gates" */
    bool no_auto_debounce;             /* as hd_node_set_auto_debounce(..., false) */
    bool run_once;                     /* run it once, even if no live node reads the output */
    /* The version of the code, for resuming. A computation that has a name, and whose parents have names, does not
     * run after a restart unless its version, its cells or something that it read has changed. NULL: the build id of
     * the program or library that contains fn. hd_node_unregister ends this: the next node of that name runs. */
    const char *version;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_node_spec;

/* Registers a node; it runs first in a later pump. `out` may be NULL. HD_USAGE: the spec makes no sense; HD_SYNTAX: the
 * name is not UTF-8; HD_NOMEM; hd_runtime_error says why. On failure no node is made, and `release` is not called. */
HD_API hd_status hd_node_register(hd_runtime *rt, const hd_node_spec *spec, hd_node *out);
/* Removes the node. Its children stay, but hd_node_find does not find them any more. A node that unregisters
 * itself is removed after its run, which commits nothing. If a listener unregisters the node whose writes are being
 * announced, the node is removed after the last listener. Does nothing if the node is gone. */
HD_API void hd_node_unregister(hd_runtime *rt, hd_node node);
/* Turns a computation into an effect; it keeps its handle. An effect stays one: there is no way back. HD_NOT_FOUND. */
HD_API hd_status hd_node_promote(hd_runtime *rt, hd_node node);
/* Makes an invalid node run once, even if no live node reads its output. HD_NOT_FOUND, HD_NOMEM. */
HD_API hd_status hd_node_request(hd_runtime *rt, hd_node node);
HD_API bool hd_node_exists(const hd_runtime *rt, hd_node node);
/* The node under this name (a path "parent/child" for children; names may have slashes of their own);
 * id 0: none. */
HD_API hd_node hd_node_find(const hd_runtime *rt, const char *name);

/* Register a computation or an effect with the defaults of hd_node_spec. On failure the node has id 0, and
 * hd_runtime_error tells why. */
HD_API hd_node hd_compute(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx,
                          hd_cell output);
HD_API hd_node hd_effect(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx);

/* Registers an effect that calls fn with the cell's value in the next pump, and again after each change; the value is
 * good during the call. fn sees the runtime's optimistic state: the value may follow from commits of this program that
 * the store has not accepted yet, and that are lost if the program ends before hd_runtime_sync or hd_close. A sink with
 * hd_sink_spec.confirmed sees accepted values only. It is also a change if the document, or a container on the cell's
 * path, comes or goes: fn may be called with an absent value although the value before was absent. On failure
 * (HD_USAGE for no cell) the node has id 0, and hd_runtime_error tells why. */
typedef void (*hd_sink_fn)(hd_value v, void *ctx);
HD_API hd_node hd_sink(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);

/* A sink with options. Members that are zero are as in hd_sink. */
typedef struct hd_sink_spec {
    const char *name; /* of its node; NULL: anonymous */
    hd_cell cell;
    hd_sink_fn fn;
    void *ctx;
    /* Commits of this change group (hd_tx_set_group) do not call fn. For an editor, which already shows its own
     * edits. 0: no group. */
    uint64_t group;
    /* fn sees accepted values only: it is called once the store has accepted every commit of this runtime that the
     * value can follow from, and a computation's value itself; in a file, those are on disk then. Values in between are
     * skipped, and a value of a refused commit is never shown. fn is called from pump, outside of runs.
     * hd_runtime_settle does not wait for the call, hd_runtime_sync and hd_close do. */
    bool confirmed;
    /* Called with ctx once the sink is gone: unregistered, also by fn itself during its call, or closed with the
     * runtime. Not called if the registration fails. NULL: nothing to release. */
    hd_release_fn release;
    uint64_t reserved_[2]; /* room for later members; zero */
} hd_sink_spec;
/* `out` may be NULL. HD_USAGE without a cell or a function; otherwise fails as hd_node_register does. */
HD_API hd_status hd_sink_register(hd_runtime *rt, const hd_sink_spec *spec, hd_node *out);

/* Reads a cell once: in a later pump the nodes that compute it are brought up to date, then fn is called. In a cycle fn
 * may be called several times, in the same pump. HD_USAGE: no cell or function; HD_NOMEM. */
HD_API hd_status hd_pull(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);
/* The same, but pumps and waits for the value, also for suspended runs. The value belongs to the pool; it is failed if
 * the pull or the waiting fails (HD_USAGE inside a run; HD_UNSETTLED: it depends on a run that is parked). */
HD_API hd_value hd_pull_now(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Async runs -------------------------------------------------------------------------- */

/* Suspends the run of the running node: the action returns HD_PENDING, and the program calls hd_run_resume later, on
 * the runtime's thread, once. Until then the node is not clean: nodes, handlers and pulls that depend on its output
 * wait (HD_WHY_NOT_AWAITS); all others go on. Meanwhile the program may read and write through hd_run_tx. If something
 * that the run read has changed by the time it is resumed, it fails with HD_STALE and the node runs again. What it
 * wrote is made on what is there when it is resumed: a part of a document that it did not write stays as others have
 * written it. If the action returns anything but HD_PENDING, its run ends with that status, and *out must not be used.
 * If the node is unregistered meanwhile, resuming commits nothing; hd_close ends runs that were not resumed. Nodes of a
 * cycle whose runs cause each other ten times in a row are slowed down; a node that the program's own writes keep busy
 * is not. HD_USAGE outside of a run, HD_NOMEM; *out is then NULL. */
typedef struct hd_run hd_run;
HD_API hd_status hd_tx_suspend(hd_tx *tx, hd_run **out);
/* The transaction of the suspended run, until hd_run_resume. */
HD_API hd_tx *hd_run_tx(hd_run *run);
/* Ends the run with this status, as if the action had returned it; `run` must not be used afterwards. Called inside
 * another node's run or a handler, it takes effect after that one. */
HD_API void hd_run_resume(hd_run *run, hd_status status);
/* Parks the run: nothing can go on with it now, because the loop that it was waiting in has ended, say. It will not
 * count, as if the program had ended in the middle of it: nothing is committed or reported, and a computation whose run
 * is parked when the runtime closes runs after the next start. Until hd_runtime_unpark the node is not clean, and what
 * depends on it waits, as for any suspended run; but idle and settle do not wait for it, settle returns HD_UNSETTLED,
 * and hd_scheduler_stats.unsettled counts it. `run` must not be used afterwards. */
HD_API void hd_run_park(hd_run *run);
/* The same for the run on the stack, whose function an interrupt has ended in the middle: what the function returns
 * does not count. The pump that it is in runs no further node. HD_USAGE outside of a run; HD_NOMEM. */
HD_API hd_status hd_runtime_park(hd_runtime *rt);
/* Ends all parked runs: their nodes run again in the next pump. */
HD_API void hd_runtime_unpark(hd_runtime *rt);

/* ---- Time gates -------------------------------------------------------------------------- */

/* A gate holds an invalid node back for a time; then the node runs on the latest values. Debounce: the node runs when
 * nothing that it reads has changed for `ms`. Throttle: the node runs at most once in `ms`, not counting runs that are
 * retried or were set aside. 0 clears the gate.
 *
 * While a gate holds a node, nodes that read its output (effects and pulls included) read its last result, and handlers
 * that declare the output as an input wait. The same is true while a backoff holds the node, and during the delay
 * before a run that failed for now is tried again. If the store refused the node's result, which is then withdrawn, all
 * readers wait for the first ten retries in a row.
 *
 * While the node is dormant, changes after the first do not restart its debounce, so it may run as soon as a live node
 * reads it. Changing the time of a gate keeps the moment at which its window began. A gate that is set where there was
 * none begins its window at once: a debounce if the node is invalid, a throttle if the node has run.
 *
 * What is set here replaces what hd_node_spec said, separately for the two gates, also by 0. If the store outlives the
 * runtime, it is stored for every node with a durable name, effects too, and holds again after a restart. It ends with
 * hd_node_unregister and with hd_piece_remove, but not with hd_piece_stop.
 *
 * HD_NOT_FOUND, HD_NOMEM. The two functions that read return 0 for a node without the gate, or that is gone. */
HD_API hd_status hd_node_set_debounce(hd_runtime *rt, hd_node node, uint32_t ms);
HD_API hd_status hd_node_set_throttle(hd_runtime *rt, hd_node node, uint32_t ms);
HD_API uint32_t hd_node_debounce(const hd_runtime *rt, hd_node node);
HD_API uint32_t hd_node_throttle(const hd_runtime *rt, hd_node node);
/* Auto-debounce is on unless it is switched off: an effect without a debounce whose runs take 50 ms or more on average
 * gets a debounce of 100 ms after its third run, once. Switching it off does not remove a debounce that is set already.
 * Computations and pulls never get one. HD_NOT_FOUND, HD_NOMEM. */
HD_API hd_status hd_node_set_auto_debounce(hd_runtime *rt, hd_node node, bool on);

/* A hold keeps nodes from their first run while data arrives that they depend on: a first sync, an import. `name` says
 * which nodes: a path "parent/child"; "space:id", the nodes of a piece; the name of a space, the nodes of all its
 * pieces; NULL, all nodes; each with the nodes below them. Computations that were resumed count as not having run, so
 * that an import does not run them for every step. Nodes that have run already are not held. A hold may begin before
 * its nodes are registered. It ends with hd_hold_end, when the data is there, or else after `ms` (0: 2,000).
 * hd_node_why_not says HD_WHY_NOT_HELD; idle waits for live nodes that are held, and a pull sees the present value.
 * HD_NOMEM: no node is held. */
typedef struct hd_hold {
    uint64_t id; /* 0: none */
} hd_hold;
HD_API hd_status hd_hold_begin(hd_runtime *rt, const char *name, uint32_t ms, hd_hold *out);
/* Ends a hold. Does nothing if it is over. */
HD_API void hd_hold_end(hd_runtime *rt, hd_hold hold);

/* ---- Idle -------------------------------------------------------------------------------- */

/* What the waiting calls wait for. Settle waits until the runtime is idle. Close first ends events that were not begun
 * (their senders are told HD_CLOSED), then does what sync does, then ends everything else. "begun": only events whose
 * handler has begun. "lab" is hd_lab_idle.
 *
 *                                                            idle, settle   sync   close   lab
 *   nodes that can run now                                       yes        yes    yes     yes
 *   suspended runs that are not parked, hd_work_begin            yes        -      -       yes
 *   live nodes: a first run behind a debounce, a hold,
 *     or a document that is still loading                        yes        -      -       yes
 *   live nodes: the first ten retries in a row of a run that
 *     was refused or failed for now                              yes        yes    yes     yes
 *   live nodes that have run, and are debounced or throttled     -          -      -       yes
 *   live nodes that do not settle: their backoff until it has
 *     reached 2 s, and after a change of what they read          yes        -      -       yes
 *   live nodes that wait because they and another writer
 *     overwrite each other (echo)                                -          -      -       -
 *   events in line                                               yes        yes    begun   yes
 *     posted for a later time, and periodic events               -          -      -       -
 *     that wait for a presync, or a handler that is loaded       yes        -      -       yes
 *     that wait for a suspended run that is not parked           yes        -      -       yes
 *     whose preflight said HD_PENDING                            -          -      -       -
 *   verdicts of commits                                          -          yes    yes     yes
 *   hd_transact_later, and posts with an id, until they are over -          yes    yes     yes
 *   messages of the outbox that a channel has refused            -          -      -       -
 *
 * None of them waits for dormant nodes. A graph that does not settle keeps none of them waiting for ever: an event goes
 * on when the backoff of its inputs has reached 2 s, and a first run behind a debounce that keeps restarting is given
 * up after ten windows and ten seconds. If nodes remain that do not settle, echo, or are refused again and again,
 * settle returns HD_UNSETTLED, and hd_scheduler_stats.unsettled counts them. A computation whose run close drops runs
 * after the next start. An effect does not: to run a debounced effect before, set its debounce to 0 and settle. */

/* `fn` is called once, from pump, when the runtime is idle as above. HD_NOMEM. */
typedef void (*hd_idle_fn)(void *ctx);
HD_API hd_status hd_runtime_on_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx);
/* Prevents the call, if it has not been made. Does nothing if there is no such function. */
HD_API void hd_runtime_off_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx);
HD_API bool hd_runtime_is_idle(const hd_runtime *rt);
/* Between the two, the program works outside of the runtime, and idle waits for it. hd_work_end logs a status that is a
 * failure. HD_NOMEM: nothing has begun, and hd_work_end must not be called for it. */
HD_API hd_status hd_work_begin(hd_runtime *rt);
HD_API void hd_work_end(hd_runtime *rt, hd_status status);

/* ---- Errors and log lines ---------------------------------------------------------------- */

typedef struct hd_failure {
    hd_status status;
    const char *message;
    const char *action;  /* name of the node or handler; "": none */
    const char *piece;   /* the piece that it belongs to; "main": none */
    const char *pattern; /* of that piece; "": none */
    const char *space;   /* of its output; of an effect: of the first cell it reads; "": none */
    hd_node node;
    const hd_cell *causes; /* what caused the run; if there are very many, the first ones */
    size_t cause_count;
    size_t causes_more; /* how many further causes there are */
} hd_failure;

/* Adds an error handler. Every failure is told to all of them; without one, it is logged as uncaught. The failure is
 * good during the call. HD_NOMEM. */
typedef void (*hd_error_fn)(const hd_failure *failure, void *ctx);
HD_API hd_status hd_runtime_on_error(hd_runtime *rt, hd_error_fn fn, void *ctx);
/* Removes it; the function itself may do that while it is called. Does nothing if there is no such function. */
HD_API void hd_runtime_off_error(hd_runtime *rt, hd_error_fn fn, void *ctx);
/* For an action or a handler: `return hd_tx_fail(tx, HD_FAILED, "...")` sets the message that is reported together with
 * the status, and returns the status. In other transactions the message is lost. */
HD_API hd_status hd_tx_fail(hd_tx *tx, hd_status status, const char *format, ...) HD_PRINTF(3, 4);

/* A log line that an action or a handler writes with hd_tx_log. The hook may change `level` and `line`, or return false
 * to drop the line. */
typedef struct hd_log_entry {
    hd_log_level level;
    const char *line;
    const char *action, *piece, *space; /* as in hd_failure */
    const char *pattern;                /* ditto */
} hd_log_entry;
typedef bool (*hd_log_fn)(hd_log_entry *entry, void *ctx);
/* Sets the hook; NULL: none. HD_NOMEM: the hook stays as it was. */
HD_API hd_status hd_runtime_set_log(hd_runtime *rt, hd_log_fn fn, void *ctx);
/* Writes a log line, formatted as by printf, to hd_env.log. */
HD_API void hd_tx_log(hd_tx *tx, hd_log_level level, const char *format, ...) HD_PRINTF(3, 4);

/* The causes of the run that this transaction belongs to: the cells that have changed since the node's last completed
 * run, of those that the node read in that run or in attempts since. What this run itself reads does not change them;
 * a run that is tried again, because its commit was refused or what it read has changed, has the same causes again.
 * If there are more than 64, the causes in one document are replaced by their common ancestor. A first run has none;
 * the first run after a restart has the cells that were found changed.
 * Returns how many there are, and writes the first `max` of them to `out`. The commit's row of the log has them too
 * ("why", at most 64, then "more": how many are left out). Without memory the transaction fails with HD_NOMEM. */
HD_API size_t hd_tx_causes(hd_tx *tx, hd_cell *out, size_t max);
/* The node this transaction belongs to; id 0: none. */
HD_API hd_node hd_tx_node(const hd_tx *tx);

#ifdef __cplusplus
}
#endif
#endif
