/* post.c -- posted events: documents of kind "event" that wait for a program with a handler.
 *
 *     "event/<id>"   { "stream": link, "payload": ..., "time": ms, "as": the sender's own id; and see delay.c }
 *     beside it      { "kind": "event", "failed": { "status", "message", "handler", "time", "attempts" } }
 *
 * A runtime with a handler for the stream follows the space, takes what is there when the handler is
 * registered, in order of seq, and then what comes by. The handling's commit creates the receipt and
 * deletes the event: one cannot happen without the other. One that fails stays, with the reason. */
#include "scheduler/events/delay.h"

#include "base/env.h"
#include "scheduler/events/events.h"
#include "scheduler/events/outbox.h"
#include "value/key.h"
#include <stdlib.h>
#include <string.h>

#define PREFIX "event/"

/* ---- posting */

static const hd_send_options no_options = { 0 };

typedef struct posted {
    scheduler *s;
    place_id doc;
    hd_outcome_fn done;
    void *ctx;
    char id[HD_EVENT_ID_SIZE];
} posted;

/* The commit of an event posted here was decided. Once stored, the event is taken up as any other posted
 * event. */
static void stored(hd_status status, void *ctx) {
    assert(((posted *)ctx)->doc);
    posted *p = ctx;
    scheduler *s = p->s;
    if (!status) events_integrated(s, p->doc);
    if (p->done) p->done(p->id, status, p->ctx);
    place_unref(&s->r->places, p->doc);
    env_free(s->env, p, sizeof *p);
}

hd_status events_watch_verdict(scheduler *s, hd_tx *tx, place_id doc, const char *id,
                               const hd_send_options *options) {
    if (!options) options = &no_options;
    assert(doc && *id && strlen(id) < HD_EVENT_ID_SIZE);
    lineage *l = lineage_of(&s->events->lineages, tx);
    posted *p = l ? env_new(s->env, sizeof *p) : NULL;
    if (!p) return HD_NOMEM;
    *p = (posted){ s, doc, options->done, options->ctx, { 0 } };
    memcpy(p->id, id, strlen(id) + 1);
    if (!vec_push(s->env, &l->afters, ((after_commit){ stored, p }))) {
        env_free(s->env, p, sizeof *p);
        return HD_NOMEM;
    }
    place_ref(&s->r->places, doc);
    return HD_OK;
}

/* For an id that the sender chose. HD_EXISTS: the event was handled. *waiting: it is posted already, and
 * stays as it is. */
static hd_status check_named(scheduler *s, hd_tx *tx, const stream *to, const char *id,
                             place_id doc, bool *waiting) {
    assert(to->home && *id);
    place_id receipt;
    hd_status status = event_document(s, to->home, RECEIPT, id, &receipt);
    if (status) return status;
    hd_value before = tx_read_place(tx, receipt, HD_READ_NO_CLAIM);
    if (value_is_failed(before)) return hd_value_status(before);
    if (value_exists(before))
        return runtime_fail(s->rt, HD_EXISTS, "the event was handled already");
    hd_value there = tx_read_place(tx, doc, 0);
    if (value_is_failed(there)) return hd_value_status(there);
    *waiting = value_exists(there);
    return hd_tx_require_absent(tx, (hd_cell){ receipt });
}

void events_assume_absent(scheduler *s, place_id doc) {
    assert(place_at(&s->r->places, doc)->root == doc);
    place_at(&s->r->places, doc)->doc.flags |= DOC_KNOWN;
}

hd_status events_assume_new(scheduler *s, place_id doc) {
    place_id meta;
    hd_status status = runtime_meta(s->rt, doc, &meta);
    if (status) return status;
    events_assume_absent(s, doc);
    events_assume_absent(s, meta);
    return HD_OK;
}

static hd_value record_of(scheduler *s, hd_pool *pool, const stream *to, hd_value payload,
                          const hd_send_options *options, uint64_t due) {
    assert(to->place && value_exists(payload));
    hd_value v = hd_object_set(pool, hd_object(), "stream",
                               hd_cell_link(s->rt, pool, (hd_cell){ to->place }));
    v = hd_object_set(pool, v, "payload", payload);
    if (options->id) v = hd_object_set(pool, v, "as", hd_string(pool, options->id));
    v = hd_object_set(pool, v, "time", hd_int(pool, (int64_t)env_wall_ms(s->env)));
    return delay_describe(pool, v, options, due);
}

