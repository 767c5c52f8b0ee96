/* send.c -- sending, and what happens when a stream is full. */
#include "scheduler/events/state.h"

#include "base/env.h"
#include <string.h>

static const hd_send_options no_options = { 0 };

/* ---- ids */

hd_status events_mint(scheduler *s, hd_tx *tx, const stream *to, const hd_send_options *options,
                      uint64_t due, uint64_t *ms, char *out) {
    events *ev = s->events;
    handling *h = tx ? handling_of(tx) : NULL;
    if (options->id) {
        *ms = options->id_time_ms;
        if (event_id_expired(s, *ms))
            return runtime_fail(s->rt, HD_EXPIRED, "%s", hd_status_text(HD_EXPIRED));
        return event_id_named(s, to, options->id, *ms, out);
    }
    if (h && !h->e->began_ms) h->e->began_ms = env_wall_ms(s->env);
    *ms = h ? h->e->began_ms : env_wall_ms(s->env);
    if (due > *ms) *ms = due;
    if (options->lasting) *ms = 0;
    if (h) {
        event_id_child(to, h->e->id, h->sent++, *ms, out);
    } else if (tx) {
        lineage *l = lineage_of(&ev->lineages, tx);
        if (!l) return HD_NOMEM;
        event_id_attempt(to, l->attempt, l->sends++, *ms, out);
    } else {
        event_id_ingress(to, ev->ingress++, *ms, out);
    }
    return HD_OK;
}

/* ---- the backlog */

/* Whether the event is handled at least where an event of `origin` would be: it has no origin, the same
 * one, or one that has committed. */
static bool is_as_certain(const event *e, const lineage *origin) {
    return !e->origin || e->origin == origin || e->origin->state == LINEAGE_COMMITTED;
}

static event *queued_with_id(const stream *to, const lineage *origin, const char *id) {
    assert(to->lane && *id);
    LIST_FOR (n, &to->lane->queue) {
        event *e = LIST_ENTRY(n, event, link);
        if (e->to == to && !strcmp(e->id, id) && is_as_certain(e, origin)) return e;
    }
    return NULL;
}

/* Whether the program has been shown the event's payload, in a presync or in its handler. */
static bool turn_has_come(const event *e) {
    return e->attempts || e->presync || (e->flags & EVENT_PRESYNCED);
}

/* The last one waiting on the stream from the same origin, under an id of ours. */
static event *last_of_origin(const stream *to, const lineage *origin) {
    assert(to->lane);
    const list *queue = &to->lane->queue;
    for (list_node *n = list_last(queue); n; n = list_before(queue, n)) {
        event *e = LIST_ENTRY(n, event, link);
        if (e->to == to && e->origin == origin && !(e->flags & (EVENT_NAMED | EVENT_POSTED)))
            return turn_has_come(e) ? NULL : e;
    }
    return NULL;
}

/* Outcomes are not told from inside the send, whose caller may be in the middle of a run or transaction:
 * the next step tells them. */
static hd_status tell_later(scheduler *s, hd_outcome_fn done, void *ctx, const char *id,
                            hd_status status) {
    assert(*id);
    if (!done) return HD_OK;
    outcome *o = env_new0(s->env, sizeof *o);
    if (!o) return HD_NOMEM;
    *o = (outcome){ .done = done, .ctx = ctx, .status = status };
    memcpy(o->id, id, sizeof o->id);
    list_push_back(&s->events->outcomes, &o->link);
    s->tick = true;
    return HD_OK;
}

void events_tell_outcomes(scheduler *s) {
    while (!list_empty(&s->events->outcomes)) {
        outcome *o = LIST_ENTRY(list_pop_front(&s->events->outcomes), outcome, link);
        assert(o->done && o->status); /* events that were handled are told by events_end */
        o->done(o->id, o->status, o->ctx);
        env_free(s->env, o, sizeof *o);
    }
}

/* What is about to be sent, and not in the queue yet. */
typedef struct newcomer {
    hd_value payload;
    const hd_send_options *options;
    uint64_t ms;
    char id[HD_EVENT_ID_SIZE];
} newcomer;

/* The new event takes the place of an older one in its lane; the sender of the older one is told HD_BUSY. */
static hd_status collapse(scheduler *s, event *e, const newcomer *newer) {
    const hd_send_options *options = newer->options;
    hd_status status = tell_later(s, e->done, e->ctx, e->id, HD_BUSY);
    if (status) return status;
    assert(!e->receipt && !turn_has_come(e)); /* the id, and so the receipt, becomes another one */
    assert(!(e->flags & (EVENT_NAMED | EVENT_POSTED | EVENT_IN_FLIGHT)));
    hd_value before = e->payload;
    e->payload = value_ref(newer->payload);
    value_unref(before);
    memcpy(e->id, newer->id, sizeof e->id);
    e->time_ms = newer->ms;
    e->checked = 0;
    e->not_before = options->not_before_ns;
    e->done = options->done;
    e->ctx = options->ctx;
    s->events->stats.collapsed++;
    if (lane_head(e->to->lane) == e) lane_wake(s, e->to->lane); /* not_before has changed */
    return HD_OK;
}

