/* confirmed.c -- sinks that are shown a value only when it can no longer be lost or taken back. */
#include "scheduler/runner/confirmed.h"

#include "store/overlay.h"
#include "value/diff.h"

static uint64_t refusals(const replica *r) { return r->stats.rejected + r->stats.doomed; }

/* Every commit up to this local seq has its verdict. */
static bool is_decided(const replica *r, uint64_t local_seq) {
    const list_node *first = list_first(&r->pending);
    if (!first) first = list_first(&r->queued);
    return !first || LIST_ENTRY(first, commit, link)->local_seq > local_seq;
}

void confirmed_show(scheduler *s, confirmed *k, hd_value v) {
    assert(k->fn && !value_is_failed(v));
    value_unref(k->next);
    k->next = value_ref(v);
    k->unsealed = true;
    k->refusals = refusals(s->r);
    list_discard(&k->link);
    list_push_back(&s->unconfirmed, &k->link);
}

/* The sink may be removed by its function: nothing of `k` is used after the call. */
static void show(confirmed *k, hd_value v) {
    assert(!list_linked(&k->link));
    if (k->told && !k->edits && value_equal(k->shown, v)) return;
    value_unref(k->shown);
    k->shown = value_ref(v);
    k->told = true;
    k->fn(v, k->ctx);
}

void confirmed_fini(confirmed *k) {
    list_discard(&k->link);
    value_unref(k->next);
    value_unref(k->shown);
}

static bool is_refused(const scheduler *s, const confirmed *k) {
    return k->refusals != refusals(s->r);
}

static bool is_ready(const scheduler *s, const confirmed *k, bool idle) {
    return !k->unsealed && is_decided(s->r, k->after) && (idle || !is_refused(s, k));
}

/* What the cell holds now; a reference of the caller's. */
static hd_value read_now(scheduler *s, hd_cell cell) {
    hd_tx *tx;
    hd_status status = hd_tx_begin_read(s->rt, &tx);
    if (status) return value_failed(status);
    hd_value v = hd_tx_get(tx, cell);
    if (!value_is_failed(v)) v = value_ref(v);
    hd_tx_abort(tx);
    return v;
}

/* A document that is not there yet is shown by the sink's own run, which its arrival makes due. Without memory
 * the next pump tries again. */
static void read_anew(scheduler *s, confirmed *k) {
    hd_value v = read_now(s, k->cell);
    if (hd_value_status(v) == HD_NOMEM) return;
    list_remove(&k->link);
    if (value_is_failed(v)) return;
    confirmed_show(s, k, v);
    value_unref(v);
}

static void show_next(confirmed *k) {
    assert(list_linked(&k->link) && k->fn);
    hd_value v = k->next;
    k->next = value_absent();
    list_remove(&k->link);
    show(k, v);
    value_unref(v);
}

/* An output that cannot be sealed now is of a node that is going to run: what it makes is shown then. Where outputs are
 * not stored, because nothing else uses the store, there is nothing to wait for. */
static void seal(scheduler *s) {
    bool sealed = !runtime_seal(s->rt, false);
    LIST_FOR (n, &s->unconfirmed) {
        confirmed *k = LIST_ENTRY(n, confirmed, link);
        place_id doc = place_at(&s->r->places, k->cell.id)->root;
        bool waits = !sealed || (runtime_seals(s->rt) && overlay_is_open(s->r, doc));
        if (!k->unsealed || waits) continue;
        k->unsealed = false;
        k->after = s->r->next_local - 1;
    }
}

static bool any_unsealed(const scheduler *s) {
    LIST_FOR (n, &s->unconfirmed)
        if (LIST_ENTRY(n, confirmed, link)->unsealed) return true;
    return false;
}

/* Functions that are called may remove sinks, so the list is taken from its front: a sink that goes on waiting
 * is put behind the others. */
void confirmed_tell(scheduler *s, bool idle) {
    if (any_unsealed(s)) seal(s);
    for (size_t count = list_count(&s->unconfirmed); count; count--) {
        list_node *n = list_first(&s->unconfirmed);
        if (!n) return;
        list_remove(n);
        list_push_back(&s->unconfirmed, n);
        confirmed *k = LIST_ENTRY(n, confirmed, link);
        if (!is_ready(s, k, idle)) continue;
        if (is_refused(s, k)) read_anew(s, k);
        else show_next(k);
    }
}

bool confirmed_is_due(const scheduler *s, bool idle) {
    LIST_FOR (n, &s->unconfirmed)
        if (is_ready(s, LIST_ENTRY(n, confirmed, link), idle)) return true;
    return false;
}
