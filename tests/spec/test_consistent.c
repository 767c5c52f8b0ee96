/* Every run, handler and pull sees one state: I4, 7.1, 7.3. What is out of date upstream runs first, or ends
 * its run first; a cycle is the only excuse. */
#include "lab_events.h"

#include "spec.h"

typedef struct later {
    hd_run *run; /* the one that is suspended now */
    double value;
} later;

/* Computes ten times what it reads, later. */
static hd_status ten_times_later(lab_node *self, hd_tx *tx) {
    later *a = self->data;
    a->value = 10 * lab_tx_number(self, tx, self->spec.declares);
    assert_int_equal(hd_tx_suspend(tx, &a->run), HD_OK);
    return HD_PENDING;
}

static void answer_with(const char *name, hd_status status) {
    later *a = lab_find(l, name)->data;
    hd_run *run = a->run;
    assert_non_null(run);
    a->run = NULL;
    if (!status) {
        hd_cell out = lab_cell(lab_on(l, "a"), name);
        status = hd_tx_set_int(hd_run_tx(run), out, (int64_t)a->value);
    }
    hd_run_resume(run, status);
}
static void answer(const char *name) { answer_with(name, HD_OK); }

static void add_later(const char *name, const char *reads, later *a) {
    lab_add(l, .name = name, .declares = reads, .body = ten_times_later, .data = a);
}

/* x = 1, y = ten times x, computed asynchronously; up to date, and then x = 2 with y's run suspended. */
static later of_y;
static void begin_y(void) {
    of_y = (later){ 0 };
    lab_set(l, "x", 1);
    add_later("y", "x", &of_y);
}
static void leave_y_suspended(void) {
    lab_settle(l);
    answer("y");
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "x", 2);
    lab_turn(l);
}

/* ---- suspended runs */

/* C357, I4, 7.1: an effect that reads x and y never sees the new x with the old y. */
static void an_effect_waits_for_the_suspended_run_of_what_it_reads(void **state) {
    begin_y();
    lab_effect(l, "show", "x y");
    leave_y_suspended();
    assert_ran(l, "y");
    assert_seen(l, "show", "1 10");
    answer("y");
    lab_settle(l);
    assert_ran(l, "show");
    assert_seen(l, "show", "2 20");
}

static double same(const double *in) { return in[0]; }

/* The node between them is clean all the time: it has not read anything new yet. */
static void a_suspended_run_is_waited_for_through_clean_nodes(void **state) {
    begin_y();
    lab_compute(l, "a", "y", same);
    lab_compute(l, "b", "a", same);
    lab_effect(l, "show", "x b");
    leave_y_suspended();
    assert_ran(l, "y");
    assert_seen(l, "show", "1 10");
    answer("y");
    lab_settle(l);
    assert_ran(l, "a b show");
    assert_seen(l, "show", "2 20");
}

static hd_status fill(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "table#/y", lab_tx_number(self, tx, "y"));
}

/* C376: between them is a materialiser, which is clean: it has not read anything new yet. */
static void a_suspended_run_is_waited_for_through_an_envelope(void **state) {
    begin_y();
    lab_set_json(l, "table", "{}");
    lab_add(l, .name = "fill", .body = fill, .output = "-", .envelopes = "table", .declares = "y");
    lab_effect(l, "show", "x table#/y");
    leave_y_suspended();
    assert_ran(l, "y");
    assert_seen(l, "show", "1 10");
    answer("y");
    lab_settle(l);
    assert_ran(l, "fill show");
    assert_seen(l, "show", "2 20");
}

static hd_status fill_with_x(lab_node *self, hd_tx *tx) {
    lab_tx_number(self, tx, "x");
    return fill(self, tx);
}

/* C376: or the materialiser is invalid, and waits itself. */
static void a_suspended_run_is_waited_for_through_an_invalid_materialiser(void **state) {
    begin_y();
    lab_set_json(l, "table", "{}");
    lab_add(l, .name = "fill", .body = fill_with_x, .output = "-", .envelopes = "table",
            .declares = "x y");
    lab_compute(l, "a", "table#/y", same);
    lab_effect(l, "show", "x a");
    leave_y_suspended();
    assert_ran(l, "y");
    assert_seen(l, "show", "1 10");
    answer("y");
    lab_settle(l);
    assert_ran(l, "fill a show");
    assert_seen(l, "show", "2 20");
}

