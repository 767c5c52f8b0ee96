/* test_registration.c -- area A: registration, kinds, removal. */
#include "lab_inside.h"
#include "spec.h"

/* C1: an action registered without options counts as a computation, not as an effect. */
static void a_node_is_a_computation_unless_it_says_otherwise(void **state) {
    lab_add(l, .name = "x", .output = "-");
    assert_false(lab_info(l, "x").effect);
    assert_int_equal(lab_stats(l).computations, 1);
    assert_int_equal(lab_stats(l).effects, 0);
}

/* C2: an action registered as an effect counts as an effect only. */
static void an_effect_is_an_effect_only(void **state) {
    lab_effect(l, "x", "n");
    assert_true(lab_info(l, "x").effect);
    assert_false(lab_info(l, "x").materialiser);
    assert_int_equal(lab_stats(l).effects, 1);
    assert_int_equal(lab_stats(l).computations, 0);
}

/* C3: each removal drops its kind's count by one, and the kind queries turn false. */
static void removal_is_counted(void **state) {
    lab_compute(l, "x", "n", NULL);
    lab_effect(l, "show", "x");
    lab_cancel(l, "x");
    assert_int_equal(lab_stats(l).computations, 0);
    assert_int_equal(lab_stats(l).effects, 1);
    lab_cancel(l, "show");
    assert_int_equal(lab_stats(l).effects, 0);
    assert_int_equal(lab_stats(l).nodes, 0);
    assert_false(lab_info(l, "show").effect);
    assert_int_equal(lab_info(l, "show").why_not, HD_WHY_NOT_GONE);
}

/* C4: a live effect runs when its input changes before its removal, never after. */
static void an_effect_runs_until_it_is_removed(void **state) {
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "show show");
    lab_cancel(l, "show");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "");
}

/* C4: the removal counts also for a change that was made before it. */
static void an_invalid_effect_that_is_removed_does_not_run(void **state) {
    lab_effect(l, "show", "n");
    lab_settle(l);
    lab_set(l, "n", 1);
    lab_cancel(l, "show");
    lab_settle(l);
    assert_ran(l, "show");
}

/* C5: after its cancel is called, input changes no longer run the registration, also of a
 * computation that a live node reads. */
static void a_cancelled_computation_does_not_run(void **state) {
    lab_compute(l, "x", "n", NULL);
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_ran(l, "x show");
    lab_cancel(l, "x");
    lab_cancel(l, "x"); /* twice does no harm */
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "");
    assert_json(l, "x", "0");
}

static hd_status write_and_leave(lab_node *self, hd_tx *tx) {
    double n = lab_tx_number(self, tx, "n");
    if (n > 0) lab_cancel(self->l, self->spec.name);
    return lab_tx_put(self, tx, self->spec.effect ? "e" : "x", n);
}

/* C5: a node that cancels itself in the middle of its run is gone after it, and the run commits
 * nothing. */
