/* engine.h -- what hangs together behind an hd_engine.
 *
 *     engine.c   life, the lease, actions
 *     version.c  versions of workflows
 *     live.c     instances in memory and in the store
 *     start.c    starts
 *     control.c  await, cancel, signal, pause
 *     child.c    instances that are steps of others *     limit.c    how many steps of a key may run at once
 *     journal.c  what an instance has done
 *     look.c lists, and what an instance does now
 *     inbox.c    what other processes ask for, by documents
 *     step.c     steps: completion, retries, timers
 *     dispatch.c queues of ready steps, workers, claims
 *     here.c     the worker that runs actions on the runtime's thread
 *     pool.c     the worker that runs them on threads
 *     remote.c   workers in other processes
 *
 * Completions and timers walk instances; one commit stores all that they have changed; when it is stored, the
 * steps that have become ready are offered to workers. There is one commit under way at a time: completions that
 * arrive meanwhile share the next one. No step is begun, and no end is told, before it is stored. */
#ifndef WORKFLOW_ENGINE_H
#define WORKFLOW_ENGINE_H

#include "store/lease.h"
#include "store/tx.h"
#include "store/runtime.h"
#include "workflow/save.h"
#include "workflow/task.h"
#include "workflow/walk.h"

/* A signal that came before anything waited for it. */
typedef struct mail {
    char *name;
    hd_value payload; /* owned */
} mail;

struct live;
typedef VEC(struct live *) live_vec;

/* An instance that is not over, or whose end is not stored yet. Only an active engine has any. */
typedef struct live {
    list_node link; /* in engine.lives */
    struct hd_engine *e;
    instance *in;   /* NULL: it is being loaded, or waits for memory to be loaded (lame) */
    list_node lame; /* in engine.lame */
    char *id;       /* "name/key"; owned */
    place_id doc;   /* its document; one reference */
    int32_t priority;
    VEC(mail) mail;
    bool mail_changed;
    /* What its document begins with, owned; absent: the document is in the store. */
    hd_value record;
    struct strand *
        awaited; /* the parent's, that waits for this; NULL: none, or its instance is not in memory */
    uint64_t journaled; /* entries of its journal that are stored, or in the commit under way */
    bool orphaned;      /* the parent waits no longer: it is to be cancelled */
    uint32_t depth;     /* of parents above it */
    list_node family; /* in engine.families: something is to be done about its parent or children */
    VEC(place_id)
    messages; /* of the inbox, that its changes answer: removed with the next commit; referenced */
    uint32_t answered; /* of them, those that the commit under way removes */
    bool again;   /* it runs again: what its document says of its end goes with the next commit */
    bool changed; /* in engine.changed: its next save is due */
    bool committing; /* in engine.under_way */
    bool stored;     /* no change of it is under way: its steps may begin */
} live;

typedef struct action_entry {
    char *name; /* owned */
    hd_action_spec spec;
} action_entry;

struct pool;
struct here;
struct remotes;

/* A call of hd_workflow_then. */
typedef struct waiter {
    list_node link; /* in engine.waiters */
    char *id;       /* owned */
    place_id doc;   /* referenced: changes by others are heard */
    hd_workflow_end_fn fn;
    void *ctx;
} waiter;

