/* changes.c -- which documents have changed in a space after a seq.
 *
 * Head rows are found by the index of seqs, and the tail is in memory. Where the tombstones of deleted documents have
 * been pruned, each document that has a place is looked up instead. */
#include "store/log/changes.h"

typedef struct telling {
    client *c;
    const struct key *space;
    uint64_t after;
    change_fn fn;
    void *ctx;
    bool stopped;
} telling;

static void tell(telling *t, place_id doc, uint64_t seq) {
    if (doc && seq > t->after && !t->stopped) t->stopped = !t->fn(t->ctx, doc, seq);
}

static hd_status tell_item(void *ctx, const head_item *item, bool *stop) {
    telling *t = ctx;
    tell(t, client_find(t->c, &item->name), (uint64_t)item->seq);
    *stop = t->stopped;
    return HD_OK;
}

static hd_status tell_heads(telling *t, bool meta) {
    log_store *s = t->c->store;
    row_text space = text_of_key(t->space);
    assert(s->ops->in_transaction(s));
    return t->stopped ? HD_OK : s->ops->heads_since(s, space, t->after, meta, tell_item, t);
}

static void tell_tail(telling *t) {
    const tail *of = &t->c->tail;
    for (uint32_t i = 0; i < of->docs.count; i++) {
        const tail_doc *d = &of->docs.items[i];
        uint64_t seq = vec_last(&d->at).seq;
        if (seq > t->after && doc_name_in_space(&d->name, t->space))
            tell(t, client_find(t->c, &d->name), seq);
    }
}

static hd_status tell_place(telling *t, place_id doc) {
    assert(place_is_doc(&t->c->r->places, doc));
    client *c = t->c;
    doc_name name = client_name(c, doc);
    const tail_doc *after = tail_find(&c->tail, &name);
    stored_head head;
    if (after) {
        tell(t, doc, vec_last(&after->at).seq);
        return HD_OK;
    }
    hd_status status = head_find(c->store, &name, &head);
    if (status) return status;
    uint64_t seq = name.meta ? head.meta_seq : head.seq;
    tell(t, doc, head.exists && seq ? seq : UINT64_MAX);
    return HD_OK;
}

static hd_status tell_places(telling *t) {
    const places *ps = &t->c->r->places;
    hd_status status = HD_OK;
    for (place_id id = 1; id < ps->count && !status && !t->stopped; id++) {
        const place *p = &ps->at[id];
        if (p->root != id || (p->doc.flags & DOC_VOLATILE)) continue;
        if (ps->homes.items[p->doc.home].space == t->space) status = tell_place(t, id);
    }
    return status;
}

hd_status client_changes(client *c, struct key *space, uint64_t seq, change_fn fn, void *ctx) {
    telling t = { c, space, seq, fn, ctx, false };
    log_space *known;
    uint64_t folded, floor; /* tombstones have been pruned up to the floor */
    hd_status status = client_space_at(c, space, &known);
    if (status || known->seq <= seq) return status;
    status = client_snapshot(c);
    if (!status) status = c->store->ops->get_space(c->store, text_of_key(space), &folded, &floor);
    if (status && status != HD_CORRUPT) return status;
    /* Numbers that make no sense hide how far pruning went. */
    if (status || seq < floor) return tell_places(&t);
    status = tell_heads(&t, false);
    if (!status) status = tell_heads(&t, true);
    if (!status) tell_tail(&t);
    return status;
}