/* The same event is waiting already, and stays as it is. */
static hd_status coalesce(scheduler *s, const event *e, const hd_send_options *options) {
    assert(!(e->flags & EVENT_IN_FLIGHT));
    hd_status status = tell_later(s, options->done, options->ctx, e->id, HD_EXISTS);
    if (!status) s->events->stats.collapsed++;
    return status;
}

/* The stream is full: HD_OK, or why the event is not taken. */
static hd_status squeeze_in(scheduler *s, stream *to, const lineage *origin,
                            const newcomer *newer) {
    assert(to->queued >= HD_EVENT_BACKLOG);
    events *ev = s->events;
    bool named = newer->options->id;
    event *e = named ? queued_with_id(to, origin, newer->id) : last_of_origin(to, origin);
    if (e) return named ? coalesce(s, e, newer->options) : collapse(s, e, newer);
    ev->stats.refused++;
    return runtime_fail(s->rt, HD_BUSY, "stream %s: %d events are waiting already", to->link,
                        HD_EVENT_BACKLOG);
}

/* ---- sending */

hd_status events_check_start(scheduler *s, const hd_tx *tx) {
    return tx->flags & TX_PREFLIGHT ? runtime_fail(s->rt, HD_USAGE, "a preflight only reads")
                                    : HD_OK;
}

static hd_status check_sender(scheduler *s, const hd_tx *tx) {
    assert(!tx || tx->rt == s->rt);
    if (!tx && s->events && s->events->closing) return HD_CLOSED;
    if (!tx && (s->rt->in_run || s->rt->open))
        return runtime_fail(s->rt, HD_USAGE, "inside a transaction send with hd_tx_send");
    if (tx && tx->class == HD_COMMIT_DERIVED)
        return runtime_fail(s->rt, HD_USAGE, "a computation sends nothing: it may run at any time");
    return tx ? events_check_start(s, tx) : HD_OK;
}

static hd_status enqueue(scheduler *s, hd_tx *tx, stream *to, hd_value payload,
                         const hd_send_options *options) {
    assert(to->lane && value_exists(payload));
    events *ev = s->events;
    newcomer newer;
    newer.payload = payload;
    newer.options = options;
    lineage *origin = tx ? lineage_of(&ev->lineages, tx) : NULL;
    if (tx && !origin) return HD_NOMEM;
    hd_status status = events_mint(s, tx, to, options, 0, &newer.ms, newer.id);
    if (status) return status;
    if (to->queued >= HD_EVENT_BACKLOG) return squeeze_in(s, to, origin, &newer);
    event *e = events_new(s, to);
    if (!e) return HD_NOMEM;
    memcpy(e->id, newer.id, sizeof e->id);
    e->time_ms = newer.ms;
    e->payload = value_ref(payload);
    e->not_before = options->not_before_ns;
    e->done = options->done;
    e->ctx = options->ctx;
    e->origin = origin;
    if (options->id) e->flags |= EVENT_NAMED;
    assert(!origin || origin->state == LINEAGE_OPEN);
    if (origin) {
        lineage_ref(origin);
        list_push_back(&origin->events, &e->by_origin);
    }
    lane_insert(s, e);
    ev->stats.sent++;
    return HD_OK;
}

/* The runtime is closing, and waits for this transaction: nothing is queued any more, and the transaction must not
 * fail for that. */
static hd_status turn_away(scheduler *s, hd_tx *tx, const stream *to,
                           const hd_send_options *options) {
    char id[HD_EVENT_ID_SIZE];
    uint64_t ms;
    assert(tx && s->events->closing); /* outside of transactions the sender is told at once */
    hd_status status = events_mint(s, tx, to, options, 0, &ms, id);
    return status ? status : tell_later(s, options->done, options->ctx, id, HD_CLOSED);
}

hd_status events_send(scheduler *s, hd_tx *tx, hd_cell cell, hd_value payload,
                      const hd_send_options *options) {
    stream *to;
    hd_status status = check_sender(s, tx);
    if (!status && value_is_failed(payload)) status = hd_value_status(payload);
    if (!status) status = stream_of_cell(s, cell, &to);
    if (status) return status;
    if (!options) options = &no_options;
    if (options->deliver_at_ms || options->after_ms || options->every_ms)
        return runtime_fail(s->rt, HD_USAGE, "an event that is delivered later is posted");
    if (s->events->closing) return turn_away(s, tx, to, options);
    if (value_is_absent(payload)) payload = hd_null();
    return enqueue(s, tx, to, payload, options);
}
