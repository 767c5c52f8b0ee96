/* heddle/event.h -- events: handlers that run in order, see consistent data, and count once.
 *
 * An event is a value sent to a *stream*, which is a cell that serves as an address for a handler; it has
 * no value of its own. The handlers of one space run one after the other, in the order in which the events were sent,
 * each in a transaction of its own; spaces do not wait for each other:
 *
 *     static hd_status on_buy(hd_tx *tx, const hd_event *event, void *ctx) {
 *         const struct shop *shop = ctx;
 *         if (hd_value_number(hd_tx_get(tx, shop->total)) > LIMIT)   // as of all that came before
 *             return hd_tx_fail(tx, HD_FAILED, "the cart is full");
 *         return hd_tx_append(tx, shop->items, event->payload);
 *     }
 *
 *     hd_handler_spec spec = { .stream = buy, .fn = on_buy, .ctx = &shop,
 *                              .inputs = (hd_cell[]){ shop.total }, .input_count = 1 };
 *     hd_handler_register(rt, &spec, &handler);
 *     hd_event_send(rt, buy, hd_json_parse(pool, "{\"price\": 3}", 12, NULL), NULL);
 *
 * CONSISTENT. Before a handler runs, every computation that feeds its inputs has been brought up to
 * date, also if no live node reads it. An event whose inputs cannot be brought up to date yet
 * (a time gate, a document on its way) waits, and those behind it in its space wait with it: nothing
 * overtakes. Inputs that do not settle are waited for until their backoff has reached 2 s; then the handler
 * runs on their latest values, with a warning that names them. What an effect writes is no computation's
 * output: a handler sees what effects have written so far.
 *
 * ONCE. Each event has an id; handling it creates, in the same commit as its effects, a *receipt*:
 * the document of the handling, with what the handler returned. It must not exist before. However
 * often an event is delivered, to however many programs on the same store, its effects are there
 * once. A handler's body may run more than once; what it does outside of its transaction it should
 * leave to the outbox.
 *
 * ALL OR NOTHING. Events that a transaction sends, and what it launches, live only if it commits.
 *
 * Events that are sent die with the process: closing the runtime finishes what was begun, and tells
 * the senders of the rest. Events that are *posted* are in the store until they
 * are handled, by whichever program has a handler for their stream.
 *
 * Everything here happens on the runtime's thread, handlers inside hd_runtime_pump. */
#ifndef HEDDLE_EVENT_H
#define HEDDLE_EVENT_H

#include <heddle/scheduler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Handlers ---------------------------------------------------------------------------- */

/* Room for an event's id with its NUL. */
#define HD_EVENT_ID_SIZE 56

typedef struct hd_event {
    const char *id; /* durable; derived from where it was sent, or from the sender's own */
    hd_cell stream;
    hd_value payload; /* through the event's schema, if there is one: with its defaults */
    uint64_t time_ms; /* of its id, since 1970; 0: the sender's id came without one */
    uint32_t attempt; /* 1, 2, ...: how often the body has begun */
    bool posted;
} hd_event;

/* HD_OK commits what was written through `tx`. A handler that meets HD_PENDING in a read returns it, and runs
 * again when the document is there. After a transient status the handler runs again, ten times at most.
 * Any other status is reported once, also if it is the store's refusal; nothing is committed, and the event
 * is over. That an event was handled before (HD_EXISTS) is not reported. */
typedef hd_status (*hd_handler_fn)(hd_tx *tx, const hd_event *event, void *ctx);

/* Reads what the handler is going to read, through a transaction that cannot write. */
typedef hd_status (*hd_preflight_fn)(hd_tx *tx, const hd_event *event, void *ctx);

/* Called once before an event's first run. HD_OK: go on. HD_PENDING: hd_presync_done(sync) will be
 * called, once, also if the event is over by then, but not after the runtime was closed. Whatever the
 * outcome, the handler runs then. */
typedef struct hd_presync hd_presync;
typedef hd_status (*hd_presync_fn)(hd_presync *sync, const hd_event *event, void *ctx);
HD_API void hd_presync_done(hd_presync *sync, hd_status status);

typedef struct hd_handler {
    uint32_t id; /* 0: none */
    uint32_t generation;
} hd_handler;

