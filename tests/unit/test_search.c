/* Where a text stands in another: against a search that tries every place. */
#include "expr_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static ev text_of(world *w, const uint32_t *points, uint32_t count) {
    text_builder b = write_text(w);
    for (uint32_t i = 0; i < count; i++) write_point(&b, points[i]);
    return write_str(&b);
}

static bool stands_at(const text *hay, const text *needle, uint32_t at) {
    for (uint32_t i = 0; i < needle->count; i++)
        if (text_at(hay, at + i) != text_at(needle, i)) return false;
    return true;
}

static int64_t find_naive(const text *hay, const text *needle, uint32_t from, uint32_t to,
                          bool last) {
    int64_t found = -1;
    for (uint32_t i = from; i + needle->count <= to; i++)
        if ((last || found < 0) && stands_at(hay, needle, i)) found = i;
    return found;
}

/* Of few letters, often one piece many times over: what is hard for a search. */
static uint32_t draw(lab_random *r, uint32_t *out, uint32_t most, uint32_t letters,
                     uint32_t above) {
    uint32_t count = (uint32_t)lab_random_below(r, most + 1);
    uint32_t piece = 1 + (uint32_t)lab_random_below(r, most);
    for (uint32_t i = 0; i < count; i++) {
        bool again = i >= piece && lab_random_below(r, 20);
        out[i] = again ? out[i - piece] : 'a' + above + (uint32_t)lab_random_below(r, letters);
    }
    return count;
}

static void every_place_is_found_and_no_other(void **state) {
    expr_world x = expr_world_open(NULL);
    lab_random r = lab_random_of(lab_seed());
    (void)state;
    for (int n = 0; n < 200000; n++) {
        uint32_t chars[60], part[20], letters = 1 + (uint32_t)lab_random_below(&r, 3);
        uint32_t above = lab_random_below(&r, 3) ? 0 : 0x400;
        ev hay = text_of(x.w, chars, draw(&r, chars, 60, letters, above));
        ev needle = text_of(x.w, part,
                            draw(&r, part, lab_random_below(&r, 2) ? 5 : 20, letters,
                                 lab_random_below(&r, 20) ? above : 0));
        uint32_t to = (uint32_t)lab_random_below(&r, hay.text->count + 1);
        uint32_t from = (uint32_t)lab_random_below(&r, to + 1);
        assert_int_equal(text_find(hay.text, needle.text, from, to),
                         find_naive(hay.text, needle.text, from, to, false));
        assert_int_equal(text_find_last(hay.text, needle.text, from, to),
                         find_naive(hay.text, needle.text, from, to, true));
        world_sweep(x.w);
    }
    expr_world_close(&x);
}

/* One that compared the needle at each place would make 10^12 comparisons here. */
static void a_long_needle_costs_no_more_than_a_short_one(void **state) {
    expr_world x = expr_world_open(NULL);
    uint32_t n = 400000;
    (void)state;
    for (uint32_t letter = 'a'; letter < 1000; letter += 900) {
        text_builder b = write_text(x.w);
        for (int i = 0; i < 8; i++) write_fill(&b, letter, n - 1), write_point(&b, 'c');
        ev hay = write_str(&b);
        b = write_text(x.w);
        write_fill(&b, letter, n);
        write_point(&b, 'b');
        ev needle = write_str(&b);
        assert_int_equal(text_find(hay.text, needle.text, 0, hay.text->count), -1);
        assert_int_equal(text_find_last(hay.text, needle.text, 0, hay.text->count), -1);
    }
    expr_world_close(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_is_found_and_no_other),
        cmocka_unit_test(a_long_needle_costs_no_more_than_a_short_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
