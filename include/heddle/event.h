/* heddle/event.h -- events: handlers that run in order, see consistent data, and count once.
 *
 * An event is a value that is sent to a *stream*. A stream is a cell that serves only as the address of a handler;
 * it has no value. The handlers of one space run one after the other, in the order in which the events were sent,
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
 * CONSISTENT. Before a handler runs, the runtime brings every computation that feeds the handler's inputs up to
 * date, even a computation that no live node reads. While an input cannot be brought up to date (its node waits at a
 * time gate, or a document is still loading), the event waits, and the later events of its space wait behind it: no
 * event overtakes another. For inputs that do not settle the event waits until their backoff has reached 2 s; then
 * the handler runs on their latest values, and a warning names them. Effects do not run for a handler: it
 * sees what they have written so far.
 *
 * ONCE. Each event has an id. The commit that stores the handler's writes also creates the event's *receipt*: a
 * document that holds what the handler returned. If the receipt exists already, the store refuses the commit. So the
 * writes of one event are in the store once, however often the event is delivered, and however many programs share
 * the store. The handler function may run more than once: for side effects outside of its transaction it uses the
 * outbox (hd_tx_outbox).
 *
 * ALL OR NOTHING. Events that a transaction sends, and work that it launches (hd_tx_launch), live only if the
 * transaction commits.
 *
 * SENT OR POSTED. Events that are *sent* are in memory only: hd_close finishes those that were begun and tells the
 * senders of the others HD_CLOSED. Events that are *posted* are documents in the store until a program that has a
 * handler for their stream has handled them.
 *
 * THREADS. Call these functions on the runtime's thread; handlers run inside hd_runtime_pump. */
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
    const char *id; /* durable; derived from the place of the send, or from the sender's own id */
    hd_cell stream;
    hd_value payload; /* with event_schema: what that describes, defaults filled in */
    uint64_t time_ms; /* of its id, since 1970; 0: the sender's id came without a time */
    uint32_t attempt; /* 1, 2, ...: how often the handler function has begun */
    bool posted;
    uint64_t due_ms; /* of an event posted for later: when it was due, ms since 1970; else 0 */
    uint64_t missed; /* of a periodic event: how many periods before it had no event */
} hd_event;

/* HD_OK commits what was written through `tx`. A handler that meets HD_PENDING in a read returns it, and runs
 * again when the document is there. After a transient status the handler runs again, ten times at most.
 * Any other status, of the handler or of its commit, ends the event: nothing is committed, and the error handlers
 * (hd_runtime_on_error) are called once. HD_EXISTS, the event was handled before, is not reported to them. */
typedef hd_status (*hd_handler_fn)(hd_tx *tx, const hd_event *event, void *ctx);

/* Reads what the handler is going to read, through a transaction that cannot write. */
typedef hd_status (*hd_preflight_fn)(hd_tx *tx, const hd_event *event, void *ctx);

/* Called once before an event's first run, so that the program can fetch data that the handler needs. HD_PENDING:
 * the event waits until the program calls hd_presync_done(sync, status), which it does once, on the runtime's thread,
 * even if the event has ended by then, but not after hd_close. Any other status: the event does not wait. A status
 * that is a failure is logged, and the handler runs all the same. */
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

    /* What the handler reads, in one or more of three ways: `inputs`, cells, best with a schema; `event_schema`,
     * what it describes of the payload, through the links in the payload; `preflight`, whatever that function
     * reads. At least one must be given, or `reads_nothing`. A handler may read other cells: such reads are counted
     * and logged, because their values may be out of date. */
    const hd_cell *inputs;
    size_t input_count;
    const hd_schema *event_schema; /* borrowed; a payload that does not match is refused */
    hd_preflight_fn preflight;
    bool reads_nothing;

    hd_presync_fn presync;
    /* An event that would have to wait for a document ends with HD_PENDING instead. */
    bool one_shot;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_handler_spec;

/* Registers the handler of a stream. A stream has one: a second registration replaces the first, with a warning.
 * `out` may be NULL. HD_USAGE: the spec makes no sense (hd_runtime_error says why); HD_NOMEM; or the status with which
 * reading the posted events of the space failed. On failure nothing has changed. */
