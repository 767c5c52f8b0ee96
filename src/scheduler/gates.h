/* gates.h -- when may a node run?
 *
 * Debounce, throttle, backoff, echo and holds are one idea: a time before which a node must not run.
 * Each policy writes one field; gates_eligible_at() is their maximum; nobody else compares clocks;
 * one timer waits for the earliest.
 *
 *     invalidate --> debounce_at --+
 *     run        --> throttle_at --+
 *     exhausted  --> backoff_at  --+--> max --> eligible bit, timer
 *     echo       --> echo_at     --+
 *     sync hold  --> hold_at     --+
 *
 * A gated node stays invalid: skipped, never forgotten.   Seed 8, P8, I6. */
#ifndef SCHEDULER_GATES_H
#define SCHEDULER_GATES_H

#include "scheduler/state.h"

/* The time before which the node must not run; 0: none. */
uint64_t gates_eligible_at(const scheduler *s, const node *n);
/* What holds it back at `now`. */
hd_why_not gates_reason(const scheduler *s, const node *n, uint64_t now);

/* Brings the eligible bit and the timer in line with the fields. */
void gates_apply(scheduler *s, node_id id, uint64_t now);

/* The node was registered, was invalidated, or has run. */
void gates_registered(scheduler *s, node_id id);
void gates_invalidated(scheduler *s, node_id id);
void gates_ran(scheduler *s, node_id id, uint64_t now);

/* It used up its runs in a pass without settling. */
void gates_exhausted(scheduler *s, node_id id, uint64_t now);
/* It settled: no backoff any more. */
void gates_settled(scheduler *s, node_id id);
/* A retry that the scheduler owes: past debounce and throttle, not past backoff. */
void gates_release(scheduler *s, node_id id);
/* It overwrote, at the place that triggered it, what another writer had written. */
void gates_echoed(scheduler *s, node_id id, uint64_t now);
/* Its run did not: the quarrel is over. */
void gates_converged(scheduler *s, node_id id);
/* Its run had no memory: it waits, invalid, until gates_feed gives all of them another chance. */
void gates_starve(scheduler *s, node_id id);
void gates_feed(scheduler *s);
/* Wait until `at` (0: no longer). */
void gates_hold(scheduler *s, node_id id, uint64_t at);

hd_status gates_set_debounce(scheduler *s, node_id id, uint32_t ms);
hd_status gates_set_throttle(scheduler *s, node_id id, uint32_t ms);
/* Policy: effects that are slow on average get a debounce. Called after timed runs. */
void gates_consider_auto(scheduler *s, node_id id);

/* Makes every node eligible whose time has come. */
void gates_wake(scheduler *s, uint64_t now);
/* When the next one may run; UINT64_MAX: none is waiting. */
uint64_t gates_next(const scheduler *s);

#endif
