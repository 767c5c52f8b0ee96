/* state.h -- streams, lanes, and the life of an event.
 *
 *     send --> lane (FIFO) --> preflight --> body --> commit, with receipt --> verdict --> over
 *                  ^               |                                              |
 *                  |     waits: time, nodes, load, origin, presync                |
 *                  +------------------- stale: again, by send order --------------+
 *
 * An event is in a lane, or in flight (its handling has been submitted), and ends once, in events_end(),
 * which tells the sender. (A send that found the stream full has no event of its own in the end: its sender
 * is told by events_tell_outcomes.) Each space has a lane of its own: a head that waits holds up the events
 * behind it, and no other lane. Spec 7.5, 7.6, I4, I11.
 *
 *     events.c          the step of a pass, what idle waits for, the end of an event
 *     lane.c     lanes: which of them have something to do, and what the others wait for
 *     id.c       ids and what derives from them
 *     send.c     sending, and the backlog
 *     stream.c   streams and their handlers
 *     handle.c   one handling: body, receipt, commit, verdict, retry
 *     post.c     events that are documents
 *     lineage.c         what depends on whether a transaction commits
 *     preflight.c       what a handler will read, and whether that is up to date
 *     outbox.c          side effects after the commit
 *     outbox_queue.c    where those wait */
#ifndef SCHEDULER_EVENTS_STATE_H
#define SCHEDULER_EVENTS_STATE_H

#include "base/binheap.h"
#include "base/slab.h"
#include "scheduler/gates/gates.h"
#include "scheduler/events/lineage.h"
#include "scheduler/runner/runner.h"

#define EVENTS_WINDOW_MS   30000 /* how long a stale basis is retried */
#define EVENTS_TRANSIENT   10    /* attempts at what fails for now */
#define EVENTS_BLOCKED_MAX 8  /* bodies in a row that returned HD_PENDING without a pending read */
#define EVENTS_BURST       32 /* handlings after which commits are sent on their way */
#define EVENTS_DAY_MS      UINT64_C(86400000)
#define RECEIPT            "receipt/" /* "receipt/<id>" is the receipt of an event */

#define EVENTS_FAILED "failed" /* metadata of a posted event that was not handled */

/* Negative controls: tests leave a part out and see that it is missed. */
enum { EVENTS_WITHOUT_GATE = 1, EVENTS_WITHOUT_ORIGIN = 2, EVENTS_WITHOUT_ORDER = 8 };

/* Where a lane stands. A lane that has events is in exactly one of these lists; an empty one in none. */
typedef enum lane_state {
    LANE_READY,   /* its head is to be looked at in the next step */
    LANE_TURN,    /* in the step that is under way */
    LANE_NODES,   /* its head waits for nodes: see lane.blocker */
    LANE_RECEIPT, /* its head waits for the verdict of an earlier delivery: any change wakes it */
    LANE_PARKED,  /* its head waits for a time, a document or its origin, which wakes it */
    LANE_ASKED,   /* its head waits for the program: a presync, a handler that is being loaded */
    LANE_READS,   /* its preflight said HD_PENDING: any change wakes it */
    LANE_STATES
} lane_state;

/* The events of one space, in order. Lanes are independent of each other and live as long as the
 * runtime. Written by lane.c, except for the last two fields, which preflight.c sets. */
typedef struct lane {
    const struct key *space; /* of the replica's homes, which stay */
    list queue;              /* events by order */
    list_node link;          /* in events.lanes_in[state]; unlinked: the queue is empty */
    lane_state state;        /* meaningless while unlinked */
    binheap_item timer;      /* linked: the lane becomes ready at this time */

    /* LANE_NODES: a node that the head waits for, and until when a time gate holds that node. While the
     * gate is closed the head cannot go on. id 0: every step looks at the head again. */
    hd_node blocker;
    uint64_t blocked_until;
    /* LANE_NODES: one of the nodes that the head waits for is suspended, or waits for a suspended run. Set
     * by preflight. */
    bool behind_suspended;
} lane;

/* The piece that a handler is of, and its pattern: for errors and log lines. */
typedef struct handler_owner {
    const char *piece, *pattern;
} handler_owner;

/* The part of a handler that is freed last: its ctx and its name. A handler may be removed while its body,
 * or a callback that was given its name, is on the stack; then this part waits in events.left until the
 * call returns. */
