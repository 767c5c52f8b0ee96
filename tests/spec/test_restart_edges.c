/* test_restart_edges.c -- the first moments after a restart, before nodes have run: why they will run, why they do not,
 * and what a debounce means then. From the public headers. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_lab *lab;
static hd_runtime *rt;
static uint32_t debounce;

static int start_in(bool in_file) {
    lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file });
    rt = hd_lab_runtime(lab, "main");
    debounce = 0;
    return 0;
}
static int start(void **state) { return start_in(false); }
static int start_file(void **state) { return start_in(true); }
static int finish(void **state) {
    hd_lab_close(lab);
    return 0;
}
#define T(name)                                                                                    \
    { #name, name, start, finish, NULL }, { #name " in a file", name, start_file, finish, NULL }

static hd_status add_up(hd_tx *tx, void *ctx) {
    hd_runtime *in = hd_tx_runtime(tx);
    hd_value x = hd_tx_get(tx, hd_cell_at(in, "main/x")),
             y = hd_tx_get(tx, hd_cell_at(in, "main/y"));
    if (hd_value_status(x)) return hd_value_status(x);
    if (hd_value_status(y)) return hd_value_status(y);
    return hd_tx_set_int(tx, hd_cell_at(in, "main/sum"),
                         hd_value_as_int(x, 0) + hd_value_as_int(y, 0));
}
static void see(hd_value v, void *ctx) {}

static void build(void) {
    hd_node_spec spec = { .name = "sum", .fn = add_up, .version = "1", .debounce_ms = debounce };
    spec.output = hd_cell_at(rt, "main/sum");
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    hd_sink(rt, hd_cell_at(rt, "main/sum"), see, NULL);
}
static void begin(void) {
    hd_lab_set(rt, "main/x", "1");
    hd_lab_set(rt, "main/y", "10");
    build();
    hd_lab_idle(lab);
    hd_lab_expect_cell(rt, "main/sum", "11");
}
static void restart_after(const char *cell, const char *json) {
    hd_lab_runtime_close(rt);
    if (cell) {
        hd_runtime *other = hd_lab_runtime(lab, "other");
        hd_lab_set(other, cell, json);
        hd_lab_runtime_close(other);
    }
    rt = hd_lab_runtime(lab, "main");
    build();
}

static char causes[256];
static bool note(const hd_cause *cause, void *ctx) {
    char name[64];
    if (cause->depth) return true;
    hd_cell_print(rt, cause->cell, name, sizeof name);
    size_t length = strlen(causes);
    snprintf(causes + length, sizeof causes - length, "%s%s=%s%s", length ? " " : "", name,
             cause->after, cause->pending ? " pending" : "");
    return true;
}
static void expect_why(const char *text) {
    causes[0] = 0;
    assert_int_equal(hd_node_why(rt, hd_node_find(rt, "sum"), note, NULL), HD_OK);
    assert_string_equal(causes, text);
}

/* C372: what was found changed will cause the run, and is told before it. */
static void a_resumed_node_tells_why_it_will_run(void **state) {
    begin();
    restart_after("main/y", "20");
    expect_why("main/y=20 pending");
    hd_lab_set(rt, "main/x", "2");
    expect_why("main/y=20 pending main/x=2 pending");
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/sum", "22");
    expect_why("main/y=20 main/x=2");
}

/* C372: a clean one says that it ran before this program. */
static void a_resumed_node_tells_why_it_does_not_run(void **state) {
    char text[200];
    begin();
    restart_after(NULL, NULL);
    hd_lab_settle(lab);
    hd_lab_expect_ran(rt, "");
    assert_int_equal(hd_node_why_not(rt, hd_node_find(rt, "sum"), text, sizeof text),
                     HD_WHY_NOT_CLEAN);
    assert_string_equal(
        text, "it is clean: nothing it read has changed since its last run, which was before "
              "this program was started, or in another one");
    expect_why("");
}

/* C373: what had changed before the start is not debounced, also if something changes again before the run. */
static void a_debounce_does_not_hold_what_changed_before_the_start(void **state) {
    debounce = 500;
    begin();
    restart_after("main/y", "20");
    hd_lab_set(rt, "main/x", "2");
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/sum", "22");
}

/* C373: a resumed node that was clean is debounced as one that has run here. */
static void a_debounce_holds_what_changes_after_the_start(void **state) {
    debounce = 500;
    begin();
    restart_after(NULL, NULL);
    hd_lab_settle(lab);
    hd_lab_set(rt, "main/x", "2");
    hd_lab_settle(lab);
    hd_lab_advance_ms(lab, 400);
    hd_lab_set(rt, "main/x", "3");
    hd_lab_advance_ms(lab, 400);
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/sum", "11");
    hd_lab_advance_ms(lab, 100);
    hd_lab_settle(lab);
    hd_lab_expect_cell(rt, "main/sum", "13");
}

/* ---- another node of the same name */

