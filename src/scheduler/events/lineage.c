/* lineage.c -- attempts of transactions, and what ends with them if they fail: events and cancel groups. */
#include "scheduler/events/lineage.h"

#include "base/env.h"
#include "value/key.h"

/* ---- cancel groups */

hd_status cancel_group_add(const hd_env *env, cancel_group *g, hd_stop_fn fn, void *ctx) {
    if (!g->cancelled) return vec_push(env, &g->stops, ((stop){ fn, ctx })) ? HD_OK : HD_NOMEM;
    hd_status status = fn(ctx);
    if (status)
        env_log(env, HD_LOG_WARN, "something could not be stopped: %s", hd_status_text(status));
    return HD_OK;
}

uint32_t cancel_group_cancel(const hd_env *env, cancel_group *g, hd_status *first) {
    uint32_t failures = 0;
    *first = HD_OK;
    g->cancelled = true;
    /* Taken out before it is called: it may add others, or cancel again. */
    while (g->stops.count) {
        stop s = vec_pop(&g->stops);
        hd_status status = s.fn(s.ctx);
        if (!status) continue;
        if (!failures++) *first = status;
    }
    assert(g->cancelled && !g->stops.count);
    vec_fini(env, &g->stops);
    return failures;
}

void cancel_group_drop(const hd_env *env, cancel_group *g) { vec_fini(env, &g->stops); }

/* ---- life */

void lineages_init(lineages *ls, const hd_env *env, lineage_cancel_fn cancel, void *ctx) {
    *ls = (lineages){ .env = env, .cancel = cancel, .ctx = ctx };
    list_init(&ls->all);
}

static void lineage_free(lineages *ls, lineage *l) {
    list_remove(&l->link);
    assert(list_empty(&l->events));
    cancel_group_drop(ls->env, &l->stops);
    vec_fini(ls->env, &l->afters);
    vec_fini(ls->env, &l->spaces);
    env_free(ls->env, l, sizeof *l);
}

lineage *lineage_of(lineages *ls, hd_tx *tx) {
    assert(!tx->lineage || ((lineage *)tx->lineage)->state == LINEAGE_OPEN);
    if (tx->lineage) return tx->lineage;
    lineage *l = env_new0(ls->env, sizeof *l);
    if (!l) return NULL;
    l->refs = 1;
    l->attempt = ++ls->attempts;
    list_init(&l->events);
    list_push_back(&ls->all, &l->link);
    tx->lineage = l;
    tx->flags |= TX_LAUNCHED;
    return l;
}

void lineage_unref(lineages *ls, lineage *l) {
    assert(l->refs > 0);
    if (--l->refs) return;
    assert(list_empty(&l->events) && l->state >= LINEAGE_COMMITTED);
    lineage_free(ls, l);
}

/* ---- fate */

/* Without memory a space is left out of the list. Events there then wait for the verdict, which is right
 * for every space. */
static void note_spaces(lineages *ls, lineage *l, const replica *r, const commit *c) {
    const places *ps = &r->places;
    for (uint32_t i = 0; i < c->ops.count; i++) {
        struct key *space = ps->homes.items[place_at(ps, c->ops.items[i].doc)->doc.home].space;
        if (lineage_in_space(l, space)) continue;
        if (!vec_push(ls->env, &l->spaces, space)) return;
    }
}

static void cancel_events(lineages *ls, lineage *l) {
    while (!list_empty(&l->events)) ls->cancel(ls->ctx, list_first(&l->events));
}

static void stop_all(lineages *ls, lineage *l) {
    hd_status first;
    uint32_t failures = cancel_group_cancel(ls->env, &l->stops, &first);
    if (failures)
        env_log(ls->env, HD_LOG_WARN,
                "a commit failed, and %u of the things it had launched could not be stopped: %s",
                failures, hd_status_text(first));
}

static void tell_afters(lineage *l, hd_status status) {
    for (uint32_t i = 0; i < l->afters.count; i++)
        l->afters.items[i].fn(status, l->afters.items[i].ctx);
    vec_clear(&l->afters);
}

void lineage_told(lineages *ls, lineage *l, const replica *r, const commit *c, hd_status status) {
    if (l->state >= LINEAGE_COMMITTED) return;
    assert(l->refs > 0);
    if (status == HD_PENDING) {
        assert(l->state == LINEAGE_OPEN && c && c->local_seq && !l->local_seq);
        l->state = LINEAGE_PENDING;
        l->local_seq = c->local_seq;
        note_spaces(ls, l, r, c);
        return;
    }
    l->state = status ? LINEAGE_FAILED : LINEAGE_COMMITTED;
    if (status) {
        cancel_events(ls, l);
        assert(list_empty(&l->events)); /* I10: no event outlives the transaction that sent it */
        stop_all(ls, l);
    } else {
        cancel_group_drop(ls->env, &l->stops);
    }
    tell_afters(l, status);
    lineage_unref(ls, l);
}

/* The runtime closes. A transaction that was committed and has no verdict may be in the store. */
void lineages_fini(lineages *ls) {
    while (!list_empty(&ls->all)) {
        lineage *l = LIST_ENTRY(list_first(&ls->all), lineage, link);
        tell_afters(l, l->state == LINEAGE_PENDING ? HD_NO_VERDICT : HD_CLOSED);
        lineage_free(ls, l);
    }
}

void lineages_check(const lineages *ls) {
    LIST_FOR (at, &ls->all) {
        const lineage *l = LIST_ENTRY(at, lineage, link);
        assert(l->refs == list_count(&l->events) + (l->state < LINEAGE_COMMITTED));
        assert(l->state != LINEAGE_FAILED || list_empty(&l->events)); /* I10 */
        assert(l->state != LINEAGE_PENDING || l->local_seq);
        assert(l->attempt && l->attempt <= ls->attempts);
        assert(l->state < LINEAGE_COMMITTED || (!l->afters.count && !l->stops.stops.count));
        (void)l;
    }
}

bool lineage_in_space(const lineage *l, const struct key *space) {
    for (uint32_t i = 0; i < l->spaces.count; i++)
        if (l->spaces.items[i] == space) return true;
    return false;
}
