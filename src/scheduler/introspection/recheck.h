/* recheck.h -- is a computation idempotent? Run it again and compare.
 *
 * Right after its run a computation is run once more on what the run left behind, in a transaction
 * that is not committed. If it would change anything, or leaves out a document that the run wrote, it
 * does not do the same twice on the same inputs. Spec 4.2. */
#ifndef SCHEDULER_RECHECK_H
#define SCHEDULER_RECHECK_H

#include "scheduler/state.h"

typedef struct recheck {
    hd_violation_fn fn; /* NULL: off */
    void *ctx;
    VEC(hd_node) reported; /* each node is told of once */
    VEC(hd_written) first, second;
} recheck;

void recheck_fini(recheck *k, const hd_env *env);

/* After a run that ended with `status`; `tx` still holds what it wrote. */
void recheck_run(recheck *k, scheduler *s, node_id id, const hd_tx *tx, hd_status status);
/* Now, whether or not it is switched on. HD_OK, HD_MISMATCH, HD_STALE, or how the body failed. */
hd_status recheck_node(scheduler *s, node_id id);

#endif
