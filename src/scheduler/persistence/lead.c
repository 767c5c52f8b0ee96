/* lead.c -- which of several processes derives.
 *
 * Processes that have the same computation live would each run it when its input changes, since a process hears of the
 * input before it can hear of another's result. Where hd_options.derive says so, one of them *leads* in a space: it has
 * the lease "derive" (store/lease.h). The others *follow*: a node of theirs that is out of date waits until a row of
 * the leader arrives and is adopted (adopt.c), and everything downstream of it waits, too (runner/lead.c).
 *
 *     a row of another process, about a node that is live here --> the lease is opened: held, or followed
 *     a row of the leader                                      --> the node follows, from the next change on
 *     no row in time, or another leader                        --> the node runs; it follows again after a row
 *
 * Leases spread over the processes that derive in the same spaces (take_share).
 *
 * So a process that is alone has no lease, and no node waits for a leader that does not have it, or has other code: the
 * leader has never written a row of it. A lease decides about cost alone. Results are right because commits claim what
 * they were made of, whichever process made them.
 *
 * Cost: nothing in a store where no other process derives the same nodes; else a read of the lease document in a pump,
 * and what store/lease.h says. */
#include "scheduler/persistence/lead.h"

#include "base/env.h"
#include "store/lease.h"
#include "store/overlay.h"
#include "value/diff.h"
#include "value/key.h"
#include <string.h>

#define MS UINT64_C(1000000)

enum { PATIENCE_TIMES = 4 };

struct lead {
    lease lease;
    struct key *space;         /* referenced */
    uint64_t seen;             /* the revision of the lease document when it was last looked at */
    bool held;                 /* lease.held and lease.holder at the beginning of this turn */
    char holder[SESSION_TEXT]; /* "": no session has it */
    uint32_t turn;             /* grows whenever the lease changes hands; from 1 */
    bool silent;               /* a node has waited for the holder in vain */
};

/* ---- opening */

static bool is_wanted(const scheduler *s) {
    hd_derive derive = s->rt->options.derive;
    if (s->rt->options.read_only || s->rt->closing || s->r->leaving) return false;
    return derive == HD_DERIVE_ONE || (derive == HD_DERIVE_DEFAULT && s->r->authority->remote);
}

static struct key *space_of(const scheduler *s, node_id id) {
    const place *doc = doc_of(s, node_of(s, id)->output);
    return s->r->places.homes.items[doc->doc.home].space;
}

/* The index plus 1; 0: none. */
static uint32_t find(const persistence *p, const struct key *space) {
    for (uint32_t i = 0; i < p->leads.count; i++)
        if (p->leads.items[i]->space == space) return i + 1;
    return 0;
}

/* The lease is tried in the next pump. 0: no memory. */
static uint32_t open_lead(scheduler *s, struct key *space) {
    persistence *p = s->persistence;
    lead *l = env_new0(s->env, sizeof *l);
    if (!l) return 0;
    l->turn = ++p->turns;
    if (lease_open(&l->lease, s->rt, key_bytes(space), "derive", NULL, NULL) ||
        !vec_push(s->env, &p->leads, l)) {
        lease_close(&l->lease);
        env_free(s->env, l, sizeof *l);
        return 0;
    }
    l->space = key_ref(space);
    s->leads = p->leads.count;
    s->tick = true;
    return p->leads.count;
}

/* ---- rows of others */

/* Lowers the patience to a multiple of the time from the change to the leader's row. It is not raised here: where
 * changes follow each other quickly, asked_ns is the time of the first one until a pass finds the node clean, so the
 * time measured is too long. */
static void note_answer(scheduler *s, node_id id) {
    cold *c = cold_of(s, node_of(s, id));
    if (!c || !c->asked_ns) return;
    uint64_t ms = PATIENCE_TIMES * (env_now_ns(s->env) - c->asked_ns) / MS;
    if (ms < PATIENCE_MS) ms = PATIENCE_MS;
    if (ms < c->patience_ms) c->patience_ms = (uint32_t)ms;
    c->answered = true;
}

void lead_heard(scheduler *s, node_id id, hd_value item, const char *by) {
    persistence *p = s->persistence;
    kept_node *k = kept_of(s, id);
    const node *n = node_of(s, id);
    if (!is_wanted(s) || !n->output || !node_is_live(&s->graph, n)) return;
    if (!k->lead) k->lead = find(p, space_of(s, id));
    if (!k->lead) k->lead = open_lead(s, space_of(s, id));
    const lead *l = k->lead ? p->leads.items[k->lead - 1] : NULL;
    if (!l || l->held || !by || strcmp(by, l->holder) != 0) return;
    k->turn = value_equal(array_get(item, ROW_PRINT), k->print) ? l->turn : 0;
    note_answer(s, id);
}

