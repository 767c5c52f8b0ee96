/* gates.h -- when may a node run?
 *
 * Debounce, throttle, backoff, echo, retries and holds are one idea: a time before which a node must not
 * run. Each policy writes one field; gates_eligible_at() is their maximum; gates_apply() compares it with the
 * clock, and sets the node's eligible bit and its timer.
 *
 *     invalidate --> debounce_at --+
 *     run        --> throttle_at --+
 *     exhausted  --> backoff_at  --+--> max --> eligible bit, timer
 *     echo       --> echo_at     --+
 *     refused    --> retry_at    --+
 *     hold       --> hold_at     --+
 *     led        --> lead_at     --+
 *
 * A node behind a gate stays invalid, and runs when its timer is due.   Spec 8, P8, I6. */
#ifndef SCHEDULER_GATES_H
#define SCHEDULER_GATES_H

#include "scheduler/state.h"

/* The time before which the node must not run; 0: none. */
uint64_t gates_eligible_at(const scheduler *s, const node *n);
/* Which gate is closed longest at `now`; HD_WHY_NOT_RUNS: none is. */
hd_why_not gates_reason(const scheduler *s, const node *n, uint64_t now);

/* Brings the eligible bit and the timer in line with the fields. */
void gates_apply(scheduler *s, node_id id, uint64_t now);

/* The node was registered, was invalidated, or has run. A run that was set aside, or is owed again, has
 * not completed: no throttle counts it. `was_invalid`: before the change. */
void gates_registered(scheduler *s, node_id id);
void gates_invalidated(scheduler *s, node_id id, bool was_invalid);
void gates_ran(scheduler *s, node_id id, uint64_t now, bool completed);

/* It used up its runs in a pass without settling. */
void gates_exhausted(scheduler *s, node_id id, uint64_t now);
/* A run of the node was suspended or had to wait, and its causes led back to the node (runner/rounds.c). And whether
 * that has happened, since the node last settled, as often as a node may run in a pass. */
void gates_went_round(scheduler *s, node_id id);
bool gates_is_round_too_often(const scheduler *s, const node *n);
/* It settled: no backoff any more. */
void gates_settled(scheduler *s, node_id id);
/* Whether it did not settle, or overwrites another writer and is overwritten, and has not ended clean since;
 * and whether its backoff has grown to BACKOFF_MAX_MS. */
bool gates_is_unsettled(const scheduler *s, const node *n);
bool gates_backoff_is_full(const scheduler *s, const node *n);
/* Whether something that it reads has changed since the pass that exhausted it, and after revision `since`.
 * Then its backoff begins anew. */
bool gates_is_stirred(const scheduler *s, const node *n, uint64_t since);

/* The node's run is made again although its inputs did not change: debounce and throttle do not delay it,
 * the other gates do. */
void gates_release(scheduler *s, node_id id);
/* The same because a commit was refused, or (`failed`) a run failed for now: the first retry is made at
 * once, each further one in a row after a longer delay; the delay is longer after failures. */
void gates_retry(scheduler *s, node_id id, bool failed);
/* A commit was accepted: the next refusal is the first again. */
void gates_accepted(scheduler *s, node_id id);
/* Its commit was refused for good: no retry is due. But other nodes whose commits are refused as well may make the node
 * run again. So this refusal, too, is counted among those in a row, and many in a row delay the next run. */
void gates_refused(scheduler *s, node_id id);
/* Whether idle and sync wait for the node's retry: they do for the first RETRIES_HELD in a row. */
bool gates_retry_holds(const cold *c);
/* Whether the node's commit was refused, and its readers wait for the retry: its result was withdrawn, and the value
 * that is visible in its place does not fit the other values that they read. Like idle, they wait for the first
 * RETRIES_HELD retries in a row. */
bool gates_is_refused(const scheduler *s, const node *n);
/* The node reads what the refused node computes, and waits as long as that one. */
void gates_wait_with(scheduler *s, node_id id, const cold *refused);
/* The node waits, at most `until` then, for the result of the process that derives for the space, or for a node
 * upstream that waits so. False: there is no memory for that, and it does not wait. */
bool gates_await_lead(scheduler *s, node_id id, uint64_t until);
/* Whether the node waits so. */
static inline bool gates_is_led(const scheduler *s, const node *n) {
    const cold *c = s->led.count ? cold_of(s, n) : NULL;
    return c && c->gate.lead_at;
}
/* If something has happened that may end such a wait, all nodes that wait are eligible again: the sweep asks again for
 * each of them whether it has to wait. */
void gates_release_led(scheduler *s, uint64_t now);

/* How long to wait before the nth retry: 0.8, 1.6, 3.1, ... ms up to a second, less a random part of up to a
 * quarter, so that two writers that collided do not collide again. n > 0. */
uint64_t gates_delay_ns(const scheduler *s, uint32_t n);

/* Whether the debounce has been put off for longer than ten of its windows, and ten seconds, because what the
 * node reads keeps changing. */
bool gates_is_put_off(const gate *g);
/* Whether an event that has waited so long goes on without a debounced or throttled node that is invalid: the node
 * is put off so; or it was invalid again soon after each of its last ten runs, and the event has waited for as many of
 * its windows. */
bool gates_goes_round(const gate *g, uint64_t waited_ns);

/* Names of nodes for a message: "a", "b" and 3 more. */
void gates_print_names(const scheduler *s, const node_id *ids, uint32_t count, char *out,
                       size_t size);
/* It overwrote, at the place that triggered it, what another writer had written. */
void gates_echoed(scheduler *s, node_id id, uint64_t now);
/* Its run overwrote nothing of another writer's: the count of echoes begins anew. */
void gates_converged(scheduler *s, node_id id);
/* Another runtime has written over an output of the node, which was clean. If that happens again right after the run
 * that puts it right, the two do not agree: an echo. */
void gates_overwritten(scheduler *s, node_id id);
/* Whether the run that is being concluded is the one that puts it right. */
bool gates_is_mending(const scheduler *s, node_id id);
/* The node's run had no memory: it waits, invalid, until gates_feed makes all such nodes eligible again. */
void gates_starve(scheduler *s, node_id id);
void gates_feed(scheduler *s);

/* Begins a hold for the nodes of a name and those below them (NULL: for all), for `ms` (0: HOLD_MS); ends
 * it. HD_NOMEM: nothing changed. */
hd_status gates_begin_hold(scheduler *s, const char *name, uint32_t ms, uint64_t *out);
void gates_end_hold(scheduler *s, uint64_t hold_id);
/* A node is being registered: holds that began before apply to it. HD_NOMEM. */
hd_status gates_stage(scheduler *s, node_id id);

void gates_fini(scheduler *s);

hd_status gates_set_debounce(scheduler *s, node_id id, uint32_t ms);
hd_status gates_set_throttle(scheduler *s, node_id id, uint32_t ms);
/* Whether the effect's next run is timed, for its automatic debounce: the third, each 64th, and those that follow a
 * timed run that was not fast. The first run often does more than later ones; many effects run no more than twice, and
 * two readings of the clock take longer than a plain run. */
bool gates_times_next(const node *n);
/* Policy: an effect that is slow on average gets a debounce (8.2). Called after a run that gates_times_next has chosen.
 * From the third on, runs that were not timed count as runs that took no time: the timed ones around them were fast. */
void gates_timed(scheduler *s, node_id id, uint64_t took_ns);

/* Makes every node eligible whose time has come. */
void gates_wake(scheduler *s, uint64_t now);
/* When the next one may run; UINT64_MAX: none is waiting. */
uint64_t gates_next(const scheduler *s);

#endif
