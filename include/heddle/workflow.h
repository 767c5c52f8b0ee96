/* heddle/workflow.h -- workflows: work in many steps that survives any crash.
 *
 * A *workflow* is a graph of steps, given once as IR (docs/IR.md). An *instance* is one run of it. Steps
 * that do something are *actions*: functions of this program. When a step is finished, its result is stored
 * and whatever waited for it is ready; nothing is scanned and nothing is replayed. After a crash every
 * instance goes on where it was: finished steps stay finished, steps that were under way run again.
 *
 *     static hd_status charge(hd_action *a, hd_value args, void *ctx) {
 *         ...                                                   // args is {"order": 17}
 *         return hd_action_return(a, hd_bool(true));
 *     }
 *
 *     hd_engine *engine;
 *     hd_engine_open(rt, NULL, &engine, NULL);
 *     hd_action_register(engine, &(hd_action_spec){ .name = "charge", .fn = charge });
 *     hd_workflow_register(engine, ir, NULL, &error);
 *     hd_workflow_start(engine, "checkout", input, NULL, id);
 *     hd_workflow_await(engine, id, pool, &result);
 *
 * STATE IS CELLS. An instance is the document "workflow/<name>/<id>" of the engine's space: its status,
 * input, variables, open steps, result or error. Computations and effects read it like any cell. Only
 * the engine writes it.
 *
 * EXACTLY ONCE. What the completion of a step changes in the store happens once, however often the action
 * was begun. The action itself is begun at least once: make it idempotent, or give what it calls a key
 * made from hd_action_id, which is the same in every attempt.
 *
 * THREADS. Everything here is called on the runtime's thread, except the functions of hd_action, which
 * belong to the thread that runs the action. */
#ifndef HEDDLE_WORKFLOW_H
#define HEDDLE_WORKFLOW_H

#include <heddle/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The engine -------------------------------------------------------------------------- */

/* Runs the workflows of one space, inside hd_runtime_pump. It belongs to its runtime and is closed with it, or
 * before. Any number of programs on one machine may have an engine open for a space: one of them is *active* and
 * runs the instances, with the actions that are registered there. The others stand by; everything below works in
 * them too, and reaches the active one through the store. When the active one is closed another takes over at
 * once, and within a second when its process is killed. Programs that share a file see each other's process ids. */
typedef struct hd_engine hd_engine;

