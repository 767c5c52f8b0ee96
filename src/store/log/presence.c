/* presence.c -- beats, and what they have told. */
#define _GNU_SOURCE
#include "store/log/presence.h"

#include "base/poller.h"
#include <string.h>

enum {
    STAY_MS = 2600,      /* after a beat other runtimes take ours for alive so long */
    STAY_SURE_MS = 2300, /* and our runtime relies on that so long */
    BEAT_MS = 1000,      /* from a beat to the next */
    BEAT_AGAIN_MS = 100, /* from a beat that failed to the next */
    PULSE_MS = 10000     /* beats ask for a session so long after our runtime has named it */
};

/* ---- Beats ------------------------------------------------------------------------------------- */

static pulse *find_pulse(writer *w, const char *session) {
    for (uint32_t i = 0; i < w->pulse_count; i++)
        if (!strcmp(w->pulses[i].session, session)) return &w->pulses[i];
    return NULL;
}

/* Those that our runtime still wants to know of. */
static uint32_t take_pulses(writer *w, uint64_t now, log_life others[LOG_LIVES]) {
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = w->pulse_count; i-- > 0;)
        if (now > w->pulses[i].asked_ns + PULSE_MS * UINT64_C(1000000))
            w->pulses[i] = w->pulses[--w->pulse_count];
    uint32_t count = w->pulse_count;
    for (uint32_t i = 0; i < count; i++) {
        others[i].ms = 0;
        memcpy(others[i].session, w->pulses[i].session, sizeof others[i].session);
    }
    pthread_mutex_unlock(&w->lock);
    return count;
}

/* True: there are rows that the runtime has not seen. `now` is from before the statement was sent: the database's
 * times begin later than ours, and end later. */
static bool post_beat(writer *w, uint64_t now, const log_life *others, uint32_t count,
                      uint64_t row) {
    pthread_mutex_lock(&w->lock);
    w->present_ns = now + STAY_SURE_MS * UINT64_C(1000000);
    w->heard = row;
    for (uint32_t i = 0; i < count; i++) {
        pulse *p = find_pulse(w, others[i].session);
        if (p && others[i].ms) p->until_ns = now + others[i].ms * UINT64_C(1000000);
    }
    bool news = row > w->seen;
    pthread_mutex_unlock(&w->lock);
    return news;
}

hd_status presence_beat(writer *w) {
    log_life others[LOG_LIVES];
    uint64_t now = env_now_ns(&w->env), row = 0;
    assert(w->store->ops->beat); /* only a remote authority asks for it */
    uint32_t count = take_pulses(w, now, others);
    hd_status status = w->store->ops->beat(w->store, w->session_text, STAY_MS, others, count, &row);
    w->beat_ns = now + (status ? BEAT_AGAIN_MS : BEAT_MS) * UINT64_C(1000000);
    if (status) return status;
    w->staying = true;
    if (post_beat(w, now, others, count, row)) bell_ring(w->notify_fd);
    return HD_OK;
}

void presence_beat_if_due(writer *w) {
    if (w->staying && env_now_ns(&w->env) >= w->beat_ns) (void)presence_beat(w);
}

int presence_beat_in_ms(const writer *w) {
    if (!w->staying) return -1;
    uint64_t now = env_now_ns(&w->env);
    return now >= w->beat_ns ? 0 : (int)((w->beat_ns - now) / 1000000) + 1;
}

void presence_end(writer *w) {
    if (!w->staying) return;
    hd_status status = writer_begin_soft(w);
    if (!status) status = w->store->ops->leave(w->store, w->session_text);
    (void)writer_end(w, status);
}

/* ---- On the runtime's thread --------------------------------------------------------------------- */

uint64_t presence_until(writer *w) {
    pthread_mutex_lock(&w->lock);
    uint64_t until = w->present_ns;
    pthread_mutex_unlock(&w->lock);
    return until;
}

uint64_t presence_of(writer *w, const char *session) {
    pthread_mutex_lock(&w->lock);
    pulse *p = find_pulse(w, session);
    uint64_t until = p ? p->until_ns : 0;
    if (p) p->asked_ns = env_now_ns(&w->env);
    pthread_mutex_unlock(&w->lock);
    return until;
}

/* The entry of the session, or a new one. If all are in use, the new one replaces the session that our runtime has not
 * asked for for the longest time. */
static pulse *place_pulse(writer *w, const char *session) {
    pulse *p = find_pulse(w, session);
    if (p) return p;
    if (w->pulse_count < LOG_LIVES) return &w->pulses[w->pulse_count++];
    p = &w->pulses[0];
    for (uint32_t i = 1; i < LOG_LIVES; i++)
        if (w->pulses[i].asked_ns < p->asked_ns) p = &w->pulses[i];
    return p;
}

void presence_note(writer *w, const char *session, uint64_t until_ns) {
    assert(strlen(session) < sizeof w->pulses[0].session);
    pthread_mutex_lock(&w->lock);
    pulse *p = place_pulse(w, session);
    *p = (pulse){ .until_ns = until_ns, .asked_ns = env_now_ns(&w->env) };
    memcpy(p->session, session, strlen(session));
    pthread_mutex_unlock(&w->lock);
}