static hd_status write_ctx(hd_tx *tx, void *ctx) {
    hd_runtime *in = hd_tx_runtime(tx);
    hd_value v = hd_tx_get(tx, hd_cell_at(in, "main/x"));
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_tx_set_int(tx, hd_cell_at(in, "main/w"), *(int *)ctx + hd_value_as_int(v, 0));
}

/* C297: a node that takes the name of one that was unregistered runs, whether that is stored yet or not: it may have
 * another function or context. */
static void a_node_that_takes_over_a_name_runs(void **state) {
    static int ctx[] = { 100, 200, 300, 400 };
    hd_lab_set(rt, "main/x", "1");
    hd_sink(rt, hd_cell_at(rt, "main/w"), see, NULL);
    hd_node n = hd_compute(rt, "w", write_ctx, &ctx[0], hd_cell_at(rt, "main/w"));
    for (int i = 1; i < 4; i++) {
        hd_lab_idle(lab);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        hd_node_unregister(rt, n);
        if (i == 2) assert_int_equal(hd_runtime_sync(rt), HD_OK);
        n = hd_compute(rt, "w", write_ctx, &ctx[i], hd_cell_at(rt, "main/w"));
        hd_lab_settle(lab);
        char want[16];
        snprintf(want, sizeof want, "%d", ctx[i] + 1);
        hd_lab_expect_cell(rt, "main/w", want);
    }
}

/* ---- long names */

static hd_status copy_mine(hd_tx *tx, void *ctx) {
    hd_runtime *in = hd_tx_runtime(tx);
    hd_value v = hd_tx_get(tx, hd_cell_at(in, "main@user/x"));
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_tx_set(tx, hd_cell_at(in, "main@user/copy"), v);
}
static hd_runtime *open_as(const char *principal) {
    hd_runtime *as;
    hd_options options = { .principal = principal };
    assert_int_equal(hd_lab_runtime_with(lab, "long", &options, &as), HD_OK);
    return as;
}
static void copy_for(hd_runtime *as) {
    hd_node_spec spec = { .name = "copy", .fn = copy_mine, .version = "1" };
    spec.output = hd_cell_at(as, "main@user/copy");
    assert_int_equal(hd_node_register(as, &spec, NULL), HD_OK);
    hd_sink(as, hd_cell_at(as, "main@user/copy"), see, NULL);
    hd_lab_idle(lab);
    assert_int_equal(hd_runtime_sync(as), HD_OK);
}

/* C295: the name of a principal may be long. */
static void rows_of_a_principal_with_a_long_name(void **state) {
    static char name[5001];
    memset(name, 'p', sizeof name - 1);
    hd_runtime *as = open_as(name);
    hd_lab_set(as, "main@user/x", "1");
    copy_for(as);
    hd_lab_expect_ran(as, "copy");
    hd_lab_runtime_close(as);
    as = open_as(name);
    copy_for(as);
    hd_lab_expect_ran(as, "");
    hd_lab_expect_cell(as, "main@user/copy", "1");
}

/* ---- another version */

static hd_status copy_cell(hd_tx *tx, void *ctx) {
    hd_runtime *in = hd_tx_runtime(tx);
    hd_value v = hd_tx_get(tx, hd_cell_at(in, ctx));
    if (hd_value_status(v)) return hd_value_status(v);
    return hd_tx_set(tx, hd_cell_at(in, "main/copy"), v);
}
static void start_version(const char *version, char *reads) {
    hd_lab_runtime_close(rt);
    rt = hd_lab_runtime(lab, "main");
    hd_node_spec spec = { .name = "copy", .fn = copy_cell, .ctx = reads, .version = version };
    spec.output = hd_cell_at(rt, "main/copy");
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    hd_sink(rt, hd_cell_at(rt, "main/copy"), see, NULL);
    hd_lab_idle(lab);
}

/* C297, C298: a version that reads nothing of the user's any more runs once, and not at every restart. */
static void a_version_that_reads_in_a_wider_scope_runs_once(void **state) {
    hd_lab_set(rt, "main@user/u", "1");
    hd_lab_set(rt, "main/x", "2");
    start_version("1", "main@user/u");
    hd_lab_expect_ran(rt, "copy");
    start_version("2", "main/x");
    hd_lab_expect_ran(rt, "copy");
    start_version("2", "main/x");
    hd_lab_expect_ran(rt, "");
    start_version("1", "main@user/u");
    hd_lab_expect_ran(rt, "copy");
    start_version("1", "main@user/u");
    hd_lab_expect_ran(rt, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_resumed_node_tells_why_it_will_run),
        T(a_resumed_node_tells_why_it_does_not_run),
        T(a_debounce_does_not_hold_what_changed_before_the_start),
        T(a_debounce_holds_what_changes_after_the_start),
        T(a_node_that_takes_over_a_name_runs),
        T(rows_of_a_principal_with_a_long_name),
        T(a_version_that_reads_in_a_wider_scope_runs_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
