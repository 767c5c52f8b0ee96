/* heddle/workflow.h -- workflows: work in many steps that survives any crash.
 *
 * A *workflow* is a graph of steps, which the program registers as IR (docs/IR.md). An *instance* is one execution of
 * it. The work of a step is done by an *action*: a function of this program, or of a worker. When a step is finished,
 * the engine stores its result and makes the steps ready that waited for it; it scans and replays nothing. After a
 * crash every instance goes on where it was: finished steps stay finished, steps that were under way run again.
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
 * STATE IS CELLS. An instance is the document "workflow/<name>/<key>" of the engine's space: its status,
 * input, variables, open steps, result or error. Computations and effects read it like any cell. Only
 * the engine writes it.
 *
 * EXACTLY ONCE. What the completion of a step changes in the store is changed once, however often the action
 * was begun. The action itself is begun at least once: make it idempotent, or pass hd_action_id, which is the same in
 * every attempt, as an idempotency key to the service that it calls.
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
 * before; a runtime has one engine for each space that it serves. Any number of programs may have an engine open for a
 * space: one engine is *active* and runs the instances, with the actions that are registered in it; where the space is
 * divided into shards (hd_engine_options.shards), each shard has an engine that runs it. The others stand by; the
 * functions below work in them too, and reach the active engine through the store. When the active engine is closed,
 * another takes over at once; when its process is killed, within a second, on a PostgreSQL server within three. The
 * right to run a space or a shard is a *lease*. Leases spread over the programs that serve the same spaces: a program
 * that holds two more than another gives one away. Programs that share a file must see each other's process ids
 * (containers: one PID namespace), because they look there whether the holder of a lease is alive.
 *
 * An instance is *over* when its status is "done", "failed", "cancelled", or "stalled": it could not go on. */
typedef struct hd_engine hd_engine;

