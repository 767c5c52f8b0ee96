/* engine.h -- what hangs together behind an hd_engine.
 *
 *     engine.c   life, actions
 *     shard.c    leases: which instances run here
 *     version.c  versions of workflows
 *     live.c     instances in memory
 *     document.c and in the store
 *     flight.c   commits
 *     stall.c    instances that cannot go on
 *     failure.c  a line in the log for each that has failed
 *     mail.c     signals that are kept
 *     start.c    starts
 *     control.c  await, cancel, signal, pause
 *     rerun.c    instances that are over run again
 *     child.c    instances that are steps of others
 *     line.c     named queues
 *     limit.c    how many steps of a key may run at once; share.c over several engines
 *     journal.c  what an instance has done
 *     remove.c   instances that are over leave the store; keep.c by themselves
 *     look.c     lists, and what an instance does now
 *     schedule.c starts by the clock; schedule_calls.c what programs say about them
 *     inbox.c    what other processes ask for, by documents
 *     step.c     steps: completion, retries, timers
 *     dispatch.c queues of ready steps, workers, claims
 *     here.c     the worker that runs actions on the runtime's thread
 *     pool.c     the worker that runs them on threads
 *     within.c   the worker that runs them within a transaction
 *     watcher.c  steps that end when something outside of the engine does
 *     remote.c   workers in other processes, on a socket
 *     away.c     workers in other processes, through the store; guest.c is the other end
 *     check.c    what holds between two turns
 *
 * Completions and timers walk instances; one commit stores all that they have changed; when it is stored, the
 * steps that have become ready are offered to workers. While a commit is under way completions that arrive share the
 * next one; if they are many, that is begun beside it, so that walking and syncing go on at the same time. No step is
 * begun, and no end is told, before it is stored. */
#ifndef WORKFLOW_ENGINE_H
#define WORKFLOW_ENGINE_H

#include "store/lease.h"
#include "store/tx.h"
#include "store/runtime.h"
#include "workflow/child_id.h"
#include "workflow/save.h"
#include "workflow/task.h"
#include "workflow/walk.h"
#include "workflow/zone.h"

/* Part of a space's instances; see shard.c. */
typedef struct shard {
    struct hd_engine *e;
    uint32_t number;
    lease lease;         /* not open where no other process can run instances */
    bool runs;           /* its instances are in memory, and run here */
    bool shall_rise;     /* the lease is ours: a pump takes its instances up; by shard_rise_soon */
    uint64_t rise_after; /* not before every commit of the runtime up to this one has its verdict */
    uint64_t fenced;     /* the last transaction (engine.transactions) that claims the lease */
    uint64_t
        drains_ns; /* since when no step of it is begun, because it is to be given away; 0: not */
    char heir[SESSION_TEXT]; /* the member that it is to be given to */
    bool cleared; /* no entry of an engine before this one is left for processes; by away.c */
} shard;

/* An engine of another runtime, that would run instances of the space. */
typedef struct member {
    char session[SESSION_TEXT];
    place_id doc; /* one reference */
} member;

#define SHARDS_MAX    1024
#define MEMBER_PREFIX "lease-member/workflow/"
#define MEMBER_KIND   "lease.member"

/* A signal that came before anything waited for it. */
typedef struct mail {
    char *name;       /* owned */
    hd_value payload; /* owned */
    uint32_t number;
} mail;

/* Of one instance: mail.c. */
typedef struct mailbox {
    VEC(mail) kept; /* by number */
    /* The first `offered` of `kept` match no step that waits now. By step_deliver. */
    uint32_t offered;
    uint32_t last;       /* the highest number that was given */
    uint32_t stored;     /* the document has those up to this number, but for `taken` */
    VEC(uint32_t) taken; /* numbers of those that the document has, and a step has */
    bool in_document;    /* the document has any */
} mailbox;

struct live;
typedef VEC(struct live *) live_vec;

/* A commit that waits for its verdict. */
typedef struct flight {
    struct hd_engine *e;
    uint64_t number; /* of engine.commits_begun */
    bool busy;
    bool alone;     /* it stores one instance, one family, or one step for another process */
    live_vec lives; /* what it stores */
} flight;

/* So many commits may be under way: while one is synced, the next is made. */
#define FLIGHTS 2
/* A commit that is begun before everything that is ready has been done must be worth a sync of its own: by the number
 * of its instances, and by the time that it took to make. Two halves, of which one is made while the other is synced,
 * are faster than the whole if a sync takes less time than making the whole. */
#define FLIGHT_GROUP 128
/* When so many have changed, no further step or timer is taken until the next commit begins. */
#define FLIGHT_MOST 4096

/* The store has refused the commit of a step that ran within a transaction. */
typedef struct refusal {
    char *step;       /* its id; owned */
    hd_status status; /* the last time */
    uint32_t times;
} refusal;

