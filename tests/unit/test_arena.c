/* Arenas: blocks do not overlap, are aligned, and a reset arena asks for nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/arena.h"
#include "lab.h"
#include <string.h>

struct block {
    unsigned char *at;
    size_t size;
};

static size_t random_size(lab_random *r) {
    return lab_random_once_in(r, 20) ? lab_random_below(r, 5000) : lab_random_below(r, 60);
}

static void random_blocks_never_overlap(void **state) {
    lab_env *world = lab_env_open();
    lab_random r = lab_random_of(lab_seed());
    static struct block blocks[2000];
    arena a;
    arena_init(&a, lab_env_of(world));
    for (int round = 0; round < 30; round++) {
        size_t count = lab_random_below(&r, 2000);
        for (size_t i = 0; i < count; i++) {
            blocks[i].size = random_size(&r);
            blocks[i].at = arena_alloc(&a, blocks[i].size);
            assert_non_null(blocks[i].at);
            assert_int_equal((uintptr_t)blocks[i].at % 16, 0);
            memset(blocks[i].at, (int)(i % 251), blocks[i].size);
        }
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < blocks[i].size; k += 7)
                assert_int_equal(blocks[i].at[k], i % 251);
        arena_check(&a);
        arena_reset(&a);
        arena_check(&a);
    }
    arena_fini(&a);
    lab_env_close(world);
}

static void a_reset_arena_asks_for_no_more_memory(void **state) {
    lab_env *world = lab_env_open();
    arena a;
    arena_init(&a, lab_env_of(world));
    arena_reset(&a);
    uint64_t allocations = 0;
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < 3000; i++) assert_non_null(arena_alloc(&a, i));
        if (round == 0) allocations = lab_env_allocations(world);
        assert_int_equal(lab_env_allocations(world), allocations);
        arena_reset(&a);
    }
    assert_true(allocations < 20);
    assert_int_equal(a.bytes, lab_env_bytes(world));
    arena_fini(&a);
    lab_env_close(world);
}

static void copies_end_in_a_nul_and_no_size_wraps_around(void **state) {
    lab_env *world = lab_env_open();
    arena a;
    arena_init(&a, lab_env_of(world));
    assert_string_equal(arena_copy(&a, "heddle and reed", 6), "heddle");
    assert_string_equal(arena_copy(&a, NULL, 0), "");
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
    assert_null(arena_alloc_array(&a, SIZE_MAX / 4, 8));
    assert_non_null(arena_alloc_array(&a, 4, 8));
    arena_fini(&a);
    lab_env_close(world);
}

static void alloc_until_refused(lab_env *world, void *ctx) {
    (void)ctx;
    arena a;
    arena_init(&a, lab_env_of(world));
    for (size_t i = 0; i < 200; i++) {
        unsigned char *block = arena_alloc(&a, 10 * i);
        assert_true(block || lab_env_failed(world));
        if (block) memset(block, 1, 10 * i);
        arena_check(&a);
    }
    arena_fini(&a);
}

static void a_refused_block_changes_nothing(void **state) {
    assert_true(lab_each_allocation_failure(alloc_until_refused, NULL) >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blocks_never_overlap),
        cmocka_unit_test(a_reset_arena_asks_for_no_more_memory),
        cmocka_unit_test(copies_end_in_a_nul_and_no_size_wraps_around),
        cmocka_unit_test(a_refused_block_changes_nothing),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
