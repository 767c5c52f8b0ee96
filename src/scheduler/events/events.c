/* events.c -- the step of a pass: what the head of a lane waits for, and the end of an event. */
#include "scheduler/events/events.h"

#include "base/env.h"
#include "scheduler/events/delay.h"
#include "scheduler/events/outbox.h"
#include "scheduler/events/preflight.h"
#include "store/session.h"
#include "value/key.h"
#include <stdio.h>

/* ---- the step of a pass */

static hd_event_wait ask_for_handler(scheduler *s, event *e);
static hd_event_wait sync_first(scheduler *s, event *e);

void events_wait_for(scheduler *s, event *e, place_id doc) {
    assert(!doc || place_is_doc(&s->r->places, doc));
    if (doc) place_ref(&s->r->places, doc);
    if (e->missing) place_unref(&s->r->places, e->missing);
    e->missing = doc;
}

/* Whether the document was asked for and has not arrived. Each step looks at the document itself, since
 * look_for_arrived wakes only the heads of lanes: an event behind the head is not told that its document has
 * arrived. */
static bool is_on_its_way(const scheduler *s, place_id doc) {
    return doc && (place_at(&s->r->places, doc)->doc.flags & DOC_LOADING);
}

/* What the event waits for before anything is read on its behalf. */
static hd_event_wait waits_outside(scheduler *s, event *e) {
    const lineage *origin = e->origin;
    if (e->not_before && e->not_before > env_now_ns(s->env)) return HD_EVENT_WAITS_TIME;
    if (origin && origin->state == LINEAGE_OPEN) return HD_EVENT_WAITS_ORIGIN;
    if (origin && origin->state == LINEAGE_PENDING) {
        const struct key *space = s->r->places.homes.items[e->to->home].space;
        if (!lineage_in_space(origin, space)) return HD_EVENT_WAITS_ORIGIN;
    }
    if (e->to->loading) return HD_EVENT_WAITS_HANDLER;
    return is_on_its_way(s, e->missing) ? HD_EVENT_WAITS_LOAD : HD_EVENT_WAITS_NOT;
}

/* An earlier delivery of the same event, as far as this runtime can see. */
typedef enum earlier { EARLIER_NONE, EARLIER_UNKNOWN, EARLIER_PENDING, EARLIER_DONE } earlier;

hd_status events_receipt(scheduler *s, event *e, place_id *out) {
    if (!e->receipt) {
        hd_status status = event_document(s, e->to->home, RECEIPT, e->id, &e->receipt);
        if (status) return status;
        place_ref(&s->r->places, e->receipt);
    }
    assert(place_at(&s->r->places, e->receipt)->doc.home == e->to->home);
    *out = e->receipt;
    return HD_OK;
}

static earlier delivered_before(scheduler *s, event *e) {
    place_id receipt;
    if (events_receipt(s, e, &receipt)) return EARLIER_NONE; /* the handling reports the failure */
    /* The sender chose this id and may have sent the event long ago: load the receipt to find out. */
    if ((e->flags & EVENT_NAMED) && replica_load(s->r, receipt) == HD_PENDING) {
        events_wait_for(s, e, receipt);
        return EARLIER_UNKNOWN;
    }
    const place *p = place_at(&s->r->places, receipt);
    if (!value_exists(p->value)) return EARLIER_NONE;
    return replica_top(s->r, receipt) ? EARLIER_PENDING : EARLIER_DONE;
}

/* Ends an event that was handled before, and lets one wait whose earlier delivery is undecided. True: the
 * event is over, or waits. */
static bool stop_repeated(scheduler *s, event *e) {
    if (s->events->bare) return false;
    switch (delivered_before(s, e)) {
    case EARLIER_NONE: return false;
    case EARLIER_UNKNOWN: e->waits = HD_EVENT_WAITS_LOAD; return true;
    case EARLIER_PENDING: e->waits = HD_EVENT_WAITS_DUPLICATE; return true;
    case EARLIER_DONE: break;
    }
    if (e->flags & EVENT_POSTED) events_unpost(s, e->document);
    events_end(s, e, HD_EXISTS, NULL);
    return true;
}

