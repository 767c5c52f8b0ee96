/* workflow_why.h -- why and why-not about instances of workflows and their steps. */
#ifndef CLI_WORKFLOW_WHY_H
#define CLI_WORKFLOW_WHY_H

#include "cli/workflow.h"

/* Whether the second operand names an instance ("name/key", also as "workflow/name/key" and "space/workflow/name/key")
 * or a step of one ("name/key#node"): then it is answered, and *status is the exit status. The same if a store on a
 * server cannot be opened, which has been said then, and no socket of a program is named. */
bool why_instance(cli *c, int *status);
/* No program knows the second operand. If it has the form of an instance's name and begins with no space of the store:
 * says what is missing and what is near; *status is the exit status. `only_near`: only if something is near. */
bool why_unknown(cli *c, bool only_near, int *status);
/* The open steps of an instance as why-not --json has them, which asks the program that runs it. Absent: it is over. */
hd_value why_steps(const flow *f, hd_value document);

#endif
