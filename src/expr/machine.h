/* machine.h -- evaluating code.
 *
 * One machine per world. machine_eval() runs a piece of code on a frame; generators and functions that
 * are values (keys of sorts) run nested on the same stack, each in its own part of the code, so the depth
 * of nesting in C is that of the source. Between evaluations the machine is empty: everything that
 * lives on is in frames and objects. */
#ifndef EXPR_MACHINE_H
#define EXPR_MACHINE_H

#include "expr/code.h"

typedef struct machine machine;

hd_status machine_open(world *w, machine **out);
void machine_close(machine *m);

typedef enum outcome {
    OUTCOME_VALUE,   /* *out is the value */
    OUTCOME_RAISED,  /* *out is the exception */
    OUTCOME_STOPPED, /* w->status says why: no memory, an object could not be loaded */
} outcome;

/* Frees what the evaluation before left over, and evaluates. *out lives until the next evaluation or
 * world_sweep(), unless something refers to it. */
outcome machine_eval(machine *m, code *c, frame *f, ev *out);

/* Counters since the machine was opened: which instructions ran. For the tests' coverage. */
const uint64_t *machine_counts(const machine *m);

#endif
