/* test_registration.c -- area A: registration, kinds, removal. */
#include "lab_sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <math.h>
#include <cmocka.h>

static double parity(const double *in) { return fmod(in[0], 2); }

static void smoke(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 3);
    lab_compute(l, "parity", "n", parity);
    lab_effect(l, "show", "parity");
    lab_settle(l);
    assert_ran(l, "parity show");
    assert_seen(l, "show", "1");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "parity");
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smoke),
    };
    LAB_EVERYWHERE(tests);
}
