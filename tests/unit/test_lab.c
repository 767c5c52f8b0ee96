/* test_lab.c -- the installed lab: what it shows, what it refuses, what its messages say. */
#define _GNU_SOURCE
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* What would have ended a test. */
static char told[4096];
static void keep_message(const char *message, void *ctx) {
    (void)ctx;
    snprintf(told, sizeof told, "%s", message);
}

static hd_lab *lab;
static hd_runtime *rt;

static int open_here(bool in_file) {
    told[0] = '\0';
    lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file, .fail = keep_message });
    rt = hd_lab_runtime(lab, "a");
    return 0;
}
static int open_memory(void **state) { return open_here(false); }
static int open_file(void **state) { return open_here(true); }
static int close_lab(void **state) {
    hd_lab_close(lab);
    return 0;
}

#define assert_told(text)                                                                          \
    do {                                                                                           \
        if (!strstr(told, text)) fail_msg("\"%s\" is not in:\n%s", text, told);                    \
    } while (0)

/* ---- a graph to test: total = sum of items, shown by an effect */

static double sum_of(hd_value items) {
    double sum = 0;
    for (hd_iter it = hd_iter_of(items); hd_iter_next(&it);) sum += hd_value_number(it.value);
    return sum;
}

static hd_status add_up(hd_tx *tx, void *ctx) {
    hd_value items = hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/items"));
    if (hd_value_status(items)) return hd_value_status(items);
    return hd_tx_set_double(tx, hd_cell_at(hd_tx_runtime(tx), "main/total"), sum_of(items));
}

static hd_status show(hd_tx *tx, void *ctx) {
    return hd_value_status(hd_tx_get(tx, hd_cell_at(hd_tx_runtime(tx), "main/total")));
}

static void start_graph(hd_runtime *on) {
    hd_compute(on, "add_up", add_up, NULL, hd_cell_at(on, "main/total"));
    hd_effect(on, "show", show, NULL);
}

static void settled_graph(void) {
    start_graph(rt);
    hd_lab_set(rt, "main/items", "[1, 2]");
    hd_lab_settle(lab);
    hd_lab_ran(rt);
}

/* ---- what ran */

static void what_ran_is_told_in_order_and_once(void **state) {
    start_graph(rt);
    hd_lab_set(rt, "main/items", "[1, 2]");
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, "add_up show"));
    assert_true(hd_lab_expect_ran(rt, ""));
    assert_true(hd_lab_expect_cell(rt, "main/total", "3.0"));
    hd_lab_set(rt, "main/items", "[2, 1]"); /* the same sum */
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, "add_up"));
    assert_true(hd_lab_expect_runs(rt, "add_up", 2));
    assert_true(hd_lab_expect_runs(rt, "show", 1));
    assert_string_equal(told, "");
}

static void see(hd_value v, void *ctx) { hd_lab_note(ctx, "sink"); }

static void a_sink_is_in_the_log_where_it_says_so(void **state) {
    start_graph(rt);
    hd_sink(rt, hd_cell_at(rt, "main/total"), see, rt);
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, "add_up show sink"));
}

static hd_status on_buy(hd_tx *tx, const hd_event *e, void *ctx) {
    return hd_tx_append(tx, hd_cell_at(hd_tx_runtime(tx), "main/items"), e->payload);
}

static void handlers_stand_among_the_nodes(void **state) {
    hd_cell total = hd_cell_at(rt, "main/total"), buy = hd_cell_at(rt, "main/buy");
    hd_handler handler;
    hd_handler_spec spec = {
        .name = "buy", .stream = buy, .fn = on_buy, .inputs = &total, .input_count = 1
    };
    settled_graph();
    assert_int_equal(hd_handler_register(rt, &spec, &handler), HD_OK);
    assert_int_equal(hd_event_send(rt, buy, hd_int(NULL, 4), NULL), HD_OK);
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, "buy add_up show"));
    assert_true(hd_lab_expect_cell(rt, "main/items", "[1,2,4]"));
}

/* ---- what messages say */

static void a_node_that_did_not_run_is_explained(void **state) {
    hd_compute(rt, "add_up", add_up, NULL, hd_cell_at(rt, "main/total"));
    hd_lab_settle(lab);
    assert_false(hd_lab_expect_ran(rt, "add_up show"));
    assert_told("test_lab.c:");
    assert_told("expected to run: add_up show\n    what ran: nothing");
    assert_told("add_up: no live node reads");
    assert_told("there is no node show");
}

