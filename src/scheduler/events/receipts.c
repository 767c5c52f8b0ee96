/* receipts.c -- forgetting receipts that are older than the horizon (hd_options.receipt_days).
 *
 * A receipt counts from the time in its event's id. An id without a time, which is a sender's own or that of a
 * lasting event, has a receipt that counts from its handling: the kind of the document tells when that was. Times
 * are counted in *slots* of 2^25 ms (nine hours), which are the first digits of the time in an id:
 *
 *     receipt/0jv4r8s1k-...                         listed by the prefix "receipt/0jv4"
 *     receipt/000000000-...   kind "receipt.0jv4"   listed by its kind
 *
 * The document "receipt-horizon" of a space has the first slot that is still there. So pruning lists the slots that
 * have become too old since, and never a receipt that stays; it lists all receipts where there is no such document.
 *
 * A program that handles events prunes their spaces by itself, an hour after its first event and then every hour in
 * which it handles some: one step lists, each step after it deletes RECEIPTS_SLICE of what was found. */
#include "scheduler/events/state.h"

#include "base/env.h"
#include "value/key.h"
#include <string.h>

#define SLOT_BITS      25
#define KIND           "receipt."
#define HORIZON        "receipt-horizon"
#define RECEIPTS_SLICE 256
#define EVERY_NS       (UINT64_C(3600) * 1000000000)

static void slot_text(uint64_t slot, char out[RECEIPT_SLOT_SIZE]) {
    char id[HD_EVENT_ID_SIZE];
    event_id_put_time(slot << SLOT_BITS, id);
    memcpy(out, id, RECEIPT_SLOT_SIZE - 1);
    out[RECEIPT_SLOT_SIZE - 1] = '\0';
}

const char *receipts_kind(const scheduler *s, const char *id, char out[RECEIPT_KIND_SIZE]) {
    if (event_id_time(id)) return NULL;
    memcpy(out, KIND, strlen(KIND));
    slot_text(env_wall_ms(s->env) >> SLOT_BITS, out + strlen(KIND));
    return out;
}

/* The slot that a receipt counts from; UINT64_MAX: it is none, or its kind does not tell. */
static uint64_t slot_of(const hd_listing *entry) {
    char digits[HD_EVENT_ID_SIZE] = "0000000000";
    uint64_t ms = event_id_time(entry->id + strlen(RECEIPT));
    if (ms == UINT64_MAX) return ms;
    if (ms) return ms >> SLOT_BITS;
    bool told = !strncmp(entry->kind, KIND, strlen(KIND)) &&
                strlen(entry->kind) == strlen(KIND) + RECEIPT_SLOT_SIZE - 1;
    if (!told) return UINT64_MAX;
    memcpy(digits, entry->kind + strlen(KIND), RECEIPT_SLOT_SIZE - 1);
    digits[EVENT_TIME_CHARS] = '-';
    ms = event_id_time(digits);
    return ms == UINT64_MAX ? ms : ms >> SLOT_BITS;
}

/* ---- finding */

/* Receipts of slots below this one are too old. */
static uint64_t first_kept(const scheduler *s) {
    uint32_t days = s->rt->options.receipt_days ? s->rt->options.receipt_days : 30;
    uint64_t now = env_wall_ms(s->env), ms = days * EVENTS_DAY_MS;
    return ms < now ? (now - ms) >> SLOT_BITS : 0;
}

static bool find_old(const hd_listing *entry, void *ctx) {
    receipts *r = ctx;
    hd_cell cell;
    r->s->events->stats.receipts_listed++;
    if (slot_of(entry) >= r->kept) return true;
    cell = hd_cell_of(r->s->rt, entry->space, entry->scope, entry->id, "");
    if (!cell.id || !vec_push(r->s->env, &r->old, cell)) r->status = HD_NOMEM;
    return !r->status;
}

static hd_status list_slot(receipts *r, const char *space, uint64_t slot) {
    char prefix[sizeof RECEIPT + RECEIPT_SLOT_SIZE] = RECEIPT, kind[RECEIPT_KIND_SIZE] = KIND;
    slot_text(slot, prefix + strlen(RECEIPT));
    slot_text(slot, kind + strlen(KIND));
    hd_status status = hd_runtime_list(r->s->rt, space, NULL, prefix, find_old, r);
    if (!status) status = hd_runtime_list(r->s->rt, space, kind, NULL, find_old, r);
    return status ? status : r->status;
}

