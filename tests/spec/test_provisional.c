/* test_provisional.c -- area C: a run that creates a computation is itself evidence that somebody
 * wants it. That demand lasts until the creating pass and the first run are both over. */
#include "base/sabotage.h"
#include "spec.h"

static double twice(const double *in) { return 2 * in[0]; }

static hd_status create_child(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "go");
    if (self->runs == 1) lab_compute(self->l, "child", "n", twice);
    return HD_OK;
}

/* C51: a computation that an effect creates has run once when the pass ends, although nobody reads
 * it. */
static void a_child_runs_once_unread(void **state) {
    lab_set(l, "n", 2);
    lab_add(l, .name = "parent", .body = create_child, .effect = true);
    lab_settle(l);
    assert_ran(l, "parent child");
    assert_json(l, "child", "4");
    assert_false(lab_is_live(l, "child"));
    assert_false(lab_info(l, "child").provisional);
}

/* C52: nobody reads it, so a later change does not run it again. */
static void a_child_that_has_run_is_dormant(void **state) {
    lab_add(l, .name = "parent", .body = create_child, .effect = true);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_info(l, "child").status, HD_NODE_INVALID);
}

static hd_status create_grandchild(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_compute(self->l, "grandchild", "n", twice);
    return lab_tx_put(self, tx, "child", 1);
}

static hd_status create_generations(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_add(self->l, .name = "child", .body = create_grandchild);
    return HD_OK;
}

/* C51, C52: what a child creates in its one run runs as well, and all of it is dormant afterwards. */
static void demand_by_creation_is_passed_on(void **state) {
    lab_add(l, .name = "parent", .body = create_generations, .effect = true);
    lab_settle(l);
    assert_ran(l, "parent child grandchild");
    assert_false(lab_is_live(l, "child") || lab_is_live(l, "grandchild"));
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "");
}

/* C52: a dormant run is no evidence: what it creates waits to be demanded. */
static void a_child_created_outside_a_run_is_dormant(void **state) {
    lab_add(l, .name = "child", .reads = "n");
    lab_settle(l);
    assert_ran(l, "");
}

static hd_status create_reader(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_effect(self->l, "show", "child");
    return HD_OK;
}

/* C53: a child, and later in the same pass an effect that reads it: a change of its input runs it
 * again, because of that effect. */
static void a_reader_created_in_the_same_pass_takes_over(void **state) {
    lab_add(l, .name = "parent", .body = create_child, .effect = true);
    lab_add(l, .name = "other", .body = create_reader, .effect = true);
    lab_settle(l);
    assert_ran(l, "parent other child show");
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "child show");
    assert_seen(l, "show", "6");
}

static hd_status create_debounced(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_add(self->l, .name = "child", .reads = "n", .debounce_ms = 200);
    return HD_OK;
}

/* C54: idle waits for the gate of a child that is debounced, and the child runs exactly once. */
static void idle_waits_for_a_debounced_child(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "parent", .body = create_debounced, .effect = true);
    lab_settle(l);
    assert_ran(l, "parent");
    assert_true(lab_info(l, "child").provisional);
    assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_idle(l);
    assert_ran(l, "child");
    assert_true(lab_now_ms(l) >= 200);
    lab_settle(l);
    assert_false(lab_is_live(l, "child"));
    assert_json(l, "child", "1");
}

/* What the runs of the parent saw, one after the other. */
static char samples[64];

static hd_status sample_and_create(lab_node *self, hd_tx *tx) {
    double sample = lab_tx_number(self, tx, "child");
    if (self->runs == 1) samples[0] = '\0';
    snprintf(samples + strlen(samples), sizeof samples - strlen(samples), "%g;", sample);
    if (self->runs == 1) lab_compute(self->l, "child", "n", twice);
    return self->spec.effect ? HD_OK : lab_tx_put(self, tx, self->spec.name, sample + 1);
}

/* C55: a live parent that samples what its child will write runs twice, with the old value and the new one,
 * the child once. */
static void a_parent_sees_what_its_child_wrote(void **state) {
    lab_set(l, "n", 2);
    lab_add(l, .name = "parent", .body = sample_and_create, .effect = true);
    lab_set(l, "child", 1);
    lab_idle(l);
    assert_ran(l, "parent child parent");
    assert_string_equal(samples, "1;4;");
}

/* C56: the same for a computation under a pull. */
static void a_pulled_parent_sees_what_its_child_wrote(void **state) {
    lab_set(l, "n", 2);
    lab_add(l, .name = "parent", .body = sample_and_create);
    assert_string_equal(lab_pull(l, "parent"), "5");
    assert_ran(l, "parent child parent");
    assert_string_equal(samples, "0;4;");
    assert_false(lab_is_live(l, "parent") || lab_is_live(l, "child"));
}

/* C57: a computation somewhere in a demanded graph creates a child that an effect reads: the child
 * runs, and the effect ends on the final value. */
static void a_child_deep_in_the_graph_is_seen_by_the_effect(void **state) {
    lab_set(l, "n", 2);
    lab_set(l, "go", 1);
    lab_add(l, .name = "middle", .body = create_child, .declares = "go");
    lab_effect(l, "show", "middle child");
    lab_idle(l);
    assert_seen(l, "show", "- 4");
    assert_int_equal(lab_find(l, "child")->runs, 1);
    assert_true(lab_is_live(l, "child"));
    lab_set(l, "n", 3);
    lab_ran(l);
    lab_settle(l);
    assert_ran(l, "child show");
}

/* C58: creating a child that it does not read does not re-run the effect. */
static void creating_something_unrelated_is_no_reason_to_run_again(void **state) {
    lab_set(l, "n", 2);
    lab_add(l, .name = "parent", .body = create_child, .effect = true);
    lab_idle(l);
    assert_int_equal(lab_find(l, "parent")->runs, 1);
    lab_set(l, "n", 3);
    lab_idle(l);
    assert_int_equal(lab_find(l, "parent")->runs, 1);
}

static hd_status create_and_cancel(lab_node *self, hd_tx *tx) {
    lab_compute(self->l, "child", "n", twice);
    lab_cancel(self->l, "child");
    return HD_OK;
}

/* C51: a child that its creator removes again in the same run never runs. */
static void a_child_removed_by_its_creator_never_runs(void **state) {
    lab_add(l, .name = "parent", .body = create_and_cancel, .effect = true);
    lab_settle(l);
    assert_ran(l, "parent");
    assert_int_equal(lab_stats(l).nodes, 1);
}

/* Without expiry the child stays live, and C52 notices. */
static void without_expiry_c52_fails(void **state) {
    struct CMUnitTest test = S(a_child_that_has_run_is_dormant);
    spec_must_notice(LEAVE_OUT_EXPIRY, test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_child_runs_once_unread),
        S(a_child_that_has_run_is_dormant),
        S(demand_by_creation_is_passed_on),
        S(a_child_created_outside_a_run_is_dormant),
        S(a_reader_created_in_the_same_pass_takes_over),
        S(idle_waits_for_a_debounced_child),
        S(a_parent_sees_what_its_child_wrote),
        S(a_pulled_parent_sees_what_its_child_wrote),
        S(a_child_deep_in_the_graph_is_seen_by_the_effect),
        S(creating_something_unrelated_is_no_reason_to_run_again),
        S(a_child_removed_by_its_creator_never_runs),
        cmocka_unit_test(without_expiry_c52_fails),
    };
    LAB_EVERYWHERE(tests);
}
