/* test_heap.c -- pages and blocks, large memory, limits, interned keys. */
#include "value/heap.h"
#include "value/key.h"
#include "value/text.h"
#include "lab.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

static hd_heap *open_heap(lab_env *world) {
    hd_heap *heap = NULL;
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &heap), HD_OK);
    return heap;
}

static void close_heap(lab_env *world, hd_heap *heap) {
    heap_check(heap);
    hd_heap_close(heap);
    lab_env_close(world);
}

/* ---- Blocks ---- */

static void a_block_knows_its_heap(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *one = open_heap(world), *two = NULL;
    assert_int_equal(hd_heap_open(lab_env_of(world), NULL, &two), HD_OK);
    for (size_t size = 1; size <= HEAP_BLOCK_MAX; size += 13) {
        void *a = heap_alloc(one, size), *b = heap_alloc(two, size);
        assert_ptr_equal(heap_of(a), one);
        assert_ptr_equal(heap_of(b), two);
        assert_int_equal((uintptr_t)a % 8, 0);
        memset(a, 1, size);
        heap_free(a);
        heap_free(b);
    }
    hd_heap_close(two);
    close_heap(world, one);
}

static void blocks_do_not_overlap(void **state) {
    enum { N = 4000 };
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    lab_random random = lab_random_of(lab_seed());
    static struct {
        unsigned char *block;
        size_t size;
    } held[N];
    for (int round = 0; round < 40000; round++) {
        int i = (int)lab_random_below(&random, N);
        if (held[i].block) {
            for (size_t k = 0; k < held[i].size; k++) assert_int_equal(held[i].block[k], i & 0xFF);
            heap_free(held[i].block);
            held[i].block = NULL;
            continue;
        }
        held[i].size = lab_random_below(&random, HEAP_BLOCK_MAX) + 1;
        held[i].block = heap_alloc(heap, held[i].size);
        memset(held[i].block, i & 0xFF, held[i].size);
    }
    heap_check(heap);
    for (int i = 0; i < N; i++)
        if (held[i].block) heap_free(held[i].block);
    close_heap(world, heap);
}

static void empty_chunks_go_back(void **state) {
    enum { N = 100000 };
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    static void *held[N];
    size_t before = lab_env_bytes(world);
    for (int i = 0; i < N; i++) held[i] = heap_alloc(heap, 100);
    size_t full = lab_env_bytes(world);
    assert_true(full - before > N * 100);
    for (int i = 0; i < N; i++) heap_free(held[i]);
    assert_true(lab_env_bytes(world) - before < (full - before) / 4);
    close_heap(world, heap);
}

static void a_freed_block_is_the_next_to_be_used(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    void *keep = heap_alloc(heap, 64), *a = heap_alloc(heap, 64);
    heap_free(a);
    assert_ptr_equal(heap_alloc(heap, 60), a);
    heap_free(a);
    heap_free(keep);
    close_heap(world, heap);
}

static void large_memory_is_returned_with_the_heap(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    char *a = heap_large_new(heap, 5000);
    memset(a, 7, 5000);
    a = heap_large_resize(heap, a, 50000);
    assert_int_equal(a[4999], 7);
    heap_large_free(heap, heap_large_new(heap, 1));
    close_heap(world, heap); /* the lab would find a missing byte */
}

/* ---- Opening and closing ---- */

static void limits_have_defaults_and_caps(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    assert_int_equal(heap->limits.depth, 512);
    assert_int_equal(heap->limits.size, 256u << 20);
    hd_heap_close(heap);
    hd_limits wild = { .depth = 1000000, .size = SIZE_MAX };
    assert_int_equal(hd_heap_open(lab_env_of(world), &wild, &heap), HD_OK);
    assert_int_equal(heap->limits.depth, HEAP_DEPTH_MAX);
    close_heap(world, heap);
}

static void forgotten_values_are_reported_and_freed(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    hd_value v = text_make(heap, TAG_STRING, "never released", 14);
    char *rest;
    hd_value w = text_new(heap, TAG_BYTES, 100000, &rest);
    assert_true(value_exists(v) && value_exists(w));
    hd_heap_close(heap);
#ifndef NDEBUG /* others only free them */
    assert_int_equal(lab_env_logged(world, "2 blocks still referenced"), 1);
#endif
    lab_env_close(world);
}

static void open_in_little_memory(lab_env *world, void *ctx) {
    hd_heap *heap;
    hd_status status = hd_heap_open(lab_env_of(world), NULL, &heap);
    assert_int_equal(status, lab_env_failed(world) ? HD_NOMEM : HD_OK);
    assert_true((heap == NULL) == (status != HD_OK));
    hd_heap_close(heap);
}

static void opening_survives_every_allocation_failure(void **state) {
    assert_true(lab_each_allocation_failure(open_in_little_memory, NULL) > 3);
}

/* ---- Keys ---- */

static void equal_keys_are_one(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    struct key *a = key_intern(heap, "name", 4), *b = key_intern(heap, "name and more", 4);
    assert_ptr_equal(a, b);
    assert_string_equal(key_bytes(a), "name");
    assert_ptr_equal(key_find(heap, "name", 4), a);
    assert_null(key_find(heap, "nam", 3));
    key_unref(a);
    key_unref(b);
    close_heap(world, heap);
}

