/* test_workflow_naive.c -- random workflows, walked and stored, against a direct interpretation.
 *
 * A random program (workflow_programs.h) is interpreted as it stands; as IR it is walked, with its steps completed in a
 * random order, and is now and then dropped from memory and loaded from its document. Both must end with the same
 * result or the same exception, having called actions with the same arguments equally often (W1, W4), and be at rest
 * with something to wait for in between (W2, W3, asserted by instance_check). */
#define _DEFAULT_SOURCE
#include "workflow_document.h"
#include "workflow_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static long steps, loads, fails, skipped;

/* ---- the engine's part */

static strand *pick_strand(const instance *in) {
    strand *found = NULL;
    int seen = 0;
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        bool waits = s->state == STRAND_READY || s->state == STRAND_SLEEPING;
        if (waits && roll(++seen) == 0) found = s;
    }
    return found;
}

static hd_status complete(instance *in, strand *s) {
    bool failed;
    ev v;
    if (s->state == STRAND_SLEEPING) return walk_result(in, s, ev_none());
    int64_t x = hd_value_as_int(hd_value_index(s->args, 0), -1);
    assert_in_range(x, 0, ARGUMENTS * 2 - 1);
    engine_calls[x % ARGUMENTS]++;
    int y = act((int)(x % ARGUMENTS), &failed);
    if (!failed) return walk_result(in, s, ev_int(y));
    (void)raise_f(w, CLASS_ValueError, "act(%d)", (int)x);
    v = raise_catch(w);
    return walk_raise(in, s, v);
}

static instance_status walk_all(plan *p, long input, long *result) {
    instance *in;
    doc_writer out = { NULL, apply };
    ev v0 = ev_int(input);
    document = hd_object();
    assert_int_equal(instance_open(w, p, &in), HD_OK);
    assert_int_equal(walk_begin(in, &v0), HD_OK);
    assert_int_equal(instance_save(in, &out), HD_OK);
    while (!instance_is_over(in)) {
        if (roll(3) == 0) in = load_again(in, p), loads++;
        strand *s = pick_strand(in);
        steps++;
        assert_non_null(s);
        assert_int_equal(complete(in, s), HD_OK);
        assert_int_equal(instance_save(in, &out), HD_OK);
    }
    instance_status status = in->status;
    *result = hd_value_as_int(hd_value_at(document, "result"), -1);
    assert_false(hd_value_exists(hd_value_at(document, "open")));
    instance_close(in);
    return status;
}

/* ---- */

static void compare(uint64_t seed) {
    hd_error error = { 0 };
    plan *p;
    long expected, result;
    bool raises;
    make_program(seed);
    long input = roll(ARGUMENTS);
    if (!interpret(input, &raises, &expected)) {
        skipped++;
        return;
    }
    emit_all(0);
    hd_value ir = hd_json_parse(pool, ir_text, ir_length, &error);
    if (!hd_value_exists(ir))
        fail_msg("seed %llu: %s at %zu", (unsigned long long)seed, error.message, error.offset);
    if (plan_make(w, heap, ir, &p, &error))
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, error.message, ir_text);
    instance_status status = walk_all(p, input, &result);
    plan_unref(p);
    fails += status == INSTANCE_FAILED;
    if (status != (raises ? INSTANCE_FAILED : INSTANCE_DONE) || (!raises && result != expected))
        fail_msg("seed %llu: status %d, result %ld instead of %ld\n%s", (unsigned long long)seed,
                 status, result, expected, ir_text);
    if (memcmp(naive_calls, engine_calls, sizeof naive_calls) != 0)
        fail_msg("seed %llu: other actions\n%s", (unsigned long long)seed, ir_text);
    hd_pool_clear(pool);
}

/* W1, W4: a workflow means what its statements mean, in whatever order steps complete and however often it
 * is loaded from its document. */
static void random_workflows_mean_what_they_say(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_WORKFLOWS");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    long n = given ? 1 : count ? atol(count) : 5000;
    print_message("seeds %llu to %llu\n", (unsigned long long)seed,
                  (unsigned long long)(seed + (uint64_t)n - 1));
    for (long i = 0; i < n; i++) compare(seed++ * 7919);
    print_message("%ld steps, %ld loads, %ld failed, %ld too long\n", steps, loads, fails, skipped);
    assert_true(n < 1000 || (steps > n && loads > n / 4 && fails > n / 20 && fails < n * 19 / 20 &&
                             skipped < n / 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_workflows_mean_what_they_say, open_world,
                                        close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
