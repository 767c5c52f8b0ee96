/* instance.h -- one run of a workflow, in memory.
 *
 * An instance is what its document says (docs/WORKFLOWS.md, "The document"), in a form that can be worked
 * on: activations hold variables, strands stand at nodes, fans count branches. A *strand* is one thread of
 * control: it walks from node to node in memory and stops where it must wait. Most instances have one.
 *
 *     walk.c    pushes: from a finished node to the next ones that have to wait
 *     unwind.c  finds the HANDLER of an exception, ends activations on the way, cancels
 *     save.c    writes what a walk has changed as operations on the document
 *     load.c    the way back
 *
 * A walk changes the instance in memory only and marks what it changed; instance_save turns the marks
 * into operations. So what lives and dies within one walk is never stored. If the commit is refused, the
 * instance is dropped from memory and loaded again.
 *
 * Cost: a walk costs the nodes it runs; saving costs what it changed; loading costs the document. */
#ifndef WORKFLOW_INSTANCE_H
#define WORKFLOW_INSTANCE_H

#include "base/binheap.h"
#include "base/list.h"
#include "expr/machine.h"
#include "workflow/plan.h"

struct instance;
struct limit;
struct live;
struct queue;

/* deps_satisfied of a node that waits for more than one arrival. */
typedef struct arrivals {
    uint32_t node;
    uint32_t satisfied; /* below deps_required; 0: it was full, and save removes it */
    bool changed, stored;
} arrivals;

/* A loop under way. */
typedef struct loop_state {
    uint32_t node;  /* its LOOP_HEAD */
    uint64_t visit; /* iterations begun: also the index of the next element */
    ev over;        /* a sequence, referenced; EV_UNBOUND: a while loop */
    ev source;      /* the dict or set that `over` was taken from, referenced; EV_UNBOUND: none */
    int64_t size;   /* of `source` when the loop began */
    bool ended;     /* save removes it */
    bool entered;   /* `over` is to be stored, not only the visit */
    bool changed, stored;
} loop_state;

/* The variables of one run of a function, or of one branch of a fan-out. */
typedef struct activation {
    list_node link; /* in instance.activations */
    struct instance *in;
    uint32_t number;           /* its name in the document; the first is 0 */
    uint32_t function;         /* in plan.functions */
    struct activation *caller; /* that of the CALL, or of the FAN_HEAD; NULL: the first */
    uint32_t call_node;        /* the CALL; PLAN_NONE: not called */
    struct fan *fan;           /* whose branch it is; NULL: of none */
    uint32_t index;            /* of the branch */
    uint32_t depth;            /* of activations above it */
    uint32_t users;            /* strands that stand in it, activations it has called, its fans */
    list_node news;            /* in instance.news.activations: something in it may have changed */
    bool stored;               /* the document has a record of it */
    bool ended;                /* nothing uses it: save removes its record, then it is freed */
    frame *vars;
    /* 1: the variable belongs here. A branch begins with copies of its caller's, which are not stored. */
    uint8_t *own;
    VEC(loop_state) loops;
    VEC(arrivals) ready;
} activation;

/* An entry of the journal, and its word. */
#define JOURNAL_TABLE(X)                                                                           \
    X(START, "start")                                                                              \
    X(RUN, "run")   /* a node; with JOURNAL_NODES */                                               \
    X(EDGE, "edge") /* that is not FORWARD was taken from the node; with JOURNAL_NODES */          \
    X(DONE, "done") /* a step has its result */                                                    \
    X(RAISE, "raise")                                                                              \
    X(RETRY, "retry")                                                                              \
    X(LOST, "lost")                                                                                \
    X(SIGNAL, "signal")                                                                            \
    X(CANCEL, "cancel")                                                                            \
    X(PAUSE, "pause")                                                                              \
    X(RESUME, "resume")                                                                            \
    X(END, "end")

typedef enum journal_word {
#define JOURNAL_ROW(name, word) JOURNAL_##name,
    JOURNAL_TABLE(JOURNAL_ROW)
#undef JOURNAL_ROW
} journal_word;

typedef struct journal_entry {
    uint64_t at_ms;
    journal_word what;
    uint32_t function, node; /* PLAN_NONE: it concerns the instance */
    edge_kind edge;
    uint32_t strand, step, attempt; /* step 0: none */
    hd_value signal;                /* the signal's name, referenced; absent in other entries */
} journal_entry;