/* Ends an event whose payload does not match the handler's schema. It leaves no receipt, as a handler that
 * fails leaves none. True: the event is over. */
static bool end_mismatched(scheduler *s, event *e) {
    const hd_schema *schema = e->to->spec.event_schema;
    hd_error error;
    assert(e->to->spec.fn && e->checked <= e->to->generation);
    if (!schema || e->checked == e->to->generation) return false;
    hd_status status = hd_schema_validate(schema, e->payload, &error);
    if (status) {
        events_end(s, e, status, error.message);
        return true;
    }
    e->checked = e->to->generation;
    return false;
}

/* Runs the preflight. True: the handler's inputs are loaded and up to date. False: the event waits
 * (e->waits), or it is over. */
static bool prepare_inputs(scheduler *s, event *e) {
    hd_status status = preflight_event(s, e);
    if (!status) return true;
    s->events->stats.parked++;
    if (e->waits != HD_EVENT_WAITS_NOT || status == HD_PENDING) {
        if (!e->to->spec.one_shot || e->waits == HD_EVENT_WAITS_NODES) return false;
        events_end(s, e, HD_PENDING, "its inputs are not there, and the handler is one_shot");
        return false;
    }
    events_end(s, e, status, s->message);
    return false;
}

static void step(scheduler *s, lane *l) {
    event *e = lane_head(l);
    assert(l->state == LANE_TURN && e); /* a lane without events is in no list */
    assert(!(e->flags & (EVENT_IN_FLIGHT | EVENT_CANCELLED)));
    e->waits = waits_outside(s, e);
    if (e->waits) return;
    hd_event_wait missing = e->to->spec.fn ? HD_EVENT_WAITS_NOT : ask_for_handler(s, e);
    if (lane_head(l) != e) return; /* no handler was found, and the event is over */
    e->waits = missing;
    if (e->waits || !e->to->spec.fn) return;
    if (event_id_expired(s, e->time_ms && e->due_ms > e->time_ms ? e->due_ms : e->time_ms)) {
        events_end(
            s, e, HD_EXPIRED,
            "it is older than receipts are kept: what may wait so long is posted as lasting");
        return;
    }
    if (end_mismatched(s, e) || stop_repeated(s, e)) return;
    uint32_t generation = e->to->generation;
    if (!(e->flags & EVENT_PRESYNCED)) e->waits = sync_first(s, e);
    if (e->waits || !prepare_inputs(s, e)) return;
    /* Presync and preflight are calls to the program, which may have removed the handler or registered
     * another: then the next step begins again with this event. */
    if (e->to->spec.fn && e->to->generation == generation) events_handle(s, e);
}

/* Handlings use up the pump's time slice as runs do. The clock is read once in EVENTS_BURST steps. */
static void look_at_clock(scheduler *s) {
    events *ev = s->events;
    if (ev->until_clock++ % EVENTS_BURST) return;
    s->clock_ns = env_now_ns(s->env);
    uint32_t ms = s->rt->options.slice_ms ? s->rt->options.slice_ms : 16;
    if (!s->slice_end) s->slice_end = s->clock_ns + ms * UINT64_C(1000000);
}

void events_head_step(scheduler *s) {
    events *ev = s->events;
    if (!ev) return;
    events_tell_outcomes(s);
    if (ev->arrivals.count && !ev->closing) events_take_arrivals(s);
    delays_step(s);
    if (ev->outbox) outbox_step(s);
    receipts_step(s);
    ev->again = false;
    if (!ev->queued) return;
    look_at_clock(s);
    streams_begin(s);
    lanes_begin_turn(s);
    for (lane *l; (l = lanes_next(ev));) {
        step(s, l);
        lane_end_turn(s, l);
    }
    streams_end(s);
}

/* ---- a handler that is not there */

/* HD_PENDING: hd_handler_loaded is still to be called. If it was called already, from inside of the call that
 * says so, there is nothing to wait for. */
