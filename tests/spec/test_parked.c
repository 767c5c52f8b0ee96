/* test_parked.c -- runs that are cut short: by an interrupt, or because nothing can go on with them. */
#include "spec.h"

/* What a node does in its next run. */
typedef struct plan {
    enum { RUN, INTERRUPT, SUSPEND } now;
    hd_run *run;
} plan;

static hd_status follow(lab_node *self, hd_tx *tx) {
    plan *p = self->data;
    double n = lab_tx_number(self, tx, "n");
    hd_status status = lab_tx_put(self, tx, "d", n);
    if (p->now == INTERRUPT) {
        assert_int_equal(hd_runtime_park(lab_runtime_now(l)), HD_OK);
        return HD_FAILED; /* does not count */
    }
    if (p->now == SUSPEND && !status) status = hd_tx_suspend(tx, &p->run);
    return status || p->now == RUN ? status : HD_PENDING;
}

static void begin(plan *p, double n) {
    lab_catch(l);
    lab_set(l, "n", n);
    lab_add(l, .name = "d", .body = follow, .data = p);
    lab_effect(l, "show", "d");
    lab_effect(l, "other", "n");
}

static void unpark(void) {
    hd_runtime_unpark(lab_runtime_now(l));
    lab_settle(l);
}

/* C381: nothing downstream runs on a value that is out of date; the rest goes on. */
static void an_interrupted_run_does_not_count_and_its_node_runs_again(void **state) {
    plan p = { .now = INTERRUPT };
    begin(&p, 1);
    lab_settle(l);
    assert_ran(l, "d other");
    assert_int_equal(hd_runtime_settle(lab_runtime_now(l)), HD_UNSETTLED);
    p.now = RUN;
    unpark();
    assert_ran(l, "d show");
    assert_json(l, "d", "1");
    assert_string_equal(lab_failures(l), "");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_json(l, "d", "2");
}

/* C381: the pump runs no other node. */
static void an_interrupt_ends_the_pump(void **state) {
    plan p = { .now = INTERRUPT };
    begin(&p, 1);
    (void)hd_runtime_pump(lab_runtime_now(l));
    assert_ran(l, "d");
}

/* C381: a change of what it reads does not make it run before hd_runtime_unpark. */
static void a_parked_run_is_left_alone(void **state) {
    plan p = { .now = SUSPEND };
    begin(&p, 1);
    lab_turn(l);
    hd_run_park(p.run);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "other");
    p.now = RUN;
    unpark();
    assert_ran(l, "d show");
    assert_json(l, "d", "2");
}

/* C381: of the removed node nothing is left, and what waited for it goes on. */
static void a_parked_node_can_be_removed(void **state) {
    plan p = { .now = INTERRUPT };
    begin(&p, 1);
    lab_settle(l);
    lab_ran(l);
    lab_cancel(l, "d");
    lab_settle(l);
    assert_ran(l, "show");
    assert_int_equal(hd_runtime_settle(lab_runtime_now(l)), HD_OK);
    unpark();
}

/* C382: as if the process had been killed. */
static void a_run_that_is_parked_at_the_end_is_made_by_the_next_start(void **state) {
    plan p = { .now = RUN };
    if (!lab_is_shared(l)) skip();
    begin(&p, 1);
    lab_settle(l);
    p.now = INTERRUPT;
    lab_set(l, "n", 2);
    lab_settle(l);
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    lab_ran(l);
    p.now = RUN;
    lab_add(l, .name = "d", .body = follow, .data = &p);
    lab_effect(l, "show", "d");
    lab_settle(l);
    assert_ran(l, "d show");
    assert_json(l, "d", "2");
}

static void outside_of_a_run_nothing_can_be_parked(void **state) {
    lab_compute(l, "d", "n", NULL);
    assert_int_equal(hd_runtime_park(lab_runtime_now(l)), HD_USAGE);
    hd_runtime_unpark(lab_runtime_now(l));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(an_interrupted_run_does_not_count_and_its_node_runs_again),
        S(an_interrupt_ends_the_pump),
        S(a_parked_run_is_left_alone),
        S(a_parked_node_can_be_removed),
        S(a_run_that_is_parked_at_the_end_is_made_by_the_next_start),
        S(outside_of_a_run_nothing_can_be_parked),
    };
    LAB_EVERYWHERE(tests);
}
