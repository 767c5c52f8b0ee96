/* workflow_past.h -- what an instance must have done to stand where it stands, and what may still come.
 *
 * The document of an instance says where it stands, not what it has done. Much of that follows from the graph: what
 * cannot be reached from there does not come any more, and a node without which there is no way there has been
 * passed. */
#ifndef CLI_WORKFLOW_PAST_H
#define CLI_WORKFLOW_PAST_H

#include "workflow/plan.h"

/* Whether every way from the ENTRY to `to` passes the end of `node`, without an exception of it. Of a node in a branch,
 * the ways through its own branch count: all branches were begun. False also without memory. */
bool past_is_done(const plan_function *f, uint32_t node, uint32_t to);
/* The same, if the node may have raised, or was left out: given up because another branch came first, or there was no
 * element. */
bool past_is_passed(const plan_function *f, uint32_t node, uint32_t to);
/* Whether `node` may run after `to`, without another visit of a loop. An instance that stands at a FAN_HEAD has begun
 * all branches: where it stands in them is told by their own open steps. */
bool past_may_come(const plan_function *f, uint32_t node, uint32_t to);
/* Whether `node` has raised an exception, if the instance stands at `to` now and has just stood at `node`: only its
 * HANDLER leads there. */
bool past_has_raised(const plan_function *f, uint32_t node, uint32_t to);

/* Whether `node` lies in the branch of that number of the FAN_HEAD. False for hd_flow_each, whose branches are all made
 * of the same nodes, and for what lies in one. */
bool past_is_in_branch(const plan_function *f, uint32_t head, uint32_t index, uint32_t node);

#endif
