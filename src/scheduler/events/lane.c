/* lane.c -- lanes: which of them have something to do, and what the others wait for.
 *
 *     empty --insert--> READY --step--> TURN --its head waits--> NODES, PARKED, ASKED, ...
 *       ^                 ^                                          |
 *       +---- remove -----+----------- lane_wake: it has come -------+
 *
 * A pass visits the lanes that are ready. A lane whose head waits is in the list of what it waits for, and
 * costs a pass nothing; for a lane that waits for nodes, a pass compares the time of one gate. Where the
 * specification says "the head event", the code asks for the head of a lane (spec 7.5). */
#include "scheduler/events/state.h"

#include "base/env.h"
#include "base/hash.h"

#define MS UINT64_C(1000000)

void lanes_init(events *ev, const hd_env *env) {
    for (int i = 0; i < LANE_STATES; i++) list_init(&ev->lanes_in[i]);
    table_init(&ev->lane_index, env);
    binheap_init(&ev->lane_timers, env);
}

void lanes_fini(events *ev, const hd_env *env) {
    for (uint32_t i = 0; i < ev->lanes.count; i++) {
        assert(list_empty(&ev->lanes.items[i]->queue));
        env_free(env, ev->lanes.items[i], sizeof(lane));
    }
    vec_fini(env, &ev->lanes);
    table_fini(&ev->lane_index);
    binheap_fini(&ev->lane_timers);
}

/* ---- finding */

static uint32_t space_hash(const struct key *space) {
    return hash_fold(hash_u64((uintptr_t)space));
}

static lane *find_lane(const events *ev, const struct key *space) {
    for (table_probe p = table_find(&ev->lane_index, space_hash(space));
         table_next(&ev->lane_index, &p);)
        if (ev->lanes.items[p.index]->space == space) return ev->lanes.items[p.index];
    return NULL;
}

/* The heap of timers gets room for the new lane here, so that setting a lane's timer cannot fail. */
hd_status lane_of_space(scheduler *s, const struct key *space, lane **out) {
    events *ev = s->events;
    *out = find_lane(ev, space);
    if (*out) return HD_OK;
    lane *l = env_new0(s->env, sizeof *l);
    hd_status status = l && vec_room(s->env, &ev->lanes, 1) ? HD_OK : HD_NOMEM;
    if (!status) status = binheap_reserve(&ev->lane_timers, ev->lanes.count + 1);
    if (!status) status = table_insert(&ev->lane_index, space_hash(space), ev->lanes.count);
    if (status) {
        env_free(s->env, l, sizeof *l);
        return status;
    }
    l->space = space;
    list_init(&l->queue);
    ev->lanes.items[ev->lanes.count++] = *out = l;
    assert(find_lane(ev, space) == l);
    return HD_OK;
}

event *lane_head(const lane *l) {
    list_node *n = list_first(&l->queue);
    return n ? LIST_ENTRY(n, event, link) : NULL;
}

event *lanes_oldest(const events *ev) {
    event *oldest = NULL;
    for (uint32_t i = 0; i < ev->lanes.count; i++) {
        event *e = lane_head(ev->lanes.items[i]);
        if (e && (!oldest || e->order < oldest->order)) oldest = e;
    }
    return oldest;
}

/* ---- where a lane stands */

static void put(events *ev, lane *l, lane_state where) {
    assert(where < LANE_STATES && !list_empty(&l->queue));
    list_discard(&l->link);
    l->state = where;
    list_push_back(&ev->lanes_in[where], &l->link);
}

static void set_timer(events *ev, lane *l, uint64_t at) {
    if (binheap_linked(&l->timer)) binheap_remove(&ev->lane_timers, &l->timer);
    if (!at) return;
    hd_status status = binheap_push(&ev->lane_timers, &l->timer, at);
    assert(!status); /* lane_of_space made room */
    (void)status;
}

void lane_wake(scheduler *s, lane *l) {
    events *ev = s->events;
    set_timer(ev, l, 0);
    l->blocker = (hd_node){ 0, 0 };
    l->behind_suspended = false;
    s->tick = true;
    if (list_empty(&l->queue)) list_discard(&l->link);
    else put(ev, l, LANE_READY);
}

void lanes_wake(scheduler *s, lane_state where) {
    list *from = &s->events->lanes_in[where];
    assert(where < LANE_STATES && where != LANE_READY); /* waking puts lanes into LANE_READY */
    while (!list_empty(from)) lane_wake(s, LIST_ENTRY(list_first(from), lane, link));
}