/* C358: what is not downstream goes on. */
static void only_what_is_downstream_of_a_suspended_run_waits(void **state) {
    begin_y();
    lab_compute(l, "z", "x", same);
    lab_effect(l, "show", "x y");
    lab_effect(l, "other", "x z");
    leave_y_suspended();
    assert_seen(l, "other", "2 2");
    lab_set(l, "x", 3);
    lab_turn(l);
    assert_seen(l, "other", "3 3");
    assert_seen(l, "show", "1 10");
    answer("y"); /* of 2: stale */
    lab_settle(l);
    assert_seen(l, "show", "1 10");
    answer("y");
    lab_settle(l);
    assert_seen(l, "show", "3 30");
}

/* C245, I4: neither is a handler called on the mixture. */
static hd_status see(lab_handler *self, hd_tx *tx, const hd_event *event) {
    double x = hd_value_as_double(lab_tx_get(self, tx, "x"), 0),
           y = hd_value_as_double(lab_tx_get(self, tx, "y"), 0);
    return lab_tx_set(self, tx, "saw", hd_int(NULL, (int64_t)(1000 * x + y)));
}
static void i4_a_handler_waits_for_the_suspended_run_of_its_input(void **state) {
    begin_y();
    lab_handle(l, .stream = "see", .reads = "x y", .body = see);
    lab_effect(l, "show", "y");
    leave_y_suspended();
    lab_fire(l, "see", "1", NULL);
    lab_turn(l);
    assert_json(l, "saw", "-");
    answer("y");
    lab_settle(l);
    assert_json(l, "saw", "2020");
}

static void note_pulled(hd_value v, void *ctx) { *(double *)ctx = hd_value_as_double(v, -2); }
static void a_pull_waits_for_the_suspended_run(void **state) {
    double pulled = -1;
    begin_y();
    lab_effect(l, "show", "y");
    leave_y_suspended();
    hd_runtime *rt = lab_runtime_now(l);
    assert_int_equal(hd_pull(rt, lab_cell(lab_on(l, "a"), "y"), note_pulled, &pulled), HD_OK);
    lab_turn(l);
    assert_true(pulled == -1);
    answer("y");
    lab_turn(l);
    assert_true(pulled == 20);
}

static void why_not_names_the_run_that_is_waited_for(void **state) {
    char text[200];
    begin_y();
    lab_compute(l, "a", "y", same);
    lab_effect(l, "show", "x a");
    leave_y_suspended();
    hd_runtime *rt = lab_runtime_now(l);
    hd_why_not reason = hd_node_why_not(rt, lab_find(l, "show")->node, text, sizeof text);
    assert_int_equal(reason, HD_WHY_NOT_AWAITS);
    assert_string_equal(text, "it waits for the run of \"y\", which is suspended");
    assert_int_equal(lab_info(l, "show").waits_for.id, lab_find(l, "y")->node.id);
    assert_int_equal(lab_info(l, "y").why_not, HD_WHY_NOT_RUNNING);
    answer("y");
    lab_settle(l);
    assert_int_equal(lab_info(l, "show").why_not, HD_WHY_NOT_CLEAN);
    assert_int_equal(lab_info(l, "show").waits_for.id, 0);
}

static void a_run_that_ends_with_a_failure_is_waited_for_no_longer(void **state) {
    lab_catch(l);
    begin_y();
    lab_effect(l, "show", "x y");
    leave_y_suspended();
    answer_with("y", HD_FAILED);
    lab_settle(l);
    assert_string_equal(lab_failures(l), "y HD_FAILED");
    assert_seen(l, "show", "2 10");
}

static void a_suspended_node_that_is_cancelled_is_waited_for_no_longer(void **state) {
    begin_y();
    lab_effect(l, "show", "x y");
    leave_y_suspended();
    hd_run *run = of_y.run;
    lab_cancel(l, "y");
    lab_settle(l);
    assert_seen(l, "show", "2 10");
    hd_run_resume(run, HD_OK);
}

/* Nothing leads from y to the effect any more. */
static void a_node_between_that_is_cancelled_ends_the_waiting(void **state) {
    begin_y();
    lab_compute(l, "a", "y", same);
    lab_effect(l, "show", "x a");
    leave_y_suspended();
    lab_cancel(l, "a");
    lab_turn(l);
    assert_seen(l, "show", "2 10");
    answer("y");
}

/* Neither waits for the other for ever. */
static void suspended_runs_in_a_cycle_do_not_block_each_other(void **state) {
    later a = { 0 }, b = { 0 };
    add_later("a", "b", &a);
    add_later("b", "a", &b);
    lab_effect(l, "show", "a b");
    lab_turn(l);
    for (int i = 0; i < 8 && (a.run || b.run); i++) {
        if (a.run) answer("a");
        lab_turn(l);
        if (b.run) answer("b");
        lab_turn(l);
    }
    assert_null(a.run);
    assert_null(b.run);
    lab_settle(l);
    assert_seen(l, "show", "0 0");
}

