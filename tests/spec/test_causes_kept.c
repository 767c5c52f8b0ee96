/* test_causes_kept.c -- D9, I8, section 10: the causes of a run are what triggered it, whatever it reads
 * then; they go with its commit, come back with a retry, and are complete. */
#include "lab_inside.h"
#include "spec.h"

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static char story[2048];

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* The names of some cells, in alphabetical order. */
static const char *names_of(const hd_cell *cells, size_t count) {
    static char out[1024];
    char names[16][64];
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        char full[64];
        hd_cell_print(rt(), cells[i], full, sizeof full);
        snprintf(names[i], sizeof names[i], "%s", strncmp(full, "main/", 5) ? full : full + 5);
    }
    qsort(names, count, sizeof *names, by_text);
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        if (i) strcat(out, " ");
        strcat(out, names[i]);
    }
    return count ? out : "-";
}

static void tell_run(hd_tx *tx) {
    hd_cell causes[16];
    size_t count = hd_tx_causes(tx, causes, 16);
    if (*story) strcat(story, "; ");
    strcat(story, names_of(causes, count));
}

#define assert_story(text)                                                                         \
    do {                                                                                           \
        assert_string_equal(story, text);                                                          \
        story[0] = 0;                                                                              \
    } while (0)

/* Reads "flag" and "n"; while flag is not 0, "x" as well. Writes "out". */
static hd_status choose(lab_node *self, hd_tx *tx) {
    tell_run(tx);
    bool flag = lab_tx_number(self, tx, "flag") != 0;
    double n = lab_tx_number(self, tx, "n");
    double x = flag ? lab_tx_number(self, tx, "x") : 0;
    return lab_tx_put(self, tx, "out", 100 * flag + 10 * n + x + (double)self->runs);
}

static void start_choosing(void) {
    lab_do(lab_first(l), "set flag 1; set x 1; set n 1");
    story[0] = 0;
    lab_add(l, .name = "choose", .body = choose, .effect = true);
    lab_settle(l);
    assert_story("-");
}

static char told[256];
static bool keep_cause(const hd_cause *c, void *ctx) {
    char name[64];
    if (c->depth) return true;
    hd_cell_print(rt(), c->cell, name, sizeof name);
    strcat(told, *told ? " " : "");
    strcat(told, c->pending ? "(" : "");
    strcat(told, name + 5);
    strcat(told, c->pending ? ")" : "");
    return true;
}
static const char *why(const char *name) {
    told[0] = 0;
    assert_status(hd_node_why(rt(), lab_find(l, name)->node, keep_cause, NULL), HD_OK);
    return told;
}

/* C365: a run that no longer reads what triggered it: hd_node_why names it. */
static void why_names_what_is_no_longer_read(void **state) {
    start_choosing();
    lab_do(lab_first(l), "set flag 0; set x 2");
    lab_settle(l);
    assert_story("flag x");
    assert_string_equal(why("choose"), "flag x");
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_story("n");
    assert_string_equal(why("choose"), "n");
}

/* What a run reads for the first time was not its cause, though it has changed since the run before. */
static void what_is_read_for_the_first_time_is_no_cause(void **state) {
    lab_do(lab_first(l), "set flag 0; set x 1; set n 1");
    story[0] = 0;
    lab_add(l, .name = "choose", .body = choose, .effect = true);
    lab_settle(l);
    lab_do(lab_first(l), "set flag 1; set x 2");
    lab_settle(l);
    assert_story("-; flag");
    assert_string_equal(why("choose"), "flag");
}

/* What a node writes itself did not cause the run that wrote it. */
static hd_status count_up(lab_node *self, hd_tx *tx) {
    tell_run(tx);
    double n = lab_tx_number(self, tx, "n"), own = lab_tx_number(self, tx, "own");
    return lab_tx_put(self, tx, "own", own + n);
}
static void own_writes_are_no_causes_in_why(void **state) {
    story[0] = 0;
    lab_add(l, .name = "count_up", .body = count_up, .effect = true);
    lab_settle(l);
    lab_set(l, "n", 3);
    lab_settle(l);
    assert_story("-; n");
    assert_string_equal(why("count_up"), "n");
}

/* C339: refused and run again it has its causes, also those that it does not read any more. */
static void a_refused_run_keeps_what_it_no_longer_reads(void **state) {
    lab_runtime *b = lab_on(l, "b");
    lab_on(l, "a");
    start_choosing();
    lab_write(b, "n", "5");
    lab_send(b); /* decided, but a has not heard of it */
    lab_do(lab_first(l), "set flag 0; set x 2");
    lab_pass(l);
    assert_story("flag x");
    lab_settle(l);
    assert_story("flag n x");
    assert_string_equal(lab_json(l, "flag"), "0");
    lab_set(l, "n", 6);
    lab_settle(l);
    assert_story("n");
}

