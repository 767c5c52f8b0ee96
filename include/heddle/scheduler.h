/* heddle/scheduler.h -- computations and effects: values kept right, where somebody looks.
 *
 * A *node* is a function over a transaction. What it reads while it runs are its dependencies; when
 * one of those values really changes it becomes invalid. It runs again when it is invalid and *live*:
 *
 *   effect         always live. Prints, draws, sends; writes nothing or what it likes.
 *   computation    live while a live node reads its output. Nobody looks: it does not run.
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
 *     hd_compute(rt, "add_up", add_up, &cart, cart.total);      // runs only while someone looks
 *     hd_sink(rt, cart.total, print_value, stdout);             // someone looks
 *
 * Every run is a transaction. A computation must be idempotent: run again on the same inputs it
 * writes the same values. A result that is equal to the one before wakes nobody. Nothing runs inside
 * the call that registers, writes or cancels: runs happen in hd_runtime_pump (or settle, or run).
 *
 * Order: writers before readers, parents before children, then by registration. A graph that does
 * not settle is slowed down, never stopped, and says so once.
 */
#ifndef HEDDLE_SCHEDULER_H
#define HEDDLE_SCHEDULER_H

#include <heddle/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Nodes ------------------------------------------------------------------------------- */

/* What a node runs, on the runtime's thread. It reads and writes through `tx` only. HD_OK commits.
 * HD_PENDING, after hd_tx_suspend, means that it completes later. A read that failed with HD_PENDING
 * is passed on the same way: the run is set aside until the document is there. A transient status is
 * retried within a budget of 10; any other is reported to the error handlers, nothing is committed,
 * and the node runs again when something it read changes. */
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
    void (*release)(void *ctx); /* called when the node is gone; may be NULL */

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

    hd_node again;  /* this node once more: moves under the running one, promotes it to an effect */
    hd_node parent; /* default: the node that is running now */
    uint64_t group; /* commits of this change group do not concern it; 0: none */
    uint32_t debounce_ms, throttle_ms;
    bool no_auto_debounce;
    bool run_once;       /* demand one first run although nobody looks */
    const char *version; /* of the code; NULL: the build. For resuming */
} hd_node_spec;

/* HD_USAGE for a spec that makes no sense (the error says why), HD_NOMEM. */
HD_API hd_status hd_node_register(hd_runtime *rt, const hd_node_spec *spec, hd_node *out);
/* Removes the node. Its children stay: they are separate nodes. During its own run it ends after
 * the run, which commits nothing. */
HD_API void hd_node_cancel(hd_runtime *rt, hd_node node);
/* A computation becomes an effect, in place. The other way round: HD_USAGE. */
HD_API hd_status hd_node_promote(hd_runtime *rt, hd_node node);
/* Demands one run, whether or not somebody looks, if the node is invalid. */
HD_API hd_status hd_node_request(hd_runtime *rt, hd_node node);
HD_API bool hd_node_exists(const hd_runtime *rt, hd_node node);
/* The node under this name (a path "parent/child" for children); id 0: none. */
HD_API hd_node hd_node_find(const hd_runtime *rt, const char *name);

/* The common ones. A failure gives a node with id 0, and hd_runtime_error tells why. */
HD_API hd_node hd_compute(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx,
                          hd_cell output);
HD_API hd_node hd_effect(hd_runtime *rt, const char *name, hd_action_fn fn, void *ctx);

/* Calls fn with the cell's value now and whenever it changes. The value is borrowed. */
typedef void (*hd_sink_fn)(void *ctx, hd_value v);
HD_API hd_node hd_sink(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);