static hd_status load_handler(scheduler *s, stream *to) {
    const events *ev = s->events;
    hd_status status = HD_NOT_FOUND;
    to->loading = true;
    if (ev->load) status = ev->load(s->rt, (hd_cell){ to->place }, ev->load_ctx);
    if (status == HD_NOT_FOUND && s->unhandled) status = s->unhandled(s, to->place);
    bool answered = !to->loading;
    to->loading = status == HD_PENDING && !answered && !to->spec.fn;
    return status == HD_PENDING && !to->loading ? HD_NOT_FOUND : status;
}

static hd_event_wait ask_for_handler(scheduler *s, event *e) {
    stream *to = e->to;
    hd_status status = HD_NOT_FOUND;
    assert(!to->loading && !to->spec.fn);
    if (!(e->flags & EVENT_ASKED)) {
        e->flags |= EVENT_ASKED;
        status = load_handler(s, to);
        if (to->loading) return HD_EVENT_WAITS_HANDLER;
    }
    if (!to->spec.fn) {
        char name[160], message[256];
        hd_cell_print(s->rt, (hd_cell){ to->place }, name, sizeof name);
        snprintf(message, sizeof message, "there is no handler for the stream %s", name);
        events_end(s, e, status ? status : HD_NOT_FOUND, message);
    }
    return HD_EVENT_WAITS_NOT;
}

/* ---- syncing first */

hd_event events_view(const event *e) {
    return (hd_event){ .id = e->id,
                       .stream = { e->to->place },
                       .payload = e->payload,
                       .time_ms = e->time_ms,
                       .attempt = e->attempts,
                       .posted = e->flags & EVENT_POSTED,
                       .due_ms = e->due_ms,
                       .missed = e->missed };
}

static hd_event_wait sync_first(scheduler *s, event *e) {
    hd_presync_fn fn = e->to->spec.presync;
    assert(!(e->flags & (EVENT_PRESYNCED | EVENT_IN_FLIGHT)));
    if (e->presync) return HD_EVENT_WAITS_PRESYNC;
    e->flags |= EVENT_PRESYNCED;
    if (!fn) return HD_EVENT_WAITS_NOT;
    hd_presync *sync = env_new0(s->env, sizeof *sync);
    if (!sync) return HD_EVENT_WAITS_NOT; /* no memory: the handler may run without a presync */
    *sync = (hd_presync){ .s = s, .e = e };
    list_push_back(&s->events->presyncs, &sync->link);
    e->presync = sync;
    hd_event view = events_view(e);
    hd_status status = fn(sync, &view, e->to->spec.ctx);
    if (!e->presync) return HD_EVENT_WAITS_NOT; /* done already */
    if (status == HD_PENDING) {
        e->flags &= ~(uint32_t)EVENT_PRESYNCED;
        return HD_EVENT_WAITS_PRESYNC;
    }
    hd_presync_done(sync, status);
    return HD_EVENT_WAITS_NOT;
}

void hd_presync_done(hd_presync *sync, hd_status status) {
    scheduler *s = sync->s;
    event *e = sync->e;
    if (status)
        env_log(s->env, HD_LOG_DEBUG, "inputs could not be synced: %s", hd_status_text(status));
    assert(list_linked(&sync->link) && (!e || e->presync == sync));
    if (e) {
        e->presync = NULL;
        e->flags |= EVENT_PRESYNCED;
        lane_wake(s, e->to->lane);
    }
    list_remove(&sync->link);
    env_free(s->env, sync, sizeof *sync);
    s->tick = true;
}

/* ---- what others ask */

bool events_have_work(const scheduler *s) {
    const events *ev = s->events;
    if (!ev) return false;
    if ((ev->arrivals.count && !ev->closing) || outbox_has_work(s)) return true;
    if (delays_are_due(s) || (receipts_are_pruned(ev) && !ev->closing)) return true;
    return !list_empty(&ev->outcomes) || lanes_have_work(s);
}

/* Whether one lane waits for anything but parked runs. */
static bool any_goes_on(const list *lanes) {
    LIST_FOR (n, lanes)
        if (!LIST_ENTRY(n, lane, link)->behind_suspended) return true;
    return false;
}

/* Lanes in LANE_READS do not count: a handler whose preflight returned HD_PENDING waits for some change, perhaps for
 * ever, and the runtime is idle meanwhile. Nor do lanes that wait for suspended runs, where all of these are parked. */