/* When the event is due. A handling that is retried makes the same ids, and so the same times, again. */
static uint64_t due_of(scheduler *s, const hd_tx *tx, const hd_send_options *options) {
    handling *h = handling_of(tx);
    if (h && !h->e->began_ms) h->e->began_ms = env_wall_ms(s->env);
    return delay_of(options, h ? h->e->began_ms : env_wall_ms(s->env));
}

hd_status events_post(scheduler *s, hd_tx *tx, hd_cell cell, hd_value payload,
                      const hd_send_options *options, char id[HD_EVENT_ID_SIZE]) {
    stream *to;
    place_id doc;
    uint64_t ms;
    bool waiting = false;
    if (!options) options = &no_options;
    if (tx->class == HD_COMMIT_DERIVED)
        return runtime_fail(s->rt, HD_USAGE, "a computation posts nothing: it may run at any time");
    hd_status status = events_check_start(s, tx);
    if (!status) status = delay_check(s, options);
    if (!status && value_is_failed(payload)) status = hd_value_status(payload);
    if (!status) status = stream_of_cell(s, cell, &to);
    uint64_t due = due_of(s, tx, options);
    if (!status) status = events_mint(s, tx, to, options, due, &ms, id);
    if (!status) status = event_document(s, to->home, PREFIX, id, &doc);
    hd_pool *pool = tx_pool(tx);
    if (!status && !pool) status = HD_NOMEM;
    if (status) return status;
    place_ref(&s->r->places, doc);
    status = options->id ? check_named(s, tx, to, id, doc, &waiting) : events_assume_new(s, doc);
    if (value_is_absent(payload)) payload = hd_null();
    if (!status && !waiting)
        status = hd_tx_set(tx, (hd_cell){ doc }, record_of(s, pool, to, payload, options, due));
    if (!status && !waiting) status = hd_tx_set_kind(tx, (hd_cell){ doc }, "event");
    if (!status) status = events_watch_verdict(s, tx, doc, id, options);
    if (!status) s->events->stats.posted++;
    place_unref(&s->r->places, doc);
    return status;
}

/* ---- an id of the sender's
 *
 * Another runtime may post the same event at the same time, or handle it: then the commit is refused, and the next
 * attempt finds out which. */

typedef struct naming {
    scheduler *s;
    hd_cell stream;
    hd_value payload; /* owned */
    hd_send_options options;
    char id[HD_EVENT_ID_SIZE]; /* of the event */
    size_t size;
    char name[]; /* the sender's id */
} naming;

static hd_status post_named(hd_tx *tx, void *ctx) {
    naming *n = ctx;
    hd_send_options options = n->options;
    options.id = n->name;
    options.done = NULL; /* it is told once, and not of each attempt */
    return events_post(n->s, tx, n->stream, n->payload, &options, n->id);
}

static void naming_free(naming *n) {
    value_unref(n->payload);
    env_free(n->s->env, n, n->size);
}

static void end_named(hd_status status, void *ctx) {
    naming *n = ctx;
    if (n->options.done) n->options.done(n->id, status, n->options.ctx);
    /* An id that was used before is no fault: the event is there. */
    else if (status && status != HD_EXISTS) runtime_refused(n->s->rt, n->stream, status);
    naming_free(n);
}

hd_status events_post_named(scheduler *s, hd_cell cell, hd_value payload,
                            const hd_send_options *options, char id[HD_EVENT_ID_SIZE]) {
    assert(options->id);
    if (value_is_failed(payload)) return hd_value_status(payload);
    size_t length = strlen(options->id), size = sizeof(naming) + length + 1;
    hd_status status = hd_event_id_of(s->rt, cell, options->id, options->id_time_ms, id);
    naming *n = status ? NULL : env_new(s->env, size);
    if (!n) return status ? status : HD_NOMEM;
    *n = (naming){
        .s = s, .stream = cell, .payload = value_ref(payload), .options = *options, .size = size
    };
    memcpy(n->name, options->id, length + 1);
    memcpy(n->id, id, HD_EVENT_ID_SIZE);
    status = hd_transact_later(s->rt, post_named, n, end_named, n);
    if (status) naming_free(n);
    return status;
}