/* The commit itself names them, until its verdict, also where nothing else refers to those places any
 * more: through a link that is gone. */
static hd_status follow(lab_node *self, hd_tx *tx) {
    tell_run(tx);
    double flag = lab_tx_number(self, tx, "flag");
    if (flag != 0) (void)hd_tx_get(tx, lab_cell(self->at, "doc#/link/value"));
    return lab_tx_put(self, tx, "out", flag);
}
static void a_commit_holds_the_places_of_its_causes(void **state) {
    lab_set_json(l, "target", "{\"in\":{\"value\":1}}");
    lab_do(lab_first(l), "set doc {\"link\":{\"$link\":{\"id\":\"target\",\"path\":\"/in\"}}}; "
                         "set flag 1");
    story[0] = 0;
    lab_add(l, .name = "follow", .body = follow, .effect = true);
    lab_settle(l);
    assert_story("-");
    lab_hold(lab_first(l));
    lab_do(lab_first(l), "set target {\"in\":{\"value\":2}}; set flag 0; set doc {}");
    lab_pass(l);
    lab_mend(lab_first(l));
    lab_settle(l);
    assert_non_null(strstr(story, "target#/in/value"));
    lab_set(l, "flag", 2);
    lab_settle(l);
    assert_string_equal(lab_json(l, "out"), "2");
}

/* A run that meets a writer which has yet to run is set aside; begun again, it has its causes. */
static hd_status ask_two(lab_node *self, hd_tx *tx) {
    tell_run(tx);
    bool flag = lab_tx_number(self, tx, "flag") != 0;
    return lab_tx_put(self, tx, "ask_two",
                      flag ? lab_tx_number(self, tx, "late") : lab_tx_number(self, tx, "x"));
}
static double plus_one(const double *in) { return in[0] + 1; }
static void a_run_that_was_set_aside_keeps_its_causes(void **state) {
    lab_do(lab_first(l), "set flag 0; set x 1; set n 1");
    lab_compute(l, "late", "n", plus_one);
    story[0] = 0;
    lab_add(l, .name = "ask_two", .body = ask_two, .output = "ask_two");
    lab_effect(l, "show", "ask_two");
    lab_settle(l);
    assert_story("-");
    lab_do(lab_first(l), "set flag 1; set x 2");
    lab_settle(l);
    assert_string_equal(lab_json(l, "ask_two"), "2");
    assert_story("flag x; flag late x");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_story("late");
    assert_string_equal(why("ask_two"), "late");
}

/* Suspended, and stale when it ends: what began it causes the next one, too. */
static hd_run *run_;
static hd_status wait_once(lab_node *self, hd_tx *tx) {
    hd_status status = choose(self, tx);
    return status || self->runs != 2 ? status : hd_tx_suspend(tx, &run_) ? HD_NOMEM : HD_PENDING;
}
static void a_suspended_run_that_goes_stale_keeps_its_causes(void **state) {
    lab_do(lab_first(l), "set flag 1; set x 1; set n 1");
    story[0] = 0;
    lab_add(l, .name = "wait", .body = wait_once, .effect = true);
    lab_settle(l);
    lab_do(lab_first(l), "set flag 0; set x 2");
    lab_turn(l);
    assert_story("-; flag x");
    lab_set(l, "n", 2);
    lab_set(l, "x", 3);
    hd_run_resume(run_, HD_OK);
    lab_settle(l);
    assert_story("flag n x");
    assert_string_equal(why("wait"), "flag x n");
}

/* What changed while it was suspended, and it had not read, did not cause it. */
static void what_changed_during_a_run_did_not_cause_it(void **state) {
    lab_do(lab_first(l), "set flag 1; set x 1; set n 1");
    story[0] = 0;
    lab_add(l, .name = "wait", .body = wait_once, .effect = true);
    lab_settle(l);
    lab_set(l, "flag", 0);
    lab_turn(l);
    assert_story("-; flag");
    lab_set(l, "x", 3); /* read by the run before, not by this one */
    hd_run_resume(run_, HD_OK);
    lab_settle(l);
    assert_story("");
    assert_string_equal(why("wait"), "flag");
}

/* A failed run names them, too. */
static hd_status choose_badly(lab_node *self, hd_tx *tx) {
    hd_status status = choose(self, tx);
    return status || lab_tx_number(self, tx, "flag") != 0 ? status : HD_MISMATCH;
}
static char failure_causes[64];
static void note_failure(const hd_failure *f, void *ctx) {
    assert_int_equal(f->causes_more, 0);
    snprintf(failure_causes, sizeof failure_causes, "%s", names_of(f->causes, f->cause_count));
}
static void a_failure_names_what_is_no_longer_read(void **state) {
    lab_do(lab_first(l), "set flag 1; set x 1; set n 1");
    assert_status(hd_runtime_on_error(rt(), note_failure, NULL), HD_OK);
    lab_add(l, .name = "choose", .body = choose_badly, .effect = true);
    lab_settle(l);
    lab_do(lab_first(l), "set flag 0; set x 2");
    lab_settle(l);
    assert_string_equal(failure_causes, "flag x");
    story[0] = 0;
}

