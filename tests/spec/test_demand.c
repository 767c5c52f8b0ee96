/* test_demand.c -- area B: demand and liveness. A node runs if it is invalid and somebody looks. */
#include "base/sabotage.h"
#include "spec.h"

static double twice(const double *in) { return 2 * in[0]; }
static double plus_one(const double *in) { return in[0] + 1; }

/* C23, I2: a computation with an output that nobody reads never runs, and the output stays. */
static void i2_a_node_that_is_never_live_never_runs(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "");
    assert_json(l, "x", "-");
    assert_int_equal(lab_info(l, "x").why_not, HD_WHY_NOT_DORMANT);
}

/* C49, I2: registering, invalidating and removing dormant nodes reads no document. */
static void i2_dormant_nodes_read_nothing(void **state) {
    hd_store_stats before, after;
    lab_runtime *b = lab_on(l, "b");
    lab_write(b, "source", "{\"$link\": {\"id\": \"far\"}}");
    lab_write(b, "far", "1");
    lab_settle(l);
    lab_on(l, "a");
    hd_runtime_store_stats(lab_runtime_now(l), &before);
    lab_compute(l, "x", "source", twice);
    lab_compute(l, "y", "x", twice);
    lab_settle(l);
    lab_cancel(l, "x");
    lab_cancel(l, "y");
    lab_settle(l);
    hd_runtime_store_stats(lab_runtime_now(l), &after);
    assert_ran(l, "");
    assert_int_equal(after.loads, before.loads);
}

/* C24: when an effect comes to read its output, a dormant writer runs once and the effect sees the
 * new value. */
static void a_dormant_writer_runs_when_somebody_looks(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "x", "n", twice);
    lab_settle(l);
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_ran(l, "x show");
    assert_seen(l, "show", "2");
}

/* C50: who tracks a document from outside demands its writer, whichever of them came first, and no
 * longer than that. */
static void whoever_tracks_a_document_demands_its_writer(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "before", "n", twice);
    lab_sink(l, "one", lab_cell(lab_on(l, "a"), "before"));
    lab_sink(l, "two", lab_cell(lab_on(l, "a"), "after"));
    lab_compute(l, "after", "n", plus_one);
    lab_settle(l);
    assert_true(lab_is_live(l, "before"));
    assert_true(lab_is_live(l, "after"));
    lab_cancel(l, "one");
    lab_cancel(l, "two");
    lab_settle(l);
    assert_false(lab_is_live(l, "before"));
    assert_false(lab_is_live(l, "after"));
}

/* C24: the same when nothing was declared: what the effect made of the old value is nobody's
 * business, so it runs again. */
static void an_undeclared_read_demands_its_writer(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "x", "n", twice);
    lab_add(l, .name = "show", .reads = "x", .declares = "-", .effect = true);
    lab_settle(l);
    assert_ran(l, "show x show");
    assert_seen(l, "show", "2");
}

/* C25: a computation that ran once under a pull becomes invalid when its source changes, and does
 * not run while nobody demands it. */
static void after_a_pull_nobody_looks_any_more(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "x", "n", twice);
    assert_string_equal(lab_pull(l, "x"), "2");
    assert_ran(l, "x");
    assert_true(lab_is_clean(l, "x"));
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "");
    assert_int_equal(lab_info(l, "x").status, HD_NODE_INVALID);
    assert_int_equal(lab_info(l, "x").why_not, HD_WHY_NOT_DORMANT);
    assert_string_equal(lab_pull(l, "x"), "4");
    assert_ran(l, "x");
}

/* C26: an invalid computation with a live effect downstream runs, then the effect. */
static void the_writer_runs_before_its_reader(void **state) {
    lab_effect(l, "show", "x");
    lab_compute(l, "x", "n", twice);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "x show");
    assert_seen(l, "show", "6");
}

/* C27: two chained writers, clean, without demand, the first invalidated: when demand returns to the
 * second both run. */
static void demand_that_returns_finds_a_change_two_steps_away(void **state) {
    lab_set(l, "n", 1);
    lab_compute(l, "x", "n", twice);
    lab_compute(l, "y", "x", plus_one);
    lab_effect(l, "show", "y");
    lab_settle(l);
    lab_cancel(l, "show");
    lab_set(l, "n", 5);
    lab_settle(l);
    assert_ran(l, "x y show");
    lab_effect(l, "show", "y");
    lab_settle(l);
    assert_ran(l, "x y show");
    assert_seen(l, "show", "11");
}