/* The effect learns only in its body that it reads y, whose run is suspended. */
static char reader_saw[200];
static hd_status read_what_w_says(lab_node *self, hd_tx *tx) {
    double w = lab_tx_number(self, tx, "w"), x = lab_tx_number(self, tx, "x");
    hd_value v = hd_int(NULL, 0);
    if (w != 0) v = hd_tx_get(tx, lab_cell(lab_on(l, "a"), "y"));
    if (hd_value_status(v)) return hd_value_status(v);
    size_t n = strlen(reader_saw);
    snprintf(reader_saw + n, sizeof reader_saw - n, "%g:%g ", x, hd_value_as_double(v, -1));
    return HD_OK;
}
static void a_new_read_of_a_suspended_result_waits(void **state) {
    *reader_saw = 0;
    begin_y();
    lab_effect(l, "show", "y");
    lab_add(l, .name = "reader", .effect = true, .declares = "-", .body = read_what_w_says);
    leave_y_suspended();
    lab_set(l, "w", 1);
    lab_turn(l);
    assert_string_equal(reader_saw, "1:0 2:0 ");
    answer("y");
    lab_settle(l);
    assert_string_equal(reader_saw, "1:0 2:0 2:20 ");
}

/* ---- what is discovered */

/* Reads p, then what p names; and so on. */
static hd_status follow(lab_node *self, hd_tx *tx) {
    double sum = 0;
    char name[16] = "p0";
    for (int i = 0; i < 4; i++) {
        double next = lab_tx_number(self, tx, name);
        sum = 10 * sum + next;
        if (hd_value_status(hd_tx_get(tx, lab_cell(lab_on(l, "a"), name)))) break;
        if (next == 0) break;
        snprintf(name, sizeof name, "p%g", next);
    }
    return self->spec.effect ? HD_OK : lab_tx_put(self, tx, self->spec.name, sum);
}
static double plus_one(const double *in) { return in[0] + 1; }
static double four(const double *in) { return 4 + 0 * in[0]; }

static char shown[200];
static void show_value(hd_value v, void *ctx) {
    size_t n = strlen(shown);
    snprintf(shown + n, sizeof shown - n, "%g ", hd_value_as_double(v, -1));
}

/* C359, decision 0029: a run that meets one invalid writer after the other is set aside each time. */
static void a_run_is_set_aside_for_every_writer_that_it_discovers(void **state) {
    *shown = 0;
    lab_set(l, "x", 0);
    lab_compute(l, "p3", "x", four);
    lab_compute(l, "p2", "x", plus_one);
    lab_compute(l, "p0", "x", same);
    lab_add(l, .name = "f", .declares = "-", .body = follow);
    hd_sink(lab_runtime_now(l), lab_cell(lab_on(l, "a"), "f"), show_value, NULL);
    lab_settle(l);
    assert_string_equal(shown, "0 ");
    lab_set(l, "x", 2); /* p0 = 2, p2 = 3, p3 = 4 */
    lab_settle(l);
    assert_string_equal(shown, "0 2340 ");
    assert_int_equal(lab_find(l, "p3")->runs, 1);
}

/* Reads all cells that its name names, and notes what it got; "!": HD_PENDING. */
static char looks[400];
static hd_status look_again(lab_node *self, hd_tx *tx) {
    char names[200], *rest = NULL;
    snprintf(names, sizeof names, "%s", self->spec.name);
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        size_t n = strlen(looks);
        hd_value v = hd_tx_get(tx, lab_cell(self->at, name));
        if (hd_value_status(v) == HD_PENDING) snprintf(looks + n, sizeof looks - n, "! ");
        else snprintf(looks + n, sizeof looks - n, "%g ", hd_value_as_double(v, -1));
    }
    return HD_OK;
}

/* C359, decision 0600: after a read that came too early, what was read before gives the same again, and everything else
 * fails, also what is up to date. */
static void what_was_read_before_an_early_read_can_be_read_again(void **state) {
    *looks = 0;
    lab_set(l, "x", 1);
    lab_set(l, "y", 2);
    lab_compute(l, "p", "x", plus_one);
    lab_add(l, .name = "x p x p y y x", .effect = true, .declares = "-", .body = look_again);
    lab_settle(l);
    assert_string_equal(looks, "1 ! 1 ! ! ! 1 1 2 1 2 2 2 1 ");
}

/* The same in a journal that has an index. */
static void what_was_read_before_an_early_read_is_found_among_many(void **state) {
    *looks = 0;
    lab_set(l, "x", 1);
    for (int i = 0; i < 20; i++) lab_set(l, (char[]){ (char)('a' + i), 0 }, i);
    lab_compute(l, "y", "x", plus_one);
    lab_add(l, .name = "a b c d e f g h i j k l m n o p q r s t y x y a t s", .effect = true,
            .declares = "-", .body = look_again);
    lab_settle(l);
    assert_string_equal(looks, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 ! ! ! 0 19 18 "
                               "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 2 1 2 0 19 18 ");
}

