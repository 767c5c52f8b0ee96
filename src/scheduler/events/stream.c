/* stream.c -- streams and their handlers. */
#include "scheduler/events/state.h"

#include "base/env.h"
#include "base/hash.h"
#include "value/key.h"
#include "value/text.h"
#include <string.h>

/* The owner of a handler that belongs to no piece. */
static const handler_owner no_owner = { "main", "" };

/* ---- streams */

static uint32_t place_hash(place_id at) { return hash_fold(hash_u64(at)); }

static stream *find(const events *ev, place_id at) {
    for (table_probe p = table_find(&ev->by_place, place_hash(at)); table_next(&ev->by_place, &p);)
        if (ev->stream_list.items[p.index]->place == at) return ev->stream_list.items[p.index];
    return NULL;
}

static void stream_free(const hd_env *env, stream *to) {
    assert(!to->has && !to->queued);
    env_free(env, to->link, to->link_size);
    vec_fini(env, &to->inputs);
    env_free(env, to, sizeof *to);
}

/* The stream's link as JSON, from which the ids of its events are derived. */
static hd_status write_link(scheduler *s, stream *to) {
    assert(to->place && !to->link);
    hd_pool *pool;
    hd_status status = hd_pool_open(s->r->heap, &pool);
    if (status) return status;
    size_t length;
    const char *json = hd_json_print(pool, hd_cell_link(s->rt, pool, (hd_cell){ to->place }),
                                     HD_JSON_COMPACT, &length);
    to->link = json ? env_new_copy(s->env, json, length + 1) : NULL;
    to->link_size = length + 1;
    hd_pool_close(pool);
    if (to->link) event_id_prepare(s->events, to);
    return to->link ? HD_OK : HD_NOMEM;
}

static void pin(const scheduler *s, place_id at) {
    assert(at);
    place *p = place_at(&s->r->places, at);
    if (p->root == at) p->doc.flags |= DOC_PINNED;
    else p->in.flags |= DOC_PINNED;
}

hd_status stream_of_place(scheduler *s, place_id at, stream **out) {
    events *ev = events_of(s);
    *out = ev ? find(ev, at) : NULL;
    if (*out) return HD_OK;
    stream *to = ev ? env_new0(s->env, sizeof *to) : NULL;
    if (!to) return HD_NOMEM;
    to->place = at;
    to->owner = no_owner;
    to->home = place_doc(&s->r->places, at)->doc.home;
    pin(s, at);
    hd_status status = lane_of_space(s, s->r->places.homes.items[to->home].space, &to->lane);
    if (!status) status = write_link(s, to);
    if (!status && !vec_room(s->env, &ev->stream_list, 1)) status = HD_NOMEM;
    if (!status) status = table_insert(&ev->by_place, place_hash(at), ev->stream_list.count);
    if (status) {
        stream_free(s->env, to);
        return status;
    }
    ev->stream_list.items[ev->stream_list.count++] = to;
    assert(find(ev, at) == to && to->lane);
    *out = to;
    return HD_OK;
}

/* Follows links, so that a stream can be passed around as a link to it. A document that is not loaded yet
 * is taken to be the stream itself. */
static hd_status follow_links(scheduler *s, place_id *at) {
    hd_tx *tx;
    if (find(s->events, *at)) return HD_OK;
    hd_status status = tx_open(s->rt, HD_COMMIT_NONE, &tx);
    if (status) return status;
    tx->flags |= TX_READ_ONLY;
    status = tx_resolve(tx, at, true, HD_READ_NO_CLAIM | HD_READ_NO_DEPENDENCY);
    tx_close(tx);
    return status == HD_PENDING ? HD_OK : status;
}

hd_status stream_of_cell(scheduler *s, hd_cell cell, stream **out) {
    const hd_schema *schema;
    place_id at = runtime_place(s->rt, cell, &schema);
    *out = NULL;
    if (!at) return runtime_fail(s->rt, HD_USAGE, "a stream is a cell of this runtime");
    if (!events_of(s)) return HD_NOMEM;
    hd_status status = follow_links(s, &at);
    return status ? status : stream_of_place(s, at, out);
}

/* ---- what a handler leaves behind */

static void release_left(scheduler *s) {
    events *ev = s->events;
    while (!ev->busy && !list_empty(&ev->left)) {
        belongings *b = LIST_ENTRY(list_pop_front(&ev->left), belongings, link);
        hd_release_fn release = b->release;
        void *ctx = b->ctx;
        if (b->of->name == b->name) {
            b->of->name = NULL;
            b->of->owner = no_owner;
        }
        env_free(s->env, b, b->size);
        if (release) release(ctx);
    }
}

void streams_begin(scheduler *s) {
    assert(s->events);
    s->events->busy++;
}

void streams_end(scheduler *s) {
    assert(s->events->busy);
    s->events->busy--;
    release_left(s);
}

