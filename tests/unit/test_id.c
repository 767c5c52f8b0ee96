/* Causal ids: the same cause, the same id, everywhere and always. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "value_world.h"

#include <stdio.h>
#include <string.h>

#include <heddle/value.h>
#include "value/id.h"

static const char *id_of(world *w, const char *json, char out[HD_ID_SIZE]) {
    hd_value v = hd_json_parse(w->pool, json, strlen(json), NULL);
    assert_int_equal(hd_id_of(v, out), HD_OK);
    return out;
}

/* Computed outside, with b2sum -l 256 of the canonical text: ids are stored, so they never change. */
static void known_causes_have_known_ids(void **state) {
    world w = world_open();
    char id[HD_ID_SIZE];
    assert_string_equal(id_of(&w, "null", id), "~a_uaieeRdDjdsX-3PXQkPfVl6ucJaLWikM9fNWPXa-8");
    assert_string_equal(id_of(&w, "{ \"b\": [1, 2.50], \"a\": \"\\u00e9\" }", id),
                        "~fDe0IfRvG1ix8XwPaXbY4b18vUJwmpQgCDVCnCY9TTE");
    world_close(&w);
}

static void equal_causes_have_equal_ids(void **state) {
    world w = world_open();
    char a[HD_ID_SIZE], b[HD_ID_SIZE];
    assert_string_equal(id_of(&w, "{\"x\":1,\"y\":[2]}", a),
                        id_of(&w, "{\"y\": [2], \"x\": 1}", b));
    assert_string_equal(id_of(&w, "1e1", a), id_of(&w, "10.0", b));
    assert_string_not_equal(id_of(&w, "1", a), id_of(&w, "1.0", b));
    assert_string_not_equal(id_of(&w, "\"1\"", a), id_of(&w, "1", b));
    assert_string_not_equal(id_of(&w, "[]", a), id_of(&w, "{}", b));
    world_close(&w);
}

static void an_id_is_a_tilde_and_43_characters(void **state) {
    world w = world_open();
    char id[HD_ID_SIZE];
    for (int i = 0; i < 1000; i++) {
        char json[16];
        snprintf(json, sizeof json, "%d", i);
        id_of(&w, json, id);
        assert_int_equal(id[0], '~');
        assert_int_equal(strlen(id), 44);
        assert_int_equal(strspn(id + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                        "0123456789-_"),
                         43);
    }
    world_close(&w);
}

static void what_is_no_value_has_no_id(void **state) {
    char id[HD_ID_SIZE] = "x";
    assert_int_equal(hd_id_of((hd_value){ 0 }, id), HD_KIND);
    assert_string_equal(id, "");
    assert_int_equal(hd_id_of(hd_failed(HD_RANGE), id), HD_RANGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_causes_have_known_ids),
        cmocka_unit_test(equal_causes_have_equal_ids),
        cmocka_unit_test(an_id_is_a_tilde_and_43_characters),
        cmocka_unit_test(what_is_no_value_has_no_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
