/* handle.c -- one handling: body, receipt, commit, verdict, and perhaps again.
 *
 * What decides is the commit, not the body: a body may run any number of times. The receipt is a
 * document whose id derives from the event's, and the commit requires that it is not there, so of all
 * handlings of an event, in all programs, one can stand (I11). A refusal that says "stale" is a wait
 * and not a failure: the event goes back to where it stood in line and runs again, a little later
 * each time, for half a minute. */
#include "scheduler/events/state.h"

#include "base/env.h"
#include "scheduler/events/outbox.h"
#include "scheduler/events/preflight.h"
#include "value/key.h"
#include "value/pool.h"
#include <stdio.h>

#define MS          UINT64_C(1000000)
#define MESSAGE_OLD "its data changed faster than it could be handled"

/* ---- again */

static void put_back(scheduler *s, event *e) {
    events *ev = s->events;
    if (!(e->flags & EVENT_IN_FLIGHT)) return; /* it is still in its lane */
    assert(ev->flying && !(e->flags & EVENT_CANCELLED));
    list_remove(&e->link);
    ev->flying--;
    e->flags &= ~(uint32_t)EVENT_IN_FLIGHT;
    e->waits = HD_EVENT_WAITS_NOT;
    lanes_wake(s, LANE_RECEIPT);
    lane_insert(s, e);
}

static void wait_ns(scheduler *s, event *e, uint64_t ns) {
    assert(!(e->flags & EVENT_IN_FLIGHT) && list_linked(&e->link));
    e->not_before = env_now_ns(s->env) + ns;
    e->waits = HD_EVENT_WAITS_TIME;
    s->events->stats.retries++;
    s->tick = true;
}

/* The handling rested on an earlier pending commit, which was refused. The event runs again at once: in its
 * lane it stands behind the event of that commit, so the two keep their order. */
static void retry_stacked(scheduler *s, event *e) {
    put_back(s, e);
    s->events->stats.retries++;
    e->not_before = 0;
}

static void retry_stale(scheduler *s, event *e) {
    uint64_t now = env_now_ns(s->env), window = s->events->window_ms * MS;
    if (!e->refused_at) e->refused_at = now;
    if (now - e->refused_at >= window) {
        events_end(s, e, HD_REJECTED, MESSAGE_OLD);
        return;
    }
    put_back(s, e);
    wait_ns(s, e, gates_delay_ns(s, ++e->stale));
}

/* Where the store could not be read the event waits for it, however long that takes. */
static void retry_unread(scheduler *s, event *e) {
    put_back(s, e);
    wait_ns(s, e, gates_delay_ns(s, ++e->transient));
}

static void retry_transient(scheduler *s, event *e, hd_status status, const char *message) {
    if (++e->transient >= EVENTS_TRANSIENT) {
        events_end(s, e, status, message);
        return;
    }
    put_back(s, e);
    wait_ns(s, e, gates_delay_ns(s, e->transient));
}

/* The body returned HD_PENDING: it met a document that is not loaded (`missing`), or says that it did. */
static void retry_blocked(scheduler *s, event *e, place_id missing) {
    assert(!(e->flags & EVENT_IN_FLIGHT));
    if (e->to->spec.one_shot) {
        events_end(s, e, HD_PENDING, "a document is not loaded, and the handler is one_shot");
    } else if (missing) {
        events_wait_for(s, e, missing);
        e->waits = HD_EVENT_WAITS_LOAD;
    } else if (++e->blocked > EVENTS_BLOCKED_MAX) {
        events_end(s, e, HD_PENDING, "its handler returned HD_PENDING, and no read was pending");
    } else {
        wait_ns(s, e, gates_delay_ns(s, e->blocked));
    }
}

/* ---- the verdict */

/* The document was assumed to be absent, and the store says that it exists: the next read loads it. */
static void unlearn(scheduler *s, place_id doc) {
    place *p = place_at(&s->r->places, doc);
    assert(p->root == doc);
    if (!p->doc.seq && !p->doc.over && value_is_absent(p->value))
        p->doc.flags &= (uint16_t)~DOC_KNOWN;
}

