/* test_resume_rows.c -- which row speaks for a node, and what becomes of rows (area O). */
#include "lab_inside.h"

#include "spec.h"
#include <heddle/pattern.h>
#include <stdarg.h>

static hd_runtime *rt(void) { return lab_runtime_now(l); }

static void settle(void) {
    lab_settle(l);
    hd_runtime_sync(rt());
}

static char text[2048];

static void print(const char *format, ...) {
    va_list arguments;
    size_t n = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + n, sizeof text - n, format, arguments);
    va_end(arguments);
}

static void print_row(const lab_row *row, void *ctx) {
    print("%s%s:%s%s;", row->name, row->instance, *row->cells ? " " : "", row->cells);
}

/* "name: what it read =what it wrote;" for each row of a piece. */
static const char *rows(const char *piece) {
    text[0] = '\0';
    lab_each_row(l, piece, print_row, NULL);
    return text;
}

static uint64_t seq_now(void) { return lab_seq(l, "main"); }

/* ---- what is in a row */

static void print_all(const lab_row *row, void *ctx) {
    print("%s '%s' '%s' '%s';", row->name, row->instance, row->flags, row->reads);
}

static hd_status read_all_ways(lab_node *self, hd_tx *tx) {
    hd_tx_get_shape(tx, hd_cell_at(rt(), "main/doc"));
    hd_tx_read(tx, hd_cell_at(rt(), "main/ignored"), HD_READ_NO_DEPENDENCY);
    hd_tx_set_int(tx, hd_cell_at(rt(), "main/aside"), 1); /* as it is: attempted, not changed */
    return lab_tx_put(self, tx, "mixed", lab_tx_number(self, tx, "n"));
}

/* C293: a row says what was read, by value and by shape, the node's output, and the gates; nothing of what
 * was read without depending on it, nor of other writes. */
static void a_row_has_reads_and_gates(void **state) {
    lab_set(l, "n", 1);
    lab_set(l, "aside", 1);
    lab_set(l, "ignored", 1);
    lab_set_json(l, "doc", "{\"a\": 1}");
    lab_add(l, .name = "mixed", .body = read_all_ways, .version = "1");
    hd_node_set_throttle(rt(), lab_find(l, "mixed")->node, 400);
    hd_node_set_debounce(rt(), lab_find(l, "mixed")->node, 30);
    lab_effect(l, "show", "mixed");
    settle();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    text[0] = '\0';
    lab_each_row(l, "main:main", print_all, NULL);
    assert_string_equal(text, "main:main:mixed '' '' '~main/doc\nmain/n\n=main/mixed\n';"
                              "main:main:mixed 'gates' '30 400' '';");
}

/* C293: what it is known by is its own: two nodes that read the same have two rows, and each its code; that
 * of a run that failed says so. */
static void print_state(const lab_row *row, void *ctx) {
    char *last = ctx;
    bool failed = strchr(row->flags, 'f') != NULL;
    assert_string_not_equal(last, row->print);
    snprintf(last, 64, "%s", row->print);
    print("%s%s;", row->name, failed ? " failed" : "");
}
static void a_row_has_code_and_status(void **state) {
    char last[64] = "";
    lab_set(l, "n", 1);
    lab_add(l, .name = "good", .reads = "n", .version = "1");
    lab_add(l, .name = "worse", .reads = "n", .version = "1");
    lab_effect(l, "show", "good worse");
    lab_catch(l);
    settle();
    lab_set(l, "n", 2);
    lab_fail_next(l, "worse", HD_FAILED, 1);
    settle();
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    text[0] = '\0';
    lab_each_row(l, "main:main", print_state, last);
    assert_non_null(strstr(text, "main:main:good;"));
    assert_non_null(strstr(text, "main:main:worse failed;"));
}

static hd_status make_kid(lab_node *self, hd_tx *tx) {
    hd_status status = lab_tx_put(self, tx, self->spec.name, lab_tx_number(self, tx, "n"));
    if (self->runs == 1) lab_add(l, .name = "kid", .reads = "n", .version = "1");
    return status;
}

