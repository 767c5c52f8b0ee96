/* workflow_await.h -- waiting for an instance, with its progress. */
#ifndef CLI_WORKFLOW_AWAIT_H
#define CLI_WORKFLOW_AWAIT_H

#include "cli/workflow.h"

/* Waits until the instance is over, or for so many seconds (0: without end), and prints its result. The tree of its
 * steps is drawn on a terminal; elsewhere, unless quiet, each step is a line on stderr. CLI_CONFLICT: it failed or was
 * cancelled. */
int await_instance(flow *f, const char *id, double seconds, bool quiet);
/* --timeout as a number of seconds. */
int await_timeout(cli *c, double *out);

#define OPTIONS_AWAIT                                                                              \
    { "timeout", "SPAN", "give up after so long (90s, 1h30m), with exit status 6" }, {             \
        "quiet", NULL, "no progress"                                                               \
    }

#endif