static void a_node_that_ran_is_explained(void **state) {
    settled_graph();
    hd_lab_set(rt, "main/items", "[1, 2, 3]");
    hd_lab_settle(lab);
    assert_false(hd_lab_expect_ran(rt, ""));
    assert_told("expected to run: nothing");
    assert_told("add_up ran because\n        main/items changed");
    assert_told("show ran because\n        main/total changed from 3.0 to 6.0, by add_up");
}

static void a_wrong_value_names_its_writer(void **state) {
    settled_graph();
    hd_lab_set(rt, "main/items", "[7]");
    assert_false(hd_lab_expect_cell(rt, "main/total", "7.0")); /* it was not settled */
    assert_told("main/total should be 7.0, and is 3.0");
    assert_told("it is written by add_up");
    assert_told("main/items changed");
}

static void a_number_of_runs_that_is_wrong_says_how_many(void **state) {
    settled_graph();
    assert_false(hd_lab_expect_runs(rt, "add_up", 3));
    assert_told("add_up should have run 3 times, and ran 1");
}

static void what_is_no_json_and_no_cell_is_said(void **state) {
    assert_false(hd_lab_expect_cell(rt, "main/x", "{"));
    assert_told("\"{\" is not JSON");
    hd_lab_set(rt, "main/x", "{");
    assert_told("main/x cannot be set to {");
    hd_lab_set(rt, "nowhere", "1");
    assert_told("nowhere");
}

static hd_status fail_always(hd_tx *tx, void *ctx) {
    return hd_tx_fail(tx, HD_FAILED, "the cart is full");
}

static void failures_are_collected(void **state) {
    hd_effect(rt, "bad", fail_always, NULL);
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_failures(rt, "bad HD_FAILED: the cart is full"));
    assert_true(hd_lab_expect_failures(rt, ""));
}

static void a_failure_that_nobody_looked_at_is_told_at_the_end(void **state) {
    hd_effect(rt, "bad", fail_always, NULL);
    hd_lab_settle(lab);
    hd_lab_runtime_close(rt);
    assert_told("the test did not look at these failures: bad HD_FAILED: the cart is full");
}

/* ---- twice */

static int dice_now;
static hd_status dice(hd_tx *tx, void *ctx) {
    return hd_tx_set_int(tx, hd_cell_at(hd_tx_runtime(tx), "main/total"), ++dice_now);
}

static void what_is_not_idempotent_is_found(void **state) {
    dice_now = 0;
    hd_lab_recheck(lab);
    hd_compute(rt, "dice", dice, NULL, hd_cell_at(rt, "main/total"));
    hd_effect(rt, "show", show, NULL);
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_violations(rt, "dice wrote main/total=1, then main/total=2"));
}

/* ---- time */

static void time_passes_when_told(void **state) {
    settled_graph();
    hd_node_set_debounce(rt, hd_node_find(rt, "add_up"), 200);
    hd_lab_set(rt, "main/items", "[5]");
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, ""));
    hd_lab_advance_ms(lab, 199);
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, ""));
    hd_lab_advance_ms(lab, 1);
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_ran(rt, "add_up show"));
}

static void idle_lets_time_pass(void **state) {
    start_graph(rt);
    hd_node_set_debounce(rt, hd_node_find(rt, "add_up"), 60000);
    hd_lab_set(rt, "main/items", "[5]");
    hd_lab_idle(lab);
    assert_true(hd_lab_expect_cell(rt, "main/total", "5.0"));
}

/* ---- several runtimes, delivery, faults */

static void several_runtimes_see_each_other(void **state) {
    hd_runtime *b = hd_lab_runtime(lab, "b");
    assert_ptr_equal(hd_lab_runtime(lab, "b"), b);
    start_graph(b);
    hd_lab_settle(lab);
    hd_lab_ran(b);
    hd_lab_set(rt, "main/items", "[4]");
    assert_true(hd_lab_expect_cell(b, "main/items", "-"));
    hd_lab_settle(lab);
    assert_true(hd_lab_expect_cell(b, "main/total", "4.0"));
    assert_true(hd_lab_expect_ran(b, "add_up show"));
    assert_true(hd_lab_expect_cell(rt, "main/total", "4.0"));
}

