/* The hash table: against an array that knows which pairs are in it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/table.h"
#include "lab.h"
#include <stdlib.h>

#define ENTRIES 600

/* The model: entry i has hash hashes[i] and is in the table or not. Few distinct hashes, so that
 * runs are long and entries of one hash mix with others. */
struct model {
    uint32_t hashes[ENTRIES];
    bool in[ENTRIES];
    uint32_t count;
};

static bool table_has(const table *t, uint32_t hash, uint32_t index) {
    for (table_probe p = table_find(t, hash); table_next(t, &p);)
        if (p.index == index) return true;
    return false;
}

static void assert_same(const table *t, const struct model *m) {
    table_check(t);
    assert_int_equal(table_count(t), m->count);
    for (uint32_t i = 0; i < ENTRIES; i++)
        assert_int_equal(table_has(t, m->hashes[i], i), m->in[i]);
}

static void model_rehash(struct model *m, lab_random *r, uint64_t distinct) {
    for (uint32_t i = 0; i < ENTRIES; i++)
        m->hashes[i] = (uint32_t)lab_random_below(r, distinct) * UINT32_C(0x01000193);
}

static void random_step(table *t, struct model *m, lab_random *r, bool filling) {
    uint32_t i = (uint32_t)lab_random_below(r, ENTRIES);
    if (m->in[i] && filling && lab_random_below(r, 3)) return;
    if (m->in[i]) table_remove(t, m->hashes[i], i);
    else assert_int_equal(table_insert(t, m->hashes[i], i), HD_OK);
    m->in[i] = !m->in[i];
    m->count += m->in[i] ? 1 : UINT32_MAX;
}

static void random_operations_agree_with_an_array(void **state) {
    lab_env *world = lab_env_open();
    lab_random r = lab_random_of(lab_seed());
    const uint64_t spreads[] = { 1, 7, 300, UINT32_MAX };
    for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++) {
        struct model m = { .count = 0 };
        model_rehash(&m, &r, spreads[s]);
        table t;
        table_init(&t, lab_env_of(world));
        for (int step = 0; step < 60000; step++) {
            random_step(&t, &m, &r, step / 5000 % 2);
            if (step % 200 == 0) assert_same(&t, &m);
        }
        assert_same(&t, &m);
        table_fini(&t);
    }
    lab_env_close(world);
}

static void an_empty_table_finds_nothing_and_holds_no_memory(void **state) {
    lab_env *world = lab_env_open();
    table t;
    table_init(&t, lab_env_of(world));
    assert_false(table_has(&t, 0, 0));
    assert_int_equal(lab_env_blocks(world), 0);
    table_clear(&t);
    table_check(&t);
    table_fini(&t);
    lab_env_close(world);
}

static void a_moved_entry_is_found_at_its_new_index(void **state) {
    hd_env env = hd_env_system();
    table t;
    table_init(&t, &env);
    for (uint32_t i = 0; i < 10; i++) assert_int_equal(table_insert(&t, i % 3, i), HD_OK);
    table_move(&t, 1, 7, 70);
    assert_true(table_has(&t, 1, 70));
    assert_false(table_has(&t, 1, 7));
    table_clear(&t);
    assert_false(table_has(&t, 1, 70));
    assert_int_equal(table_insert(&t, 1, 70), HD_OK);
    table_check(&t);
    table_fini(&t);
}

static void insert_until_refused(lab_env *world, void *ctx) {
    (void)ctx;
    table t;
    table_init(&t, lab_env_of(world));
    for (uint32_t i = 0; i < 100; i++) {
        hd_status status = table_insert(&t, i * 31, i);
        assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(world)));
        assert_int_equal(table_has(&t, i * 31, i), status == HD_OK);
        table_check(&t);
    }
    table_fini(&t);
}

static void a_refused_insert_changes_nothing(void **state) {
    assert_true(lab_each_allocation_failure(insert_until_refused, NULL) >= 4);
}

static void after_reserving_inserts_cannot_fail(void **state) {
    lab_env *world = lab_env_open();
    table t;
    table_init(&t, lab_env_of(world));
    assert_int_equal(table_reserve(&t, 1000), HD_OK);
    lab_env_fail_from(world, 1);
    for (uint32_t i = 0; i < 1000; i++) assert_int_equal(table_insert(&t, i, i), HD_OK);
    assert_int_equal(lab_env_allocations(world), 1);
    table_fini(&t);
    lab_env_close(world);
}

/* Sequential, strided and high-bit-only hashes: none may pile up in one long run. */
static void poor_hashes_still_spread(void **state) {
    hd_env env = hd_env_system();
    for (uint32_t shift = 0; shift <= 16; shift += 4) {
        table t;
        uint64_t steps = 0;
        table_init(&t, &env);
        for (uint32_t i = 0; i < 30000; i++)
            assert_int_equal(table_insert(&t, i << shift, i), HD_OK);
        for (uint32_t i = 0; i < 30000; i++) {
            table_probe p = table_find(&t, i << shift);
            uint32_t home = p.at_;
            while (table_next(&t, &p) && p.index != i) {}
            steps += (p.at_ - home) & t.mask;
        }
        assert_true(steps < 30000 * 8);
        table_fini(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_an_array),
        cmocka_unit_test(an_empty_table_finds_nothing_and_holds_no_memory),
        cmocka_unit_test(a_moved_entry_is_found_at_its_new_index),
        cmocka_unit_test(a_refused_insert_changes_nothing),
        cmocka_unit_test(after_reserving_inserts_cannot_fail),
        cmocka_unit_test(poor_hashes_still_spread),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