HD_API hd_status hd_handler_register(hd_runtime *rt, const hd_handler_spec *spec, hd_handler *out);
/* Removes the handler. Its queued events stay queued, and end with HD_NOT_FOUND if the stream has no other handler when
 * their turn comes. If the handler itself, or a function that the runtime calls while the handler runs, removes it,
 * that run goes on, and `release` is called after it. Does nothing if the handler is gone. */
HD_API void hd_handler_unregister(hd_runtime *rt, hd_handler handler);

/* Called once for each event whose stream has no handler. It may register one and return HD_OK; or return HD_PENDING,
 * and the program then calls hd_handler_loaded later (or has already called it inside this function). If the stream has
 * no handler after that, the event ends with HD_NOT_FOUND. */
typedef hd_status (*hd_handler_load_fn)(hd_runtime *rt, hd_cell stream, void *ctx);
/* Sets that function; NULL: none. HD_NOMEM. */
HD_API hd_status hd_runtime_set_handler_load(hd_runtime *rt, hd_handler_load_fn fn, void *ctx);
HD_API void hd_handler_loaded(hd_runtime *rt, hd_cell stream, hd_status status);

/* ---- Sending ----------------------------------------------------------------------------- */

/* Tells the outcome of an event. Called once for every event that was queued: from pump, or from the call that ends
 * the event (hd_tx_abort of the transaction that sent it, hd_close), never from the send itself. HD_OK: the handler's
 * writes are in the store. HD_EXISTS: the event was handled before, here or by another program. HD_ORIGIN_FAILED: the
 * transaction that sent it did not commit. HD_NOT_FOUND: its stream has no handler. HD_BUSY: the stream was full, and a
 * later event replaced this one. HD_CLOSED: the runtime was closed before the handler ran. HD_NO_VERDICT: the
 * handler ran, and the runtime was closed before the store said whether it accepted the commit (hd_close): send the
 * event again with the same sender's id, which has no second effect. HD_REJECTED: what the
 * handler read kept changing, so that its commit was refused until the retry window was over
 * (hd_runtime_set_retry_window). Otherwise the status with which the handler failed, or with which the store refused
 * its commit for good. */
typedef void (*hd_outcome_fn)(const char *id, hd_status status, void *ctx);

typedef struct hd_send_options {
    /* The sender's own id, for events from outside that may be delivered twice: two sends with the same
     * principal, stream and id are the same event, in every program on the store. `id_time_ms` is when the
     * sender made the id (ms since 1970); it is part of the id, and ids older than the receipt horizon are
     * refused with HD_EXPIRED. 0: unknown; the receipt is then kept until the horizon, counted from the handling, has
     * passed, and after that the same id may be handled again. */
    const char *id;
    uint64_t id_time_ms;
    /* The id carries no time, so the event never expires; its receipt is kept until the horizon, counted from the
     * handling, has passed. For events that may be handled long after they were posted, and for senders whose clock
     * cannot be trusted. False: an event to which the sender gives no id carries the time of this machine's clock, and
     * ends with HD_EXPIRED if it is not handled within the receipt horizon (hd_options.receipt_days, 30 days). */
    bool lasting;
    /* The event is not handled before this time of the monotonic clock; later events of its space wait with
     * it. 0: at once. */
    uint64_t not_before_ns;
    hd_outcome_fn done;
    void *ctx;
    /* For posted events only (HD_USAGE for a send), and only one of the two. The event is delivered at
     * deliver_at_ms (since 1970), or after_ms after it is posted; other events do not wait for it. Its id carries
     * the time of delivery. */
    uint64_t deliver_at_ms, after_ms;
    /* Periodic: the call posts a periodic event, which posts an event every `every_ms`. The first event is due at
     * deliver_at_ms or after after_ms, or else after one period; each later one a whole number of periods after the
     * first. Of the periods that passed while no program had a handler, only the last one gets an event, and
     * hd_event.missed counts the others; with every_missed each period gets its own event. */
    uint64_t every_ms;
    bool every_missed;
    uint64_t reserved_[4]; /* room for later members; zero */
} hd_send_options;

