/* test_surface_naive.c -- what a strict runtime takes for a write outside of the outputs, against the definition.
 *
 * A computation or materialiser declares up to three places, in two documents, at any depth; its run writes up to three
 * places. A write is inside if its place is a declared one or lies below one (4.3, C59, C65): the names of places are
 * compared, segment by segment. A run with a write outside is refused, and none of its writes is there afterwards. In a
 * runtime that is not strict all of them are, and as many are counted. Public headers only.
 *
 * HD_WORLDS is the number of worlds; HD_SEED repeats a run. */
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PLACES = 3, WORLDS = 2000, NAME = 48 };

typedef struct design {
    char declared[PLACES][NAME], written[PLACES][NAME];
    int declared_count, written_count;
    bool envelopes;
} design;

static hd_lab_random dice;
static uint32_t below(uint32_t n) { return (uint32_t)hd_lab_random_below(&dice, n); }

/* A document of two, and up to three segments of two letters. */
static void choose_place(char out[NAME]) {
    static const char *const segments[] = { "a", "b", "ab", "0" };
    int at = snprintf(out, NAME, "main/d%u", below(2));
    uint32_t depth = below(4);
    for (uint32_t i = 0; i < depth; i++)
        at += snprintf(out + at, NAME - (size_t)at, "%s%s", i ? "/" : "#/", segments[below(4)]);
}

static bool is_there(char places[PLACES][NAME], int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(places[i], name)) return true;
    return false;
}

static design choose(void) {
    design d = { .envelopes = below(3) == 0 };
    for (uint32_t n = 1 + below(PLACES); n > 0; n--) {
        choose_place(d.declared[d.declared_count]);
        if (!is_there(d.declared, d.declared_count, d.declared[d.declared_count]))
            d.declared_count++;
    }
    for (uint32_t n = 1 + below(PLACES); n > 0; n--) {
        char *to = d.written[d.written_count];
        const char *of = d.declared[below((uint32_t)d.declared_count)];
        if (below(2)) choose_place(to);
        else memcpy(to, of, NAME);
        if (below(4) == 0) strcat(to, strchr(to, '#') ? "/below" : "#/below");
        if (!is_there(d.written, d.written_count, to)) d.written_count++;
    }
    return d;
}

static bool is_below(const char *place, const char *of) {
    size_t n = strlen(of);
    return !strncmp(place, of, n) && (!place[n] || place[n] == '#' || place[n] == '/');
}

static int count_outside(const design *d) {
    int outside = 0;
    for (int i = 0; i < d->written_count; i++) {
        bool inside = false;
        for (int k = 0; k < d->declared_count; k++)
            inside |= is_below(d->written[i], d->declared[k]);
        outside += !inside;
    }
    return outside;
}

/* Each write makes an object that no other makes, so each changes something and fits what is there. */
static hd_status write_all(hd_tx *tx, void *ctx) {
    const design *d = ctx;
    hd_status status = HD_OK;
    for (int i = 0; i < d->written_count && !status; i++) {
        hd_cell cell = hd_cell_at(hd_tx_runtime(tx), d->written[i]);
        hd_value v = hd_object_set(hd_tx_pool(tx), hd_object(), "by", hd_int(NULL, i));
        status = hd_tx_set(tx, cell, v);
    }
    return status;
}

static void note_failure(const hd_failure *f, void *ctx) { *(hd_status *)ctx = f->status; }

static bool is_written(hd_runtime *rt, const design *d) {
    hd_pool *pool;
    bool any = false;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < d->written_count; i++)
        any |= hd_value_exists(hd_read(rt, pool, hd_cell_at(rt, d->written[i])));
    hd_pool_close(pool);
    return any;
}

static void world(uint64_t seed, bool strict) {
    dice = hd_lab_random_of(seed);
    design d = choose();
    hd_runtime *rt;
    hd_cell cells[PLACES];
    hd_status failed = HD_OK;
    hd_lab_env *env = hd_lab_env_open();
    hd_options options = { .env = hd_lab_env_of(env), .strict = strict };
    assert_int_equal(hd_open(NULL, &options, &rt, NULL), HD_OK);
    hd_runtime_on_error(rt, note_failure, &failed);
    for (int i = 0; i < d.declared_count; i++) cells[i] = hd_cell_at(rt, d.declared[i]);
    hd_node_spec spec = { .name = "n", .fn = write_all, .ctx = &d, .run_once = true };
    size_t count = (size_t)d.declared_count;
    if (d.envelopes) spec.envelopes = cells, spec.envelope_count = count;
    else spec.output = cells[0], spec.side_outputs = cells + 1, spec.side_output_count = count - 1;
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    hd_runtime_settle(rt);
    int outside = count_outside(&d);
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(rt, &stats);
    bool refused = strict && outside;
    if ((failed == HD_USAGE) != refused || (!refused && failed) || is_written(rt, &d) == refused ||
        (!strict && stats.outside_surface != (uint64_t)outside))
        fail_msg("HD_SEED=%llu HD_WORLDS=1: %s and %s declared, %s and %s written: %s, %d outside",
                 (unsigned long long)seed, d.declared[0], d.declared[1], d.written[0], d.written[1],
                 hd_status_name(failed), outside);
    assert_int_equal(hd_close(rt), HD_OK);
    hd_lab_env_close(env);
}

static void worlds(bool strict) {
    const char *given = getenv("HD_WORLDS");
    uint64_t first = hd_lab_seed(), count = given ? strtoull(given, NULL, 10) : WORLDS;
    for (uint64_t seed = first; seed < first + count; seed++) world(seed, strict);
}

/* C65 with hd_options.strict. */
static void a_strict_runtime_refuses_what_is_outside(void **state) { worlds(true); }
/* C65. */
static void others_count_what_is_outside(void **state) { worlds(false); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strict_runtime_refuses_what_is_outside),
        cmocka_unit_test(others_count_what_is_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
