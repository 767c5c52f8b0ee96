/* Events: queue and dispatch (CONFORMANCE K). */
#include "lab_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* C215: two events on a stream: the handler runs twice, in order; the stream's value is untouched. */
static void two_events_run_the_handler_twice(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 };
    lab_handle(l, .stream = "buy");
    lab_fire(l, "buy", "1", &a);
    lab_fire(l, "buy", "2", &b);
    assert_ran(l, "");
    lab_idle(l);
    assert_ran(l, "buy buy");
    assert_json(l, "buy_log", "[1,2]");
    assert_json(l, "buy", "-");
    hd_runtime_sync(lab_runtime_now(l));
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_OK);
    assert_string_not_equal(a.id, b.id);
    lab_close(l);
}

/* C216, I4: 1, 2, 3 are handled in that order. */
static void i4_events_are_handled_in_the_order_of_sending(void **state) {
    lab *l = lab_start();
    lab_handle(l, .stream = "a");
    lab_handle(l, .stream = "b");
    lab_fire(l, "a", "1", NULL);
    lab_fire(l, "b", "2", NULL);
    lab_fire(l, "a", "3", NULL);
    lab_idle(l);
    assert_ran(l, "a b a");
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_events_run_the_handler_twice),
        cmocka_unit_test(i4_events_are_handled_in_the_order_of_sending),
    };
    LAB_EVERYWHERE(tests);
}
