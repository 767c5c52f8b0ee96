/* test_groups.c -- change groups: an editor's own edits do not come back to it (P5), wherever they are written
 * and however they are looked at. And what a log line says of its node. */
#include "spec.h"

static hd_runtime *rt(void) { return lab_runtime_now(l); }

enum { OWN = 7 };

/* ---- who writes */

static hd_status copy_in_group(lab_node *self, hd_tx *tx) {
    hd_tx_set_group(tx, OWN);
    return lab_tx_put(self, tx, "copy", lab_tx_number(self, tx, "n"));
}

/* hd_tx_set_group counts inside a computation, and for that run alone. */
static void a_computation_writes_for_its_group(void **state) {
    lab_set(l, "n", 1);
    lab_add(l, .name = "copy", .body = copy_in_group, .output = "copy");
    lab_compute(l, "plain", "n", NULL);
    lab_effect(l, "other", "copy");
    lab_add(l, .name = "editor", .reads = "copy", .effect = true, .group = OWN);
    lab_add(l, .name = "editor2", .reads = "plain", .effect = true, .group = OWN);
    lab_settle(l);
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_settle(l);
    assert_ran(l, "copy plain other editor2");
    assert_seen(l, "other", "2");
    assert_seen(l, "editor", "1");
}

/* ---- who looks */

static char shown[256];
static void show(hd_value v, void *ctx) {
    snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s%s%lld", *shown ? " " : "",
             (const char *)ctx, (long long)hd_value_as_int(v, -1));
}

/* A sink has a name and a group. */
static void a_sink_is_not_told_of_its_own_group(void **state) {
    hd_node n;
    shown[0] = 0;
    lab_set(l, "n", 1);
    hd_sink_spec spec = {
        .name = "editor", .cell = lab_cell(lab_first(l), "n"), .fn = show, .ctx = "", .group = OWN
    };
    assert_status(hd_sink_register(rt(), &spec, &n), HD_OK);
    assert_int_equal(hd_node_find(rt(), "editor").id, n.id);
    lab_settle(l);
    lab_do(lab_first(l), "group 7; set n 2");
    lab_settle(l);
    lab_do(lab_first(l), "group 8; set n 3");
    lab_settle(l);
    assert_string_equal(shown, "1 3");
    spec.fn = NULL;
    assert_status(hd_sink_register(rt(), &spec, NULL), HD_USAGE);
}

static void heard(const hd_notice *notice, void *ctx) {
    for (size_t i = 0; i < notice->count; i++) show(notice->changes[i].after, ctx);
}

/* So is a listener. */
static void a_listener_is_not_told_of_its_own_group(void **state) {
    shown[0] = 0;
    assert_status(hd_runtime_listen_except(rt(), heard, "own", OWN), HD_OK);
    assert_status(hd_runtime_listen(rt(), heard, "all"), HD_OK);
    lab_do(lab_first(l), "group 7; set n 2");
    lab_do(lab_first(l), "set n 3");
    assert_string_equal(shown, "all2 own3 all3");
    hd_runtime_unlisten(rt(), heard, "own");
    hd_runtime_unlisten(rt(), heard, "all");
    lab_settle(l);
}

/* ---- what is logged */

static char line_space[32], line_pattern[32];
static size_t line_length;
static bool note_line(hd_log_entry *entry, void *ctx) {
    snprintf(line_space, sizeof line_space, "%s", entry->space);
    snprintf(line_pattern, sizeof line_pattern, "%s", entry->pattern);
    line_length = strlen(entry->line);
    return false;
}
static hd_status log_much(lab_node *self, hd_tx *tx) {
    char text[3000];
    (void)lab_tx_number(self, tx, "elsewhere/n");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    hd_tx_log(tx, HD_LOG_INFO, "%s", text);
    return HD_OK;
}

/* A log line is whole, however long; it names the space of an effect: that of what it reads. */
static void a_long_line_is_not_cut(void **state) {
    hd_runtime_set_log(rt(), note_line, NULL);
    lab_add(l, .name = "talker", .body = log_much, .effect = true);
    lab_settle(l);
    assert_int_equal(line_length, 2999);
    assert_string_equal(line_space, "elsewhere"); /* also in its first run */
    line_space[0] = 0;
    lab_set(l, "elsewhere/n", 2);
    lab_settle(l);
    assert_string_equal(line_space, "elsewhere");
    assert_string_equal(line_pattern, "");
}

static char failed_in[32];
static void note_failure(const hd_failure *f, void *ctx) {
    snprintf(failed_in, sizeof failed_in, "%s", f->space);
}
static hd_status fail_there(lab_node *self, hd_tx *tx) {
    (void)lab_tx_number(self, tx, "elsewhere/n");
    return HD_MISMATCH;
}
/* So does a failure. */
static void a_failure_of_an_effect_names_its_space(void **state) {
    assert_status(hd_runtime_on_error(rt(), note_failure, NULL), HD_OK);
    lab_add(l, .name = "bad", .body = fail_there, .effect = true);
    lab_settle(l);
    assert_string_equal(failed_in, "elsewhere");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        S(a_computation_writes_for_its_group),      S(a_sink_is_not_told_of_its_own_group),
        S(a_listener_is_not_told_of_its_own_group), S(a_long_line_is_not_cut),
        S(a_failure_of_an_effect_names_its_space),
    };
    LAB_EVERYWHERE(tests);
}