static void a_node_may_cancel_itself(void **state) {
    lab_add(l, .name = "effect", .body = write_and_leave, .effect = true);
    lab_add(l, .name = "x", .body = write_and_leave);
    lab_effect(l, "show", "x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "effect x");
    assert_json(l, "e", "0");
    assert_json(l, "x", "0");
    assert_int_equal(lab_stats(l).nodes, 1);
}

static hd_status cancel_writer(lab_node *self, hd_tx *tx) {
    if (lab_tx_number(self, tx, "x") > 1) lab_cancel(self->l, "x");
    return HD_OK;
}

/* C5: and it may cancel the one whose value it has just read. */
static void a_reader_may_cancel_its_writer(void **state) {
    lab_compute(l, "x", "n", NULL);
    lab_add(l, .name = "reader", .body = cancel_writer, .effect = true);
    lab_set(l, "n", 2);
    lab_settle(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_json(l, "x", "2");
    assert_int_equal(lab_stats(l).nodes, 1);
}

/* A name is unique among siblings; the second registration changes nothing. */
static void a_name_is_given_once(void **state) {
    lab_compute(l, "x", "n", NULL);
    assert_int_equal(lab_add(l, .name = "x", .reads = "n")->status, HD_USAGE);
    assert_int_equal(lab_stats(l).nodes, 1);
}

/* C6: when registration returns, nothing has run yet. */
static void nothing_runs_inside_the_call_that_registers(void **state) {
    lab_compute(l, "x", "n", NULL);
    lab_effect(l, "show", "x");
    lab_set(l, "n", 1);
    assert_ran(l, "");
    lab_settle(l);
    assert_ran(l, "x show");
}

/* C7: an effect with an empty read set runs once. */
static void an_effect_that_reads_nothing_runs_once(void **state) {
    lab_effect(l, "hello", "");
    lab_settle(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "hello");
}

/* C8: a computation without surface and reads gets one first run if that is requested; without the
 * request it never runs. */
static void a_first_run_can_be_requested(void **state) {
    lab_add(l, .name = "asked", .reads = "n", .declares = "-", .output = "-", .run_once = true);
    lab_add(l, .name = "silent", .reads = "n", .declares = "-", .output = "-");
    lab_settle(l);
    assert_ran(l, "asked");
    assert_false(lab_is_live(l, "asked"));
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "");
}

/* C8: the same for a node that is there already, as often as it is invalid. */
static void a_run_can_be_requested_later(void **state) {
    lab_compute(l, "x", "n", NULL);
    hd_node x = lab_find(l, "x")->node;
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(hd_node_request(lab_runtime_now(l), x), HD_OK);
    lab_settle(l);
    assert_ran(l, "x");
    hd_node_request(lab_runtime_now(l), x); /* it is clean: nothing to do */
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "n", 4);
    hd_node_request(lab_runtime_now(l), x);
    lab_settle(l);
    assert_ran(l, "x");
    assert_json(l, "x", "4");
}

/* C9: a computation that is registered again as an effect is promoted in place, and stays one. */
static void a_computation_is_promoted_in_place(void **state) {
    lab_node *x = lab_compute(l, "x", "n", NULL);
    hd_node before = x->node;
    lab_add(l, .again = "x", .effect = true);
    assert_int_equal(x->status, HD_OK);
    assert_int_equal(x->node.id, before.id);
    assert_int_equal(x->node.generation, before.generation);
    assert_true(lab_info(l, "x").effect);
    assert_int_equal(lab_stats(l).effects, 1);
    assert_int_equal(lab_stats(l).computations, 0);
    lab_settle(l);
    assert_ran(l, "x");
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "x");
    lab_add(l, .again = "x", .effect = true);
    assert_int_equal(lab_stats(l).effects, 1);
}

/* C10: a known effect cannot be registered again as a computation. */
static void an_effect_does_not_become_a_computation(void **state) {
    lab_effect(l, "x", "n");
    lab_node *x = lab_add(l, .again = "x");
    assert_int_equal(x->status, HD_USAGE);
    assert_true(strlen(hd_runtime_error(lab_runtime_now(l))->message) > 0);
}

/* C11: a node that was removed and registered again under its name is a new registration: it comes
 * after those that stayed. */
static void registering_again_after_removal_is_a_new_place_in_the_order(void **state) {
    lab_effect(l, "x", "n");
    lab_effect(l, "y", "n");
    lab_effect(l, "z", "n");
    lab_settle(l);
    assert_ran(l, "x y z");
    lab_cancel(l, "x");
    lab_effect(l, "x", "n");
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_ran(l, "y z x");
}