typedef struct belongings {
    list_node link; /* in events.left, once it is removed */
    struct stream *of;
    hd_release_fn release;
    void *ctx;
    size_t size;         /* of all of this */
    handler_owner owner; /* in `name`, behind the name */
    char name[];         /* the durable identity */
} belongings;

/* How long events of a stream have waited for nodes; written by preflight. After an event has gone on
 * without waiting any longer, the next event of the stream does not begin to wait from zero. */
typedef struct patience {
    uint64_t from; /* since when they wait for nodes, and for none that waits itself; 0: never */
    uint64_t unsettled;  /* since when they wait for nodes that do not settle; 0: they do not */
    uint64_t gave_up_at; /* when one last went on without them; 0: the last found them settled */
} patience;

/* An address that events are sent to. Lives as long as the runtime. */
typedef struct stream {
    place_id place; /* pinned */
    uint32_t home;  /* of its document: receipts live there too */
    lane *lane;     /* of the space of that home */
    char *link;     /* its link as JSON, for ids; owned */
    size_t link_size;
    char digest[HD_ID_SIZE];     /* of the link */
    char origin[HD_ID_SIZE - 1]; /* hash of the runtime's session and that */
    uint32_t queued;             /* events waiting in a lane */
    uint64_t handled, failed;    /* events that have ended, well or not; duplicates do not count */
    patience patience;
    uint64_t unsealed_at; /* when a handling last took outputs that were out of date; 0: never */

    /* The handler; fn NULL: there is none. */
    uint32_t generation; /* counts registrations */
    hd_handler_spec spec;
    belongings *has;     /* owned; NULL: there is no handler */
    const char *name;    /* of the last one; NULL once that is quite gone */
    handler_owner owner; /* ditto, then of "main" */
    VEC(hd_cell) inputs;
    bool warned_twice, warned_outside; /* told already */
    bool warned_unsettled; /* told, and no event was dispatched on settled inputs since */
    bool loading;          /* on_unhandled said HD_PENDING */
} stream;

enum {
    EVENT_POSTED = 1,
    EVENT_NAMED = 2,     /* the sender's own id */
    EVENT_PRESYNCED = 4, /* or need not be */
    EVENT_ASKED = 8,     /* the program was asked for a handler (hd_runtime_set_handler_load) */
    EVENT_IN_FLIGHT = 16,
    EVENT_CANCELLED = 32, /* its origin failed while it was in flight */
    EVENT_WAITED = 64,    /* it has waited for nodes */
    EVENT_UNSETTLED = 128 /* the last preflight let it go on although inputs do not settle */
};

struct hd_presync {
    list_node link;
    struct scheduler *s;
    struct event *e; /* NULL: it is over */
};

typedef struct event {
    list_node link;      /* in a lane, or in events.in_flight */
    list_node by_origin; /* in lineage.events */
    list_node by_doc;    /* of a posted one: in events.posted */
    uint64_t order;      /* of sending; lanes are sorted by it */
    stream *to;
    hd_value payload; /* owned */
    lineage *origin;  /* referenced; NULL: none */
    hd_outcome_fn done;
    void *ctx;
    uint64_t time_ms;    /* carried by the id */
    uint64_t due_ms;     /* of one that was delayed; 0: it was not */
    uint64_t missed;     /* posted by a periodic event: so many periods before were left out */
    uint64_t began_ms;   /* wall clock when it first sent something: the time of those ids */
    uint64_t not_before; /* 0: now */
    uint64_t refused_at; /* when it was first refused as stale; 0: never */
    uint32_t attempts;   /* bodies begun */
    uint32_t stale;      /* rejections, for the delay */
    uint32_t transient;  /* failures */
    uint32_t blocked;    /* bodies that returned HD_PENDING without a pending read */
    uint32_t flags;      /* EVENT_* */
    uint32_t checked;    /* generation of the handler whose schema the payload matches; 0: none */
    hd_event_wait waits; /* for what, as of the last step */
    place_id missing;    /* HD_EVENT_WAITS_LOAD: for this document; referenced; 0: none */
    place_id receipt;    /* referenced; 0: not looked up yet */
    place_id document;   /* of a posted one; referenced */
    hd_presync *presync; /* under way; NULL */
    char id[HD_EVENT_ID_SIZE];
} event;

/* An outcome that the next step tells a sender: its event was replaced by a later one, or is a duplicate of
 * one that waits. */