bool events_hold_idle(const scheduler *s) {
    const events *ev = s->events;
    for (int i = 0; ev && i < LANE_STATES; i++) {
        if (i == LANE_READS || list_empty(&ev->lanes_in[i])) continue;
        bool parked = i == LANE_NODES && s->parked && s->parked == s->suspended;
        if (!parked || any_goes_on(&ev->lanes_in[i])) return true;
    }
    return ev && delays_are_due(s);
}

/* Sync does not wait for lanes that wait for the program itself: it cannot answer while it is blocked in a
 * sync. */
bool events_are_unsettled(const scheduler *s) {
    const events *ev = s->events;
    if (!ev) return false;
    if ((ev->arrivals.count && !ev->closing) || !list_empty(&ev->outcomes)) return true;
    for (int i = 0; i < LANE_STATES; i++)
        LIST_FOR (n, &ev->lanes_in[i])
            if (!lane_waits_for_program(LIST_ENTRY(n, lane, link))) return true;
    return false;
}

uint64_t events_next(const scheduler *s) {
    const events *ev = s->events;
    if (!ev) return UINT64_MAX;
    uint64_t at = lanes_next_time(ev);
    uint64_t message = outbox_next(s), delayed = delays_next(s);
    if (message < at) at = message;
    return delayed < at ? delayed : at;
}

bool events_take_burst(scheduler *s) {
    events *ev = s->events;
    if (!ev || ev->burst < EVENTS_BURST) return false;
    ev->burst = 0;
    return true;
}

/* An event that waits for this document; NULL: none does. */
static event *head_that_needs(const events *ev, place_id doc) {
    LIST_FOR (n, &ev->lanes_in[LANE_PARKED]) {
        event *e = lane_head(LIST_ENTRY(n, lane, link));
        if (e->missing == doc) return e;
    }
    return NULL;
}

/* A document arrived, or could not be loaded. */
static void look_for_arrived(scheduler *s, place_id doc, hd_status status) {
    events *ev = s->events;
    if (!ev) return;
    outbox_arrived(s, doc, status);
    if (ev->awaited.count) events_look_again(s, doc, status);
    if (!status) events_integrated(s, doc); /* a posted event may have been asked for */
    for (event *e; (e = head_that_needs(ev, doc));) {
        events_wait_for(s, e, 0);
        e->waits = HD_EVENT_WAITS_NOT;
        lane_wake(s, e->to->lane);
        if (status) events_end(s, e, status, "a document that it reads could not be loaded");
    }
}

void events_sign(const scheduler *s, const hd_tx *tx, hd_log_entry *entry) {
    const handling *h = handling_of(tx);
    const event *e = h ? h->e : tx->flags & TX_PREFLIGHT ? tx->owner : NULL;
    if (!e) return;
    entry->action = h ? h->name : e->to->name;
    entry->piece = h ? h->piece : e->to->owner.piece;
    entry->pattern = h ? h->pattern : e->to->owner.pattern;
    entry->space = key_bytes(s->r->places.homes.items[e->to->home].space);
}

/* A commit changed something: lanes that wait for any change are looked at again. */
static void look_for_changed(scheduler *s) {
    if (!s->events) return;
    lanes_wake(s, LANE_READS);
    lanes_wake(s, LANE_RECEIPT);
}

void events_check(const scheduler *s) {
    if (!s->events) return;
    lanes_check(s->events);
    lineages_check(&s->events->lineages);
    outbox_check(s);
    delays_check(s);
}

/* ---- coming and going */

event *events_new(scheduler *s, stream *to) {
    events *ev = s->events;
    event *e = slab_take(&ev->records);
    if (!e) return NULL;
    *e = (event){ .to = to, .order = ev->next_order++ };
    assert(to->lane && !list_linked(&e->link));
    return e;
}

