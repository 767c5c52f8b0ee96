/* engine.h -- what hangs together behind an hd_engine.
 *
 *     engine.c   life, versions, actions
 *     live.c     instances: start, load, store, end
 *     step.c     steps: dispatch, completion, retries, timers
 *     pool.c     threads for actions
 *
 * One pump does: completions and timers, which walk instances; then one commit with all that they changed;
 * when that is stored, the steps that have become ready are begun. There is one commit under way at a time:
 * completions that arrive meanwhile share the next one. Nothing is begun, and nobody is told of an end, before
 * it is stored. */
#ifndef WORKFLOW_ENGINE_H
#define WORKFLOW_ENGINE_H

#include "store/tx.h"
#include "store/runtime.h"
#include "workflow/save.h"
#include "workflow/walk.h"
#include <heddle/workflow.h>

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
    bool fresh;   /* its document is not in the store yet */
    bool changed; /* in engine.changed: its next save is due */
    bool stored;  /* no change of it is under way: its steps may begin */
} live;

typedef struct action {
    char *name; /* owned */
    hd_action_spec spec;
} action;

/* What an action has made of an attempt. */
typedef struct completion {
    list_node link; /* in engine.completions */
    uint64_t token;
    hd_value result;     /* owned; absent: it failed */
    char class_name[64]; /* of the exception */
    char message[400];
} completion;

struct pool;

struct hd_engine {
    hd_runtime *rt;
    const hd_env *env;
    hd_heap *heap;
    char *space; /* owned */
    classes *classes;
    world *w;
    VEC(plan *) plans;    /* every version that is known; referenced */
    VEC(uint32_t) latest; /* indices into plans: what new instances of a name begin with */
    VEC(action) actions;
    list lives;
    table by_id;           /* of `all` */
    VEC(live *) all;       /* by index of by_id; NULL: free */
    VEC(live *) changed;   /* to be stored with the next commit */
    VEC(live *) under_way; /* in the commit that waits for its verdict */
    bool waits;            /* there is such a commit */
    bool closing;
    binheap ready;  /* steps that may begin, by priority, then by age */
    binheap timers; /* by due time, wall clock ms */
    uint64_t next_token, age;
    list completions;      /* of this thread's actions and of posts: to be walked */
    table tokens;          /* running steps by token */
    VEC(strand *) running; /* by index of tokens; NULL: free */
    struct pool *pool;     /* NULL: no thread was needed yet */
    uint32_t threads;
    hd_engine_stats stats;
};

/* What the function of an action sees. */
struct hd_action {
    const char *id;
    uint32_t attempt;
    hd_pool *pool;
    hd_value result;
    char class_name[64];
    char message[400];
};

/* ---- engine.c */
plan *engine_plan(hd_engine *e, const char *version);
const action *engine_action(const hd_engine *e, const char *name);

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
/* Begins ready steps, fires timers, walks completions. True: there was something to do. */
bool step_work(hd_engine *e);
uint64_t step_deadline(const hd_engine *e);
void step_arrived(hd_engine *e, completion *c);
/* Gives signals that have come to the WAITs of the instance. */
hd_status step_deliver(live *l);
/* Runs an action's function and puts what it makes of it into `c`. On any thread. */
void step_run(const action *a, const char *id, uint32_t attempt, hd_pool *pool, hd_value args,
              completion *c);

/* ---- pool.c */
/* Hands an attempt to a thread. HD_NOMEM. */
hd_status pool_give(hd_engine *e, const action *a, strand *s, const char *id);
void pool_close(hd_engine *e);

#endif
