/* heddle/store.h -- documents that many writers change: runtimes, cells, transactions, changes.
 *
 * A *store* is one SQLite file, a PostgreSQL database, or a piece of memory. It holds spaces; a space holds
 * documents; a document is a JSON value with an id. A *cell* is an address: a document and a path into it. A
 * *runtime* is one program's view of a store: it reads and writes cells in transactions, and is told
 * of every change, its own and those of other runtimes.
 *
 *     hd_runtime *rt;
 *     if (hd_open("shop.db", NULL, &rt, NULL)) return 1;
 *     hd_cell stock = hd_cell_at(rt, "main/stock#/apples");
 *     hd_write_json(rt, stock, "12");
 *     hd_close(rt);                                         // waits until it is on disk
 *
 * OPTIMISTIC. When hd_tx_commit returns, the commit is visible to this runtime, and its listeners have been called
 * once. The store decides later whether it accepts the commit: its *verdict* arrives in hd_runtime_pump, never
 * earlier. The store refuses a commit if another writer has changed something that it read (class HD_CLASS_STALE:
 * read again and retry); the runtime then takes the commit's writes back and tells its listeners. A commit that has
 * read nothing is never stale.
 *
 * ONE SNAPSHOT. Between two calls of pump only the program's own commits change what it sees.
 *
 * DURABLE. With a file, an accepted commit is on disk (hd_options.durability). hd_runtime_sync waits
 * for all verdicts; hd_close syncs.
 *
 * THREADS. A runtime belongs to one thread. hd_runtime_post is the only call that other threads may make.
 * Open as many runtimes as you like, in one process or in several, on the same file. */
#ifndef HEDDLE_STORE_H
#define HEDDLE_STORE_H

#include <heddle/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hd_runtime hd_runtime;
typedef struct hd_tx hd_tx;

/* ---- Opening and closing ----------------------------------------------------------------- */

/* A store in memory that several runtimes of one thread share (hd_options.memory). `env` may be NULL. HD_NOMEM. */
typedef struct hd_memory hd_memory;
HD_API hd_status hd_memory_open(const hd_env *env, hd_memory **out);
/* Close every runtime on it first. Accepts NULL. */
HD_API void hd_memory_close(hd_memory *memory);

typedef enum hd_durability {
    HD_DURABILITY_FULL,  /* an accepted commit survives power loss (default) */
    HD_DURABILITY_NORMAL /* it survives a crash of the program; power loss may take the last ones */
} hd_durability;

/* Which process runs a computation that several processes on one store have live, when what it reads has changed.
 * HD_DERIVE_ONE: the one that has the lease of the space runs it; the others take its result over, and wait for it
 * as for a suspended run, but not for long: docs/POSTGRES.md, "Which process derives". HD_DERIVE_EACH: this process
 * runs its computations itself. HD_DERIVE_DEFAULT: as HD_DERIVE_ONE on a server, as HD_DERIVE_EACH elsewhere. */
typedef enum hd_derive { HD_DERIVE_DEFAULT, HD_DERIVE_ONE, HD_DERIVE_EACH } hd_derive;

typedef struct hd_options {
    const hd_env *env;     /* NULL: the system's */
    hd_limits limits;      /* of values */
    const char *principal; /* the user whose user scope this is; default "local"; not empty */
    const char *session;   /* name of the session scope; default: unique for each open; not empty */
    hd_memory *memory;     /* share this store instead of opening a file */
    hd_durability durability;
    /* The runtime writes nothing to the store: writing transactions fail with HD_READ_ONLY. A computation whose output
     * is a whole document runs, and its result is visible in this runtime only; a computation that writes a place
     * inside a document, removes it or has side outputs fails with HD_READ_ONLY. */
    bool read_only;
    bool must_exist;     /* do not create the file */
    bool keep_history;   /* never prune the log */
    const char *vfs;     /* SQLite VFS by name; NULL: the default */
    uint64_t tail_bytes; /* checkpoint when the log tail exceeds this; default 64 MiB */
    /* Receipt horizon: receipts of events are deleted when they are older than this. Default 30; UINT32_MAX: never.
     * Programs on one store should agree. */
    uint32_t receipt_days;
    uint32_t timing_period; /* one of this many runs is timed; default 64 */
    uint32_t slice_ms;      /* pump returns after about this long; default 16 */
    void *context;          /* the program's own pointer; see hd_runtime_context */
    /* SIGINT and SIGTERM end hd_runtime_run, so that the program can close the runtime; while hd_runtime_run runs they
     * have no other effect. Only one runtime of a process can have it at a time: HD_BUSY. */
    bool signals;
    /* Three faults of computations are errors, which are otherwise logged as warnings, once for each node: a
     * computation that writes outside of its outputs fails with HD_USAGE; so does one whose first run finds all that it
     * reads and does not write its output (to have no result it calls hd_tx_remove); and registering a computation with
     * an output that another has already, at the same path, fails with HD_USAGE. */
    bool strict;
    hd_derive derive;
    uint64_t reserved_[8]; /* room for later members; zero */
} hd_options;

