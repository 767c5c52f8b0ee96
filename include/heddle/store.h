/* heddle/store.h -- documents that many writers change: runtimes, cells, transactions, changes.
 *
 * A *store* is one SQLite file (or one piece of memory). It holds spaces; a space holds documents;
 * a document is a JSON value with an id. A *cell* is an address: a document and a path into it. A
 * *runtime* is one program's view of a store: it reads and writes cells in transactions, and hears
 * of every change, its own and others'.
 *
 *     hd_runtime *rt;
 *     if (hd_open("shop.db", NULL, &rt, NULL)) return 1;
 *     hd_cell stock = hd_cell_at(rt, "main/stock#/apples");
 *     hd_write_json(rt, stock, "12");
 *     hd_close(rt);                                         // waits until it is on disk
 *
 * OPTIMISTIC. A commit is visible to this runtime as soon as hd_tx_commit returns, and its one
 * change notification has been delivered by then. The store decides later whether it stands: the
 * verdict arrives in hd_runtime_pump, never earlier. A commit is refused when something it read
 * has been changed by another writer meanwhile (class HD_CLASS_STALE: read again and retry); its
 * effects are then taken back and that too is announced. Blind writes are never stale.
 *
 * ONE SNAPSHOT. Between two calls of pump nothing changes but by your own commits.
 *
 * DURABLE. With a file, an accepted commit is on disk (synchronous=FULL). hd_runtime_sync waits
 * for all verdicts; hd_close syncs.
 *
 * THREADS. A runtime belongs to one thread. hd_runtime_post is the only call that others may make.
 * Open as many runtimes as you like, in one process or in several, on the same file.
 */
#ifndef HEDDLE_STORE_H
#define HEDDLE_STORE_H

#include <heddle/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hd_runtime hd_runtime;
typedef struct hd_tx hd_tx;

/* ---- Opening and closing ----------------------------------------------------------------- */

/* A store in memory, for runtimes of one thread that want to share one. */
typedef struct hd_memory hd_memory;
HD_API hd_status hd_memory_open(const hd_env *env, hd_memory **out);
/* Close every runtime on it first. */
HD_API void hd_memory_close(hd_memory *memory);

typedef enum hd_durability {
    HD_DURABILITY_FULL,  /* an accepted commit survives power loss (default) */
    HD_DURABILITY_NORMAL /* it survives a crash of the program; power loss may take the last ones */
} hd_durability;

typedef struct hd_options {
    const hd_env *env;     /* NULL: the system's */
    hd_limits limits;      /* of values */
    const char *principal; /* whose user scope; default "local"; not empty */
    const char *session;   /* name of the session scope; default: unique for each open; not empty */
    hd_memory *memory;     /* share this store instead of opening a file */
    hd_durability durability;
    /* Never write: writing transactions fail with HD_READ_ONLY. Computations whose result is a whole document
     * run, for this runtime alone; those that write a place in one, remove it or have side outputs fail so. */
    bool read_only;
    bool must_exist;        /* do not create the file */
    bool keep_history;      /* never prune the log */
    const char *vfs;        /* SQLite VFS by name; NULL: the default */
    uint64_t tail_bytes;    /* checkpoint when the log tail exceeds this; default 64 MiB */
    uint32_t receipt_days;  /* receipt horizon; default 30 */
    uint32_t timing_period; /* one run in so many is timed; default 64 */
    uint32_t slice_ms;      /* pump returns after about this long; default 16 */
    void *context;          /* of the program's own; see hd_runtime_context */
    /* SIGINT and SIGTERM end hd_runtime_run, so that the program can close the runtime. While it is on the
     * stack they do nothing else. For one runtime of a process at a time: HD_BUSY. */
    bool signals;
    /* What is otherwise warned of once for each node is an error: a computation that writes outside of its
     * outputs fails (HD_USAGE), and one whose output another one has already is not registered. */
    bool strict;
    uint64_t reserved_[8]; /* room for later members; zero */
} hd_options;

