/* runtime.h -- the struct behind hd_runtime, and what the layers above the store use of it.
 *
 * The store half lives here; the scheduler attaches itself at its first use through the hooks, so
 * that a program that only reads and writes documents carries nothing of it. */
#ifndef STORE_RUNTIME_H
#define STORE_RUNTIME_H

#include "base/binheap.h"
#include "store/replica.h"
#include <stdatomic.h>

typedef struct runtime_hooks {
    void *ctx; /* the scheduler; NULL: none */
    /* Runs what is runnable. HD_PENDING: the time slice was used up. */
    hd_status (*pump)(void *ctx);
    /* Settles a runtime to which no other process, thread or timer can bring anything. False: it is not such a
     * runtime, and the caller pumps and waits. */
    bool (*settle_alone)(void *ctx);
    uint64_t (*deadline)(const void *ctx);
    bool (*idle)(const void *ctx);
    /* Idle, but nodes are left that do not settle: settle says so. NULL: never. */
    bool (*left_unsettled)(const void *ctx);
    /* Something is on its way that may still commit: sync waits for it too. NULL: never. */
    bool (*unsettled)(const void *ctx);
    /* Something could be kept of nodes now (replica.due): sync seals again. NULL: never. */
    bool (*due)(const void *ctx);
    /* A space is about to be unloaded. HD_BUSY: a node or handler needs it; the runtime's error names it. */
    hd_status (*spare)(const void *ctx, const struct key *space);
    /* Which run or handling is on the stack: a number that no other one has. */
    uint64_t (*body)(const void *ctx);
    /* Nothing new is begun from here on; what was begun is synced next. NULL: nothing to do. */
    void (*closing)(void *ctx);
    void (*close)(void *ctx);
} runtime_hooks;

/* A part of the library that is attached to the runtime and closed with it: the pattern layer, which is closed after
 * the hooks; the workflow engine; the inspector, which is closed before everything else. */
typedef struct runtime_extension {
    void *ctx; /* NULL: none */
    /* Called with the posts, where waiting is allowed. NULL: nothing to do. */
    void (*prepare)(void *ctx);
    /* `pump` is called before nodes run; `deadline` tells when `prepare` or `pump` should be called next. NULL:
     * never. */
    void (*pump)(void *ctx);
    uint64_t (*deadline)(const void *ctx);
    void (*close)(void *ctx);
    /* Frees `ctx`, after everything is synced: functions that the program calls during the sync may use `ctx` still.
     * NULL: `close` frees it. */
    void (*free)(void *ctx);
} runtime_extension;

typedef struct schema_cell {
    place_id place;
    const hd_schema *schema;
} schema_cell;

typedef struct post {
    struct post *next;
    void (*fn)(hd_runtime *rt, void *ctx);
    void *ctx;
    bool lent; /* the post is the caller's memory, who may free it when fn is called */
} post;

struct hd_runtime {
    replica r;  /* first, and its places first in it: hd_runtime_front_ */
    hd_env env; /* our copy */
    hd_options options;
    hd_heap *heap;
    bool owns_heap;
    hd_memory *memory; /* the store, if it is in memory */
    bool owns_memory;
    struct key *principal, *session; /* instances of user and session scope */
    VEC(schema_cell) schema_cells;   /* by hd_cell.id - CELL_SCHEMA */
    hd_tx *spare;                    /* transactions to use again */
    hd_tx *open;                     /* the program's; one at a time */
    binheap repeats; /* of hd_transact: those that wait for their next attempt, by time */
    list repeating;  /* all that are not over */
    hd_status
        untold; /* of the first refused commit whose verdict had no function to be told, since the last sync */
    VEC(uint32_t) untold_of; /* cells that the log has named for it */
    runtime_hooks hooks;
    runtime_extension extension;
    runtime_extension work; /* the workflow engine: closed before the rest is synced, freed after */
    runtime_extension outside; /* answers inspectors: src/inspect */
    _Atomic(post *) posts;     /* newest first; pushed by any thread */
    _Atomic int wake_fd;       /* -1: not made yet; read by any thread */
    _Atomic bool woken;        /* wake_fd was written to: set by a post, cleared by pump */
    int set;                   /* of descriptors (base/poller.h); -1: not made yet */
    VEC(int) watched;          /* descriptors beside it: runtime_watch */
    bool stop;
    bool closing; /* hd_close tells of commits that have no verdict: no transaction may begin */
    bool leaves_derived; /* it closes, and the store stays: derived state is worth storing now */
    uint64_t error_body; /* hooks.body when r.error was written; 0: outside of bodies */
    bool in_run;         /* a run's or handler's body is on the stack */
    bool
        driven; /* a pump, a transact or the close is on the stack, and goes on when the present call returns */
#ifndef NDEBUG
    uint32_t pumps; /* so far: decides which of them are followed by a check */
#endif
    bool pumping;     /* the pump is past its posts: it cannot begin anew */
    uint32_t listing; /* listings on the stack: each reads a snapshot while its callback runs */
};

