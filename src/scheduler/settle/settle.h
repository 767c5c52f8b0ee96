/* settle.h -- the pass: run what is runnable, in order, until nothing is. */
#ifndef SCHEDULER_SETTLE_H
#define SCHEDULER_SETTLE_H

#include "scheduler/events/events.h"
#include "scheduler/gates/gates.h"
#include "scheduler/registry.h"
#include "scheduler/runner/runner.h"

/* One pass. HD_PENDING: there is more to do, in another pass. */
hd_status settle_pass(scheduler *s);

/* Looks whether a pass would find something to run. Lowers bits of the order's summary that were raised in vain, and
 * changes nothing else. */
bool settle_find_work(scheduler *s);

/* Whether nodes that wait for a time keep the runtime from being idle (8.4): first runs behind a debounce or
 * a hold, results of another process, retries, and up to IDLE_HOLDS_MAX backoffs of a node that does not settle. */
bool settle_holds_idle(const scheduler *s);
/* Whether they keep a sync waiting: retries of runs that were refused or failed for now. */
bool settle_holds_sync(const scheduler *s);
/* How many live nodes wait, invalid, because they do not settle, quarrel with another writer, or are
 * refused again and again. O(nodes that wait for a time). */
uint32_t settle_unsettled(const scheduler *s);
/* The runtime is idle: from now on idle waits for IDLE_HOLDS_MAX backoffs of each node again. */
static inline void settle_end_episode(scheduler *s) {
    s->episode++;
    s->idle_rev = s->r->rev;
    s->deferred_passes = 0;
}

void settle_fini(scheduler *s);

/* Asserts what must hold between passes; see check.c. Above CHECKED_NODES nodes it leaves out what
 * takes more than O(nodes + reads), and checks one pass in so many. Nothing in release builds. */
#define CHECKED_NODES 512
#ifndef NDEBUG
void settle_check(const scheduler *s);
#else
static inline void settle_check(const scheduler *s) { (void)s; }
#endif

#endif