/* Opens a runtime on a SQLite file, which is created where it does not exist. `file` NULL (or
 * options->memory) means a store in memory; "" and ":memory:" are refused with HD_USAGE. Fails with
 * HD_NOT_HEDDLE, HD_NEWER, HD_CORRUPT, HD_READ_ONLY, HD_IO...; the error says what to do about it.
 * The file is left untouched then. */
HD_API hd_status hd_open(const char *file, const hd_options *options, hd_runtime **out,
                         hd_error *error);
/* Tells events that were not begun HD_CLOSED, syncs, then closes; scheduler.h, "Idle", says for what that
 * waits, and what is dropped. If that fails, commits that have no verdict are told HD_NO_VERDICT: they may be in
 * the store or not (their functions can begin no transaction: HD_CLOSED). Returns what hd_runtime_sync returned; the runtime is gone in any case, but for
 * HD_USAGE: it cannot be closed by what it calls (a run, a verdict, a listener, a post). Let that call
 * hd_runtime_stop, and close when the driving call has returned. */
HD_API hd_status hd_close(hd_runtime *rt);

HD_API hd_heap *hd_runtime_heap(hd_runtime *rt);
HD_API const hd_env *hd_runtime_env(const hd_runtime *rt);
/* The pointer given at open, for functions that are handed no other: patterns, for instance. */
HD_API void *hd_runtime_context(const hd_runtime *rt);
/* Details of the last call that failed on this runtime. */
HD_API const hd_error *hd_runtime_error(const hd_runtime *rt);

/* ---- Driving a runtime ------------------------------------------------------------------- */

/* What pumps is refused with HD_USAGE inside a transaction, a run, and all that the runtime calls, except
 * functions that were posted: these may wait for something.
 *
 * Does what there is to do now, without blocking: sends commits, applies verdicts and other
 * writers' changes, runs what has become runnable. Returns HD_OK, or HD_PENDING when it stopped
 * after its time slice and wants to be called again at once. HD_NOT_FOUND: the file was deleted or replaced
 * while it was open; from then on nothing is read or written, a commit returns HD_NOT_FOUND, and the runtime can
 * only be closed. */
HD_API hd_status hd_runtime_pump(hd_runtime *rt);
/* When to call pump next even if the descriptor stays silent: nanoseconds of the env's monotonic
 * clock, 0 for now, UINT64_MAX for never. */
HD_API uint64_t hd_runtime_deadline(const hd_runtime *rt);
/* A descriptor (epoll) that is readable when pump has something to do: verdicts, other processes'
 * commits, posts. The same one each time, the runtime's own. -1: the system has no more of them. */
HD_API int hd_runtime_fd(hd_runtime *rt);
/* Pumps and waits until the runtime is idle; scheduler.h, "Idle", says for what that waits. Verdicts of
 * commits may still be outstanding. HD_UNSETTLED: it is idle, but a part of the graph does not settle. */
HD_API hd_status hd_runtime_settle(hd_runtime *rt);
/* Pumps and waits until every commit has its verdict and derived state is stored. HD_STALE and the like: a
 * commit of this program was refused whose verdict it had not asked for; said once. */
HD_API hd_status hd_runtime_sync(hd_runtime *rt);
/* Pumps and waits until hd_runtime_stop, or a signal (hd_options.signals). For programs without a loop of
 * their own. */
HD_API hd_status hd_runtime_run(hd_runtime *rt);
HD_API void hd_runtime_stop(hd_runtime *rt);
/* From any thread: calls fn(rt, ctx) on the runtime's thread, in its next pump. */
typedef void (*hd_post_fn)(hd_runtime *rt, void *ctx);
HD_API hd_status hd_runtime_post(hd_runtime *rt, hd_post_fn fn, void *ctx);

/* ---- Cells ------------------------------------------------------------------------------- */

/* A handle for an address. 0 is no cell; reading it gives absent, writing it HD_USAGE. Handles
 * stay good until the runtime closes, and cost 64 bytes each. */
