/* test_sqlite_tail.c -- where in the log each document changed since the checkpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab.h"
#include "store/log/tail.h"
#include <string.h>

static lab_env *env;
static tail t;

static int set_up(void **state) {
    env = lab_env_open();
    tail_init(&t, lab_env_of(env));
    return 0;
}
static int tear_down(void **state) {
    tail_check(&t);
    tail_fini(&t);
    lab_env_close(env);
    return 0;
}

static doc_name named(const char *id) {
    return (doc_name){ .space = "main",
                       .space_length = 4,
                       .instance = "",
                       .id = id,
                       .id_length = (uint32_t)strlen(id),
                       .scope = HD_SCOPE_SPACE };
}

static void rows_at_or_below_the_checkpoint_are_let_go(void **state) {
    doc_name a = named("a"), b = named("b");
    assert_int_equal(tail_add(&t, &a, 1, 11), HD_OK);
    assert_int_equal(tail_add(&t, &b, 2, 12), HD_OK);
    assert_int_equal(tail_add(&t, &a, 3, 13), HD_OK);
    tail_trim(&t, 2);
    assert_null(tail_find(&t, &b));
    assert_int_equal(tail_find(&t, &a)->at.count, 1);
    assert_int_equal(tail_find(&t, &a)->at.items[0].seq, 13);
}

/* Whoever looks through the tail asks each document for its last change. */
static void without_memory_no_document_is_left_that_never_changed(void **state) {
    doc_name a = named("a");
    hd_status status = HD_NOMEM;
    for (uint64_t nth = 1; status; nth++) {
        tail_fini(&t);
        tail_init(&t, lab_env_of(env));
        lab_env_fail_at(env, nth);
        status = tail_add(&t, &a, 1, 1);
        tail_check(&t);
        assert_int_equal(t.docs.count, status ? 0 : 1);
    }
    lab_env_fail_at(env, 0);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(rows_at_or_below_the_checkpoint_are_let_go),
        EACH(without_memory_no_document_is_left_that_never_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