/* Opens a runtime. `file` is a SQLite file, which is created if it does not exist; or the address of a PostgreSQL
 * database, "postgresql://host/database" (docs/POSTGRES.md); or NULL: a store in memory (options->memory, or one of the
 * runtime's own). "" and ":memory:" are refused with HD_USAGE. `options` may be NULL. Fails with HD_NOT_HEDDLE,
 * HD_NEWER, HD_CORRUPT, HD_READ_ONLY, HD_NOT_FOUND (also if the directory does not exist), HD_REJECTED (a server
 * refuses the user, the password or the database), HD_IO...; the error says what to do about it, and the file is as it
 * was. A `file` that looks like an address of another form ("mysql://...") is refused with HD_USAGE. If the connection
 * to a server is lost later, the runtime connects again; meanwhile hd_runtime_error says so. A server that is silent
 * for 20 s while an answer is due (`answer_timeout` in the address) counts as lost: until then a read, or a pump that
 * has to read, may wait for it. */
HD_API hd_status hd_open(const char *file, const hd_options *options, hd_runtime **out,
                         hd_error *error);
/* Tells the senders of events that were not begun HD_CLOSED, syncs, then closes; scheduler.h, "Idle", says what that
 * waits for, and what is dropped. If the sync fails, the functions of commits without a verdict are called with
 * HD_NO_VERDICT: such a commit may be in the store or not. (These functions can begin no transaction: HD_CLOSED.)
 * A server that is away is not waited for (HD_BUSY); one that is silent for about twice its `answer_timeout` at most.
 * Returns what hd_runtime_sync returned; the runtime is gone in any case except HD_USAGE: a function that the runtime
 * calls (a run, a verdict, a listener, a post, the function of hd_transact) cannot close it. Such a function calls
 * hd_runtime_stop, and the program closes the runtime when the driving call has returned. Accepts NULL. Closing twice
 * is undefined, as with free(). */
HD_API hd_status hd_close(hd_runtime *rt);
/* Whether a function that the runtime has called has not returned yet: then hd_close is refused. */
HD_API bool hd_runtime_is_at_work(const hd_runtime *rt);

/* The runtime's heap and environment, borrowed until it closes. */
HD_API hd_heap *hd_runtime_heap(hd_runtime *rt);
HD_API const hd_env *hd_runtime_env(const hd_runtime *rt);
/* hd_options.context, for functions that get no `ctx` of their own. */
HD_API void *hd_runtime_context(const hd_runtime *rt);
/* Details of the last call that failed on this runtime; good until the next call that fails. */
HD_API const hd_error *hd_runtime_error(const hd_runtime *rt);

/* ---- Driving a runtime ------------------------------------------------------------------- */

/* Calls that pump (pump, settle, sync, run, hd_transact, ...) return HD_USAGE inside a transaction, inside a run, and
 * inside any function that the runtime calls, with one exception: a function given to hd_runtime_post may pump. If
 * such a function returns while a transaction is open that it began, pump returns HD_USAGE until that has ended.
 *
 * hd_runtime_pump does what there is to do now, without blocking: it sends commits, applies verdicts and the changes of
 * other writers, and runs nodes and handlers. HD_OK; HD_PENDING: its time slice ended, call it again at once;
 * HD_NOMEM: it did what it could, call it again; HD_NOT_FOUND: the file, or its WAL, was deleted or replaced while it
 * was open. After that the runtime reads and writes nothing, a commit returns HD_NOT_FOUND, and the runtime can only be
 * closed. */
HD_API hd_status hd_runtime_pump(hd_runtime *rt);
/* After this call the next pump sees what other processes had stored in the file before the call. For a program that
 * has heard of a commit by other means (a message, the end of a process) and reads it now: without the call it may read
 * what was there half a millisecond before. While commits of the runtime itself are outstanding a pump does not look:
 * their verdicts bring what others have stored. */
