/* watcher.h -- steps that end when something outside of the engine does: the seam for what joins the two schedulers.
 *
 * A watcher serves one action. It begins to watch when a step is claimed, and says task_complete or task_fail with the
 * token when there is an end; it is told when the step waits no longer, so that it can stop watching. */
#ifndef WORKFLOW_WATCHER_H
#define WORKFLOW_WATCHER_H

#include "workflow/engine.h"

typedef struct watcher_ops {
    /* `args` is good during the call. Any status but HD_OK fails the step, with the message. */
    hd_status (*begin)(uint64_t token, hd_value args, hd_error *error, void *ctx);
    /* The step has gone: cancelled, timeout. Also after task_complete and task_fail: no. */
    void (*end)(uint64_t token, void *ctx);
    void (*close)(void *ctx); /* after the last `end` */
} watcher_ops;

/* Closed with the engine. HD_NOMEM: `ctx` is not taken. */
hd_status watcher_serve(hd_engine *e, const char *action, const watcher_ops *ops, void *ctx);

#endif
