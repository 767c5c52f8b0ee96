/* Lists: against an array of the same items, on random operations. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/list.h"
#include "lab.h"
#include <string.h>

struct item {
    int number;
    list_node node;
};

#define ITEMS 64

/* The naive model: numbers in order. */
struct model {
    int order[ITEMS];
    size_t count;
};

static void model_insert(struct model *m, size_t at, int number) {
    memmove(&m->order[at + 1], &m->order[at], (m->count++ - at) * sizeof *m->order);
    m->order[at] = number;
}

static void model_remove(struct model *m, int number) {
    size_t at = 0;
    while (m->order[at] != number) at++;
    memmove(&m->order[at], &m->order[at + 1], (--m->count - at) * sizeof *m->order);
}

static void assert_same(const list *l, const struct model *m) {
    size_t i = 0;
    list_check(l);
    LIST_FOR (node, l) {
        assert_true(i < m->count);
        assert_int_equal(LIST_ENTRY(node, struct item, node)->number, m->order[i++]);
    }
    assert_int_equal(i, m->count);
    assert_int_equal(list_count(l), m->count);
    assert_int_equal(list_empty(l), m->count == 0);
}

static void random_operations_agree_with_an_array(void **state) {
    lab_random r = lab_random_of(lab_seed());
    struct item items[ITEMS] = { 0 };
    struct model m = { .count = 0 };
    list l;
    list_init(&l);
    for (int i = 0; i < ITEMS; i++) items[i].number = i;
    for (int step = 0; step < 200000; step++) {
        struct item *it = &items[lab_random_below(&r, ITEMS)];
        if (list_linked(&it->node)) {
            list_remove(&it->node);
            model_remove(&m, it->number);
        } else if (lab_random_once_in(&r, 2)) {
            list_push_back(&l, &it->node);
            model_insert(&m, m.count, it->number);
        } else {
            list_push_front(&l, &it->node);
            model_insert(&m, 0, it->number);
        }
        assert_same(&l, &m);
    }
}

static void ends_and_neighbours_of_a_list(void **state) {
    struct item a = { .number = 1 }, b = { .number = 2 };
    list l;
    list_init(&l);
    assert_null(list_first(&l));
    assert_null(list_last(&l));
    assert_null(list_pop_front(&l));
    list_push_back(&l, &a.node);
    list_insert_after(&a.node, &b.node);
    assert_ptr_equal(list_first(&l), &a.node);
    assert_ptr_equal(list_last(&l), &b.node);
    assert_ptr_equal(list_after(&l, &a.node), &b.node);
    assert_null(list_after(&l, &b.node));
    assert_ptr_equal(list_before(&l, &b.node), &a.node);
    assert_null(list_before(&l, &a.node));
    assert_ptr_equal(list_pop_front(&l), &a.node);
    assert_false(list_linked(&a.node));
    list_discard(&a.node);
    list_discard(&b.node);
    assert_true(list_empty(&l));
}

static void the_safe_loop_lets_the_body_remove(void **state) {
    struct item items[6] = { 0 };
    list l;
    list_init(&l);
    for (int i = 0; i < 6; i++) {
        items[i].number = i;
        list_push_back(&l, &items[i].node);
    }
    LIST_FOR_SAFE (node, &l)
        if (LIST_ENTRY(node, struct item, node)->number % 2) list_remove(node);
    assert_same(&l, &(struct model){ .order = { 0, 2, 4 }, .count = 3 });
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_an_array),
        cmocka_unit_test(ends_and_neighbours_of_a_list),
        cmocka_unit_test(the_safe_loop_lets_the_body_remove),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
