/* Statuses: every code has a name, a text and a class; what is unknown is never retried. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <heddle/base.h>
#include <string.h>

static void every_status_has_a_name_and_a_text(void **state) {
    for (int s = 0; s < HD_STATUS_COUNT_; s++) {
        assert_memory_equal(hd_status_name((hd_status)s), "HD_", 3);
        assert_true(strlen(hd_status_text((hd_status)s)) > 1);
        for (int t = 0; t < s; t++)
            assert_string_not_equal(hd_status_name((hd_status)s), hd_status_name((hd_status)t));
    }
}

static void a_class_says_what_to_do(void **state) {
    assert_int_equal(hd_status_class(HD_OK), HD_CLASS_OK);
    assert_int_equal(hd_status_class(HD_STALE), HD_CLASS_STALE);
    assert_int_equal(hd_status_class(HD_RESYNC), HD_CLASS_STALE);
    assert_int_equal(hd_status_class(HD_EXISTS), HD_CLASS_PERMANENT);
    assert_int_equal(hd_status_class(HD_BUSY), HD_CLASS_TRANSIENT);
    assert_int_equal(hd_status_class(HD_SYNTAX), HD_CLASS_INPUT);
    assert_int_equal(hd_status_class(HD_KIND), HD_CLASS_USAGE);
    assert_int_equal(hd_status_class(HD_NOMEM), HD_CLASS_NOMEM);
    assert_int_equal(HD_OK, 0);
}

static void an_unknown_status_is_terminal(void **state) {
    const int unknown[] = { HD_STATUS_COUNT_, 4711, -1 };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        volatile int code = unknown[i];
        assert_int_equal(hd_status_class((hd_status)code), HD_CLASS_TERMINAL);
        assert_string_equal(hd_status_name((hd_status)code), "HD_REJECTED");
    }
}

static void the_linked_version_is_the_one_of_the_header(void **state) {
    assert_string_equal(hd_version(), HD_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_text),
        cmocka_unit_test(a_class_says_what_to_do),
        cmocka_unit_test(an_unknown_status_is_terminal),
        cmocka_unit_test(the_linked_version_is_the_one_of_the_header),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