/* Looks once: brings the cell up to date and calls fn. */
HD_API hd_status hd_pull(hd_runtime *rt, hd_cell cell, hd_sink_fn fn, void *ctx);
/* The same, waiting for it; not inside a run. The value belongs to the pool. */
HD_API hd_value hd_pull_now(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Async runs -------------------------------------------------------------------------- */

/* Suspends the running node: its action then returns HD_PENDING, and hd_run_resume is called later,
 * on the runtime's thread, outside any run. In between `hd_run_tx` may be read and written with; it
 * fails with HD_STALE, and the node runs again, if something it read has changed meanwhile. */
typedef struct hd_run hd_run;
HD_API hd_status hd_tx_suspend(hd_tx *tx, hd_run **out);
HD_API hd_tx *hd_run_tx(hd_run *run);
/* Ends the run with this status; `run` is gone. */
HD_API void hd_run_resume(hd_run *run, hd_status status);

/* ---- Time gates -------------------------------------------------------------------------- */

/* Debounce: run only when nothing has changed for so long. Throttle: at most one run in so long.
 * 0 clears. A node set aside stays invalid and runs with the latest values. */
HD_API hd_status hd_node_set_debounce(hd_runtime *rt, hd_node node, uint32_t ms);
HD_API hd_status hd_node_set_throttle(hd_runtime *rt, hd_node node, uint32_t ms);
HD_API hd_status hd_node_set_auto_debounce(hd_runtime *rt, hd_node node, bool on);
HD_API uint32_t hd_node_debounce(const hd_runtime *rt, hd_node node);
HD_API uint32_t hd_node_throttle(const hd_runtime *rt, hd_node node);

/* ---- Idle -------------------------------------------------------------------------------- */

/* Nothing is runnable, suspended, or deferred before its first result. Called once, from pump. */
typedef void (*hd_idle_fn)(void *ctx);
HD_API hd_status hd_runtime_on_idle(hd_runtime *rt, hd_idle_fn fn, void *ctx);
HD_API bool hd_runtime_is_idle(const hd_runtime *rt);
/* Work elsewhere that idle waits for. `status` of the end is logged when it is a failure. */
HD_API void hd_work_begin(hd_runtime *rt);
HD_API void hd_work_end(hd_runtime *rt, hd_status status);

/* ---- Errors and log lines ---------------------------------------------------------------- */

typedef struct hd_failure {
    hd_status status;
    const char *message;
    const char *action;  /* name of the node or handler; "" */
    const char *piece;   /* of its piece; "main" */
    const char *pattern; /* "" */
    const char *space;   /* of its output; "" */
    hd_node node;
    const hd_cell *causes; /* what made the run happen */
    size_t cause_count;
} hd_failure;

/* Every handler is called; without one, failures are logged as uncaught. */
typedef void (*hd_error_fn)(void *ctx, const hd_failure *failure);
HD_API hd_status hd_runtime_on_error(hd_runtime *rt, hd_error_fn fn, void *ctx);
/* For an action: the message that goes with the status it is about to return. */
HD_API hd_status hd_tx_fail(hd_tx *tx, hd_status status, const char *format, ...) HD_PRINTF(3, 4);

/* A log line from inside an action. The hook may rewrite it, or return false to drop it. */
typedef struct hd_log_entry {
    hd_log_level level;
    const char *line;
    const char *action, *piece, *space;
} hd_log_entry;
typedef bool (*hd_log_fn)(void *ctx, hd_log_entry *entry);
HD_API void hd_runtime_on_log(hd_runtime *rt, hd_log_fn fn, void *ctx);
HD_API void hd_tx_log(hd_tx *tx, hd_log_level level, const char *format, ...) HD_PRINTF(3, 4);

/* The causes of the run this transaction belongs to: cells whose change made it happen. */
HD_API size_t hd_tx_causes(hd_tx *tx, hd_cell *out, size_t max);
/* The node this transaction belongs to; id 0: none. */
HD_API hd_node hd_tx_node(const hd_tx *tx);

/* ---- Looking inside ---------------------------------------------------------------------- */

typedef enum hd_node_status { HD_NODE_NEVER_RAN, HD_NODE_CLEAN, HD_NODE_INVALID } hd_node_status;

typedef enum hd_why_not {
    HD_WHY_NOT_RUNS,     /* it will run in the next pump */
    HD_WHY_NOT_CLEAN,    /* nothing it read has changed */
    HD_WHY_NOT_DORMANT,  /* nobody looks */
    HD_WHY_NOT_DEBOUNCE, /* until eligible_at_ns */
    HD_WHY_NOT_THROTTLE,
    HD_WHY_NOT_BACKOFF,   /* it did not settle */
    HD_WHY_NOT_ECHO,      /* it and another writer overwrite each other */
    HD_WHY_NOT_HELD,      /* its space is being synced */
    HD_WHY_NOT_LOADING,   /* a document it reads is on its way */
    HD_WHY_NOT_RUNNING,   /* it is suspended */
    HD_WHY_NOT_IDLE_TURN, /* a materialiser: after everything else */
    HD_WHY_NOT_GONE       /* removed */
} hd_why_not;
HD_API const char *hd_why_not_text(hd_why_not reason);

typedef struct hd_node_info {
    hd_node node;
    const char *name; /* "" */
    bool effect, materialiser, live, provisional, suspended;
    hd_node_status status;
    hd_node parent;
    hd_cell output;
    uint32_t children, reads, live_refs;
    uint64_t runs, timed_runs, total_ns; /* total_ns of the timed ones */
    uint64_t eligible_at_ns;             /* 0: now */
    hd_why_not why_not;
} hd_node_info;
HD_API hd_status hd_node_inspect(const hd_runtime *rt, hd_node node, hd_node_info *out);
/* Every node, in order of position. Return false to stop. */
typedef bool (*hd_node_fn)(void *ctx, const hd_node_info *info);
HD_API void hd_runtime_nodes(const hd_runtime *rt, hd_node_fn fn, void *ctx);
/* Nodes that read what this one writes. */
HD_API void hd_node_dependents(const hd_runtime *rt, hd_node node, void (*fn)(void *, hd_node),
                               void *ctx);

typedef struct hd_scheduler_stats {
    uint64_t nodes, effects, computations, materialisers, invalid, live;
    uint64_t passes, iterations, failures, retries, stale_retries;
    uint64_t runs, effect_runs; /* completed; of those, of effects */
    uint64_t marks;      /* nodes found to be concerned by a change */
    uint64_t suppressed; /* of those, by own commit or group */
    uint64_t filtered;   /* turns at which a node was not eligible */
    uint64_t read_deltas;
    uint64_t outside_surface;                     /* writes outside the declared outputs */
    uint64_t exhausted;                           /* passes that ended at a limit */
    uint64_t repairs, demand_visits, edge_visits; /* of the graph */
} hd_scheduler_stats;
HD_API void hd_runtime_scheduler_stats(const hd_runtime *rt, hd_scheduler_stats *out);

#ifdef __cplusplus
}
#endif
#endif
