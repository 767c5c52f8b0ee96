/* heddle.h -- the whole of heddle. See heddle/value.h first. */
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
