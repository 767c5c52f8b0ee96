/* test_overlay.c -- derived state: written in place, sealed, refused. A small observer stands for the
 * scheduler. */
#include "lab_store.h"
#include "store/overlay.h"
#include "store/runtime.h"
#include "store/tx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static lab *l;
static lab_runtime *a, *b;

/* What the observer of runtime a was told, and what it answers. */
static struct {
    bool clean;        /* whether the node behind the outputs can vouch */
    const char *reads; /* what it read: claimed by the seal */
    int unsealed;
} node;

static bool vouch(void *ctx, place_id doc, commit *c, struct key **by, hd_status *status) {
    replica *r = ctx;
    if (!node.clean) return false;
    if (node.reads) *status = tx_claim(r, c, lab_cell(a, node.reads).id);
    return !*status;
}
static void unseal(void *ctx, const commit *c, const doc_write *of, hd_status status) {
    node.unsealed++;
}

static int open_two(void **state) {
    l = lab_open_with((lab_options){ .kind = LAB_MEMORY });
    a = lab_runtime_open(l, "a");
    b = lab_runtime_open(l, "b");
    replica *r = lab_replica(a);
    r->observer.ctx = r;
    r->observer.vouch = vouch;
    r->observer.unseal = unseal;
    memset(&node, 0, sizeof node);
    node.clean = true;
    return 0;
}
static int close_all(void **state) {
    node.clean = true;
    lab_close(l);
    return 0;
}

static bool output(const char *name, int64_t i) {
    bool changed;
    place_id doc = lab_cell(a, name).id;
    assert_status(overlay_write(lab_replica(a), doc, hd_int(NULL, i), 0, 1, &changed), HD_OK);
    lab_check(a);
    return changed;
}

static void an_output_is_visible_at_once_and_not_stored(void **state) {
    assert_true(output("out", 1));
    assert_heard(a, "commit out=1");
    assert_false(output("out", 1)); /* the same again wakes nobody */
    assert_heard(a, "");
    assert_int_equal(lab_replica(a)->pending_count, 0);
    assert_cell(a, "out", "1");
    assert_cell(b, "out", "-");
}

static void outputs_are_sealed_into_one_commit(void **state) {
    output("out", 1);
    output("other", 2);
    output("out", 3);
    lab_heard(a);
    lab_settle(l);
    assert_heard(a, ""); /* visible already */
    assert_int_equal(lab_arrived(l), 1);
    assert_cell(b, "out", "3");
    assert_cell(b, "other", "2");
    assert_false(overlay_is_open(lab_replica(a), lab_cell(a, "out").id));
}

/* A commit takes an output's place, and the node writes it again: it stands once in the seal. */
static void an_output_that_was_covered_is_sealed_once(void **state) {
    replica *r = lab_replica(a);
    node.clean = false;
    for (int i = 1; i <= 5; i++) {
        output("out", 2 * i);
        lab_dof(a, "set out %d", 2 * i + 1);
    }
    output("out", 100);
    assert_status(overlay_seal(r, false), HD_OK); /* nothing can be sealed now */
    assert_int_equal(r->unsealed.count, 1);
    node.clean = true;
    lab_settle(l);
    assert_int_equal(r->unsealed.count, 0);
    assert_cell(b, "out", "100");
}

static void the_output_of_an_invalid_node_waits(void **state) {
    node.clean = false;
    output("out", 1);
    lab_settle(l);
    assert_int_equal(lab_arrived(l), 0);
    node.clean = true;
    lab_settle(l);
    assert_cell(b, "out", "1");
}

static void a_refused_seal_takes_the_outputs_back(void **state) {
    lab_do(b, "set in 1");
    lab_settle(l);
    assert_cell(a, "in", "1");
    node.reads = "in";
    output("out", 1);
    lab_do(b, "set in 2");
    lab_pump(b);
    assert_status(overlay_seal(lab_replica(a), false), HD_OK);
    lab_heard(a);
    lab_pump(a);
    assert_heard(a, "integrate in=2; revert out=-");
    assert_int_equal(node.unsealed, 1);
    assert_cell(a, "out", "-");
}

