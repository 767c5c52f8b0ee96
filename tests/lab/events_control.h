/* events_control.h -- negative controls of events: a test must fail without the thing it is about.
 * Include after cmocka.h. */
#ifndef HEDDLE_EVENTS_CONTROL_H
#define HEDDLE_EVENTS_CONTROL_H

#include "lab_events.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* As in the scheduler's events_state.h. */
enum {
    EVENTS_WITHOUT_GATE = 1,
    EVENTS_WITHOUT_ORIGIN = 2,
    EVENTS_WITHOUT_RECEIPT = 4,
    EVENTS_WITHOUT_ORDER = 8
};

/* In a process of its own, which ends without cleaning up after itself. */
static inline bool control_succeeds(struct CMUnitTest test) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(0);
        alarm(60); /* one that waits for ever has missed what was left out */
        _exit(_cmocka_run_group_tests("control", &test, 1, NULL, NULL) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void must_miss(unsigned what, struct CMUnitTest test) {
#ifdef NDEBUG
    (void)what, (void)test;
    skip();
#else
    assert_true(control_succeeds(test));
    lab_events_without = what;
    bool unnoticed = control_succeeds(test);
    lab_events_without = 0;
    assert_false(unnoticed);
#endif
}

#endif
