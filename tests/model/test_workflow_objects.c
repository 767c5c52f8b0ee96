/* test_workflow_objects.c -- lists, dicts and sets of an instance are stored by change.
 *
 * A random program changes a list, dicts with keys of several kinds and a set, and waits between some of the changes.
 * One run is loaded from its document at each wait, the other never: both must end with the same objects in the same
 * order. And a loop that adds to an object writes as much in its hundredth iteration as in its tenth. */
#define _DEFAULT_SOURCE
#include "workflow_document.h"
#include <heddle/workflow_build.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static strand *waiting(const instance *in) {
    LIST_FOR (n, &in->strands) {
        strand *s = LIST_ENTRY(n, strand, link);
        if (s->state == STRAND_READY) return s;
    }
    return NULL;
}

enum { STEPS_MAX = 1000 };
static size_t sizes[STEPS_MAX]; /* written by the nth step */

/* The result as JSON. */
static const char *run(plan *p, bool reloads) {
    instance *in;
    doc_writer out = { NULL, apply };
    document = hd_object();
    assert_int_equal(instance_open(w, p, &steps_begun, &in), HD_OK);
    assert_int_equal(walk_begin(in, NULL), HD_OK);
    assert_int_equal(instance_save(in, &out), HD_OK);
    for (int i = 0; !instance_is_over(in); i++) {
        if (reloads) in = load_again(in, p);
        assert_int_equal(walk_result(in, waiting(in), ev_int(i)), HD_OK);
        written = 0;
        assert_int_equal(instance_save(in, &out), HD_OK);
        if (i < STEPS_MAX) sizes[i] = written;
    }
    instance_close(in);
    return hd_json_print(pool, document, HD_JSON_COMPACT, NULL);
}

static plan *plan_of(hd_flow *f) {
    hd_value ir;
    plan *p = NULL;
    hd_error error = { 0 };
    if (hd_flow_ir(f, &ir, &error) || plan_make(w, heap, ir, &p, &error))
        fail_msg("%s", error.message);
    hd_flow_close(f);
    return p;
}

/* ---- random changes */

/* %d stands for a small number that is drawn. */
static const char *const changes[] = {
    "d['k%d'] = %d",
    "d['k%d'] = [%d]",
    "d['$keys'] = %d",
    "d['\xc3\xa9%d'] = %d",
    "d.pop('k%d', %d)",
    "d.setdefault('m%d', []).append(%d)",
    "d.update({'b%d': %d, 'a%d': %d})",
    "o['%d'] = %d",
    "o['z%d'] = %d",
    "o.pop('z%d', %d)",
    "n[%d] = %d",
    "n[%d] = {'in': %d}",
    "n[(%d, 'x')] = %d",
    "n.pop(%d, %d)",
    "n['s%d'] = %d",
    "s.add(%d); s.discard(%d)",
    "s.add('x%d'); s.add(%d)",
    "l.append(%d); l.append([%d])",
    "l[len(l) // 2] = %d if l and len(l) > 3 else %d",
    "l.insert(%d, %d)",
    "d.clear(); d['a'] = %d",
    "n = {}; n[%d] = %d",
    "l.extend([d.get('k%d'), %d])",
    "q.extend(range(%d, 40))",
    "q[5:] = []",
    "q.append({'q': %d})",
    "q.pop(0) if q else %d",
    "q.pop(0) if len(q) > %d else 0",
    "q.pop() if len(q) > %d else 0",
    "del q[%d:%d]",
    "del q[:%d]",
    "q[0] = %d",
    "b.update(range(%d, 30))",
    "b.pop() if b else 0",
    "b.discard(%d); b.discard(%d); b.discard(%d)",
    "b.add(None)",
    "n.update({i: [i] for i in range(%d, 20)})",
    "n.popitem() if n else 0",
    "n.pop(%d, 0); n.pop(1%d, 0)",
    "d.update({str(99 - i): i for i in range(%d, 20)})",
    "d.popitem() if d else 0",
    "d.pop('9%d', 0); d.pop('8%d', 0)",
};
enum { CHANGES = sizeof changes / sizeof *changes };

static void add_change(hd_flow *f, lab_random *r) {
    char line[200];
    uint64_t which = lab_random_below(r, CHANGES);
    if (which == 18) hd_flow_if(f, "l");
    if (which == 20 && lab_random_below(r, 4)) return;
    if (which == 24 && lab_random_below(r, 2)) return;
    if (which == 31) hd_flow_if(f, "q");
    int a[4];
    for (int i = 0; i < 4; i++) a[i] = (int)lab_random_below(r, 12);
    snprintf(line, sizeof line, changes[which], a[0], a[1], a[2], a[3]);
    hd_flow_do(f, line);
    if (which == 18 || which == 31) hd_flow_end(f);
}