static void report(scheduler *s, const event *e, hd_status status, const char *message) {
    const struct key *space = s->r->places.homes.items[e->to->home].space;
    hd_failure failure = { .status = status,
                           .message = message && *message ? message : hd_status_text(status),
                           .action = e->to->name ? e->to->name : "",
                           .piece = e->to->owner.piece,
                           .pattern = e->to->owner.pattern,
                           .space = key_bytes(space) };
    s->stats.failures++;
    streams_begin(s);
    if (!scheduler_tell_error(s, &failure))
        env_log(s->env, HD_LOG_ERROR, "uncaught%s%s%s event %s: %s (%s)",
                *failure.action ? " in handler \"" : "", failure.action,
                *failure.action ? "\"," : ":", e->id, failure.message, hd_status_name(status));
    streams_end(s);
}

static void count_end(events *ev, stream *to, hd_status status) {
    if (status == HD_EXISTS) ev->stats.duplicates++;
    else if (status == HD_ORIGIN_FAILED) ev->stats.cancelled++;
    else if (status) to->failed++, ev->stats.failed++;
    else to->handled++, ev->stats.handled++;
}

static void release_origin(scheduler *s, event *e) {
    if (!e->origin) return;
    lineage *origin = e->origin;
    assert(list_linked(&e->by_origin));
    e->origin = NULL;
    list_remove(&e->by_origin);
    lineage_unref(&s->events->lineages, origin);
}

/* A posted event is over here: its document may be taken up again. */
static void untake(scheduler *s, event *e) {
    assert(!e->document == !(e->flags & EVENT_POSTED));
    if (!e->document) return;
    table_remove(&s->events->taken, e->document, e->document);
    list_remove(&e->by_doc);
    place_unref(&s->r->places, e->document);
    e->document = 0;
}

/* Whether the event is a posted one that stays in the store, as failed, when it ends with this status. */
static bool stays_as_failed(const events *ev, const event *e, hd_status status) {
    bool left =
        status == HD_CLOSED || (ev->closing && status == HD_NO_VERDICT); /* to the next start */
    return (e->flags & EVENT_POSTED) && status && status != HD_EXISTS && !left;
}

void events_end(scheduler *s, event *e, hd_status status, const char *why) {
    events *ev = s->events;
    assert(list_linked(&e->link)); /* in its lane, or in flight: an event ends once */
    assert(!e->presync || e->presync->e == e);
    if (stays_as_failed(ev, e, status))
        events_note_failure(s, e, status, why && *why ? why : hd_status_text(status));
    if (e->flags & EVENT_IN_FLIGHT) {
        assert(ev->flying);
        list_remove(&e->link);
        ev->flying--;
    } else {
        lane_remove(s, e);
    }
    lanes_wake(s, LANE_RECEIPT); /* another delivery may have waited for the verdict of this one */
    if (e->presync) e->presync->e = NULL;
    release_origin(s, e);
    untake(s, e);
    if (e->receipt) place_unref(&s->r->places, e->receipt);
    events_wait_for(s, e, 0);
    value_unref(e->payload);
    count_end(ev, e->to, status);
    s->tick = true;
    if (why) report(s, e, status, why);
    if (e->done) e->done(e->id, status, e->ctx);
    slab_give(&ev->records, e);
}

/* The transaction that sent the event did not commit. An event in flight ends with the verdict of its own
 * commit, which cannot be accepted. */
static void cancel(void *ctx, list_node *by_origin) {
    scheduler *s = ctx;
    event *e = LIST_ENTRY(by_origin, event, by_origin);
    assert(e->origin && e->origin->state == LINEAGE_FAILED);
    if (e->flags & EVENT_IN_FLIGHT) {
        e->flags |= EVENT_CANCELLED;
        release_origin(s, e);
        return;
    }
    events_end(s, e, HD_ORIGIN_FAILED, NULL);
}

/* ---- life */

/* The state of the lineage changes: lanes whose head it has sent may have waited for that. */
static void wake_sent(scheduler *s, const lineage *l) {
    LIST_FOR (n, &l->events) {
        event *e = LIST_ENTRY(n, event, by_origin);
        if (lane_head(e->to->lane) == e) lane_wake(s, e->to->lane);
    }
}

static void on_lineage(void *ctx, void *l, const commit *c, hd_status status) {
    scheduler *s = ctx;
    wake_sent(s, l);
    lineage_told(&s->events->lineages, l, s->r, c, status);
    s->tick = true;
}

