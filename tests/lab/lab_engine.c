/* lab_engine.c -- see lab_engine.h. */
#include "lab_engine.h"

#include "workflow/engine.h"

uint32_t lab_engine_waits(const hd_engine *e) { return e->waits; }
void lab_engine_check(const hd_engine *e) { task_check(e); }
