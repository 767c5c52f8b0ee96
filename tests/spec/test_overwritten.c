/* test_overwritten.c -- two runtimes compute the same document, and one has written over what the other made (I1). */
#include "lab_inside.h"

#include "spec.h"

static const char *version = "1";
static const char *output = "y";
static bool anonymous, runs_between;

/* One runtime alone goes on until it has nothing left, and all that it has to say is stored. */
static void only(const char *runtime) {
    lab_on(l, runtime);
    hd_runtime_settle(lab_runtime_now(l));
    hd_runtime_sync(lab_runtime_now(l));
}

static double tenfold(const double *in) { return in[0] * 10; }
static double tenfold_and_one(const double *in) { return in[0] * 10 + 1; }

static void computes_y(const char *runtime, lab_formula formula) {
    lab_on(l, runtime);
    lab_add(l, .name = "y", .reads = "x", .formula = formula, .version = version, .output = output,
            .anonymous = anonymous);
    lab_effect(l, runtime, output);
}

/* Both compute y = 10 x and show 50. */
static void both_compute(void) {
    lab_on(l, "b");
    lab_set(l, "x", 5);
    lab_settle(l);
    computes_y("b", tenfold);
    lab_settle(l);
    computes_y("a", tenfold);
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_seen(l, "a", "50");
    assert_seen(l, "b", "50");
}

/* B writes x = 0 and x = 5, and the store does not hear of it yet. Its y is what it was: there is nothing to write. */
static void b_goes_there_and_back(void) {
    lab_hold(lab_on(l, "b"));
    lab_set(l, "x", 0);
    if (runs_between) lab_pass(l);
    lab_set(l, "x", 5);
    lab_pass(l);
}

static void a_writes_and_closes(double x) {
    lab_on(l, "a");
    lab_set(l, "x", x);
    only("a");
    lab_runtime_close(lab_on(l, "a"));
}

static void b_is_heard(void) {
    lab_advance_ms(l, 100);
    lab_mend(lab_on(l, "b"));
    lab_send(lab_on(l, "b"));
    lab_settle(l);
    lab_advance_ms(l, 1100);
    lab_settle(l);
}

/* What a program finds that opens the store afterwards and has no computations. */
static void rests_at(const char *x, const char *y) {
    lab_runtime_close(lab_on(l, "b"));
    lab_advance_ms(l, 100);
    lab_on(l, "looks");
    lab_settle(l);
    assert_json(l, "x", x);
    assert_json(l, "y", y);
}

static void y_follows_the_x_that_stays(void) {
    both_compute();
    b_goes_there_and_back();
    a_writes_and_closes(3);
    b_is_heard();
    assert_seen(l, "b", "50");
    rests_at("5", "50");
}

/* I1: B's x = 5 comes after A's x = 3, so that A's y is of an x that is gone. B computes y again, though nothing
 * that it read has changed. */
static void an_output_of_another_x_is_made_again(void **state) { y_follows_the_x_that_stays(); }

/* I1: the same for nodes of which no rows are stored. */
static void also_if_the_node_has_no_name(void **state) {
    anonymous = true;
    y_follows_the_x_that_stays();
    anonymous = false;
}

/* I1: the same where B has run between its two writes, and has an output to write. */
static void also_if_the_node_ran_between(void **state) {
    runs_between = true;
    y_follows_the_x_that_stays();
    runs_between = false;
}

/* I3: A's y is of the x that is here: B does not run. */
static void an_output_of_the_same_x_is_taken(void **state) {
    both_compute();
    lab_runtime_close(lab_on(l, "a"));
    lab_hold(lab_on(l, "b"));
    computes_y("a", tenfold);
    lab_set(l, "x", 3);
    only("a");
    lab_set(l, "x", 5);
    only("a");
    lab_ran(l);
    b_is_heard();
    assert_ran(l, "b");
    lab_runtime_close(lab_on(l, "a"));
    rests_at("5", "50");
}

/* Two versions of the computation disagree about y: the last one that wrote it has it, and both rest. */
static void two_versions_do_not_fight(void **state) {
    lab_on(l, "b");
    lab_set(l, "x", 5);
    lab_settle(l);
    computes_y("b", tenfold);
    lab_settle(l);
    version = "2";
    computes_y("a", tenfold_and_one);
    lab_settle(l);
    for (int i = 0; i < 20; i++) {
        lab_advance_ms(l, 100);
        lab_settle(l);
    }
    version = "1";
    assert_string_equal(lab_seen(l, "a"), lab_seen(l, "b"));
    assert_true(lab_find(l, "y")->runs <= 2);
}

/* I6: the same without names, where nothing says what the other's run has read: the echo breaker slows them down. */
static void what_overwrites_each_other_is_slowed_down(void **state) {
    anonymous = true;
    lab_on(l, "b");
    lab_set(l, "x", 5);
    lab_settle(l);
    computes_y("b", tenfold);
    lab_settle(l);
    computes_y("a", tenfold_and_one);
    anonymous = false;
    for (int i = 0; i < 60; i++) {
        for (int turn = 0; turn < 40; turn++) lab_pump(lab_on(l, turn & 1 ? "a" : "b"));
        lab_advance_ms(l, 1000);
    }
    assert_true(lab_find(l, "y")->runs <= 40);
}