static void on_integrated(void *ctx, place_id doc) {
    events_integrated(ctx, doc);
    outbox_integrated(ctx, doc);
}

static void on_notice(void *ctx, hd_change_kind kind, uint32_t origin) {
    (void)kind, (void)origin;
    look_for_changed(ctx);
}

static void on_arrived(void *ctx, place_id doc, hd_status status) {
    scheduler *s = ctx;
    if (s->events->arrived) s->events->arrived(ctx, doc, status);
    look_for_arrived(s, doc, status);
}

events *events_of(scheduler *s) {
    if (s->events) return s->events;
    events *ev = env_new0(s->env, sizeof *ev);
    if (!ev) return NULL;
    lanes_init(ev, s->env);
    delays_init(&ev->delays, s->env);
    list_init(&ev->in_flight);
    list_init(&ev->posted);
    list_init(&ev->presyncs);
    list_init(&ev->left);
    list_init(&ev->outcomes);
    slab_init(&ev->records, s->env, sizeof(event));
    table_init(&ev->by_place, s->env);
    table_init(&ev->taken, s->env);
    lineages_init(&ev->lineages, s->env, cancel, s);
    session_text(s->r->session, ev->session);
    ev->window_ms = EVENTS_WINDOW_MS;
    s->events = ev;
    ev->arrived = s->r->observer.arrived;
    s->r->observer.arrived = on_arrived;
    s->r->observer.lineage = on_lineage;
    s->r->observer.integrated = on_integrated;
    s->r->observer.notice = on_notice;
    return ev;
}

/* The oldest event of all lanes whose handling has not begun. The caller asks again after each end: the
 * outcome callback of one event may end others. */
static event *first_not_begun(const events *ev) {
    event *first = NULL;
    for (uint32_t i = 0; i < ev->lanes.count; i++)
        LIST_FOR (n, &ev->lanes.items[i]->queue) {
            event *e = LIST_ENTRY(n, event, link);
            if (e->attempts) continue;
            if (!first || e->order < first->order) first = e;
            break;
        }
    return first;
}

void events_close(scheduler *s) {
    events *ev = s->events;
    if (!ev) return;
    ev->closing = true;
    events_tell_outcomes(s);
    for (event *e; (e = first_not_begun(ev));) events_end(s, e, HD_CLOSED, NULL);
}

void events_fini(scheduler *s) {
    events *ev = s->events;
    if (!ev) return;
    ev->closing = true;
    events_tell_outcomes(s);
    for (event *e; (e = lanes_oldest(ev));) events_end(s, e, HD_CLOSED, NULL);
    while (!list_empty(
        &ev->in_flight)) /* their handlers have run, and the commits may be in the store */
        events_end(s, LIST_ENTRY(list_first(&ev->in_flight), event, link), HD_NO_VERDICT, NULL);
    assert(!ev->queued && !ev->flying && list_empty(&ev->posted) && !table_count(&ev->taken));
    while (!list_empty(&ev->presyncs)) {
        hd_presync *sync = LIST_ENTRY(list_pop_front(&ev->presyncs), hd_presync, link);
        env_free(s->env, sync, sizeof *sync);
    }
    s->r->observer.arrived = ev->arrived;
    s->r->observer.lineage = NULL;
    s->r->observer.integrated = NULL;
    s->r->observer.notice = NULL;
    lineages_fini(&ev->lineages);
    streams_fini(s);
    lanes_fini(ev, s->env);
    preflight_fini(s);
    outbox_fini(s);
    delays_fini(s);
    receipts_fini(s);
    for (uint32_t i = 0; i < ev->arrivals.count; i++)
        place_unref(&s->r->places, ev->arrivals.items[i].doc);
    for (uint32_t i = 0; i < ev->awaited.count; i++)
        place_unref(&s->r->places, ev->awaited.items[i].doc);
    vec_fini(s->env, &ev->arrivals);
    vec_fini(s->env, &ev->awaited);
    table_fini(&ev->taken);
    slab_fini(&ev->records);
    env_free(s->env, ev, sizeof *ev);
    s->events = NULL;
}