/* ---- taking */

static bool is_taken(const events *ev, place_id doc) {
    for (table_probe p = table_find(&ev->taken, doc); table_next(&ev->taken, &p);)
        if (p.index == doc) return true;
    return false;
}

/* The event of this document, if it waits in a lane. One in flight ends with its own verdict. */
static event *taken_event(const events *ev, place_id doc) {
    LIST_FOR (n, &ev->posted) {
        event *e = LIST_ENTRY(n, event, by_doc);
        if (e->document == doc && !(e->flags & EVENT_IN_FLIGHT)) return e;
    }
    return NULL;
}

hd_status events_addressee(scheduler *s, place_id doc, hd_value record, stream **out) {
    assert(place_at(&s->r->places, doc)->root == doc);
    hd_value link = hd_value_at(record, "stream");
    hd_status status;
    hd_tx *tx;
    if (value_tag(link) != TAG_LINK) return HD_KIND;
    if (tx_open(s->rt, HD_COMMIT_NONE, &tx)) return HD_NOMEM;
    place_id at = tx_link_target(tx, doc, link, &status);
    tx_close(tx);
    if (!status) status = stream_of_place(s, at, out);
    return status || (*out)->spec.fn ? status : HD_NOT_FOUND;
}

hd_status events_take(scheduler *s, place_id doc, bool due) {
    assert(s->events && place_at(&s->r->places, doc)->root == doc);
    events *ev = s->events;
    const place *p = place_at(&s->r->places, doc);
    const char *id = key_bytes(p->doc.id) + strlen(PREFIX);
    hd_value record = p->value;
    uint64_t ms = event_id_time(id);
    stream *to;
    if (ms == UINT64_MAX || strlen(id) >= HD_EVENT_ID_SIZE || is_taken(ev, doc)) return HD_OK;
    hd_status status = events_addressee(s, doc, record, &to);
    if (!status && !due && delay_due(record)) return delays_hold(s, doc, record);
    if (status) return status;
    event *e = events_new(s, to);
    if (!e || table_insert(&ev->taken, doc, doc)) {
        if (e) slab_give(&ev->records, e);
        return HD_NOMEM;
    }
    assert(!list_linked(&e->by_doc));
    place_ref(&s->r->places, doc);
    e->document = doc;
    list_push_back(&ev->posted, &e->by_doc);
    memcpy(e->id, id, strlen(id) + 1);
    e->time_ms = ms;
    e->due_ms = delay_due(record);
    e->missed = delay_missed(record);
    e->payload = value_ref(hd_value_at(record, "payload"));
    e->flags = EVENT_POSTED;
    lane_insert(s, e);
    ev->stats.taken++;
    assert(is_taken(ev, doc) && to->queued);
    return HD_OK;
}

/* Whether the document and its metadata are loaded, and the metadata says that the event has failed. HD_PENDING: they
 * are on their way. */
static hd_status read_failure(scheduler *s, place_id doc, bool *failed) {
    assert(place_at(&s->r->places, doc)->root == doc);
    place_id meta;
    hd_status status = runtime_meta(s->rt, doc, &meta);
    hd_status here = status ? status : replica_load(s->r, doc);
    if (!status) status = replica_load(s->r, meta);
    if (!status)
        *failed = value_exists(hd_value_at(place_at(&s->r->places, meta)->value, EVENTS_FAILED));
    return here ? here : status;
}

static bool note_arrival(scheduler *s, place_id doc, stream *to) {
    if (!vec_push(s->env, &s->events->arrivals, ((arrival){ doc, to }))) return false;
    place_ref(&s->r->places, doc);
    s->tick = true;
    return true;
}

void events_integrated(scheduler *s, place_id doc) {
    assert(s->events);
    const place *p = place_at(&s->r->places, doc);
    if (strncmp(key_bytes(p->doc.id), PREFIX, strlen(PREFIX))) return;
    if (s->r->places.homes.items[p->doc.home].meta) return;
    if (!note_arrival(s, doc, NULL)) events_miss(s);
}

/* A failed event is tried again for a stream that has got a handler, and otherwise when hd_tx_event_retry says
 * so, which takes the failure away. */