/* The same with outputs that are parts of a document. */
static void parts_that_overwrite_each_other_are_slowed_down(void **state) {
    output = "d#/y";
    what_overwrites_each_other_is_slowed_down(state);
    output = "y";
}

/* A program that writes over an output does it on purpose: also where another program computes it. */
static void what_a_program_writes_over_an_output_stands(void **state) {
    both_compute();
    lab_ran(l);
    lab_on(l, "a");
    lab_set(l, "y", 77);
    lab_settle(l);
    lab_advance_ms(l, 100);
    lab_settle(l);
    assert_null(strstr(lab_ran(l), "y"));
    assert_seen(l, "a", "77");
    assert_seen(l, "b", "77");
}

/* I1: ... until that commit is refused: what comes to light below it need not be what the node made last. */
static void what_comes_to_light_below_a_refused_write_is_made_again(void **state) {
    both_compute();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "c");
    lab_hold(lab_on(l, "b"));
    lab_set(l, "x", 7);
    lab_pass(l);
    assert_json(l, "y", "70");
    lab_do(lab_on(l, "b"), "get other; set y 77");
    lab_pass(l);
    assert_seen(l, "b", "77");
    lab_on(l, "c");
    lab_set(l, "other", 1);
    only("c");
    b_is_heard();
    assert_seen(l, "b", "70");
    rests_at("7", "70");
}

/* I1: the same where another runtime has written below it meanwhile. */
static void also_if_it_was_written_over_below(void **state) {
    both_compute();
    b_goes_there_and_back();
    lab_do(lab_on(l, "b"), "get other; set y 77");
    lab_on(l, "a");
    lab_set(l, "other", 1);
    a_writes_and_closes(3);
    b_is_heard();
    assert_seen(l, "b", "50");
    rests_at("5", "50");
}

static hd_status part_of_a_document(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "d#/part", lab_tx_number(self, tx, "x") * 10);
}
static void computes_part(const char *runtime) {
    lab_on(l, runtime);
    lab_add(l, .name = "part", .body = part_of_a_document, .declares = "x", .output = "d#/part",
            .version = "1");
    lab_add(l, .name = "rest", .reads = "z", .output = "d#/rest", .version = "1");
    lab_effect(l, runtime, "d");
}

/* I1: outputs that are parts of one document: the one that was written over is made again. */
static void a_part_of_a_document_is_made_again(void **state) {
    lab_on(l, "b");
    lab_set(l, "x", 5);
    lab_set(l, "z", 1);
    lab_settle(l);
    computes_part("b");
    lab_settle(l);
    computes_part("a");
    lab_settle(l);
    b_goes_there_and_back();
    a_writes_and_closes(3);
    lab_ran(l);
    b_is_heard();
    assert_seen(l, "b", "{\"part\":50,\"rest\":1}");
    assert_null(strstr(lab_ran(l), "rest"));
    lab_runtime_close(lab_on(l, "b"));
    lab_advance_ms(l, 100);
    lab_on(l, "looks");
    lab_settle(l);
    assert_json(l, "d", "{\"part\":50,\"rest\":1}");
}

static double sum(const double *in) { return in[0] + in[1]; }

/* I1: another program removes an output: it is made again, also if no reader of it stands in the index, because the
 * only one is invalid already and nothing needs it. */
static void what_another_program_removes_is_made_again(void **state) {
    lab_on(l, "b");
    lab_set(l, "x", 5);
    lab_settle(l);
    lab_add(l, .name = "y", .reads = "x", .formula = tenfold, .version = "1");
    lab_add(l, .name = "z", .reads = "y w", .formula = sum, .version = "1");
    assert_string_equal(lab_pull(l, "z"), "50");
    lab_set(l, "w", 1);
    lab_settle(l);
    lab_on(l, "a");
    lab_pull(l, "y");
    lab_do(lab_on(l, "a"), "remove y");
    for (int i = 0; i < 4; i++) {
        lab_settle(l);
        lab_advance_ms(l, 100);
    }
    lab_on(l, "b");
    assert_string_equal(lab_pull(l, "z"), "51");
    assert_json(l, "y", "50");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(an_output_of_another_x_is_made_again),
        S(also_if_the_node_has_no_name),
        S(also_if_the_node_ran_between),
        S(an_output_of_the_same_x_is_taken),
        S(two_versions_do_not_fight),
        S(what_overwrites_each_other_is_slowed_down),
        S(parts_that_overwrite_each_other_are_slowed_down),
        S(what_a_program_writes_over_an_output_stands),
        S(what_comes_to_light_below_a_refused_write_is_made_again),
        S(also_if_it_was_written_over_below),
        S(a_part_of_a_document_is_made_again),
        S(what_another_program_removes_is_made_again),
    };
    LAB_EVERYWHERE(tests);
}