static lane_state state_for(hd_event_wait waits) {
    switch (waits) {
    case HD_EVENT_WAITS_NOT: return LANE_READY;
    case HD_EVENT_WAITS_NODES: return LANE_NODES;
    case HD_EVENT_WAITS_DUPLICATE: return LANE_RECEIPT;
    case HD_EVENT_WAITS_PRESYNC:
    case HD_EVENT_WAITS_HANDLER: return LANE_ASKED;
    case HD_EVENT_WAITS_READS: return LANE_READS;
    case HD_EVENT_WAITS_TIME:
    case HD_EVENT_WAITS_LOAD:
    case HD_EVENT_WAITS_ORIGIN: break;
    }
    return LANE_PARKED;
}

/* When a timer wakes the lane; 0: no timer. A head that waits for nodes which do not settle goes on without
 * them after BACKOFF_MAX_MS. Once that time is over, other nodes keep it waiting, and they wake the lane. */
static uint64_t wakes_at(const scheduler *s, const event *e) {
    assert(e->waits != HD_EVENT_WAITS_TIME || e->not_before);
    if (e->waits == HD_EVENT_WAITS_TIME) return e->not_before;
    if (e->waits != HD_EVENT_WAITS_NODES || !e->to->patience.unsettled) return 0;
    uint64_t until = e->to->patience.unsettled + BACKOFF_MAX_MS * MS;
    return until > env_now_ns(s->env) ? until : 0;
}

/* ---- the events in it */

void lane_insert(scheduler *s, event *e) {
    events *ev = s->events;
    lane *l = e->to->lane;
    list_node *at = l->queue.head.prev;
    assert(!list_linked(&e->link) && !(e->flags & EVENT_IN_FLIGHT));
    /* A new event has the highest order number. One that is retried goes back to where it stood (I4). */
    if (e->attempts && !SABOTAGED(ev, EVENTS_WITHOUT_ORDER)) {
        at = &l->queue.head;
        while (at->next != &l->queue.head && LIST_ENTRY(at->next, event, link)->order < e->order)
            at = at->next;
    }
    list_insert_after(at, &e->link);
    ev->queued++;
    e->to->queued++;
    assert(ev->queued >= e->to->queued);
    s->tick = true;
    if (lane_head(l) == e) lane_wake(s, l);
}

void lane_remove(scheduler *s, event *e) {
    lane *l = e->to->lane;
    bool head = lane_head(l) == e;
    assert(!(e->flags & EVENT_IN_FLIGHT));
    list_remove(&e->link);
    assert(s->events->queued && e->to->queued);
    s->events->queued--;
    e->to->queued--;
    if (head) lane_wake(s, l);
}

/* ---- turns */

/* Whether the head of a lane waits behind the same closed gate as when it was last looked at. */
static bool is_still_blocked(const scheduler *s, const lane *l) {
    node_id id = registry_get(s, l->blocker);
    const cold *c = id ? cold_of(s, node_of(s, id)) : NULL;
    return c && binheap_linked(&c->gate.timer) && c->gate.timer.key == l->blocked_until;
}

static void wake_unblocked(scheduler *s) {
    LIST_FOR_SAFE (n, &s->events->lanes_in[LANE_NODES]) {
        lane *l = LIST_ENTRY(n, lane, link);
        if (!is_still_blocked(s, l)) lane_wake(s, l);
    }
}

static void wake_due(scheduler *s) {
    events *ev = s->events;
    if (!binheap_count(&ev->lane_timers)) return;
    uint64_t now = env_now_ns(s->env);
    for (binheap_item *timer; (timer = binheap_peek(&ev->lane_timers)) && timer->key <= now;)
        lane_wake(s, BINHEAP_ENTRY(timer, lane, timer));
}

void lanes_begin_turn(scheduler *s) {
    events *ev = s->events;
    assert(list_empty(&ev->lanes_in[LANE_TURN]));
    wake_due(s);
    wake_unblocked(s);
    while (!list_empty(&ev->lanes_in[LANE_READY]))
        put(ev, LIST_ENTRY(list_first(&ev->lanes_in[LANE_READY]), lane, link), LANE_TURN);
}

lane *lanes_next(events *ev) {
    list_node *n = list_first(&ev->lanes_in[LANE_TURN]);
    return n ? LIST_ENTRY(n, lane, link) : NULL;
}

void lane_end_turn(scheduler *s, lane *l) {
    const event *e = lane_head(l);
    if (!e || l->state != LANE_TURN) return; /* empty, or woken meanwhile */
    assert(!l->blocker.id || e->waits == HD_EVENT_WAITS_NODES);
    put(s->events, l, state_for(e->waits));
    set_timer(s->events, l, wakes_at(s, e));
}

/* ---- what others ask */

