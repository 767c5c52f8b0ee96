/* test_ordering.c -- area G: who runs before whom. */
#include "lab_sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* C137: of two adders the one that feeds the other runs first; alone if only its input changes. */
static void a_writer_runs_before_its_reader(void **state) {
    lab *l = lab_start();
    lab_compute(l, "adder2", "adder1 c", NULL); /* registered first, runs second */
    lab_compute(l, "adder1", "a b", NULL);
    lab_effect(l, "show", "adder2");
    lab_settle(l);
    assert_ran(l, "adder1 adder2 show");

    hd_tx *tx;
    assert_int_equal(hd_tx_begin(lab_runtime_now(l), &tx), HD_OK);
    lab_script(lab_on(l, "a"), tx, "set a 1; set c 10", NULL);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_settle(l);
    assert_ran(l, "adder1 adder2 show");
    assert_seen(l, "show", "11");

    lab_set(l, "c", 20);
    lab_settle(l);
    assert_ran(l, "adder2 show");
    lab_close(l);
}

/* C138: each hop of a chain runs once, in order, then the effect; whatever the order they came in. */
static void a_chain_runs_in_order(void **state) {
    lab *l = lab_start();
    lab_effect(l, "show", "d");
    lab_compute(l, "c", "b", NULL);
    lab_compute(l, "d", "c", NULL);
    lab_compute(l, "a", "n", NULL);
    lab_compute(l, "b", "a", NULL);
    lab_settle(l);
    assert_ran(l, "a b c d show");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "a b c d show");
    assert_seen(l, "show", "4");
    lab_close(l);
}

static void two_writers_of_one_cell(const char *first, const char *second) {
    lab *l = lab_start();
    lab_add(l, .name = "one", .reads = "a", .output = "out#/x");
    lab_add(l, .name = "two", .reads = "b", .output = "out#/x");
    lab_effect(l, "show", "out");
    lab_settle(l);
    assert_ran(l, "one two show");
    lab_set(l, first, 1);
    lab_set(l, second, 2);
    lab_settle(l);
    assert_ran(l, "one two show");
    lab_close(l);
}

/* C139: writers of one address that do not read each other run in order of registration, whichever
 * was invalidated first. */
static void writers_of_one_address_run_as_registered(void **state) {
    two_writers_of_one_cell("a", "b");
    two_writers_of_one_cell("b", "a");
}

/* C140: a node that becomes ready while others wait takes its place by registration. */
static void who_becomes_ready_queues_by_registration(void **state) {
    lab *l = lab_start();
    lab_compute(l, "first", "n", NULL);
    lab_effect(l, "second", "first");
    lab_effect(l, "third", "n");
    lab_effect(l, "fourth", "n");
    lab_settle(l);
    assert_ran(l, "first second third fourth");
    lab_set(l, "n", 1); /* second is not invalid yet, and still goes before third */
    lab_settle(l);
    assert_ran(l, "first second third fourth");
    lab_close(l);
}

/* A parent that makes "child" at its first run, and reads n. */
static hd_status make_child(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    const char *child = self->data;
    if (self->runs == 1)
        lab_add(self->l, .name = child, .reads = "n", .effect = true, .declares = "-");
    return HD_OK;
}

/* C141, C142: a parent runs before the child it makes, at first and whenever both are invalid. */
static void a_parent_runs_before_its_child(void **state) {
    lab *l = lab_start();
    lab_add(l, .name = "parent", .effect = true, .body = make_child, .data = "child");
    lab_settle(l);
    assert_ran(l, "parent child");
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "parent child");
    lab_close(l);
}

/* The same where the child was there first and is adopted. */
static void an_adopted_child_runs_after_its_parent(void **state) {
    lab *l = lab_start();
    lab_effect(l, "old", "n");
    lab_settle(l);
    lab_effect(l, "parent", "n");
    lab_add(l, .name = "child", .reads = "n", .effect = true, .parent = "parent");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "old parent child");
    lab_close(l);
}

static hd_status make_grandchild(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    if (self->runs == 1)
        lab_add(self->l, .name = "child", .reads = "n", .effect = true, .declares = "-");
    return HD_OK;
}
static hd_status make_parent(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    if (self->runs == 1)
        lab_add(self->l, .name = "parent", .effect = true, .body = make_grandchild);
    return HD_OK;
}

/* C143: grandparent, parent, child. */
static void generations_run_in_order(void **state) {
    lab *l = lab_start();
    lab_add(l, .name = "grandparent", .effect = true, .body = make_parent);
    lab_settle(l);
    assert_ran(l, "grandparent parent child");
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "grandparent parent child");
    lab_close(l);
}

static hd_status make_then_cancel(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    if (n == 0) lab_add(self->l, .name = "child", .reads = "n", .effect = true, .declares = "-");
    else lab_cancel(self->l, "child");
    return HD_OK;
}