/* An instance that is not over, or whose end is not stored yet. Only an active engine has any. */
typedef struct live {
    list_node link; /* in engine.lives */
    struct hd_engine *e;
    shard *shard;
    /* NULL: it is being loaded, or waits for memory to be loaded (lame), or is stalled. */
    instance *in;
    list_node lame; /* in engine.lame */
    char *id;       /* "name/key"; owned */
    place_id doc;   /* its document; one reference */
    place_id meta;  /* the metadata, with the kind; one reference; 0: not looked up yet */
    int32_t priority;
    char *line;                  /* its steps' queue, unless they name one; NULL: none; owned */
    uint64_t turn, turns_serial; /* of the step that became ready last */
    mailbox mail;
    /* What its document begins with, owned; absent: the document is in the store. */
    hd_value record;
    struct strand *
        awaited; /* the parent's, that waits for this; NULL: none, or its instance is not in memory */
    uint64_t journaled; /* entries of its journal that are stored, or in the commit under way */
    /* The segment of the journal that has the last of them: a step that ends while the store cannot be read is stored
     * without a look at the store. Referenced; 0: not needed yet. */
    place_id segment;
    bool kin;       /* it has, or had, a parent or children in memory */
    bool orphaned;  /* the parent waits no longer: it is to be cancelled */
    bool abandoned; /* the parent has stalled: so it is, again, if that was lost */
    uint32_t depth; /* of parents above it */
    list_node
        family; /* in engine.families or postponed: there is something to do about its parent or children */
    VEC(place_id)
    messages; /* of the inbox, that its changes answer: removed with the next commit; referenced */
    uint32_t answered; /* of them, those that the commit under way removes */
    /* It runs again, which is not stored yet: what its document says of its end goes with the next commit. */
    bool again;
    char *again_at;        /* the node that it begins at; NULL: at the beginning; owned */
    bool changed;          /* in engine.changed: its next save is due */
    struct flight *flight; /* the commit under way that stores it; NULL: none does */
    bool stored;           /* no change of it is under way: its steps may begin */
    VEC(refusal) refusals; /* of its steps that run within a transaction: within.c */
    /* Why it cannot go on: the next commit, or one under way, marks it as stalled; or it is lame. It has no `in`.
     * Owned; NULL: it can go on. */
    hd_error *stalled;
} live;

typedef struct action_entry {
    char *name; /* owned */
    hd_action_spec spec;
} action_entry;

struct pool;
struct here;
struct aways;
struct guests;
struct remotes;
struct shelf;

/* An instance whose end is waited for; control.c. */
typedef struct waited {
    char *id;     /* owned */
    place_id doc; /* referenced: changes by others are heard */
    list waiters; /* calls of hd_workflow_then, in order */
} waited;

typedef struct known_zone {
    char *name; /* owned */
    zone *z;    /* owned */
} known_zone;

/* A path that documents of instances have, found by its last segment where that has at most eight bytes. */
typedef struct path_slot {
    uint64_t segment;
    hd_path parent, path; /* `path` is referenced; the root: the slot is empty */
} path_slot;
#define PATH_SLOTS 64