/* Why a strand does not walk. */
typedef enum strand_state {
    STRAND_WALKING, /* in the work list of the walk under way; never at rest */
    STRAND_READY,   /* an action waits for a worker */
    STRAND_RUNNING, /* a worker has it. Not stored: after a restart it is ready again */
    STRAND_BACKOFF, /* a failed attempt waits for its next, until `due_ms` */
    STRAND_SLEEPING,
    STRAND_SIGNAL, /* waits for a signal, until `due_ms` if that is not 0 */
    STRAND_CHILD,  /* waits for an instance of its own */
    STRAND_FAN,    /* waits for the branches of `waits_for` */
    STRAND_ENDED   /* save removes it, then it is freed */
} strand_state;

/* One thread of control. */
typedef struct strand {
    list_node link; /* in instance.strands */
    struct instance *in;
    uint32_t number; /* its name in the document; never used twice in an instance */
    uint32_t step;   /* counts its steps that wait; (number, step) names a step for good */
    activation *a;
    uint32_t node; /* in the activation's function */
    strand_state state;
    uint32_t attempt;   /* of the action, from 1 */
    uint32_t lost;      /* attempts whose worker was lost; they do not count against the policy */
    uint64_t since_ms;  /* wall clock: when it began to wait here */
    uint64_t begun;     /* *instance.steps_begun at that time; 0: it was loaded, and has no timer */
    bool loaded;        /* it waits here since before the instance was loaded */
    uint64_t due_ms;    /* wall clock; 0: no timer */
    binheap_item timer; /* in the engine's timers while due_ms is set */
    struct fan *waits_for;
    uint64_t token; /* of the claim; 0: not claimed. Written by dispatch.c */
    hd_value
        why; /* from the second attempt on: what the one before raised, a text, owned; or absent */
    hd_value limit;           /* the key of its limit, a text, owned; absent: none */
    struct limit *limited_by; /* it counts there, or waits there; NULL: neither */
    hd_value args; /* of an ACTION, owned, as the worker gets them; absent: not computed */
    bool back;     /* it has come along a BACK edge; while it walks */
    bool failed;   /* its branch has raised; while it walks, at the BARRIER */
    /* How often CancelledError was raised where it waits, or what it waits for (branches, a child) was cancelled in its
     * place; 0 again when it next begins to wait. */
    uint32_t cancelled;
    /* Of a task (task_of() in unwind.c): cancellations that no time limit has taken back, as Task.cancelling() of
     * asyncio counts them. */
    uint32_t cancels;
    bool ends;       /* set only within end_others() of unwind.c: it is about to end */
    list_node news;  /* in instance.news.strands: it has changed */
    bool off_queues; /* while it is news: the engine has taken it out of its queues */
    bool stored;
    list_node
        unqueued; /* in instance.unqueued: it waits, and the engine has not put it into its queues */
    binheap_item ready; /* in queue->ready */
    list_node want; /* in instance.wanted: at a CHILD, something is to be done about its instance */
    struct live *child;  /* the instance that it waits for, while that is in memory; by child.c */
    bool child_begun;    /* at a CHILD: the instance with the id of its child is its own */
    uint64_t child_tag;  /* the id of its child ends with it; 0: it does not */
    struct queue *queue; /* task.h: the step waits for a worker there; NULL: it does not */
} strand;

/* The branches of one FAN_HEAD under way. */
typedef struct fan {
    list_node link; /* in instance.fans */
    uint32_t number;
    uint32_t node;  /* FAN_HEAD, in the function of `a` */
    activation *a;  /* in which it was begun */
    strand *waiter; /* stands at the FAN_HEAD; NULL: no strand waits, the branches are leftovers */
    uint32_t open;  /* activations of branches that have not ended */
    ev items; /* a tuple of the elements, referenced; EV_UNBOUND: one branch for each ELEM edge */
    uint32_t total, begun, done;
    /* "first": steps_begun when it began; the time limit of branch n has this number plus n. 0: any other mode, or the
     * branches do not all begin at once. */
    uint64_t steps_begun;
    ev results; /* a dict from index to result or exception; referenced */
    /* The branch that failed first; for "ordered" and plan_node.here the lowest that failed. PLAN_NONE: none has. */
    uint32_t failed;
    uint32_t cancels; /* "first" with plan_node.here: strand.cancels of its task when it began */
    bool
        cancelled; /* branches are being cancelled, and no more are begun; or the time limit is over */
    bool beginning; /* walk.c begins branches of it now */
    list_node news; /* in instance.news.fans: it has changed */
    bool stored;
    bool ended; /* nothing waits for it and no branch is open: save removes it, then it is freed */
    VEC(uint32_t) arrived; /* indices whose results are not stored yet */
} fan;

