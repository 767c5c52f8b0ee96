/* workflow_value.h -- values of an instance as people want to see them. */
#ifndef CLI_WORKFLOW_VALUE_H
#define CLI_WORKFLOW_VALUE_H

#include <heddle/value.h>

/* The value with objects in place of their numbers, tuples and sets as arrays, and exceptions in a few words.
 * `document` is the instance's. */
hd_value flow_readable(hd_pool *pool, hd_value v, hd_value document);
/* The variables that the program's text names, without what the compiler keeps beside them. */
hd_value flow_variables(hd_pool *pool, hd_value document);

#endif