typedef struct hd_engine_options {
    const char *space; /* default "main" */
    uint32_t threads; /* for actions that do not say `here`; default 4, started when first needed */
    /* Never active: for tools that start, signal and look, and for programs that only do steps. An engine on a runtime
     * that is read-only (hd_options.read_only) is an observer. */
    bool observer;
    /* Names of queues, with NULL after the last: the actions of this program do only steps of these queues; "" stands
     * for steps that name no queue. NULL: steps of all queues. */
    const char *const *queues;
    /* The engine removes an instance, as hd_workflow_remove does, keep_ms milliseconds after its end; and while a
     * workflow has more than keep_most instances that are over, it removes the one that ended first. 0: no such bound.
     * "keep" in a workflow's IR replaces both. They apply to instances that end while an engine with these options is
     * active; instances that ended before, and stalled ones, stay. */
    uint64_t keep_ms, keep_most;
    /* Bytes, as JSON, that cross at once: a result of an action or a child that is longer is a ValueError in the
     * workflow, a longer input or payload of a signal is HD_LIMIT, and of a longer exception only the class stays.
     * For inputs and payloads the engine counts that is called, also if another program runs the instance; for results
     * and exceptions that which runs it. Default 16 MiB. */
    uint64_t value_max;
    /* Into how many shards the instances of the space are divided, 1,024 at most; one program at a time runs a shard.
     * The store keeps the number. 0: the store's number; 1 in a new store. Another number replaces the store's if no
     * other engine is open for the space; else there is a warning, and the store's number stays. */
    uint32_t shards;
    uint32_t reserved32_;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_engine_options;

/* Opens an engine. It becomes active if the space has no active engine, and takes up the instances that are not over;
 * an instance that cannot be read is logged and marked as stalled. The call pumps meanwhile. `options` may be NULL.
 * HD_EXISTS: the runtime has an engine for the space already; HD_SYNTAX: options->space is no name of a space;
 * HD_USAGE: a text in options->queues is no name of a queue; HD_NOMEM; what a commit returns (HD_IO, ...). */
HD_API hd_status hd_engine_open(hd_runtime *rt, const hd_engine_options *options, hd_engine **out,
                                hd_error *error);
/* Waits for actions that run on the engine's threads. Their results are dropped; the steps run again in the next active
 * engine. A function that the engine or its runtime calls (an action, hd_workflow_then, a post) cannot close it: that
 * is logged as an error, and the engine stays open. Accepts NULL. */
HD_API void hd_engine_close(hd_engine *engine);
/* Whether the engine runs the space's instances now, or some shards of them (hd_engine_stat counts these). */
HD_API bool hd_engine_is_active(const hd_engine *engine);

/* ---- Actions ----------------------------------------------------------------------------- */

/* One attempt at one step; good until the function returns. */
typedef struct hd_action hd_action;

/* Does the work of a step. `args` is what the workflow passes: an object for named arguments, an array for positional
 * ones; it is good during the call. HD_OK: the result is the value given to hd_action_return, or null. Any other status
 * raises an exception in the workflow: that of hd_action_raise, else ConnectionError for a transient status and
 * RuntimeError for any other. */
typedef hd_status (*hd_step_fn)(hd_action *action, hd_value args, void *ctx);

typedef struct hd_action_spec {
    const char *name;
    hd_step_fn fn;
    void *ctx;
    /* The function runs on the runtime's thread, inside pump; for actions that return at once. False: it runs on a
     * thread of the engine, and must not touch the runtime. */
    bool here;
    /* For programs whose own event loop does the work: the function starts it on the runtime's thread, inside pump,
     * keeps hd_action_token and returns HD_PENDING; the program ends the attempt later (hd_attempt_return, ...). Any
     * other status ends the attempt at once. With `later`, `here` has no effect. */
    bool later;
    /* The function runs on the runtime's thread with a transaction, hd_action_tx: what it writes there is committed
     * together with the completion of the step, so it is written once, however often the action was begun. The function
     * must return at once and must not pump. Such actions run one at a time, because each has a commit of its own. With
     * `transaction`, `here` and `later` have no effect. */
    bool transaction;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_action_spec;
/* Registers an action. A second registration under a name replaces the first; `here`, `later` and `transaction` must be
 * the same. HD_USAGE: they are not, or the spec has no name or function; HD_NOMEM.
 *
 * While this engine is not active, the action is offered to the active engine, in whichever process, unless it is a
 * `transaction`: steps that no worker of the active program serves come through the store (docs/WORKERS.md). */
HD_API hd_status hd_action_register(hd_engine *engine, const hd_action_spec *spec);
/* Removes an action; its own function may call this. Steps of it wait until it is registered again, or another worker
 * serves it. Attempts that were begun go on, so `ctx` must be good until they have ended. Does nothing if there is no
 * such action. */
HD_API void hd_action_unregister(hd_engine *engine, const char *name);

/* The id of the step, the same in every attempt at it. */
HD_API const char *hd_action_id(const hd_action *action);
/* The number of this attempt: 1, 2, ... */
HD_API uint32_t hd_action_attempt(const hd_action *action);
/* The step's "timeout" and "heartbeat" in milliseconds; 0: it has none. */
HD_API uint64_t hd_action_timeout_ms(const hd_action *action);
HD_API uint64_t hd_action_heartbeat_ms(const hd_action *action);
/* Tells the engine that the action is still at work. If the step has a "heartbeat" and the action is silent for longer
 * than that, the engine counts it as lost and begins the step again; this does not count as an attempt of its
 * "retry". */
HD_API void hd_action_heartbeat(hd_action *action);
/* True: the engine no longer waits for this attempt (timeout, cancelled, closing), and will drop its result. A long
 * action checks this now and then, and returns: until then its thread does no other step. */
HD_API bool hd_action_is_revoked(const hd_action *action);
/* The transaction of an action with `transaction`; NULL: it has none. The engine commits it if the function returns
 * HD_OK, and drops it otherwise; hd_tx_commit on it returns HD_USAGE, and hd_tx_abort fails the attempt. If the store
 * refuses it because another writer has changed what it read, the action runs again, which does not count as an
 * attempt. If the store refuses it for good (hd_tx_require_absent of a document that exists, too long a commit), the
 * attempt fails with a RuntimeError; also if hd_tx_require_equal does not hold, after the action has run 10 times. */
HD_API hd_tx *hd_action_tx(const hd_action *action);
/* The pool for values that the action makes. */
HD_API hd_pool *hd_action_pool(hd_action *action);
/* Sets the result; absent counts as null. Returns the value's status: a failed value fails the attempt. */
HD_API hd_status hd_action_return(hd_action *action, hd_value result);
/* Raises an exception of this class ("ValueError") in the workflow. Of a dotted name ("json.JSONDecodeError") that the
 * engine does not know the last part counts; an unknown class is a RuntimeError whose message begins with the name, and
 * NULL or "" a RuntimeError. The message is cut after 399 bytes. Returns HD_FAILED. */
HD_API hd_status hd_action_raise(hd_action *action, const char *class_name, const char *format, ...)
    HD_PRINTF(3, 4);

/* ---- Attempts that end later --------------------------------------------------------------- */

/* The token that names an attempt of an action with `later`; never 0. */
HD_API uint64_t hd_action_token(const hd_action *action);
/* End an attempt, on the runtime's thread, inside pump or outside. HD_NOT_FOUND: the attempt has ended already, or the
 * engine no longer waits for it; nothing changes then. The exception is an object {"$error": "ValueError", "args":
 * [...], "attrs": {...}, "cause": {...}} (docs/EXPRESSIONS.md, Encoding). If the engine does not know its class, it
 * takes the first class that it knows of "bases", a list of names, else RuntimeError. With {"final": true} in it the
 * step is not tried again, whatever its "retry" says. HD_KIND: `exception` is no such object. */
HD_API hd_status hd_attempt_return(hd_engine *engine, uint64_t token, hd_value result);
HD_API hd_status hd_attempt_raise(hd_engine *engine, uint64_t token, hd_value exception);
/* Tells the engine that the attempt is still at work, as hd_action_heartbeat does. HD_NOT_FOUND. */
HD_API hd_status hd_attempt_heartbeat(hd_engine *engine, uint64_t token);
/* The program will not do the work of this attempt: the step goes back to its place in the queue. HD_NOT_FOUND. */
HD_API hd_status hd_attempt_give_back(hd_engine *engine, uint64_t token);
/* Sets the function that is called when the engine no longer waits for an attempt with `later`: `why` is "timeout",
 * "silent" (no heartbeat) or "gone" (the instance is over, or the step was cancelled). The function must not call the
 * engine. NULL: no function. */
typedef void (*hd_revoke_fn)(uint64_t token, const char *why, void *ctx);
HD_API void hd_engine_set_revoked(hd_engine *engine, hd_revoke_fn fn, void *ctx);

/* ---- Workers in other processes ----------------------------------------------------------- */

typedef struct hd_engine_serve_options {
    /* The socket's path. NULL: "FILE-workers" beside the store's file; for a space other than "main"
     * "FILE-workers-SPACE". */
    const char *socket;
    uint32_t connections; /* how many at once at most; default 64 */
    /* Bytes of a message, of either side; default: value_max of the engine and 64 KiB. A step whose arguments do not
     * fit fails with ValueError. */
    uint32_t message_limit;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_engine_serve_options;
/* Listens for workers at a Unix socket (docs/WORKERS.md describes the protocol); pump serves them, and hd_runtime_fd
 * covers the socket. The engine offers the steps of the actions that a worker names to that worker, as to the actions
 * of this program. Only the user who runs the program, and root, may connect. The engine serves while it is active,
 * until it is closed: an engine that stands by makes the socket when it takes over, and the workers connect again.
 * `options` may be NULL. HD_EXISTS: another program serves at this path; HD_USAGE: the engine serves already, is an
 * observer, or has a store in memory and options name no socket; HD_LIMIT, HD_READ_ONLY, HD_IO, HD_NOMEM;
 * hd_runtime_error says what. */
HD_API hd_status hd_engine_serve(hd_engine *engine, const hd_engine_serve_options *options);
/* The socket's path, borrowed from the engine, also while it stands by; NULL: it does not serve. */
HD_API const char *hd_engine_socket(const hd_engine *engine);
/* Closes all connections and removes the socket; the steps that the workers were doing are begun again elsewhere. */
HD_API void hd_engine_stop_serving(hd_engine *engine);

/* ---- Workflows --------------------------------------------------------------------------- */

/* While a server is away, hd_workflow_await, hd_workflow_then, hd_workflow_stored and what has been asked for already
 * wait for it. A call below that has to read a document which this runtime does not know returns HD_BUSY then, and has
 * done nothing: call it again later. */

/* Registers a workflow: stores the IR under its version; new instances of that name use it from now on.
 * `version` (may be NULL) gets the version. HD_SYNTAX, HD_SCHEMA, HD_LIMIT: the error says what is wrong in the IR and
 * where; what a commit returns. */
HD_API hd_status hd_workflow_register(hd_engine *engine, hd_value ir, char version[HD_ID_SIZE],
                                      hd_error *error);

#define HD_INSTANCE_ID_SIZE 256
typedef struct hd_start_options {
    /* Two starts of a workflow with the same key make one instance: the second start returns HD_EXISTS and the same id.
     * NULL: a new instance. 1 to 100 bytes of UTF-8, without '/', '#' and control characters (U+0000 to U+001F, U+007F
     * to U+009F). */
    const char *key;
    int32_t priority;  /* -1000 to 1000; instances with a higher one go first */
    const char *queue; /* for steps that name no queue, also those of its children; NULL: none */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_start_options;

/* Starts an instance; `id` gets its id, "name/key". The instance is stored when the next hd_runtime_sync has returned,
 * and its first steps begin after that. Inputs that are not given have their defaults. `options` may be NULL.
 * HD_NOT_FOUND: no such workflow; HD_MISMATCH: the input does not fit (hd_runtime_error says where); HD_EXISTS: see
 * `key`; HD_USAGE: a key, a priority or a queue that cannot be. */
HD_API hd_status hd_workflow_start(hd_engine *engine, const char *name, hd_value input,
                                   const hd_start_options *options, char id[HD_INSTANCE_ID_SIZE]);

/* The same inside a transaction: of the program, of a run or of an event handler. The instance starts if the
 * transaction commits, and only then. HD_EXISTS also where the transaction itself has started it. */
HD_API hd_status hd_workflow_start_in(hd_engine *engine, hd_tx *tx, const char *name,
                                      hd_value input, const hd_start_options *options,
                                      char id[HD_INSTANCE_ID_SIZE]);

/* The cell of the instance's document. */
HD_API hd_cell hd_workflow_cell(hd_engine *engine, const char *id);
/* Pumps and waits until the instance is over. HD_OK: *result, a value of the pool, is its result; HD_FAILED: it failed,
 * and *result is its error, an object with the exception's class at "$error"; or it has stalled, and *result may be
 * absent; HD_ABORTED: it was cancelled; HD_NOT_FOUND; HD_NOMEM: the engine had no memory to go on; it goes on when
 * there is memory again, so wait again. While a server is away it waits, too, whether that began before the call or
 * not. */
HD_API hd_status hd_workflow_await(hd_engine *engine, const char *id, hd_pool *pool,
                                   hd_value *result);

/* Calls `fn` once, in a later pump, when the instance is over, with the status and the result that hd_workflow_await
 * would return (HD_NOT_FOUND too). `result` is good during the call. If the engine is closed before, `fn` is not
 * called. HD_NOMEM. */
typedef void (*hd_workflow_end_fn)(const char *id, hd_status status, hd_value result, void *ctx);
HD_API hd_status hd_workflow_then(hd_engine *engine, const char *id, hd_workflow_end_fn fn,
                                  void *ctx);

/* Calls `fn` once, in a later pump, when everything that the program has told the engine so far (starts, signals,
 * cancels, pauses and so on) is on disk, together with what an active engine has done about it: with HD_OK. With
 * HD_NO_VERDICT if the store, after a server was away, cannot say of a commit of this program whether it has that: what
 * was told may be stored or not. Closing the engine calls `fn` too; if the store fails then, `fn` is not called.
 * HD_NOMEM. */
typedef void (*hd_workflow_stored_fn)(hd_status status, void *ctx);
HD_API hd_status hd_workflow_stored(hd_engine *engine, hd_workflow_stored_fn fn, void *ctx);

/* Raises CancelledError wherever the instance waits. Steps of its clean-up (finally, except) still run, and the
 * instance is over when they have ended. HD_OK also for an instance that is over. HD_NOT_FOUND; HD_USAGE: inside an
 * action with a transaction (hd_action_spec.transaction). */
HD_API hd_status hd_workflow_cancel(hd_engine *engine, const char *id);
/* Gives the signal to the WAIT step that waits for it, or keeps it for the next one. A payload that is no value of a
 * workflow (nested more than 200 deep, ...) raises TypeError there. HD_NOT_FOUND: there is no such instance, or it is
 * over; HD_USAGE: no step of its workflow waits for a signal of that name. */
HD_API hd_status hd_workflow_signal(hd_engine *engine, const char *id, const char *signal,
                                    hd_value payload);
/* A paused instance begins no step, and none of its timers fires: a sleep, the time before a retry, the deadline of a
 * wait or the timeout of an attempt that ends during the pause takes effect when the instance is resumed. Actions that
 * run may finish, and their results are kept; if no step follows, the instance ends. The engine still notices lost
 * workers, and a signal still reaches the instance: if it comes before the instance is resumed, it ends the wait, also
 * when the deadline of the wait has passed during the pause. Cancelling ends the pause, so that the clean-up runs.
 * Children that have begun are instances of their own and go on. HD_NOT_FOUND: there is no such instance, or it is
 * over; HD_USAGE: inside an action with a transaction. */
HD_API hd_status hd_workflow_pause(hd_engine *engine, const char *id);
HD_API hd_status hd_workflow_resume(hd_engine *engine, const char *id);
/* Runs an instance that is over again, with the version it was started with. With `node`, a node of the workflow's
 * first function: from there, with the variables it had when it failed, was cancelled or stalled. With NULL: from the
 * beginning, with its input. Its steps have new ids. HD_NOT_FOUND; HD_USAGE (hd_runtime_error says which): it is not
 * over; or `node` is given and the instance is done, so that its variables are gone; or its workflow has no such node;
 * or it cannot begin there (in a branch, in a loop that it was not in). Where another engine runs the instance, the
 * call makes it "queued", as a start does: from then on it is not over, and that engine begins it. */
HD_API hd_status hd_workflow_rerun(hd_engine *engine, const char *id, const char *node);
/* Deletes an instance that is over, with its journal, and returns when that is on disk; it pumps meanwhile. Works in
 * any engine, also while none is active. Its children are instances of their own and stay. Later calls with its id
 * return HD_NOT_FOUND, and its key may be used again: a start with that key makes a new instance, whose steps have the
 * same ids as those of the old one; the children of the old one are not its children. HD_NOT_FOUND; HD_USAGE: it is not
 * over; HD_BUSY: it is a child, and its parent has not been told of its end yet; what hd_transact returns.
 * hd_runtime_error says which. */
HD_API hd_status hd_workflow_remove(hd_engine *engine, const char *id);

/* ---- Queues ------------------------------------------------------------------------------ */

/* Steps that name a queue wait in it; the queue bounds how many of them are begun. A queue need not be created: one
 * that was never put has no bounds. Workers say which queues they serve (hd_engine_options.queues, docs/WORKERS.md).
 * Within a queue higher priorities go first, and instances of the same priority take turns.
 *
 * Queues are for kinds of work, of which there are tens: an engine keeps each queue that a step has named, and looks at
 * all that a worker serves when it gives the worker a step. A bound for each customer is a limit by key
 * (hd_flow_limit), which costs nothing while no step has the key. */
typedef struct hd_queue {
    const char *name;      /* letters, digits, '_', '-', '.'; at most 100 bytes */
    uint32_t most;         /* how many of its steps may run at once; 0: any number */
    bool paused;           /* no step of it is begun; steps that run may finish */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_queue;
/* Stores the bounds of a queue for all programs, and returns when they are on disk; it pumps meanwhile. HD_USAGE (see
 * hd_runtime_error): `name` is no name of a queue; what hd_transact returns. */
HD_API hd_status hd_queue_put(hd_engine *engine, const hd_queue *queue);
/* The queue as a value of the pool: {"name", "most", "paused"}; in the active engine also the counts {"ready",
 * "running", "workers"}. A queue that was never put has no bounds. */
HD_API hd_status hd_queue_state(hd_engine *engine, const char *name, hd_pool *pool, hd_value *out);

/* Lists all queues that were put, by name; in the active engine, after them, those that steps have named. The name is
 * good during the call; false stops. */
typedef bool (*hd_queue_fn)(const char *name, void *ctx);
HD_API hd_status hd_queue_list(hd_engine *engine, hd_queue_fn fn, void *ctx);

/* ---- Schedules --------------------------------------------------------------------------- */

/* What a schedule does when its next time comes and the instance of the time before is not over. */
typedef enum hd_overlap {
    HD_OVERLAP_SKIP,  /* starts no instance for the new time */
    HD_OVERLAP_QUEUE, /* starts it when the old instance is over; skips further times until then */
    HD_OVERLAP_ALLOW, /* starts it beside the old instance */
    /* Cancels the old instance, and starts the new one after its clean-up; of several times that come meanwhile the
     * last, and skips the others. */
    HD_OVERLAP_CANCEL
} hd_overlap;
/* What a schedule does about times that came while no engine was active. */
typedef enum hd_catch_up {
    HD_CATCH_UP_LAST, /* starts an instance for the last of them */
    HD_CATCH_UP_ALL,  /* for each of them, one after the other; all at once with HD_OVERLAP_ALLOW */
    HD_CATCH_UP_NONE  /* for none that is late by more than window_s */
} hd_catch_up;

/* Starts a workflow at certain times. Members that are zero have their defaults. */
typedef struct hd_schedule {
    const char *name; /* at most 60 bytes of UTF-8, without '/', '@', '#' and control characters */
    const char *workflow;
    hd_value input; /* of each instance; absent: the defaults */
    /* Minute, hour, day of the month, month, day of the week: "30 2 * * 1-5"; or @hourly, @daily, @weekly, @monthly,
     * @yearly. docs/WORKFLOWS.md says what happens when clocks are changed. */
    const char *cron;
    const char *zone; /* "Europe/Berlin", as tzdata names it; "UTC" (default); "+02:00" */
    double every_s;   /* instead of cron: seconds between two times */
    /* Times are at or after from_ms and before until_ms (ms since 1970). The first time of every_s is from_ms; by
     * default one interval after the schedule was first stored. Only times after that moment start an instance. */
    uint64_t from_ms, until_ms;
    double jitter_s; /* each start is delayed by a random time below this */
    hd_overlap overlap;
    hd_catch_up catch_up;
    /* Times that are late by more than this are skipped. Default: none is; with HD_CATCH_UP_NONE 60. */
    double window_s;
    int32_t priority;      /* of the instances, -1000 to 1000 */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_schedule;

/* Stores a schedule, or replaces the one of that name, and returns when that is on disk; it pumps meanwhile. If cron,
 * zone, every_s, from_ms and until_ms are those of the one that is replaced, it goes on where that was, so that a
 * program may store its schedules at each start; an every_s without a from_ms keeps the former one's. If they are
 * others, times begin anew, and those that were missed are not made up for. The active engine, in whichever process,
 * starts the instances "workflow/name@2026-11-17T02:00:00Z". Starting one and advancing the schedule to the next time
 * are one transaction, so each time starts one instance, whatever crashes. HD_SYNTAX: the cron fields are malformed
 * (the error has the column); HD_NOT_FOUND: no such zone or workflow; HD_MISMATCH: the input does not fit; HD_USAGE;
 * what hd_transact returns. The error says what. */
HD_API hd_status hd_schedule_put(hd_engine *engine, const hd_schedule *schedule, hd_error *error);
/* Deletes the schedule; the instances that it has started stay. This and the next three functions return when the
 * change is on disk, and pump meanwhile. HD_NOT_FOUND; what hd_transact returns. */
HD_API hd_status hd_schedule_remove(hd_engine *engine, const char *name);
/* Times that come while the schedule is paused are skipped, also after it is resumed. */
HD_API hd_status hd_schedule_pause(hd_engine *engine, const char *name);
HD_API hd_status hd_schedule_resume(hd_engine *engine, const char *name);
/* Adds one extra time, now; also for a schedule that is paused. Each call adds one, and `overlap` applies to it as to
 * any other time: while an instance of the schedule runs, the new time is skipped ("skipped" of hd_schedule_state
 * counts it), waits, or starts. One that has to wait is not started while the schedule is paused. */
HD_API hd_status hd_schedule_trigger(hd_engine *engine, const char *name);

/* Computes the next times of a schedule, which need not be stored, after `after_ms`: at most `count`, without jitter.
 * *found is how many were written to `times`. Fails as hd_schedule_put does. */
HD_API hd_status hd_schedule_times(hd_engine *engine, const hd_schedule *schedule,
                                   uint64_t after_ms, uint64_t *times, size_t count, size_t *found,
                                   hd_error *error);
/* A schedule as a value of the pool: {"name", "workflow", "input", "cron", "zone", "every", "from", "until", "jitter",
 * "overlap": "skip", "queue", "allow" or "cancel", "catch_up": "last", "all" or "none", "window", "priority", "paused",
 * "next": the next time (of a paused schedule: if it were resumed now), "due": "next" with its jitter, "times": the
 * next five, "last": the time of the last start, "running": the instance of that, until it is over, "waiting": a time
 * that waits for that instance, "started", "skipped": how many, "error": {"at", "message"}: why the last time could not
 * be started}.
 * HD_NOT_FOUND. */
HD_API hd_status hd_schedule_state(hd_engine *engine, const char *name, hd_pool *pool,
                                   hd_value *out);
/* Lists all schedules, by name. The name is good during the call; false stops. */
typedef bool (*hd_schedule_fn)(const char *name, void *ctx);
HD_API hd_status hd_schedule_list(hd_engine *engine, hd_schedule_fn fn, void *ctx);

/* ---- Looking ----------------------------------------------------------------------------- */

/* Which instances hd_workflow_list shows. A member that is NULL or 0 excludes none. */
typedef struct hd_workflow_filter {
    /* "queued", "running", "paused", "done", "failed", "cancelled" or "stalled". */
    const char *status;
    const char *name; /* of the workflow */
    /* Instances that started at or after since_ms and before until_ms (ms since 1970). Reads each document. */
    uint64_t since_ms, until_ms;
    const char *after;     /* an id: only instances with greater ids, for the next page */
    uint32_t limit;        /* how many instances at most */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_workflow_filter;
typedef struct hd_workflow_entry {
    const char *id, *status; /* good during the call */
} hd_workflow_entry;
typedef bool (*hd_workflow_list_fn)(const hd_workflow_entry *entry, void *ctx); /* false stops */
/* Lists instances in order of id. The cost depends on the instances that are shown, not on how many others there
 * are. */
HD_API hd_status hd_workflow_list(hd_engine *engine, const hd_workflow_filter *filter,
                                  hd_workflow_list_fn fn, void *ctx);

/* An instance's present state, as a value of the pool: {"id", "workflow", "version", "status", "started",
 * "finished", "input", "result" or "error", "failed_at": where the error was raised ({"node", "function", "at": its
 * position in the source}), "steps": [...]}. An open step is {"step", "node", "kind", "state", "since", "due",
 * "attempt", "why" (what the attempt before raised), "lost", "action", "signal" or "workflow", "child" (the id of the
 * instance that it waits for), "fan": {"done", "total"}, "process": {"host", "pid", "session"} (the other process that
 * does it, through the store)}; its state is "queued", "limited",
 * "running", "no worker", "retrying", "sleeping", "waiting" (for a signal), "child", "branches" or "paused". Only the
 * active engine knows which steps are "running" or have "no worker"; other engines show them as "queued". At most 1,000
 * steps are shown; "more" says how many others there are. HD_NOT_FOUND. */
HD_API hd_status hd_workflow_state(hd_engine *engine, const char *id, hd_pool *pool, hd_value *out);

/* The journal of an instance, in order, if its workflow asks for one (docs/IR.md). An entry is {"seq", "at",
 * "what", "node", "signal", "edge", "step", "attempt"}; "what" is "start", "done", "raise", "retry", "lost", "signal"
 * (one has come, whose name is in "signal"), "cancel", "pause", "resume" or "end"; a journal of level "nodes" also has
 * "run" (a node ran) and "edge" (an edge was taken that is not FORWARD). Entries are good during the call; false stops.
 * HD_NOT_FOUND. */
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
    uint64_t commits;    /* that stored completions */
    uint64_t nodes, arrivals;        /* nodes that ran; arrivals that they pushed along edges */
    uint64_t open;                   /* instances that are not over, now */
    uint64_t ready, running, timers; /* steps in these states now */
    uint64_t removed;                /* instances removed because of keep_ms and keep_most */
    uint64_t shards;                 /* shards that the engine runs now */
    uint64_t reserved_[6];           /* room for later members; zero */
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
/* A picture of a workflow, as a string of the pool. It needs no engine. If `instance` is the value of an instance's
 * document, the picture shows where the instance stands, or where it failed; absent: the workflow alone. A GUARD has
 * its condition beside it, cut if it is longer than 47 bytes; in the drawing a BRANCH with one condition, and a HANDLER
 * with one clause, has it in the box, and any other GUARD under the pointer. A failed value,
 * with the error: what registration refuses (HD_SYNTAX, HD_SCHEMA, HD_LIMIT); HD_LIMIT: more than 2,000 nodes for a
 * drawing; HD_NOMEM. */
HD_API hd_value hd_workflow_graph(hd_pool *pool, hd_value ir, hd_graph_form form, hd_value instance,
                                  hd_error *error);
/* The loops and parallel parts of a workflow, as an array of the pool: {"function", "node", "at", "kind": "LOOP_HEAD"
 * or "FAN_HEAD", "parallel", "actions": names, "why": texts}. For a loop whose iterations run one after the other,
 * "why" has the reasons: what an iteration reads of the one before, what it changes, how it may end. Fails as above. */
HD_API hd_value hd_workflow_explain(hd_pool *pool, hd_value ir, hd_error *error);

#ifdef __cplusplus
}
#endif
#endif