/* C12: the handle of a removed node says so safely, also when its record is used again. */
static void an_old_handle_is_harmless(void **state) {
    hd_runtime *rt = lab_runtime_now(l);
    hd_node old = lab_effect(l, "x", "n")->node;
    hd_node_info info;
    lab_cancel(l, "x");
    hd_node young = lab_effect(l, "y", "n")->node;
    assert_int_equal(young.id, old.id); /* the record is used again */
    assert_false(hd_node_exists(rt, old));
    assert_int_equal(hd_node_inspect(rt, old, &info), HD_NOT_FOUND);
    assert_int_equal(hd_node_request(rt, old), HD_NOT_FOUND);
    assert_int_equal(hd_node_promote(rt, old), HD_NOT_FOUND);
    assert_int_equal(hd_node_set_debounce(rt, old, 5), HD_NOT_FOUND);
    hd_node_unregister(rt, old);
    assert_true(hd_node_exists(rt, young));
    assert_int_equal(hd_node_find(rt, "x").id, 0);
    assert_int_equal(hd_node_find(rt, "y").id, young.id);
}

static hd_status read_n(hd_tx *tx, void *ctx) {
    const hd_cell *n = ctx;
    return hd_value_status(hd_tx_get(tx, *n));
}

static void register_and_cancel_many(hd_cell *n) {
    hd_node nodes[200];
    hd_runtime *rt = lab_runtime_now(l);
    char name[16];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "node%d", i);
        nodes[i] = hd_effect(rt, name, read_n, n);
    }
    lab_settle(l);
    for (int i = 0; i < 200; i++) hd_node_unregister(rt, nodes[i]);
    lab_settle(l);
}

/* C12: memory returns to its former level. */
static void memory_of_removed_nodes_is_used_again(void **state) {
    hd_cell n = lab_cell(lab_on(l, "a"), "n");
    register_and_cancel_many(&n);
    size_t level = lab_env_bytes(lab_world(l));
    for (int i = 0; i < 5; i++) register_and_cancel_many(&n);
    assert_int_equal(lab_env_bytes(lab_world(l)), level);
}

static hd_status make_child_once(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_add(self->l, .name = "child", .reads = "n", .output = "-");
    return HD_OK;
}

/* C13: a child that is registered during its parent's very first run is linked to it at once. */
static void a_child_of_a_first_run_has_its_parent(void **state) {
    lab_node *p = lab_add(l, .name = "parent", .body = make_child_once, .effect = true);
    lab_settle(l);
    assert_int_equal(lab_info(l, "child").parent.id, p->node.id);
    assert_int_equal(lab_info(l, "parent").children, 1);
    assert_int_equal(hd_node_find(lab_runtime_now(l), "parent/child").id,
                     lab_find(l, "child")->node.id);
}

/* C13: a parent named in the spec counts as much. */
static void a_parent_can_be_named(void **state) {
    lab_effect(l, "parent", "");
    lab_add(l, .name = "child", .parent = "parent", .effect = true);
    assert_int_equal(lab_info(l, "parent").children, 1);
}

static hd_status adopt_child(lab_node *self, hd_tx *tx) {
    lab_add(self->l, .again = "child");
    return HD_OK;
}

/* C14: a child of P that is registered again during Q's run belongs to Q. */
static void a_child_moves_under_the_one_that_registers_it_again(void **state) {
    lab_add(l, .name = "p", .body = make_child_once, .effect = true);
    lab_settle(l);
    lab_node *q = lab_add(l, .name = "q", .body = adopt_child, .effect = true);
    lab_settle(l);
    assert_int_equal(lab_info(l, "child").parent.id, q->node.id);
    assert_int_equal(lab_info(l, "p").children, 0);
    assert_int_equal(lab_info(l, "q").children, 1);
    assert_int_equal(hd_node_find(lab_runtime_now(l), "q/child").id, lab_find(l, "child")->node.id);
    assert_int_equal(hd_node_find(lab_runtime_now(l), "p/child").id, 0);
}

/* C14: running again in a pass in which Q runs changes nothing: the parent stays P. */
static void a_child_that_runs_beside_another_keeps_its_parent(void **state) {
    lab_node *p = lab_add(l, .name = "p", .body = make_child_once, .effect = true);
    lab_effect(l, "q", "n");
    lab_settle(l);
    lab_add(l, .again = "child", .effect = true);
    lab_set(l, "n", 1);
    lab_ran(l);
    lab_settle(l);
    assert_ran(l, "q child");
    assert_int_equal(lab_info(l, "child").parent.id, p->node.id);
}

