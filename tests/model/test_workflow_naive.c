/* test_workflow_naive.c -- random workflows, walked and stored, against a direct interpretation.
 *
 * A random program (workflow_programs.h) is interpreted as it stands; as IR it is walked, with its steps completed in a
 * random order, and is now and then dropped from memory and loaded from its document. Both must end with the same
 * result or the same exception, having called actions with the same arguments equally often (W1, W4), and be at rest
 * with something to wait for in between (W2, W3, asserted by instance_check). */
#define _DEFAULT_SOURCE
#include "workflow_document.h"
#include "workflow_programs.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static long steps, loads, fails, skipped, cancelled;

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
    assert_int_equal(instance_open(w, p, &steps_begun, &in), HD_OK);
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

/* ---- cancelling */

/* The step that is completed next depends on the seed and the numbers of the steps alone, so that two walks of one seed
 * take the same way. */
static strand *choose_strand(const instance *in, uint64_t seed) {
    strand *found = NULL;
    uint64_t best = 0;
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state != STRAND_READY && s->state != STRAND_SLEEPING) continue;
        uint64_t rank = hash_combine(hash_combine(seed, s->number), s->step);
        if (!found || rank > best) found = s, best = rank;
    }
    return found;
}

#define CANCELLED_STEPS_MAX 2000

/* Cancels the instance after so many steps, and again in its clean-up. `reload`: it is loaded from its document before
 * each step. */
static const char *walk_cancelled(plan *p, long input, uint64_t seed, int after, bool reload) {
    instance *in;
    doc_writer out = { NULL, apply };
    ev v0 = ev_int(input);
    document = hd_object();
    assert_int_equal(instance_open(w, p, &steps_begun, &in), HD_OK);
    assert_int_equal(walk_begin(in, &v0), HD_OK);
    assert_int_equal(instance_save(in, &out), HD_OK);
    for (int i = 0; i < CANCELLED_STEPS_MAX && !instance_is_over(in); i++) {
        if (reload) in = load_again(in, p);
        strand *s = choose_strand(in, seed);
        assert_non_null(s);
        bool cancels = i == after || i == after + 2;
        hd_status status = cancels ? walk_cancel(in) : complete(in, s);
        if (status)
            fail_msg("seed %llu, step %d: %s\n%s", (unsigned long long)seed, i,
                     hd_status_name(status), ir_text);
        assert_int_equal(instance_save(in, &out), HD_OK);
    }
    instance_close(in);
    hd_value end[] = { hd_value_at(document, "status"), hd_value_at(document, "result"),
                       hd_value_at(document, "error"), hd_value_at(document, "next") };
    for (int i = 0; i < 4; i++)
        if (!hd_value_exists(end[i])) end[i] = hd_null();
    return hd_json_print(pool, hd_array_of(pool, end, 4), HD_JSON_COMPACT, NULL);
}

/* The barriers of the program get this mode. */
static void set_mode(const char *mode) {
    static const char before[] = "\"mode\":\"ordered\"";
    for (char *at = ir_text; (at = strstr(at, before)); at++) {
        char after[sizeof before + 1];
        int length = snprintf(after, sizeof after, "\"mode\":\"%s\"", mode);
        memset(at, ' ', sizeof before - 1);
        memcpy(at, after, (size_t)length);
    }
}

static void compare_cancelled(uint64_t seed) {
    static const char *const modes[] = { "all", "group", "settled", "ordered", "first" };
    hd_error error = { 0 };
    plan *p;
    long unused;
    bool raises;
    make_program(seed);
    long input = roll(ARGUMENTS);
    int after = roll(12);
    if (!interpret(input, &raises, &unused)) return;
    emit_all(0);
    set_mode(modes[roll(5)]);
    hd_value ir = hd_json_parse(pool, ir_text, ir_length, &error);
    if (plan_make(w, heap, ir, &p, &error))
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, error.message, ir_text);
    const char *one = walk_cancelled(p, input, seed, after, false);
    const char *other = walk_cancelled(p, input, seed, after, true);
    cancelled += strstr(one, "\"cancelled\"") != NULL;
    if (strcmp(one, other) != 0)
        fail_msg("seed %llu, cancelled after %d: loaded from its document it ends as\n%s\nelse "
                 "as\n%s\n%s",
                 (unsigned long long)seed, after, other, one, ir_text);
    plan_unref(p);
    hd_pool_clear(pool);
}

/* The document says that an instance is being cancelled, and what was done so far: however often the instance is loaded
 * again, it ends the same. */
static void cancelled_workflows_end_the_same_when_they_are_loaded(void **state) {
    const char *given = getenv("HD_SEED"), *count = getenv("HD_WORKFLOWS");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    long n = given ? 1 : count ? atol(count) : 3000;
    for (long i = 0; i < n; i++) compare_cancelled(given ? seed : seed++ * 7919);
    print_message("%ld cancelled of %ld\n", cancelled, n);
    assert_true(n < 1000 || cancelled > n / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_workflows_mean_what_they_say, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(cancelled_workflows_end_the_same_when_they_are_loaded,
                                        open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
