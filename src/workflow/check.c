/* check.c -- what must hold between two turns of an engine, in builds with assertions.
 *
 *     W1  a completion is applied at most once: a step that runs has one claim, and a claim one step
 *     W2  deps_satisfied is below deps_required, and every ready step is queued at rest
 *     W3  an unfinished instance has an open task, timer or wait
 *
 * W4, that a result is a function of inputs and step results, is a matter of tests/model. Cost: O(all that is in
 * memory); with many instances only now and then, so that a turn pays for a bounded part of it. */
#include "workflow/engine.h"

#ifndef NDEBUG

#define CHECKED_AT_ONCE 32 /* instances: with more of them fewer turns are checked */

/* ---- claims */

static const task *claim_of(const hd_engine *e, const strand *s) {
    const task *found = NULL;
    for (uint32_t i = 0; i < e->claims.count; i++)
        if (e->claims.items[i]->s == s) {
            assert(!found);
            found = e->claims.items[i];
        }
    return found;
}

static void check_w1(const hd_engine *e, const strand *s) {
    const task *c = e->claims.count <= CHECKED_AT_ONCE ? claim_of(e, s) : NULL;
    assert((s->state == STRAND_RUNNING) == (s->token != 0));
    if (e->claims.count > CHECKED_AT_ONCE) return; /* task_check goes through the claims */
    assert((c != NULL) == (s->token != 0));
    assert(!c || c->token == s->token);
}

/* ---- where a strand waits */

static bool waits_for_time(const strand *s) {
    return s->state == STRAND_BACKOFF || s->state == STRAND_SLEEPING ||
           (s->state == STRAND_SIGNAL && s->due_ms);
}

/* It has changed, and that is to be stored; or it waits for its instance to go on. */
static bool is_put_off(const live *l, const strand *s) {
    bool at_rest = l->stored && !l->changed && l->in->status == INSTANCE_RUNNING;
    at_rest = at_rest && !l->shard->drains_ns && !l->orphaned;
    bool off = list_linked(&s->news) || list_linked(&s->unqueued);
    assert(!at_rest || !off);
    return off;
}

static void check_w2(const live *l, const strand *s) {
    bool off = is_put_off(l, s), in_heap = binheap_linked(&s->ready);
    assert(!s->queue || s->state == STRAND_READY);
    assert(!in_heap == !(s->queue || (s->limited_by && s->state == STRAND_READY)));
    assert(s->state != STRAND_READY || in_heap || off);
    assert(!s->limited_by || hd_value_exists(s->limit));
}

/* A strand without anything that could wake it would be there for ever. */
static void check_w3(const live *l, const strand *s) {
    bool off = is_put_off(l, s), timed = binheap_linked(&s->timer);
    assert(!timed || (waits_for_time(s) && s->timer.key == s->due_ms));
    assert(!waits_for_time(s) || timed || off);
    if (s->state == STRAND_CHILD)
        assert(s->child ? s->child->awaited == s : list_linked(&s->want) || off);
    if (s->state == STRAND_FAN) assert(s->waits_for && s->waits_for->waiter == s);
}

static void check_strands(const live *l) {
    uint32_t open = 0;
    LIST_FOR (n, &l->in->strands) {
        const strand *s = LIST_ENTRY(n, strand, link);
        assert(s->state != STRAND_WALKING && s->in == l->in);
        if (s->state == STRAND_ENDED) continue;
        check_w1(l->e, s);
        check_w2(l, s);
        check_w3(l, s);
        open += s->state != STRAND_FAN;
    }
    assert(instance_is_over(l->in) ? !open : open > 0); /* W3 */
}

/* ---- instances */

/* deps_satisfied (W2), loops and users of the activations. */
static void check_activations(const instance *in) {
    LIST_FOR (n, &in->activations) {
        const activation *a = LIST_ENTRY(n, activation, link);
        const plan_function *f = &in->p->functions[a->function];
        assert(a->in == in && a->function < in->p->function_count && a->vars->names == f->names);
        assert(!a->ended || !a->users);
        assert(!a->caller || a->depth == a->caller->depth + 1);
        assert(!a->fan || a->caller == a->fan->a);
        assert(!a->fan || !a->fan->waiter || a->index < a->fan->total);
        assert(a->fan || !a->caller == (a->call_node == PLAN_NONE));
        for (uint32_t i = 0; i < a->ready.count; i++)
            assert(a->ready.items[i].satisfied < f->nodes[a->ready.items[i].node].deps_required);
        for (uint32_t i = 0; i < a->loops.count; i++)
            assert(f->nodes[a->loops.items[i].node].kind == NODE_LOOP_HEAD);
    }
}