struct hd_engine {
    hd_runtime *rt;
    const hd_env *env;
    hd_heap *heap;
    char *space; /* owned */
    struct key *space_key;
    lease lease;     /* not open where no other process can run the space's instances */
    bool observer;   /* it never runs any */
    bool active;     /* it runs the space's instances */
    bool shall_rise; /* the lease is ours: the next pump takes the instances up */
    bool listens;
    bool starved;   /* the last pump could not do its work for want of memory; it is tried again */
    bool overheard; /* something was said, and there was no memory to note it: look at everything */
    uint64_t group; /* of our commits: the listener does not hear them */
    VEC(place_id) heard; /* documents that others have written; referenced */
    VEC(place_id)
    spent; /* messages that concern no instance of ours: removed with the next commit */
    uint32_t message_serial;
    list waiters;
    list families;
    list lame; /* instances that could not be loaded: tried again in each pump */
    classes *classes;
    world *w;
    VEC(plan *) plans; /* every version that is known; referenced */
    VEC(action_entry) actions;
    list lives;
    table by_id;                /* of `all` */
    live_vec all;               /* by index of by_id; NULL: free */
    VEC(uint32_t) free_indices; /* of `all` */
    live_vec changed;           /* to be stored with the next commit */
    /* Numbers of commits: the last that was begun, the last that has its verdict. */
    uint64_t commits_begun, commits_done;
    live_vec under_way; /* in the commit that waits for its verdict */
    bool waits;         /* there is such a commit */
    bool closing;
    bool
        orphan; /* closed while commits wait for verdicts: everything but the engine itself is freed */
    binheap timers;      /* of strands, by due time, wall clock ms */
    uint64_t age;        /* counts steps that became ready */
    VEC(queue *) queues; /* one for each action that was heard of; owned */
    table by_action;     /* of `queues` */
    list hot;            /* queues with steps to offer, and workers with room */
    list workers;
    VEC(task *) claims;      /* all that were ever made, by the low bits of their tokens; owned */
    VEC(task *) free_claims; /* of them, those that can be used again */
    uint64_t claim_serial;
    VEC(limit *) limits; /* keys that steps have now; owned */
    table by_key;        /* of `limits` */
    binheap deadlines;   /* of claims, by the monotonic clock */
    uint64_t ready_count, claimed_count;
    struct here *here; /* NULL: no action has asked for it yet */
    struct pool *pool; /* NULL: no thread was needed yet */
    uint32_t threads;
    struct remotes *remotes; /* workers in other processes; NULL: not served */
    hd_engine_stats stats;
};

/* What the function of an action sees. */
struct hd_action {
    const char *id;
    uint32_t attempt;
    hd_pool *pool;
    struct job *job; /* of the thread pool; NULL: it runs on the runtime's thread */
    hd_value result;
    char class_name[64];
    char message[400];
};

/* ---- engine.c */
const action_entry *engine_action(const hd_engine *e, const char *name);
/* The document "<prefix><id>" of the space, with one reference more; 0: no memory, or the id is too long. No handle
 * is made: the replica may forget the document when nothing refers to it. */
place_id engine_document(hd_engine *e, const char *prefix, const char *id);
/* What is visible there. */
hd_value engine_read(hd_engine *e, hd_pool *pool, const char *prefix, const char *id);
/* A transaction of the engine: of class event, fenced by the lease, not heard by the listener. */
hd_status engine_begin(hd_engine *e, hd_tx **out);
/* The engine may not run instances any more: they are dropped from memory. */
void engine_stand_down(hd_engine *e);
/* The engine was closed before its last verdict came: frees it when that has come. */
void engine_free_orphan(void *ctx);
char *engine_text(const hd_engine *e, const char *from);
void engine_free_text(const hd_engine *e, char *chars);

#define INSTANCE_PREFIX "workflow/"
#define VERSION_PREFIX  "workflow-version/"
#define NAME_PREFIX     "workflow-name/"
#define INBOX_PREFIX    "workflow-inbox/"

/* ---- version.c */
/* The plan of a version, borrowed. HD_NOT_FOUND: it is not in the store; HD_NOMEM; what plan_make returns. */
hd_status version_plan(hd_engine *e, const char *version, plan **out);
/* The one that new instances of the name begin with. */
hd_status version_latest(hd_engine *e, const char *name, plan **out);

/* ---- live.c */
live *live_find(const hd_engine *e, const char *id);
/* Takes up an instance of the store, unless it is over. HD_CORRUPT: it cannot be read; then it has been marked as
 * stalled. Without memory for loading it, that is tried again, and this is HD_OK. HD_NOMEM: nothing is done. */
hd_status live_take_up(hd_engine *e, const char *id);
/* An instance whose document does not exist yet and begins with `record`. */
hd_status live_start(hd_engine *e, const char *id, hd_value record);
/* Runs an instance that is over again: from `node` of its first function, with the variables it had; NULL: from the
 * beginning, with its input. HD_NOT_FOUND, HD_USAGE with hd_runtime_error, HD_NOMEM. */