/* C28: an effect that is unsubscribed while its writer becomes invalid and subscribed again brings
 * both to run. */
static void a_resubscribed_effect_sees_what_changed_meanwhile(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    lab_cancel(l, "show");
    lab_set(l, "n", 4);
    lab_effect(l, "show", "x");
    lab_ran(l);
    lab_settle(l);
    assert_ran(l, "x show");
    assert_seen(l, "show", "8");
}

/* C29: an invalid dormant computation that is promoted to an effect runs; that it had become invalid
 * is not forgotten. */
static void promotion_keeps_the_status(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_pull(l, "x");
    lab_set(l, "n", 4);
    lab_settle(l);
    lab_ran(l);
    lab_add(l, .again = "x", .effect = true);
    assert_int_equal(lab_info(l, "x").status, HD_NODE_INVALID);
    lab_settle(l);
    assert_ran(l, "x");
    assert_json(l, "x", "8");
}

/* C29: a clean one has nothing to run for. */
static void promotion_of_a_clean_node_runs_nothing(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_pull(l, "x");
    lab_ran(l);
    lab_add(l, .again = "x", .effect = true);
    lab_settle(l);
    assert_ran(l, "");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "x");
}

static hd_status fill_table(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "table#/sum", lab_tx_number(self, tx, "x"));
}

static void add_materialiser(void) {
    lab_add(l, .name = "fill", .body = fill_table, .declares = "x", .output = "-",
            .envelopes = "table");
}

/* C30: a removed materialiser whose upstream became invalid is registered again: upstream runs, then
 * the materialiser. */
static void a_materialiser_that_returns_demands_its_inputs(void **state) {
    lab_set_json(l, "table", "{}");
    lab_compute(l, "x", "n", twice);
    add_materialiser();
    lab_settle(l);
    assert_ran(l, "x fill");
    lab_cancel(l, "fill");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_ran(l, "");
    add_materialiser();
    lab_settle(l);
    assert_ran(l, "x fill");
    assert_json(l, "table", "{\"sum\":8}");
}

static hd_status list_length(lab_node *self, hd_tx *tx) {
    hd_value v = hd_tx_get(tx, lab_cell(self->at, "list"));
    return lab_tx_put(self, tx, "view", (double)hd_value_count(v));
}

static void add_view(const char *effect) {
    lab_add(l, .name = "view", .body = list_length, .declares = "list");
    lab_effect(l, effect, "view");
}

/* C31: a view that is closed and opened again sees the list as it is by then. */
static void a_view_that_returns_is_fresh(void **state) {
    lab_set_json(l, "list", "[1,2]");
    add_view("show");
    lab_settle(l);
    assert_seen(l, "show", "2");
    lab_cancel(l, "show");
    lab_set_json(l, "list", "[1,2,3]");
    lab_settle(l);
    lab_effect(l, "show", "view");
    lab_ran(l);
    lab_settle(l);
    assert_ran(l, "view show");
    assert_seen(l, "show", "3");
}

/* C32, C33: the same when view and computation are both made anew. */
static void a_view_made_anew_is_fresh(void **state) {
    lab_set_json(l, "list", "[1,2]");
    add_view("show");
    lab_settle(l);
    lab_cancel(l, "show");
    lab_cancel(l, "view");
    lab_set_json(l, "list", "[1]");
    lab_settle(l);
    lab_ran(l);
    add_view("show");
    lab_settle(l);
    assert_ran(l, "view show");
    assert_seen(l, "show", "1");
}

/* C33: a new computation takes the place of the old one while the effect stays. */
static void a_new_computation_serves_the_old_reader(void **state) {
    lab_set_json(l, "list", "[1,2]");
    add_view("show");
    lab_settle(l);
    lab_cancel(l, "view");
    lab_set_json(l, "list", "[]");
    lab_settle(l);
    lab_ran(l);
    lab_add(l, .name = "view", .body = list_length);
    lab_settle(l);
    assert_ran(l, "view show");
    assert_seen(l, "show", "0");
}

/* C34: a new edge from a live reader gives the writer exactly one reference. */
static void a_live_reader_gives_one_reference(void **state) {
    lab_compute(l, "x", "n", twice);
    assert_int_equal(lab_info(l, "x").live_refs, 0);
    lab_effect(l, "show", "x");
    lab_settle(l);
    assert_int_equal(lab_info(l, "x").live_refs, 1);
    assert_true(lab_is_live(l, "x"));
}