static plan *random_plan(uint64_t seed) {
    hd_flow *f;
    lab_random r = lab_random_of(seed);
    assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
    hd_flow_do(f, "d = {}; o = {'0': 0}; n = {}; s = set(); l = []; l.append(d);"
                  "q = list(range(50)); b = set(range(20))");
    for (uint64_t waits = 2 + lab_random_below(&r, 12); waits-- > 0;) {
        for (uint64_t n = lab_random_below(&r, 5); n-- > 0;) add_change(f, &r);
        hd_flow_action(f, "x", "wait", NULL);
    }
    hd_flow_return(f, "[str(d), str(o), str(n), str(list(s)), str(l), d is l[0] if l else 0,"
                      " str(q), str(list(b))]");
    return plan_of(f);
}

/* W4: what is loaded is what was saved, whichever changes were stored as such. */
static void random_changes_are_what_they_were_when_loaded(void **state) {
    uint64_t seed = lab_seed();
    const char *count = getenv("HD_WORKFLOWS");
    (void)state;
    for (long i = count ? atol(count) : 1000; i > 0; i--, seed++) {
        plan *p = random_plan(seed);
        const char *is = run(p, true), *should_be = run(p, false);
        if (strcmp(is, should_be) != 0)
            fail_msg("seed %llu:\n%s, not\n%s", (unsigned long long)seed, is, should_be);
        plan_unref(p);
        hd_pool_clear(pool);
    }
}

/* What one evaluation may make is bounded (0370); what an instance has, made by many, is stored and loaded. */
static void what_many_evaluations_have_made_is_stored(void **state) {
    static const char *const texts[] = { "'x' * 400000", "'\xc3\xa9' * 200000",
                                         "{'k' * 300000: 1}" };
    (void)state;
    w->limits.bytes = 1 << 20;
    for (int i = 0; i < 3; i++) {
        hd_flow *f;
        char line[80];
        assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
        hd_flow_do(f, "l = []");
        hd_flow_for(f, "i", "range(8)");
        snprintf(line, sizeof line, "l.append(%s)", texts[i]);
        hd_flow_do(f, line);
        hd_flow_end(f);
        hd_flow_action(f, "x", "wait", NULL);
        hd_flow_action(f, "x", "wait", NULL);
        hd_flow_return(f, "[len(l), len(l[7])]");
        plan *p = plan_of(f);
        assert_string_equal(run(p, true), run(p, false));
        assert_non_null(strstr(run(p, true), "\"result\":[8,"));
        plan_unref(p);
    }
}

/* ---- how much is written */

static void expect_flat(const char *before, const char *in_each) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
    hd_flow_do(f, before);
    hd_flow_for(f, "i", "range(100, 700)");
    hd_flow_do(f, in_each);
    hd_flow_action(f, "x", "wait", NULL);
    hd_flow_end(f);
    plan *p = plan_of(f);
    (void)run(p, false);
    plan_unref(p);
    if (sizes[550] > sizes[50] + 4)
        fail_msg("%s: %zu bytes, then %zu", in_each, sizes[50], sizes[550]);
    hd_pool_clear(pool);
}

/* Lessons, workflows 2: what an iteration writes does not grow with what the loop has gathered. */
static void iterations_write_what_they_add(void **state) {
    (void)state;
    expect_flat("a = []", "a.append(i)");
    expect_flat("a = []", "a.append({'n': i})");
    expect_flat("a = list(range(700))", "a[i] = -i");
    expect_flat("a = {}", "a[i] = i");
    expect_flat("a = {}", "a[str(i)] = i");
    expect_flat("a = {}", "a[str(799 - i)] = i"); /* in no order */
    expect_flat("a = {}", "a[(i, 'x')] = [i]");
    expect_flat("a = {i: 0 for i in range(700)}", "a[i] += 1");
    expect_flat("a = {str(i): 0 for i in range(700)}", "a[str(i)] += 1");
    expect_flat("a = {str(i): 0 for i in range(100, 700)}", "a.pop(str(i))");
    expect_flat("a = set()", "a.add(i)");
}

/* A workflow that works off what is in a list, a set or a dict writes as little for each. */
static void iterations_write_what_they_take(void **state) {
    (void)state;
    expect_flat("a = list(range(700))", "a.pop()");
    expect_flat("a = list(range(700))", "a.pop(0)");
    expect_flat("a = [{'n': i} for i in range(700)]", "a.pop(0)");
    expect_flat("a = list(range(700))", "a.append(a.pop(0) % 2)");
    expect_flat("a = set(range(700))", "a.pop()");
    expect_flat("a = set(range(100, 700))", "a.remove(i)");
    expect_flat("a = {i: 0 for i in range(100, 700)}", "a.pop(i)");
    expect_flat("a = {i: 0 for i in range(700)}", "a.popitem()");
    expect_flat("a = {str(799 - i): 0 for i in range(100, 700)}", "a.pop(str(i))");
    expect_flat("a = {str(799 - i): 0 for i in range(700)}", "a.popitem()");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(random_changes_are_what_they_were_when_loaded),
        TEST(what_many_evaluations_have_made_is_stored),
        TEST(iterations_write_what_they_add),
        TEST(iterations_write_what_they_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
