/* settle.h -- the pass: run what is runnable, in order, until nothing is. */
#ifndef SCHEDULER_SETTLE_H
#define SCHEDULER_SETTLE_H

#include "scheduler/events.h"
#include "scheduler/gates.h"
#include "scheduler/registry.h"
#include "scheduler/runner.h"

/* One pass. HD_PENDING: it gave way to the pump, there is more. */
hd_status settle_pass(scheduler *s);

/* Whether some node is runnable now; and whether a pass would find something to run. */
bool settle_is_runnable(scheduler *s);
bool settle_has_work(scheduler *s);

/* Whether deferred work should still be waited for (8.4): first results behind a debounce, retries, and up
 * to IDLE_HOLDS_MAX backoffs of a wave that does not settle. */
bool settle_holds_idle(const scheduler *s);
/* The same for sync: retries of what was refused. */
bool settle_holds_sync(const scheduler *s);
/* How many live nodes wait, invalid, because they do not settle, quarrel with another writer, or are
 * refused again and again. O(nodes that wait for a time). */
uint32_t settle_unsettled(const scheduler *s);
/* Idle was reached: the next episode starts with full budgets. */
static inline void settle_end_episode(scheduler *s) {
    s->episode++;
    s->idle_rev = s->r->rev;
    s->deferred_passes = 0;
}

void settle_fini(scheduler *s);

/* Asserts what must hold between passes: the invariants, and graph_check. O(everything). */
void settle_check(const scheduler *s);

#endif
