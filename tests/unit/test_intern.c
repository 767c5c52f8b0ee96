/* Interning: equal strings have equal ids while held; against a table of names and counts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/intern.h"
#include "lab.h"
#include <stdio.h>
#include <string.h>

#define NAMES 400

struct model {
    char names[NAMES][24];
    uint32_t ids[NAMES]; /* while refs > 0 */
    uint32_t refs[NAMES];
};

static void model_init(struct model *m) {
    memset(m, 0, sizeof *m);
    for (int i = 1; i < NAMES; i++) snprintf(m->names[i], 24, "name %d", i * 7919);
}

static void assert_same(const intern *in, const struct model *m) {
    uint32_t live = 0;
    intern_check(in);
    for (int i = 0; i < NAMES; i++) {
        size_t length = strlen(m->names[i]), stored = 0;
        uint32_t id = m->refs[i] ? m->ids[i] : INTERN_NONE;
        assert_int_equal(intern_find(in, m->names[i], length), id);
        if (!id) continue;
        live++;
        assert_string_equal(intern_bytes(in, id, &stored), m->names[i]);
        assert_int_equal(stored, length);
    }
    assert_int_equal(intern_live(in), live);
}

static void random_step(intern *in, struct model *m, lab_random *r) {
    size_t i = lab_random_below(r, NAMES);
    uint64_t what = lab_random_below(r, 10);
    if (what < 4) {
        uint32_t id;
        assert_int_equal(intern_take(in, m->names[i], strlen(m->names[i]), &id), HD_OK);
        assert_true(id != INTERN_NONE && (!m->refs[i] || id == m->ids[i]));
        m->ids[i] = id;
        m->refs[i]++;
    } else if (m->refs[i] && what == 4) {
        intern_ref(in, m->ids[i]);
        m->refs[i]++;
    } else if (m->refs[i]) {
        intern_release(in, m->ids[i]);
        m->refs[i]--;
    }
}

static void random_operations_agree_with_a_list_of_names(void **state) {
    lab_env *world = lab_env_open();
    lab_random r = lab_random_of(lab_seed());
    static struct model m;
    intern in;
    model_init(&m);
    intern_init(&in, lab_env_of(world));
    for (int step = 0; step < 200000; step++) {
        random_step(&in, &m, &r);
        if (step % 500 == 0) assert_same(&in, &m);
    }
    assert_true(in.count <= NAMES); /* ids are used again */
    assert_same(&in, &m);
    intern_fini(&in);
    lab_env_close(world);
}

static void bytes_may_hold_anything_and_end_in_a_nul(void **state) {
    lab_env *world = lab_env_open();
    uint32_t a, b, none;
    size_t length;
    intern in;
    intern_init(&in, lab_env_of(world));
    assert_int_equal(intern_take(&in, "a\0b", 3, &a), HD_OK);
    assert_int_equal(intern_take(&in, "a\0c", 3, &b), HD_OK);
    assert_int_equal(intern_take(&in, NULL, 0, &none), HD_OK);
    assert_true(a != b && b != none && none != INTERN_NONE);
    assert_memory_equal(intern_bytes(&in, a, &length), "a\0b", 4);
    assert_int_equal(length, 3);
    assert_string_equal(intern_bytes(&in, none, NULL), "");
    assert_int_equal(intern_find(&in, "a", 1), INTERN_NONE);
    intern_fini(&in);
    lab_env_close(world);
}

static void a_released_id_is_used_again(void **state) {
    hd_env env = hd_env_system();
    uint32_t first, second;
    intern in;
    intern_init(&in, &env);
    assert_int_equal(intern_take(&in, "warp", 4, &first), HD_OK);
    intern_release(&in, first);
    assert_int_equal(intern_find(&in, "warp", 4), INTERN_NONE);
    assert_int_equal(intern_take(&in, "weft", 4, &second), HD_OK);
    assert_int_equal(first, second);
    intern_fini(&in);
}

static void taking_a_known_string_allocates_nothing(void **state) {
    lab_env *world = lab_env_open();
    uint32_t first, second;
    intern in;
    intern_init(&in, lab_env_of(world));
    assert_int_equal(intern_take(&in, "warp", 4, &first), HD_OK);
    lab_env_fail_from(world, 1);
    assert_int_equal(intern_take(&in, "warp", 4, &second), HD_OK);
    assert_int_equal(first, second);
    assert_false(lab_env_failed(world));
    intern_fini(&in);
    lab_env_close(world);
}

static void take_until_refused(lab_env *world, void *ctx) {
    (void)ctx;
    intern in;
    intern_init(&in, lab_env_of(world));
    for (int i = 0; i < 60; i++) {
        char name[24];
        uint32_t id;
        size_t length = (size_t)snprintf(name, sizeof name, "name %d", i);
        hd_status status = intern_take(&in, name, length, &id);
        assert_true(status == HD_OK || (status == HD_NOMEM && lab_env_failed(world)));
        assert_int_equal(intern_find(&in, name, length), id);
        assert_int_equal(id == INTERN_NONE, status != HD_OK);
        intern_check(&in);
    }
    intern_fini(&in);
}

static void a_refused_take_changes_nothing(void **state) {
    assert_true(lab_each_allocation_failure(take_until_refused, NULL) >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_a_list_of_names),
        cmocka_unit_test(bytes_may_hold_anything_and_end_in_a_nul),
        cmocka_unit_test(a_released_id_is_used_again),
        cmocka_unit_test(taking_a_known_string_allocates_nothing),
        cmocka_unit_test(a_refused_take_changes_nothing),
    };
    return cmocka_run_group_tests_name("intern", tests, NULL, NULL);
}