/* C305: without a name, or below one without, nothing is kept of a node; nor of effects. */
static void without_a_name_there_is_no_row(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "plain", .reads = "n", .anonymous = true);
    lab_add(l, .name = "parent", .body = make_kid, .anonymous = true);
    lab_effect(l, "show", "plain parent kid");
    settle();
    assert_seen(l, "show", "1 1 1");
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    assert_string_equal(rows("main:main"), "");
}

/* ---- refused */

static double always_two(const double *in) { return in[0] * 0 + 2; }

static void left_and_right(void) {
    lab_add(l, .name = "left", .reads = "n k", .formula = always_two, .version = "1");
    lab_add(l, .name = "right", .reads = "m", .formula = always_two, .version = "1");
    lab_effect(l, "show", "left right");
}

/* Rows of two runs travel together, and what one of them read has changed: neither is kept. The other
 * one is sent again, without a run. */
static void a_refused_row_takes_others_with_it_for_a_while(void **state) {
    if (!lab_is_shared(l)) return; /* a store of one's own hears of derived state when one closes */
    lab_set(l, "n", 1);
    lab_set(l, "m", 1);
    lab_set(l, "k", 1);
    left_and_right();
    settle();
    lab_set(l, "n", 2);
    lab_set(l, "m", 2);
    lab_settle(l); /* their results are as before: the rows wait for something to go with */
    lab_ran(l);
    lab_on(l, "b");
    lab_set(l, "k", 2);
    lab_send(lab_on(l, "b"));
    lab_on(l, "a");
    lab_seal(l);
    lab_send(lab_on(l, "a")); /* decided before it could hear of k */
    lab_advance_ms(l, 1500);
    settle();
    lab_advance_ms(l, 1500);
    settle();
    assert_ran(l, "left");
    hd_store_stats stats;
    hd_runtime_store_stats(rt(), &stats);
    assert_int_equal(stats.rejected, 1);
    lab_runtime_drop(lab_on(l, "a"));
    lab_on(l, "a");
    left_and_right();
    settle();
    assert_ran(l, "show");
}

/* ---- several candidates */

static double always_one(const double *in) { return in[0] * 0 + 1; }

static void as(const char *runtime, const char *principal) {
    hd_status status;
    lab_runtime_try(l, runtime, principal, &status);
    lab_on(l, runtime);
}
static void leave(const char *runtime) {
    settle();
    lab_runtime_close(lab_on(l, runtime));
}

/* One life of a program whose node reads what its user has set up. */
static void live(const char *runtime, const char *principal, const char *reads) {
    as(runtime, principal);
    lab_add(l, .name = "mix", .reads = reads, .formula = always_one, .version = "1");
    lab_effect(l, "show", "mix");
    leave(runtime);
}

static void two_candidates(void) {
    lab_set(l, "n", 1);
    lab_set(l, "m", 1);
    leave("a");
    as("ann0", "ann");
    lab_set(l, "main@user/own", 1);
    leave("ann0");
    live("ann1", "ann", "n main@user/own");
    live("bob1", "bob", "n m");
    assert_ran(l, "mix show mix show");
}

/* C298: the row of everybody and one's own: one's own is chosen, though the other is stale. */
static void the_matching_row_is_chosen(void **state) {
    two_candidates();
    as("z", NULL);
    assert_string_equal(rows("main:main"),
                        "main:main:mix: n m =mix;main:main:mixuser:ann: n own =mix;");
    lab_set(l, "m", 2);
    leave("z");
    live("ann2", "ann", "n main@user/own");
    assert_ran(l, "show");
    live("bob2", "bob", "n m");
    assert_ran(l, "mix show");
}

/* C298: one's own is stale: that of everybody, which holds, does not stand in for it. */
static void a_stale_narrow_row_decides(void **state) {
    two_candidates();
    as("ann2", "ann");
    lab_set(l, "main@user/own", 2);
    leave("ann2");
    live("bob2", "bob", "n m");
    assert_ran(l, "show");
    live("ann3", "ann", "n main@user/own");
    assert_ran(l, "mix show");
}

