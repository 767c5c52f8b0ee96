/* convert.h -- values of the store as Python objects, and back, without a text in between.
 *
 * Two forms. *Plain* is what cells hold: None, bool, int, float, str, bytes, list, dict with str keys, Link. A tuple is
 * written as a list; models and dataclasses are what the hook `plain` makes of them.
 *
 * *Tagged* is what workflows hold (docs/EXPRESSIONS.md, Encoding): every value keeps its type. None, bool, int, float,
 * str, bytes, list, dict, tuple and set are converted here. Any other object is given to the hook `encode`, which
 * returns (tag, head, body): the object is {tag: head, **body}. What has a tag that is not known here is given to the
 * hook `decode` as (tag, head, body). */
#ifndef HEDDLE_PYTHON_CONVERT_H
#define HEDDLE_PYTHON_CONVERT_H

#include "ext.h"

typedef enum form { PLAIN, TAGGED } form;

/* A new reference; NULL: exception set. Absent reads as None. */
PyObject *to_python(runtime_object *self, hd_value v, form how);
/* A value of the pool; failed: exception set. What cannot cross is a TypeError that names the place in the value. */
hd_value from_python(runtime_object *self, hd_pool *pool, PyObject *from, form how);

#endif