static hd_status read_horizon(receipts *r, uint64_t *slot) {
    hd_pool *pool;
    hd_status status = hd_pool_open(r->s->r->heap, &pool);
    if (status) return status;
    hd_value v = hd_read(r->s->rt, pool, r->horizon);
    int64_t first = hd_value_as_int(hd_value_at(v, "first"), 0);
    *slot = first > 0 ? (uint64_t)first : 0;
    status = hd_value_status(v);
    hd_pool_close(pool);
    return status;
}

/* Lists what is too old in the space. Afterwards `kept` is 0 if nothing has become too old since the last time. */
static hd_status find(receipts *r, const char *space) {
    uint64_t slot;
    r->status = HD_OK;
    r->kept = first_kept(r->s);
    r->horizon = hd_cell_of(r->s->rt, space, HD_SCOPE_SPACE, HORIZON, "");
    if (!r->horizon.id) return HD_NOMEM;
    hd_status status = read_horizon(r, &slot);
    if (!status && slot >= r->kept) r->kept = 0;
    if (status || !r->kept) return status;
    if (!slot) status = hd_runtime_list(r->s->rt, space, NULL, RECEIPT, find_old, r);
    for (; slot && slot < r->kept && !status; slot++) status = list_slot(r, space, slot);
    return status ? status : r->status;
}

/* ---- deleting */

static hd_status forget(scheduler *s, hd_tx *tx, hd_cell receipt) {
    hd_status status = events_remove(s, tx, receipt.id);
    return status ? status : tx_forget(tx, receipt.id);
}

/* One slice; with the last of them goes the new horizon. */
static hd_status forget_slice(receipts *r, uint64_t *forgotten) {
    hd_tx *tx;
    scheduler *s = r->s;
    uint32_t count = r->old.count < RECEIPTS_SLICE ? r->old.count : RECEIPTS_SLICE;
    hd_status status = hd_tx_begin(s->rt, &tx);
    if (status) return status;
    for (uint32_t i = 0; i < count && !status; i++)
        status = forget(s, tx, r->old.items[r->old.count - 1 - i]);
    if (!status && count == r->old.count) {
        hd_pool *pool = hd_tx_pool(tx);
        hd_value v = hd_int(pool, (int64_t)r->kept);
        status = hd_tx_set(tx, r->horizon, hd_object_set(pool, hd_object(), "first", v));
    }
    if (status) hd_tx_abort(tx);
    else status = hd_tx_commit(tx, NULL, NULL);
    if (status) return status;
    r->old.count -= count;
    s->events->stats.receipts_pruned += count;
    if (!r->old.count) r->kept = 0;
    if (forgotten) *forgotten += count;
    return HD_OK;
}

static void let_go(receipts *r) {
    vec_fini(r->s->env, &r->old);
    r->kept = 0;
}

hd_status receipts_prune(scheduler *s, const char *space, uint64_t *pruned) {
    receipts r = { .s = s };
    *pruned = 0;
    hd_status status = find(&r, space);
    while (!status && r.kept) status = forget_slice(&r, pruned);
    let_go(&r);
    return status;
}

/* ---- by itself */

void receipts_made(scheduler *s) {
    receipts *r = &s->events->receipts;
    if (!r->due_ns) r->due_ns = env_now_ns(s->env) + EVERY_NS;
}

/* The space of the next stream that has a handler; NULL: all have had their turn. */
static const char *next_space(const events *ev, receipts *r) {
    const places *ps = &r->s->r->places;
    while (r->next < ev->stream_list.count) {
        const stream *to = ev->stream_list.items[r->next++];
        if (to->spec.fn) return key_bytes(ps->homes.items[to->home].space);
    }
    return NULL;
}

void receipts_step(scheduler *s) {
    events *ev = s->events;
    receipts *r = &ev->receipts;
    if (!r->due_ns || ev->closing || s->rt->options.read_only) return;
    if (env_now_ns(s->env) < r->due_ns) return;
    r->s = s;
    hd_status status = HD_OK;
    const char *space = NULL;
    if (r->kept) status = forget_slice(r, NULL);
    else if ((space = next_space(ev, r))) status = find(r, space);
    if (!status && (r->kept || space)) {
        s->tick = true; /* there is more to do */
        return;
    }
    if (status && status != HD_PENDING)
        env_log(s->env, HD_LOG_WARN, "old receipts are not deleted: %s", hd_status_text(status));
    let_go(r);
    r->next = 0;
    r->due_ns = 0; /* the next event that is handled sets it */
}

void receipts_fini(scheduler *s) {
    s->events->receipts.s = s;
    let_go(&s->events->receipts);
}
