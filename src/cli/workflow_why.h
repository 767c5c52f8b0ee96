/* workflow_why.h -- why and why-not about instances of workflows and their steps. */
#ifndef CLI_WORKFLOW_WHY_H
#define CLI_WORKFLOW_WHY_H

#include "cli/command.h"

/* Whether the second operand names an instance ("name/key", also as "workflow/name/key" and "space/workflow/name/key") or a
 * step of one ("name/key#node"): then it is answered, and *status is the exit status. */
bool why_instance(cli *c, int *status);

#endif