/* ---- commits that say something of nodes, and nothing else */

static void levelled(void) {
    lab_compute(l, "one", "n", always_one);
    lab_effect(l, "show", "one");
}

/* C311: rows that go alone make no revision; the same row said twice is one row. */
static void rows_alone_make_no_revision(void **state) {
    lab_set(l, "n", 3);
    levelled();
    settle();
    for (int i = 0; i < 3; i++) {
        lab_set(l, "n", 4 + i);
        lab_settle(l);
        uint64_t seq = seq_now();
        lab_advance_ms(l, 1100);
        settle();
        assert_int_equal(seq_now(), seq);
    }
    lab_runtime_close(lab_on(l, "a"));
    lab_on(l, "a");
    assert_string_equal(rows("main:main"), "main:main:one: n =one;");
}

/* ---- what becomes of rows */

static hd_status pick(lab_node *self, hd_tx *tx) {
    bool left = lab_tx_number(self, tx, "which") == 1;
    return lab_tx_put(self, tx, "picked", lab_tx_number(self, tx, left ? "left" : "right"));
}
static void picking(void) {
    lab_add(l, .name = "picked", .body = pick);
    lab_compute(l, "other", "left", NULL);
    lab_effect(l, "show", "picked other");
}

/* C314: a run replaces its row: what it no longer reads does not move it; who still does, runs. */
static void a_run_replaces_its_row(void **state) {
    lab_set(l, "which", 1);
    lab_set(l, "left", 10);
    lab_set(l, "right", 20);
    picking();
    settle();
    lab_set(l, "which", 2);
    leave("a");
    lab_ran(l);
    lab_on(l, "b");
    assert_string_equal(rows("main:main"),
                        "main:main:other: left =other;main:main:picked: which right =picked;");
    lab_set(l, "left", 11);
    leave("b");
    lab_on(l, "a");
    picking();
    assert_true(lab_is_clean(l, "picked"));
    assert_false(lab_is_clean(l, "other"));
    lab_settle(l);
    assert_ran(l, "other show");
    assert_seen(l, "show", "20 11");
}

static hd_value price(hd_tx *tx, hd_value in, void *ctx) { return hd_value_at(in, "price"); }
static void ignore(hd_value v, void *ctx) {}
static hd_cell basket(hd_build *b, void *ctx) {
    hd_cell items = hd_cell_at(rt(), "main/items");
    hd_cell all = hd_build_gather(
        b, "all", hd_build_map(b, "prices", items, &(hd_each){ .fn = price, .key = "/id" }));
    hd_build_sink(b, "look", all, ignore, NULL);
    return all;
}

static size_t row_count(const char *piece) {
    size_t n = 0;
    for (const char *at = rows(piece); (at = strchr(at, ';')); at++) n++;
    return n;
}

/* C314: a list that has become shorter leaves no rows of the elements that are gone. */
static void narrowing_deletes_stranded_rows(void **state) {
    hd_piece p;
    lab_set_json(l, "items",
                 "[{\"id\":1,\"price\":1},{\"id\":2,\"price\":2},{\"id\":3,\"price\":3}]");
    hd_pattern_register(rt(), "basket", "1", basket, NULL);
    hd_piece_spec spec = { .id = "b", .pattern = "basket" };
    assert_int_equal(hd_piece_start(rt(), &spec, &p, NULL), HD_OK);
    leave("a");
    lab_on(l, "b");
    size_t before = row_count("main:b");
    hd_pattern_register(rt(), "basket", "1", basket, NULL);
    assert_int_equal(hd_piece_open(rt(), "main", "b", &p, NULL), HD_OK);
    settle();
    lab_set_json(l, "items", "[{\"id\":2,\"price\":2}]");
    leave("b");
    lab_on(l, "c");
    assert_int_equal(row_count("main:b"), before - 2);
}

/* ---- effects that launch */