typedef enum instance_status {
    INSTANCE_RUNNING,
    INSTANCE_PAUSED, /* no action is begun; what runs may finish */
    INSTANCE_DONE,
    INSTANCE_FAILED,
    INSTANCE_CANCELLED,
    INSTANCE_STALLED,
    INSTANCE_STATUSES
} instance_status;

typedef struct instance {
    const hd_env *env;
    world *w;
    plan *p;
    hd_heap *heap;
    instance_status status;
    uint32_t cancelling; /* how often it was cancelled: by its parent, or once from outside */
    uint32_t cancelling_stored; /* as the document says */
    /* The status that the instance will have, because its first function has ended with `result`; INSTANCE_RUNNING: it
     * has not ended. Until the instance is over, the strands that are left clean up. */
    instance_status ending;
    bool ending_stored;       /* the document says so */
    bool result_stored;       /* the document has the result or the error */
    bool leftovers_cancelled; /* CancelledError has been raised in the strands that are left */
    bool status_changed;
    uint32_t next_number; /* of strands, activations and fans; from 1, 0 is the first of each */
    /* Counts the steps of all instances of the engine as they begin to wait, so that these have one order: timers of
     * a family that are due together fire in it. No stored strand.begun is above it. */
    uint64_t *steps_begun;
    bool number_changed;
    uint8_t parts; /* bits: which parts of the document save.c may have written */
    list strands;  /* in the order of their numbers, which is that in which they were begun */
    list activations, fans;
    struct { /* those of them that the next save looks at */
        list strands, activations, fans;
    } news;
    list unqueued;
    /* Strands whose child is to be begun, found or cancelled; also those that have ended before it. */
    list wanted;
    uint32_t strand_count; /* that have not ended */
    uint32_t fan_count;    /* of those, in state STRAND_FAN: they wait for other strands */
    bool waits_anew;       /* a strand has begun to wait for a signal; step_deliver clears it */
    activation *root;
    ev result; /* of the first function, or the exception that has left it; referenced. EV_UNBOUND if it was loaded */
    hd_value outcome;      /* `result` as it is stored, owned; absent: not encoded yet */
    VEC(strand *) walking; /* the work list */
    uint32_t walked;       /* strands at the front of `walking` that have had their turn */
    strand *runs;     /* the strand that runs, not in the list; NULL: the list has the next one */
    uint32_t objects; /* the highest number that an object has */
    VEC(uint32_t) freed; /* numbers of objects that are gone and still stored */
    /* There was no memory for one of them. If it stayed in the document, it could name others that do not. */
    bool freed_is_short;
    VEC(journal_entry) journal; /* not stored yet; what does not fit into memory is left out */
    VEC(change) changes;        /* of stored objects, since the last save; they hold references */
    uint64_t now_ms;            /* of the walk under way: one reading of the clock */
    uint64_t started_ms;        /* as its document says; 0: it does not */
    uint64_t most_nodes;        /* that one walk may run; default WALK_NODES_MAX */
    struct {
        uint64_t nodes;    /* run */
        uint64_t arrivals; /* pushed along edges */
    } counts;
    void *owner; /* free for the engine */
} instance;

#define WALK_NODES_MAX 10000000 /* of one walk: some seconds */
#define FAN_WINDOW                                                                                 \
    1000 /* branches of one fan-out that are open at once, unless the plan says otherwise */

/* ---- life (instance.c). NULL and false: no memory. */

/* `steps_begun` is borrowed. */
hd_status instance_open(world *w, plan *p, uint64_t *steps_begun, instance **out);
void instance_close(instance *in);
/* All instances of an engine share one world. Between these two it works for this one: what it changes and frees
 * belongs to the document of this one, and nothing of it is left in the world afterwards. HD_NOMEM: the instance is of
 * no use any more. */
void instance_enter(instance *in);
hd_status instance_leave(instance *in);
/* Drops the changes, once they are stored. */
void instance_forget_changes(instance *in);
/* The first function has ended, with this result or exception; or the instance cannot go on, and ends with it. Further
 * calls change nothing. */
void instance_conclude(instance *in, instance_status status, ev result);
/* The instance, which has been concluded, is over: every strand ends. */
void instance_end(instance *in);
/* The result or exception as it is stored; it lives as long as the instance or the pool. Absent: no memory. */
hd_value instance_outcome(instance *in, hd_pool *pool);