static void unlearn_receipt(scheduler *s, event *e) {
    place_id doc, meta;
    if (events_receipt(s, e, &doc)) return;
    unlearn(s, doc);
    if (!runtime_meta(s->rt, doc, &meta)) unlearn(s, meta);
}

/* Two refusals are not reported: HD_EXISTS (the event was handled before) and HD_ORIGIN_FAILED (the sender's
 * commit failed, and is reported as such). */
static void refused_for_good(scheduler *s, event *e, hd_status status, const char *message) {
    if (status == HD_EXISTS) {
        unlearn_receipt(s, e);
        if (e->flags & EVENT_POSTED) events_unpost(s, e->document);
    }
    bool silent = status == HD_EXISTS || status == HD_ORIGIN_FAILED;
    events_end(s, e, status, silent ? NULL : message);
}

static void ended(scheduler *s, event *e, hd_status status, const char *message) {
    switch (hd_status_class(status)) {
    case HD_CLASS_OK: events_end(s, e, HD_OK, NULL); return;
    case HD_CLASS_NO_VERDICT: /* if it is stored, the receipt says so to the next attempt */
        if (s->rt->closing) events_end(s, e, status, message);
        else retry_stale(s, e);
        return;
    case HD_CLASS_STALE:
        if (status == HD_DEAD_LAYER) retry_stacked(s, e);
        else retry_stale(s, e);
        return;
    case HD_CLASS_TRANSIENT: retry_transient(s, e, status, message); return;
    case HD_CLASS_PERMANENT: refused_for_good(s, e, status, message); return;
    default: events_end(s, e, status, message); return;
    }
}

static void settled(void *ctx, commit *c, hd_status status) {
    event *e = c->owner;
    scheduler *s = ctx;
    assert(e->flags & EVENT_IN_FLIGHT);
    /* An event of a failed origin is over, whatever its own commit was refused for. */
    if (status && (e->flags & EVENT_CANCELLED)) status = HD_ORIGIN_FAILED;
    ended(s, e, status, "its commit was refused");
}

/* ---- the receipt */

/* {"type": ..., "properties": {...}} for a container, nothing for anything else. */
static hd_value schema_of(hd_pool *pool, hd_value v) {
    hd_kind kind = hd_value_kind(v);
    if (kind != HD_KIND_OBJECT && kind != HD_KIND_ARRAY) return value_absent();
    hd_value schema = hd_object_set(pool, hd_object(), "type", hd_string(pool, hd_kind_name(kind)));
    if (kind == HD_KIND_ARRAY) return schema;
    hd_value properties = hd_object();
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        properties = hd_object_set_n(pool, properties, it.key, it.key_length, hd_object());
    return hd_object_set(pool, schema, "properties", properties);
}

/* The commit requires the document to be absent, so it need not be loaded. It is seldom read later, so
 * it need not be kept in memory. */
static void assume_absent(scheduler *s, place_id doc) {
    events_assume_absent(s, doc);
    events_pass(s, doc);
}

/* What is known of a posted event and leaves the store with its document: the stream, when it was posted, and
 * the sender's own id. */
static hd_value story_of(scheduler *s, hd_pool *pool, const event *e) {
    hd_value record = place_at(&s->r->places, e->document)->value;
    hd_value as = hd_value_at(record, "as"), time = hd_value_at(record, "time");
    hd_value v = hd_object_set(pool, hd_object(), "stream",
                               runtime_cell_text(s->rt, pool, (hd_cell){ e->to->place }));
    if (value_exists(time)) v = hd_object_set(pool, v, "time", time);
    if (value_exists(as)) v = hd_object_set(pool, v, "as", as);
    if (e->attempts > 1) v = hd_object_set(pool, v, "attempts", hd_int(pool, e->attempts));
    return v;
}

/* What stands beside a receipt: the schema of its value, the story of a posted event, and a kind where the id has no
 * time. Receipts of other sent events without a returned container have no metadata: the id says that the document is a
 * receipt, and the commit's stamp names the handler. */