/* How many events can wait on one stream. When that many wait, a send without a sender's id replaces the last event
 * that waits there from the same origin (the transaction that sent it; events sent outside of transactions have the
 * runtime as their origin), unless a presync or a handler has already been called with that event: the new
 * event has its own id and time, and the sender of the replaced one is told HD_BUSY. A send whose sender's id waits
 * already gets the outcome HD_EXISTS. Every other send to a full stream is refused with HD_BUSY. */
#define HD_EVENT_BACKLOG 256

/* Queues an event. `payload` may be absent, which reads as null; `options` may be NULL. Not inside a transaction or a
 * run (HD_USAGE): use hd_tx_send there. HD_USAGE, HD_BUSY, HD_EXPIRED, HD_CLOSED, HD_NOMEM: nothing was queued, and
 * `done` is not called. */
HD_API hd_status hd_event_send(hd_runtime *rt, hd_cell stream, hd_value payload,
                               const hd_send_options *options);
/* The same from inside a transaction, a handler or an effect: the event lives only if that transaction commits. The
 * event's handler may run before the store has accepted the transaction; its commit then depends on the transaction's.
 * If the stream is in another space than what the transaction writes, the event waits until the store has accepted the
 * transaction. In a transaction that hd_close waits for: HD_OK, and `done` is told HD_CLOSED. HD_USAGE in a
 * computation: computations send no events. */
HD_API hd_status hd_tx_send(hd_tx *tx, hd_cell stream, hd_value payload,
                            const hd_send_options *options);

/* Posts an event: it is a document of kind "event" in the stream's space until it has been handled. `id` (may be NULL)
 * gets its id; "" on failure. An event that is not handled within the receipt horizon stays in the store as failed with
 * HD_EXPIRED, because its receipt could have been deleted by then; `options->lasting` prevents that. With a sender's
 * id: HD_EXISTS if the event was handled already; if it still waits, it stays as it is, whichever program posted it,
 * and the call returns HD_OK. `options->done` tells whether the event was stored, not whether it was handled: HD_OK;
 * HD_EXISTS if another program posted the same id meanwhile and it was handled; HD_NO_VERDICT: it may be stored or not
 * (hd_close). If there is no memory to take up a
 * posted event, or a message of the outbox, pump returns HD_NOMEM, and the next pump reads it from the store again. */
HD_API hd_status hd_event_post(hd_runtime *rt, hd_cell stream, hd_value payload,
                               const hd_send_options *options, char id[HD_EVENT_ID_SIZE]);
HD_API hd_status hd_tx_post(hd_tx *tx, hd_cell stream, hd_value payload,
                            const hd_send_options *options, char id[HD_EVENT_ID_SIZE]);

/* The cell of a posted event's document, which exists until the event is handled: "space/event/<id>". No cell: `id` is
 * no id of an event. */
HD_API hd_cell hd_event_cell(hd_runtime *rt, hd_cell stream, const char *id);
/* Cancels an event that was posted for later, or a periodic event (it posts no further event; those that it has
 * posted are handled). Waits for the verdict as hd_transact does. HD_OK: the event will not be handled;
 * HD_NOT_FOUND: no such event waits, because it was handled or cancelled; HD_USAGE: `id` is no id of an event; what
 * hd_transact returns. In a transaction use hd_tx_event_drop(tx, hd_event_cell(rt, stream, id), why). The receipt of a
 * cancelled event is {"dropped": "cancelled"}; a periodic event has none, and may be posted again under the same id. */
HD_API hd_status hd_event_cancel(hd_runtime *rt, hd_cell stream, const char *id);

/* A posted event whose handler failed stays in the store: the document "event/<id>", with the reason in its
 * metadata as "failed" ({"status", "message", "handler", "attempts", "time"}). The next program that registers a
 * handler for its stream tries it again. hd_tx_event_retry has it tried again when the transaction commits; `event` is
 * the cell of the document. HD_NOT_FOUND: no such event waits; HD_USAGE: the cell is not that of an event. */
HD_API hd_status hd_tx_event_retry(hd_tx *tx, hd_cell event);
/* Ends the event without running its handler; fails as hd_tx_event_retry does. The receipt is {"dropped": why}, so that
 * the same sender's id is not handled before the receipt is deleted; `why` may be NULL. */