struct hd_engine {
    hd_runtime *rt;
    struct hd_engine *next; /* of the runtime's engines, each of a space of its own */
    const hd_env *env;
    hd_heap *heap;
    char *space; /* owned */
    struct key *space_key;
    shard *shards; /* owned */
    uint32_t shard_count;
    bool shared;           /* others can run the space's instances: leases say who does */
    bool observer;         /* it never runs any */
    bool active;           /* a shard runs here */
    bool uneven;           /* leases and members are to be compared */
    bool doubts_members;   /* one of them may have died */
    uint64_t patience_ns;  /* for how long a drain waits for steps that run */
    uint64_t calm_ns;      /* monotonic clock: until then no shard is drained */
    VEC(member) members;   /* other runtimes that would run shards */
    place_id membership;   /* the document that says so of this one; 0: none does. Referenced */
    uint64_t transactions; /* that engine_begin has begun */
    bool listens;
    /* The last pump could not do all of its work: there was no memory, or the store could not be read. It is tried
     * again soon; those that wait for an instance are told of the first, and go on waiting in the second case. */
    bool starved, nomem;
    /* How many commits in a row the store has refused for good; and until then the engine makes none. */
    uint32_t refusals;
    uint64_t held_until;
    /* An instance with a parent or children was lost after a walk: what the others have made of that walk is not
     * stored, but lost too, so that all of them are at one state. */
    bool spoiled;
    /* The whole inbox is to be read again: there was no memory to note a message, one could not be read, or the effect
     * of one was not stored. */
    bool overheard;
    bool in_inbox;  /* inbox_work is at work: a function that it calls may call it again */
    uint64_t group; /* of our commits: the listener does not hear them. Drawn when it was opened */
    uint64_t last_key;   /* of instances that were started without one: milliseconds and a count */
    VEC(place_id) heard; /* documents that others have written; referenced */
    /* How many of them wait for the verdict of a commit of this runtime, and the first such commit. By inbox_work. */
    uint32_t undecided;
    uint64_t undecided_seq;
    VEC(place_id)
    spent; /* messages that can have no effect any more: removed with the next commit */
    uint32_t message_serial;
    VEC(waited *) waited; /* owned */
    table by_waited;      /* of `waited`, by id */
    list stored;          /* who hears that what was said is stored: stored.c */
    list keyed;           /* starts with a key that are not stored yet: start.c */
    uint64_t keyed_count; /* starts with a key so far, stored or not */
    list families;
    list
        postponed; /* families that there was no memory for: back among `families` with the next pump */
    list lame;     /* instances that could not be loaded: tried again in each pump */
    classes *classes;
    world *w;
    VEC(plan *) plans;      /* every version that is known; referenced */
    char *last_name;        /* that a version was looked up by; NULL: none; owned */
    place_id last_name_doc; /* its document, referenced */
    VEC(action_entry) actions;
    list lives;
    table by_id;                /* of `all` */
    live_vec all;               /* by index of by_id; NULL: free */
    VEC(uint32_t) free_indices; /* of `all` */
    path_slot paths[PATH_SLOTS];
    hd_path kind_path;                 /* of "kind" in metadata; referenced */
    hd_value kinds[INSTANCE_STATUSES]; /* of documents of instances, by status; owned */
    live_vec changed;                  /* to be stored with the next commit */
    uint64_t changed_ns;               /* monotonic clock: when the first of them changed */
    uint64_t sync_ns;  /* how long commits take in the store (authority.sync_ns): the median */
    uint64_t store_ns; /* how long it takes to put one instance into a commit: the median */
    /* Numbers of commits: the last that was begun; and the last one with which everything is stored that had changed
     * when it was begun. */
    uint64_t commits_begun, commits_done;
    /* Of the commits up to this number one was refused, or has not stored everything: what it left is stored with a
     * commit that is begun later. */
    uint64_t commits_short;
    flight flights[FLIGHTS];
    uint32_t waits; /* how many of them are busy */
    /* A commit was longer than the store takes: so many commits store one instance each, or one family, until it is
     * known which of them it was. Steps for other processes have commits of their own then. */
    uint32_t singly;
    uint32_t late; /* instances that have changed again while a commit under way stores them */
    bool closing;
    /* Closed while commits wait for verdicts: everything but the engine itself is freed. */
    bool orphan;
    binheap timers; /* of strands, by due time, wall clock ms; among equal ones by strand.begun */
    uint64_t steps_begun;             /* instance.h */
    VEC(struct schedule *) schedules; /* of the space; only an active engine has any */
    table by_schedule;                /* of `schedules`, by name */
    list awaiting;          /* of those: a time of theirs waits for the end of an instance */
    list to_schedule;       /* of them, those whose documents are to be looked at */
    binheap alarms;         /* of them, by due time, wall clock ms */
    uint64_t risen_ms;      /* wall clock: when it became active; times before that were missed */
    uint32_t schedule_asks; /* their transactions without a verdict */
    uint64_t keep_ms, keep_most; /* of workflows that do not say: keep.c; 0: no bound */
    size_t value_max;            /* bytes, as JSON, of what a program gives at once */
    VEC(struct shelf *) shelves; /* ends that are kept for a while; owned */
    uint64_t shelf_due_ms;       /* wall clock: no shelf is due before */
    struct shelf *swept;  /* whose instances a transaction removes now; NULL: none, or gone */
    uint64_t swept_count; /* of them */
    uint32_t sweeps;      /* such transactions without a verdict: 0 or 1 */
    uint32_t note_serial;
    VEC(known_zone) zones;
    uint64_t age;          /* counts steps that became ready */
    uint64_t turn;         /* of the step that was begun last; see rank() in step.c */
    uint64_t turns_serial; /* turns are counted from 0 again when no step waits */
    VEC(line *) lines;     /* named queues that were heard of; owned */
    name_vec served;       /* of them, those that the actions of this program serve; none: all */
    VEC(queue *) queues;   /* one for each action that was heard of; owned */
    table by_action;       /* of `queues` */
    list hot;              /* queues with steps to offer, and workers with room */
    list workers;
    VEC(task *) claims;      /* all that were ever made, by the low bits of their tokens; owned */
    VEC(task *) free_claims; /* of them, those that can be used again */
    uint64_t claim_serial;
    VEC(limit *) limits; /* keys that steps have now; owned */
    table by_key;        /* of `limits` */
    binheap deadlines;   /* of claims, by the monotonic clock */
    uint64_t ready_count, claimed_count;
    struct here *here;    /* NULL: no action has asked for it yet */
    hd_revoke_fn revoked; /* hears of attempts of `later` that were taken back; may be NULL */
    void *revoked_ctx;
    struct later *later;   /* NULL: no action has asked for it yet */
    struct pool *pool;     /* NULL: no thread was needed yet */
    struct within *within; /* NULL: no action has asked for it yet */
    list watchers;
    uint32_t threads;
    struct remotes *remotes; /* workers in other processes; NULL: not served */
    struct aways *aways;    /* processes that do steps through the store; NULL: none was heard of */
    struct guests *guests;  /* steps of another process's engine; NULL: nothing was announced */
    uint32_t announcements; /* commits about ourselves without a verdict */
    uint32_t member_writes; /* commits about members without a verdict; by shard.c */
    list shares_due;        /* to be looked at in this pump; share.c */
    list shares_waiting;    /* to be looked at later */
    uint32_t share_asks;    /* commits about them without a verdict */
    bool limits_closed;     /* no step may enter: limits_close */
    bool limits_stuck;      /* there was no memory to let a step in that its limit allows */
    uint32_t turns;         /* engine_check counts them */
    hd_engine_stats stats;
};

