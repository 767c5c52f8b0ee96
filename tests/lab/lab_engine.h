/* lab_engine.h -- what tests of workflows look at inside an engine, where no public function shows it. */
#ifndef HEDDLE_LAB_ENGINE_H
#define HEDDLE_LAB_ENGINE_H

#include <heddle/workflow.h>

/* Commits of the engine that are under way now. */
uint32_t lab_engine_waits(const hd_engine *e);
/* Asserts that the engine's lists of steps and workers agree. */
void lab_engine_check(const hd_engine *e);

#endif