/* C35: a dormant reader gives none. */
static void a_dormant_reader_gives_no_reference(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_compute(l, "y", "x", twice);
    lab_pull(l, "y");
    assert_string_equal(lab_dependents(l, "x"), "y");
    assert_int_equal(lab_info(l, "x").live_refs, 0);
    assert_false(lab_is_live(l, "x"));
}

/* C36: when the far end of a chain becomes live, all of it does. */
static void demand_reaches_up_the_whole_chain(void **state) {
    lab_compute(l, "a", "n", plus_one);
    lab_compute(l, "b", "a", plus_one);
    lab_compute(l, "c", "b", plus_one);
    lab_compute(l, "d", "c", plus_one);
    lab_settle(l);
    assert_false(lab_is_live(l, "a"));
    lab_effect(l, "show", "d");
    assert_true(lab_is_live(l, "a"));
    lab_settle(l);
    assert_ran(l, "a b c d show");
    assert_seen(l, "show", "4");
}

/* C37: the writer of a diamond has two references, then one, then none; it is live until the last. */
static void a_diamond_is_counted_by_its_arms(void **state) {
    lab_compute(l, "top", "n", twice);
    lab_compute(l, "left", "top", plus_one);
    lab_compute(l, "right", "top", twice);
    lab_effect(l, "show_left", "left");
    lab_effect(l, "show_right", "right");
    lab_settle(l);
    assert_int_equal(lab_info(l, "top").live_refs, 2);
    lab_cancel(l, "show_left");
    assert_int_equal(lab_info(l, "top").live_refs, 1);
    assert_true(lab_is_live(l, "top"));
    lab_cancel(l, "show_right");
    assert_int_equal(lab_info(l, "top").live_refs, 0);
    assert_false(lab_is_live(l, "top"));
}

static double smaller(const double *in) { return in[0] < 3 ? in[0] + 1 : 3; }

static void add_cycle(void) {
    lab_compute(l, "ping", "pong", smaller);
    lab_compute(l, "pong", "ping", smaller);
}

/* C38: a cycle that one effect demands is dormant when the effect is gone. */
static void a_cycle_does_not_keep_itself_alive(void **state) {
    add_cycle();
    lab_effect(l, "show", "pong");
    lab_settle(l);
    assert_seen(l, "show", "3");
    assert_true(lab_is_live(l, "ping") && lab_is_live(l, "pong"));
    lab_cancel(l, "show");
    assert_false(lab_is_live(l, "ping") || lab_is_live(l, "pong"));
    lab_ran(l);
    lab_set(l, "pong", 0);
    lab_settle(l);
    assert_ran(l, "");
}

static hd_status fill_from_pong(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "table#/sum", lab_tx_number(self, tx, "pong"));
}

/* C39: a cycle that a materialiser keeps live is dormant when that is gone. */
static void a_cycle_goes_with_its_materialiser(void **state) {
    lab_set_json(l, "table", "{}");
    add_cycle();
    lab_add(l, .name = "fill", .body = fill_from_pong, .output = "-", .envelopes = "table");
    lab_settle(l);
    assert_true(lab_is_live(l, "ping") && lab_is_live(l, "pong"));
    lab_cancel(l, "fill");
    assert_false(lab_is_live(l, "ping") || lab_is_live(l, "pong"));
}

/* C40: a writer that is a root itself loses a reader, and stays live. */
static void a_root_stays_live_without_readers(void **state) {
    lab_set_json(l, "table", "{}");
    lab_compute(l, "x", "n", twice);
    lab_add(l, .name = "fill", .body = fill_table, .output = "done", .envelopes = "table");
    lab_effect(l, "show", "done");
    lab_settle(l);
    assert_int_equal(lab_info(l, "fill").live_refs, 2);
    lab_cancel(l, "show");
    assert_int_equal(lab_info(l, "fill").live_refs, 1);
    assert_true(lab_is_live(l, "fill"));
}

/* C41: when the root of one branch dies the other branch is untouched. */
static void branches_are_independent(void **state) {
    lab_compute(l, "left", "n", twice);
    lab_compute(l, "right", "n", plus_one);
    lab_effect(l, "show_left", "left");
    lab_effect(l, "show_right", "right");
    lab_settle(l);
    lab_ran(l);
    lab_cancel(l, "show_left");
    assert_false(lab_is_live(l, "left"));
    assert_true(lab_is_live(l, "right"));
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "right show_right");
}

/* C42: a node that registers after its live readers has the references they hold, and passes demand
 * further up. */
