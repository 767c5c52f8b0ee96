/* task.h -- steps and the workers that do them.
 *
 * A *worker* serves actions by name: the runtime's own thread (here.c), the thread pool (pool.c), a connection of
 * the worker socket. Steps that are ready wait in the *queue* of their action. A worker that has room is offered
 * steps; it *claims* one and gets a token. With the token it completes the step, lets it fail, says that it is
 * still at it, or gives it back. A token is good for one claim: a call with an old one is late, is counted,
 * and changes nothing (W1).
 *
 *     step_queue --> queue.ready --task_claim--> claim --task_complete, task_fail--> step.c walks on
 *                        ^                         |
 *                        +---- give back, lost ----+
 *
 * The engine takes a claim back when the attempt takes longer than its timeout, when its worker has not been heard
 * of for longer than the step's heartbeat, and when the step itself is gone (cancelled, instance over).
 *
 * Everything here is called on the runtime's thread. Cost: claim O(log n) in the steps of the queue plus the
 * number of actions that the worker serves; complete and heartbeat O(log n) in the claims. */
#ifndef WORKFLOW_TASK_H
#define WORKFLOW_TASK_H

#include "store/place.h"
#include "workflow/instance.h"
#include <heddle/workflow.h>

struct worker;

/* So often a step's worker may be lost before the step fails. */
#define TASK_LOST_MAX 10

typedef VEC(char *) name_vec; /* owned */

struct share_ask;

/* What this engine has of a bound that holds over several shards; share.c. */
typedef struct share {
    list_node link; /* in engine.shares_due or shares_waiting; in neither: it has what it needs */
    place_id doc;   /* one reference; 0: there is one shard, and the bound is this engine's alone */
    bool of_key;    /* it is in a limit; else in a line */
    bool wants;     /* the document says that this engine waits for slots */
    bool heard;     /* another engine has written the document since it was read */
    uint32_t slots; /* that this engine has: that is stored */
    uint32_t giving;  /* of them, those that steps do not use any more: they are being given back */
    uint32_t rivals;  /* engines that wait for slots, as the document said when it was last read */
    uint32_t total;   /* slots that all engines had then, or when this one's were last stored */
    uint64_t look_ns; /* among shares_waiting: when it is looked at */
    uint64_t yield_ns;     /* no slot is taken before: another engine waits for it */
    struct share_ask *ask; /* the commit under way; NULL: none */
} share;

/* Whether one more step may begin where `used` have. */
static inline bool share_has_room(const share *s, uint32_t used) {
    return !s->doc || used + s->giving < s->slots;
}

/* What programs call a queue (line.c): the steps that name it share its limit and its pause. Steps that name no queue
 * are in the line whose name is empty. */
typedef struct line {
    char *name;       /* owned */
    uint32_t most;    /* so many of its steps are with workers at once; 0: any number */
    bool paused;      /* none of its steps is begun */
    uint32_t running; /* of its steps, those with workers */
    share share;
} line;

/* The steps of one action in one line that wait, and the workers that serve them. */
typedef struct queue {
    char *name; /* of the action; owned */
    line *line;
    binheap ready; /* strands, by rank */
    VEC(struct worker *) workers;
    uint32_t room;             /* of its workers, those that are not full */
    uint32_t near;             /* of its workers, those without `last_resort` */
    const struct worker *sole; /* of its workers, the one with `sole`; NULL: none */
    uint32_t turn;             /* of its workers, the one that is offered something next */
    list_node hot;             /* in engine.hot: it has steps that have not been offered */
} queue;

/* The steps of one key, of which a limited number may be queued or running; limit.c. */
typedef struct limit {
    char *key;       /* owned */
    uint32_t held;   /* that are queued or running */
    binheap waiting; /* the others, by rank */
    share share;
} limit;

/* A step that a worker has. */
typedef struct task {
    list_node link; /* in worker.claims; in no list while it is free */
    strand *s;      /* NULL: free */
    struct worker *w;
    line *line;          /* that the step is of */
    uint64_t token;      /* of the present claim, or of the last */
    uint32_t shard;      /* of the instance of that claim */
    uint64_t timeout_ns; /* when the attempt is over, by the monotonic clock; 0: never */
    uint64_t silent_ns;  /* when the worker counts as lost; 0: never */
    uint64_t beat_ns;    /* a heartbeat is good for so long; 0: none is asked for */
    binheap_item timer;  /* in engine.deadlines; may be due too early, never too late */
} task;

