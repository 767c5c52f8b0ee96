/* scheduler_events.c -- the facade of events: the public functions of heddle/event.h. */
#include "scheduler/scheduler.h"

#include "base/env.h"
#include "scheduler/events/events.h"
#include "scheduler/events/outbox.h"
#include "value/id.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

static scheduler *with_events(hd_runtime *rt) {
    scheduler *s = scheduler_of(rt);
    return s && events_of(s) ? s : NULL;
}

/* ---- handlers */

hd_status hd_handler_register(hd_runtime *rt, const hd_handler_spec *spec, hd_handler *out) {
    scheduler *s = with_events(rt);
    hd_handler unwanted;
    if (!out) out = &unwanted;
    *out = (hd_handler){ 0, 0 };
    return s ? stream_register(s, spec, NULL, out) : HD_NOMEM;
}

void hd_handler_unregister(hd_runtime *rt, hd_handler handler) {
    scheduler *s = scheduler_get(rt);
    if (s && s->events) stream_unregister(s, handler);
}

hd_status hd_runtime_set_handler_load(hd_runtime *rt, hd_handler_load_fn fn, void *ctx) {
    scheduler *s = with_events(rt);
    if (!s) return HD_NOMEM;
    s->events->load = fn;
    s->events->load_ctx = ctx;
    return HD_OK;
}

void hd_handler_loaded(hd_runtime *rt, hd_cell cell, hd_status status) {
    scheduler *s = with_events(rt);
    stream *to;
    if (s && !stream_of_cell(s, cell, &to)) stream_loaded(s, to, status);
}

/* ---- sending and posting */

hd_status hd_event_send(hd_runtime *rt, hd_cell cell, hd_value payload,
                        const hd_send_options *options) {
    scheduler *s = with_events(rt);
    return s ? events_send(s, NULL, cell, payload, options) : HD_NOMEM;
}

hd_status hd_tx_send(hd_tx *tx, hd_cell cell, hd_value payload, const hd_send_options *options) {
    scheduler *s = with_events(tx->rt);
    return s ? events_send(s, tx, cell, payload, options) : HD_NOMEM;
}

hd_status hd_tx_post(hd_tx *tx, hd_cell cell, hd_value payload, const hd_send_options *options,
                     char id[HD_EVENT_ID_SIZE]) {
    scheduler *s = with_events(tx->rt);
    char unasked[HD_EVENT_ID_SIZE];
    if (!id) id = unasked;
    id[0] = 0;
    return s ? events_post(s, tx, cell, payload, options, id) : HD_NOMEM;
}

static hd_status post_new(hd_runtime *rt, hd_cell cell, hd_value payload,
                          const hd_send_options *options, char id[HD_EVENT_ID_SIZE]) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(rt, &tx);
    if (status) return status;
    status = hd_tx_post(tx, cell, payload, options, id);
    if (!status) return hd_tx_commit(tx, NULL, NULL);
    hd_tx_abort(tx);
    return status;
}

hd_status hd_event_post(hd_runtime *rt, hd_cell cell, hd_value payload,
                        const hd_send_options *options, char id[HD_EVENT_ID_SIZE]) {
    char unasked[HD_EVENT_ID_SIZE];
    if (!id) id = unasked;
    id[0] = 0;
    if (!options || !options->id) return post_new(rt, cell, payload, options, id);
    scheduler *s = with_events(rt);
    return s ? events_post_named(s, cell, payload, options, id) : HD_NOMEM;
}

hd_status hd_tx_event_retry(hd_tx *tx, hd_cell cell) {
    scheduler *s = with_events(tx->rt);
    return s ? events_retry(s, tx, cell) : HD_NOMEM;
}

hd_status hd_tx_event_drop(hd_tx *tx, hd_cell cell, const char *why) {
    scheduler *s = with_events(tx->rt);
    return s ? events_drop(s, tx, cell, why) : HD_NOMEM;
}

