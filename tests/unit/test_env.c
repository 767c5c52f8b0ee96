/* The environment: the machine's own, the lab's, and the helpers on top. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/env.h"
#include "lab.h"
#include <stdio.h>
#include <string.h>

/* Large blocks come from elsewhere than small ones; nobody notices. */
static void the_systems_memory_keeps_its_contents_whatever_its_size(void **state) {
    static const size_t sizes[] = { 100, 3 << 20, 9 << 20, 5 << 20, (1 << 20) - 1, 1 << 20, 64 };
    hd_env env = hd_env_system();
    size_t size = 64;
    unsigned char *block = env_new(&env, size);
    memset(block, 7, 64);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = env_resize(&env, block, size, sizes[i]);
        assert_non_null(block);
        size = sizes[i];
        for (int j = 0; j < 64; j++) assert_int_equal(block[j], 7);
        memset(block + 64, 1, size - 64); /* all of it is there */
    }
#ifndef __SANITIZE_ADDRESS__ /* ends the program at such a wish */
    assert_null(env_resize(&env, block, size, SIZE_MAX / 4));
#endif
    env_free(&env, block, size);
}

static void the_systems_memory_keeps_its_contents_when_resized(void **state) {
    hd_env env = hd_env_system();
    char *block = env_new_copy(&env, "warp and weft", 14);
    block = env_resize(&env, block, 14, 100000);
    assert_string_equal(block, "warp and weft");
    env_free(&env, block, 100000);
    env_free(&env, NULL, 0);
}

static void the_systems_clocks_run_and_its_random_bytes_differ(void **state) {
    hd_env env = hd_env_system();
    uint64_t before = env_now_ns(&env);
    assert_true(env_now_ns(&env) >= before);
    assert_true(env_wall_ms(&env) > UINT64_C(1600000000000));
    assert_int_not_equal(env_random_u64(&env), env_random_u64(&env));
}

static void an_array_whose_size_overflows_is_refused(void **state) {
    hd_env env = hd_env_system();
    assert_null(env_new_array(&env, SIZE_MAX / 4, 8));
    uint64_t *zeros = env_new0(&env, 64);
    for (int i = 0; i < 8; i++) assert_int_equal(zeros[i], 0);
    env_free(&env, zeros, 64);
}

static uint64_t always_seven(void *ctx) {
    (void)ctx;
    return 7;
}

static void what_the_opener_leaves_out_is_the_systems(void **state) {
    hd_env partial = { .monotonic_ns = always_seven };
    hd_env env = env_copy(&partial);
    assert_int_equal(env_now_ns(&env), 7);
    assert_ptr_equal(env.alloc, hd_env_system().alloc);
    env_pause(&env, true); /* none: nothing is called */
    env = env_copy(NULL);
    assert_ptr_equal(env.log, hd_env_system().log);
}

static void a_log_line_is_one_line(void **state) {
    lab_env *world = lab_env_open();
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    env_log(lab_env_of(world), HD_LOG_WARN, "two\nlines and a \t tab, %d", 5);
    env_log(lab_env_of(world), HD_LOG_INFO, "%s", text);
    assert_string_equal(lab_env_log_line(world, 0), "warning: two lines and a   tab, 5");
    assert_int_equal(strlen(lab_env_log_line(world, 1)), strlen("info: ") + 1023);
    assert_int_equal(lab_env_logged(world, "xxx..."), 1);
    lab_env_log_clear(world);
    assert_int_equal(lab_env_log_count(world), 0);
    assert_null(lab_env_log_line(world, 0));
    lab_env_close(world);
}

static void an_error_is_filled_whole_and_may_be_null(void **state) {
    hd_error error;
    memset(&error, 0xA5, sizeof error);
    env_error(&error, HD_SYNTAX, "bad digit '%c'", 'x');
    assert_int_equal(error.status, HD_SYNTAX);
    assert_string_equal(error.message, "bad digit 'x'");
    assert_string_equal(error.path, "");
    assert_int_equal(error.line + error.column + error.offset, 0);
    env_error(NULL, HD_SYNTAX, "nobody listens");
}

static void virtual_time_moves_only_when_told(void **state) {
    lab_env *world = lab_env_open();
    const hd_env *env = lab_env_of(world);
    uint64_t ns = env_now_ns(env), ms = env_wall_ms(env);
    assert_int_equal(env_now_ns(env), ns);
    lab_env_advance_ms(world, 250);
    assert_int_equal(env_now_ns(env), ns + 250000000);
    assert_int_equal(env_wall_ms(env), ms + 250);
    for (int i = 0; i < 10; i++) lab_env_advance_ns(world, 100000);
    assert_int_equal(env_wall_ms(env), ms + 251);
    lab_env_set_wall_ms(world, 5);
    assert_int_equal(env_wall_ms(env), 5);
    assert_int_equal(env_now_ns(env), ns + 251000000);
    lab_env_close(world);
}

