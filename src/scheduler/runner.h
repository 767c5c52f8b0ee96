/* runner.h -- one run: one transaction.
 *
 *     clean -> body -> read delta -> commit -> (verdict, later)
 *
 * The status is set clean before the body: a change that arrives meanwhile must leave the node invalid
 * again; our own writes are filtered by origin, not by timing (P5). Seed 7.3. */
#ifndef SCHEDULER_RUNNER_H
#define SCHEDULER_RUNNER_H

#include "scheduler/gates.h"
#include "scheduler/invalidation.h"
#include "scheduler/persistence.h"
#include "scheduler/registry.h"

hd_status runner_init(scheduler *s);
void runner_fini(scheduler *s);

/* Runs the node, which is runnable. It may be gone afterwards. */
void runner_run_node(scheduler *s, node_id id);

/* Async: takes the running transaction along; and its end. */
hd_status runner_suspend(scheduler *s, hd_tx *tx, hd_run **out);
void runner_resume(hd_run *run, hd_status status);

/* Tells the error handlers. `message` NULL: the status' own text. */
void runner_report(scheduler *s, node_id id, hd_status status, const char *message);

#endif
