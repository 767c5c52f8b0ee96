/* heddle.h -- the whole of heddle. Read heddle/base.h first, then the others in the order of this list.
 * heddle/lab.h, for tests, is a library of its own and is not included here. */
#ifndef HEDDLE_H
#define HEDDLE_H
#include <heddle/base.h>
#include <heddle/value.h>
#include <heddle/store.h>
#include <heddle/scheduler.h>
#include <heddle/event.h>
#include <heddle/pattern.h>
#include <heddle/introspect.h>
#include <heddle/workflow.h>
#include <heddle/workflow_build.h>
#include <heddle/join.h>
#include <heddle/inspect.h>
#endif