static void note_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* Reads a number and writes it back, one more. */
static hd_status count_up(hd_runtime *on, hd_status *verdict) {
    hd_tx *tx;
    hd_cell n = hd_cell_at(on, "main/n");
    *verdict = HD_PENDING;
    hd_status status = hd_tx_begin(on, &tx);
    if (status) return status;
    int64_t i = hd_value_as_int(hd_tx_get(tx, n), 0);
    hd_tx_set_int(tx, n, i + 1);
    return hd_tx_commit(tx, note_verdict, verdict);
}

static void the_order_of_pumps_is_the_order_of_delivery(void **state) {
    hd_runtime *b = hd_lab_runtime(lab, "b");
    hd_status of_a, of_b;
    count_up(rt, &of_a);
    count_up(b, &of_b);
    hd_lab_pump(b); /* b is quicker */
    hd_lab_settle(lab);
    assert_int_equal(of_b, HD_OK);
    assert_int_equal(hd_status_class(of_a), HD_CLASS_STALE);
    assert_true(hd_lab_expect_cell(rt, "main/n", "1"));
}

static void what_is_held_moves_on_when_released(void **state) {
    hd_runtime *b = hd_lab_runtime(lab, "b");
    hd_status verdict;
    hd_lab_get(b, "main/n");
    hd_lab_delay(rt, HD_LAB_COMMITS);
    count_up(rt, &verdict);
    hd_lab_settle(lab);
    assert_int_equal(verdict, HD_PENDING);
    assert_true(hd_lab_expect_cell(b, "main/n", "-"));
    hd_lab_deliver(rt);
    hd_lab_delay(rt, HD_LAB_NEWS);
    hd_lab_settle(lab);
    assert_int_equal(verdict, HD_PENDING); /* decided, not heard of */
    assert_true(hd_lab_expect_cell(b, "main/n", "1"));
    hd_lab_deliver(rt);
    hd_lab_settle(lab);
    assert_int_equal(verdict, HD_OK);
}

static void a_commit_can_be_refused(void **state) {
    hd_status verdict;
    hd_lab_refuse(rt, HD_REJECTED, 1);
    count_up(rt, &verdict);
    assert_true(hd_lab_expect_cell(rt, "main/n", "1"));
    hd_lab_settle(lab);
    assert_int_equal(verdict, HD_REJECTED);
    assert_true(hd_lab_expect_cell(rt, "main/n", "-"));
    count_up(rt, &verdict);
    hd_lab_settle(lab);
    assert_int_equal(verdict, HD_OK);
}

static void documents_can_arrive_late(void **state) {
    hd_lab *late = hd_lab_open(&(hd_lab_options){ .load_late = true });
    hd_runtime *a = hd_lab_runtime(late, "a");
    start_graph(a);
    hd_lab_settle(late);
    assert_true(hd_lab_expect_cell(a, "main/total", "0.0"));
    hd_lab_close(late);
}

/* ---- where files are, and who leaves in the middle */

static void a_file_is_made_in_however_long_a_place(void **state) {
    char place[200], inner[300], was[300];
    const char *before = getenv("TMPDIR");
    snprintf(was, sizeof was, "%s", before ? before : "/tmp");
    snprintf(place, sizeof place, "%.80s/heddle-test-lab-XXXXXX", was);
    assert_non_null(mkdtemp(place));
    snprintf(inner, sizeof inner, "%s/a-folder-with-a-name-that-goes-on-for-quite-a-while", place);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(setenv("TMPDIR", inner, 1), 0);
    open_here(true);
    hd_lab_set(rt, "main/a", "1");
    hd_lab_expect_cell(rt, "main/a", "1");
    hd_lab_close(lab);
    assert_string_equal(told, "");
    assert_int_equal(setenv("TMPDIR", was, 1), 0);
    assert_int_equal(rmdir(inner), 0); /* nothing is left behind */
    assert_int_equal(rmdir(place), 0);
}

static jmp_buf out;
static void leave(const char *message, void *ctx) {
    (void)ctx;
    snprintf(told, sizeof told, "%s", message);
    longjmp(out, 1);
}

