/* readers.c -- rows of `reader` and `session`. */
#include "store/log/readers.h"

#include <stdio.h>

/* ---- Our rows -------------------------------------------------------------------------------- */

static uint64_t seen_by_runtime(writer *w) {
    pthread_mutex_lock(&w->lock);
    uint64_t seen = w->seen;
    pthread_mutex_unlock(&w->lock);
    return seen;
}

/* [[local seq, payload, "HD_STALE", seq], ...] of what is not settled. */
static hd_status print_verdicts(const head_session *session, json_buffer *b) {
    char item[128];
    for (uint32_t i = 0; i <= session->verdicts.count; i++) {
        const decided *d = i < session->verdicts.count ? &session->verdicts.items[i] : NULL;
        int n = d ? snprintf(item, sizeof item, "%s[%llu,%lld,\"%s\",%llu]", i ? "," : "[",
                             (unsigned long long)d->local_seq, (long long)d->payload,
                             hd_status_name(d->status), (unsigned long long)d->seq)
                  : snprintf(item, sizeof item, i ? "]" : "[]");
        if (!json_buffer_grow(b, (size_t)n)) return HD_NOMEM;
        memcpy(b->bytes + b->length, item, (size_t)n);
        b->length += (size_t)n;
    }
    return HD_OK;
}

static hd_status put_session(writer *w) {
    assert(w->session_index < w->heads.sessions.count);
    const head_session *session = &w->heads.sessions.items[w->session_index];
    json_buffer text;
    json_buffer_init(&text, &w->env);
    hd_status status = print_verdicts(session, &text);
    session_row row = { .id = text_of_bytes(w->session_text, 32),
                        .settled = (int64_t)session->settled,
                        .last = (int64_t)session->last,
                        .verdicts = text_of_bytes(text.bytes, text.length) };
    if (!status) status = w->store->ops->put_session(w->store, &row);
    json_buffer_fini(&text);
    return status;
}

hd_status log_readers_put(writer *w) {
    assert(w->store->ops->in_transaction(w->store));
    w->told = seen_by_runtime(w);
    hd_status status = w->store->ops->put_reader(w->store, w->session_text, w->told);
    return status ? status : put_session(w);
}

hd_status log_readers_move(writer *w) {
    assert(w->store->ops->in_transaction(w->store));
    w->told = seen_by_runtime(w);
    return w->store->ops->move_reader(w->store, w->session_text, w->told);
}

hd_status log_readers_drop(writer *w) {
    return w->store->ops->drop_runtime(w->store, w->session_text);
}

/* ---- Other readers ---------------------------------------------------------------------------- */

typedef struct looking {
    const char *ours;
    uint64_t floor; /* the lowest position of a reader that lives, if it is below what this was */
    char dead[33];  /* the session of a reader that does not; "": there is none */
} looking;

static hd_status look_at_reader(void *ctx, const reader_row *reader, bool *stop) {
    looking *g = ctx;
    (void)stop;
    if (strcmp(reader->session, g->ours) == 0) return HD_OK;
    if (!reader->lives) snprintf(g->dead, sizeof g->dead, "%s", reader->session);
    else if (reader->position < g->floor) g->floor = reader->position;
    return HD_OK;
}

static hd_status look_at_readers(writer *w, looking *g) {
    g->ours = w->session_text;
    g->dead[0] = '\0';
    return w->store->ops->each_reader(w->store, look_at_reader, g);
}

hd_status log_readers_has_dead(writer *w, bool *out) {
    looking g = { .floor = UINT64_MAX };
    hd_status status = look_at_readers(w, &g);
    *out = g.dead[0] != '\0';
    return status;
}

hd_status log_readers_drop_dead(writer *w) {
    assert(w->store->ops->in_transaction(w->store));
    for (;;) {
        looking g = { .floor = UINT64_MAX };
        hd_status status = look_at_readers(w, &g);
        if (status || !g.dead[0]) return status;
        status = w->store->ops->drop_runtime(w->store, g.dead);
        if (status) return status;
    }
}

hd_status log_readers_oldest(writer *w, uint64_t *floor) {
    uint64_t seen = seen_by_runtime(w);
    looking g = { .floor = seen < *floor ? seen : *floor };
    hd_status status = look_at_readers(w, &g);
    *floor = g.floor;
    return status;
}
