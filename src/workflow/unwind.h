/* unwind.h -- exceptions and cancellation. */
#ifndef WORKFLOW_UNWIND_H
#define WORKFLOW_UNWIND_H

#include "expr/raise.h"
#include "workflow/instance.h"

/* Raises the exception in the strand: it goes on at the HANDLER that takes it, or its activation ends and
 * the CALL above raises it, and so on; what leaves a branch is the branch's outcome, and what leaves the
 * first activation ends the instance. False: no memory. */
bool unwind(strand *s, ev exception);
/* The same with what a function of the evaluator has raised. False also if it could not do its work (the
 * world's status). */
bool unwind_pending(strand *s);
/* Raises a new exception of this class. */
bool unwind_new(strand *s, uint32_t class_, const char *message);
/* A branch has failed: what its BARRIER does about it before the others have ended. */
bool unwind_branch_failed(fan *f, const plan_node *barrier, uint32_t index);
/* Mode "first": a branch is the first that has ended. The others are cancelled. */
bool unwind_branch_first(fan *f, uint32_t index);
/* Mode "first": if the first branch is code of the strand itself, a block with a time limit (the second branch), notes
 * how often its task has been cancelled. */
void unwind_limit_begins(fan *f);
/* Such a block has ended after its limit. If its task was cancelled otherwise, too, since the block began, the limit
 * counts as cancelled. */
bool unwind_limit_taken_back(fan *f);
/* Raises CancelledError in every strand that the first function waits for. */
bool unwind_cancel(instance *in);
/* When the first function has ended: raises CancelledError, once, in the strands that are left, as asyncio.run does in
 * tasks. */
bool unwind_leftovers(instance *in);
/* Ends the instance if no strand is left, or all that are left wait for branches. Its first function has ended then, or
 * it has stalled (W3). */
void unwind_if_over(instance *in);

/* CancelledError without arguments. ev_fail(): no memory. */
static inline ev new_cancelled_error(world *w) {
    return exc_new(w, CLASS_CancelledError, w->empty_tuple);
}
static inline bool is_cancelled_error(const world *w, ev exception) {
    assert(exception.kind == EV_EXC);
    return class_is(w->classes, exception.o->class_, CLASS_CancelledError);
}

#endif