typedef struct outcome {
    list_node link; /* in events.outcomes */
    hd_outcome_fn done;
    void *ctx;
    hd_status status;
    char id[HD_EVENT_ID_SIZE];
} outcome;

/* A handling: one attempt at one event. tx->owner while the body runs. */
typedef struct handling {
    event *e;
    const char *name, *piece, *pattern; /* of the handler whose body it is */
    hd_handler_fn fn;                   /* the body; the stream may have another one by now */
    hd_event view;                      /* what the body sees */
    hd_value result;
    bool returned;
    uint32_t minted, sent, recorded; /* ids, events and messages so far */
} handling;

/* A posted event that came, or went: its document, referenced. */
typedef struct arrival {
    place_id doc;
    stream *
        to; /* it was found for this stream, which has got a handler: tried also if it has failed; NULL */
} arrival;

/* delay.c */
typedef struct delays {
    const hd_env *env;
    VEC(struct delay *) all;
    table by_doc; /* document -> index into all */
    binheap due;  /* all of them, by the wall clock in ms */
} delays;

/* receipts.c: a pruning in progress, or when the next one begins */
typedef struct receipts {
    struct scheduler *s;
    hd_cell horizon;  /* the document of the space */
    uint64_t kept;    /* the first slot whose receipts stay; 0: no pruning is in progress */
    VEC(hd_cell) old; /* to be deleted */
    hd_status status; /* of the listing */
    uint64_t due_ns;  /* of the next one; 0: no event was handled since the last */
    uint32_t next;    /* in events.stream_list: whose space has its turn next */
} receipts;

typedef struct events {
    VEC(lane *) lanes; /* all there are */
    table lane_index;  /* space -> index into lanes */
    list lanes_in[LANE_STATES];
    binheap lane_timers; /* has room for every lane */
    list in_flight;
    list posted; /* events that are documents, in a lane or in flight */
    uint32_t queued, flying;
    slab records;
    uint64_t next_order;
    uint64_t ingress; /* events sent outside of transactions: their number in the id */
    char session[33]; /* in hex */
    uint32_t burst;   /* handlings until commits are sent */
    uint32_t until_clock;
    uint64_t window_ms; /* of stale retries */
    bool again;         /* the head of a lane waits for nodes that run in this pass */
    bool closing;       /* nothing is taken any more */

    table by_place; /* place -> index into stream_list */
    VEC(stream *) stream_list;
    list left;     /* belongings of handlers that were removed */
    list outcomes; /* to be told in the next step */
    uint32_t busy; /* callbacks about handlers that are on the stack: nothing is released */

    lineages lineages;
    list presyncs;
    struct preflight *preflight;
    struct outbox *outbox;
    delays delays;
    receipts receipts;
    VEC(arrival) arrivals; /* posted events that came or went; the step takes them */
    VEC(arrival) awaited;  /* of those, documents that are not loaded yet */
    table taken;           /* documents of posted events that are queued or in flight */
    bool missed;           /* something came, and there was no memory to take it up */

    void (*arrived)(void *ctx, place_id doc, hd_status status); /* invalidation's: called first */
    hd_handler_load_fn load;
    void *load_ctx;
    hd_event_trace_fn trace;
    void *trace_ctx;
    hd_event_stats stats;
    bool
        bare; /* no receipts: for a benchmark of handling without them, and for a negative control */
    SABOTAGE_FIELD
} events;

/* ---- events.c */

/* Made at first use. NULL: no memory. */
events *events_of(scheduler *s);
/* The event is over: tells the sender, releases everything. `why` NULL: nothing is reported. */
void events_end(scheduler *s, event *e, hd_status status, const char *why);
/* Sets the document that the event waits for; 0: none. */
void events_wait_for(scheduler *s, event *e, place_id doc);
/* The place of its receipt. */
hd_status events_receipt(scheduler *s, event *e, place_id *out);
/* The event as callbacks see it. */
hd_event events_view(const event *e);
/* A blank record with its stream. NULL: no memory. */
event *events_new(scheduler *s, stream *to);

/* ---- lane.c */

void lanes_init(events *ev, const hd_env *env);
void lanes_fini(events *ev, const hd_env *env);
/* The lane of a space, made at first use. HD_NOMEM. */
hd_status lane_of_space(scheduler *s, const struct key *space, lane **out);
/* The first event in line; NULL: there is none. */
event *lane_head(const lane *l);
/* Puts an event into its lane, by send order; takes it out. */
void lane_insert(scheduler *s, event *e);
void lane_remove(scheduler *s, event *e);
/* What the head of the lane waited for may have happened: the next step looks at the head. */
void lane_wake(scheduler *s, lane *l);
/* The same for all lanes in this state. */
void lanes_wake(scheduler *s, lane_state where);
/* Wakes the lanes whose timer is due, or whose blocking node is free; then moves all ready lanes to
 * LANE_TURN. lanes_next: the first lane there; NULL: none is left. */
