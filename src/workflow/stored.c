/* stored.c -- who wants to hear that what was said to the engine is on disk.
 *
 * A start, a signal or a pause is a commit of the runtime, and in the active engine also part of the engine's next
 * commit. A waiter notes the last commit of the runtime, and the number of the engine's next one. */
#include "workflow/engine.h"

#include "base/env.h"

typedef struct stored_waiter {
    list_node link; /* in engine.stored */
    uint64_t local; /* replica.settled reaches it: the commits of the runtime have their verdicts */
    uint64_t commit;  /* engine.commits_done reaches it; 0: the engine was not active */
    uint64_t keyed;   /* the first so many starts with a key are stored: start.c */
    uint64_t unknown; /* replica.unknown when it began to wait */
    hd_workflow_stored_fn fn;
    void *ctx;
} stored_waiter;

static bool is_stored(const hd_engine *e, const stored_waiter *w) {
    if (e->rt->r.settled < w->local || start_is_pending(e, w->keyed)) return false;
    return !w->commit || !e->active || flight_is_stored(e, w->commit);
}

/* What was said later is stored later: the first tells for all. */
static stored_waiter *first_due(const hd_engine *e) {
    if (list_empty(&e->stored)) return NULL;
    stored_waiter *w = LIST_ENTRY(list_first(&e->stored), stored_waiter, link);
    return is_stored(e, w) ? w : NULL;
}

bool stored_is_due(const hd_engine *e) { return first_due(e) != NULL; }

/* What the functions say to the engine is not stored yet. */
void stored_tell(hd_engine *e) {
    for (stored_waiter *w; (w = first_due(e));) {
        hd_workflow_stored_fn fn = w->fn;
        void *ctx = w->ctx;
        hd_status status = e->rt->r.unknown == w->unknown ? HD_OK : HD_NO_VERDICT;
        list_remove(&w->link);
        env_free(e->env, w, sizeof *w);
        fn(status, ctx);
    }
}

void stored_fini(hd_engine *e) {
    LIST_FOR_SAFE (n, &e->stored) {
        list_remove(n);
        env_free(e->env, LIST_ENTRY(n, stored_waiter, link), sizeof(stored_waiter));
    }
}

hd_status hd_workflow_stored(hd_engine *e, hd_workflow_stored_fn fn, void *ctx) {
    if (!fn) return runtime_fail(e->rt, HD_USAGE, "hd_workflow_stored: no function is given");
    stored_waiter *w = env_new0(e->env, sizeof *w);
    if (!w) return HD_NOMEM;
    *w = (stored_waiter){ .local = e->rt->r.next_local - 1,
                          .commit = e->active ? e->commits_begun + 1 : 0,
                          .keyed = e->keyed_count,
                          .unknown = e->rt->r.unknown,
                          .fn = fn,
                          .ctx = ctx };
    list_push_back(&e->stored, &w->link);
    return HD_OK;
}
