/* spec.h -- what every test of the specification begins with: a fresh lab, `l`.
 *
 * A test is a sentence; its comment carries the number of its line in the conformance list. */
#ifndef HEDDLE_SPEC_H
#define HEDDLE_SPEC_H

#include "lab_sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static lab *l;

static int spec_open(void **state) {
    l = lab_start();
    return 0;
}
static int spec_close(void **state) {
    lab_close(l);
    return 0;
}

#define S(test) cmocka_unit_test_setup_teardown(test, spec_open, spec_close)

/* ---- negative controls: a test proves nothing if it also passes without what it is about */

static inline bool spec_succeeds(struct CMUnitTest test) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(0);
        _exit(_cmocka_run_group_tests("control", &test, 1, NULL, NULL) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The test holds, and no longer without the part named (LEAVE_OUT_* of base/sabotage.h). */
static inline void spec_must_notice(unsigned what, struct CMUnitTest test) {
    if (!lab_leave_out(0)) skip();
    assert_true(spec_succeeds(test));
    lab_leave_out(what);
    bool unnoticed = spec_succeeds(test);
    lab_leave_out(0);
    assert_false(unnoticed);
}

#endif