/* A strand in an activation, at its ENTRY. */
strand *instance_strand(instance *in, activation *a);
/* The only writer of strand.state. */
void strand_set_state(strand *s, strand_state state);
/* It begins to wait now, after all steps that wait already. */
static inline void instance_count_begun(strand *s) {
    s->begun = ++*s->in->steps_begun;
    s->loaded = false;
}
/* It goes no further. Its memory stays until instance_sweep. */
void instance_end_strand(strand *s);
/* It stands in another activation from now on. */
void strand_move(strand *s, activation *to);

/* The first activation; and one that a CALL begins. */
activation *instance_activation(instance *in, uint32_t function, activation *caller,
                                uint32_t call_node);
/* It has never had a user: it ends. */
void activation_drop(activation *a);
/* A branch's, with copies of the variables around it. */
activation *instance_branch(instance *in, fan *f, uint32_t index);
/* Whether it is in a branch of the fan, or below one. */
bool activation_is_of(const activation *a, const fan *f);
void activation_assign(activation *a, uint32_t variable, ev value);
/* A branch that sees its caller's variables as they are now, for good. */
void activation_own_all(activation *a);

/* A fan-out that the strand begins and waits for; and one that nothing waits for yet. */
fan *instance_fan(instance *in, strand *waiter);
fan *instance_fan_at(instance *in, activation *a, uint32_t node);
/* The waiter waits no longer. The fan-out ends now, or, if strands are left in its branches, with the last of them. */
void instance_leave_fan(fan *f);
/* Keeps a branch's outcome until all have one. */
bool fan_keep(fan *f, uint32_t index, ev outcome, bool failed);

/* Notes an entry, if the plan's journal is at least that detailed. `s` NULL: it concerns the instance. */
void instance_note(instance *in, journal_level level, journal_word what, const strand *s);
/* Notes in the journal that a signal of this name has come. */
void instance_note_signal(instance *in, hd_value name);
/* Drops the journal's entries that are in memory: they are stored, or the instance is closed. */
void instance_forget_journal(instance *in);

/* Frees what has ended, after a save. */
void instance_sweep(instance *in);
/* Asserts W2, W3 and that strands, activations and fans refer to each other as they should. At rest. */
void instance_check(const instance *in);

static inline const plan_function *activation_function(const activation *a) {
    return &a->in->p->functions[a->function];
}
static inline const plan_node *strand_node(const strand *s) {
    return &activation_function(s->a)->nodes[s->node];
}
static inline const plan_node *fan_node(const fan *f) {
    assert(activation_function(f->a)->nodes[f->node].kind == NODE_FAN_HEAD);
    return &activation_function(f->a)->nodes[f->node];
}
static inline const plan_node *fan_barrier(const fan *f) {
    assert(activation_function(f->a)->nodes[fan_node(f)->pair].kind == NODE_BARRIER);
    return &activation_function(f->a)->nodes[fan_node(f)->pair];
}
/* Of branches of which the first to end counts, a SLEEP with which a later one begins is a time limit: it stands before
 * what the first branch waits for, and the branch is no task. That node; PLAN_NONE: the branch is no time limit. */
static inline uint32_t fan_limit(const fan *f, uint32_t index) {
    const plan_function *in = activation_function(f->a);
    const plan_node *head = fan_node(f);
    if (!index || head->code || fan_barrier(f)->mode != BARRIER_FIRST) return PLAN_NONE;
    uint32_t first = plan_out(in, head, index)->to;
    return in->nodes[first].kind == NODE_SLEEP ? first : PLAN_NONE;
}
/* The next save looks at it. */
static inline void strand_mark(strand *s) {
    if (list_linked(&s->news)) return;
    list_push_back(&s->in->news.strands, &s->news);
    s->off_queues = false;
}
static inline void activation_mark(activation *a) {
    if (!list_linked(&a->news)) list_push_back(&a->in->news.activations, &a->news);
}
static inline void fan_mark(fan *f) {
    if (!list_linked(&f->news)) list_push_back(&f->a->in->news.fans, &f->news);
}
static inline bool instance_is_over(const instance *in) { return in->status >= INSTANCE_DONE; }

/* ---- walk.c, for unwind.c: an exception that is handled, or leaves a branch, goes on there. False: no memory,
 * or the world's status says what else. */

/* Follows the strand's node along one of its edges. */
bool walk_along(strand *s, edge_kind kind, uint32_t index);
/* A branch has its result or exception. */
bool walk_branch_over(strand *s, ev result, bool failed);

#endif
