/* test_vec.c -- random operations on a growable array, compared with an array of fixed size. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/vec.h"
#include "lab.h"

#define MOST 300

typedef VEC(uint32_t) numbers;

struct model {
    uint32_t items[MOST];
    uint32_t count;
};

static void assert_same(const numbers *v, const struct model *m) {
    vec_check(v);
    assert_int_equal(v->count, m->count);
    if (m->count) assert_memory_equal(v->items, m->items, m->count * sizeof *m->items);
}

static void step_push(const hd_env *env, numbers *v, struct model *m, uint32_t x) {
    if (m->count == MOST) return;
    assert_true(vec_push(env, v, x));
    m->items[m->count++] = x;
}

static void step_remove(numbers *v, struct model *m, uint32_t at, bool swap) {
    if (at >= m->count) return;
    m->count--;
    if (swap) {
        vec_swap_remove(v, at);
        m->items[at] = m->items[m->count];
    } else {
        vec_remove(v, at);
        for (uint32_t i = at; i < m->count; i++) m->items[i] = m->items[i + 1];
    }
}

static void random_operations_agree_with_a_fixed_array(void **state) {
    lab_env *world = lab_env_open();
    lab_random r = lab_random_of(lab_seed());
    numbers v = { 0 };
    struct model m = { .count = 0 };
    for (int step = 0; step < 200000; step++) {
        uint32_t at = (uint32_t)lab_random_below(&r, m.count + 1);
        uint64_t what = lab_random_below(&r, 100);
        if (what < 50) step_push(lab_env_of(world), &v, &m, (uint32_t)step);
        else if (what < 99) step_remove(&v, &m, at, what % 2);
        else if (lab_random_once_in(&r, 50)) vec_clear(&v), m.count = 0;
        else if (m.count) assert_int_equal(vec_last(&v), m.items[m.count - 1]);
        assert_same(&v, &m);
    }
    vec_fini(lab_env_of(world), &v);
    assert_null(v.items);
    lab_env_close(world);
}

static void the_last_is_popped(void **state) {
    hd_env env = hd_env_system();
    numbers v = { 0 };
    assert_true(vec_push(&env, &v, 1));
    assert_true(vec_push(&env, &v, 2));
    assert_int_equal(vec_pop(&v), 2);
    assert_int_equal(vec_pop(&v), 1);
    assert_int_equal(v.count, 0);
    vec_fini(&env, &v);
}

static void push_until_refused(lab_env *world, void *ctx) {
    (void)ctx;
    numbers v = { 0 };
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t count = v.count;
        bool pushed = vec_push(lab_env_of(world), &v, i);
        assert_true(pushed || lab_env_failed(world));
        assert_int_equal(v.count, count + pushed);
        vec_check(&v);
    }
    vec_fini(lab_env_of(world), &v);
}

static void a_refused_push_changes_nothing(void **state) {
    assert_true(lab_each_allocation_failure(push_until_refused, NULL) >= 5);
}

static void room_for_more_than_fits_an_index_is_refused(void **state) {
    hd_env env = hd_env_system();
    numbers v = { 0 };
    assert_true(vec_push(&env, &v, 1));
    assert_false(vec_room(&env, &v, UINT64_C(0xFFFFFFFF)));
    assert_int_equal(v.items[0], 1);
    vec_fini(&env, &v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_a_fixed_array),
        cmocka_unit_test(the_last_is_popped),
        cmocka_unit_test(a_refused_push_changes_nothing),
        cmocka_unit_test(room_for_more_than_fits_an_index_is_refused),
    };
    return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
