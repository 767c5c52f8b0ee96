/* JSON pointers into a buffer: escaped, and cut where they do not fit. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/pointer.h"
#include <string.h>

static void keys_and_indices_are_joined_and_escaped(void **state) {
    char out[64];
    pointer p = pointer_begin(out, sizeof out);
    pointer_end(&p);
    assert_string_equal(out, "");
    pointer_key(&p, "items", 5);
    pointer_index(&p, 12);
    pointer_key(&p, "a/b~c", 5);
    pointer_key(&p, "", 0);
    pointer_end(&p);
    assert_string_equal(out, "/items/12/a~1b~0c/");
}

static void what_does_not_fit_ends_in_dots(void **state) {
    char out[16];
    for (size_t length = 0; length < 40; length++) {
        pointer p = pointer_begin(out, sizeof out);
        pointer_key(&p, "0123456789012345678901234567890123456789", length);
        pointer_end(&p);
        assert_int_equal(strlen(out), length + 1 < sizeof out ? length + 1 : sizeof out - 1);
        assert_string_equal(out + sizeof out - 4, length < 15 ? out + sizeof out - 4 : "...");
    }
}

/* Characters of two and three bytes are kept whole or left out. */
static void a_cut_never_splits_a_character(void **state) {
    const char text[] = "\u00e9\u20ac\u00e9\u20ac\u00e9\u20ac";
    for (size_t size = 4; size < 20; size++) {
        char out[20];
        pointer p = pointer_begin(out, size);
        pointer_key(&p, text, strlen(text));
        pointer_end(&p);
        size_t length = strlen(out);
        if (length < 3 || strcmp(out + length - 3, "...") != 0) continue;
        size_t kept = length - 3; /* of "/" and text */
        assert_true(kept == 0 || ((unsigned char)text[kept - 1] & 0xC0) != 0x80);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_indices_are_joined_and_escaped),
        cmocka_unit_test(what_does_not_fit_ends_in_dots),
        cmocka_unit_test(a_cut_never_splits_a_character),
    };
    return cmocka_run_group_tests_name("pointer", tests, NULL, NULL);
}