hd_status live_rerun(hd_engine *e, const char *id, const char *node);
/* The instance has walked: its changes are stored with the next commit. */
void live_changed(live *l);
/* A walk, or a commit, has failed: the instance goes on from what is stored. */
void live_lost(live *l);
/* Tries those again for which there was no memory. */
void live_retry(hd_engine *e);
/* Commits what has changed, unless a commit is under way. */
hd_status live_commit(hd_engine *e);
bool live_has_news(const hd_engine *e);
void live_free(live *l);

/* ---- start.c */
/* The input with its defaults; failed, with hd_runtime_error: it does not fit. */
hd_value start_input(hd_engine *e, hd_pool *pool, const plan *p, hd_value input);
/* What the document of an instance begins with. */
hd_value start_record(hd_engine *e, hd_pool *pool, const plan *p, hd_value input, int32_t priority);
/* Runs the first walk of an instance whose document says `record`. */
hd_status start_walk(live *l, hd_value record);

/* ---- control.c */
/* Does what a message says: "signal", "cancel", "pause", "resume". HD_NOT_FOUND: the instance is not open;
 * HD_USAGE: it cannot be done; hd_runtime_error says why. */
hd_status control_apply(hd_engine *e, const char *id, hd_value message);
/* Raises CancelledError where the instance waits. */
hd_status control_cancel(live *l);
/* The instance is over, and that is stored: those that wait are told. */
void control_tell(hd_engine *e, const char *id);
/* Whether the status in a document says that the instance is over. */
bool control_is_over(hd_value document);
void control_fini(hd_engine *e);

/* ---- child.c */
/* After a walk or a load: if a child is to be begun or told about, child_work will. */
void child_note(live *l);
/* The strand's instance leaves the memory: the child stays, and is found again. */
void child_unlink(strand *s);
/* The instance leaves the memory: a parent that waits for it looks at the store. */
void child_forget(live *l);
bool child_work(hd_engine *e);

/* ---- journal.c */
/* Appends what the instance has noted. */
hd_status journal_write(hd_tx *tx, live *l, const doc_writer *out);

/* ---- inbox.c */
/* Hears of documents that others write, from here on. */
hd_status inbox_listen(hd_engine *e);
/* Acts on what was heard. */
void inbox_work(hd_engine *e);
/* Notes messages and starts that came while no engine was active. */
hd_status inbox_recover(hd_engine *e);
/* Leaves a message for the active engine. */
hd_status inbox_post(hd_engine *e, hd_value message);
void inbox_fini(hd_engine *e);

/* ---- step.c */
/* Puts the instance's steps that wait for workers or times into the queues. */
void step_queue(live *l);
/* Takes those that the walk has changed, or all of them, out. */
void step_unqueue_news(live *l);
void step_unqueue(live *l);
/* Its steps that wait for a worker wait outside of the queues from now on; what runs may finish. */
void step_suspend(live *l);
/* The step's claim has ended, with a result; with an exception; or because its worker is lost. */
void step_succeed(hd_engine *e, strand *s, hd_value result);
void step_fail(hd_engine *e, strand *s, const char *class_name, const char *message);
void step_lost(hd_engine *e, strand *s);
/* What the step waits for has raised an exception: no retry. */
void step_raise(hd_engine *e, strand *s, uint32_t class_, const char *message);
void step_raise_value(hd_engine *e, strand *s, ev exception);
/* Fires timers, offers ready steps. True: there was something to do. */
bool step_work(hd_engine *e);
uint64_t step_deadline(const hd_engine *e);
/* Gives signals that have come to the WAITs of the instance. */
hd_status step_deliver(live *l);

/* ---- here.c */
/* The action is run on this thread from now on. HD_NOMEM. */
hd_status here_serve(hd_engine *e, const char *action);
void here_close(hd_engine *e);
/* Runs an action's function; false: it failed, and class_name and message are set. On any thread. */
bool here_run(const hd_action_spec *spec, hd_action *a, hd_value args);

/* ---- remote.c. These accept NULL. */
/* Takes in what workers have said. */
void remotes_pump(struct remotes *r);
/* Tells them what there is to tell. */
void remotes_flush(struct remotes *r);
uint64_t remotes_deadline(const struct remotes *r);
void remotes_close(struct remotes *r);

/* ---- pool.c */
hd_status pool_serve(hd_engine *e, const char *action);
/* Waits for what the threads are doing. */
void pool_close(hd_engine *e);

#endif
