/* undo.c -- heads, spaces, tail and verdicts, as they were before the group. */
#include "store/log/undo.h"

hd_status undo_begin(writer *w) {
    undo *u = &w->undo;
    assert(w->known && w->store->optimistic && !u->begun);
    vec_clear(&u->writes);
    vec_clear(&u->seqs);
    if (!vec_room(&w->env, &u->seqs, w->heads.spaces.count)) return HD_NOMEM;
    for (uint32_t i = 0; i < w->heads.spaces.count; i++)
        u->seqs.items[u->seqs.count++] = w->heads.spaces.items[i].seq;
    u->begun = true;
    u->last = w->heads.sessions.items[w->session_index].last;
    return HD_OK;
}

hd_status undo_note(writer *w, const submission *s) {
    assert(w->undo.begun && s->session == w->session_index);
    if (!vec_room(&w->env, &w->undo.writes, s->write_count)) return HD_NOMEM;
    for (uint32_t i = 0; i < s->write_count; i++) {
        const head *h = &w->heads.heads.items[s->writes[i].head];
        undo_write was = { .head = s->writes[i].head,
                           .flags = h->flags,
                           .seq = h->seq,
                           .last_session = h->last_session,
                           .last_local = h->last_local };
        w->undo.writes.items[w->undo.writes.count++] = was;
    }
    return HD_OK;
}

static void undo_touches(writer *w, head *h, uint64_t seq) {
    while (h->touches.count && vec_last(&h->touches).seq > seq) {
        path_unref(w->heads.heap, vec_last(&h->touches).path);
        h->touches.count--;
    }
    if (h->floor > seq) h->floor = seq; /* so many touches that its own were forgotten */
}

static void undo_one(writer *w, const undo_write *was) {
    head *h = &w->heads.heads.items[was->head];
    assert(h->seq >= was->seq);
    doc_name name = doc_name_of_keys(h->space, (hd_scope)h->scope, h->instance, h->id, h->meta);
    tail_take_back(&w->tail, &name, w->row + 1);
    undo_touches(w, h, was->seq);
    h->flags = was->flags;
    h->seq = was->seq;
    h->last_session = was->last_session;
    h->last_local = was->last_local;
}

/* What the client has declared settled stays so: it is about verdicts of before. */
static void undo_verdicts(writer *w) {
    head_session *session = &w->heads.sessions.items[w->session_index];
    while (session->verdicts.count && vec_last(&session->verdicts).local_seq > w->undo.last)
        session->verdicts.count--;
    session->last = w->undo.last;
}

void undo_all(writer *w) {
    undo *u = &w->undo;
    assert(w->known);
    for (uint32_t i = u->writes.count; i-- > 0;) undo_one(w, &u->writes.items[i]);
    assert(u->seqs.count <= w->heads.spaces.count); /* spaces are never forgotten */
    for (uint32_t i = 0; i < w->heads.spaces.count; i++)
        w->heads.spaces.items[i].seq = i < u->seqs.count ? u->seqs.items[i] : 0;
    undo_verdicts(w);
    vec_clear(&u->writes);
    vec_clear(&u->seqs);
    u->begun = false;
}
