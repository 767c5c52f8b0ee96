/* Hashes: they depend on every byte and on the seed, and spread. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/hash.h"
#include "lab.h"
#include <string.h>

static void a_hash_depends_on_each_byte_and_on_the_seed(void **state) {
    lab_random r = lab_random_of(lab_seed());
    unsigned char bytes[300];
    lab_random_bytes(&r, bytes, sizeof bytes);
    for (size_t size = 1; size <= sizeof bytes; size += 7) {
        uint64_t hash = hash_bytes(bytes, size, 5);
        assert_int_equal(hash_bytes(bytes, size, 5), hash);
        assert_int_not_equal(hash_bytes(bytes, size, 6), hash);
        for (size_t i = 0; i < size; i++) {
            bytes[i] ^= 1;
            assert_int_not_equal(hash_bytes(bytes, size, 5), hash);
            bytes[i] ^= 1;
        }
    }
}

static void each_bit_of_a_number_changes_half_of_its_hash(void **state) {
    lab_random r = lab_random_of(lab_seed());
    for (int bit = 0; bit < 64; bit++) {
        int flipped = 0;
        for (int i = 0; i < 1000; i++) {
            uint64_t x = lab_random_u64(&r);
            flipped += __builtin_popcountll(hash_u64(x) ^ hash_u64(x ^ (UINT64_C(1) << bit)));
        }
        assert_in_range(flipped, 30000, 34000);
    }
}

static void the_order_of_combining_matters(void **state) {
    assert_int_not_equal(hash_combine(1, 2), hash_combine(2, 1));
    assert_int_not_equal(hash_combine(0, 0), hash_combine(0, 1));
    assert_int_not_equal(hash_fold(hash_u64(1)), hash_fold(hash_u64(2)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hash_depends_on_each_byte_and_on_the_seed),
        cmocka_unit_test(each_bit_of_a_number_changes_half_of_its_hash),
        cmocka_unit_test(the_order_of_combining_matters),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