/* What the function of an action sees. */
struct hd_action {
    const char *id;
    uint32_t attempt;
    hd_pool *pool;
    hd_tx *tx;       /* of an action within a transaction; else NULL */
    struct job *job; /* of the thread pool; NULL: it runs on the runtime's thread */
    uint64_t token;  /* of the claim, where the attempt may end later; else 0 */
    uint64_t timeout_ms, heartbeat_ms; /* of the step; 0: none */
    hd_value result;
    char class_name[64];
    char message[400];
};

/* ---- engine.c */
const action_entry *engine_action(const hd_engine *e, const char *name);
/* Whether an instance can have this id: it is not too long, and UTF-8. */
bool engine_may_exist(const char *id);
/* The document "<prefix><id>" of the space, with one reference more; 0: no memory, or no document can have that name.
 * No handle is made: the replica may forget the document when nothing refers to it. */
place_id engine_document(hd_engine *e, const char *prefix, const char *id);
/* Nothing can have written the document, since its name has just been made up: it is known to be absent without a look
 * at the store. A commit that makes it claims that. */
void engine_assume_absent(hd_engine *e, place_id doc);
/* Loads the document, if it is not here: a commit that is being made must not fail half way because the store cannot be
 * read now. Any status but one that may pass is HD_OK: what writes the document finds out, too, and knows what it
 * means. */
hd_status engine_load(hd_engine *e, place_id doc);
/* What is visible there. Failed: it could not be read, which says nothing about whether it is there. */
hd_value engine_read(hd_engine *e, hd_pool *pool, const char *prefix, const char *id);
/* Whether the value is, as JSON, at most as long as a program may give at once. */
bool engine_takes(const hd_engine *e, hd_value v);
/* HD_OK: expressions of this workflow can read the value. */
hd_status engine_try(hd_engine *e, plan *p, hd_value v, hd_error *error);
/* Whether what failed with this status is tried again as it is: no memory, or the file cannot be read now. */
static inline bool engine_may_pass(hd_status status) {
    hd_class class_ = hd_status_class(status);
    return class_ == HD_CLASS_NOMEM || class_ == HD_CLASS_TRANSIENT;
}
/* What failed with this status is tried again with a later pump. */
static inline void engine_starve(hd_engine *e, hd_status status) {
    e->starved = true;
    if (hd_status_class(status) == HD_CLASS_NOMEM) e->nomem = true;
}
/* A transaction of the engine: of class event, not heard by the listener. */
hd_status engine_begin(hd_engine *e, hd_tx **out);
/* It is refused if another session has taken the shard's lease. Everything that the engine writes is fenced by the
 * shard that it belongs to. */
hd_status engine_fence(hd_tx *tx, shard *s);
/* The engine may not run instances any more: they are dropped from memory. Shards that shall rise will. */
void engine_stand_down(hd_engine *e);
/* The same for those of a shard. */
void engine_leave_shard(shard *s);
/* The engine of the runtime with this number (`group`); NULL: it was closed. */
hd_engine *engine_find(const hd_runtime *rt, uint64_t group);
/* The engine was closed before its last verdict came: frees it when that has come. */
void engine_free_orphan(void *ctx);
char *engine_text(const hd_engine *e, const char *from);
void engine_free_text(const hd_engine *e, char *chars);

#define INSTANCE_PREFIX "workflow/"
#define VERSION_PREFIX  "workflow-version/"
#define NAME_PREFIX     "workflow-name/"
#define INBOX_PREFIX    "workflow-inbox/"
#define LINE_PREFIX     "workflow-queue/"
#define LINE_KIND       "workflow.queue"
#define SCHEDULE_PREFIX "workflow-schedule/"
#define SCHEDULE_KIND   "workflow.schedule"
#define WORKER_PREFIX   "workflow-worker/"
#define WORKER_KIND     "workflow.worker"
#define TASKS_PREFIX    "workflow-tasks/"
#define TASKS_KIND      "workflow.tasks"
#define NOTE_PREFIX     "workflow-ended/"
#define SHARE_PREFIX    "workflow-share/"
#define SHARE_KIND      "workflow.share"
#define SHARE_NAME_SIZE 120

/* ---- shard.c */
/* The shard of an instance or a schedule; of those that share the place (16 bits), which ids of children carry. */
shard *shard_of(const hd_engine *e, const char *id);
uint32_t shard_place(const char *id);
/* Whether this engine runs the instance, or would if it was there. */
bool shard_runs(const hd_engine *e, const char *id);

/* Finds out how many shards there are, or declares it (`wanted`; 0: as many as there are). */
hd_status shard_open(hd_engine *e, uint32_t wanted);
/* Takes leases that are free, and waits for the outcome. */
hd_status shard_seek(hd_engine *e);
/* Gives all leases up, and waits until that is stored. */
void shard_close(hd_engine *e);
/* In each pump: looks after the leases, and gives away what is too much. */
void shard_work(hd_engine *e);
uint64_t shard_deadline(const hd_engine *e);
/* A commit that takes a lease, or gives it up, has no verdict yet. */
bool shard_is_asked(const hd_engine *e);