static void a_late_writer_is_demanded_at_once(void **state) {
    lab_compute(l, "a", "n", plus_one);
    lab_effect(l, "one", "b");
    lab_effect(l, "two", "b");
    lab_settle(l);
    assert_false(lab_is_live(l, "a"));
    lab_compute(l, "b", "a", plus_one);
    assert_int_equal(lab_info(l, "b").live_refs, 2);
    assert_true(lab_is_live(l, "a"));
    lab_ran(l);
    lab_settle(l);
    assert_ran(l, "a b one two");
    assert_seen(l, "one", "2");
}

#define CELLS 8
#define SLOTS 12

/* One random step: a node comes, goes, is promoted, or a value changes. */
static void random_step(lab_random *r, hd_node *nodes, char names[][8], unsigned *next) {
    unsigned slot = (unsigned)lab_random_below(r, SLOTS);
    hd_runtime *rt = lab_runtime_now(l);
    char reads[16], output[8];
    snprintf(reads, sizeof reads, "c%u c%u", (unsigned)lab_random_below(r, CELLS),
             (unsigned)lab_random_below(r, CELLS));
    snprintf(output, sizeof output, "c%u", (unsigned)lab_random_below(r, CELLS));
    switch (lab_random_below(r, 6)) {
    case 0: lab_set(l, output, (double)lab_random_below(r, 3)); return;
    case 1: hd_node_unregister(rt, nodes[slot]); return;
    case 2:
        if (lab_random_once_in(r, 4)) hd_node_promote(rt, nodes[slot]);
        return;
    default: break;
    }
    if (hd_node_exists(rt, nodes[slot])) return;
    snprintf(names[slot], sizeof names[slot], "n%u", (*next)++);
    bool effect = lab_random_once_in(r, 5), declared = lab_random_once_in(r, 2);
    nodes[slot] = lab_add(l, .name = names[slot], .reads = reads, .effect = effect,
                          .output = effect ? NULL : output, .formula = smaller,
                          .declares = declared ? NULL : "-")
                      ->node;
}

/* C43, C45: after any sequence of registrations, removals and changes the counts equal a full recount
 * from the roots, edges to nodes that are gone left out of it. */
static void random_histories_leave_the_counts_right(void **state) {
    lab_random r = lab_random_of(lab_seed());
    for (int history = 0; history < 10; history++) {
        hd_node nodes[SLOTS] = { { 0, 0 } };
        char names[SLOTS][8];
        unsigned next = 0;
        for (int step = 0; step < 60; step++) {
            random_step(&r, nodes, names, &next);
            lab_turn(l); /* debug builds check the graph after each */
        }
        for (int i = 0; i < SLOTS; i++) hd_node_unregister(lab_runtime_now(l), nodes[i]);
        assert_int_equal(lab_stats(l).nodes, 0);
        assert_int_equal(lab_stats(l).live, 0);
    }
}

/* C44: a node that reads its own output is not its own dependent, and does not keep itself live. */
static void there_is_no_edge_to_oneself(void **state) {
    lab_compute(l, "x", "x n", NULL);
    lab_effect(l, "show", "x");
    lab_set(l, "n", 1);
    lab_settle(l);
    assert_string_equal(lab_dependents(l, "x"), "show");
    assert_int_equal(lab_info(l, "x").live_refs, 1);
    lab_cancel(l, "show");
    assert_false(lab_is_live(l, "x"));
}

/* C45: a reader whose writer is gone is counted without error, and the next writer finds it. */
static void a_reader_outlives_its_writer(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "show", "x");
    lab_settle(l);
    lab_cancel(l, "x");
    lab_turn(l);
    lab_set(l, "n", 1);
    lab_settle(l);
    lab_compute(l, "x", "n", twice);
    lab_settle(l);
    assert_seen(l, "show", "2");
}

#define DEEP 20000

typedef struct link_of_chain {
    hd_cell in, out;
} link_of_chain;

static hd_status copy_along(hd_tx *tx, void *ctx) {
    const link_of_chain *link_ = ctx;
    return hd_tx_set(tx, link_->out, hd_tx_get(tx, link_->in));
}

static hd_status look_at(hd_tx *tx, void *ctx) {
    return hd_value_status(hd_tx_get(tx, ((link_of_chain *)ctx)->in));
}