/* C144: a child that its parent removes does not run, although it is invalid. */
static void a_removed_child_does_not_run(void **state) {
    lab *l = lab_start();
    lab_add(l, .name = "parent", .effect = true, .body = make_then_cancel);
    lab_settle(l);
    assert_ran(l, "parent child");
    lab_set(l, "n", 1);
    assert_false(lab_is_clean(l, "child"));
    lab_settle(l);
    assert_ran(l, "parent");
    assert_false(hd_node_exists(lab_runtime_now(l), lab_find(l, "child")->node));
    lab_close(l);
}

static hd_status make_and_read(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "n");
    if (self->runs == 1) lab_add(self->l, .name = "child", .reads = "n");
    lab_tx_number(self, tx, "child");
    return HD_OK;
}

/* C145: a parent that reads what its child writes runs after it: data goes before descent. */
static void data_goes_before_descent(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "parent", .effect = true, .body = make_and_read);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "child parent");
    lab_close(l);
}

/* C148, I9: a declared chain of any depth settles in one pass, each link run once; nothing is said
 * of not settling. */
static void a_deep_chain_settles_in_one_pass(void **state) {
    enum { DEPTH = 50 };
    lab *l = lab_start();
    char name[16], reads[16];
    for (int i = DEPTH; i > 0; i--) { /* the worst order of registration */
        snprintf(name, sizeof name, "c%d", i);
        snprintf(reads, sizeof reads, "c%d", i - 1);
        lab_compute(l, name, reads, NULL);
    }
    lab_effect(l, "show", "c50");
    lab_settle(l);
    hd_scheduler_stats before = lab_stats(l);
    lab_set(l, "c0", 7);
    lab_turn(l);
    hd_scheduler_stats after = lab_stats(l);
    assert_seen(l, "show", "7");
    assert_int_equal(after.runs - before.runs, DEPTH + 1);
    assert_int_equal(after.passes - before.passes, 1);
    assert_int_equal(after.exhausted, 0);
    for (int i = 1; i <= DEPTH; i++) {
        snprintf(name, sizeof name, "c%d", i);
        assert_int_equal(lab_find(l, name)->runs, 2);
    }
    assert_int_equal(lab_env_logged(lab_world(l), "does not settle"), 0);
    lab_close(l);
}

/* Reads n and writes twice that, as an effect: its commits can be refused. */
static hd_status write_double(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "twice", 2 * lab_tx_number(self, tx, "n"));
}

/* C149: upstream is refused and runs again: downstream runs for what was committed, and reads on. */
static void a_retry_upstream_keeps_downstream_right(void **state) {
    lab *l = lab_start();
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_add(l, .name = "up", .effect = true, .body = write_double);
    lab_compute(l, "down", "twice", NULL);
    lab_effect(l, "show", "down");
    lab_settle(l);
    assert_seen(l, "show", "2");
    lab_ran(l);

    lab_write(b, "n", "5");
    lab_hold(a); /* a does not hear of it */
    lab_write(a, "m", "0");
    lab_set(l, "n", 3); /* runs and commits on what is about to be refused */
    lab_turn(l);
    assert_seen(l, "show", "6");
    lab_pump(b);
    lab_mend(a);
    lab_settle(l);
    assert_string_equal(lab_json(l, "twice"), lab_get(l, "n") == 5 ? "10" : "6");
    assert_seen(l, "show", lab_json(l, "twice"));
    lab_ran(l);

    lab_set(l, "n", 8);
    lab_settle(l);
    assert_ran(l, "up down show");
    assert_seen(l, "show", "16");
    lab_close(l);
}

/* I9: in one pass nobody runs before a writer of what it reads; a diamond runs each node once. */
static void a_diamond_runs_each_node_once(void **state) {
    lab *l = lab_start();
    lab_compute(l, "sum", "left right", NULL);
    lab_effect(l, "show", "sum");
    lab_compute(l, "left", "n", NULL);
    lab_compute(l, "right", "mid", NULL);
    lab_compute(l, "mid", "n", NULL);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    const char *ran = lab_ran(l);
    assert_non_null(strstr(ran, "sum show"));
    assert_int_equal(strlen(ran), strlen("left mid right sum show"));
    assert_seen(l, "show", "6");
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_runs_before_its_reader),
        cmocka_unit_test(a_chain_runs_in_order),
        cmocka_unit_test(writers_of_one_address_run_as_registered),
        cmocka_unit_test(who_becomes_ready_queues_by_registration),
        cmocka_unit_test(a_parent_runs_before_its_child),
        cmocka_unit_test(an_adopted_child_runs_after_its_parent),
        cmocka_unit_test(generations_run_in_order),
        cmocka_unit_test(a_removed_child_does_not_run),
        cmocka_unit_test(data_goes_before_descent),
        cmocka_unit_test(a_deep_chain_settles_in_one_pass),
        cmocka_unit_test(a_retry_upstream_keeps_downstream_right),
        cmocka_unit_test(a_diamond_runs_each_node_once),
    };
    LAB_EVERYWHERE(tests);
}