static void leave(scheduler *s, belongings *b) {
    assert(!b || !list_linked(&b->link));
    if (!b) return;
    list_push_back(&s->events->left, &b->link);
    release_left(s);
}

static void drop_handler(scheduler *s, stream *to) {
    assert(!to->has == !to->spec.fn);
    belongings *b = to->has;
    to->has = NULL;
    to->spec = (hd_handler_spec){ 0 };
    vec_clear(&to->inputs);
    leave(s, b);
}

void streams_fini(scheduler *s) {
    events *ev = s->events;
    for (uint32_t i = 0; i < ev->stream_list.count; i++) {
        drop_handler(s, ev->stream_list.items[i]);
        stream_free(s->env, ev->stream_list.items[i]);
    }
    vec_fini(s->env, &ev->stream_list);
    table_fini(&ev->by_place);
}

/* ---- handlers */

static hd_status check_spec(scheduler *s, const hd_handler_spec *spec) {
    if (!spec->fn) return runtime_fail(s->rt, HD_USAGE, "a handler needs a function");
    if (spec->name && !utf8_valid(spec->name, strlen(spec->name), NULL))
        return runtime_fail(s->rt, HD_SYNTAX,
                            "the name of a handler must be UTF-8, and this is not");
    if (spec->inputs || spec->event_schema || spec->preflight || spec->reads_nothing) return HD_OK;
    return runtime_fail(s->rt, HD_USAGE,
                        "a handler declares what it reads: inputs, an event schema, a preflight "
                        "function, or that it reads nothing");
}

static belongings *belongings_of(scheduler *s, stream *to, const hd_handler_spec *spec,
                                 const handler_owner *owner) {
    hd_cell cell = { to->place };
    size_t length = spec->name ? strlen(spec->name) : hd_cell_print(s->rt, cell, NULL, 0);
    size_t piece = strlen(owner->piece) + 1, pattern = strlen(owner->pattern) + 1;
    size_t size = sizeof(belongings) + length + 1 + piece + pattern;
    belongings *b = env_new(s->env, size);
    if (!b) return NULL;
    *b = (belongings){ .of = to, .release = spec->release, .ctx = spec->ctx, .size = size };
    if (spec->name) memcpy(b->name, spec->name, length + 1);
    else hd_cell_print(s->rt, cell, b->name, length + 1);
    b->owner.piece = memcpy(b->name + length + 1, owner->piece, piece);
    b->owner.pattern = memcpy(b->name + length + 1 + piece, owner->pattern, pattern);
    return b;
}

/* Allocates before it changes anything, so that on failure the former handler stays. */
static hd_status fill(scheduler *s, stream *to, const hd_handler_spec *spec,
                      const handler_owner *owner) {
    if (!vec_room(s->env, &to->inputs, spec->input_count)) return HD_NOMEM;
    belongings *b = belongings_of(s, to, spec, owner), *before = to->has;
    if (!b) return HD_NOMEM;
    to->spec = *spec;
    to->has = b;
    to->name = b->name;
    to->owner = b->owner;
    vec_clear(&to->inputs);
    for (size_t i = 0; i < spec->input_count; i++)
        to->inputs.items[to->inputs.count++] = spec->inputs[i];
    to->generation++;
    to->warned_outside = false;
    assert(to->spec.fn && to->inputs.count == spec->input_count);
    leave(s, before);
    return HD_OK;
}

hd_status stream_register(scheduler *s, const hd_handler_spec *spec, const handler_owner *owner,
                          hd_handler *out) {
    stream *to;
    hd_status status = check_spec(s, spec);
    if (!status) status = stream_of_cell(s, spec->stream, &to);
    if (status) return status;
    bool second = to->spec.fn;
    /* Posted events of the space are noted as arrivals here, and taken in the next step, when the stream has
     * a handler. If noting them fails, the former handler stays. */
    status = events_take_space(s, to);
    if (!status) status = fill(s, to, spec, owner ? owner : &no_owner);
    if (status) return status;
    if (second && !to->warned_twice) {
        to->warned_twice = true;
        char name[160];
        hd_cell_print(s->rt, (hd_cell){ to->place }, name, sizeof name);
        env_log(s->env, HD_LOG_WARN,
                "stream %s has a second handler, \"%s\", which takes the place of the first", name,
                to->name);
    }
    *out = (hd_handler){ to->place, to->generation };
    lane_wake(s, to->lane);
    return HD_OK;
}

void stream_unregister(scheduler *s, hd_handler handler) {
    stream *to = find(s->events, handler.id);
    if (!to || !to->spec.fn || to->generation != handler.generation) return;
    drop_handler(s, to);
    lane_wake(s, to->lane);
}

void stream_loaded(scheduler *s, stream *to, hd_status status) {
    assert(to->lane);
    to->loading = false;
    lane_wake(s, to->lane);
    if (status)
        env_log(s->env, HD_LOG_WARN, "the handler of %s could not be loaded: %s", to->link,
                hd_status_text(status));
}