HD_API hd_status hd_tx_event_drop(hd_tx *tx, hd_cell event, const char *why);

/* The id of the event that a send with this sender's id makes. HD_USAGE: `id` is empty. */
HD_API hd_status hd_event_id_of(hd_runtime *rt, hd_cell stream, const char *id, uint64_t id_time_ms,
                                char out[HD_EVENT_ID_SIZE]);
/* The cell of an event's receipt: the document "receipt/<id>" in the stream's space. Its value is what the handler
 * returned, or {}. */
HD_API hd_cell hd_event_receipt(hd_runtime *rt, hd_cell stream, const char *id);

/* ---- Inside a handler -------------------------------------------------------------------- */

/* Sets the value of the receipt. HD_KIND: `v` is absent; the status of a failed value; HD_USAGE: not in a handler. */
HD_API hd_status hd_tx_return(hd_tx *tx, hd_value v);
/* Makes an id for a document that the handler creates. When the handler runs again for the same event, the calls
 * give the same ids in the same order. HD_USAGE: not in a handler. */
HD_API hd_status hd_tx_mint(hd_tx *tx, char id[HD_ID_SIZE]);

/* In any transaction but a preflight's (HD_USAGE): the program has started something that must end if the
 * transaction does not commit. In that case stop(ctx) is called, once. A failure of stop is logged. HD_NOMEM. */
typedef hd_status (*hd_stop_fn)(void *ctx);
HD_API hd_status hd_tx_launch(hd_tx *tx, hd_stop_fn stop, void *ctx);
/* For work that must not begin before the commit is certain: fn is called once, with HD_OK when the store has
 * accepted the commit, or with the reason why it was not committed; HD_NO_VERDICT: the commit may be in the store or
 * not (hd_close). Fails as hd_tx_launch does. */
HD_API hd_status hd_tx_after_commit(hd_tx *tx, hd_verdict_fn fn, void *ctx);

/* For side effects outside of the store. The message is stored with the handler's commit. Once the store has
 * accepted that, the runtime gives the message to the channel's function: at least once, each time with the same
 * key. HD_USAGE: not in a handler. */
HD_API hd_status hd_tx_outbox(hd_tx *tx, const char *channel, hd_value message);
/* Delivers one message. HD_OK: it is delivered, and is removed from the store. Any other status: the runtime calls
 * the function again later, after 100 ms at first, then after twice as long each time, up to a minute. */
typedef hd_status (*hd_channel_fn)(const char *key, hd_value message, void *ctx);
/* Registers the function that delivers the messages of a channel, also those that earlier processes left in the
 * space. Registered again: `fn` and `ctx` are replaced. HD_NOMEM, or the status with which reading the space failed. */
HD_API hd_status hd_channel_register(hd_runtime *rt, const char *space, const char *channel,
                                     hd_channel_fn fn, void *ctx);
/* The function is not called any more: messages of the channel wait in the store until a program registers it
 * again. */
HD_API void hd_channel_unregister(hd_runtime *rt, const char *space, const char *channel);

/* ---- Housekeeping ------------------------------------------------------------------------ */

/* Sets for how long an event is tried again whose commit is refused because what its handler read has changed. Default
 * 30 s; 0: it is not tried again. When the time is over the event ends with HD_REJECTED: none of its attempts had an
 * effect, and the sender may send it again. HD_NOMEM. */
HD_API hd_status hd_runtime_set_retry_window(hd_runtime *rt, uint32_t ms);

/* Deletes the receipts of a space that are older than the receipt horizon (hd_options.receipt_days), at most half a day
 * late, in commits of 256. The age of a receipt is that of its id, if the id carries a time (events with ids that old
 * are refused with HD_EXPIRED); else it counts from when the event was handled or dropped. Looks at receipts that have
 * become too old since the last time; at all of them if there was none. A program that handles events prunes by itself,
 * an hour after an event; this function is for programs that end sooner. *pruned (may be NULL) is how many were
 * deleted. Returns what listing the space or a commit returned; the receipts counted in *pruned are deleted all the
 * same. */
HD_API hd_status hd_receipt_prune(hd_runtime *rt, const char *space, uint64_t *pruned);

#ifdef __cplusplus
}
#endif
#endif