/* Whether the document is a lease of the engine, a member, or the number of shards; and what has happened to it. */
bool shard_concerns(const hd_engine *e, place_id doc, const char *name);
hd_status shard_heard(hd_engine *e, hd_pool *pool, place_id doc, const char *name);
/* The shard's lease is ours: its instances are taken up when the commits under way have their verdicts (0470). */
void shard_rise_soon(shard *s);
/* A lease is ours, and its instances are not taken up yet; of one shard, or of any, that can be done now. */
bool shard_shall_rise(const hd_engine *e);
bool shard_may_rise(const shard *s);
bool shard_one_may_rise(const hd_engine *e);
/* A process has ended: if it was a member, its document is removed. */
void shard_doubt_members(hd_engine *e);
/* How many shards run here. */
uint32_t shard_count_running(const hd_engine *e);

/* ---- check.c */
/* Asserts W1 to W3 and that all parts agree, between two turns. Nothing without assertions. */
void engine_check(hd_engine *e);

/* ---- version.c */
/* The plan of a version, borrowed. HD_NOT_FOUND: it is not in the store; HD_NOMEM; what plan_make returns. */
hd_status version_plan(hd_engine *e, const char *version, plan **out);
void version_forget_name(hd_engine *e);
/* The one that new instances of the name begin with. */
hd_status version_latest(hd_engine *e, const char *name, plan **out);

/* ---- live.c */
/* What all instances share. document_fini also after a failure. */
hd_status document_init(hd_engine *e);
void document_fini(hd_engine *e);
live *live_find(const hd_engine *e, const char *id);
/* Takes up an instance of the store, unless it is over. HD_CORRUPT: it cannot be read; then the next commit marks it as
 * stalled. Without memory for loading it, that is tried again, and this is HD_OK. HD_NOMEM: nothing is done. */
hd_status live_take_up(hd_engine *e, const char *id);
/* An instance whose document does not exist yet and begins with `record`, which says the same as the options. Without a
 * key in them make_key has drawn its id. */
hd_status live_start(hd_engine *e, const char *id, plan *p, hd_value record,
                     const hd_start_options *o);
/* Runs an instance that is over again: from `node` of its first function, with the variables it had; NULL: from the
 * beginning, with its input. HD_NOT_FOUND, HD_USAGE with hd_runtime_error, HD_NOMEM. */
hd_status live_rerun(hd_engine *e, const char *id, const char *node);
/* The instance has walked: its changes are stored with the next commit. */
void live_changed(live *l);
/* A walk, or a commit, has failed: the instance goes on from what is stored. */
void live_lost(live *l);
/* Tries those again for which there was no memory. */
void live_retry(hd_engine *e);
/* The commit with its changes is stored; the instance may have changed since. One that is over is freed. */
void live_accepted(live *l);
/* What it has changed can never be stored: it stalls, for this reason, or is freed. */
void live_drop(live *l, const hd_error *error);
/* The instance cannot go on: of what it did since it was stored nothing stays, and its children are cancelled.
 * HD_NOMEM: nothing is done. */
hd_status live_stall(live *l, const hd_error *error);
/* It is in no commit that is under way or to be made. */
void live_leave_commits(live *l);
/* Whether reading or loading it failed in a way that trying again does not mend. */
bool live_is_hopeless(hd_status status);
void live_free(live *l);

/* ---- document.c */
/* What the documents of all instances share. document_fini also after a failure. */
hd_status document_init(hd_engine *e);
void document_fini(hd_engine *e);
/* Writes what the instance has changed. If it is new and its first walk is unfit, it stalls. */
hd_status document_store(hd_tx *tx, live *l);
/* Loads the documents that the next commit will write of the instance; or that it may write after a step that is about
 * to begin. HD_NOMEM, HD_BUSY, ...: one cannot be loaded now. */
hd_status document_prepare(live *l);
hd_status document_prepare_step(live *l);
/* Of the encoder, and of the store: the instance has a value that has no form there, or is too long. */
bool document_is_unfit(hd_status status);
void document_why_unfit(hd_status status, hd_error *error);

/* ---- flight.c */
/* Commits what has changed, unless a commit is under way that this one cannot be made beside. */
hd_status flight_begin(hd_engine *e);
/* The same in a transaction that has begun; it is ended in any case. */
hd_status flight_begin_in(hd_engine *e, hd_tx *tx);
/* Commits what has changed if it is a group (flight_is_group), and has it synced from now on; called where the program
 * starts many instances between two pumps. */
void flight_begin_group(hd_engine *e);
/* Gives up what has changed since the last commit: the instances are loaded again. */
void flight_lose_changed(hd_engine *e);
bool flight_has_news(const hd_engine *e);
/* Whether everything is stored that had changed when the commit of this number was begun, or has been given up. */
bool flight_is_stored(const hd_engine *e, uint64_t number);
/* Whether flight_begin would store something now. */
bool flight_may_begin(const hd_engine *e);
/* Whether what has changed is a group that is to be committed before more is done. */
bool flight_is_group(const hd_engine *e);
/* What the store has said to a commit of the engine: after a refusal the next ones wait for a while. */
void flight_note_verdict(hd_engine *e, hd_status status);
bool flight_is_held(const hd_engine *e);

