/* test_lease.c -- store/lease.h: a read that fails says nothing of who holds a lease. */
#include "lab.h"

#include "store/lease.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static hd_memory *memory;
static hd_runtime *first, *second;
static lease of_first, of_second;
static int told;

static void on_taken(bool held, void *ctx) { told += held ? 1 : -1; }

static void open_both(lab_env *env) {
    hd_options options = { .env = lab_env_of(env) };
    assert_int_equal(hd_memory_open(options.env, &memory), HD_OK);
    options.memory = memory;
    assert_int_equal(hd_open(NULL, &options, &first, NULL), HD_OK);
    assert_int_equal(hd_open(NULL, &options, &second, NULL), HD_OK);
    assert_int_equal(lease_open(&of_first, first, "main", "job", on_taken, NULL), HD_OK);
    assert_int_equal(lease_open(&of_second, second, "main", "job", on_taken, NULL), HD_OK);
    told = 0;
    assert_int_equal(lease_try(&of_first), HD_OK);
    assert_int_equal(hd_runtime_sync(first), HD_OK);
    assert_int_equal(hd_runtime_sync(second), HD_OK);
    assert_true(of_first.held);
    assert_int_equal(told, 1);
}

static void close_both(lab_env *env) {
    lease_close(&of_second);
    lease_close(&of_first);
    assert_int_equal(hd_close(second), HD_OK);
    assert_int_equal(hd_close(first), HD_OK);
    hd_memory_close(memory);
    lab_env_close(env);
}

/* A holder that cannot read the document keeps the lease, and looks again later. */
static void a_holder_that_cannot_look_keeps_it(void **state) {
    lab_env *env = lab_env_open();
    open_both(env);
    for (uint64_t nth = 1; nth < 8; nth++) {
        lab_env_fail_from(env, nth);
        lease_look(&of_first);
        bool failed = lab_env_failed(env);
        lab_env_fail_from(env, 0);
        assert_true(of_first.held);
        assert_int_equal(lease_deadline(&of_first) != UINT64_MAX, failed);
        lab_env_advance_ms(env, 600);
        lease_look_if_due(&of_first);
        assert_int_equal(lease_deadline(&of_first), UINT64_MAX);
        assert_true(of_first.held);
    }
    assert_int_equal(told, 1);
    close_both(env);
}

/* One that stands by and cannot read who has it does not take it. */
static void one_that_cannot_look_does_not_take_it(void **state) {
    lab_env *env = lab_env_open();
    open_both(env);
    for (uint64_t nth = 1; nth < 12; nth++) {
        lab_env_fail_from(env, nth);
        (void)lease_try(&of_second);
        lab_env_fail_from(env, 0);
        assert_false(of_second.asked);
        assert_int_equal(hd_runtime_sync(second), HD_OK);
        assert_false(of_second.held);
    }
    assert_int_equal(hd_runtime_sync(first), HD_OK);
    lease_look(&of_first);
    assert_true(of_first.held);
    close_both(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_holder_that_cannot_look_keeps_it),
        cmocka_unit_test(one_that_cannot_look_does_not_take_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
