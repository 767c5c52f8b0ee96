/* engine.h -- what hangs together behind an hd_engine.
 *
 *     engine.c   life, versions, actions
 *     live.c     instances: start, load, store, end
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

/* An instance that is not over, or whose end is not stored yet. */
typedef struct live {
    list_node link; /* in engine.lives */
    struct hd_engine *e;
    instance *in; /* NULL: it could not be loaded after a refusal; tried again in the next pump */
    char *id;     /* "name/key"; owned */
    place_id doc; /* its document; one reference */
    int32_t priority;
    VEC(mail) mail;
    bool mail_changed;
    bool fresh;       /* its document is not in the store yet */
    bool changed;     /* in engine.changed: its next save is due */
    bool stored;      /* no change of it is under way: its steps may begin */
    uint32_t commits; /* that wait for their verdicts and have changes of it */
    bool starting;    /* its start is one of them; then its memory stays until the verdict */
    bool gone;        /* live_free has been called meanwhile */
} live;

typedef struct action_entry {
    char *name; /* owned */
    hd_action_spec spec;
} action_entry;

struct pool;
struct here;
struct remotes;

struct hd_engine {
    hd_runtime *rt;
    const hd_env *env;
    hd_heap *heap;
    char *space; /* owned */
    classes *classes;
    world *w;
    VEC(plan *) plans;    /* every version that is known; referenced */
    VEC(uint32_t) latest; /* indices into plans: what new instances of a name begin with */
    VEC(action_entry) actions;
    list lives;
    table by_id;                /* of `all` */
    VEC(live *) all;            /* by index of by_id; NULL: free */
    VEC(uint32_t) free_indices; /* of `all` */
    VEC(live *) changed;        /* to be stored with the next commit */
    VEC(live *) under_way;      /* in the commit that waits for its verdict */
    bool waits;                 /* there is such a commit */
    uint32_t starting;          /* starts that wait for their verdicts */
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
    binheap deadlines; /* of claims, by the monotonic clock */
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
plan *engine_plan(hd_engine *e, const char *version);
const action_entry *engine_action(const hd_engine *e, const char *name);

/* ---- live.c */
live *live_find(const hd_engine *e, const char *id);
/* Takes up an instance of the store. */
hd_status live_take_up(hd_engine *e, const char *id, hd_error *error);
/* The instance has walked: its changes are stored with the next commit. False: no memory. */
void live_changed(live *l);
/* A walk could not be finished: the instance is loaded again from what is stored. */
void live_lost(live *l);
/* Commits what has changed, unless a commit is under way. */
hd_status live_commit(hd_engine *e);
void live_free(live *l);

/* ---- step.c */
/* Puts the instance's steps that wait for workers or times into the queues. */
void step_queue(live *l);
/* Takes those that the walk has changed, or all of them, out. */
void step_unqueue_news(live *l);
void step_unqueue(live *l);
/* The step's claim has ended, with a result; with an exception; or because its worker is lost. */
void step_succeed(hd_engine *e, strand *s, hd_value result);
void step_fail(hd_engine *e, strand *s, const char *class_name, const char *message);
void step_lost(hd_engine *e, strand *s);
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