static hd_status describe(scheduler *s, hd_tx *tx, place_id doc, const handling *h) {
    bool posted = h->e->flags & EVENT_POSTED;
    char text[RECEIPT_KIND_SIZE];
    const char *kind = receipts_kind(s, h->e->id, text);
    place_id meta;
    if (!posted && !h->returned && !kind) return HD_OK;
    hd_pool *pool = tx_pool(tx);
    if (!pool) return HD_NOMEM;
    hd_value schema = h->returned ? schema_of(pool, h->result) : value_absent();
    if (!posted && value_is_absent(schema) && !kind) return HD_OK;
    hd_value v = posted ? story_of(s, pool, h->e) : hd_object();
    if (!value_is_absent(schema)) v = hd_object_set(pool, v, "schema", schema);
    if (kind) v = hd_object_set(pool, v, "kind", hd_string(pool, kind));
    hd_status status = value_is_failed(v) ? hd_value_status(v) : runtime_meta(s->rt, doc, &meta);
    if (status) return status;
    assume_absent(s, meta);
    return tx_write_op(tx, OP_SET, meta, v, 0);
}

static hd_status write_receipt(scheduler *s, hd_tx *tx, const handling *h) {
    place_id doc;
    if (s->events->bare) return HD_OK;
    hd_status status = events_receipt(s, h->e, &doc);
    if (!status) status = hd_tx_require_absent(tx, (hd_cell){ doc });
    if (status) return status;
    assume_absent(s, doc);
    receipts_made(s);
    status = tx_write_op(tx, OP_SET, doc, h->returned ? h->result : hd_object(), 0);
    return status ? status : describe(s, tx, doc, h);
}

/* ---- the commit */

/* While the commit that sent the event is undecided, this one requires that it is accepted. */
static hd_status require_origin(scheduler *s, hd_tx *tx, const event *e) {
    (void)s;
    const lineage *origin = e->origin;
    if (!origin || origin->state != LINEAGE_PENDING) return HD_OK;
    if (SABOTAGED(s->events, EVENTS_WITHOUT_ORIGIN)) return HD_OK;
    assert(origin->local_seq);
    return tx_require_origin(tx, origin->local_seq);
}

static void trace(scheduler *s, const handling *h, const hd_tx *tx, uint32_t writes) {
    events *ev = s->events;
    if (!ev->trace) return;
    hd_event_trace t = { .stage = HD_EVENT_COMMIT,
                         .id = h->e->id,
                         .handler = h->name,
                         .stream = { h->e->to->place },
                         .writes = writes,
                         .truncated = writes > HD_EVENT_SAMPLE };
    for (uint32_t i = 0; i < writes && i < HD_EVENT_SAMPLE; i++)
        t.sample[i] = (hd_cell){ tx->writes.items[i].doc };
    ev->trace(&t, ev->trace_ctx);
}

static void count_outside(scheduler *s, const handling *h, hd_tx *tx) {
    stream *to = h->e->to;
    if (tx_reads_complete(tx)) return;
    uint32_t outside = preflight_outside(s, tx);
    s->events->stats.outside_reads += outside;
    if (!outside || to->warned_outside) return;
    to->warned_outside = true;
    env_log(s->env, HD_LOG_WARN,
            "handler \"%s\" read %u places that it does not declare: they may be out of date",
            h->name, outside);
}

/* The handling was submitted: the event leaves its lane, and `settled` is called with the verdict. */
static void take_off(scheduler *s, event *e, commit *c) {
    events *ev = s->events;
    assert(!(e->flags & (EVENT_IN_FLIGHT | EVENT_CANCELLED)));
    c->settled = settled;
    c->settled_ctx = s;
    c->owner = e;
    lane_remove(s, e);
    e->flags |= EVENT_IN_FLIGHT;
    list_push_back(&ev->in_flight, &e->link);
    ev->flying++;
    ev->burst++;
}

static hd_status submit(scheduler *s, hd_tx *tx, handling *h, commit **out) {
    event *e = h->e;
    uint32_t writes = tx->writes.count;
    hd_status status = tx->failed;
    *out = NULL;
    if (status) {
        runner_take_message(s, 0, tx, status);
        return status;
    }
    count_outside(s, h, tx);
    status = write_receipt(s, tx, h);
    if (!status && (e->flags & EVENT_POSTED)) status = events_remove(s, tx, e->document);
    if (!status) status = require_origin(s, tx, e);
    tx->stamp.action = h->name; /* C353 */
    if (e->origin && e->origin->state != LINEAGE_FAILED) tx->stamp.from = e->origin->local_seq;
    tx->stamp.implementation = build_prefix_of(s, (const void *)(uintptr_t)h->fn);
    if (!status && !tx_commit_now(tx, &status)) status = tx_submit(tx, out);
    if (!status) trace(s, h, tx, writes);
    return status;
}

