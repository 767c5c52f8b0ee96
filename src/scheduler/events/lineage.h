/* lineage.h -- what depends on whether a transaction commits.
 *
 * Events that a transaction sends, and what it launches, may begin before its commit is confirmed. If it is
 * refused they are cancelled and stopped. A lineage is the record of one attempt at such a transaction:
 *
 *     OPEN  --submitted-->  PENDING  --verdict-->  COMMITTED   stops are dropped, events go on
 *       |                       +-------------->   FAILED      events are cancelled, stops called
 *       +--aborted, nothing to submit--> FAILED, COMMITTED
 *
 * A retry is another attempt, with a lineage of its own. Spec 7.6, I10. */
#ifndef SCHEDULER_LINEAGE_H
#define SCHEDULER_LINEAGE_H

#include "base/list.h"
#include "store/runtime.h"
#include "store/tx.h"
#include <heddle/event.h>

/* ---- Cancel groups: things to be stopped together */

typedef struct stop {
    hd_stop_fn fn;
    void *ctx;
} stop;

typedef struct cancel_group {
    VEC(stop) stops;
    bool cancelled;
} cancel_group;

/* Added to a group that is cancelled already, it is stopped at once. HD_NOMEM: it is not in the group. */
hd_status cancel_group_add(const hd_env *env, cancel_group *g, hd_stop_fn fn, void *ctx);
/* Calls each stop function once, the latest first, also after a failure. Returns how many failed; *first is
 * the first failure. */
uint32_t cancel_group_cancel(const hd_env *env, cancel_group *g, hd_status *first);
/* Forgets them. */
void cancel_group_drop(const hd_env *env, cancel_group *g);

/* ---- Lineages */

typedef enum lineage_state {
    LINEAGE_OPEN,    /* its transaction is still open */
    LINEAGE_PENDING, /* submitted as local_seq */
    LINEAGE_COMMITTED,
    LINEAGE_FAILED
} lineage_state;

typedef struct after_commit {
    hd_verdict_fn fn;
    void *ctx;
} after_commit;

typedef struct lineage {
    list_node link; /* in lineages.all */
    lineage_state state;
    uint64_t attempt;   /* counted per runtime */
    uint64_t local_seq; /* of its commit, while PENDING or COMMITTED; 0: it needed none */
    uint32_t sends;     /* events sent so far: their number in the id */
    uint32_t refs;      /* one until it is settled, and one for each event */
    list events;        /* event.by_origin, of all that are not over */
    cancel_group stops;
    VEC(after_commit) afters;
    VEC(struct key *) spaces; /* that its commit writes; borrowed from the replica's homes */
} lineage;

/* Called for an event of a failed lineage: the callee takes it off lineage.events and unrefs the lineage. */
typedef void (*lineage_cancel_fn)(void *ctx, list_node *by_origin);

typedef struct lineages {
    const hd_env *env;
    list all;
    uint64_t attempts;
    lineage_cancel_fn cancel;
    void *ctx;
} lineages;

void lineages_init(lineages *ls, const hd_env *env, lineage_cancel_fn cancel, void *ctx);
void lineages_fini(lineages *ls);

/* The lineage of an open transaction, made at first use. NULL: no memory. */
lineage *lineage_of(lineages *ls, hd_tx *tx);
static inline void lineage_ref(lineage *l) {
    assert(l->refs > 0);
    l->refs++;
}
void lineage_unref(lineages *ls, lineage *l);

/* The replica tells that the transaction was submitted (HD_PENDING), or its verdict; see observer.lineage.
 * A second verdict is ignored. */
void lineage_told(lineages *ls, lineage *l, const replica *r, const commit *c, hd_status status);

/* Asserts, between passes: references, events and states agree. */
void lineages_check(const lineages *ls);

/* Whether its commit writes into this space: then the store can check, when it admits a commit there, that
 * this one was accepted. */
bool lineage_in_space(const lineage *l, const struct key *space);

#endif