/* ---- mail.c */
/* A signal has come. HD_NOMEM. */
hd_status mail_add(live *l, hd_value name, hd_value payload);
/* The signals that the document has; the mailbox is empty. HD_NOMEM; HD_CORRUPT: they are not what mail_save writes. */
hd_status mail_load(live *l, hd_value document);
/* The next save removes what the document has; the mailbox is empty. */
void mail_leave(live *l, hd_value document);
/* A step takes the one at this place of `kept`; `*payload` is owned. HD_NOMEM. */
hd_status mail_take(live *l, uint32_t at, hd_value *payload);
/* Writes what has changed. An instance that is done drops signals that no step has taken. One that has failed, was
 * cancelled or stalled keeps them, as it keeps its variables: it may be run again from a node. */
hd_status mail_save(live *l, hd_pool *pool, const doc_writer *out);
/* Empties the mailbox; the document keeps what it has. */
void mail_forget(live *l);

/* ---- stall.c */
/* Notes why the instance cannot go on, and logs it. False: no memory. */
bool stall_note(live *l, const hd_error *error);
void stall_forget(live *l);
/* Writes that into its document, which stays as it is otherwise. */
hd_status stall_write(hd_pool *pool, const live *l, const doc_writer *out);

/* ---- failure.c */
/* The end of the instance is stored: if it has failed, and has no parent that hears of it, the log says so. */
void failure_log(const live *l);

/* ---- start.c */
/* -1000 to 1000. That of a child is added to its parent's, and may be beyond. */
bool start_priority_is_good(int32_t priority);
/* The input with its defaults; failed, with hd_runtime_error: it does not fit. */
hd_value start_input(hd_engine *e, hd_pool *pool, plan *p, hd_value input);
/* What the document of an instance begins with. */
hd_value start_record(hd_engine *e, hd_pool *pool, const plan *p, hd_value input, int32_t priority,
                      const char *line_name);
/* Runs the first walk of an instance whose document says `record`. */
hd_status start_walk(live *l, hd_value record, hd_error *error);
/* The engine leaves the instance to the one that runs its shard next. If its start is not stored, and the store refuses
 * the commit that was to store it, the start is stored by a commit of its own. */
void start_hand_on(live *l);
/* Whether one of the first `number` starts with a key is not stored yet. */
bool start_is_pending(const hd_engine *e, uint64_t number);
/* Whether the document is of such a start: the instance is not there yet. */
bool start_comes(const hd_engine *e, place_id doc);
/* The engine is closed: its runtime goes on with starts that are not stored yet. */
void start_fini(hd_engine *e);

/* ---- control.c */
/* The instance's document; absent: there is none. What has been heard is acted on before. */
hd_value control_look_at(hd_engine *e, hd_pool *pool, const char *id);
/* Does what a message says: "signal", "cancel", "pause", "resume". HD_NOT_FOUND: the instance is not open;
 * HD_USAGE: it cannot be done; hd_runtime_error says why. */
hd_status control_apply(hd_engine *e, const char *id, hd_value message);
/* Raises CancelledError where the instance waits, unless it has been cancelled so often. */
hd_status control_cancel(live *l, uint32_t times);
/* The instance is over, and that is stored: those that wait are told. */
void control_tell(hd_engine *e, const char *id);
/* The instance has left the memory, and another engine may have stored its end. While it was there, a change of its
 * document told nothing to those that wait: the inbox looks at the document again. */
void control_look_again(hd_engine *e, const char *id);
/* Whether the status in a document says that the instance is over. */
bool control_is_over(hd_value document);
void control_fini(hd_engine *e);

/* Tells those who wait for what is stored by now. */
void stored_tell(hd_engine *e);
bool stored_is_due(const hd_engine *e);
void stored_fini(hd_engine *e);
/* "to" and "verb". */
hd_value control_message(hd_pool *pool, const char *id, const char *verb);

/* ---- rerun.c */
/* Why an instance with this document cannot begin at the node of its first function; NULL: it can. */
const char *rerun_why_not(const plan *p, hd_value doc, uint32_t node);

/* ---- child.c */
/* After a walk or a load: if a child is to be begun or told about, child_work will. */
void child_note(live *l);
/* The instance waits for its children no longer: they are cancelled. */
void child_leave(live *l);
/* The strand's instance leaves the memory: the child stays, and is found again. */
void child_unlink(strand *s);
/* The strand is at a CHILD, and its instance is not paused: the child begins, if it has not. */
void child_resume(strand *s);
/* The instance leaves the memory: a parent that waits for it looks at the store. */
void child_forget(live *l);
/* Those that were postponed are due again. */
void child_retry(hd_engine *e);
bool child_work(hd_engine *e);

/* ---- journal.c */
/* Loads the segment that the next entry is appended to, and keeps it while the instance is in memory. */
hd_status journal_load(live *l);
void journal_forget(live *l);
/* Appends what the instance has noted. */
hd_status journal_write(hd_tx *tx, live *l, const doc_writer *out);
/* Removes at most so many of the instance's segments, the last ones. *count: entries that it has; then, that are
 * left. */
