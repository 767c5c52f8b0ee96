/* id.c -- ids of events.
 *
 *     0jv4r8s1k-wmG3...43 characters       of a follow-up, or under a sender's name
 *     0jv4r8s1k-fT90...20 characters.2k    sent by a transaction, or from outside
 *
 * In front stands the time of the id (ms, base 32): it tells when the receipt may be forgotten. Behind
 * it the cause: which runtime sent the event, to which stream, and its number among those; or all of it hashed, where
 * names or other ids are a part of it. A retry of a handling derives the same ids. Two sends share an id
 * if their sender gave them the same name, and otherwise do not; and no name leads to the id of another form,
 * because a hash has no point in it. */
#include "scheduler/events/state.h"

#include "base/env.h"
#include "value/id.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

#define TIME_CHARS   EVENT_TIME_CHARS
#define TIME_BITS    45
#define ORIGIN_CHARS 20 /* 120 bits */
static const char digits[33] = "0123456789abcdefghjkmnpqrstvwxyz";
/* Time and origin, each with a mark behind it; ".attempt.n"; NUL. */
_Static_assert(TIME_CHARS + 1 + ORIGIN_CHARS + 14 + 8 + 1 <= HD_EVENT_ID_SIZE, "an id fits");

void event_id_put_time(uint64_t ms, char *out) {
    for (int i = TIME_CHARS; i-- > 0; ms >>= 5) out[i] = digits[ms & 31];
    out[TIME_CHARS] = '-';
}

uint64_t event_id_time(const char *id) {
    uint64_t ms = 0;
    for (int i = 0; i < TIME_CHARS; i++) {
        const char *digit = id[i] ? strchr(digits, id[i]) : NULL;
        if (!digit) return UINT64_MAX;
        ms = ms << 5 | (uint64_t)(digit - digits);
    }
    return id[TIME_CHARS] == '-' ? ms : UINT64_MAX;
}

/* The hash goes in without its mark. */
static void put_hash(const char *json, size_t length, uint64_t ms, char *out) {
    char hash[HD_ID_SIZE];
    id_of_text(json, length, hash);
    event_id_put_time(ms, out);
    memcpy(out + TIME_CHARS + 1, hash + 1, HD_ID_SIZE - 1);
}

static char *put_text(char *at, const char *text) {
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

/* ".N" in base 32. */
static char *put_count(char *at, uint64_t n) {
    char text[14];
    int i = (int)sizeof text;
    do text[--i] = digits[n & 31];
    while (n >>= 5);
    text[--i] = '.';
    assert(i >= 0);
    memcpy(at, text + i, sizeof text - (size_t)i);
    return at + sizeof text - i;
}

/* What session and stream have in common stands hashed in stream.origin. */
static char *put_origin(const stream *to, uint64_t ms, char *out) {
    event_id_put_time(ms, out);
    memcpy(out + TIME_CHARS + 1, to->origin, ORIGIN_CHARS);
    return out + TIME_CHARS + 1 + ORIGIN_CHARS;
}

void event_id_ingress(const stream *to, uint64_t n, uint64_t ms, char *out) {
    *put_count(put_origin(to, ms, out), n) = 0;
}

void event_id_attempt(const stream *to, uint64_t attempt, uint32_t n, uint64_t ms, char *out) {
    *put_count(put_count(put_origin(to, ms, out), attempt), n) = 0;
}

/* {"by":PARENT,"n":N,"to":STREAM}, in canonical form: the Nth event of the handling of another. */
void event_id_child(const stream *to, const char *parent, uint32_t n, uint64_t ms, char *out) {
    char text[160];
    int length = snprintf(text, sizeof text, "{\"by\":\"%s\",\"n\":%u,\"to\":\"%s\"}", parent, n,
                          to->digest);
    assert(length > 0 && (size_t)length < sizeof text); /* cut off, two events would be one */
    put_hash(text, (size_t)length, ms, out);
}

void event_id_prepare(const events *ev, stream *to) {
    char text[2 * HD_ID_SIZE + 64];
    id_of_text(to->link, to->link_size - 1, to->digest);
    int length = snprintf(text, sizeof text, "{\"session\":\"%s\",\"stream\":\"%s\"}", ev->session,
                          to->digest);
    assert(length > 0 && (size_t)length < sizeof text);
    char hash[HD_ID_SIZE];
    id_of_text(text, (size_t)length, hash);
    memcpy(to->origin, hash + 1, sizeof to->origin); /* without its mark */
}

/* A value is built here: texts from outside cannot forge each other's place in it. */
hd_status event_id_named(scheduler *s, const stream *to, const char *name, uint64_t ms, char *out) {
    const char *principal = key_bytes(s->rt->principal);
    if (ms >> TIME_BITS)
        return runtime_fail(s->rt, HD_USAGE, "the time of an id is in ms since 1970: not %llu",
                            (unsigned long long)ms);
    if (!*name) return runtime_fail(s->rt, HD_USAGE, "the id of an event is not empty");
    if (!*principal)
        return runtime_fail(s->rt, HD_USAGE, "an event with an id needs a principal to scope it");
    hd_pool *pool;
    hd_status status = hd_pool_open(s->r->heap, &pool);
    if (status) return status;
    hd_value cause = hd_object_set(pool, hd_object(), "id", hd_string(pool, name));
    cause = hd_object_set(pool, cause, "principal", hd_string(pool, principal));
    cause = hd_object_set(pool, cause, "stream", hd_cell_link(s->rt, pool, (hd_cell){ to->place }));
    if (s->r->places.homes.items[to->home].scope == HD_SCOPE_SESSION)
        cause = hd_object_set(pool, cause, "session", hd_string(pool, key_bytes(s->rt->session)));
    cause = hd_object_set(pool, cause, "time", hd_int(pool, (int64_t)ms));
    cause = hd_object_set(pool, hd_object(), "event", cause);
    size_t length;
    const char *json = hd_json_print(pool, cause, HD_JSON_COMPACT, &length);
    status = json ? HD_OK : value_is_failed(cause) ? hd_value_status(cause) : HD_NOMEM;
    if (json) put_hash(json, length, ms, out);
    hd_pool_close(pool);
    return status;
}

bool event_id_expired(const scheduler *s, uint64_t ms) {
    uint32_t days = s->rt->options.receipt_days ? s->rt->options.receipt_days : 30;
    uint64_t now = env_wall_ms(s->env);
    return ms && ms < now && now - ms > days * EVENTS_DAY_MS;
}

hd_status event_document(scheduler *s, uint32_t home, const char *prefix, const char *id,
                         place_id *out) {
    char text[HD_EVENT_ID_SIZE + 40];
    struct key *k;
    size_t length = (size_t)(put_text(put_text(text, prefix), id) - text);
    hd_status status = key_make(s->r->heap, text, length, &k);
    if (status) return status;
    status = places_doc(&s->r->places, home, k, out);
    key_unref(k);
    return status;
}
