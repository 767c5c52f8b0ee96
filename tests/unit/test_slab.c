/* Slabs: objects do not overlap, come back, and are counted. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/slab.h"
#include "lab.h"

#define OBJECTS 500

/* Takes the object or gives it back. Each is filled with its own byte: an overlap, or a use of a
 * free one, shows. */
static void toggle(slab *sl, unsigned char **objects, size_t i, size_t size) {
    if (objects[i]) {
        assert_int_equal(objects[i][0], i % 251);
        assert_int_equal(objects[i][size - 1], i % 251);
        slab_give(sl, objects[i]);
        objects[i] = NULL;
    } else {
        objects[i] = slab_take(sl);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % (size % 16 ? 8 : 16), 0);
        memset(objects[i], (int)(i % 251), size);
    }
}

static void random_takes_and_gives_never_overlap(void **state) {
    lab_env *world = lab_env_open();
    lab_random r = lab_random_of(lab_seed());
    const size_t sizes[] = { 1, 8, 24, 48, 200, 5000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *objects[OBJECTS] = { 0 };
        uint32_t live = 0;
        slab sl;
        slab_init(&sl, lab_env_of(world), sizes[s]);
        for (int step = 0; step < 40000; step++) {
            size_t i = lab_random_below(&r, OBJECTS);
            toggle(&sl, objects, i, sizes[s]);
            live += objects[i] ? 1 : UINT32_MAX;
            assert_int_equal(sl.live, live);
            if (step % 500 == 0) slab_check(&sl);
        }
        slab_check(&sl);
        slab_fini(&sl);
        assert_int_equal(lab_env_blocks(world), 0);
    }
    lab_env_close(world);
}

static void memory_is_used_again(void **state) {
    lab_env *world = lab_env_open();
    slab sl;
    slab_init(&sl, lab_env_of(world), 64);
    void *first = slab_take(&sl);
    slab_give(&sl, first);
    for (int i = 0; i < 100000; i++) {
        void *object = slab_take(&sl);
        assert_ptr_equal(object, first);
        slab_give(&sl, object);
    }
    assert_int_equal(lab_env_allocations(world), 1);
    slab_fini(&sl);
    lab_env_close(world);
}

static void a_million_objects_cost_few_allocations(void **state) {
    lab_env *world = lab_env_open();
    slab sl;
    slab_init(&sl, lab_env_of(world), 32);
    for (int i = 0; i < 1000000; i++) assert_non_null(slab_take(&sl));
    assert_true(lab_env_allocations(world) < 600);
    assert_true(sl.bytes < 33 * 1000000 && sl.bytes == lab_env_bytes(world));
    slab_check(&sl);
    slab_fini(&sl); /* live objects notwithstanding */
    lab_env_close(world);
}

static void take_until_refused(lab_env *world, void *ctx) {
    (void)ctx;
    slab sl;
    slab_init(&sl, lab_env_of(world), 100);
    for (int i = 0; i < 100; i++) {
        uint32_t live = sl.live;
        void *object = slab_take(&sl);
        assert_true(object || lab_env_failed(world));
        assert_int_equal(sl.live, live + (object != NULL));
        slab_check(&sl);
    }
    slab_fini(&sl);
}

static void a_refused_take_changes_nothing(void **state) {
    assert_true(lab_each_allocation_failure(take_until_refused, NULL) >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_takes_and_gives_never_overlap),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(a_million_objects_cost_few_allocations),
        cmocka_unit_test(a_refused_take_changes_nothing),
    };
    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