bool lane_waits_for_program(const lane *l) {
    const event *e = lane_head(l);
    assert(e); /* asked of lanes that are in a list */
    switch (l->state) {
    case LANE_READS:
    case LANE_ASKED: return true;
    case LANE_NODES: return l->behind_suspended;
    case LANE_PARKED:
        assert(e->waits != HD_EVENT_WAITS_ORIGIN || e->origin);
        return e->waits == HD_EVENT_WAITS_ORIGIN && e->origin->state == LINEAGE_OPEN;
    default: return false;
    }
}

/* A lane in LANE_NODES without a blocker waits for nodes that run in this pass (events.again), or for nodes
 * that no time gate holds. What frees those (a document, the end of a suspended run) sets scheduler.tick,
 * and so begins a pass. */
bool lanes_have_work(const scheduler *s) {
    const events *ev = s->events;
    if (ev->again || !list_empty(&ev->lanes_in[LANE_READY])) return true;
    LIST_FOR (n, &ev->lanes_in[LANE_NODES]) {
        const lane *l = LIST_ENTRY(n, lane, link);
        if (l->blocker.id && !is_still_blocked(s, l)) return true;
    }
    return false;
}

uint64_t lanes_next_time(const events *ev) {
    const binheap_item *timer = binheap_peek(&ev->lane_timers);
    return timer ? timer->key : UINT64_MAX;
}

/* ---- checks, for debug builds */

#ifndef NDEBUG

/* Returns how many events are in the lane. */
static uint32_t check_queue(const events *ev, const lane *l) {
    uint32_t queued = 0;
    uint64_t before = 0;
    (void)ev;
    LIST_FOR (n, &l->queue) {
        const event *e = LIST_ENTRY(n, event, link);
        assert(e->to->lane == l && !(e->flags & (EVENT_IN_FLIGHT | EVENT_CANCELLED)));
        assert(!e->origin == !list_linked(&e->by_origin));
        assert(!e->origin || e->origin->state != LINEAGE_FAILED); /* I10 */
        assert(!e->presync || e->presync->e == e);
        assert(e->order >= before || SABOTAGED(ev, EVENTS_WITHOUT_ORDER)); /* I4 */
        before = e->order;
        queued++;
    }
    return queued;
}

/* Where the lane stands is what its head waits for. */
static void check_state(const lane *l) {
    const event *e = lane_head(l);
    assert(list_linked(&l->link) == (e != NULL));
    assert(e || (!binheap_linked(&l->timer) && !l->blocker.id));
    if (!e) return;
    assert(l->state != LANE_TURN); /* between passes */
    assert(l->state == LANE_READY || l->state == state_for(e->waits));
    assert(!binheap_linked(&l->timer) || l->state == LANE_PARKED || l->state == LANE_NODES);
    /* A lane that was woken in its own preflight may be ready with a blocker; its next turn drops it. */
    assert(!l->blocker.id || l->state == LANE_NODES || l->state == LANE_READY);
}

/* Returns how many lanes have events. */
static uint32_t check_lists(const events *ev) {
    uint32_t linked = 0;
    for (int i = 0; i < LANE_STATES; i++)
        LIST_FOR (n, &ev->lanes_in[i]) {
            assert(LIST_ENTRY(n, lane, link)->state == (lane_state)i);
            linked++;
        }
    return linked;
}

static void check_in_flight(const events *ev) {
    uint32_t flying = 0, posted = 0, waiting = 0;
    LIST_FOR (n, &ev->in_flight) {
        assert(LIST_ENTRY(n, event, link)->flags & EVENT_IN_FLIGHT);
        flying++;
    }
    LIST_FOR (n, &ev->posted) {
        const event *e = LIST_ENTRY(n, event, by_doc);
        assert((e->flags & EVENT_POSTED) && e->document && list_linked(&e->link));
        posted++;
    }
    for (uint32_t i = 0; i < ev->stream_list.count; i++)
        waiting += ev->stream_list.items[i]->queued;
    assert(flying == ev->flying && posted == table_count(&ev->taken) && waiting == ev->queued);
    (void)flying, (void)posted, (void)waiting;
}

void lanes_check(const events *ev) {
    uint32_t queued = 0, linked = 0;
    for (uint32_t i = 0; i < ev->lanes.count; i++) {
        queued += check_queue(ev, ev->lanes.items[i]);
        check_state(ev->lanes.items[i]);
        linked += list_linked(&ev->lanes.items[i]->link);
    }
    assert(queued == ev->queued && linked == check_lists(ev));
    check_in_flight(ev);
    binheap_check(&ev->lane_timers);
}

#else
void lanes_check(const events *ev) { (void)ev; }
#endif
