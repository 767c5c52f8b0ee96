/* lab_recheck.h -- computations must do the same twice: the idempotency validator.
 *
 *     lab_recheck *k = lab_recheck_start(l);           every runtime that is open
 *     lab_expect_non_idempotent(k, "dice");            this one may not, and must not, pass
 *     ...
 *     lab_recheck_end(k);                              anybody else who did not: the test ends
 *
 * Bodies really run twice, and stand twice in the log of what ran. */
#ifndef HEDDLE_LAB_RECHECK_H
#define HEDDLE_LAB_RECHECK_H

#include "lab_store.h"
#include <heddle/scheduler.h>

typedef struct lab_recheck lab_recheck;

lab_recheck *lab_recheck_start(lab *l);
/* A runtime that was opened since. */
void lab_recheck_also(lab_recheck *k, lab_runtime *r);
/* Names, separated by spaces. */
void lab_expect_non_idempotent(lab_recheck *k, const char *names);
/* What was found so far: "dice wrote dice=3, then dice=5; ...". */
const char *lab_violations(const lab_recheck *k);
/* How often the node was told of. */
size_t lab_violation_count(const lab_recheck *k, const char *name);
/* Switches it off. Says what was found and not expected, or expected and not found, and aborts. */
void lab_recheck_end(lab_recheck *k);

#endif