HD_API void hd_runtime_look(hd_runtime *rt);
/* When to call pump next even if the descriptor does not become readable: nanoseconds of the env's monotonic
 * clock; 0: now; UINT64_MAX: never. */
HD_API uint64_t hd_runtime_deadline(const hd_runtime *rt);
/* A descriptor (epoll, on macOS a kqueue) that is readable when pump has something to do: verdicts, other processes'
 * commits, posts. It is the same at each call, and belongs to the runtime: do not close it. -1: the process or the
 * system has no descriptor left. */
HD_API int hd_runtime_fd(hd_runtime *rt);
/* Pumps and waits until the runtime is idle; scheduler.h, "Idle", says for what that waits. Verdicts of
 * commits may still be outstanding: they stay in memory until they have it, so a program that commits faster than its
 * disk writes calls hd_runtime_sync now and then. Begins with hd_runtime_look. HD_UNSETTLED: it is idle, but a part of
 * the graph does not settle. */
HD_API hd_status hd_runtime_settle(hd_runtime *rt);
/* Pumps and waits until every commit has its verdict and derived state is stored. HD_STALE or another refusal: the
 * store refused a commit that was committed without a verdict function; each is returned once. */
HD_API hd_status hd_runtime_sync(hd_runtime *rt);
/* Pumps and waits until hd_runtime_stop, or a signal (hd_options.signals). For programs without a loop of
 * their own. */
HD_API hd_status hd_runtime_run(hd_runtime *rt);
/* On the runtime's thread: ends hd_runtime_run after the pump in which it is called. Another thread posts a function
 * that calls it. */
HD_API void hd_runtime_stop(hd_runtime *rt);
/* From any thread, while the runtime is open: fn(rt, ctx) is called on the runtime's thread, in its next pump.
 * HD_NOMEM. */
typedef void (*hd_post_fn)(hd_runtime *rt, void *ctx);
HD_API hd_status hd_runtime_post(hd_runtime *rt, hd_post_fn fn, void *ctx);

/* ---- Cells ------------------------------------------------------------------------------- */

/* A handle for an address. id 0 is no cell: reading it gives absent, writing it HD_USAGE. Handles
 * stay good until the runtime closes, and take 64 bytes each. The functions here return no cell on failure. */
typedef struct hd_cell {
    uint32_t id;
} hd_cell;

/* "space/id", "space/id#/path", with a scope "space@user/id" or "space@session/id". A malformed
 * name gives no cell, and hd_runtime_error tells why. */
HD_API hd_cell hd_cell_at(hd_runtime *rt, const char *name);
HD_API hd_cell hd_cell_of(hd_runtime *rt, const char *space, hd_scope scope, const char *id,
                          const char *path);
HD_API hd_cell hd_cell_child(hd_runtime *rt, hd_cell cell, const char *key);
/* The cell that a link points at; parts that the link leaves out are those of the document of `from`. */
HD_API hd_cell hd_cell_of_link(hd_runtime *rt, hd_cell from, hd_value link);
/* The same address, read through a schema. The runtime holds a reference to the schema until it closes: the program
 * may call hd_schema_close at once. */