/* An effect writes what p copies, and another reads both: it sees them before or after, not between. */
static hd_status write_s(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "s", lab_tx_number(self, tx, "x"));
}
static char pairs[200];
static hd_status note_pair(lab_node *self, hd_tx *tx) {
    double s = lab_tx_number(self, tx, "s"), p = lab_tx_number(self, tx, "p");
    size_t n = strlen(pairs);
    snprintf(pairs + n, sizeof pairs - n, "%g:%g ", s, p);
    return HD_OK;
}
static void what_an_effect_writes_is_derived_from_before_others_see_it(void **state) {
    *pairs = 0;
    lab_set(l, "x", 1);
    lab_compute(l, "p", "s", same);
    lab_add(l, .name = "writer", .effect = true, .declares = "x", .body = write_s);
    lab_add(l, .name = "pair", .effect = true, .declares = "s p", .body = note_pair);
    lab_settle(l);
    lab_set(l, "x", 2);
    lab_settle(l);
    lab_set(l, "x", 3);
    lab_settle(l);
    assert_string_equal(pairs, "1:1 2:2 3:3 ");
}

/* ---- failing runs */

static hd_status fail_on_b(lab_node *self, hd_tx *tx) {
    if (lab_tx_number(self, tx, "a") == 0) return HD_OK;
    return lab_tx_number(self, tx, "b") != 0 ? HD_OK : HD_FAILED;
}

/* 7.3: what a failed run read for the first time makes it run again. */
static void a_failed_run_depends_on_what_it_read(void **state) {
    lab_catch(l);
    lab_add(l, .name = "picky", .effect = true, .declares = "-", .body = fail_on_b);
    lab_settle(l);
    lab_set(l, "a", 1);
    lab_settle(l);
    assert_string_equal(lab_failures(l), "picky HD_FAILED");
    assert_ran(l, "picky picky");
    lab_set(l, "b", 1);
    lab_settle(l);
    assert_ran(l, "picky");
    lab_set(l, "c", 1);
    lab_settle(l);
    assert_ran(l, "");
}

/* ---- effects that feed what they read */

/* What is made of the result of a suspended run cannot be stored before that run has ended: an effect that
 * was called all the same would be refused, and called again, ten times. */
static hd_status keep_c(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "t", lab_tx_number(self, tx, "c"));
}
static void an_effect_that_writes_runs_once_for_each_answer(void **state) {
    later c = { 0 };
    lab_compute(l, "p", "s", same);
    add_later("c", "p", &c);
    lab_add(l, .name = "keep", .effect = true, .declares = "c", .body = keep_c);
    lab_turn(l);
    answer("c");
    lab_set(l, "s", 1);
    lab_settle(l);
    lab_set(l, "s", 2);
    answer("c");
    lab_settle(l);
    assert_true(lab_find(l, "keep")->runs <= 2);
    answer("c");
    lab_settle(l);
    assert_true(lab_find(l, "keep")->runs <= 3);
    assert_json(l, "t", "20");
    assert_int_equal(lab_stats(l).exhausted, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(an_effect_waits_for_the_suspended_run_of_what_it_reads),
        S(a_suspended_run_is_waited_for_through_clean_nodes),
        S(a_suspended_run_is_waited_for_through_an_envelope),
        S(a_suspended_run_is_waited_for_through_an_invalid_materialiser),
        S(only_what_is_downstream_of_a_suspended_run_waits),
        S(i4_a_handler_waits_for_the_suspended_run_of_its_input),
        S(a_pull_waits_for_the_suspended_run),
        S(why_not_names_the_run_that_is_waited_for),
        S(a_run_that_ends_with_a_failure_is_waited_for_no_longer),
        S(a_suspended_node_that_is_cancelled_is_waited_for_no_longer),
        S(a_node_between_that_is_cancelled_ends_the_waiting),
        S(suspended_runs_in_a_cycle_do_not_block_each_other),
        S(a_new_read_of_a_suspended_result_waits),
        S(a_run_is_set_aside_for_every_writer_that_it_discovers),
        S(what_was_read_before_an_early_read_can_be_read_again),
        S(what_was_read_before_an_early_read_is_found_among_many),
        S(what_an_effect_writes_is_derived_from_before_others_see_it),
        S(a_failed_run_depends_on_what_it_read),
        S(an_effect_that_writes_runs_once_for_each_answer),
    };
    LAB_EVERYWHERE(tests);
}