static void check_fans(const instance *in) {
    LIST_FOR (n, &in->fans) {
        const fan *f = LIST_ENTRY(n, fan, link);
        if (f->ended) continue;
        assert(f->a->in == in && !f->beginning && f->done <= f->begun && f->begun <= f->total);
        assert(!f->waiter || (f->waiter->waits_for == f && f->waiter->state == STRAND_FAN));
        assert(f->items.kind == EV_UNBOUND || f->items.tuple->count >= f->total);
        assert(!f->waiter || f->failed == PLAN_NONE || f->failed < f->total);
    }
}

static void check_live(const live *l) {
    const hd_engine *e = l->e;
    assert(live_find(e, l->id) == l && l->doc);
    assert(l->shard == shard_of(e, l->id) && l->shard->runs);
    assert((l->in == NULL) == (list_linked(&l->lame) || l->stalled));
    assert(!l->stalled || list_linked(&l->lame) || l->changed || l->flight);
    assert(!l->flight || l->flight->busy);
    assert(!(l->stored && l->flight) && l->answered <= l->messages.count);
    if (!l->in) return;
    assert(l->in->owner == l);
    /* One whose end is stored has left. */
    assert(!instance_is_over(l->in) || l->changed || l->flight);
    assert(!l->in->walking.count && l->in->fan_count <= l->in->strand_count);
    check_strands(l);
    if (instance_is_over(l->in)) return;
    check_activations(l->in);
    check_fans(l->in);
}

static void check_commits(const hd_engine *e) {
    uint32_t busy = 0, late = 0;
    for (int i = 0; i < FLIGHTS; i++) busy += e->flights[i].busy;
    assert(busy == e->waits && e->commits_done <= e->commits_begun);
    for (uint32_t i = 0; i < e->changed.count; i++) {
        assert(e->changed.items[i]->changed);
        assert(e->changed.items[i]->in || e->changed.items[i]->stalled);
        late += e->changed.items[i]->flight != NULL;
    }
    assert(late == e->late);
}

static void check_limits(const hd_engine *e) {
    for (uint32_t i = 0; i < e->limits.count; i++) {
        const limit *l = e->limits.items[i];
        assert(l->held || binheap_count(&l->waiting) || l->share.doc);
        /* Something waits: as many as may be there are there, or there was no memory. */
        assert(!limit_next(l) || !limit_has_room(l, limit_next(l)) || e->limits_stuck);
    }
}

static void check_lines(const hd_engine *e) {
    uint64_t running = 0;
    for (uint32_t i = 0; i < e->lines.count; i++) running += e->lines.items[i]->running;
    assert(running == e->claimed_count);
}

static void check_shards(const hd_engine *e) {
    assert(e->active == (shard_count_running(e) > 0));
    for (uint32_t i = 0; i < e->shard_count; i++) {
        const shard *s = &e->shards[i];
        assert(!s->runs || !s->lease.doc || s->lease.held);
        assert(!s->drains_ns || s->runs);
        assert(!s->lease.held || s->runs || s->shall_rise || e->observer);
    }
}

void engine_check(hd_engine *e) {
    uint32_t every = 1 + (uint32_t)(e->stats.open + e->claims.count) / CHECKED_AT_ONCE;
    if (++e->turns % every) return;
    assert(e->active || list_empty(&e->lives));
    assert(e->active || (!e->schedules.count && list_empty(&e->awaiting)));
    check_shards(e);
    check_commits(e);
    check_limits(e);
    check_lines(e);
    task_check(e);
    LIST_FOR (n, &e->lives) check_live(LIST_ENTRY(n, live, link));
}

#else

void engine_check(hd_engine *e) { (void)e; }

#endif