hd_status hd_event_id_of(hd_runtime *rt, hd_cell cell, const char *id, uint64_t id_time_ms,
                         char out[HD_EVENT_ID_SIZE]) {
    scheduler *s = with_events(rt);
    stream *to;
    out[0] = 0;
    hd_status status = s ? stream_of_cell(s, cell, &to) : HD_NOMEM;
    return status ? status : event_id_named(s, to, id, id_time_ms, out);
}

static hd_cell document_of(hd_runtime *rt, hd_cell cell, const char *prefix, const char *id) {
    scheduler *s = with_events(rt);
    stream *to;
    place_id doc;
    if (!s || stream_of_cell(s, cell, &to)) return (hd_cell){ 0 };
    if (event_id_time(id) == UINT64_MAX || strlen(id) >= HD_EVENT_ID_SIZE) return (hd_cell){ 0 };
    if (event_document(s, to->home, prefix, id, &doc)) return (hd_cell){ 0 };
    place_at(&s->r->places, doc)->doc.flags |= DOC_PINNED;
    return (hd_cell){ doc };
}

hd_cell hd_event_receipt(hd_runtime *rt, hd_cell cell, const char *id) {
    return document_of(rt, cell, RECEIPT, id);
}
hd_cell hd_event_cell(hd_runtime *rt, hd_cell cell, const char *id) {
    return document_of(rt, cell, "event/", id);
}

static hd_status drop_cancelled(hd_tx *tx, void *ctx) {
    return hd_tx_event_drop(tx, *(const hd_cell *)ctx, "cancelled");
}

hd_status hd_event_cancel(hd_runtime *rt, hd_cell stream_, const char *id) {
    hd_cell event_ = hd_event_cell(rt, stream_, id);
    if (!event_.id) return runtime_fail(rt, HD_USAGE, "this is no id of an event: %.80s", id);
    hd_status status = hd_transact(rt, drop_cancelled, &event_);
    return status == HD_EXISTS ? HD_NOT_FOUND : status;
}

/* ---- inside a handler */

hd_status hd_tx_return(hd_tx *tx, hd_value v) {
    handling *h = handling_of(tx);
    if (!h) return runtime_fail(tx->rt, HD_USAGE, "only a handler returns something");
    if (value_is_failed(v)) return hd_value_status(v);
    if (value_is_absent(v)) return runtime_fail(tx->rt, HD_KIND, "absent cannot be stored");
    h->result = v;
    h->returned = true;
    return HD_OK;
}

hd_status hd_tx_mint(hd_tx *tx, char id[HD_ID_SIZE]) {
    handling *h = handling_of(tx);
    char json[HD_EVENT_ID_SIZE + 64];
    id[0] = 0;
    if (!h) return runtime_fail(tx->rt, HD_USAGE, "ids are minted by handlers");
    int length =
        snprintf(json, sizeof json, "{\"minted\":{\"by\":\"%s\",\"n\":%u}}", h->e->id, h->minted++);
    id_of_text(json, (size_t)length, id);
    return HD_OK;
}

/* The lineage under which a transaction starts something. `given`: the caller has given a function. */
static hd_status start_under(hd_tx *tx, bool given, lineage **out) {
    *out = NULL;
    if (!given) return runtime_fail(tx->rt, HD_USAGE, "no function is given");
    scheduler *s = with_events(tx->rt);
    hd_status status = s ? events_check_start(s, tx) : HD_NOMEM;
    if (status) return status;
    *out = lineage_of(&s->events->lineages, tx);
    return *out ? HD_OK : HD_NOMEM;
}

hd_status hd_tx_launch(hd_tx *tx, hd_stop_fn stop_fn, void *ctx) {
    lineage *l;
    hd_status status = start_under(tx, stop_fn != NULL, &l);
    return status ? status : cancel_group_add(&tx->rt->env, &l->stops, stop_fn, ctx);
}

hd_status hd_tx_after_commit(hd_tx *tx, hd_verdict_fn fn, void *ctx) {
    lineage *l;
    hd_status status = start_under(tx, fn != NULL, &l);
    if (status) return status;
    return vec_push(&tx->rt->env, &l->afters, ((after_commit){ fn, ctx })) ? HD_OK : HD_NOMEM;
}