/* ---- how many */

enum { MANY = 100 };

static size_t counted, filled;
static hd_status read_many(lab_node *self, hd_tx *tx) {
    hd_cell causes[200] = { { 0 } };
    counted = hd_tx_causes(tx, causes, 200);
    for (filled = 0; filled < 200 && causes[filled].id; filled++) continue;
    double sum = 0;
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        sum += lab_tx_number(self, tx, name);
    }
    return lab_tx_put(self, tx, "out", sum);
}

static void change_many(void) {
    char script[4096] = "";
    for (int i = 0; i < MANY; i++)
        snprintf(script + strlen(script), sizeof script - strlen(script), "%sset d%d 1",
                 i ? "; " : "", i);
    lab_do(lab_first(l), script);
}

/* hd_tx_causes returns how many there are, and writes as many as there is room for. The commit has them
 * all. */
static void a_hundred_causes_are_a_hundred(void **state) {
    lab_on(l, "b");
    lab_on(l, "a");
    lab_add(l, .name = "many", .body = read_many, .effect = true);
    lab_settle(l);
    assert_int_equal(counted, 0);
    lab_hold(lab_first(l));
    change_many();
    lab_pass(l);
    assert_int_equal(counted, MANY);
    assert_int_equal(filled, MANY);
    assert_int_equal(lab_commit_causes(l), MANY);
    lab_mend(lab_first(l));
    lab_settle(l);
}

/* ---- what is derived */

static double sum_of(const double *in) { return in[0] + in[1]; }
static double ten_times(const double *in) { return 10 * in[0]; }

/* C366, I8: each document of a seal says which node wrote it, and what caused that run. */
static void each_document_of_a_seal_has_its_author(void **state) {
    lab_on(l, "b");
    lab_on(l, "a");
    lab_do(lab_first(l), "set x 1; set y 1; set z 1");
    lab_compute(l, "sum", "x y", sum_of);
    lab_compute(l, "tens", "z", ten_times);
    lab_effect(l, "show", "sum tens");
    lab_settle(l);
    lab_hold(lab_first(l));
    lab_do(lab_first(l), "set y 3; set z 3");
    lab_pass(l);
    lab_seal(l);
    assert_non_null(strstr(lab_commit_authors(l), "sum: y"));
    assert_non_null(strstr(lab_commit_authors(l), "tens: z"));
    lab_mend(lab_first(l));
    lab_settle(l);
}

/* ---- after a restart */

static hd_status choose_sum(lab_node *self, hd_tx *tx) {
    tell_run(tx);
    bool flag = lab_tx_number(self, tx, "flag") != 0;
    double n = lab_tx_number(self, tx, "n");
    return lab_tx_put(self, tx, "sum", n + (flag ? lab_tx_number(self, tx, "x") : 0));
}
static void register_sum(void) {
    lab_add(l, .name = "sum", .body = choose_sum, .output = "sum");
    lab_effect(l, "show", "sum");
}

/* The first run after a restart has what was found changed as its causes, also what it does not read then; and its
 * commit may name that. */
static void a_resumed_node_has_what_was_found_changed(void **state) {
    lab_do(lab_first(l), "set flag 1; set x 1; set n 1");
    story[0] = 0;
    register_sum();
    lab_settle(l);
    hd_runtime_sync(rt());
    assert_story("-");
    lab_runtime_close(lab_on(l, "a"));
    lab_do(lab_on(l, "b"), "set flag 0; set x 2");
    lab_settle(l);
    lab_on(l, "a");
    register_sum();
    lab_settle(l);
    assert_story("flag x");
    assert_string_equal(why("sum"), "flag x");
    assert_string_equal(lab_json(l, "sum"), "1");
    lab_set(l, "n", 4);
    lab_settle(l);
    assert_story("n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(why_names_what_is_no_longer_read),
        S(what_is_read_for_the_first_time_is_no_cause),
        S(own_writes_are_no_causes_in_why),
        S(a_refused_run_keeps_what_it_no_longer_reads),
        S(a_commit_holds_the_places_of_its_causes),
        S(a_run_that_was_set_aside_keeps_its_causes),
        S(a_suspended_run_that_goes_stale_keeps_its_causes),
        S(what_changed_during_a_run_did_not_cause_it),
        S(a_failure_names_what_is_no_longer_read),
        S(a_hundred_causes_are_a_hundred),
        S(each_document_of_a_seal_has_its_author),
        S(a_resumed_node_has_what_was_found_changed),
    };
    LAB_EVERYWHERE(tests);
}
