/* 11_lab.c -- testing a graph with the lab: what ran, when, and why; no test framework needed.
 *
 * The graph: a reminder that is shown when a note has not changed for half a second. */
#include <heddle.h>
#include <heddle/lab.h>
#include <stdio.h>

static hd_status shorten(hd_tx *tx, void *ctx) {
    hd_runtime *rt = hd_tx_runtime(tx);
    (void)ctx;
    const char *note = hd_value_as_text(hd_tx_get(tx, hd_cell_at(rt, "main/note")), "");
    hd_value reminder = hd_string_f(hd_tx_pool(tx), "%.8s...", note);
    return hd_tx_set(tx, hd_cell_at(rt, "main/reminder"), reminder);
}

static hd_status show(hd_tx *tx, void *ctx) {
    (void)ctx;
    return hd_value_status(hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/reminder")));
}

static void reminders_start(hd_runtime *rt) {
    hd_compute(rt, "shorten", shorten, NULL, hd_cell_at(rt, "main/reminder"));
    hd_node_set_debounce(rt, hd_node_find(rt, "shorten"), 500);
    hd_effect(rt, "show", show, NULL);
}

/* The test. */

static void a_note_in_the_making_is_left_alone(void) {
    hd_lab *lab = hd_lab_open(NULL);
    hd_runtime *rt = hd_lab_runtime(lab, "a");
    reminders_start(rt);
    hd_lab_set(rt, "main/note", "\"buy bread\"");
    hd_lab_idle(lab); /* lets time pass until nothing is left to do */
    hd_lab_ran(rt);

    hd_lab_set(rt, "main/note", "\"buy bread and\"");
    hd_lab_advance_ms(lab, 400);
    hd_lab_set(rt, "main/note", "\"buy bread and salt\"");
    hd_lab_advance_ms(lab, 400);
    hd_lab_settle(lab);
    hd_lab_expect_ran(rt, ""); /* it has changed too recently */

    hd_lab_advance_ms(lab, 100);
    hd_lab_settle(lab);
    hd_lab_expect_ran(rt, "shorten"); /* the same eight letters: nobody is woken */
    hd_lab_expect_cell(rt, "main/reminder", "\"buy brea...\"");
    hd_lab_close(lab);
}

static void print_message(const char *message, void *ctx) {
    (void)ctx;
    printf("%s\n", message);
}

/* What is told when an expectation does not hold: here it is printed, by default it ends the test. */
static void a_failed_expectation_says_why(void) {
    hd_lab *lab = hd_lab_open(&(hd_lab_options){ .fail = print_message });
    hd_runtime *rt = hd_lab_runtime(lab, "a");
    reminders_start(rt);
    hd_lab_idle(lab);
    hd_lab_ran(rt);
    hd_lab_set(rt, "main/note", "\"call Ada\"");
    hd_lab_settle(lab);
    hd_lab_expect_ran_at("11_lab.c", 1, rt, "shorten show");
    hd_lab_close(lab);
}

int main(void) {
    a_note_in_the_making_is_left_alone();
    printf("passed\n");
    a_failed_expectation_says_why();
    return 0;
}