static void who_leaves_from_closing_can_close_again(void **state) {
    lab = hd_lab_open(&(hd_lab_options){ .fail = leave });
    rt = hd_lab_runtime(lab, "a");
    hd_effect(rt, "bad", fail_always, NULL);
    hd_lab_settle(lab);
    told[0] = '\0';
    if (!setjmp(out)) hd_lab_close(lab);
    assert_told("the test did not look at these failures");
    hd_lab_close(lab);
}

static void a_name_belongs_to_one_runtime(void **state) {
    hd_runtime *other;
    assert_int_equal(hd_lab_runtime_with(lab, "a", NULL, &other), HD_EXISTS);
    assert_null(other);
    assert_told("a runtime a is open already");
}

static hd_status write_one(hd_tx *tx, void *ctx) {
    return hd_tx_set_json(tx, hd_cell_at(hd_tx_runtime(tx), "main/n"), "1");
}
static hd_status handle_nothing(hd_tx *tx, const hd_event *event, void *ctx) { return HD_OK; }

/* To wait for a verdict takes none of the lab's time, whatever is planned for later. */
static void a_verdict_takes_no_time(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    const hd_env *env = hd_runtime_env(a);
    hd_handler_spec spec = { .stream = hd_cell_at(a, "main/s"),
                             .fn = handle_nothing,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(a, &spec, NULL), HD_OK);
    hd_send_options later = { .after_ms = 3600000 };
    assert_int_equal(
        hd_event_post(a, spec.stream, hd_null(), &later, (char[HD_EVENT_ID_SIZE]){ 0 }), HD_OK);
    hd_lab_settle(lab);
    uint64_t before = env->monotonic_ns(env->ctx);
    for (int i = 0; i < 20; i++) {
        hd_lab_set(a, "main/n", "0");
        assert_int_equal(hd_transact(a, write_one, NULL), HD_OK);
    }
    assert_int_equal(env->monotonic_ns(env->ctx), before);
}

/* ---- no memory */

static void use_without_memory(hd_lab_env *world, void *ctx) {
    hd_lab *l = hd_lab_open(&(hd_lab_options){ .env = world });
    hd_runtime *a;
    if (!hd_lab_runtime_with(l, "a", &(hd_options){ .principal = "ada" }, &a)) {
        start_graph(a);
        hd_lab_set(a, "main/items", "[1]");
        hd_lab_settle(l);
        hd_lab_env_fail_at(world, 0);
        hd_lab_failures(a);
    }
    hd_lab_close(l);
}

static void a_lab_gets_by_without_memory(void **state) {
    assert_true(hd_lab_each_allocation_failure(use_without_memory, NULL) > 20);
}

#define IN(place, name) cmocka_unit_test_setup_teardown(name, open_##place, close_lab)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN(memory, what_ran_is_told_in_order_and_once),
        IN(file, what_ran_is_told_in_order_and_once),
        IN(memory, a_sink_is_in_the_log_where_it_says_so),
        IN(memory, handlers_stand_among_the_nodes),
        IN(file, handlers_stand_among_the_nodes),
        IN(memory, a_node_that_did_not_run_is_explained),
        IN(memory, a_node_that_ran_is_explained),
        IN(memory, a_wrong_value_names_its_writer),
        IN(memory, a_number_of_runs_that_is_wrong_says_how_many),
        IN(memory, what_is_no_json_and_no_cell_is_said),
        IN(memory, failures_are_collected),
        IN(memory, a_failure_that_nobody_looked_at_is_told_at_the_end),
        IN(memory, what_is_not_idempotent_is_found),
        IN(memory, time_passes_when_told),
        IN(file, time_passes_when_told),
        IN(memory, idle_lets_time_pass),
        IN(memory, a_verdict_takes_no_time),
        IN(file, a_verdict_takes_no_time),
        IN(memory, several_runtimes_see_each_other),
        IN(file, several_runtimes_see_each_other),
        IN(memory, the_order_of_pumps_is_the_order_of_delivery),
        IN(memory, what_is_held_moves_on_when_released),
        IN(memory, a_commit_can_be_refused),
        cmocka_unit_test(documents_can_arrive_late),
        cmocka_unit_test(a_file_is_made_in_however_long_a_place),
        cmocka_unit_test(who_leaves_from_closing_can_close_again),
        IN(memory, a_name_belongs_to_one_runtime),
        cmocka_unit_test(a_lab_gets_by_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