typedef struct worker_ops {
    /* There are steps for it, and it has room: it calls task_claim until that returns false, or it is full. */
    void (*offer)(struct worker *w);
    /* The claim has ended without the worker: what it still says about this token is late. `why` is a word:
     * "timeout", "silent", "gone". NULL: the worker does not want to know. */
    void (*revoke)(struct worker *w, uint64_t token, const char *why);
} worker_ops;

/* Embedded in a struct of the code that has the worker. That code sets ops, capacity and lines, and zeroes the rest. */
typedef struct worker {
    const worker_ops *ops;
    const name_vec *lines; /* that it serves; NULL, or none: all */
    uint32_t capacity;     /* claims that it may have at once. Changed by worker_set_capacity */
    bool last_resort;      /* it is offered what no other worker serves */
    bool sole; /* what it serves is offered to no other worker: only the engine itself can do it */
    /* Its attempts only wait for something. So the timeout of a first attempt is a deadline: it counts from the
     * beginning of the step, also if the worker of another engine has waited before. */
    bool waits;
    struct hd_engine *e;
    uint32_t held; /* claims that it has */
    uint32_t
        share; /* while steps are divided among the workers of a queue: what it may hold; 0: no bound */
    list claims;
    list_node link;   /* in engine.workers */
    name_vec actions; /* that it serves */
    VEC(queue *) serves;
} worker;

/* What a worker is told about a step. `args` are borrowed: good until the next call into the engine. */
typedef struct task_view {
    uint64_t token;
    const char *action, *instance, *node; /* borrowed as `args` are */
    hd_value args;
    uint32_t attempt;
    uint64_t timeout_ms, heartbeat_ms; /* 0: none */
    char id[HD_INSTANCE_ID_SIZE + 32]; /* hd_action_id */
} task_view;

/* ---- workers */

void worker_join(struct hd_engine *e, worker *w);
/* It serves this action too. HD_NOMEM: nothing has changed. */
hd_status worker_serve(worker *w, const char *action);
/* It serves the action no more. What it has claimed of it stays claimed. */
void worker_unserve(worker *w, const char *action);
void worker_set_capacity(worker *w, uint32_t capacity);
/* The worker has refused what it was offered, and would take it now. */
void worker_ask_again(worker *w);
/* The worker has so many claims more that are not in `claims`: steps that it has given to other processes (guest.c). */
void worker_hold(worker *w, int more);
/* The worker serves nothing any more. What it has claimed is lost (task_lost). */
void worker_leave(worker *w);

/* ---- claims */

/* The next step, by priority and age, of those it serves. False: there is none, or the worker is full. */
bool task_claim(worker *w, task_view *out);

/* HD_OK; HD_NOT_FOUND: the token is old. That is counted, and nothing changes. Values and texts are borrowed.
 * `class_name` is a class of exceptions; one that is not known counts as RuntimeError. */
hd_status task_complete(struct hd_engine *e, uint64_t token, hd_value result);
hd_status task_fail(struct hd_engine *e, uint64_t token, const char *class_name,
                    const char *message);
/* The same with the exception as a value, see hd_attempt_raise. HD_KIND: it is none, and nothing changes. */
hd_status task_raise(struct hd_engine *e, uint64_t token, hd_value exception);
hd_status task_heartbeat(struct hd_engine *e, uint64_t token);
/* The step goes back to its place in the queue, as if it had not been claimed. */
hd_status task_give_back(struct hd_engine *e, uint64_t token);
/* The worker is gone, and it is not known how far it came. The step is tried again, which does not count as an
 * attempt; after TASK_LOST_MAX times it fails with ConnectionError. */
hd_status task_lost(struct hd_engine *e, uint64_t token);

/* Whether the token names a claim that this worker has now. */
bool task_is_held_by(const worker *w, uint64_t token);
/* The document of the claim's instance. */
place_id task_document(const struct hd_engine *e, uint64_t token);
/* The number of the shard that the claim's instance belongs to. The claim may have just ended. */
uint32_t task_shard(const struct hd_engine *e, uint64_t token);

/* ---- for step.c and engine.c */