static hd_status take_arrival(scheduler *s, const arrival *a) {
    stream *to;
    bool failed = false;
    hd_status status = read_failure(s, a->doc, &failed);
    hd_value record = place_at(&s->r->places, a->doc)->value;
    if (status == HD_PENDING || status == HD_NOMEM) return status;
    if (!value_exists(record)) {
        /* The document is gone: another runtime has handled the event, or it was cancelled. */
        delays_forget(s, a->doc);
        event *e = is_taken(s->events, a->doc) ? taken_event(s->events, a->doc) : NULL;
        if (e) events_end(s, e, HD_EXISTS, NULL);
        return HD_OK;
    }
    if (failed && (events_addressee(s, a->doc, record, &to) || to != a->to)) return HD_OK;
    return events_take(s, a->doc, false);
}

void events_take_arrivals(scheduler *s) {
    events *ev = s->events;
    assert(!ev->closing);
    for (uint32_t i = 0; i < ev->arrivals.count; i++) {
        arrival a = ev->arrivals.items[i];
        hd_status status = take_arrival(s, &a);
        if (status == HD_PENDING && vec_push(s->env, &ev->awaited, a)) continue;
        if (status == HD_PENDING || status == HD_NOMEM) events_miss(s);
        place_unref(&s->r->places, a.doc);
    }
    vec_clear(&ev->arrivals);
}

/* A document has arrived, or (`status`) cannot be loaded: then the event that waits for it is left where it is. */
void events_look_again(scheduler *s, place_id doc, hd_status status) {
    events *ev = s->events;
    for (uint32_t i = 0; i < ev->awaited.count; i++) {
        const arrival *a = &ev->awaited.items[i];
        place_id meta;
        bool lost = status && (a->doc == doc || runtime_meta(s->rt, a->doc, &meta) || meta == doc);
        if (!lost && !note_arrival(s, a->doc, a->to)) events_miss(s);
        place_unref(&s->r->places, a->doc);
    }
    vec_clear(&ev->awaited);
}

/* ---- what is there when a handler is registered */

typedef struct finding {
    scheduler *s;
    listed_vec *found;
    hd_status status;
} finding;

static bool find(const hd_listing *entry, void *ctx) {
    finding *f = ctx;
    scheduler *s = f->s;
    hd_cell cell = hd_cell_of(s->rt, entry->space, entry->scope, entry->id, "");
    listed one = { cell.id, entry->seq, NULL };
    if (cell.id) one.id = key_bytes(place_at(&s->r->places, cell.id)->doc.id);
    if (!cell.id || !vec_push(s->env, f->found, one)) f->status = HD_NOMEM;
    return !f->status;
}

/* By seq. Events of one commit have ids that end with a count, in which more digits mean a greater count. */
static int by_seq(const void *a, const void *b) {
    const listed *x = a, *y = b;
    if (x->seq != y->seq) return x->seq > y->seq ? 1 : -1;
    size_t m = strlen(x->id), n = strlen(y->id);
    return m != n ? (m > n ? 1 : -1) : strcmp(x->id, y->id);
}

hd_status events_find(scheduler *s, const char *space, const char *kind, const char *prefix,
                      listed_vec *out) {
    finding f = { .s = s, .found = out };
    hd_status status = hd_runtime_list(s->rt, space, kind, prefix, find, &f);
    if (out->count) qsort(out->items, out->count, sizeof(listed), by_seq);
    return status ? status : f.status;
}

/* `to` has got a handler, so that its failed events are tried again; NULL: those of no stream are. */
static hd_status take_listed(scheduler *s, uint32_t home, stream *to) {
    const char *space = key_bytes(s->r->places.homes.items[home].space);
    listed_vec waiting = { 0 };
    hd_status status = events_find(s, space, "event", PREFIX, &waiting);
    for (uint32_t i = 0; i < waiting.count && !status; i++) {
        status = replica_load(s->r, waiting.items[i].doc);
        if (status == HD_PENDING) status = HD_OK; /* the step looks again when it has arrived */
        if (!status && !note_arrival(s, waiting.items[i].doc, to)) status = HD_NOMEM;
    }
    vec_fini(s->env, &waiting);
    return status;
}

hd_status events_take_space(scheduler *s, stream *to) {
    hd_status status =
        hd_runtime_follow(s->rt, key_bytes(s->r->places.homes.items[to->home].space));
    return status ? status : take_listed(s, to->home, to);
}