/* C15: a node without a parent that is registered again inside Q's run belongs to Q. */
static void an_orphan_is_adopted(void **state) {
    lab_compute(l, "child", "n", NULL);
    assert_int_equal(lab_info(l, "child").parent.id, 0);
    lab_node *q = lab_add(l, .name = "q", .body = adopt_child, .effect = true);
    lab_settle(l);
    assert_int_equal(lab_info(l, "child").parent.id, q->node.id);
}

/* C15: not if Q has a child of that name already; then nothing changes. */
static void adoption_does_not_make_two_children_of_one_name(void **state) {
    lab_compute(l, "child", "n", NULL);
    hd_node orphan = lab_find(l, "child")->node;
    lab_node *q = lab_add(l, .name = "q", .body = adopt_child, .effect = true);
    lab_add(l, .name = "child2", .parent = "q", .output = "-");
    hd_node_spec twin = { .name = "child", .fn = read_n, .parent = q->node, .run_once = false };
    hd_node other;
    assert_int_equal(hd_node_register(lab_runtime_now(l), &twin, &other), HD_OK);
    lab_settle(l);
    assert_int_equal(lab_find(l, "child")->status, HD_USAGE);
    assert_int_equal(hd_node_find(lab_runtime_now(l), "child").id, orphan.id);
    assert_int_equal(hd_node_find(lab_runtime_now(l), "q/child").id, other.id);
}

/* C16: a child that unsubscribes leaves its parent's child index at once. */
static void a_cancelled_child_leaves_its_parent(void **state) {
    lab_add(l, .name = "parent", .body = make_child_once, .effect = true);
    lab_settle(l);
    assert_int_equal(lab_info(l, "parent").children, 1);
    lab_cancel(l, "child");
    assert_int_equal(lab_info(l, "parent").children, 0);
}

#define WINDOW 4
typedef struct window {
    hd_cell n;
    hd_node rows[WINDOW];
    int slides;
} window;

static hd_status slide(lab_node *self, hd_tx *tx) {
    window *w = self->data;
    hd_runtime *rt = lab_rt(self->at);
    lab_tx_number(self, tx, "n");
    int row = w->slides++ % WINDOW;
    hd_node_unregister(rt, w->rows[row]);
    w->rows[row] = hd_effect(rt, NULL, read_n, &w->n);
    return HD_OK;
}

/* C17: a projection window that slides on and on retains as many children as it shows. */
static void a_sliding_window_keeps_no_old_children(void **state) {
    window w = { .n = lab_cell(lab_on(l, "a"), "n") };
    lab_add(l, .name = "window", .body = slide, .data = &w, .effect = true);
    for (int i = 0; i < 200; i++) {
        lab_set(l, "n", i);
        lab_settle(l);
    }
    assert_int_equal(w.slides, 200);
    assert_int_equal(lab_info(l, "window").children, WINDOW);
    assert_int_equal(lab_stats(l).nodes, WINDOW + 1);
    /* One more than there are, because the new row comes before the old one is gone. */
    assert_true(lab_records_of(l).kin <= WINDOW + 2);
    assert_true(lab_records_of(l).nodes <= WINDOW + 3);
}

/* C18: a sink is one effect more, and its callback sees the current value at the next settle. */
static void a_sink_sees_the_current_value(void **state) {
    lab_set(l, "n", 3);
    lab_sink(l, "sink", lab_cell(lab_on(l, "a"), "n"));
    assert_int_equal(lab_stats(l).effects, 1);
    assert_ran(l, "");
    lab_settle(l);
    assert_ran(l, "sink");
    assert_seen(l, "sink", "3");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_seen(l, "sink", "4");
}