typedef struct hd_engine_options {
    const char *space; /* default "main" */
    uint32_t threads; /* for actions that do not say `here`; default 4, started when first needed */
    bool observer;    /* never active: for tools that start, signal and look */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_engine_options;

/* Becomes active if no other engine is, and takes up the instances that are not over; one that cannot be read is
 * logged and marked as stalled. Pumps meanwhile. `options` may be NULL. HD_EXISTS: the runtime has an engine;
 * HD_SYNTAX: no name for a space; HD_NOMEM; what a commit returns (HD_IO, ...). */
HD_API hd_status hd_engine_open(hd_runtime *rt, const hd_engine_options *options, hd_engine **out,
                                hd_error *error);
/* Waits for actions that run; what they return is lost, and they run again when the space has an engine. */
HD_API void hd_engine_close(hd_engine *engine);
/* Whether it runs the space's instances now. */
HD_API bool hd_engine_is_active(const hd_engine *engine);

/* ---- Actions ----------------------------------------------------------------------------- */

/* One attempt at one step; good until the function returns. */
typedef struct hd_action hd_action;

/* Does the work. `args` is what the workflow gives: an object for named arguments, an array for positional
 * ones. HD_OK: the result is what hd_action_return was given, or null. Anything else is an exception in the
 * workflow: what hd_action_raise said, else ConnectionError for a transient status and RuntimeError for any
 * other. */
typedef hd_status (*hd_step_fn)(hd_action *action, hd_value args, void *ctx);

typedef struct hd_action_spec {
    const char *name;
    hd_step_fn fn;
    void *ctx;
    /* Runs on the runtime's thread, inside pump: for actions that are over at once. Otherwise it runs on a
     * thread of the engine, and must not touch the runtime. */
    bool here;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_action_spec;
/* Registered again under a name: replaced; `here` must be the same. HD_USAGE, HD_NOMEM. */
HD_API hd_status hd_action_register(hd_engine *engine, const hd_action_spec *spec);

HD_API const char *hd_action_id(
    const hd_action *action); /* the same in every attempt at the step */
HD_API uint32_t hd_action_attempt(const hd_action *action); /* 1, 2, ... */
/* Says that the action is still at work. One whose step has a `heartbeat` and that is silent for longer counts as
 * lost: the step is begun again elsewhere, which is no attempt in the sense of its `retry`. */
HD_API void hd_action_heartbeat(hd_action *action);
/* The engine does not wait for this attempt any more (timeout, cancelled, closing): what it returns is dropped.
 * A long action asks now and then, and returns. */
HD_API bool hd_action_is_revoked(const hd_action *action);
/* Values that the action makes belong to this pool. */
HD_API hd_pool *hd_action_pool(hd_action *action);
HD_API hd_status hd_action_return(hd_action *action, hd_value result);
/* Raises an exception of this class ("ValueError") in the workflow. Returns HD_FAILED. */
HD_API hd_status hd_action_raise(hd_action *action, const char *class_name, const char *format, ...)
    HD_PRINTF(3, 4);

/* ---- Workers in other processes ----------------------------------------------------------- */

typedef struct hd_engine_serve_options {
    const char
        *socket; /* NULL: "FILE-workers" beside the store's file; of a space other than "main"
                             * "FILE-workers-SPACE" */
    uint32_t connections;   /* at most so many at once; default 64 */
    uint32_t message_limit; /* bytes of a message; default 16 MiB */
    uint64_t reserved_[4];  /* room for later members; zero */
} hd_engine_serve_options;
/* Listens for workers at a Unix socket, on the runtime's descriptors (docs/WORKERS.md says what they speak). Steps of
 * the actions that they name are offered to them, as to the actions of this program. Only the user who runs the
 * program, and root, may connect. Served while the engine is active, until it is closed: one that stands by makes the
 * socket when it takes over, and workers connect again. `options` may be NULL. HD_EXISTS: another program serves there;
 * HD_USAGE: it serves already, is an observer, or a store in memory needs a socket's name; HD_LIMIT, HD_READ_ONLY,
 * HD_IO, HD_NOMEM; hd_runtime_error says what. */
HD_API hd_status hd_engine_serve(hd_engine *engine, const hd_engine_serve_options *options);
/* The socket's path, the engine's, also while it stands by; NULL: it does not serve. */
HD_API const char *hd_engine_socket(const hd_engine *engine);
/* Closes all connections; the steps that the workers have are given to others. */
HD_API void hd_engine_stop_serving(hd_engine *engine);

/* ---- Workflows --------------------------------------------------------------------------- */

/* Stores the IR under its version and makes it the one that new instances of its name begin with.
 * `version` (may be NULL) gets the version. HD_SYNTAX, HD_SCHEMA, HD_LIMIT: the error says what and where. */
HD_API hd_status hd_workflow_register(hd_engine *engine, hd_value ir, char version[HD_ID_SIZE],
                                      hd_error *error);

#define HD_INSTANCE_ID_SIZE 256
typedef struct hd_start_options {
    /* Two starts of a workflow with one key are one instance: the second returns its id and HD_EXISTS. NULL:
     * a new instance. At most 100 bytes, without control characters and slashes. */
    const char *key;
    int32_t priority;      /* higher goes first */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_start_options;

/* Starts an instance; `id` gets its name, "name/key". It is stored when the next sync has returned, and
 * its first steps begin then. Inputs that are not given have their defaults. HD_NOT_FOUND: no such workflow;
 * HD_MISMATCH, with hd_runtime_error: the input does not fit; HD_EXISTS. */
HD_API hd_status hd_workflow_start(hd_engine *engine, const char *name, hd_value input,
                                   const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]);

/* The same inside a transaction: of the program, of a run or of an event handler. The instance starts if the
 * transaction commits, and only then. HD_EXISTS also where the transaction itself has started it. */
HD_API hd_status hd_workflow_start_in(hd_engine *engine, hd_tx *tx, const char *name,
                                      hd_value input, const hd_start_options *options,
                                      char id[HD_INSTANCE_ID_SIZE]);

/* The instance's document. */
HD_API hd_cell hd_workflow_cell(hd_engine *engine, const char *id);
/* Pumps and waits until the instance is over. HD_OK: *result is its result; HD_FAILED: its error, an object
 * with the exception's class at "$error"; HD_ABORTED: it was cancelled; HD_NOT_FOUND; HD_NOMEM: the engine could not go on for want of memory. It goes on when
 * there is some: wait again. */
HD_API hd_status hd_workflow_await(hd_engine *engine, const char *id, hd_pool *pool,
                                   hd_value *result);

/* Calls `fn` once, in a later pump, when the instance is over: with what hd_workflow_await returns. `result` is good
 * during the call. HD_NOT_FOUND is told too. Forgotten when the engine is closed. HD_NOMEM. */
typedef void (*hd_workflow_end_fn)(const char *id, hd_status status, hd_value result, void *ctx);
HD_API hd_status hd_workflow_then(hd_engine *engine, const char *id, hd_workflow_end_fn fn,
                                  void *ctx);

/* Raises CancelledError wherever the instance waits; what its clean-up waits for is waited for. HD_OK also
 * for an instance that is over. HD_NOT_FOUND. */
HD_API hd_status hd_workflow_cancel(hd_engine *engine, const char *id);
/* Gives the signal to the WAIT that waits for it, or keeps it for the next one. HD_NOT_FOUND: there is no such
 * instance, or it is over; HD_USAGE: its workflow knows no signal of that name. */
HD_API hd_status hd_workflow_signal(hd_engine *engine, const char *id, const char *signal,
                                    hd_value payload);
/* A paused instance begins no step and no timer of it fires; what runs may finish, and its result is kept. Signals
 * and cancelling reach it. HD_NOT_FOUND: it is over, or there is none. */
HD_API hd_status hd_workflow_pause(hd_engine *engine, const char *id);
HD_API hd_status hd_workflow_resume(hd_engine *engine, const char *id);
/* Runs an instance that is over again, with the version it was started with: from this node of its first function, with
 * the variables it had when it failed, was cancelled or stalled; with NULL from the beginning, with its input. Its
 * steps have new ids. HD_NOT_FOUND; HD_USAGE, with hd_runtime_error: it is not over, it is done (its variables are
 * gone) and a node is given, or it cannot begin there (in a branch, in a loop that it was not in). In an engine that
 * is not active the latter is found out by the active one, which then leaves the instance as it is. */
HD_API hd_status hd_workflow_rerun(hd_engine *engine, const char *id, const char *node);

/* ---- Looking ----------------------------------------------------------------------------- */

/* NULL and 0 stand for all. */
typedef struct hd_workflow_filter {
    const char
        *status;      /* "queued", "running", "paused", "done", "failed", "cancelled", "stalled" */
    const char *name; /* of the workflow */
    uint64_t since_ms,
        until_ms;      /* started at or after, and before; ms since 1970. Reads each document */
    const char *after; /* an id: those behind it in the order. Steps over the ones before */
    uint32_t limit;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_workflow_filter;
typedef struct hd_workflow_entry {
    const char *id, *status; /* good during the call */
} hd_workflow_entry;
typedef bool (*hd_workflow_list_fn)(const hd_workflow_entry *entry, void *ctx); /* false stops */
/* Instances in order of id. Costs what is shown, however many others there are. */
HD_API hd_status hd_workflow_list(hd_engine *engine, const hd_workflow_filter *filter,
                                  hd_workflow_list_fn fn, void *ctx);

/* What an instance is and does now, as a value of the pool: {"id", "workflow", "version", "status", "started",
 * "finished", "input", "result" or "error", "steps": [...]}. A step that waits is {"step", "node", "kind", "state",
 * "since", "due", "attempt", "lost", "action" or "signal", "fan": {"done", "total"}}; its state is "queued", "limited",
* "running", "no worker", "retrying", "sleeping", "waiting" (for a signal), "child", "branches" or "paused". "running"
 * and "no worker" are known where the engine is active; elsewhere such a step is "queued". At most 1,000 steps are
 * shown; "more" says how many there are besides. HD_NOT_FOUND. */
HD_API hd_status hd_workflow_state(hd_engine *engine, const char *id, hd_pool *pool, hd_value *out);

/* What the instance has done, in order, where its workflow asks for a journal (docs/IR.md). An entry is {"seq", "at",
 * "what", "node", "edge", "step", "attempt"}; "what" is "start", "done", "raise", "retry", "lost", "signal",
 * "cancel", "pause", "resume" or "end", and with "nodes" also "run" (a node) and "edge" (one that is not FORWARD was
 * taken). Entries are good during the call; false stops. HD_NOT_FOUND. */
typedef bool (*hd_journal_fn)(hd_value entry, void *ctx);
HD_API hd_status hd_workflow_journal(hd_engine *engine, const char *id, hd_journal_fn fn,
                                     void *ctx);

typedef struct hd_engine_stats {
    uint64_t started, finished;
    uint64_t steps;    /* completions applied */
    uint64_t attempts; /* actions begun */
    uint64_t retries;
    uint64_t lost;       /* claims whose worker was lost */
    uint64_t duplicates; /* completions that were late or came twice: counted, and nothing else */
    uint64_t commits;    /* that completions were stored with */
    uint64_t nodes, arrivals;        /* run, and pushed along edges, by all walks */
    uint64_t open;                   /* instances now */
    uint64_t ready, running, timers; /* steps now */
    uint64_t reserved_[8];           /* room for later members; zero */
} hd_engine_stats;
HD_API void hd_engine_stat(const hd_engine *engine, hd_engine_stats *out);

/* ---- Looking at a workflow --------------------------------------------------------------- */

typedef enum hd_graph_form {
    HD_GRAPH_TEXT, /* for people: a line for each node and edge */
    HD_GRAPH_MERMAID,
    HD_GRAPH_DOT, /* for Graphviz */
    HD_GRAPH_SVG, /* a drawing */
    HD_GRAPH_JSON
} hd_graph_form;
/* A picture of a workflow, as a text of the pool. It needs no engine. `instance` is an instance's document, and
 * the picture shows where it stands; absent: the workflow alone. Failed, with the error: what registration
 * refuses (HD_SYNTAX, HD_SCHEMA, HD_LIMIT); HD_LIMIT: more than 2,000 nodes for a drawing; HD_NOMEM. */
HD_API hd_value hd_workflow_graph(hd_pool *pool, hd_value ir, hd_graph_form form, hd_value instance,
                                  hd_error *error);
/* Its loops and parallel parts, as an array of the pool: {"function", "node", "at", "kind": "LOOP_HEAD" or
 * "FAN_HEAD", "parallel", "actions": names, "why": texts}. A loop that runs one iteration after the other has the
 * reasons: what an iteration reads of the one before, what it changes, how it may end. Failed as above. */
HD_API hd_value hd_workflow_explain(hd_pool *pool, hd_value ir, hd_error *error);

#ifdef __cplusplus
}
#endif
#endif