/* ---- what came while there was no memory */

void events_miss(scheduler *s) {
    assert(s->events);
    s->events->missed = true;
    s->starved = true;
}

void events_feed(scheduler *s) {
    events *ev = s->events;
    if (!ev || !ev->missed || ev->closing) return;
    ev->missed = false;
    hd_status status = outbox_feed(s);
    for (uint32_t i = 0; i < ev->stream_list.count && !status; i++)
        if (ev->stream_list.items[i]->spec.fn)
            status = take_listed(s, ev->stream_list.items[i]->home, NULL);
    if (status) events_miss(s);
}

/* ---- what went wrong */

/* `tried`: attempts that were made before. */
static hd_value account_of(scheduler *s, hd_pool *pool, const event *e, int64_t tried,
                           hd_status status, const char *why) {
    assert(status && tried >= 0);
    int64_t attempts = tried + e->attempts;
    hd_value v =
        hd_object_set(pool, hd_object(), "status", hd_string(pool, hd_status_name(status)));
    v = hd_object_set(pool, v, "message", hd_string(pool, why));
    if (e->to->name) v = hd_object_set(pool, v, "handler", hd_string(pool, e->to->name));
    v = hd_object_set(pool, v, "attempts", hd_int(pool, attempts));
    return hd_object_set(pool, v, "time", hd_int(pool, (int64_t)env_wall_ms(s->env)));
}

/* HD_ABORTED: the document is gone, because another runtime has handled the event. */
static hd_status write_account(scheduler *s, hd_tx *tx, const event *e, hd_status status,
                               const char *why) {
    assert(e->document && status);
    hd_pool *pool = tx_pool(tx);
    hd_value there = tx_read_place(tx, e->document, 0);
    if (!pool || !value_exists(there)) return HD_ABORTED;
    hd_cell doc = { e->document };
    hd_value before = hd_tx_get_meta(tx, doc, EVENTS_FAILED);
    if (value_is_failed(before)) before = value_absent(); /* the reason counts, not the count */
    bool failed = value_exists(before); /* or it was retried, and the document has the count */
    int64_t tried = failed ? hd_value_as_int(hd_value_at(before, "attempts"), 0)
                           : hd_value_as_int(hd_value_at(there, "tried"), 0);
    return hd_tx_set_meta(tx, doc, EVENTS_FAILED, account_of(s, pool, e, tried, status, why));
}

void events_on_stored(hd_status status, void *ctx) {
    const hd_runtime *rt = ctx;
    hd_class class_ = hd_status_class(status);
    if (!status || class_ == HD_CLASS_STALE || class_ == HD_CLASS_NO_VERDICT) return;
    env_log(&rt->env, HD_LOG_WARN, "what became of an event could not be stored: %s",
            hd_status_text(status));
}

void events_note_failure(scheduler *s, const event *e, hd_status status, const char *why) {
    hd_tx *tx;
    if (s->events->closing || hd_tx_begin(s->rt, &tx)) return;
    if (write_account(s, tx, e, status, why)) hd_tx_abort(tx);
    else hd_tx_commit(tx, events_on_stored, s->rt);
}

/* ---- removing */

void events_pass(scheduler *s, place_id doc) {
    const authority *a = s->r->authority;
    if (a->ops->reloads && a->ops->reloads(a))
        place_at(&s->r->places, doc)->doc.flags |= DOC_PASSING;
}

hd_status events_remove(scheduler *s, hd_tx *tx, place_id doc) {
    assert(place_is_doc(&s->r->places, doc));
    place_id meta;
    hd_status status = tx_write_op(tx, OP_DELETE, doc, value_absent(), 0);
    if (!status) status = runtime_meta(s->rt, doc, &meta);
    if (!status) status = tx_write_op(tx, OP_DELETE, meta, value_absent(), 0);
    if (status) return status;
    events_pass(s, doc);
    events_pass(s, meta);
    return HD_OK;
}

void events_unpost(scheduler *s, place_id document) {
    hd_tx *tx;
    if (!document || !value_exists(place_at(&s->r->places, document)->value)) return;
    if (hd_tx_begin(s->rt, &tx)) return;
    if (events_remove(s, tx, document)) hd_tx_abort(tx);
    else hd_tx_commit(tx, events_on_stored, s->rt);
}