bool persistence_is_led(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    return k->turn && k->turn == s->persistence->leads.items[k->lead - 1]->turn;
}

void persistence_stop_following(scheduler *s, node_id id, bool silent) {
    kept_node *k = kept_of(s, id);
    assert(k->lead);
    k->turn = 0;
    if (silent) s->persistence->leads.items[k->lead - 1]->silent = true;
}

hd_value persistence_leader(const scheduler *s, node_id id) {
    uint32_t lead_ = s->persistence ? kept_of(s, id)->lead : 0;
    const lead *l = lead_ ? s->persistence->leads.items[lead_ - 1] : NULL;
    return l && l->lease.doc ? place_at(&s->r->places, l->lease.doc)->value : value_absent();
}

/* ---- the leases */

/* Leases spread over the processes that derive in the same spaces: one that leads in two spaces less than another,
 * of those that it derives in itself, takes one of the other's. After that it does not lead in more than the other, so
 * the other takes none back. */
static void take_share(const persistence *p, lead *l) {
    uint32_t ours = 0, theirs = 0;
    if (l->held || !*l->holder) return;
    for (uint32_t i = 0; i < p->leads.count; i++) {
        const lead *o = p->leads.items[i];
        if (o->lease.held || o->lease.asked) ours++;
        else theirs += !strcmp(o->holder, l->holder);
    }
    if (theirs >= ours + 2) (void)lease_seize(&l->lease);
}

/* The lease may have changed hands: nodes follow the new holder when it has written rows of them. */
static void begin_turn(scheduler *s, lead *l) {
    persistence *p = s->persistence;
    if (l->held == l->lease.held && !strcmp(l->holder, l->lease.holder)) return;
    p->held += (uint32_t)l->lease.held - (uint32_t)l->held;
    l->held = l->lease.held;
    memcpy(l->holder, l->lease.holder, sizeof l->holder);
    l->turn = ++p->turns;
    l->silent = false; /* that was said of the holder before */
    s->unlead = s->tick = true;
    if (s->r->due) persistence_soon(s); /* what waited for the store to be free */
    take_share(p, l);
}

static void tend(scheduler *s, lead *l) {
    uint64_t rev = place_at(&s->r->places, l->lease.doc)->rev;
    if (rev != l->seen && l->lease.held) lease_look(&l->lease);
    if (rev != l->seen) l->lease.checked_ns = 0;
    l->seen = rev;
    lease_tend(&l->lease);
    begin_turn(s, l);
    if (l->silent) (void)lease_seize(&l->lease); /* the node may not be live there any more */
    l->silent = false;
}

/* Others wait for rows of a runtime that leads, also of runs whose output is as before: they are sealed as soon as the
 * store is free. */
static void seal_soon(scheduler *s) {
    authority *a = s->r->authority;
    s->persistence->due_at = 0;
    if (a->ops->idle(a) && persistence_is_ready(s)) overlay_seal(s->r, true);
}

bool lead_pump(scheduler *s) {
    const persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->leads.count; i++)
        if (p->leads.items[i]->lease.doc) tend(s, p->leads.items[i]);
    if (!p->held || !s->r->due) return false;
    seal_soon(s);
    return true;
}

uint64_t lead_deadline(const scheduler *s) {
    const persistence *p = s->persistence;
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < p->leads.count; i++) {
        uint64_t at = lease_deadline(&p->leads.items[i]->lease);
        if (p->leads.items[i]->lease.doc && at < first) first = at;
    }
    return first;
}

/* Rows that are written from here on do not say that we lead. */
void persistence_stop_leading(scheduler *s) {
    persistence *p = s->persistence;
    for (uint32_t i = 0; p && i < p->leads.count; i++) lease_release(&p->leads.items[i]->lease);
    for (uint32_t i = 0; p && i < p->leads.count; i++) {
        lead *l = p->leads.items[i];
        lease_close(&l->lease);
        l->lease.held = false;
        begin_turn(s, l);
    }
}

/* A verdict on a lease may have come until now. */
void lead_fini(scheduler *s) {
    persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->leads.count; i++) {
        key_unref(p->leads.items[i]->space);
        env_free(s->env, p->leads.items[i], sizeof(lead));
    }
    vec_fini(s->env, &p->leads);
    s->leads = 0;
}