void lanes_begin_turn(scheduler *s);
lane *lanes_next(events *ev);
/* The step has looked at this lane: moves it to the state that its head waits in, unless it was woken
 * meanwhile. */
void lane_end_turn(scheduler *s, lane *l);
/* Whether the next step has something to do. */
bool lanes_have_work(const scheduler *s);
/* Whether the head waits for something that only the program can end: a presync, a handler that it loads, a
 * change, a suspended run, or the end of the transaction that sent the event. */
bool lane_waits_for_program(const lane *l);
/* When the first timer of a lane is due; UINT64_MAX: none is set. */
uint64_t lanes_next_time(const events *ev);
/* The oldest event of all that are first in line; NULL: there is none. O(lanes). */
event *lanes_oldest(const events *ev);
/* Asserts, between passes: each lane is in the list of what its head waits for, or in none if it is empty;
 * the counts of events agree; timers agree with states. */
void lanes_check(const events *ev);

/* ---- id.c */

#define EVENT_TIME_CHARS 9 /* of five bits each: milliseconds until the year 3084 */
/* Writes the time as ids begin with it, and the '-' behind it. */
void event_id_put_time(uint64_t ms, char *out);
/* Milliseconds in the id; 0: none. UINT64_MAX: this is no id of an event. */
uint64_t event_id_time(const char *id);
void event_id_ingress(const stream *to, uint64_t n, uint64_t ms, char *out);
void event_id_attempt(const stream *to, uint64_t attempt, uint32_t n, uint64_t ms, char *out);
void event_id_child(const stream *to, const char *parent, uint32_t n, uint64_t ms, char *out);
/* Hashes what every id to this stream has in common. */
void event_id_prepare(const events *ev, stream *to);
hd_status event_id_named(scheduler *s, const stream *to, const char *name, uint64_t ms, char *out);
/* The event is older than receipts are kept. */
bool event_id_expired(const scheduler *s, uint64_t ms);
/* The document "prefix/id" in the stream's home. */
hd_status event_document(scheduler *s, uint32_t home, const char *prefix, const char *id,
                         place_id *out);

/* ---- stream.c */

hd_status stream_of_cell(scheduler *s, hd_cell cell, stream **out);
hd_status stream_of_place(scheduler *s, place_id at, stream **out);
/* `owner` NULL: the handler belongs to no piece. HD_USAGE, HD_NOMEM. */
hd_status stream_register(scheduler *s, const hd_handler_spec *spec, const handler_owner *owner,
                          hd_handler *out);
void stream_unregister(scheduler *s, hd_handler handler);
/* The program has loaded the stream's handler, or failed to. */
void stream_loaded(scheduler *s, stream *to, hd_status status);
/* Stand around callbacks that are given a handler's ctx or name: a handler that is removed meanwhile is
 * released by streams_end. */
void streams_begin(scheduler *s);
void streams_end(scheduler *s);
void streams_fini(scheduler *s);

/* ---- send.c */

/* A transaction of its own, or a part of `tx`. */
hd_status events_send(scheduler *s, hd_tx *tx, hd_cell cell, hd_value payload,
                      const hd_send_options *options);
/* Tells senders whose event was replaced, or was waiting already. */
void events_tell_outcomes(scheduler *s);
/* Whether the transaction may launch, send or post something. HD_USAGE: it is a preflight's. */
hd_status events_check_start(scheduler *s, const hd_tx *tx);
/* The id of an event that is about to be sent or posted. `due`: it carries this time, from which its receipt is
 * kept; 0: that of now. */
hd_status events_mint(scheduler *s, hd_tx *tx, const stream *to, const hd_send_options *options,
                      uint64_t due, uint64_t *ms, char *out);

/* ---- letters.c */

/* hd_tx_event_retry, hd_tx_event_drop. */
hd_status events_retry(scheduler *s, hd_tx *tx, hd_cell cell);
hd_status events_drop(scheduler *s, hd_tx *tx, hd_cell cell, const char *why);

/* ---- receipts.c */

