/* walk.h -- from a finished step to the next ones that have to wait. */
#ifndef WORKFLOW_WALK_H
#define WORKFLOW_WALK_H

#include "workflow/instance.h"

/* Each of these begins something and walks on until every strand waits or the instance is over. HD_OK, or
 * HD_NOMEM and the like: the instance in memory is then of no use, and must be loaded again. Exceptions of
 * the workflow are no failures: they are handled here, or end the instance. */

/* The first walk of an instance: the inputs are the parameters of the first function. */
hd_status walk_begin(instance *in, const ev *inputs);
/* A strand begins at this node of the first function, whose variables are there. */
hd_status walk_at(instance *in, uint32_t node);
/* The step of a strand that waits has this result, or has raised this exception. */
hd_status walk_result(instance *in, strand *s, ev result);
hd_status walk_raise(instance *in, strand *s, ev exception);
/* CancelledError is raised in every strand that waits. */
hd_status walk_cancel(instance *in);

/* ---- for load.c */

/* Binds the element of a branch that is loaded, as when it began. */
hd_status walk_bind_element(fan *f, activation *a);
/* The arguments of a step that is loaded, from its variables. */
hd_status walk_compute_args(strand *s);

#endif