hd_status journal_cut(hd_tx *tx, hd_engine *e, const char *id, uint32_t most, uint64_t *count);

/* ---- remove.c */
/* Removes an instance that is over, in a transaction: at most `most` segments of its journal, and then the document.
 * *gone: nothing is left. `finished`: when it ended; 0: whenever that was. HD_NOT_FOUND: it is not there, or ended at
 * another time; HD_USAGE: it is not over; HD_BUSY: its parent waits for it. */
hd_status remove_some(hd_tx *tx, hd_engine *e, const char *id, uint64_t finished, uint32_t most,
                      bool *gone);

/* ---- keep.c */
/* The instance is over, which a commit is to store: if a policy says so, that is noted. HD_NOMEM. */
hd_status keep_note(live *l);
/* Writes what was noted with the commit, unless that has failed; returns its status, or why this failed. */
hd_status keep_write(hd_engine *e, hd_tx *tx, hd_status status);
/* A commit was refused. */
void keep_lost(hd_engine *e);
/* Ends are to be counted: that needs a moment without a commit under way. */
bool keep_must_count(const hd_engine *e);
/* Removes what is due. True: something was looked at. */
bool keep_work(hd_engine *e);
uint64_t keep_deadline(const hd_engine *e);
/* Finds what an engine before this one has noted. */
hd_status keep_recover(hd_engine *e);
/* Another engine has written the note, or removed it. */
hd_status keep_heard(hd_engine *e, const char *name);
/* The instance was run again or removed: an end of it that was noted is one no more. */
void keep_doubt(hd_engine *e, const char *id);
void keep_fini(hd_engine *e);

/* ---- inbox.c */
/* Hears of documents that others write, from here on. */
hd_status inbox_listen(hd_engine *e);
/* Acts on what was heard, unless that waits for a verdict. */
void inbox_work(hd_engine *e);
/* Something was heard that waits for no verdict. */
bool inbox_has_work(const hd_engine *e);
/* Notes messages and starts that came while no engine was active. */
hd_status inbox_recover(hd_engine *e);
/* Leaves a message for the active engine. `verdict` as in hd_tx_commit; NULL: hd_runtime_sync tells. */
hd_status inbox_post(hd_engine *e, hd_value message, hd_verdict_fn verdict, void *ctx);
/* The document is removed with the next commit of the active engine. */
void inbox_spend(hd_engine *e, place_id doc);
/* The commit that removes them has begun. If it is refused, the inbox is read again. */
void inbox_forget_spent(hd_engine *e);
/* Whether inbox_spend was called for the document, and the commit that removes it is not stored yet. */
bool inbox_has_spent(const hd_engine *e, place_id doc);
/* Writes a message within a transaction. */
hd_status inbox_write(hd_engine *e, hd_tx *tx, hd_value message);
/* Looks at a document as if another had written it. */
void inbox_note(hd_engine *e, place_id doc);
/* Looks at all documents with steps for the process, also those that it made for another number of shards. */
void inbox_note_tasks(hd_engine *e, const char *session);
void inbox_fini(hd_engine *e);

/* ---- schedule.c */
/* The schedule's document is there, or has changed, or is gone. HD_NOMEM. */
hd_status schedule_heard(hd_engine *e, const char *name);
/* Starts what is due. True: something was looked at. */
bool schedule_work(hd_engine *e);
uint64_t schedule_deadline(const hd_engine *e);
/* The instance has left the memory. */
void schedule_ended(hd_engine *e, const char *id);
void schedule_fini(hd_engine *e, const shard *s); /* of a shard; NULL: all */
void schedule_forget_zones(hd_engine *e);

/* ---- step.c */
/* A step of this rank is begun. */
void step_note_turn(hd_engine *e, uint64_t of_rank);
/* Puts the instance's steps that wait for workers or times into the queues. */
void step_queue(live *l);
/* Takes all its steps out. */
void step_unqueue(live *l);
/* Its steps that wait for a worker wait outside of the queues from now on; what runs may finish. */
void step_suspend(live *l);
/* The step's claim has ended, with a result; with an exception; or because its worker is lost. */
void step_succeed(hd_engine *e, strand *s, hd_value result);
void step_fail(hd_engine *e, strand *s, const char *class_name, const char *message);
/* The same with the exception as a value that has "$error". */
void step_fail_with(hd_engine *e, strand *s, hd_value exception);
void step_lost(hd_engine *e, strand *s);
/* What the step waits for has raised an exception: no retry. */
void step_raise(hd_engine *e, strand *s, uint32_t class_, const char *message);
void step_raise_value(hd_engine *e, strand *s, ev exception);
/* Fires timers, offers ready steps. True: there was something to do. */
bool step_work(hd_engine *e);
uint64_t step_deadline(const hd_engine *e);
/* Gives signals that have come to the WAITs of the instance. */
hd_status step_deliver(live *l);
/* What follows a walk: signals that are kept go to steps that wait for them now, and what has changed is stored with
 * the next commit. `status`: of the walk. If it has failed, or this fails, the instance is loaded again (live_lost). */
