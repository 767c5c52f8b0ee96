/* The binary heap: against a linear search for the smallest key. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/binheap.h"
#include "lab.h"

#define ITEMS 200

static bool is_before(const binheap_item *a, const binheap_item *b) {
    return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

/* Ties differ: there is only one. */
static const binheap_item *find_smallest(const binheap_item *items) {
    const binheap_item *least = NULL;
    for (int i = 0; i < ITEMS; i++)
        if (binheap_linked(&items[i]) && (!least || is_before(&items[i], least))) least = &items[i];
    return least;
}

static void random_step(binheap *h, binheap_item *items, lab_random *r) {
    binheap_item *it = &items[lab_random_below(r, ITEMS)];
    uint64_t key = lab_random_below(r, 100); /* few keys: ties are common */
    if (!binheap_linked(it)) assert_int_equal(binheap_push(h, it, key), HD_OK);
    else if (lab_random_once_in(r, 3)) binheap_remove(h, it);
    else binheap_update(h, it, key);
}

static void random_operations_agree_with_a_search(void **state) {
    lab_env *world = lab_env_open();
    lab_random r = lab_random_of(lab_seed());
    binheap_item items[ITEMS] = { 0 };
    binheap h;
    binheap_init(&h, lab_env_of(world));
    for (uint64_t i = 0; i < ITEMS; i++) items[i].tie = i * 7 % ITEMS;
    for (int step = 0; step < 200000; step++) {
        random_step(&h, items, &r);
        assert_ptr_equal(binheap_peek(&h), find_smallest(items));
        if (step % 16 == 0) binheap_check(&h);
        if (lab_random_once_in(&r, 1000))
            while (lab_random_below(&r, 50) && binheap_pop(&h)) binheap_check(&h);
    }
    binheap_fini(&h);
    lab_env_close(world);
}

static void popping_sorts(void **state) {
    hd_env env = hd_env_system();
    lab_random r = lab_random_of(lab_seed());
    static binheap_item items[20000];
    binheap h;
    binheap_init(&h, &env);
    assert_null(binheap_pop(&h));
    for (int i = 0; i < 20000; i++)
        assert_int_equal(binheap_push(&h, &items[i], lab_random_u64(&r)), HD_OK);
    uint64_t last = 0;
    for (int i = 0; i < 20000; i++) {
        binheap_item *it = binheap_pop(&h);
        assert_true(it->key >= last && !binheap_linked(it));
        last = it->key;
    }
    assert_int_equal(binheap_count(&h), 0);
    binheap_fini(&h);
}

static void push_until_refused(lab_env *world, void *ctx) {
    (void)ctx;
    binheap_item items[40] = { 0 };
    binheap h;
    binheap_init(&h, lab_env_of(world));
    for (uint64_t i = 0; i < 40; i++) {
        hd_status status = binheap_push(&h, &items[i], 100 - i);
        assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(world)));
        assert_int_equal(binheap_linked(&items[i]), status == HD_OK);
        binheap_check(&h);
    }
    binheap_fini(&h);
}

static void a_refused_push_changes_nothing(void **state) {
    assert_true(lab_each_allocation_failure(push_until_refused, NULL) >= 3);
}

static void after_reserving_pushes_cannot_fail(void **state) {
    lab_env *world = lab_env_open();
    binheap_item items[100] = { 0 };
    binheap h;
    binheap_init(&h, lab_env_of(world));
    assert_int_equal(binheap_reserve(&h, 100), HD_OK);
    lab_env_fail_from(world, 1);
    for (uint64_t i = 0; i < 100; i++) assert_int_equal(binheap_push(&h, &items[i], i), HD_OK);
    binheap_fini(&h);
    lab_env_close(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_a_search),
        cmocka_unit_test(popping_sorts),
        cmocka_unit_test(a_refused_push_changes_nothing),
        cmocka_unit_test(after_reserving_pushes_cannot_fail),
    };
    return cmocka_run_group_tests_name("binheap", tests, NULL, NULL);
}
