/* test_sqlite_decode.c -- what is no message is refused, whatever it is instead. */
#include "lab.h"
#include "store/log/decode.h"
#include "store/log/encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static lab_env *env;
static hd_heap *heap;
static heads h;
static decoder d;
static uint32_t session;

static int open_decoder(void **state) {
    (void)state;
    env = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(env), NULL, &heap), HD_OK);
    assert_int_equal(heads_init(&h, lab_env_of(env), heap), HD_OK);
    assert_int_equal(heads_session(&h, (const uint8_t[16]){ 1 }, &session), HD_OK);
    decoder_init(&d, &h, lab_env_of(env));
    return 0;
}

static int close_decoder(void **state) {
    (void)state;
    heads_check(&h);
    decoder_fini(&d);
    heads_fini(&h);
    hd_heap_close(heap);
    lab_env_close(env);
    return 0;
}

/* In a block of its own, so that a sanitiser sees every byte that is read behind its end. */
static hd_status decode(const void *bytes, size_t size, size_t *used) {
    char *own = calloc(1, size ? size : 1);
    candidate work;
    if (size) memcpy(own, bytes, size);
    *used = 0;
    hd_status status = decode_message(&d, session, own, size, &work, used);
    decoder_reset(&d);
    free(own);
    return status;
}

static hd_status decode_sizes(uint32_t whole, uint32_t fragment, size_t given) {
    char bytes[64] = { 0 };
    size_t used;
    memcpy(bytes, &whole, sizeof whole);
    memcpy(bytes + sizeof whole, &fragment, sizeof fragment);
    return decode(bytes, given, &used);
}

static void sizes_that_do_not_fit_are_refused(void **state) {
    (void)state;
    assert_int_equal(decode_sizes(8, 0, 0), HD_PROTOCOL);
    assert_int_equal(decode_sizes(8, 0, 7), HD_PROTOCOL);
    assert_int_equal(decode_sizes(0, 0, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(0, 4, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(MESSAGE_HEADER - 1, 0, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(17, 0, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(UINT32_MAX, 0, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(16, 9, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(16, UINT32_MAX, 16), HD_PROTOCOL);
    assert_int_equal(decode_sizes(16, 8, 16), HD_PROTOCOL); /* nothing between head and fragment */
}

/* The least message: local seq 1, nothing settled, no space, document, write, claim, precondition. */
static void each_part_of_a_message_is_needed(void **state) {
    (void)state;
    char bytes[MESSAGE_HEADER + 16] = { 0 };
    size_t used = 0;
    hd_status status = HD_PROTOCOL;
    bytes[MESSAGE_HEADER] = 1;
    for (uint32_t parts = 0; parts < 12; parts++) {
        uint32_t sizes[2] = { MESSAGE_HEADER + parts, 0 };
        memcpy(bytes, sizes, sizeof sizes);
        hd_status next = decode(bytes, sizes[0], &used);
        assert_true(next == HD_PROTOCOL || next == HD_OK);
        assert_true(status != HD_OK || next == HD_OK); /* what comes behind is not looked at */
        status = next;
    }
    assert_int_equal(status, HD_OK);
    assert_int_equal(used, MESSAGE_HEADER + 11);
}

static void noise_is_refused_or_taken_but_never_followed(void **state) {
    (void)state;
    lab_random r = lab_random_of(lab_seed());
    for (int round = 0; round < 20000; round++) {
        unsigned char bytes[96];
        uint32_t size =
            MESSAGE_HEADER + (uint32_t)lab_random_below(&r, sizeof bytes - MESSAGE_HEADER);
        /* Mostly small numbers: counts and indices that lead further in. */
        for (uint32_t i = 0; i < size; i++)
            bytes[i] = (unsigned char)lab_random_below(&r, lab_random_once_in(&r, 16) ? 256 : 4);
        uint32_t sizes[2] = { size, (uint32_t)lab_random_below(&r, size - MESSAGE_HEADER + 1) };
        memcpy(bytes, sizes, sizeof sizes);
        size_t used;
        hd_status status = decode(bytes, size, &used);
        assert_true(status == HD_OK || status == HD_PROTOCOL);
        assert_true(status || used == size);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, open_decoder, close_decoder)
    const struct CMUnitTest tests[] = {
        T(sizes_that_do_not_fit_are_refused),
        T(each_part_of_a_message_is_needed),
        T(noise_is_refused_or_taken_but_never_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