typedef struct hd_cell {
    uint32_t id;
} hd_cell;

/* "space/id", "space/id#/path", with a scope "space@user/id" or "space@session/id". A malformed
 * name gives no cell, and hd_runtime_error tells why. */
HD_API hd_cell hd_cell_at(hd_runtime *rt, const char *name);
HD_API hd_cell hd_cell_of(hd_runtime *rt, const char *space, hd_scope scope, const char *id,
                          const char *path);
HD_API hd_cell hd_cell_child(hd_runtime *rt, hd_cell cell, const char *key);
/* The cell a link points at, seen from the document of `from`. */
HD_API hd_cell hd_cell_of_link(hd_runtime *rt, hd_cell from, hd_value link);
/* The same address, read through a schema. The runtime keeps the schema until it closes: the program may
 * free it at once. */
HD_API hd_cell hd_cell_with_schema(hd_runtime *rt, hd_cell cell, const hd_schema *schema);
/* Writes the name with a NUL; returns its full length, like snprintf. */
HD_API size_t hd_cell_print(hd_runtime *rt, hd_cell cell, char *out, size_t size);
/* A link to the cell, complete with space and scope. */
HD_API hd_value hd_cell_link(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Transactions ------------------------------------------------------------------------ */

typedef enum hd_commit_class {
    HD_COMMIT_SOURCE,  /* of the program, and of effects */
    HD_COMMIT_EVENT,   /* of an event handler */
    HD_COMMIT_DERIVED, /* of computations: can be recomputed */
    HD_COMMIT_NONE     /* read-only: nothing is ever submitted */
} hd_commit_class;

/* Told once, in a later pump: HD_OK, or why not; by hd_close: HD_NO_VERDICT. */
typedef void (*hd_verdict_fn)(hd_status status, void *ctx);

/* One transaction at a time may be open on a runtime, apart from those of suspended async runs.
 * Inside a run use the run's own. */
HD_API hd_status hd_tx_begin(hd_runtime *rt, hd_tx **out);
/* A transaction that only reads: its commit does nothing. */
HD_API hd_status hd_tx_begin_read(hd_runtime *rt, hd_tx **out);
/* Applies the writes locally, announces them, and queues the commit: it is stored when `fn` is told HD_OK, or
 * when hd_runtime_sync has returned HD_OK. A commit that read what another writer has changed meanwhile is
 * refused: hd_transact below runs it again. Where `fn` is NULL a refusal is logged with the cell, and the next
 * sync, or the close, returns it. The transaction is gone afterwards, whatever the result. If a read or a write of it has failed (HD_CYCLE, HD_PENDING, ...) nothing is
 * committed, that status is returned, and `fn` is not told. A commit that changes nothing is not submitted, unless it has read what
 * another commit of this runtime wrote that has no verdict yet; `fn` (may be NULL) is told HD_OK in the
 * next pump in that case too. */
HD_API hd_status hd_tx_commit(hd_tx *tx, hd_verdict_fn fn, void *ctx);
HD_API void hd_tx_abort(hd_tx *tx);

/* What is to be done in one transaction: reads, writes, and HD_OK to commit them. Any other status aborts. It
 * may be called several times, so it changes nothing but through `tx`. */
typedef hd_status (*hd_tx_fn)(hd_tx *tx, void *ctx);

/* Runs `fn` in a transaction and returns when its commit is stored: HD_OK. It is run again, after a wait that
 * grows, while what it read has been changed by another writer (HD_CLASS_STALE, up to 200 times), while a
 * document is still loading (HD_CLASS_PENDING), and after a transient failure (up to 10 times). Any other status of `fn` or
 * of its commit is returned, and nothing is changed. Waiting pumps, so computations and
 * handlers run meanwhile; HD_USAGE inside a run, a transaction or a function that the pump calls. */
HD_API hd_status hd_transact(hd_runtime *rt, hd_tx_fn fn, void *ctx);
/* The same without waiting: the first attempt is made at once, further ones in later pumps, and `told` (may
 * be NULL) hears in a pump how it ended. Sync and close wait for it. If the first attempt ends with a status for which there
 * is no other, that is returned and `told` is not called. */
HD_API hd_status hd_transact_later(hd_runtime *rt, hd_tx_fn fn, void *ctx, hd_verdict_fn told,
                                   void *told_ctx);

HD_API hd_runtime *hd_tx_runtime(const hd_tx *tx);
HD_API hd_pool *hd_tx_pool(hd_tx *tx);

/* Reads. What is read becomes a dependency of a run, and a claim of a commit: the commit is
 * refused when it has changed meanwhile. Deep: the whole value under the cell. A link on the
 * cell's way (or at its end) is followed; links inside the value stay links (hd_tx_follow). With
 * a schema on the cell, what the schema describes. Values belong to the transaction. Absent is a
 * valid answer; a failed value (HD_PENDING, HD_CYCLE, HD_STALE) means that the run cannot go on: return
 * hd_value_status of it. A reader of a cell that is absent before and after a
 * change still runs if the change reaches further along the way to it, or less far: {} where {"a": {}} was, for a
 * reader of /a/b. All reads of a transaction see one state of the store. HD_STALE: another
 * process has folded that state away before this cell was first read here; pump, and begin anew. A
 * transaction that reads one document never gets it, nor does one that only writes. */
HD_API HD_INLINE_ hd_value hd_tx_get(hd_tx *tx, hd_cell cell);
/* Only the shape: kind, keys or length, scalar value, where a link points. Changes below do not
 * count. The value returned is the whole, for looking at its shape. */
HD_API hd_value hd_tx_get_shape(hd_tx *tx, hd_cell cell);
/* The value a link points at, seen from the document of `from`. */
HD_API hd_value hd_tx_follow(hd_tx *tx, hd_cell from, hd_value link);

enum {
    HD_READ_NO_DEPENDENCY = 1, /* ignore for scheduling: no re-run when it changes */
    HD_READ_NO_CLAIM = 2,      /* no conflict when it has changed meanwhile */
    HD_READ_NO_TAINT = 4,      /* labels (a later release) do not flow */
    HD_READ_SHAPE = 8,
    HD_READ_RAW = 16 /* links are values here, not followed */
};
HD_API hd_value hd_tx_read(hd_tx *tx, hd_cell cell, unsigned flags);

/* Writes. Seen by later reads of this transaction at once. HD_KIND and HD_RANGE as for hd_value_set; a
 * failed value is refused with its status. A link on the cell's way is followed (and is a claim like
 * any read), at its end it is replaced. A write that changes nothing is not sent; it becomes a claim:
 * if the commit changes something else, it is refused when the cell holds another value by then. */
HD_API HD_INLINE_ hd_status hd_tx_set(hd_tx *tx, hd_cell cell, hd_value v);
HD_API hd_status hd_tx_set_json(hd_tx *tx, hd_cell cell, const char *json);
HD_API HD_INLINE_ hd_status hd_tx_set_double(hd_tx *tx, hd_cell cell, double d);
HD_API hd_status hd_tx_set_int(hd_tx *tx, hd_cell cell, int64_t i);
HD_API hd_status hd_tx_set_text(hd_tx *tx, hd_cell cell, const char *text);
/* Removes the cell's place; of a whole document: deletes it. */
HD_API hd_status hd_tx_remove(hd_tx *tx, hd_cell cell);
/* Mergeable: two appends, or two increments, never conflict with each other. */
HD_API hd_status hd_tx_append(hd_tx *tx, hd_cell cell, hd_value item);
HD_API hd_status hd_tx_increment(hd_tx *tx, hd_cell cell, hd_value by);
/* A list of {"op": "set"|"remove"|"append"|"increment", "path": "/...", "value": ...}, paths
 * relative to the cell. All or nothing. */
HD_API hd_status hd_tx_patch(hd_tx *tx, hd_cell cell, hd_value patch, hd_error *error);

/* Preconditions: checked where the commit is admitted, all of them. */
HD_API hd_status hd_tx_require_absent(hd_tx *tx, hd_cell document);
HD_API hd_status hd_tx_require_equal(hd_tx *tx, hd_cell cell, hd_value v);

/* Properties of the document a transaction creates or changes. A kind has at most 63 bytes: HD_LIMIT. */
HD_API hd_status hd_tx_set_kind(hd_tx *tx, hd_cell document, const char *kind);
/* Metadata is beside the value: its changes do not concern readers of the value. */
HD_API hd_status hd_tx_set_meta(hd_tx *tx, hd_cell document, const char *key, hd_value v);
HD_API hd_value hd_tx_get_meta(hd_tx *tx, hd_cell document, const char *key);
/* Volatile documents live in this runtime only, with their metadata: never stored, never in conflict.
 * HD_USAGE: it has a value; HD_BUSY: that it was removed, or its metadata, is not stored yet. */
HD_API hd_status hd_cell_set_volatile(hd_runtime *rt, hd_cell document);

/* Listeners with the same change group as a transaction do not hear of it. 0 is no group. */
HD_API void hd_tx_set_group(hd_tx *tx, uint64_t group);

/* One-write transactions. Inside a run they are a usage error. */
HD_API hd_status hd_write(hd_runtime *rt, hd_cell cell, hd_value v);
HD_API hd_status hd_write_json(hd_runtime *rt, hd_cell cell, const char *json);
/* The current value, for looking; owned by the pool. Inside a run or handler it is not what the transaction
 * reads: it registers no dependency, so that the node does not run when the value changes; it claims nothing;
 * it does not see what the transaction has written, and may see an output that is not up to date. Use hd_tx_get
 * there. HD_PENDING as for hd_tx_get. */
HD_API HD_INLINE_ hd_value hd_read(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* ---- Changes ----------------------------------------------------------------------------- */

typedef enum hd_change_kind {
    HD_CHANGE_COMMIT,    /* a transaction of this runtime */
    HD_CHANGE_LOAD,      /* a document arrived for the first time */
    HD_CHANGE_INTEGRATE, /* another writer */
    HD_CHANGE_REVERT     /* a commit of this runtime was refused */
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

/* Called for each change of a visible value, exactly once, synchronously, in order. The listener
 * may read; what it writes is refused with HD_USAGE. */
typedef void (*hd_listener_fn)(const hd_notice *notice, void *ctx);
HD_API hd_status hd_runtime_listen(hd_runtime *rt, hd_listener_fn fn, void *ctx);
/* The same, leaving out the commits of a change group (hd_tx_set_group) of this runtime. That such a commit
 * was refused is told. Group 0: none is left out. */
HD_API hd_status hd_runtime_listen_except(hd_runtime *rt, hd_listener_fn fn, void *ctx,
                                          uint64_t group);
HD_API void hd_runtime_unlisten(hd_runtime *rt, hd_listener_fn fn, void *ctx);

/* Follow a whole space: other writers' changes to its documents are integrated, and announced,
 * also where this runtime has never read them. */
HD_API hd_status hd_runtime_follow(hd_runtime *rt, const char *space);

/* Lets go of a space, for a program that has to do with many in turn. Syncs; then what this runtime holds
 * of its documents is given back, its index of readers is empty, and the space is followed no
 * longer. No value changes: the store has it all (one in memory too), handles stay good,
 * and the next read loads again, without which changes by others are not heard of. Cells that a notice
 * brought are good no longer. Dormant computations that have read there run when they are
 * demanded again. What lives in this runtime only stays: volatile documents, and derived values that
 * cannot be stored now. Costs a look at every place that this runtime knows.
 * Refused, and nothing is let go of: HD_BUSY while a live node reads there or a handler takes events
 * there (hd_runtime_error says which: cancel it first), HD_PENDING while commits wait for a verdict,
 * HD_USAGE inside a transaction or a run. */
HD_API hd_status hd_runtime_unload(hd_runtime *rt, const char *space);

/* ---- Looking around ---------------------------------------------------------------------- */

typedef struct hd_listing {
    const char *space;
    hd_scope scope;
    const char *id;
    const char *kind; /* "" where it has none */
    uint64_t seq;
} hd_listing;
typedef bool (*hd_list_fn)(const hd_listing *entry, void *ctx); /* false stops */
/* Documents of a space by kind (NULL: any) and id prefix (NULL: all), in order of id. Sees what
 * this runtime sees; documents of the user and of the session once it has named a cell of that scope.
 * Proportional to what is listed. */
HD_API hd_status hd_runtime_list(hd_runtime *rt, const char *space, const char *kind,
                                 const char *prefix, hd_list_fn fn, void *ctx);
typedef bool (*hd_space_fn)(const char *space, void *ctx); /* false stops */
HD_API hd_status hd_runtime_spaces(hd_runtime *rt, hd_space_fn fn, void *ctx);

typedef struct hd_store_stats {
    uint64_t documents; /* known to this runtime, or meant by a handle */
    uint64_t places;    /* documents and places in them that are addressed */
    uint64_t commits;   /* submitted */
    uint64_t elided;    /* transactions that changed nothing */
    uint64_t accepted, rejected, doomed;
    uint64_t frames; /* other writers' commits applied */
    uint64_t loads;  /* documents read from the store */
    uint64_t notices, changes;
    uint64_t seals;        /* commits of derived state */
    uint64_t walked;       /* index entries visited to find what a change concerns */
    uint64_t pending;      /* commits without a verdict now */
    uint64_t reserved_[8]; /* room for later members; zero */
} hd_store_stats;
HD_API void hd_runtime_store_stats(const hd_runtime *rt, hd_store_stats *out);

/* ---- Housekeeping ------------------------------------------------------------------------ */

/* Writes heads, drops log rows below the floor, gives space back. On a store in memory: nothing. */
HD_API hd_status hd_store_checkpoint(hd_runtime *rt, hd_error *error);
HD_API hd_status hd_store_prune(hd_runtime *rt, hd_error *error);
HD_API hd_status hd_store_vacuum(hd_runtime *rt, hd_error *error);

/* Pieces (heddle/pattern.h) in a store that would have work to do if they were resumed now: `nodes` of
 * their computations would find something else than when they ran last. Costs a look at every row about
 * a node, and loads the documents that have changed since. Rows of other principals are left out. In order
 * of name, new ones last; fn returns false to stop. HD_USAGE for a store that belongs to the runtime, whose
 * pieces end with it. */
typedef struct hd_stale_piece {
    const char *space, *id; /* good during the call */
    uint64_t nodes;
} hd_stale_piece;
typedef bool (*hd_stale_fn)(const hd_stale_piece *piece, void *ctx);
HD_API hd_status hd_store_stale_pieces(hd_runtime *rt, hd_stale_fn fn, void *ctx);

/* Verifies every invariant of a file. Reports each finding; HD_CORRUPT when there is one. */
typedef void (*hd_check_fn)(const char *finding, void *ctx);
HD_API hd_status hd_store_check(const char *file, const hd_options *options, hd_check_fn fn,
                                void *ctx, hd_error *error);

/* Repairs a file that is damaged, as far as the file itself still has what is lost: indexes are made anew
 * from their tables, documents from the log where it goes back far enough, and what is only a cache or
 * history is removed. `fn` (may be NULL) hears of each thing in one line that begins with "restored",
 * "removed" or "not restored". What cannot be restored stays as it is, and reading it is HD_CORRUPT; with
 * `drop` it is removed, after its text has been told, so that the rest of the file is in order again.
 *
 * One transaction: all of it happens, or nothing. Call it while no other program has the file open. HD_OK
 * when nothing damaged is left; HD_CORRUPT when something is, or when SQLite itself cannot read the file. */
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
