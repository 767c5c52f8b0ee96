/* test_readers_wait.c -- the store refuses a result again and again: what reads it waits for the retries (I1, 8.3,
 * docs/DECISIONS/0301). Public headers only. */
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_cell x, y, other;
static char seen[400]; /* by the effect: "x y; x y; " */
static char pulled[40];

static hd_status tenfold(hd_tx *tx, void *ctx) {
    (void)ctx;
    return hd_tx_set(tx, y, hd_double(10 * hd_value_number(hd_tx_get(tx, x))));
}

static hd_status show(hd_tx *tx, void *ctx) {
    (void)ctx;
    hd_value a = hd_tx_get(tx, x), b = hd_tx_get(tx, y);
    hd_tx_get(tx, other);
    if (hd_value_status(a) || hd_value_status(b)) return HD_PENDING;
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof seen - n, "%g %g; ", hd_value_number(a), hd_value_number(b));
    return HD_OK;
}

static void note(hd_value v, void *ctx) {
    (void)ctx;
    snprintf(pulled, sizeof pulled, "%g", hd_value_number(v));
}

static hd_lab *open_both(hd_runtime **a, hd_runtime **b) {
    hd_lab *lab = hd_lab_open(NULL);
    *a = hd_lab_runtime(lab, "a");
    *b = hd_lab_runtime(lab, "b");
    x = hd_cell_at(*a, "main/x");
    y = hd_cell_at(*a, "main/y");
    other = hd_cell_at(*a, "main/other");
    hd_lab_set(*b, "main/x", "1");
    hd_lab_settle(lab);
    hd_compute(*a, "tenfold", tenfold, NULL, y);
    *seen = *pulled = 0;
    return lab;
}

/* The lab's clock stands: the retry stays delayed until the test lets time pass. */
static void refuse_until_delayed(hd_lab *lab, hd_runtime *a, hd_runtime *b) {
    hd_lab_refuse(a, HD_STALE, 2);
    hd_lab_set(b, "main/x", "2");
    hd_lab_settle(lab);
    assert_int_equal(hd_node_why_not(a, hd_node_find(a, "tenfold"), NULL, 0), HD_WHY_NOT_RETRY);
}

/* An effect that runs because of something else meanwhile would see x beside a y that was withdrawn. */
static void an_effect_sees_no_withdrawn_result(void **state) {
    (void)state;
    hd_runtime *a, *b;
    hd_lab *lab = open_both(&a, &b);
    hd_effect(a, "show", show, NULL);
    hd_lab_settle(lab);
    refuse_until_delayed(lab, a, b);
    *seen = 0;
    hd_lab_set(b, "main/other", "1");
    hd_lab_settle(lab);
    assert_string_equal(seen, "");
    hd_lab_idle(lab);
    assert_string_equal(seen, "2 20; ");
    hd_lab_close(lab);
}

/* C203: refusals that are each followed by success are not in a row, however many there are. */
static void success_ends_the_row_of_refusals(void **state) {
    (void)state;
    hd_runtime *a, *b;
    hd_lab *lab = open_both(&a, &b);
    hd_effect(a, "show", show, NULL);
    hd_lab_idle(lab);
    for (int i = 2; i < 20; i++) {
        char text[16], expected[32];
        snprintf(text, sizeof text, "%d", i);
        snprintf(expected, sizeof expected, "%d %d; ", i, 10 * i);
        *seen = 0;
        hd_lab_refuse(a, HD_STALE, 1);
        hd_lab_set(b, "main/x", text);
        hd_lab_settle(lab); /* the first retry is made at once */
        const char *last =
            strlen(seen) > strlen(expected) ? seen + strlen(seen) - strlen(expected) : seen;
        assert_string_equal(last, expected);
        assert_int_equal(hd_runtime_sync(a), HD_OK);
    }
    hd_lab_close(lab);
}

/* A pull looks once, so it has to see the right value. Nothing needs y before; then idle does not wait for the
 * retry. */
static void a_pull_waits_for_the_retry(void **state) {
    (void)state;
    hd_runtime *a, *b;
    hd_lab *lab = open_both(&a, &b);
    hd_node needs = hd_effect(a, "show", show, NULL);
    hd_lab_settle(lab);
    refuse_until_delayed(lab, a, b);
    hd_node_unregister(a, needs);
    hd_lab_idle(lab);
    hd_pull(a, y, note, NULL);
    hd_lab_settle(lab);
    assert_string_equal(pulled, "");
    hd_lab_idle(lab);
    assert_string_equal(pulled, "20");
    hd_lab_close(lab);
}

/* I6: a store that goes on refusing does not keep readers waiting for ever: ten retries in a row. */
static void what_is_refused_for_ever_is_not_waited_for(void **state) {
    (void)state;
    hd_runtime *a, *b;
    hd_lab *lab = open_both(&a, &b);
    hd_effect(a, "show", show, NULL);
    hd_lab_settle(lab);
    hd_lab_refuse(a, HD_STALE, 1000);
    hd_lab_set(b, "main/x", "2");
    hd_lab_idle(lab);
    *seen = 0;
    hd_lab_set(b, "main/other", "1");
    hd_lab_settle(lab);
    assert_non_null(strstr(seen, "2 "));
    hd_lab_refuse(a, HD_STALE, 0);
    hd_lab_advance_ms(lab, 5000);
    hd_lab_idle(lab);
    assert_string_equal(hd_lab_get(a, "main/y"), "20.0");
    hd_lab_close(lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_sees_no_withdrawn_result),
        cmocka_unit_test(success_ends_the_row_of_refusals),
        cmocka_unit_test(a_pull_waits_for_the_retry),
        cmocka_unit_test(what_is_refused_for_ever_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