static void keys_may_be_long_empty_or_hold_zeros(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    static char bytes[5000];
    memset(bytes, 'x', sizeof bytes);
    size_t lengths[] = { 0, 1, 7, 8, 9, KEY_INLINE_MAX, KEY_INLINE_MAX + 1, sizeof bytes };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct key *k = key_intern(heap, bytes, lengths[i]);
        assert_int_equal(k->length, lengths[i]);
        assert_memory_equal(key_bytes(k), bytes, lengths[i]);
        assert_int_equal(key_bytes(k)[lengths[i]], 0);
        key_unref(k);
    }
    struct key *a = key_intern(heap, "a", 1), *zero = key_intern(heap, "a\0", 2);
    assert_ptr_not_equal(a, zero);
    assert_true(key_compare(a, zero) < 0 && key_compare(zero, a) > 0);
    key_unref(a);
    key_unref(zero);
    close_heap(world, heap);
}

static int by_bytes(const char *a, const char *b) {
    size_t an = strlen(a), bn = strlen(b);
    int c = memcmp(a, b, an < bn ? an : bn);
    return c ? c : (an > bn) - (an < bn);
}

static void keys_are_ordered_by_bytes(void **state) {
    static const char *const texts[] = { "",          "a",         "aa",       "ab",
                                         "b",         "1",         "10",       "2",
                                         "abcdefgh",  "abcdefghi", "abcdefgi", "abcdefg",
                                         "abcdefgha", "\xC3\xA4",  "~" };
    enum { N = sizeof texts / sizeof *texts };
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            struct key *a = key_intern(heap, texts[i], strlen(texts[i]));
            struct key *b = key_intern(heap, texts[j], strlen(texts[j]));
            int expected = by_bytes(texts[i], texts[j]), got = key_compare(a, b);
            assert_int_equal((got > 0) - (got < 0), (expected > 0) - (expected < 0));
            key_unref(a);
            key_unref(b);
        }
    close_heap(world, heap);
}

static void only_canonical_numbers_are_indices(void **state) {
    static const struct {
        const char *text;
        uint32_t index;
    } cases[] = { { "0", 0 },
                  { "17", 17 },
                  { "4294967294", 4294967294 },
                  { "4294967295", KEY_NO_INDEX },
                  { "99999999999", KEY_NO_INDEX },
                  { "07", KEY_NO_INDEX },
                  { "-1", KEY_NO_INDEX },
                  { "1.0", KEY_NO_INDEX },
                  { "", KEY_NO_INDEX },
                  { "a", KEY_NO_INDEX } };
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct key *k = key_intern(heap, cases[i].text, strlen(cases[i].text));
        assert_int_equal(k->index, cases[i].index);
        key_unref(k);
    }
    close_heap(world, heap);
}

static void endless_distinct_keys_need_bounded_memory(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    struct key *kept = key_intern(heap, "kept", 4);
    char text[32];
    for (int i = 0; i < 200000; i++) {
        int n = snprintf(text, sizeof text, "key number %d", i);
        key_unref(key_intern(heap, text, (size_t)n));
    }
    hd_heap_stats stats;
    hd_heap_stat(heap, &stats);
    assert_true(stats.keys < 1000);
    assert_true(stats.bytes < 1000000);
    assert_ptr_equal(key_find(heap, "kept", 4), kept);
    key_unref(kept);
    close_heap(world, heap);
}

static void held_keys_survive_without_a_reference(void **state) {
    enum { N = 3000 };
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    static struct key *keys[N];
    char text[32];
    keys_hold(heap);
    for (int i = 0; i < N; i++)
        keys[i] = key_intern_held(heap, text, (size_t)snprintf(text, sizeof text, "k%d", i));
    for (int i = 0; i < N; i++) {
        size_t n = (size_t)snprintf(text, sizeof text, "k%d", i);
        assert_ptr_equal(key_find(heap, text, n), keys[i]);
    }
    keys_release(heap);
    close_heap(world, heap);
}

static void keys_must_be_text(void **state) {
    lab_env *world = lab_env_open();
    hd_heap *heap = open_heap(world);
    struct key *k;
    assert_int_equal(key_make(heap, "\xFF", 1, &k), HD_SYNTAX);
    assert_null(key_find(heap, "\xFF", 1));
    assert_int_equal(key_make(heap, "\xC3\xA4", 2, &k), HD_OK);
    key_unref(k);
    close_heap(world, heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_knows_its_heap),
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(empty_chunks_go_back),
        cmocka_unit_test(a_freed_block_is_the_next_to_be_used),
        cmocka_unit_test(large_memory_is_returned_with_the_heap),
        cmocka_unit_test(limits_have_defaults_and_caps),
        cmocka_unit_test(forgotten_values_are_reported_and_freed),
        cmocka_unit_test(opening_survives_every_allocation_failure),
        cmocka_unit_test(equal_keys_are_one),
        cmocka_unit_test(keys_may_be_long_empty_or_hold_zeros),
        cmocka_unit_test(keys_are_ordered_by_bytes),
        cmocka_unit_test(only_canonical_numbers_are_indices),
        cmocka_unit_test(endless_distinct_keys_need_bounded_memory),
        cmocka_unit_test(held_keys_survive_without_a_reference),
        cmocka_unit_test(keys_must_be_text),
    };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
