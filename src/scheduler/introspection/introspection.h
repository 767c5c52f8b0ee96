/* introspection.h -- looking inside: stats, traces, why and why not.
 *
 *   trace       what happened last                     (trace.c)
 *   why         causes, and what a node waits for      (why.c)
 *   recheck     is a computation idempotent?           (recheck.c)
 *   diagnosis   is the runtime too busy, and why?      (diagnosis.c)
 *   kept        what nodes did that are gone           (kept.c)
 *   export      pictures of all this                   (export.c)
 *
 * Introspection observes (P10): scheduling does not depend on whether it is on. Until something is switched
 * on there is no record, and the hooks of state.h are NULL. */
#ifndef SCHEDULER_INTROSPECTION_H
#define SCHEDULER_INTROSPECTION_H

#include "scheduler/introspection/diagnosis.h"
#include "scheduler/introspection/recheck.h"
#include "scheduler/introspection/trace.h"

/* A function that is called before a node runs; the node is given by handle or by name. */
typedef struct breakpoint {
    hd_node node;
    struct key *name; /* referenced; NULL: by handle */
    hd_break_fn fn;
    void *ctx;
} breakpoint;

/* The statistics of a node that is gone. */
typedef struct kept_stats {
    struct key *name; /* of all its parents and itself: "parent/child"; referenced */
    hd_action_stats stats;
    binheap_item by_run; /* keyed by the revision of its last run */
} kept_stats;

typedef struct introspection {
    trace trace;
    recheck recheck;
    diagnosis diagnosis;
    VEC(breakpoint) breaks;

    kept_stats *kept; /* HD_KEPT_STATS of them; NULL: not switched on */
    uint32_t kept_count;
    table kept_names; /* name -> index into kept */
    binheap kept_order;
} introspection;

/* The record, made at first use. NULL: no memory. */
introspection *introspection_of(scheduler *s);
void introspection_fini(scheduler *s);
/* Sets the hooks by what is switched on. Call after every change of that. */
void introspection_attach(scheduler *s);

void introspection_info(const scheduler *s, node_id id, hd_node_info *out);
/* "parent/child", however long: in a block of *size bytes, to be freed. NULL: no memory. */
char *introspection_name(const scheduler *s, node_id id, size_t *size);
/* The same as a text of the pool. */
hd_value introspection_text(const scheduler *s, hd_pool *pool, node_id id);
/* What the node of a traced run is called: its path; "#7" if it has no name. Of a node that has ended only its own name
 * is known. */
hd_value introspection_run_name(const scheduler *s, hd_pool *pool, const hd_run_trace *run);
/* By such a name; 0: none. */
node_id introspection_find(const scheduler *s, const char *name);

/* Asserts, between pumps: rings, counts and hooks agree. */
#ifndef NDEBUG
void introspection_check(const scheduler *s);
#else
static inline void introspection_check(const scheduler *s) { (void)s; }
#endif

hd_status introspection_keep(scheduler *s, bool on);
void introspection_kept_fini(scheduler *s, introspection *in);
/* HD_NOT_FOUND: neither there nor remembered. */
hd_status introspection_stats(const scheduler *s, const char *name, hd_action_stats *out);

/* stale.c: tells the pieces of the store that have rows which do not hold; see hd_store_stale_pieces. */
hd_status stale_tell(scheduler *s, hd_stale_fn fn, void *ctx);

#endif