hd_status hd_tx_outbox(hd_tx *tx, const char *channel, hd_value message) {
    scheduler *s = with_events(tx->rt);
    return s ? outbox_record(s, tx, channel, message) : HD_NOMEM;
}

hd_status hd_channel_register(hd_runtime *rt, const char *space, const char *channel,
                              hd_channel_fn fn, void *ctx) {
    scheduler *s = with_events(rt);
    return s ? outbox_open(s, space, channel, fn, ctx) : HD_NOMEM;
}

void hd_channel_unregister(hd_runtime *rt, const char *space, const char *channel) {
    scheduler *s = scheduler_get(rt);
    if (s) outbox_close_channel(s, space, channel);
}

/* ---- looking inside */

void hd_runtime_event_stats(const hd_runtime *rt, hd_event_stats *out) {
    const scheduler *s = scheduler_get(rt);
    *out = (hd_event_stats){ 0 };
    if (!s || !s->events) return;
    *out = s->events->stats;
    out->queued = s->events->queued;
    out->in_flight = s->events->flying;
}

hd_status hd_runtime_set_event_trace(hd_runtime *rt, hd_event_trace_fn fn, void *ctx) {
    scheduler *s = with_events(rt);
    if (!s) return HD_NOMEM;
    s->events->trace = fn;
    s->events->trace_ctx = ctx;
    return HD_OK;
}

hd_event_wait hd_runtime_event_waits(const hd_runtime *rt) {
    const scheduler *s = scheduler_get(rt);
    const event *e = s && s->events ? lanes_oldest(s->events) : NULL;
    return e ? e->waits : HD_EVENT_WAITS_NOT;
}

static hd_stream_info info_of(const stream *to) {
    const event *head = lane_head(to->lane);
    hd_stream_info info = { .stream = { to->place },
                            .handler = to->spec.fn ? to->name : NULL,
                            .piece = to->owner.piece,
                            .queued = to->queued,
                            .handled = to->handled,
                            .failed = to->failed };
    if (!to->queued || !head) return info;
    info.waits = head->waits;
    if (head->to != to) info.behind = (hd_cell){ head->to->place };
    if (head->waits == HD_EVENT_WAITS_NODES) info.node = to->lane->blocker;
    return info;
}

void hd_runtime_streams(const hd_runtime *rt, hd_stream_fn fn, void *ctx) {
    const scheduler *s = scheduler_get(rt);
    for (uint32_t i = 0; s && s->events && i < s->events->stream_list.count; i++) {
        hd_stream_info info = info_of(s->events->stream_list.items[i]);
        if (!fn(&info, ctx)) return;
    }
}

hd_event_wait hd_space_event_waits(const hd_runtime *rt, const char *space) {
    const scheduler *s = scheduler_get(rt);
    for (uint32_t i = 0; s && s->events && i < s->events->lanes.count; i++) {
        const lane *l = s->events->lanes.items[i];
        if (strcmp(key_bytes(l->space), space)) continue;
        return lane_head(l) ? lane_head(l)->waits : HD_EVENT_WAITS_NOT;
    }
    return HD_EVENT_WAITS_NOT;
}

hd_status hd_runtime_set_retry_window(hd_runtime *rt, uint32_t ms) {
    scheduler *s = with_events(rt);
    if (!s) return HD_NOMEM;
    s->events->window_ms = ms;
    return HD_OK;
}

/* ---- forgetting receipts */

hd_status hd_receipt_prune(hd_runtime *rt, const char *space, uint64_t *pruned) {
    uint64_t ignored;
    scheduler *s = with_events(rt);
    struct key *k;
    if (pruned) *pruned = 0;
    if (!s) return HD_NOMEM;
    hd_status status = runtime_space(rt, space, strlen(space), &k);
    if (status) return status;
    key_unref(k);
    return receipts_prune(s, space, pruned ? pruned : &ignored);
}