/* ---- the body */

static hd_status call_body(scheduler *s, hd_tx *tx, handling *h) {
    event *e = h->e;
    assert(e->to->spec.fn == h->fn && e->attempts);
    const hd_schema *schema = e->to->spec.event_schema;
    hd_value payload = e->payload;
    if (schema) {
        hd_pool *pool = tx_pool(tx);
        payload = pool ? hd_schema_project(pool, schema, e->payload) : value_failed(HD_NOMEM);
        if (value_is_failed(payload)) return hd_value_status(payload);
    }
    h->view = events_view(e);
    h->view.payload = payload;
    s->events->stats.runs++;
    s->handlings++;
    s->rt->in_run = true;
    hd_status status = e->to->spec.fn(tx, &h->view, e->to->spec.ctx);
    s->rt->in_run = false;
    return status;
}

/* A permanent status, HD_EXISTS above all, is a verdict of the store. A body that returns one has failed. */
static hd_status failure_of_body(scheduler *s, const hd_tx *tx, hd_status status) {
    status = tx_true_reason(tx, status);
    runner_take_message(s, 0, tx, status);
    if (hd_status_class(status) != HD_CLASS_PERMANENT) return status;
    if (!s->message[0])
        snprintf(s->message, sizeof s->message, "the body returned %s", hd_status_name(status));
    return HD_FAILED;
}

/* Whether the handling takes outputs that are out of date as they are visible. They cannot be sealed, so that the
 * commit of a handling which has read them is refused. Taken are those of inputs that do not settle; and those that
 * the handler has not declared, when the event, or one before it, has waited for them as long as events do. */
static bool takes_unsealed(const scheduler *s, const event *e) {
    uint64_t now = env_now_ns(s->env), longest = BACKOFF_MAX_MS * MS, last = e->to->unsealed_at;
    if (e->flags & EVENT_UNSETTLED) return true;
    if (!e->refused_at) return false;
    return now - e->refused_at >= longest || (last && now - last <= longest);
}

void events_handle(scheduler *s, event *e) {
    hd_tx *tx;
    commit *c = NULL;
    const stream *to = e->to;
    handling h = { .e = e,
                   .name = to->name,
                   .piece = to->owner.piece,
                   .pattern = to->owner.pattern,
                   .fn = to->spec.fn };
    assert(lane_head(to->lane) == e && to->spec.fn && !e->waits);
    assert(!(e->flags & EVENT_IN_FLIGHT) && !s->running && !s->rt->in_run);
    s->message[0] = 0;
    e->attempts++;
    hd_status status = tx_open(s->rt, HD_COMMIT_EVENT, &tx);
    if (status) {
        events_end(s, e, status, "");
        return;
    }
    tx->flags |= TX_RUN;
    if (takes_unsealed(s, e)) tx->flags |= TX_TAKES_UNSEALED;
    tx->owner = &h;
    status = call_body(s, tx, &h);
    status = status ? failure_of_body(s, tx, status) : submit(s, tx, &h, &c);
    if (!status && (tx->flags & TX_TAKES_UNSEALED)) e->to->unsealed_at = env_now_ns(s->env);
    bool unread = status && tx_is_unread(tx);
    place_id missing = tx->missing; /* a read's, or a document that the commit removes */
    if (!status && c) take_off(s, e, c);
    if (!status && !c) tx_launched(tx, HD_OK);
    /* This attempt does not commit: what it launched is stopped, also if the event is tried again. */
    if (status && tx->lineage) tx_launched(tx, status == HD_PENDING ? HD_ABORTED : status);
    tx_close(tx);
    if (c) return;
    if (hd_status_class(status) == HD_CLASS_PENDING) retry_blocked(s, e, missing);
    else if (unread) retry_unread(s, e);
    else ended(s, e, status, s->message);
}
