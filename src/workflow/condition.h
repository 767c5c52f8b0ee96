/* condition.h -- the condition of a step that waits for a cell, looked at while the workflow is written. */
#ifndef WORKFLOW_CONDITION_H
#define WORKFLOW_CONDITION_H

#include <heddle/value.h>

/* Whether evaluation of the expression can find its names: `value`, and the keys of the object `names`. *unknown is the
 * first that it cannot, as a text of the pool; else absent. HD_NOMEM. */
hd_status condition_check(hd_pool *pool, hd_value form, hd_value names, hd_value *unknown);

#endif