/* C46: a chain of 20,000 nodes, closed to a cycle, is demanded, settled and let go without recursion. */
static void depth_is_no_problem(void **state) {
    lab_runtime *a = lab_on(l, "a");
    hd_runtime *rt = lab_runtime_now(l);
    link_of_chain *chain = calloc(DEEP, sizeof *chain);
    for (int i = 0; i < DEEP; i++) {
        char in[16], out[16];
        snprintf(in, sizeof in, "d%d", i == 0 ? DEEP - 1 : i - 1);
        snprintf(out, sizeof out, "d%d", i);
        chain[i] = (link_of_chain){ lab_cell(a, in), lab_cell(a, out) };
        hd_node_spec spec = { .fn = copy_along,
                              .ctx = &chain[i],
                              .output = chain[i].out,
                              .reads = &chain[i].in,
                              .read_count = 1 };
        hd_node n;
        assert_int_equal(hd_node_register(rt, &spec, &n), HD_OK);
    }
    lab_set(l, "d19999", 7);
    hd_node show = hd_effect(rt, "show", look_at, &chain[DEEP - 1]);
    lab_idle(l);
    assert_json(l, "d10000", "7");
    assert_int_equal(lab_stats(l).live, DEEP + 1);
    hd_node_unregister(rt, show);
    assert_int_equal(lab_stats(l).live, 0);
    lab_on(l, "a");
    lab_runtime_close(a); /* before what its nodes point to */
    free(chain);
}

/* C47: a computation that feeds two effects runs once, each of them once. */
static void one_writer_two_readers(void **state) {
    lab_compute(l, "x", "n", twice);
    lab_effect(l, "one", "x");
    lab_effect(l, "two", "x");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_ran(l, "x one two");
}

static hd_status choose(lab_node *self, hd_tx *tx) {
    bool left = lab_tx_number(self, tx, "condition") != 0;
    return lab_tx_put(self, tx, "choice", lab_tx_number(self, tx, left ? "left" : "right"));
}

/* C48: at the first settle the writer of the branch that is not selected does not run. */
static void the_branch_not_taken_does_not_run(void **state) {
    lab_set(l, "n", 5);
    lab_set(l, "condition", 1);
    lab_compute(l, "left", "n", twice);
    lab_compute(l, "right", "n", plus_one);
    lab_add(l, .name = "choice", .body = choose, .declares = "condition");
    lab_effect(l, "show", "choice");
    lab_settle(l);
    assert_seen(l, "show", "10");
    assert_int_equal(lab_find(l, "right")->runs, 0);
    assert_int_equal(lab_find(l, "left")->runs, 1);
    lab_set(l, "condition", 0);
    lab_settle(l);
    assert_seen(l, "show", "6");
    assert_false(lab_is_live(l, "left"));
}

/* Without deriving demand anew a cycle keeps itself alive, and C38 notices. */
static void without_withdrawal_c38_fails(void **state) {
    struct CMUnitTest test = S(a_cycle_does_not_keep_itself_alive);
    spec_must_notice(LEAVE_OUT_WITHDRAWAL, test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(i2_a_node_that_is_never_live_never_runs),
        S(i2_dormant_nodes_read_nothing),
        S(a_dormant_writer_runs_when_somebody_looks),
        S(whoever_tracks_a_document_demands_its_writer),
        S(an_undeclared_read_demands_its_writer),
        S(after_a_pull_nobody_looks_any_more),
        S(the_writer_runs_before_its_reader),
        S(demand_that_returns_finds_a_change_two_steps_away),
        S(a_resubscribed_effect_sees_what_changed_meanwhile),
        S(promotion_keeps_the_status),
        S(promotion_of_a_clean_node_runs_nothing),
        S(a_materialiser_that_returns_demands_its_inputs),
        S(a_view_that_returns_is_fresh),
        S(a_view_made_anew_is_fresh),
        S(a_new_computation_serves_the_old_reader),
        S(a_live_reader_gives_one_reference),
        S(a_dormant_reader_gives_no_reference),
        S(demand_reaches_up_the_whole_chain),
        S(a_diamond_is_counted_by_its_arms),
        S(a_cycle_does_not_keep_itself_alive),
        S(a_cycle_goes_with_its_materialiser),
        S(a_root_stays_live_without_readers),
        S(branches_are_independent),
        S(a_late_writer_is_demanded_at_once),
        S(random_histories_leave_the_counts_right),
        S(there_is_no_edge_to_oneself),
        S(a_reader_outlives_its_writer),
        S(depth_is_no_problem),
        S(one_writer_two_readers),
        S(the_branch_not_taken_does_not_run),
        cmocka_unit_test(without_withdrawal_c38_fails),
    };
    LAB_EVERYWHERE(tests);
}