HD_API hd_cell hd_cell_with_schema(hd_runtime *rt, hd_cell cell, const hd_schema *schema);
/* Writes the name with a NUL; returns its full length, like snprintf. */
HD_API size_t hd_cell_print(hd_runtime *rt, hd_cell cell, char *out, size_t size);
/* A link to the cell, complete with space and scope; absent for no cell, failed without memory. */
HD_API hd_value hd_cell_link(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Transactions ------------------------------------------------------------------------ */

typedef enum hd_commit_class {
    HD_COMMIT_SOURCE,  /* of the program, and of effects */
    HD_COMMIT_EVENT,   /* of an event handler */
    HD_COMMIT_DERIVED, /* of computations: can be recomputed */
    HD_COMMIT_NONE     /* read-only: nothing is ever submitted */
} hd_commit_class;

/* Tells the store's verdict on a commit. Called once, in a later pump: HD_OK, or the reason of the refusal.
 * HD_NO_VERDICT: the commit may be in the store or not. That happens in hd_close; and if the store failed while the
 * commit was written, and other writers have removed that part of the log since. */
typedef void (*hd_verdict_fn)(hd_status status, void *ctx);

/* Begins a transaction. A runtime has at most one open, apart from those of suspended async runs. HD_USAGE: one is
 * open, or the call is inside a run or a handler, which use their own transaction; HD_CLOSED, HD_NOMEM. */
HD_API hd_status hd_tx_begin(hd_runtime *rt, hd_tx **out);
/* A transaction that only reads: its commit does nothing. */
HD_API hd_status hd_tx_begin_read(hd_runtime *rt, hd_tx **out);
/* Makes the writes visible in this runtime, tells the listeners, and queues the commit for the store. The commit is
 * stored once `fn` is called with HD_OK, or hd_runtime_sync has returned HD_OK. The store refuses it if another writer
 * has changed what it read; hd_transact below runs a refused transaction again. If `fn` is NULL, a refusal is logged
 * with the cell, and the next sync or close returns it. The transaction is gone afterwards, whatever the result. If one
 * of its reads, writes or preconditions has failed (HD_CYCLE, HD_PENDING, HD_KIND, ...), nothing is committed, the
 * status of the first of them is returned, and `fn` is not called; hd_tx_patch is the exception. A commit that changes
 * nothing is not sent to the store, and `fn` is called with HD_OK in the next pump. But if it read what an earlier
 * commit of this runtime wrote, and that commit has no verdict yet, it is sent, and `fn` is told the store's answer. */
HD_API hd_status hd_tx_commit(hd_tx *tx, hd_verdict_fn fn, void *ctx);
/* Ends the transaction without committing it. */
HD_API void hd_tx_abort(hd_tx *tx);

/* Does the work of one transaction: it reads and writes through `tx`, and returns HD_OK to commit. Any other status
 * aborts. It may be called several times, so all its changes must go through `tx`. */
typedef hd_status (*hd_tx_fn)(hd_tx *tx, void *ctx);

/* Runs `fn` in a transaction, and returns HD_OK when its commit is stored. `fn` runs again at once if another writer
 * has changed what it read (HD_CLASS_STALE, up to 1000 times; writers make way for one that is refused). It runs again
 * after growing delays while a document is still loading (HD_CLASS_PENDING), after a transient failure (up to 10
 * times), and if `fn` itself returns a status of HD_CLASS_STALE (up to 200 times). Any other status of `fn` or of its
 * commit is returned, and the store is unchanged. The call pumps while it waits, so computations and handlers run
 * meanwhile. HD_USAGE inside a transaction, a run, or a function that the runtime calls. */
HD_API hd_status hd_transact(hd_runtime *rt, hd_tx_fn fn, void *ctx);
/* The same without waiting: the first attempt is made at once, later ones in later pumps, and `told` (may be NULL) is
 * called in a pump with the final status. Sync and close wait for it. While a server is away (HD_BUSY) it waits, as
 * commits do; a close does not, and tells it HD_BUSY. Without `told`, sync returns a final status that is not HD_OK. If
 * the first attempt ends with a status that is not retried, the call returns that status and `told` is not called. */
HD_API hd_status hd_transact_later(hd_runtime *rt, hd_tx_fn fn, void *ctx, hd_verdict_fn told,
                                   void *told_ctx);

HD_API hd_runtime *hd_tx_runtime(const hd_tx *tx);
HD_API hd_pool *hd_tx_pool(hd_tx *tx);

/* Reads. What is read becomes a *dependency* of a run (the node runs again when it changes) and a *claim* of a commit
 * (the store refuses the commit if another writer has changed it). A read is deep: it covers the whole value under the
 * cell. Links on the cell's path, and at its end, are followed; links inside the value stay links (hd_tx_follow).
 * Through a cell with a schema, only what the schema describes is read. Values belong to the transaction.
 *
 * Absent is a valid answer. A failed value (HD_PENDING, HD_CYCLE, HD_STALE) means that the run cannot go on: return its
 * hd_value_status. All reads of a transaction see one state of the store. HD_STALE: another process has removed that
 * state from the log before this cell was first read here; pump, and begin again. A transaction that only writes, or
 * reads one document, never gets it.
 *
 * A cell that is absent before and after a change still runs its reader if more or less of the path to it exists:
 * a reader of /a/b, when {"a": {}} becomes {}. */
HD_API HD_INLINE_ hd_value hd_tx_get(hd_tx *tx, hd_cell cell);
/* Depends only on the shape: the kind, the keys or the length, a scalar's value, where a link points. Changes below do
 * not count. The value returned is the whole value; only its shape may be used. */
HD_API hd_value hd_tx_get_shape(hd_tx *tx, hd_cell cell);
/* The value that a link points at; parts that the link leaves out are those of the document of `from`. */
HD_API hd_value hd_tx_follow(hd_tx *tx, hd_cell from, hd_value link);

enum {
    HD_READ_NO_DEPENDENCY = 1, /* the node does not run again when it changes */
    HD_READ_NO_CLAIM = 2,      /* the commit is not refused when it has changed meanwhile */
    HD_READ_NO_TAINT = 4,      /* reserved; no effect */
    HD_READ_SHAPE = 8,         /* as hd_tx_get_shape */
    HD_READ_RAW = 16           /* links are returned as values, not followed */
};
HD_API hd_value hd_tx_read(hd_tx *tx, hd_cell cell, unsigned flags);

/* Writes. Later reads of this transaction see them at once. HD_KIND and HD_RANGE as for hd_value_set; a
 * failed value is refused with its status. A write that fails, also with HD_SYNTAX or HD_USAGE, fails the transaction:
 * later writes and the commit return its status, and hd_runtime_error tells of it again, so a function that does not
 * look at the status commits nothing. To try a write, use hd_tx_patch. The place where a write failed with HD_KIND or
 * HD_RANGE becomes a dependency.
 *
 * A link on the cell's path is followed (and is a claim like any read); a link at its end is replaced. A write that
 * changes nothing is not sent to the store but becomes a claim: if the commit changes something else, the store refuses
 * it when the cell holds another value by then. Any other write claims nothing of what it replaces. With 5 in `a`:
 *
 *     hd_tx_set_int(tx, a, 5); hd_tx_set_int(tx, b, 1);    // refused if another writer puts 6 into `a` meanwhile
 *     hd_tx_set_int(tx, a, 7); hd_tx_set_int(tx, b, 1);    // accepted: 7 replaces whatever is there
 *
 * If another writer has meanwhile put something on the path of a write that the write does not fit (a link, a number),
 * the commit is accepted without this one write; a transaction that must not lose it reads the cell first. */
HD_API HD_INLINE_ hd_status hd_tx_set(hd_tx *tx, hd_cell cell, hd_value v);
HD_API hd_status hd_tx_set_json(hd_tx *tx, hd_cell cell, const char *json);
HD_API HD_INLINE_ hd_status hd_tx_set_double(hd_tx *tx, hd_cell cell, double d);
HD_API hd_status hd_tx_set_int(hd_tx *tx, hd_cell cell, int64_t i);
HD_API hd_status hd_tx_set_text(hd_tx *tx, hd_cell cell, const char *text);
/* Removes the cell's place; of a whole document: deletes it. */
HD_API hd_status hd_tx_remove(hd_tx *tx, hd_cell cell);
/* Mergeable: two appends, or two increments, never conflict with each other. A missing array is made, a missing number
 * counts as 0. */
HD_API hd_status hd_tx_append(hd_tx *tx, hd_cell cell, hd_value item);
HD_API hd_status hd_tx_increment(hd_tx *tx, hd_cell cell, hd_value by);
/* A list of {"op": "set"|"remove"|"append"|"increment", "path": "/...", "value": ...}, paths
 * relative to the cell. All or nothing: a patch that is malformed or does not fit (HD_SYNTAX, HD_KIND, HD_RANGE,
 * HD_LIMIT, HD_USAGE) leaves no write, and the transaction goes on. */
HD_API hd_status hd_tx_patch(hd_tx *tx, hd_cell cell, hd_value patch, hd_error *error);

/* Preconditions: the store checks them when it decides about the commit, and refuses it if one does not hold
 * (HD_EXISTS, HD_HASH_DIFFERS). A call that fails fails the transaction, as a write. */
HD_API hd_status hd_tx_require_absent(hd_tx *tx, hd_cell document);
HD_API hd_status hd_tx_require_equal(hd_tx *tx, hd_cell cell, hd_value v);

/* Sets the kind of a document, by which hd_runtime_list finds it. HD_LIMIT: a kind has at most 63 bytes. */
HD_API hd_status hd_tx_set_kind(hd_tx *tx, hd_cell document, const char *kind);
/* Metadata stands beside the value: a change of it does not invalidate readers of the value. */
HD_API hd_status hd_tx_set_meta(hd_tx *tx, hd_cell document, const char *key, hd_value v);
HD_API hd_value hd_tx_get_meta(hd_tx *tx, hd_cell document, const char *key);
/* Makes a document volatile: it and its metadata live in this runtime only, are never stored and never in conflict.
 * HD_USAGE: the document has a value, or the cell is no whole document; HD_BUSY: a commit that removed it or changed
 * its metadata has no verdict yet. */
HD_API hd_status hd_cell_set_volatile(hd_runtime *rt, hd_cell document);

/* Sets the change group of the transaction: listeners, sinks and nodes of the same group ignore its commit. 0: none. */
HD_API void hd_tx_set_group(hd_tx *tx, uint64_t group);

/* Transactions with one write. HD_USAGE inside a transaction or a run. */
HD_API hd_status hd_write(hd_runtime *rt, hd_cell cell, hd_value v);
HD_API hd_status hd_write_json(hd_runtime *rt, hd_cell cell, const char *json);
/* The value that this runtime sees now; it belongs to the pool. Inside a run or a handler use hd_tx_get: hd_read
 * registers no dependency, so the node does not run again when the value changes; it claims nothing; it does not see
 * what the transaction has written; and it may see an output that is not up to date. Fails with HD_PENDING as
 * hd_tx_get. */
HD_API HD_INLINE_ hd_value hd_read(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Changes ----------------------------------------------------------------------------- */

typedef enum hd_change_kind {
    HD_CHANGE_COMMIT,    /* a transaction of this runtime was committed */
    HD_CHANGE_LOAD,      /* a document was loaded from the store for the first time */
    HD_CHANGE_INTEGRATE, /* a commit of another writer arrived */
    HD_CHANGE_REVERT     /* a commit of this runtime was refused and taken back */
} hd_change_kind;

typedef struct hd_change {
    hd_cell document;
    hd_value before, after; /* the whole value; absent where there is none */
    uint64_t seq;           /* of the space; 0 while unconfirmed */
} hd_change;

typedef struct hd_notice {
    hd_change_kind kind;
    hd_commit_class commit_class;
    uint64_t group;
    const hd_change *changes;
    size_t count;
} hd_notice;

/* Called once for each change of a visible value, in order, inside the call that makes the change. The listener
 * may read; a write returns HD_USAGE. The notice is good during the call. */
typedef void (*hd_listener_fn)(const hd_notice *notice, void *ctx);
/* HD_NOMEM. */
HD_API hd_status hd_runtime_listen(hd_runtime *rt, hd_listener_fn fn, void *ctx);
/* The same, without this runtime's commits of a change group (hd_tx_set_group). If such a commit is refused, the
 * listener is called. Group 0: all commits. */
HD_API hd_status hd_runtime_listen_except(hd_runtime *rt, hd_listener_fn fn, void *ctx,
                                          uint64_t group);
/* Does nothing if there is no such listener. */
HD_API void hd_runtime_unlisten(hd_runtime *rt, hd_listener_fn fn, void *ctx);

/* Follows a whole space: from now on the listeners are told of other writers' changes to all its documents, also to
 * documents that this runtime has never read. */
HD_API hd_status hd_runtime_follow(hd_runtime *rt, const char *space);

/* Frees the memory that this runtime uses for a space; for a program that works with many spaces in turn. It syncs,
 * then frees what the runtime holds of the space's documents and its index of readers there, and no longer follows the
 * space. No value changes, because the store has them all (a store in memory too): cell handles stay good, and the next
 * read of a document loads it again; until then the runtime is not told of other writers' changes to it. Cells that a
 * notice brought must not be used any more. Dormant computations that have read in the space run when a live node
 * reads them again. What exists in this runtime only stays: volatile documents, and derived values that cannot be
 * stored now. Costs a visit to every place that this runtime knows.
 * On failure nothing is freed: HD_BUSY: a live node reads there, or a handler takes events there (hd_runtime_error
 * names it: unregister it first); HD_PENDING: commits wait for a verdict; HD_USAGE inside a transaction or a run. */
HD_API hd_status hd_runtime_unload(hd_runtime *rt, const char *space);

/* ---- Looking around ---------------------------------------------------------------------- */

typedef struct hd_listing {
    const char *space;
    hd_scope scope;
    const char *id;
    const char *kind; /* "" where it has none */
    uint64_t seq;     /* of its last change, in the numbers of the space */
} hd_listing;
typedef bool (*hd_list_fn)(const hd_listing *entry, void *ctx); /* false stops */
/* Lists the documents of a space by kind (NULL: any) and id prefix (NULL: all), in order of id, as this runtime sees
 * them. Documents of the user's and the session's scope are listed once this runtime has made a cell of that scope.
 * The cost is proportional to what is listed. The entry is good during the call. */
HD_API hd_status hd_runtime_list(hd_runtime *rt, const char *space, const char *kind,
                                 const char *prefix, hd_list_fn fn, void *ctx);
/* The same, page by page: only documents whose id is greater than `after`, the last id of the page before. In a file
 * and on a server the cost does not depend on what is left out. */
HD_API hd_status hd_runtime_list_after(hd_runtime *rt, const char *space, const char *kind,
                                       const char *prefix, const char *after, hd_list_fn fn,
                                       void *ctx);
/* Lists the names of the spaces. */
typedef bool (*hd_space_fn)(const char *space, void *ctx); /* false stops */
HD_API hd_status hd_runtime_spaces(hd_runtime *rt, hd_space_fn fn, void *ctx);

typedef struct hd_store_stats {
    uint64_t documents; /* that this runtime has loaded or has a handle for */
    uint64_t places;    /* documents, and places in them, that a handle or a read addresses */
    uint64_t commits;   /* sent to the store */
    uint64_t elided;    /* transactions that changed nothing and were not sent */
    /* Commits by verdict; doomed: given up because a commit that they depend on was refused. */
    uint64_t accepted, rejected, doomed;
    uint64_t frames; /* other writers' commits applied */
    uint64_t loads;  /* documents read from the store */
    uint64_t notices, changes;
    uint64_t seals;        /* commits of derived state */
    uint64_t walked;       /* index entries visited to find what a change concerns */
    uint64_t pending;      /* commits without a verdict now */
    uint64_t repeating;    /* calls of hd_transact_later, and named posts, that are not over */
    uint64_t reserved_[7]; /* room for later members; zero */
} hd_store_stats;
HD_API void hd_runtime_store_stats(const hd_runtime *rt, hd_store_stats *out);

/* ---- Housekeeping ------------------------------------------------------------------------ */

/* checkpoint: writes the current value of every changed document, so that opening reads less of the log. prune: also
 * deletes log rows that no reader needs any more (hd_options.keep_history keeps them). vacuum: gives free space of the
 * file back to the file system. They return when that is done; on a store in memory they do nothing. */
HD_API hd_status hd_store_checkpoint(hd_runtime *rt, hd_error *error);
HD_API hd_status hd_store_prune(hd_runtime *rt, hd_error *error);
HD_API hd_status hd_store_vacuum(hd_runtime *rt, hd_error *error);

/* Lists the stored pieces (heddle/pattern.h) that would have work to do if they were resumed now: what `nodes` of their
 * computations read has changed since they last ran. Reads every stored row about a node, and loads the documents that
 * have changed since. Leaves out rows of other principals. The order is that of the names, but pieces that were first
 * stored after the last checkpoint come last; fn returns false to stop. A piece whose rows cannot be read ends the
 * listing with the status of that.
 * HD_USAGE for a store in memory that belongs to the runtime, whose pieces end with it. */
typedef struct hd_stale_piece {
    const char *space, *id; /* good during the call */
    uint64_t nodes;
} hd_stale_piece;
typedef bool (*hd_stale_fn)(const hd_stale_piece *piece, void *ctx);
HD_API hd_status hd_store_stale_pieces(hd_runtime *rt, hd_stale_fn fn, void *ctx);

/* Verifies every invariant of a store. Calls fn with each finding; HD_CORRUPT when there is one. */
typedef void (*hd_check_fn)(const char *finding, void *ctx);
HD_API hd_status hd_store_check(const char *file, const hd_options *options, hd_check_fn fn,
                                void *ctx, hd_error *error);

/* Repairs a damaged file from what the file itself still holds: it rebuilds indexes from their tables, documents from
 * the log where that goes back far enough, and removes damaged rows that are only a cache or history. `fn` (may be
 * NULL) is called with one line for each of these, which begins with "restored", "removed" or "not restored". A
 * document that cannot be restored stays as it is, and reading it returns HD_CORRUPT; with `drop` it is removed, after
 * `fn` has been given its text, so that the rest of the file is in order again.
 *
 * The repair is one transaction. Call it while no other program has the file open. HD_OK: nothing damaged is
 * left; HD_CORRUPT: something is, or SQLite itself cannot read the file; HD_USAGE: the store is on a server. */
HD_API hd_status hd_store_repair(const char *file, const hd_options *options, bool drop,
                                 hd_check_fn fn, void *ctx, hd_error *error);

/* ---- Inlined -----------------------------------------------------------------------------
 *
 * A body that reads what it read the last time, and writes its output, finds all it needs at the
 * beginning of its transaction: the reads that are expected, and room for the output. At anything
 * else the library takes over. Names with a final underscore are private. */

#ifndef HD_NO_INLINE

struct hd_expected_ {
    uint32_t key, slot;
};

struct hd_tx_front_ {
    const char *const *places; /* 64 bytes each; first the value that is visible there */
    /* The reads that are expected. `end` is NULL while reads have to look closer. */
    const struct hd_expected_ *first, *next, *end;
    hd_value out_value; /* absent: the output has not been written */
    uint32_t out;       /* the document that out_value is for; HD_NO_OUTPUT_: none */
    uint32_t again[4];  /* cells read more than once, by their low bits */
};

/* At the beginning of a runtime. */
struct hd_runtime_front_ {
    const char *places; /* as above */
    uint32_t count;     /* of them */
};

#define HD_NO_OUTPUT_  UINT32_MAX
#define HD_VALUE_LINK_ 7 /* the upper 16 bits of a link */

HD_API hd_value hd_tx_get_otherwise_(hd_tx *tx, hd_cell cell);
HD_API hd_status hd_tx_set_otherwise_(hd_tx *tx, hd_cell cell, hd_value v);
HD_API hd_value hd_read_otherwise_(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* Neither a link nor absent, which may mean a link on the way. */
#define HD_VALUE_IS_HERE_(v)                                                                       \
    (HD_VALUE_IS_DOUBLE_(v) || ((v).bits != 0 && (v).bits >> 48 != HD_VALUE_LINK_))

#define HD_PLACE_VALUE_(places, cell)                                                              \
    (*(const hd_value *)(const void *)((places) + ((size_t)(cell).id << 6)))

HD_API inline hd_value hd_tx_get(hd_tx *tx, hd_cell cell) {
    struct hd_tx_front_ *front = (struct hd_tx_front_ *)(void *)tx;
    const struct hd_expected_ *next = front->next;
    if (HD_USUALLY_(next < front->end && next->key == cell.id)) {
        hd_value v = HD_PLACE_VALUE_(*front->places, cell);
        if (HD_VALUE_IS_HERE_(v)) {
            front->next = next + 1;
            return v;
        }
    } else if (front->again[cell.id & 3] == cell.id) {
        hd_value v = HD_PLACE_VALUE_(*front->places, cell);
        if (HD_VALUE_IS_HERE_(v)) return v;
    }
    return hd_tx_get_otherwise_(tx, cell);
}

HD_API inline hd_value hd_read(hd_runtime *rt, hd_pool *pool, hd_cell cell) {
    const struct hd_runtime_front_ *front = (const struct hd_runtime_front_ *)(const void *)rt;
    if (HD_USUALLY_(cell.id < front->count)) {
        hd_value v = HD_PLACE_VALUE_(front->places, cell);
        if (HD_VALUE_IS_DOUBLE_(v) || v.bits >> 51) return v; /* a number, which needs no owner */
    }
    return hd_read_otherwise_(rt, pool, cell);
}

HD_API inline hd_status hd_tx_set(hd_tx *tx, hd_cell cell, hd_value v) {
    struct hd_tx_front_ *front = (struct hd_tx_front_ *)(void *)tx;
    if (!HD_USUALLY_(cell.id == front->out && v.bits >> 51)) /* a number, which needs no owner */
        return hd_tx_set_otherwise_(tx, cell, v);
    front->out_value = v;
    front->end = NULL; /* a read of it must see it */
    memset(front->again, 0, sizeof front->again);
    return HD_OK;
}

HD_API inline hd_status hd_tx_set_double(hd_tx *tx, hd_cell cell, double d) {
    struct hd_tx_front_ *front = (struct hd_tx_front_ *)(void *)tx;
    if (!HD_USUALLY_(cell.id == front->out)) return hd_tx_set_otherwise_(tx, cell, hd_double(d));
    front->out_value = hd_double(d);
    front->end = NULL;
    memset(front->again, 0, sizeof front->again);
    return HD_OK;
}
#endif /* HD_NO_INLINE */

#ifdef __cplusplus
}
#endif
#endif