hd_status step_end_walk(live *l, hd_status status);

/* ---- here.c */
/* The action is run on this thread from now on. HD_NOMEM. */
hd_status here_serve(hd_engine *e, const char *action);
void here_close(hd_engine *e);
/* An attempt at the step, with a pool for the values that the function makes. Both are borrowed. */
hd_action here_attempt(const task_view *t, hd_pool *pool);
/* Runs an action's function; false: it failed, and class_name and message are set. On any thread. */
bool here_run(const hd_action_spec *spec, hd_action *a, hd_value args);
/* Whether the function, which has returned the status, has set a result; false: it failed, and class_name and message
 * are set. */
bool here_judge(hd_action *a, hd_status status);
/* Sets class_name and message by the status that the function has returned, unless it has set them itself. */
void here_blame(hd_action *a, hd_status status);

/* ---- within.c */
/* The action runs within a transaction from now on. HD_NOMEM. */
hd_status within_serve(hd_engine *e, const char *action);
/* Whether such an action may run may have changed. */
void within_look(hd_engine *e);
/* The verdict on a commit. True: an action was run within it; if it was refused for good, the step fails. */
bool within_told(hd_engine *e, uint64_t number, hd_status status);
/* Whether a commit that was refused with this status would be refused again because of what the action does. */
bool within_is_to_blame(hd_status status);
void within_forget(live *l);
/* The transaction has written the start of an instance: if it is that of an action, the instance is taken up when it
 * is stored. HD_NOMEM. */
hd_status within_started(hd_engine *e, const hd_tx *tx, place_id doc);
void within_close(hd_engine *e);

/* ---- watcher.c */
void watcher_close_all(hd_engine *e);

/* ---- later.c */
/* Attempts at the action are begun on this thread and ended by the program. HD_NOMEM. */
hd_status later_serve(hd_engine *e, const char *action);
void later_close(hd_engine *e);

/* ---- remote.c. These accept NULL. */
/* Takes in what workers have said. */
void remotes_pump(struct remotes *r);
/* Tells them what there is to tell. */
void remotes_flush(struct remotes *r);
uint64_t remotes_deadline(const struct remotes *r);
/* The commit of this number was refused, or will not store what the instance of this document (0: any) has done since
 * the commit before: outcomes that it was to store count as late. */
void remotes_lost(struct remotes *r, uint64_t number, place_id doc);
void remotes_close(struct remotes *r);

/* ---- away.c */

/* The announcement of this session is there, or has changed, or is gone. HD_NOMEM, HD_IO, ...: it is not known. */
hd_status away_heard(hd_engine *e, const char *session);
/* There is a document "workflow-tasks/<name>", with steps for a session. It is removed if no process announces that
 * session. */
hd_status away_heard_tasks(hd_engine *e, const char *name);
/* Whether the document `id` has steps for a process, of a shard that runs here. */
bool away_concerns(const hd_engine *e, const char *id);
/* The documents with steps for a session, one for each shard; NULL: no memory. */
place_id *away_documents(hd_engine *e, const char *session);
void away_free_documents(hd_engine *e, place_id *docs);
/* Looks for processes that have ended, if that is due. */
void away_work(hd_engine *e);
uint64_t away_deadline(const hd_engine *e);
/* How many steps are to be written, or to be taken back, with the next commit; writes them, at most so many; they are
 * sent. */
uint32_t away_news(const hd_engine *e);
hd_status away_write(hd_engine *e, hd_tx *tx, uint32_t most);
void away_written(hd_engine *e);
/* Loads the documents that it will write. */
hd_status away_load(hd_engine *e);
/* A commit that wrote one step alone was longer than the store takes: the step fails. False: there was none. */
bool away_drop_long(hd_engine *e);
/* A commit was refused: what the documents say is not known. */
void away_lost(hd_engine *e);
/* Whether the verb of a message is one of a process that does steps. */
bool away_is_said(const char *verb);
/* What a process says about a step: "outcome", "beat", "back". HD_NOT_FOUND: it is late; HD_USAGE. */
hd_status away_apply(hd_engine *e, hd_value message);
/* {"host", "pid", "session"} of the process that has the strand's step; absent: it is here, or with no worker. */
hd_value away_where(hd_pool *pool, const strand *s);
void away_fini(hd_engine *e);

/* ---- guest.c */

/* Announces what there is to announce, begins steps that have come, says what was made of them. */
void guest_work(hd_engine *e);
uint64_t guest_deadline(const hd_engine *e);
/* Whether the document is one of those that concern guests; it has changed. */
bool guest_concerns(const hd_engine *e, place_id doc);
hd_status guest_heard(hd_engine *e);
/* Actions have been registered or unregistered. */
void guest_actions_changed(hd_engine *e);
/* No step is begun any more, and the announcement is removed. */
void guest_close(hd_engine *e);
void guest_fini(hd_engine *e);

/* ---- pool.c */
hd_status pool_serve(hd_engine *e, const char *action);
/* Waits for what the threads are doing. */
void pool_close(hd_engine *e);

#endif