static void assert_confirmed(const char *cell, int64_t n) {
    hd_value v = replica_confirmed(lab_replica(a), lab_cell(a, cell).id);
    assert_int_equal(hd_value_as_int(v, -1), n);
}

static void what_others_write_is_kept_beside_an_output(void **state) {
    lab_do(b, "set out 7");
    lab_settle(l);
    assert_cell(a, "out", "7");
    node.clean = false;
    output("out", 1);
    lab_do(b, "set out 8");
    lab_heard(a);
    lab_settle(l);
    assert_heard(a, ""); /* shadowed */
    assert_cell(a, "out", "1");
    assert_confirmed("out", 8);
    lab_check(a);
}

static void what_others_create_under_an_output_is_kept_too(void **state) {
    node.clean = false;
    output("out", 1);
    lab_do(b, "set out 8");
    lab_settle(l);
    assert_cell(a, "out", "1");
    assert_confirmed("out", 8);
    lab_check(a);
}

static void a_source_commit_seals_what_it_read(void **state) {
    output("out", 1);
    lab_fate *f = lab_do(a, "get out; set n 1");
    lab_pump(a);
    assert_fate(f, HD_OK);
    assert_int_equal(lab_arrived(l), 2); /* the seal first */
    lab_settle(l);
    assert_cell(b, "out", "1");
}

static void a_source_commit_that_read_an_unsealable_output_is_stale(void **state) {
    node.clean = false;
    output("out", 1);
    lab_fate *f = lab_do(a, "get out; set n 1");
    assert_status(f->begun, HD_STALE);
    assert_cell(a, "n", "-");
}

static void a_commit_over_an_output_is_above_it(void **state) {
    output("out", 1);
    lab_fate *f = lab_do(a, "set out 5");
    assert_cell(a, "out", "5");
    lab_settle(l);
    assert_fate(f, HD_OK);
    assert_cell(b, "out", "5");
}

/* Every allocation of a seal may fail: the outputs stay what they are. */
static void seal_without_memory(lab_env *world, void *ctx) {
    lab *w = lab_open_with((lab_options){ .world = world });
    hd_status status;
    lab_runtime *x = lab_runtime_try(w, "x", NULL, &status);
    lab_runtime *y = x ? lab_runtime_try(w, "y", NULL, &status) : NULL;
    if (y) {
        replica *r = lab_replica(x);
        r->observer.ctx = r;
        r->observer.vouch = vouch;
        bool changed;
        for (int i = 0; i < 12; i++) {
            char name[16];
            snprintf(name, sizeof name, "out%d", i);
            hd_cell cell = lab_cell(x, name);
            if (cell.id) overlay_write(r, cell.id, hd_int(NULL, 1), 0, 1, &changed);
            lab_check(x);
        }
        overlay_seal(r, false);
        lab_check(x);
        lab_pump(x);
    }
    lab_close(w);
}

static void a_seal_survives_every_failed_allocation(void **state) {
    node.clean = true;
    node.reads = NULL;
    assert_true(lab_each_allocation_failure(seal_without_memory, NULL) > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_two, close_all)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_output_is_visible_at_once_and_not_stored),
        T(outputs_are_sealed_into_one_commit),
        T(an_output_that_was_covered_is_sealed_once),
        T(the_output_of_an_invalid_node_waits),
        T(a_refused_seal_takes_the_outputs_back),
        T(what_others_write_is_kept_beside_an_output),
        T(what_others_create_under_an_output_is_kept_too),
        T(a_source_commit_seals_what_it_read),
        T(a_source_commit_that_read_an_unsealable_output_is_stale),
        T(a_commit_over_an_output_is_above_it),
        cmocka_unit_test(a_seal_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