bool task_is_served(const struct hd_engine *e, const strand *s);
/* The line may have got room: its steps are offered. */
void task_heat_line(struct hd_engine *e, const line *l);
/* The strand waits for a worker from here on. HD_NOMEM. */
hd_status task_push(struct hd_engine *e, strand *s, uint64_t rank);
/* The same for a strand that its limit has let in. */
hd_status task_push_admitted(struct hd_engine *e, strand *s, uint64_t rank);
/* The strand waits no more, and no worker has it. */
void task_withdraw(struct hd_engine *e, strand *s);
/* Offers what there is to workers that have room. True: there was something to offer. */
bool task_offer(struct hd_engine *e);
/* The strand's instance is not paused any more: the timeout of its attempt counts again, and may be over. */
void task_resume(struct hd_engine *e, const strand *s);
/* Ends claims whose time is over; when to look next. */
bool task_fire(struct hd_engine *e);
uint64_t task_deadline(const struct hd_engine *e);
void task_fini(struct hd_engine *e);
/* *may_queue: the strand counts from now on; else it waits for its turn. HD_NOMEM. */
hd_status limit_enter(struct hd_engine *e, strand *s, uint64_t rank, bool *may_queue);
/* The strand no longer counts in its limit, nor waits there. */
void limit_leave(struct hd_engine *e, strand *s);
/* Many steps are about to be queued, in no order: those with limits all wait until limits_open, so that the highest
 * rank goes first and not the one that happens to be queued first. */
void limits_close(struct hd_engine *e);
void limits_open(struct hd_engine *e);
/* Lets strands in that could not be let in before, for lack of memory. */
void limit_retry(struct hd_engine *e);
/* The step that enters next; NULL: none waits. */
static inline strand *limit_next(const limit *l) {
    binheap_item *first = binheap_peek(&l->waiting);
    return first ? BINHEAP_ENTRY(first, strand, ready) : NULL;
}
/* Whether this step may enter. Where the limit is shared, all engines together must not have more slots than this step
 * allows: some may have been taken for steps with a higher limit. */
static inline bool limit_has_room(const limit *l, const strand *s) {
    uint32_t most = strand_node(s)->limit_most;
    if (l->held >= most || !share_has_room(&l->share, l->held)) return false;
    return !l->share.doc || l->share.total <= most;
}
/* The next ones that wait enter their queues, as far as there is room. */
void limit_admit(struct hd_engine *e, limit *l);
/* A limit that no step has is freed, unless its share has slots. */
void limit_forget_unused(struct hd_engine *e, limit *l);
/* The share with that document, of a key with that hash; NULL: no step here has it. */
share *limit_share(const struct hd_engine *e, uint32_t hash, place_id doc);
void limit_fini(struct hd_engine *e);

/* Asserts that queues, workers, claims and strands agree. O(all of them). */
void task_check(const struct hd_engine *e);

/* ---- line.c */
/* The line of that name, made where there is none; NULL: no memory. */
line *line_of(struct hd_engine *e, const char *name);
/* Its document is there, or has changed, or is gone. HD_NOMEM, HD_IO, ...: it is not known. */
hd_status line_heard(struct hd_engine *e, const char *name);
void line_fini(struct hd_engine *e);
bool line_name_is_good(const char *name);
/* NULL: no step here has named the line. */
share *line_share(const struct hd_engine *e, const char *name);
/* There is more than one shard now: bounds are shared. HD_NOMEM. */
hd_status line_share_all(struct hd_engine *e);
static inline bool line_has_room(const line *l) {
    if (l->paused || !l->most) return !l->paused;
    return l->running < l->most && share_has_room(&l->share, l->running);
}

/* ---- share.c */
/* For a limit or a line. HD_NOMEM: it is not shared. */
hd_status share_open(struct hd_engine *e, share *s, bool of_key, const char *name);
void share_close(struct hd_engine *e, share *s);
/* What its steps need has changed. */
void share_touch(struct hd_engine *e, share *s);
/* One of its steps has ended: called before the next begins. */
void share_ended(struct hd_engine *e, share *s);
/* Its document, "workflow-share/<name>", has changed. */
void share_heard(struct hd_engine *e, place_id doc, const char *name);
/* In each pump: takes slots that are needed, and gives those back that are not. */
void share_work(struct hd_engine *e);
uint64_t share_deadline(const struct hd_engine *e);
/* No step runs here any more: gives all slots back, and waits until that is stored. */
void share_leave(struct hd_engine *e);

#endif