_Static_assert(offsetof(hd_runtime, r.places.at) == offsetof(struct hd_runtime_front_, places) &&
                   offsetof(hd_runtime, r.places.count) ==
                       offsetof(struct hd_runtime_front_, count),
               "hd_read finds the places");

/* hd_open on a store whose rows this backend keeps (log/backend.h). */
struct log_backend;
hd_status runtime_open_with(const struct log_backend *backend, const char *file,
                            const hd_options *options, hd_runtime **out, hd_error *error);

/* The key of a space, with a reference for the caller. HD_SYNTAX with the error: no space has this name; HD_NOMEM. */
hd_status runtime_space(hd_runtime *rt, const char *space, size_t length, struct key **out);
/* The place behind a cell, and its schema (NULL: none). 0: no cell. */
place_id runtime_place(const hd_runtime *rt, hd_cell cell, const hd_schema **schema);
/* hd_cell_child for a key that may contain NUL. */
hd_cell runtime_child(hd_runtime *rt, hd_cell cell, const char *key, size_t length);
/* The place of this name, for a look that leaves nothing behind: one reference, to be given back. 0: neither the
 * replica nor the store knows the document. HD_SYNTAX, HD_LIMIT, HD_NOMEM. */
hd_status runtime_look_at(hd_runtime *rt, const char *name, place_id *out);
/* The name of a cell, however long, as a text of the pool. */
hd_value runtime_cell_text(hd_runtime *rt, hd_pool *pool, hd_cell cell);

/* The home of a space and scope for this runtime's identity. */
hd_status runtime_home(hd_runtime *rt, struct key *space, hd_scope scope, bool meta, uint32_t *out);
/* The metadata document of a document. */
hd_status runtime_meta(hd_runtime *rt, place_id doc, place_id *out);

/* Remembers why a call failed, for hd_runtime_error; returns `status`. */
hd_status runtime_fail(hd_runtime *rt, hd_status status, const char *format, ...) HD_PRINTF(3, 4);
/* hooks.body of the body that is on the stack; 0: none is. */
uint64_t runtime_body(const hd_runtime *rt);

struct log_backend;
/* The backend of the store of this name: SQLite for a file, PostgreSQL for an address on a server. */
const struct log_backend *runtime_backend_of(const char *name);

/* Ends the snapshot that loads have opened, unless a body, a transaction, a listing or the pump still
 * needs it. While a program reads without a transaction the snapshot stays, so that a thousand reads
 * cost one: the deadline is then 0, and the pump that it asks for ends it. */
static inline void runtime_rest(hd_runtime *rt) {
    if (rt->r.holding && !rt->open && !rt->in_run && !rt->pumping && !rt->listing &&
        !rt->r.announcing)
        rt->r.authority->ops->rest(rt->r.authority);
    assert(!rt->r.holding ||
           rt->r.authority->ops->rest); /* only such an authority holds anything */
}

/* Whether derived values and memos go to the store now: not while no other runtime uses a store in memory. */
bool runtime_seals(const hd_runtime *rt);
/* Seals derived state, and with it memos, if the authority wants that. `memos_alone`: also if there are memos and
 * nothing else. */
hd_status runtime_seal(hd_runtime *rt, bool memos_alone);

/* HD_USAGE: a transaction, a run or the pump is on the stack, so that pump cannot be called. */
hd_status runtime_check_pump(hd_runtime *rt);

/* The runtime is woken, and pumps, when the descriptor is readable. The descriptor stays the caller's, and the caller
 * calls runtime_unwatch before closing it. HD_NOMEM, HD_IO. */
hd_status runtime_watch(hd_runtime *rt, int fd);
/* hd_runtime_post with memory of the caller (post.lent): it cannot fail. From any thread. */
void runtime_post(hd_runtime *rt, post *p);
void runtime_unwatch(hd_runtime *rt, int fd);

/* Pumps and waits until done(ctx), whatever else there is to do. */
hd_status runtime_run_until(hd_runtime *rt, bool (*done)(void *ctx), void *ctx);

/* Whether what failed with this status waits for the store as commits do: a server is away, and comes back. A runtime
 * that is being closed does not wait. */
static inline bool runtime_waits_for_store(const hd_runtime *rt, hd_status status) {
    return status == HD_BUSY && rt->r.authority->remote && !rt->r.leaving;
}

/* A commit was refused, and no function of the program is told of it: that is logged, and the next sync or the close
 * returns the status. `cell` is what it had read and another writer has changed; none: not known. */
void runtime_refused(hd_runtime *rt, hd_cell cell, hd_status status);
/* As hd_runtime_sync, but `untold` stays for the program's own call of that. */
hd_status runtime_sync(hd_runtime *rt);

/* Pumps and waits until *done (may be NULL) or nothing is left to run. */
hd_status runtime_settle_until(hd_runtime *rt, const bool *done);

#endif
