/* outline.h -- the plan of a workflow on its own, for code that looks at a workflow and runs nothing: the
 * pictures (chart.h), the command, and what an instance waits for (standing.h). */
#ifndef WORKFLOW_OUTLINE_H
#define WORKFLOW_OUTLINE_H

#include "workflow/plan.h"

typedef struct outline {
    const hd_env *env;
    struct classes *classes;
    world *w;
    plan *p;
} outline;

/* Checks the IR as registration does, with the same errors. On failure `out` is all zero. */
hd_status outline_open(hd_heap *heap, hd_value ir, outline *out, hd_error *error);
void outline_close(outline *o);

/* The function that a step of an instance stands in: `place` is open_record_place of a record of "open", or
 * what "caller" or "in" of a record of "calls" or "fans" says. PLAN_NONE: the document does not say. */
uint32_t outline_function_of(const plan *p, hd_value document, hd_value place);

/* The word for what a node is called by people: the action's, signal's or function's name, else its id. */
const char *outline_label(const plan_node *n);

#endif