static hd_value twice(hd_tx *tx, hd_value in, void *ctx) {
    lab_note(l, "twice");
    return hd_double(2 * hd_value_number(in));
}
static hd_cell doubler(hd_build *b, void *ctx) {
    hd_cell d = hd_build_derive(b, "d", hd_cell_at(rt(), "main/x"), twice, NULL);
    hd_build_sink(b, "look", d, ignore, NULL);
    return d;
}
static hd_status launch(lab_node *self, hd_tx *tx) {
    hd_piece p;
    lab_tx_number(self, tx, "go");
    return hd_tx_launch_piece(tx, &(hd_piece_spec){ .id = "kid", .pattern = "doubler" }, &p);
}
static void launching(void) {
    hd_pattern_register(rt(), "doubler", "1", doubler, NULL);
    lab_add(l, .name = "launcher", .body = launch, .effect = true);
}
static bool count_piece(const hd_piece_info *info, void *ctx) {
    ++*(int *)ctx;
    return true;
}
static int pieces(void) {
    int n = 0;
    hd_runtime_pieces(rt(), count_piece, &n);
    return n;
}

/* An effect runs again after a restart: the piece that it launches is the one that was there, and goes
 * on; so it does when the effect runs once more. */
static void an_effect_that_relaunches_a_piece_yields_one(void **state) {
    lab_set(l, "x", 2);
    lab_set(l, "go", 1);
    launching();
    settle();
    assert_ran(l, "launcher twice");
    leave("a");
    lab_on(l, "a");
    launching();
    settle();
    assert_ran(l, "launcher");
    assert_int_equal(pieces(), 1);
    lab_set(l, "go", 2);
    settle();
    assert_ran(l, "launcher");
    assert_int_equal(pieces(), 1);
    lab_set(l, "x", 3);
    settle();
    assert_ran(l, "twice");
    assert_json(l, "main/kid/d", "6.0");
}

/* ---- reads without a claim */

static void unclaimed(const char *output) {
    lab_add(l, .name = "mid", .reads = "n", .version = "1");
    lab_add(l, .name = "top", .reads = "!mid", .output = output, .version = "1");
    lab_effect(l, "look", output);
}

/* `top` sees what `mid` made of a write that is on its way. Then nobody looks any more. */
static void run_ahead(const char *output) {
    lab_cancel(l, "look");
    lab_effect(l, "other", "mid");
    lab_set(l, "n", 2);
    lab_turn(l);
    lab_effect(l, "look", output);
    lab_turn(l);
    lab_cancel(l, "look");
    lab_cancel(l, "other");
}

/* What `mid` made is refused. What `top` made of that stays, since it claims nothing. The row that it had
 * before is about the value that `mid` has again, and not about what `top` has now. */
static void outrun(const char *output) {
    lab_runtime *a = lab_on(l, "a"), *b = lab_runtime_open(l, "b");
    lab_set(l, "n", 1);
    unclaimed(output);
    settle();
    lab_hold(a);
    run_ahead(output);
    lab_write(b, "n", "3");
    lab_pump(b);
    lab_mend(a);
    settle();
    assert_json(l, "mid", "1");
    assert_json(l, output, "2");
    lab_runtime_drop(a);
    lab_write(b, "n", "1");
    lab_pump(b);
    lab_on(l, "a");
    unclaimed(output);
    settle();
    assert_json(l, output, "1");
}
static void a_row_is_not_about_what_was_refused(void **state) { outrun("top"); }
static void a_row_is_not_about_what_was_refused_beside_the_seals(void **state) {
    lab_set_json(l, "out", "{}");
    outrun("out#/top");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_row_has_reads_and_gates),
        S(a_row_has_code_and_status),
        S(without_a_name_there_is_no_row),
        S(a_refused_row_takes_others_with_it_for_a_while),
        S(the_matching_row_is_chosen),
        S(a_stale_narrow_row_decides),
        S(rows_alone_make_no_revision),
        S(a_run_replaces_its_row),
        S(narrowing_deletes_stranded_rows),
        S(an_effect_that_relaunches_a_piece_yields_one),
        S(a_row_is_not_about_what_was_refused),
        S(a_row_is_not_about_what_was_refused_beside_the_seals),
    };
    LAB_EVERYWHERE(tests);
}