typedef struct hd_handler_spec {
    const char *name; /* durable identity, stamped on its commits; default: the stream's name */
    hd_cell stream;
    hd_handler_fn fn;
    void *ctx;
    hd_release_fn release; /* called when the handler is gone; may be NULL */

    /* What it reads: cells, best with a schema; what the event's schema describes of the payload,
     * through the links in it; or whatever `preflight` reads. One of these must be given, or
     * `reads_nothing`. Reads outside are allowed, counted and reported. */
    const hd_cell *inputs;
    size_t input_count;
    const hd_schema *event_schema; /* borrowed; a payload that does not match is refused */
    hd_preflight_fn preflight;
    bool reads_nothing;

    hd_presync_fn presync;
    bool
        one_shot; /* an event that would have to wait for a document fails with HD_PENDING instead */
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_handler_spec;

/* One handler for each stream: a second registration takes the place of the first, with a warning. `out`
 * may be NULL.
 * HD_USAGE for a spec that makes no sense, HD_NOMEM, or why the space could not be looked at: nothing
 * has changed then. */
HD_API hd_status hd_handler_register(hd_runtime *rt, const hd_handler_spec *spec, hd_handler *out);
/* Events that are queued stay queued, and fail with HD_NOT_FOUND if the stream has no other handler when
 * their turn comes. Called from the handler's own body, or from a callback that is given its name: the
 * handling under way goes on, and `release` is called after it. */
HD_API void hd_handler_unregister(hd_runtime *rt, hd_handler handler);

/* Called, once per event, when there is no handler for a stream: it may register one and return
 * HD_OK, or return HD_PENDING; then the program calls hd_handler_loaded later, or has called it already. If
 * there is no handler by then, the event ends with HD_NOT_FOUND. */
typedef hd_status (*hd_handler_load_fn)(hd_runtime *rt, hd_cell stream, void *ctx);
HD_API hd_status hd_runtime_set_handler_load(hd_runtime *rt, hd_handler_load_fn fn, void *ctx);
HD_API void hd_handler_loaded(hd_runtime *rt, hd_cell stream, hd_status status);

/* ---- Sending ----------------------------------------------------------------------------- */

/* Tells the outcome of an event. Called once, in every case: from pump, or from the call that ends the event
 * (hd_tx_abort of the transaction that sent it, hd_close), not from the send. HD_OK: its effects are
 * in the store. HD_EXISTS: it was handled before, or elsewhere. HD_ORIGIN_FAILED: the transaction
 * that sent it did not commit. HD_NOT_FOUND: no handler. HD_BUSY: a later one took its place in a
 * stream that was full. HD_CLOSED: the runtime closed before. HD_REJECTED: its commit was refused, because what
 * the handler had read kept changing, until the retry window was over (hd_runtime_set_retry_window). Otherwise
 * the status with which the handler failed, or with which the store refused its commit for good. */
typedef void (*hd_outcome_fn)(const char *id, hd_status status, void *ctx);

typedef struct hd_send_options {
    /* The sender's own id, for events from outside that may be delivered twice: the same principal,
     * stream and id are the same event, everywhere. `id_time_ms` is when the sender made the id (ms
     * since 1970); it is part of the id, and ids older than the receipt horizon are refused with
     * HD_EXPIRED. 0: unknown; the receipt is then kept for good. */
    const char *id;
    uint64_t id_time_ms;
    /* The id carries no time, so the event never expires, and its receipt is kept for good. For events that
     * may be handled long after they were posted, and for senders whose clock cannot be trusted. Without it
     * an event without an id of the sender's carries the time of this machine's clock, and one that is not
     * handled within the receipt horizon (hd_options.receipt_days, 30 days) ends with HD_EXPIRED. */
    bool lasting;
    /* The event is not handled before this time of the monotonic clock; later events of its space wait with
     * it. 0: at once. */
    uint64_t not_before_ns;
    hd_outcome_fn done;
    void *ctx;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_send_options;

/* How many events can wait on one stream. If that many wait, a send without an id of the sender's replaces
 * the last event that waits there from the same origin, unless the program has been shown it already: the
 * new event has its own id and time, and the sender of the replaced one is told HD_BUSY. A send with a
 * sender's id that waits already is told HD_EXISTS. Every other send is refused with HD_BUSY. */
#define HD_EVENT_BACKLOG 256

/* Queues an event. `payload` may be absent, which reads as null. Outside of transactions and runs.
 * HD_USAGE, HD_BUSY, HD_EXPIRED, HD_NOMEM; `done` is not called then. `options` may be NULL. */
HD_API hd_status hd_event_send(hd_runtime *rt, hd_cell stream, hd_value payload,
                               const hd_send_options *options);
/* The same from inside a transaction, a handler or an effect: the event lives only if it commits.
 * Its handler may run before that is certain; its own commit then depends on it. Where the stream
 * is in another space than what the transaction writes, the event waits until it is certain.
 * Computations send nothing: HD_USAGE. */
HD_API hd_status hd_tx_send(hd_tx *tx, hd_cell stream, hd_value payload,
                            const hd_send_options *options);

/* Posts: the event is a document of kind "event" in the stream's space until it has been handled. That
 * must happen within the receipt horizon, unless `options->lasting` is set: later it can no longer be told
 * whether it was handled before, so it is not handled, and stays as failed with HD_EXPIRED.
 * With an id of the sender's: HD_EXISTS if it was handled already; one that is still waiting stays
 * as it is. `options->done` tells whether it was stored (not whether it was handled). If there is no
 * memory to take up a posted event, or a message of the outbox, pump returns HD_NOMEM, and the next pump
 * looks for it in the store. */
HD_API hd_status hd_event_post(hd_runtime *rt, hd_cell stream, hd_value payload,
                               const hd_send_options *options, char id[HD_EVENT_ID_SIZE]);
HD_API hd_status hd_tx_post(hd_tx *tx, hd_cell stream, hd_value payload,
                            const hd_send_options *options, char id[HD_EVENT_ID_SIZE]);

/* The id that an event of this sender's id has; HD_USAGE for an empty one. */
HD_API hd_status hd_event_id_of(hd_runtime *rt, hd_cell stream, const char *id, uint64_t id_time_ms,
                                char out[HD_EVENT_ID_SIZE]);
/* Its receipt: the document "receipt/<id>" in the stream's space. The value is what the handler
 * returned, or {}. */
HD_API hd_cell hd_event_receipt(hd_runtime *rt, hd_cell stream, const char *id);

/* ---- Inside a handler -------------------------------------------------------------------- */

/* Sets the value of the receipt. */
HD_API hd_status hd_tx_return(hd_tx *tx, hd_value v);
/* An id for something that the handler makes: a retry mints the same ones, in order. */
HD_API hd_status hd_tx_mint(hd_tx *tx, char id[HD_ID_SIZE]);

/* For every transaction. Something was started that must end if the transaction does not commit: then
 * stop(ctx) is called, once. A failure of stop is logged. */
typedef hd_status (*hd_stop_fn)(void *ctx);
HD_API hd_status hd_tx_launch(hd_tx *tx, hd_stop_fn stop, void *ctx);
/* For what must not begin before the commit is certain: fn is called with HD_OK once the commit is
 * confirmed, or with the reason why it was not. */
HD_API hd_status hd_tx_after_commit(hd_tx *tx, hd_verdict_fn fn, void *ctx);

/* Side effects outside of the store. The message is recorded in the handler's commit and handed to
 * the channel once that is confirmed: at least once, each time with the same key. */
HD_API hd_status hd_tx_outbox(hd_tx *tx, const char *channel, hd_value message);
/* HD_OK: done, the record is removed. Anything else: again later (100 ms, doubling to a minute). */
typedef hd_status (*hd_channel_fn)(const char *key, hd_value message, void *ctx);
/* Takes up what is waiting in the space too, from this process or an earlier one. Registered again: `fn`
 * and `ctx` are replaced. */
HD_API hd_status hd_channel_register(hd_runtime *rt, const char *space, const char *channel,
                                     hd_channel_fn fn, void *ctx);
/* Takes it back: messages of the channel wait in the store until it is registered again, here or elsewhere. */
HD_API void hd_channel_unregister(hd_runtime *rt, const char *space, const char *channel);

/* ---- Housekeeping ------------------------------------------------------------------------ */

/* How long an event whose data keeps changing is tried again; default 30 s. 0: not at all. When that time is
 * over the event ends with HD_REJECTED: none of its attempts has had an effect, and the sender may send it
 * again. */
HD_API hd_status hd_runtime_set_retry_window(hd_runtime *rt, uint32_t ms);

/* Deletes receipts whose ids are older than the horizon. Events with such ids are refused (HD_EXPIRED). */
HD_API hd_status hd_receipt_prune(hd_runtime *rt, const char *space, uint64_t *pruned);

#ifdef __cplusplus
}
#endif
#endif