static void a_seed_repeats(void **state) {
    lab_env *world = lab_env_open();
    const hd_env *env = lab_env_of(world);
    lab_env_set_seed(world, 42);
    uint64_t first = env_random_u64(env), second = env_random_u64(env);
    assert_int_not_equal(first, second);
    lab_env_set_seed(world, 42);
    assert_int_equal(env_random_u64(env), first);
    assert_int_equal(env_random_u64(env), second);
    lab_env_close(world);
}

static void random_numbers_below_n_cover_the_range(void **state) {
    lab_random r = lab_random_of(lab_seed());
    unsigned hits[6] = { 0 };
    for (int i = 0; i < 60000; i++) hits[lab_random_below(&r, 6)]++;
    for (int i = 0; i < 6; i++) assert_in_range(hits[i], 9000, 11000);
}

static void the_nth_allocation_fails_and_only_that_one(void **state) {
    lab_env *world = lab_env_open();
    const hd_env *env = lab_env_of(world);
    lab_env_fail_at(world, 2);
    void *a = env_new(env, 10);
    assert_non_null(a);
    assert_false(lab_env_failed(world));
    assert_null(env_resize(env, a, 10, 20));
    assert_true(lab_env_failed(world));
    void *b = env_new(env, 30);
    assert_non_null(b);
    assert_int_equal(lab_env_blocks(world), 2);
    assert_int_equal(lab_env_bytes(world), 40);
    assert_int_equal(lab_env_allocations(world), 3);
    env_free(env, a, 10);
    env_free(env, b, 30);
    lab_env_close(world);
}

static void memory_can_run_out_for_good(void **state) {
    lab_env *world = lab_env_open();
    const hd_env *env = lab_env_of(world);
    lab_env_fail_from(world, 1);
    for (int i = 0; i < 5; i++) assert_null(env_new(env, 10));
    lab_env_fail_from(world, 0);
    void *a = env_new(env, 10);
    assert_non_null(a);
    env_free(env, a, 10);
    lab_env_close(world);
}

static void three_allocations(lab_env *world, void *ctx) {
    const hd_env *env = lab_env_of(world);
    unsigned *runs = ctx;
    void *blocks[3];
    ++*runs;
    for (size_t i = 0; i < 3; i++) blocks[i] = env_new(env, 8 * (i + 1));
    if (!lab_env_failed(world))
        for (size_t i = 0; i < 3; i++) assert_non_null(blocks[i]);
    for (size_t i = 0; i < 3; i++) env_free(env, blocks[i], 8 * (i + 1));
}

static void the_failure_loop_fails_each_allocation_in_turn(void **state) {
    unsigned runs = 0;
    assert_int_equal(lab_each_allocation_failure(three_allocations, &runs), 3);
    assert_int_equal(runs, 2 * 3 + 1);
}

/* Characters of one, two, three and four bytes. */
static void a_text_is_cut_between_two_characters(void **state) {
    static const char text[] = "a\u00e4\u20ac\U0001F389bcd";
    static const size_t ends[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11 }; /* before `size` - 4 */
    for (size_t size = 4; size < 4 + sizeof ends / sizeof *ends; size++) {
        char cut[20], expected[20];
        snprintf(cut, size, "%s", text);
        env_end_cut(cut, size);
        snprintf(expected, sizeof expected, "%.*s...", (int)ends[size - 4], text);
        assert_string_equal(cut, expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_systems_memory_keeps_its_contents_when_resized),
        cmocka_unit_test(the_systems_memory_keeps_its_contents_whatever_its_size),
        cmocka_unit_test(the_systems_clocks_run_and_its_random_bytes_differ),
        cmocka_unit_test(an_array_whose_size_overflows_is_refused),
        cmocka_unit_test(what_the_opener_leaves_out_is_the_systems),
        cmocka_unit_test(a_log_line_is_one_line),
        cmocka_unit_test(an_error_is_filled_whole_and_may_be_null),
        cmocka_unit_test(a_text_is_cut_between_two_characters),
        cmocka_unit_test(virtual_time_moves_only_when_told),
        cmocka_unit_test(a_seed_repeats),
        cmocka_unit_test(random_numbers_below_n_cover_the_range),
        cmocka_unit_test(the_nth_allocation_fails_and_only_that_one),
        cmocka_unit_test(memory_can_run_out_for_good),
        cmocka_unit_test(the_failure_loop_fails_each_allocation_in_turn),
    };
    return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
