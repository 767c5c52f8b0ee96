/* test_chart.c -- the layout of a workflow's picture. */
#define _DEFAULT_SOURCE
#include "workflow/chart.h"
#include "workflow_loops.h"
#include <heddle/workflow.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static hd_heap *heap;
static hd_pool *pool;

static hd_value parse(const char *json) {
    hd_error error = { 0 };
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    if (!hd_value_exists(v)) fail_msg("%s", error.message);
    return v;
}

static void boxes_of_a_drawing_do_not_cover_each_other(void **state) {
    chart c;
    chart_layout l;
    hd_error error = { 0 };
    assert_int_equal(chart_open(heap, parse(loops), (hd_value){ 0 }, &c, &error), HD_OK);
    assert_int_equal(chart_layout_make(&c, &c.functions[0], &l), HD_OK);
    for (uint32_t i = 0; i < l.boxes.count; i++) {
        const chart_box *a = &l.boxes.items[i];
        assert_true(a->x - a->width / 2 >= 0 && a->x + a->width / 2 <= l.width);
        assert_true(a->y - a->height / 2 >= 0 && a->y + a->height / 2 <= l.height);
        for (uint32_t k = 0; k < i; k++) {
            const chart_box *b = &l.boxes.items[k];
            bool apart = fabs(a->x - b->x) >= (a->width + b->width) / 2 - 0.01 ||
                         fabs(a->y - b->y) >= (a->height + b->height) / 2 - 0.01;
            assert_true(apart);
        }
    }
    chart_layout_free(&l);
    chart_close(&c);
}

static int set_up(void **state) {
    assert_int_equal(hd_heap_open(NULL, NULL, &heap), HD_OK);
    return hd_pool_open(heap, &pool) != HD_OK;
}
static int tear_down(void **state) {
    hd_pool_close(pool);
    hd_heap_close(heap);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boxes_of_a_drawing_do_not_cover_each_other, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