static hd_status open_sink(lab_node *self, hd_tx *tx) {
    if (self->runs == 1) lab_sink(self->l, "sink", lab_cell(self->at, "n"));
    return HD_OK;
}

/* C19: a sink that an action opens is that action's child. */
static void a_sink_belongs_to_the_action_that_opened_it(void **state) {
    lab_node *p = lab_add(l, .name = "p", .body = open_sink, .effect = true);
    lab_settle(l);
    assert_ran(l, "p sink");
    assert_int_equal(lab_info(l, "sink").parent.id, p->node.id);
    assert_true(lab_info(l, "p").children >= 1);
}

/* C20: a pull that is completed leaves no effect behind. */
static void a_pull_leaves_nothing_behind(void **state) {
    lab_set(l, "n", 3);
    lab_compute(l, "x", "n", NULL);
    assert_string_equal(lab_pull(l, "x"), "3");
    assert_int_equal(lab_stats(l).effects, 0);
    assert_int_equal(lab_stats(l).nodes, 1);
    assert_false(lab_is_live(l, "x"));
}

/* C21: a reader is a dependent of a writer that is registered after it. */
static void a_late_writer_finds_its_readers(void **state) {
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_seen(l, "show", "-");
    lab_set(l, "n", 3);
    lab_compute(l, "x", "n", NULL);
    assert_string_equal(lab_dependents(l, "x"), "show");
    lab_settle(l);
    assert_ran(l, "show x show");
    assert_seen(l, "show", "3");
}

static hd_status copy_n_to_m(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "m", lab_tx_number(self, tx, "n"));
}

/* C22: an action that is retired while its commit waits for a verdict is not revived by it. */
static void a_late_verdict_does_not_revive_a_removed_node(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "copy", .body = copy_n_to_m, .effect = true);
    lab_settle(l);
    lab_runtime *a = lab_on(l, "a");
    lab_on(l, "b");
    assert_json(l, "n", "1");
    lab_on(l, "a");
    lab_hold(a);
    lab_set(l, "n", 2); /* stacked on what b is about to overwrite */
    lab_turn(l);
    assert_ran(l, "copy copy");
    lab_on(l, "b");
    lab_set(l, "n", 5);
    lab_pump(lab_on(l, "b"));
    lab_on(l, "a");
    lab_cancel(l, "copy");
    lab_mend(a);
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_stats(l).nodes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_node_is_a_computation_unless_it_says_otherwise),
        S(an_effect_is_an_effect_only),
        S(removal_is_counted),
        S(an_effect_runs_until_it_is_removed),
        S(an_invalid_effect_that_is_removed_does_not_run),
        S(a_cancelled_computation_does_not_run),
        S(a_node_may_cancel_itself),
        S(a_reader_may_cancel_its_writer),
        S(a_name_is_given_once),
        S(nothing_runs_inside_the_call_that_registers),
        S(an_effect_that_reads_nothing_runs_once),
        S(a_first_run_can_be_requested),
        S(a_run_can_be_requested_later),
        S(a_computation_is_promoted_in_place),
        S(an_effect_does_not_become_a_computation),
        S(registering_again_after_removal_is_a_new_place_in_the_order),
        S(an_old_handle_is_harmless),
        S(memory_of_removed_nodes_is_used_again),
        S(a_child_of_a_first_run_has_its_parent),
        S(a_parent_can_be_named),
        S(a_child_moves_under_the_one_that_registers_it_again),
        S(a_child_that_runs_beside_another_keeps_its_parent),
        S(an_orphan_is_adopted),
        S(adoption_does_not_make_two_children_of_one_name),
        S(a_cancelled_child_leaves_its_parent),
        S(a_sliding_window_keeps_no_old_children),
        S(a_sink_sees_the_current_value),
        S(a_sink_belongs_to_the_action_that_opened_it),
        S(a_pull_leaves_nothing_behind),
        S(a_late_writer_finds_its_readers),
        S(a_late_verdict_does_not_revive_a_removed_node),
    };
    LAB_EVERYWHERE(tests);
}
