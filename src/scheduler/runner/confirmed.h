/* confirmed.h -- sinks that are shown a value only when it can no longer be lost or taken back.
 *
 * A run shows a sink what is visible, and that may follow from commits of this runtime that have no verdict
 * yet; and what a computation has written is in no commit until it is sealed. A sink for confirmed values keeps what
 * its run has read. Behind the runs outputs are sealed, and the number of the last commit is kept; when every commit
 * up to it has been accepted, the value is shown. After a refusal the values that wait may follow from what was
 * refused: the cell is read anew once the runtime is idle.
 *
 *     run --> sealed --> waits for commits --+-> all accepted, or none on its way -> fn
 *                                            +-> one refused -> idle, read anew ---> waits again */
#ifndef SCHEDULER_RUNNER_CONFIRMED_H
#define SCHEDULER_RUNNER_CONFIRMED_H

#include "scheduler/state.h"

typedef struct confirmed {
    hd_cell cell;
    hd_sink_fn fn;
    void *ctx;

    list_node link; /* in scheduler.unconfirmed, while a value waits */
    hd_value next;  /* owned: what waits */
    bool
        unsealed; /* `next` was read in this pump: it may be of an output that is in no commit yet */
    uint64_t after;    /* the local seq of the last commit when it was read and sealed */
    uint64_t refusals; /* how many commits had been refused by then */
    hd_value shown;    /* owned: what fn was called with last */
    bool told;         /* fn has been called */
    /* The sink is of a change group, whose own writes it is not shown: so its watcher may have another value than
     * `shown`. Set by the registration. */
    bool edits;
} confirmed;

/* A run has read `v` (borrowed): confirmed_tell shows it. */
void confirmed_show(struct scheduler *s, confirmed *k, hd_value v);
/* The sink is gone: what waits is never shown. */
void confirmed_fini(confirmed *k);

/* Between runs: shows what can be shown. `idle`: no node is going to run. */
void confirmed_tell(struct scheduler *s, bool idle);
/* Whether confirmed_tell has something to do. */
bool confirmed_is_due(const struct scheduler *s, bool idle);

#endif