#define RECEIPT_SLOT_SIZE 5 /* four digits and a NUL */
#define RECEIPT_KIND_SIZE (8 + RECEIPT_SLOT_SIZE)
/* The kind of the receipt of an event that ends now; NULL: its id has a time, and the receipt needs no kind. */
const char *receipts_kind(const struct scheduler *s, const char *id, char out[RECEIPT_KIND_SIZE]);
/* An event was handled: old receipts are pruned within the hour. */
void receipts_made(struct scheduler *s);
/* Goes on with that, if it is due. */
void receipts_step(struct scheduler *s);
/* Whether that is in progress. */
static inline bool receipts_are_pruned(const events *ev) {
    return ev->receipts.kept || ev->receipts.next;
}
void receipts_fini(struct scheduler *s);
/* Deletes what is older than the horizon. */
hd_status receipts_prune(struct scheduler *s, const char *space, uint64_t *pruned);

/* ---- handle.c */

/* Runs the handler of an event that is ready. */
void events_handle(scheduler *s, event *e);

/* The handling that a transaction belongs to; NULL: the transaction is not a handler's. */
static inline handling *handling_of(const hd_tx *tx) {
    return (tx->flags & TX_RUN) && tx->class == HD_COMMIT_EVENT ? tx->owner : NULL;
}

/* ---- post.c */

hd_status events_post(scheduler *s, hd_tx *tx, hd_cell cell, hd_value payload,
                      const hd_send_options *options, char id[HD_EVENT_ID_SIZE]);
/* The same with an id of the sender's, in a transaction of its own that is repeated while it is refused because
 * another runtime posts or handles the same event. */
hd_status events_post_named(scheduler *s, hd_cell cell, hd_value payload,
                            const hd_send_options *options, char id[HD_EVENT_ID_SIZE]);

/* The document of the event is taken up when the transaction has committed; options->done is told of it. NULL:
 * no options. */
hd_status events_watch_verdict(scheduler *s, hd_tx *tx, place_id doc, const char *id,
                               const hd_send_options *options);
/* Puts a posted event into its lane. `due`: its time has come; otherwise one that has a time waits for it in the
 * heap of delays. HD_NOMEM, or why it is none for this runtime. */
hd_status events_take(scheduler *s, place_id doc, bool due);
/* Takes up what arrived since the last step. */
void events_take_arrivals(scheduler *s);
/* A document has arrived, or cannot be loaded. */
void events_look_again(scheduler *s, place_id doc, hd_status status);
/* Documents of a kind, in order of seq. HD_NOMEM, or why the space cannot be listed; what is in `out` is
 * the caller's to return either way. */
typedef struct listed {
    place_id doc;
    uint64_t seq;
    const char *id; /* of the document, which is pinned */
} listed;
typedef VEC(listed) listed_vec;
hd_status events_find(scheduler *s, const char *space, const char *kind, const char *prefix,
                      listed_vec *out);
/* There was no memory for something that is in the store: the next pump looks for it there. */
void events_miss(scheduler *s);
/* Posted events of a space, when a handler is registered. */
hd_status events_take_space(scheduler *s, stream *to);
void events_integrated(scheduler *s, place_id doc);
/* The stream that a posted event names. Not HD_OK and not HD_NOMEM: it has no handler here, or the record is
 * malformed. */
hd_status events_addressee(scheduler *s, place_id doc, hd_value record, stream **out);
/* A posted event is over and was not handled: writes the reason into its metadata. */
void events_note_failure(scheduler *s, const event *e, hd_status status, const char *why);
/* The verdict of what a runtime writes about an event by itself; ctx: the runtime. That another runtime was quicker
 * (stale) is no failure: it has written the same. */
void events_on_stored(hd_status status, void *ctx);
/* The replica may forget the document when no reference to it is left. */
void events_pass(scheduler *s, place_id doc);
/* Nothing is known of the document and it cannot exist: from now on it counts as known, and absent. */
void events_assume_absent(scheduler *s, place_id doc);
/* The same for a new event and its metadata: no document has the id. To load them would only tell so, and on a store
 * that loads late the post would have to wait for that. */
hd_status events_assume_new(scheduler *s, place_id doc);
/* Removes a document of events, with what is said beside it. */
hd_status events_remove(scheduler *s, hd_tx *tx, place_id doc);
/* A posted event is over without a commit that removed its document. */
void events_unpost(scheduler *s, place_id document);

#endif
